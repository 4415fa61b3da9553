//! The kernels of `anygram-cuda` on a device, beside the aims of the project, the figures of the paper, and our own engine of the CPU on the same work.
//!
//! Every line is checked against the engine of the CPU first: states row by row, masks word by word. The device's times are those of its own events
//! around the launches of a call, and of the host's clock around the whole call; the CPU's are of one thread. All are medians. `--shim --tiny` is the same program on
//! the CPU, with sizes so small that a test runs it: its answers count, its times mean nothing.

mod batch;
mod report;
mod sets;
mod steps;
mod texts;
mod workers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anygram_cuda::{ChartError, Charts, DeviceError, PoolOptions, SharedCharts, ShimOptions};
use anyhow::{Result, ensure};

use crate::measure::median;

#[derive(clap::Args)]
pub struct Args {
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
    /// Only these parts: steps, batch, sets, texts, workers (repeatable; `workers` takes `texts`).
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Only say which device there is.
    #[arg(long)]
    name: bool,
    /// Where the tables go; between the marks `measured`, if the file has them.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Where the drawings go: `NAME-steps.svg` and `NAME-workers.svg`.
    #[arg(long, value_name = "NAME")]
    svg: Option<PathBuf>,
    /// Where to write what `auto` goes by: a line for each kind of work, with how many times as fast as one core the device is.
    #[arg(long, value_name = "FILE")]
    ratios: Option<PathBuf>,
    /// What stands above the tables: date, driver, commit.
    #[arg(long, value_name = "TEXT", default_value = "")]
    heading: String,
}

/// How much is measured, and where.
pub struct Setting {
    /// A device by its number, or the shim.
    device: Option<usize>,
    shared: PathBuf,
    runs: usize,
    /// Lengths of dense charts.
    lengths: Vec<usize>,
    /// Symbols, left children and rules of the random grammar.
    random: (usize, usize, usize),
    /// Sequences of a batch, tokens before it, tokens of its vocabulary.
    batch: (usize, usize, usize),
    workers: Vec<usize>,
    /// Levels of trees that are searched in breadth.
    levels: std::ops::RangeInclusive<usize>,
    /// Texts of each grammar, and tokens of each.
    texts: (usize, usize),
    pool: PoolOptions,
}

impl Setting {
    fn full(device: Option<usize>, shared: PathBuf) -> Self {
        Self {
            device,
            shared,
            runs: 21,
            lengths: vec![100, 320, 1_000],
            random: (300, 103, 3_219),
            batch: (256, 100, 151_669),
            workers: vec![1, 2, 4, 8, 16, 32, 64, 128],
            levels: 0..=4,
            texts: (40, 200),
            pool: PoolOptions {
                pages: 64 << 10,
                sequences: 320,
                max_pages: 4_096,
                tree_words: 512 << 20,
                ..PoolOptions::default()
            },
        }
    }

