//! Equal situations share their masks.
//!
//! A mask depends on the lexemes in progress and on as much of the parser's states as the pieces inside
//! tokens make it look into: a token that closes three brackets looks three deep, one that goes on with a
//! name not at all. So what is known of masks is a decision tree. Its inner nodes say which parser state to
//! look at next, and branch by what is seen there: the state's shape, and which of the states that its items
//! began in have been met before. A leaf is a mask. The path to a leaf shows exactly the part of the parser's
//! graph of states that the mask was computed from, so whoever comes the same way gets the same mask, at any
//! place of any text.
//!
//! The states that were looked into are noted while a mask is computed ([`Stepper::begin_trace`]); those made
//! on the way are left out, because they follow from the others. XGrammar and llguidance precompute what does
//! not depend on the stack at all; parser stacks that share what they hold are Tomita's (1985). Cost of a
//! look-up: the states on the path, one to three as a rule, and a copy of the row, or of the tokens where
//! they are few.

use std::hash::Hasher;
use std::sync::Arc;

use anygram_recognizer::StateId;
use rustc_hash::{FxHashMap, FxHasher};

use crate::frontier::{Config, Stepper};
use crate::mask::Tokens;

/// What is known of masks, bounded in bytes: when full, all is dropped.
#[derive(Default)]
pub(crate) struct Memo {
    nodes: Vec<Node>,
    /// From a node, the first word, by what is seen; the key of the root has [`ROOT`] there, and the
    /// readings.
    edges: FxHashMap<Box<[u32]>, u32>,
    /// Of each mask, by hash, all that have it.
    masks: FxHashMap<u64, Vec<Arc<Tokens>>>,
    bytes: usize,
    counts: MemoCounts,
    /// Scratch: the states met on the way, and a key.
    met: Vec<StateId>,
    key: Vec<u32>,
}

/// How often masks were known, see [`crate::Matcher::memo_counts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoCounts {
    /// Masks that were known.
    pub found: u64,
    /// Masks that were computed and are known from then on.
    pub kept: u64,
    /// Masks that were computed and depend on too much to be kept.
    pub not_kept: u64,
}

const ROOT: u32 = u32::MAX;

enum Node {
    /// The state that was met as the so many-th decides.
    Look(u32),
    Mask(Arc<Tokens>),
}

/// Beyond this many states a situation is not likely to come again.
const MAX_MET: usize = 256;

impl Memo {
    /// The mask of a frontier, if it is known.
    pub fn find(&mut self, stepper: &mut Stepper, frontier: &[Config]) -> Option<&Tokens> {
        self.begin(frontier);
        loop {
            let node = *self.edges.get(&*self.key)?;
            match self.nodes[node as usize] {
                Node::Mask(_) => break,
                Node::Look(at) => self.look(stepper, node, at)?,
            }
        }
        match &self.nodes[*self.edges.get(&*self.key)? as usize] {
            Node::Mask(mask) => {
                self.counts.found += 1;
                Some(mask)
            }
            Node::Look(_) => None,
        }
    }

    /// Keeps the mask of a frontier that was not known; `looked_into` are the states that it depends on,
    /// sorted, if they could be told. With a `limit` of no bytes nothing is kept.
    pub fn insert(
        &mut self,
        stepper: &mut Stepper,
        frontier: &[Config],
        looked_into: Option<&[StateId]>,
        mask: &[u32],
        limit: usize,
    ) {
        if self.bytes > limit {
            drop(self.forget());
        }
        let kept =
            looked_into.filter(|_| limit > 0).and_then(|states| self.keep(stepper, frontier, states, mask));
        match kept {
            Some(()) => self.counts.kept += 1,
            None => self.counts.not_kept += 1,
        }
    }

    fn keep(
        &mut self,
        stepper: &mut Stepper,
        frontier: &[Config],
        looked_into: &[StateId],
        mask: &[u32],
    ) -> Option<()> {
        self.begin(frontier);
        let mut looked_at: Vec<u32> = Vec::new();
        loop {
            let known = self.edges.get(&*self.key).copied();
            let node = match known {
                Some(node) => node,
                None => {
                    // Those that were not met were made on the way, and follow from the others.
                    let matters = |&at: &u32| {
                        !looked_at.contains(&at) && looked_into.binary_search(&self.met[at as usize]).is_ok()
                    };
                    let made = match (0..self.met.len() as u32).find(matters) {
                        Some(at) => Node::Look(at),
                        None => Node::Mask(self.share(mask)),
                    };
                    let node = self.nodes.len() as u32;
                    self.nodes.push(made);
                    self.bytes += size_of::<Node>() + 2 * size_of_val(&*self.key) + 48;
                    self.edges.insert(self.key.as_slice().into(), node);
                    node
                }
            };
            match &self.nodes[node as usize] {
                Node::Mask(_) => return Some(()),
                &Node::Look(at) => {
                    looked_at.push(at);
                    self.look(stepper, node, at)?;
                }
            }
        }
    }

    /// Drops all masks; returns what they were in. The counts stay.
    pub fn forget(&mut self) -> Self {
        std::mem::replace(self, Self { counts: self.counts, ..Self::default() })
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.bytes
    }

    /// How often masks were known.
    pub fn counts(&self) -> MemoCounts {
        self.counts
    }

    fn begin(&mut self, frontier: &[Config]) {
        self.met.clear();
        self.key.clear();
        self.key.push(ROOT);
        for &Config { state, lexeme } in frontier {
            self.key.push(lexeme.0);
            let at = place(&mut self.met, state);
            self.key.push(at);
        }
    }

    /// Looks at a state: makes the key of what is seen there.
    fn look(&mut self, stepper: &mut Stepper, node: u32, at: u32) -> Option<()> {
        let view = stepper.view(self.met[at as usize])?;
        self.key.clear();
        self.key.extend([node, view.shape]);
        if self.met.len() + view.origins.len() > MAX_MET {
            return None;
        }
        for &origin in view.origins {
            let at = place(&mut self.met, origin);
            self.key.push(at);
        }
        Some(())
    }

    fn share(&mut self, mask: &[u32]) -> Arc<Tokens> {
        let mask = Tokens::of_row(mask);
        let mut hasher = FxHasher::default();
        match &mask {
            Tokens::Few(tokens) => tokens.iter().for_each(|token| hasher.write_u32(token.0)),
            Tokens::Many(words) | Tokens::Most(words, _) => words.chunks(2).for_each(|pair| {
                hasher.write_u64(pair.iter().fold(0, |word, &half| word << 32 | u64::from(half)));
            }),
        }
        let same = self.masks.entry(hasher.finish()).or_default();
        if let Some(known) = same.iter().find(|known| ***known == mask) {
            return known.clone();
        }
        self.bytes += mask.memory_usage() + 64;
        let mask = Arc::new(mask);
        same.push(mask.clone());
        mask
    }
}

/// Where a state stands among those that were met, which it now is.
fn place(met: &mut Vec<StateId>, state: StateId) -> u32 {
    let at = met.iter().position(|&other| other == state).unwrap_or_else(|| {
        met.push(state);
        met.len() - 1
    });
    at as u32
}
