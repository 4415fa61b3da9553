//! Errors by their kinds, as programs see them.

use std::collections::BTreeSet;

use anygram::{
    Cancel, Canvas, CompileError, Compiler, Constraint, Decision, End, ErrorKind, GrammarFormat, LexerMode,
    Limits, LoadOptions, Slot, Solver, TokenId, Vocabulary,
};

fn compile(compiler: &Compiler, source: &str) -> Result<Constraint, CompileError> {
    Constraint::new(compiler.compile(GrammarFormat::Lark, source)?, Vocabulary::builtin())
}

#[test]
fn grammars_are_refused_by_a_kind() {
    let kinds = [
        ("start: \"a", ErrorKind::Syntax),
        ("start: a", ErrorKind::Syntax),
        ("start: \"a\"~3..2", ErrorKind::Syntax),
        ("%declare A\nstart: A", ErrorKind::Unsupported),
        ("start: \"a\" start", ErrorKind::Unsatisfiable),
        ("start: <|call|>", ErrorKind::UnknownToken),
        ("start: \"a\"~99999999999", ErrorKind::Limit),
    ];
    for (source, kind) in kinds {
        let error = compile(&Compiler::default(), source).unwrap_err();
        assert_eq!(error.kind(), kind, "{source}: {error}");
        let is_of_text = !matches!(kind, ErrorKind::Unsatisfiable | ErrorKind::UnknownToken);
        assert_eq!(error.grammar_error().map(|error| error.kind()), is_of_text.then_some(kind));
    }
    let cancel = Cancel::new();
    cancel.cancel();
    let cancelled = compile(&Compiler::default().cancel(cancel), "start: /a+/").unwrap_err();
    assert_eq!((cancelled.kind(), cancelled.limit()), (ErrorKind::Cancelled, None));
    // Longer matches of one terminal take all that the other needs.
    let never = compile(&Compiler::default().lexer(LexerMode::Longest), "start: \"a\" A\nA: /a+/");
    assert_eq!(never.unwrap_err().kind(), ErrorKind::Unsatisfiable);
}

#[test]
fn a_limit_is_named_so_that_it_can_be_raised() {
    let mut limits = Limits::default();
    for name in ["compile_steps", "nfa_states", "dfa_states", "union_entries", "parser_items"] {
        limits.set(name, 1).unwrap();
    }
    let read = |limits| {
        let constraint = compile(&Compiler::default().limits(limits), "start: /[ab]*a[ab]{5}/ start?")
            .map_err(|error| (error.kind(), error.limit(), error.to_string()))?;
        let reading = constraint.language().read(b"aabbbb");
        reading.map_err(|error| (error.kind(), error.limit(), error.to_string()))
    };
    let mut named = BTreeSet::new();
    let reading = loop {
        match read(limits) {
            Ok(reading) => break reading,
            Err((kind, limit, message)) => {
                let (name, value) = limit.unwrap();
                assert!(kind == ErrorKind::Limit && message.contains(name), "{message}");
                assert!(value < 1 << 40, "raising does not help: {message}");
                limits.set(name, 2 * value).unwrap();
                named.insert(name);
            }
        }
    };
    assert!(reading.is_sentence && named.len() == 5, "{reading:?}, {named:?}");
}

#[test]
fn outputs_canvases_and_vocabularies_have_the_same_kinds() {
    let constraint = compile(&Compiler::default(), "start: \"(\" start \")\" | \"x\"").unwrap();
    let mut matcher = constraint.matcher().unwrap();
    assert_eq!(matcher.advance_text(")").unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(matcher.advance(TokenId(u32::MAX)).unwrap_err().kind(), ErrorKind::UnknownToken);
    assert_eq!(matcher.rollback(1).unwrap_err().kind(), ErrorKind::InvalidArgument);

    let mut solver = Solver::new(&constraint).unwrap();
    let unknown = Canvas::new(vec![Slot::Fixed(TokenId(u32::MAX))], End::Sentence);
    assert_eq!(solver.completable(&unknown).unwrap_err().kind(), ErrorKind::UnknownToken);
    let mut gap = Canvas::new(vec![Slot::Gap], End::Sentence);
    assert_eq!(gap.set(0, TokenId(0)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // What is too hard is no error but an answer, with the same kinds.
    let mut limits = Limits::default();
    limits.set("canvas_steps", 1).unwrap();
    let tight = compile(&Compiler::default().limits(limits), "start: \"(\" start \")\" | \"x\"").unwrap();
    match Solver::new(&tight).unwrap().completable(&gap).unwrap() {
        Decision::Unknown(why) => assert_eq!(why.kind(), ErrorKind::Limit, "{why}"),
        answer => panic!("{answer:?}"),
    }

    let vocabulary = constraint.vocabulary();
    assert_eq!(vocabulary.decode(&[TokenId(u32::MAX)]).unwrap_err().kind(), ErrorKind::UnknownToken);
    let missing = Vocabulary::from_file("none/tokenizer.json", &LoadOptions::default());
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::Io);
}
