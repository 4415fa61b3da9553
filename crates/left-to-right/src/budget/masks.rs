//! Which tokens of a mask are within a budget.

use std::sync::Arc;

use anygram_grammar::ir::TerminalId;
use anygram_lexer::transducer::CutId;
use anygram_vocab::TokenId;
use rustc_hash::FxHashSet;

use super::answers::Answer;
use super::walks::{Exit, Rest};
use super::{Budgets, Question, Text};
use crate::costs::Leftover;
use crate::frontier::Config;
use crate::language::StepError;
use crate::mask;
use crate::recalled::{Outlook, Recalled};
use crate::tokens::{Tokens, get_bit, set_bit};

/// What has ended inside of tokens.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Passed {
    n_pieces: usize,
    /// Whether the memory may have had a say in that.
    is_remembered: bool,
}

impl Passed {
    /// With one more piece.
    fn and(self, question: &Question<'_>, cut: CutId) -> Self {
        let terminals = &question.language.grammar().terminals;
        let matters = |scan: &TerminalId| {
            let memory = terminals[scan.index()].memory;
            memory.is_some_and(|of| of.is_distinct() || of.opens().is_some())
        };
        let is_remembered = question.stepper.transducer().cut(cut).scans.iter().any(matters);
        Self { n_pieces: self.n_pieces + 1, is_remembered: self.is_remembered || is_remembered }
    }
}

impl Budgets {
    pub(super) fn decide(
        &mut self,
        question: &mut Question<'_>,
        text: Text<'_>,
        limit: u32,
        decided: &mut [u32],
    ) -> Result<(), StepError> {
        let language = question.language;
        let (together, remembers) = (language.lexing().merges_ends(), language.grammar().remembers());
        let starts = text.recall.along(text.numbered);
        let n_values = text.recall.siblings();
        // With the pieces that have ended inside of the token, and whether any of them was remembered.
        let mut agenda: Vec<(Config, Option<Arc<Rest>>, usize, Passed)> = starts
            .iter()
            .enumerate()
            .map(|(at, &(config, _))| (config, None, at, Passed::default()))
            .collect();
        let mut seen: FxHashSet<(Config, u32, usize, Passed)> = FxHashSet::default();
        // Tokens that have to be looked at one by one.
        let mut alone = vec![0; if remembers { decided.len() } else { 0 }];
        while let Some((config, rest, at, passed)) = agenda.pop() {
            let id = rest.as_ref().map_or(0, |rest| rest.id);
            let is_new = match remembers {
                true => seen.insert((config, id, at, passed)),
                false => seen.insert((config, id, 0, Passed::default())),
            };
            if !is_new || rest.as_ref().is_some_and(|rest| rest.tokens.is_subset(decided)) {
                continue;
            }
            // Where the budget is ample for the reading, it will be for most of what comes of it.
            if let Some(rest) = &rest
                && self.upper(question, config)? > limit
                && !self.is_possible(question, (config, rest.leftover), limit)?
            {
                continue;
            }
            question.work.spend(1 + decided.len() / 16)?;
            let (n_tokens, lexeme) = question.number(config.lexeme)?;
            let groups = self.groups(question, lexeme, rest.as_deref(), decided.len())?;
            let start = &starts[at].1;
            // What ends in a token is known sooner than what is in progress behind it.
            for Exit { cut, ends, rest } in &groups.exits {
                let ends_left = ends.as_ref().filter(|ends| !ends.is_subset(decided));
                let rest_left = rest.as_ref().filter(|rest| !rest.tokens.is_subset(decided));
                if ends_left.is_none() && rest_left.is_none() {
                    continue;
                }
                let Some(config) = question.stepper.end(language, (config.state, *cut))? else {
                    continue;
                };
                let passed = passed.and(question, *cut);
                if let Some(ends) = ends_left {
                    match self.fits_certainly(question, (config, passed, n_values), limit)? {
                        true => ends.add_to(decided),
                        false => {
                            self.admit(question, (text, start, config), ends, limit, (decided, &mut alone))?
                        }
                    }
                }
                agenda.extend(rest_left.map(|rest| (config, Some(rest.clone()), at, passed)));
            }
            for (lexeme, tokens) in &groups.stays {
                if tokens.is_subset(decided) {
                    continue;
                }
                let Some(lexeme) = question.behind_token((n_tokens, *lexeme), limit)? else { continue };
                let config = Config { lexeme, ..config };
                if self.fits_certainly(question, (config, passed, n_values), limit)? {
                    tokens.add_to(decided);
                    continue;
                }
                self.admit(question, (text, start, config), tokens, limit, (decided, &mut alone))?;
            }
        }
        if remembers {
            if together {
                alone.iter_mut().zip(&*decided).for_each(|(alone, decided)| *alone = !decided);
            }
            return self.look_at(question, text, limit, (decided, &alone));
        }
        if !together {
            return Ok(());
        }
        let numbered = text.numbered;
        mask::follow_together(question, language, question.trie, numbered, decided, |question, readings| {
            if !language.lexing().counts_tokens() {
                return self.fits(question, readings, limit);
            }
            let behind = question.stepper.behind_token(language, readings, limit)?;
            self.fits(question, &behind, limit)
        })
    }

