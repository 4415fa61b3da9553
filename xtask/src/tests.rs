//! All tests of the workspace, each in a process of its own, as many at once as there are cores; then those
//! in the documentation, and those of the Python package.
//!
//! A process for each test spreads long tests over the cores whatever program they are in, tells how long
//! each took, and lets one that hangs or takes the process down fail alone. What tests of one program share
//! in statics is made again by each of them, a few milliseconds in all but some.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::{cargo, output_of, python, run, target};

/// A test that is not done by then counts as hanging; the slowest takes half a minute.
const MAX_TIME: Duration = Duration::from_secs(600);
/// How many of the slowest are printed.
const SLOWEST: usize = 10;

/// A program of tests.
struct Program {
    package: String,
    executable: PathBuf,
    /// The folder of its package, where cargo would start it.
    folder: PathBuf,
}

/// A test of a program.
struct Test<'a> {
    program: &'a Program,
    name: String,
}

/// How a test went.
struct Outcome {
    name: String,
    took: Duration,
    /// What it printed, and how it ended, if it failed.
    failure: Option<String>,
}

/// Runs the tests whose name (`package::path`) contains one of the filters; all of them if there are none,
/// those of the Python package too unless only `rust` is wanted.
pub fn run_all(filters: &[String], rust: bool) -> Result<()> {
    let with_python = filters.is_empty() && !rust;
    // What Python needs is fetched while the compiler works.
    let environment = with_python.then(|| std::thread::spawn(python::environment));
    let began = Instant::now();
    let programs = build()?;
    let took = began.elapsed();
    // Most of what Python does is done by one thread, so it goes beside the tests.
    let python = environment.map(|environment| {
        std::thread::spawn(|| {
            environment.join().map_err(|_| anyhow!("the environment of Python: a panic"))??;
            python::check()
        })
    });
    let rust = run_rust(&programs, filters, took);
    let python = python.map_or(Ok(()), |python| {
        python.join().map_err(|_| anyhow!("the checks of Python: a panic")).flatten()
    });
    match (rust, python) {
        (Err(rust), Err(python)) => bail!("{rust:#}; and of Python: {python:#}"),
        (rust, python) => rust.and(python),
    }
}

fn run_rust(programs: &[Program], filters: &[String], built_in: Duration) -> Result<()> {
    let mut tests = Vec::new();
    for program in programs {
        tests.extend(list(program)?.into_iter().map(|name| Test { program, name }));
    }
    if !filters.is_empty() {
        tests.retain(|test| filters.iter().any(|filter| test.full_name().contains(filter.as_str())));
    }
    ensure!(!tests.is_empty(), "no test has such a name");
    eprintln!("{} tests in {} programs, built in {} s", tests.len(), programs.len(), built_in.as_secs());

    let began = Instant::now();
    let mut outcomes = run_at_once(&tests);
    report(&mut outcomes, began.elapsed());
    let n_failed = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
    ensure!(n_failed == 0, "{n_failed} of {} tests failed", outcomes.len());
    if filters.is_empty() {
        run(cargo().args(["test", "--workspace", "--release", "--doc", "--quiet"]))?;
    }
    Ok(())
}

/// Builds all programs of tests.
fn build() -> Result<Vec<Program>> {
    let output = cargo()
        .args([
            "test",
            "--workspace",
            "--release",
            // What has tests by its manifest, libraries and programs too.
            "--tests",
            "--no-run",
            "--message-format=json-render-diagnostics",
        ])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo test --no-run")?;
    ensure!(output.status.success(), "the tests do not build");
    let messages = String::from_utf8(output.stdout).context("what cargo prints")?;
    messages.lines().filter_map(|line| program(line).transpose()).collect()
}

/// The program of tests that a message of cargo tells of, if it does.
fn program(message: &str) -> Result<Option<Program>> {
    let message: Value = serde_json::from_str(message).with_context(|| format!("from cargo: {message}"))?;
    let (true, Some(executable), Some(manifest)) = (
        message["profile"]["test"].as_bool() == Some(true),
        message["executable"].as_str(),
        message["manifest_path"].as_str(),
    ) else {
        return Ok(None);
    };
    let folder = Path::new(manifest).parent().context("a manifest stands in a folder")?.to_owned();
    let package = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Some(Program { package, executable: executable.into(), folder }))
}

