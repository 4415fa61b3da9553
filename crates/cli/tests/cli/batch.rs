use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::run::{Folder, LISTS, anygram, anygram_with, command};

/// Token 8 is EOS, 9 is PAD; 10 and 11 are the halves of a character.
const VOCAB: &str =
    r#"["a", "b", "(", ")", "(a", ",b)", ", ", "X", null, null, {"hex": "c3"}, {"hex": "a9"}]"#;

struct Batch {
    folder: Folder,
    grammar: String,
    vocab: String,
}

impl Batch {
    fn new(grammar: &str) -> Self {
        let folder = Folder::new();
        let (grammar, vocab) = (folder.file("g.lark", grammar), folder.file("v.json", VOCAB));
        Self { folder, grammar, vocab }
    }

    fn arguments(&self) -> [&str; 9] {
        ["batch", "--grammar", &self.grammar, "--vocab", &self.vocab, "--eos", "8", "--pad", "9"]
    }

    /// The answers, of which `us` was looked at and taken away.
    fn answers(&self, input: impl AsRef<[u8]>) -> Vec<Value> {
        let output = anygram_with(&self.arguments(), input.as_ref());
        assert_eq!((output.status, &*output.stderr), (Some(0), ""));
        let mut answers = output.json_lines();
        for answer in &mut answers {
            let us = answer.as_object_mut().unwrap().remove("us");
            assert!(us.and_then(|us| us.as_f64()).is_some_and(|us| us >= 0.0), "{answer}");
        }
        answers
    }

    fn answer(&self, question: &Value) -> Value {
        let answers = self.answers(question.to_string());
        assert_eq!(answers.len(), 1);
        answers.into_iter().next().unwrap()
    }

