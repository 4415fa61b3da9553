//! One folder with all that is measured and tested on a device, for machines that have a driver and neither
//! Rust nor a network.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, output_of, root, run, target};

/// The most bytes of the folder: what lends devices takes no more.
const MOST_BYTES: u64 = 55 << 20;

/// Grammars and texts of the shared data that are measured or tested, and how many texts of each.
const REPLAYS: [(&str, usize); 4] =
    [("treebank_raw", 40), ("sql_grammar", 40), ("sqlite", 40), ("cpp_he", 4)];
const VOCABULARY: &str = "tokenizers/qwen.tiktoken.gz";

/// The script in the folder. It uses nothing but a shell.
const SCRIPT: &str = r#"#!/bin/sh
# Measures the kernels on a device, then tests them:
# gpu-check [--quick] [--results FILE] [--seconds N] [--device N]
#
# Needs NVIDIA's driver and nothing else. Results are appended to FILE (results.jsonl in this folder) as soon
# as they are known; started again, it goes on behind what FILE has. At most 9 minutes, with --quick 2.
# `cargo xtask gpu-report FILE` in the repository makes tables of it.
set -eu
here=$(cd "${0%/*}" && pwd)
read -r ANYGRAM_COMMIT <"$here/COMMIT"
export ANYGRAM_COMMIT ANYGRAM_ROOT="$here"
# Where containers have the driver's library, and where its tools are, if the machine does not say so.
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64:/usr/local/nvidia/lib"
export PATH="$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin"
exec "$here/bin/anygram-bench" gpu-check --tests "$here/bin/kernels" --shared "$here/shared" \
    --results "$here/results.jsonl" "$@"
"#;

/// Builds the folder. `shared` is the shared data of which samples go along.
pub fn build(shared: Option<&Path>) -> Result<PathBuf> {
    let folder = target().join("gpu-pack");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(folder.join("bin"))?;
    let packages = ["--release", "--package", "anygram-bench", "--package", "anygram-cuda"];
    let features = ["--features", "anygram-bench/cuda,anygram-cuda/cuda"];
    run(cargo().arg("build").args(packages).args(features).args(["--bin", "anygram-bench"]))?;
    let listed = output_of(cargo().arg("test").args(packages).args(features).args([
        "--test",
        "kernels",
        "--no-run",
        "--message-format",
        "json",
    ]))?;
    let tests = listed.lines().rev().find_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'));
    let (tests, _) = tests.context("cargo names no executable of the tests")?;
    for (from, to) in
        [(target().join("release/anygram-bench"), "anygram-bench"), (PathBuf::from(tests), "kernels")]
    {
        let to = folder.join("bin").join(to);
        std::fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        run(Command::new("strip").arg(&to))?;
    }
    copy_folder(&root().join("testdata/cases"), &folder.join("testdata/cases"))?;
    copy_folder(&root().join("crates/cuda/kernels"), &folder.join("crates/cuda/kernels"))?;
    if let Some(shared) = shared {
        copy_samples(&shared.join("data"), &folder.join("shared/data"))?;
    }
    std::fs::write(folder.join("COMMIT"), format!("{}\n", commit()?))?;
    write_script(&folder.join("gpu-check"))?;
    let bytes = bytes_of(&folder)?;
    ensure!(bytes <= MOST_BYTES, "the folder has {bytes} bytes, it may have {MOST_BYTES}");
    println!(
        "{} ({:.1} MB): copy it to a machine with a device, run gpu-check there,",
        folder.display(),
        bytes as f64 / 1e6
    );
    println!("bring results.jsonl back, and run `cargo xtask gpu-report results.jsonl`");
    Ok(folder)
}

/// The commit, and whether the tree differs from it.
fn commit() -> Result<String> {
    let git = |arguments: &[&str]| output_of(Command::new("git").args(arguments).current_dir(root()));
    let Ok(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return Ok("unknown".to_owned()) };
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty();
    Ok(format!("{}{}", commit.trim(), if is_changed { "+changes" } else { "" }))
}

