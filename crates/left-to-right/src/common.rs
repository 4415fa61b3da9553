//! What the tokens of a vocabulary do in automata in common use, once for all languages.
//!
//! Most tokens do in one JSON string what they do in any other: they prolong it, or end it and go on behind
//! it. So the trie is walked once with the automaton of any string ([`Common`]), from a place between
//! characters and from each kind of place inside of one, and the result is kept beside the vocabulary. The
//! sweep of another string walks only where tokens do something else: where they spell a key that is listed.
//! Of what they do there *instead* of what is common, this module keeps account ([`Difference`]); the rest is
//! the common result. Cost: nodes at which something differs, and their children; and copies of rows where
//! something does.
//!
//! Two states at the same node are the same if both have one nature, but for bounds of the length: of each
//! token it is found out how many characters it has inside the piece ([`Nature::most`]), so of the common
//! result that is taken which keeps within the bounds ([`Walked::within`]); it is made once for all who have
//! these. Most characters lead from a state back to it: subtrees that have no others are not walked, and
//! their tokens are counted only for bounds that they may not keep within.
//! For masks, what becomes of tokens is told apart no further than by whether something matches or can match
//! later: of one nature only one label does. For canvases it is told apart by states, and where the length
//! has bounds by characters ([`Telling`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anygram_grammar::automata::{Common, Nature, Pieces};
use anygram_vocab::{Alphabet, NodeId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::tokens::Tokens;

/// The common walks of a vocabulary, by name, path and what they tell apart. There are as many as automata
/// name: one for the places between characters, and one for each way to be inside of one.
#[derive(Default)]
pub(crate) struct Commons(Mutex<FxHashMap<Name, Arc<OnceLock<Made>>>>);

/// A walk, if it can be made.
type Made = Option<Arc<Walked>>;

/// Tells common walks apart.
type Name = (&'static str, Box<[u8]>, Telling);

/// What a walk tells apart of what becomes of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Telling {
    /// Whether something matches or can match later, which is what masks ask.
    Kinds,
    /// The state and the characters that were counted, from which canvases go on.
    States,
}

impl Commons {
    /// The walk with an automaton; `None` if it cannot be made. Cost, once: the nodes of the trie at and
    /// below which something else is than characters that lead back to a state.
    pub fn walked(&self, common: Common, telling: Telling, trie: &TokenTrie) -> Option<Arc<Walked>> {
        let name = (common.name, common.path.clone(), telling);
        // Who asks for the same one waits until it is made; who asks for another one does not.
        let cell = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone();
        cell.get_or_init(|| Some(Arc::new(Walked::new(&common, telling, trie)?))).clone()
    }
}

/// A state of the common automaton that tokens come to, as found out by the walk; 0 is the start.
pub(crate) type Known = u32;

/// No state.
pub(crate) const NOWHERE: Known = u32::MAX;

/// What all tokens do from one state of a common automaton.
pub(crate) struct Walked {
    /// By state and byte; of those that nobody asked for, [`NOWHERE`]. The flag says that a character is
    /// counted.
    next: Vec<[(Known, bool); 256]>,
    natures: FxHashMap<u64, Known>,
    /// By state whether a piece ends there.
    ends: Vec<bool>,
    pub fates: Vec<Fate>,
    /// By state the place of its fate.
    fate_of: Vec<usize>,
    /// A state to which a character leads back, and the byte that spells it.
    pub hub: Option<(Known, u8)>,
    /// By state the ways from there to all states, once somebody asked.
    paths: Vec<OnceLock<Box<[Option<Path>]>>>,
}

/// A way from one state to another.
#[derive(Clone)]
pub(crate) struct Path {
    pub bytes: Box<[u8]>,
    /// The characters that they count, which are as few as can be.
    pub n_counted: u64,
}

/// Tokens of which one thing becomes.
pub(crate) struct Fate {
    /// The state that has it, or the first of those.
    pub state: Known,
    /// Whether a piece ends there.
    is_end: bool,
    /// Ranges of sorted positions, each with the characters that these tokens have inside the piece.
    ranges: Vec<Counted>,
    /// Nodes below which all characters lead back to their state, and no piece ends; with that state, and the
    /// characters that lead there.
    runs: Vec<(NodeId, Known, u64)>,
    /// The nodes before which the piece can end, each with the characters that it then has.
    tops: Vec<(NodeId, u64)>,
    /// So many characters none of them has more than.
    most: u64,
    /// By bounds, see [`Walked::within`].
    within: Mutex<FxHashMap<Bounds, Arc<Within>>>,
    /// See [`Walked::by_count`].
    by_count: OnceLock<Box<[(u64, Within)]>>,
}

/// A range of sorted positions, with the characters that these tokens have inside the piece.
type Counted = ((u32, u32), u64);

/// Ranges of sorted positions, and nodes before which the piece can end.
type Part = (Vec<(u32, u32)>, Vec<NodeId>);

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

impl Fate {
    /// Whether a piece ends there.
    pub fn is_end(&self) -> bool {
        self.is_end
    }
}

/// So many bounds are kept, and then all are dropped: strings of one vocabulary rarely have more.
const MANY_BOUNDS: usize = 500;

/// A walk that is being made.
struct Walking<'a> {
    telling: Telling,
    pieces: &'a Pieces,
    trie: &'a TokenTrie,
    walked: Walked,
    /// Of each state, one of the automaton, what may still be counted there, and its fate.
    states: Vec<(u32, u64, usize)>,
    /// Of each state the characters that lead back to it, once somebody asked.
    returning: Vec<Option<Alphabet>>,
    /// Whether something matches at the states of a fate, and whether something can match later.
    kinds: Vec<(bool, bool)>,
}

