//! What the models write by themselves: `validity [PROMPTS] [SEED] [FOLDER]`, a Markdown table for each
//! model; with SHOW=1 also what they wrote. With a folder, its files `KIND.safetensors` instead of the models
//! that are part of the crate.
//!
//! Nothing constrains them. Syntactic: a sentence of the task's grammar; functional: that, and what the
//! prompt asks for. `autoregressive` and `masked` take the likeliest token, `masked` keeps the surest of each
//! step, and `uniform` is decoded as DiffusionGemma is (`DecodeOptions::renoising`), by so many steps at
//! most.

use anygram::decode::Named;
use anygram::{
    Canvas, Compiler, Constraint, DecodeOptions, Decoder, End, GrammarFormat, Model, ModelError, OpenSlots,
    Slot, View,
};
use anygram_models::tasks::{Example, Split, Task};
use anygram_models::{EOS, Kind, Session, SmallModel, vocabulary};
use std::path::PathBuf;
use std::time::{Duration, Instant};

type Fault = Box<dyn std::error::Error>;

/// Questions to a diffusion model for a canvas.
const STEPS: [usize; 4] = [4, 8, 16, 48];

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let n_prompts: usize = arguments.next().map_or(Ok(50), |n| n.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let folder = arguments.next().map(PathBuf::from);
    for kind in Kind::ALL {
        let model = match &folder {
            Some(folder) => {
                SmallModel::from_bytes(&std::fs::read(folder.join(format!("{}.safetensors", kind.name())))?)?
            }
            None => kind.model()?,
        };
        println!(
            "\n`{}`, {} parameters, {n_prompts} held-out prompts a task\n",
            kind.name(),
            model.n_parameters()
        );
        println!("| steps | task | syntactic | functional | forward ms |\n|---|---|---|---|---|");
        let steps = if kind == Kind::Autoregressive { &STEPS[3..] } else { &STEPS };
        for &steps in steps {
            for task in Task::ALL {
                measure(&model, task, steps, &task.examples(Split::HeldOut, seed, n_prompts))?;
            }
        }
    }
    Ok(())
}

fn measure(model: &SmallModel, task: Task, steps: usize, examples: &[Example]) -> Result<(), Fault> {
    let vocabulary = vocabulary()?;
    let language = Compiler::default().compile(GrammarFormat::Lark, task.grammar())?;
    let constraint = Constraint::new(language, vocabulary.clone())?;
    let none = Named::find("none").ok_or("no strategy `none`")?;
    let mut decoder = Decoder::new(&constraint, none.make(&constraint)?);
    let canvas = Canvas::new(vec![Slot::Hole; model.canvas_length()], End::Sentence);
    let (mut syntactic, mut functional, mut asked) = (0, 0, (Duration::ZERO, 0));
    for (number, example) in examples.iter().enumerate() {
        let session = model.session(&vocabulary.encode(&example.prompt)?)?;
        let mut timed = Timed { session, spent: Duration::ZERO, n_asked: 0 };
        let options = options(model.kind(), steps, number as u64);
        let tokens = decoder.decode(&canvas, &mut timed, &options)?.tokens().unwrap_or_default();
        asked = (asked.0 + timed.spent, asked.1 + timed.n_asked);
        let end = tokens.iter().position(|&token| token == EOS).unwrap_or(tokens.len());
        let shown: String = tokens[..end].iter().map(|&token| vocabulary.display_token(token)).collect();
        // Special tokens before the first EOS are no text.
        let text = vocabulary
            .decode(&tokens[..end])
            .ok()
            .filter(|_| !tokens[..end].iter().any(|&token| vocabulary.is_special(token)));
        let is_sentence = text
            .as_ref()
            .is_some_and(|text| constraint.language().read(text).is_ok_and(|read| read.is_sentence));
        let is_right = is_sentence && text.is_some_and(|text| example.check(&String::from_utf8_lossy(&text)));
        syntactic += usize::from(is_sentence);
        functional += usize::from(is_right);
        if std::env::var_os("SHOW").is_some() {
            println!("{} -> {shown} {is_sentence} {is_right}", example.prompt.trim_end());
        }
    }
    let percent = |n: usize| 100.0 * n as f64 / examples.len() as f64;
    println!(
        "| {steps} | {} | {:.0} % | {:.0} % | {:.2} |",
        task.name(),
        percent(syntactic),
        percent(functional),
        1e3 * asked.0.as_secs_f64() / f64::from(asked.1.max(1)),
    );
    Ok(())
}

fn options(kind: Kind, steps: usize, seed: u64) -> DecodeOptions {
    match kind {
        Kind::Uniform => DecodeOptions { steps, seed, ..DecodeOptions::renoising() },
        _ => DecodeOptions { steps, seed, block: None, ..DecodeOptions::default() },
    }
}

/// A session, and how long its answers took.
struct Timed {
    session: Session,
    spent: Duration,
    n_asked: u32,
}

impl Model for Timed {
    fn vocabulary_size(&self) -> usize {
        self.session.vocabulary_size()
    }

    fn open_slots(&self) -> OpenSlots {
        self.session.open_slots()
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        let began = Instant::now();
        let answer = self.session.log_probs(view, rows);
        self.spent += began.elapsed();
        self.n_asked += 1;
        answer
    }
}
