//! NLTK's notation for context-free grammars (`.cfg`), as `nltk.CFG.fromstring` reads it.
//!
//! | notation | meaning |
//! |---|---|
//! | `A -> B 'c' \| D` | productions, on one line; an empty right side, also one of several, is the empty string |
//! | `A`, `NP/S`, `<x>` after a first letter | names: letters, digits, `_` and `/`, then also `^`, `<`, `>`, `-` |
//! | `'c'`, `"c"` | a word; there are no escapes |
//! | `%start S` | the start; without it the left side of the first production. The last one counts |
//! | `# …` | a comment, on a line of its own |
//! | `\` at the end of a line | the next line belongs to it |
//! | `[0.5]` | the probability of a production: read and without meaning, as a grammar is its language |
//!
//! **Sentences** are words separated by white space, so that `the cat` is one and `thecat` is not. The words
//! of the grammar are the terminals, `\s+` is ignored, and the lexer is `longest` with one more terminal that
//! no rule needs: `\S+`, with a lower priority than words. It takes all that is no word of the grammar, also
//! what only begins with one. A word with white space in it is one terminal all the same, and is read where
//! it stands with exactly that white space. One that begins or ends with white space competes for it with
//! what is ignored, and the longer match wins.
//!
//! | notation | NLTK | here |
//! |---|---|---|
//! | a nonterminal without productions | accepted by the reader | a warning |
//! | a start without productions | accepted by the reader | refused |
//! | probabilities in a plain grammar | refused | read |
//! | a line continued at the end of the file | forgotten | read |
//! | a comment or an empty line after a continued one | a part of it, and refused | the same |
//! | `''` | a word that no text has | refused |
//! | feature structures, `NP[NUM=sg]`, `?x` | refused (`FeatureGrammar` reads them) | refused, with an explanation |
//! | letters in names | those of Python's `\w` | those of Unicode's `Alphabetic` and numbers |
//!
//! Cost: linear in the file. A budget bounds the symbols, [`NltkOptions::max_size`].

use std::collections::HashMap;

use regex_syntax::hir::Hir;

use crate::diagnostic::{ErrorKind, GrammarError, closest};
use crate::expand::{Budget, Expander};
use crate::ir::{
    Grammar, LexerMode, Nonterminal, NonterminalId, Pattern, Rule, Span, Symbol, Terminal, TerminalId,
    TerminalKind,
};
use crate::lark::regex::{self, Flags};
use crate::terminals::{Terminals, anonymous};

/// How to read a grammar in NLTK's notation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NltkOptions {
    /// The nonterminal to start from; that of the file if none is given.
    pub start: Option<String>,
    /// How many symbols the productions may have.
    pub max_size: usize,
}

impl Default for NltkOptions {
    fn default() -> Self {
        Self { start: None, max_size: 10_000_000 }
    }
}

/// Reads a grammar in NLTK's notation.
pub fn parse(source: &str, options: &NltkOptions) -> Result<Grammar, GrammarError> {
    let file = read(source).map_err(|error| error.located(source))?;
    lower(&file, options).map_err(|error| error.located(source))
}

type Result<T, E = GrammarError> = std::result::Result<T, E>;

/// What is written, with places. A production with several right sides is several.
#[derive(Debug, Default)]
struct File<'s> {
    start: Option<Name<'s>>,
    productions: Vec<Production<'s>>,
}

#[derive(Clone, Debug)]
struct Name<'s> {
    text: &'s str,
    span: Span,
}

#[derive(Debug)]
struct Production<'s> {
    lhs: Name<'s>,
    rhs: Vec<Item<'s>>,
}

