//! Large and odd tags get an answer or an error that names a limit.

use anygram_structural_tag::{Kind, Options, Refusal, grammar};

use super::language;

fn refusal(tag: &str) -> Refusal {
    grammar(tag, &Options::default()).unwrap_err()
}

fn triggered(triggers: &[String]) -> String {
    let list = |texts: Vec<String>| texts.join(",");
    let quoted = list(triggers.iter().map(|trigger| format!("{trigger:?}")).collect());
    let tag = |trigger: &String| {
        format!(r#"{{"begin":{trigger:?},"content":{{"type":"const_string","value":"x"}},"end":"!"}}"#)
    };
    let tags = list(triggers.iter().map(tag).collect());
    format!(r#"{{"format":{{"type":"triggered_tags","triggers":[{quoted}],"tags":[{tags}]}}}}"#)
}

#[test]
fn formats_nest_as_deep_as_json_is_read() {
    let nested = |depth: usize| {
        let open = r#"{"type":"optional","content":"#.repeat(depth);
        format!(r#"{{"format":{open}{{"type":"any_text"}}{}}}"#, "}".repeat(depth))
    };
    assert!(language(&nested(400)).unwrap().read(b"abc").unwrap().is_sentence);
    let refusal = refusal(&nested(100_000));
    assert_eq!(refusal.kind, Kind::Syntax, "{refusal}");
    assert!(refusal.message.contains("nesting"), "{refusal}");
}

#[test]
fn ten_thousand_triggers() {
    let triggers: Vec<String> = (10_000..20_000).map(|at| format!("<call {at}>")).collect();
    let language = language(&triggered(&triggers)).unwrap();
    assert!(language.read(b"so <call 12345>x! and <call 19999>x!").unwrap().is_sentence);
    assert!(!language.read(b"so <call 12345>y").unwrap().is_viable);
}

#[test]
fn triggers_that_begin_one_another() {
    let triggers: Vec<String> = (1..400).map(|n| "a".repeat(n)).collect();
    // Free text ends with the first `a`, and the tag goes on as any of them.
    let language = language(&triggered(&triggers)).unwrap();
    for n in [1, 2, 399] {
        assert!(language.read(format!("b{}x!b", "a".repeat(n)).as_bytes()).unwrap().is_sentence, "{n}");
    }
    assert!(!language.read(format!("b{}x!", "a".repeat(400)).as_bytes()).unwrap().is_viable);
}

#[test]
fn triggers_that_end_with_one_another() {
    let triggers: Vec<String> = (0..400).map(|n| format!("{}b", "a".repeat(n))).collect();
    let language = language(&triggered(&triggers)).unwrap();
    assert!(language.read(format!("{}bx!", "a".repeat(500)).as_bytes()).unwrap().is_sentence);
}

#[test]
fn long_marks() {
    let mark = "a".repeat(100_000);
    let tag = format!(r#"{{"format":{{"type":"any_text","excludes":["{mark}"]}}}}"#);
    let language = language(&tag).unwrap();
    assert!(language.read("aab".repeat(1000).as_bytes()).unwrap().is_sentence);
}

#[test]
fn what_is_too_large_names_the_limit() {
    let mark = "ab".repeat(50_000);
    let tag = format!(r#"{{"format":{{"type":"const_string","value":"{mark}"}}}}"#);
    let options = Options { max_size: 1_000, ..Options::default() };
    let refusal = grammar(&tag, &options).unwrap_err();
    assert_eq!(refusal.kind, Kind::Limit);
    assert!(refusal.message.contains("grammar_size") && refusal.at == "/format", "{refusal}");
    let options = Options {
        schema: anygram_json_schema::Options { schema_states: 10, ..Default::default() },
        ..Options::default()
    };
    let tag = r#"{"format":{"type":"any_text","max_chars":1000}}"#;
    let language = anygram_left_to_right::Language::new(
        grammar(tag, &options).unwrap(),
        &anygram_left_to_right::LanguageOptions::default(),
    );
    let error = language
        .map_err(|error| error.to_string())
        .and_then(|language| language.read("a".repeat(100).as_bytes()).map_err(|error| error.to_string()));
    assert!(error.unwrap_err().contains("schema_states"));
}
