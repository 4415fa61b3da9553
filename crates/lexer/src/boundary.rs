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

mod rivals;

use std::collections::VecDeque;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, CompactSet, index_type};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::completions::Completions;
use anygram_grammar::ir::{LexerMode, Symbol, TerminalId};
use anygram_grammar::relation::Relation;
use rustc_hash::FxHashMap;

use crate::LexerLimits;
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
#[derive(Clone, Debug)]
pub struct Boundaries {
    debts: Vec<Box<[State]>>,
    debt_ids: FxHashMap<Box<[State]>, DebtId>,
    /// Lexemes in progress: the automaton state and the debt of earlier pieces. In the start state they are
    /// boundaries.
    nodes: FxHashMap<(State, DebtId), u32>,
    graph: Graph,
    classes: Classes,
    /// Of each node the terminals that it can become next, after ignored pieces if need be; one more bit if
    /// ignored pieces alone can end the text.
    finish: Sets,
    common: BitSet,
    is_independent: bool,
    /// Where that is not so: of each node the terminals with which it can reach a safe class; one more bit if
    /// ignored pieces alone do. `None` if no class is safe.
    enough: Option<Sets>,
    /// What the grammar does to the classes.
    completions: Option<Completions>,
}

/// The moves of an automaton of pieces, byte by byte.
#[derive(Clone, Debug, Default)]
struct Graph {
    n_nodes: usize,
    /// Of each boundary its node.
    starts: Vec<u32>,
    /// `(from, to)`: `from` can become whatever `to` can: the same lexeme a byte later, or what follows an
    /// ignored piece.
    same: Vec<(u32, u32)>,
    /// `(from, terminal, boundary)`: the piece in progress can end as this terminal.
    ends: Vec<(u32, u32, u32)>,
}

/// The mark of a node whose component has no set yet.
const NO_SET: u32 = u32::MAX;

/// Boundaries up to what can follow them.
#[derive(Clone, Debug, Default)]
struct Classes {
    n_classes: usize,
    of_boundary: Vec<ClassId>,
    outcomes: Vec<Outcome>,
    /// Of each node: a bit for each outcome, and one for each class that ignored pieces alone lead to.
    /// Nothing where one class is known to suffice.
    reach: Sets,
}

/// A set for each node; equal ones are kept once.
#[derive(Clone, Debug, Default)]
struct Sets {
    of_node: Vec<u32>,
    pool: Vec<CompactSet>,
}

impl Sets {
    fn get(&self, node: usize) -> &CompactSet {
        &self.pool[self.of_node[node] as usize]
    }

    fn memory_usage(&self) -> usize {
        let pool = self.pool.iter().map(|set| set.memory_usage() + size_of::<CompactSet>());
        pool.sum::<usize>() + size_of_val(&*self.of_node)
    }
}

