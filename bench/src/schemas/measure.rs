//! One schema by one engine.

use anygram::GrammarFormat;
use peak_alloc::PeakAlloc;
use serde::Serialize;

use crate::masks::engine::{Engine, Maker};
use crate::masks::pass::Step;
use crate::measure::timed;

/// All memory of the program, so that what a schema takes is a difference.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What became of a schema and its texts.
#[derive(Default, Serialize)]
pub struct Measured {
    /// Why it could not be compiled; what is before the first colon is the kind.
    pub refused: Option<String>,
    pub compile_ms: f64,
    /// Compiling and the first mask.
    pub first_mask_ms: Option<f64>,
    /// Bytes held by what was compiled, and after its texts.
    pub compiled_bytes: usize,
    pub used_bytes: usize,
    pub tokens: usize,
    /// Of all masks, one after another: equal if they are the same. 0 of an engine that does not show them.
    pub masks_hash: u64,
    /// Microseconds of all masks and of the slowest.
    pub mask_us: f64,
    pub slowest_mask_us: f64,
    /// Valid texts that were refused, and where.
    pub wrong_valid: Vec<String>,
    /// The places of invalid texts that were not refused.
    pub wrong_invalid: Vec<usize>,
    /// Why texts were not decoded to their end or refused: a limit, or the time.
    pub unfinished: Option<String>,
    /// Where a mask and an advance disagree.
    pub disagreement: Option<String>,
    /// By text.
    #[serde(skip)]
    pub steps: Vec<Vec<Step>>,
}

/// How a text was decoded.
enum Outcome {
    Sentence,
    /// Behind so many tokens the next, or the end, is not allowed.
    Refused(usize),
    Failed(String),
    Disagree(String),
}

/// Bytes on the heap.
pub fn held() -> usize {
    MEMORY.current_usage()
}

impl Measured {
    /// Compiles a schema and decodes its texts, each told with whether it is valid. `seconds` of CPU time
    /// bound
    /// the masks of all texts.
    pub fn of(maker: &Maker, schema: &str, texts: &[(Vec<u32>, bool)], seconds: f64) -> Self {
        let mut this = Self::default();
        let before = held();
        let (made, us) = timed(|| (maker.make)(GrammarFormat::JsonSchema, schema));
        this.compile_ms = us / 1e3;
        let mut engine = match made {
            Ok(engine) => engine,
            Err(error) => {
                this.refused = Some(error);
                return this;
            }
        };
        this.compiled_bytes = held().saturating_sub(before);
        let mut own = 0;
        for (at, (tokens, valid)) in texts.iter().enumerate() {
            let between = held();
            this.text(&mut *engine, at, tokens, *valid, seconds);
            own += held().saturating_sub(between);
            if this.unfinished.is_some() {
                break;
            }
        }
        this.used_bytes = this.compiled_bytes + own;
        this.summarize();
        this
    }

    fn text(&mut self, engine: &mut dyn Engine, at: usize, tokens: &[u32], valid: bool, seconds: f64) {
        let mut steps = Vec::with_capacity(tokens.len());
        let left = seconds * 1e6 - self.mask_us;
        let outcome = decode(engine, tokens, left, &mut steps, &mut self.masks_hash);
        if self.first_mask_ms.is_none() {
            self.first_mask_ms = steps.first().map(|step| self.compile_ms + step.mask / 1e3);
        }
        self.mask_us += steps.iter().map(|step| step.mask).sum::<f64>();
        self.steps.push(steps);
        match (outcome, valid) {
            (Outcome::Sentence, true) | (Outcome::Refused(_), false) => {}
            (Outcome::Sentence, false) => self.wrong_invalid.push(at),
            (Outcome::Refused(token), true) => {
                self.wrong_valid.push(format!("text {at}, token {token} of {}", tokens.len()));
            }
            (Outcome::Failed(message), _) => self.unfinished = Some(format!("text {at}: {message}")),
            (Outcome::Disagree(message), _) => self.disagreement = Some(format!("text {at}: {message}")),
        }
    }

    fn summarize(&mut self) {
        let masks = || self.steps.iter().flatten().map(|step| step.mask);
        (self.tokens, self.slowest_mask_us) = (masks().count(), masks().fold(0.0, f64::max));
    }

    /// Whether it compiled and all texts were told right.
    pub fn passes(&self) -> bool {
        self.refused.is_none()
            && self.unfinished.is_none()
            && self.disagreement.is_none()
            && self.wrong_valid.is_empty()
            && self.wrong_invalid.is_empty()
    }
}

/// Decodes one text; at most so many microseconds.
fn decode(
    engine: &mut dyn Engine,
    tokens: &[u32],
    most: f64,
    steps: &mut Vec<Step>,
    masks_hash: &mut u64,
) -> Outcome {
    engine.begin();
    let mut spent = 0.0;
    for (at, &token) in tokens.iter().enumerate() {
        if spent > most {
            return Outcome::Failed(format!("the time was used up at token {at}"));
        }
        let (masked, mask) = timed(|| engine.mask());
        if let Err(message) = masked {
            return Outcome::Failed(message);
        }
        // That of FNV, word by word.
        let add = |hash: u64, &word: &u32| (hash ^ u64::from(word)).wrapping_mul(0x100_0000_01b3);
        *masks_hash = engine.words().iter().fold(*masks_hash, add);
        let is_allowed = engine.allows(token);
        // A refused token is not read: MaskBench counts its mask alone.
        let (advanced, advance) = if is_allowed { timed(|| engine.advance(token)) } else { (Ok(false), 0.0) };
        spent += mask + advance;
        steps.push(Step { mask, advance });
        match advanced {
            Err(message) => return Outcome::Failed(message),
            Ok(is_advanced) if is_advanced != is_allowed => {
                return Outcome::Disagree(format!("token {at} is in the mask and refused"));
            }
            Ok(false) => return Outcome::Refused(at),
            Ok(true) => {}
        }
    }
    if engine.is_sentence() { Outcome::Sentence } else { Outcome::Refused(tokens.len()) }
}
