//! A run of the decoding loop whose model is asked by the caller.

#![allow(unsafe_code)]

use std::sync::Mutex;

use anygram::TokenId;
use anygram::decode::Answer;
use pyo3::prelude::*;

use crate::array::{Array, Item};
use crate::decoder::{Decoded, Decoder, View};
use crate::error::{Raise, bad_buffer};
use crate::gate::work;
use crate::log_probs::LogProbs;
use crate::matcher::lock;
use crate::number::SlotNumber;
use crate::tokens::Token;

/// A run of a `Decoder` that goes on when its model has answered: `Decoder.begin` makes one.
///
/// >>> import anygram, numpy
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None, None], eos=[3], mask=4)
/// >>> decoder = anygram.Decoder(anygram.Constraint(language, vocabulary))
/// >>> session = decoder.begin(anygram.Canvas([None] * 5), steps=2)
/// >>> while (view := session.view()) is not None:
/// ...     session.prepare()  # on another thread, while a model computes
/// ...     session.answer(numpy.tile(numpy.float32([-0.1, -3, -4, -9, -99]), (len(view.wanted), 1)))
/// >>> session.decoded().tokens
/// [0, 0, 2, 1, 1]
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Session {
    inner: Mutex<anygram::decode::Session>,
    decoder: Py<Decoder>,
}

impl Session {
    pub fn new(decoder: Py<Decoder>, inner: anygram::decode::Session) -> Self {
        Self { inner: Mutex::new(inner), decoder }
    }
}

#[pymethods]
impl Session {
    /// What the model is asked next, the same until it is answered; `None` if nothing is left to fill, or if
    /// the run is stuck.
    ///
    /// Raises:
    ///     AnygramError: the decoder has begun another run.
    ///     LimitError: a limit was reached.
    fn view(&self, py: Python<'_>) -> PyResult<Option<View>> {
        let view = || {
            let mut decoder = lock(&self.decoder.get().inner);
            let mut session = lock(&self.inner);
            Ok::<_, anygram::DecodeError>(decoder.view(&mut session)?.map(View::of))
        };
        work(py, view).raise(py)
    }

    /// Work of the step that needs no answer, to be done on another thread while the model makes it. It
    /// changes no token. `answer` waits for it.
    ///
    /// Raises:
    ///     AnygramError: the decoder has begun another run.
    ///     LimitError: a limit was reached.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        let prepare = || {
            let mut decoder = lock(&self.decoder.get().inner);
            decoder.prepare(&mut lock(&self.inner))
        };
        work(py, prepare).raise(py)
    }

    /// Goes on by what the model answered to the view.
    ///
    /// Args:
    ///     log_probs: a row for each slot of `view.wanted`. Of all tokens: `float32[wanted, columns]`,
    ///         natural logarithms or logits, a numpy array or a tensor on the CPU; columns beyond the
    ///         vocabulary are left out. Or `LogProbs.top_k`, which the device made of `log_softmax`: then
    ///         only those tokens are proposed.
    ///     given: pairs `(slot, token)` that are proposed first, in this order, as those of a sampler of the
    ///         model's own. As many tokens are kept as there are pairs: in place of those that are
    ///         refused, the surest by `log_probs`.
    ///
    /// Raises:
    ///     BufferError: the array has another type or shape; it can be answered again.
    ///     AnygramError: there was no view, or the rows do not fit.
    ///     LimitError: a limit was reached.
    #[pyo3(signature = (log_probs, *, given = None))]
    fn answer(
        &self,
        py: Python<'_>,
        log_probs: &Bound<'_, PyAny>,
        given: Option<Vec<(SlotNumber, Token)>>,
    ) -> PyResult<()> {
        let given: Option<Vec<(usize, TokenId)>> =
            given.map(|pairs| pairs.into_iter().map(|(slot, token)| (slot.0, token.0)).collect());
        let answer = |answer: Answer<'_>| {
            let mut decoder = lock(&self.decoder.get().inner);
            decoder.answer(&mut lock(&self.inner), answer, given.as_deref())
        };
        if let Ok(listed) = log_probs.cast::<LogProbs>() {
            let rows = &listed.get().inner;
            return work(py, || answer(Answer::Rows(rows))).raise(py);
        }
        let array = Array::of(log_probs)?;
        let (n_rows, width, stride) = array.rows(py)?;
        if array.item != Item::F32 {
            let message = format!("log-probabilities are float32, not {:?}: convert the array", array.item);
            return Err(bad_buffer(py, message));
        }
        let mut values = Vec::with_capacity(n_rows * width);
        for row in 0..if width == 0 { 0 } else { n_rows } {
            // SAFETY: as in `log_probs::floats`: the array has `n_rows` rows of `width` aligned floats,
            // `stride` apart, and no other thread of Python writes to them while this one has the lock.
            values.extend_from_slice(unsafe {
                std::slice::from_raw_parts((array.address as *const f32).add(row * stride), width)
            });
        }
        work(py, || answer(Answer::Dense { values: &values, columns: width })).raise(py)
    }

    /// For each slot its token, or `None` where nothing was kept yet. Gaps are closed.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> Vec<Option<u32>> {
        let token = |slot: &anygram::Slot| match slot {
            anygram::Slot::Fixed(token) => Some(token.0),
            anygram::Slot::Hole | anygram::Slot::Gap => None,
        };
        // Another thread may prepare.
        work(py, || lock(&self.inner).slots().iter().map(token).collect())
    }

    /// How the run ended, or how far it came.
    fn decoded(&self, py: Python<'_>) -> Decoded {
        Decoded { inner: work(py, || lock(&self.inner).clone().decoded()) }
    }

    /// The decoder.
    #[getter]
    fn decoder(&self, py: Python<'_>) -> Py<Decoder> {
        self.decoder.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let tokens = self.tokens(py);
        let n_open = tokens.iter().filter(|token| token.is_none()).count();
        format!("Session({} slots, {n_open} open)", tokens.len())
    }
}
