//! What is left of tokens behind the end of a piece: tries, made once for a vocabulary.

use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::{FxHashMap, FxHasher};

use crate::tokens::Tokens;

/// The rests of tokens behind the end of a piece, as a trie.
#[derive(Debug)]
pub struct Rest {
    /// Tells tries apart; 0 is the vocabulary's own.
    pub id: u64,
    /// The bytes that are left.
    pub trie: TokenTrie,
    /// Of which tokens.
    pub tokens: Arc<Tokens>,
    /// The most bytes that are left.
    pub height: usize,
}

impl Rest {
    /// Bytes on the heap.
    pub(crate) fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.trie.memory_usage() + self.tokens.memory_usage()
    }
}

/// What is left of a vocabulary's tokens, for all that ask.
#[derive(Default)]
pub(crate) struct Rests(Mutex<RestTable>);

/// Bounded in bytes: when full, all are dropped.
#[derive(Default)]
struct RestTable {
    /// By the trie and the nodes of it that they begin with.
    by_tops: FxHashMap<(u64, Box<[NodeId]>), Arc<Rest>>,
    /// The same by a hash of their tries: what is left of tokens is one rest, by whichever way one came to
    /// it.
    by_trie: FxHashMap<u64, Vec<Arc<Rest>>>,
    bytes: usize,
    /// How many were made, those that were dropped too: one that is in use may not be taken for another.
    n_made: u64,
}

/// Bytes that are kept beside a vocabulary of what is left of tokens.
const REST_BYTES: usize = 64 << 20;

impl Rests {
    fn table(&self) -> MutexGuard<'_, RestTable> {
        // Of what a panic left behind each entry is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left of the tokens at and below some nodes of a trie, from the bytes of the nodes on. Made
    /// once for the same nodes, as long as there is room.
    pub fn get(&self, (id, trie): (u64, &TokenTrie), tops: &[NodeId], n_words: usize) -> Arc<Rest> {
        let key: (u64, Box<[NodeId]>) = (id, tops.into());
        if let Some(rest) = self.table().by_tops.get(&key) {
            return rest.clone();
        }
        // Nobody waits for it who wants another.
        let trie = trie.below(&key.1);
        let hash = hash(&trie);
        self.table().add(key, (hash, trie), n_words)
    }
}

/// Equal for equal tries: of their tokens and how many nodes they have, which tells most apart.
fn hash(trie: &TokenTrie) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_usize(trie.n_nodes());
    for pair in trie.order().chunks(2) {
        hasher.write_u64(pair.iter().fold(0, |all, token| all << 32 | u64::from(token.0)));
    }
    hasher.finish()
}

impl RestTable {
    fn add(
        &mut self,
        key: (u64, Box<[NodeId]>),
        (hash, trie): (u64, TokenTrie),
        n_words: usize,
    ) -> Arc<Rest> {
        if self.bytes > REST_BYTES {
            *self = Self { n_made: self.n_made, ..Self::default() };
        }
        self.bytes += size_of_val(&*key.1);
        let same = self.by_trie.get(&hash).and_then(|rests| rests.iter().find(|rest| rest.trie == trie));
        let rest = same.cloned().unwrap_or_else(|| {
            self.n_made += 1;
            let all = [(0, trie.n_tokens() as u32)];
            let tokens = Arc::new(Tokens::of_ranges(&trie, &all, n_words));
            let rest = Arc::new(Rest { id: self.n_made, height: trie.height(), trie, tokens });
            self.bytes += rest.memory_usage();
            self.by_trie.entry(hash).or_default().push(rest.clone());
            rest
        });
        self.by_tops.insert(key, rest.clone());
        rest
    }
}
