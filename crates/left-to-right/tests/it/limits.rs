//! Limits: small ones change nothing but the work, or give an error that leaves the state usable.

use std::sync::Arc;

use anygram_bits::work::Cancel;
use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    CompileError, Constraint, Engine, Language, LanguageOptions, Limits, MatchError,
};
use anygram_lexer::LexerLimits;
use anygram_recognizer::RecognizerLimits;
use anygram_vocab::{Format, LoadOptions, TokenMask, Vocabulary};

const GRAMMAR: &str = r#"
    start: "select" column ("," column)* "from" NAME
    column: NAME | NUMBER | "(" start ")"
    NAME: /[a-z]+/
    NUMBER: /[0-9]+(\.[0-9]+)?/
    %ignore /[ \n]+/
"#;

const TEXT: &str = "select a, (select 1.5, bc from de), 27 from xyz";

fn constraint(limits: Limits, engine: Engine) -> Result<Constraint, CompileError> {
    let grammar = lark::parse(GRAMMAR, &LarkOptions::default()).unwrap();
    let options = LanguageOptions { engine, limits, ..LanguageOptions::default() };
    Constraint::new(Arc::new(Language::new(grammar, &options)?), Vocabulary::builtin())
}

/// All masks along the text.
fn masks(constraint: &Constraint) -> Result<Vec<TokenMask>, MatchError> {
    let mut matcher = constraint.matcher()?;
    let mut masks = Vec::new();
    for token in constraint.vocabulary().encode(TEXT).unwrap() {
        masks.push(matcher.mask()?);
        matcher.advance(token)?;
    }
    assert!(matcher.is_sentence());
    Ok(masks)
}

#[test]
fn small_caches_change_no_mask() {
    let expected = masks(&constraint(Limits::default(), Engine::Reference).unwrap()).unwrap();
    for engine in Engine::ALL {
        for (cache_bytes, shared_items) in [(0, 0), (1, 1), (2 << 10, 200), (0, 3_000_000), (128 << 20, 0)] {
            let limits = Limits { cache_bytes, shared_items, ..Limits::default() };
            let masks = masks(&constraint(limits, engine).unwrap()).unwrap();
            assert_eq!(
                masks,
                expected,
                "{} with {cache_bytes} bytes and {shared_items} items",
                engine.name()
            );
        }
    }
}

#[test]
fn a_table_that_is_full_is_renewed_or_named() {
    let expected = masks(&constraint(Limits::default(), Engine::Reference).unwrap()).unwrap();
    for engine in [Engine::Reference, Engine::Earley] {
        let mut outcomes = [0; 2];
        for lexemes in [1, 10, 40, 60, 100, 1000] {
            let limits =
                Limits { lexer: LexerLimits { lexemes, ..LexerLimits::default() }, ..Limits::default() };
            match constraint(limits, engine).map(|constraint| masks(&constraint)) {
                Ok(Ok(masks)) => {
                    assert_eq!(masks, expected);
                    outcomes[0] += 1;
                }
                Ok(Err(error)) => {
                    assert_eq!(error.limit(), Some(("lexemes", lexemes as u64)), "{error}");
                    outcomes[1] += 1;
                }
                Err(error) => {
                    assert_eq!(error.limit(), Some(("lexemes", lexemes as u64)), "{error}");
                    outcomes[1] += 1;
                }
            }
        }
        assert!(outcomes.iter().all(|&count| count > 0), "both outcomes occur: {outcomes:?}");
    }
}

#[test]
fn a_table_that_is_full_in_the_middle_of_a_budget_is_renewed() {
    let budgets = |lexemes, items| {
        let limits = Limits {
            lexer: LexerLimits { lexemes, ..LexerLimits::default() },
            recognizer: RecognizerLimits { items },
            ..Limits::default()
        };
        let constraint = constraint(limits, Engine::Earley).map_err(|error| error.limit())?;
        let tokens = constraint.vocabulary().encode(TEXT).unwrap();
        let mut matcher = constraint.matcher().map_err(|error| error.limit())?;
        let mut masks = Vec::new();
        for (at, &token) in tokens.iter().enumerate() {
            let left = (tokens.len() - at) as u32;
            masks.push(matcher.mask_with_budget(left).map_err(|error| error.limit())?);
            matcher.advance(token).map_err(|error| error.limit())?;
        }
        Ok::<_, Option<(&str, u64)>>(masks)
    };
    let expected = budgets(500_000, 10_000_000).unwrap();
    let mut n_full = 0;
    for (lexemes, items) in (20..200)
        .step_by(5)
        .map(|few| (few, 10_000_000))
        .chain((100..1_000).step_by(50).map(|few| (500_000, few)))
    {
        match budgets(lexemes, items) {
            Ok(masks) => assert!(masks == expected, "{lexemes} lexemes, {items} items"),
            Err(limit) => {
                assert!(limit.is_some());
                n_full += 1;
            }
        }
    }
    assert!(n_full > 0);
}

