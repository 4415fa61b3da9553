//! Structural tags as a grammar: free text, and structure only where it is wanted.
//!
//! The notation is the JSON of XGrammar's structural tags, version 0.2.8, and the older list of structures
//! and triggers. `docs/meaning.md` defines which texts belong to a tag; `docs/structural-tags.md` says of
//! each format what is exact and what is refused.
//!
//! | module | what |
//! |---|---|
//! | [`format`](mod@format) | the tree of a tag, and how its JSON is read |
//! | [`style`] | JSON schemas whose members are not written as JSON |
//! | [`keys`] | that the keys of such members differ, where they may be anything |
//! | [`lower`](mod@lower) | the tree as a grammar |
//! | [`grammars`](mod@grammars) | llguidance's list of grammars |
//! | [`tools`] | tools and the choice among them as a tag, in the call formats of model families |
//!
//! What cannot be had exactly is refused by its JSON pointer, never weakened.

pub mod format;
pub mod grammars;
pub mod keys;
pub mod lower;
pub mod style;
pub mod tools;

use anygram_grammar::ir::Grammar;
pub use anygram_json_schema::refusal::{Kind, Refusal};
pub use grammars::grammars;

/// How a structural tag is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// How schemas are read, and what their texts look like. A tag's own fields come first: the order of keys
    /// is always that of the tag.
    pub schema: anygram_json_schema::Options,
    /// How many symbols, rules and bytes of texts the grammar may have.
    pub max_size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { schema: anygram_json_schema::Options::default(), max_size: 2_000_000 }
    }
}

/// The grammar of the texts that belong to a structural tag. Lexing is `scannerless`.
///
/// ```
/// use anygram_structural_tag::{Options, grammar};
///
/// let tag = r#"{"format":{"type":"tag","begin":"<t>","content":{"type":"any_text"},"end":"</t>"}}"#;
/// assert!(grammar(tag, &Options::default()).is_ok());
/// let tag = r#"{"format":{"type":"any_text","max_words":9}}"#;
/// let refusal = grammar(tag, &Options::default()).unwrap_err();
/// assert_eq!(refusal.at, "/format/max_words");
/// ```
///
/// # Errors
/// With the JSON pointer of what is wrong, cannot be had, or goes beyond a limit.
pub fn grammar(source: &str, options: &Options) -> Result<Grammar, Refusal> {
    lower::lower(&format::parse(source)?, options)
}
