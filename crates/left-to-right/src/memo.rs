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
//! What comes through of what is left of tokens behind the end of a piece is kept in the same way
//! (`part`), for a mask that is new mostly has new reasons for few of its tokens. There an inner
//! node also keeps what is known until then, and what waits for more: behind a state that differs from known
//! ones only in what lies deep, it is computed from there.
//!
//! Two generations are kept. When the younger has half of the bytes that are allowed, it is the older one,
//! and what was the older is dropped; what is found in the older moves to the younger. So what outputs use
//! stays, and no mask waits until all others are dropped.
//!
//! The states that were looked into are noted while a mask is computed (`Stepper::begin_trace`); those made
//! on the way are left out, because they follow from the others. XGrammar and llguidance precompute what does
//! not depend on the stack at all; parser stacks that share what they hold are Tomita's (1985). Cost of a
//! look-up: the states on the path, one to three as a rule, and a copy of the row, or of the tokens where
//! they are few.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use anygram_bits::{Pages, PartedMap, PartedTable};
use anygram_recognizer::StateId;
use rustc_hash::{FxBuildHasher, FxHasher};
use smallvec::SmallVec;

use crate::collected::Collected;
use crate::epoch::Fading;
use crate::frontier::{Config, Stepper};
use crate::part::Partial;
use crate::tokens::Tokens;

/// What is known of masks, bounded in bytes.
#[derive(Default)]
pub struct Memo {
    younger: Generation,
    older: Generation,
    fading: Fading,
    counts: MemoCounts,
    /// Of the mask that was asked for last: the nodes on the way to what is known of it, the states met
    /// there, those of them that were looked at, and the key of what comes next, if anything can.
    trail: Vec<u32>,
    met: Vec<StateId>,
    looked_at: Vec<bool>,
    key: Vec<u32>,
    goes_on: bool,
}

/// Decision trees.
#[derive(Default)]
struct Generation {
    nodes: Pages<Node>,
    /// From a node, the first word, by what is seen; the key of a root has [`MASK`] or [`PART`] there, and
    /// what is asked about.
    /// Each with its hash: a table that grows does not look at the keys.
    edges: PartedTable<(u64, EdgeKey, u32)>,
    /// Of each mask, by hash, all that have it.
    sets: PartedTable<(u64, Arc<Tokens>)>,
    /// The addresses of what is held for the sake of what is known in part. Others have it too, as a rule,
    /// but may not for as long.
    held: PartedMap<usize, ()>,
    bytes: usize,
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
    /// Readings behind the ends of pieces behind which all was known, of masks that were computed.
    pub parts_found: u64,
    /// Readings behind which a part was known, and the rest was computed.
    pub parts_resumed: u64,
}

/// What is asked about: a mask, or what comes through of what is left of some tokens behind a reading.
#[derive(Clone, Copy)]
pub(crate) enum Asked<'a> {
    Mask(&'a [Config]),
    Part(Config, u64),
}

/// What leads from a node: mostly its number, a shape, and some states that were met.
type EdgeKey = SmallVec<[u32; SHORT]>;

const SHORT: usize = 8;

const MASK: u32 = u32::MAX;
const PART: u32 = u32::MAX - 1;

#[derive(Clone)]
enum Node {
    /// The state that was met as the so many-th decides. What is known until then, if that is much more than
    /// on the way to it.
    Look(u32, Option<Arc<Partial>>),
    /// What comes through depends on more than can be told.
    Partial(Arc<Partial>),
    Known(Arc<Tokens>),
}

/// Beyond this many states a situation is not likely to come again.
const MAX_MET: usize = 256;

