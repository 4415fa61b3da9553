//! The language of a pattern by Brzozowski derivatives.
//!
//! [`Language`] answers what sets of end positions cannot: whether a pattern matches anything at all, and
//! whether some text can still become a match. It is a second, independent reading of patterns; the tests
//! compare the two.
//!
//! Invariant: without [`And`](Language::And) and [`Complement`](Language::Complement), a language is empty
//! iff it is [`Nothing`](Language::Nothing). Cost: one derivative is linear in the size of the expression,
//! and emptiness with a complement visits every derivative, of which there are finitely but exponentially
//! many. Counted repetitions are written out, and everything recurses: for tests only.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anygram_grammar::ir::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

/// A regular language over bytes, simplified as it is built so that there are finitely many derivatives.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Language {
    /// No text.
    Nothing,
    /// The empty text.
    Empty,
    /// One byte of a range, both ends included.
    Byte(u8, u8),
    /// One after the other; the first is not itself a `Concat`.
    Concat(Rc<Language>, Rc<Language>),
    /// The members of any.
    Or(BTreeSet<Rc<Language>>),
    /// The members of all.
    And(BTreeSet<Rc<Language>>),
    /// Every byte string that is not a member.
    Complement(Rc<Language>),
    /// Any number of members.
    Star(Rc<Language>),
}

impl Language {
    /// The language of a pattern.
    ///
    /// # Panics
    /// If a regular expression of the pattern has a look-around assertion.
    pub fn new(pattern: &Pattern) -> Self {
        match pattern {
            Pattern::Regex(hir) => Self::from_hir(hir),
            Pattern::Concat(parts) => concat_all(parts.iter().map(Self::new)),
            Pattern::Alternate(parts) => or(parts.iter().map(Self::new)),
            Pattern::Repeat { inner, min, max } => repeat(Self::new(inner), *min, *max),
            Pattern::And(parts) => and(parts.iter().map(Self::new)),
            Pattern::Not(inner) => and([utf8_text(), complement(Self::new(inner))]),
        }
    }

    fn from_hir(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Empty => Self::Empty,
            HirKind::Literal(literal) => concat_all(literal.0.iter().map(|&byte| Self::Byte(byte, byte))),
            HirKind::Class(Class::Bytes(class)) => {
                or(class.iter().map(|range| Self::Byte(range.start(), range.end())))
            }
            HirKind::Class(Class::Unicode(class)) => {
                or(class.iter().flat_map(|range| utf8_range(range.start(), range.end())))
            }
            HirKind::Look(look) => panic!("a pattern has no look-around, this one has {look:?}"),
            HirKind::Repetition(repetition) => {
                repeat(Self::from_hir(&repetition.sub), repetition.min, repetition.max)
            }
            HirKind::Capture(capture) => Self::from_hir(&capture.sub),
            HirKind::Concat(parts) => concat_all(parts.iter().map(Self::from_hir)),
            HirKind::Alternation(parts) => or(parts.iter().map(Self::from_hir)),
        }
    }

    /// Whether the empty text is a member.
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Nothing | Self::Byte(..) => false,
            Self::Empty | Self::Star(_) => true,
            Self::Concat(first, rest) => first.is_nullable() && rest.is_nullable(),
            Self::Or(parts) => parts.iter().any(|part| part.is_nullable()),
            Self::And(parts) => parts.iter().all(|part| part.is_nullable()),
            Self::Complement(inner) => !inner.is_nullable(),
        }
    }

    /// What may follow `byte` in the members that begin with it.
    pub fn derivative(&self, byte: u8) -> Self {
        match self {
            Self::Nothing | Self::Empty => Self::Nothing,
            Self::Byte(low, high) if (*low..=*high).contains(&byte) => Self::Empty,
            Self::Byte(..) => Self::Nothing,
            Self::Concat(first, rest) => {
                let within = concat(first.derivative(byte), Self::clone(rest));
                if first.is_nullable() { or([within, rest.derivative(byte)]) } else { within }
            }
            Self::Or(parts) => or(parts.iter().map(|part| part.derivative(byte))),
            Self::And(parts) => and(parts.iter().map(|part| part.derivative(byte))),
            Self::Complement(inner) => complement(inner.derivative(byte)),
            Self::Star(inner) => concat(inner.derivative(byte), self.clone()),
        }
    }

    /// What may follow `text` in the members that begin with it.
    pub fn after(&self, text: &[u8]) -> Self {
        text.iter().fold(self.clone(), |language, &byte| language.derivative(byte))
    }

    /// Whether there is no member at all.
    pub fn is_nothing(&self) -> bool {
        if !self.has_boolean() {
            return *self == Self::Nothing;
        }
        let mut seen = BTreeSet::from([self.clone()]);
        let mut agenda = vec![self.clone()];
        while let Some(language) = agenda.pop() {
            if language.is_nullable() {
                return false;
            }
            for next in language.representatives().into_iter().map(|byte| language.derivative(byte)) {
                if seen.insert(next.clone()) {
                    agenda.push(next);
                }
            }
        }
        true
    }

    /// Whether some member is not empty.
    pub fn has_nonempty(&self) -> bool {
        self.representatives().into_iter().any(|byte| !self.derivative(byte).is_nothing())
    }

    fn has_boolean(&self) -> bool {
        match self {
            Self::Nothing | Self::Empty | Self::Byte(..) => false,
            Self::Concat(first, rest) => first.has_boolean() || rest.has_boolean(),
            Self::Or(parts) => parts.iter().any(|part| part.has_boolean()),
            Self::And(_) | Self::Complement(_) => true,
            Self::Star(inner) => inner.has_boolean(),
        }
    }

    /// Bytes such that every other byte has the same derivative as one of them, here and in every language
    /// that derivatives lead to: the least of each interval between borders of ranges.
    fn representatives(&self) -> BTreeSet<u8> {
        let mut borders = BTreeSet::from([0]);
        self.add_borders(&mut borders);
        borders
    }

    fn add_borders(&self, borders: &mut BTreeSet<u8>) {
        match self {
            Self::Nothing | Self::Empty => {}
            Self::Byte(low, high) => borders.extend([*low].into_iter().chain(high.checked_add(1))),
            Self::Concat(first, rest) => {
                first.add_borders(borders);
                rest.add_borders(borders);
            }
            Self::Or(parts) | Self::And(parts) => parts.iter().for_each(|part| part.add_borders(borders)),
            Self::Complement(inner) | Self::Star(inner) => inner.add_borders(borders),
        }
    }
}

