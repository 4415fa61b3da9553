//! What holds of every strategy: it ends as asked, and what it calls proven is so.

use super::*;

/// Whatever the model, the order, the pace and the revision: `exact` and its kin fill every canvas that is
/// completable, and all others leave nothing behind that they say is proven and is not. All runs can be
/// repeated, on fresh tables and on warm ones.
#[test]
fn every_strategy_with_any_options() {
    let (mut n_exact, mut n_stuck, mut n_others, mut n_sentences) = (0, 0, 0, 0);
    for seed in seeds() {
        let Some((case, constraint, size)) = random_case(seed, Limits::default()) else { continue };
        let mut random = Random::new(seed ^ 0x100b);
        let mut solver = Solver::new(&constraint).unwrap();
        let mut decoders: Vec<Decoder> = STRATEGIES
            .iter()
            .map(|named| Decoder::new(&constraint, named.make(&constraint).unwrap()))
            .collect();
        for _ in 0..6 {
            let canvas = random_canvas(&case, &mut random);
            let is_completable = solver.completable(&canvas).unwrap().decided();
            let options = any_options(&mut random, seed);
            let open = *random.choose(&[OpenSlots::Mask(TokenId(0)), OpenSlots::Noise, OpenSlots::Next]);
            let sharpness = *random.choose(&[0.5, 4.0, 20.0]);
            if asks_again(&options) && open == OpenSlots::Next {
                continue;
            }
            for (named, decoder) in STRATEGIES.iter().zip(&mut decoders) {
                if asks_long(named, &constraint) {
                    continue;
                }
                let question = format!("seed {seed}, {}, {canvas:?}, {open:?}, {options:?}", named.name);
                let is_exact = is_exact(named);
                let run = |decoder: &mut Decoder| {
                    let run = decoder.decode(&canvas, &mut Table::new(size, open, sharpness, seed), &options);
                    unless_undecided(&constraint, run, &question)
                };
                let Some(decoded) = run(decoder) else {
                    assert!(!is_exact, "{question}");
                    continue;
                };
                if seed % 4 == 0 {
                    let again = run(&mut Decoder::new(&constraint, named.make(&constraint).unwrap()));
                    let again = again.expect("it was decided");
                    assert_eq!(decoded.trace.events(), again.trace.events(), "{question}");
                    assert_eq!(decoded.canvas, again.canvas, "{question}");
                }
                assert_eq!(decoded.is_stuck, decoded.tokens().is_none(), "{question}");
                let given = canvas.slots().iter().zip(decoded.canvas.slots());
                assert!(given.clone().all(|(old, new)| *old == Slot::Hole || old == new), "{question}");
                let ends = solver.completable(&decoded.canvas).unwrap().decided() == Some(true);
                if is_exact && is_completable == Some(true) {
                    assert!(!decoded.is_stuck && ends, "{question}: {decoded:?}");
                    n_exact += 1;
                }
                if !is_exact {
                    n_stuck += usize::from(decoded.is_stuck);
                    n_others += 1;
                    n_sentences += usize::from(!decoded.is_stuck && ends);
                }
            }
        }
    }
    println!(
        "{n_exact} runs of `exact` and its kin; of {n_others} others {n_stuck} stuck, {n_sentences} ended as \
         asked"
    );
    assert!(seeds().len() < 20 || n_exact > 100);
}

/// Each yes that a strategy calls proven within the loop is one of the solver.
#[test]
fn what_is_proven_is_so() {
    let n_checked = check_proofs(|seed| random_case(seed, Limits::default()));
    println!("{n_checked} proven judgements");
    assert!(seeds().len() < 20 || n_checked > 500);
}

/// Also where tokens of the vocabulary spell only some of the texts that a mask speaks of.
#[test]
fn what_is_proven_is_so_whatever_the_vocabulary_lacks() {
    let n_checked = check_proofs(lacking_case);
    println!("{n_checked} proven judgements");
    assert!(seeds().len() < 20 || n_checked > 500);
}

