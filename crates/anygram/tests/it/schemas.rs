//! JSON schemas within Lark grammars.

use std::collections::BTreeSet;

use anygram::json_schema::{Options, Whitespace};
use anygram::{
    CompileError, Compiler, Constraint, ErrorKind, GrammarFormat, LexerMode, LoadOptions, Vocabulary,
    schema_place,
};
use anygram_testkit::random::Random;

fn compiler() -> Compiler {
    let mut options = Options { whitespace: Whitespace::Compact, ..Options::default() };
    options.set("escapes", "\"needed\"").unwrap();
    Compiler::default().schema(options)
}

fn constraint(grammar: &str, tokens: &[&str]) -> Result<Constraint, CompileError> {
    let tokens = serde_json::to_vec(&tokens).unwrap();
    let vocabulary =
        Vocabulary::from_bytes(anygram::Format::JsonArray, &tokens, &LoadOptions::default()).unwrap();
    Constraint::new(compiler().compile(GrammarFormat::Lark, grammar)?, vocabulary)
}

/// Two schemas, one of them twice, between parts of the grammar.
const MIXED: &str = r#"
start: call (";" call)?
call: "<" arguments ">" | "stop:" %json {"enum": ["now", null]}
arguments: %json {
    "type": "object",   "properties": {"a}\"": {"type": "boolean"}},
    "additionalProperties": false
}
"#;

/// All sentences of [`MIXED`].
fn sentences() -> BTreeSet<String> {
    let calls = ["<{}>", "<{\"a}\\\"\":true}>", "<{\"a}\\\"\":false}>", "stop:\"now\"", "stop:null"];
    let pairs = calls.iter().flat_map(|first| calls.iter().map(move |second| format!("{first};{second}")));
    calls.iter().map(|call| (*call).to_owned()).chain(pairs).collect()
}

#[test]
fn sentences_and_prefixes_are_those_of_both() {
    let language = compiler().compile(GrammarFormat::Lark, MIXED).unwrap();
    assert_eq!(language.mode(), LexerMode::Scannerless);
    let sentences = sentences();
    let mut n_prefixes = 0;
    for sentence in &sentences {
        for end in 0..=sentence.len() {
            for byte in b"<{}\"a\\:tfens>;x ".iter().map(|&byte| byte as char) {
                let text = format!("{}{byte}", &sentence[..end]);
                let reading = language.read(text.as_bytes()).unwrap();
                let is_viable = sentences.iter().any(|sentence| sentence.starts_with(&text));
                assert_eq!(
                    (reading.is_sentence, reading.is_viable),
                    (sentences.contains(&text), is_viable),
                    "{text}"
                );
                n_prefixes += usize::from(is_viable);
            }
        }
    }
    assert!(n_prefixes > 500, "{n_prefixes}");
}

#[test]
fn masks_are_exact_across_the_borders() {
    let tokens = [
        "<", "{", "}", "\"", "a", "}\\", "\\\"", ":", "true", "false}", ">;", "<{", "}>", ";stop",
        "stop:\"n", "ow\"", "ow\";<{}", "null", "now", " ", ";", "}>;<{\"a", "s", "top:", ">",
    ];
    let constraint = constraint(MIXED, &tokens).unwrap();
    let sentences = sentences();
    let mut open = vec![String::new()];
    let mut seen = BTreeSet::new();
    let mut n_allowed = 0;
    while let Some(text) = open.pop() {
        if !seen.insert(text.clone()) {
            continue;
        }
        let mut matcher = constraint.matcher().unwrap();
        matcher.advance_text(&text).unwrap();
        assert_eq!(matcher.is_sentence(), sentences.contains(&text), "{text}");
        let mask = matcher.mask().unwrap();
        for (token, bytes) in (0..).zip(tokens) {
            let longer = format!("{text}{bytes}");
            let is_right = sentences.iter().any(|sentence| sentence.starts_with(&longer));
            assert_eq!(mask.contains(anygram::TokenId(token)), is_right, "{text:?} and {bytes:?}");
            if is_right {
                n_allowed += 1;
                open.push(longer);
            }
        }
    }
    assert!(n_allowed > 150, "{n_allowed}");
}

#[test]
fn schemas_repeat_and_recur() {
    let read = |grammar: &str, text: &str| {
        compiler().compile(GrammarFormat::Lark, grammar).unwrap().read(text.as_bytes()).unwrap().is_sentence
    };
    let list = r#"
start: pair{%json {"type": "integer"}}+
pair{x}: "(" x "," x ")"
%ignore " "
"#;
    assert!(read(list, "(1,2)(3,-4)") && !read(list, "(1,2.5)"));
    // What is ignored may stand between all terminals, those of schemas included.
    let array = r#"
start: %json {"type": "array", "items": {"type": "null"}}
%ignore " "
"#;
    assert!(read(array, "[null , null]") && !read(array, "[nu ll]"));
    let nested = r##"
start: "do" tree
tree: %json {"type": "array", "items": {"$ref": "#"}} | "<" tree ">"
"##;
    assert!(read(nested, "do<<[[],[[]]]>>") && !read(nested, "do<[<[]>]>"));
}

