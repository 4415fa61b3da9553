//! Tokens of a file.
//!
//! All at once, each byte looked at a bounded number of times: the cost is the length of the file. Literals
//! are cut, not decoded. Where lines end matters differently in the two dialects, so a token only says
//! whether it is the first of its line.

use super::Dialect;
use super::text::n_hex;
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::{Span, SpecialToken, is_token_name};

/// What a token is; texts are slices of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind<'s> {
    Name(&'s str),
    /// Digits, in EBNF.
    Number(&'s str),
    /// What stands between quotes; escapes in double ones.
    Text {
        raw: &'s str,
        escapes: bool,
    },
    /// What stands between brackets.
    Class(&'s str),
    /// The digits of `#xN`, in EBNF.
    Char(&'s str),
    /// A token of the vocabulary.
    Special(SpecialToken),
    Assign,
    /// `=`, in EBNF: only arguments of macros have it.
    Equal,
    Or,
    Minus,
    Any,
    Comma,
    Question,
    Star,
    Plus,
    LeftParen,
    /// `(=`, in EBNF.
    Lookahead,
    RightParen,
    LeftBrace,
    RightBrace,
    /// The end of the file.
    End,
}

/// A token and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token<'s> {
    pub kind: TokenKind<'s>,
    pub span: Span,
    /// Whether no other token stands before it on its line.
    pub first_of_line: bool,
}

type Result<T> = std::result::Result<T, GrammarError>;

/// All tokens of a file; the last one is `End`.
pub(crate) fn tokens(source: &str, dialect: Dialect) -> Result<Vec<Token<'_>>> {
    let mut lexer = Lexer { source, at: if source.starts_with('\u{feff}') { 3 } else { 0 }, dialect };
    let mut tokens = Vec::new();
    loop {
        let first_of_line = lexer.skip()? || tokens.is_empty();
        let start = lexer.at;
        let kind = lexer.scan()?;
        let done = kind == TokenKind::End;
        tokens.push(Token { kind, span: start..lexer.at, first_of_line });
        if done {
            return Ok(tokens);
        }
    }
}

/// Whether a character may stand in a name, perhaps at its beginning.
fn is_name_char(c: char, first: bool, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Gbnf => c.is_ascii_alphanumeric() || matches!(c, '-' | '_'),
        Dialect::Ebnf => {
            c.is_ascii_alphabetic() || matches!(c, '-' | '_' | '.') || (!first && c.is_ascii_digit())
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    dialect: Dialect,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// Skips blanks, line ends and comments; says whether there was a line end.
    fn skip(&mut self) -> Result<bool> {
        let mut any = false;
        loop {
            let rest = self.rest();
            match rest.bytes().next() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\n' | b'\r') => {
                    any = true;
                    self.at += 1;
                }
                Some(b'#') if self.char_digits().is_none() => {
                    self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
                }
                Some(b'/') if self.dialect == Dialect::Ebnf && rest.starts_with("/*") => {
                    let Some(len) = rest[2..].find("*/") else {
                        let span = self.at..self.at + 2;
                        return Err(GrammarError::new(ErrorKind::Syntax, span, "this comment is not closed")
                            .with_help(
                                "a comment goes from `/*` to `*/`, or from `#` to the end of the line",
                            ));
                    };
                    any |= rest[..len + 2].contains('\n');
                    self.at += len + 4;
                }
                _ => return Ok(any),
            }
        }
    }

    /// The digits of the `#xN` that comes next, if one does. What goes on like a word is a comment.
    fn char_digits(&self) -> Option<&'s str> {
        let digits = self.rest().strip_prefix("#x").filter(|_| self.dialect == Dialect::Ebnf)?;
        let n_digits = n_hex(digits);
        let is_word = digits[n_digits..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        (n_digits > 0 && !is_word).then(|| &digits[..n_digits])
    }

    fn scan(&mut self) -> Result<TokenKind<'s>> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        let is_ebnf = self.dialect == Dialect::Ebnf;
        let (kind, len) = match first {
            '"' => return self.text('"'),
            '\'' if is_ebnf => return self.text('\''),
            '[' => return self.class(),
            '<' => return self.special(),
            '!' => return Err(self.negated()),
            '#' => {
                let digits = self.char_digits().unwrap_or_default();
                (TokenKind::Char(digits), 2 + digits.len())
            }
            '-' if is_ebnf && !rest[1..].starts_with(|c| is_name_char(c, false, self.dialect)) => {
                (TokenKind::Minus, 1)
            }
            '0'..='9' if is_ebnf => {
                let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                (TokenKind::Number(&rest[..len]), len)
            }
            c if is_name_char(c, true, self.dialect) => {
                let len = rest.find(|c: char| !is_name_char(c, false, self.dialect)).unwrap_or(rest.len());
                (TokenKind::Name(&rest[..len]), len)
            }
            ':' if rest.starts_with("::=") => (TokenKind::Assign, 3),
            '=' if is_ebnf => (TokenKind::Equal, 1),
            '|' => (TokenKind::Or, 1),
            '.' => (TokenKind::Any, 1),
            ',' => (TokenKind::Comma, 1),
            '?' => (TokenKind::Question, 1),
            '*' => (TokenKind::Star, 1),
            '+' => (TokenKind::Plus, 1),
            '(' if is_ebnf && rest.starts_with("(=") => (TokenKind::Lookahead, 2),
            '(' => (TokenKind::LeftParen, 1),
            ')' => (TokenKind::RightParen, 1),
            '{' => (TokenKind::LeftBrace, 1),
            '}' => (TokenKind::RightBrace, 1),
            other => return Err(self.unexpected(other)),
        };
        self.at += len;
        Ok(kind)
    }

    fn unexpected(&self, c: char) -> GrammarError {
        let span = self.at..self.at + c.len_utf8();
        let error = GrammarError::new(ErrorKind::Syntax, span, format!("unexpected character {c:?}"));
        match c {
            '\'' => error.with_help("strings are written in double quotes"),
            ':' | '=' => error.with_help("a rule is written `name ::= …`"),
            ';' => error.with_help("a rule ends with its line; `;` is not needed"),
            '/' => error.with_help("a comment begins with `#`"),
            _ => error,
        }
    }

    /// A string. In GBNF it may go over several lines.
    fn text(&mut self, quote: char) -> Result<TokenKind<'s>> {
        let (rest, escapes) = (self.rest(), quote == '"');
        let over_lines = self.dialect == Dialect::Gbnf;
        let Some(len) = closing(&rest[1..], quote as u8, escapes, over_lines) else {
            let what = if over_lines {
                "this string is not closed"
            } else {
                "this string is not closed on its line"
            };
            let help = match (over_lines, escapes) {
                (true, _) => "write `\\\"` for a quote in it",
                (false, true) => "write `\\n` for a line end and `\\\"` for a quote",
                (false, false) => "write a string with a quote in it in the other quotes",
            };
            return Err(GrammarError::new(ErrorKind::Syntax, self.line_span(), what).with_help(help));
        };
        self.at += len + 2;
        Ok(TokenKind::Text { raw: &rest[1..1 + len], escapes })
    }

    /// From here to the end of the line.
    fn line_span(&self) -> Span {
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at..self.at + rest[..end].trim_end().len()
    }

    fn class(&mut self) -> Result<TokenKind<'s>> {
        let rest = self.rest();
        let over_lines = self.dialect == Dialect::Gbnf;
        let Some(len) = closing(&rest[1..], b']', true, over_lines) else {
            let what =
                if over_lines { "this class is not closed" } else { "this class is not closed on its line" };
            return Err(GrammarError::new(ErrorKind::Syntax, self.line_span(), what)
                .with_help("write `\\]` for a bracket in it, and `\\n` for a line end"));
        };
        self.at += len + 2;
        Ok(TokenKind::Class(&rest[1..1 + len]))
    }

    /// `<[id]>` or `<name>`.
    fn special(&mut self) -> Result<TokenKind<'s>> {
        let (token, len) = self.special_at(self.at)?;
        self.at += len;
        Ok(TokenKind::Special(token))
    }

    fn special_at(&self, at: usize) -> Result<(SpecialToken, usize)> {
        let rest = &self.source[at..];
        let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        let Some(len) = line.find('>').map(|end| end + 1).filter(|_| line.starts_with('<')) else {
            return Err(GrammarError::new(
                ErrorKind::Syntax,
                at..at + line.chars().next().map_or(0, char::len_utf8),
                "unexpected `<`",
            )
            .with_help("a token of the vocabulary is written `<name>` or `<[id]>`, the text `<` in quotes"));
        };
        let Some(id) = line[..len].strip_prefix("<[") else {
            if !is_token_name(&line[..len]) {
                let message = format!("`{}` is not supported as the name of a token", &line[..len]);
                return Err(GrammarError::new(ErrorKind::Unsupported, at..at + len, message).with_help(
                    "a name is not empty and has no `<` in it; where it begins with a bar it ends with one",
                ));
            }
            return Ok((SpecialToken::Name(line[..len].to_owned()), len));
        };
        let digits = id.strip_suffix("]>").unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!("`{}` is no token: one id stands between `<[` and `]>`", &line[..len]);
            return Err(GrammarError::new(ErrorKind::Syntax, at..at + len, message)
                .with_help("list several as alternatives: `(<[7]> | <[8]>)`"));
        }
        let id = digits.parse().map_err(|_| {
            let message = format!("token id {digits} is too large: at most {}", u32::MAX);
            GrammarError::new(ErrorKind::Limit, at..at + len, message)
        })?;
        Ok((SpecialToken::Id(id), len))
    }

    /// `!<[id]>`: any other token.
    fn negated(&self) -> GrammarError {
        match self.special_at(self.at + 1) {
            Ok((_, len)) => {
                let message =
                    format!("`{}`, any token but one, is not supported", &self.source[self.at..][..1 + len]);
                GrammarError::new(ErrorKind::Unsupported, self.at..self.at + 1 + len, message).with_help(
                    "a text means the same however it is cut into tokens: describe the text that may stand \
                         here, such as `[^<]*`",
                )
            }
            Err(_) => self.unexpected('!'),
        }
    }
}

