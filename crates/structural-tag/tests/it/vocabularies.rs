//! Tags with vocabularies: tokens that straddle marks, special tokens, and the vocabulary of a large model.

use anygram_left_to_right::Matcher;
use anygram_structural_tag::tools::{Family, ToolsOptions, tag};
use anygram_vocab::{LoadOptions, SpecialIds, TokenId, Vocabulary};

use super::{language, matcher};

fn vocabulary(tokens: &[&[u8]], specials: &[&str]) -> Vocabulary {
    let n = tokens.len() as u32;
    let all = tokens.iter().map(|token| token.to_vec()).chain([Vec::new()]);
    let eos = SpecialIds { eos: vec![n], ..SpecialIds::default() };
    let names = (n + 1..).zip(specials.iter().copied());
    Vocabulary::from_tokens(all, eos).unwrap().with_names(names).unwrap()
}

fn allowed(matcher: &mut Matcher) -> Vec<u32> {
    matcher.mask().unwrap().iter().map(|token| token.0).collect()
}

#[test]
fn tokens_straddle_marks_and_split_characters() {
    const TAG: &str = r#"{"type":"triggered_tags","triggers":["<é"],"tags":
        [{"begin":"<é>","content":{"type":"const_string","value":"x"},"end":"</é>"}],"excludes":["!"]}"#;
    let tokens: [&[u8]; 10] =
        [b"a<", "é>x".as_bytes(), b"\xc3", b"\xa9", b"<\xc3", b">", b"x</", "é>b".as_bytes(), b"!", b"\xff"];
    let mut matcher = matcher(TAG, vocabulary(&tokens, &[]));
    // All but the excluded; half characters and bytes that are no text are free text too.
    assert_eq!(allowed(&mut matcher), [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]);
    matcher.advance(TokenId(0)).unwrap();
    // Behind `<` the trigger may follow, whole or in part, and only as a tag goes on.
    assert_eq!(allowed(&mut matcher), [0, 1, 2, 3, 4, 5, 6, 9, 10]);
    matcher.advance(TokenId(2)).unwrap();
    assert_eq!(allowed(&mut matcher), [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]);
    matcher.advance(TokenId(3)).unwrap();
    assert_eq!(allowed(&mut matcher), [5]);
    matcher.advance_all(&[TokenId(5), TokenId(6)]).unwrap();
    // A token can end the tag and begin free text.
    assert_eq!(allowed(&mut matcher), [1, 2, 7]);
    matcher.advance(TokenId(7)).unwrap();
    assert!(matcher.is_sentence());
    matcher.rollback(6).unwrap();
    assert_eq!(allowed(&mut matcher), [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]);
}

#[test]
fn bounds_on_tokens_beside_values_that_are_remembered() {
    const TAG: &str = r#"{"type":"sequence","elements":[{"type":"any_text","max_tokens":2},
        {"type":"json_schema","json_schema":
            {"type":"array","uniqueItems":true,"items":{"type":"integer"}}}]}"#;
    let tokens: [&[u8]; 9] = [b"[", b"1", b",", b"]", b"1,", b"1]", b"[1", b"[1,1]", b",1"];
    let mut matcher = matcher(TAG, vocabulary(&tokens, &[]));
    let mut agenda = vec![Vec::new()];
    while let Some(written) = agenda.pop() {
        matcher.go_to(&written).unwrap();
        let mask = allowed(&mut matcher);
        for token in 0..9 {
            let is_allowed = matcher.fork().advance(TokenId(token)).is_ok();
            assert_eq!(mask.contains(&token), is_allowed, "{token} behind {written:?}");
            if is_allowed && written.len() < 4 {
                agenda.push([&*written, &[TokenId(token)]].concat());
            }
        }
    }
    // Free text of two tokens, and a list whose items differ.
    matcher.go_to(&[7, 1, 0].map(TokenId)).unwrap();
    assert_eq!(allowed(&mut matcher), [1, 3, 4, 5]);
    matcher.advance(TokenId(4)).unwrap();
    assert_eq!(allowed(&mut matcher), [1]);
}

