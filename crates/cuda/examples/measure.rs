//! Measures the kernels on a device: `measure --device` says which there is, `measure --table` prints a table for `docs/gpu.md`.
//!
//! Every line is checked against an engine of the CPU first. Times are of the host's clock around one call, launches and the reading of results included,
//! medians; the ratio is to the Valiant engine of the CPU on the same work, on one core. Without a device the exit status is 1.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use anygram_bits::BitSet;
use anygram_cuda::output::Output;
use anygram_cuda::{Charts, Image, PoolOptions, SequenceId};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{LexerMode, NonterminalId, Rule, Symbol, TerminalId};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_grammar::normal::NormalForm;
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions};
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anygram_vocab::Vocabulary;

type Error = Box<dyn std::error::Error>;

fn main() -> std::process::ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("--device") => charts().map(|charts| println!("{}", charts.device_name())),
        Some("--table") => table(),
        _ => Err("usage: measure --device | --table".into()),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("measure: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn charts() -> Result<Charts, Error> {
    charts_with(PoolOptions::default().workers)
}

fn charts_with(workers: usize) -> Result<Charts, Error> {
    let ordinal = std::env::var("ANYGRAM_CUDA_DEVICE").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    let options = PoolOptions { pages: 32 << 10, max_pages: 4_096, workers, ..PoolOptions::default() };
    Ok(Charts::on_cuda(ordinal, options)?)
}

fn table() -> Result<(), Error> {
    println!("| work | device, µs | one core, µs | ratio |\n|---|---|---|---|");
    for (name, cfg) in [("`s: s s \\| \"a\"`", ambiguous()), ("about 3,200 random rules", random(3_200))] {
        for (n, sequences) in [(100, 1), (100, 256), (1_000, 1)] {
            step(name, &cfg, n, sequences)?;
        }
    }
    [1, 4, 16, 32, 64, 128].into_iter().try_for_each(mask)
}

fn line(work: &str, device: &mut [f64], cpu: &mut [f64]) {
    let [device, cpu] = [device, cpu].map(|times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("| {work} | {device:.1} | {cpu:.1} | {:.2} |", cpu / device);
}

fn timed<T>(times: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    times.push(start.elapsed().as_secs_f64() * 1e6);
    result
}

fn ambiguous() -> Cfg {
    let s = NonterminalId::new(0);
    let nonterminal = Symbol::Nonterminal(s);
    let rules = vec![
        Rule { lhs: s, rhs: vec![nonterminal, nonterminal] },
        Rule { lhs: s, rhs: vec![Symbol::Terminal(TerminalId::new(0))] },
    ];
    Cfg { n_terminals: 1, n_nonterminals: 1, rules, start: s }
}

/// Rules of two symbols among 300, with 103 left children, over one terminal: the chart fills.
fn random(n_rules: usize) -> Cfg {
    let mut random = anygram_testkit::random::Random::new(7);
    let mut below = |n: usize| random.below(n);
    let symbol = |n: usize| Symbol::Nonterminal(NonterminalId::new(n));
    let mut rules: Vec<Rule> = (0..300)
        .map(|n| Rule { lhs: NonterminalId::new(n), rhs: vec![Symbol::Terminal(TerminalId::new(0))] })
        .collect();
    for _ in 0..n_rules {
        let rhs = vec![symbol(below(103)), symbol(below(300))];
        rules.push(Rule { lhs: NonterminalId::new(below(300)), rhs });
    }
    let cfg = Cfg { n_terminals: 1, n_nonterminals: 300, rules, start: NonterminalId::new(0) };
    cfg.trim(&BitSet::new(1)).unwrap_or_else(|_| ambiguous())
}

/// A step of the parser after `n` terminals, for some sequences at once.
fn step(name: &str, cfg: &Cfg, n: usize, n_sequences: usize) -> Result<(), Error> {
    let mut charts = charts()?;
    let grammar = charts.add_grammar(&Image::new(cfg, &NormalForm::binary(cfg))?)?;
    let mut engine = Valiant::new(cfg.clone(), RecognizerLimits::default())?;
    let first = charts.create(&[grammar]).remove(0)?;
    let edge = |at: usize| [Edge { from: StateId::new(at), terminal: Some(TerminalId::new(0)) }];
    for at in 0..n {
        charts.extend(&[(first, &edge(at))]).remove(0)?;
        engine.extend(&edge(at))?;
    }
    let mut sequences = vec![first];
    for _ in 1..n_sequences.min(charts.options().sequences) {
        sequences.push(charts.fork(first)?);
    }
    let edges = edge(n);
    let requests: Vec<(SequenceId, &[Edge])> = sequences.iter().map(|&id| (id, &edges[..])).collect();
    let (mut device, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..21 {
        let results = timed(&mut device, || charts.extend(&requests));
        for result in results {
            result?;
        }
        let mark = engine.mark();
        let state = timed(&mut cpu, || engine.extend(&edges))?.ok_or("a step that is not viable")?;
        let tier = charts.tier(first, state)?;
        if tier.viable != *engine.viable(state) || tier.predicted != *engine.predicted(state) {
            return Err("the device and the CPU differ".into());
        }
        engine.release(mark);
        for &id in &sequences {
            charts.rollback(id, n + 1)?;
        }
    }
    cpu.iter_mut().for_each(|time| *time *= sequences.len() as f64);
    line(&format!("a step, {name}, n = {n}, {} sequences", sequences.len()), &mut device, &mut cpu);
    Ok(())
}

const SQL: &str = r#"
    start: "select" column ("," column)* "from" NAME ";"
    column: NAME | NUMBER | "-" column | "(" start ")" | column "+" column
    NAME: /[a-z]+/
    NUMBER: /[0-9]+(\.[0-9]+)?/
    %ignore /[ \n]+/
"#;

/// Masks over the built-in vocabulary, searched in depth by some workers after one level.
fn mask(workers: usize) -> Result<(), Error> {
    let options =
        LanguageOptions { engine: Engine::Valiant, lexer: Some(LexerMode::Longest), ..LanguageOptions::default() };
    let language = Language::new(lark::parse(SQL, &LarkOptions::default())?, &options)?;
    let constraint = Constraint::new(Arc::new(language), Vocabulary::builtin().clone())?;
    let charts = Arc::new(Mutex::new(charts_with(workers)?));
    let mut output = Output::new(&constraint, &charts, 1)?;
    let mut matcher = constraint.matcher()?;
    let mut words = vec![0; constraint.mask_words()];
    let (mut device, mut cpu) = (Vec::new(), Vec::new());
    for token in constraint.vocabulary().encode("select (a + b, -1.5 + c) + (select x from y;) from t;")? {
        output.mask_into(&mut words)?;
        timed(&mut device, || output.mask_into(&mut words))?;
        let expected = timed(&mut cpu, || matcher.mask())?;
        if words != expected {
            return Err("a mask of the device differs".into());
        }
        output.advance(token)?;
        matcher.advance(token)?;
    }
    line(&format!("a mask, small SQL, 1,508 tokens, {workers} workers (CPU: shared masks)"), &mut device, &mut cpu);
    Ok(())
}
