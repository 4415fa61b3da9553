//! The method `intersection` on the shared canvases, beside the figures of its peers.
//!
//! The right answers are part of the benchmark. A canvas with gaps that was made from a sentence is
//! completable, and the ways to decide have to agree. On request the exact engine checks canvases with gaps,
//! and that there is no completion where the method says no. A wrong answer ends the run.

use std::path::PathBuf;

use anygram::{Canvas, Compiler, Constraint, End, LexerMode, LoadOptions, Slot, Solver, Vocabulary};
use anygram_bits::Random;
use anygram_decoding::intersection::{
    Complete, Intersected, Intersection, IntersectionBy, IntersectionOptions,
};
use anyhow::{Result, ensure};

use crate::canvas::{Texts, questions};
use crate::input;
use crate::measure::{print_table, quantile, timed, us};

#[derive(clap::Args)]
pub struct Args {
    /// The folder of shared data.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// The files of canvases, without `.jsonl`; `json` makes canvases with gaps of the texts of
    /// `replay/json.jsonl`.
    #[arg(long, default_values = ["smiles", "json", "cpp", "cpp_he", "sql_grammar", "sqlite"])]
    names: Vec<String>,
    /// The settings; all unless said.
    #[arg(long)]
    settings: Vec<String>,
    /// At most so many canvases of a setting.
    #[arg(long, default_value_t = 1000)]
    most: usize,
    /// Ways to decide: minimal, dfa, nfa, earley.
    #[arg(long, default_values = ["minimal", "dfa", "nfa", "earley"])]
    by: Vec<String>,
    /// Another lexer mode than that of the grammar.
    #[arg(long)]
    lexer: Option<String>,
    /// Leaves out the times with empty tables.
    #[arg(long)]
    warm: bool,
    /// Draws completions too.
    #[arg(long)]
    complete: bool,
    /// Asks the exact engine too, and tells how much of what is accepted it refutes.
    #[arg(long)]
    exact: bool,
}

/// What the authors' programs took for one step with warm caches, CPU milliseconds, p50 / p90 / p99
/// (notes/dllm-peers.md, section 4).
const PEERS: [(&str, &str, &str); 3] = [
    ("cpp", "24 / 297 / 948", "5.9 / 54 / 646"),
    ("json", "14 / 82 / 881", "1.8 / 3.3 / 8.0"),
    ("smiles", "0.99 / 2.4 / 3.4", "0.32 / 1.0 / 1.2"),
];

const COLUMNS: [&str; 17] = [
    "setting",
    "by",
    "yes",
    "step p50",
    "p90",
    "p99",
    "no",
    "step p50",
    "p90",
    "p99",
    "cold p50",
    "p99",
    "untouched",
    "least",
    "lexings",
    "states",
    "found",
];

pub fn run(args: &Args) -> Result<()> {
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(args.data.join("tokenizers/qwen.tiktoken.gz"), &options)?;
    let lexer = match &args.lexer {
        None => None,
        Some(name) => Some(mode(name)?),
    };
    for name in &args.names {
        let grammar =
            if name == "json" { "grammars/syncode/json.lark".into() } else { format!("replay/{name}.lark") };
        let compiler = lexer.map_or_else(Compiler::default, |mode| Compiler::default().lexer(mode));
        let language = input::language(&args.data.join(grammar), &compiler)?;
        let constraint = Constraint::new(language, vocabulary.clone())?;
        let (canvases, texts) = if name == "json" {
            json(&constraint, args)?
        } else {
            let texts = Texts::new(&constraint, &args.data.join(format!("replay/{name}.tok.jsonl")))?;
            (questions(&args.data.join(format!("canvas/{name}.jsonl")), &args.settings, args.most)?, texts)
        };
        let mut rows = Vec::new();
        let mut said: Vec<Vec<Option<bool>>> = Vec::new();
        for by in &args.by {
            said.push(measure(&constraint, &canvases, &texts, by, args, &mut rows)?);
        }
        for others in &said[1..] {
            let differ = |(a, b): (&Option<bool>, &Option<bool>)| a.is_some() && b.is_some() && a != b;
            ensure!(!said[0].iter().zip(others).any(differ), "{name}: the ways to decide do not agree");
        }
        let engine = Intersection::new(&constraint)?;
        let sizes = engine.form_sizes()?;
        print_table(
            &format!("{name}, {}: intersection, microseconds", constraint.language().mode().name()),
            &COLUMNS,
            &rows,
        );
        println!(
            "symbols and rules: grammar {:?}, C2F+eps {:?}, CNF {:?}",
            sizes.grammar, sizes.binary, sizes.chomsky
        );
        if let Some((_, igcd, epic)) = PEERS.iter().find(|(peer, ..)| name.starts_with(peer)) {
            println!("peers, a step, milliseconds p50 / p90 / p99: IG-CD {igcd}, EPIC {epic}");
        }
        if args.exact {
            refuted(&constraint, name, &canvases, &said[0])?;
        }
    }
    Ok(())
}

