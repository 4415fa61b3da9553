//! What the kernels can be asked for and the host never does.

use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};

use crate::device::half_words;
use crate::layout::RESULT_WORDS;
use crate::{Charts, Image, PoolOptions, SequenceId, ShimOptions};

/// S → S S | a
fn s_s() -> Cfg {
    let start = NonterminalId::new(0);
    let symbol = Symbol::Nonterminal(start);
    let rules = vec![
        Rule { lhs: start, rhs: vec![symbol, symbol] },
        Rule { lhs: start, rhs: vec![Symbol::Terminal(TerminalId::new(0))] },
    ];
    Cfg { n_terminals: 1, n_nonterminals: 1, rules, start, automata: Vec::new() }
}

/// A step of a sequence by a team, however long it is.
fn step_in_team(charts: &mut Charts, id: SequenceId, edges: &[Edge], team: usize) -> Option<StateId> {
    let (round, mut words) = (vec![Some((id, edges))], Vec::new());
    let batch = charts.batch(&round, &[0], team, 0, 0, &mut words).unwrap().unwrap();
    let edges_at = half_words(&batch.requests).len();
    words.splice(0..0, half_words(&batch.requests));
    let inputs = charts.device.allocate(words.len()).unwrap();
    charts.device.write(&inputs, 0, &words).unwrap();
    let results = charts.device.allocate(RESULT_WORDS).unwrap();
    let edges_at = inputs.address + 4 * edges_at as u64;
    let launch = charts.step_launch(&batch, inputs.address, edges_at, results.address).unwrap();
    charts.device.run(&[launch]).unwrap();
    let mut result = [0; RESULT_WORDS];
    charts.device.read(&results, 0, &mut result).unwrap();
    charts.note(id, edges, &result).unwrap()
}

/// The first state of a sequence, made by several blocks, on a board that has the rows of another launch.
#[test]
fn a_team_may_make_the_first_state() {
    if !crate::shim::is_built() {
        return;
    }
    for seed in 0..20 {
        let shim = ShimOptions { seed, ..ShimOptions::default() };
        let options = PoolOptions { pages: 64, sequences: 2, threads: 64, ..PoolOptions::default() };
        let options = PoolOptions { bulk_loads: seed % 2 == 1, ..options };
        let mut charts = Charts::on_shim(shim, options).unwrap();
        let cfg = s_s();
        let grammar = charts.add_grammar(&Image::new(&cfg, &NormalForm::binary(&cfg)).unwrap()).unwrap();
        for _ in 0..2 {
            let mut engine = Valiant::new(cfg.clone(), RecognizerLimits::default()).unwrap();
            let id = charts.take_place(grammar).unwrap();
            assert_eq!(step_in_team(&mut charts, id, &[], 3), Some(StateId(0)));
            for n in 0..70 {
                let edges = [Edge { from: StateId(n), terminal: Some(TerminalId::new(0)) }];
                let expected = engine.extend(&edges).unwrap();
                assert_eq!(step_in_team(&mut charts, id, &edges, 3), expected);
            }
            for state in [0, 1, 70].map(StateId) {
                let tier = charts.tier(id, state).unwrap();
                assert_eq!(tier.rows.is_empty(), state.0 == 0, "seed {seed}, {state:?}");
                assert_eq!(tier.predicted, *engine.predicted(state), "seed {seed}, {state:?}");
                assert_eq!(tier.viable, *engine.viable(state), "seed {seed}, {state:?}");
                assert_eq!(tier.is_sentence, engine.is_sentence(state), "seed {seed}, {state:?}");
            }
        }
    }
}