impl Memo {
    /// What is asked about, if it is known wholly. What else is known of it is there for whoever computes it
    /// next. With a `limit` of no bytes nothing is kept.
    pub(crate) fn find(
        &mut self,
        stepper: &mut Stepper,
        asked: Asked<'_>,
        limit: usize,
    ) -> Option<Arc<Tokens>> {
        self.make_room(limit);
        if limit == 0 || stepper.recognizer().shared_states().is_none() {
            self.forget_asked();
            return None;
        }
        self.descend(stepper, asked, false);
        if self.goes_on && !self.older.nodes.is_empty() {
            self.descend(stepper, asked, true);
        }
        let last = &self.younger.nodes[*self.trail.last()? as usize];
        match (asked, last) {
            (Asked::Mask(_), Node::Known(_)) => self.counts.found += 1,
            (Asked::Mask(_), _) => {}
            (Asked::Part(..), Node::Known(_)) => self.counts.parts_found += 1,
            (Asked::Part(..), _) => self.counts.parts_resumed += 1,
        }
        match last {
            Node::Known(known) => Some(known.clone()),
            _ => None,
        }
    }

    fn make_room(&mut self, limit: usize) {
        // Parser states may have got other numbers since the last time.
        self.fading.fade();
        if self.younger.bytes > limit / 2 {
            self.begin_generation();
        }
    }

    /// Goes as far as something is known, perhaps in the older generation too, from which that is brought
    /// over.
    fn descend(&mut self, stepper: &mut Stepper, asked: Asked<'_>, brings_over: bool) {
        let Some(()) = self.begin(stepper, asked) else { return };
        let mut older = brings_over.then_some(self.key[0]);
        loop {
            if let Some(from) = older {
                let from = std::mem::replace(&mut self.key[0], from);
                older = self.older.edge(&self.key);
                self.key[0] = from;
            }
            let node = match (self.younger.edge(&self.key), older) {
                (Some(node), _) => node,
                (None, Some(older)) => {
                    let node = match self.older.nodes[older as usize].clone() {
                        Node::Known(tokens) => Node::Known(self.younger.share(tokens)),
                        node => node,
                    };
                    self.younger.put(&self.key, node)
                }
                (None, None) => {
                    self.goes_on = true;
                    return;
                }
            };
            self.trail.push(node);
            let Node::Look(at, _) = self.younger.nodes[node as usize] else { return };
            older = older.filter(
                |&older| matches!(self.older.nodes[older as usize], Node::Look(others, _) if others == at),
            );
            if self.look(stepper, node, at).is_none() {
                return;
            }
        }
    }

    /// Whether what is found out about what was asked for last can be kept.
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// What is known of it, from the beginning on.
    pub(crate) fn partials(&self) -> Vec<Arc<Partial>> {
        let of = |&node: &u32| match &self.younger.nodes[node as usize] {
            Node::Look(_, partial) => partial.clone(),
            Node::Partial(partial) => Some(partial.clone()),
            Node::Known(_) => None,
        };
        self.trail.iter().filter_map(of).collect()
    }

