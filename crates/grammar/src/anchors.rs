//! Anchors of an expression that is matched as a whole, resolved.
//!
//! `^` then holds where nothing has been read before, and `$` where nothing follows. Both say something of
//! the rest of the expression only, so an expression without anchors matches the same texts:
//!
//! | expression | the same without anchors |
//! |---|---|
//! | `^$\|^https` | `\|https` |
//! | `a(b\|$)` | `a(b\|)` |
//! | `a?^b` | `b` |
//! | `a^b` | nothing |
//!
//! Each part has four languages ([`Variants`]), for whether it stands at the start of the text and for
//! whether it stands at the end. A part of a sequence is at the start if all before it match nothing, which
//! may need anchors in turn. One fact keeps this small: more anchors hold at a border than elsewhere, so the
//! language at a border contains the others, and nobody has to tell `a?` from `a`: where a part that could be
//! empty is read as if something stood there, that only gives texts that are matched anyway.
//!
//! Cost: the size of what comes out, at most [`MAX_SIZE`]; linear where anchors are at the ends of
//! alternatives. Recurses on the depth of the expression, which the caller bounds.

use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

use crate::ir::{hir_size, is_hir_nullable};

/// How many nodes and bytes all variants of all parts may have.
const MAX_SIZE: usize = 1_000_000;

/// The expression without anchors; none if it would be too large.
pub(crate) fn resolve(hir: &Hir) -> Option<Hir> {
    if hir.properties().look_set().is_empty() {
        return Some(hir.clone());
    }
    let whole = Resolver { left: MAX_SIZE }.variants(hir)?;
    Some(whole.at([true; 2]).unwrap_or_else(Hir::fail))
}

/// Where a part stands: whether the text begins before it, and whether it ends behind it.
type Borders = [bool; 2];

const ANYWHERE: Borders = [false; 2];
const ALL_BORDERS: [Borders; 4] = [ANYWHERE, [true, false], [false, true], [true; 2]];

/// What a part matches at each of the [`ALL_BORDERS`], in that order.
struct Variants {
    /// None for the empty language.
    hirs: [Option<Hir>; 4],
    nullable: [bool; 4],
    /// Whether there are anchors inside; if not, all are the same.
    anchored: bool,
    /// Whether some text besides the empty one may be matched.
    consumes: bool,
}

impl Variants {
    fn index([start, end]: Borders) -> usize {
        usize::from(start) + 2 * usize::from(end)
    }

    fn at(&self, borders: Borders) -> Option<Hir> {
        self.hirs[Self::index(borders)].clone()
    }

    fn is_nullable(&self, borders: Borders) -> bool {
        self.nullable[Self::index(borders)]
    }
}

struct Resolver {
    /// How many nodes and bytes there may still be.
    left: usize,
}

impl Resolver {
    fn variants(&mut self, hir: &Hir) -> Option<Variants> {
        let anchored = !hir.properties().look_set().is_empty();
        let consumes = hir.properties().maximum_len() != Some(0);
        if !anchored {
            let nullable = [is_hir_nullable(hir); 4];
            self.spend(4 * hir_size(hir))?;
            return Some(Variants {
                hirs: [(); 4].map(|()| Some(hir.clone())),
                nullable,
                anchored,
                consumes,
            });
        }
        let parts = hir.kind().subs().iter().map(|sub| self.variants(sub)).collect::<Option<Vec<_>>>()?;
        let mut variants = Variants { hirs: [const { None }; 4], nullable: [false; 4], anchored, consumes };
        for borders in ALL_BORDERS {
            let (hir, nullable) = self.at(hir.kind(), &parts, borders)?;
            variants.hirs[Variants::index(borders)] = hir;
            variants.nullable[Variants::index(borders)] = nullable;
        }
        Some(variants)
    }

    /// What a node matches at some borders, given its parts; and whether that can be the empty string.
    fn at(&mut self, kind: &HirKind, parts: &[Variants], borders: Borders) -> Option<(Option<Hir>, bool)> {
        Some(match kind {
            HirKind::Look(look) => {
                let holds = match look {
                    Look::Start => borders[0],
                    _ => borders[1],
                };
                (holds.then(Hir::empty), holds)
            }
            HirKind::Alternation(_) => {
                let any = parts.iter().any(|part| part.is_nullable(borders));
                (self.any_of(parts.iter().filter_map(|part| part.at(borders)).collect())?, any)
            }
            HirKind::Repetition(repetition) => self.repetition(repetition, &parts[0], borders)?,
            // The others have no anchors, but for groups, which front ends do not capture.
            _ => self.sequence(parts, borders)?,
        })
    }

