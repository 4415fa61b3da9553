//! Short and random derivations, as sequences of terminals.
//!
//! Every terminal has a weight, say the length of its shortest text; one without a weight is left out of all
//! derivations. Nothing here recurses: trees may be as deep as grammars are long. Costs: [`Derivations::new`]
//! linear in the rules but for a queue; a derivation costs what it is long, times the alternatives looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anygram_bits::Random;

use crate::cfg::Cfg;
use crate::ir::{NonterminalId, Rule, Symbol, TerminalId};

/// The cheapest derivation of every nonterminal, and the cheapest way to it from the start.
#[derive(Clone, Debug)]
pub struct Derivations<'a> {
    cfg: &'a Cfg,
    /// Of each nonterminal its rules that derive something, with what each costs more than the cheapest, in
    /// ascending order of that.
    by_cost: Vec<Vec<(usize, u64)>>,
    weights: Vec<Option<u32>>,
    /// Of each nonterminal what its cheapest derivation costs, and the rule that begins it; the rules of its
    /// nonterminals were settled before.
    best: Vec<Option<(u64, usize)>>,
    /// Of each nonterminal the rule and the place in it that lead to it.
    way: Vec<Option<(usize, usize)>>,
}

impl<'a> Derivations<'a> {
    /// The derivations of a grammar whose terminals weigh this much; one without a weight is in none.
    pub fn new(cfg: &'a Cfg, weights: Vec<Option<u32>>) -> Self {
        let n = cfg.n_nonterminals;
        let mut this =
            Self { cfg, by_cost: vec![Vec::new(); n], weights, best: vec![None; n], way: vec![None; n] };
        this.settle();
        for (at, rule) in cfg.rules.iter().enumerate() {
            if let (Some(cost), Some((best, _))) = (this.rule_cost(at), this.best[rule.lhs.index()]) {
                this.by_cost[rule.lhs.index()].push((at, cost - best));
            }
        }
        this.by_cost.iter_mut().for_each(|rules| rules.sort_by_key(|&(_, more)| more));
        this.find_ways();
        this
    }

    /// Knuth's generalization (1977) of Dijkstra's algorithm, as in [`Cfg::minimum_lengths`].
    fn settle(&mut self) {
        let mut occurs = vec![Vec::new(); self.cfg.n_nonterminals];
        let mut open = Vec::with_capacity(self.cfg.rules.len());
        let mut queue = BinaryHeap::new();
        for (at, rule) in self.cfg.rules.iter().enumerate() {
            let (mut n_open, mut cost) = (0usize, Some(0u64));
            for &symbol in &rule.rhs {
                match symbol {
                    Symbol::Terminal(t) => {
                        cost = cost.zip(self.weights[t.index()]).map(|(sum, w)| sum + u64::from(w))
                    }
                    Symbol::Nonterminal(n) => {
                        occurs[n.index()].push(at);
                        n_open += 1;
                    }
                }
            }
            open.push((n_open, cost));
            if let (0, Some(cost)) = (n_open, cost) {
                queue.push(Reverse((cost, at)));
            }
        }
        while let Some(Reverse((cost, rule))) = queue.pop() {
            let lhs = self.cfg.rules[rule].lhs.index();
            if self.best[lhs].is_some() {
                continue;
            }
            self.best[lhs] = Some((cost, rule));
            for &user in &occurs[lhs] {
                let (n_open, sum) = &mut open[user];
                *n_open -= 1;
                *sum = sum.map(|sum| sum.saturating_add(cost));
                if let (0, Some(sum)) = (*n_open, *sum) {
                    queue.push(Reverse((sum, user)));
                }
            }
        }
    }

    fn find_ways(&mut self) {
        let start = self.cfg.start.index();
        let mut settled = vec![false; self.cfg.n_nonterminals];
        let mut queue = BinaryHeap::from([Reverse((0, start, None))]);
        while let Some(Reverse((cost, at, way))) = queue.pop() {
            if std::mem::replace(&mut settled[at], true) {
                continue;
            }
            self.way[at] = way;
            let best = self.best[at].map_or(0, |(best, _)| best);
            for &(rule, more) in &self.by_cost[at] {
                let whole = best + more;
                for (place, symbol) in self.cfg.rules[rule].rhs.iter().enumerate() {
                    if let Symbol::Nonterminal(n) = *symbol
                        && !settled[n.index()]
                    {
                        let around = whole - self.cost(n).unwrap_or(0).min(whole);
                        queue.push(Reverse((around.saturating_add(cost), n.index(), Some((rule, place)))));
                    }
                }
            }
        }
    }

