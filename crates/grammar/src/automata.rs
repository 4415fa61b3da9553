//! Parts of grammars that are too large to be written down: rules and terminals given by automata whose
//! states are made as texts need them.
//!
//! A [`RuleAutomaton`] stands for the right-hand sides of one nonterminal: the members of a JSON object in
//! any order would take a rule for each set of keys. A [`PieceAutomaton`] stands for some terminals that begin
//! alike: six thousand strings, or strings of at most a million characters.
//!
//! What stays true of both: states are numbered densely as they are made and keep their numbers; only states
//! are made from which something can be accepted; everything may be asked from several threads at once. Cost
//! of a question whose answer is known: a look-up.

use std::fmt::{self, Debug};
use std::sync::Arc;

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

    /// Whether a right-hand side may end here.
    fn accepts(&self, state: u32) -> bool;

    /// The fewest symbols with which a right-hand side ends.
    fn minimum(&self, state: u32) -> u32;
}

/// Some terminals over bytes, as one deterministic automaton.
///
/// Terminals are numbers of the automaton's own, its *labels*; the grammar says which terminal each is.
pub trait PieceAutomaton: Debug + Send + Sync {
    /// The state before the first byte.
    fn start(&self) -> u32;

    /// Where a byte leads; `None` if no piece goes on so.
    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates>;

    /// The labels of the pieces that end here, sorted.
    fn accepts(&self, state: u32) -> Arc<[u32]>;

    /// The labels of the pieces that can end after at least one more byte, sorted.
    fn live(&self, state: u32) -> Arc<[u32]>;
}
