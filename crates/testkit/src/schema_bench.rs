//! JSONSchemaBench among the shared data: 7,570 real schemas with labelled instances.

use std::fs::File;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
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

/// The lines of all splits, each a schema with its instances, in a fixed order; `None` without shared data.
///
/// # Panics
/// If a file cannot be read.
pub fn lines() -> Option<impl Iterator<Item = String>> {
    Some(splits()?.flatten())
}

/// The same split by split.
///
/// # Panics
/// If a file cannot be read.
pub fn splits() -> Option<impl Iterator<Item = Vec<String>>> {
    let folder = crate::shared::data()?.join("jsonschemabench");
    let entries = std::fs::read_dir(&folder).expect("the folder of JSONSchemaBench");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    files.sort();
    Some(files.into_iter().map(|path| {
        let mut text = String::new();
        let file = File::open(&path).expect("a split of JSONSchemaBench");
        MultiGzDecoder::new(file).read_to_string(&mut text).expect("lines of text");
        text.lines().map(str::to_owned).collect()
    }))
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
