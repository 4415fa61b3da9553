//! EPIC's way to decide: Earley's algorithm over the lattice of terminals, without an automaton being
//! determinized.
//!
//! The positions are the states of the lexings, which are made only when an item asks for them. What is
//! predicted from the left keeps out most of what the bottom-up search finds between two places.

use anygram_bits::work::Work;
use anygram_grammar::ir::{Symbol, TerminalId};
use anygram_left_to_right::language::StepError;
use rustc_hash::{FxHashMap, FxHashSet};

use super::lexings::Lexings;
use crate::chart::{Rest, Rules};

#[derive(Clone, Copy)]
struct Item {
    rest: u32,
    origin: u32,
    at: u32,
    cause: Cause,
}

#[derive(Clone, Copy)]
enum Cause {
    Predicted,
    Scanned(u32, TerminalId),
    /// By an item that waited, and one that was complete.
    Completed(u32, u32),
}

/// Where a nonterminal was asked for: who waits, and where it was found to end.
#[derive(Default)]
struct Asked {
    waiting: Vec<u32>,
    completed: Vec<u32>,
    ends: FxHashSet<u32>,
}

/// A parse over the lattice.
pub(super) struct Earley<'a, 'b> {
    rules: &'a Rules,
    lexings: &'a mut Lexings<'b>,
    items: Vec<Item>,
    known: FxHashSet<(u32, u32, u32)>,
    asked: FxHashMap<(u32, u32), Asked>,
    agenda: Vec<u32>,
}

impl<'a, 'b> Earley<'a, 'b> {
    pub fn new(rules: &'a Rules, lexings: &'a mut Lexings<'b>) -> Self {
        Self {
            rules,
            lexings,
            items: Vec::new(),
            known: FxHashSet::default(),
            asked: FxHashMap::default(),
            agenda: Vec::new(),
        }
    }

    /// The number of items.
    pub fn n_items(&self) -> usize {
        self.items.len()
    }

    /// A sequence of terminals that is in the intersection; `None` if there is none.
    pub fn run(&mut self, work: &mut Work) -> Result<Option<Vec<TerminalId>>, StepError> {
        let start = self.lexings.start(work)?;
        self.add(self.rules.root, start, start, Cause::Predicted);
        while let Some(id) = self.agenda.pop() {
            work.spend(8)?;
            if self.process(id, work)? {
                return Ok(Some(self.terminals(id)));
            }
        }
        Ok(None)
    }

    fn add(&mut self, rest: u32, origin: u32, at: u32, cause: Cause) {
        if self.known.insert((rest, origin, at)) {
            self.agenda.push(self.items.len() as u32);
            self.items.push(Item { rest, origin, at, cause });
        }
    }

    /// Whether the item completes a sentence.
    fn process(&mut self, id: u32, work: &mut Work) -> Result<bool, StepError> {
        let rules = self.rules;
        let Item { rest, origin, at, .. } = self.items[id as usize];
        let Rest { lhs, first, next } = rules.rests[rest as usize];
        match first {
            None if lhs as usize == rules.begins.len() => return Ok(self.lexings.edges(at, work)?.accepts),
            None => {
                let asked = self.asked.entry((origin, lhs)).or_default();
                if !asked.ends.insert(at) {
                    return Ok(false);
                }
                asked.completed.push(id);
                let n_waiting = asked.waiting.len();
                work.spend(n_waiting)?;
                for place in 0..n_waiting {
                    let waiter = self.asked[&(origin, lhs)].waiting[place];
                    let Item { rest, origin, .. } = self.items[waiter as usize];
                    self.add(rules.rests[rest as usize].next, origin, at, Cause::Completed(waiter, id));
                }
            }
            Some(Symbol::Nonterminal(n)) => {
                let asked = self.asked.entry((at, n.0)).or_default();
                asked.waiting.push(id);
                if asked.waiting.len() == 1 {
                    for &begin in &rules.begins[n.index()] {
                        self.add(begin, at, at, Cause::Predicted);
                    }
                }
                let n_completed = self.asked[&(at, n.0)].completed.len();
                work.spend(n_completed)?;
                for place in 0..n_completed {
                    let done = self.asked[&(at, n.0)].completed[place];
                    self.add(next, origin, self.items[done as usize].at, Cause::Completed(id, done));
                }
            }
            Some(Symbol::Terminal(terminal)) => {
                let found = self.lexings.edges(at, work)?;
                let from = found.edges.partition_point(|edge| edge.0 < terminal);
                for &(_, to) in found.edges[from..].iter().take_while(|edge| edge.0 == terminal) {
                    self.add(next, origin, to, Cause::Scanned(id, terminal));
                }
            }
        }
        Ok(false)
    }

    fn terminals(&self, id: u32) -> Vec<TerminalId> {
        let mut terminals = Vec::new();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.items[id as usize].cause {
                Cause::Predicted => {}
                Cause::Completed(waiter, done) => stack.extend([waiter, done]),
                Cause::Scanned(before, terminal) => {
                    terminals.push(terminal);
                    stack.push(before);
                }
            }
        }
        terminals.reverse();
        terminals
    }
}
