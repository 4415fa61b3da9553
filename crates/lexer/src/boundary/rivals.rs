//! `contextual`, looked at more closely: only terminals are to be feared that are not enough.
//!
//! In `contextual` those terminals compete for a piece that the parser wants. [`Explored`] takes all for
//! rivals, so a terminal that begins as another one does, but longer, may never be readable there, though
//! the parser never wants both. Which it wants together nobody knows here; but this is known: *if it wants
//! a terminal that is enough where the piece is, the text can be completed anyway.* So suppose that it
//! wants none of these. Then only the others are rivals, and with so few of them more can be read.
//!
//! The automaton of pieces is explored once more in this way. What is owed after a piece has a mask: the
//! terminals that may have been rivals when it ended. From each lexeme, the terminals that are known to be
//! enough lead to a boundary from which everything can be read (*done*: the text can be completed by other
//! means), and whatever could be read where all compete can be read here. What can be completed in this
//! automaton can be completed in truth, by induction on the pieces of a completion that it finds: either
//! one of them is wanted where something that is enough is wanted too, or it is read as planned, because
//! all that the parser wants there is among the rivals that were reckoned with. Fewer rivals owe less and
//! hide no label.

use std::rc::Rc;

use anygram_bits::BitSet;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::completions::Completions;
use anygram_grammar::relation::Relation;
use rustc_hash::FxHashMap;

use super::explored::Explored;
use super::graph::{Graph, Sets, is_certain};
use super::sorted;
use crate::LexerLimits;
use crate::dfa::START;
use crate::lexicon::Lexicon;
use crate::union::State;

/// A set of terminals that may be rivals; 0 is all of them.
type MaskId = u32;

/// The obligations: states that must not accept any terminal of a mask.
type Debt = Box<[(State, MaskId)]>;

/// A lexeme in progress, or a boundary.
type Key = (State, u32);

/// Where a byte class leads from a state among some rivals.
struct Move {
    class: usize,
    to: State,
    goes_on: bool,
    /// What may end there.
    labels: Box<[usize]>,
}

/// So many times as many lexemes as there are if all compete, and some more, are looked at.
const MOST_TIMES: usize = 4;
const FEW: usize = 10_000;

/// The automaton in the making. Its first nodes and boundaries are those of [`Explored`].
struct Closer<'a> {
    all: &'a Explored,
    lexicon: &'a Lexicon,
    graph: Graph,
    nodes: FxHashMap<Key, u32>,
    agenda: Vec<Key>,
    debts: Vec<Debt>,
    debt_ids: FxHashMap<Debt, u32>,
    masks: Vec<BitSet>,
    mask_ids: FxHashMap<BitSet, MaskId>,
    /// By the number of a set of terminals that are enough, the rivals that are left.
    rivals: FxHashMap<u32, MaskId>,
    /// By state and rivals, where classes lead that lead anywhere.
    moves: FxHashMap<(State, MaskId), Rc<[Move]>>,
    boundaries: FxHashMap<u32, u32>,
}

impl Explored {
    /// As [`super::Boundaries::enough`], of each lexeme, given what is enough if all compete. `None` if there
    /// is too much to look at.
    pub(super) fn look_closer(
        &self,
        lexicon: &Lexicon,
        cfg: &Cfg,
        specials: &BitSet,
        limits: &LexerLimits,
        bytes: usize,
        work: &mut Work,
    ) -> Result<Option<Sets>, Stopped> {
        let (Some(completions), Some(enough)) = (&self.completions, &self.enough) else { return Ok(None) };
        let mut closer = Closer::new(self, lexicon);
        // Done: here everything can be read.
        let done = closer.graph.starts.len() as u32;
        let done_node = closer.agenda.len() as u32;
        closer.agenda.push((START, u32::MAX));
        closer.graph.starts.push(done_node);
        closer.graph.ends.extend(lexicon.used.iter().map(|terminal| (done_node, terminal as u32, done)));
        for &(node, terminal, boundary) in &self.graph.ends {
            let class = self.classes.of_boundary[boundary as usize].index();
            let is_done = is_certain(lexicon, completions, terminal, class);
            closer.graph.ends.push((node, terminal, if is_done { done } else { boundary }));
        }
        let most = (MOST_TIMES * self.graph.n_nodes + FEW).min(limits.lexemes);
        let mut at = 0;
        while at < closer.agenda.len() {
            if at as u32 != done_node {
                closer.explore(at, enough, specials, work)?;
            }
            if closer.agenda.len() > most {
                return Ok(None);
            }
            at += 1;
        }
        let Closer { mut graph, agenda, .. } = closer;
        graph.n_nodes = agenda.len();
        graph.tidy();
        let Some(classes) = graph.classify(false, bytes, work)? else { return Ok(None) };
        let relation = Relation::surely(cfg, classes.n_classes, classes.steps(&graph), work)?;
        let completions = Completions::new(cfg, relation, work)?;
        let Some(mut sets) = graph.certain(lexicon, &classes, &completions, bytes, work)? else {
            return Ok(None);
        };
        sets.of_node.truncate(self.graph.n_nodes);
        Ok(Some(sets))
    }
}

