//! The state of one output.
//!
//! Which lock is held when: a question that is mostly a look-up keeps the interpreter's lock, since whoever
//! gives that away beside a busy thread gets it back after milliseconds. It is given away for what is work,
//! and wherever this output or its tables are in use by another thread, which may take long.

#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use anygram::{Draft, MaskRows, MatchError, TokenId, VocabError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyTuple};

use crate::compiler::Cancel;
use crate::constraint::Constraint;
use crate::error::{Located, Raise, invalid};
use crate::gate::work;
use crate::mask_buffer::{Words, with_rows};
use crate::mask_times::Made;
use crate::number::{Budget, Masks, Parent, RolledBack, Row};
use crate::tokens::{Text, Token, Tokens, ids};

/// The state of one output: its tokens, and which may follow.
///
/// Made by `Constraint.matcher()`. Threads may share it: they take turns. `copy.copy` is `fork`; a pickle has
/// the constraint and the tokens.
///
/// >>> import anygram
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None], eos=[3])
/// >>> matcher = anygram.Constraint(language, vocabulary).matcher()
/// >>> matcher.advance(0)
/// >>> matcher.mask()  # bit i is token i: `(` and `x`
/// array([5], dtype=uint32)
/// >>> matcher.advance(1)
/// Traceback (most recent call last):
/// anygram._errors.RefusedError: token 1 (")") is refused at its byte 0 (')'), offset 1 of the text...
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Matcher {
    inner: Mutex<anygram::Matcher>,
    constraint: Py<Constraint>,
    /// Counts as a user of its tables.
    users: Arc<()>,
    eos: Option<Vec<TokenId>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // After a panic the value is as it was after its last step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Tokens up to which advancing keeps the interpreter's lock.
const FEW_TOKENS: usize = 16;

impl Matcher {
    pub fn new(
        inner: anygram::Matcher,
        constraint: Py<Constraint>,
        users: Arc<()>,
        eos: Option<Vec<TokenId>>,
    ) -> Self {
        Self { inner: Mutex::new(inner), constraint, users, eos }
    }

    pub fn inner(&self) -> &Mutex<anygram::Matcher> {
        &self.inner
    }

    /// The number of words of a mask.
    pub fn mask_words(&self) -> usize {
        self.constraint.get().inner.mask_words()
    }

    /// Something that is mostly quick.
    fn quick<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut anygram::Matcher) -> T + Send) -> T {
        if let Some(mut inner) = try_lock(&self.inner)
            && !inner.is_busy()
        {
            return ask(&mut inner);
        }
        self.work(py, ask)
    }

    /// Something that may take long.
    fn work<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut anygram::Matcher) -> T + Send) -> T {
        work(py, || ask(&mut lock(&self.inner)))
    }

    /// Quick or not, by the number of tokens.
    fn by_length<T: Send>(
        &self,
        py: Python<'_>,
        n_tokens: usize,
        ask: impl FnOnce(&mut anygram::Matcher) -> T + Send,
    ) -> T {
        if n_tokens <= FEW_TOKENS { self.quick(py, ask) } else { self.work(py, ask) }
    }

    /// Writes the mask if that is a look-up.
    pub fn fill_known(&self, budget: Option<Budget>, words: &mut [u32]) -> Result<bool, MatchError> {
        let began = Instant::now();
        let is_known = try_lock(&self.inner).map_or(Ok(false), |mut inner| match budget {
            None => inner.known_mask_into(words),
            Some(budget) => inner.known_mask_with_budget_into(budget.0, words),
        })?;
        if is_known {
            self.count(Made::LookedUp, began.elapsed());
        }
        Ok(is_known)
    }

    /// Counts a mask.
    pub fn count(&self, made: Made, took: Duration) {
        self.constraint.get().count_mask(made, took);
    }

    /// Raises what went wrong when more was to be read, with the place in the value of a JSON schema. The
    /// state is that before what was to be read.
    fn locate<T>(
        &self,
        py: Python<'_>,
        error: MatchError,
        more: impl FnOnce(&anygram::Vocabulary) -> Result<Vec<u8>, VocabError> + Send,
    ) -> PyResult<T> {
        let located = self.work(py, |inner| {
            let more = more(inner.constraint().vocabulary()).unwrap_or_default();
            Located::new(error, inner, &more)
        });
        Err::<T, _>(located).raise(py)
    }

    /// The mask, computed without the interpreter's lock.
    fn computed(&self, py: Python<'_>, budget: Option<Budget>) -> PyResult<Vec<u32>> {
        let mut words = vec![0; self.mask_words()];
        let began = Instant::now();
        let made = self.work(py, |inner| {
            match budget {
                None => inner.mask_into(&mut words),
                Some(budget) => inner.mask_with_budget_into(budget.0, &mut words),
            }?;
            Ok::<_, MatchError>(words)
        });
        self.count(if made.is_ok() { Made::Computed } else { Made::Failed }, began.elapsed());
        made.raise(py)
    }
}

