//! The parts of terminals that an automaton gives.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anygram_grammar::automata::{Bytes, PieceAutomaton, Pieces, TooManyStates};
use anygram_grammar::free::FreeText;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Node;
use crate::dfa::common_classes;

/// A state of the automaton and a node.
type Place = (u32, Node);

/// What is known of a place.
#[derive(Clone, Debug)]
struct Known {
    place: Place,
    accepts: Arc<[u32]>,
    live: Arc<[u32]>,
}

/// The terminals of an automaton behind a node of free text, apart by the nodes to which they lead.
///
/// A label is a label of the automaton and a node. As the automaton has only states from which something can
/// be accepted, and marks can cut that off, each new state is looked at: what can be accepted behind it. That
/// search ends when all is found that there could be, which in strings and free text is soon.
#[derive(Debug)]
pub struct Without {
    inner: Pieces,
    free: Arc<FreeText>,
    from: Node,
    labels: Vec<(u32, Node)>,
    classes: Box<[u8; 256]>,
    samples: Vec<u8>,
    limit: usize,
    states: Mutex<States>,
}

#[derive(Debug, Default)]
struct States {
    all: Vec<Known>,
    /// The number of each place that was looked at; `None` if nothing can be accepted.
    ids: FxHashMap<Place, Option<u32>>,
}

impl Without {
    /// The parts from a node on; `to` are the nodes to which at least all of them lead that an outline of the
    /// automaton leads to. `limit` bounds the states of a search.
    pub fn new(
        inner: Pieces,
        free: Arc<FreeText>,
        own: &[u8; 256],
        (from, to): (Node, &[Node]),
        limit: usize,
    ) -> Result<Self, TooManyStates> {
        let theirs = inner.classes();
        let (classes, _, samples) = common_classes([&*theirs, own].into_iter());
        let states = Mutex::default();
        let mut this = Self { inner, free, from, labels: Vec::new(), classes, samples, limit, states };
        let start = (this.inner.start(), from);
        let ends = this.inner.live(start.0);
        let wanted = ends.iter().flat_map(|&label| to.iter().map(move |&node| (label, node)));
        let mut labels: Vec<(u32, Node)> = this.search(start, wanted.collect())?.into_iter().collect();
        labels.extend(this.inner.accepts(start.0).iter().map(|&label| (label, from)));
        labels.sort_unstable();
        labels.dedup();
        this.labels = labels;
        this.intern(start)?;
        Ok(this)
    }

    /// The nodes to which a label of the automaton leads, sorted.
    pub fn nodes_of(&self, label: u32) -> impl Iterator<Item = Node> {
        let from = self.labels.partition_point(|own| own.0 < label);
        self.labels[from..].iter().take_while(move |own| own.0 == label).map(|own| own.1)
    }

    /// The label of a label of the automaton that leads to a node.
    pub fn label(&self, label: u32, node: Node) -> Option<u32> {
        self.labels.binary_search(&(label, node)).ok().map(|at| at as u32)
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, state: u32) -> Known {
        self.lock().all[state as usize].clone()
    }

    fn next(&self, (state, node): Place, byte: u8) -> Result<Option<Place>, TooManyStates> {
        let Some(node) = self.free.next(node, byte) else { return Ok(None) };
        Ok(self.inner.step(state, byte)?.map(|state| (state, node)))
    }

    /// Which of these can be accepted behind at least one byte.
    fn search(
        &self,
        from: Place,
        mut wanted: FxHashSet<(u32, Node)>,
    ) -> Result<FxHashSet<(u32, Node)>, TooManyStates> {
        let mut found = FxHashSet::default();
        // A text can come back to where it begins, and end there.
        let (mut known, mut agenda) = (FxHashSet::default(), VecDeque::from([from]));
        while let Some(place) = agenda.pop_front() {
            for &byte in &self.samples {
                if wanted.is_empty() {
                    return Ok(found);
                }
                let Some(next) = self.next(place, byte)? else { continue };
                if !known.insert(next) {
                    continue;
                }
                let mut add = |label: (u32, Node)| {
                    if wanted.remove(&label) {
                        found.insert(label);
                    }
                };
                self.inner.accepts(next.0).iter().for_each(|&label| add((label, next.1)));
                let states = self.lock();
                match states.ids.get(&next) {
                    // All that can be accepted behind it is known.
                    Some(&Some(id)) => {
                        let live = &states.all[id as usize].live;
                        live.iter().for_each(|&label| add(self.labels[label as usize]));
                    }
                    Some(None) => {}
                    None => agenda.push_back(next),
                }
            }
            if known.len() > self.limit {
                let what = "what can follow without a stop string".to_owned();
                return Err(TooManyStates { what, limit: self.limit, option: "dfa_states" });
            }
        }
        Ok(found)
    }

    /// The number of a place; `None` if nothing can be accepted there or behind it.
    fn intern(&self, place: Place) -> Result<Option<u32>, TooManyStates> {
        if let Some(&known) = self.lock().ids.get(&place) {
            return Ok(known);
        }
        let ends = self.inner.live(place.0);
        let is_wanted = |label: &&(u32, Node)| ends.binary_search(&label.0).is_ok();
        let wanted = self.labels.iter().filter(is_wanted).copied().collect();
        let live = self.search(place, wanted)?;
        let number = |label: (u32, Node)| self.label(label.0, label.1);
        let mut live: Vec<u32> = live.into_iter().filter_map(number).collect();
        live.sort_unstable();
        let accepts = self.inner.accepts(place.0);
        let accepts: Arc<[u32]> = accepts.iter().filter_map(|&label| number((label, place.1))).collect();
        let states = &mut *self.lock();
        if let Some(&known) = states.ids.get(&place) {
            return Ok(known);
        }
        // The start is a state in any case.
        let is_dead = live.is_empty() && accepts.is_empty() && !states.all.is_empty();
        let id = (!is_dead).then_some(states.all.len() as u32);
        if !is_dead {
            states.all.push(Known { place, accepts, live: live.into() });
        }
        states.ids.insert(place, id);
        Ok(id)
    }
}

impl PieceAutomaton for Without {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        match self.next(self.known(state).place, byte)? {
            Some(next) => self.intern(next),
            None => Ok(None),
        }
    }

    fn bytes(&self, state: u32) -> Bytes {
        self.inner.bytes(self.known(state).place.0)
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        self.known(state).accepts
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        self.known(state).live
    }

    fn at_least(&self, state: u32, label: u32) -> u64 {
        self.inner.at_least(self.known(state).place.0, self.labels[label as usize].0)
    }

    fn outline(&self) -> &'static str {
        self.inner.outline()
    }

    fn in_outline(&self, state: u32) -> Option<&'static [u8]> {
        self.inner.in_outline(self.known(state).place.0)
    }

    fn examples(&self, label: u32, most: usize) -> Vec<Vec<u8>> {
        let (own, node) = self.labels[label as usize];
        let mut all = self.inner.examples(own, most);
        let leads_to = |text: &[u8]| {
            let step = |node: Option<Node>, &byte: &u8| self.free.next(node?, byte);
            text.iter().fold(Some(self.from), step)
        };
        all.retain(|text| leads_to(text) == Some(node));
        all
    }

    fn classes(&self) -> Box<[u8; 256]> {
        self.classes.clone()
    }
}
