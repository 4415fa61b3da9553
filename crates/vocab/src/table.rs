//! The bytes of all tokens in one block, and the way back from bytes to token.

use crate::trie::{Sorted, leading_bytes};
use crate::{ErrorKind, MAX_TOKENS, TokenId, TokenTrie, VocabError};
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::OnceLock;

/// All tokens together may have this many bytes; beyond, a file is refused. The largest vocabularies in use
/// have some 2 MB; a trie of this many nodes takes some 300 MB.
pub(crate) const MAX_TOTAL_BYTES: usize = 1 << 25;

/// Token id to bytes; ids without bytes are special. Immutable once built.
#[derive(Debug)]
pub(crate) struct TokenTable {
    blob: Vec<u8>,
    /// Token `i` is `blob[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
}

impl TokenTable {
    /// Tokens of which the first begins at 0 and each other one where the one before ends; `blob` ends with
    /// the last.
    pub fn of_starts(starts: Vec<u32>, blob: Vec<u8>) -> Self {
        Self { blob, starts }
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The bytes of a token; empty for special ids and for those beyond the table.
    #[inline]
    pub fn bytes(&self, id: TokenId) -> &[u8] {
        match self.starts.get(id.index()..) {
            Some([start, end, ..]) => &self.blob[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The tokens that have a byte in them, in the order of their ids.
    pub fn with_byte(&self, byte: u8) -> impl Iterator<Item = TokenId> {
        let mut next = 0;
        memchr::memchr_iter(byte, &self.blob).filter_map(move |at| {
            // The token that ends behind it; none, if it was found already.
            let before = next;
            while self.starts.get(next).is_some_and(|&start| start as usize <= at) {
                next += 1;
            }
            (next > before).then(|| TokenId::new(next - 1))
        })
    }

    /// A token as the trie sorts them. Most are read as eight bytes, of which those behind the token are cut
    /// off: copying a few bytes takes longer.
    pub fn sorted(&self, id: TokenId) -> Sorted<'_> {
        let bytes = self.bytes(id);
        let start = self.starts.get(id.index()).map_or(0, |&start| start as usize);
        let leading = match self.blob.get(start..).and_then(<[u8]>::first_chunk) {
            Some(&eight) if (1..8).contains(&bytes.len()) => {
                u64::from_be_bytes(eight) & !(u64::MAX >> (8 * bytes.len()))
            }
            _ => leading_bytes(bytes),
        };
        (leading, bytes, id)
    }

    /// All ids, special ones too.
    pub fn ids(&self) -> impl Iterator<Item = TokenId> + use<> {
        (0..self.len()).map(TokenId::new)
    }

    /// The ordinary tokens in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        self.ids().map(|id| (id, self.bytes(id))).filter(|(_, bytes)| !bytes.is_empty())
    }

    /// The table without the bytes of these ids.
    pub fn without(&self, ids: &[TokenId]) -> Self {
        let mut builder = TableBuilder::default();
        for id in self.ids() {
            let bytes = if ids.contains(&id) { &[] } else { self.bytes(id) };
            builder.push(id, bytes);
        }
        builder.finish_unchecked()
    }

    pub fn memory_usage(&self) -> usize {
        self.blob.capacity() + 4 * self.starts.capacity()
    }
}

/// Collects tokens in any order.
#[derive(Default)]
pub(crate) struct TableBuilder {
    blob: Vec<u8>,
    tokens: Vec<(TokenId, std::ops::Range<u32>)>,
    n_ids: usize,
}

impl TableBuilder {
    /// Checks an id of a file or an option before anything is allocated for it.
    pub fn check_id(id: u64) -> Result<TokenId, VocabError> {
        if id >= MAX_TOKENS as u64 {
            return Err(VocabError::new(
                ErrorKind::Limit,
                format!("token id {id} is beyond the limit of {MAX_TOKENS} tokens: is this a vocabulary?"),
            ));
        }
        Ok(TokenId(id as u32))
    }

    pub fn push(&mut self, id: TokenId, bytes: &[u8]) {
        let start = self.blob.len();
        self.blob.extend_from_slice(bytes);
        self.push_written(id, start);
    }

    /// Adds a token whose bytes the caller has appended to [`blob`](Self::blob), from `start` on.
    pub fn push_written(&mut self, id: TokenId, start: usize) {
        self.tokens.push((id, start as u32..self.blob.len() as u32));
        self.n_ids = self.n_ids.max(id.index() + 1);
    }

    /// The bytes so far, for loaders that decode in place.
    pub fn blob(&mut self) -> &mut Vec<u8> {
        &mut self.blob
    }

    /// Whether the limit on the bytes of all tokens holds.
    pub fn check_size(&self) -> Result<(), VocabError> {
        Self::check_total(self.blob.len() as u64)
    }

    /// The same of so many bytes.
    pub fn check_total(n_bytes: u64) -> Result<(), VocabError> {
        if n_bytes > MAX_TOTAL_BYTES as u64 {
            return Err(VocabError::new(
                ErrorKind::Limit,
                format!(
                    "the tokens have more than {MAX_TOTAL_BYTES} bytes in all, the limit: is this a \
                     vocabulary?"
                ),
            ));
        }
        Ok(())
    }

    /// The table; an id pushed twice is an error, which says by `place` where in the file the n-th token
    /// stands, counted from 0 in the order of pushing.
    pub fn finish(self, place: impl Fn(usize) -> String) -> Result<TokenTable, VocabError> {
        self.check_size()?;
        // Which token, counted from 1 as they came, has an id; 0 for none.
        let mut owner = vec![0; self.n_ids];
        for ((id, _), number) in self.tokens.iter().zip(1u32..) {
            let earlier = std::mem::replace(&mut owner[id.index()], number);
            if earlier != 0 {
                let (first, second) = (place(earlier as usize - 1), place(number as usize - 1));
                return Err(VocabError::new(
                    ErrorKind::Syntax,
                    format!("{first} and {second} have the same id, {}: remove one of these tokens", id.0),
                ));
            }
        }
        Ok(self.finish_unchecked())
    }

    fn finish_unchecked(mut self) -> TokenTable {
        self.tokens.sort_by_key(|(id, _)| *id);
        let mut blob = Vec::with_capacity(self.blob.len());
        let mut starts = Vec::with_capacity(self.n_ids + 1);
        for (id, range) in self.tokens {
            starts.resize(id.index() + 1, blob.len() as u32);
            blob.extend_from_slice(&self.blob[range.start as usize..range.end as usize]);
        }
        starts.push(blob.len() as u32);
        TokenTable { blob, starts }
    }
}

/// A hash table from bytes to one id with these bytes. The keys stay in the [`TokenTable`], so a slot is four
/// bytes.
#[derive(Debug)]
pub(crate) struct TokenIndex {
    /// Open addressing with linear probing, at most half full; a power of two.
    slots: Vec<u32>,
}

const EMPTY: u32 = u32::MAX;

impl TokenIndex {
    /// An index of those of these tokens that are ordinary; of several with the same bytes the first counts.
    pub fn new(table: &TokenTable, ids: impl Iterator<Item = TokenId>) -> Self {
        let n_slots = (2 * table.iter().count()).next_power_of_two().max(2);
        let mut index = Self { slots: vec![EMPTY; n_slots] };
        for id in ids {
            let bytes = table.bytes(id);
            if bytes.is_empty() {
                continue;
            }
            let slot = index.find(table, bytes);
            if index.slots[slot] == EMPTY {
                index.slots[slot] = id.0;
            }
        }
        index
    }

    /// The id whose bytes these are.
    #[inline]
    pub fn get(&self, table: &TokenTable, bytes: &[u8]) -> Option<TokenId> {
        let id = self.slots[self.find(table, bytes)];
        (id != EMPTY).then_some(TokenId(id))
    }

    /// The slot that holds these bytes, or the empty one where they belong.
    fn find(&self, table: &TokenTable, bytes: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        let mut slot = hasher.finish() as usize & mask;
        while self.slots[slot] != EMPTY && table.bytes(TokenId(self.slots[slot])) != bytes {
            slot = (slot + 1) & mask;
        }
        slot
    }

    pub fn memory_usage(&self) -> usize {
        4 * self.slots.capacity()
    }
}

/// The ordinary tokens in the three forms that encoders and walkers want.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub table: TokenTable,
    /// Made when it is first asked for: masks do without it.
    index: OnceLock<TokenIndex>,
    pub trie: TokenTrie,
    /// Tokens that stand for a byte only where nothing else spells it, in ascending order: second choice for
    /// the index.
    pub last_resort: Vec<TokenId>,
}

impl Tokens {
    /// `last_resort` must ascend.
    pub fn new(table: TokenTable, last_resort: Vec<TokenId>) -> Self {
        let trie = TokenTrie::new(table.iter());
        Self::of_trie(table, trie, last_resort)
    }

