//! The reduced context-free grammar that recognizers work on.

use anygram_bits::BitSet;
use rustc_hash::FxHashSet;

mod automata;

pub use automata::{Automaton, MOST_NEEDED};

use crate::ir::{AutomatonRule, Grammar, NonterminalId, Rule, Symbol, TerminalId};

/// A context-free grammar over numbered terminals, without names.
///
/// Invariant of one made by [`Cfg::reduce`]: every rule takes part in the derivation of some sentence.
/// Recognizers rely on it: in a reduced grammar a prefix that can be parsed can be completed (over terminals;
/// what lexing adds is the lexer's affair).
///
/// # Automata
///
/// The right-hand sides of a nonterminal in [`automata`](Self::automata) are those that its automaton gives,
/// and no others. They may be too many to be written down, so `rules` has rules for it that derive
/// *at least* as much:
///
/// ```text
/// A     → s begun      for each symbol s that can come first
/// A     → ε            if the automaton accepts its start
/// begun → any … any rest
/// any   → s            for each symbol s
/// rest  → any rest | ε
/// ```
///
/// `begun`, `any` and `rest` are nonterminals of its own. In `begun` there are as many `any` as are needed
/// after the first symbol, up to [`MOST_NEEDED`]. So whoever wants a bound from above may read `rules` and
/// ask no further: nullable nonterminals and FIRST sets are exact; FOLLOW sets, last terminals and minimum
/// lengths err on the safe side. Whoever needs that something *can* be derived, or what exactly, has to look
/// at
/// `automata`.
///
/// That an automaton's nonterminal derives something is its own promise ([`RuleAutomaton`]): only live states
/// are made, and the symbols on the way to the end of a right-hand side derive something without it.
///
/// [`RuleAutomaton`]: crate::automata::RuleAutomaton
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cfg {
    /// The number of terminals, those without a use included.
    pub n_terminals: usize,
    /// The number of nonterminals, those without a rule included.
    pub n_nonterminals: usize,
    /// The rules, without duplicates.
    pub rules: Vec<Rule>,
    /// Where derivations begin.
    pub start: NonterminalId,
    /// The nonterminals whose right-hand sides automata give, at most once each.
    pub automata: Vec<Automaton>,
}

/// Why a grammar cannot be reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceError {
    /// The start symbol derives no text at all.
    EmptyLanguage,
    /// A symbol of an automaton derives the empty sequence, or nothing. The front end has to see to it.
    Symbol {
        /// The nonterminal whose right-hand sides the automaton gives.
        lhs: NonterminalId,
        /// The symbol.
        symbol: Symbol,
        /// Whether it derives the empty sequence; else it derives nothing.
        is_nullable: bool,
    },
}

impl Cfg {
    /// The useful part of a grammar, in the numbering of the grammar.
    ///
    /// Terminals that match the empty string become optional (a fresh nonterminal each, numbered after the
    /// grammar's); terminals in `empty` (those whose pattern matches nothing but perhaps the empty string)
    /// are never scanned. Rules that are unreachable or derive nothing are left out. Cost: linear in the size
    /// of the grammar.
    pub fn reduce(grammar: &Grammar, empty: &BitSet) -> Result<Self, ReduceError> {
        let mut n_nonterminals = grammar.nonterminals.len();
        let mut rules = grammar.rules.clone();
        let mut optional = vec![None; grammar.terminals.len()];
        for at in (0..grammar.terminals.len()).filter(|&at| grammar.is_nullable(at)) {
            let (lhs, symbol) = (NonterminalId::new(n_nonterminals), Symbol::Terminal(TerminalId::new(at)));
            optional[at] = Some(Symbol::Nonterminal(lhs));
            n_nonterminals += 1;
            rules.push(Rule { lhs, rhs: vec![] });
            rules.push(Rule { lhs, rhs: vec![symbol] });
        }
        let replaced = |symbol: Symbol| match symbol {
            Symbol::Terminal(terminal) => optional[terminal.index()].unwrap_or(symbol),
            Symbol::Nonterminal(_) => symbol,
        };
        for rule in &mut rules[..grammar.rules.len()] {
            rule.rhs.iter_mut().for_each(|symbol| *symbol = replaced(*symbol));
        }
        let automata = grammar.automata.iter().map(|rule| AutomatonRule {
            symbols: rule.symbols.iter().map(|&symbol| replaced(symbol)).collect(),
            ..rule.clone()
        });
        Self::with_automata((grammar.terminals.len(), n_nonterminals), rules, automata, grammar.start)
            .trim(empty)
    }

