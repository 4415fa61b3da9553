//! Writes the seeds of the fuzz targets: `seeds TARGET FOLDER`.
//!
//! They are our cases, example grammars and vocabularies, in the notation of each target.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anygram_testkit::cases::{self, CaseFormat};
use anygram_testkit::text::bytes_of;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [target, folder] = &arguments[..] else { return Err("usage: seeds TARGET FOLDER".into()) };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let seeds = match target.as_str() {
        "lark" => lark(&root)?,
        "gbnf" => of_cases(CaseFormat::Gbnf),
        "ebnf" => [of_cases(CaseFormat::Ebnf), of_cases(CaseFormat::Gbnf)].concat(),
        "regex" => of_cases(CaseFormat::Regex),
        "nltk" => of_cases(CaseFormat::Nltk),
        "mask_oracle" => (0..48).map(|seed: u64| [&seed.to_le_bytes()[..], &[seed as u8, 1, 2, 3]].concat()).collect(),
        "batch" => batch(),
        "tiktoken" => vocabularies(&root, |name| name.contains(".tiktoken"))?,
        "json_array" => vocabularies(&root, |name| name == "array.json")?,
        "hugging_face" => vocabularies(&root, |name| name.starts_with("byte_"))?,
        "sentence_piece" => [vocabularies(&root, |name| name.ends_with(".model"))?, small_models()].concat(),
        _ => return Err(format!("{target} is no target").into()),
    };
    fs::create_dir_all(folder)?;
    for (at, seed) in seeds.iter().enumerate() {
        fs::write(Path::new(folder).join(format!("seed-{at:03}")), seed)?;
    }
    Ok(())
}

/// Of each case in this format the grammar, NUL, a text; with one that is a sentence and one that is not.
fn of_cases(format: CaseFormat) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for case in cases::load_all().into_iter().filter(|case| case.format == format) {
        for wanted in [true, false] {
            let text = case.texts.iter().filter(|text| text.sentence == wanted).find_map(|text| bytes_of(&text.text));
            seeds.push([case.grammar.as_bytes(), b"\0", &text.unwrap_or_default()].concat());
        }
    }
    seeds
}

fn lark(root: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut seeds = of_cases(CaseFormat::Lark);
    for folder in ["docs/lark-comparison", "crates/cli/demo"] {
        let Ok(files) = fs::read_dir(root.join(folder)) else { continue };
        for file in files {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "lark") {
                seeds.push(fs::read(path)?);
            }
        }
    }
    Ok(seeds)
}

/// Lines.
fn batch() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"id":1,"op":"text","text":"[a, 1.5]"}"#,
        r#"{"id":2,"op":"mask","tokens":[91,97]}"#,
        r#"{"id":3,"op":"mask","tokens":[91,4294967295,-1,1e3,"a",null]}"#,
        r#"{"id":4,"op":"mask","tokens":[],"budget":3}"#,
        r#"{"id":5,"op":"canvas","slots":[17,null,"*",5],"end":"sentence","want":["completable"]}"#,
        r#"{"id":{"a":[1]},"op":"text","text":"\ud83d\ude00"}"#,
        r#"[1,2"#,
    ];
    let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    seeds.push(lines.join("\n").into_bytes());
    seeds
}

/// A byte for the options, and a file of the format that the target reads.
fn vocabularies(root: &Path, belongs: impl Fn(&str) -> bool) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut seeds = Vec::new();
    for file in fs::read_dir(root.join("testdata/vocab"))? {
        let path = file?.path();
        if belongs(&path.file_name().unwrap_or_default().to_string_lossy()) {
            let file = fs::read(path)?;
            // What is longer than the inputs of a target is cut there.
            seeds.extend([0, 7].map(|options| [&[options], &file[..]].concat()));
        }
    }
    Ok(seeds)
}

/// Models of all types with a few pieces.
fn small_models() -> Vec<Vec<u8>> {
    let piece = |text: &str, score: f32, kind: u8| {
        let (n, score) = (text.len() as u8, score.to_le_bytes());
        [&[0x0a, n + 9, 0x0a, n], text.as_bytes(), &[0x15], &score, &[0x18, kind]].concat()
    };
    let pieces =
        [("<unk>", 2), ("</s>", 3), ("<0x61>", 6), ("\u{2581}a", 1), ("a", 1), ("ab", 1), ("é", 1), ("b", 4), ("c", 5)];
    let pieces: Vec<u8> = (0..).zip(pieces).flat_map(|(i, (text, kind))| piece(text, -(i as f32), kind)).collect();
    (1..=4).map(|kind| [&[0], &pieces[..], &[0x12, 2, 0x18, kind, 0x1a, 2, 0x28, 1]].concat()).collect()
}
