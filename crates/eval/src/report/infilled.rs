//! The tables of infilling without a model, and of masks from left to right.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Table, percent, short};
use crate::Lines;
use crate::estimate::quantile;
use crate::generation::Line;
use crate::infill::Infilled;

/// By kind of regions and method: the texts, and how many regions each has, of which a run is there.
type Runs<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<(usize, usize)>>;

/// Syntactic rates and times a token, by texts, kind and method, and by the number of regions.
pub fn table(lines: &Lines) -> String {
    let all: Vec<&Infilled> = lines.infilled().collect();
    let regions: BTreeSet<usize> = all.iter().map(|one| one.regions).collect();
    let mut rows: BTreeMap<(&str, &str, &str), BTreeMap<usize, Vec<&Infilled>>> = BTreeMap::new();
    for one in &all {
        let row = rows.entry((&one.infill, &one.kind, &one.method)).or_default();
        row.entry(one.regions).or_default().push(one);
    }
    let head = ["texts", "regions as", "method"].map(str::to_owned).into_iter();
    let columns = regions
        .iter()
        .flat_map(|n| [format!("{n}: syntactic % (n; failed; limit)"), "ms a token p50 / p99".to_owned()]);
    let mut table = Table::new(head.chain(columns));
    for ((name, kind, method), by_regions) in rows {
        let cells = regions
            .iter()
            .flat_map(|n| by_regions.get(n).map_or(["–".into(), "–".into()], |found| cell(found)));
        table.row([name.to_owned(), kind.to_owned(), format!("`{method}`")].into_iter().chain(cells));
    }
    table.markdown("")
}

/// The runs that did not come to their end: the text that they stopped in, and the methods that lack it.
pub fn unfinished(lines: &Lines) -> String {
    let mut runs: BTreeMap<&str, Runs> = BTreeMap::new();
    for one in lines.infilled() {
        let methods = runs.entry(&one.infill).or_default();
        methods.entry((&one.kind, &one.method)).or_default().insert((one.text, one.regions));
    }
    let stopped = runs.iter().filter_map(|(name, methods)| {
        let all: BTreeSet<_> = methods.values().flatten().collect();
        let lacking = methods.iter().filter(|(_, done)| done.len() < all.len());
        let lacking: Vec<String> = lacking.map(|((_, method), _)| format!("`{method}`")).collect();
        let n_texts = all.iter().map(|(text, _)| text).collect::<BTreeSet<_>>().len();
        (!lacking.is_empty()).then(|| {
            format!(
                "- {name}: stopped in text {n_texts}, before {} had filled its holes.\n",
                lacking.join(", ")
            )
        })
    });
    let text: String = stopped.collect();
    if text.is_empty() && !runs.is_empty() { "- none was stopped.\n".to_owned() } else { text }
}

fn cell(found: &[&Infilled]) -> [String; 2] {
    let n = found.len();
    let n_syntactic = found.iter().filter(|one| one.syntactic).count();
    let times: Vec<f64> = found.iter().map(|one| one.us / 1e3 / one.tokens.max(1) as f64).collect();
    [
        format!(
            "{} ({n}; {}; {})",
            percent(n_syntactic as f64 / n as f64),
            n - n_syntactic,
            found.iter().filter(|one| one.at_limit).count(),
        ),
        format!("{} / {}", short(quantile(&times, 0.5)), short(quantile(&times, 0.99))),
    ]
}

/// What `anygram replay` measured.
pub fn masks(lines: &Lines) -> String {
    let mut table = Table::new([
        "grammar",
        "tokens of the vocabulary",
        "engine",
        "until masks, ms",
        "mask µs mean / p50 / p99",
        "advance µs mean",
        "steps",
        "false rejects",
    ]);
    for line in &lines.lines {
        let Line::Replay(replay) = line else { continue };
        let name = std::path::Path::new(&replay.grammar).file_name().unwrap_or_default().to_string_lossy();
        table.row([
            name.into_owned(),
            replay.vocab_size.to_string(),
            replay.engine.clone(),
            short(replay.compile_ms),
            format!(
                "{} / {} / {}",
                short(replay.mask_us.mean),
                short(replay.mask_us.p50),
                short(replay.mask_us.p99)
            ),
            short(replay.advance_us.mean),
            replay.steps.to_string(),
            replay.false_rejects.to_string(),
        ]);
    }
    table.markdown("")
}
