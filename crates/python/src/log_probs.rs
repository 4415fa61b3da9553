//! Log-probabilities of holes, from arrays.

#![allow(unsafe_code)]

use anygram::{Floor, TokenId};
use pyo3::prelude::*;

use crate::array::{Array, Item};
use crate::error::{Raise, bad_buffer};
use crate::gate::work;
use crate::number::{Real, Size};
use crate::tokens::Token;

/// For every hole of a canvas the log-probabilities of tokens, in the order of the holes.
///
/// Natural logarithms. They need not sum to one, so logits will do; minus infinity excludes a token.
///
/// >>> import anygram, numpy
/// >>> anygram.LogProbs.dense(numpy.zeros((2, 4), dtype=numpy.float32))
/// LogProbs(2 holes)
#[pyclass(frozen, module = "anygram", weakref)]
pub struct LogProbs {
    pub inner: anygram::LogProbs,
    n_rows: usize,
}

/// What tokens weigh that are not listed.
fn floor(value: Option<Real>) -> Floor {
    value.map_or(Floor::BelowListed, |value| Floor::At(value.0))
}

/// The rows of an array of `float32`, copied into one another's length.
fn floats(py: Python<'_>, array: &Array, size: Option<usize>) -> PyResult<(Vec<f32>, usize, usize)> {
    if array.item != Item::F32 {
        return Err(bad_buffer(py, "log-probabilities are float32: convert the array"));
    }
    let (n_rows, width, stride) = array.rows(py)?;
    let size = size.unwrap_or(width);
    if size > width {
        return Err(bad_buffer(py, format!("rows of {width} log-probabilities for {size} tokens")));
    }
    let mut values = Vec::with_capacity(n_rows * size);
    if size > 0 {
        for row in 0..n_rows {
            let start = array.address as *const f32;
            // SAFETY: `array` has `n_rows` rows of `width` floats, `stride` apart, is aligned for them
            // (`Array::of`) and keeps its memory. Python's threads cannot write to it, as this one has the
            // interpreter's lock; all bit patterns are floats.
            values.extend_from_slice(unsafe { std::slice::from_raw_parts(start.add(row * stride), size) });
        }
    }
    Ok((values, n_rows, size))
}

/// The rows of an array of token ids.
fn tokens(py: Python<'_>, array: &Array) -> PyResult<Vec<Vec<TokenId>>> {
    let (n_rows, width, stride) = array.rows(py)?;
    let bad = |id: i64| bad_buffer(py, format!("{id} is no token id"));
    let token = |row: usize, at: usize| {
        let place = row * stride + at;
        // SAFETY: as in `floats`, for integers of this size; `place` is that of an item of the array.
        let id = match array.item {
            Item::I64 => unsafe { *(array.address as *const i64).add(place) },
            Item::Word => unsafe { *(array.address as *const u32).add(place) }.into(),
            _ => return Err(bad_buffer(py, "token ids are int64, int32 or uint32: convert the array")),
        };
        u32::try_from(id).map(TokenId).map_err(|_| bad(id))
    };
    (0..n_rows).map(|row| (0..width).map(|at| token(row, at)).collect()).collect()
}

impl LogProbs {
    /// What an argument says: a value of this class, or an array of all tokens.
    pub fn of(py: Python<'_>, given: &Bound<'_, PyAny>, size: usize) -> PyResult<anygram::LogProbs> {
        match given.cast::<Self>() {
            Ok(log_probs) => Ok(log_probs.get().inner.clone()),
            Err(_) => Ok(Self::of_array(py, given, Some(size))?.inner),
        }
    }

    fn of_array(py: Python<'_>, array: &Bound<'_, PyAny>, size: Option<usize>) -> PyResult<Self> {
        let (values, n_rows, size) = floats(py, &Array::of(array)?, size)?;
        let inner = work(py, || anygram::LogProbs::dense(values, size)).raise(py)?;
        Ok(Self { inner, n_rows })
    }
}

#[pymethods]
impl LogProbs {
    /// Of all tokens: `float32[holes, tokens]`, a numpy array or a tensor on the CPU. Cost: one copy of the
    /// array.
    ///
    /// Args:
    ///     array: the log-probabilities, with a row for each hole.
    ///     size: how many tokens the vocabulary has, if rows are longer (a padded model); the rest is left
    ///         out.
    ///
    /// Raises:
    ///     BufferError: the array has another type or shape.
    ///     AnygramError: a value is NaN or plus infinity.
    #[staticmethod]
    #[pyo3(signature = (array, size = None))]
    fn dense(py: Python<'_>, array: &Bound<'_, PyAny>, size: Option<Size>) -> PyResult<Self> {
        Self::of_array(py, array, size.map(|size| size.0))
    }

    /// Of the likeliest tokens of each hole, as `torch.topk` returns them.
    ///
    /// Args:
    ///     ids: `int64`, `int32` or `uint32[holes, k]`.
    ///     values: `float32[holes, k]`.
    ///     floor: what all other tokens weigh: by default the lowest that is listed, less 10; minus infinity
    ///         excludes them.
    ///
    /// Raises:
    ///     BufferError: the arrays have other types or shapes.
    ///     AnygramError: a token is listed twice, or a value is NaN or plus infinity.
    #[staticmethod]
    #[pyo3(signature = (ids, values, *, floor = None))]
    fn top_k(
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        floor: Option<Real>,
    ) -> PyResult<Self> {
        let (ids, values) = (Array::of(ids)?, Array::of(values)?);
        if ids.shape() != values.shape() {
            let message =
                format!("ids {:?} and values {:?} have different shapes", ids.shape(), values.shape());
            return Err(bad_buffer(py, message));
        }
        let (values, n_rows, size) = floats(py, &values, None)?;
        let ids = tokens(py, &ids)?;
        let rows = ids.into_iter().enumerate().map(|(row, ids)| {
            let values = values[row * size..].iter().map(|&value| f64::from(value));
            ids.into_iter().zip(values).collect()
        });
        let rows: Vec<Vec<_>> = rows.collect();
        Ok(Self { inner: anygram::LogProbs::listed(&rows, self::floor(floor)).raise(py)?, n_rows })
    }

    /// Of some tokens of each hole: for each hole pairs `(token, log-probability)`, in any order.
    ///
    /// Args:
    ///     rows: the pairs.
    ///     floor: as for `top_k`.
    #[staticmethod]
    #[pyo3(signature = (rows, *, floor = None))]
    fn listed(py: Python<'_>, rows: Vec<Vec<(Token, Real)>>, floor: Option<Real>) -> PyResult<Self> {
        let row = |row: Vec<(Token, Real)>| row.into_iter().map(|(token, log)| (token.0, log.0)).collect();
        let rows: Vec<Vec<_>> = rows.into_iter().map(row).collect();
        let inner = anygram::LogProbs::listed(&rows, self::floor(floor)).raise(py)?;
        Ok(Self { inner, n_rows: rows.len() })
    }

    /// The number of holes.
    fn __len__(&self) -> usize {
        self.n_rows
    }

    fn __repr__(&self) -> String {
        format!("LogProbs({} holes)", self.n_rows)
    }
}
