//! The positions of an output that are kept.
//!
//! Tokens are four bytes each, positions ten times as much, and hardly any of them is asked for again. So the
//! last few are kept, and of those before one for each doubling of the distance. Whoever goes back to one
//! that is not kept reads tokens again, at most as many as the text is shorter now than it has been. What is
//! recalled of a text takes more than its readings, and follows from its bytes alone, mostly: where it does
//! only every 32nd position keeps it. Memory: O(log n) positions, and what is recalled at O(log(n / 32)).

use std::borrow::Cow;
use std::sync::Arc;

use crate::constraint::Constraint;
use crate::error::MatchError;
use crate::frontier::Config;
use crate::recall::Recall;
use crate::session::Session;

/// Where an output is behind some of its tokens.
#[derive(Clone)]
pub(super) struct Position {
    /// The readings outside of remembered values.
    pub frontier: Arc<[Config]>,
    /// Before the present position it may be what an earlier one recalls ([`History::lag`]).
    pub recall: Arc<Recall>,
    /// Bytes; saturates.
    pub text_length: u32,
    /// The number of tokens, and above it [`IS_BEHIND`], [`IS_SENTENCE`] and [`ENDED`].
    place: u32,
}

/// What is recalled is what an earlier position recalls.
const IS_BEHIND: u32 = 1 << 29;
const IS_SENTENCE: u32 = 1 << 30;
const ENDED: u32 = 1 << 31;

/// The number of tokens in a place.
const N_TOKENS: u32 = IS_BEHIND - 1;

impl Position {
    /// Before any token.
    pub fn start(constraint: &Constraint, session: &mut Session) -> Result<Self, MatchError> {
        let frontier = session.start()?;
        let recall = Arc::new(Recall::new(constraint.language()));
        let place = if session.stepper.is_sentence(&frontier) { IS_SENTENCE } else { 0 };
        Ok(Self { frontier, recall, text_length: 0, place })
    }

    /// Behind one more token of some bytes.
    pub fn next(
        &self,
        (frontier, recall): (Arc<[Config]>, Arc<Recall>),
        n_bytes: usize,
        is_sentence: bool,
    ) -> Self {
        let text_length = self.text_length.saturating_add(u32::try_from(n_bytes).unwrap_or(u32::MAX));
        let n_tokens = (self.place & N_TOKENS) + 1;
        let place = if is_sentence { n_tokens | IS_SENTENCE } else { n_tokens };
        Self { frontier, recall, text_length, place }
    }

    /// Behind one more token, which ends the text or fills it up.
    pub fn end(&self) -> Self {
        Self { place: (self.place + 1) | ENDED, ..self.clone() }
    }

    /// The same where readings have other names.
    pub fn renamed(&self, frontier: Arc<[Config]>, recall: Arc<Recall>) -> Self {
        Self { frontier, recall, ..*self }
    }

    pub fn n_tokens(&self) -> usize {
        (self.place & N_TOKENS) as usize
    }

    pub fn is_sentence(&self) -> bool {
        self.place & IS_SENTENCE != 0
    }

    pub fn has_ended(&self) -> bool {
        self.place & ENDED != 0
    }

    /// All readings.
    pub fn readings(&self) -> Cow<'_, [Config]> {
        self.recall.readings(&self.frontier)
    }
}

/// The present position and some before it.
#[derive(Clone)]
pub(super) struct History {
    /// In order; the start is the first as soon as there are tokens.
    before: Vec<Position>,
    present: Position,
}

/// So many of the last are kept.
const LAST: usize = 4;

/// By so many more there is room, where there is none.
const ROOM: usize = 2;

/// So many tokens lie between positions that keep what they recall, where that follows from the text.
const RECALLED: usize = 32;

impl History {
    pub fn new(start: Position) -> Self {
        Self { before: Vec::new(), present: start }
    }

    pub fn present(&self) -> &Position {
        &self.present
    }

    /// Those that are kept, in order.
    pub fn kept(&self) -> impl Iterator<Item = &Position> {
        self.before.iter().chain([&self.present])
    }

