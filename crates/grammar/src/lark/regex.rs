//! Python's regular expressions, translated for `regex-syntax`.
//!
//! A pattern stands for a language over Unicode scalar values, matched by their UTF-8 bytes (DESIGN, section
//! 2). What the two notations share is passed through; what they read differently is rewritten:
//!
//! | Python | here |
//! |---|---|
//! | `\d`, `\w`, `\s` | `Nd`; letters, numbers and `_`; white space and `\x1c` to `\x1f` |
//! | `[`, `&&`, `--`, `~~` in a class | themselves |
//! | `{` that begins no quantifier | itself |
//! | `{,n}` | `{0,n}` |
//! | capturing groups | plain groups |
//! | flag `x` | blanks and comments are removed here, because the two disagree on blanks in classes |
//! | `\u{1F600}`, `\uD83D\uDE00`, `\cA`, which Python refuses | the character, as in ECMAScript |
//!
//! Lazy quantifiers are kept as they are written, and mean nothing.
//!
//! Refused, since a language cannot say it or the lexer cannot do it: look-around (`^ $ \b \A (?= (?<!` …;
//! [`parse_whole`] reads `^ $ \A \Z \z`), back-references, conditional, atomic and possessive parts, and the
//! flags `a` and `L`. Beyond Python, `\p{…}` and `(?-u:\xFF)`, a raw byte, are passed through. Flag `i` is
//! simple case folding, as in Python but for `İ`, which Python also takes for `i`. (Compared with Python 3.11
//! on 20,000 random patterns and 1.2 million texts: no other difference.) Cost: linear in the pattern, plus
//! what `regex-syntax` takes. No recursion here; nesting beyond [`NEST_LIMIT`] is an error there.

use std::ops::Range;

use regex_syntax::hir::Hir;

use super::text::{code_point, ecma_code_point};
use crate::anchors;
use crate::diagnostic::ErrorKind;
use crate::ir::{self, Pattern};

/// How deep groups, repetitions and classes may nest: so deep as patterns may, each level of which may need a
/// group.
pub const NEST_LIMIT: u32 = 2 * Pattern::MAX_DEPTH as u32 + 8;

/// Why a pattern was refused, with a place in the pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegexError {
    /// What is wrong, for programs.
    pub kind: ErrorKind,
    /// Where, in bytes of the pattern.
    pub span: Range<usize>,
    /// What is wrong, for people.
    pub message: String,
    /// What to do about it.
    pub help: Option<&'static str>,
}

/// The flags that change what a pattern matches. (`m` changes only anchors, `u` is always on.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags {
    /// `i`: upper and lower case are the same.
    pub ignore_case: bool,
    /// `s`: the dot matches line ends too.
    pub dot_all: bool,
    /// `x`: blanks and comments mean nothing.
    pub verbose: bool,
}

impl Flags {
    /// Reads flag letters; the error is the offset of one that cannot be obeyed.
    pub fn from_letters(letters: &str) -> Result<Self, usize> {
        let mut flags = Self::default();
        for (at, letter) in letters.char_indices() {
            match letter {
                'i' => flags.ignore_case = true,
                's' => flags.dot_all = true,
                'x' => flags.verbose = true,
                'm' | 'u' => {}
                _ => return Err(at),
            }
        }
        Ok(flags)
    }
}

/// The expression that a Python pattern stands for, as a language of its own: without anchors.
pub fn parse(pattern: &str, flags: Flags) -> Result<Hir, RegexError> {
    let hir = read(pattern, flags, false)?;
    within_depth(pattern, hir)
}

/// The same in the notation of Rust's `regex`, which llguidance reads.
pub(crate) fn parse_rust(pattern: &str, flags: Flags) -> Result<Hir, RegexError> {
    let parsed = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .nest_limit(NEST_LIMIT)
        .case_insensitive(flags.ignore_case)
        .dot_matches_new_line(flags.dot_all)
        .ignore_whitespace(flags.verbose)
        .build()
        .parse(pattern);
    let hir = parsed.map_err(|error| {
        let (span, message) = match &error {
            regex_syntax::Error::Parse(error) => (error.span(), error.kind().to_string()),
            regex_syntax::Error::Translate(error) => (error.span(), error.kind().to_string()),
            error => return whole(pattern, ErrorKind::Syntax, error.to_string()),
        };
        let (kind, span) = (ErrorKind::Syntax, span.start.offset..span.end.offset);
        RegexError { kind, span, message, help: None }
    })?;
    if !hir.properties().look_set().is_empty() {
        let mut error = whole(pattern, ErrorKind::Unsupported, "anchors are not supported".to_owned());
        error.help = Some(NO_LOOK);
        return Err(error);
    }
    within_depth(pattern, without_groups(&hir))
}

