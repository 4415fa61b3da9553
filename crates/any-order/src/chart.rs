//! The chart: a canvas and a lexer as one finite automaton over terminals, and a grammar parsed over it.
//!
//! A place of a canvas (before a slot, within a fixed token, at a node of the trie of tokens within a hole)
//! together with a lexeme of which everything is wanted is a state of a finite automaton over bytes. Its cuts
//! make of it one over terminals, between boundaries. Whether a sentence of the grammar is among the
//! sequences of terminals that it reads is decided by Earley's algorithm over a lattice (1970; for automata
//! Lang 1974), whose positions are the boundaries: polynomial, gaps and cycles included. In `scannerless` and
//! `longest` what can be lexed does not depend on the parser, so yes and no are exact. For `contextual` the
//! chart of the scannerless lexing is asked, whose no holds and whose yes is a proposal, and then that of the
//! longest match of all terminals, whose yes holds.
//!
//! Each item remembers a cause of its being there, the cheapest where that is asked for, which leads to a
//! completion. Cost: items are triples of a rest of a rule and two boundaries; their number grows with the
//! square of the boundaries that holes make, so this is the last resort for canvases of many holes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anygram_bits::work::Work;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{Symbol, TerminalId};
use anygram_left_to_right::Constraint;
use anygram_left_to_right::language::StepError;
use anygram_lexer::transducer::{CutId, LexemeId, Lexing, Transducer, WantedId};
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::canvas::End;
use crate::plan::{self, Place, Plan};
use crate::search::Found;

/// A place in a canvas: a slot, and within it a number of bytes or a node of the trie.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Position {
    slot: u32,
    inner: u32,
}

type Boundary = (Position, LexemeId);

/// A token that ended, with its slot.
type Ended = Option<(u32, TokenId)>;

/// What a boundary leads to.
#[derive(Default)]
struct Reach {
    entries: Vec<Entry>,
    edges: Vec<Edge>,
    /// An entry at which the text may end.
    accepts: Option<u32>,
}

/// What one byte, or a token that the grammar names, makes of a place and a lexeme; found once, for all
/// boundaries from which one comes there.
struct Steps {
    /// The next place, if the slot can be left as it is.
    leave: Option<u32>,
    stays: Box<[(u32, Ended)]>,
    /// The ends of the piece, and what begins then.
    cuts: Box<[(CutId, u32, Ended)]>,
    specials: Box<[(TerminalId, u32, Ended)]>,
    is_accepting: bool,
    in_gap: bool,
}

/// A place and a lexeme on the way from a boundary.
struct Entry {
    at: u32,
    parent: u32,
    ended: Ended,
    /// The bytes in gaps on the way.
    n_in_gaps: u32,
}

/// A terminal that was read from a boundary to another.
#[derive(Clone, Copy)]
struct Edge {
    terminal: TerminalId,
    to: u32,
    /// The entry before its last byte, and the token that the byte ended.
    from: u32,
    ended: Ended,
    /// The bytes in gaps.
    n_in_gaps: u32,
}

/// What is still to come of a rule, shared by rules that end alike.
#[derive(Clone, Copy)]
pub(crate) struct Rest {
    pub lhs: u32,
    pub first: Option<Symbol>,
    pub next: u32,
}

/// The rules of a grammar, and one more that derives the start symbol.
pub(crate) struct Rules {
    pub rests: Vec<Rest>,
    /// Of each nonterminal the rests of its rules.
    pub begins: Vec<Vec<u32>>,
    pub root: u32,
}

#[derive(Clone, Copy)]
struct Item {
    rest: u32,
    origin: u32,
    at: u32,
    cause: Cause,
    cost: Cost,
    is_done: bool,
}

/// The fewest bytes in gaps: of all that was read up to an item, and of what was read since it began.
#[derive(Clone, Copy, Default)]
struct Cost {
    before: u32,
    own: u32,
}

impl Cost {
    fn and(self, more: u32) -> Self {
        Self { before: self.before.saturating_add(more), own: self.own.saturating_add(more) }
    }
}

