//! What certainly fits: an upper bound on the cost of a reading that takes a look-up, for budgets that are
//! ample.
//!
//! A text that is known costs the tokens that spell it, and where every byte is a token every text can be
//! spelled. In the modes with longest match most terminals can be spelled from every boundary, in a number of
//! bytes that is found once
//! ([`Boundaries::bytes_from_everywhere`](anygram_lexer::boundary::Boundaries::bytes_from_everywhere)); in
//! `scannerless` each has a short text. The least sum of these over what a parser's state lacks is a shortest
//! path over what is in progress; of what automata give few symbols are looked for
//! ([`RuleAutomaton::few_symbols`](anygram_grammar::automata::RuleAutomaton)). So the
//! bound needs no lexing. It is more than the truth, by a half or several times, which is good enough for all
//! but the end of an output. Where there is no such bound, all is searched for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anygram_bits::work::{Stopped, Work};
use anygram_grammar::cfg::{Automaton, Cfg};
use anygram_grammar::ir::{LexerMode, Symbol, TerminalId};
use anygram_lexer::dfa::{DEAD, Dfa, START};
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_recognizer::{Begun, Left, Recognizer, StateId, Visit};
use anygram_vocab::TokenTrie;
use rustc_hash::FxHashMap;

use crate::costs::NEVER;
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::shortest;

/// Lexemes that are looked at for the nearest end of a piece.
const NEAREST: usize = 200;

/// How a piece in progress can end soonest: after so many tokens in such a way.
type Nearest = Box<[(u32, CutId)]>;

/// The bounds; see the module.
#[derive(Debug)]
pub(crate) struct Ample {
    terminals: Vec<u32>,
    nonterminals: Vec<u32>,
    /// What is left of automata in their states.
    rests: FxHashMap<(usize, u32), u32>,
    states: FxHashMap<StateId, u32>,
    begun: FxHashMap<Begun, u32>,
    nearest: FxHashMap<LexemeId, Nearest>,
}

