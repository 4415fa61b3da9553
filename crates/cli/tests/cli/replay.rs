use serde_json::{Value, json};

use crate::run::{Folder, LISTS, anygram};

/// Tokens that cross terminals, a special one, and enough letters.
const VOCAB: &str = r#"["a", "b", "(", ")", "(a", ",b)", ", ", "X", null]"#;

fn replay(arguments: &[&str]) -> Value {
    let output = anygram(arguments);
    assert_eq!((output.status, &*output.stderr), (Some(0), ""), "{output:?}");
    let lines = output.json_lines();
    assert_eq!(lines.len(), 1);
    lines.into_iter().next().unwrap()
}

fn counts(report: &Value) -> [u64; 5] {
    ["texts", "steps", "false_rejects", "errors", "not_sentences"]
        .map(|field| report[field].as_u64().unwrap())
}

#[test]
fn lines_of_text_with_the_built_in_vocabulary() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let texts = folder.file("texts", "a\n\n(a, b)\n(a, B)\n((a)\n");
    let report = replay(&["replay", "--grammar", &grammar, "--vocab", "builtin", &texts]);
    // `a`; `(`, `a`, `, `, `b`, `)`; the same up to `B`; `((`, `a`, `)`.
    assert_eq!(counts(&report), [4, 1 + 5 + 3 + 3, 1, 0, 1]);
    assert_eq!(report["grammar"], Value::from(grammar));
    assert_eq!((&report["vocab_size"], &report["lexer"]), (&json!(1508), &json!("contextual")));
    assert!(report["engine"].is_string() && report["compile_ms"].is_number());
    for times in ["mask_us", "advance_us"] {
        for figure in ["mean", "p50", "p90", "p99", "max"] {
            assert!(report[times][figure].as_f64().unwrap() >= 0.0, "{times} {figure}");
        }
    }
    let failures = report["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 2);
    let place = |at: usize| ["line", "kind", "step"].map(|field| failures[at][field].clone());
    assert_eq!(place(0), [json!(4), json!("false_reject"), json!(3)]);
    assert_eq!(place(1), [json!(5), json!("not_sentence"), json!(3)]);
    assert!(failures[0]["message"].as_str().unwrap().contains("expected"));
    assert_eq!(failures[0]["file"], Value::from(texts));
}

#[test]
fn side_by_side_as_one_after_the_other() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let texts = folder.file("texts", "a\n(a, b)\n(a, B)\n((a)\n(a, (b, a), b)\n(\na, b\n(b, b, b, b)\n");
    let arguments = ["replay", "-g", &grammar, "-v", "builtin", "--show", "9", &texts];
    let alone = replay(&arguments);
    for batch in ["2", "3", "8", "100"] {
        let report = replay(&[&arguments[..], &["--batch", batch]].concat());
        assert_eq!(counts(&report), counts(&alone), "{batch} at a time");
        let failures = |report: &Value| {
            let mut failures = report["failures"].as_array().unwrap().clone();
            failures.sort_by_key(|failure| failure["line"].as_u64());
            failures
        };
        assert_eq!(failures(&report), failures(&alone), "{batch} at a time");
        assert_eq!(report["batch"].as_u64().unwrap().to_string(), batch);
    }
    anygram(&[&arguments[..], &["--batch", "0"]].concat()).is_bad_input(&["--batch"]);
}

#[test]
fn json_lines_with_ids() {
    let folder = Folder::new();
    let (grammar, vocab) = (folder.file("g.lark", LISTS), folder.file("v.json", VOCAB));
    let lines = [
        json!({"text": "(a,b)", "ids": [4, 5], "more": "is ignored"}),
        json!({"text": "(a,b)", "ids": [4, 5, 8]}),
        json!({"text": "(a", "ids": [2, 0]}),
        json!({"text": "aX", "ids": [0, 7]}),
        json!({"text": "(a, b)", "ids": null}),
    ];
    let texts = folder.file("texts.jsonl", lines.map(|line| line.to_string()).join("\n"));
    let arguments = ["replay", "-g", &grammar, "-v", &vocab, "--eos", "8", &texts];
    let report = replay(&arguments);
    assert_eq!(counts(&report), [5, 2 + 3 + 2 + 1 + 4, 1, 0, 1]);
    assert_eq!(report["vocab_size"], 9);

    let with = |options: &[&str]| counts(&replay(&[&arguments[..], options].concat()));
    assert_eq!(with(&["--warmup"]), counts(&report));
    assert_eq!(with(&["--first", "2"]), [2, 5, 0, 0, 0]);
    assert_eq!(with(&["--max-tokens", "2"]), [3, 2 + 2 + 1, 1, 0, 1]);
    assert_eq!(replay(&[&arguments[..], &["--show", "1"]].concat())["failures"].as_array().unwrap().len(), 1);
    assert_eq!(
        counts(&replay(&["replay", "-g", &grammar, "-v", &vocab, "--eos", "8", &texts, &texts])),
        [10, 24, 2, 0, 2]
    );
}

