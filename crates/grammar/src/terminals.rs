//! What front ends share at their end: terminals that are found by what they match.

use std::collections::HashMap;

use crate::expand::Expander;
use crate::ir::{
    Grammar, LexerMode, NonterminalId, Pattern, SpecialToken, Terminal, TerminalId, TerminalKind,
};

/// The terminals so far, equal ones once. Ids are those of [`Terminals::finish`] only after it.
#[derive(Default)]
pub(crate) struct Terminals {
    terminals: Vec<Terminal>,
    known: HashMap<String, TerminalId>,
}

impl Terminals {
    /// The terminal with this key, perhaps a new one.
    pub fn get(&mut self, key: String, make: impl FnOnce() -> Terminal) -> TerminalId {
        let next = TerminalId::new(self.terminals.len());
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            self.terminals.push(make());
        }
        id
    }

    /// Adds a terminal that nothing else is equal to.
    pub fn add(&mut self, terminal: Terminal) -> TerminalId {
        self.terminals.push(terminal);
        TerminalId::new(self.terminals.len() - 1)
    }

    /// The grammar with these terminals, in order ([`Grammar::new`]).
    pub fn finish(self, expander: Expander, start: NonterminalId, default_lexer: LexerMode) -> Grammar {
        let Expander { nonterminals, rules, .. } = expander;
        Grammar::new(self.terminals, nonterminals, rules, start, default_lexer)
    }
}

/// The identity of a pattern: patterns with equal keys match the same texts.
pub(crate) fn pattern_key(pattern: &Pattern) -> String {
    format!("pattern {pattern}")
}

/// What tells two tokens apart.
pub(crate) fn special_key(token: &SpecialToken) -> String {
    format!("token {token}")
}

/// A terminal that is written where it stands.
pub(crate) fn anonymous(name: String, kind: TerminalKind, span: crate::ir::Span) -> Terminal {
    Terminal { span: Some(span), ..Terminal::new(name, kind) }
}
