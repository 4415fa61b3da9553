//! Where one piece, or ignored ones, lead from a leftover: walks of automata over tokens.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anygram_bits::CompactSet;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::TerminalId;
use anygram_lexer::LexerError;
use anygram_lexer::dfa::{DEAD, Dfa, START};
use anygram_lexer::transducer::Lexing;
use anygram_lexer::union::Union;
use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use super::leftovers::{Merger, Reached};
use super::{Costs, Leftover, NEVER};

/// What walking tokens with a terminal comes to.
#[derive(Default, Clone, Debug)]
pub(super) struct Walked {
    /// Whether the terminal can end with a token.
    at_boundary: bool,
    /// The subtrees that may follow where it ends inside a token.
    tops: Vec<u32>,
    /// The states of its automaton in which it goes on beyond the end of a token.
    beyond: Vec<u32>,
    /// Whether a limit kept some of that from being known.
    is_cut: bool,
}

impl Walked {
    /// Bytes, roughly.
    pub(super) fn memory_usage(&self) -> usize {
        4 * (self.tops.len() + self.beyond.len()) + 80
    }
}

/// One terminal's automaton, as the union of all sees it.
#[derive(Debug)]
pub(super) struct Automaton {
    goes_on: Vec<bool>,
    /// The state for each state of the union automaton in which the terminal is alive.
    of_union: FxHashMap<u32, u32>,
}

/// The automaton of one terminal, to be walked.
pub(super) enum Single<'a> {
    /// Made from its pattern.
    Own(&'a Dfa, Arc<Automaton>),
    /// In a union that grows its states are those of the union in which it is alive. They may be endless, so
    /// walks give up: after [`STEPS_OF_GIVEN`], and behind a state that only stands for others
    /// ([`Union::alike`]: the next token does the same, but where it leads to is another state).
    Given { union: &'a Union, terminal: usize, height: usize },
}

/// Nodes of the trie that are looked at for all ends of a given terminal from one state.
pub(super) const STEPS_OF_GIVEN: usize = 600_000;

/// States of a given terminal behind one token from which it is walked on; more are taken to be endless.
pub(super) const STATES_OF_GIVEN: usize = 64;

/// What a byte does to the piece of one terminal.
pub(super) struct Next {
    state: u32,
    accepts: bool,
    goes_on: bool,
}

impl Single<'_> {
    /// The state before the first byte; `None` if a limit is hit.
    pub(super) fn start(&self) -> Option<u32> {
        match self {
            Self::Own(..) => Some(START),
            Self::Given { union, terminal, .. } => {
                let wanted = CompactSet::from_sorted(terminal + 1, vec![*terminal as u32]);
                union.start_of(&wanted).ok()
            }
        }
    }

    /// How many states there are, if that is known.
    pub(super) fn n_states(&self) -> usize {
        match self {
            Self::Own(dfa, _) => dfa.n_states(),
            Self::Given { .. } => 0,
        }
    }

    /// Where a byte leads; fails if a limit is hit.
    #[inline]
    pub(super) fn step(&self, state: u32, byte: u8) -> Result<Option<Next>, LexerError> {
        match self {
            Self::Own(dfa, automaton) => {
                let state = dfa.step(state, byte);
                let [accepts, goes_on] = [&dfa.accepting, &automaton.goes_on].map(|all| all[state as usize]);
                Ok((state != DEAD).then_some(Next { state, accepts, goes_on }))
            }
            Self::Given { union, terminal, .. } => {
                let state = union.try_step(state, union.class(byte))?;
                let accepts = union.accepts(state).contains(*terminal);
                let goes_on = union.live(state).contains(*terminal);
                Ok((accepts || goes_on).then_some(Next { state, accepts, goes_on }))
            }
        }
    }

    /// A state that does the same within one token.
    pub(super) fn alike(&self, state: u32) -> u32 {
        match self {
            Self::Own(..) => state,
            Self::Given { union, height, .. } => union.alike(state, *height).unwrap_or(state),
        }
    }

    /// Nodes of the trie that may be looked at.
    pub(super) fn most_steps(&self) -> usize {
        match self {
            Self::Own(..) => usize::MAX,
            Self::Given { .. } => STEPS_OF_GIVEN,
        }
    }
}

