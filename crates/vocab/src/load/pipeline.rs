//! How a `tokenizer.json` file cuts a text: through the `tokenizers` crate, which no other module knows. With
//! the feature `tokenizers` only.
//!
//! By the pipeline itself, but a text here is exactly its bytes. So what adds a space in front, brings into
//! normal form, truncates, pads or drops merges at random is switched off, and special tokens are not looked
//! for in the text. The caller checks that the tokens spell the text.

use super::hugging_face::{Head, is_space_mark, kind_of, steps};
use crate::{ErrorKind, TokenId, VocabError};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokenizers::Tokenizer;

/// The pipeline for encoding.
#[derive(Debug)]
pub(crate) struct HuggingFaceEncoder {
    tokenizer: Tokenizer,
    /// The size of the file; what was built from it takes a few times as much.
    file_bytes: usize,
}

impl HuggingFaceEncoder {
    /// The pipeline of a file, of which the head was read.
    pub(super) fn new(bytes: &[u8], head: &Head) -> Result<Self, VocabError> {
        Ok(Self { tokenizer: pipeline(bytes, head)?, file_bytes: bytes.len() })
    }

    /// The tokens of a text, which may not spell it; `None` if the pipeline fails.
    pub fn encode(&self, text: &str) -> Option<Vec<TokenId>> {
        // A pipeline from an untrusted file may reach a panic in the other crate. It keeps no state but
        // caches behind locks.
        let encoding =
            catch_unwind(AssertUnwindSafe(|| self.tokenizer.encode_fast(text, false))).ok()?.ok()?;
        Some(encoding.get_ids().iter().map(|&id| TokenId(id)).collect())
    }

    /// An estimate: vocabulary and merges as hash tables of strings.
    pub fn memory_usage(&self) -> usize {
        4 * self.file_bytes
    }
}

/// The file's pipeline without what changes the text.
fn pipeline(bytes: &[u8], head: &Head) -> Result<Tokenizer, VocabError> {
    let refused = |e: &dyn std::fmt::Display| {
        VocabError::new(ErrorKind::Syntax, format!("the `tokenizers` library refuses the file: {e}"))
    };
    let build = || -> Result<Tokenizer, Box<dyn std::error::Error + Send + Sync>> {
        // By `FromStr`, which that crate has compiled: reading its types from anything else compiles them
        // here.
        let mut tokenizer: Tokenizer = plain(bytes, head)?.parse()?;
        tokenizer.set_encode_special_tokens(true);
        Ok(tokenizer)
    };
    match catch_unwind(AssertUnwindSafe(build)) {
        Ok(Ok(tokenizer)) => Ok(tokenizer),
        Ok(Err(e)) => Err(refused(&e)),
        Err(_) => Err(refused(&"it panicked")),
    }
}

/// The fields of an object, each as it is written.
type Fields = BTreeMap<String, Box<RawValue>>;

/// The file without the steps that change the text. What stays is copied as it is written.
fn plain(bytes: &[u8], head: &Head) -> serde_json::Result<String> {
    let mut file: Fields = serde_json::from_slice(bytes)?;
    let normalizer: Vec<Value> = steps(&head.normalizer)
        .into_iter()
        .filter(|step| kind_of(step) == "ByteLevel" || is_space_mark(kind_of(step), step))
        .cloned()
        .collect();
    let pre_tokenizer: Vec<Value> = steps(&head.pre_tokenizer).into_iter().map(without_prefix).collect();
    file.insert("normalizer".into(), to_raw_value(&sequence("normalizers", normalizer))?);
    file.insert("pre_tokenizer".into(), to_raw_value(&sequence("pretokenizers", pre_tokenizer))?);
    for field in ["truncation", "padding"] {
        file.insert(field.into(), to_raw_value(&Value::Null)?);
    }
    if let Some(model) = file.get_mut("model") {
        let mut fields: Fields = serde_json::from_str(model.get())?;
        if fields.remove("dropout").is_some() {
            *model = to_raw_value(&fields)?;
        }
    }
    serde_json::to_string(&file)
}

fn sequence(key: &str, steps: Vec<Value>) -> Option<Value> {
    (!steps.is_empty()).then(|| json!({ "type": "Sequence", key: steps }))
}

/// A pre-tokenizer's step that puts no space in front.
fn without_prefix(step: &Value) -> Value {
    let mut step = step.clone();
    match (kind_of(&step) == "ByteLevel", kind_of(&step) == "Metaspace", step.as_object_mut()) {
        (true, _, Some(fields)) => {
            fields.insert("add_prefix_space".into(), false.into());
        }
        (_, true, Some(fields)) => {
            fields.remove("add_prefix_space");
            fields.insert("prepend_scheme".into(), "never".into());
        }
        _ => {}
    }
    step
}
