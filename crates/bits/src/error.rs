//! What went wrong, for programs: the kinds that all errors share.

/// What kind of thing went wrong. Every error of this workspace's libraries has a `kind()`, so a program
/// branches on the kind and shows the message to people. More kinds may come.
///
/// A grammar is refused as `syntax`, `unsupported`, `unsatisfiable` or `limit`.
///
/// ```
/// use anygram_bits::ErrorKind;
///
/// assert_eq!(ErrorKind::Unsatisfiable.name(), "unsatisfiable");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A grammar or a file is not written in its format, or contradicts itself.
    Syntax,
    /// Valid, but Anygram does not have it.
    Unsupported,
    /// No text is a sentence of the grammar.
    Unsatisfiable,
    /// A limit was reached. The message names it, and `limit()` where the error has it.
    Limit,
    /// Neither yes nor no was shown. Only in the lexer mode `contextual`; `longest` always decides.
    Undecided,
    /// Somebody asked to stop.
    Cancelled,
    /// The grammar does not allow the token here.
    Refused,
    /// A token is not in the vocabulary.
    UnknownToken,
    /// No tokens spell the text.
    CannotEncode,
    /// What the caller gave does not fit: an index, a number of rows, an option.
    InvalidArgument,
    /// A file could not be opened, read or decompressed, or may not be.
    Io,
    /// The model of a decoding loop failed.
    Model,
    /// A device failed.
    Device,
}

impl ErrorKind {
    /// The name of the kind, for protocols and logs: `syntax`, `unknown_token`, ….
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Unsupported => "unsupported",
            Self::Unsatisfiable => "unsatisfiable",
            Self::Limit => "limit",
            Self::Undecided => "undecided",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::UnknownToken => "unknown_token",
            Self::CannotEncode => "cannot_encode",
            Self::InvalidArgument => "invalid_argument",
            Self::Io => "io",
            Self::Model => "model",
            Self::Device => "device",
        }
    }
}
