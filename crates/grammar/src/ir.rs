//! The intermediate representation that every front end lowers to.

use std::convert::Infallible;
use std::ops::Range;

use anygram_bits::index_type;
use regex_syntax::hir::{self, Hir, HirKind, Visitor};

index_type!(
    /// A terminal: what the lexer produces.
    TerminalId
);
index_type!(
    /// A nonterminal: what rules rewrite.
    NonterminalId
);

/// A place in the grammar's source text, in bytes.
pub type Span = Range<usize>;

/// How a text becomes terminal sequences (DESIGN, section 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LexerMode {
    /// Every way to cut the text into non-empty pieces counts.
    Scannerless,
    /// One cut: the longest piece that any terminal matches, again and again.
    Longest,
    /// As `Longest`, but only terminals that can come next compete.
    Contextual,
}

impl LexerMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Scannerless, Self::Longest, Self::Contextual];

    /// The name by which the mode is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scannerless => "scannerless",
            Self::Longest => "longest",
            Self::Contextual => "contextual",
        }
    }
}

/// What to do when several terminals match the same longest piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ties {
    /// All of the highest declared priority are labels of the piece.
    #[default]
    All,
    /// Of those, one: a literal before a pattern, then the earlier declaration.
    First,
}

/// A right-hand side symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// A terminal.
    Terminal(TerminalId),
    /// A nonterminal.
    Nonterminal(NonterminalId),
}

/// A regular expression over bytes, with the operations that `regex-syntax` lacks.
///
/// A pattern stands for a language; the order of alternatives and the greed of quantifiers mean nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// A regular expression without look-around.
    Regex(Hir),
    /// One after the other.
    Concat(Vec<Pattern>),
    /// Any of them; none at all matches nothing.
    Alternate(Vec<Pattern>),
    /// From `min` to `max` times; without `max` any number.
    Repeat {
        /// What is repeated.
        inner: Box<Pattern>,
        /// The least number of times.
        min: u32,
        /// The greatest number of times, if there is one.
        max: Option<u32>,
    },
    /// What all of them match.
    And(Vec<Pattern>),
    /// Every Unicode text that the inner pattern does not match.
    Not(Box<Pattern>),
}

impl Pattern {
    /// The pattern that matches exactly these bytes.
    pub fn literal(bytes: &[u8]) -> Self {
        Self::Regex(Hir::literal(bytes.to_vec()))
    }

    /// Whether the empty string matches.
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Regex(hir) => is_hir_nullable(hir),
            Self::Concat(parts) | Self::And(parts) => parts.iter().all(Self::is_nullable),
            Self::Alternate(parts) => parts.iter().any(Self::is_nullable),
            Self::Repeat { inner, min, .. } => *min == 0 || inner.is_nullable(),
            Self::Not(inner) => !inner.is_nullable(),
        }
    }
}

/// Whether the empty string matches.
///
/// Not the `minimum_len` of the properties: that is unknown as soon as some part matches nothing, as in `a|[a&&b]*`.
fn is_hir_nullable(hir: &Hir) -> bool {
    /// Whether each part that was left and not yet used is nullable; the parts of a node are the last of them.
    struct Nullable(Vec<bool>);

    impl Visitor for Nullable {
        type Output = bool;
        type Err = Infallible;

        fn finish(mut self) -> Result<bool, Infallible> {
            Ok(self.0.pop().expect("the root was left last"))
        }

        fn visit_post(&mut self, hir: &Hir) -> Result<(), Infallible> {
            let mut last = |n: usize| self.0.split_off(self.0.len() - n).into_iter();
            let nullable = match hir.kind() {
                HirKind::Empty | HirKind::Look(_) => true,
                HirKind::Literal(literal) => literal.0.is_empty(),
                HirKind::Class(_) => false,
                HirKind::Repetition(repetition) => last(1).all(|inner| inner || repetition.min == 0),
                HirKind::Capture(_) => last(1).all(|inner| inner),
                HirKind::Concat(parts) => last(parts.len()).all(|part| part),
                HirKind::Alternation(parts) => last(parts.len()).any(|part| part),
            };
            self.0.push(nullable);
            Ok(())
        }
    }

    let Ok(nullable) = hir::visit(hir, Nullable(Vec::new()));
    nullable
}

/// A token of the vocabulary that a grammar names.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SpecialToken {
    /// By its text, `<|name|>`, angle brackets and bars included.
    Name(String),
    /// By its id, `<[id]>`.
    Id(u32),
}

/// What a terminal matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TerminalKind {
    /// A text written out in the grammar, perhaps in any case.
    Literal(Pattern),
    /// Any other pattern.
    Pattern(Pattern),
    /// One token of the vocabulary, whatever its bytes.
    Special(SpecialToken),
}

