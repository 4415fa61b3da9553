//! The command `generate`.
//!
//! | module | what |
//! |---|---|
//! | `generation` | one text by one method, with all that is reported of it |
//! | `steps` | the events of a run, step by step |
//! | `show` | for people: the canvas as it fills, the texts side by side, counts |

mod generation;
mod show;
mod steps;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anygram::decode::{Configured, Sampling};
use anygram::{Compiler, Constraint, DecodeOptions, GrammarFormat};
use anygram_models::tasks::{Split, Task};
use anygram_models::{Kind, vocabulary};
use anygram_replay::Replay;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::input::GrammarArgs;
use generation::{Generation, Generator, Question};

/// Generate texts with a small model, with and without a grammar
///
/// A small model (part of the program, 0.74 million parameters) answers prompts that it has not seen in
/// training, by several methods. The first method is shown step by step: ▢ is an open slot of the canvas, ∎
/// the end. Then come the outputs of all methods side by side, and counts over all prompts: how many outputs
/// are valid (sentences of the grammar), and how many say what the prompt asks for.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The task: record (from a person described in words to JSON), arithmetic (from a question to an
    /// expression in parentheses), smiles (from properties to a molecule).
    #[arg(long, default_value = "record", value_parser = task)]
    task: Task,
    /// The model: masked (as LLaDA), uniform (as DiffusionGemma), autoregressive.
    #[arg(long, default_value = "masked", value_parser = kind)]
    model: Kind,
    /// The methods, separated by commas; `none` has no constraint. `lookahead` takes parameters, as in
    /// lookahead:N=3:tau=10.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    #[arg(default_value = "exact,none", value_parser = method)]
    method: Vec<Configured>,
    /// Decoding steps: how often the model is asked for one output. An autoregressive model is asked for each
    /// token.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(MOST))]
    steps: u16,
    /// Slots of the canvas, at most 256 [default: those that the model was trained with].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(MOST))]
    slots: Option<u16>,
    /// Fill the canvas in blocks of N slots, one after the other; the blocks share the steps [default: all
    /// slots at once].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(MOST))]
    block: Option<u16>,
    /// Draw tokens at this temperature instead of taking the likeliest (`uniform` draws anyway, at 0.8
    /// falling to 0.4).
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Decides which prompts are taken, and every random draw.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many prompts of the task. Shown is the first that the first method gets right and another wrong,
    /// else the first at which some outputs are valid and others not, else the first.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    prompts: u32,
    /// A prompt of your own instead, such as 'Ada is 34, a pilot, from Oslo'.
    #[arg(long, value_name = "TEXT", conflicts_with = "prompts")]
    prompt: Option<String>,
    /// Print a JSON object for each text, and nothing else.
    #[arg(long)]
    json: bool,
    /// Write a page that shows all steps of what is shown, slot by slot.
    #[arg(long, value_name = "FILE.html")]
    trace: Option<PathBuf>,
    /// Milliseconds between two steps on a terminal.
    #[arg(long, value_name = "MS", default_value_t = 250)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    delay: u32,
    /// A grammar of your own in place of the task's: .lark, .gbnf, .ebnf, .regex or .cfg, each also as .gz.
    /// The model has not learned it.
    #[arg(short, long, value_name = "FILE")]
    grammar: Option<PathBuf>,
}

/// The most slots and steps. What the model says of all slots is kept for each step.
const MOST: std::ops::RangeInclusive<i64> = 1..=256;

const EXAMPLES: &str = "\
Examples:
  anygram generate
  anygram generate --task arithmetic --steps 4 --prompt '3 plus 4 times 2 minus 1'
  anygram generate --task smiles --model uniform --method exact,lookahead,intersection,none
  anygram generate --model autoregressive --method forced-sequential-with-budget,none
  anygram generate --trace replay.html
  anygram generate -g my.lark --prompt 'Ada is 34'
  anygram generate --json --prompts 100 | jq -s 'group_by(.method)[] | \
  {method: .[0].method, syntactic: map(.syntactic)}'";

fn task(name: &str) -> Result<Task, String> {
    Task::by_name(name).ok_or_else(|| unknown("task", Task::ALL.map(Task::name)))
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::by_name(name).ok_or_else(|| unknown("model", Kind::ALL.map(Kind::name)))
}

fn method(name: &str) -> Result<Configured, String> {
    Configured::parse(name).map_err(|error| error.to_string())
}

fn unknown(what: &str, known: impl IntoIterator<Item = &'static str>) -> String {
    format!("there is no such {what}; there are {}", known.into_iter().collect::<Vec<_>>().join(", "))
}

