//! What fits into a budget of tokens, exactly.
//!
//! A search over real readings decides: a *place* is a reading ([`Config`]) at a token boundary, or at the
//! end of a piece inside tokens, with what is left of them ([`Leftover`]). Whole tokens, walked by the
//! lexemes themselves, lead from place to place; leaving a token boundary costs one. For a least cost the
//! search is A* (Hart, Nilsson and Raphael 1968) with the lower bounds of [`Costs`], which in most cases are
//! the truth, so that it goes straight to a sentence. In `scannerless` they are always the truth, and nothing
//! is searched for, unless automata give rules or terminals: of what is left in their states the bounds know
//! too little. Whether a budget is enough takes less: the search goes where the upper bounds of `Ample` are
//! least, and ends as soon as one of them is within the budget.
//!
//! Where the grammar has a memory, all of this holds as if what may not be repeated could be. So a completion
//! that is found is written (`witness`). If it cannot be without repeating something, another one is
//! searched for in which these values are told apart (`recalled`): places are readings with what is recalled
//! of those values. That goes on until one can be written, or there is none. Tokens that lead to one reading
//! need not recall the same, so for a mask they are told apart too, as far as it matters.
//!
//! | module | what |
//! |---|---|
//! | `reach` | budgets within which all fits that may follow |
//! | `masks` | which tokens of a mask are within a budget |
//! | `answers` | completions that repeat nothing |
//! | `search` | the search for a completion |
//! | `bounds` | bounds that take no search |
//! | `walks` | what tokens do to a piece in progress |
//!
//! What is learned of a reading is kept: a lower and an upper bound on its cost. Where a budget lies above
//! the one or below the other, nothing is searched for either.

mod answers;
mod bounds;
mod masks;
mod reach;
mod search;
mod walks;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_lexer::transducer::LexemeId;
use anygram_vocab::{NodeId, TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHasher};

use crate::ample::{Ample, Certain};
use crate::costs::{Costs, Leftover, Subtrees};
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::recall::Recall;
use crate::recalled::{Outlook, Outlooks, Recalled};
use crate::sweep::PlaceTables;
use crate::witness::{Cuts, Node};

use answers::Answer;
use reach::{BEYOND, Enough, Reach};
use walks::{Groups, Rest, Walk};

/// A reading, and what is left of the tokens in which it stands.
type Place = (Config, Leftover);

/// Bounds on readings beyond this many are forgotten before the next question.
const ENTRIES: usize = 2_000_000;

/// Steps that a new state of the lexer's automaton counts as, where it grows, and a new outlook: they are kept,
/// so a search that needs many has to end before there is no room for others.
const GROWTH: usize = 8_000;

/// An upper bound on the cost of a reading.
#[derive(Clone)]
struct Upper {
    cost: u32,
    /// How a completion begins of this cost, up to a token boundary where one goes on of which is known how;
    /// `None` if it is that of [`Ample`], or a sentence, and where nobody asks.
    next: Option<Arc<[Node]>>,
    /// Such a completion, if one was written.
    text: Option<Arc<[u8]>>,
}

impl Upper {
    /// Bytes, roughly.
    fn memory_usage(&self) -> usize {
        let next = self.next.as_ref().map_or(0, |next| size_of_val(&**next));
        64 + next + self.text.as_ref().map_or(0, |text| text.len())
    }
}

/// What is kept of searches within budgets.
pub struct Budgets {
    costs: Costs,
    subtrees: Arc<Subtrees>,
    /// `None` until it is known whether there are such bounds.
    ample: Option<Option<Ample>>,
    /// The same of those that hold whatever was written, where the grammar remembers that.
    certain: Option<Option<Ample>>,
    certain_of: FxHashMap<(Config, bool), Certain>,
    places: PlaceTables,
    reaches: FxHashMap<(LexemeId, Leftover), Arc<Reach>>,
    reach_bytes: usize,
    /// Of readings what is enough behind any token that may follow.
    everywhere: FxHashMap<Box<[Config]>, Enough>,
    walks: FxHashMap<(LexemeId, Leftover, Outlook), Arc<Walk>>,
    groups: FxHashMap<(LexemeId, u32), Arc<Groups>>,
    rests: FxHashMap<Box<[NodeId]>, Arc<Rest>>,
    n_rests: u32,
    group_bytes: usize,
    /// The parser states as of which the rest holds.
    generation: u64,
    lower: FxHashMap<Place, u32>,
    upper: FxHashMap<Config, Upper>,
    outlooks: Outlooks,
    /// Answers about one limit, by what is recalled.
    answers: FxHashMap<(Config, (u32, u64)), Answer>,
    /// Where pieces end in tokens.
    cuts: FxHashMap<LexemeId, Cuts>,
    /// Of readings what is enough behind any token of a mask, and which mask; see [`Budgets::is_ample`].
    ample_for_all: FxHashMap<Box<[Config]>, (u32, MaskKey)>,
    /// The most that was seen to be enough since the last question began.
    enough: u32,
}

