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
//! What comes through of what is left of tokens behind the end of a piece is kept in the same way (`follow`),
//! for a mask that is new mostly has new reasons for few of its tokens. Where the mask had tokens already,
//! what is kept says so.
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

use anygram_bits::{Pages, PartedTable};
use anygram_recognizer::StateId;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::epoch::Fading;
use crate::frontier::{Config, Stepper};
use crate::tokens::Tokens;

/// What is known of masks and of parts of masks, bounded in bytes.
#[derive(Default)]
pub struct Memo {
    younger: Generation,
    older: Generation,
    fading: Fading,
    counts: MemoCounts,
    /// What was found out while the present mask is computed and is not kept.
    present: FxHashMap<(Config, u64), Found>,
    /// Scratch: the states met on the way, those of them that were looked at, and a key.
    met: Vec<StateId>,
    looked_at: Vec<StateId>,
    key: Vec<u32>,
}

/// Decision trees.
#[derive(Default)]
struct Generation {
    nodes: Pages<Node>,
    /// From a node, the first word, by what is seen; the key of a root has [`MASK`] or [`PART`] there, and
    /// what is asked about.
    /// Each with its hash: a table that grows does not look at the keys.
    edges: PartedTable<(u64, EdgeKey, u32)>,
    /// Of each set of tokens, by hash, all that have it.
    sets: PartedTable<(u64, Arc<Tokens>)>,
    bytes: usize,
}

/// What is asked about: a mask, or what is left of some tokens behind a reading.
#[derive(Clone, Copy)]
enum Root<'a> {
    Mask(&'a [Config]),
    Part((Config, u64)),
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
}

/// Sets of tokens whose union is meant: few.
pub(crate) type Parts = Arc<[Arc<Tokens>]>;

/// Those of what is left of some tokens that come through behind a reading.
#[derive(Clone)]
pub(crate) struct Known {
    pub parts: Parts,
    /// Tokens of which it was not found out whether they do, since the mask had them already.
    pub assumed: Option<Arc<Tokens>>,
}

impl Known {
    /// Whether that is enough for a mask that has some tokens already.
    fn is_enough(&self, words: &[u32]) -> bool {
        self.assumed.as_ref().is_none_or(|assumed| assumed.is_subset(words))
    }
}

/// The same, with the states that were looked into, if they could be told.
struct Found(Known, Option<Arc<[StateId]>>);

/// What leads from a node: mostly its number, a shape, and some states that were met.
type EdgeKey = SmallVec<[u32; SHORT]>;

const SHORT: usize = 8;

const MASK: u32 = u32::MAX;
const PART: u32 = u32::MAX - 1;

enum Node {
    /// The state that was met as the so many-th decides.
    Look(u32),
    Known(Known),
}

/// Beyond this many states a situation is not likely to come again.
const MAX_MET: usize = 256;

impl Memo {
    /// Begins a mask: parser states may have got other numbers since the last one.
    pub(crate) fn begin_mask(&mut self) {
        self.fading.fade();
        self.present.clear();
    }

    /// The mask of a frontier, if it is known.
    pub(crate) fn find(&mut self, stepper: &mut Stepper, frontier: &[Config]) -> Option<&Tokens> {
        let node = self.known(stepper, Root::Mask(frontier))?;
        self.counts.found += 1;
        self.younger.known(node)?.parts.first().map(|mask| &**mask)
    }

    /// Keeps the mask of a frontier that was not known; `looked_into` are the states that it depends on,
    /// sorted, if they could be told. With a `limit` of no bytes nothing is kept.
    pub(crate) fn insert(
        &mut self,
        stepper: &mut Stepper,
        frontier: &[Config],
        looked_into: Option<&[StateId]>,
        mask: &[u32],
        limit: usize,
    ) {
        self.make_room(limit);
        let kept = looked_into.filter(|_| limit > 0).and_then(|states| {
            let mask = Arc::new(Tokens::of_row(mask));
            self.begin(stepper, Root::Mask(frontier))?;
            self.keep(stepper, states, Known { parts: Arc::new([mask]), assumed: None })
        });
        match kept {
            Some(()) => self.counts.kept += 1,
            None => self.counts.not_kept += 1,
        }
    }

