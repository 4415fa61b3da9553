//! The commands.

mod batch;
mod check;
mod debug;
mod demo;
mod replay;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Command {
    /// A tour on built-in data: a text checked, a mask shown, a wrong token refused.
    Demo(demo::Args),
    /// Explain a grammar, or say of files whether they are sentences.
    Check(check::Args),
    /// Decode real texts with the tokens forced, checking every mask and measuring.
    Replay(replay::Args),
    /// Answer JSON questions, one a line, on standard output.
    Batch(batch::Args),
    /// Print what grammars are compiled to.
    Debug(debug::Args),
}

/// Runs a command; `false` is the answer "no".
pub fn run(command: Command) -> Result<bool> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Batch(args) => batch::run(&args),
        Command::Debug(args) => debug::run(&args),
    }
}
