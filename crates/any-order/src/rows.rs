//! Rows on demand: which tokens holes can hold, decided token by token as it is asked.
//!
//! No decoding loop needs all admissible tokens of a hole. It needs a yes or a no for the tokens that the
//! model wants. So a row is a pair of sets: tokens that are known to be admissible, and tokens that are not
//! known not to be. Lexing gives the first upper set. A question about one token is one about a canvas with
//! that token fixed ([`Solver::completable`]): a yes adds its completion to the lower sets of all holes, a no
//! takes the token out of the upper set. The complete sets ([`Solver::admissible`]) are made only when they
//! are asked for, or after many refusals.

use anygram_bits::Random;
use anygram_left_to_right::tokens::set_bit;
use anygram_vocab::{TokenId, TokenMask};
use rustc_hash::FxHashMap;

use crate::canvas::{Canvas, Slot};
use crate::decision::{Decision, Undecided};
use crate::error::{CanvasCause, CanvasError};
use crate::plan::Plan;
use crate::solver::{Filling, Solver, Witness};

/// What is known of the tokens of the holes of one canvas. A value; a [`AdmissibleRow`] asks for more.
///
/// ```
/// # use anygram_any_order::{Canvas, End, Slot, Solver};
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
/// # let vocabulary = Vocabulary::from_tokens(["(", ")", "x", ""], special)?;
/// # let constraint = Constraint::new(language, vocabulary)?;
/// // The grammar is  start: "(" start ")" | "x"  and the tokens are "(", ")", "x" and EOS.
/// let [open, close, x, _] = [0, 1, 2, 3].map(TokenId);
/// let mut solver = Solver::new(&constraint)?;
/// let canvas = Canvas::new(vec![Slot::Fixed(open), Slot::Hole, Slot::Hole], End::Sentence);
/// let mut rows = solver.rows(&canvas)?;
/// let mut first = rows.row(&mut solver, 0)?;
/// assert!(first.allows(x)?.is_yes() && first.allows(open)?.is_no());
/// // The likeliest admissible token, by log-probabilities of all tokens.
/// assert_eq!(first.best(&[-0.5, -2.0, -3.0, -4.0])?.yes(), Some(x));
/// // What was decided for one hole showed a token of the other.
/// assert!(rows.at_least()[1].contains(close));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdmissibleRows {
    canvas: Canvas,
    holes: Vec<usize>,
    at_least: Vec<TokenMask>,
    at_most: Vec<TokenMask>,
    /// What a question about a token came to that was not decided.
    undecided: FxHashMap<(usize, TokenId), Undecided>,
    /// Whether the complete sets were made.
    is_complete: bool,
    refusals: usize,
}

impl Solver {
    /// The rows of a canvas, as far as they are known without a search.
    pub fn rows(&mut self, canvas: &Canvas) -> Result<AdmissibleRows, CanvasError> {
        self.check(canvas)?;
        self.renew()?;
        let vocabulary = self.constraint().vocabulary().clone();
        let holes: Vec<usize> = canvas.holes().collect();
        let plan = Plan::new(self.constraint(), canvas);
        let bounds = match plan.has_gaps() {
            true => None,
            false => {
                let mut work = self.work();
                self.tables.lexical_rows(&plan, &mut work).ok()
            }
        };
        let bounds =
            bounds.unwrap_or_else(|| vec![vec![u32::MAX; self.constraint().mask_words()]; holes.len()]);
        let at_most = holes.iter().zip(bounds).map(|(&hole, mut words)| {
            // Lexing knows nothing of them.
            let tail = vocabulary.eos().iter().copied().chain(vocabulary.pad());
            if plan.ends[..=hole].contains(&true) {
                tail.for_each(|token| set_bit(&mut words, token.index()));
            }
            TokenMask::from_words(words, vocabulary.len())
        });
        let at_most = at_most.collect();
        let at_least = vec![TokenMask::new(vocabulary.len()); holes.len()];
        let mut rows = AdmissibleRows {
            canvas: canvas.clone(),
            holes,
            at_least,
            at_most,
            undecided: FxHashMap::default(),
            is_complete: false,
            refusals: AdmissibleRows::REFUSALS,
        };
        if let Some(witness) = self.fits(canvas) {
            rows.admit(witness);
        }
        Ok(rows)
    }
}

