//! Measures the options of a pool: threads of a block, blocks of a team, blocks that search; each with one
//! kind of work in which it matters.

use anygram_cuda::PoolOptions;
use anyhow::Result;

use super::{Bench, Part, Setting, batch, part, steps, texts};

pub fn parts(setting: &Setting) -> Vec<Part> {
    let mut parts = Vec::new();
    for &threads in &setting.threads {
        parts.push(part(format!("sweep/threads/{threads}"), move |bench| by_threads(bench, threads)));
    }
    for &team_blocks in &setting.teams {
        parts.push(part(format!("sweep/team/{team_blocks}"), move |bench| by_team(bench, team_blocks)));
    }
    // Of a batch, blocks in depth for each mask.
    for workers in [1, 2, 4, 8] {
        parts.push(part(format!("sweep/batch workers/{workers}"), move |bench| {
            let sizes = [bench.setting.batch.sizes.iter().copied().max().unwrap_or(1)];
            let max_workers = workers * sizes[0];
            // Stacks of all workers are memory of the pool.
            let stack_words = 16 << 10;
            let pool = PoolOptions { workers, max_workers, stack_words, ..bench.setting.pool };
            batch::measure(bench, &sizes, pool, &format!(", {workers} blocks a mask"))
        }));
    }
    parts
}

/// A saturated chart by one block and by a team, and whole steps on texts.
fn by_threads(bench: &mut Bench<'_>, threads: u32) -> Result<()> {
    let pool = PoolOptions { threads, ..bench.setting.pool };
    let n = bench.setting.lengths.last().copied().unwrap_or(1).min(320);
    steps::saturated(bench, &format!("several blocks of {threads} threads"), pool, &[n])?;
    steps::saturated(
        bench,
        &format!("one block of {threads} threads"),
        PoolOptions { team_blocks: 1, ..pool },
        &[n.min(100)],
    )?;
    let name = if texts::is_here(bench, "treebank_raw") { "treebank_raw" } else { "small" };
    let work = texts::work(bench, name)?;
    texts::whole_steps(bench, &work, pool, &format!(", {threads} threads"))
}

/// A saturated chart by so many blocks.
fn by_team(bench: &mut Bench<'_>, team_blocks: usize) -> Result<()> {
    let pool = PoolOptions { team_blocks, team_from: 0, ..bench.setting.pool };
    let lengths = bench.setting.lengths.clone();
    steps::saturated(bench, &format!("a team of {team_blocks}"), pool, &lengths)
}
