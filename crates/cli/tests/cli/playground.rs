//! `anygram serve`: its answers are those of `batch`, it refuses who is no page of its own, and the page
//! works in a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::run::{Folder, LISTS, anygram, anygram_with, command};

/// A server that runs.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut command = command(&[&["serve", "--port", "0"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().to_owned();
        assert!(address.starts_with("http://127.0.0.1:") && address.ends_with('/'), "{address:?}");
        Self { child, address }
    }

    fn host(&self) -> &str {
        self.address.trim_start_matches("http://").trim_end_matches('/')
    }

    /// What is answered to these bytes: the status, and all that follows the head.
    fn send(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        // It may stop reading early.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn request(&self, line: &str, headers: &[&str], body: &str) -> (u16, String) {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let request = format!("{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        self.send(request.as_bytes())
    }

    fn get(&self, path: &str) -> String {
        let (status, body) = self.request(&format!("GET {path}"), &[&format!("Host: {}", self.host())], "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The answers to questions.
    fn ask(&self, questions: &[Value]) -> Vec<Value> {
        let lines: Vec<String> = questions.iter().map(Value::to_string).collect();
        let headers = [&*format!("Host: {}", self.host()), "Content-Type: application/x-ndjson"];
        let (status, body) = self.request("POST /batch", &headers, &lines.join("\n"));
        assert_eq!(status, 200, "{body}");
        let answers: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), questions.len());
        answers
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers without their times.
fn timeless(answers: Vec<Value>) -> Vec<Value> {
    let without = |mut answer: Value| {
        let fields = answer.as_object_mut().unwrap();
        assert!(fields.remove("us").is_some());
        fields.remove("compile_us");
        answer
    };
    answers.into_iter().map(without).collect()
}

#[test]
fn answers_are_those_of_batch() {
    let lists = |question: Value| {
        let mut question = question;
        (question["grammar"], question["format"]) = (json!(LISTS), json!("lark"));
        question
    };
    let mut questions: Vec<Value> = [
        json!({"id": 1, "op": "text", "text": "(a, b", "want": ["explain", "tree"]}),
        json!({"id": [2], "op": "text", "text": "(a, b)", "want": ["explain", "tree"]}),
        json!({"id": "3", "op": "text", "text": "(a]"}),
        json!({"op": "mask", "text": "(a, ", "want": ["allowed", "forced", "minimum"]}),
        json!({"op": "mask", "text": "(a, é", "want": ["counts"]}),
        json!({"op": "mask", "text": "(a", "show": {"most": 7, "order": "varied", "search": "b"}}),
        json!({"op": "canvas", "slots": [null, "*", null], "want": ["completable", "witness", "minimum"]}),
        json!({"op": "canvas", "slots": [null, null, null], "want": ["admissible"], "show": {"most": 3}}),
        json!({"op": "grammar", "want": ["facts", "warnings", "hints", "examples"], "count": 3, "seed": 5}),
        json!({"op": "tokens", "text": "(ab)"}),
        json!({"op": "nonsense"}),
    ]
    .map(lists)
    .into();
    questions.push(json!({"id": 4, "op": "text", "grammar": "start: x", "format": "lark", "text": ""}));
    let lines: Vec<String> = questions.iter().map(Value::to_string).collect();
    let batch = anygram_with(&["batch"], lines.join("\n").as_bytes()).json_lines();
    let server = Server::start(&[]);
    assert_eq!(timeless(server.ask(&questions)), timeless(batch));
}

#[test]
fn who_is_no_page_of_ours_is_refused() {
    let server = Server::start(&[]);
    let host = format!("Host: {}", server.host());
    let (port, json) = (server.host().split_once(':').unwrap().1, "Content-Type: application/x-ndjson");
    let question = r#"{"op":"tokens"}"#;
    let is = |status: u16, answer: (u16, String), word: &str| {
        assert!(answer.0 == status && answer.1.contains(word), "{status}, {word:?}: {answer:?}");
    };
    is(200, server.request("POST /batch", &[&host, json], question), "size");
    let ours = format!("Origin: http://localhost:{port}");
    let local = format!("Host: localhost:{port}");
    is(
        200,
        server.request("POST /batch", &[&local, &ours, "Sec-Fetch-Site: same-origin", json], question),
        "size",
    );
    // A name of somebody else that points to this machine.
    is(421, server.request("GET /", &[&format!("Host: evil.example:{port}")], ""), "127.0.0.1");
    is(421, server.request("GET /", &["Host: 127.0.0.1:1"], ""), "127.0.0.1");
    is(421, server.request("GET /", &[], ""), "127.0.0.1");
    is(421, server.request("GET /", &[&host, &host], ""), "127.0.0.1");
    // Pages of others, which a browser lets send simple requests.
    is(
        403,
        server.request("POST /batch", &[&host, "Origin: http://evil.example", json], question),
        "other pages",
    );
    is(403, server.request("POST /batch", &[&host, "Origin: null", json], question), "other pages");
    is(403, server.request("GET /start.json", &[&host, "Sec-Fetch-Site: cross-site"], ""), "other pages");
    is(415, server.request("POST /batch", &[&host, "Content-Type: text/plain"], question), "x-ndjson");
    // But a link may lead here.
    let visit = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"];
    is(200, server.request("GET /?x", &[&host, visit[0], visit[1]], ""), "<title>");
}

#[test]
fn bad_requests_get_an_answer_and_harm_nobody() {
    let server = Server::start(&[]);
    let host = format!("Host: {}\r\n", server.host());
    let is = |status: u16, request: &[u8]| {
        let (was, body) = server.send(request);
        assert_eq!(was, status, "{}: {body}", String::from_utf8_lossy(&request[..request.len().min(80)]));
    };
    is(400, b"what is this?\r\n\r\n");
    is(400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n");
    is(404, format!("GET /../etc/passwd HTTP/1.1\r\n{host}\r\n").as_bytes());
    is(405, format!("GET /batch HTTP/1.1\r\n{host}\r\n").as_bytes());
    is(405, format!("DELETE / HTTP/1.1\r\n{host}\r\n").as_bytes());
    is(411, format!("POST /batch HTTP/1.1\r\n{host}\r\n").as_bytes());
    is(411, format!("POST /batch HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").as_bytes());
    for length in ["-1", "1, 1", "", "1\r\nContent-Length: 2"] {
        is(400, format!("POST /batch HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n12").as_bytes());
    }
    for length in ["8388609", "99999999999999999999999"] {
        is(413, format!("POST /batch HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n").as_bytes());
    }
    is(431, format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(20_000)).as_bytes());
    is(400, format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(100)).as_bytes());
    let many = vec![json!({"op": "tokens"}).to_string(); 257].join("\n");
    let headers = [&*format!("Host: {}", server.host()), "Content-Type: application/x-ndjson"];
    assert_eq!(server.request("POST /batch", &headers, &many).0, 413);
    // Half of a request, and none at all.
    drop(TcpStream::connect(server.host()).unwrap());
    TcpStream::connect(server.host()).unwrap().write_all(b"GET / HT").unwrap();
    // What is no question is answered as `batch` does.
    let (_, body) = server.request("POST /batch", &headers, "nonsense\n\n{\"id\":7,\"op\":\"tokens\"}\n");
    let answers: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers[0]["error"].is_string() && answers[1]["id"] == 7 && answers.len() == 2, "{body}");
}

