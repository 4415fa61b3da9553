//! Walks that languages share.
//!
//! Ten schemas have the same kinds of strings, numbers and punctuation, and what tokens do in them does not
//! depend on which schema it is. So where the automata can say what is left of their terminals
//! ([`Fingerprint`]), a walk is kept beside the vocabulary, and another language takes it over: instead of
//! walking the trie, it steps along a text to each place where a piece ends, for the terminals that end there
//! have numbers of its own.
//!
//! What a walk depends on besides is which bytes begin a piece, for there tokens go on behind one; it is
//! compared for the bytes that were asked about ([`Sweep::asked`](crate::sweep::Sweep::asked)). Bounded in
//! bytes: when full, each new one looks at the few that came first and puts out those that no language has
//! and that nobody asked for since; if these are all in use, it is not kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use anygram_bits::Fingerprint;
use anygram_grammar::automata::Bytes;
use anygram_lexer::LexerError;
use anygram_lexer::transducer::{LexemeId, Lexing, Place, Transducer};
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::rests::Rest;
use crate::sweep::Found;
use crate::tokens::Tokens;

/// Bytes that are kept beside a vocabulary.
const SHARED_BYTES: usize = 64 << 20;

/// What is wanted of a piece and left of it, and the number of the trie.
pub(crate) type Key = (Fingerprint, u64);

/// The walks of a vocabulary that languages share.
#[derive(Default)]
pub(crate) struct SharedWalks {
    table: Mutex<Table>,
    /// By token of the vocabulary its place in the trie.
    positions: OnceLock<Box<[u32]>>,
}

#[derive(Default)]
struct Table {
    /// Those of one key differ in what begins a piece.
    walks: FxHashMap<Key, Vec<Arc<SharedWalk>>>,
    /// All of them, in the order in which they came or were kept again.
    order: VecDeque<(Key, Weak<SharedWalk>)>,
    bytes: usize,
}

/// So many are looked at to make room for one.
const LOOKED_AT: usize = 8;

/// A walk without the numbers of a language. It is in use as long as a language has it.
pub(crate) struct SharedWalk {
    /// The tokens after which the piece is in progress.
    pub stay: Arc<[Arc<Tokens>]>,
    /// The groups whose tokens these are, but for a list of the short ones.
    pub staying: Box<[Arc<Found>]>,
    /// The ways in which the piece can end.
    pub ends: Box<[End]>,
    /// The bytes of which it matters whether they begin a piece, and those that do.
    pub asked: Bytes,
    pub begun: Bytes,
    /// Whether it was taken over since it was last looked at to make room.
    pub is_wanted: AtomicBool,
}

/// A way in which a piece can end.
pub(crate) struct End {
    found: Arc<Found>,
    /// Whether tokens end here that do not stay.
    has_tokens: bool,
    /// What is left of the others.
    pub rest: Option<Arc<Rest>>,
    /// A text that leads there, once another language wants to know.
    path: OnceLock<Option<Box<[u8]>>>,
}

impl End {
    pub fn new(found: &Arc<Found>, has_tokens: bool, rest: Option<Arc<Rest>>) -> Self {
        Self { found: found.clone(), has_tokens, rest, path: OnceLock::new() }
    }

    /// The tokens that end here, if they do not stay.
    pub fn tokens(&self) -> Option<Arc<Tokens>> {
        self.has_tokens.then(|| self.found.tokens.clone())
    }
}

/// Which bytes begin a piece of a language, as far as that was asked.
#[derive(Default)]
pub(crate) struct Begun {
    asked: Bytes,
    begun: Bytes,
}

impl Begun {
    /// Those of some bytes that do.
    pub fn among(&mut self, lexing: &Lexing, asked: Bytes) -> Bytes {
        if self.asked.among(asked) != asked {
            let union = &lexing.lexicon.union;
            for byte in asked.iter().filter(|&byte| union.begins(union.class(byte))) {
                self.begun.insert(byte, byte);
            }
            self.asked.extend(asked);
        }
        self.begun.among(asked)
    }
}

impl SharedWalks {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Of what a panic left behind each entry is whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A walk that does for a lexeme what its own would.
    pub fn get(&self, key: Key, lexing: &Lexing, begun: &mut Begun) -> Option<Arc<SharedWalk>> {
        let table = self.table();
        let known = table.walks.get(&key)?;
        let found = known.iter().find(|known| begun.among(lexing, known.asked) == known.begun)?;
        found.is_wanted.store(true, Ordering::Relaxed);
        Some(found.clone())
    }

    /// Keeps a walk, if there is room; returns how many bytes of its groups are counted here from now on.
    pub fn insert(&self, key: Key, walk: SharedWalk) -> Option<(Arc<SharedWalk>, usize)> {
        let mut table = self.table();
        if !table.make_room() {
            return None;
        }
        let moved = walk.found().map(|found| found.share()).sum();
        let shared = Arc::new(walk);
        table.bytes += moved + shared.own_memory_usage();
        table.walks.entry(key).or_default().push(shared.clone());
        table.order.push_back((key, Arc::downgrade(&shared)));
        Some((shared, moved))
    }

