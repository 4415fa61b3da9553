//! Grammars as text, in Lark's notation.
//!
//! What is printed reads as the same grammar again: [`lark::parse`](crate::lark::parse) of it has no
//! [difference](Grammar::difference), for every grammar that is [valid](Grammar::validate) and that the
//! limits of the reader allow. For that the notation has a few things that Lark has not: they are listed in
//! [`lark`](crate::lark).
//!
//! Terminals that are not declared are written where they stand, unless that would mean another: then they
//! get a name, by `%anonymous`. Expressions are written for our reader ([`lark::regex`](crate::lark::regex)),
//! node by node, so that reading makes the same nodes; what `regex-syntax` simplifies it has simplified
//! already. Terminals and right-hand sides that automata give have no notation; a comment says so, and what
//! is read again lacks them. Cost: linear in the size of the grammar. No recursion.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

use crate::ir::{Grammar, LexerMode, Pattern, SpecialToken, Symbol, Terminal, TerminalKind, literal};
use crate::lark::{is_plain_name, regex};

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.default_lexer != LexerMode::Contextual {
            writeln!(f, "%lexer {}", self.default_lexer.name())?;
        }
        if !self.pieces.is_empty() {
            writeln!(f, "// No notation has terminals that automata give: this cannot be read again.")?;
        }
        let nonterminals: Vec<String> = self.nonterminals.iter().map(|n| name(&n.name, false)).collect();
        let start = &nonterminals[self.start.index()];
        if start != "start" {
            writeln!(f, "%start {start}")?;
        }
        let terminals = self.terminals_as_text(f)?;
        let mut rules = &self.rules[..];
        for (at, lhs) in nonterminals.iter().enumerate() {
            let n_rules = rules.iter().take_while(|rule| rule.lhs.index() == at).count();
            let (own, rest) = rules.split_at(n_rules);
            rules = rest;
            for rule in self.automata.iter().filter(|rule| rule.lhs.index() == at) {
                let n_symbols = rule.symbols.len();
                writeln!(f, "// {lhs}: also what an automaton over {n_symbols} symbols gives, not shown")?;
            }
            if own.is_empty() {
                writeln!(f, "%nonterminal {lhs}")?;
                continue;
            }
            for (number, rule) in own.iter().enumerate() {
                match number {
                    0 => write!(f, "{lhs}:")?,
                    _ => f.write_str("\n  |")?,
                }
                if rule.rhs.is_empty() {
                    f.write_str(" \"\"")?;
                }
                for &symbol in &rule.rhs {
                    let text = match symbol {
                        Symbol::Terminal(t) => &terminals[t.index()],
                        Symbol::Nonterminal(n) => &nonterminals[n.index()],
                    };
                    write!(f, " {text}")?;
                }
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl Grammar {
    /// Writes the definitions of terminals and what is ignored and reserved; returns how rules write each
    /// terminal.
    fn terminals_as_text(&self, f: &mut fmt::Formatter<'_>) -> Result<Vec<String>, fmt::Error> {
        let mut named = vec![false; self.terminals.len()];
        for symbol in self.right_sides() {
            if let Symbol::Terminal(terminal) = symbol {
                named[terminal.index()] = true;
            }
        }
        let kinds: Vec<String> = self.terminals.iter().map(|terminal| terminal.kind.to_string()).collect();
        let declared = |at: &usize| self.terminals[*at].declared;
        let (declared, _): (Vec<usize>, Vec<usize>) = (0..kinds.len()).partition(declared);
        // A literal in a rule means a terminal that is declared so.
        let meant: HashSet<&str> = declared.iter().map(|&at| kinds[at].as_str()).collect();
        let taken: HashSet<&str> = declared.iter().map(|&at| self.terminals[at].name.as_str()).collect();
        let mut made_up =
            (0..).map(|at| format!("ANONYMOUS_{at}")).filter(|name| !taken.contains(name.as_str()));
        let mut written = Vec::with_capacity(kinds.len());
        for (at, terminal) in self.terminals.iter().enumerate() {
            let inline = !terminal.declared
                && terminal.priority == 0
                && terminal.max_tokens.is_none()
                && !meant.contains(kinds[at].as_str())
                && match &terminal.kind {
                    TerminalKind::Literal(_) => kinds[at] != "\"\"",
                    TerminalKind::Pattern(Pattern::Regex(_)) | TerminalKind::Special(_) => true,
                    TerminalKind::Pattern(_) => !named[at],
                    TerminalKind::Automaton { .. } => false,
                };
            if inline {
                written.push(kinds[at].clone());
                continue;
            }
            let name = match terminal.declared {
                true => name(&terminal.name, true),
                false => made_up.next().ok_or(fmt::Error)?,
            };
            declaration(f, &name, terminal, &kinds[at])?;
            written.push(name);
        }
        for (terminal, written) in self.terminals.iter().zip(&written) {
            if terminal.ignored {
                writeln!(f, "%ignore {written}")?;
            }
            if terminal.reserved {
                writeln!(f, "%reserve {written}")?;
            }
        }
        Ok(written)
    }
}

/// `NAME.priority: …`
fn declaration(f: &mut fmt::Formatter<'_>, name: &str, terminal: &Terminal, kind: &str) -> fmt::Result {
    if !terminal.declared {
        f.write_str("%anonymous ")?;
    }
    f.write_str(name)?;
    if terminal.priority != 0 {
        write!(f, ".{}", terminal.priority)?;
    }
    if let Some(most) = terminal.max_tokens {
        write!(f, "[max_tokens={most}]")?;
    }
    writeln!(f, ": {kind}")
}

/// A name as the grammar has to write it.
fn name(name: &str, terminal: bool) -> String {
    if is_plain_name(name, terminal) {
        return name.to_owned();
    }
    let mut quoted = if terminal { "$`" } else { "`" }.to_owned();
    for c in name.chars() {
        match c {
            '`' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            c => quoted.push(c),
        }
    }
    quoted.push('`');
    quoted
}

impl fmt::Display for SpecialToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Id(id) => write!(f, "<[{id}]>"),
            // With names in it no front end reads this.
            Self::Except(tokens) => {
                let tokens: Vec<String> = tokens
                    .iter()
                    .map(|token| match token {
                        Self::Id(id) => id.to_string(),
                        token => token.to_string(),
                    })
                    .collect();
                write!(f, "<[^{}]>", tokens.join(","))
            }
        }
    }
}

