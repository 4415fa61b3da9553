//! The incremental Valiant recognizer against its definitions, and against the paper's algorithms as they are
//! meant.
//!
//! `docs/algorithms/valiant.md` has the definitions, the corrections of the paper's pseudo-code, and the
//! proofs. Each test here holds one step of them against the engine: tiers and predictions on random lattices
//! against brute force, algorithms 2, 3 and 4 written out cell by cell on long inputs, all kernels against
//! each other, and states that are made, forked and released in any order.

use std::collections::{BTreeMap, BTreeSet};

use anygram_bits::{BitSet, kernels};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};
use anygram_grammar::normal::{Binary, Form, NormalForm};
use anygram_recognizer::earley::Earley;
use anygram_recognizer::reference::Reference;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;

use crate::sharing::random_cfg;

/// A grammar by its rules: nonterminals are upper case, `S` the start, everything else is a terminal.
pub fn cfg(rules: &[(&str, &str)]) -> Cfg {
    let nonterminals: Vec<char> = rules.iter().flat_map(|(lhs, _)| lhs.chars()).collect();
    let nonterminals: Vec<char> = BTreeSet::from_iter(nonterminals).into_iter().collect();
    let terminals: BTreeSet<char> =
        rules.iter().flat_map(|(_, rhs)| rhs.chars()).filter(|c| !c.is_ascii_uppercase()).collect();
    let terminals: Vec<char> = terminals.into_iter().collect();
    let place = |list: &[char], c: char| list.iter().position(|&other| other == c).unwrap();
    let symbol = |c: char| match c.is_ascii_uppercase() {
        true => Symbol::Nonterminal(NonterminalId::new(place(&nonterminals, c))),
        false => Symbol::Terminal(TerminalId::new(place(&terminals, c))),
    };
    let lhs = |name: &str| NonterminalId::new(place(&nonterminals, name.chars().next().unwrap()));
    let rules =
        rules.iter().map(|(name, rhs)| Rule { lhs: lhs(name), rhs: rhs.chars().map(symbol).collect() });
    let cfg = Cfg {
        n_terminals: terminals.len(),
        n_nonterminals: nonterminals.len(),
        rules: rules.collect(),
        start: lhs("S"),
        automata: Vec::new(),
    };
    cfg.trim(&BitSet::new(terminals.len())).unwrap()
}

fn engines(cfg: &Cfg) -> [Valiant; 2] {
    let limits = RecognizerLimits::default();
    [Valiant::new(cfg.clone(), limits).unwrap(), Valiant::chomsky(cfg.clone(), limits).unwrap()]
}

fn read(engine: &mut dyn Recognizer, from: StateId, terminal: usize) -> Option<StateId> {
    engine.extend(&[Edge { from, terminal: Some(TerminalId::new(terminal)) }]).unwrap()
}

/// What can be asked of a state without knowing the engine.
fn seen(engine: &dyn Recognizer, state: StateId) -> (BitSet, bool, u32) {
    (engine.viable(state).clone(), engine.is_sentence(state), engine.minimum_remaining(state))
}

/// By definition: of each part `i..j` of a word the symbols that derive it, the least sets that the rules
/// allow.
fn derivations(form: &NormalForm, word: &[usize]) -> BTreeMap<(usize, usize), BTreeSet<u32>> {
    let mut parts: BTreeMap<(usize, usize), BTreeSet<u32>> = BTreeMap::new();
    let is_empty_used = form.form == Form::Binary;
    for i in 0..=word.len() {
        for j in i..=word.len() {
            let set = parts.entry((i, j)).or_default();
            if i == j && is_empty_used {
                set.extend(form.nullable.iter().map(|symbol| symbol as u32));
            }
            if j == i + 1 {
                let lexical = form.lexical.iter().filter(|(_, terminal)| terminal.index() == word[i]);
                set.extend(lexical.map(|(parent, _)| parent.0));
            }
        }
    }
    loop {
        let mut changed = false;
        for i in 0..=word.len() {
            for j in i..=word.len() {
                let mut found = BTreeSet::new();
                for &(parent, child) in &form.unit {
                    if parts[&(i, j)].contains(&child.0) {
                        found.insert(parent.0);
                    }
                }
                for rule in &form.binary {
                    if (i..=j).any(|k| {
                        parts[&(i, k)].contains(&rule.left.0) && parts[&(k, j)].contains(&rule.right.0)
                    }) {
                        found.insert(rule.parent.0);
                    }
                }
                let set = parts.get_mut(&(i, j)).unwrap();
                let before = set.len();
                set.extend(found);
                changed |= set.len() > before;
            }
        }
        if !changed {
            return parts;
        }
    }
}

