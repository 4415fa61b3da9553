//! Measures whole steps on real texts: reading a token and computing the next mask, in one launch of a graph.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use anygram::{
    Compiler, Constraint, Engine, Grammar, GrammarFormat, Language, LoadOptions, TokenId, Vocabulary,
};
use anygram_cuda::output::{Output, WholeStep};
use anygram_cuda::turn::Turn;
use anygram_cuda::{ChartError, Image, PoolOptions, SequenceId, SharedCharts};
use anygram_grammar::ir::{Pattern, TerminalKind, literal};
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::Edge;
use anyhow::{Context, Result, ensure};

use super::{Bench, LEVELS, NotHere, Part, Setting, Times, lock, part, refused};
use crate::input;
use crate::measure::{median, timed};

/// A grammar and its texts.
pub struct Work {
    pub name: String,
    pub constraint: Constraint,
    pub texts: Vec<Vec<TokenId>>,
    aim: Option<f64>,
    paper: Option<f64>,
}

const SQL: &str = r#"
    start: "select" column ("," column)* "from" NAME ";"
    column: NAME | NUMBER | "-" column | "(" start ")" | column "+" column
    NAME: /[a-z]+/
    NUMBER: /[0-9]+(\.[0-9]+)?/
    %ignore /[ \n]+/
"#;

/// Steps of a curve are told in steps of so many states.
const BUCKET: usize = 8;

/// The grammars and texts, the most important first.
pub const NAMES: [&str; 5] = ["treebank_raw", "sql_grammar", "sqlite", "sql_grammar, spaced", "small"];

/// What the project aims at, and what the paper has.
fn goals(name: &str) -> (Option<f64>, Option<f64>) {
    match name {
        "treebank_raw" => (Some(60.0), Some(248.0)),
        "sql_grammar" => (Some(100.0), None),
        "sql_grammar, spaced" => (None, Some(492.0)),
        "sqlite" => (Some(300.0), Some(8_670.0)),
        _ => (None, None),
    }
}

/// Grammars that were joined with their vocabularies.
#[derive(Default)]
pub struct Works {
    vocabulary: Option<Vocabulary>,
    known: BTreeMap<&'static str, Rc<Work>>,
}

pub fn parts(_: &Setting) -> Vec<Part> {
    let measure = |name: &'static str| {
        part(format!("texts/{name}"), move |bench| {
            let work = work(bench, name)?;
            whole_steps(bench, &work, bench.setting.pool, "")
        })
    };
    NAMES.into_iter().map(measure).collect()
}

fn data(bench: &Bench<'_>) -> PathBuf {
    bench.setting.shared.join("data")
}

/// Whether there is such a grammar.
pub fn is_here(bench: &Bench<'_>, name: &str) -> bool {
    data(bench).join(format!("replay/{name}.lark")).exists()
}

/// A grammar with its texts, made when it is first asked for.
pub fn work(bench: &mut Bench<'_>, name: &'static str) -> Result<Rc<Work>> {
    if let Some(known) = bench.works.known.get(name) {
        return Ok(known.clone());
    }
    let work = match name {
        "small" => small(bench)?,
        _ => {
            let vocabulary = vocabulary(bench)?;
            let (grammar, is_spaced) =
                name.strip_suffix(", spaced").map_or((name, false), |name| (name, true));
            let found = shared(bench, grammar, is_spaced, &vocabulary)?;
            let (aim, paper) = goals(name);
            Work {
                aim,
                paper,
                ..found.ok_or_else(|| NotHere("no such grammar in the shared data".to_owned()))?
            }
        }
    };
    let work = Rc::new(work);
    bench.works.known.insert(name, work.clone());
    Ok(work)
}

/// That of the Qwen models.
fn vocabulary(bench: &mut Bench<'_>) -> Result<Vocabulary> {
    if let Some(known) = &bench.works.vocabulary {
        return Ok(known.clone());
    }
    let path = data(bench).join("tokenizers/qwen.tiktoken.gz");
    if !path.exists() {
        return Err(NotHere("there is no shared data".to_owned()).into());
    }
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let (vocabulary, time) = timed(|| Vocabulary::from_file(&path, &options));
    bench.preparation("any", "vocabulary read (CPU)", Some(time / 1e3))?;
    Ok(bench.works.vocabulary.insert(vocabulary?).clone())
}

