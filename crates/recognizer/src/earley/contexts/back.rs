//! Ways back through a lattice that was parsed: completions.
//!
//! Of a lattice it is known in which contexts each of its places is reached. A way back begins at the end and
//! chooses at each place one item that is complete there, until the beginning is reached; what stands to the
//! right of it is kept as a stack. Where contexts know all, no choice leads astray.

use std::cmp::Reverse;

use anygram_bits::{BitSet, Random};
use anygram_grammar::ir::{NonterminalId, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Class, Closed, ContextId, Contexts, Item, Meeting, SetId, Waiting, Way, is_open};
use crate::RecognizerError;
use crate::earley::{Earley, RestId};

/// A rest, and a context in which its rule began.
type Single = (RestId, ContextId);

/// A way back through a lattice, from its end to its beginning: one derivation of what is read along it.
///
/// At each place it says by which way the piece that ends there is read, and is told in which place that
/// piece began. Choices are drawn, so another seed may go another way.
#[derive(Clone)]
pub struct Unwinding {
    /// The item that is unwound.
    item: Single,
    /// What was read of its automaton, if it has one, from right to left.
    read: Vec<u32>,
    /// Whether the right-hand side is whole.
    is_whole: bool,
    /// The items that are come to when what is unwound is complete, and what was read behind them.
    waiting: Vec<Frame>,
}

#[derive(Clone)]
struct Frame {
    target: Single,
    read: Vec<u32>,
    is_whole: bool,
    /// Where it was chosen what completes.
    chosen: (usize, RestId),
}

/// An item at a place, the one that it leads to there, and whether by completing something.
struct Hop {
    item: Single,
    before: Option<(usize, bool)>,
    /// Whether it is of the right-hand side that is unwound.
    is_own: bool,
}

/// An item to which something has to lead, and what was read behind it, from right to left.
struct Goal<'a> {
    item: Single,
    class: Class,
    read: &'a [u32],
    is_whole: bool,
}

impl Goal<'_> {
    /// The terminals that lead to it, each from contexts in which a piece began.
    fn steps(
        &self,
        contexts: &mut Contexts,
        engine: &mut Earley,
        meeting: &Meeting,
        random: &mut Random,
    ) -> Result<Vec<(Way, ContextId, Waiting)>, RecognizerError> {
        let mut steps = Vec::new();
        for &way in &meeting.ways {
            let items = contexts.after(engine, way)?;
            if !contexts.has(engine, &items, self.item) {
                continue;
            }
            for member in drawn(&contexts.sets[way.0.index()], random) {
                if steps.len() >= ENOUGH {
                    break;
                }
                let all = match way.1 {
                    Some(terminal) => contexts.waiting(engine, member, Symbol::Terminal(terminal))?,
                    None => {
                        let as_is = |(rest, origins): Item| Waiting {
                            before: Some(rest),
                            number: None,
                            after: rest,
                            origins,
                        };
                        contexts.left(engine, member).into_iter().map(as_is).collect()
                    }
                };
                for &waiting in &*all {
                    if self.class == contexts.class(engine, waiting.after)
                        && contexts.holds(waiting.origins, self.item.1)
                        && is_read(engine, &waiting, self.read, self.is_whole)?
                    {
                        steps.push((way, member, waiting));
                    }
                }
            }
        }
        Ok(steps)
    }

    /// The items at the same place that lead to it, each with what it costs and whether by completing
    /// something.
    fn hops(
        &self,
        contexts: &mut Contexts,
        engine: &mut Earley,
        learned: &Learned,
        (place, meeting): (usize, &Meeting),
        random: &mut Random,
    ) -> Result<Vec<(usize, Single, bool)>, RecognizerError> {
        let (rest, origin) = self.item;
        let mut found = Vec::new();
        for &(other, origins) in &meeting.items {
            let is_left_out = match engine.first(other) {
                Some(Symbol::Nonterminal(n)) => {
                    engine.nullable.contains(n.index()) && engine.rests[other.index()].next == rest
                }
                Some(Symbol::Terminal(_)) => false,
                None => other != rest && engine.grown.end(other) == Some(rest),
            };
            if is_left_out && contexts.holds(origins, origin) {
                found.push((0, (other, origin), false));
            }
            let lhs = engine.rests[other.index()].lhs;
            if is_open(engine, other) || lhs.index() == engine.cfg.n_nonterminals {
                continue;
            }
            if let Some(all) = contexts.completed_in.get(&(origins, lhs))
                && !contexts.closes(all, self.class, origin)
            {
                continue;
            }
            let n_found = found.len();
            for member in drawn(&contexts.sets[origins.index()], random) {
                if found.len() >= n_found + ENOUGH {
                    break;
                }
                let closed = contexts.complete(engine, member, lhs)?;
                if contexts.closes(&closed, self.class, origin) {
                    let astray = learned.astray.get(&(place, other)).copied().unwrap_or(0);
                    let cost = astray + self.cost(contexts, engine, member, lhs)?;
                    found.push((cost, (other, member), true));
                }
            }
        }
        Ok(found)
    }

    /// What it costs to come to it by completing a nonterminal that began in a context.
    fn cost(
        &self,
        contexts: &mut Contexts,
        engine: &mut Earley,
        context: ContextId,
        lhs: NonterminalId,
    ) -> Result<usize, RecognizerError> {
        let (mut is_before, mut lacking) = (false, None);
        for &waiting in &*contexts.waiting(engine, context, Symbol::Nonterminal(lhs))? {
            if self.class == contexts.class(engine, waiting.after) {
                is_before = true;
                if is_read(engine, &waiting, self.read, self.is_whole)? {
                    let its = self.lacking(engine, &waiting);
                    lacking = Some(lacking.map_or(its, |least: u32| least.min(its)));
                }
            }
        }
        Ok(match lacking {
            Some(lacking) => lacking as usize,
            // By way of something else, which comes by itself.
            None if !is_before => SEEMS_ASTRAY / 2,
            None => SEEMS_ASTRAY,
        })
    }

    /// How much is lacking of a right-hand side if what was read follows an item and the symbol that it waits
    /// for.
    fn lacking(&self, engine: &Earley, waiting: &Waiting) -> u32 {
        let Some(number) = waiting.number else { return 0 };
        let last: Vec<u32> = self.read.iter().copied().chain([number]).collect();
        if self.is_whole { engine.lacking(waiting.after, &last) } else { 0 }
    }
}

