//! Rests that are states of automata, interned as texts come to them.
//!
//! Their ids come behind those of rests of rules, in the order in which an engine meets them. So ids differ
//! between engines; what is the same in all is the automaton and its state ([`Grown::name`]).
//!
//! A state that accepts and has no symbol is the complete rest of its left side, as at the end of a rule. So
//! every rest here can go on; one that accepts besides can be complete as well ([`Grown::end`]).
//!
//! Cost of a step: a look-up, and a step of the automaton the first time. Nothing is made for symbols that
//! could come but do not. Where a symbol stands for a nonterminal, it is predicted, as everywhere.

use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_grammar::cfg::{Automaton, Cfg};
use anygram_grammar::ir::{NonterminalId, Symbol};
use rustc_hash::FxHashMap;

use super::{Earley, Rest, RestId, State};
use crate::{Left, RecognizerError, StateId};

/// In place of an automaton: there is none.
const NONE: u32 = u32::MAX;

/// A rest that has a symbol, its automaton's number of that symbol, and where the rest began.
pub(super) type Growing = (RestId, u32, StateId);

/// A symbol that the start of an automaton has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Start {
    symbol: Symbol,
    rest: RestId,
    number: u32,
}

/// What is the same of all states of one automaton.
#[derive(Clone, Debug)]
struct Own {
    /// The complete rest of the left side.
    end: RestId,
    /// Before the first symbol; `None` if that state is not live.
    start: Option<RestId>,
    /// The fewest terminals that any of the symbols derives.
    least: u32,
}

#[derive(Clone, Debug)]
struct GrownRest {
    automaton: u32,
    state: u32,
    symbols: Arc<[u32]>,
    accepts: bool,
}

/// The rests; see the module.
#[derive(Clone, Debug)]
pub(super) struct Grown {
    /// The number of rests of rules.
    pub from: usize,
    own: Vec<Own>,
    /// The automaton of each nonterminal; empty if there are no automata at all.
    of_lhs: Vec<u32>,
    /// Rest `from + i` is `rests[i]`.
    rests: Vec<GrownRest>,
    /// By automaton and state.
    ids: FxHashMap<(u32, u32), RestId>,
    /// Behind a symbol. Automata may take long to say.
    steps: FxHashMap<(RestId, u32), RestId>,
}

impl Grown {
    /// The starts of all automata; `ends` are the complete rests of their left sides.
    pub fn new(cfg: &Cfg, ends: Vec<RestId>, minimum: &[u32], rests: &mut Vec<Rest>) -> Self {
        let length = |&symbol: &Symbol| match symbol {
            Symbol::Terminal(_) => 1,
            Symbol::Nonterminal(n) => minimum[n.index()],
        };
        let own = cfg.automata.iter().zip(ends).map(|(automaton, end)| {
            let least = automaton.symbols.iter().map(length).min().unwrap_or(0);
            Own { end, start: None, least }
        });
        let mut of_lhs = if cfg.automata.is_empty() { Vec::new() } else { vec![NONE; cfg.n_nonterminals] };
        for (at, automaton) in cfg.automata.iter().enumerate() {
            of_lhs[automaton.lhs.index()] = at as u32;
        }
        let (from, own) = (rests.len(), own.collect());
        let mut this = Self {
            from,
            own,
            of_lhs,
            rests: Vec::new(),
            ids: FxHashMap::default(),
            steps: FxHashMap::default(),
        };
        for (at, automaton) in cfg.automata.iter().enumerate() {
            let start = automaton.automaton.start();
            if automaton.automaton.minimum(start) < u32::MAX {
                this.own[at].start = Some(this.intern(automaton, at as u32, start, rests));
            }
        }
        this
    }

    /// Whether there are no automata.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The number of rests that were made.
    pub fn len(&self) -> usize {
        self.rests.len()
    }

    fn intern(&mut self, of: &Automaton, automaton: u32, state: u32, rests: &mut Vec<Rest>) -> RestId {
        if let Some(&known) = self.ids.get(&(automaton, state)) {
            return known;
        }
        let symbols = of.automaton.symbols(state);
        let (accepts, needed) = (of.automaton.accepts(state), of.automaton.minimum(state));
        let own = &self.own[automaton as usize];
        let id = if accepts && symbols.is_empty() {
            own.end
        } else {
            let id = RestId::new(rests.len());
            let minimum = needed.saturating_mul(own.least);
            rests.push(Rest { lhs: of.lhs, first: None, next: id, minimum });
            self.rests.push(GrownRest { automaton, state, symbols, accepts });
            id
        };
        self.ids.insert((automaton, state), id);
        id
    }

