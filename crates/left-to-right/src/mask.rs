//! Masks: a frontier walked over the trie of tokens.
//!
//! Two steps. First, for each lexeme in progress the tokens that merely prolong it are a set that depends on nothing else; it is computed
//! once and kept ([`TokenSets`]). Then the trie is walked with the whole frontier, for the tokens that are left: a subtree all of whose
//! tokens are admitted already, or in which no reading survives, is skipped. Cost: nodes visited × readings.

use anygram_bits::BitSet;
use anygram_lexer::transducer::{LexemeId, Prospect};
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

/// The tokens that keep a lexeme in progress, in two orders.
struct TokenSet {
    /// By place in the order of the trie.
    sorted: BitSet,
    /// By id.
    words: Box<[u32]>,
}

/// The cached token sets, bounded in bytes: when full, all are dropped.
#[derive(Default)]
pub struct TokenSets {
    sets: FxHashMap<LexemeId, TokenSet>,
    bytes: usize,
}

impl TokenSets {
    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.bytes
    }
}

/// Scratch space of the walk.
#[derive(Default)]
pub struct Scratch {
    admitted: Option<BitSet>,
    configs: Frontier,
    found: Frontier,
    /// `(end of the subtree, first config)` of each ancestor.
    ancestors: Vec<(u32, usize)>,
}

/// Adds the bits of all byte tokens that leave the frontier viable to `words`.
pub fn add_tokens(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    sets: &mut TokenSets,
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
    for &Config { lexeme, .. } in frontier {
        let set = sets.get(stepper, language, trie, lexeme, words.len())?;
        admitted.union_with(&set.sorted);
        words.iter_mut().zip(&set.words).for_each(|(word, &other)| *word |= other);
    }
    configs.clear();
    configs.extend_from_slice(frontier);
    ancestors.clear();
    ancestors.push((trie.n_nodes() as u32, 0));
    let mut at = 1;
    while at < trie.n_nodes() as u32 {
        while let Some(&(end, first)) = ancestors.last()
            && at >= end
        {
            configs.truncate(first);
            ancestors.pop();
        }
        let node = trie.node(NodeId(at));
        let Some(&(_, first)) = ancestors.last() else { break };
        if admitted.first_absent(node.lo, node.hi).is_none() {
            at = node.end.0;
            continue;
        }
        found.clear();
        stepper.step_onto(language, &configs[first..], node.byte, found)?;
        if found.is_empty() {
            at = node.end.0;
            continue;
        }
        if node.lo < node.own_hi && !admitted.contains(node.lo) && stepper.is_viable(language, found)? {
            admitted.insert_range(node.lo, node.own_hi);
            trie.tokens_at(NodeId(at)).iter().for_each(|token| set_bit(words, token.index()));
        }
        if node.end.0 > at + 1 {
            ancestors.push((node.end.0, configs.len()));
            configs.extend_from_slice(found);
        }
        at += 1;
    }
    Ok(())
}

impl TokenSets {
    fn get(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<&TokenSet, StepError> {
        if !self.sets.contains_key(&lexeme) {
            let set = TokenSet::new(stepper, language, trie, lexeme, n_words)?;
            let bytes = set.sorted.memory_usage() + size_of_val(&*set.words);
            if self.bytes + bytes > language.limits().cache_bytes {
                *self = Self::default();
            }
            self.bytes += bytes;
            self.sets.insert(lexeme, set);
        }
        Ok(&self.sets[&lexeme])
    }
}

impl TokenSet {
    /// Walks the trie with one lexeme, never ending the piece.
    fn new(
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Self, StepError> {
        let transducer = stepper.transducer_mut();
        let mut set = Self { sorted: BitSet::new(trie.n_tokens()), words: vec![0; n_words].into() };
        let mut ancestors = vec![(trie.n_nodes() as u32, lexeme)];
        let mut at = 1;
        while at < trie.n_nodes() as u32 {
            while ancestors.last().is_some_and(|&(end, _)| at >= end) {
                ancestors.pop();
            }
            let node = trie.node(NodeId(at));
            let Some(&(_, lexeme)) = ancestors.last() else { break };
            let Some(next) = transducer.step(language.lexing(), lexeme, node.byte)?.stay else {
                at = node.end.0;
                continue;
            };
            if node.lo < node.own_hi && transducer.prospect(next) == Prospect::Completable {
                set.sorted.insert_range(node.lo, node.own_hi);
                trie.tokens_at(NodeId(at)).iter().for_each(|token| set_bit(&mut set.words, token.index()));
            }
            ancestors.push((node.end.0, next));
            at += 1;
        }
        Ok(set)
    }
}
