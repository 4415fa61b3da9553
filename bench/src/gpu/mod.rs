//! Measures the kernels of `anygram-cuda` on a device, beside the aims of the project, the figures of the
//! paper, and our own CPU engine on the same work.
//!
//! The parts run in order, the most important first; each appends its results to a file as soon as it has
//! them ([`journal`]). Every answer is checked against the CPU engine first: states row by row, masks word by
//! word. The device's times are those of its own events around the launches of a call, and of the host's
//! clock around the whole call; the CPU's times are of one thread. All are medians. `--shim --tiny` runs the
//! same program on the CPU, with sizes so small that a test runs it: its answers count, its times mean
//! nothing.
//!
//! [`check`] runs all of it on a machine that has a driver and nothing else, and [`report`] turns the file
//! into the tables of `docs/gpu.md`.

mod batch;
pub mod check;
mod journal;
pub mod report;
mod sets;
mod steps;
mod sweep;
mod texts;
mod workers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anygram_cuda::output::OutputError;
use anygram_cuda::{ChartError, Charts, DeviceError, PoolOptions, SharedCharts, ShimOptions};
use anyhow::{Result, bail, ensure};

use crate::measure::{median, quantile};
use journal::{Curve, Journal, Record, Row, Run};

/// The exit status of a process that lost its device, so that a new one has to go on.
const LOST: i32 = 3;

/// How much is measured, and where.
#[derive(clap::Args, Clone, Debug)]
pub struct Size {
    /// The folder with the shared data; what is not there is left out.
    #[arg(long, value_name = "FOLDER", default_value = "../shared")]
    shared: PathBuf,
    /// The number of the device.
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// The kernels on the CPU, by the shim, instead: answers are checked, times mean nothing.
    #[arg(long)]
    shim: bool,
    /// Sizes that the shim can do in seconds.
    #[arg(long)]
    tiny: bool,
    /// Fewer parts, fewer runs.
    #[arg(long)]
    quick: bool,
    /// Only parts whose name begins so (repeatable; `--list` prints the names).
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
}

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    size: Size,
    /// Prints the names of the parts.
    #[arg(long)]
    list: bool,
    /// Appends each result to this file, and goes on behind the parts that it has. Without it the tables are
    /// printed at the end.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Begins no part after so many seconds.
    #[arg(long, value_name = "N", default_value_t = f64::INFINITY)]
    seconds: f64,
}

/// What is measured of batches.
#[derive(Clone, Debug)]
struct Batches {
    /// Numbers of sequences, the largest first.
    sizes: Vec<usize>,
    /// Tokens before the step that is measured.
    n: usize,
    /// Tokens of the vocabulary.
    n_tokens: usize,
}

/// How much is measured, and where, in numbers.
pub struct Setting {
    /// A device by its number, or the shim.
    device: Option<usize>,
    shared: PathBuf,
    runs: usize,
    /// Lengths of dense charts.
    lengths: Vec<usize>,
    /// Symbols, left children and rules of the random grammar.
    random: (usize, usize, usize),
    batch: Batches,
    /// What the sweep tries: threads of a block, blocks of a team, blocks that search.
    threads: Vec<u32>,
    teams: Vec<usize>,
    workers: Vec<usize>,
    /// Levels of trees that are searched in breadth.
    levels: std::ops::RangeInclusive<usize>,
    /// Texts of each grammar, and tokens of each.
    texts: (usize, usize),
    pool: PoolOptions,
    is_quick: bool,
}

impl Setting {
    fn new(size: &Size) -> Self {
        let device = (!size.shim).then_some(size.device);
        let full = Self::full(device, size.shared.clone());
        match (size.tiny, size.quick) {
            (true, _) => Self::tiny(full),
            (false, true) => Self {
                runs: 7,
                lengths: vec![100, 1_000],
                batch: Batches { sizes: vec![256], ..full.batch },
                texts: (4, 100),
                is_quick: true,
                ..full
            },
            (false, false) => full,
        }
    }

    fn full(device: Option<usize>, shared: PathBuf) -> Self {
        Self {
            device,
            shared,
            runs: 21,
            lengths: vec![100, 320, 1_000],
            random: (300, 103, 3_219),
            batch: Batches { sizes: vec![256, 64, 16, 1], n: 100, n_tokens: 151_669 },
            threads: vec![64, 128, 256, 512, 1_024],
            teams: vec![1, 4, 8, 16, 32],
            workers: vec![1, 4, 16, 64, 128, 264],
            levels: 0..=4,
            texts: (20, 200),
            pool: PoolOptions {
                pages: 128 << 10,
                sequences: 320,
                max_pages: 4_096,
                tree_words: 512 << 20,
                ..PoolOptions::default()
            },
            is_quick: false,
        }
    }

