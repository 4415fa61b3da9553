//! Earley's algorithm over shared, interned states.
//!
//! Like the reference a state is a set of items whose origins are states, not positions; unlike it
//!
//! - items are *rests*: a left side and the symbols still to come, so rules with a common end share them (as
//!   LR(0) items of suffixes);
//! - predicted items are not listed: the set of predicted nonterminals decides them, and states that predict
//!   the same share one prediction;
//! - completed items are not kept: what follows from completing a nonterminal that began in a state is
//!   computed once per pair and kept (`completed`), which makes right recursion linear, as Leo's items (1991)
//!   do, and for the same reason: the chain of completions is walked once, not at each step;
//! - of states in which completing a nonterminal comes to the same, items begin in one (module `origins`);
//! - `state × terminal → state` is a table. States do not know positions, so the table serves all places of
//!   all texts.
//!
//! The right-hand sides of a nonterminal may be given by an automaton ([`Cfg::automata`]). Then its rests are
//! the automaton's states, interned as texts come to them (module `grown`); the rules that stand for the
//! automaton in [`Cfg::rules`] are left aside. Such an item waits for every symbol that its state has, and it
//! is taken only along the one that comes, so the number of keys that an object *could* have next does not
//! matter.
//!
//! Where several edges meet, the state is the union of the states at their ends: what is predicted follows
//! from the items that are not.
//!
//! Cost of a step: a look-up if it was made before, else the items of the new state and of what it is
//! compared with. Nothing is forgotten, for another text may come the same way; whoever holds the engine
//! watches [`Recognizer::n_items`] and starts afresh.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::sync::Arc;

mod carried;
pub mod contexts;
mod grown;
mod origins;
mod rests;

use anygram_bits::{BitSet, Pages, PartedMap, PartedTable, SliceId, Slices, index_type};
use anygram_grammar::analysis;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::completions::Completions;
use anygram_grammar::ir::{NonterminalId, Symbol, TerminalId};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use self::carried::Shape;
pub use self::carried::View;
use self::grown::{Grown, Start};
use self::origins::Compared;
use self::rests::Rests;
use crate::{
    Begun, Edge, Left, Mark, Recognizer, RecognizerError, RecognizerLimits, Relation, StateId, Visit,
};

index_type!(
    /// A left side and what is still to come of one of its rules, or the state of its automaton. The latter
    /// come behind the former.
    RestId
);

/// A rest, and the state in which its rule began.
type Item = (RestId, StateId);

#[derive(Clone, Debug)]
struct Rest {
    lhs: NonterminalId,
    /// The next symbol, unless the rule is complete or an automaton says what is next.
    first: Option<Symbol>,
    /// Without it; itself if there is none.
    next: RestId,
    /// The fewest terminals.
    minimum: u32,
}

/// The closure of a set of predicted nonterminals.
#[derive(Clone, Debug)]
struct Prediction {
    terminals: BitSet,
    /// The rests that begin with each symbol, without it; sorted by symbol.
    steps: Vec<(Symbol, RestId)>,
    /// The starts of automata that have each symbol; sorted by symbol.
    starts: Vec<Start>,
}

/// The states that were looked into to find something out, sorted; `None` if there are more than
/// [`MAX_LOOKED_INTO`].
type Reach = Option<Box<[StateId]>>;

/// A reach that is kept, in [`Earley::reaches`].
type ReachId = u32;

/// In place of a reach: there is none.
const TOO_FAR: ReachId = ReachId::MAX;

/// Beyond this many it is no use to know them: no other place will look alike.
const MAX_LOOKED_INTO: usize = 48;

#[derive(Clone, Copy, Debug)]
struct State {
    /// Items that are not predicted here and not complete, sorted by their first symbol.
    kernel: SliceId,
    prediction: u32,
    viable: u32,
    is_sentence: bool,
}

/// What follows from completing a nonterminal: items, and whether the whole text is a sentence.
#[derive(Clone, Debug, Default)]
struct Completed {
    items: Vec<Item>,
    is_sentence: bool,
    /// What was looked into.
    reach: Reach,
}

/// The same as it is kept.
#[derive(Clone, Copy, Debug)]
struct KeptCompleted {
    items: SliceId,
    is_sentence: bool,
    reach: ReachId,
}

/// Parse items of one state from which on a text is better read by the Valiant chart. (Palindromes of two
/// letters come to it, behind some hundred terminals; texts of SQL, SQLite and C++ in `data/replay` do not:
/// they come to 75.)
const HEAVY: usize = 128;

