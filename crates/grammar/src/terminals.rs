//! What front ends share at their end: terminals that are found by what they match, and the order of everything.
//!
//! The order is the same for all: rules by their left side, those of one nonterminal as they stand in the file; terminals that are
//! declared, then the others as rules use them first, then what is ignored or reserved and in no rule. What no rule
//! uses otherwise is left out.

use std::collections::HashMap;

use crate::expand::Expander;
use crate::ir::{Grammar, LexerMode, NonterminalId, Pattern, SpecialToken, Symbol, Terminal, TerminalId, TerminalKind};

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

    /// The grammar with these terminals, in the order that the module describes.
    pub fn finish(self, expander: Expander, start: NonterminalId, default_lexer: LexerMode) -> Grammar {
        let Expander { nonterminals, mut rules, .. } = expander;
        rules.sort_by_key(|rule| rule.lhs);
        let mut order: Vec<usize> = Vec::with_capacity(self.terminals.len());
        let mut numbers = vec![None; self.terminals.len()];
        let mut number = |at: usize| {
            *numbers[at].get_or_insert_with(|| {
                order.push(at);
                TerminalId::new(order.len() - 1)
            })
        };
        let those = |holds: fn(&Terminal) -> bool| {
            let terminals = self.terminals.iter().enumerate();
            terminals.filter(move |(_, terminal)| holds(terminal)).map(|(at, _)| at)
        };
        for at in those(|terminal| terminal.declared) {
            number(at);
        }
        for symbol in rules.iter_mut().flat_map(|rule| &mut rule.rhs) {
            if let Symbol::Terminal(terminal) = symbol {
                *terminal = number(terminal.index());
            }
        }
        for at in those(|terminal| terminal.ignored || terminal.reserved) {
            number(at);
        }
        let mut terminals: Vec<Option<Terminal>> = self.terminals.into_iter().map(Some).collect();
        let terminals = order.iter().filter_map(|&at| terminals[at].take()).collect();
        Grammar { terminals, nonterminals, rules, start, default_lexer }
    }
}

/// What tells two patterns apart: equal keys match the same.
pub(crate) fn pattern_key(pattern: &Pattern) -> String {
    format!("pattern {pattern}")
}

/// What tells two tokens apart.
pub(crate) fn special_key(token: &SpecialToken) -> String {
    format!("token {token}")
}

/// A terminal that is written where it stands.
pub(crate) fn anonymous(name: String, kind: TerminalKind, span: crate::ir::Span) -> Terminal {
    Terminal { name, declared: false, kind, priority: 0, ignored: false, reserved: false, span: Some(span) }
}
