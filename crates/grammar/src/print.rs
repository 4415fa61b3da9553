//! Grammars as text, in Lark's notation.
//!
//! What is printed reads as a grammar again ([`lark::parse`](crate::lark::parse)) of the same terminals and rules in the
//! same order of rules per nonterminal; made-up nonterminals come back as ordinary ones. Not promised: the numbering of
//! terminals, the names of ignored expressions that name terminals, and patterns that `regex-syntax` writes in another
//! way than it got them. The start rule stands in a comment on top unless it is called `start`. Cost: linear in the size of
//! the grammar.

use std::fmt::{self, Write as _};

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::ir::{Grammar, Pattern, SpecialToken, Symbol, Terminal, TerminalKind};
use crate::lark::{LarkOptions, literal, parse};

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.symbol_name(Symbol::Nonterminal(self.start));
        if start != "start" {
            writeln!(f, "// start: {start}")?;
        }
        for terminal in &self.terminals {
            if is_name(&terminal.name) && !matches!(terminal.kind, TerminalKind::Special(_)) {
                declaration(f, terminal)?;
            }
        }
        for terminal in self.terminals.iter().filter(|terminal| terminal.ignored) {
            match terminal.kind.pattern() {
                Some(pattern) if !is_name(&terminal.name) && !stands_alone(&terminal.name) => {
                    writeln!(f, "%ignore {pattern}")?;
                }
                _ => writeln!(f, "%ignore {}", terminal.name)?,
            }
        }
        let mut by_lhs = vec![Vec::new(); self.nonterminals.len()];
        for rule in &self.rules {
            by_lhs[rule.lhs.index()].push(&rule.rhs);
        }
        for (nonterminal, alternatives) in self.nonterminals.iter().zip(by_lhs) {
            for (at, rhs) in alternatives.into_iter().enumerate() {
                match at {
                    0 => write!(f, "{}:", nonterminal.name)?,
                    _ => f.write_str("\n  |")?,
                }
                if rhs.is_empty() {
                    f.write_str(" \"\"")?;
                }
                for &symbol in rhs {
                    write!(f, " {}", self.symbol_name(symbol))?;
                }
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

/// `NAME.priority: …`
fn declaration(f: &mut fmt::Formatter<'_>, terminal: &Terminal) -> fmt::Result {
    f.write_str(&terminal.name)?;
    if terminal.priority != 0 {
        write!(f, ".{}", terminal.priority)?;
    }
    match &terminal.kind {
        TerminalKind::Literal(pattern) => match literal_text(pattern) {
            Some((text, flag)) => writeln!(f, ": {}{flag}", Quoted(&text)),
            None => writeln!(f, ": {pattern}"),
        },
        TerminalKind::Pattern(pattern) => writeln!(f, ": {pattern}"),
        TerminalKind::Special(token) => writeln!(f, ": {token}"),
    }
}

/// Whether the terminal is declared under this name; others are named by what they match.
fn is_name(name: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.bytes().all(of_name)
}

/// Whether an ignored expression, which is named as it is written, names no terminals that may be gone.
fn stands_alone(name: &str) -> bool {
    parse(&format!("start: {name}"), &LarkOptions::default()).is_ok()
}

impl fmt::Display for SpecialToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Id(id) => write!(f, "<[{id}]>"),
        }
    }
}

/// As a terminal expression in Lark's notation.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Self], between: &str| {
            f.write_str("(")?;
            for (at, part) in parts.iter().enumerate() {
                write!(f, "{}{part}", if at == 0 { "" } else { between })?;
            }
            f.write_str(")")
        };
        match self {
            Self::Regex(hir) => slashed(f, hir),
            Self::Concat(parts) => joined(f, parts, " "),
            // No alternative at all, unlike one that is empty, matches nothing.
            Self::Alternate(parts) if parts.is_empty() => f.write_str(r"/[^\s\S]/"),
            Self::Alternate(parts) => joined(f, parts, " | "),
            Self::And(parts) => joined(f, parts, " & "),
            Self::Not(inner) => write!(f, "~{inner}"),
            Self::Repeat { inner, min, max } => match (min, max) {
                (0, None) => write!(f, "({inner})*"),
                (1, None) => write!(f, "({inner})+"),
                (0, Some(1)) => write!(f, "({inner})?"),
                (min, Some(max)) if min == max => write!(f, "({inner})~{min}"),
                (min, Some(max)) => write!(f, "({inner})~{min}..{max}"),
                (min, None) => write!(f, "(({inner})~{min} ({inner})*)"),
            },
        }
    }
}

