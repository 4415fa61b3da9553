//! Masks: which tokens leave a frontier viable.
//!
//! What a token does to a lexeme in progress, as long as the piece goes on, depends on nothing else. So for each lexeme the trie of tokens is walked
//! once and the result kept ([`Walk`]): the tokens that merely prolong the piece, and the places where it may end inside a token. A mask then takes
//! the former as a set and follows the latter with the parser; a subtree all of whose tokens are admitted already, or in which no reading
//! survives, is skipped. Cost: a union of bit sets per reading, and the nodes visited beyond the first end of a piece.
//!
//! In `scannerless` all pieces that end at one byte have to meet in one parser state, so there the trie is walked with the whole frontier, and the kept
//! walks only say what need not be visited.

use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_grammar::ir::LexerMode;
use anygram_lexer::transducer::{CutId, LexemeId, Prospect};
use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};

/// Masks are rows of 32-bit words, bit `id % 32` of word `id / 32`, as serving engines share them.
pub const MASK_BITS: usize = u32::BITS as usize;

/// Sets a token's bit.
pub fn set_bit(words: &mut [u32], id: usize) {
    words[id / MASK_BITS] |= 1 << (id % MASK_BITS);
}

/// Whether a token's bit is set.
pub fn get_bit(words: &[u32], id: usize) -> bool {
    words[id / MASK_BITS] >> (id % MASK_BITS) & 1 == 1
}

/// What tokens do to one lexeme in progress.
struct Walk {
    /// The tokens after which the piece is in progress and can be completed: by place in the order of the trie, and by id.
    stay: BitSet,
    stay_words: Box<[u32]>,
    /// The nodes of tokens after which it is in progress as a lexeme of unknown prospect, by lexeme.
    unknown: Vec<(LexemeId, Vec<NodeId>)>,
    /// The nodes of tokens, not all of `stay`, with which the piece may end.
    ends: Vec<(NodeId, CutId)>,
    /// The nodes, tokens below them not all of `stay`, whose byte may be the first after the piece.
    exits: Vec<(NodeId, CutId)>,
}

/// The walks that are kept, bounded in bytes: when full, all are dropped.
#[derive(Default)]
pub struct Walks {
    walks: FxHashMap<LexemeId, Arc<Walk>>,
    bytes: usize,
}

/// Scratch space of a mask.
#[derive(Default)]
pub struct Scratch {
    admitted: Option<BitSet>,
    configs: Frontier,
    found: Frontier,
    /// `(end of the subtree, first config)` of each ancestor.
    ancestors: Vec<(NodeId, usize)>,
}

/// A mask in the making.
struct Mask<'a> {
    stepper: &'a mut Stepper,
    language: &'a Language,
    trie: &'a TokenTrie,
    admitted: &'a mut BitSet,
    words: &'a mut [u32],
}

/// Adds the bits of all byte tokens that leave the frontier viable to `words`.
pub fn add_tokens(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    walks: &mut Walks,
    scratch: &mut Scratch,
    words: &mut [u32],
) -> Result<(), StepError> {
    let Scratch { admitted, configs, found, ancestors } = scratch;
    let admitted = match admitted {
        Some(set) if set.len() == trie.n_tokens() => {
            set.clear();
            set
        }
        _ => admitted.insert(BitSet::new(trie.n_tokens())),
    };
    let mut own = Vec::with_capacity(frontier.len());
    for &Config { lexeme, .. } in frontier {
        let walk = walks.get(stepper, language, trie, lexeme, words.len())?;
        admitted.union_with(&walk.stay);
        words.iter_mut().zip(&walk.stay_words).for_each(|(word, &other)| *word |= other);
        own.push(walk);
    }
    let mut mask = Mask { stepper, language, trie, admitted, words };
    let all = (NodeId(1), NodeId(trie.n_nodes() as u32));
    if language.mode() == LexerMode::Scannerless {
        return mask.follow(frontier, all, configs, found, ancestors);
    }
    for (&Config { state, .. }, walk) in frontier.iter().zip(&own) {
        for (lexeme, nodes) in &walk.unknown {
            if mask.stepper.is_viable(language, &[Config { state, lexeme: *lexeme }])? {
                nodes.iter().for_each(|&node| mask.admit(node));
            }
        }
        for &(node, cut) in &walk.ends {
            if !mask.is_admitted(node)
                && let Some(config) = mask.stepper.end(language, (state, cut))?
                && mask.stepper.is_viable(language, &[config])?
            {
                mask.admit(node);
            }
        }
        for &(node, cut) in &walk.exits {
            if !mask.all_admitted(node)
                && let Some(config) = mask.stepper.end(language, (state, cut))?
            {
                mask.follow(&[config], (node, trie.end(node)), configs, found, ancestors)?;
            }
        }
    }
    Ok(())
}

