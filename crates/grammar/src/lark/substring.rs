//! `%regex {…}` of llguidance: any part of a list of chunks, as its version 1.9.1 reads it.
//!
//! The chunks are given (`substring_chunks`), or a text is cut into characters (`substring_chars`), words
//! (`substring_words`: runs of letters, digits and underscores, of white space, and of others) or lines
//! (`substring_lines`, each with its line end; llguidance does not have it). What is matched is nothing, or
//! chunks that stand side by side in the list. A list of `n` bytes makes an expression of some `n log² n`
//! parts, so its length is bounded by [`MAX_BYTES`].

use regex_syntax::hir::Hir;

use super::LarkDialect;
use super::text;
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::{Pattern, Span};

/// The most bytes of an object.
const MAX_BYTES: usize = 16_384;

type Result<T> = std::result::Result<T, GrammarError>;

/// What an object describes that stands at `span` with its directive.
pub(crate) fn pattern(object: &str, span: &Span) -> Result<Pattern> {
    if object.len() > MAX_BYTES {
        let message = format!("`%regex` has {} bytes: at most {MAX_BYTES}", object.len());
        return Err(GrammarError::new(ErrorKind::Limit, span.clone(), message));
    }
    let mut reader = Reader { rest: object, span, end: span.end };
    reader.expect('{')?;
    let key = reader.text()?;
    reader.expect(':')?;
    let chunks = match &*key {
        "substring_chunks" => reader.texts()?,
        "substring_words" => pieces(&reader.text()?, kind),
        "substring_chars" => reader.text()?.chars().map(String::from).collect(),
        "substring_lines" => reader.text()?.split_inclusive('\n').map(str::to_owned).collect(),
        _ => {
            let message = format!("`%regex` with `{key}` is not supported");
            return Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message).with_help(
                "there are `substring_chunks`, `substring_words`, `substring_chars` and `substring_lines`",
            ));
        }
    };
    reader.expect('}')?;
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).filter(|chunk| !chunk.is_empty()).collect();
    let parts = parts(&chunks);
    Ok(Pattern::Regex(Hir::alternation(vec![Hir::empty(), parts.inner])))
}

/// A text cut where the kind of its characters changes.
fn pieces(text: &str, kind: impl Fn(char) -> u8) -> Vec<String> {
    let mut pieces: Vec<(u8, String)> = Vec::new();
    for c in text.chars() {
        match pieces.last_mut() {
            Some((last, piece)) if *last == kind(c) => piece.push(c),
            _ => pieces.push((kind(c), c.into())),
        }
    }
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

fn kind(c: char) -> u8 {
    match c {
        _ if c.is_whitespace() => 0,
        _ if c.is_alphanumeric() || c == '_' => 1,
        _ => 2,
    }
}

/// What a list of chunks gives: all of it, its beginnings, its ends, and any part; all but nothing.
struct Parts {
    all: Hir,
    beginnings: Hir,
    ends: Hir,
    inner: Hir,
}

/// Halves of halves: the recursion is as deep as the logarithm of the length.
fn parts(chunks: &[&str]) -> Parts {
    match chunks {
        [] => {
            let nothing = Hir::fail;
            Parts { all: Hir::empty(), beginnings: nothing(), ends: nothing(), inner: nothing() }
        }
        [chunk] => {
            let all = Hir::literal(chunk.as_bytes().to_vec());
            Parts { all: all.clone(), beginnings: all.clone(), ends: all.clone(), inner: all }
        }
        _ => {
            let (left, right) = chunks.split_at(chunks.len() / 2);
            let (left, right) = (parts(left), parts(right));
            let over = Hir::concat(vec![left.ends.clone(), right.beginnings.clone()]);
            Parts {
                beginnings: Hir::alternation(vec![
                    left.beginnings,
                    Hir::concat(vec![left.all.clone(), right.beginnings]),
                ]),
                ends: Hir::alternation(vec![right.ends, Hir::concat(vec![left.ends, right.all.clone()])]),
                inner: Hir::alternation(vec![left.inner, right.inner, over]),
                all: Hir::concat(vec![left.all, right.all]),
            }
        }
    }
}

/// Reads the little JSON that stands here.
struct Reader<'s> {
    rest: &'s str,
    span: &'s Span,
    end: usize,
}

