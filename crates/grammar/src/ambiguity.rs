//! Ambiguity that shows in the form of rules: why some sentences have several derivations.
//!
//! Whether a grammar is ambiguous is undecidable. What is found here is certain; what is not found proves
//! nothing. All of it is about terminals: whether a text can be read as several sequences of them is the
//! lexer's affair.
//!
//! | kind | form | why |
//! |---|---|---|
//! | [`Cycle`](HintKind::Cycle) | `A ⇒⁺ A` | go around as often as you like |
//! | [`Nesting`](HintKind::Nesting) | `A ⇒⁺ A α` and `A ⇒⁺ β A` | `β A α`: either may be the outer one |
//! | [`Dangling`](HintKind::Dangling) | `A: γ Y δ?` where `Y ⇒* A` | in `γ γ … δ` the `δ` belongs to either |
//! | [`Twice`](HintKind::Twice) | two alternatives that become the same symbol | one for each |
//! | [`Empty`](HintKind::Empty) | two alternatives that can be empty | one for each |
//! | [`Adjacent`](HintKind::Adjacent) | `x* x*` | each may take any of them |
//!
//! `⇒*` goes along rules in which all other symbols can vanish. Cost: a walk along such rules from each
//! recursive symbol, bounded as a whole.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use anygram_bits::BitSet;

use crate::analysis::components;
use crate::cfg::Cfg;
use crate::ir::{Grammar, Nonterminal, NonterminalId, Rule, Span, Symbol};

/// Steps of all walks together before the search gives up.
const STEPS: usize = 5_000_000;
/// Symbols of a rule that are shown.
const SHOWN: usize = 8;

/// What makes some sentences ambiguous.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum HintKind {
    /// A nonterminal derives itself alone.
    Cycle,
    /// A nonterminal nests on the left and on the right.
    Nesting,
    /// An optional end may belong to an inner or an outer phrase.
    Dangling,
    /// Two alternatives become the same symbol.
    Twice,
    /// Two alternatives can be empty.
    Empty,
    /// A repetition follows itself.
    Adjacent,
}

/// A form of rules that makes some sentences ambiguous.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The form.
    pub kind: HintKind,
    /// What has it, in lower case.
    pub message: String,
    /// How it could be avoided.
    pub help: String,
    /// Where the nonterminal is declared, or the group stands.
    pub span: Option<Span>,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    /// In the order of kinds, and of places within one.
    pub hints: Vec<Hint>,
    /// Whether a bound was hit, so that there may be more.
    pub is_cut: bool,
}

/// The forms in a grammar, of which `cfg` is the reduced one. Right-hand sides that automata give are not
/// looked at.
pub fn hints(grammar: &Grammar, cfg: &Cfg) -> Hints {
    let cfg = &*match cfg.automata.is_empty() {
        true => Cow::Borrowed(cfg),
        false => Cow::Owned(cfg.without_automata()),
    };
    let nullable = cfg.nullable();
    let edges = cfg.alone();
    let reach = Reach { edges: &edges, known: HashMap::new(), left: STEPS };
    let mut finder =
        Finder { grammar, cfg, nullable, edges: &edges, by_lhs: cfg.rules_by_lhs(), reach, found: vec![] };
    finder.cycles();
    finder.nesting();
    finder.dangling();
    finder.twice();
    finder.empty();
    finder.adjacent();
    let is_cut = finder.reach.left == 0;
    let mut hints = finder.found;
    hints.sort_by_key(|hint| (hint.kind, hint.span.as_ref().map(|span| span.start)));
    // Two groups of one rule may look the same.
    hints.dedup();
    Hints { hints, is_cut }
}

/// A rule in the grammar's own words: `expr: expr "+" expr`, groups as `(…)`.
pub fn rule_text(grammar: &Grammar, rule: &Rule) -> String {
    let mut text = format!("{}:", symbol_text(grammar, Symbol::Nonterminal(rule.lhs)));
    for &symbol in rule.rhs.iter().take(SHOWN) {
        text += &format!(" {}", symbol_text(grammar, symbol));
    }
    if rule.rhs.len() > SHOWN {
        text += " …";
    }
    text
}

