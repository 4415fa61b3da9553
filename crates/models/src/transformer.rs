//! The forward pass: token embeddings, layers of attention and an MLP, each behind a norm, and the embeddings
//! again for the output.
//!
//! Norms are RMSNorm (Zhang and Sennrich 2019), positions are rotary (Su et al. 2021; the first half of a
//! head's components is paired with the second), the MLP is gated by SiLU (Shazeer 2020), nothing has a bias.
//! For n tokens after m that are kept: O(n · weights + n · (n + m) · width).

use crate::weights::{HEAD_SIZE, LayerWeights, Weights};
use anygram_vocab::TokenId;
use ndarray::{Array1, Array2, ArrayView2, Axis, Slice};

const ROPE_BASE: f32 = 10_000.0;
const NORM_EPSILON: f32 = 1e-5;

/// Keys and values of the tokens that a model has read, so that those that follow need not read them again.
/// It holds what a causal model made of `tokens`; the others begin with an empty one each time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    pub tokens: Vec<TokenId>,
    /// Per layer `[tokens, width]`; keys are rotated.
    keys: Vec<Array2<f32>>,
    values: Vec<Array2<f32>>,
}

impl Cache {
    /// Keeps the first tokens alone.
    pub fn truncate(&mut self, n_tokens: usize) {
        self.tokens.truncate(n_tokens);
        let n_tokens = self.tokens.len();
        for rows in self.keys.iter_mut().chain(&mut self.values) {
            rows.slice_axis_inplace(Axis(0), Slice::from(..n_tokens));
        }
    }
}

impl Weights {
    /// The last hidden states of tokens that follow those of the cache, `[tokens, width]`, normed. Causal
    /// tokens see what stands before them, and others see all. All tokens must be of the vocabulary.
    pub fn forward(&self, tokens: &[TokenId], causal: bool, cache: &mut Cache) -> Array2<f32> {
        let first = cache.tokens.len();
        cache.tokens.extend_from_slice(tokens);
        cache.keys.resize(self.layers.len(), Array2::default((0, 0)));
        cache.values.resize(self.layers.len(), Array2::default((0, 0)));
        let rows: Vec<usize> = tokens.iter().map(|token| token.index()).collect();
        let mut states = self.embedding.select(Axis(0), &rows);
        let turns = turns(first, tokens.len());
        for (number, layer) in self.layers.iter().enumerate() {
            let (keys, values) = (&mut cache.keys[number], &mut cache.values[number]);
            states += &layer.attention(&states, &turns, causal, keys, values);
            states += &layer.mlp(&states);
        }
        normed(&states, &self.norm)
    }

    /// Natural log-probabilities of all tokens, a row for each hidden state.
    pub fn log_probs(&self, states: &ArrayView2<'_, f32>) -> Array2<f32> {
        let mut logits = states.dot(&self.embedding.t());
        for mut row in logits.rows_mut() {
            let top = row.fold(f32::NEG_INFINITY, |top, &logit| top.max(logit));
            let sum: f32 = row.iter().map(|logit| (logit - top).exp()).sum();
            row -= top + sum.ln();
        }
        logits
    }
}

impl LayerWeights {
    fn attention(
        &self,
        states: &Array2<f32>,
        turns: &Array2<(f32, f32)>,
        causal: bool,
        keys: &mut Array2<f32>,
        values: &mut Array2<f32>,
    ) -> Array2<f32> {
        let (n_new, width) = states.dim();
        let mut qkv = normed(states, &self.attention_norm).dot(&self.qkv.t());
        for (mut row, turns) in qkv.rows_mut().into_iter().zip(turns.rows()) {
            let rotated = row.as_slice_mut().unwrap_or_default();
            for head in rotated[..2 * width].chunks_exact_mut(HEAD_SIZE) {
                rotate(head, turns.iter());
            }
        }
        extend(keys, columns(&qkv, width, width));
        extend(values, columns(&qkv, 2 * width, width));
        let n_all = keys.nrows();
        let mut heads = Array2::zeros((n_new, width));
        for at in (0..width).step_by(HEAD_SIZE) {
            let mut shares = columns(&qkv, at, HEAD_SIZE).dot(&columns(keys, at, HEAD_SIZE).t());
            for (row, mut shares) in shares.rows_mut().into_iter().enumerate() {
                let n_seen = if causal { n_all - n_new + row + 1 } else { n_all };
                softmax(shares.as_slice_mut().unwrap_or_default(), n_seen);
            }
            let mut head = heads.slice_axis_mut(Axis(1), Slice::from(at..at + HEAD_SIZE));
            head.assign(&shares.dot(&columns(values, at, HEAD_SIZE)));
        }
        heads.dot(&self.out.t())
    }

    fn mlp(&self, states: &Array2<f32>) -> Array2<f32> {
        let both = normed(states, &self.mlp_norm).dot(&self.gate_up.t());
        let (gate, up) = both.view().split_at(Axis(1), self.down.ncols());
        let mut gated = gate.mapv(|x| x / (1.0 + (-x).exp()));
        gated *= &up;
        gated.dot(&self.down.t())
    }
}

fn columns(matrix: &Array2<f32>, first: usize, n_columns: usize) -> ArrayView2<'_, f32> {
    matrix.slice_axis(Axis(1), Slice::from(first..first + n_columns))
}

/// The rows with these behind them.
fn extend(rows: &mut Array2<f32>, new: ArrayView2<'_, f32>) {
    let n_old = rows.nrows();
    let mut all = Array2::zeros((n_old + new.nrows(), new.ncols()));
    if n_old > 0 {
        all.slice_axis_mut(Axis(0), Slice::from(..n_old)).assign(rows);
    }
    all.slice_axis_mut(Axis(0), Slice::from(n_old..)).assign(&new);
    *rows = all;
}

/// Each row divided by the root of the mean of its squares, and weighed.
fn normed(states: &Array2<f32>, weight: &Array1<f32>) -> Array2<f32> {
    let mut normed = states.clone();
    for mut row in normed.rows_mut() {
        let mean = row.iter().map(|x| x * x).sum::<f32>() / row.len() as f32;
        row *= (mean + NORM_EPSILON).sqrt().recip();
    }
    normed * weight
}

/// Cosines and sines for each pair of components at each position.
fn turns(first: usize, n_tokens: usize) -> Array2<(f32, f32)> {
    Array2::from_shape_fn((n_tokens, HEAD_SIZE / 2), |(row, pair)| {
        let angle = (first + row) as f32 * ROPE_BASE.powf(-(2.0 * pair as f32) / HEAD_SIZE as f32);
        (angle.cos(), angle.sin())
    })
}

fn rotate<'a>(head: &mut [f32], turns: impl Iterator<Item = &'a (f32, f32)>) {
    let (left, right) = head.split_at_mut(head.len() / 2);
    for ((a, b), (cos, sin)) in left.iter_mut().zip(right).zip(turns) {
        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
    }
}

/// Scaled scores to shares of the first `n_seen`, and nothing for the rest.
fn softmax(scores: &mut [f32], n_seen: usize) {
    let scale = (HEAD_SIZE as f32).sqrt().recip();
    let (seen, rest) = scores.split_at_mut(n_seen.min(scores.len()));
    rest.fill(0.0);
    let top = seen.iter().fold(f32::NEG_INFINITY, |top, &score| top.max(score));
    let mut sum = 0.0;
    for score in seen.iter_mut() {
        *score = ((*score - top) * scale).exp();
        sum += *score;
    }
    seen.iter_mut().for_each(|score| *score /= sum);
}
