//! Sweeps beside what is known: only what differs is walked.
//!
//! [`Beside`] is a sweep beside the walk of a common automaton (see [`crate::common`]), [`Pairs`] one beside
//! an earlier sweep of the same language: from both places the trie is walked at once, and where both come to
//! one place, what is below the node is the same. In a string that has to contain something, all places but
//! for those near it come to one after a few characters.

use std::sync::Arc;

use anygram_grammar::automata::Nature;
use anygram_lexer::LexerError;
use anygram_lexer::transducer::{Lexing, Place, Transducer};
use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::common::{Bounds, Difference, Fate, Known, NOWHERE as NO_STATE, Telling, Walked};
use crate::sweep::{Group, Growing, NOWHERE, PlaceId, Sweep, Sweeper};
use crate::tokens::Tokens;

/// A sweep beside the walk of a common automaton.
pub(crate) struct Beside {
    walked: Arc<Walked>,
    difference: Difference,
    /// By place the state of the common automaton that it stands for, and within which bounds.
    natures: FxHashMap<PlaceId, Option<(Known, Nature)>>,
    /// That of the place that was asked for last, which is mostly the next one too.
    last: (PlaceId, Option<(Known, Nature)>),
    /// By state of the common automaton a place that stands for it, and the only terminal of all of them.
    same: Vec<Option<Place>>,
    terminal: Option<u32>,
    /// The bounds that all of them have, counted from the start, as far as they are known.
    least: Option<u64>,
    most: Option<u64>,
    /// Behind so many characters pieces are long enough, and so many they may have.
    enough: u64,
    longest: u64,
}

/// Where a sweep beside a common walk is: the place, the state there, and the characters that it counts.
type At = (PlaceId, Known, u64);

impl Beside {
    pub fn new(walked: Arc<Walked>) -> Self {
        Self {
            same: vec![None; walked.n_states()],
            walked,
            difference: Difference::default(),
            natures: FxHashMap::default(),
            last: (NOWHERE, None),
            terminal: None,
            least: None,
            most: None,
            enough: u64::MAX,
            longest: 0,
        }
    }

