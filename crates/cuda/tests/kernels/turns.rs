//! Whole steps: states and masks without the host in between, replayed as a graph; trees and ids that are
//! dropped.

use std::sync::{Arc, PoisonError};

use anygram_cuda::output::Output;
use anygram_cuda::search::{At, Reading};
use anygram_cuda::turn::{After, Turn};
use anygram_cuda::{
    ChartError, Charts, DeviceError, GraphCounts, Image, PoolOptions, SequenceId, SharedCharts, ShimOptions,
};
use anygram_grammar::ir::LexerMode;
use anygram_grammar::normal::NormalForm;
use anygram_left_to_right::Constraint;
use anygram_recognizer::{Edge, Recognizer, StateId};
use anygram_testkit::random::Random;
use anygram_vocab::{TokenMask, Vocabulary};

use crate::charts::{edge, same, valiant};
use crate::common::{can_run, charts, grammars, pool, small, word};
use crate::masks::sql;

fn lock(charts: &SharedCharts) -> std::sync::MutexGuard<'_, Charts> {
    charts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn constraint(mode: LexerMode) -> Constraint {
    Constraint::new(Arc::new(sql(mode)), Vocabulary::builtin().clone()).unwrap()
}

/// Turns of several outputs at once, each with a text of its own.
#[test]
fn turns_are_steps_and_masks() {
    if !can_run() {
        return;
    }
    for (seed, mode) in (0..).zip([LexerMode::Scannerless, LexerMode::Longest]) {
        let constraint = constraint(mode);
        let texts = ["select a, 1.5 + -b", "select x+(select y from z;)+ 17, w", "select a from b;"];
        let texts = texts.map(|text| constraint.vocabulary().encode(text).unwrap());
        let charts = pool(seed, PoolOptions { threads: 64, team_from: 200, ..small() });
        let mut outputs = texts.each_ref().map(|_| Output::new(&constraint, &charts, 1).unwrap());
        let mut matchers = texts.each_ref().map(|_| constraint.matcher().unwrap());
        for at in 0..texts.iter().map(Vec::len).max().unwrap() {
            for (which, text) in texts.iter().enumerate() {
                // A text that is over says nothing more, and its mask stays.
                if let Some(&token) = text.get(at) {
                    matchers[which].advance(token).unwrap();
                    outputs[which].advance(token).unwrap();
                }
            }
            let parts = outputs.each_mut().map(|output| output.whole_step().unwrap());
            let steps =
                parts.each_ref().map(|part| part.steps.iter().map(|edges| &edges[..]).collect::<Vec<_>>());
            let turns: Vec<Turn<'_>> = (0..texts.len())
                .map(|which| Turn {
                    sequence: outputs[which].sequence(),
                    steps: &steps[which],
                    readings: &parts[which].readings,
                })
                .collect();
            let mut charts = lock(&charts);
            let (masks, turned) = charts.turn(&turns, 1).unwrap();
            let words = charts.read_masks(masks).unwrap();
            for (which, turned) in turned.into_iter().enumerate() {
                assert_eq!(turned.mask, Ok(()));
                assert!(turned.states.unwrap().iter().all(Option::is_some));
                assert_eq!(
                    words[which],
                    matchers[which].mask().unwrap().into_words(),
                    "{}, text {which}, {at}",
                    mode.name()
                );
            }
        }
        let GraphCounts { recorded, replayed } = lock(&charts).graph_counts();
        assert!(recorded > 0 && replayed > recorded, "{recorded} recorded, {replayed} replayed");
    }
}

