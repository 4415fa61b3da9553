//! The header of the C API, from the crate that has it.

use anyhow::{Context, Result, ensure};

use crate::root;

/// Writes the header, or compares with the one in the repository.
pub fn run_header(check: bool) -> Result<()> {
    let crate_root = root().join("crates/capi");
    let config = cbindgen::Config::from_file(crate_root.join("cbindgen.toml")).map_err(anyhow::Error::msg)?;
    let bindings = cbindgen::Builder::new().with_crate(&crate_root).with_config(config).generate()?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    // What a function asks of Rust is no part of what C sees: `docs/c-api.md` says it once.
    let text = without_safety(&String::from_utf8(text).context("the header")?);
    let file = crate_root.join("include/anygram.h");
    if !check {
        return std::fs::write(&file, text).with_context(|| file.display().to_string());
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    ensure!(known == text, "{} is out of date: run `cargo xtask header`", file.display());
    Ok(())
}

/// Leaves the sections about safety out, each with the empty line before it.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_inside = false;
    for line in header.lines() {
        is_inside &= line.starts_with("//");
        if line == "// # Safety" {
            is_inside = true;
            kept.pop();
        }
        if !is_inside {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}
