//! Some texts that can stand left of each slot, as different as possible.
//!
//! A hole makes hundreds of readings of one, several holes all their combinations, and a search in depth that began with an unlucky choice does not come back to
//! it soon. So for each slot some readings are kept that differ in the place of the lexer, in what can come next, and in how much is open; a search goes on from
//! these. It is a choice: what cannot be completed from them may be completable from others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_lexer::dfa::DEAD;
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::plan::{Place, Plan};
use crate::search::Tables;

/// Readings after one token of which more are not needed, and at one state of the union automaton.
const MOST_AFTER: usize = 256;
const MOST_ALIKE: usize = 12;

/// Readings before a slot that are kept.
const MOST_READINGS: usize = 64;

/// Remainders of tokens that are looked at in a hole.
const SOME_RESTS: usize = 64;

/// A reading that was come to.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    pub config: Config,
    /// Its number among those it was come from.
    pub from: u32,
    /// By which token; none where the text begins or a slot was left empty.
    pub token: Option<TokenId>,
}

/// For each slot, up to some slot, readings that can stand before it; what it is best to begin with comes last.
pub(crate) struct Beam {
    slots: Vec<Vec<Reached>>,
}

impl Beam {
    /// The readings before each slot.
    pub fn slots(&self) -> &[Vec<Reached>] {
        &self.slots
    }
}

impl Tables {
    /// Some readings before each slot, up to what follows the last hole that is not in a tail of holes. As far as there are steps.
    pub fn beam(&mut self, plan: &Plan, work: &mut Work) -> Result<Beam, StepError> {
        let right = self.right(plan);
        let Some(start) = self.start()? else { return Ok(Beam { slots: Vec::new() }) };
        let mut at = vec![Reached { config: start, from: 0, token: None }];
        let mut slots = Vec::new();
        let last = plan.places.iter().rposition(|place| *place != Place::Free).unwrap_or(plan.places.len());
        for (slot, place) in plan.places.iter().enumerate().take(last + 1) {
            at.drain(..at.len().saturating_sub(MOST_READINGS));
            let next = match place {
                Place::Token(token) => self.after_token(&at, *token),
                Place::Free | Place::Optional => {
                    let before: Vec<Config> = at.iter().map(|reached| reached.config).collect();
                    let may_stay = *place == Place::Optional;
                    self.some_after(&before, may_stay, (right.states(slot + 1), SOME_RESTS), work)
                }
                Place::Closed | Place::Gap => Ok(Vec::new()),
            };
            slots.push(std::mem::replace(&mut at, next.unwrap_or_default()));
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

    /// Some readings to which one token leads, at states of the union automaton that are allowed: of each state some that differ in what can come next and in
    /// how much is open. Those that are unlike all before them come last, and among these by turns those that lack fewer and more terminals to be a sentence.
    /// Looks at so many remainders of tokens beyond pieces. Where there may be no token as well, what it begins with is among them.
    pub fn some_after(
        &mut self,
        before: &[Config],
        may_stay: bool,
        (allowed, most_rests): (&BitSet, usize),
        work: &mut Work,
    ) -> Result<Vec<Reached>, StepError> {
        let mut found: BTreeMap<u32, Vec<Reached>> = BTreeMap::new();
        for (&config, from) in before.iter().zip(0..).filter(|_| may_stay) {
            let state = self.stepper.transducer().union_state(config.lexeme);
            if allowed.contains(state as usize) {
                found.entry(state).or_default().push(Reached { config, from, token: None });
            }
        }
        let mut seen = FxHashSet::default();
        let mut agenda: VecDeque<(Config, Option<Arc<Rest>>, u32)> =
            before.iter().zip(0..).map(|(&config, from)| (config, None, from)).collect();
        for _ in 0..before.len() + most_rests {
            let Some((config, rest, from)) = agenda.pop_front() else { break };
            let walk = self.walk(config, rest.as_ref())?;
            work.spend(1 + walk.stays.len() + walk.exits.len())?;
            let mut add = |this: &Self, config: Config, token: Option<TokenId>| {
                let state = this.stepper.transducer().union_state(config.lexeme);
                if allowed.contains(state as usize) {
                    found.entry(state).or_default().push(Reached { config, from, token });
                }
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
        Ok(self.most_different(found))
    }

    fn most_different(&mut self, found: BTreeMap<u32, Vec<Reached>>) -> Vec<Reached> {
        let mut ranked = Vec::new();
        for mut alike in found.into_values() {
            alike.sort_by_key(|reached| reached.config);
            alike.dedup_by_key(|reached| reached.config);
            alike.sort_by_cached_key(|reached| (self.lacking(reached.config.state), reached.config));
            let mut seen = FxHashSet::default();
            let mut is_first = |reached: &Reached| {
                let state = reached.config.state;
                let lacking = self.lacking(state);
                seen.insert((self.stepper.recognizer().viable(state).clone(), lacking))
            };
            let (unlike, alike): (Vec<_>, Vec<_>) = alike.into_iter().partition(&mut is_first);
            // What is open widest is as good as what is nearly closed.
            let chosen = unlike.into_iter().chain(alike.into_iter().rev()).take(MOST_ALIKE);
            ranked.extend(chosen.enumerate());
        }
        ranked
            .sort_by_cached_key(|&(rank, Reached { config, .. })| (rank, Reverse(self.permissiveness(config)), config));
        // What is open in different depths takes turns.
        let mut n_alike: FxHashMap<u32, usize> = FxHashMap::default();
        let mut chosen: Vec<(usize, Reached)> = Vec::with_capacity(ranked.len());
        for (_, reached) in ranked {
            let turn = n_alike.entry(self.lacking(reached.config.state)).or_default();
            *turn += 1;
            chosen.push((*turn, reached));
        }
        chosen.sort_by_key(|&(turn, _)| turn);
        chosen.truncate(MOST_AFTER);
        chosen.into_iter().rev().map(|(_, reached)| reached).collect()
    }

    /// The number of bytes that can follow in a state of the union automaton.
    fn permissiveness(&self, config: Config) -> usize {
        let union = &self.constraint.language().lexing().lexicon.union;
        let state = self.stepper.transducer().union_state(config.lexeme);
        (0..=u8::MAX).filter(|&byte| union.step(state, union.class(byte)) != DEAD).count()
    }
}