/// A mask speaks of texts: `c` may follow `a`, but no token says it. And a budget leaves room, but no EOS may
/// fill it.
#[test]
fn masks_prove_only_what_fills_the_holes() {
    let judged = |grammar: &str, tokens: &str, eos: Vec<u32>, name: &str, canvas: &Canvas| {
        let constraint = constraint(grammar, tokens, &LoadOptions { eos, ..LoadOptions::default() });
        let mut model = Table::new(3, OpenSlots::Noise, 1.0, 0);
        let decoded = decode(&constraint, name, canvas, &mut model, &DecodeOptions::default());
        let proven: Vec<bool> = decoded.trace.proposals().map(|one| one.judgement.proven).collect();
        (proven, decoded.is_stuck)
    };
    let prefix = |n| Canvas::new(vec![Slot::Hole; n], End::Prefix { remaining: None });
    let (plain, budget) = ("forced-sequential", "forced-sequential-with-budget");
    let (ac, tokens) = (r#"start: "a" "c""#, r#"["a","b",null]"#);
    assert_eq!(judged(ac, tokens, vec![2], plain, &prefix(2)), (vec![false], true));
    assert_eq!(judged(ac, tokens, vec![2], plain, &prefix(1)), (vec![true], false));
    let (a, tokens) = (r#"start: "a""#, r#"["a","b",null]"#);
    assert_eq!(judged(a, tokens, vec![], budget, &holes(2)), (vec![false], true));
    assert_eq!(judged(a, tokens, vec![], budget, &holes(1)), (vec![true], false));
    assert_eq!(judged(a, tokens, vec![2], budget, &holes(2)), (vec![true, true], false));
}

/// How many judgements are called proven; all of them are asked again.
fn check_proofs(case: impl Fn(u64) -> Option<(RandomCase, Constraint, usize)>) -> usize {
    let mut n_checked = 0;
    for seed in seeds() {
        let Some((case, constraint, size)) = case(seed) else { continue };
        let mut random = Random::new(seed ^ 0x77);
        let mut solver = Solver::new(&constraint).unwrap();
        for _ in 0..4 {
            let canvas = random_canvas(&case, &mut random);
            for named in STRATEGIES.iter().filter(|named| !asks_long(named, &constraint)) {
                let options = DecodeOptions { steps: 4, block: None, seed, ..DecodeOptions::default() };
                let mut model = Table::new(size, OpenSlots::Mask(TokenId(0)), 3.0, seed);
                let mut decoder = Decoder::new(&constraint, named.make(&constraint).unwrap());
                let question = format!("seed {seed}, {}, {canvas:?}\n{case}", named.name);
                let decoded = decoder.decode(&canvas, &mut model, &options);
                let Some(decoded) = unless_undecided(&constraint, decoded, &question) else { continue };
                let mut replayed = canvas.clone();
                for event in decoded.trace.events() {
                    match event {
                        Event::Proposed(proposal) => {
                            let before = replayed.set(proposal.slot, proposal.token).unwrap();
                            assert_eq!(before, Slot::Hole);
                            let asked = solver.completable(&replayed).unwrap().decided();
                            // At a limit the solver does not know.
                            if proposal.judgement.proven && asked.is_some() {
                                assert!(
                                    asked == Some(proposal.judgement.kept),
                                    "seed {seed}, {}, {replayed:?}: {proposal:?}\n{case}",
                                    named.name
                                );
                                n_checked += 1;
                            }
                            if !proposal.judgement.kept {
                                replayed.clear(proposal.slot).unwrap();
                            }
                        }
                        Event::Filled { slot, token, .. } => {
                            replayed.set(*slot, *token).unwrap();
                        }
                        _ => {}
                    }
                }
                assert_eq!(replayed.slots(), decoded.canvas.slots(), "the trace tells all");
                assert_eq!(decoded.trace.events().len(), decoded.trace.micros().len());
            }
        }
    }
    n_checked
}

#[test]
fn what_cannot_be_is_said() {
    let constraint = brackets();
    let run = |model: &mut dyn Model, options: DecodeOptions| {
        let strategy = Asked::new(&constraint, Method::None).unwrap();
        Decoder::new(&constraint, Box::new(strategy)).decode(&holes(3), model, &options)
    };
    let table = |size, open| Table::new(size, open, 1.0, 1);
    let plain = DecodeOptions::default();
    let error = run(&mut table(3, MASK), plain).unwrap_err();
    assert!(matches!(error, DecodeError::Columns { columns: 3, size: 6 }), "{error}");
    for options in [
        DecodeOptions { pace: Pace::Tokens(0), ..plain },
        DecodeOptions { block: Some(0), ..plain },
        DecodeOptions { sampling: Sampling { temperature: f64::NAN, ..Sampling::default() }, ..plain },
        DecodeOptions { sampling: Sampling { top_p: Some(1.5), ..Sampling::default() }, ..plain },
        DecodeOptions { revision: Revision::TakeBack { below: -0.1, most: 1 }, ..plain },
        DecodeOptions { revision: Revision::Edit { above: 1.1, most: 1 }, ..plain },
        DecodeOptions { pace: Pace::EntropyBound(f64::NAN), ..plain },
    ] {
        assert!(matches!(run(&mut table(6, MASK), options), Err(DecodeError::Options(_))), "{options:?}");
    }
    let next = run(&mut table(6, OpenSlots::Next), DecodeOptions::renoising());
    assert!(matches!(next, Err(DecodeError::Options(_))));
    struct Broken;
    impl Model for Broken {
        fn vocabulary_size(&self) -> usize {
            8
        }
        fn open_slots(&self) -> OpenSlots {
            MASK
        }
        fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
            if view.step == 0 {
                rows.fill(f32::NAN)
            } else {
                return Err("out of tokens".into());
            }
            Ok(())
        }
    }
    assert!(matches!(run(&mut Broken, plain), Err(DecodeError::Canvas(_))));
    // A row that excludes everything: `none` is stuck, `exact` knows better.
    struct Silent;
    impl Model for Silent {
        fn vocabulary_size(&self) -> usize {
            8
        }
        fn open_slots(&self) -> OpenSlots {
            MASK
        }
        fn log_probs(&mut self, _view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
            rows.fill(f32::NEG_INFINITY);
            Ok(())
        }
    }
    assert!(run(&mut Silent, plain).unwrap().is_stuck);
    for by in [ExactBy::Admissible, ExactBy::Compatible, ExactBy::Best, ExactBy::Sample] {
        let exact = Exact::new(&constraint, by).unwrap();
        let decoded =
            Decoder::new(&constraint, Box::new(exact)).decode(&holes(3), &mut Silent, &plain).unwrap();
        assert!(is_sentence(&constraint, &decoded));
        let rescued = |event: &Event| matches!(event, Event::Filled { why: Why::Rescue, .. });
        assert!(decoded.trace.events().iter().any(rescued));
    }
}

#[test]
fn names_are_found_once() {
    for named in STRATEGIES {
        assert_eq!(STRATEGIES.iter().filter(|other| other.name == named.name).count(), 1);
        assert_eq!(Named::find(named.name).unwrap().about, named.about);
    }
    assert!(Named::find("lave").is_none());
    for name in ["exact", "lookahead", "lookahead:N=3:tau=20:published"] {
        assert_eq!(Configured::parse(name).unwrap().name(), name);
    }
    for wrong in ["", "lave", "exact:N=3", "lookahead:N", "lookahead:N=0", "lookahead:tau=x", "lookahead:"] {
        let error = Configured::parse(wrong).unwrap_err();
        assert!(error.to_string().contains("`lookahead` with parameters"), "{error}");
    }
}
