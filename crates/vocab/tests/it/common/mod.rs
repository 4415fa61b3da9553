//! Where the files of the tests are.

use std::path::PathBuf;

/// A vocabulary of ours.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vocab").join(name)
}

/// The folder with real vocabularies and texts, which are not in the repository, or `None` with a notice.
///
/// It is `shared/data` beside the repository, or where `ANYGRAM_SHARED` says. It must be there where `CI` is
/// `true`.
pub fn data() -> Option<PathBuf> {
    let shared = std::env::var_os("ANYGRAM_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let data = shared.join("data");
    if data.join("tokenizers").is_dir() {
        return Some(data);
    }
    let notice = format!("no shared data at {}: set ANYGRAM_SHARED", data.display());
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{notice}");
    eprintln!("NOT TESTED: {notice}");
    None
}
