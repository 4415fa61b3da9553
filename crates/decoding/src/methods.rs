//! The published methods (IG-CD, LAVE, left to right) and ours answer one question: is the canvas
//! completable?
//!
//! Each answers as its authors do; the [`Verdict`] says whether the answer is proven. Our lexing and engines
//! are used for all, so that what differs is the method.
//!
//! | method | its question | a yes | a no |
//! |---|---|---|---|
//! | `exact` | the canvas as it is | proven | proven |
//! | `intersection` | each run of holes as a gap, in `contextual` with a lexing that lets more pass | proven where there are no holes and a completion was drawn | proven |
//! | `lookahead` | whether one of some drawn fillings can be completed | proven | not proven where something was drawn |
//! | `forced-sequential` | the text before the first hole or gap | not proven where there is one | proven |
//! | `none` | nothing | not proven | never said |

use anygram_any_order::error::CanvasCause;
use anygram_any_order::{Canvas, CanvasError, Decision, End, LogProbs, Slot, Solver, Undecided, Witness};
use anygram_left_to_right::{BatchOptions, Constraint, Matcher};
use anygram_vocab::TokenId;

use crate::intersection::{Intersected, Intersection, IntersectionOptions};
use crate::lookahead::{Lookahead, Marginals};

/// A way to answer whether a canvas is completable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Method {
    /// Ours: [`Solver::completable`].
    #[default]
    Exact,
    /// IG-CD (Mündler et al., ICLR 2026): a run of holes holds any number of tokens. See
    /// [`crate::intersection`].
    Intersection,
    /// LAVE (Zhang et al. 2026, equations 1 to 9): fillings are drawn from the marginals up to the last fixed
    /// slot, and checked.
    ///
    /// See [`Lookahead`].
    Lookahead,
    /// Left to right with masks: what stands behind the first hole is not looked at.
    ForcedSequential,
    /// No constraint.
    None,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Exact, Self::Intersection, Self::Lookahead, Self::ForcedSequential, Self::None];

    /// The name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Intersection => "intersection",
            Self::Lookahead => "lookahead",
            Self::ForcedSequential => "forced-sequential",
            Self::None => "none",
        }
    }

    /// The method of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// What a method says.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// Whether the canvas is completable, with a completion where the method came by one.
    pub decision: Decision<Option<Witness>>,
    /// Whether that is certain.
    pub proven: bool,
}

impl Verdict {
    /// A completion, where the method came by one.
    pub fn witness(&self) -> Option<&Witness> {
        match &self.decision {
            Decision::Yes(witness) => witness.as_ref(),
            Decision::No | Decision::Unknown(_) => None,
        }
    }

    pub(crate) fn yes(witness: Option<Witness>, proven: bool) -> Self {
        Self { decision: Decision::Yes(witness), proven }
    }

    pub(crate) fn no(proven: bool) -> Self {
        Self { decision: Decision::No, proven }
    }

    pub(crate) fn unknown(why: Undecided) -> Self {
        Self { decision: Decision::Unknown(why), proven: false }
    }

    pub(crate) fn exact(answer: Decision<Witness>) -> Self {
        let proven = answer.decided().is_some();
        Self { decision: answer.map(Some), proven }
    }
}

/// Answers by any method.
///
/// ```
/// # use anygram_any_order::{Canvas, End, Slot};
/// # use anygram_decoding::{Lookahead, Method, Methods};
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
/// # let vocabulary = Vocabulary::from_tokens(["(", ")", "x", ""], special)?;
/// # let constraint = Constraint::new(language, vocabulary)?;
/// // The grammar is  start: "(" start ")" | "x"  and the tokens are "(", ")", "x" and EOS.
/// let [open, close, _, _] = [0, 1, 2, 3].map(TokenId);
/// let mut methods = Methods::new(&constraint)?;
/// // One token between the brackets of `( _ ) )`: nothing suits.
/// let slots = vec![Slot::Fixed(open), Slot::Hole, Slot::Fixed(close), Slot::Fixed(close)];
/// let canvas = Canvas::new(slots, End::Sentence);
/// for (method, says) in [(Method::Exact, Some(false)), (Method::Intersection, Some(true))] {
///     let verdict = methods.completable(&canvas, method, None, Lookahead::default())?;
///     // For `intersection` a run of holes has any number of tokens, so it cannot know.
///     assert_eq!((verdict.decision.decided(), verdict.proven), (says, method == Method::Exact));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Methods {
    pub(crate) solver: Solver,
    pub(crate) matcher: Matcher,
    /// The checkers of fillings, one per thread.
    pub(crate) checkers: Vec<Matcher>,
    pub(crate) intersection: Option<Intersection>,
}

