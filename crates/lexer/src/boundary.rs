//! What may follow a piece in `longest` mode, and grammars that know it.
//!
//! # The automaton of pieces
//!
//! After a piece the text must not go on in a way that makes a longer match. That debt is a set of automaton states (see
//! [`crate::transducer`]); such a set, before the next piece begins, is a *boundary*. Boundaries and pieces form a finite
//! automaton: from a boundary, some text is lexed as a piece and leads to another boundary. [`Boundaries`] builds it, for the case that
//! all terminals compete, and knows of every lexeme in progress which terminals it can still become ([`Boundaries::finish`]).
//!
//! # When a viable parse can be completed
//!
//! Over terminals every viable prefix of a reduced grammar has a completion. Over *texts* the completion must also survive lexing: after
//! an identifier no other identifier can follow without a blank. Call *common* the terminals that can be spelled from every boundary:
//! a completion that uses only those can always be spelled.
//!
//! - If the common terminals suffice to derive the start symbol and every proper suffix of every rule (whatever a parser has begun, suffixes
//!   are what it needs), parsing and lexing are independent ([`Boundaries::is_independent`]). Nearly all grammars with ignored blanks are of
//!   this kind.
//! - Otherwise, in `longest`, the grammar is multiplied by the automaton of pieces ([`Boundaries::product`]), after which they are
//!   independent again: in the product, whose terminals say from which class of boundaries to which they lead, a viable prefix has a
//!   text. This is the construction of Bar-Hillel, Perles and Shamir (1961) for a grammar and a regular language. Boundaries from which
//!   the same pieces lead to the same classes are one class (the coarsest bisimulation), which leaves few.
//! - In `contextual` fewer terminals compete, so whatever can be spelled here can be spelled there: a *yes* from this module holds in
//!   that mode too (a piece that is longest among all is longest among some; its label is among the labels). A *no* does not: then the
//!   parser is asked whether common terminals suffice for what it has begun, and at last a completion is searched for.

use anygram_bits::{BitSet, index_type};
use anygram_grammar::cfg::{Cfg, EmptyLanguage};
use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};
use rustc_hash::FxHashMap;

use crate::dfa::START;
use crate::lexicon::Lexicon;
use crate::union::State;
use crate::{LexerError, LexerLimits};

index_type!(
    /// A debt: a set of states that must not accept any more; 0 is the empty one.
    DebtId
);
index_type!(
    /// A class of boundaries that a product grammar does not tell apart.
    ClassId
);

/// A lexeme in progress: the automaton state and the debt of earlier pieces. In the start state it is a boundary.
type Node = (State, DebtId);

/// More lexemes than this are not explored.
const MAX_NODES: usize = 1_000_000;

/// The automaton of pieces, all terminals competing.
///
/// Sets of outcomes have a bit for each terminal and one more, [`Boundaries::end`].
#[derive(Clone, Debug)]
pub struct Boundaries {
    debts: Vec<Box<[State]>>,
    debt_ids: FxHashMap<Box<[State]>, DebtId>,
    nodes: FxHashMap<Node, u32>,
    /// Of each node the terminals that it can become next, after ignored pieces if need be; `end` if ignored pieces alone can end the text.
    finish: Vec<BitSet>,
    /// The terminals that can be spelled from every boundary.
    common: BitSet,
    /// Of each debt that is a boundary, its class.
    class_of: FxHashMap<DebtId, ClassId>,
    /// `(from, to)`: `from` can become whatever `to` can: the same lexeme a byte later, or what follows an ignored piece.
    same: Vec<(u32, u32)>,
    /// `(from, terminal, debt)`: the piece in progress can end as this terminal.
    ends: Vec<(u32, u32, DebtId)>,
    n_terminals: usize,
    is_independent: bool,
}

/// An outcome of lexing: which terminal, and the class of the boundary after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Pair {
    /// The terminal.
    pub terminal: TerminalId,
    /// The class of boundaries that it leads to.
    pub to: ClassId,
}