/// As the right side of a definition.
impl fmt::Display for TerminalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(pattern) => match literal_text(pattern) {
                Some((text, ignore_case)) => quoted(f, &text, ignore_case),
                None => write!(f, "{pattern}"),
            },
            Self::Pattern(pattern) => write!(f, "{pattern}"),
            Self::Special(token) => write!(f, "{token}"),
            // Not in any notation: what an automaton matches may have no end.
            Self::Automaton { automaton, label } => write!(f, "<label {label} of automaton {automaton}>"),
        }
    }
}

/// As a terminal expression in Lark's notation.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        enum Todo<'p> {
            Pattern(&'p Pattern),
            Text(&'static str),
            Repeat(u32, Option<u32>),
        }
        let mut agenda = vec![Todo::Pattern(self)];
        while let Some(todo) = agenda.pop() {
            let pattern = match todo {
                Todo::Pattern(pattern) => pattern,
                Todo::Text(text) => {
                    f.write_str(text)?;
                    continue;
                }
                Todo::Repeat(min, max) => {
                    repetition(f, min, max)?;
                    continue;
                }
            };
            let (parts, between): (&[Self], _) = match pattern {
                Self::Regex(hir) => {
                    slashed(f, hir)?;
                    continue;
                }
                Self::Not(inner) => {
                    f.write_str("~")?;
                    // It binds tighter than what repeats.
                    let repeats = matches!(**inner, Self::Repeat { .. });
                    f.write_str(if repeats { "(" } else { "" })?;
                    agenda.extend(repeats.then_some(Todo::Text(")")));
                    agenda.push(Todo::Pattern(inner));
                    continue;
                }
                Self::Repeat { inner, min, max } => {
                    agenda.push(Todo::Repeat(*min, *max));
                    (std::slice::from_ref(&**inner), "")
                }
                Self::Concat(parts) => (parts, " "),
                Self::Alternate(parts) => (parts, " | "),
                Self::And(parts) => (parts, " & "),
            };
            f.write_str("(")?;
            agenda.push(Todo::Text(")"));
            for (at, part) in parts.iter().enumerate().rev() {
                agenda.push(Todo::Pattern(part));
                if at > 0 {
                    agenda.push(Todo::Text(between));
                }
            }
        }
        Ok(())
    }
}

