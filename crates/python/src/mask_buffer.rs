//! Rows of words of the caller, checked once: where masks are written without a copy.

#![allow(unsafe_code)]

use std::sync::{PoisonError, RwLock, RwLockReadGuard, TryLockError};

use pyo3::prelude::*;

use crate::array::{Array, Item};
use crate::error::bad_buffer;
use crate::number::{Address, Length};

/// Rows of 32-bit words into which masks are written: a numpy array, a tensor on the CPU, or anything with
/// the buffer protocol, of `uint32` or `int32`; one row, or rows `[n, words]` that are contiguous each.
///
/// The array is checked here, once, so that writing to it costs no more than its words. Its memory stays
/// where it is as long as this object lives. Rows may be wider than masks (`Constraint.mask_words`): what is
/// left over is cleared. Two threads must not write to the same row at the same time.
///
/// >>> import anygram, numpy
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None], eos=[3])
/// >>> constraint = anygram.Constraint(language, vocabulary)
/// >>> masks = numpy.zeros((2, constraint.mask_words), dtype=numpy.uint32)
/// >>> buffer = anygram.MaskBuffer(masks)
/// >>> constraint.matcher().fill_mask(buffer, row=1)
/// >>> masks
/// array([[0],
///        [5]], dtype=uint32)
///
/// Raises:
///     BufferError: the array has another type or shape, is read-only, misaligned, or on a device.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct MaskBuffer(RwLock<Option<Words>>);

/// What is written to. `address` is that of `n_rows` rows of `width` words, `stride` words apart.
pub struct Words {
    address: usize,
    n_rows: usize,
    width: usize,
    stride: usize,
    _owner: Option<Array>,
    /// An object that the caller gave with a pointer.
    _object: Option<Py<PyAny>>,
}

impl Words {
    /// Of an array that stays where it is as long as these words.
    fn kept(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let array = Array::kept(object)?;
        let words = Self::of(object.py(), &array)?;
        Ok(Self { _owner: Some(array), ..words })
    }

    /// Of an array, which is not kept.
    fn of(py: Python<'_>, array: &Array) -> PyResult<Self> {
        if array.item != Item::Word {
            return Err(bad_buffer(py, "a mask has 32-bit words: give an array of uint32 or int32"));
        }
        if !array.is_writable {
            return Err(bad_buffer(py, "the array is read-only: give one that can be written to, or a copy"));
        }
        let (n_rows, width, stride) = array.rows(py)?;
        Ok(Self { address: array.address, n_rows, width, stride, _owner: None, _object: None })
    }

    /// Fails if a row is narrower than a mask, or is not there.
    pub fn check(&self, py: Python<'_>, row: usize, mask_words: usize) -> PyResult<()> {
        let Self { n_rows, width, .. } = *self;
        if width < mask_words {
            let message = format!("a row has {width} words, a mask {mask_words}: give wider rows");
            return Err(bad_buffer(py, message));
        }
        if row >= n_rows {
            return Err(bad_buffer(py, format!("there is no row {row}: the array has {n_rows}")));
        }
        Ok(())
    }

    /// The words of a row.
    ///
    /// # Safety
    /// Nobody else writes to this row while the slice lives.
    // The memory is not this value's own, so writing to it does not change the value.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn row(&self, row: usize) -> &mut [u32] {
        debug_assert!(row < self.n_rows);
        if self.width == 0 {
            return &mut [];
        }
        let at = self.address as *mut u32;
        // SAFETY: `Array::of` and `MaskBuffer::from_pointer` checked that `at` is aligned for words. The
        // array has `n_rows` rows of `width` words, `stride` words apart, and lives as long as its owners,
        // which `self` holds (with a pointer the caller promised that). All bit patterns are words. That the
        // slice is the only one is the promise of the caller of this function.
        unsafe { std::slice::from_raw_parts_mut(at.add(row * self.stride), self.width) }
    }
}