#[derive(Clone, Copy)]
enum Cause {
    Predicted,
    /// By an item, along an edge of its boundary.
    Scanned(u32, u32),
    /// By an item that waited, and one that was complete.
    Completed(u32, u32),
}

/// What is kept of a grammar from one chart to the next.
pub(crate) struct ChartTables {
    lexing: Lexing,
    free: Transducer,
    all: WantedId,
    rules: Rules,
    /// For each class of bytes one that is a token of its own; `None` if some class has none.
    single: Option<Vec<(u8, TokenId)>>,
}

impl ChartTables {
    /// Tables for this lexing, `scannerless` or `longest`.
    pub fn new(constraint: &Constraint, lexing: Lexing) -> Self {
        let mut free = Transducer::default();
        let all = free.wanted(&lexing, &lexing.lexicon.used, true);
        let trie = constraint.vocabulary().trie();
        let token_of = |byte: u8| {
            trie.child(TokenTrie::ROOT, byte).and_then(|node| trie.tokens_at(node).first().copied())
        };
        let union = &lexing.lexicon.union;
        let mut classes: Vec<Option<(u8, TokenId)>> = vec![None; union.n_classes()];
        for byte in 0..=u8::MAX {
            let class = &mut classes[union.class(byte)];
            *class = class.or(token_of(byte).map(|token| (byte, token)));
        }
        let used: FxHashSet<usize> = union.samples().iter().map(|&byte| union.class(byte)).collect();
        let single = classes
            .iter()
            .enumerate()
            .filter(|(class, _)| used.contains(class))
            .map(|(_, single)| *single)
            .collect();
        let rules = Rules::new(&lexing.cfg);
        Self { lexing, free, all, rules, single }
    }

    /// Whether so much is kept that it is better to begin afresh.
    pub fn is_full(&self) -> bool {
        self.free.n_lexemes() > self.lexing.limits().lexemes / 2
    }
}

impl Rules {
    pub fn new(cfg: &Cfg) -> Self {
        let mut rests: Vec<Rest> = Vec::new();
        let mut ids: FxHashMap<(u32, Option<(Symbol, u32)>), u32> = FxHashMap::default();
        let mut add = |lhs: u32, rhs: &[Symbol]| {
            let mut step = |begin: Option<(Symbol, u32)>| {
                *ids.entry((lhs, begin)).or_insert_with(|| {
                    let (first, next) = (begin.map(|(first, _)| first), begin.map_or(0, |(_, next)| next));
                    rests.push(Rest { lhs, first, next });
                    rests.len() as u32 - 1
                })
            };
            let end = step(None);
            rhs.iter().rev().fold(end, |rest, &symbol| step(Some((symbol, rest))))
        };
        let mut begins = vec![Vec::new(); cfg.n_nonterminals];
        for rule in &cfg.rules {
            begins[rule.lhs.index()].push(add(rule.lhs.0, &rule.rhs));
        }
        let root = add(cfg.n_nonterminals as u32, &[Symbol::Nonterminal(cfg.start)]);
        Self { rests, begins, root }
    }
}

/// A chart over one canvas.
pub(crate) struct Chart<'a> {
    tables: &'a mut ChartTables,
    constraint: &'a Constraint,
    work: &'a mut Work,
    places: Vec<Place>,
    /// What follows the canvas: any bytes.
    anything: bool,
    final_at: Vec<bool>,
    n_slots: usize,
    boundaries: Vec<Boundary>,
    boundary_ids: FxHashMap<Boundary, u32>,
    steps: Vec<Option<Steps>>,
    reaches: Vec<Option<Reach>>,
    /// Scratch: for which boundary each place and lexeme was last come to.
    seen: Vec<u32>,
    items: Vec<Item>,
    known: FxHashMap<(u32, u32, u32), u32>,
    /// Items to process with what decides which comes first: in the order of costs, or what came last.
    agenda: BinaryHeap<(Reverse<u32>, u32)>,
    by_cost: bool,
    /// Items that wait for a nonterminal at a boundary, and items that completed one begun there.
    waiting: FxHashMap<(u32, u32), Vec<u32>>,
    completed: FxHashMap<(u32, u32), Vec<u32>>,
}