    /// The error that a question gets.
    fn error(&self, question: Value) -> String {
        let answer = self.answer(&question);
        assert_eq!(answer["id"], question["id"], "{answer}");
        assert_eq!(answer.as_object().unwrap().len(), 2, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    }
}

#[test]
fn texts() {
    let batch = Batch::new(LISTS);
    let lines = [
        ("(a,b)", true, true),
        ("(a", false, true),
        ("", false, true),
        ("X", false, false),
        ("a)", false, false),
    ];
    for (text, sentence, viable) in lines {
        let answer = batch.answer(&json!({"id": 1, "op": "text", "text": text}));
        assert_eq!(answer, json!({"id": 1, "sentence": sentence, "viable": viable}), "{text}");
    }
}

#[test]
fn masks() {
    let batch = Batch::new(LISTS);
    let mask = |tokens: &[u32]| batch.answer(&json!({"id": 2, "op": "mask", "tokens": tokens}));
    assert_eq!(mask(&[]), json!({"id": 2, "allowed": [0, 1, 2, 4], "eos": false}));
    assert_eq!(mask(&[4]), json!({"id": 2, "allowed": [0, 1, 3, 5, 6], "eos": false}));
    // A sentence that ends with EOS; afterwards EOS and PAD.
    assert_eq!(mask(&[4, 5]), json!({"id": 2, "allowed": [], "eos": true}));
    assert_eq!(mask(&[0]), json!({"id": 2, "allowed": [0, 1], "eos": true}));
    assert_eq!(mask(&[0, 8]), json!({"id": 2, "allowed": [9], "eos": true}));
    assert_eq!(mask(&[0, 8, 9, 8]), json!({"id": 2, "allowed": [9], "eos": true}));
    let null = batch.answer(&json!({"id": 2, "op": "mask", "tokens": [4], "budget": null}));
    assert_eq!(null, mask(&[4]));
}

#[test]
fn masks_within_a_budget() {
    let batch = Batch::new("%lexer scannerless\nstart: \"(\" start \")\" | \"a\"");
    let mask = |tokens: &[u32], budget: u64| {
        batch.answer(&json!({"id": 2, "op": "mask", "tokens": tokens, "budget": budget}))["allowed"].clone()
    };
    let plain = batch.answer(&json!({"id": 2, "op": "mask", "tokens": []}));
    assert_eq!(mask(&[], u64::MAX), plain["allowed"]);
    assert_eq!(mask(&[], 0), json!([]));
    assert_eq!(mask(&[], 1), json!([0]));
    // "(a" needs one more, "(" two.
    assert_eq!(mask(&[], 2), json!([0, 4]));
    assert_eq!(mask(&[], 3), json!([0, 2, 4]));
    let wants = |tokens: &[u32]| {
        batch.answer(&json!({"id": 2, "op": "mask", "tokens": tokens, "want": ["minimum", "forced"]}))
    };
    let none = json!({"text": "", "bytes": "", "tokens": []});
    assert_eq!(wants(&[]), json!({"id": 2, "eos": false, "minimum": 1, "forced": none}));
    let close = json!({"text": "))", "bytes": "2929", "tokens": [3, 3]});
    assert_eq!(wants(&[2, 4]), json!({"id": 2, "eos": false, "minimum": 2, "forced": close}));
}

#[test]
fn masks_within_a_character() {
    let batch = Batch::new("start: /é+/");
    let mask = |tokens: &[u32]| batch.answer(&json!({"id": 2, "op": "mask", "tokens": tokens}));
    assert_eq!(mask(&[10]), json!({"id": 2, "allowed": [11], "eos": false}));
    assert_eq!(mask(&[10, 11]), json!({"id": 2, "allowed": [10], "eos": true}));
}

#[test]
fn ids_are_returned_as_they_were_written() {
    let batch = Batch::new(LISTS);
    let ids = [
        "1",
        "-0",
        "1.50",
        "1e999",
        "12345678901234567890123",
        "null",
        "true",
        r#""a\u0041é\ud800""#,
        "[1, {\"x\":[]}]",
        "{\"b\":1,\"a\":2,\"b\":3}",
    ];
    let nested = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    for id in ids.into_iter().chain([&*nested]) {
        for question in ["\"op\":\"text\",\"text\":\"a\"", "\"op\":\"nonsense\""] {
            let output =
                anygram_with(&batch.arguments(), format!("{{\"id\": {id} ,{question}}}\n").as_bytes());
            assert!(output.stdout.starts_with(&format!("{{\"id\":{id},")), "{id}: {output:?}");
        }
    }
    assert_eq!(batch.answer(&json!({"op": "text", "text": "a"}))["id"], Value::Null);
}

#[test]
fn bad_lines_do_not_stop_the_others() {
    let batch = Batch::new(LISTS);
    let input = b"{\"id\":1,\"op\":\"text\",\"text\":\"a\"}\nnot json\n\n[1]\n\"op\"\n\
                  {\"id\":2,\"op\":\"text\",\"te\n{\"id\":3,\"op\":\"text\",\
        \"text\":\"\xff\"}\n  \r\n{\"id\":4,\"op\":\"text\",\"text\":\"a\"} x\n\
        {\"id\":5,\"op\":\"text\",\"text\":\"a\"}";
    let answers = batch.answers(input);
    let ids: Vec<Value> = answers.iter().map(|answer| answer["id"].clone()).collect();
    let null = Value::Null;
    assert_eq!(
        ids,
        [json!(1), null.clone(), null.clone(), null.clone(), null.clone(), null.clone(), null, json!(5)]
    );
    for (answer, good) in answers.iter().zip([true, false, false, false, false, false, false, true]) {
        assert_eq!(answer.get("error").is_some(), !good, "{answer}");
        assert_eq!(answer.get("sentence").is_some(), good, "{answer}");
    }
}

#[test]
fn canvases() {
    let batch = Batch::new(LISTS);
    let all = json!(["completable", "admissible", "witness", "minimum"]);
    // ( ▢ b)
    let question = json!({"id": 1, "op": "canvas", "slots": [2, null, 5], "want": all});
    let right = json!({"id": 1, "completable": true, "proven": true, "admissible": [[0, 1]],
        "witness": [2, 0, 5], "minimum": 3});
    assert_eq!(batch.answer(&question), right);
    // A hole can be EOS, and then PAD or EOS follows.
    let question = json!({"id": 2, "op": "canvas", "slots": [0, null, null], "end": "sentence",
        "want": ["admissible", "minimum"]});
    assert_eq!(
        batch.answer(&question),
        json!({"id": 2, "admissible": [[0, 1, 8], [0, 1, 8, 9]], "minimum": 1})
    );
    let question =
        json!({"id": 3, "op": "canvas", "slots": [2, "*", 3, "*", 3], "want": ["completable", "witness"]});
    let answer = batch.answer(&question);
    assert_eq!(
        (&answer["completable"], answer["witness"].as_array().map(Vec::len)),
        (&json!(true), Some(5)),
        "{answer}"
    );
    assert!(answer["witness"][1].is_array(), "{answer}");
    let question =
        json!({"id": 4, "op": "canvas", "slots": [3, "*"], "want": ["completable", "witness", "minimum"]});
    let no = json!({"id": 4, "completable": false, "proven": true, "witness": null, "minimum": null});
    assert_eq!(batch.answer(&question), no);
    let question = json!({"id": 5, "op": "canvas", "slots": [null, null, 3],
        "proposals": [[0, 2], [1, 2], [1, 1]], "want": ["compatible"]});
    assert_eq!(batch.answer(&question), json!({"id": 5, "compatible": [true, false, true]}));
    let question = json!({"id": 6, "op": "canvas", "slots": [2, 2], "end": "prefix", "remaining": 1});
    assert_eq!(batch.answer(&question)["completable"], json!(false));
}

/// Whatever the limit, a row is null by itself, and what is told of it is certain.
#[test]
fn rows_that_are_not_wholly_decided_are_null() {
    let batch = Batch::new(LISTS);
    let question = json!({"op": "canvas", "slots": [2, null, null, null, 3], "want": ["admissible"]});
    let complete = batch.answer(&question);
    assert!(complete.get("admissible_at_least").is_none(), "{complete}");
    let complete = complete["admissible"].as_array().unwrap();
    let (mut n_null, mut n_mixed) = (0, 0);
    for steps in [1, 100, 300, 400, 1_000, 3_000, 10_000] {
        let limit = format!("canvas_steps={steps}");
        let arguments = [&batch.arguments()[..], &["--limit", &limit]].concat();
        let answer = anygram_with(&arguments, question.to_string().as_bytes()).json_lines().remove(0);
        let rows = answer["admissible"].as_array().unwrap();
        for (hole, row) in rows.iter().enumerate() {
            assert!(row.is_null() || *row == complete[hole], "{steps} steps: {answer}");
            let certain = answer["admissible_at_least"].get(hole).unwrap_or(row).as_array().unwrap();
            let right = complete[hole].as_array().unwrap();
            assert!(certain.iter().all(|token| right.contains(token)), "{steps} steps: {answer}");
        }
        let n = rows.iter().filter(|row| row.is_null()).count();
        assert_eq!(
            (answer.get("why").is_some(), answer.get("admissible_at_least").is_some()),
            (n > 0, n > 0)
        );
        n_null += n;
        n_mixed += usize::from(n > 0 && n < rows.len());
    }
    assert!(n_null > 0 && n_mixed > 0, "{n_null} rows are null, {n_mixed} answers have both kinds");
}

#[test]
fn canvases_with_weights() {
    let batch = Batch::new(LISTS);
    // ( ▢ b) with a listed token that does not fit.
    let question = json!({"id": 1, "op": "canvas", "slots": [2, null, 5],
        "log_probs": [[[3, -0.5], [1, -1.5], [0, -2.0]]], "want": ["best", "sample"], "seed": 3, "count": 4});
    let answer = batch.answer(&question);
    assert_eq!(answer["best"], json!({"tokens": [2, 1, 5], "log_prob": -1.5, "widened": false}));
    let samples = answer["samples"].as_array().unwrap();
    assert!(
        samples.len() == 4 && samples.iter().all(|row| *row == json!([2, 1, 5]) || *row == json!([2, 0, 5]))
    );
    assert_eq!(batch.answer(&question), answer, "the same seed, the same samples");
    let question =
        json!({"id": 2, "op": "canvas", "slots": [2, null, 5], "log_probs": [[[3, -0.5]]], "want": ["best"]});
    assert_eq!(
        batch.answer(&question)["best"],
        json!({"tokens": [2, 0, 5], "log_prob": -10.5, "widened": true})
    );
    let none = json!({"id": 2, "op": "canvas", "slots": [2, null, 5], "log_probs": [[[3, -0.5]]],
        "floor": "none", "want": ["best", "sample"]});
    assert_eq!(batch.answer(&none), json!({"id": 2, "best": null, "samples": null}));
    // The text may end at once: then the tail counts, or it does not.
    let mut question = json!({"id": 3, "op": "canvas", "slots": [0, null, null], "want": ["best"],
        "log_probs": [[[0, -1.0], [8, -0.5]], [[0, -1.0], [8, -9.0], [9, -9.5]]]});
    assert_eq!(batch.answer(&question)["best"]["tokens"], json!([0, 0, 0]));
    question["tail"] = json!("free");
    assert_eq!(
        batch.answer(&question)["best"],
        json!({"tokens": [0, 8, 9], "log_prob": -0.5, "widened": false})
    );
}

#[test]
fn methods_answer_as_published() {
    let batch = Batch::new(LISTS);
    // ( ▢ (a)): no token is an item and the comma behind it.
    let ask = |slots: Value, method: &str| {
        let answer = batch.answer(&json!({"id": 1, "op": "canvas", "slots": slots, "method": method}));
        (answer["completable"].clone(), answer["proven"].clone())
    };
    let slots = json!([2, null, 2, 0, 3, 3]);
    assert_eq!(ask(slots.clone(), "exact"), (json!(false), json!(true)));
    assert_eq!(ask(slots.clone(), "intersection"), (json!(true), json!(false)));
    assert_eq!(ask(slots.clone(), "lookahead"), (json!(false), json!(false)));
    assert_eq!(ask(slots.clone(), "forced-sequential"), (json!(true), json!(false)));
    assert_eq!(ask(slots, "none"), (json!(true), json!(false)));
    assert_eq!(ask(json!([2, null, 5]), "lookahead"), (json!(true), json!(true)));
    assert_eq!(ask(json!([3, null]), "intersection"), (json!(false), json!(true)));
    assert_eq!(ask(json!([3, null]), "forced-sequential"), (json!(false), json!(true)));
}

#[test]
fn methods_have_options_and_say_what_is_compatible() {
    let batch = Batch::new(LISTS);
    let ask = |more: Value| {
        let mut question = json!({"id": 1, "op": "canvas", "slots": [2, null, 2, 0, 3, 3]});
        let fields = more.as_object().unwrap().clone();
        question.as_object_mut().unwrap().extend(fields);
        batch.answer(&question)
    };
    // With one token that is drawn for sure; it is no item and comma.
    let rows = json!([[[0, 0.0]]]);
    let lookahead =
        json!({"method": "lookahead", "fillings": 3, "seed": 7, "log_probs": rows, "floor": "none"});
    assert_eq!(ask(lookahead)["completable"], json!(false));
    // As published: ( and one slot more is a viable prefix.
    let short = json!({"slots": [2, 2], "method": "lookahead", "counts_room": false});
    assert_eq!((&ask(short.clone())["completable"], &ask(short)["proven"]), (&json!(true), &json!(false)));
    let wanted = |method: &str| {
        let proposals = json!([[1, 0], [1, 3]]);
        ask(json!({"method": method, "want": ["compatible"], "proposals": proposals}))["compatible"].clone()
    };
    assert_eq!(wanted("exact"), json!([false, false]));
    assert_eq!(wanted("none"), json!([true, false]));
    assert_eq!(wanted("lookahead"), json!([false, false]));
    let error = |more: Value| {
        let mut question = json!({"id": 1, "op": "canvas", "slots": [null], "method": "lookahead"});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        batch.error(question)
    };
    assert!(error(json!({"fillings": "ten"})).contains("fillings"));
    assert!(error(json!({"fillings": 1_000_000})).contains("65536"));
    assert!(error(json!({"counts_room": 1})).contains("counts_room"));
}

#[test]
fn questions_that_cannot_be_answered() {
    let batch = Batch::new(LISTS);
    let contains = |question: Value, words: &[&str]| {
        let error = batch.error(question);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    contains(json!({"id": 1}), &["\"op\"", "text", "mask"]);
    contains(json!({"id": 1, "op": 7}), &["\"op\""]);
    contains(json!({"id": 1, "op": "fill"}), &["fill", "text, mask"]);
    contains(json!({"id": 1, "op": "canvas"}), &["\"slots\"", "null", "*"]);
    contains(json!({"id": 1, "op": "canvas", "slots": [1, "a"]}), &["slots[1]", "null"]);
    contains(json!({"id": 1, "op": "canvas", "slots": [1, 99]}), &["slot 1", "99"]);
    contains(json!({"id": 1, "op": "canvas", "slots": [], "end": "never"}), &["sentence", "prefix", "never"]);
    contains(json!({"id": 1, "op": "canvas", "slots": [], "remaining": 2}), &["prefix"]);
    contains(json!({"id": 1, "op": "canvas", "slots": [], "want": ["best"]}), &["best", "log_probs"]);
    let weights =
        |rows: Value| json!({"id": 1, "op": "canvas", "slots": [null], "want": ["best"], "log_probs": rows});
    contains(weights(json!([])), &["0 rows", "1 holes"]);
    contains(weights(json!([[[99, 0]]])), &["99", "not in the vocabulary"]);
    contains(weights(json!([[[1, 0], [1, 0]]])), &["twice"]);
    contains(weights(json!([[0.5]])), &["log-probabilities", "tokens"]);
    contains(weights(json!("a")), &["log_probs"]);
    contains(
        json!({"id": 1, "op": "canvas", "slots": ["*"], "want": ["sample"], "log_probs": []}),
        &["slot 0", "gap"],
    );
    contains(
        json!({"id": 1, "op": "canvas", "slots": [], "log_probs": [], "floor": "low"}),
        &["floor", "none"],
    );
    contains(json!({"id": 1, "op": "canvas", "slots": [], "want": ["all"]}), &["all", "completable"]);
    contains(
        json!({"id": 1, "op": "canvas", "slots": [], "method": "guess"}),
        &["guess", "exact", "lookahead"],
    );
    contains(
        json!({"id": 1, "op": "canvas", "slots": [], "method": "none", "want": ["minimum"]}),
        &["none", "minimum", "exact"],
    );
    contains(json!({"id": 1, "op": "canvas", "slots": [null], "want": ["compatible"]}), &["proposals"]);
    let proposals = json!([[1, 0]]);
    contains(
        json!({"id": 1, "op": "canvas", "slots": [null, 1], "want": ["compatible"], "proposals": proposals}),
        &["slot 1"],
    );
    contains(json!({"id": 1, "op": "text"}), &["\"text\""]);
    contains(json!({"id": 1, "op": "text", "text": ["a"]}), &["\"text\""]);
    contains(json!({"id": 1, "op": "mask"}), &["\"tokens\""]);
    contains(json!({"id": 1, "op": "mask", "tokens": "a"}), &["\"tokens\"", "array"]);
    contains(json!({"id": 1, "op": "mask", "tokens": [0], "budget": -3}), &["budget", "-3"]);
    contains(json!({"id": 1, "op": "mask", "tokens": [0], "budget": "3"}), &["budget", "number"]);
    contains(json!({"id": 1, "op": "mask", "tokens": [0], "want": "forced"}), &["want", "array"]);
    contains(json!({"id": 1, "op": "mask", "tokens": [0], "want": ["x"]}), &["`x`", "forced"]);
    // Tokens that no sentence begins with, and what are no tokens.
    contains(
        json!({"id": 1, "op": "mask", "tokens": [0, 3]}),
        &["tokens[1]", "not viable", "\")\"", "offset 1"],
    );
    contains(json!({"id": 1, "op": "mask", "tokens": [0, 7]}), &["tokens[1]", "not viable"]);
    contains(json!({"id": 1, "op": "mask", "tokens": [8]}), &["tokens[0]", "not viable"]);
    contains(json!({"id": 1, "op": "mask", "tokens": [0, 8, 0]}), &["tokens[2]", "not viable", "end"]);
    contains(json!({"id": 1, "op": "mask", "tokens": [0, 12]}), &["tokens[1]", "12"]);
    for wrong in [json!(-1), json!(4_294_967_296_u64), json!(1.5), json!("0"), json!(null), json!([0])] {
        contains(json!({"id": 1, "op": "mask", "tokens": [0, wrong]}), &["tokens[1]", "no token id"]);
    }
    let huge = batch.answers(
        "{\"id\":1,\"op\":\"mask\",\"tokens\":[1e999]}\n{\"id\":2,\"op\":\"text\",\"text\":\"\\ud800\"}\n",
    );
    assert!(huge.iter().all(|answer| answer["error"].is_string()), "{huge:?}");
}

#[test]
fn a_refusal_leaves_nothing_behind() {
    let batch = Batch::new(LISTS);
    let mask = |id: u32, tokens: &[u32]| json!({"id": id, "op": "mask", "tokens": tokens}).to_string();
    let answers = batch.answers([mask(1, &[4]), mask(2, &[4, 3, 3]), mask(3, &[4])].join("\n"));
    assert!(answers[1]["error"].is_string());
    assert_eq!(answers[0]["allowed"], answers[2]["allowed"]);
}

#[test]
fn very_long_lines() {
    let batch = Batch::new("start: /a*/");
    let text = "a".repeat(3_000_000);
    let line = format!("{{\"id\":1,\"op\":\"text\",\"text\":\"{text}\",\"more\":\"{text}\"}}\n{text}\n");
    let answers = batch.answers(line);
    assert_eq!(answers[0], json!({"id": 1, "sentence": true, "viable": true}));
    assert_eq!((answers.len(), answers[1]["error"].is_string()), (2, true));
}

#[test]
fn each_answer_comes_before_the_next_question() {
    let batch = Batch::new(LISTS);
    let mut child = command(&batch.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut questions = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for id in 0..3 {
        writeln!(questions, "{}", json!({"id": id, "op": "text", "text": "a"})).unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], id);
    }
    drop(questions);
    assert!(answers.next().is_none() && child.wait().unwrap().success());
}

#[test]
fn a_reader_that_leaves_ends_it_in_silence() {
    let batch = Batch::new(LISTS);
    let streams = [
        batch.arguments().to_vec(),
        vec!["check", "-g", &batch.grammar],
        vec!["debug", "chart", "-g", &batch.grammar, "a"],
    ];
    for arguments in streams.into_iter().chain([vec!["demo"]]) {
        let mut command = command(&arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut questions = child.stdin.take().unwrap();
        for id in 0..100 {
            let question = json!({"id": id, "op": "text", "text": "a"});
            if writeln!(questions, "{question}").is_err() {
                break;
            }
        }
        drop(questions);
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), &*String::from_utf8_lossy(&output.stderr)),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn bad_files_are_told_before_any_answer() {
    let batch = Batch::new(LISTS);
    let run = |grammar: &str, vocab: &str| anygram(&["batch", "-g", grammar, "-v", vocab]);
    run(&batch.folder.missing("x.lark"), &batch.vocab).is_bad_input(&["x.lark"]);
    run(&batch.folder.file("y.lark", "start: \"a"), &batch.vocab).is_bad_input(&["y.lark:1:"]);
    run(&batch.grammar, &batch.folder.missing("x.json")).is_bad_input(&["x.json"]);
    run(&batch.grammar, &batch.folder.file("y.json", "[\"a\"")).is_bad_input(&["y.json"]);
    assert_eq!(run(&batch.grammar, &batch.vocab).status, Some(0));
}
