//! Writes examples as JSON Lines, for the training scripts: `write_data FOLDER [N_PER_TASK] [SEED]`.
//!
//! `train.jsonl` has the tasks in turn; `held_out.jsonl` as many of each as a fiftieth. A line is
//! `{"task", "prompt", "answer"}`.

use anygram_models::tasks::{Split, Task};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: write_data FOLDER [N_PER_TASK] [SEED]")?;
    let n_examples: usize = arguments.next().map_or(Ok(40_000), |n| n.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    std::fs::create_dir_all(&folder)?;
    for (split, name, n_examples) in [
        (Split::Train, "train.jsonl", n_examples),
        (Split::HeldOut, "held_out.jsonl", n_examples.div_ceil(50)),
    ] {
        let mut file = BufWriter::new(File::create(Path::new(&folder).join(name))?);
        let mut streams = Task::ALL.map(|task| task.stream(split, seed));
        for _ in 0..n_examples {
            for example in streams.iter_mut().filter_map(Iterator::next) {
                let line =
                    json!({"task": example.task.name(), "prompt": example.prompt, "answer": example.answer});
                writeln!(file, "{line}")?;
            }
        }
        file.flush()?;
    }
    Ok(())
}
