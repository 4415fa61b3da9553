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
//!   terminal walks what is left, and then whole tokens.
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
//!   begin before it. So no states are gone through, and the order of keys does not matter.
//! - Where a terminal's automaton would have to be followed far, its piece is taken to end anywhere after one
//!   more token (`Single::Given`).
//!
//! Everything is made as it is asked for and counted in steps,
//! [`Limits::cost_steps`](crate::Limits::cost_steps); when a limit is hit the tables are dropped, so that
//! none is left half made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{CompactSet, index_type};
use anygram_grammar::ir::{LexerMode, NonterminalId, Symbol, TerminalId};
use anygram_lexer::LexerError;
use anygram_lexer::dfa::{DEAD, Dfa, START};
use anygram_lexer::transducer::Lexing;
use anygram_lexer::union::Union;
use anygram_recognizer::{Begun, Left, Recognizer, StateId};
use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

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

impl Leftover {
    /// Nothing: a token boundary.
    pub const NONE: Self = Self(0);
}

impl Rest {
    const EMPTY: Self = Self(0);
}

/// A cost that no number of tokens pays.
pub const NEVER: u32 = u32::MAX;

/// Leftovers with the least cost of each; the cheaper come first.
type Reached = Arc<[(Leftover, u32)]>;

/// What walking tokens with a terminal comes to.
#[derive(Default, Clone, Debug)]
struct Walked {
    /// Whether the terminal can end with a token.
    at_boundary: bool,
    /// The subtrees that may follow where it ends inside a token.
    tops: Vec<u32>,
    /// The states of its automaton in which it goes on beyond the end of a token.
    beyond: Vec<u32>,
    /// Whether a limit kept some of that from being known.
    is_cut: bool,
}

/// One terminal's automaton, as the union of all sees it.
#[derive(Debug)]
struct Automaton {
    goes_on: Vec<bool>,
    /// The state for each state of the union automaton in which the terminal is alive.
    of_union: FxHashMap<u32, u32>,
}

/// The automaton of one terminal, to be walked.
enum Single<'a> {
    /// Made from its pattern.
    Own(&'a Dfa, Arc<Automaton>),
    /// In a union that grows its states are those of the union in which it is alive. They may be endless, so
    /// walks give up: after [`STEPS_OF_GIVEN`], and behind a state that only stands for others
    /// ([`Union::alike`]: the next token does the same, but where it leads to is another state).
    Given { union: &'a Union, terminal: usize, height: usize },
}

/// Nodes of the trie that are looked at for all ends of a given terminal from one state.
const STEPS_OF_GIVEN: usize = 600_000;

/// States of a given terminal behind one token from which it is walked on; more are taken to be endless.
const STATES_OF_GIVEN: usize = 64;

/// Rounds in which it is found what automata that give rules weigh: one more than they are nested.
const ROUNDS: usize = 12;

/// Costs of a part of what an automaton gives that are told apart.
const DEAREST: u32 = 2_000;

/// What a byte does to the piece of one terminal.
struct Next {
    state: u32,
    accepts: bool,
    goes_on: bool,
}

impl Single<'_> {
    /// The state before the first byte; `None` if a limit is hit.
    fn start(&self) -> Option<u32> {
        match self {
            Self::Own(..) => Some(START),
            Self::Given { union, terminal, .. } => {
                let wanted = CompactSet::from_sorted(terminal + 1, vec![*terminal as u32]);
                union.start_of(&wanted).ok()
            }
        }
    }

    /// How many states there are, if that is known.
    fn n_states(&self) -> usize {
        match self {
            Self::Own(dfa, _) => dfa.n_states(),
            Self::Given { .. } => 0,
        }
    }

    /// Where a byte leads; fails if a limit is hit.
    #[inline]
    fn step(&self, state: u32, byte: u8) -> Result<Option<Next>, LexerError> {
        match self {
            Self::Own(dfa, automaton) => {
                let state = dfa.step(state, byte);
                let [accepts, goes_on] = [&dfa.accepting, &automaton.goes_on].map(|all| all[state as usize]);
                Ok((state != DEAD).then_some(Next { state, accepts, goes_on }))
            }
            Self::Given { union, terminal, .. } => {
                let state = union.try_step(state, union.class(byte))?;
                let accepts = union.accepts(state).contains(*terminal);
                let goes_on = union.live(state).contains(*terminal);
                Ok((accepts || goes_on).then_some(Next { state, accepts, goes_on }))
            }
        }
    }

    /// A state that does the same within one token.
    fn alike(&self, state: u32) -> u32 {
        match self {
            Self::Own(..) => state,
            Self::Given { union, height, .. } => union.alike(state, *height).unwrap_or(state),
        }
    }

    /// Nodes of the trie that may be looked at.
    fn most_steps(&self) -> usize {
        match self {
            Self::Own(..) => usize::MAX,
            Self::Given { .. } => STEPS_OF_GIVEN,
        }
    }
}

