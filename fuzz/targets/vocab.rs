//! Arbitrary bytes as a vocabulary: the first says the format and the options, the others are the file.
//!
//! Nothing panics, hangs or eats memory; what loads is valid and encodes without loss.

#![no_main]

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use anygram_vocab::{Format, LoadOptions, Vocabulary};
use libfuzzer_sys::{Corpus, fuzz_target};

const FORMATS: [Format; 4] = [Format::Tiktoken, Format::JsonArray, Format::HuggingFace, Format::SentencePiece];

/// The loader of `tokenizer.json` catches the panics of the crate it uses, and they are none of ours.
fn abort_on_our_panics() {
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

fuzz_target!(
    init: abort_on_our_panics(),
    |data: &[u8]| -> Corpus {
        let Some((&choice, file)) = data.split_first() else { return Corpus::Reject };
        let format = FORMATS[usize::from(choice) % FORMATS.len()];
        let options = match choice / FORMATS.len() as u8 {
            0 => LoadOptions::default(),
            more => LoadOptions { eos: vec![more.into()], pad: Some(1), mask: Some(300), ..LoadOptions::default() },
        };
        let Ok(vocabulary) = Vocabulary::from_bytes(format, file, &options) else { return Corpus::Keep };
        vocabulary.validate().unwrap();
        assert!(vocabulary.trie().n_tokens() <= vocabulary.len());
        // The file itself is a text that its tokens are likely to spell.
        for text in [&b""[..], b" a\xc3\xa9 ab", &file[..file.len().min(64)]] {
            if let Ok(ids) = vocabulary.encode(text) {
                assert_eq!(vocabulary.decode(&ids).unwrap(), text, "{ids:?}");
            }
        }
        Corpus::Keep
    }
);
