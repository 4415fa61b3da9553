//! The tokens of a hole that are sought.

use std::cell::RefCell;
use std::sync::Arc;

use anygram_left_to_right::mask::Rest;
use anygram_left_to_right::tokens::{MASK_BITS, Tokens, get_bit, set_bit};
use anygram_vocab::TokenId;
use rustc_hash::FxHashMap;

use crate::moves::Ending;

/// Where no more are left, they are kept as a list as well: it is quicker to ask of each where it is than of
/// all others whether they are among them.
const FEW: usize = 64;

/// Smaller sets are quicker looked through than looked up.
const SMALL: usize = 8;

/// A set and one of it that was open.
type Known = (Arc<Tokens>, Option<TokenId>);

/// The tokens that are not in a row.
pub(crate) struct Open {
    words: Vec<u32>,
    n_open: usize,
    few: Option<Vec<TokenId>>,
    /// Of sets that were asked about one that was open, by where they are; they are kept, so that no other
    /// comes to be there.
    known: RefCell<FxHashMap<*const Tokens, Known>>,
    /// The same of what is left of tokens, by its number.
    rests: RefCell<FxHashMap<u64, Option<TokenId>>>,
}

impl Open {
    /// Those outside a row, whose bits of no token are set.
    pub fn new(words: Vec<u32>) -> Self {
        let mut this =
            Self { words, n_open: 0, few: None, known: RefCell::default(), rests: RefCell::default() };
        this.count();
        this
    }

    /// The row: what was sought in vain is not in it.
    pub fn into_words(self) -> Vec<u32> {
        self.words
    }

    pub fn is_empty(&self) -> bool {
        self.n_open == 0
    }

    pub fn contains(&self, token: TokenId) -> bool {
        !get_bit(&self.words, token.index())
    }

    fn first_in(&self, tokens: &Tokens) -> Option<TokenId> {
        let quickly = self.few.as_ref().and_then(|few| tokens.first_among(few));
        quickly.unwrap_or_else(|| tokens.first_outside(&self.words))
    }

    /// What was said before if it still holds: what was not open is not any more.
    fn still(&self, known: Option<Option<TokenId>>) -> Option<Option<TokenId>> {
        known.filter(|known| known.is_none_or(|first| self.contains(first)))
    }

    /// One of some tokens that is sought.
    pub fn first(&self, ending: &Ending) -> Option<TokenId> {
        // What most endings come to, without a look into their groups, which are all over the memory.
        let lowest = ending.first?;
        if self.contains(lowest) {
            return Some(lowest);
        }
        if ending.n_tokens == 1 {
            return None;
        }
        ending.groups.iter().find_map(|tokens| {
            if matches!(&**tokens, Tokens::Few(few) if few.len() <= SMALL) {
                return self.first_in(tokens);
            }
            let mut known = self.known.borrow_mut();
            let place = Arc::as_ptr(tokens);
            self.still(known.get(&place).map(|(_, first)| *first)).unwrap_or_else(|| {
                let first = self.first_in(tokens);
                known.insert(place, (tokens.clone(), first));
                first
            })
        })
    }

    /// Whether one of those that have a remainder is sought.
    pub fn has_some(&self, rest: &Rest) -> bool {
        let mut known = self.rests.borrow_mut();
        let first = self.still(known.get(&rest.id).copied()).unwrap_or_else(|| {
            let first = self.first_in(&rest.tokens);
            known.insert(rest.id, first);
            first
        });
        first.is_some()
    }

    /// They are not sought any more.
    pub fn remove(&mut self, ending: &Ending) {
        for tokens in ending.groups.iter() {
            match &**tokens {
                Tokens::Few(few) => few.iter().for_each(|&token| self.remove_one(token)),
                Tokens::Many(_) | Tokens::Most(..) => {
                    tokens.add_to(&mut self.words);
                    self.count();
                }
            }
        }
    }

    /// It is not sought any more.
    pub fn remove_one(&mut self, token: TokenId) {
        if !self.contains(token) {
            return;
        }
        set_bit(&mut self.words, token.index());
        self.n_open -= 1;
        match &mut self.few {
            Some(few) => few.retain(|&other| other != token),
            None => self.list(),
        }
    }

    fn count(&mut self) {
        self.n_open = self.words.iter().map(|word| word.count_zeros() as usize).sum();
        self.list();
    }

    fn list(&mut self) {
        self.few = (self.n_open <= FEW).then(|| unset(&self.words).collect());
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
