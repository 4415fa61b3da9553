//! Where items are said to begin: it changes nothing that can be seen, and texts after which the same can
//! follow come to one state.

use std::collections::BTreeSet;

use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};
use anygram_recognizer::earley::Earley;
use anygram_recognizer::reference::Reference;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anygram_testkit::random::Random;

use crate::sharing::{random_cfg, seen};
use crate::valiant::cfg;

fn read(engine: &mut dyn Recognizer, from: StateId, terminal: TerminalId) -> Option<StateId> {
    engine.extend(&[Edge { from, terminal: Some(terminal) }]).unwrap()
}

#[test]
fn long_texts_are_read_as_by_the_reference() {
    let (mut n_compared, mut n_fewer) = (0, 0);
    for seed in 0..1_500 {
        let mut random = Random::new(seed);
        let Some(cfg) = random_cfg(&mut random) else { continue };
        let limits = RecognizerLimits::default();
        let mut engine = Earley::new(cfg.clone(), limits).unwrap();
        let mut reference = Reference::new(cfg, limits).unwrap();
        let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..4 {
            let mut states = (engine.start(), reference.start());
            for _ in 0..25 {
                let viable: Vec<usize> = reference.viable(states.1).iter().collect();
                if viable.is_empty() {
                    break;
                }
                let terminal = TerminalId::new(*random.choose(&viable));
                let next = (read(&mut engine, states.0, terminal), read(&mut reference, states.1, terminal));
                let (Some(one), Some(other)) = next else { panic!("seed {seed}: {next:?}") };
                assert_eq!(seen(&engine, one), seen(&reference, other), "seed {seed}");
                states = (one, other);
                ours.insert(one);
                theirs.insert(other);
                n_compared += 1;
            }
        }
        n_fewer += usize::from(ours.len() < theirs.len());
    }
    assert!(n_compared > 50_000 && n_fewer > 300, "{n_compared} states, {n_fewer} grammars with fewer");
}

/// The state after a text, whose characters are terminals.
fn after(engine: &mut Earley, rules: &[(&str, &str)], text: &str) -> StateId {
    let terminals: BTreeSet<char> =
        rules.iter().flat_map(|(_, rhs)| rhs.chars()).filter(|c| !c.is_ascii_uppercase()).collect();
    let number = |c: char| TerminalId::new(terminals.iter().position(|&other| other == c).unwrap());
    let start = engine.start();
    text.chars().fold(start, |state, c| read(engine, state, number(c)).unwrap())
}

