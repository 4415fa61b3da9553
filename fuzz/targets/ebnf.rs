//! Arbitrary text as a grammar in EBNF, and what stands behind a NUL as a text to read with it.
//!
//! Nothing panics, hangs or eats memory; errors have places; and regular pieces as terminals change no language.

#![no_main]

use anygram_fuzz::{check_joined, source_and_text};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((source, text)) = source_and_text(data) else { return Corpus::Reject };
    check_joined(source, text, anygram_grammar::ebnf::parse);
    Corpus::Keep
});
