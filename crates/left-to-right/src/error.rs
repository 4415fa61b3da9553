//! The errors: of compiling ([`CompileError`]), of outputs ([`MatchError`]), and why work on a text ended
//! early ([`StepError`]), which others have as their cause.
//!
//! Each has a `kind()` for programs and a message for people, and says with `limit()` which limit to raise.

use anygram_bits::ErrorKind;
use anygram_bits::work::Stopped;
use anygram_grammar::GrammarError;
use anygram_grammar::ir::LexerMode;
use anygram_lexer::LexerError;
use anygram_lexer::transducer::LexingError;
use anygram_recognizer::RecognizerError;

use crate::matcher::Refusal;

/// A grammar that cannot be used: its text has an error, no text is a sentence of it, a limit was reached, or
/// the vocabulary lacks a token that it names.
///
/// Opaque: branch on [`kind`](Self::kind), show the message. Where the text of the grammar is the reason,
/// [`grammar_error`](Self::grammar_error) knows the place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(transparent)]
pub struct CompileError(#[from] CompileCause);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CompileCause {
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    #[error(transparent)]
    Lexing(#[from] LexingError),
    #[error(transparent)]
    Step(#[from] StepError),
    /// The rules derive sentences, but none can be cut into the terminals that they need.
    #[error(
        "the language is empty: in lexer mode {} longer matches of some terminals always take what others \
         need; use `scannerless`",
        mode.name()
    )]
    NoneCanBeCut { mode: LexerMode },
    /// The grammar may have no sentence at all.
    #[error(
        "whether any text is a sentence was not decided in {limit} steps; raise the limit `search_steps`"
    )]
    Undecided { limit: usize },
    /// A JSON schema is refused.
    #[error("{message}")]
    Schema { kind: ErrorKind, at: String, message: String },
    #[error(
        "the grammar names the token {name}, which the vocabulary does not have; name one of its special \
         tokens"
    )]
    UnknownToken { name: String },
}

impl CompileError {
    /// What kind of error this is: [`ErrorKind::Syntax`] or [`ErrorKind::Unsupported`] for the text of the
    /// grammar, [`ErrorKind::Unsatisfiable`] if it has no sentence, [`ErrorKind::Limit`],
    /// [`ErrorKind::Cancelled`], [`ErrorKind::UnknownToken`] for the vocabulary, and [`ErrorKind::Io`] for
    /// imported files.
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            CompileCause::Grammar(error) => error.kind(),
            CompileCause::Lexing(LexingError::Limit(error)) => error.kind(),
            CompileCause::Step(error) => error.kind(),
            CompileCause::Lexing(
                LexingError::NeedsScannerless { .. }
                | LexingError::Counts { .. }
                | LexingError::WithoutContext
                | LexingError::WithoutTies
                | LexingError::WithoutTokens { .. }
                | LexingError::WithoutBytes { .. }
                | LexingError::Automaton { .. },
            ) => ErrorKind::Unsupported,
            CompileCause::Lexing(
                LexingError::WithoutTooMany { .. } | LexingError::WithoutTooLarge { .. },
            ) => ErrorKind::Limit,
            CompileCause::Lexing(_) | CompileCause::NoneCanBeCut { .. } => ErrorKind::Unsatisfiable,
            CompileCause::Schema { kind, .. } => *kind,
            CompileCause::Undecided { .. } => ErrorKind::Limit,
            CompileCause::UnknownToken { .. } => ErrorKind::UnknownToken,
        }
    }

    /// The error in the text of the grammar, with its place, if that is the reason.
    pub fn grammar_error(&self) -> Option<&GrammarError> {
        match &self.0 {
            CompileCause::Grammar(error) => Some(error),
            _ => None,
        }
    }

    /// A JSON schema that is refused, by its front end: where, as a JSON pointer, and why.
    pub fn of_schema(kind: ErrorKind, at: String, message: String) -> Self {
        Self(CompileCause::Schema { kind, at, message })
    }

    /// The JSON pointer of the schema that is refused, if the grammar is a JSON schema and that is the
    /// reason.
    pub fn pointer(&self) -> Option<&str> {
        match &self.0 {
            CompileCause::Schema { at, .. } => Some(at),
            _ => None,
        }
    }

    /// The limit that was reached: its name, which [`Limits::set`](crate::Limits::set) takes, and its value.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match &self.0 {
            CompileCause::Lexing(LexingError::Limit(error)) => error.limit(),
            CompileCause::Lexing(LexingError::WithoutTooLarge { limit }) => {
                Some(("grammar_size", *limit as u64))
            }
            CompileCause::Step(error) => error.limit(),
            CompileCause::Undecided { limit } => Some((SEARCH_STEPS, *limit as u64)),
            _ => None,
        }
    }
}

impl From<GrammarError> for CompileError {
    fn from(error: GrammarError) -> Self {
        Self(error.into())
    }
}

#[doc(hidden)]
impl From<LexingError> for CompileError {
    fn from(error: LexingError) -> Self {
        Self(error.into())
    }
}

#[doc(hidden)]
impl From<Stopped> for CompileError {
    fn from(error: Stopped) -> Self {
        StepError::from(error).into()
    }
}

