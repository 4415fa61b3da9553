//! What can be known of a grammar without a text: cycles, FIRST and FOLLOW sets, and what is probably not
//! meant.
//!
//! The basic sets (productive, nullable, reachable nonterminals, minimum lengths) are methods of [`Cfg`] in
//! [`cfg`](crate::cfg). All here is without recursion. Costs, with `s` the number of symbols in all rules,
//! `n` and `t` the numbers of nonterminals and terminals: [`Cfg::cyclic`] and [`warnings`] `O(s)`; FIRST and
//! FOLLOW sets `O(s · t/64)` time and `n · t` bits, since sets flow along a graph whose strong components are
//! merged first.

use std::collections::HashSet;

use anygram_bits::BitSet;

use crate::ambiguity::rule_text;
use crate::cfg::Cfg;
use crate::diagnostic::Warning;
use crate::ir::{Grammar, NonterminalId, Rule, Symbol};

impl Cfg {
    /// The nonterminals that derive themselves alone, `A ⇒⁺ A`: some sentences have infinitely many
    /// derivations if any of them is useful.
    pub fn cyclic(&self) -> BitSet {
        let edges = self.alone();
        let mut cyclic = BitSet::new(self.n_nonterminals);
        for component in components(&edges) {
            if component.len() > 1 || edges[component[0]].contains(&component[0]) {
                cyclic.extend(component);
            }
        }
        cyclic
    }

    /// For each nonterminal those that it becomes by one rule in which all other symbols vanish.
    pub(crate) fn alone(&self) -> Vec<Vec<usize>> {
        let nullable = self.nullable();
        let mut edges = vec![Vec::new(); self.n_nonterminals];
        for rule in &self.rules {
            // The symbol that stays is a nonterminal; all others vanish.
            let vanishes =
                |symbol: &Symbol| matches!(symbol, Symbol::Nonterminal(n) if nullable.contains(n.index()));
            let mut others = rule.rhs.iter().filter(|symbol| !vanishes(symbol));
            let stays = match (others.next(), others.next()) {
                (None, _) => &rule.rhs[..],
                (Some(symbol), None) => std::slice::from_ref(symbol),
                _ => &[],
            };
            edges[rule.lhs.index()].extend(nonterminals(stays));
        }
        edges
    }

    /// The terminals that a sentence can end with.
    ///
    /// Exact for a grammar whose rules are all productive, as those of [`Cfg::reduce`] are.
    pub fn last_terminals(&self) -> BitSet {
        let mut mirrored = self.clone();
        mirrored.rules.iter_mut().for_each(|rule| rule.rhs.reverse());
        mirrored.first_sets().swap_remove(self.start.index())
    }

    /// For each nonterminal the terminals that a text derived from it can begin with.
    ///
    /// Exact for a grammar whose rules are all productive, as those of [`Cfg::reduce`] are.
    pub fn first_sets(&self) -> Vec<BitSet> {
        let nullable = self.nullable();
        let mut sets = vec![BitSet::new(self.n_terminals); self.n_nonterminals];
        let mut edges = vec![Vec::new(); self.n_nonterminals];
        for rule in &self.rules {
            for symbol in &rule.rhs {
                match *symbol {
                    Symbol::Terminal(t) => {
                        sets[rule.lhs.index()].insert(t.index());
                        break;
                    }
                    Symbol::Nonterminal(n) => {
                        edges[rule.lhs.index()].push(n.index());
                        if !nullable.contains(n.index()) {
                            break;
                        }
                    }
                }
            }
        }
        flow(&mut sets, &edges);
        sets
    }

    /// For each nonterminal the terminals that can come right after it in what is derived from the start
    /// symbol.
    ///
    /// Exact for a grammar without useless rules, as those of [`Cfg::reduce`] are. The end of the text is no
    /// terminal.
    pub fn follow_sets(&self) -> Vec<BitSet> {
        let (nullable, first) = (self.nullable(), self.first_sets());
        let mut sets = vec![BitSet::new(self.n_terminals); self.n_nonterminals];
        let mut edges = vec![Vec::new(); self.n_nonterminals];
        let mut after = BitSet::new(self.n_terminals);
        for rule in &self.rules {
            // From the right: what the rest of the rule can begin with, and whether it can be empty.
            after.clear();
            let mut at_end = true;
            for symbol in rule.rhs.iter().rev() {
                match *symbol {
                    Symbol::Terminal(t) => {
                        after.clear();
                        after.insert(t.index());
                        at_end = false;
                    }
                    Symbol::Nonterminal(n) => {
                        sets[n.index()].union_with(&after);
                        if at_end {
                            edges[n.index()].push(rule.lhs.index());
                        }
                        if !nullable.contains(n.index()) {
                            after.clear();
                            at_end = false;
                        }
                        after.union_with(&first[n.index()]);
                    }
                }
            }
        }
        flow(&mut sets, &edges);
        sets
    }
}

