//! Errors of questions: a sentence, or for what a program should tell apart an object.

use anygram::{CanvasError, CompileError, ErrorKind, GrammarError, MatchError, StepError};
use serde::Serialize;

use super::subject::Uncompiled;
use crate::commands::check::pointer;

/// What stands under `error`.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Failure {
    /// Something is wrong with the question.
    Question(String),
    /// A grammar is refused, or a limit was reached.
    Refusal {
        kind: &'static str,
        at: Option<Place>,
        message: String,
        #[serde(flatten)]
        details: Details,
    },
}

/// What else is known of a refusal of a grammar that a question brings.
#[derive(Serialize, Default)]
pub struct Details {
    /// Where in the text of the grammar, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<(usize, usize)>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    /// A second place, and what it has to do with the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<(usize, usize, String)>,
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
    /// More time was needed than there was.
    pub fn late(message: String) -> Self {
        Self::Refusal { kind: ErrorKind::Limit.name(), at: None, message, details: Details::default() }
    }

    pub fn new(error: &anyhow::Error) -> Self {
        let message = format!("{error:#}");
        let uncompiled = error.chain().find_map(|cause| cause.downcast_ref::<Uncompiled>());
        let details = uncompiled.map(Details::new).unwrap_or_default();
        let compile = error.chain().find_map(|cause| cause.downcast_ref::<CompileError>());
        let compile = compile.or(uncompiled.map(|uncompiled| &uncompiled.error));
        let at = compile.and_then(place);
        let is_told =
            |kind: &ErrorKind| matches!(kind, ErrorKind::Limit | ErrorKind::Unsupported) || compile.is_some();
        match error.chain().find_map(kind).filter(is_told) {
            Some(kind) => Self::Refusal { kind: kind.name(), at, message, details },
            None => Self::Question(message),
        }
    }
}

impl Details {
    fn new(Uncompiled { error, source }: &Uncompiled) -> Self {
        let Some(error) = error.grammar_error() else {
            let span = error.pointer().and_then(|pointer| pointer::span(source, pointer));
            return Self { span: span.map(|span| (span.start, span.end)), ..Self::default() };
        };
        Self {
            span: Some((error.span().start, error.span().end)),
            help: error.help().map(str::to_owned),
            label: error.label().map(|(span, text)| (span.start, span.end, text.to_owned())),
        }
    }
}

/// The kind of an error of the library.
fn kind(cause: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let compile = cause.downcast_ref::<CompileError>().map(CompileError::kind);
    let of_match = || cause.downcast_ref::<MatchError>().map(MatchError::kind);
    let step = || cause.downcast_ref::<StepError>().map(StepError::kind);
    let canvas = || cause.downcast_ref::<CanvasError>().map(CanvasError::kind);
    let uncompiled = || cause.downcast_ref::<Uncompiled>().map(|uncompiled| uncompiled.error.kind());
    compile.or_else(uncompiled).or_else(of_match).or_else(step).or_else(canvas)
}

fn place(error: &CompileError) -> Option<Place> {
    let in_text = |error: &GrammarError| Place::Text { line: error.line(), column: error.column() };
    let pointer = error.pointer().map(|pointer| Place::Pointer(pointer.to_owned()));
    pointer.or_else(|| error.grammar_error().map(in_text))
}
