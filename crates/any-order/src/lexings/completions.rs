//! The language of completions: a partial output as a row of fragments, special tokens and gaps.
//!
//! A run of holes and gaps is one gap, which holds any number of tokens (the paper's `x = x₁ □ x₂ □ … □ xₙ`).
//! Tokens side by side are one fragment of bytes, so characters that tokens split are whole again. The NFA
//! over bytes is not written down: a fragment reads its bytes, a gap loops.

use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;

use crate::canvas::{Canvas, End};
use crate::plan::{self, Place, Plan};

/// Bytes of a chunk at least, but for the last.
const CHUNK: usize = 8;

/// A fragment cut where its last bytes say so: a change within it, or at one of its ends, leaves most chunks
/// as they were, so that what they are lexed to is known.
fn chunks(mut text: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    let ends = |window: &[u8]| {
        let sum = window.iter().fold(0u32, |sum, &byte| sum.wrapping_mul(0x0100_0193) ^ u32::from(byte));
        sum.wrapping_mul(0x9e37_79b1) >> 28 == 0
    };
    while let Some(end) = (CHUNK..text.len()).find(|&end| ends(&text[end - 4..end])) {
        let (chunk, rest) = text.split_at(end);
        chunks.push(chunk);
        text = rest;
    }
    if !text.is_empty() {
        chunks.push(text);
    }
    chunks
}

/// Which tokens a hole may hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trie {
    /// Each token.
    All,
    /// Some of each kind.
    Few,
}

/// A part of a partial output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// These bytes: a fragment, or a chunk of one.
    Fragment(Box<[u8]>),
    /// A token that is a terminal.
    Special(TerminalId),
    /// One token: of all, or of few.
    Hole(Trie),
    /// Any number of tokens.
    Gap,
    /// Any text: what follows a prefix.
    Anything,
}

/// A partial output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completions {
    /// Its parts, in order.
    pub items: Vec<Item>,
    /// Whether the text may end before each item, and after the last.
    pub finals: Vec<bool>,
    /// Of each item the first of its slots, and the first behind them.
    pub slots: Vec<(usize, usize)>,
}

impl Completions {
    /// A canvas of which each run of holes and gaps is one gap.
    pub fn with_gaps(constraint: &Constraint, canvas: &Canvas) -> Self {
        Self::loosely(constraint, &Plan::new(constraint, canvas))
    }

    /// A plan of which each run of holes and gaps is one gap.
    pub(crate) fn loosely(constraint: &Constraint, plan: &Plan) -> Self {
        Self::new(constraint, plan, None)
    }

    /// A plan as it is, with such tokens in its holes. (What may remain behind it is not counted.)
    pub(crate) fn exactly(constraint: &Constraint, plan: &Plan, trie: Trie) -> Self {
        Self::new(constraint, plan, Some(trie))
    }

    fn new(constraint: &Constraint, Plan { places, ends, whole }: &Plan, trie: Option<Trie>) -> Self {
        let mut this = Self { items: Vec::new(), finals: Vec::new(), slots: Vec::new() };
        let mut bytes: Vec<u8> = Vec::new();
        let mut at = 0;
        while at < places.len() {
            let from = at;
            let mut is_final = ends[at];
            at += 1;
            let item = match places[from] {
                Place::Closed => {
                    this.finals.push(is_final);
                    return this;
                }
                Place::Free | Place::Gap if trie.is_some() => match (places[from], trie) {
                    (Place::Free, Some(trie)) => Item::Hole(trie),
                    _ => Item::Gap,
                },
                Place::Free | Place::Gap | Place::Optional => {
                    while let Some(Place::Free | Place::Gap) = places.get(at) {
                        is_final |= ends[at];
                        at += 1;
                    }
                    Item::Gap
                }
                Place::Token(token) => match constraint.vocabulary().bytes(token) {
                    Some(first) => {
                        bytes.clear();
                        bytes.extend_from_slice(first);
                        while let Some(Place::Token(token)) = places.get(at)
                            && let Some(more) = constraint.vocabulary().bytes(*token)
                        {
                            bytes.extend_from_slice(more);
                            at += 1;
                        }
                        for (place, chunk) in (0..).zip(chunks(&bytes)) {
                            this.push(Item::Fragment(chunk.into()), (from, at), is_final && place == 0);
                        }
                        continue;
                    }
                    None => match plan::specials(constraint).find(|&(named, _)| named == token) {
                        Some((_, terminal)) => Item::Special(terminal),
                        // Nothing that a text can hold.
                        None => {
                            this.finals.push(false);
                            return this;
                        }
                    },
                },
            };
            this.push(item, (from, at), is_final);
        }
        let n_slots = places.len();
        match whole {
            Some(End::Prefix { remaining }) => {
                let after = if remaining.is_none() { Item::Anything } else { Item::Gap };
                this.push(after, (n_slots, n_slots), false);
                this.finals.push(true);
            }
            Some(End::Sentence) => this.finals.push(true),
            None => this.finals.push(false),
        }
        this
    }

    fn push(&mut self, item: Item, slots: (usize, usize), is_final: bool) {
        self.items.push(item);
        self.slots.push(slots);
        self.finals.push(is_final);
    }

    /// Whether item is a gap of the canvas or what follows it.
    pub fn is_open(&self, item: usize) -> bool {
        matches!(self.items.get(item), Some(Item::Gap | Item::Anything))
    }

    /// Whether something is put into an item.
    pub(crate) fn is_filled(&self, item: usize) -> bool {
        matches!(self.items.get(item), Some(Item::Hole(_) | Item::Gap | Item::Anything))
    }

    /// Whether the text may end before an item in `from..to`.
    pub fn ends_between(&self, from: usize, to: usize) -> bool {
        self.finals[from..to].contains(&true)
    }
}
