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

use crate::common::{Bounds, Difference, Known, NOWHERE as NO_STATE, Telling, Walked};
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
    /// By state of the common automaton a place that stands for it and the characters that lead there, as few
    /// as were met; and the only terminal of all of them.
    same: Vec<Option<(Place, u64)>>,
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
            let met = &mut self.same[known as usize];
            if met.is_none_or(|(_, fewest)| count < fewest) {
                *met = Some((sweeper.place(id), count));
            }
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
        let mut places = Places { lexing, hub: None, fillers: Vec::new() };
        places.hub = self.hub(lexing, sweeper.transducer)?;
        for (number, fate) in self.walked.fates.iter().enumerate() {
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
                let place = self.place(&mut places, sweeper.transducer, number, (count, bounds))?;
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

    /// The places that were met, each with its state and the characters that lead there.
    fn met(&self) -> impl Iterator<Item = (Known, Place, u64)> {
        (0..).zip(&self.same).filter_map(|(state, met)| met.map(|(place, count)| (state, place, count)))
    }

    /// A place from which characters lead back to its state, and how many lead there: as few as are found.
    fn hub(&self, lexing: &Lexing, transducer: &mut Transducer) -> Result<Option<(Place, u64)>, LexerError> {
        let Some((hub, _)) = self.walked.hub else { return Ok(None) };
        let ways = self.met().filter_map(|(state, place, count)| {
            let path = self.walked.path(state, hub)?;
            Some((count + path.n_counted, place, path))
        });
        let Some((count, from, path)) = ways.min_by_key(|way| (way.0, way.2.bytes.len())) else {
            return Ok(None);
        };
        Ok(behind(lexing, transducer, from, &path.bytes)?.map(|place| (place, count)))
    }

    /// A place of a fate: one that was met, or where a path leads from one; if that matters, with so many
    /// characters of those within bounds.
    fn place(
        &self,
        places: &mut Places,
        transducer: &mut Transducer,
        fate: usize,
        (count, bounds): (Option<u64>, Bounds),
    ) -> Result<Option<Place>, LexerError> {
        let (walked, to) = (&self.walked, self.walked.fates[fate].state);
        let is_it = |&(state, _, n): &(Known, Place, u64)| match count {
            None => walked.fate_of(state) == fate,
            Some(count) => (state, n) == (to, count),
        };
        if let Some((_, met, _)) = self.met().find(is_it) {
            return Ok(Some(met));
        }
        let found = match self.by_hub(places, transducer, to, count)? {
            None => self.by_path(places.lexing, transducer, to, count)?,
            found => found,
        };
        let left = |bound: u64| count.map(|count| bound.saturating_sub(count));
        let union = &places.lexing.lexicon.union;
        let is_right = |place: &Place| {
            union.nature(place.state()).is_some_and(|nature| {
                Some(nature.label) == self.terminal
                    && walked.of_nature(nature.number) == Some(to)
                    && left(bounds.least).is_none_or(|least| least == nature.least)
                    && (bounds.most == u64::MAX || left(bounds.most).is_none_or(|most| most == nature.most))
            })
        };
        Ok(found.filter(is_right))
    }

    /// A place of a state behind the hub, and behind so many characters; without a number, where a piece may
    /// end.
    fn by_hub(
        &self,
        places: &mut Places,
        transducer: &mut Transducer,
        to: Known,
        count: Option<u64>,
    ) -> Result<Option<Place>, LexerError> {
        let (Some((hub, filler)), Some((place, n))) = (self.walked.hub, places.hub) else { return Ok(None) };
        let Some(path) = self.walked.path(hub, to) else { return Ok(None) };
        let n_fillers = match count {
            Some(count) => count.checked_sub(n + path.n_counted),
            None => {
                let nature = places.lexing.lexicon.union.nature(place.state());
                Some(nature.map_or(0, |nature| nature.least).saturating_sub(path.n_counted))
            }
        };
        let Some(n_fillers) = n_fillers else { return Ok(None) };
        match places.filled(transducer, filler, n_fillers)? {
            Some(from) => behind(places.lexing, transducer, from, &path.bytes),
            None => Ok(None),
        }
    }

    /// A place of a state behind one that was met, and behind so many characters, if there is a number.
    fn by_path(
        &self,
        lexing: &Lexing,
        transducer: &mut Transducer,
        to: Known,
        count: Option<u64>,
    ) -> Result<Option<Place>, LexerError> {
        let is_so_long = |n: u64| count.is_none_or(|count| count == n);
        let way = self.met().find_map(|(state, from, n)| {
            let path = self.walked.path(state, to)?;
            is_so_long(n + path.n_counted).then_some((from, path))
        });
        way.map_or(Ok(None), |(from, path)| behind(lexing, transducer, from, &path.bytes))
    }
}

/// The place to which bytes lead from another.
fn behind(
    lexing: &Lexing,
    transducer: &mut Transducer,
    from: Place,
    bytes: &[u8],
) -> Result<Option<Place>, LexerError> {
    let mut place = Some(from);
    for &byte in bytes {
        let Some(from) = place else { break };
        place = transducer.step_place(lexing, from, lexing.lexicon.union.class(byte))?;
    }
    Ok(place)
}

/// Places by the characters that lead there.
struct Places<'a> {
    lexing: &'a Lexing,
    /// See [`Beside::hub`].
    hub: Option<(Place, u64)>,
    /// Those behind the hub and so many characters more.
    fillers: Vec<Option<Place>>,
}

impl Places<'_> {
    /// The place behind the hub and so many characters of one byte.
    fn filled(
        &mut self,
        transducer: &mut Transducer,
        filler: u8,
        n: u64,
    ) -> Result<Option<Place>, LexerError> {
        if self.fillers.is_empty() {
            self.fillers.push(self.hub.map(|hub| hub.0));
        }
        while let Some(&Some(last)) = self.fillers.last()
            && self.fillers.len() as u64 <= n
        {
            self.fillers.push(behind(self.lexing, transducer, last, &[filler])?);
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
