//! Ours: what is kept leaves the canvas completable, exactly.

use anygram_any_order::{
    AdmissibleRows, Canvas, Decision, Filling, SampleOptions, Slot, Solver, Tail, Weigher,
};
use anygram_left_to_right::Constraint;
use anygram_left_to_right::tokens::set_bit;
use anygram_vocab::TokenId;

use super::DecodeError;
use super::options::Sampling;
use super::rows::Rows;
use super::strategy::{REFUSALS, Recovery, Seeds, Strategy};
use super::trace::{Ground, Judgement};

/// The part of the steps `canvas_steps` that a question takes at most which is one of many in a step, as
/// those about single tokens are: what is not decided by then hardly ever is, and another token will do.
const PART_OF_ONE: u64 = 8;

/// Tokens of a step that may be refused because a limit was hit; where it was so with some, it will be with
/// others.
const MOST_UNDECIDED: usize = 4;

/// How tokens are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ExactBy {
    /// Propose only tokens that rows of admissible tokens do not exclude, and judge them one by one where
    /// that suffices; otherwise, and after many refusals, by the complete sets.
    #[default]
    Admissible,
    /// Propose any token and judge it; after many refusals by the complete sets.
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
    /// The rows of the canvas that the last run began with, as they were at first. Runs of one task begin
    /// with the same canvas, where most slots are open and rows cost most; with re-noising each step does.
    opening: Option<AdmissibleRows>,
    is_opening: bool,
    /// What is known of the rows of the canvas as it was last.
    rows: Option<AdmissibleRows>,
    /// How many refusals the complete sets wait for, how many there were, and whether it is so many.
    refusals: usize,
    n_refused: usize,
    wants_all: bool,
    /// How many of the step's tokens were refused because a limit was hit.
    n_undecided: usize,
    /// Whether tokens are judged one by one until then.
    is_on_demand: bool,
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
        let steps = constraint.language().limits().canvas_steps;
        let few = steps / PART_OF_ONE;
        let is_whole = matches!(by, ExactBy::Best | ExactBy::Sample);
        Ok(Self {
            solver: Solver::new(constraint)?.steps(few),
            weigher: Weigher::new(constraint)?.steps(if is_whole { steps } else { few }),
            by,
            tail: Tail::default(),
            temperature: 1.0,
            listed: None,
            seeds: Seeds::new(0),
            known: Known::Nothing,
            opening: None,
            is_opening: true,
            rows: None,
            refusals: AdmissibleRows::REFUSALS,
            n_refused: 0,
            wants_all: false,
            n_undecided: 0,
            is_on_demand: false,
        })
    }

    /// Makes the complete sets of admissible tokens after so many refusals in a step; at 0 at once. What is
    /// kept is the same, as long as no limit leaves a token undecided.
    pub fn complete_after(mut self, refusals: usize) -> Self {
        self.refusals = refusals;
        self
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

    /// Leaves what rows do not exclude, of the complete sets if these are wanted. Where a row is decided its
    /// tokens need not be judged.
    fn restrict_to_rows(&mut self, canvas: &Canvas, rows: &mut Rows) -> Result<(), DecodeError> {
        let is_opening = std::mem::take(&mut self.is_opening);
        let opening = self.opening.take_if(|known| is_opening || known.canvas() == canvas);
        let opening = opening.filter(|known| known.canvas() == canvas);
        let keeps = is_opening || opening.is_some();
        let known = self.rows.take().and_then(|known| known.filled(canvas)).or(opening);
        let mut known = match known {
            Some(known) => known,
            None => self.solver.rows(canvas)?,
        };
        if std::mem::take(&mut self.wants_all) {
            known.complete(&mut self.solver)?;
        }
        let is_complete = known.is_complete();
        let each = canvas.holes().zip(known.at_least().iter().zip(known.at_most()));
        let mut decided = Vec::new();
        let eos = self.solver.constraint().vocabulary().eos().to_vec();
        for (slot, (least, most)) in each {
            let mut words = most.words().to_vec();
            // Rows know nothing of an EOS that replaces what stands behind it.
            let ended = eos.first().and_then(|&eos| rows.ended(canvas, slot, eos));
            if let Some(ended) = ended
                && (!is_complete || self.solver.completable(&ended)?.is_yes())
            {
                eos.iter().for_each(|eos| set_bit(&mut words, eos.index()));
            }
            rows.restrict(slot, words);
            if is_complete && least == most {
                decided.push(slot);
            }
        }
        if keeps {
            self.opening = Some(known.clone());
        }
        self.rows = Some(known);
        self.known = Known::Masks(decided);
        Ok(())
    }

    /// What rows say of a token of a canvas, asked only if it is not known.
    fn is_allowed(
        &mut self,
        canvas: &Canvas,
        slot: usize,
        token: TokenId,
    ) -> Result<Option<bool>, DecodeError> {
        let mut slots = canvas.slots().to_vec();
        slots[slot] = Slot::Hole;
        let before = Canvas::new(slots, canvas.end());
        // Of an EOS it is asked with all that comes to stand behind it.
        let is_eos = self.solver.constraint().vocabulary().eos().contains(&token);
        let known = if is_eos { None } else { self.rows.take().and_then(|rows| rows.filled(&before)) };
        let hole = before.holes().position(|hole| hole == slot);
        let (Some(mut rows), Some(hole)) = (known, hole) else {
            return Ok(self.solver.completable(canvas)?.decided());
        };
        let answer = rows.row(&mut self.solver, hole)?.allows(token)?;
        self.rows = Some(rows);
        Ok(answer.decided())
    }
}