impl Methods {
    /// Empty tables for a constraint.
    pub fn new(constraint: &Constraint) -> Result<Self, CanvasError> {
        Ok(Self {
            solver: Solver::new(constraint)?,
            matcher: constraint.matcher()?,
            checkers: vec![constraint.matcher()?],
            intersection: None,
        })
    }

    /// Lets `lookahead` check fillings on so many threads of rayon's pool, with tables for each. The answers
    /// are the same.
    pub fn on_threads(mut self, n_threads: usize) -> Result<Self, CanvasError> {
        let n_threads = n_threads.max(1);
        let options = BatchOptions { n_outputs: n_threads, n_tables: n_threads };
        self.checkers = self.solver.constraint().matchers(options)?;
        Ok(self)
    }

    /// The solver that answers for `exact`, and what all others need.
    pub fn solver(&mut self) -> &mut Solver {
        &mut self.solver
    }

    /// Whether a canvas is completable, by a method. `log_probs` are the marginals from which `lookahead`
    /// draws; without them it draws from the tokens that each mask allows, all as likely. Costs: `lookahead`
    /// at most one question to a matcher and one to the solver a filling, the others one to the solver.
    pub fn completable(
        &mut self,
        canvas: &Canvas,
        method: Method,
        log_probs: Option<&LogProbs>,
        lookahead: Lookahead,
    ) -> Result<Verdict, CanvasError> {
        match method {
            Method::Exact => Ok(Verdict::exact(self.solver.completable(canvas)?)),
            Method::Intersection => Ok(self.intersection(canvas, &IntersectionOptions::default())?.verdict),
            Method::Lookahead => {
                let marginals = log_probs.map_or(Marginals::Masks, Marginals::LogProbs);
                Ok(self.look_ahead(canvas, marginals, lookahead)?.verdict)
            }
            Method::ForcedSequential => self.forced_sequential(canvas),
            Method::None => Ok(Verdict::yes(None, false)),
        }
    }

    /// The same by `intersection` with options, and what it took.
    pub fn intersection(
        &mut self,
        canvas: &Canvas,
        options: &IntersectionOptions,
    ) -> Result<Intersected, CanvasError> {
        let engine = match &mut self.intersection {
            Some(engine) => engine,
            none => none.insert(Intersection::new(self.solver.constraint())?),
        };
        engine.completable(canvas, options)
    }

    /// As [`Solver::compatible`], by a method: of proposals (a slot and a token) in the given order each is
    /// kept iff the canvas with those kept so far and this one is completable by its word. `log_probs` has a
    /// row for each hole of the canvas. One verdict a proposal.
    pub fn compatible(
        &mut self,
        canvas: &Canvas,
        proposals: &[(usize, TokenId)],
        method: Method,
        log_probs: Option<&LogProbs>,
        lookahead: Lookahead,
    ) -> Result<Vec<Verdict>, CanvasError> {
        if let Some(log_probs) = log_probs {
            log_probs.check(canvas, self.solver.constraint().vocabulary().len())?;
        }
        let holes: Vec<usize> = canvas.holes().collect();
        let mut kept = canvas.slots().to_vec();
        let mut verdicts = Vec::with_capacity(proposals.len());
        for (proposal, &(slot, token)) in proposals.iter().enumerate() {
            if canvas.slots().get(slot) != Some(&Slot::Hole) {
                return Err(CanvasCause::NoHole { proposal, slot }.into());
            }
            let before = std::mem::replace(&mut kept[slot], Slot::Fixed(token));
            if before != Slot::Hole && before != kept[slot] {
                // Another token stands there by now.
                kept[slot] = before;
                verdicts.push(Verdict::no(true));
                continue;
            }
            let open = holes.iter().enumerate().filter(|(_, hole)| kept[**hole] == Slot::Hole);
            let open: Vec<usize> = open.map(|(number, _)| number).collect();
            let others = log_probs.map(|log_probs| log_probs.only(&open));
            let tried = Canvas::new(kept.clone(), canvas.end());
            let verdict = self.completable(&tried, method, others.as_ref(), lookahead)?;
            if !verdict.decision.is_yes() {
                kept[slot] = before;
            }
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }

    fn forced_sequential(&mut self, canvas: &Canvas) -> Result<Verdict, CanvasError> {
        let open = canvas.slots().iter().position(|slot| !matches!(slot, Slot::Fixed(_)));
        let Some(open) = open else { return Ok(Verdict::exact(self.solver.completable(canvas)?)) };
        let before = Canvas::new(canvas.slots()[..open].to_vec(), End::Prefix { remaining: None });
        let mut verdict = Verdict::exact(self.solver.completable(&before)?);
        if verdict.decision.is_yes() {
            verdict = Verdict::yes(None, false);
        }
        Ok(verdict)
    }
}
