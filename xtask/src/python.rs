//! The Python package: builds the wheel, installs it into an environment of its own below `target`, and tests
//! it there.
//!
//! Needs Python 3.10 or later with `venv`, as `PYTHON` or `python3`, and a package index the first time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::{cargo, root, run, target};

/// What the environment has besides the wheel.
const REQUIREMENTS: &str = "python/requirements-test.txt";

/// Builds and tests.
pub fn check() -> Result<()> {
    let python = timed("environment", environment)?;
    // As the other stages build them, so that nothing is compiled twice; without the bridge, which the wheel
    // has with other features. What the library of C answers is compared with both.
    timed("program and C library", || {
        run(cargo()
            .args(["build", "--release", "--workspace", "--exclude", "anygram-python"])
            .args(["--bins", "--lib", "--quiet"]))
    })?;
    timed("wheel", || wheel(&python))?;
    timed("tests", || run(tool(&python, "pytest").args(["--quiet", "--durations=5"])))?;
    timed("eval", || {
        // What needs torch is for `cd eval && python -m pytest`.
        run(tool(&python, "pytest").args([
            "--quiet",
            "-c",
            "eval/pyproject.toml",
            "eval/tests/test_decoding.py",
        ]))
    })?;
    timed("stubs", || run(tool(&python, "mypy.stubtest").args(["anygram", "--ignore-disjoint-bases"])))?;
    timed("types", || run(tool(&python, "pyright").arg("--pythonpath").arg(&python)))
}

/// Says how long something took.
fn timed<T>(what: &str, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let result = job().with_context(|| format!("python: {what}"))?;
    eprintln!("python: {what}: ok, {:.1} s", began.elapsed().as_secs_f64());
    Ok(result)
}

/// An environment with what tests need, made if it is not there; its interpreter.
pub fn environment() -> Result<PathBuf> {
    let place = target().join("python/environment");
    let python = place.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let system = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let requirements = std::fs::read_to_string(root().join(REQUIREMENTS))?;
    let wanted = format!("{}\n{requirements}", system.display());
    // Written last: an environment without it is not finished.
    let stamp = place.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && python.exists() {
        return Ok(python);
    }
    run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&place))
        .context("an environment needs Python 3.10 or later with its module `venv`; PYTHON names another")?;
    run(tool(&python, "pip").args(["install", "--quiet", "--requirement"]).arg(root().join(REQUIREMENTS)))?;
    std::fs::write(stamp, wanted)?;
    Ok(python)
}

/// Builds the wheel and installs it.
fn wheel(python: &Path) -> Result<()> {
    let wheels = target().join("python/wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    run(tool(python, "maturin")
        .args(["build", "--release", "--quiet", "--out"])
        .arg(&wheels)
        .env("CARGO_TARGET_DIR", target()))?;
    let made: Vec<PathBuf> =
        std::fs::read_dir(&wheels)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    ensure!(made.len() == 1, "maturin made {} wheels, not one", made.len());
    let mebibytes = std::fs::metadata(&made[0])?.len() as f64 / f64::from(1 << 20);
    eprintln!("python: {} ({mebibytes:.1} MiB)", made[0].display());
    run(tool(python, "pip").args(["install", "--quiet", "--force-reinstall", "--no-deps"]).arg(&made[0]))
}

/// A module of the environment as a program, in the root of the repository.
fn tool(python: &Path, module: &str) -> Command {
    let mut command = Command::new(python);
    let program = target().join("release/anygram").with_extension(std::env::consts::EXE_EXTENSION);
    command.args(["-m", module]).current_dir(root()).env("ANYGRAM_PROGRAM", program);
    command
}
