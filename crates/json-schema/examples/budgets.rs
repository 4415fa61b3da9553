//! How long masks within budgets take on real schemas with Qwen's tokens: where the budget is ample, where it
//! is the length of the instance, and where it is the least.
//!
//! `ANYGRAM_SHARED=../shared cargo run --release -p anygram-json-schema --example budgets`; with
//! `ANYGRAM_SCHEMA` only those whose names contain it.

use std::sync::Arc;
use std::time::Instant;

use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_testkit::schema_bench;
use anygram_vocab::{LoadOptions, Vocabulary};

use case::{Case, Test};

#[path = "../tests/it/case.rs"]
mod case;

/// Times of one kind of mask, in milliseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn measure<T>(&mut self, make: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let made = make();
        self.0.push(start.elapsed().as_secs_f64() * 1e3);
        made
    }

    fn show(&mut self) -> String {
        self.0.sort_by(f64::total_cmp);
        let n = self.0.len().max(1);
        let mean = self.0.iter().sum::<f64>() / n as f64;
        let at = |part: usize| self.0.get((n - 1) * part / 100).copied().unwrap_or(0.0);
        format!("mean {mean:.2}, p50 {:.2}, p99 {:.2}, max {:.2} ms ({n})", at(50), at(99), at(100))
    }
}

/// Some schemas of each file with a valid instance.
fn real_schemas(of_each: usize) -> Vec<(String, String, String)> {
    let mut schemas = Vec::new();
    for lines in schema_bench::splits().into_iter().flatten() {
        let n_before = schemas.len();
        for line in lines.iter().skip(7).step_by(11) {
            let mut case = Case::of(line);
            let some = |test: &Test| test.valid && (20..1_500).contains(&test.data.len());
            let Some(at) = case.tests.iter().position(some) else { continue };
            schemas.push((case.id, case.schema, case.tests.swap_remove(at).data));
            if schemas.len() == n_before + of_each {
                break;
            }
        }
    }
    schemas
}

/// See the module.
fn main() {
    let Some(shared) = anygram_testkit::shared::data() else { return };
    let only = std::env::var("ANYGRAM_SCHEMA").ok();
    let vocabulary =
        Vocabulary::from_file(shared.join("tokenizers/qwen.tiktoken.gz"), &LoadOptions::default()).unwrap();
    let (mut plain, mut ample, mut instance, mut tight, mut n_errors) =
        (Times::default(), Times::default(), Times::default(), Times::default(), [0; 4]);
    for (id, schema, text) in real_schemas(2) {
        if only.as_ref().is_some_and(|only| !id.contains(only)) {
            continue;
        }
        let Ok(grammar) = grammar(&schema, &Options::default()) else { continue };
        // Each kind by itself: what one needs of the lexer's automaton the others lack.
        let mut own = [(); 4].map(|()| Times::default());
        let tokens = vocabulary.encode(&text).unwrap();
        let mut failed = Vec::new();
        for (kind, times) in own.iter_mut().enumerate() {
            let language = Language::new(grammar.clone(), &LanguageOptions::default()).unwrap();
            let constraint = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap();
            let mut matcher = constraint.matcher().unwrap();
            let start = Instant::now();
            for (at, &token) in tokens.iter().enumerate() {
                let left = (tokens.len() - at) as u32;
                let mut after = matcher.fork();
                if after.advance(token).is_err() {
                    break;
                }
                let mask = times.measure(|| match kind {
                    0 => matcher.mask(),
                    1 => matcher.mask_with_budget(left + 2_000),
                    2 => matcher.mask_with_budget(left),
                    _ => after
                        .minimum_tokens(4_000)
                        .and_then(|least| matcher.mask_with_budget(least.unwrap() + 1)),
                });
                match mask {
                    Ok(mask) => assert!(mask.contains(token), "{id} at {at}"),
                    Err(error) => {
                        n_errors[kind] += 1;
                        failed.push(format!("{kind} at {at}: {error}"));
                    }
                }
                matcher = after;
                if start.elapsed().as_secs() > 6 {
                    break;
                }
            }
        }
        failed.truncate(2);
        println!("{id}: {} tokens, {failed:?}", tokens.len());
        for (name, times) in ["plain", "ample", "instance", "tight"].iter().zip(&mut own) {
            println!("  {name:8} {}", times.show());
        }
        let [a, b, c, d] = own;
        plain.0.extend(a.0);
        ample.0.extend(b.0);
        instance.0.extend(c.0);
        tight.0.extend(d.0);
    }
    println!("all, errors: {n_errors:?}");
    for (name, times) in
        ["plain", "ample", "instance", "tight"].iter().zip([plain, ample, instance, tight].iter_mut())
    {
        println!("  {name:8} {}", times.show());
    }
}
