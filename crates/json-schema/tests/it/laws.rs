//! Random schemas against the evaluator of `schema-oracle`, which shares nothing with this crate.

use anygram_bits::Random;
use anygram_json_schema::refusal::Kind;
use anygram_json_schema::{Options, lowered};
use anygram_schema_oracle::generate::Generator;
use anygram_schema_oracle::{Formats, Options as OracleOptions, Registry, Value};

use crate::simulate::Simulation;

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(300)
}

#[test]
fn random_schemas_have_the_values_that_the_evaluator_says() {
    let (mut n_valid, mut n_invalid, mut n_refused, mut given_up) = (0, 0, 0, 0);
    for seed in seeds() {
        let mut generator = Generator::new(seed);
        let schema = generator.schema(3);
        let mut registry = Registry::default();
        registry.add("test:schema", schema.clone());
        let oracle = registry.schema("test:schema").unwrap();
        let options = OracleOptions { formats: Formats::Assert };
        let values: Vec<Value> = (0..20).map(|_| generator.value_for(&schema, 3)).collect();
        let expected: Vec<_> = values.iter().map(|value| oracle.is_valid(value, options)).collect();
        let text = Generator::new(seed).spell(&schema);
        let grammar = match lowered(&text, &Options::default()) {
            Ok(grammar) => grammar,
            Err(refusal) => {
                n_refused += 1;
                let is_empty = refusal.kind == Kind::Unsatisfiable;
                assert!(!is_empty || !expected.contains(&Ok(true)), "seed {seed}: {text}: {refusal}");
                continue;
            }
        };
        let simulation = Simulation::new(&grammar);
        for (value, expected) in values.iter().zip(expected) {
            let Ok(expected) = expected else { continue };
            let spelled = generator.spell(value);
            let Some(read) = simulation.read(spelled.as_bytes()) else {
                given_up += 1;
                continue;
            };
            assert_eq!(read.is_valid, expected, "seed {seed}: {text}\n{spelled} viable to {}", read.viable);
            if expected { n_valid += 1 } else { n_invalid += 1 }
        }
    }
    println!("{n_valid} valid, {n_invalid} invalid, {n_refused} schemas refused, {given_up} given up");
    assert!(seeds().len() < 100 || n_valid > 500 && n_invalid > 500);
}

/// However a value is spelled, it is valid or not; a schema is its double negation, and with its negation it
/// has no value.
#[test]
fn spellings_and_negations() {
    let (mut n_texts, mut n_empty, mut n_refused) = (0, 0, 0);
    for seed in seeds() {
        let mut generator = Generator::new(seed + 2_000_000);
        let schema = generator.schema(2);
        let text = generator.spell(&schema);
        let Ok(plain) = lowered(&text, &Options::default()) else { continue };
        match lowered(&format!("{{\"allOf\":[{text},{{\"not\":{text}}}]}}"), &Options::default()) {
            Err(refusal) if refusal.kind == Kind::Unsatisfiable => n_empty += 1,
            // References have another root, and some negations are refused.
            Err(_) => n_refused += 1,
            Ok(_) => panic!("seed {seed}: {text} and its negation have a value"),
        }
        let twice = lowered(&format!("{{\"not\":{{\"not\":{text}}}}}"), &Options::default());
        let (plain, twice) = (Simulation::new(&plain), twice.as_ref().ok().map(Simulation::new));
        for _ in 0..6 {
            let value = generator.value_for(&schema, 3);
            let mut verdicts = Vec::new();
            for _ in 0..3 {
                let spelled = generator.spell(&value);
                let both = [Some(&plain), twice.as_ref()].into_iter().flatten();
                verdicts.extend(both.filter_map(|of| of.read(spelled.as_bytes())).map(|read| read.is_valid));
                n_texts += 1;
            }
            verdicts.dedup();
            assert!(verdicts.len() <= 1, "seed {seed}: {text}\n{value:?}");
        }
    }
    println!("{n_texts} texts, {n_empty} empty, {n_refused} refused");
    let n = seeds().len();
    assert!(n < 100 || n_texts > 5 * n && n_empty > n / 2);
}

/// What is viable can be completed: a random walk that only takes bytes that are viable never gets stuck.
#[test]
fn what_is_viable_goes_on() {
    let mut n_steps = 0;
    for seed in seeds().into_iter().step_by(6) {
        let mut generator = Generator::new(seed + 1_000_000);
        let schema = generator.schema(3);
        let text = generator.spell(&schema);
        let Ok(grammar) = lowered(&text, &Options::default()) else { continue };
        let simulation = Simulation::new(&grammar);
        let mut random = Random::new(seed);
        let mut written: Vec<u8> = Vec::new();
        let bytes: Vec<u8> = (b' '..=b'~').chain(*b"\n\xc3\xa9\xf0\x9f\x98\x80").collect();
        for _ in 0..30 {
            let is_viable = |byte: u8| {
                let text: Vec<u8> = written.iter().copied().chain([byte]).collect();
                simulation.read(&text).is_none_or(|read| read.viable == text.len())
            };
            let viable: Vec<u8> = bytes.iter().copied().filter(|&byte| is_viable(byte)).collect();
            let is_valid = simulation.read(&written).is_none_or(|read| read.is_valid);
            let all = |byte: u8| !bytes.contains(&byte) && is_viable(byte);
            assert!(
                is_valid || !viable.is_empty() || (0..=255).any(all),
                "seed {seed}: {text}\n{}",
                String::from_utf8_lossy(&written)
            );
            // What is not blank or an escape comes first, so that the walk comes somewhere.
            let better: Vec<u8> = viable.iter().copied().filter(|byte| !b" \n\\".contains(byte)).collect();
            let from = if better.is_empty() { &viable } else { &better };
            if from.is_empty() {
                break;
            }
            written.push(from[random.below(from.len())]);
            n_steps += 1;
        }
    }
    let n = seeds().len();
    assert!(n < 100 || n_steps > 3 * n, "{n_steps}");
}
