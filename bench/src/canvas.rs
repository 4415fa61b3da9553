//! Measures whether canvases are completable, and their admissible tokens.
//!
//! The right answers are part of the benchmark. A canvas that is made from a text of its grammar is
//! completable. With the lone byte 0xFF in one of its fixed slots, which is in no text, it is not. The texts
//! are those of the folder `replay`; a [`Matcher`](anygram::Matcher) says which of them are sentences. A
//! wrong answer ends the run, and so does an answer that differs the second time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anygram::{
    Canvas, Compiler, Constraint, Counters, Decision, End, Filling, LoadOptions, Slot, Solver, StageCount,
    TokenId, TokenMask, Vocabulary,
};
use anyhow::{Context, Result, anyhow, ensure};

use crate::input;
use crate::measure::{print_table, quantile, timed, us};
use crate::table;

#[derive(clap::Args)]
pub struct Args {
    /// The folder of shared data.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// The files of canvases, without `.jsonl`.
    #[arg(long, default_values = ["smiles", "sql_grammar", "sqlite", "cpp_he"])]
    names: Vec<String>,
    /// The settings; all unless said.
    #[arg(long)]
    settings: Vec<String>,
    /// At most so many canvases of a setting.
    #[arg(long, default_value_t = 1000)]
    most: usize,
    /// The lexer mode, in place of the grammar's own.
    #[arg(long)]
    lexer: Option<String>,
    /// Print how often each stage of the solver ran, what it decided and how many steps it took. Times are
    /// then a few per cent longer.
    #[arg(long)]
    stages: bool,
    /// Measures `admissible` too, for the blocks of 32.
    #[arg(long)]
    admissible: bool,
    /// Prints the table by which canvases are judged, beside `intersection`, and nothing else: canvases of
    /// texts of which no shared canvas is made, `--most` of each setting.
    #[arg(long)]
    table: bool,
    /// The parts of the table.
    #[arg(long, value_enum, num_args = 1.., default_values_t = table::Part::ALL)]
    parts: Vec<table::Part>,
    /// Measures canvases of so many holes and nothing else.
    #[arg(long, num_args = 0..)]
    holes: Vec<usize>,
}

#[derive(serde::Deserialize)]
pub struct Question {
    id: String,
    pub setting: String,
    slots: Vec<serde_json::Value>,
}

impl Question {
    pub fn canvas(&self) -> Result<Canvas> {
        let slot = |slot: &serde_json::Value| match slot {
            serde_json::Value::Null => Ok(Slot::Hole),
            serde_json::Value::String(_) => Ok(Slot::Gap),
            id => {
                let id = id.as_u64().ok_or_else(|| anyhow!("{}: {id} is no slot", self.id))?;
                Ok(Slot::Fixed(TokenId(u32::try_from(id)?)))
            }
        };
        Ok(Canvas::new(self.slots.iter().map(slot).collect::<Result<_>>()?, End::Sentence))
    }
}

/// The canvases of a file by their settings, in its order: those of `settings` if it names any, at most so
/// many of each.
pub fn questions(path: &Path, settings: &[String], most: usize) -> Result<Vec<(String, Vec<Canvas>)>> {
    let source = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut found: Vec<(String, Vec<Canvas>)> = Vec::new();
    for line in source.lines() {
        let question: Question = serde_json::from_str(line)?;
        if !settings.is_empty() && !settings.contains(&question.setting) {
            continue;
        }
        let at = found.iter().position(|(setting, _)| *setting == question.setting).unwrap_or_else(|| {
            found.push((question.setting.clone(), Vec::new()));
            found.len() - 1
        });
        if found[at].1.len() < most {
            found[at].1.push(question.canvas()?);
        }
    }
    Ok(found)
}

/// The texts of a grammar that are sentences, by the tokens that canvases were made from.
pub struct Texts(Vec<Vec<TokenId>>);

#[derive(serde::Deserialize)]
struct Text {
    ids: Vec<u32>,
}

impl Texts {
    /// Those of a file.
    pub fn new(constraint: &Constraint, path: &Path) -> Result<Self> {
        let source = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let texts = source.lines().map(|line| {
            let text: Text = serde_json::from_str(line)?;
            Ok(text.ids.into_iter().map(TokenId).collect())
        });
        Self::of(constraint, texts.collect::<Result<Vec<_>>>()?)
    }

    /// Those of these that are sentences.
    pub fn of(constraint: &Constraint, texts: Vec<Vec<TokenId>>) -> Result<Self> {
        let mut matcher = constraint.matcher()?;
        let mut kept = Vec::new();
        for ids in texts {
            matcher.reset();
            if ids.iter().all(|&id| matcher.advance(id).is_ok()) && matcher.is_sentence() {
                kept.push(ids);
            }
        }
        Ok(Self(kept))
    }

