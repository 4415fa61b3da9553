//! Grammars in all formats through the front door: what XGrammar says of EBNF and GBNF, and the grammars of
//! the shared data.
//!
//! What XGrammar says is data, `docs/xgrammar-comparison/expected.jsonl`, written by `compare.py` there. The
//! shared data are in a folder `shared` beside the repository, or where `ANYGRAM_SHARED` says. Without them
//! the tests that need them say so and pass, but fail where `CI` is `true`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use anygram::{Compiler, ErrorKind, GrammarFormat, Language, LexerMode, Limits};
use anygram_testkit::shared::data;
use serde_json::Value;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compile(format: GrammarFormat, source: &str) -> Arc<Language> {
    Compiler::default().compile(format, source).unwrap_or_else(|error| panic!("{error}"))
}

fn is_sentence(language: &Language, text: &str) -> bool {
    language.read(text.as_bytes()).unwrap().is_sentence
}

fn lines() -> Vec<Value> {
    let source = fs::read_to_string(repository().join("docs/xgrammar-comparison/expected.jsonl")).unwrap();
    source.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn sentences_are_those_of_xgrammar() {
    let shared = data();
    let (mut wrong, mut n_answers) = (Vec::new(), 0);
    for line in lines() {
        let Some(file) = line["file"].as_str() else { continue };
        let path = match (file.strip_prefix("shared/"), &shared) {
            (Some(inner), Some(shared)) => shared.join("grammars").join(inner),
            (Some(_), None) => continue,
            (None, _) => repository().join("docs/xgrammar-comparison").join(file),
        };
        let source = fs::read_to_string(&path).unwrap();
        let own = GrammarFormat::of_path(&path).unwrap();
        for format in if own == GrammarFormat::Ebnf { vec![own] } else { vec![own, GrammarFormat::Ebnf] } {
            let language = compile(format, &source);
            for (key, expected) in [("sentences", true), ("others", false)] {
                for text in line[key].as_array().unwrap() {
                    n_answers += 1;
                    if is_sentence(&language, text.as_str().unwrap()) != expected {
                        wrong.push(format!(
                            "{file} as {}: {text} is a sentence: {}",
                            format.name(),
                            !expected
                        ));
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "not as documented, see docs/xgrammar-comparison/compare.py:\n{}",
        wrong.join("\n")
    );
    assert!(n_answers > 600, "{n_answers}");
}

#[test]
fn what_is_read_differs_from_xgrammar_only_where_it_is_documented() {
    let mut wrong = Vec::new();
    for line in lines() {
        let Some(source) = line["source"].as_str() else { continue };
        let ours = match Compiler::default().read(GrammarFormat::Ebnf, source) {
            Ok(_) => true,
            Err(error) => {
                let error = error.grammar_error().unwrap();
                assert!(error.span().end <= source.len() && !error.render("g", source).is_empty());
                false
            }
        };
        let same = ours == line["read"].as_bool().unwrap();
        if same == line["why"].is_string() {
            wrong.push(format!("{source:?} is read: {ours}"));
        }
    }
    assert!(wrong.is_empty(), "see docs/xgrammar-comparison/compare.py:\n{}", wrong.join("\n"));
}

#[test]
fn all_gbnf_files_of_the_shared_data_are_read() {
    let Some(data) = data() else { return };
    let mut names = BTreeSet::new();
    for file in fs::read_dir(data.join("grammars/llama_cpp_gbnf")).unwrap() {
        let path = file.unwrap().path();
        let language = compile(GrammarFormat::of_path(&path).unwrap(), &fs::read_to_string(&path).unwrap());
        assert!(language.grammar().validate().is_ok());
        names.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    let expected =
        ["arithmetic", "c", "chess", "english", "japanese", "json", "json_arr", "list", "vllm-sql"]
            .map(str::to_owned);
    assert_eq!(names, BTreeSet::from(expected));
}

#[test]
fn commandtalk() {
    let Some(data) = data() else { return };
    let folder = data.join("cfg_commandtalk");
    let (packed, mut bytes) = (fs::File::open(folder.join("commandtalk.cfg.gz")).unwrap(), Vec::new());
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    // Latin-1.
    let source: String = bytes.into_iter().map(char::from).collect();
    let grammar = Compiler::default().read(GrammarFormat::Nltk, &source).unwrap();
    let lhs: BTreeSet<usize> = grammar.rules.iter().map(|rule| rule.lhs.index()).collect();
    assert_eq!((grammar.rules.len(), lhs.len()), (28_851, 4_736));
    let language = Compiler::default().compile_grammar(grammar).unwrap();
    let bytes = fs::read(folder.join("sentences.txt")).unwrap();
    let sentences: String = bytes.into_iter().map(char::from).collect();
    let (mut n_sentences, mut n_others) = (0, 0);
    for line in sentences.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let (trees, words) = line.split_once(':').unwrap();
        let expected = trees.trim() != "0";
        assert_eq!(is_sentence(&language, words), expected, "{line}");
        *(if expected { &mut n_sentences } else { &mut n_others }) += 1;
    }
    println!("{n_sentences} sentences, {n_others} others");
    assert_eq!(n_sentences + n_others, 103);
}

#[test]
fn what_is_too_large_as_one_terminal_is_read_in_smaller_ones() {
    // The automaton for the piece has to remember 25 characters.
    let source = r#"root ::= [ab]* "a" [ab]{25} "." root?"#;
    let language = compile(GrammarFormat::Gbnf, source);
    for (text, expected) in [("a", true), ("b", false)] {
        let text = format!("{}{text}{}.", "ab".repeat(20), "b".repeat(25));
        assert_eq!(is_sentence(&language, &text), expected);
    }
    // With one cut the terminals are part of the meaning.
    let error =
        Compiler::default().lexer(LexerMode::Longest).compile(GrammarFormat::Gbnf, source).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let mut limits = Limits::default();
    limits.lexer.dfa_states = 1;
    assert!(Compiler::default().limits(limits).compile(GrammarFormat::Gbnf, source).is_err());
}

#[test]
fn formats_by_name_and_extension() {
    for format in GrammarFormat::ALL {
        assert_eq!(GrammarFormat::by_name(format.name()), Some(format));
        for extension in format.extensions() {
            assert_eq!(GrammarFormat::of_path(format!("a.b.{extension}").as_ref()), Some(format));
            assert_eq!(GrammarFormat::of_path(format!("a.{extension}.gz").as_ref()), Some(format));
        }
    }
    assert_eq!(GrammarFormat::of_path("a.gz".as_ref()), None);
    assert_eq!(GrammarFormat::of_path("cfg".as_ref()), None);
}

#[test]
fn the_start_can_be_named_in_every_format() {
    let with = |format, source, start: &str| Compiler::default().start(start).read(format, source);
    assert!(with(GrammarFormat::Gbnf, "a ::= \"x\"", "a").is_ok());
    assert!(with(GrammarFormat::Ebnf, "root ::= a\na ::= \"x\"", "a").is_ok());
    assert!(with(GrammarFormat::Nltk, "S -> A\nA -> 'x'", "A").is_ok());
    assert!(with(GrammarFormat::Regex, "x", "start").is_ok());
    for (format, source) in
        [(GrammarFormat::Gbnf, "a ::= \"x\""), (GrammarFormat::Nltk, "S -> 'x'"), (GrammarFormat::Regex, "x")]
    {
        assert_eq!(with(format, source, "zz").unwrap_err().kind(), ErrorKind::Syntax);
    }
}
