//! Many outputs at once, drafts, shared masks and the change of engines: each as one output does it alone.

use std::sync::Arc;

use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    BatchOptions, Constraint, Draft, Engine, Language, LanguageOptions, Limits, MaskRows, MatchError,
    Matcher, batch_masks,
};
use anygram_testkit::random::Random;
use anygram_vocab::{TokenId, Vocabulary};

const SUMS: &str = r#"start: e
    e: e "+" e | e "*" e | "(" e ")" | "n""#;

fn constraint(engine: Engine) -> Constraint {
    let grammar = lark::parse(SUMS, &LarkOptions::default()).unwrap();
    let options = LanguageOptions { engine, ..LanguageOptions::default() };
    Constraint::new(Arc::new(Language::new(grammar, &options).unwrap()), Vocabulary::builtin()).unwrap()
}

fn token(constraint: &Constraint, text: &str) -> TokenId {
    constraint.vocabulary().encode(text).unwrap()[0]
}

#[test]
fn of_many_outputs() {
    for engine in Engine::ALL {
        let constraint = constraint(engine);
        let n_words = constraint.mask_words();
        for (n_outputs, n_tables) in [(0, 3), (1, 8), (5, 0), (9, 2), (9, 9)] {
            let mut matchers = constraint.matchers(BatchOptions { n_outputs, n_tables }).unwrap();
            assert_eq!(matchers.len(), n_outputs);
            for (at, matcher) in matchers.iter_mut().enumerate() {
                for text in ["(", "n", "+", "(", "n", ")", "*", "n", ")"].iter().take(at) {
                    matcher.advance(token(&constraint, text)).unwrap();
                }
            }
            let mut rows = vec![u32::MAX; n_outputs * n_words];
            let results = batch_masks(&mut matchers, MaskRows::new(&mut rows, n_words));
            assert!(results.len() == n_outputs && results.iter().all(Result::is_ok));
            for (matcher, row) in matchers.iter_mut().zip(rows.chunks(n_words)) {
                let mut fresh = constraint.matcher().unwrap();
                matcher.tokens().to_vec().into_iter().for_each(|token| fresh.advance(token).unwrap());
                assert_eq!(fresh.mask().unwrap().into_words(), row);
                assert_eq!(matcher.mask().unwrap().words(), row);
            }
            if n_outputs > 0 {
                let short = batch_masks(&mut matchers, MaskRows::new(&mut rows[1..], n_words));
                assert!(short.iter().all(|result| matches!(result, Err(MatchError::TooFewRows { .. }))));
            }
        }
    }
}

#[test]
fn of_drafts() {
    for engine in Engine::ALL {
        let constraint = constraint(engine);
        let n_words = constraint.mask_words();
        let mut random = Random::new(3);
        let texts = ["(", ")", "n", "+", "*"].map(|text| token(&constraint, text));
        let mut matcher = constraint.matcher().unwrap();
        for text in ["(", "n", "+"] {
            matcher.advance(token(&constraint, text)).unwrap();
        }
        for _ in 0..20 {
            let drafts: Vec<Draft> = (0..12)
                .map(|at| {
                    let token = *random.choose(&texts);
                    Draft { token, after: (at > 0 && random.chance(80)).then(|| random.below(at)) }
                })
                .collect();
            let mut rows = vec![u32::MAX; drafts.len() * n_words];
            let allowed = matcher.draft_masks(&drafts, MaskRows::new(&mut rows, n_words)).unwrap();
            let mut forks: Vec<Option<Matcher>> = Vec::new();
            for (at, &Draft { token, after }) in drafts.iter().enumerate() {
                let before = after.map_or(Some(&matcher), |after| forks[after].as_ref());
                let fork = before.and_then(|before| {
                    let mut fork = before.fork();
                    fork.advance(token).is_ok().then_some(fork)
                });
                assert_eq!(fork.is_some(), allowed[at]);
                let expected =
                    fork.as_ref().map_or(vec![0; n_words], |fork| fork.fork().mask().unwrap().into_words());
                assert_eq!(rows[at * n_words..][..n_words], expected);
                forks.push(fork);
            }
            assert_eq!(matcher.tokens().len(), 3);
        }
        let backwards = [Draft { token: texts[0], after: Some(0) }];
        let error =
            matcher.draft_masks(&backwards, MaskRows::new(&mut vec![0; n_words], n_words)).unwrap_err();
        assert_eq!(error, MatchError::DraftOrder { draft: 0, after: 0 });
        assert!(matches!(
            matcher.draft_masks(&backwards, MaskRows::new(&mut [], n_words)),
            Err(MatchError::TooFewRows { .. })
        ));
        let unknown = [Draft { token: TokenId(9_999_999), after: None }];
        assert!(matches!(
            matcher.draft_masks(&unknown, MaskRows::new(&mut vec![0; n_words], n_words)),
            Err(MatchError::UnknownToken { .. })
        ));
    }
}

