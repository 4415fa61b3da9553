//! Writes the seeds of a fuzz target: `seeds TARGET FOLDER`.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use anygram_fuzz::TARGETS;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, folder] = &arguments[..] else { return Err("usage: seeds TARGET FOLDER".into()) };
    let target =
        TARGETS.iter().find(|target| target.name == name).ok_or_else(|| format!("{name} is no target"))?;
    fs::create_dir_all(folder)?;
    for (at, seed) in (target.seeds)().iter().enumerate() {
        fs::write(Path::new(folder).join(format!("seed-{at:03}")), seed)?;
    }
    Ok(())
}