/// The names of a program's tests. None may be ignored: a test runs, or it says why it cannot.
fn list(program: &Program) -> Result<Vec<String>> {
    let printed =
        |more: &[&str]| output_of(program.command().args(["--list", "--format", "terse"]).args(more));
    let names = |text: String| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect()
    };
    let ignored = names(printed(&["--ignored"])?);
    ensure!(ignored.is_empty(), "{}: ignored tests: {}", program.package, ignored.join(", "));
    Ok(names(printed(&[])?))
}

impl Program {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

impl Test<'_> {
    fn full_name(&self) -> String {
        format!("{}::{}", self.program.package, self.name)
    }

    fn run(&self) -> Outcome {
        let began = Instant::now();
        let failure = self.outcome(began).unwrap_or_else(|error| Some(format!("{error:#}")));
        Outcome { name: self.full_name(), took: began.elapsed(), failure }
    }

    fn outcome(&self, began: Instant) -> Result<Option<String>> {
        let folder = target().join("tests");
        std::fs::create_dir_all(&folder)?;
        let log = folder.join(format!("{}.log", self.full_name().replace("::", ".")));
        let file = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
        let mut child = (self.program.command())
            .args(["--exact", &self.name, "--nocapture", "--test-threads=1"])
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        let ending = wait(&mut child, began)?;
        Ok(match ending {
            None => None,
            Some(ending) => Some(format!("{}{ending}", String::from_utf8_lossy(&std::fs::read(&log)?))),
        })
    }
}

/// Waits for the end; `None` if it is a good one.
fn wait(child: &mut Child, began: Instant) -> Result<Option<String>> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((!status.success()).then(|| status.to_string()));
        }
        if began.elapsed() > MAX_TIME {
            child.kill()?;
            child.wait()?;
            return Ok(Some(format!("ended after {} s", MAX_TIME.as_secs())));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Runs the tests in their order on all cores.
fn run_at_once(tests: &[Test]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let n_workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = test.run();
                    let mut outcomes = outcomes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    if outcome.failure.is_some() {
                        eprintln!("FAILED {}", outcome.name);
                    }
                    outcomes.push(outcome);
                    progress(outcomes.len(), tests.len());
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// How far it is, on a terminal only.
fn progress(n_done: usize, n_tests: usize) {
    use std::io::IsTerminal as _;
    if std::io::stderr().is_terminal() {
        eprint!("\r{n_done} of {n_tests} ");
        if n_done == n_tests {
            eprint!("\r{:20}\r", "");
        }
    }
}

fn report(outcomes: &mut [Outcome], took: Duration) {
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    for Outcome { name, failure, .. } in &*outcomes {
        if let Some(failure) = failure {
            println!("\n---- {name}\n{}", failure.trim_end());
        }
    }
    let sum: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    println!(
        "\n{} tests in {:.1} s, {:.1} s one after the other. The slowest:",
        outcomes.len(),
        took.as_secs_f64(),
        sum.as_secs_f64()
    );
    for Outcome { name, took, .. } in outcomes.iter().take(SLOWEST) {
        println!("{:7.1} s  {name}", took.as_secs_f64());
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn programs_are_read_from_what_cargo_prints() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/cli/Cargo.toml",
            "profile":{"test":true},"executable":"/t/cli-1"}"#;
        let program = program(message).unwrap().unwrap();
        assert_eq!((program.package.as_str(), program.folder.as_path()), ("cli", Path::new("/r/crates/cli")));
        for other in [r#"{"reason":"build-finished"}"#, r#"{"profile":{"test":false},"executable":"/t/x"}"#] {
            assert!(super::program(other).unwrap().is_none());
        }
        assert!(super::program("warning: not JSON").is_err());
    }
}
