//! What sequences of terminals do to a finite automaton.

use anygram_bits::BitSet;
use anygram_bits::work::{Stopped, Work};

use crate::cfg::{Automaton, Cfg};
use crate::ir::{NonterminalId, Symbol};

/// For each symbol of a grammar and each state of a finite automaton over its terminals, the states to which
/// the automaton can come while reading something that the symbol derives.
///
/// This is the relation that the construction of Bar-Hillel, Perles and Shamir (1961) computes for the
/// intersection of a grammar with a regular language. Cost: rules × states² a round, and as many rounds as
/// derivations are deep, until nothing changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation {
    n_states: usize,
    /// Row `terminal * n_states + from`.
    terminals: Vec<BitSet>,
    /// Row `nonterminal * n_states + from`.
    nonterminals: Vec<BitSet>,
}

impl Relation {
    /// The relation for the automaton with these steps `(from, terminal, to)`. Of nonterminals whose rules
    /// automata give ([`Cfg::automata`]) it holds at least what is true.
    pub fn new(
        cfg: &Cfg,
        n_states: usize,
        steps: impl IntoIterator<Item = (usize, usize, usize)>,
        work: &mut Work,
    ) -> Result<Self, Stopped> {
        Self::fixpoint(cfg, &[], n_states, steps, work)
    }

    /// The same, but of nonterminals whose rules automata give it holds at most what is true: that one comes
    /// to a state whichever symbols come next. What [`Automaton::left`] says of the rest of a right-hand side
    /// leads only to where every such rest leads that ends later.
    ///
    /// (A right-hand side that goes on here has as many symbols as are needed, or more. So it leads to `y` if
    /// each symbol can lead on along the way, and each from `y` to `y`.)
    pub fn surely(
        cfg: &Cfg,
        n_states: usize,
        steps: impl IntoIterator<Item = (usize, usize, usize)>,
        work: &mut Work,
    ) -> Result<Self, Stopped> {
        Self::fixpoint(cfg, &cfg.automata, n_states, steps, work)
    }

    fn fixpoint(
        cfg: &Cfg,
        automata: &[Automaton],
        n_states: usize,
        steps: impl IntoIterator<Item = (usize, usize, usize)>,
        work: &mut Work,
    ) -> Result<Self, Stopped> {
        // What is about to be allocated.
        let n_rows = (cfg.n_terminals + cfg.n_nonterminals).saturating_mul(n_states);
        work.spend(n_rows.saturating_mul(1 + n_states / 8))?;
        let rows = |n: usize| vec![BitSet::new(n_states); n * n_states];
        let mut this =
            Self { n_states, terminals: rows(cfg.n_terminals), nonterminals: rows(cfg.n_nonterminals) };
        for (from, terminal, to) in steps {
            this.terminals[terminal * n_states + from].insert(to);
        }
        let sides = automata.iter().flat_map(|automaton| [automaton.lhs, automaton.any, automaton.rest]);
        let given = BitSet::from_members(cfg.n_nonterminals, sides.map(NonterminalId::index));
        loop {
            let mut changed = false;
            for automaton in automata {
                work.spend((automaton.symbols.len() + 1).saturating_mul(n_states * (1 + n_states / 64)))?;
                changed |= this.add_surely(automaton);
            }
            for rule in cfg.rules.iter().filter(|rule| !given.contains(rule.lhs.index())) {
                for from in 0..n_states {
                    work.spend((rule.rhs.len() + 1) * (1 + n_states / 64))?;
                    let reached =
                        this.after_all(rule.rhs.iter().copied(), BitSet::from_members(n_states, [from]));
                    changed |= this.nonterminals[rule.lhs.index() * n_states + from].union_with(&reached);
                }
            }
            if !changed {
                break;
            }
        }
        Ok(this)
    }

    /// Adds what is certain of an automaton, by what is known of its symbols. Says whether that is more.
    fn add_surely(&mut self, automaton: &Automaton) -> bool {
        let n_states = self.n_states;
        let mut changed = false;
        for from in 0..n_states {
            let mut any = BitSet::full(n_states);
            automaton.symbols.iter().for_each(|&symbol| any.intersect_with(self.row(symbol, from)));
            let mut rest = any.clone();
            rest.intersect_with(&BitSet::from_members(n_states, [from]));
            let at = |n: NonterminalId| n.index() * n_states + from;
            changed |= self.nonterminals[at(automaton.any)].union_with(&any);
            changed |= self.nonterminals[at(automaton.rest)].union_with(&rest);
        }
        let start = automaton.automaton.start();
        let is_dead = automaton.automaton.minimum(start) == u32::MAX;
        for from in (0..n_states).filter(|_| !is_dead) {
            // One that accepts its start derives the empty sequence, but not only that.
            let here = BitSet::from_members(n_states, [from]);
            let mut reached = self.after_all(automaton.left(automaton.needed(start).max(1)), here.clone());
            if automaton.automaton.accepts(start) {
                reached = here;
            }
            changed |= self.nonterminals[automaton.lhs.index() * n_states + from].union_with(&reached);
        }
        changed
    }

    /// The states from which a symbol leads into some set.
    pub fn before(&self, symbol: Symbol, set: &BitSet) -> BitSet {
        let leads_into = |&from: &usize| self.row(symbol, from).intersects(set);
        BitSet::from_members(self.n_states, (0..self.n_states).filter(leads_into))
    }

    fn row(&self, symbol: Symbol, from: usize) -> &BitSet {
        match symbol {
            Symbol::Terminal(t) => &self.terminals[t.index() * self.n_states + from],
            Symbol::Nonterminal(n) => &self.nonterminals[n.index() * self.n_states + from],
        }
    }

    /// The number of states of the automaton.
    pub fn n_states(&self) -> usize {
        self.n_states
    }

    /// Where symbols, one after the other, lead from any of `states`.
    pub fn after_all(&self, symbols: impl Iterator<Item = Symbol>, mut states: BitSet) -> BitSet {
        for symbol in symbols {
            if states.is_empty() {
                break;
            }
            let mut next = BitSet::new(self.n_states);
            for from in states.iter() {
                next.union_with(self.row(symbol, from));
            }
            states = next;
        }
        states
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.terminals
            .iter()
            .chain(&self.nonterminals)
            .map(|row| row.memory_usage() + size_of::<BitSet>())
            .sum()
    }
}
