//! Budgets of tokens on schemas: held against all continuations in breadth, and measured on real schemas.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn (default 60).

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Instant;

use anygram_bits::Random;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Matcher};
use anygram_schema_oracle::generate::Generator;
use anygram_vocab::{LoadOptions, SpecialIds, TokenId, Vocabulary};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Texts of one search in breadth.
const TEXTS: usize = 1_500;
/// Tokens of the longest continuation that is looked for in breadth.
const DEEPEST: u32 = 4;

/// Few tokens of one byte, or all; and some that end and begin pieces.
fn vocabulary(all_bytes: bool) -> Vocabulary {
    let few = b"{}[]\":,-.01eab\\tru";
    let single = (b' '..=b'~').filter(|byte| all_bytes || few.contains(byte));
    let single = single.map(|byte| char::from(byte).to_string());
    let longer = [
        "\",\"", "\":", "{\"", "[\"", "\"]", "],[", "ab", "\"a\"", ",\"a\":1", "},{", "1,1", ",1", "true",
        "e}", "\":1,\"", "]]", "aa", "null", "false", "\"b\":", "{}", "[]", "\"\"", ":\"", "\"}", "\"a\":\"",
        "0}",
    ];
    let all: Vec<String> = single
        .chain(longer.map(str::to_owned))
        .chain([String::new()])
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let eos = vec![all.iter().position(String::is_empty).unwrap() as u32];
    Vocabulary::from_tokens(all, SpecialIds { eos, ..SpecialIds::default() }).unwrap()
}

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("ANYGRAM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("ANYGRAM_SEEDS").unwrap_or(60)).collect(),
    }
}

/// A random schema, and an output of it; whether its memory keeps something from being repeated, of which
/// budgets know nothing.
fn case(seed: u64, vocabulary: &Vocabulary) -> Option<(String, Matcher, bool)> {
    let mut generator = Generator::new(seed);
    let schema = generator.schema(2);
    let schema = generator.spell(&schema);
    let grammar = grammar(&schema, &Options::default()).ok()?;
    let remembers = grammar.memory.is_some();
    let language = Language::new(grammar, &LanguageOptions::default()).ok()?;
    let matcher = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap().matcher().unwrap();
    Some((schema, matcher, remembers))
}

fn allowed(matcher: &Matcher, mask: &anygram_vocab::TokenMask) -> Vec<TokenId> {
    let eos = matcher.eos().to_vec();
    mask.iter().filter(|token| !eos.contains(token)).collect()
}

/// The length of a shortest continuation that makes a sentence, of all in breadth: `Ok(None)` if there is
/// none of at most [`DEEPEST`] tokens, and an error if there are too many.
fn by_breadth(matcher: &Matcher) -> Result<Option<u32>, ()> {
    let bytes = |matcher: &Matcher| {
        let vocabulary = matcher.constraint().vocabulary();
        matcher
            .tokens()
            .iter()
            .flat_map(|&token| vocabulary.bytes(token).unwrap().to_vec())
            .collect::<Vec<u8>>()
    };
    let mut level = vec![matcher.fork()];
    let mut n = 0;
    for depth in 0..=DEEPEST {
        if level.iter().any(Matcher::is_sentence) {
            return Ok(Some(depth));
        }
        let mut seen = BTreeSet::new();
        let mut next = Vec::new();
        for mut before in level.into_iter().filter(|_| depth < DEEPEST) {
            let mask = before.mask().unwrap();
            for token in allowed(&before, &mask) {
                let mut after = before.fork();
                after.advance(token).unwrap();
                if seen.insert(bytes(&after)) {
                    n += 1;
                    next.push(after);
                }
            }
            if n > TEXTS {
                return Err(());
            }
        }
        level = next;
    }
    Ok(None)
}

