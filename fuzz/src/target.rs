//! One program for all targets: `ANYGRAM_FUZZ_TARGET` says which.

#![no_main]

use std::sync::OnceLock;

use anygram_fuzz::{TARGETS, Target, stop_at_our_panics};
use libfuzzer_sys::{Corpus, fuzz_target};

/// The target that was asked for.
fn target() -> &'static Target {
    static TARGET: OnceLock<&'static Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("ANYGRAM_FUZZ_TARGET").unwrap_or_default();
        let found = TARGETS.iter().find(|target| target.name == name);
        found.unwrap_or_else(|| panic!("ANYGRAM_FUZZ_TARGET is {name:?}, which is no target"))
    })
}

fuzz_target!(init: stop_at_our_panics(), |data: &[u8]| -> Corpus {
    if (target().run)(data) { Corpus::Keep } else { Corpus::Reject }
});
