//! Canvases: rows of slots that are filled in any order.

use std::sync::Mutex;

use anygram::{Canvas, CanvasError, Decision, End, Filling, LogProbs, Slot, Solver, Tail, TokenId, Weigher};

use crate::compile::anygram_constraint;
use crate::error::{Failure, anygram_code, anygram_error, guard};
use crate::handles::{Handle, free, get, keep, lock};
use crate::memory::{put, put_all, put_if_wanted, read_sized, slice, slice_mut};

/// Answers questions about canvases of one constraint. Its tables make later questions faster. Threads
/// that share one take turns; one for each thread is faster.
pub struct anygram_solver {
    _private: [u8; 0],
}

impl Handle for anygram_solver {
    type Object = Mutex<Both>;
    const NAME: &'static str = "solver";
}

/// What decides, and what weighs.
pub struct Both {
    solver: Solver,
    weigher: Option<Weigher>,
}

/// A hole: exactly one token, which may be EOS or PAD.
pub const ANYGRAM_HOLE: i64 = -1;

/// A gap: any number of text tokens, also none.
pub const ANYGRAM_GAP: i64 = -2;

/// The text before the first EOS has to be a sentence.
pub const ANYGRAM_SENTENCE: u32 = 0;

/// Without EOS it has to be the beginning of one.
pub const ANYGRAM_PREFIX: u32 = 1;

/// An answer: no.
pub const ANYGRAM_NO: i8 = 0;

/// An answer: yes.
pub const ANYGRAM_YES: i8 = 1;

/// An answer: not decided, at a limit.
pub const ANYGRAM_UNKNOWN: i8 = -1;

/// A row of slots that is filled in any order, and how it has to end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct anygram_canvas {
    /// `sizeof(anygram_canvas)`.
    pub struct_size: usize,
    /// For each slot a token id, ANYGRAM_HOLE or ANYGRAM_GAP.
    pub slots: *const i64,
    /// How many.
    pub n_slots: usize,
    /// ANYGRAM_SENTENCE or ANYGRAM_PREFIX.
    pub end: u32,
    /// Of ANYGRAM_PREFIX: so many more text tokens at most must make a sentence of it; -1 for any number.
    pub remaining: i64,
}

fn slot((at, &slot): (usize, &i64)) -> Result<Slot, Failure> {
    match slot {
        ANYGRAM_HOLE => Ok(Slot::Hole),
        ANYGRAM_GAP => Ok(Slot::Gap),
        id => u32::try_from(id).map(|id| Slot::Fixed(TokenId(id))).map_err(|_| {
            Failure::argument(format!("slots[{at}] is {id}: give a token id, -1 (a hole) or -2 (a gap)"))
        }),
    }
}

/// # Safety
/// As the documentation of the functions says that take it.
unsafe fn canvas(given: *const anygram_canvas) -> Result<Canvas, Failure> {
    // SAFETY: the caller's promise.
    let (given, slots) = unsafe {
        let given = read_sized("canvas", given)?;
        (given, slice("slots", given.slots, given.n_slots)?)
    };
    if given.struct_size < size_of::<anygram_canvas>() {
        return Err(Failure::argument("canvas: set struct_size to sizeof(anygram_canvas)"));
    }
    let end = match (given.end, given.remaining) {
        (ANYGRAM_SENTENCE, -1) => End::Sentence,
        (ANYGRAM_PREFIX, -1) => End::Prefix { remaining: None },
        (ANYGRAM_PREFIX, remaining) => {
            let remaining = u32::try_from(remaining).map_err(|_| {
                Failure::argument(format!("remaining is {remaining}: give -1, or a number of tokens"))
            })?;
            End::Prefix { remaining: Some(remaining) }
        }
        (ANYGRAM_SENTENCE, _) => {
            return Err(Failure::argument("remaining is for ANYGRAM_PREFIX: set it to -1"));
        }
        (end, _) => {
            return Err(Failure::argument(format!("end is {end}: ANYGRAM_SENTENCE or ANYGRAM_PREFIX")));
        }
    };
    Ok(Canvas::new(slots.iter().enumerate().map(slot).collect::<Result<_, _>>()?, end))
}

