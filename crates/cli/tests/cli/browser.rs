//! A browser without a window, driven as a person would: keys, texts, pictures.
//!
//! It is spoken to by the DevTools protocol through two named pipes, which need neither a port nor a library.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::Folder;

/// How long it is waited for something that should be there.
const PATIENCE: Duration = Duration::from_secs(30);

/// The browser of this machine; without one it is said that something is not tested.
pub fn installed() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = names.into_iter().find(is_there);
    if found.is_none() {
        eprintln!("NOT TESTED: no {} here to open the page in", names.join(", "));
    }
    found
}

/// One window.
pub struct Browser {
    child: Child,
    commands: File,
    answers: Receiver<Value>,
    session: Option<String>,
    n_commands: u64,
    /// Errors of scripts, and what the page was not allowed to do.
    complaints: Vec<Value>,
    _folder: Folder,
}

impl Browser {
    /// Starts the browser of this machine, if it has one.
    pub fn start() -> Option<Self> {
        let program = installed()?;
        let folder = Folder::new();
        let [input, output, profile] = ["in", "out", "profile"].map(|name| folder.missing(name));
        assert!(Command::new("mkfifo").args([&input, &output]).status().unwrap().success());
        // A shell passes the pipes on as the files 3 and 4, where the browser looks for them.
        let script = r#"exec 3<"$1" 4>"$2"; shift 2; exec "$@""#;
        let switches =
            ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"];
        let child = Command::new("sh")
            .args(["-c", script, "sh", &input, &output, program])
            .args(switches)
            .args([&format!("--user-data-dir={profile}"), "about:blank"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // In the order in which the shell opens them.
        let commands = File::options().write(true).open(&input).unwrap();
        let mut replies = BufReader::new(File::open(&output).unwrap());
        let (send, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while replies.read_until(0, &mut bytes).is_ok_and(|n_read| n_read > 0) {
                bytes.pop();
                let Ok(value) = serde_json::from_slice(&bytes) else { break };
                if send.send(value).is_err() {
                    break;
                }
                bytes.clear();
            }
        });
        let (session, n_commands, complaints) = (None, 0, Vec::new());
        let mut this = Self { child, commands, answers, session, n_commands, complaints, _folder: folder };
        let targets = this.call("Target.getTargets", json!({}));
        let targets = targets["targetInfos"].as_array().unwrap();
        let page = targets.iter().find(|target| target["type"] == "page").unwrap()["targetId"].clone();
        let attached = this.call("Target.attachToTarget", json!({"targetId": page, "flatten": true}));
        this.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            this.call(domain, json!({}));
        }
        Some(this)
    }

    /// A command of the protocol.
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.n_commands += 1;
        let id = self.n_commands;
        let mut command = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let answer =
                self.answers.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer: {method}"));
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            if answer["method"] == "Runtime.exceptionThrown" || answer["method"] == "Log.entryAdded" {
                self.complaints.push(answer["params"].clone());
            }
        }
    }

    /// Opens an address as if nothing had been opened before.
    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.call("Page.navigate", json!({"url": address}));
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let start = Instant::now();
        while self.value(expression) != true {
            if start.elapsed() > PATIENCE {
                let page = self.value("document.body.innerText");
                panic!(
                    "not true: {expression}\n{}\n{:?}",
                    page.as_str().unwrap_or_default(),
                    self.complaints
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types a text where the focus is.
    pub fn text(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Presses a key, perhaps with Control.
    pub fn key(&mut self, name: &str, with_control: bool) {
        let code = match name {
            "Tab" => 9,
            "Enter" => 13,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Delete" => 46,
            "a" => 65,
            other => panic!("no code of the key {other}"),
        };
        let mut params = json!({"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code});
        params["modifiers"] = json!(if with_control { 2 } else { 0 });
        if name == "Enter" {
            params["text"] = json!("\r");
        }
        if with_control && name == "a" {
            params["commands"] = json!(["selectAll"]);
        }
        self.call("Input.dispatchKeyEvent", params.clone());
        params["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", params);
    }

    /// Chooses a file where one is asked for.
    pub fn choose_file(&mut self, id: &str, path: &str) {
        let expression = json!({"expression": format!("document.getElementById('{id}')")});
        let object = self.call("Runtime.evaluate", expression)["result"]["objectId"].clone();
        self.call("DOM.setFileInputFiles", json!({"files": [path], "objectId": object}));
    }

    /// The size of the window, and whether it is that of a phone.
    pub fn resize(&mut self, width: u32, height: u32, is_phone: bool) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// Whether the system is dark.
    pub fn darken(&mut self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Writes what the window shows.
    pub fn picture(&mut self, path: &Path) {
        let data = self.call("Page.captureScreenshot", json!({"format": "png"}))["data"].clone();
        std::fs::write(path, decoded(data.as_str().unwrap())).unwrap();
    }

    /// What scripts and the rules of the page complained about.
    pub fn complaints(&self) -> &[Value] {
        &self.complaints
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of base64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |letter: u8| -> Option<u32> {
        Some(match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        } as u32)
    };
    let letters: Vec<u32> = text.bytes().filter_map(value).collect();
    let group = |letters: &[u32]| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | letters.get(at).copied().unwrap_or(0));
        let bytes = [bits >> 16, bits >> 8, bits].map(|byte| byte as u8);
        bytes[..letters.len() - 1].to_vec()
    };
    letters.chunks(4).flat_map(group).collect()
}