#[test]
fn what_may_follow_decides_the_state() {
    let ambiguous = [("S", "S+S"), ("S", "S*S"), ("S", "(S)"), ("S", "n")];
    let levels =
        [("S", "T"), ("S", "S+T"), ("T", "F"), ("T", "T*F"), ("F", "(S)"), ("F", "f(A)"), ("F", "n")];
    let levels = [&levels[..], &[("A", ""), ("A", "L"), ("L", "S"), ("L", "L,S")]].concat();
    let doubled = [("S", "SS"), ("S", "a"), ("S", "[S]")];
    // Pieces of a list of lists, as in SMILES: each may begin an inner one.
    let lists = [("S", "O"), ("O", "I"), ("O", "OI"), ("I", "E"), ("I", "IE"), ("E", "a"), ("E", "(S)")];
    let right = [("S", "n"), ("S", "n?S:S")];
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)]);
    let cases: [Case<'_>; 5] = [
        (&ambiguous, &[("n", "n+n*n+n"), ("n+", "n*n+"), ("(n", "(n+n*(n)")], &[("n", "(n"), ("(n", "((n")]),
        (
            &levels,
            &[("n", "n+n*n"), ("n*", "n+n*"), ("f(n", "f(n+n,n*f(n)"), ("(n", "(f()+n*n")],
            &[("n", "(n"), ("f(n", "(n"), ("f(n", "f(f(n"), ("n+", "n*")],
        ),
        (&doubled, &[("a", "aaaa"), ("[a", "a[a[a]a"), ("[a", "[[a]")], &[("[a", "[[a"), ("a", "[a")]),
        (&lists, &[("aa", "aaaaa"), ("aa", "a(a)"), ("(aa", "aa(aa(aa)")], &[("(aa", "((aa"), ("aa", "(aa")]),
        (&right, &[("n?n:n", "n?n:n?n:n"), ("n?", "n?n:n?")], &[("n?n", "n?n?n"), ("n", "n?n")]),
    ];
    for (rules, same, different) in cases {
        let mut engine = Earley::new(cfg(rules), RecognizerLimits::default()).unwrap();
        let mut of = |text| after(&mut engine, rules, text);
        for &(one, other) in same {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
        for &(one, other) in different {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
    }
}

/// Very many nonterminals begin behind `q`, and behind each wait very many items: comparing them all would
/// take as many steps as both together.
#[test]
fn comparisons_take_no_more_than_their_share() {
    let (n_begun, n_waiting) = (1_000, 5_000);
    let nonterminal = |n: usize| Symbol::Nonterminal(NonterminalId::new(n));
    let terminal = |t: usize| Symbol::Terminal(TerminalId::new(t));
    let [s, x, l, n, a] = [0, 1, 2, 3, 4];
    let rule = |lhs: usize, rhs: &[Symbol]| Rule { lhs: NonterminalId::new(lhs), rhs: rhs.to_vec() };
    let mut rules = vec![
        rule(l, &[terminal(1), nonterminal(n)]),
        rule(n, &[terminal(2), nonterminal(n)]),
        rule(n, &[nonterminal(a)]),
        rule(a, &[terminal(3)]),
    ];
    let mut n_terminals = 5;
    let mut another = || {
        n_terminals += 1;
        terminal(n_terminals - 1)
    };
    rules.extend((0..50).map(|_| rule(s, &[terminal(0), nonterminal(x), another()])));
    rules.extend((0..n_waiting).map(|_| rule(x, &[nonterminal(l), another()])));
    for at in 0..n_begun {
        rules.push(rule(n, &[nonterminal(5 + at)]));
        rules.push(rule(5 + at, &[terminal(4), another()]));
    }
    let start = NonterminalId::new(s);
    let cfg = Cfg { n_terminals, n_nonterminals: 5 + n_begun, rules, start, automata: Vec::new() };
    let mut engine = Earley::new(cfg, RecognizerLimits::default()).unwrap();
    let mut state = engine.start();
    for t in [0, 1, 2, 4] {
        state = read(&mut engine, state, TerminalId::new(t)).unwrap();
    }
    assert_eq!(engine.viable(state).count(), n_begun);
    let (effort, n_items) = (engine.effort(), engine.n_items());
    assert!(effort < 3_000_000 && n_items < 1_000_000, "{effort} for {n_items} items");
}

/// Comparisons are bounded, and texts with very many items are read as before.
#[test]
fn many_levels_are_read_all_the_same() {
    let level = |at: usize| char::from_u32('A' as u32 + at as u32).unwrap();
    let mut rules = vec![("S".to_owned(), "A".to_owned())];
    for at in 0..15 {
        let (own, next) = (level(at), level(at + 1));
        rules.push((own.to_string(), next.to_string()));
        rules.push((own.to_string(), format!("{own}{}{next}", char::from(b'a' + at as u8))));
        rules.push((own.to_string(), format!("{own}{own}")));
    }
    rules.push((level(15).to_string(), "(S)".to_owned()));
    rules.push((level(15).to_string(), "x".to_owned()));
    let rules: Vec<(&str, &str)> = rules.iter().map(|(lhs, rhs)| (&**lhs, &**rhs)).collect();
    let cfg: Cfg = cfg(&rules);
    let mut engine = Earley::new(cfg.clone(), RecognizerLimits::default()).unwrap();
    let mut reference = Reference::new(cfg, RecognizerLimits::default()).unwrap();
    let mut random = Random::new(0);
    let mut states = (engine.start(), reference.start());
    for _ in 0..60 {
        let viable: Vec<usize> = reference.viable(states.1).iter().collect();
        let terminal = TerminalId::new(*random.choose(&viable));
        let next = (read(&mut engine, states.0, terminal), read(&mut reference, states.1, terminal));
        states = (next.0.unwrap(), next.1.unwrap());
        assert_eq!(seen(&engine, states.0), seen(&reference, states.1));
    }
}