/// The same without what captures.
fn without_groups(hir: &Hir) -> Hir {
    use regex_syntax::hir::{HirKind, Repetition};
    match hir.kind() {
        HirKind::Capture(capture) => without_groups(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_groups).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_groups).collect()),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(without_groups(&repetition.sub));
            Hir::repetition(Repetition { sub, greedy: true, ..repetition.clone() })
        }
        _ => hir.clone(),
    }
}

fn whole(pattern: &str, kind: ErrorKind, message: String) -> RegexError {
    RegexError { kind, span: 0..pattern.len(), message, help: None }
}

/// The same for a pattern that is matched as a whole. `^` and `\A` then hold where nothing has been read
/// before, `$`, `\Z` and `\z` where nothing follows. (In Python `$` also holds before a last line end, and
/// with the flag `m` both hold at lines: here that is refused.)
pub fn parse_whole(pattern: &str, flags: Flags) -> Result<Hir, RegexError> {
    let hir = within_depth(pattern, read(pattern, flags, true)?)?;
    let resolved = anchors::resolve(&hir).ok_or_else(|| {
        let message = "its anchors make it too large".to_owned();
        let help = Some("write `^` at the beginning and `$` at the end of alternatives, not in repetitions");
        RegexError { kind: ErrorKind::Limit, span: 0..pattern.len(), message, help }
    })?;
    within_depth(pattern, resolved)
}

fn read(pattern: &str, flags: Flags, anchors: bool) -> Result<Hir, RegexError> {
    let state = State { verbose: flags.verbose, unicode: true, multi_line: false };
    let mut translator = Translator {
        text: pattern,
        at: 0,
        out: String::new(),
        map: vec![],
        outer: vec![],
        state,
        last: Last::Nothing,
        anchors,
    };
    translator.run()?;
    let parsed = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .nest_limit(NEST_LIMIT)
        .case_insensitive(flags.ignore_case)
        .dot_matches_new_line(flags.dot_all)
        .build()
        .parse(&translator.out);
    parsed.map_err(|error| translator.explain(&error))
}

/// The expression, unless it nests too deep for those who recurse on it.
fn within_depth(pattern: &str, hir: Hir) -> Result<Hir, RegexError> {
    if ir::hir_depth(&hir) > Pattern::MAX_DEPTH {
        let message = format!("it nests deeper than {} levels", Pattern::MAX_DEPTH);
        return Err(RegexError { kind: ErrorKind::Limit, span: 0..pattern.len(), message, help: None });
    }
    Ok(hir)
}

const NO_LOOK: &str = "a terminal is a language of its own: describe the text that it matches, not what \
                       stands beside it; the longest \
     match ends a word where `\\b` would";

/// Why not, and what instead; part of what is matched can be excluded by an intersection.
const NO_AHEAD: &str = "a terminal is a language of its own and does not see what follows it; to leave texts \
                        out, \
                        intersect with a complement in a terminal: `NAME: /[a-z]+/ & ~/if|else/`";
const NO_BEHIND: &str =
    "say what may stand before instead: `/\"([^\"\\\\\\n]|\\\\.)*\"/` for `/\".*?(?<!\\\\)\"/`";
const NO_REFERENCE: &str = "no automaton can compare two parts of a text; if there are few, write a case for \
                            each: \
                            `/'[^']*'|\"[^\"]*\"/` for `/(['\"]).*?\\1/`";

/// What holds inside of a group until it ends.
#[derive(Clone, Copy)]
struct State {
    verbose: bool,
    unicode: bool,
    multi_line: bool,
}

/// What a quantifier would apply to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Item,
    Quantifier,
}

