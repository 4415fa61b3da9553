//! Tables and drawings of what was measured.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Args, Curve, Measured, Row};
use crate::draw::{self, Line};
use crate::measure::us;

/// What a file has around the place of the tables.
const MARKS: [&str; 2] = ["<!-- measured: begin -->", "<!-- measured: end -->"];

fn cell(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), us)
}

/// The tables in Markdown, and a reference to drawings of that name.
pub fn markdown(measured: &Measured, heading: &str, drawings: Option<&str>) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    line(format!("{heading} Device: {}.\n", measured.device).trim_start().to_owned());
    line("| work | aim (H200) | paper (H100) | device, µs | call, µs | one core, µs | core / device |".to_owned());
    line("|---|---|---|---|---|---|---|".to_owned());
    for Row { work, aim, paper, device, call, cpu, .. } in &measured.rows {
        let ratio = cpu.map_or("-".to_owned(), |cpu| format!("{:.2}", cpu / device));
        let [aim, paper, cpu] = [aim, paper, cpu].map(|value| cell(*value));
        line(format!("| {work} | {aim} | {paper} | {} | {} | {cpu} | {ratio} |", us(*device), us(*call)));
    }
    line("\n| preparation | | ms |\n|---|---|---|".to_owned());
    for (work, what, time) in &measured.preparations {
        let time = if *time > 0.0 { format!("{time:.1}") } else { "-".to_owned() };
        line(format!("| {work} | {what} | {time} |"));
    }
    for (name, about, curves) in [
        ("steps", "The time of a step against the number of states", &measured.steps),
        ("workers", "The time of a mask against the number of blocks that search", &measured.workers),
    ] {
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
    if !measured.left_out.is_empty() {
        line(format!("\nLeft out: {}.", measured.left_out.join("; ")));
    }
    text
}

/// Writes what the options ask for.
pub fn write(measured: &Measured, args: &Args) -> Result<()> {
    if let Some(prefix) = &args.svg {
        for (name, label, curves) in
            [("steps", "states before the step", &measured.steps), ("workers", "blocks that search", &measured.workers)]
        {
            if curves.is_empty() {
                continue;
            }
            let mut path = prefix.clone().into_os_string();
            path.push(format!("-{name}.svg"));
            let line = |curve: &Curve| Line {
                group: curve.group.clone(),
                label: curve.label.clone(),
                is_dashed: curve.label.ends_with("step of the parser"),
                points: curve.points.clone(),
            };
            draw::lines(Path::new(&path), label, "µs (median)", &curves.iter().map(line).collect::<Vec<_>>())?;
        }
    }
    if let Some(path) = &args.markdown {
        let drawings = args.svg.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let table = markdown(measured, &args.heading, drawings.as_deref());
        let old = std::fs::read_to_string(path).unwrap_or_default();
        let text =
            match old.split_once(MARKS[0]).and_then(|(before, rest)| Some((before, rest.split_once(MARKS[1])?.1))) {
                Some((before, after)) => format!("{before}{}\n\n{table}\n{}{after}", MARKS[0], MARKS[1]),
                None => table,
            };
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.ratios {
        std::fs::write(path, ratios(measured, &args.heading)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The least advantage of the device in each kind of work.
fn ratios(measured: &Measured, heading: &str) -> String {
    let mut text = format!("# {heading} Device: {}.\n", measured.device);
    let mut kinds: Vec<&str> = measured.rows.iter().filter_map(|row| row.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        // The host's clock, since whoever chooses an engine waits for the call.
        let of = measured.rows.iter().filter(|row| row.kind == Some(kind));
        let least = of.filter_map(|row| Some(row.cpu? / row.call)).fold(f64::MAX, f64::min);
        let _ = writeln!(text, "{kind} {least:.2}");
    }
    text
}