impl AdmissibleRows {
    /// Refusals of one question after which the complete sets are made.
    pub const REFUSALS: usize = 64;

    /// Lets [`AdmissibleRow::best`] and [`AdmissibleRow::sample`] make the complete sets after so many
    /// refusals; at 0 at once.
    pub fn refusals(mut self, refusals: usize) -> Self {
        self.refusals = refusals;
        self
    }

    /// The canvas.
    pub fn canvas(&self) -> &Canvas {
        &self.canvas
    }

    /// Of each hole, in order, the tokens that are known to be admissible, EOS and PAD among them.
    pub fn at_least(&self) -> &[TokenMask] {
        &self.at_least
    }

    /// Of each hole, in order, the tokens that are not known not to be admissible.
    pub fn at_most(&self) -> &[TokenMask] {
        &self.at_most
    }

    /// What is known of a token and a hole, by its number among the holes, without asking; `None` if nothing
    /// is.
    pub fn get(&self, hole: usize, token: TokenId) -> Option<bool> {
        match (self.at_least.get(hole), self.at_most.get(hole)) {
            (Some(least), _) if least.contains(token) => Some(true),
            (_, Some(most)) if most.contains(token) => None,
            _ => Some(false),
        }
    }

    /// The row of a hole, by its number among the holes. `solver` is one of the same constraint.
    pub fn row<'a>(
        &'a mut self,
        solver: &'a mut Solver,
        hole: usize,
    ) -> Result<AdmissibleRow<'a>, CanvasError> {
        match self.holes.get(hole) {
            Some(_) => Ok(AdmissibleRow { rows: self, solver, hole }),
            None => Err(CanvasCause::NoSuchHole { hole, n_holes: self.holes.len() }.into()),
        }
    }

    /// Makes the complete sets. Where they are not wholly decided, a token between them can still be asked
    /// about by itself.
    pub fn complete(&mut self, solver: &mut Solver) -> Result<(), CanvasError> {
        if std::mem::replace(&mut self.is_complete, true) {
            return Ok(());
        }
        let admissible = solver.admissible(&self.canvas)?;
        for (hole, (mask, undecided)) in admissible.masks.into_iter().zip(admissible.undecided).enumerate() {
            if undecided.is_none() {
                self.at_most[hole] = mask.clone();
            }
            mask.iter().for_each(|token| self.at_least[hole].insert(token));
        }
        Ok(())
    }

    /// Whether the complete sets were made; where they are equal all is decided.
    #[doc(hidden)]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether all tokens of all holes are decided.
    pub fn is_decided(&self) -> bool {
        self.at_least == self.at_most
    }

    /// Goes on to a canvas that is this one with more holes filled: what is not admissible here is not there.
    /// `None` if it is another canvas.
    pub fn filled(mut self, canvas: &Canvas) -> Option<Self> {
        let slots = self.canvas.slots().iter().zip(canvas.slots());
        let mut is_filled = slots.map(|(old, new)| *old == *new || *old == Slot::Hole && *new != Slot::Gap);
        let is_same = self.canvas.end() == canvas.end() && self.canvas.slots().len() == canvas.slots().len();
        if !is_same || !is_filled.all(|is| is) {
            return None;
        }
        let still = |hole: &usize| canvas.slots()[*hole] == Slot::Hole;
        let kept: Vec<bool> = self.holes.iter().map(still).collect();
        if kept.iter().all(|&kept| kept) {
            return Some(self);
        }
        let mut each = kept.iter();
        self.at_most.retain(|_| each.next() == Some(&true));
        self.holes.retain(|hole| still(hole));
        let n_tokens = self.at_most.first().map_or(0, TokenMask::n_tokens);
        self.at_least = vec![TokenMask::new(n_tokens); self.holes.len()];
        self.undecided.clear();
        self.is_complete = false;
        self.canvas = canvas.clone();
        Some(self)
    }

    /// Of a completion each token is admissible in its hole.
    fn admit(&mut self, witness: &Witness) {
        for (least, &slot) in self.at_least.iter_mut().zip(&self.holes) {
            if let Some(Filling::Token(token)) = witness.slots.get(slot) {
                least.insert(*token);
            }
        }
    }
}

