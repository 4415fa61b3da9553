//! Sets of small numbers, copied like numbers: the positions of a text that brute force can look at.

/// A set of numbers below [`SmallSet::BOUND`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SmallSet([u64; 4]);

impl SmallSet {
    /// No member reaches it.
    pub const BOUND: usize = 256;

    /// The set of one number.
    ///
    /// # Panics
    /// If the number is [`SmallSet::BOUND`] or more: brute force is for short texts.
    pub fn of(member: usize) -> Self {
        assert!(member < Self::BOUND, "brute force takes texts of at most {} symbols", Self::BOUND - 1);
        let mut words = [0; 4];
        words[member / 64] = 1 << (member % 64);
        Self(words)
    }

    /// Adds the members of another set; says whether any is new.
    pub fn union_with(&mut self, other: Self) -> bool {
        let before = *self;
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
        *self != before
    }

    /// Whether it has the member.
    pub fn contains(self, member: usize) -> bool {
        member < Self::BOUND && self.0[member / 64] >> (member % 64) & 1 != 0
    }

    /// The members, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..4).flat_map(move |at| {
            let mut word = self.0[at];
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(64 * at + bit)
            })
        })
    }
}