#[test]
fn what_takes_too_long_is_a_limit() {
    let slow = ["--patience", "1", "--engine", "reference", "--limit", "mask_steps=1000000000000000"];
    let server = Server::start(&slow);
    let ask = |text: &str| {
        json!({"id": text.len(), "op": "text", "text": text, "format": "lark",
            "grammar": "start: start start | start start start | \"a\"", "want": ["explain"]})
    };
    let answers = server.ask(&[ask("aa"), ask(&"a".repeat(20_000)), ask("a")]);
    assert_eq!((&answers[0]["id"], &answers[0]["sentence"]), (&json!(2), &json!(true)));
    for (answer, id) in answers[1..].iter().zip([20_000, 1]) {
        assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("limit")), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("within 1 s"), "{answer}");
    }
    // Who asks next is answered.
    assert_eq!(server.ask(&[ask("a")])[0]["sentence"], true);
}

/// The processes that answer are ended from outside: between questions, and within one.
#[cfg(target_os = "linux")]
#[test]
fn who_answers_may_be_ended() {
    let server = Server::start(&["--engine", "reference", "--limit", "mask_steps=1000000000000000"]);
    let end_all = || {
        let id = server.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let children: Vec<&str> = children.split_whitespace().collect();
        assert!(!children.is_empty());
        assert!(std::process::Command::new("kill").arg("-9").args(&children).status().unwrap().success());
        // Until nothing is left of them, or all but their exit status.
        for child in children {
            let is_there = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            while !["", "Z"].contains(&is_there().rsplit(") ").next().unwrap().get(..1).unwrap_or_default()) {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    };
    let ask = |text: &str| {
        json!({"id": 1, "op": "text", "text": text, "format": "lark",
            "grammar": "start: start start | start start start | \"a\"", "want": ["explain"]})
    };
    assert_eq!(server.ask(&[ask("a")])[0]["sentence"], true);
    end_all();
    assert_eq!(server.ask(&[ask("aa")])[0]["sentence"], true);
    let answer = std::thread::scope(|scope| {
        let long = scope.spawn(|| server.ask(&[ask(&"a".repeat(20_000))]).remove(0));
        std::thread::sleep(std::time::Duration::from_millis(500));
        end_all();
        long.join().unwrap()
    });
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("has ended")), "{answer}");
    assert_eq!(server.ask(&[ask("aaa")])[0]["sentence"], true);
}

