//! The loop itself.

use std::ops::Range;
use std::time::Instant;

use anygram_bits::Random;
use anygram_left_to_right::Constraint;
use anygram_vocab::TokenId;

use super::model::{Model, OpenSlots, View};
use super::options::{DecodeOptions, Order, Pace, Revision, Sampling};
use super::rows::{Candidate, Rows};
use super::strategy::{Recovery, Strategy};
use super::trace::{Event, Ground, Judgement, Proposal, Trace, Why};
use super::{DecodeError, Decoded};
use crate::canvas::{Canvas, Slot};

/// Fills a canvas.
pub fn run(
    constraint: &Constraint,
    strategy: &mut dyn Strategy,
    canvas: &Canvas,
    model: &mut dyn Model,
    options: &DecodeOptions,
) -> Result<Decoded, DecodeError> {
    if let Some(fault) = options.fault() {
        return Err(DecodeError::Options(fault));
    }
    let (columns, size) = (model.vocabulary_size(), constraint.vocabulary().len());
    if columns < size {
        return Err(DecodeError::Columns { columns, size });
    }
    if options.revision == Revision::Renew && model.open_slots() == OpenSlots::Next {
        return Err(DecodeError::Options(
            "a model that knows only the next token cannot fill all slots anew",
        ));
    }
    let mut run = Run::new(constraint, strategy, canvas, model, options);
    let is_stuck = run.fill_blocks()? == Progress::Stuck;
    let canvas = Canvas::new(run.slots, run.end.end());
    Ok(Decoded { canvas, is_stuck, trace: run.trace })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Made,
    Stuck,
}

struct Run<'a> {
    constraint: &'a Constraint,
    strategy: &'a mut dyn Strategy,
    model: &'a mut dyn Model,
    options: &'a DecodeOptions,
    /// Only for how the canvas has to end.
    end: Canvas,
    /// The canvas without its gaps.
    slots: Vec<Slot>,
    /// Before which slots there are gaps.
    gaps: Vec<usize>,
    /// The slots that are the loop's to fill, and to take back.
    ours: Vec<bool>,
    trace: Trace,
    step: usize,
    refusals_left: usize,
    inserted_left: usize,
    taken_left: usize,
    random: Random,
}

impl<'a> Run<'a> {
    fn new(
        constraint: &'a Constraint,
        strategy: &'a mut dyn Strategy,
        canvas: &Canvas,
        model: &'a mut dyn Model,
        options: &'a DecodeOptions,
    ) -> Self {
        strategy.begin(options.seed);
        let (mut slots, mut gaps) = (Vec::new(), Vec::new());
        for slot in canvas.slots() {
            if *slot == Slot::Gap { gaps.push(slots.len()) } else { slots.push(*slot) }
        }
        Self {
            refusals_left: options.refusals.unwrap_or(strategy.refusals()),
            inserted_left: options.inserted,
            taken_left: if let Revision::TakeBack { most, .. } = options.revision { most } else { 0 },
            ours: slots.iter().map(|slot| *slot == Slot::Hole).collect(),
            end: Canvas::new(Vec::new(), canvas.end()),
            random: Random::new(options.seed),
            trace: Trace::default(),
            step: 0,
            constraint,
            strategy,
            model,
            options,
            slots,
            gaps,
        }
    }

    fn fill_blocks(&mut self) -> Result<Progress, DecodeError> {
        if !self.gaps.is_empty() {
            let begun = Instant::now();
            let room = self.strategy.room(&self.with_gaps(&self.slots), self.inserted_left)?;
            if let Some(room) = room {
                self.insert(&room, begun);
            }
        }
        // An insertion can leave holes in a block that was done.
        while let Some(hole) = self.slots.iter().position(|slot| *slot == Slot::Hole) {
            let size = self.options.block.unwrap_or(usize::MAX);
            if self.fill_block(hole - hole % size)? == Progress::Stuck {
                return Ok(Progress::Stuck);
            }
        }
        Ok(Progress::Made)
    }

    /// The slots of the block that begins here.
    fn block(&self, first: usize) -> Range<usize> {
        let size = self.options.block.unwrap_or(usize::MAX);
        first..first.saturating_add(size).min(self.slots.len())
    }