/// What a question is about.
pub struct Question<'a> {
    /// The readings' tables.
    pub stepper: &'a mut Stepper,
    /// The language.
    pub language: &'a Language,
    /// The tokens.
    pub trie: &'a TokenTrie,
    /// Counts what it takes.
    pub work: Work,
}

/// The text whose tokens are asked about.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// Its readings outside of remembered values.
    pub frontier: &'a [Config],
    /// What is recalled of it.
    pub recall: &'a Recall,
    /// The tokens.
    pub vocabulary: &'a Vocabulary,
    /// The language.
    pub language: &'a Language,
}

impl AsMut<Stepper> for Question<'_> {
    fn as_mut(&mut self) -> &mut Stepper {
        self.stepper
    }
}

/// Tells apart the masks that the same readings can have: a memory leaves other tokens of other texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MaskKey(u64);

impl MaskKey {
    /// Of a mask of readings, and what these recall. Cost: its words, where the language has a memory.
    fn new(mask: &[u32], text: Text<'_>) -> Self {
        if !text.language.grammar().remembers() {
            return Self(0);
        }
        let mut hasher = FxHasher::default();
        for (config, recalled) in text.recall.along(text.frontier) {
            (config, recalled.print()).hash(&mut hasher);
        }
        mask.chunks(2).for_each(|pair| {
            hasher.write_u64(pair.iter().fold(0, |word, &half| word << 32 | u64::from(half)));
        });
        Self(hasher.finish())
    }
}

impl Budgets {
    /// Empty tables. Cost, once for a vocabulary: nodes of its trie.
    pub fn new(language: &Language, vocabulary: &Vocabulary) -> Self {
        Self::beside(language, vocabulary.trie(), vocabulary.beside())
    }

    fn beside(language: &Language, trie: &TokenTrie, subtrees: Arc<Subtrees>) -> Self {
        Self {
            costs: Costs::new(language.lexing(), trie, &subtrees),
            subtrees,
            ample: None,
            certain: None,
            certain_of: FxHashMap::default(),
            places: PlaceTables::looking_beyond(BEYOND),
            reaches: FxHashMap::default(),
            reach_bytes: 0,
            everywhere: FxHashMap::default(),
            walks: FxHashMap::default(),
            groups: FxHashMap::default(),
            rests: FxHashMap::default(),
            n_rests: 0,
            group_bytes: 0,
            generation: 0,
            lower: FxHashMap::default(),
            upper: FxHashMap::default(),
            outlooks: Outlooks::new(language),
            answers: FxHashMap::default(),
            cuts: FxHashMap::default(),
            ample_for_all: FxHashMap::default(),
            enough: 0,
        }
    }

