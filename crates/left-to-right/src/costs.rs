//! Minimum costs in tokens: what at least it takes to complete a text.
//!
//! Source of the method: Knuth, *A generalization of Dijkstra's algorithm* (1977), on the intersection of a
//! grammar with a finite automaton (Bar-Hillel, Perles and Shamir 1961); the derivation is in
//! `docs/algorithms/token-costs.md`. In short:
//!
//! - A [`Leftover`] is a point between two pieces: *what is left* of the tokens inside which the one ended
//!   and the next begins, as a set of subtrees of the trie of tokens; equal sets are one. [`Leftover::NONE`]
//!   is a token boundary, and leaving it costs one token.
//! - [`Costs::read`]: from a leftover a terminal leads to leftovers, each at a cost: the automaton of the
//!   terminal walks what is left, and then whole tokens, no more than may have bytes in its piece.
//! - *Tasks*: from a leftover a nonterminal leads to leftovers, each at its least cost, found best first and
//!   only as far as somebody asks. Where a token boundary is reached at a cost, a leftover whose texts are
//!   themselves tokens is of no use at a greater one.
//! - [`Costs::complete`]: from a parser's state and a leftover, a shortest path over what is in progress in
//!   the state and where it began. What a search learns about a symbol in progress holds for all later states
//!   in which it is still in progress (Koenig and Likhachev, *Adaptive A\**, 2005).
//!
//! In `scannerless` the result is the least number of tokens, if no automaton gives rules or terminals. With
//! longest match a piece owes here that its own terminal has no longer match in the byte after it, as far
//! as the same token has one; more is owed in truth, so there the result is a lower bound, which
//! [`crate::budget`] makes exact. So it is with automata:
//!
//! - What is left of a rule in a state of its automaton weighs the sum of its parts
//!   ([`RuleAutomaton::least`](anygram_grammar::automata::RuleAutomaton::least)), each at its least cost from
//!   wherever tokens may begin: of an object each member with the comma behind it, whose tokens rarely
//!   begin before it. So its states are gone through no further than a token, and the order of keys does not
//!   matter. As far as that they are: of a text in many arrays each may end within a token, but no token ends
//!   many.
//! - Where a terminal's automaton would have to be followed far, its piece is taken to end anywhere after one
//!   more token (`Single::Given`).
//!
//! Everything is made as it is asked for and counted in steps,
//! [`Limits::cost_steps`](crate::Limits::cost_steps); when a limit is hit the tables are dropped, so that
//! none is left half made.

mod automata;
mod leftovers;
mod pieces;
mod tasks;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anygram_bits::index_type;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::{LexerMode, Symbol, TerminalId};
use anygram_lexer::transducer::Lexing;
use anygram_recognizer::{Begun, Left, Recognizer, StateId};
use anygram_vocab::TokenTrie;
use rustc_hash::{FxHashMap, FxHashSet};

use automata::NEAR;
pub use leftovers::Subtrees;
use leftovers::{Known, Reached};
use pieces::{Automaton, Walked};
use tasks::Progress;

index_type!(
    /// What is left of some tokens.
    Leftover
);
index_type!(
    /// The symbols still to come of a rule; equal ones are one.
    Rest
);
index_type!(
    /// Something to read from a leftover.
    Task
);

/// A cost that no number of tokens pays.
pub const NEVER: u32 = u32::MAX;

/// What a rest begins with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum First {
    /// A symbol, and what comes behind it.
    Symbol(Symbol, Rest),
    /// What an automaton gives from a state on, with [`NEAR`] tokens at most.
    Automaton(usize, u32),
}

/// What is to be read along a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Way {
    /// These symbols.
    Rest(Rest),
    /// What an automaton gives from a state on, if that is known.
    Automaton(usize, Option<u32>),
}

