//! Grammars within a grammar: JSON schemas in Lark grammars, and everything that structural tags hold.

use std::sync::Arc;

use crate::automata::Pieces;
use crate::ir::{
    AutomatonRule, Grammar, Hints, LexerMode, Nonterminal, NonterminalId, Rule, Symbol, Terminal, TerminalId,
    TerminalKind,
};
use crate::memory::{Remembered, Remembers};

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
    /// The memories of values.
    pub embedded: Vec<Remembers>,
    /// What is said about nonterminals.
    pub hints: Vec<(NonterminalId, Hints)>,
}

impl Parts {
    /// Lets a nonterminal derive the sentences of a grammar.
    ///
    /// The nonterminals of that grammar are called `outer: inner`. What is ignored here may then stand
    /// between the terminals of that grammar, as between all others. What it remembers of whole texts is not
    /// taken over: where it is to hold here, it has to be a memory of values.
    pub fn embed(&mut self, lhs: NonterminalId, grammar: Grammar) {
        let (n_terminals, n_nonterminals) = (self.terminals.len(), self.nonterminals.len());
        let (n_pieces, outer) = (self.pieces.len(), self.nonterminals[lhs.index()].name.clone());
        let moved = |symbol: Symbol| match symbol {
            Symbol::Terminal(t) => Symbol::Terminal(TerminalId::new(t.index() + n_terminals)),
            Symbol::Nonterminal(n) => Symbol::Nonterminal(NonterminalId::new(n.index() + n_nonterminals)),
        };
        let n_embedded = self.embedded.len() as u32;
        let left = |lhs: NonterminalId| NonterminalId::new(lhs.index() + n_nonterminals);
        self.terminals.extend(grammar.terminals.into_iter().map(|mut terminal| {
            if let TerminalKind::Automaton { automaton, .. } = &mut terminal.kind {
                *automaton += n_pieces;
            }
            terminal.memory = terminal
                .memory
                .and_then(|memory| Some(Remembered { value: Some(memory.value? + n_embedded), ..memory }));
            terminal
        }));
        let nonterminals = grammar.nonterminals.into_iter();
        let named = nonterminals.map(|n| Nonterminal { name: format!("{outer}: {}", n.name), ..n });
        self.nonterminals.extend(named);
        // It stands where this one names it.
        let span = self.nonterminals[lhs.index()].span.clone();
        let start = &mut self.nonterminals[n_nonterminals + grammar.start.index()];
        start.span = start.span.take().or(span);
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
        self.embedded.extend(grammar.embedded);
        self.hints.extend(grammar.hints.into_iter().map(|(of, hints)| (left(of), hints)));
    }

    /// The grammar of these parts.
    pub fn into_grammar(self, start: NonterminalId, lexer: LexerMode) -> Grammar {
        let Self { terminals, nonterminals, rules, automata, pieces, embedded, hints } = self;
        let grammar = Grammar::with_automata(terminals, nonterminals, (rules, automata), start, lexer);
        grammar.with_pieces(pieces, false).with_embedded(embedded).with_hints(hints)
    }
}
