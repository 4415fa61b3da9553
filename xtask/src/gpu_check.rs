//! Everything that takes a device, for whoever has one: needs its driver and no network.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, output_of, root, target};

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

/// The tests natively, `compute-sanitizer` over them if it is there, and the measurements into `docs/gpu.md`.
pub fn run() -> Result<()> {
    let features = ["--release", "--package", "anygram-cuda", "--features", "cuda"];
    let measure = |what: &str| {
        let mut command = cargo();
        command.arg("run").arg("--quiet").args(features).args(["--example", "measure", "--", what]);
        command
    };
    crate::run(cargo().arg("build").args(features).arg("--examples"))?;
    let device = output_of(&mut measure("--device")).context("nothing was checked and nothing written")?;
    println!("device: {}", device.trim());
    let ordinal = std::env::var("ANYGRAM_CUDA_DEVICE").unwrap_or_else(|_| "0".to_owned());
    crate::run(cargo().arg("test").args(features).args(["--test", "kernels"]).env("ANYGRAM_CUDA_DEVICE", &ordinal))?;
    sanitize(&ordinal)?;
    let table = output_of(&mut measure("--table"))?;
    let commit = output_of(Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root()))?;
    let date = output_of(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let page = root().join("docs/gpu.md");
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let (before, rest) = text.split_once(BEGIN).context("docs/gpu.md has no place for measurements")?;
    let (_, after) = rest.split_once(END).context("docs/gpu.md has no end of measurements")?;
    let measured =
        format!("{BEGIN}\n\n{}, {}, commit {}.\n\n{table}\n{END}", date.trim(), device.trim(), commit.trim());
    std::fs::write(&page, format!("{before}{measured}{after}"))?;
    println!("{table}\nwritten to docs/gpu.md");
    Ok(())
}

/// `memcheck`, `racecheck` and `synccheck` over some of the tests, which are slow under it.
fn sanitize(ordinal: &str) -> Result<()> {
    if Command::new("compute-sanitizer").arg("--version").output().is_err() {
        println!("NOT TESTED: no compute-sanitizer was found");
        return Ok(());
    }
    let listed = output_of(
        cargo()
            .args(["test", "--release", "--package", "anygram-cuda", "--features", "cuda", "--test", "kernels"])
            .args(["--no-run", "--message-format", "json"]),
    )?;
    let executable = listed.lines().rev().find_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'));
    let (executable, _) = executable.with_context(|| format!("no test in {}", target().display()))?;
    for tool in ["memcheck", "racecheck", "synccheck"] {
        println!("compute-sanitizer --tool {tool}");
        let status = Command::new("compute-sanitizer")
            .args(["--tool", tool, "--error-exitcode", "9", executable, "--test-threads", "1"])
            .args(["charts::", "masks::masks_of_a_small_sql", "recognizer::wide"])
            .env("ANYGRAM_CUDA_DEVICE", ordinal)
            .status()?;
        ensure!(status.success(), "compute-sanitizer --tool {tool} found something");
    }
    Ok(())
}
