//! The one error type of this crate.

use std::fmt;
use std::path::{Path, PathBuf};

use anygram_bits::ErrorKind;

/// Why a vocabulary could not be loaded or changed, or a text not encoded or decoded.
///
/// Opaque: match on [`kind`](VocabError::kind), show the message. It names the file, where there is one, the
/// line or the byte offset, and a way out.
#[derive(Debug)]
pub struct VocabError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    source: Option<std::io::Error>,
}

impl VocabError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), path: None, source: None }))
    }

    pub(crate) fn io(doing: &str, source: std::io::Error) -> Self {
        let message = format!("cannot {doing}: {source}");
        Self(Box::new(Inner { kind: ErrorKind::Io, message, path: None, source: Some(source) }))
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file in which it was found, if it came from a file.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for VocabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{}: ", path.display())?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for VocabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}