impl From<StepError> for CompileError {
    fn from(error: StepError) -> Self {
        Self(match error.0 {
            StepCause::Undecided { limit } => CompileCause::Undecided { limit },
            _ => error.into(),
        })
    }
}

/// Work on a text that ended without an answer: a limit was reached, somebody cancelled, or a device failed.
/// The state is as it was.
///
/// It is a type of its own because outputs ([`MatchError::Limit`]), canvases and open answers have it as
/// their cause.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(transparent)]
pub struct StepError(#[from] pub(crate) StepCause);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum StepCause {
    #[error(transparent)]
    Lexer(#[from] LexerError),
    #[error(transparent)]
    Recognizer(#[from] RecognizerError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error(
        "whether this text can be completed was not decided in {limit} steps; use the lexer mode \
         `longest` or raise the limit `search_steps`"
    )]
    Undecided { limit: usize },
    #[error(
        "the text can be read in so many ways that it is within more than {limit} JSON values at once; raise \
         the limit `open_values`"
    )]
    OpenValues { limit: usize },
}

/// The name of [`Limits::search_steps`](crate::Limits::search_steps).
const SEARCH_STEPS: &str = "search_steps";

impl StepError {
    /// [`ErrorKind::Limit`], [`ErrorKind::Undecided`], [`ErrorKind::Cancelled`] or [`ErrorKind::Device`].
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            StepCause::Lexer(error) => error.kind(),
            StepCause::Recognizer(error) => error.kind(),
            StepCause::Stopped(error) => error.kind(),
            StepCause::Undecided { .. } => ErrorKind::Undecided,
            StepCause::OpenValues { .. } => ErrorKind::Limit,
        }
    }

    /// The limit that was reached: its name, which [`Limits::set`](crate::Limits::set) takes, and its value.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match &self.0 {
            StepCause::Lexer(error) => error.limit(),
            StepCause::Recognizer(error) => error.limit(),
            StepCause::Stopped(error) => error.limit(),
            StepCause::Undecided { limit } => Some((SEARCH_STEPS, *limit as u64)),
            StepCause::OpenValues { limit } => Some(("open_values", *limit as u64)),
        }
    }
}

#[doc(hidden)]
impl From<LexerError> for StepError {
    fn from(error: LexerError) -> Self {
        Self(error.into())
    }
}

#[doc(hidden)]
impl From<RecognizerError> for StepError {
    fn from(error: RecognizerError) -> Self {
        Self(error.into())
    }
}

#[doc(hidden)]
impl From<Stopped> for StepError {
    fn from(error: Stopped) -> Self {
        Self(error.into())
    }
}

/// An operation on an output that failed. The state has not changed.
///
/// An enum because callers go on differently after a [`Refusal`], which carries what they need to show; for
/// all else there is [`kind`](Self::kind).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatchError {
    /// The token is not allowed here.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A limit was reached, or the work was cancelled.
    #[error(transparent)]
    Limit(#[from] StepError),
    /// The id is not in the vocabulary.
    #[error("token {id} is not in the vocabulary of {size} tokens")]
    UnknownToken {
        /// The id.
        id: u32,
        /// The number of tokens.
        size: usize,
    },
    /// More tokens to take back than there are.
    #[error("cannot take back {asked} tokens of {present}")]
    RollbackTooFar {
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        present: usize,
    },
    /// A draft names itself, or a later draft of the list, as its predecessor.
    #[error("draft {draft} follows draft {after}, which does not stand before it")]
    DraftOrder {
        /// The draft.
        draft: usize,
        /// The one that it follows.
        after: usize,
    },
    /// The caller's buffer has fewer rows than there are masks.
    #[error("{needed} masks need as many rows, given {given}")]
    TooFewRows {
        /// Rows needed.
        needed: usize,
        /// Rows given.
        given: usize,
    },
    /// The tokens that end an output cannot be these, or not now.
    #[error("{}", match id {
        Some(id) => format!("token {id} cannot end an output: it has bytes; give special tokens"),
        None => "the tokens that end an output can be set only while it is empty; reset it first".to_owned(),
    })]
    Eos {
        /// The token that has bytes, if that is why.
        id: Option<u32>,
    },
    /// No tokens spell the text.
    #[error("{why}")]
    Encode {
        /// [`ErrorKind::CannotEncode`], or why the vocabulary does not encode.
        kind: ErrorKind,
        /// What the vocabulary says.
        why: String,
    },
}

impl MatchError {
    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(_) => ErrorKind::Refused,
            Self::Limit(error) => error.kind(),
            Self::UnknownToken { .. } => ErrorKind::UnknownToken,
            Self::Encode { kind, .. } => *kind,
            Self::RollbackTooFar { .. }
            | Self::DraftOrder { .. }
            | Self::TooFewRows { .. }
            | Self::Eos { .. } => ErrorKind::InvalidArgument,
        }
    }

    /// The limit that was reached: its name, which [`Limits::set`](crate::Limits::set) takes, and its value.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match self {
            Self::Limit(error) => error.limit(),
            _ => None,
        }
    }
}