/// A set of states: a row for those that there are, if that is known.
struct States {
    row: Vec<bool>,
    others: FxHashSet<u32>,
}

impl States {
    fn new(n_states: usize) -> Self {
        Self { row: vec![false; n_states], others: FxHashSet::default() }
    }

    /// Adds a state and says whether it is new.
    #[inline]
    fn insert(&mut self, state: u32) -> bool {
        match self.row.get_mut(state as usize) {
            Some(is_in) => !std::mem::replace(is_in, true),
            None => self.others.insert(state),
        }
    }

    fn sorted(&self) -> Vec<u32> {
        let of_row = (0..).zip(&self.row).filter_map(|(state, &is_in)| is_in.then_some(state));
        let mut all: Vec<u32> = of_row.chain(self.others.iter().copied()).collect();
        all.sort_unstable();
        all
    }
}

/// What is to be read along a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Way {
    /// These symbols.
    Rest(Rest),
    /// What an automaton gives from a state on, if that is known.
    Automaton(usize, Option<u32>),
}

/// A task in the making.
#[derive(Debug, Default)]
struct Progress {
    /// Somebody asks for its ends up to this cost.
    level: u32,
    /// What costs more: `(cost, what is left to read, where)`.
    aside: BinaryHeap<Reverse<(u32, Rest, Leftover)>>,
    /// The tasks that it consists of, with the cost before each.
    parts: Vec<(Task, u32)>,
    /// Where it leads, by increasing cost.
    ends: Vec<(Leftover, u32)>,
    /// Who waits for that: what is to be read after it, and the cost before it.
    waiting: Vec<(Task, Rest, u32)>,
}

/// The tables; see the module.
#[derive(Debug)]
pub struct Costs {
    /// Whether pieces owe that they have no longer match.
    owes: bool,
    /// Of each node of the trie the first with the same byte and subtree.
    same: Vec<u32>,
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
    rests: Vec<(Symbol, Rest)>,
    rest_ids: FxHashMap<(Symbol, Rest), Rest>,
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
    state_weights: FxHashMap<(usize, u32), u32>,
    part_weights: FxHashMap<Rest, u32>,
}

/// Tables beyond this many entries are dropped before the next question.
const ENTRIES: usize = 8_000_000;

/// Subtrees of all leftovers together, and walks of them, beyond which all is made anew.
const TOPS: usize = 20_000_000;

