//! Work on the repository that cargo alone does not do: `cargo xtask COMMAND`.
//!
//! | command | what |
//! |---|---|
//! | `kernels` | compiles the CUDA kernels with the pinned compiler, into `crates/cuda/kernels/built` |
//! | `kernels --check` | compiles them elsewhere and compares |
//! | `sanitize` | the tests of the kernels with the shim under the address sanitizer |
//! | `gpu-check` | on a machine with a device: the tests natively, `compute-sanitizer` if it is there, and the measurements of `docs/gpu.md` |

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

mod gpu_check;
mod kernels;
mod sanitize;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["kernels"] => kernels::build(),
        ["kernels", "--check"] => kernels::check(),
        ["sanitize"] => sanitize::run(),
        ["gpu-check"] => gpu_check::run(),
        _ => {
            eprintln!("usage: cargo xtask kernels [--check] | sanitize | gpu-check");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Runs a command to its end; says what it was if it fails.
fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{}", command.get_program().display()))?;
    ensure!(status.success(), "{command:?} failed with {status}");
    Ok(())
}

/// A command of cargo in the repository.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// What a command prints.
fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
