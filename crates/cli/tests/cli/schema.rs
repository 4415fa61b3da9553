//! JSON schemas on the command line: as grammars of commands, and of questions of `anygram batch`.

use serde_json::{Value, json};

use crate::run::{Folder, LISTS, anygram, anygram_with};

/// The answers of `anygram batch` without a grammar of its own; times were looked at and taken away.
fn answers(arguments: &[&str], questions: &[Value]) -> Vec<Value> {
    let lines: String = questions.iter().map(|question| format!("{question}\n")).collect();
    let output = anygram_with(&[&["batch"], arguments].concat(), lines.as_bytes());
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    let mut answers = output.json_lines();
    assert_eq!(answers.len(), questions.len());
    for answer in &mut answers {
        let fields = answer.as_object_mut().unwrap();
        assert!(fields.remove("us").unwrap().as_f64().unwrap() >= 0.0);
        let compile = fields.remove("compile_us");
        assert!(compile.is_none_or(|us| us.as_f64().unwrap() > 0.0));
    }
    answers
}

fn answer(question: &Value) -> Value {
    answers(&[], std::slice::from_ref(question)).remove(0)
}

fn is_sentence(schema: &Value, options: &Value, text: &str) -> bool {
    let question = json!({"op": "text", "schema": schema, "options": options, "text": text});
    let answer = answer(&question);
    answer["sentence"].as_bool().unwrap_or_else(|| panic!("{question}: {answer}"))
}

#[test]
fn questions_bring_schemas() {
    let schema = json!({"type": "object", "properties": {"n": {"$ref": "http://example.com/n"}}});
    let documents = json!({"http://example.com/n": {"type": "integer"}});
    let question = json!({"id": 7, "op": "text", "schema": schema, "documents": documents,
        "text": "{\"n\": 1"});
    assert_eq!(answer(&question), json!({"id": 7, "sentence": false, "viable": true}));
    let folder = Folder::new();
    let vocab = ["--vocab", &folder.file("v.json", "[\"a\",\"b\",\"c\",\"\\\"\"]")];
    let mask = json!({"id": 1, "op": "mask", "schema": {"enum": ["a", "b"]}, "tokens": [3]});
    let told = answers(&vocab, &[mask.clone(), mask]);
    assert_eq!(told[0], json!({"id": 1, "allowed": [0, 1], "eos": false}));
    assert_eq!(told[0], told[1], "from what was kept too");
}

