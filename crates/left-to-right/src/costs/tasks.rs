//! Where nonterminals lead from a leftover, the least cost first and as far as somebody asks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::Symbol;
use anygram_lexer::transducer::Lexing;
use anygram_vocab::TokenTrie;
use rustc_hash::FxHashSet;

use super::automata::NEAR;
use super::{Costs, First, Leftover, Rest, Task};

impl Rest {
    pub(super) const EMPTY: Self = Self(0);
}

/// A task in the making.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Somebody asks for its ends up to this cost.
    level: u32,
    /// What costs more is not looked for; `None` if everything is.
    most: Option<u32>,
    /// What costs more: `(cost, what is left to read, where)`.
    aside: BinaryHeap<Reverse<(u32, Rest, Leftover)>>,
    /// The tasks that it consists of, with the cost before each.
    parts: Vec<(Task, u32)>,
    /// Where it leads, by increasing cost.
    pub(super) ends: Vec<(Leftover, u32)>,
    /// Who waits for that: what is to be read after it, and the cost before it.
    waiting: Vec<(Task, Rest, u32)>,
}

impl Progress {
    /// Bytes, roughly.
    pub(super) fn memory_usage(&self) -> usize {
        8 * self.ends.len() + 12 * self.waiting.len() + 48
    }
}

impl Costs {
    pub(super) fn rest(&mut self, symbols: &[Symbol]) -> Rest {
        symbols.iter().rev().fold(Rest::EMPTY, |next, &symbol| self.rest_of(First::Symbol(symbol, next)))
    }

    pub(super) fn rest_of(&mut self, first: First) -> Rest {
        let fresh = Rest::new(self.rests.len());
        let rests = &mut self.rests;
        *self.rest_ids.entry(first).or_insert_with(|| {
            rests.push(first);
            fresh
        })
    }

    pub(super) fn task(&mut self, what: Result<u32, Rest>, from: Leftover) -> Task {
        self.task_within(what, from, None)
    }

    /// The same, of which nothing is asked that costs more than `most`.
    pub(super) fn task_within(&mut self, what: Result<u32, Rest>, from: Leftover, most: Option<u32>) -> Task {
        let n_nonterminals = self.rules.len() as u32;
        let key = (what.unwrap_or_else(|rest| n_nonterminals + rest.0), from);
        if let Some(&known) = self.task_ids.get(&key) {
            return known;
        }
        let task = Task::new(self.tasks.len());
        self.task_ids.insert(key, task);
        self.tasks.push(Progress { most, ..Progress::default() });
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
    pub(super) fn raise(&mut self, task: Task, level: u32, work: &mut Work) -> Result<(), Stopped> {
        let mut asked = vec![(task, level)];
        while let Some((task, level)) = asked.pop() {
            let progress = &mut self.tasks[task.index()];
            work.spend(1)?;
            let level = progress.most.map_or(level, |most| most.min(level));
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
    pub(super) fn is_cut(&self, tasks: &[Task], work: &mut Work) -> Result<bool, Stopped> {
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

    pub(super) fn reach(&mut self, task: Task, rest: Rest, to: Leftover, cost: u32) {
        let progress = &mut self.tasks[task.index()];
        if progress.most.is_some_and(|most| cost > most) {
            return;
        }
        if cost <= progress.level {
            self.agenda.push(Reverse((cost, task, rest, to)));
        } else {
            progress.aside.push(Reverse((cost, rest, to)));
        }
    }

    /// Settles all that was asked for, the least cost first: then the ends of tasks are known up to their
    /// levels.
    pub(super) fn settle(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        work: &mut Work,
    ) -> Result<(), Stopped> {
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
            let (symbol, next) = match self.rests[rest.index()] {
                First::Symbol(symbol, next) => (symbol, next),
                First::Automaton(automaton, state) => {
                    self.step_automaton(lexing, trie, (automaton, state), (task, leftover, cost), work)?;
                    continue;
                }
            };
            match symbol {
                Symbol::Terminal(terminal) => {
                    let read = self.read_after_skips(lexing, trie, terminal, leftover, work)?;
                    work.spend(read.len())?;
                    read.iter().for_each(|&(to, more)| self.reach(task, next, to, cost + more));
                }
                Symbol::Nonterminal(nonterminal) if self.weight_of(nonterminal).is_some() => {
                    let mut weight = self.weight_of(nonterminal).unwrap_or(0);
                    if let Some(part) = self.near_part(lexing, (nonterminal, weight), leftover) {
                        weight = NEAR + 1;
                        self.wait_for(part, (task, next, cost), work)?;
                    }
                    for (to, more) in self.behind_automaton(trie, (leftover, weight)) {
                        self.reach(task, next, to, cost.saturating_add(more));
                    }
                }
                Symbol::Nonterminal(nonterminal) => {
                    let part = self.task(Ok(nonterminal.0), leftover);
                    self.wait_for(part, (task, next, cost), work)?;
                }
            }
        }
        Ok(())
    }
    /// A task goes on with a rest behind a part of it that begins at a cost.
    fn wait_for(
        &mut self,
        part: Task,
        (task, next, cost): (Task, Rest, u32),
        work: &mut Work,
    ) -> Result<(), Stopped> {
        let level = self.tasks[task.index()].level;
        self.tasks[task.index()].parts.push((part, cost));
        self.raise(part, level - cost, work)?;
        self.tasks[part.index()].waiting.push((task, next, cost));
        work.spend(self.tasks[part.index()].ends.len())?;
        for at in 0..self.tasks[part.index()].ends.len() {
            let (to, more) = self.tasks[part.index()].ends[at];
            self.reach(task, next, to, cost + more);
        }
        Ok(())
    }
}
