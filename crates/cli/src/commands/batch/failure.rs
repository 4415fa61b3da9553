//! Errors of questions: a sentence, or for what a program should tell apart an object.

use anygram::{CanvasError, CompileError, ErrorKind, GrammarError, MatchError, StepError};
use serde::Serialize;

/// What stands under `error`.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Failure {
    /// Something is wrong with the question.
    Question(String),
    /// A grammar is refused, or a limit was reached.
    Refusal { kind: &'static str, at: Option<Place>, message: String },
}

/// Where it is in the grammar.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Place {
    /// A JSON pointer.
    Pointer(String),
    Text {
        line: usize,
        column: usize,
    },
}

impl Failure {
    pub fn new(error: &anyhow::Error) -> Self {
        let message = format!("{error:#}");
        let compile = error.chain().find_map(|cause| cause.downcast_ref::<CompileError>());
        let at = compile.and_then(place);
        let is_told =
            |kind: &ErrorKind| matches!(kind, ErrorKind::Limit | ErrorKind::Unsupported) || compile.is_some();
        match error.chain().find_map(kind).filter(is_told) {
            Some(kind) => Self::Refusal { kind: kind.name(), at, message },
            None => Self::Question(message),
        }
    }
}

/// The kind of an error of the library.
fn kind(cause: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let compile = cause.downcast_ref::<CompileError>().map(CompileError::kind);
    let of_match = || cause.downcast_ref::<MatchError>().map(MatchError::kind);
    let step = || cause.downcast_ref::<StepError>().map(StepError::kind);
    let canvas = || cause.downcast_ref::<CanvasError>().map(CanvasError::kind);
    compile.or_else(of_match).or_else(step).or_else(canvas)
}

fn place(error: &CompileError) -> Option<Place> {
    let in_text = |error: &GrammarError| Place::Text { line: error.line(), column: error.column() };
    let pointer = error.pointer().map(|pointer| Place::Pointer(pointer.to_owned()));
    pointer.or_else(|| error.grammar_error().map(in_text))
}