/// A grammar whose terminals are [`Pair`]s with the class that they start from.
#[derive(Clone, Debug)]
pub struct Product {
    /// The reduced product grammar.
    pub cfg: Cfg,
    /// Of each of its terminals: the class it starts from, and its pair as an index into `pairs`.
    pub scans: Vec<(ClassId, u32)>,
    /// All pairs.
    pub pairs: Vec<Pair>,
    /// Of each lexeme, by [`Boundaries::node`], the pairs that it can become, and one more bit for the end of the text.
    pub finish: Vec<BitSet>,
}

impl Boundaries {
    /// Explores the automaton of pieces and finds out which boundaries are safe for `cfg`.
    ///
    /// `specials` are the terminals that are tokens. `None` if there are too many lexemes (a million).
    pub fn new(lexicon: &Lexicon, cfg: &Cfg, specials: &BitSet) -> Option<Self> {
        let n_terminals = lexicon.n_terminals();
        let mut this = Self {
            debts: vec![Box::new([])],
            debt_ids: FxHashMap::from_iter([(Box::from([]), DebtId(0))]),
            nodes: FxHashMap::default(),
            finish: Vec::new(),
            common: lexicon.used.clone(),
            class_of: FxHashMap::default(),
            same: Vec::new(),
            ends: Vec::new(),
            n_terminals,
            is_independent: false,
        };
        this.explore(lexicon, specials)?;
        let ends = this.ends.iter().map(|&(node, terminal, _)| (node, terminal as usize));
        this.finish = this.propagate(n_terminals + 1, ends.chain(this.starts().map(|(_, node)| (node, n_terminals))));
        for (_, node) in this.starts().collect::<Vec<_>>() {
            let finish = &this.finish[node as usize];
            let kept: Vec<usize> = this.common.iter().filter(|&terminal| finish.contains(terminal)).collect();
            this.common = BitSet::from_members(n_terminals, kept);
        }
        this.is_independent = suffices(cfg, &this.common);
        this.class_of = this.classify();
        Some(this)
    }

    /// Whether parsing and lexing are independent.
    pub fn is_independent(&self) -> bool {
        self.is_independent
    }

    /// The terminals that can be spelled from every boundary.
    pub fn common(&self) -> &BitSet {
        &self.common
    }

    /// The number of boundaries.
    pub fn n_boundaries(&self) -> usize {
        self.class_of.len()
    }

    /// The number of classes of boundaries.
    pub fn n_classes(&self) -> usize {
        self.class_of.values().map(|class| class.index() + 1).max().unwrap_or(0)
    }

    /// The bit of a set of outcomes that stands for the end.
    pub fn end(&self) -> usize {
        self.n_terminals
    }

    /// The states that a debt forbids to accept, in ascending order.
    pub fn debt(&self, debt: DebtId) -> &[State] {
        &self.debts[debt.index()]
    }

    /// The debt of exactly these states (sorted, without repetition), if it can arise.
    pub fn find_debt(&self, states: &[State]) -> Option<DebtId> {
        self.debt_ids.get(states).copied()
    }

    /// The class of a boundary.
    ///
    /// # Panics
    /// If no piece leaves this debt.
    pub fn class_of(&self, debt: DebtId) -> ClassId {
        self.class_of[&debt]
    }

    /// All boundaries with their classes, in the order of their numbers.
    pub fn classes(&self) -> impl Iterator<Item = (DebtId, ClassId)> {
        self.starts().map(|(debt, _)| (debt, self.class_of(debt)))
    }

    /// The number of a lexeme in progress, if it can arise.
    pub fn node(&self, state: State, debt: DebtId) -> Option<usize> {
        self.nodes.get(&(state, debt)).map(|&node| node as usize)
    }

    /// What a lexeme can become; `end` if ignored pieces alone can end the text.
    pub fn finish(&self, node: usize) -> &BitSet {
        &self.finish[node]
    }

    /// The debt after one more byte, given the debt's states; `None` if it was broken.
    pub fn step_debt(lexicon: &Lexicon, states: &[State], class: usize) -> Option<Vec<State>> {
        let union = &lexicon.union;
        let mut debt = Vec::with_capacity(states.len());
        for &state in states {
            let next = union.step(state, class);
            if !union.accepts(next).is_empty() {
                return None;
            }
            if !union.live(next).is_empty() {
                debt.push(union.blind(next));
            }
        }
        debt.sort_unstable();
        debt.dedup();
        Some(debt)
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.finish.iter().map(|set| set.memory_usage() + size_of::<BitSet>()).sum::<usize>()
            + self.nodes.len() * 2 * size_of::<(Node, u32)>()
            + size_of_val(&*self.same)
            + size_of_val(&*self.ends)
    }

