//! A grammar without some marks: its sentences are the sentences of another grammar in which no mark stands.
//!
//! No mark stands in a text iff the automaton of free text ([`FreeText`]) reads it to its end. So this is the
//! intersection of a grammar with a regular language (Bar-Hillel, Perles and Shamir, 1961): a nonterminal for
//! each nonterminal and each two *nodes* of the automaton, before and behind what it derives, and the same of
//! terminals. Only those are made that a text from the beginning comes to and that derive something, so masks
//! look ahead as in every grammar. They are few: behind most terminals the automaton is in one node, whatever
//! was before.
//!
//! - What a terminal matches between two nodes is the terminal itself, if it leads nowhere else; else an
//!   expression (`between`), or an automaton (`pieces`) where the terminal is given by one.
//! - Ignored terminals become rules: what is ignored may end a mark, too.
//! - In `longest` what competes must not change, so the terminals of the grammar are reserved beside their
//!   parts. In `contextual` it depends on what can follow, and would change; such grammars are refused.
//!
//! Cost: the fixpoint of what each nonterminal leads to, which is rules × nodes² a round at most, and the
//! automata of terminals × nodes². There is a node for each byte of the marks at most. All of it is counted
//! work, and what is kept counts as symbols of the grammar: the beginnings of marks, and the expressions.
//!
//! A nonterminal is as many as pairs of nodes need, so their names get numbers (`start 2`), and where a text
//! has several derivations, its parse tree can be another one than that of the grammar.

mod pieces;

use std::rc::Rc;
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::automata::Pieces;
use anygram_grammar::free::FreeText;
use anygram_grammar::ir::{
    Grammar, Hints, LexerMode, Nonterminal, NonterminalId, Pattern, Rule, SpecialToken, Symbol, Terminal,
    TerminalId, TerminalKind, Ties,
};
use regex_syntax::hir::{Dot, Hir, Repetition};
use rustc_hash::{FxHashMap, FxHashSet};

use self::pieces::Without;
use crate::dfa::{DEAD, Dfa, START, common_classes};
use crate::lexicon::Patterns;
use crate::transducer::LexingError;
use crate::{LexerError, LexerLimits};

/// A node of the automaton of free text.
type Node = u32;

/// States of rules given by automata that are written out, since what stands between their symbols depends on
/// the node.
const WRITTEN_OUT: usize = 50_000;

/// The grammar of the sentences in which no mark stands. No mark may be empty.
///
/// `max_size` bounds its symbols. The lexer mode is the one for which the grammar is made.
///
/// # Errors
/// In `contextual`, and in `longest` where of several labels one is kept; if no sentence is left; if the
/// grammar names tokens whose bytes it does not know; if a terminal that a mark cuts matches bytes that are
/// no UTF-8; if a limit is reached.
pub fn without(
    grammar: &Grammar,
    marks: &[&str],
    (mode, ties): (LexerMode, Ties),
    (limits, max_size): (&LexerLimits, usize),
    work: &mut Work,
) -> Result<Grammar, LexingError> {
    if mode == LexerMode::Contextual {
        return Err(LexingError::WithoutContext);
    }
    if (mode, ties) == (LexerMode::Longest, Ties::First) {
        return Err(LexingError::WithoutTies);
    }
    let written_out;
    let grammar = if grammar.automata.is_empty() {
        grammar
    } else {
        let too_many = LexingError::WithoutTooMany { limit: WRITTEN_OUT };
        written_out = grammar.expanded(WRITTEN_OUT).ok_or(too_many)?;
        &written_out
    };
    let patterns = Patterns::new(grammar, limits, work)?;
    let size = beginnings(marks);
    if size > max_size {
        return Err(LexingError::WithoutTooLarge { limit: max_size });
    }
    work.spend(size).map_err(LexerError::from)?;
    let mut product = Product {
        marks: Nodes::new(marks),
        limits,
        work,
        patterns: &patterns,
        rules: by_lhs(grammar),
        ignored: ignored(grammar).collect(),
        parts: FxHashMap::default(),
        of_pieces: FxHashMap::default(),
        skips: FxHashMap::default(),
        reached: FxHashMap::default(),
        grammar,
    };
    let before = product.skip(FreeText::ROOT)?;
    for &node in &*before {
        product.explore(grammar.start, node)?;
    }
    let mut written = Written::new(&mut product, (size, max_size));
    written.start(&before)?;
    written.finish(mode)
}

