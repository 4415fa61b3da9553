//! Measures decoding methods on the small models: tasks × models × methods × numbers of steps.
//!
//! In reading order:
//!
//! - [`Method`]: a strategy of the decoding loop by name, with optional parameters.
//! - [`Plan`]: the list of generations to make, in their order.
//! - [`Generation`]: the result of one generation, as a line of JSON; [`Line`] is everything that a file of
//!   results can contain.
//! - [`run()`]: makes the generations that a file does not have yet, on all cores; the number of cores
//!   changes nothing.
//! - [`estimate`]: shares with k tries, spreads over runs, paired differences with their intervals.
//! - [`infill`]: infilling without a model; [`Simulated`]: marginals that know a text.
//! - [`report`]: tables, drawings, and the page `docs/results.md`.
//!
//! The loop of [`anygram::decode`] asks and constrains a model; this crate only counts. The Python package in
//! `eval/` writes the same lines for models that do not fit here.
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
mod simulated;
mod worker;

pub use error::EvalError;
pub use generation::{Failure, Generation, Key, Line, Lines, Micros};
pub use method::Method;
pub use plan::{Item, Plan, Steps};
pub use run::{Sink, run};
pub use simulated::Simulated;
