//! Options by name, for command lines and protocols: each value is a JSON text.
//!
//! | name | values, the default first |
//! |---|---|
//! | `key_order` | `"any"`; `"schema"`; a list of keys that come first |
//! | `whitespace` | `"any"`; `{"at_most":n}`; `"compact"`; `"spaced"`; `{"indent":n}` |
//! | `formats` | `"assert"`; `"annotate"` |
//! | `escapes` | `"any"`; `"needed"` |
//! | `extra_keys` | `"schema"`; `"none"` |

use anygram_bits::ErrorKind;

use crate::Options;
use crate::algebra::KeyOrder;
use crate::lower::{MAX_INDENT, Whitespace};
use crate::pieces::Escapes;
use crate::read::read;
use crate::value::Value;

/// An option that there is not, or a value that it does not take; the message lists those that there are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct OptionError {
    message: String,
}

impl OptionError {
    /// [`ErrorKind::InvalidArgument`].
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgument
    }
}

impl Options {
    /// The names that [`Options::set`] takes.
    pub const NAMES: [&str; 5] = ["key_order", "whitespace", "formats", "escapes", "extra_keys"];

    /// Sets an option by its name to the value that a JSON text spells.
    ///
    /// # Errors
    /// For other names and values; the message lists the valid ones. The options are then as they were.
    ///
    /// ```
    /// use anygram_json_schema::Options;
    ///
    /// let mut options = Options::default();
    /// options.set("whitespace", r#"{"at_most":2}"#)?;
    /// options.set("key_order", r#"["id","name"]"#)?;
    /// let error = options.set("formats", r#""check""#).unwrap_err();
    /// assert_eq!(error.to_string(), r#"formats is "assert" or "annotate", not "check""#);
    /// # Ok::<(), anygram_json_schema::options::OptionError>(())
    /// ```
    pub fn set(&mut self, name: &str, json: &str) -> Result<(), OptionError> {
        let value = read(json)
            .map_err(|error| OptionError { message: format!("the value of {name} is no JSON: {error}") })?;
        let word = value.text().map(|word| &**word);
        let known = match name {
            "key_order" => key_order(&value).map(|order| self.key_order = order),
            "whitespace" => whitespace(&value).map(|whitespace| self.whitespace = whitespace),
            "formats" => either(word, ["assert", "annotate"]).map(|first| self.asserts_formats = first),
            "escapes" => either(word, ["any", "needed"])
                .map(|first| self.escapes = if first { Escapes::Any } else { Escapes::Needed }),
            "extra_keys" => either(word, ["schema", "none"]).map(|first| self.declared_only = !first),
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(OptionError {
                    message: format!("schemas have no option `{name}`; there are {known}"),
                });
            }
        };
        known.ok_or_else(|| OptionError { message: format!("{name} is {}, not {value}", values(name)) })
    }

    /// The names by which errors speak of the limits and [`Options::set_limit`] takes them.
    pub const LIMITS: [&str; 5] = ["clauses", "all_clauses", "schema_steps", "schema_states", "indent_depth"];

    /// Sets the limit of this name; `None` if there is none.
    pub fn set_limit(&mut self, name: &str, value: u64) -> Option<()> {
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        match name {
            "clauses" => self.limits.clauses = size,
            "all_clauses" => self.limits.all_clauses = size,
            "schema_steps" => self.limits.steps = value,
            "schema_states" => self.schema_states = size,
            "indent_depth" => self.indent_depth = u32::try_from(value).unwrap_or(u32::MAX),
            _ => return None,
        }
        Some(())
    }
}

/// The values of an option, for messages.
fn values(name: &str) -> String {
    match name {
        "key_order" => r#""any", "schema" or a list of keys"#.to_owned(),
        "whitespace" => {
            let any = format!(r#""any", {{"at_most":n}} up to {MAX_AT_MOST}, "compact", "spaced""#);
            format!(r#"{any} or {{"indent":n}} up to {MAX_INDENT}"#)
        }
        "formats" => r#""assert" or "annotate""#.to_owned(),
        "escapes" => r#""any" or "needed""#.to_owned(),
        _ => r#""schema" or "none""#.to_owned(),
    }
}

/// Whether a word is the first of two, if it is one of them.
fn either(word: Option<&str>, [first, second]: [&str; 2]) -> Option<bool> {
    word.filter(|word| [first, second].contains(word)).map(|word| word == first)
}

fn key_order(value: &Value) -> Option<KeyOrder> {
    match value.text().map(|word| &**word) {
        Some("any") => Some(KeyOrder::Any),
        Some("schema") => Some(KeyOrder::Schema),
        Some(_) => None,
        None => {
            let keys = value.items()?.iter().map(|key| key.text().map(|key| key.to_string()));
            keys.collect::<Option<_>>().map(KeyOrder::First)
        }
    }
}

fn whitespace(value: &Value) -> Option<Whitespace> {
    match value.text().map(|word| &**word) {
        Some("any") => return Some(Whitespace::Any),
        Some("compact") => return Some(Whitespace::Compact),
        Some("spaced") => return Some(Whitespace::Spaced),
        _ => {}
    }
    let [(name, n)] = value.members()? else { return None };
    let n = u32::try_from(n.count()?).ok()?;
    match &**name {
        "at_most" if n <= MAX_AT_MOST => Some(Whitespace::AtMost(n)),
        "indent" if n <= MAX_INDENT => Some(Whitespace::Indent(n)),
        _ => None,
    }
}

/// Blanks at one place that can be counted.
const MAX_AT_MOST: u32 = 1_000;
