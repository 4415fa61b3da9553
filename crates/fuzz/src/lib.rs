//! What has to hold of arbitrary input: each target is a function that panics if it does not.
//!
//! `fuzz/run` looks for input that makes one panic, with libFuzzer and the address sanitizer, for as long as
//! it is told. The test of this crate runs each on what fuzzing begins with and on some changes of that, in
//! seconds and without either.

mod batch;
mod lark;
mod mask_oracle;
mod schema;
mod seeds;
mod tag;

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use anygram_grammar::ebnf::{self, EbnfOptions};
use anygram_grammar::ir::{Grammar, LexerMode};
use anygram_grammar::nltk::{self, NltkOptions};
use anygram_grammar::regex::{self, RegexOptions};
use anygram_grammar::{GrammarError, gbnf};
use anygram_left_to_right::language::Reading;
use anygram_left_to_right::{Language, LanguageOptions, Limits};
use anygram_lexer::LexerLimits;
use anygram_recognizer::RecognizerLimits;
use anygram_testkit::cases::CaseFormat;
use anygram_vocab::{Format, LoadOptions, Vocabulary};

/// Something that reads arbitrary bytes.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Reads the bytes and checks what comes of them. False if they are of no interest.
    pub run: fn(&[u8]) -> bool,
    /// What to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The longest input in bytes.
    pub max_len: usize,
}

/// All targets.
pub const TARGETS: [Target; 13] = [
    Target { name: "lark", run: lark::run, seeds: seeds::lark, max_len: 600 },
    Target {
        name: "gbnf",
        run: |data| joined(data, gbnf::parse),
        seeds: || of_cases(&[CaseFormat::Gbnf]),
        max_len: 600,
    },
    Target {
        name: "ebnf",
        run: |data| joined(data, ebnf::parse),
        seeds: || of_cases(&[CaseFormat::Ebnf, CaseFormat::Gbnf]),
        max_len: 600,
    },
    Target { name: "regex", run: one_terminal, seeds: || of_cases(&[CaseFormat::Regex]), max_len: 200 },
    Target { name: "nltk", run: words, seeds: || of_cases(&[CaseFormat::Nltk]), max_len: 600 },
    Target { name: "schema", run: schema::run, seeds: schema::seeds, max_len: 400 },
    Target { name: "tag", run: tag::run, seeds: tag::seeds, max_len: 600 },
    Target { name: "mask_oracle", run: mask_oracle::run, seeds: walks, max_len: 12 },
    Target { name: "batch", run: batch::run, seeds: batch::seeds, max_len: 400 },
    Target {
        name: "tiktoken",
        run: |data| vocabulary(Format::Tiktoken, data),
        seeds: || seeds::vocabularies(|name| name.contains(".tiktoken")),
        max_len: 2_048,
    },
    Target {
        name: "json_array",
        run: |data| vocabulary(Format::JsonArray, data),
        seeds: || seeds::vocabularies(|name| name == "array.json"),
        max_len: 2_048,
    },
    Target {
        name: "hugging_face",
        run: |data| vocabulary(Format::HuggingFace, data),
        seeds: || seeds::vocabularies(|name| name.starts_with("byte_")),
        max_len: 4_096,
    },
    Target {
        name: "sentence_piece",
        run: |data| vocabulary(Format::SentencePiece, data),
        seeds: || [seeds::vocabularies(|name| name.ends_with(".model")), seeds::small_models()].concat(),
        max_len: 2_048,
    },
];

fn of_cases(formats: &[CaseFormat]) -> Vec<Vec<u8>> {
    formats.iter().flat_map(|&format| seeds::of_cases(format)).collect()
}

fn walks() -> Vec<Vec<u8>> {
    (0..48).map(|seed: u64| [&seed.to_le_bytes()[..], &[seed as u8, 1, 2, 3]].concat()).collect()
}

/// A grammar in GBNF or EBNF, and what stands behind a NUL as a text to read with it. Regular pieces as
/// terminals change no language.
fn joined(data: &[u8], parse: fn(&str, &EbnfOptions) -> Result<Grammar, GrammarError>) -> bool {
    let Some((source, text)) = source_and_text(data) else { return false };
    check_joined(source, text, parse);
    true
}

