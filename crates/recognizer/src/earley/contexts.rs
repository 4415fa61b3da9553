//! Stacks as sets of contexts: parsing many texts at once that meet and part again.
//!
//! A [`Context`](ContextId) is what an Earley state is, but each of its items began in a *set* of contexts.
//! Where ways meet, the sets of their items are joined, and nothing below them is looked at: a
//! graph-structured stack (Tomita 1985) whose nodes are told apart by what they hold, not by where they stand
//! in a text. So a lattice of texts is parsed in a time that is polynomial in its nodes, and what was found
//! out serves all places that look alike. (A state whose items began in one state each has to be made anew
//! all the way down where stacks differ: on lattices of JSON that took 50,000,000 items for what takes some
//! thousands here.)
//!
//! It is exact: a context at a node of a lattice holds an item that began in a context `c` if and only if
//! some way leads to the node from a node with the context `c` along which the item's symbols are read.

mod back;

use std::collections::BTreeMap;
use std::sync::Arc;

use anygram_bits::{BitSet, index_type};
use anygram_grammar::ir::{NonterminalId, Symbol, TerminalId};
use rustc_hash::{FxHashMap, FxHashSet};

pub use self::back::{Learned, StepBack, Unwinding};
use super::{Earley, RestId};
use crate::RecognizerError;

index_type!(
    /// What was read on all ways to some place.
    ContextId
);

index_type!(
    /// A set of contexts, sorted.
    SetId
);

/// A rest, and the contexts in which its rule began.
type Item = (RestId, SetId);

/// How a place of a lattice is reached: from pieces that began in some contexts, by a terminal, or by a piece
/// that is ignored.
pub type Way = (SetId, Option<TerminalId>);

/// Where some ways meet.
#[derive(Debug)]
pub struct Meeting {
    /// All ways there, sorted.
    ways: Box<[Way]>,
    /// All items, those that are complete too.
    items: Box<[Item]>,
    /// What is known there.
    pub context: ContextId,
}

struct Context {
    /// Items that are neither predicted nor complete, sorted.
    kernel: Box<[Item]>,
    prediction: u32,
    viable: u32,
    is_sentence: bool,
}

/// Items that are closed: what follows from those that are complete is among them.
#[derive(Debug)]
struct Closed {
    items: Box<[Item]>,
    is_sentence: bool,
    /// The same by what stands for an item where ways meet, sorted.
    classes: Box<[(Class, SetId)]>,
}

/// The contexts of one engine.
pub struct Contexts {
    /// Where states of automata are joined: the kinds of rests, and what was joined.
    joins: Option<Joins>,
    contexts: Vec<Context>,
    ids: FxHashMap<(Box<[Item]>, bool), ContextId>,
    sets: Vec<Arc<[ContextId]>>,
    set_ids: FxHashMap<Arc<[ContextId]>, SetId>,
    unions: FxHashMap<Box<[SetId]>, SetId>,
    /// One bit for each context, by which sets are joined; none is set in between.
    marks: Vec<u64>,
    /// What follows from completing a nonterminal that began in a context, or in one of several.
    completed: FxHashMap<(ContextId, NonterminalId), Arc<Closed>>,
    completed_in: FxHashMap<(SetId, NonterminalId), Arc<Closed>>,
    /// Where nonterminals that are predicted in contexts begin, and contexts in which it comes to the same if
    /// one is completed.
    begins: FxHashMap<(ContextId, NonterminalId), ContextId>,
    alike: FxHashMap<(NonterminalId, Box<[Item]>, bool), ContextId>,
    /// Contexts of which a piece in progress sees the same: by what it may become, a number for each set, and
    /// what each of that leads to.
    seen_alike: FxHashMap<(ContextId, u32), ContextId>,
    first_seen: FxHashMap<(u32, Seen), ContextId>,
    sets_seen: FxHashMap<(SetId, u32), SetId>,
    /// The items of contexts that wait for a terminal, stepped over it; those that a piece leaves that is
    /// ignored.
    read: FxHashMap<Way, Arc<[Item]>>,
    meetings: FxHashMap<Box<[Way]>, Option<Arc<Meeting>>>,
    /// The items of contexts that wait for a symbol.
    waiting: FxHashMap<(ContextId, Symbol), Arc<[Waiting]>>,
    /// What several contexts want.
    viable: FxHashMap<SetId, (Arc<BitSet>, bool)>,
    /// How deep the search for these is nested right now.
    depth: usize,
    /// Items that are kept for those that wait.
    n_waiting: usize,
    /// Items and members of sets that were made, and those that were looked at.
    n_items: usize,
    effort: usize,
}

