//! A plain reader of lowered grammars: all ways to read a text side by side, byte by byte. It shares nothing
//! with lexers and recognizers.

use std::collections::BTreeMap;
use std::rc::Rc;

use anygram_bits::work::Work;
use anygram_grammar::ir::{Pattern, Symbol};
use anygram_grammar::memory::Memory;
use anygram_json_schema::lower::{Lowered, Source};
use anygram_lexer::LexerLimits;
use anygram_lexer::dfa::{DEAD, Dfa, START};
use regex_syntax::hir::Hir;

/// What is to be read, innermost first.
type Stack<'a> = Option<Rc<Node<'a>>>;

/// A frame, and what lies below.
struct Node<'a>(Frame<'a>, Stack<'a>);

#[derive(Clone, Copy)]
enum Frame<'a> {
    Rule(&'a [Symbol]),
    Automaton(usize, u32),
}

/// A terminal in progress: its number, the state of its automaton, and what comes after it.
type Config<'a> = (usize, u32, Stack<'a>);

/// Ways to read a text beyond which it is given up: where alternatives overlap on many levels, they multiply.
const MANY: usize = 2_000;

/// A grammar that is read.
pub struct Simulation<'a> {
    grammar: &'a Lowered,
    dfas: BTreeMap<usize, Dfa>,
    rules: Vec<Vec<&'a [Symbol]>>,
    automata: Vec<Vec<usize>>,
}

/// What became of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    /// How many of its bytes are a prefix of a valid text.
    pub viable: usize,
    /// Whether it is valid.
    pub is_valid: bool,
}

impl<'a> Simulation<'a> {
    /// Compiles the regular expressions.
    pub fn new(grammar: &'a Lowered) -> Self {
        let mut rules = vec![Vec::new(); grammar.nonterminals.len()];
        let mut automata = vec![Vec::new(); grammar.nonterminals.len()];
        grammar.rules.iter().for_each(|rule| rules[rule.lhs.index()].push(&*rule.rhs));
        (0..).zip(&grammar.automata).for_each(|(at, (lhs, ..))| automata[lhs.index()].push(at));
        let dfa = |expression: &Hir| {
            let pattern = Pattern::Regex(expression.clone());
            Dfa::new(&pattern, &LexerLimits::default(), &mut Work::unbounded()).unwrap()
        };
        let dfas = grammar.terminals.iter().enumerate().filter_map(|(at, (_, source, _))| match source {
            Source::Regex(expression) => Some((at, dfa(expression))),
            Source::Automaton(..) => None,
        });
        Self { grammar, dfas: dfas.collect(), rules, automata }
    }

    /// Adds the terminals that may come next; whether nothing need come.
    fn expand(&self, stack: &Stack<'a>, next: &mut Vec<Config<'a>>) -> bool {
        let Some(top) = stack else { return true };
        match top.0 {
            Frame::Rule([]) => self.expand(&top.1, next),
            Frame::Rule([first, rest @ ..]) => {
                self.symbol(*first, Some(Rc::new(Node(Frame::Rule(rest), top.1.clone()))), next)
            }
            Frame::Automaton(at, state) => {
                let (_, automaton, symbols) = &self.grammar.automata[at];
                let mut may_end = automaton.accepts(state) && self.expand(&top.1, next);
                for &symbol in automaton.symbols(state).iter() {
                    let after = Frame::Automaton(at, automaton.step(state, symbol).unwrap());
                    may_end |= self.symbol(
                        symbols[symbol as usize],
                        Some(Rc::new(Node(after, top.1.clone()))),
                        next,
                    );
                }
                may_end
            }
        }
    }

    fn symbol(&self, symbol: Symbol, after: Stack<'a>, next: &mut Vec<Config<'a>>) -> bool {
        let lhs = match symbol {
            Symbol::Terminal(terminal) => {
                let state = match self.grammar.terminals[terminal.index()].1 {
                    Source::Regex(_) => START,
                    Source::Automaton(automaton, _) => self.grammar.pieces[automaton].start(),
                };
                next.push((terminal.index(), state, after));
                return false;
            }
            Symbol::Nonterminal(lhs) => lhs,
        };
        let mut may_end = false;
        let rules = self.rules[lhs.index()].iter().map(|rhs| Frame::Rule(rhs));
        let automata = self.automata[lhs.index()].iter();
        let automata = automata.map(|&at| Frame::Automaton(at, self.grammar.automata[at].1.start()));
        for frame in rules.chain(automata) {
            may_end |= self.expand(&Some(Rc::new(Node(frame, after.clone()))), next);
        }
        may_end
    }

    /// Reads a text; `None` if there are too many ways to.
    pub fn read(&self, text: &[u8]) -> Option<Read> {
        let mut configs = Vec::new();
        let mut is_valid = self.symbol(Symbol::Nonterminal(self.grammar.start), None, &mut configs);
        let mut memory = self.grammar.memory.clone();
        for (at, &byte) in text.iter().enumerate() {
            let mut next = Vec::new();
            let repeats = memory.as_mut().is_some_and(|memory| {
                memory.step(byte);
                memory.repeats()
            });
            is_valid = false;
            for (terminal, state, after) in configs {
                let Some((state, accepts, is_live)) = self.step(terminal, state, byte) else { continue };
                let is_distinct = || self.grammar.terminals[terminal].2.is_some_and(|of| of.is_distinct());
                is_valid |= accepts && !(repeats && is_distinct()) && self.expand(&after, &mut next);
                if is_live {
                    next.push((terminal, state, after));
                }
            }
            if next.len() > MANY {
                return None;
            }
            if next.is_empty() && !is_valid {
                return Some(Read { viable: at, is_valid: false });
            }
            configs = next;
        }
        Some(Read { viable: text.len(), is_valid })
    }

    fn step(&self, terminal: usize, state: u32, byte: u8) -> Option<(u32, bool, bool)> {
        match self.grammar.terminals[terminal].1 {
            Source::Regex(_) => {
                let dfa = &self.dfas[&terminal];
                let next = dfa.step(state, byte);
                (next != DEAD).then(|| (next, dfa.accepting[next as usize], dfa.can_go_on(next)))
            }
            Source::Automaton(automaton, label) => {
                let automaton = &self.grammar.pieces[automaton];
                let next = automaton.step(state, byte).unwrap()?;
                Some((next, automaton.accepts(next).contains(&label), automaton.live(next).contains(&label)))
            }
        }
    }
}
