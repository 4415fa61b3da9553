//! Constraints: a language and a vocabulary, with tables that outputs grow together.

use std::sync::{Arc, Mutex, PoisonError};

use anygram::{MatchError, Warm};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::compiler::Language;
use crate::error::{Raise, invalid, of_compile};
use crate::gate::work;
use crate::matcher::Matcher;
use crate::number::Tables;
use crate::tokens::Tokens;
use crate::vocabulary::Vocabulary;

/// A language and a vocabulary: what constrains outputs.
///
/// Args:
///     language: what the texts are.
///     vocabulary: the tokens of the model.
///     tables: how many sets of tables outputs share. What one output computed is a look-up for all on the
///         same tables, but only one thread works on a set at a time. Give as many as threads that compute
///         masks at once; each costs memory, and is cold at first.
///
/// >>> import anygram
/// >>> language = anygram.Compiler().compile('start: "yes" | "no"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"ye", b"s", b"no", None], eos=[3])
/// >>> matcher = anygram.Constraint(language, vocabulary).matcher()
/// >>> matcher.advance_text("yes")
/// 2
/// >>> matcher.is_sentence
/// True
///
/// Raises:
///     GrammarError: the grammar names a special token that the vocabulary does not have.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Constraint {
    pub inner: anygram::Constraint,
    language: Py<Language>,
    vocabulary: Py<Vocabulary>,
    tables: Vec<Table>,
}

/// Tables, and how many outputs use them.
struct Table {
    warm: Mutex<Warm>,
    /// As many clones as outputs, and this one.
    users: Arc<()>,
}

#[pymethods]
impl Constraint {
    #[new]
    #[pyo3(
        signature = (language, vocabulary, *, tables = Tables(1)),
        text_signature = "(language, vocabulary, *, tables=1)"
    )]
    fn new(
        py: Python<'_>,
        language: Py<Language>,
        vocabulary: Py<Vocabulary>,
        tables: Tables,
    ) -> PyResult<Self> {
        let (of, tokens) = (language.get().inner.clone(), vocabulary.get().inner.clone());
        let made = work(py, || anygram::Constraint::new(of, tokens));
        let inner = made.map_err(|error| of_compile(py, &error, None))?;
        let table = || Table { warm: Mutex::default(), users: Arc::default() };
        let tables = (0..tables.0).map(|_| table()).collect();
        Ok(Self { inner, language, vocabulary, tables })
    }

    /// The state of a new output, on the tables that the fewest outputs use.
    ///
    /// Args:
    ///     eos: the tokens that end this output, instead of those of the vocabulary: the stop ids of one
    ///         request. They have to be special tokens.
    ///
    /// Raises:
    ///     AnygramError: a token of `eos` is text, or not in the vocabulary.
    ///     LimitError: a limit is too low even for the empty text.
    #[pyo3(signature = (*, eos = None))]
    fn matcher(slf: &Bound<'_, Self>, eos: Option<Tokens>) -> PyResult<Matcher> {
        let (py, this) = (slf.py(), slf.get());
        // There is at least one.
        let table = this.tables.iter().min_by_key(|table| Arc::strong_count(&table.users));
        let table = table.ok_or_else(|| invalid(py, "a constraint without tables"))?;
        let made = work(py, || {
            let mut warm = table.warm.lock().unwrap_or_else(PoisonError::into_inner);
            let mut matcher = warm.matcher(&this.inner)?;
            if let Some(eos) = &eos {
                matcher.set_eos(&eos.0)?;
            }
            Ok::<_, MatchError>(matcher)
        });
        let eos = eos.map(|eos| eos.0);
        Ok(Matcher::new(made.raise(py)?, slf.clone().unbind(), table.users.clone(), eos))
    }

    /// The language.
    #[getter]
    fn language(&self, py: Python<'_>) -> Py<Language> {
        self.language.clone_ref(py)
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// The number of 32-bit words of a mask: the size of the vocabulary over 32, rounded up.
    #[getter]
    fn mask_words(&self) -> usize {
        self.inner.mask_words()
    }

    /// Bytes on the heap of the language and the vocabulary, roughly; outputs add their tables
    /// (`Matcher.memory_usage`).
    #[getter]
    fn memory_usage(&self) -> usize {
        self.inner.memory_usage()
    }

    /// It never changes, so it is its own copy.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (language, vocabulary) = (self.language.bind(py).repr()?, self.vocabulary.bind(py).repr()?);
        Ok(format!("Constraint({language}, {vocabulary})"))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("anygram._pickle")?.getattr("constraint")?;
        let args = (self.language.bind(py), self.vocabulary.bind(py), self.tables.len());
        Ok((make, args.into_pyobject(py)?))
    }
}
