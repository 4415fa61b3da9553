//! The table by which canvases are judged: each question beside `intersection` on the same canvases.
//!
//! Canvases are made of texts from which no shared canvas was made, and each is asked once, of one solver
//! whose tables grow. Blocks are whole: 32 slots behind a fixed beginning, the holes behind the text
//! included, and they end as a prefix. Times are CPU time of the thread. The right answers are part of the
//! benchmark: the text itself is a completion, so a no, or a row without its token, ends the run.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anygram::decode::{Exact, ExactBy, Judgement, OpenSlots, Recovery, Rows, Sampling, Strategy, View};
use anygram::{
    Canvas, Constraint, Decision, DecodeError, DecodeOptions, Decoder, End, Floor, IntersectionOptions,
    LogProbs, Methods, Model, ModelError, Slot, Solver, Tail, TokenId, Weigher,
};
use anygram_bits::Random;
use anyhow::{Result, ensure};

use crate::canvas::{BLOCK, Texts, is_of, print_stages, questions};
use crate::measure::{print_table, quantile, timed};
use crate::simulated::Simulated;

/// A part of the table.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    Completable,
    Rows,
    Loops,
    Best,
}

impl Part {
    pub const ALL: [Self; 4] = [Self::Completable, Self::Rows, Self::Loops, Self::Best];
}

/// A canvas, and the text it was made of with EOS behind it.
struct Case {
    canvas: Canvas,
    text: Vec<TokenId>,
}

/// What one line of the table says.
#[derive(Default)]
struct Line {
    millis: Vec<f64>,
    undecided: usize,
    asked: usize,
}

impl Line {
    fn add(&mut self, micros: f64, is_decided: bool) {
        self.millis.push(micros / 1e3);
        self.asked += 1;
        self.undecided += usize::from(!is_decided);
    }

    fn row(&self, what: &str) -> Vec<String> {
        let at = |share: f64| format!("{:.3}", quantile(&self.millis, share));
        let undecided = format!("{} of {}", self.undecided, self.asked);
        vec![what.to_owned(), self.millis.len().to_string(), at(0.5), at(0.9), at(0.99), at(1.0), undecided]
    }
}

const COLUMNS: [&str; 7] = ["milliseconds", "times", "p50", "p90", "p99", "max", "undecided"];

/// Prints the table of one grammar, by `most` canvases of each setting.
pub fn run(
    constraint: &Constraint,
    (data, name): (&Path, &str),
    most: usize,
    parts: &[Part],
    stages: bool,
) -> Result<()> {
    let texts = Texts::new(constraint, &data.join(format!("replay/{name}.tok.jsonl")))?;
    let shared = questions(&data.join(format!("canvas/{name}.jsonl")), &["rand20".to_owned()], usize::MAX)?;
    // With more holes than that a canvas can be several texts.
    let is_seen = |text: &[TokenId]| {
        let mut canvases = shared.iter().flat_map(|(_, canvases)| canvases);
        canvases.any(|canvas| is_of(canvas, text))
    };
    let mut unseen: Vec<&Vec<TokenId>> = texts.all().iter().filter(|text| !is_seen(text)).collect();
    let mut kind = "that no shared canvas is made of";
    if unseen.is_empty() {
        (unseen, kind) = (texts.all().iter().collect(), "that shared canvases are made of too");
    }
    let mut random = Random::new(27);
    let mut rows = Vec::new();
    let mut solver = Solver::new(constraint)?;
    solver.count_stages(stages);
    let mut methods = Methods::new(constraint)?;
    let settings: [(&str, &[Setting]); 2] = [
        (
            "completable",
            &[
                Setting::Random(20),
                Setting::Random(50),
                Setting::Random(80),
                Setting::Spans(1),
                Setting::Spans(2),
                Setting::Spans(3),
                Setting::Block,
            ],
        ),
        ("completable, gaps", &[Setting::Gaps(1), Setting::Gaps(2), Setting::Gaps(3)]),
    ];
    for (what, settings) in settings.into_iter().filter(|_| parts.contains(&Part::Completable)) {
        let (mut exact, mut peer) = (Line::default(), Line::default());
        for &setting in settings {
            for text in unseen.iter().cycle().take(most) {
                let case = setting.case(text, &mut random);
                completable(&mut solver, &mut methods, &case.canvas, (&mut exact, &mut peer))?;
            }
        }
        rows.push(exact.row(what));
        rows.push(peer.row("  intersection, a yes not proven for holes"));
    }
    let blocks: Vec<Case> =
        unseen.iter().cycle().take(most).map(|text| Setting::Block.case(text, &mut random)).collect();
    if parts.contains(&Part::Rows) {
        rows.extend(complete_rows(&mut solver, &blocks)?);
    }
    if parts.contains(&Part::Loops) {
        rows.extend(loops(constraint, &unseen, &texts.tokens(), most)?);
    }
    if parts.contains(&Part::Best) {
        rows.push(best(constraint, &unseen, &texts.tokens(), most)?.row("best, 32 open of 256, s = 1.5"));
    }
    print_table(&format!("{name}: {} texts {kind}", unseen.len()), &COLUMNS, &rows);
    println!("tables: {} MiB", solver.memory_usage() >> 20);
    if stages {
        print_stages(name, solver.counters());
    }
    Ok(())
}

