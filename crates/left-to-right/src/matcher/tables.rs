//! The tables of an output: renewed where they are full, or others where another engine is faster.

use std::sync::{Arc, Mutex};

use anygram_lexer::LexerError;
use anygram_recognizer::{Choice, RecognizerError};

use super::Matcher;
use super::history::{History, Position};
use crate::epoch::{Former, Held};
use crate::error::{MatchError, StepCause, StepError};
use crate::frontier::Config;
use crate::recall::renamed_frontier;
use crate::session::{Session, lock};

/// The tables that an output left, where it returns to for its next text.
#[derive(Clone)]
pub(super) struct Home {
    pub session: Arc<Mutex<Session>>,
    held: Held,
    start: Position,
}

impl Matcher {
    /// Runs an operation on the tables, whose parser states are those that this output names. If they are
    /// full, renews them and runs it again.
    pub(crate) fn renewing<T>(
        &mut self,
        operation: impl FnMut(&Self, &mut Session) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        let result = self.renewing_uncounted(operation);
        if self.constraint.bound().is_some() {
            Session::count(&self.session);
        }
        result
    }

    pub(super) fn renewing_uncounted<T>(
        &mut self,
        mut operation: impl FnMut(&Self, &mut Session) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        let mut tables = self.session.clone();
        let mut session = lock(&tables);
        // Also if the last one ended by a panic.
        session.stepper.cancel = None;
        session.fade();
        self.move_over(&mut session)?;
        if let Some(better) = self.better_choice(&session) {
            let heavy = session.heavy.clone();
            drop(session);
            let heavy = self.switch(better, heavy)?;
            lock(&tables).heavy = Some(heavy);
            tables = self.session.clone();
            session = lock(&tables);
            self.move_over(&mut session)?;
        }
        if session.is_full() {
            session.renew(true)?;
            self.move_over(&mut session)?;
        }
        let full = match operation(self, &mut session) {
            Err(MatchError::Limit(error)) => error,
            result => return result,
        };
        let keeps_lexemes = match &full.0 {
            StepCause::Recognizer(RecognizerError::TooManyItems { .. }) => true,
            StepCause::Lexer(LexerError::TooManyLexemes { .. }) => false,
            _ => return Err(full.into()),
        };
        session.renew(keeps_lexemes)?;
        self.move_over(&mut session)?;
        operation(self, &mut session)
    }

    /// The faster engine, if the text is too ambiguous for the one in use and the engine was chosen by
    /// `auto`. The tables are those whose states the output names.
    pub(super) fn better_choice(&self, session: &Session) -> Option<Choice> {
        if self.home.is_some() {
            return None;
        }
        let better = self.constraint.language().choice().for_heavy()?;
        let is_heavy = |config: &Config| session.stepper.is_heavy(config.state);
        self.last().readings().iter().any(is_heavy).then_some(better)
    }

    /// Moves the output to the tables of another engine, until it is reset. Returns these.
    fn switch(
        &mut self,
        choice: Choice,
        heavy: Option<Arc<Mutex<Session>>>,
    ) -> Result<Arc<Mutex<Session>>, MatchError> {
        let heavy = match heavy {
            Some(heavy) => heavy,
            None => Session::new(&self.constraint, choice)?.shared(&self.constraint),
        };
        let mut session = lock(&heavy);
        // The tables that it leaves have it too, where they had it before.
        if Arc::strong_count(&heavy) <= 2 {
            session.release_all();
        }
        let history = session.adopting(|session| self.read_again(session))?;
        let held = session.epoch.clone();
        drop(session);
        let start = self.history.kept().next().unwrap_or(self.last()).clone();
        self.home = Some(Box::new(Home {
            session: std::mem::replace(&mut self.session, heavy.clone()),
            held: std::mem::replace(&mut self.held, held),
            start,
        }));
        self.history = history;
        Ok(heavy)
    }

    /// Returns to the tables that the output began with, and to its start. Returns those that it leaves.
    pub(super) fn go_home(&mut self) -> Option<Arc<Mutex<Session>>> {
        let Home { session, held, start } = *self.home.take()?;
        (self.held, self.history) = (Held { epoch: None, ..held }, History::new(start));
        Some(std::mem::replace(&mut self.session, session))
    }

    /// Whether the output names states of the present epoch of its tables.
    pub(super) fn is_current(&self, session: &Session) -> bool {
        self.held.number == session.epoch.number
    }

    /// Moves over to the present epoch of the tables. Cost: the parser states that the output stands on and
    /// that no other has brought over, or where the engine shares none that of reading it again.
    pub(super) fn move_over(&mut self, session: &mut Session) -> Result<(), MatchError> {
        if !self.is_current(session) {
            self.history = session.adopting(|session| self.history_in(session))?;
            // The start is known without the states of an epoch.
            let epoch = session.epoch.epoch.clone().filter(|_| !self.tokens.is_empty());
            self.held = Held { epoch, ..session.epoch };
        }
        Ok(())
    }

    /// The positions that are kept, in the present epoch.
    fn history_in(&self, session: &mut Session) -> Result<History, MatchError> {
        if self.tokens.is_empty() {
            return Ok(History::new(self.start_in(session)?));
        }
        let Some(epoch) = &self.held.epoch else { return self.read_again(session) };
        let present = session.epoch.number;
        let mut former = epoch.former();
        let Some(Former { states, lexemes, known, known_to }) = &mut *former else {
            return self.read_again(session);
        };
        if *lexemes != session.lexemes || states.shared_states().is_none() {
            return self.read_again(session);
        }
        if *known_to != present {
            known.clear();
            *known_to = present;
        }
        self.history.renamed(|position| {
            let mut rename = |config: Config| {
                let renamed = session.stepper.adopt(&**states, known, config)?;
                Ok::<_, StepError>(renamed.unwrap_or(config))
            };
            let frontier = renamed_frontier(&position.frontier, &mut rename)?;
            let recall = match position.recall.has_readings() {
                true => Arc::new(position.recall.renamed(&mut rename)?),
                false => position.recall.clone(),
            };
            Ok(position.renamed(session.shared_frontier(frontier), recall))
        })
    }

    /// The positions, read from the tokens.
    fn read_again(&self, session: &mut Session) -> Result<History, MatchError> {
        let mut history = History::new(self.start_in(session)?);
        for &token in &self.tokens {
            let next = self.next(session, history.present(), token)?;
            history.push(next);
        }
        Ok(history)
    }

    /// The position before any token.
    fn start_in(&self, session: &mut Session) -> Result<Position, MatchError> {
        Position::start(&self.constraint, session)
    }
}
