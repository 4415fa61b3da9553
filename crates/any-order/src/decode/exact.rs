//! Ours: what is kept leaves the canvas completable, exactly.

use anygram_left_to_right::Constraint;
use anygram_vocab::TokenId;

use super::DecodeError;
use super::rows::Rows;
use super::strategy::{Seeds, Strategy};
use super::trace::{Ground, Judgement};
use crate::admissible::Admissible;
use crate::canvas::{Canvas, Slot};
use crate::decision::Decision;
use crate::solver::{Filling, Solver, Witness};
use crate::weigh::{SampleOptions, Tail, Weigher};

/// How tokens are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ExactBy {
    /// Propose only admissible tokens. For holes with undecided tokens propose any token and judge it.
    #[default]
    Admissible,
    /// Propose any token and judge it.
    Compatible,
    /// The surest of the best completion.
    Best,
    /// The surest of a sample of the completions.
    Sample,
}

/// Keeps a canvas that is completable so after every step: a run always ends with what the canvas asks for,
/// unless a limit is hit.
pub struct Exact {
    solver: Solver,
    weigher: Weigher,
    by: ExactBy,
    tail: Tail,
    temperature: f64,
    listed: Option<usize>,
    seeds: Seeds,
    /// What is known since the last restriction.
    known: Known,
    /// The masks of the canvas that the last run began with. Runs of one task begin with the same canvas,
    /// where most slots are open and masks cost most; with re-noising each step does.
    opening: Option<(Canvas, Admissible)>,
    is_opening: bool,
}

#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    /// The masks of these slots hold for the first token that is kept.
    Masks(Vec<usize>),
    /// A completion; its tokens can be kept together.
    Whole(Vec<TokenId>),
}

impl Exact {
    /// For a constraint.
    pub fn new(constraint: &Constraint, by: ExactBy) -> Result<Self, DecodeError> {
        Ok(Self {
            solver: Solver::new(constraint)?,
            weigher: Weigher::new(constraint)?,
            by,
            tail: Tail::default(),
            temperature: 1.0,
            listed: None,
            seeds: Seeds::new(0),
            known: Known::Nothing,
            opening: None,
            is_opening: true,
        })
    }

    /// Whether what stands behind the EOS of a best or drawn completion counts.
    pub fn tail(mut self, tail: Tail) -> Self {
        self.tail = tail;
        self
    }

    /// Samples completions from log-probabilities divided by this.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = temperature;
        self
    }

    /// Lists only so many tokens of each hole for the best or drawn completion; the others weigh the lowest
    /// listed less 10. For large vocabularies.
    pub fn listed(mut self, listed: usize) -> Self {
        self.listed = Some(listed);
        self
    }

    fn is_completable(&mut self, canvas: &Canvas) -> Result<Option<bool>, DecodeError> {
        Ok(self.solver.completable(canvas)?.decided())
    }

    fn whole(&mut self, canvas: &Canvas, rows: &Rows) -> Result<Option<Vec<TokenId>>, DecodeError> {
        let found = if self.by == ExactBy::Sample {
            let log_probs = rows.log_probs(canvas, self.listed, self.temperature)?;
            let options = SampleOptions { tail: self.tail, seed: self.seeds.next(), count: 1 };
            let drawn = self.weigher.sample(canvas, &log_probs, options)?;
            if let Decision::Yes(mut drawn) = drawn { drawn.pop() } else { None }
        } else {
            let log_probs = rows.log_probs(canvas, self.listed, 0.0)?;
            let best = self.weigher.best(canvas, &log_probs, self.tail)?;
            if let Decision::Yes(best) = best { Some(best) } else { None }
        };
        Ok(found.map(|found| found.tokens))
    }

    fn restrict_to_masks(&mut self, canvas: &Canvas, rows: &mut Rows) -> Result<(), DecodeError> {
        let is_opening = std::mem::take(&mut self.is_opening);
        let known = self.opening.take_if(|(opening, _)| is_opening || opening == canvas);
        let known = known.filter(|(opening, _)| opening == canvas);
        let (admissible, keeps) = match known {
            Some((_, admissible)) => (admissible, true),
            None => (self.solver.admissible(canvas)?, is_opening),
        };
        let mut decided = Vec::new();
        let each = canvas.holes().zip(&admissible.masks).zip(&admissible.undecided);
        for ((slot, mask), undecided) in each {
            if undecided.is_none() {
                rows.restrict(slot, mask.words().to_vec());
                decided.push(slot);
            }
        }
        if keeps {
            self.opening = Some((canvas.clone(), admissible));
        }
        self.known = Known::Masks(decided);
        Ok(())
    }
}

