//! Arbitrary bytes as a structural tag and, behind a NUL, a text.
//!
//! Nothing panics or hangs. If the tag is read, the grammar is one, and a sentence has a parse tree or too
//! many parse items.

use anygram::ErrorKind;
use anygram_left_to_right::tree::Tree;
use anygram_left_to_right::{Language, LanguageOptions};
use anygram_structural_tag::{Options, grammar};

/// Reads a tag and a text.
pub fn run(data: &[u8]) -> bool {
    let Some((source, text)) = crate::source_and_text(data) else { return false };
    let grammar = match grammar(source, &Options { max_size: 20_000, ..Options::default() }) {
        Ok(grammar) => grammar,
        Err(refusal) => {
            assert!(!refusal.to_string().is_empty());
            return true;
        }
    };
    grammar.validate().unwrap();
    let limits = LanguageOptions { limits: crate::limits(), ..LanguageOptions::default() };
    let Ok(language) = Language::new(grammar, &limits) else { return true };
    let Ok(reading) = language.read(text) else { return true };
    assert!(!reading.is_sentence || reading.is_viable);
    match Tree::read(&language, text) {
        Ok(tree) => assert_eq!(tree.is_some(), reading.is_sentence),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Limit),
    }
    true
}

/// Tags with texts.
pub fn seeds() -> Vec<Vec<u8>> {
    let triggered = r#"{"format":{"type":"triggered_tags","triggers":["<a"],"tags":[{"begin":"<a>","content":
        {"type":"json_schema","json_schema":{"type":"integer"}},"end":["</a>","!"]}],"excludes":["x"]}}"#;
    let pairs = [
        (triggered, "so <a>12</a> and <a>3!"),
        (r#"{"format":{"type":"any_text","excludes":["aba","bb"],"max_chars":5}}"#, "\u{e9}ab"),
        (r#"{"format":{"type":"repeat","min":2,"max":9,"content":{"type":"regex","pattern":"a?b"}}}"#, "abb"),
        (r#"{"format":{"type":"grammar","grammar":"root ::= root root | [a-c]"}}"#, "abc"),
        (
            r#"{"format":{"type":"dispatch","loop":false,
                "rules":[["ab",{"type":"const_string","value":"c"}]]}}"#,
            "aabc",
        ),
        (
            r#"{"format":{"type":"token_triggered_tags","trigger_tokens":[3],"tags":[{"begin":{"token":3},
                "content":{"type":"any_tokens","max_tokens":2},"end":{"token":4}}]}}"#,
            "",
        ),
        (r#"{"triggers":["<f"],"structures":[{"begin":"<f>","schema":true,"end":"</f>"}]}"#, "<f>[]</f>"),
        (
            r#"{"format":{"type":"json_schema","style":"glm_xml","json_schema":{"type":"object","properties":
                {"k":{"type":["string","null"]}}}}}"#,
            "<arg_key>k</arg_key><arg_value>v</arg_value>",
        ),
    ];
    pairs.iter().map(|(tag, text)| [tag.as_bytes(), b"\0", text.as_bytes()].concat()).collect()
}