fn answer<T>(decision: &Decision<T>) -> i8 {
    match decision.decided() {
        Some(true) => ANYGRAM_YES,
        Some(false) => ANYGRAM_NO,
        None => ANYGRAM_UNKNOWN,
    }
}

/// What was asked for, or why there is none.
fn known<T>(decision: Decision<T>) -> Result<T, Failure> {
    match decision {
        Decision::Yes(value) => Ok(value),
        Decision::Unknown(why) => Err(Failure::new(anygram_code::ANYGRAM_UNDECIDED, why.to_string())),
        Decision::No => {
            let message = "no tokens that are not excluded make the canvas end as it says";
            Err(Failure::new(anygram_code::ANYGRAM_UNSATISFIABLE, message))
        }
    }
}

fn ask<T>(
    solver: *const anygram_solver,
    question: impl FnOnce(&mut Both) -> Result<T, CanvasError>,
) -> Result<T, Failure> {
    let object = get(solver)?;
    Ok(question(&mut lock(&object))?)
}

/// A solver for canvases of a constraint.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_solver_new(
    constraint: *const anygram_constraint,
    solver: *mut *mut anygram_solver,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let both = Both { solver: Solver::new(&*get(constraint)?)?, weigher: None };
        // SAFETY: the caller's promise.
        unsafe { put("solver", solver, keep(Mutex::new(both))?) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Frees a solver.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_solver_free(
    solver: *mut anygram_solver,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || free(solver)) }
}

