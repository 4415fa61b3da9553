//! Tags and schemas without stop strings, compared with the definition: a text is left if it belongs to the
//! tag and no stop string stands in it, and a beginning is viable if such a text begins so.

use std::collections::BTreeSet;

use anygram_json_schema::lower::Whitespace;
use anygram_left_to_right::{Constraint, ErrorKind, Language, LanguageOptions};
use anygram_testkit::random::Random;
use anygram_vocab::{TokenId, Vocabulary};
use serde_json::json;

use super::language;
use super::random::{all_texts, format, none_of, seeds};

fn has_one(stops: &[&str], text: &[u8]) -> bool {
    stops.iter().any(|stop| text.windows(stop.len()).any(|part| part == stop.as_bytes()))
}

/// The language without the stop strings; `None` if nothing is left.
fn avoiding(plain: &Language, stops: &[&str]) -> Option<Language> {
    match plain.avoiding(stops) {
        Ok(language) => Some(language),
        Err(error) if error.kind() == ErrorKind::Unsatisfiable => None,
        Err(error) => panic!("{stops:?}: {error}"),
    }
}

#[test]
fn random_tags_without_stop_strings() {
    let (mut n_left, mut n_lost, mut failures) = (0, 0, Vec::new());
    for seed in seeds() {
        let mut random = Random::new(seed);
        let tag = json!({"format": format(&mut random, 2)}).to_string();
        let Ok(plain) = language(&tag) else { continue };
        let n_stops = random.between(1, 2);
        let word = |random: &mut Random| {
            let length = random.between(1, 4);
            (0..length).map(|_| *random.choose(&['a', 'b'])).collect::<String>()
        };
        let stops: Vec<String> = (0..n_stops).map(|_| word(&mut random)).collect();
        let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
        let language = avoiding(&plain, &stops);
        let mut readers = (plain.reader().unwrap(), language.as_ref().map(|made| made.reader().unwrap()));
        for text in all_texts(b"ab", 7) {
            let was = readers.0.read(&text).unwrap().is_sentence;
            let expected = was && !has_one(&stops, &text);
            let found = readers.1.as_mut().is_some_and(|reader| reader.read(&text).unwrap().is_sentence);
            n_left += usize::from(expected);
            n_lost += usize::from(was && !expected);
            if found != expected {
                let text = String::from_utf8_lossy(&text);
                failures.push(format!("seed {seed}: {text:?} is {found} without {stops:?} in {tag}"));
                break;
            }
        }
    }
    none_of(&failures);
    assert!(n_left > 1000 && n_lost > 1000, "{n_left} {n_lost}");
}

fn schema(source: &str) -> Language {
    let options = anygram_json_schema::Options {
        whitespace: Whitespace::Compact,
        escapes: anygram_json_schema::pieces::Escapes::Needed,
        ..anygram_json_schema::Options::default()
    };
    let grammar = anygram_json_schema::grammar(source, &options).unwrap();
    Language::new(grammar, &LanguageOptions::default()).unwrap()
}

/// All sentences of a finite language, found byte by byte.
fn sentences(language: &Language) -> BTreeSet<Vec<u8>> {
    let mut reader = language.reader().unwrap();
    let (mut found, mut agenda) = (BTreeSet::new(), vec![Vec::new()]);
    while let Some(text) = agenda.pop() {
        if reader.read(&text).unwrap().is_sentence {
            found.insert(text.clone());
        }
        for byte in b' '..=b'~' {
            let next = [&text[..], &[byte]].concat();
            if reader.read(&next).unwrap().is_viable {
                agenda.push(next);
            }
        }
        assert!(found.len() < 5_000);
    }
    found
}