impl Strategy for Exact {
    fn begin(&mut self, seed: u64) {
        self.seeds = Seeds::new(seed);
        self.known = Known::Nothing;
        self.is_opening = true;
        self.rows = None;
    }

    /// The rows of the canvas; the complete sets if they will be wanted at once.
    fn prepare(&mut self, canvas: &Canvas, is_by_confidence: bool) -> Result<(), DecodeError> {
        if self.by != ExactBy::Admissible {
            return Ok(());
        }
        let known = self.rows.take().and_then(|known| known.filled(canvas));
        let known = known.or_else(|| self.opening.clone().filter(|known| known.canvas() == canvas));
        let mut known = match known {
            Some(known) => known,
            None => self.solver.rows(canvas)?,
        };
        if !is_by_confidence || self.refusals == 0 {
            known.complete(&mut self.solver)?;
        }
        self.rows = Some(known);
        Ok(())
    }

    fn restrict(&mut self, canvas: &Canvas, rows: &mut Rows, is_first: bool) -> Result<(), DecodeError> {
        if is_first {
            let (asks, judges) = match self.by {
                ExactBy::Admissible => (true, rows.is_by_confidence()),
                ExactBy::Compatible => (true, true),
                ExactBy::Best | ExactBy::Sample => (false, false),
            };
            self.is_on_demand = judges && self.refusals > 0;
            (self.wants_all, self.n_refused) = (asks && !self.is_on_demand, 0);
            self.n_undecided = 0;
        } else if !self.wants_all {
            // Masks still leave out what could not be put before, but what they have may not go with the
            // token that was kept.
            if let Known::Masks(_) = self.known {
                self.known = Known::Nothing;
            }
            return Ok(());
        }
        self.known = Known::Nothing;
        match self.by {
            ExactBy::Admissible => self.restrict_to_rows(canvas, rows)?,
            ExactBy::Compatible if !self.wants_all => {}
            ExactBy::Compatible => self.restrict_to_rows(canvas, rows)?,
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
        let completable = match self.by {
            ExactBy::Admissible => self.is_allowed(canvas, slot, token)?,
            _ => self.is_completable(canvas)?,
        };
        self.n_undecided += usize::from(completable.is_none());
        Ok(Judgement {
            kept: completable == Some(true),
            proven: completable.is_some(),
            ground: Ground::Question,
        })
    }

    /// A token behind the end makes the text longer than the model wants it, and rules out those by which it
    /// ends.
    fn ends(&mut self, ended: &Canvas) -> Result<bool, DecodeError> {
        Ok(self.is_completable(ended)? == Some(true))
    }

    /// Rows of an older canvas would still hold, but which are known depends on when they were prepared.
    fn taken_back(&mut self) {
        self.rows = None;
    }

    fn refused(
        &mut self,
        _canvas: &Canvas,
        _rows: &Rows,
        _sampling: Sampling,
    ) -> Result<Recovery, DecodeError> {
        if self.n_undecided == MOST_UNDECIDED {
            // Once a step.
            self.n_undecided += 1;
            return Ok(Recovery::Rescue);
        }
        self.n_refused += 1;
        if !self.is_on_demand || self.n_refused < self.refusals {
            return Ok(Recovery::Propose);
        }
        (self.wants_all, self.n_refused) = (true, 0);
        Ok(Recovery::Restrict)
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
            if let Some((canvas, witness)) = known {
                self.solver.remember(canvas, witness.slots)?;
            }
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
        self.solver.remember(Canvas::new(slots, canvas.end()), fillings)?;
        Ok(Some(room))
    }

    /// On demand many tokens are refused that complete sets would not have proposed.
    fn refusals(&self) -> usize {
        if self.by == ExactBy::Admissible { 16 * REFUSALS } else { REFUSALS }
    }
}