/// The offset of the first `delimiter` that no backslash precedes.
fn closing(text: &str, delimiter: u8, escapes: bool, over_lines: bool) -> Option<usize> {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            byte if byte == delimiter => return Some(at),
            b'\n' | b'\r' if !over_lines => return None,
            b'\\'
                if escapes
                    && bytes.next().is_some_and(|(_, next)| !over_lines && matches!(next, b'\n' | b'\r')) =>
            {
                return None;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::TokenKind::{Any, Assign, Char, Class, Minus, Name, Number, Special, Text};
    use super::*;
    use Dialect::{Ebnf, Gbnf};

    fn kinds(source: &str, dialect: Dialect) -> Result<Vec<TokenKind<'_>>> {
        let mut tokens = tokens(source, dialect)?;
        assert_eq!(tokens.pop().unwrap().kind, TokenKind::End);
        Ok(tokens.into_iter().map(|token| token.kind).collect())
    }

    #[test]
    fn names_and_numbers() {
        assert_eq!(kinds("3-a_b ::= .", Gbnf).unwrap(), [Name("3-a_b"), Assign, Any]);
        assert_eq!(kinds("a.b-c 12 -x", Ebnf).unwrap(), [Name("a.b-c"), Number("12"), Name("-x")]);
        assert_eq!(kinds("a - 'b'-[c]", Ebnf).unwrap()[1], Minus);
        assert_eq!(kinds("'b'-[c]", Ebnf).unwrap()[1], Minus);
    }

    #[test]
    fn literals_end_at_the_first_free_delimiter() {
        assert_eq!(kinds(r#""a\"b\\""#, Gbnf).unwrap(), [Text { raw: r#"a\"b\\"#, escapes: true }]);
        assert_eq!(kinds(r"'\'", Ebnf).unwrap(), [Text { raw: r"\", escapes: false }]);
        assert_eq!(kinds(r"[[\]]", Gbnf).unwrap(), [Class(r"[\]")]);
        assert!(kinds("\"a\nb\"[c\nd]", Gbnf).is_ok());
        for bad in ["\"a\nb\"", "[c\nd]", "\"a\\\nb\"", "'a"] {
            assert!(kinds(bad, Ebnf).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn comments_and_numbered_characters() {
        assert_eq!(kinds("a # b\r\nc", Gbnf).unwrap(), [Name("a"), Name("c")]);
        assert_eq!(kinds("#x20 a #xbeam\n/* x\n */ #x", Ebnf).unwrap(), [Char("20"), Name("a")]);
        assert_eq!(kinds("#x20 a", Gbnf).unwrap(), []);
        let first: Vec<bool> =
            tokens("a b\n c /* \n */ d", Ebnf).unwrap().iter().map(|t| t.first_of_line).collect();
        assert_eq!(first, [true, false, true, true, false]);
    }

    #[test]
    fn tokens_of_the_vocabulary() {
        let tokens = [Special(SpecialToken::Id(12)), Special(SpecialToken::Name("<think>".to_owned()))];
        assert_eq!(kinds("<[12]><think>", Gbnf).unwrap(), tokens);
        for (bad, kind) in [
            ("<[x]>", ErrorKind::Syntax),
            ("<[99999999999]>", ErrorKind::Limit),
            ("<a\n>", ErrorKind::Syntax),
            ("!<[12]>", ErrorKind::Unsupported),
            ("! <[12]>", ErrorKind::Syntax),
        ] {
            assert_eq!(kinds(bad, Gbnf).unwrap_err().kind(), kind, "{bad:?}");
        }
    }
}
