//! x
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_vocab::{LoadOptions, Vocabulary, TokenId};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::Read;
use std::sync::Arc;
use std::time::Instant;
#[derive(Deserialize)]
struct Line<'a> { id: String, #[serde(borrow)] schema: &'a RawValue, #[serde(borrow, default)] tests: Vec<Inst<'a>> }
#[derive(Deserialize)]
struct Inst<'a> { valid: bool, #[serde(borrow)] data: &'a RawValue }
fn main() {
    let mut args = std::env::args().skip(1);
    let vocab = args.next().unwrap();
    let every: usize = args.next().unwrap().parse().unwrap();
    let vocabulary = Vocabulary::from_file(std::path::Path::new(&vocab), &LoadOptions::default()).unwrap();
    println!("{} tokens", vocabulary.len());
    let (mut n, mut wrong, mut errors) = (0, 0, 0);
    let (mut compile, mut first, mut masks, mut advances) = (vec![], vec![], vec![], vec![]);
    let mut at = 0;
    for path in args {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        for line in text.lines() {
            at += 1;
            if at % every != 0 { continue }
            let line: Line = serde_json::from_str(line).unwrap();
            if std::env::var("ONLY").is_ok_and(|o| o != line.id) { continue }
            if std::env::var("TRACE").is_ok() { eprintln!("{}", line.id); }
            let t = Instant::now();
            let Ok(grammar) = grammar(line.schema.get(), &Options::default()) else { continue };
            let language = match Language::new(grammar, &LanguageOptions::default()) { Ok(l) => l, Err(e) => { errors += 1; println!("{}: {e}", line.id); continue } };
            compile.push(t.elapsed());
            let constraint = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap();
            let mut is_first = true;
            for test in &line.tests {
                if test.data.get().len() > 5000 { continue }
                let ids = vocabulary.encode(test.data.get()).unwrap();
                let t = Instant::now();
                let mut matcher = constraint.matcher().unwrap();
                let mut ok = true;
                let mut setup = t.elapsed();
                for id in ids {
                    let t = Instant::now();
                    let mask = match matcher.mask() { Ok(m) => m, Err(e) => { println!("{}: {e}", line.id); errors += 1; ok = !test.valid; break } };
                    let us = t.elapsed();
                    if is_first { first.push(us + setup); is_first = false; setup = Default::default(); }
                    masks.push(us);
                    if !mask.contains(TokenId(id.0)) { ok = false; break }
                    let t = Instant::now();
                    if let Err(e) = matcher.advance(id) { println!("{}: {e}", line.id); errors += 1; ok = !test.valid; break }
                    advances.push(t.elapsed());
                }
                ok = ok && matcher.is_sentence();
                n += 1;
                if ok != test.valid { wrong += 1; if wrong < 20 { println!("WRONG {} {} {}", line.id, test.valid, &test.data.get()[..test.data.get().len().min(100)]); } }
            }
        }
    }
    println!("{n} instances, {wrong} wrong, {errors} errors");
    for (name, times) in [("compile", &mut compile), ("first", &mut first), ("mask", &mut masks), ("advance", &mut advances)] {
        times.sort();
        let sum: std::time::Duration = times.iter().sum();
        println!("{name}: n {} mean {:?} p50 {:?} p99 {:?} max {:?}", times.len(), sum / times.len().max(1) as u32, times[times.len() / 2], times[times.len() * 99 / 100], times.last().unwrap());
    }
}