/// Words as a numpy array of `uint32` that owns them.
pub fn words_to_numpy<'py>(py: Python<'py>, words: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the bytes of words are bytes, so many, and live as long as the words.
    let data = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
    let bytes = PyByteArray::new(py, data);
    py.import("numpy")?.call_method1("frombuffer", (bytes, "uint32"))
}

#[pymethods]
impl Matcher {
    /// Appends a token.
    ///
    /// Raises:
    ///     RefusedError: it may not come next; the output is as it was.
    ///     LimitError: a limit was reached; the output is as it was.
    ///     AnygramError: the vocabulary has no such token.
    fn advance(&self, py: Python<'_>, token: Token) -> PyResult<()> {
        match self.quick(py, |inner| inner.advance(token.0)) {
            Ok(()) => Ok(()),
            Err(error) => self.locate(py, error, |vocabulary| vocabulary.decode(&[token.0])),
        }
    }

    /// Appends several tokens: all of them, or, if one is refused, none. Raises as `advance`.
    fn advance_all(&self, py: Python<'_>, tokens: Tokens) -> PyResult<()> {
        match self.by_length(py, tokens.0.len(), |inner| inner.advance_all(&tokens.0)) {
            Ok(()) => Ok(()),
            Err(error) => self.locate(py, error, |vocabulary| vocabulary.decode(&tokens.0)),
        }
    }

    /// Appends a text as the tokens that the vocabulary's encoder makes of it; returns how many. All or none.
    ///
    /// Raises as `advance`, and `VocabularyError` if no tokens spell the text.
    fn advance_text(&self, py: Python<'_>, text: Text) -> PyResult<usize> {
        match self.work(py, |inner| inner.advance_text(&text.0)) {
            Ok(n_tokens) => Ok(n_tokens),
            Err(error) => self.locate(py, error, |_| Ok(text.0.to_vec())),
        }
    }

    /// Appends tokens up to the first that is refused; returns how many.
    fn try_advance(&self, py: Python<'_>, tokens: Tokens) -> PyResult<usize> {
        let advance = |inner: &mut anygram::Matcher| {
            for (at, &token) in tokens.0.iter().enumerate() {
                match inner.advance(token) {
                    Err(MatchError::Refused(_)) => return Ok(at),
                    result => result?,
                }
            }
            Ok::<_, MatchError>(tokens.0.len())
        };
        self.by_length(py, tokens.0.len(), advance).raise(py)
    }

    /// How many of these tokens could be appended, from the first on. Nothing changes.
    fn validate(&self, py: Python<'_>, tokens: Tokens) -> PyResult<usize> {
        self.by_length(py, tokens.0.len(), |inner| inner.validate(&tokens.0)).raise(py)
    }

    /// Rolls back the last `n` tokens; EOS counts as one.
    ///
    /// Raises:
    ///     AnygramError: there are fewer.
    #[pyo3(signature = (n = RolledBack(1)), text_signature = "($self, n=1)")]
    fn rollback(&self, py: Python<'_>, n: RolledBack) -> PyResult<()> {
        self.quick(py, |inner| inner.rollback(n.0)).raise(py)
    }

