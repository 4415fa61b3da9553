//! Random tags about tokens: all short sequences of four tokens, two of which are special, as the reference
//! has them.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn (default 300).

use std::collections::HashSet;

use anygram_left_to_right::{Constraint, ErrorKind, Matcher};
use anygram_structural_tag::Kind;
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
use serde_json::{Value, json};

use super::language;
use super::random::{all_texts, none_of, seeds};
use super::reference::belongs;

/// Sequences are enumerated up to this length.
const LONGEST: usize = 7;
/// What a tag asks for has at most so many tokens, so whatever was begun is finished by as many.
const MOST_ASKED: usize = 4;

const TOKENS: &[u8; 4] = b"abST";

fn vocabulary() -> Vocabulary {
    let tokens: [&[u8]; 7] = [b"a", b"b", b"", b"", b"", b"", b""];
    let special = SpecialIds { eos: vec![4], pad: Some(5), mask: Some(6) };
    let vocabulary = Vocabulary::from_tokens(tokens, special).unwrap();
    vocabulary.with_names([(2, "<|s|>"), (3, "<|t|>")]).unwrap()
}

fn token(random: &mut Random) -> Value {
    match random.below(4) {
        2 => json!("<|s|>"),
        3 => json!("<|t|>"),
        id => json!(id),
    }
}

fn tokens(random: &mut Random, most: usize) -> Vec<Value> {
    (0..random.below(most + 1)).map(|_| token(random)).collect()
}

fn tag(random: &mut Random, depth: usize, begin: &Value) -> Value {
    let end = match random.below(3) {
        0 => json!(""),
        1 => json!(*random.choose(&["a", "b"])),
        _ => json!({"type": "token", "token": token(random)}),
    };
    json!({"begin": {"type": "token", "token": begin}, "content": format(random, depth), "end": end})
}

fn format(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 12 }) {
        0 => json!({"type": "token", "token": token(random)}),
        1 => json!({"type": "exclude_token", "exclude_tokens": tokens(random, 2)}),
        2 => json!({"type": "any_tokens", "exclude_tokens": tokens(random, 2)}),
        3 => {
            json!({"type": "any_tokens", "exclude_tokens": tokens(random, 2), "max_tokens": random.below(3)})
        }
        4 => json!({"type": "any_text", "excludes": ["b"]}),
        5 => json!({"type": "sequence", "elements": [format(random, depth - 1), format(random, depth - 1)]}),
        6 => json!({"type": "optional", "content": format(random, depth - 1)}),
        7 => {
            let begin = token(random);
            let mut tag = tag(random, depth - 1, &begin);
            tag["type"] = json!("tag");
            tag
        }
        8 => {
            let rules: Vec<Value> =
                (0..=random.below(2)).map(|_| json!([token(random), format(random, depth - 1)])).collect();
            json!({"type": "token_dispatch", "rules": rules, "loop": random.chance(60),
                "exclude_tokens": tokens(random, 1)})
        }
        _ => {
            let triggers: Vec<Value> = (0..=random.below(2)).map(|_| token(random)).collect();
            let tags: Vec<Value> = (0..=random.below(2))
                .map(|_| {
                    let begin = random.choose(&triggers).clone();
                    tag(random, depth - 1, &begin)
                })
                .collect();
            json!({"type": "token_triggered_tags", "trigger_tokens": triggers, "tags": tags,
                "exclude_tokens": tokens(random, 1), "at_least_one": random.chance(30),
                "stop_after_first": random.chance(30)})
        }
    }
}

/// The tokens that a format asks for, all together.
fn n_asked(format: &Value) -> usize {
    let parts: usize = ["elements", "tags", "rules"]
        .iter()
        .filter_map(|name| format[*name].as_array())
        .flatten()
        .map(|part| part.get(1).map_or_else(|| n_asked(part), |content| 1 + n_asked(content)))
        .sum();
    let marks = ["begin", "end"].iter().filter(|name| !matches!(&format[**name], Value::Null)).count();
    let content = if format["content"].is_null() { 0 } else { n_asked(&format["content"]) };
    let own = matches!(format["type"].as_str(), Some("token" | "exclude_token"));
    parts + marks + content + usize::from(own)
}

