//! Languages of strings as formulas that are stepped by code points.
//!
//! A *formula* says what the rest of a string has to be: Boolean combinations of places in expressions, of
//! what is left of listed words, and of the end. Formulas are interned, so equal states are one, and stepping
//! a code point gives another formula: a deterministic automaton, made as it is walked, that is closed under
//! Boolean operations and look-ahead (derivatives, Brzozowski 1964; over places of expressions, Antimirov
//! 1996; Boolean automata, Leiss 1981).
//!
//! What stays true: a formula that is not dead has a string; whether it has is found by looking for one where
//! its form does not tell. Cost of a step that is known: a binary search among ranges of code points.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use anygram_bits::{Fingerprint, index_type};
use regex_syntax::hir::ClassUnicode;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::pattern::Pattern;

index_type!(
    /// A formula: what the rest of a string has to be.
    FormulaId
);

impl FormulaId {
    /// No string.
    pub const NONE: Self = Self(0);
    /// Any string.
    pub const ANY: Self = Self(1);
    /// The empty string.
    const END: Self = Self(2);
    /// What begins with a character of `\w`.
    const WORD: Self = Self(3);
}

/// A bound on the states of formulas was hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// The limit in force.
    pub limit: usize,
}

/// What stands before a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Before {
    Start,
    Word,
    Other,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Formula {
    None,
    Any,
    End,
    Word,
    /// A step of a program that reads a code point.
    Step(u32),
    /// What is left of some words of a list: those from `from` to `to`, of which `depth` code points were
    /// read.
    Words {
        list: u32,
        from: u32,
        to: u32,
        depth: u32,
    },
    All(Box<[FormulaId]>),
    One(Box<[FormulaId]>),
    Not(FormulaId),
}

/// An instruction of an expression's program.
#[derive(Clone, Debug)]
enum Step {
    /// Reads a code point of a class.
    Read {
        class: u32,
        next: u32,
        is_plain: bool,
    },
    Split(Vec<u32>),
    AtStart(u32),
    AtEnd(u32),
    AtWordBoundary {
        negated: bool,
        next: u32,
    },
    Look {
        inner: u32,
        negated: bool,
        next: u32,
    },
    /// Whatever follows.
    Done,
}

/// What is known of the rest of a program, from a step on.
#[derive(Clone, Copy, Default, Debug)]
struct Ahead {
    /// The fewest code points that it reads.
    least: u32,
    /// The most that the fewest are of a step that can be reached.
    most: u32,
    /// Whether a repetition with many copies can be reached.
    is_counted: bool,
    /// The copies in which the step stands, the innermost, counted from 1.
    copies: Option<NonZeroU32>,
}

/// Copies of a repetition that follow one another in a program, the last one first.
#[derive(Clone, Copy, Debug)]
struct Copies {
    /// The first step of the last copy.
    first: u32,
    /// The steps of each.
    size: u32,
    /// The fewest code points that a copy reads.
    least: u32,
    /// Those in which they stand.
    outer: Option<NonZeroU32>,
}

/// Copies of a repetition of which as many can be told apart by a text of no code points.
const NEAR_COPIES: u32 = 3;

/// Ranges of code points, each with the formula that it leads to; they cover all code points.
type Row = Arc<[(u32, FormulaId)]>;

/// Interned formulas.
#[derive(Debug)]
pub struct Chars {
    formulas: Vec<Formula>,
    ids: FxHashMap<Formula, FormulaId>,
    rows: FxHashMap<FormulaId, Row>,
    lives: FxHashMap<FormulaId, bool>,
    lengths: FxHashMap<(FormulaId, u64, u64), bool>,
    steps: Vec<Step>,
    /// What is known of each step.
    ahead: Vec<Ahead>,
    /// The copies that bounded repetitions are written out as, and in which the next step stands.
    copies: Vec<Copies>,
    within: Option<NonZeroU32>,
    closures: FxHashMap<(u32, Before), FormulaId>,
    classes: Vec<Vec<(u32, u32)>>,
    class_ids: FxHashMap<Vec<(u32, u32)>, u32>,
    lists: Vec<Arc<[Vec<char>]>>,
    list_ids: FxHashMap<Arc<[Vec<char>]>, u32>,
    /// The most characters that a word of a list has.
    longest: Vec<u32>,
    /// The first step of each program, and its fingerprint once somebody asked.
    programs: Vec<(u32, Option<Fingerprint>)>,
    fingerprints: FxHashMap<FormulaId, Option<Fingerprint>>,
    /// See [`Chars::byte_classes`].
    bounds: Bounds,
    /// With so many bounds.
    byte_classes: Option<(usize, Box<[u8; 256]>)>,
    limit: usize,
}

/// The code points of `\w`.
const WORD: [(u32, u32); 4] = [(48, 57), (65, 90), (95, 95), (97, 122)];

/// The greatest code point.
const LAST: u32 = 0x10_ffff;

/// See [`Chars::is_endless`].
const FEW_STATES: usize = 100;

/// Lists that are longer are hardly those of two schemas.
const FEW_WORDS: usize = 256;

/// Strings that are longer are not listed.
const LONG: usize = 1_000;

