//! What can stand to the left of fixed tokens, as far as lexing knows.
//!
//! From the right, each run of fixed tokens is read backwards with sets of states of the union automaton: those from which some cutting of the run into
//! pieces survives it, whatever the parser says. A reading in another state leads nowhere, in every lexer mode: other modes only have fewer cuts. Sets
//! are interned and a step is remembered, so that a canvas costs a look-up a slot where its tokens were seen before.

use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_left_to_right::Constraint;
use anygram_lexer::dfa::{DEAD, START};
use anygram_vocab::TokenId;
use rustc_hash::FxHashMap;

use crate::canvas::End;
use crate::plan::{self, Place, Plan};

/// Interned sets of states, and what tokens do to them.
pub(crate) struct Rights {
    sets: Vec<Arc<BitSet>>,
    ids: FxHashMap<Arc<BitSet>, u32>,
    steps: FxHashMap<(u32, TokenId), u32>,
}

const ALL: u32 = 0;
const BOUNDARY: u32 = 1;
const NONE: u32 = 2;

/// For each slot of a canvas, and its end, the states that can stand before it.
pub(crate) struct Right {
    sets: Vec<Arc<BitSet>>,
    /// Whether some slot cannot be passed and the text cannot end before it.
    pub is_hopeless: bool,
}

impl Right {
    /// Whether a state can stand before a slot.
    #[inline]
    pub fn allows(&self, slot: usize, state: u32) -> bool {
        self.sets.get(slot).is_none_or(|set| set.contains(state as usize))
    }
}

impl Rights {
    pub fn new(constraint: &Constraint) -> Self {
        let n_states = constraint.language().lexing().lexicon.union.n_states();
        let mut this = Self { sets: Vec::new(), ids: FxHashMap::default(), steps: FxHashMap::default() };
        this.intern(BitSet::full(n_states));
        this.intern(BitSet::from_members(n_states, [START as usize]));
        this.intern(BitSet::new(n_states));
        this
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.sets.iter().map(|set| set.memory_usage() + 64).sum::<usize>() + self.steps.len() * 24
    }

    /// The sets of a canvas.
    pub fn of(&mut self, constraint: &Constraint, plan: &Plan) -> Right {
        let mut at = match plan.whole {
            None => NONE,
            Some(End::Sentence) => BOUNDARY,
            Some(End::Prefix { .. }) => ALL,
        };
        let mut ids = vec![at];
        let mut is_hopeless = false;
        for (place, &end) in plan.places.iter().zip(&plan.ends).rev() {
            at = match place {
                Place::Token(token) => self.before(constraint, *token, at),
                Place::Closed => NONE,
                // Whatever stands there, something has to follow.
                Place::Free | Place::Gap | Place::Optional if at == NONE && !end => NONE,
                Place::Free | Place::Gap | Place::Optional => ALL,
            };
            if end && at != ALL {
                let mut set = (*self.sets[at as usize]).clone();
                set.insert(START as usize);
                at = self.intern(set);
            }
            ids.push(at);
        }
        is_hopeless |= at == NONE;
        let sets = ids.iter().rev().map(|&id| self.sets[id as usize].clone()).collect();
        Right { sets, is_hopeless }
    }

    fn intern(&mut self, set: BitSet) -> u32 {
        let fresh = self.sets.len() as u32;
        let set = Arc::new(set);
        *self.ids.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            fresh
        })
    }

    /// The states from which a token leads into a set.
    fn before(&mut self, constraint: &Constraint, token: TokenId, after: u32) -> u32 {
        if let Some(&known) = self.steps.get(&(after, token)) {
            return known;
        }
        let union = &constraint.language().lexing().lexicon.union;
        let mut set = BitSet::new(union.n_states());
        let target = self.sets[after as usize].clone();
        if let Some(bytes) = constraint.vocabulary().bytes(token) {
            let mut at = (*target).clone();
            for &byte in bytes.iter().rev() {
                let (class, can_cut) = (union.class(byte), at.contains(START as usize));
                let survives = |&state: &usize| {
                    let next = union.step(state as u32, class);
                    next != DEAD && (at.contains(next as usize) || can_cut && !union.accepts(next).is_empty())
                };
                at = BitSet::from_members(union.n_states(), (0..union.n_states()).filter(survives));
            }
            set = at;
        }
        if target.contains(START as usize) && plan::specials(constraint).any(|(named, _)| named == token) {
            set.insert(START as usize);
        }
        let id = self.intern(set);
        self.steps.insert((after, token), id);
        id
    }
}