/// A regular expression, and a text. With one terminal that takes a whole text it does not matter whether
/// texts are cut in every way or once.
fn one_terminal(data: &[u8]) -> bool {
    let Some((source, text)) = source_and_text(data) else { return false };
    let parsed = regex::parse(source, &RegexOptions::default());
    let Some(grammar) = check_front_end(source, parsed) else { return true };
    let all = reading(&grammar, LexerMode::Scannerless, text);
    let one = reading(&grammar, LexerMode::Longest, text);
    if let (Some(all), Some(one)) = (all, one) {
        assert_eq!(all, one, "one terminal, one cut");
    }
    true
}

/// A grammar in NLTK's notation, and a text. Blanks around a text change nothing.
fn words(data: &[u8]) -> bool {
    let Some((source, text)) = source_and_text(data) else { return false };
    let options = NltkOptions { start: None, max_size: 3_000 };
    let Some(grammar) = check_front_end(source, nltk::parse(source, &options)) else { return true };
    let is_blank = |c: char| c.is_whitespace() || c.is_ascii_control();
    let odd = grammar.terminals.iter().any(|terminal| terminal.name.contains(is_blank));
    let Some(plain) = reading(&grammar, LexerMode::Longest, text) else { return true };
    // Words with blanks in them may be what the blanks make.
    if let (false, Some(padded)) = (odd, reading(&grammar, LexerMode::Longest, &[b" ", text, b"\n"].concat()))
    {
        assert_eq!(plain.is_sentence, padded.is_sentence, "blanks around a text change what it is");
    }
    true
}

/// Limits so small that one input takes milliseconds, and that inputs hit them.
fn limits() -> Limits {
    Limits {
        lexer: LexerLimits { nfa_states: 2_000, dfa_states: 300, union_entries: 20_000, lexemes: 2_000 },
        recognizer: RecognizerLimits { items: 20_000 },
        search_steps: 2_000,
        cache_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// Makes a panic of ours end the process. The loader of `tokenizer.json` catches those of the crate it uses,
/// and they are none of ours.
pub fn stop_at_our_panics() {
    static SHOWN: AtomicUsize = AtomicUsize::new(0);
    panic::set_hook(Box::new(|info| {
        let ours = info
            .location()
            .is_none_or(|place| !place.file().contains(".cargo") && !place.file().contains("rustc"));
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
/// Nothing panics, hangs or eats memory; what loads is valid and encodes without loss, and what does not says
/// why.
fn vocabulary(format: Format, data: &[u8]) -> bool {
    let Some((&choice, file)) = data.split_first() else { return false };
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
            return true;
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
    true
}

/// The text of a grammar and, behind a NUL, a text to read with it. `None` if the grammar is not UTF-8.
fn source_and_text(data: &[u8]) -> Option<(&str, &[u8])> {
    /// The longest text that is read, in bytes.
    const MAX_TEXT: usize = 24;
    let (source, text) = match data.iter().position(|&byte| byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    Some((std::str::from_utf8(source).ok()?, &text[..text.len().min(MAX_TEXT)]))
}

/// Checks what a front end made of a source: a grammar that is sound and in order, or an error that can be
/// shown.
///
/// # Panics
/// If it is neither.
fn check_front_end(source: &str, result: Result<Grammar, GrammarError>) -> Option<Grammar> {
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
fn reading(grammar: &Grammar, mode: LexerMode, text: &[u8]) -> Option<Reading> {
    let options = LanguageOptions { lexer: Some(mode), limits: limits(), ..LanguageOptions::default() };
    let reading = Language::new(grammar.clone(), &options).ok()?.read(text).ok()?;
    assert!(reading.length <= text.len() && reading.is_viable == (reading.length == text.len()));
    assert!(reading.is_viable || !reading.is_sentence);
    Some(reading)
}

/// Reads a grammar in GBNF or EBNF twice, with regular pieces as terminals and without: the language is the
/// same.
///
/// # Panics
/// If it is not.
fn check_joined(source: &str, text: &[u8], parse: fn(&str, &EbnfOptions) -> Result<Grammar, GrammarError>) {
    let read = |join| {
        let options = EbnfOptions { max_size: 3_000, join, ..EbnfOptions::default() };
        check_front_end(source, parse(source, &options))
            .and_then(|g| reading(&g, LexerMode::Scannerless, text))
    };
    if let (Some(joined), Some(plain)) = (read(true), read(false)) {
        assert_eq!(
            (joined.is_sentence, joined.is_viable),
            (plain.is_sentence, plain.is_viable),
            "joining changes"
        );
        assert_eq!(joined.length, plain.length, "joining changes how far a text is viable");
    }
}
