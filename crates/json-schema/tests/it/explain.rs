//! What is said of schemas: what their parts cost, and which change nothing.

use anygram_json_schema::Options;
use anygram_json_schema::explain::{MOST_STATES, costs, excludes, idle};

fn idle_parts(schema: &str) -> Vec<String> {
    let found = idle(schema, &Options::default()).unwrap();
    assert_eq!(found.n_unknown, 0, "{schema}");
    found.pointers
}

#[test]
fn parts_that_change_nothing() {
    let cases: [(&str, &[&str]); 13] = [
        (r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#, &[]),
        (r#"{"type":"string","anyOf":[{"type":"string"},{"type":"integer"}]}"#, &["/anyOf/1"]),
        (r#"{"anyOf":[{"type":"number"},{"type":"integer"}]}"#, &["/anyOf/1"]),
        (r#"{"oneOf":[{"type":"string"},{"type":"integer","minimum":2,"maximum":1}]}"#, &["/oneOf/1"]),
        (r#"{"type":"integer","enum":[1,"a",2]}"#, &["/enum/1"]),
        (r#"{"enum":[1,2,1.0]}"#, &["/enum/0", "/enum/2"]),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},
                "b":{"type":"string","minLength":2,"maxLength":1}}}"#,
            &["/properties/b"],
        ),
        (
            r#"{"properties":{"a":{"properties":{"b":{"enum":["x"]}},"type":"array"}}}"#,
            &["/properties/a/properties/b", "/properties/a/properties/b/enum/0"],
        ),
        // Within `not` as well: without the branch more would be valid, or the same.
        (r#"{"not":{"anyOf":[{"type":"string"},{"type":"null"}]}}"#, &[]),
        (r#"{"type":"integer","not":{"anyOf":[{"type":"string"},{"minimum":3}]}}"#, &["/not/anyOf/0"]),
        (r##"{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#"}}]}"##, &[]),
        (
            r##"{"anyOf":[{"type":"null"},
                {"type":"array","items":{"$ref":"#"},"minItems":2,"maxItems":1}]}"##,
            &["/anyOf/1"],
        ),
        (
            r#"{"$id":"http://example.com/a","anyOf":[{"const":1},{"const":"b"},{"const":1.0}]}"#,
            &["/anyOf/0", "/anyOf/2"],
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(idle_parts(schema), expected, "{schema}");
    }
}

#[test]
fn what_takes_too_long_is_not_known() {
    let values: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let schema = format!(r#"{{"enum":[{}]}}"#, values.join(","));
    let found = idle(&schema, &Options::default()).unwrap();
    assert!(found.pointers.is_empty() && found.n_unknown >= 100, "{found:?}");
}

#[test]
fn costs_are_those_of_places() {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string","maxLength":5000},
        "tags":{"type":"array","items":{"enum":["a","b"]}}},"additionalProperties":false}"#;
    let costs = costs(schema, &Options::default()).unwrap();
    assert_eq!(costs[0].pointer, "/properties/name", "{costs:?}");
    assert!(costs[0].is_cut && costs[0].pieces == MOST_STATES);
    let at = |pointer: &str| costs.iter().find(|cost| cost.pointer == pointer).unwrap();
    assert!(at("").structures > 4 && at("").pieces > 8 && !at("").is_cut);
    assert!(at("/properties/tags").structures > 2);
    assert!(at("/properties/tags/items").pieces > 4);
}

#[test]
fn schemas_that_exclude_each_other() {
    let options = Options::default();
    let says = |one, other| excludes(one, other, &options);
    assert_eq!(says(r#"{"type":"string"}"#, r#"{"minimum":1}"#), Some(false));
    assert_eq!(says(r#"{"type":"string"}"#, r#"{"type":"null"}"#), Some(true));
    let needs = r#"{"required":["a"],"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#;
    assert_eq!(says(needs, r#"{"not":{"required":["a"]}}"#), Some(true));
    assert_eq!(says("{", "{}"), None);
}
