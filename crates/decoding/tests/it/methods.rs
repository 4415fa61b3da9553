//! What the methods say of random canvases, against brute force: what is proven is so, and what is not is
//! wrong only where the method may be.

use std::collections::HashMap;

use anygram_any_order::{Canvas, End, Filling, Floor, LogProbs, Slot, Solver};
use anygram_decoding::{Lookahead, Method, Methods};
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Engine, Limits};
use anygram_testkit::random::Random;
use anygram_vocab::TokenId;

use crate::drawn::{Case, MODES, MOST, are_few, seeds, shows};

/// Marginals for the holes of a canvas: of all tokens, or of some.
fn marginals(random: &mut Random, canvas: &Canvas, size: usize) -> LogProbs {
    let n_holes = canvas.holes().count();
    let value = |random: &mut Random| match random.below(10) {
        0 => f32::NEG_INFINITY,
        _ => -(random.below(4_000) as f32) / 1_000.0,
    };
    if random.chance(40) {
        let values: Vec<f32> = (0..n_holes * size).map(|_| value(random)).collect();
        return LogProbs::dense(values, size).unwrap();
    }
    let percent = *random.choose(&[20, 50, 90]);
    let listed = |random: &mut Random| -> Vec<(TokenId, f64)> {
        let tokens: Vec<usize> = (0..size).filter(|_| random.chance(percent)).collect();
        tokens.into_iter().map(|token| (TokenId::new(token), value(random).into())).collect()
    };
    let rows: Vec<_> = (0..n_holes).map(|_| listed(random)).collect();
    LogProbs::listed(&rows, *random.choose(&[Floor::BelowListed, Floor::At(-1.5), Floor::Excluded])).unwrap()
}

/// Whether a canvas without gaps is completable: by brute force. Whether prefixes are viable that knows only
/// as far as it looks, so of each row of tokens the solver is asked, whose own tests compare it.
fn is_completable(case: &Case, solver: &mut Solver, canvas: &Canvas) -> Option<bool> {
    if canvas.end() != (End::Prefix { remaining: None }) {
        return case.brute(canvas, MOST).map(|(answers, _)| answers.completable);
    }
    let (size, holes) = (case.vocab.len(), canvas.holes().collect::<Vec<_>>());
    let n_rows = size.checked_pow(holes.len() as u32).filter(|&n| n <= MOST)?;
    let mut is_known = true;
    for row in 0..n_rows {
        let mut filled = canvas.clone();
        holes.iter().fold(row, |left, &hole| {
            filled.set(hole, TokenId::new(left % size)).unwrap();
            left / size
        });
        match solver.completable(&filled).unwrap().decided() {
            Some(true) => return Some(true),
            answer => is_known &= answer.is_some(),
        }
    }
    is_known.then_some(false)
}

#[test]
fn methods_are_wrong_only_where_they_say_so() {
    let mut wrong: HashMap<(Method, bool), usize> = HashMap::new();
    let (mut n_yes, mut n_no) = (0, 0);
    for seed in seeds() {
        for mode in MODES {
            let case = Case::new(seed, mode);
            let limits = Limits { canvas_steps: 600_000, ..Limits::default() };
            let Some(constraint) = case.constraint(Engine::Earley, limits).unwrap() else { continue };
            let mut random = Random::new(seed ^ 0x3e7d);
            let mut solver = Solver::new(&constraint).unwrap();
            let mut methods = Methods::new(&constraint).unwrap();
            for canvas in case.canvases.iter().filter(|canvas| !canvas.slots().contains(&Slot::Gap)) {
                let log_probs = marginals(&mut random, canvas, case.vocab.len());
                let Some(is_completable) = is_completable(&case, &mut solver, canvas) else { continue };
                *(if is_completable { &mut n_yes } else { &mut n_no }) += 1;
                for method in Method::ALL {
                    for log_probs in [None, Some(&log_probs)] {
                        let lookahead = Lookahead { seed, ..Lookahead::default() };
                        let verdict = methods.completable(canvas, method, log_probs, lookahead).unwrap();
                        let again = methods.completable(canvas, method, log_probs, lookahead).unwrap();
                        assert_eq!(verdict, again, "the same seed, the same verdict");
                        let question = format!("seed {seed}, {mode:?}, {canvas:?}, {method:?}: {verdict:?}");
                        let Some(says) = verdict.decision.decided() else {
                            assert_eq!(mode, LexerMode::Contextual, "{question}");
                            continue;
                        };
                        if let Some(witness) = verdict.witness() {
                            shows(&case, canvas, witness)
                                .unwrap_or_else(|error| panic!("{question}: {error}"));
                            let filled = witness.slots.iter().map(|filling| match filling {
                                Filling::Token(token) => Slot::Fixed(*token),
                                Filling::Tokens(_) => panic!("{question}"),
                            });
                            let filled = Canvas::new(filled.collect(), canvas.end());
                            assert!(solver.completable(&filled).unwrap().is_yes(), "{question}");
                        }
                        if says == is_completable {
                            continue;
                        }
                        assert!(!verdict.proven, "{question}");
                        let may_be_wrong = match method {
                            Method::Exact => false,
                            Method::Lookahead => !says,
                            _ => says,
                        };
                        assert!(may_be_wrong, "{question}");
                        *wrong.entry((method, says)).or_default() += 1;
                    }
                }
            }
        }
    }
    println!("{n_yes} completable, {n_no} not, each asked with and without marginals; wrong: {wrong:?}");
    assert!(are_few() || n_yes > 50 && n_no > 50);
    let n_wrong = |method, says| wrong.get(&(method, says)).copied().unwrap_or(0);
    assert!(are_few() || n_wrong(Method::Intersection, true) > 0 && n_wrong(Method::Lookahead, false) > 0);
}