#[test]
fn refusals_name_both_places() {
    let error = |grammar: &str| constraint(grammar, &["a"]).unwrap_err();
    let refused = error("start: \"a\"\n  | %json {\"properties\": {\"b\": {\"minLength\": -1}}}");
    let place = refused.grammar_error().unwrap();
    assert_eq!((refused.kind(), place.line(), place.column()), (ErrorKind::Syntax, 2, 5));
    assert!(place.message().contains("at /properties/b/minLength"), "{place}");
    let nothing = error("start: %json {\"not\": {}}");
    assert_eq!(nothing.kind(), ErrorKind::Unsatisfiable);
    let unsupported = error("start: %json {\"pattern\": \"(a)\\\\1\"}");
    assert_eq!(unsupported.kind(), ErrorKind::Unsupported, "{unsupported}");
    // Terminals that grow are read in one mode only.
    for mode in ["longest", "contextual"] {
        let error = error(&format!("%lexer {mode}\nstart: \"a\" %json {{}}"));
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("scannerless"), "{error}");
    }
}

/// Within a Lark grammar and a structural tag, a text stops where it stops alone, and the place is the same.
#[test]
fn places_within_other_grammars_are_those_of_the_schema() {
    let schema = r#"{"type": "object", "additionalProperties": {"type": "array", "uniqueItems": true,
        "items": {"properties": {"k/": {"type": "boolean"}}, "maxProperties": 2}}}"#;
    let lark = format!("start: /[a-z]+/ \"=\" args /[.]*/ | \"=\"\nargs: %json {schema}\n");
    let tag = format!(
        r#"{{"type": "structural_tag", "format": {{"type": "triggered_tags", "triggers": ["="], "tags":
            [{{"begin": "=", "end": ".", "content": {{"type": "json_schema", "any_order": true,
                "json_schema": {schema}}}}}]}}}}"#
    );
    let compile = |format, source: &str| Compiler::default().compile(format, source).unwrap();
    let alone = compile(GrammarFormat::JsonSchema, schema);
    let others = [
        (compile(GrammarFormat::Lark, &lark), ""),
        (compile(GrammarFormat::StructuralTag, &tag), "/format/tags/0/content/json_schema"),
    ];
    let pieces = ["{", "}", "[", "]", ",", ":", "\"k/\"", "\"\\u006b/\"", "\"a\"", "\"", "true", "7", " "];
    let mut random = Random::new(24);
    let (mut n_within, mut n_repeated, mut n_outside) = (0, 0, 0);
    for _ in 0..1_500 {
        // Pieces that can follow, and one more.
        let mut text = String::from("{");
        for _ in 0..random.below(40) {
            let longer = format!("{text}{}", random.choose(&pieces));
            let is_viable = alone.read(longer.as_bytes()).unwrap().is_viable;
            text = if is_viable { longer } else { text };
        }
        let keys = if random.chance(50) { 6..9 } else { 0..pieces.len() };
        text = format!("{text}{}", random.choose(&pieces[keys]));
        let reading = alone.read(text.as_bytes()).unwrap();
        let place = schema_place(&alone, text.as_bytes(), reading.length).unwrap().unwrap();
        assert!(place.is_whole() && place.begin == 0);
        for (language, schema) in &others {
            let longer = format!("ab={text}");
            assert_eq!(language.read(longer.as_bytes()).unwrap().length, reading.length + 3, "{longer}");
            let within = schema_place(language, longer.as_bytes(), reading.length + 3).unwrap();
            let is_complete = alone.read(&text.as_bytes()[..reading.length]).unwrap().is_sentence;
            let Some(within) = within else {
                assert!(is_complete, "{longer}");
                n_outside += 1;
                continue;
            };
            assert!(!is_complete, "{longer}");
            n_within += 1;
            n_repeated += usize::from(within.repeated_key.is_some());
            assert_eq!(within.repeats, place.repeats, "{longer}");
            assert_eq!(
                (within.pointer, within.repeated_key),
                (place.pointer.clone(), place.repeated_key.clone()),
                "{longer}"
            );
            assert_eq!((&*within.schema, within.begin), (*schema, 3), "{longer}");
            assert_eq!(
                within.span.map(|span| &lark[span]),
                schema.is_empty().then(|| lark.split("args: ").nth(1).unwrap().trim_end())
            );
        }
    }
    assert!(n_within > 1_800 && n_repeated > 7 && n_outside > 18, "{n_within}, {n_repeated}, {n_outside}");
    // Of several schemas it is the one that goes on, or the first.
    let several =
        "start: \"<\" (%json {\"required\": [\"x\"], \"type\": \"object\"} | %json {\"items\": {}})";
    let language = compile(GrammarFormat::Lark, several);
    for (text, schema) in [("<{\"x", "required"), ("<[[", "items"), ("<", "required")] {
        let place = schema_place(&language, text.as_bytes(), text.len()).unwrap();
        let span = place.and_then(|place| place.span);
        assert!(span.is_some_and(|span| several[span].contains(schema)), "{text}");
    }
}

/// Behind a colon the colon is not expected, to which blanks could be added.
#[test]
fn what_is_expected_is_more_than_blanks() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer","minimum":0}},
        "required":["a"],"additionalProperties":false}"#;
    let language = Compiler::default().compile(GrammarFormat::JsonSchema, schema).unwrap();
    for (text, expected) in [
        ("{", &["\"a\""][..]),
        ("{\"a\"", &["`:`"]),
        ("{\"a\": ", &["an integer of at least 0"]),
        ("{\"a\":-", &["an integer of at least 0"]),
        ("{\"a\":0 ", &["`}`"]),
    ] {
        assert_eq!(language.read(text.as_bytes()).unwrap().expected, expected, "{text}");
    }
    let lark = "start: A B? \"c\"\nA: /a */\nB: /  b/";
    let language = Compiler::default().lexer(LexerMode::Scannerless).compile(GrammarFormat::Lark, lark);
    let language = language.unwrap();
    for text in ["a", "a ", "a  "] {
        assert_eq!(language.read(text.as_bytes()).unwrap().expected, ["B", "\"c\""], "{text:?}");
    }
}
