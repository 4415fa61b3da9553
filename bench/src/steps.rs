//! What a step of a decoding loop takes beside the model: before its answer, while it computes
//! ([`Decoder::prepare`]), and after ([`Decoder::answer`]), which nothing can hide.
//!
//! The canvas is all holes, and the vocabulary as large as asked: single bytes and words of five letters.
//! The model lists the likeliest tokens of each slot; it is [simulated](Simulated), and knows an object with
//! a long text. Each run has to end as a sentence.

use std::time::Instant;

use anygram::decode::{self, Answer, Sampling};
use anygram::{
    Canvas, Compiler, Constraint, DecodeOptions, Decoder, End, Floor, GrammarFormat, LogProbs, OpenSlots,
    Slot, SpecialIds, TokenId, Vocabulary,
};
use anygram_bits::Random;
use anyhow::{Context as _, Result, ensure};

use crate::measure::{print_table, quantile};
use crate::simulated::Simulated;

#[derive(clap::Args)]
pub struct Args {
    /// Tokens of the vocabulary.
    #[arg(long, default_value_t = 262_144)]
    size: usize,
    /// Slots of the canvas.
    #[arg(long, default_value_t = 256)]
    slots: usize,
    /// Steps of a run.
    #[arg(long, default_value_t = 32)]
    steps: usize,
    /// Strategies.
    #[arg(long, default_values = ["exact", "compatible", "best"])]
    strategies: Vec<String>,
    /// How far the true token leads the others.
    #[arg(long, default_values_t = [1.5, 3.0, 6.0])]
    sharpness: Vec<f64>,
    /// Runs of each.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Tokens that the model lists for each slot.
    #[arg(long, default_value_t = 64)]
    listed: usize,
    /// Standard deviation of the noise.
    #[arg(long, default_value_t = 1.5)]
    noise: f64,
    /// At which tokens are drawn; 0 takes the likeliest.
    #[arg(long, default_value_t = 0.0)]
    temperature: f64,
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    "required": ["a", "b"]}"#;

/// EOS and MASK.
const SPECIAL: [TokenId; 2] = [TokenId(0), TokenId(1)];

/// The first word.
const WORDS: usize = SPECIAL.len() + 256;

pub fn run(args: &Args) -> Result<()> {
    ensure!(args.size > WORDS + args.slots, "a vocabulary of {} tokens is too small", args.size);
    let constraint = constraint(args.size)?;
    let text = text(args);
    let tokens: Vec<TokenId> = (SPECIAL.len()..args.size).map(TokenId::new).collect();
    let mut rows = Vec::new();
    for strategy in &args.strategies {
        for &sharpness in &args.sharpness {
            let simulated = Simulated { listed: args.listed, noise: args.noise, sharpness };
            let mut times = Times::default();
            let named = decode::Named::find(strategy);
            let named = named.with_context(|| format!("no strategy is called `{strategy}`"))?;
            let mut decoder = Decoder::new(&constraint, named.make(&constraint)?);
            for seed in 0..args.runs as u64 {
                one_run(args, &constraint, &mut decoder, &simulated, (&text, &tokens), seed, &mut times)?;
            }
            let ms = |times: &[f64], share: f64| format!("{:.1}", quantile(times, share));
            rows.push(vec![
                format!("{strategy}, {sharpness}"),
                times.after.len().to_string(),
                ms(&times.before, 0.5),
                ms(&times.before, 1.0),
                ms(&times.after, 0.5),
                ms(&times.after, 0.9),
                ms(&times.after, 1.0),
                ms(&times.runs, 0.5),
            ]);
        }
    }
    let heading = format!("{} slots over {} tokens, {} listed, ms", args.slots, args.size, args.listed);
    let columns =
        ["strategy, sharpness", "steps", "beside p50", "largest", "after p50", "p90", "largest", "run p50"];
    print_table(&heading, &columns, &rows);
    Ok(())
}