/// A set of states: a row for those that there are, if that is known.
pub(super) struct States {
    row: Vec<bool>,
    others: FxHashSet<u32>,
}

impl States {
    pub(super) fn new(n_states: usize) -> Self {
        Self { row: vec![false; n_states], others: FxHashSet::default() }
    }

    /// Adds a state and says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, state: u32) -> bool {
        match self.row.get_mut(state as usize) {
            Some(is_in) => !std::mem::replace(is_in, true),
            None => self.others.insert(state),
        }
    }

    pub(super) fn sorted(&self) -> Vec<u32> {
        let of_row = (0..).zip(&self.row).filter_map(|(state, &is_in)| is_in.then_some(state));
        let mut all: Vec<u32> = of_row.chain(self.others.iter().copied()).collect();
        all.sort_unstable();
        all
    }
}

impl Costs {
    pub(super) fn automaton(&mut self, lexing: &Lexing, terminal: TerminalId, dfa: &Dfa) -> Arc<Automaton> {
        if let Some(known) = &self.automata[terminal.index()] {
            return known.clone();
        }
        let goes_on = (0..dfa.n_states() as u32).map(|state| dfa.can_go_on(state)).collect();
        let union = &lexing.lexicon.union;
        let mut of_union = FxHashMap::from_iter([(START, START)]);
        let mut agenda = vec![(START, START)];
        while let Some((in_union, state)) = agenda.pop() {
            for &byte in union.samples() {
                let (next, own) = (union.step(in_union, union.class(byte)), dfa.step(state, byte));
                if own != DEAD && of_union.insert(next, own).is_none() {
                    agenda.push((next, own));
                }
            }
        }
        let automaton = Arc::new(Automaton { goes_on, of_union });
        self.automata[terminal.index()] = Some(automaton.clone());
        automaton
    }

