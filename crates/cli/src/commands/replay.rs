use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anygram::{Constraint, TokenId, get_bit};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::decoder::{Decoder, Stop};
use crate::input::{self, GrammarArgs, VocabArgs};
use crate::texts::{Text, texts};
use crate::timing::{Summary, Times};

/// Decode real texts with the tokens forced, checking every mask and measuring.
///
/// At each step: compute the mask, check that the true token is in it, advance; at the end the text must be a sentence. Files hold a
/// text a line, or JSON Lines with "text" and perhaps "ids"; without ids a text is encoded by the vocabulary.
///
/// Prints one JSON object. Texts that stopped are counted: "false_rejects" because the true token was not in the mask, "errors" by an
/// error, "not_sentences" because the text ended too early; "failures" has the place of the first few. "mask_us" and "advance_us" are
/// thread CPU microseconds (with --engine cuda those of the host). The exit status is 0 whatever was counted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    vocab: VocabArgs,
    /// Run all texts once before, uncounted.
    #[arg(long)]
    warmup: bool,
    /// Only the first N texts of each file.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Only texts of at most N tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// How many failures to show.
    #[arg(long, value_name = "N", default_value_t = 5)]
    show: usize,
    /// The texts.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

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
    let constraint = input::constraint(&args.grammar, args.grammar.language_of_any_engine()?, vocabulary)?;
    let mut decoder = Decoder::new(&args.grammar, &constraint)?;
    let compile_ms = ms(start);

    let mut replayed: Vec<(&PathBuf, usize, Vec<TokenId>)> = Vec::new();
    for file in &args.files {
        for text in texts(file)?.iter().take(args.first.unwrap_or(usize::MAX)) {
            let tokens = tokens(&constraint, text).with_context(|| format!("{} line {}", file.display(), text.line))?;
            if tokens.len() <= args.max_tokens.unwrap_or(usize::MAX) {
                replayed.push((file, text.line, tokens));
            }
        }
    }

    let total = replayed.iter().map(|(_, _, tokens)| tokens.len() as u64).sum::<u64>() * (1 + u64::from(args.warmup));
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(4));
    let style = "{elapsed_precise} {bar:40} {pos}/{len} tokens, {eta} to go {msg}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));

    if args.warmup {
        for (_, _, tokens) in &replayed {
            replay(&mut decoder, tokens, &mut Tally::default(), &bar);
            decoder.reset();
        }
    }
    let mut tally = Tally::default();
    let (mut false_rejects, mut errors, mut not_sentences, mut failures) = (0, 0, 0, Vec::new());
    for (file, line, tokens) in &replayed {
        let outcome = replay(&mut decoder, tokens, &mut tally, &bar);
        let step = decoder.n_tokens();
        let (kind, message) = match outcome {
            Outcome::Sentence => ("", String::new()),
            Outcome::FalseReject(message) => ("false_reject", message),
            Outcome::Error(message) => ("error", message),
            Outcome::NotSentence(message) => ("not_sentence", message),
        };
        false_rejects += usize::from(kind == "false_reject");
        errors += usize::from(kind == "error");
        not_sentences += usize::from(kind == "not_sentence");
        if !kind.is_empty() {
            bar.set_message(format!("{} stopped", false_rejects + errors + not_sentences));
            if failures.len() < args.show {
                failures.push(Failure { file: file.display().to_string(), line: *line, kind, step, message });
            }
        }
        decoder.reset();
    }
    bar.finish_and_clear();

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
        memory_mb: (peak_memory_mb().unwrap_or(0.0) * 10.0).round() / 10.0,
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&report)?)?;
    Ok(true)
}

fn tokens(constraint: &Constraint, text: &Text) -> Result<Vec<TokenId>> {
    match &text.ids {
        None => Ok(constraint.vocabulary().encode(&text.text)?),
        Some(ids) => {
            let tokens: Vec<TokenId> = ids.iter().copied().map(TokenId).collect();
            let size = constraint.vocabulary().len();
            if let Some(token) = tokens.iter().find(|token| token.index() >= size) {
                bail!("\"ids\" holds {}, which is not in the vocabulary of {size} tokens", token.0);
            }
            if constraint.vocabulary().decode(&tokens)? != text.text.as_bytes() {
                bail!("\"ids\" do not spell \"text\" in this vocabulary");
            }
            Ok(tokens)
        }
    }
}

fn replay(decoder: &mut Decoder, tokens: &[TokenId], tally: &mut Tally, bar: &ProgressBar) -> Outcome {
    let mut words = vec![0; decoder.mask_words()];
    for &token in tokens {
        let start = Instant::now();
        let masked = tally.mask.measure(|| decoder.mask_into(&mut words));
        tally.first_mask_ms.get_or_insert_with(|| ms(start));
        if let Err(error) = masked {
            return Outcome::Error(error.to_string());
        }
        let allowed = get_bit(&words, token.index());
        match tally.advance.measure(|| decoder.advance(token)) {
            Ok(()) if allowed => tally.steps += 1,
            Ok(()) => return Outcome::Error(format!("token {} was advanced though its bit was not set", token.0)),
            Err(Stop::Refused(_)) if allowed => {
                return Outcome::Error(format!("token {} was refused though its bit was set", token.0));
            }
            Err(Stop::Refused(refusal)) => return Outcome::FalseReject(refusal),
            Err(Stop::Error(error)) => return Outcome::Error(error),
        }
        bar.inc(1);
    }
    if decoder.is_sentence() {
        return Outcome::Sentence;
    }
    Outcome::NotSentence(format!("the text ends where it could go on with {}", decoder.expected().join(", ")))
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