#[test]
fn what_cannot_be_served_is_bad_input() {
    let server = Server::start(&[]);
    let port = server.host().split_once(':').unwrap().1;
    anygram(&["serve", "--port", port]).is_bad_input(&["taken", port, "--port 0"]);
    anygram(&["serve", "--port", "0", "-g", "missing.lark"]).is_bad_input(&["missing.lark"]);
    anygram(&["serve", "--port", "0", "-v", "missing.json"]).is_bad_input(&["missing.json"]);
    anygram(&["serve", "--port", "0", "--patience", "0"]).is_bad_input(&["--patience"]);
    let folder = Folder::new();
    let grammar = folder.file("g.xyz", "start: \"a\"");
    anygram(&["serve", "--port", "0", "-g", &grammar]).is_bad_input(&["g.xyz", "--format"]);
}

/// Every example of the gallery compiles, its text begins a sentence but for one, and its canvas can be
/// completed.
#[test]
fn the_gallery_shows_what_it_says() {
    let folder = Folder::new();
    let opened = folder.file("mine.lark", LISTS);
    let server = Server::start(&["-g", &opened]);
    let start: Value = serde_json::from_str(&server.get("/start.json")).unwrap();
    assert_eq!(start["opened"], json!({"format": "lark", "grammar": LISTS}));
    let examples: Value = serde_json::from_str(&server.get("/examples.json")).unwrap();
    let examples = examples.as_array().unwrap();
    assert!(examples.len() >= 5);
    for example in examples {
        let mut about = json!({"grammar": example["grammar"], "format": example["format"]});
        if let Some(options) = example["options"].as_str() {
            about["options"] = serde_json::from_str(options).unwrap();
        }
        let with = |fields: Value| {
            let mut question = about.clone();
            question.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            question
        };
        let (mut slots, text) = (Vec::new(), example["canvas"].as_str().unwrap());
        for part in text.split_inclusive(['▢', '…']) {
            let fixed = part.trim_end_matches(['▢', '…']);
            let tokens = server.ask(&[json!({"op": "tokens", "text": fixed})])[0]["tokens"].clone();
            slots.extend(tokens.as_array().unwrap().iter().cloned());
            match part.chars().last() {
                Some('▢') => slots.push(Value::Null),
                Some('…') => slots.push(json!("*")),
                _ => {}
            }
        }
        let answers = server.ask(&[
            with(json!({"op": "grammar", "want": ["warnings", "hints"]})),
            with(json!({"op": "text", "text": example["text"]})),
            with(json!({"op": "canvas", "slots": slots})),
        ]);
        let id = &example["id"];
        assert!(answers[0]["error"].is_null(), "{id}: {}", answers[0]);
        assert_eq!(answers[0]["warnings"].as_array().unwrap().is_empty(), id != "doubtful", "{}", answers[0]);
        assert_eq!(answers[1]["viable"], id != "sql", "{id}: {}", answers[1]);
        assert_eq!(answers[2]["completable"], true, "{id}: {}", answers[2]);
    }
}