    /// The texts.
    pub fn all(&self) -> &[Vec<TokenId>] {
        &self.0
    }

    /// Whether a canvas can be one of the texts, perhaps with EOS and PAD behind it.
    pub fn has(&self, canvas: &Canvas) -> bool {
        self.0.iter().any(|text| is_of(canvas, text))
    }
}

/// Whether a canvas can be a text, perhaps with EOS and PAD behind it.
pub fn is_of(canvas: &Canvas, text: &[TokenId]) -> bool {
    let slots = canvas.slots();
    let last = slots.iter().rposition(|slot| *slot != Slot::Hole).map_or(0, |last| last + 1);
    let (n_slots, has_gaps) = (slots.len(), slots.contains(&Slot::Gap));
    let end = if has_gaps { n_slots } else { text.len().clamp(last, n_slots) };
    fits(&slots[..end], text)
}

/// Whether slots can hold tokens; the places of a text that were reached so far are kept in a set.
fn fits(slots: &[Slot], text: &[TokenId]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for slot in slots {
        match slot {
            Slot::Gap => {
                let first = reached.iter().position(|&is| is).unwrap_or(reached.len());
                reached[first..].fill(true);
            }
            Slot::Fixed(_) | Slot::Hole => {
                for at in (0..text.len()).rev() {
                    reached[at + 1] = reached[at] && (*slot == Slot::Hole || *slot == Slot::Fixed(text[at]));
                }
                reached[0] = false;
            }
        }
    }
    reached[text.len()]
}

/// Times and answers of one kind of canvas.
#[derive(Default)]
struct Times {
    yes: Vec<f64>,
    no: Vec<f64>,
    undecided: usize,
}

impl Times {
    fn add(&mut self, answer: Option<bool>, time: f64) {
        match answer {
            Some(true) => self.yes.push(time),
            Some(false) => self.no.push(time),
            None => self.undecided += 1,
        }
    }
}

pub fn run(args: &Args) -> Result<()> {
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(args.data.join("tokenizers/qwen.tiktoken.gz"), &options)?;
    let lone = vocabulary.encode(b"\xff")?[0];
    for name in &args.names {
        let mut compiler = Compiler::default();
        if let Some(mode) = &args.lexer {
            compiler = compiler.lexer(input::lexer_mode(mode)?);
        }
        let language = input::language(&args.data.join(format!("replay/{name}.lark")), &compiler)?;
        let constraint = Constraint::new(Arc::clone(&language), vocabulary.clone())?;
        if args.table {
            table::run(&constraint, (&args.data, name), args.most, &args.parts, args.stages)?;
            continue;
        }
        let path = args.data.join(format!("canvas/{name}.jsonl"));
        let texts = Texts::new(&constraint, &args.data.join(format!("replay/{name}.tok.jsonl")))?;
        let mut solver = Solver::new(&constraint)?;
        solver.count_stages(args.stages);
        if !args.holes.is_empty() {
            holes_alone(&constraint, name, &args.holes)?;
            continue;
        }
        let mut rows = Vec::new();
        for (setting, canvases) in questions(&path, &args.settings, args.most)? {
            rows.push(measure(&mut solver, &setting, &canvases, &texts, lone)?);
            if args.admissible && setting == "block32" {
                admissible(&mut solver, name, &canvases)?;
            }
        }
        let columns = [
            "setting",
            "yes",
            "cold p50",
            "p99",
            "warm p50",
            "p99",
            "no",
            "cold p50",
            "p99",
            "warm p50",
            "p99",
            "spoiled p50",
            "p99",
            "kept p50",
            "changed p50",
            "p99",
            "known",
            "open",
        ];
        print_table(&format!("{name}: completable, microseconds"), &columns, &rows);
        println!("tables: {} MiB", solver.memory_usage() >> 20);
        if args.stages {
            print_stages(name, solver.counters());
        }
    }
    Ok(())
}

/// What each stage of the solver was worth.
pub fn print_stages(name: &str, counters: &Counters) {
    let row = |count: &StageCount| {
        let StageCount { stage, runs, decided, steps, time, .. } = *count;
        let per_run = |n: u64| format!("{:.1}", n as f64 / runs as f64);
        let steps_a_run = (steps / runs).to_string();
        let ms = format!("{:.2}", time.as_secs_f64() * 1e3 / runs as f64);
        vec![stage.to_owned(), runs.to_string(), decided.to_string(), per_run(decided), steps_a_run, ms]
    };
    let rows: Vec<_> = counters.iter().map(row).collect();
    let columns = ["stage", "runs", "decided", "a run", "steps a run", "ms a run"];
    print_table(&format!("{name}: what stages decide"), &columns, &rows);
}

