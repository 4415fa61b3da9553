//! Runs that somebody else drives, several beside each other, prepared or given tokens.

use super::*;

#[test]
fn runs_side_by_side_are_those_of_one_thread() {
    use rayon::prelude::*;
    let constraint = brackets();
    let run = |seed: u64| {
        let named = &STRATEGIES[seed as usize % STRATEGIES.len()];
        let options = DecodeOptions { steps: 5, seed, ..DecodeOptions::default() };
        let options =
            DecodeOptions { sampling: Sampling { temperature: 0.8, ..Sampling::default() }, ..options };
        let decoded =
            decode(&constraint, named.name, &holes(12), &mut Table::new(6, MASK, 4.0, seed), &options);
        (decoded.canvas, decoded.trace.events().to_vec())
    };
    let alone: Vec<_> = (0..60).map(run).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let together: Vec<_> = pool.install(|| (0..60).into_par_iter().map(run).collect());
    assert!(alone == together);
}

/// A run that somebody else drives, with preparations or without, is the loop's. So is one whose rows list
/// all tokens.
#[test]
fn a_session_is_the_loop() {
    let mut n_runs = 0;
    for seed in seeds() {
        let Some((case, constraint, size)) = random_case(seed, Limits::default()) else { continue };
        let mut random = Random::new(seed ^ 0x5e55);
        for named in STRATEGIES.iter().filter(|named| !asks_long(named, &constraint)) {
            let canvas = random_canvas(&case, &mut random);
            let options = any_options(&mut random, seed);
            let open = *random.choose(&[OpenSlots::Mask(TokenId(0)), OpenSlots::Noise, OpenSlots::Next]);
            if asks_again(&options) && open == OpenSlots::Next {
                continue;
            }
            let question = format!("seed {seed}, {}, {canvas:?}, {open:?}, {options:?}", named.name);
            let table = || Table::new(size, open, 4.0, seed);
            let mut decoder = Decoder::new(&constraint, named.make(&constraint).unwrap());
            let whole = decoder.decode(&canvas, &mut table(), &options);
            let Some(whole) = unless_undecided(&constraint, whole, &question) else { continue };
            for (prepares, lists) in [(false, false), (true, false), (true, true)] {
                let mut decoder = Decoder::new(&constraint, named.make(&constraint).unwrap());
                let mut model = table();
                let mut session = decoder.begin(&canvas, open, &options).unwrap();
                while let Some(view) = decoder.view(&mut session).unwrap() {
                    let mut values = vec![0.0; view.wanted.len() * size];
                    model.log_probs(&view, &mut values).unwrap();
                    if prepares {
                        decoder.prepare(&mut session).unwrap();
                    }
                    let rows = listed(&values, size);
                    let answer = if lists {
                        Answer::Rows(&rows)
                    } else {
                        Answer::Dense { values: &values, columns: size }
                    };
                    decoder.answer(&mut session, answer, None).unwrap();
                }
                let events = session.clone().decoded();
                if !lists {
                    assert_eq!(events.trace.events(), whole.trace.events(), "{question}");
                }
                // Rounding may change which of two slots is surer, and what is drawn from completions.
                let is_alone = options.order == Order::Confidence && options.block == Some(1);
                let is_same = !lists || is_alone && named.name != "sample";
                if is_same {
                    assert_eq!(events.canvas, whole.canvas, "{question}");
                }
                if is_same || is_exact(named) {
                    assert_eq!(events.is_stuck, whole.is_stuck, "{question}");
                }
            }
            n_runs += 1;
        }
    }
    assert!(seeds().len() < 20 || n_runs > 100, "{n_runs} runs");
}

