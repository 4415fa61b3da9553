//! The line of a text where it stops, with a caret under the place.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// Characters of a long line that are shown before the place, and from it on.
const BEFORE: usize = 60;
const AFTER: usize = 60;

/// One place in a text, as a person finds it again.
pub struct Excerpt {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line, or what of it is around the place; one terminal column per blank, tabs and control
    /// characters replaced.
    pub shown: String,
    /// The terminal columns before the place.
    pub indent: usize,
}

impl Excerpt {
    /// The place before byte `at` of a text, or its end. Within a character the place is that character.
    pub fn new(text: &[u8], at: usize) -> Self {
        let at = at.min(text.len());
        let start = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let end =
            text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |newline| at + newline);
        // The other half of a line end is no part of the line, unless it is the place.
        let end = if end > at && text[end - 1] == b'\r' && at < end - 1 { end - 1 } else { end };
        let characters = characters(&text[start..end]);
        let place = match end - at {
            0 => characters.len(),
            _ => characters.partition_point(|&(offset, _)| offset <= at - start) - 1,
        };
        let (first, last) = (place.saturating_sub(BEFORE), characters.len().min(place + AFTER));
        let mut shown = String::from(if first > 0 { "…" } else { "" });
        let mut indent = usize::from(first > 0);
        for (index, &(_, character)) in characters.iter().enumerate().take(last).skip(first) {
            let character = printable(character);
            shown.push(character);
            indent += if index < place { character.width().unwrap_or(0) } else { 0 };
        }
        shown += if last < characters.len() { "…" } else { "" };
        let line = text[..start].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Self { line, column: place + 1, shown, indent }
    }

    /// The line, a caret under the place, and a note beside it.
    pub fn render(&self, note: &str) -> String {
        self.render_wide(1, note)
    }

    /// The same with as many carets.
    pub fn render_wide(&self, carets: usize, note: &str) -> String {
        let number = self.line.to_string();
        let mut out = String::new();
        let _ = writeln!(out, "  {number} | {}", self.shown);
        let carets = "^".repeat(carets);
        let _ = write!(
            out,
            "  {:width$} | {:indent$}{carets} {note}",
            "",
            "",
            width = number.len(),
            indent = self.indent
        );
        out.truncate(out.trim_end().len());
        out
    }
}

/// Names joined with commas, the first few of many.
pub fn listing(names: &[String], shown: usize) -> String {
    let mut text = names.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > shown {
        let _ = write!(text, " and {} more", names.len() - shown);
    }
    text
}

/// What was expected at a place, the first few of many.
pub fn expected(names: &[String], shown: usize) -> String {
    match names {
        [] => "nothing can follow".to_owned(),
        names => format!("expected {}", listing(names, shown)),
    }
}

/// The characters of a line with the offsets at which they begin; bytes that are no text are `�`.
fn characters(line: &[u8]) -> Vec<(usize, char)> {
    let mut characters = Vec::new();
    let mut offset = 0;
    for chunk in line.utf8_chunks() {
        characters.extend(chunk.valid().char_indices().map(|(at, character)| (offset + at, character)));
        offset += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            characters.push((offset, char::REPLACEMENT_CHARACTER));
            offset += chunk.invalid().len();
        }
    }
    characters
}

/// A character that takes its place and no more: control characters by their pictures.
fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + character as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{7f}' => '␡',
        character if character.is_control() => char::REPLACEMENT_CHARACTER,
        character => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &[u8], at: usize) -> String {
        Excerpt::new(text, at).render("!")
    }

    #[test]
    fn the_caret_is_under_the_place() {
        assert_eq!(rendered(b"ab\ncde\nf", 4), "  2 | cde\n    |  ^ !");
        assert_eq!(rendered(b"ab", 2), "  1 | ab\n    |   ^ !");
        assert_eq!(rendered(b"ab\n", 2), "  1 | ab\n    |   ^ !");
        assert_eq!(rendered(b"ab\n", 3), "  2 | \n    | ^ !");
        assert_eq!(rendered(b"", 0), "  1 | \n    | ^ !");
    }

    #[test]
    fn columns_count_characters_and_the_caret_counts_widths() {
        let text = "é日x".as_bytes();
        // Byte 3 is within the second character, byte 5 is the third.
        assert_eq!((Excerpt::new(text, 3).column, Excerpt::new(text, 3).indent), (2, 1));
        assert_eq!((Excerpt::new(text, 5).column, Excerpt::new(text, 5).indent), (3, 3));
        assert_eq!(rendered(b"\t\x1b\xff\xc3(", 4), "  1 |  ␛��(\n    |     ^ !");
    }

    #[test]
    fn long_lines_are_cut() {
        let text = [b'x'; 5000];
        let excerpt = Excerpt::new(&text, 2500);
        assert_eq!((excerpt.column, excerpt.indent), (2501, BEFORE + 1));
        assert_eq!(excerpt.shown.chars().count(), BEFORE + AFTER + 2);
    }

    #[test]
    fn listings_say_how_many_are_left_out() {
        let names: Vec<String> = ["A", "B", "C"].map(String::from).into();
        assert_eq!(listing(&names, 3), "A, B, C");
        assert_eq!(listing(&names, 1), "A and 2 more");
    }
}
