//! A model whose answers are kept, to know afterwards what it gave each token.

use anygram_vocab::TokenId;

use super::model::{Model, ModelError, OpenSlots, View};
use super::trace::{Event, Trace};

/// A model that keeps what it answers.
#[derive(Clone, Debug)]
pub struct Recorded<M> {
    model: M,
    answers: Vec<Answered>,
}

/// One answer of a model: rows of log-probabilities for slots.
#[derive(Clone, PartialEq, Debug)]
pub struct Answered {
    slots: Vec<usize>,
    rows: Vec<f32>,
}

impl Answered {
    /// Each slot that was asked for, with its row.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &[f32])> {
        let n_columns = self.rows.len() / self.slots.len().max(1);
        self.slots.iter().copied().zip(self.rows.chunks(n_columns.max(1)))
    }

    /// What a token was given in a slot; `None` if the slot was not asked for.
    pub fn log_prob(&self, slot: usize, token: TokenId) -> Option<f32> {
        let (_, row) = self.rows().find(|(asked, _)| *asked == slot)?;
        row.get(token.index()).copied()
    }
}

impl<M> Recorded<M> {
    /// Keeps the answers of a model from here on, for one run of the loop.
    pub fn new(model: M) -> Self {
        Self { model, answers: Vec::new() }
    }

    /// The answers, in order: those that the events of a trace call by their steps.
    pub fn answers(&self) -> &[Answered] {
        &self.answers
    }

    /// For each of so many slots what the model gave the token that was put there last; `None` where none
    /// was, or the model was not asked about it.
    pub fn log_probs_of(&self, trace: &Trace, n_slots: usize) -> Vec<Option<f32>> {
        let mut given = vec![None; n_slots];
        for event in trace.events() {
            let (step, slot, token) = match event {
                Event::Proposed(proposal) if proposal.judgement.kept => {
                    (proposal.step, proposal.slot, proposal.token)
                }
                Event::Filled { step, slot, token, .. } => (*step, *slot, *token),
                _ => continue,
            };
            if let Some(given) = given.get_mut(slot) {
                *given = self.answers.get(step).and_then(|answer| answer.log_prob(slot, token));
            }
        }
        given
    }
}

impl<M: Model> Model for Recorded<M> {
    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn open_slots(&self) -> OpenSlots {
        self.model.open_slots()
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        self.model.log_probs(view, rows)?;
        self.answers.push(Answered { slots: view.wanted.to_vec(), rows: rows.to_vec() });
        Ok(())
    }
}
