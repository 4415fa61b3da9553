//! The interface between the decoding loop and a model.

use anygram_any_order::LogProbs;
use anygram_vocab::TokenId;

/// Why a model gave no log-probabilities.
pub type ModelError = Box<dyn std::error::Error + Send + Sync>;

/// What a model finds in a slot that is still open.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpenSlots {
    /// This token, which is never proposed (LLaDA, Dream).
    Mask(TokenId),
    /// Any token, drawn anew by the loop in each step (DiffusionGemma).
    Noise,
    /// Nothing: it sees only what stands before the first open slot, and knows only what comes there
    /// (autoregressive models).
    Next,
}

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// A token for every slot: what stands there, and in open ones what [`OpenSlots`] says. With
    /// [`OpenSlots::Next`] only the tokens before the first open slot, and `wanted` is that slot alone.
    pub tokens: &'a [TokenId],
    /// The slots of which log-probabilities are wanted, ascending.
    pub wanted: &'a [usize],
    /// The number of this question, from 0.
    pub step: usize,
    /// How many questions there are, roughly: more where tokens were refused or taken back, fewer where more
    /// were kept than planned.
    pub steps: usize,
}

/// What a model answers: log-probabilities for each slot that was wanted, in order.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// Of all tokens: `[wanted, columns]`, row by row. As [`Model::log_probs`] writes them.
    Dense {
        /// The values.
        values: &'a [f32],
        /// The length of a row.
        columns: usize,
    },
    /// A row for each slot, dense or of some tokens, as those that a device found to be the likeliest. Tokens
    /// that are not listed are not proposed, except by masks that leave nothing else; where a completion
    /// needs them, they weigh the floor. Listed are log-probabilities among *all* tokens, so logits will not
    /// do: their probabilities sum to at most 1.
    Rows(&'a LogProbs),
}

/// A model: gets the tokens of a canvas and returns log-probabilities. It keeps the prompt to itself.
pub trait Model {
    /// The length of a row: at least the size of the constraint's vocabulary. What lies beyond that is never
    /// proposed.
    fn vocabulary_size(&self) -> usize;

    /// How open slots are shown.
    fn open_slots(&self) -> OpenSlots;

    /// Writes natural log-probabilities to `rows`, `[wanted, vocabulary_size]` row by row. They need not sum
    /// to one, so logits will do; minus infinity excludes a token. Equal views must have equal rows, or runs
    /// cannot be repeated.
    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError>;
}
