//! Fresh processes: what the first request of a server pays, from compiling a grammar to its first masks.
//!
//! Each measurement is a process of its own, this program again, so nothing is warm that a user would not
//! have. Other measurements share a process with what ran before: there a vocabulary keeps walks of its trie
//! for all of its grammars, and the allocator has touched its memory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anygram::{GrammarFormat, Vocabulary};
use anyhow::{Context, Result, bail};
use cpu_time::ProcessTime;
use serde::{Deserialize, Serialize};

use crate::draw::{self, Line};
use crate::masks::engine::{self, Maker, OURS};
use crate::masks::report::{commit, cpu, markdown_table, today, versions};
use crate::masks::workload::Chosen;
use crate::measure::{median, print_table, progress, quantile, timed, us};
use crate::schemas::data;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Processes for each workload and engine.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    processes: u32,
    /// The first tokens of the workload that each decodes.
    #[arg(long, value_name = "N", default_value_t = 200)]
    steps: usize,
    /// How many seconds of CPU time the steps of a process of another engine may take.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Also write everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the time from the request on against the steps.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a page for the documentation.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Be one of the processes: of this workload, with this engine, the so many-th.
    #[arg(long, hide = true, num_args = 3, value_names = ["WORKLOAD", "ENGINE", "NUMBER"])]
    one: Option<Vec<String>>,
}

const EXAMPLES: &str = "\
Examples:
  anygram-bench start --markdown docs/start.md --svg docs/start.svg
  anygram-bench start --only cpp_he --only json --processes 5";

/// Schemas: each process has another.
const JSON: &str = "json";

/// They and others, as [`workload::replayed`](crate::masks::workload::replayed) names them.
const WORKLOADS: [&str; 6] = [JSON, "sql_grammar", "sqlite_kw", "cpp_he", "smiles", "treebank_raw"];

/// What a process prints: CPU times of the whole process, so that no thread of it is hidden.
#[derive(Default, Serialize, Deserialize)]
struct Fresh {
    /// The vocabulary, from its file or from the vocabulary of ours.
    load_ms: f64,
    compile_ms: f64,
    /// Of each token, mask and advance, in microseconds of the thread.
    steps: Vec<f64>,
    first_mask_us: f64,
    /// From compiling to the last step.
    process_ms: f64,
    /// Why it ended before the last step.
    stopped: Option<String>,
}

/// A grammar and texts for one process.
struct Request {
    format: GrammarFormat,
    grammar: String,
    texts: Vec<Vec<u32>>,
}

/// All processes of an engine on a workload.
#[derive(Serialize)]
struct Row {
    workload: String,
    engine: String,
    processes: Vec<Fresh>,
}

/// What a user waits for, in the order of the columns.
const COLUMNS: [&str; 12] = [
    "workload",
    "engine",
    "load ms",
    "compile ms p50",
    "max",
    "first mask µs p50",
    "max",
    "a step µs p50",
    "p99",
    "max",
    "mean",
    "process ms",
];

pub fn run(args: &Args) -> Result<()> {
    if let Some([workload, engine, number]) = args.one.as_deref() {
        let fresh = one(args, workload, engine, number.parse()?)?;
        println!("{}", serde_json::to_string(&fresh)?);
        return Ok(());
    }
    let workloads = args.chosen.among(&WORKLOADS)?;
    let n_processes = workloads.len() * ENGINES.len() * args.processes as usize;
    let bar = progress(n_processes, "processes");
    let mut rows = Vec::new();
    for workload in workloads {
        let mut of_workload: Vec<Row> = ENGINES
            .iter()
            .map(|&engine| Row { workload: workload.into(), engine: engine.into(), processes: Vec::new() })
            .collect();
        // In turns, so that a machine whose speed changes does so for all.
        for number in 0..args.processes {
            for row in &mut of_workload {
                bar.set_message(format!("{workload}, {}", row.engine));
                row.processes.push(spawn(args, workload, &row.engine, number)?);
                bar.inc(1);
            }
        }
        rows.extend(of_workload);
    }
    bar.finish_and_clear();
    report(args, &rows)
}

