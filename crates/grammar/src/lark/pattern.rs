//! Terminal expressions as patterns.
//!
//! As long as neither `&` nor `~` occurs the result is one regular expression; beyond that the pattern keeps
//! the operations that `regex-syntax` lacks. Two limits: the sizes of all patterns, and of all steps to build
//! them, are paid from the budget; and patterns nest at most [`Pattern::MAX_DEPTH`] deep, since those who
//! read them recurse.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir};

use super::LarkDialect;
use super::ast::{Alternatives, File, Node, NodeId, NodeKind};
use super::regex::{self, Flags};
use super::substring;
use super::text;
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::expand::Budget;
use crate::ir::{Pattern, Span, hir_size, literal};

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
}

type Result<T> = std::result::Result<T, GrammarError>;

impl Piece {
    fn leaf(hir: Hir, key: Option<Key>) -> Self {
        Self { size: hir_size(&hir), pattern: Pattern::Regex(hir), key }
    }

    /// Any of several.
    pub fn alternate(parts: Vec<Self>, span: &Span) -> Result<Self> {
        let size = total(&parts);
        Self::composed(Pattern::alternate(patterns(parts)), size, span)
    }

    /// A pattern made of others. Looked at as a whole, since a regular expression is simplified; the cost is
    /// its size.
    fn composed(pattern: Pattern, size: usize, span: &Span) -> Result<Self> {
        if pattern.depth() > Pattern::MAX_DEPTH {
            let message = format!("this terminal nests deeper than {} operations", Pattern::MAX_DEPTH);
            return Err(GrammarError::new(ErrorKind::Limit, span.clone(), message)
                .with_help("use a rule where the nesting matters"));
        }
        Ok(Self { pattern, key: None, size })
    }
}

/// The expression of one text literal.
pub(crate) fn text_piece(raw: &str, ignore_case: bool, span: &Span, dialect: LarkDialect) -> Result<Piece> {
    let text = text::decode_as(raw, span.start + 1, dialect)?;
    let hir = literal(&text, ignore_case);
    Ok(Piece::leaf(hir, Some(Key::Text { text, ignore_case })))
}

