//! Figure 5 of the paper: the time of a mask against the number of blocks that search, by how many levels they search in breadth.

use anygram_cuda::PoolOptions;
use anygram_cuda::output::Output;
use anyhow::{Result, ensure};

use super::texts::Work;
use super::{Curve, Measured, Setting, Times, lock};
use crate::measure::median;

/// Masks of each text are taken at so many places.
const PLACES: usize = 8;

pub fn measure(setting: &Setting, works: &[Work], measured: &mut Measured) -> Result<()> {
    for work in works {
        for levels in setting.levels.clone() {
            let mut points = Vec::new();
            for &workers in &setting.workers {
                points.push((workers as f64, masks(setting, work, workers, levels)?));
            }
            let label = format!("{}, {levels} in breadth", work.name);
            measured.workers.push(Curve { group: work.name.clone(), label, points });
        }
    }
    Ok(())
}

/// The median mask over some places of some texts.
fn masks(setting: &Setting, work: &Work, workers: usize, levels: usize) -> Result<f64> {
    let charts = setting.shared_charts(PoolOptions { workers, ..setting.pool })?;
    let mut output = Output::new(&work.constraint, &charts, levels)?;
    let mut matcher = work.constraint.matcher()?;
    let mut times = Times::default();
    for text in work.texts.iter().take(PLACES) {
        let text = &text[..text.len().min(setting.texts.1)];
        let every = text.len().div_ceil(PLACES).max(1);
        for (at, &token) in text.iter().enumerate() {
            output.advance(token)?;
            matcher.advance(token)?;
            if at % every != 0 {
                continue;
            }
            let readings = [output.readings()?];
            let expected = matcher.mask()?;
            let mut charts = lock(&charts);
            for _ in 0..3 {
                let masks = times.run(&mut charts, |charts| charts.masks_on_device(&readings, levels))?;
                ensure!(charts.statuses(1)?.0[0].is_ok(), "a mask failed");
                ensure!(charts.read_masks(masks)?[0] == expected, "a mask of the device is not that of the CPU");
            }
        }
        output.reset();
        matcher.reset();
    }
    Ok(median(&times.device))
}
