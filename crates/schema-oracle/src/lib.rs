//! The meaning of JSON Schema as an evaluator, slow and plain: what a compiler of schemas to automata is held
//! against. It shares nothing with that compiler, and is for tests alone.
//!
//! | module | what |
//! |---|---|
//! | [`json`] | [`Value`]: strict RFC 8259, and what two equal values are |
//! | [`decimal`] | [`Decimal`](decimal::Decimal): exact numbers |
//! | [`dialect`] | [`Dialect`]: which keywords count; what holds without `$schema` |
//! | [`registry`] | [`Registry`]: documents and references |
//! | [`evaluate`] | [`Schema::is_valid`](registry::Schema::is_valid), keyword by keyword |
//! | [`formats`] | the nineteen formats; `FORMATS.md` defines them in prose |
//! | [`generate`] | random schemas, values near them, random spellings of values |
//!
//! An answer is exact, or an [`Undecided`] that says why there is none: nothing is guessed. In particular a
//! keyword whose value has the wrong shape (`"type": "any"`) is an error and never ignored, where its turn
//! comes; a schema that is never applied is never looked at. Branches are not cut short: what one of them
//! cannot answer, the whole cannot, even if another branch would settle it.
//!
//! To judge costs what it costs: items are compared pairwise, keys are searched one after the other. The
//! 24,660 instances of JSONSchemaBench take 1.3 s, `tests/it/labels.rs` on one core of a build machine.
//!
//! ```
//! use anygram_schema_oracle::{Formats, Options, Registry, Value};
//!
//! let mut registry = Registry::default();
//! registry.add("test:schema", r#"{"type": "integer", "multipleOf": 0.5}"#.parse()?);
//! let value: Value = "1e2".parse()?;
//! assert!(registry.schema("test:schema")?.is_valid(&value, Options { formats: Formats::Assert })?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod decimal;
pub mod json;

pub mod dialect;
pub mod registry;

pub mod evaluate;

pub mod formats;
mod idna;

pub mod generate;

pub use dialect::{Dialect, Draft};
pub use evaluate::{Formats, Options, Undecided};
pub use json::Value;
pub use registry::{Registry, Schema};
