//! Whether a sentence of the grammar is among the lexings: Earley's algorithm (1970; over automata Lang 1974)
//! whose positions are the states of [`Lexings`], which are made only when an item asks for them.
//!
//! Each item remembers a cause of its being there, which leads to a sequence of terminals. Where short texts
//! in gaps are asked for, items are processed in the order of what has to stand in gaps, as far as terminals
//! say it (Knuth 1977; for prefixes Stolcke 1995).
//!
//! Cost at worst rules × states³; what is predicted from the left keeps out most of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anygram_bits::work::Work;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{Symbol, TerminalId};
use anygram_left_to_right::language::StepError;
use rustc_hash::FxHashMap;

use super::Lexings;

/// What is still to come of a rule, shared by rules that end alike.
#[derive(Clone, Copy)]
struct Rest {
    lhs: u32,
    first: Option<Symbol>,
    next: u32,
    /// The fewest terminals.
    minimum: u32,
}

/// The rules of a grammar, and one more that derives the start symbol.
pub struct Rules {
    rests: Vec<Rest>,
    /// Of each nonterminal the rests of its rules.
    begins: Vec<Vec<u32>>,
    root: u32,
}

impl Rules {
    /// Those of a grammar.
    pub fn new(cfg: &Cfg) -> Self {
        let lengths = cfg.minimum_lengths();
        let mut rests: Vec<Rest> = Vec::new();
        let mut ids: FxHashMap<(u32, Option<(Symbol, u32)>), u32> = FxHashMap::default();
        let mut add = |lhs: u32, rhs: &[Symbol]| {
            let mut step = |begin: Option<(Symbol, u32)>| {
                *ids.entry((lhs, begin)).or_insert_with(|| {
                    let (first, next) = (begin.map(|(first, _)| first), begin.map_or(0, |(_, next)| next));
                    let minimum = match begin {
                        None => 0,
                        Some((Symbol::Terminal(_), next)) => rests[next as usize].minimum.saturating_add(1),
                        Some((Symbol::Nonterminal(n), next)) => {
                            rests[next as usize].minimum.saturating_add(lengths[n.index()])
                        }
                    };
                    rests.push(Rest { lhs, first, next, minimum });
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

#[derive(Clone, Copy)]
struct Item {
    rest: u32,
    /// The nonterminal that it is a rule of, where it was asked for.
    asked: u32,
    at: u32,
    cause: Cause,
    cost: Cost,
    is_done: bool,
}

/// What decides which items are processed first; among equals those that came last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// In depth.
    Depth,
    /// Those first that put little into gaps. The first sequence found is a shortest one in this sense.
    Least,
    /// Those first behind which few items of the canvas follow and few terminals are lacking.
    Onwards,
}

/// Bytes in gaps, at least: of all that was read up to an item, and of what was read since it began.
#[derive(Clone, Copy, Default)]
struct Cost {
    before: u32,
    own: u32,
    /// Terminals that are lacking once what the item began is complete.
    lacking: u32,
}

impl Cost {
    fn and(self, more: u32) -> Self {
        Self { before: self.before.saturating_add(more), own: self.own.saturating_add(more), ..self }
    }
}

#[derive(Clone, Copy)]
enum Cause {
    Predicted,
    Scanned(u32, TerminalId),
    /// By an item that waited, and one that was complete.
    Completed(u32, u32),
}

/// A nonterminal where it was asked for: who waits, and the items by which it is complete.
#[derive(Default)]
struct Asked {
    waiting: Vec<u32>,
    completed: Vec<u32>,
}

/// Terminals, each with states of the lexings to which it leads.
pub type Path = Vec<(TerminalId, Vec<u32>)>;

/// A parse over lexings.
pub struct Parse<'a, 'b> {
    rules: &'a Rules,
    lexings: &'a mut Lexings<'b>,
    items: Vec<Item>,
    /// By rest, asked and place.
    known: FxHashMap<(u32, u32, u32), u32>,
    asked: Vec<Asked>,
    /// By place and nonterminal.
    known_asked: FxHashMap<(u32, u32), u32>,
    /// Items to process with what decides which comes first.
    agenda: BinaryHeap<(Reverse<u32>, u32)>,
    order: Order,
}

impl<'a, 'b> Parse<'a, 'b> {
    /// Before its first item.
    pub fn new(rules: &'a Rules, lexings: &'a mut Lexings<'b>, order: Order) -> Self {
        Self {
            rules,
            lexings,
            items: Vec::new(),
            known: FxHashMap::default(),
            // That of the whole: nobody waits.
            asked: vec![Asked::default()],
            known_asked: FxHashMap::default(),
            agenda: BinaryHeap::new(),
            order,
        }
    }

    /// The number of items.
    pub fn n_items(&self) -> usize {
        self.items.len()
    }

    /// A sequence of terminals of a sentence with the states to which they lead; `None` if there is none.
    pub fn run(&mut self, work: &mut Work) -> Result<Option<Path>, StepError> {
        let start = self.lexings.start(work)?;
        self.add((self.rules.root, 0, start), Cause::Predicted, Cost::default());
        while let Some((_, id)) = self.agenda.pop() {
            // One that was found again at less cost waits twice.
            if std::mem::replace(&mut self.items[id as usize].is_done, true) {
                continue;
            }
            work.spend(8)?;
            if self.process(id, work)? {
                return Ok(Some(self.path(id)));
            }
        }
        Ok(None)
    }

    fn add(&mut self, key: (u32, u32, u32), cause: Cause, cost: Cost) {
        let fresh = self.items.len() as u32;
        let id = *self.known.entry(key).or_insert(fresh);
        let (rest, asked, at) = key;
        let priority = Reverse(match self.order {
            Order::Depth => 0,
            Order::Least => cost.before,
            Order::Onwards => {
                let lacking = self.rules.rests[rest as usize].minimum.saturating_add(cost.lacking);
                let n_items = self.lexings.n_items_after(at) as u32;
                lacking.saturating_add(n_items).saturating_add(cost.before)
            }
        });
        if id == fresh {
            self.items.push(Item { rest, asked, at, cause, cost, is_done: false });
            self.agenda.push((priority, id));
            return;
        }
        let item = &mut self.items[id as usize];
        if self.order == Order::Least && !item.is_done && cost.before < item.cost.before {
            (item.cause, item.cost) = (cause, cost);
            self.agenda.push((priority, id));
        }
    }

    /// Whether the item completes a sentence.
    fn process(&mut self, id: u32, work: &mut Work) -> Result<bool, StepError> {
        let rules = self.rules;
        let Item { rest, asked, at, cost, .. } = self.items[id as usize];
        let Rest { lhs, first, next, .. } = rules.rests[rest as usize];
        match first {
            None if lhs as usize == rules.begins.len() => return self.lexings.accepts(at, work),
            None => {
                // The rules of a nonterminal share their end, so each of its ends comes once.
                self.asked[asked as usize].completed.push(id);
                let n_waiting = self.asked[asked as usize].waiting.len();
                work.spend(n_waiting)?;
                for place in 0..n_waiting {
                    let waiter = self.asked[asked as usize].waiting[place];
                    let Item { rest, asked, cost: before, .. } = self.items[waiter as usize];
                    let key = (rules.rests[rest as usize].next, asked, at);
                    self.add(key, Cause::Completed(waiter, id), before.and(cost.own));
                }
            }
            Some(Symbol::Nonterminal(n)) => {
                let fresh = self.asked.len() as u32;
                let wanted = *self.known_asked.entry((at, n.0)).or_insert(fresh);
                if wanted == fresh {
                    self.asked.push(Asked::default());
                    let lacking = rules.rests[next as usize].minimum.saturating_add(cost.lacking);
                    for &begin in &rules.begins[n.index()] {
                        let cost = Cost { before: cost.before, own: 0, lacking };
                        self.add((begin, wanted, at), Cause::Predicted, cost);
                    }
                }
                self.asked[wanted as usize].waiting.push(id);
                let n_completed = self.asked[wanted as usize].completed.len();
                work.spend(n_completed)?;
                for place in 0..n_completed {
                    let done = self.asked[wanted as usize].completed[place];
                    let Item { at: to, cost: read, .. } = self.items[done as usize];
                    self.add((next, asked, to), Cause::Completed(id, done), cost.and(read.own));
                }
            }
            Some(Symbol::Terminal(terminal)) => {
                for &to in self.lexings.after(at, terminal, work)?.iter() {
                    let n_bytes =
                        if self.order == Order::Depth { 0 } else { self.lexings.n_in_gaps(at, terminal, to) };
                    self.add((next, asked, to), Cause::Scanned(id, terminal), cost.and(n_bytes));
                }
            }
        }
        Ok(false)
    }

    fn path(&self, id: u32) -> Path {
        let mut path = Vec::new();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.items[id as usize].cause {
                Cause::Predicted => {}
                Cause::Completed(waiter, done) => stack.extend([waiter, done]),
                Cause::Scanned(before, terminal) => {
                    path.push((terminal, vec![self.items[id as usize].at]));
                    stack.push(before);
                }
            }
        }
        path.reverse();
        path
    }
}
