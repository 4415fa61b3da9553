//! Whole steps on real texts: what a token holds is read, and the mask of what comes after is found, in one launch of a graph.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anygram::parts::grammar::ir::{Pattern, TerminalKind, literal};
use anygram::parts::grammar::normal::NormalForm;
use anygram::parts::recognizer::Edge;
use anygram::{Compiler, Constraint, Engine, Grammar, GrammarFormat, Language, LoadOptions, TokenId, Vocabulary};
use anygram_cuda::output::{Output, WholeStep};
use anygram_cuda::turn::Turn;
use anygram_cuda::{ChartError, Image, SequenceId, SharedCharts};
use anyhow::{Context, Result, ensure};

use super::{Curve, LEVELS, Measured, Setting, Times, lock};
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

pub fn measure(setting: &Setting, measured: &mut Measured) -> Result<Vec<Work>> {
    let mut works = vec![small(measured)?];
    let data = setting.shared.join("data");
    let vocabulary = data.join("tokenizers/qwen.tiktoken.gz");
    if vocabulary.exists() {
        let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
        let vocabulary = Vocabulary::from_file(&vocabulary, &options)?;
        let known = [
            ("treebank_raw", false, Some(60.0), Some(248.0)),
            ("sql_grammar", true, None, Some(492.0)),
            ("sql_grammar", false, Some(100.0), None),
            ("sqlite", false, Some(300.0), Some(8_670.0)),
        ];
        for (name, is_spaced, aim, paper) in known {
            match shared(&data, name, is_spaced, &vocabulary, setting.texts.0, measured)? {
                Some(work) => works.push(Work { aim, paper, ..work }),
                None => measured.left_out.push(format!("{name}: no grammar in the shared data")),
            }
        }
    } else {
        measured.left_out.push("real texts: there is no shared data".to_owned());
    }
    for work in &works {
        whole_steps(setting, work, measured).with_context(|| work.name.clone())?;
    }
    Ok(works)
}

fn constraint(name: &str, grammar: Grammar, vocabulary: &Vocabulary, measured: &mut Measured) -> Result<Constraint> {
    let compiler = Compiler::default().engine(Engine::Valiant);
    let (language, time) = timed(|| compiler.compile_grammar(grammar));
    let language: Arc<Language> = language?;
    measured.preparations.push((name.to_owned(), "grammar compiled (CPU)".to_owned(), time / 1e3));
    let (constraint, time) = timed(|| Constraint::new(language, vocabulary.clone()));
    measured.preparations.push((name.to_owned(), "vocabulary joined (CPU)".to_owned(), time / 1e3));
    Ok(constraint?)
}

fn small(measured: &mut Measured) -> Result<Work> {
    let name = "a small SQL, 1,508 tokens".to_owned();
    let grammar = Compiler::default().read(GrammarFormat::Lark, SQL)?;
    let constraint = constraint(&name, grammar, &Vocabulary::builtin(), measured)?;
    let text = constraint.vocabulary().encode("select a + b, -1.5 + c, (select x, y from z;) + d from t;")?;
    Ok(Work { name, constraint, texts: vec![text], aim: None, paper: None })
}

/// A grammar of the shared data and its texts; if `is_spaced`, a blank follows each operator, so that no token holds more than one of them.
fn shared(
    data: &Path,
    name: &str,
    is_spaced: bool,
    vocabulary: &Vocabulary,
    n_texts: usize,
    measured: &mut Measured,
) -> Result<Option<Work>> {
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
    let constraint = constraint(&name, grammar, vocabulary, measured)?;
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
        let text = terminal.name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or_default();
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
fn whole_steps(setting: &Setting, work: &Work, measured: &mut Measured) -> Result<()> {
    let charts = setting.shared_charts(setting.pool)?;
    let (mut whole, mut parser) = (Times::default(), Times::default());
    let (mut whole_at, mut parser_at): (BTreeMap<usize, Vec<f64>>, BTreeMap<usize, Vec<f64>>) = Default::default();
    let cfg = &work.constraint.language().lexing().cfg;
    let (image, time) = timed(|| Image::new(cfg, &NormalForm::binary(cfg)));
    measured.preparations.push((work.name.clone(), "grammar for the kernels (CPU)".to_owned(), time / 1e3));
    drop(image?);
    let mut output = Output::new(&work.constraint, &charts, LEVELS)?;
    let (first, time) = timed(|| output.readings());
    measured.preparations.push((work.name.clone(), "first tree of terminal sequences (CPU)".to_owned(), time / 1e3));
    first?;
    let mut matcher = work.constraint.matcher()?;
    let (mut n_masks, mut n_doubtful) = (0, 0);
    for text in &work.texts {
        let text = &text[..text.len().min(setting.texts.1)];
        // What all texts share, the CPU has read before.
        for &token in text {
            matcher.mask()?;
            matcher.advance(token)?;
        }
        matcher.reset();
        for &token in text {
            let (expected, time) = timed(|| -> Result<Vec<u32>> {
                matcher.advance(token)?;
                Ok(matcher.mask()?)
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
    let words = lock(&charts).tree_words();
    measured.preparations.push((work.name.clone(), format!("{words} words of trees"), 0.0));
    let doubtful = format!("{n_doubtful} of {n_masks} masks left in doubt, for the CPU to compute");
    measured.preparations.push((work.name.clone(), doubtful, 0.0));
    if !parser.device.is_empty() {
        measured.rows.push(parser.row(format!("{}: a step of the parser", work.name)));
    }
    let mut row = whole.row(format!("{}: a whole step, what a token holds and the mask after it", work.name));
    (row.aim, row.paper, row.kind) = (work.aim, work.paper, Some("output"));
    measured.rows.push(row);
    for (what, at) in [("whole step", whole_at), ("step of the parser", parser_at)] {
        let points = at.into_iter().map(|(n, times)| (n.max(1) as f64, median(&times))).collect();
        let label = format!("{}, {what}", work.name);
        measured.steps.push(Curve { group: work.name.clone(), label, points });
    }
    Ok(())
}

/// Only the parser's part of a token, on a copy that is given back.
fn parser_step(charts: &SharedCharts, id: SequenceId, step: &WholeStep, times: &mut Times) -> Result<Option<f64>> {
    let Some(edges) = step.steps.first() else { return Ok(None) };
    let mut charts = lock(charts);
    let copy = charts.fork(id)?;
    let made = times.run(&mut charts, |charts| charts.extend(&[(copy, edges)]).remove(0))?;
    charts.release(copy)?;
    ensure!(made.is_some(), "a step is not viable that was read before");
    Ok(times.device.last().copied())
}

/// The whole step; its mask, unless tokens are in doubt.
fn turn(charts: &SharedCharts, sequence: SequenceId, step: &WholeStep, times: &mut Times) -> Result<Option<Vec<u32>>> {
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
