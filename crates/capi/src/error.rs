//! What went wrong, in a struct of the caller.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anygram::{CanvasError, CompileError, ErrorKind, MatchError, VocabError};

use crate::memory;

/// What a function returns.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum anygram_code {
    /// It worked.
    ANYGRAM_OK = 0,
    /// A grammar or a file is not written in its format, or contradicts itself.
    ANYGRAM_SYNTAX = 1,
    /// Valid, but Anygram does not have it.
    ANYGRAM_UNSUPPORTED = 2,
    /// No text is a sentence of the grammar.
    ANYGRAM_UNSATISFIABLE = 3,
    /// A limit was reached; the error names it.
    ANYGRAM_LIMIT = 4,
    /// Neither yes nor no was shown.
    ANYGRAM_UNDECIDED = 5,
    /// Another thread asked to stop.
    ANYGRAM_CANCELLED = 6,
    /// The grammar does not allow the token here.
    ANYGRAM_REFUSED = 7,
    /// A token is not in the vocabulary.
    ANYGRAM_UNKNOWN_TOKEN = 8,
    /// No tokens spell the text.
    ANYGRAM_CANNOT_ENCODE = 9,
    /// An argument does not fit.
    ANYGRAM_INVALID_ARGUMENT = 10,
    /// A file could not be read, or may not be.
    ANYGRAM_IO = 11,
    /// A model failed.
    ANYGRAM_MODEL = 12,
    /// A device failed.
    ANYGRAM_DEVICE = 13,
    /// A handle is none that was given, was freed, or is of another kind.
    ANYGRAM_BAD_HANDLE = 14,
    /// A buffer is too small. The length that it takes was written; nothing else happened.
    ANYGRAM_BUFFER_TOO_SMALL = 15,
    /// A defect of the library: please report it. The object may be freed, and should not be used otherwise.
    ANYGRAM_PANIC = 16,
}

use anygram_code::*;

/// Bytes of a message, with the zero at its end.
pub const ANYGRAM_MESSAGE_SIZE: usize = 1024;

/// Bytes of the name of a limit, with the zero at its end.
pub const ANYGRAM_NAME_SIZE: usize = 32;

/// What went wrong. It belongs to the caller, who sets `struct_size` and passes it, or NULL, to any function.
/// On success only `code` is written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct anygram_error {
    /// `sizeof(anygram_error)`.
    pub struct_size: usize,
    /// What the function returned.
    pub code: anygram_code,
    /// Of a grammar, the line of the place, from 1; 0 if there is none.
    pub line: u32,
    /// The column, in characters, from 1.
    pub column: u32,
    /// Of ANYGRAM_REFUSED, the offset in the text of the byte that is refused.
    pub offset: u64,
    /// Of ANYGRAM_LIMIT, the value of the limit.
    pub limit_value: u64,
    /// The name of the limit, to be raised by an option of that name; empty if there is none.
    pub limit_name: [c_char; ANYGRAM_NAME_SIZE],
    /// Bytes of the whole message. Where it is longer than `message` has room for, that ends in "...".
    pub message_length: usize,
    /// What is wrong, where, and what to do: UTF-8 that ends with a zero.
    pub message: [c_char; ANYGRAM_MESSAGE_SIZE],
}

/// What went wrong, inside.
#[derive(Debug)]
pub struct Failure {
    pub code: anygram_code,
    pub message: String,
    pub place: Option<(usize, usize)>,
    pub offset: usize,
    pub limit: Option<(&'static str, u64)>,
}

impl Failure {
    /// With nothing but a message.
    pub fn new(code: anygram_code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), place: None, offset: 0, limit: None }
    }

    /// An argument that does not fit.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(ANYGRAM_INVALID_ARGUMENT, message)
    }

    fn of_kind(kind: ErrorKind, limit: Option<(&'static str, u64)>, message: String) -> Self {
        Self { limit, ..Self::new(code(kind), message) }
    }
}

