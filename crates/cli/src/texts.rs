//! Files of texts to replay.

use std::path::Path;

use anygram::{TokenId, Vocabulary};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::input::read;

/// A text to replay.
pub struct Text {
    /// Where it stands in its file, from 1.
    pub line: usize,
    /// The text.
    pub text: String,
    /// Its tokens, if they were given.
    pub ids: Option<Vec<u32>>,
}

/// The texts of a file, empty lines left out: one a line, or JSON Lines with `"text"` and perhaps `"ids"`.
///
/// JSON Lines are told by the name, `.jsonl`, or by a first line that is an object with a string `"text"`.
pub fn texts(path: &Path) -> Result<Vec<Text>> {
    let source = String::from_utf8(read(path)?).map_err(|error| {
        anyhow!("{}: not UTF-8 at byte {}", path.display(), error.utf8_error().valid_up_to())
    })?;
    let mut lines = source.lines().zip(1..).filter(|(line, _)| !line.is_empty()).peekable();
    let is_json = path.extension().is_some_and(|extension| extension == "jsonl")
        || lines.peek().is_some_and(|(line, _)| json(line, 1).is_ok());
    let text = |(line, number): (&str, usize)| {
        if !is_json {
            return Ok(Text { line: number, text: line.to_owned(), ids: None });
        }
        json(line, number).with_context(|| format!("{} line {number}", path.display()))
    };
    lines.map(text).collect()
}

/// The tokens of a text: those that were given, which have to spell it, or those of the vocabulary's encoder.
pub fn tokens(vocabulary: &Vocabulary, text: &Text) -> Result<Vec<TokenId>> {
    let Some(ids) = &text.ids else { return Ok(vocabulary.encode(&text.text)?) };
    let tokens: Vec<TokenId> = ids.iter().copied().map(TokenId).collect();
    let size = vocabulary.len();
    if let Some(token) = tokens.iter().find(|token| token.index() >= size) {
        bail!("\"ids\" holds {}, which is not in the vocabulary of {size} tokens", token.0);
    }
    if vocabulary.decode(&tokens)? != text.text.as_bytes() {
        bail!("\"ids\" do not spell \"text\" in this vocabulary");
    }
    Ok(tokens)
}

fn json(source: &str, line: usize) -> Result<Text> {
    let value: Value = serde_json::from_str(source)?;
    let Some(text) = value.get("text").and_then(Value::as_str) else { bail!("no string \"text\"") };
    let id = |value: &Value| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| anyhow!("\"ids\" holds {value}, which is no token id"))
    };
    let ids = match value.get("ids") {
        None | Some(Value::Null) => None,
        Some(Value::Array(ids)) => Some(ids.iter().map(id).collect::<Result<_>>()?),
        Some(_) => bail!("\"ids\" is not an array"),
    };
    Ok(Text { line, text: text.to_owned(), ids })
}
