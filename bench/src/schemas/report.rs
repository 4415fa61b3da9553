//! Tables for people, JSON for programs, and a drawing of the distributions.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::measure::Measured;
use crate::draw::{self, Line};
use crate::masks::engine::OURS;
use crate::masks::pass::Stats;
use crate::masks::report::{commit, cpu, today, versions};
use crate::measure::{print_table, us};

/// Everything.
#[derive(Serialize)]
pub struct Report {
    date: String,
    commit: String,
    cpu: String,
    versions: Vec<String>,
    names: Vec<String>,
    rows: Vec<Row>,
}

/// One schema.
#[derive(Serialize)]
pub struct Row {
    pub id: String,
    pub split: String,
    /// Of its text.
    pub bytes: usize,
    /// By engine.
    pub engines: Vec<Measured>,
}

/// The name of all splits together.
const ALL: &str = "all";

/// A column that is drawn and told: its name, and the values of one engine on a schema.
type Values = fn(&Row, usize) -> Vec<f64>;

impl Report {
    pub fn new(names: Vec<String>, rows: Vec<Row>) -> Self {
        Self { date: today(), commit: commit(), cpu: cpu(), versions: versions(), names, rows }
    }

    pub fn print(&self) {
        println!("{}, {}, {}, {}", self.date, self.commit, self.cpu, self.versions.join(", "));
        self.print_verdicts();
        self.print_refusals();
        let n_common = self.rows.iter().filter(|row| is_common(row)).count();
        let milliseconds =
            [("compile", compile_ms as Values), ("compile and first mask", first_mask_ms as Values)];
        for (name, values) in milliseconds {
            let heading = format!("{name}, ms, of the {n_common} schemas that all engines take");
            self.print_stats(&heading, values, |value| format!("{value:.2}"));
        }
        let microseconds = [
            ("mask", masks as Values),
            ("advance", advances as Values),
            ("mask and advance", both as Values),
        ];
        for (name, values) in microseconds {
            let heading = format!("{name}, µs, on the tokens that all engines have read");
            self.print_stats(&heading, values, us);
        }
        let bytes = [("compiled", compiled as Values), ("after its texts", used as Values)];
        for (name, values) in bytes {
            self.print_stats(&format!("memory, KB, {name}"), values, |value| {
                format!("{:.0}", value / 1024.0)
            });
        }
    }

