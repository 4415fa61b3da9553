//! Log-probabilities of the tokens of holes.

use std::ops::Range;
use std::sync::Arc;

use anygram_vocab::TokenId;
use rustc_hash::FxHashMap;

use crate::canvas::{Canvas, Slot};
use crate::error::{CanvasCause, CanvasError};

/// What a token that is not listed weighs, where only the likeliest of a hole are.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Floor {
    /// The lowest listed of the hole, less 10; -10 where none is listed.
    #[default]
    BelowListed,
    /// This log-probability.
    At(f64),
    /// Nothing: a token that is not listed cannot stand there.
    Excluded,
}

/// For every hole of a canvas the log-probabilities of tokens, in the order of the holes.
///
/// Natural logarithms. They need not sum to one: only differences within a hole change an answer. Minus
/// infinity excludes a token.
#[derive(Clone, PartialEq, Debug)]
pub struct LogProbs {
    rows: Vec<Row>,
}

/// The log-probabilities of one hole. A clone shares them.
#[doc(hidden)]
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    weights: Weights,
    /// Tokens above minus infinity, the likeliest first (of equal ones the lowest id), as far as they were
    /// sorted. `None` until somebody asks for the likeliest.
    ranked: Option<Vec<TokenId>>,
    n_sorted: usize,
    /// What others weigh, if they can stand there.
    pub floor: Option<f64>,
}

#[derive(Clone, PartialEq, Debug)]
enum Weights {
    /// Of all tokens: this part of an array.
    Dense { values: Arc<Vec<f32>>, part: Range<usize> },
    /// Of some, in the order in which they were given.
    Listed(Arc<Listed>),
}

#[derive(Clone, PartialEq, Debug)]
struct Listed {
    pairs: Vec<(TokenId, f64)>,
    by_token: FxHashMap<TokenId, f64>,
}

impl LogProbs {
    /// All tokens of all holes: `[holes, tokens]`, row by row, for a vocabulary of `size` tokens. Cost: a
    /// copy of the array, none of a vector.
    pub fn dense(values: impl Into<Vec<f32>>, size: usize) -> Result<Self, CanvasError> {
        let values = values.into();
        let n_values = values.len();
        if size == 0 || !n_values.is_multiple_of(size) {
            return Err(CanvasCause::Shape { n_values, size }.into());
        }
        for (hole, row) in values.chunks(size).enumerate() {
            row.iter()
                .enumerate()
                .try_for_each(|(id, &value)| check(hole, TokenId::new(id), value.into()))?;
        }
        let values = Arc::new(values);
        let row =
            |start| Row::new(Weights::Dense { values: values.clone(), part: start..start + size }, None);
        Ok(Self { rows: (0..n_values).step_by(size).map(row).collect() })
    }

    /// Some tokens of every hole, in any order; what all others weigh says `floor`.
    pub fn listed(rows: &[Vec<(TokenId, f64)>], floor: Floor) -> Result<Self, CanvasError> {
        let row = |(hole, pairs): (usize, &Vec<(TokenId, f64)>)| {
            let mut by_token = FxHashMap::default();
            for &(token, value) in pairs {
                check(hole, token, value)?;
                if by_token.insert(token, value).is_some() {
                    return Err(CanvasCause::Twice { hole, id: token.0 }.into());
                }
            }
            let finite = pairs.iter().map(|pair| pair.1).filter(|value| *value > f64::NEG_INFINITY);
            let lowest = finite.reduce(f64::min).unwrap_or(0.0);
            let floor = match floor {
                Floor::BelowListed => Some(lowest - 10.0),
                Floor::At(floor) => {
                    check(hole, TokenId(0), floor)?;
                    Some(floor).filter(|floor| *floor > f64::NEG_INFINITY)
                }
                Floor::Excluded => None,
            };
            Ok(Row::new(Weights::Listed(Arc::new(Listed { pairs: pairs.clone(), by_token })), floor))
        };
        Ok(Self { rows: rows.iter().enumerate().map(row).collect::<Result<_, CanvasError>>()? })
    }