/// The engine; see the module.
#[derive(Clone, Debug)]
pub struct Earley {
    cfg: Arc<Cfg>,
    /// Those of rules, and behind them one for each of `grown`.
    rests: Vec<Rest>,
    /// Of the nonterminal that has the start on its right-hand side.
    root: RestId,
    /// The rests that are states of automata.
    grown: Grown,
    nullable: BitSet,
    /// Of each nonterminal the ones that can stand first in what it begins with.
    firsts: Vec<Box<[NonterminalId]>>,
    /// Of each nonterminal the ones that are predicted with it, itself included; made when first needed.
    predicts: Vec<Option<Box<BitSet>>>,
    /// Of each nonterminal the rests of its rules, nullable symbols in front also stepped over.
    begins: Vec<Vec<RestId>>,
    /// The nonterminals that can stand last in what they end with.
    tail_recursive: BitSet,
    /// See [`Earley::begin_of`].
    begins_in: PartedMap<(StateId, NonterminalId), (StateId, ReachId)>,
    /// Of a state and nonterminals that begin there, another state in which completing them comes to the
    /// same, and what was looked into to see it; or itself, if that was not so.
    same: PartedMap<(StateId, NonterminalId), (StateId, ReachId)>,
    /// The states that are being compared, if two are.
    compared: Option<Compared>,
    /// The items that comparisons looked at.
    n_compared: usize,
    predictions: Vec<Prediction>,
    prediction_ids: FxHashMap<BitSet, u32>,
    states: Pages<State>,
    /// Of states and of what completions come to.
    items: Slices<Item>,
    viable: Vec<BitSet>,
    viable_ids: FxHashMap<BitSet, u32>,
    /// By their items, each with the hash of these: a table that grows does not look at the items.
    ids: PartedTable<(u64, StateId)>,
    /// The state after a terminal, and what was looked into.
    steps: PartedMap<(StateId, TerminalId), (Option<StateId>, ReachId)>,
    /// The first is empty.
    reaches: Pages<SliceId>,
    /// Of each state, once it was asked for, its shape and the states that its items began in.
    views: Pages<Option<(u32, SliceId)>>,
    /// Those in `reaches` and `views`.
    lists: Slices<StateId>,
    /// The numbers of shapes, which outlive the states that have them.
    shapes: FxHashMap<Shape, u32>,
    merges: FxHashMap<Box<[StateId]>, StateId>,
    /// Where in `all_completed` it stands. (Tables that grow are copied, so their entries are small.)
    completed: PartedMap<(StateId, NonterminalId), u32>,
    all_completed: Pages<KeptCompleted>,
    n_items: usize,
    limits: RecognizerLimits,
    /// Whether a state has at most one item a rest, and how deep merges of origins are nested right now.
    shares_origins: bool,
    depth: usize,
    /// Items of states that were merged.
    n_merged: usize,
    /// Scratch: empty between uses.
    seen: FxHashSet<Item>,
}

/// A set that could hold so many items is not used again.
const MANY_SEEN: usize = 1_000;

/// Merges of origins within merges of origins beyond which items are left apart.
const MAX_DEPTH: usize = 100;

impl Earley {
    /// An engine for a reduced grammar.
    pub fn new(cfg: impl Into<Arc<Cfg>>, limits: RecognizerLimits) -> Result<Self, RecognizerError> {
        let cfg = cfg.into();
        let minimum = cfg.minimum_lengths();
        let mut table = Rests::new(&minimum);
        // The root is a rest of a rule of a nonterminal of its own: root → start.
        let mut root =
            table.intern(NonterminalId::new(cfg.n_nonterminals), &[Symbol::Nonterminal(cfg.start)]);
        let nullable = cfg.nullable();
        let mut begins = vec![Vec::new(); cfg.n_nonterminals];
        let approximated = cfg.approximated();
        for rule in cfg.rules.iter().filter(|rule| !approximated.contains(rule.lhs.index())) {
            let mut rest = table.intern(rule.lhs, &rule.rhs);
            for symbol in &rule.rhs {
                begins[rule.lhs.index()].push(rest);
                match symbol {
                    Symbol::Nonterminal(n) if nullable.contains(n.index()) => rest = table.after(rest),
                    _ => break,
                }
            }
        }
        begins.iter_mut().for_each(|rests| {
            rests.sort_unstable();
            rests.dedup();
        });
        let mut ends: Vec<RestId> =
            cfg.automata.iter().map(|automaton| table.intern(automaton.lhs, &[])).collect();
        let mut rests = table.sorted(begins.iter_mut().flatten().chain([&mut root]).chain(&mut ends));
        begins.iter_mut().for_each(|rests| rests.sort_unstable());
        let grown = Grown::new(&cfg, ends, &minimum, &mut rests);
        let firsts = firsts(&cfg, &begins, &rests);
        let mut this = Self {
            tail_recursive: tail_recursive(&cfg),
            predicts: vec![None; cfg.n_nonterminals],
            begins_in: PartedMap::default(),
            same: PartedMap::default(),
            compared: None,
            n_compared: 0,
            cfg,
            rests,
            root,
            grown,
            nullable,
            firsts,
            begins,
            predictions: Vec::new(),
            prediction_ids: FxHashMap::default(),
            states: Pages::default(),
            items: Slices::default(),
            viable: Vec::new(),
            viable_ids: FxHashMap::default(),
            ids: PartedTable::default(),
            steps: PartedMap::default(),
            views: Pages::default(),
            lists: Slices::default(),
            shapes: FxHashMap::default(),
            merges: FxHashMap::default(),
            completed: PartedMap::default(),
            all_completed: Pages::default(),
            reaches: Pages::default(),
            n_items: 0,
            limits,
            shares_origins: false,
            depth: 0,
            n_merged: 0,
            seen: FxHashSet::default(),
        };
        this.reaches.push(SliceId::default());
        let closure = this.close(vec![(root, StateId(0))])?;
        this.intern(closure)?;
        Ok(this)
    }

