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
//! | `files` | the grammar and the files that it imports |
//! | `library` | the built-in libraries `common` and `unicode` |
//! | `parametric` | rules with a parameter of 64 bits |
//! | `substring` | parts of a list of chunks |
//! | `competition` | what lazy terminals do to others, as llguidance has it |
//! | `skips` | ignored text behind terminals only, as llguidance has it |
//! | `names` | definitions, imports, `%override`, `%extend` |
//! | `lower` | tree to [`Grammar`] |
//!
//! All of Lark's notation is read, as python-lark 1.3.1 reads it, except `%declare` and what a terminal's
//! regular expression may not contain ([`regex`]); these are errors that say why and what to do. Beyond Lark
//! there are:
//!
//! | notation | meaning |
//! |---|---|
//! | `x & y`, prefix `~x`, in terminals | intersection, complement: `~` binds tightest, then repetition, sequence, `&`, `\|` |
//! | `x{3}`, `x{1,3}`, `x{1,}`, `x{,3}` | repetition, as in llguidance; what has no number or comma first uses a template |
//! | `<\|name\|>`, `<name>`, `<[id]>` | tokens of the vocabulary, in rules or as a terminal of their own |
//! | `""` | the empty string |
//! | `` `NP/en-char` `` | the name of a rule in any characters; `` \` ``, `\\`, `\n` and `\r` are escapes |
//! | `` $`any name` `` | the same for a terminal |
//! | `%lexer longest` | the lexer mode that the grammar is meant for; `contextual` without it |
//! | `%start name` | the rule to start from, unless the caller names one; `start` without it |
//! | `%reserve X` | a terminal or terminal expression that competes for the longest piece though no rule names it |
//! | `%nonterminal x` | a nonterminal without rules; it derives nothing |
//! | `%anonymous X.1[max_tokens=2]: …` | a terminal without a declaration, for printing: literals never mean it |
//! | `%json {…}`, in rules | the texts of a JSON schema, which [`parse_with_schemas`] has read; the lexer mode is then `scannerless` |
//! | `%llguidance {…}` | options of llguidance |
//! | `%regex {…}` | any part of a list of chunks (`substring`) |
//! | `%lark {…}`, `@name`, in rules | another grammar, with its own rules, terminals and ignored text |
//! | `<[1-5,7]>`, `<[^1-5]>`, `<[*]>` | any of these tokens, any token but these, any token |
//! | `x[…]: …` | attributes of a rule: `lazy`, `suffix`, `stop`, `max_tokens`, `capture`, `temperature` |
//! | `x::_: … %if lt(_, 3)`, `x::incr(_)` | rules with a parameter (`parametric`) |
//!
//! What shapes trees in Lark (`?`, `!`, a leading `_`, aliases, priorities of rules) is read and means
//! nothing: a grammar is its language. Files are imported only from the folder that [`LarkOptions::imports`]
//! names. Cost: linear in the files and in what they expand to, which [`LarkOptions::max_size`] bounds. No
//! recursion on the depth of the input.

mod ast;
mod competition;
mod files;
mod lexer;
mod library;
mod lower;
mod names;
mod parametric;
mod parser;
mod pattern;
pub mod regex;
mod skips;
mod substring;
mod text;

use std::path::PathBuf;

pub(crate) use lexer::{is_bare_token_name, is_plain_name};

use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::Grammar;

/// Whose meaning a grammar follows, where Lark and llguidance differ (`docs/llguidance.md`). The notation of
/// both is read in each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LarkDialect {
    /// python-lark's.
    #[default]
    Lark,
    /// llguidance's, version 1.9.1.
    Llguidance,
}

impl LarkDialect {
    /// All dialects.
    pub const ALL: [Self; 2] = [Self::Lark, Self::Llguidance];

    /// The name of the dialect, as options write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lark => "lark",
            Self::Llguidance => "llguidance",
        }
    }

    /// The dialect with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// What `@name` stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NamedGrammar {
    /// A Lark grammar.
    Lark(String),
    /// A JSON schema.
    Schema(String),
}

/// How to read a Lark grammar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LarkOptions {
    /// The rule to start from; if none is given, what the grammar says by `%start`, or `start`.
    pub start: Option<String>,
    /// How many symbols, rules and parts of patterns the grammar may expand to.
    pub max_size: usize,
    /// The folder from which files may be imported, and no others; without it none are read. Give it for
    /// grammars that you trust: who writes the grammar learns whether a file exists.
    pub imports: Option<PathBuf>,
    /// Whose meaning it follows.
    pub dialect: LarkDialect,
    /// The grammars that `@name` can mean.
    pub named: Vec<(String, NamedGrammar)>,
}

impl Default for LarkOptions {
    fn default() -> Self {
        let dialect = LarkDialect::default();
        Self { start: None, max_size: 2_000_000, imports: None, dialect, named: Vec::new() }
    }
}

/// Reads a JSON schema, as it stands behind `%json`: the grammar of its texts, or why it is refused.
pub type Schemas<'a> = dyn Fn(&str) -> Result<Grammar, (ErrorKind, String)> + 'a;

/// Reads a Lark grammar without `%json`.
///
/// # Errors
/// With the place, of the first thing that is wrong.
pub fn parse(source: &str, options: &LarkOptions) -> Result<Grammar, GrammarError> {
    let none = |_: &str| Err((ErrorKind::Unsupported, "nobody reads schemas here".to_owned()));
    parse_with_schemas(source, options, &none)
}

/// Reads a Lark grammar; `schemas` reads what stands behind `%json`.
///
/// # Errors
/// As [`parse`], and those of `schemas` with the place of the `%json`.
pub fn parse_with_schemas(
    source: &str,
    options: &LarkOptions,
    schemas: &Schemas<'_>,
) -> Result<Grammar, GrammarError> {
    let files = files::Files::load(source, options.imports.as_deref(), options.dialect)?;
    let trees: Vec<ast::File<'_>> =
        (0..files.len()).map(|file| files.parse(file)).collect::<Result<_, _>>()?;
    lower::lower(&files, &trees, (options, schemas), 0).map_err(|error| files.locate(error))
}