#[derive(Debug)]
enum Item<'s> {
    Nonterminal(Name<'s>),
    /// What stands between quotes; the place includes them.
    Word(Name<'s>),
}

// Reading.

fn read(source: &str) -> Result<File<'_>> {
    let mut file = File::default();
    let mut reader = Reader { source, at: if source.starts_with('\u{feff}') { 3 } else { 0 } };
    while reader.at < source.len() {
        reader.skip_blanks(false);
        let rest = reader.rest();
        if rest.is_empty() {
            break;
        } else if rest.starts_with('\n') {
            reader.at += 1;
        } else if rest.starts_with('#') {
            reader.at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with('%') {
            file.start = Some(reader.directive()?);
        } else {
            reader.productions(&mut file.productions)?;
        }
    }
    if file.productions.is_empty() {
        let error = GrammarError::new(ErrorKind::Syntax, 0..0, "there are no productions");
        return Err(error.with_help("write `S -> NP VP`, one or more on a line of their own"));
    }
    Ok(file)
}

/// What Python takes for white space.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

struct Reader<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Reader<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// Skips white space up to the end of the line, and where it is `continued` the end of one that a
    /// backslash ends.
    fn skip_blanks(&mut self, continued: bool) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c| is_blank(c) && c != '\n');
            self.at += rest.len() - trimmed.len();
            let Some(after) = trimmed.strip_prefix('\\').filter(|_| continued) else { return };
            let after = after.trim_start_matches(|c| is_blank(c) && c != '\n');
            match after.strip_prefix('\n') {
                Some(next) => self.at = self.source.len() - next.len(),
                None if after.is_empty() => self.at = self.source.len(),
                None => return,
            }
        }
    }

    fn is_line_over(&self) -> bool {
        self.rest().is_empty() || self.rest().starts_with('\n')
    }

    fn error(&self, message: impl Into<String>) -> GrammarError {
        let len = self.rest().chars().next().filter(|&c| c != '\n').map_or(0, char::len_utf8);
        GrammarError::new(ErrorKind::Syntax, self.at..self.at + len, message)
    }

    /// `%start S`
    fn directive(&mut self) -> Result<Name<'s>> {
        let rest = self.rest();
        let len = rest.find(is_blank).unwrap_or(rest.len());
        if &rest[..len] != "%start" {
            let message = format!("unknown directive `{}`", &rest[..len]);
            return Err(GrammarError::new(ErrorKind::Syntax, self.at..self.at + len, message)
                .with_help("there is only `%start NAME`"));
        }
        self.at += len;
        self.skip_blanks(true);
        let name = self.name("the name of the start after `%start`")?;
        if !self.is_line_over() {
            return Err(self.error("expected the end of the line after the name of the start"));
        }
        Ok(name)
    }

    fn name(&mut self, what: &str) -> Result<Name<'s>> {
        let rest = self.rest();
        let is_first = |c: char| c.is_alphanumeric() || matches!(c, '_' | '/');
        let is_other = |c: char| is_first(c) || matches!(c, '^' | '<' | '>' | '-');
        let len = match rest.chars().next() {
            Some(c) if is_first(c) => rest.find(|c| !is_other(c)).unwrap_or(rest.len()),
            _ => return Err(self.unexpected(what)),
        };
        let span = self.at..self.at + len;
        self.at += len;
        if self.rest().starts_with('[') && self.probability().is_none() {
            let len = self.rest().find([']', '\n']).map_or(1, |end| end + 1);
            let span = span.start..self.at + self.rest()[..len].trim_end().len();
            return Err(GrammarError::new(
                ErrorKind::Unsupported,
                span,
                "feature structures are not supported",
            )
            .with_help("write a nonterminal for each combination of features, as `NP_sg`"));
        }
        self.skip_blanks(true);
        Ok(Name { text: &rest[..len], span })
    }

    fn unexpected(&self, what: &str) -> GrammarError {
        let found = match self.rest().chars().next() {
            None | Some('\n') => "the end of the line".to_owned(),
            Some(c) => format!("{c:?}"),
        };
        let error = self.error(format!("expected {what}, found {found}"));
        match self.rest().chars().next() {
            Some('#') => error.with_help("a comment has a line of its own"),
            Some('?') => {
                GrammarError::new(ErrorKind::Unsupported, error.span(), "variables are not supported")
                    .with_help("they belong to feature structures: write a nonterminal for each value")
            }
            Some('\\') => error.with_help("a backslash continues a line only at its end"),
            Some('-') => error.with_help("names begin with a letter, a digit, `_` or `/`"),
            Some('[') => error.with_help("a probability is written as `[0.25]`, at the end of a right side"),
            _ => error,
        }
    }

    /// The length of the `[0.5]` that comes next, if one does.
    fn probability(&self) -> Option<usize> {
        let inner = self.rest().strip_prefix('[')?;
        let len = inner.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        (len > 0 && inner[len..].starts_with(']')).then_some(len + 2)
    }

    /// `A -> … | …`
    fn productions(&mut self, productions: &mut Vec<Production<'s>>) -> Result<()> {
        let lhs = self.name("a nonterminal")?;
        if !self.rest().starts_with("->") {
            let error = self.unexpected("`->`");
            return Err(match lhs.text.contains("->") {
                true => error.with_help("a name may have `-` and `>` in it: put a blank before the arrow"),
                false => error,
            });
        }
        self.at += 2;
        self.skip_blanks(true);
        let mut rhs = Vec::new();
        while !self.is_line_over() {
            match self.rest().chars().next() {
                Some('|') => {
                    self.at += 1;
                    self.skip_blanks(true);
                    productions.push(Production { lhs: lhs.clone(), rhs: std::mem::take(&mut rhs) });
                }
                Some(quote @ ('\'' | '"')) => rhs.push(Item::Word(self.word(quote)?)),
                Some('[') if self.probability().is_some() => {
                    self.at += self.probability().unwrap_or_default();
                    self.skip_blanks(true);
                }
                _ => rhs.push(Item::Nonterminal(self.name("a nonterminal, a word in quotes or `|`")?)),
            }
        }
        productions.push(Production { lhs, rhs });
        Ok(())
    }

    /// `'…'`, on one line.
    fn word(&mut self, quote: char) -> Result<Name<'s>> {
        let rest = &self.rest()[1..];
        let Some(len) = rest.find([quote, '\n']).filter(|&len| rest[len..].starts_with(quote)) else {
            let len = rest.find('\n').unwrap_or(rest.len());
            let span = self.at..self.at + 1 + rest[..len].trim_end().len();
            return Err(GrammarError::new(ErrorKind::Syntax, span, "this word is not closed on its line")
                .with_help("there are no escapes: write a word with one quote in it in the other quotes"));
        };
        let span = self.at..self.at + len + 2;
        if len == 0 {
            return Err(GrammarError::new(ErrorKind::Unsupported, span, "an empty word is in no text")
                .with_help("for the empty string write nothing"));
        }
        self.at = span.end;
        self.skip_blanks(true);
        Ok(Name { text: &rest[..len], span })
    }
}

