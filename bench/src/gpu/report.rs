//! Tables and drawings of the measurements, from files of results.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::journal::{self, Curve, Record, Row, Run};
use crate::draw::{self, Line};
use crate::measure::us;

#[derive(clap::Args)]
pub struct Args {
    /// Files of results, as `gpu --results` and `gpu-check` write them; of the same work the last counts.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the tables go: between the marks `measured`, if the file has them. Without it they are printed.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Where the drawings go: `NAME-steps.svg` and `NAME-workers.svg`.
    #[arg(long, value_name = "NAME")]
    svg: Option<PathBuf>,
    /// Where to write what `auto` goes by: a line for each kind of work, with how many times as fast as one
    /// core the device is.
    #[arg(long, value_name = "FILE")]
    ratios: Option<PathBuf>,
}

/// What a file has around the place of the tables.
const MARKS: [&str; 2] = ["<!-- measured: begin -->", "<!-- measured: end -->"];

pub fn run(args: &Args) -> Result<()> {
    let mut records = Vec::new();
    for file in &args.files {
        records.extend(journal::read(file)?);
    }
    ensure!(records.iter().any(|record| matches!(record, Record::Row(_))), "the files have no measurement");
    if let Some(prefix) = &args.svg {
        draw(&records, prefix)?;
    }
    let drawings =
        args.svg.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let table = markdown(&records, drawings.as_deref());
    match &args.markdown {
        None => println!("{table}"),
        Some(path) => {
            let old = std::fs::read_to_string(path).unwrap_or_default();
            let parts = old
                .split_once(MARKS[0])
                .and_then(|(before, rest)| Some((before, rest.split_once(MARKS[1])?.1)));
            let text = match parts {
                Some((before, after)) => format!("{before}{}\n\n{table}\n{}{after}", MARKS[0], MARKS[1]),
                None => table,
            };
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
        }
    }
    if let Some(path) = &args.ratios {
        std::fs::write(path, ratios(&records)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn cell(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), us)
}

/// The devices, drivers and commits of the results.
fn heading(records: &[Record]) -> String {
    let mut runs: Vec<String> = Vec::new();
    for record in records {
        if let Record::Run(Run { device, driver, cpu, commit, date, is_quick }) = record {
            let day = date.split_once(' ').map_or(&date[..], |(day, _)| day);
            let quick = if *is_quick { ", a quick run" } else { "" };
            let run = format!("{device}, driver {driver}, host {cpu}; {day}, commit {commit}{quick}");
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
    }
    runs.join(". ")
}

/// The rows, of the same work the last.
fn rows(records: &[Record]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = Vec::new();
    for record in records {
        let Record::Row(row) = record else { continue };
        match rows.iter_mut().find(|known| known.work == row.work) {
            Some(known) => *known = row,
            None => rows.push(row),
        }
    }
    rows
}

fn curves<'a>(records: &'a [Record], figure: &str) -> Vec<&'a Curve> {
    let mut curves: Vec<&Curve> = Vec::new();
    for record in records {
        let Record::Curve(curve) = record else { continue };
        if curve.figure != figure {
            continue;
        }
        match curves.iter_mut().find(|known| known.label == curve.label) {
            Some(known) => *known = curve,
            None => curves.push(curve),
        }
    }
    curves
}

/// The figures: their names, and what they show.
const FIGURES: [(&str, &str, &str); 2] = [
    ("steps", "The time of a step against the number of states", "states before the step"),
    ("workers", "The time of a mask against the number of blocks that search", "blocks that search"),
];

/// The tables in Markdown, and a reference to drawings of that name.
pub fn markdown(records: &[Record], drawings: Option<&str>) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    line(format!("{}.\n", heading(records)));
    let columns = "| work | aim (H200) | paper (H100) | device, µs | p90 | call, µs | one core, µs | unseen \
                   | core / call |";
    line(format!("{columns}\n|---|---|---|---|---|---|---|---|---|"));
    for Row { work, aim, paper, device, device_p90, call, cpu, cpu_unseen, .. } in rows(records) {
        // By the host's clock: whoever chooses an engine waits for the call.
        let ratio = cpu.map_or("-".to_owned(), |cpu| format!("{:.2}", cpu / call));
        let [aim, paper, cpu, unseen] = [aim, paper, cpu, cpu_unseen].map(|value| cell(*value));
        let [device, p90, call] = [device, device_p90, call].map(|value| us(*value));
        line(format!(
            "| {work} | {aim} | {paper} | {device} | {p90} | {call} | {cpu} | {unseen} | {ratio} |"
        ));
    }
    line("\n| preparation | | ms |\n|---|---|---|".to_owned());
    for record in records {
        if let Record::Preparation { of, what, ms, .. } = record {
            line(format!("| {of} | {what} | {} |", ms.map_or("-".to_owned(), |ms| format!("{ms:.1}"))));
        }
    }
    for (name, about, _) in FIGURES {
        let curves = curves(records, name);
        if curves.is_empty() {
            continue;
        }
        line(format!("\n{about} (medians, µs):\n"));
        for Curve { label, points, .. } in curves {
            let points = points.iter().map(|(x, y)| format!("{x:.0}: {}", us(*y))).collect::<Vec<_>>();
            line(format!("- {label}: {}", points.join(", ")));
        }
        if let Some(drawings) = drawings {
            line(format!("\n![{about}]({drawings}-{name}.svg)"));
        }
    }
    checks(records, &mut line);
    crate::wrap::wrapped(&text)
}

