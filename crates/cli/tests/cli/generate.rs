use std::process::Command;

use serde_json::Value;

use crate::browser;
use crate::run::{Folder, Output, anygram};

fn generate(arguments: &[&str]) -> Output {
    anygram(&[&["generate"], arguments].concat())
}

#[test]
fn a_text_is_shown_as_it_comes_about() {
    let output = generate(&["--task", "arithmetic", "--prompts", "2", "--steps", "4"]);
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    assert!(!output.stdout.contains('\x1b'), "colours in a pipe");
    for part in [
        "Model     masked",
        "Prompt    math: ",
        "Step by step  exact",
        "▢",
        "∎",
        "proposals",
        "Over 2 prompts",
    ] {
        assert!(output.stdout.contains(part), "{part:?} is not in\n{}", output.stdout);
    }
    for method in ["exact", "none"] {
        let lines = output.stdout.lines().filter(|line| line.trim_start().starts_with(method));
        assert_eq!(lines.count(), 2, "{method} in\n{}", output.stdout);
    }
}

#[test]
fn json_has_a_line_for_each_text() {
    for model in ["masked", "uniform", "autoregressive"] {
        let arguments =
            ["--task", "arithmetic", "--model", model, "--prompts", "2", "--slots", "24", "--steps", "4"];
        let arguments =
            [&arguments[..], &["--method", "forced-sequential-with-budget,none,compatible", "--json"]]
                .concat();
        let lines = generate(&arguments).json_lines();
        assert_eq!(lines.len(), 6);
        for line in &lines {
            let is_free = line["method"] == "none";
            assert!(is_free || line["syntactic"] == true, "{line}");
            assert!(line["functional"] != true || line["syntactic"] == true, "{line}");
            assert!(!is_free || line["refused"] == 0, "{line}");
            assert!(
                line["model_calls"].as_u64() >= Some(1) && line["model_us"].as_f64() > Some(0.0),
                "{line}"
            );
            assert!(line["log_prob"].as_f64().is_some_and(|sum| sum <= 0.0), "{line}");
            assert!(line["prompt"].as_str().is_some_and(|prompt| prompt.starts_with("math: ")), "{line}");
            assert_eq!((&line["model"], &line["slots"]), (&model.into(), &24.into()));
        }
        let texts = |lines: &[Value]| lines.iter().map(|line| line["text"].clone()).collect::<Vec<_>>();
        assert_eq!(texts(&lines), texts(&generate(&arguments).json_lines()), "the same seed, the same texts");
    }
}

#[test]
fn prompts_and_grammars_can_be_the_users() {
    let json = ["--json", "--method", "exact", "--slots", "16"];
    let own = generate(&[&json[..], &["--task", "arithmetic", "--prompt", "3 plus 4"]].concat()).json_lines();
    assert_eq!(
        (own.len(), &own[0]["prompt"], &own[0]["functional"]),
        (1, &"math: 3 plus 4\n".into(), &Value::Null)
    );
    assert_eq!(own[0]["syntactic"], true);
    let folder = Folder::new();
    let grammar = folder.file("ab.regex", "(ab){3,9}");
    let own = generate(&[&json[..], &["-g", &grammar, "--prompts", "2"]].concat()).json_lines();
    for line in &own {
        let text = line["text"].as_str().unwrap();
        assert!(line["syntactic"] == true && text.len() >= 6 && text.replace("ab", "").is_empty(), "{line}");
        assert_eq!(line["functional"], Value::Null);
    }
}

