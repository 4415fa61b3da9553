//! Canvases of JSON schemas: valid texts of JSONSchemaBench of which half of the slots are holes.
//!
//! Each schema is compiled by itself and asked with a solver of its own, so that all tables are new. A canvas
//! is a text with EOS behind it up to the last slot, or the beginning of a longer text. The right answer is
//! part of the benchmark: the text is a completion, so a no ends the run.

use std::collections::{BTreeMap, BTreeSet};

use anygram::{
    Canvas, Compiler, Constraint, Decision, End, Filling, GrammarFormat, Slot, Solver, TokenId, Undecided,
    Vocabulary,
};
use anygram_bits::Random;
use anyhow::{Result, bail, ensure};

use super::From;
use crate::measure::{print_table, progress, quantile, timed};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    from: From,
    /// Only every so-many-th schema of a split.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Only the schema of this name.
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// Slots of a canvas.
    #[arg(long, default_value_t = 256)]
    slots: usize,
    /// So many per cent of them are holes.
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    holes: usize,
    /// So many of these are filled with the text's tokens, one after another.
    #[arg(long, value_name = "N", default_value_t = 8)]
    filled: usize,
    /// Print what takes more than 10 ms, or is not decided.
    #[arg(long)]
    slow: bool,
}

const EOS: TokenId = TokenId(super::EOS);

pub fn run(args: &Args) -> Result<()> {
    let vocabulary = args.from.vocabulary()?;
    let mut schemas = args.from.schemas(args.every, None)?;
    schemas.retain(|schema| args.schema.as_ref().is_none_or(|name| *name == schema.id));
    let (mut first, mut changed) = (Line::default(), Line::default());
    let bar = progress(schemas.len(), "schemas");
    for schema in &schemas {
        bar.set_message(schema.id.clone());
        bar.inc(1);
        let Some((text, _)) = schema.texts.iter().find(|(_, is_valid)| *is_valid) else { continue };
        let Ok(language) = Compiler::default().compile(GrammarFormat::JsonSchema, &schema.schema) else {
            continue;
        };
        let constraint = Constraint::new(language, vocabulary.clone())?;
        let mut text = vocabulary.encode(text.as_bytes())?;
        // Some texts are called valid that are not.
        let mut matcher = constraint.matcher()?;
        if matcher.advance_all(&text).is_err() || !matcher.is_sentence() {
            continue;
        }
        text.push(EOS);
        let end = if text.len() <= args.slots { End::Sentence } else { End::Prefix { remaining: None } };
        text.resize(args.slots, EOS);
        // The same canvas whatever else is asked.
        let seed = schema.id.bytes().fold(27u64, |seed, byte| seed.wrapping_mul(31) ^ u64::from(byte));
        let mut random = Random::new(seed);
        let slot = |&token| if random.chance(args.holes) { Slot::Hole } else { Slot::Fixed(token) };
        let mut canvas = Canvas::new(text.iter().map(slot).collect(), end);
        let mut solver = Solver::new(&constraint)?;
        let answer = first.ask(&mut solver, &canvas, (&schema.id, args.slow))?;
        // Holes take the text's tokens one after another, as in a loop. Where the completion has that token
        // already there is nothing to decide.
        let mut holes: Vec<usize> = canvas.holes().collect();
        let mut slots = answer;
        for _ in 0..args.filled.min(holes.len()) {
            let slot = holes.swap_remove(random.below(holes.len()));
            canvas.set(slot, text[slot])?;
            let is_other = |slots: &Vec<Filling>| slots[slot] != Filling::Token(text[slot]);
            if slots.as_ref().is_none_or(is_other) {
                slots = changed.ask(&mut solver, &canvas, (&schema.id, args.slow))?;
            }
        }
    }
    bar.finish_and_clear();
    if first.millis.is_empty() {
        bail!("no schema is asked for in {} that has a valid text", args.from.data.display());
    }
    let heading = format!("{} slots, {} % of them holes: completable", args.slots, args.holes);
    let columns = ["milliseconds", "canvases", "p50", "p90", "p99", "max", "undecided"];
    let lines = [("a new schema", &first), ("one more hole filled", &changed)];
    print_table(&heading, &columns, &lines.map(|(what, line)| line.row(what)));
    let stages: BTreeSet<&str> = lines.iter().flat_map(|(_, line)| line.by.keys().copied()).collect();
    let by = |stage: &str| lines.map(|(_, line)| line.by.get(stage).copied().unwrap_or(0).to_string());
    let rows = stages.iter().map(|stage| [vec![(*stage).to_owned()], by(stage).to_vec()].concat());
    print_table("decided by", &["stage", "a new schema", "one more hole filled"], &rows.collect::<Vec<_>>());
    Ok(())
}

/// What one line of the table says.
#[derive(Default)]
struct Line {
    millis: Vec<f64>,
    n_undecided: usize,
    /// How many were decided by each stage.
    by: BTreeMap<&'static str, usize>,
}

impl Line {
    /// Asks whether a canvas is completable that is; what the completion has in its slots, if it is decided.
    fn ask(
        &mut self,
        solver: &mut Solver,
        canvas: &Canvas,
        (schema, slow): (&str, bool),
    ) -> Result<Option<Vec<Filling>>> {
        solver.count_stages(true);
        let (answer, micros) = timed(|| solver.completable(canvas));
        let answer = answer?;
        ensure!(!answer.is_no(), "{schema}: its text is a completion, and it was refused: {canvas:?}");
        self.millis.push(micros / 1e3);
        let why: Option<&Undecided> = match &answer {
            Decision::Unknown(why) => Some(why),
            _ => None,
        };
        self.n_undecided += usize::from(why.is_some());
        if let (None, Some(last)) = (why, solver.counters().iter().last()) {
            *self.by.entry(last.stage).or_default() += 1;
        }
        if slow && (why.is_some() || micros > 10_000.0) {
            println!(
                "{:8.1} ms  {schema}  {}",
                micros / 1e3,
                why.map_or(String::new(), |why| why.to_string())
            );
            println!("{}", shown(solver.constraint().vocabulary(), canvas));
            for count in solver.counters().iter() {
                println!("{:>11} steps  {}", count.steps, count.stage);
            }
            println!();
        }
        Ok(match answer {
            Decision::Yes(witness) => Some(witness.slots),
            _ => None,
        })
    }

    fn row(&self, what: &str) -> Vec<String> {
        let at = |share: f64| format!("{:.3}", quantile(&self.millis, share));
        let n = self.millis.len().to_string();
        vec![what.to_owned(), n, at(0.5), at(0.9), at(0.99), at(1.0), self.n_undecided.to_string()]
    }
}

/// A canvas as people read it.
fn shown(vocabulary: &Vocabulary, canvas: &Canvas) -> String {
    let slots = canvas.slots().iter().map(|slot| match slot {
        Slot::Fixed(token) if *token == EOS => "◇".to_owned(),
        Slot::Fixed(token) => {
            String::from_utf8_lossy(vocabulary.bytes(*token).unwrap_or_default()).into_owned()
        }
        Slot::Hole => "▢".to_owned(),
        Slot::Gap => "…".to_owned(),
    });
    slots.collect()
}
