//! The trait for decoding methods, and all methods by name.

use anygram_any_order::Canvas;
use anygram_bits::Random;
use anygram_left_to_right::Constraint;
use anygram_vocab::TokenId;

use super::asked::Asked;
use super::exact::{Exact, ExactBy};
use super::lave::Lave;
use super::rows::Rows;
use super::sequential::Sequential;
use super::trace::Judgement;
use super::{DecodeError, Sampling};
use crate::Lookahead;
use crate::methods::Method;

/// A decoding method. The loop calls it while it fills a canvas without gaps.
///
/// For each answer of a model the loop asks [`Strategy::restrict`], then proposes tokens, the surest first,
/// and asks [`Strategy::judge`] about each.
pub trait Strategy: Send {
    /// Forgets what it knows of an earlier run.
    fn begin(&mut self, seed: u64);

    /// Excludes tokens from being proposed: before the first proposal of a step (`is_first`), again after
    /// each token that was kept, and after a refusal where [`Recovery::Restrict`] says so.
    fn restrict(&mut self, canvas: &Canvas, rows: &mut Rows, is_first: bool) -> Result<(), DecodeError> {
        let _ = (canvas, rows, is_first);
        Ok(())
    }

    /// Does work of the next step that needs no answer of the model, perhaps while the model makes it. The
    /// canvas is the one that [`Strategy::restrict`] gets next if nothing is taken back from it, and
    /// `is_by_confidence` is what its rows will say of themselves ([`Rows::is_by_confidence`]). It changes
    /// no answer.
    fn prepare(&mut self, canvas: &Canvas, is_by_confidence: bool) -> Result<(), DecodeError> {
        let _ = (canvas, is_by_confidence);
        Ok(())
    }

    /// Whether a token is kept; in `canvas` it stands already.
    fn judge(
        &mut self,
        canvas: &Canvas,
        slot: usize,
        token: TokenId,
        rows: &Rows,
    ) -> Result<Judgement, DecodeError>;

    /// Whether the loop believes a model that the text has ended in some slot: as long as an EOS is the
    /// likeliest token there, it proposes no token behind, and takes back those that it put there. `ended` is
    /// the canvas with EOS there and behind.
    fn ends(&mut self, ended: &Canvas) -> Result<bool, DecodeError> {
        let _ = ended;
        Ok(false)
    }

    /// Tokens were taken back: the canvas is no longer one that fills the last.
    fn taken_back(&mut self) {}

    /// What to do about a proposal that was refused, besides crossing it out. `sampling` is how the run
    /// chooses tokens.
    fn refused(&mut self, canvas: &Canvas, rows: &Rows, sampling: Sampling) -> Result<Recovery, DecodeError> {
        let _ = (canvas, rows, sampling);
        Ok(Recovery::Propose)
    }

    /// A token for every slot of the canvas, when there is nothing left to propose or too much was refused.
    /// `None` ends the run: it is stuck.
    fn rescue(&mut self, canvas: &Canvas, rows: &Rows) -> Result<Option<Vec<TokenId>>, DecodeError> {
        let _ = (canvas, rows);
        Ok(None)
    }

    /// For a canvas with gaps, how many slots each needs so that it can be completed; `None` if it cannot, if
    /// all together are more than `most`, or if the method does not know.
    fn room(&mut self, canvas: &Canvas, most: usize) -> Result<Option<Vec<usize>>, DecodeError> {
        let _ = (canvas, most);
        Ok(None)
    }

    /// After this many refusals in a run the loop calls [`Strategy::rescue`]; the options can change it.
    fn refusals(&self) -> usize {
        REFUSALS
    }
}

/// What follows a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Recovery {
    /// The next proposal.
    Propose,
    /// [`Strategy::restrict`] is asked again, then the next proposal.
    Restrict,
    /// These tokens are put, each into a hole, and the model is asked again.
    Fill(Vec<(usize, TokenId)>),
    /// Fill what the step has to fill as [`Strategy::rescue`] says; if it says nothing, the next proposal.
    Rescue,
}

/// Refusals of a whole run.
pub const REFUSALS: usize = 1_000;

/// A strategy by its name.
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    make: fn(&Constraint) -> Result<Box<dyn Strategy>, DecodeError>,
}

impl Named {
    /// A new one, for a constraint.
    pub fn make(&self, constraint: &Constraint) -> Result<Box<dyn Strategy>, DecodeError> {
        (self.make)(constraint)
    }

    /// The strategy of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        STRATEGIES.iter().find(|strategy| strategy.name == name)
    }
}