    /// A grammar as it is, with rules and automata; of so many terminals and nonterminals.
    ///
    /// # Panics
    /// If a symbol is out of range.
    pub fn with_automata(
        (n_terminals, n_nonterminals): (usize, usize),
        rules: Vec<Rule>,
        automata: impl IntoIterator<Item = AutomatonRule>,
        start: NonterminalId,
    ) -> Self {
        let mut cfg = Self { n_terminals, n_nonterminals, rules, start, automata: Vec::new() };
        cfg.add_automata(automata);
        cfg
    }

    /// Leaves out rules that take part in no derivation of a sentence, and repeated ones.
    ///
    /// A rule that names a terminal of `empty` derives nothing.
    pub fn trim(mut self, empty: &BitSet) -> Result<Self, ReduceError> {
        let productive = self.productive(empty);
        if !productive.contains(self.start.index()) {
            return Err(ReduceError::EmptyLanguage);
        }
        let derives = |symbol: &Symbol| match *symbol {
            Symbol::Terminal(t) => !empty.contains(t.index()),
            Symbol::Nonterminal(n) => productive.contains(n.index()),
        };
        self.rules.retain(|rule| rule.rhs.iter().all(derives));
        let reachable = self.reachable();
        self.rules.retain(|rule| reachable.contains(rule.lhs.index()));
        self.automata.retain(|automaton| reachable.contains(automaton.lhs.index()));
        self.check_automata(&productive, empty)?;
        let mut seen = FxHashSet::default();
        let is_new: Vec<bool> = self.rules.iter().map(|rule| seen.insert(rule)).collect();
        let mut is_new = is_new.into_iter();
        self.rules.retain(|_| is_new.next() == Some(true));
        // It is kept as long as what is made of it.
        self.rules.shrink_to_fit();
        self.automata.shrink_to_fit();
        Ok(self)
    }

    /// The nonterminals that derive at least one terminal sequence, given terminals that match nothing.
    pub fn productive(&self, empty: &BitSet) -> BitSet {
        self.closure(|symbol, known| match symbol {
            Symbol::Terminal(t) => !empty.contains(t.index()),
            Symbol::Nonterminal(n) => known.contains(n.index()),
        })
    }

    /// The nonterminals that derive the empty sequence.
    pub fn nullable(&self) -> BitSet {
        self.closure(|symbol, known| match symbol {
            Symbol::Terminal(_) => false,
            Symbol::Nonterminal(n) => known.contains(n.index()),
        })
    }

    /// The least set of nonterminals that contains the left side of each rule whose right side `holds`
    /// throughout.
    ///
    /// Cost: each rule is looked at once per symbol of its right side that joins the set.
    pub fn closure(&self, holds: impl Fn(Symbol, &BitSet) -> bool) -> BitSet {
        let mut known = BitSet::new(self.n_nonterminals);
        let mut waiting = vec![Vec::new(); self.n_nonterminals];
        let mut agenda: Vec<usize> = (0..self.rules.len()).collect();
        while let Some(at) = agenda.pop() {
            let rule = &self.rules[at];
            if known.contains(rule.lhs.index()) {
                continue;
            }
            match rule.rhs.iter().find(|&&symbol| !holds(symbol, &known)) {
                None => {
                    known.insert(rule.lhs.index());
                    agenda.append(&mut waiting[rule.lhs.index()]);
                }
                Some(Symbol::Nonterminal(n)) => waiting[n.index()].push(at),
                Some(Symbol::Terminal(_)) => {}
            }
        }
        known
    }

