use serde_json::Value;

use crate::run::{Folder, LISTS, anygram};

/// What a file has, without times; lines on how it was made are left out.
fn generations(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let generations = lines.filter(|line| line.get("command").is_none());
    generations
        .map(|mut line| {
            line.as_object_mut().unwrap().remove("us");
            line
        })
        .collect()
}

fn eval(more: &[&str]) -> crate::run::Output {
    let first = [
        "eval",
        "--tasks",
        "arithmetic",
        "--models",
        "uniform",
        "--methods",
        "none",
        "exact",
        "--steps",
        "4",
    ];
    anygram(&[&first[..], &["--prompts", "2", "--runs", "2"], more].concat())
}

#[test]
fn a_file_is_gone_on_with() {
    let folder = Folder::new();
    let (whole, cut) = (folder.missing("whole.jsonl"), folder.missing("cut.jsonl"));
    let output = eval(&["--out", &whole, "--threads", "2"]);
    assert_eq!((output.status, &*output.stdout, &*output.stderr), (Some(0), "", ""));
    assert_eq!(generations(&whole).len(), 8);
    // The program was killed within the fourth line.
    let bytes = std::fs::read(&whole).unwrap();
    let ends: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'\n').collect();
    std::fs::write(&cut, &bytes[..ends[3] + 9]).unwrap();
    assert_eq!(eval(&["--out", &cut, "--threads", "1"]).status, Some(0));
    assert_eq!(generations(&cut), generations(&whole));
    let again = eval(&["--out", &cut]);
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert_eq!(generations(&cut).len(), 8);
    let page = folder.missing("page.md");
    let output = anygram(&["eval", "report", &cut, "--out", &page]);
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("`exact` is syntactic in 4 of 4 generations (100.0 %)"), "{page}");
}

#[test]
fn regions_are_filled_without_a_model() {
    let folder = Folder::new();
    let (grammar, out) = (folder.file("g.lark", LISTS), folder.missing("lines.jsonl"));
    let texts = folder.file("texts.txt", "(a,b,(c,d),e,(f,(g)),h)\n(not a sentence\n((a),(b),(c),(d),(e))\n");
    let arguments = ["eval", "infill", "--name", "lists", "-g", &grammar, "-v", "builtin", "--out", &out];
    let more = ["--regions", "1", "2", "--methods", "none", "compatible", "--", &texts];
    let run = || {
        let output = anygram(&[&arguments[..], &more].concat());
        assert_eq!((output.status, &*output.stderr), (Some(0), ""));
        generations(&out)
    };
    let lines = run();
    assert!(!lines.is_empty());
    // A run that was stopped is gone on with.
    let whole = std::fs::read_to_string(&out).unwrap();
    std::fs::write(&out, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(run(), lines);
    for line in lines.iter().filter(|line| line["method"] != "none") {
        assert_eq!(line["syntactic"], true, "{line}");
    }
    let page = anygram(&["eval", "report", &out]).stdout;
    assert!(page.contains("| lists | holes | `compatible` | 100.0"), "{page}");
}

#[test]
fn bad_plans_are_refused() {
    eval(&["--methods", "guess"]).is_bad_input(&["guess", "lookahead"]);
    eval(&["--tasks", "sums"]).is_bad_input(&["sums", "record"]);
    eval(&["--models", "large"]).is_bad_input(&["large", "masked"]);
    eval(&["--steps", "0"]).is_bad_input(&["`0`", "full"]);
    eval(&["--temperature", "nan"]).is_bad_input(&["temperature"]);
    let folder = Folder::new();
    let wrong = folder.file("wrong.jsonl", "{}\n");
    eval(&["--out", &wrong]).is_bad_input(&["wrong.jsonl", "line 1"]);
    assert_eq!(std::fs::read_to_string(&wrong).unwrap(), "{}\n");
    anygram(&["eval", "report", &folder.missing("none.jsonl")]).is_bad_input(&["none.jsonl"]);
    anygram(&["eval", "report", &folder.file("empty.jsonl", "")]).is_bad_input(&["no lines"]);
}
