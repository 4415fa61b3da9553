//! What is made once for all grammars of a process: every JSON schema has the same brackets, commas and
//! blanks.
//!
//! What is found here counts as many steps of compiling as making it does, all at once, so that it does not
//! depend on what was compiled before whether a limit is met (only which, if there are several).

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Things by what they are made of.
pub(crate) struct Shared<K, V>(Mutex<Option<FxHashMap<K, V>>>);

/// So many things are kept, and then all are dropped: some ten are what all schemas have.
const MANY: usize = 200;

impl<K: Eq + Hash, V: Clone> Shared<K, V> {
    /// Nothing.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What was kept.
    pub fn get<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(key).cloned()
    }

    /// Keeps a thing.
    pub fn insert(&self, key: K, value: V) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        if all.len() >= MANY {
            all.clear();
        }
        all.insert(key, value);
    }
}