impl Boundaries {
    /// Explores the automaton of pieces. `specials` are the terminals that are tokens. `None` if there are
    /// more lexemes than [`LexerLimits::lexemes`], or the sets kept for them are too large.
    pub fn new(
        lexicon: &Lexicon,
        cfg: &Cfg,
        specials: &BitSet,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Option<Self>, Stopped> {
        let n_terminals = lexicon.n_terminals();
        let mut this = Self {
            debts: vec![Box::new([])],
            debt_ids: FxHashMap::from_iter([(Box::from([]), DebtId(0))]),
            nodes: FxHashMap::default(),
            graph: Graph::default(),
            classes: Classes::default(),
            finish: Sets::default(),
            common: lexicon.used.clone(),
            is_independent: false,
            enough: None,
            completions: None,
        };
        if !this.explore(lexicon, specials, limits, work)? {
            return Ok(None);
        }
        let ends = this.graph.ends.iter().map(|&(node, terminal, _)| (node, terminal as usize));
        let starts = this.graph.starts.iter().map(|&node| (node, n_terminals));
        let bytes = limits.lexemes.saturating_mul(SET_BYTES_PER_LEXEME);
        let Some(finish) = this.graph.propagate(n_terminals + 1, ends.chain(starts), bytes, work)? else {
            return Ok(None);
        };
        this.finish = finish;
        let mut ids: Vec<u32> =
            this.graph.starts.iter().map(|&node| this.finish.of_node[node as usize]).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let finish = &this.finish.pool[id as usize];
            this.common = BitSet::from_members(
                n_terminals,
                this.common.iter().filter(|&terminal| finish.contains(terminal)),
            );
        }
        this.is_independent = suffices(cfg, &this.common);
        let Some(classes) = this.graph.classify(this.is_independent, bytes, work)? else { return Ok(None) };
        this.classes = classes;
        if !this.is_independent {
            let relation = Relation::surely(cfg, this.n_classes(), this.steps(), work)?;
            let completions = Completions::new(cfg, relation, work)?;
            this.enough = this.graph.certain(lexicon, &this.classes, &completions, bytes, work)?;
            let is_all_open = completions.open().count() == this.n_classes();
            this.completions = Some(completions);
            if lexicon.mode == LexerMode::Contextual
                && !is_all_open
                && let Some(enough) = this.look_closer(lexicon, cfg, specials, limits, bytes, work)?
            {
                this.enough = Some(enough);
            }
        }
        Ok(Some(this))
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

    /// Of each terminal the number of bytes that suffice to spell it, after ignored pieces if need be, from
    /// every boundary; `None` if it cannot be spelled from all. (A token that the grammar names counts as one
    /// byte.) Cost: terminals × moves of the automaton.
    pub fn bytes_from_everywhere(&self, work: &mut Work) -> Result<Vec<Option<u32>>, Stopped> {
        let Graph { n_nodes, starts, same, ends } = &self.graph;
        // Who comes to a node by one byte, node by node.
        let mut first = vec![0u32; n_nodes + 1];
        same.iter().for_each(|&(_, to)| first[to as usize + 1] += 1);
        (0..*n_nodes).for_each(|at| first[at + 1] += first[at]);
        let (mut before, mut next) = (vec![0u32; same.len()], first.clone());
        for &(from, to) in same {
            before[next[to as usize] as usize] = from;
            next[to as usize] += 1;
        }
        let mut ends: Vec<(u32, u32)> = ends.iter().map(|&(node, terminal, _)| (terminal, node)).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut bytes = vec![None; self.common.len()];
        for group in ends.chunk_by(|a, b| a.0 == b.0) {
            let mut distances = vec![0u32; *n_nodes];
            group.iter().for_each(|&(_, node)| distances[node as usize] = 1);
            let mut agenda: VecDeque<u32> = group.iter().map(|&(_, node)| node).collect();
            work.spend(*n_nodes)?;
            while let Some(node) = agenda.pop_front() {
                let range = first[node as usize] as usize..first[node as usize + 1] as usize;
                work.spend(1 + range.len())?;
                for &from in &before[range] {
                    if distances[from as usize] == 0 {
                        distances[from as usize] = distances[node as usize] + 1;
                        agenda.push_back(from);
                    }
                }
            }
            let of_boundaries = || starts.iter().map(|&start| distances[start as usize]);
            bytes[group[0].0 as usize] =
                of_boundaries().max().filter(|_| of_boundaries().all(|distance| distance > 0));
        }
        Ok(bytes)
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

    /// The number of a lexeme in progress with a debt of these states, if it can arise.
    pub fn find_node(&self, state: State, debt: impl Iterator<Item = State>) -> Option<usize> {
        let mut debt: Vec<State> = debt.collect();
        debt.sort_unstable();
        debt.dedup();
        self.node(state, self.find_debt(&debt)?)
    }

    /// The terminals that a lexeme can become, after ignored pieces if need be; one more bit if ignored
    /// pieces alone can end the text.
    pub fn finish(&self, node: usize) -> &CompactSet {
        self.finish.get(node)
    }

    /// Terminals of which one that the parser accepts is enough for a lexeme to be completed; where the bit
    /// behind them is set, it can be in any case. `None` if no such terminals are known.
    pub fn enough(&self, node: usize) -> Option<&CompactSet> {
        if self.is_independent { Some(self.finish(node)) } else { Some(self.enough.as_ref()?.get(node)) }
    }

    /// What the grammar does to the classes, if that is not the same for all.
    pub fn completions(&self) -> Option<&Completions> {
        self.completions.as_ref()
    }

    /// The classes of boundaries to which ignored pieces alone lead (if the lexeme is a boundary, its own is
    /// one).
    pub fn reached_classes(&self, node: usize) -> impl Iterator<Item = ClassId> {
        let n_outcomes = self.classes.outcomes.len();
        let classes = self.classes.reach.get(node).iter().filter(move |&bit| bit >= n_outcomes);
        classes.map(move |bit| ClassId::new(bit - n_outcomes))
    }

    /// The outcomes of a lexeme, after ignored pieces if need be.
    pub fn outcomes(&self, node: usize) -> impl Iterator<Item = Outcome> {
        let n_outcomes = self.classes.outcomes.len();
        self.classes
            .reach
            .get(node)
            .iter()
            .filter(move |&bit| bit < n_outcomes)
            .map(|bit| self.classes.outcomes[bit])
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
        self.finish.memory_usage()
            + self.enough.as_ref().map_or(0, Sets::memory_usage)
            + self.completions.as_ref().map_or(0, Completions::memory_usage)
            + self.classes.reach.memory_usage()
            + self.nodes.len() * 2 * size_of::<((State, DebtId), u32)>()
            + size_of_val(&*self.graph.same)
            + size_of_val(&*self.graph.ends)
    }

    fn explore(
        &mut self,
        lexicon: &Lexicon,
        specials: &BitSet,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<bool, Stopped> {
        let union = &lexicon.union;
        let labels: Vec<Vec<usize>> =
            (0..union.n_states()).map(|state| lexicon.labels(state as State, |_| true)).collect();
        let mut agenda = Vec::new();
        let mut boundary_of = FxHashMap::default();
        self.boundary(DebtId(0), &mut boundary_of, &mut agenda);
        let mut at = 0;
        while at < agenda.len() {
            let (state, debt) = agenda[at];
            let node = at as u32;
            at += 1;
            work.spend(union.n_classes() * (1 + self.debts[debt.index()].len()))?;
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
            if agenda.len() > limits.lexemes {
                return Ok(false);
            }
        }
        self.graph.n_nodes = agenda.len();
        self.graph.tidy();
        Ok(true)
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

    fn boundary(
        &mut self,
        debt: DebtId,
        known: &mut FxHashMap<DebtId, u32>,
        agenda: &mut Vec<(State, DebtId)>,
    ) -> u32 {
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

/// Whether a text that can be a terminal up to a boundary of this class can be completed if the parser wants
/// that terminal.
fn is_certain(lexicon: &Lexicon, completions: &Completions, terminal: u32, class: usize) -> bool {
    // A piece that may be ignored is read whether or not the parser wants it.
    completions.open().contains(class)
        || completions.certain(TerminalId(terminal)).contains(class)
            && !lexicon.ignored.contains(terminal as usize)
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

impl Graph {
    fn tidy(&mut self) {
        self.same.sort_unstable();
        self.same.dedup();
        self.ends.sort_unstable();
        self.ends.dedup();
    }

    /// The least sets over `n_bits` that contain `base` and, along `same`, what comes after. `None` if they
    /// take more than `max_bytes`.
    ///
    /// Nodes that reach one another have the same set, so sets are made for the strongly connected
    /// components, those that others lead to first.
    fn propagate(
        &self,
        n_bits: usize,
        base: impl Iterator<Item = (u32, usize)>,
        max_bytes: usize,
        work: &mut Work,
    ) -> Result<Option<Sets>, Stopped> {
        let mut base: Vec<(u32, u32)> = base.map(|(node, bit)| (node, bit as u32)).collect();
        base.sort_unstable();
        let of = |pairs: &[(u32, u32)], node: u32| {
            let from = pairs.partition_point(|pair| pair.0 < node);
            from..from + pairs[from..].partition_point(|pair| pair.0 == node)
        };
        let (mut pool, mut ids) = (Vec::new(), FxHashMap::default());
        let mut bytes = 0;
        let mut of_node = vec![NO_SET; self.n_nodes];
        let (mut list, mut row) = (Vec::new(), BitSet::new(n_bits));
        for component in self.components(work)? {
            let mut parts: Vec<u32> = Vec::new();
            list.clear();
            for &node in &component {
                list.extend(base[of(&base, node)].iter().map(|&(_, bit)| bit));
                let next = self.same[of(&self.same, node)].iter().map(|&(_, to)| of_node[to as usize]);
                parts.extend(next.filter(|&set| set != NO_SET));
            }
            parts.sort_unstable();
            parts.dedup();
            let n_members =
                list.len() + parts.iter().map(|&part| CompactSet::count(&pool[part as usize])).sum::<usize>();
            work.spend(1 + n_members)?;
            let id = if let [only] = *parts
                && list.is_empty()
            {
                only
            } else {
                let set = if n_members < n_bits / 64 {
                    list.extend(
                        parts.iter().flat_map(|&part| pool[part as usize].iter()).map(|bit| bit as u32),
                    );
                    list.sort_unstable();
                    list.dedup();
                    CompactSet::from_sorted(n_bits, list.clone())
                } else {
                    row.clear();
                    row.extend(list.iter().map(|&bit| bit as usize));
                    for &part in &parts {
                        pool[part as usize].add_to(&mut row);
                    }
                    CompactSet::from_bits(&row)
                };
                let fresh = pool.len() as u32;
                match ids.get(&set) {
                    Some(&id) => id,
                    None => {
                        bytes += 2 * set.memory_usage();
                        pool.push(set.clone());
                        ids.insert(set, fresh);
                        fresh
                    }
                }
            };
            if bytes > max_bytes {
                return Ok(None);
            }
            component.iter().for_each(|&node| of_node[node as usize] = id);
        }
        Ok(Some(Sets { of_node, pool }))
    }

    /// Of each node the terminals that can be read to a boundary at which they are certain; one more bit if
    /// ignored pieces alone lead to one at which all are.
    fn certain(
        &self,
        lexicon: &Lexicon,
        classes: &Classes,
        completions: &Completions,
        bytes: usize,
        work: &mut Work,
    ) -> Result<Option<Sets>, Stopped> {
        let n_terminals = lexicon.n_terminals();
        let class = |boundary: u32| classes.of_boundary[boundary as usize].index();
        let is_open = |boundary: u32| completions.open().contains(class(boundary));
        let ends = self
            .ends
            .iter()
            .filter(|&&(_, terminal, boundary)| is_certain(lexicon, completions, terminal, class(boundary)));
        let ends = ends.map(|&(node, terminal, _)| (node, terminal as usize));
        let starts = (0u32..).zip(&self.starts).filter(|&(boundary, _)| is_open(boundary));
        let starts = starts.map(|(_, &node)| (node, n_terminals));
        self.propagate(n_terminals + 1, ends.chain(starts), bytes, work)
    }

    /// The strongly connected components along `same`, each after those that it leads to (Tarjan, 1972,
    /// without recursion).
    fn components(&self, work: &mut Work) -> Result<Vec<Vec<u32>>, Stopped> {
        const NEW: u32 = u32::MAX;
        let mut first = vec![0u32; self.n_nodes + 1];
        self.same.iter().for_each(|&(from, _)| first[from as usize + 1] += 1);
        for at in 0..self.n_nodes {
            first[at + 1] += first[at];
        }
        let mut components = Vec::new();
        let (mut number, mut low) = (vec![NEW; self.n_nodes], vec![0u32; self.n_nodes]);
        let (mut open, mut is_open) = (Vec::new(), vec![false; self.n_nodes]);
        let mut n_seen = 0;
        // Nodes on the way, each with the next edge to follow.
        let mut way: Vec<(u32, u32)> = Vec::new();
        for root in 0..self.n_nodes as u32 {
            if number[root as usize] == NEW {
                way.push((root, first[root as usize]));
            }
            while let Some((node, edge)) = way.last_mut() {
                work.spend(1)?;
                let (at, node) = (*node as usize, *node);
                if number[at] == NEW {
                    (number[at], low[at]) = (n_seen, n_seen);
                    n_seen += 1;
                    open.push(node);
                    is_open[at] = true;
                }
                if *edge < first[at + 1] {
                    let to = self.same[*edge as usize].1;
                    *edge += 1;
                    if number[to as usize] == NEW {
                        way.push((to, first[to as usize]));
                    } else if is_open[to as usize] {
                        low[at] = low[at].min(number[to as usize]);
                    }
                    continue;
                }
                way.pop();
                if let Some(&(before, _)) = way.last() {
                    low[before as usize] = low[before as usize].min(low[at]);
                }
                if low[at] == number[at] {
                    let from = open.iter().rposition(|&other| other == node).unwrap_or(0);
                    let component = open.split_off(from);
                    component.iter().for_each(|&member| is_open[member as usize] = false);
                    components.push(component);
                }
            }
        }
        Ok(components)
    }

    /// The coarsest classes of boundaries that pieces do not tell apart; just one if that is known to be good
    /// enough.
    fn classify(
        &self,
        one_suffices: bool,
        bytes: usize,
        work: &mut Work,
    ) -> Result<Option<Classes>, Stopped> {
        let of_boundary = vec![ClassId(0); self.starts.len()];
        if one_suffices {
            return Ok(Some(Classes { n_classes: 1, of_boundary, ..Classes::default() }));
        }
        let mut classes = self.outcomes(of_boundary, 1, bytes, work)?;
        while let Some(present) = &classes {
            // Equal sets have equal numbers.
            let mut ids: FxHashMap<(ClassId, u32), ClassId> = FxHashMap::default();
            let mut refined = Vec::with_capacity(self.starts.len());
            for (&node, &class) in self.starts.iter().zip(&present.of_boundary) {
                let fresh = ClassId::new(ids.len());
                refined.push(*ids.entry((class, present.reach.of_node[node as usize])).or_insert(fresh));
            }
            let n_classes = ids.len();
            if n_classes == present.n_classes {
                break;
            }
            classes = self.outcomes(refined, n_classes, bytes, work)?;
        }
        Ok(classes)
    }

    fn outcomes(
        &self,
        of_boundary: Vec<ClassId>,
        n_classes: usize,
        bytes: usize,
        work: &mut Work,
    ) -> Result<Option<Classes>, Stopped> {
        let outcome = |terminal: u32, boundary: u32| Outcome {
            terminal: TerminalId(terminal),
            to: of_boundary[boundary as usize],
        };
        let mut outcomes: Vec<Outcome> =
            self.ends.iter().map(|&(_, terminal, boundary)| outcome(terminal, boundary)).collect();
        outcomes.sort_unstable();
        outcomes.dedup();
        let ids: FxHashMap<Outcome, usize> = outcomes.iter().copied().zip(0..).collect();
        let ends =
            self.ends.iter().map(|&(node, terminal, boundary)| (node, ids[&outcome(terminal, boundary)]));
        let starts =
            self.starts.iter().zip(&of_boundary).map(|(&node, class)| (node, outcomes.len() + class.index()));
        let reach = self.propagate(outcomes.len() + n_classes, ends.chain(starts), bytes, work)?;
        Ok(reach.map(|reach| Classes { n_classes, of_boundary, outcomes, reach }))
    }
}

impl Classes {
    fn steps(&self, graph: &Graph) -> Vec<(usize, usize, usize)> {
        let mut steps = Vec::new();
        for (&node, &from) in graph.starts.iter().zip(&self.of_boundary) {
            let outcomes = self.reach.get(node as usize).iter().filter(|&bit| bit < self.outcomes.len());
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
    pub fn new(
        lexicon: &Lexicon,
        patterns: &Patterns,
        specials: &BitSet,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Option<Self>, Stopped> {
        let terminals: Vec<(u32, &Dfa)> = lexicon
            .competing()
            .iter()
            .filter_map(|terminal| Some((terminal as u32, &**patterns.dfa(terminal)?)))
            .collect();
        let by_id: FxHashMap<u32, &Dfa> = terminals.iter().copied().collect();
        let mut graph = Graph::default();
        let mut boundaries: FxHashMap<Vec<OwnState>, u32> = FxHashMap::default();
        // A lexeme in progress: which terminal it is to be and how far it is (none at a boundary), and the
        // debt.
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
            let begun =
                begun.unwrap_or_else(|| terminals.iter().map(|&(terminal, _)| (terminal, START)).collect());
            for &byte in lexicon.union.samples() {
                work.spend(1 + debt.len() + begun.len())?;
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
            if agenda.len() > limits.lexemes {
                return Ok(None);
            }
        }
        graph.n_nodes = agenda.len();
        graph.tidy();
        let bytes = limits.lexemes.saturating_mul(SET_BYTES_PER_LEXEME);
        let Some(classes) = graph.classify(false, bytes, work)? else { return Ok(None) };
        let mut after = vec![BitSet::new(classes.n_classes); lexicon.n_terminals()];
        for outcome in &classes.outcomes {
            after[outcome.terminal.index()].insert(outcome.to.index());
        }
        Ok(Some(Self { graph, classes, after }))
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
