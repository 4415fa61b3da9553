//! Where tests find what they read: the repository, and the shared data beside it, grammars, texts and
//! vocabularies, which are used where they are there.

use std::path::{Path, PathBuf};

/// The root of the repository, or of a copy of the part of it that tests read, which `ANYGRAM_ROOT` names.
pub fn root() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("ANYGRAM_ROOT").map_or_else(default, PathBuf::from)
}

/// The folder of shared data, or `None` with a notice. `ANYGRAM_SHARED` names the folder that holds it; else
/// it is `../shared`.
///
/// # Panics
/// If it is missing where `CI` is `true`.
pub fn data() -> Option<PathBuf> {
    let data = std::env::var_os("ANYGRAM_SHARED")
        .map_or_else(|| root().join("../shared"), PathBuf::from)
        .join("data");
    if data.is_dir() {
        return Some(data);
    }
    let notice = format!("no shared data at {}: set ANYGRAM_SHARED", data.display());
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{notice}");
    eprintln!("NOT TESTED: {notice}");
    None
}
