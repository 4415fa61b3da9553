//! Diagnostics: errors and warnings about a grammar, each with a place and a way out.
//!
//! A [`GrammarError`] is opaque: match on its [`kind`](GrammarError::kind), print the rest. It knows one
//! place, perhaps a second one that disagrees with it, and perhaps a sentence of help. Messages are lower
//! case. Line and column are found once, when a front end hands the error out;
//! [`render`](GrammarError::render) draws the source with carets and costs as much as the source is long. An
//! error in a file that the grammar imports brings the name and the text of that file.

use std::fmt;
use std::sync::Arc;

pub use anygram_bits::ErrorKind;
use ariadne::{CharSet, Config, Label, Report, ReportKind};

use crate::ir::Span;

/// Why a text is not a grammar: the place, what is wrong there, and a way out.
///
/// It is a type of its own because it alone has a place in a source. An error of compiling contains it where
/// the text is the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrammarError(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    span: Span,
    /// The file of `span`, if that is an imported one.
    file: Option<Arc<ImportedFile>>,
    line: usize,
    column: usize,
    label: Option<(Span, String)>,
    /// The file of the label, if that is an imported one.
    label_file: Option<Arc<ImportedFile>>,
    help: Option<String>,
}

/// A file that a grammar imports.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct ImportedFile {
    pub name: String,
    pub text: String,
}

impl GrammarError {
    /// An error at a place. Line and column are those of the start of the text until
    /// [`located`](Self::located).
    pub(crate) fn new(kind: ErrorKind, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        let (file, label_file) = (None, None);
        Self(Box::new(Inner {
            kind,
            message,
            span,
            file,
            line: 1,
            column: 1,
            label: None,
            label_file,
            help: None,
        }))
    }

    /// The same with a second place and what it has to do with the first.
    pub(crate) fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.0.label = Some((span, text.into()));
        self
    }

    /// The same with a sentence of help.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// The same with places told in the files that they are in; `find` knows the file of a place, if it is an
    /// imported one, and where in the common text that begins.
    pub(crate) fn in_files(mut self, find: impl Fn(usize) -> Option<(Arc<ImportedFile>, usize)>) -> Self {
        let place = |span: &mut Span| {
            let (file, start) = find(span.start)?;
            *span = span.start - start..span.end.saturating_sub(start);
            Some(file)
        };
        self.0.file = place(&mut self.0.span);
        self.0.label_file = self.0.label.as_mut().and_then(|(span, _)| place(span));
        self
    }

    /// The same with line and column counted in the source that the spans are of.
    pub(crate) fn located(mut self, source: &str) -> Self {
        let file = self.0.file.clone();
        let source = file.as_ref().map_or(source, |file| &file.text);
        let before = &source[..floor_boundary(source, self.0.span.start)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        self.0.line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        self.0.column = 1 + before[line_start..].chars().count();
        self
    }

    /// What is wrong, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong, for people: lower case, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The name of the file, if it is not the grammar itself but a file that it imports.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_ref().map(|file| file.name.as_str())
    }

    /// Where, in bytes of the source (of [`file`](Self::file), if that is another).
    pub fn span(&self) -> Span {
        self.0.span.clone()
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.0.column
    }

    /// A second place, and what it has to do with the first.
    pub fn label(&self) -> Option<(Span, &str)> {
        self.0.label.as_ref().map(|(span, text)| (span.clone(), text.as_str()))
    }

    /// One sentence on what to do.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The error with the lines of the source that it is about, carets under the places. No colors.
    ///
    /// Of a line of more than some hundred characters only what is around the place is shown. What is given
    /// is the grammar; imported files the error knows itself.
    pub fn render(&self, source_name: &str, source: &str) -> String {
        let named = |file: &Option<Arc<ImportedFile>>| match file {
            Some(file) => (file.name.clone(), file.text.clone()),
            None => (source_name.to_owned(), source.to_owned()),
        };
        let ((file, text), (label_file, label_text)) = (named(&self.0.file), named(&self.0.label_file));
        let is_long = |text: &str, place: &Span| lines_around(text, place).chars().nth(LONG_LINE).is_some();
        if is_long(&text, &self.0.span) || self.0.label.iter().any(|(place, _)| is_long(&label_text, place)) {
            return self.render_long(&file, &text, &label_text);
        }
        let primary = (file.clone(), char_span(&text, &self.0.span));
        let config = Config::default().with_color(false).with_char_set(CharSet::Ascii);
        let mut report = Report::build(ReportKind::Error, primary.clone())
            .with_config(config)
            .with_message(&self.0.message)
            .with_label(Label::new(primary).with_message("here"));
        if let Some((place, text)) = &self.0.label {
            let place = (label_file.clone(), char_span(&label_text, place));
            report.add_label(Label::new(place).with_message(text));
        }
        if let Some(help) = &self.0.help {
            report.set_help(help);
        }
        let mut out = Vec::new();
        let sources = ariadne::sources([(file, text), (label_file, label_text)]);
        match report.finish().write(sources, &mut out) {
            Ok(()) => {
                String::from_utf8_lossy(&out).lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
            }
            Err(_) => format!("{source_name}:{self}\n"),
        }
    }

    /// The same where a line is too long to be shown as a whole.
    fn render_long(&self, source_name: &str, source: &str, label_source: &str) -> String {
        let Inner { message, span, line, column, label, help, .. } = &*self.0;
        let number = line.to_string();
        let (shown, indent) = window(source, span.start);
        let margin = " ".repeat(number.len() + 1);
        let mut out = format!("Error: {message}\n {margin},-[ {source_name}:{line}:{column} ]\n {margin}|\n");
        out += &format!(" {number} | {shown}\n {margin}| {:indent$}^ here\n", "");
        if let Some((place, text)) = label {
            let (shown, indent) = window(label_source, place.start);
            out += &format!(" {margin}|\n {margin}| {shown}\n {margin}| {:indent$}^ {text}\n", "");
        }
        if let Some(help) = help {
            out += &format!(" {margin}|\n {margin}| Help: {help}\n");
        }
        out + &"-".repeat(margin.len() + 1) + "'\n"
    }
}

