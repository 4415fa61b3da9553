//! Texts of sequences of terminals: what stands in the gaps of a row of fragments and gaps so that it is
//! read as these terminals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::language::StepError;
use anygram_lexer::transducer::Lexing;
use anygram_lexer::words::Words;
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use super::completions::Item;
use super::lexemes::{FIRST, Lexeme};
use super::parse::Path;
use super::tables::{Tables, filler};
use super::{Lexings, Node};
use crate::plan;

/// A part of what fills a gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// A byte of tokens.
    Byte(u8),
    /// A token that the grammar names.
    Special(TerminalId),
}

/// A place on the way through a partial output that is spelled: item, byte or node of the trie, piece in
/// progress.
type At = (u32, u32, Lexeme);

/// A piece in progress behind an item, and what is put there.
pub(crate) type Pass = (Lexeme, Arc<[Part]>);

/// What is put into items on the way to a place, in order.
pub(crate) type Way = (At, Arc<[(u32, Part)]>);

/// A text of the language of completions.
pub struct Spelled {
    /// What stands in each item that is open.
    pub parts: Vec<Vec<Part>>,
    /// The item before which the text ends.
    pub end: usize,
}

/// A step from one place to the next.
struct Step {
    at: At,
    parent: u32,
    /// What was put into an item that is filled.
    put: Option<(u32, Arc<[Part]>)>,
    /// On the way.
    n_bytes: usize,
}

/// Places in the order of the bytes that are put into open items on the way.
struct Frontier {
    steps: Vec<Step>,
    seen: FxHashSet<At>,
    agenda: BinaryHeap<Reverse<(usize, u32)>>,
}

impl Frontier {
    fn new(at: At) -> Self {
        let first = Step { at, parent: u32::MAX, put: None, n_bytes: 0 };
        Self { steps: vec![first], seen: FxHashSet::default(), agenda: BinaryHeap::from([Reverse((0, 0))]) }
    }

    /// The next place.
    fn next(&mut self) -> Option<u32> {
        loop {
            let Reverse((_, next)) = self.agenda.pop()?;
            if self.seen.insert(self.steps[next as usize].at) {
                return Some(next);
            }
        }
    }

    fn enter(&mut self, parent: u32, at: At, put: Option<(u32, Arc<[Part]>)>) {
        if self.seen.contains(&at) {
            return;
        }
        let n_more = put.as_ref().map_or(0, |(_, parts)| parts.len());
        let n_bytes = self.steps[parent as usize].n_bytes + n_more;
        let id = self.steps.len() as u32;
        self.steps.push(Step { at, parent, put, n_bytes });
        self.agenda.push(Reverse((n_bytes, id)));
    }

    /// The way to a place one step behind one that was met.
    fn way(&self, parent: u32, at: At, part: Option<(u32, Part)>) -> Way {
        let mut parts: Vec<(u32, Part)> = part.into_iter().collect();
        let mut place = parent;
        while let Some(step) = self.steps.get(place as usize) {
            if let Some((item, put)) = &step.put {
                parts.extend(put.iter().rev().map(|&part| (*item, part)));
            }
            place = step.parent;
        }
        parts.reverse();
        (at, parts.into())
    }
}

/// What is spelled next.
#[derive(Clone, Copy)]
enum Goal {
    /// A terminal that leads to a state.
    Terminal(TerminalId, Node),
    /// A terminal that ends in an item.
    Within(TerminalId, u32),
    /// The end of the text.
    End,
}

/// A place where a piece ended, how one comes there from one of the places before, and the bytes that were
/// put into open items so far.
struct Candidate {
    at: At,
    before: usize,
    parts: Arc<[(u32, Part)]>,
    is_apart: bool,
    n_bytes: usize,
}

impl Candidate {
    /// Which of two is taken does not depend on the numbers of states and pieces.
    fn order(&self) -> (usize, usize, &[(u32, Part)]) {
        (self.n_bytes, self.before, &self.parts)
    }
}

/// How far texts are looked for.
#[derive(Clone, Copy)]
struct Extent {
    /// Bytes more than the least that a way to the end of a piece may take.
    more: usize,
    /// Candidates that are followed, those with few bytes first.
    candidates: usize,
}