/// A step back over a terminal.
pub struct StepBack {
    /// By which of the ways that meet.
    pub way: Way,
    /// The context in which the piece began.
    pub context: ContextId,
    waiting: Waiting,
    origin: ContextId,
}

/// Which choices of ways back led astray, where contexts do not know all ([`Contexts::new`]): at which places
/// what should not be taken for complete.
#[derive(Default)]
pub struct Learned {
    astray: FxHashMap<(usize, RestId), usize>,
}

/// What is added to the cost of a choice that seems to lead astray.
const SEEMS_ASTRAY: usize = 1_000;

impl Unwinding {
    /// The way back from the end of a sentence.
    pub fn of_sentence(engine: &Earley) -> Self {
        let root = engine.rests[engine.root.index()].next;
        Self { item: (root, Contexts::START), read: Vec::new(), is_whole: true, waiting: Vec::new() }
    }

    /// The way back from the end of a prefix of a sentence: from the place where the piece in progress began,
    /// which may become one of some terminals, any if none are given. `None` if nothing there waits for one
    /// of these.
    pub fn of_piece(
        contexts: &Contexts,
        engine: &mut Earley,
        context: ContextId,
        wanted: Option<&BitSet>,
        random: &mut Random,
    ) -> Option<Self> {
        let waits = |engine: &mut Earley, rest: RestId| {
            wanted.is_none_or(|wanted| {
                let viable = engine.predicted(std::iter::once(rest)).1;
                engine.viable[viable as usize].intersects(wanted)
            })
        };
        let item = Self::in_progress(contexts, engine, context, waits, random)?;
        Some(Self { item, read: Vec::new(), is_whole: false, waiting: Vec::new() })
    }

    /// An item that is in progress in a context.
    fn in_progress(
        contexts: &Contexts,
        engine: &mut Earley,
        context: ContextId,
        mut waits: impl FnMut(&mut Earley, RestId) -> bool,
        random: &mut Random,
    ) -> Option<Single> {
        let kernel = contexts.contexts[context.index()].kernel.clone();
        let items: Vec<Item> = kernel.iter().copied().filter(|&(rest, _)| waits(engine, rest)).collect();
        if items.is_empty() {
            return None;
        }
        let &(rest, origins) = random.choose(&items);
        Some((rest, *random.choose(&contexts.sets[origins.index()])))
    }

