//! Each kind of file: what a token is, how a text is cut, and what is said of a bad file.

#[allow(dead_code)]
use crate::common;

use anygram_vocab::{
    ErrorKind, Format, LoadOptions, MAX_TOKENS, SpecialIds, TokenId, VocabError, Vocabulary,
};
use common::path;
use std::collections::HashMap;

fn load(name: &str) -> Vocabulary {
    let vocabulary = Vocabulary::from_file(path(name), &LoadOptions::default()).unwrap();
    vocabulary.validate().unwrap();
    vocabulary
}

fn parse(format: Format, text: &str) -> Result<Vocabulary, VocabError> {
    Vocabulary::from_bytes(format, text.as_bytes(), &LoadOptions::default())
}

/// The kind of an error, after checking that its message says all of this.
fn refused(result: Result<Vocabulary, VocabError>, says: &[&str]) -> ErrorKind {
    let error = result.expect_err("an error");
    for part in says {
        assert!(error.to_string().contains(part), "{error}: does not say {part:?}");
    }
    error.kind()
}

#[track_caller]
fn encodes(vocabulary: &Vocabulary, text: impl AsRef<[u8]>, expected: &[u32]) {
    let text = text.as_ref();
    let tokens = vocabulary.encode(text).unwrap();
    assert_eq!(
        tokens.iter().map(|id| id.0).collect::<Vec<_>>(),
        expected,
        "{}",
        String::from_utf8_lossy(text)
    );
    assert_eq!(vocabulary.decode(&tokens).unwrap(), text);
}