impl Extent {
    const ALL: Self = Self { more: usize::MAX, candidates: usize::MAX };
}

/// With so much a text is mostly found.
const FEW_MORE: usize = 1;
const FEW_CANDIDATES: usize = 64;

impl Lexings<'_> {
    /// A short text that is read as these terminals, which lead to some of these states. With `apart` an
    /// ignored text stands in a gap wherever a piece ends at it. Bytes are tried in an order that depends on
    /// `turn`.
    ///
    /// Cost: a search from each piece to the next; those within a gap are kept.
    pub fn spell(
        &mut self,
        path: &Path,
        apart: bool,
        turn: usize,
        work: &mut Work,
    ) -> Result<Option<Spelled>, StepError> {
        for extent in [Extent { more: FEW_MORE, candidates: FEW_CANDIDATES }, Extent::ALL] {
            if let Some(spelled) = self.spell_within(path, apart, (turn, extent), work)? {
                return Ok(Some(spelled));
            }
        }
        Ok(None)
    }

    fn spell_within(
        &mut self,
        path: &Path,
        apart: bool,
        (turn, extent): (usize, Extent),
        work: &mut Work,
    ) -> Result<Option<Spelled>, StepError> {
        let separator = if apart { self.tables.separator() } else { None };
        let start = Candidate { at: (0, 0, FIRST), before: 0, parts: [].into(), is_apart: false, n_bytes: 0 };
        let mut layers = vec![vec![start]];
        let goals = |(terminal, states): &(TerminalId, Vec<u32>)| {
            states.iter().map(|&to| Goal::Terminal(*terminal, self.at(to))).collect()
        };
        let goals: Vec<Vec<Goal>> = path.iter().map(goals).chain([vec![Goal::End]]).collect();
        for goals in goals {
            let mut next: Vec<Candidate> = Vec::new();
            let mut known: FxHashMap<At, usize> = FxHashMap::default();
            let last = &layers[layers.len() - 1];
            let steps = last.iter().enumerate().flat_map(|last| goals.iter().map(move |&goal| (last, goal)));
            for ((before, &Candidate { at, n_bytes, .. }), goal) in steps {
                for (mut at, parts) in self.ways(at, goal, (turn, extent), work)? {
                    let mut n_bytes = n_bytes + parts.len();
                    let mut is_apart = false;
                    if let (Some(separator), Goal::Terminal(..)) = (&separator, goal)
                        && at.1 == 0
                        && matches!(self.completions.items.get(at.0 as usize), Some(Item::Gap))
                        && let Some(after) = skipped(self.tables, at.2, separator)?
                    {
                        (at.2, is_apart) = (after, true);
                        n_bytes += separator.len();
                    }
                    let candidate = Candidate { at, before, parts, is_apart, n_bytes };
                    match known.get(&at) {
                        Some(&place) if next[place].order() <= candidate.order() => {}
                        Some(&place) => next[place] = candidate,
                        None => {
                            known.insert(at, next.len());
                            next.push(candidate);
                        }
                    }
                }
            }
            if next.is_empty() {
                return Ok(None);
            }
            next.sort_by(|one, other| one.order().cmp(&other.order()));
            next.truncate(extent.candidates);
            layers.push(next);
        }
        let mut parts = vec![Vec::new(); self.completions.items.len()];
        let (mut place, mut end) = (0, 0);
        for (at, layer) in layers.iter().enumerate().rev() {
            let Candidate { at: (item, ..), before, parts: put, is_apart, .. } = &layer[place];
            if at + 1 == layers.len() {
                end = *item as usize;
            }
            if let (true, Some(separator)) = (is_apart, &separator) {
                parts[*item as usize].extend(separator.iter().rev().map(|&byte| Part::Byte(byte)));
            }
            put.iter().rev().for_each(|&(item, part)| parts[item as usize].push(part));
            place = *before;
        }
        parts.iter_mut().for_each(|parts| parts.reverse());
        Ok(Some(Spelled { parts, end }))
    }

    /// Short ways from a place to a goal.
    fn ways(
        &mut self,
        from: At,
        goal: Goal,
        (turn, extent): (usize, Extent),
        work: &mut Work,
    ) -> Result<Vec<Way>, StepError> {
        let (item, inner, lexeme) = from;
        // Within one gap they are the same whatever stands around it.
        let (terminal, to, filler) = match (goal, self.completions.items.get(item as usize)) {
            (Goal::Terminal(terminal, to @ Node::Open(at, _)), Some(content)) if at == item && turn == 0 => {
                (terminal, to, filler(content))
            }
            _ => return self.search(from, goal, (turn, extent), work),
        };
        let key = (filler, inner, lexeme, terminal);
        let known = match self.tables.ways.get(&key) {
            Some(known) => known.clone(),
            None => {
                let found: Arc<[Way]> =
                    self.search(from, Goal::Within(terminal, item), (turn, extent), work)?.into();
                self.tables.keep_ways(key, found.clone());
                found
            }
        };
        let mut ways = Vec::new();
        for ((_, inner, lexeme), parts) in known.iter() {
            let at = (item, *inner, *lexeme);
            if self.is_at(Some(to), at, work)? {
                ways.push((at, parts.iter().map(|&(_, part)| (item, part)).collect()));
            }
        }
        Ok(ways)
    }

    fn search(
        &mut self,
        from: At,
        goal: Goal,
        (turn, extent): (usize, Extent),
        work: &mut Work,
    ) -> Result<Vec<Way>, StepError> {
        let lexing = &*self.tables.lexing.clone();
        let constraint = self.constraint;
        let completions = self.completions;
        let mut frontier = Frontier::new(from);
        let (wanted, to, last) = match goal {
            Goal::Terminal(terminal, to) => (Some(terminal), Some(to), to.item() as u32),
            Goal::Within(terminal, item) => (Some(terminal), None, item),
            Goal::End => (None, None, u32::MAX),
        };
        // The first item in which the terminal, or the text, can end.
        let target = match to {
            Some(Node::Inside(item, _) | Node::Within(item, _)) => item,
            Some(Node::Open(item, _) | Node::Before(item, _)) => item.saturating_sub(1),
            None => 0,
        };
        let mut found: Vec<Way> = Vec::new();
        // What is kept is complete.
        let few_more = if matches!(goal, Goal::Within(..)) { usize::MAX } else { extent.more };
        let mut most = usize::MAX;
        let mut bytes = Vec::new();
        while let Some(from) = frontier.next() {
            let Step { at: (item, inner, lexeme), n_bytes, .. } = frontier.steps[from as usize];
            if n_bytes > most {
                break;
            }
            let place = item as usize;
            let is_boundary = self.tables.lexemes.is_boundary(lexeme);
            if inner == 0 && is_boundary && wanted.is_none() && completions.finals[place] {
                return Ok(vec![frontier.way(from, (item, inner, lexeme), None)]);
            }
            let Some(content) = completions.items.get(place) else { continue };
            if item > last {
                continue;
            }
            if inner == 0 && item < target {
                for (lexeme, parts) in self.passes(item, lexeme, work)?.iter() {
                    let lexemes = &self.tables.lexemes;
                    let hopeful =
                        wanted.is_some_and(|wanted| lexemes.may_become(lexing, *lexeme, wanted.index()));
                    if hopeful || lexemes.may_be_ignored(lexing, *lexeme) {
                        let put = (!parts.is_empty()).then(|| (item, parts.clone()));
                        frontier.enter(from, (item + 1, 0, *lexeme), put);
                    }
                }
                continue;
            }
            let (is_open, is_filled) = (completions.is_open(place), completions.is_filled(place));
            if is_open && inner == 0 {
                frontier.enter(from, (item + 1, 0, lexeme), None);
            }
            // A token that is a terminal.
            if inner == 0
                && is_boundary
                && let Some(terminal) = wanted
                && lexing.specials().contains(&terminal)
            {
                let after = if is_open { item } else { item + 1 };
                let can_stand = match content {
                    Item::Special(own) => *own == terminal,
                    Item::Gap | Item::Hole(_) => plan::specials(constraint).any(|(_, own)| own == terminal),
                    Item::Anything => true,
                    Item::Fragment(_) => false,
                };
                let part = is_filled.then_some((item, Part::Special(terminal)));
                if can_stand && after <= last && self.is_at(to, (after, 0, FIRST), work)? {
                    found.push(frontier.way(from, (after, 0, FIRST), part));
                    most = most.min(n_bytes.saturating_add(few_more));
                }
            }
            self.bytes(content, (item, inner), turn, &mut bytes);
            work.spend(2 + bytes.len())?;
            for &(byte, item_after, inner) in &bytes {
                let part = is_filled.then_some((item, Part::Byte(byte)));
                let put = || part.map(|(item, part)| (item, Arc::from([part])));
                let (stay, cuts) = self.tables.lexemes.step(lexing, lexeme, byte)?;
                if let Some(stay) = stay {
                    let lexemes = &self.tables.lexemes;
                    let hopeful =
                        wanted.is_some_and(|wanted| lexemes.may_become(lexing, stay, wanted.index()));
                    if hopeful || lexemes.may_be_ignored(lexing, stay) {
                        frontier.enter(from, (item_after, inner, stay), put());
                    }
                }
                for cut in cuts.0..cuts.1 {
                    let cut = self.tables.lexemes.cut(cut);
                    // Ignored pieces that end with a fragment still owe.
                    let at = (item_after, inner, cut.after);
                    let is_behind = cut.label.is_none() && item_after > item;
                    let Some(at) = (if is_behind { Some(at) } else { self.settled(at) }) else { continue };
                    if cut.label.is_none() {
                        frontier.enter(from, at, put());
                    } else if cut.label == wanted && item_after <= last && self.is_at(to, at, work)? {
                        if found.iter().all(|way| way.0 != at) {
                            found.push(frontier.way(from, at, part));
                        }
                        most = most.min(n_bytes.saturating_add(few_more));
                    }
                }
            }
        }
        Ok(found)
    }

    /// What a piece in progress can be behind an item in which no terminal ends, with what is put there;
    /// short texts first.
    fn passes(&mut self, item: u32, lexeme: Lexeme, work: &mut Work) -> Result<Arc<[Pass]>, StepError> {
        let completions = self.completions;
        let content = &completions.items[item as usize];
        let key = match content {
            Item::Fragment(text) => {
                let set = self.tables.intern(vec![(0, lexeme)]);
                let ends = self.tables.enter((text, self.fragments[item as usize]), set, work)?.ends;
                let none: Arc<[Part]> = Arc::from([]);
                return Ok(self.tables.set(ends).iter().map(|&(_, lexeme)| (lexeme, none.clone())).collect());
            }
            Item::Special(_) => return Ok(Arc::from([])),
            Item::Hole(trie) => (Some(*trie), lexeme),
            Item::Gap | Item::Anything => (None, lexeme),
        };
        if let Some(known) = self.tables.passes.get(&key) {
            return Ok(known.clone());
        }
        let lexing = &*self.tables.lexing.clone();
        let mut frontier = Frontier::new((item, 0, lexeme));
        let mut found: Vec<Pass> = Vec::new();
        let mut seen: FxHashSet<Lexeme> = FxHashSet::default();
        let mut bytes = Vec::new();
        while let Some(from) = frontier.next() {
            let Step { at: (at, inner, lexeme), .. } = frontier.steps[from as usize];
            if inner == 0 && (at > item || key.0.is_none()) && seen.insert(lexeme) {
                let (_, parts) = frontier.way(from, (at, inner, lexeme), None);
                found.push((lexeme, parts.iter().map(|&(_, part)| part).collect()));
            }
            if at > item {
                continue;
            }
            self.bytes(content, (item, inner), 0, &mut bytes);
            work.spend(2 + bytes.len())?;
            for &(byte, item_after, inner) in &bytes {
                let (stay, cuts) = self.tables.lexemes.step(lexing, lexeme, byte)?;
                let cuts = (cuts.0..cuts.1).map(|cut| self.tables.lexemes.cut(cut));
                let ignored = cuts.filter(|cut| cut.label.is_none()).map(|cut| cut.after);
                for lexeme in ignored.chain(stay) {
                    let put = Some((item, Arc::from([Part::Byte(byte)])));
                    frontier.enter(from, (item_after, inner, lexeme), put);
                }
            }
        }
        let found: Arc<[Pass]> = found.into();
        self.tables.keep_passes(key, found.clone());
        Ok(found)
    }

    /// The boundary at a place where a piece ends, without what is owed and paid by what is fixed there;
    /// `None` if that breaks it.
    fn settled(&mut self, (item, inner, after): At) -> Option<At> {
        let completions = self.completions;
        let Some(Item::Fragment(text)) = completions.items.get(item as usize) else {
            return Some((item, inner, after));
        };
        let Tables { lexemes, lexing, .. } = &mut *self.tables;
        let after = lexemes.settled(lexing, after, &text[inner as usize..])?;
        Some((item, inner, after))
    }

    /// Whether a place where a piece ends is one of a state, or can do no more.
    fn is_at(
        &mut self,
        to: Option<Node>,
        (item, inner, after): At,
        work: &mut Work,
    ) -> Result<bool, StepError> {
        let Some(to) = to else { return Ok(true) };
        if to.item() != item as usize {
            return Ok(false);
        }
        Ok(match to {
            Node::Inside(_, place) => {
                self.tables.place(self.fragments[item as usize], place) == (inner, after)
            }
            Node::Before(_, set) => inner == 0 && *self.tables.set(set) == [(0, after)],
            Node::Within(_, set) => self.tables.set(set).binary_search(&(inner, after)).is_ok(),
            Node::Open(_, reach) => {
                let filler = filler(&self.completions.items[item as usize]);
                let set = self.tables.intern(vec![(inner, after)]);
                let own = self.tables.gap(self.constraint, filler, set, work)?;
                let (own, all) = (self.tables.reach(own).all, self.tables.reach(reach).all);
                self.tables.is_subset(own, all)
            }
        })
    }

    /// The bytes that can come next, and where they lead.
    fn bytes(&self, content: &Item, (item, inner): (u32, u32), turn: usize, into: &mut Vec<(u8, u32, u32)>) {
        into.clear();
        match content {
            Item::Fragment(text) => {
                let is_last = inner as usize + 1 == text.len();
                let (item, next) = if is_last { (item + 1, 0) } else { (item, inner + 1) };
                into.push((text[inner as usize], item, next));
                return;
            }
            Item::Special(_) => return,
            Item::Hole(trie) => {
                let trie = self.tables.trie(self.constraint, *trie);
                for child in trie.children(NodeId(inner)) {
                    if !trie.tokens_at(child).is_empty() {
                        into.push((trie.byte(child), item + 1, 0));
                    }
                    if trie.end(child).0 > child.0 + 1 {
                        into.push((trie.byte(child), item, child.0));
                    }
                }
            }
            Item::Anything => into.extend(self.tables.samples.iter().map(|&byte| (byte, item, 0))),
            Item::Gap => match &self.tables.single {
                Some(single) => into.extend(single.iter().map(|&(byte, _)| (byte, item, 0))),
                None => {
                    let trie = self.constraint.vocabulary().trie();
                    for child in trie.children(NodeId(inner)) {
                        if !trie.tokens_at(child).is_empty() {
                            into.push((trie.byte(child), item, 0));
                        }
                        if trie.end(child).0 > child.0 + 1 {
                            into.push((trie.byte(child), item, child.0));
                        }
                    }
                }
            },
        }
        if !into.is_empty() {
            let by = turn % into.len();
            into.rotate_left(by);
        }
    }

    /// All states through which terminals lead to the end of the text, if they are one of its lexings.
    pub fn path(&mut self, terminals: &[TerminalId], work: &mut Work) -> Result<Option<Path>, StepError> {
        let mut layers: Vec<Vec<u32>> = vec![vec![self.start(work)?]];
        for &terminal in terminals {
            let mut next: Vec<u32> = Vec::new();
            for &node in &layers[layers.len() - 1] {
                next.extend_from_slice(&self.after(node, terminal, work)?);
            }
            next.sort_unstable();
            next.dedup();
            work.spend(1 + next.len())?;
            layers.push(next);
        }
        // Those from which nothing leads to the end are left out, from the last.
        let mut kept: FxHashSet<u32> = FxHashSet::default();
        let mut path = Path::with_capacity(terminals.len());
        for at in (0..layers.len()).rev() {
            let mut useful: Vec<u32> = Vec::new();
            for &node in &layers[at] {
                let leads_on = match terminals.get(at) {
                    Some(&terminal) => {
                        self.after(node, terminal, work)?.iter().any(|after| kept.contains(after))
                    }
                    None => self.accepts(node, work)?,
                };
                if leads_on {
                    useful.push(node);
                }
            }
            if useful.is_empty() {
                return Ok(None);
            }
            kept = useful.iter().copied().collect();
            if let Some(before) = at.checked_sub(1) {
                path.push((terminals[before], useful));
            }
        }
        path.reverse();
        Ok(Some(path))
    }
}