/// The bytes that stand in members of these languages, as the sets of those that none of them tells apart:
/// in no text does another byte of the same set make a difference. In ascending order.
pub fn kinds_of_bytes<'a>(languages: impl Iterator<Item = &'a Language>) -> Vec<Vec<u8>> {
    let mut seen: BTreeSet<Language> = languages.cloned().collect();
    let borders: BTreeSet<u8> = seen.iter().flat_map(Language::representatives).collect();
    let mut agenda: Vec<Language> = seen.iter().cloned().collect();
    while let Some(language) = agenda.pop() {
        for next in language.representatives().into_iter().map(|byte| language.derivative(byte)) {
            if seen.insert(next.clone()) {
                agenda.push(next);
            }
        }
    }
    let mut kinds: BTreeMap<Vec<Language>, Vec<u8>> = BTreeMap::new();
    let ends = borders.iter().skip(1).map(|&byte| byte - 1).chain([u8::MAX]);
    for (&start, end) in borders.iter().zip(ends) {
        let after: Vec<Language> = seen.iter().map(|language| language.derivative(start)).collect();
        if !after.iter().all(Language::is_nothing) {
            kinds.entry(after).or_default().extend(start..=end);
        }
    }
    let mut kinds: Vec<Vec<u8>> = kinds.into_values().collect();
    kinds.sort();
    kinds
}

fn concat(first: Language, rest: Language) -> Language {
    match (first, rest) {
        (Language::Nothing, _) | (_, Language::Nothing) => Language::Nothing,
        (Language::Empty, other) | (other, Language::Empty) => other,
        (Language::Concat(a, b), c) => Language::Concat(a, Rc::new(concat(Language::clone(&b), c))),
        (first, rest) => Language::Concat(Rc::new(first), Rc::new(rest)),
    }
}

fn concat_all(parts: impl DoubleEndedIterator<Item = Language>) -> Language {
    parts.rev().fold(Language::Empty, |rest, first| concat(first, rest))
}

fn or(parts: impl IntoIterator<Item = Language>) -> Language {
    let mut flat = BTreeSet::new();
    for part in parts {
        match part {
            Language::Nothing => {}
            Language::Or(inner) => flat.extend(inner),
            other => _ = flat.insert(Rc::new(other)),
        }
    }
    match flat.len() {
        0 => Language::Nothing,
        1 => flat.first().map_or(Language::Nothing, |only| Language::clone(only)),
        _ => Language::Or(flat),
    }
}

fn and(parts: impl IntoIterator<Item = Language>) -> Language {
    let mut flat = BTreeSet::new();
    for part in parts {
        match part {
            Language::Nothing => return Language::Nothing,
            Language::And(inner) => flat.extend(inner),
            other => _ = flat.insert(Rc::new(other)),
        }
    }
    match flat.len() {
        0 => complement(Language::Nothing),
        1 => flat.first().map_or(Language::Nothing, |only| Language::clone(only)),
        _ => Language::And(flat),
    }
}

fn complement(inner: Language) -> Language {
    match inner {
        Language::Complement(inner) => Language::clone(&inner),
        inner => Language::Complement(Rc::new(inner)),
    }
}

fn star(inner: Language) -> Language {
    match inner {
        Language::Nothing | Language::Empty => Language::Empty,
        Language::Star(_) => inner,
        inner => Language::Star(Rc::new(inner)),
    }
}

fn repeat(inner: Language, min: u32, max: Option<u32>) -> Language {
    let rest = match max {
        None => star(inner.clone()),
        Some(max) => {
            (min..max).fold(Language::Empty, |rest, _| or([Language::Empty, concat(inner.clone(), rest)]))
        }
    };
    (0..min).fold(rest, |rest, _| concat(inner.clone(), rest))
}

fn utf8_range(start: char, end: char) -> impl Iterator<Item = Language> {
    Utf8Sequences::new(start, end).map(|sequence| {
        let ranges: Vec<_> =
            sequence.into_iter().map(|range| Language::Byte(range.start, range.end)).collect();
        concat_all(ranges.into_iter())
    })
}

fn utf8_text() -> Language {
    star(or(utf8_range('\0', char::MAX)))
}
