//! Random grammars, canvases and weights: the best completion against the exhaustive maximum, samples against
//! the exact distribution, by chi-square. In every lexer mode; most of the grammars are ambiguous.
//!
//! `ANYGRAM_SEED=17` replays one seed; `ANYGRAM_SEEDS=500` sets how many are drawn (default 25).

use std::collections::HashMap;
use std::sync::Arc;

use anygram_any_order::{
    Assignment, Canvas, CanvasError, Decision, End, Floor, LogProbs, SampleBy, SampleOptions, Slot, Solver,
    Tail, Weigher,
};
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Constraint, ErrorKind, Language, LanguageOptions, Limits};
use anygram_testkit::generate::{CALL, EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_testkit::text::{Sym, text_of};
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

const MODES: [LexerMode; 3] = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];

/// Assignments that are tried for one canvas.
const MOST: usize = 2_000;
const N_SAMPLES: usize = 2_000;

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(25)
}

struct Case {
    random: RandomCase,
    vocab: Vec<Option<Vec<u8>>>,
    eos: Vec<u32>,
    pad: Option<u32>,
    constraint: Constraint,
}

fn case(seed: u64, mode: LexerMode) -> Option<Case> {
    let case = RandomCase::in_mode(seed, mode);
    let mut random = Random::new(seed ^ 0x3e1);
    let mut vocab = case.vocab.clone();
    if random.chance(70) {
        vocab = vec![None, None];
        for _ in 0..random.between(2, 4) {
            vocab.push(random.choose(&case.vocab[2..]).clone());
        }
    }
    let mut special = |percent| {
        random.chance(percent).then(|| {
            vocab.push(None);
            vocab.len() as u32 - 1
        })
    };
    let (pad, second) = (special(60), special(30));
    let eos: Vec<u32> = [Some(EOS), second].into_iter().flatten().collect();
    let options = LanguageOptions { lexer: Some(mode), ties: case.ties, ..LanguageOptions::default() };
    let language = Language::new(case.grammar.clone(), &options).ok()?;
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let tokens = vocab.iter().map(|token| match token {
        Some(bytes) => format!("{{\"hex\":\"{}\"}}", hex(bytes)),
        None => "null".to_owned(),
    });
    let source = format!("[{}]", tokens.collect::<Vec<_>>().join(","));
    let options = LoadOptions { eos: eos.clone(), pad, ..LoadOptions::default() };
    let vocabulary =
        Vocabulary::from_bytes(anygram_vocab::Format::JsonArray, source.as_bytes(), &options).unwrap();
    let constraint = Constraint::new(Arc::new(language), vocabulary).unwrap();
    Some(Case { random: case, vocab, eos, pad, constraint })
}

impl Case {
    fn canvas(&self, random: &mut Random) -> Canvas {
        let row: Vec<u32> = random.choose(&self.random.tokens).to_vec();
        let fitting =
            |token: &u32| (*token as usize) < self.vocab.len() && self.vocab.len() == self.random.vocab.len();
        let mut slots: Vec<Slot> =
            row.into_iter().filter(fitting).take(4).map(|token| Slot::Fixed(TokenId(token))).collect();
        slots.iter_mut().filter(|_| random.chance(40)).for_each(|slot| *slot = Slot::Hole);
        let mut n_all = self.vocab.len().pow(slots.iter().filter(|slot| **slot == Slot::Hole).count() as u32);
        while n_all * self.vocab.len() <= MOST && slots.len() < 6 && (random.chance(80) || slots.is_empty()) {
            let fixed = TokenId(random.below(self.vocab.len()) as u32);
            slots.push(if random.chance(85) { Slot::Hole } else { Slot::Fixed(fixed) });
            n_all *= self.vocab.len();
        }
        let end = match random.below(4) {
            0 => End::Prefix { remaining: None },
            1 => End::Prefix { remaining: Some(random.below(3) as u32) },
            _ => End::Sentence,
        };
        Canvas::new(slots, end)
    }