/// `/…/`, on one line.
fn slashed(f: &mut fmt::Formatter<'_>, hir: &Hir) -> fmt::Result {
    let text = hir.to_string();
    if text.is_empty() {
        return f.write_str("\"\"");
    }
    f.write_str("/")?;
    for c in text.chars() {
        match c {
            '/' => f.write_str("\\/")?,
            '\n' => f.write_str("\\n")?,
            c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_str("/")
}

/// The text of a literal and its flag, if it was one.
fn literal_text(pattern: &Pattern) -> Option<(String, &'static str)> {
    let Pattern::Regex(hir) = pattern else { return None };
    let parts = match hir.kind() {
        HirKind::Concat(parts) => &parts[..],
        HirKind::Empty => &[],
        _ => std::slice::from_ref(hir),
    };
    let mut text = String::new();
    for part in parts {
        match part.kind() {
            HirKind::Literal(literal) => text += std::str::from_utf8(&literal.0).ok()?,
            HirKind::Class(Class::Unicode(class)) => text.push(class.ranges().first()?.start()),
            _ => return None,
        }
    }
    let lower = text.to_lowercase();
    let written = [(text, ""), (lower, "i")];
    written.into_iter().find(|(text, flag)| literal(text, !flag.is_empty()) == *hir)
}

/// A text as a string literal.
struct Quoted<'t>(&'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::Grammar;
    use crate::lark::{LarkOptions, parse};

    fn read(source: &str) -> Grammar {
        parse(source, &LarkOptions::default()).unwrap_or_else(|error| panic!("{}", error.render("printed", source)))
    }

    #[test]
    fn a_grammar_as_text() {
        let source = "start: a \"+\" a | \"Ab\"i N?\na: (N | W)* <|x|>\nN.2: /[0-9]+\\/\\n/\n\
                      W: \"wo\\\"r\\\\d\" | N & ~\"k\"i\nK: \"key\"i\n%ignore /\\s/\nk: K \"\"";
        let expected = r#"N.2: /(?:[0-9]+(?:\/\n))/
W: (/(?:wo"r\\d)/ | (/(?:[0-9]+(?:\/\n))/ & ~/[Kk\u212a]/))
K: "key"i
%ignore /\s/
start: a "+" a
  | "Ab"i __start_option_0
a: __a_star_1 <|x|>
k: K
__start_option_0: N
  | ""
__a_star_1: ""
  | __a_star_1 N
  | __a_star_1 W
"#;
        assert_eq!(read(source).to_string(), expected.replace("\\u212a", "\u{212a}"));
    }

    #[test]
    fn printing_and_reading_keeps_rules_and_patterns() {
        let source = "start: \"a\" X Y | Z+ /[^\\/\\\\]/ | (\"\" | W)\nX: \"\\t\\\"\" \nY.-1: /a{2,}|(?i:bé)/\nZ: X | ~Y & Y~2..3\n\
                      W: \"straße K\"i\n%ignore \" \"\n%ignore X | W\n";
        let grammar = read(source);
        let again = read(&grammar.to_string());
        assert_eq!(again.to_string(), grammar.to_string());
        assert_eq!(again.rules.len(), grammar.rules.len());
        for terminal in &grammar.terminals {
            let same = again.terminals.iter().find(|other| other.kind == terminal.kind).unwrap();
            assert_eq!((same.priority, same.ignored), (terminal.priority, terminal.ignored));
            assert!(same.name == terminal.name || terminal.name == "X | W");
        }
    }
}
