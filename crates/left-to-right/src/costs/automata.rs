//! What automata that give rules weigh at least.

use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::{NonterminalId, Symbol};
use anygram_lexer::transducer::Lexing;
use anygram_vocab::TokenTrie;

use super::{Costs, First, Leftover, Rest, Task};

/// Rounds in which it is found what automata that give rules weigh: one more than they are nested.
pub(super) const ROUNDS: usize = 12;

/// Up to this cost it is found out where what automata give leads. With one more token it may end anywhere:
/// then none of a chain of arrays that end is cheaper than where a token ends as many as it can.
pub(super) const NEAR: u32 = 1;

/// Where more symbols than this may come, they are not gone through: most are keys, and to read each takes a
/// walk of tokens.
const FEW_SYMBOLS: usize = 32;

/// Costs of a part of what an automaton gives that are told apart.
pub(super) const DEAREST: u32 = 2_000;

impl Costs {
    /// What automata weigh at least: from below, in rounds, each of which knows of what is nested one level
    /// deeper.
    pub(super) fn weigh_automata(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        work: &mut Work,
    ) -> Result<(), Stopped> {
        if self.weights.len() == lexing.cfg.automata.len() {
            return Ok(());
        }
        self.is_weighing = true;
        let weighed = self.find_weights(lexing, trie, work);
        self.is_weighing = false;
        self.clear();
        weighed.inspect_err(|_| self.weights.clear())
    }

    fn find_weights(&mut self, lexing: &Lexing, trie: &TokenTrie, work: &mut Work) -> Result<(), Stopped> {
        let automata = &lexing.cfg.automata;
        let mut weights = vec![0; automata.len()];
        for _ in 0..ROUNDS {
            self.clear();
            self.weights.clone_from(&weights);
            self.state_weights.clear();
            self.part_weights.clear();
            for (at, automaton) in automata.iter().enumerate() {
                let start = automaton.automaton.start();
                weights[at] = self.weight(lexing, trie, (at, start), work)?;
            }
            if weights == self.weights {
                break;
            }
        }
        Ok(())
    }

    /// What is left of an automaton in a state weighs at least this much, wherever it begins within a token.
    pub(super) fn weight(
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
    pub(super) fn part(
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

    /// What an automaton that gives a nonterminal weighs.
    pub(super) fn weight_of(&self, nonterminal: NonterminalId) -> Option<u32> {
        let automaton = (*self.automaton_of.get(nonterminal.index())?)?;
        Some(self.weights.get(automaton).copied().unwrap_or(0))
    }

    /// Where what an automaton gives from a state on leads with [`NEAR`] tokens at most.
    pub(super) fn automaton_task(&mut self, (automaton, state): (usize, u32), from: Leftover) -> Task {
        let rest = self.rest_of(First::Automaton(automaton, state));
        self.task_within(Err(rest), from, Some(NEAR))
    }

    /// The same of a nonterminal that an automaton gives, if it weighs nothing.
    pub(super) fn near_part(
        &mut self,
        lexing: &Lexing,
        (nonterminal, weight): (NonterminalId, u32),
        from: Leftover,
    ) -> Option<Task> {
        let automaton = (*self.automaton_of.get(nonterminal.index())?)?;
        if weight > 0 || self.is_weighing {
            return None;
        }
        let start = lexing.cfg.automata[automaton].automaton.start();
        Some(self.automaton_task((automaton, start), from))
    }

    /// Goes on with what an automaton gives from a state on, at a leftover and a cost.
    pub(super) fn step_automaton(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        (automaton, state): (usize, u32),
        (task, from, cost): (Task, Leftover, u32),
        work: &mut Work,
    ) -> Result<(), Stopped> {
        let of = &lexing.cfg.automata[automaton];
        if of.automaton.accepts(state) {
            self.reach(task, Rest::EMPTY, from, cost);
        }
        if from == Leftover::NONE && cost >= NEAR {
            return Ok(());
        }
        let symbols = of.automaton.symbols(state);
        work.spend(symbols.len())?;
        let step =
            |&number: &u32| Some((*of.symbols.get(number as usize)?, of.automaton.step(state, number).ok()?));
        let are_few = symbols.len() <= FEW_SYMBOLS;
        // None of them if the automaton has no room for more states.
        let all: Option<Vec<(Symbol, u32)>> = if are_few { symbols.iter().map(step).collect() } else { None };
        let Some(all) = all else {
            // They may end anywhere.
            for (to, more) in self.behind_automaton(trie, (from, 0)) {
                self.reach(task, Rest::EMPTY, to, cost + more);
            }
            return Ok(());
        };
        for (symbol, next) in all {
            let next = self.rest_of(First::Automaton(automaton, next));
            let rest = self.rest_of(First::Symbol(symbol, next));
            self.reach(task, rest, from, cost);
        }
        Ok(())
    }

    /// Where something of such a weight leads that an automaton gives: it may end anywhere.
    pub(super) fn behind_automaton(
        &mut self,
        trie: &TokenTrie,
        (from, weight): (Leftover, u32),
    ) -> [(Leftover, u32); 2] {
        let weight = weight.max(u32::from(from == Leftover::NONE));
        [Leftover::NONE, self.anything(trie)[0]].map(|to| (to, weight))
    }
}
