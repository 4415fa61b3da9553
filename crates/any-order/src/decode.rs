//! The loop of a diffusion model: log-probabilities of all holes in, a few tokens fixed, and again.
//!
//! It knows neither models nor grammars: a [`Model`] gives weights, a [`Method`] says what may be kept. With `exact` a canvas that is completable stays so
//! after every step, so the loop always comes to its end; with the others it can run into a dead end, and then says so.

use anygram_left_to_right::{Constraint, MatchError};
use anygram_vocab::TokenId;
use rustc_hash::FxHashSet;

use crate::canvas::{Canvas, Slot};
use crate::log_probs::{LogProbs, LogProbsError};
use crate::methods::{Lookahead, Method, MethodError, Methods};
use crate::random::{Random, log_sum};
use crate::solver::Filling;
use crate::weigh::{Tail, WeighError, Weighed, Weigher};

/// What fills canvases.
pub trait Model {
    /// One row for each hole of the canvas, in order.
    fn log_probs(&mut self, canvas: &Canvas) -> Result<LogProbs, LogProbsError>;
}

/// How tokens are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Choice {
    /// Each token by itself, the surest first; one that the method refuses is crossed out and the next taken.
    #[default]
    Proposals,
    /// The surest tokens of the best completion (exact).
    Best,
    /// The surest tokens of a sample of the completions (exact).
    Sample,
}

/// What makes a hole be filled before others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// The probability of its likeliest token.
    #[default]
    Confidence,
    /// The least entropy.
    Entropy,
    /// The distance of the likeliest to the second.
    Margin,
}

/// How a canvas is filled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DecodeOptions {
    /// Who says what may be kept.
    pub method: Method,
    /// How tokens are chosen. [`Choice::Best`] and [`Choice::Sample`] look at no method.
    pub choice: Choice,
    /// Which holes come first.
    pub order: Order,
    /// Questions to the model in all, shared evenly by the blocks; at least one a block.
    pub steps: usize,
    /// Slots of a block: blocks are filled one after the other. `None` for all slots at once.
    pub block: Option<usize>,
    /// Above 0, proposals are drawn with log-probabilities divided by this; at 0 the likeliest is taken.
    pub temperature: f64,
    /// Refusals of a whole run (IG-CD: 100); then `exact` takes the best completion, and others are stuck.
    pub refusals: usize,
    /// The same seed, the same tokens.
    pub seed: u64,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            method: Method::Exact,
            choice: Choice::Proposals,
            order: Order::Confidence,
            steps: 32,
            block: Some(32),
            temperature: 0.0,
            refusals: 100,
            seed: 0,
        }
    }
}

/// A token that was proposed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// The question to the model, from 0.
    pub step: usize,
    /// Where.
    pub slot: usize,
    /// Which.
    pub token: TokenId,
    /// Whether it was kept.
    pub kept: bool,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Decoded {
    /// The canvas as it was filled; without holes unless the run was stuck.
    pub canvas: Canvas,
    /// Whether nothing could be kept any more.
    pub is_stuck: bool,
    /// All proposals in order.
    pub trace: Vec<Proposal>,
}

