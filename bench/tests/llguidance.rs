//! The cases of llguidance's dialect (`testdata/llguidance.json`), given to llguidance itself: what our tests
//! expect of the dialect is what it does, but for the texts that are listed as differences.

#![cfg(feature = "peers")]

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

/// A factory whose tokens are the bytes, and one that ends a text.
fn factory() -> ParserFactory {
    const EOS: u32 = 256;
    let mut words: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], &b"<eos>"[..]].concat());
    let info = TokRxInfo::new(words.len() as u32, EOS);
    let environment: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
    let mut factory = ParserFactory::new_simple(&environment).expect("a small vocabulary");
    factory.quiet();
    factory
}

fn is_sentence(start: &Matcher, text: &str) -> bool {
    let mut output = start.clone();
    for byte in text.bytes() {
        let allowed = output.compute_mask_or_eos().is_ok_and(|mask| mask.is_allowed(byte.into()));
        if !allowed || output.consume_token(byte.into()).is_err() {
            return false;
        }
    }
    output.is_accepting().unwrap_or(false)
}

#[test]
fn the_cases_of_the_dialect_are_what_llguidance_does() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/llguidance.json");
    let cases: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the cases")).expect("JSON");
    let (factory, mut wrong, mut n_texts) = (factory(), Vec::new(), 0);
    for case in &cases {
        let (name, grammar) = (&case["name"], case["grammar"].as_str().expect("a grammar"));
        let start = Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned())));
        if let Some(error) = start.get_error() {
            wrong.push(format!("{name}: {error}"));
            continue;
        }
        let mut expect = |text: &str, expected: bool| {
            n_texts += 1;
            if is_sentence(&start, text) != expected {
                wrong.push(format!("{name}: {text:?} is a sentence: {}", !expected));
            }
        };
        let texts = |key: &str| case[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts("accept").for_each(|text| expect(text, true));
        texts("reject").for_each(|text| expect(text, false));
        for differ in case["differ"].as_array().into_iter().flatten() {
            let here = differ["here"].as_bool().expect("what we say");
            expect(differ["text"].as_str().expect("a text"), !here);
        }
    }
    assert!(n_texts > 80);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