    /// Every valid row of tokens.
    fn valid(&self, solver: &mut Solver, canvas: &Canvas) -> Option<Vec<Vec<TokenId>>> {
        let holes: Vec<usize> = canvas.holes().collect();
        let size = self.vocab.len();
        let n_all = size.checked_pow(holes.len() as u32).filter(|n| *n <= MOST)?;
        let oracle = self.random.oracle();
        let mut known: HashMap<Vec<Sym>, bool> = HashMap::new();
        let mut valid = Vec::new();
        for number in 0..n_all {
            let mut filled = canvas.clone();
            let mut left = number;
            for &hole in &holes {
                filled.set(hole, TokenId((left % size) as u32)).unwrap();
                left /= size;
            }
            let row = filled.slots().iter().map(|slot| match slot {
                Slot::Fixed(token) => *token,
                _ => unreachable!("all holes are filled"),
            });
            let row: Vec<TokenId> = row.collect();
            let end = row.iter().position(|token| self.eos.contains(&token.0));
            let (text, tail) = row.split_at(end.unwrap_or(row.len()));
            let is_tail = |token: &TokenId| self.eos.contains(&token.0) || self.pad == Some(token.0);
            let named = |token: &TokenId| token.0 == CALL && self.random.alphabet.contains(&Sym::Token(CALL));
            let is_text =
                |token: &TokenId| !is_tail(token) && (self.vocab[token.index()].is_some() || named(token));
            let is_valid = text.iter().all(is_text) && tail.iter().all(is_tail) && {
                if end.is_some() || canvas.end() == End::Sentence {
                    let ids: Vec<u32> = text.iter().map(|token| token.0).collect();
                    let text = text_of(&self.vocab, &ids);
                    *known.entry(text.clone()).or_insert_with(|| oracle.is_sentence(&text))
                } else {
                    // Of one row of tokens: the solver is checked against brute force by its own tests.
                    solver.completable(&filled).unwrap().decided()?
                }
            };
            if is_valid {
                valid.push(row);
            }
        }
        Some(valid)
    }
}

/// The weights as they were drawn: a row for each hole, of all tokens, and which are listed.
struct Weights {
    rows: Vec<Vec<(f64, bool)>>,
    log_probs: LogProbs,
}

fn weights(random: &mut Random, n_holes: usize, size: usize) -> Weights {
    // Multiples of a half, so that there are ties, or anything.
    let coarse = random.chance(50);
    let value = |random: &mut Random| match random.below(10) {
        0 => f64::NEG_INFINITY,
        _ if coarse => -0.5 * random.below(6) as f64,
        _ => f64::from(-(random.below(4_000) as f32) / 1_000.0),
    };
    if random.chance(40) {
        let values: Vec<f32> = (0..n_holes * size).map(|_| value(random) as f32).collect();
        let rows =
            values.chunks(size).map(|row| row.iter().map(|&value| (value.into(), true)).collect()).collect();
        return Weights { rows, log_probs: LogProbs::dense(values, size).unwrap() };
    }
    let floor = *random.choose(&[Floor::BelowListed, Floor::At(-1.5), Floor::At(-3.25), Floor::Excluded]);
    let (mut rows, mut lists) = (Vec::new(), Vec::new());
    for _ in 0..n_holes {
        let percent = *random.choose(&[20, 50, 90]);
        let listed: Vec<usize> = (0..size).rev().filter(|_| random.chance(percent)).collect();
        let pairs: Vec<(TokenId, f64)> = listed.iter().map(|&id| (TokenId::new(id), value(random))).collect();
        let lowest =
            pairs.iter().map(|pair| pair.1).filter(|value| value.is_finite()).reduce(f64::min).unwrap_or(0.0);
        let floor = match floor {
            Floor::BelowListed => lowest - 10.0,
            Floor::At(floor) => floor,
            Floor::Excluded => f64::NEG_INFINITY,
        };
        let mut row = vec![(floor, false); size];
        pairs.iter().for_each(|(token, value)| row[token.index()] = (*value, true));
        rows.push(row);
        lists.push(pairs);
    }
    Weights { rows, log_probs: LogProbs::listed(&lists, floor).unwrap() }
}

/// The valid rows with their weights; with a free tail, one for each text.
fn weighed(
    case: &Case,
    canvas: &Canvas,
    weights: &Weights,
    tail: Tail,
    valid: &[Vec<TokenId>],
) -> Vec<(Vec<TokenId>, f64)> {
    let plain = TokenId(case.pad.unwrap_or(case.eos[0]));
    let weigh = |row: &Vec<TokenId>| {
        let mut log = 0.0;
        let end = row.iter().position(|token| case.eos.contains(&token.0)).unwrap_or(row.len());
        for (number, hole) in canvas.holes().enumerate() {
            if tail == Tail::Counted || hole <= end {
                log += weights.rows[number][row[hole].index()].0;
            } else if row[hole] != plain {
                return None;
            }
        }
        (log > f64::NEG_INFINITY).then(|| (row.clone(), log))
    };
    valid.iter().filter_map(weigh).collect()
}

