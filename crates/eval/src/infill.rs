//! Infilling without a model: regions of texts are removed and filled again.
//!
//! One to three regions of 3 to 12 tokens are removed from a text of the grammar (IG-CD: spans of 5 to 100
//! characters). As *gaps* they hold any number of tokens, and a completion of the canvas fills them. As
//! *holes* they hold as many tokens as were removed, and the decoding loop fills them with a method, in
//! blocks of 32 slots as all evaluations.
//! Marginals are simulated in place of a model: each hole lists some tokens of the texts with normal noise,
//! and the true token leads.

use std::collections::HashSet;
use std::time::Instant;

use anygram::decode::{DecodeOptions, Decoder, Proposal};
use anygram::{Canvas, Constraint, Decision, End, Filling, Slot, Solver, TokenId, Witness};
use anygram_bits::Random;
use anygram_decoding::intersection::{Complete, Intersection, IntersectionOptions};
use serde::{Deserialize, Serialize};

use crate::{EvalError, Method, Simulated};

/// What is measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Infill {
    /// What the texts are, for the report.
    pub name: String,
    /// Methods that fill holes, in the loop.
    pub methods: Vec<Method>,
    /// Numbers of regions.
    pub regions: Vec<usize>,
    /// Questions to the simulated model.
    pub steps: usize,
    /// How far the true token leads the others, on the scale of logits.
    pub sharpness: f64,
    /// By which regions are cut and noise is drawn.
    pub seed: u64,
}

/// A text whose regions were filled.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Infilled {
    /// What the texts are.
    pub infill: String,
    /// `gaps` or `holes`.
    pub kind: String,
    /// How many regions.
    pub regions: usize,
    /// The number of the text.
    pub text: usize,
    /// How they were filled.
    pub method: String,
    /// Whether a sentence came out.
    pub syntactic: bool,
    /// Whether a question about it was not decided, for a limit was hit.
    #[serde(default)]
    pub at_limit: bool,
    /// Whether the regions are what was cut out.
    pub same: bool,
    /// Tokens that were put into them.
    pub tokens: usize,
    /// Microseconds of the constraint, wall-clock.
    pub us: f64,
}

/// What tells a filled text from all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    infill: String,
    kind: String,
    regions: usize,
    text: usize,
    method: String,
}

impl Infilled {
    /// What tells it from all others.
    pub fn key(&self) -> Key {
        Key {
            infill: self.infill.clone(),
            kind: self.kind.clone(),
            regions: self.regions,
            text: self.text,
            method: self.method.clone(),
        }
    }
}

/// Tokens of a region.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=12;

