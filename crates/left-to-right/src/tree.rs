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

use crate::dotted::Dotted;
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
        let Some(mut chart) = Chart::with_edges(language, text, bounds) else { return exceeded(most) };
        if chart.read().is_none() {
            return match chart.too_many_states() {
                Some(error) => Err(LexerError::from(error).into()),
                None => exceeded(most),
            };
        }
        let end = chart.places.outside(text.len());
        let Some(mut parts) = Forest::new(&chart).derivation(end) else { return Ok(None) };
        for ((_, span), _) in &mut parts {
            *span = chart.places.place(span.start)..chart.places.place(span.end);
        }
        Ok(Some(Self { nodes: shown(language, parts) }))
    }
}

/// The error of the limit on parse items.
fn exceeded(most: usize) -> Result<Option<Tree>, StepError> {
    let mut work = Work::new(most as u64, "shared_items");
    work.spend(most.saturating_add(1)).map_err(LexerError::from)?;
    Ok(None)
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

/// Whether a part spans all of its right-hand side and may go on to the next in a chain.
fn is_whole((symbol, part): &Part, span: &Range<usize>) -> bool {
    matches!(symbol, Symbol::Nonterminal(_)) && part == span
}

/// A step of an automaton.
struct Step {
    from: usize,
    number: u32,
    symbol: Symbol,
    to: usize,
    before: Dotted,
}

/// All derivations of a text.
struct Forest<'c, 't> {
    chart: &'c Chart<'t>,
    items: FxHashSet<(usize, Item)>,
    /// Where the pieces of a terminal that end at a place began, the shortest first.
    pieces: FxHashMap<(usize, TerminalId), Vec<usize>>,
    /// Where ignored pieces that end at a place began.
    ignored: FxHashMap<usize, Vec<usize>>,
    /// The right-hand sides of a nonterminal that are complete at a place, with where they began: the
    /// shortest first, then the first.
    complete: FxHashMap<(usize, NonterminalId), Vec<(usize, Dotted)>>,
    /// The steps that lead to a state of an automaton.
    before: FxHashMap<Dotted, Vec<(u32, Symbol, Dotted)>>,
}

impl<'c, 't> Forest<'c, 't> {
    fn new(chart: &'c Chart<'t>) -> Self {
        let mut forest = Self {
            chart,
            items: FxHashSet::default(),
            pieces: FxHashMap::default(),
            ignored: FxHashMap::default(),
            complete: FxHashMap::default(),
            before: FxHashMap::default(),
        };
        let cfg = chart.cfg();
        for (at, item) in chart.items() {
            forest.items.insert((at, item));
            if item.side.is_complete(cfg) {
                let complete = forest.complete.entry((at, item.side.lhs(cfg))).or_default();
                complete.push((item.origin, item.side));
            }
        }
        forest.complete.values_mut().for_each(|all| all.sort_by_key(|&(from, side)| (Reverse(from), side)));
        for (from, (number, symbol), to) in chart.taken() {
            forest.before.entry(to).or_default().push((number, symbol, from));
        }
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
        let begin = begins.filter(|&from| self.chart.is_initial(from)).max();
        let is_empty = self.chart.is_nullable(start) && self.chart.is_initial(end);
        let begin = begin.or(is_empty.then_some(end))?;
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

    /// The ways to derive a span by one right-hand side, with where it ends before ignored pieces: those in
    /// which a part spans all, up to the first in which none does, of each rule in the grammar's order.
    fn splits(&self, n: NonterminalId, span: &Range<usize>) -> Vec<(usize, Vec<Part>)> {
        let all = self.complete.get(&(span.end, n)).into_iter().flatten();
        let mut sides: Vec<Dotted> =
            all.filter(|complete| complete.0 == span.start).map(|&(_, side)| side).collect();
        sides.sort_unstable();
        sides.dedup();
        let mut found = Vec::new();
        for sides in sides.chunk_by(|one, other| one.rule == other.rule) {
            match sides[0].is_of_rule(self.chart.cfg()) {
                true => self.splits_of_rule(sides[0], span, &mut found),
                false => self.splits_of_automaton(sides, span, &mut found),
            }
        }
        found
    }

    /// Those of a rule.
    fn splits_of_rule(&self, side: Dotted, span: &Range<usize>, found: &mut Vec<(usize, Vec<Part>)>) {
        let cfg = self.chart.cfg();
        let end = self.before_ignored(span.end, Item { side, origin: span.start });
        // What was read, where it ends, and the parts behind it, the last one first.
        let mut agenda = vec![(side, end, Vec::new())];
        while let Some((side, to, parts)) = agenda.pop() {
            let Some((symbol, before)) = side.before(cfg) else {
                let parts: Vec<Part> = parts.into_iter().rev().collect();
                let is_last = !parts.iter().any(|part| is_whole(part, &(span.start..end)));
                found.push((end, parts));
                if is_last {
                    break;
                }
                continue;
            };
            let item = Item { side: before, origin: span.start };
            let begins = self.begins(symbol, to);
            let fitting = begins.into_iter().filter(|&from| self.items.contains(&(from, item)));
            let next = fitting.map(|from| {
                let rest = if before.dot == 0 { from } else { self.before_ignored(from, item) };
                let parts: Vec<Part> = parts.iter().cloned().chain([(symbol, from..to)]).collect();
                (before, rest, parts)
            });
            let next: Vec<_> =
                next.filter(|(before, rest, _)| before.dot > 0 || *rest == span.start).collect();
            agenda.extend(next.into_iter().rev());
        }
    }

    /// Those of an automaton, by the states in which it accepts. How states are numbered depends on what was
    /// read before, so no state comes before another: all from which the same symbols lead to the end are
    /// followed together.
    fn splits_of_automaton(
        &self,
        accepting: &[Dotted],
        span: &Range<usize>,
        found: &mut Vec<(usize, Vec<Part>)>,
    ) {
        let ends: Vec<(Dotted, usize)> = accepting
            .iter()
            .map(|&side| (side, self.before_ignored(span.end, Item { side, origin: span.start })))
            .collect();
        let last = self.steps_to(&ends, span.start);
        if last.first().is_some_and(|step| step.from == span.start) {
            // The symbol is the only one.
            for Step { symbol, to, .. } in last {
                let part = (symbol, span.start..to);
                let is_last = !is_whole(&part, &(span.start..to));
                found.push((to, vec![part]));
                if is_last {
                    break;
                }
            }
            return;
        }
        let Some(end) = last.first().map(|step| step.to) else { return };
        let (mut steps, mut parts) = (last, Vec::new());
        while let Some(&Step { from, number, symbol, to, .. }) = steps.first() {
            parts.push((symbol, from..to));
            if from == span.start {
                break;
            }
            let same =
                steps.iter().take_while(|step| (step.from, step.number, step.to) == (from, number, to));
            let before: Vec<(Dotted, usize)> = same
                .map(|step| {
                    (step.before, self.before_ignored(from, Item { side: step.before, origin: span.start }))
                })
                .collect();
            steps = self.steps_to(&before, span.start);
        }
        parts.reverse();
        found.push((end, parts));
    }

    /// The last steps of an automaton to some states, each at a place: those by the shortest parts first, of
    /// these by the first symbols.
    fn steps_to(&self, states: &[(Dotted, usize)], origin: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        for &(side, to) in states {
            for &(number, symbol, before) in self.before.get(&side).into_iter().flatten() {
                for from in self.begins(symbol, to) {
                    if self.items.contains(&(from, Item { side: before, origin })) {
                        steps.push(Step { from, number, symbol, to, before });
                    }
                }
            }
        }
        steps.sort_by_key(|step| (Reverse(step.from), step.number, Reverse(step.to)));
        steps
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