// Lowering.

fn lower(file: &File<'_>, options: &NltkOptions) -> Result<Grammar> {
    let mut names = Nonterminals::default();
    // Those with productions first, in the order of the file; then those without any.
    for production in &file.productions {
        names.get(&production.lhs);
    }
    let n_defined = names.nonterminals.len();
    let mut budget = Budget::new(options.max_size);
    let mut rules = Vec::with_capacity(file.productions.len());
    let mut terminals = Terminals::default();
    terminals.add(other_word(file));
    for production in &file.productions {
        budget.spend(production.rhs.len() + 1, &production.lhs.span)?;
        let mut rhs = Vec::with_capacity(production.rhs.len());
        for item in &production.rhs {
            rhs.push(match item {
                Item::Nonterminal(name) => Symbol::Nonterminal(names.get(name)),
                Item::Word(word) => Symbol::Terminal(word_terminal(&mut terminals, word)),
            });
        }
        rules.push(Rule { lhs: names.get(&production.lhs), rhs });
    }
    terminals.add(blanks());
    let start = start(file, options, &mut names, n_defined)?;
    let mut expander = Expander::new(names.nonterminals, budget);
    expander.rules = rules;
    Ok(terminals.finish(expander, start, LexerMode::Longest))
}

#[derive(Default)]
struct Nonterminals<'s> {
    nonterminals: Vec<Nonterminal>,
    numbers: HashMap<&'s str, NonterminalId>,
}

