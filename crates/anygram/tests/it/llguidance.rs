//! llguidance's dialect of Lark: the cases of `testdata/llguidance.json`. `anygram-bench` gives the same
//! cases to llguidance itself (feature `peers`).

use anygram::{Compiler, ErrorKind, GrammarFormat, LarkDialect, NamedGrammar};
use serde_json::Value;

fn compiler() -> Compiler {
    Compiler::default().dialect(LarkDialect::Llguidance)
}

fn texts<'a>(case: &'a Value, key: &str) -> Vec<&'a str> {
    case[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn cases() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/llguidance.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(cases.len() > 20);
    let mut wrong = Vec::new();
    for case in &cases {
        let (name, grammar) = (case["name"].as_str().unwrap(), case["grammar"].as_str().unwrap());
        let language = match compiler().compile(GrammarFormat::Lark, grammar) {
            Ok(language) => language,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let mut expect = |text: &str, expected: bool| {
            let found = language.read(text.as_bytes()).unwrap().is_sentence;
            if found != expected {
                wrong.push(format!("{name}: {text:?} is a sentence: {found}"));
            }
        };
        texts(case, "accept").into_iter().for_each(|text| expect(text, true));
        texts(case, "reject").into_iter().for_each(|text| expect(text, false));
        for differ in case["differ"].as_array().into_iter().flatten() {
            expect(differ["text"].as_str().unwrap(), differ["here"].as_bool().unwrap());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn in_lark_the_same_notation_has_the_meaning_of_lark() {
    let language = Compiler::default()
        .compile(GrammarFormat::Lark, "start: a \"b\"\na[lazy]: /x+/\n%ignore / +/")
        .unwrap();
    for (text, expected) in [("xb", true), (" x b", true), ("xxb", false)] {
        assert_eq!(language.read(text.as_bytes()).unwrap().is_sentence, expected, "{text}");
    }
    // A backslash before a letter that is no escape stands for itself.
    let language = Compiler::default().compile(GrammarFormat::Lark, r#"start: "\d""#).unwrap();
    assert!(language.read(br"\d").unwrap().is_sentence);
    let error = compiler().compile(GrammarFormat::Lark, r#"start: "\d""#).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Syntax);
}

#[test]
fn lists_of_grammars() {
    let list = r#"{"grammars": [
        {"lark_grammar": "start: \"a\" @sub \"b\" @n"},
        {"name": "sub", "lark_grammar": "start: \"(\" @n \")\""},
        {"name": "n", "json_schema": {"type": "integer"}}
    ]}"#;
    let language = compiler().compile(GrammarFormat::Lark, list).unwrap();
    assert!(language.read(b"a(12)b3").unwrap().is_sentence);
    assert!(!language.read(b"a(x)b3").unwrap().is_sentence);
    let language =
        compiler().compile(GrammarFormat::Lark, r#"{"grammars": [{"json_schema": {"const": 1}}]}"#);
    assert!(language.unwrap().read(b"1").unwrap().is_sentence);
    for (wrong, kind) in [
        (r#"{"grammars": []}"#, ErrorKind::Syntax),
        (r#"{"grammars": [{"name": "x"}]}"#, ErrorKind::Syntax),
        (r#"{"grammars": [{"lark_grammar": "start: @x"}]}"#, ErrorKind::Syntax),
        (r#"{"grammars": [{"name": "x", "lark_grammar": "start: @x"}]}"#, ErrorKind::Limit),
        (r#"{"grammars": [{"lark_grammar": "start: \"a\""}], "max_tokens": 3}"#, ErrorKind::Unsupported),
    ] {
        assert_eq!(compiler().compile(GrammarFormat::Lark, wrong).unwrap_err().kind(), kind, "{wrong}");
    }
    // In Rust grammars get their names without a list.
    let named = compiler().named("n", NamedGrammar::Lark("start: \"x\"+".to_owned()));
    let language = named.compile(GrammarFormat::Lark, "start: \"<\" @n \">\"").unwrap();
    assert!(language.read(b"<xx>").unwrap().is_sentence);
}

#[test]
fn what_is_missing_is_named() {
    for (grammar, kind, message) in [
        (
            "start: a\na[max_tokens=5]: \"x\" b\nb: \"y\" b | \"\"",
            ErrorKind::Unsupported,
            "defined by itself",
        ),
        ("start[max_tokens=5]: \"x\" start | \"\"", ErrorKind::Unsupported, "defined by itself"),
        ("start: a\na[max_tokens=5]: b\nb[lazy]: /.*y/", ErrorKind::Unsupported, "attributes"),
        (
            "start: a\na[max_tokens=5]: b\nb: \"x\" \"y\"\n%ignore \" \"",
            ErrorKind::Unsupported,
            "ignored text",
        ),
        ("start: a\na[max_tokens=5]: b::0\nb::_: \"x\"", ErrorKind::Unsupported, "parameters"),
        ("start: a\na[max_tokens=5]: b\nb: <[7]>", ErrorKind::Unsupported, "token of the vocabulary"),
        ("start: a\na[max_tokens=5]: %lark {\nstart: \"x\"\n}", ErrorKind::Unsupported, "a terminal"),
        ("%lexer longest\nstart[max_tokens=5]: /a*/", ErrorKind::Unsupported, "max_tokens"),
        ("start: a\na[stop=/x/]: /a*/", ErrorKind::Unsupported, "`stop`"),
        ("%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"", ErrorKind::Unsupported, "utf8"),
        ("start: %regex {\"type\": \"number\"}", ErrorKind::Unsupported, "`type`"),
        // Only behind `x` the lazy terminal competes with `T`.
        ("start: T | \"x\" (T | h)\nT: /(.|\\n)*/\nh[lazy]: /.*;/", ErrorKind::Unsupported, "competes"),
        ("start: l::0\nl::_: \"a\" l::incr(_) | \"\"", ErrorKind::Limit, "limit"),
        ("start: /a\\b/", ErrorKind::Unsupported, "anchors"),
    ] {
        let error = compiler().compile(GrammarFormat::Lark, grammar).unwrap_err();
        assert_eq!(error.kind(), kind, "{grammar}: {error}");
        assert!(error.to_string().contains(message), "{grammar}: {error}");
    }
}

#[test]
fn rules_with_few_tokens() {
    let source = "start: thought \"</t>\" answer\nthought[max_tokens=2]: /(.|\\n)*/\n\
                  answer: %json {\"type\": \"null\"}";
    let language = compiler().compile(GrammarFormat::Lark, source).unwrap();
    assert!(language.counts_tokens() && language.read(b"a b</t>null").unwrap().is_sentence);
    let constraint = anygram::Constraint::new(language, anygram::Vocabulary::builtin()).unwrap();
    let mut matcher = constraint.matcher().unwrap();
    let tokens = |text: &str| constraint.vocabulary().encode(text).unwrap();
    for _ in 0..2 {
        matcher.advance(tokens("a")[0]).unwrap();
    }
    assert!(
        matcher.mask().unwrap().iter().all(|token| {
            constraint.vocabulary().bytes(token).is_some_and(|bytes| bytes.starts_with(b"<"))
        })
    );
    matcher.advance_all(&tokens("</t>null")).unwrap();
    assert!(matcher.is_sentence());
}

#[test]
fn rules_of_rules_with_few_tokens() {
    let source = "start: thought close?\nthought[max_tokens=2]: open text+ close\nopen: \"<\"\n\
                  text: /[a-z]/ | \";\"\nclose: \">\"";
    let language = compiler().compile(GrammarFormat::Lark, source).unwrap();
    // What became a part of another rule is no mistake.
    assert_eq!(language.warnings(), []);
    for (text, expected) in [("<a;b>", true), ("<a>>", true), ("<>", false), ("a", false)] {
        assert_eq!(language.read(text.as_bytes()).unwrap().is_sentence, expected, "{text}");
    }
    let special = anygram::SpecialIds { eos: vec![5], ..anygram::SpecialIds::default() };
    let vocabulary = anygram::Vocabulary::from_tokens(["<", "a", "a>", ">", ">>", ""], special).unwrap();
    let mut matcher = anygram::Constraint::new(language, vocabulary).unwrap().matcher().unwrap();
    matcher.advance(anygram::TokenId(0)).unwrap();
    let mask = matcher.mask().unwrap();
    assert_eq!(mask.iter().map(|token| token.0).collect::<Vec<u32>>(), [2]);
    matcher.advance(anygram::TokenId(2)).unwrap();
    assert_eq!(matcher.mask().unwrap().iter().map(|token| token.0).collect::<Vec<u32>>(), [3, 5]);
}

#[test]
fn hints_are_kept() {
    let source =
        "start: a\na[capture=\"city\", suffix=\";\", stop_capture=\"end\", temperature=0.7]: /[a-z]+/";
    let grammar = compiler().read(GrammarFormat::Lark, source).unwrap();
    let [(of, hints)] = &grammar.hints[..] else { panic!("one rule has hints") };
    assert_eq!(grammar.nonterminals[of.index()].name, "a");
    assert_eq!((hints.capture.as_deref(), hints.stop_capture.as_deref()), (Some("city"), Some("end")));
    assert_eq!(hints.temperature.as_deref(), Some("0.7"));
}

#[test]
fn tokens_by_ranges_and_complements() {
    let vocabulary = anygram::Vocabulary::builtin();
    let one = |text: &str| vocabulary.encode(text).unwrap()[0];
    let (a, b, q) = (one("a"), one("b"), one("q"));
    for mode in anygram::LexerMode::ALL {
        let compile = |set: &str| {
            let grammar = format!("start: \"a\" {set} \"b\"");
            let language = compiler().lexer(mode).compile(GrammarFormat::Lark, &grammar).unwrap();
            anygram::Constraint::new(language, vocabulary.clone()).unwrap()
        };
        let allowed = |set: &str| {
            let constraint = compile(set);
            let mut matcher = constraint.matcher().unwrap();
            matcher.advance(a).unwrap();
            let mask = matcher.mask().unwrap();
            if matcher.advance(q).is_ok() {
                matcher.advance(b).unwrap();
            }
            (0..vocabulary.len() as u32)
                .map(anygram::TokenId)
                .filter(|&token| mask.contains(token))
                .collect::<Vec<_>>()
        };
        let ids = |range: std::ops::RangeInclusive<u32>| range.map(anygram::TokenId).collect::<Vec<_>>();
        assert_eq!(allowed("<[3-5,7]>"), [ids(3..=5), ids(7..=7)].concat(), "{mode:?}");
        let special = [vocabulary.eos(), vocabulary.pad().as_slice(), vocabulary.mask().as_slice()].concat();
        let all = allowed("<[*]>");
        assert!(all.contains(&q) && !special.iter().any(|token| all.contains(token)), "{mode:?}");
        let but = allowed(&format!("<[^{}]>", q.0));
        let expected: Vec<_> = all.iter().copied().filter(|&token| token != q).collect();
        assert_eq!(but, expected, "{mode:?}");
    }
}
