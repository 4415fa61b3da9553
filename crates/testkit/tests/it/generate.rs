//! [`generate`](anygram_testkit::generate).

use anygram_grammar::ir::{LexerMode, Pattern, Symbol, Terminal, Ties};
use anygram_testkit::generate::*;
use anygram_testkit::oracle::Oracle;
use anygram_testkit::text::{show, text_of};

#[test]
fn a_seed_is_a_case() {
    for seed in 0..20 {
        assert_eq!(RandomCase::new(seed), RandomCase::new(seed));
    }
    let case = RandomCase::new(3);
    let shown = case.to_string();
    assert!(shown.contains("RandomCase::new(3)") && shown.contains("start:"), "{shown}");
}

#[test]
fn tokens_spell_the_texts() {
    for case in (0..200).map(RandomCase::new) {
        for (text, tokens) in case.texts.iter().zip(&case.tokens) {
            assert_eq!(&text_of(&case.vocab, tokens), text);
        }
    }
}

/// What was derived is a sentence, whatever the oracle thinks of the way there.
#[test]
fn derived_texts_are_sentences() {
    let mut n_derived = 0;
    for seed in 0..400 {
        let (grammar, texts) = derived_texts(seed);
        let oracle = Oracle::new(&grammar, LexerMode::Scannerless, Ties::All);
        n_derived += texts.len();
        for text in texts {
            let is_sentence = oracle.is_sentence(&text);
            assert!(is_sentence, "{} in seed {seed}\n{}", show(&text), show_grammar(&grammar));
        }
    }
    assert!(n_derived > 800, "{n_derived}");
}

/// The generators are worth nothing if all they draw is alike.
#[test]
fn cases_are_varied() {
    let cases: Vec<_> = (0..300).map(RandomCase::new).collect();
    let count = |holds: &dyn Fn(&RandomCase) -> bool| cases.iter().filter(|case| holds(case)).count();
    let terminal = |holds: fn(&Terminal) -> bool| count(&|case| case.grammar.terminals.iter().any(holds));
    assert!(terminal(|t| t.ignored) > 40);
    assert!(terminal(|t| t.priority != 0) > 60);
    assert!(terminal(|t| t.reserved) > 20);
    assert!(terminal(|t| t.kind.pattern().is_none()) > 8);
    assert!(terminal(|t| t.kind.pattern().is_some_and(Pattern::is_nullable)) > 30);
    let recursive = |case: &RandomCase| {
        case.grammar.rules.iter().any(|rule| rule.rhs.contains(&Symbol::Nonterminal(rule.lhs)))
    };
    assert!(count(&recursive) > 80);
    let sentence = |case: &RandomCase| {
        let oracle = case.oracle();
        case.texts.iter().any(|text| !text.is_empty() && oracle.is_sentence(text))
    };
    assert!(count(&sentence) > 180, "{}", count(&sentence));
    let not_sentence = |case: &RandomCase| {
        let oracle = case.oracle();
        case.texts.iter().any(|text| !oracle.is_sentence(text))
    };
    assert!(count(&not_sentence) > 180, "{}", count(&not_sentence));
}