#[test]
fn texts_of_json_are_not_taken_for_json_lines() {
    let folder = Folder::new();
    let grammar =
        folder.file("g.lark", "start: \"{\" \"}\" | \"{\" KEY \":\" \"1\" \"}\"\nKEY: /\"[a-z]+\"/\n");
    let texts = folder.file("texts", "{}\n{\"a\":1}\n");
    assert_eq!(counts(&replay(&["replay", "-g", &grammar, "-v", "builtin", &texts]))[..3], [2, 6, 0]);
}

#[test]
fn no_texts_are_no_failure() {
    let folder = Folder::new();
    let (grammar, texts) = (folder.file("g.lark", LISTS), folder.file("texts", "\n"));
    assert_eq!(counts(&replay(&["replay", "-g", &grammar, "-v", "builtin", &texts])), [0; 5]);
}

#[test]
fn bad_input_is_told_with_its_place() {
    let folder = Folder::new();
    let (grammar, vocab) = (folder.file("g.lark", LISTS), folder.file("v.json", VOCAB));
    let bad = |name: &str, content: &str, words: &[&str]| {
        let texts = folder.file(name, content);
        anygram(&["replay", "-g", &grammar, "-v", &vocab, &texts]).is_bad_input(words);
    };
    bad("a.jsonl", "{\"text\":\"a\"}\n\n{\"txt\":\"a\"}", &["a.jsonl line 3", "\"text\""]);
    bad("b.jsonl", "{\"text\":\"a\"", &["b.jsonl line 1", "EOF"]);
    bad("c.jsonl", "{\"text\":\"a\",\"ids\":[1]}", &["line 1", "do not spell"]);
    bad("d.jsonl", "{\"text\":\"a\",\"ids\":[9]}", &["line 1", "9 tokens"]);
    bad("e.jsonl", "{\"text\":\"a\",\"ids\":[99999999999]}", &["line 1", "99999999999"]);
    bad("f.jsonl", "{\"text\":\"a\",\"ids\":[-1]}", &["line 1", "-1"]);
    bad("g.jsonl", "{\"text\":\"a\",\"ids\":\"0\"}", &["line 1", "array"]);
    bad("h.txt", "a\nd\n", &["h.txt line 2"]);
    anygram(&["replay", "-g", &grammar, "-v", &vocab]).is_bad_input(&["FILE"]);
    anygram(&["replay", "-g", &grammar, "-v", &vocab, &folder.missing("t")]).is_bad_input(&["No such file"]);
    let texts = folder.file("t", "a");
    anygram(&["replay", "-g", &grammar, "-v", &folder.missing("u.json"), &texts])
        .is_bad_input(&["u.json", "No such file"]);
    anygram(&["replay", "-g", &grammar, "-v", &folder.file("w.json", "[1]"), &texts])
        .is_bad_input(&["w.json", "token"]);
    anygram(&["replay", "-g", &grammar, "-v", "builtin", "--eos", "4294967295", &texts])
        .is_bad_input(&["4294967295"]);
    anygram(&["replay", "-g", &grammar, "-v", "builtin", "--eos", "-1", &texts]).is_bad_input(&["-1"]);
}

#[test]
fn a_token_that_the_vocabulary_lacks_is_told() {
    let folder = Folder::new();
    let (grammar, texts) = (folder.file("g.lark", "start: \"a\" <|end|>\n"), folder.file("t", "a"));
    anygram(&["replay", "-g", &grammar, "-v", "builtin", &texts]).is_bad_input(&["<|end|>", "vocabulary"]);
}

#[cfg(not(feature = "cuda"))]
#[test]
fn without_cuda_the_engine_says_what_to_do() {
    let folder = Folder::new();
    let (grammar, texts) = (folder.file("g.lark", LISTS), folder.file("texts", "a\n"));
    for arguments in [
        &["replay", "-g", &grammar, "-v", "builtin", "--engine", "cuda", &texts][..],
        &["batch", "-g", &grammar, "-v", "builtin", "--engine", "cuda"],
    ] {
        anygram(arguments).is_bad_input(&["no CUDA", "--features cuda", "another engine"]);
    }
    anygram(&["check", "-g", &grammar, "--engine", "cuda"]).is_bad_input(&["`replay` and `batch` only"]);
}