    /// What the cheapest derivation of a nonterminal costs; `None` if it has none.
    pub fn cost(&self, nonterminal: NonterminalId) -> Option<u64> {
        self.best[nonterminal.index()].map(|(cost, _)| cost)
    }

    fn rule_cost(&self, rule: usize) -> Option<u64> {
        self.cfg.rules[rule].rhs.iter().try_fold(0u64, |sum, &symbol| {
            Some(sum.saturating_add(match symbol {
                Symbol::Terminal(t) => u64::from(self.weights[t.index()]?),
                Symbol::Nonterminal(n) => self.cost(n)?,
            }))
        })
    }

    /// The cheapest sentence; `None` if there is none, or it is longer than `limit`.
    pub fn shortest(&self, limit: usize) -> Option<Vec<TerminalId>> {
        self.expand(vec![Symbol::Nonterminal(self.cfg.start)], limit)
    }

    /// A sentence in whose derivation a rule stands, all else as cheap as can be.
    pub fn around(&self, rule: usize, limit: usize) -> Option<Vec<TerminalId>> {
        let Rule { lhs, rhs } = &self.cfg.rules[rule];
        let mut ways = Vec::new();
        let mut at = lhs.index();
        while at != self.cfg.start.index() {
            let (rule, place) = self.way[at]?;
            ways.push((&self.cfg.rules[rule].rhs, place));
            at = self.cfg.rules[rule].lhs.index();
        }
        let mut symbols: Vec<Symbol> = Vec::new();
        for (rhs, place) in ways.iter().rev() {
            symbols.extend_from_slice(&rhs[..*place]);
        }
        symbols.extend_from_slice(rhs);
        for (rhs, place) in &ways {
            symbols.extend_from_slice(&rhs[place + 1..]);
        }
        self.expand(symbols, limit)
    }

    fn expand(&self, mut stack: Vec<Symbol>, limit: usize) -> Option<Vec<TerminalId>> {
        stack.reverse();
        let mut terminals = Vec::new();
        // Derivations of nothing at all can be large too.
        let mut left = 64 * limit + 1024;
        while let Some(symbol) = stack.pop() {
            left = left.checked_sub(1)?;
            match symbol {
                Symbol::Terminal(t) => {
                    self.weights[t.index()]?;
                    terminals.push(t);
                }
                Symbol::Nonterminal(n) => {
                    let (_, rule) = self.best[n.index()]?;
                    stack.extend(self.cfg.rules[rule].rhs.iter().rev());
                }
            }
            if terminals.len() > limit || stack.len() > left {
                return None;
            }
        }
        Some(terminals)
    }