/// All strategies. Each with its defaults; those who want others make one by its type.
pub const STRATEGIES: &[Named] = &[
    Named {
        name: "exact",
        about: "each token by exact rows of admissible tokens, on demand; always ends with a sentence",
        make: |constraint| Ok(Box::new(Exact::new(constraint, ExactBy::Admissible)?)),
    },
    Named {
        name: "compatible",
        about: "as `exact`, but tokens are proposed first and asked about one by one",
        make: |constraint| Ok(Box::new(Exact::new(constraint, ExactBy::Compatible)?)),
    },
    Named {
        name: "best",
        about: "as `exact`, by the surest tokens of the best completion",
        make: |constraint| Ok(Box::new(Exact::new(constraint, ExactBy::Best)?)),
    },
    Named {
        name: "sample",
        about: "as `exact`, by the surest tokens of an exact sample of the completions",
        make: |constraint| Ok(Box::new(Exact::new(constraint, ExactBy::Sample)?)),
    },
    Named {
        name: LOOKAHEAD,
        about: "LAVE: one of ten drawn fillings has to be extendable; recovery from its cache",
        make: |constraint| Ok(Box::new(Lave::new(constraint)?)),
    },
    Named {
        name: "lookahead-without-recovery",
        about: "LAVE's ablation: without a constraint after five failures in a row",
        make: |constraint| Ok(Box::new(Lave::new(constraint)?.without_recovery())),
    },
    Named {
        name: "intersection",
        about: "IG-CD: each run of open slots as a gap",
        make: |constraint| Ok(Box::new(Asked::new(constraint, Method::Intersection)?)),
    },
    Named {
        name: "forced-sequential",
        about: "left to right with masks; the length is not looked at",
        make: |constraint| Ok(Box::new(Sequential::new(constraint)?)),
    },
    Named {
        name: "forced-sequential-with-budget",
        about: "left to right with masks that leave room to close",
        make: |constraint| Ok(Box::new(Sequential::new(constraint)?.with_budget())),
    },
    Named {
        name: "none",
        about: "no constraint",
        make: |constraint| Ok(Box::new(Asked::new(constraint, Method::None)?)),
    },
];

/// A strategy by name, as users give it: one of [`STRATEGIES`], and for `lookahead` perhaps parameters, as in
/// `lookahead:N=3:tau=20`, and `published`.
///
/// N is the number of drawn fillings, τ that of failures in a row before the recovery (10 and 5 in LAVE).
/// `lookahead:published` asks as the paper does, whether the text so far is a viable prefix; without it the
/// room that is left is counted too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configured {
    name: String,
    base: &'static str,
    lookahead: Option<Parameters>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parameters {
    fillings: usize,
    attempts: usize,
    counts_room: bool,
}

impl Configured {
    /// The strategy of this name.
    ///
    /// # Errors
    /// There is none, or it does not take these parameters.
    pub fn parse(name: &str) -> Result<Self, DecodeError> {
        let unknown = || DecodeError::Strategy {
            name: name.to_owned(),
            known: STRATEGIES.iter().map(|named| named.name).collect::<Vec<_>>().join(", "),
        };
        let mut parts = name.split(':');
        let base = parts.next().and_then(Named::find).ok_or_else(unknown)?.name;
        let mut parameters =
            Parameters { fillings: Lookahead::FILLINGS, attempts: Lave::ATTEMPTS, counts_room: true };
        let mut lookahead = None;
        for part in parts {
            match part.split_once('=').map(|(key, value)| (key, value.parse::<usize>())) {
                Some(("N", Ok(fillings))) if fillings > 0 => parameters.fillings = fillings,
                Some(("tau", Ok(attempts))) if attempts > 0 => parameters.attempts = attempts,
                None if part == "published" => parameters.counts_room = false,
                _ => return Err(unknown()),
            }
            lookahead = Some(parameters);
        }
        if lookahead.is_some() && base != LOOKAHEAD {
            return Err(unknown());
        }
        Ok(Self { name: name.to_owned(), base, lookahead })
    }

    /// As it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A new strategy for a constraint.
    pub fn make(&self, constraint: &Constraint) -> Result<Box<dyn Strategy>, DecodeError> {
        if let Some(Parameters { fillings, attempts, counts_room }) = self.lookahead {
            let lookahead = Lookahead { fillings, counts_room, seed: 0 };
            return Ok(Box::new(Lave::new(constraint)?.lookahead(lookahead).attempts(attempts)));
        }
        Named::find(self.base).unwrap_or(&STRATEGIES[0]).make(constraint)
    }
}

const LOOKAHEAD: &str = "lookahead";

/// A seed for each question of a run, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Seeds(Random);

impl Seeds {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed ^ 0x7a11_5eed))
    }

    pub fn random(&mut self) -> &mut Random {
        &mut self.0
    }

    pub fn next(&mut self) -> u64 {
        self.0.bits()
    }
}
