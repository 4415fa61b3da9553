//! LAVE's verification (Zhang et al. 2026, section 3.2): a canvas is taken for completable if one of some
//! fillings, drawn from the marginals, is.

use anygram_any_order::{Canvas, CanvasError, Decision, End, LogProbs, Slot, Undecided, is_tail};
use anygram_bits::Random;
use anygram_left_to_right::{Constraint, MatchError, Matcher};
use anygram_vocab::{TokenId, Vocabulary};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::decode::Rows;
use crate::methods::{Methods, Verdict};

/// What `lookahead` draws and asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookahead {
    /// Distinct fillings (the paper's N).
    pub fillings: usize,
    /// Whether the holes behind the last fixed slot have to suffice, so that a yes is never wrong. The
    /// paper's question is whether the text up to there is a viable prefix; then the canvas can turn out too
    /// short. For a canvas that ends as a prefix with its last fixed slot it is the same.
    pub counts_room: bool,
    /// The same seed, the same fillings.
    pub seed: u64,
}

impl Lookahead {
    /// The paper's N.
    pub const FILLINGS: usize = 10;
}

impl Default for Lookahead {
    fn default() -> Self {
        Self { fillings: Self::FILLINGS, counts_room: true, seed: 0 }
    }
}

/// From what fillings are drawn.
#[derive(Clone, Copy)]
pub(crate) enum Marginals<'a> {
    /// A row for each hole.
    LogProbs(&'a LogProbs),
    /// Of the slots of a canvas that are holes in another one.
    Rows(&'a Rows),
    /// Whatever each mask allows, all as likely.
    Masks,
}

/// A verdict, and for a yes the tokens up to the last fixed slot that were found to be extendable.
pub(crate) struct Looked {
    pub verdict: Verdict,
    pub prefix: Option<Vec<TokenId>>,
}

impl From<Verdict> for Looked {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, prefix: None }
    }
}

/// Draws that come out as one before are repeated so often.
const DRAWS_PER_FILLING: usize = 4;

