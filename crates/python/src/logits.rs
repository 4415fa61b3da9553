//! Masks applied to logits.

#![allow(unsafe_code)]

use anygram::{Logit, TokenMask};
use half::{bf16, f16};
use pyo3::prelude::*;

use crate::array::{Array, Item};
use crate::error::bad_buffer;

/// Sets the logits of all tokens that a mask does not allow to minus infinity, in place.
///
/// Args:
///     logits: `float32`, `float16` or `bfloat16`, of one output `[tokens]` or of several `[n, tokens]`: a
///         numpy array, or a tensor. A tensor on another device is masked by its own operations.
///     mask: `uint32` or `int32`, `[words]` or `[n, words]`; one mask is for all rows.
///
/// Logits beyond the mask, as of models whose output layer is padded, are set to minus infinity too.
///
/// >>> import anygram, numpy
/// >>> logits = numpy.zeros(4, dtype=numpy.float32)
/// >>> anygram.apply_mask(logits, numpy.uint32([0b0101]))
/// >>> logits
/// array([  0., -inf,   0., -inf], dtype=float32)
///
/// Raises:
///     BufferError: an array has another type or shape, or the logits are read-only.
#[pyfunction]
pub fn apply_mask(logits: &Bound<'_, PyAny>, mask: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = logits.py();
    if logits.hasattr("data_ptr")? && logits.getattr("device")?.str()? != "cpu" {
        let helper = py.import("anygram._tensors")?;
        return helper.call_method1("apply_mask", (logits, mask)).map(drop);
    }
    let (logits, mask) = (Array::of(logits)?, Array::of(mask)?);
    let (n_rows, width, stride) = logits.rows(py)?;
    let (n_masks, n_words, mask_stride) = mask.rows(py)?;
    if mask.item != Item::Word {
        return Err(bad_buffer(py, "a mask has 32-bit words: give an array of uint32 or int32"));
    }
    if !logits.is_writable {
        return Err(bad_buffer(py, "the logits are read-only: give an array that can be written to"));
    }
    if n_masks != n_rows && n_masks != 1 {
        return Err(bad_buffer(py, format!("{n_masks} masks for {n_rows} rows: give one for each, or one")));
    }
    if width == 0 || n_words == 0 {
        return Ok(());
    }
    for row in 0..n_rows {
        let at = if n_masks == 1 { 0 } else { row * mask_stride };
        // SAFETY: `Array::of` checked that the array has this item at an aligned address, `rows` its rows of
        // contiguous items; it keeps its memory, and while this thread has the interpreter's lock no other
        // thread of Python writes to it.
        let words = unsafe { std::slice::from_raw_parts((mask.address as *const u32).add(at), n_words) };
        let mask = TokenMask::from_words(words.to_vec(), n_words * 32);
        let place = row * stride;
        match logits.item {
            // SAFETY: as above. The words were copied, so that it does not matter if the arrays overlap.
            Item::F32 => mask.apply_to_logits(unsafe { row_of::<f32>(&logits, place, width) }),
            Item::F16 => mask.apply_to_logits(unsafe { row_of::<f16>(&logits, place, width) }),
            Item::Bf16 => mask.apply_to_logits(unsafe { row_of::<bf16>(&logits, place, width) }),
            Item::Word | Item::I64 => {
                return Err(bad_buffer(py, "logits are float32, float16 or bfloat16: convert the array"));
            }
        }
    }
    Ok(())
}

/// Some logits of an array, from a place on.
///
/// # Safety
/// The array is writable, its items are of this type, and so many stand there one after the other. Nobody
/// else reads or writes them while the slice lives.
// The memory is not the array's own value.
#[allow(clippy::mut_from_ref)]
unsafe fn row_of<L: Logit>(array: &Array, place: usize, width: usize) -> &mut [L] {
    // SAFETY: that is what the caller promises; `half`'s types are two bytes, as numpy's and torch's.
    unsafe { std::slice::from_raw_parts_mut((array.address as *mut L).add(place), width) }
}
