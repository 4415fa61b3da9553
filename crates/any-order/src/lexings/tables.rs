//! What fragments and gaps are lexed to, kept over calls (EPIC's memoized lexing).
//!
//! What a fragment does to a set of pieces, and what a gap does, depends on neither the canvas nor its other
//! parts. The tables hold no text but that of fragments, and belong to one constraint, so that no grammar
//! poisons another.

use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_lexer::transducer::Lexing;
use anygram_lexer::words::Words;
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use super::completions::{Item, Trie};
use super::lexemes::{FIRST, Lexeme, Lexemes};
use super::spell::{self, Pass, Way};
use crate::plan;

/// A piece in progress, and where in the trie of tokens: 0 unless a gap stands within a token.
pub(crate) type Element = (u32, Lexeme);

/// An interned set of elements.
pub(crate) type SetId = u32;

/// What a gap makes of a set of pieces.
pub(crate) struct Reach {
    /// All elements that can be in progress, the given ones among them.
    pub all: SetId,
    /// Those of them at which a token ends.
    pub out: SetId,
    /// Whether no piece need be in progress then.
    pub has_boundary: bool,
    /// Terminals that are read within the gap, with the element after them.
    edges: Vec<(TerminalId, Element)>,
    filler: Filler,
    /// The same with what the gap makes of that element, without what another of the same terminal covers;
    /// once it was asked for.
    leads: Option<Arc<[(TerminalId, u32)]>>,
}

/// A place within a fragment where a piece begins, or the boundary at its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Target {
    Inside(u32),
    End(Lexeme),
}

/// What a fragment makes of a set of pieces: terminals, and what is in progress at its end.
#[derive(Default)]
pub(crate) struct Outcome {
    pub edges: Vec<(TerminalId, Target)>,
    pub ends: SetId,
}

/// What is known of one fragment.
#[derive(Default)]
struct Fragment {
    places: Vec<(u32, Lexeme)>,
    ids: FxHashMap<(u32, Lexeme), u32>,
    from_places: Vec<Option<Arc<Outcome>>>,
    from_sets: FxHashMap<SetId, Arc<Outcome>>,
}

/// How a gap is filled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Filler {
    /// By tokens.
    Tokens,
    /// By any bytes.
    Bytes,
}

/// What one token, or what is left of some, makes of a set of pieces.
#[derive(Default)]
pub(crate) struct Hole {
    /// Terminals that are read within tokens, and what is left then.
    pub inside: Vec<(TerminalId, SetId)>,
    /// Terminals that end with a token, and the boundary.
    pub ends: Vec<(TerminalId, Lexeme)>,
    /// What is in progress behind a token.
    pub out: SetId,
}

/// Within a gap: how it is filled, a node of the trie and a boundary, a terminal, and to what it shall lead.
type WayKey = (Filler, u32, Lexeme, TerminalId);

/// What is known of lexing, kept over calls.
pub struct Tables {
    pub(super) lexing: Arc<Lexing>,
    pub(super) lexemes: Lexemes,
    sets: Vec<Box<[Element]>>,
    set_ids: FxHashMap<Box<[Element]>, SetId>,
    reaches: FxHashMap<(Filler, SetId), u32>,
    reach_list: Vec<Reach>,
    /// By all that can be in progress, which decides what is read: equal gaps are one.
    reach_ids: FxHashMap<(Filler, SetId), u32>,
    fragments: Vec<Fragment>,
    fragment_ids: FxHashMap<Box<[u8]>, u32>,
    subsets: FxHashMap<(SetId, SetId), bool>,
    n_entries: usize,
    /// For each class of bytes one that is a token of its own; `None` if some class has none, and gaps go
    /// over the trie.
    pub(super) single: Option<Vec<(u8, TokenId)>>,
    /// A byte of each class.
    pub(super) samples: Vec<u8>,
    /// Bytes of the shortest text of each terminal, and a short text that is ignored, once they are needed.
    shortest: Option<Box<[u32]>>,
    separator: Option<Option<Box<[u8]>>>,
    /// How terminals are spelled within a gap.
    pub(super) ways: FxHashMap<WayKey, Arc<[Way]>>,
    /// How pieces pass through holes, or gaps (`None`), without a terminal.
    pub(super) passes: FxHashMap<(Option<Trie>, Lexeme), Arc<[Pass]>>,
    holes: FxHashMap<(Trie, SetId), Arc<Hole>>,
    /// Some tokens of each kind; `None` if they are never asked for.
    few: Option<Arc<Rest>>,
}

