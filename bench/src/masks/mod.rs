//! Measures masks and `advance`: ours and, with the feature `peers`, those of other engines, on the same
//! tokens in one run.

mod batch;
mod check;
pub mod engine;
mod growth;
pub mod pass;
#[cfg(feature = "peers")]
pub mod peers;
pub mod report;
pub mod workload;

use std::path::PathBuf;

use anygram::{GrammarFormat, LoadOptions, Vocabulary};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::engine::{Maker, OURS};
use self::growth::{Bounds, Curve};
use self::pass::{Comparison, Stops, Times};
use self::report::{Compared, EngineReport, Report, Texts};
use self::workload::{GROWING, Workload};
use crate::measure::timed;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder of data and vocabularies.
    #[arg(long, value_name = "DIR", default_value = "../shared")]
    shared: PathBuf,
    /// Use the built-in vocabulary and a small workload instead of shared data.
    #[arg(long)]
    built_in: bool,
    /// Only workloads whose name begins so (repeatable); `growth` and `batch` are names too.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only the first N texts of each workload.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// How often each pass is done, with fresh tables; the median of each step is told.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The longest growing text.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    longest: usize,
    /// How many seconds of CPU time another engine may take for one pass over a workload, or for one growing
    /// text.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Stop another engine on a growing text once a step takes longer.
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    step_ms: f64,
    /// Also write everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the cost of a step against the length of the text.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a page for the documentation.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  anygram-bench masks --shared ../shared --markdown docs/benchmarks.md --svg docs/benchmarks.svg
  anygram-bench masks --only sqlite --only growth --first 20
  anygram-bench masks --built-in --longest 200";

impl Args {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| name.starts_with(wanted.as_str()))
    }
}

pub fn run(args: &Args) -> Result<()> {
    let (vocabulary, workloads) = inputs(args)?;
    let makers = engine::makers(&vocabulary)?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_msg} {pos}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));

    let mut report = Report::new(args, &vocabulary);
    for workload in workloads.iter().filter(|workload| args.wants(&workload.name)) {
        let (measured, wrong) = texts(args, workload, &makers, &vocabulary, &bar);
        report.wrong.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", workload.name)));
        report.workloads.push(measured);
    }
    if args.wants("growth") {
        let (curves, wrong) = growing(args, &makers, &vocabulary, &bar)?;
        report.growth = curves;
        report.wrong.extend(wrong);
    }
    let batched = if args.built_in { "demo" } else { "sql_grammar" };
    if let Some(workload) =
        workloads.iter().find(|workload| workload.name == batched).filter(|_| args.wants("batch"))
    {
        for maker in &makers {
            bar.set_message(format!("batch, {}", maker.name));
            let batch = batch::measure(workload, maker, &bar);
            if let Some(error) = batch.error.as_ref().filter(|_| maker.name == OURS) {
                report.wrong.push(format!("batch: {error}"));
            }
            report.batches.push(batch);
        }
    }
    bar.finish_and_clear();
    if report.workloads.is_empty() && report.growth.is_empty() && report.batches.is_empty() {
        bail!("no workload begins with {}", args.only.join(" or "));
    }

    report.print();
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")
            .with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.svg {
        report.draw(path)?;
    }
    if let Some(path) = &args.markdown {
        std::fs::write(path, report.markdown(args.svg.as_deref()))
            .with_context(|| path.display().to_string())?;
    }
    if !report.wrong.is_empty() {
        bail!("wrong answers:\n  {}", report.wrong.join("\n  "));
    }
    Ok(())
}

/// The vocabulary and what is decoded with it.
fn inputs(args: &Args) -> Result<(Vocabulary, Vec<Workload>)> {
    if args.built_in {
        let vocabulary = Vocabulary::builtin();
        let demo = workload::built_in(&vocabulary)?;
        return Ok((vocabulary, vec![demo]));
    }
    let path = args.shared.join("data/tokenizers/qwen.tiktoken.gz");
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(&path, &options)
        .context("say where the shared data are by --shared, or do without by --built-in")?;
    // What the outputs of a batch decode, too.
    let is_wanted = |name: &str| args.wants(name) || name == "sql_grammar" && args.wants("batch");
    let workloads = workload::replayed(&args.shared, &vocabulary, is_wanted, args.first)?;
    Ok((vocabulary, workloads))
}

