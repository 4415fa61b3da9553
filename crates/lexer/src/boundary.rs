//! What may follow a piece: the automata of pieces.
//!
//! After a piece the text must not go on in a way that makes a longer match. That debt is a set of automaton states (see
//! [`crate::transducer`]); a debt before the next piece begins is a *boundary*. Boundaries and pieces form a finite automaton: from a
//! boundary, some text is lexed as a piece and leads to another boundary. A parser's state and a boundary can be completed iff some sequence
//! of terminals completes the one and is read by the automaton from the other: a question about a grammar and a regular language.
//!
//! Two automata are built, for different purposes.
//!
//! - [`Boundaries`]: all terminals compete. That is `longest`, exactly. In `contextual` fewer compete, so what can be spelled here can be
//!   spelled there (a piece that is longest among all is longest among some; its label is among the labels): a *yes* holds, a *no* may not.
//! - [`OwnDebts`]: a piece owes only that its own terminal has no longer match. In `contextual` at least that much is owed, for a label has
//!   competed: a *no* holds, a *yes* may not.
//!
//! Call *common* the terminals that can be spelled from every boundary. If they suffice to derive the start symbol and every proper suffix of
//! every rule (whatever a parser has begun, suffixes are what it needs), every viable parse can be completed from every boundary: parsing and
//! lexing are [independent](Boundaries::is_independent), and nothing need be asked. Nearly all grammars with ignored blanks are so.
//!
//! Boundaries from which the same pieces lead to the same classes are one *class* (the coarsest bisimulation), which leaves few.

use anygram_bits::{BitSet, index_type};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{Symbol, TerminalId};
use rustc_hash::FxHashMap;

use crate::dfa::{DEAD, Dfa, START};
use crate::lexicon::{Lexicon, Patterns};
use crate::union::State;

index_type!(
    /// A debt: a set of states that must not accept any more; 0 is the empty one.
    DebtId
);
index_type!(
    /// A class of boundaries from which the same texts can follow.
    ClassId
);

/// More lexemes than this are not explored.
const MAX_NODES: usize = 1_000_000;

/// An outcome of lexing: which terminal, and the class of the boundary after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Outcome {
    /// The terminal.
    pub terminal: TerminalId,
    /// The class of the boundary that it leads to.
    pub to: ClassId,
}

/// The automaton of pieces if all terminals compete.
#[derive(Clone, Debug)]
pub struct Boundaries {
    debts: Vec<Box<[State]>>,
    debt_ids: FxHashMap<Box<[State]>, DebtId>,
    /// Lexemes in progress: the automaton state and the debt of earlier pieces. In the start state they are boundaries.
    nodes: FxHashMap<(State, DebtId), u32>,
    graph: Graph,
    classes: Classes,
    /// Of each node the terminals that it can become next, after ignored pieces if need be; one more bit if ignored pieces alone can end
    /// the text.
    finish: Vec<BitSet>,
    common: BitSet,
    is_independent: bool,
    n_terminals: usize,
}

/// The moves of an automaton of pieces, byte by byte.
#[derive(Clone, Debug, Default)]
struct Graph {
    n_nodes: usize,
    /// Of each boundary its node.
    starts: Vec<u32>,
    /// `(from, to)`: `from` can become whatever `to` can: the same lexeme a byte later, or what follows an ignored piece.
    same: Vec<(u32, u32)>,
    /// `(from, terminal, boundary)`: the piece in progress can end as this terminal.
    ends: Vec<(u32, u32, u32)>,
}

/// Boundaries up to what can follow them.
#[derive(Clone, Debug, Default)]
struct Classes {
    n_classes: usize,
    of_boundary: Vec<ClassId>,
    outcomes: Vec<Outcome>,
    /// Of each node: a bit for each outcome, and one for each class that ignored pieces alone lead to.
    reach: Vec<BitSet>,
}