/// As [`encodes`], with a `tokenizer.json`: without the feature that takes, the error names it.
#[track_caller]
fn encodes_by_pipeline(vocabulary: &Vocabulary, text: impl AsRef<[u8]>, expected: &[u32]) {
    if cfg!(feature = "tokenizers") {
        return encodes(vocabulary, text, expected);
    }
    let error = vocabulary.encode(text).unwrap_err();
    assert!(error.to_string().contains("feature `tokenizers`"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

mod tiktoken {
    use super::*;

    #[test]
    fn ids_are_ranks_and_gaps_are_special() {
        for name in ["tiny.tiktoken", "tiny.tiktoken.gz"] {
            let vocabulary = load(name);
            assert_eq!(vocabulary.len(), 31);
            assert_eq!(vocabulary.bytes(TokenId(0)), Some(&b"a"[..]));
            assert!(vocabulary.is_special(TokenId(20)) && vocabulary.is_special(TokenId(21)));
            assert!(!vocabulary.is_special(TokenId(31)), "beyond the vocabulary");
            assert_eq!((vocabulary.name(TokenId(20)), vocabulary.eos()), (None, &[][..]));
        }
    }

    #[test]
    fn merges_by_rank_within_pieces() {
        let vocabulary = load("tiny.tiktoken");
        encodes(&vocabulary, "abc abc12", &[26, 25, 2, 9, 10]);
        encodes(&vocabulary, "{\"a\":{}},{", &[5, 4, 0, 29, 5, 6, 30]);
        encodes(&vocabulary, "", &[]);
    }

    #[test]
    fn tokens_may_split_a_character() {
        let vocabulary = load("tiny.tiktoken");
        encodes(&vocabulary, "中", &[28]);
        encodes(&vocabulary, b"\xe4\xb8", &[27]);
        encodes(&vocabulary, b"\xad\xe4a\xb8\xad", &[23, 19, 0, 22, 23]);
        assert_eq!(vocabulary.display_token(TokenId(27)), r#""\xe4\xb8""#);
        assert_eq!(vocabulary.display_token(TokenId(29)), r#""\":""#);
        assert_eq!(vocabulary.display_token(TokenId(20)), "<[20]>");
    }

    #[test]
    fn a_byte_without_a_token_is_named() {
        let error = load("tiny.tiktoken").encode("ab abx").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotEncode);
        assert!(error.to_string().contains("0x78 at offset 5"), "{error}");
    }

    #[test]
    fn pattern_and_offset_come_from_the_options() {
        let bytes = std::fs::read(path("tiny.tiktoken")).unwrap();
        let options =
            LoadOptions { pattern: Some("b|[^b]+".into()), id_offset: 100, ..LoadOptions::default() };
        let vocabulary = Vocabulary::from_bytes(Format::Tiktoken, &bytes, &options).unwrap();
        assert_eq!(vocabulary.len(), 131);
        encodes(&vocabulary, "abc", &[100, 101, 102]);
        let options = LoadOptions { pattern: Some("(".into()), ..LoadOptions::default() };
        let kind = refused(Vocabulary::from_bytes(Format::Tiktoken, &bytes, &options), &["pattern"]);
        assert_eq!(kind, ErrorKind::Syntax);
        let kind = refused(Vocabulary::from_bytes(Format::JsonArray, b"[]", &options), &["pattern"]);
        assert_eq!(kind, ErrorKind::Unsupported);
    }

    #[test]
    fn what_stands_between_matches_is_a_piece_too() {
        let bytes = std::fs::read(path("tiny.tiktoken")).unwrap();
        let options = LoadOptions { pattern: Some("a".into()), ..LoadOptions::default() };
        encodes(&Vocabulary::from_bytes(Format::Tiktoken, &bytes, &options).unwrap(), "cab{", &[2, 0, 1, 5]);
    }

    #[test]
    fn bad_lines_are_named() {
        use ErrorKind::*;
        let parse = |text: &str| parse(Format::Tiktoken, text);
        assert_eq!(refused(parse("YQ== 0\n\nYg== 1\r\n!! 2\n"), &["line 4 (byte 16)", "rank 2"]), Syntax);
        assert_eq!(refused(parse("YQ==\n"), &["line 1", "`YQ==`"]), Syntax);
        assert_eq!(refused(parse("YQ== +1\n"), &["line 1"]), Syntax);
        assert_eq!(
            refused(
                parse("YQ== 0\nYg== 3\nYw== 3\n"),
                &["line 2 (byte 7) and line 3 (byte 14)", "same id, 3"]
            ),
            Syntax
        );
        assert_eq!(refused(parse(&format!("YQ== {MAX_TOKENS}")), &["line 1", "limit"]), Limit);
        assert_eq!(refused(parse("YQ== 18446744073709551615"), &["limit"]), Limit);
        assert_eq!(refused(parse(" \n"), &["empty"]), Syntax);
    }

    #[test]
    fn a_run_of_spaces_is_cut_as_the_pattern_says() {
        let bytes = std::fs::read(path("tiny.tiktoken")).unwrap();
        let vocabulary = Vocabulary::from_bytes(Format::Tiktoken, &bytes, &LoadOptions::default()).unwrap();
        let mut text = " ".repeat(100_000);
        text.push_str("ab");
        let tokens = vocabulary.encode(&text).unwrap();
        assert_eq!(tokens.len(), 100_000);
        assert_eq!(tokens.last(), Some(&TokenId(25)));
    }
}

mod json_array {
    use super::*;

    #[test]
    fn elements_are_strings_bytes_or_special() {
        let vocabulary = load("array.json");
        assert_eq!(vocabulary.len(), 13);
        assert_eq!(vocabulary.bytes(TokenId(4)), Some(&b"\xb8\xad"[..]));
        assert_eq!(vocabulary.bytes(TokenId(5)), Some("中".as_bytes()));
        assert!(
            [6, 10, 12].iter().all(|&id| vocabulary.is_special(TokenId(id))),
            "null, empty, and null at the end"
        );
        assert_eq!(vocabulary.trie().n_tokens(), 10);
    }

    #[test]
    fn the_longest_match_first_and_the_lowest_id() {
        let vocabulary = load("array.json");
        encodes(&vocabulary, "aab\"} é", &[0, 2, 9, 7, 11]);
        encodes(&vocabulary, "中", &[5]);
        encodes(&vocabulary, b"\xe4\xe4\xb8\xad", &[3, 5]);
        let error = vocabulary.encode("ab\"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotEncode);
        assert!(error.to_string().contains("0x22 at offset 2"), "{error}");
    }

    #[test]
    fn bad_elements_are_named() {
        let parse = |text: &str| parse(Format::JsonArray, text);
        for (text, says) in [
            ("[\"a\",\n 5]", "line 2"),
            ("[{\"hex\":\"e4b\"}]", "`e4b`"),
            ("[{\"hex\":\"zz\"}]", "`zz`"),
            ("[{\"hax\":\"00\"}]", "\"hax\""),
            ("[{}]", "empty object"),
            ("[\"a\"", "EOF"),
            ("{}", "array of tokens"),
            ("[\"\\ud800\"]", "line 1"),
        ] {
            assert_eq!(refused(parse(text), &[says]), ErrorKind::Syntax, "{text}");
        }
        assert!(parse("[]").unwrap().is_empty());
    }
}

mod hugging_face {
    use super::*;

    #[test]
    fn byte_level_tokens_are_bytes() {
        let vocabulary = load("byte_level.json");
        assert_eq!(vocabulary.len(), 24);
        assert_eq!(vocabulary.bytes(TokenId(12)), Some(&b" ab"[..]));
        assert_eq!(vocabulary.bytes(TokenId(4)), Some(&b"\n"[..]));
        assert_eq!(vocabulary.bytes(TokenId(15)), Some(&b"\xf0\x9f"[..]));
        assert_eq!(vocabulary.bytes(TokenId(23)), Some("<tool é>".as_bytes()), "added, but not special");
        assert_eq!(vocabulary.name(TokenId(22)), Some("<|im_end|>"));
        assert_eq!(vocabulary.special_by_name("<|endoftext|>"), Some(TokenId(21)));
        assert_eq!(vocabulary.special_by_name("<tool é>"), None);
        assert_eq!(vocabulary.suggested_eos(), [TokenId(21), TokenId(22)]);
        assert_eq!(vocabulary.eos(), []);
    }

    #[test]
    fn byte_level_encoding_changes_nothing() {
        let vocabulary = load("byte_level.json");
        for _ in 0..20 {
            // No space in front, no truncation to two tokens, no dropout.
            encodes_by_pipeline(&vocabulary, "ab abc\":1", &[11, 12, 2, 16, 17]);
        }
        encodes_by_pipeline(&vocabulary, "aé\n", &[0, 13, 4]);
        encodes_by_pipeline(&vocabulary, "a<tool é>b", &[0, 23, 1]);
        encodes_by_pipeline(&vocabulary, b"\xf0\x9fab", &[15, 11]);
        if !cfg!(feature = "tokenizers") {
            return;
        }
        let error = vocabulary.encode("ab<|im_end|>").unwrap_err();
        assert!(error.to_string().contains("0x3c at offset 2"), "special tokens are not looked for: {error}");
        let error = vocabulary.encode("e\u{301}").unwrap_err();
        assert!(error.to_string().contains("0x65 at offset 0"), "not brought into normal form: {error}");
    }

    #[test]
    fn marked_spaces_and_fallback_bytes() {
        let vocabulary = load("byte_fallback.json");
        let bytes = |id| vocabulary.bytes(TokenId(id));
        assert_eq!((bytes(3), bytes(7)), (Some(&b"\n"[..]), Some(&b"\xe2"[..])));
        assert_eq!(
            (bytes(12), bytes(13), bytes(14)),
            (Some(&b" ab"[..]), Some(&b"  "[..]), Some(&b"<0xZZ>"[..]))
        );
        assert!((0..3).all(|id| vocabulary.is_special(TokenId(id))));
        assert_eq!(vocabulary.suggested_eos(), [TokenId(2)]);
        assert_eq!(bytes(4), bytes(9), "the byte and the letter");
        assert_eq!(vocabulary.trie().n_tokens(), 13);
    }

    #[test]
    fn marked_spaces_are_encoded_without_one_in_front() {
        let vocabulary = load("byte_fallback.json");
        encodes_by_pipeline(&vocabulary, "ab ab", &[11, 12]);
        encodes_by_pipeline(&vocabulary, " ab\n{", &[12, 3, 15]);
        encodes_by_pipeline(&vocabulary, "aé", &[9, 5, 6]);
        encodes_by_pipeline(&vocabulary, b"a\xe2a", &[9, 7, 9]);
        if !cfg!(feature = "tokenizers") {
            return;
        }
        // A mark in the text is not a space: it has no bytes here but those of U+2581, of which only the
        // first is a token.
        let error = vocabulary.encode("a▁").unwrap_err();
        assert!(error.to_string().contains("0x96 at offset 2"), "{error}");
    }

    #[test]
    fn unigram_with_metaspace() {
        let text = r#"{"added_tokens": [{"id": 3, "content": "</s>", "special": true, "single_word": false,
              "lstrip": false, "rstrip": false, "normalized": false}],
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
            "decoder": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
            "model": {"type": "Unigram", "unk_id": 0,
              "vocab": [["<unk>", 0], ["▁a", -1], ["a", -2], ["</s>", 0], ["▁", -3]]}}"#;
        let vocabulary = parse(Format::HuggingFace, text).unwrap();
        vocabulary.validate().unwrap();
        assert!(vocabulary.is_special(TokenId(0)) && vocabulary.is_special(TokenId(3)));
        encodes_by_pipeline(&vocabulary, "a a", &[2, 1]);
        encodes_by_pipeline(&vocabulary, " a", &[1]);
    }

    #[test]
    fn other_models_say_what_is_read() {
        use ErrorKind::Unsupported;
        let parse = |text: &str| parse(Format::HuggingFace, text);
        let word_piece = r###"{"model": {"type": "WordPiece", "unk_token": "u",
            "continuing_subword_prefix": "##", "vocab": {}}}"###;
        assert_eq!(refused(parse(word_piece), &["WordPiece", "Unigram", "JSON array"]), Unsupported);
        let suffix = r#"{"model": {"type": "BPE", "end_of_word_suffix": "</w>", "vocab": {}, "merges": []}}"#;
        assert_eq!(refused(parse(suffix), &["end_of_word_suffix `</w>`"]), Unsupported);
        let plain = r#"{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}"#;
        assert_eq!(refused(parse(plain), &["no decoder"]), Unsupported);
        assert_eq!(refused(parse("{"), &["line 1"]), ErrorKind::Syntax);
        assert_eq!(refused(parse("{}"), &["model"]), ErrorKind::Syntax);
    }

    #[test]
    fn ids_are_checked() {
        let text = std::fs::read_to_string(path("byte_level.json")).unwrap();
        let far = text.replace("\"id\": 23", "\"id\": 4000000000");
        assert_eq!(refused(parse(Format::HuggingFace, &far), &["4000000000"]), ErrorKind::Limit);
        let twice = text.replace("\"id\": 23", "\"id\": 22");
        assert_eq!(refused(parse(Format::HuggingFace, &twice), &["22"]), ErrorKind::Syntax);
        let hole = text.replace("\"id\": 23", "\"id\": 40");
        let vocabulary = parse(Format::HuggingFace, &hole).unwrap();
        assert_eq!((vocabulary.len(), vocabulary.is_special(TokenId(30))), (41, true));
        encodes_by_pipeline(&vocabulary, "<tool é>a", &[40, 0]);
    }
}

