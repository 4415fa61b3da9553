//! The mask of an output.

use std::borrow::Cow;

use super::{Draft, Matcher, Position};
use crate::collected::Collected;
use crate::error::{MatchError, StepError};
use crate::frontier::{Config, Frontier, Stepper};
use crate::mask;
use crate::memo::Asked;
use crate::recall::{Recall, Value};
use crate::rows::MaskRows;
use crate::session::Session;
use crate::tokens::{MASK_BITS, clear_bit, set_bit};

impl Matcher {
    pub(super) fn try_drafts(
        &self,
        session: &mut Session,
        drafts: &[Draft],
        rows: &mut MaskRows<'_>,
    ) -> Result<Vec<bool>, MatchError> {
        let mut mask = vec![0; self.constraint.mask_words()];
        let mut positions: Vec<Option<Position>> = Vec::with_capacity(drafts.len());
        for (&Draft { token, after }, row) in drafts.iter().zip(rows.iter_mut()) {
            let before = match after {
                Some(after) => positions[after].as_ref(),
                None => Some(self.last()),
            };
            let position = match before.map(|before| self.next(session, before, token)) {
                None | Some(Err(MatchError::Refused(_))) => None,
                Some(next) => Some(next?),
            };
            row.fill(0);
            if let Some(position) = &position {
                self.try_mask(session, position, &mut mask)?;
                let n_words = row.len().min(mask.len());
                row[..n_words].copy_from_slice(&mask[..n_words]);
            }
            positions.push(position);
        }
        Ok(positions.iter().map(Option::is_some).collect())
    }

    pub(super) fn try_mask(
        &self,
        session: &mut Session,
        position: &Position,
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        if position.has_ended() {
            self.mask_after_end(words);
            return Ok(());
        }
        if position.recall.values().is_empty() {
            self.mask_of_readings(session, &position.frontier, words)?;
            return self.remove_repeating(session, position, words);
        }
        if let ([], [Value { readings, recall, .. }]) = (&*position.frontier, position.recall.values()) {
            self.mask_of_readings(session, readings, words)?;
            self.remove_within(session, (readings, recall), words)?;
            return self.remove_opening(session, position, words);
        }
        words.fill(0);
        if !position.frontier.is_empty() {
            self.mask_of_readings(session, &position.frontier, words)?;
        }
        let mut own = vec![0; words.len()];
        for Value { readings, recall, .. } in position.recall.values() {
            self.mask_of_readings(session, readings, &mut own)?;
            self.remove_within(session, (readings, recall), &mut own)?;
            words.iter_mut().zip(&own).for_each(|(word, own)| *word |= own);
        }
        self.remove_opening(session, position, words)
    }

    pub(super) fn mask_after_end(&self, words: &mut [u32]) {
        words.fill(0);
        let pad = self.constraint.vocabulary().pad();
        self.eos().iter().chain(&pad).for_each(|token| set_bit(words, token.index()));
    }

    /// Removes the tokens that write a key or an item again which may not be repeated.
    pub(super) fn remove_repeating(
        &self,
        session: &mut Session,
        position: &Position,
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        match self.constraint.language().grammar().embedded.is_empty() {
            true => self.remove_within(session, (&position.frontier, &position.recall), words),
            false => self.remove_opening(session, position, words),
        }
    }

