//! Regular expressions as JSON Schema has them: ECMA-262, without flags but `u`, over code points.
//!
//! [`parse`] reads an expression with the flag `u`; if that is a syntax error, as Annex B (B.1.2) has it,
//! where `\-` is a dash and `{` a brace. The result is a [`Pattern`], a tree over sets of code points that
//! says which texts match: the order of alternatives, laziness and captures mean nothing. Like every
//! expression of ECMA-262 a pattern *searches*: it matches a text if it matches some part of it, unless
//! [`Start`](Pattern::Start) and [`End`](Pattern::End) say otherwise.
//!
//! What is not ECMA-262, or is left out:
//!
//! | expression | here |
//! |---|---|
//! | `\1`, `\k<name>` (with such a group) | [`Unsupported`](PatternErrorKind::Unsupported): not regular |
//! | `(?<=…)`, `(?<!…)` | [`Unsupported`](PatternErrorKind::Unsupported) |
//! | `(?i:…)`, `(?-ms:…)` | [`Unsupported`](PatternErrorKind::Unsupported) |
//! | `\p{CWKCF}`, `\p{sc=Hrkt}`, `\p{sc=Zzzz}` | [`Unsupported`](PatternErrorKind::Unsupported): no table |
//! | Annex B sees halves of code points above U+FFFF | whole code points; `\uD83D\uDE00` is one |
//! | surrogates alone, as `\uD800` | in no text, so the set is empty; ranges leave them out |
//! | counts above `u32::MAX`, nesting, size | [`Limit`](PatternErrorKind::Limit) |
//!
//! A pattern prints as an expression with `u`: what is parsed, printed and parsed again is the same, if the
//! limits let it (what Annex B repeats without a group is printed in one).
//!
//! Costs: time and memory are linear in the expression and the ranges of its classes, which
//! [`Limits::size`] bounds. Nothing recurses on the input's depth beyond [`Limits::depth`].

pub(crate) mod classes;
mod names;
mod parser;
mod properties;

use std::fmt;

use regex_syntax::hir::ClassUnicode;

/// A set of texts by its matches: see the [module](self).
#[derive(Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Nothing, which is always there.
    Empty,
    /// One code point of a set; an empty set matches nothing.
    Class(ClassUnicode),
    /// One after the other.
    Concat(Vec<Pattern>),
    /// Any of these.
    Alternate(Vec<Pattern>),
    /// One after the other, as often as the bounds say.
    Repeat {
        /// What is repeated.
        inner: Box<Pattern>,
        /// At least so often.
        min: u32,
        /// At most so often; not less than `min`.
        max: Option<u32>,
    },
    /// `^`: at the start of the text.
    Start,
    /// `$`: at the end of the text.
    End,
    /// `\b`: exactly one of the code points before and after is one of `\w`.
    WordBoundary {
        /// `\B`: not so.
        negated: bool,
    },
    /// `(?=…)`: what follows matches, and is still to be matched by what comes after.
    LookAhead {
        /// What follows.
        inner: Box<Pattern>,
        /// `(?!…)`: what follows does not match.
        negated: bool,
    },
}

/// Why an expression is no [`Pattern`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}, at byte {offset}")]
pub struct PatternError {
    kind: PatternErrorKind,
    message: String,
    offset: usize,
}

/// What kind of error it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PatternErrorKind {
    /// It is no expression of ECMA-262, neither with `u` nor by Annex B.
    Syntax,
    /// It is an expression of ECMA-262, with something that is left out here.
    Unsupported,
    /// A limit was exceeded.
    Limit,
}

impl PatternError {
    /// What kind of error it is.
    pub fn kind(&self) -> PatternErrorKind {
        self.kind
    }

    /// Where in the expression, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// How large a pattern may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many groups may be open at once.
    pub depth: usize,
    /// How many nodes, and ranges of classes as they are written, there may be.
    pub size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 250, size: 200_000 }
    }
}

/// Reads an expression, within the default [`Limits`].
///
/// # Errors
/// See [`PatternErrorKind`]. Of two syntax errors, with `u` and by Annex B, the first is told.
pub fn parse(expression: &str) -> Result<Pattern, PatternError> {
    parse_within(expression, Limits::default())
}

/// Reads an expression.
///
/// # Errors
/// As [`parse`].
pub fn parse_within(expression: &str, limits: Limits) -> Result<Pattern, PatternError> {
    let is_syntax = |error: &PatternError| error.kind == PatternErrorKind::Syntax;
    match parse_unicode(expression, limits) {
        Err(error) if is_syntax(&error) => parser::parse(expression, false, limits)
            .map_err(|other| if is_syntax(&other) { error } else { other }),
        result => result,
    }
}

