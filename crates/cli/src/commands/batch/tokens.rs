//! Questions about the vocabulary alone.

use anygram::{TokenId, Vocabulary};
use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::Question;

/// What there is to say of the vocabulary, and of tokens.
#[derive(Serialize)]
pub struct Answers {
    /// The ids that it has.
    size: usize,
    eos_ids: Vec<u32>,
    pad_id: Option<u32>,
    /// The tokens that were asked about, or those of the text.
    tokens: Vec<u32>,
    /// The same as people read them.
    shown: Vec<String>,
}

pub fn answer(vocabulary: &Vocabulary, question: &Question<'_>) -> Result<Answers> {
    let tokens = match (question.get("text"), question.get("tokens")) {
        (Some(_), None) => vocabulary.encode(question.string("text")?.as_bytes()).context("the text")?,
        (None, Some(_)) => question.tokens("tokens")?,
        (None, None) => Vec::new(),
        (Some(_), Some(_)) => bail!("\"text\" and \"tokens\" do not go together: ask about one of them"),
    };
    let size = vocabulary.len();
    if let Some((at, token)) = tokens.iter().enumerate().find(|(_, token)| token.index() >= size) {
        bail!("tokens[{at}]: the vocabulary has {size} tokens, and no token {}", token.0);
    }
    let ids = |tokens: &[TokenId]| tokens.iter().map(|token| token.0).collect();
    Ok(Answers {
        size,
        eos_ids: ids(vocabulary.eos()),
        pad_id: vocabulary.pad().map(|token| token.0),
        shown: tokens.iter().map(|&token| vocabulary.display_token(token)).collect(),
        tokens: ids(&tokens),
    })
}