    /// Walks the trie where the sweep from a place does something else.
    pub fn walk(&mut self, sweeper: &mut Sweeper, start: Place) -> Result<(), LexerError> {
        let (trie, start) = (sweeper.trie, (sweeper.begin(start), 0, 0));
        let mut ancestors = Vec::new();
        // The whole trie may be common.
        if self.is_same(sweeper, start) {
            return Ok(());
        }
        for (child, byte, height) in trie.root_children() {
            // At the first byte, where a piece cannot end before, what is the same needs no look at the node.
            let ((known, is_counted), next) =
                (self.walked.step(0, byte), sweeper.lead(start.0, byte, height)?);
            let is_same = match next {
                NOWHERE => known == NO_STATE,
                _ => known != NO_STATE && self.is_same(sweeper, (next, known, u64::from(is_counted))),
            };
            if !is_same {
                let enter = |&before: &At, at| self.enter(sweeper, before, at);
                trie.descend_with(&mut ancestors, trie.subtree(child), start, enter)?;
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        sweeper: &mut Sweeper,
        (before, known, count): At,
        at: NodeId,
    ) -> Result<Option<At>, LexerError> {
        self.difference.note_before(at);
        let (next, _) = sweeper.follow(before, at)?;
        let (known, is_counted) = self.walked.step(known, sweeper.trie.byte(at));
        let here = (next, known, count + u64::from(is_counted));
        if next == NOWHERE {
            self.difference.note_below(sweeper.trie, at);
            return Ok(None);
        }
        if known != NO_STATE && self.is_same(sweeper, here) {
            return Ok(None);
        }
        self.difference.note(sweeper.trie, at);
        let node = sweeper.trie.node(at);
        sweeper.add(next, node.lo, node.own_hi);
        Ok(Some(here))
    }

    /// Whether what tokens do from a group is what they do from a state of the common automaton, within the
    /// bounds that all have.
    fn is_same(&mut self, sweeper: &Sweeper, (id, known, count): At) -> bool {
        if self.last.0 != id {
            let nature = match self.natures.get(&id) {
                Some(&nature) => nature,
                None => {
                    let found = self.nature(sweeper.lexing, sweeper.place(id));
                    self.natures.insert(id, found);
                    found
                }
            };
            self.last = (id, nature);
        }
        let Some((_, nature)) = self.last.1.filter(|nature| nature.0 == known) else { return false };
        let is_same = self.has_bounds(nature, self.walked.is_end(known), count);
        if is_same {
            self.same[known as usize].get_or_insert_with(|| sweeper.place(id));
        }
        is_same
    }

    /// The state of the common automaton that a place stands for, and its nature.
    fn nature(&mut self, lexing: &Lexing, place: Place) -> Option<(Known, Nature)> {
        let nature = lexing.lexicon.union.nature(place.state())?;
        let known = self.walked.of_nature(nature.number)?;
        // All that stands for common states has one terminal: that of the first that does.
        (*self.terminal.get_or_insert(nature.label) == nature.label).then_some((known, nature))
    }

    /// Whether a place that so many characters lead to has the bounds of the others, if there are any yet.
    fn has_bounds(&mut self, nature: Nature, is_end: bool, count: u64) -> bool {
        // Where a piece is long enough, or at its end, its bounds are not seen any more.
        let least = (nature.least > 0).then(|| nature.least + count);
        let most = (!is_end).then(|| nature.most.saturating_add(count));
        let (enough, longest) = (self.enough.min(count), self.longest.max(count));
        let is_one = |known: Option<u64>, own: Option<u64>| known.is_none() || own.is_none() || known == own;
        let (least_of_all, most_of_all) = (least.or(self.least), most.or(self.most));
        let enough = if least.is_none() { enough } else { self.enough };
        if !is_one(self.least, least)
            || !is_one(self.most, most)
            || least_of_all.is_some_and(|least| least > enough)
            || most_of_all.is_some_and(|most| most < longest)
        {
            return false;
        }
        (self.least, self.most) = (least_of_all, most_of_all);
        (self.enough, self.longest) = (enough, longest);
        true
    }

    /// The sweep; `None` if what is common cannot be told here.
    pub fn finish(
        self,
        sweeper: Sweeper,
        telling: Telling,
        n_words: usize,
    ) -> Result<Option<Sweep>, LexerError> {
        let (lexing, trie) = (sweeper.lexing, sweeper.trie);
        let union = &lexing.lexicon.union;
        let gone = self.difference.gone(trie, n_words);
        let (mut all, mut asked) = (Vec::new(), sweeper.asked);
        let bounds = Bounds { least: self.least.unwrap_or(0), most: self.most.unwrap_or(u64::MAX) };
        let has_bounds = bounds.least > 0 || bounds.most < u64::MAX;
        let mut places = Places { lexing, fillers: Vec::new() };
        for fate in &self.walked.fates {
            // Where the length has bounds, tokens lead to as many places as they have lengths.
            let is_counted = telling == Telling::States && has_bounds && !fate.is_end();
            let merged = (!is_counted).then(|| self.walked.within(fate, bounds, trie, n_words));
            let by_count = match is_counted {
                true => self.walked.by_count(fate, trie, n_words),
                false => &[],
            };
            let merged = merged.as_deref().map(|within| (None, within));
            let by_count = by_count.iter().filter(|(count, _)| *count <= bounds.most);
            let parts = by_count.map(|(count, within)| (Some(*count), within)).chain(merged);
            for (count, within) in parts {
                let (tokens, mut tops) = (within.tokens.without(&gone), self.difference.tops(&within.tops));
                if tokens.is_empty() && tops.is_empty() {
                    continue;
                }
                let place = self.place(&mut places, sweeper.transducer, fate, count)?;
                let Some(place) = place else { return Ok(None) };
                let mut follow = vec![None; union.n_classes()];
                tops.retain(|&top| {
                    let (byte, class) = (trie.byte(top), union.class(trie.byte(top)));
                    asked.insert(byte, byte);
                    *follow[class].get_or_insert_with(|| sweeper.transducer.can_follow(lexing, place, class))
                });
                all.push(Group::new(place, tokens, tops));
            }
        }
        all.extend(sweeper.finish(n_words));
        Ok(Some(Sweep { groups: all.into(), asked }))
    }

    /// A place of a fate: one that was met, or where its path leads; with so many characters, if that says
    /// which it is.
    fn place(
        &self,
        places: &mut Places,
        transducer: &mut Transducer,
        fate: &Fate,
        count: Option<u64>,
    ) -> Result<Option<Place>, LexerError> {
        if let (Some(met), None) = (self.same[fate.state as usize], count) {
            return Ok(Some(met));
        }
        let union = &places.lexing.lexicon.union;
        let Some(start) = self.same[0] else { return Ok(None) };
        // Where the piece may not end yet, it is made longer first.
        let least = || union.nature(start.state()).map_or(0, |nature| nature.least);
        let n_fillers = count.unwrap_or_else(least).saturating_sub(fate.n_in_path);
        let Some(filler) = self.walked.filler(0) else { return Ok(None) };
        let mut place = places.behind(transducer, start, filler, n_fillers)?;
        for &byte in &fate.path {
            let Some(from) = place else { break };
            place = transducer.step_place(places.lexing, from, union.class(byte))?;
        }
        let is_right = |place: &Place| {
            union.nature(place.state()).is_some_and(|nature| {
                Some(nature.label) == self.terminal
                    && self.walked.of_nature(nature.number) == Some(fate.state)
            })
        };
        Ok(place.filter(is_right))
    }
}

/// The places behind so many characters each of which leads from a state of the common automaton back to it.
struct Places<'a> {
    lexing: &'a Lexing,
    fillers: Vec<Option<Place>>,
}

impl Places<'_> {
    fn behind(
        &mut self,
        transducer: &mut Transducer,
        start: Place,
        filler: u8,
        n: u64,
    ) -> Result<Option<Place>, LexerError> {
        if self.fillers.is_empty() {
            self.fillers.push(Some(start));
        }
        while let Some(&Some(last)) = self.fillers.last()
            && self.fillers.len() as u64 <= n
        {
            let class = self.lexing.lexicon.union.class(filler);
            self.fillers.push(transducer.step_place(self.lexing, last, class)?);
        }
        Ok(self.fillers.get(n as usize).copied().flatten())
    }
}

