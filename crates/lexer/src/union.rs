//! All terminals side by side: one deterministic automaton that knows, in every state, which terminals match
//! here and which still may.
//!
//! Built eagerly as the product of the terminals' minimal automata, so its states are canonical: two texts
//! lead to one state iff no terminal tells their continuations apart. Cost: states × byte classes × terminals
//! alive; a limit bounds the table.
//!
//! With terminals that are given by automata ([`PieceAutomaton`](anygram_grammar::automata::PieceAutomaton))
//! it *grows* while it is asked (the module `growing`): then it has many starts, one for each set of automata
//! of which something is wanted, and a step can fail.

use std::sync::Arc;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{CompactSet, Fingerprint};
use anygram_grammar::automata::{Common, Nature, Pieces};
use rustc_hash::FxHashMap;

use crate::dfa::{DEAD, Dfa, START, refine};
use crate::{LexerError, LexerLimits};

mod growing;
mod product;

use growing::Growing;
use product::Product;

/// A state of the [`Union`]; 0 is dead, 1 the start.
pub type State = u32;

/// The automaton of all terminals.
///
/// Invariants: state 0 is the only one in which no terminal matches and none may match later, except perhaps
/// state 1; `live[q]` holds the terminals that match after at least one more byte.
#[derive(Clone, Debug)]
pub struct Union {
    classes: Box<[u8; 256]>,
    n_classes: usize,
    samples: Vec<u8>,
    /// Shared by all unions of the same automata.
    next: Arc<[State]>,
    accepts: Vec<CompactSet>,
    live: Vec<CompactSet>,
    /// Of each state, the least state that is its equal as far as *whether* something matches goes.
    blind: Vec<State>,
    /// In a union that grows this has the states, and the tables above are empty.
    growing: Option<Arc<Growing>>,
}

/// A terminal that takes part in a union.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// By its own automaton.
    Dfa(&'a Arc<Dfa>),
    /// By a label of one of some automata that grow.
    Label {
        /// Which of them.
        automaton: usize,
        /// The label.
        label: u32,
    },
}

/// A product, and of each terminal its part in it.
#[derive(Debug)]
struct Parts {
    product: Arc<Product>,
    of: Vec<u32>,
}

/// How a terminal of a union that grows is given.
pub(crate) enum Named<'a> {
    /// By a pattern: its automaton is a part of the product.
    Pattern,
    /// By an automaton that grows.
    Label(&'a Pieces, u32),
}

