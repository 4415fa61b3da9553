//! Loads vocabularies and prints how long it took, best of five:
//! `cargo run --release --example load -- FILE…`

use anygram_vocab::{LoadOptions, TokenTrie, Vocabulary};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let (load, vocabulary) = best(|| Vocabulary::from_file(&path, &LoadOptions::default()));
        let vocabulary = vocabulary?;
        let tokens = (0..vocabulary.len()).map(anygram_vocab::TokenId::new);
        let tokens: Vec<_> = tokens.filter_map(|id| Some((id, vocabulary.bytes(id)?))).collect();
        let (build, trie) = best(|| TokenTrie::new(tokens.iter().copied()));
        vocabulary.validate()?;
        println!(
            "{path}: {} ids, {} trie nodes, {} KiB, loaded in {:.1} ms, of which the trie {:.1} ms",
            vocabulary.len(),
            trie.n_nodes(),
            vocabulary.memory_usage() / 1024,
            load.as_secs_f64() * 1e3,
            build.as_secs_f64() * 1e3,
        );
    }
    Ok(())
}

fn best<T>(mut f: impl FnMut() -> T) -> (Duration, T) {
    let timed = (0..5).map(|_| {
        let start = Instant::now();
        let value = f();
        (start.elapsed(), value)
    });
    timed.min_by_key(|(time, _)| *time).expect("five runs")
}
