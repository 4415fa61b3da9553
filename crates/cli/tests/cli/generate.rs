use std::path::Path;

use serde_json::Value;

use crate::browser::Browser;
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
        let facts: Vec<(String, String)> = serde_json::from_value(data["facts"].clone()).unwrap();
        assert!(facts.contains(&("prompt".to_owned(), format!("math: {HOSTILE}"))), "{facts:?}");
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

/// What the page shows of a run's canvas after so many events: a text for each slot that has a row.
fn shown(data: &Value, run: &Value, n_events: usize) -> Vec<String> {
    let shown = |slot: Option<u64>| match slot {
        None => "\u{a0}".to_owned(),
        Some(token) if data["eos"][0] == token => "end".to_owned(),
        Some(token) => data["tokens"][token.to_string()].as_str().unwrap().trim_matches('"').to_owned(),
    };
    replayed(run, 20, n_events).into_iter().map(shown).collect()
}

/// How many events belong to the first `n_steps` questions.
fn n_events(run: &Value, n_steps: usize) -> usize {
    let events = run["events"].as_array().unwrap();
    let mut asked = events.iter().enumerate().filter(|(_, event)| event[0] == "asked");
    asked.nth(n_steps).map_or(events.len(), |(at, _)| at)
}

#[test]
fn a_browser_shows_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = Folder::new();
    let arguments = ["--task", "arithmetic", "--slots", "20", "--prompt", HOSTILE, "--method"];
    let (path, data, _) = page(&folder, &[&arguments[..], &["exact,none,compatible"]].concat());
    let address = format!("file://{path}");
    browser.open(&address);
    browser.wait("typeof panels !== 'undefined' && panels.length === 2");
    let runs = data["runs"].as_array().unwrap();
    let n_steps = n_steps(&runs[0]).max(n_steps(&runs[1]));
    // The texts of both sides are those of the step; ends behind the first one are not shown.
    let check = |browser: &mut Browser, run: usize, side: usize, step: usize| {
        let script = format!("[...panels[{side}].text.children].map((slot) => slot.textContent)");
        let is: Vec<String> = serde_json::from_value(browser.value(&script)).unwrap();
        let mut wanted = shown(&data, &runs[run], n_events(&runs[run], step));
        let rest = wanted.split_off(is.len());
        assert_eq!(is, wanted, "step {step}");
        assert!(step < n_steps || rest.iter().all(|slot| slot == "end"), "{rest:?}");
    };
    // It opens on the finished texts, and whatever the prompt says is text.
    check(&mut browser, 0, 0, n_steps);
    check(&mut browser, 1, 1, n_steps);
    assert_eq!(browser.value("document.title"), "Anygram: a replay");
    assert!(browser.value("document.body.innerText").as_str().unwrap().contains("</script><script>"));
    // By keyboard, to both ends and not beyond.
    for step in (1..n_steps).rev().chain([1]) {
        browser.key("ArrowLeft", false);
        check(&mut browser, 0, 0, step);
        check(&mut browser, 1, 1, step);
    }
    browser.key("ArrowDown", false);
    browser.key("ArrowDown", false);
    browser.key("ArrowUp", false);
    let details = |browser: &mut Browser| {
        browser.value("document.getElementById('details').innerText").as_str().unwrap().to_owned()
    };
    assert!(details(&mut browser).contains("slot 1 "), "{}", details(&mut browser));
    // What the model gave that slot, and how many tokens are admissible there.
    let events = runs[0]["events"].as_array().unwrap();
    let restricted = events[..n_events(&runs[0], 1)].iter().rfind(|event| event[0] == "restricted").unwrap();
    let left = restricted[1].as_array().unwrap().iter().find(|left| left[0] == 1).map(|left| &left[1]);
    let admissible = left.map_or(String::new(), |left| format!("{left} of {}", data["vocabulary"]));
    let answer = runs[0]["answers"][0].as_array().unwrap().iter().find(|answer| answer[0] == 1).unwrap();
    let likeliest = data["tokens"][answer[1][0][0].to_string()].as_str().unwrap();
    for part in [&admissible, likeliest] {
        assert!(details(&mut browser).contains(part), "{part} is not in {}", details(&mut browser));
    }
    // Another method on the right; a place that the address names; playing to the end.
    browser.open(&format!("{address}#left=2&right=0&step=2&slot=3"));
    browser.wait("typeof panels !== 'undefined' && panels.length === 2");
    check(&mut browser, 2, 0, 2);
    check(&mut browser, 0, 1, 2);
    browser.open(&format!("{address}#step={}&play", n_steps - 1));
    browser.wait("typeof panels !== 'undefined' && step + 1 === nSteps() && timer === null");
    check(&mut browser, 0, 0, n_steps);
    // On a phone and in the dark nothing is wider than the window.
    for (width, height, is_phone) in [(1280, 1400, false), (390, 844, true)] {
        browser.resize(width, height, is_phone);
        browser.darken(is_phone);
        let widest = browser.value("document.scrollingElement.scrollWidth").as_u64().unwrap();
        assert!(widest <= u64::from(width), "{widest} of {width}");
    }
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
    // With ANYGRAM_PICTURES=docs this draws the picture of docs/python/diffusion.md.
    if let Some(pictures) = std::env::var_os("ANYGRAM_PICTURES") {
        let (path, _, _) = page(&folder, &[]);
        browser.resize(1180, 1150, false);
        browser.darken(false);
        browser.open(&format!("file://{path}"));
        browser.wait("typeof panels !== 'undefined' && panels.length === 2");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(pictures);
        browser.picture(&folder.join("replay.png"));
    }
}

/// Questions to the model.
fn n_steps(run: &Value) -> usize {
    run["answers"].as_array().unwrap().len()
}
