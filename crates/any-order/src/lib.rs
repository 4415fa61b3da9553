//! Any order: canvases, texts that are filled in any order, and exact answers about them.
//!
//! | module | what |
//! |---|---|
//! | [`canvas`] | the canvas: a row of slots, each a token, a hole or a gap |
//! | [`solver`] | questions about canvases: completable, admissible, compatible, minimum |
//! | [`rows`] | admissible tokens, decided one by one as they are asked for |
//! | [`log_probs`] | log-probabilities of the tokens of holes |
//! | [`weigh`] | the best completion, and samples of completions |
//! | [`decision`] | the one shape of an answer |
//! | [`error`] | the error of all of these |
//! | [`lexings`] | the texts of a canvas as an automaton over terminals, parsed and spelled |
//! | `plan` | what a canvas asks, with EOS and PAD understood |
//! | `search`, `moves`, `right` | the search for a witness, over slots and readings; what a token does to a reading; what can stand to the left of fixed tokens |
//! | `beam`, `near`, `greedy` | where a search goes on: readings that differ, the last completion, a completion with gaps |
//! | `tables`, `verdicts` | what is learnt from canvas to canvas |
//! | `loose`, `relaxed` | a canvas decided by its terminals, with gaps for runs of holes, and back |
//! | `forward` | all texts of a canvas at once |
//! | `confirm` | what a memory adds: texts are read again |
//! | `admissible`, `open` | all admissible tokens of all holes |
//! | `lattice`, `admit` | readings that stand for many, and what they say of admissible tokens |
//! | `subsets`, `gumbel` | for the best completion and samples: texts as states of a deterministic automaton; a search |
//! | `counters` | what each stage is worth |
//!
//! The meaning is that of DESIGN.md, section 4. A yes is always shown by a witness that was replayed from
//! left to right.

pub mod canvas;
pub mod decision;
pub mod error;
pub mod lexings;
pub mod log_probs;
pub mod rows;
pub mod solver;
pub mod weigh;

mod admissible;
mod admit;
mod beam;
mod confirm;
mod counters;
mod forward;
mod greedy;
mod gumbel;
mod lattice;
mod loose;
mod moves;
mod near;
mod open;
mod plan;
mod relaxed;
mod right;
mod search;
mod subsets;
mod tables;
mod verdicts;

pub use admissible::Admissible;
pub use canvas::{Canvas, End, Slot};
pub use counters::{Counters, StageCount};
pub use decision::{Decision, Undecided};
pub use error::CanvasError;
pub use log_probs::{Floor, LogProbs};
#[doc(hidden)]
pub use plan::is_tail;
pub use rows::{AdmissibleRow, AdmissibleRows};
pub use solver::{By, Filling, Solver, Witness, batch_canvases};
pub use weigh::{Assignment, SampleBy, SampleOptions, Tail, Weigher};
