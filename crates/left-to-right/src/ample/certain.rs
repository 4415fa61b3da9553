//! What is enough for a reading whatever was written before it.
//!
//! The completions of these bounds have no piece that repeats something, whatever that is. A piece that is
//! held against others, in progress or to come, has some letters before its end: of so many different texts of
//! letters one makes it another value than all that there can be
//! ([`Memory::letters`](anygram_grammar::memory::Memory::letters)). So it is known what it costs, and not how
//! it is spelled.

use std::cmp::Reverse;

use anygram_grammar::automata::PieceAutomaton;
use anygram_grammar::ir::Grammar;
use anygram_lexer::transducer::LexemeId;
use anygram_vocab::TokenTrie;

use super::{Ample, Way, spelled};
use crate::costs::NEVER;
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::recalled::Ending;

/// What is enough for a reading, whatever was written before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Certain {
    plain: u32,
    /// The same by as many letters more; each for a piece that is held against less than so many values.
    by_letters: [(usize, u32); LETTERS],
}

/// Letters behind which a piece differs from others.
const LETTERS: usize = 3;

impl Certain {
    const NONE: Self = Self { plain: NEVER, by_letters: [(0, NEVER); LETTERS] };

    /// Where a piece is held against at most so many values.
    pub fn cost(&self, n_values: usize) -> u32 {
        let by_letters = self.by_letters.iter().find(|&&(most, _)| n_values < most).map_or(NEVER, |of| of.1);
        let cost = self.plain.min(by_letters);
        // Others that are written are held against one another, too, and each takes a token at least.
        if n_values.max(cost as usize) <= MOST_VALUES { cost } else { NEVER }
    }
}

/// Values that a piece can be held against, beside those that come with it.
const MOST_VALUES: usize = 10_000;

/// How many texts a terminal matches that have as many letters as may be between a beginning and a last byte.
fn n_by_letters(
    grammar: &Grammar,
    (pieces, label): (&dyn PieceAutomaton, u32),
    (begin, last): (&[u8], u8),
) -> Option<usize> {
    let step = |state, byte: u8| pieces.step(state, byte).ok().flatten();
    let letters = grammar.letters();
    let mut state = begin.iter().try_fold(pieces.start(), |state, &byte| step(state, byte))?;
    let mut most = 1_usize;
    for _ in 0..LETTERS {
        let leads = (0..=u8::MAX).filter(|&byte| letters.contains(byte)).filter_map(|byte| step(state, byte));
        let (next, n) = where_most_lead(leads)?;
        (state, most) = (next, most.saturating_mul(n));
    }
    let end = step(state, last)?;
    pieces.accepts(end).binary_search(&label).is_ok().then_some(most)
}

/// Where most lead, and how many.
fn where_most_lead<T: Copy + Ord>(leads: impl Iterator<Item = T>) -> Option<(T, usize)> {
    let mut counts: Vec<(T, usize)> = Vec::new();
    for lead in leads {
        match counts.iter_mut().find(|(known, _)| *known == lead) {
            Some((_, n)) => *n += 1,
            None => counts.push((lead, 1)),
        }
    }
    counts.into_iter().max_by_key(|&(lead, n)| (n, Reverse(lead)))
}

/// Gives the terminals that are held against others ways that are certain.
pub(super) fn make_distinct(grammar: &Grammar, terminals: &mut [Way]) {
    let is_distinct = |at: usize| grammar.terminals[at].memory.is_some_and(|of| of.is_distinct());
    for (at, way) in terminals.iter_mut().enumerate().filter(|&(at, _)| is_distinct(at)) {
        let text = way.text.take().unwrap_or_default();
        let is_new = text.split_last().is_some_and(|(&last, begin)| {
            let most = grammar
                .piece(at)
                .and_then(|(pieces, label)| n_by_letters(grammar, (&**pieces, label), (begin, last)));
            most.is_some_and(|most| most >= 2 * MOST_VALUES)
        });
        let cost = text.len() as u32 + LETTERS as u32;
        way.cost = if is_new { cost } else { NEVER };
    }
}

impl Ample {
    /// What is enough for a reading at a token boundary whatever was written, by bounds that are certain; a
    /// piece in progress ends within so many bytes.
    pub fn certain(
        &mut self,
        stepper: &mut Stepper,
        (language, trie): (&Language, &TokenTrie),
        (config, bytes): (Config, usize),
    ) -> Result<Certain, StepError> {
        let mut certain = Certain::NONE;
        if stepper.transducer().is_boundary(config.lexeme) {
            certain.plain = self.at_boundary(stepper, (language, trie), config).cost;
            return Ok(certain);
        }
        for (text, cut) in &*self.nearest(stepper, language, config.lexeme)? {
            if text.len() > bytes {
                continue;
            }
            // As if the piece repeated another.
            for (_, config) in stepper.ends(language, (config.state, *cut), Ending::Repeats)? {
                let rest = self.at_boundary(stepper, (language, trie), config).cost;
                certain.plain = certain.plain.min(rest.saturating_add(spelled(trie, text)));
            }
        }
        let letters = language.grammar().letters();
        let letters: Vec<u8> = (0..=u8::MAX).filter(|&byte| letters.contains(byte)).collect();
        // Inside of a character they come behind it.
        let (mut lexeme, mut most, mut n_bytes) = (config.lexeme, 1_usize, 0);
        let mut leads = self.lead(stepper, language, (lexeme, &letters))?;
        let first = self.nearest(stepper, language, lexeme)?.first().map(|(text, _)| text.clone());
        for &byte in first.iter().flat_map(|text| &text[..text.len().saturating_sub(1)]) {
            if leads.is_some() {
                break;
            }
            let step = stepper.transducer_mut().step(language.lexing(), lexeme, byte)?;
            let Some(stay) = step.stay else { break };
            (lexeme, n_bytes) = (stay, n_bytes + 1);
            leads = self.lead(stepper, language, (lexeme, &letters))?;
        }
        for known in &mut certain.by_letters {
            let Some((next, n)) = leads else { break };
            (lexeme, most, n_bytes) = (next, most.saturating_mul(n), n_bytes + 1);
            for (text, cut) in &*self.nearest(stepper, language, lexeme)? {
                if text.len() + n_bytes <= bytes
                    && let Some(config) = stepper.end(language, (config.state, *cut))?
                {
                    let rest = self.at_boundary(stepper, (language, trie), config).cost;
                    let cost = rest.saturating_add(spelled(trie, text)).saturating_add(n_bytes as u32);
                    *known = (most, cost.min(known.1));
                }
            }
            leads = self.lead(stepper, language, (lexeme, &letters))?;
        }
        Ok(certain)
    }

    /// Where most letters lead a piece in progress, and how many.
    fn lead(
        &self,
        stepper: &mut Stepper,
        language: &Language,
        (lexeme, letters): (LexemeId, &[u8]),
    ) -> Result<Option<(LexemeId, usize)>, StepError> {
        let mut leads = Vec::with_capacity(letters.len());
        for &letter in letters {
            leads.extend(stepper.transducer_mut().step(language.lexing(), lexeme, letter)?.stay);
        }
        Ok(where_most_lead(leads.into_iter()))
    }
}
