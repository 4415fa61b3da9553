//! Teacher-forced decoding of texts, each step measured.

use indicatif::ProgressBar;
use serde::Serialize;

use super::engine::Engine;
use crate::measure::timed;

/// The microseconds of one step.
#[derive(Clone, Copy)]
pub struct Step {
    pub mask: f64,
    pub advance: f64,
}

/// What became of texts.
#[derive(Default)]
pub struct Pass {
    /// By text, as far as it was decoded.
    pub texts: Vec<Vec<Step>>,
    pub first_mask: Option<f64>,
    pub stops: Stops,
    /// Where a mask and `advance` disagree.
    pub wrong: Vec<String>,
}

/// Texts that were not decoded to the end.
#[derive(Clone, Default, Serialize)]
pub struct Stops {
    /// The true token was not in the mask.
    pub rejected: usize,
    /// By an error: a limit.
    pub errors: usize,
    /// The text ended where it could not.
    pub not_sentences: usize,
    /// The time for all was used up.
    pub is_cut: bool,
    /// The first of them.
    pub first: Option<String>,
}

impl Stops {
    pub fn total(&self) -> usize {
        self.rejected + self.errors + self.not_sentences
    }

    fn note(&mut self, text: usize, step: usize, message: &str) {
        self.first.get_or_insert_with(|| format!("text {}, token {step}: {message}", text + 1));
    }
}

/// Decodes texts. After `seconds` of CPU time in all it stops.
pub fn decode(engine: &mut dyn Engine, texts: &[&[u32]], seconds: f64, bar: &ProgressBar) -> Pass {
    let (mut pass, mut spent) = (Pass::default(), 0.0);
    for (number, text) in texts.iter().enumerate() {
        engine.begin();
        let mut steps = Vec::with_capacity(text.len());
        for (at, &token) in text.iter().enumerate() {
            if spent > seconds * 1e6 {
                pass.stops.is_cut = true;
                break;
            }
            let (masked, mask) = timed(|| engine.mask());
            pass.first_mask.get_or_insert(mask);
            let is_allowed = masked.is_ok() && engine.allows(token);
            let advanced = masked.and_then(|()| {
                let (advanced, advance) = timed(|| engine.advance(token));
                Ok((advanced?, advance))
            });
            spent += mask;
            match (is_allowed, advanced) {
                (_, Err(message)) => {
                    pass.stops.errors += 1;
                    pass.stops.note(number, at, &message);
                    break;
                }
                (false, Ok((false, _))) => {
                    pass.stops.rejected += 1;
                    pass.stops.note(number, at, "not in the mask");
                    break;
                }
                (true, Ok((true, advance))) => {
                    steps.push(Step { mask, advance });
                    spent += advance;
                }
                (is_allowed, Ok((is_advanced, _))) => {
                    pass.wrong.push(format!(
                        "text {}, token {at}: {token} is{} in the mask but is {}",
                        number + 1,
                        if is_allowed { "" } else { " not" },
                        if is_advanced { "advanced" } else { "refused" }
                    ));
                    break;
                }
            }
        }
        if steps.len() == text.len() && !engine.is_sentence() {
            pass.stops.not_sentences += 1;
            pass.stops.note(number, text.len(), "no sentence");
        }
        bar.inc(1);
        pass.texts.push(steps);
        if pass.stops.is_cut {
            break;
        }
    }
    pass
}

/// The medians of several passes over the same texts, step by step, as far as all of them came.
pub fn medians(passes: &[Pass]) -> Vec<Vec<Step>> {
    let n_texts = passes.iter().map(|pass| pass.texts.len()).min().unwrap_or(0);
    let text = |number: usize| {
        let length = passes.iter().map(|pass| pass.texts[number].len()).min().unwrap_or(0);
        let step = |at: usize| {
            let median = |get: fn(&Step) -> f64| {
                crate::measure::median(
                    &passes.iter().map(|pass| get(&pass.texts[number][at])).collect::<Vec<_>>(),
                )
            };
            Step { mask: median(|step| step.mask), advance: median(|step| step.advance) }
        };
        (0..length).map(step).collect()
    };
    (0..n_texts).map(text).collect()
}

/// What is told of times, in microseconds; or of how many times as fast something is.
#[derive(Clone, Copy, Serialize)]
pub struct Stats {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    pub mean: f64,
}

