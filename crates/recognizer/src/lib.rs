//! Recognizers: which terminals may follow, and is it a sentence.
//!
//! | module | engine | for |
//! |---|---|---|
//! | [`reference`](mod@reference) | textbook Earley, states interned by their items | the definition that all others are compared with |
//! | [`valiant`] | the incremental Valiant recognizer: a chart by tiers, bit-parallel over rows | grammars that are very ambiguous |
//! | [`earley`] | Earley over shared states and rests, every step remembered | grammars that are nearly deterministic, and all others until a better one |
//!
//! [`probe`] measures which of them suits a grammar.
//!
//! Every engine is a [`Recognizer`]: states are handles that never change, so a fork or a rollback is a copy
//! of a handle. [`laws`] states what holds of all of them. The crate knows nothing of bytes, lexers or
//! tokens.

pub mod earley;
pub mod laws;
pub mod probe;
pub mod reference;
pub mod valiant;

pub use anygram_grammar::relation::Relation;

use anygram_bits::{BitSet, index_type};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::completions::Completions;
use anygram_grammar::ir::{Symbol, TerminalId};
use rustc_hash::FxHashMap;

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

/// What can be seen of a state without looking into those that its items began in, see [`Recognizer::view`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View<'a> {
    /// Two states of one engine with one shape differ at most in what [`View::origins`] are.
    pub shape: u32,
    /// The states that its items began in, in an order that the shape fixes.
    pub origins: &'a [StateId],
}

/// The numbers of shapes, see [`View::shape`], which outlive the states that have them.
#[derive(Clone, Debug, Default)]
pub struct Shapes(pub(crate) FxHashMap<earley::Shape, u32>);
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

/// What is done with a way to go on: symbols still to be read, and what is complete after them.
pub type Visit<'a> = dyn FnMut(&[Symbol], Begun) + 'a;

/// A limit was hit; the recognizer's states are as they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecognizerError {
    /// Too many states.
    #[error("the parser needs more than {limit} items; raise the limit `parser_items`")]
    TooManyItems {
        /// The limit in force.
        limit: usize,
    },
    /// The device that computes states could not.
    #[error("the device that computes the parser's states could not: {reason}")]
    Device {
        /// What it lacks.
        reason: &'static str,
    },
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

    /// A state that reads all that this one reads, and more: it knows what is in progress and, so many times,
    /// in what that stands, and nothing of what is around. There are finitely many of them, and few in
    /// practice where `depth` is small. What they read at depth 0 is a regular language (the rules of the
    /// grammar as a network without a stack; Pereira and Wright 1991). The state itself, if the engine has
    /// nothing better.
    fn limit_stack(&mut self, state: StateId, depth: u32) -> Result<StateId, RecognizerError> {
        let _ = depth;
        Ok(state)
    }

    /// The terminals that may come next.
    fn viable(&self, state: StateId) -> &BitSet;

    /// Whether what was read is a sentence.
    fn is_sentence(&self, state: StateId) -> bool;

    /// The fewest terminals that make a sentence of it; saturates.
    fn minimum_remaining(&self, state: StateId) -> u32;

    /// Whether something that makes a sentence of it can be read by a finite automaton in state `from`.
    fn can_finish(&self, state: StateId, from: usize, automaton: &Relation) -> bool;

    /// What can be seen of a state. Whatever is found out by [`Recognizer::extend`] from states with equal
    /// views, looking into no other states than these and those that it made on the way
    /// ([`Recognizer::looked_into`]), holds of all of them. `None` if the engine does not share what it knows
    /// in this way.
    fn view(&mut self, _: StateId) -> Option<View<'_>> {
        None
    }

    /// Takes the numbers of shapes away, for another engine over the same grammar; this one numbers them
    /// anew.
    fn take_shapes(&mut self) -> Shapes {
        Shapes::default()
    }

    /// Goes on from the numbers of shapes that another engine over the same grammar has given out.
    fn set_shapes(&mut self, _: Shapes) {}

    /// The states, other than `from`, that were looked into to read a terminal from a state. `None` if that
    /// was not done, or if they are too many to tell.
    fn looked_into(&self, _from: StateId, _terminal: TerminalId) -> Option<&[StateId]> {
        None
    }

    /// As [`Recognizer::can_finish`], but from what the state shows of itself ([`Recognizer::view`]); a no
    /// says nothing.
    fn can_finish_anywhere(&self, _state: StateId, _from: usize, _automaton: &Completions) -> bool {
        false
    }

    /// The number of items that a state holds, if the cost of reading on from it grows with them.
    fn weight(&self, _: StateId) -> usize {
        0
    }
    /// Visits what is in progress in a state: each is a sequence of symbols of [`Recognizer::cfg`] to be
    /// read, after which something that began earlier is complete. The text is a sentence if it is one now,
    /// or when a [whole](Recognizer::is_whole) one is complete.
    fn in_progress(&self, state: StateId, visit: &mut Visit<'_>);

    /// Visits what was waiting for something that is complete now, in the same way.
    fn after_begun(&self, begun: Begun, visit: &mut Visit<'_>);

    /// Whether a text is a sentence when this is complete.
    fn is_whole(&self, begun: Begun) -> bool;

    /// The number of states; ids are below it.
    fn n_states(&self) -> usize;

    /// The number of parse items held, the measure of memory.
    fn n_items(&self) -> usize;

    /// A measure of what was done so far: the items made, and those that were looked at to merge states.
    fn effort(&self) -> usize {
        self.n_items()
    }

    /// The present point, for [`Recognizer::release`].
    fn mark(&self) -> Mark;

    /// Allows to forget all states made since `mark`. Returns whether they are forgotten; then their ids may
    /// be given out again.
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
