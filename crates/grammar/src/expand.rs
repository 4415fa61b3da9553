//! Groups, options and repetitions, rewritten to plain rules.
//!
//! Front ends describe an expression by its [`Alternatives`]; this module turns what a plain rule cannot say
//! into fresh nonterminals. Invariants: the language of every expression is kept, no derivation is added that
//! the expression does not have (`x~n..m` of an unambiguous `x` stays unambiguous), equal expressions share
//! one nonterminal, and every fresh nonterminal is `synthetic`. Sizes: an expression costs what it is long,
//! `x+` twice that, `x~n` and `x~n..m` `O(log² m)` beyond small constants. All of it is paid from a
//! [`Budget`].

use std::collections::{HashMap, HashSet};

use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::{Nonterminal, NonterminalId, Rule, Span, Symbol};

/// Sequences of symbols, any of which may stand.
pub(crate) type Alternatives = Vec<Vec<Symbol>>;

/// Up to this many times a symbol is written out.
const WRITTEN_OUT: usize = 8;
/// Up to this many optional times are a chain of single steps, which is cheaper to parse than halves.
const CHAIN: usize = 32;

/// How much of a rule's name goes into the names of what is made for it.
const NAMED: usize = 40;

/// How much a grammar may still grow.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    pub fn new(limit: usize) -> Self {
        Self { limit, left: limit }
    }

    /// How much that is.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Takes `amount` away, for what stands at `span`.
    pub fn spend(&mut self, amount: usize, span: &Span) -> Result<()> {
        self.left = self.left.checked_sub(amount).ok_or_else(|| self.exceeded(span))?;
        Ok(())
    }

    fn exceeded(&self, span: &Span) -> GrammarError {
        let message = format!("the grammar grows beyond the limit of {} symbols here", self.limit);
        GrammarError::new(ErrorKind::Limit, span.clone(), message)
            .with_help("use smaller counts, or raise the limit `grammar_size`")
    }
}

/// What a nonterminal was made for.
#[derive(PartialEq, Eq, Hash)]
enum Shape {
    Group(Alternatives),
    Star(Alternatives),
    Plus(Alternatives),
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    /// The rule around it, for names.
    pub rule: &'p str,
    pub span: &'p Span,
}

/// The rules so far.
pub(crate) struct Expander {
    pub nonterminals: Vec<Nonterminal>,
    pub rules: Vec<Rule>,
    pub budget: Budget,
    shared: HashMap<Shape, NonterminalId>,
    /// Names that may not be made up.
    taken: HashSet<String>,
    n_made: usize,
}

type Result<T> = std::result::Result<T, GrammarError>;

impl Expander {
    /// Begins with the nonterminals that the grammar names.
    pub fn new(nonterminals: Vec<Nonterminal>, budget: Budget) -> Self {
        let names = nonterminals.iter().map(|nonterminal| &nonterminal.name);
        let taken = names.filter(|name| name.starts_with("__") || name.contains('{')).cloned().collect();
        Self { nonterminals, rules: Vec::new(), budget, shared: HashMap::new(), taken, n_made: 0 }
    }

    /// Adds a rule for each alternative.
    pub fn define(&mut self, lhs: NonterminalId, alternatives: Alternatives, span: &Span) -> Result<()> {
        for rhs in alternatives {
            self.budget.spend(rhs.len() + 1, span)?;
            self.rules.push(Rule { lhs, rhs });
        }
        Ok(())
    }

    /// One after the other.
    pub fn sequence(&mut self, items: Vec<Alternatives>, place: Place<'_>) -> Result<Alternatives> {
        if items.len() == 1 {
            return Ok(items.into_iter().next().expect("one item"));
        }
        let mut sequence = Vec::with_capacity(items.len());
        for item in items {
            sequence.extend(self.flat(item, place)?);
        }
        Ok(vec![sequence])
    }

    /// An expression as one sequence: its only alternative, or a nonterminal for them all.
    fn flat(&mut self, mut item: Alternatives, place: Place<'_>) -> Result<Vec<Symbol>> {
        if item.len() == 1 {
            return Ok(item.swap_remove(0));
        }
        let kind = if item.iter().any(Vec::is_empty) { "option" } else { "group" };
        Ok(vec![self.group(kind, item, place)?])
    }