#[test]
fn a_turn_that_fails_fails_alone() {
    if !can_run() {
        return;
    }
    let constraint = constraint(LexerMode::Longest);
    let charts = pool(1, PoolOptions { threads: 64, ..small() });
    let mut output = Output::new(&constraint, &charts, 1).unwrap();
    constraint
        .vocabulary()
        .encode("select a, b")
        .unwrap()
        .into_iter()
        .for_each(|token| output.advance(token).unwrap());
    let own = output.sequence();
    let readings = output.readings().unwrap();
    let tree = readings[0].tree;
    let expected = constraint.mask_words();
    let mut charts = lock(&charts);
    let last = readings[0].state;
    let others: Vec<SequenceId> = (0..4).map(|_| charts.fork(own).unwrap()).collect();
    let released = charts.fork(own).unwrap();
    charts.release(released).unwrap();
    let viable = charts.tier(own, last).unwrap().viable;
    let refused = (0..viable.len()).find(|&terminal| !viable.contains(terminal)).unwrap();
    let refused = edge(last, refused);
    let unknown = [Edge { from: StateId(900), ..refused[0] }];
    let here = [After { at: At::State(last), tree }];
    let then = [After { at: At::Made(0), tree }];
    let turn = |sequence, steps, readings| Turn { sequence, steps, readings };
    // What is asked of a state that nothing viable leads to is empty.
    let (none, bad): ([&[Edge]; 1], [&[Edge]; 1]) = ([&refused], [&unknown]);
    let turns = [
        turn(others[0], &[][..], &here[..]),
        turn(others[1], &none, &then),
        turn(others[2], &bad, &then),
        turn(released, &[], &here),
        turn(others[0], &[], &here),
        turn(others[3], &[], &then),
    ];
    let (masks, turned) = charts.turn(&turns, 1).unwrap();
    let words = charts.read_masks(masks).unwrap();
    assert!(words.iter().all(|row| row.len() == expected));
    let is_empty = |row: &Vec<u32>| row.iter().all(|&word| word == 0);
    let empty: Vec<bool> = words.iter().map(is_empty).collect();
    assert_eq!(empty, [false, true, true, true, true, true], "{turned:?}");
    assert_eq!((&turned[0].states, &turned[0].mask), (&Ok(vec![]), &Ok(())));
    assert_eq!((&turned[1].states, &turned[1].mask), (&Ok(vec![None]), &Ok(())));
    assert_eq!(turned[2].states, Err(ChartError::Unknown { what: "state", id: 900 }));
    assert!(matches!(turned[3].states, Err(ChartError::Released { .. })));
    assert!(matches!(turned[4].states, Err(ChartError::Unknown { .. })));
    assert!(matches!(turned[5].mask, Err(ChartError::Unknown { .. })));
}

#[test]
fn a_device_lost_in_a_turn_leaves_what_was_noted() {
    if !can_run() {
        return;
    }
    let (_, cfg) = grammars().remove(2);
    let form = NormalForm::binary(&cfg);
    let mut engine = valiant(&cfg);
    let word = word(&mut engine.clone(), &mut Random::new(3), 12);
    // A launch makes the sequences; then a turn without readings is a step and an empty mask.
    let shim = ShimOptions { lost_at: Some(1 + 2 * 8), ..ShimOptions::default() };
    let mut charts = Charts::on_shim(shim, small()).unwrap();
    let grammar = charts.add_grammar(&Image::new(&cfg, &form).unwrap()).unwrap();
    let ids: Vec<SequenceId> = charts.create(&[grammar; 2]).into_iter().map(Result::unwrap).collect();
    for (at, &terminal) in word.iter().enumerate() {
        let edges = edge(StateId::new(at.min(8)), terminal);
        let steps: [&[Edge]; 1] = [&edges];
        let turns = [0, 1].map(|which| Turn { sequence: ids[which], steps: &steps, readings: &[] });
        match charts.turn(&turns, 1) {
            Ok((_, turned)) => {
                let state = engine.extend(&edges).unwrap();
                assert!(turned.iter().all(|turned| turned.states == Ok(vec![state])), "{at}");
            }
            Err(error) => {
                assert!(at >= 8 && matches!(error, ChartError::Device(DeviceError::Lost { .. })), "{at}")
            }
        }
    }
    assert_eq!(engine.n_states(), 9);
    for id in ids {
        let mut again = valiant(&cfg);
        charts.replay(id, &mut again).unwrap();
        assert_eq!(again.n_states(), 9);
        assert_eq!(again.viable(StateId(8)), engine.viable(StateId(8)));
    }
}

#[test]
fn ids_of_released_sequences_stay_errors() {
    if !can_run() {
        return;
    }
    let (_, cfg) = grammars().remove(0);
    let mut charts = charts(0, PoolOptions { sequences: 1, ..small() });
    let grammar = charts.add_grammar(&Image::new(&cfg, &NormalForm::binary(&cfg)).unwrap()).unwrap();
    let old = charts.create(&[grammar]).remove(0).unwrap();
    charts.release(old).unwrap();
    let new = charts.create(&[grammar]).remove(0).unwrap();
    assert_ne!(old, new);
    let gone = ChartError::Released { slot: 0 };
    assert_eq!(charts.extend(&[(old, &edge(StateId(0), 0))]), [Err(gone.clone())]);
    assert_eq!(charts.n_states(old), Err(gone.clone()));
    assert_eq!(charts.release(old), Err(gone.clone()));
    assert_eq!(charts.rollback(old, 1), Err(gone.clone()));
    assert_eq!(charts.fork(old), Err(gone));
    assert_eq!(charts.extend(&[(new, &edge(StateId(0), 0))]), [Ok(Some(StateId(1)))]);
}

