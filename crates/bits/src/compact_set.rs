use std::fmt;

use smallvec::SmallVec;

use crate::BitSet;

/// A set of small integers below a length, made once and then only read.
///
/// A sorted list where that is smaller than a row of bits, else the row: a hundred thousand sets of three out
/// of a hundred thousand cost what they hold. Equal sets are equal values. Costs: `contains` is a search in
/// the list or a look at a bit; the others are linear in what is held.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CompactSet(Repr);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Few(List),
    Many(Box<BitSet>),
}

/// Most sets have so few members that they take no memory elsewhere.
type List = SmallVec<[u32; INLINE]>;

const INLINE: usize = 4;

/// Bits of a row that cost as much as a member of a list.
const BITS_PER_MEMBER: usize = u32::BITS as usize;

/// Whether so many members are a list.
fn is_few(n_members: usize, len: usize) -> bool {
    n_members <= INLINE || n_members * BITS_PER_MEMBER <= len
}

impl CompactSet {
    /// The set of members that are given in ascending order, without repetition; all below `len`.
    pub fn from_sorted(len: usize, members: impl IntoIterator<Item = u32>) -> Self {
        let mut members: List = members.into_iter().collect();
        debug_assert!(
            members.is_sorted_by(|a, b| a < b) && members.last().is_none_or(|&last| (last as usize) < len)
        );
        if is_few(members.len(), len) {
            members.shrink_to_fit();
            return Self(Repr::Few(members));
        }
        Self(Repr::Many(Box::new(BitSet::from_members(
            len,
            members.into_iter().map(|member| member as usize),
        ))))
    }

    /// The set with the members of a row of bits.
    pub fn from_bits(set: &BitSet) -> Self {
        if is_few(set.count(), set.len()) {
            return Self(Repr::Few(set.iter().map(|member| member as u32).collect()));
        }
        Self(Repr::Many(Box::new(set.clone())))
    }

    /// Whether there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Repr::Few(list) => list.is_empty(),
            Repr::Many(bits) => bits.is_empty(),
        }
    }

    /// The number of members.
    pub fn count(&self) -> usize {
        match &self.0 {
            Repr::Few(list) => list.len(),
            Repr::Many(bits) => bits.count(),
        }
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(&self, member: usize) -> bool {
        match &self.0 {
            Repr::Few(list) => list.binary_search(&(member as u32)).is_ok(),
            Repr::Many(bits) => bits.contains(member),
        }
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (list, bits): (&[u32], _) = match &self.0 {
            Repr::Few(list) => (list, None),
            Repr::Many(bits) => (&[], Some(bits)),
        };
        list.iter().map(|&member| member as usize).chain(bits.into_iter().flat_map(|bits| bits.iter()))
    }

    /// The members that are also in `other`.
    pub fn intersection(&self, other: &Self, len: usize) -> Self {
        match (&self.0, &other.0) {
            (Repr::Many(a), Repr::Many(b)) => {
                if is_few(a.members_in_both(b).count(), len) {
                    return Self::from_sorted(len, a.members_in_both(b).map(|member| member as u32));
                }
                let mut both = a.clone();
                both.intersect_with(b);
                Self(Repr::Many(both))
            }
            (Repr::Few(list), _) => {
                Self::from_sorted(len, list.iter().copied().filter(|&member| other.contains(member as usize)))
            }
            (_, Repr::Few(list)) => {
                Self::from_sorted(len, list.iter().copied().filter(|&member| self.contains(member as usize)))
            }
        }
    }

    /// With `last`, the greatest that can be a member (the length less one).
    pub fn with_last(self, last: usize) -> Self {
        match self.0 {
            Repr::Few(list) if list.last() == Some(&(last as u32)) => Self(Repr::Few(list)),
            Repr::Few(list) => Self::from_sorted(last + 1, list.into_iter().chain([last as u32])),
            Repr::Many(mut bits) => {
                bits.insert(last);
                Self(Repr::Many(bits))
            }
        }
    }

    /// Whether the two sets have a member in common.
    pub fn intersects(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Many(a), Repr::Many(b)) => a.intersects(b),
            (Repr::Few(list), _) => list.iter().any(|&member| other.contains(member as usize)),
            (_, Repr::Few(list)) => list.iter().any(|&member| self.contains(member as usize)),
        }
    }

    /// Whether a row of bits has a member in common.
    pub fn intersects_bits(&self, bits: &BitSet) -> bool {
        match &self.0 {
            Repr::Few(list) => {
                list.iter().any(|&member| (member as usize) < bits.len() && bits.contains(member as usize))
            }
            Repr::Many(own) if own.len() == bits.len() => own.intersects(bits),
            Repr::Many(own) => bits.iter().any(|member| own.contains(member)),
        }
    }

    /// Adds the members to a row of bits and says whether any was new.
    pub fn add_to(&self, bits: &mut BitSet) -> bool {
        match &self.0 {
            Repr::Few(list) => list.iter().fold(false, |any, &member| any | bits.insert(member as usize)),
            Repr::Many(own) => bits.union_with(own),
        }
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        match &self.0 {
            Repr::Few(list) if list.spilled() => size_of_val(&**list),
            Repr::Few(_) => 0,
            Repr::Many(bits) => bits.memory_usage() + size_of::<BitSet>(),
        }
    }
}

impl fmt::Debug for CompactSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_agree_with_rows_of_bits() {
        let len = 100;
        let multiples = |of: usize| BitSet::from_members(len, (0..len).filter(|member| member % of == 0));
        let rows: Vec<BitSet> = [1, 2, 31, 40, 50, 97]
            .map(multiples)
            .into_iter()
            .chain([BitSet::new(len), BitSet::full(len)])
            .collect();
        for a in &rows {
            let compact = CompactSet::from_bits(a);
            assert_eq!(compact, CompactSet::from_sorted(len, a.iter().map(|member| member as u32)));
            assert_eq!(compact.iter().collect::<Vec<_>>(), a.iter().collect::<Vec<_>>());
            assert_eq!((compact.count(), compact.is_empty()), (a.count(), a.is_empty()));
            assert!((0..len).all(|member| compact.contains(member) == a.contains(member)));
            for b in &rows {
                let other = CompactSet::from_bits(b);
                let mut both = a.clone();
                both.intersect_with(b);
                assert_eq!(compact.intersection(&other, len), CompactSet::from_bits(&both));
                assert_eq!(compact.intersects(&other), a.intersects(b));
                let (mut union, mut expected) = (a.clone(), a.clone());
                assert_eq!(other.add_to(&mut union), expected.union_with(b));
                assert_eq!(union, expected);
            }
        }
    }
}
