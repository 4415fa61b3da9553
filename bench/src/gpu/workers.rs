//! Measures figure 5 of the paper: the time of a mask against the number of blocks that search, for several
//! numbers of breadth-first levels.

use anygram_cuda::PoolOptions;
use anygram_cuda::output::Output;
use anyhow::{Result, ensure};

use super::{Bench, Part, Setting, Times, lock, part, texts};
use crate::measure::median;

/// Masks of some texts are taken at so many places each.
const TEXTS: usize = 4;
const PLACES: usize = 6;

pub fn parts(setting: &Setting) -> Vec<Part> {
    let of = |name: &'static str| {
        let levels = setting.levels.clone();
        levels.map(move |levels| {
            part(format!("workers/{name}/{levels}"), move |bench| measure(bench, name, levels))
        })
    };
    texts::NAMES.into_iter().flat_map(of).collect()
}

fn measure(bench: &mut Bench<'_>, name: &'static str, levels: usize) -> Result<()> {
    let work = texts::work(bench, name)?;
    let mut points = Vec::new();
    for &workers in &bench.setting.workers {
        points.push((workers as f64, masks(bench.setting, &work, workers, levels)?));
    }
    bench.curve("workers", &work.name, &format!("{}, {levels} in breadth", work.name), points)
}

/// The median mask over some places of some texts.
fn masks(setting: &Setting, work: &texts::Work, workers: usize, levels: usize) -> Result<f64> {
    let charts = setting.shared_charts(PoolOptions { workers, max_workers: workers, ..setting.pool })?;
    let mut output = Output::new(&work.constraint, &charts, levels)?;
    let mut matcher = work.constraint.matcher()?;
    let mut times = Times::default();
    for text in work.texts.iter().take(TEXTS) {
        let text = &text[..text.len().min(setting.texts.1)];
        let every = text.len().div_ceil(PLACES).max(1);
        for (at, &token) in text.iter().enumerate() {
            output.advance(token)?;
            matcher.advance(token)?;
            if at % every != 0 {
                continue;
            }
            let readings = [output.readings()?];
            let expected = matcher.mask()?.into_words();
            let mut charts = lock(&charts);
            for _ in 0..3 {
                let masks = times.run(&mut charts, |charts| charts.masks_on_device(&readings, levels))?;
                match charts.statuses(1)?.0.remove(0) {
                    Err(anygram_cuda::ChartError::InDoubt) => continue,
                    status => status?,
                }
                ensure!(
                    charts.read_masks(masks)?[0] == expected,
                    "a mask of the device is not that of the CPU"
                );
            }
        }
        output.reset();
        matcher.reset();
    }
    Ok(median(&times.device))
}
