//! What options do to the texts of a schema.

use anygram_json_schema::algebra::KeyOrder;
use anygram_json_schema::lower::Whitespace;
use anygram_json_schema::pieces::Escapes;
use anygram_json_schema::refusal::Kind;
use anygram_json_schema::{Options, lowered};

use crate::simulate::Simulation;

/// Checks which texts are valid.
fn check(schema: &str, options: &Options, valid: &[&str], invalid: &[&str]) {
    let grammar = lowered(schema, options).unwrap();
    let simulation = Simulation::new(&grammar);
    for (texts, expected) in [(valid, true), (invalid, false)] {
        for text in texts {
            assert_eq!(simulation.read(text.as_bytes()).unwrap().is_valid, expected, "{schema}: {text}");
        }
    }
}

const PERSON: &str = r#"{"properties":{"name":{"type":"string"},"age":{"type":"integer"},"city":{}},"required":["age"],
    "type":"object"}"#;

#[test]
fn keys_come_in_the_order_that_is_asked_for() {
    let any = Options::default();
    check(PERSON, &any, &[r#"{"age":1}"#, r#"{"x":0,"age":1,"name":"n"}"#], &[r#"{"name":"n"}"#]);
    let schema = Options { key_order: KeyOrder::Schema, ..Options::default() };
    let valid = [r#"{"age":1}"#, r#"{"name":"n","age":1,"city":2,"x":3,"y":4}"#, r#"{"age":1,"x":3}"#];
    let invalid = [r#"{"age":1,"name":"n"}"#, r#"{"x":3,"age":1}"#, r#"{"city":2,"age":1}"#];
    check(PERSON, &schema, &valid, &invalid);
    let first =
        Options { key_order: KeyOrder::First(vec!["city".into(), "age".into()]), ..Options::default() };
    let valid = [r#"{"city":1,"age":2,"y":0,"name":"n"}"#, r#"{"age":2,"name":"n","x":0}"#];
    check(PERSON, &first, &valid, &[r#"{"age":2,"city":1}"#, r#"{"name":"n","age":2}"#]);
}

#[test]
fn undeclared_keys_can_be_left_out() {
    let options = Options { declared_only: true, ..Options::default() };
    check(PERSON, &options, &[r#"{"age":1,"city":2}"#], &[r#"{"age":1,"x":2}"#]);
    check(r#"{"type":"object"}"#, &options, &[r#"{"x":1}"#], &[]);
    let three = r#"{"properties":{"a":{},"b":{}},"minProperties":3}"#;
    check(three, &options, &[r#"{"a":1,"b":1,"c":1}"#], &[r#"{"a":1,"b":1}"#]);
}

#[test]
fn blanks_stand_where_they_may() {
    let schema = r#"{"type":"array","items":{"type":"object","additionalProperties":{"type":"null"}}}"#;
    let text = " [ {\"a\" :\tnull , \"b\":null\n} , { } ] ";
    check(schema, &Options::default(), &[text, "[{}]", "[ ]"], &[]);
    let compact = Options { whitespace: Whitespace::Compact, ..Options::default() };
    check(schema, &compact, &[r#"[{"a":null,"b":null},{}]"#], &[r#"[{"a": null}]"#, " []", "[ ]"]);
    let spaced = Options { whitespace: Whitespace::Spaced, ..Options::default() };
    check(schema, &spaced, &[r#"[{"a": null, "b": null}, {}]"#], &[r#"[{"a":null}]"#, "[{},{}]", "[ {}]"]);
    let two = Options { whitespace: Whitespace::AtMost(2), ..Options::default() };
    check(schema, &two, &["[  {} ,  { } ]"], &["[   {}]", "[{},   {}]"]);
}

#[test]
fn escapes_can_be_limited_to_what_needs_them() {
    let needed = Options { escapes: Escapes::Needed, ..Options::default() };
    let same = [r#""A""#, r#""\u0041""#, r#""\u00e9""#, r#""\ud83d\ude00""#];
    check(r#"{"type":"string"}"#, &Options::default(), &same, &[r#""\ud83d""#]);
    check(r#"{"type":"string"}"#, &needed, &[same[0], r#""\n\u0001\"""#], &same[1..]);
}

#[test]
fn what_contradicts_itself_is_unsatisfiable() {
    for schema in [
        "false",
        r#"{"type":"string","minLength":3,"maxLength":2}"#,
        r#"{"type":"object","required":["a"],"properties":{"a":false}}"#,
        r#"{"type":"integer","minimum":1.2,"maximum":1.8}"#,
        r##"{"type":"array","minItems":1,"items":{"$ref":"#"}}"##,
        r#"{"type":"string","pattern":"^a","enum":["b"]}"#,
        r#"{"type":"string","allOf":[{"pattern":"^a+$"},{"pattern":"^b+$"}]}"#,
    ] {
        assert_eq!(lowered(schema, &Options::default()).unwrap_err().kind, Kind::Unsatisfiable, "{schema}");
    }
}

#[test]
fn refusals_say_where_and_why() {
    for (schema, kind, at, keyword) in [
        (
            r#"{"properties":{"a":{"pattern":"(a)\\1"}}}"#,
            Kind::Unsupported,
            "/properties/a/pattern",
            Some("pattern"),
        ),
        (
            r#"{"items":{"minLength":-1,"type":"string"}}"#,
            Kind::Syntax,
            "/items/minLength",
            Some("minLength"),
        ),
        (r#"{"$ref":"http://example.com/x"}"#, Kind::Unsupported, "", Some("$ref")),
        (r##"{"$ref":"#/nothing"}"##, Kind::Syntax, "", Some("$ref")),
        (r##"{"$ref":"#"}"##, Kind::Unsupported, "", Some("$ref")),
        ("{", Kind::Syntax, "", None),
    ] {
        let refusal = lowered(schema, &Options::default()).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.at.as_str(), refusal.keyword),
            (kind, at, keyword),
            "{schema}: {refusal}"
        );
    }
}
