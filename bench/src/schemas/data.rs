//! The schemas of JSONSchemaBench and their texts.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A schema and what is said of texts.
pub struct Schema {
    pub id: String,
    pub split: String,
    pub schema: String,
    /// Each with whether it is valid.
    pub texts: Vec<(String, bool)>,
}

#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    split: String,
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow, default)]
    tests: Vec<Test<'a>>,
}

#[derive(Deserialize)]
struct Test<'a> {
    valid: bool,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// The schemas of the splits that are wanted: every so-many-th, and of these so many.
pub fn schemas(
    folder: &Path,
    is_wanted: impl Fn(&str) -> bool,
    (every, first): (usize, Option<usize>),
) -> Result<Vec<Schema>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{}: say where the schemas are by --data", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut schemas = Vec::new();
    for path in paths {
        let split = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jsonl.gz"));
        if !split.is_some_and(&is_wanted) {
            continue;
        }
        let named = || path.display().to_string();
        let mut lines = String::new();
        let file = std::fs::File::open(&path).with_context(named)?;
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut lines).with_context(named)?;
        for line in lines.lines().step_by(every).take(first.unwrap_or(usize::MAX)) {
            schemas.push(schema(line).with_context(named)?);
        }
    }
    Ok(schemas)
}

fn schema(line: &str) -> Result<Schema> {
    let Line { id, split, schema, tests } = serde_json::from_str(line)?;
    let texts = tests.iter().map(|test| Ok((spaced(test.data.get())?, test.valid)));
    let texts = texts.collect::<Result<_>>().with_context(|| id.clone())?;
    Ok(Schema { id, split, schema: schema.get().to_owned(), texts })
}

/// A JSON text as `json.dumps(data, indent=None, ensure_ascii=False)` writes it: a blank behind commas and
/// colons, and as few escapes as can be. Numbers stay as they are spelled.
fn spaced(text: &str) -> Result<String> {
    let mut spaced = String::with_capacity(text.len() * 9 / 8);
    let mut left = text;
    while let Some(c) = left.chars().next() {
        let length = if c == '"' { string_length(left)? } else { c.len_utf8() };
        let (part, behind) = left.split_at(length);
        left = behind;
        match c {
            // Half a surrogate pair is no string of ours; it stays as it is.
            '"' => match serde_json::from_str::<String>(part) {
                Ok(string) => spaced += &serde_json::to_string(&string)?,
                Err(_) => spaced += part,
            },
            ',' | ':' => spaced.extend([c, ' ']),
            ' ' | '\t' | '\n' | '\r' => {}
            c => spaced.push(c),
        }
    }
    Ok(spaced)
}

/// The length of the string at the beginning of a JSON text.
fn string_length(text: &str) -> Result<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return Ok(at + 1),
            byte => is_escaped = byte == b'\\' && !is_escaped,
        }
    }
    Err(anyhow!("a string without end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_spaced_as_python_does() {
        let text = r#"{"a:\",":[1,2.0,{}],"\u00e9\u0001":null,  "\ud800" : "\\"}"#;
        let right = r#"{"a:\",": [1, 2.0, {}], "é\u0001": null, "\ud800": "\\"}"#;
        assert_eq!(spaced(text).unwrap(), right);
        assert!(spaced(r#"["\"]"#).is_err());
    }

    #[test]
    fn lines_are_schemas_with_texts() {
        let line = r#"{"id":"x","split":"S","schema":{"type":"null"},"tests":[{"valid":true,"data":[1,2]}]}"#;
        let schema = schema(line).unwrap();
        assert_eq!(schema.texts, [("[1, 2]".to_owned(), true)]);
        assert_eq!((&*schema.id, &*schema.split, &*schema.schema), ("x", "S", r#"{"type":"null"}"#));
    }
}
