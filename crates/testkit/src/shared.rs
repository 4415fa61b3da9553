//! The shared data: grammars, texts and vocabularies beside the repository, which tests use where they are there.

use std::path::{Path, PathBuf};

/// The folder of shared data, or `None` with a notice. `ANYGRAM_SHARED` names the folder that holds it; else it is `../shared`.
///
/// # Panics
/// If it is missing where `CI` is `true`.
pub fn data() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let data = std::env::var_os("ANYGRAM_SHARED").map_or(default, PathBuf::from).join("data");
    if data.is_dir() {
        return Some(data);
    }
    let notice = format!("no shared data at {}: set ANYGRAM_SHARED", data.display());
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{notice}");
    eprintln!("NOT TESTED: {notice}");
    None
}
