//! What is known of terminals given by automata that grow, without making their states: a finite automaton of
//! texts among which all their pieces are.
//!
//! An [`Outline`] is the union of the [outlines] of these automata and of the other terminals' own automata.
//! In place of terminals it has *kinds*: all labels of automata with one outline are one kind. What stays
//! true: at the [place](Outline::place) of a state of the growing union all can follow that can follow in the
//! state.
//!
//! [outlines]: anygram_grammar::automata::PieceAutomaton::outline

use std::collections::VecDeque;
use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_grammar::ir::{Grammar, LexerMode, Pattern, TerminalId, TerminalKind, Ties};
use rustc_hash::FxHashMap;

use crate::dfa::{DEAD, Dfa, START};
use crate::transducer::{Lexing, LexingError};
use crate::union::{Named, State, Union};
use crate::{LexerError, LexerLimits};

/// See the module.
#[derive(Debug)]
pub struct Outline {
    union: Union,
    /// The kind of each terminal, if it competes.
    kinds: Vec<Option<u32>>,
    n_kinds: usize,
    /// Of each state of the product of the terminals with patterns, its place.
    of_product: Vec<Option<State>>,
}

impl Outline {
    /// The outline of a lexing; `None` if all its states are there anyway.
    pub fn new(lexing: &Lexing, work: &mut Work) -> Result<Option<Self>, LexerError> {
        let own = &lexing.lexicon.union;
        if !own.is_growing() {
            return Ok(None);
        }
        let n_terminals = lexing.cfg.n_terminals;
        let mut kinds = vec![None; n_terminals];
        let mut dfas: Vec<Arc<Dfa>> = Vec::new();
        let mut by_outline: FxHashMap<&'static str, u32> = FxHashMap::default();
        for (terminal, kind) in kinds.iter_mut().enumerate() {
            let fresh = dfas.len() as u32;
            *kind = match own.given_by(terminal) {
                None => None,
                Some(Named::Pattern) => lexing.shared_dfa(TerminalId::new(terminal)).map(|dfa| {
                    dfas.push(dfa.clone());
                    fresh
                }),
                Some(Named::Label(pieces, _)) => {
                    let outline = pieces.outline();
                    let known = by_outline.get(outline).copied();
                    Some(match known {
                        Some(known) => known,
                        None => {
                            dfas.push(Arc::new(outline_dfa(outline, work)?));
                            by_outline.insert(outline, fresh);
                            fresh
                        }
                    })
                }
            };
        }
        let parts: Vec<Option<&Arc<Dfa>>> = dfas.iter().map(Some).collect();
        let union = Union::new(&parts, &LexerLimits::default(), work)?;
        let of_product = own.product().map_or_else(Vec::new, |product| places(product, &union));
        Ok(Some(Self { union, kinds, n_kinds: dfas.len(), of_product }))
    }

    /// The finite automaton, over kinds.
    pub fn union(&self) -> &Union {
        &self.union
    }

    /// The kinds of some terminals.
    pub fn kinds_of(&self, terminals: &BitSet) -> BitSet {
        let kinds = terminals.iter().filter_map(|terminal| *self.kinds.get(terminal)?);
        BitSet::from_members(self.n_kinds + 1, kinds.map(|kind| kind as usize))
    }

    /// A state of the outline where at least all can follow that can follow in a state of the growing union;
    /// `None` if none is known.
    pub fn place(&self, own: &Union, state: State) -> Option<State> {
        if own.is_start(state) {
            return Some(START);
        }
        own.in_outline(state, &self.of_product, |text| run(&self.union, text))
    }
}

/// States of rules given by automata that are written out.
const MOST_STATES: usize = 2_000;

/// The lexing of a plain grammar whose sentences are at least those of a grammar with automata that grow: in
/// place of terminals given so their outlines, and in place of rules given so the same written out, or where
/// they have many states, rules of which nothing but the symbols and their least number is right. What the
/// memory recalls is left out. `None` if the grammar names tokens of the vocabulary.
pub fn lexing(
    grammar: &Grammar,
    limits: &LexerLimits,
    work: &mut Work,
) -> Result<Option<Lexing>, LexingError> {
    let mut terminals = grammar.terminals.clone();
    for (at, terminal) in terminals.iter_mut().enumerate() {
        terminal.memory = None;
        if matches!(terminal.kind, TerminalKind::Special(_)) {
            return Ok(None);
        }
        if let Some((pieces, _)) = grammar.piece(at) {
            let Some(pattern) = parsed(pieces.outline()) else { return Ok(None) };
            terminal.kind = TerminalKind::Pattern(pattern);
        }
    }
    let rules = (grammar.rules.clone(), grammar.automata.clone());
    let mode = grammar.default_lexer;
    let plain = Grammar::with_automata(terminals, grammar.nonterminals.clone(), rules, grammar.start, mode);
    let plain = plain.expanded(MOST_STATES).unwrap_or(plain);
    Lexing::new(&plain, LexerMode::Scannerless, Ties::All, *limits, work).map(Some)
}

fn parsed(outline: &'static str) -> Option<Pattern> {
    regex_syntax::ParserBuilder::new().utf8(false).build().parse(outline).ok().map(Pattern::Regex)
}

fn run(union: &Union, text: &[u8]) -> State {
    text.iter().fold(START, |state, &byte| union.step(state, union.class(byte)))
}

/// The automaton of an outline.
pub(crate) fn outline_dfa(outline: &'static str, work: &mut Work) -> Result<Dfa, LexerError> {
    let too_large = || LexerError::TerminalTooLarge {
        terminal: outline.to_owned(),
        limit: LexerLimits::default().dfa_states,
        option: "dfa_states",
    };
    let pattern = parsed(outline).ok_or_else(too_large)?;
    Dfa::new(&pattern, &LexerLimits::default(), work).map_err(|_| too_large())
}

/// Of each state of a product of terminals, where the texts that lead to it lead in a union that has these
/// terminals too.
fn places(product: &Union, union: &Union) -> Vec<Option<State>> {
    let mut places = vec![None; product.n_states()];
    places[START as usize] = Some(START);
    let mut agenda = VecDeque::from([START]);
    while let Some(state) = agenda.pop_front() {
        let Some(place) = places[state as usize] else { continue };
        for &byte in product.samples() {
            let next = product.step(state, product.class(byte));
            if next != DEAD && places[next as usize].is_none() {
                places[next as usize] = Some(union.step(place, union.class(byte)));
                agenda.push_back(next);
            }
        }
    }
    places
}
