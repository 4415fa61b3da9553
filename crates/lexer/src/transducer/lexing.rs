//! What the lexing of a grammar is compiled to: its automata, what can follow a piece, and what is counted.

use std::num::NonZeroU32;
use std::sync::Arc;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::cfg::{Cfg, ReduceError};
use anygram_grammar::ir::{Grammar, LexerMode, Symbol, TerminalId, TerminalKind, Ties};

use crate::boundary::{Boundaries, Explored, OwnDebts};
use crate::dfa::Dfa;
use crate::lexicon::{Lexicon, Patterns};
use crate::union::State;
use crate::{LexerError, LexerLimits};

/// Why a grammar cannot be lexed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LexingError {
    /// A limit was hit.
    #[error(transparent)]
    Limit(#[from] LexerError),
    /// A terminal is given by an automaton, which only `scannerless` reads.
    #[error(
        "terminal {terminal} is given by an automaton, which the lexer mode {} cannot read; add `%lexer \
         scannerless`",
        mode.name()
    )]
    NeedsScannerless {
        /// The terminal's name.
        terminal: String,
        /// The mode that was asked for.
        mode: LexerMode,
    },
    /// A terminal has a bound on its tokens, which only `scannerless` keeps.
    #[error(
        "terminal {terminal} has a bound on its tokens (`max_tokens`), which ends its pieces before their \
         longest match, so the lexer mode {} cannot keep it; add `%lexer scannerless`",
        mode.name()
    )]
    Counts {
        /// The terminal's name.
        terminal: String,
        /// The mode that was asked for.
        mode: LexerMode,
    },
    /// No text at all is a sentence in this mode.
    #[error("the language is empty: no text is a sentence in lexer mode {}", mode.name())]
    EmptyLanguage {
        /// The mode.
        mode: LexerMode,
    },
    /// Stop strings cannot be kept out where what competes depends on what can follow.
    #[error(
        "no stop string can be kept out in the lexer mode contextual, where terminals compete only if they \
         can come next; use the lexer mode longest or scannerless"
    )]
    WithoutContext,
    /// Stop strings cannot be kept out where a piece has one label.
    #[error(
        "no stop string can be kept out where the first of several labels counts (ties: first); use the \
         lexer mode scannerless, or let all labels count"
    )]
    WithoutTies,
    /// All sentences have one of the stop strings in them.
    #[error("no output is left: every sentence has one of the stop strings in it that are to be avoided")]
    NothingWithout,
    /// Stop strings cannot be kept out, since a token may have any bytes.
    #[error(
        "no stop string can be kept out where the grammar has the token {token}, whose bytes only the \
         vocabulary knows; name special tokens as `<|name|>`, or do not avoid stop strings"
    )]
    WithoutTokens {
        /// The token as the grammar writes it.
        token: String,
    },
    /// Stop strings cannot be kept out of a terminal.
    #[error(
        "no stop string can be kept out of terminal {terminal}, which matches bytes that are no UTF-8; let \
         it match Unicode texts"
    )]
    WithoutBytes {
        /// The terminal's name.
        terminal: String,
    },
    /// Rules given by automata are too many to keep stop strings out.
    #[error(
        "to keep stop strings out, the objects and arrays of the schema are written out, and these have more \
         than {limit} states; let the keys have the order of the schema (the option key_order: schema), or \
         lower the bounds of arrays"
    )]
    WithoutTooMany {
        /// The limit in force.
        limit: usize,
    },
    /// The grammar without stop strings is too large.
    #[error(
        "without the stop strings the grammar has more than {limit} symbols; raise the limit `grammar_size`"
    )]
    WithoutTooLarge {
        /// The limit in force.
        limit: usize,
    },
    /// An automaton that gives rules breaks its promise.
    #[error(
        "the automaton of `{nonterminal}` has the symbol `{symbol}`, which {}; leave it out, or let it \
         derive something",
        if *is_nullable { "derives the empty sequence" } else { "derives no text" }
    )]
    Automaton {
        /// Whose rules it gives.
        nonterminal: String,
        /// The symbol.
        symbol: String,
        /// Whether it derives the empty sequence; else it derives nothing.
        is_nullable: bool,
    },
}

/// A grammar that cannot be reduced, in its own words.
fn refused(grammar: &Grammar, mode: LexerMode, error: ReduceError) -> LexingError {
    let ReduceError::Symbol { lhs, symbol, is_nullable } = error else {
        return LexingError::EmptyLanguage { mode };
    };
    // Nonterminals that reducing has made have no name.
    let name = |symbol| match symbol {
        Symbol::Nonterminal(n) if n.index() >= grammar.nonterminals.len() => "(…)".to_owned(),
        symbol => grammar.symbol_name(symbol).to_owned(),
    };
    LexingError::Automaton { nonterminal: name(Symbol::Nonterminal(lhs)), symbol: name(symbol), is_nullable }
}

