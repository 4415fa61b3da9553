//! Options of the decoding loop, for all models and methods.

use std::fmt::Debug;

/// The order in which slots are filled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// The model's probability of the proposed token (LLaDA's low-confidence remasking).
    #[default]
    Confidence,
    /// The least entropy of what can still be proposed there (Dream).
    Entropy,
    /// The distance of the likeliest to the second.
    Margin,
    /// Any, by chance (LLaDA's random remasking).
    Random,
}

impl Order {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("confidence", Self::Confidence),
        ("entropy", Self::Entropy),
        ("margin", Self::Margin),
        ("random", Self::Random),
    ];
}

/// How many tokens are kept of one answer of the model. At least one is tried each time, and in the last step
/// all.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Pace {
    /// As many as it takes to be done in [`DecodeOptions::steps`].
    #[default]
    Even,
    /// This many per answer, in as many steps as that takes.
    Tokens(usize),
    /// All proposals with at least this probability (SGLang's low-confidence algorithm: 0.95).
    Threshold(f64),
    /// Those of the least entropy, as long as the sum of the entropies less the largest is at most this, in
    /// nats: a bound on how much they depend on one another (Ben-Hamu et al. 2025, arXiv 2505.24857;
    /// DiffusionGemma: 0.1). The order is that of the entropies.
    EntropyBound(f64),
}

/// Whether tokens of earlier steps can be revised.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Revision {
    /// They stay.
    #[default]
    Stay,
    /// A kept token is taken back when the model now gives it less than this probability, at most this often
    /// in a run.
    TakeBack {
        /// The probability.
        below: f64,
        /// The bound, by which a run ends.
        most: usize,
    },
    /// In each step the likeliest token replaces another one of the loop's in the block, where the model
    /// gives it more than this probability and the strategy keeps it (the token-to-token edits of LLaDA 2.1).
    /// A full block is asked about until nothing changes.
    Edit {
        /// The probability.
        above: f64,
        /// The most steps of a block that is full.
        most: usize,
    },
    /// All are open again in each step until the last, so a token stays only if it is proposed and kept again
    /// (DiffusionGemma's re-noising). A block is done when all of it was kept in one step.
    Renew,
}

/// How the token is chosen that is proposed for a slot.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sampling {
    /// At 0 the likeliest is proposed (of equal ones the lowest id). Above, one is drawn, with
    /// log-probabilities divided by this.
    pub temperature: f64,
    /// The temperature of the last step, to which it goes down evenly (DiffusionGemma: from 0.8 to 0.4).
    pub last_temperature: Option<f64>,
    /// Only so many of the likeliest are drawn.
    pub top_k: Option<usize>,
    /// Only the likeliest are drawn that reach this probability together, at the temperature and among the
    /// first `top_k`.
    pub top_p: Option<f64>,
}

impl Sampling {
    /// The same with the temperature of one step of so many.
    pub(crate) fn at(self, step: usize, steps: usize) -> Self {
        let Some(last) = self.last_temperature else { return self };
        let done = step as f64 / steps.saturating_sub(1).max(1) as f64;
        Self { temperature: self.temperature + (last - self.temperature) * done.min(1.0), ..self }
    }
}

/// How a canvas is filled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DecodeOptions {
    /// Which slots come first.
    pub order: Order,
    /// How many tokens are kept of one answer.
    pub pace: Pace,
    /// Questions to the model, shared evenly by the blocks, at least one a block. More are asked where a step
    /// ends early: after a recovery, after an insertion, or of a model that knows only the next token.
    pub steps: usize,
    /// Slots of a block: blocks are filled one after the other (semi-autoregressive). `None` for all slots at
    /// once.
    pub block: Option<usize>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// What becomes of tokens of earlier steps.
    pub revision: Revision,
    /// The most refusals in a run; then the strategy ends the run. `None` takes the default of the strategy
    /// ([`Strategy::refusals`](super::Strategy::refusals)).
    pub refusals: Option<usize>,
    /// Slots that may be inserted in gaps, in all.
    pub inserted: usize,
    /// The same seed, the same tokens.
    pub seed: u64,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            order: Order::Confidence,
            pace: Pace::Even,
            steps: 32,
            block: Some(32),
            sampling: Sampling::default(),
            revision: Revision::Stay,
            refusals: None,
            inserted: 256,
            seed: 0,
        }
    }
}

impl DecodeOptions {
    /// As DiffusionGemma's sampler has it: 48 steps over the whole canvas, entropy-bounded acceptance with
    /// 0.1 nats, everything else drawn anew, temperature from 0.8 to 0.4.
    pub fn renoising() -> Self {
        Self {
            order: Order::Entropy,
            pace: Pace::EntropyBound(0.1),
            steps: 48,
            block: None,
            sampling: Sampling { temperature: 0.8, last_temperature: Some(0.4), ..Sampling::default() },
            revision: Revision::Renew,
            ..Self::default()
        }
    }

    /// A message if an option has an invalid value.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let temperatures = [Some(self.sampling.temperature), self.sampling.last_temperature];
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if temperatures.into_iter().flatten().any(|temperature| !(0.0..1e6).contains(&temperature)) {
            return Some("a temperature is not a number from 0 on");
        }
        match self.pace {
            Pace::Tokens(0) => return Some("0 tokens a step come to no end"),
            Pace::Threshold(share) if !is_share(share) => return Some("the threshold is no probability"),
            Pace::EntropyBound(bound) if bound.is_nan() || bound < 0.0 => {
                return Some("the entropy bound is not a number from 0 on");
            }
            _ => {}
        }
        match (self.revision, self.sampling.top_p) {
            (Revision::TakeBack { below, .. }, _) if !is_share(below) => Some("`below` is no probability"),
            (Revision::Edit { above, .. }, _) if !is_share(above) => Some("`above` is no probability"),
            (_, Some(top_p)) if !is_share(top_p) => Some("`top_p` is no probability"),
            _ if self.block == Some(0) => Some("a block of 0 slots holds nothing"),
            _ => None,
        }
    }
}
