//! Measures the OR of token sets into masks.

use anygram_bits::Random;
use anyhow::{Result, ensure};

use super::{Bench, Times};
use crate::measure::timed;

/// Rows, and the numbers of sets that each gets; the one that an aim is set for first.
const N_ROWS: usize = 256;
const N_SETS: [usize; 3] = [8, 1, 64];

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let setting = bench.setting;
    let n_bits = setting.batch.n_tokens;
    let n_words = n_bits.div_ceil(32);
    let mut charts = setting.charts(setting.pool)?;
    let mut random = Random::new(1);
    let mut word = |set: usize| random.bits() as u32 & 0x0101_0101 << (set % 8);
    let sets: Vec<Vec<u32>> = (0..64).map(|set| (0..n_words).map(|_| word(set)).collect()).collect();
    let buffers = sets.iter().map(|set| charts.buffer(set)).collect::<Result<Vec<_>, _>>()?;
    for n in N_SETS {
        let buffer = charts.buffer(&vec![0; n_words * N_ROWS])?;
        let chosen: Vec<Vec<usize>> =
            (0..N_ROWS).map(|row| (0..n).map(|at| (row + at * 5) % 64).collect()).collect();
        let rows: Vec<Vec<_>> =
            chosen.iter().map(|row| row.iter().map(|&set| buffers[set]).collect()).collect();
        let mut times = Times::default();
        for _ in 0..setting.runs {
            times.run(&mut charts, |charts| charts.or_buffers(&buffer, &rows))?;
        }
        let mut expected = vec![0u32; n_words * N_ROWS];
        let ((), time) = timed(|| {
            for (mask, chosen) in expected.chunks_exact_mut(n_words).zip(&chosen) {
                for &set in chosen {
                    mask.iter_mut().zip(&sets[set]).for_each(|(word, more)| *word |= more);
                }
            }
        });
        times.cpu.push(time);
        ensure!(charts.read_buffer(&buffer)? == expected, "a mask is not the union of its sets");
        let mut row =
            times.row(format!("the OR of token sets, {N_ROWS} rows of {n_bits} bits, {n} sets each"));
        row.aim = (n_bits == 151_669 && n == 8).then_some(10.0);
        bench.row(row)?;
    }
    Ok(())
}
