//! Pools: batches, forks, pages that run out, ANCESTOR↑, and devices that are lost.

use anygram_cuda::{ChartError, Charts, DeviceError, GrammarId, Image, PoolOptions, SequenceId, ShimOptions};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::TerminalId;
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anygram_testkit::random::Random;

use crate::common::{can_run, charts as charts_on, grammars, saturated, small, word};

pub fn valiant(cfg: &Cfg) -> Valiant {
    Valiant::new(cfg.clone(), RecognizerLimits::default()).unwrap()
}

fn add(charts: &mut Charts, cfg: &Cfg) -> GrammarId {
    charts.add_grammar(&Image::new(cfg, &NormalForm::binary(cfg)).unwrap()).unwrap()
}

pub fn edge(from: StateId, terminal: usize) -> [Edge; 1] {
    [Edge { from, terminal: Some(TerminalId::new(terminal)) }]
}

/// Holds all states of a sequence against an engine of the CPU that has the same.
pub fn same(charts: &mut Charts, sequence: SequenceId, engine: &Valiant, context: &str) {
    assert_eq!(charts.n_states(sequence).unwrap(), engine.n_states(), "{context}");
    for state in (0..engine.n_states()).map(StateId::new) {
        let tier = charts.tier(sequence, state).unwrap();
        assert_eq!(tier.predicted, *engine.predicted(state), "{context}, {state:?}");
        // Only what has rows is stored.
        assert!(
            tier.rows.iter().all(|(_, words)| words.iter().any(|&word| word != 0)),
            "{context}, {state:?}"
        );
        assert_eq!(
            (&tier.viable, tier.is_sentence),
            (engine.viable(state), engine.is_sentence(state)),
            "{context}"
        );
        for left in engine.form().left_children() {
            let words =
                tier.rows.iter().find(|(symbol, _)| *symbol == left).map_or(&[][..], |(_, words)| words);
            let rows = (0..words.len() * 64).rev().filter(|row| words[row / 64] >> (row % 64) & 1 == 1);
            assert_eq!(
                rows.map(StateId::new).collect::<Vec<_>>(),
                engine.rows_of(state, left),
                "{context}, {left:?}"
            );
        }
    }
}

#[test]
fn batches_of_grammars_and_lengths_in_one_launch() {
    if !can_run() {
        return;
    }
    let all = grammars();
    let mut charts = charts_on(3, small());
    let ids: Vec<GrammarId> = all.iter().map(|(_, cfg)| add(&mut charts, cfg)).collect();
    let sequences: Vec<SequenceId> = charts.create(&ids).into_iter().map(Result::unwrap).collect();
    let mut engines: Vec<Valiant> = all.iter().map(|(_, cfg)| valiant(cfg)).collect();
    let words: Vec<Vec<usize>> = (0..)
        .zip(&engines)
        .map(|(at, engine)| word(&mut engine.clone(), &mut Random::new(at), 20 + 7 * at as usize))
        .collect();
    let mut ends: Vec<StateId> = engines.iter().map(|engine| engine.start()).collect();
    for at in 0..words.iter().map(Vec::len).max().unwrap() {
        let there: Vec<usize> = (0..words.len()).filter(|&which| at < words[which].len()).collect();
        let edges: Vec<[Edge; 1]> = there.iter().map(|&which| edge(ends[which], words[which][at])).collect();
        let requests: Vec<(SequenceId, &[Edge])> =
            there.iter().zip(&edges).map(|(&which, edges)| (sequences[which], &edges[..])).collect();
        for ((result, &which), edges) in charts.extend(&requests).into_iter().zip(&there).zip(&edges) {
            let expected = engines[which].extend(edges).unwrap();
            assert_eq!(result.unwrap(), expected, "{}", all[which].0);
            ends[which] = expected.unwrap();
        }
    }
    for ((&sequence, engine), (name, _)) in sequences.iter().zip(&engines).zip(&all) {
        same(&mut charts, sequence, engine, name);
    }
    // What is not viable is none, and changes nothing; what cannot be asked is an error of its own.
    let not_viable = (0..4).find(|&terminal| !engines[9].viable(ends[9]).contains(terminal)).unwrap();
    let refused = charts.extend(&[
        (sequences[4], &edge(ends[4], 0)),
        (sequences[9], &edge(ends[9], not_viable)),
        (sequences[0], &edge(StateId(5_000), 0)),
        (sequences[1], &edge(ends[1], 77)),
        (sequences[4], &edge(ends[4], 0)),
    ]);
    assert!(matches!(refused[0], Ok(Some(_))) && refused[1] == Ok(None), "{refused:?}");
    assert!(
        refused[2..].iter().all(|result| matches!(result, Err(ChartError::Unknown { .. }))),
        "{refused:?}"
    );
    same(&mut charts, sequences[9], &engines[9], "refused");
}