/// An item that waits for a symbol.
#[derive(Clone, Copy)]
struct Waiting {
    /// The item before the symbol; `None` if it is predicted.
    before: Option<RestId>,
    /// Its automaton's number of the symbol.
    number: Option<u32>,
    /// Behind the symbol.
    after: RestId,
    origins: SetId,
}

/// Rules within rules, all begun at one place, beyond which it is not asked where it comes to the same.
const MAX_DEPTH: usize = 100;

/// See [`Contexts::class`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Rest(RestId),
    /// Of states of an automaton.
    Kind(u32, u32),
}

/// States of automata that were joined.
#[derive(Default)]
struct Joins {
    classes: FxHashMap<RestId, Class>,
    joined: FxHashMap<Box<[RestId]>, RestId>,
}

impl Joins {
    fn join(&mut self, engine: &mut Earley, rests: Vec<RestId>) -> Result<RestId, RecognizerError> {
        let rests: Box<[RestId]> = rests.into();
        if let Some(&known) = self.joined.get(&rests) {
            return Ok(known);
        }
        let joined = engine.joined(&rests)?;
        self.joined.insert(rests, joined);
        Ok(joined)
    }
}

/// What terminals, or an ignored piece, lead to.
type Seen = Box<[(Option<TerminalId>, Arc<[Item]>)]>;

/// Items while they are collected: of each rest the sets of contexts in which it began.
type Collected = BTreeMap<RestId, Vec<SetId>>;

