//! What options do to the texts of a schema.

use anygram_json_schema::algebra::KeyOrder;
use anygram_json_schema::lower::Whitespace;
use anygram_json_schema::pieces::Escapes;
use anygram_json_schema::refusal::Kind;
use anygram_json_schema::{Options, lowered};
use serde::Serialize;

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

const PERSON: &str = r#"{"properties":{"name":{"type":"string"},"age":{"type":"integer"},"city":{}},
    "required":["age"],
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
fn texts_are_indented_as_python_writes_them() {
    let any = "{}";
    let two = Options { whitespace: Whitespace::Indent(2), ..Options::default() };
    let values = [
        r#"{"a":[1,{"b":[]},[[]]],"c":{},"d":{"e":null}}"#,
        r#"[[[{"x":[true,false]}]],"y"]"#,
        "[]",
        "{}",
        "17",
        r#"{"a":{"a":{"a":{"a":[{}]}}}}"#,
    ];
    for blanks in [0, 1, 2, 4] {
        let options = Options { whitespace: Whitespace::Indent(blanks), ..Options::default() };
        let dumped = values.map(|value| dumped(value, blanks as usize));
        check(any, &options, &dumped.each_ref().map(|text| &**text), &[]);
        for text in dumped.iter().filter(|text| text.contains('\n')) {
            // A blank less, a blank more, and no line end.
            let others = [text.replacen("\n", "\n ", 1), text.replacen('\n', "", 1), format!("{text}\n")];
            check(any, &options, &[], &others.each_ref().map(|text| &**text));
        }
    }
    let list = r#"{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2}"#;
    check(list, &two, &["[\n  1\n]", "[\n  1,\n  2\n]"], &["[]", "[\n]", "[1]", "[\n  1,\n  2,\n  3\n]"]);
    let none = r#"{"type":["array","object"],"maxItems":0,"maxProperties":0}"#;
    check(none, &two, &["[]", "{}"], &["[\n]", "{\n}", "{\n  \"a\": 1\n}"]);
}

/// A value as `json.dumps(indent=blanks)` writes it.
fn dumped(value: &str, blanks: usize) -> String {
    let value: serde_json::Value = serde_json::from_str(value).unwrap();
    let (mut text, blanks) = (Vec::new(), vec![b' '; blanks]);
    let formatter = serde_json::ser::PrettyFormatter::with_indent(&blanks);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter)).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn indentation_beyond_the_bound_is_an_error_and_not_an_answer() {
    let options = Options { whitespace: Whitespace::Indent(1), indent_depth: 3, ..Options::default() };
    let grammar = anygram_json_schema::grammar("{}", &options).unwrap();
    let language = anygram_left_to_right::Language::new(grammar, &Default::default()).unwrap();
    let nested = |depth: usize| {
        let empty = (0..depth).fold("[]".to_owned(), |inner, _| format!("[{inner}]"));
        language.read(dumped(&empty, 1).as_bytes())
    };
    assert!((0..=3).all(|depth| nested(depth).unwrap().is_sentence));
    let error = nested(4).unwrap_err();
    assert_eq!(error.limit(), Some(("indent_depth", 3)), "{error}");
    let raised = {
        let mut options = options;
        options.set_limit("indent_depth", 4).unwrap();
        anygram_json_schema::grammar("{}", &options).unwrap()
    };
    let language = anygram_left_to_right::Language::new(raised, &Default::default()).unwrap();
    let text = dumped("[[[[[]]]]]", 1);
    assert!(language.read(text.as_bytes()).unwrap().is_sentence);
}

