//! Random tags over a small alphabet: all short texts, and the masks behind them, as the reference has them.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn (default 300).

use std::collections::HashSet;

use anygram_left_to_right::{Constraint, Matcher};
use anygram_structural_tag::Kind;
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
use serde_json::{Value, json};

use super::language;
use super::reference::{belongs, belongs_in_tokens, tag_ends};

/// Texts are enumerated up to this length.
const LONGEST: usize = 11;
/// What a tag says has at most so many letters, so whatever was begun is finished by as many.
const MOST_LETTERS: usize = 6;
/// Masks are compared behind texts of at most this length.
const LONGEST_PREFIX: usize = 3;
const LONGEST_TOKEN: usize = 2;

pub fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(160)
}

fn word(random: &mut Random, shortest: usize) -> String {
    let length = shortest + random.below(3);
    (0..length).map(|_| *random.choose(&['a', 'b'])).collect()
}

fn words(random: &mut Random) -> Vec<String> {
    (0..random.below(2)).map(|_| word(random, 1)).collect()
}

fn tag(random: &mut Random, depth: usize, begin: Option<&str>) -> Value {
    let begin = format!("{}{}", begin.unwrap_or_default(), word(random, 0));
    let content = format(random, depth);
    match random.below(4) {
        0 => {
            let ends = [word(random, 0), word(random, 1)];
            json!({"type": "tag", "begin": begin, "content": content, "end": ends})
        }
        _ => json!({"type": "tag", "begin": begin, "content": content, "end": word(random, 0)}),
    }
}

pub fn format(random: &mut Random, depth: usize) -> Value {
    let n_kinds = if depth == 0 { 3 } else { 20 };
    let flag = |random: &mut Random| random.chance(30);
    match random.below(n_kinds) {
        0 => json!({"type": "const_string", "value": word(random, 0)}),
        1 => json!({"type": "any_text", "excludes": words(random)}),
        2 => json!({"type": "any_text", "excludes": words(random), "max_chars": random.below(4)}),
        3 => json!({"type": "sequence", "elements": [format(random, depth - 1), format(random, depth - 1)]}),
        4 => json!({"type": "or", "elements": [format(random, depth - 1), format(random, depth - 1)]}),
        5 => {
            let kind = *random.choose(&["optional", "star", "plus"]);
            json!({"type": kind, "content": format(random, depth - 1)})
        }
        6 => {
            let min = random.below(3);
            let max = if random.chance(30) { -1 } else { (min + random.below(4)) as i64 };
            json!({"type": "repeat", "min": min, "max": max, "content": format(random, depth - 1)})
        }
        7 => tag(random, depth - 1, None),
        8 => {
            let tags: Vec<Value> = (0..=random.below(2)).map(|_| tag(random, depth - 1, None)).collect();
            let (one, stop) = (flag(random), flag(random));
            json!({"type": "tags_with_separator", "tags": tags, "separator": word(random, 0),
                "at_least_one": one, "stop_after_first": stop})
        }
        9..=11 => {
            let rules: Vec<Value> =
                (0..=random.below(2)).map(|_| json!([word(random, 1), format(random, depth - 1)])).collect();
            let repeats = random.chance(70);
            json!({"type": "dispatch", "rules": rules, "loop": repeats, "excludes": words(random)})
        }
        _ => {
            let triggers: Vec<String> = (0..=random.below(2)).map(|_| word(random, 1)).collect();
            let tags: Vec<Value> = (0..=random.below(2))
                .map(|_| {
                    let trigger = random.choose(&triggers).clone();
                    tag(random, depth - 1, Some(&trigger))
                })
                .collect();
            let (one, stop) = (flag(random), flag(random));
            json!({"type": "triggered_tags", "triggers": triggers, "tags": tags,
                "excludes": words(random), "at_least_one": one, "stop_after_first": stop})
        }
    }
}

