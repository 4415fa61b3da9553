use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Subcommand;

use crate::input::VocabArgs;

/// Save a vocabulary for processes that start often.
///
/// A tokenizer.json takes about a second to load; what is saved loads in some 20 ms, wherever a
/// vocabulary is expected, with its special tokens and its encoder. docs/saved-vocabularies.md has more.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  anygram vocab save --vocab tokenizer.json --eos 151645 qwen.anyvocab
  anygram batch --vocab qwen.anyvocab < questions.jsonl";

#[derive(Subcommand)]
enum What {
    /// Write a vocabulary to a file, and print one JSON object about it.
    Save {
        #[command(flatten)]
        vocab: VocabArgs,
        /// The file to write; it is replaced in one step.
        #[arg(value_name = "OUT")]
        out: PathBuf,
    },
}

pub fn run(args: &Args) -> Result<bool> {
    let What::Save { vocab, out } = &args.what;
    let began = Instant::now();
    let vocabulary = vocab.vocabulary()?;
    let vocab_ms = began.elapsed().as_secs_f64() * 1e3;
    vocabulary.save(out).map_err(|error| anyhow!("{error}"))?;
    let summary = serde_json::json!({
        "vocab_size": vocabulary.len(),
        "eos": vocabulary.eos().iter().map(|token| token.0).collect::<Vec<_>>(),
        "bytes": std::fs::metadata(out)?.len(),
        "vocab_ms": (vocab_ms * 10.0).round() / 10.0,
    });
    anstream::println!("{summary}");
    Ok(true)
}
