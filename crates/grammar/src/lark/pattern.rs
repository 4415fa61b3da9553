//! Terminal expressions as patterns.
//!
//! As long as neither `&` nor `~` occurs the result is one regular expression; beyond that the pattern keeps the operations
//! that `regex-syntax` lacks. Two limits: the sizes of all patterns, and of all steps to build them, are paid from the
//! budget; and patterns nest at most [`DEPTH_LIMIT`] deep, since those who read them recurse.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition};

use super::ast::{Alternatives, File, Node, NodeId, NodeKind};
use super::regex::{self, Flags};
use super::text;
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::expand::Budget;
use crate::ir::{Pattern, Span};

/// How deep a pattern may nest, not counting what stands within one regular expression.
pub(crate) const DEPTH_LIMIT: u32 = 250;

/// What makes two literals the same terminal: as in Lark the text between the delimiters and the flags.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    Text { text: String, ignore_case: bool },
    Regex { raw: String, flags: Flags },
    Range { first: char, last: char },
}

/// A pattern and what it takes to build on it.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub pattern: Pattern,
    /// If the expression is a single literal.
    pub key: Option<Key>,
    /// An upper bound of the number of nodes and bytes.
    pub size: usize,
    depth: u32,
}

type Result<T> = std::result::Result<T, GrammarError>;

impl Piece {
    fn leaf(hir: Hir, key: Option<Key>) -> Self {
        Self { size: size(&hir), pattern: Pattern::Regex(hir), key, depth: 1 }
    }

    /// A pattern made of others.
    fn composed(pattern: Pattern, size: usize, depth: u32, span: &Span) -> Result<Self> {
        if depth > DEPTH_LIMIT {
            let message = format!("this terminal nests deeper than {DEPTH_LIMIT} operations");
            return Err(GrammarError::new(ErrorKind::TooLarge, span.clone(), message)
                .with_help("use a rule where the nesting matters"));
        }
        Ok(Self { pattern, key: None, size, depth })
    }

    /// How deep the result is if this becomes a part of such an operation: nested ones of the same kind are joined.
    fn depth_within(&self, joins: fn(&HirKind) -> bool) -> u32 {
        match &self.pattern {
            Pattern::Regex(hir) if joins(hir.kind()) => self.depth,
            _ => self.depth + 1,
        }
    }
}

/// The number of nodes of an expression, literals and classes weighed by their size.
fn size(hir: &Hir) -> usize {
    let (mut total, mut agenda) = (0, vec![hir]);
    while let Some(hir) = agenda.pop() {
        total += 1;
        match hir.kind() {
            HirKind::Literal(literal) => total += literal.0.len() / 8,
            HirKind::Class(Class::Unicode(class)) => total += class.ranges().len() / 8,
            HirKind::Class(Class::Bytes(class)) => total += class.ranges().len() / 8,
            kind => agenda.extend(kind.subs()),
        }
    }
    total
}

/// The expression of one text literal.
pub(crate) fn text_piece(raw: &str, ignore_case: bool, span: &Span) -> Result<Piece> {
    let text = text::decode(raw, span.start + 1)?;
    let hir = text::literal(&text, ignore_case);
    Ok(Piece::leaf(hir, Some(Key::Text { text, ignore_case })))
}

/// The expression of one regular expression literal.
pub(crate) fn regex_piece(raw: &str, letters: &str, span: &Span) -> Result<Piece> {
    let flags = Flags::from_letters(letters).map_err(|at| {
        let at = span.start + raw.len() + 2 + at;
        GrammarError::new(ErrorKind::Unsupported, at..at + 1, "the flag `l` (locale) is not supported")
            .with_help("leave it out: classes are those of Unicode")
    })?;
    let hir = regex::parse(raw, flags).map_err(|error| {
        let offset = span.start + 1;
        let error_span = offset + error.span.start..offset + error.span.end;
        let message = format!("in this regular expression: {}", error.message);
        let placed = GrammarError::new(error.kind, error_span, message);
        match error.help {
            Some(help) => placed.with_help(help),
            None => placed,
        }
    })?;
    Ok(Piece::leaf(hir, Some(Key::Regex { raw: raw.to_owned(), flags })))
}

/// The expression of a definition from the library.
pub(crate) fn library_piece(pattern: &str) -> Piece {
    let hir = regex::parse(pattern, Flags::default()).expect("the library is tested");
    Piece::leaf(hir, None)
}

/// `"a".."z"`
pub(crate) fn range_piece(from: &(&str, Span), to: &(&str, Span), span: &Span) -> Result<Piece> {
    let bound = |(raw, place): &(&str, Span)| {
        let text = text::decode(raw, place.start)?;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => {
                let message = format!("a bound of a range is one character, not {}", text.chars().count());
                Err(GrammarError::new(ErrorKind::Syntax, place.start - 1..place.end + 1, message))
            }
        }
    };
    let (first, last) = (bound(from)?, bound(to)?);
    if last < first {
        let message = format!("the range from {first:?} to {last:?} is empty");
        return Err(GrammarError::new(ErrorKind::EmptyRange, span.clone(), message));
    }
    let class = ClassUnicode::new([ClassUnicodeRange::new(first, last)]);
    Ok(Piece::leaf(Hir::class(Class::Unicode(class)), Some(Key::Range { first, last })))
}

/// Builds the pattern of an expression of which all names are resolved.
pub(crate) struct Composer<'c, 's> {
    pub file: &'c File<'s>,
    pub budget: &'c mut Budget,
}

