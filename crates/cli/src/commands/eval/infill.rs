use std::path::PathBuf;

use anygram::TokenId;
use anygram_eval::infill::{Infill, Infilled, infill};
use anygram_eval::{Lines, Method};
use anyhow::{Context, Result};
use serde_json::json;

use super::{Output, bar, command};
use crate::input::{GrammarArgs, VocabArgs};
use crate::texts::texts;

/// Infilling of real texts without a model
///
/// Regions of 3 to 12 tokens are removed from each text. As gaps (any number of tokens) a completion fills
/// them. As holes (as many tokens as were removed) the decoding loop fills them under each of the methods,
/// with simulated marginals in place of a model. Each is a line of JSON: whether the result is a sentence,
/// tokens, microseconds of the constraint. Texts that are no sentences are left out. With --out a run can be
/// resumed.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    vocab: VocabArgs,
    /// The name of the texts in the report.
    #[arg(long)]
    name: String,
    /// Numbers of regions.
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = [1, 2, 3])]
    regions: Vec<usize>,
    /// Methods that fill holes.
    #[arg(long, value_name = "METHOD", num_args = 1.., default_values = [
        "none", "intersection", "lookahead", "compatible",
    ])]
    methods: Vec<String>,
    /// Decoding steps.
    #[arg(long, value_name = "T", default_value_t = 8)]
    steps: usize,
    /// How far the true token leads the others, whose noise is 1.5, on the scale of logits.
    #[arg(long, default_value_t = 3.0)]
    sharpness: f64,
    /// The seed of regions and noise.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the first N texts of each file.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Only texts of at most N tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Append the lines to this file [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A note for the report: date, commit, machine.
    #[arg(long, default_value = "")]
    note: String,
    /// The texts: one a line, or JSON Lines with "text".
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub fn run(args: &Args) -> Result<bool> {
    let methods = args.methods.iter().map(|name| Method::parse(name)).collect::<Result<_, _>>()?;
    let constraint = args.grammar.constraint(args.grammar.language()?, args.vocab.vocabulary()?)?;
    let mut all: Vec<Vec<TokenId>> = Vec::new();
    for file in &args.files {
        let sentences = texts(file)?.into_iter().filter(|text| {
            constraint.language().read(text.text.as_bytes()).is_ok_and(|reading| reading.is_sentence)
        });
        for text in sentences.take(args.first.unwrap_or(usize::MAX)) {
            let place = || format!("{} line {}", file.display(), text.line);
            let tokens = match &text.ids {
                Some(ids) => ids.iter().copied().map(TokenId).collect(),
                None => constraint.vocabulary().encode(&text.text).with_context(place)?,
            };
            all.push(tokens);
        }
    }
    all.retain(|tokens| tokens.len() <= args.max_tokens.unwrap_or(usize::MAX));
    let (mut output, lines) = match &args.out {
        Some(path) => Output::open(path)?,
        None => (Output::Terminal, Lines::default()),
    };
    let done = lines.infilled().map(Infilled::key).collect();
    output.line(&json!({"command": command(), "note": args.note}))?;
    let options = Infill {
        name: args.name.clone(),
        methods,
        regions: args.regions.clone(),
        steps: args.steps,
        sharpness: args.sharpness,
        seed: args.seed,
    };
    let total = all.len() * args.regions.len() * (args.methods.len() + 2);
    let bar = bar(total as u64, "fillings");
    let mut sink = |infilled: Infilled| {
        bar.inc(1);
        Ok(output.line(&infilled)?)
    };
    infill(&constraint, &all, &options, &done, &mut sink)?;
    bar.finish_and_clear();
    Ok(true)
}