impl Reader<'_> {
    fn error(&self, what: &str) -> GrammarError {
        let at = self.end - self.rest.len();
        let message = format!("expected {what} in the object of `%regex`");
        GrammarError::new(ErrorKind::Syntax, at..self.span.end.max(at), message)
    }

    fn expect(&mut self, c: char) -> Result<()> {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.error(&format!("`{c}`"))),
        }
    }

    fn text(&mut self) -> Result<String> {
        self.expect('"')?;
        let mut bytes = self.rest.bytes().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' => _ = bytes.next(),
                b'"' => {
                    let raw = &self.rest[..at];
                    let text = text::decode_as(raw, self.end - self.rest.len(), LarkDialect::Llguidance)?;
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                _ => {}
            }
        }
        Err(self.error("`\"`"))
    }

    fn texts(&mut self) -> Result<Vec<String>> {
        self.expect('[')?;
        let mut texts = Vec::new();
        if self.expect(']').is_ok() {
            return Ok(texts);
        }
        loop {
            texts.push(self.text()?);
            if self.expect(',').is_err() {
                self.expect(']')?;
                return Ok(texts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_that_stand_side_by_side() {
        for n in 0..9 {
            let chunks: Vec<String> = (0..n).map(|at| char::from(b'a' + at).to_string().repeat(2)).collect();
            let listed: Vec<String> = chunks.iter().map(|chunk| format!("\"{chunk}\"")).collect();
            let object = format!("{{\"substring_chunks\": [{}]}}", listed.join(", "));
            let pattern = pattern(&object, &(0..object.len())).unwrap();
            let Pattern::Regex(hir) = pattern else { panic!("a regular expression") };
            let found = regex_texts(&hir);
            let mut expected: Vec<String> = vec![String::new()];
            for from in 0..chunks.len() {
                expected.extend((from + 1..=chunks.len()).map(|to| chunks[from..to].concat()));
            }
            expected.sort();
            assert_eq!(found, expected);
        }
    }

    /// All texts of an expression that has finitely many, sorted.
    fn regex_texts(hir: &Hir) -> Vec<String> {
        use regex_syntax::hir::HirKind;
        let mut texts = match hir.kind() {
            HirKind::Empty => vec![String::new()],
            HirKind::Literal(literal) => vec![String::from_utf8(literal.0.to_vec()).unwrap()],
            HirKind::Concat(parts) => parts.iter().fold(vec![String::new()], |texts, part| {
                let next = regex_texts(part);
                texts.iter().flat_map(|text| next.iter().map(move |next| format!("{text}{next}"))).collect()
            }),
            HirKind::Alternation(parts) => parts.iter().flat_map(regex_texts).collect(),
            HirKind::Class(class) => {
                class.literal().into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect()
            }
            HirKind::Repetition(repetition) => {
                let once = regex_texts(&repetition.sub);
                assert_eq!((repetition.min, repetition.max), (0, Some(1)));
                once.into_iter().chain([String::new()]).collect()
            }
            other => panic!("{other:?}"),
        };
        texts.sort();
        texts.dedup();
        texts
    }

    #[test]
    fn objects_are_read_strictly() {
        let read = |object: &str| pattern(object, &(0..object.len()));
        for good in [
            r#"{"substring_words": "ab, cd"}"#,
            r#"{ "substring_chars" : "a\"\u00e9" }"#,
            r#"{"substring_lines": "a\nb"}"#,
            r#"{"substring_chunks": []}"#,
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for (bad, kind) in [
            ("{}", ErrorKind::Syntax),
            (r#"{"substring_words": 1}"#, ErrorKind::Syntax),
            (r#"{"substring_words": "a", "substring_chars": "a"}"#, ErrorKind::Syntax),
            (r#"{"type": "substring"}"#, ErrorKind::Unsupported),
        ] {
            assert_eq!(read(bad).unwrap_err().kind(), kind, "{bad}");
        }
        assert_eq!(pieces("ab, c_1 d", kind), ["ab", ",", " ", "c_1", " ", "d"]);
    }
}
