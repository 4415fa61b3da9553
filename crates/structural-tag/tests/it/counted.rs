//! Budgets of tags that count tokens and remember items, against all sequences of few tokens.

use std::collections::HashMap;

use anygram_left_to_right::{Constraint, Matcher};
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
use serde_json::json;

use super::language;

const TOKENS: [&str; 13] = ["[", "]", "1", "2", ",", "1,", ",2", "x", "x[", "]x", "[1", "2]", "xx"];
const EOS: u32 = TOKENS.len() as u32;
/// Completions of at most so many tokens are looked at.
const DEEPEST: usize = 2;

/// How many tokens may have bytes before and behind the array.
type Most = (u64, u64);

fn constraint((before, behind): Most, has_all_bytes: bool) -> Constraint {
    let schema = json!({"type": "array", "items": {"type": "integer", "minimum": 1}, "uniqueItems": true});
    let elements = json!([
        {"type": "any_text", "max_tokens": before},
        {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": 0},
        {"type": "any_text", "max_tokens": behind},
    ]);
    let tag = json!({"type": "structural_tag", "format": {"type": "sequence", "elements": elements}});
    let own = TOKENS.iter().map(|token| token.as_bytes().to_vec());
    let is_other = |byte: &u8| has_all_bytes && !TOKENS.iter().any(|token| token.as_bytes() == [*byte]);
    let others = (0..=u8::MAX).filter(is_other).map(|byte| vec![byte]);
    let special = SpecialIds { eos: vec![EOS], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(own.chain([Vec::new()]).chain(others), special).unwrap();
    let language = language(&tag.to_string()).unwrap();
    assert!(language.grammar().remembers());
    Constraint::new(language, vocabulary).unwrap()
}

/// The arrays in a text whose items differ, and where they begin.
fn arrays(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let array = |(at, _)| {
        let array = text[at..].split_inclusive(']').next()?;
        let inner = array[1..].strip_suffix(']')?;
        let items: Vec<&str> = inner.split(',').collect();
        let is_new = |at: usize| !items[at].is_empty() && !items[..at].contains(&items[at]);
        let is_array = inner.is_empty() || (0..items.len()).all(is_new);
        let are_digits = inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        (is_array && are_digits).then_some((at, array))
    };
    text.match_indices('[').filter_map(array)
}

fn is_output(tokens: &[u32], (before, behind): Most) -> bool {
    let (mut text, mut ends) = (String::new(), vec![0]);
    for &token in tokens {
        text.push_str(TOKENS[token as usize]);
        ends.push(text.len());
    }
    let n_tokens = |from: usize, to: usize| {
        ends.windows(2).filter(|token| token[0].max(from) < token[1].min(to)).count()
    };
    let is_cut = |(at, array): (usize, &str)| {
        n_tokens(0, at) as u64 <= before && n_tokens(at + array.len(), text.len()) as u64 <= behind
    };
    arrays(&text).any(is_cut)
}

/// The fewest tokens that make an output of some, if they are few.
fn least(tokens: &[u32], most: Most, known: &mut HashMap<Vec<u32>, Option<u32>>) -> Option<u32> {
    if let Some(&least) = known.get(tokens) {
        return least;
    }
    let mut level = vec![tokens.to_vec()];
    let found = (0..=DEEPEST as u32).find(|_| {
        let is_over = level.iter().any(|tokens| is_output(tokens, most));
        let longer = |tokens: &Vec<u32>| {
            let tokens = tokens.clone();
            (0..EOS).map(move |id| [&*tokens, &[id]].concat())
        };
        level = level.iter().flat_map(longer).collect();
        is_over
    });
    known.insert(tokens.to_vec(), found);
    found
}

fn compare(matcher: &mut Matcher, tokens: &[u32], most: Most, known: &mut HashMap<Vec<u32>, Option<u32>>) {
    let right = least(tokens, most, known);
    assert_eq!(matcher.minimum_tokens(DEEPEST as u32).unwrap(), right, "behind {tokens:?}, {most:?}");
    for budget in (0..=DEEPEST as u32 + 1).rev().chain(0..=DEEPEST as u32 + 1) {
        let mut next = |id: &u32| {
            budget > 0 && least(&[tokens, &[*id]].concat(), most, known).is_some_and(|least| least < budget)
        };
        let mut right: Vec<u32> = (0..EOS).filter(&mut next).collect();
        right.extend(is_output(tokens, most).then_some(EOS));
        let mask = matcher.mask_with_budget(budget).unwrap();
        // The other bytes are free text.
        let found: Vec<u32> = mask.iter().map(|token| token.0).filter(|&id| id <= EOS).collect();
        assert_eq!(found, right, "behind {tokens:?} within {budget}, {most:?}");
    }
}

#[test]
fn budgets_count_tokens_and_remember_items() {
    for (most, has_all_bytes) in
        [((1, 1), false), ((2, 0), false), ((0, 2), true), ((2, 1), true), ((3, 3), false)]
    {
        let mut matcher = constraint(most, has_all_bytes).matcher().unwrap();
        let mut known = HashMap::new();
        let mut agenda: Vec<Vec<u32>> = vec![Vec::new()];
        let (mut random, mut n_texts) = (Random::new(17), 0);
        while let Some(tokens) = agenda.pop() {
            matcher.reset();
            matcher.advance_all(&tokens.iter().copied().map(TokenId).collect::<Vec<_>>()).unwrap();
            compare(&mut matcher, &tokens, most, &mut known);
            n_texts += 1;
            if tokens.len() < 4 {
                let mask = matcher.mask().unwrap();
                let allowed = mask.iter().filter(|token| token.0 < EOS);
                let next = allowed.filter(|_| tokens.is_empty() || random.chance(35));
                agenda.extend(next.map(|token| [&*tokens, &[token.0]].concat()));
            }
        }
        assert!(n_texts > 20, "{n_texts}");
    }
}
