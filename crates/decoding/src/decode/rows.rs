//! One answer of a model: a distribution for each slot that was asked for, and what of it can still be
//! proposed.

use std::cell::OnceCell;

use anygram_any_order::error::CanvasCause;
use anygram_any_order::{Canvas, CanvasError, Floor, LogProbs, Slot};
use anygram_bits::Random;
use anygram_left_to_right::tokens::get_bit;
use anygram_vocab::TokenId;
use rustc_hash::FxHashSet;

use super::options::{Order, Sampling};

/// The distributions of slots, ascending by slot, of which strategies take away what cannot be put.
///
/// What a model says stays as it is; a restriction only says what can be proposed. So how sure the model is
/// of a token does not depend on what else was refused.
#[derive(Clone, Debug)]
pub struct Rows {
    rows: Vec<Row>,
    /// If given, only this slot can be proposed for.
    focus: Option<usize>,
    is_by_confidence: bool,
    measures_entropy: bool,
    /// Slots with tokens that an EOS before them may replace.
    ours: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Row {
    slot: usize,
    /// Normalized natural log-probabilities of the constraint's vocabulary.
    values: Values,
    /// Whether the slot is still to be filled.
    is_open: bool,
    restriction: Restriction,
    refused: FxHashSet<TokenId>,
    /// What would be proposed; made when it is needed.
    candidate: Option<Option<Candidate>>,
    /// Sums of probabilities, to draw from.
    sums: OnceCell<Vec<f64>>,
}

#[derive(Clone, Debug)]
enum Values {
    /// Of all tokens.
    Dense(Vec<f32>),
    /// Of some, ascending by id; the others are not proposed, and weigh the floor if they can stand there.
    Listed { pairs: Vec<(TokenId, f32)>, floor: Option<f64> },
}

impl Values {
    /// Minus infinity where the model excludes a token, or does not list it.
    fn get(&self, token: TokenId) -> f32 {
        match self {
            Self::Dense(values) => values.get(token.index()).copied(),
            Self::Listed { pairs, .. } => {
                let found = pairs.binary_search_by_key(&token, |pair| pair.0);
                found.ok().map(|at| pairs[at].1)
            }
        }
        .unwrap_or(f32::NEG_INFINITY)
    }

    /// Whether a token has a value of its own.
    fn lists(&self, token: TokenId) -> bool {
        match self {
            Self::Dense(values) => token.index() < values.len(),
            Self::Listed { pairs, .. } => pairs.binary_search_by_key(&token, |pair| pair.0).is_ok(),
        }
    }

    /// All that have one, ascending by id.
    fn all(&self) -> impl Iterator<Item = (TokenId, f32)> + Clone + '_ {
        let (dense, listed): (&[f32], &[(TokenId, f32)]) = match self {
            Self::Dense(values) => (values, &[]),
            Self::Listed { pairs, .. } => (&[], pairs),
        };
        dense.iter().enumerate().map(|(id, &value)| (TokenId::new(id), value)).chain(listed.iter().copied())
    }
}

#[derive(Clone, Debug)]
enum Restriction {
    Free,
    Mask(Vec<u32>),
    /// All of the mask can be put: where it leaves none of the listed tokens, others are proposed.
    Sure(Vec<u32>),
    Only(TokenId),
}

/// A token that could be proposed next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Candidate {
    pub slot: usize,
    pub token: TokenId,
    /// The model's.
    pub log_prob: f64,
    /// The larger, the sooner.
    sureness: f64,
    /// Of what can be proposed there, if it is measured ([`Rows::measure_entropy`]); else 0.
    pub entropy: f64,
}

impl Rows {
    /// From what a model wrote: `[slots, columns]`, of which the first `size` columns count. `never` is not
    /// proposed.
    pub(crate) fn new(
        slots: &[usize],
        values: &[f32],
        columns: usize,
        size: usize,
        never: Option<TokenId>,
    ) -> Result<Self, CanvasError> {
        let row = |(hole, (&slot, values)): (usize, (&usize, &[f32]))| {
            let mut log_probs = values[..size].to_vec();
            if let Some(never) = never.and_then(|token| log_probs.get_mut(token.index())) {
                *never = f32::NEG_INFINITY;
            }
            normalize(hole, &mut log_probs)?;
            Ok(Row::new(slot, Values::Dense(log_probs)))
        };
        let rows = slots.iter().zip(values.chunks(columns)).enumerate().map(row);
        Ok(Self::plain(rows.collect::<Result<_, CanvasError>>()?))
    }

