//! The automaton of pieces, explored as a whole.

use std::collections::VecDeque;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::completions::Completions;
use anygram_grammar::ir::LexerMode;
use anygram_grammar::relation::Relation;
use rustc_hash::FxHashMap;

use super::debts::Debts;
use super::graph::{Classes, Graph, Sets};
use super::{ClassId, DebtId, Outcome, SET_BYTES_PER_LEXEME, suffices};
use crate::LexerLimits;
use crate::dfa::START;
use crate::lexicon::Lexicon;
use crate::union::State;

/// All lexemes that can arise if all terminals compete.
#[derive(Clone, Debug)]
pub struct Explored {
    debts: Debts,
    /// Lexemes in progress: the automaton state and the debt of earlier pieces. In the start state they are
    /// boundaries.
    pub(super) nodes: FxHashMap<(State, DebtId), u32>,
    pub(super) graph: Graph,
    pub(super) classes: Classes,
    /// Of each node the terminals that it can become next, after ignored pieces if need be; one more bit if
    /// ignored pieces alone can end the text.
    finish: Sets,
    common: BitSet,
    is_independent: bool,
    /// Where that is not so: of each node the terminals with which it can reach a safe class; one more bit if
    /// ignored pieces alone do. `None` if no class is safe.
    pub(super) enough: Option<Sets>,
    /// What the grammar does to the classes.
    pub(super) completions: Option<Completions>,
}

impl Explored {
    /// Explores the automaton of pieces. `specials` are the terminals that are tokens. `None` if there are
    /// more lexemes than [`LexerLimits::lexemes`], or the sets kept for them are too large.
    pub(super) fn new(
        lexicon: &Lexicon,
        cfg: &Cfg,
        specials: &BitSet,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Option<Self>, Stopped> {
        let n_terminals = lexicon.n_terminals();
        let mut this = Self {
            debts: Debts::new(),
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
        this.debts.shrink();
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
    pub(super) fn is_independent(&self) -> bool {
        self.is_independent
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
    pub(super) fn bytes_from_everywhere(&self, work: &mut Work) -> Result<Vec<Option<u32>>, Stopped> {
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
        self.debts.get(debt)
    }

    /// The number of a lexeme in progress, if it can arise.
    pub fn node(&self, state: State, debt: DebtId) -> Option<usize> {
        self.nodes.get(&(state, debt)).map(|&node| node as usize)
    }

    /// The number of a lexeme in progress with a debt of these states (sorted, without repetition), if it can
    /// arise.
    pub(super) fn find_node(&self, state: State, debt: &[State]) -> Option<usize> {
        self.node(state, self.debts.find(debt)?)
    }

    /// The terminals that a lexeme can become, after ignored pieces if need be; one more bit if ignored
    /// pieces alone can end the text.
    pub fn finish(&self, node: usize) -> &CompactSet {
        self.finish.get(node)
    }

    /// Terminals of which one that the parser accepts is enough for a lexeme to be completed; where the bit
    /// behind them is set, it can be in any case. `None` if no such terminals are known.
    pub(super) fn enough(&self, node: usize) -> Option<&CompactSet> {
        if self.is_independent { Some(self.finish(node)) } else { Some(self.enough.as_ref()?.get(node)) }
    }

    /// The classes of boundaries to which ignored pieces alone lead (if the lexeme is a boundary, its own is
    /// one).
    pub(super) fn reached_classes(&self, node: usize) -> impl Iterator<Item = ClassId> {
        let n_outcomes = self.classes.outcomes.len();
        let classes = self.classes.reach.get(node).iter().filter(move |&bit| bit >= n_outcomes);
        classes.map(move |bit| ClassId::new(bit - n_outcomes))
    }

    /// The outcomes of a lexeme, after ignored pieces if need be.
    pub(super) fn outcomes(&self, node: usize) -> impl Iterator<Item = Outcome> {
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
    pub(super) fn memory_usage(&self) -> usize {
        self.finish.memory_usage()
            + self.enough.as_ref().map_or(0, Sets::memory_usage)
            + self.completions.as_ref().map_or(0, Completions::memory_usage)
            + self.debts.memory_usage()
            + self.classes.memory_usage()
            + self.nodes.len() * 2 * size_of::<((State, DebtId), u32)>()
            + self.graph.memory_usage()
    }

    fn explore(
        &mut self,
        lexicon: &Lexicon,
        specials: &BitSet,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<bool, Stopped> {
        let union = &lexicon.union;
        let labels: Vec<_> =
            (0..union.n_states()).map(|state| lexicon.labels(state as State, |_| true)).collect();
        let (mut agenda, mut boundary_of) = (Vec::new(), FxHashMap::default());
        let (mut moves, mut same, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        self.boundary(DebtId(0), &mut boundary_of, &mut agenda);
        let mut at = 0;
        while at < agenda.len() {
            let (state, debt) = agenda[at];
            let node = at as u32;
            at += 1;
            if state == START {
                ends.extend(specials.iter().map(|terminal| (node, terminal as u32, 0)));
            }
            self.debts.moves(union, state, debt, &mut moves, work)?;
            for &(next, after) in &moves {
                let goes_on = !union.live(next).is_empty();
                if goes_on {
                    same.push((node, self.reach((next, after), &mut agenda)));
                }
                if union.accepts(next).is_empty() {
                    continue;
                }
                let owed = if goes_on { self.debts.join(union, after, next) } else { after };
                let boundary = self.boundary(owed, &mut boundary_of, &mut agenda);
                for &label in &labels[next as usize] {
                    if lexicon.ignored.contains(label) {
                        same.push((node, self.graph.starts[boundary as usize]));
                    }
                    if lexicon.used.contains(label) {
                        ends.push((node, label as u32, boundary));
                    }
                }
            }
            if agenda.len() > limits.lexemes {
                return Ok(false);
            }
            // Node by node, so that all are in order.
            sort_out(&mut same, &mut self.graph.same);
            sort_out(&mut ends, &mut self.graph.ends);
        }
        self.graph.n_nodes = agenda.len();
        Ok(true)
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

/// Moves all into another list, in order and each once.
fn sort_out<T: Ord>(from: &mut Vec<T>, into: &mut Vec<T>) {
    from.sort_unstable();
    from.dedup();
    into.append(from);
}