/// How canvases are made of texts, as the shared ones are.
#[derive(Clone, Copy)]
enum Setting {
    /// Each token is a hole with so many per cent.
    Random(usize),
    /// So many regions of 3 to 12 tokens, as holes or as gaps.
    Spans(usize),
    Gaps(usize),
    /// A block of which half are holes.
    Block,
    /// A block of holes.
    Masked,
}

impl Setting {
    fn case(self, text: &[TokenId], random: &mut Random) -> Case {
        let mut slots: Vec<Slot> = text.iter().map(|&token| Slot::Fixed(token)).collect();
        let mut end = End::Sentence;
        match self {
            Self::Random(percent) => {
                slots.iter_mut().filter(|_| random.chance(percent)).for_each(|slot| *slot = Slot::Hole);
            }
            Self::Spans(n) | Self::Gaps(n) => {
                for _ in 0..n {
                    let length = 3 + random.below(10);
                    let from = random.below(slots.len().saturating_sub(length).max(1));
                    let to = (from + length).min(slots.len());
                    if slots[from..to].iter().all(|slot| matches!(slot, Slot::Fixed(_))) {
                        match self {
                            Self::Gaps(_) => drop(slots.splice(from..to, [Slot::Gap])),
                            _ => slots[from..to].fill(Slot::Hole),
                        }
                    }
                }
            }
            Self::Block | Self::Masked => {
                let first = random.below(text.len().div_ceil(BLOCK).max(1)) * BLOCK;
                slots.resize(first + BLOCK, Slot::Hole);
                let is_hole = |random: &mut Random| matches!(self, Self::Masked) || random.chance(50);
                slots[first..].iter_mut().filter(|_| is_hole(random)).for_each(|slot| *slot = Slot::Hole);
                end = End::Prefix { remaining: None };
            }
        }
        Case { canvas: Canvas::new(slots, end), text: text.to_vec() }
    }
}

fn completable(
    solver: &mut Solver,
    methods: &mut Methods,
    canvas: &Canvas,
    (exact, peer): (&mut Line, &mut Line),
) -> Result<()> {
    let (answer, time) = timed(|| solver.completable(canvas));
    let answer = answer?.decided();
    ensure!(answer != Some(false), "its text is a completion, and it was refused: {canvas:?}");
    exact.add(time, answer.is_some());
    let (said, time) = timed(|| methods.intersection(canvas, &IntersectionOptions::default()));
    let said = said?.verdict.decision.decided();
    ensure!(said != Some(false), "its text is a completion, and `intersection` refused it: {canvas:?}");
    peer.add(time, said.is_some());
    Ok(())
}