impl<'a> Chart<'a> {
    pub fn new(
        tables: &'a mut ChartTables,
        constraint: &'a Constraint,
        plan: &Plan,
        work: &'a mut Work,
    ) -> Self {
        let n_slots = plan.places.len();
        let mut places = plan.places.clone();
        let mut final_at = plan.ends.clone();
        let mut anything = false;
        match plan.whole {
            None | Some(End::Sentence) => {}
            Some(End::Prefix { remaining: None }) => anything = true,
            Some(End::Prefix { remaining: Some(most) }) => places.extend((0..most).map(|_| Place::Optional)),
        }
        final_at.resize(places.len(), false);
        final_at.push(plan.whole.is_some());
        Self {
            tables,
            constraint,
            work,
            places,
            anything,
            final_at,
            n_slots,
            boundaries: Vec::new(),
            boundary_ids: FxHashMap::default(),
            steps: Vec::new(),
            reaches: Vec::new(),
            seen: Vec::new(),
            items: Vec::new(),
            known: FxHashMap::default(),
            agenda: BinaryHeap::new(),
            by_cost: false,
            waiting: FxHashMap::default(),
            completed: FxHashMap::default(),
        }
    }

    /// Finds a completion with the fewest bytes in its gaps (Knuth 1977; for prefixes Stolcke 1995). In depth
    /// one is found sooner.
    pub fn shortest(self) -> Self {
        Self { by_cost: true, ..self }
    }

    /// A completion; `None` if there is none.
    pub fn run(mut self) -> Result<Option<Found>, StepError> {
        let ChartTables { free, lexing, all, rules, .. } = &mut *self.tables;
        let Some(lexeme) = free.first(lexing, *all)? else { return Ok(None) };
        let root = rules.root;
        let start = self.boundary((Position { slot: 0, inner: 0 }, lexeme));
        self.add((root, start, start), Cause::Predicted, Cost::default());
        let mut best: Option<(u32, u32)> = None;
        while let Some((Reverse(cost), id)) = self.agenda.pop() {
            if best.is_some_and(|(least, _)| least <= cost) {
                break;
            }
            // One that was found again at less cost waits twice.
            if std::mem::replace(&mut self.items[id as usize].is_done, true) {
                continue;
            }
            self.work.spend(8)?;
            if let Some(n_more) = self.process(id)? {
                let whole = self.items[id as usize].cost.before.saturating_add(n_more);
                let goal = (if self.by_cost { whole } else { 0 }, id);
                best = Some(best.map_or(goal, |best| best.min(goal)));
            }
        }
        Ok(best.map(|(_, id)| self.found(id)))
    }

    fn add(&mut self, key: (u32, u32, u32), cause: Cause, cost: Cost) {
        let fresh = self.items.len() as u32;
        let id = *self.known.entry(key).or_insert(fresh);
        let priority = Reverse(if self.by_cost { cost.before } else { 0 });
        if id == fresh {
            let (rest, origin, at) = key;
            self.items.push(Item { rest, origin, at, cause, cost, is_done: false });
            self.agenda.push((priority, id));
            return;
        }
        let item = &mut self.items[id as usize];
        if self.by_cost && !item.is_done && cost.before < item.cost.before {
            (item.cause, item.cost) = (cause, cost);
            self.agenda.push((priority, id));
        }
    }

