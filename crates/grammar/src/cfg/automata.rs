//! Nonterminals of a reduced grammar whose right-hand sides an automaton gives, and the rules that stand in
//! their place for all who cannot read automata.
//!
//! [`Cfg`] says what the rules are. What is left of a right-hand side in a state of its automaton derives
//! nothing that `any … any rest` does not derive, with as many `any` as the state needs symbols. Engines that
//! know automata speak of it so ([`Automaton::left`]).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anygram_bits::BitSet;

use super::{Cfg, ReduceError};
use crate::automata::RuleAutomaton;
use crate::ir::{AutomatonRule, Grammar, Nonterminal, NonterminalId, Rule, Symbol};

/// The most symbols that the superset demands of what an automaton gives.
pub const MOST_NEEDED: u32 = 64;

/// A nonterminal whose right-hand sides an automaton gives, all of them; see [`Cfg::automata`].
#[derive(Clone, Debug)]
pub struct Automaton {
    /// What is rewritten.
    pub lhs: NonterminalId,
    /// Derives what any symbol of the automaton derives.
    pub any: NonterminalId,
    /// What is needed after the first symbol, and more.
    pub begun: NonterminalId,
    /// Any number of symbols of the automaton.
    pub rest: NonterminalId,
    /// What it is rewritten to, over numbers of its own.
    pub automaton: Arc<dyn RuleAutomaton>,
    /// What each of these numbers stands for.
    pub symbols: Arc<[Symbol]>,
    /// The symbols with their numbers, sorted.
    numbers: Arc<[(Symbol, u32)]>,
}

impl PartialEq for Automaton {
    fn eq(&self, other: &Self) -> bool {
        self.made_up() == other.made_up()
            && self.symbols == other.symbols
            && Arc::ptr_eq(&self.automaton, &other.automaton)
    }
}

impl Eq for Automaton {}

impl Automaton {
    /// The nonterminals whose rules are those of the superset.
    fn made_up(&self) -> [NonterminalId; 4] {
        [self.lhs, self.any, self.begun, self.rest]
    }

    /// The automaton's numbers of a symbol, sorted.
    pub fn numbers_of(&self, symbol: Symbol) -> impl Iterator<Item = u32> {
        let from = self.numbers.partition_point(|number| number.0 < symbol);
        let numbers = self.numbers[from..].iter().take_while(move |number| number.0 == symbol);
        numbers.map(|&(_, number)| number)
    }

    /// The symbols that can come next in a state, with the automaton's numbers for them. Numbers without a
    /// symbol are left out.
    pub fn symbols_at(&self, state: u32) -> impl Iterator<Item = (u32, Symbol)> {
        let numbers: Vec<u32> = self.automaton.symbols(state).to_vec();
        numbers.into_iter().filter_map(|number| Some((number, *self.symbols.get(number as usize)?)))
    }

    /// How many symbols are demanded of what is left in a state.
    pub fn needed(&self, state: u32) -> u32 {
        self.automaton.minimum(state).min(MOST_NEEDED)
    }

    /// A sequence that derives at least what is left in a state: so many [`any`](Self::any), and
    /// [`rest`](Self::rest).
    pub fn left(&self, needed: u32) -> impl Iterator<Item = Symbol> + use<> {
        let any = std::iter::repeat_n(Symbol::Nonterminal(self.any), needed.min(MOST_NEEDED) as usize);
        any.chain([Symbol::Nonterminal(self.rest)])
    }

    /// The rules of the superset.
    fn rules(&self) -> Vec<Rule> {
        let Self { lhs, any, begun, rest, .. } = *self;
        let start = self.automaton.start();
        let of = Symbol::Nonterminal;
        if self.automaton.minimum(start) == u32::MAX {
            return Vec::new();
        }
        let first = self.symbols_at(start).map(|(_, symbol)| Rule { lhs, rhs: vec![symbol, of(begun)] });
        let mut rules: Vec<Rule> = first.collect();
        if self.automaton.accepts(start) {
            rules.push(Rule { lhs, rhs: Vec::new() });
        }
        let after_first = self.needed(start).saturating_sub(1);
        rules.push(Rule { lhs: begun, rhs: self.left(after_first).collect() });
        rules.extend(self.symbols.iter().map(|&symbol| Rule { lhs: any, rhs: vec![symbol] }));
        rules.push(Rule { lhs: rest, rhs: vec![of(any), of(rest)] });
        rules.push(Rule { lhs: rest, rhs: Vec::new() });
        rules
    }
}

impl Cfg {
    /// Adds right-hand sides that automata give. A nonterminal that has others too gets a rule to one of its
    /// own for each automaton.
    pub(super) fn add_automata(&mut self, automata: impl IntoIterator<Item = AutomatonRule>) {
        let automata: Vec<AutomatonRule> = automata.into_iter().collect();
        let mut sides = vec![0; self.n_nonterminals];
        let left_sides =
            self.rules.iter().map(|rule| rule.lhs).chain(automata.iter().map(|automaton| automaton.lhs));
        left_sides.for_each(|lhs| sides[lhs.index()] += 1);
        let mut fresh = self.n_nonterminals;
        let mut make = || {
            fresh += 1;
            NonterminalId::new(fresh - 1)
        };
        for AutomatonRule { lhs: of, automaton, symbols } in automata {
            let lhs = if sides[of.index()] == 1 { of } else { make() };
            if lhs != of {
                self.rules.push(Rule { lhs: of, rhs: vec![Symbol::Nonterminal(lhs)] });
            }
            let (any, begun, rest) = (make(), make(), make());
            let mut numbers: Vec<(Symbol, u32)> = symbols.iter().copied().zip(0..).collect();
            numbers.sort_unstable();
            let automaton = Automaton { lhs, any, begun, rest, automaton, symbols, numbers: numbers.into() };
            self.rules.extend(automaton.rules());
            self.automata.push(automaton);
        }
        self.n_nonterminals = fresh;
    }