    /// A random sentence that costs at most `extra` more than the cheapest.
    ///
    /// What may be spent is split at random among the parts of each phrase. `None` if there is no sentence,
    /// or it is longer than `limit`.
    pub fn random(&self, extra: u64, limit: usize, random: &mut Random) -> Option<Vec<TerminalId>> {
        let mut terminals = Vec::new();
        let mut stack = vec![(Symbol::Nonterminal(self.cfg.start), extra)];
        // Alternatives that cost nothing could be taken for ever.
        let mut left = 64 * limit + 1024;
        while let Some((symbol, spare)) = stack.pop() {
            left = left.checked_sub(1)?;
            let n = match symbol {
                Symbol::Terminal(t) => {
                    terminals.push(t);
                    if terminals.len() > limit {
                        return None;
                    }
                    continue;
                }
                Symbol::Nonterminal(n) => n,
            };
            let (cost, best) = self.best[n.index()]?;
            let rules = &self.by_cost[n.index()];
            let options = match left > 32 * limit {
                true => &rules[..rules.partition_point(|&(_, more)| more <= spare)],
                false => &[(best, 0)][..],
            };
            // Where there is much to spend, two draws, of which the dearer: else lists would end too soon.
            let mut choice = *random.choose(options);
            if spare > cost {
                let other = *random.choose(options);
                choice = if other.1 > choice.1 { other } else { choice };
            }
            let (rule, more) = choice;
            let rhs = &self.cfg.rules[rule].rhs;
            let mut open = rhs.iter().filter(|symbol| matches!(symbol, Symbol::Nonterminal(_))).count();
            let mut spare = spare - more;
            let first = stack.len();
            for &symbol in rhs {
                let share = match symbol {
                    Symbol::Terminal(_) => 0,
                    Symbol::Nonterminal(_) if open == 1 => spare,
                    Symbol::Nonterminal(_) => {
                        random.below(usize::try_from(spare).unwrap_or(usize::MAX - 1) + 1) as u64
                    }
                };
                open -= usize::from(matches!(symbol, Symbol::Nonterminal(_)));
                spare -= share;
                stack.push((symbol, share));
            }
            stack[first..].reverse();
        }
        Some(terminals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Grammar;
    use crate::lark::{LarkOptions, parse};
    use anygram_bits::BitSet;

    fn reduced(source: &str) -> (Grammar, Cfg) {
        let grammar = parse(source, &LarkOptions::default()).unwrap();
        let cfg = Cfg::reduce(&grammar, &BitSet::new(grammar.terminals.len())).unwrap();
        (grammar, cfg)
    }

    fn text(grammar: &Grammar, terminals: &[TerminalId]) -> String {
        terminals.iter().map(|&t| grammar.terminals[t.index()].name.trim_matches('"')).collect()
    }

    fn lengths(grammar: &Grammar) -> Vec<Option<u32>> {
        grammar.terminals.iter().map(|terminal| Some(terminal.name.len() as u32 - 2)).collect()
    }

    #[test]
    fn the_cheapest_and_the_cheapest_around() {
        let (grammar, cfg) = reduced(
            "start: list\nlist: \"[\" (item (\",\" item)*)? \"]\" | \"longlong\"\nitem: \"x\" | list",
        );
        let derivations = Derivations::new(&cfg, lengths(&grammar));
        assert_eq!(text(&grammar, &derivations.shortest(10).unwrap()), "[]");
        assert_eq!(derivations.shortest(1), None);
        let mut around: Vec<String> =
            (0..cfg.rules.len()).map(|rule| text(&grammar, &derivations.around(rule, 10).unwrap())).collect();
        around.sort();
        around.dedup();
        assert_eq!(around, ["[[]]", "[]", "[x,x]", "[x]", "longlong"]);
    }

    #[test]
    fn terminals_without_a_weight_are_in_none() {
        let (grammar, cfg) = reduced("start: \"a\" | \"b\" start \"c\"");
        let mut weights = lengths(&grammar);
        weights[0] = None;
        let derivations = Derivations::new(&cfg, weights);
        assert_eq!((derivations.shortest(10), derivations.random(3, 10, &mut Random::new(0))), (None, None));
    }

    #[test]
    fn random_sentences_grow_and_end() {
        let (grammar, cfg) = reduced("start: s\ns: s s | \"(\" s \")\" |");
        let derivations = Derivations::new(&cfg, lengths(&grammar));
        let mut random = Random::new(1);
        let mut longest = 0;
        for extra in 0..200 {
            let Some(sentence) = derivations.random(extra, 200, &mut random) else { continue };
            assert!(sentence.len() as u64 <= extra);
            longest = longest.max(sentence.len());
        }
        assert!(longest > 10, "{longest}");
    }

    #[test]
    fn deep_derivations_need_no_stack() {
        let n = 20_000;
        let rules: String = (0..n).map(|at| format!("a{at}: \"(\" a{} \")\"\n", at + 1)).collect();
        let (grammar, cfg) = reduced(&format!("start: a0\n{rules}a{n}: \"x\"\n"));
        let derivations = Derivations::new(&cfg, lengths(&grammar));
        assert_eq!(derivations.shortest(100_000).unwrap().len(), 2 * n + 1);
        assert_eq!(derivations.shortest(n), None);
    }
}
