//! Everything that needs a device, on a machine that has only a driver: first the measurements, then the
//! tests natively, then `compute-sanitizer`. `cargo xtask gpu-pack` builds the folder that runs this.
//!
//! Each part is a process of its own with a time limit. So a kernel that never ends, or a lost device, costs
//! one part only. All results go to one file of JSON Lines as soon as they are known ([`super::journal`]),
//! and a restarted run continues after the parts that the file has.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::journal::{Journal, Record};
use super::{LOST, Size};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    size: Size,
    /// Appends each result to this file, and goes on behind what it has.
    #[arg(long, value_name = "FILE", overrides_with = "results")]
    results: PathBuf,
    /// The tests of the kernels, as a program.
    #[arg(long, value_name = "PROGRAM")]
    tests: PathBuf,
    /// All that is done takes at most so many seconds (540; with --quick 120): 60 % for measurements, 25 %
    /// for the tests, and the rest, with what these leave, for the sanitizers.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// One part of the measurements takes at most so many seconds.
    #[arg(long, value_name = "N", default_value_t = 90)]
    part_seconds: u64,
}

/// The tests that the sanitizers watch, under which they are slow.
const WATCHED: [&str; 5] =
    ["charts::", "masks::masks_of_a_small_sql", "recognizer::wide", "teams::", "turns::"];

/// The most of a program's output that is kept.
const KEPT: usize = 4_000;

pub fn run(args: &Args) -> Result<()> {
    let start = Instant::now();
    let seconds = args.seconds.unwrap_or(if args.size.quick { 120 } else { 540 });
    let share = |percent: u64| start + Duration::from_secs(seconds * percent / 100);
    let mut problems = measurements(&this_program()?, args, share(60))?;
    problems.extend(suite(args, share(85))?);
    problems.extend(sanitizers(args, share(100))?);
    let seconds = start.elapsed().as_secs();
    println!("all results are in {}; {seconds} s", args.results.display());
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    Ok(())
}

/// The program that runs. Where the system does not tell, it was started by its path.
fn this_program() -> Result<PathBuf> {
    let by_name = || std::env::args_os().next().map(PathBuf::from).context("the program has no name");
    std::env::current_exe().or_else(|_| by_name())
}

/// How a process ended.
enum Ended {
    By(ExitStatus),
    OutOfTime,
}

/// Waits for a process; ends it if `give_up` says so, which is asked several times a second.
fn wait(child: &mut Child, mut give_up: impl FnMut() -> bool) -> Result<Ended> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::By(status));
        }
        if give_up() {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::OutOfTime);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Measures in processes of this program until all parts have ended. What went wrong.
fn measurements(program: &Path, args: &Args, end: Instant) -> Result<Vec<String>> {
    let mut n_parts = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
        let mut command = Command::new(program);
        command.arg("gpu").arg("--results").arg(&args.results).args(["--seconds", &left.to_string()]);
        size_arguments(&args.size, &mut command);
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        // A part that takes too long shows by the file, which grows with each result.
        let (mut length, mut since) = (0, Instant::now());
        let limit = Duration::from_secs(args.part_seconds);
        let ended = wait(&mut child, || {
            let now = std::fs::metadata(&args.results).map_or(0, |file| file.len());
            if now != length {
                (length, since) = (now, Instant::now());
            }
            since.elapsed() > limit
        })?;
        let mut journal = Journal::open(&args.results)?;
        let failed = || journal.records.iter().filter_map(super::failed).map(|part| format!("{part} failed"));
        match ended {
            Ended::By(status) if status.code() != Some(LOST) && journal.unfinished().is_none() => {
                let mut problems: Vec<String> = failed().collect();
                if !status.success() && problems.is_empty() {
                    problems.push(format!("measuring ended with {status}"));
                }
                return Ok(problems);
            }
            Ended::By(_) => {}
            Ended::OutOfTime => {
                if let Some(part) = journal.unfinished() {
                    let why = format!("it brought no result in {} s", args.part_seconds);
                    journal.append(Record::Failed { part, why })?;
                }
            }
        }
        // Each process ends a part at least, or the same would begin again for ever.
        let n_ended = journal.records.iter().filter(|record| matches!(record, Record::Begun { .. })).count();
        if n_ended <= n_parts {
            return Ok(vec!["measuring ended without a result".to_owned()]);
        }
        n_parts = n_ended;
    }
}

