//! [`laws`](anygram_testkit::laws).

use std::rc::Rc;

use anygram_testkit::generate::{EOS, RandomCase};
use anygram_testkit::laws::*;
use anygram_testkit::oracle::{Limits, Oracle};
use anygram_testkit::text::text_of;

/// The oracle as an engine, with flaws to be found.
#[derive(Clone)]
struct Slow {
    oracle: Rc<Oracle>,
    case: Rc<RandomCase>,
    tokens: Vec<u32>,
    flaw: Flaw,
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    KeepsRefused,
    RollsBackOneLess,
    ValidatesAll,
}

impl Slow {
    fn new(case: RandomCase, flaw: Flaw) -> Self {
        Self { oracle: Rc::new(case.oracle()), case: Rc::new(case), tokens: vec![], flaw }
    }
}

impl LeftToRight for Slow {
    fn mask(&mut self) -> Vec<u32> {
        let mut words = vec![0; self.n_tokens().div_ceil(32)];
        let limits = Limits { max_extra: 2, ..Limits::default() };
        let ended = self.tokens.contains(&EOS);
        let text = text_of(&self.case.vocab, &self.tokens);
        let mask = self.oracle.mask(&self.case.vocab, &text, &self.case.alphabet, limits);
        let end = (mask.eos || ended).then_some(EOS);
        mask.tokens()
            .into_iter()
            .chain(end)
            .for_each(|token| words[token as usize / 32] |= 1 << (token % 32));
        words
    }

    fn advance(&mut self, token: u32) -> bool {
        let allowed = bit(&self.mask(), token);
        if allowed || self.flaw == Flaw::KeepsRefused {
            self.tokens.push(token);
        }
        allowed
    }

    fn rollback(&mut self, n: usize) {
        let n = n.saturating_sub(usize::from(self.flaw == Flaw::RollsBackOneLess));
        self.tokens.truncate(self.tokens.len() - n);
    }

    fn is_sentence(&mut self) -> bool {
        let ended = self.tokens.contains(&EOS);
        ended || self.oracle.is_sentence(&text_of(&self.case.vocab, &self.tokens))
    }

    fn validate(&mut self, tokens: &[u32]) -> usize {
        let mut fork = self.clone();
        let n_advanced = tokens.iter().take_while(|&&token| fork.advance(token)).count();
        if self.flaw == Flaw::ValidatesAll { tokens.len() } else { n_advanced }
    }

    fn n_tokens(&self) -> usize {
        self.case.vocab.len()
    }
}

fn holds(flaw: Flaw) -> bool {
    let check = |seed| {
        let case = RandomCase::new(seed);
        let tokens = case.tokens[0].clone();
        all(&Slow::new(case, flaw), &tokens[..tokens.len().min(3)]);
    };
    std::panic::catch_unwind(|| (0..6).for_each(check)).is_ok()
}

#[test]
fn the_oracle_keeps_the_laws() {
    assert!(holds(Flaw::None));
}

#[test]
fn flaws_are_found() {
    for flaw in [Flaw::KeepsRefused, Flaw::RollsBackOneLess, Flaw::ValidatesAll] {
        assert!(!holds(flaw));
    }
}
