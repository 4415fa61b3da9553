//! Outputs, token by token: by matchers on the CPU, or on a device. Where the device fails, the CPU computes
//! the mask.

use anygram::{BatchOptions, Constraint, Language, MaskRows, MatchError, Matcher, TokenId};
use anyhow::{Result, anyhow};
use serde::Serialize;

use crate::input::GrammarArgs;

/// Why a token was not appended.
pub enum Stop {
    /// It may not come next.
    Refused(String),
    /// Something else failed.
    Error(String),
}

/// Outputs of one constraint, numbered from 0.
pub enum Decoder {
    /// By an engine of the CPU.
    Cpu(Vec<Matcher>),
    /// By the kernels.
    #[cfg(feature = "cuda")]
    Cuda(Vec<anygram_cuda::output::Output>),
}

/// Where masks were computed, if a device was asked for any.
#[derive(Serialize, Default)]
pub struct OnDevice {
    on_device: usize,
    in_doubt: usize,
    too_large: usize,
    thin: usize,
    without_device: usize,
    /// Why the device was not asked any more.
    gave_out: Option<String>,
}

/// Levels of the trees that are searched in breadth, before each worker goes into depth. No device was
/// measured with others.
#[cfg(feature = "cuda")]
const LEVELS: usize = 2;

impl Decoder {
    /// Outputs of a constraint by the engine that the options name. Without a name it is the device's where a
    /// measurement says that it is faster, and it can.
    pub fn new(grammar: &GrammarArgs, constraint: &Constraint, n_outputs: usize) -> Result<Self> {
        if grammar.is_for_device() {
            return Self::cuda(constraint, n_outputs, false)
                .map_err(|error| anyhow!("--engine cuda: {error:#}"));
        }
        if grammar.may_be_for_device()
            && let Some(is_for_dense) = chosen(constraint.language(), n_outputs)
            && let Ok(decoder) = Self::cuda(constraint, n_outputs, is_for_dense)
        {
            return Ok(decoder);
        }
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self::Cpu(constraint.matchers(BatchOptions { n_outputs, n_tables: n_cores })?))
    }

    #[cfg(feature = "cuda")]
    fn cuda(constraint: &Constraint, n_outputs: usize, is_for_dense: bool) -> Result<Self> {
        use std::sync::{Arc, Mutex};
        let options = anygram_cuda::PoolOptions::default();
        let options = anygram_cuda::PoolOptions { sequences: options.sequences.max(n_outputs), ..options };
        let charts = Arc::new(Mutex::new(anygram_cuda::Charts::on_cuda(0, options)?));
        let output = || {
            let output = anygram_cuda::output::Output::new(constraint, &charts, LEVELS)?;
            Ok(if is_for_dense { output.for_dense_charts() } else { output })
        };
        (0..n_outputs).map(|_| output()).collect::<Result<_>>().map(Self::Cuda)
    }

    #[cfg(not(feature = "cuda"))]
    fn cuda(_: &Constraint, _: usize, _: bool) -> Result<Self> {
        Err(anyhow!("this build has no CUDA: build it with `--features cuda`, or choose another engine"))
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        match self {
            Self::Cpu(matchers) => matchers.len(),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs.len(),
        }
    }

    fn constraint(&self) -> Option<&Constraint> {
        match self {
            Self::Cpu(matchers) => matchers.first().map(Matcher::constraint),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs.first().map(anygram_cuda::output::Output::constraint),
        }
    }

    /// The name of the engine.
    pub fn engine(&self) -> &'static str {
        match self {
            Self::Cpu(_) => self.constraint().map_or("", |constraint| constraint.language().engine().name()),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => "cuda",
        }
    }

    /// The words of a mask.
    pub fn mask_words(&self) -> usize {
        self.constraint().map_or(0, Constraint::mask_words)
    }

    /// Which tokens may come next in the first outputs, a row each.
    pub fn masks_into(&mut self, n_outputs: usize, rows: &mut [u32]) -> Vec<Result<()>> {
        let n_words = self.mask_words();
        match self {
            // One output needs no other threads.
            Self::Cpu(matchers) if n_outputs == 1 => vec![matchers[0].mask_into(rows).map_err(Into::into)],
            Self::Cpu(matchers) => {
                anygram::batch_masks(&mut matchers[..n_outputs], MaskRows::new(rows, n_words))
                    .into_iter()
                    .map(|mask| Ok(mask?))
                    .collect()
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => {
                let masks = anygram_cuda::output::batch_masks(
                    &mut outputs[..n_outputs],
                    MaskRows::new(rows, n_words),
                );
                masks.into_iter().map(|mask| Ok(mask?)).collect()
            }
        }
    }

    /// Appends a token.
    pub fn advance(&mut self, output: usize, token: TokenId) -> Result<(), Stop> {
        match self {
            Self::Cpu(matchers) => matchers[output].advance(token).map_err(|error| match error {
                MatchError::Refused(refusal) => Stop::Refused(refusal.to_string()),
                error => Stop::Error(error.to_string()),
            }),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs[output].advance(token).map_err(|error| match error {
                anygram_cuda::output::OutputError::Refused { .. } => Stop::Refused(error.to_string()),
                error => Stop::Error(error.to_string()),
            }),
        }
    }

    /// The number of tokens so far.
    pub fn n_tokens(&self, output: usize) -> usize {
        match self {
            Self::Cpu(matchers) => matchers[output].tokens().len(),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs[output].n_tokens(),
        }
    }

    /// Whether the text so far is a sentence.
    pub fn is_sentence(&self, output: usize) -> bool {
        match self {
            Self::Cpu(matchers) => matchers[output].is_sentence(),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs[output].is_sentence(),
        }
    }

    /// The names of the terminals that could come next.
    pub fn expected(&self, output: usize) -> Vec<String> {
        match self {
            Self::Cpu(matchers) => matchers[output].expected(),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs[output].expected(),
        }
    }

    /// Takes back all tokens.
    pub fn reset(&mut self, output: usize) {
        match self {
            Self::Cpu(matchers) => matchers[output].reset(),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs[output].reset(),
        }
    }

    /// Lets two outputs change places.
    pub fn swap(&mut self, a: usize, b: usize) {
        match self {
            Self::Cpu(matchers) => matchers.swap(a, b),
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => outputs.swap(a, b),
        }
    }

    /// Where the masks of all outputs were computed; `None` if no device was asked.
    pub fn on_device(&self) -> Option<OnDevice> {
        match self {
            Self::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Self::Cuda(outputs) => {
                let mut all = OnDevice::default();
                for output in outputs {
                    let computed = output.computed();
                    all.on_device += computed.on_device;
                    all.in_doubt += computed.in_doubt;
                    all.too_large += computed.too_large;
                    all.thin += computed.thin;
                    all.without_device += computed.without_device;
                    all.gave_out = all.gave_out.or(output.gave_out().map(str::to_owned));
                }
                Some(all)
            }
        }
    }
}