    /// Which of what is left of some tokens come through behind a reading, as far as a mask does not have
    /// them already, if that is known: of the present mask, or also of others. What is looked at is noted.
    pub(crate) fn find_part(
        &mut self,
        stepper: &mut Stepper,
        part: (Config, u64),
        of_others: bool,
        words: &[u32],
    ) -> Option<Known> {
        if let Some(Found(known, looked_into)) = self.present.get(&part)
            && known.is_enough(words)
        {
            stepper.look_into_all(looked_into.as_deref());
            self.counts.parts_found += 1;
            return Some(known.clone());
        }
        if !of_others {
            return None;
        }
        let node = self.known(stepper, Root::Part(part))?;
        let known = self.younger.known(node)?;
        if !known.is_enough(words) {
            return None;
        }
        stepper.look_into_all(Some(&self.looked_at));
        self.counts.parts_found += 1;
        Some(known.clone())
    }

    /// Keeps what comes through behind a reading: with a limit as [`Memo::insert`] keeps masks, and where
    /// that cannot be for the present mask.
    pub(crate) fn insert_part(
        &mut self,
        stepper: &mut Stepper,
        part: (Config, u64),
        looked_into: Option<&[StateId]>,
        known: Known,
        limit: Option<usize>,
    ) {
        if let Some(limit) = limit {
            self.make_room(limit);
        }
        let kept = looked_into.filter(|_| limit.is_some_and(|limit| limit > 0)).and_then(|states| {
            self.begin(stepper, Root::Part(part))?;
            self.keep(stepper, states, known.clone())
        });
        if kept.is_none() {
            self.present.insert(part, Found(known, looked_into.map(Into::into)));
        }
    }

    /// What is known of a root, as a node of the younger generation.
    fn known(&mut self, stepper: &mut Stepper, root: Root<'_>) -> Option<u32> {
        self.begin(stepper, root)?;
        if let Some(node) = self.descend(stepper, |this| &this.younger) {
            return Some(node);
        }
        if self.older.nodes.is_empty() {
            return None;
        }
        self.begin(stepper, root)?;
        let node = self.descend(stepper, |this| &this.older)?;
        let known = self.older.known(node)?.clone();
        let mut looked_into = self.looked_at.clone();
        looked_into.sort_unstable();
        self.begin(stepper, root)?;
        self.keep(stepper, &looked_into, known)?;
        self.begin(stepper, root)?;
        self.descend(stepper, |this| &this.younger)
    }

    /// From a root to what is known there: the last node.
    fn descend(&mut self, stepper: &mut Stepper, of: fn(&Self) -> &Generation) -> Option<u32> {
        loop {
            let node = of(self).edge(&self.key)?;
            match of(self).nodes[node as usize] {
                Node::Known(_) => return Some(node),
                Node::Look(at) => self.look(stepper, node, at)?,
            }
        }
    }

    /// Keeps something in the younger generation: from a root along what is known there, in place of what
    /// was known.
    fn keep(&mut self, stepper: &mut Stepper, looked_into: &[StateId], known: Known) -> Option<()> {
        let mut looked_at: Vec<u32> = (0..self.looked_at.len() as u32).collect();
        loop {
            let node = self.younger.edge(&self.key);
            let at = match node.map(|node| &self.younger.nodes[node as usize]) {
                Some(&Node::Look(at)) => Some(at),
                // Those that were not met were made on the way, and follow from the others.
                _ => (0..self.met.len() as u32).find(|at| {
                    !looked_at.contains(at) && looked_into.binary_search(&self.met[*at as usize]).is_ok()
                }),
            };
            let Some(at) = at else {
                let known = self.younger.share_all(known);
                self.younger.put(&self.key, node, Node::Known(known));
                return Some(());
            };
            let node = self.younger.put(&self.key, node, Node::Look(at));
            looked_at.push(at);
            self.look(stepper, node, at)?;
        }
    }

