//! Lists that grow page by page.
//!
//! A list that doubles copies all that it has: milliseconds where there are millions of entries, in the
//! middle of some token mask. And a slice of its own for each of a million entries takes as long to be
//! dropped as it took to be made. Here what is there stays where it is, and few allocations have it all.

use std::ops::{Index, IndexMut};

/// A power of two: entries of a page. The first page grows as other lists do.
const PAGE: usize = 1 << 12;

/// So many entries are dropped at a time.
const PART: usize = 128;

/// A list, see the module.
#[derive(Clone, Debug)]
pub struct Pages<T>(Vec<Vec<T>>);

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Pages<T> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PAGE + last.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an entry; returns its number.
    pub fn push(&mut self, value: T) -> usize {
        let at = self.len();
        match self.0.last_mut().filter(|last| last.len() < PAGE) {
            Some(last) => last.push(value),
            None => self.0.push(vec![value]),
        }
        at
    }

    /// Drops some of the last entries; says whether any are left. For a list that is not asked any more, to
    /// be dropped piece by piece.
    pub fn drop_part(&mut self) -> bool {
        if let Some(last) = self.0.last_mut() {
            last.truncate(last.len().saturating_sub(PART));
        }
        self.0.pop_if(|last| last.is_empty());
        !self.0.is_empty()
    }

    /// The entry of a number.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / PAGE)?.get(at % PAGE)
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

impl<T> Index<usize> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.0[at / PAGE][at % PAGE]
    }
}

impl<T> IndexMut<usize> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.0[at / PAGE][at % PAGE]
    }
}

/// Slices of any length, see the module.
#[derive(Clone, Debug)]
pub struct Slices<T>(Vec<Vec<T>>);

/// Where a slice is among [`Slices`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SliceId {
    page: u32,
    from: u32,
    len: u32,
}

impl SliceId {
    /// The number of entries.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl<T> Default for Slices<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> Slices<T> {
    /// Keeps a slice.
    pub fn push(&mut self, slice: &[T]) -> SliceId {
        if slice.is_empty() {
            return SliceId::default();
        }
        let has_room = |last: &&mut Vec<T>| last.len() + slice.len() <= PAGE;
        let from = match self.0.last_mut().filter(has_room) {
            Some(last) => {
                last.extend_from_slice(slice);
                last.len() - slice.len()
            }
            None => {
                self.0.push(slice.to_vec());
                0
            }
        };
        SliceId { page: self.0.len() as u32 - 1, from: from as u32, len: slice.len() as u32 }
    }

    /// A slice that is kept here.
    #[inline]
    pub fn get(&self, SliceId { page, from, len }: SliceId) -> &[T] {
        if len == 0 { &[] } else { &self.0[page as usize][from as usize..][..len as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn pages_are_a_list() {
        let mut pages = Pages::default();
        assert!(pages.is_empty() && pages.get(0).is_none());
        for n in 0..3 * PAGE + 5 {
            assert_eq!((pages.push(n), pages.len()), (n, n + 1));
        }
        pages[PAGE] = 7;
        assert_eq!((pages[PAGE - 1], pages[PAGE], pages[3 * PAGE]), (PAGE - 1, 7, 3 * PAGE));
        assert_eq!((pages.get(3 * PAGE + 5), pages.iter().count()), (None, 3 * PAGE + 5));
        while pages.drop_part() {
            assert!(pages.len() == pages.iter().count() && pages[0] == 0);
        }
        assert!(pages.is_empty() && !pages.drop_part());
    }

    #[test]
    fn slices_stay_as_they_were() {
        let (mut random, mut slices) = (Random::new(1), Slices::default());
        let mut kept = Vec::new();
        for n in 0..3_000_u32 {
            let len = if n % 500 == 0 { PAGE + random.below(2 * PAGE) } else { random.below(20) };
            let slice = vec![n; len];
            kept.push((slices.push(&slice), slice));
        }
        for (id, slice) in &kept {
            assert_eq!((slices.get(*id), id.len(), id.is_empty()), (&**slice, slice.len(), slice.is_empty()));
        }
    }
}
