//! What `anygram batch` explains: the same as `check` says, and what tokens look like.

use serde_json::{Value, json};

use crate::run::{Folder, LISTS, anygram, anygram_with};

/// The answers of `batch`, with these arguments.
fn answers(arguments: &[&str], questions: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = questions.iter().map(Value::to_string).collect();
    let output = anygram_with(&[&["batch"], arguments].concat(), lines.join("\n").as_bytes());
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    output.json_lines()
}

fn answer(question: Value) -> Value {
    answers(&[], &[question]).remove(0)
}

/// A question about lists of words.
fn lists(fields: Value) -> Value {
    let mut question = json!({"grammar": LISTS, "format": "lark"});
    question.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    question
}

#[test]
fn texts_are_explained_as_check_does() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a","b"]}"#;
    let folder = Folder::new();
    for (format, extension, grammar, texts) in [
        ("lark", "lark", LISTS, &["(a, b", "(é)", "", "a)", "(a,\n b)"][..]),
        ("json-schema", "schema.json", schema, &[r#"{"a":1}"#, r#"{"a":"#, r#"{"b":1,"b":2}"#, "7"][..]),
    ] {
        let file = folder.file(&format!("g.{extension}"), grammar);
        for text in texts {
            let path = folder.file("text", text);
            let said = anygram(&["check", "-g", &file, &path]).stdout;
            let question = json!({"op": "text", "text": text, "want": ["explain"]});
            let own = json!({"op": "text", "text": text, "want": ["explain"], "grammar": grammar,
                "format": format});
            let given = answers(&["-g", &file], &[question]).remove(0)["explain"].clone();
            assert_eq!(given, answer(own)["explain"], "of a file and of a question");
            let place = format!("line {}, column {} (byte {})", given["line"], given["column"], given["at"]);
            let parts = ["expected", "notes"].map(|name| given[name].as_array().unwrap().clone());
            for part in [vec![json!(place)], parts.concat()].concat() {
                assert!(said.contains(part.as_str().unwrap()), "{text}: {part} is not in\n{said}");
            }
        }
    }
    let explain = |text: &str| answer(lists(json!({"op": "text", "text": text, "want": ["explain"]})));
    assert_eq!(explain("(a, b")["explain"]["completion"], ")");
    let sentence = explain("(a)");
    assert_eq!(
        sentence["explain"],
        json!({"at": 3, "line": 1, "column": 4, "expected": [],
        "notes": [], "completion": null})
    );
}

#[test]
fn trees_are_those_of_check() {
    let folder = Folder::new();
    let file = folder.file("g.lark", LISTS);
    for text in ["a", "(a, (bc))", "()"] {
        let path = folder.file("text", text);
        let said = anygram(&["check", "-g", &file, "--tree=json", &path]).json_lines().remove(0);
        assert_eq!(answer(lists(json!({"op": "text", "text": text, "want": ["tree"]})))["tree"], said);
    }
    for text in ["(a", "A"] {
        let answer = answer(lists(json!({"op": "text", "text": text, "want": ["tree"]})));
        assert_eq!((answer.get("tree"), answer.get("explain")), (Some(&Value::Null), None));
    }
}

#[test]
fn counts_are_those_of_masks() {
    let text = "(ab, c)";
    let mask = |text: &str| answer(lists(json!({"op": "mask", "text": text})));
    let counts = |text: &str| {
        let answer = answer(lists(json!({"op": "mask", "text": text, "want": ["counts"]})));
        serde_json::from_value::<Vec<(usize, Option<usize>)>>(answer["counts"].clone()).unwrap()
    };
    let right = |n: usize| (n, Some(mask(&text[..n])["allowed"].as_array().unwrap().len()));
    assert_eq!(counts(text), (0..=text.len()).map(right).collect::<Vec<_>>());
    // They end where the text does.
    assert_eq!(counts("(ab]c"), (0..=3).map(right).collect::<Vec<_>>());
    assert!(mask("(ab]c")["error"].as_str().unwrap().contains("not viable"));
    // A mask does not depend on how the text is cut.
    let tokens = answer(json!({"op": "tokens", "text": "(ab,"}))["tokens"].clone();
    assert_eq!(answer(lists(json!({"op": "mask", "tokens": tokens})))["allowed"], mask("(ab,")["allowed"]);
    // No token spells every other character alone.
    let folder = Folder::new();
    let (vocab, grammar) =
        (folder.file("v.json", r#"["ab", "abab"]"#), folder.file("g.lark", "start: /(ab)+/"));
    let question = json!({"op": "mask", "text": "abab", "want": ["counts"]});
    let answer = answers(&["-g", &grammar, "-v", &vocab, "--eos", "2"], &[question]).remove(0);
    assert_eq!(answer["counts"], json!([[0, 2], [1, null], [2, 2], [3, null], [4, 2]]));
}

#[test]
fn some_of_many_tokens_are_shown() {
    let all = answer(lists(json!({"op": "mask", "text": "("})))["allowed"].as_array().unwrap().clone();
    let shown = |show: Value| {
        let answer = answer(lists(json!({"op": "mask", "text": "(", "show": show})));
        assert_eq!((&answer["count"], answer.get("allowed")), (&json!(all.len()), None), "{answer}");
        answer
    };
    let texts = |answer: &Value| -> Vec<String> {
        let pairs: Vec<(u32, String)> = serde_json::from_value(answer["shown"].clone()).unwrap();
        assert!(pairs.iter().all(|(id, _)| all.contains(&json!(id))));
        pairs.into_iter().map(|(_, text)| text).collect()
    };
    assert_eq!(texts(&shown(json!({}))).len(), 50);
    assert_eq!(texts(&shown(json!({"most": 0}))).len(), 0);
    let every = texts(&shown(json!({"most": 10_000})));
    assert_eq!(every.len(), all.len());
    let lengths = |order: &str| -> Vec<usize> {
        texts(&shown(json!({"most": 10_000, "order": order}))).iter().map(String::len).collect()
    };
    assert!(lengths("shortest").is_sorted() && lengths("longest").iter().rev().is_sorted());
    // Each first character before any comes again.
    let firsts = |order: &str, n: usize| -> Vec<char> {
        let texts = texts(&shown(json!({"most": n, "order": order})));
        texts.iter().filter_map(|text| text.chars().nth(1)).collect()
    };
    let mut different: Vec<char> = every.iter().filter_map(|text| text.chars().nth(1)).collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(firsts("varied", different.len()), different);
    let found = shown(json!({"search": "th", "most": 3}));
    let right = every.iter().filter(|text| text.contains("th")).count();
    assert_eq!((&found["found"], texts(&found).len()), (&json!(right), 3.min(right)));
    // The same of holes.
    let canvas = |fields: Value| {
        let mut question = lists(json!({"op": "canvas", "slots": [null, null], "want": ["admissible"]}));
        question.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        answer(question)["admissible"].clone()
    };
    let (whole, some) = (canvas(json!({})), canvas(json!({"show": {"most": 1}})));
    for hole in 0..2 {
        assert_eq!(some[hole]["count"], whole[hole].as_array().unwrap().len());
        assert_eq!(some[hole]["shown"][0][0], whole[hole][0]);
    }
    for show in [json!({"order": "likeliest"}), json!({"most": 10_001}), json!([]), json!({"where": 1})] {
        let error = answer(lists(json!({"op": "mask", "text": "(", "show": show})))["error"].to_string();
        assert!(error.contains("show"), "{show}: {error}");
    }
}

#[test]
fn what_check_says_of_a_grammar() {
    let grammar = "start: start start | item\nitem: \"b\"\nlost: item\n";
    let folder = Folder::new();
    let said = anygram(&["check", "-g", &folder.file("g.lark", grammar)]).stdout;
    let question = json!({"op": "grammar", "grammar": grammar, "format": "lark",
        "want": ["facts", "warnings", "hints", "examples"], "count": 2});
    let answer = answer(question.clone());
    for (name, value) in serde_json::from_value::<Vec<(String, String)>>(answer["facts"].clone()).unwrap() {
        assert!(said.contains(&format!("{name:<14}{value}")), "{name}: {value}\n{said}");
    }
    let places = ["warnings", "hints"].map(|name| answer[name].as_array().unwrap().clone());
    assert!(places.iter().all(|places| !places.is_empty()), "{answer}");
    for place in places.concat() {
        let message = place["message"].as_str().unwrap();
        assert!(said.contains(message), "{message}\n{said}");
        let Some(line) = place.get("line") else { continue };
        assert!(said.contains(&format!("g.lark:{line}:{}: ", place["column"])), "{place}\n{said}");
    }
    let lost = &answer["warnings"][0]["span"];
    assert_eq!(&grammar[lost[0].as_u64().unwrap() as usize..lost[1].as_u64().unwrap() as usize], "lost");
    let examples: Vec<String> = serde_json::from_value(answer["examples"].clone()).unwrap();
    assert!(
        examples.len() == 2 && examples.iter().all(|text| text.replace('b', "").is_empty()),
        "{examples:?}"
    );
    let mut many = question;
    many["count"] = json!(1001);
    assert!(self::answer(many)["error"].as_str().unwrap().contains("1001"));
}

#[test]
fn tokens_and_their_texts() {
    let text = " a\"\n\u{e9}b";
    let cut = answer(json!({"id": 1, "op": "tokens", "text": text}));
    let shown: Vec<String> = serde_json::from_value(cut["shown"].clone()).unwrap();
    assert_eq!(shown.len(), cut["tokens"].as_array().unwrap().len());
    assert!(shown.concat().contains("\\\"") && shown.concat().contains("\\n"), "{shown:?}");
    let back = answer(json!({"id": 1, "op": "tokens", "tokens": cut["tokens"]}));
    assert_eq!((&back["shown"], &back["size"]), (&cut["shown"], &cut["size"]));
    let size = cut["size"].as_u64().unwrap();
    assert!(cut["eos_ids"][0].as_u64().unwrap() < size);
    for (question, word) in [
        (json!({"op": "tokens", "tokens": [0, size]}), "tokens[1]"),
        (json!({"op": "tokens", "tokens": ["a"]}), "tokens[0]"),
        (json!({"op": "tokens", "tokens": [], "text": ""}), "do not go together"),
        (lists(json!({"op": "mask", "tokens": [], "text": ""})), "do not go together"),
        (lists(json!({"op": "mask", "want": ["counts"], "tokens": []})), "counts"),
        (lists(json!({"op": "text", "text": "", "want": ["why"]})), "explain, tree"),
        (lists(json!({"op": "grammar", "want": ["doubts"]})), "facts, warnings, hints, examples"),
    ] {
        let error = answer(question.clone())["error"].to_string();
        assert!(error.contains(word), "{question}: {error}");
    }
}

#[test]
fn refused_grammars_have_places_and_help() {
    let error = |grammar: &str, format: &str| {
        let question = json!({"op": "grammar", "grammar": grammar, "format": format});
        answer(question)["error"].clone()
    };
    let close = error("start: word\nwords: \"a\"\n", "lark");
    assert_eq!(close["span"], json!([7, 11]));
    assert!(close["help"].as_str().unwrap().contains("words"), "{close}");
    let twice = error("start: \"a\"\nstart: \"b\"\n", "lark");
    assert_eq!((&twice["span"], &twice["label"][0]), (&json!([11, 16]), &json!(0)), "{twice}");
    assert_eq!(error("{\"type\":\n \"intger\"}", "json-schema")["span"], json!([10, 18]));
    // No place in what is no JSON.
    assert!(error("{\"type\":\n", "json-schema").get("span").is_none());
}
