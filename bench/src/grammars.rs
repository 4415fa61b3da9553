//! Hundreds of grammars and schemas on one vocabulary in one process: the memory of all, with and without a
//! bound on their tables. The masks are the same, or the run fails.

use std::hash::Hasher;
use std::sync::Arc;

use anygram::{Compiler, Constraint, GrammarFormat, Language, Matcher, TablesBound, TokenId, Vocabulary};
use anygram_left_to_right::tokens::get_bit;
use anyhow::{Result, anyhow, bail};
use rustc_hash::FxHasher;

use crate::masks::report::{commit, cpu, today};
use crate::masks::workload::Chosen;
use crate::measure::{print_table, progress, quantile, timed, us};
use crate::schemas::data;
use crate::schemas::measure::held;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Schemas of JSONSchemaBench, evenly from all splits, beside the grammars.
    #[arg(long, value_name = "N", default_value_t = 500)]
    schemas: usize,
    /// Texts of each.
    #[arg(long, value_name = "N", default_value_t = 4)]
    texts: usize,
    /// Bounds to compare with none (repeatable).
    #[arg(long, value_name = "MiB", default_values_t = [256, 64])]
    bound: Vec<usize>,
}

const EXAMPLES: &str = "\
Examples:
  anygram-bench grammars
  anygram-bench grammars --only sql --schemas 100 --bound 32";

/// Grammars beside the schemas.
const WORKLOADS: [&str; 4] = ["sql_grammar", "sqlite_kw", "cpp_he", "smiles"];

const COLUMNS: [&str; 10] = [
    "bound MiB",
    "grammars",
    "tokens",
    "compiled MiB",
    "in the end MiB",
    "at most",
    "emptied",
    "a step µs p50",
    "p99",
    "mean",
];

/// A language and tokens of its texts.
struct Subject {
    language: Arc<Language>,
    texts: Vec<Vec<u32>>,
}

/// What a run came to.
struct Kept {
    end: usize,
    most: usize,
    n_emptied: u64,
    times: Vec<f64>,
    masks: u64,
}

pub fn run(args: &Args) -> Result<()> {
    let vocabulary = args.chosen.vocabulary()?;
    let before = held();
    let subjects = subjects(args, &vocabulary)?;
    let compiled = held().saturating_sub(before);
    let bounds = std::iter::once(None).chain(args.bound.iter().map(|&bound| Some(bound)));
    let (mut rows, mut masks) = (Vec::new(), None);
    for bound in bounds {
        let kept = decode(&subjects, &vocabulary, bound.map(|mib| mib << 20))?;
        if *masks.get_or_insert(kept.masks) != kept.masks {
            bail!("wrong: with a bound of {bound:?} MiB other masks come");
        }
        let mib = |bytes: usize| format!("{:.0}", bytes as f64 / 1_048_576.0);
        rows.push(vec![
            bound.map_or("none".into(), |bound| bound.to_string()),
            subjects.len().to_string(),
            kept.times.len().to_string(),
            mib(compiled),
            mib(kept.end),
            mib(kept.most),
            kept.n_emptied.to_string(),
            us(quantile(&kept.times, 0.5)),
            us(quantile(&kept.times, 0.99)),
            us(kept.times.iter().sum::<f64>() / kept.times.len().max(1) as f64),
        ]);
    }
    let setting = format!(
        "{}, {}, commit {}; what the vocabulary keeps for all grammars is in the first row only.",
        today(),
        cpu(),
        commit()
    );
    print_table(&setting, &COLUMNS, &rows);
    Ok(())
}

fn subjects(args: &Args, vocabulary: &Vocabulary) -> Result<Vec<Subject>> {
    let compile = |format, grammar: &str| Compiler::default().compile(format, grammar);
    let mut subjects = Vec::new();
    for name in args.chosen.among(&WORKLOADS)? {
        let found = args.chosen.replayed(name, vocabulary)?;
        let language =
            compile(GrammarFormat::Lark, &found.grammar).map_err(|error| anyhow!("{name}: {error}"))?;
        subjects.push(Subject { language, texts: found.texts.into_iter().take(args.texts).collect() });
    }
    let mut schemas = data::schemas(&args.chosen.shared.join("data/jsonschemabench"), |_| true, (1, None))?;
    schemas.retain(|schema| schema.texts.iter().any(|text| text.1));
    let (n_known, n_wanted) = (schemas.len(), args.schemas);
    let mut at = 0;
    for (number, schema) in schemas.iter().enumerate() {
        if at == n_wanted || number * n_wanted < at * n_known {
            continue;
        }
        // Some are refused, and the next takes their place.
        let Ok(language) = compile(GrammarFormat::JsonSchema, &schema.schema) else { continue };
        let valid = schema.texts.iter().filter(|text| text.1).take(args.texts);
        let encode = |text: &str| -> Result<Vec<u32>> {
            Ok(vocabulary.encode(text)?.into_iter().map(|token| token.0).collect())
        };
        let texts = valid.map(|(text, _)| encode(text)).collect::<Result<_>>()?;
        subjects.push(Subject { language, texts });
        at += 1;
    }
    Ok(subjects)
}

/// A text of each, then the next of each; the tables of all stay.
fn decode(subjects: &[Subject], vocabulary: &Vocabulary, bound: Option<usize>) -> Result<Kept> {
    let before = held();
    let bound = bound.map(TablesBound::new);
    let start = |subject: &Subject| -> Result<Matcher> {
        let plain = Constraint::new(subject.language.clone(), vocabulary.clone())?;
        Ok(bound.as_ref().map_or(plain.clone(), |bound| plain.bounded(bound)).matcher()?)
    };
    let mut matchers: Vec<Matcher> = subjects.iter().map(start).collect::<Result<_>>()?;
    let n_texts = subjects.iter().map(|subject| subject.texts.len()).max().unwrap_or(0);
    let bar = progress(n_texts * subjects.len(), "texts");
    let (mut times, mut most, mut hasher) = (Vec::new(), 0, FxHasher::default());
    let mut words = vec![0; vocabulary.len().div_ceil(32)];
    for number in 0..n_texts {
        for (subject, matcher) in subjects.iter().zip(&mut matchers) {
            for &token in subject.texts.get(number).into_iter().flatten() {
                let (masked, mask) = timed(|| matcher.mask_into(&mut words));
                masked?;
                words.iter().for_each(|&word| hasher.write_u32(word));
                // Some texts are outside of their language.
                if !get_bit(&words, token as usize) {
                    break;
                }
                let (advanced, advance) = timed(|| matcher.advance(TokenId(token)));
                advanced.map_err(|error| anyhow!("wrong: a token of the mask is refused: {error}"))?;
                times.push(mask + advance);
            }
            matcher.reset();
            most = most.max(held().saturating_sub(before));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let n_emptied = bound.as_ref().map_or(0, |bound| bound.n_emptied());
    Ok(Kept { end: held().saturating_sub(before), most, n_emptied, times, masks: hasher.finish() })
}