/// The engines that are compared: a peer without limits, for with them it takes as long, as far as it goes.
#[cfg(feature = "peers")]
const ENGINES: [&str; 2] = [OURS, crate::masks::peers::RAISED];
#[cfg(not(feature = "peers"))]
const ENGINES: [&str; 1] = [OURS];

fn spawn(args: &Args, workload: &str, engine: &str, number: u32) -> Result<Fresh> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("start").arg("--shared").arg(&args.chosen.shared);
    command.arg("--processes").arg(args.processes.to_string()).arg("--steps").arg(args.steps.to_string());
    command.arg("--one").args([workload, engine, &number.to_string()]);
    let output = command.output()?;
    if !output.status.success() {
        bail!("{workload}, {engine}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let fresh: Fresh = serde_json::from_slice(&output.stdout)?;
    match &fresh.stopped {
        Some(why) if engine == OURS => bail!("wrong: {workload}: {why}"),
        _ => Ok(fresh),
    }
}

/// Milliseconds of CPU time of all threads of the process.
fn process_timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = ProcessTime::now();
    let result = work();
    (result, start.elapsed().as_secs_f64() * 1e3)
}

/// Is one process.
fn one(args: &Args, workload: &str, engine: &str, number: u32) -> Result<Fresh> {
    let (vocabulary, load_ms) = process_timed(|| args.chosen.vocabulary());
    let vocabulary = vocabulary?;
    let (maker, load_ms) = maker(engine, &vocabulary, load_ms)?;
    let request = request(args, workload, &vocabulary, number)?;

    let begun = ProcessTime::now();
    let (made, compile_ms) = process_timed(|| (maker.make)(request.format, &request.grammar));
    let mut fresh = Fresh { load_ms, compile_ms, ..Fresh::default() };
    let seconds = if engine == OURS { f64::INFINITY } else { args.seconds };
    match made {
        Err(error) => fresh.stopped = Some(error),
        Ok(mut engine) => {
            let bounds = (args.steps, seconds);
            fresh.stopped = decode(&mut *engine, &request.texts, bounds, &mut fresh).err();
        }
    }
    fresh.process_ms = begun.elapsed().as_secs_f64() * 1e3;
    Ok(fresh)
}

/// The engine of a name, and what loading its vocabulary took. Ours is prepared, as a server does it.
fn maker(name: &str, vocabulary: &Vocabulary, load_ms: f64) -> Result<(Maker, f64)> {
    if name != OURS {
        return peer(name, vocabulary);
    }
    let ((), prepare_ms) = process_timed(|| anygram::prepare(vocabulary));
    Ok((engine::ours(vocabulary), load_ms + prepare_ms))
}

#[cfg(feature = "peers")]
fn peer(_: &str, vocabulary: &Vocabulary) -> Result<(Maker, f64)> {
    let (maker, own_ms) = process_timed(|| crate::masks::peers::raised(vocabulary));
    Ok((maker?, own_ms))
}

#[cfg(not(feature = "peers"))]
fn peer(name: &str, _: &Vocabulary) -> Result<(Maker, f64)> {
    bail!("{name} comes with the feature `peers`")
}

/// What the so many-th process of a workload decodes.
fn request(args: &Args, workload: &str, vocabulary: &Vocabulary, number: u32) -> Result<Request> {
    if workload != JSON {
        let found = args.chosen.replayed(workload, vocabulary)?;
        return Ok(Request { format: GrammarFormat::Lark, grammar: found.grammar, texts: found.texts });
    }
    // Of all splits, evenly, those that have a valid text.
    let mut schemas = data::schemas(&args.chosen.shared.join("data/jsonschemabench"), |_| true, (50, None))?;
    schemas.retain(|schema| schema.texts.iter().any(|(text, valid)| *valid && text.len() > SHORT_TEXT));
    let at = number as usize * schemas.len() / args.processes as usize;
    let schema = schemas.into_iter().nth(at).context("the data have no such schema")?;
    let texts = schema.texts.iter().filter(|(_, valid)| *valid);
    let encode = |text: &str| -> Result<Vec<u32>> {
        Ok(vocabulary.encode(text)?.into_iter().map(|token| token.0).collect())
    };
    let texts = texts.map(|(text, _)| encode(text)).collect::<Result<_>>()?;
    Ok(Request { format: GrammarFormat::JsonSchema, grammar: schema.schema, texts })
}

