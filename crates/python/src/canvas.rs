//! Canvases.

use std::sync::Mutex;

use anygram::{End, Slot, TokenId};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Raise, invalid, shown};
use crate::matcher::lock;
use crate::number::{Remaining, SlotNumber};
use crate::tokens::{Token, Tokens};

/// A gap: any number of text tokens, also none. There is one, `anygram.GAP`.
#[pyclass(frozen, module = "anygram")]
pub struct Gap;

#[pymethods]
impl Gap {
    fn __repr__(&self) -> &str {
        "GAP"
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.is_instance_of::<Self>()
    }

    fn __hash__(&self) -> u64 {
        0x6a9
    }

    /// The name of the only one.
    fn __reduce__(&self) -> &str {
        "GAP"
    }
}

/// A row of slots that is filled in any order, and how it has to end.
///
/// Args:
///     slots: for each slot a token id (fixed), `None` (a hole: exactly one token, which may be EOS or PAD)
///         or `anygram.GAP` (any number of text tokens).
///     end: `"sentence"`: the text before the first EOS is a sentence; or `"prefix"`: without EOS it has to
///         be the beginning of one.
///     remaining: for `"prefix"`: so many more text tokens at most must make a sentence of it.
///
/// >>> import anygram
/// >>> canvas = anygram.Canvas([7, None, anygram.GAP])
/// >>> canvas.set(1, 5)
/// >>> canvas
/// Canvas([7, 5, GAP], end="sentence")
///
/// Raises:
///     AnygramError: a slot is none of these, or `end` has another value.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Canvas(Mutex<anygram::Canvas>);

impl Canvas {
    /// The canvas as it is now.
    pub fn value(&self) -> anygram::Canvas {
        lock(&self.0).clone()
    }

    pub fn of(canvas: anygram::Canvas) -> Self {
        Self(Mutex::new(canvas))
    }
}

fn slot(py: Python<'_>, (at, slot): (usize, Bound<'_, PyAny>)) -> PyResult<Slot> {
    if slot.is_none() {
        return Ok(Slot::Hole);
    }
    if slot.is_instance_of::<Gap>() {
        return Ok(Slot::Gap);
    }
    slot.extract::<Token>().map(|token| Slot::Fixed(token.0)).map_err(|_| {
        invalid(py, format!("slot {at} is {}; give a token id, None (a hole) or GAP", shown(&slot)))
    })
}

fn end(py: Python<'_>, name: &str, remaining: Option<Remaining>) -> PyResult<End> {
    match (name, remaining) {
        ("sentence", None) => Ok(End::Sentence),
        ("sentence", Some(_)) => {
            Err(invalid(py, "`remaining` is for end=\"prefix\"; leave it out, or add holes"))
        }
        ("prefix", remaining) => Ok(End::Prefix { remaining: remaining.map(|tokens| tokens.0) }),
        _ => Err(invalid(py, format!("end is \"{name}\"; it can be \"sentence\" or \"prefix\""))),
    }
}

impl Slot2 for Slot {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Slot::Fixed(token) => Ok(token.0.into_pyobject(py)?.into_any()),
            Slot::Hole => Ok(py.None().into_bound(py)),
            Slot::Gap => py.import("anygram._native")?.getattr("GAP"),
        }
    }
}

/// A slot as Python has it.
trait Slot2 {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

#[pymethods]
impl Canvas {
    #[new]
    #[pyo3(signature = (slots, end = "sentence", *, remaining = None))]
    fn new(slots: &Bound<'_, PyAny>, end: &str, remaining: Option<Remaining>) -> PyResult<Self> {
        let py = slots.py();
        let end = self::end(py, end, remaining)?;
        let slots = slots.try_iter()?.enumerate().map(|(at, content)| slot(py, (at, content?)));
        Ok(Self::of(anygram::Canvas::new(slots.collect::<PyResult<_>>()?, end)))
    }

    /// The slots: token ids, `None` and `GAP`.
    #[getter]
    fn slots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let slots = self.value();
        let slots = slots.slots().iter().map(|slot| slot.to_python(py)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, slots)
    }

    /// The numbers of the slots that are holes, in order.
    #[getter]
    fn holes(&self) -> Vec<usize> {
        lock(&self.0).holes().collect()
    }

