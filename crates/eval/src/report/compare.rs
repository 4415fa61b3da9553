//! Compares `exact` and `compatible` with every other method, on the same prompts.

use super::cells::{At, Cell, Cells, FUNCTIONAL, SYNTACTIC, Success};
use super::table::{Table, percent};
use crate::estimate::{Difference, mcnemar, paired};

/// What is compared with all others: two ways to the same guarantee, of which the second can be had in more
/// generations.
const OURS: [&str; 2] = ["exact", "compatible"];
/// Below so many prompts no difference is claimed.
const ENOUGH: usize = 200;
/// Below so many no difference is told: resampled, so few prompts say nothing.
const TOLD: usize = 30;

struct Compared<'a> {
    ours: &'static str,
    at: &'a At,
    syntactic: Difference,
    functional: Difference,
}

fn compared<'a>(cells: &'a Cells<'_>) -> Vec<Compared<'a>> {
    let mut all = Vec::new();
    for ours in OURS {
        // The two of ours are compared once.
        let is_other = |at: &At| at.method != OURS[0] && at.method != ours && !at.method.contains(':');
        for (at, other) in cells.all().filter(|(at, _)| is_other(at)) {
            let Some(cell) = cells.get(&At { method: ours.to_owned(), ..at.clone() }) else { continue };
            let difference = |success: Success| paired(&cell.less(other, success));
            if let (Some(syntactic), Some(functional)) = (difference(SYNTACTIC), difference(FUNCTIONAL)) {
                all.push(Compared { ours, at, syntactic, functional });
            }
        }
    }
    all
}

/// What it should show, and whether it does.
pub fn verdict(cells: &Cells<'_>) -> String {
    let all = compared(cells);
    let mut text = String::new();
    for ours in OURS {
        let found: Vec<(&At, &Cell)> = cells.all().filter(|(at, _)| at.method == ours).collect();
        if found.is_empty() {
            continue;
        }
        let n: usize = found.iter().map(|(_, cell)| cell.n_generations()).sum();
        let wrong: usize =
            found.iter().map(|(_, cell)| cell.generations().filter(|one| !one.syntactic).count()).sum();
        text.push_str(&format!(
            "- `{ours}` is syntactic in {} of {n} generations ({} %), over {} combinations of task, model \
             and T.\n",
            n - wrong,
            percent((n - wrong) as f64 / n.max(1) as f64),
            found.len()
        ));
        let all: Vec<&Compared> = all.iter().filter(|one| one.ours == ours).collect();
        let enough: Vec<&&Compared> = all.iter().filter(|one| one.functional.n_prompts >= ENOUGH).collect();
        let count = |is: fn(&Difference) -> bool| enough.iter().filter(|one| is(&one.functional)).count();
        let (better, worse) = (count(|one| one.interval.0 > 0.0), count(|one| one.interval.1 < 0.0));
        text.push_str(&format!(
            "- Functional successes of `{ours}` against another method, paired, at least {ENOUGH} prompts: \
             {} comparisons, {better} \
             significantly more, {worse} significantly fewer, {} neither. Of so many comparisons without any \
             difference {:.1} \
             would be on each side by chance. {} more comparisons have fewer prompts, and nothing is claimed \
             of them.\n",
            enough.len(),
            enough.len() - better - worse,
            0.025 * enough.len() as f64,
            all.len() - enough.len(),
        ));
        let shares = super::tables::step_shares(cells, ours);
        let n_met = shares.iter().filter(|share| **share <= 0.1).count();
        text.push_str(&format!(
            "- The constraint's time in a step of `{ours}`, p50, is at most 10 % of a model's step of 30 ms \
             in {n_met} of {} combinations of task and \
             model (wall-clock, whatever else the machine did).\n",
            shares.len()
        ));
    }
    text
}

/// All differences in functional successes.
pub fn differences(cells: &Cells<'_>) -> String {
    let all = compared(cells);
    let mut text = String::new();
    for (task, model) in cells.pairs() {
        let steps = cells.steps(&task, &model);
        let head = ["ours", "less"].map(str::to_owned).into_iter();
        let columns = steps.iter().map(|steps| format!("T = {steps}: functional"));
        let mut table = Table::new(head.chain(columns).chain(["syntactic, each T".to_owned()]));
        let methods = cells.methods(&task, &model);
        for (ours, method) in OURS.iter().flat_map(|ours| methods.iter().map(move |method| (ours, method))) {
            let of = |one: &Compared| {
                one.ours == *ours && one.at.task == task && one.at.model == model && one.at.method == *method
            };
            let found: Vec<&Compared> = all.iter().filter(|one| of(one)).collect();
            if found.is_empty() {
                continue;
            }
            let cell = |steps: &usize| {
                let one = found.iter().find(|one| one.at.steps == *steps);
                one.map_or("–".to_owned(), |one| shown(&one.functional))
            };
            let syntactic: Vec<String> =
                found.iter().map(|one| format!("{:+.1}", 100.0 * one.syntactic.mean)).collect();
            let names = [format!("`{ours}`"), format!("`{method}`")];
            table.row(names.into_iter().chain(steps.iter().map(cell)).chain([syntactic.join(", ")]));
        }
        text.push_str(&table.markdown(&format!("\n`{model}`, {task}")));
    }
    text
}

/// Points of percent, the interval, and how many prompts if they are few.
fn shown(difference: &Difference) -> String {
    let Difference { n_prompts, mean, interval, .. } = difference;
    if *n_prompts < TOLD {
        return "–".to_owned();
    }
    let text = format!("{:+.1} [{:+.1}, {:+.1}]", 100.0 * mean, 100.0 * interval.0, 100.0 * interval.1);
    let text = if interval.1 < 0.0 { format!("**{text}**") } else { text };
    if *n_prompts < ENOUGH { format!("{text} ({n_prompts} prompts)") } else { text }
}

fn is_loss(one: &Compared<'_>) -> bool {
    one.functional.n_prompts >= TOLD && one.functional.interval.1 < 0.0
}

/// Where ours has significantly fewer functional successes.
pub fn losses(cells: &Cells<'_>) -> String {
    let mut table =
        Table::new(["ours", "task", "model", "T", "other", "ours less it", "better / worse", "McNemar p"]);
    for one in compared(cells).iter().filter(|one| is_loss(one)) {
        let (better, worse) = one.functional.discordant;
        table.row([
            format!("`{}`", one.ours),
            one.at.task.clone(),
            one.at.model.clone(),
            one.at.steps.to_string(),
            format!("`{}`", one.at.method),
            shown(&one.functional),
            format!("{better} / {worse}"),
            format!("{:.3}", mcnemar(better, worse)),
        ]);
    }
    if table.is_empty() && !compared(cells).is_empty() {
        return format!(
            "No comparison of {TOLD} prompts or more has significantly fewer functional successes for ours.\n"
        );
    }
    table.markdown("")
}
