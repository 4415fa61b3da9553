//! The tables of generations.

use super::cells::{At, Cell, Cells, FUNCTIONAL, SYNTACTIC, Success};
use super::table::{Table, percent, short};
use crate::Failure;
use crate::estimate::quantile;

/// The papers' k.
const TRIES: [usize; 4] = [1, 3, 5, 10];
/// A step of a model of several billion parameters, in microseconds: what times of constraints are compared
/// with.
const MODEL_STEP_US: f64 = 30_000.0;

fn at(task: &str, model: &str, steps: usize, method: &str) -> At {
    At { task: task.to_owned(), model: model.to_owned(), steps, method: method.to_owned() }
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

/// Syntactic and functional shares by method and number of steps.
pub fn steps(cells: &Cells<'_>) -> String {
    let mut text = String::new();
    for (task, model) in cells.pairs() {
        let steps = cells.steps(&task, &model);
        let columns = steps.iter().map(|steps| format!("T = {steps}"));
        let head =
            ["method".to_owned()].into_iter().chain(columns).chain(["prompts, generations".to_owned()]);
        let mut table = Table::new(head);
        for method in cells.methods(&task, &model) {
            let found: Vec<Option<&Cell>> =
                steps.iter().map(|&steps| cells.get(&at(&task, &model, steps, &method))).collect();
            let sizes: Vec<String> = found
                .iter()
                .map(|cell| {
                    cell.map_or("–".to_owned(), |cell| {
                        format!("{}, {}", cell.n_prompts(), cell.n_generations())
                    })
                })
                .collect();
            let size = if sizes.windows(2).all(|pair| pair[0] == pair[1]) {
                sizes[0].clone()
            } else {
                sizes.join("; ")
            };
            let shares = found.iter().map(|cell| cell.map_or("–".to_owned(), at_one));
            table.row([code(&method)].into_iter().chain(shares).chain([size]));
        }
        text.push_str(&table.markdown(&format!("\n`{model}`, {task}: syntactic@1 / functional@1, %")));
    }
    text
}

fn at_one(cell: &Cell<'_>) -> String {
    let share = |success| {
        let Some((mean, spread)) = cell.at_one(success) else { return "–".to_owned() };
        if spread > 0.0 { format!("{} ± {}", percent(mean), percent(spread)) } else { percent(mean) }
    };
    format!("{} / {}", share(SYNTACTIC), share(FUNCTIONAL))
}

/// Shares with several tries, where there are enough.
pub fn tries(cells: &Cells<'_>) -> String {
    let mut text = String::new();
    for (what, success) in [("syntactic", SYNTACTIC), ("functional", FUNCTIONAL)] {
        let columns = TRIES.iter().map(|k| format!("k = {k}"));
        let head = ["model", "task", "T", "method"].map(str::to_owned).into_iter();
        let mut table = Table::new(head.chain(columns).chain(["prompts".to_owned()]));
        for (task, model) in cells.pairs() {
            for steps in cells.steps(&task, &model) {
                let has_most = |method: &String| {
                    let cell = cells.get(&at(&task, &model, steps, method));
                    cell.is_some_and(|cell| cell.at(TRIES[TRIES.len() - 1], success).is_some())
                };
                for method in cells.methods(&task, &model).into_iter().filter(has_most) {
                    let Some(cell) = cells.get(&at(&task, &model, steps, &method)) else { continue };
                    table.row(tries_of(
                        cell,
                        success,
                        &[code(&model), task.clone(), steps.to_string(), code(&method)],
                    ));
                }
            }
        }
        text.push_str(&table.markdown(&format!("\n{what}@k, %")));
    }
    text
}

fn tries_of(cell: &Cell<'_>, success: Success, first: &[String]) -> Vec<String> {
    let shares: Vec<Option<(f64, usize)>> = TRIES.iter().map(|&k| cell.at(k, success)).collect();
    let n_prompts = shares.iter().flatten().map(|share| share.1).max().unwrap_or(0);
    let shown = shares.iter().map(|share| share.map_or("–".to_owned(), |share| percent(share.0)));
    first.iter().cloned().chain(shown).chain([n_prompts.to_string()]).collect()
}

/// The number of steps of which details are told: the smallest from 8 on.
fn told(cells: &Cells<'_>, task: &str, model: &str) -> Option<usize> {
    let steps = cells.steps(task, model);
    steps.iter().copied().find(|&steps| steps >= 8).or(steps.last().copied())
}

/// Times, questions, log-probabilities and diversity.
pub fn times(cells: &Cells<'_>) -> String {
    let head = [
        "method",
        "ms a generation",
        "model ms",
        "constraint ms",
        "its share",
        "questions",
        "proposals",
        "refused",
        "recovered + rescued",
        "log-probability",
        "diversity",
    ];
    let mut text = String::new();
    for (task, model) in cells.pairs() {
        let Some(steps) = told(cells, &task, &model) else { continue };
        let mut table = Table::new(head);
        for method in cells.methods(&task, &model) {
            let Some(cell) = cells.get(&at(&task, &model, steps, &method)) else { continue };
            let mean =
                |value: &dyn Fn(&crate::Generation) -> f64| cell.mean(|one| Some(value(one))).unwrap_or(0.0);
            let (in_model, in_constraint) = (mean(&|one| one.us.model), mean(&|one| one.us.constraint));
            table.row([
                code(&method),
                short(mean(&|one| one.us.all) / 1e3),
                short(in_model / 1e3),
                short(in_constraint / 1e3),
                format!("{} %", percent(in_constraint / (in_model + in_constraint).max(1e-9))),
                short(mean(&|one| one.asked as f64)),
                short(mean(&|one| one.proposed as f64)),
                short(mean(&|one| one.refused as f64)),
                short(mean(&|one| (one.recovered + one.rescued) as f64)),
                cell.mean(|one| one.log_prob).map_or("–".to_owned(), |mean| format!("{mean:.2}")),
                cell.diversity().map_or("–".to_owned(), |share| format!("{share:.2}")),
            ]);
        }
        text.push_str(&table.markdown(&format!("\n`{model}`, {task}, T = {steps}")));
    }
    text
}

/// LAVE's ablation.
pub fn ablation(cells: &Cells<'_>) -> String {
    let mut table = Table::new([
        "model",
        "task",
        "T",
        "method",
        "syntactic@1 %",
        "functional@1 %",
        "ms a generation",
        "prompts, generations",
    ]);
    for (task, model) in cells.pairs() {
        let Some(steps) = told(cells, &task, &model) else { continue };
        let without = at(&task, &model, steps, "lookahead-without-recovery");
        if cells.get(&without).is_none() {
            continue;
        }
        for method in ["none", "lookahead-without-recovery", "lookahead", "lookahead:published"] {
            let Some(cell) = cells.get(&at(&task, &model, steps, method)) else { continue };
            let share = |success| cell.at_one(success).map_or("–".to_owned(), |share| percent(share.0));
            table.row([
                code(&model),
                task.clone(),
                steps.to_string(),
                code(method),
                share(SYNTACTIC),
                share(FUNCTIONAL),
                short(cell.mean(|one| Some(one.us.all / 1e3)).unwrap_or(0.0)),
                format!("{}, {}", cell.n_prompts(), cell.n_generations()),
            ]);
        }
    }
    table.markdown("")
}

/// For each task and model the median of a method's time in a step, as a share of a model's step.
pub(super) fn step_shares(cells: &Cells<'_>, method: &str) -> Vec<f64> {
    let of = |(task, model): (String, String)| {
        let found = cells
            .steps(&task, &model)
            .into_iter()
            .filter_map(|steps| cells.get(&at(&task, &model, steps, method)));
        let all: Vec<f64> =
            found.flat_map(Cell::generations).flat_map(|one| one.us.steps.iter().copied()).collect();
        (!all.is_empty()).then(|| quantile(&all, 0.5) / MODEL_STEP_US)
    };
    cells.pairs().into_iter().filter_map(of).collect()
}

/// The constraint's time of a step as a share of a model's.
pub fn shares(cells: &Cells<'_>) -> String {
    let mut table = Table::new([
        "model",
        "task",
        "method",
        "steps measured",
        "µs a step p50 / p90 / p99",
        "p50 as a share of 30 ms",
        "p50 of first steps, µs",
    ]);
    for (task, model) in cells.pairs() {
        for method in cells.methods(&task, &model) {
            let (mut all, mut first) = (Vec::new(), Vec::new());
            for steps in cells.steps(&task, &model) {
                for one in
                    cells.get(&at(&task, &model, steps, &method)).into_iter().flat_map(Cell::generations)
                {
                    all.extend(&one.us.steps);
                    first.extend(one.us.steps.first());
                }
            }
            if method == "none" || all.is_empty() {
                continue;
            }
            let p50 = quantile(&all, 0.5);
            table.row([
                code(&model),
                task.clone(),
                code(&method),
                all.len().to_string(),
                format!("{} / {} / {}", short(p50), short(quantile(&all, 0.9)), short(quantile(&all, 0.99))),
                format!("{} %", short(100.0 * p50 / MODEL_STEP_US)),
                short(quantile(&first, 0.5)),
            ]);
        }
    }
    table.markdown("")
}

/// LAVE's parameters, one at a time.
pub(super) struct Curve {
    pub task: String,
    pub model: String,
    pub steps: usize,
    pub parameter: &'static str,
    /// The parameter, the shares, and milliseconds a generation.
    pub points: Vec<(usize, f64, f64, f64)>,
}

/// Curves of what was measured at two values or more. `lookahead` alone has N = 10 and tau = 5.
pub(super) fn curves_of(cells: &Cells<'_>) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (parameter, default) in [("N", 10), ("tau", 5)] {
        for (task, model) in cells.pairs() {
            for steps in cells.steps(&task, &model) {
                let mut points = Vec::new();
                for (place, cell) in cells.all() {
                    let value = match place.method.strip_prefix("lookahead") {
                        Some("") => Some(default),
                        Some(rest) => {
                            rest.strip_prefix(&format!(":{parameter}=")).and_then(|n| n.parse().ok())
                        }
                        None => None,
                    };
                    let is_here = place.task == task && place.model == model && place.steps == steps;
                    if let Some(value) = value.filter(|_| is_here) {
                        let share = |success| cell.at_one(success).map_or(0.0, |share| share.0);
                        let time = cell.mean(|one| Some(one.us.all / 1e3)).unwrap_or(0.0);
                        points.push((value, share(SYNTACTIC), share(FUNCTIONAL), time));
                    }
                }
                points.sort_by_key(|point| point.0);
                if points.len() > 1 {
                    curves.push(Curve { task: task.clone(), model: model.clone(), steps, parameter, points });
                }
            }
        }
    }
    curves
}