/// The tables; see the module.
#[derive(Debug)]
pub struct Costs {
    /// Whether pieces owe that they have no longer match.
    owes: bool,
    /// What all languages on the vocabulary share.
    subtrees: Arc<Known>,
    /// The most bytes of a token, if given terminals are to be walked.
    height: usize,
    /// Everything that can be left of tokens, once it was needed, and what of it is not covered.
    anything: Option<[Leftover; 2]>,
    /// Of such nodes whether all texts in the subtree are tokens, once it was asked.
    covered: FxHashMap<u32, bool>,
    leftovers: Vec<Arc<[u32]>>,
    /// Subtrees of all of them together.
    n_tops: usize,
    leftover_ids: FxHashMap<Arc<[u32]>, Leftover>,
    uncovered: FxHashMap<Leftover, Option<Leftover>>,
    automata: Vec<Option<Arc<Automaton>>>,
    /// From a token boundary, with a terminal in some state, over one token.
    walks: FxHashMap<(TerminalId, u32), Arc<Walked>>,
    finishes: FxHashMap<(TerminalId, u32), Reached>,
    reads: FxHashMap<(TerminalId, Leftover), Reached>,
    skips: FxHashMap<Leftover, Reached>,
    reads_after_skips: FxHashMap<(TerminalId, Leftover), Reached>,
    rests: Vec<First>,
    rest_ids: FxHashMap<First, Rest>,
    /// Of each nonterminal its rules.
    rules: Vec<Vec<Rest>>,
    /// By what is read (a nonterminal, or beyond those a rest) and from where.
    task_ids: FxHashMap<(u32, Leftover), Task>,
    tasks: Vec<Progress>,
    /// `(cost, task, what is left to read, where)`, least cost first; nothing that costs more than the level
    /// of its task.
    agenda: BinaryHeap<Reverse<(u32, Task, Rest, Leftover)>>,
    settled: FxHashSet<(Task, Rest, Leftover)>,
    /// The cost at which a task with this left to read stands at a token boundary.
    boundaries: FxHashMap<(Task, Rest), u32>,
    /// What is known of parser states, which go with them: lower bounds, and whether they are the truth.
    states: FxHashMap<(StateId, Leftover), (u32, bool)>,
    begun: FxHashMap<(Begun, Leftover), u32>,
    /// Of each nonterminal the automaton that gives its right-hand sides; empty if there are none.
    automaton_of: Vec<Option<usize>>,
    /// What automata weigh at least, from their starts on; empty until it was asked for. From states on, and
    /// parts of what they give.
    weights: Vec<u32>,
    /// Whether they are being found out: all then is what is known of them so far.
    is_weighing: bool,
    state_weights: FxHashMap<(usize, u32), u32>,
    part_weights: FxHashMap<Rest, u32>,
}

/// Tables beyond this many entries are dropped before the next question.
const ENTRIES: usize = 8_000_000;

/// Subtrees of all leftovers together, and walks of them, beyond which all is made anew.
const TOPS: usize = 20_000_000;

impl Costs {
    /// Empty tables for a language and the trie of a vocabulary, beside which `subtrees` is kept.
    pub fn new(lexing: &Lexing, trie: &TokenTrie, subtrees: &Subtrees) -> Self {
        let cfg = &lexing.cfg;
        let mut this = Self {
            owes: lexing.mode() != LexerMode::Scannerless,
            subtrees: subtrees.of(trie),
            height: if lexing.is_growing() { trie.height() } else { 0 },
            anything: None,
            covered: FxHashMap::default(),
            leftovers: vec![Arc::from([])],
            n_tops: 0,
            leftover_ids: FxHashMap::default(),
            uncovered: FxHashMap::default(),
            automata: vec![None; cfg.n_terminals],
            walks: FxHashMap::default(),
            finishes: FxHashMap::default(),
            reads: FxHashMap::default(),
            skips: FxHashMap::default(),
            reads_after_skips: FxHashMap::default(),
            // The empty rest has no symbol; its entry is never looked at.
            rests: vec![First::Symbol(Symbol::Nonterminal(cfg.start), Rest::EMPTY)],
            rest_ids: FxHashMap::default(),
            rules: vec![Vec::new(); cfg.n_nonterminals],
            task_ids: FxHashMap::default(),
            tasks: Vec::new(),
            agenda: BinaryHeap::new(),
            settled: FxHashSet::default(),
            boundaries: FxHashMap::default(),
            states: FxHashMap::default(),
            begun: FxHashMap::default(),
            automaton_of: if cfg.automata.is_empty() { Vec::new() } else { vec![None; cfg.n_nonterminals] },
            weights: Vec::new(),
            is_weighing: false,
            state_weights: FxHashMap::default(),
            part_weights: FxHashMap::default(),
        };
        for (at, automaton) in cfg.automata.iter().enumerate() {
            this.automaton_of[automaton.lhs.index()] = Some(at);
        }
        for rule in &cfg.rules {
            let rest = this.rest(&rule.rhs);
            this.rules[rule.lhs.index()].push(rest);
        }
        this.rules.iter_mut().for_each(|rules| {
            rules.sort_unstable();
            rules.dedup();
        });
        this
    }

