//! Drawings, as SVG.

use std::collections::BTreeMap;

use plotters::prelude::*;

use super::cells::{At, Cells, FUNCTIONAL, SYNTACTIC, Success};
use super::tables::curves_of;
use crate::EvalError;

/// A line of a panel, with points of x and percent.
struct Line {
    label: String,
    points: Vec<(f64, f64)>,
}

struct Panel {
    title: String,
    lines: Vec<Line>,
}

const COLORS: [RGBColor; 9] = [
    RGBColor(127, 127, 127),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
    RGBColor(31, 119, 180),
    RGBColor(148, 103, 189),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(188, 189, 34),
    RGBColor(140, 86, 75),
];
/// Methods that are drawn; others are in the tables.
const DRAWN: [&str; 7] = [
    "none",
    "forced-sequential",
    "intersection",
    "intersection-with-completion",
    "lookahead",
    "compatible",
    "exact",
];
const WIDTH: u32 = 340;
const HEIGHT: u32 = 260;

/// All drawings that the lines have something for: the name of the file, and its content.
pub(super) fn drawings(cells: &Cells<'_>) -> Result<Vec<(&'static str, String)>, EvalError> {
    let mut drawings = Vec::new();
    let all = [
        ("results-syntactic.svg", by_steps(cells, SYNTACTIC), "syntactic@1, %"),
        ("results-functional.svg", by_steps(cells, FUNCTIONAL), "functional@1, %"),
        ("results-lookahead.svg", by_parameter(cells), "%"),
    ];
    for (name, panels, label) in all {
        if panels.is_empty() {
            continue;
        }
        let mut svg = String::new();
        let fault = |error: Box<dyn std::error::Error>| EvalError::Drawing {
            path: name.into(),
            message: error.to_string(),
        };
        draw(&mut svg, &panels, label).map_err(fault)?;
        drawings.push((name, svg));
    }
    Ok(drawings)
}

/// A panel for each model and task with several numbers of steps.
fn by_steps(cells: &Cells<'_>, success: Success) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (task, model) in cells.pairs() {
        let steps = cells.steps(&task, &model);
        let line = |method: &&str| {
            let point = |&steps: &usize| {
                let at = At { task: task.clone(), model: model.clone(), steps, method: (*method).to_owned() };
                Some((steps as f64, 100.0 * cells.get(&at)?.at_one(success)?.0))
            };
            Line { label: (*method).to_owned(), points: steps.iter().filter_map(point).collect() }
        };
        let lines: Vec<Line> = DRAWN.iter().map(line).collect();
        if lines.iter().any(|line| line.points.len() > 1) {
            panels.push(Panel { title: format!("{model}, {task}"), lines });
        }
    }
    panels
}

/// A panel for each parameter of `lookahead` and model: both shares of each task.
fn by_parameter(cells: &Cells<'_>) -> Vec<Panel> {
    let mut panels: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for curve in curves_of(cells) {
        let name = format!("{}, T = {}: by {}", curve.model, curve.steps, curve.parameter);
        let lines = panels.entry(name).or_default();
        let points = |get: fn(&(usize, f64, f64, f64)) -> f64| {
            curve.points.iter().map(|point| (point.0 as f64, 100.0 * get(point))).collect()
        };
        lines.push(Line { label: format!("{} syntactic", curve.task), points: points(|point| point.1) });
        lines.push(Line { label: format!("{} functional", curve.task), points: points(|point| point.2) });
    }
    panels.into_iter().map(|(title, lines)| Panel { title, lines }).collect()
}

/// Panels side by side, three a row, and a key below.
fn draw(svg: &mut String, panels: &[Panel], label: &str) -> Result<(), Box<dyn std::error::Error>> {
    let n_rows = panels.len().div_ceil(3);
    let n_columns = panels.len().min(3);
    let labels: Vec<&str> = panels[0].lines.iter().map(|line| line.label.as_str()).collect();
    let (width, height) = (WIDTH * n_columns as u32, HEIGHT * n_rows as u32);
    let n_key_rows = labels.len().div_ceil(3) as u32;
    let area = SVGBackend::with_string(svg, (width, height + 20 * n_key_rows + 10)).into_drawing_area();
    area.fill(&WHITE)?;
    let (upper, lower) = area.split_vertically(height);
    for (panel, part) in panels.iter().zip(upper.split_evenly((n_rows, n_columns))) {
        // Evenly spaced, whatever the distances of the values.
        let mut values: Vec<f64> =
            panel.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let place = |value: f64| values.partition_point(|other| *other < value) as i32;
        let mut chart = ChartBuilder::on(&part)
            .margin(8)
            .caption(&panel.title, ("sans-serif", 14))
            .x_label_area_size(28)
            .y_label_area_size(44)
            .build_cartesian_2d(-1..values.len() as i32, 0.0..102.0)?;
        let label_of = |at: usize| values.get(at).map_or(String::new(), |value| format!("{value:.0}"));
        let x = |at: &i32| usize::try_from(*at).map_or(String::new(), label_of);
        chart
            .configure_mesh()
            .y_desc(label)
            .x_label_formatter(&x)
            .x_labels(values.len() + 2)
            .y_labels(6)
            .light_line_style(WHITE)
            .draw()?;
        for (at, line) in panel.lines.iter().enumerate() {
            let color = COLORS[at % COLORS.len()];
            let style = color.stroke_width(if line.label == "exact" { 3 } else { 2 });
            let points: Vec<(i32, f64)> = line.points.iter().map(|point| (place(point.0), point.1)).collect();
            chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
            chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, color.filled())))?;
        }
    }
    for (at, name) in labels.iter().enumerate() {
        let (x, y) = (12 + (at % 3) as i32 * 240, 6 + (at / 3) as i32 * 20);
        let color = COLORS[at % COLORS.len()];
        lower.draw(&PathElement::new([(x, y + 6), (x + 20, y + 6)], color.stroke_width(3)))?;
        lower.draw(&Text::new((*name).to_owned(), (x + 26, y), ("sans-serif", 13)))?;
    }
    area.present()?;
    Ok(())
}
