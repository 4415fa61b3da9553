//! The reduced context-free grammar that recognizers work on.

use anygram_bits::BitSet;

use crate::ir::{Grammar, NonterminalId, Rule, Symbol, TerminalId};

/// A context-free grammar over numbered terminals, without names.
///
/// Invariant of one made by [`Cfg::reduce`]: every rule takes part in the derivation of some sentence.
/// Recognizers rely on it: in a reduced grammar a prefix that can be parsed can be completed (over terminals;
/// what lexing adds is the lexer's affair).
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
}

/// The start symbol derives no text at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EmptyLanguage;

impl Cfg {
    /// The useful part of a grammar, in the numbering of the grammar.
    ///
    /// Terminals that match the empty string become optional (a fresh nonterminal each, numbered after the
    /// grammar's); terminals in `empty` (those whose pattern matches nothing but perhaps the empty string)
    /// are never scanned. Rules that are unreachable or derive nothing are left out. Cost: linear in the size
    /// of the grammar.
    pub fn reduce(grammar: &Grammar, empty: &BitSet) -> Result<Self, EmptyLanguage> {
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
        for rule in &mut rules[..grammar.rules.len()] {
            for symbol in &mut rule.rhs {
                if let Symbol::Terminal(terminal) = *symbol {
                    *symbol = optional[terminal.index()].unwrap_or(*symbol);
                }
            }
        }
        let cfg = Self { n_terminals: grammar.terminals.len(), n_nonterminals, rules, start: grammar.start };
        cfg.trim(empty)
    }

    /// Leaves out rules that take part in no derivation of a sentence, and repeated ones.
    ///
    /// A rule that names a terminal of `empty` derives nothing.
    pub fn trim(mut self, empty: &BitSet) -> Result<Self, EmptyLanguage> {
        let productive = self.productive(empty);
        if !productive.contains(self.start.index()) {
            return Err(EmptyLanguage);
        }
        let derives = |symbol: &Symbol| match *symbol {
            Symbol::Terminal(t) => !empty.contains(t.index()),
            Symbol::Nonterminal(n) => productive.contains(n.index()),
        };
        self.rules.retain(|rule| rule.rhs.iter().all(derives));
        let reachable = self.reachable();
        self.rules.retain(|rule| reachable.contains(rule.lhs.index()));
        let mut seen = std::collections::HashSet::new();
        self.rules.retain(|rule| seen.insert(rule.clone()));
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

    /// The fewest terminals that each nonterminal derives; `u32::MAX` for one that derives nothing.
    /// Saturates.
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