impl Ample {
    /// The bounds for a language, if there are any with this vocabulary.
    pub fn new(language: &Language, trie: &TokenTrie, work: &mut Work) -> Result<Option<Self>, Stopped> {
        let (lexing, grammar) = (language.lexing(), language.grammar());
        let is_token =
            |byte| trie.child(TokenTrie::ROOT, byte).is_some_and(|node| !trie.tokens_at(node).is_empty());
        if !(0..=u8::MAX).all(is_token) {
            return Ok(None);
        }
        let terminals = match (lexing.mode(), lexing.boundaries()) {
            (LexerMode::Scannerless, _) => {
                let own = |at| lexing.dfa(TerminalId::new(at)).and_then(shortest);
                let texts = shortest::terminals(grammar, &own).into_iter().enumerate();
                let cost = |(at, text): (usize, Option<Vec<u8>>)| match text {
                    Some(text) => Some(spelled(trie, &text)),
                    // A token that the grammar names is one.
                    None => {
                        let terminal = TerminalId::new(at);
                        let has_bytes = lexing.dfa(terminal).is_some() || lexing.is_given(terminal);
                        (!has_bytes).then_some(1)
                    }
                };
                texts.map(cost).collect()
            }
            (_, None) => return Ok(None),
            (_, Some(boundaries)) => boundaries.bytes_from_everywhere(work)?,
        };
        let terminals: Vec<u32> =
            terminals.into_iter().map(|bytes: Option<u32>| bytes.unwrap_or(NEVER)).collect();
        let mut this = Self {
            terminals,
            nonterminals: vec![NEVER; lexing.cfg.n_nonterminals],
            rests: FxHashMap::default(),
            states: FxHashMap::default(),
            begun: FxHashMap::default(),
            nearest: FxHashMap::default(),
        };
        this.least_sums(&lexing.cfg, work)?;
        // They were made of what was known then.
        this.rests.clear();
        Ok(Some(this))
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
        (language, trie): (&Language, &TokenTrie),
        config: Config,
    ) -> Result<u32, StepError> {
        if stepper.transducer().is_boundary(config.lexeme) {
            return Ok(self.at_boundary(stepper, language, config));
        }
        let nearest = match self.nearest.get(&config.lexeme) {
            Some(known) => known.clone(),
            None => {
                let found = nearest(stepper, (language, trie), config.lexeme)?;
                self.nearest.insert(config.lexeme, found.clone());
                found
            }
        };
        for &(cost, cut) in &nearest {
            if let Some(config) = stepper.end(language, (config.state, cut))? {
                return Ok(self.at_boundary(stepper, language, config).saturating_add(cost));
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
        let mut entries: Vec<(u32, Begun)> = Vec::new();
        self.ways(recognizer, &mut entries, &|visit| recognizer.in_progress(state, visit));
        let entry = |known: &FxHashMap<Begun, u32>, (weight, begun): (u32, Begun), cost: u32, from| {
            let rest = known.get(&begun);
            let total = cost.saturating_add(weight).saturating_add(rest.copied().unwrap_or(0));
            (total < NEVER).then_some(Reverse((total, rest.is_some(), begun, from)))
        };
        queue.extend(entries.drain(..).filter_map(|way| entry(&self.begun, way, 0, None)));
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
            self.ways(recognizer, &mut entries, &|visit| recognizer.after_begun(begun, visit));
            queue.extend(entries.drain(..).filter_map(|way| entry(&self.begun, way, cost, Some(begun))));
        }
        while let Some(at) = last {
            let Some(&(cost, from)) = before.get(&at) else { break };
            self.begun.insert(at, found - cost);
            last = from;
        }
        found
    }

    /// Collects ways to go on, with what each weighs.
    fn ways(
        &mut self,
        recognizer: &dyn Recognizer,
        entries: &mut Vec<(u32, Begun)>,
        visit: &dyn Fn(&mut Visit<'_>),
    ) {
        visit(&mut |left, begun| {
            let weight = match left {
                Left::Symbols(symbols) => self.sum(symbols),
                Left::Automaton(automaton, Some(state)) => {
                    self.rest(recognizer.cfg(), automaton, state).unwrap_or(NEVER)
                }
                Left::Automaton(_, None) => NEVER,
            };
            entries.push((weight, begun));
        });
    }

    /// What is left of an automaton in a state, and in those that are passed on the way.
    fn rest(&mut self, cfg: &Cfg, automaton: usize, state: u32) -> Option<u32> {
        if let Some(&known) = self.rests.get(&(automaton, state)) {
            return Some(known);
        }
        let Automaton { automaton: rules, symbols, .. } = &cfg.automata[automaton];
        let symbol = |number: u32| symbols.get(number as usize).copied();
        let weight = |number| Some(self.weight(symbol(number)?)).filter(|&weight| weight < NEVER);
        let mut n_states = usize::MAX;
        let path = rules.few_symbols(state, &weight, &mut n_states);
        let mut sum: u32 = if path.is_some() { 0 } else { NEVER };
        let steps = path.into_iter().flatten().rev();
        let steps: Vec<(u32, u32)> =
            steps.map(|(state, number)| (state, symbol(number).map_or(NEVER, |symbol| self.weight(symbol)))).collect();
        for (state, weight) in steps {
            sum = sum.saturating_add(weight);
            let known = self.rests.entry((automaton, state)).or_insert(NEVER);
            *known = sum.min(*known);
        }
        let known = self.rests.entry((automaton, state)).or_insert(sum);
        Some(*known)
    }

    fn sum(&self, symbols: &[Symbol]) -> u32 {
        symbols.iter().fold(0, |sum, &symbol| sum.saturating_add(self.weight(symbol)))
    }

    /// The least sum of weights over what each nonterminal derives; of those that automata give a sum. Cost:
    /// rules × rounds until nothing changes.
    fn least_sums(&mut self, cfg: &Cfg, work: &mut Work) -> Result<(), Stopped> {
        let approximated = cfg.approximated();
        loop {
            let mut changed = false;
            for rule in cfg.rules.iter().filter(|rule| !approximated.contains(rule.lhs.index())) {
                work.spend(1 + rule.rhs.len())?;
                let sum = self.sum(&rule.rhs);
                changed |= self.nonterminals[rule.lhs.index()] > sum;
                let known = &mut self.nonterminals[rule.lhs.index()];
                *known = sum.min(*known);
            }
            if changed {
                continue;
            }
            self.rests.clear();
            for (at, automaton) in cfg.automata.iter().enumerate() {
                work.spend(64)?;
                let Some(sum) = self.rest(cfg, at, automaton.automaton.start()) else { continue };
                changed |= self.nonterminals[automaton.lhs.index()] > sum;
                let known = &mut self.nonterminals[automaton.lhs.index()];
                *known = sum.min(*known);
            }
            if !changed {
                return Ok(());
            }
        }
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
            + 16 * self.rests.len()
    }
}

/// A shortest text that a terminal matches, of at least one byte.
fn shortest(dfa: &Dfa) -> Option<Vec<u8>> {
    let mut before: FxHashMap<u32, (u32, u8)> = FxHashMap::default();
    let mut queue = VecDeque::from([START]);
    while let Some(state) = queue.pop_front() {
        for byte in 0..=u8::MAX {
            let next = dfa.step(state, byte);
            if dfa.accepting[next as usize] {
                let mut text = vec![byte];
                let mut at = state;
                while let Some(&(from, byte)) = before.get(&at).filter(|_| at != START) {
                    text.push(byte);
                    at = from;
                }
                text.reverse();
                return Some(text);
            }
            if next != DEAD && next != START && !before.contains_key(&next) {
                before.insert(next, (state, byte));
                queue.push_back(next);
            }
        }
    }
    None
}

/// The fewest tokens that spell a text; every byte is one.
fn spelled(trie: &TokenTrie, text: &[u8]) -> u32 {
    let mut costs = vec![NEVER; text.len() + 1];
    costs[0] = 0;
    for from in 0..text.len() {
        let mut at = TokenTrie::ROOT;
        for (to, &byte) in text.iter().enumerate().skip(from) {
            let Some(next) = trie.child(at, byte) else { break };
            at = next;
            if !trie.tokens_at(at).is_empty() {
                costs[to + 1] = costs[to + 1].min(costs[from].saturating_add(1));
            }
        }
    }
    costs[text.len()]
}

/// How a piece in progress can end after the fewest bytes, and how many tokens these are.
fn nearest(
    stepper: &mut Stepper,
    (language, trie): (&Language, &TokenTrie),
    lexeme: LexemeId,
) -> Result<Nearest, StepError> {
    let lexing = language.lexing();
    let mut before: FxHashMap<LexemeId, (LexemeId, u8)> = FxHashMap::default();
    let mut level = vec![lexeme];
    while !level.is_empty() && before.len() <= NEAREST {
        let (mut next, mut cuts) = (Vec::new(), Vec::new());
        for &at in &level {
            for &byte in lexing.lexicon.union.samples() {
                let step = stepper.transducer_mut().step(lexing, at, byte)?;
                cuts.extend(step.cut.map(|cut| (at, byte, cut)));
                let Some(stay) = step.stay.filter(|&stay| stay != lexeme) else { continue };
                before.entry(stay).or_insert_with(|| {
                    next.push(stay);
                    (at, byte)
                });
            }
        }
        if !cuts.is_empty() {
            let cost = |(mut at, byte, cut)| {
                let mut text = vec![byte];
                while let Some(&(from, byte)) = before.get(&at).filter(|_| at != lexeme) {
                    text.push(byte);
                    at = from;
                }
                text.reverse();
                (spelled(trie, &text), cut)
            };
            let mut cuts: Vec<(u32, CutId)> = cuts.into_iter().map(cost).collect();
            cuts.sort_unstable();
            cuts.dedup_by_key(|cut| cut.1);
            return Ok(cuts.into());
        }
        level = next;
    }
    Ok(Box::default())
}
