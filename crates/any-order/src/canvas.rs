//! The canvas: a row of slots that is filled in any order.

use anygram_vocab::TokenId;

use crate::error::{CanvasCause, CanvasError};

/// One slot of a canvas.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Slot {
    /// This token.
    Fixed(TokenId),
    /// A hole: exactly one token, which may be any text token, EOS or PAD.
    Hole,
    /// A gap: any number of text tokens, also none.
    Gap,
}

/// How a canvas has to end. With an EOS in it, what stands before it is a sentence either way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// The text is a sentence.
    Sentence,
    /// The text is a viable prefix.
    Prefix {
        /// If given, at most this many more text tokens must be able to complete it.
        remaining: Option<u32>,
    },
}

/// A row of slots, and how it has to end.
///
/// A value. Every change can be undone by its opposite, and equal canvases have equal answers. The
/// [`Solver`](crate::Solver) keeps what it has computed; the canvas does not. Changes of one slot cost O(1),
/// those of gaps O(slots).
///
/// ```
/// use anygram_any_order::{Canvas, End, Slot};
/// use anygram_vocab::TokenId;
///
/// // A token, two tokens to be found, any number of tokens.
/// let slots = vec![Slot::Fixed(TokenId(7)), Slot::Hole, Slot::Hole, Slot::Gap];
/// let mut canvas = Canvas::new(slots, End::Sentence);
/// assert_eq!(canvas.set(1, TokenId(5))?, Slot::Hole);
/// canvas.pin(1)?;
/// assert!(canvas.clear(1).is_err());
/// canvas.split(3, &[TokenId(8)])?; // the token is somewhere in the gap
/// assert_eq!(canvas.slots()[3..], [Slot::Gap, Slot::Fixed(TokenId(8)), Slot::Gap]);
/// assert_eq!(canvas.holes().collect::<Vec<_>>(), [2]);
/// # Ok::<(), anygram_any_order::CanvasError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Canvas {
    slots: Vec<Slot>,
    pinned: Vec<bool>,
    end: End,
}

impl Canvas {
    /// A canvas of these slots, none pinned.
    pub fn new(slots: Vec<Slot>, end: End) -> Self {
        Self { pinned: vec![false; slots.len()], slots, end }
    }

    /// The slots.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// How it has to end.
    pub fn end(&self) -> End {
        self.end
    }

    /// Says how it has to end.
    pub fn set_end(&mut self, end: End) {
        self.end = end;
    }

    /// The numbers of the slots that are holes, in order.
    pub fn holes(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().enumerate().filter(|(_, slot)| **slot == Slot::Hole).map(|(at, _)| at)
    }

    /// Puts a token into a hole, or another into a fixed slot; returns what was there.
    pub fn set(&mut self, slot: usize, token: TokenId) -> Result<Slot, CanvasError> {
        self.replace(slot, Slot::Fixed(token))
    }

    /// Clears a slot: it becomes a hole again. Returns what was there.
    pub fn clear(&mut self, slot: usize) -> Result<Slot, CanvasError> {
        self.replace(slot, Slot::Hole)
    }

    /// Protects a slot from being set, cleared, split, closed or merged.
    pub fn pin(&mut self, slot: usize) -> Result<(), CanvasError> {
        self.check(slot)?;
        self.pinned[slot] = true;
        Ok(())
    }

    /// Unpins a slot.
    pub fn unpin(&mut self, slot: usize) -> Result<(), CanvasError> {
        self.check(slot)?;
        self.pinned[slot] = false;
        Ok(())
    }

    /// Whether a slot is pinned; `false` if there is no such slot.
    pub fn is_pinned(&self, slot: usize) -> bool {
        self.pinned.get(slot).copied().unwrap_or(false)
    }

    /// Puts tokens into a gap, with a gap left on both sides: the gap at `slot`, the tokens, a gap.
    pub fn split(&mut self, slot: usize, tokens: &[TokenId]) -> Result<(), CanvasError> {
        self.check_gap(slot)?;
        let new = tokens.iter().map(|&token| Slot::Fixed(token)).chain([Slot::Gap]);
        self.slots.splice(slot + 1..slot + 1, new);
        self.pinned.splice(slot + 1..slot + 1, vec![false; tokens.len() + 1]);
        Ok(())
    }

