//! Where in a JSON text a pointer points.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

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

#[cfg(test)]
mod tests {
    use super::span;

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
}
