//! What the tests read.

use std::io::Read;
use std::path::{Path, PathBuf};

use anygram_schema_oracle::Value;

/// The lines of a packed file, each a JSON value, with their text.
pub fn lines(path: &Path) -> Vec<(String, Value)> {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| (line.to_owned(), line.parse().unwrap())).collect()
}

pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap()
}

pub fn is_true(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}

/// The metaschemas of the drafts, by their addresses: all JSON files of the folder that
/// `ANYGRAM_METASCHEMAS` names, or else of the compiler's crate. None if there is no such folder.
pub fn metaschemas() -> Vec<(String, Value)> {
    let folder = std::env::var_os("ANYGRAM_METASCHEMAS").map_or_else(
        || anygram_testkit::shared::root().join("crates/json-schema/metaschemas"),
        PathBuf::from,
    );
    let mut found = Vec::new();
    let mut waiting = vec![folder];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if let Ok(value) = std::fs::read_to_string(&path).unwrap_or_default().parse::<Value>() {
                let id = value.get("$id").or_else(|| value.get("id")).and_then(Value::as_str);
                found.extend(id.map(|id| (id.to_owned(), value.clone())));
            }
        }
    }
    found
}