fn nonterminals(symbols: &[Symbol]) -> impl Iterator<Item = usize> + '_ {
    symbols.iter().filter_map(|symbol| match symbol {
        Symbol::Nonterminal(n) => Some(n.index()),
        Symbol::Terminal(_) => None,
    })
}

/// The least sets above the given ones such that each contains those of its successors.
fn flow(sets: &mut [BitSet], edges: &[Vec<usize>]) {
    for component in components(edges) {
        let Some((&head, rest)) = component.split_first() else { continue };
        let mut union = std::mem::replace(&mut sets[head], BitSet::new(0));
        for &member in rest {
            union.union_with(&sets[member]);
        }
        for &to in component.iter().flat_map(|&member| &edges[member]) {
            // Those of this component are in the union already, and the head's is taken out.
            if to != head {
                union.union_with(&sets[to]);
            }
        }
        for &member in rest {
            sets[member].clone_from(&union);
        }
        sets[head] = union;
    }
}

/// The strongly connected components of a graph, successors first.
///
/// Tarjan's algorithm (1972) with an explicit stack: each node and edge is looked at once.
pub fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    const DONE: usize = usize::MAX - 1;
    let mut low = vec![NEW; edges.len()];
    let mut members = Vec::new();
    let mut found = Vec::new();
    let mut next = 0;
    for root in 0..edges.len() {
        // A node, its number, and how many of its edges were followed.
        let mut path: Vec<(usize, usize, usize)> = Vec::new();
        if low[root] == NEW {
            path.push((root, next, 0));
        }
        while let Some((node, number, followed)) = path.last_mut() {
            if *followed == 0 && low[*node] == NEW {
                low[*node] = *number;
                members.push(*node);
                next += 1;
            }
            if let Some(&to) = edges[*node].get(*followed) {
                *followed += 1;
                match low[to] {
                    NEW => path.push((to, next, 0)),
                    DONE => {}
                    seen => low[*node] = low[*node].min(seen),
                }
                continue;
            }
            let (node, number) = (*node, *number);
            path.pop();
            let reached = low[node];
            if reached == number {
                let first =
                    members.iter().rposition(|&member| member == node).expect("open nodes are members");
                let component = members.split_off(first);
                for &member in &component {
                    low[member] = DONE;
                }
                found.push(component);
            } else if let Some(&mut (parent, _, _)) = path.last_mut() {
                low[parent] = low[parent].min(reached);
            }
        }
    }
    found
}

/// What in a grammar is probably not meant: rules that derive nothing or are never used, terminals that match
/// nothing, alternatives that stand twice.
///
/// `empty` holds the terminals whose pattern matches nothing but perhaps the empty string. Nonterminals that
/// a front end made up are left out; if one of them derives nothing, so does the alternative around it, but
/// the rule may have others.
pub fn warnings(grammar: &Grammar, empty: &BitSet) -> Vec<Warning> {
    let n_terminals = grammar.terminals.len();
    let matches_nothing = |&at: &usize| empty.contains(at) && !grammar.is_nullable(at);
    let nothing = BitSet::from_members(n_terminals, (0..n_terminals).filter(matches_nothing));
    let sizes = (n_terminals, grammar.nonterminals.len());
    let mut cfg =
        Cfg::with_automata(sizes, grammar.rules.clone(), grammar.automata.iter().cloned(), grammar.start);
    let productive = cfg.productive(&nothing);
    cfg.rules.retain(|rule: &Rule| {
        rule.rhs.iter().all(|symbol| match symbol {
            Symbol::Terminal(t) => !nothing.contains(t.index()),
            Symbol::Nonterminal(n) => productive.contains(n.index()),
        })
    });
    let reachable = cfg.reachable();
    let unmatched = nothing.iter().map(|at| {
        let terminal = &grammar.terminals[at];
        let message = format!("the terminal `{}` matches no text", terminal.name);
        Warning { name: terminal.name.clone(), message, span: terminal.span.clone() }
    });
    let useless = grammar.nonterminals.iter().enumerate().filter_map(|(at, nonterminal)| {
        let name = &nonterminal.name;
        let message = match (productive.contains(at), reachable.contains(at)) {
            _ if nonterminal.is_synthetic() => return None,
            (false, _) => {
                format!("the rule `{name}` derives no text: each of its alternatives needs one that does not")
            }
            (true, false) => {
                let start = grammar.symbol_name(Symbol::Nonterminal(NonterminalId(grammar.start.0)));
                format!(
                    "the rule `{name}` is never used: nothing that derives a text leads to it from `{start}`"
                )
            }
            (true, true) => return None,
        };
        Some(Warning { name: name.clone(), message, span: nonterminal.span.clone() })
    });
    unmatched.chain(useless).chain(repeated(grammar)).collect()
}