    /// The states that were looked at.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = StateId> {
        let met = self.met.iter().zip(&self.looked_at);
        met.filter_map(|(&state, &looked_at)| looked_at.then_some(state))
    }

    /// The first that was met of some states that were not looked at. (Those that were not met were made on
    /// the way, and follow from the others.)
    pub(crate) fn unseen(&self, states: &[StateId]) -> Option<u32> {
        let met = self.met.iter().zip(&self.looked_at).zip(0..);
        let mut unseen = met.filter(|((_, looked_at), _)| !**looked_at);
        unseen.find(|((state, _), _)| states.contains(state)).map(|(_, at)| at)
    }

    /// Looks at a state that was met; `partial` is what is known until then. Whether what follows can be
    /// kept.
    pub(crate) fn look_further(&mut self, stepper: &mut Stepper, at: u32, partial: Option<Partial>) -> bool {
        let node = self.younger.put(&self.key, Node::Look(at, partial.map(Arc::new)));
        self.trail.push(node);
        self.goes_on = self.look(stepper, node, at).is_some();
        self.goes_on
    }

    /// Keeps what is known of something that depends on more than can be told.
    pub(crate) fn keep_partial(&mut self, partial: Partial) {
        self.younger.put(&self.key, Node::Partial(Arc::new(partial)));
        self.goes_on = false;
    }

    /// Keeps the tokens of which everything that they depend on was looked at.
    pub(crate) fn keep(&mut self, tokens: Tokens) {
        let known = self.younger.share(Arc::new(tokens));
        self.younger.put(&self.key, Node::Known(known));
        self.goes_on = false;
    }

    /// Keeps the mask of a frontier that was not known; `looked_into` are the states that it depends on, if
    /// they could be told. With a `limit` of no bytes nothing is kept.
    pub(crate) fn keep_mask(
        &mut self,
        stepper: &mut Stepper,
        frontier: &[Config],
        looked_into: Option<&[StateId]>,
        mask: &Collected<'_>,
        limit: usize,
    ) {
        self.make_room(limit);
        self.forget_asked();
        if let Some(states) = looked_into.filter(|_| limit > 0) {
            self.descend(stepper, Asked::Mask(frontier), false);
            while self.goes_on
                && let Some(at) = self.unseen(states)
            {
                self.look_further(stepper, at, None);
            }
        }
        match self.goes_on {
            true => {
                self.keep(mask.tokens());
                self.counts.kept += 1;
            }
            false => self.counts.not_kept += 1,
        }
    }

    fn begin_generation(&mut self) {
        let younger = std::mem::take(&mut self.younger);
        let Generation { nodes, edges, sets, held, .. } = std::mem::replace(&mut self.older, younger);
        self.fading.add(held);
        self.fading.add(edges);
        self.fading.add(nodes);
        self.fading.add(sets);
    }

    /// Forgets all masks, and drops them part by part.
    pub(crate) fn let_fade(&mut self) {
        self.begin_generation();
        self.begin_generation();
    }

    /// Drops all masks; returns what they were in. The counts stay.
    pub fn forget(&mut self) -> Self {
        std::mem::replace(self, Self { counts: self.counts, ..Self::default() })
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.younger.bytes + self.older.bytes
    }

    /// How often masks were known.
    pub fn counts(&self) -> MemoCounts {
        self.counts
    }

    fn forget_asked(&mut self) {
        self.goes_on = false;
        self.trail.clear();
        self.met.clear();
        self.looked_at.clear();
        self.key.clear();
    }

    /// Makes the key of a root.
    fn begin(&mut self, stepper: &mut Stepper, asked: Asked<'_>) -> Option<()> {
        self.forget_asked();
        match asked {
            Asked::Mask(frontier) => {
                self.key.push(MASK);
                for &Config { state, lexeme } in frontier {
                    let at = self.place(state);
                    self.key.extend([lexeme.0, at]);
                }
                Some(())
            }
            // What comes through behind a reading depends on its state, or it would not be asked about.
            Asked::Part(Config { state, lexeme }, rest) => {
                self.key.extend([PART, lexeme.0, rest as u32, (rest >> 32) as u32]);
                self.place(state);
                self.add_view(stepper, 0)
            }
        }
    }

    /// Looks at a state: makes the key of what is seen there.
    fn look(&mut self, stepper: &mut Stepper, node: u32, at: u32) -> Option<()> {
        self.key.clear();
        self.key.push(node);
        self.add_view(stepper, at)
    }

    /// Adds to the key what is seen of a state that was met.
    fn add_view(&mut self, stepper: &mut Stepper, at: u32) -> Option<()> {
        let view = stepper.view(self.met[at as usize])?;
        self.looked_at[at as usize] = true;
        self.key.push(view.shape);
        if self.met.len() + view.origins.len() > MAX_MET {
            return None;
        }
        for &origin in view.origins {
            let at = self.place(origin);
            self.key.push(at);
        }
        Some(())
    }

    /// Where a state stands among those that were met, which it now is.
    fn place(&mut self, state: StateId) -> u32 {
        let at = self.met.iter().position(|&other| other == state).unwrap_or_else(|| {
            self.met.push(state);
            self.looked_at.push(false);
            self.met.len() - 1
        });
        at as u32
    }
}