    /// From rows for each slot; those that list some tokens have log-probabilities among all.
    pub(crate) fn of(
        slots: &[usize],
        log_probs: &LogProbs,
        size: usize,
        never: Option<TokenId>,
    ) -> Result<Self, CanvasError> {
        let row = |(hole, (&slot, row)): (usize, (&usize, &anygram_any_order::log_probs::Row))| {
            if let Some(values) = row.as_dense() {
                if values.len() < size {
                    return Err(CanvasCause::Shape { n_values: values.len(), size }.into());
                }
                let mut dense = Self::new(&[slot], values, values.len(), size, never)?;
                return dense.rows.pop().ok_or_else(|| CanvasCause::Rows { n_rows: 0, n_holes: 1 }.into());
            }
            let sum: f64 = row.all().map(|pair| pair.1.exp()).sum();
            if sum > MOST_LISTED {
                return Err(CanvasCause::NoShares { hole, sum }.into());
            }
            let is_known = |pair: &(TokenId, f64)| pair.0.index() < size && Some(pair.0) != never;
            let mut pairs: Vec<(TokenId, f32)> =
                row.all().filter(is_known).map(|(token, value)| (token, value as f32)).collect();
            // Listed as what cannot stand there.
            let excluded = row.excluded().filter(|token| Some(*token) != never).chain(never);
            pairs.extend(excluded.map(|token| (token, f32::NEG_INFINITY)));
            pairs.sort_unstable_by_key(|pair| pair.0);
            Ok(Row::new(slot, Values::Listed { pairs, floor: row.floor }))
        };
        let rows = slots.iter().zip(log_probs.rows()).enumerate().map(row);
        Ok(Self::plain(rows.collect::<Result<_, CanvasError>>()?))
    }

    /// Rows as a model gave them: nothing is measured, and nothing was put.
    fn plain(rows: Vec<Row>) -> Self {
        Self { rows, focus: None, is_by_confidence: false, measures_entropy: false, ours: Vec::new() }
    }

    pub(crate) fn by_confidence(&mut self, is_by_confidence: bool) {
        self.is_by_confidence = is_by_confidence;
    }

    /// Measures the entropy of each slot that is proposed for, which takes an exponential for each token.
    pub(crate) fn measure_entropy(&mut self, measures_entropy: bool) {
        self.measures_entropy = measures_entropy;
    }

    /// Whether slots are ordered by what the model gives the token that is proposed.
    ///
    /// Then a token that cannot be put may as well be left in rows and refused. At temperature 0 the same is
    /// kept. Above, the token of each slot is drawn from the same distribution, and only the order of slots
    /// can differ, which is by what was drawn first. Otherwise (slots are ordered by margin or entropy, or
    /// slots can be inserted for what is refused) what is proposed depends on all that is left.
    pub fn is_by_confidence(&self) -> bool {
        self.is_by_confidence
    }

    /// Says which slots have tokens that an EOS before them may replace, ascending.
    pub(crate) fn set_ours(&mut self, ours: Vec<usize>) {
        self.ours = ours;
    }

    /// What an EOS in a slot of a canvas makes of it: EOS behind it too, in holes and in place of what the
    /// loop put there; `None` if nothing is there that the loop put.
    pub fn ended(&self, canvas: &Canvas, slot: usize, eos: TokenId) -> Option<Canvas> {
        let ours = &self.ours[self.ours.partition_point(|&at| at <= slot)..];
        let is_text =
            |at: &usize| matches!(canvas.slots().get(*at), Some(Slot::Fixed(token)) if *token != eos);
        if !ours.iter().any(is_text) {
            return None;
        }
        let mut slots = canvas.slots().to_vec();
        let behind = (slot + 1..slots.len()).filter(|at| slots[*at] == Slot::Hole);
        for at in behind.chain([slot]).chain(ours.iter().copied()).collect::<Vec<_>>() {
            slots[at] = Slot::Fixed(eos);
        }
        Some(Canvas::new(slots, canvas.end()))
    }

