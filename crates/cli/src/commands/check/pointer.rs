//! Places in JSON texts: where a reader is, and where a pointer points.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

/// An object or array that is not closed.
struct Open {
    is_object: bool,
    /// The key of the member that is being read.
    key: Option<String>,
    /// The items before this one.
    index: usize,
    /// Whether the value is complete, and a comma or a bracket comes next.
    is_done: bool,
}

/// The JSON pointer of the value in which the beginning of a JSON text stops; that of the object or array
/// where it stops between two values or in a key. Cost: the length of the text.
pub fn pointer(text: &[u8]) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        match byte {
            b'{' | b'[' => {
                open.push(Open { is_object: byte == b'{', key: None, index: 0, is_done: false });
            }
            b'}' | b']' => {
                open.pop();
                open.last_mut().into_iter().for_each(|open| open.is_done = true);
            }
            b',' => open.last_mut().into_iter().for_each(|open| {
                (open.key, open.is_done) = (None, false);
                open.index += 1;
            }),
            b'"' => {
                let Some(len) = string_len(&text[at..]) else { break };
                let spelled = &text[at - 1..at + len];
                at += len;
                let Some(top) = open.last_mut() else { continue };
                match top.is_object && top.key.is_none() {
                    true => top.key = serde_json::from_slice(spelled).ok(),
                    false => top.is_done = true,
                }
            }
            _ => {}
        }
    }
    let mut pointer = String::new();
    for open in open.iter().filter(|open| !open.is_done) {
        match &open.key {
            Some(key) => pointer += &format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            None if open.is_object => {}
            None => pointer += &format!("/{}", open.index),
        }
    }
    pointer
}

/// Where in a JSON text the value is that a pointer points at, or the innermost one on the way that is there;
/// `None` if the text is no JSON.
pub fn span(text: &str, pointer: &str) -> Option<Range<usize>> {
    let mut value: &RawValue = serde_json::from_str(text).ok()?;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let inner = if value.get().starts_with('[') {
            let items = serde_json::from_str::<Vec<&RawValue>>(value.get()).ok();
            items.and_then(|items| items.get(part.parse::<usize>().ok()?).copied())
        } else {
            let members = serde_json::from_str::<BTreeMap<String, &RawValue>>(value.get()).ok();
            members.and_then(|members| members.get(&part).copied())
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    // A raw value is a part of the text that it was read from.
    let start = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some(start..start + value.get().len())
}

/// Of a JSON text that stops being valid at a place: the key that is read there, if the object has one like
/// it already.
pub fn repeated_key(text: &[u8], stop: usize) -> Option<String> {
    // The keys of the objects that are open; arrays have none.
    let mut open: Vec<Option<Vec<String>>> = Vec::new();
    let (mut at, mut expects_key) = (0, false);
    while at < stop {
        let byte = text[at];
        at += 1;
        match byte {
            b'{' | b'[' => {
                expects_key = byte == b'{';
                open.push(expects_key.then(Vec::new));
            }
            b'}' | b']' => {
                open.pop();
                expects_key = false;
            }
            b',' => expects_key = open.last().is_some_and(Option::is_some),
            b':' => expects_key = false,
            b'"' => {
                let len = string_len(&text[at..])?;
                let spelled = &text[at - 1..at + len];
                at += len;
                if let Some(keys) = open.last_mut().and_then(Option::as_mut).filter(|_| expects_key) {
                    let key: String = serde_json::from_slice(spelled).ok()?;
                    if at > stop {
                        return keys.contains(&key).then_some(key);
                    }
                    keys.push(key);
                }
            }
            _ => {}
        }
    }
    None
}

/// How long the rest of a string is, its closing quote included.
fn string_len(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{pointer, repeated_key, span};

    #[test]
    fn values_that_pointers_point_at() {
        let text = r#" {"a/b": [1, {"~": "é"}, true], "a": 2 } "#;
        for (pointer, value) in [
            ("", text.trim()),
            ("/a", "2"),
            ("/a~1b", r#"[1, {"~": "é"}, true]"#),
            ("/a~1b/1/~0", "\"é\""),
            ("/a~1b/2", "true"),
            ("/a~1b/3", r#"[1, {"~": "é"}, true]"#),
            ("/a/b/c", "2"),
            ("/c", text.trim()),
        ] {
            assert_eq!(&text[span(text, pointer).unwrap()], value, "{pointer}");
        }
        assert_eq!(span("{", "/a"), None);
    }

    #[test]
    fn keys_that_are_there_already() {
        for (text, key) in [
            (r#"{"a":1,"a|":2}"#, Some("a")),
            (r#"{"a":1,"|a":2}"#, Some("a")),
            (r#"{"a":1,"\u0061|":2}"#, Some("a")),
            (r#"{"b":{"a":1},"c":[{"x":1,"b":2,"b|":2}]}"#, Some("b")),
            (r#"{"a":1,"b|":2}"#, None),
            (r#"{"a":"b","c":"b|"}"#, None),
            (r#"{"a":1,"a|"#, None),
            (r#"[{"a":1},{"a|":1}]"#, None),
        ] {
            let stop = text.find('|').unwrap();
            let text = text.replace('|', "");
            assert_eq!(repeated_key(text.as_bytes(), stop).as_deref(), key, "{text}");
        }
    }

    #[test]
    fn places_in_texts() {
        for (text, place) in [
            ("", ""),
            ("17", ""),
            ("{", ""),
            (r#"{"a"#, ""),
            (r#"{"a":"#, "/a"),
            (r#"{"a" : [1, {"b/~": "x\"y"#, "/a/1/b~1~0"),
            (r#"{"a":[1,{"b":"x"}"#, "/a"),
            (r#"{"a":[1,{"b":"x"}],"#, ""),
            (r#"{"a":[1,2"#, "/a/1"),
            (r#"{"\u0061":[[],[]"#, "/a"),
            (r#"]},"#, ""),
        ] {
            assert_eq!(pointer(text.as_bytes()), place, "{text}");
        }
    }
}