    fn tiny(full: Self) -> Self {
        let pool = PoolOptions {
            pages: 4_096,
            page_words: 1_024,
            sequences: 16,
            max_pages: 1_024,
            max_states: 1_024,
            threads: 64,
            workers: 2,
            max_workers: 4,
            in_breadth: 8,
            stack_words: 64 << 10,
            arena_words: 256 << 10,
            queue: 4_096,
            tree_words: 64 << 20,
            team_blocks: 3,
            team_from: 40,
            dense_on_device: true,
            bulk_loads: false,
        };
        Self {
            runs: 2,
            lengths: vec![40],
            random: (30, 10, 80),
            batch: Batches { sizes: vec![3, 1], n: 6, n_tokens: 400 },
            threads: vec![32, 64],
            teams: vec![1, 2],
            workers: vec![1, 3],
            levels: 0..=1,
            texts: (1, 6),
            pool,
            ..full
        }
    }

    fn charts(&self, pool: PoolOptions) -> Result<Charts, ChartError> {
        match self.device {
            Some(device) => Charts::on_cuda(device, pool),
            None => Charts::on_shim(ShimOptions::default(), pool),
        }
    }

    fn shared_charts(&self, pool: PoolOptions) -> Result<SharedCharts, ChartError> {
        Ok(Arc::new(Mutex::new(self.charts(pool)?)))
    }
}

fn lock(charts: &SharedCharts) -> MutexGuard<'_, Charts> {
    charts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a part has to work with.
struct Bench<'a> {
    setting: &'a Setting,
    journal: &'a mut Journal,
    /// Grammars joined with vocabularies, which several parts use.
    works: &'a mut texts::Works,
    part: String,
}

impl Bench<'_> {
    fn row(&mut self, row: Row) -> Result<()> {
        self.journal.append(Record::Row(Row { part: self.part.clone(), ..row }))
    }

    fn curve(&mut self, figure: &str, group: &str, label: &str, points: Vec<(f64, f64)>) -> Result<()> {
        let [figure, group, label] = [figure, group, label].map(str::to_owned);
        self.journal.append(Record::Curve(Curve { part: self.part.clone(), figure, group, label, points }))
    }

    /// Work on the way to a first mask; `None` for what is only told.
    fn preparation(&mut self, of: &str, what: &str, ms: Option<f64>) -> Result<()> {
        let [of, what] = [of, what].map(str::to_owned);
        self.journal.append(Record::Preparation { part: self.part.clone(), of, what, ms })
    }
}