    /// The slots that are open and have a distribution.
    pub fn open(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.iter().filter(|row| row.is_open).map(|row| row.slot)
    }

    /// The model's log-probability of a token, normalized; minus infinity if the slot has no distribution.
    pub fn log_prob(&self, slot: usize, token: TokenId) -> f64 {
        self.row(slot).map_or(f64::NEG_INFINITY, |row| row.values.get(token).into())
    }

    /// Whether a slot has a distribution.
    pub fn has(&self, slot: usize) -> bool {
        self.row(slot).is_some()
    }

    /// Lets only tokens of a mask be proposed for a slot: bit `id % 32` of word `id / 32`. Replaces an
    /// earlier restriction.
    pub fn restrict(&mut self, slot: usize, mask: Vec<u32>) {
        self.change(slot, |row| row.restriction = Restriction::Mask(mask));
    }

    /// The same with a mask of which all tokens can be put. Where it leaves none of the tokens that are
    /// listed, those that are not are proposed with the floor; by a mask that promises less, one after the
    /// other would be refused.
    pub fn restrict_surely(&mut self, slot: usize, mask: Vec<u32>) {
        self.change(slot, |row| row.restriction = Restriction::Sure(mask));
    }

    /// Lets only one token be proposed for a slot. Replaces an earlier restriction.
    pub fn restrict_to(&mut self, slot: usize, token: TokenId) {
        self.change(slot, |row| row.restriction = Restriction::Only(token));
    }

    /// Lets all tokens be proposed for a slot again that were not refused there.
    pub fn release(&mut self, slot: usize) {
        self.change(slot, |row| row.restriction = Restriction::Free);
    }

    /// Lets one slot alone be proposed for, until this is said again.
    pub fn focus(&mut self, slot: Option<usize>) {
        self.focus = slot;
    }

    /// How many tokens can be proposed for a slot.
    pub fn n_left(&self, slot: usize) -> usize {
        self.row(slot).map_or(0, |row| row.left().count())
    }