#[test]
fn terminals_are_named_in_the_words_of_the_schema() {
    for (schema, name) in [
        (r#"{"type":"integer","minimum":0}"#, "an integer of at least 0"),
        (r#"{"type":"number","exclusiveMinimum":0.5,"maximum":2}"#, "a number above 0.5 and of at most 2"),
        (r#"{"type":"integer","multipleOf":5}"#, "an integer, a multiple of 5"),
        (r#"{"enum":[1,2.5]}"#, "one of the numbers 1, 2.5"),
        (r#"{"type":"number","not":{"const":3}}"#, "a number, as # says"),
        (r#"{"type":"string"}"#, "a string"),
        (r#"{"type":"string","minLength":2,"maxLength":5}"#, "a string of 2 to 5 characters"),
        (r#"{"type":"string","pattern":"^a","maxLength":5}"#, "a string of at most 5 characters, as # says"),
    ] {
        let grammar = lowered(schema, &Options::default()).unwrap();
        assert!(
            grammar.terminals.iter().any(|(known, ..)| known == name),
            "{schema}: {:?}",
            grammar.terminals
        );
    }
}

#[test]
fn examples_are_found_by_what_the_automata_know() {
    let wide: Vec<String> = (0..40).map(|n| format!("key{n}")).collect();
    let wide = serde_json::json!({"type": "object", "required": wide}).to_string();
    let mut missing = Vec::new();
    for schema in [
        r#"{"type":"string","minLength":300}"#,
        r#"{"type":"string","pattern":"^\\u00e9+$"}"#,
        r#"{"type":"string","format":"date-time"}"#,
        r#"{"type":"array","minItems":3,"items":{"type":"integer","minimum":7}}"#,
        &wide,
    ] {
        let grammar = anygram_json_schema::grammar(schema, &Options::default()).unwrap();
        let language = anygram_left_to_right::Language::new(grammar, &Default::default()).unwrap();
        let words = anygram_lexer::words::Words::new(&language.lexing().lexicon);
        let mut examples = anygram_left_to_right::example::Examples::new(&language, &words).unwrap();
        let example = examples.short();
        let is_sentence = |text: Vec<u8>| language.read(&text).unwrap().is_sentence;
        if !example.is_some_and(is_sentence) {
            missing.push(schema);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn options_have_names() {
    let mut options = Options::default();
    let fine = [
        ("key_order", r#""schema""#),
        ("key_order", r#"["b","a"]"#),
        ("whitespace", r#"{"at_most":3}"#),
        ("whitespace", r#"{"indent":4}"#),
        ("formats", r#""annotate""#),
        ("escapes", r#""needed""#),
        ("extra_keys", r#""none""#),
    ];
    for (name, value) in fine {
        options.set(name, value).unwrap();
    }
    assert_eq!(options.key_order, KeyOrder::First(vec!["b".into(), "a".into()]));
    assert_eq!(options.whitespace, Whitespace::Indent(4));
    assert!(!options.asserts_formats && options.escapes == Escapes::Needed && options.declared_only);
    let wrong = [
        ("key_ordr", r#""any""#, "there are key_order, whitespace, formats, escapes, extra_keys"),
        ("key_order", r#""shema""#, r#"key_order is "any", "schema" or a list of keys, not "shema""#),
        ("key_order", "[1]", "a list of keys, not [1]"),
        ("whitespace", r#"{"indent":17}"#, r#"{"indent":n} up to 16, not {"indent":17}"#),
        ("whitespace", r#"{"indent":-1}"#, "not {"),
        ("whitespace", r#"{"at_most":1,"indent":1}"#, "not {"),
        ("formats", "true", r#""assert" or "annotate", not true"#),
        ("escapes", "needed", "no JSON"),
    ];
    for (name, value, words) in wrong {
        let error = options.set(name, value).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(Options::LIMITS.iter().all(|name| options.set_limit(name, 7).is_some()));
    assert!(options.set_limit("steps", 7).is_none() && options.indent_depth == 7);
}

#[test]
fn escapes_can_be_limited_to_what_needs_them() {
    let needed = Options { escapes: Escapes::Needed, ..Options::default() };
    let same = [r#""A""#, r#""\u0041""#, r#""\u00e9""#, r#""\ud83d\ude00""#];
    check(r#"{"type":"string"}"#, &Options::default(), &same, &[r#""\ud83d""#]);
    check(r#"{"type":"string"}"#, &needed, &[same[0], r#""\n\u0001\"""#], &same[1..]);
    // Where no escape is needed, none begins.
    for (string, viable) in [("abc", 1), ("a/c", 1), ("\"c", 2), ("/c", 2), ("\n", 2), ("\u{1}", 2)] {
        let schema = serde_json::json!({"const": string}).to_string();
        let grammar = lowered(&schema, &needed).unwrap();
        let read = Simulation::new(&grammar).read(b"\"\\").unwrap();
        assert_eq!(read.viable, viable, "{string:?}");
    }
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
        // Of types that the schema excludes too.
        (r#"{"type":"object","minLength":"x"}"#, Kind::Syntax, "/minLength", Some("minLength")),
        (r#"{"const":1,"required":[1]}"#, Kind::Syntax, "/required", Some("required")),
        (r#"{"enum":[[]],"pattern":"("}"#, Kind::Syntax, "/pattern", Some("pattern")),
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

#[test]
fn contradictions_are_named() {
    for (schema, message) in [
        (
            r#"{"allOf":[{"type":"string"},{"minLength":1},{"type":"null"}]}"#,
            "/allOf/0/type and /allOf/2/type contradict",
        ),
        (
            r#"{"title":"x","type":"integer","minimum":3,"maximum":2}"#,
            "/type, /minimum and /maximum contradict",
        ),
        (
            r#"{"type":"object","properties":{"a":false,"b":{}},"required":["b","a"]}"#,
            "/type, /properties/a and /required/1 contradict",
        ),
        (r#"{"not":{}}"#, "because of /not"),
        (
            r##"{"$defs":{"n":{"type":"null","const":1},"m":{}},"type":"array","minItems":1,
                "items":{"$ref":"#/$defs/n"}}"##,
            "/$defs/n/const",
        ),
        (
            r#"{"type":"array","uniqueItems":true,"minItems":3,"items":{"type":"boolean"}}"#,
            "/uniqueItems, /minItems",
        ),
    ] {
        let refusal = lowered(schema, &Options::default()).unwrap_err();
        assert_eq!(refusal.kind, Kind::Unsatisfiable);
        assert!(refusal.message.contains(message), "{schema}: {refusal}");
    }
}