/// The bytes of all beginnings of the marks, which are the texts of the nodes.
fn beginnings(marks: &[&str]) -> usize {
    let sizes = marks.iter().map(|mark| mark.len().saturating_mul(mark.len() + 1) / 2);
    sizes.fold(0, usize::saturating_add)
}

/// The rules of each nonterminal, by their places.
fn by_lhs(grammar: &Grammar) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); grammar.nonterminals.len()];
    for (at, rule) in grammar.rules.iter().enumerate() {
        all[rule.lhs.index()].push(at);
    }
    all
}

/// The automaton of free text, with the texts of its nodes.
struct Nodes {
    free: Arc<FreeText>,
    texts: Vec<Vec<u8>>,
    /// Of each node those of which it is the next shorter end ([`FreeText::shorter`]).
    longer: Vec<Vec<Node>>,
    marks: Vec<Vec<u8>>,
    classes: Box<[u8; 256]>,
}

impl Nodes {
    fn new(marks: &[&str]) -> Self {
        let free = FreeText::new(&[], marks);
        let (texts, classes) = (free.texts(), free.bytes_apart());
        let marks = marks.iter().map(|mark| mark.as_bytes().to_vec()).collect();
        let mut longer = vec![Vec::new(); texts.len()];
        // Nodes without a text are read by nobody.
        for node in (0..texts.len()).filter(|&node| !texts[node].is_empty()) {
            longer[free.shorter(node as Node) as usize].push(node as Node);
        }
        Self { free: Arc::new(free), texts, longer, marks, classes }
    }

    /// Where a text leads.
    fn run(&self, from: Node, text: &[u8]) -> Option<Node> {
        text.iter().try_fold(from, |node, &byte| self.free.next(node, byte))
    }
}

/// What a terminal matches from a node on.
struct Part {
    /// Where it leads, sorted.
    to: Rc<[Node]>,
    /// Whether a mark cuts some of it off, or it leads to several nodes.
    is_cut: bool,
}

/// What nonterminals lead to.
struct Product<'g, 'w> {
    grammar: &'g Grammar,
    marks: Nodes,
    limits: &'g LexerLimits,
    work: &'w mut Work,
    patterns: &'g Patterns,
    rules: Vec<Vec<usize>>,
    ignored: Rc<[TerminalId]>,
    parts: FxHashMap<(TerminalId, Node), Rc<Part>>,
    /// Of each automaton of terminals and node, the automaton of its parts.
    of_pieces: FxHashMap<(usize, Node), Arc<Without>>,
    /// Where ignored text leads from a node.
    skips: FxHashMap<Node, Rc<[Node]>>,
    /// Where each nonterminal that was asked for leads from a node, sorted.
    reached: FxHashMap<(NonterminalId, Node), Rc<[Node]>>,
}

impl Product<'_, '_> {
    /// What a terminal matches from a node on.
    fn part(&mut self, terminal: TerminalId, from: Node) -> Result<Rc<Part>, LexingError> {
        if let Some(known) = self.parts.get(&(terminal, from)) {
            return Ok(known.clone());
        }
        let given = &self.grammar.terminals[terminal.index()];
        let part = match &given.kind {
            // It has no bytes.
            TerminalKind::Special(SpecialToken::Name(_)) => Part { to: Rc::from([from]), is_cut: false },
            TerminalKind::Special(token) => {
                return Err(LexingError::WithoutTokens { token: token.to_string() });
            }
            TerminalKind::Automaton { automaton, label } => {
                let parts = self.pieces(*automaton, from)?;
                Part { to: parts.nodes_of(*label).collect(), is_cut: true }
            }
            TerminalKind::Literal(_) | TerminalKind::Pattern(_) => {
                let dfa = self.patterns.dfa(terminal.index()).map(|dfa| &**dfa);
                dfa.map_or(Ok(Part { to: Rc::from([]), is_cut: false }), |dfa| {
                    matched(dfa, &self.marks, from, self.work)
                })?
            }
        };
        let part = Rc::new(part);
        self.parts.insert((terminal, from), part.clone());
        Ok(part)
    }

