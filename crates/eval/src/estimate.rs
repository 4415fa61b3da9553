//! Estimates from a few tries per prompt, and paired differences between methods on the same prompts.

use anygram_bits::Random;

/// The chance that of `k` tries at least one succeeds, when `c` of `n` did: `1 - C(n-c, k) / C(n, k)`,
/// without bias (Chen et al. 2021, *Evaluating Large Language Models Trained on Code*, equation 1). `None` if
/// there are fewer than `k` tries.
pub fn pass_at(n: usize, c: usize, k: usize) -> Option<f64> {
    if k == 0 || k > n || c > n {
        return None;
    }
    // The product of (n - c - i) / (n - i): the chance that all k fail.
    let fails = (0..k).map(|i| (n - c).saturating_sub(i) as f64 / (n - i) as f64).product::<f64>();
    Some(1.0 - fails)
}

/// The mean and the standard deviation (by n - 1) of some values; `None` of none.
pub fn mean_and_spread(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let spread = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
    (!values.is_empty()).then_some((mean, spread))
}

/// What a share of the values is not above; of none, zero.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((share * sorted.len() as f64) as usize).or(sorted.last()).copied().unwrap_or(0.0)
}

/// A mean difference over prompts, and its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Difference {
    /// Prompts that both answered.
    pub n_prompts: usize,
    /// Prompts on which the one is better, and on which the other is.
    pub discordant: (usize, usize),
    /// The mean of the differences.
    pub mean: f64,
    /// The interval, 95 %.
    pub interval: (f64, f64),
}

impl Difference {
    /// Whether zero lies outside of the interval.
    pub fn is_significant(&self) -> bool {
        self.interval.0 > 0.0 || self.interval.1 < 0.0
    }
}

/// Resamples of [`paired`].
const RESAMPLES: usize = 2_000;

/// The mean of differences, one a prompt (each the difference of two means over runs), with a paired
/// bootstrap over prompts: resampled with replacement, 95 % by percentiles (Efron and Tibshirani 1993,
/// chapter 13). Runs of a prompt stay together, as they are not independent. Where no prompt differs the
/// bootstrap has nothing to resample, and the interval is that of the rule of three: with so many prompts a
/// share of `3 / n` would have shown in 95 of 100 cases.
///
/// The same for the same differences. Cost: resamples × prompts.
pub fn paired(differences: &[f64]) -> Option<Difference> {
    let n = differences.len();
    let (mean, _) = mean_and_spread(differences)?;
    let better = differences.iter().filter(|difference| **difference > 0.0).count();
    let worse = differences.iter().filter(|difference| **difference < 0.0).count();
    let interval = if better + worse == 0 {
        let bound = (3.0 / n as f64).min(1.0);
        (-bound, bound)
    } else {
        let mut random = Random::new(n as u64);
        let mut resample = || (0..n).map(|_| differences[random.below(n)]).sum::<f64>() / n as f64;
        let means: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
        (quantile(&means, 0.025), quantile(&means, 0.975))
    };
    Some(Difference { n_prompts: n, discordant: (better, worse), mean, interval })
}

/// The two-sided p-value of McNemar's exact test: that of `better + worse` prompts that differ so few or
/// fewer lie on one side, were both sides as likely.
pub fn mcnemar(better: usize, worse: usize) -> f64 {
    let (n, few) = (better + worse, better.min(worse));
    // Logarithms of the binomial coefficients, one from the other.
    let mut log = n as f64 * -std::f64::consts::LN_2;
    let mut sum = 0.0;
    for i in 0..=few {
        sum += log.exp();
        log += ((n - i) as f64).ln() - ((i + 1) as f64).ln();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All subsets of size k, counted.
    fn brute_force(n: usize, c: usize, k: usize) -> f64 {
        let (mut all, mut with) = (0u32, 0u32);
        for subset in 0u32..1 << n {
            if subset.count_ones() as usize == k {
                all += 1;
                with += u32::from(subset & ((1 << c) - 1) != 0);
            }
        }
        f64::from(with) / f64::from(all)
    }

    #[test]
    fn pass_at_is_what_all_subsets_say() {
        for n in 1..=10 {
            for c in 0..=n {
                for k in 1..=n {
                    let said = pass_at(n, c, k).unwrap();
                    assert!((said - brute_force(n, c, k)).abs() < 1e-12, "{n} {c} {k}");
                }
            }
        }
        assert_eq!(pass_at(4, 1, 5), None);
        assert_eq!(pass_at(4, 1, 0), None);
        assert_eq!(pass_at(4, 5, 1), None);
    }

    #[test]
    fn values_by_hand() {
        assert_eq!(mean_and_spread(&[1.0, 2.0, 3.0, 4.0]), Some((2.5, (5.0f64 / 3.0).sqrt())));
        assert_eq!(mean_and_spread(&[7.0]), Some((7.0, 0.0)));
        assert_eq!(mean_and_spread(&[]), None);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
        // 2 (C(10,0) + C(10,1) + C(10,2)) / 2^10 = 112 / 1024.
        assert!((mcnemar(8, 2) - 112.0 / 1024.0).abs() < 1e-12);
        assert!((mcnemar(0, 5) - 2.0 / 32.0).abs() < 1e-12);
        assert_eq!(mcnemar(0, 0), 1.0);
        assert_eq!(mcnemar(3, 3), 1.0);
    }

    #[test]
    fn intervals_hold_what_they_should() {
        let same = paired(&[0.0; 200]).unwrap();
        assert_eq!((same.mean, same.interval, same.is_significant()), (0.0, (-0.015, 0.015), false));
        let better: Vec<f64> = (0..200).map(|at| if at % 5 == 0 { 1.0 } else { 0.0 }).collect();
        let better = paired(&better).unwrap();
        assert!(better.is_significant() && better.discordant == (40, 0));
        // The standard error is sqrt(0.2 × 0.8 / 200) = 0.0283; the interval is about 1.96 times that to each
        // side.
        let half = (better.interval.1 - better.interval.0) / 2.0;
        assert!((half - 0.0554).abs() < 0.006, "{half}");
        assert_eq!(paired(&[]), None);
        assert_eq!(paired(&[1.0, -1.0, 0.5]), paired(&[1.0, -1.0, 0.5]));
    }

    /// Of many experiments in which there is no difference few show one.
    #[test]
    fn intervals_cover() {
        let mut random = Random::new(5);
        let mut experiment = || {
            let differences: Vec<f64> = (0..100).map(|_| random.below(3) as f64 - 1.0).collect();
            paired(&differences).is_some_and(|difference| difference.is_significant())
        };
        let n_significant = (0..200).filter(|_| experiment()).count();
        assert!((2..=25).contains(&n_significant), "{n_significant} of 200");
    }
}
