//! All tests of this crate's interface, as one program: it is linked once.

mod batch;
mod cases;
mod decode;
mod gaps;
mod growing;
mod oracle;
mod reuse;
mod rows;
mod weights;
