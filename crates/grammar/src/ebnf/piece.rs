//! Regular pieces of rules, as patterns.
//!
//! A piece is a sequence of patterns that has not become a terminal yet. Two numbers keep it in bounds: how
//! many states an automaton for it has when it is written out, and how deep it nests, since those who read
//! patterns recurse.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Repetition};

use crate::ir::Pattern;

/// How deep a pattern may nest.
pub(crate) const DEPTH_LIMIT: u32 = 250;

/// A regular expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    /// One after the other; none for the empty string.
    parts: Vec<Pattern>,
    /// An upper bound of the number of states and bytes, repetitions written out.
    pub size: usize,
    /// How deep the parts nest.
    pub depth: u32,
}

impl Piece {
    pub fn literal(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self { parts: vec![Pattern::literal(text.as_bytes())], size: text.len(), depth: 1 }
    }

    pub fn class(class: ClassUnicode) -> Self {
        let size = 1 + class.ranges().len() / 4;
        Self { parts: vec![Pattern::Regex(Hir::class(Class::Unicode(class)))], size, depth: 1 }
    }

    /// Whether it is the empty string, as it is written.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether it is one text, perhaps in several parts.
    pub fn is_literal(&self) -> bool {
        let literal =
            |part: &Pattern| matches!(part, Pattern::Regex(hir) if matches!(hir.kind(), HirKind::Literal(_)));
        !self.is_empty() && self.parts.iter().all(literal)
    }

    /// This and then another.
    pub fn append(&mut self, other: Self) {
        self.parts.extend(other.parts);
        self.size = self.size.saturating_add(other.size);
        self.depth = self.depth.max(other.depth);
    }

    /// How large the repetition would be.
    pub fn repeated_size(&self, min: u32, max: Option<u32>) -> usize {
        self.size.saturating_mul(max.unwrap_or(min).max(1) as usize).saturating_add(1)
    }

    pub fn repeat(self, min: u32, max: Option<u32>) -> Self {
        if self.is_empty() || max == Some(0) {
            return Self::default();
        }
        let (size, depth) = (self.repeated_size(min, max), self.depth + 2);
        let pattern = match self.into_pattern() {
            Pattern::Regex(hir) => {
                Pattern::Regex(Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(hir) }))
            }
            pattern => Pattern::Repeat { inner: Box::new(pattern), min, max },
        };
        Self { parts: vec![pattern], size, depth }
    }

    /// Any of them.
    pub fn alternate(mut alternatives: Vec<Self>) -> Self {
        if alternatives.len() == 1 {
            return alternatives.swap_remove(0);
        }
        let size = alternatives.iter().fold(1usize, |sum, piece| sum.saturating_add(piece.size));
        let depth = alternatives.iter().map(|piece| piece.depth).max().unwrap_or(0) + 2;
        let patterns = alternatives.into_iter().map(Self::into_pattern).collect();
        let pattern = match all_regex(patterns) {
            Ok(hirs) => Pattern::Regex(Hir::alternation(hirs)),
            Err(patterns) => Pattern::Alternate(patterns),
        };
        Self { parts: vec![pattern], size, depth }
    }

    /// What this matches and the other does not.
    pub fn without(self, other: Self) -> Self {
        let (size, depth) =
            (self.size.saturating_add(other.size).saturating_add(1), self.depth.max(other.depth) + 3);
        let pattern = Pattern::And(vec![self.into_pattern(), Pattern::Not(Box::new(other.into_pattern()))]);
        Self { parts: vec![pattern], size, depth }
    }

    pub fn into_pattern(mut self) -> Pattern {
        if self.parts.len() == 1 {
            return self.parts.swap_remove(0);
        }
        match all_regex(self.parts) {
            Ok(hirs) => Pattern::Regex(Hir::concat(hirs)),
            Err(patterns) => Pattern::Concat(patterns),
        }
    }
}

/// The expressions, if all patterns are plain; else the patterns.
fn all_regex(patterns: Vec<Pattern>) -> Result<Vec<Hir>, Vec<Pattern>> {
    if !patterns.iter().all(|pattern| matches!(pattern, Pattern::Regex(_))) {
        return Err(patterns);
    }
    let hir = |pattern| match pattern {
        Pattern::Regex(hir) => Some(hir),
        _ => None,
    };
    Ok(patterns.into_iter().filter_map(hir).collect())
}