    /// The splits with their schemas, and all together.
    fn splits(&self) -> Vec<(&str, Vec<&Row>)> {
        let mut splits: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            splits.entry(&row.split).or_default().push(row);
        }
        let mut splits: Vec<_> = splits.into_iter().collect();
        if splits.len() > 1 {
            splits.push((ALL, self.rows.iter().collect()));
        }
        splits
    }

    fn print_verdicts(&self) {
        let columns = [
            "split",
            "engine",
            "schemas",
            "passing",
            "refused",
            "valid refused",
            "invalid allowed",
            "unfinished",
        ];
        let mut cells = Vec::new();
        for (split, rows) in self.splits() {
            for (at, name) in self.names.iter().enumerate() {
                let count = |holds: fn(&Measured) -> bool| {
                    rows.iter().filter(|row| holds(&row.engines[at])).count().to_string()
                };
                cells.push(vec![
                    split.to_owned(),
                    name.clone(),
                    rows.len().to_string(),
                    count(Measured::passes),
                    count(|engine| engine.refused.is_some()),
                    count(|engine| !engine.wrong_valid.is_empty()),
                    count(|engine| !engine.wrong_invalid.is_empty()),
                    count(|engine| engine.unfinished.is_some()),
                ]);
            }
        }
        print_table("schemas", &columns, &cells);
    }

    fn print_refusals(&self) {
        const SHOWN: usize = 12;
        let mut cells = Vec::new();
        for (at, name) in self.names.iter().enumerate() {
            let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
            for refused in self.rows.iter().filter_map(|row| row.engines[at].refused.as_deref()) {
                *kinds.entry(refused.split(':').next().unwrap_or(refused)).or_default() += 1;
            }
            let mut kinds: Vec<_> = kinds.into_iter().collect();
            kinds.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
            let others = kinds.split_off(kinds.len().min(SHOWN));
            let n_others = others.iter().map(|&(_, n)| n).sum();
            kinds.extend((n_others > 0).then_some(("others", n_others)));
            cells.extend(
                kinds.into_iter().map(|(kind, n)| vec![name.clone(), kind.to_owned(), n.to_string()]),
            );
        }
        if !cells.is_empty() {
            print_table("refused schemas, by kind", &["engine", "kind", "schemas"], &cells);
        }
    }

    fn print_stats(&self, heading: &str, values: Values, print: impl Fn(f64) -> String) {
        let mut cells = Vec::new();
        for (split, rows) in self.splits() {
            for (at, name) in self.names.iter().enumerate() {
                let of = |row: &&Row| if is_common(row) { values(row, at) } else { Vec::new() };
                let values: Vec<f64> = rows.iter().flat_map(of).collect();
                let mut row = vec![split.to_owned(), name.clone(), values.len().to_string()];
                row.extend(Stats::of(values).values().map(&print));
                cells.push(row);
            }
        }
        let columns: Vec<&str> = ["split", "engine", "values"].into_iter().chain(Stats::NAMES).collect();
        print_table(heading, &columns, &cells);
    }

    /// Draws which share of schemas or tokens takes longer than a time.
    pub fn draw(&self, path: &Path) -> Result<()> {
        const US: f64 = 1e3;
        let kinds = [("compile", compile_ms as Values, US), ("mask and advance", both as Values, 1.0)];
        let mut lines = Vec::new();
        for (kind, values, unit) in kinds {
            for (at, name) in self.names.iter().enumerate() {
                let rows = self.rows.iter().filter(|row| is_common(row));
                lines.push(Line {
                    group: kind.into(),
                    label: format!("{kind}, {name}"),
                    is_dashed: name != OURS,
                    points: longer(rows.flat_map(|row| values(row, at)).map(|value| value * unit).collect()),
                });
            }
        }
        draw::lines(path, "microseconds", "share that takes longer", &lines)
    }

    /// Where our masks and advances disagree.
    pub fn disagreements(&self) -> impl Iterator<Item = &str> {
        let ours = self.names.iter().position(|name| name == OURS);
        self.rows.iter().filter_map(move |row| row.engines[ours?].disagreement.as_deref())
    }
}

/// The share of values that are greater than each of a few hundred of them.
fn longer(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    const POINTS: f64 = 200.0;
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let steps = (0..=POINTS as u32).map(|step| n.powf(-f64::from(step) / POINTS));
    let point = |share: f64| Some((*values.get(((1.0 - share) * n) as usize)?, share));
    steps.filter_map(point).collect()
}

/// Whether all engines take a schema.
fn is_common(row: &Row) -> bool {
    row.engines.iter().all(|engine| engine.refused.is_none())
}

fn compile_ms(row: &Row, at: usize) -> Vec<f64> {
    vec![row.engines[at].compile_ms]
}

fn first_mask_ms(row: &Row, at: usize) -> Vec<f64> {
    row.engines[at].first_mask_ms.into_iter().collect()
}

fn compiled(row: &Row, at: usize) -> Vec<f64> {
    vec![row.engines[at].compiled_bytes as f64]
}

fn used(row: &Row, at: usize) -> Vec<f64> {
    vec![row.engines[at].used_bytes as f64]
}

/// Steps that all engines have done.
fn steps(row: &Row, at: usize, get: fn(&crate::masks::pass::Step) -> f64) -> Vec<f64> {
    let n_texts = row.engines.iter().map(|engine| engine.steps.len()).min().unwrap_or(0);
    let mut values = Vec::new();
    for text in 0..n_texts {
        let length = row.engines.iter().map(|engine| engine.steps[text].len()).min().unwrap_or(0);
        values.extend(row.engines[at].steps[text][..length].iter().map(get));
    }
    values
}

fn masks(row: &Row, at: usize) -> Vec<f64> {
    steps(row, at, |step| step.mask)
}

/// Those of refused tokens are no advances.
fn advances(row: &Row, at: usize) -> Vec<f64> {
    let mut advances = steps(row, at, |step| step.advance);
    advances.retain(|&advance| advance > 0.0);
    advances
}

fn both(row: &Row, at: usize) -> Vec<f64> {
    steps(row, at, |step| step.mask + step.advance)
}