#[test]
fn questions_about_canvases_bring_schemas() {
    let folder = Folder::new();
    let vocab = folder.file("v.json", r#"["{\"","a","b","\":1","}",",\"","7","x",null]"#);
    let arguments = ["--vocab", &*vocab, "--eos", "8"];
    let ask = |schema: Value, slots: Value, want: &[&str]| {
        let question = json!({"op": "canvas", "schema": schema, "slots": slots, "want": want});
        answers(&arguments, &[question]).remove(0)
    };
    // The second key is another one, whatever the schema says of keys.
    let told =
        ask(json!({"type": "object"}), json!([0, 1, 3, 5, null, 3, 4]), &["completable", "admissible"]);
    assert_eq!((&told["completable"], &told["proven"]), (&json!(true), &json!(true)));
    assert_eq!(told["admissible"], json!([[2, 4, 6, 7]]), "{told}");
    let wants = ["completable", "minimum", "witness"];
    let told = ask(json!({"required": ["a", "b"], "type": "object"}), json!([0, "*", 4, null]), &wants);
    assert_eq!((&told["completable"], &told["minimum"]), (&json!(true), &json!(7)), "{told}");
    let told = ask(json!({"maxProperties": 1, "type": "object"}), json!([0, null, 3, 5, null, 3, 4]), &wants);
    assert_eq!((&told["completable"], &told["minimum"]), (&json!(false), &Value::Null), "{told}");
    // More is lacking than a search by the number of tokens comes to.
    let required: Vec<String> = (0..12).map(|n| format!("ab{}", "7".repeat(n))).collect();
    let told = ask(json!({"type": "object", "required": required}), json!([0, "*", 4]), &["completable"]);
    assert_eq!(told["completable"], true, "{told}");
    // Which row it was.
    let question = json!({"op": "canvas", "schema": {"type": "integer"}, "slots": [null, null],
        "log_probs": [[[6, -1.0], [8, -2.0]], [[6, -3.0], [8, -1.0]]], "want": ["best"]});
    let told = answers(&arguments, &[question]).remove(0);
    assert_eq!(told["best"]["tokens"], json!([6, 8]), "{told}");
}

#[test]
fn questions_bring_grammars() {
    let folder = Folder::new();
    let file = folder.file("g.lark", LISTS);
    let own = json!({"id": 1, "op": "text", "grammar": "a: \"x\"\nb: \"y\"", "format": "lark", "start": "b",
        "lexer": "longest", "text": "y"});
    let given = json!({"id": 2, "op": "text", "text": "(a)"});
    let told = answers(&["-g", &file], &[own.clone(), given.clone(), own]);
    assert!(told.iter().all(|answer| answer["sentence"] == true), "{told:?}");
    // Only those who compiled say so.
    let lines = format!("{given}\n{}\n", json!({"op": "text", "schema": true, "text": "1"}));
    let output = anygram_with(&["batch", "-g", &file], lines.as_bytes()).json_lines();
    assert!(output[0].get("compile_us").is_none() && output[1]["compile_us"].as_f64().unwrap() > 0.0);
    // A grammar of a question reads no files.
    folder.file("other.lark", "a: \"x\"");
    let import =
        json!({"op": "text", "grammar": "%import .other.a\nstart: a", "format": "lark", "text": "x"});
    assert_eq!(answers(&["-g", &file], &[import])[0]["error"]["kind"], "unsupported");
}

#[test]
fn refusals_are_objects() {
    let refused = |schema: Value| answer(&json!({"id": 1, "op": "text", "schema": schema, "text": "1"}));
    let error = |schema: Value| {
        let answer = refused(schema.clone());
        let fields = &answer["error"];
        assert_eq!(fields.as_object().unwrap().len(), 4, "{answer}");
        // The place that the pointer names, in the text of the schema.
        let (start, end): (usize, usize) = serde_json::from_value(fields["span"].clone()).unwrap();
        let place: Value = serde_json::from_str(&schema.to_string()[start..end]).unwrap();
        assert_eq!(schema.pointer(fields["at"].as_str().unwrap()), Some(&place), "{answer}");
        assert!(fields["message"].as_str().is_some_and(|message| !message.is_empty()));
        (fields["kind"].as_str().unwrap().to_owned(), fields["at"].clone())
    };
    let told = |kind: &str, at: &str| (kind.to_owned(), json!(at));
    assert_eq!(error(json!(false)), told("unsatisfiable", ""));
    assert_eq!(error(json!({"items": {"pattern": "(a)\\1"}})), told("unsupported", "/items/pattern"));
    assert_eq!(error(json!({"type": "strin"})).0, "syntax");
    assert_eq!(error(json!([1])).0, "syntax");
    let wide: Vec<Value> = (0..14)
        .map(|n| json!({"anyOf": [{"required": [format!("a{n}")]}, {"required": [format!("b{n}")]}]}))
        .collect();
    let question =
        json!({"id": 1, "op": "text", "schema": {"type": "object", "not": {"anyOf": wide}}, "text": "1"});
    assert_eq!(answers(&["--limit", "clauses=2"], &[question])[0]["error"]["kind"], "limit");
    let grammar = json!({"op": "text", "grammar": "start: \"a\"\n  | b", "format": "lark", "text": "a"});
    let error = &answer(&grammar)["error"];
    assert_eq!((&error["kind"], &error["at"]), (&json!("syntax"), &json!({"line": 2, "column": 5})));
    assert_eq!(error["span"], json!([15, 16]));
    // The intersection needs what grows with the texts.
    let question =
        json!({"op": "canvas", "schema": {"type": "string"}, "slots": [null], "method": "intersection"});
    let error = answer(&question)["error"].to_string();
    assert!(error.contains("the method `intersection`"), "{error}");
    // The next line is answered all the same.
    let lines = [
        json!({"op": "text", "schema": false, "text": "1"}),
        json!({"op": "text", "schema": true, "text": "1"}),
    ];
    assert_eq!(answers(&[], &lines)[1]["sentence"], true);
}

#[test]
fn questions_that_make_no_sense() {
    let contains = |question: Value, words: &[&str]| {
        let answer = answer(&question);
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{question}: {answer}"));
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} are not in {error}");
    };
    let with = |more: Value| {
        let mut question = json!({"id": 1, "op": "text", "schema": true, "text": "1"});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        question
    };
    contains(json!({"op": "text", "text": "1"}), &["\"schema\"", "\"grammar\"", "--grammar"]);
    contains(with(json!({"grammar": "start: \"a\""})), &["\"schema\"", "\"grammar\""]);
    contains(with(json!({"lexer": "longest"})), &["\"lexer\"", "\"grammar\""]);
    contains(with(json!({"options": {"key_ordr": "any"}})), &["key_ordr", "key_order", "extra_keys"]);
    contains(with(json!({"options": {"formats": "check"}})), &["check", "assert", "annotate"]);
    contains(with(json!({"options": ["any"]})), &["\"options\"", "object"]);
    contains(with(json!({"documents": "x"})), &["\"documents\"", "object"]);
    contains(json!({"op": "text", "grammar": "start: \"a\"", "text": "a"}), &["\"format\"", "lark"]);
    let lark = |more: Value| {
        let mut question = json!({"op": "text", "grammar": "start: \"a\"", "format": "lark", "text": "a"});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        question
    };
    contains(lark(json!({"format": "yacc"})), &["yacc", "lark", "json-schema"]);
    contains(lark(json!({"lexer": "shortest"})), &["shortest", "scannerless", "contextual"]);
    contains(lark(json!({"options": {"formats": "assert"}})), &["\"options\"", "\"schema\""]);
    contains(json!({"op": "replay", "schema": true}), &["\"ids\""]);
    contains(json!({"op": "replay", "schema": true, "ids": [4_000_000_000_u32]}), &["ids[0]", "4000000000"]);
}