    /// The boundaries and their nodes.
    fn starts(&self) -> impl Iterator<Item = (DebtId, u32)> {
        let boundary = |debt| Some((debt, *self.nodes.get(&(START, debt))?));
        (0..self.debts.len()).map(DebtId::new).filter_map(boundary)
    }

    fn explore(&mut self, lexicon: &Lexicon, specials: &BitSet) -> Option<()> {
        let union = &lexicon.union;
        let all = BitSet::full(lexicon.n_terminals());
        let labels: Vec<Vec<usize>> = (0..union.n_states()).map(|state| lexicon.labels(state as State, &all)).collect();
        let mut agenda: Vec<Node> = Vec::new();
        self.reach((START, DebtId(0)), &mut agenda);
        let mut at = 0;
        while at < agenda.len() {
            let (state, debt) = agenda[at];
            let node = at as u32;
            at += 1;
            if state == START {
                self.ends.extend(specials.iter().map(|terminal| (node, terminal as u32, DebtId(0))));
            }
            for class in 0..union.n_classes() {
                let Some(mut after) = Self::step_debt(lexicon, &self.debts[debt.index()], class) else { continue };
                let next = union.step(state, class);
                let goes_on = !union.live(next).is_empty();
                if goes_on {
                    let id = self.intern(&after);
                    let to = self.reach((next, id), &mut agenda);
                    self.same.push((node, to));
                }
                if !union.accepts(next).is_empty() {
                    let own = union.blind(next);
                    if goes_on && let Err(place) = after.binary_search(&own) {
                        after.insert(place, own);
                    }
                    let id = self.intern(&after);
                    let to = self.reach((START, id), &mut agenda);
                    for &label in &labels[next as usize] {
                        if lexicon.ignored.contains(label) {
                            self.same.push((node, to));
                        }
                        if lexicon.used.contains(label) {
                            self.ends.push((node, label as u32, id));
                        }
                    }
                }
            }
            if agenda.len() > MAX_NODES {
                return None;
            }
        }
        self.same.sort_unstable();
        self.same.dedup();
        self.ends.sort_unstable();
        self.ends.dedup();
        Some(())
    }

    fn intern(&mut self, debt: &[State]) -> DebtId {
        if let Some(&id) = self.debt_ids.get(debt) {
            return id;
        }
        let id = DebtId::new(self.debts.len());
        self.debts.push(debt.into());
        self.debt_ids.insert(debt.into(), id);
        id
    }

    fn reach(&mut self, node: Node, agenda: &mut Vec<Node>) -> u32 {
        *self.nodes.entry(node).or_insert_with(|| {
            agenda.push(node);
            agenda.len() as u32 - 1
        })
    }

    /// The least sets over `n_bits` that contain `base` and, along `same`, what comes after.
    fn propagate(&self, n_bits: usize, base: impl Iterator<Item = (u32, usize)>) -> Vec<BitSet> {
        let mut sets = vec![BitSet::new(n_bits); self.nodes.len()];
        for (node, bit) in base {
            sets[node as usize].insert(bit);
        }
        let mut before = vec![Vec::new(); self.nodes.len()];
        self.same.iter().for_each(|&(from, to)| before[to as usize].push(from));
        let mut agenda: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let mut queued = vec![true; self.nodes.len()];
        while let Some(node) = agenda.pop() {
            queued[node as usize] = false;
            let set = sets[node as usize].clone();
            for &from in &before[node as usize] {
                if sets[from as usize].union_with(&set) && !std::mem::replace(&mut queued[from as usize], true) {
                    agenda.push(from);
                }
            }
        }
        sets
    }