/// Texts of fewer bytes say little of a schema.
const SHORT_TEXT: usize = 100;

/// Decodes texts, so many tokens in all, for so many seconds.
fn decode(
    engine: &mut dyn engine::Engine,
    texts: &[Vec<u32>],
    (most, seconds): (usize, f64),
    fresh: &mut Fresh,
) -> Result<(), String> {
    let mut spent = 0.0;
    for (number, text) in texts.iter().enumerate() {
        engine.begin();
        for (at, &token) in text.iter().enumerate() {
            if fresh.steps.len() == most {
                return Ok(());
            }
            if spent > seconds * 1e6 {
                return Err(format!("the time was used up at step {}", fresh.steps.len()));
            }
            let (masked, mask) = timed(|| engine.mask());
            masked?;
            if fresh.steps.is_empty() {
                fresh.first_mask_us = mask;
            }
            let is_allowed = engine.allows(token);
            let (advanced, advance) = timed(|| engine.advance(token));
            if !(is_allowed && advanced?) {
                return Err(format!("text {}, token {at} is refused", number + 1));
            }
            spent += mask + advance;
            fresh.steps.push(mask + advance);
        }
    }
    Ok(())
}

impl Row {
    fn all(&self, get: impl Fn(&Fresh) -> f64) -> Vec<f64> {
        self.processes.iter().map(get).collect()
    }

    fn steps(&self) -> Vec<f64> {
        self.processes.iter().flat_map(|fresh| fresh.steps.iter().copied()).collect()
    }

    fn cells(&self) -> Vec<String> {
        let ms = |value: f64| format!("{value:.1}");
        let (compile, first) = (self.all(|fresh| fresh.compile_ms), self.all(|fresh| fresh.first_mask_us));
        let steps = self.steps();
        let mean = steps.iter().sum::<f64>() / steps.len().max(1) as f64;
        let stopped = self.processes.iter().filter(|fresh| fresh.stopped.is_some()).count();
        let engine = match stopped {
            0 => self.engine.clone(),
            n => format!("{} ({n} of {} stopped)", self.engine, self.processes.len()),
        };
        vec![
            self.workload.clone(),
            engine,
            ms(median(&self.all(|fresh| fresh.load_ms))),
            ms(median(&compile)),
            ms(quantile(&compile, 1.0)),
            us(median(&first)),
            us(quantile(&first, 1.0)),
            us(median(&steps)),
            us(quantile(&steps, 0.99)),
            us(quantile(&steps, 1.0)),
            us(mean),
            ms(median(&self.all(|fresh| fresh.process_ms))),
        ]
    }

    /// The time from the request to the end of each step, in milliseconds: the median of the processes.
    fn line(&self) -> Line {
        let longest = self.processes.iter().map(|fresh| fresh.steps.len()).max().unwrap_or(0);
        let until = |fresh: &Fresh, n: usize| {
            let steps = fresh.steps.get(..n)?;
            Some(fresh.compile_ms + steps.iter().sum::<f64>() / 1e3)
        };
        let step = |n: usize| {
            let times = self.processes.iter().filter_map(|fresh| until(fresh, n));
            (n as f64, median(&times.collect::<Vec<_>>()))
        };
        Line {
            group: self.workload.clone(),
            label: format!("{}, {}", self.workload, self.engine),
            is_dashed: self.engine != OURS,
            points: (1..=longest).map(step).collect(),
        }
    }
}

