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
//! bytes: when full, those go that no language has taken over, and if all are in use, nothing more is kept.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anygram_bits::Fingerprint;
use anygram_grammar::automata::Bytes;
use anygram_lexer::LexerError;
use anygram_lexer::transducer::{LexemeId, Lexing, Place, Transducer};
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::mask::Tokens;
use crate::rests::Rest;
use crate::sweep::Found;

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
    bytes: usize,
    /// So many have to come before it is looked again which are in use.
    n_waiting: usize,
}

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
        known.iter().find(|known| begun.among(lexing, known.asked) == known.begun).cloned()
    }

    /// Keeps a walk, if there is room; returns how many bytes of its groups are counted here from now on.
    pub fn insert(&self, key: Key, walk: SharedWalk) -> Option<(Arc<SharedWalk>, usize)> {
        let mut table = self.table();
        if !table.has_room() {
            return None;
        }
        let moved = walk.found().map(|found| found.count()).sum();
        let shared = Arc::new(walk);
        table.bytes += moved + shared.own_memory_usage();
        table.walks.entry(key).or_default().push(shared.clone());
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
    /// Whether there is room, if need be when what is not in use is gone.
    fn has_room(&mut self) -> bool {
        if self.bytes < SHARED_BYTES {
            return true;
        }
        if self.n_waiting > 0 {
            self.n_waiting -= 1;
            return false;
        }
        self.walks.retain(|_, walks| {
            walks.retain(|walk| Arc::strong_count(walk) > 1);
            !walks.is_empty()
        });
        let mut seen = FxHashSet::default();
        let all = self.walks.values().flatten();
        let found = all.clone().flat_map(|walk| walk.found());
        let found = found.filter(|found| seen.insert(Arc::as_ptr(found)));
        self.bytes = found.map(|found| found.memory_usage()).sum::<usize>()
            + all.map(|walk| walk.own_memory_usage()).sum::<usize>();
        self.n_waiting = self.walks.len() / 2;
        self.bytes < SHARED_BYTES
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
