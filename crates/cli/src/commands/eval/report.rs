use std::io::Write;
use std::path::PathBuf;

use anygram_eval::Lines;
use anygram_eval::report::report;
use anyhow::{Context, Result};

use crate::input;

/// Make tables and drawings of measurements
///
/// Reads lines of `anygram eval`, `anygram eval infill` and `anygram replay`, and of the Python package in
/// eval/. Writes the page of results: our tables beside those of the papers. With --out the drawings are
/// written beside the page; without it only the page is written, to standard output. Equal lines make equal
/// pages.
#[derive(clap::Args)]
pub struct Args {
    /// The page to write, as docs/results.md.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Files of lines.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub fn run(args: &Args) -> Result<bool> {
    let mut lines = Lines::default();
    for file in &args.files {
        lines
            .lines
            .extend(Lines::read(&input::read(file)?).with_context(|| file.display().to_string())?.lines);
    }
    let report = report(&lines)?;
    match &args.out {
        Some(page) => report.write(page).with_context(|| page.display().to_string())?,
        None => write!(std::io::stdout(), "{}", report.page)?,
    }
    Ok(true)
}
