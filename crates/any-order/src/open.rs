//! The tokens of a hole that are sought.

use anygram_left_to_right::mask::{self, MASK_BITS, Rest, Tokens};
use anygram_vocab::TokenId;

use crate::moves::Ending;

/// Where no more are left, they are kept as a list as well: it is quicker to ask of each where it is than of all others whether they are among them.
const FEW: usize = 64;

/// The tokens that are not in a row.
pub(crate) struct Open {
    words: Vec<u32>,
    few: Option<Vec<TokenId>>,
}

impl Open {
    /// Those outside a row, whose bits of no token are set.
    pub fn new(words: Vec<u32>) -> Self {
        let mut this = Self { words, few: None };
        this.update();
        this
    }

    /// The row: what was sought in vain is not in it.
    pub fn into_words(self) -> Vec<u32> {
        self.words
    }

    pub fn is_empty(&self) -> bool {
        match &self.few {
            Some(few) => few.is_empty(),
            None => self.words.iter().all(|&word| word == u32::MAX),
        }
    }

    pub fn contains(&self, token: TokenId) -> bool {
        !mask::get_bit(&self.words, token.index())
    }

    fn first_in(&self, tokens: &Tokens) -> Option<TokenId> {
        let quickly = self.few.as_ref().and_then(|few| tokens.first_among(few));
        quickly.unwrap_or_else(|| tokens.first_outside(&self.words))
    }

    /// One of some tokens that is sought.
    pub fn first(&self, ending: &Ending) -> Option<TokenId> {
        ending.groups.iter().find_map(|tokens| self.first_in(tokens))
    }

    /// Whether one of those that have a remainder is sought.
    pub fn has_some(&self, rest: &Rest) -> bool {
        self.first_in(&rest.tokens).is_some()
    }

    /// They are not sought any more.
    pub fn remove(&mut self, ending: &Ending) {
        ending.add_to(&mut self.words);
        self.update();
    }

    /// It is not sought any more.
    pub fn remove_one(&mut self, token: TokenId) {
        mask::set_bit(&mut self.words, token.index());
        self.update();
    }

    fn update(&mut self) {
        let n_open: u32 = self.words.iter().map(|word| word.count_zeros()).sum();
        self.few = (n_open as usize <= FEW).then(|| unset(&self.words).collect());
    }
}

/// The tokens that are not in a row.
pub(crate) fn unset(row: &[u32]) -> impl Iterator<Item = TokenId> {
    let ids = |(at, word): (usize, &u32)| {
        let mut left = !word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(TokenId::new(at * MASK_BITS + bit as usize))
        })
    };
    row.iter().enumerate().flat_map(ids)
}
