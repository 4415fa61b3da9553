//! How long masks took, counted for statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The upper ends of the intervals, in nanoseconds; what took longer is counted behind them.
const ENDS: [u64; 14] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    5_000_000,
    20_000_000,
    100_000_000,
    1_000_000_000,
];

/// A histogram of how long masks took, which constraints share. Counting takes some nanoseconds and no lock.
///
/// >>> import anygram
/// >>> language = anygram.Compiler().compile('start: "yes" | "no"', "lark")
/// >>> times = anygram.MaskTimes()
/// >>> constraint = anygram.Constraint(language, anygram.Vocabulary.builtin(), times=times)
/// >>> for _ in range(3):
/// ...     mask = constraint.matcher().mask()
/// >>> times.looked_up, times.computed, sum(times.counts)
/// (2, 1, 3)
#[pyclass(frozen, module = "anygram", weakref)]
#[derive(Default)]
pub struct MaskTimes(pub Arc<Counters>);

/// The counters of [`MaskTimes`].
#[derive(Default)]
pub struct Counters {
    intervals: [AtomicU64; ENDS.len() + 1],
    nanoseconds: AtomicU64,
    looked_up: AtomicU64,
    computed: AtomicU64,
    failed: AtomicU64,
}

/// What became of a mask.
#[derive(Clone, Copy)]
pub enum Made {
    /// It was known.
    LookedUp,
    /// It was not.
    Computed,
    /// A limit was reached.
    Failed,
}

impl Counters {
    /// Counts a mask.
    pub fn count(&self, made: Made, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let interval = ENDS.partition_point(|&end| end < nanoseconds);
        let counter = match made {
            Made::LookedUp => &self.looked_up,
            Made::Computed => &self.computed,
            Made::Failed => &self.failed,
        };
        // Counters are read for statistics alone, each by itself.
        counter.fetch_add(1, Ordering::Relaxed);
        self.intervals[interval].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

#[pymethods]
impl MaskTimes {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The upper ends of the intervals, in seconds.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, ENDS.map(|end| end as f64 / 1e9))
    }

    /// How many masks took so long: for each interval, and last those that took longer.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.0.intervals.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// What all of them took together.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// How many masks were known.
    #[getter]
    fn looked_up(&self) -> u64 {
        self.0.looked_up.load(Ordering::Relaxed)
    }

    /// How many were computed.
    #[getter]
    fn computed(&self) -> u64 {
        self.0.computed.load(Ordering::Relaxed)
    }

    /// How many reached a limit.
    #[getter]
    fn failed(&self) -> u64 {
        self.0.failed.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("MaskTimes({} looked up, {} computed)", self.looked_up(), self.computed())
    }
}