#[cfg(unix)]
fn write_script(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, SCRIPT)?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn write_script(_: &Path) -> Result<()> {
    anyhow::bail!("the folder is for Linux, and is built there")
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let (entry, to) = (entry?, to.to_owned());
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &to)?,
            false => drop(std::fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

/// Grammars, the first of their texts, and the vocabulary.
fn copy_samples(from: &Path, to: &Path) -> Result<()> {
    let read = |name: &str| {
        let path = from.join(name);
        std::fs::read(&path).with_context(|| format!("{}: name the folder of shared data", path.display()))
    };
    std::fs::create_dir_all(to.join("replay"))?;
    std::fs::create_dir_all(to.join("tokenizers"))?;
    std::fs::write(to.join(VOCABULARY), read(VOCABULARY)?)?;
    for (name, n) in REPLAYS {
        let (grammar, texts) = (format!("replay/{name}.lark"), format!("replay/{name}.tok.jsonl"));
        std::fs::write(to.join(&grammar), read(&grammar)?)?;
        let lines = read(&texts)?.split_inclusive(|&byte| byte == b'\n').take(n).collect::<Vec<_>>().concat();
        std::fs::write(to.join(&texts), lines)?;
    }
    Ok(())
}

fn bytes_of(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { bytes_of(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Runs the folder's script on the shim where there is nothing but a shell and the libraries of the programs:
/// no cargo, no repository, no compiler. Then makes the tables of what it measured.
pub fn rehearse(shared: Option<&Path>) -> Result<()> {
    let folder = build(shared)?;
    let place = target().join("gpu-rehearsal");
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    copy_folder(&folder, &place.join("pack"))?;
    write_script(&place.join("pack/gpu-check"))?;
    std::fs::create_dir_all(place.join("tmp"))?;
    // Programs are started without an input.
    std::fs::create_dir_all(place.join("dev"))?;
    std::fs::write(place.join("dev/null"), "")?;
    let shell = std::fs::canonicalize("/bin/sh")?;
    let mut needed = vec![shell.clone()];
    for program in [&shell, &place.join("pack/bin/anygram-bench"), &place.join("pack/bin/kernels")] {
        // Lines such as `libc.so.6 => /lib/libc.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
        let listed = output_of(Command::new("ldd").arg(program))?;
        let names =
            listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
        needed.extend(names.map(PathBuf::from));
    }
    needed.sort();
    needed.dedup();
    for from in needed {
        let to = place.join(from.strip_prefix("/").unwrap_or(&from));
        std::fs::create_dir_all(to.parent().unwrap_or(&place))?;
        std::fs::copy(&from, &to).with_context(|| from.display().to_string())?;
    }
    std::fs::create_dir_all(place.join("bin"))?;
    std::fs::copy(&shell, place.join("bin/sh"))?;
    // A second run finds everything done, and so checks that a run goes on.
    for again in [false, true] {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "chroot"]).arg(&place);
        command.args([
            "/bin/sh",
            "/pack/gpu-check",
            "--shim",
            "--tiny",
            "--quick",
            "--seconds",
            "900",
            "--results",
            "/tmp/results.jsonl",
        ]);
        run(command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))?;
        let results = std::fs::read_to_string(place.join("tmp/results.jsonl"))?;
        let n_done = results.lines().filter(|line| line.contains("\"kind\":\"done\"")).count();
        let n_runs = results.lines().filter(|line| line.contains("\"kind\":\"run\"")).count();
        ensure!(n_done >= 8, "only {n_done} parts were measured");
        ensure!(n_runs == 1 + usize::from(again), "{n_runs} processes measured");
        ensure!(!results.contains("\"kind\":\"failed\""), "a part failed: {results}");
    }
    report(&[place.join("tmp/results.jsonl")], &place)
}

/// Makes the tables, the drawings and what `auto` reads of files of results; in the repository, or in a copy
/// of its layout.
pub fn report(files: &[PathBuf], into: &Path) -> Result<()> {
    let (docs, cuda) = (into.join("docs"), into.join("crates/cuda"));
    std::fs::create_dir_all(&docs)?;
    std::fs::create_dir_all(&cuda)?;
    let mut command = cargo();
    command.args([
        "run",
        "--quiet",
        "--release",
        "--package",
        "anygram-bench",
        "--features",
        "cuda",
        "--",
        "gpu-report",
    ]);
    command.args(files.iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())));
    command.arg("--markdown").arg(docs.join("gpu.md")).arg("--svg").arg(docs.join("gpu"));
    run(command.arg("--ratios").arg(cuda.join("measured.txt")))?;
    println!("written: docs/gpu.md, docs/gpu-*.svg and crates/cuda/measured.txt in {}", into.display());
    Ok(())
}