/// By definition: the symbols `X` with `start ⇒* word X …`.
fn predictions(form: &NormalForm, word: &[usize]) -> BTreeSet<u32> {
    let parts = derivations(form, word);
    let mut begins = BTreeSet::from([(0, form.start.0)]);
    let mut agenda = vec![(0, form.start.0)];
    while let Some((i, parent)) = agenda.pop() {
        let units = form.unit.iter().filter(|unit| unit.0.0 == parent).map(|unit| (i, unit.1.0));
        let mut found: Vec<(usize, u32)> = units.collect();
        for rule in form.binary.iter().filter(|rule| rule.parent.0 == parent) {
            found.push((i, rule.left.0));
            let ends = (i..=word.len()).filter(|&k| parts[&(i, k)].contains(&rule.left.0));
            found.extend(ends.map(|k| (k, rule.right.0)));
        }
        agenda.extend(found.into_iter().filter(|&item| begins.insert(item)));
    }
    begins.into_iter().filter(|&(i, _)| i == word.len()).map(|(_, symbol)| symbol).collect()
}

/// A point of a lattice, by the edges that lead to it: an earlier point and what is read.
type Point = Vec<(usize, Option<usize>)>;

/// All terminal sequences along the ways from one point to another. With `at_once` the first step reads a
/// terminal.
fn ways(lattice: &[Point], from: usize, to: usize, at_once: bool) -> BTreeSet<Vec<usize>> {
    let mut words = BTreeSet::new();
    if from == to && !at_once {
        words.insert(vec![]);
    }
    for &(before, terminal) in &lattice[to] {
        if before == from && at_once && terminal.is_some() {
            words.insert(terminal.into_iter().collect());
        }
        if before >= from {
            words.extend(ways(lattice, from, before, at_once).into_iter().map(|mut word| {
                word.extend(terminal);
                word
            }));
        }
    }
    words
}

fn random_lattice(random: &mut Random, n_terminals: usize) -> Vec<Point> {
    let mut lattice = vec![vec![]];
    for at in 1..random.between(3, 6) {
        let n_edges = *random.choose(&[1, 1, 2, 3]);
        lattice.push(
            (0..n_edges)
                .map(|_| {
                    let from = if random.chance(60) { at - 1 } else { random.below(at) };
                    (from, (!random.chance(20)).then(|| random.below(n_terminals)))
                })
                .collect(),
        );
    }
    lattice
}

