//! The tree of a file: what is written, with places, nothing interpreted.
//!
//! Expressions live in one arena per file. Invariant: the nodes of a rule are contiguous and each stands
//! after its parts, so that a loop over [`Rule::nodes`] sees parts before wholes and nobody needs recursion.
//! Every node but the outermost is a part of exactly one other.

use std::ops::Range;

use crate::ir::{Span, SpecialToken};

/// The position of a node in [`File::nodes`].
pub(crate) type NodeId = usize;

/// `… | …`: alternatives, each a sequence.
pub(crate) type Alternatives = Vec<Vec<NodeId>>;

/// A file.
#[derive(Debug)]
pub(crate) struct File<'s> {
    pub nodes: Vec<Node<'s>>,
    pub rules: Vec<Rule<'s>>,
}

/// An expression and its place.
#[derive(Debug)]
pub(crate) struct Node<'s> {
    pub kind: NodeKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum NodeKind<'s> {
    Rule(&'s str),
    /// What stands between quotes; `escapes` in double ones.
    Text {
        raw: &'s str,
        escapes: bool,
    },
    /// What stands between brackets, a `^` included.
    Class(&'s str),
    /// The digits of `#xN`.
    Char(&'s str),
    /// `.`
    Any,
    Special(SpecialToken),
    /// `( … )`
    Group(Alternatives),
    /// `x?`, `x*`, `x+`, `x{n}`, `x{n,}`, `x{n,m}`
    Repeat {
        inner: NodeId,
        min: u32,
        max: Option<u32>,
    },
    /// `x - y`
    Difference {
        from: NodeId,
        without: NodeId,
    },
}

/// `name ::= …`
#[derive(Debug)]
pub(crate) struct Rule<'s> {
    pub name: &'s str,
    pub name_span: Span,
    pub alternatives: Alternatives,
    /// All nodes of it.
    pub nodes: Range<NodeId>,
}