/// The boundary after an ignored text.
fn skipped(tables: &mut Tables, boundary: Lexeme, text: &[u8]) -> Result<Option<Lexeme>, StepError> {
    let lexing = &*tables.lexing.clone();
    let Some((&last, before)) = text.split_last() else { return Ok(None) };
    let mut lexeme = boundary;
    for &byte in before {
        let (Some(stay), _) = tables.lexemes.step(lexing, lexeme, byte)? else { return Ok(None) };
        lexeme = stay;
    }
    let (_, cuts) = tables.lexemes.step(lexing, lexeme, last)?;
    let mut ignored = (cuts.0..cuts.1).map(|cut| tables.lexemes.cut(cut)).filter(|cut| cut.label.is_none());
    Ok(ignored.next().map(|cut| cut.after))
}

/// A short text that is ignored: a blank if it is.
pub(super) fn separator(lexing: &Lexing) -> Option<Vec<u8>> {
    let ignored = || lexing.lexicon.ignored.iter();
    let is_ignored = |text: &[u8]| {
        ignored().any(|at| lexing.dfa(TerminalId::new(at)).is_some_and(|dfa| dfa.matches(text)))
    };
    if is_ignored(b" ") {
        return Some(b" ".to_vec());
    }
    let words = Words::new(&lexing.lexicon);
    ignored().filter_map(|at| words.shortest(at)).min_by_key(Vec::len)
}

