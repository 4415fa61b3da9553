//! Measures many outputs side by side.

use anygram::GrammarFormat;
use anyhow::{Result, anyhow};
use indicatif::ProgressBar;
use serde::Serialize;

use super::engine::{Engine, Maker};
use super::pass::{self, Stats};
use super::workload::Workload;
use crate::measure::timed;

/// Outputs at a time.
pub const OUTPUTS: usize = 256;
/// Measured steps.
const STEPS: usize = 48;

/// All masks of a step, and all `advance`s, in microseconds of CPU time.
#[derive(Serialize)]
pub struct Batch {
    pub engine: String,
    pub masks: Option<Stats>,
    pub advances: Option<Stats>,
    pub error: Option<String>,
}

/// An output, the text that it decodes, and where it is.
struct Output {
    engine: Box<dyn Engine>,
    text: usize,
    at: usize,
}

/// Outputs at different places of different texts, with tables that are warm from all texts.
pub fn measure(workload: &Workload, maker: &Maker, bar: &ProgressBar) -> Batch {
    let result = try_measure(workload, maker, bar);
    let error = result.as_ref().err().map(ToString::to_string);
    let (masks, advances) = result.ok().unzip();
    Batch { engine: maker.name.into(), masks, advances, error }
}

fn try_measure(workload: &Workload, maker: &Maker, bar: &ProgressBar) -> Result<(Stats, Stats)> {
    let mut engine = (maker.make)(GrammarFormat::Lark, &workload.grammar).map_err(|error| anyhow!(error))?;
    let all: Vec<&[u32]> = workload.texts.iter().map(Vec::as_slice).collect();
    let warm = pass::decode(&mut *engine, &all, f64::INFINITY, bar);
    // Only texts that are decoded to the end.
    let texts: Vec<&[u32]> = (all.iter().zip(&warm.texts))
        .filter(|(text, steps)| !text.is_empty() && text.len() == steps.len())
        .map(|(text, _)| *text)
        .collect();
    if texts.is_empty() {
        return Err(anyhow!("no text is decoded to the end: {}", warm.stops.first.unwrap_or_default()));
    }
    let mut output = |number: usize| -> Result<Output> {
        let (text, mut engine) = (number % texts.len(), engine.fork());
        engine.begin();
        let at = number * 7 % texts[text].len();
        for &token in &texts[text][..at] {
            step(&mut *engine, token)?;
        }
        Ok(Output { engine, text, at })
    };
    let mut outputs: Vec<Output> = (0..OUTPUTS).map(&mut output).collect::<Result<_>>()?;
    let (mut masks, mut advances) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        let (mut mask, mut advance) = (0.0, 0.0);
        for output in &mut outputs {
            if output.at == texts[output.text].len() {
                output.engine.begin();
                (output.text, output.at) = ((output.text + OUTPUTS) % texts.len(), 0);
            }
            let (masked, time) = timed(|| output.engine.mask());
            masked.map_err(|error| anyhow!(error))?;
            mask += time;
        }
        for output in &mut outputs {
            let token = texts[output.text][output.at];
            if !output.engine.allows(token) {
                return Err(anyhow!("token {} of text {} is not in the mask", output.at, output.text + 1));
            }
            let (advanced, time) = timed(|| step(&mut *output.engine, token));
            advanced?;
            advance += time;
            output.at += 1;
        }
        masks.push(mask);
        advances.push(advance);
        bar.inc(1);
    }
    Ok((Stats::of(masks), Stats::of(advances)))
}

fn step(engine: &mut dyn Engine, token: u32) -> Result<()> {
    match engine.advance(token) {
        Ok(true) => Ok(()),
        Ok(false) => Err(anyhow!("a token is refused that was read before")),
        Err(error) => Err(anyhow!(error)),
    }
}
