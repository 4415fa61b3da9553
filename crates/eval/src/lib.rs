//! What decoding methods are worth: tasks × models × methods × numbers of steps, generation by generation.
//!
//! In reading order:
//!
//! - [`Method`]: a strategy of the decoding loop by name, perhaps with other parameters than its own.
//! - [`Plan`]: which generations there are, in their order.
//! - [`Generation`]: what came of one, as a line of JSON; [`Line`] is whatever a file of results can hold.
//! - [`run()`]: makes what a file does not have yet, on all cores, the same whatever their number.
//! - [`estimate`]: shares with k tries, spreads over runs, paired differences with their intervals.
//! - [`infill`]: regions of texts filled without a model.
//! - [`report`]: tables, drawings, and the page `docs/results.md`.
//!
//! A model is asked and constrained by the loop of [`anygram::decode`]; this crate only counts. The Python
//! package in `eval/` writes the same lines for models that do not fit here.
//!
//! ```
//! use anygram_eval::{Method, Plan, Steps, run};
//! use anygram_models::{Kind, tasks::Task};
//!
//! let plan = Plan {
//!     tasks: vec![Task::Arithmetic],
//!     models: vec![Kind::Masked],
//!     methods: vec![Method::parse("none")?, Method::parse("exact")?],
//!     steps: vec![Steps::At(4)],
//!     n_prompts: 2,
//!     n_runs: 1,
//!     ..Plan::default()
//! };
//! let mut generations = Vec::new();
//! run(&plan, &Default::default(), &mut |generation| {
//!     generations.push(generation);
//!     Ok(())
//! })?;
//! assert_eq!(generations.len(), 4);
//! assert!(generations.iter().filter(|one| one.method == "exact").all(|one| one.syntactic));
//! # Ok::<(), anygram_eval::EvalError>(())
//! ```

mod error;
pub mod estimate;
mod generation;
pub mod infill;
mod method;
mod plan;
pub mod report;
mod run;
mod worker;

pub use error::EvalError;
pub use generation::{Failure, Generation, Key, Line, Lines, Micros};
pub use method::Method;
pub use plan::{Item, Plan, Steps};
pub use run::{Sink, run};
