//! The CUDA kernels, compiled by a pinned compiler from a wheel: the same bytes on every machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{root, run, target};

/// PTX of this version is taken by older drivers too.
const COMPILER: &str = "nvidia-cuda-nvrtc-cu12==12.4.127";

/// Compiles the kernels into the repository.
pub fn build() -> Result<()> {
    compile(&root().join("crates/cuda/kernels/built"))
}

/// Compiles the kernels and compares with what is in the repository. Where the compiler cannot be had, that is said, and it is left to a test of `anygram-cuda` to
/// compare the sources with what was compiled.
pub fn check() -> Result<()> {
    let fresh = target().join("kernels");
    if let Err(error) = compiler() {
        println!("NOT TESTED: {COMPILER} could not be installed: {error:#}");
        return Ok(());
    }
    compile(&fresh)?;
    let built = root().join("crates/cuda/kernels/built");
    let names = std::fs::read_dir(&fresh).with_context(|| fresh.display().to_string())?;
    for entry in names {
        let name = entry?.file_name();
        let (ours, theirs) = (std::fs::read(built.join(&name)), std::fs::read(fresh.join(&name))?);
        let is_same = ours.is_ok_and(|ours| ours == theirs);
        ensure!(is_same, "{} is not what the sources compile to: run `cargo xtask kernels`", name.display());
    }
    println!("the kernels in the repository are what {COMPILER} makes of their sources");
    Ok(())
}

/// The Python of an environment that has the compiler.
fn compiler() -> Result<PathBuf> {
    let environment = target().join("nvrtc-12.4.127");
    let (python, is_there) = (environment.join("bin/python"), environment.join("installed"));
    if !is_there.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", COMPILER]))?;
        std::fs::write(is_there, COMPILER)?;
    }
    Ok(python)
}

fn compile(output: &Path) -> Result<()> {
    let python = compiler()?;
    run(Command::new(python).arg(root().join("xtask/nvrtc.py")).arg(root().join("crates/cuda/kernels")).arg(output))
}