    fn get(&self, rest: RestId) -> Option<&GrownRest> {
        self.rests.get(rest.index().checked_sub(self.from)?)
    }

    /// The start of a nonterminal's automaton, if it has one.
    pub fn start_of(&self, lhs: NonterminalId) -> Option<RestId> {
        let automaton = *self.of_lhs.get(lhs.index()).filter(|&&automaton| automaton != NONE)?;
        self.own[automaton as usize].start
    }

    /// What a rest is called in all engines of one grammar.
    pub fn name(&self, rest: RestId) -> (u32, u32) {
        match self.get(rest) {
            Some(grown) => (self.from as u32 + grown.automaton, grown.state),
            None => (rest.0, 0),
        }
    }

    /// The complete rest of the left side, if a right-hand side may end here.
    pub fn end(&self, rest: RestId) -> Option<RestId> {
        self.get(rest).filter(|grown| grown.accepts).map(|grown| self.own[grown.automaton as usize].end)
    }

    /// Whether a rest without a first symbol completes its left side.
    pub fn completes(&self, rest: RestId) -> bool {
        self.get(rest).is_none_or(|grown| grown.accepts)
    }

    /// Something that derives at least what is left; nothing for a rest of a rule.
    pub fn left(&self, cfg: &Cfg, rest: RestId) -> impl Iterator<Item = Symbol> + use<> {
        let left = self.get(rest).map(|grown| {
            let automaton = &cfg.automata[grown.automaton as usize];
            automaton.left(automaton.needed(grown.state))
        });
        left.into_iter().flatten()
    }

    /// The left side of a rest, and the state behind one of its symbols. `None` if that is not known, for the
    /// automaton has too many states.
    fn after<'a>(&self, cfg: &'a Cfg, rest: RestId, number: u32) -> Option<(&'a Automaton, Option<u32>)> {
        let grown = self.get(rest)?;
        let automaton = &cfg.automata[grown.automaton as usize];
        Some((automaton, automaton.automaton.step(grown.state, number).ok()))
    }

    /// The left side, and a lower bound on the terminals that are left behind a symbol.
    pub fn minimum_after(&self, cfg: &Cfg, rest: RestId, number: u32) -> Option<(NonterminalId, u32)> {
        let (automaton, state) = self.after(cfg, rest, number)?;
        let least = self.own[self.get(rest)?.automaton as usize].least;
        let needed = state.map_or(0, |state| automaton.automaton.minimum(state));
        Some((automaton.lhs, needed.saturating_mul(least)))
    }

    /// The left side, and something that derives at least what is left behind a symbol.
    pub fn left_after(
        &self,
        cfg: &Cfg,
        rest: RestId,
        number: u32,
    ) -> Option<(NonterminalId, impl Iterator<Item = Symbol> + use<>)> {
        let (automaton, state) = self.after(cfg, rest, number)?;
        let goes_on = state.is_none_or(|state| !automaton.automaton.symbols(state).is_empty());
        let left = automaton.left(state.map_or(0, |state| automaton.needed(state)));
        Some((automaton.lhs, goes_on.then_some(left).into_iter().flatten()))
    }

    /// What is left of a rest here.
    pub fn in_state(&self, rest: RestId) -> Option<Left<'static>> {
        let GrownRest { automaton, state, .. } = self.get(rest)?;
        Some(Left::Automaton(*automaton as usize, Some(*state)))
    }

    /// The left side, and what is left behind a symbol.
    pub fn in_state_after(
        &self,
        cfg: &Cfg,
        rest: RestId,
        number: u32,
    ) -> Option<(NonterminalId, Left<'static>)> {
        let at = self.get(rest)?.automaton as usize;
        let (automaton, state) = self.after(cfg, rest, number)?;
        let is_complete = state.is_some_and(|state| automaton.automaton.symbols(state).is_empty());
        Some((automaton.lhs, if is_complete { Left::Symbols(&[]) } else { Left::Automaton(at, state) }))
    }

    /// The symbols that the automata of some nonterminals have first, sorted; terminals among them are added
    /// to a set.
    pub fn starts(&self, cfg: &Cfg, nonterminals: &BitSet, terminals: &mut BitSet) -> Vec<Start> {
        let mut starts = Vec::new();
        if self.is_empty() {
            return starts;
        }
        for n in nonterminals.iter().filter(|&n| self.of_lhs[n] != NONE) {
            let automaton = &cfg.automata[self.of_lhs[n] as usize];
            let Some(rest) = self.own[self.of_lhs[n] as usize].start else { continue };
            for (number, symbol) in automaton.symbols_at(automaton.automaton.start()) {
                if let Symbol::Terminal(t) = symbol {
                    terminals.insert(t.index());
                }
                starts.push(Start { symbol, rest, number });
            }
        }
        starts.sort_unstable();
        starts
    }

    /// Adds the nonterminals that automata have first to those of their left sides.
    pub fn add_firsts(cfg: &Cfg, firsts: &mut [Vec<NonterminalId>]) {
        for automaton in &cfg.automata {
            let symbols = automaton.symbols_at(automaton.automaton.start());
            firsts[automaton.lhs.index()].extend(symbols.filter_map(|(_, symbol)| match symbol {
                Symbol::Nonterminal(n) => Some(n),
                Symbol::Terminal(_) => None,
            }));
        }
    }

    /// The symbols that a rest has, in characters; `None` for one of a rule.
    pub fn draw(&self, cfg: &Cfg, rest: RestId, name: &dyn Fn(Symbol) -> String) -> Option<String> {
        /// As many are shown.
        const SHOWN: usize = 8;
        let grown = self.get(rest)?;
        let symbols = &cfg.automata[grown.automaton as usize].symbols;
        let known = grown.symbols.iter().filter_map(|&number| symbols.get(number as usize));
        let mut names: Vec<String> = known.take(SHOWN).map(|&symbol| name(symbol)).collect();
        if grown.symbols.len() > SHOWN {
            names.push("…".to_owned());
        }
        if grown.accepts {
            names.push("nothing".to_owned());
        }
        Some(format!(" ({})", names.join(" | ")))
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let steps = self.steps.len() * (size_of::<((RestId, u32), RestId)>() + 8);
        self.rests.len() * (size_of::<GrownRest>() + size_of::<Rest>() + 48) + steps
    }
}

