//! Our answers relate to python-lark's exactly as `docs/lark-comparison.md` says: the same, or a listed
//! difference.
//!
//! What python-lark says is data, `docs/lark-comparison/expected.jsonl`, written by `compare.py` there. When
//! this test fails, run that script: it says what is new, and writes the page again.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anygram::{Compiler, GrammarFormat, Language, LexerMode, Ties};
use serde_json::Value;

const MODES: [(&str, LexerMode); 2] =
    [("contextual", LexerMode::Contextual), ("scannerless", LexerMode::Scannerless)];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/lark-comparison")
}

/// The lines of the file by grammar.
fn expected() -> BTreeMap<String, Vec<Value>> {
    let source = fs::read_to_string(folder().join("expected.jsonl")).unwrap();
    let mut lines = source.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    assert!(head["lark"].is_string() && head["python"].is_string(), "{head}");
    let mut by_grammar = BTreeMap::<String, Vec<Value>>::new();
    lines.for_each(|line| {
        by_grammar.entry(line["grammar"].as_str().unwrap().to_owned()).or_default().push(line)
    });
    by_grammar
}

fn is_sentence(language: &Language, line: &Value) -> bool {
    language.read(line["text"].as_str().unwrap().as_bytes()).unwrap().is_sentence
}

fn compile(grammar: &str, compiler: &Compiler) -> std::sync::Arc<Language> {
    let source = fs::read_to_string(folder().join(grammar).with_extension("lark")).unwrap();
    compiler
        .clone()
        .imports(folder())
        .compile(GrammarFormat::Lark, &source)
        .unwrap_or_else(|error| panic!("{grammar}: {error}"))
}

#[test]
fn answers_differ_from_larks_exactly_where_it_is_documented() {
    let mut wrong = Vec::new();
    let (mut same, mut different) = (0, 0);
    for (grammar, lines) in expected() {
        for (name, mode) in MODES {
            let language = compile(&grammar, &Compiler::default().lexer(mode));
            for line in &lines {
                let ours = is_sentence(&language, line);
                let documented = match (line["lark"][name].as_bool(), line["difference"].get(name)) {
                    (Some(theirs), None) => theirs,
                    (Some(theirs), Some(_)) => !theirs,
                    // Refused by Lark.
                    (None, _) => line["anygram"][name].as_bool().unwrap(),
                };
                let is_different = line["difference"].get(name).is_some();
                *(if is_different { &mut different } else { &mut same }) += 1;
                if ours != documented {
                    wrong.push(format!("{grammar}, {name}: {} is a sentence: {ours}", line["text"]));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "not as documented, see docs/lark-comparison/compare.py:\n{}",
        wrong.join("\n")
    );
    assert!(same > 1_000 && different > 50, "{same} the same, {different} different");
}

#[test]
fn with_first_ties_keywords_are_those_of_lark() {
    let language = compile("keywords", &Compiler::default().ties(Ties::First));
    for line in &expected()["keywords"] {
        assert_eq!(Some(is_sentence(&language, line)), line["lark"]["contextual"].as_bool(), "{line}");
    }
}

#[test]
fn every_grammar_and_difference_is_documented() {
    let page = fs::read_to_string(folder().with_extension("md")).unwrap();
    let reasons = fs::read_to_string(folder().join("differences.toml")).unwrap();
    let expected = expected();
    for file in fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "lark") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                expected.contains_key(name) && page.contains(&format!("(lark-comparison/{name}.lark)")),
                "{name}"
            );
        }
    }
    for line in expected.values().flatten() {
        for (_, id) in line["difference"].as_object().unwrap() {
            assert!(reasons.contains(&format!("id = {id}\n")), "{id}");
        }
    }
}