    /// One after the other. Some part is the first that consumes something, and some part the last.
    fn sequence(&mut self, parts: &[Variants], [start, end]: Borders) -> Option<(Option<Hir>, bool)> {
        let nullable = parts.iter().all(|part| part.is_nullable([start, end]));
        // Away from the borders the sequence itself says so.
        let mut alternatives = Vec::from_iter((nullable && (start || end)).then(Hir::empty));
        let firsts = match start {
            true => borders_of(parts.iter(), |part| part.is_nullable([true, false])),
            false => vec![0],
        };
        let lasts = match end {
            true => borders_of(parts.iter().rev(), |part| part.is_nullable([false, true])),
            false => vec![0],
        };
        for &first in &firsts {
            for last in lasts.iter().map(|from_end| parts.len() - 1 - from_end).filter(|&last| first <= last)
            {
                let between = first..=last;
                let hirs = between.map(|at| parts[at].at([start && at == first, end && at == last]));
                if let Some(hirs) = hirs.collect::<Option<Vec<_>>>() {
                    alternatives.push(self.one(Hir::concat(hirs))?);
                }
            }
        }
        Some((self.any_of(alternatives)?, nullable))
    }

    /// Again and again. Those times that consume nothing may need a border, and stand first or last.
    fn repetition(
        &mut self,
        repetition: &Repetition,
        part: &Variants,
        [start, end]: Borders,
    ) -> Option<(Option<Hir>, bool)> {
        let nullable = repetition.min == 0 || part.is_nullable([start, end]);
        let can_pad = part.is_nullable([start, false]) || part.is_nullable([false, end]);
        let min = if can_pad { 0 } else { repetition.min };
        let max = repetition.max.unwrap_or(u32::MAX);
        let mut alternatives = Vec::from_iter(nullable.then(Hir::empty));
        if start && end && min <= 1 && max >= 1 {
            alternatives.extend(part.at([true; 2]));
        }
        // Those at a border are written out, the others are repeated.
        let n_outer = u32::from(start) + u32::from(end);
        let first = if start { part.at([true, false]) } else { Some(Hir::empty()) };
        let last = if end { part.at([false, true]) } else { Some(Hir::empty()) };
        if let (true, Some(first), Some(last)) = (max >= n_outer, first, last) {
            let (min, max) = (min.saturating_sub(n_outer), repetition.max.map(|max| max - n_outer));
            let repeat = |sub| Hir::repetition(Repetition { min, max, sub, ..repetition.clone() });
            let between = part.at(ANYWHERE).map(|sub| repeat(Box::new(sub)));
            // Nothing is between if the part needs a border and nothing has to be there.
            if let Some(between) = between.or((min == 0).then(Hir::empty)) {
                alternatives.push(self.one(Hir::concat(vec![first, between, last]))?);
            }
        }
        Some((self.any_of(alternatives)?, nullable))
    }

    /// Any of several. A few are compared, since anchors often make equal ones.
    fn any_of(&mut self, mut hirs: Vec<Hir>) -> Option<Option<Hir>> {
        const FEW: usize = 16;
        if hirs.len() <= FEW {
            let mut different: Vec<Hir> = Vec::with_capacity(hirs.len());
            for hir in hirs {
                if !different.contains(&hir) {
                    different.push(hir);
                }
            }
            hirs = different;
        }
        let found = (!hirs.is_empty()).then(|| Hir::alternation(hirs));
        found.map_or(Some(None), |hir| self.one(hir).map(Some))
    }

    fn one(&mut self, hir: Hir) -> Option<Hir> {
        self.spend(hir_size(&hir))?;
        Some(hir)
    }

    fn spend(&mut self, size: usize) -> Option<()> {
        self.left = self.left.checked_sub(size)?;
        Some(())
    }
}

