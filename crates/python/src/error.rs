//! From errors of the library to exceptions: one class for each thing that a caller does about it.
//!
//! The classes are Python's own (`anygram/_errors.py`), so that they have types, defaults and pickle.

use anygram::{
    CanvasError, CompileError, DecodeError, ErrorKind, MatchError, Refusal, SchemaPlace, StepError,
    Undecided, VocabError,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

/// The results of the library, as those of Python.
pub trait Raise<T> {
    /// The value, or the exception.
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

/// An error of an output, and if a token is refused within the value of a JSON schema, where.
pub struct Located {
    error: MatchError,
    place: Option<SchemaPlace>,
}

impl Located {
    /// The error of an output that was to read some bytes more.
    pub fn new(error: MatchError, matcher: &anygram::Matcher, more: &[u8]) -> Self {
        let mut place = None;
        if let MatchError::Refused(refusal) = &error {
            let constraint = matcher.constraint();
            let mut text = constraint.vocabulary().decode(matcher.tokens()).unwrap_or_default();
            text.extend(more);
            let found = anygram::schema_place(constraint.language(), &text, refusal.text_offset);
            // What is not found out in time is no reason to raise something else.
            place = found.ok().flatten().filter(|_| !refusal.ended);
        }
        Self { error, place }
    }
}

macro_rules! raise {
    ($($error:ty => $function:expr),* $(,)?) => {$(
        impl<T> Raise<T> for Result<T, $error> {
            fn raise(self, py: Python<'_>) -> PyResult<T> {
                self.map_err(|error| $function(py, error))
            }
        }
    )*};
}

raise! {
    MatchError => of_match,
    Located => of_located,
    VocabError => of_vocabulary,
    CanvasError => |py, error: CanvasError| of_kind(py, error.kind(), error.limit(), error.to_string()),
    StepError => |py, error: StepError| of_kind(py, error.kind(), error.limit(), error.to_string()),
    DecodeError => of_decoding,
}

/// An exception of one of our classes. What fails on the way is the exception instead.
fn exception(py: Python<'_>, class: &str, message: String, fields: PyResult<Bound<'_, PyDict>>) -> PyErr {
    let made = fields.and_then(|fields| {
        py.import("anygram._errors")?.getattr(class)?.call((message,), Some(&fields)).map(PyErr::from_value)
    });
    made.unwrap_or_else(|error| error)
}

fn of_kind(py: Python<'_>, kind: ErrorKind, limit: Option<(&str, u64)>, message: String) -> PyErr {
    let name = [("kind", kind.name())];
    match (kind, limit) {
        (ErrorKind::Limit, _) | (_, Some(_)) => {
            let fields = name.into_py_dict(py).and_then(|fields| {
                let (name, value) = limit.unzip();
                fields.set_item("name", name)?;
                fields.set_item("value", value)?;
                Ok(fields)
            });
            exception(py, "LimitError", message, fields)
        }
        (ErrorKind::Cancelled, _) => exception(py, "Cancelled", message, name.into_py_dict(py)),
        (ErrorKind::CannotEncode, _) => exception(py, "VocabularyError", message, name.into_py_dict(py)),
        _ => exception(py, "AnygramError", message, name.into_py_dict(py)),
    }
}

/// What was given, for a message. Objects of callers may have no `repr`, numbers of thousands of digits too.
pub fn shown(given: &Bound<'_, PyAny>) -> String {
    given.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string())
}

/// An argument that cannot be.
pub fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    of_kind(py, ErrorKind::InvalidArgument, None, message.into())
}

/// An array that does not fit.
pub fn bad_buffer(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "BufferError", message.into(), Ok(PyDict::new(py)))
}

/// A vocabulary that cannot be made.
pub fn bad_vocabulary(py: Python<'_>, message: impl Into<String>) -> PyErr {
    let fields = [("kind", ErrorKind::InvalidArgument.name())].into_py_dict(py);
    exception(py, "VocabularyError", message.into(), fields)
}