#[test]
fn what_cannot_be_meant_is_bad_input() {
    generate(&["--task", "poem"]).is_bad_input(&["poem", "record, arithmetic, smiles"]);
    generate(&["--model", "gpt"]).is_bad_input(&["gpt", "masked"]);
    generate(&["--method", "exact,magic"]).is_bad_input(&["magic", "lookahead"]);
    generate(&["--method", "none,none"]).is_bad_input(&["none", "twice"]);
    generate(&["--steps", "0"]).is_bad_input(&["--steps", "1..=256"]);
    generate(&["--slots", "257"]).is_bad_input(&["--slots", "1..=256"]);
    generate(&["--prompts", "0"]).is_bad_input(&["--prompts"]);
    generate(&["--prompt", "x", "--prompts", "2"]).is_bad_input(&["--prompt"]);
    generate(&["--temperature", "-1"]).is_bad_input(&["temperature"]);
    generate(&["--temperature", "warm"]).is_bad_input(&["warm"]);
    generate(&["--prompt", &"many words ".repeat(3000)]).is_bad_input(&["tokens", "4096"]);
    generate(&["-g", "missing.lark"]).is_bad_input(&["missing.lark"]);
    let folder = Folder::new();
    generate(&["-g", &folder.file("g.lark", "start: (")]).is_bad_input(&["g.lark"]);
    let nowhere = folder.missing("no/folder.html");
    generate(&["--task", "smiles", "--prompts", "1", "--method", "none", "--trace", &nowhere])
        .is_bad_input(&["folder.html"]);
}

/// A prompt that would end the page's data, if it could.
const HOSTILE: &str = "3 plus 4 </script><script>document.title='x'</script><!--";

/// A page, and what `--json` says of the same texts.
fn page(folder: &Folder, arguments: &[&str]) -> (String, Value, Vec<Value>) {
    let path = folder.missing("page.html");
    let output = generate(&[&["--json", "--trace", &path], arguments].concat());
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    let page = std::fs::read_to_string(&path).unwrap();
    let (_, rest) = page.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    assert!(!data.contains('<'), "an element in the data");
    let data = serde_json::from_str(data).unwrap();
    (path, data, output.json_lines())
}

/// The slots after so many events.
fn replayed(run: &Value, n_slots: usize, n_events: usize) -> Vec<Option<u64>> {
    let mut slots = vec![None; n_slots];
    for event in &run["events"].as_array().unwrap()[..n_events] {
        let number = |at: usize| event[at].as_u64().unwrap();
        match event[0].as_str().unwrap() {
            "kept" | "filled" => slots[number(1) as usize] = Some(number(2)),
            "taken" => slots[number(1) as usize] = None,
            _ => {}
        }
    }
    slots
}

#[test]
fn the_page_has_the_trace() {
    let folder = Folder::new();
    for model in ["masked", "uniform", "autoregressive"] {
        let arguments = ["--task", "arithmetic", "--model", model, "--slots", "20", "--prompt", HOSTILE];
        let (path, data, lines) = page(&folder, &arguments);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(!text.contains("://") && !text.contains("src="), "something from outside");
        assert_eq!(data["prompt"].as_str().unwrap().trim(), format!("math: {HOSTILE}"));
        let runs = data["runs"].as_array().unwrap();
        assert_eq!((runs.len(), lines.len()), (2, 2));
        for (run, line) in runs.iter().zip(&lines) {
            for same in ["method", "text", "syntactic", "stuck", "log_prob"] {
                assert_eq!(run[same], line[same], "{same}");
            }
            let events = run["events"].as_array().unwrap();
            let count = |name: &str| events.iter().filter(|event| event[0] == name).count() as u64;
            assert_eq!(count("asked"), line["model_calls"]);
            assert_eq!(count("asked"), run["answers"].as_array().unwrap().len() as u64);
            assert_eq!(count("refused"), line["refused"]);
            assert_eq!(count("refused") + count("kept"), line["proposals"]);
            let last: Vec<Option<u64>> = serde_json::from_value(run["final"].clone()).unwrap();
            assert_eq!(replayed(run, 20, events.len()), last);
            assert!(last.iter().flatten().all(|token| data["tokens"].get(token.to_string()).is_some()));
            for (_, likeliest) in run["answers"].as_array().unwrap().iter().flat_map(|answer| {
                serde_json::from_value::<Vec<(usize, Vec<(u64, f64)>)>>(answer.clone()).unwrap()
            }) {
                assert!(likeliest.is_sorted_by(|a, b| a.1 >= b.1), "{likeliest:?}");
                assert!(likeliest.iter().map(|(_, probability)| probability).sum::<f64>() < 1.001);
                assert!(likeliest.iter().all(|(token, _)| data["tokens"].get(token.to_string()).is_some()));
            }
        }
    }
}

