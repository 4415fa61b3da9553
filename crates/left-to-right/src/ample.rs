//! What certainly fits: an upper bound on the cost of a reading that takes a look-up, for budgets that are
//! ample.
//!
//! Where every byte is a token, a text of `n` bytes costs at most `n` tokens. Most terminals can be spelled
//! from every boundary, in a number of bytes that is found once
//! ([`Boundaries::bytes_from_everywhere`](anygram_lexer::boundary::Boundaries::bytes_from_everywhere)); the
//! least sum of these over what a parser's state lacks is a shortest path over what is in progress. So the
//! bound needs no lexing and no tokens. It is several times the truth, which is good enough for all but the
//! end of an output. Where there is no such bound, all is searched for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anygram_bits::CompactSet;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{LexerMode, Symbol, TerminalId};
use anygram_lexer::dfa::{Dfa, START};
use anygram_lexer::transducer::{CutId, LexemeId, Lexing};
use anygram_recognizer::{Begun, Recognizer, StateId};
use anygram_vocab::TokenTrie;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::costs::NEVER;
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};

/// Lexemes that are looked at for the nearest end of a piece.
const NEAREST: usize = 200;

/// States that are looked at for the shortest text of a terminal that is given by an automaton.
const STATES: usize = 5_000;

/// How a piece in progress can end soonest: after so many bytes, in one of some ways.
type Nearest = Option<(u32, Box<[CutId]>)>;

/// The bounds; see the module.
#[derive(Debug)]
pub(crate) struct Ample {
    terminals: Vec<u32>,
    nonterminals: Vec<u32>,
    states: FxHashMap<StateId, u32>,
    begun: FxHashMap<Begun, u32>,
    nearest: FxHashMap<LexemeId, Nearest>,
}

impl Ample {
    /// The bounds for a language, if there are any with this vocabulary.
    pub fn new(lexing: &Lexing, trie: &TokenTrie, work: &mut Work) -> Result<Option<Self>, Stopped> {
        let is_token =
            |byte| trie.child(TokenTrie::ROOT, byte).is_some_and(|node| !trie.tokens_at(node).is_empty());
        // The rules that stand for automata derive more than those give, so nothing is a bound from above.
        if !(0..=u8::MAX).all(is_token) || !lexing.cfg.automata.is_empty() {
            return Ok(None);
        }
        let terminals = match (lexing.mode(), lexing.boundaries()) {
            (LexerMode::Scannerless, _) => {
                let shortest = |at| {
                    let terminal = TerminalId::new(at);
                    // A token that the grammar names is one.
                    let other =
                        || if lexing.is_given(terminal) { shortest_given(lexing, at) } else { Some(1) };
                    lexing.dfa(terminal).map_or_else(other, shortest)
                };
                (0..lexing.cfg.n_terminals).map(shortest).collect()
            }
            (_, None) => return Ok(None),
            (_, Some(boundaries)) => boundaries.bytes_from_everywhere(work)?,
        };
        let terminals: Vec<u32> =
            terminals.into_iter().map(|bytes: Option<u32>| bytes.unwrap_or(NEVER)).collect();
        let nonterminals = least_sums(&lexing.cfg, &terminals, work)?;
        Ok(Some(Self {
            terminals,
            nonterminals,
            states: FxHashMap::default(),
            begun: FxHashMap::default(),
            nearest: FxHashMap::default(),
        }))
    }

    /// Drops what is known of parser states.
    pub fn forget_states(&mut self) {
        self.states.clear();
        self.begun.clear();
    }

    /// An upper bound on the cost of completing a reading at a token boundary; [`NEVER`] if none is known.
    pub fn upper(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        config: Config,
    ) -> Result<u32, StepError> {
        if stepper.transducer().is_boundary(config.lexeme) {
            return Ok(self.at_boundary(stepper, language, config));
        }
        let nearest = match self.nearest.get(&config.lexeme) {
            Some(known) => known.clone(),
            None => {
                let found = nearest(stepper, language, config.lexeme)?;
                self.nearest.insert(config.lexeme, found.clone());
                found
            }
        };
        let Some((bytes, cuts)) = nearest else { return Ok(NEVER) };
        for &cut in &cuts {
            if let Some(config) = stepper.end(language, (config.state, cut))? {
                return Ok(self.at_boundary(stepper, language, config).saturating_add(bytes));
            }
        }
        Ok(NEVER)
    }

    fn at_boundary(&mut self, stepper: &Stepper, language: &Language, config: Config) -> u32 {
        if stepper.is_sentence(&[config]) {
            return 0;
        }
        // Where all compete, the boundary has to be one that can arise there.
        let can_arise = language.mode() == LexerMode::Scannerless
            || stepper.transducer().node(language.lexing(), config.lexeme).is_some();
        if can_arise { self.complete(stepper.recognizer(), config.state) } else { NEVER }
    }

    /// An upper bound on the cost of completing a parser's state from any boundary.
    fn complete(&mut self, recognizer: &dyn Recognizer, state: StateId) -> u32 {
        if let Some(&known) = self.states.get(&state) {
            return known;
        }
        let found = if recognizer.is_sentence(state) { 0 } else { self.search(recognizer, state) };
        self.states.insert(state, found);
        found
    }

