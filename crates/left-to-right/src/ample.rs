//! What certainly fits: an upper bound on the cost of a reading that takes a look-up, for budgets that are
//! ample.
//!
//! A text that is known costs the tokens that spell it, and where every byte is a token every text can be
//! spelled. In the modes with longest match most terminals can be spelled from every boundary, in a number of
//! bytes that is found once
//! ([`Boundaries::bytes_from_everywhere`](anygram_lexer::boundary::Boundaries::bytes_from_everywhere)); in
//! `scannerless` each has a short text. The least sum of these over what a parser's state lacks is a shortest
//! path over what is in progress; of what automata give few symbols are looked for
//! ([`RuleAutomaton::few_symbols`](anygram_grammar::automata::RuleAutomaton)). So the bound needs no lexing.
//! With texts it is near the truth, with bytes several times that, which is good enough for all but the end
//! of an output. Where there is no such bound, all is searched for.
//!
//! Where the tokens in a piece are counted, a text is used only if it may have as many as it has bytes. So no
//! way to spell it has too many.
//!
//! Of a grammar that remembers what was written there are two: one as if nothing were, whose texts have to be
//! held against that, and one that is [certain](certain) whatever was written.

mod certain;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use anygram_bits::work::{Stopped, Work};
use anygram_grammar::cfg::{Automaton, Cfg};
use anygram_grammar::ir::{LexerMode, NonterminalId, Symbol, TerminalId};
use anygram_lexer::dfa::{DEAD, Dfa, START};
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_recognizer::{Begun, Left, Recognizer, StateId, Visit};
use anygram_vocab::TokenTrie;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::costs::NEVER;
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::shortest;

pub(crate) use certain::Certain;

/// Lexemes that are gone on from for the nearest end of a piece, of each length; and beyond how many it is
/// given up. Fewer by bytes that stand for themselves.
const NEAREST: usize = 200;
const NARROW: usize = 4;
const MOST_NEAREST: usize = 2_000;

/// How a piece in progress can end soonest: by such texts, in such ways.
type Nearest = Arc<[(Arc<[u8]>, CutId)]>;

/// Bytes of a text beyond which it is not kept.
const LONGEST: usize = 20_000;

/// A completion, or part of one: what it costs at most if its pieces are spelled one by one, and its text, if
/// that is known.
#[derive(Clone, Debug)]
struct Way {
    cost: u32,
    text: Option<Arc<[u8]>>,
}

impl Way {
    const NONE: Self = Self { cost: NEVER, text: None };

    fn empty() -> Self {
        Self { cost: 0, text: Some(Arc::default()) }
    }

    /// This, and something behind it.
    fn then(&self, next: &Self) -> Self {
        let cost = self.cost.saturating_add(next.cost);
        let texts = self.text.as_ref().zip(next.text.as_ref());
        let texts = texts.filter(|(a, b)| a.len() + b.len() <= LONGEST && cost < NEVER);
        Self { cost, text: texts.map(|(a, b)| [&**a, &**b].concat().into()) }
    }

    /// The fewest tokens that are known to spell it.
    fn tokens(&self, trie: &TokenTrie) -> u32 {
        self.text.as_ref().map_or(self.cost, |text| spelled(trie, text).min(self.cost))
    }
}

/// An upper bound, and the text that costs so much, if it is known.
pub(crate) type Bound = (u32, Option<Arc<[u8]>>);

/// The bounds; see the module.
#[derive(Debug)]
pub(crate) struct Ample {
    terminals: Vec<Way>,
    nonterminals: Vec<Way>,
    /// What is left of automata in their states.
    rests: FxHashMap<(usize, u32), Way>,
    states: FxHashMap<StateId, Way>,
    begun: FxHashMap<Begun, Way>,
    nearest: FxHashMap<LexemeId, Nearest>,
}

