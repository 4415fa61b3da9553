//! Measures LAVE's verification: how many completable canvases it accepts, by the number of fillings and the
//! sharpness of the marginals.
//!
//! The marginals are [simulated](Simulated). The right answers are part of the benchmark: every canvas is
//! made from a text of its grammar, so every refusal is a false one. `exact` is asked too, and has to say
//! yes.

use std::path::PathBuf;
use std::sync::Arc;

use anygram::{
    Canvas, Compiler, Constraint, Decision, LoadOptions, LogProbs, Lookahead, Method, Methods, Slot, TokenId,
    Vocabulary,
};
use anygram_bits::Random;
use anyhow::{Context, Result, ensure};

use crate::canvas::{Question, Texts};
use crate::input;
use crate::measure::{print_table, quantile, timed, us};
use crate::simulated::Simulated;

#[derive(clap::Args)]
pub struct Args {
    /// The folder of shared data.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// The files of canvases, without `.jsonl`.
    #[arg(long, default_values = ["smiles", "sql_grammar", "cpp_he"])]
    names: Vec<String>,
    /// The settings: rand20 leaves 80 % of the tokens visible, as in the paper's study.
    #[arg(long, default_values = ["rand20", "rand50", "rand80"])]
    settings: Vec<String>,
    /// At most so many canvases of a setting.
    #[arg(long, default_value_t = 40)]
    most: usize,
    /// How far the true token leads the others.
    #[arg(long, default_values_t = [0.0, 1.5, 3.0, 4.5, 6.0, 8.0])]
    sharpness: Vec<f64>,
    /// Distinct fillings.
    #[arg(long, default_values_t = [1, 3, 5, 10, 20, 50])]
    fillings: Vec<usize>,
    /// Tokens that are listed for each hole.
    #[arg(long, default_value_t = 32)]
    listed: usize,
    /// Standard deviation of the noise.
    #[arg(long, default_value_t = 1.5)]
    noise: f64,
    /// Asks as the paper does, whether the text up to the last fixed slot is a viable prefix.
    #[arg(long)]
    published: bool,
}

/// A canvas and the text it was made from.
struct Known {
    canvas: Canvas,
    text: Vec<TokenId>,
}

pub fn run(args: &Args) -> Result<()> {
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(args.data.join("tokenizers/qwen.tiktoken.gz"), &options)?;
    for name in &args.names {
        let language = input::language(&args.data.join(format!("replay/{name}.lark")), &Compiler::default())?;
        let constraint = Constraint::new(Arc::clone(&language), vocabulary.clone())?;
        let texts = Texts::new(&constraint, &args.data.join(format!("replay/{name}.tok.jsonl")))?;
        let path = args.data.join(format!("canvas/{name}.jsonl"));
        let source = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let questions: Vec<Question> = source.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let mut methods = Methods::new(&constraint)?;
        for setting in &args.settings {
            let mut known = Vec::new();
            for question in questions.iter().filter(|question| question.setting == *setting) {
                let canvas = question.canvas()?;
                if let Some(text) = texts.text_of(&canvas) {
                    known.push(Known { text: text.to_vec(), canvas });
                }
            }
            known.truncate(args.most);
            measure(args, &mut methods, &format!("{name}, {setting}"), &known, &texts.tokens())?;
        }
    }
    Ok(())
}

fn measure(
    args: &Args,
    methods: &mut Methods,
    what: &str,
    known: &[Known],
    tokens: &[TokenId],
) -> Result<()> {
    let n_holes: usize = known.iter().map(|known| known.canvas.holes().count()).sum();
    for known in known {
        let answer = methods.solver().completable(&known.canvas)?;
        ensure!(
            !matches!(answer, Decision::No),
            "{what}: it is in the grammar, and was refused: {:?}",
            known.canvas
        );
    }
    let mut rows = Vec::new();
    for &sharpness in &args.sharpness {
        let mut random = Random::new(17);
        let simulated = Simulated { listed: args.listed, noise: args.noise, sharpness };
        let of = |known: &Known| simulated.marginals(&known.canvas, &known.text, tokens, &mut random);
        let marginals: Vec<LogProbs> = known.iter().map(of).collect::<Result<_>>()?;
        let mut row = vec![format!("{sharpness}")];
        let mut times = Vec::new();
        for &fillings in &args.fillings {
            let mut n_accepted = 0;
            for (seed, (known, marginals)) in known.iter().zip(&marginals).enumerate() {
                let lookahead = Lookahead { fillings, counts_room: !args.published, seed: seed as u64 };
                let ask =
                    || methods.completable(&known.canvas, Method::Lookahead, Some(marginals), lookahead);
                let (verdict, time) = timed(ask);
                n_accepted += usize::from(verdict?.decision.is_yes());
                if fillings == Lookahead::FILLINGS {
                    times.push(time);
                }
            }
            row.push(format!("{:.1}", 100.0 * n_accepted as f64 / known.len().max(1) as f64));
        }
        row.extend([us(quantile(&times, 0.5)), us(quantile(&times, 0.99))]);
        rows.push(row);
    }
    let fillings: Vec<String> = args.fillings.iter().map(|fillings| format!("N = {fillings}")).collect();
    let mut columns = vec!["sharpness"];
    columns.extend(fillings.iter().map(String::as_str));
    columns.extend(["us p50, N = 10", "p99"]);
    let holes = n_holes as f64 / known.len().max(1) as f64;
    let heading = format!("{what}: {} canvases, {holes:.1} holes each: % accepted by lookahead", known.len());
    print_table(&heading, &columns, &rows);
    Ok(())
}

impl Texts {
    /// The text that a canvas without gaps can be made from, if there is one.
    fn text_of(&self, canvas: &Canvas) -> Option<&[TokenId]> {
        let slots = canvas.slots();
        let last = slots.iter().rposition(|slot| *slot != Slot::Hole).map_or(0, |last| last + 1);
        let fits = |text: &&Vec<TokenId>| {
            let mut pairs = slots.iter().zip(text.iter());
            (last..=slots.len()).contains(&text.len())
                && pairs.all(|(slot, token)| *slot == Slot::Hole || *slot == Slot::Fixed(*token))
        };
        self.all().iter().find(fits).map(Vec::as_slice)
    }

    /// All tokens of the texts, each once.
    pub fn tokens(&self) -> Vec<TokenId> {
        let mut tokens: Vec<TokenId> = self.all().iter().flatten().copied().collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }
}
