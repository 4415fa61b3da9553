//! The loop itself, one question at a time.

use std::ops::Range;
use std::time::Instant;

use anygram_any_order::error::CanvasCause;
use anygram_any_order::{Canvas, CanvasError, Slot};
use anygram_bits::Random;
use anygram_left_to_right::Constraint;
use anygram_vocab::TokenId;

use super::model::{Answer, OpenSlots, View};
use super::options::{DecodeOptions, Order, Pace, Revision, Sampling};
use super::rows::{Candidate, Rows};
use super::strategy::{Recovery, Strategy};
use super::trace::{Event, Ground, Judgement, Proposal, Trace, Why};
use super::{DecodeError, Decoded};

/// A run: what is filled so far, and where in which block it is. The strategy belongs to the decoder.
#[derive(Clone, Debug)]
pub struct Run {
    constraint: Constraint,
    options: DecodeOptions,
    open_slots: OpenSlots,
    /// Only for how the canvas has to end.
    end: Canvas,
    /// The canvas without its gaps.
    slots: Vec<Slot>,
    /// Before which slots there are gaps.
    gaps: Vec<usize>,
    /// The slots that are the loop's to fill, and to take back.
    ours: Vec<bool>,
    trace: Trace,
    /// Microseconds of the constraint that no event has yet.
    spent: f64,
    step: usize,
    refusals_left: usize,
    inserted_left: usize,
    taken_left: usize,
    random: Random,
    /// Whether room was made in the gaps.
    has_begun: bool,
    is_stuck: bool,
    block: Option<Block>,
    question: Option<Question>,
}

/// The block that is being filled.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: usize,
    /// Steps in it so far, and how many there are.
    step: usize,
    steps: usize,
    /// Whether all of it was kept in the last step.
    is_done: bool,
    /// Steps since it has no holes.
    n_edits: usize,
}

/// What the model was asked, until it answers.
#[derive(Clone, Debug)]
struct Question {
    tokens: Vec<TokenId>,
    wanted: Vec<usize>,
    n_open: usize,
    asked: Instant,
}

/// What a step proposes.
struct Proposed<'a> {
    given: &'a [(usize, TokenId)],
    quota: usize,
    is_last: bool,
    sampling: Sampling,
    is_by_confidence: bool,
}

impl Run {
    /// `strategy` is that of the decoder, which this run begins.
    pub fn new(
        constraint: &Constraint,
        strategy: &mut dyn Strategy,
        canvas: &Canvas,
        open_slots: OpenSlots,
        options: &DecodeOptions,
    ) -> Result<Self, DecodeError> {
        if let Some(fault) = options.fault() {
            return Err(DecodeError::Options(fault));
        }
        let asks_again = matches!(options.revision, Revision::Renew | Revision::Edit { .. });
        if asks_again && open_slots == OpenSlots::Next {
            return Err(DecodeError::Options(
                "a model that knows only the next token cannot fill slots anew: take `stay`",
            ));
        }
        strategy.begin(options.seed);
        let (mut slots, mut gaps) = (Vec::new(), Vec::new());
        for slot in canvas.slots() {
            if *slot == Slot::Gap { gaps.push(slots.len()) } else { slots.push(*slot) }
        }
        Ok(Self {
            refusals_left: options.refusals.unwrap_or(strategy.refusals()),
            inserted_left: options.inserted,
            taken_left: if let Revision::TakeBack { most, .. } = options.revision { most } else { 0 },
            ours: slots.iter().map(|slot| *slot == Slot::Hole).collect(),
            end: Canvas::new(Vec::new(), canvas.end()),
            random: Random::new(options.seed),
            trace: Trace::default(),
            spent: 0.0,
            step: 0,
            constraint: constraint.clone(),
            options: *options,
            open_slots,
            slots,
            gaps,
            has_begun: false,
            is_stuck: false,
            block: None,
            question: None,
        })
    }

