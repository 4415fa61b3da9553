//! The tables that outputs grow together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

pub(crate) fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    // A panic in another thread leaves tables that are complete up to its last step.
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
