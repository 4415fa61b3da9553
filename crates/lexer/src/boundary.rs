//! What may follow a piece: the automata of pieces.
//!
//! After a piece the text must not go on in a way that makes a longer match. That debt is a set of automaton
//! states (see [`crate::transducer`]); a debt before the next piece begins is a *boundary*. Boundaries and
//! pieces form a finite automaton: from a boundary, some text is lexed as a piece and leads to another
//! boundary. A parser's state and a boundary can be completed iff some sequence of terminals completes the
//! one and is read by the automaton from the other: a question about a grammar and a regular language.
//!
//! Two automata are built, for different purposes.
//!
//! - [`Boundaries`]: all terminals compete. That is `longest`, exactly. In `contextual` fewer compete, so
//!   what can be spelled here can be spelled there (a piece that is longest among all is longest among some;
//!   its label is among the labels): a *yes* holds, a *no* may not.
//! - [`OwnDebts`]: a piece owes only that its own terminal has no longer match. In `contextual` at least that
//!   much is owed, for a label has competed: a *no* holds, a *yes* may not.
//!
//! Call *common* the terminals that can be spelled from every boundary. If they suffice to derive the start
//! symbol and every proper suffix of every rule (whatever a parser has begun, suffixes are what it needs),
//! every viable parse can be completed from every boundary: parsing and lexing are
//! [independent](Boundaries::is_independent), and nothing need be asked. Nearly all grammars with ignored
//! blanks are so. In others it is computed which terminals can be read to which boundaries so that whatever a
//! parser has begun when it has read them can be completed ([`anygram_grammar::completions`], with the
//! proof). One of these that the parser wants is *enough* ([`Boundaries::enough`]). In `contextual` a second
//! look, in which only those terminals compete that are not enough, finds more (`rivals`).
//!
//! Boundaries from which the same pieces lead to the same classes are one *class* (the coarsest
//! bisimulation), which leaves few.
//!
//! Exploring the automaton costs lexemes × moves, more than all else that a grammar needs. Mostly a cheap
//! look at bounds of what boundaries can owe shows that lexing is independent. Then lexemes are looked at
//! when somebody asks for them (`asked`); else all are at once (`explored`).

mod asked;
mod debts;
mod explored;
mod graph;
mod own;
mod rivals;

use std::sync::Arc;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, CompactSet, index_type};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::completions::Completions;
use anygram_grammar::ir::{Symbol, TerminalId};

use self::asked::Asked;
pub use self::explored::Explored;
pub use self::own::OwnDebts;
use crate::dfa::START;
use crate::lexicon::Lexicon;
use crate::union::State;
use crate::{LexerError, LexerLimits};

index_type!(
    /// A debt: a set of states that must not accept any more; 0 is the empty one.
    DebtId
);
index_type!(
    /// A class of boundaries from which the same texts can follow.
    ClassId
);

/// Bytes of sets that are kept for as many lexemes as are allowed.
const SET_BYTES_PER_LEXEME: usize = 512;

/// An outcome of lexing: which terminal, and the class of the boundary after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Outcome {
    /// The terminal.
    pub terminal: TerminalId,
    /// The class of the boundary that it leads to.
    pub to: ClassId,
}

/// The automaton of pieces if all terminals compete.
#[derive(Debug)]
pub struct Boundaries(Known);

#[derive(Debug)]
enum Known {
    /// Lexing and parsing are not known to be independent without a look at all lexemes.
    Explored(Arc<Explored>),
    /// They are.
    Asked(Box<Asked>),
}

