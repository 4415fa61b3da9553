//! The error of everything about canvases.

use anygram_bits::ErrorKind;
use anygram_left_to_right::{MatchError, StepError};

/// A change of a canvas, log-probabilities, or a question about a canvas that cannot be answered. The canvas
/// is as it was.
///
/// Opaque: branch on [`kind`](Self::kind), show the message, which names the slot. Questions that are valid
/// but too hard are not errors: their answer is [`Decision::Unknown`](crate::Decision::Unknown).
///
/// ```
/// use anygram_any_order::{Canvas, End, Slot};
/// use anygram_bits::ErrorKind;
/// use anygram_vocab::TokenId;
///
/// let mut canvas = Canvas::new(vec![Slot::Gap], End::Sentence);
/// let error = canvas.set(0, TokenId(7)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// ```
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error(transparent)]
pub struct CanvasError(#[from] CanvasCause);

/// What went wrong; the crates that ask about canvases make errors of it too.
#[doc(hidden)]
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum CanvasCause {
    #[error("there is no slot {slot}: the canvas has {n_slots}")]
    NoSuchSlot { slot: usize, n_slots: usize },
    #[error("slot {slot} is pinned; unpin it first")]
    Pinned { slot: usize },
    #[error("slot {slot} is not a gap; only gaps can be split, closed and merged")]
    NoGap { slot: usize },
    #[error("slot {slot} is a gap, which holds any number of tokens; split it to put tokens there")]
    IsGap { slot: usize },
    #[error("slot {slot}: token {id} is not in the vocabulary of {size} tokens")]
    UnknownToken { slot: usize, id: u32, size: usize },
    #[error("proposal {proposal}: slot {slot} is no hole; propose tokens for holes only")]
    NoHole { proposal: usize, slot: usize },
    #[error("there is no hole {hole}: the canvas has {n_holes}; holes are numbered from 0")]
    NoSuchHole { hole: usize, n_holes: usize },
    #[error("{n_rows} rows of log-probabilities for {n_holes} holes; give one row for each hole, in order")]
    Rows { n_rows: usize, n_holes: usize },
    #[error("{n_values} log-probabilities do not divide into rows of {size} tokens")]
    Shape { n_values: usize, size: usize },
    #[error("log-probabilities of hole {hole}: token {id} is not in the vocabulary of {size} tokens")]
    UnknownInRow { hole: usize, id: u32, size: usize },
    #[error("log-probabilities of hole {hole}: token {id} is listed twice")]
    Twice { hole: usize, id: u32 },
    #[error("log-probabilities of hole {hole}: token {id} has {value}; give a number or minus infinity")]
    NoWeight { hole: usize, id: u32, value: f64 },
    /// Where probabilities are compared.
    #[error(
        "log-probabilities of slot row {hole}: the listed probabilities sum to {sum:.3}, more than 1; give \
         log-probabilities among all tokens (log_softmax before top-k), not logits"
    )]
    NoShares { hole: usize, sum: f64 },
    /// Where gaps are not understood.
    #[error("slot {slot} is a gap; weights and `lookahead` are for canvases of holes and fixed tokens")]
    Gap { slot: usize },
    /// The tables could not be made.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Computing masks failed.
    #[error(transparent)]
    Match(#[from] MatchError),
}

impl CanvasError {
    /// What kind of error this is: [`ErrorKind::InvalidArgument`] for slots and rows that do not fit,
    /// [`ErrorKind::UnknownToken`], or that of the step that failed.
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            CanvasCause::UnknownToken { .. } | CanvasCause::UnknownInRow { .. } => ErrorKind::UnknownToken,
            CanvasCause::Step(error) => error.kind(),
            CanvasCause::Match(error) => error.kind(),
            _ => ErrorKind::InvalidArgument,
        }
    }

    /// The limit that was reached: its name, which [`Limits::set`](anygram_left_to_right::Limits::set) takes,
    /// and its value.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match &self.0 {
            CanvasCause::Step(error) => error.limit(),
            CanvasCause::Match(error) => error.limit(),
            _ => None,
        }
    }
}

impl From<StepError> for CanvasError {
    fn from(error: StepError) -> Self {
        Self(error.into())
    }
}

impl From<MatchError> for CanvasError {
    fn from(error: MatchError) -> Self {
        Self(error.into())
    }
}