#[test]
fn where_too_much_can_follow_contextual_looks_elsewhere() {
    let source = r#"
        start: item*
        item: LESS | TAG | NAME | X | Y
        LESS: "<"
        TAG: /<[a-z]{40}>/
        NAME: /[a-z]+/
        X: /[a-z]*x[a-z]*/
        Y: /[a-z]*y[a-z]*/
    "#;
    let masks = |lexemes| {
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let limits = Limits { lexer: LexerLimits { lexemes, ..LexerLimits::default() }, ..Limits::default() };
        let options =
            LanguageOptions { lexer: Some(LexerMode::Contextual), limits, ..LanguageOptions::default() };
        let language = Arc::new(Language::new(grammar, &options).unwrap());
        let tokens = br#"["<", "a", "ab", "abc", ">", "<a", "b"]"#;
        let options = LoadOptions::default();
        let vocabulary = Vocabulary::from_bytes(Format::JsonArray, tokens, &options).unwrap();
        let constraint = Constraint::new(language, vocabulary).unwrap();
        let mut matcher = constraint.matcher().unwrap();
        let mut masks = Vec::new();
        for token in constraint.vocabulary().encode("<abab<aab").unwrap() {
            masks.push(matcher.mask().unwrap());
            matcher.advance(token).unwrap();
        }
        masks
    };
    assert_eq!(masks(60), masks(500_000));
}

#[test]
fn an_error_leaves_the_state_usable() {
    // As many items as most steps need, but not those inside the parentheses.
    let full = constraint(Limits::default(), Engine::Reference).unwrap();
    let tokens = full.vocabulary().encode(TEXT).unwrap();
    let mut failed = false;
    for items in (20..200).step_by(10) {
        let limits = Limits { recognizer: RecognizerLimits { items }, ..Limits::default() };
        let Ok(constraint) = constraint(limits, Engine::Reference) else { continue };
        let Ok(mut matcher) = constraint.matcher() else { continue };
        for &token in &tokens {
            let before = (matcher.tokens().len(), matcher.is_sentence(), matcher.expected());
            match matcher.advance(token) {
                Ok(()) => {}
                Err(MatchError::Limit(error)) => {
                    assert_eq!(error.limit(), Some(("parser_items", items as u64)), "{error}");
                    assert_eq!((matcher.tokens().len(), matcher.is_sentence(), matcher.expected()), before);
                    let taken_back = matcher.tokens().len();
                    matcher.rollback(taken_back).unwrap();
                    matcher.advance(tokens[0]).unwrap();
                    failed = true;
                    break;
                }
                Err(error) => panic!("{items} items: {error}"),
            }
        }
    }
    assert!(failed, "some limit was hit in the middle");
}

#[test]
fn automata_too_large_are_named() {
    for (source, what) in [
        ("start: /(a{1000}){1000}/", "nfa_states"),
        ("start: /(a|b)*a(a|b){20}/", "dfa_states"),
        ("start: A | B\nA: /(a|b)*a(a|b){11}/\nB: /(a|b)*b(a|b){11}c/", "union_entries"),
    ] {
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let lexer = LexerLimits { union_entries: 10_000, ..LexerLimits::default() };
        let options =
            LanguageOptions { limits: Limits { lexer, ..Limits::default() }, ..LanguageOptions::default() };
        let error = Language::new(grammar, &options).unwrap_err();
        assert!(error.to_string().contains(what), "{source}: {error}");
    }
}