impl Stats {
    /// Names and values in the order of the columns.
    pub const NAMES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "max", "mean"];

    pub fn values(&self) -> [f64; 6] {
        [self.p50, self.p90, self.p99, self.p999, self.max, self.mean]
    }

    /// Of nothing, all zeros.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            values.get((share * values.len() as f64) as usize).or(values.last()).copied().unwrap_or(0.0)
        };
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1.0), mean }
    }

    fn over(&self, other: &Self) -> Self {
        let over = |get: fn(&Self) -> f64| get(self) / get(other).max(1e-3);
        Self {
            p50: over(|s| s.p50),
            p90: over(|s| s.p90),
            p99: over(|s| s.p99),
            p999: over(|s| s.p999),
            max: over(|s| s.max),
            mean: over(|s| s.mean),
        }
    }
}

/// The times of steps.
#[derive(Clone, Copy, Serialize)]
pub struct Times {
    pub steps: usize,
    pub mask: Stats,
    pub advance: Stats,
    /// Mask and advance together.
    pub both: Stats,
}

impl Times {
    /// Nothing of no steps.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Option<Self> {
        let steps: Vec<&Step> = steps.into_iter().collect();
        let of = |get: fn(&Step) -> f64| Stats::of(steps.iter().map(|step| get(step)).collect());
        let (mask, advance, both) = (of(|s| s.mask), of(|s| s.advance), of(|s| s.mask + s.advance));
        (!steps.is_empty()).then_some(Self { steps: steps.len(), mask, advance, both })
    }
}

/// Two engines on the steps that both have done.
#[derive(Clone, Copy, Serialize)]
pub struct Comparison {
    pub ours: Times,
    pub peer: Times,
    /// How many times as fast ours is.
    pub mask: Stats,
    pub advance: Stats,
    pub both: Stats,
}

impl Comparison {
    pub fn of(ours: &[Vec<Step>], peer: &[Vec<Step>]) -> Option<Self> {
        let common = || ours.iter().zip(peer).flat_map(|(ours, peer)| ours.iter().zip(peer));
        let (ours, peer) = (Times::of(common().map(|pair| pair.0))?, Times::of(common().map(|pair| pair.1))?);
        let over = |get: fn(&Times) -> &Stats| get(&peer).over(get(&ours));
        let (mask, advance, both) = (over(|t| &t.mask), over(|t| &t.advance), over(|t| &t.both));
        Some(Self { ours, peer, mask, advance, both })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allows even tokens and refuses those below its bound.
    struct Fake(u32);

    impl Engine for Fake {
        fn begin(&mut self) {}

        fn mask(&mut self) -> Result<(), String> {
            Ok(())
        }

        fn allows(&self, token: u32) -> bool {
            token.is_multiple_of(2)
        }

        fn advance(&mut self, token: u32) -> Result<bool, String> {
            Ok(token >= self.0)
        }

        fn is_sentence(&mut self) -> bool {
            false
        }

        fn memory(&self) -> Option<usize> {
            None
        }

        fn fork(&mut self) -> Box<dyn Engine> {
            Box::new(Self(self.0))
        }
    }

    #[test]
    fn masks_and_advances_that_disagree_are_wrong() {
        let bar = ProgressBar::hidden();
        let pass = decode(&mut Fake(2), &[&[2, 4], &[2, 1], &[2, 0], &[2, 3]], f64::INFINITY, &bar);
        assert_eq!((pass.stops.not_sentences, pass.stops.rejected, pass.stops.errors), (1, 1, 0));
        assert_eq!(pass.wrong.len(), 2, "{:?}", pass.wrong);
        assert_eq!(pass.texts.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 1]);
        let cut = decode(&mut Fake(2), &[&[2, 4], &[2, 4]], -1.0, &bar);
        assert!(cut.stops.is_cut && cut.texts.len() == 1);
    }

    #[test]
    fn comparisons_take_steps_that_both_have_done() {
        let steps = |times: &[f64]| times.iter().map(|&mask| Step { mask, advance: 1.0 }).collect::<Vec<_>>();
        let (ours, peer) = (vec![steps(&[1.0, 2.0, 9.0]), steps(&[3.0])], vec![steps(&[7.0, 7.0])]);
        let pair = Comparison::of(&ours, &peer).unwrap();
        assert_eq!((pair.ours.steps, pair.peer.steps), (2, 2));
        assert_eq!((pair.ours.both.mean, pair.both.mean), (2.5, 3.2));
        assert!(Comparison::of(&ours, &[]).is_none());
    }
}