struct Translator<'p> {
    text: &'p str,
    at: usize,
    out: String,
    /// Pairs of offsets in `out` and in `text`, ascending.
    map: Vec<(usize, usize)>,
    outer: Vec<State>,
    state: State,
    last: Last,
    /// Whether anchors are read.
    anchors: bool,
}

type Done = Result<(), RegexError>;

impl<'p> Translator<'p> {
    fn rest(&self) -> &'p str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Writes what the next `len` bytes of the pattern are translated to, and steps over them.
    fn emit(&mut self, len: usize, translation: &str) {
        self.map.push((self.out.len(), self.at));
        self.out.push_str(translation);
        self.at += len;
    }

    /// Writes a character. Without Unicode one that is written as an escape is a byte.
    fn emit_char(&mut self, len: usize, c: char) {
        let mut text = String::new();
        if !self.state.unicode && self.rest().starts_with('\\') && !c.is_ascii() && c <= '\u{ff}' {
            text = format!("\\x{:02x}", c as u32);
        } else if regex_syntax::is_meta_character(c) {
            text.extend(['\\', c]);
        } else {
            text.push(c);
        }
        self.emit(len, &text);
    }

    fn error(&self, kind: ErrorKind, len: usize, message: impl Into<String>) -> RegexError {
        let end = (self.at + len).min(self.text.len());
        RegexError { kind, span: self.at..end, message: message.into(), help: None }
    }

    fn unsupported(&self, len: usize, what: &str, help: &'static str) -> RegexError {
        let message = format!("{what} not supported");
        RegexError { help: Some(help), ..self.error(ErrorKind::Unsupported, len, message) }
    }

