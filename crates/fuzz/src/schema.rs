//! Arbitrary bytes as a JSON schema and, behind a NUL, a text.
//!
//! Nothing panics or hangs. If the schema is read, it has a text, and where the evaluator of `schema-oracle`,
//! which shares nothing with the grammar, knows whether the text is valid, it is a sentence iff it is.

use anygram::{Compiler, ErrorKind, GrammarFormat};
use anygram_json_schema::algebra::Limits;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Language, LanguageOptions};
use anygram_schema_oracle::json::{JsonErrorKind, Limits as JsonLimits};
use anygram_schema_oracle::{Formats, Options as Meaning, Registry, Value};

/// Reads a schema and a text.
pub fn run(data: &[u8]) -> bool {
    let Some((source, text)) = crate::source_and_text(data) else { return false };
    let limits = Limits { clauses: 200, all_clauses: 2_000, ..Limits::default() };
    let options = Options { limits, schema_states: 5_000, ..Options::default() };
    let grammar = match grammar(source, &options) {
        Ok(grammar) => grammar,
        Err(refusal) => {
            assert!(!refusal.to_string().is_empty());
            // The library says the same, in its own error.
            let compiler = Compiler::default().schema(options);
            let error = compiler.compile(GrammarFormat::JsonSchema, source).unwrap_err();
            assert!(error.kind() != ErrorKind::Syntax || !error.to_string().is_empty());
            return true;
        }
    };
    grammar.validate().unwrap();
    let limits = LanguageOptions { limits: crate::limits(), ..LanguageOptions::default() };
    let Ok(language) = Language::new(grammar, &limits) else { return true };
    let Ok(reading) = language.read(text) else { return true };
    assert!(!reading.is_sentence || reading.is_viable);
    if let Some(expected) = expected(source, text) {
        assert_eq!(reading.is_sentence, expected, "as the evaluator has it");
    }
    true
}

/// Whether a text is valid, if the evaluator can tell.
fn expected(source: &str, text: &[u8]) -> Option<bool> {
    let schema = Value::parse(source.as_bytes(), JsonLimits::default()).ok()?;
    let value = match Value::parse(text, JsonLimits::default()) {
        Ok(value) => value,
        // It may be a number that is written otherwise.
        Err(error) if matches!(error.kind, JsonErrorKind::Number | JsonErrorKind::TooDeep) => return None,
        Err(_) => return Some(false),
    };
    let mut registry = Registry::default();
    registry.add("test:schema", schema);
    let meaning = Meaning { formats: Formats::Assert };
    registry.schema("test:schema").ok()?.is_valid(&value, meaning).ok()
}

/// Schemas with texts.
pub fn seeds() -> Vec<Vec<u8>> {
    let pairs = [
        (r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}"#, r#"{"a":1,"b":[]}"#),
        (r#"{"items":{"enum":["x",1,null]},"uniqueItems":true}"#, r#"["x",1,"x"]"#),
        (r#"{"type":"array","uniqueItems":true}"#, r#"[{"a":1},{"a":1.0}]"#),
        (r#"{"oneOf":[{"minimum":3},{"multipleOf":2}],"type":"number"}"#, "4e0"),
        (r#"{"not":{"pattern":"^a+$"},"maxLength":3}"#, r#""ab\u0063""#),
        (
            r##"{"$defs":{"n":{"type":["null","array"],"items":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}"##,
            "[[null]]",
        ),
        (r#"{"if":{"required":["a"]},"then":{"maxProperties":1},"propertyNames":{"format":"date"}}"#, "{}"),
        (r#"{"patternProperties":{"^x":{"const":1}},"additionalProperties":false}"#, r#"{"x":1}"#),
        (
            r#"{"contains":{"type":"string"},"minContains":2,"prefixItems":[true,{"anyOf":[{},false]}]}"#,
            r#"["",""]"#,
        ),
        (r#"{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}}]}"#, r#"{"a":{}}"#),
        (
            r##"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer",
                "dependencies":{"a":["b"]}}"##,
            "1.0",
        ),
    ];
    pairs.iter().map(|(schema, text)| [schema.as_bytes(), b"\0", text.as_bytes()].concat()).collect()
}
