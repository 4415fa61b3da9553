//! Work, counted: bounds that fire alike on every machine, and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ErrorKind;

/// A request to stop, shared between the one who works and the one who waits.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Nothing is to stop yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop. It is seen within some ten thousand steps, less than a millisecond.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why work has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// It took more steps than allowed.
    #[error("this takes more than {limit} steps; raise the limit `{option}`")]
    OutOfSteps {
        /// The limit in force.
        limit: u64,
        /// The option that sets it.
        option: &'static str,
    },
    /// Somebody asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Stopped {
    /// [`ErrorKind::Limit`] or [`ErrorKind::Cancelled`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfSteps { .. } => ErrorKind::Limit,
            Self::Cancelled => ErrorKind::Cancelled,
        }
    }

    /// The limit that was reached: the option that sets it, and its value.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match *self {
            Self::OutOfSteps { limit, option } => Some((option, limit)),
            Self::Cancelled => None,
        }
    }
}

/// A count of steps, with a limit.
///
/// A step is some elementary operation, a few nanoseconds: a transition of an automaton looked up, an item of
/// a parser made. The count depends on the input alone, never on the clock, so the limit is met at the same
/// place everywhere.
#[derive(Clone, Debug)]
pub struct Work {
    used: u64,
    limit: u64,
    option: &'static str,
    /// When to look at `cancel` or the limit again.
    look_at: u64,
    cancel: Option<Cancel>,
}

/// Steps between two looks at a request to stop.
const STRIDE: u64 = 1 << 14;

impl Work {
    /// At most `limit` steps; `option` names the limit for those who hit it.
    pub fn new(limit: u64, option: &'static str) -> Self {
        Self { used: 0, limit, option, look_at: limit, cancel: None }
    }

    /// Without bounds.
    pub fn unbounded() -> Self {
        Self::new(u64::MAX, "")
    }

    /// Stops also when asked to.
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        (self.cancel, self.look_at) = (Some(cancel), 0);
        self
    }

    /// The steps so far.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The steps that are left.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Counts steps, done or about to be done.
    #[inline]
    pub fn spend(&mut self, steps: usize) -> Result<(), Stopped> {
        self.used = self.used.saturating_add(steps as u64);
        if self.used > self.look_at { self.look() } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Stopped> {
        if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            return Err(Stopped::Cancelled);
        }
        if self.used > self.limit {
            return Err(Stopped::OutOfSteps { limit: self.limit, option: self.option });
        }
        self.look_at = if self.cancel.is_some() { self.limit.min(self.used + STRIDE) } else { self.limit };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_met_exactly_and_again() {
        let mut work = Work::new(10, "some_steps");
        assert_eq!((work.spend(4), work.left(), work.spend(6)), (Ok(()), 6, Ok(())));
        let error = Err(Stopped::OutOfSteps { limit: 10, option: "some_steps" });
        assert_eq!((work.spend(1), work.spend(0), work.used(), work.left()), (error, error, 11, 0));
        assert_eq!(Work::unbounded().spend(usize::MAX), Ok(()));
    }

    #[test]
    fn a_request_to_stop_is_seen_soon() {
        let cancel = Cancel::new();
        let mut work = Work::new(u64::MAX, "").with_cancel(cancel.clone());
        assert_eq!((work.spend(1), work.spend(1)), (Ok(()), Ok(())));
        cancel.cancel();
        let steps = (0..).take_while(|_| work.spend(1).is_ok()).count() as u64;
        assert!(steps <= STRIDE, "{steps}");
    }
}