/// Everything about a grammar that lexing needs, compiled; shared by all texts.
#[derive(Clone, Debug)]
pub struct Lexing {
    /// The competing terminals.
    pub lexicon: Lexicon,
    /// The reduced grammar.
    pub cfg: Arc<Cfg>,
    pub(super) boundaries: Option<Arc<Boundaries>>,
    specials: Vec<TerminalId>,
    patterns: Patterns,
    empty: BitSet,
    /// The terminals that automata give.
    given: BitSet,
    /// What there is to count, if anything is.
    pub(super) counts: Option<Arc<Counts>>,
    delimited: bool,
    pub(super) limits: LexerLimits,
}

impl Lexing {
    /// Compiles the lexing of a grammar.
    pub fn new(
        grammar: &Grammar,
        mode: LexerMode,
        ties: Ties,
        limits: LexerLimits,
        work: &mut Work,
    ) -> Result<Self, LexingError> {
        let is_given = |&at: &usize| matches!(grammar.terminals[at].kind, TerminalKind::Automaton { .. });
        let n_terminals = grammar.terminals.len();
        let given = BitSet::from_members(n_terminals, (0..n_terminals).filter(is_given));
        if mode != LexerMode::Scannerless
            && let Some(at) = given.iter().next()
        {
            return Err(LexingError::NeedsScannerless { terminal: grammar.terminals[at].name.clone(), mode });
        }
        let is_counted = |&at: &usize| grammar.terminals[at].max_tokens.is_some();
        if mode != LexerMode::Scannerless
            && let Some(at) = (0..n_terminals).find(is_counted)
        {
            return Err(LexingError::Counts { terminal: grammar.terminals[at].name.clone(), mode });
        }
        let patterns = Patterns::new(grammar, &limits, work)?;
        work.spend(grammar.n_rule_symbols()).map_err(LexerError::from)?;
        let cfg = Cfg::reduce(grammar, &patterns.empty()).map_err(|error| refused(grammar, mode, error))?;
        let lexicon = Lexicon::new(grammar, &cfg, &patterns, mode, ties, &limits, work)?;
        let is_special = |&at: &usize| matches!(grammar.terminals[at].kind, TerminalKind::Special(_));
        let specials = BitSet::from_members(cfg.n_terminals, lexicon.used.iter().filter(is_special));
        let boundaries = match mode {
            LexerMode::Scannerless => None,
            LexerMode::Contextual => {
                Boundaries::new(&lexicon, &cfg, &specials, &limits, work).map_err(LexerError::from)?
            }
            LexerMode::Longest => {
                let too_many = LexerError::TooMuchCanFollow { limit: limits.lexemes };
                let boundaries =
                    Boundaries::new(&lexicon, &cfg, &specials, &limits, work).map_err(LexerError::from)?;
                Some(boundaries.ok_or(too_many)?)
            }
        };
        let specials = specials.iter().map(TerminalId::new).collect();
        let empty = patterns.empty();
        let delimited = grammar.delimited;
        let boundaries = boundaries.map(Arc::new);
        let cfg = Arc::new(cfg);
        let counts = Counts::new(grammar, cfg.n_terminals).map(Arc::new);
        Ok(Self { lexicon, cfg, boundaries, specials, patterns, empty, given, counts, delimited, limits })
    }

    /// The same lexing in `scannerless`, where every cut counts: what is a sentence in another mode is one
    /// there too. Cost: a copy.
    pub fn scannerless(&self) -> Self {
        Self { lexicon: self.lexicon.scannerless(), boundaries: None, ..self.clone() }
    }

    /// The lexing of a `contextual` one in `longest`, but that no terminal is reserved: what is a sentence
    /// there is one in `contextual` too, since what wins where all compete wins where some do. `None` if it
    /// has too many states. Cost: a copy.
    pub fn longest(&self) -> Option<Self> {
        self.boundaries.as_ref()?;
        Some(Self { lexicon: self.lexicon.longest(), ..self.clone() })
    }

    /// The lexer mode.
    pub fn mode(&self) -> LexerMode {
        self.lexicon.mode
    }

    /// The terminals that match no text, or only the empty one.
    pub fn empty_terminals(&self) -> &BitSet {
        &self.empty
    }

    /// The terminals of use that are tokens of the vocabulary.
    pub fn specials(&self) -> &[TerminalId] {
        &self.specials
    }

