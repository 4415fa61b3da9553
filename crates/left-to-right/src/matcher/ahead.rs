//! Masks of situations that an output may come to, computed before it is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anygram_bits::ErrorKind;
use anygram_bits::work::Cancel;
use anygram_vocab::TokenId;
use rustc_hash::FxHashSet;

use super::Matcher;
use crate::error::MatchError;
use crate::tokens::get_bit;

/// So many tokens of a mask are looked at, those with the lowest ids.
const LIKELY: usize = 32;

/// How likely a token is in proportion to others. Vocabularies that merge pairs number tokens roughly by how
/// frequent they are, and a word is as frequent as one over its rank (Zipf). The first ids are single bytes,
/// whatever their frequency: with a thousand added they do not outweigh all others.
fn weight(token: TokenId) -> f64 {
    1.0 / (f64::from(token.0) + 1_000.0)
}

impl Matcher {
    /// Computes masks of situations that this output may come to, the likeliest first, for a thread that has
    /// nothing else to do while the model computes: when the output comes there, its mask is looked up.
    /// Returns how many situations were looked at, at most `most`.
    ///
    /// Masks are the same with and without, and the output itself stays as it is. What is likely is guessed
    /// by the ids of tokens, so this helps where much is new, and then with some of it. It ends soon after it
    /// is cancelled, also in the middle of a mask: outputs on the same tables wait for it until then. A
    /// situation in which a limit is hit is left out, for its own mask says so if an output comes there.
    /// Cost: for each situation a mask, and a fork of the output.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use anygram_bits::work::Cancel;
    /// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
    /// # use anygram_vocab::Vocabulary;
    /// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
    /// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
    /// # let constraint = Constraint::new(language, Vocabulary::builtin())?;
    /// // The constraint has the grammar  start: "(" start ")" | "x"
    /// let mut matcher = constraint.matcher()?;
    /// let (ahead, cancel) = (matcher.fork(), Cancel::new());
    /// let worker = std::thread::spawn({
    ///     let cancel = cancel.clone();
    ///     move || ahead.work_ahead(100, &cancel)
    /// });
    /// // The model computes; then:
    /// cancel.cancel();
    /// matcher.advance_text("(x")?;
    /// assert!(worker.join().is_ok_and(|n_situations| n_situations <= 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn work_ahead(&self, most: usize, cancel: &Cancel) -> usize {
        let mut row = vec![0; self.constraint.mask_words()];
        let mut seen = FxHashSet::default();
        // Those that were looked at, and how all are come to from these.
        let (mut outputs, mut steps) = (Vec::new(), vec![None]);
        // What is less likely costs more.
        let mut open = BinaryHeap::from([Reverse((0, 0))]);
        while outputs.len() < most
            && !cancel.is_cancelled()
            && let Some(Reverse((cost, at))) = open.pop()
        {
            let mut output = match steps[at] {
                None => self.fork(),
                Some((from, token)) => {
                    let from: &Self = &outputs[from];
                    let mut next = from.fork();
                    match next.advance(token) {
                        Ok(()) if !next.has_ended() => next,
                        _ => continue,
                    }
                }
            };
            // Equal readings are one list, as long as parser states are not renewed.
            let position = output.last();
            let is_new = seen.insert(Arc::as_ptr(&position.frontier) as *const () as usize);
            if !is_new && position.recall.values().is_empty() {
                continue;
            }
            match output.mask_until(cancel, &mut row) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Cancelled => break,
                Err(_) => continue,
            }
            let ids = (0..self.constraint.vocabulary().len()).map(TokenId::new);
            let likely = ids.filter(|token| get_bit(&row, token.index())).take(LIKELY);
            let likely: Vec<TokenId> = likely.collect();
            let all: f64 = likely.iter().copied().map(weight).sum();
            for token in likely {
                // In bits, which add up along a text.
                let unlikely = -(weight(token) / all).log2() * 1_024.0;
                open.push(Reverse((cost + unlikely as u64, steps.len())));
                steps.push(Some((outputs.len(), token)));
            }
            outputs.push(output);
        }
        outputs.len()
    }

    /// The mask, unless it is cancelled meanwhile.
    fn mask_until(&mut self, cancel: &Cancel, words: &mut [u32]) -> Result<(), MatchError> {
        self.renewing(|this, session| {
            session.stepper.cancel = Some(cancel.clone());
            let result = this.try_mask(session, this.last(), words);
            session.stepper.cancel = None;
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::lock;
    use crate::{Constraint, Language, LanguageOptions};
    use anygram_vocab::Vocabulary;

    fn matcher() -> Matcher {
        let grammar = r#"start: "(" start ")" | /[a-z]+/"#;
        let grammar = anygram_grammar::lark::parse(grammar, &Default::default()).unwrap();
        let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
        Constraint::new(language, Vocabulary::builtin()).unwrap().matcher().unwrap()
    }

    #[test]
    fn a_mask_ends_in_its_middle_and_leaves_nothing_behind() {
        let (mut matcher, cancel) = (matcher(), Cancel::new());
        let mut words = vec![0; matcher.constraint.mask_words()];
        cancel.cancel();
        let error = matcher.mask_until(&cancel, &mut words).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        // Who comes next is not cancelled, also if that one panicked.
        assert_eq!(matcher.mask().unwrap(), self::matcher().mask().unwrap());
        lock(&matcher.session).stepper.cancel = Some(cancel);
        matcher.advance_text("((a)").unwrap();
        let mut other = self::matcher();
        other.advance_text("((a)").unwrap();
        assert_eq!(matcher.mask().unwrap(), other.mask().unwrap());
    }
}