/// Reads an expression with the flag `u` alone, without Annex B.
///
/// # Errors
/// As [`parse`].
pub fn parse_unicode(expression: &str, limits: Limits) -> Result<Pattern, PatternError> {
    parser::parse(expression, true, limits)
}

impl Pattern {
    /// One after the other, without needless nodes.
    pub fn concat(parts: impl IntoIterator<Item = Pattern>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Empty => {}
                Self::Concat(parts) => flat.extend(parts),
                part => flat.push(part),
            }
        }
        match flat.len() {
            0 => Self::Empty,
            1 => flat.remove(0),
            _ => Self::Concat(flat),
        }
    }

    /// Any of these, without needless nodes. None of none matches nothing.
    pub fn alternate(parts: impl IntoIterator<Item = Pattern>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Alternate(parts) => flat.extend(parts),
                part => flat.push(part),
            }
        }
        match flat.len() {
            0 => Self::Class(ClassUnicode::empty()),
            1 => flat.remove(0),
            _ => Self::Alternate(flat),
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{self}/u")
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("(?:)"),
            Self::Class(class) => print_class(f, class),
            Self::Concat(parts) => parts.iter().try_for_each(|part| match part {
                Self::Alternate(_) | Self::Concat(_) => write!(f, "(?:{part})"),
                _ => write!(f, "{part}"),
            }),
            Self::Alternate(parts) => parts.iter().enumerate().try_for_each(|(at, part)| {
                let bar = if at == 0 { "" } else { "|" };
                match part {
                    Self::Empty => f.write_str(bar),
                    Self::Alternate(_) => write!(f, "{bar}(?:{part})"),
                    _ => write!(f, "{bar}{part}"),
                }
            }),
            Self::Repeat { inner, min, max } => {
                match **inner {
                    Self::Class(_) | Self::Empty => write!(f, "{inner}")?,
                    _ => write!(f, "(?:{inner})")?,
                }
                print_bounds(f, *min, *max)
            }
            Self::Start => f.write_str("^"),
            Self::End => f.write_str("$"),
            Self::WordBoundary { negated } => f.write_str(if *negated { r"\B" } else { r"\b" }),
            Self::LookAhead { inner, negated } => {
                f.write_str(if *negated { "(?!" } else { "(?=" })?;
                match **inner {
                    Self::Empty => f.write_str(")"),
                    _ => write!(f, "{inner})"),
                }
            }
        }
    }
}

fn print_bounds(f: &mut fmt::Formatter<'_>, min: u32, max: Option<u32>) -> fmt::Result {
    match (min, max) {
        (0, None) => f.write_str("*"),
        (1, None) => f.write_str("+"),
        (0, Some(1)) => f.write_str("?"),
        (min, None) => write!(f, "{{{min},}}"),
        (min, Some(max)) if min == max => write!(f, "{{{min}}}"),
        (min, Some(max)) => write!(f, "{{{min},{max}}}"),
    }
}

fn print_class(f: &mut fmt::Formatter<'_>, class: &ClassUnicode) -> fmt::Result {
    if let [only] = class.ranges()
        && only.start() == only.end()
    {
        return print_char(f, only.start());
    }
    if *class == classes::dot() {
        return f.write_str(".");
    }
    if let Some(letter) = "dDwWsS".chars().find(|&letter| classes::named(letter).as_ref() == Some(class)) {
        return write!(f, "\\{letter}");
    }
    let other = classes::negated(class.clone());
    let is_shorter = other.ranges().len() < class.ranges().len();
    f.write_str(if is_shorter { "[^" } else { "[" })?;
    for range in if is_shorter { other.ranges() } else { class.ranges() } {
        print_char(f, range.start())?;
        let more = u32::from(range.end()) - u32::from(range.start());
        if more > 1 {
            f.write_str("-")?;
        }
        if more > 0 {
            print_char(f, range.end())?;
        }
    }
    f.write_str("]")
}

/// A code point, in and outside a class.
fn print_char(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' => {
            write!(f, "\\{c}")
        }
        '-' => f.write_str(r"\x2d"),
        ' '..='~' => write!(f, "{c}"),
        _ => write!(f, "\\u{{{:x}}}", u32::from(c)),
    }
}
