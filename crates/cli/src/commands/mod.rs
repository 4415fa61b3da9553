//! The commands.

mod demo;

pub mod batch;
mod check;
mod debug;
mod eval;
mod fill;
mod generate;
mod replay;
mod serve;
mod tools;
mod vocab;

use anyhow::Result;
use clap::Subcommand;

/// What each does is said where its options are, in its own file.
#[derive(Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Generate(generate::Args),
    Check(check::Args),
    Replay(replay::Args),
    Batch(batch::Args),
    Fill(fill::Args),
    Serve(serve::Args),
    Eval(Box<eval::Args>),
    Tools(tools::Args),
    Vocab(vocab::Args),
    Debug(debug::Args),
}

/// Runs a command; `false` is the answer "no".
pub fn run(command: Command) -> Result<bool> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Batch(args) => batch::run(args),
        Command::Fill(args) => fill::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Eval(args) => eval::run(&args),
        Command::Tools(args) => tools::run(&args),
        Command::Vocab(args) => vocab::run(&args),
        Command::Debug(args) => debug::run(&args),
    }
}
