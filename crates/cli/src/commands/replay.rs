use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anygram::{TokenId, Vocabulary};
use anygram_left_to_right::tokens::get_bit;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::decoder::{Decoder, OnDevice, Stop};
use crate::input::{GrammarArgs, VocabArgs};
use crate::texts::{texts, tokens};
use crate::timing::{Summary, Times};

/// Teacher-forced decoding of real texts: check every mask, and measure.
///
/// At each step: compute the mask, check that the true token is in it, advance. At the end the text must be a
/// sentence. Files have one text a line, or JSON Lines with "text" and optional "ids"; without ids the
/// vocabulary encodes the text.
///
/// Prints one JSON object. Texts that stop are counted: "false_rejects" because the true token was not in the
/// mask, "errors" because of an error, "not_sentences" because the text ended too early. "failures" has the
/// place of the first few. "mask_us" and "advance_us" are thread CPU microseconds (with --engine cuda those
/// of the host). The exit status is 0 whatever was counted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    vocab: VocabArgs,
    /// Run all texts once before, without counting or measuring.
    #[arg(long)]
    warmup: bool,
    /// Only the first N texts of each file.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Only texts of at most N tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Replay N texts side by side: each step computes the masks of all of them in one call, on all cores or
    /// on a GPU. The times of masks are then wall-clock, divided by the number of masks.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_BATCH))]
    batch: u32,
    /// How many failures to show.
    #[arg(long, value_name = "N", default_value_t = 5)]
    show: usize,
    /// The texts.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The most texts that are replayed side by side.
const MOST_BATCH: i64 = 65_536;

const EXAMPLES: &str = "\
Examples:
  anygram replay --grammar sql.lark --vocab builtin queries.txt
  anygram replay -g sql.lark -v qwen.tiktoken.gz --eos 151643 --warmup --first 50 queries.tok.jsonl";

/// Where a text stopped.
#[derive(Serialize)]
struct Failure {
    file: String,
    /// Counted from 1.
    line: usize,
    kind: &'static str,
    /// The number of tokens before the one that failed.
    step: usize,
    message: String,
}

#[derive(Serialize)]
struct Report {
    grammar: String,
    vocab_size: usize,
    engine: &'static str,
    lexer: &'static str,
    vocab_ms: f64,
    compile_ms: f64,
    first_mask_ms: f64,
    texts: usize,
    steps: usize,
    false_rejects: usize,
    errors: usize,
    not_sentences: usize,
    failures: Vec<Failure>,
    mask_us: Summary,
    advance_us: Summary,
    batch: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<OnDevice>,
    memory_mb: f64,
}

#[derive(Default)]
struct Tally {
    mask: Times,
    advance: Times,
    steps: usize,
    first_mask_ms: Option<f64>,
}

enum Outcome {
    Sentence,
    FalseReject(String),
    Error(String),
    NotSentence(String),
}

pub fn run(args: &Args) -> Result<bool> {
    let start = Instant::now();
    let vocabulary = args.vocab.vocabulary()?;
    let vocab_ms = ms(start);
    let start = Instant::now();
    let constraint = args.grammar.constraint(args.grammar.language_of_any_engine()?, vocabulary)?;
    let mut decoder = Decoder::new(&args.grammar, &constraint, args.batch as usize)?;
    let compile_ms = ms(start);

    let replayed = replayed(args, constraint.vocabulary())?;
    let total =
        replayed.iter().map(|(_, _, tokens)| tokens.len() as u64).sum::<u64>() * (1 + u64::from(args.warmup));
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(4));
    let style = "{elapsed_precise} {bar:40} {pos}/{len} tokens, {eta} to go {msg}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));

    let texts: Vec<&[TokenId]> = replayed.iter().map(|(_, _, tokens)| &tokens[..]).collect();
    if args.warmup {
        let tally = &mut Tally::default();
        Replay { decoder: &mut decoder, tally, bar: &bar }.run(&texts, |_, _, _| {});
    }
    let mut tally = Tally::default();
    let (mut false_rejects, mut errors, mut not_sentences, mut failures) = (0, 0, 0, Vec::new());
    Replay { decoder: &mut decoder, tally: &mut tally, bar: &bar }.run(&texts, |text, step, outcome| {
        let (kind, message) = match outcome {
            Outcome::Sentence => return,
            Outcome::FalseReject(message) => ("false_reject", message),
            Outcome::Error(message) => ("error", message),
            Outcome::NotSentence(message) => ("not_sentence", message),
        };
        false_rejects += usize::from(kind == "false_reject");
        errors += usize::from(kind == "error");
        not_sentences += usize::from(kind == "not_sentence");
        bar.set_message(format!("{} stopped", false_rejects + errors + not_sentences));
        let (file, line, _) = &replayed[text];
        if failures.len() < args.show {
            failures.push(Failure { file: file.display().to_string(), line: *line, kind, step, message });
        }
    });
    bar.finish_and_clear();
    let device = decoder.on_device();
    if let Some(notice) = device.as_ref().and_then(OnDevice::notice) {
        let _ = writeln!(anstream::stderr(), "{notice}");
    }

    let report = Report {
        grammar: args.grammar.grammar.display().to_string(),
        vocab_size: constraint.vocabulary().len(),
        engine: decoder.engine(),
        lexer: constraint.language().mode().name(),
        vocab_ms,
        compile_ms,
        first_mask_ms: tally.first_mask_ms.unwrap_or(0.0),
        texts: replayed.len(),
        steps: tally.steps,
        false_rejects,
        errors,
        not_sentences,
        failures,
        mask_us: tally.mask.summary(),
        advance_us: tally.advance.summary(),
        batch: args.batch,
        device,
        memory_mb: (peak_memory_mb().unwrap_or(0.0) * 10.0).round() / 10.0,
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&report)?)?;
    Ok(true)
}