/// One row of [`AdmissibleRows`], which asks a solver for what is not known.
pub struct AdmissibleRow<'a> {
    rows: &'a mut AdmissibleRows,
    solver: &'a mut Solver,
    hole: usize,
}

impl AdmissibleRow<'_> {
    /// Whether a token is admissible. One question to the solver if it is not known.
    pub fn allows(&mut self, token: TokenId) -> Result<Decision, CanvasError> {
        let Self { rows, solver, hole } = self;
        match rows.get(*hole, token) {
            Some(true) => return Ok(Decision::Yes(())),
            Some(false) => return Ok(Decision::No),
            None => {}
        }
        if let Some(why) = rows.undecided.get(&(*hole, token)) {
            return Ok(Decision::Unknown(why.clone()));
        }
        let mut slots = rows.canvas.slots().to_vec();
        slots[rows.holes[*hole]] = Slot::Fixed(token);
        let answer = solver.completable(&Canvas::new(slots, rows.canvas.end()))?;
        match &answer {
            Decision::Yes(witness) => rows.admit(witness),
            Decision::No => rows.at_most[*hole].remove(token),
            Decision::Unknown(why) => drop(rows.undecided.insert((*hole, token), why.clone())),
        }
        Ok(answer.map(drop))
    }

    /// The admissible token with the greatest of these values, one for each token of the vocabulary; of equal
    /// ones the lowest. Tokens with minus infinity, or without a value, do not count. A no if there is none.
    /// Unknown if one that would be better was not decided.
    pub fn best(&mut self, log_probs: &[f32]) -> Result<Decision<TokenId>, CanvasError> {
        self.check(log_probs)?;
        let mut n_refused = 0;
        loop {
            self.complete_after(n_refused)?;
            let value = |token: &TokenId| log_probs.get(token.index()).copied().unwrap_or(f32::NEG_INFINITY);
            let candidates = self.rows.at_most[self.hole].iter();
            let mut best: Option<(TokenId, f32)> = None;
            for (token, value) in candidates.map(|token| (token, value(&token))) {
                if value > best.map_or(f32::NEG_INFINITY, |best| best.1) {
                    best = Some((token, value));
                }
            }
            let Some((token, _)) = best else { return Ok(Decision::No) };
            match self.allows(token)? {
                Decision::No => n_refused += 1,
                other => return Ok(other.map(|()| token)),
            }
        }
    }

    /// An admissible token drawn from the distribution of these log-probabilities over the admissible tokens:
    /// tokens are drawn from what is not refused until one is admissible, which is exact. Equal seeds draw
    /// equal tokens, as long as the same is known. A no if there is none, unknown if one was drawn that was
    /// not decided.
    pub fn sample(&mut self, log_probs: &[f32], seed: u64) -> Result<Decision<TokenId>, CanvasError> {
        let mut random = Random::new(seed);
        self.check(log_probs)?;
        let mut n_refused = 0;
        loop {
            self.complete_after(n_refused)?;
            let candidates: Vec<TokenId> = self.rows.at_most[self.hole].iter().collect();
            let value =
                |token: &TokenId| log_probs.get(token.index()).map_or(f64::NEG_INFINITY, |&log| log.into());
            let Some(drawn) = random.choose_by_log_weights(candidates.iter().map(value)) else {
                return Ok(Decision::No);
            };
            match self.allows(candidates[drawn])? {
                Decision::No => n_refused += 1,
                other => return Ok(other.map(|()| candidates[drawn])),
            }
        }
    }

    fn check(&self, log_probs: &[f32]) -> Result<(), CanvasError> {
        let is_bad = |value: &f32| value.is_nan() || *value == f32::INFINITY;
        match log_probs.iter().position(is_bad) {
            Some(id) => {
                let value = log_probs[id].into();
                Err(CanvasCause::NoWeight { hole: self.hole, id: id as u32, value }.into())
            }
            None => Ok(()),
        }
    }

    fn complete_after(&mut self, n_refused: usize) -> Result<(), CanvasError> {
        if n_refused >= self.rows.refusals { self.rows.complete(self.solver) } else { Ok(()) }
    }
}