/// Characters beyond which a line is not shown as a whole.
const LONG_LINE: usize = 300;

/// The lines that a place is on.
fn lines_around<'s>(source: &'s str, place: &Span) -> &'s str {
    let (from, to) =
        (floor_boundary(source, place.start), floor_boundary(source, place.end.max(place.start)));
    let start = source[..from].rfind('\n').map_or(0, |at| at + 1);
    let end = source[to..].find('\n').map_or(source.len(), |at| to + at);
    &source[start..end]
}

/// What of a line is around the place, and the number of characters before it.
fn window(source: &str, at: usize) -> (String, usize) {
    const BEFORE: usize = 60;
    const AFTER: usize = 40;
    let at = floor_boundary(source, at);
    let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before: Vec<char> = source[start..at].chars().rev().take(BEFORE + 1).collect();
    let cut = before.len() > BEFORE;
    let mut shown = String::from(if cut { "…" } else { "" });
    shown.extend(before.iter().take(BEFORE).rev());
    let mut after = source[at..].chars().take_while(|&c| c != '\n');
    shown.extend(after.by_ref().take(AFTER));
    if after.next().is_some() {
        shown.push('…');
    }
    (shown.replace(['\t', '\r'], " "), before.len())
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = self.file() {
            write!(f, "{file}:")?;
        }
        write!(f, "{}:{}: {}", self.0.line, self.0.column, self.0.message)
    }
}

impl std::error::Error for GrammarError {}

/// Something in a grammar that is probably not meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// The symbol that it is about.
    pub name: String,
    /// What is odd, in lower case.
    pub message: String,
    /// Where the symbol is declared.
    pub span: Option<Span>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The text of a grammar file, or where it stops being UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, GrammarError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let message = format!("byte 0x{:02x} at offset {at} is not UTF-8", bytes[at]);
        let valid = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
        GrammarError::new(ErrorKind::Syntax, at..at + 1, message)
            .with_help("save the file as UTF-8")
            .located(valid)
    })
}

/// Among the names the one that was probably meant, if one is close enough to tell.
///
/// Cost: `names × len²`, with names longer than 64 bytes and all beyond the first 10,000 left out.
pub fn closest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let limit = 1 + name.len() / 4;
    let near = names.into_iter().take(10_000).filter(|other| other.len() <= LONGEST && *other != name);
    let scored = near.map(|other| (strsim::levenshtein(&name.to_lowercase(), &other.to_lowercase()), other));
    scored
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

/// The span in characters, as `ariadne` counts best. (Its byte spans slice inside characters, version 0.6.)
fn char_span(source: &str, span: &Span) -> Span {
    let start = floor_boundary(source, span.start);
    let end = floor_boundary(source, span.end).max(start);
    let before = source[..start].chars().count();
    before..before + source[start..end].chars().count()
}

/// The last character border that is not after `at`.
fn floor_boundary(source: &str, at: usize) -> usize {
    (0..=at.min(source.len())).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_and_column_count_characters() {
        let error = GrammarError::new(ErrorKind::Syntax, 7..8, "no").located("ä\nöü b\n");
        assert_eq!((error.line(), error.column()), (2, 3));
        assert_eq!(error.to_string(), "2:3: no");
    }

    #[test]
    fn a_place_beyond_the_source_is_its_end() {
        let error =
            GrammarError::new(ErrorKind::Syntax, 70..80, "no").with_label(0..100, "all").located("ä\n");
        assert_eq!((error.line(), error.column()), (2, 1));
        assert!(error.render("g", "ä\n").contains("no"));
        assert!(error.render("g", "").contains("no"));
    }

    #[test]
    fn rendering_marks_characters_not_bytes() {
        let error = GrammarError::new(ErrorKind::Syntax, 3..5, "no").located("ä ö x");
        let expected = "\
Error: no
   ,-[ g:1:3 ]
   |
 1 | ä ö x
   |   |
   |   `-- here
---'
";
        assert_eq!(error.render("g", "ä ö x"), expected);
    }

    #[test]
    fn of_long_lines_a_part_is_shown() {
        let source = format!("x\n{}é!{}\n", "a".repeat(5000), "b".repeat(5000));
        let error = GrammarError::new(ErrorKind::Syntax, 5004..5005, "no")
            .with_label(0..1, "first")
            .with_help("go home");
        let error = error.located(&source);
        let expected = format!(
            "Error: no\n   ,-[ g:2:5002 ]\n   |\n 2 | …{}é!{}…\n   | {}^ here\n   |\n   | x\n   | ^ \
             first\n   |\n   \
             | Help: go home\n---'\n",
            "a".repeat(59),
            "b".repeat(39),
            " ".repeat(61),
        );
        assert_eq!(error.render("g", &source), expected);
    }

    #[test]
    fn suggestions_are_close() {
        assert_eq!(closest("expresion", ["statement", "expression", "name"]), Some("expression"));
        assert_eq!(closest("number", ["NUMBER", "x"]), Some("NUMBER"));
        assert_eq!(closest("a", ["statement"]), None);
    }

    #[test]
    fn bytes_that_are_no_text() {
        let error = decode(b"a: b\n\xff").unwrap_err();
        assert_eq!((error.kind(), error.line(), error.column()), (ErrorKind::Syntax, 2, 1));
    }
}