#[test]
fn forks_share_pages_and_go_their_own_ways() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in grammars().into_iter().enumerate() {
        let options = PoolOptions { page_words: 128, ..small() };
        let mut charts = charts_on(at as u64, options);
        let grammar = add(&mut charts, &cfg);
        let mut random = Random::new(at as u64);
        let mut known = vec![(charts.create(&[grammar]).remove(0).unwrap(), valiant(&cfg))];
        for _ in 0..120 {
            let n_known = known.len();
            let which = random.below(n_known);
            let (sequence, engine) = &mut known[which];
            match random.below(10) {
                0 if charts.sequences_in_use() < 12 => {
                    let before = charts.free_pages().unwrap();
                    let copy = (charts.fork(*sequence).unwrap(), engine.clone());
                    assert_eq!(charts.free_pages().unwrap(), before, "{name}: a fork takes no page");
                    known.push(copy);
                }
                1 => {
                    // Marks are numbers of states; an engine goes back by reading again.
                    let n_states = 1 + random.below(engine.n_states());
                    charts.rollback(*sequence, n_states).unwrap();
                    *engine = valiant(&cfg);
                    charts.replay(*sequence, engine).unwrap();
                }
                2 if n_known > 1 => {
                    let (sequence, _) = known.remove(which);
                    charts.release(sequence).unwrap();
                    assert!(charts.n_states(sequence).is_err());
                }
                _ => {
                    let from = StateId::new(engine.n_states() - 1);
                    let viable: Vec<usize> = engine.viable(from).iter().collect();
                    if viable.is_empty() {
                        continue;
                    }
                    let edges = edge(from, *random.choose(&viable));
                    let expected = engine.extend(&edges).unwrap();
                    assert_eq!(charts.extend(&[(*sequence, &edges)]).remove(0).unwrap(), expected, "{name}");
                }
            }
        }
        for (sequence, engine) in &known {
            same(&mut charts, *sequence, engine, name);
        }
        for (sequence, _) in known {
            charts.release(sequence).unwrap();
        }
        assert_eq!(charts.free_pages().unwrap(), options.pages, "{name}: every page came back");
    }
}