/// Fills regions of texts, given as tokens, but for those that are done. A text that is too short for the
/// regions is left out.
///
/// # Errors
/// A text has a token that the vocabulary has not, or the constraint cannot be used.
pub fn infill(
    constraint: &Constraint,
    texts: &[Vec<TokenId>],
    options: &Infill,
    done: &HashSet<Key>,
    sink: &mut dyn FnMut(Infilled) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let tokens = distinct(texts);
    let mut solver = Solver::new(constraint)?;
    let mut intersection = Intersection::new(constraint)?;
    let mut decoders = Vec::new();
    for method in &options.methods {
        decoders.push(Decoder::new(constraint, method.make(constraint)?));
    }
    for (number, text) in texts.iter().enumerate() {
        for &n_regions in &options.regions {
            let seed = options.seed ^ (number as u64) << 16 ^ n_regions as u64;
            let Some(regions) = cut(text.len(), n_regions, &mut Random::new(seed)) else { continue };
            let line = |kind: &str, method: &str, filled: Filled, us: f64| Infilled {
                infill: options.name.clone(),
                kind: kind.to_owned(),
                regions: n_regions,
                text: number,
                method: method.to_owned(),
                syntactic: filled.syntactic,
                at_limit: filled.at_limit,
                same: filled.same,
                tokens: filled.tokens,
                us: (us * 10.0).round() / 10.0,
            };
            let is_left =
                |kind: &str, method: &str| !done.contains(&line(kind, method, Filled::default(), 0.0).key());
            let gaps = canvas(text, &regions, true);
            if is_left("gaps", "exact") {
                let begun = Instant::now();
                let answer = solver.completable(&gaps)?;
                sink(line("gaps", "exact", by_witness(&answer, text, &regions), micros(begun)))?;
            }
            if is_left("gaps", "intersection-with-completion") {
                let drawn = IntersectionOptions {
                    complete: Complete::Always,
                    seed,
                    ..IntersectionOptions::default()
                };
                let begun = Instant::now();
                let said = intersection.completable(&gaps, &drawn)?;
                let us = micros(begun);
                let at_limit = said.verdict.decision.decided().is_none();
                let tokens_in = |infilling: &anygram_decoding::intersection::Infilling| {
                    let kept = text.len() - regions.iter().map(|region| region.len()).sum::<usize>();
                    infilling.text.len().saturating_sub(kept)
                };
                let none = Filled { at_limit, ..Filled::default() };
                let filled = said.infilling.as_ref().map_or(none, |infilling| Filled {
                    syntactic: true,
                    at_limit,
                    same: infilling.text == *text,
                    tokens: tokens_in(infilling),
                });
                sink(line("gaps", "intersection-with-completion", filled, us))?;
            }
            let holes = canvas(text, &regions, false);
            for (method, decoder) in options.methods.iter().zip(&mut decoders) {
                if !is_left("holes", method.name()) {
                    continue;
                }
                let slots = regions.iter().cloned().flatten().map(|slot| (slot, text[slot]));
                let vocabulary = constraint.vocabulary();
                let mut model = Simulated::new(vocabulary, slots, &tokens, options.sharpness, seed);
                let decode = DecodeOptions { steps: options.steps, seed, ..DecodeOptions::default() };
                let decoded = decoder.decode(&holes, &mut model, &decode)?;
                let filled = Filled::of(constraint, decoded.tokens().as_deref(), text, &regions)?;
                let is_doubt = |proposal: &Proposal| !proposal.judgement.kept && !proposal.judgement.proven;
                let at_limit = method.proves_refusals() && decoded.trace.proposals().any(is_doubt);
                let filled = Filled { at_limit, ..filled };
                sink(line("holes", method.name(), filled, decoded.trace.sums().1))?;
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Filled {
    syntactic: bool,
    at_limit: bool,
    same: bool,
    tokens: usize,
}

impl Filled {
    fn of(
        constraint: &Constraint,
        tokens: Option<&[TokenId]>,
        text: &[TokenId],
        regions: &[std::ops::Range<usize>],
    ) -> Result<Self, EvalError> {
        let n_tokens = regions.iter().map(|region| region.len()).sum();
        let Some(tokens) = tokens else { return Ok(Self { tokens: n_tokens, ..Self::default() }) };
        let vocabulary = constraint.vocabulary();
        let is_text = !tokens.iter().any(|&token| vocabulary.is_special(token));
        let syntactic = is_text && constraint.language().read(&vocabulary.decode(tokens)?)?.is_sentence;
        Ok(Self { syntactic, same: tokens == text, tokens: n_tokens, ..Self::default() })
    }
}

fn by_witness(answer: &Decision<Witness>, text: &[TokenId], regions: &[std::ops::Range<usize>]) -> Filled {
    let Decision::Yes(witness) = answer else {
        return Filled { at_limit: answer.decided().is_none(), ..Filled::default() };
    };
    let gaps = witness.slots.iter().filter_map(|filling| match filling {
        Filling::Tokens(tokens) => Some(tokens),
        Filling::Token(_) => None,
    });
    let same = gaps.clone().zip(regions).all(|(tokens, region)| *tokens == text[region.clone()]);
    Filled { syntactic: true, at_limit: false, same, tokens: gaps.map(Vec::len).sum() }
}

/// All tokens of the texts, each once.
fn distinct(texts: &[Vec<TokenId>]) -> Vec<TokenId> {
    let mut tokens: Vec<TokenId> = texts.iter().flatten().copied().collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// Regions of a text that do not touch, ascending; `None` if it is too short.
fn cut(n_tokens: usize, n_regions: usize, random: &mut Random) -> Option<Vec<std::ops::Range<usize>>> {
    const DRAWS: usize = 100;
    let span = LENGTHS.end() - LENGTHS.start() + 1;
    'draws: for _ in 0..DRAWS {
        let mut regions: Vec<std::ops::Range<usize>> = Vec::new();
        for _ in 0..n_regions {
            let length = LENGTHS.start() + random.below(span);
            if n_tokens <= length {
                continue 'draws;
            }
            let from = random.below(n_tokens - length + 1);
            regions.push(from..from + length);
        }
        regions.sort_by_key(|region| region.start);
        if regions.windows(2).all(|pair| pair[0].end < pair[1].start) {
            return Some(regions);
        }
    }
    None
}

fn canvas(text: &[TokenId], regions: &[std::ops::Range<usize>], as_gaps: bool) -> Canvas {
    let mut slots = Vec::with_capacity(text.len());
    let mut at = 0;
    for region in regions {
        slots.extend(text[at..region.start].iter().map(|&token| Slot::Fixed(token)));
        if as_gaps {
            slots.push(Slot::Gap);
        } else {
            slots.extend(region.clone().map(|_| Slot::Hole));
        }
        at = region.end;
    }
    slots.extend(text[at..].iter().map(|&token| Slot::Fixed(token)));
    Canvas::new(slots, End::Sentence)
}

fn micros(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_apart_and_within() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let regions = cut(60, 3, &mut random).unwrap();
            assert!(regions.len() == 3 && regions[2].end <= 60);
            assert!(regions.iter().all(|region| LENGTHS.contains(&region.len())));
            assert!(regions.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
        assert_eq!(cut(3, 1, &mut random), None);
        let text: Vec<TokenId> = (0..20).map(TokenId).collect();
        let region = std::slice::from_ref(&(2..6));
        assert_eq!(canvas(&text, region, false).holes().collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(canvas(&text, region, true).slots().len(), 17);
    }
}
