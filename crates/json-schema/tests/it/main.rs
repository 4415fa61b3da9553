//! Tests of the front end for JSON Schema.

mod bench;
mod format;
mod laws;
mod matcher;
mod pattern;
mod simulate;
