//! The automaton of pieces where each owes little: an upper bound on what can be spelled.

use std::rc::Rc;

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
        let mut debts = Owed { by_id: &by_id, all: Vec::new(), ids: FxHashMap::default(), rows: Vec::new() };
        // By the debts; [`NONE`] has none.
        let mut boundaries: Vec<u32> = Vec::new();
        // A lexeme in progress: which terminal it is to be and how far it is (none at a boundary), and the
        // debt.
        let mut nodes: FxHashMap<(Option<OwnState>, u32), u32> = FxHashMap::default();
        let mut agenda = Vec::new();
        let mut reach = |node: (Option<OwnState>, u32), agenda: &mut Vec<_>| {
            *nodes.entry(node).or_insert_with(|| {
                agenda.push(node);
                agenda.len() as u32 - 1
            })
        };
        let nothing = debts.intern(Vec::new());
        graph.starts.push(reach((None, nothing), &mut agenda));
        boundaries.push(0);
        let samples = lexicon.union.samples();
        let starts: Vec<OwnState> = terminals.iter().map(|&(terminal, _)| (terminal, START)).collect();
        let mut at = 0;
        while at < agenda.len() {
            let (lexeme, debt) = agenda[at];
            let node = at as u32;
            at += 1;
            if lexeme.is_none() {
                graph.ends.extend(specials.iter().map(|terminal| (node, terminal as u32, 0)));
            }
            let begun = lexeme.as_ref().map_or(&*starts, std::slice::from_ref);
            work.spend(samples.len() * (1 + begun.len()))?;
            let row = debts.row(debt, samples, work)?;
            for &(terminal, state) in begun {
                let dfa = by_id[&terminal];
                let mut last = (DEAD, NONE);
                for (&byte, &after) in samples.iter().zip(&*row) {
                    let next = dfa.step(state, byte);
                    // Neighbouring bytes mostly do the same.
                    if next == DEAD || after == NONE || std::mem::replace(&mut last, (next, after)) == last {
                        continue;
                    }
                    let goes_on = dfa.can_go_on(next);
                    if goes_on {
                        graph.same.push((node, reach((Some((terminal, next)), after), &mut agenda)));
                    }
                    if !dfa.accepting[next as usize] {
                        continue;
                    }
                    let owed = if goes_on { debts.join(after, (terminal, next)) } else { after };
                    boundaries.resize(boundaries.len().max(owed as usize + 1), NONE);
                    let boundary = &mut boundaries[owed as usize];
                    if *boundary == NONE {
                        *boundary = graph.starts.len() as u32;
                        graph.starts.push(reach((None, owed), &mut agenda));
                    }
                    if lexicon.ignored.contains(terminal as usize) {
                        graph.same.push((node, graph.starts[*boundary as usize]));
                    }
                    if lexicon.used.contains(terminal as usize) {
                        graph.ends.push((node, terminal, *boundary));
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

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.graph.memory_usage()
            + self.classes.memory_usage()
            + self.after.iter().map(|classes| size_of::<BitSet>() + classes.memory_usage()).sum::<usize>()
    }
}

/// The mark of what is not there, and of a byte that breaks a debt.
const NONE: u32 = u32::MAX;

/// Debts by number, and what bytes do to them.
struct Owed<'a> {
    by_id: &'a FxHashMap<u32, &'a Dfa>,
    all: Vec<Vec<OwnState>>,
    ids: FxHashMap<Vec<OwnState>, u32>,
    rows: Vec<Option<Rc<[u32]>>>,
}

impl Owed<'_> {
    fn intern(&mut self, mut debt: Vec<OwnState>) -> u32 {
        debt.sort_unstable();
        debt.dedup();
        if let Some(&known) = self.ids.get(&debt) {
            return known;
        }
        let id = self.all.len() as u32;
        self.all.push(debt.clone());
        self.rows.push(None);
        self.ids.insert(debt, id);
        id
    }

    fn join(&mut self, debt: u32, own: OwnState) -> u32 {
        let mut owed = self.all[debt as usize].clone();
        owed.push(own);
        self.intern(owed)
    }

    /// What is owed after each byte; [`NONE`] if it breaks the debt.
    fn row(&mut self, debt: u32, bytes: &[u8], work: &mut Work) -> Result<Rc<[u32]>, Stopped> {
        if let Some(known) = &self.rows[debt as usize] {
            return Ok(known.clone());
        }
        let owed = self.all[debt as usize].clone();
        work.spend(bytes.len() * owed.len())?;
        let mut step =
            |&byte: &u8| step_own(self.by_id, &owed, byte).map_or(NONE, |after| self.intern(after));
        let row: Rc<[u32]> = bytes.iter().map(&mut step).collect();
        self.rows[debt as usize] = Some(row.clone());
        Ok(row)
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
    Some(after)
}
