//! The search for a completion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anygram_grammar::ir::LexerMode;
use anygram_lexer::transducer::LexemeId;
use rustc_hash::FxHashMap;

use super::{Budgets, GROWTH, Place, Question, Upper};
use crate::costs::Leftover;
use crate::frontier::Config;
use crate::language::StepError;
use crate::recalled::Outlook;
use crate::witness::Node;

/// From here on keys of places of which no upper bound is known.
pub(super) const GUESSED: u32 = 1 << 30;

/// A search for a completion.
///
/// For the least cost it is A*: the least total comes first. If any cost within the limit will do, the least
/// upper bound on the total comes first, so that it goes straight to an end even where keys may come in any
/// order and all orders cost about the same; where none is known, what seems to lack least.
#[derive(Default)]
pub(super) struct Search {
    pub(super) limit: u32,
    pub(super) any: bool,
    /// What it cost to come to a place, and from where.
    pub(super) costs: FxHashMap<Node, (u32, Option<Node>)>,
    /// What comes next: first the least key, then the latest.
    pub(super) queue: BinaryHeap<(Reverse<u32>, u32, Node)>,
    pub(super) n_pushed: u32,
    /// Places that were gone on from.
    pub(super) closed: Vec<(Node, u32)>,
}

/// What a search has found.
pub(super) struct Found {
    pub(super) total: u32,
    /// The place from where it is known how to go on.
    pub(super) last: Node,
    /// What comes behind it; empty at a sentence, and where nothing is told apart.
    pub(super) ending: Option<Arc<[u8]>>,
}

impl Search {
    pub(super) fn push(&mut self, node: Node, key: u32) {
        self.n_pushed += 1;
        self.queue.push((Reverse(key), self.n_pushed, node));
    }

    /// The nodes that lead to one.
    pub(super) fn path(&self, last: Node) -> Vec<Node> {
        let mut path = vec![last];
        let mut at = last;
        while let Some(&(_, Some(before))) = self.costs.get(&at) {
            path.push(before);
            at = before;
        }
        path.reverse();
        path
    }
}

impl Budgets {
    /// The least cost of completing one of some readings at a token boundary, if it is at most `limit`; or,
    /// if `any` is enough, some cost.
    pub(super) fn least(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        (limit, any): (u32, bool),
    ) -> Result<Option<u32>, StepError> {
        let mut least = None;
        let mut limit = limit;
        for &config in frontier {
            let lexing = question.language.lexing();
            // Elsewhere the bound is not always the truth.
            let is_truth = lexing.mode() == LexerMode::Scannerless
                && !lexing.is_growing()
                && lexing.cfg.automata.is_empty()
                && !question.language.grammar().remembers();
            let found = if is_truth {
                self.bound(question, (config, Leftover::NONE), limit)?
            } else {
                self.search(question, config, (limit, any))?
            };
            if let Some(found) = found {
                (least, limit) = (Some(found), found);
                if any {
                    break;
                }
            }
        }
        Ok(least)
    }

    /// Whether one of some readings at a token boundary can be completed by at most `limit` tokens.
    pub(super) fn fits(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        limit: u32,
    ) -> Result<bool, StepError> {
        for &config in frontier {
            let upper = self.upper(question, config)?;
            if upper <= limit {
                self.enough = self.enough.max(upper);
                return Ok(true);
            }
        }
        let found = self.least(question, frontier, (limit, true))?;
        self.enough = self.enough.max(found.unwrap_or(0));
        Ok(found.is_some())
    }

    /// The least cost of completing a reading at a token boundary, if it is at most `limit`; or, if `any` is
    /// enough, some cost.
    pub(super) fn search(
        &mut self,
        question: &mut Question<'_>,
        config: Config,
        (limit, any): (u32, bool),
    ) -> Result<Option<u32>, StepError> {
        let start = (config, Leftover::NONE);
        if let Some(upper) = self.upper.get(&config)
            && self.lower.get(&start) == Some(&upper.cost)
        {
            return Ok((upper.cost <= limit).then_some(upper.cost));
        }
        let Some(least) = self.bound(question, start, limit)? else { return Ok(None) };
        let mut search = Search { limit, any, ..Search::default() };
        let node = (start, Outlook::NONE);
        search.costs.insert(node, (0, None));
        let key = self.key(question, &search, start, (0, least))?;
        search.push(node, key);
        let found = self.run(question, &mut search)?;
        if found.is_none() || !any {
            // What was looked at lacks at least what is left of the total.
            let total = found.as_ref().map_or(limit.saturating_add(1), |found| found.total);
            for &((place, _), cost) in &search.closed {
                let known = self.lower.entry(place).or_insert(0);
                *known = (*known).max(total - cost);
            }
        }
        let Some(Found { total, last, .. }) = found else { return Ok(None) };
        let remembers = question.language.grammar().remembers();
        // The places behind one, up to the next token boundary.
        let mut next: Vec<Node> = Vec::new();
        for node in search.path(last).into_iter().rev() {
            let ((config, leftover), _) = node;
            if leftover == Leftover::NONE {
                let cost = total - search.costs.get(&node).map_or(0, |known| known.0);
                let is_better = self.upper.get(&config).is_none_or(|known| known.cost > cost);
                let route = (remembers && !next.is_empty()).then(|| next.iter().rev().copied().collect());
                if is_better {
                    self.upper.insert(config, Upper { cost, next: route, text: None });
                }
                next.clear();
            }
            next.push(node);
        }
        Ok(Some(total))
    }

