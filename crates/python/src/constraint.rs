//! Constraints: a language and a vocabulary, with tables that outputs grow together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use anygram::{MatchError, Warm};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::compiler::{Cancel, Language};
use crate::error::{Raise, invalid, of_compile};
use crate::gate::work;
use crate::mask_times::{Made, MaskTimes};
use crate::matcher::Matcher;
use crate::number::{Masks, Tables};
use crate::tables_bound::TablesBound;
use crate::tokens::{Text, Tokens};
use crate::vocabulary::Vocabulary;

/// A language and a vocabulary: what constrains outputs.
///
/// Args:
///     language: what the texts are.
///     vocabulary: the tokens of the model.
///     tables: how many sets of tables outputs share. What one output computed is a look-up for all on the
///         same tables, but only one thread works on a set at a time. Give as many as threads that compute
///         masks at once; each costs memory, and is cold at first.
///     times: where the times of its masks are counted.
///     bound: the bound on its tables and those of others.
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
    times: Option<Py<MaskTimes>>,
    bound: Option<Py<TablesBound>>,
}

/// Tables, and how many outputs use them.
struct Table {
    warm: Mutex<Warm>,
    /// As many clones as outputs, and this one.
    users: Arc<()>,
    /// Their bytes when nobody worked on them last.
    bytes: AtomicUsize,
}

impl Constraint {
    /// Counts a mask, if somebody asked for that.
    pub fn count_mask(&self, made: Made, took: Duration) {
        if let Some(times) = &self.times {
            times.get().0.count(made, took);
        }
    }
}

#[pymethods]
impl Constraint {
    #[new]
    #[pyo3(
        signature = (language, vocabulary, *, tables = Tables(1), times = None, bound = None),
        text_signature = "(language, vocabulary, *, tables=1, times=None, bound=None)"
    )]
    fn new(
        py: Python<'_>,
        language: Py<Language>,
        vocabulary: Py<Vocabulary>,
        tables: Tables,
        times: Option<Py<MaskTimes>>,
        bound: Option<Py<TablesBound>>,
    ) -> PyResult<Self> {
        let (of, tokens) = (language.get().inner.clone(), vocabulary.get().inner.clone());
        let made = work(py, || anygram::Constraint::new(of, tokens));
        let inner = made.map_err(|error| of_compile(py, &error, None))?;
        let inner = match &bound {
            Some(bound) => inner.bounded(&bound.get().0),
            None => inner,
        };
        let table = || Table { warm: Mutex::default(), users: Arc::default(), bytes: AtomicUsize::default() };
        let tables = (0..tables.0).map(|_| table()).collect();
        Ok(Self { inner, language, vocabulary, tables, times, bound })
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

    /// Computes the masks along texts that are likely to come, on all of its tables, so that outputs look
    /// them up: before each token of a text and behind the last, until a token is refused. Masks are the same
    /// with and without.
    ///
    /// >>> import anygram
    /// >>> language = anygram.Compiler().compile('start: "yes" | "no"', "lark")
    /// >>> times = anygram.MaskTimes()
    /// >>> constraint = anygram.Constraint(language, anygram.Vocabulary.builtin(), times=times)
    /// >>> constraint.prepare(["yes"]) > 1
    /// True
    /// >>> mask = constraint.matcher().mask()
    /// >>> times.looked_up, times.computed
    /// (1, 0)
    ///
    /// Args:
    ///     texts: what may come; it need not be of the language.
    ///     masks: the most that are computed.
    ///     cancel: with it another thread can stop it between two masks.
    ///
    /// Returns:
    ///     How many masks were computed.
    ///
    /// Raises:
    ///     LimitError: a mask reaches a limit.
    ///     Cancelled: `cancel.cancel()` was called.
    #[pyo3(
        signature = (texts, *, masks = Masks(512), cancel = None),
        text_signature = "($self, texts, *, masks=512, cancel=None)"
    )]
    fn prepare(
        &self,
        py: Python<'_>,
        texts: Vec<Text>,
        masks: Masks,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<usize> {
        let cancel = cancel.map_or_else(anygram::Cancel::new, |cancel| cancel.get().0.clone());
        let prepare = || {
            let mut n_masks = 0;
            for table in &self.tables {
                let made = table.warm.lock().unwrap_or_else(PoisonError::into_inner).matcher(&self.inner);
                let (output, mut left) = (made?, masks.0);
                for Text(text) in &texts {
                    left -= output.prepare(text, left, &cancel)?;
                }
                n_masks += masks.0 - left;
            }
            Ok::<_, MatchError>(n_masks)
        };
        work(py, prepare).raise(py)
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

    /// Bytes of its tables on the heap, roughly: what masks of its outputs taught it, and the states of the
    /// outputs. Nobody waits for it: of tables that a thread works on, the size is the last known one.
    #[getter]
    fn tables_memory(&self) -> usize {
        let bytes = self.tables.iter().map(|table| {
            let warm = match table.warm.try_lock() {
                Ok(warm) => Some(warm),
                Err(TryLockError::Poisoned(warm)) => Some(warm.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(bytes) = warm.and_then(|warm| warm.memory_usage()) {
                table.bytes.store(bytes, Ordering::Relaxed);
            }
            table.bytes.load(Ordering::Relaxed)
        });
        bytes.sum()
    }

    /// Gives its tables up, so that their memory goes. Outputs go on with the same masks, which are computed
    /// again; new outputs begin with empty tables.
    ///
    /// >>> import anygram
    /// >>> language = anygram.Compiler().compile('start: "yes" | "no"', "lark")
    /// >>> constraint = anygram.Constraint(language, anygram.Vocabulary.builtin())
    /// >>> before = constraint.matcher().mask()
    /// >>> bool(constraint.tables_memory)
    /// True
    /// >>> constraint.forget_tables()
    /// True
    /// >>> constraint.tables_memory
    /// 0
    /// >>> bool((constraint.matcher().mask() == before).all())
    /// True
    ///
    /// Args:
    ///     wait: whether to wait for threads that work on tables; else those tables stay.
    ///
    /// Returns:
    ///     Whether all were given up.
    #[pyo3(signature = (*, wait = true))]
    fn forget_tables(&self, py: Python<'_>, wait: bool) -> bool {
        work(py, || {
            let forget = |table: &Table| match table.warm.try_lock() {
                Ok(mut warm) if !wait => warm.try_forget(),
                Err(TryLockError::WouldBlock) if !wait => false,
                Ok(mut warm) => {
                    warm.forget();
                    true
                }
                Err(_) => {
                    table.warm.lock().unwrap_or_else(PoisonError::into_inner).forget();
                    true
                }
            };
            // All of them, also where one stays.
            let given_up: Vec<bool> = self.tables.iter().map(forget).collect();
            given_up.into_iter().all(|is_given_up| is_given_up)
        })
    }

    /// Where the times of its masks are counted.
    #[getter]
    fn times(&self, py: Python<'_>) -> Option<Py<MaskTimes>> {
        self.times.as_ref().map(|times| times.clone_ref(py))
    }

    /// The bound on its tables.
    #[getter]
    fn bound(&self, py: Python<'_>) -> Option<Py<TablesBound>> {
        self.bound.as_ref().map(|bound| bound.clone_ref(py))
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