    /// What the model is asked next; `None` if there is nothing more to fill. The same until it is answered.
    pub fn view(&mut self, strategy: &mut dyn Strategy) -> Result<Option<View<'_>>, DecodeError> {
        if self.question.is_none() {
            if !self.goes_on(strategy)? {
                return Ok(None);
            }
            self.question = Some(self.ask());
        }
        let (step, steps) = (self.step, self.options.steps);
        Ok(self.question.as_mut().map(|question| {
            question.asked = Instant::now();
            View { tokens: &question.tokens, wanted: &question.wanted, step, steps }
        }))
    }

    /// Work of the next step that needs no answer, while the model makes it.
    pub fn prepare(&mut self, strategy: &mut dyn Strategy) -> Result<(), DecodeError> {
        let (Some(block), Some(_)) = (self.block, &self.question) else { return Ok(()) };
        let mut slots = self.slots.clone();
        if self.options.revision == Revision::Renew && block.step < block.steps {
            for slot in self.range(block.first).filter(|&slot| self.ours[slot]) {
                slots[slot] = Slot::Hole;
            }
        }
        strategy.prepare(&Canvas::new(slots, self.end.end()), self.is_by_confidence())
    }

    /// Goes on by what the model answered. Tokens that are `given` are proposed first, in their order, and no
    /// more are kept than there are of them.
    pub fn answer(
        &mut self,
        strategy: &mut dyn Strategy,
        answer: Answer<'_>,
        given: Option<&[(usize, TokenId)]>,
    ) -> Result<(), DecodeError> {
        let (Some(question), Some(mut block)) = (self.question.take(), self.block) else {
            return Err(DecodeError::Options("an answer without a question: ask for the view before"));
        };
        // The model's time ends here; making rows of its answer is ours.
        let asked = micros(question.asked);
        let mut rows = match self.rows(&question, answer) {
            Ok(rows) => rows,
            Err(error) => {
                // It can be answered again.
                self.question = Some(question);
                return Err(error);
            }
        };
        self.trace.push(Event::Asked { step: self.step, n_open: question.n_open }, asked);
        question.wanted.iter().for_each(|&slot| rows.set_open(slot, self.slots[slot] == Slot::Hole));
        let within = self.range(block.first);
        let was_open = self.holes(&within).next().is_some();
        let renews = self.options.revision == Revision::Renew;
        let (step, steps) = (block.step, block.steps);
        rows.set_ours((0..self.slots.len()).filter(|&slot| self.ours[slot]).collect());
        let mut n_taken = self.revise(&mut rows, &within, renews && step < steps);
        // Behind where the text ends by what the model says now, nothing stands. (With everything open again
        // nothing does, and in the last step all has to be filled.)
        let mut text = within.clone();
        if step + 1 < steps && !renews && given.is_none() {
            let begun = Instant::now();
            let end = self.end_of_text(strategy, &rows, &within)?;
            self.spent += micros(begun);
            if let Some(end) = end {
                n_taken += self.take_back_behind(end);
                text.end = end + 1;
            }
        }
        if n_taken > 0 && !renews {
            strategy.taken_back();
        }
        // A model that knows only the next token has one row.
        let n_open = rows.open().filter(|slot| within.contains(slot)).count();
        let quota = match self.options.pace {
            _ if given.is_some() => given.map_or(0, <[_]>::len).min(n_open),
            _ if n_open == 0 => 0,
            Pace::Even if !renews => n_open.div_ceil(steps.saturating_sub(step).max(1)),
            Pace::Tokens(count) => count.min(n_open),
            // Everything is open again anyway: as many as would have been kept by now.
            Pace::Even => (n_open * (step + 1)).div_ceil(steps).min(n_open),
            Pace::Threshold(_) | Pace::EntropyBound(_) => n_open,
        };
        let proposed = Proposed {
            given: given.unwrap_or_default(),
            quota,
            // With everything open again a block is done when all of it was kept at once, or when there are
            // no more steps. What is given has its own pace.
            is_last: step + 1 >= steps || given.is_some(),
            sampling: self.options.sampling.at(step, steps),
            is_by_confidence: self.is_by_confidence() && given.is_none(),
        };
        let before: Vec<Slot> = self.slots.clone();
        let n_filled = self.propose(strategy, &mut rows, &text, &proposed)?;
        let n_edited = self.edit(strategy, &mut rows, &within, &before)?;
        block.is_done = self.holes(&within).next().is_none();
        block.step += 1;
        if !was_open {
            // Edits that change nothing, or go on for too long, end the block.
            block.n_edits = if n_edited == 0 { usize::MAX } else { block.n_edits + 1 };
        }
        self.step += 1;
        self.block = Some(block);
        // Where only edits are left, or nothing was to be kept, nothing is missing.
        let was_due = was_open && (quota > 0 || given.is_none());
        self.is_stuck = was_due && n_filled == 0 && n_taken == 0 && n_edited == 0;
        Ok(())
    }

    /// The slots as they are; holes where nothing was kept yet.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// How it ended.
    pub fn decoded(self) -> Decoded {
        let canvas = Canvas::new(self.slots, self.end.end());
        Decoded { canvas, is_stuck: self.is_stuck, trace: self.trace }
    }

    /// Whether something is to be filled, and where.
    fn goes_on(&mut self, strategy: &mut dyn Strategy) -> Result<bool, DecodeError> {
        if self.is_stuck {
            return Ok(false);
        }
        if !std::mem::replace(&mut self.has_begun, true) && !self.gaps.is_empty() {
            let begun = Instant::now();
            let room = strategy.room(&self.with_gaps(&self.slots), self.inserted_left)?;
            if let Some(room) = room {
                self.insert(&room, begun);
            }
        }
        let renews = self.options.revision == Revision::Renew;
        if let Some(block) = self.block {
            let is_full = self.holes(&self.range(block.first)).next().is_none();
            let edits = matches!(self.options.revision, Revision::Edit { most, .. } if block.n_edits < most);
            let renews = renews && !block.is_done && block.step < block.steps;
            if !is_full || renews || edits {
                return Ok(true);
            }
        }
        // An insertion can leave holes in a block that was done.
        let hole = self.slots.iter().position(|slot| *slot == Slot::Hole);
        self.block = hole.map(|hole| {
            let first = hole - hole % self.options.block.unwrap_or(usize::MAX);
            let size = self.options.block.unwrap_or(self.slots.len()).max(1);
            let n_blocks = self.slots.len().div_ceil(size).max(1);
            let steps = (self.options.steps / n_blocks).max(1);
            Block { first, step: 0, steps, is_done: false, n_edits: 0 }
        });
        Ok(self.block.is_some())
    }

    /// The slots of the block that begins here.
    fn range(&self, first: usize) -> Range<usize> {
        let size = self.options.block.unwrap_or(usize::MAX);
        first..first.saturating_add(size).min(self.slots.len())
    }

    fn is_by_confidence(&self) -> bool {
        let can_insert = !self.gaps.is_empty() && self.inserted_left > 0;
        self.order() == Order::Confidence && !can_insert
    }

    fn order(&self) -> Order {
        if let Pace::EntropyBound(_) = self.options.pace { Order::Entropy } else { self.options.order }
    }

    fn holes(&self, within: &Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let within = within.clone();
        within.filter(|&slot| self.slots[slot] == Slot::Hole)
    }

    fn canvas(&self) -> Canvas {
        Canvas::new(self.slots.clone(), self.end.end())
    }

    /// What to ask the model.
    fn ask(&mut self) -> Question {
        let size = self.constraint.vocabulary().len();
        let revises = self.options.revision != Revision::Stay;
        let is_wanted = |slot: &usize| self.slots[*slot] == Slot::Hole || revises && self.ours[*slot];
        let mut wanted: Vec<usize> = (0..self.slots.len()).filter(is_wanted).collect();
        let mut tokens = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            match (slot, self.open_slots) {
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
        Question { tokens, wanted, n_open, asked: Instant::now() }
    }

    fn rows(&self, question: &Question, answer: Answer<'_>) -> Result<Rows, DecodeError> {
        let size = self.constraint.vocabulary().len();
        let mask = if let OpenSlots::Mask(mask) = self.open_slots {
            Some(mask)
        } else {
            self.constraint.vocabulary().mask()
        };
        let wanted = &question.wanted[..];
        let n_rows = match answer {
            Answer::Dense { columns, .. } if columns < size => {
                return Err(DecodeError::Columns { columns, size });
            }
            Answer::Dense { values, columns } if !values.len().is_multiple_of(columns.max(1)) => {
                return Err(CanvasError::from(CanvasCause::Shape { n_values: values.len(), size }).into());
            }
            Answer::Dense { values, columns } => values.len() / columns.max(1),
            Answer::Rows(log_probs) => log_probs.rows().len(),
        };
        if n_rows != wanted.len() {
            return Err(DecodeError::Rows { n_rows, n_wanted: wanted.len() });
        }
        Ok(match answer {
            Answer::Dense { values, columns } => Rows::new(wanted, values, columns, size, mask)?,
            Answer::Rows(log_probs) => Rows::of(wanted, log_probs, size, mask)?,
        })
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
                Revision::Stay | Revision::Renew | Revision::Edit { .. } => false,
            };
            if !self.ours[slot] || !(renews || is_unlikely && self.taken_left > n_taken) {
                continue;
            }
            self.slots[slot] = Slot::Hole;
            rows.set_open(slot, true);
            self.push(Event::TakenBack { step: self.step, slot, token }, 0.0);
            n_taken += 1;
        }
        if !renews {
            self.taken_left -= n_taken;
        }
        n_taken
    }

    /// The slot where the model says that the text has ended, if the strategy says that it can: of those
    /// where an EOS is the likeliest token the surest.
    fn end_of_text(
        &self,
        strategy: &mut dyn Strategy,
        rows: &Rows,
        within: &Range<usize>,
    ) -> Result<Option<usize>, DecodeError> {
        let eos = self.constraint.vocabulary().eos();
        let ends = self.holes(within).filter_map(|slot| rows.likeliest_among(slot, eos));
        let Some(end) = ends.max_by(|a, b| a.log_prob.total_cmp(&b.log_prob)) else { return Ok(None) };
        let (ended, _) = self.with(&end);
        Ok(strategy.ends(&ended)?.then_some(end.slot))
    }

    /// Takes back the loop's own tokens behind a slot, but for EOS; returns how many.
    fn take_back_behind(&mut self, end: usize) -> usize {
        let mut n_taken = 0;
        for slot in end + 1..self.slots.len() {
            let Slot::Fixed(token) = self.slots[slot] else { continue };
            if self.ours[slot] && !self.constraint.vocabulary().eos().contains(&token) {
                self.slots[slot] = Slot::Hole;
                self.push(Event::TakenBack { step: self.step, slot, token }, 0.0);
                n_taken += 1;
            }
        }
        n_taken
    }

    /// Proposes tokens, those that are given and then the surest, until enough are kept; returns how many
    /// slots were filled.
    fn propose(
        &mut self,
        strategy: &mut dyn Strategy,
        rows: &mut Rows,
        within: &Range<usize>,
        proposed: &Proposed<'_>,
    ) -> Result<usize, DecodeError> {
        let &Proposed { quota, is_last, sampling, .. } = proposed;
        let mut given = proposed.given.iter();
        let order = self.order();
        let (mut n_kept, mut sum, mut largest) = (0, 0.0, 0.0f64);
        rows.by_confidence(proposed.is_by_confidence);
        rows.measure_entropy(matches!(self.options.pace, Pace::EntropyBound(_)));
        // Also where nothing is to be kept: what strategies know is of the answer before.
        self.restrict(strategy, rows, true)?;
        while n_kept < quota && self.holes(within).next().is_some() {
            let first = given.find_map(|&(slot, token)| rows.candidate(slot, token, within));
            let candidate = match first {
                None => rows.surest(within, order, sampling, &mut self.random),
                first => first,
            };
            let Some(candidate) = candidate.filter(|_| self.refusals_left > 0) else {
                return Ok(n_kept + self.rescue(strategy, rows, within, quota - n_kept)?);
            };
            if n_kept > 0 && !is_last && self.is_enough(&candidate, sum, largest) {
                break;
            }
            let Some(has_grown) = self.try_candidate(strategy, rows, &candidate)? else {
                self.refusals_left -= 1;
                rows.refuse(candidate.slot, candidate.token);
                let begun = Instant::now();
                match strategy.refused(&self.canvas(), rows, sampling)? {
                    Recovery::Propose => continue,
                    Recovery::Restrict => {
                        self.restrict(strategy, rows, false)?;
                        continue;
                    }
                    Recovery::Rescue => match self.rescue(strategy, rows, within, quota - n_kept)? {
                        0 => continue,
                        n_filled => return Ok(n_kept + n_filled),
                    },
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
                self.restrict(strategy, rows, false)?;
            }
        }
        Ok(n_kept)
    }

    /// Puts the likeliest token where another one of ours stood before this answer, if the model gives it
    /// more than [`Revision::Edit`] says and the strategy keeps it; returns how many.
    fn edit(
        &mut self,
        strategy: &mut dyn Strategy,
        rows: &mut Rows,
        within: &Range<usize>,
        before: &[Slot],
    ) -> Result<usize, DecodeError> {
        let Revision::Edit { above, .. } = self.options.revision else { return Ok(0) };
        if before.len() != self.slots.len() {
            // Slots were inserted; what the model said is about another canvas.
            return Ok(0);
        }
        let stood = |slot: &usize| self.ours[*slot] && matches!(before[*slot], Slot::Fixed(_));
        let edits = within.clone().filter(stood).filter_map(|slot| rows.likeliest(slot));
        let mut edits: Vec<Candidate> = edits.filter(|edit| edit.log_prob.exp() > above).collect();
        edits.sort_by(|a, b| b.log_prob.total_cmp(&a.log_prob).then(a.slot.cmp(&b.slot)));
        let mut n_edited = 0;
        for edit in edits {
            let Slot::Fixed(token) = self.slots[edit.slot] else { continue };
            if token == edit.token {
                continue;
            }
            if self.try_candidate(strategy, rows, &edit)?.is_some() {
                n_edited += 1;
            }
        }
        Ok(n_edited)
    }

    /// Whether a candidate is one too many for the pace.
    fn is_enough(&self, candidate: &Candidate, sum: f64, largest: f64) -> bool {
        match self.options.pace {
            Pace::Even | Pace::Tokens(_) => false,
            Pace::Threshold(probability) => candidate.log_prob.exp() < probability,
            Pace::EntropyBound(bound) => sum + candidate.entropy - largest.max(candidate.entropy) > bound,
        }
    }

    fn restrict(
        &mut self,
        strategy: &mut dyn Strategy,
        rows: &mut Rows,
        is_first: bool,
    ) -> Result<(), DecodeError> {
        let begun = Instant::now();
        strategy.restrict(&self.canvas(), rows, is_first)?;
        let time = micros(begun);
        let left: Vec<(usize, usize)> = rows.restricted().map(|slot| (slot, rows.n_left(slot))).collect();
        if left.is_empty() {
            self.spent += time;
        } else {
            self.push(Event::Restricted { step: self.step, left }, time);
        }
        Ok(())
    }

    /// Puts a token, if the strategy keeps it; `None` if not, otherwise whether slots were inserted for it.
    fn try_candidate(
        &mut self,
        strategy: &mut dyn Strategy,
        rows: &mut Rows,
        candidate: &Candidate,
    ) -> Result<Option<bool>, DecodeError> {
        let &Candidate { slot, token, .. } = candidate;
        let begun = Instant::now();
        let (canvas, tail) = self.with(candidate);
        let mut judgement = strategy.judge(&canvas, slot, token, rows)?;
        let mut room = None;
        if !judgement.kept && !self.gaps.is_empty() && self.inserted_left > 0 {
            room = strategy.room(&self.with_gaps(canvas.slots()), self.inserted_left)?;
            if room.is_some() {
                judgement = Judgement { kept: true, proven: true, ground: Ground::Insertion };
            }
        }
        self.note(candidate, judgement, begun);
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

    /// The canvas with a candidate, and what comes to stand behind it then.
    fn with(&self, candidate: &Candidate) -> (Canvas, Vec<(usize, TokenId)>) {
        let mut tried = self.slots.clone();
        tried[candidate.slot] = Slot::Fixed(candidate.token);
        let tail = self.after_eos(&tried, candidate.slot, candidate.token);
        tail.iter().for_each(|&(slot, token)| tried[slot] = Slot::Fixed(token));
        (Canvas::new(tried, self.end.end()), tail)
    }

    /// Notes what happened, with the time that it took and what was spent before.
    fn push(&mut self, event: Event, micros: f64) {
        let spent = std::mem::take(&mut self.spent);
        self.trace.push(event, micros + spent);
    }

    fn note(&mut self, candidate: &Candidate, judgement: Judgement, begun: Instant) {
        let &Candidate { slot, token, log_prob, .. } = candidate;
        let proposal = Proposal { step: self.step, slot, token, log_prob, judgement };
        self.push(Event::Proposed(proposal), micros(begun));
    }

    /// What comes to stand behind a slot if an EOS is put there: EOS in the holes, and in place of the loop's
    /// own tokens.
    fn after_eos(&self, slots: &[Slot], slot: usize, token: TokenId) -> Vec<(usize, TokenId)> {
        if !self.constraint.vocabulary().eos().contains(&token) {
            return Vec::new();
        }
        let is_filled = |&at: &usize| slots[at] == Slot::Hole || self.ours[at];
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
            self.push(Event::Filled { step: self.step, slot, token, why }, micros);
            if why == Why::Recovery {
                let tail = self.after_eos(&self.slots, slot, token);
                self.fill(rows, &tail, Why::AfterEos, 0.0);
            }
        }
        pairs.len()
    }

    /// Fills slots of the block, the surest first, as a completion has them; returns how many.
    fn rescue(
        &mut self,
        strategy: &mut dyn Strategy,
        rows: &mut Rows,
        within: &Range<usize>,
        quota: usize,
    ) -> Result<usize, DecodeError> {
        let begun = Instant::now();
        let Some(whole) = strategy.rescue(&self.canvas(), rows)? else { return Ok(0) };
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