    /// The position behind one more token.
    pub fn push(&mut self, next: Position) {
        let mut before = std::mem::replace(&mut self.present, next);
        if before.recall.follows_from_text()
            && !before.n_tokens().is_multiple_of(RECALLED)
            && let Some(last) = self.before.last()
        {
            before.recall = last.recall.clone();
            before.place |= IS_BEHIND;
        }
        if self.before.len() == self.before.capacity() {
            let n_tokens = self.present.n_tokens();
            self.before.retain(|position| is_kept(position.n_tokens(), n_tokens));
            // What only positions recalled that are gone is let go.
            for at in 1..self.before.len() {
                if self.before[at].place & IS_BEHIND != 0 {
                    self.before[at].recall = self.before[at - 1].recall.clone();
                }
            }
        }
        if self.before.len() == self.before.capacity() {
            self.before.reserve_exact(ROOM);
        }
        self.before.push(before);
    }

    /// Goes back to so many tokens, or to fewer if that position is not kept.
    pub fn go_back(&mut self, n_tokens: usize) {
        while self.present.n_tokens() > n_tokens
            && let Some(position) = self.before.pop()
        {
            self.present = position;
        }
    }

    /// If the present position has what an earlier one recalls: the number of tokens of that one.
    pub fn lag(&self) -> Option<usize> {
        let is_behind = |position: &Position| position.place & IS_BEHIND != 0;
        let recalls = self.before.iter().rev().find(|position| !is_behind(position));
        is_behind(&self.present).then(|| recalls.map_or(0, Position::n_tokens))
    }

    /// Gives the present position what it recalls.
    pub fn catch_up(&mut self, recall: Recall) {
        self.present.recall = Arc::new(recall);
        self.present.place &= !IS_BEHIND;
    }

    /// The same positions by other names.
    pub fn renamed<E>(&self, mut rename: impl FnMut(&Position) -> Result<Position, E>) -> Result<Self, E> {
        let mut before = Vec::with_capacity(self.before.capacity());
        for position in &self.before {
            before.push(rename(position)?);
        }
        Ok(Self { before, present: rename(&self.present)? })
    }

    /// Bytes on the heap, roughly, without what is shared.
    pub fn memory_usage(&self) -> usize {
        self.before.capacity() * size_of::<Position>()
    }
}

/// Whether a position is kept when there are so many tokens.
fn is_kept(position: usize, n_tokens: usize) -> bool {
    let distance = n_tokens.saturating_sub(position);
    distance < LAST || position.is_multiple_of(1 << distance.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygram_bits::Random;

    fn position(n_tokens: usize) -> Position {
        let recall = Arc::new(Recall::default());
        Position { frontier: [].into(), recall, text_length: 0, place: n_tokens as u32 }
    }

    #[test]
    fn few_are_kept_and_going_back_comes_close() {
        let mut random = Random::new(1);
        let mut history = History::new(position(0));
        let (mut n_tokens, mut longest): (usize, usize) = (0, 0);
        for _ in 0..20_000 {
            if random.chance(5) {
                let asked = if random.chance(80) { n_tokens.saturating_sub(7) } else { n_tokens / 3 };
                history.go_back(asked);
                let came_to = history.present().n_tokens();
                let is_close = asked - came_to <= longest - asked;
                assert!(came_to <= asked && is_close, "{longest}, {n_tokens}: {asked}, {came_to}");
                assert!(longest - asked >= LAST || came_to == asked);
                (came_to + 1..=asked).for_each(|n_tokens| history.push(position(n_tokens)));
                n_tokens = asked;
            }
            n_tokens += 1;
            longest = longest.max(n_tokens);
            history.push(position(n_tokens));
            assert!(history.kept().map(Position::n_tokens).is_sorted());
            let most = 2 * (LAST + ROOM + longest.ilog2() as usize);
            assert!(history.kept().count() <= most, "{n_tokens}");
        }
        history.go_back(0);
        assert_eq!(history.present().n_tokens(), 0);
    }

    #[test]
    fn what_a_position_tells() {
        let start = position(0);
        let next = start.next((start.frontier.clone(), start.recall.clone()), 3, true);
        let end = next.end().end();
        let told = [&start, &next, &end]
            .map(|position| (position.n_tokens(), position.is_sentence(), position.has_ended()));
        assert_eq!(told, [(0, false, false), (1, true, false), (3, true, true)]);
        assert_eq!((next.text_length, end.text_length), (3, 3));
        assert_eq!(size_of::<Position>(), 32);
    }
}
