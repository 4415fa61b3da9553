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
use anygram_lexer::transducer::Lexing;
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use super::completions::Item;
use super::lexemes::{FIRST, Lexeme, Lexemes};
use crate::plan;

/// A piece in progress, and where in the trie of tokens: 0 unless a gap stands within a token.
pub(super) type Element = (u32, Lexeme);

/// An interned set of elements.
pub(super) type SetId = u32;

/// What a gap makes of a set of pieces.
pub(super) struct Reach {
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
pub(super) enum Target {
    Inside(u32),
    End(Lexeme),
}

/// What a fragment makes of a set of pieces: terminals, and what is in progress at its end.
#[derive(Default)]
pub(super) struct Outcome {
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
pub(super) enum Filler {
    /// By tokens.
    Tokens,
    /// By any bytes.
    Bytes,
}

/// What is known of lexing, kept over calls.
pub(super) struct Tables {
    pub lexemes: Lexemes,
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
    pub single: Option<Vec<(u8, TokenId)>>,
    /// A byte of each class.
    pub samples: Vec<u8>,
}

/// Elements and edges that the tables may hold before they are begun afresh.
const MOST_ENTRIES: usize = 20_000_000;

impl Tables {
    pub fn new(constraint: &Constraint) -> Self {
        let trie = constraint.vocabulary().trie();
        let union = &constraint.language().lexing().lexicon.union;
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
        };
        this.intern(Vec::new());
        this
    }

    /// Whether so much is kept that it is better to begin afresh.
    pub fn is_full(&self, lexing: &Lexing) -> bool {
        self.n_entries > MOST_ENTRIES || self.lexemes.len() > lexing.limits().lexemes / 2
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self, lexing: &Lexing) -> usize {
        self.lexemes.memory_usage(lexing) + self.n_entries * 16
    }

    pub fn set(&self, id: SetId) -> &[Element] {
        &self.sets[id as usize]
    }

    pub fn reach(&self, id: u32) -> &Reach {
        &self.reach_list[id as usize]
    }

    pub fn intern(&mut self, mut elements: Vec<Element>) -> SetId {
        elements.sort_unstable();
        elements.dedup();
        let fresh = self.sets.len() as u32;
        *self.set_ids.entry(elements.into()).or_insert_with_key(|elements| {
            self.sets.push(elements.clone());
            self.n_entries += elements.len() + 4;
            fresh
        })
    }

    /// Whether a set is part of another.
    pub fn is_subset(&mut self, of: SetId, all: SetId) -> bool {
        let sets = &self.sets;
        let has = |element: &Element| sets[all as usize].binary_search(element).is_ok();
        of == all || *self.subsets.entry((of, all)).or_insert_with(|| sets[of as usize].iter().all(has))
    }

    /// Whether no piece need be in progress.
    pub fn has_boundary(&self, set: SetId) -> bool {
        self.set(set).iter().any(|&(node, lexeme)| node == 0 && self.lexemes.is_boundary(lexeme))
    }

    /// What a gap makes of a set.
    pub fn gap(
        &mut self,
        constraint: &Constraint,
        filler: Filler,
        set: SetId,
        work: &mut Work,
    ) -> Result<u32, StepError> {
        if let Some(&known) = self.reaches.get(&(filler, set)) {
            return Ok(known);
        }
        let lexing = constraint.language().lexing();
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
        let mut at = 0;
        while at < all.len() {
            let (node, lexeme) = all[at];
            at += 1;
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
        let out = self.intern(all.iter().copied().filter(|&(node, _)| node == 0).collect());
        let all = self.intern(all);
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
    pub fn gap_leads(
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

    /// What a fragment makes of pieces in progress at its start, or of a boundary within it.
    fn read(
        &mut self,
        constraint: &Constraint,
        text: &[u8],
        fragment: &mut Fragment,
        from: impl Iterator<Item = (u32, Lexeme)>,
        work: &mut Work,
    ) -> Result<Arc<Outcome>, StepError> {
        let lexing = constraint.language().lexing();
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
        Ok(Arc::new(Outcome { edges, ends: self.intern(ends) }))
    }

    /// The number of a fragment.
    pub fn fragment(&mut self, text: &[u8]) -> u32 {
        if let Some(&known) = self.fragment_ids.get(text) {
            return known;
        }
        let fresh = self.fragments.len() as u32;
        self.fragments.push(Fragment::default());
        self.fragment_ids.insert(text.into(), fresh);
        self.n_entries += text.len() / 8 + 8;
        fresh
    }

    /// The boundary that a place within a fragment is.
    pub fn lexeme_at(&self, fragment: u32, place: u32) -> Lexeme {
        self.fragments[fragment as usize].places[place as usize].1
    }

    /// What a fragment makes of the pieces that are in progress at its start.
    pub fn enter(
        &mut self,
        constraint: &Constraint,
        (text, id): (&[u8], u32),
        set: SetId,
        work: &mut Work,
    ) -> Result<Arc<Outcome>, StepError> {
        if let Some(known) = self.fragments[id as usize].from_sets.get(&set) {
            return Ok(Arc::clone(known));
        }
        let mut fragment = std::mem::take(&mut self.fragments[id as usize]);
        let from: Vec<_> = self.set(set).iter().map(|&(_, lexeme)| (0, lexeme)).collect();
        let outcome = self.read(constraint, text, &mut fragment, from.into_iter(), work);
        if let Ok(outcome) = &outcome {
            fragment.from_sets.insert(set, Arc::clone(outcome));
        }
        self.fragments[id as usize] = fragment;
        outcome
    }

    /// What is read from a place within a fragment.
    pub fn go_on(
        &mut self,
        constraint: &Constraint,
        (text, id): (&[u8], u32),
        place: u32,
        work: &mut Work,
    ) -> Result<Arc<Outcome>, StepError> {
        if let Some(known) = &self.fragments[id as usize].from_places[place as usize] {
            return Ok(Arc::clone(known));
        }
        let mut fragment = std::mem::take(&mut self.fragments[id as usize]);
        let from = fragment.places[place as usize];
        let outcome = self.read(constraint, text, &mut fragment, [from].into_iter(), work);
        if let Ok(outcome) = &outcome {
            fragment.from_places[place as usize] = Some(Arc::clone(outcome));
        }
        self.fragments[id as usize] = fragment;
        outcome
    }
}

pub(super) fn filler(item: &Item) -> Filler {
    if *item == Item::Anything { Filler::Bytes } else { Filler::Tokens }
}
