//! One terminal's pattern as a minimal deterministic automaton over bytes.
//!
//! Pattern → Thompson automaton (top down with a work list, so depth costs no stack) → subset construction →
//! partition refinement (Moore's, 1956, then Hopcroft's, 1971). State [`DEAD`] accepts nothing and leads
//! nowhere else; every other state reaches an accepting one. Alternatives have no order here: the automaton
//! is that of the language. Cost: that of the subset construction, then states × byte classes × log states.

use std::collections::hash_map::Entry;
use std::hash::Hasher;

use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::Pattern;
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::LexerLimits;

mod shared;

/// The state from which nothing is accepted.
pub const DEAD: u32 = 0;
/// The state before the first byte. It may be [`DEAD`]'s equal in all but number, if the language is empty.
pub const START: u32 = 1;

/// How deep `&` and `~` may nest.
pub const MAX_BOOLEAN_DEPTH: usize = 64;

/// Why there is no automaton.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DfaError {
    /// More nondeterministic states than allowed.
    TooManyNfaStates,
    /// More deterministic states than allowed.
    TooManyDfaStates,
    /// `&` and `~` nest deeper than [`MAX_BOOLEAN_DEPTH`].
    TooDeep,
    /// It took too long, or is no longer wanted.
    Stopped(Stopped),
}

impl From<Stopped> for DfaError {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// A minimal deterministic automaton.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Dfa {
    /// The class of each byte; bytes of one class are never told apart.
    pub classes: Box<[u8; 256]>,
    /// The number of classes.
    pub n_classes: usize,
    /// `state × class → state`, row by row.
    pub next: Vec<u32>,
    /// Whether each state accepts.
    pub accepting: Vec<bool>,
}

impl Dfa {
    /// The automaton of a pattern.
    pub fn new(pattern: &Pattern, limits: &LexerLimits, work: &mut Work) -> Result<Self, DfaError> {
        Self::nested(pattern, limits, work, 0)
    }

    fn nested(
        pattern: &Pattern,
        limits: &LexerLimits,
        work: &mut Work,
        depth: usize,
    ) -> Result<Self, DfaError> {
        let mut nfa = Nfa::default();
        let (start, end) = (nfa.add(), nfa.add());
        nfa.compile(pattern, start, end, limits, work, depth)?;
        nfa.determinize(start, end, limits, work)?.minimize(work)
    }

    /// The size of the table.
    pub fn n_entries(&self) -> usize {
        self.next.len()
    }

    /// The number of states, the dead one included.
    pub fn n_states(&self) -> usize {
        self.accepting.len()
    }

    /// Where `byte` leads from `state`.
    #[inline]
    pub fn step(&self, state: u32, byte: u8) -> u32 {
        self.next[state as usize * self.n_classes + usize::from(self.classes[usize::from(byte)])]
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.accepting[text.iter().fold(START, |state, &byte| self.step(state, byte)) as usize]
    }

    /// Whether nothing but perhaps the empty string matches.
    pub fn matches_only_empty(&self) -> bool {
        self.row(START).iter().all(|&next| next == DEAD)
    }

    /// Whether some byte leads on from `state`.
    pub fn can_go_on(&self, state: u32) -> bool {
        self.row(state).iter().any(|&next| next != DEAD)
    }

    /// Whether all that matches is UTF-8.
    pub(crate) fn is_unicode(&self, limits: &LexerLimits, work: &mut Work) -> Result<bool, DfaError> {
        let parts = [self.clone(), Self::unicode(work)?];
        let others = Self::combine(&parts, |accepts| accepts[0] && !accepts[1], limits, work)?;
        Ok(others.matches_only_empty())
    }

    fn row(&self, state: u32) -> &[u32] {
        &self.next[state as usize * self.n_classes..][..self.n_classes]
    }

