//! Every schema has an example that `anygram check` can show.

use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::example::Examples;
use anygram_left_to_right::{Language, LanguageOptions};
use anygram_lexer::words::Words;

#[test]
fn hard_schemas_have_examples() {
    for schema in [
        r#"{"type":"integer","minimum":1000,"multipleOf":7}"#,
        r#"{"type":"array","items":{"type":"integer","minimum":1000,"multipleOf":7},"minItems":2}"#,
        r#"{"type":"array","items":{"type":"integer","minimum":1000,"multipleOf":7},
            "minItems":3,"uniqueItems":true}"#,
        r#"{"type":"array","items":{"type":"string"},"minItems":5,"uniqueItems":true}"#,
        r#"{"type":"object","minProperties":4}"#,
        r#"{"type":"number","minimum":1000.001,"maximum":1000.002}"#,
        r#"{"type":"number","minimum":123456789012,"multipleOf":1000003}"#,
        r#"{"type":"object","propertyNames":{"pattern":"^[a-z]{3}$"},"minProperties":3,
            "additionalProperties":{"type":"integer","minimum":1000,"multipleOf":7}}"#,
        r#"{"type":"array","items":{"type":"object","required":["id"],
            "properties":{"id":{"type":"string","format":"uuid"}}},"minItems":2,"uniqueItems":true}"#,
    ] {
        let grammar = grammar(schema, &Options::default()).unwrap();
        let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
        let words = Words::new(&language.lexing().lexicon);
        let example = Examples::new(&language, &words).unwrap().short();
        let text = example.unwrap_or_else(|| panic!("{schema}: no example"));
        let shown = String::from_utf8_lossy(&text);
        println!("{schema}: {shown}");
        assert!(language.read(&text).unwrap().is_sentence, "{schema}: {shown}");
    }
}
