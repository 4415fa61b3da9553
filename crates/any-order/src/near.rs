//! Completions near the last one.
//!
//! Questions in a row mostly differ in one slot: a token is proposed for a hole, and the last completion has
//! another there. Next to a completion a token changes little, so everything stays as the last completion has
//! it but the slots around the change: those are holes again as the canvas has them. This is a canvas too,
//! nearly all of which is fixed, and a completion of it is one of the canvas. First nothing is open, then
//! more and more is. (Large neighbourhood search: Shaw, *Using constraint programming and local search
//! methods to solve vehicle routing problems*, CP 1998.)
//!
//! Only a yes comes of this: what has no completion near the last one may have another.

use anygram_bits::work::Work;
use anygram_left_to_right::language::StepError;

use crate::canvas::{Canvas, Slot};
use crate::confirm::Confirm;
use crate::decision::{Decision, Undecided};
use crate::forward::Breadth;
use crate::plan::{self, Plan};
use crate::search::{Bounds, Found, Search};
use crate::solver::{FIRST_VISITS, Filling, MOST_ALIKE, Solver, Witness};

/// How many slots on each side of what changed are open, in turn.
const NEAR: [usize; 3] = [2, 8, 32];

/// The part of the steps of a question that one of these canvases may take.
const PARTS_OF_NEAR: usize = 64;

/// The last completion with what a canvas of as many slots has fixed.
struct Changed {
    slots: Vec<Slot>,
    /// The first slot with something else than the last completion had, or in which that ended before it, and
    /// the last.
    from: usize,
    to: usize,
}

impl Solver {
    /// Looks for a completion near the last one.
    pub(crate) fn near_last(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let unknown = Decision::Unknown(Undecided::Between);
        if let Some(found) = self.last_with(canvas, plan) {
            let answer = self.confirmed(canvas, &found)?;
            if answer.is_yes() {
                return Ok(answer);
            }
        }
        let Some(changed) = self.last_changed(canvas) else { return Ok(unknown) };
        let mut n_open = 0;
        for reach in NEAR {
            let near = changed.opened(canvas, reach);
            let n_holes = near.holes().count();
            if n_holes == canvas.holes().count() {
                break;
            }
            if std::mem::replace(&mut n_open, n_holes) == n_holes {
                continue;
            }
            let mut own = self.part_of(work, PARTS_OF_NEAR);
            let answer = self.decide_near(&near, plan, &mut own);
            work.spend(own.used() as usize)?;
            if let Ok(Decision::Yes(witness)) = answer {
                return Ok(Decision::Yes(witness));
            }
        }
        Ok(unknown)
    }

    /// The last completion, if its canvas has as many slots as this one and ends alike.
    fn last_of(&self, canvas: &Canvas) -> Option<&Witness> {
        let (known, witness) = self.known()?;
        let is_alike = known.end() == canvas.end() && witness.slots.len() == canvas.slots().len();
        is_alike.then_some(witness)
    }

    /// The last completion with what a canvas has in place of its own, if it ends where a plan lets it.
    fn last_with(&self, canvas: &Canvas, plan: &Plan) -> Option<Found> {
        let witness = self.last_of(canvas)?;
        let eos = self.constraint().vocabulary().eos();
        let mut found =
            Found { end: plan.places.len(), tokens: Vec::new(), n_in_gaps: 0, closing: Vec::new() };
        for (at, pair) in canvas.slots().iter().zip(&witness.slots).enumerate() {
            let token = match pair {
                (Slot::Fixed(token), Filling::Token(_)) | (Slot::Hole, Filling::Token(token)) => *token,
                (Slot::Gap, Filling::Tokens(tokens)) => {
                    found.tokens.extend(tokens.iter().map(|&token| (at, token)));
                    found.n_in_gaps += tokens.len();
                    continue;
                }
                _ => return None,
            };
            if eos.contains(&token) {
                found.end = at;
                return plan.may_end(at).then_some(found);
            }
            found.tokens.push((at, token));
        }
        found.closing.clone_from(&witness.closing);
        plan.whole.map(|_| found)
    }

    /// The same slot by slot, if a canvas has no gaps.
    fn last_changed(&self, canvas: &Canvas) -> Option<Changed> {
        let witness = self.last_of(canvas)?;
        let vocabulary = self.constraint().vocabulary();
        let eos = *vocabulary.eos().first()?;
        let (mut from, mut to) = (usize::MAX, 0);
        let (mut ended, mut ended_before) = (None, None);
        let mut slots = Vec::with_capacity(canvas.slots().len());
        for (at, pair) in canvas.slots().iter().zip(&witness.slots).enumerate() {
            let (&slot, &Filling::Token(known)) = pair else { return None };
            let now = match slot {
                Slot::Fixed(token) => token,
                Slot::Hole if ended.is_some() => eos,
                Slot::Hole => known,
                Slot::Gap => return None,
            };
            if plan::is_tail(vocabulary, known) {
                ended_before.get_or_insert(at);
            }
            if plan::is_tail(vocabulary, now) && slot != Slot::Hole {
                ended.get_or_insert(at);
            }
            if slot == Slot::Fixed(now) && now != known {
                from = from.min(ended_before.unwrap_or(at));
                to = at;
            }
            slots.push(Slot::Fixed(now));
        }
        (from <= to).then_some(Changed { slots, from, to })
    }

    /// Decides a canvas of which few slots are open. Its texts end only where those of a plan may, which can
    /// be in fewer slots than the canvas lets them.
    fn decide_near(
        &mut self,
        near: &Canvas,
        within: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let mut plan = Plan::new(self.constraint(), near);
        plan.ends.iter_mut().zip(&within.ends).for_each(|(end, may_end)| *end &= may_end);
        if !within.may_end(plan.places.len()) {
            plan.whole = None;
        }
        match self.parse_apart(near, &plan, work)? {
            Some(answer) => Ok(answer),
            None => self.search_apart(near, &plan, work),
        }
    }

    /// By all texts at once, in one breadth; nothing is kept of it for the next canvas. `None` where that is
    /// not done.
    fn parse_apart(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Option<Decision<Witness>>, StepError> {
        let breadth = Breadth { loosely: true, most_alike: MOST_ALIKE };
        Ok(match self.tables.forward(plan, (breadth, true), work)? {
            Some(forward) if forward.is_possible() => Some(self.completions(canvas, &forward, work)?),
            Some(_) => Some(Decision::Unknown(Undecided::Between)),
            None => None,
        })
    }

    /// By a short search; nothing is kept of it for the next canvas.
    fn search_apart(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let bounds = Bounds { visits: FIRST_VISITS / 10, ..Bounds::default() };
        let confirm = Confirm::new(&mut self.matcher, canvas);
        let search = Search::new(&mut self.tables, plan, work, bounds).confirming(confirm);
        let outcome = search.keeping_from(usize::MAX).run()?;
        self.confirmed_outcome(canvas, outcome)
    }
}

impl Changed {
    /// The canvas with all slots as they are here that are further than so many from what changed.
    fn opened(&self, canvas: &Canvas, reach: usize) -> Canvas {
        let open = self.from.saturating_sub(reach)..(self.to + reach + 1).min(self.slots.len());
        let mut slots = self.slots.clone();
        slots[open.clone()].copy_from_slice(&canvas.slots()[open]);
        Canvas::new(slots, canvas.end())
    }
}