fn size_arguments(size: &Size, command: &mut Command) {
    command.arg("--shared").arg(&size.shared).args(["--device", &size.device.to_string()]);
    for (is_set, flag) in [(size.shim, "--shim"), (size.tiny, "--tiny"), (size.quick, "--quick")] {
        if is_set {
            command.arg(flag);
        }
    }
    for part in &size.only {
        command.args(["--only", part]);
    }
}

/// A program with its output, and how it ended.
fn output_of(mut command: Command, end: Instant) -> Result<(String, Ended)> {
    let (mut reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    // The command holds the other ends of the pipe, which only ends when they are closed.
    drop(command);
    let thread = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = reader.read_to_end(&mut bytes);
        read.map(|_| String::from_utf8_lossy(&bytes).into_owned())
    });
    let ended = wait(&mut child, || Instant::now() >= end)?;
    let text = thread.join().unwrap_or_else(|_| Ok(String::new()))?;
    Ok((text, ended))
}

/// The tests of the kernels on the device, or on the shim.
fn test_command(args: &Args, program: &Path) -> Command {
    let mut command = Command::new(program);
    if !args.size.shim {
        command.env("ANYGRAM_CUDA_DEVICE", args.size.device.to_string());
    }
    command.env("ANYGRAM_SHARED", std::path::absolute(&args.size.shared).unwrap_or_default());
    command
}

fn suite(args: &Args, end: Instant) -> Result<Vec<String>> {
    let mut journal = Journal::open(&args.results)?;
    if journal.records.iter().any(|record| matches!(record, Record::Suite { .. })) {
        return Ok(Vec::new());
    }
    let start = Instant::now();
    println!("the tests of the kernels");
    let mut command = test_command(args, &args.tests);
    // One after the other: which test a device was lost in has to be clear.
    command.args(["--test-threads", "1"]);
    if args.size.tiny {
        command.args(["charts::", "teams::"]);
    }
    let (text, ended) = output_of(command, end)?;
    // `test NAME ... ok`, with what the test printed in between.
    let outcomes = |end: &str| -> Vec<String> {
        let name =
            |at: usize| text[..at].rsplit("\ntest ").next().and_then(|line| line.split(" ... ").next());
        text.match_indices(end).filter_map(|(at, _)| name(at)).map(str::to_owned).collect()
    };
    let (passed, failed) = (outcomes("ok\n").len(), outcomes("FAILED\n"));
    let not_run = match ended {
        Ended::By(status) if status.success() || !failed.is_empty() => None,
        Ended::By(status) => Some(format!("{status}: {}", last_of(&text))),
        Ended::OutOfTime => Some("no time was left".to_owned()),
    };
    let mut problems: Vec<String> = failed.iter().map(|name| format!("the test {name} failed")).collect();
    problems.extend(not_run.iter().map(|why| format!("the tests did not end: {why}")));
    journal.append(Record::Suite { passed, failed, not_run, seconds: start.elapsed().as_secs_f64() })?;
    Ok(problems)
}