/// Where a walk is: the state, and the characters that were counted.
type At = (Known, u64);

impl Walked {
    fn new(common: &Common, telling: Telling, trie: &TokenTrie) -> Option<Self> {
        let (pieces, first) = (common.make)()?;
        let start = common.path.iter().try_fold(first, |from, &byte| pieces.step(from, byte).ok()?)?;
        let walked = Self {
            next: Vec::new(),
            natures: FxHashMap::default(),
            ends: Vec::new(),
            fates: Vec::new(),
            fate_of: Vec::new(),
            hub: None,
            paths: Vec::new(),
        };
        let mut walking = Walking {
            telling,
            pieces: &pieces,
            trie,
            walked,
            states: Vec::new(),
            returning: Vec::new(),
            kinds: Vec::new(),
        };
        let (start, _) = walking.state(start)?;
        // Tokens that begin behind a piece are another reading.
        if walking.kinds[walking.states[start as usize].2].0 {
            return None;
        }
        let walk =
            trie.descend(trie.below_root(), (start, 0), |&before, at| walking.enter(before, at).ok_or(()));
        walk.ok()?;
        let mut walked = walking.walked;
        walked.fate_of = walking.states.iter().map(|state| state.2).collect();
        walked.hub = (0..).zip(&walked.next).find_map(|(state, next)| {
            let filler = (0..=u8::MAX).find(|&byte| next[usize::from(byte)] == (state, true))?;
            Some((state, filler))
        });
        walked.paths = vec![OnceLock::new(); walked.next.len()];
        for fate in &mut walked.fates {
            let counts = fate.ranges.iter().map(|range| range.1).chain(fate.tops.iter().map(|top| top.1));
            let of_runs =
                fate.runs.iter().map(|&(at, _, count)| count.saturating_add(trie.height_below(at) as u64));
            fate.most = counts.chain(of_runs).max().unwrap_or(0);
        }
        Some(walked)
    }

    /// Where a byte of a token leads, and whether it begins a character.
    #[inline]
    pub fn step(&self, state: Known, byte: u8) -> (Known, bool) {
        if state == NOWHERE { (NOWHERE, false) } else { self.next[state as usize][usize::from(byte)] }
    }

    /// The tokens of runs, with what they count. Cost: the nodes of the runs.
    fn count(&self, runs: &[(NodeId, Known, u64)], trie: &TokenTrie, mut add: impl FnMut(Counted)) {
        let mut ancestors = Vec::new();
        for &(top, state, count) in runs {
            let below = NodeId(top.0 + 1)..trie.end(top);
            let walk = trie.descend_with(&mut ancestors, below, (state, count), |&(before, count), at| {
                let (next, is_counted) = self.step(before, trie.byte(at));
                let (node, count) = (trie.node(at), count + u64::from(is_counted));
                add(((node.lo as u32, node.own_hi as u32), count));
                Ok::<_, Infallible>(Some((next, count)))
            });
            walk.unwrap_or_else(|never| match never {});
        }
    }

    /// What of a fate keeps within bounds. Cost, once for the same: the different numbers of characters that
    /// tokens have × words.
    pub fn within(&self, fate: &Fate, bounds: Bounds, trie: &TokenTrie, n_words: usize) -> Arc<Within> {
        let least = if fate.is_end { bounds.least.min(fate.most.saturating_add(1)) } else { 0 };
        let bounds = Bounds { least, most: bounds.most.min(fate.most) };
        // Held while it is made, so that it is made once.
        let mut known = fate.within.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MANY_BOUNDS && !known.contains_key(&bounds) {
            known.clear();
        }
        let make = || Arc::new(self.only(fate, bounds, trie, n_words));
        known.entry(bounds).or_insert_with(make).clone()
    }

