//! Grammars: the representation that all front ends lower to, the front ends, and analyses.
//!
//! | module | what |
//! |---|---|
//! | [`ir`] | [`Grammar`](ir::Grammar): terminals as patterns, nonterminals, rules; what a front end produces |
//! | [`automata`] | rules and terminals given by automata that grow as texts need them |
//! | [`free`] | free text as automata over bytes: texts without marks, and those that end with their first one |
//! | [`diagnostic`] | [`GrammarError`] and [`Warning`]: what people are told |
//! | [`lark`] | the front end for Lark grammars |
//! | [`ebnf`], [`gbnf`] | the front end for EBNF, as XGrammar and the W3C write it, and for llama.cpp's GBNF |
//! | [`regex`] | the front end for one regular expression |
//! | [`nltk`] | the front end for NLTK's grammars |
//! | `terminals` | what is equal and in which order, for front ends |
//! | `anchors` | anchors of an expression that is matched as a whole, resolved |
//! | `expand` | groups and repetitions to rules, for front ends |
//! | [`embed`] | grammars within a grammar |
//! | [`mod@cfg`] | [`Cfg`](cfg::Cfg): the useful part without names; what recognizers consume |
//! | [`normal`] | normal forms: C2F+ε and Chomsky's |
//! | [`analysis`] | cycles, FIRST and FOLLOW sets, warnings |
//! | [`relation`] | what sequences of terminals do to a finite automaton |
//! | [`completions`] | where whatever was begun can be completed, as far as a finite automaton reads it |
//! | [`ambiguity`] | forms of rules that make sentences ambiguous |
//! | [`derivation`] | short and random derivations, as sequences of terminals |
//! | `print` | grammars as text |
//!
//! The crate knows neither lexers, recognizers nor vocabularies. Text that comes in is untrusted: no
//! recursion on its depth, errors with a place and a way out, never a panic.

pub mod ir;

pub mod memory;

pub mod automata;

pub mod free;

pub mod diagnostic;

pub mod lark;

pub mod ebnf;

pub mod gbnf;

pub mod regex;

pub mod nltk;

mod expand;

pub mod embed;

mod terminals;

mod anchors;

pub mod cfg;

pub mod normal;

pub mod analysis;

pub mod relation;

pub mod completions;

pub mod ambiguity;

pub mod derivation;

mod print;

pub use diagnostic::{ErrorKind, GrammarError, Warning};