/// The same as a table.
pub fn curves(cells: &Cells<'_>) -> String {
    let mut table =
        Table::new(["model", "task", "T", "parameter", "syntactic@1 %", "functional@1 %", "ms a generation"]);
    for curve in curves_of(cells) {
        for (value, syntactic, functional, time) in curve.points {
            table.row([
                code(&curve.model),
                curve.task.clone(),
                curve.steps.to_string(),
                format!("{} = {value}", if curve.parameter == "tau" { "τ" } else { "N" }),
                percent(syntactic),
                percent(functional),
                short(time),
            ]);
        }
    }
    table.markdown("")
}

/// What went wrong, over all numbers of steps.
pub fn failures(cells: &Cells<'_>) -> String {
    let names = Failure::ALL.map(|failure| failure.name().to_owned());
    let head = ["model", "task", "method", "generations"].map(str::to_owned).into_iter();
    let mut table = Table::new(head.chain(names).chain(["right".to_owned()]));
    for (task, model) in cells.pairs() {
        for method in cells.methods(&task, &model) {
            let mut counts = [0usize; Failure::ALL.len() + 1];
            for steps in cells.steps(&task, &model) {
                for one in
                    cells.get(&at(&task, &model, steps, &method)).into_iter().flat_map(Cell::generations)
                {
                    let place = Failure::ALL.iter().position(|failure| Some(*failure) == one.failure);
                    counts[place.unwrap_or(Failure::ALL.len())] += 1;
                }
            }
            let total: usize = counts.iter().sum();
            let first = [code(&model), task.clone(), code(&method), total.to_string()];
            table.row(first.into_iter().chain(counts.iter().map(usize::to_string)));
        }
    }
    table.markdown("")
}
