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
        "vocab" => vocab(&root)?,
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

/// A byte for the format, and a file.
fn vocab(root: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut seeds = vec![b"\x03\x0a\x08\x0a\x01a\x15\x00\x00\x00\x00".to_vec()];
    for file in fs::read_dir(root.join("testdata/vocab"))? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let format = match name.as_str() {
            _ if name.contains(".tiktoken") => 0,
            "array.json" => 1,
            _ if name.ends_with(".json") => 2,
            _ if name.ends_with(".model") => 3,
            _ => continue,
        };
        let file = fs::read(path)?;
        seeds.push([&[format], &file[..]].concat());
        seeds.push([&[format + 8], &file[..]].concat());
    }
    Ok(seeds)
}
