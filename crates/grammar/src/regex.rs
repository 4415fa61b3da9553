//! One regular expression as a grammar (`.regex`).
//!
//! The whole file, less one line end at its end, is the expression, in Python's notation as
//! [`lark::regex`](crate::lark::regex) reads it. A text is a sentence if all of it matches. So `^` or `\A` at
//! the beginning and `$`, `\Z` or `\z` at the end mean nothing; elsewhere they say that nothing has been read
//! before, or that nothing follows: `^$|^https://.+` is the empty text or an address, `a^b` matches nothing.
//!
//! The grammar is `start` with one terminal. It may match the empty string, and then that is a sentence.

use crate::diagnostic::{ErrorKind, GrammarError};
use crate::expand::{Budget, Expander};
use crate::ir::{Grammar, LexerMode, Nonterminal, NonterminalId, Pattern, Symbol, TerminalKind};
use crate::lark::regex::{Flags, parse_whole};
use crate::terminals::{Terminals, anonymous, pattern_key};

/// How to read a regular expression.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RegexOptions {
    /// The rule to start from. There is only `start`; another name is an error.
    pub start: Option<String>,
}

/// Reads a regular expression as a grammar.
pub fn parse(source: &str, options: &RegexOptions) -> Result<Grammar, GrammarError> {
    lower(source, options).map_err(|error| error.located(source))
}

fn lower(source: &str, options: &RegexOptions) -> Result<Grammar, GrammarError> {
    const START: &str = "start";
    if let Some(name) = options.start.as_ref().filter(|&name| name != START) {
        let message = format!("there is no rule `{name}` to start from");
        return Err(GrammarError::new(ErrorKind::Syntax, 0..0, message)
            .with_help("a regular expression has no rules; leave the start out"));
    }
    let (text, offset) = expression(source);
    let hir = parse_whole(text, Flags::default()).map_err(|error| {
        let placed =
            GrammarError::new(error.kind, offset + error.span.start..offset + error.span.end, error.message);
        match error.help {
            Some(help) => placed.with_help(help),
            None => placed,
        }
    })?;
    let span = offset..offset + text.len();
    let pattern = Pattern::Regex(hir);
    let mut terminals = Terminals::default();
    let terminal = terminals.get(pattern_key(&pattern), || {
        anonymous(pattern.to_string(), TerminalKind::Pattern(pattern.clone()), span.clone())
    });
    let start = Nonterminal { name: START.to_owned(), span: Some(span.clone()) };
    let mut expander = Expander::new(vec![start], Budget::new(usize::MAX));
    let start = NonterminalId::new(0);
    expander.define(start, vec![vec![Symbol::Terminal(terminal)]], &span)?;
    Ok(terminals.finish(expander, start, LexerMode::Scannerless))
}

/// The expression without the last line end and the byte order mark, and where it begins.
fn expression(source: &str) -> (&str, usize) {
    let text = source.strip_suffix('\n').map_or(source, |text| text.strip_suffix('\r').unwrap_or(text));
    text.strip_prefix('\u{feff}').map_or((text, 0), |text| (text, '\u{feff}'.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_at_both_ends_mean_nothing() {
        for (source, plain) in [
            ("ab\n", "ab"),
            ("ab\n\n", "ab\n\r\n"),
            ("ab\r\n", "ab"),
            ("^ab$", "ab"),
            (r"\Aab\Z", "ab"),
            (r"ab\\$", r"ab\\"),
            (r"ab\\\z", r"ab\\"),
            ("\u{feff}^", ""),
            ("^a|b$", "a|b"),
        ] {
            let pattern = |source| {
                let grammar = parse(source, &RegexOptions::default()).unwrap();
                grammar.terminals[0].kind.pattern().unwrap().clone()
            };
            assert_eq!(pattern(source), pattern(plain), "{source:?}");
        }
    }

    #[test]
    fn one_rule_with_one_terminal() {
        let grammar = parse("^a*|b{2,3}\n", &RegexOptions::default()).unwrap();
        grammar.validate().unwrap();
        assert_eq!((grammar.terminals.len(), grammar.rules.len()), (1, 1));
        assert_eq!(grammar.default_lexer, LexerMode::Scannerless);
        assert!(grammar.terminals[0].kind.pattern().unwrap().is_nullable());
        assert!(parse("", &RegexOptions::default()).is_ok());
    }

    #[test]
    fn errors_have_places_in_the_file() {
        let error = |source| parse(source, &RegexOptions::default()).unwrap_err();
        assert_eq!((error("^a(b").kind(), error("^a(b").span()), (ErrorKind::Syntax, 2..3));
        assert_eq!(
            (error("\u{feff}ab\\b").kind(), error("\u{feff}ab\\b").span()),
            (ErrorKind::Unsupported, 5..7)
        );
        assert_eq!((error("x\n(?=a)").line(), error("x\n(?=a)").column()), (2, 1));
        let options = RegexOptions { start: Some("root".to_owned()) };
        assert_eq!(parse("a", &options).unwrap_err().kind(), ErrorKind::Syntax);
    }
}
