//! A damaged file is an error that says something, or a vocabulary. The same damage on every machine.

#[allow(dead_code)]
use crate::common;

use anygram_bits::Random;
use anygram_vocab::{Format, LoadOptions, Vocabulary};
use common::{data, path};
use std::io::{Read, Write};

/// Damages files.
struct Damage(Random);

impl Damage {
    /// One of the ways in which files go bad, or are made bad.
    fn damaged(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bad = good.to_vec();
        let (a, b) = (self.0.below(good.len()), self.0.below(good.len()));
        let (a, b) = (a.min(b), a.max(b));
        match self.0.below(8) {
            // The end is missing.
            0 => bad.truncate(a),
            // Bits flip.
            1 | 2 => {
                for _ in 0..=self.0.below(3) {
                    bad[self.0.below(good.len())] ^= 1 << self.0.below(8);
                }
            }
            // Bytes change, to such that mean something.
            3 => {
                for _ in 0..=self.0.below(3) {
                    bad[self.0.below(good.len())] = match self.0.below(2) {
                        0 => b"[]{}\",:0129-ntf\\ "[self.0.below(17)],
                        _ => [0, 0x80, 0xff, 0x0a][self.0.below(4)],
                    };
                }
            }
            // A stretch is missing, or there twice.
            4 => drop(bad.drain(a..b)),
            5 => drop(bad.splice(a..a, good[a..b.min(a + 200)].iter().copied())),
            // Two lines change places, or one is there twice.
            6 => {
                let lines: Vec<&[u8]> = good.split_inclusive(|&byte| byte == b'\n').collect();
                let mut order: Vec<usize> = (0..lines.len()).collect();
                let (a, b) = (self.0.below(lines.len()), self.0.below(lines.len()));
                match self.0.below(2) {
                    0 => order.swap(a, b),
                    _ => order[a] = b,
                }
                bad = order.iter().flat_map(|&line| lines[line]).copied().collect();
            }
            // A number is huge.
            _ => {
                let is_digit = |at: &usize| good[*at].is_ascii_digit();
                if let Some(start) = (a..good.len()).find(is_digit) {
                    let end = (start..good.len()).find(|at| !is_digit(at)).unwrap_or(good.len());
                    let huge = ["16777215", "16777216", "4294967296", "18446744073709551616", "1e999", "-1"]
                        [self.0.below(6)];
                    bad.splice(start..end, huge.bytes());
                }
            }
        }
        bad
    }
}

/// Whether it loads; if so, it is a vocabulary, else the error says something.
fn survives(format: Format, bytes: &[u8]) -> bool {
    match Vocabulary::from_bytes(format, bytes, &LoadOptions::default()) {
        Ok(vocabulary) => {
            vocabulary.validate().unwrap();
            for text in [&b"ab abc {\":12\xc3\xa9"[..], b"SELECT name FROM t;\n  \xe6\x97\xa5", b"\xff\x00"] {
                if let Ok(tokens) = vocabulary.encode(text) {
                    assert_eq!(vocabulary.decode(&tokens).unwrap(), text);
                }
            }
            true
        }
        Err(error) => {
            assert!(error.to_string().len() > 10, "{error}");
            assert!(!error.to_string().contains("panicked"), "{error}");
            false
        }
    }
}

#[test]
fn small_files() {
    let mut damage = Damage(Random::new(1));
    let (mut loaded, mut refused) = (0, 0);
    for (name, format) in [
        ("tiny.tiktoken", Format::Tiktoken),
        ("tiny.tiktoken.gz", Format::Tiktoken),
        ("array.json", Format::JsonArray),
        ("byte_level.json", Format::HuggingFace),
        ("byte_fallback.json", Format::HuggingFace),
        ("bpe.model", Format::SentencePiece),
        ("characters.model", Format::SentencePiece),
        ("unigram.model", Format::SentencePiece),
        ("unigram_plain.model", Format::SentencePiece),
        ("words.model", Format::SentencePiece),
    ] {
        let good = std::fs::read(path(name)).unwrap();
        assert!(survives(format, &good), "{name}");
        for _ in 0..200 {
            match survives(format, &damage.damaged(&good)) {
                true => loaded += 1,
                false => refused += 1,
            }
        }
        // Every file that is cut off.
        for length in 0..good.len() {
            survives(format, &good[..length]);
        }
    }
    assert!(loaded > 160 && refused > 660, "{loaded} loaded, {refused} refused");
}

