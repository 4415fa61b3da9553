//! Grammars in a few lines of Rust, for tests that must not depend on a front end.
//!
//! ```
//! use anygram_testkit::build::Build;
//!
//! let grammar = Build::new()
//!     .literal("IF", "if")
//!     .pattern("ID", "[a-z]+")
//!     .pattern("WS", " +")
//!     .ignored()
//!     .rule("start", "IF ID | ID")
//!     .grammar();
//! assert_eq!(grammar.terminals.len(), 3);
//! ```

use anygram_grammar::ir::{
    Grammar, LexerMode, Nonterminal, NonterminalId, Pattern, Rule, SpecialToken, Symbol, Terminal,
    TerminalId, TerminalKind,
};
use regex_syntax::hir::{Hir, HirKind};

/// A regular expression as a pattern; classes are Unicode, `(?-u:\xC3)` is a byte.
///
/// # Panics
/// If it is not one.
pub fn regex(source: &str) -> Pattern {
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
    let hir =
        parser.parse(source).unwrap_or_else(|error| panic!("the regular expression {source:?}: {error}"));
    Pattern::Regex(without_groups(&hir))
}

/// The same without capturing groups, which mean nothing in a grammar.
fn without_groups(hir: &Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(without_groups).collect();
    match hir.kind() {
        HirKind::Capture(group) => without_groups(&group.sub),
        HirKind::Repetition(repetition) => Hir::repetition(repetition.with(without_groups(&repetition.sub))),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
        _ => hir.clone(),
    }
}

/// A grammar in the making. Terminals are declared before the rules; any other name in a rule is a
/// nonterminal.
///
/// The start symbol is the left side of the first rule.
#[derive(Clone, Default, Debug)]
pub struct Build {
    terminals: Vec<Terminal>,
    nonterminals: Vec<Nonterminal>,
    rules: Vec<Rule>,
}

impl Build {
    /// A grammar without anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a terminal.
    pub fn terminal(mut self, name: &str, kind: TerminalKind) -> Self {
        self.terminals.push(Terminal { declared: true, ..Terminal::new(name, kind) });
        self
    }

    /// Declares a terminal that is a text written out.
    pub fn literal(self, name: &str, text: &str) -> Self {
        self.terminal(name, TerminalKind::Literal(Pattern::literal(text.as_bytes())))
    }

    /// Declares a terminal that is a regular expression.
    pub fn pattern(self, name: &str, source: &str) -> Self {
        self.terminal(name, TerminalKind::Pattern(regex(source)))
    }

    /// Declares a terminal that is a special token.
    pub fn special(self, name: &str, token: u32) -> Self {
        self.terminal(name, TerminalKind::Special(SpecialToken::Id(token)))
    }

    /// Gives the last terminal a priority.
    ///
    /// # Panics
    /// If there is none yet.
    pub fn priority(mut self, priority: i32) -> Self {
        self.terminals.last_mut().expect("a terminal").priority = priority;
        self
    }

    /// Makes the last terminal an ignored one.
    ///
    /// # Panics
    /// If there is none yet.
    pub fn ignored(mut self) -> Self {
        self.terminals.last_mut().expect("a terminal").ignored = true;
        self
    }

    /// Makes the last terminal a reserved one.
    ///
    /// # Panics
    /// If there is none yet.
    pub fn reserved(mut self) -> Self {
        self.terminals.last_mut().expect("a terminal").reserved = true;
        self
    }

    /// Adds rules: alternatives are separated by `|`, symbols by spaces.
    pub fn rule(mut self, lhs: &str, alternatives: &str) -> Self {
        let lhs = self.nonterminal(lhs);
        for alternative in alternatives.split('|') {
            let rhs = alternative.split_whitespace().map(|name| self.symbol(name)).collect();
            self.rules.push(Rule { lhs, rhs });
        }
        self
    }

    /// The grammar; terminals without a use are left out.
    ///
    /// # Panics
    /// If it has no rule.
    pub fn grammar(self) -> Grammar {
        let start = self.rules.first().expect("a rule").lhs;
        let Self { terminals, nonterminals, rules } = self;
        Grammar::new(terminals, nonterminals, rules, start, LexerMode::Scannerless)
    }

    fn symbol(&mut self, name: &str) -> Symbol {
        match self.terminals.iter().position(|terminal| terminal.name == name) {
            Some(at) => Symbol::Terminal(TerminalId::new(at)),
            None => Symbol::Nonterminal(self.nonterminal(name)),
        }
    }

    fn nonterminal(&mut self, name: &str) -> NonterminalId {
        let at = self.nonterminals.iter().position(|nonterminal| nonterminal.name == name);
        NonterminalId::new(at.unwrap_or_else(|| {
            self.nonterminals.push(Nonterminal { name: name.to_owned(), span: None });
            self.nonterminals.len() - 1
        }))
    }
}
