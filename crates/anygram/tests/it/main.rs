//! All tests of this crate's interface, as one program: it is linked once.

mod counts;
mod engines;
mod errors;
mod examples;
mod formats;
mod lark_comparison;
mod llguidance;
mod programs;
mod schemas;
mod shared_grammars;
