//! llguidance's list of grammars: the first one is used, and names the others as `@name`.
//!
//! The notation is that of llguidance 1.9.1: `{"grammars": [{"lark_grammar": "…"}, {"name": "…",
//! "json_schema": {…}}]}`. A first grammar that is a schema is the one that a Lark grammar `start: %json {…}`
//! would name.

use anygram_grammar::lark::NamedGrammar;
use anygram_json_schema::read::read;
use anygram_json_schema::refusal::{Kind, Refusal};
use anygram_json_schema::value::Value;

/// A list of grammars.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// The one that is used, in Lark's notation.
    pub first: String,
    /// Those with a name.
    pub named: Vec<(String, NamedGrammar)>,
}

type Result<T> = std::result::Result<T, Refusal>;

/// Reads a list of grammars; `None` if the text does not begin like one.
///
/// ```
/// let list = r#"{"grammars": [{"lark_grammar": "start: @n"}, {"name": "n", "json_schema": {}}]}"#;
/// let list = anygram_structural_tag::grammars(list)?.ok_or("it is a list")?;
/// assert_eq!((list.first.as_str(), list.named[0].0.as_str()), ("start: @n", "n"));
/// assert_eq!(anygram_structural_tag::grammars("start: \"a\"")?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// With the JSON pointer of what is wrong.
pub fn grammars(source: &str) -> Result<Option<List>> {
    if !source.trim_start().starts_with('{') {
        return Ok(None);
    }
    let value = read(source).map_err(|error| Refusal::new(Kind::Syntax, "", error.to_string()))?;
    let syntax = |at: &str, message: &str| Refusal::new(Kind::Syntax, at, message.to_owned());
    let Value::Object(members) = &value else { return Err(syntax("", "a list of grammars stands here")) };
    let mut list = None;
    for (key, value) in members.iter() {
        match (&**key, value) {
            ("grammars", Value::Array(items)) => list = Some(items),
            ("max_tokens", Value::Null) => {}
            ("max_tokens", _) => {
                let message = "a bound on the whole output belongs to the server: leave it out".to_owned();
                return Err(Refusal::new(Kind::Unsupported, "/max_tokens", message));
            }
            (key, _) => return Err(syntax(&format!("/{key}"), "only `grammars` stands here")),
        }
    }
    let mut read = Vec::new();
    for (at, item) in list.ok_or_else(|| syntax("", "`grammars` is missing"))?.iter().enumerate() {
        read.push(grammar(item, &format!("/grammars/{at}"))?);
    }
    let Some((_, first)) = read.first() else { return Err(syntax("/grammars", "the list is empty")) };
    let first = match first {
        NamedGrammar::Lark(text) => text.clone(),
        NamedGrammar::Schema(schema) => format!("start: %json {schema}"),
    };
    let named = read.into_iter().filter_map(|(name, grammar)| Some((name?, grammar))).collect();
    Ok(Some(List { first, named }))
}

fn grammar(value: &Value, at: &str) -> Result<(Option<String>, NamedGrammar)> {
    let syntax = |at: String, message: &str| Refusal::new(Kind::Syntax, &at, message.to_owned());
    let Value::Object(members) = value else {
        return Err(syntax(at.to_owned(), "an object with `lark_grammar` or `json_schema` stands here"));
    };
    let (mut name, mut grammars) = (None, Vec::new());
    for (key, value) in members.iter() {
        match (&**key, value) {
            ("name", Value::String(text)) => name = Some(text.to_string()),
            ("lark_grammar", Value::String(text)) => grammars.push(NamedGrammar::Lark(text.to_string())),
            ("json_schema", schema @ Value::Object(_)) => {
                grammars.push(NamedGrammar::Schema(schema.to_string()));
            }
            ("name" | "lark_grammar" | "json_schema", Value::Null) => {}
            (key, _) => return Err(syntax(format!("{at}/{key}"), "`name`, `lark_grammar` or `json_schema`")),
        }
    }
    match grammars.pop() {
        Some(grammar) if grammars.is_empty() => Ok((name, grammar)),
        _ => Err(syntax(at.to_owned(), "one of `lark_grammar` and `json_schema` stands here")),
    }
}