type Canvases = Vec<(String, Vec<Canvas>)>;

/// Canvases of JSON texts with one to three runs of 3 to 12 tokens as gaps, as the shared ones are made.
fn json(constraint: &Constraint, args: &Args) -> Result<(Canvases, Texts)> {
    #[derive(serde::Deserialize)]
    struct Line {
        tests: Vec<Test>,
    }
    #[derive(serde::Deserialize)]
    struct Test {
        text: String,
    }
    let source = std::fs::read_to_string(args.data.join("replay/json.jsonl"))?;
    let lines: Vec<Line> = source.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut random = Random::new(1);
    let mut canvases: Canvases = (1..=3).map(|n| (format!("gap{n}"), Vec::new())).collect();
    for test in lines.iter().flat_map(|line| line.tests.first()).take(args.most.min(120)) {
        let tokens = constraint.vocabulary().encode(&test.text)?;
        for (n_gaps, (_, list)) in (1..).zip(&mut canvases) {
            let mut slots: Vec<Slot> = tokens.iter().map(|&token| Slot::Fixed(token)).collect();
            for _ in 0..n_gaps {
                let length = 3 + random.below(10);
                let from = random.below(slots.len().saturating_sub(length));
                let to = (from + length).min(slots.len());
                if !slots[from..to].contains(&Slot::Gap) {
                    slots.splice(from..to, [Slot::Gap]);
                }
            }
            list.push(Canvas::new(slots, End::Sentence));
        }
    }
    let all = lines.iter().flat_map(|line| line.tests.first());
    let encoded =
        all.map(|test| constraint.vocabulary().encode(&test.text)).collect::<Result<Vec<_>, _>>()?;
    Ok((canvases, Texts::of(constraint, encoded)?))
}

fn mode(name: &str) -> Result<LexerMode> {
    let modes = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];
    let found = modes.into_iter().find(|mode| mode.name() == name);
    found.ok_or_else(|| anyhow::anyhow!("no lexer mode is called {name}"))
}

fn way(name: &str) -> Result<IntersectionBy> {
    Ok(match name {
        "minimal" => IntersectionBy::MinimalDfa,
        "dfa" => IntersectionBy::Dfa,
        "nfa" => IntersectionBy::Nfa,
        "earley" => IntersectionBy::Earley,
        _ => anyhow::bail!("no way to decide is called {name}"),
    })
}

#[derive(Default)]
struct Times {
    yes: Vec<f64>,
    no: Vec<f64>,
    cold: Vec<f64>,
    untouched: Vec<f64>,
    lexings: Vec<f64>,
    states: Vec<f64>,
    found: Vec<f64>,
    n_undecided: usize,
}

impl Times {
    fn add(&mut self, said: &Intersected, time: f64) {
        match said.verdict.decision.decided() {
            Some(true) => self.yes.push(time),
            Some(false) => self.no.push(time),
            None => self.n_undecided += 1,
        }
        self.untouched.extend(said.stats.untouched());
        self.lexings.push(said.stats.lexings as f64);
        self.states.push(said.stats.automaton.0 as f64);
        self.found.push(said.stats.generating as f64);
    }

    fn absorb(&mut self, other: &Self) {
        self.yes.extend(&other.yes);
        self.no.extend(&other.no);
        self.cold.extend(&other.cold);
        self.untouched.extend(&other.untouched);
        self.lexings.extend(&other.lexings);
        self.states.extend(&other.states);
        self.found.extend(&other.found);
        self.n_undecided += other.n_undecided;
    }

    fn row(&self, setting: &str, by: &str) -> Vec<String> {
        let three = |times: &[f64]| [0.5, 0.9, 0.99].map(|share| us(quantile(times, share)));
        let [yes_50, yes_90, yes_99] = three(&self.yes);
        let [no_50, no_90, no_99] = three(&self.no);
        // By Earley there are no productions.
        let percent = |share| match self.untouched.is_empty() {
            true => String::new(),
            false => format!("{:.3} %", 100.0 * quantile(&self.untouched, share)),
        };
        let undecided =
            if self.n_undecided > 0 { format!(" (+{} open)", self.n_undecided) } else { String::new() };
        vec![
            setting.to_owned(),
            by.to_owned(),
            format!("{}{undecided}", self.yes.len()),
            yes_50,
            yes_90,
            yes_99,
            self.no.len().to_string(),
            no_50,
            no_90,
            no_99,
            us(quantile(&self.cold, 0.5)),
            us(quantile(&self.cold, 0.99)),
            percent(0.5),
            percent(0.0),
            format!("{:.0}", quantile(&self.lexings, 0.5)),
            format!("{:.0}", quantile(&self.states, 0.5)),
            format!("{:.0}", quantile(&self.found, 0.5)),
        ]
    }
}