    /// Merges states that accept the same continuations; leaves the dead state at 0 and the start at 1.
    fn minimize(self, work: &mut Work) -> Result<Self, DfaError> {
        let blocks =
            refine(&self.next, self.n_classes, self.accepting.iter().map(|&a| u32::from(a)).collect(), work)?;
        // The dead block must be found, not assumed: an unreachable-accept state of the subset construction
        // equals it.
        let dead = blocks[DEAD as usize];
        let mut rename = FxHashMap::from_iter([(dead, DEAD)]);
        let mut representative = vec![DEAD as usize];
        let start = blocks[START as usize];
        if start == dead {
            representative.push(START as usize);
        }
        for (state, &block) in blocks.iter().enumerate().skip(START as usize) {
            rename.entry(block).or_insert_with(|| {
                representative.push(state);
                representative.len() as u32 - 1
            });
        }
        let mut next = Vec::with_capacity(representative.len() * self.n_classes);
        for &state in &representative {
            next.extend(self.row(state as u32).iter().map(|&target| rename[&blocks[target as usize]]));
        }
        let accepting = representative.iter().map(|&state| self.accepting[state]).collect();
        Ok(Self { next, accepting, ..self })
    }

    /// The automaton of all Unicode texts in UTF-8.
    fn unicode(work: &mut Work) -> Result<Self, DfaError> {
        let any = Hir::class(Class::Unicode(ClassUnicode::new([regex_syntax::hir::ClassUnicodeRange::new(
            '\0',
            char::MAX,
        )])));
        let star = Pattern::Repeat { inner: Box::new(Pattern::Regex(any)), min: 0, max: None };
        Self::nested(&star, &LexerLimits::default(), work, 0)
    }