#[test]
fn tokens_are_replayed() {
    let folder = Folder::new();
    let (grammar, vocab) = (
        folder.file("g.lark", "%lexer scannerless\nstart: \"(\" start \")\" | \"a\""),
        folder.file("v.json", "[\"a\",\"(\",\")\",null]"),
    );
    let arguments = ["--grammar", &grammar, "--vocab", &vocab, "--eos", "3"];
    let replay = |ids: Value| answers(&arguments, &[json!({"id": 8, "op": "replay", "ids": ids})]).remove(0);
    for (ids, steps, rejected_at, sentence) in [
        (json!([1, 1, 0, 2, 2]), 5, Value::Null, true),
        (json!([1, 0, 2, 3, 3]), 5, Value::Null, true),
        (json!([]), 0, Value::Null, false),
        (json!([1, 0]), 2, Value::Null, false),
        (json!([1, 0, 0, 2]), 2, json!(2), false),
        (json!([2]), 0, json!(0), false),
    ] {
        let answer = replay(ids.clone());
        assert_eq!(
            (&answer["steps"], &answer["rejected_at"], &answer["sentence"]),
            (&json!(steps), &rejected_at, &json!(sentence)),
            "{ids}"
        );
        let times =
            |field: &str| answer[field].as_array().unwrap().iter().all(|us| us.as_f64().unwrap() >= 0.0);
        assert!(times("mask_us") && times("advance_us"));
        let n = |field: &str| answer[field].as_array().unwrap().len();
        assert_eq!((n("mask_us"), n("advance_us")), (steps + usize::from(!rejected_at.is_null()), steps));
    }
    let ids: Vec<u8> = "{\"a\": [17]}".into();
    let schema = json!({"type": "object", "additionalProperties": {"items": {"type": "integer"}}});
    let question = json!({"op": "replay", "schema": schema, "ids": ids});
    let answer = answer(&question);
    assert_eq!((&answer["steps"], &answer["sentence"]), (&json!(ids.len()), &json!(true)), "{answer}");
}