    fn fill_block(&mut self, first: usize) -> Result<Progress, DecodeError> {
        let size = self.options.block.unwrap_or(self.slots.len()).max(1);
        let n_blocks = self.slots.len().div_ceil(size).max(1);
        let steps = (self.options.steps / n_blocks).max(1);
        let renews = self.options.revision == Revision::Renew;
        let mut is_done = false;
        for step in 0.. {
            let within = self.block(first);
            // With everything open again a block is done when all of it was kept at once, or when there are
            // no more steps.
            let is_last = step + 1 >= steps;
            if self.holes(&within).next().is_none() && (!renews || is_done || step >= steps) {
                break;
            }
            let mut rows = self.ask()?;
            let n_taken = self.revise(&mut rows, &within, renews && step < steps);
            // A model that knows only the next token has one row.
            let n_open = rows.open().filter(|slot| within.contains(slot)).count();
            let quota = match self.options.pace {
                _ if n_open == 0 => 0,
                Pace::Even if !renews => n_open.div_ceil(steps.saturating_sub(step).max(1)),
                Pace::Tokens(count) => count.min(n_open),
                // Everything is open again anyway: as many as would have been kept by now.
                Pace::Even => (n_open * (step + 1)).div_ceil(steps).min(n_open),
                Pace::Threshold(_) | Pace::EntropyBound(_) => n_open,
            };
            let sampling = self.options.sampling.at(step, steps);
            let n_filled = self.propose(&mut rows, &within, quota, is_last, sampling)?;
            is_done = self.holes(&within).next().is_none();
            self.step += 1;
            if n_filled == 0 && n_taken == 0 {
                return Ok(Progress::Stuck);
            }
        }
        Ok(Progress::Made)
    }

    fn holes(&self, within: &Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let within = within.clone();
        within.filter(|&slot| self.slots[slot] == Slot::Hole)
    }

    fn canvas(&self) -> Canvas {
        Canvas::new(self.slots.clone(), self.end.end())
    }

