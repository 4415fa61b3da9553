//! What every continuation begins with.

use anygram_vocab::{TokenId, TokenTrie, Vocabulary};

use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};
use crate::recall::Recall;

/// The bytes that every continuation of a text must begin with, and tokens for them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Forced {
    /// The bytes. Empty where the text may end or several bytes may follow.
    pub bytes: Vec<u8>,
    /// The canonical encoding of the bytes less the trailing tokens that bytes which may follow could merge
    /// with: appended, they are the beginning of the canonical encoding whatever follows. (Of the forced text
    /// by itself: how it merges with what stands before it is for the caller to know.)
    pub tokens: Vec<TokenId>,
}

impl Forced {
    /// With the tokens that a vocabulary has for the bytes; none if it cannot spell them.
    pub(crate) fn new((bytes, following): (Vec<u8>, Following), vocabulary: &Vocabulary) -> Self {
        let tokens = settled(&bytes, &following, vocabulary).unwrap_or_default();
        Self { bytes, tokens }
    }
}

/// Of each byte whether it may follow what is forced.
pub(crate) type Following = [bool; 256];

/// The tokens with which the canonical encoding of `bytes` begins, whatever follows of what may follow;
/// `None` if they cannot be spelled.
///
/// In the encoding of a longer text some token ends with `bytes` or reaches beyond. Where it begins, the
/// bytes to the end begin a token of the vocabulary, and what stands before it is encoded as it is by itself.
/// So the tokens in which all such beginnings agree are certain.
fn settled(bytes: &[u8], following: &Following, vocabulary: &Vocabulary) -> Option<Vec<TokenId>> {
    let trie = vocabulary.trie();
    let reaches_beyond = |&from: &usize| {
        let down = |node, &byte: &u8| trie.child(node, byte);
        let node = bytes[from..].iter().try_fold(TokenTrie::ROOT, down);
        node.is_some_and(|node| trie.children(node).any(|child| following[usize::from(trie.byte(child))]))
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

/// The forced bytes after a text, of which these are the readings outside of remembered values and what is
/// recalled; and what may follow them.
pub(crate) fn bytes(
    stepper: &mut Stepper,
    language: &Language,
    (frontier, recall): (&[Config], &Recall),
) -> Result<(Vec<u8>, Following), StepError> {
    let union = &language.lexing().lexicon.union;
    let (mut frontier, mut recall): (Frontier, Recall) = (frontier.to_vec(), recall.clone());
    let mut forced = Vec::new();
    loop {
        stepper.begin(language);
        let mut may_end = stepper.is_sentence(&frontier);
        for &terminal in language.lexing().specials() {
            let next = stepper.step_special(language, &frontier, terminal)?;
            may_end |= stepper.is_viable(language, &next)?;
        }
        let (mut following, mut only) = ([false; 256], None);
        let mut try_byte = |byte: u8| {
            let (mut next, mut recall) = (Frontier::new(), recall.clone());
            stepper.step_recalling(language, &frontier, &mut recall, byte, &mut next)?;
            let is_viable = (!next.is_empty() || !recall.values().is_empty())
                && stepper.is_viable_recalling(language, &next, &recall)?;
            if is_viable {
                only = Some((next, recall));
            }
            Ok::<_, StepError>(is_viable)
        };
        for &sample in union.samples() {
            let class = union.class(sample);
            let alike = (0..=u8::MAX).filter(|&byte| union.class(byte) == class);
            // The memory tells bytes apart that are alike for the lexer.
            let (apart, alike): (Vec<u8>, Vec<u8>) = alike.partition(|&byte| recall.tells_apart(byte));
            for byte in apart {
                following[usize::from(byte)] = try_byte(byte)?;
            }
            if let Some(&byte) = alike.first()
                && try_byte(byte)?
            {
                alike.iter().for_each(|&byte| following[usize::from(byte)] = true);
            }
        }
        let mut possible = (0..=u8::MAX).filter(|&byte| following[usize::from(byte)]);
        let (Some(byte), None, false, Some(next)) = (possible.next(), possible.next(), may_end, only) else {
            return Ok((forced, following));
        };
        if forced.len() >= language.limits().forced_bytes {
            return Ok((forced, [true; 256]));
        }
        forced.push(byte);
        (frontier, recall) = next;
    }
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
                let settled = settled(&text[..end], &[true; 256], &vocabulary).unwrap();
                assert!(
                    whole.starts_with(&settled),
                    "{:?} of {:?}",
                    String::from_utf8_lossy(&text[..end]),
                    text
                );
                n_settled += settled.len();
            }
        }
        assert!(n_settled > 100, "{n_settled}");
    }
}
