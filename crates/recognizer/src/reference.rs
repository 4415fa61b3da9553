//! The reference recognizer: Earley's algorithm (1970) as the definition has it.
//!
//! A state is a set of items `(rule, dot, origin)`: the part of the rule before the dot derives what was read
//! since the state `origin`. States are interned by their items, and origins are states, not positions, so
//! equal situations are equal ids. Nullable nonterminals are stepped over when they are predicted (Aycock and
//! Horspool, 2002), so no item is ever completed by the state that it is in.
//!
//! Short, slow, never optimized. Cost of a step: items of the new state × items of their origins.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{NonterminalId, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Begun, Edge, Left, Mark, Recognizer, RecognizerError, RecognizerLimits, Relation, StateId, Visit,
};

/// The origin of an item that was predicted in the state that it is in.
const HERE: StateId = StateId(u32::MAX);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Item {
    rule: u32,
    dot: u32,
    origin: StateId,
}

#[derive(Clone, Debug)]
struct State {
    items: Box<[Item]>,
    viable: BitSet,
    is_sentence: bool,
}

/// The engine; see the module.
#[derive(Clone, Debug)]
pub struct Reference {
    cfg: Arc<Cfg>,
    by_lhs: Vec<Vec<usize>>,
    nullable: BitSet,
    /// The fewest terminals that each nonterminal derives.
    minimum: Vec<u32>,
    states: Vec<State>,
    ids: FxHashMap<Box<[Item]>, StateId>,
    n_items: usize,
    limits: RecognizerLimits,
}

impl Reference {
    /// An engine for a reduced grammar.
    pub fn new(cfg: impl Into<Arc<Cfg>>, limits: RecognizerLimits) -> Result<Self, RecognizerError> {
        let cfg = cfg.into();
        if !cfg.automata.is_empty() {
            return Err(RecognizerError::Automata { engine: "reference" });
        }
        let mut this = Self {
            by_lhs: cfg.rules_by_lhs(),
            nullable: cfg.nullable(),
            minimum: cfg.minimum_lengths(),
            cfg,
            states: Vec::new(),
            ids: FxHashMap::default(),
            n_items: 0,
            limits,
        };
        let start = this.by_lhs[this.cfg.start.index()].iter().map(|&rule| Item {
            rule: rule as u32,
            dot: 0,
            origin: HERE,
        });
        let items = this.closure(start.collect());
        this.intern(items)?;
        Ok(this)
    }

    fn next(&self, item: Item) -> Option<Symbol> {
        self.cfg.rules[item.rule as usize].rhs.get(item.dot as usize).copied()
    }

    fn lhs(&self, item: Item) -> NonterminalId {
        self.cfg.rules[item.rule as usize].lhs
    }

    /// The items of `state` before `symbol`, stepped over it.
    fn stepped(&self, state: StateId, symbol: Symbol) -> impl Iterator<Item = Item> {
        let items = self.states[state.index()].items.iter().copied();
        items.filter(move |&item| self.next(item) == Some(symbol)).map(move |item| resolve(item, state, 1))
    }

    fn visit(&self, item: Item, visit: &mut Visit<'_>) {
        let rest = &self.cfg.rules[item.rule as usize].rhs[item.dot as usize..];
        visit(Left::Symbols(rest), Begun { origin: item.origin, symbol: self.lhs(item).0 });
    }

    /// All items that follow from the given ones by prediction and completion.
    fn closure(&self, kernel: Vec<Item>) -> BTreeSet<Item> {
        let mut items = BTreeSet::new();
        let mut agenda = kernel;
        while let Some(item) = agenda.pop() {
            if !items.insert(item) {
                continue;
            }
            match self.next(item) {
                Some(Symbol::Terminal(_)) => {}
                Some(Symbol::Nonterminal(n)) => {
                    agenda.extend(self.by_lhs[n.index()].iter().map(|&rule| Item {
                        rule: rule as u32,
                        dot: 0,
                        origin: HERE,
                    }));
                    if self.nullable.contains(n.index()) {
                        agenda.push(Item { dot: item.dot + 1, ..item });
                    }
                }
                None if item.origin == HERE => {}
                None => agenda.extend(self.stepped(item.origin, Symbol::Nonterminal(self.lhs(item)))),
            }
        }
        items
    }

    fn intern(&mut self, items: BTreeSet<Item>) -> Result<StateId, RecognizerError> {
        let items: Box<[Item]> = items.into_iter().collect();
        if let Some(&id) = self.ids.get(&items) {
            return Ok(id);
        }
        if self.n_items + items.len() > self.limits.items {
            return Err(RecognizerError::TooManyItems { limit: self.limits.items });
        }
        let id = StateId::new(self.states.len());
        let next = items.iter().filter_map(|&item| self.next(item));
        let terminals =
            next.filter_map(|symbol| if let Symbol::Terminal(t) = symbol { Some(t.index()) } else { None });
        let viable = BitSet::from_members(self.cfg.n_terminals, terminals);
        // A start rule from the first state to here; in the first state itself, origins are still written
        // `HERE`.
        let whole = |origin| origin == StateId(0) || id == StateId(0) && origin == HERE;
        let is_sentence = items
            .iter()
            .any(|&item| self.next(item).is_none() && self.lhs(item) == self.cfg.start && whole(item.origin));
        self.n_items += items.len();
        self.ids.insert(items.clone(), id);
        self.states.push(State { items, viable, is_sentence });
        Ok(id)
    }
}