    /// The slots that are restricted.
    pub(crate) fn restricted(&self) -> impl Iterator<Item = usize> + '_ {
        let is = |row: &&Row| row.is_open && !matches!(row.restriction, Restriction::Free);
        self.rows
            .iter()
            .filter(is)
            .map(|row| row.slot)
            .filter(|slot| self.focus.is_none_or(|focus| focus == *slot))
    }

    /// A token drawn from the distribution of a slot as the model gave it; `None` if it has none.
    pub(crate) fn draw(&self, slot: usize, random: &mut Random) -> Option<TokenId> {
        let row = self.row(slot)?;
        let sums = row.sums.get_or_init(|| {
            let mut sum = 0.0;
            let add = |(_, value): (TokenId, f32)| {
                sum += f64::from(value).exp();
                sum
            };
            row.values.all().map(add).collect()
        });
        let drawn = random.unit() * sums.last().copied().filter(|sum| *sum > 0.0)?;
        let at = sums.partition_point(|sum| *sum <= drawn).min(sums.len() - 1);
        Some(match &row.values {
            Values::Dense(_) => TokenId::new(at),
            Values::Listed { pairs, .. } => pairs[at].0,
        })
    }

    /// One of the tokens of a mask, drawn from the distribution of a slot, or the likeliest of them at
    /// temperature 0; `None` if none can stand there.
    pub(crate) fn draw_from(
        &self,
        slot: usize,
        mask: &[u32],
        sampling: Sampling,
        random: &mut Random,
    ) -> Option<TokenId> {
        let mut row = self.row(slot)?.clone();
        row.restriction = Restriction::Sure(mask.to_vec());
        row.refused.clear();
        row.is_open = true;
        Some(row.candidate((Order::Confidence, false), sampling, random)?.token)
    }

    /// Log-probabilities for all holes of a canvas, those divided by a temperature if it is above 0. A hole
    /// without a distribution has equal ones. Dense, or of so many of the likeliest.
    pub fn log_probs(
        &self,
        canvas: &Canvas,
        listed: Option<usize>,
        temperature: f64,
    ) -> Result<LogProbs, CanvasError> {
        let scale = if temperature > 0.0 { 1.0 / temperature } else { 1.0 };
        let rows = canvas.holes().map(|slot| match (self.row(slot).map(|row| &row.values), listed) {
            (None, _) => Ok(LogProbs::flat()),
            (Some(Values::Dense(values)), None) => LogProbs::scaled(values, scale),
            (Some(Values::Dense(values)), Some(count)) => LogProbs::likeliest(values, scale, count),
            (Some(Values::Listed { pairs, floor }), _) => {
                let floor = floor.map_or(Floor::Excluded, |floor| Floor::At(floor * scale));
                of_listed(pairs, scale, floor)
            }
        });
        LogProbs::joined(rows)
    }

    /// The same, dense, with the lowest less 10 for tokens that the model excludes.
    pub(crate) fn widened(&self, canvas: &Canvas) -> Result<LogProbs, CanvasError> {
        LogProbs::joined(canvas.holes().map(|slot| {
            let values = match self.row(slot).map(|row| &row.values) {
                None => return Ok(LogProbs::flat()),
                Some(Values::Listed { pairs, .. }) => {
                    let finite: Vec<_> =
                        pairs.iter().copied().filter(|pair| pair.1 > f32::NEG_INFINITY).collect();
                    return of_listed(&finite, 1.0, Floor::BelowListed);
                }
                Some(Values::Dense(values)) => values,
            };
            let finite = values.iter().copied().filter(|value| *value > f32::NEG_INFINITY);
            let floor = finite.reduce(f32::min).unwrap_or(0.0) - 10.0;
            let values: Vec<f32> = values.iter().map(|value| value.max(floor)).collect();
            LogProbs::scaled(&values, 1.0)
        }))
    }

    /// A token as a proposal, if it can be proposed for an open slot of a range.
    pub(crate) fn candidate(
        &self,
        slot: usize,
        token: TokenId,
        within: &std::ops::Range<usize>,
    ) -> Option<Candidate> {
        let row = self.row(slot).filter(|row| row.is_open && within.contains(&row.slot))?;
        if self.focus.is_some_and(|focus| focus != slot) {
            return None;
        }
        let (_, log_prob) = row.left().find(|(left, _)| *left == token)?;
        Some(Candidate { slot, token, log_prob, sureness: log_prob, entropy: 0.0 })
    }

    /// The likeliest token of a slot, whether it is open or not.
    pub(crate) fn likeliest(&self, slot: usize) -> Option<Candidate> {
        let row = self.row(slot)?;
        let better = |best: Option<(TokenId, f32)>, new: (TokenId, f32)| match best {
            Some(best) if new.1 <= best.1 => Some(best),
            _ => Some(new),
        };
        let (token, value) = row.values.all().fold(None, better)?;
        let log_prob = f64::from(value);
        Some(Candidate { slot, token, log_prob, sureness: log_prob, entropy: 0.0 })
    }

    /// The likeliest token of a slot, if it is one of these. Looks no further than to one that is as likely.
    pub(crate) fn likeliest_among(&self, slot: usize, tokens: &[TokenId]) -> Option<Candidate> {
        let row = self.row(slot)?;
        let each = tokens.iter().map(|&token| (row.values.get(token), token));
        let (value, token) = each.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|best| best.0.is_finite())?;
        let is_rival = |(rival, as_likely): (TokenId, f32)| as_likely >= value && !tokens.contains(&rival);
        if row.values.all().any(is_rival) {
            return None;
        }
        let log_prob = f64::from(value);
        Some(Candidate { slot, token, log_prob, sureness: log_prob, entropy: 0.0 })
    }

    /// What would be proposed first, of the open slots of a range.
    pub(crate) fn surest(
        &mut self,
        within: &std::ops::Range<usize>,
        order: Order,
        sampling: Sampling,
        random: &mut Random,
    ) -> Option<Candidate> {
        let focus = self.focus;
        let measures_entropy = self.measures_entropy || order == Order::Entropy;
        let mut surest: Option<Candidate> = None;
        for row in &mut self.rows {
            if !row.is_open || !within.contains(&row.slot) || focus.is_some_and(|focus| focus != row.slot) {
                continue;
            }
            let candidate = match row.candidate {
                Some(known) => known,
                None => {
                    let found = row.candidate((order, measures_entropy), sampling, random);
                    *row.candidate.insert(found)
                }
            };
            surest = match (surest, candidate) {
                (Some(known), Some(new)) if new.sureness > known.sureness => Some(new),
                (None, new) => new,
                (known, _) => known,
            };
        }
        surest
    }

    /// Crosses a token out.
    pub(crate) fn refuse(&mut self, slot: usize, token: TokenId) {
        self.change(slot, |row| {
            row.refused.insert(token);
        });
    }

    /// Says whether a slot is to be filled.
    pub(crate) fn set_open(&mut self, slot: usize, is_open: bool) {
        self.change(slot, |row| row.is_open = is_open);
    }

    fn row(&self, slot: usize) -> Option<&Row> {
        let at = self.rows.binary_search_by_key(&slot, |row| row.slot).ok()?;
        self.rows.get(at)
    }

    fn change(&mut self, slot: usize, change: impl FnOnce(&mut Row)) {
        if let Ok(at) = self.rows.binary_search_by_key(&slot, |row| row.slot) {
            change(&mut self.rows[at]);
            self.rows[at].candidate = None;
        }
    }
}

