//! Numbers as arguments. What lies out of range is an exception of ours that names the argument and the
//! range, never an `OverflowError`. Integers are what `__index__` makes one (so also `True` and numpy's); a
//! float is a `TypeError`.

use std::fmt::Display;
use std::ops::RangeInclusive;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error::invalid;

macro_rules! numbers {
    ($($name:ident($type:ty): $what:literal, $range:expr;)*) => {$(
        #[doc = concat!("An argument: ", $what, ".")]
        #[derive(Clone, Copy)]
        pub struct $name(pub $type);

        impl<'a, 'py> FromPyObject<'a, 'py> for $name {
            type Error = PyErr;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                let range = $range;
                match object.extract::<$type>() {
                    Ok(value) if range.contains(&value) => Ok(Self(value)),
                    Err(error) if !is_overflow(object, &error) => Err(error),
                    _ => Err(out_of_range(object, $what, range)),
                }
            }
        }
    )*};
}

/// More sets of tables than that are a mistake.
const MAX_TABLES: usize = 1_024;
/// More threads than that help nobody.
const MAX_THREADS: usize = 256;
/// More random fillings of a canvas than that are a mistake.
const MAX_FILLINGS: usize = 1 << 16;
/// No vocabulary of a model has more tokens: as of `anygram_vocab`.
const MAX_TOKENS: usize = 1 << 24;
/// No canvas and no batch is so long.
const MAX_PLACES: usize = u32::MAX as usize;

numbers! {
    TokenNumber(u32): "the token id", 0..=u32::MAX;
    Row(usize): "the row", 0..=MAX_PLACES;
    SlotNumber(usize): "the slot", 0..=MAX_PLACES;
    Hole(usize): "the hole", 0..=MAX_PLACES;
    Parent(isize): "the parent of a draft", -1..=isize::MAX;
    RolledBack(usize): "the number of tokens to roll back", 0..=MAX_PLACES;
    Remaining(u32): "remaining", 0..=u32::MAX;
    Tables(usize): "the number of tables", 1..=MAX_TABLES;
    Masks(usize): "the number of masks", 0..=MAX_PLACES;
    Threads(usize): "the number of threads", 1..=MAX_THREADS;
    Address(usize): "the address", 0..=usize::MAX;
    Length(usize): "the number of rows, words or bytes", 0..=usize::MAX;
    IdOffset(u32): "id_offset", 0..=u32::MAX;
    Size(usize): "the size of the vocabulary", 0..=MAX_TOKENS;
    Drawn(usize): "the number of samples", 0..=MAX_PLACES;
    Fillings(usize): "the number of fillings", 0..=MAX_FILLINGS;
    Seed(u64): "the seed", 0..=u64::MAX;
    Steps(u64): "the number of steps", 0..=u64::MAX;
    States(usize): "dfa_states", 0..=MAX_PLACES;
    Resamples(usize): "resamples", 0..=MAX_PLACES;
    Questions(usize): "the number of steps", 0..=MAX_PLACES;
    Block(usize): "the number of slots of a block", 0..=MAX_PLACES;
    TopK(usize): "top_k", 0..=MAX_PLACES;
    Refusals(usize): "the number of refusals", 0..=MAX_PLACES;
    Inserted(usize): "the number of slots that are inserted", 0..=MAX_PLACES;
    Most(usize): "`most` of a revision", 0..=MAX_PLACES;
}

/// Tokens that are left, or a bound on them: beyond any output it is the largest.
#[derive(Clone, Copy)]
pub struct Budget(pub u32);

impl Budget {
    /// What is beyond any output.
    pub const LARGEST: Self = Self(1 << 30);
}

impl<'a, 'py> FromPyObject<'a, 'py> for Budget {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u32>() {
            Ok(tokens) => Ok(Self(tokens.min(Self::LARGEST.0))),
            Err(error) if !is_overflow(object, &error) => Err(error),
            Err(_) if object.gt(0)? => Ok(Self::LARGEST),
            Err(_) => {
                let given = digits(object);
                Err(invalid(object.py(), format!("a budget of {given} tokens: give a number from 0 on")))
            }
        }
    }
}

/// A number that may have a fraction: integers too, but those that no `float` can be.
#[derive(Clone, Copy)]
pub struct Real(pub f64);

impl<'a, 'py> FromPyObject<'a, 'py> for Real {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error| match is_overflow(object, &error) {
            true => invalid(object.py(), format!("{} is too large for a float", digits(object))),
            false => error,
        })
    }
}

/// A place of a sequence, which may count from the end. Beyond all sequences it is the last number.
pub struct Index(pub isize);

impl<'a, 'py> FromPyObject<'a, 'py> for Index {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Err(error) if is_overflow(object, &error) => {
                Ok(Self(if object.gt(0)? { isize::MAX } else { isize::MIN }))
            }
            place => place.map(Self),
        }
    }
}

fn is_overflow(object: Borrowed<'_, '_, PyAny>, error: &PyErr) -> bool {
    error.is_instance_of::<PyOverflowError>(object.py())
}

/// An exception that names the argument, what was given, and the range.
fn out_of_range(object: Borrowed<'_, '_, PyAny>, what: &str, range: RangeInclusive<impl Display>) -> PyErr {
    let (given, least, most) = (digits(object), range.start(), range.end());
    invalid(object.py(), format!("{what} is {given}; it can be {least} to {most}"))
}

/// A number as text. Python does not write those of thousands of digits.
fn digits(number: Borrowed<'_, '_, PyAny>) -> String {
    number.str().map_or_else(|_| "a number of thousands of digits".to_owned(), |text| text.to_string())
}