/// A sweep that others are walked beside.
#[derive(Clone)]
pub(crate) struct Base {
    /// From where.
    pub start: Place,
    /// What it found.
    pub sweep: Arc<Sweep>,
}

/// A sweep beside an earlier one.
#[derive(Default)]
pub(crate) struct Pairs {
    difference: Difference,
}

impl Pairs {
    /// Walks the trie where the sweep from a place does something else than the base.
    pub fn walk(&mut self, sweeper: &mut Sweeper, base: Place, start: Place) -> Result<(), LexerError> {
        let trie = sweeper.trie;
        let pair = (sweeper.begin(base), sweeper.begin(start));
        let mut ancestors = Vec::new();
        for (child, byte, height) in trie.root_children() {
            let next = sweeper.lead(pair.1, byte, height)?;
            if next != sweeper.lead(pair.0, byte, height)? {
                let enter = |&before: &(PlaceId, PlaceId), at| self.enter(sweeper, before, at);
                trie.descend_with(&mut ancestors, trie.subtree(child), pair, enter)?;
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        sweeper: &mut Sweeper,
        (base, before): (PlaceId, PlaceId),
        at: NodeId,
    ) -> Result<Option<(PlaceId, PlaceId)>, LexerError> {
        let trie = sweeper.trie;
        self.difference.note_before(at);
        let (next, level) = sweeper.follow(before, at)?;
        let base = sweeper.look(base, at, level)?;
        if next == base {
            return Ok(None);
        }
        let node = trie.node(at);
        if next == NOWHERE {
            self.difference.note_below(trie, at);
            return Ok(None);
        }
        if sweeper.returns(next, at, level)? {
            self.difference.note_below(trie, at);
            sweeper.add(next, node.lo, node.hi);
            return Ok(None);
        }
        self.difference.note(trie, at);
        sweeper.add(next, node.lo, node.own_hi);
        Ok(Some((base, next)))
    }

    /// The sweep. Cost: a copy of each row in which something differs.
    pub fn finish(self, base: &Sweep, sweeper: Sweeper, n_words: usize) -> Sweep {
        let (trie, mut asked) = (sweeper.trie, base.asked);
        asked.extend(sweeper.asked);
        let gone = self.difference.gone(trie, n_words);
        let mut own: FxHashMap<Place, Growing> = FxHashMap::default();
        let mut order = Vec::new();
        for group in sweeper.gathered() {
            order.push(group.place);
            own.insert(group.place, group);
        }
        let mut all = Vec::new();
        for group in &base.groups {
            all.extend(self.joined(group, &gone, own.remove(&group.place), trie, n_words));
        }
        let left = order.into_iter().filter_map(|place| own.remove(&place));
        all.extend(left.filter_map(|group| group.finish(trie, n_words)));
        Sweep { groups: all.into(), asked }
    }

    /// A group of the base with what comes to its place instead of what is gone.
    fn joined(
        &self,
        group: &Group,
        gone: &Tokens,
        own: Option<Growing>,
        trie: &TokenTrie,
        n_words: usize,
    ) -> Option<Group> {
        let mut tokens = group.tokens().without(gone);
        if own.is_none() && Arc::ptr_eq(&tokens, group.tokens()) && !self.difference.knows_any(group.tops()) {
            return Some(group.clone());
        }
        let mut tops = self.difference.tops(group.tops());
        if let Some(own) = own {
            tops.extend(&own.tops);
            tops.sort_unstable();
            let more = own.token_ids(trie);
            if !more.is_empty() {
                tokens = Arc::new(tokens.with(more, n_words));
            }
        }
        (!tokens.is_empty() || !tops.is_empty()).then(|| Group::new(group.place, tokens, tops))
    }
}
