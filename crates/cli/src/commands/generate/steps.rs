//! The events of a run, put together by questions to the model.

use anygram::TokenId;
use anygram::decode::{Event, Proposal, Trace};

/// What happened between two questions to the model.
pub struct Step {
    /// The canvas after it.
    pub cells: Vec<Cell>,
    /// Proposals that were refused, in order.
    pub refused: Vec<Proposal>,
    /// Tokens that were kept where the method had left no other.
    pub n_forced: usize,
}

/// A slot of a canvas at some time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    pub token: Option<TokenId>,
    pub came: Came,
}

/// How a slot came to what it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// In an earlier step, or not at all.
    Before,
    /// It was proposed and kept.
    Kept,
    /// So too, and it was the only token that the method had left.
    Forced,
    /// Without a proposal: it stands behind an EOS, or the method put it.
    Filled,
}

/// The steps of a run that began with so many empty slots and ended with `n_slots`.
pub fn steps(trace: &Trace, n_slots: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut cells = vec![Cell { token: None, came: Came::Before }; n_slots];
    let mut before = cells.clone();
    let mut alone: Vec<usize> = Vec::new();
    for event in trace.events() {
        if let Event::Asked { .. } = event {
            alone.clear();
            cells.iter_mut().for_each(|cell| cell.came = Came::Before);
            before.clone_from(&cells);
            steps.push(Step { cells: cells.clone(), refused: Vec::new(), n_forced: 0 });
        }
        let Some(step) = steps.last_mut() else { continue };
        let mut put = |slot: usize, token: Option<TokenId>, came: Came| {
            let came =
                if before.get(slot).is_some_and(|cell| cell.token == token) { Came::Before } else { came };
            if let Some(cell) = cells.get_mut(slot) {
                *cell = Cell { token, came };
            }
        };
        match event {
            Event::Restricted { left, .. } => {
                alone = left.iter().filter(|(_, n_left)| *n_left == 1).map(|(slot, _)| *slot).collect();
            }
            Event::Proposed(proposal) if !proposal.judgement.kept => step.refused.push(*proposal),
            Event::Proposed(proposal) => {
                let is_forced = alone.contains(&proposal.slot);
                step.n_forced += usize::from(is_forced);
                put(proposal.slot, Some(proposal.token), if is_forced { Came::Forced } else { Came::Kept });
            }
            Event::Filled { slot, token, .. } => put(*slot, Some(*token), Came::Filled),
            Event::TakenBack { slot, .. } => put(*slot, None, Came::Before),
            _ => {}
        }
        step.cells.clone_from(&cells);
    }
    steps
}