/// A long sum is read by Earley's algorithm first, then by the chart; nothing else changes.
#[test]
fn of_outputs_that_change_engines() {
    let (auto, earley) = (constraint(Engine::Auto), constraint(Engine::Earley));
    assert!(auto.language().may_switch() && !earley.language().may_switch());
    let mut matchers = auto.matchers(BatchOptions { n_outputs: 2, n_tables: 1 }).unwrap();
    let mut plain = earley.matcher().unwrap();
    let [n, plus] = ["n", "+"].map(|text| token(&auto, text));
    for round in 0..2 {
        for at in 0..400 {
            let next = if at % 2 == 0 { n } else { plus };
            for matcher in &mut matchers {
                matcher.advance(next).unwrap();
            }
            plain.advance(next).unwrap();
            if at % 20 < 2 || at > 380 {
                let expected = plain.mask().unwrap().into_words();
                assert!(
                    matchers.iter_mut().all(|matcher| matcher.mask().unwrap().into_words() == expected),
                    "round {round}, {at}"
                );
            }
        }
        let mut fork = matchers[0].fork();
        fork.rollback(350).unwrap();
        matchers[1].rollback(1).unwrap();
        plain.rollback(1).unwrap();
        assert_eq!(matchers[1].mask().unwrap().into_words(), plain.mask().unwrap().into_words());
        plain.rollback(349).unwrap();
        assert_eq!(fork.mask().unwrap().into_words(), plain.mask().unwrap().into_words());
        matchers.iter_mut().for_each(Matcher::reset);
        plain.reset();
        assert_eq!(matchers[0].mask().unwrap().into_words(), plain.mask().unwrap().into_words());
    }
}

/// Tables that are full are made anew; what is known of masks survives that.
#[test]
fn of_renewed_tables() {
    let grammar = lark::parse(SUMS, &LarkOptions::default()).unwrap();
    let limits = Limits { shared_items: 2_000, ..Limits::default() };
    let options = LanguageOptions { engine: Engine::Earley, limits, ..LanguageOptions::default() };
    let small =
        Constraint::new(Arc::new(Language::new(grammar, &options).unwrap()), Vocabulary::builtin()).unwrap();
    let (mut small, mut plain) = (small.matcher().unwrap(), constraint(Engine::Earley).matcher().unwrap());
    let mut random = Random::new(5);
    let texts = ["(", ")", "n", "+", "*"].map(|text| token(small.constraint(), text));
    for _ in 0..12 {
        small.reset();
        plain.reset();
        for _ in 0..40 {
            let next = *random.choose(&texts);
            assert_eq!(small.advance(next).is_ok(), plain.advance(next).is_ok());
            assert_eq!(small.mask().unwrap().into_words(), plain.mask().unwrap().into_words());
        }
    }
    assert!(small.memo_counts().found > 0);
}
