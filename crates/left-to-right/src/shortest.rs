//! A short sentence of a grammar whose rules and terminals automata give: of few parts, each as short as can
//! be.
//!
//! Terminals get their shortest texts by a search that goes by what is left at least (A*, Hart, Nilsson and
//! Raphael 1968). Nonterminals get texts in rounds, from those that need no others: what is found in an early
//! round is shallow. Within a rule that an automaton gives, the fewest symbols are searched for with what the
//! automaton knows to be left ([`RuleAutomaton::minimum`]), so the orders of an object's keys are not gone
//! through. It is a heuristic with bounds: who needs to know whether there is a sentence asks the language.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anygram_grammar::automata::{PieceAutomaton, RuleAutomaton};
use anygram_grammar::ir::{Grammar, Symbol};
use anygram_lexer::words::Words;
use rustc_hash::FxHashMap;

/// Steps to the text of one terminal, and of all.
const PIECE_STEPS: usize = 60_000;
const ALL_PIECE_STEPS: usize = 1_000_000;
/// States of each length, where there are too many.
const NARROW: usize = 4;
/// States of all right-hand sides.
const ALL_STATES: usize = 200_000;
/// Texts of one terminal, where they should differ.
const VARIANTS: usize = 24;
/// Bytes of a text.
const LONGEST: usize = 20_000;

/// Short texts that are likely sentences, if some are found within the bounds; of a grammar without automata
/// none are looked for. In a second one, where the grammar remembers what was written, each piece of a
/// terminal differs from those before as long as there are other short ones.
pub(crate) fn sentences(grammar: &Grammar, words: &Words<'_>) -> Vec<Vec<u8>> {
    let Some(texts) = texts(grammar, words) else { return Vec::new() };
    let varied = grammar.remembers().then(|| texts.varied()).flatten();
    texts.nonterminals[grammar.start.index()].clone().into_iter().chain(varied).collect()
}

fn texts<'a>(grammar: &'a Grammar, words: &Words<'_>) -> Option<Texts<'a>> {
    if grammar.automata.is_empty() && grammar.pieces.is_empty() {
        return None;
    }
    let mut texts = Texts {
        grammar,
        terminals: terminals(grammar, &|at| words.shortest(at)),
        nonterminals: vec![None; grammar.nonterminals.len()],
        right_sides: vec![Vec::new(); grammar.nonterminals.len()],
        states_left: ALL_STATES,
    };
    while texts.nonterminals[grammar.start.index()].is_none() {
        if !texts.round() {
            return None;
        }
    }
    Some(texts)
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
            let known = || pieces.examples(label, 1).into_iter().next();
            known()
                .or_else(|| try_with(&is_plain, usize::MAX))
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
    of: (&dyn PieceAutomaton, u32),
    is_usable: &dyn Fn(u8) -> bool,
    width: usize,
    steps_left: &mut usize,
) -> Option<Vec<u8>> {
    some_pieces(of, is_usable, (width, 1), steps_left).into_iter().next()
}

/// The same for up to so many texts of different states.
fn some_pieces(
    (pieces, label): (&dyn PieceAutomaton, u32),
    is_usable: &dyn Fn(u8) -> bool,
    (width, most): (usize, usize),
    steps_left: &mut usize,
) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let classes = pieces.classes();
    let mut bytes: Vec<u8> = (0..=u8::MAX).filter(|&byte| is_usable(byte)).collect();
    bytes.sort_by_key(|byte| (!byte.is_ascii_alphanumeric(), !byte.is_ascii_graphic(), *byte));
    let mut seen = [false; 256];
    bytes.retain(|&byte| !std::mem::replace(&mut seen[classes[usize::from(byte)] as usize], true));
    // The last one first: on from a state with the first of the bytes.
    bytes.reverse();
    let mut before = vec![(pieces.start(), 0, 0_u8)];
    let mut known = FxHashMap::from_iter([(pieces.start(), 0)]);
    // `(at least so long, the latest first, length)`.
    let mut queue = BinaryHeap::from([(Reverse(0), 0, 0_usize)]);
    // How many states there are of each length.
    let mut widths: Vec<usize> = Vec::new();
    let mut steps = PIECE_STEPS.min(*steps_left);
    while let Some((_, at, length)) = queue.pop() {
        let state: u32 = before[at].0;
        if known[&state] < length {
            continue;
        }
        if pieces.accepts(state).binary_search(&label).is_ok() {
            let path = std::iter::successors(Some(at), |&at| (at > 0).then(|| before[at].1));
            let mut text: Vec<u8> = path.filter(|&at| at > 0).map(|at| before[at].2).collect();
            text.reverse();
            texts.push(text);
            if texts.len() == most {
                return texts;
            }
        }
        if pieces.live(state).binary_search(&label).is_err() {
            continue;
        }
        for &byte in &bytes {
            if steps == 0 {
                return texts;
            }
            steps -= 1;
            *steps_left -= 1;
            let Ok(Some(next)) = pieces.step(state, byte) else { continue };
            if known.get(&next).is_some_and(|&known| known <= length + 1) {
                continue;
            }
            known.insert(next, length + 1);
            widths.resize(widths.len().max(length + 1), 0);
            widths[length] += 1;
            if widths[length] <= width {
                let least = (length as u64 + 1).saturating_add(pieces.at_least(next, label));
                before.push((next, at, byte));
                queue.push((Reverse(least), before.len() - 1, length + 1));
            }
        }
    }
    texts
}