/// Waits until all questions of the page are answered.
fn settle(browser: &mut Browser) {
    browser.wait("document.body?.getAttribute('aria-busy') === 'false'");
}

/// What an element shows.
fn shown(browser: &mut Browser, id: &str) -> String {
    let text = browser.value(&format!("document.getElementById('{id}').innerText"));
    text.as_str().unwrap_or_else(|| panic!("no {id}")).to_owned()
}

/// Presses Tab until an element has the focus, as who has no mouse does.
fn tab_to(browser: &mut Browser, id: &str) {
    for _ in 0..60 {
        browser.key("Tab", false);
        if browser.value("document.activeElement.id") == id {
            return;
        }
    }
    panic!("Tab does not lead to {id}");
}

#[test]
fn the_page_works_by_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let server = Server::start(&[]);
    browser.resize(1280, 900, false);
    browser.open(&format!("{}#example=arithmetic", server.address));
    browser.wait("document.getElementById('text-verdict')?.innerText.includes('not a sentence yet')");
    // A grammar with a mistake: the line, the caret, and what is wrong.
    tab_to(&mut browser, "grammar");
    browser.key("a", true);
    browser.text("start: \"(\" start \")\"\n    | word\n");
    browser.wait("document.getElementById('remarks').innerText.includes('`word` is not defined')");
    let remarks = shown(&mut browser, "remarks");
    assert!(remarks.contains("2:7") && remarks.contains("    | word\n      ^^^^"), "{remarks}");
    assert_eq!(browser.value("document.querySelector('#grammar-pane .marks .error').textContent"), "word");
    assert_eq!(browser.value("document.getElementById('text-panel').className"), "stale");
    // It is corrected, and the text is one of another language now.
    browser.key("a", true);
    browser.text("start: \"(\" start \")\" | word\nword: \"x\"\nunused: word\n");
    browser.wait("document.getElementById('grammar-verdict').innerText.includes('1 warning')");
    assert!(shown(&mut browser, "remarks").contains("3:1 warning: the rule `unused` is never used"));
    browser.wait("document.getElementById('text-verdict').innerText.includes('stops at 1:2')");
    assert_eq!(browser.value("document.getElementById('text-panel').className"), "");
    // A text, its mask, and what it must go on with.
    tab_to(&mut browser, "text");
    browser.key("a", true);
    browser.text("((x");
    browser.wait("document.getElementById('forced').innerText === 'forced: ))'");
    assert!(
        shown(&mut browser, "mask-facts").starts_with("2 tokens of 1,508 may come next. At least 1 token")
    );
    assert_eq!(shown(&mut browser, "expected"), "Expected: \")\"");
    assert_eq!(shown(&mut browser, "mask"), ")\n))");
    assert!(shown(&mut browser, "tree-what").contains("“))” added"));
    // The mask follows the caret.
    browser.key("ArrowLeft", false);
    browser.wait("document.getElementById('expected').innerText.includes('\"x\"')");
    let counts = browser.value("[...document.querySelectorAll('#steps i')].map((each) => each.innerText)");
    assert_eq!(counts.as_array().map(Vec::len), Some(4), "{counts}");
    browser.key("End", false);
    browser.wait("document.getElementById('forced').innerText === 'forced: ))'");
    browser.key("Enter", true);
    browser.wait("document.getElementById('text-verdict').innerText === '✓ a sentence'");
    assert_eq!(browser.value("document.getElementById('text').value"), "((x))");
    assert!(shown(&mut browser, "tree").starts_with("start 0–5\n\"(\" ( 0–1\nstart 1–4"), "the tree");
    // The tree is folded by keys, and what has the focus is marked in the text.
    browser.value("document.querySelector('#tree summary').focus()");
    assert_eq!(browser.value("document.querySelector('#text-panel .marks .here').textContent"), "((x))");
    browser.key("Enter", false);
    assert_eq!(browser.value("document.querySelector('#tree details').open"), false);
    by_keyboard_on_the_canvas(&mut browser);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

