//! Sets of tokens, and rows of masks.

use std::sync::Arc;

use anygram_bits::Random;
use anygram_vocab::{TokenId, TokenTrie};

/// Masks are rows of 32-bit words, bit `id % 32` of word `id / 32`, as serving engines share them.
pub const MASK_BITS: usize = u32::BITS as usize;

/// Words of a row that are looked at together.
const STRETCH: usize = 64;

/// Sets a token's bit.
pub fn set_bit(words: &mut [u32], id: usize) {
    words[id / MASK_BITS] |= 1 << (id % MASK_BITS);
}

/// Sets the bits of all tokens from one on and before another.
fn set_bits(words: &mut [u32], from: usize, to: usize) {
    let (first, last) = (from / MASK_BITS, to / MASK_BITS);
    let (low, high) = (u32::MAX << (from % MASK_BITS), !(u32::MAX << (to % MASK_BITS)));
    match words.get_mut(first..last) {
        Some([begin, whole @ ..]) => {
            *begin |= low;
            whole.fill(u32::MAX);
            if high != 0 {
                words[last] |= high;
            }
        }
        _ if from < to => words[first] |= low & high,
        _ => {}
    }
}

/// Clears a token's bit.
pub fn clear_bit(words: &mut [u32], id: usize) {
    words[id / MASK_BITS] &= !(1 << (id % MASK_BITS));
}

/// Whether a token's bit is set.
#[inline]
pub fn get_bit(words: &[u32], id: usize) -> bool {
    words[id / MASK_BITS] >> (id % MASK_BITS) & 1 == 1
}

/// A set of tokens: a sorted list while that is smaller than a row of a mask. Two are equal if they are
/// written down in the same way.
#[derive(PartialEq, Eq, Debug)]
pub enum Tokens {
    /// A list.
    Few(Box<[TokenId]>),
    /// A row of a mask.
    Many(Arc<[u32]>),
    /// Those of a row but for a few, sorted, that are in it: many sets differ little from one that all share.
    Most(Arc<[u32]>, Box<[TokenId]>),
}

impl Tokens {
    /// The set of some tokens; `n_words` is the length of a row.
    pub fn new(mut tokens: Vec<TokenId>, n_words: usize) -> Self {
        // A list costs about as much as a row when it has an eighth of its words: its bits are scattered.
        if tokens.len() <= n_words / 8 {
            // Mostly they are some lists, each in order, which this sort makes use of.
            tokens.sort();
            tokens.dedup();
            return Self::Few(tokens.into());
        }
        let mut words = vec![0; n_words];
        tokens.iter().for_each(|token| set_bit(&mut words, token.index()));
        Self::Many(words.into())
    }

    /// Those at some ranges of sorted positions of a trie. Cost: their number; or, of a vocabulary's trie,
    /// the number of the others and the words of a row.
    pub(crate) fn of_ranges(trie: &TokenTrie, ranges: &[(u32, u32)], n_words: usize) -> Self {
        let tokens = ranges.iter().flat_map(|&(lo, hi)| &trie.order()[lo as usize..hi as usize]);
        let n_tokens: usize = ranges.iter().map(|(lo, hi)| (hi - lo) as usize).sum();
        if n_tokens <= n_words / 8 {
            let mut list = Vec::with_capacity(n_tokens);
            list.extend(tokens);
            return Self::new(list, n_words);
        }
        let mut words = vec![0; n_words];
        if 2 * n_tokens < trie.n_tokens() || trie.id_ranges().is_empty() {
            tokens.for_each(|token| set_bit(&mut words, token.index()));
            return Self::Many(words.into());
        }
        trie.id_ranges().iter().for_each(|ids| set_bits(&mut words, ids.start as usize, ids.end as usize));
        let mut ranges = ranges.to_vec();
        // Mostly they are some lists, each in order, which this sort makes use of.
        ranges.sort();
        let mut at = 0;
        for (lo, hi) in ranges.into_iter().chain([(trie.n_tokens() as u32, u32::MAX)]) {
            let others = trie.order().get(at as usize..lo as usize).unwrap_or_default();
            others.iter().for_each(|token| clear_bit(&mut words, token.index()));
            at = at.max(hi);
        }
        Self::Many(words.into())
    }