    /// Whether the ends of pieces meet in one state of the parser. So it is in `scannerless`, where a text
    /// has many cuts, unless the grammar promises that few of them survive
    /// ([`delimited`](anygram_grammar::ir::Grammar::delimited)).
    pub fn merges_ends(&self) -> bool {
        self.mode() == LexerMode::Scannerless && !self.delimited
    }

    /// Whether some terminals have a bound on their tokens.
    pub fn counts_tokens(&self) -> bool {
        self.counts.is_some()
    }

    /// How many tokens may have bytes in a piece of a terminal; [`u32::MAX`] if that is not bounded.
    pub fn most_tokens(&self, terminal: TerminalId) -> u32 {
        self.counts.as_ref().map_or(u32::MAX, |counts| counts.bound(terminal.index()))
    }

    /// Whether some terminals are given by automata that grow.
    pub fn is_growing(&self) -> bool {
        self.lexicon.union.is_growing()
    }

    /// The automaton of one terminal; `None` if it has no pattern: it is a token, or given by an automaton
    /// that grows ([`Lexing::is_given`]).
    pub fn dfa(&self, terminal: TerminalId) -> Option<&Dfa> {
        self.shared_dfa(terminal).map(|dfa| &**dfa)
    }

    /// The same, to be kept.
    pub(crate) fn shared_dfa(&self, terminal: TerminalId) -> Option<&Arc<Dfa>> {
        self.patterns.dfa(terminal.index())
    }

    /// Whether a terminal is given by an automaton that grows.
    pub fn is_given(&self, terminal: TerminalId) -> bool {
        self.given.contains(terminal.index())
    }

    /// The bounds in force.
    pub fn limits(&self) -> &LexerLimits {
        &self.limits
    }

    /// What follows a piece, for the modes where that matters.
    pub fn boundaries(&self) -> Option<&Boundaries> {
        self.boundaries.as_deref()
    }

    /// The same as a whole; explored for the asker, unless that was needed before. `None` too if there are
    /// too many lexemes.
    pub fn explored(&self, work: &mut Work) -> Result<Option<Arc<Explored>>, Stopped> {
        let Some(boundaries) = &self.boundaries else { return Ok(None) };
        boundaries.explored(&self.lexicon, &self.cfg, &self.limits, work)
    }

    /// A bound on what can follow from below, for `contextual` where parsing and lexing are not independent.
    /// Cost: its exploration.
    pub fn own_debts(&self, work: &mut Work) -> Result<Option<OwnDebts>, Stopped> {
        let is_dependent = self.boundaries().is_some_and(|boundaries| !boundaries.is_independent());
        if self.mode() != LexerMode::Contextual || !is_dependent {
            return Ok(None);
        }
        let specials = self.specials.iter().map(|terminal| terminal.index());
        let specials = BitSet::from_members(self.cfg.n_terminals, specials);
        OwnDebts::new(&self.lexicon, &self.patterns, &specials, &self.limits, work)
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.lexicon.memory_usage()
            + self.patterns.memory_usage()
            + self.boundaries().map_or(0, Boundaries::memory_usage)
    }

    /// The members of a set of wanted outcomes that match after at least one more byte from `state`.
    pub(super) fn live_among(&self, wanted: &CompactSet, state: State) -> CompactSet {
        wanted.intersection(self.lexicon.union.live(state), self.end() + 1)
    }

    /// The bit of a set of wanted terminals that stands for the end of the text.
    pub(super) fn end(&self) -> usize {
        self.cfg.n_terminals
    }
}

/// The terminals that have a bound on their tokens.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// Each with its bound.
    bounds: Vec<(usize, NonZeroU32)>,
    /// All of them.
    pub counted: CompactSet,
    /// Those whose pieces are within one token, if there are any.
    pub single: Option<CompactSet>,
}

impl Counts {
    fn new(grammar: &Grammar, n_terminals: usize) -> Option<Self> {
        let terminals = grammar.terminals.iter().enumerate();
        let bounds: Vec<(usize, NonZeroU32)> =
            terminals.filter_map(|(at, terminal)| Some((at, terminal.max_tokens?))).collect();
        let set = |most: u32| {
            let members = bounds.iter().filter(|bound| bound.1.get() <= most).map(|bound| bound.0 as u32);
            CompactSet::from_sorted(n_terminals + 1, members)
        };
        let (counted, single) = (set(u32::MAX), Some(set(1)).filter(|single| !single.is_empty()));
        (!bounds.is_empty()).then_some(Self { bounds, counted, single })
    }

    /// The bound of an outcome; [`u32::MAX`] if it has none.
    pub fn bound(&self, outcome: usize) -> u32 {
        self.bounds.iter().find(|bound| bound.0 == outcome).map_or(u32::MAX, |bound| bound.1.get())
    }
}
