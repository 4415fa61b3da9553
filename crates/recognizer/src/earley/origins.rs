//! Where items are said to begin.
//!
//! Of the state in which an item began nothing matters but what completing the item's left side there comes
//! to. So among states in which that is the same, items begin in one, and texts lead to equal states more
//! often. What begins in a state is moved from it in three ways:
//!
//! - **Out of tail calls.** If all that waits for a nonterminal in a state is the end of a rule, then
//!   completing it completes that rule's left side where that began; once this is the nonterminal again,
//!   nothing of the states between can matter any more. So the depth of right recursion leaves no trace in
//!   states: it is to them what calls in tail position are to a stack of calls. (Leo, 1991, takes the same
//!   steps when an item is completed.)
//! - **To what waits for it.** Only those items of the state are left that wait for something that begins
//!   with the nonterminal, so what else was in progress there leaves no trace either.
//! - **To where the rule around it began.** Behind `a + b` the same can follow as behind `a`: completing
//!   what began behind the `+` completes the sum, which began where `a` did. Let `r` be the state behind
//!   the `+` and `c` the one before `a`. A term that began in `r` is said to begin in `c` if completing it
//!   in both comes to the same items, where those that begin in `r` here are held to be those that begin in
//!   `c` there, and if the same holds of the left sides of all of these. That is a bisimulation (Park
//!   1981): each of the items reads at least one terminal before it is complete, so if what follows
//!   differed, it would differ at some first terminal, and up to there the items are the same.
//!
//! In `e: e "+" e | "n"` a text of any length comes to three states, and the members of a list, the operators
//! of a chain and the statements of a block come to the same ones again.
//!
//! Not to move an item is always right, so all of this is bounded: a comparison looks at [`MOST_COMPARED`]
//! items, and all of an engine together at [`COMPARED_PER_ITEM`] times the items that it made, beside
//! [`COMPARED_AT_FIRST`]. Within a comparison, items move as far as is known already. Cost otherwise, once
//! for a state and a nonterminal that begins in it: the items of the state, and as long as it takes to
//! complete the nonterminal in both states.

use anygram_grammar::ir::{NonterminalId, Symbol};

use super::{Completed, Earley, Item, LookedInto, ReachId, Rest, RestId};
use crate::{RecognizerError, StateId};

/// States that are being compared. What begins in them stays there, and what completing comes to in them is
/// not taken from tables.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    states: [StateId; 2],
    /// The items that may still be looked at.
    left: usize,
}

/// The items that one comparison looks at; beyond, states are held to be different.
const MOST_COMPARED: usize = 4_096;

/// And the nonterminals that it asks about.
const MOST_ASKED: usize = 256;

/// The items that all comparisons of an engine look at, for each item that it made, and before it made many.
const COMPARED_PER_ITEM: usize = 64;
const COMPARED_AT_FIRST: usize = 1_000_000;

/// States with more items than this stay as they are: each nonterminal that begins there would have a state
/// with nearly as many.
const MOST_NARROWED: usize = 64;

impl Earley {
    /// Lets items that begin in `from` begin where completing their left sides comes to the same, see the
    /// module.
    pub(super) fn move_begins(
        &mut self,
        from: StateId,
        items: &mut [Item],
        looked_into: &mut LookedInto,
    ) -> Result<(), RecognizerError> {
        if self.is_compared(from) {
            return Ok(());
        }
        for (rest, origin) in items {
            let lhs = self.rests[rest.index()].lhs;
            if *origin == from && lhs.index() < self.cfg.n_nonterminals {
                let (begin, reach) = self.begin_of(lhs, from)?;
                *origin = begin;
                looked_into.add(self.reach(reach));
            }
        }
        Ok(())
    }

    /// Whether a state is being compared, so that what begins in it stays there.
    pub(super) fn is_compared(&self, state: StateId) -> bool {
        self.compared.as_ref().is_some_and(|compared| compared.states.contains(&state))
    }

    /// Counts items that are looked at; false where a comparison has looked at too many.
    pub(super) fn has_budget(&mut self, n_items: usize) -> bool {
        let Some(Compared { left, .. }) = &mut self.compared else { return true };
        *left = left.saturating_sub(n_items);
        self.n_compared += n_items;
        *left > 0
    }

