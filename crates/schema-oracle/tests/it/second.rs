//! Random schemas as the crate `jsonschema` judges them.
//!
//! Left out is where its meaning is not that of the drafts or not ours: formats (it asserts others), and what
//! 2020-12 no longer has (`dependencies`, `additionalItems`, lists under `items`).

use anygram_schema_oracle::generate::{Generator, KEYWORDS};
use anygram_schema_oracle::{Formats, Options, Registry};
use anygram_testkit::random::seeds;

const LEFT_OUT: [&str; 3] = ["additionalItems", "dependencies", "format"];

#[test]
fn jsonschema_judges_random_values_likewise() {
    let keywords: Vec<&str> =
        KEYWORDS.iter().copied().filter(|keyword| !LEFT_OUT.contains(keyword)).collect();
    let (mut n_valid, mut n_invalid, mut n_refused, mut n_undecided) = (0, 0, 0, 0);
    let seeds = seeds(2_000);
    for &seed in &seeds {
        let mut generator = Generator::new(seed).with_keywords(&keywords);
        let schema = generator.schema(3);
        let text = generator.spell(&schema);
        let mut registry = Registry::default();
        registry.add("test:schema", schema.clone());
        let ours = registry.schema("test:schema").unwrap();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        // A list under `items` is an error there.
        let Ok(theirs) = jsonschema::draft202012::options().should_validate_formats(false).build(&read)
        else {
            n_refused += 1;
            continue;
        };
        for _ in 0..20 {
            let value = generator.value_for(&schema, 3);
            let Ok(is_valid) = ours.is_valid(&value, Options { formats: Formats::Annotate }) else {
                n_undecided += 1;
                continue;
            };
            let spelled = generator.spell(&value);
            let value: serde_json::Value = serde_json::from_str(&spelled).unwrap();
            assert_eq!(theirs.is_valid(&value), is_valid, "seed {seed}: {text}\n{spelled}");
            if is_valid { n_valid += 1 } else { n_invalid += 1 }
        }
    }
    println!("{n_valid} valid, {n_invalid} invalid, {n_undecided} undecided, {n_refused} schemas refused");
    assert!(seeds.len() < 2_000 || n_valid > 1_000 && n_invalid > 1_000);
}
