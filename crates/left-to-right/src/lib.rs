//! Left-to-right constraints: which tokens may come next, exactly.
//!
//! | module | what |
//! |---|---|
//! | [`language`] | a grammar compiled for one lexer mode and engine; shared, immutable |
//! | [`frontier`] | all that a text read so far can mean: pairs of a parser state and a lexeme in progress, stepped byte by byte |
//! | [`read`] | one token read from a frontier |
//! | [`recall`] | what readings do not know of their text: which keys and items it has |
//! | `counts` | how many tokens have bytes in the pieces in progress, where that is bounded |
//! | `recalled` | the same along one reading, or only as far as some values are told apart |
//! | [`tokens`] | sets of tokens, and rows of masks |
//! | [`mask`] | a frontier walked over the trie of tokens |
//! | `sweep`, `rests` | what tokens do to a piece in progress, and what is left of them behind it |
//! | `common`, `beside` | the same in automata in common use, once for a vocabulary, and what differs |
//! | `follow` | what the ends of pieces inside tokens lead to |
//! | [`memo`] | equal situations share their masks, and what ends of pieces lead to |
//! | [`constraint`] | a language and a vocabulary |
//! | [`matcher`] | the state of one output: mask, advance, rollback, fork, work ahead |
//! | `session`, `batch` | the tables that outputs share; many outputs and their masks in parallel |
//! | `bound` | one bound on the memory of many tables |
//! | [`costs`] | minimum costs in tokens: of terminals, nonterminals and parser states, between points inside tokens |
//! | [`budget`] | what fits into a budget of tokens, exactly |
//! | `witness` | completions written so that they repeat nothing |
//! | [`forced`] | what every continuation begins with |
//! | [`error`] | errors of compiling and of outputs, each with a kind |
//! | [`sequences`] | the tree of terminal sequences that tokens can hold, searched by the parser: masks as many workers compute them |
//! | [`example`] | sentences to look at, each verified |
//! | [`explain`] | why a text stops where it does |
//! | [`tree`] | the parse tree of a finished text |
//! | [`captures`] | which part is which rule, while a text is being written |
//!
//! The meaning is that of DESIGN.md, sections 2 and 3: a token is allowed iff the text with it is a viable
//! prefix. The crate knows engines only through their trait, and nothing of grammar files.

mod ample;
mod batch;
mod beside;
mod bound;
pub mod budget;
pub mod captures;
mod collected;
mod common;
pub mod constraint;
pub mod costs;
mod counts;
mod dotted;
mod epoch;
pub mod error;
pub mod example;
pub mod explain;
mod follow;
pub mod forced;
pub mod frontier;
pub mod language;
pub mod mask;
pub mod matcher;
pub mod memo;
mod part;
pub mod read;
pub mod recall;
mod recalled;
mod rests;
mod rows;
pub mod sequences;
mod session;
mod shared;
mod shortest;
mod sweep;
pub mod tokens;
pub mod tree;
mod witness;

pub use anygram_bits::ErrorKind;
pub use batch::{BatchOptions, Warm, batch_masks, batch_masks_into, batch_masks_timed};
pub use bound::TablesBound;
pub use constraint::{Constraint, TokenSet};
pub use error::{CompileError, MatchError, StepError};
pub use forced::Forced;
pub use language::{Engine, Language, LanguageOptions, Limits};
pub use matcher::{Draft, Matcher, Refusal};
pub use memo::MemoCounts;
pub use rows::MaskRows;
