//! Outputs on tables that begin new parser states all the time: masks, budgets, drafts and refusals are those
//! of outputs that each have tables of their own. `ANYGRAM_SEED` and `ANYGRAM_SEEDS` as in `oracle.rs`.

use std::sync::Arc;

use anygram_grammar::ir::{Grammar, LexerMode};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    Constraint, Draft, Engine, Language, LanguageOptions, Limits, MaskRows, MatchError, Matcher,
};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;
use anygram_vocab::{TokenId, TokenMask, Vocabulary};

use crate::memo::vocabulary;

/// An output on crowded tables, and the same alone.
type Pair = (Matcher, Matcher);

fn pairs(
    grammar: &Grammar,
    options: LanguageOptions,
    vocabulary: &Vocabulary,
    shared_items: usize,
) -> Option<Vec<Pair>> {
    let limits = Limits { shared_items, ..Limits::default() };
    let constraint = |limits| {
        let language = Language::new(grammar.clone(), &LanguageOptions { limits, ..options }).ok()?;
        Constraint::new(Arc::new(language), vocabulary.clone()).ok()
    };
    let (crowded, alone) = (constraint(limits)?.matcher().ok()?, constraint(Limits::default())?);
    (0..4).map(|_| Some((crowded.fork(), alone.matcher().ok()?))).collect()
}

fn allowed(mask: &TokenMask, size: usize) -> Vec<TokenId> {
    (0..size).map(TokenId::new).filter(|&token| mask.contains(token)).collect()
}

/// One thing that outputs do. Returns whether masks were compared.
fn step(random: &mut Random, pairs: &mut [Pair], context: &str) -> bool {
    let (at, other) = (random.below(pairs.len()), random.below(pairs.len()));
    let size = pairs[0].0.constraint().vocabulary().len();
    let (crowded, alone) = &mut pairs[at];
    assert_eq!(crowded.tokens(), alone.tokens());
    let told = |matcher: &Matcher| (matcher.is_sentence(), matcher.has_ended(), matcher.expected());
    assert_eq!(told(crowded), told(alone), "{context}, after {:?}", alone.tokens());
    match random.below(20) {
        0 => {
            crowded.reset();
            alone.reset();
        }
        1 => pairs[at] = (pairs[other].0.fork(), pairs[other].1.fork()),
        2 | 3 => {
            let n = random.below(alone.tokens().len() + 1);
            crowded.rollback(n).unwrap();
            alone.rollback(n).unwrap();
        }
        4 => {
            let budget = random.below(8) as u32;
            match (crowded.mask_with_budget(budget), alone.mask_with_budget(budget)) {
                (Err(MatchError::Limit(_)), _) | (_, Err(MatchError::Limit(_))) => {}
                (one, other) => assert_eq!(one, other, "{context}, budget {budget}, {:?}", alone.tokens()),
            }
        }
        5 => {
            let drafts: Vec<Draft> = (0..3)
                .map(|at| Draft { token: TokenId::new(random.below(size)), after: usize::checked_sub(at, 1) })
                .collect();
            let width = alone.constraint().mask_words();
            let mut words = [vec![0; 3 * width], vec![0; 3 * width]];
            let [one, other] = &mut words;
            let one = crowded.draft_masks(&drafts, MaskRows::new(one, width));
            let other = alone.draft_masks(&drafts, MaskRows::new(other, width));
            assert_eq!(one, other, "{context}, {:?}", alone.tokens());
            assert_eq!(words[0], words[1], "{context}, {:?}", alone.tokens());
        }
        6 => {
            let tokens: Vec<TokenId> = (0..4).map(|_| TokenId::new(random.below(size))).collect();
            assert_eq!(crowded.validate(&tokens), alone.validate(&tokens), "{context}");
            assert_eq!(crowded.advance_all(&tokens), alone.advance_all(&tokens), "{context}");
        }
        _ => {
            let mask = alone.mask().unwrap();
            let mut words = vec![0; alone.constraint().mask_words()];
            if crowded.known_mask_into(&mut words).unwrap() {
                assert_eq!(words, mask.words(), "{context}, known, after {:?}", alone.tokens());
            }
            assert_eq!(crowded.mask().unwrap(), mask, "{context}, after {:?}", alone.tokens());
            let allowed = allowed(&mask, size);
            if allowed.is_empty() || alone.tokens().len() > 60 {
                crowded.reset();
                alone.reset();
            } else {
                let token = *random.choose(&allowed);
                assert_eq!(crowded.advance(token), alone.advance(token), "{context}");
            }
            return true;
        }
    }
    false
}

