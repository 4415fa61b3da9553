//! All tests of this crate's interface, as one program: it is linked once.

mod common;
mod damage;
mod files;
mod saved;
mod shared;
mod token_mask;
