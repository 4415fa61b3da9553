//! Each fuzz target on what fuzzing begins with, and on changes of it. `fuzz/run` looks further, with a
//! sanitizer.

use anygram_fuzz::{TARGETS, Target};
use anygram_testkit::random::Random;

/// Changed inputs of each target.
const CHANGED: usize = 1_000;

/// Cuts, repeats, swaps or overwrites some bytes, perhaps with some of another input.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(input.len() + 1);
        let end = (at + 1 + random.below(8)).min(input.len());
        match random.below(5) {
            0 => drop(input.drain(at..end)),
            1 => drop(input.splice(at..at, input[at..end].to_vec())),
            2 if at < end => input[at] ^= 1 << random.below(8),
            3 => input.insert(at, [0, b'(', b'"', b'|', b'{', b'\\', 0x80, 0xff][random.below(8)]),
            _ => {
                let from = random.below(other.len() + 1);
                let more = &other[from..(from + 12).min(other.len())];
                drop(input.splice(at..end, more.iter().copied()));
            }
        }
    }
}

fn check(Target { name, run, seeds, max_len }: &Target) {
    let seeds: Vec<Vec<u8>> =
        seeds().into_iter().map(|seed| seed[..seed.len().min(*max_len)].to_vec()).collect();
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let n_kept = seeds.iter().filter(|seed| run(seed)).count();
    assert!(n_kept > 0, "{name}: no seed is of interest");
    let mut random = Random::new(1);
    for _ in 0..CHANGED {
        let mut input = random.choose(&seeds).clone();
        let other = random.choose(&seeds[..]).clone();
        change(&mut input, &other, &mut random);
        input.truncate(*max_len);
        run(&input);
    }
}

#[test]
fn grammars() {
    TARGETS
        .iter()
        .filter(|target| ["lark", "gbnf", "ebnf", "regex", "nltk"].contains(&target.name))
        .for_each(check);
}

#[test]
fn vocabularies() {
    let names = ["tiktoken", "json_array", "hugging_face", "sentence_piece"];
    TARGETS.iter().filter(|target| names.contains(&target.name)).for_each(check);
}

#[test]
fn schemas() {
    TARGETS.iter().filter(|target| target.name == "schema").for_each(check);
}

#[test]
fn tags() {
    TARGETS.iter().filter(|target| target.name == "tag").for_each(check);
}

#[test]
fn masks_and_questions() {
    TARGETS.iter().filter(|target| ["mask_oracle", "batch"].contains(&target.name)).for_each(check);
}