impl Methods {
    /// Draws fillings one after the other, checks as many side by side as there are checkers, and takes the
    /// first that is extendable: so the answer does not depend on the number of threads. Cost: one question
    /// to a matcher for each filling that is looked at, and one to the solver for each that is extendable.
    pub(crate) fn look_ahead(
        &mut self,
        canvas: &Canvas,
        marginals: Marginals<'_>,
        options: Lookahead,
    ) -> Result<Looked, CanvasError> {
        let size = self.solver.constraint().vocabulary().len();
        match marginals {
            Marginals::LogProbs(log_probs) => log_probs.check(canvas, size)?,
            Marginals::Rows(_) | Marginals::Masks => LogProbs::check_gaps(canvas)?,
        }
        let n_before = n_before(canvas);
        let holes: Vec<usize> = canvas.holes().take_while(|&hole| hole < n_before).collect();
        if holes.is_empty() && options.counts_room {
            // Nothing is to be drawn: what is asked is exact.
            return self.exactly(canvas, n_before);
        }
        let mut random = Random::new(options.seed);
        let mut tried: FxHashSet<Vec<TokenId>> = FxHashSet::default();
        let mut why = None;
        let mut n_draws = 0;
        // Without holes there is one filling.
        let (n_fillings, most) = match holes.len() {
            0 => (1, 1),
            _ => (options.fillings, options.fillings.saturating_mul(DRAWS_PER_FILLING)),
        };
        while tried.len() < n_fillings && n_draws < most {
            let mut batch: Vec<Vec<TokenId>> = Vec::new();
            while batch.len() < self.checkers.len() && tried.len() < n_fillings && n_draws < most {
                n_draws += 1;
                let row = match self.filling(canvas, n_before, marginals, &mut random) {
                    Ok(row) => row,
                    Err(MatchError::Limit(error)) => {
                        why = Some(Undecided::Limit(error));
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if tried.insert(row.clone()) && row.len() == n_before {
                    batch.push(row);
                }
            }
            for (row, checked) in batch.iter().zip(check(&mut self.checkers, &batch)) {
                match checked {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(MatchError::Limit(error)) => {
                        why = Some(Undecided::Limit(error));
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
                if !options.counts_room {
                    let proven =
                        n_before == canvas.slots().len() && canvas.end() == (End::Prefix { remaining: None });
                    return Ok(Looked { verdict: Verdict::yes(None, proven), prefix: Some(row.clone()) });
                }
                let mut filled = canvas.slots().to_vec();
                holes.iter().for_each(|&hole| filled[hole] = Slot::Fixed(row[hole]));
                match self.solver.completable(&Canvas::new(filled, canvas.end()))? {
                    Decision::Yes(witness) => {
                        return Ok(Looked {
                            verdict: Verdict::yes(Some(witness), true),
                            prefix: Some(row.clone()),
                        });
                    }
                    Decision::No => {}
                    Decision::Unknown(undecided) => why = Some(undecided),
                }
            }
        }
        // A filling that was not decided might have been a yes.
        Ok(why.map_or(Verdict::no(false), Verdict::unknown).into())
    }

    fn exactly(&mut self, canvas: &Canvas, n_before: usize) -> Result<Looked, CanvasError> {
        let verdict = Verdict::exact(self.solver.completable(canvas)?);
        let fixed = canvas.slots()[..n_before].iter().map(|slot| match slot {
            Slot::Fixed(token) => Some(*token),
            Slot::Hole | Slot::Gap => None,
        });
        let prefix = fixed.collect::<Option<Vec<_>>>().filter(|_| verdict.decision.is_yes());
        Ok(Looked { verdict, prefix })
    }

    /// The tokens of the first slots; shorter where masks allow no token any more.
    fn filling(
        &mut self,
        canvas: &Canvas,
        n_slots: usize,
        marginals: Marginals<'_>,
        random: &mut Random,
    ) -> Result<Vec<TokenId>, MatchError> {
        let vocabulary = self.solver.constraint().vocabulary();
        let row = match marginals {
            Marginals::Masks => return self.drawn_by_masks(canvas, n_slots, random),
            Marginals::Rows(rows) => {
                drawn(vocabulary, canvas, n_slots, random, |slot, _, random| rows.draw(slot, random))
            }
            Marginals::LogProbs(log_probs) => {
                drawn(vocabulary, canvas, n_slots, random, |_, hole, random| {
                    let row = &log_probs.rows()[hole];
                    let picked = random.choose_by_log_weights(row.all().map(|pair| pair.1))?;
                    row.all().nth(picked).map(|pair| pair.0)
                })
            }
        };
        Ok(row)
    }

    /// Each hole by what the mask allows there.
    fn drawn_by_masks(
        &mut self,
        canvas: &Canvas,
        n_slots: usize,
        random: &mut Random,
    ) -> Result<Vec<TokenId>, MatchError> {
        self.matcher.reset();
        let eos = self.solver.constraint().vocabulary().eos().first().copied();
        let mut tokens = Vec::with_capacity(n_slots);
        for slot in &canvas.slots()[..n_slots] {
            let token = match (slot, eos) {
                (Slot::Fixed(token), _) => *token,
                (Slot::Hole | Slot::Gap, Some(eos)) if self.matcher.has_ended() => eos,
                (Slot::Hole | Slot::Gap, _) => {
                    let mask = self.matcher.mask()?;
                    if mask.is_empty() {
                        return Ok(tokens);
                    }
                    let picked = random.below(mask.count());
                    let Some(token) = mask.iter().nth(picked) else { return Ok(tokens) };
                    token
                }
            };
            if !self.matcher.has_ended() {
                match self.matcher.advance(token) {
                    Ok(()) => {}
                    Err(error @ MatchError::Limit(_)) => return Err(error),
                    Err(_) => return Ok(tokens),
                }
            }
            tokens.push(token);
        }
        Ok(tokens)
    }
}

/// The slots up to the last that is no hole (the paper's r(y)).
pub(crate) fn n_before(canvas: &Canvas) -> usize {
    canvas.slots().iter().rposition(|slot| *slot != Slot::Hole).map_or(0, |last| last + 1)
}

/// The tokens of the first slots, holes drawn each by itself, given the slot and the number of the hole;
/// behind an EOS there is EOS.
fn drawn(
    vocabulary: &Vocabulary,
    canvas: &Canvas,
    n_slots: usize,
    random: &mut Random,
    draw: impl Fn(usize, usize, &mut Random) -> Option<TokenId>,
) -> Vec<TokenId> {
    let mut ended = None;
    let mut n_holes = 0;
    let mut tokens = Vec::with_capacity(n_slots);
    for (at, slot) in canvas.slots()[..n_slots].iter().enumerate() {
        let token = match slot {
            Slot::Fixed(token) => *token,
            Slot::Hole | Slot::Gap => {
                let drawn = draw(at, n_holes, random);
                n_holes += 1;
                let drawn = drawn.unwrap_or_else(|| TokenId::new(random.below(vocabulary.len().max(1))));
                ended.unwrap_or(drawn)
            }
        };
        ended = ended.or(Some(token).filter(|token| vocabulary.eos().contains(token)));
        tokens.push(token);
    }
    tokens
}

/// Whether rows begin a text that can be completed, or end one; side by side, if there is more than one
/// checker.
fn check(checkers: &mut [Matcher], rows: &[Vec<TokenId>]) -> Vec<Result<bool, MatchError>> {
    match (checkers, rows) {
        (_, []) => Vec::new(),
        ([checker, ..], [row]) => vec![is_extendable(checker, row)],
        (checkers, rows) => {
            let pairs = checkers.par_iter_mut().zip(rows).with_max_len(1);
            pairs.map(|(checker, row)| is_extendable(checker, row)).collect()
        }
    }
}

fn is_extendable(matcher: &mut Matcher, row: &[TokenId]) -> Result<bool, MatchError> {
    let constraint: Constraint = matcher.constraint().clone();
    let vocabulary = constraint.vocabulary();
    let end = row.iter().position(|token| vocabulary.eos().contains(token)).map_or(row.len(), |eos| eos + 1);
    if !row[end..].iter().all(|&token| is_tail(vocabulary, token)) {
        return Ok(false);
    }
    matcher.reset();
    Ok(matcher.validate(&row[..end])? == end)
}