    /// The automaton that accepts where `accept` says so of whether each of the given ones accepts.
    fn combine(
        parts: &[Self],
        accept: impl Fn(&[bool]) -> bool,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Self, DfaError> {
        let (classes, n_classes, samples) = common_classes(parts.iter().map(|part| &*part.classes));
        let mut ids = FxHashMap::default();
        let mut tuples = vec![vec![DEAD; parts.len()], vec![START; parts.len()]];
        ids.insert(tuples[1].clone(), START);
        let mut next = Vec::new();
        // The tuple of dead states is not dead if `accept` holds of nothing, so it gets a number of its own
        // on demand.
        next.resize(n_classes, DEAD);
        let mut at = 1;
        while at < tuples.len() {
            work.spend(n_classes * parts.len())?;
            for &byte in &samples {
                let target: Vec<u32> =
                    tuples[at].iter().zip(parts).map(|(&state, part)| part.step(state, byte)).collect();
                let fresh = tuples.len() as u32;
                let id = *ids.entry(target).or_insert_with_key(|target| {
                    tuples.push(target.clone());
                    fresh
                });
                next.push(id);
            }
            if tuples.len() > limits.dfa_states {
                return Err(DfaError::TooManyDfaStates);
            }
            at += 1;
        }
        let mut accepting = vec![false];
        for tuple in &tuples[1..] {
            let each: Vec<bool> =
                tuple.iter().zip(parts).map(|(&state, part)| part.accepting[state as usize]).collect();
            accepting.push(accept(&each));
        }
        Self { classes, n_classes, next, accepting }.minimize(work)
    }
}

/// The coarsest partition of states that refines `block` and that no byte class splits.
///
/// `next` is `state × class → state`; numbers of blocks are small. Returns the block of each state. Cost:
/// some passes over the table, which do for words and their like (Moore's algorithm, 1956); else states ×
/// byte classes × log states (Hopcroft's). Panics if `next` is no such table.
pub fn refine(
    next: &[u32],
    n_classes: usize,
    mut block: Vec<u32>,
    work: &mut Work,
) -> Result<Vec<u32>, Stopped> {
    for _ in 0..PASSES {
        work.spend(block.len() + next.len())?;
        if !split(next, n_classes, &mut block) {
            return Ok(block);
        }
    }
    hopcroft(next, n_classes, block, work)
}

/// Passes of Moore's algorithm before Hopcroft's. The longest keyword needs as many passes as it has bytes.
const PASSES: usize = 24;

/// Splits each block by the blocks that its states lead to; whether any was split.
fn split(next: &[u32], n_classes: usize, block: &mut [u32]) -> bool {
    let n_blocks = block.iter().max().map_or(0, |&most| most + 1);
    let mut n_members = vec![0u32; n_blocks as usize];
    block.iter().for_each(|&of| n_members[of as usize] += 1);
    let row = |state: u32| &next[state as usize * n_classes..][..n_classes];
    // By a hash of what it is and leads to, a state of each part of a block, and the part's number.
    let mut parts: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
    // The first part of a block is the block.
    let (mut is_known, mut n_parts) = (vec![false; n_blocks as usize], n_blocks);
    let mut split = Vec::new();
    for (state, &of) in (0u32..).zip(block.iter()) {
        if n_members[of as usize] == 1 {
            continue;
        }
        let mut hasher = FxHasher::default();
        hasher.write_u32(of);
        row(state).iter().for_each(|&to| hasher.write_u32(block[to as usize]));
        let mut key = hasher.finish();
        let part = loop {
            match parts.entry(key) {
                Entry::Occupied(known) => {
                    let (other, part) = *known.get();
                    let is_same = |(&a, &b): (&u32, &u32)| block[a as usize] == block[b as usize];
                    if block[other as usize] == of && row(other).iter().zip(row(state)).all(is_same) {
                        break part;
                    }
                    key = key.wrapping_add(1);
                }
                Entry::Vacant(place) => {
                    let is_first = !std::mem::replace(&mut is_known[of as usize], true);
                    let part = if is_first { of } else { n_parts };
                    n_parts += u32::from(!is_first);
                    place.insert((state, part));
                    break part;
                }
            }
        };
        if part != of {
            split.push((state, part));
        }
    }
    split.iter().for_each(|&(state, part)| block[state as usize] = part);
    !split.is_empty()
}

/// [`refine`] by Hopcroft's algorithm (1971).
fn hopcroft(next: &[u32], n_classes: usize, block: Vec<u32>, work: &mut Work) -> Result<Vec<u32>, Stopped> {
    let n_states = block.len();
    work.spend(2 * next.len())?;
    // The states before each state, class by class: row `class`, from `starts[class][state]`.
    let mut starts = vec![0u32; n_classes * (n_states + 1)];
    for row in next.chunks_exact(n_classes.max(1)) {
        for (class, &target) in row.iter().enumerate() {
            starts[class * (n_states + 1) + target as usize + 1] += 1;
        }
    }
    for row in starts.chunks_exact_mut(n_states + 1) {
        for at in 0..n_states {
            row[at + 1] += row[at];
        }
    }
    let mut filled = starts.clone();
    let mut before = vec![0u32; next.len()];
    for (state, row) in next.chunks_exact(n_classes.max(1)).enumerate() {
        for (class, &target) in row.iter().enumerate() {
            let place = &mut filled[class * (n_states + 1) + target as usize];
            before[class * n_states + *place as usize] = state as u32;
            *place += 1;
        }
    }
    drop(filled);

    let mut blocks = Blocks::new(&block);
    let mut agenda: Vec<(u32, u32)> = Vec::new();
    let mut waits = vec![true; blocks.ranges.len() * n_classes];
    for at in 0..blocks.ranges.len() as u32 {
        agenda.extend((0..n_classes as u32).map(|class| (at, class)));
    }
    let (mut touched, mut splitter) = (Vec::new(), Vec::new());
    while let Some((at, class)) = agenda.pop() {
        let class = class as usize;
        waits[at as usize * n_classes + class] = false;
        splitter.clear();
        splitter.extend_from_slice(blocks.members(at));
        for &state in &splitter {
            let row = &starts[class * (n_states + 1) + state as usize..][..2];
            work.spend(1 + (row[1] - row[0]) as usize)?;
            for &from in &before[class * n_states + row[0] as usize..class * n_states + row[1] as usize] {
                blocks.mark(from, &mut touched);
            }
        }
        for old in touched.drain(..) {
            let Some(new) = blocks.split(old) else { continue };
            waits.resize(waits.len() + n_classes, false);
            for class in 0..n_classes {
                let waiting = waits[old as usize * n_classes + class];
                let smaller = if blocks.members(new).len() <= blocks.members(old).len() { new } else { old };
                let next = if waiting { new } else { smaller };
                waits[next as usize * n_classes + class] = true;
                agenda.push((next, class as u32));
            }
        }
    }
    Ok(blocks.block_of)
}

/// A partition of `0..n` that can be refined: each block is a range of `order`, its marked members first.
struct Blocks {
    order: Vec<u32>,
    place: Vec<u32>,
    block_of: Vec<u32>,
    /// Start, end, and the number of marked members.
    ranges: Vec<(u32, u32, u32)>,
}

impl Blocks {
    fn new(block: &[u32]) -> Self {
        let mut order: Vec<u32> = (0..block.len() as u32).collect();
        order.sort_by_key(|&member| block[member as usize]);
        let (mut place, mut block_of) = (vec![0; block.len()], vec![0; block.len()]);
        let mut ranges = Vec::new();
        let mut start = 0;
        for members in order.chunk_by(|&a, &b| block[a as usize] == block[b as usize]) {
            for (at, &member) in (start..).zip(members) {
                place[member as usize] = at;
                block_of[member as usize] = ranges.len() as u32;
            }
            ranges.push((start, start + members.len() as u32, 0));
            start += members.len() as u32;
        }
        Self { order, place, block_of, ranges }
    }