fn constraint(
    bench: &mut Bench<'_>,
    name: &str,
    grammar: Grammar,
    vocabulary: &Vocabulary,
) -> Result<Constraint> {
    let compiler = Compiler::default().engine(Engine::Valiant);
    let (language, time) = timed(|| compiler.compile_grammar(grammar));
    let language: Arc<Language> = language?;
    bench.preparation(name, "grammar compiled (CPU)", Some(time / 1e3))?;
    let (constraint, time) = timed(|| Constraint::new(language, vocabulary.clone()));
    bench.preparation(name, "vocabulary joined (CPU)", Some(time / 1e3))?;
    Ok(constraint?)
}

fn small(bench: &mut Bench<'_>) -> Result<Work> {
    let name = "a small SQL, 1,508 tokens".to_owned();
    let grammar = Compiler::default().read(GrammarFormat::Lark, SQL)?;
    let constraint = constraint(bench, &name, grammar, &Vocabulary::builtin())?;
    let text = constraint.vocabulary().encode("select a + b, -1.5 + c, (select x, y from z;) + d from t;")?;
    Ok(Work { name, constraint, texts: vec![text], aim: None, paper: None })
}

/// A grammar of the shared data and its texts; if `is_spaced`, a blank follows each operator, so that no
/// token holds more than one of them.
fn shared(
    bench: &mut Bench<'_>,
    name: &str,
    is_spaced: bool,
    vocabulary: &Vocabulary,
) -> Result<Option<Work>> {
    let (data, n_texts) = (data(bench), bench.setting.texts.0);
    let file = |extension: &str| data.join("replay").join(format!("{name}.{extension}"));
    if !file("lark").exists() || !file("tok.jsonl").exists() {
        return Ok(None);
    }
    let source = std::fs::read_to_string(file("lark")).with_context(|| name.to_owned())?;
    let mut name = name.to_owned();
    let mut grammar = Compiler::default().read(GrammarFormat::Lark, &source)?;
    let mut operators = Vec::new();
    if is_spaced {
        name.push_str(", operators with a blank");
        operators = space_operators(&mut grammar);
    }
    let constraint = constraint(bench, &name, grammar, vocabulary)?;
    let mut texts = Vec::new();
    for text in input::texts(&file("tok.jsonl"))?.into_iter().take(n_texts) {
        let ids = if is_spaced {
            vocabulary.encode(spaced(&text.text, &operators))?
        } else {
            text.ids.into_iter().map(TokenId).collect()
        };
        let mut matcher = constraint.matcher()?;
        // Not every text is one in this lexer mode.
        if ids.iter().all(|&token| matcher.advance(token).is_ok()) {
            texts.push(ids);
        }
    }
    ensure!(!texts.is_empty(), "{name}: no text is a sentence");
    Ok(Some(Work { name, constraint, texts, aim: None, paper: None }))
}

/// Lets a blank follow each literal that is an operator; what they were.
fn space_operators(grammar: &mut Grammar) -> Vec<String> {
    let mut operators = Vec::new();
    for terminal in &mut grammar.terminals {
        let text =
            terminal.name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or_default();
        let is_operator = !text.is_empty() && text.chars().all(|c| "()*,=<>!+-/".contains(c));
        if is_operator && !terminal.declared && matches!(terminal.kind, TerminalKind::Literal(_)) {
            operators.push(text.to_owned());
            terminal.kind = TerminalKind::Literal(Pattern::Regex(literal(&format!("{text} "), false)));
        }
    }
    operators.sort_by_key(|operator| std::cmp::Reverse(operator.len()));
    operators
}

