//! Grammars in all formats.

use std::io::Write as _;

use crate::run::{Folder, anygram, anygram_with};

/// Whether a text on standard input is a sentence of a grammar.
fn check(grammar: &str, text: &str, more: &[&str]) -> Option<i32> {
    let output = anygram_with(&[&["check", "-g", grammar, "-"], more].concat(), text.as_bytes());
    assert!(matches!(output.status, Some(0 | 1)), "{output:?}");
    output.status
}

#[test]
fn the_extension_tells_the_format() {
    let folder = Folder::new();
    for (name, grammar, yes, no) in [
        ("g.gbnf", "root ::= [a-z]+ (\"=\" | \":\") .", "ab=é", "=a"),
        ("g.ebnf", "[1] text ::= (#x41 | 'b')* - 'b'", "AbA", "b"),
        ("g.regex", "^a{2,3}$\n", "aaa", "a"),
        ("g.cfg", "S -> 'the' N\nN -> 'cat' | 'dog'\n", "the  dog\n", "thedog"),
        ("g.tag.json", r#"{"format":{"type":"any_text","excludes":["<a>"]}}"#, "<b> <a", "so <a> b"),
    ] {
        let grammar = folder.file(name, grammar);
        assert_eq!((check(&grammar, yes, &[]), check(&grammar, no, &[])), (Some(0), Some(1)), "{name}");
    }
    let grammar = folder.file("g.txt", "S -> 'a'");
    assert_eq!(check(&grammar, "a", &["--format", "nltk"]), Some(0));
    anygram(&["check", "-g", &grammar]).is_bad_input(&["--format", "gbnf", "ebnf", "regex", "nltk"]);
}

#[test]
fn grammars_may_be_packed() {
    let folder = Folder::new();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(b"root ::= \"a\"").unwrap();
    let packed = packer.finish().unwrap();
    assert_eq!(check(&folder.file("g.gbnf.gz", &packed), "a", &[]), Some(0));
    let damaged = folder.file("h.gbnf.gz", &packed[..packed.len() - 9]);
    anygram(&["check", "-g", &damaged]).is_bad_input(&["h.gbnf.gz"]);
}

#[test]
fn nltk_grammars_may_be_latin_1() {
    let folder = Folder::new();
    let grammar = folder.file("g.cfg", b"# Ljungl\xf6f\nS -> '\xe9t\xe9'\n");
    let output = anygram_with(&["check", "-g", &grammar, "-"], "été".as_bytes());
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(output.stderr.contains("Latin-1"), "{output:?}");
    anygram(&["check", "-g", &folder.file("g.gbnf", b"root ::= \"\xe9\"")]).is_bad_input(&["UTF-8"]);
}

#[test]
fn errors_show_the_place() {
    let folder = Folder::new();
    for (name, grammar, place) in [
        ("g.gbnf", "root ::= \"a\"\nb ::= !<[3]>", "g.gbnf:2:7"),
        ("g.ebnf", "root ::= a\na ::= \"b\" (= \"c\")", "g.ebnf:2:11"),
        ("g.regex", "a(?=b)", "g.regex:1:2"),
        ("g.cfg", "S -> NP[NUM=sg]\n", "g.cfg:1:6"),
    ] {
        anygram(&["check", "-g", &folder.file(name, grammar)]).is_bad_input(&[
            place,
            "not supported",
            "Help",
        ]);
    }
}