impl Costs {
    /// Empty tables for a language and the trie of a vocabulary. Cost: nodes of the trie.
    pub fn new(lexing: &Lexing, trie: &TokenTrie) -> Self {
        let cfg = &lexing.cfg;
        let mut this = Self {
            owes: lexing.mode() != LexerMode::Scannerless,
            same: same_subtrees(trie),
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
            rests: vec![(Symbol::Nonterminal(cfg.start), Rest::EMPTY)],
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

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let tops = self.leftovers.iter().map(|tops| size_of_val(&**tops) + 32).sum::<usize>();
        let walks =
            self.walks.values().map(|walk| 4 * (walk.tops.len() + walk.beyond.len()) + 80).sum::<usize>();
        let tasks =
            self.tasks.iter().map(|task| 8 * task.ends.len() + 12 * task.waiting.len() + 48).sum::<usize>();
        tops + walks
            + tasks
            + 4 * self.same.len()
            + 24 * (self.settled.len() + self.boundaries.len() + self.agenda.len() + self.task_ids.len())
            + 32 * (self.states.len() + self.begun.len() + self.reads.len() + self.reads_after_skips.len())
    }

    /// The subtrees of the trie that a leftover consists of, each with the byte that leads to it.
    pub fn tops(&self, leftover: Leftover) -> &[u32] {
        &self.leftovers[leftover.index()]
    }

    /// The leftover of some subtrees, given by their top nodes; [`Leftover::NONE`] if there are none.
    pub fn leftover(&mut self, tops: impl IntoIterator<Item = NodeId>) -> Leftover {
        let tops = tops.into_iter().map(|top| self.same[top.index()]).collect();
        self.intern(tops)
    }

    fn intern(&mut self, mut tops: Vec<u32>) -> Leftover {
        tops.sort_unstable();
        tops.dedup();
        if tops.is_empty() {
            return Leftover::NONE;
        }
        if let Some(&id) = self.leftover_ids.get(&*tops) {
            return id;
        }
        let (id, tops) = (Leftover::new(self.leftovers.len()), Arc::<[u32]>::from(tops));
        self.n_tops += tops.len();
        self.leftovers.push(tops.clone());
        self.leftover_ids.insert(tops, id);
        id
    }

    /// Whether all texts of a subtree are tokens.
    fn is_covered(&mut self, trie: &TokenTrie, top: u32) -> bool {
        if let Some(&known) = self.covered.get(&top) {
            return known;
        }
        let mut pairs = vec![(NodeId(top), trie.child(TokenTrie::ROOT, trie.byte(NodeId(top))))];
        let mut covered = true;
        while let Some((node, whole)) = pairs.pop() {
            let Some(whole) =
                whole.filter(|&whole| trie.tokens_at(node).is_empty() || !trie.tokens_at(whole).is_empty())
            else {
                covered = false;
                break;
            };
            pairs.extend(trie.children(node).map(|child| (child, trie.child(whole, trie.byte(child)))));
        }
        self.covered.insert(top, covered);
        covered
    }

    /// The part of a leftover whose texts are not all tokens.
    fn uncovered(&mut self, trie: &TokenTrie, leftover: Leftover) -> Option<Leftover> {
        if let Some(&known) = self.uncovered.get(&leftover) {
            return known;
        }
        let mut tops = self.leftovers[leftover.index()].to_vec();
        tops.retain(|&top| !self.is_covered(trie, top));
        let left = (!tops.is_empty()).then(|| self.intern(tops));
        self.uncovered.insert(leftover, left);
        left
    }

    fn automaton(&mut self, lexing: &Lexing, terminal: TerminalId, dfa: &Dfa) -> Arc<Automaton> {
        if let Some(known) = &self.automata[terminal.index()] {
            return known.clone();
        }
        let goes_on = (0..dfa.n_states() as u32).map(|state| dfa.can_go_on(state)).collect();
        let union = &lexing.lexicon.union;
        let mut of_union = FxHashMap::from_iter([(START, START)]);
        let mut agenda = vec![(START, START)];
        while let Some((in_union, state)) = agenda.pop() {
            for &byte in union.samples() {
                let (next, own) = (union.step(in_union, union.class(byte)), dfa.step(state, byte));
                if own != DEAD && of_union.insert(next, own).is_none() {
                    agenda.push((next, own));
                }
            }
        }
        let automaton = Arc::new(Automaton { goes_on, of_union });
        self.automata[terminal.index()] = Some(automaton.clone());
        automaton
    }

    /// The automaton of a terminal; `None` if it is a token that the grammar names.
    fn single<'a>(&mut self, lexing: &'a Lexing, terminal: TerminalId) -> Option<Single<'a>> {
        let dfa = lexing.dfa(terminal);
        if let Some(dfa) = dfa
            && !lexing.is_growing()
        {
            return Some(Single::Own(dfa, self.automaton(lexing, terminal, dfa)));
        }
        let (union, height, terminal) = (&lexing.lexicon.union, self.height, terminal.index());
        let has_bytes = dfa.is_some() || lexing.is_given(TerminalId::new(terminal));
        has_bytes.then_some(Single::Given { union, terminal, height })
    }

    /// Walks subtrees with a terminal that is in `state` before their first byte.
    fn walk(
        &self,
        trie: &TokenTrie,
        single: &Single<'_>,
        state: u32,
        tops: impl Iterator<Item = NodeId>,
        work: &mut Work,
    ) -> Result<Walked, Stopped> {
        let mut walked = Walked::default();
        let mut beyond = States::new(single.n_states());
        let mut left = single.most_steps();
        for top in tops {
            let mut n_steps = 0;
            let walk = trie.descend(trie.subtree(top), state, |&before, at| {
                n_steps += 1;
                if n_steps > left {
                    return Err(None::<LexerError>);
                }
                let Some(next) = single.step(before, trie.byte(at)).map_err(Some)? else { return Ok(None) };
                let is_token = !trie.tokens_at(at).is_empty();
                if next.accepts {
                    walked.at_boundary |= is_token;
                    let may_follow = |child: &NodeId| {
                        let longer = || single.step(next.state, trie.byte(*child));
                        !self.owes || !longer().is_ok_and(|next| next.is_some_and(|next| next.accepts))
                    };
                    walked
                        .tops
                        .extend(trie.children(at).filter(may_follow).map(|child| self.same[child.index()]));
                }
                if !next.goes_on {
                    return Ok(None);
                }
                if is_token {
                    beyond.insert(next.state);
                }
                Ok(Some(next.state))
            });
            work.spend(n_steps)?;
            left = left.saturating_sub(n_steps);
            if walk.is_err() {
                walked.is_cut = true;
                break;
            }
        }
        walked.beyond = beyond.sorted();
        work.spend(walked.tops.len() + single.n_states() + walked.beyond.len())?;
        walked.tops.sort_unstable();
        walked.tops.dedup();
        Ok(walked)
    }

    /// Everything that can be left of tokens, and what of it is not covered.
    fn anything(&mut self, trie: &TokenTrie) -> [Leftover; 2] {
        if let Some(known) = self.anything {
            return known;
        }
        let all = self.intern(self.same.iter().copied().skip(1).collect());
        let uncovered = self.uncovered(trie, all).unwrap_or(Leftover::NONE);
        *self.anything.insert([all, uncovered])
    }

    /// What automata weigh at least: from below, in rounds, each of which knows of what is nested one level
    /// deeper.
    fn weigh_automata(&mut self, lexing: &Lexing, trie: &TokenTrie, work: &mut Work) -> Result<(), Stopped> {
        let automata = &lexing.cfg.automata;
        if self.weights.len() == automata.len() {
            return Ok(());
        }
        let mut weights = vec![0; automata.len()];
        for _ in 0..ROUNDS {
            self.clear();
            self.weights.clone_from(&weights);
            self.state_weights.clear();
            self.part_weights.clear();
            for (at, automaton) in automata.iter().enumerate() {
                let start = automaton.automaton.start();
                let weight = self.weight(lexing, trie, (at, start), work);
                weights[at] = weight.inspect_err(|_| self.weights.clear())?;
            }
            if weights == self.weights {
                break;
            }
        }
        Ok(())
    }

    /// What is left of an automaton in a state weighs at least this much, wherever it begins within a token.
    fn weight(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        (automaton, state): (usize, u32),
        work: &mut Work,
    ) -> Result<u32, Stopped> {
        if let Some(&known) = self.state_weights.get(&(automaton, state)) {
            return Ok(known);
        }
        let of = &lexing.cfg.automata[automaton];
        let mut stopped = None;
        let weight = of.automaton.least(state, &mut |part| {
            let symbols: Vec<Symbol> =
                part.iter().filter_map(|&number| of.symbols.get(number as usize).copied()).collect();
            let weight = if stopped.is_none() { self.part(lexing, trie, &symbols, work) } else { Ok(0) };
            weight.unwrap_or_else(|error| {
                stopped = Some(error);
                0
            })
        });
        if let Some(stopped) = stopped {
            return Err(stopped);
        }
        self.state_weights.insert((automaton, state), weight);
        Ok(weight)
    }

    /// The least cost of reading some symbols, whatever is left of tokens before them.
    fn part(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        symbols: &[Symbol],
        work: &mut Work,
    ) -> Result<u32, Stopped> {
        let rest = self.rest(symbols);
        if let Some(&known) = self.part_weights.get(&rest) {
            return Ok(known);
        }
        // A token that the grammar names begins at a token boundary.
        let tasks = [Leftover::NONE, self.anything(trie)[0]].map(|from| self.task(Err(rest), from));
        let mut weight = DEAREST;
        for level in 0..DEAREST {
            for task in tasks {
                self.raise(task, level, work)?;
            }
            self.settle(lexing, trie, work)?;
            let first = |task: Task| self.tasks[task.index()].ends.first().map(|&(_, least)| least);
            if let Some(least) = tasks.into_iter().filter_map(first).min() {
                weight = least;
                break;
            }
        }
        self.part_weights.insert(rest, weight);
        Ok(weight)
    }

    /// Every end that a piece can have, whatever its terminal, at a cost.
    fn add_anything(&mut self, trie: &TokenTrie, reached: &mut Merger, cost: u32) {
        let [all, uncovered] = self.anything(trie);
        reached.add_all(if reached.boundary.is_none() { all } else { uncovered }, cost);
    }

    /// From a token boundary, with a terminal in progress: where the ends of it lead. Cost 0 is paid by
    /// nobody here: the piece is not yet at its end.
    pub fn finish(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        state: u32,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        if let Some(known) = self.finishes.get(&(terminal, state)) {
            return Ok(known.clone());
        }
        let first = Walked { beyond: vec![state], ..Walked::default() };
        let reached = self.go_on(lexing, trie, terminal, first, work)?;
        self.finishes.insert((terminal, state), reached.clone());
        Ok(reached)
    }

    /// The same without a look at what the terminal may go on with: it ends with or within the next token,
    /// anywhere.
    pub fn finish_anywhere(&mut self, trie: &TokenTrie) -> Reached {
        let mut reached = Merger::default();
        self.add_anything(trie, &mut reached, 1);
        reached.finish()
    }

    /// The state of a terminal's automaton for a state of the union automaton; `None` if the terminal is not
    /// alive there.
    pub fn state_in(&mut self, lexing: &Lexing, terminal: TerminalId, union: u32) -> Option<u32> {
        if lexing.is_growing() {
            return lexing.lexicon.union.live(union).contains(terminal.index()).then_some(union);
        }
        let dfa = lexing.dfa(terminal)?;
        self.automaton(lexing, terminal, dfa).of_union.get(&union).copied()
    }

    /// Where a terminal leads from a leftover, without ignored pieces before it.
    pub fn read(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        from: Leftover,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        let Some(single) = self.single(lexing, terminal) else {
            // A token that the grammar names stands between tokens.
            return Ok(if from == Leftover::NONE { Arc::from([(Leftover::NONE, 1)]) } else { Arc::from([]) });
        };
        let Some(start) = single.start() else {
            let mut reached = Merger::default();
            self.add_anything(trie, &mut reached, u32::from(from == Leftover::NONE));
            return Ok(reached.finish());
        };
        if from == Leftover::NONE {
            return self.finish(lexing, trie, terminal, start, work);
        }
        if let Some(known) = self.reads.get(&(terminal, from)) {
            return Ok(known.clone());
        }
        let tops = self.leftovers[from.index()].clone();
        let walked = self.walk(trie, &single, start, tops.iter().map(|&top| NodeId(top)), work)?;
        let reached = self.go_on(lexing, trie, terminal, walked, work)?;
        self.reads.insert((terminal, from), reached.clone());
        Ok(reached)
    }

    /// From what a terminal comes to within a token to all that it comes to over further ones.
    fn go_on(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        first: Walked,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        let Some(single) = self.single(lexing, terminal) else { return Ok(Arc::from([])) };
        let mut seen = States::new(single.n_states());
        let mut reached = Merger::default();
        let (mut level, mut cost) = (first, 0);
        let (before, mut stands_for_others) = (work.used(), false);
        // What comes behind the least cost is worth little, and can be without end.
        let is_given = lexing.is_given(terminal);
        loop {
            if level.is_cut {
                self.add_anything(trie, &mut reached, cost);
                return Ok(reached.finish());
            }
            reached.add(self, trie, level.at_boundary, std::mem::take(&mut level.tops), cost);
            cost += 1;
            let mut states = std::mem::take(&mut level.beyond);
            let is_enough = stands_for_others || is_given && reached.boundary.is_some();
            if is_enough && !states.is_empty() {
                self.add_anything(trie, &mut reached, cost);
                return Ok(reached.finish());
            }
            states.retain(|&state| seen.insert(state));
            if is_given && states.len() > STATES_OF_GIVEN {
                self.add_anything(trie, &mut reached, cost);
                return Ok(reached.finish());
            }
            if states.is_empty() {
                return Ok(reached.finish());
            }
            level = Walked::default();
            for &state in &states {
                if level.is_cut || (work.used() - before) as usize > single.most_steps() {
                    level.is_cut = true;
                    break;
                }
                let alike = single.alike(state);
                stands_for_others |= alike != state;
                let walked = match self.walks.get(&(terminal, alike)) {
                    Some(known) => known.clone(),
                    None => {
                        let tops = trie.children(TokenTrie::ROOT);
                        let walked = Arc::new(self.walk(trie, &single, alike, tops, work)?);
                        self.walks.insert((terminal, alike), walked.clone());
                        walked
                    }
                };
                work.spend(1 + walked.tops.len())?;
                level.is_cut |= walked.is_cut;
                level.at_boundary |= walked.at_boundary;
                level.tops.extend_from_slice(&walked.tops);
                level.beyond.extend_from_slice(&walked.beyond);
            }
        }
    }

    /// Where any number of ignored pieces lead, none included.
    fn skip(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        from: Leftover,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        if let Some(known) = self.skips.get(&from) {
            return Ok(known.clone());
        }
        let mut costs = FxHashMap::from_iter([(from, 0)]);
        let mut queue = BinaryHeap::from([Reverse((0, from))]);
        let mut reached: Vec<(Leftover, u32)> = Vec::new();
        let mut at_boundary = None;
        while let Some(Reverse((cost, mut leftover))) = queue.pop() {
            if costs.get(&leftover).is_some_and(|&least| least < cost) {
                continue;
            }
            if leftover == Leftover::NONE {
                at_boundary = Some(cost);
            } else if at_boundary.is_some_and(|least| least < cost) {
                let Some(left) = self.uncovered(trie, leftover) else { continue };
                if left != leftover && costs.insert(left, cost).is_some_and(|least| least <= cost) {
                    continue;
                }
                leftover = left;
            }
            reached.push((leftover, cost));
            for ignored in lexing.lexicon.ignored.iter().map(TerminalId::new) {
                for &(to, more) in &*self.read(lexing, trie, ignored, leftover, work)? {
                    work.spend(1)?;
                    let least = costs.entry(to).or_insert(NEVER);
                    if cost + more < *least {
                        *least = cost + more;
                        queue.push(Reverse((cost + more, to)));
                    }
                }
            }
        }
        let reached: Reached = reached.into();
        self.skips.insert(from, reached.clone());
        Ok(reached)
    }

    /// Where a terminal leads from a leftover, after ignored pieces if need be.
    fn read_after_skips(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        from: Leftover,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        if let Some(known) = self.reads_after_skips.get(&(terminal, from)) {
            return Ok(known.clone());
        }
        let mut found: Vec<(u32, Leftover)> = Vec::new();
        for &(leftover, cost) in &*self.skip(lexing, trie, from, work)? {
            let read = self.read(lexing, trie, terminal, leftover, work)?;
            found.extend(read.iter().map(|&(to, more)| (cost + more, to)));
        }
        found.sort_unstable();
        let mut merger = Merger::default();
        for level in found.chunk_by(|a, b| a.0 == b.0) {
            let at_boundary = level.iter().any(|&(_, to)| to == Leftover::NONE);
            let tops: Vec<u32> =
                level.iter().flat_map(|&(_, to)| self.leftovers[to.index()].iter().copied()).collect();
            work.spend(1 + tops.len())?;
            merger.add(self, trie, at_boundary, tops, level[0].0);
        }
        let reached = merger.finish();
        self.reads_after_skips.insert((terminal, from), reached.clone());
        Ok(reached)
    }

    /// The least cost of ending the text at a leftover, with ignored pieces if need be.
    fn end(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        from: Leftover,
        work: &mut Work,
    ) -> Result<u32, Stopped> {
        let skipped = self.skip(lexing, trie, from, work)?;
        Ok(skipped.iter().find(|&&(to, _)| to == Leftover::NONE).map_or(NEVER, |&(_, cost)| cost))
    }

    fn rest(&mut self, symbols: &[Symbol]) -> Rest {
        symbols.iter().rev().fold(Rest::EMPTY, |next, &symbol| {
            let fresh = Rest::new(self.rests.len());
            let rests = &mut self.rests;
            *self.rest_ids.entry((symbol, next)).or_insert_with(|| {
                rests.push((symbol, next));
                fresh
            })
        })
    }

    fn task(&mut self, what: Result<u32, Rest>, from: Leftover) -> Task {
        let n_nonterminals = self.rules.len() as u32;
        let key = (what.unwrap_or_else(|rest| n_nonterminals + rest.0), from);
        if let Some(&known) = self.task_ids.get(&key) {
            return known;
        }
        let task = Task::new(self.tasks.len());
        self.task_ids.insert(key, task);
        self.tasks.push(Progress::default());
        match what {
            Ok(nonterminal) => {
                let rules = &self.rules[nonterminal as usize];
                self.agenda.extend(rules.iter().map(|&rest| Reverse((0, task, rest, from))));
            }
            Err(rest) => self.agenda.push(Reverse((0, task, rest, from))),
        }
        task
    }

    /// Asks for the ends of a task up to a cost.
    fn raise(&mut self, task: Task, level: u32, work: &mut Work) -> Result<(), Stopped> {
        let mut asked = vec![(task, level)];
        while let Some((task, level)) = asked.pop() {
            let progress = &mut self.tasks[task.index()];
            work.spend(1)?;
            if level <= progress.level {
                continue;
            }
            progress.level = level;
            while let Some(&Reverse((cost, rest, leftover))) = progress.aside.peek()
                && cost <= level
            {
                progress.aside.pop();
                self.agenda.push(Reverse((cost, task, rest, leftover)));
            }
            work.spend(progress.parts.len())?;
            asked.extend(
                progress
                    .parts
                    .iter()
                    .filter(|part| part.1 < level)
                    .map(|&(part, before)| (part, level - before)),
            );
        }
        Ok(())
    }

    /// Whether some of these tasks have ends at a greater cost than was asked for, as far as is known.
    fn is_cut(&self, tasks: &[Task], work: &mut Work) -> Result<bool, Stopped> {
        let mut seen: FxHashSet<Task> = tasks.iter().copied().collect();
        let mut agenda = tasks.to_vec();
        while let Some(task) = agenda.pop() {
            let progress = &self.tasks[task.index()];
            if !progress.aside.is_empty() {
                return Ok(true);
            }
            work.spend(1 + progress.parts.len())?;
            agenda.extend(progress.parts.iter().map(|part| part.0).filter(|&part| seen.insert(part)));
        }
        Ok(false)
    }

    fn reach(&mut self, task: Task, rest: Rest, to: Leftover, cost: u32) {
        let progress = &mut self.tasks[task.index()];
        if cost <= progress.level {
            self.agenda.push(Reverse((cost, task, rest, to)));
        } else {
            progress.aside.push(Reverse((cost, rest, to)));
        }
    }

    /// Settles all that was asked for, the least cost first: then the ends of tasks are known up to their
    /// levels.
    fn settle(&mut self, lexing: &Lexing, trie: &TokenTrie, work: &mut Work) -> Result<(), Stopped> {
        while let Some(Reverse((cost, task, rest, mut leftover))) = self.agenda.pop() {
            work.spend(8)?;
            if leftover != Leftover::NONE
                && self.boundaries.get(&(task, rest)).is_some_and(|&boundary| boundary < cost)
            {
                match self.uncovered(trie, leftover) {
                    Some(left) => leftover = left,
                    None => continue,
                }
            }
            if !self.settled.insert((task, rest, leftover)) {
                continue;
            }
            if leftover == Leftover::NONE {
                self.boundaries.insert((task, rest), cost);
            }
            if rest == Rest::EMPTY {
                let progress = &mut self.tasks[task.index()];
                progress.ends.push((leftover, cost));
                work.spend(progress.waiting.len())?;
                for at in 0..self.tasks[task.index()].waiting.len() {
                    let (whole, next, before) = self.tasks[task.index()].waiting[at];
                    self.reach(whole, next, leftover, before + cost);
                }
                continue;
            }
            let (symbol, next) = self.rests[rest.index()];
            match symbol {
                Symbol::Terminal(terminal) => {
                    let read = self.read_after_skips(lexing, trie, terminal, leftover, work)?;
                    work.spend(read.len())?;
                    read.iter().for_each(|&(to, more)| self.reach(task, next, to, cost + more));
                }
                Symbol::Nonterminal(nonterminal) if self.weight_of(nonterminal).is_some() => {
                    let weight = self.weight_of(nonterminal).unwrap_or(0);
                    for (to, more) in self.behind_automaton(trie, (leftover, weight)) {
                        self.reach(task, next, to, cost.saturating_add(more));
                    }
                }
                Symbol::Nonterminal(nonterminal) => {
                    let part = self.task(Ok(nonterminal.0), leftover);
                    let level = self.tasks[task.index()].level;
                    self.tasks[task.index()].parts.push((part, cost));
                    self.raise(part, level - cost, work)?;
                    self.tasks[part.index()].waiting.push((task, next, cost));
                    work.spend(self.tasks[part.index()].ends.len())?;
                    for at in 0..self.tasks[part.index()].ends.len() {
                        let (to, more) = self.tasks[part.index()].ends[at];
                        self.reach(task, next, to, cost + more);
                    }
                }
            }
        }
        Ok(())
    }

    /// What an automaton that gives a nonterminal weighs.
    fn weight_of(&self, nonterminal: NonterminalId) -> Option<u32> {
        let automaton = (*self.automaton_of.get(nonterminal.index())?)?;
        Some(self.weights.get(automaton).copied().unwrap_or(0))
    }

    /// Where something of such a weight leads that an automaton gives: it may end anywhere.
    fn behind_automaton(
        &mut self,
        trie: &TokenTrie,
        (from, weight): (Leftover, u32),
    ) -> [(Leftover, u32); 2] {
        let weight = weight.max(u32::from(from == Leftover::NONE));
        [Leftover::NONE, self.anything(trie)[0]].map(|to| (to, weight))
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
                    for (to, more) in self.behind_automaton(trie, (from, weight)) {
                        let lower = self.begun.get(&(begun, to)).copied().unwrap_or(0);
                        path.push((begun, to), cost.saturating_add(more), lower);
                    }
                    continue;
                }
            };
            let task = self.task(Err(rest), from);
            self.raise(task, path.bound - cost, work)?;
            self.settle(lexing, trie, work)?;
            path.tasks.push(task);
            for &(to, more) in &self.tasks[task.index()].ends {
                work.spend(1)?;
                let lower = self.begun.get(&(begun, to)).copied().unwrap_or(0);
                path.push((begun, to), cost + more, lower);
            }
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

