//! What the tokens of a vocabulary do in automata in common use, once for all languages.
//!
//! Most tokens do in one JSON string what they do in any other: they prolong it, or end it and go on behind
//! it. So the trie is walked once with the automaton of any string ([`Common`]), and the result is kept
//! beside
//! the vocabulary. The sweep of another string walks only where tokens do something else: where they spell a
//! key that is listed. Of what they do there *instead* of what is common, this module keeps account
//! ([`Difference`]); the rest is the common result. Cost: nodes at which something differs, and their
//! children; and copies of rows where something does.
//!
//! Two states at the same node are the same if both have one nature, but for bounds of the length: of each
//! token it is known how many characters it has inside the piece ([`Nature::most`]), so of the common result
//! that is taken which keeps within the bounds ([`Fate::within`]); it is made once for all who have these.
//! What becomes of tokens is told apart no further than by whether something matches or can match later: of
//! one nature only one label does.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anygram_grammar::automata::{Common, Nature, Pieces};
use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::mask::Tokens;

/// The common walks of a vocabulary, by name. There are as many as automata name, which is a handful.
#[derive(Default)]
pub(crate) struct Commons(Mutex<FxHashMap<&'static str, Option<Arc<Walked>>>>);

impl Commons {
    /// The walk with an automaton; `None` if it cannot be made. Cost, once: the nodes of the trie.
    pub fn walked(&self, common: Common, trie: &TokenTrie) -> Option<Arc<Walked>> {
        // Held while it is made, so that it is made once.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(common.name).or_insert_with(|| Some(Arc::new(Walked::new(common, trie)?))).clone()
    }
}

/// A state of the common automaton that tokens come to, as found out by the walk; 0 is the start.
pub(crate) type Known = u32;

/// No state.
pub(crate) const NOWHERE: Known = u32::MAX;

/// What all tokens do from one state of a common automaton.
pub(crate) struct Walked {
    /// By state and byte; of those that no token asks for, [`NOWHERE`]. The flag says that a character is
    /// counted.
    next: Vec<[(Known, bool); 256]>,
    natures: FxHashMap<u64, Known>,
    /// By state whether a piece ends there.
    ends: Vec<bool>,
    pub fates: Vec<Fate>,
}

/// Tokens of which one thing becomes.
pub(crate) struct Fate {
    /// Bytes that lead from the start to a state of this kind, with as few characters as can be.
    pub path: Box<[u8]>,
    pub n_in_path: u64,
    /// The nature of the state that they lead to.
    pub state: Known,
    /// Whether a piece ends there.
    is_end: bool,
    /// Ranges of sorted positions, each with the characters that these tokens have inside the piece.
    ranges: Vec<((u32, u32), u64)>,
    /// The nodes before which the piece can end, each with the characters that it then has.
    tops: Vec<(NodeId, u64)>,
    /// The most characters of them.
    most: u64,
    /// By bounds, see [`Fate::within`].
    within: Mutex<FxHashMap<Bounds, Arc<Within>>>,
}

/// The fewest characters that a piece has where it ends, and the most that it has at all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bounds {
    /// The fewest.
    pub least: u64,
    /// The most.
    pub most: u64,
}

/// What of a [`Fate`] keeps within some bounds.
pub(crate) struct Within {
    pub tokens: Arc<Tokens>,
    pub tops: Box<[NodeId]>,
}

/// So many bounds are kept, and then all are dropped: strings of one vocabulary rarely have more.
const MANY_BOUNDS: usize = 500;

/// A walk that is being made.
struct Walking<'a> {
    pieces: &'a Pieces,
    trie: &'a TokenTrie,
    walked: Walked,
    /// Of each state, one of the automaton, what may still be counted there, and its fate.
    states: Vec<(u32, u64, usize)>,
    /// Whether something matches at the states of a fate, and whether something can match later.
    kinds: Vec<(bool, bool)>,
    path: Vec<u8>,
}

/// Where a walk is: the state, the length of the path, and the characters that were counted.
type At = (Known, usize, u64);

