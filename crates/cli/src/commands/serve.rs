mod examples;
mod http;
mod workers;

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anygram::{GrammarFormat, LexerMode};
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::batch::Questions;
use crate::input::{GrammarArgs, ReadingArgs, VocabArgs};
use http::{Request, Response};
use workers::{Busy, Workers};

/// Open a playground for grammars in the browser
///
/// A page on the loopback address: a grammar with its errors and warnings; a text with the tokens that may
/// come next after each character, what is expected there, and its parse tree; a canvas whose holes show
/// their admissible tokens. The page asks the questions of `anygram batch`, and works without a network.
///
/// Only programs on this machine reach it. Nothing is written; what a page has is saved by the browser.
/// docs/playground.md shows what one can do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The grammar that the page opens with: a file as the other commands read it. The page does not read
    /// the files that it imports.
    #[arg(short, long, value_name = "FILE")]
    grammar: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    vocab: VocabArgs,
    /// The port; 0 is any that is free.
    #[arg(long, value_name = "N", default_value_t = 4117)]
    port: u16,
    /// Open a browser at the page.
    #[arg(long)]
    open: bool,
    /// Seconds after which a question that is not answered is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
    /// Answers questions for another process of this program.
    #[arg(long, hide = true)]
    worker: bool,
}

const EXAMPLES: &str = "\
Examples:
  anygram serve --open
  anygram serve -g sql.lark
  anygram serve -v tokenizer.json --port 0
  anygram serve --patience 60 --limit canvas_steps=100000000";

/// Connections that are answered at once; more are turned away.
const CONNECTIONS: usize = 32;

/// What answers requests.
struct Server {
    port: u16,
    start: Vec<u8>,
    workers: Workers,
    n_connections: AtomicUsize,
}

pub fn run(args: Args) -> Result<bool> {
    let Args { grammar, reading, vocab, port, open, patience, worker } = args;
    if worker {
        Questions::new(&reading, vocab.vocabulary()?)?.respond_all()?;
        return Ok(true);
    }
    let mut opened = Value::Null;
    if let Some(grammar) = grammar {
        let grammar = GrammarArgs { grammar, reading };
        grammar.refuse_device()?;
        let (source, format) = grammar.source()?;
        opened = json!({"format": format.name(), "grammar": source});
    }
    // A worker says what is wrong with the vocabulary or the options before there is an address.
    let workers = Workers::new(Duration::from_secs(patience))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!("port {port} is taken: choose another, or any with --port 0"),
        _ => anyhow!("port {port}: {error}"),
    })?;
    let port = listener.local_addr()?.port();
    let start = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "vocabulary": vocab.name(),
        "formats": GrammarFormat::ALL.map(GrammarFormat::name),
        "lexers": LexerMode::ALL.map(LexerMode::name),
        "opened": opened,
    });
    let start = start.to_string().into_bytes();
    let server = Arc::new(Server { port, start, workers, n_connections: AtomicUsize::new(0) });
    let address = format!("http://127.0.0.1:{port}/");
    writeln!(anstream::stdout(), "{address}")?;
    std::io::stdout().flush()?;
    if open {
        browse(&address).with_context(|| format!("no browser could be started; open {address} in one"))?;
    }
    for stream in listener.incoming() {
        // A connection that is gone before it was taken is nobody's loss.
        let Ok(stream) = stream else { continue };
        let server = server.clone();
        std::thread::spawn(move || server.attend(stream));
    }
    Ok(true)
}

/// Opens the browser that the system has.
fn browse(address: &str) -> Result<()> {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context(program)?;
    Ok(())
}

impl Server {
    /// Answers one connection, which is one request.
    fn attend(&self, mut stream: TcpStream) {
        let n_others = self.n_connections.fetch_add(1, Ordering::Relaxed);
        // Who does not listen gets no answer.
        let _ = if n_others < CONNECTIONS {
            http::read(&mut stream).and_then(|request| {
                let response = request.map_or_else(|refused| refused, |request| self.respond(&request));
                response.write(&mut stream)
            })
        } else {
            Response::refusal(503, "too many connections at once; try again").write(&mut stream)
        };
        self.n_connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn respond(&self, request: &Request) -> Response {
        if let Some(refusal) = request.foreign(self.port) {
            return refusal;
        }
        let file = |kind, body: &'static str| Response::new(200, kind, body.as_bytes());
        let is_asked = request.path == "/batch";
        match (&*request.method, &*request.path) {
            ("GET", "/") => file("text/html; charset=utf-8", include_str!("serve/page.html")),
            ("GET", "/page.css") => file("text/css; charset=utf-8", include_str!("serve/page.css")),
            ("GET", "/page.js") => file("text/javascript; charset=utf-8", include_str!("serve/page.js")),
            ("GET", "/start.json") => Response::new(200, "application/json", self.start.clone()),
            ("GET", "/examples.json") => {
                Response::new(200, "application/json", examples::all().to_string().into_bytes())
            }
            ("POST", "/batch") => self.ask(request),
            ("GET" | "POST", _) if !is_asked => Response::refusal(404, "there is no such page"),
            _ => Response::refusal(405, "pages are for GET, and /batch is for POST"),
        }
    }

    /// Questions of `anygram batch`, one a line.
    fn ask(&self, request: &Request) -> Response {
        // Pages of others cannot send this kind without asking, and nobody answers them.
        if request.header("content-type") != Some("application/x-ndjson") {
            return Response::refusal(415, "questions are lines of JSON, of the type application/x-ndjson");
        }
        match self.workers.answer(&request.body) {
            Ok(answers) => Response::new(200, "application/x-ndjson", answers),
            Err(Busy::Workers) => Response::refusal(503, "all workers are busy; try again"),
            Err(Busy::TooMany { most }) => Response::refusal(
                413,
                &format!("more than {most} questions in one request: ask several times"),
            ),
            Err(Busy::Broken(why)) => Response::refusal(500, &format!("no worker could be started: {why:#}")),
        }
    }
}