/// The texts that are asked for: each with its file and line.
fn replayed<'a>(args: &'a Args, vocabulary: &Vocabulary) -> Result<Vec<(&'a PathBuf, usize, Vec<TokenId>)>> {
    let mut replayed = Vec::new();
    for file in &args.files {
        for text in texts(file)?.iter().take(args.first.unwrap_or(usize::MAX)) {
            let tokens =
                tokens(vocabulary, text).with_context(|| format!("{} line {}", file.display(), text.line))?;
            if tokens.len() <= args.max_tokens.unwrap_or(usize::MAX) {
                replayed.push((file, text.line, tokens));
            }
        }
    }
    Ok(replayed)
}

/// A text that is being replayed, and how many of its tokens were read.
struct Progress {
    text: usize,
    n_read: usize,
}

/// Texts on their way through the outputs of a decoder.
struct Replay<'a> {
    decoder: &'a mut Decoder,
    tally: &'a mut Tally,
    bar: &'a ProgressBar,
}

impl Replay<'_> {
    /// Replays texts, as many side by side as there are outputs. `ended` is told of each text how many tokens
    /// were read, and what became of it.
    fn run(&mut self, texts: &[&[TokenId]], mut ended: impl FnMut(usize, usize, Outcome)) {
        let n_words = self.decoder.mask_words();
        let mut waiting = (0..texts.len()).map(|text| Progress { text, n_read: 0 });
        // The texts of the first outputs, in their order.
        let mut active: Vec<Progress> = waiting.by_ref().take(self.decoder.n_outputs()).collect();
        let mut rows = vec![0; active.len() * n_words];
        while !active.is_empty() {
            let masked = self.masks(active.len(), &mut rows);
            let mut outcomes = Vec::with_capacity(active.len());
            for (at, ((masked, progress), row)) in
                masked.into_iter().zip(&mut active).zip(rows.chunks(n_words)).enumerate()
            {
                outcomes.push(self.step(at, texts[progress.text], progress, masked.map(|()| row)));
            }
            // From the last on, so that the places of those before stay what they are.
            for (at, outcome) in outcomes.into_iter().enumerate().rev() {
                let Some(outcome) = outcome else { continue };
                ended(active[at].text, self.decoder.n_tokens(at), outcome);
                self.decoder.reset(at);
                if let Some(next) = waiting.next() {
                    active[at] = next;
                } else {
                    active.swap_remove(at);
                    self.decoder.swap(at, active.len());
                }
            }
        }
    }

    /// The masks of the first outputs. Of one the time is that of the thread, of more that of the clock:
    /// other threads and a device work on them.
    fn masks(&mut self, n: usize, rows: &mut [u32]) -> Vec<Result<()>> {
        let start = Instant::now();
        let masked = match n {
            1 => self.tally.mask.measure(|| self.decoder.masks_into(1, rows)),
            _ => self.decoder.masks_into(n, rows),
        };
        if n > 1 {
            self.tally.mask.add(start.elapsed(), n);
        }
        self.tally.first_mask_ms.get_or_insert_with(|| ms(start));
        masked
    }

    /// Reads the next token of a text. What became of the text, if that is its end.
    fn step(
        &mut self,
        output: usize,
        tokens: &[TokenId],
        progress: &mut Progress,
        mask: Result<&[u32]>,
    ) -> Option<Outcome> {
        let mask = match mask {
            Ok(mask) => mask,
            Err(error) => return Some(Outcome::Error(error.to_string())),
        };
        if let Some(&token) = tokens.get(progress.n_read) {
            let allowed = get_bit(mask, token.index());
            let wrong = |what: &str| Some(Outcome::Error(format!("token {} was {what}", token.0)));
            match self.tally.advance.measure(|| self.decoder.advance(output, token)) {
                Ok(()) if allowed => self.tally.steps += 1,
                Ok(()) => return wrong("advanced though its bit was not set"),
                Err(Stop::Refused(_)) if allowed => return wrong("refused though its bit was set"),
                Err(Stop::Refused(refusal)) => return Some(Outcome::FalseReject(refusal)),
                Err(Stop::Error(error)) => return Some(Outcome::Error(error)),
            }
            self.bar.inc(1);
            progress.n_read += 1;
        }
        if progress.n_read < tokens.len() {
            return None;
        }
        if self.decoder.is_sentence(output) {
            return Some(Outcome::Sentence);
        }
        let expected = self.decoder.expected(output).join(", ");
        Some(Outcome::NotSentence(format!("the text ends too early; expected {expected}")))
    }
}

fn ms(start: Instant) -> f64 {
    (start.elapsed().as_secs_f64() * 1e4).round() / 10.0
}

/// The most memory that the process held, where the system tells.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}
