//! A server's day: thousands of outputs in progress on one grammar, for a million of steps and more.
//!
//! Outputs come and go; all share the tables of one constraint. Told are the steps once tables are warm, and
//! what an output takes in memory beyond these tables.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anygram::{GrammarFormat, Matcher, TokenId, Vocabulary};
use anygram_bits::Random;
use anygram_left_to_right::tokens::get_bit;
use anyhow::{Context, Result, anyhow, bail};
use cpu_time::ProcessTime;
use serde::Serialize;

use crate::masks::engine;
use crate::masks::report::{commit, cpu, markdown_table, today};
use crate::masks::workload::{Chosen, Workload};
use crate::measure::{print_table, progress, quantile, timed, us};
use crate::schemas::data;
use crate::schemas::measure::held;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Outputs in progress at a time.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    outputs: usize,
    /// Steps of all outputs together, a mask and an advance each; the first half warms the tables.
    #[arg(long, value_name = "N", default_value_t = 400_000)]
    steps: usize,
    /// The most tokens of an output.
    #[arg(long, value_name = "N", default_value_t = 500)]
    tokens: usize,
    /// Also write everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write a page for the documentation.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  anygram-bench serve
  anygram-bench serve --only sql --outputs 100 --steps 100000";

/// Any JSON, with the texts of JSONSchemaBench.
const JSON: &str = "json";

/// It and others, as [`workload::replayed`](crate::masks::workload::replayed) names them.
const WORKLOADS: [&str; 5] = [JSON, "sql_grammar", "sqlite_kw", "cpp_he", "smiles"];

/// A grammar, and what its texts are like.
struct Job {
    name: &'static str,
    format: GrammarFormat,
    grammar: String,
    texts: Vec<Vec<u32>>,
}

/// What came of it.
#[derive(Serialize)]
struct Served {
    workload: String,
    outputs: usize,
    steps: usize,
    /// Outputs that came to their end.
    ended: usize,
    /// Microseconds of the steps of the second half.
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
    /// The longest steps of the first half.
    first_max_us: f64,
    /// How many of the second half took more than [`PAUSE_US`].
    pauses: usize,
    /// Seconds of all threads, and of the steps.
    process_s: f64,
    steps_s: f64,
    /// Bytes of the tables, as they tell, half-way and in the end.
    tables_half: usize,
    tables: usize,
    /// The most that they were.
    tables_max: usize,
    /// Bytes that went when all outputs but one had gone, for each of these, and its tokens.
    bytes_an_output: f64,
    tokens_an_output: f64,
}

/// A step beyond this is a pause.
const PAUSE_US: f64 = 2_000.0;

const COLUMNS: [&str; 13] = [
    "workload",
    "outputs",
    "steps",
    "ended",
    "p50 µs",
    "p99",
    "p99.9",
    "max",
    "over 2 ms",
    "max of 1st half",
    "tables MiB half, end, max",
    "bytes an output",
    "tokens",
];

pub fn run(args: &Args) -> Result<()> {
    let vocabulary = args.chosen.vocabulary()?;
    let mut served = Vec::new();
    for job in jobs(args, &vocabulary)? {
        served.push(serve(args, &job, &vocabulary)?);
    }
    report(args, &served)
}

fn jobs(args: &Args, vocabulary: &Vocabulary) -> Result<Vec<Job>> {
    let job = |name| {
        if name == JSON {
            let texts = json_texts(&args.chosen.shared, vocabulary)?;
            return Ok(Job { name, format: GrammarFormat::JsonSchema, grammar: "{}".into(), texts });
        }
        let Workload { grammar, texts, .. } = args.chosen.replayed(name, vocabulary)?;
        Ok(Job { name, format: GrammarFormat::Lark, grammar, texts })
    };
    args.chosen.among(&WORKLOADS)?.into_iter().map(job).collect()
}

fn json_texts(shared: &Path, vocabulary: &Vocabulary) -> Result<Vec<Vec<u32>>> {
    let schemas = data::schemas(&shared.join("data/jsonschemabench"), |_| true, (20, None))?;
    let texts = schemas.iter().flat_map(|schema| &schema.texts).filter(|text| text.1);
    texts.map(|(text, _)| Ok(vocabulary.encode(text)?.into_iter().map(|token| token.0).collect())).collect()
}

