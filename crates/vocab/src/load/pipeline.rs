//! How a `tokenizer.json` file cuts a text: through the `tokenizers` crate, which no other module knows. With
//! the feature `tokenizers` only.
//!
//! By the pipeline itself, but a text here is exactly its bytes. So what adds a space in front, brings into
//! normal form, truncates, pads or drops merges at random is switched off, and special tokens are not looked
//! for in the text. The caller checks that the tokens spell the text.

use super::hugging_face::{Head, is_space_mark, kind_of, steps};
use super::read_limited;
use crate::{ErrorKind, TokenId, VocabError};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use tokenizers::Tokenizer;

/// The pipeline for encoding.
#[derive(Debug)]
pub(crate) struct HuggingFaceEncoder {
    /// Of a saved vocabulary the pipeline's JSON in gzip; else empty.
    packed: Box<[u8]>,
    /// The pipeline, of a saved vocabulary when it is first needed; the message if it is none.
    compiled: OnceLock<Result<Compiled, String>>,
}

#[derive(Debug)]
struct Compiled {
    tokenizer: Tokenizer,
    /// The size of the file; what was built from it takes a few times as much.
    file_bytes: usize,
}

impl HuggingFaceEncoder {
    /// The pipeline of a file, of which the head was read.
    pub(super) fn new(bytes: &[u8], head: &Head) -> Result<Self, VocabError> {
        let refused = |error: serde_json::Error| syntax(refusal(&error));
        let tokenizer = pipeline(&plain(bytes, head).map_err(refused)?).map_err(syntax)?;
        let compiled = Ok(Compiled { tokenizer, file_bytes: bytes.len() });
        Ok(Self { packed: Box::default(), compiled: OnceLock::from(compiled) })
    }

    /// The pipeline of a saved vocabulary.
    pub fn from_packed(packed: Box<[u8]>) -> Self {
        Self { packed, compiled: OnceLock::new() }
    }

    /// What [`from_packed`](Self::from_packed) takes.
    pub fn packed(&self) -> Result<Cow<'_, [u8]>, VocabError> {
        if !self.packed.is_empty() {
            return Ok(Cow::Borrowed(&self.packed));
        }
        let json = self.tokenizer()?.to_string(false).map_err(|error| {
            let problem = format!("the `tokenizers` library cannot write the pipeline: {error}");
            VocabError::new(ErrorKind::Unsupported, problem)
        })?;
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let packed = out.write_all(json.as_bytes()).and_then(|()| out.finish());
        packed.map(Cow::Owned).map_err(|error| VocabError::io("pack the pipeline", error))
    }

    /// The pipeline, or why there is none.
    pub fn tokenizer(&self) -> Result<&Tokenizer, VocabError> {
        let unpack = || {
            let packed = flate2::read::GzDecoder::new(&*self.packed);
            let json = read_limited(packed, 0, "unpack the pipeline").map_err(|error| error.to_string())?;
            let file_bytes = json.len();
            let json = String::from_utf8(json).map_err(|error| error.to_string())?;
            Ok(Compiled { tokenizer: pipeline(&json)?, file_bytes })
        };
        match self.compiled.get_or_init(unpack) {
            Ok(compiled) => Ok(&compiled.tokenizer),
            Err(message) => Err(syntax(format!(
                "the encoder of the saved vocabulary is damaged: {message}; save it again from its \
                 tokenizer.json"
            ))),
        }
    }

    /// The tokens of a text, which may not spell it; `None` if the pipeline fails.
    pub fn encode(&self, text: &str) -> Option<Vec<TokenId>> {
        // A pipeline from an untrusted file may reach a panic in the other crate. It keeps no state but
        // caches behind locks.
        let tokenizer = self.tokenizer().ok()?;
        let encoding = catch_unwind(AssertUnwindSafe(|| tokenizer.encode_fast(text, false))).ok()?.ok()?;
        Some(encoding.get_ids().iter().map(|&id| TokenId(id)).collect())
    }

    /// An estimate: vocabulary and merges as hash tables of strings.
    pub fn memory_usage(&self) -> usize {
        let compiled = self.compiled.get().and_then(|compiled| compiled.as_ref().ok());
        self.packed.len() + compiled.map_or(0, |compiled| 4 * compiled.file_bytes)
    }
}

fn syntax(problem: String) -> VocabError {
    VocabError::new(ErrorKind::Syntax, problem)
}

fn refusal(problem: &dyn std::fmt::Display) -> String {
    format!("the `tokenizers` library refuses the file: {problem}")
}

/// The pipeline of a file, or why that crate refuses it.
fn pipeline(json: &str) -> Result<Tokenizer, String> {
    // By `FromStr`, which that crate has compiled: reading its types from anything else compiles them here.
    match catch_unwind(AssertUnwindSafe(|| json.parse::<Tokenizer>())) {
        Ok(Ok(mut tokenizer)) => {
            tokenizer.set_encode_special_tokens(true);
            Ok(tokenizer)
        }
        Ok(Err(e)) => Err(refusal(&e)),
        Err(_) => Err(refusal(&"it panicked")),
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