/// Those of a range that are characters, and among `of` if that is given.
fn code_points((low, high): (u32, u32), of: Option<&[(u32, u32)]>) -> Vec<(u32, u32)> {
    let plain = [(0, 0xd7ff), (0xe000, LAST)];
    let cut = |(from, to): (u32, u32), (low, high): (u32, u32)| (from.max(low), to.min(high));
    let within = of.unwrap_or(&[(0, LAST)]);
    let parts = plain.iter().flat_map(|&part| within.iter().map(move |&of| cut(part, of)));
    parts.map(|part| cut(part, (low, high))).filter(|(from, to)| from <= to).collect()
}

/// The code points that formulas tell from the one before.
#[derive(Default, Debug)]
pub struct Bounds {
    /// Those below 128, as bits: most texts have no others.
    few: u128,
    others: BTreeSet<u32>,
}

impl Bounds {
    fn extend(&mut self, codes: impl IntoIterator<Item = u32>) {
        for code in codes {
            match code {
                0..128 => self.few |= 1 << code,
                code => drop(self.others.insert(code)),
            }
        }
    }

    fn n(&self) -> usize {
        self.few.count_ones() as usize + self.others.len()
    }

    /// Those below 128, as bits.
    pub fn few(&self) -> u128 {
        self.few
    }

    /// Whether characters of several bytes are told apart.
    pub fn are_among_others(&self) -> bool {
        self.others.range(0x81..=LAST).next().is_some()
    }
}

impl Default for Chars {
    fn default() -> Self {
        let formulas = vec![Formula::None, Formula::Any, Formula::End, Formula::Word];
        let ids = (0..).map(FormulaId).zip(&formulas).map(|(id, formula)| (formula.clone(), id)).collect();
        let mut this = Self {
            ids,
            formulas,
            rows: FxHashMap::default(),
            lives: FxHashMap::default(),
            lengths: FxHashMap::default(),
            steps: vec![Step::Done],
            ahead: vec![Ahead::default()],
            copies: Vec::new(),
            within: None,
            closures: FxHashMap::default(),
            classes: Vec::new(),
            class_ids: FxHashMap::default(),
            lists: Vec::new(),
            list_ids: FxHashMap::default(),
            longest: Vec::new(),
            programs: Vec::new(),
            fingerprints: FxHashMap::default(),
            byte_classes: None,
            bounds: Bounds::default(),
            limit: 200_000,
        };
        this.bounds.extend(WORD.iter().flat_map(|&(from, to)| [from, to + 1]));
        this
    }
}

