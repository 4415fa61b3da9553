//! Arbitrary bytes as lines for `anygram batch`.
//!
//! Every line gets exactly one line of JSON, an answer or an error; and no line changes what the next one is
//! told.

use std::sync::OnceLock;

use anygram::{Compiler, Constraint, GrammarFormat, Vocabulary};
use anygram_cli::Questions;

const GRAMMAR: &str = r#"
start: "[" (start ("," start)*)? "]" | NAME | NUMBER | "é"
NAME: /[a-z]+/
NUMBER: /-?[0-9]+(\.[0-9]+)?/
%ignore " "
"#;

const CONTROL: &[u8] = br#"{"id":"x","op":"text","text":"[a, 1.5"}"#;

fn constraint() -> &'static Constraint {
    static CONSTRAINT: OnceLock<Constraint> = OnceLock::new();
    CONSTRAINT.get_or_init(|| {
        let compiler = Compiler::default().limits(crate::limits());
        let language = compiler.compile(GrammarFormat::Lark, GRAMMAR).expect("our grammar compiles");
        Constraint::new(language, Vocabulary::builtin()).expect("it names no tokens")
    })
}

/// Answers the lines.
pub fn run(data: &[u8]) -> bool {
    let mut questions = Questions::about(constraint()).unwrap();
    for line in data.split(|&byte| byte == b'\n') {
        let mut reply = Vec::new();
        questions.respond(line, &mut reply).unwrap();
        assert_eq!(reply.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert!(reply.starts_with(b"{\"id\":") && reply.ends_with(b"}\n"));
    }
    let mut reply = Vec::new();
    questions.respond(CONTROL, &mut reply).unwrap();
    assert!(reply.starts_with(br#"{"id":"x","sentence":false,"viable":true,"us":"#));
    true
}

/// Lines.
pub fn seeds() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"id":1,"op":"text","text":"[a, 1.5]"}"#,
        r#"{"id":2,"op":"mask","tokens":[91,97]}"#,
        r#"{"id":3,"op":"mask","tokens":[91,4294967295,-1,1e3,"a",null]}"#,
        r#"{"id":4,"op":"mask","tokens":[],"budget":3}"#,
        r#"{"id":5,"op":"canvas","slots":[17,null,"*",5],"end":"sentence","want":["completable"]}"#,
        r#"{"id":{"a":[1]},"op":"text","text":"\ud83d\ude00"}"#,
        r#"{"id":7,"op":"text","text":"[a, 1.","want":["explain","tree"]}"#,
        r#"{"id":8,"op":"mask","text":"[é","want":["counts","allowed"],"show":{"most":3,"search":"a"}}"#,
        r#"{"id":9,"op":"grammar","want":["facts","warnings","hints","examples"],"count":2,"seed":1}"#,
        r#"{"id":10,"op":"tokens","text":"[a"}"#,
        r#"{"id":11,"op":"text","grammar":"{\"type\":1}","format":"json-schema","text":"1"}"#,
        r#"[1,2"#,
    ];
    let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    seeds.push(lines.join("\n").into_bytes());
    seeds
}