impl<'a> Closer<'a> {
    fn new(all: &'a Explored, lexicon: &'a Lexicon) -> Self {
        let mut everything = lexicon.competing();
        everything.union_with(&lexicon.ignored);
        let mut this = Self {
            all,
            lexicon,
            graph: Graph {
                starts: all.graph.starts.clone(),
                same: all.graph.same.clone(),
                ..Graph::default()
            },
            nodes: FxHashMap::default(),
            agenda: Vec::new(),
            debts: Vec::new(),
            debt_ids: FxHashMap::default(),
            masks: vec![everything.clone()],
            mask_ids: FxHashMap::from_iter([(everything, 0)]),
            rivals: FxHashMap::default(),
            moves: FxHashMap::default(),
            boundaries: FxHashMap::default(),
        };
        let mut known: Vec<_> = all.nodes.iter().map(|(&key, &node)| (node, key)).collect();
        known.sort_unstable();
        for (node, (state, debt)) in known {
            let owed: Vec<_> = all.debt(debt).iter().map(|&state| (state, 0)).collect();
            let key = (state, this.intern(owed));
            this.nodes.insert(key, node);
            this.agenda.push(key);
        }
        for (boundary, &node) in (0..).zip(&all.graph.starts) {
            this.boundaries.insert(node, boundary);
        }
        this
    }

    fn intern(&mut self, mut owed: Vec<(State, MaskId)>) -> u32 {
        owed.sort_unstable();
        owed.dedup();
        let fresh = self.debts.len() as u32;
        *self.debt_ids.entry(owed.into()).or_insert_with_key(|owed| {
            self.debts.push(owed.clone());
            fresh
        })
    }

    fn mask(&mut self, mask: BitSet) -> MaskId {
        let fresh = self.masks.len() as MaskId;
        *self.mask_ids.entry(mask).or_insert_with_key(|mask| {
            self.masks.push(mask.clone());
            fresh
        })
    }

    /// A state that must not accept any terminal of a mask, as simply as can be said; `None` if it cannot.
    fn owe(&mut self, state: State, mask: MaskId) -> Option<(State, MaskId)> {
        let union = &self.lexicon.union;
        let live = union.live(state);
        if mask == 0 {
            return (!live.is_empty()).then(|| (union.blind(state), 0));
        }
        let members = live.iter().filter(|&terminal| self.masks[mask as usize].contains(terminal));
        let members = BitSet::from_members(self.masks[0].len(), members);
        if members.count() == 0 {
            None
        } else if members.count() == live.count() {
            Some((union.blind(state), 0))
        } else {
            Some((state, self.mask(members)))
        }
    }

    /// The lexeme if all had competed, if it can arise.
    fn counterpart(&self, (state, debt): Key) -> Option<usize> {
        let owed = self.debts[debt as usize].iter().map(|&(state, _)| self.lexicon.union.blind(state));
        self.all.find_node(state, &sorted(owed))
    }

