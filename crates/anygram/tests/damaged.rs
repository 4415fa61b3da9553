//! Damaged copies of real grammar files: each is answered, or refused with a reason that can be shown, within
//! the default limits and 1 GB.
//!
//! The files are those of the shared data in a format that is read, and our own cases. `ANYGRAM_DAMAGE=N`
//! makes N copies of each instead of a few; `--nocapture` prints what became of them and the slowest.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anygram::{Compiler, Constraint, GrammarFormat, Vocabulary};
use anygram_bits::Random;
use anygram_testkit::shared::data;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What may be held at any time, in bytes.
const MAX_MEMORY: usize = 1 << 30;
/// Copies of each file.
const COPIES: u64 = 6;

/// The file with a few things done to it that editors, networks and people do.
fn damaged(file: &[u8], random: &mut Random) -> Vec<u8> {
    const PIECES: [&[u8]; 22] = [
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b"\"",
        b"'",
        b"/",
        b"\\",
        b"|",
        b"~99999999",
        b"{0,99999999}",
        b"*",
        b"+",
        b"\n",
        b":",
        b"::=",
        b"->",
        b"%",
        b"\xff",
        "\u{1f600}".as_bytes(),
    ];
    let mut file = file.to_vec();
    for _ in 0..1 + random.below(4) {
        let (a, b) = (random.below(file.len() + 1), random.below(file.len() + 1));
        let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 400));
        match random.below(7) {
            0 => file.truncate(a),
            1 => drop(file.drain(from..to)),
            2 => {
                let part = file[from..to].to_vec();
                file.splice(a..a, part);
            }
            3 if !file.is_empty() => {
                let at = random.below(file.len());
                file[at] ^= 1 << random.below(8);
            }
            4 => {
                if let Some(digit) = (a..file.len()).find(|&at| file[at].is_ascii_digit()) {
                    file.splice(digit..digit + 1, *b"9999999");
                }
            }
            _ => {
                let piece = *random.choose(&PIECES);
                file.splice(a..a, piece.iter().copied());
            }
        }
    }
    file
}

fn shared_files() -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let data = data()?;
    let mut files = Vec::new();
    let mut folders = vec![data.join("grammars"), data.join("replay")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if GrammarFormat::of_path(&path).is_some() {
                files.push((path.clone(), std::fs::read(&path).unwrap()));
            }
        }
    }
    let packed = data.join("cfg_commandtalk/commandtalk.cfg.gz");
    let mut commandtalk = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&packed).unwrap())
        .read_to_end(&mut commandtalk)
        .unwrap();
    // Latin-1.
    let commandtalk: String = commandtalk.into_iter().map(char::from).collect();
    files.push((packed.with_extension(""), commandtalk.into_bytes()));
    files.sort();
    Some(files)
}

/// What became of one copy.
fn answer(format: GrammarFormat, bytes: &[u8]) -> &'static str {
    let source = match anygram_grammar::diagnostic::decode(bytes) {
        Ok(source) => source,
        Err(error) => {
            assert!(error.span().end <= bytes.len());
            return "not UTF-8";
        }
    };
    match Compiler::default().compile(format, source) {
        Ok(language) => {
            // Special tokens that the vocabulary lacks are an answer too.
            let Ok(constraint) = Constraint::new(language, Vocabulary::builtin()) else { return "compiled" };
            let mut matcher = constraint.matcher().unwrap();
            matcher.mask().unwrap();
            "compiled"
        }
        Err(error) => {
            let Some(error) = error.grammar_error() else {
                assert!(!error.to_string().is_empty());
                return "no language, or a limit";
            };
            assert!(error.span().start <= error.span().end && error.span().end <= source.len(), "{error}");
            let rendered = error.render("grammar", source);
            assert!(
                !error.message().is_empty() && rendered.len() < 5_000,
                "{error}: {} bytes",
                rendered.len()
            );
            "refused"
        }
    }
}

#[test]
fn damaged_grammars_are_answered_or_refused() {
    let Some(files) = shared_files() else { return };
    assert!(files.len() > 30, "{} files", files.len());
    let copies = std::env::var("ANYGRAM_DAMAGE").map_or(COPIES, |n| n.parse().unwrap());
    let mut outcomes = std::collections::BTreeMap::new();
    let mut slowest = (Duration::ZERO, String::new());
    let mut largest = 0;
    for (at, (path, file)) in files.iter().enumerate() {
        let format = GrammarFormat::of_path(path).unwrap();
        for copy in 0..copies {
            let seed = at as u64 * 1_000_003 + copy;
            let bytes = damaged(file, &mut Random::new(seed));
            PeakAlloc.reset_peak_usage();
            let before = PeakAlloc.current_usage();
            let start = Instant::now();
            *outcomes.entry(answer(format, &bytes)).or_insert(0) += 1;
            let took = start.elapsed();
            let peak = PeakAlloc.peak_usage().saturating_sub(before);
            largest = largest.max(peak);
            assert!(peak < MAX_MEMORY, "{} copy {copy}: {peak} bytes", path.display());
            if took > slowest.0 {
                slowest = (took, format!("{} copy {copy}", path.display()));
            }
        }
    }
    println!("{} files, {copies} copies of each: {outcomes:?}", files.len());
    println!("slowest {:.3} s: {}; most memory {} MB", slowest.0.as_secs_f64(), slowest.1, largest >> 20);
    assert!(outcomes.contains_key("compiled") && outcomes.contains_key("refused"), "{outcomes:?}");
}
