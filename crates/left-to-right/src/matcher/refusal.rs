//! Why a token is refused.

use std::fmt;

use anygram_vocab::TokenId;

/// Why a token may not come next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The token.
    pub token: TokenId,
    /// The token, printable.
    pub display: String,
    /// The number of its bytes that could still be read.
    pub accepted_bytes: usize,
    /// The first byte that is not allowed; `None` for a special token, and where all bytes could be read but
    /// a part of the text has used up its tokens.
    pub refused_byte: Option<u8>,
    /// The number of bytes of text before the refused one.
    pub text_offset: usize,
    /// The names of the terminals that the grammar expected there, whether to begin or to go on.
    pub expected: Vec<String>,
    /// Whether the text could have ended before the refused byte.
    pub could_end: bool,
    /// Whether the output has already ended.
    pub ended: bool,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, display, accepted_bytes, text_offset, .. } = self;
        if self.ended {
            return write!(f, "token {} ({display}) after the end of the text", token.0);
        }
        match self.refused_byte {
            Some(byte) => {
                let byte = std::ascii::escape_default(byte);
                write!(
                    f,
                    "token {} ({display}) is refused at its byte {accepted_bytes} ('{byte}'), offset \
                     {text_offset} of the text",
                    token.0
                )?;
            }
            None if *accepted_bytes > 0 => {
                write!(
                    f,
                    "token {} ({display}) is refused: a part of the text has used up its tokens with it \
                     (`max_tokens`) and is not complete",
                    token.0
                )?;
            }
            None => {
                write!(f, "token {} ({display}) is refused at offset {text_offset} of the text", token.0)?
            }
        }
        const SHOWN: usize = 12;
        let shown = self.expected.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.expected.len().saturating_sub(SHOWN);
        match (self.expected.is_empty(), self.could_end) {
            (true, true) => write!(f, "; only the end of the text could have stood there"),
            (true, false) => Ok(()),
            (false, could_end) => {
                write!(f, "; expected {shown}")?;
                if more > 0 {
                    write!(f, " and {more} more")?;
                }
                if could_end { write!(f, ", or the end of the text") } else { Ok(()) }
            }
        }
    }
}