/// Complete rows of blocks, and after one slot changed. What is undecided are rows.
fn complete_rows(solver: &mut Solver, blocks: &[Case]) -> Result<Vec<Vec<String>>> {
    let (mut first, mut changed) = (Line::default(), Line::default());
    for Case { canvas, text } in blocks {
        let mut canvas = canvas.clone();
        for line in [&mut first, &mut changed] {
            let (answer, time) = timed(|| solver.admissible(&canvas));
            let answer = answer?;
            line.millis.push(time / 1e3);
            line.asked += answer.masks.len();
            line.undecided += answer.undecided.iter().flatten().count();
            for (hole, slot) in canvas.holes().enumerate() {
                let Some(&token) = text.get(slot) else { break };
                ensure!(!answer.get(hole, token).is_no(), "slot {slot} cannot hold {token:?}: {canvas:?}");
            }
            let holes: Vec<usize> = canvas.holes().filter(|&slot| slot < text.len()).collect();
            let Some(&slot) = holes.get(holes.len() * 5 / 8) else { break };
            canvas.set(slot, text[slot])?;
        }
    }
    Ok(vec![first.row("complete rows of a block"), changed.row("  after one slot changed")])
}

/// Marginals that are the same in all steps.
struct Fixed {
    rows: Vec<(usize, Vec<(TokenId, f64)>)>,
    size: usize,
}

impl Model for Fixed {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn open_slots(&self) -> OpenSlots {
        OpenSlots::Noise
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        for (&slot, row) in view.wanted.iter().zip(rows.chunks_mut(self.size)) {
            let known = self.rows.binary_search_by_key(&slot, |row| row.0).ok();
            let listed = known.map_or(&[][..], |at| &self.rows[at].1);
            let floor = listed.iter().map(|pair| pair.1).fold(0.0, f64::min) - 10.0;
            row.fill(floor as f32);
            listed.iter().for_each(|&(token, value)| row[token.index()] = value as f32);
        }
        Ok(())
    }
}

/// CPU microseconds of a strategy: of each step, and of each token that was kept.
#[derive(Default)]
struct Times {
    steps: Vec<f64>,
    tokens: Vec<f64>,
    since_token: f64,
    n_undecided: usize,
}

impl Times {
    fn add(&mut self, micros: f64) {
        self.steps.last_mut().into_iter().for_each(|step| *step += micros);
        self.since_token += micros;
    }
}

/// A strategy whose time is taken.
struct Clocked {
    inner: Exact,
    times: Arc<Mutex<Times>>,
}

impl Clocked {
    fn clocked<T>(
        &mut self,
        work: impl FnOnce(&mut Exact) -> Result<T, DecodeError>,
        note: impl FnOnce(&mut Times, &T),
    ) -> Result<T, DecodeError> {
        let (result, micros) = timed(|| work(&mut self.inner));
        let result = result?;
        let mut times = self.times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        times.add(micros);
        note(&mut times, &result);
        Ok(result)
    }
}

impl Strategy for Clocked {
    fn begin(&mut self, seed: u64) {
        self.inner.begin(seed);
    }

    fn restrict(&mut self, canvas: &Canvas, rows: &mut Rows, is_first: bool) -> Result<(), DecodeError> {
        if is_first {
            let mut times = self.times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            times.steps.push(0.0);
        }
        self.clocked(|inner| inner.restrict(canvas, rows, is_first), |_, ()| ())
    }

    fn judge(
        &mut self,
        canvas: &Canvas,
        slot: usize,
        token: TokenId,
        rows: &Rows,
    ) -> Result<Judgement, DecodeError> {
        let note = |times: &mut Times, judgement: &Judgement| {
            times.n_undecided += usize::from(!judgement.proven);
            if judgement.kept {
                let micros = std::mem::take(&mut times.since_token);
                times.tokens.push(micros);
            }
        };
        self.clocked(|inner| inner.judge(canvas, slot, token, rows), note)
    }

    fn refused(&mut self, canvas: &Canvas, rows: &Rows, sampling: Sampling) -> Result<Recovery, DecodeError> {
        self.clocked(|inner| inner.refused(canvas, rows, sampling), |_, _| ())
    }

    fn rescue(&mut self, canvas: &Canvas, rows: &Rows) -> Result<Option<Vec<TokenId>>, DecodeError> {
        self.clocked(|inner| inner.rescue(canvas, rows), |_, _| ())
    }

    fn refusals(&self) -> usize {
        self.inner.refusals()
    }
}