impl Earley {
    /// The rests of automata in a state that have a symbol.
    pub(super) fn growing(&self, state: StateId, symbol: Symbol) -> Vec<Growing> {
        let mut growing = Vec::new();
        let grown = &self.grown;
        if grown.is_empty() {
            return growing;
        }
        let State { kernel, prediction, .. } = self.states[state.index()];
        let kernel = self.items.get(kernel);
        let from = kernel.partition_point(|&(rest, _)| rest.index() < grown.from);
        for &(rest, origin) in &kernel[from..] {
            growing.extend(self.numbers(rest, symbol).map(|number| (rest, number, origin)));
        }
        growing.extend(self.starts(prediction, symbol).map(|(rest, number)| (rest, number, state)));
        growing
    }

    /// The numbers of a symbol that a rest has.
    pub(super) fn numbers(&self, rest: RestId, symbol: Symbol) -> impl Iterator<Item = u32> {
        let of =
            self.grown.get(rest).map(|rest| (&self.cfg.automata[rest.automaton as usize], &rest.symbols));
        of.into_iter().flat_map(move |(automaton, symbols)| {
            automaton.numbers_of(symbol).filter(|number| symbols.binary_search(number).is_ok())
        })
    }

    /// The starts of automata that a prediction has and that have a symbol, with its number there.
    pub(super) fn starts(&self, prediction: u32, symbol: Symbol) -> impl Iterator<Item = (RestId, u32)> {
        let starts = &self.predictions[prediction as usize].starts;
        let from = starts.partition_point(|start| start.symbol < symbol);
        let predicted = starts[from..].iter().take_while(move |start| start.symbol == symbol);
        predicted.map(|start| (start.rest, start.number))
    }

    /// The rest behind one of the symbols of a rest.
    pub(super) fn grow(&mut self, rest: RestId, number: u32) -> Result<RestId, RecognizerError> {
        let Self { cfg, grown, rests, .. } = self;
        if let Some(&known) = grown.steps.get(&(rest, number)) {
            return Ok(known);
        }
        let Some(&GrownRest { automaton, state, .. }) = grown.get(rest) else { return Ok(rest) };
        let of = &cfg.automata[automaton as usize];
        let next = of.automaton.step(state, number)?;
        let n_before = rests.len();
        let next = grown.intern(of, automaton, next, rests);
        grown.steps.insert((rest, number), next);
        self.n_items += self.rests.len() - n_before;
        Ok(next)
    }

