//! Whole steps: sequences that grow by what a token holds, and the masks of what comes after, as one list of
//! launches, which is recorded as a graph when it comes again. The host is asked for nothing in between.

use anygram_recognizer::{Edge, StateId};

use crate::charts::{Charts, SequenceId};
use crate::layout::RESULT_WORDS;
use crate::options::ChartError;
use crate::search::{Asked, At, DeviceMasks, TreeId, rows_of};
use crate::step::{Round, repeated};

/// A reading of the sequence of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct After {
    /// The parser's state before the lexeme in progress.
    pub at: At,
    /// What tokens can do from the lexeme on.
    pub tree: TreeId,
}

/// What one sequence does in a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn<'a> {
    /// The sequence.
    pub sequence: SequenceId,
    /// The states that it grows by, one after the other: the edges that lead to each, perhaps from one made
    /// before in the turn. A state that nothing viable leads to is not made; edges from it lead nowhere, and
    /// later states have other numbers. Edges that all carry one state over make one that is like it.
    pub steps: &'a [&'a [Edge]],
    /// The mask of the turn is the union of what these allow.
    pub readings: &'a [After],
}

/// What became of a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turned {
    /// The state that each step has made, or the first error among them.
    pub states: Result<Vec<Option<StateId>>, ChartError>,
    /// Whether the mask is right.
    pub mask: Result<(), ChartError>,
}

impl Charts {
    /// Makes the turns of some sequences, each named once. Their masks are left in memory of the pool until
    /// the next search ([`Charts::read_masks`]). An error of a sequence leaves the others unharmed.
    pub fn turn(
        &mut self,
        turns: &[Turn<'_>],
        levels: usize,
    ) -> Result<(DeviceMasks, Vec<Turned>), ChartError> {
        let rows = asked(turns);
        let masks = self.own_masks(&rows)?;
        Ok((masks, self.turn_with(turns, &rows, levels, masks, &mut [])?))
    }

    /// As [`Charts::turn`], and the masks are brought to the host, with the results of the steps: the device
    /// is waited for once.
    pub fn turn_and_read(
        &mut self,
        turns: &[Turn<'_>],
        levels: usize,
    ) -> Result<(Vec<Vec<u32>>, Vec<Turned>), ChartError> {
        let rows = asked(turns);
        let masks = self.own_masks(&rows)?;
        let mut words = vec![0; masks.stride * masks.n_rows];
        let turned = self.turn_with(turns, &rows, levels, masks, &mut words)?;
        Ok((rows_of(&words, masks), turned))
    }

    /// As [`Charts::turn`], with masks in a buffer of the caller.
    ///
    /// # Safety
    /// As of [`Charts::masks_into`].
    #[allow(unsafe_code, reason = "an address of the caller cannot be checked")]
    pub unsafe fn turn_into(
        &mut self,
        turns: &[Turn<'_>],
        levels: usize,
        masks: DeviceMasks,
    ) -> Result<Vec<Turned>, ChartError> {
        let rows = asked(turns);
        let masks = self.fitted(&rows, masks)?;
        self.turn_with(turns, &rows, levels, masks, &mut [])
    }

    fn turn_with(
        &mut self,
        turns: &[Turn<'_>],
        rows: &[Vec<Asked>],
        levels: usize,
        masks: DeviceMasks,
        words_of_masks: &mut [u32],
    ) -> Result<Vec<Turned>, ChartError> {
        let mut checked: Vec<Result<(), ChartError>> =
            turns.iter().map(|turn| self.check_turn(turn)).collect();
        for at in repeated(turns.iter().map(|turn| turn.sequence)) {
            checked[at] = Err(ChartError::Unknown { what: "second turn in a batch, number", id: at });
        }
        let n_rounds = turns.iter().map(|turn| turn.steps.len()).max().unwrap_or(0);
        let request = |at: usize, round: usize| -> Option<(SequenceId, &[Edge])> {
            let edges = turns[at].steps.get(round).filter(|_| checked[at].is_ok())?;
            Some((turns[at].sequence, edges))
        };
        let rounds: Vec<Round<'_>> =
            (0..n_rounds).map(|round| (0..turns.len()).map(|at| request(at, round)).collect()).collect();
        // A turn that cannot be made has no readings either.
        let rows: Vec<Vec<Asked>> = rows
            .iter()
            .zip(&checked)
            .map(|(row, ok)| if ok.is_ok() { row.clone() } else { Vec::new() })
            .collect();
        self.search_into(&rounds, &rows, levels, masks)?;
        let n_results = n_rounds * turns.len();
        let words = self.results_and(n_results, turns.len() + crate::search::N_COUNTS, words_of_masks)?;
        let (results, more) = words.split_at(RESULT_WORDS * n_results);
        let (statuses, _) = self.statuses_in(more);
        let mut turned = Vec::new();
        for ((at, checked), mask) in checked.into_iter().enumerate().zip(statuses) {
            // What became of each step is noted, also behind one that failed.
            let mut noted = Vec::new();
            for (round, edges) in turns[at].steps.iter().enumerate().filter(|_| checked.is_ok()) {
                let result = &results[RESULT_WORDS * (round * turns.len() + at)..][..RESULT_WORDS];
                noted.push(self.note(turns[at].sequence, edges, result));
            }
            turned.push(Turned { states: checked.and_then(|()| noted.into_iter().collect()), mask });
        }
        Ok(turned)
    }

    fn check_turn(&self, turn: &Turn<'_>) -> Result<(), ChartError> {
        let &Turn { sequence, steps, .. } = turn;
        self.sequence(sequence)?;
        steps.iter().enumerate().try_for_each(|(round, edges)| self.check(sequence, edges, round))
    }
}

fn asked(turns: &[Turn<'_>]) -> Vec<Vec<Asked>> {
    let row = |turn: &Turn<'_>| {
        let reading = |after: &After| Asked { sequence: turn.sequence, at: after.at, tree: after.tree };
        turn.readings.iter().map(reading).collect()
    };
    turns.iter().map(row).collect()
}
