//! Measurements of Anygram's parts: tables for people, JSON for comparisons, drawings for the documentation.
//!
//! Times are thread CPU time, which other work on the machine inflates little; each is the median of several
//! runs. Every answer is checked: an engine that disagrees with the others stops the run.

mod ahead;
mod best;
mod calls;
mod canvas;
mod draw;
mod gpu;
mod grammars;
mod hostile;
mod input;
mod intersection;
mod lookahead;
mod masks;
mod measure;
mod schemas;
mod serve;
mod simulated;
mod start;
mod steps;
mod table;
mod valiant;
// One file, for there is no crate below both for what writes pages.
#[path = "../../crates/eval/src/report/wrap.rs"]
mod wrap;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The incremental Valiant recognizer: normal forms, steps, masks, initialization.
    Valiant(valiant::Args),
    /// Masks and advance on real and growing texts, beside other engines if the feature `peers` is on.
    Masks(masks::Args),
    /// The first steps of fresh processes, beside other engines if the feature `peers` is on.
    Start(start::Args),
    /// Thousands of outputs on one grammar for millions of steps: pauses, and memory of each.
    Serve(serve::Args),
    /// The first texts of grammars, with and without a thread that works ahead of the output.
    Ahead(ahead::Args),
    /// Hundreds of grammars and schemas on one vocabulary: the memory of all, with and without a bound.
    Grammars(grammars::Args),
    /// JSONSchemaBench as MaskBench runs it: verdicts, compiling, masks and memory, beside other engines.
    JsonSchema(schemas::Args),
    /// Canvases of JSON schemas, half of whose slots are holes: whether they are completable.
    JsonCanvas(schemas::canvas::Args),
    /// Schemas made to break readers: time and memory until each is answered or refused.
    Hostile(hostile::Args),
    /// Calls that find their mask, alone and in batches, for comparison with bridges to other languages.
    Calls(calls::Args),
    /// Canvases: whether they are completable, what their holes can hold.
    Canvas(canvas::Args),
    /// The method `intersection`: its ways to decide beside the figures of its peers, on canvases with gaps
    /// and holes.
    Intersection(intersection::Args),
    /// Steps of a decoding loop over a large vocabulary, beside the model and after its answer.
    Steps(steps::Args),
    /// The best completion under simulated marginals.
    Best(best::Args),
    /// The CUDA kernels on a device: beside the aims, the paper and the CPU.
    Gpu(gpu::Args),
    /// All that takes a device: the measurements of `gpu`, the tests of the kernels, compute-sanitizer;
    /// within some minutes.
    GpuCheck(gpu::check::Args),
    /// Results of `gpu` and `gpu-check` as tables, drawings, and what `auto` goes by.
    GpuReport(gpu::report::Args),
    /// LAVE's verification: how much it accepts of what can be completed.
    Lookahead(lookahead::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().what {
        What::Valiant(args) => valiant::run(&args),
        What::Masks(args) => masks::run(&args),
        What::Start(args) => start::run(&args),
        What::Ahead(args) => ahead::run(&args),
        What::Serve(args) => serve::run(&args),
        What::Grammars(args) => grammars::run(&args),
        What::JsonSchema(args) => schemas::run(&args),
        What::JsonCanvas(args) => schemas::canvas::run(&args),
        What::Hostile(args) => hostile::run(&args),
        What::Calls(args) => calls::run(&args),
        What::Canvas(args) => canvas::run(&args),
        What::Intersection(args) => intersection::run(&args),
        What::Steps(args) => steps::run(&args),
        What::Best(args) => best::run(&args),
        What::Gpu(args) => gpu::run(&args),
        What::GpuCheck(args) => gpu::check::run(&args),
        What::GpuReport(args) => gpu::report::run(&args),
        What::Lookahead(args) => lookahead::run(&args),
    }
}
