//! How a `tokenizer.json` file cuts a text: through the `tokenizers` crate, which no other module knows. With
//! the feature `tokenizers` only.
//!
//! By the pipeline itself, but a text here is exactly its bytes. So what adds a space in front, brings into
//! normal form, truncates, pads or drops merges at random is switched off, and special tokens are not looked
//! for in the text. The caller checks that the tokens spell the text.

use super::hugging_face::{Head, is_space_mark, kind_of, steps};
use crate::{TokenId, VocabError, VocabErrorKind};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokenizers::models::ModelWrapper;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

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
        VocabError::new(VocabErrorKind::Syntax, format!("the `tokenizers` library refuses the file: {e}"))
    };
    let build = || -> Result<Tokenizer, Box<dyn std::error::Error + Send + Sync>> {
        let mut tokenizer = Tokenizer::from_bytes(bytes)?;
        let normalizer: Vec<Value> = steps(&head.normalizer)
            .into_iter()
            .filter(|step| kind_of(step) == "ByteLevel" || is_space_mark(kind_of(step), step))
            .cloned()
            .collect();
        let pre_tokenizer: Vec<Value> = steps(&head.pre_tokenizer).into_iter().map(without_prefix).collect();
        let normalizer = sequence("normalizers", normalizer).map(serde_json::from_value::<NormalizerWrapper>);
        let pre_tokenizer =
            sequence("pretokenizers", pre_tokenizer).map(serde_json::from_value::<PreTokenizerWrapper>);
        tokenizer.with_normalizer(normalizer.transpose()?)?;
        tokenizer.with_pre_tokenizer(pre_tokenizer.transpose()?);
        tokenizer.with_truncation(None)?.with_padding(None);
        tokenizer.set_encode_special_tokens(true);
        if let ModelWrapper::BPE(model) = tokenizer.get_model()
            && model.dropout.is_some()
        {
            let mut model = model.clone();
            model.dropout = None;
            tokenizer.with_model(model);
        }
        Ok(tokenizer)
    };
    match catch_unwind(AssertUnwindSafe(build)) {
        Ok(Ok(tokenizer)) => Ok(tokenizer),
        Ok(Err(e)) => Err(refused(&e)),
        Err(_) => Err(refused(&"it panicked")),
    }
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
