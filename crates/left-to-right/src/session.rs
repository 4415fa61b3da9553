//! The tables that outputs grow together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use anygram_recognizer::{Choice, Mark, Recognizer};

use crate::bound::Share;
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
    /// What a bound on many tables knows of these.
    pub share: Option<Share>,
}

impl Session {
    pub fn new(constraint: &Constraint, choice: Choice) -> Result<Self, MatchError> {
        let stepper = Stepper::with(constraint.language(), Self::recognizer(constraint, choice)?);
        let walks = Walks::of(constraint.vocabulary());
        let (memo, selections) = (Memo::default(), Selections::default());
        Ok(Self { stepper, choice, walks, memo, selections, heavy: None, budgets: None, share: None })
    }

    /// Tables that outputs can share, counted where the constraint has a bound.
    pub fn shared(self, constraint: &Constraint) -> Arc<Mutex<Self>> {
        match constraint.bound() {
            Some(bound) => bound.register(self),
            None => Arc::new(Mutex::new(self)),
        }
    }

    /// Locks tables that no other output is on.
    pub fn alone(session: &Arc<Mutex<Self>>) -> Option<MutexGuard<'_, Self>> {
        (Arc::strong_count(session) == 1).then(|| lock(session))
    }

    /// Counts the tables of a constraint with a bound, and empties others if all are too large.
    pub fn count(session: &Mutex<Self>) {
        let bound = {
            let mut locked = lock(session);
            let Some(mut share) = locked.share.take() else { return };
            let budgets = || locked.budgets.as_ref().map_or(0, |budgets| budgets.memory_usage());
            share.count(locked.memory_of_masks(), budgets);
            locked.share.insert(share).bound().clone()
        };
        bound.make_room();
    }

    /// Drops what only saves work, unless a thread works on it; says whether it did.
    pub fn try_empty(session: &Mutex<Self>) -> bool {
        let Some(mut locked) = free(session) else { return false };
        let dropped = locked.empty();
        let bytes = locked.memory_usage();
        if let Some(share) = &mut locked.share {
            share.count_emptied(bytes);
        }
        drop(locked);
        drop(dropped);
        true
    }

    fn empty(&mut self) -> impl Sized + use<> {
        (self.walks.forget(), self.memo.forget(), self.budgets.take())
    }

    fn recognizer(constraint: &Constraint, choice: Choice) -> Result<Box<dyn Recognizer>, MatchError> {
        let language = constraint.language();
        let recognizer = choice.recognizer(language.lexing().cfg.clone(), language.limits().recognizer);
        Ok(recognizer.map_err(StepError::from)?)
    }

    /// Bytes on the heap, roughly, without the tables of another engine.
    pub fn memory_usage(&self) -> usize {
        self.memory_of_masks() + self.budgets.as_ref().map_or(0, |budgets| budgets.memory_usage())
    }

    fn memory_of_masks(&self) -> usize {
        self.stepper.memory_usage() + self.walks.memory_usage() + self.memo.memory_usage()
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
            let dropped = locked.empty();
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
            share: None,
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
