//! Every grammar of the shared data in a format that is read: it loads, and its print in Lark's notation
//! reads as the same grammar; or it is one of the few in [`REFUSED`].

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use anygram::{Compiler, Grammar, GrammarFormat, LexerMode};
use anygram_testkit::shared::data;
use flate2::read::GzDecoder;
use serde_json::Value;

/// Files that are refused: where, and for what.
const REFUSED: [(&str, (usize, usize), &str); 7] = [
    // A library without rules.
    ("lark/unicode.lark", (1, 1), "there is no rule `start`"),
    // Look-around.
    ("lark/common.lark", (27, 35), "the look-around `(?<!` is not supported"),
    ("lark/lark.lark", (48, 14), "the look-around `(?!` is not supported"),
    ("lark/verilog.lark", (126, 28), "the look-around `(?!` is not supported"),
    // Indentation, which is not context-free.
    ("lark/python.lark", (275, 10), "`%declare` is not supported: `_INDENT` stands for indentation"),
    ("lark/python2.lark", (167, 10), "`%declare` is not supported: `_INDENT` stands for indentation"),
    ("syncode/python.lark", (189, 10), "`%declare` is not supported: `_INDENT` stands for indentation"),
];

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Prints a grammar and reads the print.
fn expect_same_when_printed(name: &str, grammar: &Grammar) {
    if let Err(message) = grammar.validate() {
        panic!("{name}: {message}");
    }
    let printed = grammar.to_string();
    let again = Compiler::default().read(GrammarFormat::Lark, &printed);
    let again = again.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(grammar.difference(&again), None, "{name}");
}

#[test]
fn every_file_loads_and_prints_or_is_listed() {
    let Some(data) = data() else { return };
    let (mut n_loaded, mut refused) = (0, BTreeSet::new());
    for folder in ["grammars", "replay"].map(|folder| data.join(folder)) {
        let mut paths = Vec::new();
        let mut folders = vec![folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { paths.push(path) }
            }
        }
        for path in paths {
            let Some(format) = GrammarFormat::of_path(&path) else { continue };
            let name = path.strip_prefix(&folder).unwrap().display().to_string().replace('\\', "/");
            let source = std::fs::read_to_string(&path).unwrap();
            match Compiler::default().imports(path.parent().unwrap()).read(format, &source) {
                Ok(grammar) => {
                    n_loaded += 1;
                    expect_same_when_printed(&name, &grammar);
                }
                Err(error) => {
                    let error = error.grammar_error().unwrap();
                    let place = (error.line(), error.column());
                    let listed = REFUSED.iter().any(|&(file, at, what)| {
                        file == name && at == place && error.message().contains(what)
                    });
                    assert!(listed, "{}", error.render(&name, &source));
                    refused.insert(name);
                }
            }
        }
    }
    assert_eq!(refused.len(), REFUSED.len());
    assert_eq!(n_loaded, 43, "files loaded");
}

#[test]
fn grammars_of_json_schemas() {
    let Some(data) = data() else { return };
    let lines =
        String::from_utf8(unpacked(&data.join("json_mode_eval_extended/grammars_lark.jsonl.gz"))).unwrap();
    let mut n_loaded = 0;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let source = line["grammar"].as_str().unwrap();
        let grammar = Compiler::default().read(GrammarFormat::Lark, source);
        let grammar = grammar.unwrap_or_else(|error| panic!("{error}: {source}"));
        expect_same_when_printed(&line["index"].to_string(), &grammar);
        if let Err(error) = Compiler::default().compile_grammar(grammar.clone()) {
            // A terminal of these takes all that follows, quotes included, so with longest match nothing is
            // left for the others.
            assert!(
                (15..=17).contains(&line["index"].as_u64().unwrap())
                    && error.to_string().contains("use `scannerless`"),
                "{error}"
            );
            Compiler::default().lexer(LexerMode::Scannerless).compile_grammar(grammar).unwrap();
        }
        n_loaded += 1;
    }
    assert_eq!(n_loaded, 191);
}

#[test]
fn commandtalk() {
    let Some(data) = data() else { return };
    // Latin-1.
    let source: String =
        unpacked(&data.join("cfg_commandtalk/commandtalk.cfg.gz")).into_iter().map(char::from).collect();
    let grammar = Compiler::default().read(GrammarFormat::Nltk, &source).unwrap();
    assert_eq!(grammar.rules.len(), 28_851);
    expect_same_when_printed("commandtalk", &grammar);
}
