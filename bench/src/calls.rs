//! What a call takes that finds its mask, alone and in batches: what bridges to other languages add their own
//! to. `bench/python` prints it beside the package.
//!
//! Wall-clock time, since batches use threads: the least of several runs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anygram::{BatchOptions, Compiler, Constraint, LoadOptions, MaskRows, Matcher, Vocabulary, batch_masks};
use anyhow::{Result, ensure};

use crate::input;

#[derive(clap::Args)]
pub struct Args {
    /// The grammar, in Lark's notation.
    #[arg(long)]
    grammar: PathBuf,
    /// A vocabulary file; without it the one that travels with the program.
    #[arg(long)]
    vocab: Option<PathBuf>,
    /// A text of the grammar: outputs stand at its beginnings.
    #[arg(long)]
    text: String,
    /// Sets of tables.
    #[arg(long, default_value_t = 2)]
    tables: usize,
    /// Outputs of a batch.
    #[arg(long, default_values_t = [1, 32, 256])]
    batches: Vec<usize>,
}

/// Runs of which the least counts.
const RUNS: usize = 15;

/// Prints one line of JSON.
pub fn run(args: &Args) -> Result<()> {
    let vocabulary = match &args.vocab {
        Some(path) => Vocabulary::from_file(path, &LoadOptions::default())?,
        None => Vocabulary::builtin(),
    };
    let language = input::language(Path::new(&args.grammar), &Compiler::default())?;
    let constraint = Constraint::new(language, vocabulary)?;
    let tokens = constraint.vocabulary().encode(&args.text)?;
    ensure!(!tokens.is_empty(), "the text is empty: give one that begins a sentence");
    let mut line = serde_json::Map::new();

    let mut matcher = constraint.matcher()?;
    matcher.advance_all(&tokens)?;
    let mut words = vec![0; constraint.mask_words()];
    matcher.mask_into(&mut words)?;
    let least = least(1_000, || matcher.mask_into(&mut words))?;
    line.insert("fill_mask_us".into(), least.into());
    for &n_outputs in &args.batches {
        let mut matchers = constraint.matchers(BatchOptions { n_outputs, n_tables: args.tables })?;
        for (at, matcher) in matchers.iter_mut().enumerate() {
            matcher.advance_all(&tokens[..at % (tokens.len() + 1)])?;
        }
        line.insert(
            format!("fill_masks_{n_outputs}_us"),
            batch(&mut matchers, constraint.mask_words())?.into(),
        );
    }
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

fn batch(matchers: &mut [Matcher], n_words: usize) -> Result<f64> {
    let mut words = vec![0; matchers.len() * n_words];
    let mut fill = || {
        let results = batch_masks(matchers, MaskRows::new(&mut words, n_words));
        results.into_iter().collect::<Result<(), _>>()
    };
    fill()?;
    least(20, fill)
}

/// Microseconds of a call: the least mean of several runs.
fn least<E: Into<anyhow::Error>>(n_calls: usize, mut call: impl FnMut() -> Result<(), E>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let began = Instant::now();
        for _ in 0..n_calls {
            call().map_err(Into::into)?;
        }
        least = least.min(began.elapsed().as_secs_f64() * 1e6 / n_calls as f64);
    }
    Ok(least)
}
