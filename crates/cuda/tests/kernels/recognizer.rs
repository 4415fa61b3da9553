//! The recognizer of the device against that of the CPU, state by state, and against the laws and the
//! definition.

use anygram_bits::BitSet;
use anygram_cuda::DeviceRecognizer;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::TerminalId;
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::reference::Reference;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId, laws};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;

use crate::common::{can_run, grammars, pool, read, saturated, seen, small, wide, word};

const LIMITS: RecognizerLimits = RecognizerLimits { items: 50_000_000 };

/// Engines of the CPU and of the device on both normal forms of a grammar.
fn engines(cfg: &Cfg, seed: u64) -> [(Valiant, DeviceRecognizer); 2] {
    let forms = [Valiant::new(cfg.clone(), LIMITS).unwrap(), Valiant::chomsky(cfg.clone(), LIMITS).unwrap()];
    forms.map(|valiant| {
        let form: NormalForm = valiant.form().clone();
        let mut options = small();
        options.threads = [32, 64, 96, 128][seed as usize % 4];
        let charts = pool(seed, options);
        (valiant, DeviceRecognizer::with_form(cfg.clone(), form, LIMITS, &charts).unwrap())
    })
}

/// Holds a state of the device against that of the CPU: everything that is stored.
fn same(valiant: &Valiant, device: &DeviceRecognizer, state: StateId, context: &dyn Fn() -> String) {
    assert_eq!(device.chart().predicted(state), valiant.predicted(state), "predicted: {}", context());
    assert_eq!(seen(device, state), seen(valiant, state), "{}", context());
    for left in valiant.form().left_children() {
        assert_eq!(
            device.chart().rows_of(state, left),
            valiant.rows_of(state, left),
            "{left:?}: {}",
            context()
        );
    }
}

/// Edges from random states to random places.
fn random_edges(random: &mut Random, n_states: usize, n_terminals: usize) -> Vec<Edge> {
    let n_edges = *random.choose(&[1, 1, 2, 3]);
    let edge = |random: &mut Random| {
        let last = if random.chance(60) { n_states - 1 } else { random.below(n_states) };
        let terminal = (!random.chance(20)).then(|| TerminalId::new(random.below(n_terminals)));
        Edge { from: StateId::new(last), terminal }
    };
    (0..n_edges).map(|_| edge(random)).collect()
}

#[test]
fn states_of_random_lattices_are_those_of_the_cpu() {
    if !can_run() {
        return;
    }
    let mut n_states = 0;
    for seed in 0..250 {
        let grammar = RandomCase::new(seed).grammar;
        let Ok(cfg) = Cfg::reduce(&grammar, &BitSet::new(grammar.terminals.len())) else { continue };
        if cfg.n_terminals == 0 {
            continue;
        }
        for (mut valiant, mut device) in engines(&cfg, seed) {
            let mut random = Random::new(seed);
            for _ in 0..12 {
                let edges = random_edges(&mut random, valiant.n_states(), cfg.n_terminals);
                let context =
                    || format!("seed {seed}, {:?}, {edges:?}\n{:?}", valiant.form().form, cfg.rules);
                let expected = valiant.clone().extend(&edges).unwrap();
                assert_eq!(device.extend(&edges).unwrap(), expected, "{}", context());
                valiant.extend(&edges).unwrap();
                if let Some(state) = expected {
                    same(&valiant, &device, state, &|| format!("seed {seed}, {edges:?}\n{:?}", cfg.rules));
                    n_states += 1;
                }
            }
        }
    }
    assert!(n_states > 2_500, "{n_states}");
}

#[test]
fn wide_grammars_fill_warps() {
    if !can_run() {
        return;
    }
    let mut n_states = 0;
    let wide = (0..6).filter_map(|seed| Some((seed, wide(&mut Random::new(seed))?)));
    for (seed, cfg) in wide.chain((12..14).map(|seed| (seed, saturated(&mut Random::new(seed))))) {
        for (mut valiant, mut device) in engines(&cfg, seed) {
            let word = word(&mut valiant.clone(), &mut Random::new(seed), 70);
            let mut state = valiant.start();
            for &terminal in &word {
                let next = read(&mut valiant, state, terminal).unwrap();
                assert_eq!(read(&mut device, state, terminal), Some(next));
                same(&valiant, &device, next, &|| format!("seed {seed}, {} terminals", next.index()));
                state = next;
                n_states += 1;
            }
        }
    }
    assert!(n_states > 400, "{n_states}");
}

#[test]
fn long_chains_cross_the_borders_of_words() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in grammars().into_iter().enumerate() {
        for (mut valiant, mut device) in engines(&cfg, at as u64) {
            let word = word(&mut valiant.clone(), &mut Random::new(5), 150);
            let mut reference = Reference::new(cfg.clone(), LIMITS).unwrap();
            let (mut state, mut expected) = (valiant.start(), reference.start());
            for (at, &terminal) in word.iter().enumerate() {
                let next = read(&mut valiant, state, terminal).unwrap();
                assert_eq!(read(&mut device, state, terminal), Some(next), "{name}");
                same(&valiant, &device, next, &|| format!("{name}, {at}"));
                expected = read(&mut reference, expected, terminal).unwrap();
                assert_eq!(seen(&device, next), seen(&reference, expected), "{name}: {at}");
                state = next;
            }
        }
    }
}

#[test]
fn the_laws_hold() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in grammars().into_iter().enumerate() {
        for (_, mut device) in engines(&cfg, at as u64) {
            let mut random = Random::new(17);
            let mut states = vec![device.start()];
            for _ in 0..25 {
                let state = *random.choose(&states);
                let check =
                    |result: Result<(), String>| result.unwrap_or_else(|error| panic!("{name}: {error}"));
                check(laws::viable_iff_extends(&mut device, state));
                check(laws::minimum_is_zero_iff_sentence(&device, state));
                check(laws::automata_of_all_and_of_nothing(&device, state));
                check(laws::carrying_over_is_the_identity(&mut device, state));
                let mut edge = || Edge {
                    from: *random.choose(&states),
                    terminal: (!random.chance(20)).then(|| TerminalId::new(random.below(cfg.n_terminals))),
                };
                let edges = [edge(), edge()];
                check(laws::a_merge_is_a_union(&mut device, &edges));
                states.extend(device.extend(&edges).unwrap());
            }
        }
    }
}

#[test]
fn released_states_leave_no_trace() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in grammars().into_iter().enumerate() {
        let [(mut valiant, mut device), _] = engines(&cfg, at as u64);
        let mut random = Random::new(13);
        let words: Vec<Vec<usize>> = (0..4).map(|_| word(&mut valiant.clone(), &mut random, 80)).collect();
        let mut path = vec![(device.start(), device.mark(), valiant.mark())];
        let mut read_so_far: Vec<usize> = Vec::new();
        for (word, back_to) in words.iter().zip([65, 31, 32, 0]) {
            let common = word.iter().zip(&read_so_far).take_while(|(a, b)| a == b).count().min(back_to);
            let (_, there, here) = path[common];
            assert!(device.release(there) && valiant.release(here));
            path.truncate(common + 1);
            read_so_far.truncate(common);
            for &terminal in &word[common..] {
                let (from, ..) = path[path.len() - 1];
                let state = read(&mut device, from, terminal).unwrap();
                assert_eq!(read(&mut valiant, from, terminal), Some(state), "{name}");
                same(&valiant, &device, state, &|| format!("{name}, {state:?}"));
                path.push((state, device.mark(), valiant.mark()));
                read_so_far.push(terminal);
            }
        }
    }
}