impl Union {
    /// The union of `parts`, one for each terminal; `None` is one that takes no part, as a token of the
    /// vocabulary. It grows if one of them is a label of `pieces`.
    pub fn of(
        parts: &[Option<Part<'_>>],
        pieces: &[Pieces],
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Self, LexerError> {
        let dfas: Vec<Option<&Arc<Dfa>>> = parts
            .iter()
            .map(|part| match *part {
                Some(Part::Dfa(dfa)) => Some(dfa),
                _ => None,
            })
            .collect();
        if !parts.iter().any(|part| matches!(part, Some(Part::Label { .. }))) {
            return Self::new(&dfas, limits, work);
        }
        let (union, product, numbers) = Self::sighted(&dfas, limits, work)?;
        let mut of = vec![0; parts.len()];
        (0..).zip(&numbers).for_each(|(part, &terminal)| of[terminal as usize] = part);
        let growing = Growing::new((union, Parts { product, of }), parts, pieces, limits);
        let (classes, samples) = (growing.classes.clone(), growing.samples.clone());
        Ok(Self {
            classes,
            n_classes: samples.len(),
            samples,
            next: Arc::default(),
            accepts: Vec::new(),
            live: Vec::new(),
            blind: Vec::new(),
            growing: Some(Arc::new(growing)),
        })
    }

    /// The product of `terminals`; `None` is one that takes no part.
    pub fn new(
        terminals: &[Option<&Arc<Dfa>>],
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Self, LexerError> {
        let (product, ..) = Self::sighted(terminals, limits, work)?;
        let blind = blind(&product.next, product.n_classes, &product.accepts, work)?;
        Ok(Self { blind, ..product })
    }

    /// The same, with each state its own equal; and the product of the automata, with the terminals of its
    /// parts.
    fn sighted(
        terminals: &[Option<&Arc<Dfa>>],
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<(Self, Arc<Product>, Vec<u32>), LexerError> {
        // In an order that does not depend on the numbers of the terminals.
        let mut parts: Vec<(&Arc<Dfa>, u32)> =
            terminals.iter().zip(0..).filter_map(|(dfa, at)| Some(((*dfa)?, at))).collect();
        parts.sort_unstable();
        let (dfas, numbers): (Vec<Arc<Dfa>>, Vec<u32>) =
            parts.into_iter().map(|(dfa, at)| (dfa.clone(), at)).unzip();
        let product = Product::shared(dfas, limits, work)?;
        let Product { classes, samples, next, accepts, live, .. } = &*product;
        // One more than terminals, as in sets of what a parser wants, where the last bit is the end of the
        // text.
        let n_bits = terminals.len() + 1;
        let set = |parts: &Vec<u32>| {
            let mut members: Vec<u32> = parts.iter().map(|&part| numbers[part as usize]).collect();
            members.sort_unstable();
            CompactSet::from_sorted(n_bits, members)
        };
        let mut accepts: Vec<CompactSet> = accepts.iter().map(set).collect();
        // Pieces are not empty, so nothing matches before the first byte.
        accepts[START as usize] = set(&Vec::new());
        let live = live.iter().map(set).collect();
        let (classes, samples, next) = (classes.clone(), samples.clone(), next.clone());
        let (n_classes, blind) = (samples.len(), Vec::new());
        let union = Self { classes, n_classes, samples, next, accepts, live, blind, growing: None };
        Ok((union, product, numbers))
    }

    /// The number of states so far, the dead one included.
    pub fn n_states(&self) -> usize {
        self.growing.as_ref().map_or(self.accepts.len(), |growing| growing.n_states())
    }

    /// Whether it grows while it is asked. If not, all states are there, and the only start is 1.
    #[inline]
    pub fn is_growing(&self) -> bool {
        self.growing.is_some()
    }

    /// The number of byte classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The class of a byte.
    #[inline]
    pub fn class(&self, byte: u8) -> usize {
        usize::from(self.classes[usize::from(byte)])
    }

    /// A byte of each class, the least.
    pub fn samples(&self) -> &[u8] {
        &self.samples
    }

    /// Where a byte of `class` leads.
    ///
    /// # Panics
    /// If the union [grows](Self::is_growing): then a step can fail ([`Union::try_step`]).
    #[inline]
    pub fn step(&self, state: State, class: usize) -> State {
        self.next[state as usize * self.n_classes + class]
    }

    /// Where a byte of `class` leads. Fails only in a union that grows, if a limit is hit.
    #[inline]
    pub fn try_step(&self, state: State, class: usize) -> Result<State, LexerError> {
        match &self.growing {
            None => Ok(self.step(state, class)),
            Some(growing) => growing.step(state, class),
        }
    }

    /// In a union that grows, the classes that are known to lead from one state to another.
    pub fn known(&self, state: State, target: State) -> impl Iterator<Item = usize> {
        self.growing.iter().flat_map(move |growing| growing.known(state, target))
    }

    /// The automaton that a terminal is of, by a number of its own; `None` unless the union grows.
    pub fn automaton_of(&self, terminal: usize) -> Option<u32> {
        self.growing.as_ref()?.automaton_of(terminal)
    }

    /// The state before the first byte of a piece, if these terminals are wanted. In a union that grows, only
    /// the automata take part of which a terminal is wanted, with all of their terminals.
    pub fn start_of(&self, wanted: &CompactSet) -> Result<State, LexerError> {
        self.growing.as_ref().map_or(Ok(START), |growing| growing.start_of(wanted))
    }

    /// Whether this is the state before the first byte of a piece.
    #[inline]
    pub fn is_start(&self, state: State) -> bool {
        self.growing.as_ref().map_or(state == START, |growing| growing.is_start(state))
    }

    /// Whether a byte of `class` begins some piece; also if a limit keeps that from being known.
    pub fn begins(&self, class: usize) -> bool {
        match &self.growing {
            None => self.step(START, class) != DEAD,
            Some(growing) => growing.begins(class),
        }
    }

    /// A state in whose place texts of at most `bytes` bytes do the same: where they lead, the same terminals
    /// match and the same may match later. The state itself unless the union grows.
    pub fn alike(&self, state: State, bytes: usize) -> Result<State, LexerError> {
        self.growing.as_ref().map_or(Ok(state), |growing| growing.alike(state, bytes))
    }

    /// The automata in which something is alive, by numbers of their own; `None` unless the union grows.
    pub fn alive(&self, state: State) -> Option<Box<[u32]>> {
        Some(self.growing.as_ref()?.alive(state))
    }

    /// Whether other states may stand for those that come after this one where only so many bytes follow.
    pub fn has_bounds(&self, state: State) -> bool {
        self.growing.as_ref().is_some_and(|growing| growing.has_bounds(state))
    }

    /// A bound on how many bytes more a piece has that goes on from a state, as far as that is known.
    pub fn at_least(&self, state: State) -> u64 {
        self.growing.as_ref().map_or(0, |growing| growing.at_least(state))
    }

    /// An automaton in common use in which most texts do what they do from here; none unless the union grows.
    pub fn common(&self, state: State) -> Option<Common> {
        self.growing.as_ref()?.common(state)
    }

    /// What texts do from here if they do what they do from a state of the common automaton; the label is the
    /// terminal.
    pub fn nature(&self, state: State) -> Option<Nature> {
        self.growing.as_ref()?.nature(state)
    }

    /// What texts of at most `bytes` bytes do from a state as far as some terminals go: where it is equal for
    /// states of two unions, each of these terminals that matches there or can match later has its like in
    /// the other, and each text leads in both to where it and its like match or can match later. `None` where
    /// that is not known, as of a union that does not grow.
    pub fn fingerprint(&self, state: State, wanted: &CompactSet, bytes: usize) -> Option<Fingerprint> {
        self.growing.as_ref()?.fingerprint(state, wanted, bytes)
    }

    /// The same of the product in a union that grows, by the parts of which something is wanted; `None` if
    /// nothing is.
    fn fingerprint_by(&self, parts: &Parts, state: State, wanted: &CompactSet) -> Option<Fingerprint> {
        let (live, accepts) = (&self.live[state as usize], &self.accepts[state as usize]);
        let wanted = live.iter().chain(accepts.iter()).filter(|&terminal| wanted.contains(terminal));
        let mut own: Vec<u32> = wanted.map(|terminal| parts.of[terminal]).collect();
        own.sort_unstable();
        own.dedup();
        (!own.is_empty()).then(|| Fingerprint::of(&("product", parts.product.fingerprint(), state, own)))
    }

    /// How a terminal is given in a union that grows; `None` if it does not compete.
    pub(crate) fn given_by(&self, terminal: usize) -> Option<Named<'_>> {
        self.growing.as_ref()?.given_by(terminal)
    }

    /// A piece of a terminal of a union that grows, where its automaton knows one.
    pub(crate) fn example(&self, terminal: usize) -> Option<Vec<u8>> {
        match self.given_by(terminal)? {
            Named::Label(pieces, label) => pieces.examples(label, 1).into_iter().next(),
            Named::Pattern => None,
        }
    }

    /// Of a union that grows, the product of the terminals that have patterns, if there are any.
    pub(crate) fn product(&self) -> Option<&Union> {
        self.growing.as_ref()?.product()
    }

    /// The place of a state in an outline, see [`crate::outline`].
    pub(crate) fn in_outline(
        &self,
        state: State,
        of_product: &[Option<State>],
        run: impl Fn(&[u8]) -> State,
    ) -> Option<State> {
        self.growing.as_ref()?.in_outline(state, of_product, run)
    }

    /// The terminals that match exactly what led here.
    #[inline]
    pub fn accepts(&self, state: State) -> &CompactSet {
        match &self.growing {
            None => &self.accepts[state as usize],
            Some(growing) => growing.accepts(state),
        }
    }

    /// The terminals that match after at least one more byte.
    #[inline]
    pub fn live(&self, state: State) -> &CompactSet {
        match &self.growing {
            None => &self.live[state as usize],
            Some(growing) => growing.live(state),
        }
    }

    /// The representative of all states with the same future as far as whether *any* terminal matches goes;
    /// the state itself if the union grows.
    #[inline]
    pub fn blind(&self, state: State) -> State {
        self.blind.get(state as usize).copied().unwrap_or(state)
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        let sets = self
            .accepts
            .iter()
            .chain(&self.live)
            .map(|set| set.memory_usage() + size_of::<CompactSet>())
            .sum::<usize>();
        let grown = self.growing.as_ref().map_or(0, |growing| growing.memory_usage());
        size_of_val(&*self.next) + size_of_val(&*self.blind) + sets + grown + 256
    }
}

fn blind(
    next: &[State],
    n_classes: usize,
    accepts: &[CompactSet],
    work: &mut Work,
) -> Result<Vec<State>, Stopped> {
    // The start is kept apart: it is not a state that a piece leaves behind.
    let blocks =
        refine(next, n_classes, accepts.iter().map(|set| u32::from(!set.is_empty())).collect(), work)?;
    let mut first = FxHashMap::default();
    Ok((0..).zip(&blocks).map(|(state, &block)| *first.entry(block).or_insert(state)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygram_grammar::ir::Pattern;

    #[test]
    fn states_know_what_matches_and_what_may() {
        let (limits, work) = (LexerLimits::default(), &mut Work::unbounded());
        let mut dfa = |text: &str| {
            Arc::new(Dfa::new(&Pattern::Regex(regex_syntax::parse(text).unwrap()), &limits, work).unwrap())
        };
        let dfas = [dfa("if"), dfa("[a-z]+"), dfa("=?=")];
        let union =
            Union::new(&[Some(&dfas[0]), Some(&dfas[1]), None, Some(&dfas[2])], &limits, work).unwrap();
        let run = |text: &[u8]| text.iter().fold(START, |state, &byte| union.step(state, union.class(byte)));
        let members = |set: &CompactSet| set.iter().collect::<Vec<_>>();
        assert_eq!(members(union.accepts(run(b"i"))), [1]);
        assert_eq!(members(union.live(run(b"i"))), [0, 1]);
        assert_eq!(members(union.accepts(run(b"if"))), [0, 1]);
        assert_eq!(members(union.live(run(b"if"))), [1]);
        assert_eq!(members(union.live(run(b"="))), [3]);
        assert_eq!(union.blind(run(b"if")), union.blind(run(b"xyz")));
        assert_ne!(union.blind(run(b"=")), union.blind(run(b"xyz")));
        assert_eq!(run(b"=i"), DEAD);
    }
}