#[test]
fn a_sequence_without_pages_fails_alone() {
    if !can_run() {
        return;
    }
    let (_, cfg) = grammars().remove(0);
    let options = PoolOptions { pages: 6, page_words: 64, ..small() };
    let mut charts = charts_on(0, options);
    let grammar = add(&mut charts, &cfg);
    let ids: Vec<SequenceId> = charts.create(&[grammar; 3]).into_iter().map(Result::unwrap).collect();
    let mut engines = vec![valiant(&cfg); 3];
    let mut failed = [false; 3];
    for n in 0..200 {
        let edges: Vec<[Edge; 1]> =
            engines.iter().map(|engine| edge(StateId::new(engine.n_states() - 1), 0)).collect();
        let requests: Vec<(SequenceId, &[Edge])> =
            ids.iter().zip(&edges).map(|(&id, edges)| (id, &edges[..])).collect();
        for (at, result) in charts.extend(&requests).into_iter().enumerate() {
            match result {
                Ok(state) => assert_eq!(state, engines[at].extend(&edges[at]).unwrap(), "{n}"),
                Err(error) => {
                    assert_eq!(error, ChartError::OutOfPages { pages: 6 }, "{n}");
                    failed[at] = true;
                }
            }
        }
        if failed.iter().filter(|&&failed| failed).count() == 2 {
            break;
        }
    }
    assert!(failed.contains(&true), "six pages are not enough for all");
    for (&id, engine) in ids.iter().zip(&engines) {
        same(&mut charts, id, engine, "out of pages");
    }
    // With the pages of another it goes on.
    let first = failed.iter().position(|&failed| failed).unwrap();
    let other = (first + 1) % 3;
    charts.release(ids[other]).unwrap();
    let edges = edge(StateId::new(engines[first].n_states() - 1), 0);
    assert_eq!(
        charts.extend(&[(ids[first], &edges)]).remove(0).unwrap(),
        engines[first].extend(&edges).unwrap()
    );
    same(&mut charts, ids[first], &engines[first], "after release");
}