/// The token that is all of what fills a hole.
pub(crate) fn token(constraint: &Constraint, parts: &[Part]) -> Option<TokenId> {
    if let [Part::Special(terminal)] = parts {
        return plan::specials(constraint).find(|(_, named)| named == terminal).map(|(token, _)| token);
    }
    let trie = constraint.vocabulary().trie();
    let node = parts.iter().try_fold(TokenTrie::ROOT, |node, part| match part {
        Part::Byte(byte) => trie.child(node, *byte),
        Part::Special(_) => None,
    })?;
    trie.tokens_at(node).first().copied()
}

/// The tokens of what fills a gap: as the vocabulary encodes it, or, where that is not the text, as few as
/// there are. `None` if there are none.
pub fn tokens(constraint: &Constraint, parts: &[Part]) -> Option<Vec<TokenId>> {
    let mut tokens = Vec::new();
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Byte(byte) => bytes.push(*byte),
            Part::Special(terminal) => {
                tokens.append(&mut segmented(constraint.vocabulary(), &bytes)?);
                bytes.clear();
                tokens.push(plan::specials(constraint).find(|(_, named)| named == terminal)?.0);
            }
        }
    }
    tokens.append(&mut segmented(constraint.vocabulary(), &bytes)?);
    Some(tokens)
}

fn segmented(vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    if let Ok(tokens) = vocabulary.encode(text)
        && vocabulary.decode(&tokens).is_ok_and(|bytes| bytes == text)
    {
        return Some(tokens);
    }
    // Of each place the fewest tokens to it, and the last of them.
    let mut best: Vec<Option<(usize, usize, TokenId)>> = vec![None; text.len() + 1];
    for from in 0..text.len() {
        let Some(n_before) = (if from == 0 { Some(0) } else { best[from].map(|(n, ..)| n) }) else {
            continue;
        };
        for (length, token) in vocabulary.trie().prefixes(&text[from..]) {
            let place = &mut best[from + length];
            if place.is_none_or(|(n, ..)| n > n_before + 1) {
                *place = Some((n_before + 1, from, token));
            }
        }
    }
    let (mut tokens, mut at) = (Vec::new(), text.len());
    while at > 0 {
        let (_, from, token) = best[at]?;
        tokens.push(token);
        at = from;
    }
    tokens.reverse();
    Some(tokens)
}
