//! Left to right with masks: the baseline of diffusion models, and what an autoregressive model does anyway.

use anygram_any_order::{Canvas, End, Slot};
use anygram_left_to_right::{Constraint, MatchError, Matcher};
use anygram_vocab::TokenId;

use super::DecodeError;
use super::rows::Rows;
use super::strategy::Strategy;
use super::trace::{Ground, Judgement};

/// Lets only the leftmost open slot be filled, with what the mask allows there. What stands behind it is not
/// looked at.
///
/// Without a budget a text can be cut off where the canvas ends. With one, where nothing but open slots
/// follows, it never is: the mask leaves out what could not be closed in the slots that are left. A
/// vocabulary without an EOS has nothing to fill those with that are left over.
pub struct Sequential {
    matcher: Matcher,
    has_budget: bool,
    /// The slot and its mask.
    last: Option<(usize, Judgement)>,
    /// What was prepared: a canvas and the mask of its first hole.
    prepared: Option<(Canvas, Option<FirstHole>)>,
}

/// A hole, its mask, and whether it is proven that all it allows can be completed.
type FirstHole = (usize, Vec<u32>, bool);

impl Sequential {
    /// For a constraint.
    pub fn new(constraint: &Constraint) -> Result<Self, DecodeError> {
        Ok(Self { matcher: constraint.matcher()?, has_budget: false, last: None, prepared: None })
    }

    /// With masks that leave room to close.
    pub fn with_budget(mut self) -> Self {
        self.has_budget = true;
        self
    }

    /// The mask of the first hole, and whether it is proven that all it allows can be completed; `None` if
    /// there is no hole or the text before it is not viable.
    fn mask(&mut self, canvas: &Canvas) -> Result<Option<FirstHole>, DecodeError> {
        if let Some((_, known)) = self.prepared.take_if(|(prepared, _)| prepared == canvas) {
            return Ok(known);
        }
        let Some(hole) = canvas.holes().next() else { return Ok(None) };
        let text = canvas.slots()[..hole].iter().filter_map(|slot| match slot {
            Slot::Fixed(token) => Some(*token),
            Slot::Hole | Slot::Gap => None,
        });
        if !follow(&mut self.matcher, text)? {
            return Ok(None);
        }
        let is_rest_open = canvas.slots()[hole..].iter().all(|slot| *slot == Slot::Hole);
        let n_left = canvas.slots().len() - hole;
        let budget = match canvas.end() {
            End::Sentence => Some(n_left),
            End::Prefix { remaining } => remaining.map(|remaining| n_left + remaining as usize),
        };
        let budget = budget.filter(|_| self.has_budget && is_rest_open);
        let mask = match budget {
            Some(budget) => self.matcher.mask_with_budget(u32::try_from(budget).unwrap_or(u32::MAX))?,
            None => self.matcher.mask()?,
        };
        // Without a budget the mask says that some text goes on from a token; that tokens of the vocabulary
        // spell it, it does not say. With one they do, but with too few to fill the holes if no EOS fills
        // the others.
        let proven = match budget {
            Some(_) => n_left == 1 || !self.matcher.eos().is_empty(),
            None => n_left == 1 && canvas.end() == (End::Prefix { remaining: None }),
        };
        Ok(Some((hole, mask.into_words(), proven)))
    }
}

/// Makes a matcher stand behind a text, from where it stands; `false` if the text is not viable.
pub(super) fn follow(matcher: &mut Matcher, text: impl Iterator<Item = TokenId>) -> Result<bool, MatchError> {
    let text: Vec<TokenId> = text.collect();
    let n_common = matcher.tokens().iter().zip(&text).take_while(|(a, b)| a == b).count();
    matcher.rollback(matcher.tokens().len() - n_common)?;
    for &token in &text[n_common..] {
        match matcher.advance(token) {
            Ok(()) => {}
            Err(error @ MatchError::Limit(_)) => return Err(error),
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

impl Strategy for Sequential {
    fn begin(&mut self, _seed: u64) {
        self.last = None;
        self.prepared = None;
    }

    fn prepare(&mut self, canvas: &Canvas, _is_by_confidence: bool) -> Result<(), DecodeError> {
        let mask = self.mask(canvas)?;
        self.prepared = Some((canvas.clone(), mask));
        Ok(())
    }

    fn restrict(&mut self, canvas: &Canvas, rows: &mut Rows, _is_first: bool) -> Result<(), DecodeError> {
        self.last = None;
        match self.mask(canvas)? {
            Some((hole, mask, proven)) => {
                rows.focus(Some(hole));
                rows.restrict_surely(hole, mask);
                self.last = Some((hole, Judgement { kept: true, proven, ground: Ground::Mask }));
            }
            // Nothing can be proposed.
            None => rows.focus(Some(usize::MAX)),
        }
        Ok(())
    }

    fn judge(
        &mut self,
        _canvas: &Canvas,
        slot: usize,
        _token: TokenId,
        _rows: &Rows,
    ) -> Result<Judgement, DecodeError> {
        let known = self.last.filter(|(hole, _)| *hole == slot).map(|(_, judgement)| judgement);
        Ok(known.unwrap_or(Judgement { kept: false, proven: false, ground: Ground::Nothing }))
    }
}
