//! Times and their summaries.

use cpu_time::ThreadTime;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What work returns, and the microseconds of CPU time that it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = ThreadTime::now();
    let result = work();
    (result, start.elapsed().as_secs_f64() * 1e6)
}

/// What a share of the values is not above; of none, zero.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((share * sorted.len() as f64) as usize).or(sorted.last()).copied().unwrap_or(0.0)
}

pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Tells on a terminal how many of so many are done.
pub fn progress(n: usize, what: &str) -> ProgressBar {
    let style = format!("{{elapsed_precise}} {{bar:40}} {{pos}} of {{len}} {what}, {{wide_msg}}");
    let style = ProgressStyle::with_template(&style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(n as u64), ProgressDrawTarget::stderr_with_hz(4)).with_style(style)
}

/// Prints rows in columns, the first flush left.
pub fn print_table(heading: &str, columns: &[&str], rows: &[Vec<String>]) {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([columns[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    };
    println!("\n{heading}\n");
    line(columns.to_vec());
    rows.iter().for_each(|row| line(row.iter().map(String::as_str).collect()));
}

/// A number of microseconds, shortly.
pub fn us(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}
