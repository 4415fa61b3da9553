//! Places in the beginnings of JSON texts: where a reader is, and whether it is in a key that is there
//! already.

use crate::document::escaped;
use crate::read::read;
use crate::value::Value;

/// What tells where a JSON text is.
enum Mark<'t> {
    /// `{` or `[`, and whether it is the first.
    Open(bool),
    Close,
    Comma,
    Colon,
    /// A string with its quotes; `None` if the text ends before.
    String(Option<&'t [u8]>),
}

/// The marks of the beginning of a JSON text, as far as it is one, each with where it begins.
fn marks(text: &[u8]) -> impl Iterator<Item = (usize, Mark<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = text.get(at) {
            let begin = at;
            at += 1;
            let mark = match byte {
                b'{' | b'[' => Mark::Open(byte == b'{'),
                b'}' | b']' => Mark::Close,
                b',' => Mark::Comma,
                b':' => Mark::Colon,
                b'"' => {
                    let len = string_len(&text[at..]);
                    at = len.map_or(text.len(), |len| at + len);
                    Mark::String(len.map(|_| &text[begin..at]))
                }
                _ => continue,
            };
            return Some((begin, mark));
        }
        None
    })
}

/// Whether the beginning of a JSON text is a whole value that nothing but blanks can follow. A number at its
/// end may go on.
pub fn is_complete(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    for (_, mark) in marks(text) {
        match mark {
            Mark::Open(_) => depth += 1,
            Mark::Close => depth = depth.saturating_sub(1),
            Mark::String(None) => return false,
            _ => {}
        }
    }
    let value = text.trim_ascii();
    let is_closed = matches!(value.last(), Some(b'}' | b']' | b'"'));
    depth == 0 && (is_closed || [&b"true"[..], b"false", b"null"].contains(&value))
}

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
    for (_, mark) in marks(text) {
        match mark {
            Mark::Open(is_object) => open.push(Open { is_object, key: None, index: 0, is_done: false }),
            Mark::Close => {
                open.pop();
                open.last_mut().into_iter().for_each(|open| open.is_done = true);
            }
            Mark::Comma => open.last_mut().into_iter().for_each(|open| {
                (open.key, open.is_done) = (None, false);
                open.index += 1;
            }),
            Mark::String(Some(spelled)) => {
                let Some(top) = open.last_mut() else { continue };
                match top.is_object && top.key.is_none() {
                    true => top.key = key(spelled),
                    false => top.is_done = true,
                }
            }
            Mark::Colon | Mark::String(None) => {}
        }
    }
    let step = |open: &Open| match &open.key {
        Some(key) => format!("/{}", escaped(key)),
        None if open.is_object => String::new(),
        None => format!("/{}", open.index),
    };
    open.iter().filter(|open| !open.is_done).map(step).collect()
}

/// Of a JSON text that stops being valid at a place: the key that is read there, if the object has one like
/// it already.
pub fn repeated_key(text: &[u8], stop: usize) -> Option<String> {
    // The keys of the objects that are open; arrays have none.
    let mut open: Vec<Option<Vec<String>>> = Vec::new();
    let mut expects_key = false;
    for (begin, mark) in marks(text).take_while(|&(begin, _)| begin < stop) {
        match mark {
            Mark::Open(is_object) => {
                expects_key = is_object;
                open.push(is_object.then(Vec::new));
            }
            Mark::Close => {
                open.pop();
                expects_key = false;
            }
            Mark::Comma => expects_key = open.last().is_some_and(Option::is_some),
            Mark::Colon => expects_key = false,
            Mark::String(string) => {
                let spelled = string?;
                let Some(keys) = open.last_mut().and_then(Option::as_mut).filter(|_| expects_key) else {
                    continue;
                };
                let key = key(spelled)?;
                if begin + spelled.len() > stop {
                    return keys.contains(&key).then_some(key);
                }
                keys.push(key);
            }
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
            (r#"{"a":1|,"a":2}"#, None),
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
