//! What the tokens of a vocabulary do in automata in common use, once for all languages.
//!
//! Most tokens do in one JSON string what they do in any other: they prolong it, or end it and go on behind
//! it. So the trie is walked once with the automaton of any string ([`Common`]), and the result is kept
//! beside
//! the vocabulary. The sweep of another string walks only where tokens do something else: where they spell a
//! key that is listed, or come near a bound of the length. Of what they do there *instead* of what is common,
//! this module keeps account ([`Difference`]); the rest is the common result. Cost: nodes at which something
//! differs, and their children; and copies of rows where something does.
//!
//! Two states at the same node are the same if both have one nature, for as many bytes as tokens have below
//! the node. What becomes of tokens is told apart no further than by whether something matches or can match
//! later: of one nature only one label does.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anygram_grammar::automata::{Common, Pieces};
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::mask::{MASK_BITS, Tokens};

/// The common walks of a vocabulary, by name. There are as many as automata name, which is a handful.
#[derive(Default)]
pub(crate) struct Commons(Mutex<FxHashMap<&'static str, Option<Arc<Walked>>>>);

impl Commons {
    /// The walk with an automaton; `None` if it cannot be made. Cost, once: the nodes of the trie.
    pub fn walked(&self, common: Common, trie: &TokenTrie, n_words: usize) -> Option<Arc<Walked>> {
        // Held while it is made, so that it is made once.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(common.name)
            .or_insert_with(|| Some(Arc::new(Walked::new(common, trie, n_words)?)))
            .clone()
    }
}

/// A state of the common automaton that tokens come to, as found out by the walk; 0 is the start.
pub(crate) type Known = u32;

/// No state.
pub(crate) const NOWHERE: Known = u32::MAX;

/// What all tokens do from one state of a common automaton.
pub(crate) struct Walked {
    /// By state and byte; of those that no token asks for, [`NOWHERE`].
    next: Vec<[Known; 256]>,
    natures: FxHashMap<u64, Known>,
    pub fates: Vec<Fate>,
}

/// Tokens of which one thing becomes.
pub(crate) struct Fate {
    /// Bytes that lead from the start to a state of this kind.
    pub path: Box<[u8]>,
    /// The nature of the state that they lead to.
    pub state: Known,
    /// Ranges of sorted positions.
    ranges: Vec<(u32, u32)>,
    tokens: Arc<Tokens>,
    /// The nodes before which the piece can end.
    tops: Vec<NodeId>,
}

/// A walk that is being made.
struct Walking<'a> {
    pieces: &'a Pieces,
    trie: &'a TokenTrie,
    walked: Walked,
    /// Of each state, that of the automaton, and its fate.
    states: Vec<(u32, usize)>,
    /// Whether something matches at the states of a fate, and whether something can match later.
    kinds: Vec<(bool, bool)>,
    ids: FxHashMap<u32, Known>,
    path: Vec<u8>,
}

impl Walked {
    fn new(common: Common, trie: &TokenTrie, n_words: usize) -> Option<Self> {
        let (pieces, start) = (common.make)()?;
        let walked = Self { next: Vec::new(), natures: FxHashMap::default(), fates: Vec::new() };
        let (states, kinds, ids, path) = (Vec::new(), Vec::new(), FxHashMap::default(), Vec::new());
        let mut walking = Walking { pieces: &pieces, trie, walked, states, kinds, ids, path };
        let start = walking.state(start)?;
        // Tokens that begin behind a piece are another reading.
        if walking.kinds[walking.states[start as usize].1].0 {
            return None;
        }
        let walk =
            trie.descend(trie.below_root(), (start, 0), |&before, at| walking.enter(before, at).ok_or(()));
        walk.ok()?;
        let mut walked = walking.walked;
        for fate in &mut walked.fates {
            let ranges = fate.ranges.iter().flat_map(|&(lo, hi)| &trie.order()[lo as usize..hi as usize]);
            fate.tokens = Arc::new(Tokens::new(ranges.copied().collect(), n_words));
        }
        Some(walked)
    }

    /// Where a byte of a token leads.
    #[inline]
    pub fn step(&self, state: Known, byte: u8) -> Known {
        if state == NOWHERE { NOWHERE } else { self.next[state as usize][usize::from(byte)] }
    }

