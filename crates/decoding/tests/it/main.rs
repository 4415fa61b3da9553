//! All tests of this crate's interface, as one program: it is linked once.

mod decode;
#[path = "../../../any-order/tests/it/drawn.rs"]
mod drawn;
mod gaps;
mod intersection;
mod methods;
