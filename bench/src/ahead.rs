//! Work ahead: the first text of a grammar, with and without a thread that computes masks while the model
//! does.
//!
//! Each text begins with a grammar that was compiled anew, so that everything is cold but the vocabulary. In
//! place of a model there is a pause before each token. Times are those of a clock, not of a processor, since
//! an output waits for whoever works on its tables; so they tell little on a machine that is busy.

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anygram::{Cancel, GrammarFormat, Matcher, TokenId, Vocabulary};
use anygram_left_to_right::tokens::get_bit;
use anyhow::{Result, anyhow, bail, ensure};

use crate::masks::engine;
use crate::masks::report::{commit, cpu, today};
use crate::masks::workload::{Chosen, Workload};
use crate::measure::{print_table, progress, quantile, us};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Milliseconds that the model takes for a token.
    #[arg(long, value_name = "MS", default_value_t = 10.0)]
    model: f64,
    /// Milliseconds that it takes for the prompt.
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    prompt: f64,
    /// Texts of each workload.
    #[arg(long, value_name = "N", default_value_t = 10)]
    texts: usize,
    /// The first tokens of each text that are decoded.
    #[arg(long, value_name = "N", default_value_t = 100)]
    steps: usize,
}

const EXAMPLES: &str = "\
Examples:
  anygram-bench ahead
  anygram-bench ahead --only cpp --model 30";

/// As [`workload::replayed`](crate::masks::workload::replayed) names them.
const WORKLOADS: [&str; 4] = ["sql_grammar", "sqlite_kw", "cpp_he", "smiles"];

const COLUMNS: [&str; 7] = ["workload", "ahead", "steps", "p50 µs", "p99", "max", "mean"];

/// Situations that are looked at during one token of the model, at most.
const MANY: usize = 10_000;

/// What an output is before a step, for the thread that works ahead.
type Ahead = (Matcher, Cancel);

pub fn run(args: &Args) -> Result<()> {
    let vocabulary = args.chosen.vocabulary()?;
    let workloads = args.chosen.among(&WORKLOADS)?;
    let bar = progress(workloads.len() * args.texts, "texts");
    let mut rows = Vec::new();
    for name in workloads {
        bar.set_message(name.to_owned());
        let workload = args.chosen.replayed(name, &vocabulary)?;
        let of_both = measure(args, &workload, &vocabulary, || bar.inc(1))?;
        rows.extend(of_both.iter().zip(["no", "yes"]).map(|(steps, ahead)| row(name, ahead, steps)));
    }
    bar.finish_and_clear();
    let setting = format!(
        "{}, {}, commit {}; {} ms for a token, {} ms for the prompt; by the clock.",
        today(),
        cpu(),
        commit(),
        args.model,
        args.prompt
    );
    print_table(&setting, &COLUMNS, &rows);
    Ok(())
}

fn row(name: &str, ahead: &str, steps: &[f64]) -> Vec<String> {
    let mean = steps.iter().sum::<f64>() / steps.len().max(1) as f64;
    let times = [0.5, 0.99, 1.0].map(|share| us(quantile(steps, share)));
    let [p50, p99, max] = times;
    vec![name.into(), ahead.into(), steps.len().to_string(), p50, p99, max, us(mean)]
}

/// Microseconds of the steps without and with work ahead.
fn measure(
    args: &Args,
    workload: &Workload,
    vocabulary: &Vocabulary,
    mut done: impl FnMut(),
) -> Result<[Vec<f64>; 2]> {
    let texts = workload.texts.iter().step_by((workload.texts.len() / args.texts).max(1));
    let (jobs, todo) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| work_ahead(todo));
        let mut steps = [Vec::new(), Vec::new()];
        for text in texts.take(args.texts) {
            let text = &text[..text.len().min(args.steps)];
            let mut decoded = [None, None];
            for (at, works_ahead) in [false, true].into_iter().enumerate() {
                let jobs = works_ahead.then_some(&jobs);
                let (times, masks) = decode(args, &workload.grammar, text, vocabulary, jobs)?;
                steps[at].extend(times);
                decoded[at] = Some(masks);
            }
            ensure!(decoded[0] == decoded[1], "wrong: masks differ with work ahead");
            done();
        }
        drop(jobs);
        Ok(steps)
    })
}

fn work_ahead(todo: Receiver<Ahead>) {
    for (output, cancel) in todo {
        output.work_ahead(MANY, &cancel);
    }
}

/// Decodes the first text of a grammar: the microseconds of each step, and all masks.
fn decode(
    args: &Args,
    grammar: &str,
    text: &[u32],
    vocabulary: &Vocabulary,
    jobs: Option<&mpsc::Sender<Ahead>>,
) -> Result<(Vec<f64>, Vec<Vec<u32>>)> {
    let mut output =
        engine::matcher(GrammarFormat::Lark, grammar, vocabulary).map_err(|error| anyhow!(error))?;
    let model = |output: &Matcher, ms: f64| -> Result<Cancel> {
        let cancel = Cancel::new();
        if let Some(jobs) = jobs {
            jobs.send((output.fork(), cancel.clone()))?;
        }
        std::thread::sleep(Duration::from_secs_f64(ms / 1e3));
        Ok(cancel)
    };
    let (mut times, mut masks) = (Vec::new(), Vec::new());
    let mut cancel = model(&output, args.prompt)?;
    for &token in text {
        // When the model is done there is a token to append, and before the first a mask to compute.
        let begun = Instant::now();
        cancel.cancel();
        let mut words = vec![0; output.constraint().mask_words()];
        output.mask_into(&mut words)?;
        let mask = begun.elapsed();
        if !get_bit(&words, token as usize) {
            bail!("wrong: token {token} of a text is not in its mask");
        }
        cancel = model(&output, args.model)?;
        let begun = Instant::now();
        cancel.cancel();
        output.advance(TokenId(token))?;
        times.push((mask + begun.elapsed()).as_secs_f64() * 1e6);
        masks.push(words);
    }
    Ok((times, masks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::workload;

    #[test]
    fn masks_are_the_same() {
        let vocabulary = Vocabulary::builtin();
        let workload = workload::built_in(&vocabulary).unwrap();
        let chosen = Chosen { shared: Default::default(), only: Vec::new() };
        let args = Args { chosen, model: 0.5, prompt: 1.0, texts: 2, steps: 20 };
        let steps = measure(&args, &workload, &vocabulary, || {}).unwrap();
        assert!(!steps[0].is_empty() && steps[0].len() == steps[1].len());
    }
}
