//! LAVE's loop (Zhang et al. 2026, algorithm 1): verification by lookahead, and recovery from the cache.

use anygram_any_order::{Canvas, End, Slot};
use anygram_left_to_right::{Constraint, Matcher};
use anygram_vocab::TokenId;

use super::rows::Rows;
use super::sequential::follow;
use super::strategy::{Recovery, Seeds, Strategy};
use super::trace::{Ground, Judgement};
use super::{DecodeError, Sampling};
use crate::lookahead::{Lookahead, Marginals, n_before};
use crate::methods::Methods;

/// A token is kept iff one of some fillings, drawn from the marginals, is extendable ([`Lookahead`]). After
/// some failures in a row the prefix is replaced by the last filling that was (equation 8), and where that
/// changes nothing, one token is drawn from what can follow (equation 9).
pub struct Lave {
    methods: Methods,
    matcher: Matcher,
    lookahead: Lookahead,
    attempts: usize,
    recovers: bool,
    seeds: Seeds,
    /// Failures in a row.
    n_failed: usize,
    /// The last filling that was found to be extendable (the paper's y_cache).
    cache: Vec<TokenId>,
    /// Without recovery: whether it has given up.
    is_free: bool,
}

impl Lave {
    /// Failures in a row before a recovery (the paper's τ).
    pub const ATTEMPTS: usize = 5;

    /// For a constraint, with the paper's N and τ.
    pub fn new(constraint: &Constraint) -> Result<Self, DecodeError> {
        Ok(Self {
            methods: Methods::new(constraint)?,
            matcher: constraint.matcher()?,
            lookahead: Lookahead::default(),
            attempts: Self::ATTEMPTS,
            recovers: true,
            seeds: Seeds::new(0),
            n_failed: 0,
            cache: Vec::new(),
            is_free: false,
        })
    }

    /// What is drawn and asked; the seed is the run's.
    pub fn lookahead(mut self, lookahead: Lookahead) -> Self {
        self.lookahead = lookahead;
        self
    }

    /// Failures in a row before a recovery.
    pub fn attempts(mut self, attempts: usize) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The paper's ablation: where a recovery were due, the rest of the run is without a constraint.
    pub fn without_recovery(mut self) -> Self {
        self.recovers = false;
        self
    }

    /// Checks fillings on so many threads; the answers are the same.
    pub fn on_threads(mut self, n_threads: usize) -> Result<Self, DecodeError> {
        self.methods = self.methods.on_threads(n_threads)?;
        Ok(self)
    }

    fn ask(&mut self, canvas: &Canvas, rows: &Rows) -> Result<Judgement, DecodeError> {
        let lookahead = Lookahead { seed: self.seeds.next(), ..self.lookahead };
        let looked = self.methods.look_ahead(canvas, Marginals::Rows(rows), lookahead)?;
        if let Some(prefix) = looked.prefix {
            self.cache = prefix;
        }
        let (kept, proven) = (looked.verdict.decision.is_yes(), looked.verdict.proven);
        Ok(Judgement { kept, proven, ground: Ground::Question })
    }

    /// The cache where it is a filling of the canvas up to the last fixed slot.
    fn filling(&self, canvas: &Canvas) -> Option<Vec<(usize, TokenId)>> {
        let slots = &canvas.slots()[..n_before(canvas)];
        let fits = |(slot, token): (&Slot, &TokenId)| *slot == Slot::Hole || *slot == Slot::Fixed(*token);
        if slots.len() != self.cache.len() || !slots.iter().zip(&self.cache).all(fits) {
            return None;
        }
        let open = canvas.holes().take_while(|&hole| hole < slots.len());
        Some(open.map(|hole| (hole, self.cache[hole])).collect())
    }

    /// One token that can follow the prefix, drawn from the marginal of its slot.
    fn successor(
        &mut self,
        canvas: &Canvas,
        rows: &Rows,
        sampling: Sampling,
    ) -> Result<Option<(usize, TokenId)>, DecodeError> {
        let next = self.cache.len();
        if next >= canvas.slots().len() || !follow(&mut self.matcher, self.cache.iter().copied())? {
            return Ok(None);
        }
        let n_left = canvas.slots().len() - next;
        let budget = match canvas.end() {
            End::Sentence => Some(n_left),
            End::Prefix { remaining } => remaining.map(|remaining| n_left + remaining as usize),
        };
        let mask = match budget.filter(|_| self.lookahead.counts_room) {
            Some(budget) => self.matcher.mask_with_budget(u32::try_from(budget).unwrap_or(u32::MAX))?,
            None => self.matcher.mask()?,
        };
        Ok(rows.draw_from(next, mask.words(), sampling, self.seeds.random()).map(|token| (next, token)))
    }
}

impl Strategy for Lave {
    fn begin(&mut self, seed: u64) {
        self.seeds = Seeds::new(seed);
        self.n_failed = 0;
        self.cache.clear();
        self.is_free = false;
    }

    fn judge(
        &mut self,
        canvas: &Canvas,
        _slot: usize,
        _token: TokenId,
        rows: &Rows,
    ) -> Result<Judgement, DecodeError> {
        if self.is_free {
            return Ok(Judgement { kept: true, proven: false, ground: Ground::Nothing });
        }
        let judgement = self.ask(canvas, rows)?;
        if judgement.kept {
            self.n_failed = 0;
        }
        Ok(judgement)
    }

    fn refused(&mut self, canvas: &Canvas, rows: &Rows, sampling: Sampling) -> Result<Recovery, DecodeError> {
        self.n_failed += 1;
        if self.n_failed < self.attempts {
            return Ok(Recovery::Propose);
        }
        self.n_failed = 0;
        if !self.recovers {
            self.is_free = true;
            return Ok(Recovery::Propose);
        }
        let filling = match self.filling(canvas) {
            Some(filling) => filling,
            // Of this prefix nothing was verified yet: it was given, or tokens were taken back.
            None if self.ask(canvas, rows)?.kept => self.filling(canvas).unwrap_or_default(),
            None => return Ok(Recovery::Propose),
        };
        if !filling.is_empty() {
            return Ok(Recovery::Fill(filling));
        }
        let successor = self.successor(canvas, rows, sampling)?;
        Ok(successor.map_or(Recovery::Propose, |pair| Recovery::Fill(vec![pair])))
    }
}