    /// Follows an item. If the text may end behind it, the bytes in gaps that come first.
    fn process(&mut self, id: u32) -> Result<Option<u32>, StepError> {
        let Item { rest, origin, at, cost, .. } = self.items[id as usize];
        let Rest { lhs, first, next } = self.tables.rules.rests[rest as usize];
        match first {
            None if lhs as usize == self.tables.rules.begins.len() => {
                self.reach(at)?;
                let reach = self.reaches[at as usize].as_ref();
                let end = reach.and_then(|reach| reach.entries.get(reach.accepts? as usize));
                return Ok(end.map(|entry| entry.n_in_gaps));
            }
            None => {
                let list = self.completed.entry((origin, lhs)).or_default();
                if list.iter().any(|&done| self.items[done as usize].at == at) {
                    return Ok(None);
                }
                list.push(id);
                let waiting = self.waiting.get(&(origin, lhs)).cloned().unwrap_or_default();
                self.work.spend(waiting.len())?;
                for waiter in waiting {
                    let Item { rest, origin, cost: before, .. } = self.items[waiter as usize];
                    let next = self.tables.rules.rests[rest as usize].next;
                    self.add((next, origin, at), Cause::Completed(waiter, id), before.and(cost.own));
                }
            }
            Some(Symbol::Nonterminal(n)) => {
                let list = self.waiting.entry((at, n.0)).or_default();
                list.push(id);
                if list.len() == 1 {
                    for rule in 0..self.tables.rules.begins[n.index()].len() {
                        let begin = self.tables.rules.begins[n.index()][rule];
                        self.add((begin, at, at), Cause::Predicted, Cost { before: cost.before, own: 0 });
                    }
                }
                let completed = self.completed.get(&(at, n.0)).cloned().unwrap_or_default();
                self.work.spend(completed.len())?;
                for done in completed {
                    let Item { at: to, cost: read, .. } = self.items[done as usize];
                    self.add((next, origin, to), Cause::Completed(id, done), cost.and(read.own));
                }
            }
            Some(Symbol::Terminal(terminal)) => {
                self.reach(at)?;
                let Some(reach) = self.reaches[at as usize].take() else { return Ok(None) };
                let from = reach.edges.partition_point(|edge| edge.terminal < terminal);
                for (edge, &Edge { to, n_in_gaps, .. }) in reach
                    .edges
                    .iter()
                    .enumerate()
                    .skip(from)
                    .take_while(|(_, edge)| edge.terminal == terminal)
                {
                    self.add((next, origin, to), Cause::Scanned(id, edge as u32), cost.and(n_in_gaps));
                }
                self.reaches[at as usize] = Some(reach);
            }
        }
        Ok(None)
    }

    fn boundary(&mut self, boundary: Boundary) -> u32 {
        let fresh = self.boundaries.len() as u32;
        *self.boundary_ids.entry(boundary).or_insert_with(|| {
            self.boundaries.push(boundary);
            self.steps.push(None);
            self.reaches.push(None);
            self.seen.push(u32::MAX);
            fresh
        })
    }

    /// Works out what a boundary leads to: terminals, after ignored pieces if need be.
    fn reach(&mut self, boundary: u32) -> Result<(), StepError> {
        if self.reaches[boundary as usize].is_some() {
            return Ok(());
        }
        let mut entries: Vec<Entry> = Vec::new();
        let mut accepts = None;
        let mut edges: FxHashMap<(TerminalId, u32), Edge> = FxHashMap::default();
        // What takes no more bytes in gaps comes first.
        let mut now = VecDeque::from([Entry { at: boundary, parent: u32::MAX, ended: None, n_in_gaps: 0 }]);
        let mut later = VecDeque::new();
        loop {
            let Some(entry) = now.pop_front() else {
                std::mem::swap(&mut now, &mut later);
                if now.is_empty() {
                    break;
                }
                continue;
            };
            let Entry { at, n_in_gaps: before, .. } = entry;
            if std::mem::replace(&mut self.seen[at as usize], boundary) == boundary {
                continue;
            }
            let from = entries.len() as u32;
            entries.push(entry);
            self.step(at)?;
            let Some(steps) = &self.steps[at as usize] else { break };
            self.work.spend(1 + (steps.stays.len() + steps.cuts.len()) / 4)?;
            if steps.is_accepting {
                accepts = accepts.or(Some(from));
            }
            if let Some(next) = steps.leave {
                now.push_back(Entry { at: next, parent: from, ended: None, n_in_gaps: before });
            }
            let n_in_gaps = before + u32::from(steps.in_gap);
            let queue = if steps.in_gap { &mut later } else { &mut now };
            let seen = &self.seen;
            let mut enter = |at: u32, ended: Ended| {
                if seen[at as usize] != boundary {
                    queue.push_back(Entry { at, parent: from, ended, n_in_gaps });
                }
            };
            for &(next, ended) in &steps.stays {
                enter(next, ended);
            }
            let mut scan = |terminal: TerminalId, to: u32, ended: Ended| {
                let edge = Edge { terminal, to, from, ended, n_in_gaps };
                let known = edges.entry((terminal, to)).or_insert(edge);
                if n_in_gaps < known.n_in_gaps {
                    *known = edge;
                }
            };
            for &(terminal, to, ended) in &steps.specials {
                scan(terminal, to, ended);
            }
            for &(cut, after, ended) in &steps.cuts {
                let cut = self.tables.free.cut(cut);
                if cut.skip {
                    enter(after, ended);
                }
                cut.scans.iter().for_each(|&terminal| scan(terminal, after, ended));
            }
        }
        let mut edges: Vec<Edge> = edges.into_values().collect();
        edges.sort_unstable_by_key(|edge| (edge.terminal, edge.to));
        self.reaches[boundary as usize] = Some(Reach { entries, edges, accepts });
        Ok(())
    }

