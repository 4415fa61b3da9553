//! Draws the diagrams of the documentation.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// One line of a drawing, and a dash for what is compared with.
pub struct Line {
    /// Lines of one group have one colour.
    pub group: String,
    pub label: String,
    pub is_dashed: bool,
    pub points: Vec<(f64, f64)>,
}

const COLORS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
];

/// Draws lines into an SVG file, both axes logarithmic: points that are not above zero are left out.
pub fn lines(path: &Path, x_label: &str, y_label: &str, lines: &[Line]) -> Result<()> {
    try_lines(path, x_label, y_label, lines).map_err(|error| anyhow!("{}: {error}", path.display()))
}

/// A power of ten, which arithmetic may have left a little beside it.
fn tick(value: &f64) -> String {
    let power = value.log10().round() as i32;
    if (-2..=5).contains(&power) { format!("{}", 10f64.powi(power)) } else { format!("1e{power}") }
}

fn try_lines(
    path: &Path,
    x_label: &str,
    y_label: &str,
    lines: &[Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let points = |line: &Line| -> Vec<(f64, f64)> {
        line.points.iter().copied().filter(|point| point.0 > 0.0 && point.1 > 0.0).collect()
    };
    let lines: Vec<&Line> = lines.iter().filter(|line| !points(line).is_empty()).collect();
    let all: Vec<(f64, f64)> = lines.iter().flat_map(|line| points(line)).collect();
    if all.is_empty() {
        return Err("nothing to draw".into());
    }
    let bounds = |get: fn(&(f64, f64)) -> f64| {
        let values = all.iter().map(get);
        values.clone().fold(f64::MAX, f64::min)..values.fold(f64::MIN, f64::max) * 1.1
    };
    // Lines end where the key begins, on the right.
    const LINES: f64 = 0.66;
    let lengths = bounds(|point| point.0);
    let right = lengths.start * (lengths.end / lengths.start).powf(1.0 / LINES);
    let area = SVGBackend::new(path, (1_000, 560)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((lengths.start..right).log_scale(), bounds(|point| point.1).log_scale())?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(x_label).y_desc(y_label).x_label_formatter(&tick).y_label_formatter(&tick);
    mesh.light_line_style(WHITE).draw()?;
    let mut groups: Vec<&str> = lines.iter().map(|line| line.group.as_str()).collect();
    groups.dedup();
    for line in lines {
        let at = groups.iter().position(|&group| group == line.group).unwrap_or(0);
        let color = COLORS[at % COLORS.len()];
        let key = move |(x, y): (i32, i32)| vec![(x, y), (x + 18, y)];
        if line.is_dashed {
            let thin = color.mix(0.7).stroke_width(1);
            let series = DashedLineSeries::new(points(line), 6, 4, thin);
            chart.draw_series(series)?.label(&line.label).legend(move |at| PathElement::new(key(at), thin));
        } else {
            let style = color.stroke_width(2);
            let series = LineSeries::new(points(line), style);
            chart.draw_series(series)?.label(&line.label).legend(move |at| PathElement::new(key(at), style));
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
