//! The sets of code points that a class is made of.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The set of numbers from `start` to `end` that are scalar values: surrogates are in no text that we see.
pub(super) fn range(start: u32, end: u32) -> Option<ClassUnicodeRange> {
    let start = if (0xd800..0xe000).contains(&start) { 0xe000 } else { start };
    let end = if (0xd800..0xe000).contains(&end) { 0xd7ff } else { end };
    let range = char::from_u32(start).zip(char::from_u32(end)).filter(|(start, end)| start <= end);
    range.map(|(start, end)| ClassUnicodeRange::new(start, end))
}

/// One code point; none if it is a surrogate.
pub(super) fn one(code_point: u32) -> ClassUnicode {
    ClassUnicode::new(range(code_point, code_point))
}

/// A set of ranges.
pub(super) fn ranges(pairs: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(pairs.iter().map(|&(start, end)| ClassUnicodeRange::new(start, end)))
}

/// The other scalar values.
pub(super) fn negated(mut class: ClassUnicode) -> ClassUnicode {
    class.negate();
    class
}

/// What `.` means: no line terminator.
pub(super) fn dot() -> ClassUnicode {
    negated(ranges(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]))
}

/// `\d`, `\w`, `\s` and their complements.
pub(super) fn named(letter: char) -> Option<ClassUnicode> {
    let class = match letter.to_ascii_lowercase() {
        'd' => ranges(&[('0', '9')]),
        'w' => ranges(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        's' => ranges(&[
            ('\t', '\r'),
            (' ', ' '),
            ('\u{a0}', '\u{a0}'),
            ('\u{1680}', '\u{1680}'),
            ('\u{2000}', '\u{200a}'),
            ('\u{2028}', '\u{2029}'),
            ('\u{202f}', '\u{202f}'),
            ('\u{205f}', '\u{205f}'),
            ('\u{3000}', '\u{3000}'),
            ('\u{feff}', '\u{feff}'),
        ]),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { negated(class) } else { class })
}

/// The class that an expression of `regex-syntax` is, if it knows the names in it.
pub(crate) fn of_regex(expression: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(expression).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class(),
        // A set of one.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(ranges(&text.chars().map(|c| (c, c)).collect::<Vec<_>>()))
        }
        _ => None,
    }
}

/// Whether a code point is in it.
pub(super) fn contains(class: &ClassUnicode, c: char) -> bool {
    let at = class.ranges().partition_point(|range| range.end() < c);
    class.ranges().get(at).is_some_and(|range| range.start() <= c)
}
