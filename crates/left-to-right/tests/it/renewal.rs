//! Outputs on tables that begin new parser states all the time: masks, budgets, drafts and refusals are those
//! of outputs that each have tables of their own. `ANYGRAM_SEED` and `ANYGRAM_SEEDS` as in `oracle.rs`.

use std::sync::Arc;

use anygram_bits::work::Cancel;
use anygram_grammar::ir::{Grammar, LexerMode};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    Constraint, Draft, Engine, Language, LanguageOptions, Limits, MaskRows, MatchError, Matcher,
};
use anygram_lexer::LexerLimits;
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
    limits: Limits,
) -> Option<Vec<Pair>> {
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

/// Both answers, unless a limit kept the first from one: then both outputs begin again.
fn both<T>(
    pair: &mut Pair,
    ask: impl Fn(&mut Matcher) -> Result<T, MatchError>,
) -> Option<(Result<T, MatchError>, Result<T, MatchError>)> {
    let answers = (ask(&mut pair.0), ask(&mut pair.1));
    if let (Err(MatchError::Limit(_)), _) = answers {
        pair.0.reset();
        pair.1.reset();
        return None;
    }
    Some(answers)
}

/// Few lexemes beside those that one mask needs: they begin anew too, and outputs are read again.
fn few_lexemes(shared_items: usize, lexemes: usize) -> Limits {
    let lexer = LexerLimits { lexemes, ..LexerLimits::default() };
    Limits { shared_items, lexer, ..Limits::default() }
}

#[test]
fn where_lexemes_begin_anew() {
    let mut n_compared = 0;
    for seed in anygram_testkit::random::seeds(60) {
        for mode in [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual] {
            let case = RandomCase::in_mode(seed, mode);
            let options = LanguageOptions { lexer: Some(mode), ..LanguageOptions::default() };
            let mut random = Random::new(seed);
            let limits = few_lexemes(random.below(60), 10 + random.below(40));
            let Some(mut pairs) = pairs(&case.grammar, options, &vocabulary(&case.vocab), limits) else {
                continue;
            };
            let context = format!("seed {seed}, {}", mode.name());
            n_compared += (0..100).filter(|_| step(&mut random, &mut pairs, &context)).count();
        }
    }
    assert!(n_compared > 1_000, "{n_compared} masks were compared");
}

/// One thing that outputs do. Returns whether masks were compared.
fn step(random: &mut Random, pairs: &mut [Pair], context: &str) -> bool {
    let (at, other) = (random.below(pairs.len()), random.below(pairs.len()));
    let size = pairs[0].0.constraint().vocabulary().len();
    let pair = &mut pairs[at];
    assert_eq!(pair.0.tokens(), pair.1.tokens());
    let told = |matcher: &Matcher| (matcher.is_sentence(), matcher.has_ended(), matcher.expected());
    let context = format!("{context}, after {:?}", pair.1.tokens());
    // There is nothing to tell where a limit keeps an output from its states.
    let (own, expected) = (told(&pair.0), told(&pair.1));
    assert!(own == expected || own.2.is_empty() && pair.0.mask().is_err(), "{context}");
    let n_tokens = pair.1.tokens().len();
    match random.below(20) {
        0 => {
            pair.0.reset();
            pair.1.reset();
        }
        1 => pairs[at] = (pairs[other].0.fork(), pairs[other].1.fork()),
        2 | 3 => {
            let n = random.below(n_tokens + 1);
            let Some((one, other)) = both(pair, |matcher| matcher.rollback(n)) else { return false };
            assert_eq!(one, other, "{context}");
        }
        4 => {
            let budget = random.below(8) as u32;
            match both(pair, |matcher| matcher.mask_with_budget(budget)) {
                None | Some((_, Err(MatchError::Limit(_)))) => {}
                Some((one, other)) => assert_eq!(one, other, "{context}, budget {budget}"),
            }
        }
        5 => {
            let drafts: Vec<Draft> = (0..3)
                .map(|at| Draft { token: TokenId::new(random.below(size)), after: usize::checked_sub(at, 1) })
                .collect();
            let masks = |matcher: &mut Matcher| {
                let width = matcher.constraint().mask_words();
                let mut words = vec![0; 3 * width];
                let allowed = matcher.draft_masks(&drafts, MaskRows::new(&mut words, width))?;
                Ok((allowed, words))
            };
            let Some((one, other)) = both(pair, masks) else { return false };
            assert_eq!(one, other, "{context}");
        }
        6 => {
            let tokens: Vec<TokenId> = (0..4).map(|_| TokenId::new(random.below(size))).collect();
            let validate = both(pair, |matcher| matcher.validate(&tokens));
            let Some((one, other)) = validate else { return false };
            assert_eq!(one, other, "{context}");
            let advance = both(pair, |matcher| matcher.advance_all(&tokens));
            let Some((one, other)) = advance else { return false };
            assert_eq!(one, other, "{context}");
        }
        // Whoever works ahead changes nothing, whether it comes to its end or not.
        7 => {
            let (cancel, n) = (Cancel::new(), random.below(12));
            if random.chance(20) {
                cancel.cancel();
            }
            let n_looked_at = pair.0.work_ahead(n, &cancel);
            assert!(n_looked_at <= if cancel.is_cancelled() { 0 } else { n }, "{context}");
        }
        _ => {
            let Some((one, other)) = both(pair, Matcher::mask) else { return false };
            let mask = other.unwrap();
            assert_eq!(one.unwrap(), mask, "{context}");
            let mut words = vec![0; pair.1.constraint().mask_words()];
            if pair.0.known_mask_into(&mut words).unwrap() {
                assert_eq!(words, mask.words(), "{context}, known");
            }
            let allowed = allowed(&mask, size);
            if allowed.is_empty() || n_tokens > 60 {
                pair.0.reset();
                pair.1.reset();
            } else {
                let token = *random.choose(&allowed);
                let advance = both(pair, |matcher| matcher.advance(token));
                let Some((one, other)) = advance else { return false };
                assert_eq!(one, other, "{context}");
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
                let limits = Limits { shared_items: random.below(60), ..Limits::default() };
                let Some(mut pairs) = pairs(&case.grammar, options, &vocabulary(&case.vocab), limits) else {
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
            let limits = Limits { shared_items, ..Limits::default() };
            let pairs = pairs(&parsed, LanguageOptions::default(), &Vocabulary::builtin(), limits);
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
