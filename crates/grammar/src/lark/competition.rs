//! Lazy terminals beside others, in llguidance's dialect: the lexer there stops as soon as a lazy terminal
//! matches, so that no terminal that could come in its place goes on.
//!
//! A terminal `T` that competes with a lazy terminal `L` wherever it can come loses the texts that begin
//! with one of `L` (if `T` is lazy too, with a shorter one); one that never competes with it keeps them. If
//! it does in some places only, the grammar is refused. Where a terminal can come is known from the states of
//! the rules' LR(0) automaton, each of which is the situation behind some sequence of terminals: in all of
//! those with `T` there has to be `L`. That `T` and `L` are never together is known from the same automaton
//! without its stack, which has more situations than there are. Pairs of which `L` cannot match a text of
//! `T`'s characters alone need no answer.

use std::collections::{BTreeSet, HashMap};

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

use super::pattern::anything;
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::embed::Parts;
use crate::ir::{NonterminalId, Pattern, Symbol, TerminalId, TerminalKind};

/// The most states of either automaton, and of items in all of them.
const MAX_STATES: usize = 4_000;
const MAX_ITEMS: usize = 400_000;

type Result<T> = std::result::Result<T, GrammarError>;

/// A rule and how much of it was read.
type Item = (usize, usize);

/// Takes from terminals what lazy ones cut short.
pub(super) fn cut_short(parts: &mut Parts, start: NonterminalId, lazy: &[TerminalId]) -> Result<()> {
    let pattern = |parts: &Parts, at: usize| parts.terminals[at].kind.pattern().cloned();
    // One that matches the empty string matches nothing else, and stops nobody.
    let is_empty =
        |parts: &Parts, at: usize| parts.terminals[at].kind.pattern().is_none_or(Pattern::is_nullable);
    let mut pairs = Vec::new();
    for at in 0..parts.terminals.len() {
        let Some(own) = pattern(parts, at) else { continue };
        let characters = Characters::of(&own);
        pairs.extend(
            lazy.iter()
                .filter(|lazy| lazy.index() != at && !is_empty(parts, lazy.index()))
                .filter(|lazy| pattern(parts, lazy.index()).is_some_and(|lazy| characters.can_spell(&lazy)))
                .map(|&lazy| (at, lazy.index())),
        );
    }
    if pairs.is_empty() {
        return Ok(());
    }
    let rules = Rules::new(parts);
    let (exact, loose) = (rules.situations(start, true), rules.situations(start, false));
    let mut cut: HashMap<usize, Vec<Pattern>> = HashMap::new();
    for (at, other) in pairs {
        let span = || parts.terminals[other].span.clone().unwrap_or(0..0);
        let (Some(exact), Some(loose)) = (&exact, &loose) else {
            let message = format!(
                "the rules have more than {MAX_STATES} states: too many to tell what a \
                                   lazy terminal competes with"
            );
            return Err(GrammarError::new(ErrorKind::Limit, span(), message));
        };
        if exact.iter().all(|wanted| !wanted.contains(&at) || wanted.contains(&other)) {
            cut.entry(at).or_default().extend(pattern(parts, other));
        } else if loose.iter().any(|wanted| wanted.contains(&at) && wanted.contains(&other)) {
            let (name, lazy) = (&parts.terminals[at].name, &parts.terminals[other].name);
            let message = format!("the lazy terminal of `{lazy}` competes with `{name}` in some places only");
            return Err(GrammarError::new(ErrorKind::Unsupported, span(), message).with_help(
                "write two terminals, one for the places where the lazy one can come; or leave its texts out \
                 of the other: `TEXT: /(?s:.*)/ & ~/(?s:.*<end>.*)/`",
            ));
        }
    }
    let own_is_lazy: BTreeSet<usize> = lazy.iter().map(|lazy| lazy.index()).collect();
    for (at, lazy) in cut {
        let Some(own) = pattern(parts, at) else { continue };
        // Where a lazy terminal matches, only lazy terminals do.
        let is_lazy = own_is_lazy.contains(&at);
        let longer = Pattern::concat(vec![Pattern::alternate(lazy), anything(u32::from(is_lazy))]);
        let pattern = Pattern::and(vec![own, Pattern::Not(Box::new(longer))]);
        if pattern.depth() > Pattern::MAX_DEPTH {
            let span = parts.terminals[at].span.clone().unwrap_or(0..0);
            let message = format!("this terminal nests deeper than {} operations", Pattern::MAX_DEPTH);
            return Err(GrammarError::new(ErrorKind::Limit, span, message));
        }
        parts.terminals[at].kind = TerminalKind::Pattern(pattern);
    }
    Ok(())
}

/// The rules, by what they are about.
struct Rules<'p> {
    parts: &'p Parts,
    of: Vec<Vec<usize>>,
    /// The items behind each nonterminal.
    behind: Vec<Vec<Item>>,
}

impl<'p> Rules<'p> {
    fn new(parts: &'p Parts) -> Self {
        let n = parts.nonterminals.len();
        let (mut of, mut behind) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for (at, rule) in parts.rules.iter().enumerate() {
            of[rule.lhs.index()].push(at);
            for (dot, symbol) in rule.rhs.iter().enumerate() {
                if let Symbol::Nonterminal(n) = symbol {
                    behind[n.index()].push((at, dot + 1));
                }
            }
        }
        Self { parts, of, behind }
    }

    fn is_nullable(&self, terminal: TerminalId) -> bool {
        self.parts.terminals[terminal.index()].kind.pattern().is_some_and(Pattern::is_nullable)
    }

    fn next(&self, (rule, dot): Item) -> Option<Symbol> {
        self.parts.rules[rule].rhs.get(dot).copied()
    }