impl MaskBuffer {
    /// The words, while nobody can release them.
    pub fn read(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, Option<Words>>> {
        match self.0.try_read() {
            Ok(words) => Ok(words),
            Err(TryLockError::Poisoned(words)) => Ok(words.into_inner()),
            // Whoever releases waits for others without the interpreter's lock, and then takes no time.
            Err(TryLockError::WouldBlock) => Err(released(py)),
        }
    }

    /// The same without the interpreter's lock.
    pub fn read_detached(&self) -> RwLockReadGuard<'_, Option<Words>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn released(py: Python<'_>) -> PyErr {
    bad_buffer(py, "the buffer was released: make a new one")
}

#[pymethods]
impl MaskBuffer {
    #[new]
    fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(RwLock::new(Some(Words::kept(array)?))))
    }

    /// Rows of words at an address, for engines that hold memory of their own.
    ///
    /// Nothing can be checked but the alignment: the memory has to have `n_rows` rows of `words` words,
    /// `stride` words apart (default: `words`), and has to stay until `release()` returns. `owner` is kept
    /// alive until then.
    ///
    /// Raises:
    ///     BufferError: the address is null or not aligned to 4 bytes, or the rows overlap.
    #[staticmethod]
    #[pyo3(signature = (address, n_rows, words, *, stride = None, owner = None))]
    fn from_pointer(
        py: Python<'_>,
        address: Address,
        n_rows: Length,
        words: Length,
        stride: Option<Length>,
        owner: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (address, n_rows, words) = (address.0, n_rows.0, words.0);
        let stride = stride.map_or(words, |stride| stride.0);
        if address == 0 || !address.is_multiple_of(align_of::<u32>()) {
            return Err(bad_buffer(py, format!("address {address:#x} is null or not aligned to 4 bytes")));
        }
        if stride < words {
            return Err(bad_buffer(py, format!("rows of {words} words are {stride} apart, so they overlap")));
        }
        let end = stride.checked_mul(n_rows).and_then(|words| words.checked_mul(size_of::<u32>()));
        if end.and_then(|bytes| address.checked_add(bytes)).is_none_or(|end| end > isize::MAX as usize) {
            return Err(bad_buffer(py, format!("{n_rows} rows of {stride} words do not fit into memory")));
        }
        let words = Words { address, n_rows, width: words, stride, _owner: None, _object: owner };
        Ok(Self(RwLock::new(Some(words))))
    }

    /// The number of rows and of words of each.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        let words = self.read(py)?;
        let words = words.as_ref().ok_or_else(|| released(py))?;
        Ok((words.n_rows, words.width))
    }

    /// Lets go of the array, after all writing to it has ended. From then on every use is an error.
    fn release(&self, py: Python<'_>) {
        let release = || self.0.write().unwrap_or_else(PoisonError::into_inner).take();
        // Dropped with the interpreter's lock, as it holds objects.
        drop(py.detach(release));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_why))]
    fn __exit__(&self, py: Python<'_>, _why: &Bound<'_, pyo3::types::PyTuple>) {
        self.release(py);
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.shape(py) {
            Ok((n_rows, width)) => format!("MaskBuffer({n_rows} rows of {width} words)"),
            Err(_) => "MaskBuffer(released)".to_owned(),
        }
    }
}

/// Where masks go: a buffer that was checked before, or an array that is checked now.
pub enum Target<'py> {
    Checked(Bound<'py, MaskBuffer>),
    Fresh(MaskBuffer),
}

impl<'py> Target<'py> {
    /// With a fresh array kept where it is, so that work without the interpreter's lock can write to it.
    pub fn of(out: &Bound<'py, PyAny>) -> PyResult<Self> {
        match out.cast::<MaskBuffer>() {
            Ok(buffer) => Ok(Self::Checked(buffer.clone())),
            Err(_) => MaskBuffer::new(out).map(Self::Fresh),
        }
    }

    pub fn get(&self) -> &MaskBuffer {
        match self {
            Self::Checked(buffer) => buffer.get(),
            Self::Fresh(buffer) => buffer,
        }
    }
}

/// Lets something write to the rows of a buffer or an array, with the interpreter's lock.
pub fn with_rows<T>(out: &Bound<'_, PyAny>, write: impl FnOnce(&Words) -> PyResult<T>) -> PyResult<T> {
    let py = out.py();
    match out.cast::<MaskBuffer>() {
        Ok(buffer) => write(buffer.get().read(py)?.as_ref().ok_or_else(|| released(py))?),
        Err(_) => {
            let array = Array::of(out)?;
            write(&Words::of(py, &array)?)
        }
    }
}