/// Milliseconds of wall-clock time.
#[derive(Default)]
struct Times {
    before: Vec<f64>,
    after: Vec<f64>,
    runs: Vec<f64>,
}

fn one_run(
    args: &Args,
    constraint: &Constraint,
    decoder: &mut Decoder,
    simulated: &Simulated,
    (text, tokens): (&[TokenId], &[TokenId]),
    seed: u64,
    times: &mut Times,
) -> Result<()> {
    let mut random = Random::new(seed);
    let canvas = Canvas::new(vec![Slot::Hole; args.slots], End::Sentence);
    let sampling = Sampling { temperature: args.temperature, ..Sampling::default() };
    let options =
        DecodeOptions { steps: args.steps, block: None, seed, sampling, ..DecodeOptions::default() };
    let mut session = decoder.begin(&canvas, OpenSlots::Mask(SPECIAL[1]), &options)?;
    let mut sum = 0.0;
    loop {
        let began = Instant::now();
        if decoder.view(&mut session)?.is_none() {
            break;
        }
        decoder.prepare(&mut session)?;
        let before = ms_since(began);
        let now = Canvas::new(session.slots().to_vec(), End::Sentence);
        let answer =
            LogProbs::listed(&shares(simulated.rows(&now, text, tokens, &mut random)), Floor::BelowListed)?;
        let began = Instant::now();
        decoder.answer(&mut session, Answer::Rows(&answer), None)?;
        let after = ms_since(began);
        times.before.push(before);
        times.after.push(after);
        sum += before + after;
    }
    times.runs.push(sum);
    let written = session.decoded().tokens().context("a run has left holes")?;
    let n_text = written.iter().position(|&token| token == SPECIAL[0]).unwrap_or(written.len());
    let mut matcher = constraint.matcher()?;
    matcher.advance_all(&written[..n_text])?;
    ensure!(matcher.is_sentence(), "a run has not ended as a sentence");
    Ok(())
}

fn ms_since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

/// What is listed has nearly all of the probability.
fn shares(mut rows: Vec<Vec<(TokenId, f64)>>) -> Vec<Vec<(TokenId, f64)>> {
    for row in &mut rows {
        let sum: f64 = row.iter().map(|pair| pair.1.exp()).sum();
        row.iter_mut().for_each(|pair| pair.1 -= sum.ln() + 0.01);
    }
    rows
}

fn constraint(size: usize) -> Result<Constraint> {
    let word = |number: usize| (0..5).map(|place| b'a' + (number / 26_usize.pow(place) % 26) as u8).collect();
    let bytes = (0..=255).map(|byte| vec![byte]);
    let tokens = SPECIAL.iter().map(|_| Vec::new()).chain(bytes).chain((0..size - WORDS).map(word));
    let special = SpecialIds { eos: vec![SPECIAL[0].0], mask: Some(SPECIAL[1].0), ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(tokens, special)?;
    let language = Compiler::default().compile(GrammarFormat::JsonSchema, SCHEMA)?;
    Ok(Constraint::new(language, vocabulary)?)
}

/// An object that fills most of the canvas.
fn text(args: &Args) -> Vec<TokenId> {
    let bytes =
        |text: &'static [u8]| text.iter().map(|&byte| TokenId::new(SPECIAL.len() + usize::from(byte)));
    let (head, tail) = (br#"{"a":""#, br#"","b":123}"#);
    let n_words = (args.slots * 7 / 8).saturating_sub(head.len() + tail.len());
    let words = (0..n_words).map(|at| TokenId::new(WORDS + at * 997 % (args.size - WORDS)));
    let text: Vec<TokenId> = bytes(head).chain(words).chain(bytes(tail)).collect();
    let n_eos = args.slots.saturating_sub(text.len());
    text.into_iter().chain(std::iter::repeat_n(SPECIAL[0], n_eos)).collect()
}