/// The letters that a format says, those of what is repeated as often as it has to be.
fn n_letters(format: &Value) -> usize {
    let of = |value: &Value| value.as_str().map_or(0, str::len);
    let lists = ["elements", "tags"].iter().filter_map(|name| format[*name].as_array()).flatten();
    let rules = format["rules"].as_array().into_iter().flatten();
    let content = match &format["content"] {
        Value::Null => 0,
        content => n_letters(content) * format["min"].as_u64().unwrap_or(1).max(1) as usize,
    };
    let ends: usize = tag_ends(format).iter().map(|end| end.len()).sum();
    of(&format["value"])
        + of(&format["begin"])
        + ends
        + of(&format["separator"])
        + content
        + lists.map(n_letters).sum::<usize>()
        + rules.map(|rule| of(&rule[0]) + n_letters(&rule[1])).sum::<usize>()
}

/// All texts of some letters up to a length, the shortest first.
pub fn all_texts(letters: &[u8], longest: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for at in 0.. {
        let Some(text) = all.get(at).filter(|text: &&Vec<u8>| text.len() < longest).cloned() else { break };
        all.extend(letters.iter().map(|&letter| [&*text, &[letter]].concat()));
    }
    all
}

/// Fails with the first of some failures.
pub fn none_of(failures: &[String]) {
    assert!(
        failures.is_empty(),
        "{} wrong\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
}

#[test]
fn random_tags_are_those_of_the_reference() {
    let (mut n_compared, mut n_refused, mut n_triggered, mut failures) = (0, 0, 0, Vec::new());
    for seed in seeds().into_iter().step_by(2) {
        let mut random = Random::new(seed);
        let format = loop {
            let format = format(&mut random, 2);
            if n_letters(&format) <= MOST_LETTERS {
                break format;
            }
        };
        match compare(&format) {
            Ok(true) => n_compared += 1,
            Ok(false) => n_refused += 1,
            Err(message) => failures.push(format!("seed {seed}: {message}\n{format}")),
        }
        n_triggered += usize::from(format.to_string().contains("trigger"));
    }
    none_of(&failures);
    if seeds().len() >= 100 {
        assert!(
            n_compared > 5 * n_refused && n_triggered * 6 > n_compared,
            "{n_compared} {n_refused} {n_triggered}"
        );
    }
}

/// Bounds the tokens in the free texts of a format; how many there are.
fn bound_tokens(random: &mut Random, format: &mut Value) -> usize {
    let is_text = format["type"] == "any_text";
    if is_text {
        format["max_tokens"] = json!(random.below(4));
    }
    let parts: Vec<&mut Value> = match format {
        Value::Array(parts) => parts.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    };
    let inside: usize = parts.into_iter().map(|part| bound_tokens(random, part)).sum();
    usize::from(is_text) + inside
}

#[test]
fn random_tags_with_few_tokens_are_those_of_the_reference() {
    const LETTERS: usize = 3;
    const TOKENS: [&[u8]; 7] = [b"a", b"b", b"aa", b"ab", b"ba", b"bb", b"aba"];
    let (rests, mut n_compared) = (all_texts(b"ab", 2 * LETTERS), 0);
    let eos = SpecialIds { eos: vec![TOKENS.len() as u32], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(TOKENS.into_iter().chain([&b""[..]]), eos).unwrap();
    for seed in seeds().into_iter().step_by(3) {
        let mut random = Random::new(seed);
        let format = loop {
            let mut format = format(&mut random, 2);
            if n_letters(&format) <= LETTERS && bound_tokens(&mut random, &mut format) > 0 {
                break format;
            }
        };
        let Ok(language) = language(&json!({"format": format}).to_string()) else { continue };
        let mut matcher = Constraint::new(language, vocabulary.clone()).unwrap().matcher().unwrap();
        let is_output = |tokens: &[usize], rest: &[u8]| {
            let (mut text, mut ends) = (Vec::new(), Vec::new());
            for token in tokens.iter().map(|&token| TOKENS[token]).chain([rest]) {
                text.extend(token);
                ends.push(text.len());
            }
            belongs_in_tokens(&format, &text, &ends)
        };
        n_compared += 1;
        for _ in 0..4 {
            matcher.reset();
            let mut tokens = Vec::new();
            while tokens.len() < 5 {
                let is_next =
                    |token: usize| rests.iter().any(|rest| is_output(&[&*tokens, &[token]].concat(), rest));
                let mut right: Vec<usize> = (0..TOKENS.len()).filter(|&token| is_next(token)).collect();
                right.extend(is_output(&tokens, b"").then_some(TOKENS.len()));
                let found: Vec<usize> = matcher.mask().unwrap().iter().map(TokenId::index).collect();
                assert_eq!(found, right, "seed {seed}, behind {tokens:?}: {format}");
                let Some(&next) = right.iter().find(|&&next| next < TOKENS.len() && random.chance(50)) else {
                    break;
                };
                matcher.advance(TokenId(next as u32)).unwrap();
                tokens.push(next);
            }
        }
    }
    assert!(seeds().len() < 160 || n_compared > 25, "{n_compared}");
}

/// Whether the tag is one that has texts; what is wrong about it.
fn compare(format: &Value) -> Result<bool, String> {
    let texts = all_texts(b"ab", LONGEST);
    let sentences: HashSet<&[u8]> =
        texts.iter().map(Vec::as_slice).filter(|text| belongs(format, text)).collect();
    let viable: HashSet<&[u8]> =
        sentences.iter().flat_map(|text| (0..=text.len()).map(|at| &text[..at])).collect();
    let language = match language(&json!({"format": format}).to_string()) {
        Ok(language) => language,
        // Tags that cannot begin; the reference is not asked, `formats` has cases.
        Err(refusal) if refusal.kind == Kind::Unsatisfiable => return Ok(false),
        Err(refusal) => return Err(refusal.to_string()),
    };
    let mut reader = language.reader().map_err(|error| error.to_string())?;
    for text in texts.iter().filter(|text| text.len() <= LONGEST - MOST_LETTERS) {
        let reading = reader.read(text).map_err(|error| error.to_string())?;
        let ours = (reading.is_sentence, reading.is_viable);
        let theirs = (sentences.contains(&**text), viable.contains(&**text));
        if ours != theirs {
            let text = String::from_utf8_lossy(text);
            return Err(format!("{text:?} is {ours:?}, and not {theirs:?} (sentence, viable)"));
        }
    }
    let tokens: Vec<Vec<u8>> = all_texts(b"ab", LONGEST_TOKEN).split_off(1);
    let eos = SpecialIds { eos: vec![tokens.len() as u32], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(tokens.iter().cloned().chain([Vec::new()]), eos).unwrap();
    let mut matcher = Constraint::new(language, vocabulary).unwrap().matcher().unwrap();
    for prefix in all_texts(b"ab", LONGEST_PREFIX).iter().filter(|prefix| viable.contains(&***prefix)) {
        masks(&mut matcher, &tokens, prefix, (&sentences, &viable))?;
    }
    Ok(true)
}

fn masks(
    matcher: &mut Matcher,
    tokens: &[Vec<u8>],
    prefix: &[u8],
    (sentences, viable): (&HashSet<&[u8]>, &HashSet<&[u8]>),
) -> Result<(), String> {
    matcher.reset();
    let letters = prefix.iter().map(|&letter| TokenId(u32::from(letter - b'a')));
    for token in letters {
        matcher.advance(token).map_err(|error| format!("{:?}: {error}", String::from_utf8_lossy(prefix)))?;
    }
    let mask = matcher.mask().map_err(|error| error.to_string())?;
    for (at, token) in (0..).zip(tokens) {
        let text = [prefix, token].concat();
        if mask.contains(TokenId(at)) != viable.contains(&*text) {
            let (prefix, token) = (String::from_utf8_lossy(prefix), String::from_utf8_lossy(token));
            return Err(format!("the mask behind {prefix:?} is wrong about {token:?}"));
        }
    }
    match mask.contains(TokenId(tokens.len() as u32)) == sentences.contains(prefix) {
        true => Ok(()),
        false => Err(format!("the mask behind {:?} is wrong about EOS", String::from_utf8_lossy(prefix))),
    }
}
