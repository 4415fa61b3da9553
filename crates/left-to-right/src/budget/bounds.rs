//! Bounds on the cost of a reading that take no search.

use anygram_grammar::ir::TerminalId;

use super::{Budgets, Place, Question, Upper};
use crate::ample::{Ample, Bound};
use crate::costs::NEVER;
use crate::frontier::Config;
use crate::language::StepError;

impl Budgets {
    /// An upper bound on the cost of a reading at a token boundary that takes no search.
    pub(super) fn upper(&mut self, question: &mut Question<'_>, config: Config) -> Result<u32, StepError> {
        if let Some(known) = self.upper.get(&config) {
            return Ok(known.cost);
        }
        let (cost, text) = self.ending(question, config)?;
        // Where nobody could write it, it is of no use.
        let is_of_use = text.is_some() || !question.language.grammar().remembers();
        let cost = if is_of_use { cost } else { NEVER };
        self.upper.insert(config, Upper { cost, next: None, text: None });
        Ok(cost)
    }

    /// The upper bound that takes no search, and its text, if there is one.
    pub(super) fn ending(&mut self, question: &mut Question<'_>, config: Config) -> Result<Bound, StepError> {
        let Some(ample) = self.ample(question, false)? else { return Ok((NEVER, None)) };
        let Question { stepper, language, trie, .. } = question;
        ample.upper(stepper, (language, trie), config)
    }

    /// The bounds that take no search, if there are any; if `is_certain`, those that hold whatever was written.
    pub(super) fn ample(
        &mut self,
        question: &mut Question<'_>,
        is_certain: bool,
    ) -> Result<Option<&mut Ample>, StepError> {
        let Question { language, trie, work, .. } = question;
        let is_certain = is_certain && language.grammar().remembers();
        let bounds = if is_certain { &mut self.certain } else { &mut self.ample };
        let known = match bounds {
            Some(known) => known,
            unknown => unknown.insert(Ample::new(language, trie, is_certain, work)?),
        };
        Ok(known.as_mut())
    }

    /// Whether the lower bound of a place is at most `limit`.
    pub(super) fn is_possible(
        &mut self,
        question: &mut Question<'_>,
        place: Place,
        limit: u32,
    ) -> Result<bool, StepError> {
        Ok(self.bound(question, place, limit)?.is_some())
    }

    /// The lower bound of a place, if it is at most `limit`.
    pub(super) fn bound(
        &mut self,
        question: &mut Question<'_>,
        place: Place,
        limit: u32,
    ) -> Result<Option<u32>, StepError> {
        let known = self.lower.get(&place).copied().unwrap_or(0);
        if known > limit {
            return Ok(None);
        }
        let (Config { state, lexeme }, leftover) = place;
        let lexing = question.language.lexing();
        let least = if question.stepper.transducer().is_boundary(lexeme) {
            let Question { stepper, trie, work, .. } = question;
            self.costs.complete(lexing, trie, stepper.recognizer(), (state, leftover), limit, work)?
        } else {
            // A look into automata that grow takes a walk from each state, so only if that can matter.
            let is_possible =
                !lexing.is_growing() || self.bound_of_piece(question, place.0, (limit, true))?.is_some();
            if is_possible { self.bound_of_piece(question, place.0, (limit, false))? } else { None }
        };
        if least.is_none() && limit != NEVER {
            self.lower.insert(place, limit + 1);
        }
        Ok(least.map(|least| least.max(known)))
    }

    /// The lower bound of a reading with a piece in progress, if it is at most `limit`; a rough one does not
    /// look at where the piece can end.
    pub(super) fn bound_of_piece(
        &mut self,
        question: &mut Question<'_>,
        Config { state, lexeme }: Config,
        (limit, is_rough): (u32, bool),
    ) -> Result<Option<u32>, StepError> {
        let Question { stepper, language, trie, work } = question;
        let lexing = language.lexing();
        // A piece in progress is completed as one of the terminals that are alive in it.
        let union_state = stepper.transducer().state(lexeme);
        let (viable, ignored) = (stepper.recognizer().viable(state).clone(), &lexing.lexicon.ignored);
        let mut least: Option<u32> = None;
        for terminal in lexing.lexicon.union.live(union_state).iter() {
            let (is_viable, is_ignored) = (viable.contains(terminal), ignored.contains(terminal));
            if !is_viable && !is_ignored {
                continue;
            }
            let terminal = TerminalId::new(terminal);
            let ends = match self.costs.state_in(lexing, terminal, union_state) {
                Some(_) if is_rough => self.costs.finish_anywhere(trie),
                Some(own) => self.costs.finish(lexing, trie, terminal, own, work)?,
                None => continue,
            };
            let after = if is_viable { stepper.after(state, terminal)? } else { None };
            for next in [after, is_ignored.then_some(state)].into_iter().flatten() {
                for &(to, cost) in &*ends {
                    // Only what is less than the least so far is of interest.
                    let room = least
                        .map_or(Some(limit), |least| least.checked_sub(1))
                        .and_then(|room| room.checked_sub(cost));
                    let Some(room) = room else { continue };
                    let found =
                        self.costs.complete(lexing, trie, stepper.recognizer(), (next, to), room, work)?;
                    least = found.map(|found| cost + found).or(least);
                }
            }
        }
        Ok(least)
    }
}
