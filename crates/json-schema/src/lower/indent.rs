//! Objects and arrays in indented texts: bare brackets where they are empty, and a bound on the depth.

use std::sync::Arc;

use anygram_grammar::automata::{RuleAutomaton, TooManyStates};

/// The number of the bracket that closes what is empty, of objects and of arrays (see [`crate::rules`]).
const CLOSE_EMPTY: u32 = 1;

/// An object or array with something in it.
#[derive(Debug)]
pub struct NonEmpty {
    rules: Arc<dyn RuleAutomaton>,
    /// Behind the opening bracket.
    first: u32,
}

impl NonEmpty {
    /// `None` if there is none.
    pub fn new(rules: Arc<dyn RuleAutomaton>) -> Option<Self> {
        let open = *rules.symbols(rules.start()).first()?;
        let first = rules.step(rules.start(), open).ok()?;
        let this = Self { rules, first };
        (!this.symbols(first).is_empty()).then_some(this)
    }
}

impl RuleAutomaton for NonEmpty {
    fn start(&self) -> u32 {
        self.rules.start()
    }

    fn symbols(&self, state: u32) -> Arc<[u32]> {
        let symbols = self.rules.symbols(state);
        match state == self.first && symbols.first() == Some(&CLOSE_EMPTY) {
            true => symbols[1..].into(),
            false => symbols,
        }
    }

    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates> {
        self.rules.step(state, symbol)
    }

    fn accepts(&self, state: u32) -> bool {
        self.rules.accepts(state)
    }

    /// One member or item, and the closing bracket, are as few as there can be.
    fn minimum(&self, state: u32) -> u32 {
        let least = match state {
            _ if state == self.start() => 3,
            _ if state == self.first => 2,
            _ => 0,
        };
        self.rules.minimum(state).max(least)
    }

    fn least(&self, state: u32, weight: &mut dyn FnMut(&[u32]) -> u32) -> u32 {
        self.rules.least(state, weight)
    }
}

/// What stands where texts would be nested too deeply: it can be read up to the opening bracket, and going on
/// is the error of a limit, for it must not be an answer.
#[derive(Debug)]
pub struct TooDeep(pub u32);

impl RuleAutomaton for TooDeep {
    fn start(&self) -> u32 {
        0
    }

    fn symbols(&self, _: u32) -> Arc<[u32]> {
        [0].into()
    }

    fn step(&self, _: u32, _: u32) -> Result<u32, TooManyStates> {
        let what = "the depth of an indented text".to_owned();
        Err(TooManyStates { what, limit: self.0 as usize, option: "indent_depth" })
    }

    fn accepts(&self, _: u32) -> bool {
        false
    }

    fn minimum(&self, _: u32) -> u32 {
        3
    }
}
