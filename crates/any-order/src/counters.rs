//! What each stage of the solver is worth: how often it ran, what it decided, how many steps and how long it
//! took.
//!
//! Counting is off unless it is asked for ([`Solver::count_stages`](crate::Solver::count_stages)): to see
//! what a stage of `admissible` decided, all open tokens are counted before and after it.

use std::time::{Duration, Instant};

use anygram_bits::work::Work;

/// One stage, summed over all questions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StageCount {
    /// The question and the stage.
    pub stage: &'static str,
    /// How often it ran.
    pub runs: u64,
    /// Canvases that `completable` decided by it, or pairs of hole and token that `admissible` did.
    pub decided: u64,
    /// Its steps, as limits count them.
    pub steps: u64,
    /// Its time on the wall.
    pub time: Duration,
}

/// The counts of all stages that ran, in the order in which they first did.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    stages: Vec<StageCount>,
    is_on: bool,
    /// Steps of works that have ended.
    spent: u64,
}

impl Counters {
    pub(crate) fn switched(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    /// The stages.
    pub fn iter(&self) -> impl Iterator<Item = &StageCount> {
        self.stages.iter()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A work of its own has ended.
    pub(crate) fn spend(&mut self, work: &Work) {
        self.spent += work.used();
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    /// When a stage begins, if that is counted.
    pub(crate) fn begin(&self) -> Option<Instant> {
        self.is_on.then(Instant::now)
    }

    /// Counts a stage that began then.
    pub(crate) fn add(&mut self, stage: &'static str, begun: Option<Instant>, (decided, steps): (u64, u64)) {
        let Some(begun) = begun else { return };
        let known = self.stages.iter().position(|count| count.stage == stage);
        let at = known.unwrap_or(self.stages.len());
        if known.is_none() {
            self.stages.push(StageCount { stage, runs: 0, decided: 0, steps: 0, time: Duration::ZERO });
        }
        let count = &mut self.stages[at];
        (count.runs, count.decided) = (count.runs + 1, count.decided + decided);
        count.steps += steps;
        count.time += begun.elapsed();
    }
}
