//! Tokens of a Lark file.
//!
//! One token at a time, each looked at once: the cost is the length of the file. The end of a line is a token
//! unless the next line that says anything begins with `|`, so that the parser need not look ahead. Literals
//! are cut, not decoded.

use std::borrow::Cow;

use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::{Span, SpecialToken};

/// What a token is; texts are slices of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind<'s> {
    /// A lower-case name, or any in backquotes.
    RuleName(Cow<'s, str>),
    /// An upper-case name, or any in backquotes after a dollar.
    TerminalName(Cow<'s, str>),
    /// What stands between quotes, and whether an `i` follows.
    Text {
        raw: &'s str,
        ignore_case: bool,
    },
    /// What stands between slashes, and the letters that follow.
    Regex {
        raw: &'s str,
        flags: &'s str,
    },
    /// Digits, perhaps with a minus.
    Number(&'s str),
    /// A token of the vocabulary.
    Special(SpecialToken),
    /// `<[1-5,7]>`: any of these tokens, bounds included.
    TokenRanges(Vec<(u32, u32)>),
    /// `%json {…}`: the schema, braces included.
    Json(&'s str),
    /// `%regex {…}`: the object, braces included.
    RegexObject(&'s str),
    /// `%lark {…}`: the place of the grammar between the braces.
    Lark(Span),
    /// `@name`: the name of another grammar.
    Named(&'s str),
    /// `0x…`: the digits.
    HexNumber(&'s str),
    /// `_` alone.
    Underscore,
    /// `%name`, the percent sign included.
    Directive(&'s str),
    /// The end of a line that is not continued.
    Newline,
    /// The end of the file.
    End,
    Colon,
    DoubleColon,
    Equals,
    Or,
    And,
    Tilde,
    Dot,
    DotDot,
    Comma,
    Arrow,
    Question,
    Star,
    Plus,
    Bang,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
}

/// A token and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token<'s> {
    pub kind: TokenKind<'s>,
    pub span: Span,
}

/// Reads tokens from a file.
pub(crate) struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// Whether `%lark` and its braces are tokens of their own.
    is_flat: bool,
}

impl<'s> Lexer<'s> {
    /// Reads a part of a text; places are those of the text.
    pub fn new(source: &'s str, part: Span) -> Self {
        let mark = if source[part.clone()].starts_with('\u{feff}') { 3 } else { 0 };
        Self { source: &source[..part.end], at: part.start + mark, is_flat: false }
    }

    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// The next token; at the end of the file `End`, again and again.
    pub fn next(&mut self) -> Result<Token<'s>, GrammarError> {
        self.skip_blanks();
        let start = self.at;
        if self.skip_newlines() && !self.rest().starts_with('|') {
            let end = start + usize::from(self.at > start);
            return Ok(Token { kind: TokenKind::Newline, span: start..end });
        }
        let start = self.at;
        let kind = self.scan()?;
        Ok(Token { kind, span: start..self.at })
    }

    /// Skips blanks, comments and continued line ends.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\u{c}']);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") || trimmed.starts_with('#') {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(continued) = trimmed.strip_prefix('\\')
                && let Some(next) = continued.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')
            {
                self.at = self.source.len() - next.len();
            } else {
                return;
            }
        }
    }

    /// Skips line ends with all blanks around them; says whether there was one.
    fn skip_newlines(&mut self) -> bool {
        let mut any = false;
        while self.rest().starts_with('\n') {
            any = true;
            self.at += 1;
            self.skip_blanks();
        }
        any
    }

    fn scan(&mut self) -> Result<TokenKind<'s>, GrammarError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        match first {
            '"' => return self.text(),
            '/' => return self.regex(),
            '<' => return self.special(),
            '%' => return self.directive(),
            '_' | 'a'..='z' | 'A'..='Z' => return self.name(),
            '`' => return self.quoted_name(0).map(TokenKind::RuleName),
            '$' if rest.starts_with("$`") => return self.quoted_name(1).map(TokenKind::TerminalName),
            '0'..='9' => return Ok(self.number()),
            '@' if name_len(&rest[1..]) > 0 => {
                let name = &rest[1..1 + name_len(&rest[1..])];
                self.at += 1 + name.len();
                return Ok(TokenKind::Named(name));
            }
            _ => {}
        }
        if first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(self.number());
        }
        let (kind, len) = match first {
            '-' if rest.starts_with("->") => (TokenKind::Arrow, 2),
            '.' if rest.starts_with("..") => (TokenKind::DotDot, 2),
            '.' => (TokenKind::Dot, 1),
            ':' if rest.starts_with("::") => (TokenKind::DoubleColon, 2),
            ':' => (TokenKind::Colon, 1),
            '=' => (TokenKind::Equals, 1),
            '|' => (TokenKind::Or, 1),
            '&' => (TokenKind::And, 1),
            '~' => (TokenKind::Tilde, 1),
            ',' => (TokenKind::Comma, 1),
            '?' => (TokenKind::Question, 1),
            '*' => (TokenKind::Star, 1),
            '+' => (TokenKind::Plus, 1),
            '!' => (TokenKind::Bang, 1),
            '(' => (TokenKind::LeftParen, 1),
            ')' => (TokenKind::RightParen, 1),
            '[' => (TokenKind::LeftBracket, 1),
            ']' => (TokenKind::RightBracket, 1),
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
            '@' => error.with_help("another grammar is named `@name`"),
            '\'' => error.with_help("strings are written in double quotes"),
            ';' => error.with_help("a rule ends with its line; `;` is not needed"),
            '\\' => error.with_help("a backslash continues a line only where nothing follows it"),
            _ => error,
        }
    }

    /// A name; the first letter says whether it is a rule's or a terminal's, the others have to agree.
    fn name(&mut self) -> Result<TokenKind<'s>, GrammarError> {
        let rest = self.rest();
        let len = name_len(rest);
        if &rest[..len] == "_" {
            self.at += 1;
            return Ok(TokenKind::Underscore);
        }
        let (name, span) = (&rest[..len], self.at..self.at + len);
        let letter = name.bytes().find(u8::is_ascii_alphabetic);
        let Some(letter) =
            letter.filter(|_| name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_alphabetic()))
        else {
            let message = format!("`{name}` is not a name: a letter has to come before digits");
            return Err(GrammarError::new(ErrorKind::Syntax, span, message));
        };
        let upper = letter.is_ascii_uppercase();
        if name.bytes().any(|byte| byte.is_ascii_alphabetic() && byte.is_ascii_uppercase() != upper) {
            let message = format!("the name `{name}` mixes upper and lower case");
            return Err(GrammarError::new(ErrorKind::Syntax, span, message)
                .with_help("names of rules are lower case, names of terminals upper case"));
        }
        self.at += len;
        let name = Cow::Borrowed(name);
        Ok(if upper { TokenKind::TerminalName(name) } else { TokenKind::RuleName(name) })
    }

    /// A name in backquotes, which begin after so many bytes.
    fn quoted_name(&mut self, prefix: usize) -> Result<Cow<'s, str>, GrammarError> {
        let rest = &self.rest()[prefix..];
        let Some(len) = closing(&rest[1..], b'`', true) else {
            let end = rest.find('\n').unwrap_or(rest.len());
            let span = self.at..self.at + prefix + rest[..end].trim_end().len();
            return Err(GrammarError::new(ErrorKind::Syntax, span, "this name is not closed on its line")
                .with_help("write ``\\` `` for a backquote and `\\\\` for a backslash"));
        };
        self.at += prefix + len + 2;
        Ok(unquoted(&rest[1..1 + len]))
    }

    fn number(&mut self) -> TokenKind<'s> {
        let rest = self.rest();
        if let Some(digits) = rest.strip_prefix("0x") {
            let len = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            self.at += 2 + len;
            return TokenKind::HexNumber(&digits[..len]);
        }
        let digits = &rest[1..];
        let len = 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        self.at += len;
        TokenKind::Number(&rest[..len])
    }

    /// `"…"` or `"…"i`, on one line.
    fn text(&mut self) -> Result<TokenKind<'s>, GrammarError> {
        let rest = self.rest();
        let Some(len) = closing(&rest[1..], b'"', true) else {
            let end = rest.find('\n').unwrap_or(rest.len());
            let span = self.at..self.at + rest[..end].trim_end().len();
            return Err(GrammarError::new(ErrorKind::Syntax, span, "this string is not closed on its line")
                .with_help("write `\\n` for a line end and `\\\"` for a quote"));
        };
        let (raw, after) = (&rest[1..1 + len], &rest[len + 2..]);
        let ignore_case = after.starts_with('i');
        self.at += len + 2 + usize::from(ignore_case);
        Ok(TokenKind::Text { raw, ignore_case })
    }

    /// `/…/` and flags. Only a verbose one may go over several lines.
    fn regex(&mut self) -> Result<TokenKind<'s>, GrammarError> {
        let rest = self.rest();
        let found = closing(&rest[1..], b'/', false).map(|len| {
            let after = &rest[len + 2..];
            let n_flags = after.find(|c| !"imslux".contains(c)).unwrap_or(after.len());
            (&rest[1..1 + len], &after[..n_flags])
        });
        match found {
            Some((raw, flags)) if !raw.contains('\n') || flags.contains('x') => {
                self.at += raw.len() + flags.len() + 2;
                Ok(TokenKind::Regex { raw, flags })
            }
            _ => {
                let end = rest.find('\n').unwrap_or(rest.len());
                let span = self.at..self.at + rest[..end].trim_end().len();
                Err(GrammarError::new(
                    ErrorKind::Syntax,
                    span,
                    "this regular expression is not closed on its line",
                )
                .with_help("only one with the flag `x` may go over several lines"))
            }
        }
    }

    /// `<|name|>`, `<name>`, `<[id]>`, or several ids in brackets.
    fn special(&mut self) -> Result<TokenKind<'s>, GrammarError> {
        let rest = self.rest();
        let inner = |open, close| {
            let (inner, _) = rest.strip_prefix(open)?.split_once(close)?;
            Some(inner).filter(|inner: &&str| !inner.contains('\n'))
        };
        if let Some(name) = inner("<|", "|>") {
            let name = &rest[..name.len() + 4];
            self.at += name.len();
            return Ok(TokenKind::Special(SpecialToken::Name(name.to_owned())));
        }
        if let Some(id) = inner("<[", "]>") {
            let span = self.at..self.at + id.len() + 4;
            let kind = token_set(id, &span)?;
            self.at = span.end;
            return Ok(kind);
        }
        if let Some(name) = inner("<", ">").filter(|name| is_bare_token_name(name)) {
            let name = &rest[..name.len() + 2];
            self.at += name.len();
            return Ok(TokenKind::Special(SpecialToken::Name(name.to_owned())));
        }
        Err(GrammarError::new(ErrorKind::Syntax, self.at..self.at + 1, "unexpected `<`").with_help(
            "a token of the vocabulary is written `<|name|>`, `<name>` or `<[id]>`, the text `<` in quotes",
        ))
    }

    fn directive(&mut self) -> Result<TokenKind<'s>, GrammarError> {
        let rest = self.rest();
        let len = 1 + name_len(&rest[1..]);
        self.at += len;
        let before = &rest[len..];
        let schema = before.trim_start();
        let name = &rest[..len];
        if name == "%lark" && schema.starts_with('{') && !self.is_flat {
            return self.nested(self.at + before.len() - schema.len());
        }
        if !["%json", "%regex"].contains(&name) || !schema.starts_with('{') {
            return Ok(TokenKind::Directive(name));
        }
        let start = self.at + before.len() - schema.len();
        let Some(end) = object_len(schema) else {
            let what = if name == "%json" { "schema" } else { "object" };
            let message = format!("the {what} is not closed: `}}` is missing");
            return Err(GrammarError::new(ErrorKind::Syntax, start..start + 1, message));
        };
        self.at = start + end;
        let object = &schema[..end];
        Ok(if name == "%json" { TokenKind::Json(object) } else { TokenKind::RegexObject(object) })
    }

    /// `{…}` behind `%lark`: up to the brace that closes it. Grammars inside of it are not looked into, so
    /// that one in another costs its length once more for each level.
    fn nested(&mut self, open: usize) -> Result<TokenKind<'s>, GrammarError> {
        let mut inner = Self { source: self.source, at: open + 1, is_flat: true };
        let mut depth = 1_usize;
        loop {
            let token = inner.next()?;
            match token.kind {
                TokenKind::LeftBrace => depth += 1,
                TokenKind::RightBrace if depth > 1 => depth -= 1,
                TokenKind::RightBrace => {
                    self.at = token.span.end;
                    return Ok(TokenKind::Lark(open + 1..token.span.start));
                }
                TokenKind::End => {
                    let message = "the grammar of `%lark` is not closed: `}` is missing";
                    return Err(GrammarError::new(ErrorKind::Syntax, open..open + 1, message));
                }
                _ => {}
            }
        }
    }
}