    /// One step back from a place where ways meet, over the terminal that ends there. `None` if nothing leads
    /// to the item, which cannot be.
    pub fn back(
        &mut self,
        contexts: &mut Contexts,
        engine: &mut Earley,
        learned: &Learned,
        (place, meeting): (usize, &Meeting),
        random: &mut Random,
    ) -> Result<Option<StepBack>, RecognizerError> {
        // In depth over the items here, what costs least first.
        let mut hops: Vec<Hop> = vec![Hop { item: self.item, before: None, is_own: true }];
        let mut seen = FxHashSet::default();
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            let Hop { item, is_own, .. } = hops[at];
            if !seen.insert(item) {
                continue;
            }
            let (read, is_whole) = if is_own { (&*self.read, self.is_whole) } else { (&[][..], true) };
            let goal = Goal { item, class: contexts.class(engine, item.0), read, is_whole };
            let steps = goal.steps(contexts, engine, meeting, random)?;
            if !steps.is_empty() {
                let lacking = |(.., waiting): &(Way, ContextId, Waiting)| goal.lacking(engine, waiting);
                let (way, context, waiting) = *least(&steps, lacking, random);
                self.descend(&hops, at, place);
                return Ok(Some(StepBack { way, context, waiting, origin: item.1 }));
            }
            let mut found = goal.hops(contexts, engine, learned, (place, meeting), random)?;
            for turn in 0..found.len() {
                let other = turn + random.below(found.len() - turn);
                found.swap(turn, other);
            }
            // The one that costs least comes last, for it is taken first.
            found.sort_by_key(|&(cost, ..)| Reverse(cost));
            for (_, item, completes) in found {
                open.push(hops.len());
                hops.push(Hop { item, before: Some((at, completes)), is_own: is_own && !completes });
            }
        }
        Ok(None)
    }

    /// Goes on with an item that completes what is unwound, or what that waits for.
    fn descend(&mut self, hops: &[Hop], at: usize, place: usize) {
        let mut way = vec![at];
        while let Some((before, _)) = way.last().and_then(|&hop| hops[hop].before) {
            way.push(before);
        }
        for hop in way.iter().rev().map(|&hop| &hops[hop]) {
            if let Some((_, true)) = hop.before {
                self.wait(self.item, (place, hop.item.0));
            }
            self.item = hop.item;
        }
    }

    /// Goes on with a right-hand side whose completion leads to a target.
    fn wait(&mut self, target: Single, chosen: (usize, RestId)) {
        let read = std::mem::take(&mut self.read);
        let is_whole = std::mem::replace(&mut self.is_whole, true);
        self.waiting.push(Frame { target, read, is_whole, chosen });
    }

    /// The item that waits for the terminal of a step in a context of which its piece sees the same.
    fn seen_alike(
        &self,
        contexts: &mut Contexts,
        engine: &mut Earley,
        (context, step): (ContextId, &StepBack),
        random: &mut Random,
    ) -> Result<Option<Waiting>, RecognizerError> {
        let Some(terminal) = step.way.1 else { return Ok(Some(step.waiting)) };
        let mut options = Vec::new();
        for &found in &*contexts.waiting(engine, context, Symbol::Terminal(terminal))? {
            if found.after == step.waiting.after
                && contexts.holds(found.origins, step.origin)
                && is_read(engine, &found, &self.read, self.is_whole)?
            {
                options.push(found);
            }
        }
        Ok((!options.is_empty()).then(|| *random.choose(&options)))
    }

    /// Goes on from the place where the piece of a step began. False if what was read is no right-hand side:
    /// then this way back has come to an end, and something was learned for another.
    pub fn begin(
        &mut self,
        contexts: &mut Contexts,
        engine: &mut Earley,
        learned: &mut Learned,
        (context, step): (ContextId, &StepBack),
        random: &mut Random,
    ) -> Result<bool, RecognizerError> {
        let (mut waiting, mut origin) = (step.waiting, step.origin);
        if context != step.context {
            // It sees the same of this one, but the item may be another.
            match self.seen_alike(contexts, engine, (context, step), random)? {
                Some(other) => waiting = other,
                None => return Ok(false),
            }
        }
        loop {
            self.read.extend(waiting.number);
            if let Some(before) = waiting.before {
                self.item = (before, origin);
                return Ok(true);
            }
            // It is predicted here, and so are perhaps those that wait for it.
            let lhs = engine.rests[waiting.after.index()].lhs;
            let Some(Frame { target, read, is_whole, chosen }) = self.waiting.pop() else {
                // What is in progress at the end of the text has nobody who waits for its end.
                let begins = |engine: &mut Earley, rest: RestId| {
                    engine.begun(std::iter::once(rest)).0.contains(lhs.index())
                };
                let Some(item) = Self::in_progress(contexts, engine, context, begins, random) else {
                    return Ok(false);
                };
                (self.item, self.is_whole) = (item, false);
                self.read.clear();
                return Ok(true);
            };
            (self.read, self.is_whole) = (read, is_whole);
            let Some((item, began, completes)) =
                self.who_waits((contexts, engine), context, (lhs, target), random)?
            else {
                *learned.astray.entry(chosen).or_default() += 1;
                return Ok(false);
            };
            (waiting, origin) = (item, began);
            if completes {
                self.wait(target, chosen);
            }
        }
    }

    /// By which item that waits in a context for a nonterminal completing that comes to a target, where that
    /// item began, and whether it is complete then itself.
    fn who_waits(
        &self,
        (contexts, engine): (&mut Contexts, &mut Earley),
        context: ContextId,
        (lhs, target): (NonterminalId, Single),
        random: &mut Random,
    ) -> Result<Option<(Waiting, ContextId, bool)>, RecognizerError> {
        // Rules of one symbol that are predicted here too are gone through.
        let (mut seen, mut open) = (FxHashSet::from_iter([lhs]), vec![lhs]);
        while let Some(lhs) = open.pop() {
            let mut options = Vec::new();
            for &waiting in &*contexts.waiting(engine, context, Symbol::Nonterminal(lhs))? {
                for &origin in &*contexts.sets[waiting.origins.index()].clone() {
                    let Some(completes) = contexts.leads(engine, (waiting.after, origin), target)? else {
                        continue;
                    };
                    // Behind one that is complete nothing was read.
                    let (read, is_whole) =
                        if completes { (&[][..], true) } else { (&*self.read, self.is_whole) };
                    if !is_read(engine, &waiting, read, is_whole)? {
                        continue;
                    }
                    let other = engine.rests[waiting.after.index()].lhs;
                    if !completes || waiting.before.is_some() {
                        options.push((waiting, origin, completes));
                    } else if seen.insert(other) {
                        open.push(other);
                    }
                }
            }
            if !options.is_empty() {
                return Ok(Some(*random.choose(&options)));
            }
        }
        Ok(None)
    }
}

