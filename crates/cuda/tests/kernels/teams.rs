//! Several blocks for one sequence: the same states as one block and the CPU have, whatever the order in
//! which blocks and threads run.

use anygram_cuda::{Charts, GrammarId, Image, PoolOptions, SequenceId, ShimOptions};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::TerminalId;
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anygram_testkit::random::Random;

use crate::charts::{edge, same, valiant};
use crate::common::{can_run, charts as charts_on, grammars, native, saturated, small, wide, word};

fn with(seed: u64, team_blocks: usize, options: PoolOptions) -> Charts {
    if native().is_some() {
        return charts_on(seed, PoolOptions { team_blocks, ..options });
    }
    let shim = ShimOptions { seed, resident_blocks: Some(3 * team_blocks), ..ShimOptions::default() };
    Charts::on_shim(shim, PoolOptions { team_blocks, ..options }).unwrap()
}

fn add(charts: &mut Charts, cfg: &Cfg) -> GrammarId {
    charts.add_grammar(&Image::new(cfg, &NormalForm::binary(cfg)).unwrap()).unwrap()
}

/// Grammars whose charts have rows in many words, and one with so many rules that they fill warps.
fn dense() -> Vec<(&'static str, Cfg)> {
    let mut all = grammars();
    all.retain(|(name, _)| {
        ["s s", "expressions", "cycles", "many rows", "right recursion", "palindromes"].contains(name)
    });
    all.extend((0..9).find_map(|seed| wide(&mut Random::new(seed))).map(|cfg| ("wide", cfg)));
    all.push(("saturated", saturated(&mut Random::new(1))));
    all
}

#[test]
fn several_blocks_make_the_states_that_one_makes() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in (0..).zip(dense()) {
        // Every other grammar has the other numbers of blocks.
        for team_blocks in [[1, 7], [2, 3]][at as usize % 2] {
            let options = PoolOptions { threads: [32, 64, 96][team_blocks % 3], ..small() };
            let mut charts = with(at, team_blocks, options);
            let grammar = add(&mut charts, &cfg);
            let id = charts.create(&[grammar]).remove(0).unwrap();
            let mut engine = valiant(&cfg);
            for terminal in word(&mut engine.clone(), &mut Random::new(at), 230) {
                let edges = edge(StateId::new(engine.n_states() - 1), terminal);
                let expected = engine.extend(&edges).unwrap();
                assert_eq!(
                    charts.extend(&[(id, &edges)]).remove(0).unwrap(),
                    expected,
                    "{name}, {team_blocks} blocks"
                );
            }
            same(&mut charts, id, &engine, &format!("{name}, {team_blocks} blocks"));
            let long = engine.n_states() > 33;
            assert_eq!(charts.team_launches() > 0, long && team_blocks > 1, "{name}, {team_blocks} blocks");
        }
    }
}

#[test]
fn lattices_by_several_blocks() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in (0..).zip(dense()) {
        let mut charts = with(at, 4, PoolOptions { threads: 64, ..small() });
        let grammar = add(&mut charts, &cfg);
        let id = charts.create(&[grammar]).remove(0).unwrap();
        let mut engine = valiant(&cfg);
        let mut random = Random::new(at + 40);
        for _ in 0..240 {
            // States of many beginnings, pieces that are carried over, and edges that lead nowhere.
            let mut one = |back: usize| {
                let from = StateId::new(engine.n_states() - 1 - random.below(engine.n_states().min(back)));
                let viable: Vec<usize> = engine.viable(from).iter().collect();
                let terminal =
                    if viable.is_empty() || random.chance(15) { None } else { Some(*random.choose(&viable)) };
                Edge { from, terminal: terminal.map(TerminalId::new) }
            };
            let edges = [one(2), one(40)];
            let expected = engine.extend(&edges).unwrap();
            assert_eq!(charts.extend(&[(id, &edges)]).remove(0).unwrap(), expected, "{name}");
        }
        same(&mut charts, id, &engine, name);
    }
}

#[test]
fn teams_and_single_blocks_in_one_batch() {
    if !can_run() {
        return;
    }
    // Three sequences grow dense at different times; the others stay thin or short.
    let all = [grammars().remove(0).1, grammars().remove(5).1];
    let options = PoolOptions { team_from: 5, threads: 64, ..small() };
    let mut charts = with(3, 2, options);
    let ids: Vec<GrammarId> = all.iter().map(|cfg| add(&mut charts, cfg)).collect();
    let kinds = [0, 1, 0, 1, 0];
    let of: Vec<GrammarId> = kinds.iter().map(|&kind| ids[kind]).collect();
    let sequences: Vec<SequenceId> = charts.create(&of).into_iter().map(Result::unwrap).collect();
    let mut engines: Vec<Valiant> = kinds
        .iter()
        .map(|&kind: &usize| Valiant::new(all[kind].clone(), RecognizerLimits::default()).unwrap())
        .collect();
    for at in 0..200 {
        let there: Vec<usize> = (0..kinds.len()).filter(|&which| at >= 25 * which).collect();
        let edges: Vec<[Edge; 1]> =
            there.iter().map(|&which| edge(StateId::new(engines[which].n_states() - 1), 0)).collect();
        let requests: Vec<(SequenceId, &[Edge])> =
            there.iter().zip(&edges).map(|(&which, edges)| (sequences[which], &edges[..])).collect();
        for ((result, &which), edges) in charts.extend(&requests).into_iter().zip(&there).zip(&edges) {
            assert_eq!(result.unwrap(), engines[which].extend(edges).unwrap(), "{which} at {at}");
        }
    }
    assert!(charts.team_launches() > 20);
    for (&id, engine) in sequences.iter().zip(&engines) {
        same(&mut charts, id, engine, "batch");
    }
}

/// By the variant of the kernels that copies blocks of memory. The shim has it too.
#[test]
fn bulk_loads_make_the_same_states() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in (0..).zip(dense()) {
        let options = PoolOptions { bulk_loads: true, threads: 128, ..small() };
        let made = match native() {
            Some(device) => Charts::on_cuda(device, options),
            None => Charts::on_shim(ShimOptions { seed: at, ..ShimOptions::default() }, options),
        };
        let mut charts = match made {
            Err(error) => {
                eprintln!("NOT TESTED: {error}");
                return;
            }
            Ok(charts) => charts,
        };
        let grammar = add(&mut charts, &cfg);
        let id = charts.create(&[grammar]).remove(0).unwrap();
        let mut engine = valiant(&cfg);
        for terminal in word(&mut engine.clone(), &mut Random::new(at), 230) {
            let edges = edge(StateId::new(engine.n_states() - 1), terminal);
            assert_eq!(
                charts.extend(&[(id, &edges)]).remove(0).unwrap(),
                engine.extend(&edges).unwrap(),
                "{name}"
            );
        }
        same(&mut charts, id, &engine, name);
    }
}