/// The most tokens that `<[…]>` may list.
const MAX_TOKENS: u32 = 1 << 16;

/// What stands between `<[` and `]>`: `*`, or ids and ranges of ids, perhaps behind `^`.
fn token_set(text: &str, span: &Span) -> Result<TokenKind<'static>, GrammarError> {
    let syntax = |message: String| {
        GrammarError::new(ErrorKind::Syntax, span.clone(), message)
            .with_help("write `<[7]>`, `<[7-9,12]>`, `<[^7-9]>` for all but these, or `<[*]>` for any token")
    };
    if text.trim() == "*" {
        return Ok(TokenKind::Special(SpecialToken::Except(Box::default())));
    }
    let (is_complement, listed) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let id = |text: &str| -> Result<u32, GrammarError> {
        let digits = text.trim();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(syntax(format!("`{digits}` is not the id of a token")));
        }
        digits.parse().map_err(|_| {
            let message = format!("token id {digits} is too large: at most {}", u32::MAX);
            GrammarError::new(ErrorKind::Limit, span.clone(), message)
        })
    };
    let mut ranges = Vec::new();
    for part in listed.split(',').filter(|part| !part.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (id(first)?, id(last)?);
        if last < first {
            return Err(syntax(format!("the range from {first} to {last} is empty")));
        }
        ranges.push((first, last));
    }
    let n_tokens: u64 = ranges.iter().map(|&(first, last)| u64::from(last - first) + 1).sum();
    if n_tokens > u64::from(MAX_TOKENS) {
        let message = format!("{n_tokens} tokens are listed: at most {MAX_TOKENS}");
        return Err(GrammarError::new(ErrorKind::Limit, span.clone(), message)
            .with_help("list those that may not stand: `<[^7-9]>`"));
    }
    match (is_complement, &ranges[..]) {
        (_, []) => Err(syntax("no tokens are listed".to_owned())),
        (true, _) => {
            let ids = ranges.into_iter().flat_map(|(first, last)| first..=last).map(SpecialToken::Id);
            Ok(TokenKind::Special(SpecialToken::Except(ids.collect())))
        }
        (false, &[(first, last)]) if first == last => Ok(TokenKind::Special(SpecialToken::Id(first))),
        (false, _) => Ok(TokenKind::TokenRanges(ranges)),
    }
}