/// A symbol in the grammar's own words, a group as `(…)` with what repeats it.
pub fn symbol_text(grammar: &Grammar, symbol: Symbol) -> String {
    let Symbol::Nonterminal(n) = symbol else { return grammar.symbol_name(symbol).to_owned() };
    let Some(nonterminal) = grammar.nonterminals.get(n.index()) else { return "(…)?".to_owned() };
    if !nonterminal.is_synthetic() {
        return nonterminal.name.clone();
    }
    let suffix = match () {
        () if nonterminal.name.contains("_star_") => "*",
        () if nonterminal.name.contains("_plus_") => "+",
        () if nonterminal.name.contains("_option_") => "?",
        () => "",
    };
    format!("(…){suffix}")
}

/// Which nonterminals each derives alone, as far as anybody asked.
struct Reach<'a> {
    edges: &'a [Vec<usize>],
    known: HashMap<usize, BitSet>,
    left: usize,
}

impl Reach<'_> {
    /// The nonterminals that `from` derives alone, itself included; of nothing when the steps are used up.
    fn of(&mut self, from: usize) -> &BitSet {
        let (edges, left) = (self.edges, &mut self.left);
        self.known.entry(from).or_insert_with(|| {
            let mut seen = BitSet::new(edges.len());
            // The set itself costs as much as its words.
            *left = left.saturating_sub(edges.len() / 64 + 1);
            if *left == 0 {
                return seen;
            }
            seen.insert(from);
            let mut agenda = vec![from];
            while let Some(at) = agenda.pop() {
                *left = left.saturating_sub(edges[at].len());
                agenda.extend(edges[at].iter().copied().filter(|&to| seen.insert(to)));
            }
            seen
        })
    }
}

struct Finder<'a> {
    grammar: &'a Grammar,
    cfg: &'a Cfg,
    nullable: BitSet,
    edges: &'a [Vec<usize>],
    by_lhs: Vec<Vec<usize>>,
    reach: Reach<'a>,
    found: Vec<Hint>,
}

