//! Arbitrary text as a regular expression, and what stands behind a NUL as a text to read with it.
//!
//! Nothing panics, hangs or eats memory; errors have places; and with one terminal that takes a whole text it does not matter whether texts
//! are cut in every way or once.

#![no_main]

use anygram_fuzz::{check_front_end, reading, source_and_text};
use anygram_grammar::ir::LexerMode;
use anygram_grammar::regex::{self, RegexOptions};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((source, text)) = source_and_text(data) else { return Corpus::Reject };
    let parsed = regex::parse(source, &RegexOptions::default());
    let Some(grammar) = check_front_end(source, parsed) else { return Corpus::Keep };
    let all = reading(&grammar, LexerMode::Scannerless, text);
    let one = reading(&grammar, LexerMode::Longest, text);
    if let (Some(all), Some(one)) = (all, one) {
        assert_eq!(all, one, "one terminal, one cut");
    }
    Corpus::Keep
});