    /// Asks the model.
    fn ask(&mut self) -> Result<Rows, DecodeError> {
        let size = self.constraint.vocabulary().len();
        let shown = self.model.open_slots();
        let revises = self.options.revision != Revision::Stay;
        let is_wanted = |slot: &usize| self.slots[*slot] == Slot::Hole || revises && self.ours[*slot];
        let mut wanted: Vec<usize> = (0..self.slots.len()).filter(is_wanted).collect();
        let mut tokens = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            match (slot, shown) {
                (Slot::Fixed(token), _) => tokens.push(*token),
                (_, OpenSlots::Mask(mask)) => tokens.push(mask),
                (_, OpenSlots::Noise) => tokens.push(TokenId::new(self.random.below(size.max(1)))),
                (_, OpenSlots::Next) => {
                    wanted = vec![tokens.len()];
                    break;
                }
            }
        }
        let n_open = self.slots.iter().filter(|slot| **slot == Slot::Hole).count();
        let columns = self.model.vocabulary_size();
        let mut values = vec![0.0; wanted.len() * columns];
        let begun = Instant::now();
        let view = View { tokens: &tokens, wanted: &wanted, step: self.step, steps: self.options.steps };
        self.model.log_probs(&view, &mut values).map_err(DecodeError::Model)?;
        self.trace.push(Event::Asked { step: self.step, n_open }, micros(begun));
        let mask =
            if let OpenSlots::Mask(mask) = shown { Some(mask) } else { self.constraint.vocabulary().mask() };
        let mut rows = Rows::new(&wanted, &values, columns, size, mask)?;
        wanted.iter().for_each(|&slot| rows.set_open(slot, self.slots[slot] == Slot::Hole));
        Ok(rows)
    }

    /// Takes tokens back that do not last; returns how many.
    fn revise(&mut self, rows: &mut Rows, within: &Range<usize>, renews: bool) -> usize {
        let mut n_taken = 0;
        for slot in within.clone() {
            let Slot::Fixed(token) = self.slots[slot] else { continue };
            let is_unlikely = match self.options.revision {
                Revision::TakeBack { below, .. } => {
                    rows.has(slot) && rows.log_prob(slot, token).exp() < below
                }
                Revision::Stay | Revision::Renew => false,
            };
            if !self.ours[slot] || !(renews || is_unlikely && self.taken_left > n_taken) {
                continue;
            }
            self.slots[slot] = Slot::Hole;
            rows.set_open(slot, true);
            self.trace.push(Event::TakenBack { step: self.step, slot, token }, 0.0);
            n_taken += 1;
        }
        if !renews {
            self.taken_left -= n_taken;
        }
        n_taken
    }

    /// Proposes tokens, the surest first, until enough are kept; returns how many slots were filled.
    fn propose(
        &mut self,
        rows: &mut Rows,
        within: &Range<usize>,
        quota: usize,
        is_last: bool,
        sampling: Sampling,
    ) -> Result<usize, DecodeError> {
        let order =
            if let Pace::EntropyBound(_) = self.options.pace { Order::Entropy } else { self.options.order };
        let (mut n_kept, mut sum, mut largest) = (0, 0.0, 0.0f64);
        let can_insert = !self.gaps.is_empty() && self.inserted_left > 0;
        rows.by_likeliest(order == Order::Confidence && sampling.temperature == 0.0 && !can_insert);
        self.restrict(rows, true)?;
        while n_kept < quota && self.holes(within).next().is_some() {
            let candidate = rows.surest(within, order, sampling, &mut self.random);
            let Some(candidate) = candidate.filter(|_| self.refusals_left > 0) else {
                return Ok(n_kept + self.rescue(rows, within, quota - n_kept)?);
            };
            if n_kept > 0 && !is_last && self.is_enough(&candidate, sum, largest) {
                break;
            }
            let Some(has_grown) = self.try_candidate(rows, &candidate)? else {
                self.refusals_left -= 1;
                rows.refuse(candidate.slot, candidate.token);
                let begun = Instant::now();
                match self.strategy.refused(&self.canvas(), rows, sampling)? {
                    Recovery::Propose => continue,
                    Recovery::Restrict => {
                        self.restrict(rows, false)?;
                        continue;
                    }
                    // The context is another one now.
                    Recovery::Fill(pairs) => {
                        let each = micros(begun) / pairs.len().max(1) as f64;
                        return Ok(n_kept + self.fill(rows, &pairs, Why::Recovery, each));
                    }
                }
            };
            n_kept += 1;
            sum += candidate.entropy;
            largest = largest.max(candidate.entropy);
            if has_grown {
                // What the model said is about another canvas.
                break;
            }
            if n_kept < quota {
                self.restrict(rows, false)?;
            }
        }
        Ok(n_kept)
    }

    /// Whether a candidate is one too many for the pace.
    fn is_enough(&self, candidate: &Candidate, sum: f64, largest: f64) -> bool {
        match self.options.pace {
            Pace::Even | Pace::Tokens(_) => false,
            Pace::Threshold(probability) => candidate.log_prob.exp() < probability,
            Pace::EntropyBound(bound) => sum + candidate.entropy - largest.max(candidate.entropy) > bound,
        }
    }

    fn restrict(&mut self, rows: &mut Rows, is_first: bool) -> Result<(), DecodeError> {
        let begun = Instant::now();
        self.strategy.restrict(&self.canvas(), rows, is_first)?;
        let time = micros(begun);
        let left: Vec<(usize, usize)> = rows.restricted().map(|slot| (slot, rows.n_left(slot))).collect();
        if !left.is_empty() {
            self.trace.push(Event::Restricted { step: self.step, left }, time);
        }
        Ok(())
    }

    /// Puts a token, if the strategy keeps it; `None` if not, otherwise whether slots were inserted for it.
    fn try_candidate(&mut self, rows: &mut Rows, candidate: &Candidate) -> Result<Option<bool>, DecodeError> {
        let &Candidate { slot, token, log_prob, .. } = candidate;
        let begun = Instant::now();
        let mut tried = self.slots.clone();
        tried[slot] = Slot::Fixed(token);
        let tail = self.after_eos(&tried, slot, token);
        tail.iter().for_each(|&(slot, token)| tried[slot] = Slot::Fixed(token));
        let canvas = Canvas::new(tried, self.end.end());
        let mut judgement = self.strategy.judge(&canvas, slot, token, rows)?;
        let mut room = None;
        if !judgement.kept && !self.gaps.is_empty() && self.inserted_left > 0 {
            room = self.strategy.room(&self.with_gaps(canvas.slots()), self.inserted_left)?;
            if room.is_some() {
                judgement = Judgement { kept: true, proven: true, ground: Ground::Insertion };
            }
        }
        let proposal = Proposal { step: self.step, slot, token, log_prob, judgement };
        self.trace.push(Event::Proposed(proposal), micros(begun));
        if !judgement.kept {
            return Ok(None);
        }
        self.slots[slot] = Slot::Fixed(token);
        rows.set_open(slot, false);
        self.fill(rows, &tail, Why::AfterEos, 0.0);
        if let Some(room) = &room {
            self.insert(room, Instant::now());
        }
        Ok(Some(room.is_some()))
    }

    /// What comes to stand behind a slot if an EOS is put there: EOS in the holes, and if the strategy says
    /// so, over the loop's own tokens.
    fn after_eos(&self, slots: &[Slot], slot: usize, token: TokenId) -> Vec<(usize, TokenId)> {
        if !self.constraint.vocabulary().eos().contains(&token) {
            return Vec::new();
        }
        let overwrites = self.strategy.overwrites_after_eos();
        let is_filled = |&at: &usize| slots[at] == Slot::Hole || overwrites && self.ours[at];
        (slot + 1..slots.len()).filter(is_filled).map(|at| (at, token)).collect()
    }

    /// Fills slots without asking; returns how many.
    fn fill(&mut self, rows: &mut Rows, pairs: &[(usize, TokenId)], why: Why, micros: f64) -> usize {
        for &(slot, token) in pairs {
            if self.slots[slot] == Slot::Fixed(token) {
                continue;
            }
            self.slots[slot] = Slot::Fixed(token);
            rows.set_open(slot, false);
            self.trace.push(Event::Filled { step: self.step, slot, token, why }, micros);
            if why == Why::Recovery {
                let tail = self.after_eos(&self.slots, slot, token);
                self.fill(rows, &tail, Why::AfterEos, 0.0);
            }
        }
        pairs.len()
    }

    /// Fills slots of the block, the surest first, as a completion has them; returns how many.
    fn rescue(&mut self, rows: &mut Rows, within: &Range<usize>, quota: usize) -> Result<usize, DecodeError> {
        let begun = Instant::now();
        let Some(whole) = self.strategy.rescue(&self.canvas(), rows)? else { return Ok(0) };
        let sureness = |slot: usize| (rows.log_prob(slot, whole[slot]), slot);
        let mut open: Vec<(f64, usize)> = self.holes(within).map(sureness).collect();
        open.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let pairs: Vec<(usize, TokenId)> =
            open.iter().take(quota).map(|&(_, slot)| (slot, whole[slot])).collect();
        let each = micros(begun) / pairs.len().max(1) as f64;
        Ok(self.fill(rows, &pairs, Why::Rescue, each))
    }

    fn with_gaps(&self, slots: &[Slot]) -> Canvas {
        let mut open = Vec::with_capacity(slots.len() + self.gaps.len());
        let mut gaps = self.gaps.iter().peekable();
        for at in 0..=slots.len() {
            while gaps.next_if(|gap| **gap == at).is_some() {
                open.push(Slot::Gap);
            }
            open.extend(slots.get(at));
        }
        Canvas::new(open, self.end.end())
    }

    /// Inserts holes before the gaps, so many before each.
    fn insert(&mut self, room: &[usize], begun: Instant) {
        let time = micros(begun);
        let mut n_before = 0;
        for (gap, &count) in self.gaps.iter_mut().zip(room) {
            *gap += n_before;
            self.slots.splice(*gap..*gap, vec![Slot::Hole; count]);
            self.ours.splice(*gap..*gap, vec![true; count]);
            if count > 0 {
                self.trace.push(Event::Inserted { step: self.step, slot: *gap, count }, time);
            }
            *gap += count;
            n_before += count;
        }
        self.inserted_left -= n_before;
    }
}

fn micros(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6
}
