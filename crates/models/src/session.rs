//! A model at one prompt.

use crate::transformer::Cache;
use crate::{Kind, MASK, SmallModel, SmallModelError};
use anygram_decoding::decode::{Model, ModelError, OpenSlots, View};
use anygram_vocab::TokenId;

/// A model at one prompt: what the decoding loop asks. An autoregressive one keeps what it made of the tokens
/// so far, so that a longer canvas costs only what is new.
#[derive(Clone, Debug)]
pub struct Session {
    model: SmallModel,
    /// Prompt and canvas of the question; the prompt stays.
    tokens: Vec<TokenId>,
    n_prompt: usize,
    cache: Cache,
}

impl Session {
    pub(crate) fn new(model: SmallModel, prompt: &[TokenId]) -> Result<Self, SmallModelError> {
        if prompt.is_empty() {
            return Err(SmallModelError::NoPrompt);
        }
        check(&model, prompt)?;
        Ok(Self { model, tokens: prompt.to_vec(), n_prompt: prompt.len(), cache: Cache::default() })
    }

    /// The model.
    pub fn model(&self) -> &SmallModel {
        &self.model
    }

    /// As [`SmallModel::log_probs`], into a buffer of the length of the rows.
    pub fn rows(
        &mut self,
        canvas: &[TokenId],
        slots: &[usize],
        rows: &mut [f32],
    ) -> Result<(), SmallModelError> {
        self.check(canvas, slots, rows.len())?;
        self.tokens.truncate(self.n_prompt);
        self.tokens.extend_from_slice(canvas);
        let Some(&lowest) = slots.iter().min() else { return Ok(()) };
        // All models say at each token what follows it, or what should.
        let shift = self.n_prompt - 1;
        let n_kept = if self.model.kind() == Kind::Autoregressive {
            let n_same = self.cache.tokens.iter().zip(&self.tokens).take_while(|(a, b)| a == b).count();
            n_same.min(lowest + shift)
        } else {
            0
        };
        self.cache.truncate(n_kept);
        let wanted: Vec<usize> = slots.iter().map(|slot| slot + shift).collect();
        self.model.fill(&self.tokens, &wanted, &mut self.cache, rows);
        Ok(())
    }

    fn check(&self, canvas: &[TokenId], slots: &[usize], given: usize) -> Result<(), SmallModelError> {
        check(&self.model, canvas)?;
        let (n_slots, n_tokens) = (canvas.len(), self.n_prompt + canvas.len());
        if n_tokens > SmallModel::MAX_TOKENS {
            return Err(SmallModelError::TooLong { given: n_tokens, most: SmallModel::MAX_TOKENS });
        }
        let n_known = n_slots + usize::from(self.model.kind() == Kind::Autoregressive);
        if let Some(&slot) = slots.iter().find(|slot| **slot >= n_known) {
            return Err(SmallModelError::Slot { slot, n_slots });
        }
        let wanted = slots.len() * self.model.vocabulary_size();
        if wanted == given { Ok(()) } else { Err(SmallModelError::Buffer { wanted, given }) }
    }
}

impl Model for Session {
    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn open_slots(&self) -> OpenSlots {
        match self.model.kind() {
            Kind::Autoregressive => OpenSlots::Next,
            Kind::Masked => OpenSlots::Mask(MASK),
            Kind::Uniform => OpenSlots::Noise,
        }
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        Ok(self.rows(view.tokens, view.wanted, rows)?)
    }
}

fn check(model: &SmallModel, tokens: &[TokenId]) -> Result<(), SmallModelError> {
    let n_tokens = model.vocabulary_size();
    match tokens.iter().find(|token| token.index() >= n_tokens) {
        Some(&token) => Err(SmallModelError::Token { token, n_tokens }),
        None => Ok(()),
    }
}
