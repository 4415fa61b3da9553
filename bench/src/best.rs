//! Measures the best completion, by the number of open holes and the sharpness of the marginals.
//!
//! Canvases are real texts with EOS behind them, of a given length, with some slots open. The marginals are
//! [simulated](Simulated). The right answer is bounded from below: the text itself is a completion, so the
//! best completion cannot weigh less.

use std::path::PathBuf;
use std::sync::Arc;

use anygram::{
    Canvas, Compiler, Constraint, Decision, End, Floor, LoadOptions, LogProbs, Slot, Tail, TokenId,
    Vocabulary, Weigher,
};
use anygram_bits::Random;
use anyhow::{Result, ensure};

use crate::canvas::Texts;
use crate::input;
use crate::measure::{print_table, quantile, timed};
use crate::simulated::Simulated;

#[derive(clap::Args)]
pub struct Args {
    /// The folder of shared data.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// The workloads.
    #[arg(long, default_values = ["smiles", "sql_grammar", "sqlite", "cpp_he"])]
    names: Vec<String>,
    /// Slots of a canvas.
    #[arg(long, default_value_t = 256)]
    slots: usize,
    /// Open holes; those at random places are within and just behind the text.
    #[arg(long, default_values_t = [32, 256])]
    open: Vec<usize>,
    /// How far the true token leads the others.
    #[arg(long, default_values_t = [1.5, 3.0, 6.0])]
    sharpness: Vec<f64>,
    /// Canvases of a workload.
    #[arg(long, default_value_t = 20)]
    most: usize,
    /// Tokens that are listed for each hole.
    #[arg(long, default_value_t = 32)]
    listed: usize,
    /// Standard deviation of the noise.
    #[arg(long, default_value_t = 1.5)]
    noise: f64,
}

pub fn run(args: &Args) -> Result<()> {
    let eos = TokenId(151_643);
    let options = LoadOptions { eos: vec![eos.0], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(args.data.join("tokenizers/qwen.tiktoken.gz"), &options)?;
    for name in &args.names {
        let language = input::language(&args.data.join(format!("replay/{name}.lark")), &Compiler::default())?;
        let constraint = Constraint::new(Arc::clone(&language), vocabulary.clone())?;
        let texts = Texts::new(&constraint, &args.data.join(format!("replay/{name}.tok.jsonl")))?;
        let tokens = texts.tokens();
        let texts: Vec<&Vec<TokenId>> = texts.all().iter().filter(|text| text.len() < args.slots).collect();
        let mut weigher = Weigher::new(&constraint)?;
        let mut rows = Vec::new();
        for &open in &args.open {
            for &sharpness in &args.sharpness {
                let mut random = Random::new(23);
                let simulated = Simulated { listed: args.listed, noise: args.noise, sharpness };
                let (mut times, mut n_unknown) = (Vec::new(), 0);
                for text in texts.iter().take(args.most) {
                    let mut row = (*text).clone();
                    row.resize(args.slots, eos);
                    let canvas = opened(&row, text.len(), open, &mut random);
                    let listed = simulated.rows(&canvas, &row, &tokens, &mut random);
                    let marginals = LogProbs::listed(&listed, Floor::BelowListed)?;
                    let (best, time) = timed(|| weigher.best(&canvas, &marginals, Tail::Counted));
                    match best? {
                        Decision::Yes(best) => {
                            let known: f64 = listed.iter().map(|row| row[0].1).sum();
                            ensure!(
                                best.log_prob >= known - 1e-6,
                                "{name}: {} is not best, for {known} is",
                                best.log_prob
                            );
                            times.push(time / 1e3);
                        }
                        Decision::No => anyhow::bail!("{name}: the text itself is a completion"),
                        Decision::Unknown(_) => n_unknown += 1,
                    }
                }
                let ms = |share: f64| format!("{:.1}", quantile(&times, share));
                rows.push(vec![
                    format!("{open}"),
                    format!("{sharpness}"),
                    times.len().to_string(),
                    ms(0.5),
                    ms(0.9),
                    ms(1.0),
                    n_unknown.to_string(),
                ]);
            }
        }
        let columns = ["open", "sharpness", "known", "ms p50", "p90", "largest", "unknown"];
        print_table(&format!("{name}: best, canvases of {} slots", args.slots), &columns, &rows);
    }
    Ok(())
}

/// A row with so many slots open, near its text first.
pub fn opened(row: &[TokenId], n_text: usize, open: usize, random: &mut Random) -> Canvas {
    let mut slots: Vec<Slot> = row.iter().map(|&token| Slot::Fixed(token)).collect();
    let near = (n_text + 8).max(open).min(row.len());
    let open = open.min(near);
    let mut order: Vec<usize> = (0..near).collect();
    random.shuffle(&mut order);
    order.into_iter().take(open).for_each(|slot| slots[slot] = Slot::Hole);
    Canvas::new(slots, End::Sentence)
}
