use std::fmt;

const WORD: usize = u64::BITS as usize;

/// A set of small integers below a length fixed at construction.
///
/// Invariant: bits at or beyond `len` are zero, so two sets of the same length are equal iff their words are.
/// Every operation on two sets needs the same length and costs `len / 64` steps.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BitSet {
    words: Box<[u64]>,
    len: usize,
}

impl BitSet {
    /// The empty set over `0..len`.
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(WORD)].into(), len }
    }

    /// The set of all of `0..len`.
    pub fn full(len: usize) -> Self {
        let mut set = Self::new(len);
        set.insert_range(0, len);
        set
    }

    /// The set of the given members.
    ///
    /// # Panics
    /// If a member is not below `len`.
    pub fn from_members(len: usize, members: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Self::new(len);
        set.extend(members);
        set
    }

    /// The number of integers that could be members (not the number that are).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether `member` is in the set.
    ///
    /// # Panics
    /// If `member` is not below `len`.
    #[inline]
    pub fn contains(&self, member: usize) -> bool {
        debug_assert!(member < self.len);
        self.words[member / WORD] >> (member % WORD) & 1 == 1
    }

    /// Adds `member` and says whether it is new.
    ///
    /// # Panics
    /// If `member` is not below `len`.
    #[inline]
    pub fn insert(&mut self, member: usize) -> bool {
        assert!(member < self.len, "bit {member} of a set of {}", self.len);
        let (word, bit) = (&mut self.words[member / WORD], 1 << (member % WORD));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Takes `member` out and says whether it was in.
    pub fn remove(&mut self, member: usize) -> bool {
        assert!(member < self.len, "bit {member} of a set of {}", self.len);
        let (word, bit) = (&mut self.words[member / WORD], 1 << (member % WORD));
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Adds all of `start..end`.
    pub fn insert_range(&mut self, start: usize, end: usize) {
        assert!(start <= end && end <= self.len, "bits {start}..{end} of a set of {}", self.len);
        if start == end {
            return;
        }
        let (first, last) = (start / WORD, (end - 1) / WORD);
        let (low, high) = (!0 << (start % WORD), !0 >> (WORD - 1 - (end - 1) % WORD));
        if first == last {
            self.words[first] |= low & high;
            return;
        }
        self.words[first] |= low;
        self.words[first + 1..last].fill(!0);
        self.words[last] |= high;
    }

    /// The smallest integer of `start..end` that is *not* a member.
    pub fn first_absent(&self, start: usize, end: usize) -> Option<usize> {
        let mut at = start;
        while at < end {
            let absent = !self.words[at / WORD] >> (at % WORD);
            if absent != 0 {
                let found = at + absent.trailing_zeros() as usize;
                return (found < end).then_some(found);
            }
            at = (at / WORD + 1) * WORD;
        }
        None
    }

    /// Takes all members out.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        members(self.words.iter().copied())
    }

    /// The members that are also in `other`, in ascending order.
    pub fn members_in_both<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = usize> + 'a {
        members(self.words.iter().zip(&other.words).map(|(a, b)| a & b))
    }

    /// The number of members.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Adds all members of `other` and says whether any was new.
    pub fn union_with(&mut self, other: &Self) -> bool {
        assert_eq!(self.len, other.len);
        let mut changed = 0;
        for (word, &other) in self.words.iter_mut().zip(&other.words) {
            changed |= other & !*word;
            *word |= other;
        }
        changed != 0
    }

    /// Keeps only members of `other`.
    pub fn intersect_with(&mut self, other: &Self) {
        assert_eq!(self.len, other.len);
        for (word, &other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Takes out all members of `other`.
    pub fn subtract(&mut self, other: &Self) {
        assert_eq!(self.len, other.len);
        for (word, &other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Whether the two sets have a member in common.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        debug_assert_eq!(self.len, other.len);
        self.words.iter().zip(&other.words).any(|(&a, &b)| a & b != 0)
    }

    /// Whether every member is one of `other`'s.
    pub fn is_subset(&self, other: &Self) -> bool {
        assert_eq!(self.len, other.len);
        self.words.iter().zip(&other.words).all(|(&a, &b)| a & !b == 0)
    }

    /// The members as 64-bit words, lowest bit first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        size_of_val(&*self.words)
    }
}

impl Extend<usize> for BitSet {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, members: I) {
        for member in members {
            self.insert(member);
        }
    }
}

impl fmt::Debug for BitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The members of a row.
fn members(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(at, word)| {
        std::iter::successors((word != 0).then_some(word), |&word| {
            let rest = word & (word - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |word| at * WORD + word.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_gaps_agree_with_single_bits() {
        for len in [1, 63, 64, 65, 130] {
            for start in 0..=len {
                for end in start..=len {
                    let mut set = BitSet::new(len);
                    set.insert_range(start, end);
                    assert_eq!(set, BitSet::from_members(len, start..end));
                    let absent = (0..len).find(|&bit| !set.contains(bit));
                    assert_eq!(set.first_absent(0, len), absent);
                    assert_eq!(set.first_absent(start, end), None);
                }
            }
        }
    }

    #[test]
    fn iteration_lists_members_in_order() {
        let members = [0, 5, 63, 64, 127, 128];
        let set = BitSet::from_members(129, members);
        assert_eq!(set.iter().collect::<Vec<_>>(), members);
        assert_eq!(set.count(), members.len());
    }
}