/// Alternatives that stand twice, one warning for each nonterminal. Those that a front end made up in groups
/// count as well.
fn repeated(grammar: &Grammar) -> impl Iterator<Item = Warning> + '_ {
    let mut seen = HashSet::new();
    let mut told = HashSet::new();
    grammar.rules.iter().filter_map(move |rule| {
        if seen.insert(rule) || !told.insert(rule.lhs) {
            return None;
        }
        let nonterminal = &grammar.nonterminals[rule.lhs.index()];
        let of = if nonterminal.is_synthetic() {
            "of a group".to_owned()
        } else {
            format!("of `{}`", nonterminal.name)
        };
        let alternative = match rule_text(grammar, rule).split_once(": ") {
            Some((_, alternative)) => format!("the alternative `{alternative}`"),
            None => "the empty alternative".to_owned(),
        };
        let message = format!("{alternative} {of} stands twice");
        Some(Warning { name: nonterminal.name.clone(), message, span: nonterminal.span.clone() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::TerminalId;
    use crate::lark::{LarkOptions, parse};

    /// Rules in a notation of their own: upper case is a nonterminal, lower case a terminal, one rule a word,
    /// `S` the start. `S=aSb` reads `S: a S b`.
    fn cfg(rules: &str) -> Cfg {
        let nonterminal = |c: u8| NonterminalId::new(usize::from(c - b'A'));
        let symbol = |c: u8| match c {
            b'A'..=b'Z' => Symbol::Nonterminal(nonterminal(c)),
            _ => Symbol::Terminal(TerminalId::new(usize::from(c - b'a'))),
        };
        let rule = |word: &str| Rule {
            lhs: nonterminal(word.as_bytes()[0]),
            rhs: word.bytes().skip(2).map(symbol).collect(),
        };
        let rules = rules.split_whitespace().map(rule).collect();
        Cfg { n_terminals: 26, n_nonterminals: 26, rules, start: nonterminal(b'S'), automata: Vec::new() }
    }

    fn upper(set: &BitSet) -> String {
        set.iter().map(|at| (b'A' + at as u8) as char).collect()
    }

    fn lower(sets: &[BitSet], nonterminal: char) -> String {
        sets[nonterminal as usize - 'A' as usize].iter().map(|at| (b'a' + at as u8) as char).collect()
    }

    #[test]
    fn productive_reachable_nullable() {
        let cfg = cfg("S=aAb S= A=B B=A C=c D=SS E=Ea");
        assert_eq!(upper(&cfg.productive(&BitSet::new(26))), "CDS");
        assert_eq!(upper(&cfg.productive(&BitSet::from_members(26, [2]))), "DS");
        assert_eq!(upper(&cfg.reachable()), "ABS");
        assert_eq!(upper(&cfg.nullable()), "DS");
    }

    #[test]
    fn cycles() {
        assert_eq!(upper(&cfg("S=SS S=a").cyclic()), "");
        assert_eq!(upper(&cfg("S=SS S=").cyclic()), "S");
        assert_eq!(upper(&cfg("S=A A=B B=A B=b S=s").cyclic()), "AB");
        assert_eq!(upper(&cfg("S=NAN A=NS N= N=n A=a").cyclic()), "AS");
        assert_eq!(upper(&cfg("S=aS S=Sa S=A A=a").cyclic()), "");
        assert_eq!(upper(&cfg("S=S").cyclic()), "S");
    }

    #[test]
    fn first_and_follow() {
        let cfg = cfg("S=TE E=pTE E= T=FG G=mFG G= F=lSr F=i");
        let (first, follow) = (cfg.first_sets(), cfg.follow_sets());
        for (nonterminal, first_set, follow_set) in
            [('S', "il", "r"), ('E', "p", "r"), ('T', "il", "pr"), ('G', "m", "pr"), ('F', "il", "mpr")]
        {
            assert_eq!(lower(&first, nonterminal), first_set, "FIRST({nonterminal})");
            assert_eq!(lower(&follow, nonterminal), follow_set, "FOLLOW({nonterminal})");
        }
    }

    #[test]
    fn sentences_end_with_last_terminals() {
        let last = |words: &str| {
            cfg(words).last_terminals().iter().map(|at| (b'a' + at as u8) as char).collect::<String>()
        };
        assert_eq!(last("S=TE E=pTE E= T=FG G=mFG G= F=lSr F=i"), "ir");
        assert_eq!(last("S=aSbC S=cC C=dC C="), "bcd");
        assert_eq!(last("S="), "");
    }

    #[test]
    fn sets_flow_around_cycles() {
        let cfg = cfg("S=A A=B B=C C=A A=a B=b C=Cc C=");
        let (first, follow) = (cfg.first_sets(), cfg.follow_sets());
        for nonterminal in ['S', 'A', 'B', 'C'] {
            assert_eq!(lower(&first, nonterminal), "abc");
        }
        assert_eq!(
            (lower(&follow, 'S'), lower(&follow, 'A'), lower(&follow, 'C')),
            ("".into(), "c".into(), "c".into())
        );
    }

    #[test]
    fn minimum_lengths() {
        let cfg = cfg("S=AAb A=aA A=CC C=ccc C=D D= E=F F=Ef");
        let minimum = cfg.minimum_lengths();
        let of = |nonterminal: char| minimum[nonterminal as usize - 'A' as usize];
        assert_eq!("SACDEF".chars().map(of).collect::<Vec<_>>(), [1, 0, 0, 0, u32::MAX, u32::MAX]);
    }

    #[test]
    fn first_sets_agree_with_the_definition_by_iteration() {
        let mut random = anygram_bits::Random::new(7);
        for _ in 0..300 {
            let mut words = Vec::new();
            for _ in 0..3 + random.below(12) {
                let mut word = format!("{}=", *random.choose(b"STUVW") as char);
                for _ in 0..random.below(4) {
                    word.push(*random.choose(b"STUVWabc") as char);
                }
                words.push(word);
            }
            let cfg = cfg(&words.join(" "));
            let nullable = cfg.nullable();
            let mut first = vec![BitSet::new(26); 26];
            let mut follow = first.clone();
            let mut changed = true;
            while changed {
                changed = false;
                for rule in &cfg.rules {
                    for (at, symbol) in rule.rhs.iter().enumerate() {
                        let vanish = |part: &[Symbol]| {
                            part.iter()
                                .all(|s| matches!(s, Symbol::Nonterminal(n) if nullable.contains(n.index())))
                        };
                        let starts = match symbol {
                            Symbol::Terminal(t) => BitSet::from_members(26, [t.index()]),
                            Symbol::Nonterminal(n) => first[n.index()].clone(),
                        };
                        if vanish(&rule.rhs[..at]) {
                            changed |= first[rule.lhs.index()].union_with(&starts);
                        }
                        for (before, left) in rule.rhs[..at].iter().enumerate() {
                            if let Symbol::Nonterminal(n) = left
                                && vanish(&rule.rhs[before + 1..at])
                            {
                                changed |= follow[n.index()].union_with(&starts);
                            }
                        }
                        if let Symbol::Nonterminal(n) = symbol
                            && vanish(&rule.rhs[at + 1..])
                        {
                            let outer = follow[rule.lhs.index()].clone();
                            changed |= follow[n.index()].union_with(&outer);
                        }
                    }
                }
            }
            assert_eq!(cfg.first_sets(), first, "{words:?}");
            assert_eq!(cfg.follow_sets(), follow, "{words:?}");
        }
    }

    #[test]
    fn long_chains_need_no_stack() {
        let n = 200_000;
        let next = |at: usize| Symbol::Nonterminal(NonterminalId::new((at + 1) % n));
        let rules = (0..n).map(|at| Rule { lhs: NonterminalId::new(at), rhs: vec![next(at)] }).collect();
        let cfg = Cfg {
            n_terminals: 1,
            n_nonterminals: n,
            rules,
            start: NonterminalId::new(0),
            automata: Vec::new(),
        };
        assert_eq!(cfg.cyclic().count(), n);
        assert_eq!((cfg.first_sets().len(), cfg.follow_sets().len()), (n, n));
    }

    #[test]
    fn warnings_name_useless_rules() {
        let source =
            "start: a | b \"x\" | T*\na: \"y\" (a | b)\nb: b \"z\"\nc: \"c\" d\nd: \"d\"\nT: /[^\\s\\S]/\n";
        let grammar = parse(source, &LarkOptions::default()).unwrap();
        let is_never = |at: &usize| grammar.terminals[*at].name == "T";
        let n_terminals = grammar.terminals.len();
        let empty = BitSet::from_members(n_terminals, (0..n_terminals).filter(is_never));
        let found: Vec<(String, Option<crate::ir::Span>)> =
            warnings(&grammar, &empty).into_iter().map(|warning| (warning.name, warning.span)).collect();
        let place = |name: &str, at: usize| (name.to_owned(), Some(at..at + 1));
        assert_eq!(found, [place("T", 62), place("a", 22), place("b", 37), place("c", 46), place("d", 55)]);
        assert!(
            warnings(&parse("start: \"a\"", &LarkOptions::default()).unwrap(), &BitSet::new(1)).is_empty()
        );
    }
}