/// The page as a browser shows it, at a place that the fragment of its address names.
fn dom(browser: &str, folder: &Folder, path: &str, fragment: &str) -> String {
    let profile = format!("--user-data-dir={}", folder.missing("profile"));
    let switches =
        ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=120000", "--dump-dom"];
    let address = format!("file://{path}#{fragment}");
    let output = Command::new(browser).args(switches).args([&profile, &address]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What stands in the slots of a page.
fn slots_of(dom: &str) -> Vec<String> {
    let (_, rest) = dom.split_once("<div id=\"canvas\">").unwrap();
    let (canvas, _) = rest.split_once("</div>").unwrap();
    let slots =
        canvas.split("<span").skip(1).map(|span| span.split_once('>').unwrap().1.split_once('<').unwrap().0);
    slots.map(str::to_owned).collect()
}

#[test]
fn a_browser_replays_the_page() {
    let Some(browser) = browser::installed() else { return };
    let folder = Folder::new();
    let (path, data, _) = page(&folder, &["--task", "arithmetic", "--slots", "20", "--prompt", HOSTILE]);
    let shown = |slots: Vec<Option<u64>>| -> Vec<String> {
        let eos = &data["eos"][0];
        let shown = |slot: Option<u64>| match slot {
            None => "▢".to_owned(),
            Some(token) if *eos == token => "∎".to_owned(),
            Some(token) => data["tokens"][token.to_string()].as_str().unwrap().trim_matches('"').to_owned(),
        };
        slots.into_iter().map(shown).collect()
    };
    for (number, run) in data["runs"].as_array().unwrap().iter().enumerate() {
        let n_events = run["events"].as_array().unwrap().len();
        let at = n_events / 2;
        let middle = dom(browser, &folder, &path, &format!("run={number}&event={at}&slot=0"));
        assert_eq!(slots_of(&middle), shown(replayed(run, 20, at)));
        assert!(middle.contains(&format!("event {at} of {n_events}")), "{middle}");
        let (_, pane) = middle.split_once("<div id=\"slot\"").unwrap();
        let (pane, _) = pane.split_once("<section>").unwrap();
        assert!(pane.contains("slot 0 "), "{pane}");
        // Whatever the prompt says is text.
        assert!(
            middle.contains("&lt;/script&gt;&lt;script&gt;") && middle.contains("<title>Anygram"),
            "{middle}"
        );
    }
    // What the model gives the first slot, and how many tokens are admissible there, before anything was
    // kept.
    let run = &data["runs"][0];
    let events = run["events"].as_array().unwrap();
    let restricted = events.iter().position(|event| event[0] == "restricted").unwrap();
    let (slot, left) = (&events[restricted][1][0][0], &events[restricted][1][0][1]);
    let pointed = dom(browser, &folder, &path, &format!("event={}&slot={slot}", restricted + 1));
    assert!(pointed.contains(&format!("{left} of {} tokens admissible", data["vocabulary"])), "{pointed}");
    let answer = run["answers"][0].as_array().unwrap().iter().find(|answer| answer[0] == *slot).unwrap();
    let (token, probability) = (&answer[1][0][0], answer[1][0][1].as_f64().unwrap());
    let percent = if probability < 0.1 {
        format!("{:.2} %", 100.0 * probability)
    } else {
        format!("{:.1} %", 100.0 * probability)
    };
    assert!(pointed.contains(&percent), "{percent} for token {token} in {pointed}");
    // It plays to the end by itself, and says what came out.
    let played = dom(browser, &folder, &path, "play");
    assert_eq!(slots_of(&played), shown(replayed(run, 20, events.len())));
    assert!(played.contains(">a sentence<"), "{played}");
}
