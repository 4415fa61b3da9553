//! Bounds on tokens beside values whose items differ.

use anygram::{Compiler, Constraint, GrammarFormat, Matcher, SpecialIds, TokenId, Vocabulary};
use anygram_testkit::random::Random;

/// Parts that need as many tokens as they may have, or one more in single bytes.
const PARTS: [&str; 4] = ["/aaaab/", "/a{4,6}b/", "/(ab){2,3}/", "/[ab]{5}/"];
/// A value whose items differ, before the part or behind it.
const VALUE: &str = r#"%json {"type": "array", "items": {"type": "integer"}, "uniqueItems": true}"#;
const TOKENS: [&str; 5] = ["aa", "ab", "bc", "[1", "2]"];

/// Whether a mask within each budget has the tokens behind which as many are enough as are left.
fn check(matcher: &mut Matcher, grammar: &str) {
    let plain: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
    let eos = matcher.constraint().vocabulary().eos().to_vec();
    let mut least: Vec<Option<u32>> = Vec::new();
    for &token in &plain {
        let mut fork = matcher.fork();
        fork.advance(token).unwrap();
        least.push(fork.minimum_tokens(40).unwrap());
    }
    for budget in (1..=16).chain([40]) {
        let is_within = |least: &Option<u32>| least.is_some_and(|least| least < budget);
        let mut right: Vec<TokenId> = Vec::new();
        for (&token, least) in plain.iter().zip(&least) {
            if eos.contains(&token) || is_within(least) {
                right.push(token);
            }
        }
        let found: Vec<TokenId> = matcher.mask_with_budget(budget).unwrap().iter().collect();
        assert_eq!(found, right, "within {budget}, {grammar}\n{:?}", matcher.tokens());
    }
}

#[test]
fn budgets_count_tokens_where_items_differ() {
    let seeds = anygram_testkit::random::seeds(40);
    // Every byte is a token, so there are bounds that take no search.
    let special = SpecialIds { eos: vec![256], ..SpecialIds::default() };
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]).chain([Vec::new()]);
    let tokens = bytes.chain(TOKENS.map(|token| token.as_bytes().to_vec()));
    let vocabulary = Vocabulary::from_tokens(tokens, special).unwrap();
    let mut n_cut = 0;
    for seed in seeds {
        let mut random = Random::new(seed);
        let (part, most) = (PARTS[random.below(PARTS.len())], 2 + random.below(4));
        let start = if random.chance(50) { "p value" } else { "value p" };
        let grammar = format!("start: {start}\np[max_tokens={most}]: {part}\nvalue: {VALUE}");
        let language = Compiler::default().compile(GrammarFormat::Lark, &grammar).unwrap();
        let mut matcher = Constraint::new(language, vocabulary.clone()).unwrap().matcher().unwrap();
        for _ in 0..12 {
            check(&mut matcher, &grammar);
            let mask = matcher.mask().unwrap();
            let within: Vec<TokenId> = matcher.mask_with_budget(40).unwrap().iter().collect();
            n_cut += usize::from(within.len() < mask.count());
            let Some(&next) = (!within.is_empty()).then(|| &within[random.below(within.len())]) else {
                break;
            };
            matcher.advance(next).unwrap();
            if matcher.has_ended() {
                break;
            }
        }
    }
    assert!(n_cut > 0, "no part is too long for its tokens");
}