    /// The same, with at most one item a rest in a state: where there are several, one stands for them that
    /// began in all of their origins at once.
    ///
    /// Completing a nonterminal that began in a merged state comes to what completing it in each of the
    /// merged states comes to, so that nothing is lost or gained (as where stacks meet in a graph-structured
    /// stack; Tomita 1985). For texts of which much is unknown, in which a state is reached by many ways;
    /// elsewhere it costs states. What was looked into is not known then ([`Earley::looked_into`]).
    pub fn sharing_origins(mut self) -> Self {
        self.shares_origins = true;
        self
    }

    /// The items that were made, those of completions included.
    pub fn n_parse_items(&self) -> usize {
        let kernels = self.states.iter().map(|state| state.kernel.len()).sum::<usize>();
        kernels + self.all_completed.iter().map(|completed| completed.items.len()).sum::<usize>()
    }

    /// The items of a state, and whether it is one of a sentence.
    fn kernel(&self, state: StateId) -> (&[Item], bool) {
        let State { kernel, is_sentence, .. } = self.states[state.index()];
        (self.items.get(kernel), is_sentence)
    }

    /// What was looked into, if it was kept.
    fn reach(&self, id: ReachId) -> Option<&[StateId]> {
        // Beyond the end if it is too far.
        self.reaches.get(id as usize).map(|&reach| self.lists.get(reach))
    }

    fn keep_reach(&mut self, reach: Reach) -> ReachId {
        match reach {
            None => TOO_FAR,
            Some(reach) if reach.is_empty() => 0,
            Some(reach) => self.reaches.push(self.lists.push(&reach)) as ReachId,
        }
    }

    /// The states, other than `from`, that were looked into to read a terminal from a state. `None` if that
    /// was not done, or if they are too many to tell.
    pub fn looked_into(&self, from: StateId, terminal: TerminalId) -> Option<&[StateId]> {
        self.reach(self.steps.get(&(from, terminal))?.1)
    }

    /// As [`Recognizer::can_finish`], but from what the state shows of itself ([`Earley::view`]); a no says
    /// nothing.
    pub fn can_finish_anywhere(&self, state: StateId, from: usize, automaton: &Completions) -> bool {
        let relation = automaton.relation();
        let (kernel, is_sentence) = self.kernel(state);
        let is_safe = |&(rest, _): &Item| {
            let from = BitSet::from_members(relation.n_states(), [from]);
            let reached = relation.after_all(self.symbols(rest), from);
            let lhs = self.rests[rest.index()].lhs;
            if lhs.index() == self.cfg.n_nonterminals {
                !reached.is_empty()
            } else {
                reached.intersects(automaton.safe(lhs))
            }
        };
        is_sentence || kernel.iter().any(is_safe)
    }

    /// Whether a state holds so many items that the Valiant chart is the better engine for texts that come
    /// there.
    pub fn is_heavy(&self, state: StateId) -> bool {
        self.states[state.index()].kernel.len() > HEAVY
    }

    /// A measure of what was done so far: the items made, and those that were looked at to merge or compare
    /// states.
    pub fn effort(&self) -> usize {
        self.n_items + self.n_merged + self.n_compared
    }

    fn first(&self, rest: RestId) -> Option<Symbol> {
        self.rests[rest.index()].first
    }

    /// The items of a state that wait for a symbol, stepped over it; those of automata are left out
    /// ([`Earley::growing`]).
    fn waiting(&self, state: StateId, symbol: Symbol) -> impl Iterator<Item = Item> {
        let State { kernel, prediction, .. } = self.states[state.index()];
        let kernel = self.items.get(kernel);
        let from = kernel
            .partition_point(|&(rest, _)| self.first(rest) < Some(symbol) && rest.index() < self.grown.from);
        let listed = kernel[from..].iter().take_while(move |&&(rest, _)| self.first(rest) == Some(symbol));
        let steps = &self.predictions[prediction as usize].steps;
        let from = steps.partition_point(|step| step.0 < symbol);
        let predicted = steps[from..].iter().take_while(move |step| step.0 == symbol);
        listed
            .map(|&(rest, origin)| (self.rests[rest.index()].next, origin))
            .chain(predicted.map(move |step| (step.1, state)))
    }