/// `item`, found in `state`, with the dot moved on, as an item of another state.
fn resolve(item: Item, state: StateId, steps: u32) -> Item {
    Item { dot: item.dot + steps, origin: if item.origin == HERE { state } else { item.origin }, ..item }
}

impl Recognizer for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn cfg(&self) -> &Cfg {
        &self.cfg
    }

    fn start(&self) -> StateId {
        StateId(0)
    }

    fn extend(&mut self, edges: &[Edge]) -> Result<Option<StateId>, RecognizerError> {
        let mut kernel = Vec::new();
        for &Edge { from, terminal } in edges {
            match terminal {
                Some(terminal) => kernel.extend(self.stepped(from, Symbol::Terminal(terminal))),
                None => {
                    kernel.extend(self.states[from.index()].items.iter().map(|&item| resolve(item, from, 0)))
                }
            }
        }
        if kernel.is_empty() {
            return Ok(None);
        }
        let items = self.closure(kernel);
        self.intern(items).map(Some)
    }

    fn viable(&self, state: StateId) -> &BitSet {
        &self.states[state.index()].viable
    }

    fn is_sentence(&self, state: StateId) -> bool {
        self.states[state.index()].is_sentence
    }

    fn minimum_remaining(&self, state: StateId) -> u32 {
        // Shortest path (Dijkstra, 1959) from the items to the end of a start rule that began in the first
        // state: an item costs what is left of its rule, and then leads to the items that wait for its left
        // side where it began.
        let left = |item: Item| {
            let rest = &self.cfg.rules[item.rule as usize].rhs[item.dot as usize..];
            rest.iter().fold(0u32, |sum, &symbol| {
                sum.saturating_add(match symbol {
                    Symbol::Terminal(_) => 1,
                    Symbol::Nonterminal(n) => self.minimum[n.index()],
                })
            })
        };
        let mut queue = BinaryHeap::new();
        let mut seen = FxHashSet::default();
        for &item in &self.states[state.index()].items {
            let item = resolve(item, state, 0);
            queue.push(Reverse((left(item), item.origin, self.lhs(item))));
        }
        while let Some(Reverse((cost, origin, lhs))) = queue.pop() {
            if !seen.insert((origin, lhs)) {
                continue;
            }
            if origin == StateId(0) && lhs == self.cfg.start {
                return cost;
            }
            for item in self.stepped(origin, Symbol::Nonterminal(lhs)) {
                queue.push(Reverse((cost.saturating_add(left(item)), item.origin, self.lhs(item))));
            }
        }
        u32::MAX
    }

    fn can_finish(&self, state: StateId, from: usize, automaton: &Relation) -> bool {
        // The same walk, over where the automaton can be when an item is complete.
        let start =
            |items: &mut dyn Iterator<Item = Item>, from: &BitSet| -> Vec<(StateId, NonterminalId, BitSet)> {
                let rest = |item: Item| &self.cfg.rules[item.rule as usize].rhs[item.dot as usize..];
                items
                    .map(|item| {
                        (
                            item.origin,
                            self.lhs(item),
                            automaton.after_all(rest(item).iter().copied(), from.clone()),
                        )
                    })
                    .collect()
            };
        let from = BitSet::from_members(automaton.n_states(), [from]);
        let mut agenda =
            start(&mut self.states[state.index()].items.iter().map(|&item| resolve(item, state, 0)), &from);
        let mut reached: FxHashMap<(StateId, NonterminalId), BitSet> = FxHashMap::default();
        while let Some((origin, lhs, states)) = agenda.pop() {
            if states.is_empty() {
                continue;
            }
            if origin == StateId(0) && lhs == self.cfg.start {
                return true;
            }
            let known = reached.entry((origin, lhs)).or_insert_with(|| BitSet::new(automaton.n_states()));
            if known.union_with(&states) {
                agenda.extend(start(&mut self.stepped(origin, Symbol::Nonterminal(lhs)), &states));
            }
        }
        false
    }

    fn in_progress(&self, state: StateId, visit: &mut Visit<'_>) {
        self.states[state.index()].items.iter().for_each(|&item| self.visit(resolve(item, state, 0), visit));
    }

    fn after_begun(&self, begun: Begun, visit: &mut Visit<'_>) {
        let lhs = Symbol::Nonterminal(NonterminalId(begun.symbol));
        self.stepped(begun.origin, lhs).for_each(|item| self.visit(item, visit));
    }

    fn is_whole(&self, begun: Begun) -> bool {
        begun.origin == StateId(0) && begun.symbol == self.cfg.start.0
    }

    fn n_states(&self) -> usize {
        self.states.len()
    }

    fn mark(&self) -> Mark {
        Mark(self.states.len())
    }

    fn n_items(&self) -> usize {
        self.n_items
    }

    fn release(&mut self, mark: Mark) -> bool {
        for state in self.states.drain(mark.0..) {
            self.n_items -= state.items.len();
            self.ids.remove(&state.items);
        }
        true
    }

    fn dump(&self, state: StateId, name: &dyn Fn(Symbol) -> String) -> String {
        let mut text = String::new();
        for &item in &self.states[state.index()].items {
            let rule = &self.cfg.rules[item.rule as usize];
            let (before, after) = rule.rhs.split_at(item.dot as usize);
            let list = |symbols: &[Symbol]| {
                symbols.iter().map(|&symbol| format!(" {}", name(symbol))).collect::<String>()
            };
            let origin = if item.origin == HERE { state } else { item.origin };
            let lhs = name(Symbol::Nonterminal(rule.lhs));
            text += &format!("  {lhs} ->{} .{}   from {}\n", list(before), list(after), origin.0);
        }
        text
    }

    fn memory_usage(&self) -> usize {
        2 * self.n_items * size_of::<Item>()
            + self.states.len() * (size_of::<State>() + self.cfg.n_terminals / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygram_grammar::ir::{Rule, TerminalId};

    fn cfg(rules: &[(u32, &[i32])]) -> Cfg {
        let symbol = |&code: &i32| match code {
            0.. => Symbol::Nonterminal(NonterminalId(code as u32)),
            _ => Symbol::Terminal(TerminalId((-1 - code) as u32)),
        };
        let rules = rules
            .iter()
            .map(|&(lhs, rhs)| Rule { lhs: NonterminalId(lhs), rhs: rhs.iter().map(symbol).collect() });
        Cfg {
            n_terminals: 3,
            n_nonterminals: 3,
            rules: rules.collect(),
            start: NonterminalId(0),
            automata: Vec::new(),
        }
    }

    fn run(engine: &mut Reference, terminals: &[u32]) -> Option<StateId> {
        let step = |state, &terminal: &u32| {
            engine.extend(&[Edge { from: state, terminal: Some(TerminalId(terminal)) }]).unwrap()
        };
        terminals.iter().try_fold(StateId(0), step)
    }

    #[test]
    fn dyck_words_and_what_they_lack() {
        // s: s s | "(" s ")" | ε
        let mut engine =
            Reference::new(cfg(&[(0, &[0, 0]), (0, &[-1, 0, -2]), (0, &[])]), RecognizerLimits::default())
                .unwrap();
        assert!(engine.is_sentence(engine.start()));
        for (word, remaining) in
            [(&[0u32][..], 1), (&[0, 0, 1], 1), (&[0, 1], 0), (&[0, 0], 2), (&[0, 1, 0, 0, 1, 1], 0)]
        {
            let state = run(&mut engine, word).unwrap();
            assert_eq!(engine.minimum_remaining(state), remaining, "{word:?}");
            assert_eq!(engine.is_sentence(state), remaining == 0, "{word:?}");
        }
        assert_eq!(run(&mut engine, &[1]), None);
    }

    #[test]
    fn cycles_and_hidden_left_recursion_end() {
        // s: s | a; a: b s | "y"; b: ε | "x"
        let mut engine = Reference::new(
            cfg(&[(0, &[0]), (0, &[1]), (1, &[2, 0]), (1, &[-1]), (2, &[]), (2, &[-2])]),
            RecognizerLimits::default(),
        )
        .unwrap();
        let state = run(&mut engine, &[1, 1, 0]).unwrap();
        assert!(engine.is_sentence(state));
        assert!(engine.viable(state).is_empty());
    }

    #[test]
    fn release_gives_back_what_was_made_since() {
        let mut engine =
            Reference::new(cfg(&[(0, &[-1, 0]), (0, &[-2])]), RecognizerLimits::default()).unwrap();
        let mark = engine.mark();
        let before = engine.memory_usage();
        let first = run(&mut engine, &[0, 0, 1]);
        engine.release(mark);
        assert_eq!(engine.memory_usage(), before);
        assert_eq!(run(&mut engine, &[0, 0, 1]), first);
    }

    #[test]
    fn the_limit_on_items_is_an_error_and_leaves_the_state() {
        let limits = RecognizerLimits { items: 6 };
        let mut engine = Reference::new(cfg(&[(0, &[-1, 0]), (0, &[-2])]), limits).unwrap();
        let a = Edge { from: engine.start(), terminal: Some(TerminalId(0)) };
        let state = engine.extend(&[a]).unwrap().unwrap();
        let next = Edge { from: state, terminal: Some(TerminalId(0)) };
        assert_eq!(engine.extend(&[next]), Err(RecognizerError::TooManyItems { limit: 6 }));
        assert_eq!(engine.extend(&[a]), Ok(Some(state)));
    }
}