    /// The state in which a nonterminal that begins in `from` is said to begin, and what was looked into to
    /// find it.
    fn begin_of(
        &mut self,
        nonterminal: NonterminalId,
        from: StateId,
    ) -> Result<(StateId, ReachId), RecognizerError> {
        if let Some(&known) = self.begins_in.get(&(from, nonterminal)) {
            return Ok(known);
        }
        if self.compared.is_some() {
            return Ok((from, 0));
        }
        let mut looked_into = LookedInto::default();
        let mut begin = from;
        loop {
            let outermost = self.outermost(begin, nonterminal, &mut looked_into)?;
            if outermost != begin {
                begin = outermost;
                break;
            }
            let narrowed = self.narrowed(begin, nonterminal)?;
            let next = self.around(narrowed, nonterminal, &mut looked_into)?;
            let is_last = next == narrowed || next == begin;
            begin = next;
            if is_last {
                break;
            }
            if let Some(&(known, reach)) = self.begins_in.get(&(begin, nonterminal)) {
                looked_into.add(self.reach(reach));
                begin = known;
                break;
            }
        }
        let found = (begin, self.keep_reach(looked_into.finish()));
        self.begins_in.insert_unique((from, nonterminal), found);
        Ok(found)
    }

    /// The state out of tail calls, see the module.
    fn outermost(
        &mut self,
        from: StateId,
        nonterminal: NonterminalId,
        looked_into: &mut LookedInto,
    ) -> Result<StateId, RecognizerError> {
        if !self.tail_recursive.contains(nonterminal.index()) {
            return Ok(from);
        }
        let (mut state, mut symbol) = (from, nonterminal);
        // A cycle of rules of one symbol never comes out.
        for _ in 0..=self.cfg.n_nonterminals {
            looked_into.add(Some(&[state]));
            let Some((rest, origin)) = self.only_waiting(state, Symbol::Nonterminal(symbol))? else { break };
            let Rest { lhs, first, .. } = self.rests[rest.index()];
            let is_open = first.is_some() || rest.index() >= self.grown.from;
            if is_open || lhs.index() == self.cfg.n_nonterminals {
                break;
            }
            (state, symbol) = (origin, lhs);
            if symbol == nonterminal {
                // What is begun there was moved already.
                return Ok(state);
            }
        }
        Ok(from)
    }

    /// The item that waits for a symbol, stepped over it, if there is exactly one.
    fn only_waiting(&mut self, state: StateId, symbol: Symbol) -> Result<Option<Item>, RecognizerError> {
        let mut waiting = self.waiting(state, symbol);
        let (first, second) = (waiting.next(), waiting.next());
        drop(waiting);
        if second.is_some() || self.grown.is_empty() {
            return Ok(first.filter(|_| second.is_none()));
        }
        let growing = self.growing(state, symbol);
        match (first, &growing[..]) {
            (first, []) => Ok(first),
            (None, &[(at, number, origin)]) => Ok(Some((self.grow(at, number)?, origin))),
            _ => Ok(None),
        }
    }

    /// The state with only those items that wait for something that begins with a nonterminal. They decide
    /// what follows from completing it there, for all that is completed with it was predicted by them.
    fn narrowed(&mut self, state: StateId, nonterminal: NonterminalId) -> Result<StateId, RecognizerError> {
        let (kernel, is_sentence) = self.kernel(state);
        if kernel.len() > MOST_NARROWED {
            return Ok(state);
        }
        let mut items = kernel.to_vec();
        for &(rest, _) in &items {
            if let Some(Symbol::Nonterminal(n)) = self.first(rest) {
                self.predict(n);
            }
        }
        let n_items = items.len();
        items.retain(|&(rest, _)| match self.first(rest) {
            Some(Symbol::Nonterminal(n)) => {
                self.predicts[n.index()].as_ref().is_none_or(|with| with.contains(nonterminal.index()))
            }
            Some(Symbol::Terminal(_)) => false,
            // Of automata only that they are not at their end.
            None => true,
        });
        if items.len() == n_items && !is_sentence {
            return Ok(state);
        }
        self.intern(Completed { items, is_sentence: false, reach: None })
    }