    /// Nonterminals that derive some sequence of these terminals, each of those without a doubt; of those
    /// that automata give only ones all of whose symbols derive one.
    pub fn surely_derive(&self, terminals: &BitSet) -> BitSet {
        let holds = |symbol, known: &BitSet| match symbol {
            Symbol::Terminal(t) => terminals.contains(TerminalId::index(t)),
            Symbol::Nonterminal(n) => known.contains(NonterminalId::index(n)),
        };
        if self.automata.is_empty() {
            return self.closure(holds);
        }
        let mut strict = self.without_automata();
        for Automaton { lhs, automaton, symbols, .. } in &self.automata {
            strict.rules.push(Rule { lhs: *lhs, rhs: symbols.to_vec() });
            if automaton.accepts(automaton.start()) {
                strict.rules.push(Rule { lhs: *lhs, rhs: Vec::new() });
            }
        }
        strict.closure(holds)
    }

    /// The fewest terminals that each nonterminal derives; `u32::MAX` for one that derives nothing.
    /// Saturates. Of those with an automaton a lower bound, which is zero only for nullable ones.
    ///
    /// Knuth's generalization (1977) of Dijkstra's algorithm: nonterminals are settled in ascending order of
    /// their minimum.
    pub fn minimum_lengths(&self) -> Vec<u32> {
        use std::cmp::Reverse;
        let mut occurs = vec![Vec::new(); self.n_nonterminals];
        let mut open: Vec<(usize, u32)> = Vec::with_capacity(self.rules.len());
        let mut queue = std::collections::BinaryHeap::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let nonterminals = rule.rhs.iter().filter_map(|&symbol| match symbol {
                Symbol::Nonterminal(n) => Some(n),
                Symbol::Terminal(_) => None,
            });
            let mut n_open = 0;
            for n in nonterminals {
                occurs[n.index()].push(at);
                n_open += 1;
            }
            let length = (rule.rhs.len() - n_open) as u32;
            open.push((n_open, length));
            if n_open == 0 {
                queue.push(Reverse((length, rule.lhs)));
            }
        }
        let mut minimum = vec![u32::MAX; self.n_nonterminals];
        while let Some(Reverse((length, lhs))) = queue.pop() {
            if minimum[lhs.index()] != u32::MAX {
                continue;
            }
            minimum[lhs.index()] = length;
            for &rule in &occurs[lhs.index()] {
                let (n_open, sum) = &mut open[rule];
                *n_open -= 1;
                *sum = sum.saturating_add(length).min(u32::MAX - 1);
                if *n_open == 0 {
                    queue.push(Reverse((*sum, self.rules[rule].lhs)));
                }
            }
        }
        minimum
    }

    /// The nonterminals that some derivation from the start symbol contains.
    pub fn reachable(&self) -> BitSet {
        let by_lhs = self.rules_by_lhs();
        let mut seen = BitSet::from_members(self.n_nonterminals, [self.start.index()]);
        let mut agenda = vec![self.start];
        while let Some(lhs) = agenda.pop() {
            for &rule in &by_lhs[lhs.index()] {
                for &symbol in &self.rules[rule].rhs {
                    if let Symbol::Nonterminal(n) = symbol
                        && seen.insert(n.index())
                    {
                        agenda.push(n);
                    }
                }
            }
        }
        seen
    }

    /// The positions of each nonterminal's rules in `rules`.
    pub fn rules_by_lhs(&self) -> Vec<Vec<usize>> {
        let mut by_lhs = vec![Vec::new(); self.n_nonterminals];
        for (at, rule) in self.rules.iter().enumerate() {
            by_lhs[rule.lhs.index()].push(at);
        }
        by_lhs
    }

    /// The terminals that some rule names.
    pub fn used_terminals(&self) -> BitSet {
        let symbols = self.rules.iter().flat_map(|rule| &rule.rhs);
        BitSet::from_members(
            self.n_terminals,
            symbols.filter_map(|symbol| match symbol {
                Symbol::Terminal(t) => Some(t.index()),
                Symbol::Nonterminal(_) => None,
            }),
        )
    }
}
