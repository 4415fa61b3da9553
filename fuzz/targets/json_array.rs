//! Arbitrary bytes as a JSON array of tokens: see `vocabulary` for what must hold.

#![no_main]

use anygram_fuzz::{stop_at_our_panics, vocabulary};
use anygram_vocab::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: stop_at_our_panics(), |data: &[u8]| {
    vocabulary(Format::JsonArray, data);
});
