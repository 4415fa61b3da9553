//! Structural tags and tools.

use serde_json::{Value, json};

use crate::run::{Folder, anygram, anygram_with};

const TOOLS: &str = r#"[{"type":"function","function":{"name":"now","parameters":{"type":"object",
    "properties":{"zone":{"type":"string"}},"required":["zone"]}}}]"#;

#[test]
fn tools_are_a_tag_that_other_commands_read() {
    let folder = Folder::new();
    let tools = folder.file("tools.json", TOOLS);
    let tag = anygram(&["tools", "--family", "qwen", &tools]);
    assert_eq!((tag.status, &*tag.stderr), (Some(0), ""));
    let tag = folder.file("g.tag.json", &tag.stdout);
    let check = |text: &str| anygram_with(&["check", "-g", &tag, "-"], text.as_bytes());
    let call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call>";
    assert_eq!(check(&format!("Well.\n{call}")).status, Some(0));
    let wrong = check(&call.replace("zone", "Zone"));
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.stdout.contains("it stops at line 2"), "{wrong:?}");

    let forced = anygram_with(&["tools", "--family", "qwen", "--tool-choice", "now", "-"], TOOLS.as_bytes());
    assert!(forced.stdout.starts_with(r#"{"type":"structural_tag","format":{"type":"tag","#), "{forced:?}");
    anygram(&["tools", "--family", "qwen", "--tool-choice", "then", &tools]).is_bad_input(&["`then`"]);
    anygram(&["tools", "--family", "gwen", &tools]).is_bad_input(&["`gwen`", "qwen"]);
}

#[test]
fn tags_are_explained_and_refused_by_their_place() {
    let folder = Folder::new();
    let tag = r#"{"format":{"type":"tag","begin":"<a>","content":{"type":"any_text"},"end":"</a>"}}"#;
    let report = anygram(&["check", "-g", &folder.file("g.tag.json", tag)]).stdout;
    assert!(report.contains("start         /format") && report.contains("scannerless"), "{report}");
    let tag = r#"{"format":{"type":"sequence","elements":[{"type":"any_text","max_words":5}]}}"#;
    anygram(&["check", "-g", &folder.file("h.tag.json", tag)])
        .is_bad_input(&["/format/elements/0/max_words", "max_tokens"]);
}

#[test]
fn captures_in_batch_are_those_of_check() {
    let folder = Folder::new();
    let tools = folder.file("tools.json", TOOLS);
    let tag = folder.file("g.tag.json", &anygram(&["tools", "--family", "qwen", &tools]).stdout);
    let text =
        "Well.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call> Done";
    let told = anygram_with(&["check", "-g", &tag, "--tree=events", "-"], text.as_bytes()).json_lines();
    assert!(told.len() > 8, "{told:?}");
    let batch = |question: serde_json::Value| {
        let output = anygram_with(&["batch", "-g", &tag, "-v", "builtin"], question.to_string().as_bytes());
        output.json_lines().remove(0)
    };
    let answer = batch(json!({"op": "text", "text": text, "want": ["captures"]}));
    assert_eq!(answer["captures"], json!(told));
    let tokens = batch(json!({"op": "tokens", "text": text}));
    let (ids, eos) = (tokens["tokens"].as_array().unwrap().clone(), tokens["eos_ids"][0].clone());
    let plain = |events: &[Value]| -> Vec<String> {
        let mut events = events.to_vec();
        events.iter_mut().for_each(|event| drop(event.as_object_mut().unwrap().remove("at")));
        let mut plain: Vec<String> = events.iter().map(Value::to_string).collect();
        plain.sort();
        plain
    };
    for ids in [ids.clone(), [&*ids, &[eos]].concat()] {
        let answer = batch(json!({"op": "replay", "ids": ids, "want": ["captures"]}));
        assert_eq!(answer["sentence"], json!(true), "{answer}");
        let captures = answer["captures"].as_array().unwrap();
        // Of each token all that its bytes tell, and of the end the rest.
        assert_eq!(plain(captures), plain(&told));
        let at = |event: &Value| event["at"].as_u64().unwrap();
        assert!(captures.is_sorted_by_key(at) && captures.iter().all(|event| at(event) <= ids.len() as u64));
    }
    // What was told until a token was refused stays.
    let ids = json!(ids[..ids.len() / 2].iter().chain(&ids[..1]).collect::<Vec<_>>());
    let answer = batch(json!({"op": "replay", "ids": ids, "want": ["captures"]}));
    assert!(!answer["rejected_at"].is_null() && answer["sentence"] == json!(false), "{answer}");
    assert!(!answer["captures"].as_array().unwrap().is_empty(), "{answer}");
    let answer = batch(json!({"op": "replay", "ids": [], "want": ["tree"]}));
    assert!(answer["error"].as_str().unwrap().contains("captures"), "{answer}");
}

#[test]
fn questions_bring_tags() {
    let tags = [
        r#"{"format":{"type":"const_string","value":"x"}}"#,
        r#""{\"format\":{\"type\":\"token\",\"token\":7}}""#,
        r#"{"format":{"type":"regex","pattern":"("}}"#,
    ];
    let question = |tag| format!(r#"{{"op":"text","format":"structural-tag","grammar":{tag},"text":"x"}}"#);
    let questions = tags.map(question);
    let output = anygram_with(&["batch", "-v", "builtin"], questions.join("\n").as_bytes());
    let answers = output.json_lines();
    assert_eq!(
        (&answers[0]["sentence"], &answers[1]["sentence"]),
        (&true.into(), &false.into()),
        "{output:?}"
    );
    let error = &answers[2]["error"];
    assert_eq!((&error["kind"], &error["at"]), (&"syntax".into(), &"/format/pattern".into()), "{output:?}");
}