impl<'s> Nonterminals<'s> {
    fn get(&mut self, name: &Name<'s>) -> NonterminalId {
        let next = NonterminalId::new(self.nonterminals.len());
        let number = *self.numbers.entry(name.text).or_insert(next);
        if number == next {
            self.nonterminals.push(Nonterminal { name: name.text.to_owned(), span: Some(name.span.clone()) });
        }
        number
    }
}

fn start(
    file: &File<'_>,
    options: &NltkOptions,
    names: &mut Nonterminals<'_>,
    n_defined: usize,
) -> Result<NonterminalId> {
    let (name, span) = match (&options.start, &file.start) {
        (Some(name), _) => (&name[..], 0..0),
        (None, Some(start)) => (start.text, start.span.clone()),
        (None, None) => return Ok(NonterminalId::new(0)),
    };
    if let Some(&number) = names.numbers.get(name).filter(|number| number.index() < n_defined) {
        return Ok(number);
    }
    let message = format!("the start `{name}` has no production");
    let error = GrammarError::new(ErrorKind::Syntax, span, message);
    let defined = names.nonterminals[..n_defined].iter().map(|nonterminal| &nonterminal.name[..]);
    Err(match closest(name, defined) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help("name another start, or write productions for it"),
    })
}

fn word_terminal(terminals: &mut Terminals, word: &Name<'_>) -> TerminalId {
    terminals.get(word.text.to_owned(), || {
        // As the word would be written with quotes that it does not have.
        let quote = if word.text.contains('"') { '\'' } else { '"' };
        let name = format!("{quote}{}{quote}", word.text);
        anonymous(name, TerminalKind::Literal(Pattern::literal(word.text.as_bytes())), word.span.clone())
    })
}

/// What is no word of the grammar, up to the next blank.
///
/// A word with a blank in it is longer than that, so that what only begins with such a word is listed too.
fn other_word(file: &File<'_>) -> Terminal {
    let not_blank = pattern(r"\S+");
    let words =
        file.productions.iter().flat_map(|production| &production.rhs).filter_map(|item| match item {
            Item::Word(word) if word.text.contains(is_blank) => Some(word.text),
            _ => None,
        });
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    words.dedup();
    let more = |word: &str| Hir::concat(vec![Hir::literal(word.as_bytes().to_vec()), not_blank.clone()]);
    let all = std::iter::once(not_blank.clone()).chain(words.into_iter().map(more)).collect();
    let kind = TerminalKind::Pattern(Pattern::Regex(Hir::alternation(all)));
    Terminal { declared: true, priority: -1, reserved: true, ..Terminal::new("WORD", kind) }
}

fn blanks() -> Terminal {
    let kind = TerminalKind::Pattern(Pattern::Regex(pattern(r"\s+")));
    Terminal { span: None, ignored: true, ..anonymous(r"/\s+/".to_owned(), kind, 0..0) }
}