    /// All items of a state that wait for a symbol, stepped over it.
    fn all_waiting(
        &mut self,
        state: StateId,
        symbol: Symbol,
        items: &mut Vec<Item>,
    ) -> Result<(), RecognizerError> {
        items.extend(self.waiting(state, symbol));
        if self.grown.is_empty() {
            return Ok(());
        }
        for (at, number, origin) in self.growing(state, symbol) {
            items.push((self.grow(at, number)?, origin));
        }
        Ok(())
    }

    /// All items that follow from the given ones by completion, those that are complete left out.
    fn close(&mut self, seeds: Vec<Item>) -> Result<Completed, RecognizerError> {
        let mut seen = std::mem::take(&mut self.seen);
        let closure = self.close_unseen(seeds, &mut seen);
        // To clear a set costs as much as it could hold.
        if seen.capacity() < MANY_SEEN {
            seen.clear();
            self.seen = seen;
        }
        closure
    }

    fn close_unseen(
        &mut self,
        seeds: Vec<Item>,
        seen: &mut FxHashSet<Item>,
    ) -> Result<Completed, RecognizerError> {
        let mut closure = Completed::default();
        let mut looked_into = LookedInto::default();
        let mut agenda = seeds;
        while let Some(item) = agenda.pop() {
            if !seen.insert(item) {
                continue;
            }
            if self.n_items + seen.len() > self.limits.items {
                return Err(RecognizerError::TooManyItems { limit: self.limits.items });
            }
            if !self.has_budget(1) {
                break;
            }
            let (rest, origin) = item;
            match self.first(rest) {
                Some(symbol) => {
                    closure.items.push(item);
                    if let Symbol::Nonterminal(n) = symbol
                        && self.nullable.contains(n.index())
                    {
                        agenda.push((self.rests[rest.index()].next, origin));
                    }
                }
                None if rest.index() >= self.grown.from => {
                    closure.items.push(item);
                    agenda.extend(self.grown.end(rest).map(|end| (end, origin)));
                }
                None => {
                    let lhs = self.rests[rest.index()].lhs;
                    if lhs.index() == self.cfg.n_nonterminals {
                        closure.is_sentence = true;
                        continue;
                    }
                    let key = (origin, lhs);
                    let known = self.completed.get(&key).filter(|_| !self.is_compared(origin));
                    if let Some(&known) = known {
                        let known = self.all_completed[known as usize];
                        if !self.has_budget(known.items.len()) {
                            break;
                        }
                        closure.is_sentence |= known.is_sentence;
                        // They are closed already.
                        let items = self.items.get(known.items);
                        closure.items.extend(items.iter().filter(|&&item| seen.insert(item)));
                        looked_into.add(self.reach(known.reach));
                        continue;
                    }
                    looked_into.add(Some(&[origin]));
                    let from = agenda.len();
                    self.all_waiting(origin, Symbol::Nonterminal(lhs), &mut agenda)?;
                    if !self.has_budget(agenda.len() - from) {
                        break;
                    }
                    self.move_begins(origin, &mut agenda[from..], &mut looked_into)?;
                }
            }
        }
        closure.reach = looked_into.finish();
        Ok(closure)
    }

    /// What follows from completing `lhs`, begun in `origin`; computed once.
    fn complete(&mut self, origin: StateId, lhs: NonterminalId) -> Result<(), RecognizerError> {
        if !self.completed.contains_key(&(origin, lhs)) {
            let mut seeds = Vec::new();
            self.all_waiting(origin, Symbol::Nonterminal(lhs), &mut seeds)?;
            let mut looked_into = LookedInto::default();
            self.move_begins(origin, &mut seeds, &mut looked_into)?;
            let mut closure = self.close(seeds)?;
            if self.shares_origins {
                self.sort(&mut closure.items)?;
            }
            looked_into.add(closure.reach.as_deref());
            looked_into.add(Some(&[origin]));
            self.n_items += closure.items.len();
            let kept = KeptCompleted {
                items: self.items.push(&closure.items),
                is_sentence: closure.is_sentence,
                reach: self.keep_reach(looked_into.finish()),
            };
            let at = self.all_completed.push(kept) as u32;
            self.completed.insert_unique((origin, lhs), at);
        }
        Ok(())
    }

    /// As [`Earley::close`], keeping what each completion of a nonterminal among the seeds comes to.
    fn close_kept(&mut self, seeds: Vec<Item>) -> Result<Completed, RecognizerError> {
        for &(rest, origin) in &seeds {
            let Rest { lhs, first, .. } = self.rests[rest.index()];
            let is_end = first.is_none() && self.grown.completes(rest);
            if is_end && lhs.index() != self.cfg.n_nonterminals {
                self.complete(origin, lhs)?;
            }
        }
        self.close(seeds)
    }