#[test]
fn trees_have_a_bound() {
    if !can_run() {
        return;
    }
    let constraint = constraint(LexerMode::Longest);
    let tokens = constraint.vocabulary().encode("select (select ab + 1.5, x from t;) from t;").unwrap();
    // With room for all trees, and with room for the largest only.
    let mut largest = 0;
    let charts = pool(0, PoolOptions { threads: 64, ..small() });
    let mut output = Output::new(&constraint, &charts, 1).unwrap();
    let mut known = lock(&charts).tree_words();
    for &token in &tokens {
        output.readings().unwrap();
        largest = largest.max(lock(&charts).tree_words() - known);
        known = lock(&charts).tree_words();
        output.advance(token).unwrap();
    }
    assert!(known > largest && largest > 0);
    let options = PoolOptions { threads: 64, tree_words: largest, ..small() };
    let charts = pool(0, options);
    let mut output = Output::new(&constraint, &charts, 1).unwrap();
    let first = output.readings().unwrap();
    let mut matcher = constraint.matcher().unwrap();
    let mut words = vec![0; constraint.mask_words()];
    for &token in &tokens {
        output.mask_into(&mut words).unwrap();
        assert_eq!(words, matcher.mask().unwrap().into_words());
        assert!(lock(&charts).tree_words() <= largest);
        output.advance(token).unwrap();
        matcher.advance(token).unwrap();
    }
    // A reading of a tree that was dropped is an error of its row; the others are answered.
    assert!(!lock(&charts).has_tree(first[0].tree));
    let now: Vec<Reading> = output.readings().unwrap();
    let (masks, _) = lock(&charts).masks(&[first.clone(), now], 1);
    assert!(matches!(masks[0], Err(ChartError::TreeDropped { .. })), "{:?}", masks[0]);
    assert_eq!(
        masks[1],
        matcher.mask().map(TokenMask::into_words).map_err(|_| masks[0].clone().unwrap_err())
    );
    let charts = pool(0, PoolOptions { tree_words: 3, ..small() });
    let mut output = Output::new(&constraint, &charts, 1).unwrap();
    assert!(output.readings().unwrap_err().to_string().contains("tree_words"));
}

#[test]
fn a_turn_that_is_refused_can_be_made_again() {
    if !can_run() {
        return;
    }
    let (_, cfg) = grammars().remove(2);
    let mut engine = valiant(&cfg);
    let word = word(&mut engine.clone(), &mut Random::new(3), 12);
    // A launch makes the sequences; then a turn without readings is a step and an empty mask, the second of
    // which is refused.
    let shim = ShimOptions { refused_at: Some(1 + 2 * 8 + 1), ..ShimOptions::default() };
    let mut charts = Charts::on_shim(shim, small()).unwrap();
    let grammar = charts.add_grammar(&Image::new(&cfg, &NormalForm::binary(&cfg)).unwrap()).unwrap();
    let ids: Vec<SequenceId> = charts.create(&[grammar; 2]).into_iter().map(Result::unwrap).collect();
    let mut n_refused = 0;
    for (at, &terminal) in word.iter().enumerate() {
        let edges = edge(StateId::new(at), terminal);
        let steps: [&[Edge]; 1] = [&edges];
        let turns = [0, 1].map(|which| Turn { sequence: ids[which], steps: &steps, readings: &[] });
        let turned = charts.turn(&turns, 1).or_else(|error| {
            assert!(
                at == 8 && matches!(error, ChartError::Device(DeviceError::Refused { .. })),
                "{at}: {error}"
            );
            n_refused += 1;
            charts.turn(&turns, 1)
        });
        let state = engine.extend(&edges).unwrap();
        assert!(turned.unwrap().1.iter().all(|turned| turned.states == Ok(vec![state])), "{at}");
    }
    assert_eq!(n_refused, 1);
    ids.iter().for_each(|&id| same(&mut charts, id, &engine, "after a refused turn"));
}