/// A text with a blank behind each operator outside of quotes.
fn spaced(text: &str, operators: &[String]) -> String {
    let (mut rest, mut out, mut quote) = (text, String::new(), None);
    while let Some(c) = rest.chars().next() {
        if quote.is_none()
            && let Some(operator) = operators.iter().find(|operator| rest.starts_with(operator.as_str()))
        {
            rest = rest[operator.len()..].trim_start();
            out.push_str(operator);
            out.push(' ');
            continue;
        }
        if c == '"' || c == '\'' {
            quote = if quote == Some(c) { None } else { quote.or(Some(c)) };
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Reads texts by an output; what it then asks of the device is timed.
pub fn whole_steps(bench: &mut Bench<'_>, work: &Work, pool: PoolOptions, variant: &str) -> Result<()> {
    let setting = bench.setting;
    // A whole step is all of it: no state is made before, while a token is read.
    let pool = PoolOptions { dense_on_device: false, ..pool };
    let charts: SharedCharts = Arc::new(Mutex::new(refused(setting.charts(pool))?));
    let (mut whole, mut parser) = (Times::default(), Times::default());
    let (mut whole_at, mut parser_at): (BTreeMap<usize, Vec<f64>>, BTreeMap<usize, Vec<f64>>) =
        Default::default();
    let cfg = &work.constraint.language().lexing().cfg;
    let (image, time) = timed(|| Image::new(cfg, &NormalForm::binary(cfg)));
    drop(image?);
    let mut output = Output::new(&work.constraint, &charts, LEVELS)?;
    let (first, first_time) = timed(|| output.readings());
    first?;
    let name = format!("{}{variant}", work.name);
    if variant.is_empty() {
        bench.preparation(&name, "grammar for the kernels (CPU)", Some(time / 1e3))?;
        bench.preparation(&name, "first tree of terminal sequences (CPU)", Some(first_time / 1e3))?;
    }
    let mut matcher = work.constraint.matcher()?;
    let (mut n_masks, mut n_doubtful) = (0, 0);
    for text in &work.texts {
        let text = &text[..text.len().min(setting.texts.1)];
        // The CPU reads each text twice: its second time is compared with the device's.
        matcher.mask()?;
        for &token in text {
            let (read, time) = timed(|| matcher.advance(token).and_then(|()| matcher.mask()));
            read?;
            whole.cpu_unseen.push(time);
        }
        matcher.reset();
        for &token in text {
            let (expected, time) = timed(|| -> Result<Vec<u32>> {
                matcher.advance(token)?;
                Ok(matcher.mask()?.into_words())
            });
            whole.cpu.push(time);
            output.advance(token)?;
            let (id, step) = (output.sequence(), output.whole_step()?);
            let n = lock(&charts).n_states(id)?;
            if let Some(time) = parser_step(&charts, id, &step, &mut parser)? {
                parser_at.entry(n / BUCKET * BUCKET).or_default().push(time);
            }
            let mask = turn(&charts, id, &step, &mut whole)?;
            whole_at.entry(n / BUCKET * BUCKET).or_default().extend(whole.device.last());
            let expected = expected?;
            n_masks += 1;
            n_doubtful += usize::from(mask.is_none());
            ensure!(mask.is_none_or(|mask| mask == expected), "a mask of the device is not that of the CPU");
        }
        output.reset();
        matcher.reset();
    }
    if variant.is_empty() {
        let words = lock(&charts).tree_words();
        bench.preparation(&name, &format!("{words} words of trees"), None)?;
        let doubtful = format!("{n_doubtful} of {n_masks} masks left in doubt, for the CPU to compute");
        bench.preparation(&name, &doubtful, None)?;
    }
    let mut row = whole.row(format!("{name}: a whole step, what a token holds and the mask after it"));
    if variant.is_empty() {
        (row.aim, row.paper, row.auto) = (work.aim, work.paper, Some("output".to_owned()));
    }
    bench.row(row)?;
    if !parser.device.is_empty() {
        bench.row(parser.row(format!("{name}: a step of the parser")))?;
    }
    for (what, at) in [("whole step", whole_at), ("step of the parser", parser_at)] {
        let points = at.into_iter().map(|(n, times)| (n.max(1) as f64, median(&times))).collect();
        if variant.is_empty() {
            bench.curve("steps", &name, &format!("{name}, {what}"), points)?;
        }
    }
    Ok(())
}

/// Only the parser's part of a token, on a copy that is given back.
fn parser_step(
    charts: &SharedCharts,
    id: SequenceId,
    step: &WholeStep,
    times: &mut Times,
) -> Result<Option<f64>> {
    let Some(edges) = step.steps.first() else { return Ok(None) };
    let mut charts = lock(charts);
    let copy = charts.fork(id)?;
    let made = times.run(&mut charts, |charts| charts.extend(&[(copy, edges)]).remove(0))?;
    charts.release(copy)?;
    ensure!(made.is_some(), "a step is not viable that was read before");
    Ok(times.device.last().copied())
}

/// The whole step; its mask, unless tokens are in doubt.
fn turn(
    charts: &SharedCharts,
    sequence: SequenceId,
    step: &WholeStep,
    times: &mut Times,
) -> Result<Option<Vec<u32>>> {
    let mut charts = lock(charts);
    let steps: Vec<&[Edge]> = step.steps.iter().map(|edges| &edges[..]).collect();
    let turn = Turn { sequence, steps: &steps, readings: &step.readings };
    let (masks, mut turned) = times.run(&mut charts, |charts| charts.turn(&[turn], LEVELS))?;
    let turned = turned.remove(0);
    ensure!(turned.states?.iter().all(Option::is_some), "a step is not viable that was read before");
    match turned.mask {
        Ok(()) => Ok(Some(charts.read_masks(masks)?.remove(0))),
        Err(ChartError::InDoubt) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