/// Elements and edges that the tables may hold before they are begun afresh.
const MOST_ENTRIES: usize = 20_000_000;

impl Tables {
    /// Empty ones, of a lexing of the constraint's grammar; `few` are the tokens of [`Trie::Few`].
    pub fn new(constraint: &Constraint, lexing: Arc<Lexing>, few: Option<Arc<Rest>>) -> Self {
        let trie = constraint.vocabulary().trie();
        let union = &lexing.lexicon.union;
        let token_of = |byte: u8| {
            trie.child(TokenTrie::ROOT, byte).and_then(|node| trie.tokens_at(node).first().copied())
        };
        let mut classes: Vec<Option<(u8, TokenId)>> = vec![None; union.n_classes()];
        for byte in (0..=u8::MAX).rev() {
            let class = &mut classes[union.class(byte)];
            // Letters and such before control characters, which nobody wants to read.
            let found = token_of(byte).map(|token| (byte, token));
            *class = match (*class, found) {
                (Some((old, token)), Some((byte, _)))
                    if old.is_ascii_graphic() && !byte.is_ascii_graphic() =>
                {
                    Some((old, token))
                }
                (old, found) => found.or(old),
            };
        }
        let used: FxHashSet<usize> = union.samples().iter().map(|&byte| union.class(byte)).collect();
        let single = classes
            .iter()
            .enumerate()
            .filter(|(class, _)| used.contains(class))
            .map(|(_, single)| *single)
            .collect();
        let mut this = Self {
            lexemes: Lexemes::new(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            reaches: FxHashMap::default(),
            reach_list: Vec::new(),
            reach_ids: FxHashMap::default(),
            fragments: Vec::new(),
            fragment_ids: FxHashMap::default(),
            subsets: FxHashMap::default(),
            n_entries: 0,
            single,
            samples: union.samples().to_vec(),
            shortest: None,
            separator: None,
            ways: FxHashMap::default(),
            passes: FxHashMap::default(),
            holes: FxHashMap::default(),
            few,
            lexing: lexing.clone(),
        };
        this.intern(Vec::new());
        this
    }

    /// Begins afresh.
    pub fn clear(&mut self, constraint: &Constraint) {
        *self = Self::new(constraint, self.lexing.clone(), self.few.clone());
    }

    /// Whether so much is kept that it is better to begin afresh.
    pub fn is_full(&self) -> bool {
        self.n_entries > MOST_ENTRIES || self.lexemes.len() > self.lexing.limits().lexemes / 2
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.lexemes.memory_usage(&self.lexing) + self.n_entries * 16
    }

    /// The bytes of a short text of a terminal.
    pub(crate) fn shortest(&mut self, terminal: TerminalId) -> u32 {
        let lexing = &self.lexing;
        let all = self.shortest.get_or_insert_with(|| {
            let words = Words::new(&lexing.lexicon);
            let length = |at| words.shortest(at).map_or(1, |word| word.len() as u32);
            (0..lexing.cfg.n_terminals).map(length).collect()
        });
        all[terminal.index()]
    }

    /// A short text that is ignored: a blank if it is.
    pub fn separator(&mut self) -> Option<Box<[u8]>> {
        let lexing = &self.lexing;
        let find = || spell::separator(lexing).map(Vec::into_boxed_slice);
        self.separator.get_or_insert_with(find).clone()
    }

    pub(crate) fn set(&self, id: SetId) -> &[Element] {
        &self.sets[id as usize]
    }

    pub(crate) fn reach(&self, id: u32) -> &Reach {
        &self.reach_list[id as usize]
    }

    pub(crate) fn intern(&mut self, mut elements: Vec<Element>) -> SetId {
        elements.sort_unstable();
        elements.dedup();
        let fresh = self.sets.len() as u32;
        *self.set_ids.entry(elements.into()).or_insert_with_key(|elements| {
            self.sets.push(elements.clone());
            self.n_entries += elements.len() + 4;
            fresh
        })
    }

    /// The set of some elements without those that others cover.
    fn intern_uncovered(&mut self, mut elements: Vec<Element>) -> SetId {
        elements.sort_unstable_by_key(|&(node, lexeme)| (node, self.lexemes.state(lexeme), lexeme));
        elements.dedup();
        let mut kept = Vec::with_capacity(elements.len());
        let place = |&(node, lexeme): &Element| (node, self.lexemes.state(lexeme));
        for group in elements.chunk_by(|one, other| place(one) == place(other)) {
            let is_covered =
                |of: &Element| group.iter().any(|other| other != of && self.lexemes.covers(other.1, of.1));
            kept.extend(group.iter().filter(|element| !is_covered(element)));
        }
        self.intern(kept)
    }

    /// Whether whatever can be read from a set can be read from another.
    pub(crate) fn is_subset(&mut self, of: SetId, all: SetId) -> bool {
        let (sets, lexemes) = (&self.sets, &self.lexemes);
        let has = |&(node, lexeme): &Element| {
            let set = &sets[all as usize];
            let covers = |other: &Element| other.0 == node && lexemes.covers(other.1, lexeme);
            set.binary_search(&(node, lexeme)).is_ok() || set.iter().any(covers)
        };
        of == all || *self.subsets.entry((of, all)).or_insert_with(|| sets[of as usize].iter().all(has))
    }

    /// Whether no piece need be in progress.
    pub(crate) fn has_boundary(&self, set: SetId) -> bool {
        self.set(set).iter().any(|&(node, lexeme)| node == 0 && self.lexemes.is_boundary(lexeme))
    }

    /// What a gap makes of a set.
    pub(crate) fn gap(
        &mut self,
        constraint: &Constraint,
        filler: Filler,
        set: SetId,
        work: &mut Work,
    ) -> Result<u32, StepError> {
        if let Some(&known) = self.reaches.get(&(filler, set)) {
            return Ok(known);
        }
        let lexing = &*self.lexing.clone();
        let trie = constraint.vocabulary().trie();
        let mut all: Vec<Element> = self.set(set).to_vec();
        let mut seen: FxHashSet<Element> = all.iter().copied().collect();
        let mut edges: FxHashSet<(TerminalId, Element)> = FxHashSet::default();
        let specials: Vec<TerminalId> = match filler {
            Filler::Tokens => plan::specials(constraint).map(|(_, terminal)| terminal).collect(),
            Filler::Bytes => lexing.specials().to_vec(),
        };
        let bytes: Option<Vec<u8>> = match (filler, &self.single) {
            (Filler::Bytes, _) => Some(self.samples.clone()),
            (Filler::Tokens, Some(single)) => Some(single.iter().map(|&(byte, _)| byte).collect()),
            (Filler::Tokens, None) => None,
        };
        let mut next: Vec<(u8, u32)> = Vec::new();
        // What was met at each place of the union; what is covered by another need not be followed.
        let mut met: FxHashMap<(u32, u32), Vec<Lexeme>> = FxHashMap::default();
        let mut at = 0;
        while at < all.len() {
            let (node, lexeme) = all[at];
            at += 1;
            let lexemes = &self.lexemes;
            let met = met.entry((node, lexemes.state(lexeme))).or_default();
            if met.iter().any(|&other| lexemes.covers(other, lexeme)) {
                continue;
            }
            met.push(lexeme);
            if node == 0 && self.lexemes.is_boundary(lexeme) {
                let used = specials.iter().filter(|terminal| lexing.lexicon.used.contains(terminal.index()));
                edges.extend(used.map(|&terminal| (terminal, (0, FIRST))));
            }
            next.clear();
            match &bytes {
                Some(bytes) => next.extend(bytes.iter().map(|&byte| (byte, 0))),
                None => {
                    for child in trie.children(NodeId(node)) {
                        if !trie.tokens_at(child).is_empty() {
                            next.push((trie.byte(child), 0));
                        }
                        if trie.end(child).0 > child.0 + 1 {
                            next.push((trie.byte(child), child.0));
                        }
                    }
                }
            }
            work.spend(1 + next.len())?;
            for &(byte, node) in &next {
                let (stay, cuts) = self.lexemes.step(lexing, lexeme, byte)?;
                if let Some(stay) = stay
                    && seen.insert((node, stay))
                {
                    all.push((node, stay));
                }
                for cut in cuts.0..cuts.1 {
                    let cut = self.lexemes.cut(cut);
                    let after = (node, cut.after);
                    match cut.label {
                        Some(terminal) => {
                            edges.insert((terminal, after));
                        }
                        None if seen.insert(after) => all.push(after),
                        None => {}
                    }
                }
            }
        }
        let mut edges: Vec<(TerminalId, Element)> = edges.into_iter().collect();
        edges.sort_unstable();
        let lexemes = &self.lexemes;
        let of_terminal = |group: &[(TerminalId, Element)]| {
            let covers = |one: &Element, other: &Element| {
                one != other && one.0 == other.0 && lexemes.covers(one.1, other.1)
            };
            let is_uncovered =
                |edge: &&(TerminalId, Element)| !group.iter().any(|other| covers(&other.1, &edge.1));
            group.iter().filter(is_uncovered).copied().collect::<Vec<_>>()
        };
        let edges: Vec<_> = edges.chunk_by(|a, b| a.0 == b.0).flat_map(of_terminal).collect();
        let out = self.intern_uncovered(all.iter().copied().filter(|&(node, _)| node == 0).collect());
        let all = self.intern_uncovered(all);
        let has_boundary = self.has_boundary(out);
        self.n_entries += 2 * edges.len();
        let fresh = self.reach_list.len() as u32;
        let id = *self.reach_ids.entry((filler, all)).or_insert(fresh);
        if id == fresh {
            self.reach_list.push(Reach { all, out, has_boundary, edges, filler, leads: None });
        }
        self.reaches.insert((filler, set), id);
        Ok(id)
    }

    /// The terminals that are read within a gap, and what the gap makes of what is in progress after each.
    pub(crate) fn gap_leads(
        &mut self,
        constraint: &Constraint,
        reach: u32,
        work: &mut Work,
    ) -> Result<Arc<[(TerminalId, u32)]>, StepError> {
        if let Some(known) = &self.reach(reach).leads {
            return Ok(Arc::clone(known));
        }
        let Reach { filler, ref edges, .. } = *self.reach(reach);
        let edges = edges.clone();
        let mut leads: Vec<(TerminalId, u32)> = Vec::with_capacity(edges.len());
        for &(terminal, element) in &edges {
            let set = self.intern(vec![element]);
            leads.push((terminal, self.gap(constraint, filler, set, work)?));
        }
        leads.sort_unstable();
        leads.dedup();
        let mut kept: Vec<(TerminalId, u32)> = Vec::with_capacity(leads.len());
        for group in leads.chunk_by(|a, b| a.0 == b.0) {
            for &(terminal, one) in group {
                let all = self.reach(one).all;
                let covered = group.iter().any(|&(_, other)| {
                    let larger = self.reach(other).all;
                    other != one && all != larger && self.is_subset(all, larger)
                });
                work.spend(group.len())?;
                if !covered {
                    kept.push((terminal, one));
                }
            }
        }
        let leads: Arc<[_]> = kept.into();
        self.n_entries += leads.len();
        self.reach_list[reach as usize].leads = Some(Arc::clone(&leads));
        Ok(leads)
    }

    /// Keeps how pieces pass through a hole or gap.
    pub(crate) fn keep_passes(&mut self, key: (Option<Trie>, Lexeme), passes: Arc<[Pass]>) {
        self.n_entries += 8 + passes.iter().map(|(_, parts)| 4 + parts.len() / 8).sum::<usize>();
        self.passes.insert(key, passes);
    }

    /// The tokens that a hole may hold.
    pub(crate) fn trie<'a>(&'a self, constraint: &'a Constraint, trie: Trie) -> &'a TokenTrie {
        match &self.few {
            Some(few) if trie == Trie::Few => &few.trie,
            _ => constraint.vocabulary().trie(),
        }
    }

    /// What a hole makes of a set of pieces, at its start or within its tokens. Cost, once: the nodes of
    /// tries, times the pieces that are in progress there.
    pub(crate) fn hole(
        &mut self,
        constraint: &Constraint,
        of: Trie,
        set: SetId,
        work: &mut Work,
    ) -> Result<Arc<Hole>, StepError> {
        if let Some(known) = self.holes.get(&(of, set)) {
            return Ok(Arc::clone(known));
        }
        let lexing = &*self.lexing.clone();
        let few = self.few.clone();
        let trie = match &few {
            Some(few) if of == Trie::Few => &few.trie,
            _ => constraint.vocabulary().trie(),
        };
        let mut agenda: Vec<Element> = self.set(set).to_vec();
        let mut seen: FxHashSet<Element> = agenda.iter().copied().collect();
        let mut inside: FxHashMap<(TerminalId, Lexeme), Vec<Element>> = FxHashMap::default();
        let mut ends: FxHashSet<(TerminalId, Lexeme)> = FxHashSet::default();
        let mut out: FxHashSet<Element> = FxHashSet::default();
        while let Some((node, lexeme)) = agenda.pop() {
            for child in trie.children(NodeId(node)) {
                let is_end = !trie.tokens_at(child).is_empty();
                let goes_on = trie.end(child).0 > child.0 + 1;
                let (stay, cuts) = self.lexemes.step(lexing, lexeme, trie.byte(child))?;
                work.spend(1 + (cuts.1 - cuts.0) as usize)?;
                let cuts = (cuts.0..cuts.1).map(|cut| self.lexemes.cut(cut));
                let pieces = stay.map(|stay| (None, stay));
                for (label, after) in cuts.map(|cut| (cut.label, cut.after)).chain(pieces) {
                    match label {
                        None => {
                            if is_end {
                                out.insert((0, after));
                            }
                            if goes_on && seen.insert((child.0, after)) {
                                agenda.push((child.0, after));
                            }
                        }
                        Some(terminal) => {
                            if is_end {
                                ends.insert((terminal, after));
                            }
                            if goes_on {
                                inside.entry((terminal, after)).or_default().push((child.0, after));
                            }
                        }
                    }
                }
            }
        }
        let mut inside: Vec<(TerminalId, SetId)> =
            inside.into_iter().map(|((terminal, _), elements)| (terminal, self.intern(elements))).collect();
        inside.sort_unstable();
        if self.has_boundary(set) {
            ends.extend(plan::specials(constraint).map(|(_, terminal)| (terminal, FIRST)));
        }
        let mut ends: Vec<(TerminalId, Lexeme)> = ends.into_iter().collect();
        ends.sort_unstable();
        self.n_entries += 2 * (inside.len() + ends.len()) + 8;
        let hole = Arc::new(Hole { inside, ends, out: self.intern_uncovered(out.into_iter().collect()) });
        self.holes.insert((of, set), Arc::clone(&hole));
        Ok(hole)
    }

    /// What a fragment makes of pieces in progress at its start, or of a boundary within it.
    fn read(
        &mut self,
        text: &[u8],
        fragment: &mut Fragment,
        from: impl Iterator<Item = (u32, Lexeme)>,
        work: &mut Work,
    ) -> Result<Arc<Outcome>, StepError> {
        let lexing = &*self.lexing.clone();
        let n_bytes = text.len() as u32;
        let mut agenda: Vec<(u32, Lexeme)> = from.collect();
        let mut seen: FxHashSet<(u32, Lexeme)> = FxHashSet::default();
        let mut edges: FxHashSet<(TerminalId, Target)> = FxHashSet::default();
        let mut ends: Vec<Element> = Vec::new();
        work.spend(agenda.len())?;
        while let Some((at, lexeme)) = agenda.pop() {
            if at == n_bytes {
                ends.push((0, lexeme));
                continue;
            }
            let (stay, cuts) = self.lexemes.step(lexing, lexeme, text[at as usize])?;
            work.spend(1 + (cuts.1 - cuts.0) as usize)?;
            if let Some(stay) = stay
                && (at + 1 == n_bytes || seen.insert((at + 1, stay)))
            {
                agenda.push((at + 1, stay));
            }
            for cut in cuts.0..cuts.1 {
                let cut = self.lexemes.cut(cut);
                let Some(after) = self.lexemes.settled(lexing, cut.after, &text[at as usize + 1..]) else {
                    continue;
                };
                match cut.label {
                    None if at + 1 == n_bytes || seen.insert((at + 1, after)) => agenda.push((at + 1, after)),
                    None => {}
                    Some(terminal) if at + 1 == n_bytes => {
                        edges.insert((terminal, Target::End(after)));
                    }
                    Some(terminal) => {
                        let fresh = fragment.places.len() as u32;
                        let place = *fragment.ids.entry((at + 1, after)).or_insert_with(|| {
                            fragment.places.push((at + 1, after));
                            fragment.from_places.push(None);
                            fresh
                        });
                        edges.insert((terminal, Target::Inside(place)));
                    }
                }
            }
        }
        let mut edges: Vec<(TerminalId, Target)> = edges.into_iter().collect();
        edges.sort_unstable();
        self.n_entries += 2 * edges.len() + 8;
        Ok(Arc::new(Outcome { edges, ends: self.intern_uncovered(ends) }))
    }

    /// The number of a fragment.
    pub(crate) fn fragment(&mut self, text: &[u8]) -> u32 {
        if let Some(&known) = self.fragment_ids.get(text) {
            return known;
        }
        let fresh = self.fragments.len() as u32;
        self.fragments.push(Fragment::default());
        self.fragment_ids.insert(text.into(), fresh);
        self.n_entries += text.len() / 8 + 8;
        fresh
    }

    /// The byte before which a place within a fragment stands, and the boundary that it is.
    pub(crate) fn place(&self, fragment: u32, place: u32) -> (u32, Lexeme) {
        self.fragments[fragment as usize].places[place as usize]
    }

    /// Keeps how a terminal is spelled within a gap.
    pub(crate) fn keep_ways(&mut self, key: WayKey, ways: Arc<[Way]>) {
        self.n_entries += 8 + ways.iter().map(|(_, parts)| 4 + parts.len()).sum::<usize>();
        self.ways.insert(key, ways);
    }

    /// What a fragment makes of the pieces that are in progress at its start.
    pub(crate) fn enter(
        &mut self,
        (text, id): (&[u8], u32),
        set: SetId,
        work: &mut Work,
    ) -> Result<Arc<Outcome>, StepError> {
        if let Some(known) = self.fragments[id as usize].from_sets.get(&set) {
            return Ok(Arc::clone(known));
        }
        let mut fragment = std::mem::take(&mut self.fragments[id as usize]);
        let from: Vec<_> = self.set(set).iter().map(|&(_, lexeme)| (0, lexeme)).collect();
        let outcome = self.read(text, &mut fragment, from.into_iter(), work);
        if let Ok(outcome) = &outcome {
            fragment.from_sets.insert(set, Arc::clone(outcome));
        }
        self.fragments[id as usize] = fragment;
        outcome
    }

    /// What is read from a place within a fragment.
    pub(crate) fn go_on(
        &mut self,
        (text, id): (&[u8], u32),
        place: u32,
        work: &mut Work,
    ) -> Result<Arc<Outcome>, StepError> {
        if let Some(known) = &self.fragments[id as usize].from_places[place as usize] {
            return Ok(Arc::clone(known));
        }
        let mut fragment = std::mem::take(&mut self.fragments[id as usize]);
        let from = fragment.places[place as usize];
        let outcome = self.read(text, &mut fragment, [from].into_iter(), work);
        if let Ok(outcome) = &outcome {
            fragment.from_places[place as usize] = Some(Arc::clone(outcome));
        }
        self.fragments[id as usize] = fragment;
        outcome
    }
}

pub(crate) fn filler(item: &Item) -> Filler {
    if *item == Item::Anything { Filler::Bytes } else { Filler::Tokens }
}
