use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::LazyLock;

/// 128 bits that tell contents apart, within one process: equal contents have equal fingerprints, and that
/// different ones have is not to be expected, nor can it be arranged, since the keys of the hash are drawn
/// when the process begins.
///
/// So what was found out of a part of one grammar can be looked up for an equal part of another one.
///
/// ```
/// use anygram_bits::Fingerprint;
///
/// assert_eq!(Fingerprint::of(&("a", 1)), Fingerprint::of(&("a", 1)));
/// assert_ne!(Fingerprint::of(&("a", 1)), Fingerprint::of(&("a", 2)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fingerprint(u128);

static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

impl Fingerprint {
    /// That of a value. Cost: its size, twice.
    pub fn of(value: &(impl Hash + ?Sized)) -> Self {
        let [high, low] = &*KEYS;
        Self(u128::from(high.hash_one(value)) << 64 | u128::from(low.hash_one(value)))
    }
}
