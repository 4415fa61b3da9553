//! Patterns, formats and lengths of one schema's strings.

use std::collections::BTreeSet;
use std::sync::Arc;

use anygram_bits::index_type;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use rustc_hash::FxHashMap;

use crate::atoms::TextAtom;
use crate::chars::{Chars, FormulaId, TooLarge};
use crate::format::{Format, format};
use crate::pattern::{self, Pattern, PatternErrorKind};
use crate::refusal::{Kind, Refusal};

index_type!(
    /// A pattern that a schema names.
    PatternId
);
index_type!(
    /// A format that a schema names.
    FormatId
);

/// A set of strings: those that a formula allows and whose length, in code points, is in a range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Text {
    /// What they are.
    pub formula: FormulaId,
    /// The fewest code points.
    pub min: u64,
    /// The most; `u64::MAX` if there is no bound.
    pub max: u64,
}

impl Text {
    /// Lengths of at least this are not told apart.
    pub(crate) fn counted(&self) -> u64 {
        match self.max {
            u64::MAX => self.min,
            max => self.min.max(max.saturating_add(1)),
        }
    }
}

/// The patterns and formats that a schema names.
#[derive(Default, Debug)]
pub struct Strings {
    /// Their formulas.
    pub chars: Chars,
    patterns: Vec<FormulaId>,
    pattern_ids: FxHashMap<String, PatternId>,
    formats: Vec<FormulaId>,
    format_ids: FxHashMap<String, FormatId>,
}

fn too_large(TooLarge { limit }: TooLarge) -> Refusal {
    let message = format!("its patterns need more than {limit} automaton states; shorten their repetitions");
    Refusal::new(Kind::Limit, "", message)
}

impl Strings {
    /// The pattern with this text.
    pub fn pattern(&mut self, text: &str) -> Result<PatternId, (Kind, String)> {
        if let Some(&known) = self.pattern_ids.get(text) {
            return Ok(known);
        }
        let pattern = pattern::parse(text).map_err(|error| {
            let kind = match error.kind() {
                PatternErrorKind::Syntax => Kind::Syntax,
                PatternErrorKind::Unsupported => Kind::Unsupported,
                _ => Kind::Limit,
            };
            (kind, error.to_string())
        })?;
        let formula = self.chars.search(&pattern);
        let formula = formula.map_err(|error| (Kind::Limit, too_large(error).message))?;
        let id = PatternId::new(self.patterns.len());
        self.patterns.push(formula);
        self.pattern_ids.insert(text.to_owned(), id);
        Ok(id)
    }

    /// The format with this name; `None` if nothing is known of it.
    pub fn format(&mut self, name: &str) -> Result<Option<FormatId>, String> {
        if let Some(&known) = self.format_ids.get(name) {
            return Ok(Some(known));
        }
        let formula = match format(name) {
            None => return Ok(None),
            Some(Format::Pattern(pattern)) => {
                self.chars.search(pattern).map_err(|error| too_large(error).message)?
            }
            Some(Format::Inexpressible(why)) => {
                return Err(format!(
                    "the format {name:?} cannot be asserted exactly: {why}; take formats as annotations (the \
                     option formats: annotate), or leave it out"
                ));
            }
        };
        let id = FormatId::new(self.formats.len());
        self.formats.push(formula);
        self.format_ids.insert(name.to_owned(), id);
        Ok(Some(id))
    }

    /// Whether a pattern is found in a text.
    pub fn finds(&mut self, pattern: PatternId, text: &str) -> Result<bool, Refusal> {
        self.chars.contains(self.patterns[pattern.index()], text).map_err(too_large)
    }

    /// What a pattern allows.
    pub fn of_pattern(&self, pattern: PatternId) -> FormulaId {
        self.patterns[pattern.index()]
    }

    /// Whether an assertion holds of a text.
    pub fn holds(&mut self, atom: &TextAtom, text: &str) -> Result<bool, Refusal> {
        let n = || text.chars().count() as u64;
        Ok(match atom {
            TextAtom::AtLeast(least) => n() >= *least,
            TextAtom::AtMost(most) => n() <= *most,
            TextAtom::Pattern(pattern, is) => self.finds(*pattern, text)? == *is,
            TextAtom::Format(format, is) => {
                self.chars.contains(self.formats[format.index()], text).map_err(too_large)? == *is
            }
            TextAtom::NotIn(texts) => !texts.iter().any(|other| **other == *text),
            TextAtom::OneOf(texts) => texts.iter().any(|other| **other == *text),
        })
    }

    /// The strings of which all assertions hold.
    pub fn text(&mut self, atoms: &BTreeSet<TextAtom>) -> Text {
        let (mut min, mut max) = (0, u64::MAX);
        let mut parts = Vec::new();
        for atom in atoms {
            let (formula, is) = match atom {
                TextAtom::AtLeast(least) => {
                    min = min.max(*least);
                    continue;
                }
                TextAtom::AtMost(most) => {
                    max = max.min(*most);
                    continue;
                }
                TextAtom::Pattern(pattern, is) => (self.patterns[pattern.index()], *is),
                TextAtom::Format(format, is) => (self.formats[format.index()], *is),
                TextAtom::NotIn(texts) => (self.words(texts), false),
                TextAtom::OneOf(texts) => (self.words(texts), true),
            };
            parts.push(if is { formula } else { self.chars.not(formula) });
        }
        Text { formula: self.chars.all(parts), min, max }
    }

    fn words(&mut self, texts: &[Arc<str>]) -> FormulaId {
        self.chars.words(texts.iter().map(|text| &**text))
    }

    /// The strings whose length is in a range.
    pub fn length(&mut self, min: u64, max: u64) -> Result<FormulaId, TooLarge> {
        if (min, max) == (0, u64::MAX) {
            return Ok(FormulaId::ANY);
        }
        let all = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let max = (max != u64::MAX).then(|| count(max));
        let any = Pattern::Repeat { inner: Box::new(Pattern::Class(all)), min: count(min), max };
        self.chars.search(&Pattern::Concat(vec![Pattern::Start, any, Pattern::End]))
    }

    /// Whether there is such a string.
    pub fn has_text(&mut self, text: Text) -> Result<bool, Refusal> {
        self.chars.has_length(text.formula, text.min, text.max).map_err(too_large)
    }

    /// Whether there is no such string, if that is found out.
    pub fn are_surely_none(&mut self, atoms: &BTreeSet<TextAtom>) -> bool {
        let text = self.text(atoms);
        self.has_text(text).is_ok_and(|has| !has)
    }
}