#[test]
fn tiers_and_predictions_of_lattices_are_those_of_the_definition() {
    let (mut n_states, mut n_rows) = (0, 0);
    for seed in 0..400 {
        let grammar = RandomCase::new(seed).grammar;
        let Ok(cfg) = Cfg::reduce(&grammar, &BitSet::new(grammar.terminals.len())) else { continue };
        if cfg.n_terminals == 0 {
            continue;
        }
        let mut random = Random::new(seed);
        let lattice = random_lattice(&mut random, cfg.n_terminals);
        for mut engine in engines(&cfg) {
            let form = engine.form().clone();
            // Points that carry one state over are that state, and those that nothing viable leads to have
            // none.
            let mut states: Vec<Option<StateId>> = vec![Some(engine.start())];
            for edges in &lattice[1..] {
                let edges = edges.iter().filter_map(|&(from, terminal)| {
                    states[from].map(|from| Edge { from, terminal: terminal.map(TerminalId::new) })
                });
                let edges: Vec<Edge> = edges.collect();
                states.push(if edges.is_empty() { None } else { engine.extend(&edges).unwrap() });
            }
            let predicted: Vec<BTreeSet<u32>> = (0..lattice.len())
                .map(|at| {
                    ways(&lattice, 0, at, false).iter().flat_map(|word| predictions(&form, word)).collect()
                })
                .collect();
            for (to, &state) in states.iter().enumerate() {
                let context =
                    format!("seed {seed}, {:?}, point {to} of {lattice:?}\n{:?}", form.form, cfg.rules);
                let words = ways(&lattice, 0, to, false);
                let whole = |word: &Vec<usize>| match word.is_empty() {
                    true => form.nullable.contains(form.start.index()),
                    false => derivations(&form, word)[&(0, word.len())].contains(&form.start.0),
                };
                let is_sentence = words.iter().any(whole);
                let Some(state) = state else {
                    assert!(predicted[to].is_empty() && !is_sentence, "lost: {context}");
                    continue;
                };
                n_states += 1;
                assert_eq!(engine.is_sentence(state), is_sentence, "{context}");
                let found: BTreeSet<u32> =
                    engine.predicted(state).iter().map(|symbol| symbol as u32).collect();
                assert_eq!(found, predicted[to], "{context}");
                let mut rows: BTreeMap<u32, BTreeSet<StateId>> = BTreeMap::new();
                for from in 0..to {
                    let Some(row) = states[from] else { continue };
                    for word in ways(&lattice, from, to, true) {
                        for &symbol in &derivations(&form, &word)[&(0, word.len())] {
                            if predicted[from].contains(&symbol) {
                                rows.entry(symbol).or_default().insert(row);
                            }
                        }
                    }
                }
                for left in form.left_children() {
                    let found: BTreeSet<StateId> = engine.rows_of(state, left).into_iter().collect();
                    n_rows += found.len();
                    assert_eq!(found, rows.remove(&left.0).unwrap_or_default(), "{left:?}: {context}");
                }
            }
        }
    }
    assert!(n_states > 1_500 && n_rows > 1_500, "{n_states} states, {n_rows} rows");
}

/// The paper's chart, cell by cell, as algorithm 2 fills it (with its indices put right). Cell `(n, row)`
/// holds what derives terminals `n - row ..= n`.
struct Chart<'a> {
    form: &'a NormalForm,
    /// Of each symbol those that it may begin with, itself included: FIRST.
    first: Vec<BitSet>,
    tiers: Vec<Vec<BitSet>>,
}

impl<'a> Chart<'a> {
    fn new(form: &'a NormalForm) -> Self {
        let n = form.n_symbols();
        let mut first: Vec<BitSet> = (0..n).map(|symbol| BitSet::from_members(n, [symbol])).collect();
        loop {
            let mut changed = false;
            for rule in &form.binary {
                let more = first[rule.left.index()].clone();
                changed |= first[rule.parent.index()].union_with(&more);
            }
            if !changed {
                return Self { form, first, tiers: vec![] };
            }
        }
    }

    fn none(&self) -> BitSet {
        BitSet::new(self.form.n_symbols())
    }

    /// Algorithm 2.
    fn push(&mut self, terminal: usize) {
        let n = self.tiers.len();
        let lexical =
            self.form.lexical.iter().filter(|(_, t)| t.index() == terminal).map(|(parent, _)| parent.index());
        self.tiers.push(vec![BitSet::from_members(self.form.n_symbols(), lexical)]);
        for row in 1..=n {
            let mut cell = self.none();
            for mid in 0..row {
                let (left, right) = (&self.tiers[n - row + mid][mid], &self.tiers[n][row - mid - 1]);
                let holds = |rule: &&_| self.holds(left, right, rule);
                cell.extend(self.form.binary.iter().filter(holds).map(|rule| rule.parent.index()));
            }
            self.tiers[n].push(cell);
        }
    }

    fn holds(&self, left: &BitSet, right: &BitSet, rule: &Binary) -> bool {
        left.contains(rule.left.index()) && right.contains(rule.right.index())
    }