fn by_keyboard_on_the_canvas(browser: &mut Browser) {
    browser.value("document.getElementById('text-tab').focus()");
    browser.key("ArrowRight", false);
    assert_eq!(browser.value("document.activeElement.id"), "canvas-tab");
    tab_to(browser, "canvas");
    browser.key("a", true);
    browser.text("(▢x▢)");
    browser.wait("document.getElementById('canvas-verdict').innerText.includes('can be completed')");
    settle(browser);
    assert_eq!(shown(browser, "slots"), "(\n▢\n2\nx\n▢\n2\n)");
    assert!(shown(browser, "slot-title").starts_with("Slot 1: 2 admissible tokens"));
    let sample = shown(browser, "sample");
    assert!(["((x))", "(((x)))"].contains(&&*sample), "{sample}");
    // The next stop is the row of slots; from a hole to its tokens, and one of them is set.
    browser.key("Tab", false);
    browser.key("ArrowRight", false);
    browser.key("ArrowRight", false);
    browser.wait("document.getElementById('slot-title').innerText.startsWith('Slot 3: 2 admissible')");
    browser.key("Enter", false);
    assert_eq!(browser.value("document.activeElement.id"), "slot-search");
    browser.key("Enter", false);
    browser.wait("document.getElementById('canvas').value === '(▢x))'");
    settle(browser);
    browser.wait("document.getElementById('canvas-verdict').innerText.includes('can be completed')");
    // A hole again, then a gap, whose number of tokens is counted.
    browser.key("Delete", false);
    browser.wait("document.getElementById('canvas').value === '(▢x▢)'");
    browser.value("document.getElementById('slot-gap').click()");
    browser.wait("document.getElementById('gap-counts').innerText.includes('1 ✓')");
    let counts = shown(browser, "gap-counts");
    assert!(counts.contains("0 ✗") && counts.contains("2 ✓") && counts.contains("3 ✗"), "{counts}");
    browser.value("document.getElementById('fill').click()");
    browser.wait("/^(\\(\\(x\\)\\)|\\(\\(\\(x\\)\\)\\))$/.test(document.getElementById('canvas').value)");
}

