//! What fuzzing begins with: our cases, example grammars and vocabularies, in the notation of each target.

use std::fs;
use std::path::Path;

use anygram_testkit::cases::{self, CaseFormat};
use anygram_testkit::shared::root;
use anygram_testkit::text::bytes_of;

/// Of each case in this format the grammar, NUL, a text; with one that is a sentence and one that is not.
pub fn of_cases(format: CaseFormat) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for case in cases::load_all().into_iter().filter(|case| case.format == format) {
        for wanted in [true, false] {
            let text = case
                .texts
                .iter()
                .filter(|text| text.sentence == wanted)
                .find_map(|text| bytes_of(&text.text));
            seeds.push([case.grammar.as_bytes(), b"\0", &text.unwrap_or_default()].concat());
        }
    }
    seeds
}

/// Cases and example grammars in Lark.
pub fn lark() -> Vec<Vec<u8>> {
    let mut seeds = of_cases(CaseFormat::Lark);
    for folder in ["docs/lark-comparison", "crates/cli/demo"] {
        seeds.extend(files(&root().join(folder), |name| name.ends_with(".lark")));
    }
    seeds
}

/// The files of a folder whose names belong, in order.
fn files(folder: &Path, belongs: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut paths: Vec<_> = entries.filter(|path| belongs(&name(path))).collect();
    paths.sort();
    paths.into_iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// A byte for the options, and a file of the format that the target reads.
pub fn vocabularies(belongs: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    // What is longer than the inputs of a target is cut there.
    let of_file = |file: Vec<u8>| [0, 7].map(|options| [&[options], &file[..]].concat());
    files(&root().join("testdata/vocab"), belongs).into_iter().flat_map(of_file).collect()
}

/// Models of all types with a few pieces.
pub fn small_models() -> Vec<Vec<u8>> {
    let piece = |text: &str, score: f32, kind: u8| {
        let (n, score) = (text.len() as u8, score.to_le_bytes());
        [&[0x0a, n + 9, 0x0a, n], text.as_bytes(), &[0x15], &score, &[0x18, kind]].concat()
    };
    let pieces = [
        ("<unk>", 2),
        ("</s>", 3),
        ("<0x61>", 6),
        ("\u{2581}a", 1),
        ("a", 1),
        ("ab", 1),
        ("é", 1),
        ("b", 4),
        ("c", 5),
    ];
    let pieces: Vec<u8> =
        (0..).zip(pieces).flat_map(|(i, (text, kind))| piece(text, -(i as f32), kind)).collect();
    (1..=4).map(|kind| [&[0], &pieces[..], &[0x12, 2, 0x18, kind, 0x1a, 2, 0x28, 1]].concat()).collect()
}