mod sentence_piece {
    use super::*;

    /// A field of a protocol buffer that holds bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn piece(text: &str, score: f32, kind: u8) -> Vec<u8> {
        let score = [&[2 << 3 | 5][..], &score.to_le_bytes()].concat();
        field(1, &[field(1, text.as_bytes()), score, vec![3 << 3, kind]].concat())
    }

    pub(super) fn model() -> Vec<u8> {
        let pieces = [
            ("<unk>", 0.0, 2),
            ("</s>", 0.0, 3),
            ("<0x61>", 0.0, 6),
            ("<0xC3>", 0.0, 6),
            ("<0xA9>", 0.0, 6),
            ("bc", -2.0, 1),
            ("ab", -1.0, 1),
            ("▁ab", -3.0, 1),
            ("▁", -4.0, 1),
            ("a", -5.0, 1),
            ("b", -6.0, 1),
            ("c", -7.0, 1),
            ("abc", -9.0, 4),
            ("中", -9.0, 1),
            ("lost", -9.0, 5),
        ];
        let mut model: Vec<u8> =
            pieces.iter().flat_map(|(text, score, kind)| piece(text, *score, *kind)).collect();
        model.extend(field(2, &[3 << 3, 2, 0x98, 0x02, 1, 9 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0]));
        model
    }

    #[test]
    fn pieces_are_bytes_and_merge_by_score() {
        let vocabulary =
            Vocabulary::from_bytes(Format::SentencePiece, &model(), &LoadOptions::default()).unwrap();
        vocabulary.validate().unwrap();
        assert_eq!(vocabulary.len(), 15);
        assert!([0, 1, 14].iter().all(|&id| vocabulary.is_special(TokenId(id))));
        assert_eq!(vocabulary.special_by_name("</s>"), Some(TokenId(1)));
        assert_eq!(
            (vocabulary.bytes(TokenId(2)), vocabulary.bytes(TokenId(7))),
            (Some(&b"a"[..]), Some(&b" ab"[..]))
        );
        encodes(&vocabulary, " ab bc", &[7, 8, 5]);
        encodes(&vocabulary, "ab", &[6]);
        encodes(&vocabulary, "ababcaé中", &[6, 12, 9, 3, 4, 13]);
        encodes(&vocabulary, b"\xc3a", &[3, 9]);
        assert!(vocabulary.encode("▁").unwrap_err().to_string().contains("0xe2 at offset 0"));
    }

    fn parse(model: &[u8]) -> Result<Vocabulary, VocabError> {
        Vocabulary::from_bytes(Format::SentencePiece, model, &LoadOptions::default())
    }

    /// The end of a model: its type.
    fn of_type(number: u8) -> Vec<u8> {
        field(2, &[3 << 3, number])
    }

    /// Models by `tools/sentence_piece.py`, with what the sentencepiece package makes of some texts.
    #[test]
    fn all_types_encode_as_sentencepiece_does() {
        type Texts = Vec<(String, Option<Vec<u32>>)>;
        let expected = std::fs::read(path("sentence_piece.json")).unwrap();
        let expected: HashMap<String, Texts> = serde_json::from_slice(&expected).unwrap();
        assert_eq!(expected.len(), 5);
        for (name, texts) in expected {
            let vocabulary = load(&format!("{name}.model"));
            for (text, ids) in texts {
                match ids {
                    Some(ids) => encodes(&vocabulary, &text, &ids),
                    // A part of it is unknown there; ours looks further for tokens that spell it.
                    None => match vocabulary.encode(&text) {
                        Ok(tokens) => assert_eq!(vocabulary.decode(&tokens).unwrap(), text.as_bytes()),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::CannotEncode),
                    },
                }
            }
        }
    }

    #[test]
    fn without_bytes_a_character_may_be_missing() {
        let vocabulary = load("unigram_plain.model");
        let error = vocabulary.encode("the mask 日").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotEncode);
        assert!(error.to_string().contains("0xe6 at offset 9"), "{error}");
        assert!(vocabulary.encode(b"\xff").is_err());
        let vocabulary = load("unigram.model");
        assert_eq!(
            vocabulary.decode(&vocabulary.encode(b"\xff the \xe6").unwrap()).unwrap(),
            b"\xff the \xe6"
        );
    }

    #[test]
    fn a_way_that_scores_do_not_like_is_still_a_way() {
        // The best pieces leave `x` alone, which is none.
        let of =
            |kind| [piece("ax", -90.0, 1), piece("b", -1.0, 1), piece("a", -1.0, 1), of_type(kind)].concat();
        encodes(&parse(&of(1)).unwrap(), "bax", &[1, 0]);
        let model = [
            piece("ab", -1.0, 1),
            piece("xb", -9.0, 1),
            piece("bc", -2.0, 1),
            piece("c", -3.0, 1),
            of_type(2),
        ];
        // Merging takes `bc` first.
        encodes(&parse(&model.concat()).unwrap(), "xbc", &[1, 3]);
        encodes(&parse(&of(3)).unwrap(), "bax", &[1, 0]);
        encodes(&parse(&of(4)).unwrap(), "bax", &[1, 0]);
    }

    #[test]
    fn scores_may_be_no_numbers() {
        for score in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN, f32::MAX] {
            for kind in 1..=4 {
                let pieces = [piece("a", score, 1), piece("aa", -score, 1), piece("aaa", score, 4)];
                let vocabulary = parse(&[pieces.concat(), of_type(kind)].concat()).unwrap();
                assert_eq!(vocabulary.decode(&vocabulary.encode("aaaaa").unwrap()).unwrap(), b"aaaaa");
            }
        }
    }

    #[test]
    fn damage_is_an_error_with_its_place() {
        use ErrorKind::*;
        assert_eq!(refused(parse(b""), &["empty"]), Syntax);
        assert_eq!(refused(parse(&of_type(1)), &["without pieces", "get it again"]), Syntax);
        assert_eq!(refused(parse(&model()[..20]), &["byte 16", "damaged"]), Syntax);
        assert_eq!(refused(parse(&piece("a", 0.0, 9)), &["byte 11", "type 9"]), Syntax);
        // Cut between two fields: what is left of a BPE model must not become a Unigram model.
        assert_eq!(refused(parse(&piece("a", 0.0, 1)), &["trainer specification", "cut off"]), Syntax);
        assert_eq!(refused(parse(&[piece("a", 0.0, 1), of_type(7)].concat()), &["type 7"]), Syntax);
        let bad_byte = [piece("<0xg0>", 0.0, 6), of_type(2)].concat();
        assert_eq!(refused(parse(&bad_byte), &["piece 0", "`<0xg0>`"]), Syntax);
        let bad_text = [field(1, &field(1, b"a\xff")), of_type(2)].concat();
        assert_eq!(refused(parse(&bad_text), &["byte 4", "UTF-8"]), Syntax);
        let twice = [piece("<s>", 0.0, 3), piece("<s>", 0.0, 3), of_type(1)].concat();
        assert_eq!(refused(parse(&twice), &["`<s>`", "token 0"]), InvalidArgument);
        let plain_spaces = [piece("a", 0.0, 1), of_type(1), field(3, &[5 << 3, 0])].concat();
        assert_eq!(refused(parse(&plain_spaces), &["escape_whitespaces"]), Unsupported);
        // Lengths and numbers without end.
        for huge in [
            &b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
            &b"\x0a\xff\xff\xff\xff\x0f"[..],
            &[0xff; 99],
        ] {
            assert_eq!(refused(parse(huge), &["byte 0", "damaged"]), Syntax);
        }
    }
}