impl<'s> Composer<'_, 's> {
    /// The pattern of some alternatives, whose nodes are given; `terminal` finds what a name stands for.
    pub fn compose(
        &mut self,
        alternatives: &Alternatives,
        nodes: std::ops::Range<NodeId>,
        span: &Span,
        terminal: impl Fn(&str) -> Option<Piece>,
    ) -> Result<Piece> {
        let mut values = Values { first: nodes.start, pieces: Vec::with_capacity(nodes.len()) };
        for node in &self.file.nodes[nodes] {
            let piece = self.node(node, &mut values, &terminal)?;
            self.budget.spend(piece.size, &node.span)?;
            values.pieces.push(Some(piece));
        }
        let piece = self.alternate(alternatives, &mut values, span)?;
        self.budget.spend(piece.size, span)?;
        Ok(piece)
    }

    fn node(
        &mut self,
        node: &Node<'s>,
        values: &mut Values,
        terminal: &impl Fn(&str) -> Option<Piece>,
    ) -> Result<Piece> {
        let span = &node.span;
        match &node.kind {
            NodeKind::Text { raw, ignore_case } => text_piece(raw, *ignore_case, span),
            NodeKind::Regex { raw, flags } => regex_piece(raw, flags, span),
            NodeKind::Range { from, to } => range_piece(from, to, span),
            NodeKind::Terminal(name) => {
                let undefined = || GrammarError::new(ErrorKind::UndefinedSymbol, span.clone(), "undefined terminal");
                terminal(name).ok_or_else(undefined)
            }
            NodeKind::Rule(name) => {
                let message = format!("the rule `{name}` cannot be part of a terminal");
                Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message)
                    .with_help("terminals are made of strings, regular expressions and terminals (upper case)"))
            }
            NodeKind::Special(_) => {
                let message = "a token of the vocabulary cannot be part of a terminal";
                Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message).with_help("name it in a rule"))
            }
            NodeKind::Group(alternatives) => self.alternate(alternatives, values, span),
            NodeKind::Optional(alternatives) => {
                let inner = self.alternate(alternatives, values, span)?;
                repeat(inner, 0, Some(1), span)
            }
            NodeKind::Repeat { inner, min, max } => repeat(values.take(*inner), *min, *max, span),
            NodeKind::And(conjuncts) => {
                let mut parts = Vec::with_capacity(conjuncts.len());
                for conjunct in conjuncts {
                    parts.push(concat(values.take_all(conjunct), span)?);
                }
                let (size, depth) = (total(&parts), 1 + deepest(&parts));
                let patterns = parts.into_iter().map(|part| part.pattern).collect();
                Piece::composed(Pattern::And(patterns), size, depth, span)
            }
            NodeKind::Not(inner) => {
                let inner = values.take(*inner);
                Piece::composed(Pattern::Not(Box::new(inner.pattern)), inner.size + 1, inner.depth + 1, span)
            }
        }
    }

    fn alternate(&mut self, alternatives: &Alternatives, values: &mut Values, span: &Span) -> Result<Piece> {
        let mut parts = Vec::with_capacity(alternatives.len());
        for sequence in alternatives {
            parts.push(concat(values.take_all(sequence), span)?);
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        let depth = parts.iter().map(|part| part.depth_within(|kind| matches!(kind, HirKind::Alternation(_)))).max();
        let size = total(&parts);
        let pattern = match all_regex(parts) {
            Ok(hirs) => Pattern::Regex(Hir::alternation(hirs)),
            Err(patterns) => Pattern::Alternate(patterns),
        };
        Piece::composed(pattern, size, depth.unwrap_or(1), span)
    }
}

/// The pieces of the nodes so far; each is taken once.
struct Values {
    first: NodeId,
    pieces: Vec<Option<Piece>>,
}

impl Values {
    fn take(&mut self, node: NodeId) -> Piece {
        self.pieces[node - self.first].take().expect("a node is part of one other, and stands before it")
    }

    fn take_all(&mut self, nodes: &[NodeId]) -> Vec<Piece> {
        nodes.iter().map(|&node| self.take(node)).collect()
    }
}

fn concat(mut parts: Vec<Piece>, span: &Span) -> Result<Piece> {
    if parts.len() == 1 {
        return Ok(parts.swap_remove(0));
    }
    let depth = parts.iter().map(|part| part.depth_within(|kind| matches!(kind, HirKind::Concat(_)))).max();
    let size = total(&parts);
    let pattern = match all_regex(parts) {
        Ok(hirs) => Pattern::Regex(Hir::concat(hirs)),
        Err(patterns) => Pattern::Concat(patterns),
    };
    Piece::composed(pattern, size, depth.unwrap_or(1), span)
}

fn repeat(inner: Piece, min: u32, max: Option<u32>, span: &Span) -> Result<Piece> {
    let (size, depth) = (inner.size + 1, inner.depth + 1);
    let pattern = match inner.pattern {
        Pattern::Regex(hir) => {
            Pattern::Regex(Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(hir) }))
        }
        pattern => Pattern::Repeat { inner: Box::new(pattern), min, max },
    };
    Piece::composed(pattern, size, depth, span)
}

fn total(parts: &[Piece]) -> usize {
    parts.iter().map(|part| part.size).sum::<usize>() + 1
}

fn deepest(parts: &[Piece]) -> u32 {
    parts.iter().map(|part| part.depth).max().unwrap_or(0)
}

/// The expressions, if all parts are plain; else the patterns.
fn all_regex(parts: Vec<Piece>) -> std::result::Result<Vec<Hir>, Vec<Pattern>> {
    let plain = |part: &Piece| matches!(part.pattern, Pattern::Regex(_));
    if !parts.iter().all(plain) {
        return Err(parts.into_iter().map(|part| part.pattern).collect());
    }
    let hir = |part: Piece| match part.pattern {
        Pattern::Regex(hir) => Some(hir),
        _ => None,
    };
    Ok(parts.into_iter().filter_map(hir).collect())
}