impl Walked {
    fn new(common: Common, trie: &TokenTrie) -> Option<Self> {
        let (pieces, start) = (common.make)()?;
        let walked =
            Self { next: Vec::new(), natures: FxHashMap::default(), ends: Vec::new(), fates: Vec::new() };
        let mut walking = Walking {
            pieces: &pieces,
            trie,
            walked,
            states: Vec::new(),
            kinds: Vec::new(),
            path: Vec::new(),
        };
        let (start, _) = walking.state(start, 0)?;
        // Tokens that begin behind a piece are another reading.
        if walking.kinds[walking.states[start as usize].2].0 {
            return None;
        }
        let walk =
            trie.descend(trie.below_root(), (start, 0, 0), |&before, at| walking.enter(before, at).ok_or(()));
        walk.ok()?;
        let mut walked = walking.walked;
        for fate in &mut walked.fates {
            let counts = fate.ranges.iter().map(|range| range.1).chain(fate.tops.iter().map(|top| top.1));
            fate.most = counts.max().unwrap_or(0);
        }
        Some(walked)
    }

    /// Where a byte of a token leads, and whether it begins a character.
    #[inline]
    pub fn step(&self, state: Known, byte: u8) -> (Known, bool) {
        if state == NOWHERE { (NOWHERE, false) } else { self.next[state as usize][usize::from(byte)] }
    }

    /// How many states there are.
    pub fn n_states(&self) -> usize {
        self.next.len()
    }

    /// Whether a piece ends in a state.
    pub fn is_end(&self, state: Known) -> bool {
        self.ends[state as usize]
    }

    /// A byte that is a character and leads from a state back to it.
    pub fn filler(&self, state: Known) -> Option<u8> {
        (0..=u8::MAX).find(|&byte| self.next[state as usize][usize::from(byte)] == (state, true))
    }

    /// The state of a nature.
    pub fn of_nature(&self, nature: u64) -> Option<Known> {
        self.natures.get(&nature).copied()
    }
}

impl Fate {
    /// What of it keeps within bounds. Cost, once for the same: all of it.
    pub fn within(&self, bounds: Bounds, trie: &TokenTrie, n_words: usize) -> Arc<Within> {
        let least = if self.is_end { bounds.least.min(self.most + 1) } else { 0 };
        let bounds = Bounds { least, most: bounds.most.min(self.most) };
        // Held while it is made, so that it is made once.
        let mut known = self.within.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MANY_BOUNDS && !known.contains_key(&bounds) {
            known.clear();
        }
        known.entry(bounds).or_insert_with(|| Arc::new(self.only(bounds, trie, n_words))).clone()
    }

    fn only(&self, Bounds { least, most }: Bounds, trie: &TokenTrie, n_words: usize) -> Within {
        let is_in = |count: u64| (least..=most).contains(&count);
        let ranges = self.ranges.iter().filter(|range| is_in(range.1)).map(|range| range.0);
        let tokens = ranges.flat_map(|(lo, hi)| &trie.order()[lo as usize..hi as usize]);
        let tops = self.tops.iter().filter(|top| is_in(top.1)).map(|top| top.0);
        Within { tokens: Arc::new(Tokens::new(tokens.copied().collect(), n_words)), tops: tops.collect() }
    }
}

