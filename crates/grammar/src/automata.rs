//! Parts of grammars that are too large to be written down: rules and terminals given by automata whose
//! states are made as texts need them.
//!
//! A [`RuleAutomaton`] stands for the right-hand sides of one nonterminal: the members of a JSON object in
//! any order would take a rule for each set of keys. A [`PieceAutomaton`] stands for some terminals that
//! begin alike: six thousand strings, or strings of at most a million characters.
//!
//! What stays true of both: states are numbered densely as they are made and keep their numbers; only states
//! are made from which something can be accepted; everything may be asked from several threads at once. Cost
//! of a question whose answer is known: a look-up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::Arc;

use anygram_bits::{BitSet, Fingerprint};
use rustc_hash::FxHashSet;

use crate::ir::{Grammar, TerminalKind};

/// A bound on the states of an automaton was hit; those that it has stay usable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooManyStates {
    /// What the automaton stands for, in the words of its source.
    pub what: String,
    /// The limit in force.
    pub limit: usize,
    /// The option that sets it.
    pub option: &'static str,
}

impl fmt::Display for TooManyStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, option } = self;
        write!(f, "{what} needs more than {limit} states; raise the limit `{option}`")
    }
}

impl std::error::Error for TooManyStates {}

/// The right-hand sides of one nonterminal: sequences of symbols, as a deterministic automaton.
///
/// Symbols are numbers of the automaton's own; the grammar says what each stands for. None of them may stand
/// for a nonterminal that derives the empty sequence.
pub trait RuleAutomaton: Debug + Send + Sync {
    /// The state before the first symbol.
    fn start(&self) -> u32;

    /// The symbols that can come next, sorted.
    fn symbols(&self, state: u32) -> Arc<[u32]>;

    /// Where one of these symbols leads.
    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates>;

    /// States of one kind can be [joined](Self::joined); those without a kind are joined with none.
    fn kind(&self, state: u32) -> Option<u32> {
        let _ = state;
        None
    }

    /// A state in which at least all can follow that can follow in one of these, which are of one kind; it is
    /// of that kind too. Where there are as many states as subsets of something, as of the keys of an object,
    /// what is reached by many ways is known by one state in this way. Called with states of the kind alone.
    fn joined(&self, states: &[u32]) -> Result<u32, TooManyStates> {
        Ok(states.first().copied().unwrap_or_else(|| self.start()))
    }

    /// How many symbols are still to be read that every right-hand side has, if these are its last, given
    /// from right to left; about as many, for it only says what is better tried first.
    fn lacking(&self, last: &[u32]) -> u32 {
        let _ = last;
        0
    }

    /// Whether a right-hand side may end here.
    fn accepts(&self, state: u32) -> bool;

    /// The fewest symbols with which a right-hand side ends.
    fn minimum(&self, state: u32) -> u32;

    /// At least this much weigh the symbols with which a right-hand side ends, whichever they are: the sum
    /// over parts of it, of each of which `weight` says what it weighs at least. The better the parts stay
    /// together what is always written together, the better is the bound.
    fn least(&self, state: u32, weight: &mut dyn FnMut(&[u32]) -> u32) -> u32 {
        if self.accepts(state) {
            return 0;
        }
        self.symbols(state).iter().map(|&symbol| weight(&[symbol])).min().unwrap_or(0)
    }
}

/// States that are looked at for few symbols.
const SEARCHED: usize = 4_000;

/// Symbols more than an automaton says that there have to be.
const SLACK: u32 = 8;

