//! What differs between the drafts, and what the suites do not ask.

use anygram_schema_oracle::evaluate::MAX_DEPTH;
use anygram_schema_oracle::{Dialect, Draft, Formats, Options, Registry, Undecided, Value};

use crate::data;

fn answer(dialect: Dialect, documents: &[(&str, &str)], value: &str) -> Result<bool, Undecided> {
    let mut registry = Registry::new(dialect);
    for (uri, document) in documents {
        registry.add(uri, document.parse().unwrap_or_else(|error| panic!("{error}: {document}")));
    }
    let schema = registry.schema(documents[0].0)?;
    schema.is_valid(&value.parse::<Value>().unwrap(), Options { formats: Formats::Assert })
}

fn dialects(names: &str) -> Vec<Dialect> {
    let dialect = |name| match name {
        "4" => Draft::Draft4.into(),
        "6" => Draft::Draft6.into(),
        "7" => Draft::Draft7.into(),
        "2019" => Draft::Draft201909.into(),
        "2020" => Draft::Draft202012.into(),
        "-" => Dialect::unstated(),
        _ => panic!("{name}"),
    };
    names.split(' ').map(dialect).collect()
}

/// `tests/dialects.jsonl`: which dialects (`-` is the unstated one), schema, value, and whether it is valid.
#[test]
fn cases() {
    for line in include_str!("../dialects.jsonl").lines() {
        let case: Value = line.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
        for dialect in dialects(data::text(&case, "dialects")) {
            let mut registry = Registry::new(dialect);
            registry.add("test:schema", case.get("schema").unwrap().clone());
            let schema = registry.schema("test:schema").unwrap();
            let answer = schema.is_valid(case.get("value").unwrap(), Options { formats: Formats::Assert });
            assert_eq!(answer, Ok(data::is_true(&case, "valid")), "{line} {dialect:?}");
        }
    }
}

#[test]
fn identifiers_by_draft() {
    let nested = |id: &str| {
        format!(
            r#"{{"properties": {{"a": {{"$ref": "http://x/y#/definitions/b"}}}},
                "definitions": {{"c":
                    {{"{id}": "http://x/y", "definitions": {{"b": {{"type": "null"}}}}}}}}}}"#
        )
    };
    let anchor = |key: &str, value: &str| {
        format!(
            r##"{{"properties": {{"a": {{"$ref": "#b"}}}}, 
                "definitions": {{"c": {{"{key}": "{value}", "type": "null"}}}}}}"##
        )
    };
    for (names, schema, resolves) in [
        ("4 -", nested("id"), true),
        ("6 7 2019 2020", nested("id"), false),
        ("6 7 2019 2020 -", nested("$id"), true),
        ("4", nested("$id"), false),
        ("4", anchor("id", "#b"), true),
        ("6 7", anchor("$id", "#b"), true),
        ("2019 2020 -", anchor("$id", "#b"), false),
        ("2019 2020 -", anchor("$anchor", "b"), true),
        ("4 6 7", anchor("$anchor", "b"), false),
        ("2020 -", anchor("$dynamicAnchor", "b"), true),
    ] {
        for dialect in dialects(names) {
            let answers =
                [r#"{"a": null}"#, r#"{"a": 1}"#].map(|value| answer(dialect, &[("test:s", &schema)], value));
            let as_expected = if resolves {
                answers == [Ok(true), Ok(false)]
            } else {
                answers.iter().all(|answer| matches!(answer, Err(Undecided::Unresolvable(_))))
            };
            assert!(as_expected, "{dialect:?} {schema} {answers:?}");
        }
    }
}