/// Why a canvas could not be filled.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The method could not be asked, or the model's answer does not fit.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// The weights could not be used.
    #[error(transparent)]
    Weigh(#[from] WeighError),
    /// The model's answer does not fit.
    #[error(transparent)]
    LogProbs(#[from] LogProbsError),
}

/// Fills canvases of one constraint.
pub struct Decoder {
    methods: Methods,
    weigher: Weigher,
}

impl Decoder {
    /// Empty tables for a constraint.
    pub fn new(constraint: &Constraint) -> Result<Self, MatchError> {
        Ok(Self { methods: Methods::new(constraint)?, weigher: Weigher::new(constraint)? })
    }

    /// Fills the holes of a canvas without gaps. Reproducible: it depends on nothing but what is given, as long as
    /// no limit is hit and the weights do not exclude every completion (then `exact` takes the solver's witness, the last that fits).
    pub fn decode(
        &mut self,
        canvas: &Canvas,
        model: &mut dyn Model,
        options: &DecodeOptions,
    ) -> Result<Decoded, DecodeError> {
        LogProbs::check_gaps(canvas)?;
        let n_slots = canvas.slots().len();
        let block = options.block.unwrap_or(n_slots).max(1);
        let n_blocks = n_slots.div_ceil(block).max(1);
        let steps = (options.steps / n_blocks).max(1);
        let mut run = Run {
            canvas: canvas.clone(),
            trace: Vec::new(),
            step: 0,
            left: options.refusals,
            random: Random::new(options.seed),
        };
        for first in (0..n_slots).step_by(block) {
            let within = first..(first + block).min(n_slots);
            for step in 0..steps {
                let n_open = run.canvas.holes().filter(|hole| within.contains(hole)).count();
                if n_open == 0 {
                    break;
                }
                let quota = n_open.div_ceil(steps - step);
                let log_probs = model.log_probs(&run.canvas)?;
                log_probs.check(&run.canvas, self.weigher.constraint().vocabulary().len())?;
                let n_kept = match options.choice {
                    Choice::Proposals => self.propose(&mut run, &log_probs, within.clone(), quota, options)?,
                    Choice::Best | Choice::Sample => {
                        self.commit(&mut run, &log_probs, within.clone(), quota, options)?
                    }
                };
                run.step += 1;
                if n_kept < quota {
                    return Ok(Decoded { canvas: run.canvas, is_stuck: true, trace: run.trace });
                }
            }
        }
        Ok(Decoded { canvas: run.canvas, is_stuck: false, trace: run.trace })
    }

    /// Keeps proposals one by one; returns how many.
    fn propose(
        &mut self,
        run: &mut Run,
        log_probs: &LogProbs,
        within: std::ops::Range<usize>,
        quota: usize,
        options: &DecodeOptions,
    ) -> Result<usize, DecodeError> {
        let holes: Vec<usize> = run.canvas.holes().collect();
        let mut refused: FxHashSet<(usize, TokenId)> = FxHashSet::default();
        let mut n_kept = 0;
        while n_kept < quota {
            let mut surest: Option<(f64, usize, TokenId)> = None;
            for (row, &slot) in log_probs.rows().iter().zip(&holes) {
                if !within.contains(&slot) || run.canvas.slots()[slot] != Slot::Hole {
                    continue;
                }
                let mut pairs: Vec<(TokenId, f64)> =
                    row.all().iter().copied().filter(|pair| !refused.contains(&(slot, pair.0))).collect();
                pairs.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                let Some(&(likeliest, _)) = pairs.first() else { continue };
                let token = if options.temperature > 0.0 {
                    let drawn = run.random.pick(pairs.iter().map(|pair| pair.1 / options.temperature));
                    drawn.map_or(likeliest, |drawn| pairs[drawn].0)
                } else {
                    likeliest
                };
                let sure = sureness(&pairs, options.order);
                if surest.is_none_or(|known| sure > known.0) {
                    surest = Some((sure, slot, token));
                }
            }
            let next = surest.filter(|_| run.left > 0);
            let Some((_, slot, token)) = next else {
                if options.method == Method::Exact {
                    let open = (0..holes.len()).filter(|&at| run.canvas.slots()[holes[at]] == Slot::Hole);
                    let others = log_probs.only(&open.collect::<Vec<_>>());
                    let best = DecodeOptions { choice: Choice::Best, ..*options };
                    n_kept += self.commit(run, &others, within, quota - n_kept, &best)?;
                }
                break;
            };
            let mut tried = run.canvas.clone();
            let put = tried.set(slot, token).is_ok();
            let lookahead = Lookahead { seed: run.random.bits(), ..Lookahead::default() };
            // The marginals of the other holes.
            let others = (options.method == Method::Lookahead).then(|| {
                let open = (0..holes.len()).filter(|&at| tried.slots()[holes[at]] == Slot::Hole);
                log_probs.only(&open.collect::<Vec<_>>())
            });
            let verdict = self.methods.completable(&tried, options.method, others.as_ref(), lookahead)?;
            let kept = put && verdict.completable == Some(true);
            run.trace.push(Proposal { step: run.step, slot, token, kept });
            if kept {
                run.canvas = tried;
                n_kept += 1;
            } else {
                refused.insert((slot, token));
                run.left -= 1;
            }
        }
        Ok(n_kept)
    }

    /// What `exact` knows to be right, where the weights say nothing: where they exclude all completions, or a limit was hit.
    fn fall_back(
        &mut self,
        run: &mut Run,
        within: &std::ops::Range<usize>,
        quota: usize,
        options: &DecodeOptions,
    ) -> Result<usize, DecodeError> {
        if options.method != Method::Exact {
            return Ok(0);
        }
        let verdict = self.methods.completable(&run.canvas, Method::Exact, None, Lookahead::default())?;
        let Some(witness) = verdict.witness else { return Ok(0) };
        let open: Vec<usize> = run.canvas.holes().filter(|hole| within.contains(hole)).take(quota).collect();
        let mut n_kept = 0;
        for slot in open {
            if let Some(Filling::Token(token)) = witness.slots.get(slot) {
                n_kept += usize::from(run.keep(slot, *token));
            }
        }
        Ok(n_kept)
    }

    /// Keeps the surest tokens of a whole completion; returns how many.
    fn commit(
        &mut self,
        run: &mut Run,
        log_probs: &LogProbs,
        within: std::ops::Range<usize>,
        quota: usize,
        options: &DecodeOptions,
    ) -> Result<usize, DecodeError> {
        let whole = match options.choice {
            Choice::Sample => {
                let seed = run.random.bits();
                match self.weigher.sample(&run.canvas, log_probs, Tail::Counted, seed, 1)? {
                    Weighed::Known(mut samples) => samples.pop(),
                    Weighed::Nothing | Weighed::Unknown(_) => None,
                }
            }
            Choice::Proposals | Choice::Best => match self.weigher.best(&run.canvas, log_probs, Tail::Counted)? {
                Weighed::Known(best) => Some(best),
                Weighed::Nothing | Weighed::Unknown(_) => None,
            },
        };
        let Some(whole) = whole else { return self.fall_back(run, &within, quota, options) };
        let holes: Vec<usize> = run.canvas.holes().collect();
        let mut open: Vec<(f64, usize)> = Vec::new();
        for (row, &slot) in log_probs.rows().iter().zip(&holes) {
            if within.contains(&slot) {
                let all = log_sum(row.all().iter().map(|pair| pair.1));
                open.push((row.get(whole.tokens[slot]) - all, slot));
            }
        }
        open.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let kept = open.into_iter().take(quota).filter(|&(_, slot)| run.keep(slot, whole.tokens[slot]));
        Ok(kept.count())
    }
}

/// How sure a model is of a hole, by its tokens, the likeliest first.
fn sureness(pairs: &[(TokenId, f64)], order: Order) -> f64 {
    let all = log_sum(pairs.iter().map(|pair| pair.1));
    let probability = |at: usize| pairs.get(at).map_or(0.0, |pair| (pair.1 - all).exp());
    match order {
        Order::Confidence => probability(0),
        Order::Margin => probability(0) - probability(1),
        Order::Entropy => pairs.iter().map(|pair| (pair.1 - all) * (pair.1 - all).exp()).sum(),
    }
}

struct Run {
    canvas: Canvas,
    trace: Vec<Proposal>,
    step: usize,
    /// Refusals that are still allowed.
    left: usize,
    random: Random,
}

impl Run {
    fn keep(&mut self, slot: usize, token: TokenId) -> bool {
        let kept = self.canvas.set(slot, token).is_ok();
        self.trace.push(Proposal { step: self.step, slot, token, kept });
        kept
    }
}
