//! Log-probabilities of the tokens of holes.

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

/// The log-probabilities of one hole.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Row {
    /// Listed tokens above minus infinity, the likeliest first (of equal ones the lowest id), as far as they
    /// were sorted.
    ranked: Vec<(TokenId, f64)>,
    n_sorted: usize,
    /// All that are listed; without it the row is dense and `values` has them.
    listed: Option<FxHashMap<TokenId, f64>>,
    values: Vec<f32>,
    /// What others weigh, if they can stand there.
    pub floor: Option<f64>,
}

impl LogProbs {
    /// All tokens of all holes: `[holes, tokens]`, row by row, for a vocabulary of `size` tokens.
    pub fn dense(values: &[f32], size: usize) -> Result<Self, CanvasError> {
        let n_values = values.len();
        if size == 0 || !n_values.is_multiple_of(size) {
            return Err(CanvasCause::Shape { n_values, size }.into());
        }
        let row = |(hole, values): (usize, &[f32])| {
            let mut ranked = Vec::with_capacity(size);
            for (id, &value) in values.iter().enumerate() {
                check(hole, TokenId::new(id), value.into())?;
                if value > f32::NEG_INFINITY {
                    ranked.push((TokenId::new(id), value.into()));
                }
            }
            Ok(Row { ranked, n_sorted: 0, listed: None, values: values.to_vec(), floor: None })
        };
        Ok(Self { rows: values.chunks(size).enumerate().map(row).collect::<Result<_, CanvasError>>()? })
    }

    /// Some tokens of every hole, in any order; what all others weigh says `floor`.
    pub fn listed(rows: &[Vec<(TokenId, f64)>], floor: Floor) -> Result<Self, CanvasError> {
        let row = |(hole, pairs): (usize, &Vec<(TokenId, f64)>)| {
            let mut listed = FxHashMap::default();
            for &(token, value) in pairs {
                check(hole, token, value)?;
                if listed.insert(token, value).is_some() {
                    return Err(CanvasCause::Twice { hole, id: token.0 }.into());
                }
            }
            let ranked: Vec<_> =
                pairs.iter().copied().filter(|(_, value)| *value > f64::NEG_INFINITY).collect();
            let lowest = ranked.iter().map(|pair| pair.1).reduce(f64::min).unwrap_or(0.0);
            let floor = match floor {
                Floor::BelowListed => Some(lowest - 10.0),
                Floor::At(floor) => {
                    check(hole, TokenId(0), floor)?;
                    Some(floor).filter(|floor| *floor > f64::NEG_INFINITY)
                }
                Floor::Excluded => None,
            };
            Ok(Row { ranked, n_sorted: 0, listed: Some(listed), values: Vec::new(), floor })
        };
        Ok(Self { rows: rows.iter().enumerate().map(row).collect::<Result<_, CanvasError>>()? })
    }

    /// Whether these are for a canvas without gaps and a vocabulary of this size.
    pub(crate) fn check(&self, canvas: &Canvas, size: usize) -> Result<(), CanvasError> {
        Self::check_gaps(canvas)?;
        let (n_rows, n_holes) = (self.rows.len(), canvas.holes().count());
        if n_rows != n_holes {
            return Err(CanvasCause::Rows { n_rows, n_holes }.into());
        }
        for (hole, row) in self.rows.iter().enumerate() {
            match &row.listed {
                None if row.values.len() != size => {
                    return Err(CanvasCause::Shape { n_values: row.values.len(), size }.into());
                }
                None => {}
                Some(listed) => {
                    if let Some(token) = listed.keys().filter(|token| token.index() >= size).min() {
                        return Err(CanvasCause::UnknownInRow { hole, id: token.0, size }.into());
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn check_gaps(canvas: &Canvas) -> Result<(), CanvasError> {
        match canvas.slots().iter().position(|slot| *slot == Slot::Gap) {
            Some(slot) => Err(CanvasCause::Gap { slot }.into()),
            None => Ok(()),
        }
    }

    /// The rows of some holes, by their numbers.
    pub(crate) fn only(&self, numbers: &[usize]) -> Self {
        Self { rows: numbers.iter().filter_map(|&number| self.rows.get(number).cloned()).collect() }
    }

    /// One hole: the log-probabilities of all tokens times a factor.
    pub(crate) fn scaled(values: &[f32], scale: f64) -> Result<Self, CanvasError> {
        let values: Vec<f32> = values.iter().map(|&value| (f64::from(value) * scale) as f32).collect();
        Self::dense(&values, values.len())
    }

    /// One hole: so many of the likeliest of all tokens, times a factor; the others weigh the floor.
    pub(crate) fn likeliest(values: &[f32], scale: f64, count: usize) -> Result<Self, CanvasError> {
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
    pub(crate) fn flat() -> Self {
        let row = Row {
            ranked: Vec::new(),
            n_sorted: 0,
            listed: Some(FxHashMap::default()),
            values: Vec::new(),
            floor: Some(0.0),
        };
        Self { rows: vec![row] }
    }

    /// The holes of these, one after the other.
    pub(crate) fn joined(
        parts: impl Iterator<Item = Result<Self, CanvasError>>,
    ) -> Result<Self, CanvasError> {
        let mut rows = Vec::new();
        for part in parts {
            rows.extend(part?.rows);
        }
        Ok(Self { rows })
    }

    pub(crate) fn rows(&self) -> &[Row] {
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
    /// The `rank`-th likeliest listed token; `None` if there are fewer.
    pub fn ranked(&mut self, rank: usize) -> Option<(TokenId, f64)> {
        while rank >= self.n_sorted && self.n_sorted < self.ranked.len() {
            let order = |a: &(TokenId, f64), b: &(TokenId, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
            let rest = &mut self.ranked[self.n_sorted..];
            let n_more = self.n_sorted.max(FIRST_SORTED).min(rest.len());
            if n_more < rest.len() {
                rest.select_nth_unstable_by(n_more - 1, order);
            }
            rest[..n_more].sort_unstable_by(order);
            self.n_sorted += n_more;
        }
        self.ranked.get(rank).copied()
    }

    /// The listed tokens above minus infinity, in the order that [`Row::ranked`] left.
    pub fn all(&self) -> &[(TokenId, f64)] {
        &self.ranked
    }

    pub fn is_dense(&self) -> bool {
        self.listed.is_none()
    }

    /// Whether a token has a log-probability of its own.
    pub fn lists(&self, token: TokenId) -> bool {
        self.listed.as_ref().is_none_or(|listed| listed.contains_key(&token))
    }

    /// How many of these tokens, ascending, are listed.
    pub fn n_listed_in(&self, tokens: &[TokenId]) -> usize {
        match &self.listed {
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
        match &self.listed {
            Some(listed) => listed.get(&token).copied().unwrap_or(floor),
            None => self.values.get(token.index()).map_or(f64::NEG_INFINITY, |&value| value.into()),
        }
    }
}

/// The logarithm of the sum of what these are logarithms of.
pub(crate) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY { top } else { top + logs.map(|log| (log - top).exp()).sum::<f64>().ln() }
}