#[test]
fn of_random_grammars() {
    let mut n_compared = 0;
    for seed in anygram_testkit::random::seeds(60) {
        for mode in [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual] {
            for engine in [Engine::Auto, Engine::Earley, Engine::Valiant] {
                let case = RandomCase::in_mode(seed, mode);
                let options = LanguageOptions { lexer: Some(mode), engine, ..LanguageOptions::default() };
                let mut random = Random::new(seed);
                let shared_items = random.below(60);
                let Some(mut pairs) = pairs(&case.grammar, options, &vocabulary(&case.vocab), shared_items)
                else {
                    continue;
                };
                let context = format!("seed {seed}, {}, {}", mode.name(), engine.name());
                n_compared += (0..100).filter(|_| step(&mut random, &mut pairs, &context)).count();
            }
        }
    }
    assert!(n_compared > 3_000, "{n_compared} masks were compared");
}

/// What an output remembers names readings too: here the tokens in pieces in progress.
#[test]
fn where_tokens_are_counted() {
    const GRAMMARS: [&str; 3] = [
        r#"start: "(" start ")" | a start | b
        a[max_tokens=2]: /[a-c]+/
        b[max_tokens=3]: /[0-9 ]+/"#,
        r#"start: part ("," part)*
        part[max_tokens=3]: "x" "="* /[a-z]*/"#,
        r#"start: a start a | b
        a[max_tokens=2]: "a"+
        b[max_tokens=1]: /b?c*/"#,
    ];
    for grammar in GRAMMARS {
        let parsed = lark::parse(grammar, &LarkOptions::default()).unwrap();
        for shared_items in [0, 7, 30] {
            let pairs = pairs(&parsed, LanguageOptions::default(), &Vocabulary::builtin(), shared_items);
            let (mut pairs, mut random) = (pairs.unwrap(), Random::new(3));
            let n_compared = (0..150).filter(|_| step(&mut random, &mut pairs, grammar)).count();
            assert!(n_compared > 60, "{n_compared} masks were compared");
        }
    }
}

/// The tables stay as small as the limit, however many outputs there are and however long they go on.
#[test]
fn tables_stay_small() {
    let grammar =
        lark::parse(r#"start: (/[a-z]+/ | "(" start ")" | "[" start "]")*"#, &LarkOptions::default());
    let limits = Limits { shared_items: 3_000, ..Limits::default() };
    let options = LanguageOptions { engine: Engine::Earley, limits, ..LanguageOptions::default() };
    let language = Language::new(grammar.unwrap(), &options).unwrap();
    let constraint = Constraint::new(Arc::new(language), Vocabulary::builtin()).unwrap();
    let first = constraint.matcher().unwrap();
    let mut outputs: Vec<Matcher> = (0..200).map(|_| first.fork()).collect();
    let open = ["(", "["].map(|text| constraint.vocabulary().encode(text).unwrap()[0]);
    let mut random = Random::new(1);
    let mut words = vec![0; constraint.mask_words()];
    let mut most = 0;
    for n in 0..20_000 {
        let output = &mut outputs[random.below(200)];
        output.mask_into(&mut words).unwrap();
        output.advance(*random.choose(&open)).unwrap();
        if output.tokens().len() > 30 {
            output.reset();
        }
        if n % 100 == 0 {
            most = most.max(output.memory_usage());
        }
    }
    println!("{most} bytes");
    // Two times as many states of each output are reachable as the limit allows beside them.
    assert!(most < 3_000_000, "{most} bytes");
}
