//! Texts through ids and back: `encode FILE [--pattern REGEX] [--id-offset N]` reads a JSON string a line
//! from standard input and writes a JSON array of ids, or `null` where no tokens spell the text.
//!
//! `tools/compare.py` compares this with the libraries that vocabularies come from.

use std::error::Error;
use std::io::{BufRead, Write};

use anygram_vocab::{LoadOptions, Vocabulary};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: encode FILE [--pattern REGEX] [--id-offset N]")?;
    let mut options = LoadOptions::default();
    while let (Some(option), Some(value)) = (arguments.next(), arguments.next()) {
        match option.as_str() {
            "--pattern" => options.pattern = Some(value),
            "--id-offset" => options.id_offset = value.parse()?,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let vocabulary = Vocabulary::from_file(file, &options)?;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        let ids: Option<Vec<u32>> = match vocabulary.encode(&text) {
            Ok(tokens) => {
                assert_eq!(vocabulary.decode(&tokens)?, text.as_bytes());
                Some(tokens.iter().map(|id| id.0).collect())
            }
            Err(_) => None,
        };
        writeln!(output, "{}", serde_json::to_string(&ids)?)?;
    }
    Ok(())
}