    fn pieces(&mut self, automaton: usize, from: Node) -> Result<Arc<Without>, LexingError> {
        if let Some(known) = self.of_pieces.get(&(automaton, from)) {
            return Ok(known.clone());
        }
        let inner: &Pieces = &self.grammar.pieces[automaton];
        let outline = crate::outline::outline_dfa(inner.outline(), self.work)?;
        let to = matched(&outline, &self.marks, from, self.work)?.to;
        let (free, limit) = (&self.marks.free, self.limits.dfa_states);
        let made = Without::new(inner.clone(), free.clone(), &self.marks.classes, (from, &to), limit);
        let made = Arc::new(made.map_err(LexerError::from)?);
        self.of_pieces.insert((automaton, from), made.clone());
        Ok(made)
    }

    /// Where ignored text leads.
    fn skip(&mut self, from: Node) -> Result<Rc<[Node]>, LexingError> {
        if let Some(known) = self.skips.get(&from) {
            return Ok(known.clone());
        }
        let (mut all, mut known) = (vec![from], FxHashSet::from_iter([from]));
        let mut at = 0;
        while let Some(&node) = all.get(at) {
            at += 1;
            for ignored in self.ignored.clone().iter() {
                let part = self.part(*ignored, node)?;
                self.work.spend(1 + part.to.len()).map_err(LexerError::from)?;
                all.extend(part.to.iter().filter(|&&to| known.insert(to)));
            }
        }
        all.sort_unstable();
        let all: Rc<[Node]> = all.into();
        self.skips.insert(from, all.clone());
        Ok(all)
    }

    /// Where a symbol leads, with the ignored text behind a terminal, as far as it is known; nonterminals
    /// that nobody asked for before are added to the agenda.
    fn leads_to(
        &mut self,
        symbol: Symbol,
        from: Node,
        agenda: &mut Vec<(NonterminalId, Node)>,
    ) -> Result<Rc<[Node]>, LexingError> {
        let terminal = match symbol {
            Symbol::Nonterminal(nonterminal) => {
                let key = (nonterminal, from);
                let known = self.reached.entry(key).or_insert_with(|| {
                    agenda.push(key);
                    Rc::from([])
                });
                return Ok(known.clone());
            }
            Symbol::Terminal(terminal) => terminal,
        };
        let mut all = Vec::new();
        for &node in &*self.part(terminal, from)?.to {
            let behind = self.skip(node)?;
            self.work.spend(behind.len()).map_err(LexerError::from)?;
            all.extend(behind.iter());
        }
        all.sort_unstable();
        all.dedup();
        Ok(all.into())
    }

    /// Finds out where a nonterminal leads from a node, and all that takes part in it: a least fixpoint.
    fn explore(&mut self, start: NonterminalId, from: Node) -> Result<(), LexingError> {
        let mut agenda = Vec::new();
        self.leads_to(Symbol::Nonterminal(start), from, &mut agenda)?;
        let mut users: FxHashMap<(NonterminalId, Node), FxHashSet<(NonterminalId, Node)>> =
            FxHashMap::default();
        while let Some(key) = agenda.pop() {
            let mut found: Vec<Node> = self.reached[&key].to_vec();
            for at in self.rules[key.0.index()].clone() {
                self.work.spend(1 + found.len()).map_err(LexerError::from)?;
                let mut nodes = vec![key.1];
                for &symbol in &self.grammar.rules[at].rhs {
                    self.work.spend(1 + nodes.len()).map_err(LexerError::from)?;
                    let mut next = Vec::new();
                    for &node in &nodes {
                        let to = self.leads_to(symbol, node, &mut agenda)?;
                        self.work.spend(to.len()).map_err(LexerError::from)?;
                        next.extend(to.iter());
                        if let Symbol::Nonterminal(nonterminal) = symbol {
                            users.entry((nonterminal, node)).or_default().insert(key);
                        }
                    }
                    next.sort_unstable();
                    next.dedup();
                    nodes = next;
                }
                found.extend(nodes);
                found.sort_unstable();
                found.dedup();
            }
            if found.len() > self.reached[&key].len() {
                self.reached.insert(key, found.into());
                if let Some(users) = users.get(&key) {
                    self.work.spend(users.len()).map_err(LexerError::from)?;
                    agenda.extend(users);
                }
            }
        }
        Ok(())
    }
}

fn ignored(grammar: &Grammar) -> impl Iterator<Item = TerminalId> + '_ {
    let all = grammar.terminals.iter().enumerate();
    all.filter(|(_, terminal)| terminal.ignored).map(|(at, _)| TerminalId::new(at))
}