    fn run(&mut self) -> Done {
        while let Some(c) = self.peek() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.emit(1, ")");
                    self.state = self.outer.pop().unwrap_or(self.state);
                    self.last = Last::Item;
                }
                '|' => {
                    self.emit(1, "|");
                    self.last = Last::Nothing;
                }
                '*' | '+' | '?' => self.quantifier(1, c.encode_utf8(&mut [0; 4]))?,
                '{' => match self.braces() {
                    Some((len, translation)) => self.quantifier(len, &translation)?,
                    None => self.item_char(1, '{'),
                },
                '.' => {
                    self.emit(1, ".");
                    self.last = Last::Item;
                }
                '^' | '$' => self.anchor(1, c)?,
                '#' if self.state.verbose => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                c if self.state.verbose && c.is_ascii_whitespace() => self.at += 1,
                c => self.item_char(c.len_utf8(), c),
            }
        }
        Ok(())
    }

    /// An anchor of so many bytes, of which this is the last character.
    fn anchor(&mut self, len: usize, c: char) -> Done {
        let name = &self.rest()[..len];
        if !self.anchors {
            return Err(self.unsupported(len, &format!("the anchor `{name}` is"), NO_LOOK));
        }
        if self.state.multi_line && len == 1 {
            let help = "leave the flag `m` out, and write line ends as `\\n`";
            return Err(self.unsupported(len, &format!("the anchor `{name}` of lines (flag `m`) is"), help));
        }
        self.emit(len, if matches!(c, '^' | 'A') { r"\A" } else { r"\z" });
        self.last = Last::Nothing;
        Ok(())
    }

    fn item_char(&mut self, len: usize, c: char) {
        self.emit_char(len, c);
        self.last = Last::Item;
    }

    /// A quantifier with what follows it: `?` for lazy, `+` for possessive.
    fn quantifier(&mut self, len: usize, translation: &str) -> Done {
        match self.last {
            Last::Item => {}
            Last::Nothing => return Err(self.error(ErrorKind::Syntax, len, "nothing to repeat")),
            Last::Quantifier => {
                let error = self.error(ErrorKind::Syntax, len, "a repetition of a repetition");
                return Err(RegexError { help: Some("use a group, as in `(?:a+)*`"), ..error });
            }
        }
        match self.rest()[len..].chars().next() {
            Some('+') => {
                let help = "use the plain quantifier, if what follows cannot be taken for one more";
                return Err(self.unsupported(len + 1, "a possessive quantifier is", help));
            }
            // Lazy ones match the same texts.
            Some('?') => self.emit(len + 1, &format!("{translation}?")),
            _ => self.emit(len, translation),
        }
        self.last = Last::Quantifier;
        Ok(())
    }

    /// The quantifier in braces that comes next, if it is one: its length and translation.
    fn braces(&self) -> Option<(usize, String)> {
        let inner = &self.rest()[1..];
        let inner = &inner[..inner.find('}')?];
        let (min, max) = inner.split_once(',').unwrap_or((inner, inner));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if inner.is_empty() || !digits(min) || !digits(max) {
            return None;
        }
        let min = if min.is_empty() { "0" } else { min };
        let translation = if inner.contains(',') { format!("{{{min},{max}}}") } else { format!("{{{min}}}") };
        Some((inner.len() + 2, translation))
    }

    /// An escape outside of classes.
    fn escape(&mut self) -> Done {
        let rest = self.rest();
        let Some(c) = rest[1..].chars().next() else {
            return Err(self.error(ErrorKind::Syntax, 1, "a backslash at the end of the pattern"));
        };
        match c {
            'A' | 'Z' | 'z' => return self.anchor(2, c),
            'b' | 'B' => {
                return Err(self.unsupported(2, &format!("the anchor `\\{c}` is"), NO_LOOK));
            }
            '1'..='9' if self.octal().is_none() => {
                return Err(self.unsupported(2, "a back-reference is", NO_REFERENCE));
            }
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => {
                let set = shorthand(c, self.state.unicode);
                // Upper and lower case have no part in it: folding would add a combining mark to `\w`.
                let translation = match (c.is_ascii_lowercase(), self.state.unicode) {
                    (true, _) => format!("(?-i:[{set}])"),
                    (false, _) => format!("(?-i:[^{set}])"),
                };
                self.emit(2, &translation);
            }
            'p' | 'P' => self.property()?,
            _ => {
                let (value, len) = self.escaped_char(c)?;
                self.emit_char(len, value);
            }
        }
        self.last = Last::Item;
        Ok(())
    }

    /// `\p{…}`, an extension.
    fn property(&mut self) -> Done {
        let rest = self.rest();
        let len = match rest[2..].strip_prefix('{').map(|inner| inner.find('}')) {
            Some(Some(len)) => len + 4,
            Some(None) => return Err(self.error(ErrorKind::Syntax, 3, "this `{` is not closed")),
            None => 2 + rest[2..].chars().next().map_or(0, char::len_utf8),
        };
        self.emit(len, &rest[..len]);
        Ok(())
    }

    /// The value and length of the octal escape that comes next: `\0`, `\07`, `\012`, `\101`.
    fn octal(&self) -> Option<(char, usize)> {
        let digits = &self.rest()[1..];
        let n_octal = digits.bytes().take(3).take_while(|byte| (b'0'..b'8').contains(byte)).count();
        if !digits.starts_with('0') && n_octal < 3 {
            return None;
        }
        let value = u32::from_str_radix(&digits[..n_octal], 8).ok()?;
        char::from_u32(value).map(|value| (value, n_octal + 1))
    }

    /// The character that the escape with this letter stands for, and the length of the escape.
    fn escaped_char(&self, c: char) -> Result<(char, usize), RegexError> {
        Ok(match c {
            'a' => ('\u{7}', 2),
            'f' => ('\u{c}', 2),
            'n' => ('\n', 2),
            'r' => ('\r', 2),
            't' => ('\t', 2),
            'v' => ('\u{b}', 2),
            'c' => self.control()?,
            'u' if let Some(found) = ecma_code_point(self.rest()) => {
                found.map_err(|(len, message)| self.error(ErrorKind::Syntax, len, message))?
            }
            'x' | 'u' | 'U' => code_point(self.rest())
                .map_err(|(len, message)| self.error(ErrorKind::Syntax, len, message))?,
            '0'..='9' => match self.octal() {
                Some((value, _)) if value > '\u{ff}' => {
                    return Err(self.error(ErrorKind::Syntax, 4, "an octal escape goes up to `\\377`"));
                }
                Some(octal) => octal,
                None => {
                    return Err(self.error(ErrorKind::Syntax, 2, format!("`\\{c}` is no character")));
                }
            },
            'N' => return Err(self.unsupported(2, "a character by its name is", "write `\\uHHHH`")),
            c if c.is_ascii_alphabetic() => {
                return Err(self.error(ErrorKind::Syntax, 2, format!("`\\{c}` has no meaning")));
            }
            c => (c, 1 + c.len_utf8()),
        })
    }

    /// `\cA`: the letter less 64.
    fn control(&self) -> Result<(char, usize), RegexError> {
        match self.rest().chars().nth(2).filter(char::is_ascii_alphabetic) {
            Some(letter) => Ok((char::from(letter as u8 & 0x1f), 3)),
            None => Err(self.error(ErrorKind::Syntax, 2, "`\\c` needs a letter, as in `\\cA`")),
        }
    }

    /// `[…]`
    fn class(&mut self) -> Done {
        let open = self.at;
        self.emit(1, "[");
        let negated = self.peek() == Some('^');
        if negated {
            self.emit(1, "^");
        }
        let mut borders = [false; 2];
        let mut first = true;
        loop {
            match self.peek() {
                None => {
                    self.at = open;
                    return Err(RegexError {
                        help: Some("a slash inside of a class is written `\\/`"),
                        ..self.error(ErrorKind::Syntax, 1, "this class is not closed")
                    });
                }
                Some(']') if !first => break,
                Some(_) => self.class_item(&mut borders)?,
            }
            first = false;
        }
        if negated && borders == [true; 2] {
            // `regex-syntax` 0.8.11 does not see that nothing lies between `..\u{d7ff}` and `\u{e000}..`, and
            // negates wrong.
            self.emit(0, "\u{d7ff}-\u{e000}");
        }
        self.emit(1, "]");
        self.last = Last::Item;
        Ok(())
    }

    /// A set, a character, or a range of characters in a class. `borders` is whether one ends before the
    /// surrogates, and whether one begins after them.
    fn class_item(&mut self, borders: &mut [bool; 2]) -> Done {
        let start = self.at;
        let Some((from, len)) = self.class_char()? else {
            if self.is_range() {
                let error =
                    self.error(ErrorKind::Syntax, 1, "a range begins with a character, not with a set");
                return Err(RegexError { help: Some("write `\\-` for a minus"), ..error });
            }
            return Ok(());
        };
        self.at = start + len;
        borders[1] |= from == '\u{e000}';
        if !self.is_range() {
            borders[0] |= from == '\u{d7ff}';
            self.at = start;
            self.emit_char(len, from);
            return Ok(());
        }
        self.at += 1;
        let to_start = self.at;
        let Some((to, to_len)) = self.class_char()? else {
            self.at = start;
            let error = self.error(ErrorKind::Syntax, to_start + 2 - start, "a range ends with a character");
            return Err(RegexError { help: Some("write `\\-` for a minus"), ..error });
        };
        if to < from {
            self.at = start;
            let message = format!("the range from {from:?} to {to:?} is empty");
            return Err(self.error(ErrorKind::Syntax, to_start + to_len - start, message));
        }
        borders[0] |= to == '\u{d7ff}';
        self.at = start;
        self.emit_char(len, from);
        self.emit(1, "-");
        self.emit_char(to_len, to);
        Ok(())
    }

    /// Whether a minus comes next that has something on its right.
    fn is_range(&self) -> bool {
        self.rest().starts_with('-') && !self.rest()[1..].starts_with(']')
    }

    /// The character that comes next in a class and its length, not yet written; or none, if it was a set,
    /// which is written already.
    fn class_char(&mut self) -> Result<Option<(char, usize)>, RegexError> {
        let Some(c) = self.peek() else {
            return Err(self.error(ErrorKind::Syntax, 0, "this class is not closed"));
        };
        if c != '\\' {
            return Ok(Some((c, c.len_utf8())));
        }
        let Some(c) = self.rest()[1..].chars().next() else {
            return Err(self.error(ErrorKind::Syntax, 1, "a backslash at the end of the pattern"));
        };
        match c {
            'b' => Ok(Some(('\u{8}', 2))),
            'd' | 'w' | 's' => {
                self.emit(2, shorthand(c, self.state.unicode));
                Ok(None)
            }
            'D' | 'W' | 'S' => {
                let translation = format!("[^{}]", shorthand(c, self.state.unicode));
                self.emit(2, &translation);
                Ok(None)
            }
            'p' | 'P' => {
                self.property()?;
                Ok(None)
            }
            _ => self.escaped_char(c).map(Some),
        }
    }

    /// `(`, `(?:`, `(?P<name>`, `(?flags)`, `(?flags:`, `(?#…)`.
    fn group(&mut self) -> Done {
        let rest = self.rest();
        let Some(extension) = rest.strip_prefix("(?") else { return self.open(1, "(?:", self.state) };
        let name_end = |prefix: usize| rest[prefix..].find('>').map(|len| prefix + len + 1);
        let look = ["=", "!", "<=", "<!"].into_iter().find(|look| extension.starts_with(look));
        if let Some(look) = look {
            let help = if look.starts_with('<') { NO_BEHIND } else { NO_AHEAD };
            return Err(self.unsupported(2 + look.len(), &format!("the look-around `(?{look}` is"), help));
        }
        if extension.starts_with(':') {
            return self.open(3, "(?:", self.state);
        }
        if extension.starts_with('#') {
            let Some(len) = rest.find(')') else {
                return Err(self.error(ErrorKind::Syntax, 3, "this comment is not closed"));
            };
            self.at += len + 1;
            return Ok(());
        }
        if extension.starts_with('>') {
            return Err(self.unsupported(
                3,
                "an atomic group is",
                "use a plain group; it does not backtrack here either",
            ));
        }
        if extension.starts_with('(') {
            return Err(self.unsupported(3, "a conditional group is", "write the alternatives out"));
        }
        if extension.starts_with("P=") {
            return Err(self.unsupported(4, "a back-reference is", NO_REFERENCE));
        }
        let prefix = if extension.starts_with("P<") { 4 } else { 3 };
        if prefix == 4 || extension.starts_with('<') {
            let is_name =
                |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            return match name_end(prefix).filter(|&end| is_name(&rest[prefix..end - 1])) {
                Some(end) => self.open(end, "(?:", self.state),
                None => {
                    Err(self.error(ErrorKind::Syntax, prefix, "a group needs a name between `<` and `>`"))
                }
            };
        }
        self.flags()
    }

    /// `(?i-s:` or `(?i)`.
    fn flags(&mut self) -> Done {
        let rest = self.rest();
        let Some(len) = rest.find([':', ')']) else {
            return Err(self.error(ErrorKind::Syntax, 2, "this group is not closed"));
        };
        let mut state = self.state;
        let (mut set, mut cleared) = (String::new(), String::new());
        let mut on = true;
        for (at, letter) in rest[2..len].char_indices() {
            match letter {
                '-' if on => on = false,
                'i' | 's' => if on { &mut set } else { &mut cleared }.push(letter),
                'x' => state.verbose = on,
                'm' => state.multi_line = on,
                'u' => {
                    state.unicode = on;
                    if on { &mut set } else { &mut cleared }.push('u');
                }
                'a' | 'L' => {
                    self.at += 2 + at;
                    return Err(self.unsupported(
                        1,
                        &format!("the flag `{letter}` is"),
                        "write the classes out, as `[0-9]`",
                    ));
                }
                _ => {
                    self.at += 2 + at;
                    return Err(self.error(
                        ErrorKind::Syntax,
                        letter.len_utf8(),
                        format!("unknown flag `{letter}`"),
                    ));
                }
            }
        }
        let minus = if cleared.is_empty() { "" } else { "-" };
        if rest[len..].starts_with(':') {
            return self.open(len + 1, &format!("(?{set}{minus}{cleared}:"), state);
        }
        self.state = state;
        if !set.is_empty() || !cleared.is_empty() {
            self.emit(len + 1, &format!("(?{set}{minus}{cleared})"));
        } else {
            self.at += len + 1;
        }
        self.last = Last::Nothing;
        Ok(())
    }

    fn open(&mut self, len: usize, translation: &str, inner: State) -> Done {
        self.outer.push(std::mem::replace(&mut self.state, inner));
        self.emit(len, translation);
        self.last = Last::Nothing;
        Ok(())
    }

    /// What `regex-syntax` found, said of the original.
    fn explain(&self, error: &regex_syntax::Error) -> RegexError {
        use regex_syntax::ast::ErrorKind::NestLimitExceeded;
        let (kind, message, span) = match error {
            regex_syntax::Error::Parse(error) => {
                let kind = match error.kind() {
                    NestLimitExceeded(_) => ErrorKind::Limit,
                    _ => ErrorKind::Syntax,
                };
                (kind, error.kind().to_string(), *error.span())
            }
            regex_syntax::Error::Translate(error) => {
                (ErrorKind::Syntax, error.kind().to_string(), *error.span())
            }
            other => return self.error(ErrorKind::Syntax, self.text.len(), other.to_string()),
        };
        let before = self.map.partition_point(|&(out, _)| out <= span.start.offset);
        let start = before.checked_sub(1).map_or(0, |before| self.map[before].1);
        let after = self.map.partition_point(|&(out, _)| out < span.end.offset);
        let end = self.map.get(after).map_or(self.text.len(), |&(_, original)| original);
        RegexError { kind, span: start..end.max(start), message, help: None }
    }
}