    /// `"sentence"` or `"prefix"`.
    #[getter]
    fn end(&self) -> &'static str {
        match lock(&self.0).end() {
            End::Sentence => "sentence",
            End::Prefix { .. } => "prefix",
        }
    }

    /// How many more tokens may be needed, if that is bounded.
    #[getter]
    fn remaining(&self) -> Option<u32> {
        match lock(&self.0).end() {
            End::Sentence => None,
            End::Prefix { remaining } => remaining,
        }
    }

    /// Says how it has to end, as for the constructor.
    #[pyo3(signature = (end, *, remaining = None))]
    fn set_end(&self, py: Python<'_>, end: &str, remaining: Option<Remaining>) -> PyResult<()> {
        lock(&self.0).set_end(self::end(py, end, remaining)?);
        Ok(())
    }

    /// Puts a token into a hole, or another into a fixed slot.
    ///
    /// Raises (as all that follow):
    ///     AnygramError: there is no such slot, it is a gap, or it is pinned.
    fn set(&self, py: Python<'_>, slot: SlotNumber, token: Token) -> PyResult<()> {
        lock(&self.0).set(slot.0, token.0).map(drop).raise(py)
    }

    /// Makes a slot a hole again.
    fn clear(&self, py: Python<'_>, slot: SlotNumber) -> PyResult<()> {
        lock(&self.0).clear(slot.0).map(drop).raise(py)
    }

    /// Protects a slot from all changes.
    fn pin(&self, py: Python<'_>, slot: SlotNumber) -> PyResult<()> {
        lock(&self.0).pin(slot.0).raise(py)
    }

    /// Protects it no longer.
    fn unpin(&self, py: Python<'_>, slot: SlotNumber) -> PyResult<()> {
        lock(&self.0).unpin(slot.0).raise(py)
    }

    /// Whether a slot is pinned.
    fn is_pinned(&self, slot: SlotNumber) -> bool {
        lock(&self.0).is_pinned(slot.0)
    }

    /// Puts tokens into a gap; a gap stays on both sides.
    fn split(&self, py: Python<'_>, slot: SlotNumber, tokens: Tokens) -> PyResult<()> {
        lock(&self.0).split(slot.0, &tokens.0).raise(py)
    }

    /// Closes a gap: it disappears.
    fn close(&self, py: Python<'_>, slot: SlotNumber) -> PyResult<()> {
        lock(&self.0).close(slot.0).raise(py)
    }

    /// Merges two gaps and all slots between them into one gap.
    fn merge(&self, py: Python<'_>, first: SlotNumber, last: SlotNumber) -> PyResult<()> {
        lock(&self.0).merge(first.0, last.0).raise(py)
    }

    /// Opens a gap before a slot, or at the end.
    fn open(&self, py: Python<'_>, slot: SlotNumber) -> PyResult<()> {
        lock(&self.0).open(slot.0).raise(py)
    }

    /// An independent copy.
    fn copy(&self) -> Self {
        Self::of(self.value())
    }

    fn __copy__(&self) -> Self {
        self.copy()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.copy()
    }

    fn __len__(&self) -> usize {
        lock(&self.0).slots().len()
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, by: CompareOp) -> PyResult<Py<PyAny>> {
        let equal = match other.cast::<Self>() {
            Ok(other) => self.value() == other.get().value(),
            Err(_) => return Ok(py.NotImplemented()),
        };
        match by {
            CompareOp::Eq => Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind()),
            CompareOp::Ne => Ok((!equal).into_pyobject(py)?.to_owned().into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __repr__(&self) -> String {
        let canvas = self.value();
        let slot = |slot: &Slot| match slot {
            Slot::Fixed(TokenId(id)) => id.to_string(),
            Slot::Hole => "None".to_owned(),
            Slot::Gap => "GAP".to_owned(),
        };
        let slots = canvas.slots().iter().map(slot).collect::<Vec<_>>().join(", ");
        let remaining = self.remaining().map_or_else(String::new, |n| format!(", remaining={n}"));
        format!("Canvas([{slots}], end=\"{}\"{remaining})", self.end())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("anygram._pickle")?.getattr("canvas")?;
        let pinned: Vec<usize> = (0..self.__len__()).filter(|&slot| lock(&self.0).is_pinned(slot)).collect();
        Ok((make, (self.slots(py)?, self.end(), self.remaining(), pinned).into_pyobject(py)?))
    }
}