/// The suite, the sanitizers, and what failed or was left out.
fn checks(records: &[Record], line: &mut dyn FnMut(String)) {
    let (mut left_out, mut failed): (BTreeMap<&str, Vec<&str>>, Vec<String>) = Default::default();
    for record in records {
        match record {
            Record::Suite { passed, failed, not_run, seconds } => {
                let end =
                    not_run.as_ref().map_or(String::new(), |why| format!("; not run to its end: {why}"));
                let names =
                    if failed.is_empty() { String::new() } else { format!(" ({})", failed.join(", ")) };
                let n_failed = failed.len();
                line(format!(
                    "\nTests on the device: {passed} passed, {n_failed} failed{names}{end}; {seconds:.0} s."
                ));
            }
            Record::Sanitizer { tool, outcome, seconds, .. } => {
                line(format!("\ncompute-sanitizer, {tool}: {outcome}; {seconds:.0} s."));
            }
            Record::LeftOut { part, why } => left_out.entry(why).or_default().push(part),
            Record::Failed { part, why } => failed.push(format!("{part}: {why}")),
            _ => {}
        }
    }
    for (why, parts) in left_out {
        line(format!("\nLeft out, {why}: {}.", parts.join(", ")));
    }
    for failure in failed {
        line(format!("\nFAILED: {failure}."));
    }
}

fn draw(records: &[Record], prefix: &Path) -> Result<()> {
    for (name, _, x_label) in FIGURES {
        let curves = curves(records, name);
        if curves.is_empty() {
            continue;
        }
        let mut path = prefix.to_owned().into_os_string();
        path.push(format!("-{name}.svg"));
        let line = |curve: &&Curve| Line {
            group: curve.group.clone(),
            label: curve.label.clone(),
            is_dashed: curve.label.ends_with("step of the parser"),
            points: curve.points.clone(),
        };
        draw::lines(Path::new(&path), x_label, "µs (median)", &curves.iter().map(line).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// The least advantage of the device in each kind of work: how many times as fast as one core, by the host's
/// clock. Kinds with a wrong answer have none.
pub fn ratios(records: &[Record]) -> String {
    let mut text = format!("# {}.\n", heading(records));
    let failed: Vec<&str> = records.iter().filter_map(super::failed).collect();
    let mut least: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows(records) {
        let (Some(kind), Some(cpu)) = (&row.auto, row.cpu) else { continue };
        let ratio = if failed.contains(&&row.part[..]) { 0.0 } else { cpu / row.call };
        least.entry(kind).and_modify(|least| *least = least.min(ratio)).or_insert(ratio);
    }
    for (kind, ratio) in least {
        let _ = writeln!(text, "{kind} {ratio:.2}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_same_work_the_last_counts_and_failures_have_no_advantage() {
        let row = |part: &str, work: &str, auto: &str, call, cpu| {
            let [part, work] = [part, work].map(str::to_owned);
            Record::Row(Row {
                part,
                work,
                auto: Some(auto.to_owned()),
                call,
                cpu: Some(cpu),
                ..Row::default()
            })
        };
        let mut records = vec![
            Record::Run(Run { device: "a device".to_owned(), ..Run::default() }),
            row("texts/a", "a", "output", 10.0, 1.0),
            row("texts/a", "a", "output", 10.0, 20.0),
            row("texts/b", "b", "output", 10.0, 30.0),
            row("batch", "c", "batch 4", 10.0, 30.0),
        ];
        assert_eq!(ratios(&records).lines().skip(1).collect::<Vec<_>>(), ["batch 4 3.00", "output 2.00"]);
        records.push(Record::Failed { part: "batch".to_owned(), why: "a wrong mask".to_owned() });
        assert_eq!(ratios(&records).lines().skip(1).collect::<Vec<_>>(), ["batch 4 0.00", "output 2.00"]);
        let table = markdown(&records, None);
        assert!(
            table.contains("FAILED: batch: a wrong mask") && table.matches("| a |").count() == 1,
            "{table}"
        );
    }
}