impl Strategy for Exact {
    fn begin(&mut self, seed: u64) {
        self.seeds = Seeds::new(seed);
        self.known = Known::Nothing;
        self.is_opening = true;
    }

    fn restrict(&mut self, canvas: &Canvas, rows: &mut Rows, is_first: bool) -> Result<(), DecodeError> {
        if !is_first {
            // Masks still leave out what could not be put before, but what they have may not go with the
            // token that was kept.
            if let Known::Masks(_) = self.known {
                self.known = Known::Nothing;
            }
            return Ok(());
        }
        self.known = Known::Nothing;
        match self.by {
            ExactBy::Admissible => self.restrict_to_masks(canvas, rows)?,
            ExactBy::Compatible => {}
            ExactBy::Best | ExactBy::Sample => {
                if let Some(whole) = self.whole(canvas, rows)? {
                    canvas.holes().for_each(|slot| rows.restrict_to(slot, whole[slot]));
                    self.known = Known::Whole(whole);
                }
            }
        }
        Ok(())
    }

    fn judge(
        &mut self,
        canvas: &Canvas,
        slot: usize,
        token: TokenId,
        _rows: &Rows,
    ) -> Result<Judgement, DecodeError> {
        let ground = match &self.known {
            Known::Masks(decided) if decided.binary_search(&slot).is_ok() => Some(Ground::Mask),
            Known::Whole(whole) if whole.get(slot) == Some(&token) => Some(Ground::Completion),
            _ => None,
        };
        if let Some(ground) = ground {
            return Ok(Judgement { kept: true, proven: true, ground });
        }
        let completable = self.is_completable(canvas)?;
        Ok(Judgement {
            kept: completable == Some(true),
            proven: completable.is_some(),
            ground: Ground::Question,
        })
    }

    /// The best completion, even of tokens that the model excludes; where that is not known, the one that the
    /// solver found.
    fn rescue(&mut self, canvas: &Canvas, rows: &Rows) -> Result<Option<Vec<TokenId>>, DecodeError> {
        for log_probs in [rows.log_probs(canvas, self.listed, 0.0)?, rows.widened(canvas)?] {
            if let Decision::Yes(best) = self.weigher.best(canvas, &log_probs, self.tail)? {
                return Ok(Some(best.tokens));
            }
        }
        let Decision::Yes(witness) = self.solver.completable(canvas)? else { return Ok(None) };
        let token = |filling: &Filling| match filling {
            Filling::Token(token) => Some(*token),
            Filling::Tokens(_) => None,
        };
        Ok(witness.slots.iter().map(token).collect())
    }

    fn room(&mut self, canvas: &Canvas, most: usize) -> Result<Option<Vec<usize>>, DecodeError> {
        let is_gap = |slot: &&Slot| **slot == Slot::Gap;
        let closed: Vec<Slot> = canvas.slots().iter().filter(|slot| !is_gap(slot)).copied().collect();
        if self.is_completable(&Canvas::new(closed, canvas.end()))? == Some(true) {
            return Ok(Some(vec![0; canvas.slots().iter().filter(is_gap).count()]));
        }
        let known = self.solver.known().cloned();
        let Decision::Yes(witness) = self.solver.completable(canvas)? else { return Ok(None) };
        let in_gap = |filling: &Filling| match filling {
            Filling::Tokens(tokens) => Some(tokens.len()),
            Filling::Token(_) => None,
        };
        let room: Vec<usize> = witness.slots.iter().filter_map(in_gap).collect();
        if room.iter().sum::<usize>() > most {
            // What was known of the canvas as it is stays known.
            known.into_iter().for_each(|(canvas, witness)| self.solver.remember(canvas, witness));
            return Ok(None);
        }
        // With holes in place of the tokens in gaps it is known to be completable as well, however long that
        // would take to find out.
        let (mut slots, mut fillings) = (Vec::new(), Vec::new());
        for (&slot, filling) in canvas.slots().iter().zip(witness.slots) {
            match filling {
                Filling::Tokens(tokens) => {
                    slots.extend(tokens.iter().map(|_| Slot::Hole));
                    fillings.extend(tokens.into_iter().map(Filling::Token));
                }
                Filling::Token(_) => {
                    slots.push(slot);
                    fillings.push(filling);
                }
            }
        }
        let witness = Witness { slots: fillings, closing: witness.closing };
        self.solver.remember(Canvas::new(slots, canvas.end()), witness);
        Ok(Some(room))
    }

    /// Tokens are never given up for an EOS: what is kept stays.
    fn overwrites_after_eos(&self) -> bool {
        false
    }
}
