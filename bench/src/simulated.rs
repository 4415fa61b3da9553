//! Simulated marginals: what a model that knows a text more or less well might say about its holes.

use anygram::{Canvas, Floor, LogProbs, TokenId};
use anygram_bits::Random;
use anyhow::Result;

/// Each hole lists some tokens of the workload's texts with normal noise on the scale of logits, the true
/// token among them, which leads by the sharpness.
pub struct Simulated {
    /// Tokens a hole.
    pub listed: usize,
    /// Standard deviation of the noise.
    pub noise: f64,
    /// How far the true token leads the others.
    pub sharpness: f64,
}

impl Simulated {
    /// For each hole the true token (EOS behind the text), then others, with their weights.
    pub fn rows(
        &self,
        canvas: &Canvas,
        text: &[TokenId],
        tokens: &[TokenId],
        random: &mut Random,
    ) -> Vec<Vec<(TokenId, f64)>> {
        let eos = TokenId(151_643);
        canvas
            .holes()
            .map(|hole| {
                let truth = text.get(hole).copied().unwrap_or(eos);
                let mut row = vec![(truth, self.sharpness + self.noise * normal(random))];
                while row.len() < self.listed.min(tokens.len()) {
                    let token = *random.choose(tokens);
                    if row.iter().all(|pair| pair.0 != token) {
                        row.push((token, self.noise * normal(random)));
                    }
                }
                row
            })
            .collect()
    }

    /// The same as marginals.
    pub fn marginals(
        &self,
        canvas: &Canvas,
        text: &[TokenId],
        tokens: &[TokenId],
        random: &mut Random,
    ) -> Result<LogProbs> {
        Ok(LogProbs::listed(&self.rows(canvas, text, tokens, random), Floor::BelowListed)?)
    }
}

/// A number from the standard normal distribution (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}