    /// The automaton of a terminal; `None` if it is a token that the grammar names.
    pub(super) fn single<'a>(&mut self, lexing: &'a Lexing, terminal: TerminalId) -> Option<Single<'a>> {
        let dfa = lexing.dfa(terminal);
        if let Some(dfa) = dfa
            && !lexing.is_growing()
        {
            return Some(Single::Own(dfa, self.automaton(lexing, terminal, dfa)));
        }
        let (union, height, terminal) = (&lexing.lexicon.union, self.height, terminal.index());
        let has_bytes = dfa.is_some() || lexing.is_given(TerminalId::new(terminal));
        has_bytes.then_some(Single::Given { union, terminal, height })
    }

    /// Walks subtrees with a terminal that is in `state` before their first byte.
    pub(super) fn walk(
        &self,
        trie: &TokenTrie,
        single: &Single<'_>,
        state: u32,
        tops: impl Iterator<Item = NodeId>,
        work: &mut Work,
    ) -> Result<Walked, Stopped> {
        let mut walked = Walked::default();
        let mut beyond = States::new(single.n_states());
        let mut left = single.most_steps();
        for top in tops {
            let mut n_steps = 0;
            let walk = trie.descend(trie.subtree(top), state, |&before, at| {
                n_steps += 1;
                if n_steps > left {
                    return Err(None::<LexerError>);
                }
                let Some(next) = single.step(before, trie.byte(at)).map_err(Some)? else { return Ok(None) };
                let is_token = !trie.tokens_at(at).is_empty();
                if next.accepts {
                    walked.at_boundary |= is_token;
                    let may_follow = |child: &NodeId| {
                        let longer = || single.step(next.state, trie.byte(*child));
                        !self.owes || !longer().is_ok_and(|next| next.is_some_and(|next| next.accepts))
                    };
                    walked.tops.extend(
                        trie.children(at).filter(may_follow).map(|child| self.subtrees.same[child.index()]),
                    );
                }
                if !next.goes_on {
                    return Ok(None);
                }
                if is_token {
                    beyond.insert(next.state);
                }
                Ok(Some(next.state))
            });
            work.spend(n_steps)?;
            left = left.saturating_sub(n_steps);
            if walk.is_err() {
                walked.is_cut = true;
                break;
            }
        }
        walked.beyond = beyond.sorted();
        work.spend(walked.tops.len() + single.n_states() + walked.beyond.len())?;
        walked.tops.sort_unstable();
        walked.tops.dedup();
        Ok(walked)
    }

    /// From a token boundary, with a terminal in progress: where the ends of it lead. Cost 0 is paid by
    /// nobody here: the piece is not yet at its end.
    pub fn finish(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        state: u32,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        if let Some(known) = self.finishes.get(&(terminal, state)) {
            return Ok(known.clone());
        }
        let first = Walked { beyond: vec![state], ..Walked::default() };
        let reached = self.go_on(lexing, trie, terminal, first, work)?;
        self.finishes.insert((terminal, state), reached.clone());
        Ok(reached)
    }

    /// The same without a look at what the terminal may go on with: it ends with or within the next token,
    /// anywhere.
    pub fn finish_anywhere(&mut self, trie: &TokenTrie) -> Reached {
        let mut reached = Merger::default();
        self.add_anything(trie, &mut reached, 1);
        reached.finish()
    }

    /// The state of a terminal's automaton for a state of the union automaton; `None` if the terminal is not
    /// alive there.
    pub fn state_in(&mut self, lexing: &Lexing, terminal: TerminalId, union: u32) -> Option<u32> {
        if lexing.is_growing() {
            return lexing.lexicon.union.live(union).contains(terminal.index()).then_some(union);
        }
        let dfa = lexing.dfa(terminal)?;
        self.automaton(lexing, terminal, dfa).of_union.get(&union).copied()
    }

    /// Where a terminal leads from a leftover, without ignored pieces before it.
    pub fn read(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        from: Leftover,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        let Some(single) = self.single(lexing, terminal) else {
            // A token that the grammar names stands between tokens.
            return Ok(if from == Leftover::NONE { Arc::from([(Leftover::NONE, 1)]) } else { Arc::from([]) });
        };
        let Some(start) = single.start() else {
            let mut reached = Merger::default();
            self.add_anything(trie, &mut reached, u32::from(from == Leftover::NONE));
            return Ok(reached.finish());
        };
        let most = lexing.most_tokens(terminal);
        if from == Leftover::NONE && most == u32::MAX {
            return self.finish(lexing, trie, terminal, start, work);
        }
        if let Some(known) = self.reads.get(&(terminal, from)) {
            return Ok(known.clone());
        }
        let reached = if from == Leftover::NONE {
            within(self.finish(lexing, trie, terminal, start, work)?, most)
        } else {
            let tops = self.leftovers[from.index()].clone();
            let walked = self.walk(trie, &single, start, tops.iter().map(|&top| NodeId(top)), work)?;
            // What is left of a token is one of those that have bytes in the piece.
            within(self.go_on(lexing, trie, terminal, walked, work)?, most.saturating_sub(1))
        };
        self.reads.insert((terminal, from), reached.clone());
        Ok(reached)
    }

    /// From what a terminal comes to within a token to all that it comes to over further ones.
    pub(super) fn go_on(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        first: Walked,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        let Some(single) = self.single(lexing, terminal) else { return Ok(Arc::from([])) };
        let mut seen = States::new(single.n_states());
        let mut reached = Merger::default();
        let (mut level, mut cost) = (first, 0);
        let (before, mut stands_for_others) = (work.used(), false);
        // What comes behind the least cost is worth little, and can be without end.
        let is_given = lexing.is_given(terminal);
        loop {
            if level.is_cut {
                self.add_anything(trie, &mut reached, cost);
                return Ok(reached.finish());
            }
            reached.add(self, trie, level.at_boundary, std::mem::take(&mut level.tops), cost);
            cost += 1;
            let mut states = std::mem::take(&mut level.beyond);
            let is_enough = stands_for_others || is_given && reached.has_boundary();
            if is_enough && !states.is_empty() {
                self.add_anything(trie, &mut reached, cost);
                return Ok(reached.finish());
            }
            states.retain(|&state| seen.insert(state));
            if is_given && states.len() > STATES_OF_GIVEN {
                self.add_anything(trie, &mut reached, cost);
                return Ok(reached.finish());
            }
            if states.is_empty() {
                return Ok(reached.finish());
            }
            level = Walked::default();
            for &state in &states {
                if level.is_cut || (work.used() - before) as usize > single.most_steps() {
                    level.is_cut = true;
                    break;
                }
                let alike = single.alike(state);
                stands_for_others |= alike != state;
                let walked = match self.walks.get(&(terminal, alike)) {
                    Some(known) => known.clone(),
                    None => {
                        let tops = trie.children(TokenTrie::ROOT);
                        let walked = Arc::new(self.walk(trie, &single, alike, tops, work)?);
                        self.walks.insert((terminal, alike), walked.clone());
                        walked
                    }
                };
                work.spend(1 + walked.tops.len())?;
                level.is_cut |= walked.is_cut;
                level.at_boundary |= walked.at_boundary;
                level.tops.extend_from_slice(&walked.tops);
                level.beyond.extend_from_slice(&walked.beyond);
            }
        }
    }

    /// Where any number of ignored pieces lead, none included.
    pub(super) fn skip(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        from: Leftover,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        if let Some(known) = self.skips.get(&from) {
            return Ok(known.clone());
        }
        let mut costs = FxHashMap::from_iter([(from, 0)]);
        let mut queue = BinaryHeap::from([Reverse((0, from))]);
        let mut reached: Vec<(Leftover, u32)> = Vec::new();
        let mut at_boundary = None;
        while let Some(Reverse((cost, mut leftover))) = queue.pop() {
            if costs.get(&leftover).is_some_and(|&least| least < cost) {
                continue;
            }
            if leftover == Leftover::NONE {
                at_boundary = Some(cost);
            } else if at_boundary.is_some_and(|least| least < cost) {
                let Some(left) = self.uncovered(trie, leftover) else { continue };
                if left != leftover && costs.insert(left, cost).is_some_and(|least| least <= cost) {
                    continue;
                }
                leftover = left;
            }
            reached.push((leftover, cost));
            for ignored in lexing.lexicon.ignored.iter().map(TerminalId::new) {
                for &(to, more) in &*self.read(lexing, trie, ignored, leftover, work)? {
                    work.spend(1)?;
                    let least = costs.entry(to).or_insert(NEVER);
                    if cost + more < *least {
                        *least = cost + more;
                        queue.push(Reverse((cost + more, to)));
                    }
                }
            }
        }
        let reached: Reached = reached.into();
        self.skips.insert(from, reached.clone());
        Ok(reached)
    }

    /// Where a terminal leads from a leftover, after ignored pieces if need be.
    pub(super) fn read_after_skips(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        terminal: TerminalId,
        from: Leftover,
        work: &mut Work,
    ) -> Result<Reached, Stopped> {
        if let Some(known) = self.reads_after_skips.get(&(terminal, from)) {
            return Ok(known.clone());
        }
        let mut found: Vec<(u32, Leftover)> = Vec::new();
        for &(leftover, cost) in &*self.skip(lexing, trie, from, work)? {
            let read = self.read(lexing, trie, terminal, leftover, work)?;
            found.extend(read.iter().map(|&(to, more)| (cost + more, to)));
        }
        found.sort_unstable();
        let mut merger = Merger::default();
        for level in found.chunk_by(|a, b| a.0 == b.0) {
            let at_boundary = level.iter().any(|&(_, to)| to == Leftover::NONE);
            let tops: Vec<u32> =
                level.iter().flat_map(|&(_, to)| self.leftovers[to.index()].iter().copied()).collect();
            work.spend(1 + tops.len())?;
            merger.add(self, trie, at_boundary, tops, level[0].0);
        }
        let reached = merger.finish();
        self.reads_after_skips.insert((terminal, from), reached.clone());
        Ok(reached)
    }

    /// The least cost of ending the text at a leftover, with ignored pieces if need be.
    pub(super) fn end(
        &mut self,
        lexing: &Lexing,
        trie: &TokenTrie,
        from: Leftover,
        work: &mut Work,
    ) -> Result<u32, Stopped> {
        let skipped = self.skip(lexing, trie, from, work)?;
        Ok(skipped.iter().find(|&&(to, _)| to == Leftover::NONE).map_or(NEVER, |&(_, cost)| cost))
    }
}

/// What is reached over at most so many tokens.
pub(super) fn within(reached: Reached, most: u32) -> Reached {
    match reached.iter().all(|&(_, cost)| cost <= most) {
        true => reached,
        false => reached.iter().filter(|&&(_, cost)| cost <= most).copied().collect(),
    }
}
