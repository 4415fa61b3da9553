//! The tables that outputs grow together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use anygram_recognizer::{Choice, Mark, Recognizer};

use crate::budget::Budgets;
use crate::constraint::Constraint;
use crate::error::{MatchError, StepError};
use crate::frontier::Stepper;
use crate::mask::Walks;
use crate::memo::Memo;
use crate::recall::Selections;

/// The tables that outputs grow together.
pub(crate) struct Session {
    pub stepper: Stepper,
    pub choice: Choice,
    pub walks: Walks,
    pub memo: Memo,
    pub selections: Selections,
    /// The tables of outputs that have moved to another engine, and their point before any token was read.
    pub heavy: Option<(Arc<Mutex<Session>>, Mark)>,
    /// Made when a budget is first asked about.
    pub budgets: Option<Box<Budgets>>,
}

impl Session {
    pub fn new(constraint: &Constraint, choice: Choice) -> Result<Self, MatchError> {
        let stepper = Stepper::with(constraint.language(), Self::recognizer(constraint, choice)?);
        let walks = Walks::of(constraint.vocabulary());
        let (memo, selections) = (Memo::default(), Selections::default());
        Ok(Self { stepper, choice, walks, memo, selections, heavy: None, budgets: None })
    }

    fn recognizer(constraint: &Constraint, choice: Choice) -> Result<Box<dyn Recognizer>, MatchError> {
        let language = constraint.language();
        let recognizer = choice.recognizer(language.lexing().cfg.clone(), language.limits().recognizer);
        Ok(recognizer.map_err(StepError::from)?)
    }

    /// Bytes on the heap, roughly, without the tables of another engine.
    pub fn memory_usage(&self) -> usize {
        self.stepper.memory_usage()
            + self.walks.memory_usage()
            + self.memo.memory_usage()
            + self.budgets.as_ref().map_or(0, |budgets| budgets.memory_usage())
    }

    /// Bytes on the heap, with the tables of another engine; `None` if a thread works on them.
    pub fn try_memory_usage(session: &Mutex<Self>) -> Option<usize> {
        let own = {
            let session = free(session)?;
            (session.memory_usage(), session.heavy.as_ref().map(|(heavy, _)| heavy.clone()))
        };
        match own {
            (bytes, None) => Some(bytes),
            (bytes, Some(heavy)) => Some(bytes + free(&heavy)?.memory_usage()),
        }
    }

    /// Drops what only saves work: walks, masks and costs. Parser states stay, as outputs are on them.
    pub fn forget(session: &Mutex<Self>) {
        let forget = |session: &Mutex<Self>| {
            let mut locked = lock(session);
            let dropped = (locked.walks.forget(), locked.memo.forget(), locked.budgets.take());
            let heavy = locked.heavy.as_ref().map(|(heavy, _)| heavy.clone());
            // Many small tables: nobody has to wait until they are gone.
            drop(locked);
            drop(dropped);
            heavy
        };
        if let Some(heavy) = forget(session) {
            forget(&heavy);
        }
    }

    /// New parser states; what is known of tokens and masks moves over from the old ones.
    pub fn renewed(constraint: &Constraint, old: &mut Self) -> Result<Self, MatchError> {
        let recognizer = Self::recognizer(constraint, old.choice)?;
        let (stepper, has_shapes) = Stepper::renewed(constraint.language(), recognizer, &mut old.stepper);
        let memo = std::mem::take(&mut old.memo);
        Ok(Self {
            stepper,
            choice: old.choice,
            walks: std::mem::take(&mut old.walks),
            memo: if has_shapes { memo } else { Memo::default() },
            selections: std::mem::take(&mut old.selections),
            heavy: old.heavy.take(),
            budgets: old.budgets.take(),
        })
    }
}

/// Locks tables that no thread works on.
fn free(session: &Mutex<Session>) -> Option<MutexGuard<'_, Session>> {
    match session.try_lock() {
        Ok(session) => Some(session),
        Err(TryLockError::Poisoned(session)) => Some(session.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

pub(crate) fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    // A panic in another thread leaves tables that are complete up to its last step.
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