fn pattern(source: &str) -> Hir {
    regex::parse(source, Flags::default()).expect("a pattern of ours")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar(source: &str) -> Result<Grammar> {
        let result = parse(source, &NltkOptions::default());
        match &result {
            Ok(grammar) => grammar.validate().unwrap(),
            Err(error) => assert!(error.span().end <= source.len() && !error.render("g", source).is_empty()),
        }
        result
    }

    fn rules(source: &str) -> Vec<String> {
        let grammar = grammar(source).unwrap();
        let rule = |rule: &Rule| {
            let names: Vec<&str> = rule.rhs.iter().map(|&symbol| grammar.symbol_name(symbol)).collect();
            format!("{}: {}", grammar.symbol_name(Symbol::Nonterminal(rule.lhs)), names.join(" "))
        };
        grammar.rules.iter().map(rule).collect()
    }

    #[test]
    fn productions() {
        assert_eq!(
            rules(
                "# c\n%start S\n\n  NP -> 'a' NP/x-y | \"it's\"\r\nS -> NP V-|  \nS -> \\\n  NP \\  \n 'b'\n"
            ),
            ["NP: \"a\" NP/x-y", "NP: \"it's\"", "S: NP V-", "S: ", "S: NP \"b\""]
        );
        assert_eq!(
            rules("S -> A[0.25] B [0.5] | 'c' [.25]\nA ->\nB-><^> -> 'x'|'y'|"),
            ["S: A B", "S: \"c\"", "A: ", "B-><^>: \"x\"", "B-><^>: \"y\"", "B-><^>: "]
        );
        assert_eq!(rules("S -> 'a'\\"), ["S: \"a\""]);
        assert_eq!(rules("\u{feff}É -> 'é'"), ["É: \"é\""]);
    }

    #[test]
    fn the_start() {
        let start = |source: &str| {
            let grammar = grammar(source).unwrap();
            grammar.nonterminals[grammar.start.index()].name.clone()
        };
        assert_eq!(start("A -> B\nB -> 'b'"), "A");
        assert_eq!(start("%start A\nA -> B\nB -> 'b'\n%start B"), "B");
        let options = NltkOptions { start: Some("B".to_owned()), ..NltkOptions::default() };
        assert_eq!(parse("A -> B\nB -> 'b'", &options).unwrap().start.index(), 1);
        assert_eq!(grammar("%start C\nA -> C").unwrap_err().span(), 7..8);
    }

    #[test]
    fn words_and_what_is_none() {
        let grammar = grammar("S -> 'b' 'a' 'new york' | 'b'").unwrap();
        let names: Vec<&str> = grammar.terminals.iter().map(|terminal| &terminal.name[..]).collect();
        assert_eq!(names, ["WORD", "\"b\"", "\"a\"", "\"new york\"", r"/\s+/"]);
        assert!(
            grammar.terminals[0].reserved
                && grammar.terminals[0].priority < 0
                && grammar.terminals[4].ignored
        );
        assert_eq!(grammar.default_lexer, LexerMode::Longest);
    }

    #[test]
    fn nonterminals_without_productions_are_kept() {
        let grammar = grammar("S -> A | 'x'").unwrap();
        assert_eq!(grammar.nonterminals[1].name, "A");
        let empty = anygram_bits::BitSet::new(grammar.terminals.len());
        assert_eq!(crate::analysis::warnings(&grammar, &empty).len(), 1);
    }

    #[test]
    fn mistakes() {
        use ErrorKind::{Syntax, Unsupported};
        for (source, kind, span, message) in [
            ("", Syntax, 0..0, "no productions"),
            ("# x\n%start S", Syntax, 0..0, "no productions"),
            ("S -> 'a", Syntax, 5..7, "not closed"),
            ("S -> ''", Unsupported, 5..7, "empty word"),
            ("S -> NP[NUM=sg] VP", Unsupported, 5..15, "feature structures"),
            ("NP[NUM=?n] -> 'x'", Unsupported, 0..10, "feature structures"),
            ("S -> ?x", Unsupported, 5..6, "variables"),
            ("S->NP", Syntax, 5..5, "`->`"),
            ("S NP", Syntax, 2..3, "`->`"),
            ("S -> 'a' # c", Syntax, 9..10, "found '#'"),
            ("S -> 'a' \\ 'b'", Syntax, 9..10, "found '\\\\'"),
            ("S -> -> x", Syntax, 5..6, "found '-'"),
            ("%begin S", Syntax, 0..6, "unknown directive"),
            ("%start S T\nS -> 'a'", Syntax, 9..10, "end of the line"),
            ("%start\nS -> 'a'", Syntax, 6..6, "the name of the start"),
            ("S -> 'a'\n| 'b'", Syntax, 9..10, "a nonterminal"),
        ] {
            let error = grammar(source).unwrap_err();
            assert_eq!((error.kind(), error.span()), (kind, span), "{source:?}: {error}");
            assert!(error.message().contains(message), "{source:?}: {error}");
        }
        let small = NltkOptions { max_size: 5, ..NltkOptions::default() };
        assert_eq!(parse("S -> 'a' 'b' 'c' 'd' 'e'", &small).unwrap_err().kind(), ErrorKind::Limit);
    }
}
