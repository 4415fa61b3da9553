//! Token masks: which tokens of a vocabulary are allowed.
//!
//! A mask has one bit per token id: bit `id % 32` of word `id / 32`, the layout that samplers read
//! (XGrammar's and llguidance's bitmasks are the same). It is a plain value; who wants to fill a row of a
//! tensor writes words and needs no [`TokenMask`].
//!
//! Costs, with n the number of ids: [`contains`](TokenMask::contains) O(1), everything else O(n / 32) and the
//! ids that it yields; [`apply_to_logits`](TokenMask::apply_to_logits) O(n).

use std::fmt;

use half::{bf16, f16};

use crate::TokenId;

const BITS: usize = u32::BITS as usize;

/// A set of tokens: those that are allowed.
///
/// ```
/// use anygram_vocab::{TokenId, TokenMask};
///
/// let mut mask = TokenMask::new(70);
/// mask.insert(TokenId(3));
/// mask.insert(TokenId(64));
/// assert_eq!(mask.count(), 2);
/// assert_eq!(mask.iter().collect::<Vec<_>>(), [TokenId(3), TokenId(64)]);
/// assert_eq!(mask.words(), [8, 0, 1]);
///
/// let mut logits = [1.0_f32; 72]; // a model with two ids of padding
/// mask.apply_to_logits(&mut logits);
/// assert!(logits[3] == 1.0 && logits[4] == f32::NEG_INFINITY && logits[71] == f32::NEG_INFINITY);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct TokenMask {
    /// No bit is set from `n_tokens` on.
    words: Vec<u32>,
    n_tokens: usize,
}

impl TokenMask {
    /// The mask of a vocabulary with this many ids that allows none of them.
    pub fn new(n_tokens: usize) -> Self {
        Self { words: vec![0; n_tokens.div_ceil(BITS)], n_tokens }
    }

    /// The mask with these words. Words that are missing count as zero; bits from `n_tokens` on are dropped.
    pub fn from_words(mut words: Vec<u32>, n_tokens: usize) -> Self {
        words.resize(n_tokens.div_ceil(BITS), 0);
        if let (Some(last), used @ 1..) = (words.last_mut(), n_tokens % BITS) {
            *last &= (1 << used) - 1;
        }
        Self { words, n_tokens }
    }

    /// The number of ids that it speaks of, allowed or not.
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// The words: bit `id % 32` of word `id / 32`.
    #[doc(alias("bitmask", "bitmap"))]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The words, owned.
    pub fn into_words(self) -> Vec<u32> {
        self.words
    }

    /// Whether the token is allowed; ids that the vocabulary lacks are not.
    #[doc(alias("is_allowed", "test"))]
    pub fn contains(&self, token: TokenId) -> bool {
        let id = token.index();
        self.words.get(id / BITS).is_some_and(|word| word >> (id % BITS) & 1 != 0)
    }

    /// Allows a token; an id that the vocabulary lacks changes nothing.
    #[doc(alias = "allow_token")]
    pub fn insert(&mut self, token: TokenId) {
        if token.index() < self.n_tokens {
            self.words[token.index() / BITS] |= 1 << (token.index() % BITS);
        }
    }

    /// Forbids a token.
    #[doc(alias = "disallow_token")]
    pub fn remove(&mut self, token: TokenId) {
        if token.index() < self.n_tokens {
            self.words[token.index() / BITS] &= !(1 << (token.index() % BITS));
        }
    }

    /// The number of allowed tokens.
    #[doc(alias("num_set", "len"))]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no token is allowed.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The allowed tokens, by their ids.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(TokenId::new(at * BITS + bit))
            })
        })
    }

    /// Whether `other` allows all that this allows.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.iter().all(|token| other.contains(token))
    }

    /// The only token that is allowed, if it is one.
    pub fn only(&self) -> Option<TokenId> {
        let mut tokens = self.iter();
        tokens.next().filter(|_| tokens.next().is_none())
    }

    /// Sets the logit of each token that is not allowed to minus infinity. Logits beyond the vocabulary, as
    /// of models whose output layer is padded, belong to no token and are set to minus infinity too; where
    /// there are fewer logits than tokens, the last tokens have none.
    #[doc(alias("apply_token_bitmask_inplace", "apply_to_logits_inplace"))]
    pub fn apply_to_logits<L: Logit>(&self, logits: &mut [L]) {
        for (at, part) in logits.chunks_mut(BITS).enumerate() {
            let word = self.words.get(at).copied().unwrap_or(0);
            match word {
                u32::MAX => {}
                0 => part.fill(L::NEG_INFINITY),
                _ => {
                    for (bit, logit) in part.iter_mut().enumerate() {
                        if word >> bit & 1 == 0 {
                            *logit = L::NEG_INFINITY;
                        }
                    }
                }
            }
        }
    }
}

impl fmt::Debug for TokenMask {
    /// The number of allowed tokens and the first of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<usize> = self.iter().take(8).map(TokenId::index).collect();
        write!(f, "TokenMask({} of {}: {first:?}", self.count(), self.n_tokens)?;
        f.write_str(if self.count() > first.len() { " …)" } else { ")" })
    }
}

impl<'a> IntoIterator for &'a TokenMask {
    type Item = TokenId;
    type IntoIter = Box<dyn Iterator<Item = TokenId> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl AsRef<[u32]> for TokenMask {
    fn as_ref(&self) -> &[u32] {
        &self.words
    }
}

/// A number that models give as a logit: `f32`, `f64`, `half::f16` or `half::bf16`.
pub trait Logit: Copy + sealed::Sealed {
    /// The logit of what cannot be drawn.
    const NEG_INFINITY: Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! logits {
    ($($number:ty)*) => {$(
        impl sealed::Sealed for $number {}
        impl Logit for $number {
            const NEG_INFINITY: Self = <$number>::NEG_INFINITY;
        }
    )*};
}

logits!(f32 f64 f16 bf16);