    /// Removes the tokens behind which no reading can follow, because they open a value and write something
    /// in it twice.
    pub(super) fn remove_opening(
        &self,
        session: &mut Session,
        position: &Position,
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        for token in session.selections.opening(vocabulary, language, words) {
            let mark = session.stepper.mark();
            let next = self.next(session, position, token);
            session.stepper.release(mark);
            match next {
                Ok(_) => {}
                Err(MatchError::Refused(_)) => clear_bit(words, token.index()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the tokens that write something again, from the mask of readings of which that is recalled.
    pub(super) fn remove_within(
        &self,
        session: &mut Session,
        text: (&[Config], &Recall),
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let n_words = self.constraint.mask_words();
        let Session { stepper, selections, .. } = session;
        let mark = stepper.mark();
        let tokens = (vocabulary, selections);
        let result = stepper.remove_repeating(language, tokens, text, &mut words[..n_words]);
        stepper.release(mark);
        Ok(result?)
    }

    /// Writes the mask of readings that are [`alike`](Self::alike) to those of a mask that is known.
    pub(super) fn look_up(
        &self,
        session: &mut Session,
        frontier: &[Config],
        words: &mut [u32],
    ) -> Result<bool, MatchError> {
        let limit = self.constraint.language().limits().mask_bytes;
        let Session { stepper, memo, .. } = session;
        let Some(known) = memo.find(stepper, Asked::Mask(frontier), limit) else { return Ok(false) };
        known.write_to(words);
        self.put_own_eos(stepper, frontier, words)?;
        Ok(true)
    }

    /// The mask as far as the readings tell.
    pub(super) fn mask_of_readings(
        &self,
        session: &mut Session,
        frontier: &[Config],
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let n_words = self.constraint.mask_words();
        let frontier = &self.alike(&mut session.stepper, frontier)?;
        if self.look_up(session, frontier, words)? {
            return Ok(());
        }
        let Session { stepper, walks, memo, .. } = session;
        words.fill(0);
        stepper.begin(language);
        let mark = stepper.mark();
        let result = mask::make(
            (stepper, language),
            vocabulary.trie(),
            frontier,
            (walks, memo),
            &mut words[..n_words],
            |stepper, found| self.add_specials(stepper, frontier, found),
        );
        stepper.release(mark);
        result?;
        self.put_own_eos(stepper, frontier, words)
    }

    /// Adds the tokens that are no bytes.
    fn add_specials(
        &self,
        stepper: &mut Stepper,
        frontier: &[Config],
        found: &mut Collected<'_>,
    ) -> Result<(), StepError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        for &(token, terminal) in self.constraint.specials() {
            let next = stepper.step_special(language, frontier, terminal)?;
            if stepper.is_viable(language, &next)? {
                found.set(token);
            }
        }
        for set in self.constraint.token_sets() {
            let next = stepper.step_special(language, frontier, set.terminal)?;
            if stepper.is_viable(language, &next)? {
                set.add_to(found.row(), vocabulary.len());
            }
        }
        if stepper.is_sentence(frontier) {
            vocabulary.eos().iter().for_each(|&token| found.set(token));
        }
        Ok(())
    }

    /// Readings whose masks are the same, and are those of other places of long pieces too.
    pub(super) fn alike<'a>(
        &self,
        stepper: &mut Stepper,
        frontier: &'a [Config],
    ) -> Result<Cow<'a, [Config]>, MatchError> {
        let lexing = self.constraint.language().lexing();
        if !lexing.is_growing() {
            return Ok(Cow::Borrowed(frontier));
        }
        let height = self.constraint.height();
        let alike = |&Config { state, lexeme }: &Config| {
            let lexeme = stepper.transducer_mut().alike(lexing, lexeme, height)?;
            Ok::<_, StepError>(Config { state, lexeme })
        };
        let mut readings: Frontier = frontier.iter().map(alike).collect::<Result<_, _>>()?;
        readings.sort_unstable();
        readings.dedup();
        Ok(Cow::Owned(readings))
    }

    /// From the mask that ends with the tokens of the vocabulary, which outputs share, to that of this
    /// output.
    pub(super) fn put_own_eos(
        &self,
        stepper: &mut Stepper,
        frontier: &[Config],
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let Some(own) = &self.eos else { return Ok(()) };
        let language = self.constraint.language();
        for &token in self.constraint.vocabulary().eos() {
            let mut is_allowed = false;
            // The grammar may name it, and then it is also something that is written.
            for terminal in self.named(token) {
                let mark = stepper.mark();
                let next = stepper.step_special(language, frontier, terminal);
                let viable = next.and_then(|next| stepper.is_viable(language, &next));
                stepper.release(mark);
                is_allowed |= viable?;
            }
            words[token.index() / MASK_BITS] &= !(1 << (token.index() % MASK_BITS));
            words[token.index() / MASK_BITS] |= u32::from(is_allowed) << (token.index() % MASK_BITS);
        }
        if stepper.is_sentence(frontier) {
            own.iter().for_each(|token| set_bit(words, token.index()));
        }
        Ok(())
    }
}