    /// Drops what is known of parser states.
    pub fn forget_states(&mut self) {
        self.states.clear();
        self.begun.clear();
    }

    /// Drops all that grows.
    pub fn clear(&mut self) {
        self.forget_states();
        self.task_ids.clear();
        self.tasks.clear();
        self.agenda.clear();
        self.settled.clear();
        self.boundaries.clear();
    }

    /// Whether leftovers and walks of them, which [`Costs::clear`] keeps, are so many that all should be made
    /// anew.
    pub fn is_full(&self) -> bool {
        self.n_tops + self.reads.len() + self.reads_after_skips.len() > TOPS
    }

    /// Drops what grows if it is too much.
    pub fn tidy(&mut self) {
        if self.settled.len() + self.begun.len() + self.states.len() > ENTRIES {
            self.clear();
        }
    }

    /// The number of leftovers, and of what is known of nonterminals from leftovers.
    pub fn n_entries(&self) -> (usize, usize) {
        (self.leftovers.len(), self.settled.len())
    }

    /// Bytes on the heap, roughly, without what is kept beside the vocabulary.
    pub fn memory_usage(&self) -> usize {
        let own = self.leftovers.iter().filter(|tops| !self.subtrees.keeps(tops));
        let tops = own.map(|tops| size_of_val(&**tops) + 32).sum::<usize>();
        let walks = self.walks.values().map(|walk| walk.memory_usage()).sum::<usize>();
        let tasks = self.tasks.iter().map(Progress::memory_usage).sum::<usize>();
        tops + walks
            + tasks
            + 24 * (self.settled.len() + self.boundaries.len() + self.agenda.len() + self.task_ids.len())
            + 32 * (self.states.len() + self.begun.len() + self.reads.len() + self.reads_after_skips.len())
    }

    /// The least cost of completing a parser's state from a leftover, if it is at most `limit`; else `None`.
    /// (A lower bound with longest match, see the module.)
    ///
    /// When it fails, the tables must be [cleared](Costs::clear).
    pub fn complete(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        recognizer: &dyn Recognizer,
        (state, from): (StateId, Leftover),
        limit: u32,
        work: &mut Work,
    ) -> Result<Option<u32>, Stopped> {
        self.weigh_automata(lexing, trie, work)?;
        loop {
            let (lower, is_exact) = self.states.get(&(state, from)).copied().unwrap_or((0, false));
            if lower == NEVER || lower > limit {
                return Ok(None);
            }
            if is_exact {
                return Ok(Some(lower));
            }
            let known = self.search(lexing, trie, recognizer, (state, from), lower, work)?;
            self.states.insert((state, from), known);
        }
    }

    fn way(&mut self, left: Left<'_>) -> Way {
        match left {
            Left::Symbols(symbols) => Way::Rest(self.rest(symbols)),
            Left::Automaton(automaton, state) => Way::Automaton(automaton, state),
        }
    }

