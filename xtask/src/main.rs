//! Work on the repository that cargo alone does not do: `cargo xtask COMMAND`.
//!
//! | command | what |
//! |---|---|
//! | `kernels` | compiles the CUDA kernels with the pinned compiler, into `crates/cuda/kernels/built` |
//! | `kernels --check` | compiles them elsewhere and compares |
//! | `sanitize` | the tests of the kernels with the shim under the address sanitizer |
//! | `gpu-pack [--shared FOLDER]` | builds a folder that measures and tests the kernels on a machine that has a driver and nothing else of ours |
//! | `gpu-rehearsal [--shared FOLDER]` | builds it and runs it on the CPU, where there is only a shell |
//! | `picture [--check] [--program FILE]` | draws `docs/terminal.svg`, or compares it with the program |
//! | `gpu-report FILE…` | makes the tables of `docs/gpu.md`, its drawings, and what `auto` reads, of what the folder measured |

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

mod gpu_pack;
mod kernels;
mod picture;
mod sanitize;
mod terminal;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["kernels"] => kernels::build(),
        ["kernels", "--check"] => kernels::check(),
        ["sanitize"] => sanitize::run(),
        ["picture"] => picture::draw(None),
        ["picture", "--program", program] => picture::draw(Some(Path::new(program))),
        ["picture", "--check"] => picture::check(None),
        ["picture", "--check", "--program", program] => picture::check(Some(Path::new(program))),
        ["gpu-pack"] => gpu_pack::build(None).map(drop),
        ["gpu-pack", "--shared", shared] => gpu_pack::build(Some(Path::new(shared))).map(drop),
        ["gpu-rehearsal"] => gpu_pack::rehearse(None),
        ["gpu-rehearsal", "--shared", shared] => gpu_pack::rehearse(Some(Path::new(shared))),
        ["gpu-report", ref files @ ..] if !files.is_empty() => {
            gpu_pack::report(&files.iter().map(PathBuf::from).collect::<Vec<_>>(), &root())
        }
        _ => {
            eprintln!(
                "usage: cargo xtask kernels [--check] | sanitize | picture [--check] [--program FILE] | \
                 gpu-pack [--shared FOLDER] | gpu-rehearsal [--shared FOLDER] | gpu-report FILE…"
            );
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
