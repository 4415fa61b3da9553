//! Running the program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// Words of small letters, and lists of them in parentheses. Blanks are ignored.
pub const LISTS: &str =
    "start: item\nitem: WORD | \"(\" (item (\",\" item)*)? \")\"\nWORD: /[a-z]+/\n%ignore / +/\n";

/// What became of a run.
#[derive(Debug)]
pub struct Output {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Standard output as JSON values, one a line.
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        self.stdout.lines().map(parse).collect()
    }

    /// Asserts bad input: exit status 2, a complaint with these words, no panic.
    pub fn is_bad_input(&self, words: &[&str]) {
        assert_eq!(self.status, Some(2), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in {}", self.stderr);
        }
    }
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anygram"));
    command.args(arguments).env_remove("CLICOLOR_FORCE");
    command
}

pub fn anygram(arguments: &[&str]) -> Output {
    anygram_with(arguments, b"")
}

/// Runs the program with a standard input.
pub fn anygram_with(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = command(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It may stop reading early.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Output {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder of files for one test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The path of a file that is not there.
    pub fn missing(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
