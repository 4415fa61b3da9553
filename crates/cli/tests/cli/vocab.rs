use serde_json::json;

use crate::run::{Folder, anygram, anygram_with};

/// Ranks 0 to 2: `a`, `b`, `ab`.
const RANKS: &str = "YQ== 0\nYg== 1\nYWI= 2\n";

#[test]
fn special_tokens_have_names_beyond_the_file() {
    let folder = Folder::new();
    let (grammar, ranks) =
        (folder.file("g.lark", "start: <|turn=1|> /[ab]+/ <|end|>"), folder.file("v.tiktoken", RANKS));
    let arguments = ["batch", "-g", &grammar, "-v", &ranks, "--eos", "12"];
    anygram(&arguments).is_bad_input(&["<|turn=1|>"]);
    // The text of ids 2 to 4 is `a`, `b` and `ab`.
    let named =
        ["--id-offset", "2", "--pattern", "[ab]", "--special", "<|turn=1|>=10", "--special", "<|end|>=1"];
    let questions = [vec![], vec![10], vec![10, 4], vec![10, 2, 1]];
    let lines: String = questions
        .iter()
        .map(|tokens| json!({"id": 0, "op": "mask", "tokens": tokens}).to_string() + "\n")
        .collect();
    let answers = anygram_with(&[&arguments[..], &named].concat(), lines.as_bytes()).json_lines();
    let masks: Vec<_> = answers.iter().map(|answer| json!([answer["allowed"], answer["eos"]])).collect();
    let expected =
        [json!([[10], false]), json!([[2, 3, 4], false]), json!([[1, 2, 3, 4], false]), json!([[], true])];
    assert_eq!(masks, expected);
}

#[test]
fn bad_options_are_named() {
    let folder = Folder::new();
    let (grammar, ranks) = (folder.file("g.lark", "start: \"a\""), folder.file("v.tiktoken", RANKS));
    let run = |vocab: &str, options: &[&str], words: &[&str]| {
        anygram(&[&["batch", "-g", &grammar, "-v", vocab], options].concat()).is_bad_input(words);
    };
    run(&ranks, &["--special", "<|x|>"], &["--special", "NAME=ID"]);
    run(&ranks, &["--special", "=5"], &["NAME=ID"]);
    run(&ranks, &["--special", "<|x|>=five"], &["`five`"]);
    run(&ranks, &["--special", "<|x|>=0"], &["v.tiktoken", "`<|x|>`", "ordinary token \"a\""]);
    run(&ranks, &["--special", "<|x|>=5", "--special", "<|y|>=5"], &["`<|x|>`", "`<|y|>`"]);
    run(&ranks, &["--special", "<|x|>=4294967295"], &["4294967295"]);
    run(&ranks, &["--pattern", "("], &["v.tiktoken", "pattern"]);
    run(&ranks, &["--id-offset", "16777215"], &["v.tiktoken", "line 2"]);
    let array = folder.file("v.json", r#"["a"]"#);
    run(&array, &["--id-offset", "1"], &["v.json", ".tiktoken"]);
    for option in [["--pattern", "x"], ["--id-offset", "1"]] {
        run("builtin", &option, &["--pattern", ".tiktoken"]);
    }
    run(&folder.file("empty.tiktoken", ""), &[], &["empty.tiktoken", "empty"]);
    run(&folder.missing("."), &[], &["folder"]);
}

#[test]
fn a_saved_vocabulary_is_taken_wherever_one_is() {
    let folder = Folder::new();
    let (grammar, ranks) =
        (folder.file("g.lark", "start: /[ab]+/ <|end|>"), folder.file("v.tiktoken", RANKS));
    let out = folder.missing("v.anyvocab");
    let given = ["--pattern", "[ab]", "--special", "<|end|>=5", "--eos", "6", "--id-offset", "1"];
    let saved = anygram(&[&["vocab", "save", "-v", &ranks][..], &given, &[&out]].concat()).json_lines();
    assert_eq!((&saved[0]["vocab_size"], &saved[0]["eos"]), (&json!(7), &json!([6])));

    let questions = "{\"id\":1,\"op\":\"mask\",\"tokens\":[]}\n{\"id\":2,\"op\":\"mask\",\"tokens\":[3,5]}\n";
    let ask = |options: &[&str]| {
        let answers = anygram_with(&[&["batch", "-g", &grammar][..], options].concat(), questions.as_bytes());
        answers
            .json_lines()
            .iter()
            .map(|answer| json!([answer["allowed"], answer["eos"]]))
            .collect::<Vec<_>>()
    };
    let expected = [json!([[1, 2, 3], false]), json!([[], true])];
    assert_eq!(ask(&[&["-v", &ranks][..], &given].concat()), expected);
    assert_eq!(ask(&["-v", &out]), expected);

    // Cut off, and options that it cannot obey.
    let content = std::fs::read(&out).unwrap();
    std::fs::write(&out, &content[..content.len() - 1]).unwrap();
    anygram(&["batch", "-g", &grammar, "-v", &out]).is_bad_input(&["v.anyvocab", "damaged", "save it again"]);
    std::fs::write(&out, &content).unwrap();
    anygram(&["batch", "-g", &grammar, "-v", &out, "--pattern", "x"])
        .is_bad_input(&["v.anyvocab", ".tiktoken"]);
    let nowhere = folder.missing("none/v.anyvocab");
    anygram(&["vocab", "save", "-v", &ranks, &nowhere]).is_bad_input(&["cannot save", "none"]);
}
