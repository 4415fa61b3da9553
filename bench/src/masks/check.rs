//! Checks the answers: compares masks with what single tokens do.

use anygram::{GrammarFormat, Matcher, TokenId, Vocabulary};
use anygram_bits::Random;
use anygram_left_to_right::tokens::get_bit;

use super::engine::matcher;

/// One step in so many has its mask compared with single tokens.
const EVERY: usize = 8;
/// So many set bits of a mask are compared, and as many others.
const BITS: usize = 12;

/// What was compared, and what is wrong.
#[derive(Default)]
pub struct Checked {
    pub masks: usize,
    pub bits: usize,
    pub wrong: Vec<String>,
}

/// Decodes texts as far as they are in the language and compares bits of masks, set or not, with `validate`,
/// which reads single tokens. The bits of the tokens that end the text are compared with `is_sentence` at
/// each step.
///
/// Uses tables of its own, so that what is measured later is as fresh as it says.
pub fn check(grammar: &str, vocabulary: &Vocabulary, texts: &[&[u32]]) -> Result<Checked, String> {
    let mut matcher = matcher(GrammarFormat::Lark, grammar, vocabulary)?;
    let mut words = vec![0; matcher.constraint().mask_words()];
    let (mut random, mut checked) = (Random::new(1), Checked::default());
    for (number, text) in texts.iter().enumerate() {
        matcher.reset();
        for at in 0..=text.len() {
            let place = || format!("text {}, token {at}", number + 1);
            // The ends, where the text may stop, always.
            if at == 0 || at == text.len() || random.below(EVERY) == 0 {
                if let Err(error) = matcher.mask_into(&mut words) {
                    checked.wrong.push(format!("{}: {error}", place()));
                    break;
                }
                let found = bits(&mut matcher, vocabulary, &words, &mut random, &mut checked);
                checked.wrong.extend(found.into_iter().map(|found| format!("{}: {found}", place())));
            }
            let Some(&token) = text.get(at) else { break };
            if matcher.advance(TokenId(token)).is_err() {
                break;
            }
        }
    }
    Ok(checked)
}

/// The wrong bits of a sample.
fn bits(
    matcher: &mut Matcher,
    vocabulary: &Vocabulary,
    words: &[u32],
    random: &mut Random,
    checked: &mut Checked,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let n = vocabulary.len();
    for &end in vocabulary.eos() {
        if get_bit(words, end.index()) != matcher.is_sentence() {
            wrong.push(format!(
                "the bit of {}, which ends the text, is {}",
                end.0,
                get_bit(words, end.index())
            ));
        }
    }
    for sample in 0..2 * BITS {
        let is_set = sample % 2 == 0;
        // From a random place on, the first bit of the kind that is looked for.
        let from = random.below(n);
        let found = (from..n).chain(0..from).find(|&id| get_bit(words, id) == is_set);
        let Some(id) = found else { continue };
        let token = TokenId(id as u32);
        match matcher.validate(&[token]) {
            Ok(count) if (count == 1) == is_set => {}
            Ok(_) => wrong.push(format!("the bit of {id} {} is {is_set}", vocabulary.display_token(token))),
            Err(error) => wrong.push(format!("validate {id}: {error}")),
        }
        checked.bits += 1;
    }
    checked.masks += 1;
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bits_are_found() {
        let vocabulary = Vocabulary::builtin();
        let mut matcher = matcher(GrammarFormat::Lark, "start: \"ab\"\n", &vocabulary).unwrap();
        let mut words = matcher.mask().unwrap().into_words();
        let mut found = |words: &[u32]| {
            bits(&mut matcher, &vocabulary, words, &mut Random::new(1), &mut Checked::default())
        };
        assert_eq!(found(&words), Vec::<String>::new());
        words.fill(0);
        let b = vocabulary.encode("b").unwrap()[0].index();
        words[b / 32] |= 1 << (b % 32);
        assert!(!found(&words).is_empty());
        words.fill(u32::MAX);
        assert!(found(&words).len() > BITS / 2);
    }
}
