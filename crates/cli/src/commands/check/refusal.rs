//! Why a text is not a sentence.

use std::fmt::Write as _;

use anygram::json_schema::Options;
use anygram::{Language, Reading, SchemaPlace, Span, schema_place};
use anygram_grammar::ir::{TerminalId, TerminalKind};
use anygram_left_to_right::explain::Explanation;
use anygram_lexer::words::Words;

use super::pointer::span;
use super::schema::missing_keys;
use super::{NO, NOT_YET, quoted};
use crate::excerpt::{self, Excerpt, listing};

/// Why a text stops that the rules alone would let go on.
const REPEATS: &str = "it would repeat a key, or an item that has to differ";
/// Names that a list shows before it says how many more there are.
const SHOWN: usize = 12;
/// Named terminals of which it is shown what they look like, and how long that may be.
const SHOWN_LOOKS: usize = 4;
const LONG_LOOK: usize = 28;
/// Phrases in progress that are shown, outermost and innermost.
const OUTER: usize = 2;
const INNER: usize = 4;
/// Characters of a completion that are shown.
const LONG: usize = 60;

/// What a text is read by.
pub struct Source<'a> {
    pub language: &'a Language,
    pub words: &'a Words<'a>,
    pub text: &'a str,
    /// How JSON schemas in it are read.
    pub schema: &'a Options,
}

impl<'a> Source<'a> {
    /// What a sentence calls the schema of a place, if the grammar is more than that, and its text.
    fn schema_of(&self, place: &SchemaPlace) -> (Option<String>, &'a str) {
        if place.is_whole() {
            return (None, self.text);
        }
        let text = |span: Option<Span>| span.and_then(|span| self.text.get(span)).unwrap_or_default();
        match &place.span {
            Some(at) => {
                let line = Excerpt::new(self.text.as_bytes(), at.start).line;
                let text = text(Some(at.clone()));
                (Some(format!("the schema at line {line}")), &text[text.find('{').unwrap_or(0)..])
            }
            None => {
                let text = text(span(self.text, &place.schema));
                (Some(format!("the schema at {}", place.schema)), text)
            }
        }
    }
}

/// What became of a text that is not a sentence.
pub struct Verdict {
    /// Whether the text is the beginning of a sentence.
    is_viable: bool,
    /// Where the text stops.
    pub excerpt: Excerpt,
    /// The same as a sentence says it.
    place: String,
    /// If it is in the value of a JSON schema, the JSON pointer there, and which schema that is, if the
    /// grammar is more than that.
    pub pointer: Option<String>,
    pub schema: Option<String>,
    /// What the grammar expected there, in its own words; may be nothing.
    pub expected: Vec<String>,
    /// What else there is to say, one thing a line.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Why a text is not a sentence.
    pub fn new(grammar: &Source<'_>, text: &[u8], reading: &Reading, explanation: &Explanation) -> Self {
        let Source { language, words, text: source, .. } = *grammar;
        let excerpt = Excerpt::new(text, reading.length);
        let mut place = format!("line {}, column {} (byte {})", excerpt.line, excerpt.column, reading.length);
        let mut explanation = explanation.clone();
        let (mut wrong, mut pointer, mut schema) = (Vec::new(), None, None);
        // What is not found out within the limits is not told.
        if let Some(within) = schema_place(language, text, reading.length).ok().flatten() {
            let mut at = if within.pointer.is_empty() { "the root" } else { &within.pointer }.to_owned();
            let (name, schema_text) = grammar.schema_of(&within);
            if let Some(name) = &name {
                let _ = write!(at, " of {name}");
            }
            let _ = write!(place, ", at {at}");
            wrong = wrong_keys(grammar, (&within, schema_text), (text, reading.length), &explanation);
            wrong.iter_mut().for_each(|wrong| *wrong = format!("at {at}: {wrong}"));
            // The pointer says it better.
            explanation.phrases.retain(|phrase| phrase.1 < within.begin);
            (pointer, schema) = (Some(within.pointer), name);
        } else if explanation.repeats {
            wrong.push(REPEATS.to_owned());
        }
        let expected = expected(language, words, source, &explanation.expected);
        let mut notes = in_the_middle(language, text, reading, &explanation);
        notes.extend(wrong);
        notes.extend(small_changes(language, text, reading));
        Self { is_viable: reading.is_viable, excerpt, place, pointer, schema, expected, notes }
    }

