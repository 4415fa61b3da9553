//! Budgets on the shared workloads with the vocabulary of the Qwen models: random outputs end within their
//! budget, and what masks cost.
//!
//! `ANYGRAM_WORKLOAD=cpp` runs one of them; `--nocapture` prints the figures (wall clock, so only a hint
//! where the machine is shared).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::tokens::get_bit;
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Matcher};
use anygram_testkit::random::Random;
use anygram_testkit::shared::data;
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

const EOS: u32 = 151_645;
const WORKLOADS: [&str; 4] = ["smiles", "sql_grammar", "sqlite", "cpp"];

fn constraint(data: &Path, name: &str, mode: Option<LexerMode>, vocabulary: &Vocabulary) -> Constraint {
    let source = std::fs::read_to_string(data.join(format!("replay/{name}.lark"))).unwrap();
    let grammar =
        lark::parse(&source, &LarkOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let options = LanguageOptions { lexer: mode, ..LanguageOptions::default() };
    Constraint::new(Arc::new(Language::new(grammar, &options).unwrap()), vocabulary.clone()).unwrap()
}

/// The ids of the texts of a workload.
fn texts(data: &Path, name: &str) -> Vec<Vec<TokenId>> {
    let lines = std::fs::read_to_string(data.join(format!("replay/{name}.tok.jsonl"))).unwrap();
    let ids = |line: &str| {
        let (_, ids) = line.split_once("\"ids\":").expect("the ids of a text");
        let (ids, _) = ids.trim_start().trim_start_matches('[').split_once(']').expect("an array");
        ids.split(',').map(|id| TokenId(id.trim().parse().expect("an id"))).collect()
    };
    lines.lines().map(ids).collect()
}

/// Median, 99th percentile and maximum.
fn figures(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at =
        |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default().as_secs_f64() * 1e6;
    let last = times.last().copied().unwrap_or_default().as_secs_f64() * 1e6;
    format!("p50 {:.0} p99 {:.0} max {last:.0} µs of {}", at(50), at(99), times.len())
}

fn timed<T>(times: &mut Vec<Duration>, what: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = what();
    times.push(start.elapsed());
    result
}

/// Writes random tokens within a budget, down to the end.
fn write(matcher: &mut Matcher, random: &mut Random, budget: u32, times: &mut Vec<Duration>) {
    matcher.reset();
    let mut left = budget;
    loop {
        let mask = timed(times, || matcher.mask_with_budget(left).unwrap().into_words());
        let vocabulary = matcher.constraint().vocabulary();
        let mut allowed: Vec<u32> =
            (0..vocabulary.len() as u32).filter(|&id| get_bit(&mask, id as usize)).collect();
        assert!(!allowed.is_empty(), "stuck with {left}");
        if left > 0 && allowed.len() > 1 {
            allowed.retain(|&id| id != EOS);
        }
        // Punctuation is rare among tokens and common in texts.
        let short: Vec<u32> = allowed
            .iter()
            .copied()
            .filter(|&id| vocabulary.bytes(TokenId(id)).is_some_and(|b| b.len() < 3))
            .collect();
        let token = if !short.is_empty() && random.chance(70) {
            *random.choose(&short)
        } else {
            *random.choose(&allowed)
        };
        matcher.advance(TokenId(token)).unwrap();
        if token == EOS {
            return;
        }
        left -= 1;
    }
}

#[test]
fn random_outputs_end_within_their_budget() {
    let Some(data) = data() else { return };
    let chosen = std::env::var("ANYGRAM_WORKLOAD").ok();
    let mode = match std::env::var("ANYGRAM_MODE").as_deref() {
        Ok("scannerless") => Some(LexerMode::Scannerless),
        Ok("longest") => Some(LexerMode::Longest),
        _ => None,
    };
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(data.join("tokenizers/qwen.tiktoken.gz"), &options).unwrap();
    for name in WORKLOADS.into_iter().filter(|name| chosen.as_ref().is_none_or(|chosen| chosen == name)) {
        let start = Instant::now();
        let constraint = constraint(&data, name, mode, &vocabulary);
        let mut matcher = constraint.matcher().unwrap();
        println!("{name}: compiled in {:?}", start.elapsed());
        let least = timed(&mut Vec::new(), || matcher.minimum_tokens(1_000).unwrap()).expect("a sentence");
        println!(
            "{name}: {least} tokens at least, {:?}, {} MB",
            start.elapsed(),
            matcher.memory_usage() >> 20
        );
        let (mut plain, mut ample, mut tight) = (Vec::new(), Vec::new(), Vec::new());
        for text in texts(&data, name).iter().take(10) {
            matcher.reset();
            for &token in text.iter().take(60) {
                let mask = timed(&mut plain, || matcher.mask().unwrap().into_words());
                let with_budget = timed(&mut ample, || matcher.mask_with_budget(1_000).unwrap().into_words());
                assert!(with_budget == mask, "{name}: an ample budget is no budget");
                if !get_bit(&mask, token.index()) {
                    break;
                }
                matcher.advance(token).unwrap();
            }
        }
        println!("{name}: plain {}", figures(plain));
        println!("{name}: ample {}, {} MB", figures(ample), matcher.memory_usage() >> 20);
        let mut random = Random::new(1);
        for round in 0..6 {
            write(&mut matcher, &mut random, least + 2 * round, &mut tight);
        }
        println!("{name}: tight {}, {} MB", figures(tight), matcher.memory_usage() >> 20);
    }
}
