//! Marginals that know a text, in place of a model.

use anygram::decode::{Model, ModelError, OpenSlots, View};
use anygram::{TokenId, Vocabulary};
use anygram_bits::Random;

/// Tokens that a slot lists.
const LISTED: usize = 32;
/// Standard deviation of the noise on them.
const NOISE: f64 = 1.5;
/// How far a token that is not listed lies below those that are.
const BELOW: f32 = 10.0;

/// Says of each slot the same, whatever stands beside it: the true token leads some others, before noise.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulated {
    size: usize,
    mask: TokenId,
    /// For each slot that it knows its tokens and their logits.
    rows: Vec<(usize, Vec<(TokenId, f32)>)>,
}

impl Simulated {
    /// For these slots, ascending, with what is true there. Each lists at most 31 others of `tokens`, which
    /// are drawn; the true one leads by `sharpness` on the scale of logits; the noise is normal, of 1.5.
    pub fn new(
        vocabulary: &Vocabulary,
        slots: impl IntoIterator<Item = (usize, TokenId)>,
        tokens: &[TokenId],
        sharpness: f64,
        seed: u64,
    ) -> Self {
        let mut random = Random::new(!seed);
        let mut row = |truth: TokenId| {
            let mut row = vec![(truth, (sharpness + NOISE * normal(&mut random)) as f32)];
            for _ in 1..LISTED.min(tokens.len()) {
                let token = tokens[random.below(tokens.len())];
                let logit = (NOISE * normal(&mut random)) as f32;
                if row.iter().all(|listed| listed.0 != token) {
                    row.push((token, logit));
                }
            }
            row
        };
        let rows = slots.into_iter().map(|(slot, truth)| (slot, row(truth))).collect();
        // What open slots show is not looked at. It is never proposed, so it has to be no token of a text.
        let special = (0..vocabulary.len()).map(TokenId::new).find(|&id| vocabulary.is_special(id));
        Self { size: vocabulary.len(), mask: vocabulary.mask().or(special).unwrap_or(TokenId(0)), rows }
    }
}

impl Model for Simulated {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn open_slots(&self) -> OpenSlots {
        OpenSlots::Mask(self.mask)
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        for (&slot, row) in view.wanted.iter().zip(rows.chunks_mut(self.size)) {
            let found = self.rows.binary_search_by_key(&slot, |listed| listed.0);
            let listed = found.map_or(&[][..], |at| &self.rows[at].1);
            let lowest = listed.iter().map(|listed| listed.1).fold(0.0, f32::min);
            row.fill(lowest - BELOW);
            listed.iter().for_each(|&(token, logit)| row[token.index()] = logit);
        }
        Ok(())
    }
}

/// A number from the standard normal distribution (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}
