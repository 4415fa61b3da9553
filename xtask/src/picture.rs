//! The picture of README.md: what `cargo run --release -- generate` prints on a terminal.
//!
//! The picture depends on the program alone: the columns of times are left out, and the rest is the same in
//! every run. So it can be compared (`--check`).

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::terminal::{self, Line};
use crate::{cargo, output_of, root};

/// The width of the picture in characters; wider lines are broken.
const COLUMNS: usize = 110;
const COMMAND: &str = "cargo run --release -- generate";
const TITLE: &str = "A masked-diffusion model fills a JSON record in 8 steps, with a grammar and without.";

/// Writes `docs/terminal.svg`. `program` is a program that is built already.
pub fn draw(program: Option<&Path>) -> Result<()> {
    let picture = picture(program)?;
    std::fs::write(root().join("docs/terminal.svg"), &picture)?;
    println!("written: docs/terminal.svg, {} bytes", picture.len());
    Ok(())
}

/// Fails if `docs/terminal.svg` is not what the program prints.
pub fn check(program: Option<&Path>) -> Result<()> {
    let drawn = std::fs::read_to_string(root().join("docs/terminal.svg"))?;
    ensure!(
        drawn == picture(program)?,
        "docs/terminal.svg is out of date: run `cargo xtask picture` and look at the result"
    );
    println!("docs/terminal.svg is up to date");
    Ok(())
}

fn picture(program: Option<&Path>) -> Result<String> {
    let mut command = match program {
        Some(program) => Command::new(program),
        None => cargo(),
    };
    if program.is_none() {
        command.args(["run", "--release", "--quiet", "--"]);
    }
    command.arg("generate").env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
    let printed = format!("\x1b[2m$\x1b[0m {COMMAND}\n\n{}", output_of(&mut command)?);
    let lines = without_times(terminal::lines(&printed));
    let lines: Vec<Line> = lines.into_iter().flat_map(|line| terminal::fold(line, COLUMNS)).collect();
    Ok(terminal::svg(&lines, TITLE))
}

/// Cuts the columns of times off the table at the end of the output.
fn without_times(mut lines: Vec<Line>) -> Vec<Line> {
    let column = |line: &Line| terminal::text(line).find("  model ms");
    let heading = lines.iter().enumerate().find_map(|(n, line)| column(line).map(|column| (n, column)));
    if let Some((first, column)) = heading {
        let table = lines.iter_mut().skip(first).take_while(|line| !line.is_empty());
        table.for_each(|line| line.truncate(column));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_left_out() {
        let lines = terminal::lines("took 5 s\n\na  model ms\nb       5.0\n\nthe end is not cut");
        let texts: Vec<String> = without_times(lines).iter().map(|line| terminal::text(line)).collect();
        assert_eq!(texts, ["took 5 s", "", "a", "b", "", "the end is not cut"]);
    }
}