    /// Algorithm 3: whether a terminal may follow. `up[row]` holds what can begin with the last `row`
    /// terminals and this one.
    fn is_viable(&self, terminal: usize) -> bool {
        let n = self.tiers.len();
        let mut up: Vec<BitSet> = Vec::new();
        for row in 0..=n {
            let mut seeds = self.none();
            if row == 0 {
                let lexical = self.form.lexical.iter().filter(|(_, t)| t.index() == terminal);
                seeds.extend(lexical.map(|(parent, _)| parent.index()));
            }
            // Case 1: the left child is a cell that is there, the right one is still to come.
            for mid in 0..row {
                let (left, right) = (&self.tiers[n - row + mid][mid], &up[row - mid - 1]);
                let holds = |rule: &&_| self.holds(left, right, rule);
                seeds.extend(self.form.binary.iter().filter(holds).map(|rule| rule.parent.index()));
            }
            // Case 2: the left child is itself still to come.
            let all = (0..self.form.n_symbols()).filter(|&symbol| self.first[symbol].intersects(&seeds));
            up.push(BitSet::from_members(self.form.n_symbols(), all));
        }
        up[n].contains(self.form.start.index())
    }

    /// Algorithm 4, over all rows from the top down: `down[row]` holds what may begin before the last `row`
    /// terminals.
    fn predictions(&self) -> Vec<BitSet> {
        let n = self.tiers.len();
        let mut down = vec![self.none(); n + 1];
        for row in (0..=n).rev() {
            let mut seeds = self.none();
            if row == n {
                seeds.insert(self.form.start.index());
            }
            for mid in 0..n - row {
                let (left, parents) = (&self.tiers[n - row - 1][mid], &down[row + mid + 1]);
                let holds = |rule: &&Binary| {
                    left.contains(rule.left.index()) && parents.contains(rule.parent.index())
                };
                seeds.extend(self.form.binary.iter().filter(holds).map(|rule| rule.right.index()));
            }
            for seed in seeds.iter() {
                down[row].union_with(&self.first[seed]);
            }
        }
        down
    }
}

/// Grammars of many shapes, over few terminals.
fn grammars() -> Vec<(&'static str, Cfg)> {
    vec![
        ("s s", cfg(&[("S", "SS"), ("S", "a")])),
        ("dyck", cfg(&[("S", "SS"), ("S", "(S)"), ("S", "")])),
        ("expressions", cfg(&[("S", "S+S"), ("S", "S*S"), ("S", "(S)"), ("S", "x"), ("S", "x[S]")])),
        ("palindromes", cfg(&[("S", "aSa"), ("S", "bSb"), ("S", "a"), ("S", "")])),
        ("right recursion", cfg(&[("S", "aS"), ("S", "b")])),
        ("left recursion", cfg(&[("S", "Sa"), ("S", "SbT"), ("S", "a"), ("T", "a"), ("T", "Tb")])),
        (
            "cycles",
            cfg(&[("S", "A"), ("A", "S"), ("A", "SB"), ("A", "a"), ("B", ""), ("B", "b"), ("B", "BB")]),
        ),
        ("hidden left recursion", cfg(&[("S", "BSc"), ("S", "a"), ("S", "aS"), ("B", ""), ("B", "b")])),
        (
            "terminals of several symbols",
            cfg(&[("S", "SN"), ("S", "VS"), ("S", "N"), ("N", "a"), ("N", "b"), ("V", "a")]),
        ),
    ]
}

/// A viable word of a length, drawn at random among those that can go on.
fn word(engine: &mut dyn Recognizer, random: &mut Random, length: usize) -> Vec<usize> {
    let (mut state, mut word) = (engine.start(), Vec::new());
    while word.len() < length {
        let next = engine.viable(state).clone();
        let next: Vec<_> =
            next.iter().map(|terminal| (terminal, read(engine, state, terminal).unwrap())).collect();
        let open: Vec<_> = next.into_iter().filter(|&(_, next)| !engine.viable(next).is_empty()).collect();
        let terminal;
        (terminal, state) = *random.choose(&open);
        word.push(terminal);
    }
    word
}

