//! The one error type of this crate.

use std::fmt;
use std::path::{Path, PathBuf};

/// What kind of thing went wrong. More kinds may come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum VocabErrorKind {
    /// The file could not be opened, read or decompressed.
    Io,
    /// The file is not written in its format.
    Syntax,
    /// A token is not valid base64.
    InvalidBase64,
    /// Text that must be UTF-8 is not.
    InvalidUtf8,
    /// Two tokens claim one id, or two ids one name.
    DuplicateId,
    /// A valid file, or an option, of a kind that this crate does not read.
    Unsupported,
    /// An id that the vocabulary does not have.
    UnknownToken,
    /// The file, or an id in it, is beyond a limit.
    TooLarge,
    /// No sequence of tokens spells the text.
    CannotEncode,
}

/// Why a vocabulary could not be loaded or changed, or a text not encoded or decoded.
///
/// Opaque: match on [`kind`](VocabError::kind), show the message. It names the file, where there is one, the
/// line or the byte offset, and a way out.
#[derive(Debug)]
pub struct VocabError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: VocabErrorKind,
    message: String,
    path: Option<PathBuf>,
    source: Option<std::io::Error>,
}

impl VocabError {
    pub(crate) fn new(kind: VocabErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), path: None, source: None }))
    }

    pub(crate) fn io(doing: &str, source: std::io::Error) -> Self {
        let message = format!("cannot {doing}: {source}");
        Self(Box::new(Inner { kind: VocabErrorKind::Io, message, path: None, source: Some(source) }))
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    /// What kind of error this is.
    pub fn kind(&self) -> VocabErrorKind {
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