    /// Several lines, without a line end.
    pub fn render(&self) -> String {
        let mut lines = if self.is_viable {
            format!("{NOT_YET}not a sentence yet{NOT_YET:#}: the text ends at {}\n", self.place)
        } else {
            format!("{NO}not a sentence{NO:#}: it stops at {}\n", self.place)
        };
        lines += &self.excerpt.render(&excerpt::expected(&self.expected, SHOWN));
        for note in &self.notes {
            let _ = write!(lines, "\n  {note}");
        }
        lines
    }
}

/// Which keys a JSON text lacks or repeats where it stops in a value of a schema.
fn wrong_keys(
    grammar: &Source<'_>,
    (place, schema): (&SchemaPlace, &str),
    (text, length): (&[u8], usize),
    explanation: &Explanation,
) -> Vec<String> {
    let mut wrong = Vec::new();
    // Where the object is closed, or the text ends, keys are what is wrong.
    if text[length..].trim_ascii_start().first().is_none_or(|&byte| byte == b'}') {
        let names = explanation.expected.iter().map(|&terminal| grammar.language.terminal_name(terminal));
        let names: Vec<&str> = names.collect();
        let completion = explanation.completion.as_deref();
        let keys = missing_keys(schema, grammar.schema, &text[place.begin..length], completion, &names);
        wrong.extend(keys.iter().map(|key| format!("the key {key:?} is missing")));
    }
    if place.repeats {
        wrong.push(match &place.repeated_key {
            Some(key) => format!("the key {key:?} is there already"),
            None => REPEATS.to_owned(),
        });
    }
    wrong
}

/// Terminals in the grammar's own words: texts first, then names with what they look like.
fn expected(language: &Language, words: &Words<'_>, source: &str, terminals: &[TerminalId]) -> Vec<String> {
    let grammar = language.grammar();
    let is_text = |t: &TerminalId| {
        let terminal = &grammar.terminals[t.index()];
        matches!(terminal.kind, TerminalKind::Literal(_)) && !terminal.declared
    };
    let (texts, named): (Vec<TerminalId>, Vec<TerminalId>) = terminals.iter().copied().partition(is_text);
    let mut names: Vec<String> = texts.iter().map(|&t| language.terminal_name(t).to_owned()).collect();
    // Of many texts some give way to names, which say more.
    let room = SHOWN.saturating_sub(named.len().min(SHOWN_LOOKS));
    let after = if names.len() > room { names.split_off(room) } else { Vec::new() };
    for (at, &t) in named.iter().enumerate() {
        let look = if at < SHOWN_LOOKS { look(language, words, source, t) } else { None };
        let name = language.terminal_name(t);
        names.push(look.map_or_else(|| name.to_owned(), |look| format!("{name} ({look})")));
    }
    names.extend(after);
    names
}

/// What a named terminal looks like: its definition if that is short, else an example.
fn look(language: &Language, words: &Words<'_>, source: &str, terminal: TerminalId) -> Option<String> {
    let declared = &language.grammar().terminals[terminal.index()];
    if !declared.declared || matches!(declared.kind, TerminalKind::Special(_)) {
        return None;
    }
    let rest =
        declared.span.as_ref().and_then(|span| source.get(span.end..)).and_then(|rest| rest.lines().next());
    // `.priority` and the colon; in notations that do it otherwise nothing is found, and an example will do.
    let definition = rest.and_then(|rest| {
        let rest = rest.trim_start_matches(|c: char| c == '.' || c == '-' || c.is_ascii_digit());
        Some(rest.trim_start().strip_prefix(':')?.trim())
    });
    match definition
        .filter(|text| !text.is_empty() && text.chars().count() <= LONG_LOOK && !text.contains("//"))
    {
        Some(definition) => Some(definition.to_owned()),
        None => words.shortest(terminal.index()).map(|word| format!("such as {}", quoted(&word, LONG_LOOK))),
    }
}