/// Where what an automaton matches leads from a node on.
fn matched(dfa: &Dfa, marks: &Nodes, from: Node, work: &mut Work) -> Result<Part, LexingError> {
    let classes = [&*dfa.classes, &*marks.classes];
    let (_, _, samples) = common_classes(classes.into_iter());
    let mut known = FxHashSet::from_iter([(START, from)]);
    let (mut agenda, mut to, mut is_cut) = (vec![(START, from)], Vec::new(), false);
    if dfa.accepting[START as usize] {
        to.push(from);
    }
    while let Some((state, node)) = agenda.pop() {
        work.spend(samples.len()).map_err(LexerError::from)?;
        for &byte in &samples {
            let next = dfa.step(state, byte);
            if next == DEAD {
                continue;
            }
            let Some(target) = marks.free.next(node, byte) else {
                is_cut = true;
                continue;
            };
            if known.insert((next, target)) {
                agenda.push((next, target));
                if dfa.accepting[next as usize] {
                    to.push(target);
                }
            }
        }
    }
    to.sort_unstable();
    to.dedup();
    is_cut |= to.len() > 1;
    Ok(Part { to: to.into(), is_cut })
}

fn any_text() -> Hir {
    let sub = Box::new(Hir::dot(Dot::AnyChar));
    Hir::repetition(Repetition { min: 0, max: None, greedy: true, sub })
}

/// What is left of a text behind each of its beginnings that ends the text `before`, but the whole text.
fn rests<'t>(text: &'t [u8], before: &[u8]) -> impl Iterator<Item = &'t [u8]> {
    let lengths = 1..=text.len().min(before.len());
    lengths.filter(move |&length| before.ends_with(&text[..length])).map(|length| &text[length..])
}

/// The Unicode texts of a pattern that lead from one node to another: behind the text of the first no mark
/// comes to its end, and the longest end that is the text of a node is that of the second. Also how large
/// that is.
///
/// Of a longer node one that is an end of it says enough: only those are named of which the second node is
/// the next shorter end. So the size is that of the marks and of the longer nodes, whatever repeats in them.
fn between(pattern: &Pattern, marks: &Nodes, (from, to): (Node, Node)) -> (Pattern, usize) {
    let (before, text) = (&marks.texts[from as usize], &marks.texts[to as usize]);
    let mut size = 0;
    let mut literal = |text: &[u8]| {
        size += 2 + text.len() / 16;
        Hir::literal(text.to_vec())
    };
    let any_then = |end: Hir| Hir::concat(vec![any_text(), end]);
    let then_any = |begin: Hir| Hir::concat(vec![begin, any_text()]);
    let mut not = Vec::new();
    for mark in &marks.marks {
        not.push(then_any(any_then(literal(mark))));
        let rests: Vec<&[u8]> = rests(mark, before).filter(|rest| !rest.is_empty()).collect();
        // The shorter rest comes first where both are behind the same text.
        let shortest = |at: usize| !rests[at + 1..].iter().any(|shorter| rests[at].starts_with(shorter));
        for at in (0..rests.len()).filter(|&at| shortest(at)) {
            not.push(then_any(literal(rests[at])));
        }
    }
    for &longer in &marks.longer[to as usize] {
        let longer = &marks.texts[longer as usize];
        not.push(any_then(literal(longer)));
        // Shorter ones do not end with the text, and whether they lead to its node is seen below.
        for rest in rests(longer, before).filter(|rest| rest.len() >= text.len()) {
            not.push(literal(rest));
        }
    }
    let mut all = vec![pattern.clone()];
    if !text.is_empty() {
        let rests = rests(text, before).filter(|rest| marks.run(from, rest) == Some(to));
        let mut ends: Vec<Hir> = rests.map(&mut literal).collect();
        ends.push(any_then(literal(text)));
        all.push(Pattern::Regex(Hir::alternation(ends)));
    }
    all.push(Pattern::Not(Box::new(Pattern::Regex(Hir::alternation(not)))));
    (Pattern::and(all), size)
}