    /// Sorts items; if origins are shared, there is one for each rest afterwards.
    fn sort(&mut self, items: &mut Vec<Item>) -> Result<(), RecognizerError> {
        // Mostly a few sorted runs, of which a stable sort makes use.
        items.sort();
        items.dedup();
        let is_apart = items.windows(2).all(|pair| pair[0].0 != pair[1].0);
        if !self.shares_origins || is_apart || self.depth == MAX_DEPTH {
            return Ok(());
        }
        self.depth += 1;
        let mut shared = Vec::with_capacity(items.len());
        for group in items.chunk_by(|one, other| one.0 == other.0) {
            let origins = group.iter().map(|&(_, origin)| origin).collect();
            match self.merge(origins) {
                Ok(origin) => shared.push((group[0].0, origin)),
                Err(error) => {
                    self.depth -= 1;
                    return Err(error);
                }
            }
        }
        self.depth -= 1;
        *items = shared;
        Ok(())
    }

    fn intern(&mut self, closure: Completed) -> Result<StateId, RecognizerError> {
        let Completed { mut items, is_sentence, .. } = closure;
        self.sort(&mut items)?;
        let hash = FxBuildHasher.hash_one((&items, is_sentence));
        let is_same = |&(_, id): &(u64, StateId)| {
            let (kernel, other) = self.kernel(id);
            *kernel == *items && other == is_sentence
        };
        if let Some(&(_, id)) = self.ids.find(hash, is_same) {
            return Ok(id);
        }
        // The sets of a state take memory as items do.
        let n_items = items.len() + self.cfg.n_terminals / u64::BITS as usize;
        if self.n_items + n_items > self.limits.items {
            return Err(RecognizerError::TooManyItems { limit: self.limits.items });
        }
        self.n_items += n_items;
        let (prediction, viable) = self.predicted(items.iter().map(|&(rest, _)| rest));
        let kernel = self.items.push(&items);
        let id = StateId::new(self.states.push(State { kernel, prediction, viable, is_sentence }));
        self.ids.insert_unique(hash, (hash, id), |known| known.0);
        Ok(id)
    }

    /// What is predicted where rests are in progress, and which terminals can come next there.
    fn predicted(&mut self, rests: impl Iterator<Item = RestId>) -> (u32, u32) {
        let (predicted, mut viable) = self.begun(rests);
        let prediction = self.prediction(predicted);
        viable.union_with(&self.predictions[prediction as usize].terminals);
        (prediction, self.viable_id(viable))
    }

    /// The nonterminals that are predicted where rests are in progress, and the terminals that these have
    /// first.
    fn begun(&mut self, rests: impl Iterator<Item = RestId>) -> (BitSet, BitSet) {
        let mut predicted = BitSet::new(self.cfg.n_nonterminals);
        let mut viable = BitSet::new(self.cfg.n_terminals);
        for rest in rests {
            match self.first(rest) {
                Some(Symbol::Terminal(t)) => drop(viable.insert(t.index())),
                Some(Symbol::Nonterminal(n)) if !predicted.contains(n.index()) => {
                    self.predict(n);
                    if let Some(with) = &self.predicts[n.index()] {
                        predicted.union_with(with);
                    }
                }
                Some(Symbol::Nonterminal(_)) => {}
                None => self.want_grown(rest, &mut viable, &mut predicted),
            }
        }
        (predicted, viable)
    }

    fn viable_id(&mut self, viable: BitSet) -> u32 {
        if let Some(&known) = self.viable_ids.get(&viable) {
            return known;
        }
        let id = self.viable.len() as u32;
        self.viable.push(viable.clone());
        self.viable_ids.insert(viable, id);
        id
    }

    fn prediction(&mut self, nonterminals: BitSet) -> u32 {
        if let Some(&id) = self.prediction_ids.get(&nonterminals) {
            return id;
        }
        let mut terminals = BitSet::new(self.cfg.n_terminals);
        let mut steps = Vec::new();
        for n in nonterminals.iter() {
            for &rest in &self.begins[n] {
                let Some(symbol) = self.first(rest) else { continue };
                if let Symbol::Terminal(t) = symbol {
                    terminals.insert(t.index());
                }
                steps.push((symbol, self.rests[rest.index()].next));
            }
        }
        steps.sort_unstable();
        steps.dedup();
        let starts = self.grown.starts(&self.cfg, &nonterminals, &mut terminals);
        let id = self.predictions.len() as u32;
        self.n_items += starts.len() + steps.len();
        self.predictions.push(Prediction { terminals, steps, starts });
        self.prediction_ids.insert(nonterminals, id);
        id
    }