/// The expression of one regular expression literal.
pub(crate) fn regex_piece(raw: &str, letters: &str, span: &Span, dialect: LarkDialect) -> Result<Piece> {
    let flags = Flags::from_letters(letters).map_err(|at| {
        let at = span.start + raw.len() + 2 + at;
        GrammarError::new(ErrorKind::Unsupported, at..at + 1, "the flag `l` (locale) is not supported")
            .with_help("leave it out: classes are those of Unicode")
    })?;
    let parsed = match dialect {
        LarkDialect::Lark => regex::parse(raw, flags),
        LarkDialect::Llguidance => regex::parse_rust(raw, flags),
    };
    let hir = parsed.map_err(|error| {
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

/// The expression of `%regex {…}`.
pub(crate) fn substring_piece(object: &str, span: &Span) -> Result<Piece> {
    let pattern = substring::pattern(object, span)?;
    let size = match &pattern {
        Pattern::Regex(hir) => hir_size(hir),
        _ => object.len(),
    };
    Ok(Piece { pattern, key: None, size })
}

/// What is shortest of what a pattern matches: the texts of which no beginning but themselves is matched.
/// Parts of characters are no beginnings, since a pattern matches whole ones.
pub(crate) fn shortest(piece: Piece, span: &Span) -> Result<Piece> {
    let size = 2 * piece.size + 3;
    let longer = Pattern::concat(vec![piece.pattern.clone(), anything(1)]);
    Piece::composed(Pattern::and(vec![piece.pattern, Pattern::Not(Box::new(longer))]), size, span)
}

/// At least so many characters.
pub(crate) fn anything(min: u32) -> Pattern {
    let all = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
    Pattern::repeat(Pattern::Regex(Hir::class(Class::Unicode(all))), min, None)
}

/// One text after another, as one pattern.
pub(crate) fn followed(first: Piece, second: Piece, span: &Span) -> Result<Piece> {
    concat(vec![first, second], span)
}

/// The expression of a definition from a library.
pub(crate) fn library_piece(pattern: &str) -> Piece {
    let hir = regex::parse(pattern, Flags::default()).expect("the library is tested");
    Piece::leaf(hir, None)
}

/// `"a".."z"`
pub(crate) fn range_piece(
    from: &(&str, Span),
    to: &(&str, Span),
    span: &Span,
    dialect: LarkDialect,
) -> Result<Piece> {
    let bound = |(raw, place): &(&str, Span)| {
        let text = text::decode_as(raw, place.start, dialect)?;
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
        return Err(GrammarError::new(ErrorKind::Syntax, span.clone(), message));
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
    /// The pattern of some alternatives, whose nodes are given; `known` finds what the name of a terminal, or
    /// of a rule that may stand here, stands for.
    pub fn compose(
        &mut self,
        alternatives: &Alternatives,
        nodes: std::ops::Range<NodeId>,
        span: &Span,
        known: impl Fn(&NodeKind<'s>) -> Option<Piece>,
    ) -> Result<Piece> {
        let mut values = Values { first: nodes.start, pieces: Vec::with_capacity(nodes.len()) };
        for node in &self.file.nodes[nodes] {
            let piece = self.node(node, &mut values, &known)?;
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
        known: &impl Fn(&NodeKind<'s>) -> Option<Piece>,
    ) -> Result<Piece> {
        let span = &node.span;
        match &node.kind {
            NodeKind::Text { raw, ignore_case } => text_piece(raw, *ignore_case, span, self.file.dialect),
            NodeKind::Regex { raw, flags } => regex_piece(raw, flags, span, self.file.dialect),
            NodeKind::RegexObject(object) => substring_piece(object, span),
            NodeKind::Range { from, to } => range_piece(from, to, span, self.file.dialect),
            NodeKind::Terminal(name) => {
                // All others were found before.
                let message =
                    format!("`{name}` is a token of the vocabulary, which cannot be part of a terminal");
                let error = || GrammarError::new(ErrorKind::Unsupported, span.clone(), message);
                known(&node.kind).ok_or_else(|| error().with_help("name it in a rule"))
            }
            NodeKind::Rule(name) => {
                let message = format!("the rule `{name}` cannot be part of a terminal");
                let error = || GrammarError::new(ErrorKind::Unsupported, span.clone(), message);
                let help = "terminals are made of strings, regular expressions and terminals (upper case)";
                known(&node.kind).ok_or_else(|| error().with_help(help))
            }
            NodeKind::Json(_) | NodeKind::Lark(_) | NodeKind::Named(_) => {
                let what = if matches!(node.kind, NodeKind::Json(_)) { "JSON schema" } else { "grammar" };
                let message = format!("a {what} is not a part of a terminal");
                Err(GrammarError::new(ErrorKind::Unsupported, node.span.clone(), message)
                    .with_help("name it in a rule (lower case)"))
            }
            NodeKind::Parametric { .. } | NodeKind::Condition(_) => {
                let message = "parameters and `%if` cannot be part of a terminal";
                Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message)
                    .with_help("make it a rule (lower case)"))
            }
            NodeKind::Special(_) | NodeKind::TokenRanges(_) => {
                let message = "a token of the vocabulary cannot be part of a terminal";
                Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message)
                    .with_help("name it in a rule"))
            }
            NodeKind::Use { .. } => Err(GrammarError::new(
                ErrorKind::Unsupported,
                span.clone(),
                "a template makes rules, which cannot be part of a terminal",
            )
            .with_help("terminals are made of strings, regular expressions and terminals (upper case)")),
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
                let size = total(&parts);
                Piece::composed(Pattern::and(patterns(parts)), size, span)
            }
            NodeKind::Not(inner) => {
                let inner = values.take(*inner);
                Piece::composed(Pattern::Not(Box::new(inner.pattern)), inner.size + 1, span)
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
        Piece::alternate(parts, span)
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
    let size = total(&parts);
    Piece::composed(Pattern::concat(patterns(parts)), size, span)
}

fn repeat(inner: Piece, min: u32, max: Option<u32>, span: &Span) -> Result<Piece> {
    Piece::composed(Pattern::repeat(inner.pattern, min, max), inner.size + 1, span)
}

fn patterns(parts: Vec<Piece>) -> Vec<Pattern> {
    parts.into_iter().map(|part| part.pattern).collect()
}

fn total(parts: &[Piece]) -> usize {
    parts.iter().map(|part| part.size).sum::<usize>() + 1
}