fn repetition(f: &mut impl fmt::Write, min: u32, max: Option<u32>) -> fmt::Result {
    match (min, max) {
        (0, None) => f.write_str("*"),
        (1, None) => f.write_str("+"),
        (0, Some(1)) => f.write_str("?"),
        (min, None) => write!(f, "{{{min},}}"),
        (min, Some(max)) if min == max => write!(f, "{{{min}}}"),
        (min, Some(max)) => write!(f, "{{{min},{max}}}"),
    }
}

/// `/…/`, on one line.
fn slashed(f: &mut fmt::Formatter<'_>, hir: &Hir) -> fmt::Result {
    f.write_str("/")?;
    match hir.kind() {
        // Two slashes begin a comment.
        HirKind::Empty => f.write_str("(?:)")?,
        _ => regular_expression(f, hir)?,
    }
    f.write_str("/")
}

/// A regular expression in the notation of Python, as far as our reader has it.
fn regular_expression(f: &mut fmt::Formatter<'_>, hir: &Hir) -> fmt::Result {
    enum Todo<'h> {
        Hir(&'h Hir),
        Text(&'static str),
        Repeat { min: u32, max: Option<u32>, greedy: bool },
    }
    let mut agenda = vec![Todo::Hir(hir)];
    while let Some(todo) = agenda.pop() {
        let hir = match todo {
            Todo::Hir(hir) => hir,
            Todo::Text(text) => {
                f.write_str(text)?;
                continue;
            }
            Todo::Repeat { min, max, greedy } => {
                repetition(f, min, max)?;
                f.write_str(if greedy { "" } else { "?" })?;
                continue;
            }
        };
        let grouped = |agenda: &mut Vec<Todo<'_>>, f: &mut fmt::Formatter<'_>| {
            agenda.push(Todo::Text(")"));
            f.write_str("(?:")
        };
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => literal_bytes(f, &literal.0)?,
            HirKind::Class(class) => character_class(f, class)?,
            HirKind::Repetition(repetition) => {
                let (min, max, greedy) = (repetition.min, repetition.max, repetition.greedy);
                agenda.push(Todo::Repeat { min, max, greedy });
                if !is_item(&repetition.sub) {
                    grouped(&mut agenda, f)?;
                }
                agenda.push(Todo::Hir(&repetition.sub));
            }
            HirKind::Concat(parts) => {
                for part in parts.iter().rev() {
                    let is_alternation = matches!(part.kind(), HirKind::Alternation(_));
                    agenda.extend(is_alternation.then_some(Todo::Text(")")));
                    agenda.push(Todo::Hir(part));
                    agenda.extend(is_alternation.then_some(Todo::Text("(?:")));
                }
            }
            HirKind::Alternation(parts) => {
                for (at, part) in parts.iter().enumerate().rev() {
                    agenda.push(Todo::Hir(part));
                    agenda.extend((at > 0).then_some(Todo::Text("|")));
                }
            }
            HirKind::Capture(capture) => {
                grouped(&mut agenda, f)?;
                agenda.push(Todo::Hir(&capture.sub));
            }
            // No valid grammar has one.
            HirKind::Look(look) => write!(f, "(?#{look:?})")?,
        }
    }
    Ok(())
}

/// Whether a quantifier after the expression applies to the whole of it.
fn is_item(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(_) => true,
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => text.chars().count() == 1,
            Err(_) => literal.0.len() == 1,
        },
        _ => false,
    }
}

fn literal_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().try_for_each(|c| character(f, c, false))?;
        chunk.invalid().iter().try_for_each(|byte| write!(f, "(?-u:\\x{byte:02x})"))?;
    }
    Ok(())
}

/// A character of a regular expression, in a class or outside.
fn character(f: &mut fmt::Formatter<'_>, c: char, in_class: bool) -> fmt::Result {
    let special = if in_class { "/\\[]^-" } else { "/\\[](){}|*+?.^$" };
    match c {
        c if special.contains(c) => write!(f, "\\{c}"),
        c => plain_or_escaped(f, c),
    }
}

/// A character, as an escape if it could not be seen.
fn plain_or_escaped(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        c if c.is_control() => write!(f, "\\x{:02x}", c as u32),
        c if c != ' ' && c.is_whitespace()
            || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}') =>
        {
            write!(f, "\\u{:04x}", c as u32)
        }
        c => f.write_char(c),
    }
}