    /// Makes the output have exactly these tokens: rolls back to the first that differs, and appends the
    /// rest.
    /// Raises as `advance`, and then the output has the tokens before the one that was refused.
    fn go_to(&self, py: Python<'_>, tokens: Tokens) -> PyResult<()> {
        match self.work(py, |inner| inner.go_to(&tokens.0)) {
            Err(MatchError::Refused(refusal)) => {
                let token = refusal.token;
                self.locate(py, MatchError::Refused(refusal), |vocabulary| vocabulary.decode(&[token]))
            }
            result => result.raise(py),
        }
    }

    /// Removes all tokens.
    fn reset(&self, py: Python<'_>) {
        self.quick(py, anygram::Matcher::reset);
    }

    /// Computes masks of situations that this output may come to, the likeliest first, for a thread that has
    /// nothing else to do while the model computes: when the output comes there, its mask is looked up. Masks
    /// are the same with and without.
    ///
    /// What is likely is guessed by the ids of tokens, so this helps where much is new, and then with some of
    /// it. This output can be used meanwhile; whatever uses its tables waits for a mask that is being
    /// computed, so cancel it when the model has answered.
    ///
    /// >>> import anygram, threading
    /// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
    /// >>> matcher = anygram.Constraint(language, anygram.Vocabulary.builtin()).matcher()
    /// >>> cancel = anygram.Cancel()
    /// >>> ahead = threading.Thread(target=matcher.work_ahead, kwargs={"cancel": cancel})
    /// >>> ahead.start()
    /// >>> # The model computes; then:
    /// >>> cancel.cancel()
    /// >>> matcher.advance_text("(x")
    /// 2
    /// >>> ahead.join()
    ///
    /// Args:
    ///     masks: the most situations that are looked at.
    ///     cancel: with it another thread can stop it.
    ///
    /// Returns:
    ///     How many situations were looked at.
    #[pyo3(
        signature = (*, masks = Masks(1_000), cancel = None),
        text_signature = "($self, *, masks=1000, cancel=None)"
    )]
    fn work_ahead(&self, py: Python<'_>, masks: Masks, cancel: Option<&Bound<'_, Cancel>>) -> usize {
        let cancel = cancel.map_or_else(anygram::Cancel::new, |cancel| cancel.get().0.clone());
        work(py, || {
            let output = lock(&self.inner).fork();
            output.work_ahead(masks.0, &cancel)
        })
    }

    /// An independent copy, which shares the tables.
    fn fork(&self, py: Python<'_>) -> Self {
        let inner = self.quick(py, |inner| inner.fork());
        Self::new(inner, self.constraint.clone_ref(py), self.users.clone(), self.eos.clone())
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.fork(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
        self.fork(py)
    }

    /// The mask of tokens that may come next: `uint32[mask_words]`, bit `id % 32` of word `id // 32`.
    ///
    /// Args:
    ///     budget: only tokens after which a sentence is still reachable within so many tokens in all, this
    ///         one included and EOS not counted.
    ///
    /// The mask is exact: a bit is set if and only if some continuation of the text with the token is a
    /// sentence. Once it is known for a situation it is a look-up. It is a new array; for many masks fill
    /// rows of your own (`fill_mask`).
    ///
    /// Raises:
    ///     LimitError: a limit was reached.
    #[pyo3(signature = (*, budget = None))]
    fn mask<'py>(&self, py: Python<'py>, budget: Option<Budget>) -> PyResult<Bound<'py, PyAny>> {
        let mut words = vec![0; self.mask_words()];
        if !self.fill_known(budget, &mut words).raise(py)? {
            words = self.computed(py, budget)?;
        }
        words_to_numpy(py, &words)
    }

    /// Writes the mask into a row: a `MaskBuffer`, or an array as it takes them.
    ///
    /// A row may be wider than the mask (a model whose output layer is padded): what is left over is cleared.
    /// A mask that is known takes about a microsecond with a `MaskBuffer`; an array has to be checked each
    /// time, which takes two more.
    ///
    /// Args:
    ///     out: where to write to.
    ///     row: the row.
    ///     budget: as for `mask`.
    ///
    /// Raises:
    ///     BufferError: there is no such row, it is too narrow, or the array cannot be written to.
    ///     LimitError: a limit was reached.
    #[pyo3(
        signature = (out, row = Row(0), *, budget = None),
        text_signature = "($self, out, row=0, *, budget=None)"
    )]
    fn fill_mask(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        row: Row,
        budget: Option<Budget>,
    ) -> PyResult<()> {
        let row = row.0;
        let is_known = with_rows(out, |words| {
            words.check(py, row, self.mask_words())?;
            // SAFETY: threads of Python cannot write to the row while this one has the interpreter's lock,
            // and callers of `fill_masks` promise not to write to rows that others write to.
            let words = unsafe { words.row(row) };
            self.fill_known(budget, words).raise(py)
        })?;
        if is_known {
            return Ok(());
        }
        let made = self.computed(py, budget)?;
        // The array may be another one by now.
        with_rows(out, |words| {
            words.check(py, row, made.len())?;
            // SAFETY: as above.
            let words = unsafe { words.row(row) };
            words[..made.len()].copy_from_slice(&made);
            words[made.len()..].fill(0);
            Ok(())
        })
    }

    /// Writes the masks after draft tokens, without appending them, for speculative decoding.
    ///
    /// Args:
    ///     out: as for `fill_mask`.
    ///     row: the row of the mask after the first draft; the others follow.
    ///     tokens: the drafts.
    ///     parents: for each draft the place in `tokens` of the one that it follows, or `None` (or -1) if it
    ///         comes next: a tree. By default each follows the one before it.
    ///
    /// Returns:
    ///     For each draft whether it and all before it are allowed; the row of one that is not is empty.
    ///
    /// Raises:
    ///     BufferError: as for `fill_mask`.
    ///     AnygramError: a parent does not stand before its draft.
    #[pyo3(signature = (out, row, tokens, parents = None))]
    fn fill_drafts(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        row: Row,
        tokens: Tokens,
        parents: Option<Vec<Option<Parent>>>,
    ) -> PyResult<Vec<bool>> {
        let (row, drafts) = (row.0, drafts(py, &tokens.0, parents)?);
        let n_words = self.mask_words();
        let Some(last) = drafts.len().checked_sub(1) else { return Ok(Vec::new()) };
        let check = |words: &Words| words.check(py, row.saturating_add(last), n_words);
        with_rows(out, check)?;
        let mut made = vec![0; drafts.len() * n_words];
        let answer = self.work(py, |inner| inner.draft_masks(&drafts, MaskRows::new(&mut made, n_words)));
        let answer = answer.raise(py)?;
        with_rows(out, |words| {
            check(words)?;
            for (at, mask) in made.chunks(n_words.max(1)).enumerate() {
                // SAFETY: as in `fill_mask`.
                let words = unsafe { words.row(row + at) };
                words[..n_words].copy_from_slice(mask);
                words[n_words..].fill(0);
            }
            Ok(())
        })?;
        Ok(answer)
    }

    /// What every continuation begins with (others say fast-forward, or jump-forward): bytes, and their
    /// tokens less the last ones, which later bytes could merge with. Empty where the text may end.
    fn forced(&self, py: Python<'_>) -> PyResult<Forced> {
        Ok(Forced { inner: self.work(py, anygram::Matcher::forced).raise(py)? })
    }

    /// The names of the terminals that may be in progress or come next.
    fn expected(&self, py: Python<'_>) -> Vec<String> {
        self.quick(py, |inner| inner.expected())
    }

    /// The least number of tokens that make a sentence of the text, EOS not counted: 0 at a sentence. `None`
    /// if it takes more than `limit`, or if the vocabulary spells no continuation.
    #[pyo3(signature = (limit = None))]
    fn minimum_tokens(&self, py: Python<'_>, limit: Option<Budget>) -> PyResult<Option<u32>> {
        let limit = limit.unwrap_or(Budget::LARGEST).0;
        self.work(py, |inner| inner.minimum_tokens(limit)).raise(py)
    }

    /// Whether only EOS may follow.
    fn must_stop(&self, py: Python<'_>) -> PyResult<bool> {
        self.work(py, anygram::Matcher::must_stop).raise(py)
    }

    /// Whether the text is a sentence.
    #[getter]
    fn is_sentence(&self, py: Python<'_>) -> bool {
        self.quick(py, |inner| inner.is_sentence())
    }

    /// Whether the output has ended with an EOS.
    #[getter]
    fn has_ended(&self, py: Python<'_>) -> bool {
        self.quick(py, |inner| inner.has_ended())
    }

    /// The tokens so far.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> Vec<u32> {
        self.quick(py, |inner| ids(inner.tokens()))
    }

    /// The text so far.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let tokens = self.quick(py, |inner| inner.tokens().to_vec());
        let text = self.constraint.get().inner.vocabulary().decode(&tokens).raise(py)?;
        Ok(PyBytes::new(py, &text))
    }

    /// The tokens that end this output.
    #[getter]
    fn eos<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.quick(py, |inner| ids(inner.eos())))
    }

    /// The constraint.
    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<Constraint> {
        self.constraint.clone_ref(py)
    }

    /// The readings of the text so far, drawn in characters, for debugging.
    fn dump(&self, py: Python<'_>) -> String {
        self.work(py, |inner| inner.dump())
    }

    /// How many masks were looked up, and how many were computed and kept or not kept, on these tables.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let counts = self.quick(py, |inner| inner.memo_counts());
        let stats = pyo3::types::PyDict::new(py);
        stats.set_item("found", counts.found)?;
        stats.set_item("kept", counts.kept)?;
        stats.set_item("not_kept", counts.not_kept)?;
        Ok(stats)
    }

    /// Bytes on the heap, the shared tables included, roughly.
    #[getter]
    fn memory_usage(&self, py: Python<'_>) -> usize {
        self.work(py, |inner| inner.memory_usage())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (n_tokens, is_sentence) = self.quick(py, |inner| (inner.tokens().len(), inner.is_sentence()));
        let is_sentence = if is_sentence { "True" } else { "False" };
        format!("Matcher({n_tokens} tokens, is_sentence={is_sentence})")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("anygram._pickle")?.getattr("matcher")?;
        let eos = self.eos.as_deref().map(ids);
        Ok((make, (self.constraint.bind(py), self.tokens(py), eos).into_pyobject(py)?))
    }
}

/// Drafts by their parents.
fn drafts(py: Python<'_>, tokens: &[TokenId], parents: Option<Vec<Option<Parent>>>) -> PyResult<Vec<Draft>> {
    let place = |parent: Option<Parent>| parent.and_then(|parent| usize::try_from(parent.0).ok());
    let parents: Vec<Option<usize>> = match parents {
        Some(parents) => parents.into_iter().map(place).collect(),
        None => (0..tokens.len()).map(|at| at.checked_sub(1)).collect(),
    };
    if parents.len() != tokens.len() {
        let (n_parents, n_tokens) = (parents.len(), tokens.len());
        return Err(invalid(py, format!("{n_parents} parents of {n_tokens} drafts: give one for each")));
    }
    Ok(tokens.iter().zip(parents).map(|(&token, after)| Draft { token, after }).collect())
}

/// What every continuation begins with.
#[pyclass(frozen, module = "anygram")]
pub struct Forced {
    inner: anygram::Forced,
}

#[pymethods]
impl Forced {
    /// The bytes.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.bytes)
    }

    /// The tokens that can be appended without asking the model.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        ids(&self.inner.tokens)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Forced(bytes={}, tokens={:?})", self.bytes(py).repr()?, self.tokens()))
    }
}