#[test]
fn files_of_another_format() {
    let all = [Format::Tiktoken, Format::JsonArray, Format::HuggingFace, Format::SentencePiece];
    for (name, own) in [
        ("tiny.tiktoken", Format::Tiktoken),
        ("array.json", Format::JsonArray),
        ("byte_level.json", Format::HuggingFace),
        ("unigram.model", Format::SentencePiece),
        ("README.md", Format::Tiktoken),
    ] {
        let bytes = std::fs::read(path(name)).unwrap();
        for format in all {
            assert_eq!(
                survives(format, &bytes),
                format == own && name != "README.md",
                "{name} as {format:?}"
            );
        }
    }
}

#[test]
fn real_files() {
    let Some(data) = data() else { return };
    let mut damage = Damage(Random::new(2));
    let (mut n_files, mut loaded, mut refused) = (0, 0, 0);
    for entry in std::fs::read_dir(data.join("tokenizers")).unwrap() {
        let path = entry.unwrap().path();
        let format = match path.to_string_lossy() {
            name if name.ends_with(".tiktoken.gz") => Format::Tiktoken,
            name if name.ends_with(".model.gz") => Format::SentencePiece,
            _ => continue,
        };
        let packed = std::fs::read(&path).unwrap();
        let mut good = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut good).unwrap();
        for _ in 0..6 {
            match survives(format, &damage.damaged(&good)) {
                true => loaded += 1,
                false => refused += 1,
            }
            survives(format, &damage.damaged(&packed));
        }
        n_files += 1;
    }
    assert_eq!(n_files, 7);
    assert!(loaded > 5 && refused > 5, "{loaded} loaded, {refused} refused");
}

#[test]
fn deep_nesting_is_an_error() {
    for format in [Format::JsonArray, Format::HuggingFace] {
        let deep = "[".repeat(200_000);
        assert!(!survives(format, deep.as_bytes()));
        let deep = format!("{{\"model\": {{\"type\": \"BPE\"}}, \"decoder\": {deep}");
        assert!(!survives(format, deep.as_bytes()));
    }
}

#[test]
fn bytes_that_are_no_text() {
    for format in [Format::JsonArray, Format::HuggingFace, Format::Tiktoken, Format::SentencePiece] {
        for bytes in [
            &b""[..],
            b"\0",
            b"\xff\xfe\0\0",
            b"\x1f\x8b",
            b"[\"\xe4\"]",
            b"\xe4 1\n",
            &[0xff; 1000],
            &[b' '; 1000],
        ] {
            assert!(!survives(format, bytes), "{bytes:?}");
        }
    }
}

/// Small files that ask for much memory.
#[test]
fn bombs_are_refused() {
    for (head, unit, n, tail) in
        [("", "0000", 17 << 20, ""), ("[\"", "abcd", 9 << 20, "\"]"), ("[", "\"\",", 17 << 20, "0]")]
    {
        let mut bomb = Vec::new();
        let mut packer = flate2::write::GzEncoder::new(&mut bomb, flate2::Compression::fast());
        for part in [head, &unit.repeat(n), tail] {
            packer.write_all(part.as_bytes()).unwrap();
        }
        packer.finish().unwrap();
        assert!(bomb.len() < 1 << 20);
        let error = Vocabulary::from_bytes(Format::JsonArray, &bomb, &LoadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("limit"), "{error}");
    }
}