    /// The classes of boundaries: one if lexing is independent of parsing, else the coarsest that the pieces do not tell apart.
    fn classify(&self) -> FxHashMap<DebtId, ClassId> {
        let mut class_of: FxHashMap<DebtId, ClassId> = self.starts().map(|(debt, _)| (debt, ClassId(0))).collect();
        let mut n_classes = 1;
        while !self.is_independent {
            let (pairs, finish) = self.outcomes(&class_of);
            let mut ids: FxHashMap<(ClassId, &BitSet), ClassId> = FxHashMap::default();
            let mut refined = FxHashMap::default();
            for (debt, node) in self.starts() {
                let fresh = ClassId::new(ids.len());
                let class = *ids.entry((class_of[&debt], &finish[node as usize])).or_insert(fresh);
                refined.insert(debt, class);
            }
            debug_assert!(pairs.len() <= self.ends.len());
            let stable = ids.len() == n_classes;
            n_classes = ids.len();
            class_of = refined;
            if stable {
                break;
            }
        }
        class_of
    }

    /// All outcomes under a classification, and of each node those that it can come to (and a bit for the end).
    fn outcomes(&self, class_of: &FxHashMap<DebtId, ClassId>) -> (Vec<Pair>, Vec<BitSet>) {
        let pair = |terminal: u32, debt: DebtId| Pair { terminal: TerminalId(terminal), to: class_of[&debt] };
        let mut pairs: Vec<Pair> = self.ends.iter().map(|&(_, terminal, debt)| pair(terminal, debt)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let ids: FxHashMap<Pair, usize> = pairs.iter().copied().zip(0..).collect();
        let ends = self.ends.iter().map(|&(node, terminal, debt)| (node, ids[&pair(terminal, debt)]));
        let finish = self.propagate(pairs.len() + 1, ends.chain(self.starts().map(|(_, node)| (node, pairs.len()))));
        (pairs, finish)
    }

    /// The product of a grammar with the automaton of pieces, its boundaries taken by class.
    ///
    /// Bottom up over pairs of classes, so only what derives some text is built. Cost: rules × classes³.
    pub fn product(&self, cfg: &Cfg, limits: &LexerLimits) -> Result<Result<Product, EmptyLanguage>, LexerError> {
        let (pairs, finish) = self.outcomes(&self.class_of);
        let n_classes = self.n_classes();
        let mut scans: Vec<(ClassId, u32)> = Vec::new();
        for (debt, node) in self.starts() {
            let outcomes = finish[node as usize].iter().filter(|&pair| pair < pairs.len());
            scans.extend(outcomes.map(|pair| (self.class_of(debt), pair as u32)));
        }
        scans.sort_unstable();
        scans.dedup();
        let mut steps = vec![Vec::new(); self.n_terminals];
        for (scan, &(from, pair)) in scans.iter().enumerate() {
            let Pair { terminal, to } = pairs[pair as usize];
            steps[terminal.index()].push((from.index(), TerminalId::new(scan), to.index()));
        }
        let built = ProductBuilder::new(cfg, n_classes, &steps).build(self.class_of(DebtId(0)).index(), scans.len(), limits)?;
        let empty = BitSet::new(scans.len());
        Ok(built.trim(&empty).map(|cfg| Product { cfg, scans, pairs, finish }))
    }
}

/// Whether the start symbol and every proper suffix of every rule derive sequences of `terminals` alone.
fn suffices(cfg: &Cfg, terminals: &BitSet) -> bool {
    let derives = cfg.closure(|symbol, known| match symbol {
        Symbol::Terminal(t) => terminals.contains(t.index()),
        Symbol::Nonterminal(n) => known.contains(n.index()),
    });
    let good = |symbol: &Symbol| match *symbol {
        Symbol::Terminal(t) => terminals.contains(t.index()),
        Symbol::Nonterminal(n) => derives.contains(n.index()),
    };
    derives.contains(cfg.start.index()) && cfg.rules.iter().all(|rule| rule.rhs.iter().skip(1).all(good))
}

/// `(from, scan, to)` of each terminal.
type Steps = [Vec<(usize, TerminalId, usize)>];

/// The bottom-up construction of a product grammar.
struct ProductBuilder<'a> {
    cfg: &'a Cfg,
    n: usize,
    steps: &'a Steps,
    /// Of each nonterminal the pairs of classes, `from * n + to`, between which it derives something.
    relation: Vec<BitSet>,
    names: FxHashMap<Key, NonterminalId>,
    rules: Vec<Rule>,
}