/// One of those with the least of something, drawn.
fn least<'a, T>(all: &'a [T], of: impl Fn(&T) -> u32, random: &mut Random) -> &'a T {
    let least = all.iter().map(&of).min();
    let all: Vec<&T> = all.iter().filter(|one| Some(of(one)) == least).collect();
    all[random.below(all.len())]
}

/// Ways of one kind among which one is drawn.
const ENOUGH: usize = 8;

/// The members of a set from some one on.
fn drawn(members: &[ContextId], random: &mut Random) -> Vec<ContextId> {
    let from = random.below(members.len().max(1));
    members[from..].iter().chain(&members[..from]).copied().collect()
}

/// Whether what was read, from right to left, can follow an item and the symbol that it waits for.
fn is_read(
    engine: &mut Earley,
    waiting: &Waiting,
    read: &[u32],
    is_whole: bool,
) -> Result<bool, RecognizerError> {
    let Some(number) = waiting.number else { return Ok(true) };
    let start = || engine.grown.start_of(engine.rests[waiting.after.index()].lhs);
    let Some(before) = waiting.before.or_else(start) else { return Ok(true) };
    let symbols = std::iter::once(number).chain(read.iter().rev().copied());
    engine.reads(before, symbols, is_whole)
}

impl Contexts {
    /// Whether a set has a member.
    fn holds(&self, set: SetId, context: ContextId) -> bool {
        self.sets[set.index()].binary_search(&context).is_ok()
    }

    /// Whether there is one of some items, or what stands for it where ways meet, that began in a context.
    fn has(&mut self, engine: &Earley, items: &[Item], (rest, origin): Single) -> bool {
        let class = self.class(engine, rest);
        items.iter().any(|&(other, origins)| {
            (other == rest || class == self.class(engine, other)) && self.holds(origins, origin)
        })
    }

    /// The same of items that are closed.
    fn closes(&self, closed: &Closed, class: Class, origin: ContextId) -> bool {
        let from = closed.classes.partition_point(|&(other, _)| other < class);
        let mut alike = closed.classes[from..].iter().take_while(|&&(other, _)| other == class);
        alike.any(|&(_, origins)| self.holds(origins, origin))
    }

    /// Whether one item comes to another without reading anything: by completing its left side, or else.
    fn leads(
        &mut self,
        engine: &mut Earley,
        from: Single,
        to: Single,
    ) -> Result<Option<bool>, RecognizerError> {
        let mut at = from.0;
        loop {
            if from.1 == to.1 && self.class(engine, at) == self.class(engine, to.0) {
                return Ok(Some(false));
            }
            at = match engine.first(at) {
                Some(Symbol::Nonterminal(n)) if engine.nullable.contains(n.index()) => {
                    engine.rests[at.index()].next
                }
                Some(_) => return Ok(None),
                None => match engine.grown.end(at) {
                    Some(end) => end,
                    None if is_open(engine, at) => return Ok(None),
                    None => break,
                },
            };
        }
        let lhs = engine.rests[at.index()].lhs;
        if lhs.index() == engine.cfg.n_nonterminals {
            return Ok(None);
        }
        let closed = self.complete(engine, from.1, lhs)?;
        let class = self.class(engine, to.0);
        Ok(self.closes(&closed, class, to.1).then_some(true))
    }
}
