//! Lexing: from bytes to terminals, in three modes, exactly.
//!
//! | module | what |
//! |---|---|
//! | [`dfa`] | one terminal's pattern as a minimal automaton over bytes |
//! | [`union`] | all terminals side by side: one deterministic automaton whose states know what they accept |
//! | [`lexicon`] | the union with the declarations that decide labels: priorities, ties, ignored terminals |
//! | [`boundary`] | what can follow a piece, as finite automata over pieces |
//! | [`words`] | readable texts of terminals |
//! | [`outline`] | a finite automaton around terminals whose automata grow |
//! | [`overlap`] | terminals that are in each other's way |
//! | [`mod@without`] | a grammar whose sentences are those of another in which no stop string stands |
//! | [`transducer`] | lexemes in progress, stepped byte by byte, with what they still owe |
//!
//! The crate knows nothing of tokens, and of recognizers only the set of terminals that a state accepts.
//!
//! # Guessing the cut
//!
//! With longest match the end of a piece depends on bytes to come. The transducer guesses: at every place
//! where a piece may end it both goes on and cuts, and a cut leaves an *obligation*, the automaton state that
//! must not accept any more (see [`transducer`]). Obligations make the guess exact: of all the guesses
//! exactly the longest match survives.

use anygram_bits::ErrorKind;
use anygram_bits::work::Stopped;
use anygram_grammar::automata::TooManyStates;

pub mod boundary;
pub mod dfa;
pub mod lexicon;
pub mod outline;
pub mod overlap;
mod shared;
pub mod transducer;
pub mod union;
pub mod without;

pub mod words;

/// Bounds on what lexing may build. A bound that is hit is an error, never a wrong answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LexerLimits {
    /// States of the nondeterministic automaton of one terminal.
    pub nfa_states: usize,
    /// States of the deterministic automaton of one terminal.
    pub dfa_states: usize,
    /// Entries (states times byte classes, and the terminals alive in each state) of the automaton of all
    /// terminals, whether it is made at once or grows, and of those of the single ones together.
    pub union_entries: usize,
    /// Lexemes that one transducer may hold, and as many that are looked at to know what can follow a piece,
    /// and again as many that are kept for that.
    pub lexemes: usize,
}

impl Default for LexerLimits {
    fn default() -> Self {
        Self { nfa_states: 1_000_000, dfa_states: 50_000, union_entries: 20_000_000, lexemes: 500_000 }
    }
}

/// A bound was hit, a pattern has no automaton, or something cannot be asked of automata that grow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LexerError {
    /// The automaton of one terminal is too large.
    #[error(
        "terminal {terminal} needs more than {limit} automaton states; shorten its repetitions or raise the \
         limit `{option}`"
    )]
    TerminalTooLarge {
        /// The terminal's name.
        terminal: String,
        /// The limit in force.
        limit: usize,
        /// The option that sets it.
        option: &'static str,
    },
    /// A pattern is nested too deeply in `&` and `~`.
    #[error("terminal {terminal} nests `&` and `~` more than {limit} deep")]
    TooDeep {
        /// The terminal's name.
        terminal: String,
        /// The limit.
        limit: usize,
    },
    /// The automaton of all terminals is too large.
    #[error(
        "the terminals together need more than {limit} automaton entries; raise the limit `union_entries`"
    )]
    UnionTooLarge {
        /// The limit in force.
        limit: usize,
    },
    /// The automaton that gives some terminals is too large.
    #[error(transparent)]
    TooManyStates(#[from] TooManyStates),
    /// Something needs all states of the terminals, but there are terminals given by automata that grow.
    #[error(
        "{what} need all states of the terminals, but this grammar has terminals whose states are made as \
         texts need them; use the masks of an output, left to right"
    )]
    Growing {
        /// What needs them.
        what: &'static str,
    },
    /// Something that reads texts, in a grammar that is about how texts are cut into tokens.
    #[error(
        "{what} need to know what tokens spell, but this grammar has places for any token but some; use the \
         masks of an output, left to right"
    )]
    TokenSets {
        /// What needs to know it.
        what: &'static str,
    },
    /// Something that does not count the tokens in a part of a text, in a grammar that bounds them.
    #[error(
        "{what} do not count the tokens in a part of a text, and this grammar bounds them (`max_tokens`); \
         use the masks of an output, left to right"
    )]
    Counts {
        /// What does not count; a plural.
        what: &'static str,
    },
    /// Compiling takes too long, or is no longer wanted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// What can follow a piece is too much: of the lexemes that a piece can become there are too many, or
    /// the sets of terminals that are kept for them take too many bytes. Other texts need not fail.
    #[error(
        "what can follow a piece takes a look at more than {limit} lexemes, or large sets for fewer; raise \
         the limit `lexemes`"
    )]
    TooMuchCanFollow {
        /// The limit in force, of lexemes; the bytes that the sets may take are a multiple of it.
        limit: usize,
    },
    /// A transducer, or another table of one output, holds too many lexemes.
    #[error("more than {limit} different lexemes in progress; raise the limit `lexemes`")]
    TooManyLexemes {
        /// The limit in force.
        limit: usize,
    },
}

impl LexerError {
    /// [`ErrorKind::Limit`], [`ErrorKind::Unsupported`] or [`ErrorKind::Cancelled`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Stopped(stopped) => stopped.kind(),
            Self::Growing { .. } | Self::TokenSets { .. } | Self::Counts { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Limit,
        }
    }

    /// The limit that was reached: the option that sets it, and its value. `None` if no option sets it.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match *self {
            Self::TerminalTooLarge { limit, option, .. } => Some((option, limit as u64)),
            Self::UnionTooLarge { limit } => Some(("union_entries", limit as u64)),
            Self::TooManyLexemes { limit } | Self::TooMuchCanFollow { limit } => {
                Some(("lexemes", limit as u64))
            }
            Self::Stopped(stopped) => stopped.limit(),
            Self::TooManyStates(TooManyStates { limit, option, .. }) => Some((option, limit as u64)),
            Self::TooDeep { .. } | Self::Growing { .. } | Self::TokenSets { .. } | Self::Counts { .. } => {
                None
            }
        }
    }
}