/// What is saved can be opened, an address too, and nothing of it is read as HTML.
#[test]
fn a_page_can_be_kept() {
    let Some(mut browser) = Browser::start() else { return };
    let (server, folder) = (Server::start(&[]), Folder::new());
    browser.open(&format!("{}#example=canvas", server.address));
    browser.wait("document.getElementById('canvas-verdict')?.innerText.includes('can be completed')");
    browser.value("document.querySelectorAll('#admissible button')[1].click()");
    settle(&mut browser);
    let text = browser.value("document.getElementById('canvas').value");
    let address = browser.value("toFragment().then((fragment) => location.origin + '/#' + fragment)");
    browser.open(address.as_str().unwrap());
    browser.wait("document.getElementById('canvas-verdict')?.innerText.includes('can be completed')");
    assert_eq!(browser.value("document.getElementById('canvas').value"), text);
    assert_eq!(browser.value("document.querySelectorAll('.slots .chosen-token').length"), 1);
    // Without an address it is as it was left.
    settle(&mut browser);
    browser.open(&server.address);
    browser.wait("Boolean(document.getElementById('canvas')?.value)");
    assert_eq!(browser.value("document.getElementById('canvas').value"), text);
    // The same in a file; what is none is told apart.
    let written = browser.value("written()");
    browser.open(&format!("{}#example=sql", server.address));
    browser.wait("document.getElementById('text-verdict')?.innerText.includes('stops at')");
    browser.choose_file("file", &folder.file("mine.json", written.as_str().unwrap()));
    browser.wait("document.getElementById('notice').innerText === 'opened mine.json'");
    assert_eq!(browser.value("document.getElementById('canvas').value"), text);
    browser.choose_file("file", &folder.file("other.json", "{}"));
    browser.wait("document.getElementById('notice').innerText.includes('was not saved here')");
    // Where tokens are others, the slots are cut again from the text.
    let other = "({ ...JSON.parse(written()), vocabulary: 'another', slots: [[7, '\"x\"']], canvas: '▢[▢' })";
    browser.value(&format!("open({other})"));
    settle(&mut browser);
    assert_eq!(browser.value("canvas.slots.length"), 3);
    // A hostile page: what it has is text, and what it lacks is as usual.
    let grammar = "start: \"<img src=x onerror=document.title='x'>\"";
    let hostile = json!({"grammar": grammar, "text": "<img src=x>", "slots": [[1]], "tab": 7});
    browser.value(&format!("open({hostile})"));
    browser.wait("document.getElementById('text-verdict').innerText.includes('stops at 1:11')");
    assert!(shown(&mut browser, "notes").contains("onerror"));
    assert_eq!(
        browser.value("document.querySelectorAll('img').length + document.title"),
        "0Anygram: playground"
    );
    browser.open(&format!("{}#page=bm9uc2Vuc2U", server.address));
    browser.wait("document.getElementById('notice')?.innerText.includes('no page that can be read')");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

/// A window, dark if it is that of a phone, and nothing on the page is wider.
fn fits(browser: &mut Browser, (width, height, is_phone): (u32, u32, bool)) {
    browser.resize(width, height, is_phone);
    browser.darken(is_phone);
    assert_eq!(browser.value("document.documentElement.scrollWidth"), width);
    let back = browser.value("getComputedStyle(document.body).backgroundColor");
    assert_eq!(back, if is_phone { "rgb(20, 22, 26)" } else { "rgb(246, 247, 249)" });
}

/// On a phone nothing is wider than the window. With ANYGRAM_PICTURES=docs this draws the pictures of
/// docs/playground.md.
#[test]
fn every_example_fits_into_its_window() {
    let Some(mut browser) = Browser::start() else { return };
    let server = Server::start(&[]);
    let examples: Value = serde_json::from_str(&server.get("/examples.json")).unwrap();
    let ids: Vec<&str> =
        examples.as_array().unwrap().iter().map(|each| each["id"].as_str().unwrap()).collect();
    let folder = std::env::var_os("ANYGRAM_PICTURES");
    let picture = |browser: &mut Browser, name: &str| {
        if let Some(folder) = &folder {
            // Tests run in the folder of their package.
            browser.picture(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder).join(name));
        }
    };
    for id in &ids {
        browser.resize(1240, 840, false);
        browser.open(&format!("{}#example={id}", server.address));
        browser.wait("document.getElementById('grammar-verdict')?.innerText.startsWith('✓')");
        settle(&mut browser);
        fits(&mut browser, (1240, 840, false));
        if *id == "sql" {
            picture(&mut browser, "playground-text.png");
        }
        if *id == "statement" {
            browser.value("document.getElementById('canvas-tab').click()");
            settle(&mut browser);
            assert!(shown(&mut browser, "gap-counts").contains("8 ✓"));
            picture(&mut browser, "playground-canvas.png");
        }
        fits(&mut browser, (390, 844, true));
        if *id == "schema" {
            browser.value("document.getElementById('work').scrollIntoView()");
            picture(&mut browser, "playground-phone.png");
        }
    }
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}