pub fn run(args: &Args) -> Result<bool> {
    for (at, method) in args.method.iter().enumerate() {
        let is_again = args.method[..at].contains(method);
        ensure!(!is_again, "--method names `{}` twice; leave one of them out", method.name());
    }
    let mut generator = Generator::new(constraint(args)?, args.model.model()?, &args.method, options(args))?;
    if let Some(slots) = args.slots {
        generator.n_slots = slots.into();
    }
    let questions = questions(args);
    let mut all: Vec<Vec<Generation>> = Vec::with_capacity(questions.len());
    let mut shown = (Telling::Nothing, 0);
    for (number, question) in questions.iter().enumerate() {
        let mut generations = generator.answer(question)?;
        if args.json {
            let mut output = anstream::stdout().lock();
            for generation in &generations {
                writeln!(output, "{}", json_line(args, &generator, question, generation))?;
            }
        }
        let telling = Telling::of(&generations);
        if number == 0 || telling > shown.0 {
            all.get_mut(shown.1).into_iter().flatten().for_each(Generation::forget);
            shown = (telling, number);
        } else {
            generations.iter_mut().for_each(Generation::forget);
        }
        all.push(generations);
    }
    let (telling, shown) = shown;
    if let Some(path) = &args.trace {
        let page = replay(args, &generator, &questions[shown], &all[shown]).page();
        std::fs::write(path, page).with_context(|| path.display().to_string())?;
    }
    if !args.json {
        let delay = Duration::from_millis(args.delay.into());
        show::show(args, &generator, &questions, &all, (telling, shown), delay)?;
    }
    Ok(true)
}

/// What the texts of a prompt tell of the methods. The first prompt that tells most is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Telling {
    Nothing,
    /// Some are sentences and others are not.
    Syntax,
    /// The first is what the prompt asks for, and another is not.
    Function,
}

impl Telling {
    fn of(generations: &[Generation]) -> Self {
        let differs =
            |of: fn(&Generation) -> bool| generations.iter().any(|one| of(one) != of(&generations[0]));
        if generations[0].is_right() && differs(Generation::is_right) {
            Self::Function
        } else if differs(Generation::is_syntactic) {
            Self::Syntax
        } else {
            Self::Nothing
        }
    }
}

fn constraint(args: &Args) -> Result<Constraint> {
    let vocabulary = vocabulary()?;
    match &args.grammar {
        Some(path) => {
            let grammar = GrammarArgs::of_file(path);
            grammar.constraint(grammar.language()?, vocabulary)
        }
        None => {
            let language = Compiler::default().compile(GrammarFormat::Lark, args.task.grammar())?;
            Constraint::new(language, vocabulary).map_err(|error| anyhow!("{error}"))
        }
    }
}

fn options(args: &Args) -> DecodeOptions {
    let base = match args.model {
        Kind::Uniform => DecodeOptions::renoising(),
        _ => DecodeOptions::default(),
    };
    let sampling = match args.temperature {
        Some(temperature) => Sampling { temperature, ..Sampling::default() },
        None => base.sampling,
    };
    let block = args.block.map(usize::from);
    DecodeOptions { steps: args.steps.into(), block, seed: args.seed, sampling, ..base }
}

/// The user's own prompt, or those of the task.
fn questions(args: &Args) -> Vec<Question> {
    let Some(prompt) = &args.prompt else {
        let examples = args.task.examples(Split::HeldOut, args.seed, args.prompts as usize);
        let has_check = args.grammar.is_none();
        return examples.into_iter().map(|example| Question::of_task(example, has_check)).collect();
    };
    vec![Question::own(args.task.prompt(prompt))]
}

fn json_line(args: &Args, generator: &Generator, question: &Question, generation: &Generation) -> Value {
    json!({
        "task": args.task.name(),
        "model": args.model.name(),
        "method": generation.method,
        "steps": args.steps,
        "slots": generator.n_slots,
        "seed": args.seed,
        "prompt": question.prompt,
        "text": generation.ending.text,
        "syntactic": generation.is_syntactic(),
        "functional": generation.functional,
        "stuck": generation.decoded.is_stuck,
        "model_calls": generation.n_asked,
        "proposals": generation.n_proposed,
        "refused": generation.n_refused,
        "forced": generation.n_forced,
        "model_us": generation.model_us.round(),
        "constraint_us": generation.constraint_us.round(),
        "log_prob": generation.log_prob,
    })
}

/// The page of the runs that answer a question.
fn replay<'a>(
    args: &Args,
    generator: &'a Generator,
    question: &Question,
    generations: &[Generation],
) -> Replay<'a> {
    let mut replay = Replay::new(generator.constraint());
    replay.fact("task", args.task.name());
    if let Some(path) = &args.grammar {
        replay.fact("grammar", &path.display().to_string());
    }
    let parameters = generator.model().n_parameters() as f64 / 1e6;
    replay.fact("model", &format!("{}, {parameters:.2} million parameters", args.model.name()));
    replay.fact("prompt", question.prompt.trim_end());
    replay.fact("steps", &format!("{}, seed {}", args.steps, args.seed));
    generations.iter().for_each(|generation| replay.add(&generation.run()));
    replay
}
