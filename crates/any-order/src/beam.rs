//! Some texts that can stand left of each slot, as different as possible.
//!
//! A hole makes hundreds of readings of one, several holes all their combinations, and a search in depth that
//! began with an unlucky choice does not come back to it soon. So for each slot some readings are kept that
//! differ in the place of the lexer, in what can come next, and in how much is open; a search goes on from
//! these. It is a choice: what cannot be completed from them may be completable from others.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_lexer::dfa::DEAD;
use anygram_lexer::union::Union;
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::plan::{Place, Plan};
use crate::right::Right;
use crate::tables::{Outlook, Tables};

/// Readings after one token of which more are not needed.
const MOST_AFTER: usize = 256;

/// Readings after one token of one reading that are kept, of those with the same outlook at one state of the
/// union automaton.
const SOME_ALIKE: usize = 4;

/// Remainders of tokens of one reading that are looked at in a hole.
const SOME_RESTS: usize = 16;

/// A reading after some token, its state of the union automaton, and the token.
pub(crate) type After = (u32, Config, Option<TokenId>);

/// A reading that was come to.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    pub config: Config,
    /// Its number among those it was come from.
    pub from: u32,
    /// By which token; none where the text begins or a slot was left empty.
    pub token: Option<TokenId>,
}

/// How many readings before a slot are kept.
#[derive(Clone, Copy)]
pub(crate) struct Width {
    /// Those from which the beam goes on.
    pub some: usize,
    /// All.
    pub all: usize,
    /// At one state of the union automaton.
    pub alike: usize,
}

/// For each slot readings that can stand before it; what it is best to begin with comes last.
pub(crate) struct Beam {
    slots: Vec<Vec<Reached>>,
}

impl Beam {
    /// The readings before each slot.
    pub fn slots(&self) -> &[Vec<Reached>] {
        &self.slots
    }

    /// The tokens of the slots before one, on the way to a reading there.
    pub fn tokens(&self, slot: usize, config: Config) -> Vec<(usize, TokenId)> {
        let mut tokens = Vec::new();
        let mut reached = self.slots[slot].iter().find(|reached| reached.config == config);
        for slot in (0..slot).rev() {
            let Some(Reached { from, token, .. }) = reached else { break };
            tokens.extend(token.map(|token| (slot, token)));
            reached = self.slots[slot].get(*from as usize);
        }
        tokens.reverse();
        tokens
    }
}

impl Tables {
    /// Some readings before each slot, up to what follows the last hole that is not in a tail of holes. As
    /// far as there are steps.
    pub fn beam(&mut self, plan: &Plan, width: Width, work: &mut Work) -> Result<Beam, StepError> {
        let right = self.right(plan);
        let last = plan.places.iter().rposition(|place| *place != Place::Free).unwrap_or(plan.places.len());
        let Some(start) = self.start()? else { return Ok(Beam { slots: Vec::new() }) };
        let mut at = vec![Reached { config: start, from: 0, token: None }];
        let mut slots = Vec::new();
        for (slot, place) in plan.places.iter().enumerate() {
            at.drain(..at.len().saturating_sub(width.all));
            if slot == last {
                slots.push(at);
                break;
            }
            let skipped = at.len().saturating_sub(width.some);
            let next = match place {
                Place::Token(token) => self.after_token(&at[skipped..], *token),
                Place::Free | Place::Optional => self.after_any(
                    &at[skipped..],
                    *place == Place::Optional,
                    (&right, slot + 1, width.alike),
                    work,
                ),
                Place::Closed | Place::Gap => Ok(Vec::new()),
            };
            let mut next = next.unwrap_or_default();
            next.iter_mut().for_each(|reached| reached.from += skipped as u32);
            slots.push(std::mem::replace(&mut at, next));
            if at.is_empty() {
                break;
            }
        }
        Ok(Beam { slots })
    }

    fn after_token(&mut self, before: &[Reached], token: TokenId) -> Result<Vec<Reached>, StepError> {
        let mut next = Vec::new();
        let mut seen = FxHashSet::default();
        for (from, reached) in (0..).zip(before) {
            for &config in &*self.read(reached.config, token)? {
                if seen.insert(config) {
                    next.push(Reached { config, from, token: Some(token) });
                }
            }
        }
        Ok(next)
    }

    /// Some readings to which one token leads, or none where there may be none, that differ as much as
    /// possible.
    fn after_any(
        &mut self,
        before: &[Reached],
        may_stay: bool,
        (right, slot, most_alike): (&Right, usize, usize),
        work: &mut Work,
    ) -> Result<Vec<Reached>, StepError> {
        let mut found = Vec::new();
        for (from, reached) in (0..).zip(before) {
            if may_stay {
                let state = self.union_state(reached.config.lexeme);
                found.push((state, Reached { config: reached.config, from, token: None }));
            }
            let afters = self.afters(reached.config, work)?;
            work.spend(1 + afters.len() / 8)?;
            found.extend(
                afters.iter().map(|&(state, config, token)| (state, Reached { config, from, token })),
            );
        }
        found.retain(|&(state, _)| right.allows(slot, state));
        Ok(self.most_different(found, most_alike))
    }