#[test]
fn limits_of_a_sequence_are_errors() {
    if !can_run() {
        return;
    }
    let (_, cfg) = grammars().remove(0);
    let image = Image::new(&cfg, &NormalForm::binary(&cfg)).unwrap();
    let mut charts = charts_on(0, PoolOptions { page_words: 8, ..small() });
    assert!(matches!(charts.add_grammar(&image), Err(ChartError::PageTooSmall { given: 8, .. })));
    for given in [0, 33, 1_056] {
        let refused = Charts::on_shim(ShimOptions::default(), PoolOptions { threads: given, ..small() });
        assert_eq!(refused.err(), Some(ChartError::Threads { given, most: 1_024 }));
    }
    for (options, expected) in [
        (PoolOptions { max_states: 40, ..small() }, ChartError::TooManyStates { limit: 40 }),
        (PoolOptions { max_pages: 2, page_words: 128, ..small() }, ChartError::TooManyPages { limit: 2 }),
    ] {
        let mut charts = charts_on(0, options);
        let grammar = charts.add_grammar(&image).unwrap();
        let id = charts.create(&[grammar]).remove(0).unwrap();
        let mut n = 0;
        let error = loop {
            match charts.extend(&[(id, &edge(StateId(n), 0))]).remove(0) {
                Ok(_) => n += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, expected);
        charts.rollback(id, 5).unwrap();
        assert_eq!(charts.extend(&[(id, &edge(StateId(4), 0))]).remove(0), Ok(Some(StateId(5))));
    }
    let mut charts = charts_on(0, PoolOptions { sequences: 2, ..small() });
    let grammar = charts.add_grammar(&image).unwrap();
    let created = charts.create(&[grammar; 3]);
    assert_eq!(created[2], Err(ChartError::TooManySequences { limit: 2 }));
    assert!(created[..2].iter().all(Result::is_ok));
}

#[test]
fn from_below_and_from_above_the_same_terminals_are_viable() {
    if !can_run() {
        return;
    }
    for (at, (name, cfg)) in grammars().into_iter().enumerate() {
        let mut charts = charts_on(at as u64, small());
        for form in [NormalForm::binary(&cfg), valiant_chomsky(&cfg).form().clone()] {
            let grammar = charts.add_grammar(&Image::new(&cfg, &form).unwrap()).unwrap();
            let id = charts.create(&[grammar]).remove(0).unwrap();
            let mut engine = valiant(&cfg);
            let word = word(&mut engine.clone(), &mut Random::new(2), 70);
            for &terminal in &word {
                let edges = edge(StateId::new(engine.n_states() - 1), terminal);
                engine.extend(&edges).unwrap();
                charts.extend(&[(id, &edges)]).remove(0).unwrap();
            }
            for state in (0..engine.n_states()).step_by(3).map(StateId::new) {
                let questions: Vec<_> = (0..cfg.n_terminals).map(|terminal| (id, state, terminal)).collect();
                let expected: Vec<bool> =
                    (0..cfg.n_terminals).map(|t| engine.viable(state).contains(t)).collect();
                assert_eq!(charts.ancestor_up(&questions).unwrap(), expected, "{name}, {state:?}");
            }
            charts.release(id).unwrap();
        }
    }
}

fn valiant_chomsky(cfg: &Cfg) -> Valiant {
    Valiant::chomsky(cfg.clone(), RecognizerLimits::default()).unwrap()
}

#[test]
fn a_lost_device_is_an_error_of_each_sequence_and_the_cpu_goes_on() {
    if !can_run() {
        return;
    }
    let (_, cfg) = grammars().remove(2);
    // One launch makes the sequences, each other extends all.
    let shim = ShimOptions { lost_at: Some(21), ..ShimOptions::default() };
    let mut charts = Charts::on_shim(shim, small()).unwrap();
    let grammar = add(&mut charts, &cfg);
    let ids: Vec<SequenceId> = charts.create(&[grammar; 2]).into_iter().map(Result::unwrap).collect();
    let mut engines = vec![valiant(&cfg); 2];
    let words: Vec<Vec<usize>> =
        (0..2).map(|seed| word(&mut engines[0].clone(), &mut Random::new(seed), 30)).collect();
    for at in 0..30 {
        let edges: Vec<[Edge; 1]> =
            words.iter().map(|word| edge(StateId::new(at.min(20)), word[at.min(20)])).collect();
        let requests: Vec<(SequenceId, &[Edge])> =
            ids.iter().zip(&edges).map(|(&id, edges)| (id, &edges[..])).collect();
        for ((result, engine), edges) in charts.extend(&requests).into_iter().zip(&mut engines).zip(&edges) {
            match result {
                Ok(state) if at < 20 => assert_eq!(state, engine.extend(edges).unwrap()),
                Err(ChartError::Device(DeviceError::Lost { .. })) if at >= 20 => {}
                other => panic!("{at}: {other:?}"),
            }
        }
    }
    for (&id, engine) in ids.iter().zip(&engines) {
        let mut again = valiant(&cfg);
        charts.replay(id, &mut again).unwrap();
        assert_eq!(again.n_states(), engine.n_states());
        let last = StateId::new(engine.n_states() - 1);
        assert_eq!(again.viable(last), engine.viable(last));
    }
}

#[test]
fn a_state_is_read_with_few_waits_however_many_pages_it_lies_in() {
    if !can_run() {
        return;
    }
    let cfg = saturated(&mut Random::new(1));
    let image = Image::new(&cfg, &NormalForm::binary(&cfg)).unwrap();
    // Pages so small that rows of a state are spread over many.
    let options = PoolOptions { page_words: 320, pages: 8_192, max_pages: 8_192, max_states: 256, ..small() };
    let mut charts = charts_on(2, options);
    let grammar = charts.add_grammar(&image).unwrap();
    let id = charts.create(&[grammar]).remove(0).unwrap();
    let mut engine = valiant(&cfg);
    for at in 0..100 {
        let edges = edge(StateId::new(at), 0);
        assert_eq!(charts.extend(&[(id, &edges)]).remove(0).unwrap(), engine.extend(&edges).unwrap());
    }
    for state in [40, 99, 100] {
        let before = charts.n_waits();
        let tier = charts.tier(id, StateId::new(state)).unwrap();
        // Where the record is, its header, the record, the rows.
        let n_waits = charts.n_waits() - before;
        assert!(
            n_waits <= 4 && tier.rows.len() > 8,
            "{n_waits} waits for {} rows of state {state}",
            tier.rows.len()
        );
    }
    same(&mut charts, id, &engine, "small pages");
}
