//! JSON Schema as a grammar.

pub mod algebra;
pub mod atoms;
pub mod chars;
pub mod document;
pub mod format;
pub mod forms;
mod keywords;
pub mod lower;
pub mod numbers;
pub mod pattern;
pub mod pieces;
pub mod read;
pub mod refusal;
pub mod rules;
pub mod strings;
pub mod value;