/// Which parts of a sequence have to be tried as the first one that consumes something, if those before it
/// `vanish`. A part without anchors behind one without anchors need not: to begin with that one matches the
/// same and more.
fn borders_of<'v>(
    parts: impl Iterator<Item = &'v Variants>,
    vanishes: impl Fn(&Variants) -> bool,
) -> Vec<usize> {
    let mut found = Vec::new();
    let mut anchored_before = true;
    for (at, part) in parts.enumerate() {
        if (anchored_before && !part.anchored) || (part.anchored && part.consumes) {
            found.push(at);
        }
        if !vanishes(part) {
            break;
        }
        anchored_before = part.anchored;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex_syntax::hir::Class;

    use super::*;

    fn hir(pattern: &str) -> Hir {
        regex_syntax::parse(pattern).unwrap()
    }

    /// Where matches that begin at some places end: the definition of what anchors mean.
    fn ends(hir: &Hir, text: &[u8], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        let keep = |holds: &dyn Fn(usize) -> bool| starts.iter().copied().filter(|&at| holds(at)).collect();
        match hir.kind() {
            HirKind::Empty => starts.clone(),
            HirKind::Look(Look::Start) => keep(&|at| at == 0),
            HirKind::Look(_) => keep(&|at| at == text.len()),
            HirKind::Literal(literal) => {
                let found = starts.iter().filter(|&&at| text[at..].starts_with(&literal.0));
                found.map(|at| at + literal.0.len()).collect()
            }
            HirKind::Class(_) => {
                let matches = |at: &usize| text.get(*at).is_some_and(|&byte| is_member(hir, byte));
                starts.iter().copied().filter(matches).map(|at| at + 1).collect()
            }
            HirKind::Capture(capture) => ends(&capture.sub, text, starts),
            HirKind::Concat(parts) => {
                parts.iter().fold(starts.clone(), |starts, part| ends(part, text, &starts))
            }
            HirKind::Alternation(parts) => parts.iter().flat_map(|part| ends(part, text, starts)).collect(),
            HirKind::Repetition(repetition) => {
                let mut now = starts.clone();
                let mut all = BTreeSet::new();
                // So many times suffice: a longer repetition consumes nothing some time.
                for n in 0..=repetition.max.unwrap_or(u32::MAX).min(repetition.min + 8) {
                    if n >= repetition.min {
                        all.extend(now.iter().copied());
                    }
                    now = ends(&repetition.sub, text, &now);
                }
                all
            }
        }
    }

    fn is_member(class: &Hir, byte: u8) -> bool {
        match class.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                class.iter().any(|range| (range.start()..=range.end()).contains(&char::from(byte)))
            }
            HirKind::Class(Class::Bytes(class)) => {
                class.iter().any(|range| (range.start()..=range.end()).contains(&byte))
            }
            _ => false,
        }
    }

    fn matches(hir: &Hir, text: &str) -> bool {
        ends(hir, text.as_bytes(), &BTreeSet::from([0])).contains(&text.len())
    }

    #[test]
    fn anchors_in_alternatives() {
        for (pattern, same) in [
            ("^$|^https", "(?:)|https"),
            ("^a|^b", "a|b"),
            ("^ab$", "ab"),
            ("a(?:b|$)", "a(?:b|)"),
            ("a?^b", "b"),
            ("a(?:bc)?$", "a(?:bc)?"),
        ] {
            let (resolved, same) = (resolve(&hir(pattern)).unwrap(), hir(same));
            assert!(resolved.properties().look_set().is_empty());
            for text in ["", "a", "b", "ab", "abc", "https", "ahttps"] {
                assert_eq!(matches(&resolved, text), matches(&same, text), "{pattern}, {text:?}");
            }
        }
        assert_eq!(resolve(&hir("^ab$")), Some(hir("ab")));
        assert_eq!(resolve(&hir("a^b")), Some(Hir::fail()));
    }

    /// A random expression over two letters with many anchors.
    fn random(next: &mut impl FnMut(u64) -> u64, depth: u64) -> String {
        let mut part = || random(next, depth - 1);
        if depth == 0 {
            return ["a", "b", "^", "$", "(?:)", "ab"][next(6) as usize].to_owned();
        }
        let (first, second, third) = (part(), part(), part());
        match next(6) {
            0 => format!("(?:{first}|{second})"),
            1 => format!("(?:{first}){}", ["*", "+", "?", "{2}", "{2,3}", "{3,}"][next(6) as usize]),
            _ => format!("(?:{first}{second}{third})"),
        }
    }

    #[test]
    fn the_texts_are_those_of_the_definition() {
        let mut state = 1_u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let texts: Vec<String> = (0..5_u32)
            .flat_map(|len| (0..1_u32 << len).map(move |bits| (len, bits)))
            .map(|(len, bits)| (0..len).map(|at| if bits >> at & 1 == 0 { 'a' } else { 'b' }).collect())
            .collect();
        let mut n_matched = 0;
        for seed in 0..6000 {
            let pattern = random(&mut next, 1 + seed % 3);
            let original = hir(&pattern);
            let resolved = resolve(&original).unwrap();
            assert!(resolved.properties().look_set().is_empty(), "{pattern}");
            for text in &texts {
                let expected = matches(&original, text);
                assert_eq!(matches(&resolved, text), expected, "{pattern}, {text:?}");
                n_matched += usize::from(expected);
            }
        }
        assert!(n_matched > 3000, "{n_matched}");
    }

    #[test]
    fn growth_has_a_limit() {
        let fits = |pattern: &str| resolve(&hir(pattern)).is_some();
        assert!(fits(&"(?:^|a)?".repeat(20)));
        assert!(fits(&("(?:".repeat(12) + "^a" + &"|b$)*".repeat(12))));
        assert!(!fits(&"(?:^|a|$)?".repeat(300)));
    }
}