    /// Readings to which one token leads from one, by state of the union automaton: of those with the same
    /// outlook some. They are kept.
    fn afters(&mut self, config: Config, work: &mut Work) -> Result<Arc<[After]>, StepError> {
        if let Some(known) = self.afters.get(&config) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        self.each_after(&[config], SOME_RESTS, work, |state, reached| found.push((state, reached)))?;
        let mut n_alike: FxHashMap<(u32, Outlook), usize> = FxHashMap::default();
        let mut afters = Vec::new();
        for (state, Reached { config, token, .. }) in found {
            let n = n_alike.entry((state, self.outlook(config.state))).or_default();
            if *n < SOME_ALIKE {
                *n += 1;
                afters.push((state, config, token));
            }
        }
        let afters: Arc<[After]> = afters.into();
        self.afters.insert(config, afters.clone());
        Ok(afters)
    }

    /// Calls `each` with readings to which one token leads and their states of the union automaton, and looks
    /// at so many remainders of tokens beyond pieces.
    fn each_after(
        &mut self,
        before: &[Config],
        most_rests: usize,
        work: &mut Work,
        mut each: impl FnMut(u32, Reached),
    ) -> Result<(), StepError> {
        let mut seen = FxHashSet::default();
        let mut agenda: VecDeque<(Config, Option<Arc<Rest>>, u32)> =
            before.iter().zip(0..).map(|(&config, from)| (config, None, from)).collect();
        for _ in 0..before.len() + most_rests {
            let Some((config, rest, from)) = agenda.pop_front() else { break };
            let walk = self.walk(config, rest.as_ref())?;
            work.spend(1 + walk.stays.len() + walk.exits.len())?;
            let mut add = |this: &Self, config: Config, token: Option<TokenId>| {
                each(this.union_state(config.lexeme), Reached { config, from, token });
            };
            for (lexeme, tokens) in &walk.stays {
                add(self, Config { state: config.state, lexeme: *lexeme }, tokens.first);
            }
            for (at, exit) in walk.exits.iter().enumerate() {
                let Some(next) = self.end(config, &walk, at)? else { continue };
                if exit.ends.n_tokens > 0 {
                    add(self, next, exit.ends.first);
                }
                if agenda.len() < most_rests
                    && let Some(beyond) = self.beyond(&walk, at, rest.as_ref(), work)?
                    && seen.insert((next, beyond.id))
                {
                    agenda.push_back((next, Some(beyond), from));
                }
            }
        }
        Ok(())
    }

    /// Of readings by state of the union automaton, some that differ.
    fn most_different(&mut self, found: Vec<(u32, Reached)>, most_alike: usize) -> Vec<Reached> {
        let mut n_alike: FxHashMap<(u32, Outlook), usize> = FxHashMap::default();
        let mut seen = FxHashSet::default();
        let mut ranked = Vec::new();
        for (state, reached) in found {
            let outlook = self.outlook(reached.config.state);
            let n = n_alike.entry((state, outlook)).or_default();
            if *n < most_alike && seen.insert(reached.config) {
                *n += 1;
                ranked.push((state, outlook, reached));
            }
        }
        let mut found: Vec<(u32, Outlook, Reached)> = ranked;
        found.sort_by_key(|&(state, outlook, reached)| (state, outlook.lacking, reached.config));
        let mut chosen = Vec::new();
        let mut seen: FxHashSet<Outlook> = FxHashSet::default();
        for alike in found.chunk_by(|one, other| one.0 == other.0) {
            seen.clear();
            let is_first = |(_, outlook, _): &&(u32, Outlook, Reached)| seen.insert(*outlook);
            let (unlike, alike): (Vec<_>, Vec<_>) = alike.iter().partition(is_first);
            // What is open widest is as good as what is nearly closed.
            let some = unlike.into_iter().chain(alike.into_iter().rev()).take(most_alike);
            chosen.extend(
                some.enumerate().map(|(rank, &(state, outlook, reached))| (rank, state, outlook, reached)),
            );
        }
        chosen.sort_by_key(|&(rank, state, _, reached)| {
            (rank, Reverse(self.permissiveness.get(state as usize).copied()), reached.config)
        });
        // What is open in different depths takes turns, what is open less deep more often: brackets can be
        // opened as deep as there are holes, and are in few texts.
        let mut depths: Vec<u32> = chosen.iter().map(|(_, _, outlook, _)| outlook.lacking).collect();
        depths.sort_unstable();
        depths.dedup();
        let mut n_alike = vec![0; depths.len()];
        let mut turns: Vec<(usize, Reached)> = Vec::with_capacity(chosen.len());
        for (_, _, outlook, reached) in chosen {
            let depth = depths.partition_point(|&depth| depth < outlook.lacking);
            n_alike[depth] += 1;
            turns.push((n_alike[depth] * (1 + depth), reached));
        }
        turns.sort_by_key(|&(turn, _)| turn);
        turns.truncate(MOST_AFTER);
        turns.into_iter().rev().map(|(_, reached)| reached).collect()
    }
}

/// For each state of the union automaton the number of bytes that can follow.
pub(crate) fn permissiveness(union: &Union) -> Box<[u16]> {
    let follow =
        |state| (0..=u8::MAX).filter(|&byte| union.step(state, union.class(byte)) != DEAD).count() as u16;
    (0..union.n_states() as u32).map(follow).collect()
}