    fn members(&self, block: u32) -> &[u32] {
        let (start, end, _) = self.ranges[block as usize];
        &self.order[start as usize..end as usize]
    }

    fn mark(&mut self, member: u32, touched: &mut Vec<u32>) {
        let block = self.block_of[member as usize];
        let (start, _, n_marked) = &mut self.ranges[block as usize];
        let (from, to) = (self.place[member as usize], *start + *n_marked);
        if from < to {
            return;
        }
        if *n_marked == 0 {
            touched.push(block);
        }
        *n_marked += 1;
        let other = self.order[to as usize];
        self.order.swap(from as usize, to as usize);
        (self.place[member as usize], self.place[other as usize]) = (to, from);
    }

    /// Makes the marked members of a block, unless they are all, a block of their own.
    fn split(&mut self, block: u32) -> Option<u32> {
        let (start, end, n_marked) = self.ranges[block as usize];
        self.ranges[block as usize].2 = 0;
        if start + n_marked == end {
            return None;
        }
        let new = self.ranges.len() as u32;
        self.ranges[block as usize].0 = start + n_marked;
        self.ranges.push((start, start + n_marked, 0));
        for &member in &self.order[start as usize..(start + n_marked) as usize] {
            self.block_of[member as usize] = new;
        }
        Some(new)
    }
}

/// The coarsest classes of bytes that refine all the given ones; with a byte of each.
pub(crate) fn common_classes<'a>(
    all: impl Iterator<Item = &'a [u8; 256]>,
) -> (Box<[u8; 256]>, usize, Vec<u8>) {
    let mut classes = Box::new([0u8; 256]);
    let mut n_classes = 1;
    let mut ids: Vec<u16> = Vec::new();
    // Most automata have the classes of another.
    let mut seen: FxHashSet<&[u8; 256]> = FxHashSet::default();
    for other in all {
        if !seen.insert(other) {
            continue;
        }
        // By both classes the common one, and one more; 0 is none yet.
        let width = usize::from(other.iter().copied().max().unwrap_or(0)) + 1;
        ids.clear();
        ids.resize(usize::from(n_classes) * width, 0);
        n_classes = 0;
        for byte in 0..256 {
            let id = &mut ids[usize::from(classes[byte]) * width + usize::from(other[byte])];
            if *id == 0 {
                n_classes += 1;
                *id = n_classes;
            }
            classes[byte] = (*id - 1) as u8;
        }
    }
    let mut samples = Vec::new();
    for byte in 0..=255u8 {
        if usize::from(classes[usize::from(byte)]) == samples.len() {
            samples.push(byte);
        }
    }
    (classes, samples.len(), samples)
}

