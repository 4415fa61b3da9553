//! Measures JSON schemas as MaskBench does: each schema is compiled by itself, then its texts are decoded
//! token
//! by token, all masks cold. A valid text has to be allowed to its end, an invalid one not. (MaskBench does
//! not ask whether a text may end where it does; here that is part of the verdict.)

pub mod canvas;
pub mod data;
pub mod measure;
mod report;

use std::path::PathBuf;

use anygram::{LoadOptions, Vocabulary};
use anyhow::{Context, Result, bail};

use self::data::Schema;
use self::measure::Measured;
use self::report::{Report, Row};
use crate::masks::engine::{self, Maker, OURS};
use crate::measure::progress;

/// Where schemas and tokens come from.
#[derive(clap::Args)]
pub struct From {
    /// The folder of the schemas: a file of JSON Lines for each split, `SPLIT.jsonl.gz`.
    #[arg(long, value_name = "DIR", default_value = "../shared/data/jsonschemabench")]
    data: PathBuf,
    /// The ranks of the vocabulary, a `.tiktoken` file.
    #[arg(long, value_name = "FILE", default_value = "../shared/data/tokenizers/qwen.tiktoken.gz")]
    vocabulary: PathBuf,
    /// Only splits whose name begins so (repeatable).
    #[arg(long, value_name = "SPLIT")]
    only: Vec<String>,
}

impl From {
    fn vocabulary(&self) -> Result<Vocabulary> {
        let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
        Vocabulary::from_file(&self.vocabulary, &options).context("say where it is by --vocabulary")
    }

    /// The schemas of the splits that are wanted: every so-many-th, and of these so many.
    fn schemas(&self, every: u32, first: Option<usize>) -> Result<Vec<Schema>> {
        let wanted =
            |split: &str| self.only.is_empty() || self.only.iter().any(|only| split.starts_with(&**only));
        data::schemas(&self.data, wanted, (every as usize, first))
    }
}

/// What ends a text.
const EOS: u32 = 151_643;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    from: From,
    /// Only every so-many-th schema of a split.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Only the first N of them in each split.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Only the schema of this name.
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// How many seconds of CPU time the texts of one schema may take; a schema that takes more is unfinished.
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    seconds: f64,
    /// Measure our own masks without and within a budget of N tokens, on those texts that have no more.
    #[arg(long, value_name = "N")]
    budget: Option<u32>,
    /// Also write everything as JSON, schema by schema.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw how many schemas, masks and advances take longer than a time.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  anygram-bench json-schema --data ../shared/data/jsonschemabench --svg schemas.svg
  anygram-bench json-schema --every 40 --json schemas.json
  anygram-bench json-schema --only Github_easy --first 20
  anygram-bench json-schema --every 20 --budget 400";

pub fn run(args: &Args) -> Result<()> {
    let vocabulary = args.from.vocabulary()?;
    let mut makers = engine::makers(&vocabulary)?;
    // As they come: with other limits they are other engines.
    makers.retain(|maker| !maker.name.ends_with("raised"));
    if let Some(budget) = args.budget {
        makers.retain(|maker| maker.name == OURS);
        makers.push(engine::within_budget(&vocabulary, budget));
    }
    let mut schemas = args.from.schemas(args.every, args.first)?;
    schemas.retain(|schema| args.schema.as_ref().is_none_or(|name| *name == schema.id));
    if schemas.is_empty() {
        bail!(
            "no schema is asked for in {}: see --data, --only, --first and --schema",
            args.from.data.display()
        );
    }
    let bar = progress(schemas.len(), "schemas");
    let rows = schemas.iter().map(|schema| {
        bar.set_message(schema.id.clone());
        let row = row(schema, &makers, &vocabulary, (args.seconds, args.budget));
        bar.inc(1);
        row
    });
    let rows = rows.collect::<Result<Vec<Row>>>()?;
    bar.finish_and_clear();

    let names = makers.iter().map(|maker| maker.name.to_owned()).collect();
    let report = Report::new(names, rows);
    report.print();
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")
            .with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.svg {
        report.draw(path)?;
    }
    let disagreements: Vec<&str> = report.disagreements().collect();
    if !disagreements.is_empty() {
        bail!("masks and advances of {OURS} disagree:\n  {}", disagreements.join("\n  "));
    }
    Ok(())
}

/// One schema by all engines, with those texts that are within a budget.
fn row(
    schema: &Schema,
    makers: &[Maker],
    vocabulary: &Vocabulary,
    (seconds, budget): (f64, Option<u32>),
) -> Result<Row> {
    let tokens = |text: &str| -> Result<Vec<u32>> {
        Ok(vocabulary.encode(text)?.into_iter().map(|token| token.0).collect())
    };
    let texts = schema.texts.iter().map(|(text, valid)| Ok((tokens(text)?, *valid)));
    let mut texts = texts.collect::<Result<Vec<_>>>()?;
    texts.retain(|(tokens, _)| budget.is_none_or(|budget| tokens.len() <= budget as usize));
    let engines = makers.iter().map(|maker| Measured::of(maker, &schema.schema, &texts, seconds)).collect();
    Ok(Row { id: schema.id.clone(), split: schema.split.clone(), bytes: schema.schema.len(), engines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_a_small_schema() {
        let vocabulary = Vocabulary::builtin();
        let schema = Schema {
            id: "one".into(),
            split: "all".into(),
            schema: r#"{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}"#
                .into(),
            texts: vec![
                (r#"{"a": true}"#.into(), true),
                (r#"{"a": 1}"#.into(), false),
                // Allowed so far, and no text.
                (r#"{"a": true"#.into(), false),
                (r#"{"a": 2}"#.into(), true),
            ],
        };
        let mut makers = engine::makers(&vocabulary).unwrap();
        makers.truncate(1);
        makers.push(engine::within_budget(&vocabulary, 40));
        let row = row(&schema, &makers, &vocabulary, (f64::INFINITY, Some(40))).unwrap();
        for ours in &row.engines {
            let wrong = (ours.wrong_valid.len(), ours.wrong_invalid.len());
            assert_eq!((ours.refused.as_deref(), wrong), (None, (1, 0)));
            assert!(ours.disagreement.is_none() && !ours.passes());
        }
        let report = Report::new(vec![OURS.into(), "within budget".into()], vec![row]);
        report.print();
        assert_eq!(report.disagreements().count(), 0);
    }
}
