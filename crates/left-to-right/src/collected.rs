//! Tokens that are being collected: a row of bits, and the sets that they came as.

use std::sync::Arc;

use anygram_vocab::TokenId;

use crate::tokens::{Tokens, clear_bit, set_bit};

/// Of few tokens the lists are at hand, so that nobody looks for them in a row.
pub(crate) struct Collected<'a> {
    words: &'a mut [u32],
    /// Rows, each once.
    many: Vec<Arc<Tokens>>,
    few: Vec<TokenId>,
    /// Whether these are all.
    is_listed: bool,
}

/// How much was collected at some point.
#[derive(Clone, Copy, Default)]
pub(crate) struct Since {
    n_many: usize,
    n_few: usize,
}

/// Rows of one union that are kept apart; of more it is cheaper to make one.
const MANY_ROWS: usize = 4;

impl<'a> Collected<'a> {
    /// None yet: the row is empty.
    pub fn new(words: &'a mut [u32]) -> Self {
        Self { words, many: Vec::new(), few: Vec::new(), is_listed: true }
    }

    /// The row.
    pub fn words(&self) -> &[u32] {
        self.words
    }

    /// Adds a set.
    pub fn add(&mut self, tokens: &Arc<Tokens>) {
        match &**tokens {
            Tokens::Few(few) => self.few.extend_from_slice(few),
            Tokens::Many(_) | Tokens::Most(..)
                if self.many.iter().any(|known| Arc::ptr_eq(known, tokens)) =>
            {
                return;
            }
            Tokens::Many(_) | Tokens::Most(..) => self.many.push(tokens.clone()),
        }
        tokens.add_to(self.words);
    }

    /// Adds a token.
    pub fn set(&mut self, token: TokenId) {
        self.few.push(token);
        set_bit(self.words, token.index());
    }

    /// The row, to be changed by others.
    pub fn row(&mut self) -> &mut [u32] {
        self.is_listed = false;
        self.words
    }

    /// Adds what was collected elsewhere, of which the row is empty afterwards.
    pub fn take(&mut self, other: Collected<'_>) {
        let is_few = other.is_listed && other.many.is_empty();
        if is_few {
            for &token in &other.few {
                clear_bit(other.words, token.index());
                set_bit(self.words, token.index());
            }
        } else {
            self.words.iter_mut().zip(&*other.words).for_each(|(word, other)| *word |= other);
            other.words.fill(0);
        }
        self.few.extend_from_slice(&other.few);
        self.is_listed &= other.is_listed;
        for tokens in other.many {
            if !self.many.iter().any(|known| Arc::ptr_eq(known, &tokens)) {
                self.many.push(tokens);
            }
        }
    }

    /// All of them.
    pub fn tokens(&self) -> Tokens {
        let n_words = self.words.len();
        match self.is_listed && self.many.is_empty() && self.few.len() <= n_words / 8 {
            true => Tokens::new(self.few.clone(), n_words),
            false => Tokens::of_row(self.words),
        }
    }

    /// The present point.
    pub fn mark(&self) -> Since {
        Since { n_many: self.many.len(), n_few: self.few.len() }
    }

    /// What was added since, as few sets as that takes. (A row that was added before may be missing.)
    pub fn since(&self, Since { n_many, n_few }: Since) -> Box<[Arc<Tokens>]> {
        let mut sets = self.many[n_many..].to_vec();
        if sets.len() > MANY_ROWS {
            let mut row = vec![0; self.words.len()];
            sets.drain(..).for_each(|tokens| tokens.add_to(&mut row));
            sets.push(Arc::new(Tokens::of_row(&row)));
        }
        if self.few.len() > n_few {
            sets.push(Arc::new(Tokens::new(self.few[n_few..].to_vec(), self.words.len())));
        }
        sets.into()
    }
}
