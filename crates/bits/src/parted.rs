//! Hash tables that grow part by part.
//!
//! A hash table that grows moves all that it has at once: milliseconds where there are a hundred thousand
//! entries, in the middle of some token mask. Of a table in parts only a part grows at a time. Parts that
//! hold next to nothing would take memory and time instead, so a small table is one part.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// A power of two: with so many parts, a million entries grow by some ten thousand at a time.
const N_PARTS: usize = 64;

/// A table with more entries is in parts.
const MOST_IN_ONE: usize = 16 * N_PARTS;

/// A hash table, as [`hashbrown::HashTable`], in parts.
#[derive(Clone, Debug)]
pub struct PartedTable<T> {
    /// One, or [`N_PARTS`].
    parts: Vec<HashTable<T>>,
    len: usize,
}

impl<T> Default for PartedTable<T> {
    fn default() -> Self {
        Self { parts: vec![HashTable::new()], len: 0 }
    }
}

impl<T> PartedTable<T> {
    /// The entry of a hash that is equal.
    #[inline]
    pub fn find(&self, hash: u64, is_equal: impl FnMut(&T) -> bool) -> Option<&T> {
        self.parts[self.part(hash)].find(hash, is_equal)
    }

    /// Adds an entry that is not there yet; `hash_of` says the hash of others in its part.
    pub fn insert_unique(&mut self, hash: u64, value: T, hash_of: impl Fn(&T) -> u64) {
        if self.len == MOST_IN_ONE && self.parts.len() == 1 {
            let all = std::mem::take(&mut self.parts);
            self.parts.resize_with(N_PARTS, HashTable::new);
            for value in all.into_iter().flatten() {
                let hash = hash_of(&value);
                let part = self.part(hash);
                self.parts[part].insert_unique(hash, value, &hash_of);
            }
        }
        let part = self.part(hash);
        self.parts[part].insert_unique(hash, value, hash_of);
        self.len += 1;
    }

    /// Hash tables look at the lowest and the highest bits within a part.
    #[inline]
    fn part(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.parts.len() - 1)
    }

    /// Drops the entries of a part, and the part; says whether any is left. For a table that is not asked any
    /// more, to be dropped piece by piece.
    pub fn drop_part(&mut self) -> bool {
        self.len -= self.parts.pop().map_or(0, |part| part.len());
        !self.parts.is_empty()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.parts.iter_mut().for_each(HashTable::clear);
        self.len = 0;
    }
}

/// A map in parts, with the hash function of `rustc-hash`.
#[derive(Clone, Debug)]
pub struct PartedMap<K, V>(PartedTable<(K, V)>);

impl<K, V> Default for PartedMap<K, V> {
    fn default() -> Self {
        Self(PartedTable::default())
    }
}

impl<K: Hash + Eq, V> PartedMap<K, V> {
    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.0.find(FxBuildHasher.hash_one(key), |entry| entry.0 == *key).map(|entry| &entry.1)
    }

    /// Whether there is a value of a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Adds a key that has no value yet.
    pub fn insert_unique(&mut self, key: K, value: V) {
        debug_assert!(!self.contains_key(&key), "the key has a value");
        let hash = FxBuildHasher.hash_one(&key);
        self.0.insert_unique(hash, (key, value), |entry| FxBuildHasher.hash_one(&entry.0));
    }

    /// See [`PartedTable::drop_part`].
    pub fn drop_part(&mut self) -> bool {
        self.0.drop_part()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_a_map() {
        let mut map = PartedMap::default();
        assert!(map.is_empty());
        for key in 0..10_000u32 {
            map.insert_unique((key % 100, key / 100), key);
        }
        assert_eq!(map.len(), 10_000);
        for key in 0..10_000 {
            assert_eq!(map.get(&(key % 100, key / 100)), Some(&key));
            assert!(!map.contains_key(&(key % 100, key / 100 + 100)));
        }
        let parts: Vec<usize> = map.0.parts.iter().map(HashTable::len).collect();
        // In such a small part, or so large: keys that are close go to all parts.
        assert!(parts.iter().all(|len| (50..500).contains(len)), "{parts:?}");
        let mut dropped = map.clone();
        let n_dropped = std::iter::from_fn(|| dropped.drop_part().then(|| dropped.len())).count();
        assert_eq!((n_dropped, dropped.len()), (N_PARTS - 1, 0));
        assert!(!dropped.drop_part(), "nothing is left");
        map.clear();
        assert!(map.is_empty() && !map.contains_key(&(0, 0)));
    }
}
