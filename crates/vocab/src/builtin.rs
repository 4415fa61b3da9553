//! A small vocabulary of our own, for the demo, the documentation and tests without files.

use crate::{Format, LoadOptions, SpecialIds, Vocabulary};
use std::sync::OnceLock;

impl Vocabulary {
    /// The built-in vocabulary: all single bytes, common English, SQL, JSON and arithmetic pieces, some of
    /// which cross the borders of terminals (`},{`) or split characters, and at the end `<|eos|>`, `<|pad|>`
    /// and `<|mask|>`.
    ///
    /// Made by `crates/vocab/tools/builtin.py`. Loaded once, on first use.
    pub fn builtin() -> Self {
        static BUILTIN: OnceLock<Vocabulary> = OnceLock::new();
        BUILTIN.get_or_init(load).clone()
    }
}

fn load() -> Vocabulary {
    // The file is part of the program and read by a test, so it cannot be damaged here.
    let plain =
        Vocabulary::from_bytes(Format::JsonArray, include_bytes!("builtin.json"), &LoadOptions::default())
            .expect("the built-in vocabulary is well-formed");
    let eos = plain.len() as u32 - 3;
    plain
        .with_special(SpecialIds { eos: vec![eos], pad: Some(eos + 1), mask: Some(eos + 2) })
        .and_then(|v| v.with_names([(eos, "<|eos|>"), (eos + 1, "<|pad|>"), (eos + 2, "<|mask|>")]))
        .expect("the last three tokens are special")
}