/// Collects where something leads, by increasing cost, without what is of no use.
#[derive(Default)]
struct Merger {
    boundary: Option<u32>,
    reached: Vec<(Leftover, u32)>,
    seen: FxHashSet<u32>,
}

impl Merger {
    fn add(&mut self, costs: &mut Costs, trie: &TokenTrie, at_boundary: bool, mut tops: Vec<u32>, cost: u32) {
        if self.boundary.is_some_and(|boundary| boundary < cost) {
            tops.retain(|&top| !costs.is_covered(trie, top));
        }
        tops.retain(|top| !self.seen.contains(top));
        if at_boundary && self.boundary.is_none() {
            self.boundary = Some(cost);
            self.reached.push((Leftover::NONE, cost));
        }
        if !tops.is_empty() {
            self.seen.extend(tops.iter().copied());
            let leftover = costs.intern(tops);
            self.reached.push((leftover, cost));
        }
    }

    /// A token boundary, and a leftover that may have been reached before in part.
    fn add_all(&mut self, leftover: Leftover, cost: u32) {
        if self.boundary.is_none() {
            self.boundary = Some(cost);
            self.reached.push((Leftover::NONE, cost));
        }
        self.reached.extend((leftover != Leftover::NONE).then_some((leftover, cost)));
    }

    fn finish(self) -> Reached {
        self.reached.into()
    }
}

/// Of each node of a trie the first found with the same byte, the same subtree, and tokens at the same places
/// of it.
fn same_subtrees(trie: &TokenTrie) -> Vec<u32> {
    let mut same = vec![0; trie.n_nodes()];
    let mut leaves = [0u32; 256];
    let mut inner: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
    let mut key = Vec::new();
    for at in (1..trie.n_nodes() as u32).rev() {
        let node = NodeId(at);
        key.clear();
        key.push(u32::from(trie.byte(node)) << 1 | u32::from(!trie.tokens_at(node).is_empty()));
        key.extend(trie.children(node).map(|child| same[child.index()]));
        same[node.index()] = if key.len() == 1 {
            let leaf = &mut leaves[usize::from(trie.byte(node))];
            *leaf = if *leaf == 0 { at } else { *leaf };
            *leaf
        } else if let Some(&known) = inner.get(&*key) {
            known
        } else {
            inner.insert(key.clone().into(), at);
            at
        };
    }
    same
}