    fn step(&mut self, from: StateId, terminal: TerminalId) -> Result<Option<StateId>, RecognizerError> {
        if let Some(&(known, _)) = self.steps.get(&(from, terminal)) {
            return Ok(known);
        }
        let mut seeds = Vec::new();
        self.all_waiting(from, Symbol::Terminal(terminal), &mut seeds)?;
        let (next, reach) = if seeds.is_empty() {
            (None, Some(Box::default()))
        } else {
            let mut looked_into = LookedInto::default();
            self.move_begins(from, &mut seeds, &mut looked_into)?;
            let closure = self.close_kept(seeds)?;
            looked_into.add(closure.reach.as_deref().filter(|_| !self.shares_origins));
            (Some(self.intern(closure)?), looked_into.finish())
        };
        let reach = self.keep_reach(reach);
        self.steps.insert_unique((from, terminal), (next, reach));
        Ok(next)
    }

    /// The state that reads what any of several states reads.
    fn merge(&mut self, mut states: Vec<StateId>) -> Result<StateId, RecognizerError> {
        states.sort_unstable();
        states.dedup();
        if let [only] = *states {
            return Ok(only);
        }
        if let Some(&known) = self.merges.get(&*states) {
            return Ok(known);
        }
        if self.depth > 0
            && let (Some(first), Some(last)) = (states.first(), states.last())
            && states.len() > 2
        {
            // By halves of the range of ids: sets that differ in a few have most parts in common.
            let bit = (first.0 ^ last.0).ilog2();
            let upper = states.partition_point(|state| state.0 >> bit & 1 == 0);
            let halves = vec![self.merge(states[..upper].to_vec())?, self.merge(states[upper..].to_vec())?];
            let merged = self.merge(halves)?;
            self.merges.insert(states.into(), merged);
            return Ok(merged);
        }
        let mut merged = Completed::default();
        for &state in &states {
            let (kernel, is_sentence) = self.kernel(state);
            merged.items.extend_from_slice(kernel);
            let n_items = kernel.len();
            self.n_merged += 1 + n_items;
            merged.is_sentence |= is_sentence;
        }
        let state = self.intern(merged)?;
        if self.depth > 0 {
            // What is in it is in it.
            for &part in states.iter().filter(|&&part| part != state) {
                let key = if part < state { [part, state] } else { [state, part] };
                self.merges.insert(Box::from(key), state);
            }
        }
        self.merges.insert(states.into(), state);
        Ok(state)
    }

    /// Finds what is predicted with a nonterminal.
    fn predict(&mut self, nonterminal: NonterminalId) {
        if self.predicts[nonterminal.index()].is_some() {
            return;
        }
        let mut seen = BitSet::from_members(self.cfg.n_nonterminals, [nonterminal.index()]);
        let mut agenda = vec![nonterminal];
        while let Some(n) = agenda.pop() {
            match &self.predicts[n.index()] {
                Some(known) => drop(seen.union_with(known)),
                None => {
                    let firsts = self.firsts[n.index()].iter().copied();
                    agenda.extend(firsts.filter(|next| seen.insert(next.index())));
                }
            }
        }
        self.n_items += self.cfg.n_nonterminals / u64::BITS as usize;
        self.predicts[nonterminal.index()] = Some(Box::new(seen));
    }

    fn visit(&self, (rest, origin): Item, symbols: &mut Vec<Symbol>, visit: &mut Visit<'_>) {
        let begun = Begun { origin, symbol: self.rests[rest.index()].lhs.0 };
        if let Some(left) = self.grown.in_state(rest) {
            return visit(left, begun);
        }
        symbols.clear();
        symbols.extend(self.symbols(rest));
        visit(Left::Symbols(symbols), begun);
    }

    /// What an item of a state still has to read; of an automaton something that derives at least that.
    fn symbols(&self, rest: RestId) -> impl Iterator<Item = Symbol> {
        let following = |rest: &RestId| Some(self.rests[rest.index()].next);
        let listed = std::iter::successors(Some(rest), following).map_while(|rest| self.first(rest));
        listed.chain(self.grown.left(&self.cfg, rest))
    }
}

/// States that were looked into while they are collected.
struct LookedInto(Option<Vec<StateId>>);

impl Default for LookedInto {
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

impl LookedInto {
    fn add(&mut self, states: Option<&[StateId]>) {
        let (Some(all), Some(states)) = (&mut self.0, states) else {
            self.0 = None;
            return;
        };
        for state in states {
            if let Err(at) = all.binary_search(state) {
                all.insert(at, *state);
            }
        }
        if all.len() > MAX_LOOKED_INTO {
            self.0 = None;
        }
    }