impl Ample {
    /// The bounds for a language, if there are any with this vocabulary; if `is_certain`, those whatever was
    /// written.
    pub fn new(
        language: &Language,
        trie: &TokenTrie,
        is_certain: bool,
        work: &mut Work,
    ) -> Result<Option<Self>, Stopped> {
        let (lexing, grammar) = (language.lexing(), language.grammar());
        let is_token =
            |byte| trie.child(TokenTrie::ROOT, byte).is_some_and(|node| !trie.tokens_at(node).is_empty());
        if !(0..=u8::MAX).all(is_token) {
            return Ok(None);
        }
        let mut terminals: Vec<Way> = match lexing.mode() {
            LexerMode::Scannerless => {
                let own = |at| lexing.dfa(TerminalId::new(at)).and_then(shortest);
                let texts = shortest::terminals(grammar, &own).into_iter().enumerate();
                let may_have = |at: usize, text: &[u8]| {
                    let most = grammar.terminals.get(at).and_then(|terminal| terminal.max_tokens);
                    most.is_none_or(|most| text.len() <= most.get() as usize)
                };
                let way = |(at, text): (usize, Option<Vec<u8>>)| match text {
                    Some(text) if !may_have(at, &text) => Way::NONE,
                    Some(text) => Way { cost: spelled(trie, &text), text: Some(text.into()) },
                    None => {
                        let terminal = TerminalId::new(at);
                        let has_bytes = lexing.dfa(terminal).is_some() || lexing.is_given(terminal);
                        // A token that the grammar names is one.
                        if has_bytes { Way::NONE } else { Way { cost: 1, text: None } }
                    }
                };
                texts.map(way).collect()
            }
            LexerMode::Longest | LexerMode::Contextual => {
                let Some(boundaries) = lexing.boundaries() else { return Ok(None) };
                let bytes = boundaries.bytes_from_everywhere(work)?.into_iter();
                bytes.map(|bytes| Way { cost: bytes.unwrap_or(NEVER), text: None }).collect()
            }
        };
        if is_certain {
            certain::make_distinct(grammar, &mut terminals);
        }
        let mut this = Self {
            terminals,
            nonterminals: vec![Way::NONE; lexing.cfg.n_nonterminals],
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

    /// An upper bound on the cost of completing a reading at a token boundary, [`NEVER`] if none is known;
    /// and the text that this is the cost of, if that is known.
    pub fn upper(
        &mut self,
        stepper: &mut Stepper,
        (language, trie): (&Language, &TokenTrie),
        config: Config,
    ) -> Result<Bound, StepError> {
        let way = self.ending(stepper, (language, trie), config)?;
        Ok((way.tokens(trie), way.text))
    }

    fn ending(
        &mut self,
        stepper: &mut Stepper,
        (language, trie): (&Language, &TokenTrie),
        config: Config,
    ) -> Result<Way, StepError> {
        if stepper.transducer().is_boundary(config.lexeme) {
            return Ok(self.at_boundary(stepper, (language, trie), config));
        }
        let left = stepper.transducer().tokens_left(language.lexing(), config.lexeme);
        let lexeme = stepper.transducer_mut().without_number(language.lexing(), config.lexeme)?;
        let nearest = self.nearest(stepper, language, lexeme)?;
        let has_text = language.mode() == LexerMode::Scannerless;
        let may_have = |text: &[u8]| left.is_none_or(|left| text.len() <= left as usize);
        for (text, cut) in nearest.iter().filter(|(text, _)| may_have(text)) {
            if let Some(config) = stepper.end(language, (config.state, *cut))? {
                let end = Way { cost: spelled(trie, text), text: has_text.then(|| text.clone()) };
                return Ok(end.then(&self.at_boundary(stepper, (language, trie), config)));
            }
        }
        Ok(Way::NONE)
    }

    fn nearest(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        lexeme: LexemeId,
    ) -> Result<Nearest, StepError> {
        if let Some(known) = self.nearest.get(&lexeme) {
            return Ok(known.clone());
        }
        let found = nearest(stepper, language, lexeme)?;
        self.nearest.insert(lexeme, found.clone());
        Ok(found)
    }

    fn at_boundary(
        &mut self,
        stepper: &Stepper,
        (language, trie): (&Language, &TokenTrie),
        config: Config,
    ) -> Way {
        if stepper.is_sentence(&[config]) {
            return Way::empty();
        }
        // Where all compete, the boundary has to be one that can arise there.
        let is_sure = language.mode() == LexerMode::Scannerless
            || stepper.transducer().is_sure(language.lexing(), config.lexeme);
        if is_sure { self.complete(stepper.recognizer(), trie, config.state) } else { Way::NONE }
    }

    /// A completion of a parser's state from any boundary.
    fn complete(&mut self, recognizer: &dyn Recognizer, trie: &TokenTrie, state: StateId) -> Way {
        if let Some(known) = self.states.get(&state) {
            return known.clone();
        }
        let mut found =
            if recognizer.is_sentence(state) { Way::empty() } else { self.search(recognizer, state) };
        found.cost = found.tokens(trie);
        self.states.insert(state, found.clone());
        found
    }

    /// A shortest path (Dijkstra 1959) over what is in progress, up to where the rest is known.
    fn search(&mut self, recognizer: &dyn Recognizer, state: StateId) -> Way {
        // `(cost, whether the rest is known, where, from where, by which way)`.
        type Entry = (u32, bool, Begun, Option<Begun>, usize);
        let mut queue: BinaryHeap<Reverse<Entry>> = BinaryHeap::new();
        let mut before: FxHashMap<Begun, (Option<Begun>, usize)> = FxHashMap::default();
        let mut ways: Vec<(Way, Begun)> = Vec::new();
        let entries = |known: &FxHashMap<Begun, Way>, new: &[(Way, Begun)], (first, cost, from)| {
            let entry = |(at, (way, begun)): (usize, &(Way, Begun))| {
                let rest = known.get(begun).map(|rest| rest.cost);
                let total = way.cost.saturating_add(cost).saturating_add(rest.unwrap_or(0));
                (total < NEVER).then_some(Reverse((total, rest.is_some(), *begun, from, first + at)))
            };
            new.iter().enumerate().filter_map(entry).collect::<Vec<_>>()
        };
        self.ways(recognizer, &mut ways, &|visit| recognizer.in_progress(state, visit));
        queue.extend(entries(&self.begun, &ways, (0, 0u32, None)));
        let mut rest = Way::NONE;
        // From where, and by which way.
        let mut last = None;
        while let Some(Reverse((cost, is_known, begun, from, way))) = queue.pop() {
            if is_known || recognizer.is_whole(begun) {
                rest = self.begun.get(&begun).cloned().unwrap_or_else(Way::empty);
                self.begun.insert(begun, rest.clone());
                last = Some((from, way));
                break;
            }
            if before.contains_key(&begun) {
                continue;
            }
            before.insert(begun, (from, way));
            let first = ways.len();
            self.ways(recognizer, &mut ways, &|visit| recognizer.after_begun(begun, visit));
            queue.extend(entries(&self.begun, &ways[first..], (first, cost, Some(begun))));
        }
        while let Some((from, way)) = last {
            rest = ways[way].0.then(&rest);
            if let Some(from) = from {
                self.begun.insert(from, rest.clone());
            }
            last = from.and_then(|from| before.get(&from).copied());
        }
        rest
    }

    /// Collects ways to go on, with what each weighs.
    fn ways(
        &mut self,
        recognizer: &dyn Recognizer,
        ways: &mut Vec<(Way, Begun)>,
        visit: &dyn Fn(&mut Visit<'_>),
    ) {
        visit(&mut |left, begun| {
            let way = match left {
                Left::Symbols(symbols) => self.sum(symbols),
                Left::Automaton(automaton, Some(state)) => self.rest(recognizer.cfg(), automaton, state),
                Left::Automaton(_, None) => Way::NONE,
            };
            ways.push((way, begun));
        });
    }

    /// What is left of an automaton in a state, and in those that are passed on the way.
    fn rest(&mut self, cfg: &Cfg, automaton: usize, state: u32) -> Way {
        if let Some(known) = self.rests.get(&(automaton, state)) {
            return known.clone();
        }
        let Automaton { automaton: rules, symbols, .. } = &cfg.automata[automaton];
        let symbol = |number: u32| symbols.get(number as usize).copied();
        let weight = |number| Some(self.way(symbol(number)?).cost).filter(|&weight| weight < NEVER);
        let mut n_states = usize::MAX;
        let path = rules.few_symbols(state, &weight, &mut n_states);
        let mut rest = if path.is_some() { Way::empty() } else { Way::NONE };
        for (state, number) in path.into_iter().flatten().rev() {
            rest = symbol(number).map_or(Way::NONE, |symbol| self.way(symbol).then(&rest));
            let known = self.rests.entry((automaton, state)).or_insert(Way::NONE);
            if rest.cost < known.cost {
                *known = rest.clone();
            }
        }
        self.rests.entry((automaton, state)).or_insert(rest).clone()
    }

    fn sum(&self, symbols: &[Symbol]) -> Way {
        symbols.iter().rev().fold(Way::empty(), |sum, &symbol| self.way(symbol).then(&sum))
    }

    /// Whether this is the first or a cheaper way to derive a nonterminal, which it becomes.
    fn improve(&mut self, nonterminal: NonterminalId, way: Way) -> bool {
        let known = &mut self.nonterminals[nonterminal.index()];
        let is_better = way.cost < known.cost;
        if is_better {
            *known = way;
        }
        is_better
    }

    /// The least sum of weights over what each nonterminal derives; of those that automata give a sum. Cost:
    /// rules × rounds until nothing changes.
    fn least_sums(&mut self, cfg: &Cfg, work: &mut Work) -> Result<(), Stopped> {
        let approximated = cfg.approximated();
        loop {
            let mut changed = false;
            for rule in cfg.rules.iter().filter(|rule| !approximated.contains(rule.lhs.index())) {
                work.spend(1 + rule.rhs.len())?;
                let way = self.sum(&rule.rhs);
                changed |= self.improve(rule.lhs, way);
            }
            if changed {
                continue;
            }
            self.rests.clear();
            for (at, automaton) in cfg.automata.iter().enumerate() {
                work.spend(64)?;
                let way = self.rest(cfg, at, automaton.automaton.start());
                changed |= self.improve(automaton.lhs, way);
            }
            if !changed {
                return Ok(());
            }
        }
    }

    fn way(&self, symbol: Symbol) -> &Way {
        match symbol {
            Symbol::Terminal(terminal) => &self.terminals[terminal.index()],
            Symbol::Nonterminal(nonterminal) => &self.nonterminals[nonterminal.index()],
        }
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let all = self.terminals.iter().chain(&self.nonterminals).chain(self.rests.values());
        let all = all.chain(self.states.values()).chain(self.begun.values());
        all.map(|way| 48 + way.text.as_ref().map_or(0, |text| text.len())).sum::<usize>()
            + 64 * self.nearest.len()
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

/// How a piece in progress can end after few bytes: plain ones if it can, for of others there are many.
fn nearest(stepper: &mut Stepper, language: &Language, lexeme: LexemeId) -> Result<Nearest, StepError> {
    let samples = language.lexing().lexicon.union.samples();
    let plain: Vec<u8> =
        samples.iter().copied().filter(|byte| byte.is_ascii_graphic() && *byte != b'\\').collect();
    let ascii: Vec<u8> = samples.iter().copied().filter(u8::is_ascii_graphic).collect();
    for (bytes, width) in [(&*plain, NARROW), (&ascii, NARROW), (samples, NEAREST)] {
        let found = nearest_by(stepper, language, lexeme, (bytes, width))?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Arc::default())
}

/// The same by such bytes, on from at most so many lexemes of each length.
fn nearest_by(
    stepper: &mut Stepper,
    language: &Language,
    lexeme: LexemeId,
    (bytes, width): (&[u8], usize),
) -> Result<Nearest, StepError> {
    let lexing = language.lexing();
    let mut before: FxHashMap<LexemeId, (LexemeId, u8)> = FxHashMap::default();
    let mut level = vec![lexeme];
    while !level.is_empty() && before.len() <= MOST_NEAREST {
        let (mut next, mut cuts) = (Vec::new(), Vec::new());
        for &at in &level {
            for &byte in bytes {
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
            let text = |(mut at, byte, cut)| {
                let mut text = vec![byte];
                while let Some(&(from, byte)) = before.get(&at).filter(|_| at != lexeme) {
                    text.push(byte);
                    at = from;
                }
                text.reverse();
                (text.into(), cut)
            };
            let mut seen = FxHashSet::default();
            cuts.retain(|cut| seen.insert(cut.2));
            return Ok(cuts.into_iter().map(text).collect());
        }
        // Where the end can be near.
        let union = &lexing.lexicon.union;
        next.sort_by_cached_key(|&at| union.at_least(stepper.transducer().state(at)));
        next.truncate(width);
        level = next;
    }
    Ok(Arc::default())
}