    /// The items with which others go along: what may come first of the next symbol; and without a stack what
    /// may come behind a rule that is complete.
    fn close(&self, kernel: impl IntoIterator<Item = Item>, is_exact: bool) -> BTreeSet<Item> {
        let mut items = BTreeSet::new();
        let mut agenda: Vec<Item> = kernel.into_iter().collect();
        while let Some(item) = agenda.pop() {
            if !items.insert(item) {
                continue;
            }
            match self.next(item) {
                Some(Symbol::Nonterminal(n)) => agenda.extend(self.of[n.index()].iter().map(|&at| (at, 0))),
                // A terminal that matches the empty string can be left out.
                Some(Symbol::Terminal(t)) if self.is_nullable(t) => agenda.push((item.0, item.1 + 1)),
                None if !is_exact => {
                    agenda.extend(&self.behind[self.parts.rules[item.0].lhs.index()]);
                }
                _ => {}
            }
        }
        items
    }

    /// The terminals that can come in each state; `None` if there are too many states.
    fn situations(&self, start: NonterminalId, is_exact: bool) -> Option<Vec<BTreeSet<usize>>> {
        let first = self.close(self.of[start.index()].iter().map(|&at| (at, 0)), is_exact);
        let mut n_items = first.len();
        let mut known = BTreeSet::from([first.clone()]);
        let (mut states, mut at) = (vec![first], 0);
        while at < states.len() {
            let mut moves: HashMap<Symbol, Vec<Item>> = HashMap::new();
            for &item in &states[at] {
                // Without a stack a nonterminal is passed when its rules are complete; what has no rules here
                // is another grammar.
                let symbol = self.next(item);
                let symbol = symbol.filter(|symbol| match symbol {
                    Symbol::Nonterminal(n) => is_exact || self.of[n.index()].is_empty(),
                    Symbol::Terminal(_) => true,
                });
                if let Some(symbol) = symbol {
                    moves.entry(symbol).or_default().push((item.0, item.1 + 1));
                }
            }
            for kernel in moves.into_values() {
                let state = self.close(kernel, is_exact);
                if known.insert(state.clone()) {
                    n_items += state.len();
                    states.push(state);
                }
            }
            if states.len() > MAX_STATES || n_items > MAX_ITEMS {
                return None;
            }
            at += 1;
        }
        let wanted = |state: &BTreeSet<Item>| {
            let next = state.iter().filter_map(|&item| self.next(item));
            next.filter_map(|symbol| match symbol {
                Symbol::Terminal(terminal) => Some(terminal.index()),
                Symbol::Nonterminal(_) => None,
            })
            .collect()
        };
        Some(states.iter().map(wanted).collect())
    }
}

/// Characters that a terminal's texts can have: no others, perhaps fewer.
struct Characters(ClassUnicode);

impl Characters {
    fn of(pattern: &Pattern) -> Self {
        let mut class = ClassUnicode::empty();
        match Self::add(pattern, &mut class) {
            Some(()) => Self(class),
            None => Self(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])),
        }
    }

    /// `None` if any character may occur. Patterns nest at most [`Pattern::MAX_DEPTH`] deep.
    fn add(pattern: &Pattern, class: &mut ClassUnicode) -> Option<()> {
        match pattern {
            Pattern::Regex(hir) => Self::add_hir(hir, class),
            Pattern::Concat(parts) | Pattern::Alternate(parts) => {
                parts.iter().try_for_each(|part| Self::add(part, class))
            }
            Pattern::Repeat { inner, .. } => Self::add(inner, class),
            Pattern::And(parts) => Self::add(parts.first()?, class),
            Pattern::Not(_) => None,
        }
    }

    fn add_hir(hir: &Hir, class: &mut ClassUnicode) -> Option<()> {
        match hir.kind() {
            HirKind::Empty => Some(()),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                text.chars().for_each(|c| class.push(ClassUnicodeRange::new(c, c)));
                Some(())
            }
            HirKind::Class(Class::Unicode(own)) => {
                own.iter().for_each(|range| class.push(*range));
                Some(())
            }
            HirKind::Repetition(repetition) => Self::add_hir(&repetition.sub, class),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.iter().try_for_each(|part| Self::add_hir(part, class))
            }
            _ => None,
        }
    }

    /// Whether a pattern may match a text of these characters; only a no is certain.
    fn can_spell(&self, pattern: &Pattern) -> bool {
        match pattern {
            Pattern::Regex(hir) => self.can_spell_hir(hir),
            Pattern::Concat(parts) | Pattern::And(parts) => parts.iter().all(|part| self.can_spell(part)),
            Pattern::Alternate(parts) => parts.iter().any(|part| self.can_spell(part)),
            Pattern::Repeat { inner, min, .. } => *min == 0 || self.can_spell(inner),
            Pattern::Not(_) => true,
        }
    }

    fn can_spell_hir(&self, hir: &Hir) -> bool {
        let has = |c: char| self.0.iter().any(|range| range.start() <= c && c <= range.end());
        match hir.kind() {
            HirKind::Literal(literal) => {
                std::str::from_utf8(&literal.0).map_or(true, |text| text.chars().all(has))
            }
            HirKind::Class(Class::Unicode(class)) => {
                let mut both = class.clone();
                both.intersect(&self.0);
                !both.ranges().is_empty()
            }
            HirKind::Repetition(repetition) => repetition.min == 0 || self.can_spell_hir(&repetition.sub),
            HirKind::Concat(parts) => parts.iter().all(|part| self.can_spell_hir(part)),
            HirKind::Alternation(parts) => parts.iter().any(|part| self.can_spell_hir(part)),
            _ => true,
        }
    }
}
