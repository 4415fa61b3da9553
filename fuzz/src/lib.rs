//! What the fuzz targets share.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use anygram_left_to_right::Limits;
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
