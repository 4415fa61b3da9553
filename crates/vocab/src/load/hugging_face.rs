//! `tokenizer.json` files: which bytes a token is.
//!
//! Such a file is a pipeline: normalizer, pre-tokenizer, model, decoder. How it cuts a text the module
//! `pipeline` says, with the feature `tokenizers`. Which bytes a token is takes no other crate: it is the
//! decoder's answer, a token at a time, in one of two spellings (other pipelines, such as WordPiece's, are
//! not supported, because there the text of a token depends on its neighbours):
//!
//! - byte-level (GPT-2, Llama 3, Qwen): each character of a token stands for a byte, by [`byte_of`]; a token
//!   with any other character is its own UTF-8 text.
//! - marked spaces (Llama 2, Mistral, Gemma): `▁` is a space, and with byte fallback `<0x0A>` is a byte.
//!
//! Added tokens have their text as it stands if they are not special, and no bytes if they are; the unknown
//! token has none.

use crate::encode::Encoder;
use crate::table::{TableBuilder, Tokens};
use crate::{ErrorKind, TokenId, VocabError, Vocabulary};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The parts of the file that say which bytes tokens are. What the rest says, the `tokenizers` crate reads.
#[derive(Deserialize)]
pub(super) struct Head {
    model: ModelHead,
    #[serde(default)]
    pub normalizer: Value,
    #[serde(default)]
    pub pre_tokenizer: Value,
    #[serde(default)]
    decoder: Value,
    #[serde(default)]
    added_tokens: Vec<Added>,
}

#[derive(Deserialize)]
struct ModelHead {
    /// Old files leave it out.
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    unk_token: Option<String>,
    unk_id: Option<u64>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    vocab: ModelVocab,
}

/// The tokens of the model: an object from text to id (BPE), or a list of texts with their scores (Unigram).
/// Of a text that is there twice the last id counts.
#[derive(Default)]
struct ModelVocab(FxHashMap<String, u64>);

impl<'de> Deserialize<'de> for ModelVocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self::default())
    }
}

impl<'de> Visitor<'de> for ModelVocab {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tokens with their ids, or a list of tokens with their scores")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Self, A::Error> {
        while let Some((text, id)) = entries.next_entry()? {
            self.0.insert(text, id);
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut entries: A) -> Result<Self, A::Error> {
        let mut id = 0;
        while let Some((text, _)) = entries.next_element::<(String, f64)>()? {
            self.0.insert(text, id);
            id += 1;
        }
        Ok(self)
    }
}

#[derive(Deserialize)]
struct Added {
    id: u64,
    content: String,
    #[serde(default)]
    special: bool,
}

/// How the tokens of a file spell bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spelling {
    ByteLevel,
    MarkedSpaces { byte_fallback: bool },
}