impl dyn RuleAutomaton + '_ {
    /// Few symbols with which a right-hand side ends, each with the state before it and none heavier than it
    /// has to be; `None` if none are found within bounds. A symbol without a weight is not used.
    ///
    /// The search goes where the fewest symbols are lacking, and among equals goes on where it is furthest;
    /// so the orders of an object's keys are not gone through. `n_states` counts down the states that are
    /// looked at.
    pub fn few_symbols(
        &self,
        from: u32,
        weight: &dyn Fn(u32) -> Option<u32>,
        n_states: &mut usize,
    ) -> Option<Vec<(u32, u32)>> {
        let least = self.minimum(from);
        [least, least.saturating_add(SLACK)]
            .into_iter()
            .find_map(|most| self.at_most_symbols((from, most), weight, n_states))
    }

    fn at_most_symbols(
        &self,
        (from, most): (u32, u32),
        weight: &dyn Fn(u32) -> Option<u32>,
        n_states: &mut usize,
    ) -> Option<Vec<(u32, u32)>> {
        let mut before = vec![(from, 0, 0)];
        let mut known = FxHashSet::from_iter([from]);
        let mut open = BinaryHeap::from([Reverse((0, Reverse(0), 0, 0))]);
        while let Some(Reverse((_, Reverse(depth), heavy, at))) = open.pop() {
            let state: u32 = before[at].0;
            if self.accepts(state) {
                let path = std::iter::successors(Some(at), |&at| (at > 0).then(|| before[at].1));
                let step = |at: usize| (before[before[at].1].0, before[at].2);
                let mut path: Vec<(u32, u32)> = path.filter(|&at| at > 0).map(step).collect();
                path.reverse();
                return Some(path);
            }
            for &number in self.symbols(state).iter() {
                let Some(weight) = weight(number) else { continue };
                let (heavy, depth): (u32, u32) = (weight.saturating_add(heavy), depth + 1);
                let next = self.step(state, number).ok()?;
                let lacking = depth.saturating_add(self.minimum(next));
                if lacking > most || !known.insert(next) {
                    continue;
                }
                *n_states = n_states.checked_sub(1)?;
                if before.len() > SEARCHED {
                    return None;
                }
                before.push((next, at, number));
                open.push(Reverse((lacking, Reverse(depth), heavy, before.len() - 1)));
            }
        }
        None
    }
}

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Bytes([u128; 2]);

impl Bytes {
    /// None.
    pub const NONE: Self = Self([0; 2]);
    /// All 256.
    pub const ALL: Self = Self([u128::MAX; 2]);

    /// Adds the bytes from one to another, both included.
    pub fn insert(&mut self, first: u8, last: u8) {
        for (half, from) in self.0.iter_mut().zip([0u8, 128]) {
            let (first, last) = (first.max(from), last.min(from + 127));
            if first <= last {
                *half |= (u128::MAX >> (127 - (last - first))) << (first - from);
            }
        }
    }

    /// Adds the bytes of another set.
    pub fn extend(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(half, other)| *half |= other);
    }

    /// Those that are in another set, too.
    pub fn among(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    /// All of them, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |&byte| self.contains(byte))
    }

    /// Whether a byte is in it.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 7)] >> (byte & 127) & 1 == 1
    }
}

/// Some terminals over bytes, as one deterministic automaton.
///
/// Terminals are numbers of the automaton's own, its *labels*; the grammar says which terminal each is.
pub trait PieceAutomaton: Debug + Send + Sync {
    /// The state before the first byte.
    fn start(&self) -> u32;

    /// Where a byte leads; `None` if no piece goes on so.
    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates>;

    /// The same, and the bytes around this one that lead there too, the first and the last, as far as that is
    /// known at no further cost.
    fn step_run(&self, state: u32, byte: u8) -> Result<(Option<u32>, (u8, u8)), TooManyStates> {
        Ok((self.step(state, byte)?, (byte, byte)))
    }

    /// The bytes with which a piece can go on from a state: all of them, perhaps more. By most bytes most
    /// states lead nowhere, which this says of all of these at once.
    fn bytes(&self, _state: u32) -> Bytes {
        Bytes::ALL
    }

    /// The labels of the pieces that end here, sorted.
    fn accepts(&self, state: u32) -> Arc<[u32]>;

    /// The labels of the pieces that can end after at least one more byte, sorted.
    fn live(&self, state: u32) -> Arc<[u32]>;

    /// A bound on how many bytes more a piece of a label has from a state on: none has fewer. A search for a
    /// short piece goes by it; without one it goes through all that are as short.
    fn at_least(&self, _state: u32, _label: u32) -> u64 {
        0
    }

    /// A state in whose place every text of at most `bytes` bytes does the same: it leads on or does not, to
    /// the same labels that end there and that can end later. So masks are shared by all places of a long
    /// text that are far from its bound.
    fn alike(&self, state: u32, _bytes: usize) -> u32 {
        state
    }

    /// Whether [`alike`](Self::alike) can be another for few bytes than for any number of them; then an
    /// automaton has to say so.
    fn has_bounds(&self) -> bool {
        false
    }

    /// An automaton in common use in which most texts do what they do from this state.
    fn common(&self, _state: u32) -> Option<Common> {
        None
    }

    /// What texts do from here if they do, as far as they are neither too short nor too long, what they do
    /// from a state of the [common](Common) automaton.
    fn nature(&self, _state: u32) -> Option<Nature> {
        None
    }