#[test]
fn chains_are_those_of_algorithms_2_3_and_4() {
    for (name, cfg) in grammars() {
        let [mut binary, mut chomsky] = engines(&cfg);
        let form = chomsky.form().clone();
        let mut chart = Chart::new(&form);
        let word = word(&mut binary.clone(), &mut Random::new(3), 90);
        let mut states = vec![chomsky.start()];
        let mut binary_state = binary.start();
        for n in 0..=word.len() {
            let state = states[n];
            let down = chart.predictions();
            for (row, set) in down.iter().enumerate() {
                assert_eq!(chomsky.predicted(states[n - row]), set, "{name}: {n} terminals, row {row}");
            }
            let first = |terminal: usize| {
                form.lexical
                    .iter()
                    .any(|(parent, t)| t.index() == terminal && down[0].contains(parent.index()))
            };
            for terminal in 0..cfg.n_terminals {
                let is_viable = chart.is_viable(terminal);
                assert_eq!(first(terminal), is_viable, "{name}: algorithms 3 and 4 differ");
                assert_eq!(chomsky.viable(state).contains(terminal), is_viable, "{name}: {n} terminals");
                assert_eq!(
                    binary.viable(binary_state).contains(terminal),
                    is_viable,
                    "{name}: {n} terminals"
                );
                if !is_viable {
                    assert_eq!(read(&mut chomsky, state, terminal), None);
                }
            }
            let is_sentence = match n {
                0 => form.nullable.contains(form.start.index()),
                _ => chart.tiers[n - 1][n - 1].contains(form.start.index()),
            };
            assert_eq!(
                (chomsky.is_sentence(state), binary.is_sentence(binary_state)),
                (is_sentence, is_sentence)
            );
            let Some(&terminal) = word.get(n) else { break };
            chart.push(terminal);
            states.push(read(&mut chomsky, state, terminal).unwrap());
            binary_state = read(&mut binary, binary_state, terminal).unwrap();
            for left in form.left_children() {
                // What was not predicted where it begins is in the paper's chart, and of no use there.
                let useful = (0..=n).rev().filter(|&row| {
                    chart.tiers[n][row].contains(left.index())
                        && chomsky.predicted(states[n - row]).contains(left.index())
                });
                let expected: BTreeSet<StateId> = useful.map(|row| states[n - row]).collect();
                let found: BTreeSet<StateId> = chomsky.rows_of(states[n + 1], left).into_iter().collect();
                assert_eq!(found, expected, "{name}: tier {n}, {left:?}");
            }
        }
    }
}