    /// From `min` to `max` times; without `max` any number.
    pub fn repeat(
        &mut self,
        mut item: Alternatives,
        min: u32,
        max: Option<u32>,
        place: Place<'_>,
    ) -> Result<Alternatives> {
        let n_alternatives = item.len();
        item.retain(|sequence| !sequence.is_empty());
        let min = if item.len() < n_alternatives { 0 } else { min as usize };
        if item.is_empty() || max == Some(0) {
            return Ok(vec![vec![]]);
        }
        match (min, max.map(|max| max as usize)) {
            (0, Some(1)) => item.push(vec![]),
            (1, Some(1)) => {}
            (0, None) => return Ok(vec![vec![self.star(item, place)?]]),
            (1, None) => return Ok(vec![vec![self.plus(item, place)?]]),
            (min, max) => {
                let furthest = max.unwrap_or(min);
                if furthest > self.budget.limit {
                    return Err(self.budget.exceeded(place.span));
                }
                let once = match self.flat(item, place)?[..] {
                    [symbol] => symbol,
                    ref sequence => self.group("group", vec![sequence.to_vec()], place)?,
                };
                let mut sequence = self.exactly(once, min, place)?;
                match max {
                    Some(max) => sequence.extend(self.at_most(once, max - min, place)?),
                    None => sequence.push(self.star(vec![vec![once]], place)?),
                }
                return Ok(vec![sequence]);
            }
        }
        Ok(item)
    }

    /// `R: ε | R x`
    fn star(&mut self, item: Alternatives, place: Place<'_>) -> Result<Symbol> {
        self.recursive("star", item, Shape::Star, |_| vec![vec![]], place)
    }

    /// `R: x | R x`
    fn plus(&mut self, item: Alternatives, place: Place<'_>) -> Result<Symbol> {
        self.recursive("plus", item, Shape::Plus, Clone::clone, place)
    }

    /// `R: base | R item`
    fn recursive(
        &mut self,
        kind: &str,
        item: Alternatives,
        shape: fn(Alternatives) -> Shape,
        base: fn(&Alternatives) -> Alternatives,
        place: Place<'_>,
    ) -> Result<Symbol> {
        let key = shape(item.clone());
        if let Some(&known) = self.shared.get(&key) {
            return Ok(Symbol::Nonterminal(known));
        }
        let lhs = self.fresh(kind, place)?;
        self.shared.insert(key, lhs);
        self.define(lhs, base(&item), place.span)?;
        let again = |rest: Vec<Symbol>| std::iter::once(Symbol::Nonterminal(lhs)).chain(rest).collect();
        self.define(lhs, item.into_iter().map(again).collect(), place.span)?;
        Ok(Symbol::Nonterminal(lhs))
    }

    /// The nonterminal with these rules.
    pub fn group(&mut self, kind: &str, alternatives: Alternatives, place: Place<'_>) -> Result<Symbol> {
        let key = Shape::Group(alternatives.clone());
        if let Some(&known) = self.shared.get(&key) {
            return Ok(Symbol::Nonterminal(known));
        }
        let lhs = self.fresh(kind, place)?;
        self.shared.insert(key, lhs);
        self.define(lhs, alternatives, place.span)?;
        Ok(Symbol::Nonterminal(lhs))
    }

    /// A nonterminal with a name that a rule's name was made to; the name gets a prime if another has it.
    pub fn add(&mut self, mut name: String, span: &Span) -> NonterminalId {
        while !self.taken.insert(name.clone()) {
            name.push('\'');
        }
        self.nonterminals.push(Nonterminal { name, span: Some(span.clone()) });
        NonterminalId::new(self.nonterminals.len() - 1)
    }

    /// Gives a nonterminal another name.
    pub fn rename(&mut self, nonterminal: NonterminalId, mut name: String) {
        while !self.taken.insert(name.clone()) {
            name.push('\'');
        }
        self.nonterminals[nonterminal.index()].name = name;
    }

    fn fresh(&mut self, kind: &str, place: Place<'_>) -> Result<NonterminalId> {
        self.budget.spend(1, place.span)?;
        let rule = place.rule.trim_start_matches('_');
        let named = rule.char_indices().nth(NAMED).map_or(rule, |(end, _)| &rule[..end]);
        let name = loop {
            let name = format!("__{named}_{kind}_{}", self.n_made);
            self.n_made += 1;
            if !self.taken.contains(&name) {
                break name;
            }
        };
        self.nonterminals.push(Nonterminal { name, span: Some(place.span.clone()) });
        Ok(NonterminalId::new(self.nonterminals.len() - 1))
    }

    /// `x` exactly `n` times: written out, or twice a half. Recursion as deep as `log n`.
    fn exactly(&mut self, x: Symbol, n: usize, place: Place<'_>) -> Result<Vec<Symbol>> {
        if n <= WRITTEN_OUT {
            return Ok(vec![x; n]);
        }
        let half = self.exactly(x, n / 2, place)?;
        let half = self.group("times", vec![half], place)?;
        Ok([half, half].into_iter().chain((n % 2 == 1).then_some(x)).collect())
    }

