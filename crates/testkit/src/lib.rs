//! What every engine is checked against: the meaning itself, slow and plain.
//!
//! | module | what |
//! |---|---|
//! | [`text`] | [`Sym`](text::Sym): a text as bytes and special tokens |
//! | [`matcher`] | the language of a pattern, by sets of end positions |
//! | [`derivative`] | the same language by derivatives: what is empty, what can still become a member |
//! | [`oracle`] | [`Oracle`](oracle::Oracle): sentence, viable prefix and mask by brute force, in all lexer modes |
//! | [`canvas`] | canvases by brute force: all assignments of tokens |
//! | [`build`] | grammars in a few lines of Rust, without a front end |
//! | [`random`] | draws of test cases |
//! | [`generate`] | random grammars, vocabularies and texts, each replayed from its seed |
//! | [`cases`] | behaviour as data: `testdata/cases/*.toml` and a runner that takes closures |
//! | [`competing`] | a grammar, tokens and a text for which it depends on the parser what wins in `contextual` |
//! | [`hostile`] | schemas made to break readers |
//! | [`shared`] | where the shared data is, for tests that use it |
//! | [`laws`] | what any left-to-right engine must satisfy, as plain functions |
//!
//! The crate knows the grammar representation and nothing of our lexers, recognizers and masks, so that it
//! cannot share their mistakes. Nothing here is fast; everything is for tests, and panics where a test would.

mod small_set;
pub mod text;

pub mod derivative;
pub mod matcher;

pub mod canvas;
pub mod oracle;

pub mod build;
pub mod generate;
pub mod random;

pub mod hostile;

pub mod cases;
pub mod competing;
pub mod laws;

pub mod schema_bench;
pub mod shared;