#[test]
fn dynamic_references() {
    let list = r##"{"$id": "http://x/list", "$recursiveAnchor": true, "items": {"$recursiveRef": "#"}}"##;
    let numbers = r#"{"$id": "http://x/numbers", "$recursiveAnchor": true,
        "type": ["array", "number"], "$ref": "list"}"#;
    let fixed = r#"{"$id": "http://x/numbers", "type": ["array", "number"], "$ref": "list"}"#;
    let ask = |schema, value| {
        let documents = [("http://x/numbers", schema), ("http://x/list", list)];
        dialects("2019 -")
            .into_iter()
            .map(|dialect| answer(dialect, &documents, value).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(ask(numbers, "[1, [2]]"), [true, true]);
    assert_eq!(ask(numbers, r#"[1, ["a"]]"#), [false, false]);
    assert_eq!(ask(fixed, r#"[1, ["a"]]"#), [true, true]);
}

#[test]
fn what_has_no_answer() {
    let cases = [
        (r##"{"$ref": "#"}"##, "1", Undecided::InfiniteReference),
        (
            r##"{"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}"##,
            "1",
            Undecided::InfiniteReference,
        ),
        (r##"{"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}"##, "1", Undecided::InfiniteReference),
        (r#"{"type": "any"}"#, "1", Undecided::Malformed("type".to_owned())),
        (r#"{"required": true}"#, "{}", Undecided::Malformed("required".to_owned())),
        (r#"{"multipleOf": 0}"#, "1", Undecided::Malformed("multipleOf".to_owned())),
        (r#"{"not": []}"#, "1", Undecided::Malformed("schema".to_owned())),
        (r#"{"pattern": "("}"#, r#""""#, Undecided::Pattern("(".to_owned())),
    ];
    for (schema, value, expected) in cases {
        let answer = answer(Dialect::unstated(), &[("test:schema", schema)], value);
        assert_eq!(answer, Err(expected), "{schema}");
    }
    let unresolvable = answer(Dialect::unstated(), &[("test:schema", r##"{"$ref": "#/a"}"##)], "1");
    assert!(matches!(unresolvable, Err(Undecided::Unresolvable(_))));
}

#[test]
fn deep_schemas_are_an_error_and_no_overflow() {
    let nested = |depth: usize| [r#"{"not": "#.repeat(depth).as_str(), "{}", &"}".repeat(depth)].concat();
    let ask = |schema: &str, value: &str| answer(Dialect::unstated(), &[("test:schema", schema)], value);
    assert_eq!(ask(&nested(500), "1"), Ok(true));
    let list = r##"{"items": {"allOf": [{"allOf": [{"$ref": "#"}]}]}}"##;
    let value = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    assert_eq!(ask(list, &value(MAX_DEPTH / 4)), Ok(true));
    assert_eq!(ask(list, &value(MAX_DEPTH / 4 + 2)), Err(Undecided::TooDeep));
}

#[test]
fn exponential_work_is_an_error() {
    let link = |at: usize| {
        format!(r##""{at}": {{"allOf": [{{"$ref": "#/$defs/{0}"}}, {{"$ref": "#/$defs/{0}"}}]}}"##, at + 1)
    };
    let links: Vec<String> = (0..40).map(link).collect();
    let schema = format!(r##"{{"$ref": "#/$defs/0", "$defs": {{{}, "40": {{}}}}}}"##, links.join(","));
    let answer = answer(Dialect::unstated(), &[("test:schema", &schema)], "1");
    assert_eq!(answer, Err(Undecided::TooMuchWork));
}

#[test]
fn a_metaschema_can_leave_vocabularies_out() {
    let metaschema = r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://x/meta",
        "$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/core": true,
            "https://json-schema.org/draft/2020-12/vocab/applicator": true,
            "https://json-schema.org/draft/2020-12/vocab/format-assertion": true}}"#;
    for (schema, value, expected) in [
        (r#"{"$schema": "http://x/meta", "minimum": 5}"#, "1", true),
        (r#"{"$schema": "http://x/meta", "allOf": [false]}"#, "1", false),
        (r#"{"$schema": "http://x/meta", "unevaluatedProperties": false}"#, r#"{"a": 1}"#, true),
        (r#"{"$schema": "http://x/meta", "format": "date"}"#, r#""a""#, false),
    ] {
        let mut registry = Registry::default();
        registry.add("test:schema", schema.parse().unwrap());
        registry.add("http://x/meta", metaschema.parse().unwrap());
        let valid = registry
            .schema("test:schema")
            .unwrap()
            .is_valid(&value.parse().unwrap(), Options { formats: Formats::Annotate });
        assert_eq!(valid, Ok(expected), "{schema}");
    }
}
