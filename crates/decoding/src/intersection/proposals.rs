//! Relaxed compatible subsets (EPIC): many proposals at once, first against a regular superset of the
//! grammar.
//!
//! The superset is what neighbours allow: sequences of terminals in which each can follow the one before it
//! somewhere in the grammar, the first can begin a sentence and the last can end one. It is tested over pairs
//! of a state of the lexings and the last terminal, without a parser.

use anygram_any_order::error::CanvasCause;
use anygram_any_order::lexings::Lexings;
use anygram_any_order::lexings::completions::Completions;
use anygram_any_order::{Canvas, CanvasError, Decision, Slot};
use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{Symbol, TerminalId};
use anygram_left_to_right::language::StepError;
use anygram_vocab::TokenId;
use rustc_hash::FxHashSet;

use super::{Intersection, IntersectionOptions};

/// Which terminals can follow each other, begin and end.
pub(super) struct Neighbours {
    /// Of each terminal those that can follow it; of the number behind the last those that can begin.
    after: Vec<BitSet>,
    /// What can end a sentence; the number behind the last if the empty sequence is one.
    ends: BitSet,
}

impl Neighbours {
    pub fn new(cfg: &Cfg) -> Self {
        let n = cfg.n_terminals;
        let (first, follow, nullable) = (cfg.first_sets(), cfg.follow_sets(), nullable(cfg));
        let is_nullable =
            |symbol: &Symbol| matches!(symbol, Symbol::Nonterminal(n) if nullable.contains(n.index()));
        // What can stand at the end of a sentence.
        let mut last = BitSet::from_members(cfg.n_nonterminals, [cfg.start.index()]);
        let mut ends = BitSet::new(n + 1);
        if nullable.contains(cfg.start.index()) {
            ends.insert(n);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for rule in cfg.rules.iter().filter(|rule| last.contains(rule.lhs.index())).collect::<Vec<_>>() {
                for symbol in rule.rhs.iter().rev() {
                    changed |= match symbol {
                        Symbol::Terminal(t) => ends.insert(t.index()),
                        Symbol::Nonterminal(n) => last.insert(n.index()),
                    };
                    if !is_nullable(symbol) {
                        break;
                    }
                }
            }
        }
        let mut after = vec![BitSet::new(n); n + 1];
        after[n].union_with(&first[cfg.start.index()]);
        for rule in &cfg.rules {
            for (at, symbol) in rule.rhs.iter().enumerate() {
                let Symbol::Terminal(terminal) = symbol else { continue };
                let row = &mut after[terminal.index()];
                let mut rest = rule.rhs[at + 1..].iter();
                let blocked = rest.any(|symbol| {
                    match symbol {
                        Symbol::Terminal(t) => drop(row.insert(t.index())),
                        Symbol::Nonterminal(n) => drop(row.union_with(&first[n.index()])),
                    }
                    !is_nullable(symbol)
                });
                if !blocked {
                    row.union_with(&follow[rule.lhs.index()]);
                }
            }
        }
        Self { after, ends }
    }

    /// Whether some lexing is a sequence that neighbours allow.
    fn allows(&self, lexings: &mut Lexings<'_>, work: &mut Work) -> Result<bool, StepError> {
        let none = self.after.len() - 1;
        let start = (lexings.start(work)?, none);
        let mut seen = FxHashSet::from_iter([start]);
        let mut agenda = vec![start];
        while let Some((node, last)) = agenda.pop() {
            let found = lexings.edges(node, work)?;
            if found.accepts && self.ends.contains(last) {
                return Ok(true);
            }
            work.spend(1 + found.edges.len())?;
            let fitting = |edge: &&(TerminalId, u32)| self.after[last].contains(edge.0.index());
            for &(terminal, to) in found.edges.iter().filter(fitting) {
                if seen.insert((to, terminal.index())) {
                    agenda.push((to, terminal.index()));
                }
            }
        }
        Ok(false)
    }
}

fn nullable(cfg: &Cfg) -> BitSet {
    let mut nullable = BitSet::new(cfg.n_nonterminals);
    let mut changed = true;
    while changed {
        changed = false;
        for rule in &cfg.rules {
            let empty =
                |symbol: &Symbol| matches!(symbol, Symbol::Nonterminal(n) if nullable.contains(n.index()));
            if !nullable.contains(rule.lhs.index()) && rule.rhs.iter().all(empty) {
                nullable.insert(rule.lhs.index());
                changed = true;
            }
        }
    }
    nullable
}

/// How many of some proposals can be kept together.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Subset {
    /// The first so many were kept.
    pub kept: usize,
    /// Whether the canvas with them is completable by the method.
    pub decision: Decision,
    /// Questions to the regular superset, and to the intersection.
    pub checks: (usize, usize),
}

impl Intersection {
    /// How many of the first proposals `(slot, token)` for holes can be put into a canvas at once: all are
    /// tried against the regular superset, half of them after each failure, and what passes against the
    /// intersection, again with half of them after a no. Not the most that could be kept, nor, with none
    /// kept, a proof about any of them. Where a limit is hit none are kept.
    pub fn compatible(
        &mut self,
        canvas: &Canvas,
        proposals: &[(usize, TokenId)],
        options: &IntersectionOptions,
    ) -> Result<Subset, CanvasError> {
        for (proposal, &(slot, _)) in proposals.iter().enumerate() {
            if canvas.slots().get(slot) != Some(&Slot::Hole) {
                return Err(CanvasCause::NoHole { proposal, slot }.into());
            }
        }
        let mut subset = Subset { kept: 0, decision: Decision::No, checks: (0, 0) };
        let mut n_tried = proposals.len();
        loop {
            let mut slots = canvas.slots().to_vec();
            for &(slot, token) in &proposals[..n_tried] {
                slots[slot] = Slot::Fixed(token);
            }
            let tried = Canvas::new(slots, canvas.end());
            self.check(&tried)?;
            subset.checks.0 += 1;
            subset.decision = match self.is_allowed(&tried, options) {
                Ok(false) => Decision::No,
                Ok(true) => {
                    subset.checks.1 += 1;
                    self.completable(&tried, options)?.verdict.decision.map(drop)
                }
                Err(error) => Decision::Unknown(error.into()),
            };
            if subset.decision.is_no() && n_tried > 0 {
                n_tried /= 2;
                continue;
            }
            subset.kept = if subset.decision.is_yes() { n_tried } else { 0 };
            return Ok(subset);
        }
    }

    fn is_allowed(&mut self, canvas: &Canvas, options: &IntersectionOptions) -> Result<bool, StepError> {
        let mut work = self.work(options);
        let completions = Completions::with_gaps(&self.constraint, canvas);
        let neighbours =
            self.neighbours.get_or_insert_with(|| Neighbours::new(&self.constraint.language().lexing().cfg));
        let mut lexings = Lexings::new(&mut self.tables, &self.constraint, &completions);
        neighbours.allows(&mut lexings, &mut work)
    }
}