impl Contexts {
    /// The context of the empty text alone. With `loosely`, states of automata are
    /// [joined](anygram_grammar::automata::RuleAutomaton::joined) where ways meet, so that more is read than
    /// the grammar has.
    pub fn new(engine: &mut Earley, loosely: bool) -> Self {
        let mut this = Self {
            joins: loosely.then(Joins::default),
            contexts: Vec::new(),
            ids: FxHashMap::default(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            unions: FxHashMap::default(),
            marks: Vec::new(),
            completed: FxHashMap::default(),
            completed_in: FxHashMap::default(),
            begins: FxHashMap::default(),
            alike: FxHashMap::default(),
            seen_alike: FxHashMap::default(),
            first_seen: FxHashMap::default(),
            sets_seen: FxHashMap::default(),
            read: FxHashMap::default(),
            meetings: FxHashMap::default(),
            waiting: FxHashMap::default(),
            viable: FxHashMap::default(),
            depth: 0,
            n_waiting: 0,
            n_items: 0,
            effort: 0,
        };
        let start = engine.states[0];
        let origins = this.set(vec![Self::START]);
        let kernel = engine.items.get(start.kernel).iter().map(|&(rest, _)| (rest, origins)).collect();
        let super::State { prediction, viable, is_sentence, .. } = start;
        this.contexts.push(Context { kernel, prediction, viable, is_sentence });
        this
    }

    /// The context of the empty text.
    pub const START: ContextId = ContextId(0);

    /// A set of contexts.
    pub fn set(&mut self, mut members: Vec<ContextId>) -> SetId {
        members.sort_unstable();
        members.dedup();
        self.of_sorted(&members)
    }

    fn of_sorted(&mut self, members: &[ContextId]) -> SetId {
        if let Some(&known) = self.set_ids.get(members) {
            return known;
        }
        let members: Arc<[ContextId]> = members.into();
        self.n_items += members.len();
        let id = SetId::new(self.sets.len());
        self.sets.push(members.clone());
        self.set_ids.insert(members, id);
        id
    }

    /// The contexts of several sets together. Cost, once: their members, and a bit for each context between
    /// the first and the last.
    pub fn union(&mut self, sets: impl IntoIterator<Item = SetId>) -> SetId {
        let mut sets: Vec<SetId> = sets.into_iter().collect();
        sets.sort_unstable();
        sets.dedup();
        if let [only] = *sets {
            return only;
        }
        let sets: Box<[SetId]> = sets.into();
        if let Some(&known) = self.unions.get(&sets) {
            return known;
        }
        let joined = self.joined_members(&sets);
        let union = self.of_sorted(&joined);
        self.unions.insert(sets, union);
        union
    }

    /// The members of several sets, sorted.
    fn joined_members(&mut self, sets: &[SetId]) -> Vec<ContextId> {
        self.marks.resize(self.contexts.len().div_ceil(64), 0);
        let (mut from, mut to, mut n_members) = (usize::MAX, 0, 0);
        for set in sets {
            let members = &self.sets[set.index()];
            self.effort += members.len();
            for member in &**members {
                let (word, bit) = (member.index() / 64, 1 << (member.index() % 64));
                n_members += usize::from(self.marks[word] & bit == 0);
                self.marks[word] |= bit;
                (from, to) = (from.min(word), to.max(word + 1));
            }
        }
        let mut joined = Vec::with_capacity(n_members);
        for word in from..to {
            let mut left = std::mem::take(&mut self.marks[word]);
            while left != 0 {
                joined.push(ContextId::new(word * 64 + left.trailing_zeros() as usize));
                left &= left - 1;
            }
        }
        joined
    }

    /// The members of a set, sorted.
    pub fn members(&self, set: SetId) -> &[ContextId] {
        &self.sets[set.index()]
    }

    /// The terminals that can come next in one of some contexts, and whether the text is a sentence in one.
    pub fn wanted(&mut self, engine: &Earley, set: SetId) -> (Arc<BitSet>, bool) {
        if let Some(known) = self.viable.get(&set) {
            return known.clone();
        }
        let mut wanted = BitSet::new(engine.cfg.n_terminals);
        let mut is_sentence = false;
        for &member in &*self.sets[set.index()] {
            let context = &self.contexts[member.index()];
            wanted.union_with(&engine.viable[context.viable as usize]);
            is_sentence |= context.is_sentence;
        }
        let found = (Arc::new(wanted), is_sentence);
        self.viable.insert(set, found.clone());
        found
    }

    /// The first context that was found of which a piece sees the same that can only become one of some
    /// terminals, or be ignored: `number` is one for each such set.
    pub fn seen_by(
        &mut self,
        engine: &mut Earley,
        context: ContextId,
        (number, terminals, skips): (u32, &BitSet, bool),
    ) -> Result<ContextId, RecognizerError> {
        if let Some(&known) = self.seen_alike.get(&(context, number)) {
            return Ok(known);
        }
        let here = self.set(vec![context]);
        let mut viable = engine.viable[self.contexts[context.index()].viable as usize].clone();
        viable.intersect_with(terminals);
        let mut seen = Vec::new();
        for way in skips.then_some(None).into_iter().chain(viable.iter().map(|t| Some(TerminalId::new(t)))) {
            seen.push((way, self.after(engine, (here, way))?));
        }
        let first = *self.first_seen.entry((number, seen.into())).or_insert(context);
        self.seen_alike.insert((context, number), first);
        Ok(first)
    }

    /// The same of all members of a set.
    pub fn all_seen_by(
        &mut self,
        engine: &mut Earley,
        set: SetId,
        piece: (u32, &BitSet, bool),
    ) -> Result<SetId, RecognizerError> {
        if let Some(&known) = self.sets_seen.get(&(set, piece.0)) {
            return Ok(known);
        }
        let members = self.sets[set.index()].clone();
        let members = members.iter().map(|&member| self.seen_by(engine, member, piece));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let seen = self.set(members);
        self.sets_seen.insert((set, piece.0), seen);
        Ok(seen)
    }

    /// Whether what was read on some way to a context is a sentence.
    pub fn is_sentence(&self, context: ContextId) -> bool {
        self.contexts[context.index()].is_sentence
    }

    /// A measure of what was done so far: items that were made and looked at.
    pub fn effort(&self) -> usize {
        self.n_items + self.effort
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let known = self.contexts.len() + self.completed.len() + self.completed_in.len() + self.read.len();
        let known = known + self.meetings.len() + self.sets.len() + self.waiting.len();
        self.n_items * size_of::<Item>() + self.n_waiting * size_of::<Waiting>() + known * 96
    }

    /// Whether one of some contexts reads a terminal (or has anything that an ignored piece leaves).
    pub fn reads(&mut self, engine: &Earley, (set, scan): Way) -> bool {
        let left = |&member: &ContextId| {
            let Context { kernel, is_sentence, .. } = &self.contexts[member.index()];
            *is_sentence || !kernel.is_empty()
        };
        match scan {
            Some(terminal) => self.wanted(engine, set).0.contains(terminal.index()),
            None => self.sets[set.index()].iter().any(left),
        }
    }

    /// What is known where some ways meet; `None` if none of them can be gone.
    pub fn meet(
        &mut self,
        engine: &mut Earley,
        ways: &[Way],
    ) -> Result<Option<Arc<Meeting>>, RecognizerError> {
        let mut ways: Vec<Way> = ways.to_vec();
        ways.sort_unstable();
        ways.dedup();
        let ways: Box<[Way]> = ways.into();
        if let Some(known) = self.meetings.get(&ways) {
            return Ok(known.clone());
        }
        let mut seeds = Vec::new();
        for &way in &ways {
            seeds.extend_from_slice(&self.after(engine, way)?);
        }
        let meeting = match seeds.is_empty() {
            true => None,
            false => {
                for &(rest, origins) in &seeds {
                    if let Some(lhs) = completes(engine, rest) {
                        self.complete_in(engine, origins, lhs)?;
                    }
                }
                let Closed { items, is_sentence, .. } = self.close(engine, &seeds)?;
                let context = self.intern(engine, &items, is_sentence)?;
                Some(Arc::new(Meeting { ways: ways.clone(), items, context }))
            }
        };
        self.meetings.insert(ways, meeting.clone());
        Ok(meeting)
    }

    /// The items behind a way.
    fn after(&mut self, engine: &mut Earley, way: Way) -> Result<Arc<[Item]>, RecognizerError> {
        if let Some(known) = self.read.get(&way) {
            return Ok(known.clone());
        }
        let mut collected = Collected::new();
        for &member in &*self.sets[way.0.index()].clone() {
            match way.1 {
                Some(terminal) => {
                    for waiting in &*self.waiting(engine, member, Symbol::Terminal(terminal))? {
                        self.collect(&mut collected, (waiting.after, waiting.origins));
                    }
                }
                None => {
                    for item in self.left(engine, member) {
                        self.collect(&mut collected, item);
                    }
                }
            }
        }
        let items: Arc<[Item]> = self.sorted(engine, collected)?.into();
        self.read.insert(way, items.clone());
        Ok(items)
    }

    /// What an ignored piece leaves of a context: all that is in progress there, and that it is a sentence.
    fn left(&mut self, engine: &Earley, context: ContextId) -> Vec<Item> {
        let Context { kernel, is_sentence, .. } = &self.contexts[context.index()];
        let (mut left, is_sentence) = (kernel.to_vec(), *is_sentence);
        if is_sentence {
            left.push((engine.rests[engine.root.index()].next, self.set(vec![Self::START])));
        }
        left
    }

    fn collect(&mut self, collected: &mut Collected, (rest, origins): Item) {
        self.effort += 1;
        let known = collected.entry(rest).or_default();
        if known.last() != Some(&origins) {
            known.push(origins);
        }
    }

    /// What was collected, as items.
    fn sorted(&mut self, engine: &mut Earley, collected: Collected) -> Result<Box<[Item]>, RecognizerError> {
        let mut items = Vec::with_capacity(collected.len());
        let mut kinds: BTreeMap<Class, (Vec<RestId>, Vec<SetId>)> = BTreeMap::new();
        for (rest, origins) in collected {
            match self.class(engine, rest) {
                class @ Class::Kind(..) => {
                    let (rests, all) = kinds.entry(class).or_default();
                    rests.push(rest);
                    all.extend(origins);
                }
                Class::Rest(_) => items.push((rest, self.union(origins))),
            }
        }
        for (rests, origins) in kinds.into_values() {
            let rest = match &mut self.joins {
                Some(joins) => joins.join(engine, rests)?,
                None => continue,
            };
            items.push((rest, self.union(origins)));
        }
        items.sort_unstable();
        self.n_items += items.len();
        if self.n_items > engine.limits.items {
            return Err(RecognizerError::TooManyItems { limit: engine.limits.items });
        }
        Ok(items.into())
    }

    /// What a rest is the same as, wherever ways meet.
    fn class(&mut self, engine: &Earley, rest: RestId) -> Class {
        let Some(joins) = self.joins.as_mut().filter(|_| rest.index() >= engine.grown.from) else {
            return Class::Rest(rest);
        };
        let fresh = || match engine.kind(rest) {
            Some((automaton, kind)) => Class::Kind(automaton, kind),
            None => Class::Rest(rest),
        };
        *joins.classes.entry(rest).or_insert_with(fresh)
    }

    /// The items of a context that wait for a symbol.
    fn waiting(
        &mut self,
        engine: &mut Earley,
        context: ContextId,
        symbol: Symbol,
    ) -> Result<Arc<[Waiting]>, RecognizerError> {
        if let Some(known) = self.waiting.get(&(context, symbol)) {
            self.effort += 1 + known.len();
            return Ok(known.clone());
        }
        let Context { kernel, prediction, .. } = &self.contexts[context.index()];
        let grown_from = engine.grown.from;
        let from = kernel
            .partition_point(|&(rest, _)| engine.first(rest) < Some(symbol) && rest.index() < grown_from);
        let listed = kernel[from..].iter().take_while(|&&(rest, _)| engine.first(rest) == Some(symbol));
        let mut waiting: Vec<Waiting> = listed
            .map(|&(rest, origins)| {
                let after = engine.rests[rest.index()].next;
                Waiting { before: Some(rest), number: None, after, origins }
            })
            .collect();
        let prediction = *prediction;
        let mut growing: Vec<(Option<RestId>, RestId, u32, SetId)> = Vec::new();
        if !engine.grown.is_empty() {
            let from = kernel.partition_point(|&(rest, _)| rest.index() < grown_from);
            for &(rest, origins) in &kernel[from..] {
                growing
                    .extend(engine.numbers(rest, symbol).map(|number| (Some(rest), rest, number, origins)));
            }
        }
        let steps = &engine.predictions[prediction as usize].steps;
        let from = steps.partition_point(|step| step.0 < symbol);
        let predicted = steps[from..].iter().take_while(|step| step.0 == symbol);
        let predicted: Vec<RestId> = predicted.map(|step| step.1).collect();
        for after in predicted {
            let origins = self.begin(engine, context, after)?;
            waiting.push(Waiting { before: None, number: None, after, origins });
        }
        if !engine.grown.is_empty() {
            let starts: Vec<(RestId, u32)> = engine.starts(prediction, symbol).collect();
            for (rest, number) in starts {
                let origins = self.begin(engine, context, rest)?;
                growing.push((None, rest, number, origins));
            }
            for (before, rest, number, origins) in growing {
                let after = engine.grow(rest, number)?;
                waiting.push(Waiting { before, number: Some(number), after, origins });
            }
        }
        self.effort += 1 + waiting.len();
        self.n_waiting += waiting.len();
        let waiting: Arc<[Waiting]> = waiting.into();
        // While it is found out where rules begin, some are not yet known to begin elsewhere.
        if self.depth == 0 {
            self.waiting.insert((context, symbol), waiting.clone());
        }
        Ok(waiting)
    }

    /// Where a rule begins that is predicted in a context: there, or in the first context that was found in
    /// which completing its left side comes to the same. (So what stands around it is left out of what is in
    /// it: contexts with and without it have the same stacks upon them.)
    fn begin(
        &mut self,
        engine: &mut Earley,
        context: ContextId,
        rest: RestId,
    ) -> Result<SetId, RecognizerError> {
        let lhs = engine.rests[rest.index()].lhs;
        let origin = match self.begins.get(&(context, lhs)) {
            Some(&known) => known,
            None if self.depth == MAX_DEPTH => context,
            None => {
                // While that is found out, for rules that begin with what they are rules of: here.
                self.begins.insert((context, lhs), context);
                self.depth += 1;
                let closed = self.complete(engine, context, lhs);
                self.depth -= 1;
                let closed = closed?;
                let is_open = |item: &&Item| is_open(engine, item.0);
                let open: Box<[Item]> = closed.items.iter().filter(is_open).copied().collect();
                let key = (lhs, open, closed.is_sentence);
                let origin = *self.alike.entry(key).or_insert(context);
                self.begins.insert((context, lhs), origin);
                origin
            }
        };
        Ok(self.set(vec![origin]))
    }

    /// What follows from completing a nonterminal that began in some contexts; computed once.
    fn complete_in(
        &mut self,
        engine: &mut Earley,
        set: SetId,
        lhs: NonterminalId,
    ) -> Result<Arc<Closed>, RecognizerError> {
        if let Some(known) = self.completed_in.get(&(set, lhs)) {
            return Ok(known.clone());
        }
        let mut collected = Collected::new();
        let mut is_sentence = false;
        for &member in &*self.sets[set.index()].clone() {
            let closed = self.complete(engine, member, lhs)?;
            is_sentence |= closed.is_sentence;
            for &item in &*closed.items {
                self.collect(&mut collected, item);
            }
        }
        let closed = Arc::new(self.closed(engine, collected, is_sentence)?);
        self.completed_in.insert((set, lhs), closed.clone());
        Ok(closed)
    }

    fn complete(
        &mut self,
        engine: &mut Earley,
        context: ContextId,
        lhs: NonterminalId,
    ) -> Result<Arc<Closed>, RecognizerError> {
        if let Some(known) = self.completed.get(&(context, lhs)) {
            return Ok(known.clone());
        }
        let waiting = self.waiting(engine, context, Symbol::Nonterminal(lhs))?;
        let seeds: Vec<Item> = waiting.iter().map(|waiting| (waiting.after, waiting.origins)).collect();
        let closed = Arc::new(self.close(engine, &seeds)?);
        self.completed.insert((context, lhs), closed.clone());
        Ok(closed)
    }

    /// All items that follow from some by completion, those included.
    fn close(&mut self, engine: &mut Earley, seeds: &[Item]) -> Result<Closed, RecognizerError> {
        let mut collected = Collected::new();
        let mut is_sentence = false;
        let mut agenda: Vec<Item> = seeds.to_vec();
        let mut seen: FxHashSet<Item> = FxHashSet::default();
        while let Some((rest, origins)) = agenda.pop() {
            self.effort += 1;
            if !seen.insert((rest, origins)) {
                continue;
            }
            collected.entry(rest).or_default().push(origins);
            match engine.first(rest) {
                Some(Symbol::Nonterminal(n)) if engine.nullable.contains(n.index()) => {
                    agenda.push((engine.rests[rest.index()].next, origins));
                }
                Some(_) => {}
                None if rest.index() >= engine.grown.from => {
                    agenda.extend(engine.grown.end(rest).map(|end| (end, origins)));
                }
                None => {
                    let lhs = engine.rests[rest.index()].lhs;
                    if lhs.index() == engine.cfg.n_nonterminals {
                        is_sentence = true;
                    } else if let Some(known) = self.completed_in.get(&(origins, lhs)).cloned() {
                        // These are closed already.
                        is_sentence |= known.is_sentence;
                        for &item in &*known.items {
                            self.collect(&mut collected, item);
                        }
                    } else {
                        for &member in &*self.sets[origins.index()].clone() {
                            match self.completed.get(&(member, lhs)).cloned() {
                                Some(known) => {
                                    is_sentence |= known.is_sentence;
                                    for &item in &*known.items {
                                        self.collect(&mut collected, item);
                                    }
                                }
                                None => {
                                    let waiting = self.waiting(engine, member, Symbol::Nonterminal(lhs))?;
                                    agenda.extend(
                                        waiting.iter().map(|waiting| (waiting.after, waiting.origins)),
                                    );
                                }
                            }
                        }
                    }
                }
            }
        }
        self.closed(engine, collected, is_sentence)
    }

    fn closed(
        &mut self,
        engine: &mut Earley,
        collected: Collected,
        is_sentence: bool,
    ) -> Result<Closed, RecognizerError> {
        let items = self.sorted(engine, collected)?;
        let mut classes: Box<[(Class, SetId)]> =
            items.iter().map(|&(rest, origins)| (self.class(engine, rest), origins)).collect();
        classes.sort_unstable();
        Ok(Closed { items, is_sentence, classes })
    }

    fn intern(
        &mut self,
        engine: &mut Earley,
        items: &[Item],
        is_sentence: bool,
    ) -> Result<ContextId, RecognizerError> {
        let kernel: Box<[Item]> = items.iter().filter(|item| is_open(engine, item.0)).copied().collect();
        if let Some(&known) = self.ids.get(&(kernel.clone(), is_sentence)) {
            return Ok(known);
        }
        let (prediction, viable) = engine.predicted(kernel.iter().map(|&(rest, _)| rest));
        self.n_items += kernel.len();
        let id = ContextId::new(self.contexts.len());
        self.contexts.push(Context { kernel: kernel.clone(), prediction, viable, is_sentence });
        self.ids.insert((kernel, is_sentence), id);
        Ok(id)
    }
}

/// Whether something of a rest is left.
fn is_open(engine: &Earley, rest: RestId) -> bool {
    engine.first(rest).is_some() || rest.index() >= engine.grown.from
}

/// The left side that a rest completes, if it can be complete.
fn completes(engine: &Earley, rest: RestId) -> Option<NonterminalId> {
    let is_end = engine.first(rest).is_none() && engine.grown.completes(rest);
    let lhs = engine.rests[rest.index()].lhs;
    (is_end && lhs.index() < engine.cfg.n_nonterminals).then_some(lhs)
}
