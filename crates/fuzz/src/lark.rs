//! Arbitrary text as a Lark grammar, and what stands behind a NUL as a text to read with it.
//!
//! Nothing panics, hangs or eats memory; what is printed reads as the same grammar; and whatever is a
//! sentence in any mode is one in `scannerless`.

use anygram_grammar::ir::{LexerMode, Ties};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Language, LanguageOptions};

use crate::{limits, source_and_text};

/// Reads the grammar, and the text in all modes.
pub fn run(data: &[u8]) -> bool {
    let Some((source, text)) = source_and_text(data) else { return false };
    let grammar = match lark::parse(source, &LarkOptions { max_size: 3_000, ..LarkOptions::default() }) {
        Ok(grammar) => grammar,
        Err(error) => {
            assert!(!error.render("fuzz.lark", source).is_empty());
            return true;
        }
    };
    grammar.validate().unwrap();
    let printed = grammar.to_string();
    let again = lark::parse(&printed, &LarkOptions::default());
    let again = again.unwrap_or_else(|error| panic!("{}", error.render("printed", &printed)));
    assert_eq!(grammar.difference(&again), None, "{printed}");
    let mut in_scannerless = None;
    for mode in [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual] {
        for ties in [Ties::All, Ties::First] {
            if mode == LexerMode::Scannerless && ties == Ties::First {
                continue;
            }
            let options =
                LanguageOptions { lexer: Some(mode), ties, limits: limits(), ..LanguageOptions::default() };
            let Ok(language) = Language::new(grammar.clone(), &options) else { continue };
            let Ok(reading) = language.read(text) else { continue };
            assert!(reading.length <= text.len() && reading.is_viable == (reading.length == text.len()));
            assert!(reading.is_viable || !reading.is_sentence);
            match mode {
                LexerMode::Scannerless => in_scannerless = Some(reading),
                // One cut among all cuts, so the beginning that is viable is no longer either.
                _ => {
                    if let Some(all) = &in_scannerless {
                        assert!(reading.length <= all.length, "{mode:?}, {ties:?}: viable only with one cut");
                        assert!(
                            !reading.is_sentence || all.is_sentence,
                            "{mode:?}, {ties:?}: sentence only with one cut"
                        );
                    }
                }
            }
        }
    }
    true
}
