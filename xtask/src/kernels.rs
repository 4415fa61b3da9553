//! The CUDA kernels, compiled by a pinned compiler from a wheel: the same bytes on every machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{root, run, target};

/// PTX of this version is taken by older drivers too.
const COMPILER: &str = "nvidia-cuda-nvrtc-cu12==12.4.127";

/// What the assembler and the PTX say about each kernel. None of these numbers may grow.
const STATISTICS: &str = "statistics.txt";

/// Compiles the kernels into the repository, unless one of them got worse. To accept that, edit the bounds by
/// hand.
pub fn build() -> Result<()> {
    let (fresh, built) = (target().join("kernels"), built());
    compile(&fresh)?;
    compare_statistics(&built, &fresh)?;
    for entry in std::fs::read_dir(&fresh).with_context(|| fresh.display().to_string())? {
        let name = entry?.file_name();
        std::fs::copy(fresh.join(&name), built.join(&name)).with_context(|| name.display().to_string())?;
    }
    Ok(())
}

/// Compiles the kernels and compares with what is in the repository. Where the compiler cannot be had, that
/// is said, and it is left to a test of `anygram-cuda` to compare the sources with what was compiled.
pub fn check() -> Result<()> {
    let fresh = target().join("kernels");
    if let Err(error) = compiler() {
        println!("NOT TESTED: {COMPILER} could not be installed: {error:#}");
        return Ok(());
    }
    compile(&fresh)?;
    let built = built();
    compare_statistics(&built, &fresh)?;
    let names = std::fs::read_dir(&fresh).with_context(|| fresh.display().to_string())?;
    for entry in names {
        let name = entry?.file_name();
        if name == STATISTICS {
            continue;
        }
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
        run(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            COMPILER,
        ]))?;
        std::fs::write(is_there, COMPILER)?;
    }
    Ok(python)
}

fn built() -> PathBuf {
    root().join("crates/cuda/kernels/built")
}

/// Prints the numbers of all kernels, and holds them against those that are recorded.
fn compare_statistics(built: &Path, fresh_folder: &Path) -> Result<()> {
    let read = |folder: &Path| std::fs::read_to_string(folder.join(STATISTICS));
    let fresh = read(fresh_folder).context(STATISTICS)?;
    println!("{:23} {:13}{}", "file", "kernel", COLUMNS.map(|name| format!("{name:>15}")).concat());
    for Line { file, kernel, numbers } in lines(&fresh)? {
        let numbers =
            numbers.map(|number| format!("{:>15}", number.map_or("-".to_owned(), |n| n.to_string())));
        println!("{file:23} {kernel:13}{}", numbers.concat());
    }
    let Ok(recorded) = read(built) else {
        println!("no bounds are recorded yet");
        return Ok(());
    };
    let (worse, others) = compare(&lines(&recorded)?, &lines(&fresh)?);
    others.iter().for_each(|line| println!("{line}"));
    if !worse.is_empty() {
        let (ours, theirs) = (built.join(STATISTICS), fresh_folder.join(STATISTICS));
        let what = "worse than recorded; if that is meant, edit";
        bail!(
            "{what} {} (the new numbers are in {}):\n{}",
            ours.display(),
            theirs.display(),
            worse.join("\n")
        );
    }
    Ok(())
}

const COLUMNS: [&str; 6] = ["registers", "stack", "spill stores", "spill loads", "shared", "volatile loads"];

/// What is known of a kernel in a file. PTX has no registers.
#[derive(PartialEq, Debug)]
struct Line<'a> {
    file: &'a str,
    kernel: &'a str,
    numbers: [Option<u32>; 6],
}

fn lines(text: &str) -> Result<Vec<Line<'_>>> {
    let parse = |line| {
        let fields: Vec<&str> = str::split_whitespace(line).collect();
        let [file, kernel, ref numbers @ ..] = fields[..] else { bail!("{STATISTICS}: {line}") };
        let numbers: Vec<Option<u32>> = numbers.iter().map(|number| number.parse().ok()).collect();
        let numbers = numbers.try_into().ok().with_context(|| format!("{STATISTICS}: {line}"))?;
        Ok(Line { file, kernel, numbers })
    };
    text.lines().filter(|line| !line.starts_with('#')).map(parse).collect()
}

/// What got worse, and what else is different.
fn compare(recorded: &[Line<'_>], fresh: &[Line<'_>]) -> (Vec<String>, Vec<String>) {
    let (mut worse, mut others) = (Vec::new(), Vec::new());
    for Line { file, kernel, numbers } in fresh {
        let is_same = |line: &&Line<'_>| (line.file, line.kernel) == (*file, *kernel);
        let Some(before) = recorded.iter().find(is_same) else {
            others.push(format!("{file}, `{kernel}`: not recorded yet"));
            continue;
        };
        for ((name, bound), now) in COLUMNS.iter().zip(before.numbers).zip(*numbers) {
            match (bound, now) {
                (Some(bound), Some(now)) if now > bound => {
                    worse.push(format!("{file}, `{kernel}`: {name} {now}, recorded {bound}"));
                }
                (Some(bound), Some(now)) if now < bound => {
                    others.push(format!("{file}, `{kernel}`: {name} {now}, better than {bound}"));
                }
                (None, Some(_)) | (Some(_), None) => {
                    worse.push(format!("{file}, `{kernel}`: {name} is told in one of both only"));
                }
                _ => {}
            }
        }
    }
    let is_gone =
        |line: &&Line<'_>| !fresh.iter().any(|now| (now.file, now.kernel) == (line.file, line.kernel));
    let gone = |Line { file, kernel, .. }: &Line<'_>| format!("{file}, `{kernel}`: recorded, and not there");
    others.extend(recorded.iter().filter(is_gone).map(gone));
    (worse, others)
}

fn compile(output: &Path) -> Result<()> {
    let python = compiler()?;
    run(Command::new(python)
        .arg(root().join("xtask/nvrtc.py"))
        .arg(root().join("crates/cuda/kernels"))
        .arg(output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_got_worse_is_told_with_both_numbers() {
        let recorded =
            "# names\na.cubin step 91 0 0 0 0 17\na.cubin old 1 0 0 0 0 0\na.ptx step - - - - - 17\n";
        let fresh = "a.cubin step 90 0 4 0 0 17\na.cubin new 200 0 0 0 0 0\na.ptx step - - - - - 18\n";
        let (worse, others) = compare(&lines(recorded).unwrap(), &lines(fresh).unwrap());
        assert_eq!(
            worse,
            ["a.cubin, `step`: spill stores 4, recorded 0", "a.ptx, `step`: volatile loads 18, recorded 17",]
        );
        assert_eq!(
            others,
            [
                "a.cubin, `step`: registers 90, better than 91",
                "a.cubin, `new`: not recorded yet",
                "a.cubin, `old`: recorded, and not there",
            ]
        );
        let same = lines(recorded).unwrap();
        assert_eq!(compare(&same, &same), (Vec::new(), Vec::new()));
        assert!(lines("a.cubin step 1 2\n").is_err());
    }
}