/// A schema, and texts that each option decides about.
#[test]
fn options_have_the_same_names_everywhere() {
    let schema = json!({"type": "object", "properties": {"b": {"type": "array"}, "a": {"format": "date"}}});
    let folder = Folder::new();
    let file = folder.file("s.schema.json", schema.to_string());
    let cases = [
        ("key_order", json!("schema"), "schema", "{\"b\":[],\"a\":1}", "{\"a\":1,\"b\":[]}"),
        ("key_order", json!(["a", "c"]), "a,c", "{\"a\":1,\"c\":1,\"b\":[]}", "{\"b\":[],\"a\":1}"),
        ("whitespace", json!("compact"), "compact", "{\"b\":[1]}", "{\"b\": [1]}"),
        ("whitespace", json!("spaced"), "spaced", "{\"b\": [1, 2]}", "{\"b\":[1,2]}"),
        ("whitespace", json!({"at_most": 1}), "at-most:1", "{ }", "{  }"),
        ("whitespace", json!({"indent": 1}), "indent:1", "{\n \"b\": [\n  1\n ]\n}", "{\"b\": [1]}"),
        ("formats", json!("assert"), "assert", "{\"a\":\"2026-11-23\"}", "{\"a\":\"x\"}"),
        ("escapes", json!("needed"), "needed", "{\"a\":\"2026-11-23\"}", "{\"a\":\"\\u0032026-11-23\"}"),
        ("extra_keys", json!("none"), "none", "{}", "{\"c\":1}"),
    ];
    for (name, value, short, valid, invalid) in cases {
        let options = json!({name: value});
        let long = format!("--{}", name.replace('_', "-"));
        for (text, expected) in [(valid, true), (invalid, false)] {
            assert_eq!(is_sentence(&schema, &options, text), expected, "{options} {text}");
            for value in [short, &value.to_string()] {
                let output = anygram_with(&["check", "-g", &file, &long, value, "-"], text.as_bytes());
                assert_eq!(output.status, Some(i32::from(!expected)), "{long} {value} {text}: {output:?}");
            }
        }
        // By default the invalid ones are valid, but for formats.
        assert_eq!(is_sentence(&schema, &json!({}), invalid), name != "formats", "{invalid}");
    }
    assert!(is_sentence(&schema, &json!({"formats": "annotate"}), "{\"a\":\"x\"}"));
    // Those of the command hold where a question has no others.
    let question = |options: Value| json!({"op": "text", "schema": {}, "options": options, "text": "[1, 2]"});
    let told = answers(
        &["--whitespace", "compact"],
        &[question(json!({"escapes": "any"})), question(json!({"whitespace": "spaced"}))],
    );
    assert_eq!((&told[0]["sentence"], &told[1]["sentence"]), (&json!(false), &json!(true)));
    let wrong = |option: &str, value: &str, words: &[&str]| {
        anygram(&["check", "-g", &file, option, value]).is_bad_input(words);
    };
    wrong("--whitespace", "indent:x", &["whitespace is", "\"compact\"", "not {\"indent\":\"x\"}"]);
    wrong("--whitespace", "tight", &["\"spaced\"", "not \"tight\""]);
    wrong("--formats", "check", &["\"assert\" or \"annotate\""]);
    wrong("--limit", "states=1", &["schema_states", "mask_steps"]);
}

#[test]
fn the_depth_of_indented_texts_is_a_limit() {
    let options = json!({"whitespace": {"indent": 0}});
    let question = |text: &str| json!({"op": "text", "schema": true, "options": options, "text": text});
    let lines = [question("[\n[]\n]"), question("[\n[\n[]\n]\n]")];
    let told = answers(&["--limit", "indent_depth=1"], &lines);
    assert_eq!(told[0]["sentence"], true);
    assert_eq!(told[1]["error"]["kind"], "limit", "{}", told[1]);
    assert!(told[1]["error"]["message"].as_str().unwrap().contains("indent_depth"));
}

#[test]
fn refusals_are_told_in_the_words_of_the_schema() {
    let schema = json!({"type": "object", "required": ["items"], "properties": {"items": {"type": "array",
        "minItems": 1, "items": {"required": ["age"], "type": "object", "properties": {
            "age": {"type": "integer", "minimum": 0}, "at": {"format": "date", "type": "string"}}}}}});
    let folder = Folder::new();
    let file = folder.file("s.schema.json", schema.to_string());
    let check = |text: &str| anygram_with(&["check", "-g", &file, "-"], text.as_bytes());
    for (text, place, words) in [
        ("{\"items\":[{\"age\":1},{\"age\":-3}]}", ", at /items/1/age", "expected an integer of at least 0"),
        (
            "{\"items\":[{\"at\":\"x\"}]}",
            ", at /items/0/at",
            "expected a string, as #/properties/items/items/properties/at",
        ),
        ("{\"items\":7}", ", at /items", "`[`"),
        ("[]", ", at the root", "`{`"),
    ] {
        let output = check(text);
        assert!(output.stdout.contains(place) && output.stdout.contains(words), "{text}: {}", output.stdout);
        assert_eq!(output.status, Some(1));
    }
    // An example is found by what the automata know.
    let output = anygram(&["check", "-g", &file]);
    let example = output.stdout.lines().find_map(|line| line.strip_prefix("example")).unwrap().trim();
    assert_eq!(example, "'{\"items\":[{\"age\":0}]}'");
}

