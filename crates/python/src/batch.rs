//! The masks of many outputs at once.

#![allow(unsafe_code)]

use anygram::{MatchError, batch_masks_timed};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::{Raise, invalid, of_match};
use crate::gate::{pool, work};
use crate::mask_buffer::{Target, released};
use crate::mask_times::Made;
use crate::matcher::{Matcher, lock};
use crate::number::{Row, Threads};

/// Outputs up to which masks that are known are looked up, with the interpreter's lock, before others are
/// computed: looking up takes less than waking a thread, and for so many some hundred microseconds.
const FEW_OUTPUTS: usize = 512;

/// Writes the masks of many outputs, on several threads.
///
/// Args:
///     matchers: the outputs, each once.
///     out: a `MaskBuffer`, or an array as it takes them, with a row for each.
///     rows: for each output its row, each once; by default 0, 1, 2, …
///     threads: how many threads; by default one for each core. Outputs on the same tables are done by one.
///
/// Returns:
///     For each output `None`, or the exception why there is no mask; its row is empty then, so that nothing
///     can be sampled by mistake.
///
/// Raises:
///     BufferError: a row is not there or too narrow, or the array cannot be written to.
///     AnygramError: an output or a row is there twice.
#[pyfunction]
#[pyo3(signature = (matchers, out, rows = None, *, threads = None))]
pub fn fill_masks<'py>(
    py: Python<'py>,
    matchers: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    rows: Option<&Bound<'py, PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyList>> {
    let matchers = matchers.try_iter()?.map(|matcher| Ok(matcher?.cast_into::<Matcher>()?));
    let matchers = matchers.collect::<PyResult<Vec<Bound<'py, Matcher>>>>()?;
    let rows = row_numbers(py, rows, matchers.len())?;
    let target = Target::of(out)?;
    {
        let words = target.get().read(py)?;
        let words = words.as_ref().ok_or_else(|| released(py))?;
        for (matcher, &row) in matchers.iter().zip(&rows) {
            words.check(py, row, matcher.get().mask_words())?;
        }
    }
    check_twice(py, rows.iter().copied(), "row")?;
    check_twice(py, matchers.iter().map(|matcher| matcher.as_ptr() as usize), "output")?;
    let outputs: Vec<(&Matcher, usize)> = matchers.iter().map(Bound::get).zip(rows).collect();
    let results = fill(py, &outputs, &target, threads)?;
    let errors =
        results.into_iter().map(|result| result.err().map(|error| of_match(py, error).into_value(py)));
    PyList::new(py, errors.collect::<Vec<_>>())
}

/// Fills rows that were checked.
fn fill(
    py: Python<'_>,
    outputs: &[(&Matcher, usize)],
    target: &Target<'_>,
    threads: Option<Threads>,
) -> PyResult<Vec<Result<(), MatchError>>> {
    let mut results = vec![Ok(()); outputs.len()];
    let mut left: Vec<usize> = (0..outputs.len()).collect();
    if outputs.len() <= FEW_OUTPUTS {
        let words = target.get().read(py)?;
        let words = words.as_ref().ok_or_else(|| released(py))?;
        let mut error = None;
        left.retain(|&at| {
            // SAFETY: this thread has the interpreter's lock, see `Matcher::fill_mask`.
            let row = unsafe { words.row(outputs[at].1) };
            match outputs[at].0.fill_known(None, row) {
                Ok(is_known) => !is_known,
                Err(failed) => {
                    error.get_or_insert(failed);
                    true
                }
            }
        });
        error.map_or(Ok(()), Err).raise(py)?;
    }
    if left.is_empty() {
        return Ok(results);
    }
    let pool = pool(py, threads)?;
    let buffer = target.get();
    let computed = work(py, || {
        let words = buffer.read_detached();
        let words = words.as_ref()?;
        // In the order of their addresses, so that two batches with the same outputs do not wait for each
        // other in a circle.
        let mut locked: Vec<_> = left.clone();
        locked.sort_unstable_by_key(|&at| std::ptr::from_ref(outputs[at].0));
        let mut guards: Vec<_> = locked.iter().map(|&at| lock(outputs[at].0.inner())).collect();
        let jobs = guards.iter_mut().zip(&locked).map(|(matcher, &at)| {
            // SAFETY: all rows of this call differ (`check_twice`), and the documentation of `MaskBuffer`
            // asks callers not to write to one of them meanwhile.
            (&mut **matcher, unsafe { words.row(outputs[at].1) })
        });
        let jobs = jobs.collect();
        let made = pool.install(|| batch_masks_timed(jobs));
        Some(locked.into_iter().zip(made).collect::<Vec<_>>())
    });
    let words = target.get().read(py)?;
    let words = words.as_ref().ok_or_else(|| released(py))?;
    for (at, (result, took)) in computed.ok_or_else(|| released(py))? {
        outputs[at].0.count(if result.is_ok() { Made::Computed } else { Made::Failed }, took);
        if result.is_err() {
            // SAFETY: as above.
            unsafe { words.row(outputs[at].1) }.fill(0);
        }
        results[at] = result;
    }
    Ok(results)
}

/// The rows of so many outputs.
fn row_numbers(py: Python<'_>, rows: Option<&Bound<'_, PyAny>>, n: usize) -> PyResult<Vec<usize>> {
    let Some(rows) = rows else { return Ok((0..n).collect()) };
    let rows = rows.try_iter()?.map(|row| Ok(row?.extract::<Row>()?.0)).collect::<PyResult<Vec<usize>>>()?;
    if rows.len() != n {
        return Err(invalid(py, format!("{} rows for {n} outputs: give one for each", rows.len())));
    }
    Ok(rows)
}

/// Fails if a number is there twice.
fn check_twice(py: Python<'_>, numbers: impl Iterator<Item = usize>, what: &str) -> PyResult<()> {
    let mut sorted: Vec<(usize, usize)> = numbers.enumerate().map(|(at, number)| (number, at)).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let (first, second) = (pair[0].1, pair[1].1);
            Err(invalid(py, format!("the {what} at {second} is that at {first}: give each once")))
        }
        None => Ok(()),
    }
}