#[test]
fn long_and_deep_texts_need_no_stack() {
    let source = "start: \"(\" start \")\" | \"x\" start | \"x\"";
    for engine in [Engine::Reference, Engine::Earley] {
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let language =
            Language::new(grammar, &LanguageOptions { engine, ..LanguageOptions::default() }).unwrap();
        let depth = if engine == Engine::Reference { 500 } else { 20_000 };
        let text = format!("{}x{}", "(".repeat(depth), ")".repeat(depth));
        let reading = language.read(text.as_bytes()).unwrap();
        assert!(reading.is_sentence, "{}", engine.name());
        assert!(!language.read(&text.as_bytes()[..text.len() - 1]).unwrap().is_sentence);
    }
}

#[test]
fn limits_are_set_by_the_names_that_errors_use() {
    let mut seen = Vec::new();
    for name in Limits::NAMES {
        let mut limits = Limits::default();
        limits.set(name, 7).unwrap();
        assert_ne!(limits, Limits::default(), "{name}");
        assert_eq!(limits.get(name), Some(7), "{name}");
        assert!(!seen.contains(&limits), "{name} is another's");
        seen.push(limits);
    }
    assert_eq!(Limits::default().set("steps", 7), None);
    assert_eq!(Limits::default().get("steps"), None);
}

#[test]
fn compiling_counts_its_steps_and_stops_at_the_limit() {
    let grammar = lark::parse(GRAMMAR, &LarkOptions::default()).unwrap();
    for mode in LexerMode::ALL {
        let options = |compile_steps| LanguageOptions {
            lexer: Some(mode),
            limits: Limits { compile_steps, ..Limits::default() },
            ..LanguageOptions::default()
        };
        let needed = Language::new(grammar.clone(), &options(u64::MAX)).unwrap().compile_steps();
        assert_eq!(Language::new(grammar.clone(), &options(needed)).unwrap().compile_steps(), needed);
        for limit in (0..needed).step_by(needed as usize / 50) {
            let error = Language::new(grammar.clone(), &options(limit)).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("this takes more than {limit} steps; raise the limit `compile_steps`")
            );
        }
    }
}

#[test]
fn compiling_can_be_cancelled_from_another_thread() {
    // Some seconds of work, if nobody stops it.
    let words: Vec<String> = (0..300).map(|at| format!("/.*a.{{{}}}b{at}/", at % 12)).collect();
    let source = format!("start: {}", words.join(" | "));
    let grammar = lark::parse(&source, &LarkOptions::default()).unwrap();
    let limits = Limits { compile_steps: u64::MAX, ..Limits::default() };
    let cancel = Cancel::new();
    let error = std::thread::scope(|scope| {
        let compiling = scope.spawn(|| {
            let options = LanguageOptions { limits, ..LanguageOptions::default() };
            Language::cancellable(grammar, &options, cancel.clone()).unwrap_err()
        });
        cancel.cancel();
        compiling.join().unwrap()
    });
    assert_eq!(error.to_string(), "cancelled");
}

#[test]
fn masks_and_tokens_stop_at_their_limit_and_can_be_tried_again() {
    for engine in [Engine::Reference, Engine::Earley] {
        for mode in LexerMode::ALL {
            let compiled = |mask_steps| {
                let grammar = lark::parse(GRAMMAR, &LarkOptions::default()).unwrap();
                let limits = Limits { mask_steps, ..Limits::default() };
                let options =
                    LanguageOptions { engine, limits, lexer: Some(mode), ..LanguageOptions::default() };
                Constraint::new(Arc::new(Language::new(grammar, &options).unwrap()), Vocabulary::builtin())
                    .unwrap()
            };
            let tokens = Vocabulary::builtin().encode(TEXT).unwrap();
            let mut free = compiled(u64::MAX).matcher().unwrap();
            let mut hits = 0;
            for mask_steps in [0, 3, 10, 100, 1_000, 10_000_000] {
                let mut tight = compiled(mask_steps).matcher().unwrap();
                for &token in &tokens {
                    match tight.mask() {
                        Ok(mask) => assert_eq!(mask, free.mask().unwrap()),
                        Err(error) if error.limit() == Some(("mask_steps", mask_steps)) => hits += 1,
                        Err(error) => panic!("{error}"),
                    }
                    match tight.advance(token) {
                        Ok(()) => free.advance(token).unwrap(),
                        Err(error) if error.limit() == Some(("mask_steps", mask_steps)) => {
                            hits += 1;
                            assert_eq!(tight.tokens(), free.tokens());
                            break;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(mask_steps < 10_000_000 || tight.is_sentence());
                free.reset();
            }
            assert!(hits > 0, "some limit was hit");
        }
    }
}
