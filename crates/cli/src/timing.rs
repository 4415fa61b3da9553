//! Times of many small steps, in thread CPU time, which other work on the machine does not inflate.

use std::time::Duration;

use cpu_time::ThreadTime;
use serde::Serialize;

/// Measures one thing after another.
#[derive(Default)]
pub struct Times(Vec<Duration>);

/// What is reported of [`Times`], in microseconds.
#[derive(Serialize)]
pub struct Summary {
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

impl Times {
    /// Does something and keeps how long it took.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = ThreadTime::now();
        let result = work();
        self.0.push(start.elapsed());
        result
    }

    /// Keeps a time, as that of so many pieces of work of the same length.
    pub fn add(&mut self, time: Duration, n: usize) {
        self.0.extend(std::iter::repeat_n(time / n.max(1) as u32, n));
    }

    /// The summary; of nothing, all zeros.
    pub fn summary(&self) -> Summary {
        let mut sorted: Vec<f64> = self.0.iter().map(|time| time.as_secs_f64() * 1e6).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            sorted.get((share * sorted.len() as f64) as usize).or(sorted.last()).copied().unwrap_or(0.0)
        };
        let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
        let round = |us: f64| (us * 10.0).round() / 10.0;
        Summary {
            mean: round(mean),
            p50: round(at(0.5)),
            p90: round(at(0.9)),
            p99: round(at(0.99)),
            max: round(at(1.0)),
        }
    }
}
