mod infill;
mod report;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use anygram_eval::{Generation, Key, Lines, Method, Plan, Steps};
use anygram_models::Kind;
use anygram_models::tasks::Task;
use anyhow::{Context, Result, anyhow, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

/// Measure decoding methods on the small models
///
/// Each prompt is answered, for all tasks × models × methods × numbers of steps × prompts × runs. Each answer
/// is a line of JSON: its text, whether it is a sentence of the task's grammar ("syntactic") and says what
/// was asked for ("functional"), what went wrong, questions to the model, refused proposals, the
/// log-probability under the model, microseconds. Lines come in a fixed order. Everything but times depends
/// on the seed alone, not on the number of threads.
///
/// With --out a run can be resumed: answers that the file has are not made again, and a last line that was
/// cut off is dropped. `anygram eval report` makes tables of the file.
///
/// Methods: those of the decoding loop, intersection-with-completion (IG-CD's "Con."), and lookahead with
/// parameters, as in lookahead:N=3:tau=10 or lookahead:published. The exit status is 0 whatever was measured.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Subcommand)]
enum What {
    Report(report::Args),
    Infill(Box<infill::Args>),
}

#[derive(clap::Args)]
struct RunArgs {
    /// Tasks: record, arithmetic, smiles.
    #[arg(long, value_name = "TASK", num_args = 1.., default_values = ["record", "arithmetic", "smiles"])]
    tasks: Vec<String>,
    /// Models: autoregressive, masked, uniform.
    #[arg(long, value_name = "MODEL", num_args = 1.., default_values = ["masked", "uniform"])]
    models: Vec<String>,
    /// Methods.
    #[arg(long, value_name = "METHOD", num_args = 1.., default_values = [
        "none", "forced-sequential", "intersection", "intersection-with-completion", "lookahead",
        "lookahead-without-recovery", "exact", "best", "sample",
    ])]
    methods: Vec<String>,
    /// Decoding steps of a diffusion model: numbers, or full for one step per slot.
    #[arg(long, value_name = "T", num_args = 1.., default_values = ["4", "8", "16", "full"])]
    steps: Vec<String>,
    /// Held-out prompts of each task.
    #[arg(long, value_name = "N", default_value_t = 20)]
    prompts: usize,
    /// Answers to each prompt.
    #[arg(long, value_name = "N", default_value_t = 4)]
    runs: usize,
    /// The seed of prompts and of drawn tokens.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The temperature of drawn tokens; the uniform model has that of its own sampler.
    #[arg(long, default_value_t = 0.2)]
    temperature: f64,
    /// Slots of a canvas [default: as many as the model was trained with].
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// Slots of a block, which the masked model fills before the next ones; 0 means all at once.
    #[arg(long, value_name = "N", default_value_t = 32)]
    block: usize,
    /// Append the lines to this file [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A note for the report: date, commit, machine.
    #[arg(long, default_value = "")]
    note: String,
    /// Threads; 0 means one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

const EXAMPLES: &str = "\
Examples:
  anygram eval --tasks smiles --methods none exact --prompts 50 --out results.jsonl
  anygram eval --models masked --methods lookahead:N=3 lookahead:N=40 --steps 8
  anygram eval report results.jsonl
  anygram eval infill --name json -g json.lark -v builtin --regions 1 2 3 texts.txt";

pub fn run(args: &Args) -> Result<bool> {
    match &args.what {
        None => args.run.measure(),
        Some(What::Report(args)) => report::run(args),
        Some(What::Infill(args)) => infill::run(args),
    }
}

impl RunArgs {
    fn plan(&self) -> Result<Plan> {
        let task = |name: &String| {
            Task::by_name(name).ok_or_else(|| unknown("task", name, Task::ALL.map(Task::name)))
        };
        let model = |name: &String| {
            Kind::by_name(name).ok_or_else(|| unknown("model", name, Kind::ALL.map(Kind::name)))
        };
        if !(0.0..1e6).contains(&self.temperature) {
            bail!("the temperature {} is not a number from 0 on", self.temperature);
        }
        Ok(Plan {
            tasks: self.tasks.iter().map(task).collect::<Result<_>>()?,
            models: self.models.iter().map(model).collect::<Result<_>>()?,
            methods: self.methods.iter().map(|name| Method::parse(name)).collect::<Result<_, _>>()?,
            steps: self.steps.iter().map(|steps| Steps::parse(steps)).collect::<Result<_, _>>()?,
            n_prompts: self.prompts,
            n_runs: self.runs,
            seed: self.seed,
            temperature: self.temperature,
            slots: self.slots,
            block: Some(self.block).filter(|&block| block > 0),
        })
    }

    fn measure(&self) -> Result<bool> {
        let plan = self.plan()?;
        let (mut output, done) = match &self.out {
            Some(path) => Output::open(path)?,
            None => (Output::Terminal, Lines::default()),
        };
        let done = done.done();
        let keys: HashSet<Key> = plan.items()?.iter().map(|item| plan.key(item)).collect();
        let n_left = keys.difference(&done).count();
        if n_left == 0 {
            writeln!(std::io::stderr(), "nothing to do: all {} generations are there", keys.len())?;
            return Ok(true);
        }
        output.line(&json!({"command": command(), "note": self.note}))?;
        let bar = bar(n_left as u64, "generations");
        let mut sink = |generation: Generation| {
            bar.inc(1);
            Ok(output.line(&generation)?)
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        pool.install(|| anygram_eval::run(&plan, &done, &mut sink))?;
        bar.finish_and_clear();
        Ok(true)
    }
}

fn unknown<const N: usize>(what: &str, name: &str, known: [&str; N]) -> anyhow::Error {
    anyhow!("no {what} is called `{name}`; known: {}", known.join(", "))
}

/// The command as it was given, for the report: the program by its name alone, without where lines go, and
/// without the note, which stands beside it.
fn command() -> String {
    let mut shown = vec!["anygram".to_owned()];
    let mut arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        match argument.split_once('=').map_or(&*argument, |(name, _)| name) {
            "--out" | "--note" if argument.contains('=') => {}
            "--out" | "--note" => drop(arguments.next()),
            _ => shown.push(argument),
        }
    }
    shown.join(" ")
}

/// Drawn on a terminal only.
fn bar(total: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(4));
    let style = format!("{{elapsed_precise}} {{bar:40}} {{pos}}/{{len}} {what}, {{eta}} to go");
    bar.with_style(ProgressStyle::with_template(&style).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Where lines go. Each is written whole before the next one is made.
enum Output {
    Terminal,
    File(File),
}

impl Output {
    /// Opens a file to write behind its whole lines, and reads them.
    fn open(path: &Path) -> Result<(Self, Lines)> {
        let shown = || path.display().to_string();
        let lines = match std::fs::read(path) {
            Ok(bytes) => Lines::read(&bytes).with_context(shown)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Lines::default(),
            Err(error) => return Err(error).with_context(shown),
        };
        let mut file =
            OpenOptions::new().create(true).truncate(false).write(true).open(path).with_context(shown)?;
        file.set_len(lines.whole as u64)?;
        file.seek(std::io::SeekFrom::End(0))?;
        Ok((Self::File(file), lines))
    }

    fn line(&mut self, line: &impl serde::Serialize) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        match self {
            Self::Terminal => std::io::stdout().write_all(&text),
            Self::File(file) => file.write_all(&text),
        }
    }
}