    fn only(&self, fate: &Fate, bounds: Bounds, trie: &TokenTrie, n_words: usize) -> Within {
        let is_in = |count: u64| (bounds.least..=bounds.most).contains(&count);
        let tops = fate.tops.iter().filter(|top| is_in(top.1)).map(|top| top.0).collect();
        if bounds.least == 0 && bounds.most >= fate.most {
            let whole = |&(top, ..): &(NodeId, Known, u64)| {
                let node = trie.node(top);
                (node.own_hi as u32, node.hi as u32)
            };
            let ranges = fate.ranges.iter().map(|range| range.0).chain(fate.runs.iter().map(whole));
            let ranges: Vec<(u32, u32)> = ranges.collect();
            return Within { tokens: Arc::new(Tokens::of_ranges(trie, &ranges, n_words)), tops };
        }
        let mut words = vec![0; n_words];
        let by_count = self.by_count(fate, trie, n_words).iter().filter(|(count, _)| is_in(*count));
        by_count.for_each(|(_, within)| within.tokens.add_to(&mut words));
        Within { tokens: Arc::new(Tokens::of_row(&words)), tops }
    }

    /// What becomes of tokens with a fate by the characters that they have inside the piece, ascending. Cost,
    /// once: all of it, and the nodes of its runs.
    pub fn by_count<'a>(&self, fate: &'a Fate, trie: &TokenTrie, n_words: usize) -> &'a [(u64, Within)] {
        fate.by_count.get_or_init(|| {
            let mut all: FxHashMap<u64, Part> = FxHashMap::default();
            let mut add =
                |((lo, hi), count): Counted| add_range(&mut all.entry(count).or_default().0, lo..hi);
            fate.ranges.iter().copied().for_each(&mut add);
            self.count(&fate.runs, trie, add);
            for &(top, count) in &fate.tops {
                all.entry(count).or_default().1.push(top);
            }
            let within = |(count, (ranges, tops)): (u64, Part)| {
                let tokens = Arc::new(Tokens::of_ranges(trie, &ranges, n_words));
                (count, Within { tokens, tops: tops.into() })
            };
            let mut all: Vec<(u64, Within)> = all.into_iter().map(within).collect();
            all.sort_unstable_by_key(|part| part.0);
            all.into()
        })
    }

    /// How many states there are.
    pub fn n_states(&self) -> usize {
        self.next.len()
    }

    /// Whether a piece ends in a state.
    pub fn is_end(&self, state: Known) -> bool {
        self.ends[state as usize]
    }

    /// The place of the fate of tokens that lead to a state.
    pub fn fate_of(&self, state: Known) -> usize {
        self.fate_of[state as usize]
    }

    /// A way from one state to another, as far as where bytes lead was asked for. Cost, once for a state: its
    /// ways to all others.
    pub fn path(&self, from: Known, to: Known) -> Option<&Path> {
        self.paths[from as usize].get_or_init(|| self.paths_from(from))[to as usize].as_ref()
    }

    fn paths_from(&self, from: Known) -> Box<[Option<Path>]> {
        let mut found = vec![None; self.next.len()];
        let mut open = BinaryHeap::from([Reverse((0, Vec::new(), from))]);
        while let Some(Reverse((n_counted, bytes, at))) = open.pop() {
            if found[at as usize].is_some() {
                continue;
            }
            let mut seen = vec![false; self.next.len()];
            for (byte, &(next, is_counted)) in (0..=u8::MAX).zip(&self.next[at as usize]) {
                // The first of the bytes that lead there stands for all.
                if next != NOWHERE && !std::mem::replace(&mut seen[next as usize], true) {
                    let longer = bytes.iter().copied().chain([byte]).collect();
                    open.push(Reverse((n_counted + u64::from(is_counted), longer, next)));
                }
            }
            found[at as usize] = Some(Path { bytes: bytes.into(), n_counted });
        }
        found.into()
    }

    /// The state of a nature.
    pub fn of_nature(&self, nature: u64) -> Option<Known> {
        self.natures.get(&nature).copied()
    }
}