    fn finish(self) -> Reach {
        self.0.map(Vec::into_boxed_slice)
    }
}

/// The nonterminals from which one comes back to them by last symbols of rules.
fn tail_recursive(cfg: &Cfg) -> BitSet {
    let mut lasts = vec![Vec::new(); cfg.n_nonterminals];
    let approximated = cfg.approximated();
    for rule in cfg.rules.iter().filter(|rule| !approximated.contains(rule.lhs.index())) {
        if let Some(Symbol::Nonterminal(last)) = rule.rhs.last() {
            lasts[rule.lhs.index()].push(last.index());
        }
    }
    for automaton in &cfg.automata {
        lasts[automaton.lhs.index()].extend(automaton.symbols.iter().filter_map(|symbol| match symbol {
            Symbol::Nonterminal(n) => Some(n.index()),
            Symbol::Terminal(_) => None,
        }));
    }
    let is_cycle =
        |component: &Vec<usize>| component.len() > 1 || lasts[component[0]].contains(&component[0]);
    let cycles = analysis::components(&lasts).into_iter().filter(is_cycle);
    BitSet::from_members(cfg.n_nonterminals, cycles.flatten())
}

/// Of each nonterminal the ones that stand first in its rules, nullable symbols in front stepped over, or
/// that its automaton has first.
fn firsts(cfg: &Cfg, begins: &[Vec<RestId>], rests: &[Rest]) -> Vec<Box<[NonterminalId]>> {
    let of = |begins: &Vec<RestId>| {
        let first = begins.iter().filter_map(|rest| match rests[rest.index()].first {
            Some(Symbol::Nonterminal(n)) => Some(n),
            _ => None,
        });
        first.collect::<Vec<NonterminalId>>()
    };
    let mut firsts: Vec<Vec<NonterminalId>> = begins.iter().map(of).collect();
    Grown::add_firsts(cfg, &mut firsts);
    let sorted = |mut firsts: Vec<NonterminalId>| {
        firsts.sort_unstable();
        firsts.dedup();
        firsts.into_boxed_slice()
    };
    firsts.into_iter().map(sorted).collect()
}

impl Recognizer for Earley {
    fn name(&self) -> &'static str {
        "earley"
    }

    fn cfg(&self) -> &Cfg {
        &self.cfg
    }

    fn start(&self) -> StateId {
        StateId(0)
    }

    fn extend(&mut self, edges: &[Edge]) -> Result<Option<StateId>, RecognizerError> {
        let mut states = Vec::with_capacity(edges.len());
        for &Edge { from, terminal } in edges {
            match terminal {
                Some(terminal) => states.extend(self.step(from, terminal)?),
                None => states.push(from),
            }
        }
        if states.is_empty() { Ok(None) } else { self.merge(states).map(Some) }
    }

    fn viable(&self, state: StateId) -> &BitSet {
        &self.viable[self.states[state.index()].viable as usize]
    }

    fn is_sentence(&self, state: StateId) -> bool {
        self.states[state.index()].is_sentence
    }

    fn minimum_remaining(&self, state: StateId) -> u32 {
        // Shortest path (Dijkstra, 1959), as in the reference; predicted items need no attention, for what
        // they derive is part of the rests of the others.
        if self.is_sentence(state) {
            return 0;
        }
        let mut queue = BinaryHeap::new();
        let mut seen = FxHashSet::default();
        let entry = |cost: u32, (rest, origin): Item| {
            let Rest { lhs, minimum, .. } = self.rests[rest.index()];
            Reverse((cost.saturating_add(minimum), origin, lhs))
        };
        let grow = |cost: u32, (at, number, origin): grown::Growing| {
            let (lhs, minimum) = self.grown.minimum_after(&self.cfg, at, number)?;
            Some(Reverse((cost.saturating_add(minimum), origin, lhs)))
        };
        queue.extend(self.kernel(state).0.iter().map(|&item| entry(0, item)));
        while let Some(Reverse((cost, origin, lhs))) = queue.pop() {
            if lhs.index() == self.cfg.n_nonterminals {
                return cost;
            }
            if seen.insert((origin, lhs)) {
                let symbol = Symbol::Nonterminal(lhs);
                queue.extend(self.waiting(origin, symbol).map(|item| entry(cost, item)));
                queue.extend(self.growing(origin, symbol).into_iter().filter_map(|item| grow(cost, item)));
            }
        }
        u32::MAX
    }

