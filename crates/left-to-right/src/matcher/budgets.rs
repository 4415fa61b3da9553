//! What an output can still become within a budget of tokens.

use std::borrow::Cow;

use anygram_bits::work::Work;
use anygram_vocab::TokenMask;

use super::{Matcher, Position};
use crate::bound::Share;
use crate::budget::{Budgets, Question, Text};
use crate::error::{MatchError, StepError};
use crate::frontier::{Config, Stepper};
use crate::session::Session;
use crate::tokens::{get_bit, set_bit};

impl Matcher {
    /// As [`Matcher::known_mask_into`], of the mask within a budget: a look-up where it is known that all
    /// that the mask without a budget allows can be completed within this one.
    pub fn known_mask_with_budget_into(
        &mut self,
        budget: u32,
        words: &mut [u32],
    ) -> Result<bool, MatchError> {
        let left = budget.checked_sub(1);
        if left.is_none() && !self.last().has_ended() || !self.known_mask_into(words)? {
            return Ok(false);
        }
        let position = self.last();
        let Some(left) = left.filter(|_| !position.has_ended()) else { return Ok(true) };
        let Ok(mut session) = self.session.try_lock() else { return Ok(false) };
        if !self.is_current(&session) {
            return Ok(false);
        }
        let mask = &words[..self.constraint.mask_words()];
        let numbered = self.numbered(&mut session.stepper, budget)?;
        let (generation, budgets) = (session.stepper.generation(), session.budgets.as_ref());
        let text = self.text(&numbered);
        Ok(budgets.is_some_and(|budgets| budgets.is_known_to_be_ample(generation, text, mask, left)))
    }

    /// The readings outside of remembered values, where tokens are counted apart as far as that matters for
    /// so many more tokens.
    fn numbered(&self, stepper: &mut Stepper, room: u32) -> Result<Cow<'_, [Config]>, StepError> {
        let (language, Position { frontier, recall, .. }) = (self.constraint.language(), self.last());
        if !language.counts_tokens() {
            return Ok(Cow::Borrowed(frontier));
        }
        recall.numbered(stepper, language, frontier, room).map(Cow::Owned)
    }

    /// What budgets are asked about.
    fn text<'a>(&'a self, numbered: &'a [Config]) -> Text<'a> {
        let position = self.last();
        Text {
            frontier: &position.frontier,
            numbered,
            recall: &position.recall,
            vocabulary: self.constraint.vocabulary(),
            language: self.constraint.language(),
        }
    }

    /// The mask of tokens after which a sentence is still reachable within `budget` tokens in all, the token
    /// itself included and EOS not counted, over any tokenization. With a budget of 0 only EOS is allowed,
    /// and only at a sentence. [`Matcher::advance`] does not look at budgets. Where the grammar bounds the
    /// tokens in a part of the text, those of the vocabulary that come have to be within these bounds too.
    ///
    /// Exact. Cost: that of [`Matcher::mask`], and for each reading that tokens lead to a look-up, or where
    /// nothing is known of it yet a search ([`crate::budget`]).
    pub fn mask_with_budget(&mut self, budget: u32) -> Result<TokenMask, MatchError> {
        let mut words = vec![0; self.constraint.mask_words()];
        self.mask_with_budget_into(budget, &mut words)?;
        Ok(TokenMask::from_words(words, self.constraint.vocabulary().len()))
    }

    /// As [`Matcher::mask_with_budget`], into a buffer as for [`Matcher::mask_into`].
    pub fn mask_with_budget_into(&mut self, budget: u32, words: &mut [u32]) -> Result<(), MatchError> {
        self.filling(words, |this, words| {
            this.mask_into(words)?;
            if this.has_ended() {
                return Ok(());
            }
            let plain = words.to_vec();
            this.renewing(|this, session| this.try_budget(session, budget, &plain, words))
        })
    }

    /// The least number of tokens that make a sentence of the text, over any tokenization: 0 at a sentence,
    /// EOS not counted. `None` if the vocabulary spells no continuation, or if it takes more than `limit`.
    pub fn minimum_tokens(&mut self, limit: u32) -> Result<Option<u32>, MatchError> {
        if self.has_ended() {
            return Ok(Some(0));
        }
        self.renewing(|this, session| {
            this.with_budgets(session, |budgets, question| {
                let numbered = this.numbered(question.stepper, limit)?;
                budgets.minimum_recalling(question, &this.last().recall.along(&numbered), limit)
            })
        })
    }

    /// Asks about costs; the states made on the way are released.
    fn with_budgets<T>(
        &self,
        session: &mut Session,
        ask: impl FnOnce(&mut Budgets, &mut Question<'_>) -> Result<T, StepError>,
    ) -> Result<T, MatchError> {
        let (language, trie) = (self.constraint.language(), self.constraint.vocabulary().trie());
        let Session { stepper, budgets, share, .. } = session;
        share.iter_mut().for_each(Share::ask_budgets);
        let budgets =
            budgets.get_or_insert_with(|| Box::new(Budgets::new(language, self.constraint.vocabulary())));
        stepper.begin(language);
        let mark = stepper.mark();
        let work = Work::new(language.limits().cost_steps, "cost_steps");
        let answer = ask(budgets, &mut Question { stepper: &mut *stepper, language, trie, work });
        stepper.release(mark);
        Ok(answer?)
    }

    /// Writes those tokens of the plain mask that are within a budget. If it fails, some are missing.
    fn try_budget(
        &self,
        session: &mut Session,
        budget: u32,
        plain: &[u32],
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        words.fill(0);
        let (Position { frontier, recall, .. }, vocabulary) = (self.last(), self.constraint.vocabulary());
        let has_bytes_alone =
            self.constraint.specials().is_empty() && self.constraint.token_sets().is_empty();
        if let Some(left) = budget.checked_sub(1) {
            let n_words = self.constraint.mask_words();
            let is_ample = self.with_budgets(session, |budgets, question| {
                let (plain, words) = (&plain[..n_words], &mut words[..n_words]);
                let numbered = self.numbered(question.stepper, budget)?;
                let text = self.text(&numbered);
                if has_bytes_alone && budgets.is_ample(question, text, plain, left)? {
                    return Ok(true);
                }
                let enough = budgets.add_tokens(question, text, left, plain, words)?;
                if let Some(enough) = enough.filter(|_| has_bytes_alone) {
                    budgets.keep_ample(text, plain, enough);
                }
                let fits = |budgets: &mut Budgets, question: &mut Question<'_>, next: &[Config]| {
                    let next: Vec<_> = next.iter().map(|&config| (config, recall.outside())).collect();
                    Ok::<_, StepError>(budgets.minimum_recalling(question, &next, left)?.is_some())
                };
                for &(token, terminal) in self.constraint.specials() {
                    if get_bit(plain, token.index()) && !get_bit(words, token.index()) {
                        let next = question.stepper.step_special(question.language, frontier, terminal)?;
                        if fits(budgets, question, &next)? {
                            set_bit(words, token.index());
                        }
                    }
                }
                for set in self.constraint.token_sets() {
                    let next = question.stepper.step_special(question.language, frontier, set.terminal)?;
                    if !next.is_empty() && fits(budgets, question, &next)? {
                        set.add_to(words, vocabulary.len());
                    }
                }
                Ok(false)
            })?;
            if is_ample {
                words.copy_from_slice(plain);
                return Ok(());
            }
        }
        for eos in self.eos() {
            // It may be a token that the grammar names, too.
            if get_bit(plain, eos.index()) && self.is_sentence() {
                set_bit(words, eos.index());
            }
        }
        Ok(())
    }
}
