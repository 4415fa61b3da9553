//! How quickly questions about canvases over real schemas are answered, with Qwen's tokens: holes punched in
//! valid instances of JSONSchemaBench.
//!
//! `ANYGRAM_SHARED=../shared cargo run --release -p anygram-json-schema --example canvases`; with
//! `ANYGRAM_SCHEMA` only those whose names contain it, with `ANYGRAM_EVERY` every so-many-th schema of each
//! split (default 40), with `ANYGRAM_ASK=admissible` all tokens of all holes.

use std::sync::Arc;
use std::time::Instant;

use anygram_any_order::{Canvas, End, Slot, Solver};
use anygram_bits::Random;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_testkit::schema_bench;
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

use case::Case;

#[path = "../tests/it/case.rs"]
mod case;

/// Kinds of canvases: single holes, runs of eight, half of all.
const KINDS: [&str; 3] = ["some holes", "runs", "half"];

/// A text with holes.
fn punched(tokens: &[TokenId], kind: usize, random: &mut Random) -> Canvas {
    let mut slots: Vec<Slot> = tokens.iter().map(|&token| Slot::Fixed(token)).collect();
    let n = slots.len();
    match kind {
        0 => (0..4).for_each(|_| slots[random.below(n)] = Slot::Hole),
        1 => {
            for _ in 0..2 {
                let from = random.below(n);
                slots[from..n.min(from + 8)].fill(Slot::Hole);
            }
        }
        _ => (0..n).filter(|_| random.chance(50)).collect::<Vec<_>>().into_iter().for_each(|at| {
            slots[at] = Slot::Hole;
        }),
    }
    Canvas::new(slots, End::Sentence)
}

#[derive(Default)]
struct Row {
    yes: usize,
    unknown: usize,
    no: usize,
    ms: Vec<f64>,
}

fn main() {
    let Some(shared) = anygram_testkit::shared::data() else { return };
    let only = std::env::var("ANYGRAM_SCHEMA").ok();
    let every = std::env::var("ANYGRAM_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let admissible = std::env::var("ANYGRAM_ASK").is_ok_and(|ask| ask == "admissible");
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(shared.join("tokenizers/qwen.tiktoken.gz"), &options).unwrap();
    let mut rows: [Row; 3] = Default::default();
    for line in schema_bench::splits()
        .into_iter()
        .flatten()
        .flat_map(|lines| lines.into_iter().skip(7).step_by(every).collect::<Vec<_>>())
    {
        let case = Case::of(&line);
        if only.as_ref().is_some_and(|only| !case.id.contains(only)) {
            continue;
        }
        let Some(test) = case.tests.iter().find(|test| test.valid && test.data.len() < 3_000) else {
            continue;
        };
        let Ok(grammar) = grammar(&case.schema, &Options::default()) else { continue };
        let tokens = vocabulary.encode(&test.data).unwrap();
        let remembers = grammar.remembers();
        let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
        let constraint = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap();
        let start = Instant::now();
        let mut solver = Solver::new(&constraint).unwrap();
        let made = start.elapsed().as_secs_f64() * 1e3;
        let mut random = Random::new(1);
        let mut shown = String::new();
        for (kind, row) in rows.iter_mut().enumerate() {
            let canvas = punched(&tokens, kind, &mut random);
            let start = Instant::now();
            let answer = if admissible {
                let rows = solver.admissible(&canvas).unwrap();
                let all = rows.undecided.iter().all(Option::is_none);
                all.then_some(true)
            } else {
                solver.completable(&canvas).unwrap().decided()
            };
            let ms = start.elapsed().as_secs_f64() * 1e3;
            row.ms.push(ms);
            match answer {
                Some(true) => row.yes += 1,
                Some(false) => {
                    row.no += 1;
                    println!("WRONG NO: {} {}", case.id, KINDS[kind]);
                }
                None => row.unknown += 1,
            }
            shown += &format!("  {} {ms:.1}", answer.map_or("?", |answer| if answer { "yes" } else { "NO" }));
        }
        println!("{}: {} tokens, memory {remembers}, made {made:.1}{shown}", case.id, tokens.len());
    }
    for (name, row) in KINDS.iter().zip(&mut rows) {
        row.ms.sort_by(f64::total_cmp);
        let n = row.ms.len().max(1);
        let at = |part: usize| row.ms.get((n - 1) * part / 100).copied().unwrap_or(0.0);
        let mean = row.ms.iter().sum::<f64>() / n as f64;
        println!(
            "{name}: yes {}, unknown {}, no {}; \
             mean {mean:.1}, p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1} ms",
            row.yes,
            row.unknown,
            row.no,
            at(50),
            at(90),
            at(99),
            at(100)
        );
    }
}