#[test]
fn all_kernels_build_the_same_long_charts() {
    for (name, cfg) in grammars() {
        let word = word(&mut engines(&cfg)[0], &mut Random::new(5), 700);
        let mut reference = Reference::new(cfg.clone(), RecognizerLimits::default()).unwrap();
        let checked = word.len().min(150);
        for which in 0..2 {
            let engine = |kernels| engines(&cfg)[which].clone().with_kernels(kernels);
            let mut all: Vec<Valiant> = kernels::available().into_iter().map(engine).collect();
            let (mut state, mut expected) = (StateId(0), reference.start());
            for (at, &terminal) in word.iter().enumerate() {
                let next: Vec<StateId> =
                    all.iter_mut().map(|one| read(one, state, terminal).unwrap()).collect();
                state = next[0];
                let (first, others) = all.split_first().unwrap();
                let observed = seen(first, state);
                if at < checked {
                    expected = read(&mut reference, expected, terminal).unwrap();
                    assert_eq!(observed, seen(&reference, expected), "{name}: {at}");
                }
                for other in others {
                    assert_eq!(other.predicted(state), first.predicted(state), "{name}: {at}");
                    for left in first.form().left_children() {
                        assert_eq!(other.rows_of(state, left), first.rows_of(state, left), "{name}: {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn saturated_charts_hold_every_row() {
    let mut engine = Valiant::new(grammars().remove(0).1, RecognizerLimits::default()).unwrap();
    let (left, mut state) = (engine.form().left_children()[0], engine.start());
    for n in 1..=330 {
        state = read(&mut engine, state, 0).unwrap();
        let rows: Vec<usize> = engine.rows_of(state, left).into_iter().map(StateId::index).collect();
        assert_eq!(rows, (0..n).rev().collect::<Vec<_>>());
    }
}

#[test]
fn a_symbol_with_a_full_word_of_rows_still_gains_rows_below() {
    // X begins at every `a` after the `b` as soon as `c` is read, and at all before them by steps of one.
    let cfg = cfg(&[("S", "Xd"), ("X", "aX"), ("X", "bX"), ("X", "Ac"), ("A", "AA"), ("A", "a")]);
    let [a, b, c, d] = [0, 1, 2, 3];
    for (before, after) in [(62, 70), (63, 1), (63, 63), (63, 64), (63, 70), (64, 70), (127, 200), (191, 65)]
    {
        let word = [vec![a; before], vec![b], vec![a; after], vec![c]].concat();
        for engine in engines(&cfg) {
            for kernels in kernels::available() {
                let mut engine = engine.clone().with_kernels(kernels);
                let start = engine.start();
                let state =
                    word.iter().fold(start, |state, &terminal| read(&mut engine, state, terminal).unwrap());
                assert_eq!(engine.viable(state).iter().collect::<Vec<_>>(), [d], "{before}, {after}");
                assert_eq!(engine.minimum_remaining(state), 1);
            }
        }
    }
}

#[test]
fn forks_grow_side_by_side() {
    // Two words from one state, a terminal of each in turn: rows of one are not those of the other, and none
    // is next to the one before.
    for (name, cfg) in grammars() {
        for mut engine in engines(&cfg) {
            let mut random = Random::new(11);
            let common = word(&mut engine.clone(), &mut random, 40);
            let state = common
                .iter()
                .fold(engine.start(), |state, &terminal| read(&mut engine, state, terminal).unwrap());
            let mut branches = [(state, common.clone()), (state, common)];
            for _ in 0..60 {
                for (state, word) in &mut branches {
                    let viable: Vec<usize> = engine.viable(*state).iter().collect();
                    if !viable.is_empty() {
                        let terminal = *random.choose(&viable);
                        *state = read(&mut engine, *state, terminal).unwrap();
                        word.push(terminal);
                    }
                }
            }
            for (state, word) in branches {
                let mut alone = Reference::new(cfg.clone(), RecognizerLimits::default()).unwrap();
                let start = alone.start();
                let end =
                    word.iter().fold(start, |state, &terminal| read(&mut alone, state, terminal).unwrap());
                assert_eq!(seen(&engine, state), seen(&alone, end), "{name}");
            }
        }
    }
}

#[test]
fn released_states_leave_no_trace() {
    for (name, cfg) in grammars() {
        for mut engine in engines(&cfg) {
            let mut random = Random::new(13);
            let words: Vec<Vec<usize>> =
                (0..6).map(|_| word(&mut engine.clone(), &mut random, 150)).collect();
            let untouched = engine.clone();
            // Down and up again, to places on both sides of the borders of words.
            let mut path = vec![(engine.start(), engine.mark())];
            let mut read_so_far: Vec<usize> = Vec::new();
            for (word, back_to) in words.iter().zip([65, 64, 63, 1, 128, 0]) {
                let common = word.iter().zip(&read_so_far).take_while(|(a, b)| a == b).count().min(back_to);
                let (_, mark) = path[common];
                assert!(engine.release(mark));
                path.truncate(common + 1);
                read_so_far.truncate(common);
                for &terminal in &word[common..] {
                    let state = read(&mut engine, path[path.len() - 1].0, terminal).unwrap();
                    path.push((state, engine.mark()));
                    read_so_far.push(terminal);
                }
                let mut fresh = untouched.clone();
                let end = word
                    .iter()
                    .fold(fresh.start(), |state, &terminal| read(&mut fresh, state, terminal).unwrap());
                let state = path[path.len() - 1].0;
                assert_eq!((state, seen(&engine, state)), (end, seen(&fresh, end)), "{name}");
                for left in engine.form().left_children() {
                    assert_eq!(engine.rows_of(state, left), fresh.rows_of(end, left), "{name}: {left:?}");
                }
                assert_eq!(engine.n_states(), fresh.n_states());
            }
        }
    }
}

/// An edge of a lattice: the state that it comes from, by number, and what it reads.
type Step = (usize, Option<usize>);

/// Makes a state of edges from states that an engine made before.
fn extended(engine: &mut dyn Recognizer, states: &[StateId], edges: &[Step]) -> Option<StateId> {
    let edge =
        |&(from, terminal): &Step| Edge { from: states[from], terminal: terminal.map(TerminalId::new) };
    engine.extend(&edges.iter().map(edge).collect::<Vec<_>>()).ok()?
}

/// Some hundred states that repeat themselves, with the edges that lead to each but the first: a chain, or
/// one from which other states branch off and to which other edges lead.
fn long_lattice(earley: &mut Earley, random: &mut Random, is_chain: bool) -> (Vec<Vec<Step>>, Vec<StateId>) {
    let (period, mut text, mut tip) = (random.between(1, 6), Vec::new(), 0);
    let (mut lattice, mut states) = (Vec::new(), vec![earley.start()]);
    while states.len() < 210 {
        let recent = states.len() - 1 - random.below(states.len().min(4));
        let drawn = |random: &mut Random, from: usize| -> Option<usize> {
            let viable: Vec<usize> = earley.viable(states[from]).iter().collect();
            (!viable.is_empty()).then(|| *random.choose(&viable))
        };
        let other = drawn(random, recent).map(|terminal| (recent, Some(terminal)));
        let is_beside = !is_chain && random.chance(10) && other.is_some();
        let mut edges = Vec::new();
        if is_beside {
            edges.extend(other);
        } else {
            let Some(drawn) = drawn(random, tip) else { break };
            let again = text.len().checked_sub(period).map(|at: usize| text[at]);
            let is_viable = |&terminal: &usize| earley.viable(states[tip]).contains(terminal);
            let terminal = again.filter(is_viable).filter(|_| random.chance(97)).unwrap_or(drawn);
            edges.push((tip, Some(terminal)));
            edges.extend(other.filter(|_| !is_chain && random.chance(10)));
            edges.extend((!is_chain && random.chance(5)).then_some((recent, None)));
            text.push(terminal);
        }
        // Some grammars have too many items in Earley's states.
        let Some(next) = extended(earley, &states, &edges) else { break };
        tip = if is_beside { tip } else { states.len() };
        lattice.push(edges);
        states.push(next);
    }
    (lattice, states)
}

#[test]
fn long_lattices_are_read_as_by_earley() {
    // Several words of rows, with many rows in each.
    let mut n_compared = [0; 2];
    for seed in 0..800 {
        let mut random = Random::new(seed);
        let Some(cfg) = random_cfg(&mut random) else { continue };
        let limits = RecognizerLimits { items: 400_000 };
        let mut earley = Earley::new(cfg.clone(), limits).unwrap();
        let is_chain = seed % 2 == 0;
        let (lattice, expected) = long_lattice(&mut earley, &mut random, is_chain);
        for mut engine in engines(&cfg) {
            let mut states = vec![engine.start()];
            for (edges, &expected) in lattice.iter().zip(&expected[1..]) {
                let state = extended(&mut engine, &states, edges).unwrap();
                let at = states.len();
                states.push(state);
                assert_eq!(engine.viable(state), earley.viable(expected), "seed {seed}, {at}");
                assert_eq!(engine.is_sentence(state), earley.is_sentence(expected), "seed {seed}, {at}");
                if at % 50 == 0 {
                    assert_eq!(seen(&engine, state), seen(&earley, expected), "seed {seed}, {at}");
                    for left in engine.form().left_children() {
                        let is_predicted = |&row: &StateId| engine.predicted(row).contains(left.index());
                        assert!(engine.rows_of(state, left).iter().all(is_predicted), "seed {seed}, {at}");
                    }
                }
            }
            n_compared[usize::from(is_chain)] += lattice.len();
        }
    }
    assert!(n_compared.iter().all(|&n| n > 40_000), "{n_compared:?}");
}