/// What goes between brackets for `\d`, `\w` or `\s` (or their negations).
fn shorthand(letter: char, unicode: bool) -> &'static str {
    match (letter.to_ascii_lowercase(), unicode) {
        ('d', true) => r"\p{Nd}",
        ('w', true) => r"\p{L}\p{N}_",
        ('s', true) => r"\s\x1c-\x1f",
        ('d', false) => "0-9",
        ('w', false) => "A-Za-z0-9_",
        _ => r"\t-\r ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hir(pattern: &str, flags: &str) -> Result<Hir, RegexError> {
        parse(pattern, Flags::from_letters(flags).unwrap())
    }

    /// Whether two patterns are the same expression, the second in the notation of `regex-syntax`.
    fn same(python: &str, flags: &str, rust: &str) {
        let expected = regex_syntax::ParserBuilder::new().utf8(false).build().parse(rust).unwrap();
        assert!(hir(python, flags).unwrap() == expected, "{python} and {rust}");
    }

    #[test]
    fn escapes_and_shorthands() {
        same(r"\/\'\:\<\>\ \-\é", "", r"/':<> -é");
        same(r"\x41\u00e9\U0001F600\0\07\101\a\f\v\n", "", "A\u{e9}\u{1f600}\0\x07A\x07\x0c\x0b\n");
        same(r"\d\D", "", r"\p{Nd}\P{Nd}");
        same(r"\w\W", "", r"[\p{L}\p{N}_][^\p{L}\p{N}_]");
        same(r"\s[\s_]", "", r"[\s\x1c-\x1f][\s\x1c-\x1f_]");
        same(r"\S[\S ]", "", r"[^\s\x1c-\x1f][[^\s\x1c-\x1f] ]");
        same(r"\p{Greek}[\p{Greek}_]", "", r"\p{Greek}[\p{Greek}_]");
    }

    #[test]
    fn escapes_of_ecmascript() {
        same(r"\u{1F600}\u{41}\uD83D\uDE00\u0041\cA\cj", "", "\u{1f600}A\u{1f600}A\x01\n");
        same(r"[\u{1F600}-\uD83D\uDE02\cZ]", "", "[\u{1f600}-\u{1f602}\x1a]");
        same(r"\u{41}{2}", "", "A{2}");
    }

    #[test]
    fn anchors_of_a_whole_pattern() {
        let whole = |pattern| parse_whole(pattern, Flags::default());
        let same = |pattern, plain| assert_eq!(whole(pattern), whole(plain), "{pattern}");
        same("^ab$", "ab");
        same(r"\Aab\Z", "ab");
        same("a?^b", "b");
        same("^(?m:a)$", "a");
        assert_eq!(whole("^*").unwrap_err().kind, ErrorKind::Syntax);
        assert_eq!(whole(r"a\b").unwrap_err().span, 1..3);
        assert_eq!(
            whole("a|(?m:^b)").unwrap_err().message,
            "the anchor `^` of lines (flag `m`) is not supported"
        );
        let many = "(?:^|a|$)?".repeat(300);
        assert_eq!(whole(&many).unwrap_err().kind, ErrorKind::Limit);
    }

    #[test]
    fn classes_take_their_members_literally() {
        same(r"[[a&&b~~]", "", r"[\[a\&b\~]");
        same(r"[]a]", "", r"[\]a]");
        same(r"[^]a]", "", r"[^\]a]");
        same(r"[a-]", "", r"[a\-]");
        same(r"[-a]", "", r"[a\-]");
        same(r"[\w-]", "", r"[\p{L}\p{N}_\-]");
        same(r"[\b\]\^]", "", r"[\x08\]\^]");
        same(r"[ \t#]", "x", "[ \t#]");
        same(r"[+--]", "", "[+,\\-]");
        same(r"[^\0-\ud7ff\ue000-\ufffd]", "", "[\u{fffe}-\u{10ffff}]");
        same(r"[^\ue000\ud7ff]", "", "[\0-\u{d7fe}\u{e001}-\u{10ffff}]");
    }

    #[test]
    fn quantifiers() {
        same("a{2}b{,3}c{1,}d{,}e{2,4}?", "", "a{2}b{0,3}c{1,}d{0,}e{2,4}?");
        same("a{}{x}{1{,a}}", "", r"a\{\}\{x\}\{1\{,a\}\}");
        same("a*?b+?c??", "", "a*?b+?c??");
    }

    #[test]
    fn groups_and_flags() {
        same("(a)(?:b)(?P<n>c)(?i:d)(?#no)e", "", "(?:a)(?:b)(?:c)(?i:d)e");
        same("(?i)ab|c", "", "(?i)ab|c");
        same("ab.", "is", "(?is)ab.");
        same(" a b # no\n (?-x: ) {2} \\ ", "x", "ab(?: ){2} ");
        same(r"(?-u:\xff[\x80-\x8f]\w)é", "", r"(?-u:\xff[\x80-\x8f]\w)é");
        same(r"(?-u:é.)", "", r"é(?-u:[^\n])");
        same(".", "", "[^\n]");
    }

    #[test]
    fn refusals_have_a_kind_and_a_place() {
        use ErrorKind::{Limit, Syntax, Unsupported};
        let deep = "(".repeat(1000) + &")".repeat(1000);
        let cases: &[(&str, ErrorKind, Range<usize>)] = &[
            (r"\u{110000}", Syntax, 0..10),
            (r"\u{}", Syntax, 0..4),
            (r"\u{12", Syntax, 0..3),
            (r"\ud83d", Syntax, 0..6),
            (r"\ude00\ud83d", Syntax, 0..6),
            (r"\c1", Syntax, 0..2),
            ("a^", Unsupported, 1..2),
            ("a$", Unsupported, 1..2),
            (r"a\b", Unsupported, 1..3),
            ("a(?=b)", Unsupported, 1..4),
            ("(?<!b)", Unsupported, 0..4),
            (r"(a)\1", Unsupported, 3..5),
            ("(?P<n>a)(?P=n)", Unsupported, 8..12),
            ("a++", Unsupported, 1..3),
            ("(?>a)", Unsupported, 0..3),
            ("(a)?(?(1)b|c)", Unsupported, 4..7),
            ("(?a:b)", Unsupported, 2..3),
            (r"\N{DIGIT ONE}", Unsupported, 0..2),
            (r"\q", Syntax, 0..2),
            (r"a\x4", Syntax, 1..4),
            (r"\777", Syntax, 0..4),
            ("a\\", Syntax, 1..2),
            ("a**", Syntax, 2..3),
            ("a|*", Syntax, 2..3),
            ("[z-a]", Syntax, 1..4),
            (r"[a-\w]", Syntax, 1..5),
            ("a[b", Syntax, 1..2),
            ("é[b", Syntax, 2..3),
            ("é(b", Syntax, 2..3),
            ("ab)", Syntax, 2..3),
            ("a{3,2}", Syntax, 1..6),
            (r"\p{Nope}", Syntax, 0..8),
            (&deep, Limit, 508..2000),
        ];
        for (pattern, kind, span) in cases {
            let error = hir(pattern, "").unwrap_err();
            let short: String = pattern.chars().take(20).collect();
            if *kind == Limit {
                assert_eq!(error.kind, *kind, "{short}");
            } else {
                assert_eq!((error.kind, &error.span), (*kind, span), "{short}: {}", error.message);
            }
        }
    }

    #[test]
    fn large_counts_are_not_expanded() {
        assert!(hir("(a{1000}){1000}", "").is_ok());
        assert!(hir("a{99999999999}", "").is_err());
    }
}
