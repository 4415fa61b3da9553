//! Any order: canvases, texts that are filled in any order, and exact answers about them.
//!
//! | module | what |
//! |---|---|
//! | [`canvas`] | the canvas: a row of slots, each a token, a hole or a gap |
//! | [`solver`] | questions about canvases: completable, admissible, compatible, minimum |
//! | `plan` | what a canvas asks, with EOS and PAD understood |
//! | `search` | the search for a witness, over slots and readings |
//! | `admit` | all admissible tokens of all holes in one pass |
//! | `right` | what can stand to the left of fixed tokens, as far as lexing knows |
//! | `chart` | the same question decided by a parse of all texts at once |
//! | `moves` | what one token, any, does to a reading |
//!
//! The meaning is that of DESIGN.md, section 4. A yes is always shown by a witness that was replayed from left to right.

pub mod canvas;
pub mod solver;

mod admit;
mod chart;
mod moves;
mod plan;
mod right;
mod search;

pub use canvas::{Canvas, CanvasError, End, Slot};
pub use solver::{Admissible, Answer, By, CanvasQuestionError, Filling, Solver, Undecided, Witness, batch_canvases};