impl Generation {
    /// Where a key leads, if that is known.
    fn edge(&self, key: &[u32]) -> Option<u32> {
        let hash = FxBuildHasher.hash_one(key);
        self.edges.find(hash, |edge| edge.0 == hash && edge.1[..] == *key).map(|edge| edge.2)
    }

    /// Puts a node at the end of a key that leads nowhere yet.
    fn put(&mut self, key: &[u32], made: Node) -> u32 {
        let partial = match &made {
            Node::Look(_, partial) => partial.as_ref(),
            Node::Partial(partial) => Some(partial),
            Node::Known(_) => None,
        };
        let beyond = if key.len() > SHORT { size_of_val(key) } else { 0 };
        self.bytes += size_of::<Node>() + beyond + 2 * size_of::<(u64, EdgeKey, u32)>();
        if let Some(partial) = partial {
            self.bytes += partial.memory_usage();
            partial.each_held(|address, bytes| {
                if !self.held.contains_key(&address) {
                    self.held.insert_unique(address, ());
                    self.bytes += size_of::<usize>() + bytes;
                }
            });
        }
        let node = self.nodes.push(made) as u32;
        let hash = FxBuildHasher.hash_one(key);
        self.edges.insert_unique(hash, (hash, EdgeKey::from_slice(key), node), |edge| edge.0);
        node
    }

    /// The same set, once.
    fn share(&mut self, set: Arc<Tokens>) -> Arc<Tokens> {
        let hash = hash(&set);
        if let Some((_, known)) = self.sets.find(hash, |known| known.0 == hash && known.1 == set) {
            return known.clone();
        }
        self.bytes += set.memory_usage() + 64;
        self.sets.insert_unique(hash, (hash, set.clone()), |known| known.0);
        set
    }
}

fn hash(set: &Tokens) -> u64 {
    match set {
        Tokens::Few(tokens) => {
            let mut hasher = FxHasher::default();
            tokens.iter().for_each(|token| hasher.write_u32(token.0));
            hasher.finish()
        }
        Tokens::Many(words) | Tokens::Most(words, _) => hash_of_row(words),
    }
}

/// Several hashes side by side: each step of one waits for the step before.
fn hash_of_row(words: &[u32]) -> u64 {
    const LANES: usize = 8;
    let mut lanes: [FxHasher; LANES] = Default::default();
    let (blocks, rest) = words.as_chunks::<{ 2 * LANES }>();
    for block in blocks {
        for (lane, hasher) in lanes.iter_mut().enumerate() {
            hasher.write_u64(u64::from(block[lane]) << 32 | u64::from(block[LANES + lane]));
        }
    }
    let mut hasher = FxHasher::default();
    lanes.iter().for_each(|lane| hasher.write_u64(lane.finish()));
    rest.iter().for_each(|&word| hasher.write_u32(word));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_parts_hold_is_counted_once_a_generation() {
        let row = || Arc::new(Tokens::Many(vec![1; 1_000].into()));
        let (common, mut memo) = (row(), Memo::default());
        for at in 0..10 {
            let partial = Partial::holding([common.clone(), row()].into());
            memo.younger.put(&[PART, at], Node::Partial(Arc::new(partial)));
        }
        assert!((44_000..48_000).contains(&memo.memory_usage()), "{}", memo.memory_usage());
        // Brought over, they are held there too.
        memo.begin_generation();
        let node = memo.older.nodes[0].clone();
        memo.younger.put(&[PART, 0], node);
        assert!((8_000..9_000).contains(&memo.younger.bytes), "{}", memo.younger.bytes);
    }
}
