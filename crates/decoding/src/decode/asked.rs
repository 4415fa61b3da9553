//! Methods that are asked about each proposal, and do nothing else.

use anygram_any_order::Canvas;
use anygram_left_to_right::Constraint;
use anygram_vocab::TokenId;

use super::DecodeError;
use super::rows::Rows;
use super::strategy::{REFUSALS, Strategy};
use super::trace::{Ground, Judgement};
use crate::lookahead::Lookahead;
use crate::methods::{Method, Methods};

/// Keeps a proposal iff a method says that the canvas with it is completable.
pub struct Asked {
    methods: Methods,
    method: Method,
}

impl Asked {
    /// For a constraint.
    pub fn new(constraint: &Constraint, method: Method) -> Result<Self, DecodeError> {
        Ok(Self { methods: Methods::new(constraint)?, method })
    }

    /// IG-CD's limit of refusals.
    pub const REFUSALS: usize = 100;
}

impl Strategy for Asked {
    fn begin(&mut self, _seed: u64) {}

    fn judge(
        &mut self,
        canvas: &Canvas,
        _slot: usize,
        _token: TokenId,
        _rows: &Rows,
    ) -> Result<Judgement, DecodeError> {
        if self.method == Method::None {
            return Ok(Judgement { kept: true, proven: false, ground: Ground::Nothing });
        }
        let verdict = self.methods.completable(canvas, self.method, None, Lookahead::default())?;
        Ok(Judgement { kept: verdict.decision.is_yes(), proven: verdict.proven, ground: Ground::Question })
    }

    fn refusals(&self) -> usize {
        if self.method == Method::Intersection { Self::REFUSALS } else { REFUSALS }
    }
}
