//! All tests of this crate's interface, as one program: it is linked once.

mod automata;
mod contexts;
mod origins;
mod sharing;
mod valiant;