#[test]
fn what_repeats_is_named() {
    let folder = Folder::new();
    let schema = folder.file("s.schema.json", r#"{"properties":{"x":{"uniqueItems":true}}}"#);
    let lark = folder.file("g.lark", r#"start: "<" %json {"type":"object"} ">""#);
    for (grammar, text, why) in [
        (&schema, r#"{"x":{"a":1,"\u0061":2}}"#, "at /x: the key \"a\" is there already"),
        (&schema, r#"{"x":[1,1.0]}"#, "at /x/1: it would repeat a key, or an item that has to differ"),
        (&lark, r#"<{"a":1,"a":2}>"#, "at the root of the schema at line 1: the key \"a\" is there already"),
    ] {
        let output = anygram(&["check", "-g", grammar, &folder.file("t.txt", text)]);
        assert!(output.stdout.lines().any(|line| line.trim() == why), "{text}: {}", output.stdout);
    }
    let output = anygram(&["check", "-g", &schema, &folder.file("t.txt", r#"{"x":{"a":1,}}"#)]);
    assert!(!output.stdout.contains("repeat"), "{}", output.stdout);
}

/// A schema within a Lark grammar and within a structural tag says the same as alone, and which schema it is.
#[test]
fn refusals_within_other_grammars_are_those_of_the_schema() {
    let schema = json!({"type": "object", "required": ["items"], "properties": {"items": {"type": "array",
        "items": {"required": ["age"], "type": "object",
            "properties": {"age": {"type": "integer", "minimum": 0}}}}}});
    let folder = Folder::new();
    let alone = folder.file("s.schema.json", schema.to_string());
    let lark =
        folder.file("g.lark", format!("start: \"<t>\" args \"</t>\" | /x*/\n\nargs: %json {schema}\n"));
    let tag = json!({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<t"],
        "tags": [{"type": "tag", "begin": "<t>", "end": "</t>",
            "content": {"type": "json_schema", "json_schema": schema}}]}});
    let tag = folder.file("c.tag.json", tag.to_string());
    let in_tag = "/format/tags/0/content/json_schema";
    for (text, pointer, note) in [
        (r#"{"items":[{"age":1},{"age":-3}]}"#, "/items/1/age", ""),
        (r#"{"items":[{"age":1,"x":2,"x":3}]}"#, "/items/0", "the key \"x\" is there already"),
        (r#"{"items":[{"age":1},{}]}"#, "/items/1", "the key \"age\" is missing"),
        ("[", "", ""),
    ] {
        let question = |text: String| json!({"op": "text", "text": text, "want": ["explain"]});
        let expected = answers(&["-g", &alone], &[question(text.to_owned())]).remove(0)["explain"].clone();
        assert_eq!(expected["pointer"], pointer, "{expected}");
        let text = format!("<t>{text}</t>");
        for (grammar, name) in
            [(&lark, "the schema at line 3".to_owned()), (&tag, format!("the schema at {in_tag}"))]
        {
            let told = answers(&["-g", grammar], &[question(text.clone())]).remove(0)["explain"].clone();
            assert_eq!((&told["pointer"], &told["schema"]), (&json!(pointer), &json!(name)), "{text}");
            assert_eq!(told["at"], expected["at"].as_u64().unwrap() + 3, "{text}");
            let root = if pointer.is_empty() { "the root" } else { pointer };
            let said = anygram(&["check", "-g", grammar, &folder.file("t.txt", &text)]).stdout;
            assert!(said.contains(&format!(", at {root} of {name}\n")), "{said}");
            assert!(note.is_empty() || said.contains(&format!("at {root} of {name}: {note}")), "{said}");
        }
    }
    // Where members stand between marks, each value has a schema of its own.
    let styled = json!({"type": "structural_tag", "format": {"type": "json_schema", "style": "qwen_xml",
        "json_schema": {"properties": {"o": schema}}}});
    let styled = folder.file("s.tag.json", styled.to_string());
    let text = "<parameter=o>{\"items\":[{}";
    let said = anygram(&["check", "-g", &styled, &folder.file("t.txt", format!("{text}]}}"))]).stdout;
    let place = "at /items/0 of the schema at /format/json_schema/properties/o: the key \"age\" is missing";
    assert!(said.contains(place), "{said}");
    // Behind a value, and before it begins, it is not the schema that is in the way.
    for text in [r#"<t>{"items":[]}</x>"#, r#"<t>{"items":[]} x"#, "<x"] {
        let told =
            answers(&["-g", &lark], &[json!({"op": "text", "text": text, "want": ["explain"]})]).remove(0);
        assert!(told["explain"].get("pointer").is_none(), "{told}");
    }
}