fn check_best(
    case: &Case,
    canvas: &Canvas,
    weights: &Weights,
    tail: Tail,
    all: &[(Vec<TokenId>, f64)],
    best: Decision<Assignment>,
) {
    let most = all.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
    match best {
        Decision::Yes(best) => {
            let own = all
                .iter()
                .find(|(row, _)| *row == best.tokens)
                .unwrap_or_else(|| panic!("{best:?} is not valid"));
            assert!(
                (own.1 - best.log_prob).abs() < 1e-9 && (own.1 - most).abs() < 1e-9,
                "{best:?}, by brute force {most}"
            );
            let end = best.tokens.iter().position(|token| case.eos.contains(&token.0)).unwrap_or(usize::MAX);
            let mut counted =
                canvas.holes().enumerate().filter(|(_, hole)| tail == Tail::Counted || *hole <= end);
            let widened = counted.any(|(number, hole)| !weights.rows[number][best.tokens[hole].index()].1);
            assert_eq!(best.widened, widened);
        }
        Decision::No => assert!(all.is_empty(), "there are {} completions", all.len()),
        Decision::Unknown(why) => panic!("{why}"),
    }
}

/// Whether samples are as the weights say: chi-square, with rare rows put together; the bound is passed by
/// chance once in a million.
fn check_samples(all: &[(Vec<TokenId>, f64)], samples: &[Assignment]) {
    let top = all.iter().map(|pair| pair.1).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = all.iter().map(|pair| (pair.1 - top).exp()).sum();
    let mut counts: HashMap<&[TokenId], usize> = HashMap::new();
    samples.iter().for_each(|sample| *counts.entry(&sample.tokens).or_default() += 1);
    let known: HashMap<&[TokenId], f64> = all.iter().map(|(row, log)| (&row[..], *log)).collect();
    for sample in samples {
        let log = known.get(&sample.tokens[..]).unwrap_or_else(|| panic!("{sample:?} is not valid"));
        assert!((log - sample.log_prob).abs() < 1e-9);
    }
    let (mut chi, mut bins, mut rare) = (0.0, 0, (0.0, 0.0));
    let mut add = |expected: f64, seen: f64| {
        chi += (seen - expected).powi(2) / expected;
        bins += 1;
    };
    for (row, log) in all {
        let expected = samples.len() as f64 * (log - top).exp() / sum;
        let seen = counts.get(&row[..]).copied().unwrap_or(0) as f64;
        if expected < 5.0 { rare = (rare.0 + expected, rare.1 + seen) } else { add(expected, seen) }
    }
    if rare.0 >= 1.0 {
        add(rare.0, rare.1);
    } else {
        assert!(rare.1 < 12.0, "{rare:?} of rare rows");
    }
    let degrees = f64::from(bins - 1).max(1.0);
    // Wilson and Hilferty's approximation of the quantile.
    let bound = degrees * (1.0 - 2.0 / (9.0 * degrees) + 4.75 * (2.0 / (9.0 * degrees)).sqrt()).powi(3);
    assert!(
        chi <= bound.max(24.0),
        "chi-square {chi:.1} with {degrees} degrees of freedom, at most {bound:.1}"
    );
}

#[test]
fn best_and_samples_are_those_of_brute_force() {
    let (mut n_best, mut n_sampled, mut n_none) = (0, 0, 0);
    for seed in seeds() {
        for mode in MODES {
            let Some(case) = case(seed, mode) else { continue };
            let mut random = Random::new(seed ^ 0xbe57);
            let mut solver = Solver::new(&case.constraint).unwrap();
            let mut weigher = Weigher::new(&case.constraint).unwrap();
            let mut searching = Weigher::new(&case.constraint).unwrap().by(SampleBy::Search);
            for _ in 0..5 {
                let canvas = case.canvas(&mut random);
                let weights = weights(&mut random, canvas.holes().count(), case.vocab.len());
                let Some(valid) = case.valid(&mut solver, &canvas) else { continue };
                for tail in [Tail::Counted, Tail::Free] {
                    let all = weighed(&case, &canvas, &weights, tail, &valid);
                    let question = format!("seed {seed}, {mode:?}, {canvas:?}, {tail:?}");
                    println!("{question}\n{}\n{:?}\n{:?}", case.random, case.vocab, weights.rows);
                    let best = weigher.best(&canvas, &weights.log_probs, tail).unwrap();
                    check_best(&case, &canvas, &weights, tail, &all, best.clone());
                    assert_eq!(searching.best(&canvas, &weights.log_probs, tail).unwrap(), best);
                    n_best += usize::from(!all.is_empty());
                    n_none += usize::from(all.is_empty());
                    let ask = |weigher: &mut Weigher| {
                        weigher
                            .sample(
                                &canvas,
                                &weights.log_probs,
                                SampleOptions { tail, seed, count: N_SAMPLES },
                            )
                            .unwrap()
                    };
                    for weigher in [&mut weigher, &mut searching] {
                        match ask(weigher) {
                            Decision::Yes(samples) => {
                                assert_eq!(samples.len(), N_SAMPLES);
                                check_samples(&all, &samples);
                                n_sampled += usize::from(all.len() > 1);
                            }
                            Decision::No => assert!(all.is_empty()),
                            Decision::Unknown(why) => panic!("{why}"),
                        }
                    }
                    assert_eq!(ask(&mut weigher), ask(&mut weigher), "the same seed, the same samples");
                }
            }
        }
    }
    println!("{n_best} best, {n_none} without a completion, {n_sampled} sampled with a choice");
    assert!(seeds().len() < 20 || n_best > 50 && n_sampled > 50);
}

