//! Moves of automata of pieces, and what can be reached along them.

use std::sync::Arc;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::completions::Completions;
use anygram_grammar::ir::TerminalId;
use rustc_hash::FxHashMap;

use super::{ClassId, Outcome};
use crate::lexicon::Lexicon;

/// The moves of an automaton of pieces, byte by byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub n_nodes: usize,
    /// Of each boundary its node.
    pub starts: Vec<u32>,
    /// `(from, to)`: `from` can become whatever `to` can: the same lexeme a byte later, or what follows an
    /// ignored piece.
    pub same: Vec<(u32, u32)>,
    /// `(from, terminal, boundary)`: the piece in progress can end as this terminal.
    pub ends: Vec<(u32, u32, u32)>,
}

/// The mark of a node whose component has no set yet.
const NO_SET: u32 = u32::MAX;

/// Boundaries up to what can follow them.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    pub n_classes: usize,
    pub of_boundary: Vec<ClassId>,
    pub outcomes: Vec<Outcome>,
    /// Of each node: a bit for each outcome, and one for each class that ignored pieces alone lead to.
    /// Nothing where one class is known to suffice.
    pub reach: Sets,
}

/// Sets, equal ones once. Those that are there stay, and can be read while others come.
#[derive(Debug)]
pub(super) struct Pool {
    pub sets: Arc<boxcar::Vec<CompactSet>>,
    ids: FxHashMap<CompactSet, u32>,
    bytes: usize,
    max_bytes: usize,
}

impl Pool {
    /// No sets; those to come should take at most so many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self { sets: Arc::default(), ids: FxHashMap::default(), bytes: 0, max_bytes }
    }

    fn intern(&mut self, set: CompactSet) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        self.bytes += 2 * set.memory_usage();
        let id = self.sets.push(set.clone()) as u32;
        self.ids.insert(set, id);
        id
    }
}

/// A set for each node; equal ones are kept once.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    pub of_node: Vec<u32>,
    pub pool: Arc<boxcar::Vec<CompactSet>>,
}

impl Sets {
    /// The set of a node.
    pub fn get(&self, node: usize) -> &CompactSet {
        &self.pool[self.of_node[node] as usize]
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        let pool = self.pool.iter().map(|(_, set)| set.memory_usage() + size_of::<CompactSet>());
        pool.sum::<usize>() + size_of_val(&*self.of_node)
    }
}

/// Whether a text that can be a terminal up to a boundary of this class can be completed if the parser wants
/// that terminal.
pub(super) fn is_certain(lexicon: &Lexicon, completions: &Completions, terminal: u32, class: usize) -> bool {
    // A piece that may be ignored is read whether or not the parser wants it.
    completions.open().contains(class)
        || completions.certain(TerminalId(terminal)).contains(class)
            && !lexicon.ignored.contains(terminal as usize)
}

impl Graph {
    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.same) + size_of_val(&*self.ends)
    }

    /// Brings the moves into order.
    pub fn tidy(&mut self) {
        // A stable sort finds what is in order already, and most is.
        self.same.sort();
        self.same.dedup();
        self.ends.sort();
        self.ends.dedup();
    }

    /// Of each node whether it leads, along `same`, to one of some nodes, or is one.
    pub fn leads_to(&self, mut agenda: Vec<u32>) -> Vec<bool> {
        let mut leads = vec![false; self.n_nodes];
        if agenda.is_empty() {
            return leads;
        }
        let mut before: Vec<(u32, u32)> = self.same.iter().map(|&(from, to)| (to, from)).collect();
        before.sort_unstable();
        while let Some(node) = agenda.pop() {
            if !std::mem::replace(&mut leads[node as usize], true) {
                let first = before.partition_point(|&(to, _)| to < node);
                let of_node = before[first..].iter().take_while(|&&(to, _)| to == node);
                agenda.extend(of_node.map(|&(_, from)| from));
            }
        }
        leads
    }

    /// The least sets over `n_bits` that contain `base` and, along `same`, what comes after. `None` if they
    /// take more than `max_bytes`.
    pub fn propagate(
        &self,
        n_bits: usize,
        base: impl Iterator<Item = (u32, usize)>,
        max_bytes: usize,
        work: &mut Work,
    ) -> Result<Option<Sets>, Stopped> {
        let mut pool = Pool::new(max_bytes);
        let of_node = self.propagate_among(n_bits, base, &[], &mut pool, work)?;
        Ok(of_node.map(|of_node| Sets { of_node, pool: pool.sets }))
    }

    /// The same, where `known` has nodes each with a set of `pool` that is a part of its own. The sets are
    /// those of `pool` that are returned.
    ///
    /// Nodes that reach one another have the same set, so sets are made for the strongly connected
    /// components, those that others lead to first.
    pub fn propagate_among(
        &self,
        n_bits: usize,
        base: impl Iterator<Item = (u32, usize)>,
        known: &[(u32, u32)],
        pool: &mut Pool,
        work: &mut Work,
    ) -> Result<Option<Vec<u32>>, Stopped> {
        let mut base: Vec<(u32, u32)> = base.map(|(node, bit)| (node, bit as u32)).collect();
        base.sort();
        let of = |pairs: &[(u32, u32)], node: u32| {
            let from = pairs.partition_point(|pair| pair.0 < node);
            from..from + pairs[from..].partition_point(|pair| pair.0 == node)
        };
        let mut of_node = vec![NO_SET; self.n_nodes];
        let (mut list, mut row, mut parts) = (Vec::new(), BitSet::new(n_bits), Vec::new());
        for component in self.components(work)? {
            list.clear();
            parts.clear();
            for &node in &component {
                list.extend(base[of(&base, node)].iter().map(|&(_, bit)| bit));
                parts.extend(known[of(known, node)].iter().map(|&(_, set)| set));
                let next = self.same[of(&self.same, node)].iter().map(|&(_, to)| of_node[to as usize]);
                parts.extend(next.filter(|&set| set != NO_SET));
            }
            parts.sort_unstable();
            parts.dedup();
            let sets = &pool.sets;
            let n_members = list.len() + parts.iter().map(|&part| sets[part as usize].count()).sum::<usize>();
            work.spend(1 + n_members)?;
            let id = if let [only] = *parts
                && list.is_empty()
            {
                only
            } else if n_members < n_bits / 64 {
                list.extend(parts.iter().flat_map(|&part| sets[part as usize].iter()).map(|bit| bit as u32));
                list.sort_unstable();
                list.dedup();
                pool.intern(CompactSet::from_sorted(n_bits, list.clone()))
            } else {
                row.clear();
                row.extend(list.iter().map(|&bit| bit as usize));
                for &part in &parts {
                    sets[part as usize].add_to(&mut row);
                }
                pool.intern(CompactSet::from_bits(&row))
            };
            if pool.bytes > pool.max_bytes {
                return Ok(None);
            }
            component.iter().for_each(|&node| of_node[node as usize] = id);
        }
        Ok(Some(of_node))
    }

    /// Of each node the terminals that can be read to a boundary at which they are certain; one more bit if
    /// ignored pieces alone lead to one at which all are.
    pub fn certain(
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
    pub fn classify(
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
    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        size_of_val(&*self.of_boundary) + size_of_val(&*self.outcomes) + self.reach.memory_usage()
    }

    /// The steps `(from class, terminal, to class)`, ignored pieces left out.
    pub fn steps(&self, graph: &Graph) -> Vec<(usize, usize, usize)> {
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
