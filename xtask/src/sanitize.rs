//! The kernels on the CPU under the address sanitizer: whatever they read or write outside of a buffer ends
//! the test.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{cargo, output_of};

/// Builds the shim with the sanitizer and runs the tests.
pub fn run() -> Result<()> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut libraries = Vec::new();
    for name in ["libasan.so", "libubsan.so"] {
        let path =
            output_of(Command::new(&compiler).arg(format!("-print-file-name={name}")))?.trim().to_owned();
        if !path.contains('/') {
            ensure!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{compiler} has no {name}: install gcc's sanitizers"
            );
            println!("NOT TESTED: {compiler} has no {name}");
            return Ok(());
        }
        libraries.push(path);
    }
    // The sanitizer has to be loaded before anything that it watches, but not into cargo and the compiler.
    let runner = format!("env LD_PRELOAD={} ASAN_OPTIONS=detect_leaks=0", libraries.join(":"));
    let host = output_of(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let variable = format!("CARGO_TARGET_{}_RUNNER", host.trim().replace('-', "_").to_uppercase());
    super::run(
        cargo()
            .args(["test", "--release", "--package", "anygram-cuda", "--test", "kernels"])
            .env("ANYGRAM_SHIM_SANITIZE", "1")
            .env(variable, runner),
    )
}