    /// `x` at most `n` times: at most half as often, or more than that, which are disjoint. Recursion as deep
    /// as `log n`.
    fn at_most(&mut self, x: Symbol, n: usize, place: Place<'_>) -> Result<Vec<Symbol>> {
        if n > CHAIN {
            let fewer = self.at_most(x, n / 2, place)?;
            let mut more = self.exactly(x, n / 2 + 1, place)?;
            more.extend(self.at_most(x, n - n / 2 - 1, place)?);
            return Ok(vec![self.group("upto", vec![fewer, more], place)?]);
        }
        let mut rest = vec![];
        for _ in 0..n {
            let more = std::iter::once(x).chain(rest).collect();
            rest = vec![self.group("upto", vec![vec![], more], place)?];
        }
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::TerminalId;

    /// The lengths up to `limit` that derivations from the sequence can have, with their number of
    /// derivations.
    fn counts(expander: &Expander, sequence: &[Symbol], limit: usize) -> Vec<u64> {
        let mut table: Vec<Vec<u64>> = vec![vec![0; limit + 1]; expander.nonterminals.len()];
        let add = |table: &[Vec<u64>], sequence: &[Symbol]| {
            let mut ways = vec![0; limit + 1];
            ways[0] = 1;
            for symbol in sequence {
                let mut next = vec![0; limit + 1];
                for (len, &n) in ways.iter().enumerate().filter(|&(_, &n)| n > 0) {
                    match symbol {
                        Symbol::Terminal(_) if len < limit => next[len + 1] += n,
                        Symbol::Terminal(_) => {}
                        Symbol::Nonterminal(id) => {
                            for more in 0..=limit - len {
                                next[len + more] += n * table[id.index()][more];
                            }
                        }
                    }
                }
                ways = next;
            }
            ways
        };
        // Left recursion always adds a terminal, so `limit` rounds after the depth of the rest are enough.
        for _ in 0..=limit + expander.nonterminals.len() {
            let mut next = vec![vec![0; limit + 1]; expander.nonterminals.len()];
            for rule in &expander.rules {
                for (sum, n) in next[rule.lhs.index()].iter_mut().zip(add(&table, &rule.rhs)) {
                    *sum += n;
                }
            }
            table = next;
        }
        add(&table, sequence)
    }

    #[test]
    fn repetitions_count_right_and_stay_unambiguous() {
        let x = vec![vec![Symbol::Terminal(TerminalId::new(0))]];
        let span = 0..1;
        let place = Place { rule: "r", span: &span };
        let limit = 90;
        let bounds = [(0, 1), (0, 7), (3, 3), (2, 5), (9, 9), (17, 40), (0, 33), (0, 80), (11, 77), (64, 64)];
        let bounds = bounds.map(|(min, max)| (min, Some(max)));
        for (min, max) in bounds.into_iter().chain([(0, None), (1, None), (5, None), (20, None)]) {
            let mut expander = Expander::new(vec![], Budget::new(10_000));
            let repeated = expander.repeat(x.clone(), min, max, place).unwrap();
            let mut found = vec![0; limit + 1];
            for sequence in &repeated {
                for (sum, n) in found.iter_mut().zip(counts(&expander, sequence, limit)) {
                    *sum += n;
                }
            }
            let allowed = |len: usize| len >= min as usize && max.is_none_or(|max| len <= max as usize);
            let expected: Vec<u64> = (0..=limit).map(|len| u64::from(allowed(len))).collect();
            assert_eq!(found, expected, "{min}..{max:?}");
        }
    }

    #[test]
    fn large_counts_are_small_and_huge_ones_refused() {
        let x = vec![vec![Symbol::Terminal(TerminalId::new(0))]];
        let place = Place { rule: "r", span: &(3..4) };
        let mut expander = Expander::new(vec![], Budget::new(2_000_000));
        expander.repeat(x.clone(), 1000, Some(1_000_000), place).unwrap();
        assert!(expander.rules.len() < 1500, "{}", expander.rules.len());
        let error = expander.repeat(x.clone(), 99_999_999, Some(99_999_999), place).unwrap_err();
        assert_eq!((error.kind(), error.span()), (ErrorKind::Limit, 3..4));
        let mut tiny = Expander::new(vec![], Budget::new(5));
        assert!(
            tiny.repeat(x, 5, Some(5), place)
                .is_ok_and(|sequence| tiny.sequence(vec![sequence; 9], place).is_ok())
        );
    }

    #[test]
    fn equal_expressions_are_shared_and_empty_ones_vanish() {
        let x = vec![vec![Symbol::Terminal(TerminalId::new(0))]];
        let place = Place { rule: "_r", span: &(0..1) };
        let mut expander = Expander::new(vec![], Budget::new(100));
        let first = expander.repeat(x.clone(), 0, None, place).unwrap();
        assert_eq!(expander.repeat(x.clone(), 0, None, place).unwrap(), first);
        let optional = expander.repeat(x, 0, Some(1), place).unwrap();
        assert_eq!(expander.repeat(optional, 1, None, place).unwrap(), first);
        assert_eq!(expander.repeat(vec![vec![]], 3, None, place).unwrap(), vec![vec![]]);
        assert_eq!(expander.nonterminals[0].name, "__r_star_0");
        assert_eq!(expander.rules.len(), 2);
    }
}