/// A question that was not decided, where that is no answer.
pub fn undecided(py: Python<'_>, why: &Undecided) -> PyErr {
    of_kind(py, ErrorKind::Undecided, None, why.to_string())
}

/// A grammar that cannot be compiled; with its text the message shows the place.
pub fn of_compile(py: Python<'_>, error: &CompileError, source: Option<&str>) -> PyErr {
    let kind = error.kind();
    if matches!(kind, ErrorKind::Limit | ErrorKind::Cancelled) {
        return of_kind(py, kind, error.limit(), error.to_string());
    }
    let place = error.grammar_error();
    let message = match (place, source) {
        (Some(place), Some(source)) => {
            let text = place.render("grammar", source);
            text.strip_prefix("Error: ").unwrap_or(&text).trim_end().to_owned()
        }
        _ => error.to_string(),
    };
    let fields = [("kind", kind.name())].into_py_dict(py).and_then(|fields| {
        fields.set_item("reason", place.map_or_else(|| error.to_string(), |place| place.message().into()))?;
        fields.set_item("pointer", error.pointer())?;
        if let Some(place) = place {
            fields.set_item("line", place.line())?;
            fields.set_item("column", place.column())?;
            fields.set_item("span", (place.span().start, place.span().end))?;
            fields.set_item("help", place.help())?;
        }
        Ok(fields)
    });
    exception(py, "GrammarError", message, fields)
}

/// Something that was asked of an output.
pub fn of_match(py: Python<'_>, error: MatchError) -> PyErr {
    match error {
        MatchError::Refused(refusal) => of_refusal(py, &refusal, None),
        error => of_kind(py, error.kind(), error.limit(), error.to_string()),
    }
}

fn of_located(py: Python<'_>, Located { error, place }: Located) -> PyErr {
    match error {
        MatchError::Refused(refusal) => of_refusal(py, &refusal, place.as_ref()),
        error => of_match(py, error),
    }
}

fn of_refusal(py: Python<'_>, refusal: &Refusal, place: Option<&SchemaPlace>) -> PyErr {
    let fields = [("token", refusal.token.0)].into_py_dict(py).and_then(|fields| {
        fields.set_item("byte", refusal.refused_byte)?;
        fields.set_item("offset", refusal.text_offset)?;
        fields.set_item("accepted_bytes", refusal.accepted_bytes)?;
        fields.set_item("expected", &refusal.expected)?;
        fields.set_item("could_end", refusal.could_end)?;
        fields.set_item("has_ended", refusal.ended)?;
        if let Some(place) = place {
            fields.set_item("pointer", &place.pointer)?;
            fields.set_item("schema", &place.schema)?;
            fields.set_item("schema_span", place.span.as_ref().map(|span| (span.start, span.end)))?;
            fields.set_item("repeats", place.repeats)?;
            fields.set_item("repeated_key", &place.repeated_key)?;
        }
        Ok(fields)
    });
    let place = place.map(|place| format!("; {place}")).unwrap_or_default();
    exception(py, "RefusedError", format!("{refusal}{place}"), fields)
}

fn of_vocabulary(py: Python<'_>, error: VocabError) -> PyErr {
    let fields = [("kind", error.kind().name())].into_py_dict(py).and_then(|fields| {
        fields.set_item("path", error.path().map(|path| path.to_string_lossy()))?;
        Ok(fields)
    });
    exception(py, "VocabularyError", error.to_string(), fields)
}

/// What a model of the caller raised goes through as it is.
fn of_decoding(py: Python<'_>, error: DecodeError) -> PyErr {
    match error {
        DecodeError::Model(cause) => match cause.downcast::<PyErr>() {
            Ok(raised) => *raised,
            Err(cause) => of_kind(py, ErrorKind::Model, None, cause.to_string()),
        },
        error => of_kind(py, error.kind(), error.limit(), error.to_string()),
    }
}