    fn make_room(&mut self, limit: usize) {
        if self.younger.bytes > limit / 2 {
            self.begin_generation();
        }
    }

    fn begin_generation(&mut self) {
        let younger = std::mem::take(&mut self.younger);
        let Generation { nodes, edges, sets, .. } = std::mem::replace(&mut self.older, younger);
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

    /// Makes the key of a root.
    fn begin(&mut self, stepper: &mut Stepper, root: Root<'_>) -> Option<()> {
        match root {
            Root::Mask(frontier) => {
                self.begin_root(MASK);
                for &Config { state, lexeme } in frontier {
                    self.key.push(lexeme.0);
                    let at = place(&mut self.met, state);
                    self.key.push(at);
                }
                Some(())
            }
            // What comes through behind a reading depends on its state, or it would not be asked about.
            Root::Part((reading, rest)) => {
                self.begin_root(PART);
                self.key.extend([reading.lexeme.0, rest as u32, (rest >> 32) as u32]);
                self.met.push(reading.state);
                self.add_view(stepper, 0)
            }
        }
    }

    fn begin_root(&mut self, root: u32) {
        self.met.clear();
        self.looked_at.clear();
        self.key.clear();
        self.key.push(root);
    }

    /// Looks at a state: makes the key of what is seen there.
    fn look(&mut self, stepper: &mut Stepper, node: u32, at: u32) -> Option<()> {
        self.key.clear();
        self.key.push(node);
        self.add_view(stepper, at)
    }

    /// Adds to the key what is seen of a state that was met.
    fn add_view(&mut self, stepper: &mut Stepper, at: u32) -> Option<()> {
        let state = self.met[at as usize];
        let view = stepper.view(state)?;
        self.looked_at.push(state);
        self.key.push(view.shape);
        if self.met.len() + view.origins.len() > MAX_MET {
            return None;
        }
        for &origin in view.origins {
            let at = place(&mut self.met, origin);
            self.key.push(at);
        }
        Some(())
    }
}

impl Generation {
    fn known(&self, node: u32) -> Option<&Known> {
        match self.nodes.get(node as usize)? {
            Node::Known(known) => Some(known),
            Node::Look(_) => None,
        }
    }

    /// Where a key leads, if that is known.
    fn edge(&self, key: &[u32]) -> Option<u32> {
        let hash = FxBuildHasher.hash_one(key);
        self.edges.find(hash, |edge| edge.0 == hash && edge.1[..] == *key).map(|edge| edge.2)
    }

    /// Puts a node in the place of a known one, or at the end of a key.
    fn put(&mut self, key: &[u32], known: Option<u32>, made: Node) -> u32 {
        if let Some(node) = known {
            self.nodes[node as usize] = made;
            return node;
        }
        let node = self.nodes.push(made) as u32;
        let beyond = if key.len() > SHORT { size_of_val(key) } else { 0 };
        self.bytes += size_of::<Node>() + beyond + 2 * size_of::<(u64, EdgeKey, u32)>();
        let hash = FxBuildHasher.hash_one(key);
        self.edges.insert_unique(hash, (hash, EdgeKey::from_slice(key), node), |edge| edge.0);
        node
    }

    /// The same, with sets that are here once.
    fn share_all(&mut self, Known { parts, assumed }: Known) -> Known {
        self.bytes += size_of_val(&*parts);
        let mut share = |set: &Arc<Tokens>| self.share(set.clone());
        Known { parts: parts.iter().map(&mut share).collect(), assumed: assumed.as_ref().map(share) }
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

/// Where a state stands among those that were met, which it now is.
fn place(met: &mut Vec<StateId>, state: StateId) -> u32 {
    let at = met.iter().position(|&other| other == state).unwrap_or_else(|| {
        met.push(state);
        met.len() - 1
    });
    at as u32
}