    /// Works out what one byte makes of a place and a lexeme.
    fn step(&mut self, at: u32) -> Result<(), StepError> {
        if self.steps[at as usize].is_some() {
            return Ok(());
        }
        let (position, lexeme) = self.boundaries[at as usize];
        let is_boundary = self.tables.free.is_boundary(lexeme);
        let place = self.places.get(position.slot as usize).copied();
        let is_between = position.inner == 0;
        let is_accepting = is_between && is_boundary && self.final_at[position.slot as usize];
        let mut leave = None;
        if is_between && matches!(place, Some(Place::Gap | Place::Optional)) {
            leave = Some(self.boundary((Position { slot: position.slot + 1, inner: 0 }, lexeme)));
        }
        let at_end = is_between && position.slot as usize == self.places.len() && !self.anything;
        let mut specials = Vec::new();
        if is_between && is_boundary && !at_end {
            for (terminal, next, ended) in self.specials(position) {
                let ChartTables { free, lexing, all, .. } = &mut *self.tables;
                let Some(lexeme) = free.first(lexing, *all)? else { continue };
                specials.push((terminal, self.boundary((next, lexeme)), ended));
            }
        }
        let mut bytes = Vec::new();
        if !at_end {
            self.bytes(position, &mut bytes);
        }
        self.work.spend(1 + bytes.len())?;
        let (mut stays, mut cuts) = (Vec::new(), Vec::new());
        let mut known: FxHashSet<(Option<CutId>, u32)> = FxHashSet::default();
        for (byte, next, ended) in bytes {
            let ChartTables { free, lexing, all, .. } = &mut *self.tables;
            let step = free.step(lexing, lexeme, byte)?;
            let after = match step.cut {
                Some(cut) => {
                    let obligations = free.cut(cut).obligations;
                    free.boundary(lexing, *all, obligations)?.map(|after| (cut, after))
                }
                None => None,
            };
            if let Some(stay) = step.stay {
                let to = self.boundary((next, stay));
                if known.insert((None, to)) {
                    stays.push((to, ended));
                }
            }
            if let Some((cut, after)) = after {
                let to = self.boundary((next, after));
                if known.insert((Some(cut), to)) {
                    cuts.push((cut, to, ended));
                }
            }
        }
        let in_gap = place == Some(Place::Gap);
        let (stays, cuts, specials) = (stays.into(), cuts.into(), specials.into());
        self.steps[at as usize] = Some(Steps { leave, stays, cuts, specials, is_accepting, in_gap });
        Ok(())
    }