#[test]
fn random_tags_of_tokens_are_those_of_the_reference() {
    let all = all_texts(TOKENS, LONGEST);
    let (mut n_compared, mut failures) = (0, Vec::new());
    for seed in seeds().into_iter().step_by(2) {
        let mut random = Random::new(seed);
        let format = loop {
            let format = format(&mut random, 2);
            if n_asked(&format) <= MOST_ASKED && format.to_string().contains("token") {
                break format;
            }
        };
        match compare(&format, &all) {
            Ok(is_compared) => n_compared += usize::from(is_compared),
            Err(message) => failures.push(format!("seed {seed}: {message}\n{format}")),
        }
    }
    none_of(&failures);
    assert!(seeds().len() < 100 || n_compared * 4 > seeds().len(), "{n_compared}");
}

fn compare(format: &Value, all: &[Vec<u8>]) -> Result<bool, String> {
    let sentences: HashSet<&[u8]> =
        all.iter().map(Vec::as_slice).filter(|text| belongs(format, text)).collect();
    let viable: HashSet<&[u8]> =
        sentences.iter().flat_map(|text| (0..=text.len()).map(|at| &text[..at])).collect();
    let language = match language(&json!({"format": format}).to_string()) {
        Ok(language) => language,
        Err(refusal) if refusal.kind == Kind::Unsatisfiable => return Ok(false),
        Err(refusal) => return Err(refusal.to_string()),
    };
    let constraint = match Constraint::new(language, vocabulary()) {
        // All tokens are excluded.
        Err(error) if error.kind() == ErrorKind::UnknownToken => return Ok(false),
        constraint => constraint.map_err(|error| error.to_string())?,
    };
    let mut matcher = constraint.matcher().unwrap();
    for text in all.iter().filter(|text| text.len() < LONGEST - MOST_ASKED && viable.contains(&***text)) {
        masks(&mut matcher, text, (&sentences, &viable))?;
    }
    Ok(true)
}

fn masks(
    matcher: &mut Matcher,
    text: &[u8],
    (sentences, viable): (&HashSet<&[u8]>, &HashSet<&[u8]>),
) -> Result<(), String> {
    let name = String::from_utf8_lossy(text);
    matcher.reset();
    for letter in text {
        let id = TOKENS.iter().position(|token| token == letter).unwrap();
        matcher.advance(TokenId(id as u32)).map_err(|error| format!("{name:?}: {error}"))?;
    }
    let found: Vec<u32> = matcher.mask().unwrap().iter().map(|token| token.0).collect();
    let is_next = |token: &u8| viable.contains(&*[text, &[*token]].concat());
    let mut right: Vec<u32> =
        (0..).zip(TOKENS).filter(|(_, token)| is_next(token)).map(|(id, _)| id).collect();
    right.extend(sentences.contains(text).then_some(4));
    if found != right {
        return Err(format!("the mask behind {name:?} is {found:?}, and not {right:?}"));
    }
    // Within a budget: those from which so many tokens make a sentence.
    for budget in 0..=2 {
        let mask = matcher.mask_with_budget(budget).unwrap();
        for (id, &token) in (0..).zip(TOKENS) {
            let next = [text, &[token]].concat();
            let n_more = |sentence: &[u8]| sentence.len() - next.len();
            let mut ends = sentences.iter().filter(|sentence| sentence.starts_with(&next));
            let right = budget > 0 && ends.any(|sentence| n_more(sentence) < budget as usize);
            if mask.contains(TokenId(id)) != right {
                return Err(format!("the mask within {budget} behind {name:?} is wrong about {id}"));
            }
        }
    }
    Ok(())
}

#[test]
fn canvases_refuse_sets_of_tokens() {
    let language = language(r#"{"format":{"type":"any_tokens"}}"#).unwrap();
    let error = language.needs_texts_alone("canvases").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("canvases"), "{error}");
}

#[test]
fn unknown_tokens_are_named() {
    for (format, name) in [
        (r#"{"type":"token","token":"<|x|>"}"#, "<|x|>"),
        (r#"{"type":"any_tokens","exclude_tokens":["<|x|>"]}"#, "<|x|>"),
        (r#"{"type":"exclude_token","exclude_tokens":[99]}"#, "<[99]>"),
        (r#"{"type":"exclude_token","exclude_tokens":[0,1,2,3]}"#, "<[^0,1,2,3]>"),
    ] {
        let error = Constraint::new(super::of_format(format), vocabulary()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownToken);
        assert!(error.to_string().contains(name), "{error}");
    }
}