/// Draws tokens as texts have them, one after another.
struct Bigrams {
    /// Of each token, and of the beginning, those that follow it.
    followers: HashMap<Option<u32>, Vec<u32>>,
    all: Vec<u32>,
}

impl Bigrams {
    fn new(texts: &[Vec<u32>], eos: u32) -> Self {
        let (mut followers, mut all): (HashMap<_, Vec<u32>>, _) = (HashMap::new(), Vec::new());
        for text in texts {
            let mut before = None;
            for &token in text.iter().chain([&eos]) {
                followers.entry(before).or_default().push(token);
                all.push(token);
                before = Some(token);
            }
        }
        Self { followers, all }
    }

    /// A token that a mask allows: mostly one that follows the last in a text, else one of the texts, else
    /// any.
    fn draw(&self, last: Option<u32>, words: &[u32], random: &mut Random) -> Option<u32> {
        const TRIES: usize = 16;
        let followers = self.followers.get(&last).filter(|_| !random.chance(2));
        for tokens in followers.into_iter().chain([&self.all]) {
            for _ in 0..TRIES {
                let token = *random.choose(tokens);
                if get_bit(words, token as usize) {
                    return Some(token);
                }
            }
        }
        let from = random.below(words.len());
        let at = (0..words.len()).map(|at| (from + at) % words.len()).find(|&at| words[at] != 0)?;
        Some(32 * at as u32 + words[at].trailing_zeros())
    }
}

fn serve(args: &Args, job: &Job, vocabulary: &Vocabulary) -> Result<Served> {
    let bar = progress(args.steps, "steps");
    bar.set_message(job.name);
    let eos = vocabulary.eos().first().context("the vocabulary has no EOS")?;
    let bigrams = Bigrams::new(&job.texts, eos.0);
    let first = engine::matcher(job.format, &job.grammar, vocabulary).map_err(|error| anyhow!("{error}"))?;
    let mut words = vec![0; first.constraint().mask_words()];
    let mut outputs: Vec<Matcher> = (0..args.outputs).map(|_| first.fork()).collect();
    let mut random = Random::new(1);
    let (mut ended, mut times, mut tables_half, mut tables_max, mut first_max_us) =
        (0, Vec::new(), 0, 0, 0.0_f64);
    let begun = ProcessTime::now();
    for step in 0..args.steps {
        if step == args.steps / 2 {
            tables_half = outputs[0].memory_usage();
            first_max_us = quantile(&times, 1.0);
            times.clear();
        }
        let output = &mut outputs[step % args.outputs];
        if output.has_ended() || output.tokens().len() >= args.tokens {
            ended += 1;
            output.reset();
        }
        let (masked, mask) = timed(|| output.mask_into(&mut words));
        masked.map_err(|error| anyhow!("{}, step {step}: {error}", job.name))?;
        let last = output.tokens().last().map(|token| token.0);
        let Some(token) = bigrams.draw(last, &words, &mut random) else {
            bail!("wrong: {}, step {step}: no token may follow", job.name)
        };
        let (advanced, advance) = timed(|| output.advance(TokenId(token)));
        advanced.map_err(|error| anyhow!("wrong: {}, step {step}: {error}", job.name))?;
        times.push(mask + advance);
        if step % 1024 == 0 {
            bar.set_position(step as u64);
            tables_max = tables_max.max(outputs[0].memory_usage());
        }
    }
    let process_s = begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let tables = outputs[0].memory_usage();
    let gone = outputs.split_off(1);
    let n_tokens: usize = gone.iter().map(|output| output.tokens().len()).sum();
    let n_gone = gone.len().max(1) as f64;
    let before = held();
    drop(gone);
    let bytes = before.saturating_sub(held());
    let at = |share| quantile(&times, share);
    Ok(Served {
        workload: job.name.into(),
        outputs: args.outputs,
        steps: args.steps,
        ended,
        p50_us: at(0.5),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: at(1.0),
        first_max_us,
        pauses: times.iter().filter(|&&time| time > PAUSE_US).count(),
        process_s,
        steps_s: times.iter().sum::<f64>() / 1e6,
        tables_half,
        tables,
        tables_max,
        bytes_an_output: bytes as f64 / n_gone,
        tokens_an_output: n_tokens as f64 / n_gone,
    })
}

