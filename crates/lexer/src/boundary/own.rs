//! The automaton of pieces where each owes little: an upper bound on what can be spelled.

use anygram_bits::BitSet;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::TerminalId;
use rustc_hash::FxHashMap;

use super::graph::{Classes, Graph};
use super::{ClassId, SET_BYTES_PER_LEXEME};
use crate::LexerLimits;
use crate::dfa::{DEAD, Dfa, START};
use crate::lexicon::{Lexicon, Patterns};

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