    /// Those of a row. Cost: O(words), or as many as it takes to see that they are many.
    pub fn of_row(words: &[u32]) -> Self {
        let (most, mut tokens) = (words.len() / 8, Vec::new());
        for (stretch, own) in words.chunks(STRETCH).enumerate() {
            // Mostly nothing, which is found out for several words at once.
            if own.iter().fold(0, |all, word| all | word) == 0 {
                continue;
            }
            for (at, &word) in own.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let id = (stretch * STRETCH + at) * MASK_BITS + left.trailing_zeros() as usize;
                    tokens.push(TokenId::new(id));
                    left &= left - 1;
                }
            }
            if tokens.len() > most {
                return Self::Many(words.into());
            }
        }
        Self::Few(tokens.into())
    }

    /// Writes them as a row.
    pub fn write_to(&self, words: &mut [u32]) {
        match self {
            Self::Few(_) => {
                words.fill(0);
                self.add_to(words);
            }
            Self::Many(own) => {
                words[..own.len()].copy_from_slice(own);
                words[own.len()..].fill(0);
            }
            Self::Most(of, gone) => {
                words[..of.len()].copy_from_slice(of);
                words[of.len()..].fill(0);
                gone.iter().for_each(|token| clear_bit(words, token.index()));
            }
        }
    }

    /// The row that it is, or that it is but for a few, and these.
    fn row(&self) -> Option<(&[u32], &[TokenId])> {
        match self {
            Self::Few(_) => None,
            Self::Many(words) => Some((words, &[])),
            Self::Most(of, gone) => Some((of, gone)),
        }
    }

    /// One of the tokens whose bits are in a word of a row, and among some, but for a few.
    fn in_word(words: &[u32], gone: &[TokenId], (at, among): (usize, u32)) -> Option<TokenId> {
        let id = |left: u32| TokenId::new(at * MASK_BITS + left.trailing_zeros() as usize);
        let mut left = words[at] & among;
        while left != 0 && gone.binary_search(&id(left)).is_ok() {
            left &= left - 1;
        }
        (left != 0).then(|| id(left))
    }

    /// How many there are. Cost of a row: O(words).
    pub fn count(&self) -> usize {
        match self {
            Self::Few(tokens) => tokens.len(),
            Self::Many(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
            Self::Most(of, gone) => {
                of.iter().map(|word| word.count_ones() as usize).sum::<usize>() - gone.len()
            }
        }
    }

    /// The lowest, if there is one. Cost of a row: the words before it.
    pub fn first(&self) -> Option<TokenId> {
        match (self, self.row()) {
            (Self::Few(tokens), _) => tokens.first().copied(),
            (_, row) => row.and_then(|(words, gone)| {
                (0..words.len()).find_map(|at| Self::in_word(words, gone, (at, u32::MAX)))
            }),
        }
    }

    /// One of them, if there is one. Cost of a row: as long as its tokens are rare.
    pub fn some(&self, random: &mut Random) -> Option<TokenId> {
        match (self, self.row()) {
            (Self::Few(tokens), _) => (!tokens.is_empty()).then(|| *random.choose(tokens)),
            (_, row) => row.and_then(|(words, gone)| {
                // From some bit on, and around.
                let from = random.below((words.len() * MASK_BITS).max(1));
                let (word, high) = (from / MASK_BITS, u32::MAX << (from % MASK_BITS));
                let others = (word + 1..words.len()).chain(0..word).map(|at| (at, u32::MAX));
                let first = (!words.is_empty()).then_some((word, high));
                let parts = first.into_iter().chain(others).chain(first.map(|_| (word, !high)));
                parts.into_iter().find_map(|part| Self::in_word(words, gone, part))
            }),
        }
    }

    /// Those that are not in a row, in order. Cost of a row: O(words), and that of those.
    pub fn all_outside(&self, words: &[u32]) -> Vec<TokenId> {
        let Some((own, gone)) = self.row() else {
            let Self::Few(tokens) = self else { return Vec::new() };
            return tokens.iter().copied().filter(|token| !get_bit(words, token.index())).collect();
        };
        let mut found = Vec::new();
        for (at, (&own, &word)) in own.iter().zip(words).enumerate() {
            let mut left = own & !word;
            while left != 0 {
                found.push(TokenId::new(at * MASK_BITS + left.trailing_zeros() as usize));
                left &= left - 1;
            }
        }
        found.retain(|token| gone.binary_search(token).is_err());
        found
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Few(tokens) if tokens.is_empty())
    }

    /// The lowest that is not in a row. Cost: O(words).
    pub fn first_outside(&self, words: &[u32]) -> Option<TokenId> {
        match (self, self.row()) {
            (Self::Few(tokens), _) => tokens.iter().copied().find(|token| !get_bit(words, token.index())),
            (_, row) => row.and_then(|row| Self::outside(row, words)),
        }
    }

    /// The lowest of a row, but for a few, that is not in another.
    fn outside((own, gone): (&[u32], &[TokenId]), words: &[u32]) -> Option<TokenId> {
        // Stretch by stretch, so that several words are looked at at once.
        for (stretch, (own, words)) in own.chunks(STRETCH).zip(words.chunks(STRETCH)).enumerate() {
            if own.iter().zip(words).fold(0, |left, (&own, &word)| left | own & !word) == 0 {
                continue;
            }
            for (at, (&own, &word)) in own.iter().zip(words).enumerate() {
                let mut left = own & !word;
                while left != 0 {
                    let id = (stretch * STRETCH + at) * MASK_BITS + left.trailing_zeros() as usize;
                    if gone.binary_search(&TokenId::new(id)).is_err() {
                        return Some(TokenId::new(id));
                    }
                    left &= left - 1;
                }
            }
        }
        None
    }

    /// Adds them to a row.
    pub fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => tokens.iter().for_each(|token| set_bit(words, token.index())),
            Self::Many(own) => words.iter_mut().zip(&**own).for_each(|(word, &own)| *word |= own),
            Self::Most(of, gone) => {
                let known: Vec<bool> = gone.iter().map(|token| get_bit(words, token.index())).collect();
                words.iter_mut().zip(&**of).for_each(|(word, &own)| *word |= own);
                for (token, _) in gone.iter().zip(known).filter(|&(_, known)| !known) {
                    clear_bit(words, token.index());
                }
            }
        }
    }

    /// Those that are not in another set: the same set if that is all. Of a row, a few are left out in a list
    /// beside it.
    pub(crate) fn without(self: &Arc<Self>, gone: &Self) -> Arc<Self> {
        let (words, known) = match &**self {
            Self::Few(tokens) => {
                let is_left = |token: &&TokenId| !gone.contains(**token);
                if tokens.iter().all(|token| is_left(&token)) {
                    return self.clone();
                }
                return Arc::new(Self::Few(tokens.iter().filter(is_left).copied().collect()));
            }
            Self::Many(words) => (words, &[][..]),
            Self::Most(of, known) => (of, &**known),
        };
        if let Self::Few(gone) = gone {
            let own = gone.iter().copied().filter(|&token| self.contains(token));
            let mut all: Vec<TokenId> = known.iter().copied().chain(own).collect();
            if all.len() == known.len() {
                return self.clone();
            }
            if all.len() <= words.len() / 8 {
                all.sort_unstable();
                return Arc::new(Self::Most(words.clone(), all.into()));
            }
        }
        let mut left = vec![0; words.len()];
        self.write_to(&mut left);
        let before: Vec<u32> = if known.is_empty() { Vec::new() } else { left.clone() };
        gone.remove_from(&mut left);
        let before = if known.is_empty() { &**words } else { &before };
        if *left == *before { self.clone() } else { Arc::new(Self::Many(left.into())) }
    }

    /// With some more.
    pub(crate) fn with(&self, more: Vec<TokenId>, n_words: usize) -> Self {
        if let Self::Few(tokens) = self {
            return Self::new(tokens.iter().copied().chain(more).collect(), n_words);
        }
        let mut words = vec![0; n_words];
        self.write_to(&mut words);
        more.iter().for_each(|token| set_bit(&mut words, token.index()));
        Self::Many(words.into())
    }

    /// Whether all of them are in a row.
    pub fn is_subset(&self, words: &[u32]) -> bool {
        match self {
            Self::Few(tokens) => tokens.iter().all(|token| get_bit(words, token.index())),
            Self::Many(own) => words.iter().zip(&**own).all(|(&word, &own)| own & !word == 0),
            Self::Most(of, gone) => Self::outside((of, gone), words).is_none(),
        }
    }

    /// Whether a token is one of them. Cost: O(log n).
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Few(tokens) => tokens.binary_search(&token).is_ok(),
            Self::Many(own) => get_bit(own, token.index()),
            Self::Most(of, gone) => get_bit(of, token.index()) && gone.binary_search(&token).is_err(),
        }
    }

    /// The lowest of some tokens, sorted, that is one of them, where that is quicker to say than to look
    /// through them.
    pub fn first_among(&self, few: &[TokenId]) -> Option<Option<TokenId>> {
        let is_quick = match self {
            Self::Few(tokens) => {
                few.len() * tokens.len().checked_ilog2().map_or(1, |log| log as usize + 1) < tokens.len()
            }
            Self::Many(own) | Self::Most(own, _) => few.len() < own.len(),
        };
        is_quick.then(|| few.iter().copied().find(|&token| self.contains(token)))
    }

    /// The members, if they are a list.
    pub(crate) fn listed(&self) -> &[TokenId] {
        match self {
            Self::Few(tokens) => tokens,
            Self::Many(_) | Self::Most(..) => &[],
        }
    }

    pub(crate) fn remove_from(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => {
                tokens.iter().for_each(|token| {
                    words[token.index() / MASK_BITS] &= !(1 << (token.index() % MASK_BITS))
                });
            }
            Self::Many(own) => words.iter_mut().zip(&**own).for_each(|(word, &own)| *word &= !own),
            Self::Most(of, gone) => {
                let known: Vec<bool> = gone.iter().map(|token| get_bit(words, token.index())).collect();
                words.iter_mut().zip(&**of).for_each(|(word, &own)| *word &= !own);
                for (token, _) in gone.iter().zip(known).filter(|&(_, known)| known) {
                    set_bit(words, token.index());
                }
            }
        }
    }

    /// Bytes on the heap, without a row that others have too.
    pub fn memory_usage(&self) -> usize {
        match self {
            Self::Few(tokens) | Self::Most(_, tokens) => size_of_val(&**tokens),
            Self::Many(words) => size_of_val(&**words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N_WORDS: usize = 200;

    fn listed(tokens: &Tokens) -> Vec<TokenId> {
        let all = (0..N_WORDS * MASK_BITS).map(TokenId::new);
        all.filter(|&token| tokens.contains(token)).collect()
    }

    fn drawn(random: &mut Random, percent: usize) -> Vec<TokenId> {
        let all = (0..N_WORDS * MASK_BITS).map(TokenId::new);
        all.filter(|_| random.chance(percent)).collect()
    }

    #[test]
    fn ranges_of_a_trie_are_their_tokens() {
        let mut n_many = [0; 2];
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let n_tokens = *random.choose(&[0, 1, 40, 2_000]);
            let (from, every) = (random.below(70), *random.choose(&[1, 1, 1, 3, 50]));
            let mut spelled: Vec<(TokenId, [u8; 2])> = Vec::new();
            for at in 0..n_tokens {
                if every == 1 || !random.chance(100 / every) {
                    let bytes = [random.below(256) as u8, random.below(256) as u8];
                    spelled.push((TokenId::new(from + at), bytes));
                }
            }
            let trie = TokenTrie::new(spelled.iter().map(|(token, bytes)| (*token, &bytes[..])));
            let mut ranges: Vec<(u32, u32)> = (0..random.below(9))
                .map(|_| (random.below(trie.n_tokens() + 1) as u32, random.below(trie.n_tokens() + 1) as u32))
                .map(|(one, other)| (one.min(other), one.max(other)))
                .collect();
            ranges.extend(random.chance(30).then_some((0, trie.n_tokens() as u32)));
            let tokens = Tokens::of_ranges(&trie, &ranges, N_WORDS);
            n_many[usize::from(!trie.id_ranges().is_empty())] +=
                usize::from(matches!(tokens, Tokens::Many(_)));
            let all = ranges.iter().flat_map(|&(lo, hi)| &trie.order()[lo as usize..hi as usize]);
            let must = Tokens::new(all.copied().collect(), N_WORDS);
            assert_eq!(listed(&tokens), listed(&must), "seed {seed}");
        }
        assert!(n_many.iter().all(|&n| n > 20), "{n_many:?}");
    }

    #[test]
    fn sets_beside_a_row_are_what_rows_are() {
        let mut n_beside = 0;
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let density = *random.choose(&[1, 50, 99]);
            let mut set = Arc::new(Tokens::new(drawn(&mut random, density), N_WORDS));
            for _ in 0..3 {
                let before = listed(&set);
                let (n_gone, all) = (*random.choose(&[0, 1, 9, 20, 2_000]), N_WORDS * MASK_BITS);
                let gone: Vec<TokenId> = (0..n_gone).map(|_| TokenId::new(random.below(all))).collect();
                set = set.without(&Tokens::new(gone.clone(), N_WORDS));
                let left = before.iter().copied().filter(|token| !gone.contains(token));
                let left: Vec<TokenId> = left.collect();
                n_beside += usize::from(matches!(*set, Tokens::Most(..)));
                let plain = Tokens::new(left.clone(), N_WORDS);
                assert_eq!(listed(&set), left, "seed {seed}");
                assert_eq!((set.count(), set.first()), (left.len(), left.first().copied()), "seed {seed}");
                assert!(set.some(&mut random).is_none_or(|token| left.contains(&token)), "seed {seed}");
                let more = drawn(&mut random, 1);
                assert_eq!(listed(&set.with(more.clone(), N_WORDS)), listed(&plain.with(more, N_WORDS)));
                let mut row = vec![0; N_WORDS];
                let others = *random.choose(&[0, 50, 99, 100]);
                drawn(&mut random, others).iter().for_each(|token| set_bit(&mut row, token.index()));
                if random.chance(50) {
                    plain.add_to(&mut row);
                }
                assert_eq!(set.is_subset(&row), plain.is_subset(&row), "seed {seed}");
                assert_eq!(set.first_outside(&row), plain.first_outside(&row), "seed {seed}");
                let ways: [fn(&Tokens, &mut [u32]); 3] =
                    [Tokens::add_to, Tokens::remove_from, Tokens::write_to];
                for way in ways {
                    let (mut is, mut must) = (row.clone(), row.clone());
                    way(&set, &mut is);
                    way(&plain, &mut must);
                    assert!(is == must, "seed {seed}");
                }
            }
        }
        assert!(n_beside > 200, "{n_beside}");
    }
}
