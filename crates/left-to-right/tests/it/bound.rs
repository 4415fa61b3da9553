//! Tables of many constraints within one bound: never beyond it between operations, and masks as without.

use std::sync::Arc;

use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    Constraint, Engine, Language, LanguageOptions, Limits, MatchError, Matcher, TablesBound, Warm,
};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;
use anygram_vocab::{TokenId, Vocabulary};

use crate::memo::vocabulary;

/// Grammars whose tables differ in size; one is so ambiguous that its outputs change the engine.
const GRAMMARS: [&str; 6] = [
    r#"start: "(" start ")" | "x""#,
    r#"start: e
    e: e "+" e | e "*" e | "(" e ")" | N
    N: /[0-9]+/"#,
    r#"start: (WORD " "?)+
    WORD: /[a-z]{1,4}/"#,
    r#"start: "a" start "a" | "b" start "b" | "c""#,
    r#"start: pair ("," pair)*
    pair: KEY "=" VALUE
    KEY: /[a-c]+/
    VALUE: /"[^"]*"/
    %ignore " ""#,
    r#"start: start start | "y" | "z""#,
];

fn constraint(grammar: &str, limits: Limits) -> Constraint {
    let grammar = lark::parse(grammar, &LarkOptions::default()).unwrap();
    let options = LanguageOptions { engine: Engine::Auto, limits, ..LanguageOptions::default() };
    Constraint::new(Arc::new(Language::new(grammar, &options).unwrap()), Vocabulary::builtin()).unwrap()
}

/// One step of both: a mask, perhaps within a budget, and a token of it. Starts anew where nothing follows.
fn step(random: &mut Random, bounded: &mut Matcher, plain: &mut Matcher) {
    let budget = random.below(3) == 0;
    let ask = |matcher: &mut Matcher| match budget {
        true => matcher.mask_with_budget(12),
        false => matcher.mask(),
    };
    let (mask, expected) = match (ask(bounded), ask(plain)) {
        (Ok(mask), Ok(expected)) => (mask, expected),
        // What is known decides how far a search comes.
        (Err(MatchError::Limit(_)), _) | (_, Err(MatchError::Limit(_))) => {
            bounded.reset();
            plain.reset();
            return;
        }
        errors => panic!("after {:?}: {errors:?}", plain.tokens()),
    };
    assert_eq!(mask, expected, "after {:?}", plain.tokens());
    let size = plain.constraint().vocabulary().len();
    let allowed: Vec<TokenId> = (0..size).map(TokenId::new).filter(|&token| mask.contains(token)).collect();
    if allowed.is_empty() || plain.tokens().len() > 40 {
        bounded.reset();
        plain.reset();
        return;
    }
    let token = *random.choose(&allowed);
    match (bounded.advance(token), plain.advance(token)) {
        (Ok(()), Ok(())) => {}
        (Err(MatchError::Limit(_)), _) | (_, Err(MatchError::Limit(_))) => {
            bounded.reset();
            plain.reset();
        }
        errors => panic!("after {:?}: {errors:?}", plain.tokens()),
    }
}

/// Outputs of all grammars in turns, whose tables take several times the bound.
#[test]
fn masks_are_the_same_and_tables_within_it() {
    // With few items, so that tables are renewed too.
    for limits in [Limits::default(), Limits { mask_bytes: 1 << 16, ..Limits::default() }] {
        let plain = GRAMMARS.map(|grammar| constraint(grammar, limits));
        let mut without: Vec<Matcher> = plain.iter().map(|one| one.matcher().unwrap()).collect();
        let bound = TablesBound::new(usize::MAX);
        let (mut warm, bounded) = (Warm::default(), plain.each_ref().map(|one| one.bounded(&bound)));
        let mut with: Vec<Matcher> = bounded.iter().map(|one| warm.matcher(one).unwrap()).collect();
        let mut random = Random::new(7);
        for n in 0..1200 {
            let at = random.below(GRAMMARS.len());
            step(&mut random, &mut with[at], &mut without[at]);
            // Outputs that were moved to another engine have more than what `Warm` looks at.
            if n % 100 == 99 {
                with.iter_mut().zip(&mut without).for_each(|(one, other)| {
                    one.reset();
                    other.reset();
                });
                assert!(bound.bytes() <= bound.most());
                assert_eq!(warm.memory_usage(), Some(bound.bytes()), "step {n}");
            }
            if n == 300 {
                assert_eq!(bound.n_emptied(), 0);
                bound.set_most(bound.bytes() / 3);
                assert!(bound.bytes() <= bound.most() && bound.n_emptied() > 0);
            }
            if bound.bytes() > bound.most() {
                // Only what holds the outputs is left.
                let left = bound.bytes();
                bound.set_most(0);
                assert_eq!(bound.bytes(), left, "step {n}");
                bound.set_most(left);
            }
        }
        println!("{} bytes, emptied {} times", bound.most(), bound.n_emptied());
        assert!(bound.n_emptied() > 20);
        drop((warm, with));
        assert_eq!(bound.bytes(), 0);
    }
}

/// Threads that work on tables of their own within one bound.
#[test]
fn of_threads() {
    let plain = GRAMMARS.map(|grammar| constraint(grammar, Limits::default()));
    let bound = TablesBound::new(1 << 17);
    let bounded = plain.each_ref().map(|one| one.bounded(&bound));
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (plain, bounded) = (&plain, &bounded);
            scope.spawn(move || {
                let start = |all: &[Constraint]| -> Result<Vec<Matcher>, MatchError> {
                    all.iter().map(Constraint::matcher).collect()
                };
                let (mut without, mut with) = (start(plain).unwrap(), start(bounded).unwrap());
                let mut random = Random::new(n);
                for _ in 0..300 {
                    let at = random.below(GRAMMARS.len());
                    step(&mut random, &mut with[at], &mut without[at]);
                }
            });
        }
    });
    assert!(bound.n_emptied() > 0);
    assert_eq!(bound.bytes(), 0);
}

/// Random grammars in all modes, all within one bound that lets nothing be kept for long.
#[test]
fn of_random_grammars() {
    let seeds = anygram_testkit::random::seeds(40);
    let bound = TablesBound::new(1 << 16);
    let mut outputs: Vec<(Matcher, Matcher)> = Vec::new();
    for seed in seeds {
        for mode in [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual] {
            let case = RandomCase::in_mode(seed, mode);
            let options = LanguageOptions { lexer: Some(mode), ..LanguageOptions::default() };
            // Some are empty, which is an error.
            let Ok(language) = Language::new(case.grammar.clone(), &options) else { continue };
            let Ok(plain) = Constraint::new(Arc::new(language), vocabulary(&case.vocab)) else { continue };
            let (Ok(with), Ok(without)) = (plain.bounded(&bound).matcher(), plain.matcher()) else {
                continue;
            };
            outputs.push((with, without));
        }
        let mut random = Random::new(seed);
        for _ in 0..60 {
            let at = random.below(outputs.len().max(1));
            let Some((with, without)) = outputs.get_mut(at) else { continue };
            step(&mut random, with, without);
        }
        if outputs.len() > 20 {
            outputs.drain(..10);
        }
    }
    println!("{} bytes, emptied {} times", bound.bytes(), bound.n_emptied());
    assert!(bound.n_emptied() > 20);
}
