//! A canvas with any number of tokens in each run of holes, and back.
//!
//! The relaxed question is quick to decide by the chart. Its no is one of the canvas. Its yes is a text, and
//! a text can be cut into tokens in many ways, from the fewest that spell it to one a byte; and most can be
//! made longer, where blanks are ignored or a name or a string stands. What is made so is a proposal.

use anygram_left_to_right::language::StepError;
use anygram_vocab::{TokenId, Vocabulary};

use crate::plan::{Place, Plan};
use crate::search::Found;

/// A plan with one gap for each run of holes and gaps.
pub(crate) struct Relaxed<'a> {
    pub plan: Plan,
    /// The canvas.
    exact: &'a Plan,
    /// Of each slot the slots of the canvas that it stands for: the first, and how many.
    runs: Vec<(usize, usize)>,
}

/// Bytes of a run of which it is looked at how they can be cut.
const MOST_BYTES: usize = 512;

/// Ways to make a run longer that are tried.
const MOST_TRIED: usize = 32;

impl<'a> Relaxed<'a> {
    /// Runs of up to so many holes stay as they are.
    pub fn new(plan: &'a Plan, n_exact: usize) -> Self {
        let is_open = |place: &Place| matches!(place, Place::Free | Place::Gap);
        let mut is_gap = vec![false; plan.places.len()];
        let mut at = 0;
        for run in plan.places.chunk_by(|one, other| is_open(one) == is_open(other)) {
            let stays = !is_open(&run[0]) || run.len() <= n_exact && !run.contains(&Place::Gap);
            is_gap[at..at + run.len()].fill(!stays);
            at += run.len();
        }
        let mut relaxed = Plan { places: Vec::new(), ends: Vec::new(), whole: plan.whole };
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (slot, (&place, &end)) in plan.places.iter().zip(&plan.ends).enumerate() {
            if is_gap[slot]
                && relaxed.places.last() == Some(&Place::Gap)
                && let (Some(last), Some(run)) = (relaxed.ends.last_mut(), runs.last_mut())
            {
                // An end within the run is one before it, with less in the gap.
                *last |= end;
                run.1 += 1;
                continue;
            }
            relaxed.places.push(if is_gap[slot] { Place::Gap } else { place });
            relaxed.ends.push(end);
            runs.push((slot, 1));
        }
        Self { plan: relaxed, exact: plan, runs }
    }

    /// A completion of the canvas, made of one of the relaxed question. `is_text` says of a text whether it
    /// ends as it shall. `None` if none comes of it.
    pub fn fit(
        &self,
        vocabulary: &Vocabulary,
        found: &Found,
        is_text: &mut dyn FnMut(&[TokenId]) -> Result<bool, StepError>,
    ) -> Result<Option<Found>, StepError> {
        // The run in which the text ends is one of them.
        let ends_in_run = self.plan.places.get(found.end) == Some(&Place::Gap);
        let mut pieces = vec![Vec::new(); found.end + usize::from(ends_in_run)];
        for &(slot, token) in &found.tokens {
            match pieces.get_mut(slot) {
                Some(piece) => piece.push(token),
                None => return Ok(None),
            }
        }
        let mut end = self.runs.get(found.end).map_or(self.exact.places.len(), |run| run.0);
        // Of each run the slots that are filled, up to the end of the text.
        let mut slots: Vec<Vec<usize>> = Vec::with_capacity(pieces.len());
        for at in 0..pieces.len() {
            let (first, n) = self.runs[at];
            if self.plan.places[at] != Place::Gap {
                slots.push(vec![first]);
                continue;
            }
            let ends = (first..first + n).filter(|&slot| self.exact.ends[slot]);
            let ends: Vec<usize> = if at == found.end { ends.collect() } else { vec![first + n] };
            let bytes = bytes_of(vocabulary, &pieces[at]);
            let most = bytes.as_ref().map_or(pieces[at].len(), Vec::len).max(n);
            let cuts = bytes.as_ref().map(|bytes| Cuts::new(vocabulary, bytes, most));
            let n_own = pieces[at].len();
            let can_be = |n_tokens: usize| cuts.as_ref().map_or(n_tokens == n_own, |cuts| cuts.has(n_tokens));
            let fits = |last: usize| {
                let n_tokens = (0..=most).find(|&n| can_be(n) && self.filled((first, last), n).is_some())?;
                Some((last, n_tokens))
            };
            if let Some((last, n_tokens)) = ends.into_iter().find_map(fits) {
                if let (Some(cuts), Some(bytes)) = (&cuts, &bytes) {
                    pieces[at] = cuts.tokens(vocabulary, bytes, n_tokens);
                }
                slots.push(self.filled((first, last), n_tokens).unwrap_or_default());
                if at == found.end {
                    end = last;
                }
                continue;
            }
            let has_gap = self.exact.places[first..first + n].contains(&Place::Gap);
            let Some(bytes) = bytes.filter(|_| at < found.end && !has_gap) else { return Ok(None) };
            if !self.lengthen(vocabulary, (&mut pieces, at), (&bytes, n), is_text)? {
                return Ok(None);
            }
            slots.push((first..first + n).collect());
        }
        let mut tokens = Vec::new();
        for (piece, slots) in pieces.iter().zip(slots) {
            tokens.extend(slots.into_iter().zip(piece.iter().copied()));
        }
        let is_open = |&(slot, _): &(usize, TokenId)| !matches!(self.exact.places[slot], Place::Token(_));
        tokens.retain(is_open);
        let n_in_gaps = tokens.iter().filter(|(slot, _)| self.exact.places[*slot] == Place::Gap).count();
        Ok(Some(Found { end, tokens, n_in_gaps, closing: found.closing.clone() }))
    }

