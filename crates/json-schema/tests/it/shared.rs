//! Sweeps that languages share: masks are those of a language that is alone with its vocabulary.

use std::sync::Arc;

use anygram_bits::Random;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::tokens::{MASK_BITS, get_bit};
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Matcher};
use anygram_vocab::{TokenId, Vocabulary};

use crate::recall::vocabulary;

/// The parts of schemas: few, so that they come again.
const PARTS: [&str; 20] = [
    r#"{"type":"string"}"#,
    r#"{"type":"string","maxLength":3}"#,
    r#"{"type":"string","minLength":2,"maxLength":40}"#,
    r#"{"type":"string","maxLength":400}"#,
    r#"{"type":"string","minLength":300}"#,
    r#"{"type":"string","pattern":"^[a-c]{2,30}$"}"#,
    r#"{"type":"string","pattern":"^(ab|c)*$","maxLength":6}"#,
    r#"{"type":"string","pattern":"^(ab|c)*$","maxLength":260}"#,
    r#"{"type":"string","format":"date"}"#,
    r#"{"enum":["a","ab","abc",1]}"#,
    r#"{"const":"abc"}"#,
    r#"{"type":"integer"}"#,
    r#"{"type":"integer","minimum":3,"maximum":400}"#,
    r#"{"type":"number","multipleOf":0.5}"#,
    r#"{"type":"boolean"}"#,
    r#"{"type":"null"}"#,
    r#"{"type":"array","items":{"type":"integer"}}"#,
    r#"{"not":{"enum":["a","b"]},"type":"string"}"#,
    r#"{"type":"object","properties":{"a":{},"abc":{"type":"null"}}}"#,
    "{}",
];

fn part(random: &mut Random) -> String {
    let one = |random: &mut Random| (*random.choose(&PARTS)).to_owned();
    if random.chance(70) {
        return one(random);
    }
    format!(r#"{{"anyOf":[{},{}]}}"#, one(random), one(random))
}

fn schema(random: &mut Random) -> String {
    if random.chance(30) {
        return format!(r#"{{"type":"array","items":{}}}"#, part(random));
    }
    let names = ["a", "ab", "abc", "b", "name"];
    let members: Vec<String> = (0..1 + random.below(3))
        .map(|_| format!(r#""{}":{}"#, random.choose(&names), part(random)))
        .collect();
    let mut seen = Vec::new();
    let members: Vec<String> = members
        .into_iter()
        .filter(|member| {
            let name = member.split(':').next().map(str::to_owned);
            !seen.contains(&name) && {
                seen.push(name);
                true
            }
        })
        .collect();
    let rest = if random.chance(50) { "false".to_owned() } else { part(random) };
    let members = members.join(",");
    format!(r#"{{"type":"object","properties":{{{members}}},"additionalProperties":{rest}}}"#)
}

fn matcher(schema: &str, vocabulary: Vocabulary) -> Matcher {
    let grammar =
        grammar(schema, &Options::default()).unwrap_or_else(|refusal| panic!("{schema}: {refusal}"));
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    Constraint::new(Arc::new(language), vocabulary).unwrap().matcher().unwrap()
}

#[test]
fn masks_are_those_of_a_language_alone() {
    let seeds = anygram_testkit::random::seeds(60);
    let (shared, mut n_smaller) = (vocabulary(), 0);
    let n_words = shared.len().div_ceil(MASK_BITS);
    let (mut is, mut must) = (vec![0; n_words], vec![0; n_words]);
    for &seed in &seeds {
        let mut random = Random::new(seed);
        let schema = schema(&mut random);
        let mut together = matcher(&schema, shared.clone());
        let mut alone = matcher(&schema, vocabulary());
        for text in 0..4 {
            for at in 0..40 {
                together.mask_into(&mut is).unwrap();
                alone.mask_into(&mut must).unwrap();
                assert_eq!(is, must, "seed {seed}, text {text}, token {at}: {schema}");
                let allowed: Vec<usize> = (0..shared.len()).filter(|&id| get_bit(&is, id)).collect();
                let Some(&token) = allowed.get(random.below(allowed.len().max(1))) else { break };
                together.advance(TokenId::new(token)).unwrap();
                alone.advance(TokenId::new(token)).unwrap();
                if together.has_ended() {
                    break;
                }
            }
            together.reset();
            alone.reset();
        }
        n_smaller += usize::from(together.memory_usage() < alone.memory_usage());
    }
    // What others have found out is not counted again.
    assert!(n_smaller * 2 > seeds.len(), "{n_smaller}");
}