/// How long the JSON object is that a text begins with; only brackets and strings are looked at.
fn object_len(text: &str) -> Option<usize> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => depth += 1,
            b'}' | b']' if !is_text => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// How many letters, digits, underscores and dashes a text begins with; a dash stands between others.
fn name_len(text: &str) -> usize {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    let ends = |at: usize| {
        let is_inner = bytes[at] == b'-' && at > 0 && bytes.get(at + 1).copied().is_some_and(is_word);
        !is_word(bytes[at]) && !is_inner
    };
    (0..bytes.len()).find(|&at| ends(at)).unwrap_or(bytes.len())
}

/// Whether a token's name can be written between `<` and `>` without bars.
pub(crate) fn is_bare_token_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['|', '[']) && !name.contains(['<', '>', '\n', '\r'])
}

/// Whether a name can be written without backquotes: what [`Lexer::name`] takes for one.
pub(crate) fn is_plain_name(name: &str, terminal: bool) -> bool {
    let letter = |byte: u8| if terminal { byte.is_ascii_uppercase() } else { byte.is_ascii_lowercase() };
    name.trim_start_matches('_').bytes().next().is_some_and(letter)
        && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit() || byte == b'_')
}

/// What stands between backquotes, decoded: a backslash takes the next character as it is, but `\n` and `\r`
/// are line ends.
fn unquoted(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut name = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(same) => same,
                None => '\\',
            },
            c => c,
        });
    }
    Cow::Owned(name)
}