    /// Looks for a completion that costs at most `bound`. Returns its cost, or a greater lower bound.
    fn search(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        recognizer: &dyn Recognizer,
        (state, from): (StateId, Leftover),
        bound: u32,
        work: &mut Work,
    ) -> Result<(u32, bool), Stopped> {
        let mut path = Path {
            bound,
            beyond: NEVER,
            queue: BinaryHeap::new(),
            costs: FxHashMap::default(),
            tasks: Vec::new(),
        };
        if recognizer.is_sentence(state) {
            path.goal(self.end(lexing, trie, from, work)?);
        }
        let mut ways: Vec<(Way, Begun)> = Vec::new();
        recognizer.in_progress(state, &mut |left, begun| ways.push((self.way(left), begun)));
        self.follow(lexing, trie, &mut path, &mut ways, (from, 0), work)?;
        let mut closed = Vec::new();
        let mut found = None;
        while let Some(Reverse((total, depth, place))) = path.queue.pop() {
            let Some((begun, leftover)) = place else {
                found = Some(total);
                break;
            };
            let cost = NEVER - depth;
            if path.costs.get(&(begun, leftover)).is_some_and(|&least| least < cost) {
                continue;
            }
            closed.push((begun, leftover, cost));
            if recognizer.is_whole(begun) {
                let end = self.end(lexing, trie, leftover, work)?;
                path.goal(cost.saturating_add(end));
            }
            ways.clear();
            recognizer.after_begun(begun, &mut |left, begun| ways.push((self.way(left), begun)));
            self.follow(lexing, trie, &mut path, &mut ways, (leftover, cost), work)?;
        }
        // A shortest path costs at least this. So what lies on the way lacks at least that less what it took
        // to come there.
        let total = match found {
            Some(total) => total,
            None if path.beyond > bound + 1 && !self.is_cut(&path.tasks, work)? => path.beyond,
            None => bound + 1,
        };
        for (begun, leftover, cost) in closed {
            let lower = if total == NEVER { NEVER } else { total - cost };
            let known = self.begun.entry((begun, leftover)).or_insert(0);
            *known = (*known).max(lower);
        }
        Ok((total, found.is_some()))
    }

    /// Goes on from a place along some ways.
    fn follow(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        path: &mut Path,
        ways: &mut Vec<(Way, Begun)>,
        (from, cost): (Leftover, u32),
        work: &mut Work,
    ) -> Result<(), Stopped> {
        ways.sort_unstable();
        ways.dedup();
        work.spend(4 * ways.len() + 1)?;
        for &(way, begun) in &*ways {
            let rest = match way {
                Way::Rest(rest) => rest,
                Way::Automaton(automaton, state) => {
                    let weight = match state {
                        Some(state) => self.weight(lexing, trie, (automaton, state), work)?,
                        None => 0,
                    };
                    let near = state.filter(|_| weight == 0);
                    if let Some(state) = near {
                        let task = self.automaton_task((automaton, state), from);
                        self.ask(lexing, trie, (task, cost), (path, begun), work)?;
                    }
                    let weight = if near.is_some() { NEAR + 1 } else { weight };
                    for (to, more) in self.behind_automaton(trie, (from, weight)) {
                        let lower = self.begun.get(&(begun, to)).copied().unwrap_or(0);
                        path.push((begun, to), cost.saturating_add(more), lower);
                    }
                    continue;
                }
            };
            let task = self.task(Err(rest), from);
            self.ask(lexing, trie, (task, cost), (path, begun), work)?;
        }
        Ok(())
    }

    /// Goes on from where a task leads that begins at a cost.
    fn ask(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        (task, cost): (Task, u32),
        (path, begun): (&mut Path, Begun),
        work: &mut Work,
    ) -> Result<(), Stopped> {
        self.raise(task, path.bound - cost, work)?;
        self.settle(lexing, trie, work)?;
        path.tasks.push(task);
        for &(to, more) in &self.tasks[task.index()].ends {
            work.spend(1)?;
            let lower = self.begun.get(&(begun, to)).copied().unwrap_or(0);
            path.push((begun, to), cost + more, lower);
        }
        Ok(())
    }
}

/// A place of a path: something in progress is complete at a leftover. `None` is the goal.
type Place = Option<(Begun, Leftover)>;

/// A shortest path in the making.
struct Path {
    bound: u32,
    /// The least total that was left aside because it is greater.
    beyond: u32,
    /// `(least total, the deeper the smaller, place)`.
    queue: BinaryHeap<Reverse<(u32, u32, Place)>>,
    costs: FxHashMap<(Begun, Leftover), u32>,
    /// What was asked for.
    tasks: Vec<Task>,
}

impl Path {
    fn goal(&mut self, total: u32) {
        if total > self.bound {
            self.beyond = self.beyond.min(total);
        } else {
            self.queue.push(Reverse((total, 0, None)));
        }
    }

    fn push(&mut self, place: (Begun, Leftover), cost: u32, lower: u32) {
        let total = cost.saturating_add(lower);
        if total > self.bound {
            self.beyond = self.beyond.min(total);
            return;
        }
        let least = self.costs.entry(place).or_insert(NEVER);
        if cost < *least {
            *least = cost;
            self.queue.push(Reverse((total, NEVER - cost, Some(place))));
        }
    }
}