#[test]
fn minimum_tokens_are_those_of_a_search_in_breadth() {
    let (mut n_asked, mut n_known) = (0, 0);
    for seed in seeds() {
        let vocabulary = vocabulary(seed % 2 == 1);
        let Some((schema, mut matcher, remembers)) = case(seed, &vocabulary) else { continue };
        let mut random = Random::new(seed);
        for _ in 0..6 {
            let text = || String::from_utf8_lossy(&vocabulary.decode(matcher.tokens()).unwrap()).into_owned();
            let context = format!("seed {seed}, {schema}, after {:?}", text());
            let found = matcher.minimum_tokens(DEEPEST).unwrap_or_else(|error| panic!("{context}: {error}"));
            n_asked += 1;
            if let Ok(expected) = by_breadth(&matcher) {
                n_known += 1;
                let is_right =
                    found == expected || remembers && found.is_some() && found < expected.or(Some(99));
                assert!(is_right, "{context}: {found:?}, in breadth {expected:?}");
            }
            let mask = matcher.mask().unwrap();
            let tokens = allowed(&matcher, &mask);
            if tokens.is_empty() {
                break;
            }
            matcher.advance(*random.choose(&tokens)).unwrap();
        }
    }
    println!("{n_known} of {n_asked} compared");
    assert!(seeds().len() < 20 || n_known * 3 > n_asked);
}

#[test]
fn masks_within_budgets_close_and_are_those_of_minimum_costs() {
    let builtin = Vocabulary::builtin();
    let (mut n_walks, mut n_bits, mut n_limits) = (0, 0, 0);
    for seed in seeds() {
        let vocabulary = if seed % 3 == 0 { builtin.clone() } else { vocabulary(seed % 3 == 1) };
        let Some((schema, mut matcher, remembers)) = case(seed, &vocabulary) else { continue };
        let mut random = Random::new(seed);
        let Some(least) =
            matcher.minimum_tokens(200).unwrap_or_else(|error| panic!("{seed} {schema}: {error}"))
        else {
            continue;
        };
        let mut left = least + random.below(8) as u32;
        loop {
            let context = |matcher: &Matcher| {
                let text = vocabulary.decode(matcher.tokens()).unwrap();
                format!("seed {seed}, {schema}, {left} left after {:?}", String::from_utf8_lossy(&text))
            };
            let mask = match matcher.mask_with_budget(left) {
                Ok(mask) => mask,
                // Exact or a limit: some random schemas are too hard.
                Err(error) if error.limit().is_some() => {
                    n_limits += 1;
                    break;
                }
                Err(error) => panic!("{}: {error}", context(&matcher)),
            };
            let tokens = allowed(&matcher, &mask);
            if !remembers {
                assert!(!tokens.is_empty() || matcher.is_sentence(), "{}: stuck", context(&matcher));
            }
            let plain = matcher.mask().unwrap();
            assert!(mask.is_subset(&plain));
            let plain = allowed(&matcher, &plain);
            for _ in 0..10.min(plain.len()) {
                let token = *random.choose(&plain);
                let mut after = matcher.fork();
                after.advance(token).unwrap();
                let fits = left > 0 && after.minimum_tokens(left - 1).unwrap().is_some();
                n_bits += 1;
                assert_eq!(mask.contains(token), fits, "{}: token {}", context(&matcher), token.0);
            }
            if tokens.is_empty() || matcher.is_sentence() && random.chance(30) {
                break;
            }
            matcher.advance(*random.choose(&tokens)).unwrap();
            left -= 1;
        }
        n_walks += 1;
    }
    println!("{n_walks} walks, {n_bits} bits, {n_limits} limits");
    assert!(n_limits * 20 <= n_walks.max(20));
}

#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow, default)]
    tests: Vec<Instance<'a>>,
}

#[derive(Deserialize)]
struct Instance<'a> {
    valid: bool,
    #[serde(borrow)]
    data: &'a RawValue,
}

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
    let Some(shared) = anygram_testkit::shared::data() else { return Vec::new() };
    let mut files: Vec<_> = std::fs::read_dir(shared.join("jsonschemabench"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    files.sort();
    let mut schemas = Vec::new();
    for path in files {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        let n_before = schemas.len();
        for line in text.lines().skip(7).step_by(11) {
            let line: Line = serde_json::from_str(line).unwrap();
            let valid =
                line.tests.iter().find(|test| test.valid && (20..1_500).contains(&test.data.get().len()));
            let Some(test) = valid else { continue };
            schemas.push((line.id, line.schema.get().to_owned(), test.data.get().to_owned()));
            if schemas.len() == n_before + of_each {
                break;
            }
        }
    }
    schemas
}

/// `cargo test --release -p anygram-json-schema real_schemas_within_budgets -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn real_schemas_within_budgets() {
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
