//! The report: tables for people, JSON for programs, and the page `docs/benchmarks.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anygram::Vocabulary;
use anyhow::Result;
use serde::Serialize;

use super::Args;
use super::batch::{Batch, OUTPUTS};
use super::engine::OURS;
use super::growth::Curve;
use super::pass::{Comparison, Stats, Stops, Times};
use super::workload::Goal;
use crate::draw::{self, Line};
use crate::measure::{median, print_table, timed, us};

/// Everything.
#[derive(Serialize)]
pub struct Report {
    date: String,
    commit: String,
    cpu: String,
    versions: Vec<String>,
    vocabulary: usize,
    /// What a measurement of nothing gives, which every time includes, in microseconds.
    clock_us: f64,
    runs: u32,
    first: Option<usize>,
    seconds: f64,
    pub workloads: Vec<Texts>,
    pub growth: Vec<Curve>,
    pub batches: Vec<Batch>,
    /// Wrong answers of ours.
    pub wrong: Vec<String>,
}

/// One workload.
#[derive(Serialize)]
pub struct Texts {
    pub name: String,
    pub texts: usize,
    pub tokens: usize,
    pub checked_masks: usize,
    pub checked_bits: usize,
    pub engines: Vec<EngineReport>,
    #[serde(skip)]
    pub goal: Option<Goal>,
}

/// One engine on one workload.
#[derive(Default, Serialize)]
pub struct EngineReport {
    pub engine: String,
    /// Why the grammar could not be used.
    pub error: Option<String>,
    pub compile_ms: f64,
    pub first_mask_ms: f64,
    pub memory_bytes: Option<usize>,
    pub stops: Stops,
    /// The first pass over the texts.
    pub cold: Option<Times>,
    /// The second.
    pub warm: Option<Times>,
    /// One half of the texts after the other half.
    pub unseen: Option<Times>,
    /// A peer against ours.
    pub compared: Option<Compared>,
}

/// A peer against ours, on the steps that both have done.
#[derive(Serialize)]
pub struct Compared {
    pub cold: Option<Comparison>,
    pub warm: Option<Comparison>,
    pub unseen: Option<Comparison>,
}