fn last_of(text: &str) -> String {
    let from = text.len().saturating_sub(KEPT);
    let from = (from..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text[from..].to_owned()
}

/// What a tool finds is recorded; it is a problem only if it is about a kernel.
fn sanitizers(args: &Args, end: Instant) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for tool in ["memcheck", "racecheck", "synccheck"] {
        let mut journal = Journal::open(&args.results)?;
        let is_known = journal
            .records
            .iter()
            .any(|record| matches!(record, Record::Sanitizer { tool: known, .. } if known == tool));
        if is_known {
            continue;
        }
        let start = Instant::now();
        let (outcome, output) = sanitizer(args, tool, end)?;
        println!("compute-sanitizer, {tool}: {outcome}");
        if outcome == FOUND {
            problems.push(format!("compute-sanitizer, {tool}: {outcome}"));
        }
        let (tool, seconds) = (tool.to_owned(), start.elapsed().as_secs_f64());
        journal.append(Record::Sanitizer { tool, outcome, seconds, output })?;
    }
    Ok(problems)
}

const FOUND: &str = "found something";

fn sanitizer(args: &Args, tool: &str, end: Instant) -> Result<(String, String)> {
    let not_run = |why: &str| Ok((format!("not run: {why}"), String::new()));
    if args.size.shim {
        return not_run("it takes a device");
    }
    if Command::new("compute-sanitizer").arg("--version").output().is_err() {
        return not_run("there is no compute-sanitizer");
    }
    if Instant::now() >= end {
        return not_run("no time was left");
    }
    let mut command = test_command(args, Path::new("compute-sanitizer"));
    command
        .args(["--tool", tool, "--error-exitcode", "9"])
        .arg(&args.tests)
        .args(["--test-threads", "1"])
        .args(WATCHED);
    let (text, ended) = output_of(command, end)?;
    let outcome = match ended {
        Ended::By(status) if status.success() => "found nothing".to_owned(),
        Ended::By(_) if text.contains("Device not supported") => "not run: it refuses the device".to_owned(),
        Ended::By(status) if status.code() == Some(9) => FOUND.to_owned(),
        Ended::By(status) => format!("ended with {status}"),
        Ended::OutOfTime => "not run to its end: no time was left".to_owned(),
    };
    Ok((outcome, last_of(&text)))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program in place of this one: it begins a part, says it has begun, and goes on as the part does.
    const PROGRAM: &str = r#"#!/bin/sh
failed() { echo "{\"kind\":\"failed\",\"part\":\"$1\",\"why\":\"it ended\"}" >>"$file"; }
file=$3
n=$(grep -c begun "$file" 2>/dev/null)
[ "${n:-0}" = 1 ] && failed 1
n=$((${n:-0} + 1))
[ $n -gt 4 ] && exit 0
echo "{\"kind\":\"begun\",\"part\":\"$n\"}" >>"$file"
case $n in
1) kill -9 $$ ;;
2) exec sleep 600 ;;
3) failed 3 && exit 3 ;;
4) echo "{\"kind\":\"done\",\"part\":\"4\",\"seconds\":1}" >>"$file" ;;
esac
"#;

    #[test]
    fn a_crash_a_hang_and_a_lost_device_cost_one_part_each() {
        let folder = std::env::temp_dir().join(format!("anygram-check-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("program");
        std::fs::write(&program, PROGRAM).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let results = folder.join("results.jsonl");
        let size =
            Size { shared: folder.clone(), device: 0, shim: true, tiny: true, quick: true, only: Vec::new() };
        let tests = program.clone();
        let args = Args { size, results: results.clone(), tests, seconds: None, part_seconds: 1 };
        let problems = measurements(&program, &args, Instant::now() + Duration::from_secs(60)).unwrap();
        let journal = Journal::open(&results).unwrap();
        let outcomes = ["1", "2", "3", "4"].map(|part| journal.outcome(part));
        use super::super::journal::Outcome::{Done, Failed};
        assert_eq!(outcomes, [Some(Failed), Some(Failed), Some(Failed), Some(Done)], "{:?}", journal.records);
        assert_eq!(problems.len(), 3, "{problems:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo before; exec sleep 600"]);
        let (text, ended) = output_of(command, Instant::now() + Duration::from_millis(300)).unwrap();
        assert!(text == "before\n" && matches!(ended, Ended::OutOfTime), "{text:?}");
    }
}