pub(super) fn load(bytes: &[u8]) -> Result<Vocabulary, VocabError> {
    // First ours: it refuses whatever is not JSON, which the other crate does not expect.
    let head: Head = serde_json::from_slice(bytes).map_err(|e| super::json_error(&e))?;
    let spelling = spelling(&head)?;
    #[cfg(feature = "tokenizers")]
    let encoder = Encoder::HuggingFace(Box::new(super::HuggingFaceEncoder::new(bytes, &head)?));
    #[cfg(not(feature = "tokenizers"))]
    let encoder = Encoder::Unavailable;

    let mut model: Vec<(&String, u64)> = head.model.vocab.0.iter().map(|(text, &id)| (text, id)).collect();
    model.sort_unstable_by_key(|&(text, id)| (id, text));
    let unknown =
        |text: &str, id: u64| head.model.unk_token.as_deref() == Some(text) || head.model.unk_id == Some(id);
    let mut added = added_tokens(&head)?;

    let mut builder = TableBuilder::default();
    let (mut names, mut last_resort, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (text, number) in model {
        let id = TableBuilder::check_id(number)?;
        // A token of the model that is also an added one counts once, as the added one.
        if let Ok(i) = added.binary_search_by_key(&id, |(id, _)| *id)
            && added[i].1.content == *text
        {
            continue;
        }
        texts.push(text);
        if unknown(text, number) {
            builder.push(id, b"");
            names.push((id, text.clone()));
            continue;
        }
        let (bytes, is_fallback) = spelling.bytes(text);
        builder.push(id, &bytes);
        if is_fallback {
            last_resort.push(id);
        }
    }
    for (id, token) in added.drain(..) {
        texts.push(&token.content);
        if token.special {
            builder.push(id, b"");
            names.push((id, token.content.clone()));
        } else {
            builder.push(id, &spelling.added_bytes(&token.content));
        }
    }
    last_resort.sort_unstable();
    let table = builder.finish(|n| format!("`{}`", texts[n]))?;
    let tokens = Tokens::new(table, last_resort);
    Vocabulary::new(tokens, encoder).with_names(names.iter().map(|(id, name)| (id.0, name.as_str())))
}

/// The added tokens by ascending id; an id twice is an error unless it is the same token.
fn added_tokens(head: &Head) -> Result<Vec<(TokenId, &Added)>, VocabError> {
    let mut added = head
        .added_tokens
        .iter()
        .map(|token| Ok((TableBuilder::check_id(token.id)?, token)))
        .collect::<Result<Vec<_>, VocabError>>()?;
    added.sort_by_key(|(id, _)| *id);
    added.dedup_by(|b, a| a.0 == b.0 && a.1.content == b.1.content);
    Ok(added)
}

/// Tells the two spellings apart, or says why it is neither.
fn spelling(head: &Head) -> Result<Spelling, VocabError> {
    let unsupported = |what: String| {
        VocabError::new(
            ErrorKind::Unsupported,
            format!(
                "{what}: of tokenizer.json files, BPE and Unigram models are read whose tokens are \
                 byte-level, or have \
                 `▁` for a space; write others as a JSON array of tokens"
            ),
        )
    };
    let kind = head.model.kind.as_deref().unwrap_or("BPE");
    if kind != "BPE" && kind != "Unigram" {
        return Err(unsupported(format!("a model of type {kind}")));
    }
    for (name, affix) in [
        ("continuing_subword_prefix", &head.model.continuing_subword_prefix),
        ("end_of_word_suffix", &head.model.end_of_word_suffix),
    ] {
        if let Some(affix) = affix.as_deref().filter(|affix| !affix.is_empty()) {
            return Err(unsupported(format!("a model with {name} `{affix}`")));
        }
    }
    let parts = |part| steps(part).into_iter().map(|step| (kind_of(step), step));
    let all = || parts(&head.decoder).chain(parts(&head.pre_tokenizer)).chain(parts(&head.normalizer));
    if let Some((name, _)) =
        parts(&head.decoder).find(|(name, _)| matches!(*name, "WordPiece" | "BPEDecoder" | "CTC"))
    {
        return Err(unsupported(format!("a decoder of type {name}")));
    }
    if all().any(|(name, _)| name == "ByteLevel") {
        return Ok(Spelling::ByteLevel);
    }
    let byte_fallback =
        head.model.byte_fallback || parts(&head.decoder).any(|(name, _)| name == "ByteFallback");
    let marked = all().any(|(name, step)| name == "Metaspace" || is_space_mark(name, step));
    if byte_fallback || marked {
        return Ok(Spelling::MarkedSpaces { byte_fallback });
    }
    let decoder = parts(&head.decoder).map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    let decoder = if decoder.is_empty() { "no decoder".to_owned() } else { format!("the decoder {decoder}") };
    Err(unsupported(format!("a {kind} model with {decoder}, neither byte-level nor with a mark for spaces")))
}

/// The steps of a part of the pipeline: those of a sequence, or itself, or none. A sequence within a sequence
/// counts too; the depth is limited by the JSON reader.
pub(super) fn steps(part: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut work = vec![part];
    while let Some(part) = work.pop() {
        let inner =
            ["normalizers", "pretokenizers", "decoders"].iter().find_map(|key| part.get(key)?.as_array());
        match inner {
            Some(inner) => work.extend(inner.iter().rev()),
            None if part.is_object() => found.push(part),
            None => {}
        }
    }
    found
}

pub(super) fn kind_of(step: &Value) -> &str {
    step.get("type").and_then(Value::as_str).unwrap_or("unknown")
}

/// Whether a step replaces spaces by the mark or the mark by spaces.
pub(super) fn is_space_mark(kind: &str, step: &Value) -> bool {
    let pattern = step.get("pattern").and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
    let content = step.get("content").and_then(Value::as_str);
    kind == "Replace" && matches!((pattern, content), (Some(" "), Some("▁")) | (Some("▁"), Some(" ")))
}

impl Spelling {
    /// The bytes of a token of the model, and whether it is a fallback for a single byte.
    fn bytes(self, text: &str) -> (Vec<u8>, bool) {
        match self {
            Self::ByteLevel => (
                text.chars().map(byte_of).collect::<Option<_>>().unwrap_or_else(|| text.as_bytes().to_vec()),
                false,
            ),
            Self::MarkedSpaces { byte_fallback } => match fallback_byte(text).filter(|_| byte_fallback) {
                Some(byte) => (vec![byte], true),
                None => (text.replace('▁', " ").into_bytes(), false),
            },
        }
    }

    /// The bytes of an added token that is not special.
    fn added_bytes(self, text: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel => text.as_bytes().to_vec(),
            Self::MarkedSpaces { .. } => self.bytes(text).0,
        }
    }
}

/// `<0x0A>` is the byte 10.
pub(super) fn fallback_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// The byte for which a character stands in byte-level files. Printable bytes of Latin-1 stand for
/// themselves; the others, in ascending order, are the characters from U+0100 on.
fn byte_of(c: char) -> Option<u8> {
    let code = c as u32;
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => Some(code as u8),
        // 0x00..=0x20
        0x100..=0x120 => Some((code - 0x100) as u8),
        // 0x7f..=0xa0
        0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(char::from_u32).filter_map(byte_of).collect();
        assert_eq!(bytes.len(), 256);
        bytes.sort();
        assert!((0..=255).eq(bytes));
        assert_eq!((byte_of('Ġ'), byte_of('Ċ'), byte_of(' ')), (Some(b' '), Some(b'\n'), None));
    }

    #[test]
    fn only_two_digits_are_a_byte() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xff>"), Some(255));
        for text in ["<0x+A>", "<0xA>", "<0x0A", "0x0A>", "<0x00A>", "<0xé>"] {
            assert_eq!(fallback_byte(text), None, "{text}");
        }
    }
}