fn report(args: &Args, rows: &[Row]) -> Result<()> {
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    let setting = format!(
        "{}, {}, commit {}; {}; {} processes each, the first {} tokens.",
        today(),
        cpu(),
        commit(),
        versions().join(", "),
        args.processes,
        args.steps
    );
    print_table(&setting, &COLUMNS, &cells);
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(rows)? + "\n")
            .with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.svg {
        let lines: Vec<Line> = rows.iter().map(Row::line).collect();
        draw::lines(path, "steps", "ms of CPU time from the request on (median of the processes)", &lines)?;
    }
    if let Some(path) = &args.markdown {
        std::fs::write(path, page(&setting, &cells, args.svg.as_deref()))
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn page(setting: &str, cells: &[Vec<String>], svg: Option<&Path>) -> String {
    let columns = COLUMNS.map(String::from);
    let mut page = format!("{INTRODUCTION}\n{setting}\n\n{}", markdown_table(&columns, cells));
    if let Some(name) = svg.and_then(Path::file_name) {
        page += &format!(
            "\n![The time from the request to each of the first steps]({})\n",
            name.to_string_lossy()
        );
    }
    page += HOW_TO_READ;
    crate::wrap::wrapped(&page)
}

/// What the page begins with.
const INTRODUCTION: &str = "# The first request, measured

For people who serve models. Afterwards you know what the first request of a fresh process costs: loading a
vocabulary, compiling a grammar, and its first masks, beside llguidance. [benchmarks.md](benchmarks.md) has
what follows, when tables are warm. A command writes this page:

```sh
cargo run --release -p anygram-bench --features peers -- start --markdown docs/start.md --svg docs/start.svg
```
";

const HOW_TO_READ: &str = "
- *Load* is the vocabulary: ours from its file, and `prepare`, as a server does when it starts; the peer's
  from the words of ours.
- *Compile* and *process* are CPU time of all threads; *process* is from the begin of compiling to the last
  step, so nothing is done beside it. Steps are CPU time of their thread, mask and advance.
- *json* has another schema of JSONSchemaBench in each process, with its valid texts; a text's tokens are
  all its schema's first.
- A peer has two seconds for the steps of a process; those that it did not come to are missing in its times,
  and *stopped* counts the processes.
- The picture adds up compiling and the steps so far; loading is left out.
- Each mask has to have the token that comes, or the run fails.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::workload;

    #[test]
    fn so_many_steps_are_decoded_and_no_wrong_token() {
        let vocabulary = Vocabulary::builtin();
        let request = workload::built_in(&vocabulary).unwrap();
        let decoded = |texts: &[Vec<u32>], most, seconds| {
            let mut engine = (engine::ours(&vocabulary).make)(GrammarFormat::Lark, &request.grammar).unwrap();
            let mut fresh = Fresh::default();
            let result = decode(&mut *engine, texts, (most, seconds), &mut fresh);
            (result, fresh.steps.len())
        };
        let n_first = request.texts[0].len();
        assert_eq!(decoded(&request.texts, n_first + 2, f64::INFINITY), (Ok(()), n_first + 2));
        assert_eq!(decoded(&request.texts[..1], 1_000, f64::INFINITY), (Ok(()), n_first));
        let refused = decoded(&[vec![request.texts[0][0]; 2]], 9, f64::INFINITY);
        assert_eq!(refused, (Err("text 1, token 1 is refused".to_owned()), 1));
        assert!(decoded(&request.texts, 9, -1.0).0.unwrap_err().contains("time"));
    }

    #[test]
    fn rows_tell_medians_and_maxima() {
        let fresh = |first: f64| Fresh { steps: vec![first, 2.0], first_mask_us: first, ..Fresh::default() };
        let row = Row {
            workload: "w".into(),
            engine: OURS.into(),
            processes: [1.0, 9.0, 3.0].map(fresh).into_iter().collect(),
        };
        assert_eq!(row.cells()[..2], ["w", OURS]);
        assert_eq!(row.cells()[5..], ["3.0", "9.0", "2.0", "9.0", "9.0", "3.2", "0.0"]);
        assert_eq!(row.line().points, [(1.0, 0.003), (2.0, 0.005)]);
    }
}