/// Passes of one engine over one workload.
#[derive(Default)]
struct Passes {
    report: EngineReport,
    cold: Vec<Vec<pass::Step>>,
    warm: Vec<Vec<pass::Step>>,
    unseen: Vec<Vec<pass::Step>>,
}

/// A workload, measured, and what is wrong.
fn texts(
    args: &Args,
    workload: &Workload,
    makers: &[Maker],
    vocabulary: &Vocabulary,
    bar: &ProgressBar,
) -> (Texts, Vec<String>) {
    let all: Vec<&[u32]> = workload.texts.iter().map(Vec::as_slice).collect();
    bar.set_message(format!("{}, right answers", workload.name));
    let checked = check::check(&workload.grammar, vocabulary, &all);
    let checked =
        checked.unwrap_or_else(|error| check::Checked { wrong: vec![error], ..check::Checked::default() });
    let mut wrong = checked.wrong;

    let mut measured: Vec<Passes> = Vec::new();
    for maker in makers {
        bar.set_message(format!("{}, {}", workload.name, maker.name));
        let seconds = if maker.name == OURS { f64::INFINITY } else { args.seconds };
        let (passes, found) = passes(maker, &workload.grammar, &all, args.runs, seconds, bar);
        if maker.name == OURS {
            wrong.extend(found);
            wrong.extend(passes.report.error.clone());
            wrong.extend(unexpected(&passes.report.stops, workload));
        }
        measured.push(passes);
    }

    let (ours, peers) = measured.split_at_mut(1);
    for peer in peers {
        let compare = |get: fn(&Passes) -> &[Vec<pass::Step>]| Comparison::of(get(&ours[0]), get(peer));
        let (cold, warm, unseen) = (compare(|p| &p.cold), compare(|p| &p.warm), compare(|p| &p.unseen));
        peer.report.compared = Some(Compared { cold, warm, unseen });
    }
    let engines = measured.into_iter().map(|passes| passes.report).collect();
    let n_tokens = all.iter().map(|text| text.len()).sum();
    let report = Texts {
        name: workload.name.clone(),
        texts: all.len(),
        tokens: n_tokens,
        checked_masks: checked.masks,
        checked_bits: checked.bits,
        engines,
        goal: workload.goal,
    };
    (report, wrong)
}

/// How the texts that stopped differ from those that are known to be outside of the language.
fn unexpected(stops: &Stops, workload: &Workload) -> Option<String> {
    let (total, outside) = (stops.total(), workload.outside);
    let is_as_known = total == outside || total < outside && !workload.is_whole;
    (stops.errors > 0 || !is_as_known).then(|| {
        format!(
            "{} texts rejected, {} unfinished, {} errors; {outside} are known to be outside of the language; \
             {}",
            stops.rejected,
            stops.not_sentences,
            stops.errors,
            stops.first.as_deref().unwrap_or("none stopped")
        )
    })
}

