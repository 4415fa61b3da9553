//! The evaluator against data: the suite of JSON parsers, the official suites of JSON Schema, and the labels
//! of JSONSchemaBench.

mod data;

mod dialects;
mod formats;
mod json_suite;
mod labels;
mod laws;
mod schema_suite;
#[cfg(feature = "second-oracle")]
mod second;