/// The offset of the first `delimiter` that no backslash precedes.
fn closing(text: &str, delimiter: u8, one_line: bool) -> Option<usize> {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        if byte == delimiter {
            return Some(at);
        }
        if byte == b'\\' && bytes.next().is_some_and(|(_, next)| next != b'\n' || !one_line) {
            continue;
        }
        if one_line && (byte == b'\n' || byte == b'\\') {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Result<Vec<TokenKind<'_>>, GrammarError> {
        let mut lexer = Lexer::new(source, 0..source.len());
        let mut out = Vec::new();
        loop {
            match lexer.next()?.kind {
                TokenKind::End => return Ok(out),
                kind => out.push(kind),
            }
        }
    }

    #[test]
    fn lines_join_before_a_bar() {
        use TokenKind::{Newline, Or, RuleName};
        let joined = vec![RuleName("a".into()), Or, RuleName("b".into()), Newline, RuleName("c".into())];
        assert_eq!(kinds("a // x\n\n  // | y\n # z\r\n\t| b\n\nc").unwrap(), joined);
        assert_eq!(kinds("a \\\n b").unwrap(), [RuleName("a".into()), RuleName("b".into())]);
        assert_eq!(kinds("\u{feff}a\n").unwrap(), [RuleName("a".into()), Newline]);
    }

    #[test]
    fn literals_end_at_the_first_free_delimiter() {
        use TokenKind::{Regex, Text};
        assert_eq!(kinds(r#""a\"b"i"#).unwrap(), [Text { raw: r#"a\"b"#, ignore_case: true }]);
        assert_eq!(kinds(r#""\\""#).unwrap(), [Text { raw: r"\\", ignore_case: false }]);
        assert_eq!(kinds(r"/a\/[/is").unwrap(), [Regex { raw: r"a\/[", flags: "is" }]);
        assert_eq!(kinds("/a\nb/x").unwrap(), [Regex { raw: "a\nb", flags: "x" }]);
        assert!(kinds("/a\nb/").is_err());
        assert!(kinds("\"a\\\n\"").is_err());
        assert!(kinds("\"a\\").is_err());
    }

    #[test]
    fn numbers_dots_and_tokens() {
        use TokenKind::{Arrow, Dot, DotDot, Number, Special, TerminalName, Tilde};
        assert_eq!(kinds("~1..3").unwrap(), [Tilde, Number("1"), DotDot, Number("3")]);
        assert_eq!(kinds("A.-2->").unwrap(), [TerminalName("A".into()), Dot, Number("-2"), Arrow]);
        let tokens = [Special(SpecialToken::Name("<|eot|>".into())), Special(SpecialToken::Id(12))];
        assert_eq!(kinds("<|eot|><[12]>").unwrap(), tokens);
        assert_eq!(kinds("<think>").unwrap(), [Special(SpecialToken::Name("<think>".into()))]);
        assert_eq!(
            kinds("<[1-5]><[1, 2]>").unwrap(),
            [TokenKind::TokenRanges(vec![(1, 5)]), TokenKind::TokenRanges(vec![(1, 1), (2, 2)]),]
        );
        let all_but =
            |ids: &[u32]| Special(SpecialToken::Except(ids.iter().copied().map(SpecialToken::Id).collect()));
        assert_eq!(kinds("<[*]><[^1,3-5]>").unwrap(), [all_but(&[]), all_but(&[1, 3, 4, 5])]);
        for wrong in ["<[]>", "<[^]>", "<[5-1]>", "<[a]>", "<[1-2-3]>", "<[^*]>", "<[*,1]>"] {
            assert_eq!(kinds(wrong).unwrap_err().kind(), ErrorKind::Syntax, "{wrong}");
        }
        assert_eq!(kinds("<[0-4000000000]>").unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(kinds("@sub_1-b").unwrap(), [TokenKind::Named("sub_1-b")]);
        assert_eq!(kinds("<a").unwrap_err().kind(), ErrorKind::Syntax);
        assert_eq!(kinds("<[99999999999]>").unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn any_name_in_backquotes() {
        use TokenKind::{RuleName, TerminalName};
        assert_eq!(kinds("`NP/en-char`").unwrap(), [RuleName("NP/en-char".into())]);
        assert_eq!(kinds(r"$`a\`b\\\n`").unwrap(), [TerminalName("a`b\\\n".into())]);
        assert_eq!(kinds("``").unwrap(), [RuleName("".into())]);
        assert!(kinds("`a\nb`").is_err() && kinds("`a").is_err() && kinds("$a").is_err());
        assert!(is_plain_name("__a1", false) && is_plain_name("_A_1", true));
        assert!(["", "_", "1a", "A", "é", "a-b"].iter().all(|name| !is_plain_name(name, false)));
    }

    #[test]
    fn names_have_one_case() {
        assert!(kinds("_a1 __B_2").is_ok());
        for bad in ["Foo", "fOo", "_1"] {
            assert_eq!(kinds(bad).unwrap_err().kind(), ErrorKind::Syntax, "{bad}");
        }
    }
}
