//! The grammars of a data set, one for each JSON schema, print as Lark, and that reads as the same grammar.

use std::io::Read as _;
use std::path::PathBuf;

use anygram::{Compiler, GrammarFormat};
use flate2::read::GzDecoder;
use serde_json::Value;

/// The folder of shared data, if there is one. In CI it has to be there.
fn shared() -> Option<PathBuf> {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("ANYGRAM_SHARED").map_or(default, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!in_ci, "no shared data at {}: set ANYGRAM_SHARED", folder.display());
    eprintln!("NOT TESTED: no shared data at {}; set ANYGRAM_SHARED to its folder", folder.display());
    None
}

#[test]
fn grammars_of_json_schemas_are_the_same_when_printed_and_read() {
    let Some(shared) = shared() else { return };
    let path = shared.join("data/json_mode_eval_extended/grammars_lark.jsonl.gz");
    let mut lines = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut lines).unwrap();
    let compiler = Compiler::default();
    let read = |source: &str| {
        let grammar = compiler.read(GrammarFormat::Lark, source);
        let grammar = grammar.unwrap_or_else(|error| panic!("{}", error.render("grammar", source)));
        grammar.validate().unwrap();
        grammar
    };
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let grammar = read(line["grammar"].as_str().unwrap());
        let printed = grammar.to_string();
        assert_eq!(grammar.difference(&read(&printed)), None, "{}\n{printed}", line["index"]);
    }
    assert!(lines.lines().count() > 80);
}
