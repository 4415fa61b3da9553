//! Arbitrary text as a grammar in NLTK's notation, and what stands behind a NUL as a text to read with it.
//!
//! Nothing panics, hangs or eats memory; errors have places; and blanks around a text change nothing.

#![no_main]

use anygram_fuzz::{check_front_end, reading, source_and_text};
use anygram_grammar::ir::LexerMode;
use anygram_grammar::nltk::{self, NltkOptions};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((source, text)) = source_and_text(data) else { return Corpus::Reject };
    let options = NltkOptions { start: None, max_size: 3_000 };
    let Some(grammar) = check_front_end(source, nltk::parse(source, &options)) else { return Corpus::Keep };
    let is_blank = |c: char| c.is_whitespace() || c.is_ascii_control();
    let odd = grammar.terminals.iter().any(|terminal| terminal.name.contains(is_blank));
    let Some(plain) = reading(&grammar, LexerMode::Longest, text) else { return Corpus::Keep };
    // Words with blanks in them may be what the blanks make.
    if let (false, Some(padded)) = (odd, reading(&grammar, LexerMode::Longest, &[b" ", text, b"\n"].concat())) {
        assert_eq!(plain.is_sentence, padded.is_sentence, "blanks around a text change what it is");
    }
    Corpus::Keep
});
