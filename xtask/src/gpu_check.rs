//! Everything that takes a device, for whoever has one: needs its driver, what cargo has fetched, and no network.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, output_of, root, target};

const KERNELS: [&str; 5] = ["--release", "--package", "anygram-cuda", "--features", "cuda"];
const BENCH: [&str; 5] = ["--release", "--package", "anygram-bench", "--features", "cuda"];

/// The tests natively, `compute-sanitizer` over them if it is there, and the measurements into `docs/gpu.md`.
pub fn run() -> Result<()> {
    let ordinal = std::env::var("ANYGRAM_CUDA_DEVICE").unwrap_or_else(|_| "0".to_owned());
    let measure = |arguments: &[&str]| {
        let mut command = cargo();
        command.arg("run").arg("--quiet").args(BENCH).args(["--", "gpu", "--device", &ordinal]).args(arguments);
        command
    };
    let device = output_of(&mut measure(&["--name"])).context("nothing was checked and nothing written")?;
    println!("device: {}", device.trim());
    crate::run(cargo().arg("test").args(KERNELS).args(["--test", "kernels"]).env("ANYGRAM_CUDA_DEVICE", &ordinal))?;
    sanitize(&ordinal)?;
    let root = root();
    let path = |name: &str| root.join(name).display().to_string();
    // Grammars, texts and vocabularies for the real ones; what is not there is left out, and said.
    let shared = std::env::var("ANYGRAM_SHARED").unwrap_or_else(|_| path("../shared"));
    crate::run(&mut measure(&[
        "--shared",
        &shared,
        "--markdown",
        &path("docs/gpu.md"),
        "--svg",
        &path("docs/gpu"),
        "--ratios",
        &path("crates/cuda/measured.txt"),
        "--heading",
        &heading(&ordinal)?,
    ]))?;
    println!("written to docs/gpu.md, docs/gpu-*.svg and crates/cuda/measured.txt");
    Ok(())
}

/// When, by which driver, of which commit.
fn heading(ordinal: &str) -> Result<String> {
    let date = output_of(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let commit = output_of(Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root()))
        .unwrap_or_else(|_| "unknown".to_owned());
    let query = ["--query-gpu=driver_version,clocks.max.sm", "--format=csv,noheader", "--id", ordinal];
    let driver = output_of(Command::new("nvidia-smi").args(query)).unwrap_or_else(|_| "unknown".to_owned());
    Ok(format!("{}, commit {}, driver and highest clock {}.", date.trim(), commit.trim(), driver.trim()))
}

/// `memcheck`, `racecheck` and `synccheck` over some of the tests, which are slow under it.
fn sanitize(ordinal: &str) -> Result<()> {
    if Command::new("compute-sanitizer").arg("--version").output().is_err() {
        println!("NOT TESTED: no compute-sanitizer was found");
        return Ok(());
    }
    let listed = output_of(cargo().arg("test").args(KERNELS).args([
        "--test",
        "kernels",
        "--no-run",
        "--message-format",
        "json",
    ]))?;
    let executable = listed.lines().rev().find_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'));
    let (executable, _) = executable.with_context(|| format!("no test in {}", target().display()))?;
    for tool in ["memcheck", "racecheck", "synccheck"] {
        println!("compute-sanitizer --tool {tool}");
        let status = Command::new("compute-sanitizer")
            .args(["--tool", tool, "--error-exitcode", "9", executable, "--test-threads", "1"])
            .args(["charts::", "masks::masks_of_a_small_sql", "recognizer::wide", "teams::", "turns::"])
            .env("ANYGRAM_CUDA_DEVICE", ordinal)
            .status()?;
        ensure!(status.success(), "compute-sanitizer --tool {tool} found something");
    }
    Ok(())
}
