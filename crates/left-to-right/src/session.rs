//! The tables that outputs grow together.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use anygram_bits::PartedTable;
use anygram_recognizer::{Choice, Mark, Recognizer};
use rustc_hash::FxBuildHasher;

use crate::bound::Share;
use crate::budget::Budgets;
use crate::constraint::Constraint;
use crate::epoch::{Epoch, Fading, Held};
use crate::error::{MatchError, StepError};
use crate::frontier::{Config, Stepper};
use crate::language::Language;
use crate::mask::Walks;
use crate::memo::Memo;
use crate::recall::Selections;

/// The tables that outputs grow together.
pub(crate) struct Session {
    language: Arc<Language>,
    pub stepper: Stepper,
    pub choice: Choice,
    /// The readings of outputs, each set once.
    frontiers: PartedTable<(u64, Arc<[Config]>)>,
    /// The present epoch: what outputs hold has its number.
    pub epoch: Held,
    /// Those before it that some output holds.
    former: Vec<Weak<Epoch>>,
    /// How often lexemes began anew.
    pub lexemes: u64,
    /// What was dropped.
    fading: Fading,
    /// The readings before any token was read, and the point where only they had been made.
    start: Option<(Arc<[Config]>, Mark)>,
    /// How much of what is held the outputs brought from epochs before.
    n_adopted: usize,
    pub walks: Walks,
    pub memo: Memo,
    pub selections: Selections,
    /// The tables of outputs that have moved to another engine.
    pub heavy: Option<Arc<Mutex<Session>>>,
    /// Made when a budget is first asked about.
    pub budgets: Option<Box<Budgets>>,
    /// What a bound on many tables knows of these.
    pub share: Option<Share>,
}

impl Session {
    pub fn new(constraint: &Constraint, choice: Choice) -> Result<Self, MatchError> {
        let language = constraint.language().clone();
        let stepper = Stepper::with(&language, recognizer(&language, choice)?);
        Ok(Self {
            language,
            stepper,
            choice,
            frontiers: PartedTable::default(),
            epoch: Held { number: 0, epoch: Some(Arc::default()) },
            former: Vec::new(),
            lexemes: 0,
            fading: Fading::default(),
            start: None,
            n_adopted: 0,
            walks: Walks::of(constraint.vocabulary()),
            memo: Memo::default(),
            selections: Selections::default(),
            heavy: None,
            budgets: None,
            share: None,
        })
    }

    /// The readings before any token was read.
    pub fn start(&mut self) -> Result<Arc<[Config]>, MatchError> {
        if let Some((start, _)) = &self.start {
            return Ok(start.clone());
        }
        let start: Arc<[Config]> = self.stepper.start(&self.language)?.unwrap_or_default().into();
        self.start = Some((start.clone(), self.stepper.mark()));
        Ok(start)
    }

    /// Drops the parser states that were made behind the start, if no output needs them.
    pub fn release_all(&mut self) {
        if let Some((_, first)) = self.start {
            self.stepper.release(first);
        }
    }

    /// Readings that are kept: equal ones are one.
    pub fn shared_frontier(&mut self, readings: Vec<Config>) -> Arc<[Config]> {
        let hash = FxBuildHasher.hash_one(&*readings);
        if let Some((_, known)) = self.frontiers.find(hash, |known| known.0 == hash && *known.1 == *readings)
        {
            return known.clone();
        }
        let shared: Arc<[Config]> = readings.into();
        self.frontiers.insert_unique(hash, (hash, shared.clone()), |known| known.0);
        shared
    }

    /// How much is held that goes with the parser states.
    fn held(&self) -> usize {
        self.stepper.held() + self.frontiers.len()
    }

    /// Drops a part of what was dropped.
    pub fn fade(&mut self) {
        self.fading.fade();
    }

    /// Whether it is time for new parser states. What the outputs brought over counts as little as it can, so
    /// that the cost of bringing it is spread over as much that is new.
    pub fn is_full(&self) -> bool {
        self.held().saturating_sub(self.n_adopted) > self.language.limits().shared_items.max(self.n_adopted)
    }

    /// Counts what an output brings over.
    pub fn adopting<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.held();
        let result = work(self);
        self.n_adopted += self.held().saturating_sub(before);
        result
    }

    /// Begins new parser states, to which outputs move over when they are used next. What is known of tokens
    /// and masks stays, unless lexemes are too many, so that they begin anew as well.
    pub fn renew(&mut self, keeps_lexemes: bool) -> Result<(), MatchError> {
        let fresh = recognizer(&self.language, self.choice)?;
        let (old, has_shapes) = self.stepper.renew(&self.language, fresh, keeps_lexemes);
        if !has_shapes {
            self.memo.let_fade();
        }
        if !keeps_lexemes {
            drop(self.walks.forget());
            self.selections = Selections::default();
            self.budgets = None;
        }
        (self.start, self.n_adopted) = (None, 0);
        self.fading.add(std::mem::take(&mut self.frontiers));
        let next = Held { number: self.epoch.number + 1, epoch: Some(Arc::default()) };
        let before = std::mem::replace(&mut self.epoch, next);
        self.former.retain(|former| former.strong_count() > 0);
        let states = old.into_recognizer(&mut self.fading);
        // If no output holds it, nobody needs its states.
        if let Some(before) = before.epoch.filter(|before| Arc::strong_count(before) > 1) {
            before.end(states, self.lexemes);
            self.former.push(Arc::downgrade(&before));
        }
        self.lexemes += u64::from(!keeps_lexemes);
        Ok(())
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
        let known = (self.walks.forget(), self.memo.forget(), self.budgets.take());
        // If there are no new states to be had, outputs go on with the old ones.
        if self.renew(true).is_ok() {
            self.stepper.forget_shapes();
        }
        (known, std::mem::take(&mut self.fading))
    }

    /// Bytes on the heap, roughly, without the tables of another engine.
    pub fn memory_usage(&self) -> usize {
        self.memory_of_masks() + self.budgets.as_ref().map_or(0, |budgets| budgets.memory_usage())
    }

    fn memory_of_masks(&self) -> usize {
        let former: usize =
            self.former.iter().filter_map(Weak::upgrade).map(|former| former.memory_usage()).sum();
        let frontiers = self.frontiers.len() * (size_of::<(u64, Arc<[Config]>)>() + 48);
        let states = self.stepper.memory_usage() + frontiers + former;
        states + self.walks.memory_usage() + self.memo.memory_usage()
    }

    /// Bytes on the heap, with the tables of another engine; `None` if a thread works on them.
    pub fn try_memory_usage(session: &Mutex<Self>) -> Option<usize> {
        let own = {
            let session = free(session)?;
            (session.memory_usage(), session.heavy.clone())
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
            let heavy = locked.heavy.clone();
            // Many small tables: nobody has to wait until they are gone.
            drop(locked);
            drop(dropped);
            heavy
        };
        if let Some(heavy) = forget(session) {
            forget(&heavy);
        }
    }
}

fn recognizer(language: &Language, choice: Choice) -> Result<Box<dyn Recognizer>, MatchError> {
    let made = choice.recognizer(language.lexing().cfg.clone(), language.limits().recognizer);
    Ok(made.map_err(StepError::from)?)
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
