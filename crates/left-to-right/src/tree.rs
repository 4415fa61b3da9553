//! The parse tree of a finished text: which part of it is which nonterminal.
//!
//! A text can have many derivations, and the tree is one of them, by a rule that `docs/meaning.md` states:
//! from the root down, the first rule of the grammar that has a derivation; of its symbols, from the right,
//! each takes the shortest part that leaves a derivation of the others. Cost: that of Earley's algorithm with
//! places, cubic in the text at worst and linear for most grammars; the limit `shared_items` bounds it.

use std::cmp::Reverse;
use std::ops::Range;

use anygram_bits::work::Work;
use anygram_grammar::ir::{NonterminalId, Symbol, TerminalId};
use anygram_lexer::LexerError;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::explain::{Chart, Item};
use crate::language::{Language, StepError};

/// Steps for each parse item that the limit allows.
const STEPS_PER_ITEM: usize = 100;

/// A node of a [`Tree`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeNode {
    /// The nonterminal, or the terminal of a piece.
    pub symbol: Symbol,
    /// The bytes that it spans, ignored pieces at both ends left out.
    pub span: Range<usize>,
    /// How deep it is; the root is 0.
    pub depth: usize,
}

/// The parse tree of a text: its nodes, each before those below it.
///
/// Nonterminals that a front end made up for groups and repetitions are left out: what is below them stands
/// in their place. Ignored pieces are in no node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree {
    /// The nodes.
    pub nodes: Vec<TreeNode>,
}

impl Tree {
    /// The tree of a text; `None` if it is no sentence.
    ///
    /// ```
    /// use anygram_left_to_right::tree::Tree;
    /// use anygram_left_to_right::{Language, LanguageOptions};
    ///
    /// let grammar = anygram_grammar::lark::parse("start: \"(\" start \")\" | \"x\"", &Default::default())?;
    /// let language = Language::new(grammar, &LanguageOptions::default())?;
    /// let tree = Tree::read(&language, b"(x)")?.ok_or("it is a sentence")?;
    /// let nodes: Vec<_> = tree.nodes.iter().map(|node| (node.depth, node.span.clone())).collect();
    /// assert_eq!(nodes, [(0, 0..3), (1, 0..1), (1, 1..2), (2, 1..2), (1, 2..3)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// For limits; `shared_items` bounds the parse items.
    pub fn read(language: &Language, text: &[u8]) -> Result<Option<Self>, StepError> {
        if !language.read(text)?.is_sentence {
            return Ok(None);
        }
        let most = language.limits().shared_items;
        let bounds = (most.saturating_mul(STEPS_PER_ITEM), most);
        let parts = Chart::with_edges(language, text, bounds).and_then(|mut chart| {
            chart.read()?;
            let mut parts = Forest::new(&chart).derivation(chart.places.outside(text.len()))?;
            for ((_, span), _) in &mut parts {
                *span = chart.places.place(span.start)..chart.places.place(span.end);
            }
            Some(parts)
        });
        let Some(parts) = parts else {
            let mut work = Work::new(most as u64, "shared_items");
            work.spend(most.saturating_add(1)).map_err(LexerError::from)?;
            return Ok(None);
        };
        Ok(Some(Self { nodes: shown(language, parts) }))
    }
}

/// A symbol and what it spans.
type Part = (Symbol, Range<usize>);

/// A nonterminal, what it spans, and the parts of which it is made.
type Link = (NonterminalId, Range<usize>, Vec<Part>);

/// The nodes that have a name in the grammar, in the place of the others what is below them.
fn shown(language: &Language, parts: Vec<(Part, usize)>) -> Vec<TreeNode> {
    let nonterminals = &language.grammar().nonterminals;
    // Of each level of the derivation, how deep it is among those that are shown.
    let (mut depths, mut nodes): (Vec<usize>, _) = (Vec::new(), Vec::new());
    for ((symbol, span), level) in parts {
        let depth = level.checked_sub(1).map_or(0, |above| depths[above]);
        let is_shown = level == 0
            || match symbol {
                Symbol::Terminal(_) => true,
                Symbol::Nonterminal(n) => nonterminals.get(n.index()).is_some_and(|n| !n.is_synthetic()),
            };
        depths.truncate(level);
        depths.push(depth + usize::from(is_shown));
        if is_shown {
            nodes.push(TreeNode { symbol, span, depth });
        }
    }
    nodes
}