/// Masks look ahead: within words, keys, and over their borders.
#[test]
fn viable_beginnings_of_finite_schemas() {
    let schemas = [
        r#"{"enum": ["ab", "aab", "ba", "bb", "a"]}"#,
        r#"{"type": "array", "items": {"enum": ["ab", "ba", "12", "1", true]}, "maxItems": 2}"#,
        r#"{"type": "array", "items": {"enum": ["ab", "ba", "aba", "12"]}, "maxItems": 2,
            "uniqueItems": true}"#,
        r#"{"properties": {"name": {"const": "am"}, "x": {"enum": ["a", "m", null]},
            "ab": {"type": "boolean"}},
            "additionalProperties": false, "type": "object"}"#,
        r#"{"type": "object", "required": ["a"], "additionalProperties": false, "properties":
            {"a": {"enum": ["12", "1", null]},
             "b": {"anyOf": [{"type": "string", "pattern": "^[ab]{2}$"}, {"const": [true]}]}}}"#,
        r#"{"anyOf": [{"type": "object", "properties": {"k": {"const": "x"}, "v": {"enum": ["ab", "b"]}},
            "required": ["k", "v"], "additionalProperties": false},
            {"type": "object", "properties": {"k": {"const": "y"}, "v": {"const": "bb"}},
            "required": ["k", "v"], "additionalProperties": false}]}"#,
    ];
    let pool = [
        "am",
        "ab",
        "a",
        "b",
        "1",
        "12",
        "\",\"",
        "true",
        "e,",
        "}",
        "\"k\":\"y",
        "bb",
        ":1",
        "2]",
        "x\",",
        "null",
    ];
    let mut random = Random::new(29);
    let (mut n_viable, mut n_dead) = (0, 0);
    for source in schemas {
        let plain = schema(source);
        let all = sentences(&plain);
        for _ in 0..24 {
            let stops: Vec<&str> = (0..random.between(1, 3)).map(|_| *random.choose(&pool)).collect();
            let left: BTreeSet<&[u8]> =
                all.iter().map(|text| &text[..]).filter(|text| !has_one(&stops, text)).collect();
            let Some(language) = avoiding(&plain, &stops) else {
                assert!(left.is_empty(), "{stops:?} of {source}");
                continue;
            };
            let mut reader = language.reader().unwrap();
            let beginnings: BTreeSet<&[u8]> =
                all.iter().flat_map(|text| (0..=text.len()).map(|end| &text[..end])).collect();
            for begin in beginnings {
                let viable = left.range(begin..).next().is_some_and(|text| text.starts_with(begin));
                let reading = reader.read(begin).unwrap();
                let shown = String::from_utf8_lossy(begin);
                assert_eq!(reading.is_viable, viable, "{shown:?} without {stops:?} of {source}");
                assert_eq!(
                    reading.is_sentence,
                    left.contains(begin),
                    "{shown:?} without {stops:?} of {source}"
                );
                n_viable += usize::from(viable);
                n_dead += usize::from(!viable);
            }
        }
    }
    assert!(n_viable > 1000 && n_dead > 1000, "{n_viable} {n_dead}");
}

/// Whatever is chosen, something is allowed next, and what ends has no stop string and belongs to the schema.
#[test]
fn walks_through_schemas_never_end_in_a_dead_end() {
    let schemas = [
        r#"{"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items":
            {"type": "string", "maxLength": 9}}, "n": {"type": "number"}}, "required": ["name", "n"]}"#,
        "true",
        r#"{"type": "array", "items": {"type": "string", "pattern": "^[a-z]+@[a-z]+$"}, "minItems": 1}"#,
        r##"{"$defs": {"t": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/t"},
            {"type": "integer"}]}}},
            "$ref": "#/$defs/t"}"##,
    ];
    let pool =
        ["\n\n", "\n", "</s>", "a", "ame", "\": ", ", ", "]]", "0", "1.5", "\"}", "User:", " ", "@e", "tru"];
    let vocabulary = Vocabulary::builtin();
    let mut random = Random::new(31);
    let mut n_walks = 0;
    for source in schemas {
        let grammar = anygram_json_schema::grammar(source, &Default::default()).unwrap();
        let plain = Language::new(grammar, &LanguageOptions::default()).unwrap();
        for _ in 0..4 {
            let stops: Vec<&str> = (0..random.between(1, 3)).map(|_| *random.choose(&pool)).collect();
            let Some(language) = avoiding(&plain, &stops) else { continue };
            let constraint = Constraint::new(language.into(), vocabulary.clone()).unwrap();
            let mut matcher = constraint.matcher().unwrap();
            for walk in 0..3 {
                matcher.reset();
                let mut text = Vec::new();
                for step in 0..60 {
                    // At last the shortest way to an end.
                    let left = matcher.minimum_tokens(10_000).unwrap().expect("something is left");
                    let mask = match step {
                        0..25 => matcher.mask().unwrap(),
                        _ => matcher.mask_with_budget(left).unwrap(),
                    };
                    let ids: Vec<TokenId> = mask.iter().filter(|id| !vocabulary.eos().contains(id)).collect();
                    if ids.is_empty() || step >= 25 && matcher.is_sentence() {
                        break;
                    }
                    let id = *random.choose(&ids);
                    text.extend_from_slice(vocabulary.bytes(id).unwrap_or_default());
                    matcher.advance(id).unwrap();
                }
                let shown = String::from_utf8_lossy(&text);
                assert!(matcher.is_sentence(), "{shown:?} in walk {walk} without {stops:?} of {source}");
                assert!(!has_one(&stops, &text), "{shown:?} without {stops:?} of {source}");
                assert!(plain.read(&text).unwrap().is_sentence, "{shown:?} of {source}");
                n_walks += 1;
            }
        }
    }
    assert!(n_walks > 20, "{n_walks}");
}
