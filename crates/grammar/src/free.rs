//! Free text as an automaton over bytes: texts in which no mark stands, and texts that end with their first
//! mark.
//!
//! [`FreeText`] is the automaton of Aho and Corasick (1975), cut off behind the first mark. What stays true:
//! its states are the beginnings of marks in which no mark stands, and those that end with their first one.
//! So a mark that holds another one, other than at its end, is never read to its end ([`FreeText::is_live`]).
//! Cost: linear in the marks; a step costs at most the length of the longest mark, and mostly nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anygram_bits::BitSet;
use rustc_hash::FxHashMap;

use crate::automata::{PieceAutomaton, TooManyStates};

/// The label of texts in which no mark stands.
pub const FREE: u32 = 0;

/// A state of the automaton.
#[derive(Clone, Debug, Default)]
struct Node {
    children: BTreeMap<u8, u32>,
    /// The longest end of it that is a state too.
    fail: u32,
    /// The trigger that ends here, if one does.
    own: Option<u32>,
    /// The next shorter state that ends with a trigger.
    shorter: Option<u32>,
    is_excluded: bool,
}

impl Node {
    fn is_end(&self) -> bool {
        self.is_excluded || self.own.is_some() || self.shorter.is_some()
    }
}

/// Texts without marks (label [`FREE`]), and for each trigger the texts that end with it and hold no mark
/// before that end (the label one more than its place).
///
/// The empty text is none of them.
#[derive(Debug)]
pub struct FreeText {
    nodes: Vec<Node>,
    live: Arc<[u32]>,
    free: Arc<[u32]>,
}

/// The state before the first byte; all others are one more than their node.
const START: u32 = 0;

impl FreeText {
    /// The automaton of triggers and of what may not stand at all; no mark may be empty.
    pub fn new(triggers: &[&str], excludes: &[&str]) -> Self {
        let mut nodes = vec![Node::default()];
        for (at, trigger) in (0..).zip(triggers) {
            let node = Self::insert(&mut nodes, trigger.as_bytes());
            nodes[node].own = nodes[node].own.or(Some(at));
        }
        for exclude in excludes {
            let node = Self::insert(&mut nodes, exclude.as_bytes());
            nodes[node].is_excluded = true;
        }
        let mut live = vec![FREE];
        let mut queue = std::collections::VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            let at: usize = at;
            for (byte, child) in nodes[at].children.clone() {
                let fail = match at {
                    0 => 0,
                    _ => goto(&nodes, nodes[at].fail, byte),
                };
                let inherited = &nodes[fail as usize];
                let shorter = inherited.own.map(|_| fail).or(inherited.shorter);
                let is_excluded = inherited.is_excluded;
                let node = &mut nodes[child as usize];
                (node.fail, node.shorter) = (fail, shorter);
                node.is_excluded |= is_excluded;
                if node.is_end() {
                    // What comes behind an end is read by nobody.
                    node.children.clear();
                    live.extend(node.own.filter(|_| !node.is_excluded).map(|own| own + 1));
                } else {
                    queue.push_back(child as usize);
                }
            }
        }
        live.sort_unstable();
        Self { nodes, live: live.into(), free: Arc::from([FREE]) }
    }

    fn insert(nodes: &mut Vec<Node>, mark: &[u8]) -> usize {
        let mut at = 0;
        for &byte in mark {
            let fresh = nodes.len() as u32;
            let child = *nodes[at].children.entry(byte).or_insert(fresh);
            if child == fresh {
                nodes.push(Node::default());
            }
            at = child as usize;
        }
        at
    }

    /// Whether a text can end with this trigger; of equal ones the first counts.
    pub fn is_live(&self, trigger: usize) -> bool {
        self.live.binary_search(&(trigger as u32 + 1)).is_ok()
    }

    /// The node of the empty text.
    pub const ROOT: u32 = 0;

    /// The node where a byte leads; `None` where a mark ends that is excluded, and behind an end.
    ///
    /// A node is the longest end of the text so far that begins a mark ([`texts`](Self::texts)).
    pub fn next(&self, node: u32, byte: u8) -> Option<u32> {
        if self.nodes[node as usize].is_end() {
            return None;
        }
        let next = goto(&self.nodes, node, byte);
        (!self.nodes[next as usize].is_excluded).then_some(next)
    }

    /// Of a node the longest shorter end of its text that is the text of a node, too. The root has itself.
    pub fn shorter(&self, node: u32) -> u32 {
        self.nodes[node as usize].fail
    }

    /// Of each node the text, those that end with a mark included; nodes that no text leads to have the empty
    /// one.
    pub fn texts(&self) -> Vec<Vec<u8>> {
        let mut texts = vec![Vec::new(); self.nodes.len()];
        let mut agenda = vec![Self::ROOT as usize];
        while let Some(at) = agenda.pop() {
            for (&byte, &child) in &self.nodes[at].children {
                texts[child as usize] = [&texts[at][..], &[byte]].concat();
                agenda.push(child as usize);
            }
        }
        texts
    }

    /// A class for each byte: those that are in no mark are never told apart.
    pub fn bytes_apart(&self) -> Box<[u8; 256]> {
        self.byte_classes(|byte| byte == 0)
    }

    /// A class for each byte, those that are in no mark together, with boundaries where `starts` says so.
    fn byte_classes(&self, starts: impl Fn(u8) -> bool) -> Box<[u8; 256]> {
        let mut is_named = BitSet::new(256);
        for byte in self.nodes.iter().flat_map(|node| node.children.keys()) {
            is_named.insert(usize::from(*byte));
        }
        let (mut n_classes, mut others) = (0, None);
        Box::new(std::array::from_fn(|byte| {
            if starts(byte as u8) {
                others = None;
            }
            if !is_named.contains(byte)
                && let Some(others) = others
            {
                return others;
            }
            let fresh = n_classes as u8;
            n_classes += 1;
            if !is_named.contains(byte) {
                others = Some(fresh);
            }
            fresh
        }))
    }
}