fn report(args: &Args, served: &[Served]) -> Result<()> {
    let mib = |bytes: usize| format!("{:.1}", bytes as f64 / 1_048_576.0);
    let row = |one: &Served| {
        vec![
            one.workload.clone(),
            one.outputs.to_string(),
            one.steps.to_string(),
            one.ended.to_string(),
            us(one.p50_us),
            us(one.p99_us),
            us(one.p999_us),
            us(one.max_us),
            one.pauses.to_string(),
            us(one.first_max_us),
            format!("{}, {}, {}", mib(one.tables_half), mib(one.tables), mib(one.tables_max)),
            format!("{:.0}", one.bytes_an_output),
            format!("{:.0}", one.tokens_an_output),
        ]
    };
    let rows: Vec<Vec<String>> = served.iter().map(row).collect();
    let setting = format!("{}, {}, commit {}; one thread.", today(), cpu(), commit());
    print_table(&setting, &COLUMNS, &rows);
    if let Some(path) = &args.markdown {
        let table = markdown_table(&COLUMNS.map(String::from), &rows);
        let page = crate::wrap::wrapped(&format!("{INTRODUCTION}\n{setting}\n\n{table}{HOW_TO_READ}"));
        std::fs::write(path, page).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(served)? + "\n")
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// What the page begins with.
const INTRODUCTION: &str = "# Many outputs for a long time, measured

For people who serve models. Afterwards you know what a step takes when thousands of outputs are in
progress on one grammar and its tables are full again and again, and what an output takes in memory. A
command writes this page:

```sh
cargo run --release -p anygram-bench -- serve --markdown docs/serve.md
```
";

const HOW_TO_READ: &str = "
- A step is a mask and an advance, in CPU time of its thread. Outputs take turns, and a new one begins
  where one ends. Tokens are drawn as the texts of the workload have them, one after another, and one in
  fifty from anywhere in them; so texts are stranger than a model's, and new situations never end.
- The columns before *max of 1st half* are of the second half of all steps, when tables are warm. *Over 2
  ms* counts steps.
- *Tables* is what they tell of themselves, half-way, in the end and at most. The limits are the defaults
  (`mask_bytes`, `cache_bytes`, `shared_items`).
- *Bytes an output* is what became free when all outputs but one were dropped, for each; *tokens* is how
  many each had then.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::workload;

    #[test]
    fn drawn_tokens_are_allowed() {
        let bigrams = Bigrams::new(&[vec![1, 2, 3], vec![1, 3]], 9);
        let mut random = Random::new(1);
        let words = |allowed: &[u32]| {
            let mut words = vec![0_u32; 2];
            allowed.iter().for_each(|token| words[*token as usize / 32] |= 1 << (token % 32));
            words
        };
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..500 {
            seen.extend(bigrams.draw(Some(1), &words(&[2, 3]), &mut random));
            // Of the texts none may come.
            assert_eq!(bigrams.draw(Some(1), &words(&[40]), &mut random), Some(40));
        }
        assert_eq!(seen, [2, 3].into());
        assert_eq!(bigrams.draw(None, &words(&[]), &mut random), None);
    }

    #[test]
    fn outputs_are_served() {
        let vocabulary = Vocabulary::builtin();
        let request = workload::built_in(&vocabulary).unwrap();
        let args = Args {
            chosen: Chosen { shared: PathBuf::new(), only: Vec::new() },
            outputs: 7,
            steps: 700,
            tokens: 60,
            json: None,
            markdown: None,
        };
        let grammar = request.grammar;
        let job = Job { name: "demo", format: GrammarFormat::Lark, grammar, texts: request.texts };
        let served = serve(&args, &job, &vocabulary).unwrap();
        assert!(served.ended > 0 && served.bytes_an_output > 0.0 && served.max_us > 0.0);
    }
}
