//! Outputs.

use std::sync::Mutex;

use anygram::{MatchError, Matcher, TokenId};

use crate::compile::anygram_constraint;
use crate::error::{Failure, anygram_code, anygram_error, guard};
use crate::handles::{Handle, free, get, keep, lock};
use crate::memory::{put, put_all, put_if_wanted, slice, slice_mut};
use crate::vocabulary::{ids, token_ids};

/// The state of one output: its tokens, and which may follow. Threads that share one take turns.
pub struct anygram_matcher {
    _private: [u8; 0],
}

impl Handle for anygram_matcher {
    type Object = Mutex<Matcher>;
    const NAME: &'static str = "matcher";
}

/// Asks something of an output.
pub fn ask<T>(
    matcher: *const anygram_matcher,
    question: impl FnOnce(&mut Matcher) -> Result<T, MatchError>,
) -> Result<T, Failure> {
    let object = get(matcher)?;
    Ok(question(&mut lock(&object))?)
}

/// Writes a mask; an empty one where there is none.
fn fill(
    matcher: *const anygram_matcher,
    words: &mut [u32],
    write: impl FnOnce(&mut Matcher, &mut [u32]) -> Result<(), MatchError>,
) -> Result<(), Failure> {
    let made = ask(matcher, |inner| write(inner, words));
    if made.is_err() {
        words.fill(0);
    }
    made
}

/// A new output, of no tokens.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_new(
    constraint: *const anygram_constraint,
    matcher: *mut *mut anygram_matcher,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let made = get(constraint)?.matcher()?;
        // SAFETY: the caller's promise.
        unsafe { put("matcher", matcher, keep(Mutex::new(made))?) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Another output with the same tokens, on the same tables.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_fork(
    matcher: *const anygram_matcher,
    copy: *mut *mut anygram_matcher,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let made = ask(matcher, |inner| Ok(inner.fork()))?;
        // SAFETY: the caller's promise.
        unsafe { put("copy", copy, keep(Mutex::new(made))?) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Frees an output.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_free(
    matcher: *mut anygram_matcher,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || free(matcher)) }
}

/// Appends a token. Where it is refused (ANYGRAM_REFUSED) or a limit is reached, the output is as it was.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_advance(
    matcher: *mut anygram_matcher,
    token: u32,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || ask(matcher, |inner| inner.advance(TokenId(token)))) }
}

/// Appends some tokens: all of them, or, if one is refused, none.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_advance_all(
    matcher: *mut anygram_matcher,
    tokens: *const u32,
    n_tokens: usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let tokens = unsafe { slice("tokens", tokens, n_tokens) }?;
        ask(matcher, |inner| inner.advance_all(&token_ids(tokens)))
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// How many of these tokens could be appended, from the first on. Nothing changes.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_validate(
    matcher: *mut anygram_matcher,
    tokens: *const u32,
    n_tokens: usize,
    n_valid: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let tokens = unsafe { slice("tokens", tokens, n_tokens) }?;
        let count = ask(matcher, |inner| inner.validate(&token_ids(tokens)))?;
        // SAFETY: the caller's promise.
        unsafe { put("n_valid", n_valid, count) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Takes the last tokens back; EOS counts as one.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_rollback(
    matcher: *mut anygram_matcher,
    n_tokens: usize,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || ask(matcher, |inner| inner.rollback(n_tokens))) }
}

/// Takes all tokens back.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_reset(
    matcher: *mut anygram_matcher,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        ask(matcher, |inner| {
            inner.reset();
            Ok(())
        })
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Writes the mask of the tokens that may come next, EOS among them where the text is a sentence.
///
/// `words` may be wider than a mask, for a model whose output layer is padded: what is left over is cleared.
/// If there is no mask (a limit was reached), the row is empty.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_mask(
    matcher: *mut anygram_matcher,
    words: *mut u32,
    n_words: usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let words = unsafe { slice_mut("words", words, n_words) }?;
        fill(matcher, words, |inner, words| inner.mask_into(words))
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// As `anygram_matcher_mask`, of the tokens with which a sentence can still be made of `budget` tokens more,
/// this one counted and EOS not.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_mask_with_budget(
    matcher: *mut anygram_matcher,
    budget: u32,
    words: *mut u32,
    n_words: usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let words = unsafe { slice_mut("words", words, n_words) }?;
        fill(matcher, words, |inner, words| inner.mask_with_budget_into(budget, words))
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// The tokens that must come next, whatever follows: a server appends them without asking the model.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_forced(
    matcher: *mut anygram_matcher,
    tokens: *mut u32,
    capacity: usize,
    n_tokens: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let forced = ask(matcher, Matcher::forced)?;
        // SAFETY: the caller's promise.
        unsafe { put_all("tokens", &ids(&forced.tokens), (tokens, capacity, n_tokens)) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Where an output is: whether its text is a sentence, whether EOS was appended, and how many tokens it has.
/// Each may be NULL.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_state(
    matcher: *const anygram_matcher,
    is_sentence: *mut bool,
    has_ended: *mut bool,
    n_tokens: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let (sentence, ended, count) =
            ask(matcher, |inner| Ok((inner.is_sentence(), inner.has_ended(), inner.tokens().len())))?;
        // SAFETY: the caller's promise.
        unsafe {
            put_if_wanted("is_sentence", is_sentence, sentence)?;
            put_if_wanted("has_ended", has_ended, ended)?;
            put_if_wanted("n_tokens", n_tokens, count)
        }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Sets the tokens that end this output, in place of those of the vocabulary.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_matcher_set_eos(
    matcher: *mut anygram_matcher,
    eos: *const u32,
    n_eos: usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let eos = unsafe { slice("eos", eos, n_eos) }?;
        ask(matcher, |inner| inner.set_eos(&token_ids(eos)))
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}