/// Rows are prepared for a canvas that is another one once tokens are taken back.
#[test]
fn a_prepared_run_takes_back_alike() {
    let constraint = brackets();
    let revision = Revision::TakeBack { below: 0.6, most: 8 };
    let options = DecodeOptions { steps: 5, revision, ..DecodeOptions::default() };
    let mut n_taken = 0;
    for seed in 0..100 {
        for name in ["exact", "compatible"] {
            let run = |prepares: bool| {
                let mut model = Table::new(6, MASK, 6.0, seed);
                let mut decoder = Decoder::new(&constraint, make(&constraint, name));
                let mut session = decoder.begin(&holes(10), MASK, &options).unwrap();
                while let Some(view) = decoder.view(&mut session).unwrap() {
                    let mut values = vec![0.0; view.wanted.len() * 6];
                    model.log_probs(&view, &mut values).unwrap();
                    if prepares {
                        decoder.prepare(&mut session).unwrap();
                    }
                    let answer = Answer::Dense { values: &values, columns: 6 };
                    decoder.answer(&mut session, answer, None).unwrap();
                }
                session.decoded()
            };
            let decoded = run(false);
            assert_eq!(run(true).trace.events(), decoded.trace.events(), "seed {seed}, {name}");
            n_taken += decoded.trace.events().iter().filter_map(taken_back).count();
        }
    }
    assert!(n_taken > 100, "{n_taken} taken back");
}

/// All tokens of each row, with their log-probabilities.
fn listed(values: &[f32], size: usize) -> LogProbs {
    let row = |row: &[f32]| {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let all = f64::from(top) + row.iter().map(|value| f64::from(value - top).exp()).sum::<f64>().ln();
        (0..).zip(row).map(|(id, &value)| (TokenId(id), f64::from(value) - all)).collect()
    };
    let rows: Vec<Vec<_>> = values.chunks(size).map(row).collect();
    LogProbs::listed(&rows, Floor::default()).unwrap()
}

/// Tokens of a sampler of the model's own come first; for what is refused, the slot's next.
#[test]
fn given_tokens_are_tried_first() {
    let constraint = brackets();
    let mut decoder = Decoder::new(&constraint, make(&constraint, "exact"));
    let mut session = decoder.begin(&holes(3), MASK, &DecodeOptions::default()).unwrap();
    let values = [[3.0, 2.0, 1.0, 0.0, 0.5, 9.0]; 3].concat();
    let answer = Answer::Dense { values: &values, columns: 6 };
    assert_eq!(decoder.view(&mut session).unwrap().unwrap().wanted, [0, 1, 2]);
    // The first cannot be: no sentence begins with ")".
    let given = [(0, TokenId(1)), (2, TokenId(1))];
    decoder.answer(&mut session, answer, Some(&given)).unwrap();
    let fixed = |id| Slot::Fixed(TokenId(id));
    assert_eq!(session.slots(), [fixed(0), Slot::Hole, fixed(1)]);
    assert!(decoder.answer(&mut session, answer, None).is_err(), "the view was answered");
    assert_eq!(decoder.view(&mut session).unwrap().unwrap().wanted, [1]);
    let short = decoder.answer(&mut session, answer, None).unwrap_err();
    assert!(matches!(short, DecodeError::Rows { n_rows: 3, n_wanted: 1 }), "{short}");
    let logits = LogProbs::listed(&[vec![(TokenId(2), 3.0)]], Floor::default()).unwrap();
    let shares = decoder.answer(&mut session, Answer::Rows(&logits), None).unwrap_err();
    assert!(shares.to_string().contains("log_softmax"), "{shares}");
    // Nothing that is listed can stand there; a completion can.
    let listed = LogProbs::listed(&[vec![(TokenId(0), -0.1)]], Floor::default()).unwrap();
    decoder.answer(&mut session, Answer::Rows(&listed), None).unwrap();
    assert!(decoder.view(&mut session).unwrap().is_none());
    let decoded = session.clone().decoded();
    assert!(is_sentence(&constraint, &decoded), "{decoded:?}");
    let next = decoder.begin(&holes(3), MASK, &DecodeOptions::default()).unwrap();
    assert_eq!(next.slots(), [Slot::Hole; 3]);
    assert!(matches!(decoder.view(&mut session), Err(DecodeError::Stale)));
}