fn is_word(code: u32) -> bool {
    char::from_u32(code).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Chars {
    fn intern(&mut self, formula: Formula) -> FormulaId {
        let fresh = FormulaId::new(self.formulas.len());
        *self.ids.entry(formula).or_insert_with_key(|formula| {
            self.formulas.push(formula.clone());
            fresh
        })
    }

    /// What all of them allow.
    pub fn all(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        let mut kept = Vec::new();
        for part in parts {
            match &self.formulas[part.index()] {
                Formula::None => return FormulaId::NONE,
                Formula::Any => {}
                Formula::All(inner) => kept.extend_from_slice(inner),
                _ => kept.push(part),
            }
        }
        kept.sort_unstable();
        kept.dedup();
        if kept
            .iter()
            .any(|&part| matches!(self.formulas[part.index()], Formula::Not(of) if kept.contains(&of)))
        {
            return FormulaId::NONE;
        }
        match kept.len() {
            0 => FormulaId::ANY,
            1 => kept[0],
            _ => self.intern(Formula::All(kept.into())),
        }
    }

    /// What any of them allows.
    pub fn any(&mut self, parts: impl IntoIterator<Item = FormulaId>) -> FormulaId {
        let mut kept = Vec::new();
        for part in parts {
            match &self.formulas[part.index()] {
                Formula::Any => return FormulaId::ANY,
                Formula::None => {}
                Formula::One(inner) => kept.extend_from_slice(inner),
                _ => kept.push(part),
            }
        }
        kept.sort_unstable();
        kept.dedup();
        match kept.len() {
            0 => FormulaId::NONE,
            1 => kept[0],
            _ => self.intern(Formula::One(kept.into())),
        }
    }

    /// What it does not allow.
    pub fn not(&mut self, of: FormulaId) -> FormulaId {
        match self.formulas[of.index()] {
            Formula::None => FormulaId::ANY,
            Formula::Any => FormulaId::NONE,
            Formula::Not(inner) => inner,
            _ => self.intern(Formula::Not(of)),
        }
    }

    /// One of some words.
    pub fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> FormulaId {
        let mut list: Vec<Vec<char>> = words.into_iter().map(|word| word.chars().collect()).collect();
        list.sort_unstable();
        list.dedup();
        let (fresh, n) = (self.lists.len() as u32, list.len() as u32);
        let number = *self.list_ids.entry(list.into()).or_insert_with_key(|list| {
            self.bounds.extend(list.iter().flatten().flat_map(|&c| [c as u32, c as u32 + 1]));
            self.longest.push(list.iter().map(Vec::len).max().unwrap_or(0) as u32);
            self.lists.push(list.clone());
            fresh
        });
        self.left_of(number, 0, n, 0)
    }

    fn left_of(&mut self, list: u32, from: u32, to: u32, depth: u32) -> FormulaId {
        if from == to { FormulaId::NONE } else { self.intern(Formula::Words { list, from, to, depth }) }
    }

    /// The strings in which a pattern is found.
    pub fn search(&mut self, pattern: &Pattern) -> Result<FormulaId, TooLarge> {
        let is_plain = has_plain_steps(pattern, true, true);
        self.within = None;
        self.programs.push((self.steps.len() as u32, None));
        let mut start = self.compile(pattern, 0, is_plain)?;
        if !begins_at_start(pattern) {
            let every =
                self.class(&ClassUnicode::new([regex_syntax::hir::ClassUnicodeRange::new('\0', char::MAX)]));
            let split = self.push(Step::Split(vec![start]))?;
            let skip = self.push(Step::Read { class: every, next: split, is_plain })?;
            self.set_split(split, vec![start, skip]);
            start = split;
        }
        Ok(self.closure(start, Before::Start))
    }

    fn push(&mut self, step: Step) -> Result<u32, TooLarge> {
        if self.steps.len() >= self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        let mut ahead = self.ahead_of(&step);
        ahead.copies = self.within;
        ahead.is_counted |= self.within.is_some();
        self.ahead.push(ahead);
        self.steps.push(step);
        Ok(self.steps.len() as u32 - 1)
    }

    /// What is known of a step by the steps that it leads to, which are made before.
    fn ahead_of(&self, step: &Step) -> Ahead {
        let (nexts, reads) = match step {
            Step::Done => return Ahead::default(),
            Step::Split(nexts) => (&nexts[..], 0),
            Step::Read { next, .. } => (std::slice::from_ref(next), 1),
            Step::AtStart(next)
            | Step::AtEnd(next)
            | Step::AtWordBoundary { next, .. }
            | Step::Look { next, .. } => (std::slice::from_ref(next), 0),
        };
        let nexts = || nexts.iter().map(|&next| self.ahead[next as usize]);
        let least = nexts().map(|next| next.least).min().unwrap_or(0) + reads;
        let most = nexts().map(|next| next.most).max().unwrap_or(0).max(least);
        Ahead { least, most, is_counted: nexts().any(|next| next.is_counted), copies: None }
    }

    /// Where a split leads that was made before what it leads to: all that was made since leads to it.
    fn set_split(&mut self, split: u32, nexts: Vec<u32>) {
        let step = Step::Split(nexts);
        let Ahead { least, most, is_counted, .. } = self.ahead_of(&step);
        self.steps[split as usize] = step;
        self.ahead[split as usize].least = least;
        for ahead in &mut self.ahead[split as usize..] {
            ahead.most = ahead.most.max(most);
            ahead.is_counted |= is_counted;
        }
    }

    fn class(&mut self, class: &ClassUnicode) -> u32 {
        let ranges: Vec<(u32, u32)> =
            class.ranges().iter().map(|range| (range.start() as u32, range.end() as u32)).collect();
        let fresh = self.classes.len() as u32;
        *self.class_ids.entry(ranges).or_insert_with_key(|ranges| {
            self.bounds.extend(ranges.iter().flat_map(|&(from, to)| [from, to + 1]));
            self.classes.push(ranges.clone());
            fresh
        })
    }

    /// The program that reads a pattern and goes on with `next`. (Patterns nest to a bounded depth.)
    fn compile(&mut self, pattern: &Pattern, next: u32, is_plain: bool) -> Result<u32, TooLarge> {
        match pattern {
            Pattern::Empty => Ok(next),
            Pattern::Class(class) => {
                let class = self.class(class);
                self.push(Step::Read { class, next, is_plain })
            }
            Pattern::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.compile(part, next, is_plain))
            }
            Pattern::Alternate(parts) => {
                let starts = parts.iter().map(|part| self.compile(part, next, is_plain));
                let starts = starts.collect::<Result<Vec<_>, _>>()?;
                self.push(Step::Split(starts))
            }
            Pattern::Repeat { inner, min, max } => self.repeat(inner, (*min, *max), next, is_plain),
            Pattern::Start => self.push(Step::AtStart(next)),
            Pattern::End => self.push(Step::AtEnd(next)),
            Pattern::WordBoundary { negated } => self.push(Step::AtWordBoundary { negated: *negated, next }),
            Pattern::LookAhead { inner, negated } => {
                let inner = self.compile(inner, 0, false)?;
                self.push(Step::Look { inner, negated: *negated, next })
            }
        }
    }

    fn repeat(
        &mut self,
        inner: &Pattern,
        (min, max): (u32, Option<u32>),
        next: u32,
        is_plain: bool,
    ) -> Result<u32, TooLarge> {
        let mut start = next;
        match max {
            None => {
                let split = self.push(Step::Split(vec![next]))?;
                let body = self.compile(inner, split, is_plain)?;
                self.set_split(split, vec![body, next]);
                start = split;
            }
            Some(max) => {
                start = self.copies_of(inner, max.saturating_sub(min), start, Some(next), is_plain)?
            }
        }
        self.copies_of(inner, min, start, None, is_plain)
    }

    /// So many copies of a pattern before a step; each may be left for `exit`, if that is given.
    fn copies_of(
        &mut self,
        inner: &Pattern,
        n: u32,
        next: u32,
        exit: Option<u32>,
        is_plain: bool,
    ) -> Result<u32, TooLarge> {
        let (first, outer, mut start) = (self.steps.len() as u32, self.within, next);
        for _ in 0..n {
            let (before, mut body) = (self.steps.len(), self.compile(inner, start, is_plain)?);
            if self.steps.len() == before {
                break;
            }
            let least = self.ahead[body as usize].least - self.ahead[start as usize].least;
            if let Some(exit) = exit {
                body = self.push(Step::Split(vec![body, exit]))?;
            }
            start = body;
            // Copies that may read nothing are passed by any text.
            if self.within == outer && n > NEAR_COPIES && least > 0 {
                self.copies.push(Copies { first, size: self.steps.len() as u32 - first, least, outer });
                self.within = NonZeroU32::new(self.copies.len() as u32);
            }
        }
        self.within = outer;
        Ok(start)
    }

    /// What a text of at most so many code points does the same to: of the copies of a repetition that it
    /// cannot reach the end of, one stands for all. Both have a string or none.
    pub fn alike(&mut self, formula: FormulaId, n: u64) -> FormulaId {
        match self.formulas[formula.index()].clone() {
            Formula::Step(at) if self.is_plain(at) => {
                let near = self.near(at, n);
                self.intern(Formula::Step(near))
            }
            Formula::One(parts) => {
                let parts: Vec<FormulaId> = parts.iter().map(|&part| self.alike(part, n)).collect();
                self.any(parts)
            }
            _ => formula,
        }
    }

    fn is_plain(&self, at: u32) -> bool {
        matches!(self.steps[at as usize], Step::Read { is_plain: true, .. })
    }

    /// The same step in the copies that stand for those farther from the end.
    fn near(&self, mut at: u32, n: u64) -> u32 {
        let mut within = self.ahead[at as usize].copies;
        while let Some(id) = within {
            let Copies { first, size, least, outer } = self.copies[id.get() as usize - 1];
            let (copy, near) =
                ((at - first) / size, (n / u64::from(least)).saturating_add(NEAR_COPIES.into()));
            at -= size * copy.saturating_sub(near.try_into().unwrap_or(u32::MAX));
            within = outer;
        }
        at
    }

    /// Whether [`alike`](Self::alike) can be another for this formula or one that it leads to.
    pub fn is_counted(&self, formula: FormulaId) -> bool {
        match &self.formulas[formula.index()] {
            Formula::Step(at) => self.ahead[*at as usize].is_counted,
            Formula::All(parts) | Formula::One(parts) => parts.iter().any(|&part| self.is_counted(part)),
            Formula::Not(of) => self.is_counted(*of),
            _ => false,
        }
    }

    /// Some number of characters that are enough to complete whatever can be completed, wherever this formula
    /// leads. `None` where its form does not tell.
    pub fn reserve(&self, formula: FormulaId) -> Option<u64> {
        match &self.formulas[formula.index()] {
            Formula::Any | Formula::End => Some(0),
            Formula::None | Formula::Word => Some(1),
            Formula::Step(at) => self.is_plain(*at).then(|| self.ahead[*at as usize].most.into()),
            Formula::Words { list, depth, .. } => Some(u64::from(self.longest[*list as usize] - depth)),
            Formula::Not(of) => match self.formulas[of.index()] {
                Formula::End => Some(1),
                // One that is longer than all.
                Formula::Words { list, depth, .. } => {
                    Some(u64::from(self.longest[list as usize] - depth + 1))
                }
                _ => None,
            },
            Formula::One(parts) => {
                parts.iter().try_fold(0, |most: u64, &part| Some(most.max(self.reserve(part)?)))
            }
            Formula::All(_) => None,
        }
    }

    /// A bound on how many characters a string of the formula has: none has fewer.
    pub fn at_least(&self, formula: FormulaId) -> u64 {
        match &self.formulas[formula.index()] {
            Formula::None | Formula::Any | Formula::End => 0,
            Formula::Word => 1,
            Formula::Step(at) => self.ahead[*at as usize].least.into(),
            // To look through many words would cost more than it tells.
            Formula::Words { .. } | Formula::Not(_) => u64::from(!self.accepts_empty(formula)),
            Formula::All(parts) => parts.iter().map(|&part| self.at_least(part)).max().unwrap_or(0),
            Formula::One(parts) => parts.iter().map(|&part| self.at_least(part)).min().unwrap_or(0),
        }
    }

    /// What tells the strings of a formula from those of others, however it was made; `None` of many words.
    pub fn fingerprint(&mut self, formula: FormulaId) -> Option<Fingerprint> {
        if let Some(&known) = self.fingerprints.get(&formula) {
            return known;
        }
        let found = self.find_fingerprint(formula);
        self.fingerprints.insert(formula, found);
        found
    }

    fn find_fingerprint(&mut self, formula: FormulaId) -> Option<Fingerprint> {
        let all = |this: &mut Self, parts: &[FormulaId]| {
            // Their numbers, and so their order, are those of this table.
            let parts: Option<Vec<_>> = parts.iter().map(|&part| this.fingerprint(part)).collect();
            let mut parts = parts?;
            parts.sort_unstable();
            Some(parts)
        };
        Some(match self.formulas[formula.index()].clone() {
            Formula::None => Fingerprint::of("none"),
            Formula::Any => Fingerprint::of("any"),
            Formula::End => Fingerprint::of("end"),
            Formula::Word => Fingerprint::of("word"),
            Formula::Step(at) => {
                let (first, program) = self.program(at);
                Fingerprint::of(&("step", program, at - first))
            }
            Formula::Words { list, from, to, depth } => {
                let words = &self.lists[list as usize][from as usize..to as usize];
                if words.len() > FEW_WORDS {
                    return None;
                }
                let left: Vec<&[char]> = words.iter().map(|word| &word[depth as usize..]).collect();
                Fingerprint::of(&("words", left))
            }
            Formula::All(parts) => Fingerprint::of(&("all", all(self, &parts)?)),
            Formula::One(parts) => Fingerprint::of(&("one", all(self, &parts)?)),
            Formula::Not(of) => Fingerprint::of(&("not", self.fingerprint(of)?)),
        })
    }

    /// The first step of the program to which a step belongs, and the program's fingerprint. Cost, once: its
    /// length.
    fn program(&mut self, step: u32) -> (u32, Fingerprint) {
        let at = self.programs.partition_point(|&(first, _)| first <= step) - 1;
        let (first, known) = self.programs[at];
        let found = known.unwrap_or_else(|| {
            let end = self.programs.get(at + 1).map_or(self.steps.len(), |next| next.0 as usize);
            // The first of all steps is the end of every program.
            let relative = |&next: &u32| next.checked_sub(first);
            let shape = |step: &Step| match step {
                Step::Read { class, next, is_plain } => {
                    let class = Fingerprint::of(&self.classes[*class as usize]);
                    (0, *is_plain, Some(class), vec![relative(next)])
                }
                Step::Split(nexts) => (1, false, None, nexts.iter().map(relative).collect()),
                Step::AtStart(next) => (2, false, None, vec![relative(next)]),
                Step::AtEnd(next) => (3, false, None, vec![relative(next)]),
                Step::AtWordBoundary { negated, next } => (4, *negated, None, vec![relative(next)]),
                Step::Look { inner, negated, next } => {
                    (5, *negated, None, vec![relative(inner), relative(next)])
                }
                Step::Done => (6, false, None, Vec::new()),
            };
            let shapes: Vec<_> = self.steps[first as usize..end].iter().map(shape).collect();
            Fingerprint::of(&shapes)
        });
        self.programs[at].1 = Some(found);
        (first, found)
    }

    /// What a program allows from a step on.
    fn closure(&mut self, step: u32, before: Before) -> FormulaId {
        if let Some(&known) = self.closures.get(&(step, before)) {
            return known;
        }
        let found = self.close(step, before, &mut FxHashSet::default());
        self.closures.insert((step, before), found);
        found
    }

    /// `open` are the steps with conditions that lead here without a code point between: to come by them
    /// again allows nothing new.
    fn close(&mut self, step: u32, before: Before, open: &mut FxHashSet<u32>) -> FormulaId {
        let (mut agenda, mut seen, mut parts) = (vec![step], FxHashSet::default(), Vec::new());
        while let Some(at) = agenda.pop() {
            if !seen.insert(at) {
                continue;
            }
            match self.steps[at as usize].clone() {
                Step::Done => return FormulaId::ANY,
                Step::Read { class, .. } => {
                    if !self.classes[class as usize].is_empty() {
                        parts.push(self.intern(Formula::Step(at)));
                    }
                }
                Step::Split(nexts) => agenda.extend(nexts),
                Step::AtStart(next) => {
                    if before == Before::Start {
                        agenda.push(next);
                    }
                }
                conditional => {
                    if open.insert(at) {
                        parts.push(self.close_conditional(conditional, before, open));
                        open.remove(&at);
                    }
                }
            }
        }
        self.any(parts)
    }

    fn close_conditional(&mut self, step: Step, before: Before, open: &mut FxHashSet<u32>) -> FormulaId {
        match step {
            Step::AtEnd(next) => {
                let rest = self.close(next, before, open);
                self.all([FormulaId::END, rest])
            }
            Step::AtWordBoundary { negated, next } => {
                let rest = self.close(next, before, open);
                let is_word_next = (before == Before::Word) == negated;
                let condition = if is_word_next { FormulaId::WORD } else { self.not(FormulaId::WORD) };
                self.all([condition, rest])
            }
            Step::Look { inner, negated, next } => {
                let inner = self.close(inner, before, open);
                let condition = if negated { self.not(inner) } else { inner };
                let rest = self.close(next, before, open);
                self.all([condition, rest])
            }
            _ => FormulaId::NONE,
        }
    }

    /// Whether the empty string is allowed.
    pub fn accepts_empty(&self, formula: FormulaId) -> bool {
        match &self.formulas[formula.index()] {
            Formula::None | Formula::Word | Formula::Step(_) => false,
            Formula::Any | Formula::End => true,
            Formula::Words { list, from, depth, .. } => {
                self.lists[*list as usize][*from as usize].len() == *depth as usize
            }
            Formula::All(parts) => parts.iter().all(|&part| self.accepts_empty(part)),
            Formula::One(parts) => parts.iter().any(|&part| self.accepts_empty(part)),
            Formula::Not(of) => !self.accepts_empty(*of),
        }
    }

    /// The classes of bytes that are made of the code points that formulas tell from the one before, of all
    /// that there can be. Made once for as many: there are many automata for one of these.
    pub fn byte_classes(&mut self, make: impl FnOnce(&Bounds) -> Box<[u8; 256]>) -> Box<[u8; 256]> {
        let n_bounds = self.bounds.n();
        match &self.byte_classes {
            Some((known, classes)) if *known == n_bounds => classes.clone(),
            _ => self.byte_classes.insert((n_bounds, make(&self.bounds))).1.clone(),
        }
    }

    /// Whether most code points lead to any string, as far as the form tells.
    pub fn is_mostly_any(&self, formula: FormulaId) -> bool {
        match self.formulas[formula.index()] {
            Formula::Any => true,
            Formula::Not(of) => self.is_listed(of),
            _ => false,
        }
    }

    /// Whether it is one of some words.
    pub fn is_listed(&self, formula: FormulaId) -> bool {
        matches!(self.formulas[formula.index()], Formula::Words { .. })
    }

    /// The words that it is one of, if that is its form and nothing of them was read.
    pub fn listed(&self, formula: FormulaId) -> &[Vec<char>] {
        match self.formulas[formula.index()] {
            Formula::Words { list, from, to, depth: 0 } => {
                &self.lists[list as usize][from as usize..to as usize]
            }
            _ => &[],
        }
    }

    /// Where each code point leads: the last of each range, and the formula.
    pub fn row(&mut self, formula: FormulaId) -> Result<Row, TooLarge> {
        if let Some(known) = self.rows.get(&formula) {
            return Ok(known.clone());
        }
        let row = self.compute_row(formula)?;
        if self.formulas.len() > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        self.rows.insert(formula, row.clone());
        Ok(row)
    }

    fn compute_row(&mut self, formula: FormulaId) -> Result<Row, TooLarge> {
        Ok(match self.formulas[formula.index()].clone() {
            Formula::None | Formula::End => [(LAST, FormulaId::NONE)].into(),
            Formula::Any => [(LAST, FormulaId::ANY)].into(),
            Formula::Word => row_of(WORD.iter().map(|&range| (range, FormulaId::ANY))),
            Formula::Step(at) => self.step_row(at),
            Formula::Words { list, from, to, depth } => self.words_row(list, from, to, depth),
            Formula::Not(of) => {
                let row = self.row(of)?;
                let targets: Vec<_> = row.iter().map(|&(last, target)| (last, self.not(target))).collect();
                joined(targets)
            }
            Formula::All(parts) => self.combined(&parts, Self::all)?,
            Formula::One(parts) => self.combined(&parts, Self::any)?,
        })
    }

    fn step_row(&mut self, at: u32) -> Row {
        let Step::Read { class, next, .. } = self.steps[at as usize] else {
            return [(LAST, FormulaId::NONE)].into();
        };
        let ranges = self.classes[class as usize].clone();
        let (word, other) = (self.closure(next, Before::Word), self.closure(next, Before::Other));
        if word == other {
            return row_of(ranges.into_iter().map(|range| (range, other)));
        }
        let mut parts = Vec::new();
        for (from, to) in ranges {
            // The characters of `\w` are below 128.
            for code in from..=to.min(127) {
                parts.push(((code, code), if is_word(code) { word } else { other }));
            }
            if to > 127 {
                parts.push(((from.max(128), to), other));
            }
        }
        row_of(parts.into_iter())
    }

    fn words_row(&mut self, list: u32, from: u32, to: u32, depth: u32) -> Row {
        let mut parts = Vec::new();
        let mut at = from;
        while at < to {
            let Some(&c) = self.lists[list as usize][at as usize].get(depth as usize) else {
                at += 1;
                continue;
            };
            let words = &self.lists[list as usize][at as usize..to as usize];
            let n = words.partition_point(|word| word.get(depth as usize) == Some(&c)) as u32;
            let left = self.left_of(list, at, at + n, depth + 1);
            parts.push(((c as u32, c as u32), left));
            at += n;
        }
        row_of(parts.into_iter())
    }

    fn combined(
        &mut self,
        parts: &[FormulaId],
        join: fn(&mut Self, Vec<FormulaId>) -> FormulaId,
    ) -> Result<Row, TooLarge> {
        let rows = parts.iter().map(|&part| self.row(part)).collect::<Result<Vec<_>, _>>()?;
        let mut at = vec![0; rows.len()];
        let mut targets = Vec::new();
        loop {
            let here: Vec<FormulaId> = rows.iter().zip(&at).map(|(row, &at)| row[at].1).collect();
            let last = rows.iter().zip(&at).map(|(row, &at)| row[at].0).min().unwrap_or(LAST);
            targets.push((last, join(self, here)));
            if last >= LAST {
                return Ok(joined(targets));
            }
            for (row, at) in rows.iter().zip(&mut at) {
                *at += usize::from(row[*at].0 == last);
            }
        }
    }

    /// Where a code point leads.
    pub fn step(&mut self, formula: FormulaId, code: u32) -> Result<FormulaId, TooLarge> {
        Ok(self.step_run(formula, code)?.0)
    }

    /// The same, and the code points around this one that lead there too, the first and the last.
    pub fn step_run(&mut self, formula: FormulaId, code: u32) -> Result<(FormulaId, (u32, u32)), TooLarge> {
        let row = self.row(formula)?;
        let at = row.partition_point(|&(last, _)| last < code);
        let first = if at == 0 { 0 } else { row[at - 1].0 + 1 };
        Ok((row[at].1, (first, row[at].0)))
    }

    /// Whether a string is allowed.
    pub fn contains(&mut self, formula: FormulaId, text: &str) -> Result<bool, TooLarge> {
        let mut at = formula;
        for c in text.chars() {
            at = self.step(at, c as u32)?;
            if at == FormulaId::NONE {
                return Ok(false);
            }
        }
        Ok(self.accepts_empty(at))
    }

    /// Whether the form alone tells that some string is allowed.
    fn is_plainly_live(&self, formula: FormulaId) -> bool {
        match &self.formulas[formula.index()] {
            Formula::Any | Formula::End | Formula::Word | Formula::Words { .. } => true,
            Formula::Step(at) => self.is_plain(*at),
            Formula::One(parts) => parts.iter().any(|&part| self.is_plainly_live(part)),
            // Of infinitely many strings finitely many are left out.
            Formula::Not(of) => matches!(self.formulas[of.index()], Formula::Words { .. } | Formula::End),
            _ => false,
        }
    }

    /// Whether some string is allowed.
    pub fn is_live(&mut self, formula: FormulaId) -> Result<bool, TooLarge> {
        if formula == FormulaId::NONE {
            return Ok(false);
        }
        if self.is_plainly_live(formula) {
            return Ok(true);
        }
        if let Some(&known) = self.lives.get(&formula) {
            return Ok(known);
        }
        // Each with the one that it was reached from: on a way to the end of a string all are live.
        let mut agenda = vec![(formula, FormulaId::NONE)];
        let mut seen: FxHashMap<FormulaId, FormulaId> = FxHashMap::default();
        while let Some((at, from)) = agenda.pop() {
            if seen.contains_key(&at) {
                continue;
            }
            seen.insert(at, from);
            if self.accepts_empty(at) || self.is_plainly_live(at) || self.lives.get(&at) == Some(&true) {
                let mut on_way = at;
                while on_way != FormulaId::NONE {
                    self.lives.insert(on_way, true);
                    on_way = seen.get(&on_way).copied().unwrap_or(FormulaId::NONE);
                }
                return Ok(true);
            }
            if seen.len() > self.limit {
                return Err(TooLarge { limit: self.limit });
            }
            let row = self.row(at)?;
            let targets = row.iter().map(|&(_, target)| (target, at));
            agenda.extend(
                targets.filter(|(target, _)| {
                    *target != FormulaId::NONE && self.lives.get(target) != Some(&false)
                }),
            );
        }
        // Whatever was reached leads nowhere either.
        self.lives.extend(seen.into_keys().map(|at| (at, false)));
        Ok(false)
    }

    /// Whether every beginning of a string is one of infinitely many: none is where strings can only end.
    /// False, too, if that takes more than a few states to find out.
    pub fn is_endless(&mut self, formula: FormulaId) -> Result<bool, TooLarge> {
        let (mut seen, mut agenda) = (FxHashSet::from_iter([formula]), vec![formula]);
        while let Some(at) = agenda.pop() {
            let mut goes_on = false;
            for &(_, next) in self.row(at)?.iter() {
                if self.is_live(next)? {
                    goes_on = true;
                    if seen.insert(next) {
                        agenda.push(next);
                    }
                }
            }
            if !goes_on || seen.len() > FEW_STATES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether some string of a formula, of a length in a range, is none of `but`. Its first character is one
    /// of `first`, if that is given.
    pub fn has_other(
        &mut self,
        formula: FormulaId,
        (min, max): (u64, u64),
        first: Option<&[(u32, u32)]>,
        but: &[&[char]],
    ) -> Result<bool, TooLarge> {
        if first.is_none() && but.is_empty() {
            return self.has_length(formula, min, max);
        }
        if first.is_none() && min == 0 && self.accepts_empty(formula) && !but.contains(&&[][..]) {
            return Ok(true);
        }
        let Some(most) = max.checked_sub(1) else { return Ok(false) };
        let row = self.row(formula)?;
        let mut from = 0;
        for &(last, next) in row.iter() {
            let (low, high) = (from, last);
            from = last + 1;
            if !self.has_length(next, min.saturating_sub(1), most)? {
                continue;
            }
            for (low, high) in code_points((low, high), first) {
                if self.goes_elsewhere(next, (min.saturating_sub(1), most), (low, high), but)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a character of a range leads to a string that is none of some.
    fn goes_elsewhere(
        &mut self,
        next: FormulaId,
        range: (u64, u64),
        (low, high): (u32, u32),
        but: &[&[char]],
    ) -> Result<bool, TooLarge> {
        let is_here = |word: &&&[char]| word.first().is_some_and(|&c| (low..=high).contains(&(c as u32)));
        let here: Vec<&[char]> = but.iter().filter(is_here).copied().collect();
        let mut firsts: Vec<char> = here.iter().map(|word| word[0]).collect();
        firsts.sort_unstable();
        firsts.dedup();
        if (firsts.len() as u32) < high - low + 1 {
            return Ok(true);
        }
        for c in firsts {
            let left: Vec<&[char]> = here.iter().filter(|word| word[0] == c).map(|word| &word[1..]).collect();
            if self.has_other(next, range, None, &left)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The strings of a formula with a length in a range, if they are at most `most`.
    pub fn strings(
        &mut self,
        formula: FormulaId,
        range: (u64, u64),
        most: usize,
    ) -> Result<Option<Vec<String>>, TooLarge> {
        let mut found = Vec::new();
        let mut agenda = vec![(formula, range, String::new())];
        while let Some((formula, (min, max), text)) = agenda.pop() {
            if min == 0 && self.accepts_empty(formula) {
                found.push(text.clone());
            }
            let Some(max) = max.checked_sub(1) else { continue };
            let (row, min, mut from) = (self.row(formula)?, min.saturating_sub(1), 0);
            // Mostly they are too many, which is known before one of them is spelled.
            let (mut ranges, mut n) = (Vec::new(), found.len() + agenda.len());
            for &(last, next) in row.iter() {
                let codes = (from, last);
                from = last + 1;
                if !self.has_length(next, min, max)? {
                    continue;
                }
                for (low, high) in code_points(codes, None) {
                    // Each leads to one string at least.
                    n += (high - low) as usize + 1;
                    if n > most.saturating_add(1) {
                        return Ok(None);
                    }
                    ranges.push((low, high, next));
                }
            }
            for (low, high, next) in ranges {
                let longer = |c| (next, (min, max), format!("{text}{c}"));
                agenda.extend((low..=high).filter_map(char::from_u32).map(longer));
            }
            if found.len() > most || text.len() > LONG {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Whether a string is allowed whose length is in a range.
    pub fn has_length(&mut self, formula: FormulaId, min: u64, max: u64) -> Result<bool, TooLarge> {
        if min > max {
            return Ok(false);
        }
        if formula == FormulaId::ANY {
            return Ok(true);
        }
        if min == 0 && (max == u64::MAX || self.reserve(formula).is_some_and(|reserve| reserve <= max)) {
            return self.is_live(formula);
        }
        if min == 0 && self.accepts_empty(formula) {
            return Ok(true);
        }
        if let Some(&known) = self.lengths.get(&(formula, min, max)) {
            return Ok(known);
        }
        let found = self.find_length(formula, min, max)?;
        self.lengths.insert((formula, min, max), found);
        Ok(found)
    }

    /// All that is reached by strings of a length, length by length, until it repeats.
    fn find_length(&mut self, formula: FormulaId, min: u64, max: u64) -> Result<bool, TooLarge> {
        let mut level = vec![formula];
        let mut known: FxHashMap<Vec<FormulaId>, u64> = FxHashMap::default();
        let (mut accepts, mut work) = (Vec::new(), 0);
        loop {
            let length = accepts.len() as u64;
            if level.contains(&FormulaId::ANY) {
                return Ok(length <= max);
            }
            let is_accepted = level.iter().any(|&at| self.accepts_empty(at));
            if length > max || length >= min && is_accepted {
                return Ok(length <= max);
            }
            if let Some(&first) = known.get(&level) {
                let period = length - first;
                let mut later = min.max(length)..=max.min(min.max(length) + period);
                return Ok(later.any(|length| accepts[(first + (length - first) % period) as usize]));
            }
            accepts.push(is_accepted);
            work += level.len() + 1;
            if work > self.limit {
                return Err(TooLarge { limit: self.limit });
            }
            let mut next: Vec<FormulaId> = Vec::new();
            for &at in &level {
                next.extend(self.row(at)?.iter().map(|&(_, target)| target));
            }
            next.retain(|&target| target != FormulaId::NONE);
            next.sort_unstable();
            next.dedup();
            known.insert(std::mem::replace(&mut level, next), length);
        }
    }
}

/// Ranges with targets, ascending; what lies between leads nowhere.
fn row_of(parts: impl Iterator<Item = ((u32, u32), FormulaId)>) -> Row {
    let mut targets = Vec::new();
    let mut next = 0;
    for ((from, to), target) in parts {
        if from > next {
            targets.push((from - 1, FormulaId::NONE));
        }
        targets.push((to, target));
        next = to + 1;
    }
    if next <= LAST {
        targets.push((LAST, FormulaId::NONE));
    }
    joined(targets)
}

/// Neighbours with one target become one.
fn joined(targets: Vec<(u32, FormulaId)>) -> Row {
    let mut kept: Vec<(u32, FormulaId)> = Vec::with_capacity(targets.len());
    for (last, target) in targets {
        match kept.last_mut() {
            Some(before) if before.1 == target => before.0 = last,
            _ => kept.push((last, target)),
        }
    }
    kept.into()
}

/// Whether a match can only begin where the text begins.
fn begins_at_start(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Start => true,
        Pattern::Concat(parts) => {
            parts.iter().find(|part| !matches!(part, Pattern::LookAhead { .. })).is_some_and(begins_at_start)
        }
        Pattern::Alternate(parts) => !parts.is_empty() && parts.iter().all(begins_at_start),
        Pattern::Repeat { inner, min, .. } => *min > 0 && begins_at_start(inner),
        _ => false,
    }
}

/// Whether every step of a pattern's program has a way to the end: anchors stand at its ends only, and
/// nothing looks ahead.
fn has_plain_steps(pattern: &Pattern, is_first: bool, is_last: bool) -> bool {
    match pattern {
        Pattern::Empty => true,
        Pattern::Class(class) => !class.ranges().is_empty(),
        Pattern::Start => is_first,
        Pattern::End => is_last,
        Pattern::WordBoundary { .. } | Pattern::LookAhead { .. } => false,
        Pattern::Concat(parts) => {
            let n = parts.len();
            parts
                .iter()
                .enumerate()
                .all(|(at, part)| has_plain_steps(part, is_first && at == 0, is_last && at + 1 == n))
        }
        Pattern::Alternate(parts) => parts.iter().all(|part| has_plain_steps(part, is_first, is_last)),
        Pattern::Repeat { inner, .. } => has_plain_steps(inner, false, false),
    }
}
