//! All tests of this crate's interface, as one program: it is linked once.

mod automata;
mod sharing;
mod valiant;
