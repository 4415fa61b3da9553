//! Recognizers say which terminals may follow, and whether the text is a sentence.
//!
//! | module | engine | for |
//! |---|---|---|
//! | [`reference`](mod@reference) | textbook Earley, states interned by their items | the definition that all others are compared with |
//! | [`valiant`] | the incremental Valiant recognizer: a chart by tiers, bit-parallel over rows | grammars that are very ambiguous |
//! | [`earley`] | Earley over shared states and rests, every step remembered | grammars that are nearly deterministic, and all others until a better one |
//!
//! [`probe`] measures which of them suits a grammar; [`engine`] makes the one that is chosen or asked for.
//!
//! Every engine is a [`Recognizer`]: states are handles that never change, so a fork or a rollback is a copy
//! of a handle. [`laws`] states what holds of all of them. The crate knows nothing of bytes, lexers or
//! tokens.

pub mod earley;
pub mod engine;
pub mod laws;
pub mod probe;
pub mod reference;
pub mod valiant;

pub use anygram_grammar::relation::Relation;
pub use earley::View;
pub use engine::{Choice, Engine};

use anygram_bits::{BitSet, ErrorKind, index_type};
use anygram_grammar::automata::TooManyStates;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{Symbol, TerminalId};

use crate::earley::Earley;

index_type!(
    /// A state of a recognizer: all that matters of the terminals read so far.
    ///
    /// Two equal ids of one recognizer accept the same continuations; two different ones may.
    StateId
);

/// One way to come to a point of a lattice: from a state, by a terminal or by none.
///
/// Without a terminal (an ignored piece) the state is carried over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// Where the edge begins.
    pub from: StateId,
    /// What is read along it.
    pub terminal: Option<TerminalId>,
}

/// A point in a recognizer's life to which it can go back, see [`Recognizer::release`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark(usize);

/// Something that began in an earlier state and is in progress: a symbol of the engine's own grammar, and
/// where it began.
///
/// What follows it depends on nothing else, so answers about it can be kept for as long as the state where it
/// began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Begun {
    /// Where it began.
    pub origin: StateId,
    /// The engine's name for the symbol.
    pub symbol: u32,
}

/// What is left to be read of something in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left<'a> {
    /// These symbols.
    Symbols(&'a [Symbol]),
    /// What an automaton of [`Cfg::automata`], by its number, gives from a state on; `None` if the state is
    /// not known.
    Automaton(usize, Option<u32>),
}

/// A visitor of what is in progress: what is still to be read, and what is complete after it.
pub type Visit<'a> = dyn FnMut(Left<'_>, Begun) + 'a;

/// A limit was hit; the recognizer's states are as they were.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecognizerError {
    /// Too many states.
    #[error("the parser needs more than {limit} items; raise the limit `parser_items`")]
    TooManyItems {
        /// The limit in force.
        limit: usize,
    },
    /// An automaton that gives right-hand sides has too many states.
    #[error(transparent)]
    TooManyStates(#[from] TooManyStates),
    /// The engine reads rules that are written out, and some are given by automata.
    #[error("the engine `{engine}` cannot read rules that an automaton gives; use the engine `earley`")]
    Automata {
        /// The name of the engine.
        engine: &'static str,
    },
    /// The device that computes states could not.
    #[error("the device that computes the parser's states could not: {reason}")]
    Device {
        /// What it lacks.
        reason: &'static str,
    },
}

impl RecognizerError {
    /// [`ErrorKind::Limit`], [`ErrorKind::Unsupported`] or [`ErrorKind::Device`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooManyItems { .. } | Self::TooManyStates(_) => ErrorKind::Limit,
            Self::Automata { .. } => ErrorKind::Unsupported,
            Self::Device { .. } => ErrorKind::Device,
        }
    }

    /// The limit that was reached: the option that sets it, and its value.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match *self {
            Self::TooManyItems { limit } => Some(("parser_items", limit as u64)),
            Self::TooManyStates(TooManyStates { limit, option, .. }) => Some((option, limit as u64)),
            Self::Automata { .. } | Self::Device { .. } => None,
        }
    }
}

/// An engine over one grammar.
///
/// The grammar must be reduced ([`Cfg::reduce`]); then a state has a completion, because every rule has.
pub trait Recognizer: Send {
    /// The name that selects the engine.
    fn name(&self) -> &'static str;

    /// The grammar.
    fn cfg(&self) -> &Cfg;

    /// The state before the first terminal.
    fn start(&self) -> StateId;

    /// The state at a point of a lattice that is reached by `edges`; `None` if no reading is viable.
    ///
    /// Its readings are the union of the readings along the edges. Order and repetition of edges do not
    /// matter.
    fn extend(&mut self, edges: &[Edge]) -> Result<Option<StateId>, RecognizerError>;

    /// The terminals that may come next.
    fn viable(&self, state: StateId) -> &BitSet;

    /// Whether what was read is a sentence.
    fn is_sentence(&self, state: StateId) -> bool;

    /// The fewest terminals that make a sentence of it; saturates. Where automata give rules
    /// ([`Cfg::automata`]) it is a lower bound, which is zero only for a sentence.
    fn minimum_remaining(&self, state: StateId) -> u32;

    /// Whether something that makes a sentence of it can be read by a finite automaton in state `from`. Where
    /// automata give rules ([`Cfg::automata`]) a no of a [`Relation::new`] holds and a yes of a
    /// [`Relation::surely`].
    fn can_finish(&self, state: StateId, from: usize, automaton: &Relation) -> bool;

    /// Visits what is in progress in a state: each is something to be read, after which something that began
    /// earlier is complete. The text is a sentence if it is one now, or when a
    /// [whole](Recognizer::is_whole) one is complete.
    fn in_progress(&self, state: StateId, visit: &mut Visit<'_>);

    /// Visits what was waiting for something that is complete now, in the same way.
    fn after_begun(&self, begun: Begun, visit: &mut Visit<'_>);

    /// Whether a text is a sentence when this is complete.
    fn is_whole(&self, begun: Begun) -> bool;

    /// The engine as one whose states are shared between texts, if it is one: what only such an engine knows.
    fn shared_states(&self) -> Option<&Earley> {
        None
    }

    /// As [`Recognizer::shared_states`], to be asked what it has yet to find out.
    fn shared_states_mut(&mut self) -> Option<&mut Earley> {
        None
    }

    /// The number of states; ids are below it.
    fn n_states(&self) -> usize;

    /// The number of parse items held, the measure of memory.
    fn n_items(&self) -> usize;

    /// The present point, for [`Recognizer::release`].
    fn mark(&self) -> Mark;

    /// Allows to forget all states made since `mark`. Returns whether they are forgotten; then their ids may
    /// be reused.
    fn release(&mut self, mark: Mark) -> bool;

    /// A drawing of a state in characters, with the names of symbols given by `name`.
    fn dump(&self, state: StateId, name: &dyn Fn(anygram_grammar::ir::Symbol) -> String) -> String;

    /// Bytes on the heap, roughly.
    fn memory_usage(&self) -> usize;
}

/// Bounds on what an engine may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecognizerLimits {
    /// Parse items over all states.
    pub items: usize,
}

impl Default for RecognizerLimits {
    fn default() -> Self {
        Self { items: 50_000_000 }
    }
}
