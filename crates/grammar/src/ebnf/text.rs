//! What strings and classes stand for.
//!
//! | escape | in GBNF | in EBNF |
//! |---|---|---|
//! | `\n \r \t \\ \" \[ \] \-` | yes | yes |
//! | `\xHH` | two digits | one or more digits, as many as there are |
//! | `\uHHHH \UHHHHHHHH` | yes | yes |
//! | `\a \b \e \f \v \0 \' \?` | no | as in C |
//! | `\^ \$ \. \* \+ \( \) \{ \} \| \/` | no | the character |
//! | `#xN` in a class | four characters | the character with this number, one or more digits |
//!
//! A backslash before anything else is an error. All of them stand for characters, never for bytes: `\xe9` is
//! `é`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::Dialect;
use crate::diagnostic::{ErrorKind, GrammarError};

type Result<T> = std::result::Result<T, GrammarError>;

/// The characters of a string with escapes; `offset` is where `raw` begins in the file.
pub(crate) fn string(raw: &str, offset: usize, dialect: Dialect) -> Result<String> {
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let (value, len) = char_at(raw, at, offset, dialect)?;
        out.push(value);
        at += len;
    }
    Ok(out)
}

/// The characters of a class; `raw` stands between the brackets.
pub(crate) fn class(raw: &str, offset: usize, dialect: Dialect) -> Result<ClassUnicode> {
    let (negated, mut at) = if raw.starts_with('^') { (true, 1) } else { (false, 0) };
    let mut ranges = Vec::new();
    if at == raw.len() {
        let span = offset - 1..offset + raw.len() + 1;
        return Err(GrammarError::new(ErrorKind::Syntax, span, "this class has no characters")
            .with_help("for any character write `[\\x00-\\U0010FFFF]`, for the empty string `\"\"`"));
    }
    while at < raw.len() {
        let start = at;
        let (first, len) = class_char(raw, at, offset, dialect)?;
        at += len;
        let mut last = first;
        // A minus at the end is a character.
        if raw[at..].starts_with('-') && at + 1 < raw.len() {
            let (bound, len) = class_char(raw, at + 1, offset, dialect)?;
            at += 1 + len;
            last = bound;
        }
        if last < first {
            let message = format!("the range from {first:?} to {last:?} is empty");
            return Err(GrammarError::new(ErrorKind::Syntax, offset + start..offset + at, message)
                .with_help(
                    "the smaller character comes first; a minus stands at the end of the class, or as `\\-`",
                ));
        }
        ranges.push(ClassUnicodeRange::new(first, last));
    }
    let mut class = ClassUnicode::new(ranges);
    if negated {
        class.negate();
    }
    Ok(class)
}

/// The character with the number that these hexadecimal digits say.
pub(crate) fn numbered(digits: &str) -> std::result::Result<char, String> {
    let significant = digits.trim_start_matches('0');
    let value = match significant.len() {
        0 => 0,
        1..=8 => u32::from_str_radix(significant, 16).unwrap_or(u32::MAX),
        _ => u32::MAX,
    };
    char::from_u32(value).ok_or_else(|| match value {
        0xd800..=0xdfff => format!("{digits} is half of a surrogate pair, not a character"),
        _ => format!("{digits} is beyond the last character, 10ffff"),
    })
}

/// The number of hexadecimal digits that a text begins with.
pub(crate) fn n_hex(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_hexdigit).count()
}

fn class_char(raw: &str, at: usize, offset: usize, dialect: Dialect) -> Result<(char, usize)> {
    if dialect == Dialect::Ebnf && raw[at..].starts_with("#x") {
        let n_digits = n_hex(&raw[at + 2..]);
        if n_digits > 0 {
            let digits = &raw[at + 2..at + 2 + n_digits];
            let value = numbered(digits).map_err(|message| invalid(offset + at, 2 + n_digits, message))?;
            return Ok((value, 2 + n_digits));
        }
    }
    char_at(raw, at, offset, dialect)
}