impl Walking<'_> {
    /// The state of one of the automaton, to which so many characters led, and what may still be counted
    /// there. `None` if the automaton breaks its promise.
    fn state(&mut self, own: u32, count: u64) -> Option<(Known, u64)> {
        let Nature { number, most, .. } = self.pieces.nature(own)?;
        let kind = (!self.pieces.accepts(own).is_empty(), !self.pieces.live(own).is_empty());
        let fate = self.kinds.iter().position(|&other| other == kind).unwrap_or(self.kinds.len());
        let known = self.walked.natures.get(&number).copied();
        let state = known.unwrap_or(self.states.len() as Known);
        if fate == self.kinds.len() {
            self.kinds.push(kind);
            self.walked.fates.push(Fate {
                path: self.path.clone().into(),
                n_in_path: count,
                state,
                is_end: kind.0,
                ranges: Vec::new(),
                tops: Vec::new(),
                most: 0,
                within: Mutex::default(),
            });
        }
        if known.is_none() {
            self.states.push((own, most, fate));
            self.walked.next.push([(NOWHERE, false); 256]);
            self.walked.natures.insert(number, state);
            self.walked.ends.push(kind.0);
        }
        (self.states[state as usize].2 == fate).then_some((state, most))
    }

    fn enter(&mut self, (before, depth, count): At, at: NodeId) -> Option<Option<At>> {
        let node = self.trie.node(at);
        let (own, most, fate) = self.states[before as usize];
        if self.kinds[fate].0 {
            self.walked.fates[fate].tops.push((at, count));
        }
        self.path.truncate(depth);
        self.path.push(node.byte);
        let (mut next, mut is_counted) = self.walked.step(before, node.byte);
        if next == NOWHERE {
            let Some(to) = self.pieces.step(own, node.byte).ok()? else { return Some(None) };
            let left = self.pieces.nature(to)?.most;
            // Behind the piece nothing is counted any more.
            is_counted = left.checked_add(1) == Some(most);
            (is_counted || left == most || left == u64::MAX).then_some(())?;
            (next, _) = self.state(to, count + u64::from(is_counted))?;
            self.walked.next[before as usize][usize::from(node.byte)] = (next, is_counted);
        }
        let count = count + u64::from(is_counted);
        let fate = &mut self.walked.fates[self.states[next as usize].2];
        if count < fate.n_in_path {
            (fate.path, fate.n_in_path, fate.state) = (self.path.clone().into(), count, next);
        }
        let (lo, hi) = (node.lo as u32, node.own_hi as u32);
        match fate.ranges.last_mut() {
            _ if lo == hi => {}
            Some((last, known)) if last.1 == lo && *known == count => last.1 = hi,
            _ => fate.ranges.push(((lo, hi), count)),
        }
        Some(Some((next, depth + 1, count)))
    }
}

/// Appends a range, to the one before where they touch.
fn add_range(ranges: &mut Vec<(u32, u32)>, range: Range<u32>) {
    match ranges.last_mut() {
        _ if range.is_empty() => {}
        Some(last) if last.1 == range.start => last.1 = range.end,
        _ => ranges.push((range.start, range.end)),
    }
}

/// Where a sweep does something else than the common walk, found in the order of the trie.
#[derive(Default)]
pub(crate) struct Difference {
    /// Positions of tokens of which something else becomes.
    positions: Vec<(u32, u32)>,
    /// Nodes of which the sweep itself knows whether the piece can end before them.
    nodes: Vec<(u32, u32)>,
}

impl Difference {
    /// The sweep knows of a node, and of the tokens that end there.
    pub fn note(&mut self, trie: &TokenTrie, at: NodeId) {
        let node = trie.node(at);
        add_range(&mut self.positions, node.lo as u32..node.own_hi as u32);
    }

    /// The sweep knows whether the piece can end before a node.
    pub fn note_before(&mut self, at: NodeId) {
        add_range(&mut self.nodes, at.0..at.0 + 1);
    }

    /// Nothing becomes of the tokens below a node, before which the sweep was.
    pub fn note_below(&mut self, trie: &TokenTrie, at: NodeId) {
        let node = trie.node(at);
        add_range(&mut self.positions, node.lo as u32..node.hi as u32);
        add_range(&mut self.nodes, at.0 + 1..node.end.0);
    }

    /// The tokens of which something else becomes. Cost: their number, and where they are many the words of a
    /// row.
    pub fn gone(&self, trie: &TokenTrie, n_words: usize) -> Tokens {
        let gone = self.positions.iter().flat_map(|&(lo, hi)| &trie.order()[lo as usize..hi as usize]);
        Tokens::new(gone.copied().collect(), n_words)
    }

    /// Of nodes before which the piece can end those of which the sweep itself does not know.
    pub fn tops(&self, tops: &[NodeId]) -> Vec<NodeId> {
        let mut left = Vec::with_capacity(tops.len());
        let mut known = self.nodes.iter().peekable();
        for &top in tops {
            while known.next_if(|&&(_, to)| to <= top.0).is_some() {}
            if known.peek().is_none_or(|&&(from, _)| top.0 < from) {
                left.push(top);
            }
        }
        left
    }
}