struct Texts<'a> {
    grammar: &'a Grammar,
    terminals: Vec<Option<Vec<u8>>>,
    nonterminals: Vec<Option<Vec<u8>>>,
    /// Of each of these the right-hand side that it is the text of.
    right_sides: Vec<Vec<Symbol>>,
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
        let mut found: Vec<(usize, Vec<u8>, Vec<Symbol>)> = Vec::new();
        let grammar = self.grammar;
        for rule in grammar.rules.iter().filter(|rule| self.nonterminals[rule.lhs.index()].is_none()) {
            let text = self.text(rule.rhs.iter().copied());
            found.extend(text.map(|text| (rule.lhs.index(), text, rule.rhs.clone())));
        }
        for rule in &grammar.automata {
            if self.nonterminals[rule.lhs.index()].is_some() {
                continue;
            }
            let side = self.right_side(&*rule.automaton, &rule.symbols);
            let text = side.as_ref().and_then(|side| self.text(side.iter().copied()));
            found.extend(text.zip(side).map(|(text, side)| (rule.lhs.index(), text, side)));
        }
        let any = !found.is_empty();
        for (lhs, text, side) in found {
            let known = &mut self.nonterminals[lhs];
            if known.as_ref().is_none_or(|known| known.len() > text.len()) {
                (*known, self.right_sides[lhs]) = (Some(text), side);
            }
        }
        any
    }

    /// The text of the start, but that each piece of a terminal given by an automaton is another one, as far
    /// as some are found.
    fn varied(&self) -> Option<Vec<u8>> {
        let mut variants: Vec<Option<Vec<Vec<u8>>>> = vec![None; self.terminals.len()];
        let mut n_used = vec![0; self.terminals.len()];
        let mut steps_left = ALL_PIECE_STEPS;
        let (mut text, mut agenda) = (Vec::new(), vec![Symbol::Nonterminal(self.grammar.start)]);
        while let Some(symbol) = agenda.pop() {
            match symbol {
                Symbol::Nonterminal(n) => agenda.extend(self.right_sides[n.index()].iter().rev()),
                Symbol::Terminal(t) => {
                    let own =
                        variants[t.index()].get_or_insert_with(|| self.variants(t.index(), &mut steps_left));
                    let used = &mut n_used[t.index()];
                    text.extend_from_slice(own.get(*used % own.len().max(1))?);
                    *used += 1;
                }
            }
            if text.len() > LONGEST {
                return None;
            }
        }
        Some(text)
    }

    /// Some texts of a terminal.
    fn variants(&self, terminal: usize, steps_left: &mut usize) -> Vec<Vec<u8>> {
        let own = self.terminals[terminal].clone();
        let Some((pieces, label)) = self.grammar.piece(terminal) else { return own.into_iter().collect() };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        let known = pieces.examples(label, VARIANTS);
        if known.len() > 1 {
            return known;
        }
        let mut texts: Vec<Vec<u8>> = own.into_iter().collect();
        for width in [usize::MAX, NARROW] {
            if texts.len() < VARIANTS {
                let more = some_pieces((&**pieces, label), &is_plain, (width, VARIANTS), steps_left);
                texts.extend(more);
                texts.dedup();
            }
        }
        // Texts of one state are not told apart there, as those of all strings.
        let is_piece = |text: &[u8]| {
            let step = |state, &byte: &u8| pieces.step(state, byte).ok().flatten();
            let end = text.iter().try_fold(pieces.start(), step);
            end.is_some_and(|end| pieces.accepts(end).binary_search(&label).is_ok())
        };
        for at in (0..texts.first().map_or(0, Vec::len)).rev() {
            for byte in b'a'..=b'z' {
                let (mut longer, mut other) = (texts[0].clone(), texts[0].clone());
                longer.insert(at, byte);
                other[at] = byte;
                for text in [longer, other] {
                    if texts.len() < VARIANTS && !texts.contains(&text) && is_piece(&text) {
                        texts.push(text);
                    }
                }
            }
        }
        texts
    }

    /// A right-hand side of few symbols.
    fn right_side(&mut self, automaton: &dyn RuleAutomaton, symbols: &[Symbol]) -> Option<Vec<Symbol>> {
        let symbol = |number: u32| symbols.get(number as usize).copied();
        let mut states_left = self.states_left;
        let length = |number| Some(self.of(symbol(number)?)?.len() as u32);
        let path = automaton.few_symbols(automaton.start(), &length, &mut states_left);
        self.states_left = states_left;
        path?.into_iter().map(|(_, number)| symbol(number)).collect()
    }
}
