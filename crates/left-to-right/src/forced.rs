//! What every continuation begins with.

use anygram_vocab::{TokenId, TokenTrie, Vocabulary};

use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};

/// The bytes that every continuation of a text must begin with, and tokens for them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Forced {
    /// The bytes. Empty where the text may end or several bytes may follow.
    pub bytes: Vec<u8>,
    /// The canonical encoding of the bytes less the trailing tokens that later bytes could merge with: appended, they are the beginning of the canonical
    /// encoding whatever follows. (Of the forced text by itself: how it merges with what stands before it is for the caller to know.)
    pub tokens: Vec<TokenId>,
}

impl Forced {
    /// With the tokens that a vocabulary has for the bytes; none if it cannot spell them.
    pub(crate) fn new(bytes: Vec<u8>, vocabulary: &Vocabulary) -> Self {
        let tokens = settled(&bytes, vocabulary).unwrap_or_default();
        Self { bytes, tokens }
    }
}

/// The tokens with which the canonical encoding of `bytes` begins, whatever bytes follow; `None` if they cannot be spelled.
///
/// In the encoding of a longer text some token ends with `bytes` or reaches beyond. Where it begins, the bytes to the end begin a token of the
/// vocabulary, and what stands before it is encoded as it is by itself. So the tokens in which all such beginnings agree are certain.
fn settled(bytes: &[u8], vocabulary: &Vocabulary) -> Option<Vec<TokenId>> {
    let trie = vocabulary.trie();
    let reaches_beyond = |&from: &usize| {
        let down = |node, &byte: &u8| trie.child(node, byte);
        let node = bytes[from..].iter().try_fold(TokenTrie::ROOT, down);
        node.is_some_and(|node| trie.children(node).next().is_some())
    };
    let mut tokens = vocabulary.encode(bytes).ok()?;
    for from in (0..bytes.len()).rev().filter(reaches_beyond) {
        // What cannot be spelled up to there is no beginning.
        let Ok(before) = vocabulary.encode(&bytes[..from]) else { continue };
        let agree = tokens.iter().zip(&before).take_while(|(a, b)| a == b).count();
        tokens.truncate(agree);
    }
    Some(tokens)
}

/// The forced bytes after some readings.
pub(crate) fn bytes(stepper: &mut Stepper, language: &Language, frontier: &[Config]) -> Result<Vec<u8>, StepError> {
    let union = &language.lexing().lexicon.union;
    let mut frontier: Frontier = frontier.to_vec();
    let (mut forced, mut next, mut only) = (Vec::new(), Frontier::new(), Frontier::new());
    // How many bytes there are of each class, and the first.
    let mut sizes = vec![0; union.n_classes()];
    (0..=u8::MAX).for_each(|byte| sizes[union.class(byte)] += 1);
    while forced.len() < language.limits().forced_bytes && !stepper.is_sentence(&frontier) {
        stepper.begin(language);
        let mut found = None;
        for &terminal in language.lexing().specials() {
            let next = stepper.step_special(language, &frontier, terminal)?;
            if stepper.is_viable(language, &next)? {
                return Ok(forced);
            }
        }
        for &byte in union.samples() {
            stepper.step(language, &frontier, byte, &mut next)?;
            if next.is_empty() || !stepper.is_viable(language, &next)? {
                continue;
            }
            if found.is_some() || sizes[union.class(byte)] > 1 {
                return Ok(forced);
            }
            found = Some(byte);
            std::mem::swap(&mut only, &mut next);
        }
        let Some(byte) = found else { break };
        forced.push(byte);
        std::mem::swap(&mut frontier, &mut only);
    }
    Ok(forced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_tokens_begin_the_encoding_of_whatever_follows() {
        let vocabulary = Vocabulary::builtin();
        let texts = [
            "SELECT name, age FROM singer WHERE age > 20",
            "    return self.value;\n\n\n}",
            "1234567 --- ((()))",
            "naïve 日本",
        ];
        let mut n_settled = 0;
        for text in texts.map(str::as_bytes) {
            let whole = vocabulary.encode(text).unwrap();
            for end in 0..=text.len() {
                let settled = settled(&text[..end], &vocabulary).unwrap();
                assert!(whole.starts_with(&settled), "{:?} of {:?}", String::from_utf8_lossy(&text[..end]), text);
                n_settled += settled.len();
            }
        }
        assert!(n_settled > 100, "{n_settled}");
    }
}