    /// The bytes that can come next, where they lead, and the tokens that they end.
    fn bytes(&self, position: Position, steps: &mut Vec<(u8, Position, Ended)>) {
        let Position { slot, inner } = position;
        let trie = self.constraint.vocabulary().trie();
        let after = Position { slot: slot + 1, inner: 0 };
        let here = Position { slot, inner: 0 };
        let mut token = |to: Position| {
            for child in trie.children(NodeId(inner)) {
                if let Some(&token) = trie.tokens_at(child).first() {
                    steps.push((trie.byte(child), to, Some((slot, token))));
                }
                if trie.end(child).0 > child.0 + 1 {
                    steps.push((trie.byte(child), Position { slot, inner: child.0 }, None));
                }
            }
        };
        match self.places.get(slot as usize) {
            Some(Place::Closed) => {}
            Some(Place::Token(id)) => {
                let Some(bytes) = self.constraint.vocabulary().bytes(*id) else { return };
                let is_last = inner as usize + 1 == bytes.len();
                let next = if is_last { after } else { Position { slot, inner: inner + 1 } };
                steps.push((bytes[inner as usize], next, is_last.then_some((slot, *id))));
            }
            Some(Place::Free | Place::Optional) => token(after),
            Some(Place::Gap) => match &self.tables.single {
                Some(single) => {
                    steps.extend(single.iter().map(|&(byte, token)| (byte, here, Some((slot, token)))))
                }
                None => token(here),
            },
            None if self.anything => {
                let samples = self.tables.lexing.lexicon.union.samples();
                steps.extend(samples.iter().map(|&byte| (byte, here, None)));
            }
            None => {}
        }
    }

    /// The terminals that are tokens and can stand at a slot.
    fn specials(&self, position: Position) -> Vec<(TerminalId, Position, Ended)> {
        let slot = position.slot;
        let after = Position { slot: slot + 1, inner: 0 };
        let all = plan::specials(self.constraint);
        let to = |next: Position| move |(token, terminal)| (terminal, next, Some((slot, token)));
        let mut found: Vec<_> = match self.places.get(slot as usize) {
            Some(Place::Token(id)) => all.filter(|(token, _)| token == id).map(to(after)).collect(),
            Some(Place::Free | Place::Optional) => all.map(to(after)).collect(),
            Some(Place::Gap) => all.map(to(position)).collect(),
            Some(Place::Closed) => Vec::new(),
            None => {
                self.tables.lexing.specials().iter().map(|&terminal| (terminal, position, None)).collect()
            }
        };
        found.retain(|(terminal, ..)| self.tables.lexing.lexicon.used.contains(terminal.index()));
        found
    }

    /// The completion that an item shows which is the start symbol, read to a place where the text may end.
    fn found(&self, id: u32) -> Found {
        // From the last to the first.
        let mut ended: Vec<(u32, TokenId)> = Vec::new();
        let mut end = self.n_slots;
        let trace = |boundary: u32, entry: u32, ended: &mut Vec<(u32, TokenId)>| {
            let Some(reach) = &self.reaches[boundary as usize] else { return };
            let mut at = entry;
            while let Some(entry) = reach.entries.get(at as usize) {
                ended.extend(entry.ended);
                at = entry.parent;
            }
        };
        let last = self.items[id as usize].at;
        if let Some(reach) = &self.reaches[last as usize]
            && let Some(accepts) = reach.accepts
        {
            let (position, _) = self.boundaries[reach.entries[accepts as usize].at as usize];
            end = (position.slot as usize).min(self.n_slots);
            trace(last, accepts, &mut ended);
        }
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.items[id as usize].cause {
                Cause::Predicted => {}
                Cause::Completed(waiter, done) => stack.extend([waiter, done]),
                Cause::Scanned(before, edge) => {
                    let boundary = self.items[before as usize].at;
                    if let Some(reach) = &self.reaches[boundary as usize] {
                        let Edge { from, ended: last, .. } = reach.edges[edge as usize];
                        ended.extend(last);
                        trace(boundary, from, &mut ended);
                    }
                    stack.push(before);
                }
            }
        }
        ended.reverse();
        let (mut tokens, mut closing) = (Vec::new(), Vec::new());
        for (slot, token) in ended {
            match slot as usize {
                slot if slot < self.n_slots => tokens.push((slot, token)),
                _ => closing.push(token),
            }
        }
        let n_in_gaps = tokens.iter().filter(|(slot, _)| self.places[*slot] == Place::Gap).count();
        Found { end, tokens, n_in_gaps, closing }
    }
}