    fn tiny(device: Option<usize>, shared: PathBuf) -> Self {
        let pool = PoolOptions {
            pages: 4_096,
            page_words: 1_024,
            sequences: 16,
            max_pages: 1_024,
            max_states: 1_024,
            threads: 64,
            workers: 2,
            stack_words: 64 << 10,
            arena_words: 256 << 10,
            queue: 4_096,
            tree_words: 64 << 20,
            team_blocks: 3,
            team_from: 40,
            bulk_loads: false,
        };
        Self {
            runs: 2,
            lengths: vec![40],
            random: (30, 10, 80),
            batch: (3, 6, 400),
            workers: vec![1, 3],
            levels: 0..=1,
            texts: (1, 6),
            pool,
            ..Self::full(device, shared)
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

/// One kind of work, in microseconds.
#[derive(Clone, Debug)]
pub struct Row {
    work: String,
    /// What `auto` would go by this for, if anything.
    kind: Option<&'static str>,
    /// What the project aims at on an H200, and what the paper has on an H100.
    aim: Option<f64>,
    paper: Option<f64>,
    /// Times of the device's events, of the host's clock around the call, and of the engine of the CPU for the same work.
    device: f64,
    call: f64,
    cpu: Option<f64>,
}

/// A curve: what it is of, and points.
#[derive(Clone, Debug)]
pub struct Curve {
    group: String,
    label: String,
    points: Vec<(f64, f64)>,
}

/// All that was measured.
#[derive(Default)]
pub struct Measured {
    device: String,
    rows: Vec<Row>,
    /// Work on the way to a first mask, in milliseconds.
    preparations: Vec<(String, String, f64)>,
    steps: Vec<Curve>,
    workers: Vec<Curve>,
    /// What was not measured, and why.
    left_out: Vec<String>,
}

/// Times of the same work on the device, as it counts and as the host does, and on the CPU.
#[derive(Default)]
struct Times {
    device: Vec<f64>,
    call: Vec<f64>,
    cpu: Vec<f64>,
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
        let cpu = (!self.cpu.is_empty()).then(|| median(&self.cpu));
        let (device, call) = (median(&self.device), median(&self.call));
        Row { work: work.into(), kind: None, aim: None, paper: None, device, call, cpu }
    }
}

/// Levels of trees that are searched in breadth, where that is not what is measured.
const LEVELS: usize = 2;

pub fn run(args: &Args) -> Result<()> {
    let device = (!args.shim).then_some(args.device);
    let setting = if args.tiny { Setting::tiny } else { Setting::full }(device, args.shared.clone());
    if args.name {
        println!("{}", setting.charts(PoolOptions::default())?.device_name());
        return Ok(());
    }
    let measured = measure(&setting, &args.only)?;
    println!("{}", report::markdown(&measured, "", None));
    report::write(&measured, args)
}

/// Measures some parts; all if none is named.
pub fn measure(setting: &Setting, only: &[String]) -> Result<Measured> {
    let start = Instant::now();
    let device = setting.charts(setting.pool)?.device_name();
    let time = start.elapsed().as_secs_f64() * 1e3;
    let mut measured = Measured { device, ..Measured::default() };
    measured.preparations.push(("any".to_owned(), "device, kernels and pool".to_owned(), time));
    let wants = |part: &str| only.is_empty() || only.iter().any(|name| name == part);
    if wants("steps") {
        steps::measure(setting, &mut measured)?;
    }
    if wants("batch") {
        batch::measure(setting, &mut measured)?;
    }
    if wants("sets") {
        sets::measure(setting, &mut measured)?;
    }
    if wants("texts") {
        let works = texts::measure(setting, &mut measured)?;
        if wants("workers") {
            workers::measure(setting, &works, &mut measured)?;
        }
    }
    ensure!(!measured.rows.is_empty(), "nothing was measured");
    Ok(measured)
}

/// Whether a device refuses a variant of the kernels, which is then left out.
fn is_refused(error: &ChartError) -> bool {
    matches!(error, ChartError::Device(DeviceError::NoDevice { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measurements_run_on_the_shim() {
        if !anygram_cuda::shim::is_built() {
            let notice = "the measurements of the kernels: no C++ compiler was found when the tests were built";
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{notice}");
            eprintln!("NOT TESTED: {notice}");
            return;
        }
        // Real texts take the shared data and more time: `gpu --shim --tiny` runs them too.
        let measured = measure(&Setting::tiny(None, PathBuf::new()), &[]).unwrap();
        let works: Vec<&str> = measured.rows.iter().map(|row| row.work.as_str()).collect();
        for part in ["saturated", "several blocks", "256 rows", "a mask each", "small SQL"] {
            assert!(works.iter().any(|work| work.contains(part)), "{part} is not in {works:?}");
        }
        assert!(!measured.steps.is_empty() && !measured.workers.is_empty());
        let table = report::markdown(&measured, "head", Some("gpu"));
        assert!(table.contains("| aim") && table.contains("gpu-steps.svg"), "{table}");
    }
}