/// All passes of an engine over texts, and where it contradicts itself.
fn passes(
    maker: &Maker,
    grammar: &str,
    texts: &[&[u32]],
    runs: u32,
    seconds: f64,
    bar: &ProgressBar,
) -> (Passes, Vec<String>) {
    let (mut result, mut wrong) = (Passes::default(), Vec::new());
    result.report.engine = maker.name.into();
    let half = |parity: usize| -> Vec<&[u32]> { texts.iter().copied().skip(parity).step_by(2).collect() };
    let (mut cold, mut warm, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    let mut compile_ms = Vec::new();
    for _ in 0..runs {
        let (made, us) = timed(|| (maker.make)(GrammarFormat::Lark, grammar));
        compile_ms.push(us / 1e3);
        let mut engine = match made {
            Ok(engine) => engine,
            Err(error) => {
                result.report.error = Some(error);
                return (result, wrong);
            }
        };
        cold.push(pass::decode(&mut *engine, texts, seconds, bar));
        warm.push(pass::decode(&mut *engine, texts, seconds, bar));
        result.report.memory_bytes = engine.memory();
        if let Ok(mut engine) = (maker.make)(GrammarFormat::Lark, grammar) {
            pass::decode(&mut *engine, &half(0), seconds, bar);
            unseen.push(pass::decode(&mut *engine, &half(1), seconds, bar));
        }
    }
    for pass in cold.iter().chain(&warm).chain(&unseen) {
        wrong.extend(pass.wrong.iter().cloned());
    }
    let first_mask_ms: Vec<f64> = cold.iter().filter_map(|pass| pass.first_mask).map(|us| us / 1e3).collect();
    let report = &mut result.report;
    report.compile_ms = crate::measure::median(&compile_ms);
    report.first_mask_ms = crate::measure::median(&first_mask_ms);
    // The first pass tells: all runs and passes stop at the same texts, or are cut by their time.
    report.stops = cold.first().map(|pass| pass.stops.clone()).unwrap_or_default();
    (result.cold, result.warm, result.unseen) =
        (pass::medians(&cold), pass::medians(&warm), pass::medians(&unseen));
    let report = &mut result.report;
    report.cold = Times::of(result.cold.iter().flatten());
    report.warm = Times::of(result.warm.iter().flatten());
    report.unseen = Times::of(result.unseen.iter().flatten());
    (result, wrong)
}

/// The growing texts, and what is wrong.
fn growing(
    args: &Args,
    makers: &[Maker],
    vocabulary: &Vocabulary,
    bar: &ProgressBar,
) -> Result<(Vec<Curve>, Vec<String>)> {
    /// A text of which bits are compared.
    const CHECKED: usize = 120;
    let (mut curves, mut wrong) = (Vec::new(), Vec::new());
    let bounds = Bounds { step_ms: args.step_ms, seconds: args.seconds };
    for growing in &GROWING {
        let name = growing.name;
        let short = growth::tokens(growing, CHECKED.min(args.longest), vocabulary)?;
        match check::check(growing.grammar, vocabulary, &[&short]) {
            Ok(checked) => wrong.extend(checked.wrong.into_iter().map(|found| format!("{name}: {found}"))),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
        let text = growth::tokens(growing, args.longest, vocabulary)?;
        for maker in makers {
            bar.set_message(format!("{name}, {}", maker.name));
            let is_ours = maker.name == OURS;
            let found = growth::curves(growing, maker, &text, vocabulary, (!is_ours).then_some(bounds), bar)?;
            let stopped = found.iter().filter_map(|curve| curve.stopped.as_ref()).filter(|_| is_ours);
            wrong.extend(stopped.map(|stopped| format!("{name}: {stopped}")));
            curves.extend(found);
        }
    }
    Ok((curves, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_texts_outside_of_the_language() {
        let workload = |outside, is_whole| Workload {
            outside,
            is_whole,
            ..workload::built_in(&Vocabulary::builtin()).unwrap()
        };
        let stops = |rejected, errors| Stops { rejected, errors, ..Stops::default() };
        assert_eq!(unexpected(&stops(2, 0), &workload(2, true)), None);
        assert_eq!(unexpected(&stops(1, 0), &workload(2, false)), None);
        assert!(unexpected(&stops(1, 0), &workload(2, true)).is_some());
        assert!(unexpected(&stops(3, 0), &workload(2, false)).is_some());
        assert!(unexpected(&stops(0, 1), &workload(1, true)).is_some());
    }

    #[test]
    fn built_in_texts_are_decoded_as_expected() {
        let vocabulary = Vocabulary::builtin();
        let workload = workload::built_in(&vocabulary).unwrap();
        let texts: Vec<&[u32]> = workload.texts.iter().map(Vec::as_slice).collect();
        for maker in engine::makers(&vocabulary).unwrap() {
            let (passes, wrong) = passes(&maker, &workload.grammar, &texts, 1, 60.0, &ProgressBar::hidden());
            assert_eq!((wrong, passes.report.error), (vec![], None), "{}", maker.name);
            assert_eq!(unexpected(&passes.report.stops, &workload), None, "{}", maker.name);
        }
    }
}