/// Probabilities that are listed sum to at most this: 1, and what rounding of half-precision logits does.
const MOST_LISTED: f64 = 1.02;

/// One hole of which some tokens are listed, times a factor.
fn of_listed(pairs: &[(TokenId, f32)], scale: f64, floor: Floor) -> Result<LogProbs, CanvasError> {
    let scaled = |&(token, value): &(TokenId, f32)| (token, f64::from(value) * scale);
    LogProbs::listed(&[pairs.iter().map(scaled).collect()], floor)
}

/// Takes the logarithm of the sum off all values, which may be all minus infinity.
fn normalize(hole: usize, values: &mut [f32]) -> Result<(), CanvasError> {
    for (id, &value) in values.iter().enumerate() {
        if value.is_nan() || value == f32::INFINITY {
            return Err(CanvasCause::NoWeight { hole, id: id as u32, value: value.into() }.into());
        }
    }
    let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if top == f32::NEG_INFINITY {
        return Ok(());
    }
    let sum: f64 = values.iter().map(|&value| f64::from(value - top).exp()).sum();
    let all = top + sum.ln() as f32;
    values.iter_mut().for_each(|value| *value -= all);
    Ok(())
}

/// What is so much less likely than the likeliest is never drawn: a share below 10^-15 of a vocabulary of a
/// million.
const OUT_OF_REACH: f64 = 50.0;

impl Row {
    fn new(slot: usize, values: Values) -> Self {
        Self {
            slot,
            values,
            is_open: true,
            restriction: Restriction::Free,
            refused: FxHashSet::default(),
            candidate: None,
            sums: OnceCell::new(),
        }
    }

