//! How many tokens have bytes in the pieces in progress, where a grammar bounds them.
//!
//! The tokens of a text are state of an output and not of the text: two ways to write one text can differ
//! here. So each reading whose piece in progress is [counted](anygram_grammar::ir::Terminal::max_tokens) has,
//! beside it, the token in which that piece began. Of equal readings the one that began last stands for all,
//! since what may follow the others may follow it.
//!
//! Between two tokens, terminals that have used theirs up are taken from the readings
//! ([`Transducer::count`](anygram_lexer::transducer::Transducer::count)). So what is left are ordinary
//! readings, and masks need not know of counts, but that a piece with one token left may not be in progress
//! behind it. Cost of a byte: a look-up for each reading, and nothing where nothing is counted.
//!
//! Budgets look further than one token. For them lexemes are [numbered](Counts::numbered): the number of
//! tokens in the piece in progress is a part of the lexeme, as far as it matters within the budget.

use std::cmp::Reverse;

use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};

/// Where the pieces in progress began whose tokens count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// The tokens before the present one.
    n_tokens: u32,
    /// The readings in progress that are counted, sorted, each with the number of tokens before the one in
    /// which its piece began.
    begun: Vec<(Config, u32)>,
}

impl Counts {
    /// Before the first token; `None` if the language counts nothing.
    pub fn new(language: &Language) -> Option<Self> {
        language.lexing().counts_tokens().then(Self::default)
    }

    fn begun(&self, config: Config) -> Option<u32> {
        let at = self.begun.binary_search_by_key(&config, |begun| begun.0).ok()?;
        Some(self.begun[at].1)
    }

    /// Readings between two tokens, numbered where less than `room` more tokens may have bytes in the piece
    /// in progress.
    pub fn numbered(
        &self,
        stepper: &mut Stepper,
        language: &Language,
        frontier: &[Config],
        room: u32,
    ) -> Result<Frontier, StepError> {
        let mut numbered = Frontier::with_capacity(frontier.len());
        for &config in frontier {
            let n_tokens = self.begun(config).map_or(0, |at| self.n_tokens - at);
            let transducer = stepper.transducer_mut();
            let lexeme = transducer.numbered(language.lexing(), config.lexeme, (n_tokens, room))?;
            numbered.push(Config { lexeme, ..config });
        }
        numbered.sort_unstable();
        numbered.dedup();
        Ok(numbered)
    }

    /// The same of readings that have other names.
    pub fn renamed<E>(&self, mut rename: impl FnMut(Config) -> Result<Config, E>) -> Result<Self, E> {
        let mut renamed = Self { n_tokens: self.n_tokens, begun: Vec::new() };
        let begun = self.begun.iter().map(|&(config, at)| Ok((rename(config)?, at)));
        renamed.set(begun.collect::<Result<_, _>>()?);
        Ok(renamed)
    }

    fn set(&mut self, mut begun: Vec<(Config, u32)>) {
        begun.sort_unstable_by_key(|&(config, at)| (config, Reverse(at)));
        begun.dedup_by_key(|begun| begun.0);
        self.begun = begun;
    }
}

impl Stepper {
    /// What readings become with a byte, as far as it is counted.
    pub(crate) fn step_counts(
        &mut self,
        language: &Language,
        frontier: &[Config],
        counts: &mut Counts,
        byte: u8,
    ) -> Result<(), StepError> {
        let lexing = language.lexing();
        let mut begun = Vec::new();
        for &config in frontier {
            let Some(lexeme) = self.transducer_mut().step(lexing, config.lexeme, byte)?.stay else {
                continue;
            };
            if self.transducer().is_counted(lexing, lexeme) {
                // Where it is not known it begins here: the reading was between two pieces.
                let at = counts.begun(config).unwrap_or(counts.n_tokens);
                begun.push((Config { lexeme, ..config }, at));
            }
        }
        counts.set(begun);
        Ok(())
    }

    /// The readings behind a token: those in which a part of the text has more tokens than it may are
    /// dropped.
    pub(crate) fn count_token(
        &mut self,
        language: &Language,
        frontier: Frontier,
        counts: &mut Counts,
    ) -> Result<Frontier, StepError> {
        let lexing = language.lexing();
        counts.n_tokens += 1;
        let (mut next, mut begun) = (Frontier::new(), Vec::new());
        for config in frontier {
            let Some(at) = counts.begun(config) else {
                next.push(config);
                continue;
            };
            let n_tokens = counts.n_tokens - at;
            let Some(lexeme) = self.transducer_mut().count(lexing, config.lexeme, n_tokens)? else {
                continue;
            };
            let config = Config { lexeme, ..config };
            next.push(config);
            begun.extend(self.transducer().is_counted(lexing, lexeme).then_some((config, at)));
        }
        next.sort_unstable();
        next.dedup();
        counts.set(begun);
        Ok(next)
    }

    /// What [numbered](Counts::numbered) readings are when the present token ends and `room` more may come;
    /// others stay as they are.
    pub(crate) fn behind_token(
        &mut self,
        language: &Language,
        frontier: &[Config],
        room: u32,
    ) -> Result<Frontier, StepError> {
        let mut behind = Frontier::with_capacity(frontier.len());
        for &config in frontier {
            let lexeme = self.transducer_mut().behind_token(language.lexing(), config.lexeme, room)?;
            behind.extend(lexeme.map(|lexeme| Config { lexeme, ..config }));
        }
        Ok(behind)
    }

    /// As [`Stepper::is_viable`], of readings behind a token that were not
    /// [counted](Stepper::count_token) yet.
    pub(crate) fn is_viable_behind_token(
        &mut self,
        language: &Language,
        frontier: &[Config],
    ) -> Result<bool, StepError> {
        if !language.lexing().counts_tokens() {
            return self.is_viable(language, frontier);
        }
        let goes_on = |config: &&Config| !self.transducer().ends_with_token(config.lexeme);
        let left: Frontier = frontier.iter().filter(goes_on).copied().collect();
        self.is_viable(language, &left)
    }
}