/// Where a byte leads from a node, the ends of which may be read too.
fn goto(nodes: &[Node], mut node: u32, byte: u8) -> u32 {
    loop {
        if let Some(&child) = nodes[node as usize].children.get(&byte) {
            return child;
        }
        if node == 0 {
            return 0;
        }
        node = nodes[node as usize].fail;
    }
}

impl PieceAutomaton for FreeText {
    fn start(&self) -> u32 {
        START
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        Ok(self.next(state.saturating_sub(1), byte).map(|node| node + 1))
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        if state == START {
            return Arc::default();
        }
        let mut node = &self.nodes[state as usize - 1];
        if !node.is_end() {
            return self.free.clone();
        }
        let mut labels: Vec<u32> = node.own.iter().map(|own| own + 1).collect();
        while let Some(shorter) = node.shorter {
            node = &self.nodes[shorter as usize];
            labels.extend(node.own.map(|own| own + 1));
        }
        labels.sort_unstable();
        labels.into()
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        // A byte that no mark holds leads back to the root: none is 0xff.
        match state != START && self.nodes[state as usize - 1].is_end() {
            true => Arc::default(),
            false => self.live.clone(),
        }
    }

    fn classes(&self) -> Box<[u8; 256]> {
        self.bytes_apart()
    }
}

/// Unicode texts without marks, of at most so many characters. The one label is [`FREE`], and the empty text
/// is none of them.
#[derive(Debug)]
pub struct ShortText {
    marks: FreeText,
    most: u32,
    limit: usize,
    states: Mutex<(Vec<Place>, FxHashMap<Place, u32>)>,
    label: Arc<[u32]>,
}

/// A node, the characters that were begun, and which bytes may follow inside of a character.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Place {
    node: u32,
    count: u32,
    inside: Inside,
}

/// The bytes that follow inside of a character: so many, the first from a range.
type Inside = (u8, u8, u8);