/// Cells under a heading.
struct Table {
    heading: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The passes: what they are called, their times, their comparisons.
type PassOf = (&'static str, fn(&EngineReport) -> Option<&Times>, fn(&Compared) -> Option<&Comparison>);

const PASSES: [PassOf; 3] = [
    ("warm (second pass)", |engine| engine.warm.as_ref(), |compared| compared.warm.as_ref()),
    (
        "warm, unseen (one half of the texts after the other)",
        |engine| engine.unseen.as_ref(),
        |compared| compared.unseen.as_ref(),
    ),
    ("cold (first pass, fresh tables)", |engine| engine.cold.as_ref(), |compared| compared.cold.as_ref()),
];

/// What the page begins with, before date, machine and versions.
const INTRODUCTION: &str = "# Masks, measured

For people who choose an engine, and for those who make masks faster. Afterwards you know how long a mask and
an advance take beside llguidance on each workload, and which cases we lose. A command writes this page:

```sh
cargo run --release -p anygram-bench --features peers -- masks --shared ../shared \\
    --markdown docs/benchmarks.md --svg docs/benchmarks.svg
```
";

const HOW_TO_READ: &str = "\
- *Times* are thread CPU microseconds per token, with the vocabulary loaded before.
- *Cold* is the first pass over the texts with fresh tables. *Warm* is the second pass over the same texts.
  *Unseen* is one half of the texts, with tables that are warm from the other half.
- *Ratios* above 1 mean that we are faster. They are taken on the steps that both engines have done: an engine
  that stopped at a limit, or used up its time, is compared on what it did.
- *raised* means that all limits of the peer are raised out of the way.
- *Right answers*: bits of our masks were compared with what single tokens do; a wrong one fails the run.
";

impl Report {
    pub fn new(args: &Args, vocabulary: &Vocabulary) -> Self {
        let clock: Vec<f64> = (0..1_001).map(|_| timed(|| ()).1).collect();
        Self {
            date: today(),
            commit: commit(),
            cpu: cpu(),
            versions: versions(),
            vocabulary: vocabulary.len(),
            clock_us: median(&clock),
            runs: args.runs,
            first: args.first,
            seconds: args.seconds,
            workloads: Vec::new(),
            growth: Vec::new(),
            batches: Vec::new(),
            wrong: Vec::new(),
        }
    }

    /// All tables, on standard output.
    pub fn print(&self) {
        println!("{}", self.setting());
        for table in self.tables() {
            let columns: Vec<&str> = table.columns.iter().map(String::as_str).collect();
            print_table(&table.heading, &columns, &table.rows);
        }
        for (heading, list) in self.lists().into_iter().filter(|(_, list)| !list.is_empty()) {
            println!("\n{heading}\n\n{}", list.join("\n"));
        }
    }

    /// A page for the documentation; the drawing is named as it is seen from the folder of the page.
    pub fn markdown(&self, svg: Option<&Path>) -> String {
        let setting = self.setting().replace(". ", ".\n");
        let mut page = format!("{INTRODUCTION}\n{setting}\n\n{HOW_TO_READ}");
        for table in self.tables() {
            let _ = writeln!(page, "\n## {}\n", table.heading);
            page += &markdown_table(&table.columns, &table.rows);
        }
        if let Some(name) = svg.and_then(Path::file_name).filter(|_| !self.growth.is_empty()) {
            let _ = writeln!(
                page,
                "\n![The cost of a step against the length of the text]({})",
                name.to_string_lossy()
            );
        }
        for (heading, list) in self.lists() {
            let _ = writeln!(page, "\n## {heading}\n");
            let list = if list.is_empty() { vec!["None in this run.".into()] } else { list };
            list.iter().for_each(|item| page += &format!("- {item}\n"));
        }
        crate::wrap::wrapped(&page)
    }

    /// The curves of texts that are read for the first time.
    pub fn draw(&self, path: &Path) -> Result<()> {
        let line = |curve: &Curve| Line {
            group: curve.text.clone(),
            label: format!("{}, {}", curve.text, curve.engine),
            is_dashed: curve.engine != OURS,
            points: curve.points.iter().map(|(&n, point)| (n as f64, point.both)).collect(),
        };
        // Without its limits a peer has the same times, and more of them.
        let last = self.growth.last().map(|curve| curve.engine.as_str());
        let is_drawn =
            |curve: &&Curve| !curve.is_again && (curve.engine == OURS || Some(curve.engine.as_str()) == last);
        let lines: Vec<Line> = self.growth.iter().filter(is_drawn).map(line).collect();
        if lines.is_empty() {
            return Ok(());
        }
        draw::lines(
            path,
            "tokens before the step",
            "mask and advance, µs of CPU time (third quartile)",
            &lines,
        )
    }

    fn setting(&self) -> String {
        let sum = |get: fn(&Texts) -> usize| self.workloads.iter().map(get).sum::<usize>();
        let checked = match (sum(|texts| texts.checked_bits), sum(|texts| texts.checked_masks)) {
            (0, _) => String::new(),
            (bits, masks) => format!(" {bits} bits of {masks} masks were compared with single tokens."),
        };
        let texts =
            self.first.map_or(String::new(), |first| format!(" First {first} texts of each workload."));
        format!(
            "{}, {}, commit {}; {}; {} tokens. {} run{}; a peer has {} s a pass; a measurement of nothing \
             gives {:.2} µs, which is \
             not subtracted.{texts}{checked}",
            self.date,
            self.cpu,
            self.commit,
            self.versions.join(", "),
            self.vocabulary,
            self.runs,
            if self.runs == 1 { "" } else { "s, medians of each step" },
            self.seconds,
            self.clock_us
        )
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        if !self.workloads.is_empty() {
            tables.push(self.starts());
            for pass in PASSES {
                tables.extend(self.ratios(pass));
                tables.push(self.times(pass));
            }
        }
        if !self.growth.is_empty() {
            tables.push(self.curves());
        }
        if !self.batches.is_empty() {
            tables.push(self.batched());
        }
        tables
    }

    fn starts(&self) -> Table {
        let row = |texts: &Texts, engine: &EngineReport| {
            let memory =
                engine.memory_bytes.map_or("-".into(), |bytes| format!("{:.1}", bytes as f64 / 1_048_576.0));
            let stops = &engine.stops;
            vec![
                texts.name.clone(),
                engine.engine.clone(),
                texts.texts.to_string(),
                texts.tokens.to_string(),
                format!("{:.1}", engine.compile_ms),
                format!("{:.2}", engine.first_mask_ms),
                memory,
                stops.rejected.to_string(),
                stops.errors.to_string(),
                stops.not_sentences.to_string(),
                if stops.is_cut { "yes" } else { "no" }.into(),
            ]
        };
        let rows = self
            .workloads
            .iter()
            .flat_map(|texts| texts.engines.iter().map(move |engine| row(texts, engine)));
        let columns = [
            "workload",
            "engine",
            "texts",
            "tokens",
            "compile ms",
            "first mask ms",
            "memory MiB",
            "rejected",
            "errors",
            "unfinished",
            "out of time",
        ];
        Table {
            heading: "Start, memory and texts that stop".into(),
            columns: columns.map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }

    /// None where there is nothing to compare with.
    fn ratios(&self, (name, _, of): PassOf) -> Option<Table> {
        let mut rows = Vec::new();
        for (texts, engine, compared) in self.compared() {
            let Some(pair) = of(compared) else { continue };
            let times = |stats: &Stats| stats.values().map(|ratio| format!("{ratio:.1}")).to_vec();
            let ends = |stats: &Stats| [stats.p50, stats.p99].map(|ratio| format!("{ratio:.1}")).to_vec();
            let both = [pair.ours.both.p50, pair.peer.both.p50, pair.ours.both.p99, pair.peer.both.p99]
                .map(us)
                .to_vec();
            let first = vec![texts.name.clone(), engine.engine.clone(), pair.ours.steps.to_string()];
            rows.push([first, both, times(&pair.both), ends(&pair.mask), ends(&pair.advance)].concat());
        }
        let stats = Stats::NAMES.map(|name| format!("× {name}"));
        let columns =
            ["workload", "peer", "steps", "ours p50 µs", "peer's", "ours p99 µs", "peer's"].map(String::from);
        let ends = ["× mask p50", "× mask p99", "× advance p50", "× advance p99"].map(String::from);
        let columns = columns.into_iter().chain(stats).chain(ends).collect();
        let heading = format!("How many times as fast, mask and advance, {name}");
        (!rows.is_empty()).then_some(Table { heading, columns, rows })
    }

    fn times(&self, (name, of, _): PassOf) -> Table {
        let row = |texts: &Texts, engine: &EngineReport| {
            let times = of(engine)?;
            let all = [times.mask, times.advance, times.both];
            let first = [texts.name.clone(), engine.engine.clone(), times.steps.to_string()];
            Some(first.into_iter().chain(all.iter().flat_map(Stats::values).map(us)).collect())
        };
        let rows = self
            .workloads
            .iter()
            .flat_map(|texts| texts.engines.iter().filter_map(move |engine| row(texts, engine)));
        let stats = |what| {
            Stats::NAMES
                .into_iter()
                .map(move |name| if name == "p50" { format!("{what} p50") } else { name.into() })
        };
        let columns = ["workload", "engine", "steps"].into_iter().map(String::from);
        let columns = columns.chain(["mask", "advance", "both"].into_iter().flat_map(stats)).collect();
        Table { heading: format!("Microseconds, {name}"), columns, rows: rows.collect() }
    }

    fn curves(&self) -> Table {
        let lengths: BTreeSet<usize> =
            self.growth.iter().flat_map(|curve| curve.points.keys().copied()).collect();
        let row = |curve: &Curve| {
            let reading = if curve.is_again { "again" } else { "first" };
            let first = [curve.text.clone(), curve.engine.clone(), reading.into()];
            let times =
                lengths.iter().map(|n| curve.points.get(n).map_or("-".into(), |point| us(point.both)));
            first.into_iter().chain(times).collect()
        };
        let columns = ["text", "engine", "reading"].into_iter().map(String::from);
        let columns = columns.chain(lengths.iter().map(|n| format!("n = {n}"))).collect();
        Table {
            heading: "Growth: mask and advance at token n, third quartile of sixteen steps, microseconds"
                .into(),
            columns,
            rows: self.growth.iter().map(row).collect(),
        }
    }

    fn batched(&self) -> Table {
        let ms = |stats: &Option<Stats>| match stats {
            Some(stats) => [stats.p50, stats.p99].map(|us| format!("{:.2}", us / 1e3)),
            None => ["-".into(), "-".into()],
        };
        let row = |batch: &Batch| {
            let error = batch.error.clone().unwrap_or_default();
            let times = ms(&batch.masks).into_iter().chain(ms(&batch.advances));
            [batch.engine.clone()].into_iter().chain(times).chain([error]).collect()
        };
        let columns = ["engine", "all masks p50 ms", "p99", "all advances p50 ms", "p99", "error"];
        Table {
            heading: format!(
                "{OUTPUTS} outputs at different places of different texts, CPU time of one step of all"
            ),
            columns: columns.map(String::from).to_vec(),
            rows: self.batches.iter().map(row).collect(),
        }
    }

    fn compared(&self) -> impl Iterator<Item = (&Texts, &EngineReport, &Compared)> {
        let of = |texts: &'_ Texts| texts.engines.len();
        self.workloads.iter().flat_map(move |texts| {
            (0..of(texts)).filter_map(move |at| {
                let engine = &texts.engines[at];
                Some((texts, engine, engine.compared.as_ref()?))
            })
        })
    }

    /// What is told after the tables.
    fn lists(&self) -> [(&'static str, Vec<String>); 3] {
        [
            ("What stopped", self.stopped()),
            ("The cases that we lose", self.lost()),
            ("Aims that are missed", self.missed()),
        ]
    }

    /// The first text at which each engine stopped, and why.
    fn stopped(&self) -> Vec<String> {
        let texts = self.workloads.iter().flat_map(|texts| {
            texts.engines.iter().filter_map(move |engine| {
                let (why, stops) =
                    (engine.error.as_ref().or(engine.stops.first.as_ref())?, engine.stops.total());
                let many = if stops > 1 { format!("{stops} texts, the first is ") } else { String::new() };
                Some(format!("{}, {}: {many}{why}", texts.name, engine.engine))
            })
        });
        let curves = self.growth.iter().filter_map(|curve| {
            let reading = if curve.is_again { "again" } else { "first reading" };
            Some(format!("growth, {}, {}, {reading}: {}", curve.text, curve.engine, curve.stopped.as_ref()?))
        });
        texts.chain(curves).collect()
    }

    /// Where a peer without limits is faster: with limits it has the same times, as far as it goes.
    fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        let is_last = |texts: &Texts, engine: &EngineReport| {
            texts.engines.last().is_some_and(|last| last.engine == engine.engine)
        };
        for (texts, engine, compared) in self.compared().filter(|(texts, engine, _)| is_last(texts, engine)) {
            let place = format!("{}, {}", texts.name, engine.engine);
            let starts = |engine: &EngineReport| [engine.compile_ms, engine.first_mask_ms];
            let ours = texts.engines.iter().find(|engine| engine.engine == OURS).map_or([0.0; 2], starts);
            for ((what, ours), peer) in ["compile", "first mask"].iter().zip(ours).zip(starts(engine)) {
                if ours > peer {
                    lost.push(format!("{place}: {what} {ours:.2} ms, theirs {peer:.2} ms"));
                }
            }
            for (name, _, of) in PASSES {
                let Some(pair) = of(compared) else { continue };
                let name = name.split(" (").next().unwrap_or(name);
                let whats = [
                    ("mask", pair.ours.mask, pair.peer.mask),
                    ("advance", pair.ours.advance, pair.peer.advance),
                ];
                for (what, ours, peer) in whats {
                    let slower = Stats::NAMES.iter().zip(ours.values().into_iter().zip(peer.values()));
                    let slower = slower.filter(|(_, (ours, peer))| ours > peer);
                    let told: Vec<String> = slower
                        .map(|(stat, (ours, peer))| format!("{stat} {} µs, theirs {} µs", us(ours), us(peer)))
                        .collect();
                    if !told.is_empty() {
                        lost.push(format!("{place}, {name}, {what}: {}", told.join("; ")));
                    }
                }
            }
        }
        let last = self.growth.last().map(|curve| &curve.engine);
        for curve in self.growth.iter().filter(|curve| curve.engine != OURS && Some(&curve.engine) == last) {
            let is_same = |ours: &&Curve| {
                ours.engine == OURS && ours.text == curve.text && ours.is_again == curve.is_again
            };
            let Some(ours) = self.growth.iter().find(is_same) else { continue };
            let slower =
                curve.points.iter().filter_map(|(n, peer)| Some((n, ours.points.get(n)?.both, peer.both)));
            let told: Vec<String> = slower
                .filter(|(_, ours, peer)| ours > peer)
                .map(|(n, ours, peer)| format!("n = {n}: {} µs, theirs {} µs", us(ours), us(peer)))
                .collect();
            if !told.is_empty() {
                let reading = if curve.is_again { "again" } else { "first reading" };
                lost.push(format!(
                    "growth, {}, {}, {reading}: {}",
                    curve.text,
                    curve.engine,
                    told.join("; ")
                ));
            }
        }
        let batch = |is_ours: bool| {
            let wanted = self.batches.iter().filter(move |batch| (batch.engine == OURS) == is_ours);
            wanted.filter_map(|batch| Some((&batch.engine, batch.masks?.p50)))
        };
        for (_, ours) in batch(true) {
            for (name, peer) in batch(false).filter(|&(_, peer)| ours > peer) {
                lost.push(format!("batch, {name}: {:.2} ms, theirs {:.2} ms", ours / 1e3, peer / 1e3));
            }
        }
        lost
    }

    /// What we want and do not have.
    fn missed(&self) -> Vec<String> {
        const FIRST_MASK_MS: f64 = 5.0;
        const BATCH_MS: f64 = 2.0;
        const GROWTH: [(&str, usize, f64); 2] = [
            ("e: e \"+\" e | e \"*\" e | \"n\"", 640, 20.0),
            ("e: e \"+\" e | e \"*\" e | \"n\"", 2_000, 150.0),
        ];
        // Nanoseconds that a step may cost more for each token before it. Flat is what noise does not tell
        // from it.
        const SLOPES: [(&str, f64); 3] = [("right recursion", 0.5), ("Dyck", 0.5), ("palindromes", 1.0)];
        const EARLY: usize = 640;
        const LATE: usize = 5_000;
        let mut missed = Vec::new();
        for texts in &self.workloads {
            let name = &texts.name;
            let Some(ours) = texts.engines.iter().find(|engine| engine.engine == OURS) else { continue };
            if ours.first_mask_ms > FIRST_MASK_MS {
                missed.push(format!("{name}: first mask {:.1} ms of {FIRST_MASK_MS} ms", ours.first_mask_ms));
            }
            // The last peer is the one without limits.
            let compared = texts.engines.last().and_then(|peer| peer.compared.as_ref());
            let cold = compared.and_then(|compared| compared.cold.as_ref()).map(|cold| cold.both.p99);
            if let Some(times) = cold.filter(|&times| times < 1.0) {
                missed.push(format!("{name}, cold: p99 {times:.2} times as fast, of 1"));
            }
            let (Some(goal), Some(warm)) = (texts.goal, ours.warm) else { continue };
            let bounds =
                [("p50", warm.both.p50, goal.p50_us), ("advance p50", warm.advance.p50, goal.advance_p50_us)];
            for (what, time, bound) in bounds {
                if let Some(bound) = bound.filter(|&bound| time > bound) {
                    missed.push(format!("{name}, warm: {what} {} µs of {bound} µs", us(time)));
                }
            }
            let Some(both) = compared.and_then(|compared| compared.warm.as_ref()).map(|warm| warm.both)
            else {
                continue;
            };
            for (what, times, wanted) in
                [("p50", both.p50, goal.p50_times), ("p99", both.p99, goal.p99_times)]
            {
                if times < wanted {
                    missed.push(format!("{name}, warm: {what} {times:.1} times as fast, of {wanted}"));
                }
            }
        }
        for (text, n, bound) in GROWTH {
            let curves = self
                .growth
                .iter()
                .filter(|curve| curve.engine == OURS && curve.text == text && !curve.is_again);
            for point in curves.filter_map(|curve| curve.points.get(&n)).filter(|point| point.both > bound) {
                missed.push(format!("growth, {text}: {} µs of {bound} µs at n = {n}", us(point.both)));
            }
        }
        for (text, ns) in SLOPES {
            let curves = self
                .growth
                .iter()
                .filter(|curve| curve.engine == OURS && curve.text == text && !curve.is_again);
            for (early, late) in
                curves.filter_map(|curve| Some((curve.points.get(&EARLY)?, curve.points.get(&LATE)?)))
            {
                let slope = (late.both - early.both) * 1e3 / (LATE - EARLY) as f64;
                if slope > ns {
                    missed.push(format!(
                        "growth, {text}: {slope:.1} ns a token of {ns} ns, from n = {EARLY} to {LATE}"
                    ));
                }
            }
        }
        for masks in self.batches.iter().filter(|batch| batch.engine == OURS).filter_map(|batch| batch.masks)
        {
            if masks.p50 > BATCH_MS * 1e3 {
                missed.push(format!("batch: p50 {:.2} ms of {BATCH_MS} ms", masks.p50 / 1e3));
            }
        }
        missed
    }
}

/// A table in Markdown.
pub fn markdown_table(columns: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|c| escape(c)).collect::<Vec<_>>().join(" | "))
    };
    let head = format!("{}|{}\n", line(columns), "---|".repeat(columns.len()));
    rows.iter().fold(head, |page, row| page + &line(row))
}

/// A cell of a table in Markdown.
fn escape(cell: &str) -> String {
    cell.replace('|', "\\|")
}

/// The date in UTC.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The date of a day, counted from the first of 1970.
fn date(mut day: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

/// The commit of the sources, and whether they were changed since.
pub fn commit() -> String {
    let git = |arguments: &[&str]| -> Option<String> {
        let output =
            Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".into() };
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    if is_changed { commit + ", changed" } else { commit }
}

/// The model of the processor, where the system tells.
pub fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, model)| model));
    model.unwrap_or("unknown processor").to_owned()
}

/// Engines and their versions.
pub fn versions() -> Vec<String> {
    #[allow(unused_mut, reason = "others come with a feature")]
    let mut versions = vec![format!("anygram {}", env!("CARGO_PKG_VERSION"))];
    #[cfg(feature = "peers")]
    {
        let lock = include_str!("../../../Cargo.lock");
        let version =
            lock.split("name = \"llguidance\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
        versions.push(format!("llguidance {}", version.unwrap_or("unknown")));
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(59), "1970-03-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_781), "2026-11-24");
    }
}
