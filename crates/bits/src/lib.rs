//! Typed indices and bit sets: the vocabulary of small integers that every other crate speaks.
//!
//! Nothing here knows what a grammar or a token is. The crate is where wide kernels (AVX2, AVX-512, NEON) and their
//! portable twins belong, and the only one of the CPU crates that may ever contain `unsafe`; today it has none.

mod bit_set;
mod index;

pub use bit_set::BitSet;
