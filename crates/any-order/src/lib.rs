//! Any order: canvases, texts that are filled in any order, and exact answers about them.
//!
//! | module | what |
//! |---|---|
//! | [`canvas`] | the canvas: a row of slots, each a token, a hole or a gap |
//! | [`solver`] | questions about canvases: completable, admissible, compatible, minimum |
//! | [`rows`] | admissible tokens, decided one by one as they are asked for |
//! | [`log_probs`] | log-probabilities of the tokens of holes |
//! | [`weigh`] | the best completion, and samples of completions |
//! | [`methods`] | the published methods as answers about canvases |
//! | [`intersection`] | the method of IG-CD and EPIC: gaps for holes, and a search over the implicit intersection grammar |
//! | [`lookahead`] | LAVE's verification |
//! | [`decode`] | the decoding loop, and what each method does in it |
//! | [`error`] | the error of all of these |
//! | `subsets` | texts as states of a deterministic automaton |
//! | `greedy` | a quick look for a completion with gaps |
//! | `gumbel` | samples by a search |
//! | `plan` | what a canvas asks, with EOS and PAD understood |
//! | `search` | the search for a witness, over slots and readings |
//! | `lattice` | readings that stand for many |
//! | `admissible` | all admissible tokens of all holes |
//! | `admit` | what merged readings say of them, in one pass |
//! | `right` | what can stand to the left of fixed tokens, as far as lexing knows |
//! | `chart` | the same question decided by a parse of all texts at once |
//! | `confirm` | what a memory adds: texts are read again |
//! | `moves` | what one token, any, does to a reading |
//!
//! The meaning is that of DESIGN.md, section 4. A yes is always shown by a witness that was replayed from
//! left to right.

pub mod canvas;
pub mod decision;
pub mod decode;
pub mod error;
pub mod intersection;
pub mod log_probs;
pub mod lookahead;
pub mod methods;
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
mod lexings;
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
pub use decision::{Decision, Undecided, Verdict};
pub use decode::{
    DecodeError, DecodeOptions, Decoded, Decoder, Model, ModelError, OpenSlots, STRATEGIES, Strategy, Trace,
    View,
};
pub use error::CanvasError;
pub use intersection::{
    Complete, Intersected, Intersection, IntersectionBy, IntersectionOptions, IntersectionStats,
};
pub use log_probs::{Floor, LogProbs};
pub use lookahead::Lookahead;
pub use methods::{Method, Methods};
pub use rows::{AdmissibleRow, AdmissibleRows};
pub use solver::{By, Filling, Solver, Witness, batch_canvases};
pub use weigh::{Assignment, SampleBy, SampleOptions, Tail, Weigher};