impl Boundaries {
    /// Explores the automaton of pieces. `specials` are the terminals that are tokens. `None` if there are too many lexemes (a million).
    pub fn new(lexicon: &Lexicon, cfg: &Cfg, specials: &BitSet) -> Option<Self> {
        let n_terminals = lexicon.n_terminals();
        let mut this = Self {
            debts: vec![Box::new([])],
            debt_ids: FxHashMap::from_iter([(Box::from([]), DebtId(0))]),
            nodes: FxHashMap::default(),
            graph: Graph::default(),
            classes: Classes::default(),
            finish: Vec::new(),
            common: lexicon.used.clone(),
            is_independent: false,
            n_terminals,
        };
        this.explore(lexicon, specials)?;
        let ends = this.graph.ends.iter().map(|&(node, terminal, _)| (node, terminal as usize));
        let starts = this.graph.starts.iter().map(|&node| (node, n_terminals));
        this.finish = this.graph.propagate(n_terminals + 1, ends.chain(starts));
        for &node in &this.graph.starts {
            let finish = &this.finish[node as usize];
            this.common =
                BitSet::from_members(n_terminals, this.common.iter().filter(|&terminal| finish.contains(terminal)));
        }
        this.is_independent = suffices(cfg, &this.common);
        this.classes = this.graph.classify(this.is_independent);
        Some(this)
    }

    /// Whether every viable parse can be completed from every boundary.
    pub fn is_independent(&self) -> bool {
        self.is_independent
    }

    /// The number of boundaries.
    pub fn n_boundaries(&self) -> usize {
        self.graph.starts.len()
    }

    /// The number of classes of boundaries.
    pub fn n_classes(&self) -> usize {
        self.classes.n_classes
    }

    /// The steps `(from class, terminal, to class)` of the automaton, ignored pieces left out.
    pub fn steps(&self) -> Vec<(usize, usize, usize)> {
        self.classes.steps(&self.graph)
    }

    /// The states that a debt forbids to accept, in ascending order.
    pub fn debt(&self, debt: DebtId) -> &[State] {
        &self.debts[debt.index()]
    }

    /// The debt of exactly these states (sorted, without repetition), if it can arise.
    pub fn find_debt(&self, states: &[State]) -> Option<DebtId> {
        self.debt_ids.get(states).copied()
    }

    /// The number of a lexeme in progress, if it can arise.
    pub fn node(&self, state: State, debt: DebtId) -> Option<usize> {
        self.nodes.get(&(state, debt)).map(|&node| node as usize)
    }

    /// The terminals that a lexeme can become, after ignored pieces if need be; one more bit if ignored pieces alone can end the text.
    pub fn finish(&self, node: usize) -> &BitSet {
        &self.finish[node]
    }

    /// The classes of boundaries to which ignored pieces alone lead (if the lexeme is a boundary, its own is one).
    pub fn reached_classes(&self, node: usize) -> impl Iterator<Item = ClassId> {
        let n_outcomes = self.classes.outcomes.len();
        let classes = self.classes.reach[node].iter().filter(move |&bit| bit >= n_outcomes);
        classes.map(move |bit| ClassId::new(bit - n_outcomes))
    }

    /// The outcomes of a lexeme, after ignored pieces if need be.
    pub fn outcomes(&self, node: usize) -> impl Iterator<Item = Outcome> {
        let n_outcomes = self.classes.outcomes.len();
        self.classes.reach[node].iter().filter(move |&bit| bit < n_outcomes).map(|bit| self.classes.outcomes[bit])
    }

