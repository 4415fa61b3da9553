//! The masks of many outputs at once.

use std::collections::HashSet;
use std::sync::Arc;

use anygram::batch_masks_into;

use crate::error::{Failure, anygram_code, anygram_error, code, guard};
use crate::handles::{get, lock};
use crate::matcher::anygram_matcher;
use crate::memory::{slice, slice_mut};

/// Writes the masks of many outputs, on all cores.
///
/// Row `i` belongs to output `i`: it begins at `words + i * stride` and has `n_words` words, as for
/// `anygram_matcher_mask`. `codes[i]` says how that went; a row that is not made is empty. What `codes` say
/// is no error of the function itself. Each output may be there once. Outputs that were forked from another
/// share its tables, and are done by one thread. So `words` has `(n_matchers - 1) * stride + n_words` words.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_batch_masks(
    matchers: *const *mut anygram_matcher,
    n_matchers: usize,
    words: *mut u32,
    stride: usize,
    n_words: usize,
    codes: *mut anygram_code,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let Some(last) = n_matchers.checked_sub(1) else { return Ok(()) };
        if n_words > stride {
            return Err(Failure::argument(format!("rows of {n_words} words, {stride} apart, overlap")));
        }
        let size = last.checked_mul(stride).and_then(|size| size.checked_add(n_words));
        let size =
            size.ok_or_else(|| Failure::argument(format!("no {n_matchers} rows fit {stride} apart")))?;
        // SAFETY: the caller's promise.
        let (matchers, words, codes) = unsafe {
            let matchers = slice("matchers", matchers, n_matchers)?;
            (matchers, slice_mut("words", words, size)?, slice_mut("codes", codes, n_matchers)?)
        };
        let mut seen = HashSet::new();
        if let Some(at) = matchers.iter().position(|&matcher| !seen.insert(matcher)) {
            return Err(Failure::argument(format!("matchers[{at}] is there twice")));
        }
        let outputs = matchers.iter().map(|&matcher| get(matcher)).collect::<Result<Vec<_>, _>>()?;
        let mut rows: Vec<Option<&mut [u32]>> =
            words.chunks_mut(stride.max(1)).map(|row| Some(&mut row[..n_words])).collect();
        rows.resize_with(n_matchers, || Some(&mut []));
        // In the order of their addresses, so that two batches do not wait for each other in a circle.
        let mut order: Vec<usize> = (0..outputs.len()).collect();
        order.sort_unstable_by_key(|&at| Arc::as_ptr(&outputs[at]).addr());
        let mut guards: Vec<_> = order.iter().map(|&at| lock(&outputs[at])).collect();
        let jobs = guards.iter_mut().zip(&order);
        let jobs = jobs.map(|(matcher, &at)| (&mut **matcher, rows[at].take().unwrap_or_default()));
        let results = batch_masks_into(jobs.collect());
        drop(guards);
        for (&at, result) in order.iter().zip(results) {
            codes[at] =
                result.as_ref().map_or_else(|error| code(error.kind()), |()| anygram_code::ANYGRAM_OK);
            if result.is_err() {
                words[at * stride..][..n_words].fill(0);
            }
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}
