//! Places in the beginnings of JSON texts: where a reader is, and whether it is in a key that is there
//! already.

use crate::read::read;
use crate::value::Value;

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

/// Whether the beginning of a JSON text is a whole value that nothing but blanks can follow. A number at its
/// end may go on.
pub fn is_complete(text: &[u8]) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        at += 1;
        match text[at - 1] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => match string_len(&text[at..]) {
                Some(len) => at += len,
                None => return false,
            },
            _ => {}
        }
    }
    let value = text.trim_ascii();
    let is_closed = matches!(value.last(), Some(b'}' | b']' | b'"'));
    depth == 0 && (is_closed || [&b"true"[..], b"false", b"null"].contains(&value))
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
                    true => top.key = key(spelled),
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
                    let key = key(spelled)?;
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

/// The key that is spelled.
fn key(spelled: &[u8]) -> Option<String> {
    match read(std::str::from_utf8(spelled).ok()?).ok()? {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    }
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
    use super::{is_complete, pointer, repeated_key};

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

    #[test]
    fn what_is_complete() {
        for text in ["{}", "[1,{}] ", r#""a\"b" "#, "[\"]\"]", " true", "null "] {
            assert!(is_complete(text.as_bytes()), "{text}");
        }
        for text in ["", " ", "1", "tru", "[true", "[{}", "[\"]\"", "\"a", "{\"a\":\"}\""] {
            assert!(!is_complete(text.as_bytes()), "{text}");
        }
    }
}
