//! The rests of the rules of a grammar, each once, in the order of their first symbols.

use anygram_grammar::ir::{NonterminalId, Symbol};
use rustc_hash::FxHashMap;

use super::{Rest, RestId};

/// Rests while they are collected.
pub(super) struct Rests<'a> {
    rests: Vec<Rest>,
    /// By left side, first symbol, and the rest without it.
    ids: FxHashMap<(NonterminalId, Option<(Symbol, RestId)>), RestId>,
    minimum: &'a [u32],
}

impl<'a> Rests<'a> {
    /// None yet; of each nonterminal the fewest terminals.
    pub fn new(minimum: &'a [u32]) -> Self {
        Self { rests: Vec::new(), ids: FxHashMap::default(), minimum }
    }

    /// A rest without its first symbol.
    pub fn after(&self, rest: RestId) -> RestId {
        self.rests[rest.index()].next
    }

    /// The rest of all of `symbols`, and those of all their ends.
    pub fn intern(&mut self, lhs: NonterminalId, symbols: &[Symbol]) -> RestId {
        let mut rest = self.add(lhs, None, 0);
        for &symbol in symbols.iter().rev() {
            let minimum = match symbol {
                Symbol::Terminal(_) => 1,
                Symbol::Nonterminal(n) => self.minimum[n.index()],
            };
            rest =
                self.add(lhs, Some((symbol, rest)), self.rests[rest.index()].minimum.saturating_add(minimum));
        }
        rest
    }

    /// The rests in the order of their first symbols, and so the items of states; `held` are given their new
    /// ids.
    pub fn sorted<'r>(self, held: impl Iterator<Item = &'r mut RestId>) -> Vec<Rest> {
        let mut order: Vec<usize> = (0..self.rests.len()).collect();
        order.sort_by_key(|&at| self.rests[at].first);
        let mut ids = vec![RestId(0); order.len()];
        order.iter().enumerate().for_each(|(id, &at)| ids[at] = RestId::new(id));
        held.for_each(|rest| *rest = ids[rest.index()]);
        let renamed = |&at: &usize| {
            let mut rest = self.rests[at].clone();
            rest.next = ids[rest.next.index()];
            rest
        };
        order.iter().map(renamed).collect()
    }

    fn add(&mut self, lhs: NonterminalId, begins: Option<(Symbol, RestId)>, minimum: u32) -> RestId {
        let fresh = RestId::new(self.rests.len());
        *self.ids.entry((lhs, begins)).or_insert_with(|| {
            let (first, next) = (begins.map(|(first, _)| first), begins.map_or(fresh, |(_, next)| next));
            self.rests.push(Rest { lhs, first, next, minimum });
            fresh
        })
    }
}