/// The character, perhaps escaped, that stands at a place, and how many bytes it takes.
fn char_at(raw: &str, at: usize, offset: usize, dialect: Dialect) -> Result<(char, usize)> {
    let mut chars = raw[at..].chars();
    let first = chars.next().unwrap_or_default();
    if first != '\\' {
        return Ok((first, first.len_utf8()));
    }
    let Some(letter) = chars.next() else {
        return Err(invalid(offset + at, 1, "nothing follows this backslash".to_owned()));
    };
    let value = match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '\\' | '"' | '[' | ']' | '-' => letter,
        'x' | 'u' | 'U' => return hexadecimal(raw, at, offset, letter, dialect),
        _ if dialect == Dialect::Gbnf => {
            let message = format!("`\\{letter}` has no meaning in GBNF");
            return Err(invalid(offset + at, 1 + letter.len_utf8(), message)
                .with_help("write the character itself, or its number as `\\xHH` or `\\uHHHH`"));
        }
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '0' => '\0',
        '\'' | '?' | '^' | '$' | '.' | '*' | '+' | '(' | ')' | '{' | '}' | '|' | '/' => letter,
        'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
            let message = format!("the set `\\{letter}` is not supported");
            return Err(GrammarError::new(ErrorKind::Unsupported, offset + at..offset + at + 2, message)
                .with_help("write the characters out, as in `[0-9]`"));
        }
        _ => {
            let message = format!("`\\{letter}` has no meaning");
            return Err(invalid(offset + at, 1 + letter.len_utf8(), message)
                .with_help("write the character itself, or its number as `\\uHHHH`"));
        }
    };
    Ok((value, 2))
}

fn hexadecimal(raw: &str, at: usize, offset: usize, letter: char, dialect: Dialect) -> Result<(char, usize)> {
    let digits = &raw[at + 2..];
    let n_digits = n_hex(digits);
    let needed = match letter {
        'x' if dialect == Dialect::Ebnf => n_digits.max(1),
        'x' => 2,
        'u' => 4,
        _ => 8,
    };
    if n_digits < needed {
        let message = format!("`\\{letter}` needs {needed} hexadecimal digits, found {n_digits}");
        return Err(invalid(offset + at, 2 + n_digits, message));
    }
    let value = numbered(&digits[..needed]).map_err(|message| invalid(offset + at, 2 + needed, message))?;
    Ok((value, 2 + needed))
}

fn invalid(at: usize, len: usize, message: String) -> GrammarError {
    GrammarError::new(ErrorKind::Syntax, at..at + len, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dialect::{Ebnf, Gbnf};

    fn ranges(raw: &str, dialect: Dialect) -> Vec<(char, char)> {
        class(raw, 1, dialect).unwrap().ranges().iter().map(|range| (range.start(), range.end())).collect()
    }

    #[test]
    fn escapes_of_both() {
        for dialect in [Gbnf, Ebnf] {
            assert_eq!(
                string(r#"é\n\t\\\"\[\u00e9\U0001F600!"#, 0, dialect).unwrap(),
                "é\n\t\\\"[é\u{1f600}!"
            );
            assert_eq!(ranges(r"\]\-\\a-c", dialect), [('-', '-'), ('\\', ']'), ('a', 'c')]);
            assert_eq!(ranges("a-", dialect), [('-', '-'), ('a', 'a')]);
            assert_eq!(ranges("+--[", dialect), [('+', '-'), ('[', '[')]);
            assert_eq!(ranges("^\u{0}-\u{60}b-\u{10ffff}", dialect), [('a', 'a')]);
        }
    }

    #[test]
    fn escapes_that_differ() {
        assert_eq!(string(r"\x41BC", 0, Gbnf).unwrap(), "ABC");
        assert_eq!(string(r"\x41BC", 0, Ebnf).unwrap(), "\u{41bc}");
        assert_eq!(string(r"\a\0\'\^", 0, Ebnf).unwrap(), "\u{7}\0'^");
        assert!(string(r"\'", 0, Gbnf).is_err());
        assert_eq!(ranges("#x20-#x7E#x", Ebnf), [(' ', '~')]);
        assert_eq!(ranges("#x2", Gbnf), [('#', '#'), ('2', '2'), ('x', 'x')]);
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        for (raw, span) in [
            (r"ab\x4", 12..15),
            (r"\xgg", 10..12),
            (r"\ud800", 10..16),
            (r"\U00110000", 10..20),
            ("a\\q", 11..13),
        ] {
            let error = string(raw, 10, Gbnf).unwrap_err();
            assert_eq!((error.kind(), error.span()), (ErrorKind::Syntax, span), "{raw}");
        }
        let error = |raw, dialect| class(raw, 10, dialect).unwrap_err();
        assert_eq!((error("xz-a", Gbnf).kind(), error("xz-a", Gbnf).span()), (ErrorKind::Syntax, 11..14));
        assert_eq!((error("^", Gbnf).kind(), error("^", Gbnf).span()), (ErrorKind::Syntax, 9..12));
        assert_eq!(error(r"\d", Ebnf).kind(), ErrorKind::Unsupported);
        assert_eq!(error("#xFFFFFFFFFFF", Ebnf).kind(), ErrorKind::Syntax);
    }
}
