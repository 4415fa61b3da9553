//! The parser states of shared tables, one generation after another.
//!
//! Tables are full when texts have made as many parser states as a limit allows. Then they begin new ones, an
//! *epoch*, and what is known of tokens and masks stays. Outputs still name states of the epoch before. Each
//! moves over when it is used next: the states that it stands on, and those in which their items began, are
//! made again in the present epoch (as a copying collector does with what is reachable; Cheney 1970). So no
//! step waits for other outputs, and what is left behind goes with the last output that names it.

use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anygram_bits::{Pages, PartedMap, PartedTable};
use anygram_recognizer::{Recognizer, StateId};
use rustc_hash::FxHashMap;

/// What outputs hold as long as they name parser states of an epoch.
#[derive(Default)]
pub(crate) struct Epoch {
    /// What is left of it once the next has begun.
    former: Mutex<Option<Former>>,
}

/// What is left of an epoch.
pub(crate) struct Former {
    pub states: Box<dyn Recognizer>,
    /// Which lexemes outputs name beside them, by how often lexemes had begun anew. Where they did again,
    /// only the tokens of an output tell where it is.
    pub lexemes: u64,
    /// The states that were taken over, and to which epoch.
    pub known: FxHashMap<StateId, StateId>,
    pub known_to: u64,
}

impl Epoch {
    /// What is left of it; `None` as long as it is the present one.
    pub fn former(&self) -> MutexGuard<'_, Option<Former>> {
        // Of what a panic left behind each entry is whole.
        self.former.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it.
    pub fn end(&self, mut states: Box<dyn Recognizer>, lexemes: u64) {
        if let Some(states) = states.shared_states_mut() {
            states.retire();
        }
        *self.former() = Some(Former { states, lexemes, known: FxHashMap::default(), known_to: 0 });
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.former().as_ref().map_or(0, |former| former.states.memory_usage())
    }
}

/// What is not needed any more and is dropped part by part, a part at each operation.
///
/// Large tables have millions of parts on the heap. Dropped at once, they keep whoever waits for a mask
/// waiting; dropped on another thread, they keep the allocator busy, for which all others wait.
#[derive(Default)]
pub(crate) struct Fading(Vec<Box<dyn Parts>>);

/// Something that can be dropped part by part.
pub(crate) trait Parts: Send {
    /// Drops a part; says whether any is left.
    fn drop_part(&mut self) -> bool;
}

impl<T: Send> Parts for PartedTable<T> {
    fn drop_part(&mut self) -> bool {
        self.drop_part()
    }
}

impl<K: Hash + Eq + Send, V: Send> Parts for PartedMap<K, V> {
    fn drop_part(&mut self) -> bool {
        self.drop_part()
    }
}

impl<T: Send> Parts for Pages<T> {
    fn drop_part(&mut self) -> bool {
        self.drop_part()
    }
}

impl Fading {
    pub fn add(&mut self, parts: impl Parts + 'static) {
        self.0.push(Box::new(parts));
    }

    /// Drops a part.
    pub fn fade(&mut self) {
        self.0.pop_if(|last| !last.drop_part());
    }
}

/// What an output has of an epoch: its number, and the epoch itself as soon as it names states of it.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub number: u64,
    pub epoch: Option<Arc<Epoch>>,
}