    /// Closes a gap: nothing more can be inserted there.
    pub fn close(&mut self, slot: usize) -> Result<(), CanvasError> {
        self.check_gap(slot)?;
        self.slots.remove(slot);
        self.pinned.remove(slot);
        Ok(())
    }

    /// Merges the slots from one gap to a later one, with everything between them, into a single gap: the
    /// opposite of [`Canvas::split`].
    pub fn merge(&mut self, first: usize, last: usize) -> Result<(), CanvasError> {
        self.check_gap(first)?;
        self.check_gap(last)?;
        if let Some(slot) = (first..=last).find(|&slot| self.pinned[slot]) {
            return Err(CanvasCause::Pinned { slot }.into());
        }
        self.slots.drain(first..last.max(first));
        self.pinned.drain(first..last.max(first));
        Ok(())
    }

    /// Opens a gap before a slot, or at the end.
    pub fn open(&mut self, slot: usize) -> Result<(), CanvasError> {
        if slot > self.slots.len() {
            return Err(CanvasCause::NoSuchSlot { slot, n_slots: self.slots.len() }.into());
        }
        self.slots.insert(slot, Slot::Gap);
        self.pinned.insert(slot, false);
        Ok(())
    }

    fn replace(&mut self, slot: usize, new: Slot) -> Result<Slot, CanvasError> {
        self.check(slot)?;
        match self.slots[slot] {
            _ if self.pinned[slot] => Err(CanvasCause::Pinned { slot }.into()),
            Slot::Gap => Err(CanvasCause::IsGap { slot }.into()),
            _ => Ok(std::mem::replace(&mut self.slots[slot], new)),
        }
    }

    fn check(&self, slot: usize) -> Result<(), CanvasError> {
        let n_slots = self.slots.len();
        if slot < n_slots { Ok(()) } else { Err(CanvasCause::NoSuchSlot { slot, n_slots }.into()) }
    }

    fn check_gap(&self, slot: usize) -> Result<(), CanvasError> {
        self.check(slot)?;
        match self.slots[slot] {
            Slot::Gap if self.pinned[slot] => Err(CanvasCause::Pinned { slot }.into()),
            Slot::Gap => Ok(()),
            Slot::Fixed(_) | Slot::Hole => Err(CanvasCause::NoGap { slot }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas() -> Canvas {
        let slots = vec![Slot::Fixed(TokenId(1)), Slot::Hole, Slot::Gap, Slot::Fixed(TokenId(2))];
        Canvas::new(slots, End::Sentence)
    }

    #[test]
    fn changes_are_taken_back_by_their_opposites() {
        let mut changed = canvas();
        assert_eq!(changed.set(1, TokenId(7)), Ok(Slot::Hole));
        assert_ne!(changed, canvas());
        assert_eq!(changed.clear(1), Ok(Slot::Fixed(TokenId(7))));
        assert_eq!(changed, canvas());
        changed.split(2, &[TokenId(5), TokenId(6)]).unwrap();
        assert_eq!(
            changed.slots()[2..6],
            [Slot::Gap, Slot::Fixed(TokenId(5)), Slot::Fixed(TokenId(6)), Slot::Gap]
        );
        changed.merge(2, 5).unwrap();
        assert_eq!(changed, canvas());
        changed.close(2).unwrap();
        changed.open(2).unwrap();
        assert_eq!(changed, canvas());
        changed.open(4).unwrap();
        changed.close(4).unwrap();
        assert_eq!(changed, canvas());
    }

    #[test]
    fn what_is_not_allowed_changes_nothing() {
        let mut changed = canvas();
        changed.pin(0).unwrap();
        let pinned = changed.clone();
        assert_eq!(changed.set(0, TokenId(3)), Err(CanvasCause::Pinned { slot: 0 }.into()));
        assert_eq!(changed.clear(2), Err(CanvasCause::IsGap { slot: 2 }.into()));
        assert_eq!(changed.split(1, &[]), Err(CanvasCause::NoGap { slot: 1 }.into()));
        assert_eq!(changed.pin(4), Err(CanvasCause::NoSuchSlot { slot: 4, n_slots: 4 }.into()));
        assert_eq!(changed, pinned);
        changed.unpin(0).unwrap();
        assert_eq!(changed, canvas());
    }
}
