//! Results as a file of JSON Lines: each is appended as soon as it is known, so that a crash, a hang or the
//! end of a lease loses nothing.
//!
//! A restarted run with the same file continues after the last part that ended. A part that began and did not
//! end is recorded as failed and not tried again: whatever stopped it would stop it again.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// One line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// A process begins to measure.
    Run(Run),
    /// A part begins; `Done`, `Failed` or `LeftOut` follows unless the process dies.
    Begun { part: String },
    /// A part is done.
    Done { part: String, seconds: f64 },
    /// A part ended with a wrong answer or an error.
    Failed { part: String, why: String },
    /// A part was not measured.
    LeftOut { part: String, why: String },
    /// A time.
    Row(Row),
    /// Work on the way to a first mask.
    Preparation { part: String, of: String, what: String, ms: Option<f64> },
    /// A curve.
    Curve(Curve),
    /// The tests of the kernels, natively.
    Suite { passed: usize, failed: Vec<String>, not_run: Option<String>, seconds: f64 },
    /// A tool of compute-sanitizer over some of the tests.
    Sanitizer { tool: String, outcome: String, seconds: f64, output: String },
}

/// Where and of what a measurement is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    pub device: String,
    pub driver: String,
    pub cpu: String,
    pub commit: String,
    pub date: String,
    pub is_quick: bool,
}

/// The median times of one kind of work, in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    pub part: String,
    pub work: String,
    /// The line of the table that `auto` reads, if the work is one of its kinds.
    pub auto: Option<String>,
    /// What the project aims at on an H200, and what the paper has on an H100.
    pub aim: Option<f64>,
    pub paper: Option<f64>,
    /// By the events of the device around the launches of a call, by the host's clock around the call, and by
    /// one thread of the CPU for the same work.
    pub device: f64,
    pub call: f64,
    pub cpu: Option<f64>,
    /// The same on texts that the CPU has not read before, where that makes a difference.
    #[serde(default)]
    pub cpu_unseen: Option<f64>,
    /// How many times it was measured, and the 90th percentile of the device's times.
    pub runs: usize,
    pub device_p90: f64,
}

/// A curve of medians.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curve {
    pub part: String,
    /// The drawing that it belongs to.
    pub figure: String,
    /// Curves of one group share a colour.
    pub group: String,
    pub label: String,
    pub points: Vec<(f64, f64)>,
}

/// How a part of the file ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    Failed,
    LeftOut,
}

/// The file, and what it holds.
pub struct Journal {
    path: Option<PathBuf>,
    pub records: Vec<Record>,
}

/// The records of a file.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let source = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut records = Vec::new();
    let mut lines = source.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            // A process that is killed may leave half a line.
            Err(_) if lines.peek().is_none() && !source.ends_with('\n') => {}
            Err(error) => bail!("{}, line {}: {error}", path.display(), at + 1),
        }
    }
    Ok(records)
}

impl Journal {
    /// Results that are kept in memory only.
    pub fn in_memory() -> Self {
        Self { path: None, records: Vec::new() }
    }

    /// A file that is there already, or will be. Half a line at its end is cut off.
    pub fn open(path: &Path) -> Result<Self> {
        let mut journal = Self { path: Some(path.to_owned()), records: Vec::new() };
        if path.exists() {
            journal.records = read(path)?;
            let lines = journal.records.iter().map(line).collect::<Result<Vec<_>>>()?;
            std::fs::write(path, lines.concat()).with_context(|| path.display().to_string())?;
        }
        Ok(journal)
    }

    /// Adds a record, and sees to it that it is on the disk.
    pub fn append(&mut self, record: Record) -> Result<()> {
        if let Some(path) = &self.path {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let write = |mut file: File, line: String| {
                file.write_all(line.as_bytes())?;
                file.sync_data()
            };
            file.and_then(|file| write(file, line(&record).map_err(std::io::Error::other)?))
                .with_context(|| path.display().to_string())?;
        }
        self.records.push(record);
        Ok(())
    }

    /// How a part ended, if it did.
    pub fn outcome(&self, name: &str) -> Option<Outcome> {
        self.records.iter().find_map(|record| match record {
            Record::Done { part, .. } if part == name => Some(Outcome::Done),
            Record::Failed { part, .. } if part == name => Some(Outcome::Failed),
            Record::LeftOut { part, .. } if part == name => Some(Outcome::LeftOut),
            _ => None,
        })
    }

    /// The part that began last, if it did not end.
    pub fn unfinished(&self) -> Option<String> {
        let last = self.records.iter().rev().find_map(|record| match record {
            Record::Begun { part } => Some(part.clone()),
            _ => None,
        });
        last.filter(|part| self.outcome(part).is_none())
    }

    /// What ran last.
    pub fn run(&self) -> Option<&Run> {
        self.records.iter().rev().find_map(|record| match record {
            Record::Run(run) => Some(run),
            _ => None,
        })
    }
}

fn line(record: &Record) -> Result<String> {
    Ok(format!("{}\n", serde_json::to_string(record)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(part: &str) -> Record {
        Record::Done { part: part.to_owned(), seconds: 1.0 }
    }

    #[test]
    fn a_file_goes_on_where_it_was_cut_off() {
        let path = std::env::temp_dir().join(format!("anygram-journal-{}.jsonl", std::process::id()));
        let mut journal = Journal::open(&path).unwrap();
        journal.append(Record::Begun { part: "a".to_owned() }).unwrap();
        journal.append(done("a")).unwrap();
        journal.append(Record::Begun { part: "b".to_owned() }).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"kind\":\"do")).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!((journal.outcome("a"), journal.outcome("b")), (Some(Outcome::Done), None));
        assert_eq!(journal.unfinished().as_deref(), Some("b"));
        journal.append(Record::Failed { part: "b".to_owned(), why: "killed".to_owned() }).unwrap();
        assert_eq!(read(&path).unwrap().len(), 4);
        assert_eq!(Journal::open(&path).unwrap().unfinished(), None);
        std::fs::write(&path, "{}\n{}\n").unwrap();
        assert!(Journal::open(&path).is_err_and(|error| error.to_string().contains("line 1")));
        std::fs::remove_file(&path).unwrap();
    }
}