    /// As [`new`](Self::new), where the trie of the table is known.
    pub fn of_trie(table: TokenTable, trie: TokenTrie, last_resort: Vec<TokenId>) -> Self {
        Self { table, index: OnceLock::new(), trie, last_resort }
    }

    /// The id whose bytes these are.
    #[inline]
    pub fn find(&self, bytes: &[u8]) -> Option<TokenId> {
        self.index.get_or_init(|| self.index()).get(&self.table, bytes)
    }

    fn index(&self) -> TokenIndex {
        let first_choice = self.table.ids().filter(|id| self.last_resort.binary_search(id).is_err());
        TokenIndex::new(&self.table, first_choice.chain(self.last_resort.iter().copied()))
    }

    pub fn memory_usage(&self) -> usize {
        self.table.memory_usage()
            + self.index.get().map_or(0, TokenIndex::memory_usage)
            + self.trie.memory_usage()
            + 4 * self.last_resort.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_in_any_order_with_holes() {
        let mut builder = TableBuilder::default();
        builder.push(TokenId(4), b"four");
        builder.push(TokenId(1), b"one");
        let table = builder.finish(|n| n.to_string()).unwrap();
        assert_eq!(table.len(), 5);
        let all: Vec<&[u8]> = (0..7).map(|i| table.bytes(TokenId(i))).collect();
        assert_eq!(all, [&b""[..], b"one", b"", b"", b"four", b"", b""]);
        assert_eq!(table.without(&[TokenId(1)]).iter().count(), 1);
        assert_eq!(table.without(&[TokenId(1)]).len(), 5);
    }

    #[test]
    fn tokens_that_have_a_byte() {
        let mut builder = TableBuilder::default();
        for (id, bytes) in [(1, "a"), (2, "bab"), (4, "aa"), (5, "c"), (7, "ca")] {
            builder.push(TokenId(id), bytes.as_bytes());
        }
        let table = builder.finish(|n| n.to_string()).unwrap();
        for (byte, ids) in [(b'a', &[1, 2, 4, 7][..]), (b'b', &[2]), (b'c', &[5, 7]), (b'd', &[])] {
            assert_eq!(table.with_byte(byte).map(|id| id.0).collect::<Vec<_>>(), ids);
        }
    }

    #[test]
    fn the_index_finds_the_first_id() {
        let mut builder = TableBuilder::default();
        for (i, text) in ["x", "y", "x", "", "zz"].iter().enumerate() {
            builder.push(TokenId::new(i), text.as_bytes());
        }
        let table = builder.finish(|n| n.to_string()).unwrap();
        let index = TokenIndex::new(&table, table.ids());
        assert_eq!(index.get(&table, b"x"), Some(TokenId(0)));
        assert_eq!(index.get(&table, b"zz"), Some(TokenId(4)));
        assert_eq!(index.get(&table, b"z"), None);
        assert_eq!(index.get(&table, b""), None);
        assert_eq!(TokenIndex::new(&table, table.ids().skip(1)).get(&table, b"x"), Some(TokenId(2)));
    }

    #[test]
    fn one_id_twice_is_an_error() {
        let mut builder = TableBuilder::default();
        builder.push(TokenId(1), b"a");
        builder.push(TokenId(1), b"b");
        let error = builder.finish(|n| format!("place {n}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Syntax);
        assert!(error.to_string().contains("place 0 and place 1 have the same id, 1"), "{error}");
        assert_eq!(TableBuilder::check_id(MAX_TOKENS as u64).unwrap_err().kind(), ErrorKind::Limit);
    }
}