    /// The lower bounds.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let walks =
            self.walks.values().map(|walk| 4 * walk.stays.len() + 12 * walk.exits.len() + 64).sum::<usize>();
        let amples = self.ample.iter().chain(&self.certain).flatten();
        let ample = amples.map(Ample::memory_usage).sum::<usize>();
        let readings = self.ample_for_all.keys().chain(self.everywhere.keys());
        let upper = self.upper.values().map(Upper::memory_usage).sum::<usize>();
        let cuts = self.cuts.values().map(|cuts| size_of_val(&**cuts) + 32).sum::<usize>();
        self.costs.memory_usage()
            + ample
            + walks
            + self.group_bytes
            + self.outlooks.memory_usage()
            + 40 * self.lower.len()
            + upper
            + cuts
            + readings.map(|readings| 32 + size_of_val(&**readings)).sum::<usize>()
            + self.places.memory_usage()
            + self.reach_bytes
            + 48 * self.certain_of.len()
    }

    /// The least number of tokens that make a sentence of one of some readings, if it is at most `limit`;
    /// else `None`.
    pub fn minimum(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        limit: u32,
    ) -> Result<Option<u32>, StepError> {
        self.begin(question);
        let result = self.least(question, frontier, (limit, false));
        if result.is_err() {
            self.costs.clear();
        }
        result
    }

    /// The same of readings that recall what may not be repeated, which [`Budgets::minimum`] takes for
    /// nothing.
    pub(crate) fn minimum_recalling(
        &mut self,
        question: &mut Question<'_>,
        readings: &[(Config, Recalled)],
        limit: u32,
    ) -> Result<Option<u32>, StepError> {
        self.begin(question);
        let (mut least, mut limit) = (None, limit);
        for (config, recalled) in readings {
            let answer = self.answer(question, (*config, recalled), (limit, false));
            if answer.is_err() {
                self.costs.clear();
            }
            if let Answer::Yes(cost, _) = answer? {
                (least, limit) = (Some(cost), cost);
            }
        }
        Ok(least)
    }

    /// Whether a sentence can certainly be made within `limit` tokens behind each token of a mask of a text.
    /// Cost: a look-up; where it is not known yet what is enough behind all tokens that may follow its
    /// readings, a walk that tells.
    pub fn is_ample(
        &mut self,
        question: &mut Question<'_>,
        text: Text<'_>,
        mask: &[u32],
        limit: u32,
    ) -> Result<bool, StepError> {
        self.begin(question);
        let readings = text.recall.readings(text.frontier);
        let enough = self.enough_for_all(question, &readings, text.recall.siblings())?;
        Ok(enough <= limit || self.is_known_to_be_ample(self.generation, text, mask, limit))
    }

    /// The same where parser states are those of a generation, as far as it is known. Cost: a look-up, and the
    /// words of the mask where it depends on which tokens there are.
    pub fn is_known_to_be_ample(&self, generation: u64, text: Text<'_>, mask: &[u32], limit: u32) -> bool {
        if self.generation != generation {
            return false;
        }
        let readings = text.recall.readings(text.frontier);
        let is_enough = |known: &Enough| known.cost <= limit && text.recall.siblings() <= known.n_values;
        self.everywhere.get(&*readings).is_some_and(is_enough)
            || self
                .ample_for_all
                .get(&*readings)
                .is_some_and(|&(enough, known)| enough <= limit && known == MaskKey::new(mask, text))
    }

    /// Keeps what [`Budgets::add_tokens`] found to be enough behind all tokens of a mask of some readings.
    pub fn keep_ample(&mut self, text: Text<'_>, mask: &[u32], enough: u32) {
        let readings = text.recall.readings(text.frontier).into();
        self.ample_for_all.insert(readings, (enough, MaskKey::new(mask, text)));
    }

    /// Adds the bits of all byte tokens after which at most `limit` more make a sentence. `plain` is the mask
    /// without a budget. Returns how many tokens are enough behind each token of it, if none is left out.
    pub fn add_tokens(
        &mut self,
        question: &mut Question<'_>,
        text: Text<'_>,
        limit: u32,
        plain: &[u32],
        words: &mut [u32],
    ) -> Result<Option<u32>, StepError> {
        self.begin(question);
        self.enough = 0;
        // Bits that need no further look: those that are set, and those that never will be.
        let mut decided: Vec<u32> = plain.iter().zip(&*words).map(|(&plain, &word)| word | !plain).collect();
        let result = self.decide(question, text, limit, &mut decided);
        // They are about this question.
        self.answers = FxHashMap::default();
        if result.is_err() {
            self.costs.clear();
        }
        words
            .iter_mut()
            .zip(plain)
            .zip(&decided)
            .for_each(|((word, &plain), &decided)| *word |= plain & decided);
        result?;
        let has_all = plain.iter().zip(&decided).all(|(plain, decided)| plain & !decided == 0);
        Ok(has_all.then_some(self.enough))
    }

    fn begin(&mut self, question: &Question<'_>) {
        self.costs.tidy();
        if self.costs.is_full() {
            *self = Self::beside(question.language, question.trie, self.subtrees.clone());
        }
        if self.outlooks.tidy() {
            self.walks.clear();
        }
        let generation = question.stepper.generation();
        if self.generation != generation || self.n_bounds() > ENTRIES {
            self.generation = generation;
            self.costs.forget_states();
            self.ample.iter_mut().chain(&mut self.certain).flatten().for_each(Ample::forget_states);
            self.certain_of.clear();
            self.everywhere.clear();
            self.lower.clear();
            self.upper.clear();
            self.ample_for_all.clear();
        }
    }

    fn n_bounds(&self) -> usize {
        let n_readings = self.ample_for_all.len() + self.everywhere.len();
        self.lower.len() + self.upper.len() + self.certain_of.len() + n_readings
    }

    /// Whether the lower bound on the cost of a reading at a token boundary is at most `limit`. It may stand
    /// for several, of which this is the least then.
    pub fn may_fit(
        &mut self,
        question: &mut Question<'_>,
        config: Config,
        limit: u32,
    ) -> Result<bool, StepError> {
        self.begin(question);
        let result = self.is_possible(question, (config, Leftover::NONE), limit);
        if result.is_err() {
            self.costs.clear();
        }
        result
    }

    /// Whether it is certain, without a search, that at most `limit` tokens make a sentence of a reading at a
    /// token boundary.
    pub fn fits_surely(
        &mut self,
        question: &mut Question<'_>,
        config: Config,
        limit: u32,
    ) -> Result<bool, StepError> {
        self.begin(question);
        Ok(self.upper(question, config)? <= limit)
    }
}