    /// The slots that so many tokens take, from one slot to before another: one each hole, and what is left
    /// the first gap.
    fn filled(&self, (first, last): (usize, usize), n_tokens: usize) -> Option<Vec<usize>> {
        let places = &self.exact.places[first..last];
        let n_holes = places.iter().filter(|place| **place == Place::Free).count();
        let n_more = n_tokens.checked_sub(n_holes)?;
        let gap = places.iter().position(|place| *place == Place::Gap);
        if n_more > 0 && gap.is_none() {
            return None;
        }
        let mut slots = Vec::with_capacity(n_tokens);
        for (at, place) in places.iter().enumerate() {
            let n = if Some(at) == gap { n_more } else { usize::from(*place == Place::Free) };
            slots.extend(std::iter::repeat_n(first + at, n));
        }
        Some(slots)
    }

    /// Makes what stands in a run longer, to as many tokens as it has slots.
    fn lengthen(
        &self,
        vocabulary: &Vocabulary,
        (pieces, slot): (&mut [Vec<TokenId>], usize),
        (bytes, n): (&[u8], usize),
        is_text: &mut dyn FnMut(&[TokenId]) -> Result<bool, StepError>,
    ) -> Result<bool, StepError> {
        let Some(n_more) = n.checked_sub(bytes.len()).filter(|&more| more > 0) else { return Ok(false) };
        let known = std::mem::take(&mut pieces[slot]);
        let ends = (0..=bytes.len()).rev();
        let places =
            ends.clone().map(|at| (at, b' ')).chain(ends.filter(|&at| at > 0).map(|at| (at, bytes[at - 1])));
        for (at, byte) in places.take(MOST_TRIED) {
            let mut longer = bytes[..at].to_vec();
            longer.extend(std::iter::repeat_n(byte, n_more));
            longer.extend_from_slice(&bytes[at..]);
            let cuts = Cuts::new(vocabulary, &longer, n);
            if !cuts.has(n) {
                continue;
            }
            pieces[slot] = cuts.tokens(vocabulary, &longer, n);
            if is_text(&pieces.concat())? {
                return Ok(true);
            }
        }
        pieces[slot] = known;
        Ok(false)
    }
}

fn bytes_of(vocabulary: &Vocabulary, tokens: &[TokenId]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for &token in tokens {
        bytes.extend_from_slice(vocabulary.bytes(token)?);
    }
    (bytes.len() <= MOST_BYTES).then_some(bytes)
}

/// Into how many tokens a text, and each of its ends, can be cut, up to a number.
struct Cuts {
    most: usize,
    /// By position and number of tokens.
    can: Vec<bool>,
}

impl Cuts {
    /// Cost: O(bytes × tokens that begin at one × `most`).
    fn new(vocabulary: &Vocabulary, text: &[u8], most: usize) -> Self {
        let row = most + 1;
        let mut can = vec![false; (text.len() + 1) * row];
        can[text.len() * row] = true;
        for at in (0..text.len()).rev() {
            for (length, _) in vocabulary.trie().prefixes(&text[at..]) {
                for n in 1..row {
                    let rest = can[(at + length) * row + n - 1];
                    can[at * row + n] |= rest;
                }
            }
        }
        Self { most, can }
    }

    fn has(&self, n: usize) -> bool {
        self.leads(0, n)
    }

    fn leads(&self, at: usize, n: usize) -> bool {
        n <= self.most && self.can[at * (self.most + 1) + n]
    }