fn measure(
    solver: &mut Solver,
    setting: &str,
    canvases: &[Canvas],
    texts: &Texts,
    lone: TokenId,
) -> Result<Vec<String>> {
    let (mut cold, mut warm, mut spoiled) = (Times::default(), Times::default(), Times::default());
    let (mut changed, mut n_known) = (Times::default(), 0);
    let (mut answers, mut kept) = (Vec::new(), Vec::new());
    for canvas in canvases {
        let (answer, time) = timed(|| solver.completable(canvas));
        let answer = answer?.decided();
        let is_known = texts.has(canvas);
        n_known += usize::from(is_known);
        ensure!(
            !(is_known && answer == Some(false)),
            "{setting}: it is in the grammar, and was refused: {canvas:?}"
        );
        answers.push(answer);
        cold.add(answer, time);
    }
    for (canvas, &before) in canvases.iter().zip(&answers) {
        let (answer, time) = timed(|| solver.completable(canvas));
        let answer = answer?;
        // One hole is filled as the witness has it.
        if let (Some(hole), Decision::Yes(witness)) = (canvas.holes().next(), &answer)
            && let Some(&Filling::Token(token)) = witness.slots.get(hole)
        {
            let mut filled = canvas.clone();
            filled.set(hole, token)?;
            let (again, time) = timed(|| solver.completable(&filled));
            ensure!(
                again?.decided() == Some(true),
                "{setting}: filled as its witness it is not completable: {canvas:?}"
            );
            kept.push(time);
        }
        let answer = answer.decided();
        ensure!(
            before.is_none() || answer == before,
            "{setting}: a second time it is {answer:?}, not {before:?}: {canvas:?}"
        );
        warm.add(answer, time);
        let fixed: Vec<usize> = (0..canvas.slots().len())
            .filter(|&slot| matches!(canvas.slots()[slot], Slot::Fixed(_)))
            .collect();
        let Some(&middle) = fixed.get(fixed.len() / 2) else { continue };
        // One fixed slot gets another token of the canvas, so the last witness is of no use.
        if let Slot::Fixed(token) = canvas.slots()[fixed[0]] {
            let mut other = canvas.clone();
            other.set(middle, token)?;
            let (answer, time) = timed(|| solver.completable(&other));
            changed.add(answer?.decided(), time);
        }
        let mut bad = canvas.clone();
        bad.set(middle, lone)?;
        let (answer, time) = timed(|| solver.completable(&bad));
        let answer = answer?;
        ensure!(!answer.is_yes(), "{setting}: with 0xFF in slot {middle} it is completable: {canvas:?}");
        spoiled.add(answer.decided(), time);
    }
    let n_open = warm.undecided + spoiled.undecided;
    Ok(row(setting, [&cold, &warm, &spoiled, &changed], &kept, [n_known, n_open]))
}

/// A row of the table.
fn row(
    setting: &str,
    [cold, warm, spoiled, changed]: [&Times; 4],
    kept: &[f64],
    [n_known, n_open]: [usize; 2],
) -> Vec<String> {
    let both = |times: &[f64]| [us(quantile(times, 0.5)), us(quantile(times, 0.99))];
    let [[cold_50, cold_99], [yes_50, yes_99], [cold_no_50, cold_no_99], [no_50, no_99], [bad_50, bad_99]] =
        [both(&cold.yes), both(&warm.yes), both(&cold.no), both(&warm.no), both(&spoiled.no)];
    let [changed_50, changed_99] = both(&[&changed.yes[..], &changed.no].concat());
    let count = |times: &[f64]| times.len().to_string();
    vec![
        setting.to_owned(),
        count(&warm.yes),
        cold_50,
        cold_99,
        yes_50,
        yes_99,
        count(&warm.no),
        cold_no_50,
        cold_no_99,
        no_50,
        no_99,
        bad_50,
        bad_99,
        us(quantile(kept, 0.5)),
        changed_50,
        changed_99,
        n_known.to_string(),
        n_open.to_string(),
    ]
}

