//! What happened in a run, event by event.

use anygram_vocab::TokenId;

/// On what a judgement rests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Ground {
    /// Nothing was asked.
    Nothing,
    /// The token is in the mask of its slot.
    Mask,
    /// It belongs to a completion of the canvas that is known.
    Completion,
    /// The method was asked about the canvas with it.
    Question,
    /// The canvas can be completed with more slots in its gaps.
    Insertion,
}

impl Ground {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Mask => "mask",
            Self::Completion => "completion",
            Self::Question => "question",
            Self::Insertion => "insertion",
        }
    }
}

/// What a strategy says of a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// Whether the token is kept.
    pub kept: bool,
    /// Whether that is certain: kept, and the canvas is completable; or not, and it would not be.
    pub proven: bool,
    /// On what it rests.
    pub ground: Ground,
}

/// A token that was proposed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Proposal {
    /// The question to the model, from 0.
    pub step: usize,
    /// Where.
    pub slot: usize,
    /// Which.
    pub token: TokenId,
    /// What the model gives it: a natural logarithm, normalized over the vocabulary.
    pub log_prob: f64,
    /// What the strategy said.
    pub judgement: Judgement,
}

/// Why a slot was filled without a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Why {
    /// It stands behind an EOS.
    AfterEos,
    /// The strategy replaced or added it because proposals failed (LAVE's recovery).
    Recovery,
    /// Proposals had come to an end, and the strategy knew a completion.
    Rescue,
}

/// Something that happened. Slots are numbered as they are at that time.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The model was asked.
    Asked {
        /// The number of the question.
        step: usize,
        /// Open slots.
        n_open: usize,
    },
    /// The strategy said, before proposals or between them, what can stand in slots.
    Restricted {
        /// The question to the model.
        step: usize,
        /// Slots of which it said so, and how many tokens are left there.
        left: Vec<(usize, usize)>,
    },
    /// A token was proposed.
    Proposed(Proposal),
    /// A slot was filled without a proposal.
    Filled {
        /// The question to the model.
        step: usize,
        /// Where.
        slot: usize,
        /// With what.
        token: TokenId,
        /// Why.
        why: Why,
    },
    /// A token was taken back.
    TakenBack {
        /// The question to the model.
        step: usize,
        /// Where.
        slot: usize,
        /// Which.
        token: TokenId,
    },
    /// Slots were inserted.
    Inserted {
        /// The question to the model.
        step: usize,
        /// The number of the first of them.
        slot: usize,
        /// How many.
        count: usize,
    },
}

/// The events of a run, in order, and how long each took.
///
/// Two runs with the same seed have the same events; times are apart from them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    events: Vec<Event>,
    micros: Vec<f64>,
}

impl Trace {
    pub(crate) fn push(&mut self, event: Event, micros: f64) {
        self.events.push(event);
        self.micros.push(micros);
    }

    /// What happened.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// For each event how many microseconds it took: those of [`Event::Asked`] are the model's, all others
    /// the constraint's. Wall-clock time.
    pub fn micros(&self) -> &[f64] {
        &self.micros
    }

    /// All proposals.
    pub fn proposals(&self) -> impl Iterator<Item = &Proposal> {
        self.events.iter().filter_map(|event| match event {
            Event::Proposed(proposal) => Some(proposal),
            _ => None,
        })
    }

    /// Questions to the model.
    pub fn n_asked(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Asked { .. })).count()
    }

    /// Proposals that were refused.
    pub fn n_refused(&self) -> usize {
        self.proposals().filter(|proposal| !proposal.judgement.kept).count()
    }

    /// Microseconds of the model, and of the constraint.
    pub fn sums(&self) -> (f64, f64) {
        let each = self.events.iter().zip(&self.micros);
        each.fold((0.0, 0.0), |(model, constraint), (event, micros)| match event {
            Event::Asked { .. } => (model + micros, constraint),
            _ => (model, constraint + micros),
        })
    }
}
