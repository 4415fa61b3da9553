//! Samples by a search, where the states are too many to sum over.
//!
//! Every assignment gets its log-weight plus a Gumbel noise; the valid one with the greatest sum is an exact
//! sample of the valid ones. The greatest sum in a set of assignments has a Gumbel distribution too, so it is
//! drawn for all assignments first, then for smaller and smaller sets, each time under the condition that the
//! greatest of the parts is that of the whole; sets that begin with no viable text are left out (A* sampling,
//! Maddison, Tarlow and Minka 2014; top-down, Kool, van Hoof and Welling 2019). The set with the greatest sum
//! is divided first: the first that is one assignment, and valid, is the sample. Quick where much of the
//! weight is valid, or is soon seen not to be.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use anygram_bits::Random;
use anygram_left_to_right::language::StepError;
use anygram_vocab::TokenId;

use crate::canvas::Slot;
use crate::log_probs::log_sum;
use crate::subsets::Subset;
use crate::weigh::{Assignment, Question, Tail};

/// All assignments that begin in one way.
struct Set {
    /// The greatest of the sums of log-weight and noise in the set.
    noisy: f64,
    slot: usize,
    state: Subset,
    /// The set as a node of the tree: the one before and the token of the last hole.
    node: u32,
    /// Only assignments whose next hole has an unlisted text token; most of them weigh next to nothing, and
    /// are never looked at.
    unlisted: bool,
}

impl Ord for Set {
    fn cmp(&self, other: &Self) -> Ordering {
        self.noisy.total_cmp(&other.noisy).then((other.node, other.unlisted).cmp(&(self.node, self.unlisted)))
    }
}

impl PartialOrd for Set {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Set {}

const STEPS_PER_SET: usize = 16;

fn gumbel(random: &mut Random) -> f64 {
    // Not zero, of which there is no logarithm.
    let unit = random.unit() + f64::EPSILON / 4.0;
    -(-unit.ln()).ln()
}

/// As many samples; `None` if there is no completion.
pub(crate) fn sample(
    question: &mut Question,
    random: &mut Random,
    count: usize,
) -> Result<Option<Vec<Assignment>>, StepError> {
    let (slot, state) = question.first()?;
    if state == Subset::DEAD {
        return Ok(None);
    }
    let masses = masses(question);
    let mut drawn = Vec::new();
    for _ in 0..count {
        let Some(tokens) = one(question, random, &masses, slot, state)? else { return Ok(None) };
        drawn.push(question.assignment(&tokens));
    }
    Ok(Some(drawn))
}

/// For each slot the log-weight of all that can stand in it and those after it: while the text goes on, and
/// behind its end.
fn masses(question: &Question) -> Vec<[f64; 2]> {
    let size = question.subsets.tables.constraint.vocabulary().len();
    let n_slots = question.canvas.slots().len();
    let mut masses = vec![[0.0, 0.0]; n_slots + 1];
    for slot in (0..n_slots).rev() {
        let [text, tail] = masses[slot + 1];
        masses[slot] = match question.canvas.slots()[slot] {
            Slot::Fixed(token) if question.is_eos(token) => [tail, tail],
            Slot::Fixed(token) if question.is_tail(token) => [f64::NEG_INFINITY, tail],
            Slot::Fixed(_) => [text, f64::NEG_INFINITY],
            Slot::Hole | Slot::Gap => {
                let row = &question.rows[question.row_of[slot]];
                let unlisted = row.floor.map(|floor| floor + (size as f64).ln());
                let listed = row.all().filter(|pair| !question.is_tail(pair.0)).map(|pair| pair.1);
                let of_text = log_sum(listed.chain(unlisted));
                let tails = question.tails();
                let eos = log_sum(
                    tails.iter().filter(|&&token| question.is_eos(token)).map(|&token| row.get(token)),
                );
                let of_tail = match question.tail {
                    Tail::Counted => log_sum(tails.iter().map(|&token| row.get(token))),
                    Tail::Free => 0.0,
                };
                [log_sum([of_text + text, eos + tail].into_iter()), of_tail + tail]
            }
        };
    }
    masses
}

fn one(
    question: &mut Question,
    random: &mut Random,
    masses: &[[f64; 2]],
    slot: usize,
    state: Subset,
) -> Result<Option<Vec<TokenId>>, StepError> {
    let mass = |slot: usize, state: Subset| masses[slot][usize::from(state == Subset::TAIL)];
    let n_slots = question.canvas.slots().len();
    let log_size = (question.subsets.tables.constraint.vocabulary().len() as f64).ln();
    let mut nodes: Vec<(u32, TokenId, f64)> = vec![(u32::MAX, TokenId(0), 0.0)];
    let mut heap = BinaryHeap::new();
    if mass(slot, state) == f64::NEG_INFINITY {
        return Ok(None);
    }
    heap.push(Set { noisy: mass(slot, state) + gumbel(random), slot, state, node: 0, unlisted: false });
    while let Some(Set { noisy, slot, state, node, unlisted }) = heap.pop() {
        question.work.spend(STEPS_PER_SET)?;
        if slot == n_slots {
            let mut tokens = Vec::new();
            let mut at = node as usize;
            while let Some(&(parent, token, _)) = nodes.get(at).filter(|node| node.0 != u32::MAX) {
                tokens.push(token);
                at = parent as usize;
            }
            tokens.reverse();
            return Ok(Some(tokens));
        }
        let sum = nodes[node as usize].2;
        let mut parts = Vec::new();
        let edges = if unlisted {
            question.unlisted_edges(slot, state)?
        } else {
            question.listed_edges(slot, state)?
        };
        for edge in edges {
            let (to_slot, to) = question.settle(slot + 1, edge.to)?;
            let log = sum + edge.log + mass(to_slot, to);
            if to != Subset::DEAD && log > f64::NEG_INFINITY {
                parts.push((Some((edge, to_slot, to)), log));
            }
        }
        // All that are not listed, as one part, valid or not.
        let of_unlisted = |question: &Question| match question.rows[question.row_of[slot]].floor {
            Some(floor) if state != Subset::TAIL => sum + floor + log_size + masses[slot + 1][0],
            _ => f64::NEG_INFINITY,
        };
        let all = if unlisted { of_unlisted(question) } else { sum + mass(slot, state) };
        if !unlisted && of_unlisted(question) > f64::NEG_INFINITY {
            parts.push((None, of_unlisted(question)));
        }
        // What cannot be valid takes part until here: it may have the greatest sum, and is left out then.
        let valid = log_sum(parts.iter().map(|part| part.1));
        let noise: Vec<f64> = parts.iter().map(|part| part.1 + gumbel(random)).collect();
        let share = (-(valid - all).exp()).ln_1p();
        let rest = if share.is_nan() { f64::NEG_INFINITY } else { all + share + gumbel(random) };
        let top = noise.iter().copied().fold(rest, f64::max);
        for ((part, _), own) in parts.into_iter().zip(noise) {
            // Under the condition that the greatest is `noisy` (Kool et al., appendix B.3, the stable form).
            let below = noisy - own + (-(own - top).exp()).ln_1p();
            let noisy = noisy - below.max(0.0) - (-below.abs()).exp().ln_1p();
            let Some((edge, to_slot, to)) = part else {
                heap.push(Set { noisy, slot, state, node, unlisted: true });
                continue;
            };
            let token = question.pick_token(slot, &edge, random)?;
            nodes.push((node, token, sum + edge.log));
            heap.push(Set { noisy, slot: to_slot, state: to, node: nodes.len() as u32 - 1, unlisted: false });
        }
    }
    Ok(None)
}