    /// The tokens that can be proposed, with log-probabilities, by id.
    fn left(&self) -> impl Iterator<Item = (TokenId, f64)> + '_ {
        let only = if let Restriction::Only(token) = &self.restriction { Some(*token) } else { None };
        // A completion may need what the model excludes.
        let only = only.map(|token| (token, f64::from(self.values.get(token))));
        let is_left = |token: TokenId| self.is_left(token);
        let any =
            self.values.all().filter(move |&(token, value)| value > f32::NEG_INFINITY && is_left(token));
        let any = any.map(|(token, value)| (token, f64::from(value)));
        let wider = match (&self.restriction, &self.values) {
            (Restriction::Sure(mask), Values::Listed { floor: Some(floor), .. })
                if any.clone().next().is_none() =>
            {
                Some((mask.len() * 32, *floor))
            }
            _ => None,
        };
        let wider = wider.into_iter().flat_map(move |(end, floor)| {
            let is_wider = move |&token: &TokenId| is_left(token) && !self.values.lists(token);
            (0..end).map(TokenId::new).filter(is_wider).map(move |token| (token, floor))
        });
        only.into_iter().chain(any).chain(wider)
    }

    /// Whether a token that has a value can be proposed, as far as it is not restricted to one.
    fn is_left(&self, token: TokenId) -> bool {
        let is_in = |mask: &[u32]| token.index() / 32 < mask.len() && get_bit(mask, token.index());
        match &self.restriction {
            Restriction::Mask(mask) | Restriction::Sure(mask) if !is_in(mask) => false,
            Restriction::Only(_) => false,
            _ => !self.refused.contains(&token),
        }
    }

    /// The likeliest token that is left, of equal ones the lowest, but for one of which it is not asked.
    fn likeliest_left(&self, but: Option<TokenId>) -> Option<(TokenId, f64)> {
        let (mut likeliest, mut top) = (None, f32::NEG_INFINITY);
        for (token, value) in self.values.all() {
            if value > top && but != Some(token) && self.is_left(token) {
                (likeliest, top) = (Some(token), value);
            }
        }
        match likeliest {
            Some(token) => Some((token, top.into())),
            // One that the model excludes or does not list.
            None => self.left().find(|(token, _)| but != Some(*token)),
        }
    }

    /// The entropy of the renormalized distribution of what is left: log(sum) - sum(p log p) / sum. Where
    /// next to nothing is left, what is left counts as even.
    fn entropy(&self) -> f64 {
        let (mut weighted, mut sum) = (0.0, 0.0);
        for (_, value) in self.left().filter(|pair| pair.1 > f64::NEG_INFINITY) {
            let share = value.exp();
            sum += share;
            weighted += value * share;
        }
        if sum > f64::MIN_POSITIVE { (sum.ln() - weighted / sum).max(0.0) } else { 0.0 }
    }

    fn candidate(
        &self,
        (order, measures_entropy): (Order, bool),
        sampling: Sampling,
        random: &mut Random,
    ) -> Option<Candidate> {
        let (likeliest, top) = self.likeliest_left(None)?;
        let entropy = if measures_entropy { self.entropy() } else { 0.0 };
        let drawn = if sampling.temperature > 0.0 { self.drawn(top, sampling, random) } else { None };
        let (token, log_prob) = drawn.unwrap_or((likeliest, top));
        let sureness = match order {
            Order::Confidence => log_prob,
            Order::Margin => {
                let second = self.likeliest_left(Some(likeliest));
                top.exp() - second.map_or(0.0, |(_, value)| value.exp())
            }
            Order::Entropy => -entropy,
            Order::Random => random.unit(),
        };
        Some(Candidate { slot: self.slot, token, log_prob, sureness, entropy })
    }

    /// One of the tokens that are left, as temperature, `top_k` and `top_p` say.
    fn drawn(&self, top: f64, sampling: Sampling, random: &mut Random) -> Option<(TokenId, f64)> {
        let scaled = |value: f64| (value - top) / sampling.temperature;
        let mut pairs: Vec<(TokenId, f64)> =
            self.left().filter(|pair| scaled(pair.1) > -OUT_OF_REACH).collect();
        if sampling.top_k.is_some() || sampling.top_p.is_some() {
            pairs.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            pairs.truncate(sampling.top_k.unwrap_or(usize::MAX).max(1));
        }
        if let Some(top_p) = sampling.top_p {
            let sum: f64 = pairs.iter().map(|pair| scaled(pair.1).exp()).sum();
            let mut reached = 0.0;
            let n_needed = pairs.iter().take_while(|pair| {
                let needed = reached < top_p * sum;
                reached += scaled(pair.1).exp();
                needed
            });
            let n_needed = n_needed.count().max(1);
            pairs.truncate(n_needed);
        }
        random.choose_by_log_weights(pairs.iter().map(|pair| scaled(pair.1))).map(|picked| pairs[picked])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four tokens with probabilities 0.5, 0.3, 0.15 and 0.05.
    fn rows() -> Rows {
        let values: Vec<f32> = [5.0f32, 3.0, 1.5, 0.5].iter().map(|weight| weight.ln()).collect();
        Rows::new(&[2], &values, 4, 4, None).unwrap()
    }

    fn seen(sampling: Sampling) -> Vec<usize> {
        let mut random = Random::new(3);
        let mut counts = vec![0; 4];
        for _ in 0..4_000 {
            let candidate = rows().surest(&(0..9), Order::Confidence, sampling, &mut random).unwrap();
            counts[candidate.token.index()] += 1;
        }
        counts
    }

    #[test]
    fn temperature_top_k_and_top_p() {
        let plain = Sampling { temperature: 1.0, ..Sampling::default() };
        assert_eq!(seen(Sampling::default()), [4_000, 0, 0, 0]);
        let counts = seen(plain);
        let near = |count: usize, expected: f64| (count as f64 - expected * 4_000.0).abs() < 130.0;
        assert!(
            counts.iter().zip([0.5, 0.3, 0.15, 0.05]).all(|(&count, expected)| near(count, expected)),
            "{counts:?}"
        );
        let counts = seen(Sampling { top_k: Some(2), ..plain });
        assert!(near(counts[0], 0.625) && near(counts[1], 0.375) && counts[2] + counts[3] == 0, "{counts:?}");
        // 0.5 and 0.3 are needed to reach 0.6; 0.5 alone reaches 0.5.
        assert_eq!(seen(Sampling { top_p: Some(0.6), ..plain })[2..], [0, 0]);
        assert_eq!(seen(Sampling { top_p: Some(0.5), ..plain }), [4_000, 0, 0, 0]);
        assert_eq!(seen(Sampling { top_p: Some(0.0), ..plain }), [4_000, 0, 0, 0]);
        // Squares of the weights: 25 : 9 : 2.25 : 0.25.
        let counts = seen(Sampling { temperature: 0.5, ..Sampling::default() });
        assert!(near(counts[0], 25.0 / 36.5) && near(counts[1], 9.0 / 36.5), "{counts:?}");
    }

    #[test]
    fn what_is_restricted_or_refused_is_not_proposed() {
        let mut random = Random::new(3);
        let mut rows = rows();
        let mut next = |rows: &mut Rows| {
            rows.surest(&(0..9), Order::Margin, Sampling::default(), &mut random).map(|found| found.token.0)
        };
        assert_eq!(next(&mut rows), Some(0));
        rows.refuse(2, TokenId(0));
        assert_eq!((next(&mut rows), rows.n_left(2)), (Some(1), 3));
        rows.restrict(2, vec![0b1101]);
        assert_eq!((next(&mut rows), rows.n_left(2)), (Some(2), 2));
        rows.restrict_to(2, TokenId(3));
        assert_eq!((next(&mut rows), rows.n_left(2)), (Some(3), 1));
        rows.focus(Some(1));
        assert_eq!(next(&mut rows), None);
        rows.focus(None);
        rows.release(2);
        assert_eq!(next(&mut rows), Some(1));
        rows.set_open(2, false);
        assert_eq!(next(&mut rows), None);
    }

    #[test]
    fn orders_look_at_what_they_say() {
        let weights: [[f32; 4]; 2] = [[5.0, 4.9, 0.05, 0.05], [4.0, 2.0, 2.0, 2.0]];
        let values: Vec<f32> = weights.iter().flatten().map(|weight| weight.ln()).collect();
        let rows = Rows::new(&[0, 1], &values, 4, 4, None).unwrap();
        let first = |order| {
            let candidate = rows.clone().surest(&(0..2), order, Sampling::default(), &mut Random::new(1));
            candidate.unwrap().slot
        };
        assert_eq!((first(Order::Confidence), first(Order::Entropy), first(Order::Margin)), (0, 0, 1));
    }

    /// What is proposed is found without looking at all that is left; here it is looked at.
    #[test]
    fn the_likeliest_is_the_first_of_all_that_is_left() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            // Few different values, so that many are equal, and some tokens that are excluded.
            let value = |random: &mut Random| [f32::NEG_INFINITY, -1.0, -2.0, -3.0][random.below(4)];
            let values: Vec<f32> = (0..40).map(|_| value(&mut random)).collect();
            let mut rows = Rows::new(&[0], &values, 40, 40, None).unwrap();
            match random.below(4) {
                0 => rows.restrict(0, vec![random.below(1 << 30) as u32, random.below(256) as u32]),
                1 => rows.restrict_surely(0, vec![random.below(1 << 30) as u32]),
                2 => rows.restrict_to(0, TokenId::new(random.below(40))),
                _ => {}
            }
            (0..random.below(30)).for_each(|_| rows.refuse(0, TokenId::new(random.below(40))));
            let row = rows.row(0).unwrap();
            let mut left: Vec<(TokenId, f64)> = row.left().collect();
            left.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let first = row.likeliest_left(None);
            assert_eq!(first, left.first().copied(), "seed {seed}");
            let second = row.likeliest_left(first.map(|first| first.0));
            assert_eq!(second, left.get(1).copied(), "seed {seed}");
            let shares = left.iter().map(|pair| pair.1.exp()).collect::<Vec<_>>();
            let sum: f64 = shares.iter().sum();
            let share = |weight: &f64| weight / sum;
            let terms = shares.iter().map(share).filter(|p| *p > 0.0).map(|p: f64| -p * p.ln());
            let entropy: f64 = if sum > 0.0 { terms.sum() } else { 0.0 };
            assert!((row.entropy() - entropy).abs() < 1e-9, "seed {seed}: {} {entropy}", row.entropy());
        }
    }

    #[test]
    fn of_listed_tokens_others_are_proposed_only_by_sure_masks() {
        let pairs = vec![(TokenId(3), -1.0), (TokenId(0), -2.0)];
        let log_probs = LogProbs::listed(&[pairs], Floor::default()).unwrap();
        let mut rows = Rows::of(&[7], &log_probs, 5, None).unwrap();
        let mut without = Rows::of(&[7], &log_probs, 5, Some(TokenId(2))).unwrap();
        let left = |rows: &Rows| {
            rows.row(7).unwrap().left().map(|(token, value)| (token.0, value)).collect::<Vec<_>>()
        };
        assert_eq!(left(&rows), [(0, -2.0), (3, -1.0)]);
        assert_eq!((rows.log_prob(7, TokenId(3)), rows.log_prob(7, TokenId(1))), (-1.0, f64::NEG_INFINITY));
        rows.restrict(7, vec![0b10110]);
        assert_eq!(left(&rows), []);
        rows.restrict_surely(7, vec![0b10110]);
        assert_eq!(left(&rows), [(1, -12.0), (2, -12.0), (4, -12.0)]);
        without.restrict_surely(7, vec![0b10110]);
        assert_eq!(left(&without), [(1, -12.0), (4, -12.0)]);
        rows.refuse(7, TokenId(2));
        assert_eq!(left(&rows), [(1, -12.0), (4, -12.0)]);
        rows.restrict_surely(7, vec![0b10111]);
        assert_eq!(left(&rows), [(0, -2.0)]);
        let excluded = LogProbs::listed(&[vec![(TokenId(3), -1.0)]], Floor::Excluded).unwrap();
        let mut rows = Rows::of(&[7], &excluded, 5, None).unwrap();
        rows.restrict_surely(7, vec![0b10110]);
        assert_eq!(left(&rows), []);
    }

    #[test]
    fn bad_numbers_are_errors_and_the_mask_token_is_never_proposed() {
        assert!(Rows::new(&[0], &[0.0, f32::NAN], 2, 2, None).is_err());
        assert!(Rows::new(&[0], &[0.0, f32::INFINITY], 2, 2, None).is_err());
        let mut rows = Rows::new(&[0], &[9.0, 0.0, 3.0], 3, 2, Some(TokenId(0))).unwrap();
        let found =
            rows.surest(&(0..1), Order::Confidence, Sampling::default(), &mut Random::new(1)).unwrap();
        assert_eq!((found.token, found.log_prob), (TokenId(1), 0.0));
    }
}