/// Canvases of holes alone, each asked of a solver that knows nothing and then once more.
fn holes_alone(constraint: &Constraint, name: &str, sizes: &[usize]) -> Result<()> {
    let mut rows = Vec::new();
    for &size in sizes {
        for (kind, end) in [("prefix", End::Prefix { remaining: None }), ("sentence", End::Sentence)] {
            let canvas = Canvas::new(vec![Slot::Hole; size], end);
            let (answer, first) = timed(|| anyhow::Ok(Solver::new(constraint)?.completable(&canvas)?));
            ensure!(!matches!(answer?, Decision::No), "{size} holes hold no {kind}");
            let mut solver = Solver::new(constraint)?;
            let (answer, new) = timed(|| solver.admissible(&canvas));
            let answer = answer?;
            let (_, again) = timed(|| solver.admissible(&canvas));
            let Decision::Yes(witness) = solver.completable(&canvas)? else { continue };
            for (hole, filling) in witness.slots.iter().enumerate() {
                let Filling::Token(token) = filling else { break };
                ensure!(!answer.get(hole, *token).is_no(), "slot {hole} of {size} cannot hold {token:?}");
            }
            let n_tokens: usize = answer.masks.iter().map(TokenMask::count).sum();
            let n_open = answer.undecided.iter().flatten().count();
            rows.push(vec![
                format!("{size} {kind}"),
                us(first),
                us(new),
                us(again),
                n_tokens.to_string(),
                n_open.to_string(),
                (solver.memory_usage() >> 20).to_string(),
            ]);
        }
    }
    let columns = ["holes", "completable", "admissible", "again", "tokens", "open", "MiB"];
    print_table(&format!("{name}: holes alone, microseconds"), &columns, &rows);
    Ok(())
}

/// Slots that a semi-autoregressive model denoises at a time.
pub const BLOCK: usize = 32;

/// All admissible tokens of a whole block: the slots up to the end of the block of 32 that holds the last
/// fixed one, the holes behind it included.
fn admissible(solver: &mut Solver, name: &str, canvases: &[Canvas]) -> Result<()> {
    let (mut times, mut warm, mut n_tokens, mut n_open, mut holes) = (Vec::new(), Vec::new(), 0, 0, 0);
    for canvas in canvases {
        let (answer, time) = timed(|| solver.admissible(&block(canvas)));
        let answer = answer?;
        times.push(time);
        holes += answer.masks.len();
        n_open += answer.undecided.iter().flatten().count();
        n_tokens += answer.masks.iter().map(TokenMask::count).sum::<usize>();
    }
    for canvas in canvases {
        let (answer, time) = timed(|| solver.admissible(&block(canvas)));
        answer?;
        warm.push(time);
    }
    let steps = step_by_step(solver, canvases)?;
    println!(
        "{name}: admissible, step by step: {} steps, p50 {} us, p99 {} us, most {} us",
        steps.len(),
        us(quantile(&steps, 0.5)),
        us(quantile(&steps, 0.99)),
        us(quantile(&steps, 1.0))
    );
    // When much of the grammar was seen in other blocks.
    let later = &times[times.len() / 2..];
    let [first, later, again] =
        [&*times, later, &*warm].map(|times| [0.5, 1.0].map(|at| us(quantile(times, at))));
    println!(
        "{name}: admissible, {} blocks, {holes} holes, {n_tokens} tokens: p50 {} us, most {} us; the later \
         half {} and {}; all a second time {} and {}; {n_open} holes not decided throughout",
        canvases.len(),
        first[0],
        first[1],
        later[0],
        later[1],
        again[0],
        again[1],
    );
    Ok(())
}

/// The slots up to the end of the block of 32 that holds the last fixed one.
fn block(canvas: &Canvas) -> Canvas {
    let slots = canvas.slots();
    let last = slots.iter().rposition(|slot| matches!(slot, Slot::Fixed(_))).unwrap_or(0);
    let end = (last + 1).next_multiple_of(BLOCK).min(slots.len());
    Canvas::new(slots[..end].to_vec(), End::Prefix { remaining: None })
}

/// What each step takes as a model decodes: what was known of the block before serves it with one hole
/// filled.
fn step_by_step(solver: &mut Solver, canvases: &[Canvas]) -> Result<Vec<f64>> {
    let mut steps = Vec::new();
    for canvas in canvases {
        let mut canvas = block(canvas);
        solver.admissible(&canvas)?;
        let Decision::Yes(witness) = solver.completable(&canvas)? else { continue };
        while let holes = canvas.holes().collect::<Vec<_>>()
            && holes.len() > 1
        {
            let slot = holes[holes.len() * 5 / 8];
            let Filling::Token(token) = witness.slots[slot] else { break };
            canvas.set(slot, token)?;
            let (answer, time) = timed(|| solver.admissible(&canvas));
            let answer = answer?;
            for (at, slot) in canvas.holes().enumerate() {
                let Filling::Token(token) = witness.slots[slot] else { break };
                ensure!(
                    !answer.get(at, token).is_no(),
                    "slot {slot} cannot hold {token:?}, though a completion has it there: {canvas:?}"
                );
            }
            steps.push(time);
        }
    }
    Ok(steps)
}