#[test]
fn files_are_told_apart() {
    let load = |name: &str| Vocabulary::from_file(path(name), &LoadOptions::default());
    assert_eq!(refused(load("missing.json"), &["missing.json", "open"]), ErrorKind::Io);
    assert_eq!(
        refused(load("README.md"), &["README.md", "tokenizer.json", ".tiktoken"]),
        ErrorKind::Unsupported
    );
    // By content, whatever the name.
    let folder = std::env::temp_dir().join(format!("anygram-vocab-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, len) in
        [("tiny.tiktoken.gz", 31), ("tiny.tiktoken", 31), ("array.json", 13), ("byte_fallback.json", 16)]
    {
        let copy = folder.join("vocabulary");
        std::fs::copy(path(name), &copy).unwrap();
        assert_eq!(Vocabulary::from_file(&copy, &LoadOptions::default()).unwrap().len(), len, "{name}");
    }
    assert_eq!(
        refused(Vocabulary::from_file(&folder, &LoadOptions::default()), &["a folder"]),
        ErrorKind::Io
    );
    for (content, says) in [
        (&b""[..], "empty"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git lfs pull"),
        (b"\x1f\x8b", "gzip"),
    ] {
        for name in ["v.json", "v.tiktoken", "v.model"] {
            let copy = folder.join(name);
            std::fs::write(&copy, content).unwrap();
            refused(Vocabulary::from_file(&copy, &LoadOptions::default()), &[name, says]);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

mod special {
    use super::*;

    #[test]
    fn several_eos_beyond_the_file() {
        let options =
            LoadOptions { eos: vec![40, 35, 40], pad: Some(35), mask: Some(50), ..LoadOptions::default() };
        let vocabulary = Vocabulary::from_file(path("tiny.tiktoken"), &options).unwrap();
        vocabulary.validate().unwrap();
        assert_eq!(vocabulary.len(), 51);
        assert_eq!(vocabulary.eos(), [TokenId(40), TokenId(35)]);
        assert_eq!((vocabulary.pad(), vocabulary.mask()), (Some(TokenId(35)), Some(TokenId(50))));
        assert!(
            (31..51).all(|id| vocabulary.is_special(TokenId(id)) && vocabulary.name(TokenId(id)).is_none())
        );
        assert_eq!(vocabulary.decode(&[40, 0, 50, 1].map(TokenId)).unwrap(), b"ab");
        assert_eq!(vocabulary.decode(&[TokenId(51)]).unwrap_err().kind(), ErrorKind::UnknownToken);
        let named = vocabulary.with_names([(40, "<|im_end|>"), (60, "<|x|>")]).unwrap();
        assert_eq!((named.len(), named.suggested_eos()), (61, vec![TokenId(40)]));
        assert_eq!(named.display_token(TokenId(40)), "<|im_end|>");
    }

    #[test]
    fn an_ordinary_token_becomes_special() {
        let plain = load("tiny.tiktoken");
        let vocabulary = plain.with_special(SpecialIds { eos: vec![25], pad: Some(27), mask: None }).unwrap();
        vocabulary.validate().unwrap();
        assert!(vocabulary.is_special(TokenId(25)) && vocabulary.is_special(TokenId(27)));
        assert_eq!((vocabulary.name(TokenId(25)), vocabulary.name(TokenId(27))), (Some(" ab"), None));
        assert_eq!(vocabulary.len(), plain.len());
        assert_eq!(vocabulary.trie().n_tokens(), plain.trie().n_tokens() - 2);
        encodes(&vocabulary, " ab", &[3, 24]);
        encodes(&plain, " ab", &[25]);
        let vocabulary =
            load("byte_level.json").with_special(SpecialIds { eos: vec![12], ..Default::default() }).unwrap();
        encodes_by_pipeline(&vocabulary, " ab", &[3, 11]);
    }

    #[test]
    fn names_and_ids_belong_together() {
        let vocabulary = load("tiny.tiktoken").with_names([(20, "<a>"), (20, "<a>")]).unwrap();
        for names in [[(20, "<b>")], [(21, "<a>")], [(0, "<c>")]] {
            assert_eq!(vocabulary.with_names(names).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        let far = SpecialIds { eos: vec![u32::MAX], ..SpecialIds::default() };
        assert_eq!(vocabulary.with_special(far).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn names_come_from_the_options_too() {
        let names = vec![(40, "<|x|>".to_owned()), (25, " ab".to_owned())];
        let options = LoadOptions { eos: vec![40], names, ..LoadOptions::default() };
        let vocabulary = Vocabulary::from_file(path("tiny.tiktoken"), &options).unwrap();
        vocabulary.validate().unwrap();
        assert_eq!(vocabulary.special_by_name("<|x|>"), Some(TokenId(40)));
        // An ordinary token of this text is special from now on.
        assert_eq!(
            (vocabulary.special_by_name(" ab"), vocabulary.bytes(TokenId(25))),
            (Some(TokenId(25)), None)
        );
        encodes(&vocabulary, " ab", &[3, 24]);
        let options = LoadOptions { names: vec![(0, "<|x|>".into())], ..LoadOptions::default() };
        let loaded = Vocabulary::from_file(path("tiny.tiktoken"), &options);
        assert_eq!(refused(loaded, &["tiny.tiktoken", "`<|x|>`", "\"a\""]), ErrorKind::InvalidArgument);
    }

    #[test]
    fn the_built_in_one() {
        let vocabulary = Vocabulary::builtin();
        vocabulary.validate().unwrap();
        let n = vocabulary.len() as u32;
        assert!((1000..2000).contains(&n));
        assert_eq!(vocabulary.eos(), [TokenId(n - 3)]);
        assert_eq!(vocabulary.special_by_name("<|eos|>"), Some(TokenId(n - 3)));
        assert_eq!(vocabulary.special_by_name("<|pad|>"), vocabulary.pad());
        assert_eq!(vocabulary.special_by_name("<|mask|>"), vocabulary.mask());
        assert_eq!(vocabulary.mask(), Some(TokenId(n - 1)));
        for byte in 0..=255u8 {
            encodes(&vocabulary, [byte], &[byte.into()]);
        }
        let text =
            "SELECT COUNT(*) FROM singer WHERE age >= 30; [{\"a\": 1},{\"é\": \"日本語🙂\"}] ((1+2)*3) == 9";
        let tokens = vocabulary.encode(text).unwrap();
        assert!(tokens.len() < text.len() / 2);
        assert_eq!(vocabulary.decode(&tokens).unwrap(), text.as_bytes());
        assert!(vocabulary.memory_usage() > text.len());
    }

    #[test]
    fn a_vocabulary_is_shared_between_threads() {
        fn check<T: Send + Sync + Clone + 'static>(_: &T) {}
        let vocabulary = load("tiny.tiktoken");
        check(&vocabulary);
        let copy = vocabulary.clone();
        assert_eq!(std::thread::spawn(move || copy.encode("ab").unwrap()).join().unwrap(), [TokenId(24)]);
    }
}