impl Mask<'_> {
    fn is_admitted(&self, node: NodeId) -> bool {
        self.admitted.contains(self.trie.node(node).lo)
    }

    fn all_admitted(&self, node: NodeId) -> bool {
        let node = self.trie.node(node);
        self.admitted.first_absent(node.lo, node.hi).is_none()
    }

    /// Admits the tokens that end at a node.
    fn admit(&mut self, node: NodeId) {
        let place = self.trie.node(node);
        self.admitted.insert_range(place.lo, place.own_hi);
        self.trie.tokens_at(node).iter().for_each(|token| set_bit(self.words, token.index()));
    }

    /// Walks the nodes from the first to before the last, all below one node that left the readings `frontier`.
    fn follow(
        &mut self,
        frontier: &[Config],
        (first, last): (NodeId, NodeId),
        configs: &mut Frontier,
        found: &mut Frontier,
        ancestors: &mut Vec<(NodeId, usize)>,
    ) -> Result<(), StepError> {
        configs.clear();
        configs.extend_from_slice(frontier);
        ancestors.clear();
        ancestors.push((last, 0));
        let mut at = first;
        while at < last {
            while let Some(&(end, first)) = ancestors.last()
                && at >= end
            {
                configs.truncate(first);
                ancestors.pop();
            }
            let node = self.trie.node(at);
            let Some(&(_, first)) = ancestors.last() else { break };
            if self.admitted.first_absent(node.lo, node.hi).is_none() {
                at = node.end;
                continue;
            }
            self.stepper.step(self.language, &configs[first..], node.byte, found)?;
            if found.is_empty() {
                at = node.end;
                continue;
            }
            if node.lo < node.own_hi
                && !self.admitted.contains(node.lo)
                && self.stepper.is_viable(self.language, found)?
            {
                self.admit(at);
            }
            let next = NodeId(at.0 + 1);
            if node.end > next {
                ancestors.push((node.end, configs.len()));
                configs.extend_from_slice(found);
            }
            at = next;
        }
        Ok(())
    }
}

impl Walks {
    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.bytes
    }

    fn get(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(walk) = self.walks.get(&lexeme) {
            return Ok(walk.clone());
        }
        let walk = Arc::new(Walk::new(stepper, language, trie, lexeme, n_words)?);
        let bytes = walk.memory_usage();
        if self.bytes + bytes > language.limits().cache_bytes {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.walks.insert(lexeme, walk.clone());
        Ok(walk)
    }
}

impl Walk {
    /// Walks the trie with one lexeme, as long as the piece goes on.
    fn new(
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Self, StepError> {
        let (lexing, transducer) = (language.lexing(), stepper.transducer_mut());
        let mut walk = Self {
            stay: BitSet::new(trie.n_tokens()),
            stay_words: vec![0; n_words].into(),
            unknown: Vec::new(),
            ends: Vec::new(),
            exits: Vec::new(),
        };
        let mut unknown: FxHashMap<LexemeId, Vec<NodeId>> = FxHashMap::default();
        let mut cuts = Vec::new();
        let mut ancestors = vec![(trie.n_nodes() as u32, lexeme)];
        let mut at = 1;
        while at < trie.n_nodes() as u32 {
            while ancestors.last().is_some_and(|&(end, _)| at >= end) {
                ancestors.pop();
            }
            let (id, node) = (NodeId(at), trie.node(NodeId(at)));
            let Some(&(_, lexeme)) = ancestors.last() else { break };
            let step = transducer.step(lexing, lexeme, node.byte)?;
            cuts.extend(step.cut.map(|cut| (id, cut)));
            let Some(next) = step.stay else {
                at = node.end.0;
                continue;
            };
            if node.lo < node.own_hi {
                if transducer.prospect(next) == Prospect::Completable {
                    walk.stay.insert_range(node.lo, node.own_hi);
                    trie.tokens_at(id).iter().for_each(|token| set_bit(&mut walk.stay_words, token.index()));
                } else {
                    unknown.entry(next).or_default().push(id);
                }
            }
            ancestors.push((node.end.0, next));
            at += 1;
        }
        if language.mode() == LexerMode::Scannerless {
            return Ok(walk);
        }
        for (id, cut) in cuts {
            let node = trie.node(id);
            if node.lo < node.own_hi && !walk.stay.contains(node.lo) {
                walk.ends.push((id, cut));
            }
            let obligations = transducer.cut(cut).obligations;
            for child in trie.children(id) {
                let below = trie.node(child);
                let left = walk.stay.first_absent(below.lo, below.hi).is_some();
                if left && transducer.survives(lexing, obligations, below.byte) {
                    walk.exits.push((child, cut));
                }
            }
        }
        walk.unknown = unknown.into_iter().collect();
        // In an order that does not depend on hashing, so that times can be repeated.
        walk.unknown.sort_unstable_by_key(|&(lexeme, _)| lexeme);
        Ok(walk)
    }

    fn memory_usage(&self) -> usize {
        self.stay.memory_usage()
            + size_of_val(&*self.stay_words)
            + self.unknown.iter().map(|(_, nodes)| size_of_val(&**nodes)).sum::<usize>()
            + size_of_val(&*self.ends)
            + size_of_val(&*self.exits)
    }
}
