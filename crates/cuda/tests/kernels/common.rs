//! What the tests share.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use anygram_bits::BitSet;
use anygram_cuda::{Charts, PoolOptions, SharedCharts, ShimOptions, shim};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};
use anygram_recognizer::{Edge, Recognizer, StateId};
use anygram_testkit::random::Random;

/// Whether the kernels can be run here; says so if not, and fails where `CI` is `true`.
pub fn can_run() -> bool {
    if native().is_some() {
        return true;
    }
    if !shim::is_built() {
        let notice = "the kernels: no C++ compiler was found when the tests were built";
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{notice}");
        eprintln!("NOT TESTED: {notice}");
    }
    shim::is_built()
}

/// A pool that is small in all ways, so that its borders are met.
pub fn small() -> PoolOptions {
    PoolOptions {
        pages: 2_048,
        page_words: 512,
        sequences: 16,
        max_pages: 1_024,
        max_states: 2_048,
        threads: 32,
        workers: 2,
        max_workers: 3,
        in_breadth: 8,
        stack_words: 16 << 10,
        arena_words: 64 << 10,
        queue: 4_096,
        tree_words: 1 << 20,
        team_blocks: 3,
        team_from: 0,
        dense_on_device: true,
        bulk_loads: false,
    }
}

/// The number of the device on which the tests are to run, instead of the shim.
pub fn native() -> Option<usize> {
    std::env::var("ANYGRAM_CUDA_DEVICE").ok().and_then(|number| number.parse().ok())
}

/// Charts on the shim, whose threads run in an order drawn from a seed; or on the device that was asked for.
pub fn charts(seed: u64, options: PoolOptions) -> Charts {
    if let Some(device) = native() {
        // Held to the end, since the first pool on a device makes its context, which takes long, and the last
        // one drops it.
        static FIRST: OnceLock<Mutex<Charts>> = OnceLock::new();
        FIRST.get_or_init(|| Mutex::new(Charts::on_cuda(device, small()).unwrap()));
        return Charts::on_cuda(device, options).unwrap();
    }
    // Some blocks have no room for a draft in shared memory, and some copy blocks of memory.
    let shared_words = [None, Some(600)][seed as usize % 2];
    let options = PoolOptions { bulk_loads: seed % 3 == 1, ..options };
    Charts::on_shim(ShimOptions { seed, shared_words, ..ShimOptions::default() }, options).unwrap()
}

/// The same, to be shared.
pub fn pool(seed: u64, options: PoolOptions) -> SharedCharts {
    Arc::new(Mutex::new(charts(seed, options)))
}

/// A grammar by its rules: nonterminals are upper case, `S` the start, everything else is a terminal.
pub fn cfg(rules: &[(&str, &str)]) -> Cfg {
    let nonterminals: BTreeSet<char> = rules.iter().flat_map(|(lhs, _)| lhs.chars()).collect();
    let terminals: BTreeSet<char> =
        rules.iter().flat_map(|(_, rhs)| rhs.chars()).filter(|c| !c.is_ascii_uppercase()).collect();
    let place = |list: &BTreeSet<char>, c: char| list.iter().position(|&other| other == c).unwrap();
    let symbol = |c: char| match c.is_ascii_uppercase() {
        true => Symbol::Nonterminal(NonterminalId::new(place(&nonterminals, c))),
        false => Symbol::Terminal(TerminalId::new(place(&terminals, c))),
    };
    let lhs = |name: &str| NonterminalId::new(place(&nonterminals, name.chars().next().unwrap()));
    let rules =
        rules.iter().map(|(name, rhs)| Rule { lhs: lhs(name), rhs: rhs.chars().map(symbol).collect() });
    let (n_terminals, n_nonterminals) = (terminals.len(), nonterminals.len());
    let cfg =
        Cfg { n_terminals, n_nonterminals, rules: rules.collect(), start: lhs("S"), automata: Vec::new() };
    cfg.trim(&BitSet::new(terminals.len())).unwrap()
}