impl Walking<'_> {
    /// The state of one of the automaton, and what may still be counted there. `None` if the automaton breaks
    /// its promise.
    fn state(&mut self, own: u32) -> Option<(Known, u64)> {
        let Nature { number, most, .. } = self.pieces.nature(own)?;
        let kind = (!self.pieces.accepts(own).is_empty(), !self.pieces.live(own).is_empty());
        let known = self.walked.natures.get(&number).copied();
        let alike = match (self.telling, known) {
            (Telling::Kinds, _) => self.kinds.iter().position(|&other| other == kind),
            (Telling::States, Some(state)) => Some(self.states[state as usize].2),
            (Telling::States, None) => None,
        };
        let fate = alike.unwrap_or(self.kinds.len());
        let state = known.unwrap_or(self.states.len() as Known);
        if fate == self.kinds.len() {
            self.kinds.push(kind);
            self.walked.fates.push(Fate {
                state,
                is_end: kind.0,
                ranges: Vec::new(),
                runs: Vec::new(),
                tops: Vec::new(),
                most: 0,
                within: Mutex::default(),
                by_count: OnceLock::new(),
            });
        }
        if known.is_none() {
            self.states.push((own, most, fate));
            self.returning.push(None);
            self.walked.next.push([(NOWHERE, false); 256]);
            self.walked.natures.insert(number, state);
            self.walked.ends.push(kind.0);
        }
        (self.states[state as usize].2 == fate && self.kinds[fate] == kind).then_some((state, most))
    }

    /// Where a byte leads from a state, and whether it begins a character, if it leads anywhere. The outer
    /// `None` if the automaton breaks its promise.
    fn step(&mut self, before: Known, byte: u8) -> Option<Option<(Known, bool)>> {
        let known = self.walked.step(before, byte);
        if known.0 != NOWHERE {
            return Some(Some(known));
        }
        let (own, most, _) = self.states[before as usize];
        let Some(to) = self.pieces.step(own, byte).ok()? else { return Some(None) };
        let left = self.pieces.nature(to)?.most;
        // Behind the piece nothing is counted any more.
        let is_counted = left.checked_add(1) == Some(most);
        (is_counted || left == most || left == u64::MAX).then_some(())?;
        let (next, _) = self.state(to)?;
        self.walked.next[before as usize][usize::from(byte)] = (next, is_counted);
        Some(Some((next, is_counted)))
    }

    /// The characters that lead from a state back to it and are counted once, if no piece can end before or
    /// inside of them.
    fn returning(&mut self, state: Known) -> Option<Alphabet> {
        if let Some(known) = self.returning[state as usize] {
            return Some(known);
        }
        let alphabet: Result<Alphabet, ()> =
            Alphabet::leading((state, 0), (state, 1), |(from, count), byte| {
                if self.walked.is_end(from) {
                    return Ok(None);
                }
                let next = self.step(from, byte).ok_or(())?;
                Ok(next.map(|(next, is_counted)| (next, count + u64::from(is_counted))))
            });
        let alphabet = alphabet.ok()?;
        self.returning[state as usize] = Some(alphabet);
        Some(alphabet)
    }

    fn enter(&mut self, (before, count): At, at: NodeId) -> Option<Option<At>> {
        let node = self.trie.node(at);
        let fate = self.states[before as usize].2;
        if self.kinds[fate].0 {
            self.walked.fates[fate].tops.push((at, count));
        }
        let Some((next, is_counted)) = self.step(before, node.byte)? else { return Some(None) };
        let count = count + u64::from(is_counted);
        let is_run = node.end.0 > at.0 + 1
            && self.trie.alphabet(at).is_text()
            && self.trie.alphabet(at).is_subset(self.returning(next)?);
        let fate = &mut self.walked.fates[self.states[next as usize].2];
        add_counted(&mut fate.ranges, (node.lo as u32, node.own_hi as u32), count);
        if is_run {
            fate.runs.push((at, next, count));
            return Some(None);
        }
        Some(Some((next, count)))
    }
}

/// Appends a range, to the one before where they touch and count the same.
fn add_counted(ranges: &mut Vec<Counted>, (lo, hi): (u32, u32), count: u64) {
    match ranges.last_mut() {
        _ if lo == hi => {}
        Some((last, known)) if last.1 == lo && *known == count => last.1 = hi,
        _ => ranges.push(((lo, hi), count)),
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

    /// Whether the sweep itself knows of any of some nodes, in order, before which the piece can end. Cost:
    /// O(differences × log nodes).
    pub fn knows_any(&self, tops: &[NodeId]) -> bool {
        let first = |from: u32| tops.get(tops.partition_point(|top| top.0 < from));
        self.nodes.iter().any(|&(from, to)| first(from).is_some_and(|top| top.0 < to))
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