/// A nonterminal of the new grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    /// What a nonterminal derives from a node to another.
    Of(NonterminalId, Node, Node),
    /// The same of the rest of a rule, from a symbol on.
    Rest(usize, usize, Node, Node),
    /// A terminal with the ignored text behind it.
    Terminal(TerminalId, Node, Node),
    /// Ignored text.
    Skip(Node, Node),
    Start,
}

/// The new grammar while it is written.
struct Written<'p, 'g, 'w> {
    product: &'p mut Product<'g, 'w>,
    skips: bool,
    names: FxHashSet<String>,
    nonterminals: Vec<Nonterminal>,
    hints: Vec<(NonterminalId, Hints)>,
    rules: Vec<Rule>,
    terminals: Vec<Terminal>,
    pieces: Vec<Pieces>,
    made: FxHashMap<Made, NonterminalId>,
    agenda: Vec<(Made, NonterminalId)>,
    /// By terminal and, where it is cut, the nodes.
    parts: FxHashMap<(TerminalId, Option<(Node, Node)>), TerminalId>,
    given: FxHashMap<(usize, Node), usize>,
    max_size: usize,
    size: usize,
}

impl<'p, 'g, 'w> Written<'p, 'g, 'w> {
    fn new(product: &'p mut Product<'g, 'w>, (size, max_size): (usize, usize)) -> Self {
        Self {
            skips: !product.ignored.is_empty(),
            product,
            names: FxHashSet::default(),
            nonterminals: Vec::new(),
            hints: Vec::new(),
            rules: Vec::new(),
            terminals: Vec::new(),
            pieces: Vec::new(),
            made: FxHashMap::default(),
            agenda: Vec::new(),
            parts: FxHashMap::default(),
            given: FxHashMap::default(),
            max_size,
            size,
        }
    }

    fn start(&mut self, before: &[Node]) -> Result<(), LexingError> {
        let start = self.product.grammar.start;
        let mut sides = Vec::new();
        for &node in before {
            for &to in &*self.product.reached[&(start, node)].clone() {
                sides.push((node, to));
            }
        }
        if sides.is_empty() {
            return Err(LexingError::NothingWithout);
        }
        let lhs = self.nonterminal(Made::Start);
        for (node, to) in sides {
            let skip =
                self.skips.then(|| Symbol::Nonterminal(self.nonterminal(Made::Skip(FreeText::ROOT, node))));
            let start = Symbol::Nonterminal(self.nonterminal(Made::Of(start, node, to)));
            self.rule(lhs, skip.into_iter().chain([start]).collect())?;
        }
        while let Some((made, lhs)) = self.agenda.pop() {
            self.write(made, lhs)?;
        }
        Ok(())
    }

    fn rule(&mut self, lhs: NonterminalId, rhs: Vec<Symbol>) -> Result<(), LexingError> {
        self.grow(rhs.len() + 1)?;
        self.rules.push(Rule { lhs, rhs });
        Ok(())
    }

    fn grow(&mut self, by: usize) -> Result<(), LexingError> {
        self.product.work.spend(by).map_err(LexerError::from)?;
        self.size = self.size.saturating_add(by);
        match self.size > self.max_size {
            true => Err(LexingError::WithoutTooLarge { limit: self.max_size }),
            false => Ok(()),
        }
    }

    /// The nonterminal of something; what it derives is written later.
    fn nonterminal(&mut self, made: Made) -> NonterminalId {
        if let Some(&known) = self.made.get(&made) {
            return known;
        }
        let id = NonterminalId::new(self.nonterminals.len());
        let (name, span) = match made {
            Made::Of(of, ..) => {
                let of = &self.product.grammar.nonterminals[of.index()];
                (of.name.clone(), of.span.clone())
            }
            Made::Rest(..) => ("__rest".to_owned(), None),
            Made::Terminal(..) | Made::Skip(..) => ("__ignored".to_owned(), None),
            Made::Start => ("__start".to_owned(), None),
        };
        if let Made::Of(of, ..) = made {
            let hints = self.product.grammar.hints.iter().filter(|hints| hints.0 == of);
            self.hints.extend(hints.map(|hints| (id, hints.1.clone())));
        }
        // A grammar can have such names itself: it may be one without other marks.
        let (mut unique, mut number) = (name.clone(), self.names.len());
        while !self.names.insert(unique.clone()) {
            unique = format!("{name} {number}");
            number += 1;
        }
        self.nonterminals.push(Nonterminal { name: unique, span });
        self.made.insert(made, id);
        self.agenda.push((made, id));
        id
    }

