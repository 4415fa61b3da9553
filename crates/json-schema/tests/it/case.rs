//! A line of JSONSchemaBench, for tests and examples.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A schema with its instances.
pub struct Case {
    /// The name of its split and its own.
    pub id: String,
    /// The schema, as it stands there.
    pub schema: String,
    /// Instances.
    pub tests: Vec<Test>,
}

/// An instance.
pub struct Test {
    /// Whether it is valid.
    pub valid: bool,
    /// It as it stands there.
    pub data: String,
}

#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow, default)]
    tests: Vec<Instance<'a>>,
}

#[derive(Deserialize)]
struct Instance<'a> {
    valid: bool,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Case {
    /// A line of a split.
    ///
    /// # Panics
    /// If it is none.
    pub fn of(line: &str) -> Self {
        let line: Line<'_> = serde_json::from_str(line).expect("a line of JSONSchemaBench");
        let test = |test: &Instance<'_>| Test { valid: test.valid, data: test.data.get().to_owned() };
        Self {
            id: line.id,
            schema: line.schema.get().to_owned(),
            tests: line.tests.iter().map(test).collect(),
        }
    }
}
