//! A short sentence of a grammar whose rules and terminals automata give: of few parts, each as short as can
//! be.
//!
//! Terminals get their shortest texts by a search in breadth. Nonterminals get texts in rounds, from those
//! that need no others: what is found in an early round is shallow. Within a rule that an automaton gives,
//! the fewest symbols are searched for with what the automaton knows to be left ([`RuleAutomaton::minimum`]),
//! so the orders of an object's keys are not gone through. It is a heuristic with bounds: who needs to know
//! whether there is a sentence asks the language.

use std::collections::VecDeque;

use anygram_grammar::automata::{PieceAutomaton, RuleAutomaton};
use anygram_grammar::ir::{Grammar, Symbol};
use anygram_lexer::words::Words;
use rustc_hash::FxHashSet;

/// Steps to the text of one terminal, and of all.
const PIECE_STEPS: usize = 60_000;
const ALL_PIECE_STEPS: usize = 1_000_000;
/// States of each length, where there are too many.
const NARROW: usize = 4;
/// States of all right-hand sides.
const ALL_STATES: usize = 200_000;
/// Bytes of a text.
const LONGEST: usize = 20_000;

/// A short sentence, if one is found within the bounds; of a grammar without automata none is looked for.
pub(crate) fn sentence(grammar: &Grammar, words: &Words<'_>) -> Option<Vec<u8>> {
    if grammar.automata.is_empty() && grammar.pieces.is_empty() {
        return None;
    }
    let mut texts = Texts {
        grammar,
        terminals: terminals(grammar, &|at| words.shortest(at)),
        nonterminals: vec![None; grammar.nonterminals.len()],
        states_left: ALL_STATES,
    };
    while texts.nonterminals[grammar.start.index()].is_none() {
        if !texts.round() {
            return None;
        }
    }
    texts.nonterminals[grammar.start.index()].take()
}

/// A short text of each terminal, where one is found within the bounds.
/// `other` gives those of terminals that no automaton gives.
pub(crate) fn terminals(grammar: &Grammar, other: &dyn Fn(usize) -> Option<Vec<u8>>) -> Vec<Option<Vec<u8>>> {
    let mut steps_left = ALL_PIECE_STEPS;
    let terminal = |at: usize| match grammar.piece(at) {
        // Escapes and other scripts only where there is nothing plainer, for they have many states.
        Some((pieces, label)) => {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
            let mut try_with = |is_usable: &dyn Fn(u8) -> bool, width| {
                piece((&**pieces, label), is_usable, width, &mut steps_left)
            };
            try_with(&is_plain, usize::MAX)
                .or_else(|| try_with(&is_plain, NARROW))
                .or_else(|| try_with(&|_| true, usize::MAX))
        }
        None => other(at),
    };
    (0..grammar.terminals.len()).map(terminal).collect()
}

/// The shortest text of a label that has only such bytes; of several one that is easy to read. Of each length
/// at most `width` states are gone on with, so what is found is the shortest only if there are no more.
fn piece(
    (pieces, label): (&dyn PieceAutomaton, u32),
    is_usable: &dyn Fn(u8) -> bool,
    width: usize,
    steps_left: &mut usize,
) -> Option<Vec<u8>> {
    let classes = pieces.classes();
    let mut bytes: Vec<u8> = (0..=u8::MAX).filter(|&byte| is_usable(byte)).collect();
    bytes.sort_by_key(|byte| (!byte.is_ascii_alphanumeric(), !byte.is_ascii_graphic(), *byte));
    let mut seen = [false; 256];
    bytes.retain(|&byte| !std::mem::replace(&mut seen[classes[usize::from(byte)] as usize], true));
    let mut before = vec![(pieces.start(), 0, 0_u8)];
    let mut known = FxHashSet::from_iter([pieces.start()]);
    let mut queue = VecDeque::from([(0, 0)]);
    // States of the greatest length so far.
    let (mut longest, mut n_longest) = (0, 1);
    let mut steps = PIECE_STEPS.min(*steps_left);
    while let Some((length, at)) = queue.pop_front() {
        let state: u32 = before[at].0;
        if pieces.accepts(state).binary_search(&label).is_ok() {
            let path = std::iter::successors(Some(at), |&at| (at > 0).then(|| before[at].1));
            let mut text: Vec<u8> = path.filter(|&at| at > 0).map(|at| before[at].2).collect();
            text.reverse();
            return Some(text);
        }
        if pieces.live(state).binary_search(&label).is_err() {
            continue;
        }
        for &byte in &bytes {
            steps = steps.checked_sub(1)?;
            *steps_left -= 1;
            if let Some(next) = pieces.step(state, byte).ok()?
                && known.insert(next)
            {
                if longest == length {
                    (longest, n_longest) = (length + 1, 0);
                }
                n_longest += 1;
                if n_longest <= width {
                    before.push((next, at, byte));
                    queue.push_back((length + 1, before.len() - 1));
                }
            }
        }
    }
    None
}

struct Texts<'a> {
    grammar: &'a Grammar,
    terminals: Vec<Option<Vec<u8>>>,
    nonterminals: Vec<Option<Vec<u8>>>,
    states_left: usize,
}

impl Texts<'_> {
    fn of(&self, symbol: Symbol) -> Option<&Vec<u8>> {
        match symbol {
            Symbol::Terminal(t) => self.terminals[t.index()].as_ref(),
            Symbol::Nonterminal(n) => self.nonterminals[n.index()].as_ref(),
        }
    }

    fn text(&self, symbols: impl IntoIterator<Item = Symbol>) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for symbol in symbols {
            text.extend_from_slice(self.of(symbol)?);
            if text.len() > LONGEST {
                return None;
            }
        }
        Some(text)
    }

    /// Gives texts to the nonterminals that those before suffice for; whether there were any.
    fn round(&mut self) -> bool {
        let mut found: Vec<(usize, Vec<u8>)> = Vec::new();
        let grammar = self.grammar;
        for rule in grammar.rules.iter().filter(|rule| self.nonterminals[rule.lhs.index()].is_none()) {
            let text = self.text(rule.rhs.iter().copied());
            found.extend(text.map(|text| (rule.lhs.index(), text)));
        }
        for rule in &grammar.automata {
            if self.nonterminals[rule.lhs.index()].is_some() {
                continue;
            }
            let text = self.right_side(&*rule.automaton, &rule.symbols);
            found.extend(text.map(|text| (rule.lhs.index(), text)));
        }
        let any = !found.is_empty();
        for (lhs, text) in found {
            let known = &mut self.nonterminals[lhs];
            if known.as_ref().is_none_or(|known| known.len() > text.len()) {
                *known = Some(text);
            }
        }
        any
    }

    /// The text of a right-hand side of few symbols.
    fn right_side(&mut self, automaton: &dyn RuleAutomaton, symbols: &[Symbol]) -> Option<Vec<u8>> {
        let symbol = |number: u32| symbols.get(number as usize).copied();
        let mut states_left = self.states_left;
        let length = |number| Some(self.of(symbol(number)?)?.len() as u32);
        let path = automaton.few_symbols(automaton.start(), &length, &mut states_left);
        self.states_left = states_left;
        self.text(path?.into_iter().filter_map(|(_, number)| symbol(number)))
    }
}
