//! The meaning of a canvas by brute force (DESIGN, section 4): all assignments of tokens to its holes, and of
//! few tokens to its gaps.
//!
//! Cost: `tokens ^ holes` texts, and for each gap `tokens ^ longest`; for vocabularies of a few tokens.

use std::collections::BTreeSet;

use crate::text::{Sym, Vocab, token_symbols};

/// What stands at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// This token.
    Fixed(u32),
    /// One token.
    Hole,
    /// Any number of tokens.
    Gap,
}

/// Which tokens of a vocabulary are special, and which of these the grammar names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roles {
    /// Each ends the text.
    pub eos: Vec<u32>,
    /// What may follow EOS besides EOS.
    pub pad: Option<u32>,
    /// Special tokens that stand in texts.
    pub named: Vec<u32>,
}

/// What all assignments came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answers {
    /// Whether one of them ends as asked.
    pub completable: bool,
    /// Of each hole the tokens that it has in those.
    pub admissible: Vec<BTreeSet<u32>>,
    /// The fewest tokens of the text in those.
    pub minimum: Option<usize>,
    /// Assignments that were tried.
    pub n_tried: usize,
}

/// Tries all assignments, gaps of up to `longest` tokens; `ends(text, has_eos)` says whether a text ends as
/// asked. `None` if there are more than `most`.
pub fn brute_force(
    vocab: &Vocab,
    roles: &Roles,
    slots: &[Slot],
    longest: usize,
    most: usize,
    mut ends: impl FnMut(&[Sym], bool) -> bool,
) -> Option<Answers> {
    let all: Vec<u32> = (0..vocab.len() as u32).collect();
    let is_text = |token: &u32| {
        !roles.eos.contains(token)
            && roles.pad != Some(*token)
            && (vocab[*token as usize].is_some() || roles.named.contains(token))
    };
    let texts: Vec<u32> = all.iter().copied().filter(is_text).collect();
    let mut runs: Vec<Vec<u32>> = vec![vec![]];
    let mut from = 0;
    for _ in 0..longest {
        let to = runs.len();
        for at in from..to {
            for &token in &texts {
                let longer = [&runs[at][..], &[token]].concat();
                runs.push(longer);
            }
        }
        from = to;
    }
    let choices = |slot: &Slot| -> Vec<Vec<u32>> {
        match slot {
            Slot::Fixed(token) => vec![vec![*token]],
            Slot::Hole => all.iter().map(|&token| vec![token]).collect(),
            Slot::Gap => runs.clone(),
        }
    };
    let choices: Vec<Vec<Vec<u32>>> = slots.iter().map(choices).collect();
    let n_all = choices.iter().try_fold(1usize, |n, choices| n.checked_mul(choices.len()))?;
    if n_all > most {
        return None;
    }
    let holes: Vec<usize> = (0..slots.len()).filter(|&at| slots[at] == Slot::Hole).collect();
    let mut answers = Answers { admissible: vec![BTreeSet::new(); holes.len()], ..Answers::default() };
    let mut picked = vec![0; slots.len()];
    loop {
        answers.n_tried += 1;
        let row: Vec<u32> =
            picked.iter().zip(&choices).flat_map(|(&at, choices)| choices[at].iter().copied()).collect();
        let end = row.iter().position(|token| roles.eos.contains(token));
        let (text, tail) = row.split_at(end.unwrap_or(row.len()));
        let is_tail = |token: &u32| roles.eos.contains(token) || roles.pad == Some(*token);
        if text.iter().all(is_text) && tail.iter().all(is_tail) {
            let symbols: Vec<Sym> = text.iter().flat_map(|&token| token_symbols(vocab, token)).collect();
            if ends(&symbols, end.is_some()) {
                answers.completable = true;
                answers.minimum = Some(answers.minimum.map_or(text.len(), |least| least.min(text.len())));
                for (&hole, set) in holes.iter().zip(&mut answers.admissible) {
                    set.insert(choices[hole][picked[hole]][0]);
                }
            }
        }
        // The next row of choices, as a number is counted up.
        let Some(at) = (0..slots.len()).rev().find(|&at| picked[at] + 1 < choices[at].len()) else {
            return Some(answers);
        };
        picked[at] += 1;
        picked[at + 1..].fill(0);
    }
}