impl Finder<'_> {
    fn declared(&self, at: usize) -> Option<&Nonterminal> {
        self.grammar.nonterminals.get(at)
    }

    fn is_named(&self, at: usize) -> bool {
        self.declared(at).is_some_and(|nonterminal| !nonterminal.is_synthetic())
    }

    fn name(&self, at: usize) -> String {
        symbol_text(self.grammar, Symbol::Nonterminal(NonterminalId::new(at)))
    }

    /// A name with its article: "`a`" or "the group here".
    fn subject(&self, at: usize) -> String {
        if self.is_named(at) {
            format!("`{}`", self.name(at))
        } else {
            format!("the group `{}`", self.name(at))
        }
    }

    fn rule(&self, rule: usize) -> String {
        rule_text(self.grammar, &self.cfg.rules[rule])
    }

    fn add(&mut self, kind: HintKind, at: usize, message: String, help: String) {
        let span = self.declared(at).and_then(|nonterminal| nonterminal.span.clone());
        self.found.push(Hint { kind, message, help, span });
    }

    fn is_empty_possible(&self, symbol: Symbol) -> bool {
        matches!(symbol, Symbol::Nonterminal(n) if self.nullable.contains(n.index()))
    }

    fn cycles(&mut self) {
        for component in components(self.edges) {
            let Some(&head) = component.iter().filter(|&&at| self.is_named(at)).min().or(component.first())
            else {
                continue;
            };
            let Some(cycle) = shortest_cycle(self.edges, head) else { continue };
            let path: Vec<String> = cycle.iter().map(|&at| self.name(at)).collect();
            let (message, help) = if component.iter().any(|&at| self.is_named(at)) {
                let message = format!("{} derives itself alone: {}", self.subject(head), path.join(" → "));
                let step = if cycle.len() == 2 { self.vanishing_rule(head) } else { None };
                let help = match step {
                    Some(rule) => format!("all else in `{}` can be empty; let it not be", self.rule(rule)),
                    None => "take one step out of the circle".to_owned(),
                };
                (message, help)
            } else {
                let message = "what is repeated here can be empty, any number of times".to_owned();
                (
                    message,
                    "let what is repeated never be empty: the repetition can be empty all the same"
                        .to_owned(),
                )
            };
            self.add(HintKind::Cycle, head, message, help);
        }
    }

    /// A rule of more than one symbol by which a nonterminal derives itself alone.
    fn vanishing_rule(&self, at: usize) -> Option<usize> {
        let itself = Symbol::Nonterminal(NonterminalId::new(at));
        self.by_lhs[at].iter().copied().find(|&rule| {
            let rhs = &self.cfg.rules[rule].rhs;
            let others = rhs.iter().filter(|&&symbol| !self.is_empty_possible(symbol)).count();
            rhs.len() > 1
                && rhs.contains(&itself)
                && (others == 0 || others == 1 && !self.is_empty_possible(itself))
        })
    }

    /// Rules of at least two symbols whose first (or last) one leads back to their left side, with that
    /// symbol.
    fn recursive(&mut self, at_end: bool) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (at, rule) in self.cfg.rules.iter().enumerate().filter(|(_, rule)| rule.rhs.len() > 1) {
            let symbol = if at_end { rule.rhs.last() } else { rule.rhs.first() };
            if let Some(&Symbol::Nonterminal(n)) = symbol
                && self.reach.of(n.index()).contains(rule.lhs.index())
            {
                found.push((at, n.index()));
            }
        }
        found
    }

    fn nesting(&mut self) {
        let (left, right) = (self.recursive(false), self.recursive(true));
        let mut candidates = BTreeSet::new();
        for &(rule, symbol) in left.iter().chain(&right) {
            candidates.extend([symbol, self.cfg.rules[rule].lhs.index()]);
        }
        let mut groups: BTreeMap<(Vec<usize>, Vec<usize>), usize> = BTreeMap::new();
        for at in candidates {
            self.reach.left = self.reach.left.saturating_sub(left.len() + right.len());
            if self.reach.left == 0 {
                return;
            }
            let through = |this: &mut Self, rules: &[(usize, usize)]| -> Vec<usize> {
                let passes = |&&(rule, symbol): &&(usize, usize)| {
                    this.reach.of(symbol).contains(at)
                        && this.reach.of(at).contains(this.cfg.rules[rule].lhs.index())
                };
                rules.iter().filter(passes).map(|&(rule, _)| rule).collect()
            };
            let (left, right) = (through(self, &left), through(self, &right));
            if left.is_empty() || right.is_empty() {
                continue;
            }
            let head = groups.entry((left, right)).or_insert(at);
            if !self.is_named(*head) && self.is_named(at) {
                *head = at;
            }
        }
        // A group of rules that is part of another's is no news.
        let subset = |part: &[usize], all: &[usize]| part.iter().all(|rule| all.binary_search(rule).is_ok());
        let groups: Vec<_> = groups.into_iter().collect();
        for (index, ((left, right), head)) in groups.iter().enumerate() {
            let is_part = groups
                .iter()
                .enumerate()
                .any(|(other, ((l, r), _))| other != index && subset(left, l) && subset(right, r));
            if !is_part {
                self.nested(*head, left, right);
            }
        }
    }

    fn nested(&mut self, head: usize, left: &[usize], right: &[usize]) {
        let both: Vec<usize> =
            left.iter().copied().filter(|rule| right.binary_search(rule).is_ok()).collect();
        let subject = self.subject(head);
        let (message, help) = match *both {
            [first, ref rest @ ..] => {
                let more = match rest.len() {
                    0 => String::new(),
                    1 => " (and one other alternative)".to_owned(),
                    n => format!(" (and {n} other alternatives)"),
                };
                let rule = self.rule(first);
                (
                    format!("{subject} nests on both sides: `{rule}`{more}"),
                    "a rule for each level of precedence, with recursion on one side, as in `sum: sum \"+\" \
                     term | term`"
                        .to_owned(),
                )
            }
            [] => {
                let (l, r) = (self.rule(left[0]), self.rule(right[0]));
                (
                    format!(
                        "{subject} nests on the left, `{l}`, and on the right, `{r}`: either may be the \
                         outer one"
                    ),
                    "let one bind tighter: a rule of its own for it, that the other is built of".to_owned(),
                )
            }
        };
        self.add(HintKind::Nesting, head, message, help);
    }

    fn dangling(&mut self) {
        let cfg = self.cfg;
        let ends: HashMap<(usize, &[Symbol]), usize> =
            cfg.rules.iter().enumerate().map(|(at, rule)| ((rule.lhs.index(), &rule.rhs[..]), at)).collect();
        let mut seen = BTreeSet::new();
        for (at, rule) in cfg.rules.iter().enumerate() {
            let lhs = rule.lhs.index();
            // What follows the inner phrase can vanish, or there is a rule without it.
            for end in (2..rule.rhs.len()).rev().take(SHOWN) {
                let Symbol::Nonterminal(inner) = rule.rhs[end - 1] else { continue };
                let vanishes = rule.rhs[end..].iter().all(|&symbol| self.is_empty_possible(symbol));
                let without = ends.get(&(lhs, &rule.rhs[..end])).copied();
                if !vanishes && without.is_none() || !self.reach.of(inner.index()).contains(lhs) {
                    continue;
                }
                // What nests on both sides was said to be ambiguous.
                let mut leads_back = |symbol: Option<&Symbol>| {
                    let Some(Symbol::Nonterminal(n)) = symbol else { return false };
                    self.reach.of(n.index()).contains(lhs)
                };
                if leads_back(rule.rhs.first()) && leads_back(rule.rhs.last()) {
                    continue;
                }
                if seen.insert((lhs, inner)) {
                    let tail = match rule.rhs[end..]
                        .iter()
                        .map(|&symbol| symbol_text(self.grammar, symbol))
                        .next()
                    {
                        Some(tail) => tail,
                        None => continue,
                    };
                    let (subject, whole) = (self.subject(lhs), self.rule(at));
                    let message = format!(
                        "in `{whole}` the end `{tail}` may belong to {subject} or to one inside of it"
                    );
                    let help =
                        "a rule for phrases that must have the end, used where one could be mistaken for \
                         another's"
                            .to_owned();
                    self.add(HintKind::Dangling, lhs, message, help);
                }
            }
        }
    }

    fn twice(&mut self) {
        let (cfg, n) = (self.cfg, self.cfg.n_nonterminals);
        let cyclic = cfg.cyclic();
        let number = |symbol: Symbol| match symbol {
            Symbol::Nonterminal(m) => m.index(),
            Symbol::Terminal(t) => n + t.index(),
        };
        for lhs in (0..n).filter(|&lhs| !cyclic.contains(lhs)) {
            let unit = |rule: &usize| cfg.rules[*rule].rhs.len() == 1;
            let units: Vec<usize> = self.by_lhs[lhs].iter().copied().filter(unit).collect();
            if units.len() < 2 {
                continue;
            }
            // Of each symbol the alternative that leads to it and the symbol before it.
            let mut from: HashMap<usize, (usize, usize)> = HashMap::new();
            let mut clash = None;
            'rules: for &rule in &units {
                let mut queue = VecDeque::from([(cfg.rules[rule].rhs[0], lhs)]);
                while let Some((symbol, before)) = queue.pop_front() {
                    self.reach.left = self.reach.left.saturating_sub(1);
                    match from.get(&number(symbol)) {
                        Some(&(other, _)) if other != rule => {
                            clash = Some((symbol, before));
                            break 'rules;
                        }
                        Some(_) => continue,
                        None => drop(from.insert(number(symbol), (rule, before))),
                    }
                    if let Symbol::Nonterminal(m) = symbol {
                        let next = self.by_lhs[m.index()].iter().filter(|&rule| unit(rule));
                        queue.extend(next.map(|&rule| (cfg.rules[rule].rhs[0], m.index())));
                    }
                }
                if self.reach.left == 0 {
                    return;
                }
            }
            let Some((symbol, before)) = clash else { continue };
            let way = |last: usize| {
                let mut path = vec![symbol_text(self.grammar, symbol)];
                let mut at = last;
                while at != lhs {
                    path.push(self.name(at));
                    let Some(&(_, before)) = from.get(&at) else { break };
                    at = before;
                }
                path.push(self.name(lhs));
                path.reverse();
                path.join(" → ")
            };
            let first = from.get(&number(symbol)).map_or(lhs, |&(_, before)| before);
            let (one, other) = (way(first), way(before));
            let (subject, text) = (self.subject(lhs), symbol_text(self.grammar, symbol));
            let message = format!("{subject} becomes `{text}` in two ways: {one} and {other}");
            self.add(HintKind::Twice, lhs, message, "keep one of the two".to_owned());
        }
    }

    fn empty(&mut self) {
        let cfg = self.cfg;
        for lhs in 0..self.cfg.n_nonterminals {
            let vanishes = |&&rule: &&usize| {
                let rhs = &self.cfg.rules[rule].rhs;
                rhs.iter().all(|&symbol| self.is_empty_possible(symbol))
                    && !rhs.contains(&Symbol::Nonterminal(NonterminalId::new(lhs)))
            };
            let empty: Vec<usize> = self.by_lhs[lhs].iter().filter(vanishes).copied().collect();
            if let [first, second, ..] = *empty {
                let show = |this: &Self, rule: usize| match &*this.cfg.rules[rule].rhs {
                    [] => "the empty one".to_owned(),
                    _ => format!("`{}`", this.rule(rule)),
                };
                let is_optional = !self.is_named(lhs)
                    && self.by_lhs[lhs].iter().any(|&rule| cfg.rules[rule].rhs.is_empty());
                if is_optional {
                    let full = if cfg.rules[first].rhs.is_empty() { second } else { first };
                    let text = self.rule(full);
                    let text = text.split_once(": ").map_or(&*text, |(_, text)| text);
                    let message = format!("what is optional here can be empty already: `{text}`");
                    self.add(HintKind::Empty, lhs, message, "leave out the `?` or the brackets".to_owned());
                    continue;
                }
                let (one, other) = (show(self, first), show(self, second));
                let message =
                    format!("two alternatives of {} can be empty: {one} and {other}", self.subject(lhs));
                self.add(HintKind::Empty, lhs, message, "let only one of them be empty".to_owned());
            }
        }
    }

    fn adjacent(&mut self) {
        for rule in &self.cfg.rules {
            let again = rule.rhs.windows(2).find_map(|pair| match *pair {
                [Symbol::Nonterminal(a), Symbol::Nonterminal(b)] if a == b && self.is_repetition(a) => {
                    Some(a)
                }
                _ => None,
            });
            let Some(repetition) = again else { continue };
            let text = rule_text(self.grammar, rule);
            let message = format!("in `{text}` a repetition follows the same one: each may take any part");
            let help = "write it once".to_owned();
            let at = if self.is_named(rule.lhs.index()) { rule.lhs } else { repetition };
            self.add(HintKind::Adjacent, at.index(), message, help);
        }
    }

    /// Whether the rules are `R: R x` for each `x` and `R: x` for each, or `R:`.
    fn is_repetition(&self, n: NonterminalId) -> bool {
        let rules = self.by_lhs[n.index()].iter().map(|&rule| &self.cfg.rules[rule].rhs[..]);
        let (again, base): (Vec<_>, Vec<_>) =
            rules.partition(|rhs| rhs.first() == Some(&Symbol::Nonterminal(n)) && rhs.len() > 1);
        let items: BTreeSet<&[Symbol]> = again.iter().map(|rhs| &rhs[1..]).collect();
        !items.is_empty() && base.iter().all(|rhs| rhs.is_empty() || items.contains(rhs))
    }
}

