//! JSON Schema.
//!
//! | module | what |
//! |---|---|
//! | [`pattern`] | [`Pattern`](pattern::Pattern): a regular expression of ECMA-262 over code points |
//! | [`mod@format`] | the nineteen formats as patterns |

pub mod pattern;

pub mod format;