impl OnDevice {
    /// What whoever asked for the device should know, if anything.
    pub fn notice(&self) -> Option<String> {
        let Self { on_device, in_doubt, too_large, thin, without_device, gave_out } = self;
        let (of_cpu, all) =
            (in_doubt + too_large + without_device, in_doubt + too_large + without_device + on_device);
        let why = match gave_out {
            Some(why) => format!("the device failed: {why}; "),
            None if too_large + without_device == 0 => return None,
            None => String::new(),
        };
        Some(format!(
            "{why}the CPU computed {of_cpu} of {} masks: {in_doubt} that the device left in doubt, \
             {too_large} that need more memory \
             than the pool's limits, {without_device} without the device",
            all + thin
        ))
    }
}

/// Whether `auto` takes a device for so many outputs at once, and if so whether only for dense charts.
#[cfg(feature = "cuda")]
fn chosen(language: &Language, n_outputs: usize) -> Option<bool> {
    use anygram_cuda::measured::{Use, choose};
    match choose(n_outputs, is_ambiguous(language)) {
        Use::Nothing => None,
        Use::Dense => Some(true),
        Use::Masks => Some(false),
    }
}

#[cfg(not(feature = "cuda"))]
fn chosen(_: &Language, _: usize) -> Option<bool> {
    None
}

/// Whether the Valiant chart suits a grammar best on the CPU.
#[cfg(feature = "cuda")]
fn is_ambiguous(language: &Language) -> bool {
    language.probe().is_some_and(anygram_recognizer::probe::Probe::is_ambiguous)
}

/// What there is to say about `--engine cuda` for a grammar: whether it can be, and why `auto` does or does
/// not choose it.
#[cfg(feature = "cuda")]
pub fn about_device(language: &Language) -> String {
    use anygram_cuda::measured::{Use, Work, advantage, choose};
    let few = anygram_cuda::PoolOptions {
        pages: 1,
        sequences: 1,
        workers: 1,
        max_workers: 1,
        arena_words: 0,
        ..Default::default()
    };
    let device = match anygram_cuda::Charts::on_cuda(0, few) {
        Ok(charts) => charts.device_name(),
        Err(error) => error.to_string(),
    };
    let is_dependent = language.lexing().boundaries().is_none_or(|boundaries| !boundaries.is_independent());
    let masks = match is_dependent && language.mode() != anygram::LexerMode::Scannerless {
        true => {
            "; what can be spelled depends on the parser, so the CPU computes masks that leave tokens in \
             doubt"
        }
        false => "",
    };
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let times = |what: &str, work| advantage(work).map(|times| format!("{what} {times}"));
    let measured = [
        times("one output", Work::Output),
        times("a batch of 256", Work::Batch(256)),
        times("dense charts", Work::Dense),
    ];
    let measured: Vec<String> = measured.into_iter().flatten().collect();
    let auto = match choose(1, is_ambiguous(language)) {
        _ if measured.is_empty() => "`auto` does not choose it: no device was measured".to_owned(),
        used => {
            let used = match used {
                Use::Nothing => "`auto` does not choose it for one output",
                Use::Dense => "`auto` chooses it where the chart of an output is dense",
                Use::Masks => "`auto` chooses it",
            };
            format!("{used}; measured, in times one core (there are {n_cores}): {}", measured.join(", "))
        }
    };
    format!("{device}{masks}; {auto}")
}

/// What there is to say about `--engine cuda`.
#[cfg(not(feature = "cuda"))]
pub fn about_device(_: &Language) -> String {
    "not in this build (`--features cuda`); `auto` does not choose it".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asked_for_a_device_is_told_what_it_did_not_do() {
        let fine = OnDevice { on_device: 7, in_doubt: 2, ..OnDevice::default() };
        assert_eq!(fine.notice(), None, "a mask in doubt is what to expect of some grammars");
        let large = OnDevice { on_device: 7, too_large: 1, ..OnDevice::default() };
        assert!(large.notice().unwrap().starts_with("the CPU computed 1 of 8 masks"));
        let lost =
            OnDevice { on_device: 7, without_device: 3, gave_out: Some("it is gone".to_owned()), ..fine };
        let notice = lost.notice().unwrap();
        assert!(
            notice.starts_with("the device failed: it is gone; the CPU computed 5 of 12 masks"),
            "{notice}"
        );
    }
}