fn character_class(f: &mut fmt::Formatter<'_>, class: &Class) -> fmt::Result {
    let range = |f: &mut fmt::Formatter<'_>, start: char, end: char| {
        character(f, start, true)?;
        if end as u32 > start as u32 + 1 {
            f.write_str("-")?;
        }
        if end > start { character(f, end, true) } else { Ok(()) }
    };
    match class {
        Class::Unicode(class) => {
            if let Some(shorthand) = shorthand(class) {
                return f.write_str(shorthand);
            }
            let mut negated = class.clone();
            negated.negate();
            let mut again = negated.clone();
            again.negate();
            let (sign, class) = match class.ranges() {
                // Twice negated is not always the same, because of the surrogates.
                [first, .., last] if first.start() == '\0' && last.end() == char::MAX && again == *class => {
                    ("^", &negated)
                }
                _ => ("", class),
            };
            write!(f, "[{sign}")?;
            class.ranges().iter().try_for_each(|r| range(f, r.start(), r.end()))?;
            f.write_str("]")
        }
        // Whatever class it was once that has nothing in it.
        Class::Bytes(class) if class.ranges().is_empty() => f.write_str(r"[^\s\S]"),
        Class::Bytes(class) => {
            let byte = |f: &mut fmt::Formatter<'_>, byte: u8| match byte {
                0x80.. => write!(f, "\\x{byte:02x}"),
                _ => character(f, char::from(byte), true),
            };
            f.write_str("(?-u:[")?;
            for range in class.ranges() {
                byte(f, range.start())?;
                if range.end() > range.start() {
                    f.write_str("-")?;
                    byte(f, range.end())?;
                }
            }
            f.write_str("])")
        }
    }
}

/// The short form of some large classes.
fn shorthand(class: &ClassUnicode) -> Option<&'static str> {
    // Fewer ranges are read easily enough.
    const LARGE: usize = 60;
    if class.ranges().len() < LARGE {
        return None;
    }
    [r"\w", r"\W", r"\d", r"\D"].into_iter().find(|shorthand| {
        let hir = regex::parse(shorthand, regex::Flags::default());
        hir.is_ok_and(|hir| matches!(hir.kind(), HirKind::Class(Class::Unicode(known)) if known == class))
    })
}

/// The text of a literal, and whether any case will do; nothing if it is no literal.
pub(crate) fn literal_text(pattern: &Pattern) -> Option<(String, bool)> {
    let Pattern::Regex(hir) = pattern else { return None };
    let parts = match hir.kind() {
        HirKind::Concat(parts) => &parts[..],
        HirKind::Empty => &[],
        _ => std::slice::from_ref(hir),
    };
    let (mut text, mut ignore_case) = (String::new(), false);
    for part in parts {
        match part.kind() {
            HirKind::Literal(literal) => text += std::str::from_utf8(&literal.0).ok()?,
            HirKind::Class(Class::Unicode(class)) => {
                ignore_case = true;
                // Any member will do: it folds to the same class.
                let mut members = class.ranges().iter().flat_map(|range| range.start()..=range.end());
                let first = class.ranges().first()?.start();
                text.push(members.by_ref().take(8).find(|c| c.is_lowercase()).unwrap_or(first));
            }
            _ => return None,
        }
    }
    (literal(&text, ignore_case) == *hir).then_some((text, ignore_case))
}

