//! What the first requests of a process would wait for, done ahead.

use anygram_left_to_right::{Constraint, MatchError};
use anygram_vocab::Vocabulary;

use crate::{Compiler, GrammarFormat};

/// What schemas have in common: strings, of any length and of bounded ones, numbers, constants, lists, and a
/// place for anything.
const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "text": {"type": "string", "minLength": 1, "maxLength": 20},
        "count": {"type": "integer"},
        "size": {"type": "number"},
        "kind": {"enum": ["one", "two", 3]},
        "holds": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string"}},
        "more": {}
    },
    "required": ["name", "text", "count", "size", "kind", "list"]
}"#;

/// Valid texts, as models write them and without blanks.
const TEXTS: [&str; 2] = [
    concat!(
        r#"{"name": "The \"name\", of 12 a", "text": "A short text", "count": 12, "size": -1.5e3, "#,
        r#""kind": "one", "holds": true, "list": ["a", "b"], "#,
        r#""more": {"items": [{"id": 12, "ok": true}, null, -1.5]}}"#,
    ),
    r#"{"name":"a","text":"b","count":0,"size":0.5,"kind":3,"list":[],"more":[{"id":"a"},{}]}"#,
];

/// Finds out ahead what the first JSON schemas of a process would wait for: what the tokens of a vocabulary
/// do in strings, in numbers, and between the values. It is kept beside the vocabulary and serves all
/// languages that have such pieces; masks are the same with and without.
///
/// For servers, when they start. Cost, once for a vocabulary: about a quarter of loading it. What a
/// vocabulary has no tokens for is left out.
///
/// ```
/// use anygram::{Vocabulary, prepare};
///
/// let vocabulary = Vocabulary::builtin();
/// prepare(&vocabulary);
/// ```
pub fn prepare(vocabulary: &Vocabulary) {
    // Who asks for a mask is told why there is none.
    drop(masks(vocabulary));
}

/// How many masks were computed.
fn masks(vocabulary: &Vocabulary) -> Result<usize, MatchError> {
    let Ok(language) = Compiler::default().compile(GrammarFormat::JsonSchema, SCHEMA) else { return Ok(0) };
    let Ok(constraint) = Constraint::new(language, vocabulary.clone()) else { return Ok(0) };
    let (mut n_masks, mut words) = (0, vec![0; constraint.mask_words()]);
    for text in TEXTS {
        let (mut output, mut left) = (constraint.matcher()?, text.as_bytes());
        loop {
            output.mask_into(&mut words)?;
            n_masks += 1;
            // The longest of the tokens: encoding, with tables of its own, is for those who have texts.
            let Some((n_bytes, token)) = vocabulary.trie().prefixes(left).last() else { break };
            output.advance(token)?;
            left = &left[n_bytes..];
        }
    }
    Ok(n_masks)
}

#[cfg(test)]
mod tests {
    use anygram_vocab::{SpecialIds, TokenId, TokenMask};

    use super::*;

    /// The masks along a text of a schema.
    fn along(schema: &str, text: &str, vocabulary: Vocabulary) -> Vec<TokenMask> {
        let language = Compiler::default().compile(GrammarFormat::JsonSchema, schema).unwrap();
        let mut output = Constraint::new(language, vocabulary).unwrap().matcher().unwrap();
        let mut masks = vec![output.mask().unwrap()];
        for token in output.constraint().vocabulary().encode(text).unwrap() {
            output.advance(token).unwrap();
            masks.push(output.mask().unwrap());
        }
        masks
    }

    #[test]
    fn masks_are_the_same_with_and_without() {
        let builtin = Vocabulary::builtin();
        let tokens = (0..builtin.len()).map(|id| builtin.bytes(TokenId::new(id)).unwrap_or_default());
        let tokens: Vec<&[u8]> = tokens.collect();
        // Two that share nothing.
        let load = || Vocabulary::from_tokens(&tokens, SpecialIds::default()).unwrap();
        let (fresh, prepared) = (load(), load());
        prepare(&prepared);
        let schemas = [
            (r#"{"type": "string", "maxLength": 12}"#, r#""An \u00e4 a""#),
            (
                r#"{"properties": {"b": {"type": "string", "minLength": 3}}}"#,
                r#"{"a": [1, 2.5], "b": "abc"}"#,
            ),
            (r#"{"enum": ["one", "only", 12]}"#, r#""only""#),
        ];
        for (schema, text) in schemas {
            let without = along(schema, text, fresh.clone());
            assert!(without == along(schema, text, prepared.clone()), "{schema}");
        }
    }

    #[test]
    fn all_of_the_texts_is_prepared() {
        // One token a byte.
        let bytes = (0..=u8::MAX).map(|byte| [byte]);
        let bytes: Vec<[u8; 1]> = bytes.collect();
        let vocabulary = Vocabulary::from_tokens(&bytes, SpecialIds::default()).unwrap();
        assert_eq!(masks(&vocabulary), Ok(TEXTS.iter().map(|text| text.len() + 1).sum()));
        // Of each text as far as there are tokens for it: before `{` and behind.
        let vocabulary = Vocabulary::from_tokens([b"{", b"}"], SpecialIds::default()).unwrap();
        assert_eq!(masks(&vocabulary), Ok(2 * TEXTS.len()));
    }
}
