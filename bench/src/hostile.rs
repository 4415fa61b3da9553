//! Schemas made to break readers: what becomes of each, how long that takes and what it holds at most.

use anygram::{Compiler, Constraint, GrammarFormat, LoadOptions, Vocabulary};
use anygram_testkit::hostile::Fate;
use anyhow::{Context, Result, ensure};
use peak_alloc::PeakAlloc;

use crate::measure::{print_table, timed};

#[derive(clap::Args)]
pub struct Args {
    /// The ranks of the vocabulary, a `.tiktoken` file; the built-in one if there is none.
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<std::path::PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let vocabulary = match &args.vocabulary {
        Some(path) => Vocabulary::from_file(path, &options).with_context(|| path.display().to_string())?,
        None => Vocabulary::builtin(),
    };
    let (mut rows, mut slowest, mut largest) = (Vec::new(), 0.0_f64, 0);
    for (name, source, fate) in anygram_testkit::hostile::schemas() {
        PeakAlloc.reset_peak_usage();
        let before = PeakAlloc.current_usage();
        let (compiled, us) = timed(|| Compiler::default().compile(GrammarFormat::JsonSchema, &source));
        let (answer, mask_us) = match (compiled, fate) {
            (Ok(language), Fate::Reads(text)) => {
                let reading = language.read(text.as_bytes())?;
                ensure!(
                    reading.is_viable && reading.is_sentence != text.is_empty(),
                    "{name}: {text:?} is misread"
                );
                let mut matcher = Constraint::new(language, vocabulary.clone())?.matcher()?;
                let (mask, us) = timed(|| matcher.mask());
                mask?;
                ("compiled".to_owned(), us)
            }
            (Err(error), Fate::Refused(reason)) => {
                let message = error.to_string();
                ensure!(message.contains(reason), "{name}: {message}");
                (format!("{:?}", error.kind()).to_lowercase(), 0.0)
            }
            (result, _) => anyhow::bail!("{name}: {:?} instead of {fate:?}", result.map(drop)),
        };
        let held = PeakAlloc.peak_usage().saturating_sub(before);
        (slowest, largest) = (slowest.max(us + mask_us), largest.max(held));
        let kib = source.len().div_ceil(1 << 10);
        let ms = |us: f64| format!("{:.1}", us / 1e3);
        rows.push(vec![
            name.to_owned(),
            kib.to_string(),
            answer,
            ms(us),
            ms(mask_us),
            format!("{:.1}", held as f64 / f64::from(1 << 20)),
        ]);
    }
    let columns = ["schema", "KiB", "answer", "compile, ms", "first mask, ms", "held at most, MiB"];
    print_table("Hostile schemas (CPU time)", &columns, &rows);
    println!("\nat most {:.2} s and {} MiB", slowest / 1e6, largest >> 20);
    Ok(())
}