    /// Where a piece ends, as a place of another language in which a lexeme has the walk. `trie` is the one
    /// that was walked, by number. `None` if a text does not lead where it has to.
    pub fn place(
        &self,
        end: &End,
        (lexing, transducer): (&Lexing, &mut Transducer),
        lexeme: LexemeId,
        (id, trie): (u64, &TokenTrie),
    ) -> Result<Option<Place>, LexerError> {
        let position = |token: TokenId| {
            if id != 0 {
                return trie.order().iter().position(|&other| other == token);
            }
            let positions = self.positions.get_or_init(|| positions(trie));
            positions.get(token.index()).map(|&position| position as usize)
        };
        let path = end.path.get_or_init(|| end.found.path(trie, position).map(Into::into));
        let (Some(path), mut place) = (path, transducer.place(lexeme)) else { return Ok(None) };
        for &byte in path {
            let class = lexing.lexicon.union.class(byte);
            let Some(next) = transducer.step_place(lexing, place, class)? else { return Ok(None) };
            place = next;
        }
        Ok(Some(place))
    }
}

fn positions(trie: &TokenTrie) -> Box<[u32]> {
    let n_ids = trie.order().iter().map(|token| token.index() + 1).max().unwrap_or(0);
    let mut positions = vec![0; n_ids];
    (0..).zip(trie.order()).for_each(|(position, token)| positions[token.index()] = position);
    positions.into()
}

impl Table {
    /// Whether there is room, if need be when some of the oldest are gone that are not in use.
    fn make_room(&mut self) -> bool {
        for _ in 0..LOOKED_AT {
            if self.bytes < SHARED_BYTES {
                return true;
            }
            let Some((key, walk)) = self.order.pop_front() else { return false };
            let Some(walk) = walk.upgrade() else { continue };
            // The table has it, and this.
            let is_in_use = Arc::strong_count(&walk) > 2 || walk.is_wanted.swap(false, Ordering::Relaxed);
            if is_in_use {
                self.order.push_back((key, Arc::downgrade(&walk)));
            } else {
                self.remove(key, &walk);
            }
        }
        self.bytes < SHARED_BYTES
    }

    fn remove(&mut self, key: Key, walk: &Arc<SharedWalk>) {
        if let Some(walks) = self.walks.get_mut(&key) {
            walks.retain(|other| !Arc::ptr_eq(other, walk));
            if walks.is_empty() {
                self.walks.remove(&key);
            }
        }
        self.bytes -= walk.found().map(|found| found.unshare()).sum::<usize>() + walk.own_memory_usage();
    }
}

impl SharedWalk {
    fn found(&self) -> impl Iterator<Item = &Arc<Found>> {
        self.staying.iter().chain(self.ends.iter().map(|end| &end.found))
    }

    /// Bytes on the heap, without the groups'.
    fn own_memory_usage(&self) -> usize {
        let list: usize = self.stay.iter().map(|tokens| size_of_val(tokens.listed())).sum();
        let parts = size_of_val(&*self.stay) + size_of_val(&*self.staying) + size_of_val(&*self.ends);
        size_of::<Self>() + parts + list + 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk with some groups of 4 KB.
    fn walk(groups: &[Arc<Found>]) -> SharedWalk {
        SharedWalk {
            stay: Arc::new([]),
            staying: groups.into(),
            ends: groups.iter().map(|found| End::new(found, true, None)).collect(),
            asked: Bytes::NONE,
            begun: Bytes::NONE,
            is_wanted: AtomicBool::new(false),
        }
    }

    #[test]
    fn what_is_in_use_stays_and_the_bound_holds() {
        let shared = SharedWalks::default();
        let large = || Arc::new(Found::new(Arc::new(Tokens::Many(vec![1; 1_000].into())), Vec::new()));
        // Two walks in a row have a group in common.
        let (mut common, mut kept, mut n_moved) = (large(), Vec::new(), 0);
        let n = 2 * SHARED_BYTES / 8_000;
        for at in 0..n {
            let groups = [common.clone(), large()];
            common = groups[1].clone();
            let key = (Fingerprint::of(&at), 0);
            let (known, moved) = shared.insert(key, walk(&groups)).expect("most are not in use");
            n_moved += moved;
            if at % 16 == 0 {
                kept.push((key, known));
            }
            assert!(shared.table().bytes < SHARED_BYTES + 16_000, "{at}");
        }
        assert!(n_moved > SHARED_BYTES * 3 / 4, "each group is counted once");
        let mut table = shared.table();
        assert!(table.walks.values().flatten().count() < n);
        for (key, known) in &kept {
            assert!(table.walks[key].iter().any(|walk| Arc::ptr_eq(walk, known)));
        }
        // What is taken out again was counted, no less and no more.
        kept.clear();
        while let Some((key, one)) = table.order.pop_front() {
            if let Some(one) = one.upgrade() {
                table.remove(key, &one);
            }
        }
        assert_eq!((table.bytes, table.walks.len()), (0, 0));
    }

    #[test]
    fn nothing_more_is_kept_where_all_is_in_use() {
        let shared = SharedWalks::default();
        let mut kept = Vec::new();
        let mut at = 0;
        while let Some((known, _)) = {
            let groups = [Arc::new(Found::new(Arc::new(Tokens::Many(vec![1; 100_000].into())), Vec::new()))];
            at += 1;
            shared.insert((Fingerprint::of(&at), 0), walk(&groups))
        } {
            kept.push(known);
        }
        assert!((100..1_000).contains(&kept.len()), "{}", kept.len());
    }
}