    /// Checks what the symbols of automata may stand for.
    pub(super) fn check_automata(&self, productive: &BitSet, empty: &BitSet) -> Result<(), ReduceError> {
        if self.automata.is_empty() {
            return Ok(());
        }
        let nullable = self.nullable();
        for Automaton { lhs, symbols, automaton, .. } in &self.automata {
            if automaton.symbols(automaton.start()).is_empty() {
                continue;
            }
            for &symbol in &**symbols {
                let (derives, is_nullable) = match symbol {
                    Symbol::Terminal(t) => (!empty.contains(t.index()), false),
                    Symbol::Nonterminal(n) => (productive.contains(n.index()), nullable.contains(n.index())),
                };
                if !derives || is_nullable {
                    return Err(ReduceError::Symbol { lhs: *lhs, symbol, is_nullable });
                }
            }
        }
        Ok(())
    }

    /// The nonterminals whose rules stand for automata, and may derive more than those give.
    pub fn approximated(&self) -> BitSet {
        let made_up = self.automata.iter().flat_map(|automaton| automaton.made_up());
        BitSet::from_members(self.n_nonterminals, made_up.map(NonterminalId::index))
    }

    /// A grammar without automata that derives at least what this one does: its rules.
    pub fn superset(&self) -> Self {
        Self { automata: Vec::new(), ..self.clone() }
    }

    /// A grammar without automata that derives at most what this one does: the rules that stand for no
    /// automaton. It may derive nothing.
    pub fn without_automata(&self) -> Self {
        let approximated = self.approximated();
        let mut subset = self.superset();
        subset.rules.retain(|rule| !approximated.contains(rule.lhs.index()));
        subset
    }

    /// A grammar without automata that derives the same, with a nonterminal for each of their states. `None`
    /// if they have more than `limit` states in all.
    pub fn expanded(&self, limit: usize) -> Option<Self> {
        let mut cfg = self.without_automata();
        let mut left = limit;
        for automaton in &self.automata {
            let given = (&*automaton.automaton, &*automaton.symbols);
            let (rules, n_states) = right_linear(automaton.lhs, given, cfg.n_nonterminals, left)?;
            left -= n_states;
            cfg.n_nonterminals += n_states;
            cfg.rules.extend(rules);
        }
        cfg.trim(&BitSet::new(self.n_terminals)).ok()
    }
}

impl Grammar {
    /// The same grammar with rules in place of automata, and a nonterminal for each of their states. `None`
    /// if they have more than `limit` states in all.
    pub fn expanded(&self, limit: usize) -> Option<Self> {
        let (mut rules, mut nonterminals) = (self.rules.clone(), self.nonterminals.clone());
        let mut names: HashSet<String> = self.nonterminals.iter().map(|n| n.name.clone()).collect();
        let mut left = limit;
        for (at, AutomatonRule { lhs, automaton, symbols }) in self.automata.iter().enumerate() {
            let (more, n_states) = right_linear(*lhs, (&**automaton, symbols), nonterminals.len(), left)?;
            left -= n_states;
            rules.extend(more);
            let of = &self.nonterminals[lhs.index()];
            let name = |state| {
                let mut name = format!("__{}_{at}_{state}", of.name.trim_start_matches('_'));
                while !names.insert(name.clone()) {
                    name.push('_');
                }
                name
            };
            let span = || of.span.clone();
            nonterminals.extend((0..n_states).map(name).map(|name| Nonterminal { name, span: span() }));
        }
        let (pieces, delimited, memory) = (self.pieces.clone(), self.delimited, self.memory.clone());
        let (embedded, hints) = (self.embedded.clone(), self.hints.clone());
        let new = Self::new(self.terminals.clone(), nonterminals, rules, self.start, self.default_lexer);
        Some(Self { pieces, delimited, memory, embedded, hints, ..new })
    }
}

/// Rules that derive from `lhs` what an automaton gives, with a nonterminal from `from` on for each of its
/// states, and their number. `None` if there are more than `limit`.
fn right_linear(
    lhs: NonterminalId,
    (automaton, symbols): (&dyn RuleAutomaton, &[Symbol]),
    from: usize,
    limit: usize,
) -> Option<(Vec<Rule>, usize)> {
    let mut states = vec![automaton.start()];
    let mut known = HashMap::from([(automaton.start(), 0)]);
    let mut rules = vec![Rule { lhs, rhs: vec![Symbol::Nonterminal(NonterminalId::new(from))] }];
    let mut at = 0;
    while at < states.len() {
        if states.len() > limit {
            return None;
        }
        let (state, lhs) = (states[at], NonterminalId::new(from + at));
        for &number in automaton.symbols(state).iter() {
            let next = automaton.step(state, number).ok()?;
            let place = *known.entry(next).or_insert_with(|| {
                states.push(next);
                states.len() - 1
            });
            let rest = Symbol::Nonterminal(NonterminalId::new(from + place));
            rules.push(Rule { lhs, rhs: vec![*symbols.get(number as usize)?, rest] });
        }
        if automaton.accepts(state) {
            rules.push(Rule { lhs, rhs: Vec::new() });
        }
        at += 1;
    }
    Some((rules, states.len()))
}