    fn write(&mut self, made: Made, lhs: NonterminalId) -> Result<(), LexingError> {
        match made {
            Made::Start => {}
            Made::Of(of, from, to) => {
                for at in self.product.rules[of.index()].clone() {
                    self.rest(lhs, (at, 0), (from, to))?;
                }
            }
            Made::Rest(rule, at, from, to) => self.rest(lhs, (rule, at), (from, to))?,
            Made::Terminal(terminal, from, to) => {
                for &node in &*self.product.part(terminal, from)?.to.clone() {
                    if self.product.skip(node)?.binary_search(&to).is_ok() {
                        let terminal = Symbol::Terminal(self.terminal(terminal, (from, node))?);
                        let skip = Symbol::Nonterminal(self.nonterminal(Made::Skip(node, to)));
                        self.rule(lhs, vec![terminal, skip])?;
                    }
                }
            }
            Made::Skip(from, to) => {
                if from == to {
                    self.rule(lhs, Vec::new())?;
                }
                for &node in &*self.product.skip(from)? {
                    for &ignored in &*self.product.ignored.clone() {
                        let part = self.product.part(ignored, node)?;
                        self.product.work.spend(1).map_err(LexerError::from)?;
                        if part.to.binary_search(&to).is_ok() {
                            let skip = Symbol::Nonterminal(self.nonterminal(Made::Skip(from, node)));
                            let ignored = Symbol::Terminal(self.terminal(ignored, (node, to))?);
                            self.rule(lhs, vec![skip, ignored])?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the rules for what a rule derives from a symbol on, between two nodes. Where several nodes are
    /// possible between two symbols, what is behind them is a nonterminal of its own, so that there are at
    /// most as many rules as symbols and pairs of nodes.
    fn rest(
        &mut self,
        lhs: NonterminalId,
        (rule, mut at): (usize, usize),
        (from, to): (Node, Node),
    ) -> Result<(), LexingError> {
        let symbols = &self.product.grammar.rules[rule].rhs;
        // Behind each symbol the nodes to which what was before leads, and then those of them that lead on.
        let mut nodes = vec![vec![from]];
        for &symbol in &symbols[at..] {
            let mut next = Vec::new();
            for &node in &nodes[nodes.len() - 1] {
                next.extend(self.known(symbol, node)?.iter());
            }
            next.sort_unstable();
            next.dedup();
            nodes.push(next);
        }
        let end = nodes.len() - 1;
        nodes[end].retain(|&node| node == to);
        for place in (0..end).rev() {
            let mut leads_on = Vec::with_capacity(nodes[place].len());
            for &node in &nodes[place] {
                let next = self.known(symbols[at + place], node)?;
                leads_on.push(next.iter().any(|next| nodes[place + 1].binary_search(next).is_ok()));
            }
            let mut leads_on = leads_on.into_iter();
            nodes[place].retain(|_| leads_on.next() == Some(true));
        }
        if nodes.iter().any(Vec::is_empty) {
            return Ok(());
        }
        let first = at;
        let (mut side, mut node) = (Vec::new(), from);
        while at < symbols.len() {
            let symbol = symbols[at];
            let next = self.known(symbol, node)?;
            let leads_on = &nodes[at - first + 1];
            let next: Vec<Node> =
                next.iter().copied().filter(|next| leads_on.binary_search(next).is_ok()).collect();
            at += 1;
            if let [only] = *next {
                side.push(self.symbol(symbol, (node, only))?);
                node = only;
                continue;
            }
            for next in next {
                let (symbol, rest) = (self.symbol(symbol, (node, next))?, Made::Rest(rule, at, next, to));
                let rest = Symbol::Nonterminal(self.nonterminal(rest));
                self.rule(lhs, side.iter().copied().chain([symbol, rest]).collect())?;
            }
            return Ok(());
        }
        self.rule(lhs, side)
    }

    fn known(&mut self, symbol: Symbol, from: Node) -> Result<Rc<[Node]>, LexingError> {
        // All that takes part was asked for before.
        let known = self.product.leads_to(symbol, from, &mut Vec::new())?;
        self.product.work.spend(1 + known.len()).map_err(LexerError::from)?;
        Ok(known)
    }

    fn symbol(&mut self, symbol: Symbol, (from, to): (Node, Node)) -> Result<Symbol, LexingError> {
        Ok(match symbol {
            Symbol::Nonterminal(of) => Symbol::Nonterminal(self.nonterminal(Made::Of(of, from, to))),
            Symbol::Terminal(terminal) if self.skips => {
                Symbol::Nonterminal(self.nonterminal(Made::Terminal(terminal, from, to)))
            }
            Symbol::Terminal(terminal) => Symbol::Terminal(self.terminal(terminal, (from, to))?),
        })
    }

    /// What a terminal matches between two nodes, as a terminal.
    fn terminal(
        &mut self,
        terminal: TerminalId,
        (from, to): (Node, Node),
    ) -> Result<TerminalId, LexingError> {
        let part = self.product.part(terminal, from)?;
        let nodes = part.is_cut.then_some((from, to));
        if let Some(&known) = self.parts.get(&(terminal, nodes)) {
            return Ok(known);
        }
        let given = &self.product.grammar.terminals[terminal.index()];
        let mut made = Terminal { ignored: false, reserved: false, ..given.clone() };
        if let Some((from, to)) = nodes {
            made.declared = false;
            made.kind = match &given.kind {
                &TerminalKind::Automaton { automaton, label } => {
                    let parts = self.product.pieces(automaton, from)?;
                    let label = parts.label(label, to).unwrap_or(u32::MAX);
                    let fresh = self.pieces.len();
                    let automaton = *self.given.entry((automaton, from)).or_insert_with(|| {
                        self.pieces.push(Pieces(parts));
                        fresh
                    });
                    TerminalKind::Automaton { automaton, label }
                }
                TerminalKind::Literal(pattern) | TerminalKind::Pattern(pattern) => {
                    self.check_unicode(terminal)?;
                    let (part, size) = between(pattern, &self.product.marks, (from, to));
                    self.grow(size)?;
                    TerminalKind::Pattern(part)
                }
                kind @ TerminalKind::Special(_) => kind.clone(),
            };
        }
        let id = TerminalId::new(self.terminals.len());
        self.terminals.push(made);
        self.parts.insert((terminal, nodes), id);
        Ok(id)
    }

    /// Refuses a terminal that matches bytes that are no UTF-8: complements are of Unicode texts.
    fn check_unicode(&mut self, terminal: TerminalId) -> Result<(), LexingError> {
        let Some(dfa) = self.product.patterns.dfa(terminal.index()) else { return Ok(()) };
        let name = || self.product.grammar.terminals[terminal.index()].name.clone();
        let too_large = LexerError::TerminalTooLarge {
            terminal: name(),
            limit: self.product.limits.dfa_states,
            option: "dfa_states",
        };
        let is_unicode = dfa.is_unicode(self.product.limits, self.product.work).map_err(|_| too_large)?;
        if is_unicode { Ok(()) } else { Err(LexingError::WithoutBytes { terminal: name() }) }
    }

    fn finish(mut self, mode: LexerMode) -> Result<Grammar, LexingError> {
        let (grammar, patterns) = (self.product.grammar, self.product.patterns);
        if mode == LexerMode::Longest {
            self.reserve(grammar, patterns)?;
        }
        let start = self.made[&Made::Start];
        let made = Grammar::new(self.terminals, self.nonterminals, self.rules, start, mode);
        let made = made.with_pieces(self.pieces, grammar.delimited).with_hints(self.hints);
        let made = made.with_embedded(grammar.embedded.clone());
        Ok(match &grammar.memory {
            Some(memory) => made.with_memory(memory.clone()),
            None => made,
        })
    }

    /// Lets all terminals compete that compete in the grammar.
    fn reserve(&mut self, grammar: &Grammar, patterns: &Patterns) -> Result<(), LexingError> {
        let cfg = anygram_grammar::cfg::Cfg::reduce(grammar, &patterns.empty());
        let used = cfg.map_err(|_| LexingError::NothingWithout)?.used_terminals();
        for (at, terminal) in grammar.terminals.iter().enumerate() {
            let competes = used.contains(at) || terminal.ignored || terminal.reserved;
            let is_there = self.parts.contains_key(&(TerminalId::new(at), None));
            if competes && !is_there && !terminal.kind.is_token() {
                self.terminals.push(Terminal { ignored: false, reserved: true, ..terminal.clone() });
            }
        }
        Ok(())
    }
}
