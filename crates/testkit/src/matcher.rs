//! The language of a pattern, by sets of end positions.
//!
//! [`ends`] gives every position where a match that begins at `start` can end: the definition of "matches as
//! a language", one line per operation, blind to the order of alternatives and to greed. Cost: polynomial in
//! the text and exponential in nothing, but with no regard for speed. It recurses on the depth of the
//! pattern: for tests only.

use std::collections::BTreeSet;

use anygram_grammar::ir::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Every `end` such that the pattern matches exactly `text[start..end]`.
///
/// # Panics
/// If a regular expression of the pattern has a look-around assertion.
pub fn ends(pattern: &Pattern, text: &[u8], start: usize) -> BTreeSet<usize> {
    match pattern {
        Pattern::Regex(hir) => hir_ends(hir, text, start),
        Pattern::Concat(parts) => in_turn(parts, BTreeSet::from([start]), |part, at| ends(part, text, at)),
        Pattern::Alternate(parts) => parts.iter().flat_map(|part| ends(part, text, start)).collect(),
        Pattern::Repeat { inner, min, max } => repeated(start, *min, *max, |at| ends(inner, text, at)),
        Pattern::And(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| ends(part, text, start)).collect();
            (start..=text.len()).filter(|end| parts.iter().all(|part| part.contains(end))).collect()
        }
        Pattern::Not(inner) => {
            let inner = ends(inner, text, start);
            let is_text = |end: &usize| std::str::from_utf8(&text[start..*end]).is_ok();
            (start..=text.len()).filter(is_text).filter(|end| !inner.contains(end)).collect()
        }
    }
}

/// Whether the pattern matches exactly this text.
pub fn matches(pattern: &Pattern, text: &[u8]) -> bool {
    ends(pattern, text, 0).contains(&text.len())
}

fn hir_ends(hir: &Hir, text: &[u8], start: usize) -> BTreeSet<usize> {
    match hir.kind() {
        HirKind::Empty => BTreeSet::from([start]),
        HirKind::Literal(literal) => {
            text[start..].starts_with(&literal.0).then_some(start + literal.0.len()).into_iter().collect()
        }
        HirKind::Class(class) => class_end(class, text, start).into_iter().collect(),
        HirKind::Look(look) => panic!("a pattern has no look-around, this one has {look:?}"),
        HirKind::Repetition(repetition) => {
            repeated(start, repetition.min, repetition.max, |at| hir_ends(&repetition.sub, text, at))
        }
        HirKind::Capture(capture) => hir_ends(&capture.sub, text, start),
        HirKind::Concat(parts) => {
            in_turn(parts, BTreeSet::from([start]), |part, at| hir_ends(part, text, at))
        }
        HirKind::Alternation(parts) => parts.iter().flat_map(|part| hir_ends(part, text, start)).collect(),
    }
}

/// Where one member of the class ends; there is at most one, since UTF-8 is a prefix code.
fn class_end(class: &Class, text: &[u8], start: usize) -> Option<usize> {
    match class {
        Class::Bytes(class) => {
            let byte = *text.get(start)?;
            class.iter().any(|range| (range.start()..=range.end()).contains(&byte)).then_some(start + 1)
        }
        Class::Unicode(class) => {
            let decoded = |end: &usize| std::str::from_utf8(&text[start..*end]).is_ok();
            let end = (start + 1..=text.len().min(start + 4)).find(decoded)?;
            let char = std::str::from_utf8(&text[start..end]).ok()?.chars().next()?;
            class.iter().any(|range| (range.start()..=range.end()).contains(&char)).then_some(end)
        }
    }
}

fn in_turn<P>(
    parts: &[P],
    starts: BTreeSet<usize>,
    step: impl Fn(&P, usize) -> BTreeSet<usize>,
) -> BTreeSet<usize> {
    parts.iter().fold(starts, |at, part| at.into_iter().flat_map(|at| step(part, at)).collect())
}

/// Where `min` to `max` steps lead. A position already reached in fewer steps need not be left again: fewer
/// steps leave more of them.
fn repeated(
    start: usize,
    min: u32,
    max: Option<u32>,
    step: impl Fn(usize) -> BTreeSet<usize>,
) -> BTreeSet<usize> {
    let all = |from: &BTreeSet<usize>| -> BTreeSet<usize> { from.iter().flat_map(|&at| step(at)).collect() };
    let mut new = BTreeSet::from([start]);
    for _ in 0..min {
        new = all(&new);
    }
    let mut reached = new.clone();
    let mut steps = min;
    while !new.is_empty() && max.is_none_or(|max| steps < max) {
        new = &all(&new) - &reached;
        reached.extend(&new);
        steps += 1;
    }
    reached
}
