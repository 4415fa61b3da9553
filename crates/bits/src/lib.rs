//! Typed indices, bit sets, counted work, repeatable draws, fingerprints and kinds of errors: what every
//! other crate speaks of.
//!
//! Nothing here knows what a grammar or a token is. The crate is where wide kernels (AVX2, AVX-512) and their
//! portable twins are, and the only one of the CPU crates that contains `unsafe`, in [`kernels`].

mod bit_set;
mod compact_set;
mod error;
mod fingerprint;
mod index;
pub mod kernels;
mod pages;
mod parted;
mod random;
pub mod work;

pub use bit_set::BitSet;
pub use compact_set::CompactSet;
pub use error::ErrorKind;
pub use fingerprint::Fingerprint;
pub use pages::{Pages, SliceId, Slices};
pub use parted::{PartedMap, PartedTable};
pub use random::Random;