    /// What texts of at most `bytes` bytes do from a state as far as some labels go (sorted).
    ///
    /// Where it is equal for two states, of one automaton or of two, as many of the labels end there or can
    /// end later, and each text leads in both to where the same ones do, in their order. `None` where that
    /// would cost more to say than it is worth.
    fn fingerprint(&self, _state: u32, _labels: &[u32], _bytes: usize) -> Option<Fingerprint> {
        None
    }

    /// A regular expression over bytes that matches at least the pieces of all labels: what canvases know of
    /// an automaton without making its states. One expression for many automata makes that cheap.
    fn outline(&self) -> &'static str {
        "(?s-u:.)+"
    }

    /// A text that leads in the [outline](Self::outline) to where all can follow that can follow in a state
    /// here; `None` if that is not known.
    fn in_outline(&self, _state: u32) -> Option<&'static [u8]> {
        None
    }

    /// Some pieces of a label that are easy to read, at most so many, where they are known without a search.
    fn examples(&self, _label: u32, _most: usize) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// A class for each byte, numbered from 0 without gaps: bytes of one class are told apart in no state.
    /// The fewer classes there are, the smaller are the tables.
    fn classes(&self) -> Box<[u8; 256]> {
        Box::new(std::array::from_fn(|byte| byte as u8))
    }
}

/// An automaton in common use: what is found out of its texts serves all automata that name it
/// ([`PieceAutomaton::common`]).
///
/// It has one label, and every state has a [nature](PieceAutomaton::nature). What it *counts* of a text, as
/// characters, depends on nothing but the natures on the way: by so much [`Nature::most`] falls, which is
/// more than any token has.
#[derive(Clone, Debug)]
pub struct Common {
    /// Its name; two automata of one name are one.
    pub name: &'static str,
    /// Makes it, and a state of it.
    pub make: fn() -> Option<(Pieces, u32)>,
    /// A text that leads from there to the state from which texts are compared.
    pub path: Box<[u8]>,
}

/// See [`PieceAutomaton::nature`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nature {
    /// Tells the state of the common automaton from its others.
    pub number: u64,
    /// The one label that ends here where one ends there.
    pub label: u32,
    /// Texts of which the common automaton counts more lead nowhere.
    pub most: u64,
    /// Pieces of which it counts fewer do not end.
    pub least: u64,
}

/// A shared [`PieceAutomaton`]. Two are equal if they are the same, by address.
#[derive(Clone, Debug)]
pub struct Pieces(pub Arc<dyn PieceAutomaton>);

impl PartialEq for Pieces {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Pieces {}

impl Deref for Pieces {
    type Target = dyn PieceAutomaton;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Grammar {
    /// The same grammar with the automata that its terminals name.
    pub fn with_pieces(self, pieces: Vec<Pieces>, delimited: bool) -> Self {
        Self { pieces, delimited, ..self }
    }

    /// The automaton and the label of a terminal, if it is given so.
    pub fn piece(&self, terminal: usize) -> Option<(&Pieces, u32)> {
        match self.terminals[terminal].kind {
            TerminalKind::Automaton { automaton, label } => Some((self.pieces.get(automaton)?, label)),
            _ => None,
        }
    }

    /// Whether a terminal matches the empty string.
    pub fn is_nullable(&self, terminal: usize) -> bool {
        let pattern = || self.terminals[terminal].kind.pattern().is_some_and(|pattern| pattern.is_nullable());
        self.piece(terminal).map_or_else(pattern, |(pieces, label)| {
            pieces.accepts(pieces.start()).binary_search(&label).is_ok()
        })
    }

    /// The terminals given by automata that match nothing but perhaps the empty string.
    pub fn empty_pieces(&self) -> BitSet {
        let n_terminals = self.terminals.len();
        let mut empty = BitSet::new(n_terminals);
        for terminal in 0..n_terminals {
            if let Some((pieces, label)) = self.piece(terminal)
                && pieces.live(pieces.start()).binary_search(&label).is_err()
            {
                empty.insert(terminal);
            }
        }
        empty
    }

    /// The difference in what [`Grammar::with_pieces`] adds.
    pub(crate) fn difference_of_pieces(&self, other: &Self) -> Option<String> {
        let same = self.pieces == other.pieces
            && (self.delimited, &self.memory) == (other.delimited, &other.memory)
            && self.embedded == other.embedded;
        (!same).then(|| "automata of terminals, whether pieces are delimited, or the memories".to_owned())
    }
}
