//! A vocabulary as a JSON array, the format for tests and for vocabularies that have no file of their own.

use crate::encode::Encoder;
use crate::table::{TableBuilder, Tokens};
use crate::{VocabError, Vocabulary};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

pub(super) fn load(bytes: &[u8]) -> Result<Vocabulary, VocabError> {
    let Elements(builder) = serde_json::from_slice(bytes).map_err(|e| super::json_error(&e))?;
    Ok(Vocabulary::new(
        Tokens::new(builder.finish(|n| format!("element {n}"))?, Vec::new()),
        Encoder::LongestMatch,
    ))
}

/// The array, written into a table as it is read.
struct Elements(TableBuilder);

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array;
        impl<'de> Visitor<'de> for Array {
            type Value = Elements;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of tokens")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Elements, A::Error> {
                let mut builder = TableBuilder::default();
                let mut n = 0;
                while let Some(Element(bytes)) = array.next_element()? {
                    let id = TableBuilder::check_id(n).map_err(A::Error::custom)?;
                    builder.push(id, &bytes);
                    builder.check_size().map_err(A::Error::custom)?;
                    n += 1;
                }
                Ok(Elements(builder))
            }
        }
        deserializer.deserialize_seq(Array)
    }
}

/// One token: its bytes, none if it is special.
struct Element(Vec<u8>);

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Token;
        impl<'de> Visitor<'de> for Token {
            type Value = Element;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token: a string, {\"hex\": \"…\"} for raw bytes, or null for a special token")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Element, E> {
                Ok(Element(text.as_bytes().to_vec()))
            }

            fn visit_unit<E: Error>(self) -> Result<Element, E> {
                Ok(Element(Vec::new()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Element, A::Error> {
                let Some((key, digits)) = map.next_entry::<String, String>()? else {
                    return Err(A::Error::custom("an empty object: expected {\"hex\": \"…\"}"));
                };
                if key != "hex" || map.next_key::<String>()?.is_some() {
                    return Err(A::Error::custom(format!(
                        "the only key of a token is \"hex\", found \"{key}\" or more"
                    )));
                }
                from_hex(&digits).map(Element).ok_or_else(|| {
                    A::Error::custom(format!("`{digits}` is not an even number of hexadecimal digits"))
                })
            }
        }
        deserializer.deserialize_any(Token)
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8)).collect();
    if rest.is_empty() { bytes } else { None }
}
