//! The result of one generation, as a line of JSON.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::EvalError;
use crate::infill::Infilled;

/// One generation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Generation {
    /// What was asked for.
    pub task: String,
    /// Who was asked.
    pub model: String,
    /// How the answer was constrained.
    pub method: String,
    /// Questions to the model that were planned.
    pub steps: usize,
    /// Slots of the canvas.
    pub slots: usize,
    /// Slots of a block, which are filled before the next ones; null if all are filled at once.
    #[serde(default)]
    pub block: Option<usize>,
    /// At which tokens were drawn.
    pub temperature: f64,
    /// The number of the prompt.
    pub prompt: usize,
    /// The number of the run.
    pub run: usize,
    /// The seed of the whole plan.
    pub seed: u64,
    /// What came out, up to the first EOS; null if slots were left open.
    pub text: Option<String>,
    /// Whether it is a sentence of the task's grammar.
    pub syntactic: bool,
    /// Whether it is that, and says what the prompt asks for.
    pub functional: bool,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// If it was drawn from the intersection because the run was stuck: how. Without that it would have
    /// failed so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Failure>,
    /// Tokens before the first EOS.
    pub tokens: usize,
    /// The sum, over the tokens up to the first EOS, of what the model gave each in the step in which it was
    /// kept. Null where a token was not asked for: slots left open, a drawn completion.
    pub log_prob: Option<f64>,
    /// Questions to the model.
    pub asked: usize,
    /// Tokens that were proposed.
    pub proposed: usize,
    /// Of these, refused.
    pub refused: usize,
    /// Tokens that a recovery put (LAVE), and a rescue (`exact` and its kin, where proposals come to an end).
    pub recovered: usize,
    /// See `recovered`.
    pub rescued: usize,
    /// Wall-clock microseconds: all that differs from run to run of the program.
    pub us: Micros,
}

/// Where the time went.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Micros {
    /// The model.
    pub model: f64,
    /// The constraint.
    pub constraint: f64,
    /// All of the generation.
    pub all: f64,
    /// The constraint, for each question to the model.
    pub steps: Vec<f64>,
}

/// What went wrong, as far as a text came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// Slots were left open, and no tokens can complete the canvas: the method walked into a dead end.
    DeadEnd,
    /// Slots were left open though the canvas could be completed: the method gave up.
    GaveUp,
    /// All slots are filled, there is no EOS, and the text could go on: the length limit.
    Length,
    /// The text is no sentence for another reason.
    Syntax,
    /// It is a sentence, and says something else than what was asked for.
    Function,
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::DeadEnd, Self::GaveUp, Self::Length, Self::Syntax, Self::Function];

    /// As in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::DeadEnd => "dead-end",
            Self::GaveUp => "gave-up",
            Self::Length => "length",
            Self::Syntax => "syntax",
            Self::Function => "function",
        }
    }
}

/// What tells a generation from all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    pub(crate) task: String,
    pub(crate) model: String,
    pub(crate) method: String,
    pub(crate) steps: usize,
    pub(crate) slots: usize,
    pub(crate) block: Option<usize>,
    pub(crate) temperature: u64,
    pub(crate) prompt: usize,
    pub(crate) run: usize,
    pub(crate) seed: u64,
}

impl Generation {
    /// What tells it from all others.
    pub fn key(&self) -> Key {
        Key {
            task: self.task.clone(),
            model: self.model.clone(),
            method: self.method.clone(),
            steps: self.steps,
            slots: self.slots,
            block: self.block,
            temperature: self.temperature.to_bits(),
            prompt: self.prompt,
            run: self.run,
            seed: self.seed,
        }
    }
}

/// How a file was made: one line for each call of the program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Invocation {
    /// The command.
    pub command: String,
    /// What else is to be known: date, commit, machine.
    #[serde(default)]
    pub note: String,
}

/// A line of `anygram replay`, as far as it is told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Replay {
    /// The file of the grammar.
    pub grammar: String,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// The recognizer.
    pub engine: String,
    /// Milliseconds until masks could be had.
    pub compile_ms: f64,
    /// Masks that were computed.
    pub steps: usize,
    /// Texts that stopped wrongly.
    pub false_rejects: usize,
    /// Microseconds of a mask.
    pub mask_us: Quantiles,
    /// Microseconds of a token.
    pub advance_us: Quantiles,
}

/// Of times, as `anygram replay` has them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// What one in a hundred is above.
    pub p99: f64,
}

/// A line of a file of results.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A generation.
    Generation(Box<Generation>),
    /// A text with regions that were filled.
    Infilled(Infilled),
    /// What `anygram replay` printed.
    Replay(Replay),
    /// How the lines behind it were made.
    Invocation(Invocation),
}

/// The lines of a file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lines {
    /// All whole lines.
    pub lines: Vec<Line>,
    /// The bytes that they take: what follows was cut off, and is to be dropped before lines are appended.
    pub whole: usize,
}

impl Lines {
    /// Reads a file. A last line without its end is left out: the program was stopped while it wrote it.
    pub fn read(bytes: &[u8]) -> Result<Self, EvalError> {
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(bytes[..whole].split(|&byte| byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let wrong =
                |error: serde_json::Error| EvalError::Line { line: number, message: error.to_string() };
            lines.push(serde_json::from_slice(line).map_err(wrong)?);
        }
        Ok(Self { lines, whole })
    }

    /// The generations.
    pub fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.lines.iter().filter_map(|line| match line {
            Line::Generation(generation) => Some(&**generation),
            _ => None,
        })
    }

    /// The texts with regions that were filled.
    pub fn infilled(&self) -> impl Iterator<Item = &Infilled> {
        self.lines.iter().filter_map(|line| match line {
            Line::Infilled(infilled) => Some(infilled),
            _ => None,
        })
    }

    /// What need not be made again.
    pub fn done(&self) -> HashSet<Key> {
        self.generations().map(Generation::key).collect()
    }
}
