//! Lark grammars (`.lark`).
//!
//! | module | what |
//! |---|---|
//! | `lexer` | text to tokens |
//! | `ast` | the tree of a file, in one arena |
//! | `parser` | tokens to tree |
//! | `text` | string literals |
//! | [`regex`] | Python's regular expressions, translated for `regex-syntax` |
//! | `pattern` | terminal expressions to patterns |
//! | `common` | the built-in library |
//! | `lower` | tree to [`Grammar`] |
//!
//! All of Lark's notation is read except templates, `%declare`, `%override`, `%extend`, imports from other files, and what a
//! terminal's regular expression may not contain ([`regex`]); each of these is an error that says what to do. Beyond Lark there are
//! `&` and prefix `~` in terminals (intersection, complement: `~` binds tightest, then repetition, sequence, `&`, `|`),
//! `<|name|>` and `<[id]>` in rules (tokens of the vocabulary), and `""` for the empty string.
//!
//! What shapes trees in Lark (`?`, `!`, a leading `_`, aliases, priorities of rules) is read and means nothing: a grammar
//! is its language. Cost: linear in the file and in what it expands to, which [`LarkOptions::max_size`] bounds. No
//! recursion on the depth of the input.

mod ast;
mod common;
mod lexer;
mod lower;
mod parser;
mod pattern;
pub mod regex;
mod text;

pub(crate) use text::literal;

use crate::diagnostic::GrammarError;
use crate::ir::Grammar;

/// How to read a Lark grammar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LarkOptions {
    /// The rule to start from; `start` if none is given.
    pub start: Option<String>,
    /// How many symbols, rules and parts of patterns the grammar may expand to.
    pub max_size: usize,
}

impl Default for LarkOptions {
    fn default() -> Self {
        Self { start: None, max_size: 2_000_000 }
    }
}

/// Reads a Lark grammar.
pub fn parse(source: &str, options: &LarkOptions) -> Result<Grammar, GrammarError> {
    let file = parser::parse(source).map_err(|error| error.located(source))?;
    lower::lower(source, &file, options).map_err(|error| error.located(source))
}
