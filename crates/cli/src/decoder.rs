//! One output, token by token: on the CPU by a matcher, or on a device.

use anygram::{Constraint, Language, MatchError, Matcher, TokenId};
use anyhow::{Result, anyhow};

use crate::input::GrammarArgs;

/// Why a token was not appended.
pub enum Stop {
    /// It may not come next.
    Refused(String),
    /// Something else failed.
    Error(String),
}

/// One output.
pub enum Decoder {
    /// By an engine of the CPU.
    Cpu(Box<Matcher>),
    /// By the kernels.
    #[cfg(feature = "cuda")]
    Cuda(Box<anygram_cuda::output::Output>),
}

/// Levels of the trees that are searched in breadth, before each worker goes into depth. No device was measured with others.
#[cfg(feature = "cuda")]
const LEVELS: usize = 2;

impl Decoder {
    /// The output of a constraint by the engine that the options name. Without a name it is the device's where a measurement says that it is faster, and it can.
    pub fn new(grammar: &GrammarArgs, constraint: &Constraint) -> Result<Self> {
        if grammar.is_for_device() {
            return Self::on_device(constraint).map_err(|error| anyhow!("--engine cuda: {error:#}"));
        }
        if grammar.may_be_for_device()
            && is_faster_on_device()
            && let Ok(decoder) = Self::on_device(constraint)
        {
            return Ok(decoder);
        }
        Ok(Self::Cpu(Box::new(constraint.matcher()?)))
    }

    #[cfg(feature = "cuda")]
    fn on_device(constraint: &Constraint) -> Result<Self> {
        use std::sync::{Arc, Mutex};
        let charts = anygram_cuda::Charts::on_cuda(0, anygram_cuda::PoolOptions::default())?;
        let output = anygram_cuda::output::Output::new(constraint, &Arc::new(Mutex::new(charts)), LEVELS)?;
        Ok(Self::Cuda(Box::new(output)))
    }

    #[cfg(not(feature = "cuda"))]
    fn on_device(_: &Constraint) -> Result<Self> {
        Err(anyhow!("this build has no CUDA: build it with `--features cuda`, or choose another engine"))
    }

    /// The name of the engine.
    pub fn engine(&self) -> &'static str {
        match self {
            Self::Cpu(matcher) => matcher.constraint().language().engine().name(),
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => "cuda",
        }
    }

    /// The words of a mask.
    pub fn mask_words(&self) -> usize {
        match self {
            Self::Cpu(matcher) => matcher.constraint().mask_words(),
            #[cfg(feature = "cuda")]
            Self::Cuda(output) => output.constraint().mask_words(),
        }
    }

    /// Which tokens may come next.
    pub fn mask_into(&mut self, words: &mut [u32]) -> Result<()> {
        match self {
            Self::Cpu(matcher) => Ok(matcher.mask_into(words)?),
            #[cfg(feature = "cuda")]
            Self::Cuda(output) => Ok(output.mask_into(words)?),
        }
    }

    /// Appends a token.
    pub fn advance(&mut self, token: TokenId) -> Result<(), Stop> {
        match self {
            Self::Cpu(matcher) => matcher.advance(token).map_err(|error| match error {
                MatchError::Refused(refusal) => Stop::Refused(refusal.to_string()),
                error => Stop::Error(error.to_string()),
            }),
            #[cfg(feature = "cuda")]
            Self::Cuda(output) => output.advance(token).map_err(|error| match error {
                anygram_cuda::output::OutputError::Refused { .. } => Stop::Refused(error.to_string()),
                error => Stop::Error(error.to_string()),
            }),
        }
    }

    /// The number of tokens so far.
    pub fn n_tokens(&self) -> usize {
        match self {
            Self::Cpu(matcher) => matcher.tokens().len(),
            #[cfg(feature = "cuda")]
            Self::Cuda(output) => output.n_tokens(),
        }
    }

    /// Whether the text so far is a sentence.
    pub fn is_sentence(&self) -> bool {
        match self {
            Self::Cpu(matcher) => matcher.is_sentence(),
            #[cfg(feature = "cuda")]
            Self::Cuda(output) => output.is_sentence(),
        }
    }

    /// The names of the terminals that could come next.
    pub fn expected(&self) -> Vec<String> {
        match self {
            Self::Cpu(matcher) => matcher.expected(),
            #[cfg(feature = "cuda")]
            Self::Cuda(output) => output.expected(),
        }
    }

    /// Takes back all tokens.
    pub fn reset(&mut self) {
        match self {
            Self::Cpu(matcher) => matcher.reset(),
            #[cfg(feature = "cuda")]
            Self::Cuda(output) => output.reset(),
        }
    }
}

/// Whether a device was measured to be faster for one output.
fn is_faster_on_device() -> bool {
    #[cfg(feature = "cuda")]
    return anygram_cuda::measured::wins(anygram_cuda::measured::Work::Output);
    #[cfg(not(feature = "cuda"))]
    false
}

/// What there is to say about `--engine cuda` for a grammar: whether it can be, and why `auto` does or does not choose it.
#[cfg(feature = "cuda")]
pub fn about_device(language: &Language) -> String {
    use anygram_cuda::measured::{Work, advantage};
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
        true => "; what can be spelled depends on the parser, so the CPU computes masks that leave tokens in doubt",
        false => "",
    };
    let auto = match advantage(Work::Output) {
        Some(times) if times > 1.0 => format!("`auto` chooses it: measured at {times} times one core"),
        Some(times) => format!("`auto` does not choose it: measured at {times} times one core"),
        None => "`auto` does not choose it: no device was measured".to_owned(),
    };
    format!("{device}{masks}; {auto}")
}

/// What there is to say about `--engine cuda`.
#[cfg(not(feature = "cuda"))]
pub fn about_device(_: &Language) -> String {
    "not in this build (`--features cuda`); `auto` does not choose it".to_owned()
}