/// The phrases and the piece in progress, and a way out.
fn in_the_middle(
    language: &Language,
    text: &[u8],
    reading: &Reading,
    explanation: &Explanation,
) -> Vec<String> {
    let mut notes = Vec::new();
    let place = |at: usize| {
        let Excerpt { line, column, .. } = Excerpt::new(text, at);
        format!("{line}:{column}")
    };
    let phrases = &explanation.phrases;
    let mut shown = Vec::new();
    for (at, &(n, begin)) in phrases.iter().enumerate() {
        if at >= OUTER && at + INNER < phrases.len() {
            if at == OUTER {
                shown.push(format!("… {} more …", phrases.len() - OUTER - INNER));
            }
            continue;
        }
        shown.push(format!("`{}` at {}", language.grammar().nonterminals[n.index()].name, place(begin)));
    }
    if !shown.is_empty() {
        notes.push(format!("while reading {}", shown.join(" → ")));
    } else if explanation.is_cut {
        let why = "the text is too long or too ambiguous to say what it was in the middle of";
        notes.push(why.to_owned());
    }
    if let Some(begin) = explanation.piece {
        let names: Vec<String> =
            explanation.expected.iter().map(|&t| language.terminal_name(t).to_owned()).collect();
        let what = match &*names {
            [] => "a piece that is ignored".to_owned(),
            names => listing(names, 3),
        };
        let piece = quoted(&text[begin..reading.length], LONG);
        notes.push(format!("in the middle of {what}, begun at {}: {piece}", place(begin)));
    }
    if let Some(completion) = &explanation.completion
        && !completion.is_empty()
    {
        let from = if reading.is_viable { "it" } else { "up to there it" };
        notes.push(format!("{from} could go on {} and be valid", quoted(completion, LONG)));
    }
    notes
}

/// What often is the only thing that is wrong.
fn small_changes(language: &Language, text: &[u8], reading: &Reading) -> Vec<String> {
    let mut notes = Vec::new();
    let Ok(mut reader) = language.reader() else { return notes };
    let mut is_sentence = |text: &[u8]| reader.read(text).is_ok_and(|reading| reading.is_sentence);
    if let Err(error) = std::str::from_utf8(text)
        && (error.valid_up_to()..=error.valid_up_to() + 3).contains(&reading.length)
        && !reading.is_viable
    {
        let byte = text[error.valid_up_to()];
        notes.push(format!(
            "the text is not UTF-8 there: byte 0x{byte:02x} at offset {}",
            error.valid_up_to()
        ));
    }
    let without_end = text.strip_suffix(b"\r\n").or_else(|| text.strip_suffix(b"\n"));
    let trimmed = text.trim_ascii_end();
    let without_bom = text.strip_prefix(b"\xef\xbb\xbf");
    let lf = || String::from_utf8_lossy(text).replace("\r\n", "\n").into_bytes();
    if without_end.is_some_and(&mut is_sentence) {
        notes.push("the text without its last line end is a sentence".to_owned());
    } else if trimmed.len() < text.len() && is_sentence(trimmed) {
        notes.push("the text without the blanks at its end is a sentence".to_owned());
    } else if text.trim_ascii().len() < text.len() && is_sentence(text.trim_ascii()) {
        notes.push("the text without the blanks around it is a sentence".to_owned());
    } else if without_bom.is_some_and(&mut is_sentence) {
        notes.push("the text without its byte order mark (BOM) is a sentence".to_owned());
    } else if text.contains(&b'\r') && is_sentence(&lf()) {
        notes.push("the text with line ends `\\n` instead of `\\r\\n` is a sentence".to_owned());
    } else if reading.is_viable && is_sentence(&[text, b"\n"].concat()) {
        notes.push("the text with a line end behind it is a sentence".to_owned());
    } else if !reading.is_viable {
        notes.extend(blank(language, text[reading.length]));
    }
    notes
}

/// A blank where none is allowed is hard to see.
fn blank(language: &Language, byte: u8) -> Option<String> {
    let what = match byte {
        b' ' => "a blank",
        b'\t' => "a tab",
        b'\n' => "a line end",
        b'\r' => "a carriage return",
        _ => return None,
    };
    let lexicon = &language.lexing().lexicon;
    let ignored: Vec<String> =
        lexicon.ignored.iter().map(|at| language.terminal_name(TerminalId::new(at)).to_owned()).collect();
    let ignores = match &*ignored {
        [] => "ignores nothing".to_owned(),
        names => format!("ignores {}", listing(names, SHOWN)),
    };
    Some(format!("what stands there is {what}; the grammar {ignores}"))
}