    /// The state of a nature.
    pub fn of_nature(&self, nature: u64) -> Option<Known> {
        self.natures.get(&nature).copied()
    }
}

impl Walking<'_> {
    /// `None` if the automaton breaks its promise.
    fn state(&mut self, own: u32) -> Option<Known> {
        if let Some(&known) = self.ids.get(&own) {
            return Some(known);
        }
        let nature = self.pieces.nature(own).filter(|nature| nature.reach == usize::MAX)?.number;
        let kind = (!self.pieces.accepts(own).is_empty(), !self.pieces.live(own).is_empty());
        let fresh = self.states.len() as Known;
        let fate = self.kinds.iter().position(|&other| other == kind).unwrap_or(self.kinds.len());
        if fate == self.kinds.len() {
            self.kinds.push(kind);
            self.walked.fates.push(Fate {
                path: self.path.clone().into(),
                state: fresh,
                ranges: Vec::new(),
                tokens: Arc::new(Tokens::new(Vec::new(), 0)),
                tops: Vec::new(),
            });
        }
        self.states.push((own, fate));
        self.walked.next.push([NOWHERE; 256]);
        self.ids.insert(own, fresh);
        self.walked.natures.insert(nature, fresh).is_none().then_some(fresh)
    }

    fn enter(&mut self, (before, depth): (Known, usize), at: NodeId) -> Option<Option<(Known, usize)>> {
        let node = self.trie.node(at);
        let (own, fate) = self.states[before as usize];
        if self.kinds[fate].0 {
            self.walked.fates[fate].tops.push(at);
        }
        self.path.truncate(depth);
        self.path.push(node.byte);
        let mut next = self.walked.step(before, node.byte);
        if next == NOWHERE {
            let Some(to) = self.pieces.step(own, node.byte).ok()? else { return Some(None) };
            next = self.state(to)?;
            self.walked.next[before as usize][usize::from(node.byte)] = next;
        }
        let ranges = &mut self.walked.fates[self.states[next as usize].1].ranges;
        add_range(ranges, node.lo as u32..node.own_hi as u32);
        Some(Some((next, depth + 1)))
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

    /// The tokens of a fate but for those of which something else becomes. Cost: where there are some of
    /// those, a copy.
    pub fn tokens(&self, fate: &Fate, trie: &TokenTrie, n_words: usize) -> Arc<Tokens> {
        let gone = meets(&fate.ranges, &self.positions);
        if gone.is_empty() {
            return fate.tokens.clone();
        }
        let ids = |ranges: &[(u32, u32)]| -> Vec<TokenId> {
            let ids = ranges.iter().flat_map(|&(lo, hi)| &trie.order()[lo as usize..hi as usize]);
            ids.copied().collect()
        };
        let mut gone = ids(&gone);
        Arc::new(match &*fate.tokens {
            Tokens::Many(words) => {
                let mut words = words.clone();
                for token in gone {
                    words[token.index() / MASK_BITS] &= !(1 << (token.index() % MASK_BITS));
                }
                Tokens::Many(words)
            }
            Tokens::Few(tokens) => {
                gone.sort_unstable();
                let is_left = |token: &&TokenId| gone.binary_search(token).is_err();
                Tokens::new(tokens.iter().filter(is_left).copied().collect(), n_words)
            }
        })
    }

    /// The nodes before which the piece can end, but for those that the sweep itself knows of.
    pub fn tops(&self, fate: &Fate) -> Vec<NodeId> {
        let mut left = Vec::with_capacity(fate.tops.len());
        let mut known = self.nodes.iter().peekable();
        for &top in &fate.tops {
            while known.next_if(|&&(_, to)| to <= top.0).is_some() {}
            if known.peek().is_none_or(|&&(from, _)| top.0 < from) {
                left.push(top);
            }
        }
        left
    }
}

/// What two ascending lists of ranges have in common. Cost: the second times a search in the first, and what
/// is found.
fn meets(ranges: &[(u32, u32)], others: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for &(from, to) in others {
        let first = ranges.partition_point(|&(_, end)| end <= from);
        let inside = ranges[first..].iter().take_while(|&&(start, _)| start < to);
        found.extend(inside.map(|&(start, end)| (start.max(from), end.min(to))));
    }
    found
}
