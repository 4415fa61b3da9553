//! Measures steps of the parser on dense charts.

use anygram_cuda::{Charts, Image, PoolOptions, SequenceId};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::TerminalId;
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anyhow::{Result, ensure};

use super::{Bench, Part, Setting, Times, part, refused};
use crate::input;
use crate::measure::timed;

fn edge(at: usize) -> [Edge; 1] {
    [Edge { from: StateId::new(at), terminal: Some(TerminalId::new(0)) }]
}

/// Holds a state of the device against that of the CPU, row by row.
pub fn same_state(charts: &mut Charts, id: SequenceId, engine: &Valiant, state: StateId) -> Result<()> {
    let tier = charts.tier(id, state)?;
    let mut is_same = tier.viable == *engine.viable(state) && tier.predicted == *engine.predicted(state);
    for left in engine.form().left_children() {
        let words = tier.rows.iter().find(|(symbol, _)| *symbol == left).map_or(&[][..], |(_, words)| words);
        let rows = (0..words.len() * 64).rev().filter(|row| words[row / 64] >> (row % 64) & 1 == 1);
        is_same &= rows.map(StateId::new).eq(engine.rows_of(state, left));
    }
    ensure!(is_same, "the device and the CPU differ at {state:?}");
    Ok(())
}

/// What is measured on dense charts: a name, and what it sets.
fn variants(setting: &Setting) -> [(&'static str, PoolOptions); 4] {
    let one = PoolOptions { team_blocks: 1, ..setting.pool };
    let several = PoolOptions { team_blocks: setting.pool.team_blocks.max(2), ..setting.pool };
    [
        ("several blocks", several),
        ("one block", one),
        ("one block, TMA", PoolOptions { bulk_loads: true, ..one }),
        ("several blocks, TMA", PoolOptions { bulk_loads: true, ..several }),
    ]
}

/// The saturated chart first: an aim is set for it.
pub fn parts(setting: &Setting) -> Vec<Part> {
    let mut parts = Vec::new();
    for (variant, pool) in variants(setting) {
        let lengths = setting.lengths.clone();
        parts.push(part(format!("steps/saturated/{variant}"), move |bench| {
            saturated(bench, variant, pool, &lengths)
        }));
    }
    for (variant, pool) in variants(setting).into_iter().filter(|_| !setting.is_quick) {
        let lengths = setting.lengths.clone();
        let cfg = input::cfg(&[('S', "SS"), ('S', "a")]);
        parts.push(part(format!("steps/s: s s/{variant}"), move |bench| {
            curve(bench, &format!("`s: s s \\| \"a\"`, {variant}"), &cfg, pool, &lengths)
        }));
    }
    parts
}

/// Steps of a random grammar in which nearly everything derives nearly everything.
pub fn saturated(bench: &mut Bench<'_>, variant: &str, pool: PoolOptions, lengths: &[usize]) -> Result<()> {
    let (symbols, lefts, rules) = bench.setting.random;
    let cfg = input::saturated(symbols, lefts, rules)?;
    curve(bench, &format!("saturated chart ({rules} rules), {variant}"), &cfg, pool, lengths)
}

fn curve(bench: &mut Bench<'_>, name: &str, cfg: &Cfg, pool: PoolOptions, lengths: &[usize]) -> Result<()> {
    let setting = bench.setting;
    let mut charts = refused(setting.charts(pool))?;
    let grammar = charts.add_grammar(&Image::new(cfg, &NormalForm::binary(cfg))?)?;
    let mut engine = Valiant::new(cfg.clone(), RecognizerLimits::default())?;
    let id = charts.create(&[grammar]).remove(0)?;
    let mut points = Vec::new();
    for &n in lengths {
        while engine.n_states() <= n {
            let edges = edge(engine.n_states() - 1);
            let state = engine.extend(&edges)?;
            ensure!(
                charts.extend(&[(id, &edges)]).remove(0)? == state,
                "{name}: the device and the CPU differ"
            );
        }
        let (edges, mut times) = (edge(n), Times::default());
        for _ in 0..setting.runs {
            let mark = engine.mark();
            let (state, time) = timed(|| engine.extend(&edges));
            times.cpu.push(time);
            let found = times.run(&mut charts, |charts| charts.extend(&[(id, &edges)]).remove(0))?;
            ensure!(state? == found, "{name}: the device and the CPU differ");
            let Some(state) = found else { anyhow::bail!("{name}: a step is not viable") };
            same_state(&mut charts, id, &engine, state)?;
            engine.release(mark);
            charts.rollback(id, n + 1)?;
        }
        let mut row = times.row(format!("a step, {name}, n = {n}"));
        points.push((n as f64, row.device));
        if name.starts_with("saturated")
            && n == setting.lengths[setting.lengths.len() - 1]
            && name.ends_with(", several blocks")
        {
            row.auto = Some("dense".to_owned());
            row.aim = (n == 1_000).then_some(600.0);
        }
        bench.row(row)?;
    }
    bench.curve("steps", name, &format!("a step, {name}"), points)
}
