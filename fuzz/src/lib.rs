//! What the fuzz targets share.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use anygram_grammar::GrammarError;
use anygram_grammar::ebnf::EbnfOptions;
use anygram_grammar::ir::{Grammar, LexerMode};
use anygram_left_to_right::language::Reading;
use anygram_left_to_right::{Language, LanguageOptions, Limits};
use anygram_lexer::LexerLimits;
use anygram_recognizer::RecognizerLimits;
use anygram_vocab::{Format, LoadOptions, Vocabulary};

/// Limits so small that one input takes milliseconds, and that inputs hit them.
pub fn limits() -> Limits {
    Limits {
        lexer: LexerLimits {
            nfa_states: 2_000,
            dfa_states: 300,
            union_entries: 20_000,
            lexemes: 2_000,
            ..LexerLimits::default()
        },
        recognizer: RecognizerLimits { items: 20_000 },
        search_steps: 2_000,
        cache_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// Makes a panic of ours end the process. The loader of `tokenizer.json` catches those of the crate it uses, and they
/// are none of ours.
pub fn stop_at_our_panics() {
    static SHOWN: AtomicUsize = AtomicUsize::new(0);
    panic::set_hook(Box::new(|info| {
        let ours =
            info.location().is_none_or(|place| !place.file().contains(".cargo") && !place.file().contains("rustc"));
        if ours || SHOWN.fetch_add(1, Ordering::Relaxed) < 20 {
            eprintln!("{info}");
        }
        if ours {
            std::process::abort();
        }
    }));
}

/// Loads a vocabulary: the first byte of the data says the options, the others are the file.
///
/// Nothing panics, hangs or eats memory; what loads is valid and encodes without loss, and what does not says why.
pub fn vocabulary(format: Format, data: &[u8]) {
    let Some((&choice, file)) = data.split_first() else { return };
    let mut options = LoadOptions::default();
    if choice & 1 != 0 {
        options.eos = vec![choice.into()];
        options.pad = Some(1);
        options.mask = Some(300);
    }
    if choice & 2 != 0 {
        options.names = vec![(0, "a".into()), (400, "<|x|>".into())];
    }
    if choice & 4 != 0 && format == Format::Tiktoken {
        options.pattern = Some("\\p{N}{1,3}|\\s+(?!\\S)|\\S+".into());
        options.id_offset = choice.into();
    }
    let vocabulary = match Vocabulary::from_bytes(format, file, &options) {
        Ok(vocabulary) => vocabulary,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    vocabulary.validate().unwrap();
    assert!(vocabulary.trie().n_tokens() <= vocabulary.len());
    // The file itself is a text that its tokens are likely to spell.
    for text in [&b""[..], b" a\xc3\xa9 ab", &file[..file.len().min(64)]] {
        if let Ok(ids) = vocabulary.encode(text) {
            assert_eq!(vocabulary.decode(&ids).unwrap(), text, "{ids:?}");
        }
    }
}

/// The text of a grammar and, behind a NUL, a text to read with it. `None` if the grammar is not UTF-8.
pub fn source_and_text(data: &[u8]) -> Option<(&str, &[u8])> {
    /// The longest text that is read, in bytes.
    const MAX_TEXT: usize = 24;
    let (source, text) = match data.iter().position(|&byte| byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    Some((std::str::from_utf8(source).ok()?, &text[..text.len().min(MAX_TEXT)]))
}

/// Checks what a front end made of a source: a grammar that is sound and in order, or an error that can be shown.
///
/// # Panics
/// If it is neither.
pub fn check_front_end(source: &str, result: Result<Grammar, GrammarError>) -> Option<Grammar> {
    match result {
        Ok(grammar) => {
            grammar.validate().unwrap();
            assert!(grammar.rules.is_sorted_by_key(|rule| rule.lhs), "rules stand by their left side");
            Some(grammar)
        }
        Err(error) => {
            assert!(error.span().end <= source.len(), "{:?} of {}", error.span(), source.len());
            assert!(source.get(error.span()).is_some(), "{:?} cuts a character", error.span());
            assert!(!error.message().is_empty() && !error.render("fuzz", source).is_empty());
            None
        }
    }
}

/// How a grammar reads a text, unless a limit is hit or the language is empty.
///
/// # Panics
/// If the answer contradicts itself.
pub fn reading(grammar: &Grammar, mode: LexerMode, text: &[u8]) -> Option<Reading> {
    let options = LanguageOptions { lexer: Some(mode), limits: limits(), ..LanguageOptions::default() };
    let reading = Language::new(grammar.clone(), &options).ok()?.read(text).ok()?;
    assert!(reading.length <= text.len() && reading.is_viable == (reading.length == text.len()));
    assert!(reading.is_viable || !reading.is_sentence);
    Some(reading)
}

/// Reads a grammar in GBNF or EBNF twice, with regular pieces as terminals and without: the language is the same.
///
/// # Panics
/// If it is not.
pub fn check_joined(source: &str, text: &[u8], parse: fn(&str, &EbnfOptions) -> Result<Grammar, GrammarError>) {
    let read = |join| {
        let options = EbnfOptions { max_size: 3_000, join, ..EbnfOptions::default() };
        check_front_end(source, parse(source, &options)).and_then(|g| reading(&g, LexerMode::Scannerless, text))
    };
    if let (Some(joined), Some(plain)) = (read(true), read(false)) {
        assert_eq!((joined.is_sentence, joined.is_viable), (plain.is_sentence, plain.is_viable), "joining changes");
        assert_eq!(joined.length, plain.length, "joining changes how far a text is viable");
    }
}
