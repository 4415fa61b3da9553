//! Errors of plans and of files of lines.

use anygram::{CanvasError, CompileError, DecodeError, MatchError, StepError, VocabError};
use anygram_models::SmallModelError;

/// Why something was not measured or not told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// No method is called so.
    #[error(
        "no method is called `{name}`; known: {known}, and `lookahead` with `:N=10`, `:tau=5` or \
         `:published` behind it"
    )]
    Method {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A number of steps is none.
    #[error("`{0}` is not a number of steps: give a number from 1 on, or `full` for one step per slot")]
    Steps(String),
    /// A line of a file is none of ours.
    #[error("line {line}: {message}; lines are written by `anygram eval`, and only the last can be cut off")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A region does not fit.
    #[error("{0}")]
    Infill(String),
    /// Nothing to tell of.
    #[error("no lines to report: make some with `anygram eval --out FILE`")]
    Nothing,
    /// What cannot be compared.
    #[error("generations of several seeds, temperatures or canvas lengths: report each file by itself")]
    Mixed,
    /// A drawing could not be written.
    #[error("{path}: {message}")]
    Drawing {
        /// The file.
        path: String,
        /// What the library says.
        message: String,
    },
    /// A file could not be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A grammar of a task, or a grammar and a vocabulary.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A state of an output.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// A text was not decided.
    #[error(transparent)]
    Text(#[from] StepError),
    /// A vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] VocabError),
    /// A model.
    #[error(transparent)]
    Model(#[from] SmallModelError),
    /// The loop.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A canvas.
    #[error(transparent)]
    Canvas(#[from] CanvasError),
    /// Threads could not be had.
    #[error("threads: {0}")]
    Threads(String),
}