/// A text as a string literal.
fn quoted(f: &mut fmt::Formatter<'_>, text: &str, ignore_case: bool) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c => plain_or_escaped(f, c)?,
        }
    }
    f.write_str(if ignore_case { "\"i" } else { "\"" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lark::{LarkOptions, parse};

    fn read(source: &str) -> Grammar {
        let grammar = parse(source, &LarkOptions::default());
        let grammar = grammar.unwrap_or_else(|error| panic!("{}", error.render("printed", source)));
        grammar.validate().unwrap_or_else(|error| panic!("{error}\n{source}"));
        grammar
    }

    #[track_caller]
    fn expect_same(grammar: &Grammar) {
        let printed = grammar.to_string();
        let again = read(&printed);
        assert_eq!(grammar.difference(&again), None, "{printed}");
        assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn a_grammar_as_text() {
        let source = "start: a \"+\" a | \"Ab\"i N?\na: (N | W)* <|x|>\nN.2: /[0-9]+\\/\\n/\n\
                      W: \"wo\\\"r\\\\d\" | N & ~\"k\"i\nK: \"key\"i\n%ignore /\\s/\nk: K \"\"\n`k/x`: \
                      /\\w[^\\W_]*?/";
        let expected = r#"N.2: /[0-9]+\/\n/
W: (/wo"r\\d/ | (/[0-9]+\/\n/ & ~/[Kk\u212a]/))
K: "key"i
%ignore /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/
start: a "+" a
  | "ab"i __start_option_0
a: __a_star_1 <|x|>
k: K
`k/x`: /\w[…]*?/
__start_option_0: N
  | ""
__a_star_1: ""
  | __a_star_1 N
  | __a_star_1 W
"#;
        let expected = expected
            .replace("k\\u212a", "k\u{212a}")
            .replace("\\x20", " ")
            .replace("\\x85\\xa0", "\\x85\\u00a0");
        let printed = read(source).to_string();
        let start = printed.find("\\w[").unwrap() + 3;
        let end = start + printed[start..].find("]*?").unwrap();
        assert_eq!(format!("{}…{}", &printed[..start], &printed[end..]), expected);
        expect_same(&read(source));
    }

    #[test]
    fn what_is_printed_reads_as_the_same_grammar() {
        let sources = [
            "start: \"a\" X Y | Z+ /[^\\/\\\\]/ | (\"\" | W)\nX: \"\\t\\\"\" \nY.-1: /a{2,}|(?i:bé)/\n\
             Z: X | ~Y & Y~2..3\nW: \"straße K\"i\n%ignore \" \"\n%ignore X | W\n",
            "%lexer longest\n%start `a b`\n`a b`: `c\\`\\\\\\nd` | $`X y` $`\\r`\n%nonterminal \
             `c\\`\\\\\\nd`\n\
             $`X y`: \"\"\n$`\\r`.3: /(?:)/",
            // Terminals that only a name tells apart.
            "start: A B C D T \"x\" /x/ <[1]>\nA: \"x\"\nB: \"x\"\nC: /x/\nD: \"x\" \"\"\nT: <[1]>\n%reserve \
             /x|y/\n%ignore /x|y/",
            "start: A B C D E | A A\n%anonymous A: \"x\"\n%anonymous B.1: \"x\"\n%anonymous C: /x/ & /y/\n\
             %anonymous D: \"\"\nE: \"x\"\n%anonymous F: /z/\n%ignore /f/\n%ignore F\n%ignore /g/",
            "start: start | start | \"\" | \"\" | a\na:\nb: b",
            "start: T U V\nT: (/a/ ~/b/){2,} | (~/c/)? \"d\"*\nU: ~~\"x\" ~(\"\" | (\"y\" & /z/))+\nV: \
             (~\"x\")~0..2 | ~((~\"y\")*)",
            "start: /[]^\\-\\\\a[\\/]/ /(?-u:\\xff)*|(?-u:[\\x00-\\x7f])(?-u:[a\\xfe]+)/ /[^\\s\\S]|a/ \
             /(?:|a)(b|)??/",
            "start: \"İK\"i \"ſ\"i \"12\"i \"ß\\u0000\\u200b\\u2028\" /\\u00a0\\x00\\x7f/ /#{}x y/",
        ];
        for source in sources {
            expect_same(&read(source));
        }
    }

    /// Patterns as deep as they may be; deeper ones are refused.
    #[test]
    fn patterns_of_the_greatest_depth() {
        for (open, close) in [("(?:a", ")*"), ("(?:a|b", ")"), ("(?:", "){2}"), ("[^a]?(?:b+|", ")")] {
            let deepest = |wrap: &dyn Fn(&str) -> String| {
                let pattern = |n: usize| wrap(&format!("{}a{}", open.repeat(n), close.repeat(n)));
                let read = |n: usize| parse(&pattern(n), &LarkOptions::default()).ok();
                let deepest = (1..300).rev().find_map(read).unwrap();
                assert!(
                    deepest.terminals[0].kind.pattern().unwrap().depth() > Pattern::MAX_DEPTH - 4,
                    "{open}"
                );
                expect_same(&deepest);
            };
            deepest(&|pattern| format!("start: /{pattern}/"));
            deepest(&|pattern| format!("start: T\nT: ~(/{pattern}/ & ~/x/)"));
        }
    }
}