/// All derivations of a text.
struct Forest<'c, 't> {
    chart: &'c Chart<'t>,
    items: FxHashSet<(usize, Item)>,
    /// Where the pieces of a terminal that end at a place began, the shortest first.
    pieces: FxHashMap<(usize, TerminalId), Vec<usize>>,
    /// Where ignored pieces that end at a place began.
    ignored: FxHashMap<usize, Vec<usize>>,
    /// The rules of a nonterminal that are complete at a place, with where they began: the shortest first,
    /// then the first.
    complete: FxHashMap<(usize, NonterminalId), Vec<(usize, u32)>>,
}

impl<'c, 't> Forest<'c, 't> {
    fn new(chart: &'c Chart<'t>) -> Self {
        let mut forest = Self {
            chart,
            items: FxHashSet::default(),
            pieces: FxHashMap::default(),
            ignored: FxHashMap::default(),
            complete: FxHashMap::default(),
        };
        for (at, item) in chart.items() {
            forest.items.insert((at, item));
            if chart.next(item).is_none() {
                let complete = forest.complete.entry((at, chart.lhs(item))).or_default();
                complete.push((item.origin, item.rule));
            }
        }
        forest.complete.values_mut().for_each(|all| all.sort_by_key(|&(from, rule)| (Reverse(from), rule)));
        for &(from, to, terminal) in chart.edges() {
            match terminal {
                Some(terminal) => forest.pieces.entry((to, terminal)).or_default().push(from),
                None => forest.ignored.entry(to).or_default().push(from),
            }
        }
        for all in forest.pieces.values_mut().chain(forest.ignored.values_mut()) {
            all.sort_unstable_by_key(|&from| Reverse(from));
            all.dedup();
        }
        forest
    }

    /// The place where an item was made that stands at another one behind ignored pieces.
    fn before_ignored(&self, mut at: usize, item: Item) -> usize {
        while let Some(from) = self.ignored.get(&at)
            && let Some(&from) =
                from.iter().find(|&&from| from > item.origin && self.items.contains(&(from, item)))
        {
            at = from;
        }
        at
    }

    /// The parts of the tree, each before those below it, with their levels.
    fn derivation(&self, end: usize) -> Option<Vec<(Part, usize)>> {
        let start = self.chart.start();
        let begins = self.complete.get(&(end, start)).into_iter().flatten().map(|&(from, _)| from);
        let begin = begins.filter(|&from| self.chart.is_initial(from)).max().unwrap_or(end);
        let mut parts = Vec::new();
        let mut agenda = vec![((Symbol::Nonterminal(start), begin..end), 0)];
        while let Some((part, level)) = agenda.pop() {
            let (symbol, span) = part;
            match symbol {
                Symbol::Nonterminal(n) if !span.is_empty() => {
                    // A chain of nonterminals that span the same, each of them a level below.
                    let chain = self.chain(n, span)?;
                    let (mut level, last) = (level, chain.len() - 1);
                    for (at, (n, span, below)) in chain.into_iter().enumerate() {
                        parts.push(((Symbol::Nonterminal(n), span), level));
                        level += 1;
                        // Of those above the last, what is beside the chain is empty.
                        if at == last {
                            agenda.extend(below.into_iter().rev().map(|part| (part, level)));
                        }
                    }
                }
                _ => parts.push(((symbol, span), level)),
            }
        }
        Some(parts)
    }