/// A Thompson automaton: empty moves and byte ranges.
#[derive(Default)]
struct Nfa {
    empty: Vec<Vec<u32>>,
    bytes: Vec<Vec<(u8, u8, u32)>>,
}

/// A part of a pattern that remains to be compiled.
enum Part<'a> {
    Pattern(&'a Pattern),
    Hir(&'a Hir),
}

impl Nfa {
    fn add(&mut self) -> u32 {
        self.empty.push(Vec::new());
        self.bytes.push(Vec::new());
        self.empty.len() as u32 - 1
    }

    fn compile(
        &mut self,
        pattern: &Pattern,
        start: u32,
        end: u32,
        limits: &LexerLimits,
        work: &mut Work,
        depth: usize,
    ) -> Result<(), DfaError> {
        let mut agenda = vec![(Part::Pattern(pattern), start, end)];
        while let Some((part, start, end)) = agenda.pop() {
            if self.empty.len() > limits.nfa_states || agenda.len() > limits.nfa_states {
                return Err(DfaError::TooManyNfaStates);
            }
            work.spend(1)?;
            match part {
                Part::Pattern(Pattern::Regex(hir)) => agenda.push((Part::Hir(hir), start, end)),
                Part::Pattern(Pattern::Concat(parts)) => {
                    self.chain(&mut agenda, parts.iter().map(Part::Pattern), start, end);
                }
                Part::Pattern(Pattern::Alternate(parts)) => {
                    agenda.extend(parts.iter().map(|part| (Part::Pattern(part), start, end)));
                }
                Part::Pattern(Pattern::Repeat { inner, min, max }) => {
                    self.repeat(&mut agenda, || Part::Pattern(inner), (*min, *max), (start, end), limits)?;
                }
                Part::Pattern(Pattern::And(parts)) => {
                    let each = parts.iter().map(|part| deeper(part, limits, work, depth));
                    let parts = each.collect::<Result<Vec<_>, _>>()?;
                    self.embed(
                        &Dfa::combine(&parts, |each| each.iter().all(|&a| a), limits, work)?,
                        start,
                        end,
                    );
                }
                Part::Pattern(Pattern::Not(inner)) => {
                    let parts = [Dfa::unicode(work)?, deeper(inner, limits, work, depth)?];
                    self.embed(&Dfa::combine(&parts, |each| each[0] && !each[1], limits, work)?, start, end);
                }
                Part::Hir(hir) => match hir.kind() {
                    HirKind::Empty => self.empty[start as usize].push(end),
                    HirKind::Literal(literal) => self.literal(&literal.0, start, end),
                    HirKind::Class(Class::Bytes(class)) => {
                        let ranges = class.ranges().iter().map(|range| (range.start(), range.end(), end));
                        self.bytes[start as usize].extend(ranges);
                    }
                    HirKind::Class(Class::Unicode(class)) => self.unicode_class(class, start, end),
                    // Front ends refuse look-around; what cannot be expressed matches nothing.
                    HirKind::Look(_) => {}
                    HirKind::Capture(capture) => agenda.push((Part::Hir(&capture.sub), start, end)),
                    HirKind::Concat(parts) => {
                        self.chain(&mut agenda, parts.iter().map(Part::Hir), start, end)
                    }
                    HirKind::Alternation(parts) => {
                        agenda.extend(parts.iter().map(|part| (Part::Hir(part), start, end)));
                    }
                    HirKind::Repetition(repetition) => {
                        let times = (repetition.min, repetition.max);
                        self.repeat(&mut agenda, || Part::Hir(&repetition.sub), times, (start, end), limits)?;
                    }
                },
            }
        }
        Ok(())
    }

    fn chain<'a>(
        &mut self,
        agenda: &mut Vec<(Part<'a>, u32, u32)>,
        parts: impl ExactSizeIterator<Item = Part<'a>>,
        start: u32,
        end: u32,
    ) {
        let (mut from, n_parts) = (start, parts.len());
        if n_parts == 0 {
            self.empty[start as usize].push(end);
        }
        for (at, part) in parts.enumerate() {
            let to = if at + 1 == n_parts { end } else { self.add() };
            agenda.push((part, from, to));
            from = to;
        }
    }

    fn repeat<'a>(
        &mut self,
        agenda: &mut Vec<(Part<'a>, u32, u32)>,
        part: impl Fn() -> Part<'a>,
        (min, max): (u32, Option<u32>),
        (start, end): (u32, u32),
        limits: &LexerLimits,
    ) -> Result<(), DfaError> {
        if max.unwrap_or(min) as usize > limits.nfa_states {
            return Err(DfaError::TooManyNfaStates);
        }
        let mut from = start;
        for _ in 0..min {
            let to = self.add();
            agenda.push((part(), from, to));
            from = to;
        }
        match max {
            None => {
                // A state of its own, so that the loop is not entered from elsewhere.
                let (head, tail) = (self.add(), self.add());
                self.empty[from as usize].push(head);
                self.empty[tail as usize].push(head);
                self.empty[head as usize].push(end);
                agenda.push((part(), head, tail));
            }
            Some(max) => {
                for _ in min..max {
                    self.empty[from as usize].push(end);
                    let to = self.add();
                    agenda.push((part(), from, to));
                    from = to;
                }
                self.empty[from as usize].push(end);
            }
        }
        Ok(())
    }

    fn literal(&mut self, bytes: &[u8], start: u32, end: u32) {
        let mut from = start;
        for &byte in bytes {
            let to = self.add();
            self.bytes[from as usize].push((byte, byte, to));
            from = to;
        }
        self.empty[from as usize].push(end);
    }

    /// A class as its UTF-8 byte sequences, equal tails shared.
    fn unicode_class(&mut self, class: &ClassUnicode, start: u32, end: u32) {
        let mut tails: FxHashMap<(u8, u8, u32), u32> = FxHashMap::default();
        for range in class.ranges() {
            for sequence in Utf8Sequences::new(range.start(), range.end()) {
                let ranges = sequence.as_slice();
                let mut to = end;
                for range in ranges[1..].iter().rev() {
                    let edge = (range.start, range.end, to);
                    to = match tails.get(&edge) {
                        Some(&state) => state,
                        None => {
                            let state = self.add();
                            self.bytes[state as usize].push(edge);
                            tails.insert(edge, state);
                            state
                        }
                    };
                }
                self.bytes[start as usize].push((ranges[0].start, ranges[0].end, to));
            }
        }
    }

    fn embed(&mut self, dfa: &Dfa, start: u32, end: u32) {
        let states: Vec<u32> = (0..dfa.n_states()).map(|_| self.add()).collect();
        self.empty[start as usize].push(states[START as usize]);
        for state in 0..dfa.n_states() {
            if dfa.accepting[state] {
                self.empty[states[state] as usize].push(end);
            }
            let edges = &mut self.bytes[states[state] as usize];
            for byte in 0..=255u8 {
                let target = dfa.step(state as u32, byte);
                match edges.last_mut() {
                    _ if target == DEAD => {}
                    Some(last) if last.2 == states[target as usize] && last.1 + 1 == byte => last.1 = byte,
                    _ => edges.push((byte, byte, states[target as usize])),
                }
            }
        }
    }

    fn determinize(
        &self,
        start: u32,
        end: u32,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Dfa, DfaError> {
        let (classes, n_classes) = self.byte_classes();
        let mut marks = vec![0u32; self.empty.len()];
        let mut round = 0;
        let mut closure = |seeds: &mut Vec<u32>| {
            round += 1;
            seeds.retain(|&state| std::mem::replace(&mut marks[state as usize], round) != round);
            let mut at = 0;
            while at < seeds.len() {
                for &to in &self.empty[seeds[at] as usize] {
                    if std::mem::replace(&mut marks[to as usize], round) != round {
                        seeds.push(to);
                    }
                }
                at += 1;
            }
            // Only states that read a byte or accept tell sets apart.
            seeds.retain(|&state| state == end || !self.bytes[state as usize].is_empty());
            seeds.sort_unstable();
        };
        let mut first = vec![start];
        closure(&mut first);
        // If the language is empty both keys are the empty set, and it must stay the dead one.
        let mut ids = FxHashMap::from_iter([(first.clone(), START), (Vec::new(), DEAD)]);
        let mut entries = 0;
        let mut sets = vec![Vec::new(), first];
        let mut next = vec![DEAD; n_classes];
        let mut at = 1;
        let mut targets: Vec<Vec<u32>> = vec![Vec::new(); n_classes];
        // Neighbouring classes mostly lead to the same.
        let mut last: (Vec<u32>, u32) = (Vec::new(), DEAD);
        while at < sets.len() {
            targets.iter_mut().for_each(Vec::clear);
            for &state in &sets[at] {
                for &(low, high, to) in &self.bytes[state as usize] {
                    for class in classes[usize::from(low)]..=classes[usize::from(high)] {
                        targets[usize::from(class)].push(to);
                    }
                }
            }
            work.spend(n_classes)?;
            for target in &mut targets {
                work.spend(target.len())?;
                if *target == last.0 {
                    next.push(last.1);
                    continue;
                }
                last.0.clone_from(target);
                closure(target);
                let fresh = sets.len() as u32;
                let id = match ids.get(target) {
                    Some(&id) => id,
                    None => {
                        ids.insert(target.clone(), fresh);
                        sets.push(target.clone());
                        entries += target.len();
                        fresh
                    }
                };
                last.1 = id;
                next.push(id);
            }
            if sets.len() > limits.dfa_states {
                return Err(DfaError::TooManyDfaStates);
            }
            if entries > limits.nfa_states.saturating_mul(8) {
                return Err(DfaError::TooManyNfaStates);
            }
            at += 1;
        }
        let accepting = sets.iter().map(|set| set.binary_search(&end).is_ok()).collect();
        Ok(Dfa { classes, n_classes, next, accepting })
    }

    /// Classes that are intervals: a new one begins wherever some range begins or has ended, so that a range
    /// is a run of classes.
    fn byte_classes(&self) -> (Box<[u8; 256]>, usize) {
        let mut begins = [false; 257];
        for &(low, high, _) in self.bytes.iter().flatten() {
            begins[usize::from(low)] = true;
            begins[usize::from(high) + 1] = true;
        }
        let mut classes = Box::new([0u8; 256]);
        let mut last = 0;
        for byte in 1..256 {
            last += u8::from(begins[byte]);
            classes[byte] = last;
        }
        (classes, usize::from(last) + 1)
    }
}

fn deeper(pattern: &Pattern, limits: &LexerLimits, work: &mut Work, depth: usize) -> Result<Dfa, DfaError> {
    if depth == MAX_BOOLEAN_DEPTH {
        return Err(DfaError::TooDeep);
    }
    Dfa::nested(pattern, limits, work, depth + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(text: &str) -> Pattern {
        Pattern::Regex(regex_syntax::ParserBuilder::new().utf8(false).build().parse(text).unwrap())
    }

    fn dfa(pattern: &Pattern) -> Dfa {
        Dfa::new(pattern, &LexerLimits::default(), &mut Work::unbounded()).unwrap()
    }

    #[test]
    fn alternatives_have_no_order() {
        let organic = dfa(&regex("B|Br|C"));
        assert!(organic.matches(b"Br") && organic.matches(b"B") && !organic.matches(b"r"));
        assert_eq!(dfa(&regex("a|ab|abc")), dfa(&regex("abc|ab|a")));
    }

    #[test]
    fn equal_languages_have_equal_automata() {
        assert_eq!(dfa(&regex("(ab)*a?")).n_states(), 3);
        assert_eq!(dfa(&regex("(a|b)(a|b)*")).next, dfa(&regex("[ab]+")).next);
    }

    #[test]
    fn classes_are_unicode_and_bytes_are_escaped() {
        let not_quote = dfa(&regex("[^\"]"));
        assert!(not_quote.matches("本".as_bytes()) && not_quote.matches(b"a"));
        assert!(!not_quote.matches(b"\xff") && !not_quote.matches(&"本".as_bytes()[..2]));
        assert!(dfa(&regex("(?-u:\\xff)")).matches(b"\xff"));
    }

    #[test]
    fn an_empty_language_is_dead_from_the_start() {
        let nothing = dfa(&regex("[^\\s\\S]"));
        assert!(nothing.matches_only_empty() && !nothing.accepting[START as usize]);
        assert!(dfa(&regex("")).accepting[START as usize]);
    }

    #[test]
    fn repetitions_count() {
        let some = dfa(&Pattern::Repeat { inner: Box::new(regex("ab")), min: 2, max: Some(3) });
        for (n, expected) in [(1, false), (2, true), (3, true), (4, false)] {
            assert_eq!(some.matches("ab".repeat(n).as_bytes()), expected, "{n} times");
        }
        let limited =
            |text: &str, mut work| Dfa::new(&regex(text), &LexerLimits::default(), &mut work).unwrap_err();
        assert_eq!(limited("(a{1000}){1000}", Work::unbounded()), DfaError::TooManyNfaStates);
        assert_eq!(limited("(a|b)*a(a|b){20}", Work::unbounded()), DfaError::TooManyDfaStates);
        let out_of_steps = Stopped::OutOfSteps { limit: 1000, option: "steps" };
        assert_eq!(limited("(a|b)*a(a|b){20}", Work::new(1000, "steps")), DfaError::Stopped(out_of_steps));
    }

    #[test]
    fn both_ways_to_refine_agree() {
        let mut random = anygram_bits::Random::new(7);
        let work = &mut Work::unbounded();
        for round in 0..200 {
            let (n_states, n_classes) = (1 + random.below(60), 1 + random.below(3));
            let mut next: Vec<u32> =
                (0..n_states * n_classes).map(|_| random.below(n_states) as u32).collect();
            if round % 4 == 0 {
                // A chain, which takes a pass for each state.
                next.iter_mut().enumerate().for_each(|(at, to)| *to = (at / n_classes) as u32 + 1);
                next[(n_states - 1) * n_classes..].fill(n_states as u32 - 1);
            }
            let mut block: Vec<u32> = (0..n_states).map(|_| u32::from(random.chance(5))).collect();
            block[n_states - 1] = 1;
            let first = |blocks: &[u32]| -> Vec<usize> {
                blocks.iter().map(|block| blocks.iter().position(|other| other == block).unwrap()).collect()
            };
            let found = refine(&next, n_classes, block.clone(), work).unwrap();
            assert_eq!(first(&found), first(&hopcroft(&next, n_classes, block, work).unwrap()));
        }
    }

    #[test]
    fn intersection_and_complement() {
        let identifier = regex("[a-z]+");
        let keyword = Pattern::Not(Box::new(regex("if|in")));
        let name = dfa(&Pattern::And(vec![identifier, keyword.clone()]));
        for (text, expected) in
            [("if", false), ("i", true), ("iff", true), ("in", false), ("", false), ("1", false)]
        {
            assert_eq!(name.matches(text.as_bytes()), expected, "{text}");
        }
        let not = dfa(&keyword);
        assert!(not.matches(b"") && not.matches("é".as_bytes()) && !not.matches(b"\xff"));
    }
}
