//! The OR of token sets into masks.

use anyhow::{Result, ensure};

use super::{Measured, Setting, Times};
use crate::measure::timed;

/// Rows, and the numbers of sets that each gets.
const N_ROWS: usize = 256;
const N_SETS: [usize; 3] = [1, 8, 64];

pub fn measure(setting: &Setting, measured: &mut Measured) -> Result<()> {
    let n_bits = setting.batch.2;
    let n_words = n_bits.div_ceil(32);
    let mut charts = setting.charts(setting.pool)?;
    let word = |set: usize, at: usize| ((set * 977 + at) as u32).wrapping_mul(0x9e37_79b9) & 0x0101_0101 << (set % 8);
    let sets: Vec<Vec<u32>> = (0..64).map(|set| (0..n_words).map(|at| word(set, at)).collect()).collect();
    let buffers = sets.iter().map(|set| charts.buffer(set)).collect::<Result<Vec<_>, _>>()?;
    let buffer = charts.buffer(&vec![0; n_words * N_ROWS])?;
    for n in N_SETS {
        let chosen: Vec<Vec<usize>> = (0..N_ROWS).map(|row| (0..n).map(|at| (row + at * 5) % 64).collect()).collect();
        let rows: Vec<Vec<_>> = chosen.iter().map(|row| row.iter().map(|&set| buffers[set]).collect()).collect();
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
        // Sets of a run before stay in the masks, and were smaller.
        let found = charts.read_buffer(&buffer)?;
        ensure!(found.iter().zip(&expected).all(|(found, expected)| expected & !found == 0), "a set is not there");
        if n == N_SETS[0] {
            ensure!(found == expected, "a mask has more than its set");
        }
        let mut row = times.row(format!("the OR of token sets, {N_ROWS} rows of {n_bits} bits, {n} sets each"));
        row.aim = (n_bits == 151_669 && n == 8).then_some(10.0);
        measured.rows.push(row);
    }
    Ok(())
}