impl Boundaries {
    /// The automaton of pieces. `specials` are the terminals that are tokens. `None` if there are more
    /// lexemes than [`LexerLimits::lexemes`], or the sets kept for them are too large.
    pub fn new(
        lexicon: &Lexicon,
        cfg: &Cfg,
        specials: &BitSet,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Option<Self>, Stopped> {
        if let Some(asked) = Asked::new(lexicon, cfg, specials, limits, work)? {
            return Ok(Some(Self(Known::Asked(Box::new(asked)))));
        }
        let explored = Explored::new(lexicon, cfg, specials, limits, work)?;
        Ok(explored.map(|explored| Self(Known::Explored(Arc::new(explored)))))
    }

    /// Whether every viable parse can be completed from every boundary.
    pub fn is_independent(&self) -> bool {
        match &self.0 {
            Known::Explored(explored) => explored.is_independent(),
            Known::Asked(_) => true,
        }
    }

    /// The number of a lexeme in progress with a debt of these states, if it can arise. Fails if a limit is
    /// hit.
    pub fn find_node(
        &self,
        lexicon: &Lexicon,
        state: State,
        debt: impl Iterator<Item = State>,
    ) -> Result<Option<usize>, LexerError> {
        let debt = sorted(debt);
        match &self.0 {
            Known::Explored(explored) => Ok(explored.find_node(state, &debt)),
            Known::Asked(asked) => asked.find_node(lexicon, state, &debt),
        }
    }

    /// Of each terminal a number of bytes that suffices to spell it from every boundary that is sure, after
    /// ignored pieces if need be; `None` if none is known. (A token that the grammar names counts as one
    /// byte.) Cost: where all lexemes are explored, terminals × moves.
    pub fn bytes_from_everywhere(&self, work: &mut Work) -> Result<Vec<Option<u32>>, Stopped> {
        match &self.0 {
            Known::Explored(explored) => explored.bytes_from_everywhere(work),
            Known::Asked(asked) => Ok(asked.bytes_from_everywhere().to_vec()),
        }
    }

    /// Whether a boundary with a debt of these states is known to be one from which all can be spelled that
    /// can be spelled from everywhere, and so are those that pieces lead to from there.
    pub(crate) fn is_sure(&self, debt: impl Iterator<Item = State>) -> bool {
        let debt = sorted(debt);
        match &self.0 {
            Known::Explored(explored) => explored.find_node(START, &debt).is_some(),
            Known::Asked(asked) => asked.is_covered(&debt),
        }
    }

    /// The terminals that a lexeme can become, after ignored pieces if need be; one more bit if ignored
    /// pieces alone can end the text.
    pub fn finish(&self, node: usize) -> &CompactSet {
        match &self.0 {
            Known::Explored(explored) => explored.finish(node),
            Known::Asked(asked) => asked.finish(node),
        }
    }

    /// Terminals of which one that the parser accepts is enough for a lexeme to be completed; where the bit
    /// behind them is set, it can be in any case. `None` if no such terminals are known.
    pub fn enough(&self, node: usize) -> Option<&CompactSet> {
        match &self.0 {
            Known::Explored(explored) => explored.enough(node),
            Known::Asked(asked) => Some(asked.finish(node)),
        }
    }

    /// What the grammar does to the classes, if that is not the same for all.
    pub fn completions(&self) -> Option<&Completions> {
        match &self.0 {
            Known::Explored(explored) => explored.completions.as_ref(),
            Known::Asked(_) => None,
        }
    }

    /// The classes of boundaries to which ignored pieces alone lead (if the lexeme is a boundary, its own is
    /// one). None unless there are [completions](Boundaries::completions).
    pub fn reached_classes(&self, node: usize) -> impl Iterator<Item = ClassId> {
        self.dependent().into_iter().flat_map(move |explored| explored.reached_classes(node))
    }

    /// The outcomes of a lexeme, after ignored pieces if need be. None unless there are
    /// [completions](Boundaries::completions).
    pub fn outcomes(&self, node: usize) -> impl Iterator<Item = Outcome> {
        self.dependent().into_iter().flat_map(move |explored| explored.outcomes(node))
    }

    fn dependent(&self) -> Option<&Explored> {
        match &self.0 {
            Known::Explored(explored) => Some(explored),
            Known::Asked(_) => None,
        }
    }

    /// All lexemes, for the lexicon and the grammar of which this was made. `None` if there are too many.
    /// Cost: their exploration, unless that was needed before.
    pub(crate) fn explored(
        &self,
        lexicon: &Lexicon,
        cfg: &Cfg,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Option<Arc<Explored>>, Stopped> {
        match &self.0 {
            Known::Explored(explored) => Ok(Some(explored.clone())),
            Known::Asked(asked) => {
                Ok(Explored::new(lexicon, cfg, asked.specials(), limits, work)?.map(Arc::new))
            }
        }
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        match &self.0 {
            Known::Explored(explored) => explored.memory_usage(),
            Known::Asked(asked) => asked.memory_usage(),
        }
    }
}

/// States as debts have them: in ascending order, each once.
fn sorted(states: impl Iterator<Item = State>) -> Vec<State> {
    let mut states: Vec<State> = states.collect();
    states.sort_unstable();
    states.dedup();
    states
}

/// Whether the start symbol and every proper suffix of every rule derive sequences of `terminals` alone. Of
/// an automaton that gives rules it is asked of all symbols, since any of them may be the only one that is
/// left.
fn suffices(cfg: &Cfg, terminals: &BitSet) -> bool {
    let derives = cfg.surely_derive(terminals);
    let good = |symbol: &Symbol| match *symbol {
        Symbol::Terminal(t) => terminals.contains(t.index()),
        Symbol::Nonterminal(n) => derives.contains(n.index()),
    };
    let approximated = cfg.approximated();
    let mut rules = cfg.rules.iter().filter(|rule| !approximated.contains(rule.lhs.index()));
    derives.contains(cfg.start.index())
        && rules.all(|rule| rule.rhs.iter().skip(1).all(good))
        && cfg.automata.iter().all(|automaton| automaton.symbols.iter().all(good))
}