    /// A shortest path (Dijkstra 1959) over what is in progress, up to where the rest is known.
    fn search(&mut self, recognizer: &dyn Recognizer, state: StateId) -> u32 {
        // `(cost, whether the rest is known, where, from where)`.
        type Entry = (u32, bool, Begun, Option<Begun>);
        let mut queue: BinaryHeap<Reverse<Entry>> = BinaryHeap::new();
        let mut before: FxHashMap<Begun, (u32, Option<Begun>)> = FxHashMap::default();
        let known = &self.begun;
        let entry = |symbols: &[Symbol], begun: Begun, cost: u32, from: Option<Begun>| {
            let cost = symbols.iter().fold(cost, |sum, &symbol| sum.saturating_add(self.weight(symbol)));
            let rest = known.get(&begun);
            let total = cost.saturating_add(rest.copied().unwrap_or(0));
            (total < NEVER).then_some(Reverse((total, rest.is_some(), begun, from)))
        };
        recognizer.in_progress(state, &mut |symbols, begun| queue.extend(entry(symbols, begun, 0, None)));
        let mut found = NEVER;
        let mut last = None;
        while let Some(Reverse((cost, is_known, begun, from))) = queue.pop() {
            if is_known || recognizer.is_whole(begun) {
                (found, last) = (cost, if is_known { from } else { Some(begun) });
                if !is_known {
                    before.insert(begun, (cost, from));
                }
                break;
            }
            if before.contains_key(&begun) {
                continue;
            }
            before.insert(begun, (cost, from));
            recognizer.after_begun(begun, &mut |symbols, next| {
                queue.extend(entry(symbols, next, cost, Some(begun)))
            });
        }
        while let Some(at) = last {
            let Some(&(cost, from)) = before.get(&at) else { break };
            self.begun.insert(at, found - cost);
            last = from;
        }
        found
    }

    fn weight(&self, symbol: Symbol) -> u32 {
        match symbol {
            Symbol::Terminal(terminal) => self.terminals[terminal.index()],
            Symbol::Nonterminal(nonterminal) => self.nonterminals[nonterminal.index()],
        }
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        4 * (self.terminals.len() + self.nonterminals.len())
            + 24 * (self.states.len() + self.begun.len())
            + 48 * self.nearest.len()
    }
}

/// The least number of bytes that a terminal matches, at least one.
fn shortest(dfa: &Dfa) -> Option<u32> {
    let mut seen = FxHashSet::default();
    let mut level = vec![START];
    for bytes in 1.. {
        let next = |&state: &u32| (0..=u8::MAX).map(move |byte| dfa.step(state, byte));
        let mut reached: Vec<u32> = level.iter().flat_map(next).filter(|&state| seen.insert(state)).collect();
        if reached.iter().any(|&state| dfa.accepting[state as usize]) {
            return Some(bytes);
        }
        if reached.is_empty() {
            return None;
        }
        std::mem::swap(&mut level, &mut reached);
    }
    None
}

/// The same for a terminal that is given by an automaton, where some thousand states are enough to know it.
fn shortest_given(lexing: &Lexing, terminal: usize) -> Option<u32> {
    let union = &lexing.lexicon.union;
    let start = union.start_of(&CompactSet::from_sorted(terminal + 1, vec![terminal as u32])).ok()?;
    let mut seen = FxHashSet::default();
    let mut level = vec![start];
    for bytes in 1.. {
        let mut reached = Vec::new();
        for &state in &level {
            for class in 0..union.n_classes() {
                let next = union.try_step(state, class).ok()?;
                if union.accepts(next).contains(terminal) {
                    return Some(bytes);
                }
                if union.live(next).contains(terminal) && seen.insert(next) {
                    reached.push(next);
                }
            }
        }
        if reached.is_empty() || seen.len() > STATES {
            return None;
        }
        level = reached;
    }
    None
}

/// The least sum of weights over what each nonterminal derives. Cost: rules × rounds until nothing changes.
fn least_sums(cfg: &Cfg, terminals: &[u32], work: &mut Work) -> Result<Vec<u32>, Stopped> {
    let mut sums = vec![NEVER; cfg.n_nonterminals];
    loop {
        let mut changed = false;
        for rule in &cfg.rules {
            work.spend(1 + rule.rhs.len())?;
            let weight = |&symbol: &Symbol| match symbol {
                Symbol::Terminal(terminal) => terminals[terminal.index()],
                Symbol::Nonterminal(nonterminal) => sums[nonterminal.index()],
            };
            let sum = rule.rhs.iter().fold(0u32, |sum, symbol| sum.saturating_add(weight(symbol)));
            if sum < sums[rule.lhs.index()] {
                sums[rule.lhs.index()] = sum;
                changed = true;
            }
        }
        if !changed {
            return Ok(sums);
        }
    }
}

/// How a piece in progress can end soonest.
fn nearest(stepper: &mut Stepper, language: &Language, lexeme: LexemeId) -> Result<Nearest, StepError> {
    let lexing = language.lexing();
    let mut seen = FxHashSet::from_iter([lexeme]);
    let mut level = vec![lexeme];
    for bytes in 1.. {
        let (mut next, mut cuts) = (Vec::new(), Vec::new());
        for &lexeme in &level {
            for &byte in lexing.lexicon.union.samples() {
                let step = stepper.transducer_mut().step(lexing, lexeme, byte)?;
                cuts.extend(step.cut);
                next.extend(step.stay.filter(|&next| seen.insert(next)));
            }
        }
        if !cuts.is_empty() {
            cuts.sort_unstable();
            cuts.dedup();
            return Ok(Some((bytes, cuts.into())));
        }
        if next.is_empty() || seen.len() > NEAREST {
            return Ok(None);
        }
        level = next;
    }
    Ok(None)
}
