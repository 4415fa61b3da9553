//! `anygram`: grammars, texts and masks on the command line.
//!
//! One file per command. Answers go to standard output, errors to standard error; the exit status is 0, 1 for a "no", 2 for bad input.

mod commands;
mod input;
mod timing;

use std::process::ExitCode;

use clap::Parser;

/// Any grammar, any order: make language models write only sentences of a context-free language.
///
/// A grammar says which texts are sentences; a vocabulary is the list of a model's tokens. At each step of an output,
/// Anygram says exactly which tokens keep it completable. Start with `anygram demo`.
#[derive(Parser)]
#[command(name = "anygram", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match commands::run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Rendered grammar errors bring their own lines; others are one.
            anstream::eprintln!("anygram: {error:#}");
            ExitCode::from(2)
        }
    }
}