/// The nodes of a shortest cycle through a node, that node first and last.
fn shortest_cycle(edges: &[Vec<usize>], head: usize) -> Option<Vec<usize>> {
    let mut before: HashMap<usize, usize> = HashMap::new();
    let mut queue = VecDeque::from([head]);
    while let Some(at) = queue.pop_front() {
        for &to in &edges[at] {
            if to == head {
                let mut path = vec![head, at];
                let mut node = at;
                while node != head {
                    node = before[&node];
                    path.push(node);
                }
                path.reverse();
                return Some(path);
            }
            if let std::collections::hash_map::Entry::Vacant(entry) = before.entry(to) {
                entry.insert(at);
                queue.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lark::{LarkOptions, parse};

    fn found(source: &str) -> Vec<(HintKind, String)> {
        let grammar = parse(source, &LarkOptions::default()).unwrap();
        let cfg = Cfg::reduce(&grammar, &BitSet::new(grammar.terminals.len())).unwrap();
        let found = hints(&grammar, &cfg);
        assert!(!found.is_cut);
        found.hints.into_iter().map(|hint| (hint.kind, hint.message)).collect()
    }

    fn one(source: &str) -> (HintKind, String) {
        let mut found = found(source);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn clean_grammars_have_no_hints() {
        for source in [
            "start: (\"a\" | \"b\")* start_again?\nstart_again: \"[\" start \"]\"",
            "start: start \"+\" term | term\nterm: term \"*\" x | x\nx: \"-\" x | \"(\" start \")\" | \"1\"",
            "start: \"a\" start \"a\" | \"b\"",
            "start: item (\",\" item)*\nitem: \"x\" | \"(\" start? \")\"",
        ] {
            assert_eq!(found(source), [], "{source}");
        }
    }

    #[test]
    fn cycles_are_shown_as_they_go() {
        let (kind, message) = one("start: a\na: b | \"x\"\nb: c\nc: a | \"y\"");
        assert_eq!((kind, &*message), (HintKind::Cycle, "`a` derives itself alone: a → b → c → a"));
        let both = found("start: s\ns: s s | \"(\" s \")\" |");
        assert!(both.contains(&(HintKind::Cycle, "`s` derives itself alone: s → s".to_owned())), "{both:?}");
        let (kind, message) = one("start: a*\na: \"x\"?");
        assert_eq!(
            (kind, &*message),
            (HintKind::Cycle, "what is repeated here can be empty, any number of times")
        );
    }

    #[test]
    fn nesting_on_both_sides() {
        let (kind, message) = one("start: e\ne: e \"+\" e | e \"*\" e | \"1\"");
        assert_eq!(kind, HintKind::Nesting);
        assert_eq!(message, "`e` nests on both sides: `e: e \"+\" e` (and one other alternative)");
        let (kind, message) = one("start: e\ne: e \"+\" \"1\" | \"-\" e | \"1\"");
        assert_eq!(kind, HintKind::Nesting);
        assert!(message.contains("`e: e \"+\" \"1\"`, and on the right, `e: \"-\" e`"), "{message}");
        // Through other rules.
        assert_eq!(one("start: e\ne: sum | \"1\"\nsum: e \"+\" e").0, HintKind::Nesting);
        assert_eq!(
            one("start: e\ne: neg | sum | \"1\"\nneg: \"-\" e\nsum: e \"+\" \"1\"").0,
            HintKind::Nesting
        );
    }

    #[test]
    fn an_end_that_may_belong_to_two() {
        for source in [
            "start: s\ns: \"if\" s (\"else\" s)? | \"x\"",
            "start: s\ns: i | \"x\"\ni: \"if\" s | \"if\" s \"else\" s",
        ] {
            let found = found(source);
            assert!(found.iter().any(|(kind, _)| *kind == HintKind::Dangling), "{source}: {found:?}");
        }
        assert_eq!(found("start: s\ns: \"if\" s (\"else\" s)? \"end\" | \"x\""), []);
    }

    #[test]
    fn two_ways_to_the_same() {
        let (kind, message) = one("start: a | b\na: N | \"x\"\nb: c\nc: N | \"y\"\nN: /[0-9]/");
        assert_eq!(
            (kind, &*message),
            (HintKind::Twice, "`start` becomes `N` in two ways: start → a → N and start → b → c → N")
        );
        let (kind, message) = one("start: a | b | \"z\"\na: \"x\"*\nb: \"y\"*");
        assert_eq!(
            (kind, &*message),
            (HintKind::Empty, "two alternatives of `start` can be empty: `start: a` and `start: b`")
        );
        assert_eq!(one("start: \"x\"* \"x\"*").0, HintKind::Adjacent);
        let (kind, message) = one("start: \"a\" [\"x\"* y]\ny: \"y\"?");
        assert_eq!(
            (kind, &*message),
            (HintKind::Empty, "what is optional here can be empty already: `(…)* y`")
        );
    }

    #[test]
    fn deep_chains_need_no_stack_and_bounds_are_told() {
        let n = 3_000;
        let rules: String =
            (0..n).map(|at| format!("a{at}: a{} | \"x\" a{at} \"y\"\n", (at + 1) % n)).collect();
        let grammar = parse(&format!("start: a0\n{rules}z: \"z\"\n"), &LarkOptions::default());
        let grammar = grammar.unwrap();
        // Nothing is productive: the hints of an unreduced grammar must be found all the same.
        let cfg = Cfg {
            n_terminals: grammar.terminals.len(),
            n_nonterminals: grammar.nonterminals.len(),
            rules: grammar.rules.clone(),
            start: grammar.start,
            automata: Vec::new(),
        };
        let found = hints(&grammar, &cfg);
        assert!(found.hints.iter().any(|hint| hint.kind == HintKind::Cycle));
    }
}
