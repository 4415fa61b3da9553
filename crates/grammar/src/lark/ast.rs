//! The tree of a Lark file: what is written, with places, nothing interpreted.
//!
//! Places are those of the text that all files together make ([`Files`](super::files::Files)).
//!
//! Expressions live in one arena per file. Invariant: the nodes of a definition are contiguous and each
//! stands after its parts, so a loop over [`Expansions::nodes`] sees parts before wholes and nobody needs
//! recursion, neither to lower a tree nor to drop it. Every node but the outermost is a part of exactly one
//! other.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Range;

use super::LarkDialect;
use super::parametric::{Condition, Expression};
use crate::ir::{Hints, LexerMode, Span, SpecialToken};

/// The position of a node in [`File::nodes`].
pub(crate) type NodeId = usize;

/// `… | …`: alternatives, each a sequence.
pub(crate) type Alternatives = Vec<Vec<NodeId>>;

/// A file.
#[derive(Debug)]
pub(crate) struct File<'s> {
    pub nodes: Vec<Node<'s>>,
    pub items: Vec<Item<'s>>,
    pub dialect: LarkDialect,
    /// What `%llguidance` says.
    pub options: Options,
}

/// Options of llguidance that mean something here, in its dialect.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Options {
    /// Whether what is ignored may stand before the first terminal.
    pub initial_skip: bool,
    /// Whether it may stand at most once at one place; and where that is said.
    pub skip_once: bool,
}

/// An expression and its place.
#[derive(Debug)]
pub(crate) struct Node<'s> {
    pub kind: NodeKind<'s>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum NodeKind<'s> {
    /// The name of a rule, a template or a parameter.
    Rule(Cow<'s, str>),
    Terminal(Cow<'s, str>),
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
    /// `<[1-5,7]>`, in rules
    TokenRanges(Vec<(u32, u32)>),
    /// `%json {…}`: the schema
    Json(&'s str),
    /// `%regex {…}`: the object
    RegexObject(&'s str),
    /// `%lark {…}`: the place of the grammar
    Lark(Span),
    /// `@name`
    Named(&'s str),
    /// `name::expression`
    Parametric {
        name: Cow<'s, str>,
        expression: Expression,
    },
    /// `%if condition`, at the end of an alternative
    Condition(Condition),
    /// `( … )`
    Group(Alternatives),
    /// `[ … ]`
    Optional(Alternatives),
    /// `name{x, y}`; the first node is the name
    Use {
        template: NodeId,
        arguments: Vec<NodeId>,
    },
    /// `x?`, `x*`, `x+`, `x~n`, `x~n..m`, `x{n}`, `x{n,m}`
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
    pub text: Cow<'s, str>,
    /// Whether it is a terminal's.
    pub terminal: bool,
    pub span: Span,
}

/// What ends the text of a rule whose right side is a terminal.
#[derive(Debug)]
pub(crate) enum Stop {
    /// `lazy`: the text is as short as it can be.
    Lazy,
    /// `suffix=…`: the text is as short as it can be with this at its end.
    Suffix(Expansions),
    /// `stop=…`: what llguidance takes back; empty it means nothing.
    TakenBack(Expansions),
}

/// `[…]` behind the name of a rule.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub stop: Option<Stop>,
    /// How many tokens may have bytes in the text; with none it is empty.
    pub max_tokens: Option<u32>,
    pub hints: Hints,
}

/// What a definition does to one of the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// There has to be none.
    Define,
    /// It is replaced.
    Override,
    /// It gets more alternatives.
    Extend,
}

/// What is imported from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Path<'s> {
    /// A library that is built in.
    Library(Cow<'s, str>),
    /// A file, relative to the folder of this one: folders and the name without its ending.
    File(Vec<Cow<'s, str>>),
}

#[derive(Debug)]
pub(crate) enum Item<'s> {
    Rule {
        name: Name<'s>,
        /// Those of a template.
        parameters: Vec<Name<'s>>,
        body: Expansions,
        change: Change,
        attributes: Option<Box<Attributes>>,
    },
    Terminal {
        name: Name<'s>,
        priority: i32,
        body: Expansions,
        change: Change,
        /// Not so with `%anonymous`.
        declared: bool,
        /// How many tokens may have bytes in a piece of it.
        max_tokens: Option<NonZeroU32>,
    },
    /// `%nonterminal name`: one without rules.
    Nonterminal {
        name: Name<'s>,
    },
    /// One name of a `%declare`.
    Declare {
        name: Name<'s>,
    },
    Ignore {
        body: Expansions,
    },
    Reserve {
        body: Expansions,
    },
    /// One name from a library or a file.
    Import {
        path: Path<'s>,
        path_span: Span,
        name: Name<'s>,
        alias: Option<Name<'s>>,
    },
    Lexer {
        mode: LexerMode,
        span: Span,
    },
    Start {
        name: Name<'s>,
    },
}
