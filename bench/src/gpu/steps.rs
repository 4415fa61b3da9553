//! Steps of the parser on dense charts.

use anygram::parts::grammar::cfg::Cfg;
use anygram::parts::grammar::ir::TerminalId;
use anygram::parts::grammar::normal::NormalForm;
use anygram::parts::recognizer::valiant::Valiant;
use anygram::parts::recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anygram_cuda::{Charts, Image, PoolOptions, SequenceId};
use anyhow::{Result, ensure};

use super::{Curve, Measured, Setting, Times, is_refused};
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

/// One block, several, and the variants that are measured: a name, and what it sets.
fn variants(setting: &Setting) -> Vec<(&'static str, PoolOptions)> {
    let one = PoolOptions { team_blocks: 1, ..setting.pool };
    vec![
        ("one block", one),
        ("several blocks", PoolOptions { team_blocks: setting.pool.team_blocks.max(2), ..setting.pool }),
        ("one block, TMA", PoolOptions { bulk_loads: true, ..one }),
        ("several blocks, TMA", PoolOptions { bulk_loads: true, ..setting.pool }),
    ]
}

pub fn measure(setting: &Setting, measured: &mut Measured) -> Result<()> {
    let (symbols, lefts, rules) = setting.random;
    let saturated = format!("saturated chart ({rules} rules)");
    for (name, cfg) in [
        ("`s: s s \\| \"a\"`".to_owned(), input::cfg(&[('S', "SS"), ('S', "a")])),
        (saturated, input::saturated(symbols, lefts, rules)?),
    ] {
        for (variant, pool) in variants(setting) {
            let charts = match setting.charts(pool) {
                Err(error) if is_refused(&error) => {
                    measured.left_out.push(format!("{name}, {variant}: {error}"));
                    continue;
                }
                charts => charts?,
            };
            if pool.bulk_loads && setting.device.is_none() {
                measured.left_out.push(format!("{name}, {variant}: the shim has no bulk loads"));
                continue;
            }
            curve(setting, &format!("{name}, {variant}"), &cfg, charts, measured)?;
        }
    }
    Ok(())
}

fn curve(setting: &Setting, name: &str, cfg: &Cfg, mut charts: Charts, measured: &mut Measured) -> Result<()> {
    let grammar = charts.add_grammar(&Image::new(cfg, &NormalForm::binary(cfg))?)?;
    let mut engine = Valiant::new(cfg.clone(), RecognizerLimits::default())?;
    let id = charts.create(&[grammar]).remove(0)?;
    let mut points = Vec::new();
    for &n in &setting.lengths {
        while engine.n_states() <= n {
            let edges = edge(engine.n_states() - 1);
            let state = engine.extend(&edges)?;
            ensure!(charts.extend(&[(id, &edges)]).remove(0)? == state, "{name}: the device and the CPU differ");
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
        if name.starts_with("saturated") && n == 1_000 && name.ends_with("several blocks") {
            (row.aim, row.kind) = (Some(600.0), Some("dense"));
        }
        measured.rows.push(row);
    }
    measured.steps.push(Curve { group: name.to_owned(), label: format!("a step, {name}"), points });
    Ok(())
}
