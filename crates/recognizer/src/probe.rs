//! Which engine suits a grammar, measured on sentences of its own.
//!
//! Earley's states are made once and found again, so where a grammar is nearly deterministic almost every
//! step is a look-up. Where it is ambiguous every state is new and holds items from everywhere, and each item
//! costs a look into a table; the Valiant chart has a bit for it. The measure is therefore the number of
//! items per state that Earley's algorithm makes on random sentences of some hundred terminals: up to some
//! tens on grammars of programming languages, hundreds and more on those of natural ones. It depends on the
//! grammar alone.

use anygram_bits::Random;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::derivation::Derivations;

use crate::earley::Earley;
use crate::{Edge, Recognizer, RecognizerLimits};

/// Sentences that are drawn; the longest of them are read, for most random ones are short.
const DRAWN: usize = 64;
/// Terminals that are read. (From the three hundredth on the measure moves by a tenth at most, on the
/// grammars of `data/replay`.)
const READ: usize = 400;
/// How many terminals they have beyond the fewest, about.
const EXTRA: u64 = 400;
/// Longer ones are not looked at.
const LONGEST: usize = 600;
/// Items beyond which there is nothing to be learned. (The work of a step can be the square of the items that
/// it makes.)
const MAX_ITEMS: usize = 20_000;

/// Items per state from which on the Valiant chart is the better choice. (SQL has 6 and SQLite 11, where it
/// is not; treebanks 380 and 709, where it is.)
pub const AMBIGUOUS: f64 = 80.0;

/// Statistics of Earley items on random sentences of a grammar; `auto` chooses by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Probe {
    /// Terminals read.
    pub terminals: usize,
    /// States made.
    pub states: usize,
    /// Items made.
    pub items: usize,
}

impl Probe {
    /// Reads random sentences of a reduced grammar; always the same ones.
    pub fn new(cfg: &Cfg) -> Self {
        let mut probe = Self::default();
        let Ok(mut engine) = Earley::new(cfg.clone(), RecognizerLimits { items: 2 * MAX_ITEMS }) else {
            return probe;
        };
        let derivations = Derivations::new(cfg, vec![Some(1); cfg.n_terminals]);
        let mut random = Random::new(0);
        let mut sentences: Vec<_> =
            (0..DRAWN).filter_map(|_| derivations.random(EXTRA, LONGEST, &mut random)).collect();
        sentences.sort_by_key(|sentence| std::cmp::Reverse(sentence.len()));
        'sentences: for sentence in sentences {
            let mut state = engine.start();
            for terminal in sentence {
                match engine.extend(&[Edge { from: state, terminal: Some(terminal) }]) {
                    Ok(Some(next)) => state = next,
                    _ => break,
                }
                probe.terminals += 1;
                if engine.n_items() > MAX_ITEMS || probe.terminals == READ {
                    break 'sentences;
                }
            }
        }
        (probe.states, probe.items) = (engine.n_states(), engine.n_parse_items());
        probe
    }

    /// Items per state.
    pub fn items_per_state(&self) -> f64 {
        self.items as f64 / self.states.max(1) as f64
    }

    /// Whether the grammar is so ambiguous that the Valiant chart suits it better.
    pub fn is_ambiguous(&self) -> bool {
        self.items_per_state() >= AMBIGUOUS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};

    fn probe(rules: &[&[i32]]) -> Probe {
        let symbol = |&symbol: &i32| match symbol {
            -1 => Symbol::Nonterminal(NonterminalId(0)),
            terminal => Symbol::Terminal(TerminalId(terminal as u32)),
        };
        let rule = |rhs: &&[i32]| Rule { lhs: NonterminalId(0), rhs: rhs.iter().map(symbol).collect() };
        let rules = rules.iter().map(rule).collect();
        Probe::new(&Cfg {
            n_terminals: 3,
            n_nonterminals: 1,
            rules,
            start: NonterminalId(0),
            automata: Vec::new(),
        })
    }

    #[test]
    fn ambiguity_is_told_from_determinism() {
        // Any terminal may open a bracket or close one.
        let ambiguous = probe(&[&[0, -1, 0], &[-1, -1], &[0]]);
        assert!(ambiguous.is_ambiguous() && ambiguous.terminals > 50, "{ambiguous:?}");
        let very = probe(&[&[-1, -1, -1], &[0]]);
        assert!(very.is_ambiguous() && very.items <= 2 * MAX_ITEMS, "{very:?}");
        // Derivations of the third and the fourth are beyond number, but they need few items.
        for rules in [
            &[&[0, -1][..], &[1][..]][..],
            &[&[0, -1, 1], &[2]],
            &[&[-1, -1], &[0]],
            &[&[-1, -1], &[-1, -1, -1], &[0]],
            &[&[0]],
        ] {
            let probe = probe(rules);
            assert!(!probe.is_ambiguous() && probe.terminals > 0, "{probe:?}");
        }
    }
}
