//! `anygram`: grammars, texts and masks on the command line.
//!
//! | module | what |
//! |---|---|
//! | `commands` | one file per command: its options, its help, what it does |
//! | `input` | the options that commands share, and what they name |
//! | `texts` | files of texts to replay |
//! | `excerpt` | the line of a text where it stops, with a caret |
//! | `decoder` | one output, on the CPU or on a device |
//! | `timing` | times of many small steps |
//!
//! Answers go to standard output, errors to standard error; the exit status is 0, 1 for a "no", 2 for bad
//! input. Whoever reads the output may stop reading: a closed pipe ends the program in silence. So nothing
//! here prints with `println!`, which would panic.

mod commands;
mod decoder;
mod excerpt;
mod input;
mod texts;
mod timing;

pub use commands::batch::Questions;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

/// Constrained decoding for any context-free grammar: left to right, and on the canvases of diffusion models.
///
/// A grammar says which outputs are valid; a vocabulary is the list of a model's tokens. At each step of an
/// output, Anygram computes which tokens keep it completable. Start with `anygram generate` and `anygram
/// demo`.
#[derive(Parser)]
#[command(name = "anygram", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

const EXAMPLES: &str = "\
Examples:
  anygram generate                                 a small model writes, with a grammar and without
  anygram demo                                     a tour, no files needed
  anygram check --grammar sql.lark                 explain a grammar
  anygram check --grammar sql.lark query.sql       is this file a sentence? (exit status 0 or 1)
  anygram help batch                               what a command does, with examples";

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    match commands::run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

/// Tells the person about bad input. Where even that cannot be written, the exit status has to do.
fn complain(error: &anyhow::Error) {
    let mut output = anstream::stderr();
    let _ = match error.downcast_ref::<input::Rendered>() {
        Some(rendered) => writeln!(output, "{rendered}"),
        None => writeln!(output, "anygram: {error:#}"),
    };
}

/// Whether the reader of our output has had enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io_errors.map(std::io::Error::kind).any(|kind| kind == ErrorKind::BrokenPipe)
}
