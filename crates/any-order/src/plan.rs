//! What a canvas asks, slot by slot, with EOS and PAD understood.

use anygram_left_to_right::Constraint;
use anygram_vocab::{TokenId, Vocabulary};

use crate::canvas::{Canvas, End, Slot};

/// What text may stand in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    /// This token.
    Token(TokenId),
    /// One token, any.
    Free,
    /// Any number of tokens.
    Gap,
    /// At most one token, any: so the tokens are counted that may still come after a canvas.
    Optional,
    /// None: EOS, PAD or MASK stands there.
    Closed,
}

/// A canvas as a question about texts. Behind its slots stand at most an EOS and what follows it: a canvas
/// that ends with fixed ones asks for a sentence in the slots before the first of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub places: Vec<Place>,
    /// For each slot whether an EOS may stand there that ends the text.
    pub ends: Vec<bool>,
    /// Whether the text may be the whole row, and how it has to end then.
    pub whole: Option<End>,
}

impl Plan {
    pub fn new(constraint: &Constraint, canvas: &Canvas) -> Self {
        let vocabulary = constraint.vocabulary();
        let slots = canvas.slots();
        let is_eos = |token: &TokenId| vocabulary.eos().contains(token);
        let is_tail = |token: &TokenId| is_eos(token) || vocabulary.pad() == Some(*token);
        let place = |slot: &Slot| match slot {
            Slot::Hole => Place::Free,
            Slot::Gap => Place::Gap,
            Slot::Fixed(token) if is_tail(token) => Place::Closed,
            Slot::Fixed(token) if is_text(constraint, *token) => Place::Token(*token),
            Slot::Fixed(_) => Place::Closed,
        };
        let mut ends = vec![false; slots.len()];
        let mut only_tail_follows = true;
        for (slot, end) in slots.iter().zip(&mut ends).rev() {
            *end = only_tail_follows
                && match slot {
                    Slot::Hole => !vocabulary.eos().is_empty(),
                    Slot::Fixed(token) => is_eos(token),
                    Slot::Gap => false,
                };
            only_tail_follows &= match slot {
                Slot::Hole => !vocabulary.eos().is_empty() || vocabulary.pad().is_some(),
                Slot::Gap => true,
                Slot::Fixed(token) => is_tail(token),
            };
        }
        let is_fixed = |slot: &&Slot| matches!(slot, Slot::Fixed(token) if is_tail(token));
        let n_fixed = slots.iter().rev().take_while(is_fixed).count();
        let is_fixed_eos = |slot: &Slot| matches!(slot, Slot::Fixed(token) if is_eos(token));
        let text = slots.len() - n_fixed;
        let (n_slots, whole) = match slots[text..].iter().position(is_fixed_eos) {
            Some(eos) => (text + eos, End::Sentence),
            None => (slots.len(), canvas.end()),
        };
        ends.truncate(n_slots);
        Self { places: slots[..n_slots].iter().map(place).collect(), ends, whole: Some(whole) }
    }

    /// Whether a text may end before a slot, or behind the last.
    pub fn may_end(&self, slot: usize) -> bool {
        self.ends.get(slot).copied().unwrap_or(self.whole.is_some())
    }

    pub fn has_gaps(&self) -> bool {
        self.places.contains(&Place::Gap)
    }

    /// The same with at most so many tokens in each gap, and of each of its slots, and of its end, which slot
    /// of this one it belongs to.
    pub fn with_few_in_gaps(&self, most: usize) -> (Self, Vec<usize>) {
        let mut few = Self { places: Vec::new(), ends: Vec::new(), whole: self.whole };
        let mut belongs = Vec::new();
        for (slot, (&place, &end)) in self.places.iter().zip(&self.ends).enumerate() {
            let (place, n) = if place == Place::Gap { (Place::Optional, most) } else { (place, 1) };
            few.places.extend(std::iter::repeat_n(place, n));
            few.ends.extend(std::iter::repeat_n(end, n));
            belongs.extend(std::iter::repeat_n(slot, n));
        }
        belongs.push(self.places.len());
        (few, belongs)
    }

    /// The number of slots that hold one token each, before a slot.
    pub fn n_tokens_before(&self, slot: usize) -> usize {
        self.places[..slot].iter().filter(|place| **place != Place::Gap).count()
    }
}

/// Whether a token stands behind the end of a text.
pub fn is_tail(vocabulary: &Vocabulary, token: TokenId) -> bool {
    vocabulary.eos().contains(&token) || vocabulary.pad() == Some(token)
}

/// Whether a token can stand in a text: it has bytes, or the grammar names it; EOS and PAD never do in a
/// canvas.
fn is_text(constraint: &Constraint, token: TokenId) -> bool {
    constraint.vocabulary().bytes(token).is_some()
        || constraint.specials().iter().any(|&(named, _)| named == token)
}

/// The tokens of the text that the grammar names, with their terminals.
pub(crate) fn specials(
    constraint: &Constraint,
) -> impl Iterator<Item = (TokenId, anygram_grammar::ir::TerminalId)> + '_ {
    let vocabulary = constraint.vocabulary();
    let ends = move |token: TokenId| vocabulary.eos().contains(&token) || vocabulary.pad() == Some(token);
    constraint.specials().iter().copied().filter(move |&(token, _)| !ends(token))
}

/// The terminals by which the grammar names a token of the text.
pub(crate) fn named(
    constraint: &Constraint,
    token: TokenId,
) -> impl Iterator<Item = anygram_grammar::ir::TerminalId> + '_ {
    specials(constraint).filter(move |named| named.0 == token).map(|named| named.1)
}