fn plain(grammar: &str, limits: Limits) -> Constraint {
    let grammar =
        anygram_grammar::lark::parse(grammar, &anygram_grammar::lark::LarkOptions::default()).unwrap();
    let options =
        LanguageOptions { lexer: Some(LexerMode::Scannerless), limits, ..LanguageOptions::default() };
    let language = Language::new(grammar, &options).unwrap();
    let options = LoadOptions { eos: vec![3], ..LoadOptions::default() };
    let source = br#"["a","b","aa",null]"#;
    let vocabulary = Vocabulary::from_bytes(anygram_vocab::Format::JsonArray, source, &options).unwrap();
    Constraint::new(Arc::new(language), vocabulary).unwrap()
}

#[test]
fn the_number_of_derivations_does_not_count() {
    // The text "aaa" has ever so many derivations, "b" has one.
    let constraint = plain("start: a | \"b\"\na: a a | \"a\" | \"aa\"", Limits::default());
    let canvas = Canvas::new(vec![Slot::Hole; 3], End::Sentence);
    let log_probs = LogProbs::listed(&[vec![], vec![], vec![]], Floor::At(0.0)).unwrap();
    let mut weigher = Weigher::new(&constraint).unwrap();
    let options = SampleOptions { tail: Tail::Counted, seed: 7, count: 15_000 };
    let Decision::Yes(samples) = weigher.sample(&canvas, &log_probs, options).unwrap() else {
        panic!("there are completions")
    };
    // Rows of one to three tokens of a and aa, and b: 2 + 4 + 8 + 1, all as likely.
    let mut counts: HashMap<Vec<TokenId>, usize> = HashMap::new();
    samples.iter().for_each(|sample| *counts.entry(sample.tokens.clone()).or_default() += 1);
    assert_eq!(counts.len(), 15);
    assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
}

#[test]
fn limits_and_bad_questions_are_said() {
    let constraint = plain("start: \"a\"+", Limits { canvas_steps: 3, ..Limits::default() });
    let mut weigher = Weigher::new(&constraint).unwrap();
    let canvas = Canvas::new(vec![Slot::Hole; 3], End::Sentence);
    let log_probs = LogProbs::listed(&[vec![], vec![], vec![]], Floor::default()).unwrap();
    assert!(matches!(weigher.best(&canvas, &log_probs, Tail::Free), Ok(Decision::Unknown(_))));
    let options = SampleOptions { tail: Tail::Free, seed: 1, count: 1 };
    assert!(matches!(weigher.sample(&canvas, &log_probs, options), Ok(Decision::Unknown(_))));
    let mut ask = |slots: Vec<Slot>, log_probs: &LogProbs| {
        let canvas = Canvas::new(slots, End::Sentence);
        weigher.best(&canvas, log_probs, Tail::Counted).unwrap_err()
    };
    let two = vec![Slot::Hole; 2];
    let is = |error: CanvasError, kind: ErrorKind, says: &str| {
        assert!(error.kind() == kind && error.to_string().contains(says), "{error}");
    };
    is(ask(two.clone(), &log_probs), ErrorKind::InvalidArgument, "3 rows of log-probabilities for 2 holes");
    is(ask(vec![Slot::Gap], &log_probs), ErrorKind::InvalidArgument, "slot 0 is a gap");
    let unknown = LogProbs::listed(&[vec![], vec![(TokenId(9), 0.0)]], Floor::default()).unwrap();
    is(ask(two, &unknown), ErrorKind::UnknownToken, "hole 1: token 9 is not in the vocabulary of 4 tokens");
    let not_a_number = LogProbs::dense([0.0, f32::NAN], 2).unwrap_err();
    is(not_a_number, ErrorKind::InvalidArgument, "hole 0: token 1 has NaN");
    is(LogProbs::dense([0.0; 3], 2).unwrap_err(), ErrorKind::InvalidArgument, "3 log-probabilities");
    let twice = vec![(TokenId(1), 0.0), (TokenId(1), -1.0)];
    let twice = LogProbs::listed(&[twice], Floor::default()).unwrap_err();
    is(twice, ErrorKind::InvalidArgument, "token 1 is listed twice");
}
