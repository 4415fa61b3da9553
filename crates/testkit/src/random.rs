//! Draws of test cases.
//!
//! The numbers are those of [`anygram_bits::Random`]; only what is made of them differs. Seeds that tests
//! name, and how many of their cases are of which kind, depend on these draws, so they stay as they are.

/// The seeds that a random test runs: the first `n`, or `ANYGRAM_SEEDS` of them, or the one that
/// `ANYGRAM_SEED` names.
///
/// # Panics
/// If a variable is set to what is no number: another one than was meant would be run.
pub fn seeds(n: u64) -> Vec<u64> {
    let number = |name: &str| {
        let value = std::env::var_os(name)?;
        let number = value.to_str().and_then(|value| value.parse().ok());
        Some(number.unwrap_or_else(|| panic!("{name} is {value:?}, and no number")))
    };
    match number("ANYGRAM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("ANYGRAM_SEEDS").unwrap_or(n)).collect(),
    }
}

/// A stream of random numbers: good enough to draw test cases, for nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Random(anygram_bits::Random);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(anygram_bits::Random::new(seed))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`, near enough to uniform.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// A number of `low..=high`.
    ///
    /// # Panics
    /// If there is none.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