    /// The state in which the rule around began, if completing the nonterminal there comes to the same, see
    /// the module. Items that are at their end behind the nonterminal propose it; a comparison decides.
    fn around(
        &mut self,
        from: StateId,
        nonterminal: NonterminalId,
        looked_into: &mut LookedInto,
    ) -> Result<StateId, RecognizerError> {
        if let Some(&(around, reach)) = self.same.get(&(from, nonterminal)) {
            looked_into.add(self.reach(reach));
            return Ok(around);
        }
        let kernel = self.kernel(from).0;
        if kernel.len() > MOST_NARROWED {
            return Ok(from);
        }
        let ends = |&&(rest, _): &&Item| self.first(rest).is_some() && self.is_end(rest);
        let mut origins = kernel.iter().filter(ends).map(|&(_, origin)| origin);
        let Some(around) = origins.next() else { return Ok(from) };
        if around == from || origins.any(|origin| origin != around) {
            return Ok(from);
        }
        if self.n_compared > COMPARED_AT_FIRST + COMPARED_PER_ITEM.saturating_mul(self.n_items) {
            return Ok(from);
        }
        self.compared = Some(Compared { states: [from, around], left: MOST_COMPARED });
        let is_same = self.is_same(from, around, nonterminal);
        self.compared = None;
        // At a limit they are not known to be the same, and where too many states were looked into no mask
        // could be kept.
        let same = is_same.ok().flatten();
        let Some((asked, LookedInto(Some(reach)))) = same else {
            self.same.insert_unique((from, nonterminal), (from, 0));
            return Ok(from);
        };
        looked_into.add(Some(&reach));
        let reach = self.keep_reach(Some(reach.into()));
        for lhs in asked {
            if !self.same.contains_key(&(from, lhs)) {
                self.same.insert_unique((from, lhs), (around, reach));
            }
        }
        Ok(around)
    }

    /// Whether nothing has to follow behind the first symbol of a rest of a rule.
    fn is_end(&self, rest: RestId) -> bool {
        let is_nullable = |symbol| match symbol {
            Symbol::Nonterminal(n) => self.nullable.contains(n.index()),
            Symbol::Terminal(_) => false,
        };
        self.symbols(rest).skip(1).all(is_nullable)
    }

    /// The nonterminals, among them this one, of which completing them in one state comes to the same as in
    /// another, and what was looked into to see it; `None` if it does not, or nothing waits for it, or too
    /// much would have to be looked at.
    fn is_same(
        &mut self,
        one: StateId,
        other: StateId,
        nonterminal: NonterminalId,
    ) -> Result<Option<(Vec<NonterminalId>, LookedInto)>, RecognizerError> {
        let mut looked_into = LookedInto::default();
        looked_into.add(Some(&[one, other]));
        let mut asked = vec![nonterminal];
        let mut at = 0;
        while let Some(&lhs) = asked.get(at) {
            at += 1;
            let Some((there, is_sentence)) = self.comes_to(other, lhs, &mut looked_into)? else {
                return Ok(None);
            };
            let Some((mut here, is_sentence_here)) = self.comes_to(one, lhs, &mut looked_into)? else {
                return Ok(None);
            };
            if !self.has_budget(0) {
                return Ok(None);
            }
            for (rest, origin) in &mut here {
                if *origin == one {
                    *origin = other;
                    let lhs = self.rests[rest.index()].lhs;
                    if !asked.contains(&lhs) {
                        asked.push(lhs);
                    }
                }
            }
            here.sort_unstable();
            here.dedup();
            if here != there || is_sentence != is_sentence_here || asked.len() > MOST_ASKED {
                return Ok(None);
            }
        }
        Ok(Some((asked, looked_into)))
    }

    /// The items that follow from completing a nonterminal in a state, sorted, and whether the text is then a
    /// sentence; `None` if nothing there waits for it.
    fn comes_to(
        &mut self,
        state: StateId,
        lhs: NonterminalId,
        looked_into: &mut LookedInto,
    ) -> Result<Option<(Vec<Item>, bool)>, RecognizerError> {
        let mut seeds = Vec::new();
        self.all_waiting(state, Symbol::Nonterminal(lhs), &mut seeds)?;
        if seeds.is_empty() || !self.has_budget(seeds.len()) {
            return Ok(None);
        }
        let Completed { mut items, is_sentence, reach } = self.close(seeds)?;
        looked_into.add(reach.as_deref());
        items.sort_unstable();
        Ok(Some((items, is_sentence)))
    }
}
