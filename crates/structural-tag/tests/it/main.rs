//! Tests of structural tags.

mod counted;
mod formats;
mod hostile;
mod keys;
mod nested;
mod random;
mod reference;
mod tokens;
mod tools;
mod vocabularies;
mod without;

use std::sync::Arc;

use anygram_left_to_right::{Constraint, Language, LanguageOptions, Matcher};
use anygram_structural_tag::{Options, Refusal, grammar};
use anygram_vocab::Vocabulary;

/// The language of a tag.
fn language(tag: &str) -> Result<Arc<Language>, Refusal> {
    let grammar = grammar(tag, &Options::default())?;
    grammar.validate().unwrap_or_else(|message| panic!("{message}: {tag}"));
    let language = Language::new(grammar, &LanguageOptions::default());
    Ok(Arc::new(language.unwrap_or_else(|error| panic!("{error}: {tag}"))))
}

/// The language of a format.
fn of_format(format: &str) -> Arc<Language> {
    language(&format!(r#"{{"type":"structural_tag","format":{format}}}"#))
        .unwrap_or_else(|refusal| panic!("{refusal}: {format}"))
}

/// Checks which texts belong to a format: those of `yes` do, those of `no` do not.
fn check(format: &str, yes: &[&str], no: &[&str]) {
    let language = of_format(format);
    for (texts, expected) in [(yes, true), (no, false)] {
        for text in texts {
            let reading = language.read(text.as_bytes()).unwrap();
            assert_eq!(reading.is_sentence, expected, "{text:?} of {format}: {reading:?}");
        }
    }
}

/// A matcher of a format.
fn matcher(format: &str, vocabulary: Vocabulary) -> Matcher {
    Constraint::new(of_format(format), vocabulary).unwrap().matcher().unwrap()
}