    /// How a nonterminal derives what it spans, by rules of which all but the last have a nonterminal that
    /// spans the same: no nonterminal comes twice.
    fn chain(&self, n: NonterminalId, span: Range<usize>) -> Option<Vec<Link>> {
        let mut seen = FxHashSet::from_iter([(n, span.end)]);
        let mut stack = vec![(n, span.clone(), self.splits(n, &span).into_iter())];
        let mut chosen: Vec<Vec<Part>> = Vec::new();
        loop {
            let (_, own, splits) = stack.last_mut()?;
            let Some((end, split)) = splits.next() else {
                stack.pop();
                chosen.pop();
                continue;
            };
            own.end = end;
            let same = split.iter().find_map(|(symbol, part)| match symbol {
                Symbol::Nonterminal(n) if part.start == span.start && part.end == end => Some(*n),
                _ => None,
            });
            let Some(next) = same else {
                chosen.push(split);
                let chain = stack.into_iter().zip(chosen);
                return Some(chain.map(|((n, span, _), split)| (n, span, split)).collect());
            };
            if seen.insert((next, end)) {
                chosen.push(split);
                let span = span.start..end;
                let splits = self.splits(next, &span).into_iter();
                stack.push((next, span, splits));
            }
        }
    }

    /// The ways to derive a span by one rule, with where it ends before ignored pieces: those in which a part
    /// spans all, up to the first in which none does, of each rule in the grammar's order.
    fn splits(&self, n: NonterminalId, span: &Range<usize>) -> Vec<(usize, Vec<Part>)> {
        let all = self.complete.get(&(span.end, n)).into_iter().flatten();
        let mut rules: Vec<u32> =
            all.filter(|complete| complete.0 == span.start).map(|&(_, rule)| rule).collect();
        rules.sort_unstable();
        rules.dedup();
        let mut found = Vec::new();
        for rule in rules {
            let dot = self.chart.n_symbols(rule) as u32;
            let whole = Item { rule, dot, origin: span.start };
            let end = self.before_ignored(span.end, whole);
            // What is left of the rule, where it ends, and the parts behind it, the last one first.
            let mut agenda = vec![(dot, end, Vec::new())];
            while let Some((dot, to, parts)) = agenda.pop() {
                let Some(dot) = dot.checked_sub(1) else {
                    let parts: Vec<Part> = parts.into_iter().rev().collect();
                    let is_whole = |(symbol, part): &Part| {
                        matches!(symbol, Symbol::Nonterminal(_)) && *part == (span.start..end)
                    };
                    let is_last = !parts.iter().any(is_whole);
                    found.push((end, parts));
                    if is_last {
                        break;
                    }
                    continue;
                };
                let before = Item { rule, dot, origin: span.start };
                let symbol = self.chart.symbol(rule, dot);
                let begins = self.begins(symbol, to);
                let fitting = begins.into_iter().filter(|&from| self.items.contains(&(from, before)));
                let next = fitting.map(|from| {
                    let rest = if dot == 0 { from } else { self.before_ignored(from, before) };
                    let parts: Vec<Part> = parts.iter().cloned().chain([(symbol, from..to)]).collect();
                    (dot, rest, parts)
                });
                let next: Vec<_> = next.filter(|(dot, rest, _)| *dot > 0 || *rest == span.start).collect();
                agenda.extend(next.into_iter().rev());
            }
        }
        found
    }

    /// Where a symbol can begin that ends at a place, the shortest first.
    fn begins(&self, symbol: Symbol, to: usize) -> Vec<usize> {
        match symbol {
            Symbol::Terminal(terminal) => self.pieces.get(&(to, terminal)).cloned().unwrap_or_default(),
            Symbol::Nonterminal(n) => {
                let empty = self.chart.is_nullable(n).then_some(to);
                let all = self.complete.get(&(to, n)).into_iter().flatten().map(|&(from, _)| from);
                let mut begins: Vec<usize> = empty.into_iter().chain(all.filter(|&from| from < to)).collect();
                begins.dedup();
                begins
            }
        }
    }
}
