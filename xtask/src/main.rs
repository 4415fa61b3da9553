//! Work on the repository that cargo alone does not do: `cargo xtask help`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

mod c_package;
mod gpu_pack;
mod kernels;
mod picture;
mod python;
mod sanitize;
mod terminal;
mod tests;
#[cfg(feature = "tools")]
mod tools;

/// Work on the repository that cargo alone does not do.
#[derive(Parser)]
enum Xtask {
    /// Run all tests on all cores and print the slowest.
    Test {
        /// Only those whose name (`package::path`) contains one of these.
        names: Vec<String>,
        /// Leave out those of the Python package.
        #[arg(long)]
        rust: bool,
    },
    /// Build the Python package, and test it in an environment of its own.
    Python,
    /// Print how long functions, files and lines are; fail where code is longer than CONTRIBUTING.md says.
    Measure,
    /// Write the public interface of the crate `anygram` to `docs/api.txt`.
    Api {
        /// Compare it with that file instead.
        #[arg(long)]
        check: bool,
    },
    /// Write the header of the C API, `crates/capi/include/anygram.h`.
    Header {
        /// Compare it with that file instead.
        #[arg(long)]
        check: bool,
    },
    /// Build the C API and install it: header, libraries, a file for pkg-config.
    CPackage {
        /// The folder that `include` and `lib` go into.
        #[arg(long, value_name = "FOLDER")]
        prefix: PathBuf,
    },
    /// Compile the CUDA kernels with the pinned compiler, into `crates/cuda/kernels/built`.
    Kernels {
        /// Compile them elsewhere and compare.
        #[arg(long)]
        check: bool,
    },
    /// Run the tests of the kernels with the shim under the address sanitizer.
    Sanitize,
    /// Draw `docs/terminal.svg`.
    Picture {
        /// Compare it with what the program prints instead.
        #[arg(long)]
        check: bool,
        /// The program, if it is built already.
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
    /// Build a folder that measures and tests the kernels on a machine with a driver and nothing else of
    /// ours.
    GpuPack {
        /// Take samples of this folder of shared data along.
        #[arg(long, value_name = "FOLDER")]
        shared: Option<PathBuf>,
    },
    /// Build that folder and run it on the CPU, where there is only a shell.
    GpuRehearsal {
        /// As for `gpu-pack`.
        #[arg(long, value_name = "FOLDER")]
        shared: Option<PathBuf>,
    },
    /// Make the tables and drawings of `docs/gpu.md`, and what `auto` reads, of what the folder measured.
    GpuReport {
        /// Results as JSON Lines.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let result = match Xtask::parse() {
        Xtask::Test { names, rust } => tests::run_all(&names, rust),
        Xtask::Python => python::check(),
        #[cfg(feature = "tools")]
        Xtask::Measure => tools::measure::run(),
        #[cfg(feature = "tools")]
        Xtask::Api { check } => tools::api::run_api(check),
        #[cfg(feature = "tools")]
        Xtask::Header { check } => tools::header::run_header(check),
        #[cfg(not(feature = "tools"))]
        Xtask::Measure | Xtask::Api { .. } | Xtask::Header { .. } => with_tools(),
        Xtask::CPackage { prefix } => c_package::install(&prefix),
        Xtask::Kernels { check: false } => kernels::build(),
        Xtask::Kernels { check: true } => kernels::check(),
        Xtask::Sanitize => sanitize::run(),
        Xtask::Picture { check: false, program } => picture::draw(program.as_deref()),
        Xtask::Picture { check: true, program } => picture::check(program.as_deref()),
        Xtask::GpuPack { shared } => gpu_pack::build(shared.as_deref()).map(drop),
        Xtask::GpuRehearsal { shared } => gpu_pack::rehearse(shared.as_deref()),
        Xtask::GpuReport { files } => gpu_pack::report(&files, &root()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the same command with the libraries that it needs.
#[cfg(not(feature = "tools"))]
fn with_tools() -> Result<()> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--features", "tools", "--"]);
    run(command.args(std::env::args_os().skip(1)))
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
