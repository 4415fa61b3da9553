//! The tree of a Lark file: what is written, with places, nothing interpreted.
//!
//! Expressions live in one arena per file. Invariant: the nodes of a definition are contiguous and each stands after its
//! parts, so a loop over [`Expansions::nodes`] sees parts before wholes and nobody needs recursion, neither to lower a tree
//! nor to drop it. Every node but the outermost is a part of exactly one other.

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
    pub items: Vec<Item<'s>>,
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
    Terminal(&'s str),
    Text {
        raw: &'s str,
        ignore_case: bool,
    },
    /// `"a".."z"`; the places are those of the texts between the quotes.
    Range {
        from: (&'s str, Span),
        to: (&'s str, Span),
    },
    Regex {
        raw: &'s str,
        flags: &'s str,
    },
    Special(SpecialToken),
    /// `( … )`
    Group(Alternatives),
    /// `[ … ]`
    Optional(Alternatives),
    /// `x?`, `x*`, `x+`, `x~n`, `x~n..m`
    Repeat {
        inner: NodeId,
        min: u32,
        max: Option<u32>,
    },
    /// `x & y`, of sequences
    And(Vec<Vec<NodeId>>),
    /// `~x`
    Not(NodeId),
}

/// The right side of a definition.
#[derive(Debug)]
pub(crate) struct Expansions {
    pub alternatives: Alternatives,
    /// All nodes of it.
    pub nodes: Range<NodeId>,
    pub span: Span,
}

/// A name and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Name<'s> {
    pub text: &'s str,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum Item<'s> {
    Rule {
        name: Name<'s>,
        body: Expansions,
    },
    Terminal {
        name: Name<'s>,
        priority: i32,
        body: Expansions,
    },
    Ignore {
        body: Expansions,
    },
    /// One name from the library `common`.
    Import {
        name: Name<'s>,
        alias: Option<Name<'s>>,
    },
}
