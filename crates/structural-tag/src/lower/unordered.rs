//! Members in any order, each at most once, as right-hand sides by an automaton.

use std::sync::{Arc, Mutex, PoisonError};

use anygram_grammar::automata::{RuleAutomaton, TooManyStates};
use rustc_hash::FxHashMap;

/// The members that were written so far, as bits.
type Written = u64;

/// At least one of some members, in any order, none twice, the required ones always. A symbol is the place of
/// a member.
#[derive(Debug)]
pub(super) struct Unordered {
    n_members: u32,
    required: Written,
    limit: usize,
    states: Mutex<(Vec<Written>, FxHashMap<Written, u32>)>,
}

impl Unordered {
    /// The most members.
    pub const MOST: usize = Written::BITS as usize;

    /// Members of which `required` says whether they are; `limit` bounds the states.
    pub fn new(required: &[bool], limit: usize) -> Self {
        let bits = required.iter().enumerate().filter(|(_, required)| **required);
        let required_bits = bits.map(|(at, _)| 1 << at).sum();
        let states = Mutex::new((vec![0], FxHashMap::from_iter([(0, 0)])));
        Self { n_members: required.len() as u32, required: required_bits, limit, states }
    }

    fn written(&self, state: u32) -> Written {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).0[state as usize]
    }
}

impl RuleAutomaton for Unordered {
    fn start(&self) -> u32 {
        0
    }

    fn symbols(&self, state: u32) -> Arc<[u32]> {
        let written = self.written(state);
        (0..self.n_members).filter(|at| written >> at & 1 == 0).collect()
    }

    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates> {
        let next = self.written(state) | 1 << symbol;
        let (states, ids) = &mut *self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = ids.get(&next) {
            return Ok(known);
        }
        if states.len() >= self.limit {
            let what = "an object with members in any order".to_owned();
            return Err(TooManyStates { what, limit: self.limit, option: "schema_states" });
        }
        states.push(next);
        ids.insert(next, states.len() as u32 - 1);
        Ok(states.len() as u32 - 1)
    }

    fn accepts(&self, state: u32) -> bool {
        let written = self.written(state);
        written != 0 && self.required & !written == 0
    }

    fn minimum(&self, state: u32) -> u32 {
        let written = self.written(state);
        (self.required & !written).count_ones().max(u32::from(written == 0))
    }
}