/// The code of a kind of error.
pub fn code(kind: ErrorKind) -> anygram_code {
    match kind {
        ErrorKind::Syntax => ANYGRAM_SYNTAX,
        ErrorKind::Unsupported => ANYGRAM_UNSUPPORTED,
        ErrorKind::Unsatisfiable => ANYGRAM_UNSATISFIABLE,
        ErrorKind::Limit => ANYGRAM_LIMIT,
        ErrorKind::Undecided => ANYGRAM_UNDECIDED,
        ErrorKind::Cancelled => ANYGRAM_CANCELLED,
        ErrorKind::Refused => ANYGRAM_REFUSED,
        ErrorKind::UnknownToken => ANYGRAM_UNKNOWN_TOKEN,
        ErrorKind::CannotEncode => ANYGRAM_CANNOT_ENCODE,
        ErrorKind::Io => ANYGRAM_IO,
        ErrorKind::Model => ANYGRAM_MODEL,
        ErrorKind::Device => ANYGRAM_DEVICE,
        _ => ANYGRAM_INVALID_ARGUMENT,
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        let place = error.grammar_error().map(|place| (place.line(), place.column()));
        Self { place, ..Self::of_kind(error.kind(), error.limit(), error.to_string()) }
    }
}

impl From<VocabError> for Failure {
    fn from(error: VocabError) -> Self {
        Self::of_kind(error.kind(), None, error.to_string())
    }
}

impl From<CanvasError> for Failure {
    fn from(error: CanvasError) -> Self {
        Self::of_kind(error.kind(), error.limit(), error.to_string())
    }
}

impl From<MatchError> for Failure {
    fn from(error: MatchError) -> Self {
        let offset = match &error {
            MatchError::Refused(refusal) => refusal.text_offset,
            _ => 0,
        };
        Self { offset, ..Self::of_kind(error.kind(), error.limit(), error.to_string()) }
    }
}

/// Copies a text that ends with a zero into a field; where it is too long, the last that fits is "...".
fn copy(text: &str, field: &mut [c_char]) {
    let room = field.len() - 1;
    let dots = "...";
    let (kept, end) = match text.len() > room {
        true => (text.floor_char_boundary(room - dots.len()), dots),
        false => (text.len(), ""),
    };
    let bytes = text[..kept].bytes().chain(end.bytes()).chain([0]);
    field.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte as c_char);
}

impl anygram_error {
    fn of(failure: &Failure) -> Self {
        let (line, column) = failure.place.unwrap_or_default();
        let (name, limit_value) = failure.limit.unwrap_or_default();
        let at = |place| u32::try_from(place).unwrap_or(u32::MAX);
        let mut error = Self {
            struct_size: size_of::<Self>(),
            code: failure.code,
            line: at(line),
            column: at(column),
            offset: failure.offset as u64,
            limit_value,
            limit_name: [0; ANYGRAM_NAME_SIZE],
            message_length: failure.message.len(),
            message: [0; ANYGRAM_MESSAGE_SIZE],
        };
        copy(name, &mut error.limit_name);
        copy(&failure.message.replace('\0', "\u{fffd}"), &mut error.message);
        error
    }
}

/// Runs what a function does, and tells the caller how it ended.
///
/// # Safety
/// `error` is NULL or points to an `anygram_error` whose `struct_size` is set.
pub unsafe fn guard(error: *mut anygram_error, work: impl FnOnce() -> Result<(), Failure>) -> anygram_code {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or(panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::new(ANYGRAM_PANIC, format!("a defect of the library, please report it: {text}")))
    });
    match result {
        Ok(()) => {
            // SAFETY: as the caller of this function promises.
            unsafe { memory::set_code(error, ANYGRAM_OK) };
            ANYGRAM_OK
        }
        Err(failure) => {
            // SAFETY: as the caller of this function promises.
            unsafe { memory::write_sized(error, &anygram_error::of(&failure)) };
            failure.code
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(field: &[c_char]) -> String {
        let bytes = field.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8);
        String::from_utf8(bytes.collect()).expect("UTF-8")
    }

    #[test]
    fn long_messages_end_in_dots_between_characters() {
        let failure = Failure::argument("é".repeat(ANYGRAM_MESSAGE_SIZE));
        let error = anygram_error::of(&failure);
        assert_eq!(error.message_length, 2 * ANYGRAM_MESSAGE_SIZE);
        assert_eq!(text(&error.message), "é".repeat(510) + "...");
    }

    #[test]
    fn panics_are_codes() {
        let mut error = anygram_error::of(&Failure::argument(""));
        // SAFETY: that is an error.
        let code = unsafe { guard(&mut error, || panic!("of a test")) };
        assert_eq!((code, error.code), (ANYGRAM_PANIC, ANYGRAM_PANIC));
        assert!(text(&error.message).ends_with("of a test"));
    }
}
