//! Finite automata over terminals: all lexings at once, deterministic, minimal.

use anygram_any_order::lexings::Lexings;
use anygram_bits::work::Work;
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::language::StepError;
use anygram_lexer::dfa::refine;
use rustc_hash::FxHashMap;

/// An automaton over terminals, with the start at 0. From every state an accepting one can be reached, except
/// perhaps from the start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Automaton {
    /// Of each state, by terminal.
    pub edges: Vec<Vec<(TerminalId, u32)>>,
    pub accepts: Vec<bool>,
}

impl Automaton {
    /// All states and edges of the lexings that lead somewhere.
    pub fn nondeterministic(lexings: &mut Lexings<'_>, work: &mut Work) -> Result<Self, StepError> {
        let mut this = Self::default();
        lexings.start(work)?;
        let mut at = 0;
        while at < lexings.n_nodes() {
            let found = lexings.edges(at as u32, work)?;
            work.spend(found.edges.len() + 1)?;
            this.edges.push(found.edges.clone());
            this.accepts.push(found.accepts);
            at += 1;
        }
        Ok(this.trimmed())
    }

    pub fn n_states(&self) -> usize {
        self.edges.len()
    }

    pub fn n_edges(&self) -> usize {
        self.edges.iter().map(Vec::len).sum()
    }

    /// Whether nothing at all is read.
    pub fn is_empty(&self) -> bool {
        self.edges[0].is_empty() && !self.accepts[0]
    }

    /// Without the states from which no accepting one is reached.
    fn trimmed(self) -> Self {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.n_states()];
        for (from, edges) in self.edges.iter().enumerate() {
            let mut last = u32::MAX;
            for &(_, to) in edges {
                if to != last {
                    before[to as usize].push(from as u32);
                }
                last = to;
            }
        }
        let mut useful = self.accepts.clone();
        let mut agenda: Vec<u32> = (0..self.n_states() as u32).filter(|&at| useful[at as usize]).collect();
        while let Some(at) = agenda.pop() {
            for &from in &before[at as usize] {
                if !std::mem::replace(&mut useful[from as usize], true) {
                    agenda.push(from);
                }
            }
        }
        let Some(start) = useful.first_mut() else { return self };
        *start = true;
        let kept: Vec<u32> = (0..self.n_states() as u32).filter(|&at| useful[at as usize]).collect();
        let mut new = vec![u32::MAX; self.n_states()];
        for (place, &at) in (0..).zip(&kept) {
            new[at as usize] = place;
        }
        let mut this = Self::default();
        for &at in &kept {
            let edges = self.edges[at as usize].iter().filter(|&&(_, to)| useful[to as usize]);
            this.edges.push(edges.map(|&(terminal, to)| (terminal, new[to as usize])).collect());
            this.accepts.push(self.accepts[at as usize]);
        }
        this
    }

    /// The subset construction, over states that are made as it asks for them. Of a set only those are kept
    /// that no gap among them covers: a later gap takes in all that stands before it. `None` if there are
    /// more than so many states.
    pub fn deterministic(
        lexings: &mut Lexings<'_>,
        most: usize,
        work: &mut Work,
    ) -> Result<Option<Self>, StepError> {
        let mut this = Self::default();
        let start = lexings.start(work)?;
        let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::from_iter([(vec![start], 0)]);
        let mut sets = vec![vec![start]];
        // Many terminals lead to the same states.
        let mut known: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let mut pairs: Vec<(TerminalId, u32)> = Vec::new();
        let mut raw: Vec<u32> = Vec::new();
        let mut at = 0;
        while at < sets.len() {
            pairs.clear();
            let mut accepts = false;
            for &node in &sets[at] {
                let found = lexings.edges(node, work)?;
                pairs.extend_from_slice(&found.edges);
                accepts |= found.accepts;
            }
            if sets[at].len() > 1 {
                pairs.sort_unstable();
                pairs.dedup();
            }
            work.spend(pairs.len() + 1)?;
            let mut edges = Vec::new();
            for group in pairs.chunk_by(|a, b| a.0 == b.0) {
                raw.clear();
                raw.extend(group.iter().map(|&(_, to)| to));
                let id = match known.get(&raw) {
                    Some(&id) => id,
                    None => {
                        let set = uncovered(lexings, &raw, work)?;
                        let fresh = sets.len() as u32;
                        let id = *ids.entry(set).or_insert_with_key(|set| {
                            sets.push(set.clone());
                            fresh
                        });
                        known.insert(raw.clone(), id);
                        id
                    }
                };
                edges.push((group[0].0, id));
            }
            this.edges.push(edges);
            this.accepts.push(accepts);
            if sets.len() > most {
                return Ok(None);
            }
            at += 1;
        }
        Ok(Some(this.trimmed()))
    }

    /// The least deterministic automaton that reads the same (Hopcroft 1971). Of a deterministic one.
    pub fn minimized(&self, work: &mut Work) -> Result<Self, StepError> {
        let mut columns: FxHashMap<TerminalId, usize> = FxHashMap::default();
        for &(terminal, _) in self.edges.iter().flatten() {
            let fresh = columns.len();
            columns.entry(terminal).or_insert(fresh);
        }
        // One more state, from which nothing is read.
        let dead = self.n_states();
        work.spend((dead + 1) * columns.len())?;
        let mut next = vec![dead as u32; (dead + 1) * columns.len()];
        for (from, edges) in self.edges.iter().enumerate() {
            for &(terminal, to) in edges {
                next[from * columns.len() + columns[&terminal]] = to;
            }
        }
        let accepts = self.accepts.iter().map(|&accepts| u32::from(accepts)).chain([0]).collect();
        let blocks = refine(&next, columns.len(), accepts, work)?;
        let mut ids: FxHashMap<u32, u32> = FxHashMap::default();
        let mut representative = Vec::new();
        for (state, &block) in blocks[..dead].iter().enumerate() {
            ids.entry(block).or_insert_with(|| {
                representative.push(state);
                representative.len() as u32 - 1
            });
        }
        let mut this = Self::default();
        for &state in &representative {
            let edges = self.edges[state].iter().map(|&(terminal, to)| (terminal, ids[&blocks[to as usize]]));
            this.edges.push(edges.collect());
            this.accepts.push(self.accepts[state]);
        }
        Ok(this)
    }
}

/// A set of states without those that a gap among them covers.
fn uncovered(lexings: &mut Lexings<'_>, set: &[u32], work: &mut Work) -> Result<Vec<u32>, StepError> {
    let Some(latest) = set.iter().filter_map(|&node| lexings.gap_of(node)).max() else {
        return Ok(set.to_vec());
    };
    let mut kept = set.to_vec();
    for &gap in set {
        if lexings.gap_of(gap) == Some(latest) && kept.contains(&gap) {
            work.spend(kept.len())?;
            kept.retain(|&other| other == gap || !lexings.covers(gap, other));
        }
    }
    Ok(kept)
}
