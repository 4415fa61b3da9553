//! Processes that answer questions, so that none can hang, crash or fill the program: what takes too long is
//! ended, and what it had is lost with it.
//!
//! Compiling can be cancelled in the library; reading texts, masks and canvases count their steps for each
//! byte or question, so a hostile grammar and a long text take minutes before a limit is reached. A process
//! can be ended at any time. Each worker is this program with the same options, and speaks `anygram batch`.
//!
//! What stays true: there are at most [`WORKERS`]; one that is lent answers one request, and is idle or gone
//! afterwards. The one that was idle last is lent first, since it has the last grammar compiled.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::commands::batch::{Unanswered, unanswered};

/// Requests that are answered at once.
const WORKERS: usize = 2;
/// Questions of one request.
const QUESTIONS: usize = 256;
/// How long a worker may take to load its vocabulary.
const LOADING: Duration = Duration::from_secs(120);

/// All workers.
pub struct Workers {
    patience: Duration,
    state: Mutex<State>,
    /// That a worker is idle or gone.
    changed: Condvar,
}

struct State {
    idle: Vec<Worker>,
    /// Those that are lent, or being started.
    n_lent: usize,
}

/// Why there are no answers.
pub enum Busy {
    /// No worker got free in time.
    Workers,
    TooMany {
        most: usize,
    },
    /// No worker could be started.
    Broken(anyhow::Error),
}

/// One process.
struct Worker {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<Vec<u8>>,
    /// What it complained about, once it has ended.
    complaints: JoinHandle<String>,
}

/// Why a worker did not answer.
enum Stop {
    Late,
    Ended,
}

impl Workers {
    /// Workers that are given up when a request takes longer. The first is started, so that it is said what
    /// is wrong with the vocabulary or the options.
    pub fn new(patience: Duration) -> Result<Self> {
        let first = Worker::start()?;
        Ok(Self {
            patience,
            state: Mutex::new(State { idle: vec![first], n_lent: 0 }),
            changed: Condvar::new(),
        })
    }

    /// The answers to the questions of one request, one a line, in order.
    pub fn answer(&self, request: &[u8]) -> Result<Vec<u8>, Busy> {
        let lines: Vec<&[u8]> =
            request.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
        if lines.len() > QUESTIONS {
            return Err(Busy::TooMany { most: QUESTIONS });
        }
        let mut worker = Some(self.lend()?);
        let start = Instant::now();
        let mut answers = Vec::new();
        for line in lines {
            let late = || {
                let seconds = self.patience.as_secs();
                Unanswered::Late(format!(
                    "not answered within {seconds} s; ask for less, lower a limit (--limit), or start with a \
                     longer --patience"
                ))
            };
            let answer = match &mut worker {
                Some(worker) => worker.answer(line, self.patience.saturating_sub(start.elapsed())),
                None => Err(Stop::Late),
            };
            let why = match answer {
                Ok(answer) => {
                    answers.extend(answer);
                    continue;
                }
                Err(Stop::Late) => late(),
                Err(Stop::Ended) => {
                    let complaints = worker.take().map(Worker::end).unwrap_or_default();
                    Unanswered::Broken(format!(
                        "the process that was to answer has ended; please report this: {complaints}"
                    ))
                }
            };
            worker.take().map(Worker::end);
            answers.extend(unanswered(line, why, start.elapsed()).map_err(Busy::Broken)?);
        }
        self.give_back(worker);
        Ok(answers)
    }

    /// A worker for one request, which [`Workers::give_back`] ends.
    fn lend(&self) -> Result<Worker, Busy> {
        let is_none = |state: &mut State| state.idle.is_empty() && state.n_lent == WORKERS;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, self.patience, is_none);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if is_none(&mut state) {
            return Err(Busy::Workers);
        }
        state.n_lent += 1;
        while let Some(mut worker) = state.idle.pop() {
            // Somebody may have ended it meanwhile, such as a system without memory.
            if matches!(worker.child.try_wait(), Ok(None)) {
                return Ok(worker);
            }
            worker.end();
        }
        drop(state);
        Worker::start().map_err(|error| {
            self.give_back(None);
            Busy::Broken(error)
        })
    }

    /// Takes a worker back, or that there is one less.
    fn give_back(&self, worker: Option<Worker>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_lent -= 1;
        state.idle.extend(worker);
        drop(state);
        self.changed.notify_one();
    }
}

impl Worker {
    /// Starts one, and waits until it has its vocabulary.
    fn start() -> Result<Self> {
        let program = std::env::current_exe().context("where this program is")?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).arg("--worker");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting this program again")?;
        let (Some(questions), Some(replies), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            bail!("no pipes to a process");
        };
        let (send, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut replies = BufReader::new(replies);
            let mut line = Vec::new();
            // Until it has ended, or nobody wants its answers.
            while replies.read_until(b'\n', &mut line).is_ok_and(|n_read| n_read > 0)
                && send.send(std::mem::take(&mut line)).is_ok()
            {}
        });
        let complaints = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        let mut worker = Self { child, questions, answers, complaints };
        match worker.answer(b"{\"op\":\"tokens\"}", LOADING) {
            Ok(_) => Ok(worker),
            Err(Stop::Late) => {
                worker.end();
                bail!("the vocabulary took more than {} s to load", LOADING.as_secs())
            }
            Err(Stop::Ended) => {
                let complaints = worker.end();
                bail!("{}", complaints.strip_prefix("anygram: ").unwrap_or(&complaints))
            }
        }
    }

    /// The answer to one line.
    fn answer(&mut self, line: &[u8], patience: Duration) -> Result<Vec<u8>, Stop> {
        // It reads the whole line before it answers, so that neither waits for the other.
        let written = self.questions.write_all(line).and_then(|()| self.questions.write_all(b"\n"));
        written.and_then(|()| self.questions.flush()).map_err(|_| Stop::Ended)?;
        self.answers.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => Stop::Late,
            RecvTimeoutError::Disconnected => Stop::Ended,
        })
    }

    /// Ends the process, whatever it does; what it complained about.
    fn end(mut self) -> String {
        drop(self.questions);
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.complaints.join().unwrap_or_default()
    }
}