    /// Who is to be feared where this can become of a lexeme.
    fn rivals(&mut self, counterpart: Option<usize>, enough: &Sets) -> MaskId {
        let Some(node) = counterpart else { return 0 };
        let set = enough.of_node[node];
        if let Some(&known) = self.rivals.get(&set) {
            return known;
        }
        let (enough, end) = (enough.get(node), self.lexicon.n_terminals());
        let is_rival = |&terminal: &usize| {
            self.lexicon.ignored.contains(terminal) || !enough.contains(end) && !enough.contains(terminal)
        };
        let rivals = BitSet::from_members(self.masks[0].len(), self.masks[0].iter().filter(is_rival));
        let rivals = self.mask(rivals);
        self.rivals.insert(set, rivals);
        rivals
    }

    fn reach(&mut self, key: Key) -> u32 {
        let fresh = self.agenda.len() as u32;
        let Self { nodes, agenda, .. } = self;
        *nodes.entry(key).or_insert_with(|| {
            agenda.push(key);
            fresh
        })
    }

    fn boundary(&mut self, debt: u32) -> u32 {
        let node = self.reach((START, debt));
        let fresh = self.graph.starts.len() as u32;
        let Self { boundaries, graph, .. } = self;
        *boundaries.entry(node).or_insert_with(|| {
            graph.starts.push(node);
            fresh
        })
    }

    fn explore(
        &mut self,
        at: usize,
        enough: &Sets,
        specials: &BitSet,
        work: &mut Work,
    ) -> Result<(), Stopped> {
        let (lexicon, node, key) = (self.lexicon, at as u32, self.agenda[at]);
        let union = &lexicon.union;
        let counterpart = self.counterpart(key);
        if let Some(counterpart) = counterpart
            && counterpart != at
        {
            self.graph.same.push((node, counterpart as u32));
        }
        let rivals = self.rivals(counterpart, enough);
        if key.0 == START {
            let boundary = self.boundary_that_owes_nothing();
            self.graph.ends.extend(specials.iter().map(|terminal| (node, terminal as u32, boundary)));
        }
        work.spend(union.n_classes() * (1 + self.debts[key.1 as usize].len()))?;
        for Move { class, to, goes_on, labels } in &*self.moves(key.0, rivals) {
            let Some(owed) = self.step_debt(key.1, *class) else { continue };
            if *goes_on {
                let debt = self.intern(owed.clone());
                let to = self.reach((*to, debt));
                self.graph.same.push((node, to));
            }
            if labels.is_empty() {
                continue;
            }
            let mut owed = owed;
            owed.extend(self.owe(*to, rivals));
            let debt = self.intern(owed);
            let boundary = self.boundary(debt);
            for &label in labels {
                if lexicon.ignored.contains(label) {
                    self.graph.same.push((node, self.graph.starts[boundary as usize]));
                }
                if lexicon.used.contains(label) {
                    self.graph.ends.push((node, label as u32, boundary));
                }
            }
        }
        Ok(())
    }

    fn moves(&mut self, from: State, rivals: MaskId) -> Rc<[Move]> {
        if let Some(known) = self.moves.get(&(from, rivals)) {
            return known.clone();
        }
        let (union, rival) = (&self.lexicon.union, &self.masks[rivals as usize]);
        let step = |class| {
            let to = union.step(from, class);
            let goes_on = union.live(to).iter().any(|terminal| rival.contains(terminal));
            let labels = self.lexicon.labels(to, |terminal| rival.contains(terminal)).into_boxed_slice();
            (goes_on || !labels.is_empty()).then_some(Move { class, to, goes_on, labels })
        };
        let made: Rc<[Move]> = (0..union.n_classes()).filter_map(step).collect();
        self.moves.insert((from, rivals), made.clone());
        made
    }

    fn boundary_that_owes_nothing(&mut self) -> u32 {
        let nothing = self.intern(Vec::new());
        self.boundary(nothing)
    }

    /// What is owed after one more byte; `None` if that cannot be kept.
    fn step_debt(&mut self, debt: u32, class: usize) -> Option<Vec<(State, MaskId)>> {
        let union = &self.lexicon.union;
        let mut owed = Vec::new();
        for (state, mask) in self.debts[debt as usize].clone() {
            let next = union.step(state, class);
            if union.accepts(next).iter().any(|terminal| self.masks[mask as usize].contains(terminal)) {
                return None;
            }
            owed.extend(self.owe(next, mask));
        }
        Some(owed)
    }
}