    /// Whether a reading is certainly completed within a limit, if no piece before it may have repeated
    /// another.
    fn fits_certainly(
        &mut self,
        question: &mut Question<'_>,
        (config, passed, n_values): (Config, Passed, usize),
        limit: u32,
    ) -> Result<bool, StepError> {
        if passed.is_remembered || !question.language.grammar().remembers() {
            return Ok(false);
        }
        let n_values = n_values.saturating_add(passed.n_pieces);
        let enough = self.certain(question, (config, false), n_values)?;
        if enough <= limit {
            self.enough = self.enough.max(enough);
        }
        Ok(enough <= limit)
    }

    /// Adds those of some tokens, which lead to one reading, that are within a limit. Those that have to be
    /// looked at alone are noted.
    pub(super) fn admit(
        &mut self,
        question: &mut Question<'_>,
        (text, start, config): (Text<'_>, &Recalled, Config),
        tokens: &Tokens,
        limit: u32,
        (decided, alone): (&mut [u32], &mut [u32]),
    ) -> Result<(), StepError> {
        if let Recalled::Nothing = start {
            if self.fits(question, &[config], limit)? {
                tokens.add_to(decided);
            }
            return Ok(());
        }
        // Whatever they recall, they lack no less.
        if self.upper(question, config)? > limit
            && !self.is_possible(question, (config, Leftover::NONE), limit)?
        {
            return Ok(());
        }
        let grammar = question.language.grammar();
        let own = self.outlooks.of(start, &[], true);
        let all = tokens.all_outside(decided);
        let behind = self.behind_tokens(question, text, (own, &all))?;
        let mut left = Vec::with_capacity(all.len());
        for (token, behind) in all.into_iter().zip(behind) {
            if self.outlooks.is_lost(behind) {
                set_bit(alone, token.index());
            } else {
                left.push(token);
            }
        }
        while let Some(&token) = left.first() {
            let recalled = start.read(grammar, text.vocabulary.bytes(token).unwrap_or_default());
            let answer = self.answer_within(question, (config, &recalled), limit)?;
            // Of those that differ in nothing that matters here, all have the same answer.
            let (values, fits) = match &answer {
                Answer::No(values) if values.is_empty() => break,
                Answer::No(values) => (values, false),
                Answer::Yes(_, values) => (values, true),
            };
            let from = self.outlooks.of(start, values, fits);
            let behind = self.behind_tokens(question, text, (from, &left))?;
            let own = behind[0];
            let is_one = self.outlooks.is_lost(own);
            let mut behind = behind.into_iter();
            left.retain(|&other| {
                let is_same = behind.next() == Some(own) && !is_one;
                let is_alike = other == token || is_same;
                if is_alike && fits {
                    set_bit(decided, other.index());
                }
                !is_alike
            });
        }
        Ok(())
    }

    pub(super) fn behind_tokens(
        &mut self,
        question: &mut Question<'_>,
        text: Text<'_>,
        from: (Outlook, &[TokenId]),
    ) -> Result<Vec<Outlook>, StepError> {
        let grammar = question.language.grammar();
        let (behind, n_steps) = self.outlooks.behind_tokens(grammar, text.vocabulary, from);
        question.work.spend(n_steps)?;
        Ok(behind)
    }

    /// Adds those of some tokens that are within a limit, one by one.
    pub(super) fn look_at(
        &mut self,
        question: &mut Question<'_>,
        text: Text<'_>,
        limit: u32,
        (decided, alone): (&mut [u32], &[u32]),
    ) -> Result<(), StepError> {
        let (language, trie) = (question.language, question.trie);
        let root = (text.frontier.to_vec(), text.recall.clone());
        trie.descend(trie.below_root(), root, |(frontier, recall), at| {
            let is_asked =
                |token: &TokenId| get_bit(alone, token.index()) && !get_bit(decided, token.index());
            if !trie.tokens_below(at).iter().any(is_asked) {
                return Ok(None);
            }
            let (mut next, mut recall) = (Vec::new(), recall.clone());
            question.stepper.step_recalling(language, frontier, &mut recall, trie.byte(at), &mut next)?;
            if next.is_empty() && recall.values().is_empty() {
                return Ok(None);
            }
            if trie.tokens_at(at).iter().any(is_asked) {
                let (mut outside, mut recall) = (next.clone(), recall.clone());
                if language.lexing().counts_tokens() {
                    outside = recall.count_token(question.stepper, language, outside)?;
                    outside = recall.numbered(question.stepper, language, &outside, limit)?;
                }
                for (config, recalled) in recall.along(&outside) {
                    if let Answer::Yes(..) = self.answer_within(question, (config, &recalled), limit)? {
                        trie.tokens_at(at).iter().for_each(|token| set_bit(decided, token.index()));
                        break;
                    }
                }
            }
            Ok(Some((next, recall)))
        })
    }
}