impl TerminalKind {
    /// The pattern over bytes, unless the terminal is a token.
    pub fn pattern(&self) -> Option<&Pattern> {
        match self {
            Self::Literal(pattern) | Self::Pattern(pattern) => Some(pattern),
            Self::Special(_) => None,
        }
    }
}

/// A terminal and its declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terminal {
    /// The name in the grammar's own words: `NUMBER`, or `"select"` for one that has no name.
    pub name: String,
    /// Whether the grammar declares it under this name; else the name is how it is written where it stands.
    pub declared: bool,
    /// What it matches.
    pub kind: TerminalKind,
    /// Higher wins among terminals that match the same longest piece. Zero unless declared.
    pub priority: i32,
    /// Whether it may stand between, before and after others (`%ignore`). A rule may name it all the same.
    pub ignored: bool,
    /// Whether it competes for the longest piece although no rule needs it (`%reserve`). Where it wins, the text is refused.
    pub reserved: bool,
    /// Where it was declared; `None` for one from the built-in library.
    pub span: Option<Span>,
}

/// A nonterminal and its declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nonterminal {
    /// The name in the grammar's own words; made up (with a leading `__`) for groups and repetitions.
    pub name: String,
    /// Where it was declared (for a made-up one, where the group stands).
    pub span: Option<Span>,
}

impl Nonterminal {
    /// Whether the front end made it up: such names, as in Lark, begin with `__`.
    pub fn is_synthetic(&self) -> bool {
        self.name.starts_with("__")
    }
}

/// `lhs: rhs`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Rule {
    /// What is rewritten.
    pub lhs: NonterminalId,
    /// What it is rewritten to; empty for the empty string.
    pub rhs: Vec<Symbol>,
}

/// A grammar as a front end read it: nothing removed, nothing refused for its shape.
///
/// Invariants (see [`Grammar::validate`]): every id in `rules`, `start` and `ignored` is in range. Terminals stand in
/// the order of their declaration or, without one, of their first use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grammar {
    /// The terminals; [`TerminalId`] is the position.
    pub terminals: Vec<Terminal>,
    /// The nonterminals; [`NonterminalId`] is the position.
    pub nonterminals: Vec<Nonterminal>,
    /// The rules, those of one nonterminal not necessarily together.
    pub rules: Vec<Rule>,
    /// Where derivations begin.
    pub start: NonterminalId,
    /// The lexer mode that this kind of grammar is meant for.
    pub default_lexer: LexerMode,
}

impl Grammar {
    /// The name of a symbol in the grammar's own words.
    pub fn symbol_name(&self, symbol: Symbol) -> &str {
        match symbol {
            Symbol::Terminal(t) => &self.terminals[t.index()].name,
            Symbol::Nonterminal(n) => &self.nonterminals[n.index()].name,
        }
    }

    /// Checks the invariants and says which one is broken.
    pub fn validate(&self) -> Result<(), String> {
        let nonterminal = |n: NonterminalId| n.index() < self.nonterminals.len();
        if !nonterminal(self.start) {
            return Err(format!("start {} of {} nonterminals", self.start.0, self.nonterminals.len()));
        }
        for (at, rule) in self.rules.iter().enumerate() {
            let in_range = nonterminal(rule.lhs)
                && rule.rhs.iter().all(|&symbol| match symbol {
                    Symbol::Terminal(t) => t.index() < self.terminals.len(),
                    Symbol::Nonterminal(n) => nonterminal(n),
                });
            if !in_range {
                return Err(format!("rule {at} names a symbol that does not exist: {rule:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nullable_whatever_parts_match_nothing() {
        let nullable = |source: &str| Pattern::Regex(regex_syntax::parse(source).unwrap()).is_nullable();
        for source in
            ["", "a*", "a|", "(a?b{0,3})+", "[a&&b]*", "a|[a&&b]*", "(x|[a&&b]?)(y|[a&&b]{0,2})", "(a|[a&&b])*"]
        {
            assert!(nullable(source), "{source}");
        }
        for source in ["a", "a+", "a|b", "a*b", "[a&&b]", "[a&&b]+", "[a&&b]*a", "a|[a&&b]", "(a*[a&&b]){2}"] {
            assert!(!nullable(source), "{source}");
        }
    }

    #[test]
    fn nullable_without_recursion() {
        let mut deep = regex_syntax::parse("[a&&b]*").unwrap();
        for _ in 0..20_000 {
            deep = Hir::alternation(vec![Hir::literal(*b"xy"), Hir::concat(vec![deep, Hir::literal(*b"a")])]);
        }
        assert!(!is_hir_nullable(&deep));
    }
}
