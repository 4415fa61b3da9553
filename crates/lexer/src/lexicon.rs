//! The terminals of one compiled grammar: their automaton, and the declarations that decide which of them
//! label a piece.

use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{Grammar, LexerMode, TerminalKind, Ties};
use smallvec::SmallVec;

use crate::dfa::{Dfa, DfaError};
use crate::union::{Part, State, Union};
use crate::{LexerError, LexerLimits};

/// The terminals that label a piece: few.
pub type Labels = SmallVec<[usize; 4]>;

/// All patterns of a grammar as automata, before it is known which terminals are of use.
#[derive(Clone, Debug)]
pub struct Patterns {
    dfas: Vec<Option<Arc<Dfa>>>,
    /// Those that automata give and that match nothing but perhaps the empty string.
    empty_pieces: BitSet,
}

impl Patterns {
    /// Builds the automaton of every terminal that is a pattern.
    pub fn new(grammar: &Grammar, limits: &LexerLimits, work: &mut Work) -> Result<Self, LexerError> {
        let mut n_entries = 0;
        let build = |terminal: &anygram_grammar::ir::Terminal| {
            let Some(pattern) = terminal.kind.pattern() else { return Ok(None) };
            let dfa = Dfa::shared(pattern, limits, work).map_err(|error| {
                let terminal = terminal.name.clone();
                match error {
                    DfaError::TooManyNfaStates => LexerError::TerminalTooLarge {
                        terminal,
                        limit: limits.nfa_states,
                        option: "nfa_states",
                    },
                    DfaError::TooManyDfaStates => LexerError::TerminalTooLarge {
                        terminal,
                        limit: limits.dfa_states,
                        option: "dfa_states",
                    },
                    DfaError::TooDeep => {
                        LexerError::TooDeep { terminal, limit: crate::dfa::MAX_BOOLEAN_DEPTH }
                    }
                    DfaError::Stopped(stopped) => stopped.into(),
                }
            })?;
            n_entries += dfa.n_entries();
            if n_entries > limits.union_entries {
                return Err(LexerError::UnionTooLarge { limit: limits.union_entries });
            }
            Ok(Some(dfa))
        };
        let dfas = grammar.terminals.iter().map(build).collect::<Result<_, _>>()?;
        Ok(Self { dfas, empty_pieces: grammar.empty_pieces() })
    }

    /// The terminals that match no piece (nothing at all, or only the empty string).
    pub fn empty(&self) -> BitSet {
        let empty = |dfa: &Option<Arc<Dfa>>| dfa.as_ref().is_some_and(|dfa| dfa.matches_only_empty());
        let mut all = self.empty_pieces.clone();
        all.extend((0..self.dfas.len()).filter(|&at| empty(&self.dfas[at])));
        all
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.dfas.iter().flatten().map(|dfa| size_of_val(&*dfa.next) + dfa.n_states() + 256).sum()
    }

    /// The automaton of one terminal; `None` if it has no pattern.
    pub fn dfa(&self, terminal: usize) -> Option<&Arc<Dfa>> {
        self.dfas[terminal].as_ref()
    }
}

/// The competing terminals of a grammar in one lexer mode.
#[derive(Clone, Debug)]
pub struct Lexicon {
    /// How texts are cut.
    pub mode: LexerMode,
    /// The automaton of the competing terminals.
    pub union: Union,
    /// Terminals that may stand anywhere.
    pub ignored: BitSet,
    /// Terminals that a useful rule names.
    pub used: BitSet,
    /// Terminals that compete in `longest` although they are neither: where one wins, the text is refused.
    pub reserved: BitSet,
    /// Of each terminal its place in the order of preference among those that match the same piece: all with
    /// the greatest rank are labels. (In `scannerless`, where every match counts, all ranks are equal.)
    rank: Vec<u32>,
}

impl Lexicon {
    /// The terminals that compete: those of the reduced grammar and the ignored ones.
    pub fn new(
        grammar: &Grammar,
        cfg: &Cfg,
        patterns: &Patterns,
        mode: LexerMode,
        ties: Ties,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Self, LexerError> {
        let n_terminals = grammar.terminals.len();
        let mut ignored =
            BitSet::from_members(n_terminals, (0..n_terminals).filter(|&at| grammar.terminals[at].ignored));
        ignored.subtract(&patterns.empty());
        let used = cfg.used_terminals();
        let is_reserved = |at: &usize| mode == LexerMode::Longest && grammar.terminals[*at].reserved;
        let reserved = BitSet::from_members(n_terminals, (0..n_terminals).filter(is_reserved));
        let competes = |at: usize| used.contains(at) || ignored.contains(at) || reserved.contains(at);
        let part = |at: usize| match grammar.terminals[at].kind {
            _ if !competes(at) => None,
            TerminalKind::Automaton { automaton, label } => Some(Part::Label { automaton, label }),
            _ => patterns.dfa(at).map(Part::Dfa),
        };
        let parts: Vec<Option<Part<'_>>> = (0..n_terminals).map(part).collect();
        let mut order: Vec<usize> = (0..n_terminals).collect();
        // From the least preferred to the most.
        let key = |&at: &usize| {
            let terminal = &grammar.terminals[at];
            let literal = matches!(terminal.kind, TerminalKind::Literal(_));
            match (mode, ties) {
                (LexerMode::Scannerless, _) => (0, false, 0),
                (_, Ties::All) => (terminal.priority, false, 0),
                (_, Ties::First) => (terminal.priority, literal, n_terminals - at),
            }
        };
        order.sort_by_key(key);
        let mut rank = vec![0; n_terminals];
        for pair in order.windows(2) {
            rank[pair[1]] = rank[pair[0]] + u32::from(key(&pair[0]) != key(&pair[1]));
        }
        let union = Union::of(&parts, &grammar.pieces, limits, work)?;
        Ok(Self { mode, union, ignored, used, reserved, rank })
    }

    /// The same terminals where every match counts.
    pub fn scannerless(&self) -> Self {
        Self { mode: LexerMode::Scannerless, rank: vec![0; self.rank.len()], ..self.clone() }
    }

    /// The same terminals where the longest match counts, whatever is wanted.
    pub fn longest(&self) -> Self {
        Self { mode: LexerMode::Longest, ..self.clone() }
    }

    /// The number of terminals, those that do not compete included.
    pub fn n_terminals(&self) -> usize {
        self.rank.len()
    }

    /// All terminals that compete in `longest`.
    pub fn competing(&self) -> BitSet {
        let mut all = self.used.clone();
        all.union_with(&self.ignored);
        all.union_with(&self.reserved);
        all
    }

    /// The labels of the piece that led to `state`, if only those compete of which `competes` holds.
    pub fn labels(&self, state: State, competes: impl Fn(usize) -> bool) -> Labels {
        let all = self.union.accepts(state).iter().filter(|&at| competes(at));
        let mut labels: Labels = all.collect();
        let greatest = labels.iter().map(|&at| self.rank[at]).max();
        labels.retain(|&mut at| Some(self.rank[at]) == greatest);
        labels
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.union.memory_usage()
            + self.ignored.memory_usage()
            + self.used.memory_usage()
            + self.reserved.memory_usage()
            + size_of_val(&*self.rank)
    }
}