    /// Goes on with a search until there is a completion.
    pub(super) fn run(
        &mut self,
        question: &mut Question<'_>,
        search: &mut Search,
    ) -> Result<Option<Found>, StepError> {
        let mut is_closed: FxHashMap<Node, u32> = FxHashMap::default();
        let mut n_states_before = question.language.lexing().lexicon.union.n_states();
        let mut n_outlooks_before = self.outlooks.len();
        while let Some((Reverse(key), _, node)) = search.queue.pop() {
            let Some(&(cost, _)) = search.costs.get(&node) else { continue };
            if is_closed.get(&node).is_some_and(|&before| before <= cost) {
                continue;
            }
            let (place, _) = node;
            // No more is asked than whether it is its turn.
            let lower =
                if search.any { self.bound(question, place, search.limit - cost)? } else { Some(key - cost) };
            let Some(lower) = lower else { continue };
            if !search.any && !self.is_possible(question, place, lower)? {
                if key < search.limit {
                    search.push(node, key + 1);
                }
                continue;
            }
            if search.any && key >= GUESSED && GUESSED + lower > key {
                search.push(node, GUESSED + lower);
                continue;
            }
            is_closed.insert(node, cost);
            search.closed.push((node, cost));
            let most = if search.any { search.limit } else { cost + lower };
            if let Some(found) = self.goal(question, node, (cost, most))? {
                return Ok(Some(found));
            }
            for (next, more) in self.successors(question, node)? {
                let next_cost = cost + more;
                let is_known = search.costs.get(&next).is_some_and(|&(known, _)| known <= next_cost);
                if next_cost > search.limit || is_known {
                    continue;
                }
                search.costs.insert(next, (next_cost, Some(node)));
                // The bound of the place before holds for now; its own is asked for when it comes up.
                let key = self.key(question, search, next.0, (next_cost, lower.saturating_sub(more)))?;
                search.push(next, key);
            }
            let n_states = question.language.lexing().lexicon.union.n_states();
            let n_outlooks = self.outlooks.len();
            let grown = (n_states - n_states_before) + (n_outlooks - n_outlooks_before);
            question.work.spend(1 + GROWTH * grown)?;
            (n_states_before, n_outlooks_before) = (n_states, n_outlooks);
        }
        Ok(None)
    }

    /// Whether it is known how to go on from a node to a sentence, at a total of no more than `most`.
    pub(super) fn goal(
        &mut self,
        question: &mut Question<'_>,
        node: Node,
        (cost, most): (u32, u32),
    ) -> Result<Option<Found>, StepError> {
        let ((config, leftover), outlook) = node;
        if leftover != Leftover::NONE {
            return Ok(None);
        }
        if question.stepper.is_sentence(&[config]) {
            return Ok(Some(Found { total: cost, last: node, ending: None }));
        }
        let total = cost.saturating_add(self.upper(question, config)?);
        if total > most {
            return Ok(None);
        }
        if outlook == Outlook::NONE {
            return Ok(Some(Found { total, last: node, ending: None }));
        }
        let (more, ending) = self.ending(question, config)?;
        let total = cost.saturating_add(more);
        let Some(text) = ending.filter(|_| total <= most) else { return Ok(None) };
        let is_goal = self.may_end(question, (config, outlook), &text)?;
        Ok(is_goal.then_some(Found { total, last: node, ending: Some(text) }))
    }

    /// When a place comes up that it took so much to come to and that lacks at least so much.
    pub(super) fn key(
        &mut self,
        question: &mut Question<'_>,
        search: &Search,
        (config, _): Place,
        (cost, lower): (u32, u32),
    ) -> Result<u32, StepError> {
        if !search.any {
            return Ok(cost + lower);
        }
        let total = cost.saturating_add(self.upper(question, config)?);
        Ok(if total < GUESSED { total } else { GUESSED + lower })
    }

    /// The places that a token, or what is left of it, leads to, with what it costs.
    pub(super) fn successors(
        &mut self,
        question: &mut Question<'_>,
        node: Node,
    ) -> Result<Vec<(Node, u32)>, StepError> {
        let ((config, leftover), outlook) = node;
        let cost = u32::from(leftover == Leftover::NONE);
        let walk = self.walk(question, (config.lexeme, leftover), outlook)?;
        let Question { stepper, language, work, .. } = question;
        let grammar = language.grammar();
        work.spend(walk.stays.len() + walk.exits.len())?;
        let mut found = Vec::with_capacity(walk.stays.len() + walk.exits.len());
        let staying = |&(lexeme, outlook): &(LexemeId, Outlook)| {
            (((Config { lexeme, ..config }, Leftover::NONE), outlook), cost)
        };
        found.extend(walk.stays.iter().map(staying));
        for &(cut, behind, ends, rest) in &walk.exits {
            let ending = self.outlooks.ending(grammar, behind);
            for (opened, config) in stepper.ends(language, (config.state, cut), ending)? {
                let outlook = self.outlooks.behind(grammar, behind, opened);
                found.extend((rest != Leftover::NONE).then_some((((config, rest), outlook), cost)));
                found.extend(ends.then_some((((config, Leftover::NONE), outlook), cost)));
            }
        }
        if leftover == Leftover::NONE {
            for &terminal in language.lexing().specials() {
                let next = stepper.step_special(language, &[config], terminal)?;
                found.extend(next.into_iter().map(|config| (((config, Leftover::NONE), outlook), 1)));
            }
        }
        Ok(found)
    }
}
