//! String literals: what stands between the quotes, decoded as Lark does.
//!
//! `\n \t \r \f \\ \" \xHH \uHHHH \UHHHHHHHH` stand for one character. A backslash before anything else
//! stands for itself, so `"\d"` is two characters: Lark doubles unknown escapes before it applies Python's
//! rules.

use super::LarkDialect;
use crate::diagnostic::{ErrorKind, GrammarError};

/// The characters that a literal stands for in a dialect. llguidance reads JSON's escapes, and `\xHH`.
pub(crate) fn decode_as(raw: &str, offset: usize, dialect: LarkDialect) -> Result<String, GrammarError> {
    match dialect {
        LarkDialect::Lark => decode(raw, offset),
        LarkDialect::Llguidance => decode_json(raw, offset),
    }
}

fn decode_json(raw: &str, offset: usize) -> Result<String, GrammarError> {
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    while let Some(c) = raw[at..].chars().next() {
        let mut len = c.len_utf8();
        let mut value = c;
        if c == '\\' {
            let error = |len: usize, message: String| {
                let span = offset + at..offset + (at + len).min(raw.len());
                GrammarError::new(ErrorKind::Syntax, span, message)
            };
            len = 2;
            value = match raw[at + 1..].chars().next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(same @ ('\\' | '"' | '/')) => same,
                Some('u') => match ecma_code_point(&raw[at..]) {
                    Some(Ok((value, pair))) if raw[at + 2..].starts_with(|c: char| c != '{') => {
                        len = pair;
                        value
                    }
                    _ => {
                        (value, len) =
                            code_point(&raw[at..]).map_err(|(len, message)| error(len, message))?;
                        value
                    }
                },
                Some('x') => {
                    (value, len) = code_point(&raw[at..]).map_err(|(len, message)| error(len, message))?;
                    value
                }
                other => {
                    let escape = other.map_or_else(String::new, String::from);
                    let message = format!("`\\{escape}` is no escape of a string in llguidance's dialect");
                    return Err(error(1 + escape.len(), message).with_help("write `\\\\` for a backslash"));
                }
            };
        }
        out.push(value);
        at += len;
    }
    Ok(out)
}

/// The characters that a literal stands for; `offset` is where `raw` begins in the file.
pub(crate) fn decode(raw: &str, offset: usize) -> Result<String, GrammarError> {
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    while let Some(c) = raw[at..].chars().next() {
        let escaped = raw[at..].chars().nth(1).filter(|_| c == '\\');
        let (value, len) = match escaped {
            None => (c, c.len_utf8()),
            Some('n') => ('\n', 2),
            Some('t') => ('\t', 2),
            Some('r') => ('\r', 2),
            Some('f') => ('\u{c}', 2),
            Some(same @ ('\\' | '"')) => (same, 2),
            Some('x' | 'u' | 'U') => code_point(&raw[at..]).map_err(|(len, message)| {
                GrammarError::new(ErrorKind::Syntax, offset + at..offset + at + len, message)
            })?,
            Some(_) => ('\\', 1),
        };
        out.push(value);
        at += len;
    }
    Ok(out)
}

/// The number of hexadecimal digits that an escape with this letter has.
fn n_digits(letter: char) -> usize {
    match letter {
        'x' => 2,
        'u' => 4,
        _ => 8,
    }
}

/// The character of the `\x`, `\u` or `\U` escape that a text begins with, and the length of the escape; or
/// the length of what is wrong, and why.
pub(crate) fn code_point(text: &str) -> Result<(char, usize), (usize, String)> {
    let letter = text.chars().nth(1).unwrap_or('x');
    let needed = n_digits(letter);
    let found = text.bytes().skip(2).take(needed).take_while(u8::is_ascii_hexdigit).count();
    let len = (2 + found).min(text.len());
    if found < needed {
        return Err((len, format!("`\\{letter}` needs {needed} hexadecimal digits")));
    }
    let digits = &text[2..len];
    let value = u32::from_str_radix(digits, 16).unwrap_or(u32::MAX);
    let made = char::from_u32(value).map(|value| (value, len));
    made.ok_or_else(|| match value {
        0xd800..=0xdfff => {
            (len, format!("`\\{letter}{digits}` is half of a surrogate pair, not a character"))
        }
        _ => (len, format!("`\\{letter}{digits}` is beyond the last character, 10ffff")),
    })
}

/// The character that ECMAScript's `\u{1F600}` or `\uD83D\uDE00` stands for, if a text begins with one of
/// them, and the length of the escape; or the length of what is wrong, and why.
pub(crate) fn ecma_code_point(text: &str) -> Option<Result<(char, usize), (usize, String)>> {
    if let Some(inner) = text.strip_prefix("\\u{") {
        let Some((digits, _)) = inner.split_once('}') else {
            return Some(Err((3, "this `{` is not closed".to_owned())));
        };
        let len = digits.len() + 4;
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex).and_then(char::from_u32);
        return Some(value.map(|value| (value, len)).ok_or_else(|| {
            (len, "`\\u{…}` needs the hexadecimal number of a character, at most 10ffff".to_owned())
        }));
    }
    let half = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
    };
    let value = char::decode_utf16([half(0)?, half(6)?]).next()?.ok()?;
    (value > '\u{ffff}').then_some(Ok((value, 12)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(decode(r#"a\n\t\\\"é"#, 0).unwrap(), "a\n\t\\\"é");
        assert_eq!(decode(r"\x41\u00e9\U0001F600!", 0).unwrap(), "Aé\u{1f600}!");
        assert_eq!(decode(r"\d\'", 0).unwrap(), r"\d\'");
        assert_eq!(decode(r"\é", 0).unwrap(), r"\é");
    }

    #[test]
    fn bad_escapes_have_a_place() {
        for (raw, span) in
            [(r"ab\x4", 12..15), (r"\xgg", 10..12), (r"\ud800", 10..16), (r"\U00110000", 10..20)]
        {
            let error = decode(raw, 10).unwrap_err();
            assert_eq!((error.kind(), error.span()), (ErrorKind::Syntax, span), "{raw}");
        }
        // A place never cuts a character.
        for (raw, len) in [("\\xé", 2), ("\\uD\u{1f600}1", 3), ("\\u00\u{1f600}", 4)] {
            for error in [decode(raw, 7).unwrap_err(), decode_json(raw, 7).unwrap_err()] {
                assert_eq!(error.span(), 7..7 + len, "{raw}");
            }
        }
    }
}
