//! The tables of an output: replaced where they are full, or where another engine is faster.

use std::sync::{Arc, Mutex};

use anygram_lexer::LexerError;
use anygram_recognizer::{Choice, RecognizerError};

use super::Matcher;
use crate::error::{MatchError, StepCause, StepError};
use crate::frontier::Config;
use crate::session::{Session, lock};

impl Matcher {
    /// Runs an operation. If the shared tables are full, replaces them and runs it again.
    pub(crate) fn renewing<T>(
        &mut self,
        operation: impl FnMut(&Self) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        let result = self.renewing_uncounted(operation);
        if self.constraint.bound().is_some() {
            Session::count(&self.session);
        }
        result
    }

    pub(super) fn renewing_uncounted<T>(
        &mut self,
        mut operation: impl FnMut(&Self) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        if let Some(better) = self.better_choice() {
            self.switch(better)?;
        }
        let (held, renew_at) = (self.session().stepper.recognizer().n_items(), self.renew_at);
        if held > renew_at {
            self.renew(true)?;
        }
        match operation(self) {
            Err(MatchError::Limit(StepError(StepCause::Recognizer(RecognizerError::TooManyItems {
                ..
            })))) => {
                self.renew(true)?;
                operation(self)
            }
            Err(MatchError::Limit(StepError(StepCause::Lexer(LexerError::TooManyLexemes { .. })))) => {
                self.renew(false)?;
                operation(self)
            }
            result => result,
        }
    }

    /// The faster engine, if the text is too ambiguous for the one in use and the engine was chosen by
    /// `auto`.
    pub(super) fn better_choice(&self) -> Option<Choice> {
        if self.home.is_some() {
            return None;
        }
        self.better_choice_in(&self.session())
    }

    pub(super) fn better_choice_in(&self, session: &Session) -> Option<Choice> {
        if self.home.is_some() {
            return None;
        }
        let better = self.constraint.language().choice().for_heavy()?;
        let is_heavy = |config: &Config| session.stepper.is_heavy(config.state);
        self.last().readings().iter().any(is_heavy).then_some(better)
    }

    /// Moves the output to the tables of another engine, until it is reset.
    pub(super) fn switch(&mut self, choice: Choice) -> Result<(), MatchError> {
        let heavy = self.session().heavy.take();
        let (heavy, first) = match heavy {
            Some(heavy) => heavy,
            None => {
                let session = Session::new(&self.constraint, choice)?;
                let fresh = Self::new(self.constraint.clone(), session.shared(&self.constraint))?;
                (fresh.session, fresh.first)
            }
        };
        if let Some(mut unused) = Session::alone(&heavy) {
            unused.stepper.release(first);
        }
        self.session().heavy = Some((heavy.clone(), first));
        let fresh = self.reread(heavy)?;
        let home = std::mem::replace(self, fresh).session;
        self.home = Some(home);
        Ok(())
    }

    /// Replaces the shared tables by new ones that hold only the parser states that this output needs. Cost:
    /// that of reading it again. What is known of tokens and masks stays, if asked for and no fork shares it.
    pub(super) fn renew(&mut self, keep: bool) -> Result<(), MatchError> {
        let is_alone = keep && Arc::strong_count(&self.session) == 1;
        let session = {
            let mut old = self.session();
            if is_alone {
                Session::renewed(&self.constraint, &mut old)?
            } else {
                Session::new(&self.constraint, old.choice)?
            }
        };
        let session = session.shared(&self.constraint);
        let result = self.reread(session.clone());
        match result {
            Ok(fresh) => {
                let home = self.home.take();
                let old = std::mem::replace(self, Self { home, ..fresh });
                // Millions of small tables: whoever waits for the mask need not wait until they are gone. (On
                // a thread of rayon's pool, which batches of masks have started anyhow.)
                rayon::spawn(move || drop(old));
                Ok(())
            }
            Err(error) => {
                if is_alone {
                    self.session().stepper.take_lexemes(&mut lock(&session).stepper);
                }
                Err(error)
            }
        }
    }

    /// This output on other tables.
    pub(super) fn reread(&self, session: Arc<Mutex<Session>>) -> Result<Self, MatchError> {
        let mut fresh = Self::new(self.constraint.clone(), session)?;
        fresh.eos = self.eos.clone();
        for &token in &self.tokens {
            let mut session = fresh.session();
            let next = fresh.next(&mut session, fresh.last(), token)?;
            drop(session);
            fresh.positions.push(next);
            fresh.tokens.push(token);
        }
        // Twice what is needed, so that the cost of renewing is spread over as many new items.
        let needed = fresh.session().stepper.recognizer().n_items();
        fresh.renew_at = fresh.renew_at.max(2 * needed);
        Ok(fresh)
    }
}
