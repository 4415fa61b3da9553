//! Grammars: the representation that all front ends lower to, the front ends, and analyses.
//!
//! | module | what |
//! |---|---|
//! | [`ir`] | [`Grammar`](ir::Grammar): terminals as patterns, nonterminals, rules; what a front end produces |
//! | [`cfg`] | [`Cfg`](cfg::Cfg): the useful part without names; what recognizers consume |
//!
//! The crate knows neither lexers, recognizers nor vocabularies. Text that comes in is untrusted: no recursion on its
//! depth, errors with a place and a way out, never a panic.

pub mod cfg;
pub mod ir;
