//! What the ends of pieces inside tokens lead to.
//!
//! A piece ends inside tokens in some ways, its *exits*. Behind each the parser has come to a state in which
//! what is left of the tokens is read on. What comes through there is found out once for all states that are
//! alike as far as it looks into them ([`Part`]), and is kept: by which way a reading came there does not
//! matter, and of the state behind a piece little is seen: behind `+` the same as behind any other `+`.
//!
//! Cost: for each exit a step of the parser, and a look-up of what comes through behind it.

use std::sync::Arc;

use anygram_recognizer::StateId;
use anygram_vocab::TokenTrie;

use crate::collected::Collected;
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::mask::{Exit, Walk, Walks};
use crate::memo::{Asked, Memo};
use crate::part::Part;
use crate::rests::Rest;
use crate::tokens::Tokens;

/// A mask that is being computed.
pub(crate) struct Followed<'a> {
    stepper: &'a mut Stepper,
    language: &'a Language,
    walks: &'a mut Walks,
    memo: &'a mut Memo,
    /// The tokens so far.
    found: Collected<'a>,
    /// The parser states that were looked into, and whether that is all.
    looked_into: Vec<StateId>,
    is_told: bool,
    /// Readings of unknown prospect. Whether these can be completed is asked last: the answer may depend on
    /// the whole text, and then the mask serves no other, but most of these tokens have come through by ends
    /// of pieces.
    asks: Vec<(Config, Arc<Tokens>)>,
    /// The answers that do, with whether these tokens come through.
    doubts: Vec<(Arc<Tokens>, bool)>,
}

impl<'a> Followed<'a> {
    /// A mask that has some tokens already.
    pub fn new(
        (stepper, language): (&'a mut Stepper, &'a Language),
        (walks, memo): (&'a mut Walks, &'a mut Memo),
        found: Collected<'a>,
    ) -> Self {
        let is_told = stepper.recognizer().shared_states().is_some();
        let (looked_into, asks, doubts) = (Vec::new(), Vec::new(), Vec::new());
        Self { stepper, language, walks, memo, found, looked_into, is_told, asks, doubts }
    }

    /// Adds the tokens that some readings admit.
    pub fn add(&mut self, trie: &TokenTrie, frontier: &[Config]) -> Result<(), StepError> {
        let mut walks: Vec<(Config, Arc<Walk>)> = Vec::with_capacity(frontier.len());
        for &config in frontier {
            self.stepper.spend(1 + self.found.words().len() / 16)?;
            let (left, n_words) = ((0, trie), self.found.words().len());
            let walk = self.walks.get(self.stepper, self.language, left, config.lexeme, n_words)?;
            walk.stay.iter().for_each(|tokens| self.found.add(tokens));
            walks.push((config, walk));
        }
        for (config, walk) in &walks {
            walk.exits.iter().try_for_each(|exit| self.add_exit(config.state, exit))?;
            let unknown = walk.unknown.iter();
            self.asks
                .extend(unknown.map(|&(lexeme, ref tokens)| (Config { lexeme, ..*config }, tokens.clone())));
        }
        for (config, tokens) in std::mem::take(&mut self.asks) {
            if tokens.is_subset(self.found.words()) {
                continue;
            }
            self.stepper.begin_trace();
            let is_viable = self.stepper.is_viable(self.language, &[config])?;
            match self.stepper.looked_into() {
                None => self.doubts.push((tokens, is_viable)),
                Some(states) => {
                    self.looked_into.extend_from_slice(states);
                    if is_viable {
                        self.found.add(&tokens);
                    }
                }
            }
        }
        for (tokens, is_viable) in std::mem::take(&mut self.doubts) {
            self.is_told &= tokens.is_subset(self.found.words());
            if is_viable {
                self.found.add(&tokens);
            }
        }
        Ok(())
    }

    /// Notes what was looked into since a trace began.
    fn note(&mut self) {
        match self.stepper.looked_into() {
            Some(states) => self.looked_into.extend_from_slice(states),
            None => self.is_told = false,
        }
    }

    fn add_exit(&mut self, state: StateId, exit: &Exit) -> Result<(), StepError> {
        if exit.is_in(self.found.words()) {
            return Ok(());
        }
        self.stepper.begin_trace();
        let next = self.stepper.end(self.language, (state, exit.cut))?;
        self.note();
        let Some(config) = next else { return Ok(()) };
        match &exit.ends {
            Some(ends) if self.stepper.is_completable(config) => self.found.add(ends),
            Some(ends) => self.asks.push((config, ends.clone())),
            None => {}
        }
        match &exit.rest {
            Some(rest) if !rest.tokens.is_subset(self.found.words()) => self.add_part(config, rest),
            _ => Ok(()),
        }
    }

    /// Adds what comes through of what is left of tokens behind a reading.
    fn add_part(&mut self, config: Config, rest: &Rest) -> Result<(), StepError> {
        let limit = self.language.limits().mask_bytes;
        if let Some(known) = self.memo.find(self.stepper, Asked::Part(config, rest.id), limit) {
            self.found.add(&known);
            self.looked_into.extend(self.memo.looked_at());
            return Ok(());
        }
        let through = if self.memo.goes_on() {
            // What is kept may not depend on what else the mask has.
            let mut row = std::mem::take(&mut self.walks.row);
            row.resize(self.found.words().len(), 0);
            let mut own = Collected::new(&mut row);
            let part = Part::new((self.stepper, self.language), (self.walks, self.memo), &mut own);
            let through = part.add(config, rest);
            self.found.take(own);
            self.walks.row = row;
            through?
        } else {
            let (tables, memos) = ((&mut *self.stepper, self.language), (&mut *self.walks, &mut *self.memo));
            Part::new(tables, memos, &mut self.found).add(config, rest)?
        };
        self.looked_into.extend(self.memo.looked_at());
        match through.looked_into {
            Some(states) => self.looked_into.extend(states),
            None => self.is_told = false,
        }
        self.doubts.extend(through.doubts);
        Ok(())
    }

    /// Adds what else a mask has, and keeps it, if that can be.
    pub fn end(
        mut self,
        frontier: &[Config],
        more: impl FnOnce(&mut Stepper, &mut Collected<'_>) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        self.stepper.begin_trace();
        // Whether the text may end here.
        frontier.iter().for_each(|config| self.stepper.look_into(config.state, None));
        more(self.stepper, &mut self.found)?;
        self.note();
        let limit = self.language.limits().mask_bytes;
        let looked_into = self.is_told.then_some(&*self.looked_into);
        self.memo.keep_mask(self.stepper, frontier, looked_into, &self.found, limit);
        Ok(())
    }
}