    fn can_finish(&self, state: StateId, from: usize, automaton: &Relation) -> bool {
        if self.is_sentence(state) {
            return true;
        }
        let from = BitSet::from_members(automaton.n_states(), [from]);
        let mut reached: FxHashMap<(StateId, NonterminalId), BitSet> = FxHashMap::default();
        let entry = |(rest, origin): Item, from: &BitSet| {
            (origin, self.rests[rest.index()].lhs, automaton.after_all(self.symbols(rest), from.clone()))
        };
        let mut agenda: Vec<_> = self.kernel(state).0.iter().map(|&item| entry(item, &from)).collect();
        while let Some((origin, lhs, states)) = agenda.pop() {
            if states.is_empty() {
                continue;
            }
            if lhs.index() == self.cfg.n_nonterminals {
                return true;
            }
            let known = reached.entry((origin, lhs)).or_insert_with(|| BitSet::new(automaton.n_states()));
            if known.union_with(&states) {
                let symbol = Symbol::Nonterminal(lhs);
                agenda.extend(self.waiting(origin, symbol).map(|item| entry(item, &states)));
                agenda.extend(self.growing(origin, symbol).into_iter().filter_map(|(at, number, origin)| {
                    let (lhs, left) = self.grown.left_after(&self.cfg, at, number)?;
                    Some((origin, lhs, automaton.after_all(left, states.clone())))
                }));
            }
        }
        false
    }

    fn in_progress(&self, state: StateId, visit: &mut Visit<'_>) {
        let mut symbols = Vec::new();
        self.kernel(state).0.iter().for_each(|&item| self.visit(item, &mut symbols, visit));
    }

    fn after_begun(&self, begun: Begun, visit: &mut Visit<'_>) {
        let lhs = Symbol::Nonterminal(NonterminalId(begun.symbol));
        let mut symbols = Vec::new();
        self.waiting(begun.origin, lhs).for_each(|item| self.visit(item, &mut symbols, visit));
        for (at, number, origin) in self.growing(begun.origin, lhs) {
            let Some((lhs, left)) = self.grown.in_state_after(&self.cfg, at, number) else { continue };
            visit(left, Begun { origin, symbol: lhs.0 });
        }
    }

    fn is_whole(&self, begun: Begun) -> bool {
        begun.symbol as usize == self.cfg.n_nonterminals
    }

    fn shared_states(&self) -> Option<&Self> {
        Some(self)
    }

    fn shared_states_mut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn n_states(&self) -> usize {
        self.states.len()
    }

    fn n_items(&self) -> usize {
        self.n_items
    }

    fn mark(&self) -> Mark {
        Mark(self.states.len())
    }

    fn release(&mut self, _: Mark) -> bool {
        false
    }

    fn dump(&self, state: StateId, name: &dyn Fn(Symbol) -> String) -> String {
        let (kernel, is_sentence) = self.kernel(state);
        let mut text = String::new();
        for &(rest, origin) in kernel {
            let lhs = self.rests[rest.index()].lhs;
            let lhs = if lhs.index() == self.cfg.n_nonterminals {
                "(text)".to_owned()
            } else {
                name(Symbol::Nonterminal(lhs))
            };
            let symbols = match self.grown.draw(&self.cfg, rest, name) {
                Some(drawing) => drawing,
                None => self.symbols(rest).map(|symbol| format!(" {}", name(symbol))).collect(),
            };
            text += &format!("  {lhs} -> … .{symbols}   from {}\n", origin.0);
        }
        if is_sentence {
            text += "  a sentence\n";
        }
        text
    }

    fn memory_usage(&self) -> usize {
        let states =
            self.states.len() * size_of::<State>() + self.viable.len() * (self.cfg.n_terminals / 4 + 96);
        self.n_items * size_of::<Item>()
            + self.ids.len() * 24
            + self.views.len() * 24
            + states
            + self.grown.memory_usage()
            + self.steps.len() * 40
            + self.completed.len() * 80
            + self.reaches.len() * 28
            + self.shapes.len() * 128
            + (self.begins_in.len() + self.same.len()) * 48
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygram_grammar::ir::Rule;

    /// start: "a" start | "a"
    fn right_recursive() -> Earley {
        let (s, a) = (Symbol::Nonterminal(NonterminalId(0)), Symbol::Terminal(TerminalId(0)));
        let rules = vec![
            Rule { lhs: NonterminalId(0), rhs: vec![a, s] },
            Rule { lhs: NonterminalId(0), rhs: vec![a] },
        ];
        let cfg =
            Cfg { n_terminals: 1, n_nonterminals: 1, rules, start: NonterminalId(0), automata: Vec::new() };
        Earley::new(cfg, RecognizerLimits::default()).unwrap()
    }

    #[test]
    fn right_recursion_is_linear() {
        let mut engine = right_recursive();
        let mut items = Vec::new();
        let mut state = engine.start();
        for _ in 0..200 {
            state = engine.extend(&[Edge { from: state, terminal: Some(TerminalId(0)) }]).unwrap().unwrap();
            items.push(engine.n_items());
        }
        assert!(engine.is_sentence(state));
        let steps: Vec<usize> = items.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps.iter().max(), steps.iter().min(), "every step makes as many items: {steps:?}");
    }

    #[test]
    fn a_state_carried_over_is_itself() {
        let mut engine = right_recursive();
        let start = engine.start();
        assert_eq!(engine.extend(&[Edge { from: start, terminal: None }]), Ok(Some(start)));
    }
}
