//! EBNF (`.ebnf`), as XGrammar takes it and as specifications of the W3C write it; and what GBNF shares with
//! it.
//!
//! | module | what |
//! |---|---|
//! | `lexer` | text to tokens |
//! | `ast` | the tree of a file, in one arena |
//! | `parser` | tokens to tree |
//! | `text` | strings and classes |
//! | `piece` | regular pieces of rules, as patterns |
//! | `lower` | tree to [`Grammar`] |
//!
//! A file is read as follows; [`gbnf`](crate::gbnf) has the same table for the other dialect.
//!
//! | notation | meaning |
//! |---|---|
//! | `name ::= …` | a rule; names are of letters, digits, `_`, `-` and `.`, no digit first. It ends where the next one begins |
//! | `[12] name ::= …` | the same: the number of a production means nothing |
//! | `root` | the start, if there is one; else the first rule |
//! | `"…"` | a text, with escapes as in C |
//! | `'…'` | a text without escapes |
//! | `[a-z]`, `[^…]` | one character, with the same escapes and `#xN` |
//! | `#xN` | the character with this number, in hexadecimal |
//! | `A B`, `A \| B`, `( … )` | sequence, alternatives (also empty ones), group |
//! | `A?`, `A*`, `A+`, `A{n}`, `A{n,}`, `A{n,m}` | repetition; several may follow one another |
//! | `A - B` | what `A` matches and `B` does not, if both are regular; binds tighter than a sequence |
//! | `<[id]>`, `<name>` | a token of the vocabulary, as in GBNF |
//! | `# …`, `/* … */` | comments |
//!
//! Where the two originals disagree with each other, or we with them:
//!
//! | notation | XGrammar | W3C | here |
//! |---|---|---|---|
//! | `\n` in `"…"` and `[…]` | an escape | two characters | an escape |
//! | `'…'` | refused | no escapes | no escapes |
//! | `#x41` outside of classes | a comment | a character | a character, unless a word goes on after the digits |
//! | `[#x41]` | the characters `#`, `x`, `4`, `1` | `A` | `A` |
//! | `a-b` | one name | one name, or a difference | one name |
//! | `A - B` | a rule named `-` | a difference | a difference |
//! | an empty alternative | refused | refused | the empty string |
//! | `[]`, `[^]` | nothing, any character | refused | refused |
//! | several operators on one item | refused | not said | each applies to what stands before it |
//! | a rule that no rule names, left recursion | read | read | read |
//! | `(= …)`, `TagDispatch(…)`, `Token(…)`, `name[capture] ::=` … | read | – | refused, with an explanation |
//! | `\d`, `\w`, `\s` in classes | refused | – | refused |
//! | a rule defined twice | refused | – | refused |
//! | `[ wfc: … ]` after a production | a class | an annotation | a class |
//!
//! A character is a Unicode scalar value. Texts are cut in any way (`scannerless`); with `longest` or
//! `contextual` the terminals are the *maximal regular pieces*: what stands in one alternative of a rule
//! without a name in it. Cost: linear in the file and in what it expands to, which [`EbnfOptions::max_size`]
//! bounds. No recursion on the depth of the input.

mod ast;
mod lexer;
mod lower;
mod parser;
mod piece;
mod text;

#[cfg(test)]
mod tests;

use crate::diagnostic::GrammarError;
use crate::ir::Grammar;

/// Which of the two notations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Gbnf,
    Ebnf,
}

/// How to read a grammar in EBNF or GBNF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EbnfOptions {
    /// The rule to start from; that of the notation if none is given.
    pub start: Option<String>,
    /// How many symbols, rules and parts of patterns the grammar may expand to.
    pub max_size: usize,
    /// Whether regular pieces become one terminal each. If not, every string and every class is a terminal of
    /// its own: the same language in `scannerless`, with smaller automata and longer derivations.
    pub join: bool,
}

impl Default for EbnfOptions {
    fn default() -> Self {
        Self { start: None, max_size: 2_000_000, join: true }
    }
}

/// Reads a grammar in EBNF.
pub fn parse(source: &str, options: &EbnfOptions) -> Result<Grammar, GrammarError> {
    read(source, Dialect::Ebnf, options)
}

pub(crate) fn read(source: &str, dialect: Dialect, options: &EbnfOptions) -> Result<Grammar, GrammarError> {
    let file = parser::parse(source, dialect).map_err(|error| error.located(source))?;
    lower::lower(source, &file, dialect, options).map_err(|error| error.located(source))
}
