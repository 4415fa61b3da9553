//! Schemas in the strings and names of which some texts may not stand.
//!
//! That is a schema, too: one that refers to itself for all that is within a value. A value has to be valid
//! by both, and what follows from that (a name that is required and excluded) follows as in every schema.

use anygram_json_schema::Options;

/// Where the schema itself is referred to.
const SCHEMA: &str = "anygram:schema";

/// Where the one about strings is.
const STRINGS: &str = "anygram:excludes";

/// The schema of the values of `schema` in which none of these texts stands.
pub fn without(schema: &str, excludes: &[String], options: &mut Options) -> String {
    let any: Vec<String> = excludes.iter().map(|text| literal(text)).collect();
    let pattern = json(&any.join("|"));
    let strings = format!(
        r##"{{"$schema":"https://json-schema.org/draft/2020-12/schema",
        "not":{{"type":"string","pattern":{pattern}}},"propertyNames":{{"not":{{"pattern":{pattern}}}}},
        "additionalProperties":{{"$ref":"#"}},"items":{{"$ref":"#"}}}}"##
    );
    options.documents.push((SCHEMA.to_owned(), schema.to_owned()));
    options.documents.push((STRINGS.to_owned(), strings));
    format!(r#"{{"allOf":[{{"$ref":"{SCHEMA}"}},{{"$ref":"{STRINGS}"}}]}}"#)
}

/// An expression that finds a text.
fn literal(text: &str) -> String {
    let mut expression = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\^$.*+?()[]{}|/".contains(c) {
            expression.push('\\');
        }
        expression.push(c);
    }
    expression
}

fn json(text: &str) -> String {
    anygram_json_schema::value::Value::String(text.into()).to_string()
}