const BETWEEN: Inside = (0, 0, 0);
const ANY: (u8, u8) = (0x80, 0xbf);

/// What follows a first byte of UTF-8.
fn begin(byte: u8) -> Option<Inside> {
    Some(match byte {
        0..0x80 => BETWEEN,
        0xc2..0xe0 => (1, ANY.0, ANY.1),
        0xe0 => (2, 0xa0, ANY.1),
        0xed => (2, ANY.0, 0x9f),
        0xe1..0xf0 => (2, ANY.0, ANY.1),
        0xf0 => (3, 0x90, ANY.1),
        0xf1..0xf4 => (3, ANY.0, ANY.1),
        0xf4 => (3, ANY.0, 0x8f),
        _ => return None,
    })
}

impl ShortText {
    /// At most `most` characters, at least one, without marks; `limit` bounds the states.
    pub fn new(excludes: &[&str], most: u32, limit: usize) -> Self {
        let start = Place { node: 0, count: 0, inside: BETWEEN };
        let states = Mutex::new((vec![start], FxHashMap::from_iter([(start, START)])));
        Self { marks: FreeText::new(&[], excludes), most, limit, states, label: Arc::from([FREE]) }
    }

    fn place(&self, state: u32) -> Place {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).0[state as usize]
    }

    fn intern(&self, place: Place) -> Result<u32, TooManyStates> {
        let (states, ids) = &mut *self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = ids.get(&place) {
            return Ok(known);
        }
        if states.len() >= self.limit {
            let what = format!("free text of at most {} characters", self.most);
            return Err(TooManyStates { what, limit: self.limit, option: "schema_states" });
        }
        states.push(place);
        ids.insert(place, states.len() as u32 - 1);
        Ok(states.len() as u32 - 1)
    }

    /// The place behind a byte, whether a character can still end behind it or not.
    fn next(&self, place: Place, byte: u8) -> Option<Place> {
        let (inside, count) = match place.inside {
            (0, ..) if place.count < self.most => (begin(byte)?, place.count + 1),
            (left @ 1.., first, last) if (first..=last).contains(&byte) => {
                (if left == 1 { BETWEEN } else { (left - 1, ANY.0, ANY.1) }, place.count)
            }
            _ => return None,
        };
        let node = self.marks.next(place.node, byte)?;
        Some(Place { node, count, inside })
    }

    /// Whether the character that was begun can end: at most three bytes are looked ahead.
    fn can_end(&self, place: Place) -> bool {
        let (left, first, last) = place.inside;
        left == 0 || (first..=last).any(|byte| self.next(place, byte).is_some_and(|next| self.can_end(next)))
    }
}

impl PieceAutomaton for ShortText {
    fn start(&self) -> u32 {
        START
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        let next = self.next(self.place(state), byte).filter(|&next| self.can_end(next));
        next.map(|next| self.intern(next)).transpose()
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        let is_end = state != START && self.place(state).inside == BETWEEN;
        if is_end { self.label.clone() } else { Arc::default() }
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        let place = self.place(state);
        let goes_on = match place.inside {
            BETWEEN => {
                let mut next = (0..=255).filter_map(|byte| self.next(place, byte));
                next.any(|next| self.can_end(next))
            }
            _ => true,
        };
        if goes_on { self.label.clone() } else { Arc::default() }
    }

    fn alike(&self, state: u32, bytes: usize) -> u32 {
        let place = self.place(state);
        let is_far = (self.most - place.count) as usize > bytes;
        if state == START || !is_far {
            return state;
        }
        // Where no more states may be made, the state stands for itself. The start accepts nothing, so this
        // is no state that it could be taken for.
        self.intern(Place { count: 1.min(place.count), ..place }).unwrap_or(state)
    }

    fn has_bounds(&self) -> bool {
        true
    }

    fn classes(&self) -> Box<[u8; 256]> {
        const STARTS: [u8; 12] = [0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4];
        self.marks.byte_classes(|byte| STARTS.contains(&byte) || byte == 0xf5)
    }
}