type Measure = dyn Fn(&mut Bench<'_>) -> Result<()>;

/// Something to measure, by itself.
struct Part {
    name: String,
    run: Box<Measure>,
}

fn part(name: impl Into<String>, run: impl Fn(&mut Bench<'_>) -> Result<()> + 'static) -> Part {
    Part { name: name.into(), run: Box::new(run) }
}

/// All parts, the most important first: what aims are set for, then what decides options, then what explains.
fn parts(setting: &Setting) -> Vec<Part> {
    let mut parts = vec![part("device", first_launch)];
    parts.extend(texts::parts(setting));
    let sizes = setting.batch.sizes.clone();
    parts.push(part("batch", move |bench| batch::measure(bench, &sizes, bench.setting.pool, "")));
    parts.extend(steps::parts(setting));
    parts.push(part("sets", sets::measure));
    if !setting.is_quick {
        parts.extend(sweep::parts(setting));
        parts.extend(workers::parts(setting));
    }
    parts
}

/// Whether the device answers at all: the time until it does, and what the smallest launch takes.
fn first_launch(bench: &mut Bench<'_>) -> Result<()> {
    let start = Instant::now();
    let mut charts = bench.setting.charts(bench.setting.pool)?;
    bench.preparation("any", "device, kernels and pool", Some(start.elapsed().as_secs_f64() * 1e3))?;
    let (mask, set) = (charts.buffer(&[0])?, charts.buffer(&[5])?);
    let mut times = Times::default();
    for _ in 0..bench.setting.runs {
        times.run(&mut charts, |charts| charts.or_buffers(&mask, &[vec![set]]))?;
    }
    ensure!(charts.read_buffer(&mask)? == [5], "the smallest launch gives another result");
    bench.row(times.row("the smallest launch: one word, one token set"))
}

/// Times of the same work on the device, as it counts and as the host does, and on the CPU.
#[derive(Default)]
struct Times {
    device: Vec<f64>,
    call: Vec<f64>,
    cpu: Vec<f64>,
    /// On texts that the CPU has not read before.
    cpu_unseen: Vec<f64>,
}

impl Times {
    /// Does work on the device.
    fn run<T>(
        &mut self,
        charts: &mut Charts,
        work: impl FnOnce(&mut Charts) -> Result<T, ChartError>,
    ) -> Result<T, ChartError> {
        let start = Instant::now();
        let result = work(charts)?;
        self.call.push(start.elapsed().as_secs_f64() * 1e6);
        self.device.push(charts.last_launch()?);
        Ok(result)
    }

    fn row(&self, work: impl Into<String>) -> Row {
        let [cpu, cpu_unseen] =
            [&self.cpu, &self.cpu_unseen].map(|times| (!times.is_empty()).then(|| median(times)));
        let (device, call) = (median(&self.device), median(&self.call));
        let (runs, device_p90) = (self.device.len(), quantile(&self.device, 0.9));
        Row { work: work.into(), device, call, cpu, cpu_unseen, runs, device_p90, ..Row::default() }
    }
}

/// Levels of trees that are searched in breadth, where that is not what is measured.
const LEVELS: usize = 2;

pub fn run(args: &Args) -> Result<()> {
    let setting = Setting::new(&args.size);
    if args.list {
        parts(&setting).iter().for_each(|part| println!("{}", part.name));
        return Ok(());
    }
    let mut journal = args.results.as_deref().map_or(Ok(Journal::in_memory()), Journal::open)?;
    let end = Instant::now() + std::time::Duration::from_secs_f64(args.seconds.min(1e6));
    let is_lost = measure(&setting, &args.size, &mut journal, end)?;
    if args.results.is_none() {
        println!("{}", report::markdown(&journal.records, None));
    }
    if is_lost {
        std::process::exit(LOST);
    }
    let failed: Vec<&str> = journal.records.iter().filter_map(failed).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn failed(record: &Record) -> Option<&str> {
    match record {
        Record::Failed { part, .. } => Some(part),
        _ => None,
    }
}

/// Measures the parts that the journal does not have yet. True if the device was lost: a process cannot have
/// it back.
fn measure(setting: &Setting, size: &Size, journal: &mut Journal, end: Instant) -> Result<bool> {
    // Held to the end, since the first pool on a device makes its context, and the last one drops it. Small,
    // so that the others have the memory.
    let few =
        PoolOptions { pages: 1, sequences: 1, workers: 1, max_workers: 1, arena_words: 0, ..setting.pool };
    let first = setting.charts(few)?;
    let run = this_run(setting, first.device_name());
    if let Some(before) = journal.run() {
        let same =
            |a: &Run, b: &Run| (&a.device, &a.commit, a.is_quick) == (&b.device, &b.commit, b.is_quick);
        if !same(before, &run) {
            bail!("the results are of {before:?}, this is {run:?}: name another file with --results");
        }
    }
    journal.append(Record::Run(run))?;
    if let Some(part) = journal.unfinished() {
        let why = "the process that measured it ended".to_owned();
        journal.append(Record::Failed { part, why })?;
    }
    let is_lost = measure_parts(setting, size, journal, end)?;
    drop(first);
    let any = journal.records.iter().any(|record| matches!(record, Record::Row(_) | Record::Failed { .. }));
    ensure!(any, "nothing was measured: no part has such a name, or there was no time");
    Ok(is_lost)
}

fn measure_parts(setting: &Setting, size: &Size, journal: &mut Journal, end: Instant) -> Result<bool> {
    let mut works = texts::Works::default();
    for Part { name, run } in parts(setting) {
        let is_wanted = size.only.is_empty() || size.only.iter().any(|only| name.starts_with(only.as_str()));
        if !is_wanted || journal.outcome(&name).is_some() {
            continue;
        }
        if Instant::now() >= end {
            journal.append(Record::LeftOut { part: name, why: "no time was left".to_owned() })?;
            continue;
        }
        eprintln!("{name}");
        journal.append(Record::Begun { part: name.clone() })?;
        let start = Instant::now();
        let mut bench = Bench { setting, journal, works: &mut works, part: name.clone() };
        let result = run(&mut bench);
        let seconds = start.elapsed().as_secs_f64();
        let Err(error) = result else {
            journal.append(Record::Done { part: name, seconds })?;
            continue;
        };
        if error.is::<NotHere>() {
            journal.append(Record::LeftOut { part: name, why: error.to_string() })?;
            continue;
        }
        eprintln!("{name} failed: {error:#}");
        journal.append(Record::Failed { part: name, why: format!("{error:#}") })?;
        if is_lost(&error) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A part that needs what is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotHere(String);

fn is_lost(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let of_chart = match cause.downcast_ref() {
            Some(OutputError::Chart(error)) => Some(error),
            _ => cause.downcast_ref(),
        };
        matches!(of_chart, Some(ChartError::Device(DeviceError::Lost { .. })))
    })
}

/// Whether a device refuses a variant of the kernels, which is then left out.
fn refused<T>(result: Result<T, ChartError>) -> Result<T> {
    match result {
        Err(error @ (ChartError::Device(DeviceError::NoDevice { .. }) | ChartError::Threads { .. })) => {
            Err(NotHere(error.to_string()).into())
        }
        result => Ok(result?),
    }
}

fn this_run(setting: &Setting, device: String) -> Run {
    let first_line = |path: &str, key: &str| {
        let source = std::fs::read_to_string(path).unwrap_or_default();
        let line = source.lines().find(|line| line.contains(key)).unwrap_or("unknown");
        line.rsplit_once(": ").map_or(line, |(_, value)| value).trim().to_owned()
    };
    let date = std::process::Command::new("date").args(["-u", "+%Y-%m-%d %H:%M"]).output();
    Run {
        device,
        driver: first_line("/proc/driver/nvidia/version", "NVRM"),
        cpu: first_line("/proc/cpuinfo", "model name"),
        commit: std::env::var("ANYGRAM_COMMIT").unwrap_or_else(|_| "unknown".to_owned()),
        date: date.map(|date| String::from_utf8_lossy(&date.stdout).trim().to_owned()).unwrap_or_default(),
        is_quick: setting.is_quick,
    }
}

#[cfg(test)]
mod tests {
    use super::journal::Outcome;
    use super::*;

    fn tiny(only: &[&str]) -> Size {
        let only = only.iter().map(|&part| part.to_owned()).collect();
        Size { shared: PathBuf::new(), device: 0, shim: true, tiny: true, quick: false, only }
    }

    /// Whether the kernels can be run here; says so if not, and fails where `CI` is `true`.
    fn can_run() -> bool {
        let is_built = anygram_cuda::shim::is_built();
        if !is_built {
            let notice =
                "the measurements of the kernels: no C++ compiler was found when the tests were built";
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{notice}");
            eprintln!("NOT TESTED: {notice}");
        }
        is_built
    }

    fn measured(only: &[&str]) -> Option<Journal> {
        if !can_run() {
            return None;
        }
        let (size, mut journal) = (tiny(only), Journal::in_memory());
        let end = Instant::now() + std::time::Duration::from_secs(3_600);
        assert!(!measure(&Setting::new(&size), &size, &mut journal, end).unwrap());
        Some(journal)
    }

    #[test]
    fn the_measurements_run_on_the_shim() {
        // Real texts take the shared data and more time: `gpu --shim --tiny` runs them too.
        let Some(journal) = measured(&[]) else { return };
        for part in parts(&Setting::new(&tiny(&[]))) {
            let outcome = journal.outcome(&part.name);
            let is_there = outcome == Some(Outcome::Done) || part.name.contains("TMA");
            let needs_data = ["treebank", "sql"].iter().any(|name| part.name.contains(name));
            let expected = if needs_data { Some(Outcome::LeftOut) } else { Some(Outcome::Done) };
            assert!(is_there || outcome == expected, "{}: {outcome:?} {:?}", part.name, journal.records);
        }
        let table = report::markdown(&journal.records, Some("gpu"));
        assert!(table.contains("| aim") && table.contains("gpu-steps.svg"), "{table}");
        assert!(report::ratios(&journal.records).lines().any(|line| line.starts_with("batch 3 ")));
    }

    #[test]
    fn a_part_that_was_cut_off_is_not_tried_again() {
        if !can_run() {
            return;
        }
        let (size, mut journal) = (tiny(&["device", "sets"]), Journal::in_memory());
        journal.append(Record::Begun { part: "device".to_owned() }).unwrap();
        let end = Instant::now() + std::time::Duration::from_secs(3_600);
        measure(&Setting::new(&size), &size, &mut journal, end).unwrap();
        assert_eq!(
            (journal.outcome("device"), journal.outcome("sets")),
            (Some(Outcome::Failed), Some(Outcome::Done))
        );
        let n = journal.records.len();
        measure(&Setting::new(&size), &size, &mut journal, end).unwrap();
        assert_eq!(journal.records.len(), n + 1, "only that it ran is added");
    }
}