/// Grammars of many shapes, over few terminals.
pub fn grammars() -> Vec<(&'static str, Cfg)> {
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
        ("many rows", cfg(&[("S", "Xd"), ("X", "aX"), ("X", "bX"), ("X", "Ac"), ("A", "AA"), ("A", "a")])),
    ]
}

/// A grammar with so many symbols that rules fill warps: random rules of one and two symbols.
pub fn wide(random: &mut Random) -> Option<Cfg> {
    let (n_terminals, n_nonterminals) = (40, 60);
    let mut rules = Vec::new();
    for n in 0..n_nonterminals {
        let lhs = NonterminalId::new(n);
        rules.push(Rule { lhs, rhs: vec![Symbol::Terminal(TerminalId::new(random.below(n_terminals)))] });
        for _ in 0..random.below(9) {
            let mut symbol = || match random.below(5) {
                0 => Symbol::Terminal(TerminalId::new(random.below(n_terminals))),
                _ => Symbol::Nonterminal(NonterminalId::new(random.below(n_nonterminals))),
            };
            let rhs: Vec<Symbol> = [symbol(), symbol(), symbol()].into();
            let length = 1 + random.below(3);
            rules.push(Rule { lhs, rhs: rhs[..length].into() });
        }
    }
    let cfg = Cfg { n_terminals, n_nonterminals, rules, start: NonterminalId::new(0), automata: Vec::new() };
    cfg.trim(&BitSet::new(n_terminals)).ok()
}

/// A grammar over two terminals in which nearly every symbol derives nearly every text, and in which there
/// are more left children than lanes.
pub fn saturated(random: &mut Random) -> Cfg {
    let n_nonterminals = 70;
    let symbol = |n: usize| Symbol::Nonterminal(NonterminalId::new(n));
    let mut rules = Vec::new();
    for n in 0..n_nonterminals {
        let lhs = NonterminalId::new(n);
        rules.push(Rule { lhs, rhs: vec![Symbol::Terminal(TerminalId::new(n % 2))] });
        // The first leads to the next symbol, so that none is left out.
        rules.push(Rule { lhs, rhs: vec![symbol(n), symbol((n + 1) % n_nonterminals)] });
        for _ in 0..2 {
            rules.push(Rule {
                lhs,
                rhs: vec![symbol(random.below(60)), symbol(random.below(n_nonterminals))],
            });
        }
    }
    let cfg =
        Cfg { n_terminals: 2, n_nonterminals, rules, start: NonterminalId::new(0), automata: Vec::new() };
    cfg.trim(&BitSet::new(2)).unwrap()
}

pub fn read(engine: &mut dyn Recognizer, from: StateId, terminal: usize) -> Option<StateId> {
    engine.extend(&[Edge { from, terminal: Some(TerminalId::new(terminal)) }]).unwrap()
}

/// What can be asked of a state without knowing the engine.
pub fn seen(engine: &dyn Recognizer, state: StateId) -> (BitSet, bool, u32) {
    (engine.viable(state).clone(), engine.is_sentence(state), engine.minimum_remaining(state))
}

/// A viable word, as long as wanted if the grammar has one so long, drawn at random among those that can go
/// on.
pub fn word(engine: &mut dyn Recognizer, random: &mut Random, length: usize) -> Vec<usize> {
    let (mut state, mut word) = (engine.start(), Vec::new());
    while word.len() < length {
        let next: Vec<usize> = engine.viable(state).iter().collect();
        let next: Vec<_> =
            next.into_iter().map(|terminal| (terminal, read(engine, state, terminal).unwrap())).collect();
        let open: Vec<_> = next.into_iter().filter(|&(_, next)| !engine.viable(next).is_empty()).collect();
        if open.is_empty() {
            break;
        }
        let terminal;
        (terminal, state) = *random.choose(&open);
        word.push(terminal);
    }
    word
}