/// What a strategy takes on some canvases of the unseen texts, with marginals of a sharpness.
fn decoded(
    constraint: &Constraint,
    by: ExactBy,
    cases: &[Case],
    (tokens, sharpness): (&[TokenId], f64),
) -> Result<Times> {
    let times = Arc::new(Mutex::new(Times::default()));
    let inner = Exact::new(constraint, by)?;
    let mut decoder = Decoder::new(constraint, Box::new(Clocked { inner, times: Arc::clone(&times) }));
    let simulated = Simulated { listed: 32, noise: 1.5, sharpness };
    let mut random = Random::new(23);
    let options = DecodeOptions { steps: 8, block: None, ..DecodeOptions::default() };
    for Case { canvas, text } in cases {
        let rows = canvas.holes().zip(simulated.rows(canvas, text, tokens, &mut random)).collect();
        let mut model = Fixed { rows, size: constraint.vocabulary().len() };
        let decoded = decoder.decode(canvas, &mut model, &options)?;
        ensure!(!decoded.is_stuck, "its text is a completion, and decoding came to nothing: {canvas:?}");
    }
    let mut times = times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(std::mem::take(&mut *times))
}

/// The critical path of steps, and infilling token by token.
fn loops(
    constraint: &Constraint,
    texts: &[&Vec<TokenId>],
    tokens: &[TokenId],
    most: usize,
) -> Result<Vec<Vec<String>>> {
    let mut random = Random::new(29);
    let mut cases = |setting: Setting| -> Vec<Case> {
        texts.iter().cycle().take(most).map(|text| setting.case(text, &mut random)).collect()
    };
    let line = |millis: &[f64], undecided| Line {
        millis: millis.iter().map(|micros| micros / 1e3).collect(),
        asked: millis.len(),
        undecided,
    };
    let masked = cases(Setting::Masked);
    let mut rows = Vec::new();
    for sharpness in [3.0, 6.0] {
        for (name, by) in [("exact", ExactBy::Admissible), ("best", ExactBy::Best)] {
            let times = decoded(constraint, by, &masked, (tokens, sharpness))?;
            let what = format!("a step of `{name}`, block of 32, T = 8, s = {sharpness}");
            rows.push(line(&times.steps, times.n_undecided).row(&what));
        }
    }
    for n_regions in 1..=3 {
        let times =
            decoded(constraint, ExactBy::Compatible, &cases(Setting::Spans(n_regions)), (tokens, 3.0))?;
        let what = format!("`compatible`, a token, {n_regions} regions, s = 3");
        rows.push(line(&times.tokens, times.n_undecided).row(&what));
    }
    Ok(rows)
}

/// The best completion with flat marginals.
fn best(constraint: &Constraint, texts: &[&Vec<TokenId>], tokens: &[TokenId], most: usize) -> Result<Line> {
    const SLOTS: usize = 256;
    let eos = constraint.vocabulary().eos().first().copied().unwrap_or(TokenId(0));
    let mut weigher = Weigher::new(constraint)?;
    let mut random = Random::new(31);
    let mut line = Line::default();
    let simulated = Simulated { listed: 32, noise: 1.5, sharpness: 1.5 };
    for text in texts.iter().filter(|text| text.len() < SLOTS).cycle().take(most) {
        let mut row = (*text).clone();
        row.resize(SLOTS, eos);
        let canvas = crate::best::opened(&row, text.len(), 32, &mut random);
        let listed = simulated.rows(&canvas, &row, tokens, &mut random);
        let log_probs = LogProbs::listed(&listed, Floor::BelowListed)?;
        let (answer, time) = timed(|| weigher.best(&canvas, &log_probs, Tail::Counted));
        let answer = answer?;
        ensure!(!answer.is_no(), "its text is a completion: {canvas:?}");
        line.add(time, answer.decided().is_some());
        if let Decision::Yes(found) = answer {
            let known: f64 = listed.iter().map(|row| row[0].1).sum();
            ensure!(found.log_prob >= known - 1e-6, "{} is not best, for {known} is", found.log_prob);
        }
    }
    Ok(line)
}
