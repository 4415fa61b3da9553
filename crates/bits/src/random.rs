//! Random numbers: the same for the same seed on every machine.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// SplitMix64 (Steele, Lea and Flood 2014), and what is drawn from it: for choices that can be repeated,
/// never for secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `[0, 1)`, of 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`, which is not 0; its bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items, each as likely.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Brings the items into a random order, each as likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|at| items.swap(at, self.below(at + 1)));
    }

    /// The number of a weight, each as likely as it weighs against the sum; weights are logarithms. `None` if
    /// there are none above zero.
    pub fn choose_by_log_weights(&mut self, log_weights: impl Iterator<Item = f64> + Clone) -> Option<usize> {
        let top = log_weights.clone().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return None;
        }
        let weight = |log: f64| (log - top).exp();
        let mut left = self.unit() * log_weights.clone().map(weight).sum::<f64>();
        let mut last = None;
        for (at, log) in log_weights.enumerate() {
            let weight = weight(log);
            if weight > 0.0 {
                last = Some(at);
                if left < weight {
                    break;
                }
                left -= weight;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_forever() {
        let mut random = Random::new(1);
        assert_eq!([random.bits(), random.bits()], [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67]);
    }

    #[test]
    fn draws_keep_to_their_bounds() {
        let mut random = Random::new(2);
        for _ in 0..1000 {
            assert!((0.0..1.0).contains(&random.unit()) && random.below(3) < 3);
            assert_eq!(random.choose_by_log_weights([f64::NEG_INFINITY, 0.0].into_iter()), Some(1));
        }
        assert_eq!(random.choose_by_log_weights([f64::NEG_INFINITY].into_iter()), None);
        assert!(random.chance(100) && !random.chance(0));
    }

    #[test]
    fn every_item_is_drawn() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        (0..500).for_each(|_| seen[*random.choose(&[0, 1, 2, 3, 4])] += 1);
        assert!(seen.iter().all(|&n| n > 50), "{seen:?}");
    }

    #[test]
    fn every_order_is_drawn() {
        let mut random = Random::new(8);
        let orders: std::collections::BTreeSet<[usize; 4]> = (0..500)
            .map(|_| {
                let mut items = [0, 1, 2, 3];
                random.shuffle(&mut items);
                items
            })
            .collect();
        assert_eq!(orders.len(), 24);
    }
}