    /// The text in so many tokens, if it can be cut so: the longest first.
    fn tokens(&self, vocabulary: &Vocabulary, text: &[u8], n: usize) -> Vec<TokenId> {
        let (mut tokens, mut at) = (Vec::with_capacity(n), 0);
        for left in (0..n).rev() {
            let prefixes = vocabulary.trie().prefixes(&text[at..]);
            let Some((length, token)) = prefixes.filter(|(length, _)| self.leads(at + length, left)).last()
            else {
                break;
            };
            tokens.push(token);
            at += length;
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use anygram_vocab::{Format, LoadOptions};

    use super::*;
    use crate::canvas::End;

    fn vocabulary(tokens: &[&str]) -> Vocabulary {
        let list: Vec<String> = tokens.iter().map(|token| format!("{token:?}")).collect();
        let source = format!("[{}]", list.join(","));
        Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &LoadOptions::default()).unwrap()
    }

    fn text(vocabulary: &Vocabulary, tokens: &[TokenId]) -> String {
        let bytes = bytes_of(vocabulary, tokens).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn texts_are_cut_into_every_number_of_tokens_that_there_is() {
        let vocabulary = vocabulary(&["a", "b", "ab", "aba", "bb", "c"]);
        for (whole, numbers) in
            [("", &[0][..]), ("abab", &[2, 3, 4]), ("abb", &[2, 3]), ("abac", &[2, 3, 4]), ("ax", &[])]
        {
            let cuts = Cuts::new(&vocabulary, whole.as_bytes(), 5);
            let found: Vec<usize> = (0..=6).filter(|&n| cuts.has(n)).collect();
            assert_eq!(found, numbers, "{whole}");
            for n in found {
                let tokens = cuts.tokens(&vocabulary, whole.as_bytes(), n);
                assert_eq!((tokens.len(), text(&vocabulary, &tokens).as_str()), (n, whole));
            }
        }
    }

    /// A canvas of fixed tokens (numbers) and holes, with a completion of the relaxed one: what is in its
    /// slots.
    fn fitted(
        vocabulary: &Vocabulary,
        places: &[Option<u32>],
        filled: &[(usize, u32)],
        is_text: &dyn Fn(&str) -> bool,
    ) -> Option<Found> {
        let place = |place: &Option<u32>| place.map_or(Place::Free, |id| Place::Token(TokenId(id)));
        let places: Vec<Place> = places.iter().map(place).collect();
        let plan = Plan { ends: vec![false; places.len()], places, whole: Some(End::Sentence) };
        let relaxed = Relaxed::new(&plan, 0);
        // Fixed tokens are among those of a completion.
        let mut tokens: Vec<(usize, TokenId)> =
            filled.iter().map(|&(slot, id)| (slot, TokenId(id))).collect();
        for (slot, place) in relaxed.plan.places.iter().enumerate() {
            if let Place::Token(token) = place {
                tokens.push((slot, *token));
            }
        }
        tokens.sort_by_key(|&(slot, _)| slot);
        let found = Found { end: relaxed.plan.places.len(), tokens, n_in_gaps: 0, closing: Vec::new() };
        let mut ask = |tokens: &[TokenId]| Ok(is_text(&text(vocabulary, tokens)));
        relaxed.fit(vocabulary, &found, &mut ask).unwrap()
    }

    #[test]
    fn completions_get_as_many_tokens_as_there_are_holes() {
        let vocabulary = vocabulary(&["(", ")", "x", "xx", " "]);
        let of = |found: Option<Found>| {
            found.map(|found| found.tokens.iter().map(|&(slot, token)| (slot, token.0)).collect::<Vec<_>>())
        };
        // Two tokens are cut into three, and three into two.
        let any = |_: &str| true;
        assert_eq!(
            of(fitted(&vocabulary, &[None, None, None, Some(1)], &[(0, 0), (0, 3)], &any)),
            Some(vec![(0, 0), (1, 2), (2, 2)])
        );
        assert_eq!(
            of(fitted(&vocabulary, &[None, None, Some(1)], &[(0, 0), (0, 2), (0, 2)], &any)),
            Some(vec![(0, 0), (1, 3)])
        );
        // One that is too short gets blanks or longer names where these may stand.
        let no_blanks = |text: &str| !text.contains(' ');
        let longer = of(fitted(&vocabulary, &[Some(0), None, None, None, Some(1)], &[(1, 2)], &no_blanks));
        assert_eq!(longer, Some(vec![(1, 2), (2, 2), (3, 2)]));
        // What cannot be made to fit does not.
        assert!(fitted(&vocabulary, &[Some(0), None, Some(1)], &[(1, 0), (1, 1)], &any).is_none());
        assert!(
            fitted(&vocabulary, &[Some(0), None, None, Some(1)], &[(1, 2)], &|text| text == "(x)").is_none()
        );
    }
}