/// Whether there is a choice of tokens for all holes and gaps that makes the canvas end as it says.
///
/// A yes comes with one: its tokens in the order of the slots (a gap has any number of them), as many as fit
/// `capacity`, all or none; `n_tokens` is how many there are. `tokens` and `n_tokens` may be NULL.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_solver_completable(
    solver: *mut anygram_solver,
    canvas: *const anygram_canvas,
    answer: *mut i8,
    tokens: *mut u32,
    capacity: usize,
    n_tokens: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let canvas = unsafe { self::canvas(canvas) }?;
        let decision = ask(solver, |both| both.solver.completable(&canvas))?;
        let given = self::answer(&decision);
        let fillings = decision.yes().map(|witness| witness.slots).unwrap_or_default();
        let text: Vec<u32> = fillings.iter().flat_map(filled).collect();
        // SAFETY: the caller's promise.
        unsafe {
            put("answer", answer, given)?;
            put_if_wanted("n_tokens", n_tokens, text.len())?;
            if !tokens.is_null() && text.len() <= capacity {
                slice_mut("tokens", tokens, text.len())?.copy_from_slice(&text);
            }
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

fn filled(filling: &Filling) -> Vec<u32> {
    match filling {
        Filling::Token(token) => vec![token.0],
        Filling::Tokens(tokens) => tokens.iter().map(|token| token.0).collect(),
    }
}

/// For every hole, in their order, the mask of the tokens with which the canvas stays completable.
///
/// There are as many rows as holes. Row `i` begins at `words + i * stride` and has `n_words` words. At a
/// limit tokens of a row may be left undecided: `undecided[i]` is true then, and the row has those that are
/// known. `undecided` may be NULL; then a row that is not wholly decided is ANYGRAM_UNDECIDED.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_solver_admissible(
    solver: *mut anygram_solver,
    canvas: *const anygram_canvas,
    words: *mut u32,
    n_rows: usize,
    stride: usize,
    n_words: usize,
    undecided: *mut bool,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let canvas = unsafe { self::canvas(canvas) }?;
        let holes = canvas.slots().iter().filter(|slot| matches!(slot, Slot::Hole)).count();
        if holes != n_rows || n_words > stride {
            let message = format!("{n_rows} rows of {n_words} words, {stride} apart, for {holes} holes");
            return Err(Failure::argument(message));
        }
        let Some(last) = n_rows.checked_sub(1) else { return Ok(()) };
        let size = last.checked_mul(stride).and_then(|size| size.checked_add(n_words));
        let size = size.ok_or_else(|| Failure::argument(format!("no {n_rows} rows fit {stride} apart")))?;
        let rows = ask(solver, |both| both.solver.admissible(&canvas))?;
        let is_decided: Vec<bool> = rows.undecided.iter().map(Option::is_none).collect();
        // SAFETY: the caller's promise.
        let words = unsafe { slice_mut("words", words, size) }?;
        for (at, mask) in rows.masks.iter().enumerate() {
            let (row, own) = (&mut words[at * stride..][..n_words], mask.words());
            row.fill(0);
            let common = own.len().min(n_words);
            row[..common].copy_from_slice(&own[..common]);
        }
        if !undecided.is_null() {
            // SAFETY: the caller's promise.
            let undecided = unsafe { slice_mut("undecided", undecided, n_rows) }?;
            undecided.iter_mut().zip(&is_decided).for_each(|(place, is_decided)| *place = !is_decided);
            return Ok(());
        }
        match is_decided.iter().position(|is_decided| !is_decided) {
            None => Ok(()),
            Some(at) => {
                let message = format!("row {at} is not wholly decided");
                Err(Failure::new(anygram_code::ANYGRAM_UNDECIDED, message))
            }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Takes proposals for holes in the given order, and keeps each if the canvas with those kept so far and this
/// one is completable: `answers[i]` is ANYGRAM_YES then, else ANYGRAM_NO or ANYGRAM_UNKNOWN.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_solver_compatible(
    solver: *mut anygram_solver,
    canvas: *const anygram_canvas,
    slots: *const usize,
    tokens: *const u32,
    n_proposals: usize,
    answers: *mut i8,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let (canvas, slots, tokens) = unsafe {
            let slots = slice("slots", slots, n_proposals)?;
            (self::canvas(canvas)?, slots, slice("tokens", tokens, n_proposals)?)
        };
        let proposals = slots.iter().zip(tokens).map(|(&slot, &token)| (slot, TokenId(token)));
        let proposals: Vec<_> = proposals.collect();
        let decisions = ask(solver, |both| both.solver.compatible(&canvas, &proposals))?;
        let given: Vec<i8> = decisions.iter().map(answer).collect();
        // SAFETY: the caller's promise.
        unsafe { slice_mut("answers", answers, n_proposals) }?.copy_from_slice(&given);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// The fewest text tokens of a completion. ANYGRAM_UNSATISFIABLE if there is none, ANYGRAM_UNDECIDED at a
/// limit.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_solver_minimum(
    solver: *mut anygram_solver,
    canvas: *const anygram_canvas,
    n_tokens: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let canvas = unsafe { self::canvas(canvas) }?;
        let fewest = known(ask(solver, |both| both.solver.minimum(&canvas))?)?;
        // SAFETY: the caller's promise.
        unsafe { put("n_tokens", n_tokens, fewest) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// The likeliest completion: `log_probs` has a row of `n_columns` for every hole, natural logarithms or
/// logits, minus infinity excludes a token. Holes of the tail, behind the last fixed slot, count.
///
/// The tokens are written in the order of the slots; ANYGRAM_UNSATISFIABLE if there is no completion,
/// ANYGRAM_UNDECIDED at a limit. `log_prob` may be NULL.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_solver_best(
    solver: *mut anygram_solver,
    canvas: *const anygram_canvas,
    log_probs: *const f32,
    n_rows: usize,
    n_columns: usize,
    tokens: *mut u32,
    capacity: usize,
    n_tokens: *mut usize,
    log_prob: *mut f64,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let size = n_rows.checked_mul(n_columns).ok_or_else(|| Failure::argument("no array is so large"))?;
        // SAFETY: the caller's promise.
        let (canvas, values) = unsafe { (self::canvas(canvas)?, slice("log_probs", log_probs, size)?) };
        let decision = ask(solver, |both| {
            let log_probs = LogProbs::dense(values, n_columns)?;
            let weigher = match both.weigher.take() {
                Some(weigher) => weigher,
                None => Weigher::new(both.solver.constraint())?,
            };
            both.weigher.insert(weigher).best(&canvas, &log_probs, Tail::Counted)
        })?;
        let best = known(decision)?;
        let ids: Vec<u32> = best.tokens.iter().map(|token| token.0).collect();
        // SAFETY: the caller's promise.
        unsafe {
            put_if_wanted("log_prob", log_prob, best.log_prob)?;
            put_all("tokens", &ids, (tokens, capacity, n_tokens))
        }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}
