//! The gallery of the playground: small grammars of our own, each with a text or a canvas to begin with.

use serde_json::{Value, json};

/// All of them, as the page opens them. What stands first is shown to who comes first.
pub fn all() -> Value {
    json!([
        {
            "id": "arithmetic",
            "name": "Arithmetic",
            "about": "sums and products, with a text that can go on",
            "format": "lark",
            "grammar": include_str!("examples/arithmetic.lark"),
            "text": "(2 + x) * ",
            "canvas": "(▢ + x) * …",
        },
        {
            "id": "schema",
            "name": "JSON schema",
            "about": "a person, whose text lacks a key",
            "format": "json-schema",
            "grammar": include_str!("examples/person.schema.json"),
            "options": "{\"whitespace\": \"spaced\", \"escapes\": \"needed\"}",
            "text": "{\"name\": \"Ada\", \"roles\": [\"ad",
            "canvas": "{\"name\": \"▢\", \"born\": ▢▢▢, \"roles\": […]}",
        },
        {
            "id": "tag",
            "name": "Tool calls in free text",
            "about": "a structural tag: free text until <call>, then JSON by a schema",
            "format": "structural-tag",
            "grammar": include_str!("examples/calls.tag.json"),
            "text": "Let me look that up. <call>{\"name\": \"weather\", \"arguments\": {\"ci",
            "canvas": "<call>{\"name\": \"weather\", \"arguments\": {\"city\": \"▢\"…}}</call>",
        },
        {
            "id": "statement",
            "name": "C-like statements",
            "about": "one hole is too little for the head of a loop, and a gap is not",
            "format": "lark",
            "grammar": include_str!("examples/statement.lark"),
            "text": "for (i = 0; i < n; i = i + 1) { s = s + a[i",
            "canvas": "for (…) { s = ▢; }",
        },
        {
            "id": "sql",
            "name": "SQL",
            "about": "the grammar of `anygram demo`, with a text that goes wrong",
            "format": "lark",
            "grammar": include_str!("../../../demo/sql.lark"),
            "text": "SELECT name FROM\nsinger WHERE = 3",
            "canvas": "SELECT ▢▢▢ FROM singer WHERE ▢▢ = 3…",
        },
        {
            "id": "canvas",
            "name": "A canvas of brackets",
            "about": "what each hole can hold depends on all others",
            "format": "lark",
            "grammar": include_str!("examples/brackets.lark"),
            "text": "([",
            "canvas": "▢[▢▢▢)▢",
            "tab": "canvas",
        },
        {
            "id": "doubtful",
            "name": "A grammar with doubtful places",
            "about": "warnings and hints: a rule that is never used, two readings of one text",
            "format": "lark",
            "grammar": include_str!("examples/doubtful.lark"),
            "text": "if x then if y then z else ",
            "canvas": "if ▢ then ▢",
        },
    ])
}