    /// All boundaries, by their debts, with their classes.
    pub fn classes(&self) -> impl Iterator<Item = (DebtId, ClassId)> {
        let mut debts: Vec<(u32, DebtId)> = self
            .nodes
            .iter()
            .filter(|((state, _), _)| *state == START)
            .map(|(&(_, debt), &node)| (node, debt))
            .collect();
        debts.sort_unstable();
        // Nodes and boundaries are numbered in one order.
        debts.into_iter().zip(&self.classes.of_boundary).map(|((_, debt), &class)| (debt, class))
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        let sets = self.finish.iter().chain(&self.classes.reach);
        sets.map(|set| set.memory_usage() + size_of::<BitSet>()).sum::<usize>()
            + self.nodes.len() * 2 * size_of::<((State, DebtId), u32)>()
            + size_of_val(&*self.graph.same)
            + size_of_val(&*self.graph.ends)
    }

    fn explore(&mut self, lexicon: &Lexicon, specials: &BitSet) -> Option<()> {
        let union = &lexicon.union;
        let all = BitSet::full(self.n_terminals);
        let labels: Vec<Vec<usize>> = (0..union.n_states()).map(|state| lexicon.labels(state as State, &all)).collect();
        let mut agenda = Vec::new();
        let mut boundary_of = FxHashMap::default();
        self.boundary(DebtId(0), &mut boundary_of, &mut agenda);
        let mut at = 0;
        while at < agenda.len() {
            let (state, debt) = agenda[at];
            let node = at as u32;
            at += 1;
            if state == START {
                self.graph.ends.extend(specials.iter().map(|terminal| (node, terminal as u32, 0)));
            }
            for class in 0..union.n_classes() {
                let Some(mut after) = step_debt(lexicon, &self.debts[debt.index()], class) else { continue };
                let next = union.step(state, class);
                let goes_on = !union.live(next).is_empty();
                if goes_on {
                    let id = self.intern(&after);
                    let to = self.reach((next, id), &mut agenda);
                    self.graph.same.push((node, to));
                }
                if union.accepts(next).is_empty() {
                    continue;
                }
                let own = union.blind(next);
                if goes_on && let Err(place) = after.binary_search(&own) {
                    after.insert(place, own);
                }
                let id = self.intern(&after);
                let boundary = self.boundary(id, &mut boundary_of, &mut agenda);
                for &label in &labels[next as usize] {
                    if lexicon.ignored.contains(label) {
                        self.graph.same.push((node, self.graph.starts[boundary as usize]));
                    }
                    if lexicon.used.contains(label) {
                        self.graph.ends.push((node, label as u32, boundary));
                    }
                }
            }
            if agenda.len() > MAX_NODES {
                return None;
            }
        }
        self.graph.n_nodes = agenda.len();
        self.graph.tidy();
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

    fn reach(&mut self, node: (State, DebtId), agenda: &mut Vec<(State, DebtId)>) -> u32 {
        *self.nodes.entry(node).or_insert_with(|| {
            agenda.push(node);
            agenda.len() as u32 - 1
        })
    }

    fn boundary(&mut self, debt: DebtId, known: &mut FxHashMap<DebtId, u32>, agenda: &mut Vec<(State, DebtId)>) -> u32 {
        if let Some(&boundary) = known.get(&debt) {
            return boundary;
        }
        let node = self.reach((START, debt), agenda);
        self.graph.starts.push(node);
        let boundary = self.graph.starts.len() as u32 - 1;
        known.insert(debt, boundary);
        boundary
    }
}

/// The debt after one more byte; `None` if it was broken.
fn step_debt(lexicon: &Lexicon, states: &[State], class: usize) -> Option<Vec<State>> {
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

impl Graph {
    fn tidy(&mut self) {
        self.same.sort_unstable();
        self.same.dedup();
        self.ends.sort_unstable();
        self.ends.dedup();
    }

    /// The least sets over `n_bits` that contain `base` and, along `same`, what comes after.
    fn propagate(&self, n_bits: usize, base: impl Iterator<Item = (u32, usize)>) -> Vec<BitSet> {
        let mut sets = vec![BitSet::new(n_bits); self.n_nodes];
        for (node, bit) in base {
            sets[node as usize].insert(bit);
        }
        let mut before = vec![Vec::new(); self.n_nodes];
        self.same.iter().for_each(|&(from, to)| before[to as usize].push(from));
        let mut agenda: Vec<u32> = (0..self.n_nodes as u32).collect();
        let mut queued = vec![true; self.n_nodes];
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

    /// The coarsest classes of boundaries that pieces do not tell apart; just one if that is known to be good enough.
    fn classify(&self, one_suffices: bool) -> Classes {
        let mut classes = self.outcomes(vec![ClassId(0); self.starts.len()], 1);
        if one_suffices {
            return classes;
        }
        loop {
            let mut ids: FxHashMap<(ClassId, &BitSet), ClassId> = FxHashMap::default();
            let mut refined = Vec::with_capacity(self.starts.len());
            for (&node, &class) in self.starts.iter().zip(&classes.of_boundary) {
                let fresh = ClassId::new(ids.len());
                refined.push(*ids.entry((class, &classes.reach[node as usize])).or_insert(fresh));
            }
            let n_classes = ids.len();
            if n_classes == classes.n_classes {
                return classes;
            }
            classes = self.outcomes(refined, n_classes);
        }
    }

    fn outcomes(&self, of_boundary: Vec<ClassId>, n_classes: usize) -> Classes {
        let outcome = |terminal: u32, boundary: u32| Outcome {
            terminal: TerminalId(terminal),
            to: of_boundary[boundary as usize],
        };
        let mut outcomes: Vec<Outcome> =
            self.ends.iter().map(|&(_, terminal, boundary)| outcome(terminal, boundary)).collect();
        outcomes.sort_unstable();
        outcomes.dedup();
        let ids: FxHashMap<Outcome, usize> = outcomes.iter().copied().zip(0..).collect();
        let ends = self.ends.iter().map(|&(node, terminal, boundary)| (node, ids[&outcome(terminal, boundary)]));
        let starts = self.starts.iter().zip(&of_boundary).map(|(&node, class)| (node, outcomes.len() + class.index()));
        let reach = self.propagate(outcomes.len() + n_classes, ends.chain(starts));
        Classes { n_classes, of_boundary, outcomes, reach }
    }
}

impl Classes {
    fn steps(&self, graph: &Graph) -> Vec<(usize, usize, usize)> {
        let mut steps = Vec::new();
        for (&node, &from) in graph.starts.iter().zip(&self.of_boundary) {
            let outcomes = self.reach[node as usize].iter().filter(|&bit| bit < self.outcomes.len());
            steps.extend(outcomes.map(|bit| {
                let Outcome { terminal, to } = self.outcomes[bit];
                (from.index(), terminal.index(), to.index())
            }));
        }
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}

/// The automaton of pieces if a piece owes only that its own terminal has no longer match.
#[derive(Clone, Debug)]
pub struct OwnDebts {
    graph: Graph,
    classes: Classes,
    /// Of each terminal the classes of boundaries that it can leave, from whatever boundary.
    after: Vec<BitSet>,
}

/// A state of one terminal's automaton.
type OwnState = (u32, u32);

impl OwnDebts {
    /// Explores the automaton; `None` if there are too many lexemes.
    pub fn new(lexicon: &Lexicon, patterns: &Patterns, specials: &BitSet) -> Option<Self> {
        let terminals: Vec<(u32, &Dfa)> = lexicon
            .competing()
            .iter()
            .filter_map(|terminal| Some((terminal as u32, patterns.dfa(terminal)?)))
            .collect();
        let by_id: FxHashMap<u32, &Dfa> = terminals.iter().copied().collect();
        let mut graph = Graph::default();
        let mut boundaries: FxHashMap<Vec<OwnState>, u32> = FxHashMap::default();
        // A lexeme in progress: which terminal it is to be and how far it is (none at a boundary), and the debt.
        let mut nodes: FxHashMap<(Option<OwnState>, Vec<OwnState>), u32> = FxHashMap::default();
        let mut agenda = Vec::new();
        let mut reach = |node: (Option<OwnState>, Vec<OwnState>), agenda: &mut Vec<_>| {
            *nodes.entry(node).or_insert_with_key(|node| {
                agenda.push(node.clone());
                agenda.len() as u32 - 1
            })
        };
        graph.starts.push(reach((None, Vec::new()), &mut agenda));
        boundaries.insert(Vec::new(), 0);
        let mut at = 0;
        while at < agenda.len() {
            let (lexeme, debt) = agenda[at].clone();
            let node = at as u32;
            at += 1;
            if lexeme.is_none() {
                graph.ends.extend(specials.iter().map(|terminal| (node, terminal as u32, 0)));
            }
            let begun = lexeme.map(|lexeme| vec![lexeme]);
            let begun = begun.unwrap_or_else(|| terminals.iter().map(|&(terminal, _)| (terminal, START)).collect());
            for &byte in lexicon.union.samples() {
                let Some(after) = step_own(&by_id, &debt, byte) else { continue };
                for &(terminal, state) in &begun {
                    let dfa = by_id[&terminal];
                    let next = dfa.step(state, byte);
                    if next == DEAD {
                        continue;
                    }
                    let goes_on = dfa.can_go_on(next);
                    if goes_on {
                        let to = reach((Some((terminal, next)), after.clone()), &mut agenda);
                        graph.same.push((node, to));
                    }
                    if !dfa.accepting[next as usize] {
                        continue;
                    }
                    let mut owed = after.clone();
                    if goes_on && let Err(place) = owed.binary_search(&(terminal, next)) {
                        owed.insert(place, (terminal, next));
                    }
                    let fresh = graph.starts.len() as u32;
                    let boundary = *boundaries.entry(owed).or_insert_with_key(|owed| {
                        graph.starts.push(reach((None, owed.clone()), &mut agenda));
                        fresh
                    });
                    if lexicon.ignored.contains(terminal as usize) {
                        graph.same.push((node, graph.starts[boundary as usize]));
                    }
                    if lexicon.used.contains(terminal as usize) {
                        graph.ends.push((node, terminal, boundary));
                    }
                }
            }
            if agenda.len() > MAX_NODES / 4 {
                return None;
            }
        }
        graph.n_nodes = agenda.len();
        graph.tidy();
        let classes = graph.classify(false);
        let mut after = vec![BitSet::new(classes.n_classes); lexicon.n_terminals()];
        for outcome in &classes.outcomes {
            after[outcome.terminal.index()].insert(outcome.to.index());
        }
        Some(Self { graph, classes, after })
    }

    /// The number of classes of boundaries.
    pub fn n_classes(&self) -> usize {
        self.classes.n_classes
    }

    /// The class of the boundary that owes nothing; whatever can follow another boundary can follow this one.
    pub fn free_class(&self) -> ClassId {
        self.classes.of_boundary[0]
    }

    /// The classes of boundaries that a terminal can leave.
    pub fn after(&self, terminal: TerminalId) -> &BitSet {
        &self.after[terminal.index()]
    }

    /// The steps `(from class, terminal, to class)` of the automaton, ignored pieces left out.
    pub fn steps(&self) -> Vec<(usize, usize, usize)> {
        self.classes.steps(&self.graph)
    }
}

fn step_own(dfas: &FxHashMap<u32, &Dfa>, debt: &[OwnState], byte: u8) -> Option<Vec<OwnState>> {
    let mut after = Vec::with_capacity(debt.len());
    for &(terminal, state) in debt {
        let dfa = dfas[&terminal];
        let next = dfa.step(state, byte);
        if dfa.accepting[next as usize] {
            return None;
        }
        if dfa.can_go_on(next) {
            after.push((terminal, next));
        }
    }
    after.sort_unstable();
    after.dedup();
    Some(after)
}