#[test]
fn special_tokens_stand_where_tags_name_them() {
    const TAG: &str = r#"{"type":"tag","begin":{"type":"token","token":"<|a|>"},"content":{"type":"any_text"},
        "end":{"token":4}}"#;
    let mut matcher = matcher(TAG, vocabulary(&[b"x", b"<|c|>"], &["<|a|>", "<|b|>"]));
    assert_eq!(allowed(&mut matcher), [3]);
    matcher.advance(TokenId(3)).unwrap();
    assert_eq!(allowed(&mut matcher), [0, 1, 4]);
    matcher.advance_all(&[TokenId(1), TokenId(4)]).unwrap();
    assert_eq!(allowed(&mut matcher), [2]);
}

#[test]
fn markers_can_be_special_tokens() {
    const TOOLS: &str = r#"[{"type":"function","function":{"name":"f","parameters":{"const":1}}}]"#;
    let names = ["<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|start|>"];
    let tokens: [&[u8]; 7] =
        [b"analysis", b"hm", b"assistant", b"commentary to=functions.f ", b"json", b"1", b"final"];
    let vocabulary = vocabulary(&tokens, &names);
    let tag_of = |family, special_tokens: &[&str]| {
        let special_tokens = special_tokens.iter().map(|name| (*name).to_owned()).collect();
        tag(TOOLS, &ToolsOptions { special_tokens, ..ToolsOptions::new(family) }).unwrap()
    };
    let language = language(&tag_of(Family::GptOss, &[])).unwrap();
    let constraint = anygram_left_to_right::Constraint::new(language, vocabulary).unwrap();
    let mut matcher = constraint.matcher().unwrap();
    let [channel, message, constrain, end, start] = [8, 9, 10, 11, 12];
    let call = [channel, 0, message, 1, end, start, 2, channel, 3, constrain, 4, message];
    matcher.advance_all(&call.map(TokenId)).unwrap();
    assert_eq!(allowed(&mut matcher), [5]);
    matcher.advance(TokenId(5)).unwrap();
    assert!(matcher.is_sentence());

    let mistral = super::language(&tag_of(Family::Mistral, &["<|start|>"])).unwrap();
    assert!(mistral.read(b"[TOOL_CALLS]f1").unwrap().is_sentence);
    let special = tag_of(Family::Mistral, &["[TOOL_CALLS]"]);
    assert!(
        !special.contains("triggered_tags") && special.contains(r#"{"type":"token","token":"[TOOL_CALLS]"}"#)
    );
}

/// The vocabulary of Qwen, if the shared data is there.
fn qwen() -> Option<Vocabulary> {
    let path = anygram_testkit::shared::data()?.join("tokenizers/qwen.tiktoken.gz");
    Some(Vocabulary::from_file(path, &LoadOptions::default()).unwrap())
}

#[test]
fn free_text_is_constrained_by_no_token_more_than_its_definition_says() {
    let Some(vocabulary) = qwen() else { return println!("skipped: there is no shared data") };
    const TAG: &str = r#"{"type":"triggered_tags","triggers":["<tool_call>"],"tags":
        [{"begin":"<tool_call>{","content":{"type":"any_text"},"end":"}"}],"excludes":["<think>",
        "</think>"]}"#;
    let mut matcher = matcher(TAG, vocabulary.clone());
    let marks = ["<tool_call>", "<think>", "</think>"];
    for text in ["", "So ", "So <", "So <tool_call", "a </thin", "<thi", "\u{4e2d}"] {
        matcher.reset();
        matcher.advance_text(text).unwrap();
        let mask = matcher.mask().unwrap();
        for id in 0..vocabulary.len() as u32 {
            let Some(bytes) = vocabulary.bytes(TokenId(id)) else { continue };
            let all = [text.as_bytes(), bytes].concat();
            let first =
                (0..=all.len()).find(|&end| marks.iter().any(|mark| all[..end].ends_with(mark.as_bytes())));
            let expected = match first {
                None => true,
                // A trigger goes on as the tag does; what is excluded does not stand.
                Some(end) => all[..end].ends_with(b"<tool_call>") && behind_trigger(&all[end..]),
            };
            assert_eq!(
                mask.contains(TokenId(id)),
                expected,
                "{text:?} and {:?}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}

/// Whether something can begin behind the trigger: the brace, and then anything up to the next brace, behind
/// which free text begins again (in which no token of this vocabulary holds a whole mark).
fn behind_trigger(rest: &[u8]) -> bool {
    rest.first().is_none_or(|&byte| byte == b'{')
}