impl<'a> ProductBuilder<'a> {
    fn new(cfg: &'a Cfg, n: usize, steps: &'a Steps) -> Self {
        let mut this = Self {
            cfg,
            n,
            steps,
            relation: vec![BitSet::new(n * n); cfg.n_nonterminals],
            names: FxHashMap::default(),
            rules: Vec::new(),
        };
        loop {
            let mut changed = false;
            for rule in &cfg.rules {
                for from in 0..n {
                    let mut reached = BitSet::from_members(n, [from]);
                    for &symbol in &rule.rhs {
                        let targets = reached.iter().flat_map(|class| this.targets(symbol, class));
                        reached = BitSet::from_members(n, targets.map(|(_, to)| to).collect::<Vec<_>>());
                    }
                    for to in reached.iter() {
                        changed |= this.relation[rule.lhs.index()].insert(from * n + to);
                    }
                }
            }
            if !changed {
                return this;
            }
        }
    }

    /// Where a symbol can lead from a class; a terminal with its scan.
    fn targets(&self, symbol: Symbol, from: usize) -> Vec<(Option<TerminalId>, usize)> {
        match symbol {
            Symbol::Terminal(t) => {
                let steps = self.steps[t.index()].iter().filter(|step| step.0 == from);
                steps.map(|&(_, scan, to)| (Some(scan), to)).collect()
            }
            Symbol::Nonterminal(n) => {
                (0..self.n).filter(|to| self.relation[n.index()].contains(from * self.n + to)).map(|to| (None, to)).collect()
            }
        }
    }

    fn build(mut self, start_class: usize, n_terminals: usize, limits: &LexerLimits) -> Result<Cfg, LexerError> {
        let start = NonterminalId(0);
        let mut agenda = Vec::new();
        for (_, to) in self.targets(Symbol::Nonterminal(self.cfg.start), start_class) {
            let name = self.name((usize::MAX, self.cfg.start.index(), start_class, to), &mut agenda);
            self.rules.push(Rule { lhs: start, rhs: vec![Symbol::Nonterminal(name)] });
        }
        let by_lhs = self.cfg.rules_by_lhs();
        while let Some(key @ (rule, at, from, to)) = agenda.pop() {
            let lhs = self.names[&key];
            if rule == usize::MAX {
                for &rule in &by_lhs[at] {
                    self.suffix(lhs, rule, 0, from, to, &mut agenda);
                }
            } else {
                self.suffix(lhs, rule, at, from, to, &mut agenda);
            }
            if self.rules.len() > limits.product_rules {
                return Err(LexerError::ProductTooLarge { limit: limits.product_rules });
            }
        }
        Ok(Cfg { n_terminals, n_nonterminals: self.names.len() + 1, rules: self.rules, start })
    }

    /// Rules for what is left of `rule` from `at` on, between two classes.
    fn suffix(&mut self, lhs: NonterminalId, rule: usize, at: usize, from: usize, to: usize, agenda: &mut Vec<Key>) {
        let rhs = &self.cfg.rules[rule].rhs;
        let (n_symbols, Some(&symbol)) = (rhs.len(), rhs.get(at)) else {
            if from == to {
                self.rules.push(Rule { lhs, rhs: vec![] });
            }
            return;
        };
        for (scan, middle) in self.targets(symbol, from) {
            let first = match (scan, symbol) {
                (Some(scan), _) => Symbol::Terminal(scan),
                (None, Symbol::Nonterminal(n)) => Symbol::Nonterminal(self.name((usize::MAX, n.index(), from, middle), agenda)),
                (None, Symbol::Terminal(_)) => continue,
            };
            if at + 1 < n_symbols {
                let rest = self.name((rule, at + 1, middle, to), agenda);
                self.rules.push(Rule { lhs, rhs: vec![first, Symbol::Nonterminal(rest)] });
            } else if middle == to {
                self.rules.push(Rule { lhs, rhs: vec![first] });
            }
        }
    }

    /// The nonterminal for `(rule, dot, from, to)`, or for a whole nonterminal with `usize::MAX` as the rule.
    fn name(&mut self, key: Key, agenda: &mut Vec<Key>) -> NonterminalId {
        let fresh = NonterminalId::new(self.names.len() + 1);
        *self.names.entry(key).or_insert_with(|| {
            agenda.push(key);
            fresh
        })
    }
}

type Key = (usize, usize, usize, usize);
