//! All tests of this crate's interface, as one program: it is linked once.

mod batch;
mod cases;
mod drawn;
mod growing;
mod oracle;
mod reuse;
mod rows;
mod weights;
