//! Arbitrary bytes as lines for `anygram batch`.
//!
//! Every line gets exactly one line of JSON, an answer or an error; and no line changes what the next one is told.

#![no_main]

use std::sync::OnceLock;

use anygram::{Compiler, Constraint, GrammarFormat, Vocabulary};
use anygram_cli::Questions;
use libfuzzer_sys::fuzz_target;

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
        let compiler = Compiler::default().limits(anygram_fuzz::limits());
        let language = compiler.compile(GrammarFormat::Lark, GRAMMAR).expect("our grammar compiles");
        Constraint::new(language, Vocabulary::builtin()).expect("it names no tokens")
    })
}

fuzz_target!(|data: &[u8]| {
    let mut questions = Questions::new(constraint()).unwrap();
    for line in data.split(|&byte| byte == b'\n') {
        let mut reply = Vec::new();
        questions.respond(line, &mut reply).unwrap();
        assert_eq!(reply.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert!(reply.starts_with(b"{\"id\":") && reply.ends_with(b"}\n"));
    }
    let mut reply = Vec::new();
    questions.respond(CONTROL, &mut reply).unwrap();
    assert!(reply.starts_with(br#"{"id":"x","sentence":false,"viable":true,"us":"#));
});
