//! Grammars within a grammar: JSON schemas in Lark grammars, and everything that structural tags hold.

use std::sync::Arc;

use crate::automata::Pieces;
use crate::ir::{
    AutomatonRule, Grammar, Hints, LexerMode, Nonterminal, NonterminalId, Rule, Symbol, Terminal, TerminalId,
    TerminalKind,
};

/// The parts of a grammar, to which others are added.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The terminals; joined where they are alike only at the end.
    pub terminals: Vec<Terminal>,
    /// The nonterminals.
    pub nonterminals: Vec<Nonterminal>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Right-hand sides by automata.
    pub automata: Vec<AutomatonRule>,
    /// The automata of terminals.
    pub pieces: Vec<Pieces>,
    /// What is said about nonterminals.
    pub hints: Vec<(NonterminalId, Hints)>,
}

impl Parts {
    /// Lets a nonterminal derive the sentences of a grammar.
    ///
    /// The nonterminals of that grammar are called `outer: inner`. What is ignored here may then stand
    /// between the terminals of that grammar, as between all others.
    pub fn embed(&mut self, lhs: NonterminalId, grammar: Grammar) {
        let (n_terminals, n_nonterminals) = (self.terminals.len(), self.nonterminals.len());
        let (n_pieces, outer) = (self.pieces.len(), self.nonterminals[lhs.index()].name.clone());
        let moved = |symbol: Symbol| match symbol {
            Symbol::Terminal(t) => Symbol::Terminal(TerminalId::new(t.index() + n_terminals)),
            Symbol::Nonterminal(n) => Symbol::Nonterminal(NonterminalId::new(n.index() + n_nonterminals)),
        };
        let left = |lhs: NonterminalId| NonterminalId::new(lhs.index() + n_nonterminals);
        self.terminals.extend(grammar.terminals.into_iter().map(|mut terminal| {
            if let TerminalKind::Automaton { automaton, .. } = &mut terminal.kind {
                *automaton += n_pieces;
            }
            terminal
        }));
        let nonterminals = grammar.nonterminals.into_iter();
        let named = nonterminals.map(|n| Nonterminal { name: format!("{outer}: {}", n.name), ..n });
        self.nonterminals.extend(named);
        self.rules.push(Rule { lhs, rhs: vec![moved(Symbol::Nonterminal(grammar.start))] });
        self.rules.extend(
            grammar
                .rules
                .into_iter()
                .map(|rule| Rule { lhs: left(rule.lhs), rhs: rule.rhs.into_iter().map(moved).collect() }),
        );
        self.automata.extend(grammar.automata.into_iter().map(|rule| AutomatonRule {
            lhs: left(rule.lhs),
            symbols: rule.symbols.iter().copied().map(moved).collect::<Arc<[_]>>(),
            ..rule
        }));
        self.pieces.extend(grammar.pieces);
        self.hints.extend(grammar.hints.into_iter().map(|(of, hints)| (left(of), hints)));
    }

    /// The grammar of these parts.
    pub fn into_grammar(self, start: NonterminalId, lexer: LexerMode) -> Grammar {
        let Self { terminals, nonterminals, rules, automata, pieces, hints } = self;
        let grammar = Grammar::with_automata(terminals, nonterminals, (rules, automata), start, lexer);
        grammar.with_pieces(pieces, false).with_hints(hints)
    }
}