    /// The automaton of a rest and its kind of state ([`RuleAutomaton::kind`]), if it has one.
    ///
    /// [`RuleAutomaton::kind`]: anygram_grammar::automata::RuleAutomaton::kind
    pub(super) fn kind(&self, rest: RestId) -> Option<(u32, u32)> {
        let &GrownRest { automaton, state, .. } = self.grown.get(rest)?;
        Some((automaton, self.cfg.automata[automaton as usize].automaton.kind(state)?))
    }

    /// One rest for several of a kind ([`RuleAutomaton::joined`]).
    ///
    /// [`RuleAutomaton::joined`]: anygram_grammar::automata::RuleAutomaton::joined
    pub(super) fn joined(&mut self, joined: &[RestId]) -> Result<RestId, RecognizerError> {
        let Self { cfg, grown, rests, .. } = self;
        let Some(&GrownRest { automaton, .. }) = joined.first().and_then(|&rest| grown.get(rest)) else {
            return Ok(joined.first().copied().unwrap_or(self.root));
        };
        let states: Vec<u32> = joined.iter().filter_map(|&rest| Some(grown.get(rest)?.state)).collect();
        let of = &cfg.automata[automaton as usize];
        let state = of.automaton.joined(&states)?;
        let n_before = rests.len();
        let joined = grown.intern(of, automaton, state, rests);
        self.n_items += self.rests.len() - n_before;
        Ok(joined)
    }

    /// Whether an automaton can read symbols, given from right to left, from a rest on, to its end if they
    /// are all that is left.
    pub(super) fn reads(
        &mut self,
        rest: RestId,
        symbols: impl Iterator<Item = u32>,
        is_whole: bool,
    ) -> Result<bool, RecognizerError> {
        let mut at = rest;
        for symbol in symbols {
            match self.grown.get(at) {
                Some(GrownRest { symbols, .. }) if symbols.binary_search(&symbol).is_ok() => {}
                // It is complete, or of no automaton.
                Some(_) => return Ok(false),
                None => return Ok(at == rest),
            }
            at = self.grow(at, symbol)?;
        }
        Ok(!is_whole || self.grown.get(at).is_none_or(|grown| grown.accepts))
    }

    /// How many symbols are lacking of a right-hand side of which these are the last, from right to left.
    pub(super) fn lacking(&self, rest: RestId, last: &[u32]) -> u32 {
        let Some(&GrownRest { automaton, .. }) = self.grown.get(rest) else { return 0 };
        self.cfg.automata[automaton as usize].automaton.lacking(last)
    }

    /// The rest of a [name](Grown::name).
    pub(super) fn rest_named(&mut self, (number, state): (u32, u32)) -> RestId {
        let Self { cfg, grown, rests, .. } = self;
        let Some(automaton) = number.checked_sub(grown.from as u32) else { return RestId(number) };
        let Some(of) = cfg.automata.get(automaton as usize) else { return RestId(number) };
        let n_before = rests.len();
        let rest = grown.intern(of, automaton, state, rests);
        self.n_items += self.rests.len() - n_before;
        rest
    }

    /// Adds what a rest can go on with to the terminals that can come next and the nonterminals that are
    /// predicted.
    pub(super) fn want_grown(&mut self, rest: RestId, viable: &mut BitSet, predicted: &mut BitSet) {
        let Some(GrownRest { automaton, symbols, .. }) = self.grown.get(rest) else { return };
        let (of, symbols) = (self.cfg.automata[*automaton as usize].symbols.clone(), symbols.clone());
        for &symbol in symbols.iter().filter_map(|&number| of.get(number as usize)) {
            match symbol {
                Symbol::Terminal(t) => drop(viable.insert(t.index())),
                Symbol::Nonterminal(n) if !predicted.contains(n.index()) => {
                    self.predict(n);
                    if let Some(with) = &self.predicts[n.index()] {
                        predicted.union_with(with);
                    }
                }
                Symbol::Nonterminal(_) => {}
            }
        }
    }

    /// The states of automata that texts have come to, those that stand for no rest of their own left out.
    pub fn n_automaton_states(&self) -> usize {
        self.grown.len()
    }
}