    /// Whether these are for a canvas without gaps and a vocabulary of this size.
    #[doc(hidden)]
    pub fn check(&self, canvas: &Canvas, size: usize) -> Result<(), CanvasError> {
        Self::check_gaps(canvas)?;
        let (n_rows, n_holes) = (self.rows.len(), canvas.holes().count());
        if n_rows != n_holes {
            return Err(CanvasCause::Rows { n_rows, n_holes }.into());
        }
        for (hole, row) in self.rows.iter().enumerate() {
            match &row.weights {
                Weights::Dense { part, .. } if part.len() != size => {
                    return Err(CanvasCause::Shape { n_values: part.len(), size }.into());
                }
                Weights::Dense { .. } => {}
                Weights::Listed(listed) => {
                    if let Some(token) = listed.by_token.keys().filter(|token| token.index() >= size).min() {
                        return Err(CanvasCause::UnknownInRow { hole, id: token.0, size }.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a canvas has no gaps, for which there are no log-probabilities.
    #[doc(hidden)]
    pub fn check_gaps(canvas: &Canvas) -> Result<(), CanvasError> {
        match canvas.slots().iter().position(|slot| *slot == Slot::Gap) {
            Some(slot) => Err(CanvasCause::Gap { slot }.into()),
            None => Ok(()),
        }
    }

    /// The rows of some holes, by their numbers.
    #[doc(hidden)]
    pub fn only(&self, numbers: &[usize]) -> Self {
        Self { rows: numbers.iter().filter_map(|&number| self.rows.get(number).cloned()).collect() }
    }

    /// One hole: the log-probabilities of all tokens times a factor.
    #[doc(hidden)]
    pub fn scaled(values: &[f32], scale: f64) -> Result<Self, CanvasError> {
        let scaled: Vec<f32> = values.iter().map(|&value| (f64::from(value) * scale) as f32).collect();
        Self::dense(scaled, values.len())
    }

    /// One hole: so many of the likeliest of all tokens, times a factor; the others weigh the floor.
    #[doc(hidden)]
    pub fn likeliest(values: &[f32], scale: f64, count: usize) -> Result<Self, CanvasError> {
        let all = values.iter().enumerate().filter(|(_, value)| **value > f32::NEG_INFINITY);
        let mut all: Vec<(TokenId, f64)> =
            all.map(|(id, &value)| (TokenId::new(id), f64::from(value))).collect();
        let order = |a: &(TokenId, f64), b: &(TokenId, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if count < all.len() {
            all.select_nth_unstable_by(count, order);
            all.truncate(count);
        }
        all.iter_mut().for_each(|pair| pair.1 *= scale);
        Self::listed(&[all], Floor::BelowListed)
    }

    /// One hole of which nothing is known: all tokens weigh the same.
    #[doc(hidden)]
    pub fn flat() -> Self {
        let none = Listed { pairs: Vec::new(), by_token: FxHashMap::default() };
        Self { rows: vec![Row::new(Weights::Listed(Arc::new(none)), Some(0.0))] }
    }

    /// The holes of these, one after the other.
    #[doc(hidden)]
    pub fn joined(parts: impl Iterator<Item = Result<Self, CanvasError>>) -> Result<Self, CanvasError> {
        let mut rows = Vec::new();
        for part in parts {
            rows.extend(part?.rows);
        }
        Ok(Self { rows })
    }

    /// Of each hole.
    #[doc(hidden)]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

fn check(hole: usize, token: TokenId, value: f64) -> Result<(), CanvasError> {
    let is_weight = !value.is_nan() && value < f64::INFINITY;
    if is_weight { Ok(()) } else { Err(CanvasCause::NoWeight { hole, id: token.0, value }.into()) }
}

/// Of a dense row so many are sorted at first, then twice as many: mostly few are looked at.
const FIRST_SORTED: usize = 64;

impl Row {
    fn new(weights: Weights, floor: Option<f64>) -> Self {
        Self { weights, ranked: None, n_sorted: 0, floor }
    }

    /// The `rank`-th likeliest listed token; `None` if there are fewer.
    pub fn ranked(&mut self, rank: usize) -> Option<(TokenId, f64)> {
        let mut ranked = self.ranked.take().unwrap_or_else(|| self.all().map(|pair| pair.0).collect());
        while rank >= self.n_sorted && self.n_sorted < ranked.len() {
            let order = |a: &TokenId, b: &TokenId| self.get(*b).total_cmp(&self.get(*a)).then(a.cmp(b));
            let rest = &mut ranked[self.n_sorted..];
            let n_more = self.n_sorted.max(FIRST_SORTED).min(rest.len());
            if n_more < rest.len() {
                rest.select_nth_unstable_by(n_more - 1, order);
            }
            rest[..n_more].sort_unstable_by(order);
            self.n_sorted += n_more;
        }
        let found = ranked.get(rank).map(|&token| (token, self.get(token)));
        self.ranked = Some(ranked);
        found
    }

    /// The listed tokens above minus infinity, in the order of their ids or in which they were given.
    pub fn all(&self) -> impl Iterator<Item = (TokenId, f64)> + Clone + '_ {
        let dense = self.dense().iter().enumerate().map(|(id, &value)| (TokenId::new(id), value.into()));
        let listed = self.listed().map_or(&[][..], |listed| &listed.pairs).iter().copied();
        dense.chain(listed).filter(|pair: &(TokenId, f64)| pair.1 > f64::NEG_INFINITY)
    }

    fn listed(&self) -> Option<&Listed> {
        match &self.weights {
            Weights::Listed(listed) => Some(listed),
            Weights::Dense { .. } => None,
        }
    }

    /// The values of all tokens; nothing where only some are listed.
    fn dense(&self) -> &[f32] {
        match &self.weights {
            Weights::Dense { values, part } => &values[part.clone()],
            Weights::Listed(_) => &[],
        }
    }

    /// The listed tokens that cannot stand there.
    pub fn excluded(&self) -> impl Iterator<Item = TokenId> + '_ {
        let listed = self.listed().map_or(&[][..], |listed| &listed.pairs).iter();
        listed.filter(|pair| pair.1 == f64::NEG_INFINITY).map(|pair| pair.0)
    }

    /// The values of all tokens, if they are not listed.
    pub fn as_dense(&self) -> Option<&[f32]> {
        self.is_dense().then(|| self.dense())
    }

    /// Whether all tokens have a log-probability of their own.
    pub fn is_dense(&self) -> bool {
        self.listed().is_none()
    }

    /// Whether a token has a log-probability of its own.
    pub fn lists(&self, token: TokenId) -> bool {
        self.listed().is_none_or(|listed| listed.by_token.contains_key(&token))
    }

    /// How many of these tokens, ascending, are listed.
    pub fn n_listed_in(&self, tokens: &[TokenId]) -> usize {
        match self.listed().map(|listed| &listed.by_token) {
            None => tokens.len(),
            Some(listed) if listed.len() < tokens.len() => {
                listed.keys().filter(|token| tokens.binary_search(token).is_ok()).count()
            }
            Some(listed) => tokens.iter().filter(|token| listed.contains_key(token)).count(),
        }
    }

    /// The log-probability of a token; minus infinity if it cannot stand there.
    pub fn get(&self, token: TokenId) -> f64 {
        let floor = self.floor.unwrap_or(f64::NEG_INFINITY);
        match &self.weights {
            Weights::Listed(listed) => listed.by_token.get(&token).copied().unwrap_or(floor),
            Weights::Dense { values, part } => {
                values[part.clone()].get(token.index()).map_or(f64::NEG_INFINITY, |&value| value.into())
            }
        }
    }
}

/// The logarithm of the sum of what these are logarithms of.
pub(crate) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY { top } else { top + logs.map(|log| (log - top).exp()).sum::<f64>().ln() }
}
