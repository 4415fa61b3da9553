//! Ignored text behind terminals, and not before the first of them, as llguidance has it.
//!
//! Where a grammar says that something is ignored, it may stand before, between and behind all terminals of
//! the whole grammar. In llguidance's dialect, and in grammars within grammars, it stands behind the
//! terminals and the grammars that the rules of the same grammar name. So rules say it: each of these symbols
//! becomes one that can have ignored text behind it.

use std::collections::HashMap;

use super::ast::Options;
use crate::embed::Parts;
use crate::ir::{Nonterminal, NonterminalId, Rule, Symbol, TerminalId};

/// Writes what is ignored into the rules; `grammars` are the nonterminals that stand for other grammars.
/// Returns the start.
pub(super) fn write(
    parts: &mut Parts,
    start: NonterminalId,
    grammars: &[NonterminalId],
    options: Options,
) -> NonterminalId {
    let ignored: Vec<Symbol> = (0..parts.terminals.len())
        .filter(|&at| std::mem::take(&mut parts.terminals[at].ignored))
        .map(|at| Symbol::Terminal(TerminalId::new(at)))
        .collect();
    if ignored.is_empty() {
        return start;
    }
    let mut behind: HashMap<Symbol, NonterminalId> = HashMap::new();
    let mut rules = std::mem::take(&mut parts.rules);
    for symbol in rules.iter_mut().flat_map(|rule| &mut rule.rhs) {
        if matches!(symbol, Symbol::Nonterminal(n) if !grammars.contains(n)) {
            continue;
        }
        let lhs = *behind.entry(*symbol).or_insert_with(|| {
            let lhs = add(parts, "behind");
            parts.rules.push(Rule { lhs, rhs: vec![*symbol] });
            let before = if options.skip_once { *symbol } else { Symbol::Nonterminal(lhs) };
            parts.rules.extend(ignored.iter().map(|&skip| Rule { lhs, rhs: vec![before, skip] }));
            lhs
        });
        *symbol = Symbol::Nonterminal(lhs);
    }
    parts.rules.extend(rules);
    if !options.initial_skip {
        return start;
    }
    let (whole, skips) = (add(parts, "whole"), add(parts, "skips"));
    let (start, first) = (Symbol::Nonterminal(start), Symbol::Nonterminal(skips));
    parts.rules.push(Rule { lhs: whole, rhs: vec![start] });
    parts.rules.push(Rule { lhs: whole, rhs: vec![first, start] });
    for &skip in &ignored {
        parts.rules.push(Rule { lhs: skips, rhs: vec![skip] });
        if !options.skip_once {
            parts.rules.push(Rule { lhs: skips, rhs: vec![first, skip] });
        }
    }
    whole
}

/// A nonterminal that no grammar names.
fn add(parts: &mut Parts, what: &str) -> NonterminalId {
    let id = NonterminalId::new(parts.nonterminals.len());
    let mut name = format!("__{what}_ignored_{}", id.index());
    while parts.nonterminals.iter().any(|nonterminal| nonterminal.name == name) {
        name.push('\'');
    }
    parts.nonterminals.push(Nonterminal { name, span: None });
    id
}