/// Each canvas three times: as the step after one with a token fewer, spoiled in the middle, and with empty
/// tables.
fn measure(
    constraint: &Constraint,
    canvases: &Canvases,
    texts: &Texts,
    by: &str,
    args: &Args,
    rows: &mut Vec<Vec<String>>,
) -> Result<Vec<Option<bool>>> {
    let complete = if args.complete { Complete::Always } else { Complete::Never };
    let options = IntersectionOptions { by: way(by)?, complete, ..IntersectionOptions::default() };
    let cold = IntersectionOptions { memoize: false, ..options.clone() };
    let mut engine = Intersection::new(constraint)?;
    let (mut said, mut all) = (Vec::new(), Times::default());
    for (setting, canvases) in canvases {
        let mut times = Times::default();
        for canvas in canvases {
            engine.completable(&before(canvas), &options)?;
            let (answer, time) = timed(|| engine.completable(canvas, &options));
            let answer = answer?;
            ensure!(
                answer.verdict.decision.decided() != Some(false) || !texts.has(canvas),
                "{setting} by {by}: it is in the grammar, and was refused: {canvas:?}"
            );
            times.add(&answer, time);
            said.push(answer.verdict.decision.decided());
            if let Some(other) = changed(canvas) {
                let (answer, time) = timed(|| engine.completable(&other, &options));
                let answer = answer?;
                times.add(&answer, time);
                said.push(answer.verdict.decision.decided());
            }
        }
        let mut other = Intersection::new(constraint)?;
        for canvas in canvases.iter().filter(|_| !args.warm) {
            let (answer, time) = timed(|| other.completable(canvas, &cold));
            answer?;
            times.cold.push(time);
        }
        all.absorb(&times);
        rows.push(times.row(setting, by));
    }
    rows.push(all.row("all", by));
    println!("{by}: tables {} MiB", engine.memory_usage() >> 20);
    Ok(said)
}

/// The canvas with one token fewer: what stands beside its first gap was not there yet, or the middle token
/// was a hole.
fn before(canvas: &Canvas) -> Canvas {
    let mut slots = canvas.slots().to_vec();
    let is_fixed = |slot: Option<&Slot>| matches!(slot, Some(Slot::Fixed(_)));
    match slots.iter().position(|slot| *slot == Slot::Gap) {
        Some(gap) if is_fixed(slots.get(gap + 1)) => drop(slots.remove(gap + 1)),
        Some(gap) if gap > 0 && is_fixed(slots.get(gap - 1)) => drop(slots.remove(gap - 1)),
        Some(_) => {}
        None => {
            let fixed: Vec<usize> = (0..slots.len()).filter(|&slot| is_fixed(slots.get(slot))).collect();
            if let Some(&middle) = fixed.get(fixed.len() / 2) {
                slots[middle] = Slot::Hole;
            }
        }
    }
    Canvas::new(slots, canvas.end())
}

/// The canvas with another of its tokens in the middle.
fn changed(canvas: &Canvas) -> Option<Canvas> {
    let mut slots = canvas.slots().to_vec();
    let fixed: Vec<usize> = (0..slots.len()).filter(|&slot| matches!(slots[slot], Slot::Fixed(_))).collect();
    let (&first, &middle) = (fixed.first()?, fixed.get(fixed.len() / 2)?);
    slots[middle] = slots[first];
    Some(Canvas::new(slots, canvas.end()))
}

/// The canvas with each run of holes as one hole, but for those at its end, where the EOS can stand.
fn squeezed(canvas: &Canvas) -> Canvas {
    let mut slots = canvas.slots().to_vec();
    let end = slots.iter().rposition(|slot| *slot != Slot::Hole).map_or(0, |last| last + 1);
    let tail = slots.split_off(end);
    slots.dedup_by(|a, b| (&*a, &*b) == (&Slot::Hole, &Slot::Hole));
    slots.extend(tail);
    Canvas::new(slots, canvas.end())
}

fn refuted(constraint: &Constraint, name: &str, canvases: &Canvases, said: &[Option<bool>]) -> Result<()> {
    let mut solver = Solver::new(constraint)?;
    let mut said = said.iter();
    let (mut n_yes, mut n_refuted, mut n_open) = (0u32, 0u32, 0usize);
    for canvas in canvases.iter().flat_map(|(_, canvases)| canvases) {
        for asked in [Some(canvas.clone()), changed(canvas)].into_iter().flatten() {
            let by_method = said.next().copied().flatten();
            // The method says the same of one hole and of many.
            for asked in [squeezed(&asked), asked] {
                let exact = solver.completable(&asked)?.decided();
                ensure!(
                    (by_method, exact) != (Some(false), Some(true)),
                    "{name}: a wrong no about {asked:?}"
                );
                if by_method == Some(true) && asked.holes().next().is_some() {
                    n_yes += 1;
                    n_refuted += u32::from(exact == Some(false));
                    n_open += usize::from(exact.is_none());
                }
            }
        }
    }
    let share = 100.0 * f64::from(n_refuted) / f64::from(n_yes.max(1u32));
    println!(
        "canvases with holes, and the same with each run as one hole: {n_yes} accepted, {n_refuted} of them \
         refuted exactly ({share:.1} %), {n_open} not decided exactly"
    );
    Ok(())
}
