//! A canvas decided by the terminals that it can be lexed to ([`crate::lexings`]).
//!
//! With a gap for each run of holes it is not counted how many tokens stand there, so the question is
//! polynomial and mostly quick: it is the one that the method `intersection` asks. Its no is one of the
//! canvas in every mode. Its yes is a sequence of terminals, of which a text is made that may or may not fit.
//! With one token in each hole the question is the canvas itself; where only few tokens are tried, a yes
//! comes soon, and a no says nothing.

use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_lexer::transducer::Lexing;

use crate::canvas::End;
use crate::lexings::Lexings;
use crate::lexings::completions::{Completions, Item, Trie};
use crate::lexings::parse::{Order, Parse, Rules};
use crate::lexings::spell::{self, Spelled};
use crate::lexings::tables::Tables;
use crate::plan::{Place, Plan};
use crate::search::Found;

/// What is known of one lexing of canvases, kept from one to the next.
pub(crate) struct Loose {
    tables: Tables,
    rules: Rules,
}

/// What holes stand for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holes {
    /// A run of them for any number of tokens.
    Gaps,
    /// Each for one of such tokens.
    Tokens(Trie),
}

/// Texts of one sequence of terminals that are tried: without a blank behind pieces that end in gaps, and
/// with.
const TRIED: [bool; 2] = [false, true];

impl Loose {
    /// Tables for a lexing, in which no automaton grows.
    pub fn new(constraint: &Constraint, lexing: Lexing, few: Arc<Rest>) -> Self {
        let rules = Rules::new(&lexing.cfg);
        Self { tables: Tables::new(constraint, Arc::new(lexing), Some(few)), rules }
    }

    /// Begins afresh if so much is kept that it is better.
    pub fn renew(&mut self, constraint: &Constraint) {
        if self.tables.is_full() {
            self.tables.clear(constraint);
        }
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.tables.memory_usage()
    }

    /// Whether a plan has a completion with gaps for its holes.
    pub fn is_possible(
        &mut self,
        constraint: &Constraint,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<bool, StepError> {
        let completions = Completions::loosely(constraint, plan);
        let mut lexings = Lexings::new(&mut self.tables, constraint, &completions);
        Ok(Parse::new(&self.rules, &mut lexings, Order::Depth).run(work)?.is_some())
    }

    /// Looks for a completion of a plan: `None` if there is none. Texts that probably are ones are shown to
    /// `accept` until it takes one; `Some(None)` if it takes none.
    ///
    /// With few tokens in holes it is no proof that there is no completion.
    pub fn complete<T>(
        &mut self,
        constraint: &Constraint,
        plan: &Plan,
        holes: Holes,
        work: &mut Work,
        accept: &mut dyn FnMut(&Found) -> Result<Option<T>, StepError>,
    ) -> Result<Option<Option<T>>, StepError> {
        let (completions, order) = match holes {
            Holes::Gaps => (Completions::loosely(constraint, plan), Order::Least),
            Holes::Tokens(trie) => (Completions::exactly(constraint, plan, trie), Order::Onwards),
        };
        let mut lexings = Lexings::new(&mut self.tables, constraint, &completions);
        let path = Parse::new(&self.rules, &mut lexings, order).run(work)?;
        let Some(path) = path else { return Ok(None) };
        for apart in TRIED {
            if let Some(spelled) = lexings.spell(&path, apart, 0, work)?
                && let Some(found) = found(constraint, plan, &completions, &spelled)
                && let Some(accepted) = accept(&found)?
            {
                return Ok(Some(Some(accepted)));
            }
        }
        Ok(Some(None))
    }
}

/// A text as what stands in the slots of the plan. `None` if its bytes are not those of tokens, or if more
/// follows than may remain.
fn found(
    constraint: &Constraint,
    plan: &Plan,
    completions: &Completions,
    Spelled { parts, end }: &Spelled,
) -> Option<Found> {
    let n_slots = plan.places.len();
    let last = || completions.slots.last().map_or(0, |&(_, behind)| behind);
    let end = completions.slots.get(*end).map_or_else(last, |&(from, _)| from);
    let mut tokens = Vec::new();
    let mut closing = Vec::new();
    for (place, slot) in plan.places[..end.min(n_slots)].iter().zip(0..) {
        if let Place::Token(token) = place {
            tokens.push((slot, *token));
        }
    }
    for ((parts, item), &(slot, _)) in parts.iter().zip(&completions.items).zip(&completions.slots) {
        if parts.is_empty() {
            continue;
        }
        let filled = match item {
            Item::Hole(_) => vec![spell::token(constraint, parts)?],
            _ => spell::tokens(constraint, parts)?,
        };
        if slot < n_slots {
            tokens.extend(filled.into_iter().map(|token| (slot, token)));
        } else {
            closing = filled;
        }
    }
    if let Some(End::Prefix { remaining }) = plan.whole {
        match remaining {
            None => closing.clear(),
            Some(most) if closing.len() > most as usize => return None,
            Some(_) => {}
        }
    }
    tokens.sort_by_key(|&(slot, _)| slot);
    let n_in_gaps = tokens.iter().filter(|(slot, _)| plan.places[*slot] == Place::Gap).count();
    Some(Found { end, tokens, n_in_gaps, closing })
}
