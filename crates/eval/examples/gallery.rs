//! The canvases of `docs/gallery.md`: C++, JSON and SQL under `exact` and without a constraint.
//!
//! `gallery FOLDER` writes a page for each. In place of a model there are marginals that know a text: the
//! true token of a slot leads 31 others by 5 on the scale of logits, before noise of 1.5. The beginning of a
//! text is given. Equal programs write equal canvases, but for times.

use std::path::PathBuf;

use anygram::decode::Named;
use anygram::{Canvas, Compiler, Constraint, DecodeOptions, Decoder, End, GrammarFormat, Slot, Vocabulary};
use anygram_eval::Simulated;
use anygram_replay::{Ending, Replay, Run};

/// A language, a text of it, and how many of its first bytes are given.
struct Piece {
    name: &'static str,
    grammar: &'static str,
    text: &'static str,
    given: usize,
}

const PIECES: [Piece; 3] = [
    Piece {
        name: "cpp",
        grammar: include_str!("gallery/cpp.lark"),
        text: include_str!("gallery/text.cpp"),
        given: 41,
    },
    Piece {
        name: "json",
        grammar: include_str!("../../models/grammars/record.lark"),
        text: include_str!("gallery/text.json"),
        given: 9,
    },
    Piece {
        name: "sql",
        grammar: include_str!("gallery/sql.lark"),
        text: include_str!("gallery/text.sql"),
        given: 6,
    },
];

/// Questions to the model.
const STEPS: usize = 12;
/// How far the true token leads.
const SHARPNESS: f64 = 5.0;
/// Slots behind the text.
const SPARE: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: gallery FOLDER")?);
    std::fs::create_dir_all(&folder)?;
    for piece in PIECES {
        let text = piece.text.trim_end();
        let language = Compiler::default().compile(GrammarFormat::Lark, piece.grammar)?;
        let constraint = Constraint::new(language, Vocabulary::builtin())?;
        let vocabulary = constraint.vocabulary();
        let tokens = vocabulary.encode(text)?;
        let n_given = vocabulary.encode(&text[..piece.given])?.len();
        let eos = *vocabulary.eos().first().ok_or("the vocabulary has no EOS")?;
        let truth: Vec<_> = tokens.iter().copied().chain(std::iter::repeat_n(eos, SPARE)).collect();
        let slot = |(at, &token)| if at < n_given { Slot::Fixed(token) } else { Slot::Hole };
        let canvas = Canvas::new(truth.iter().enumerate().map(slot).collect(), End::Sentence);
        let mut listed = tokens.clone();
        listed.sort_unstable();
        listed.dedup();
        let mut replay = Replay::new(&constraint);
        replay.fact("language", piece.name);
        replay.fact(
            "marginals",
            &format!("simulated: the true token leads by {SHARPNESS}, before noise of 1.5"),
        );
        replay.fact("text", text);
        replay.fact("steps", &STEPS.to_string());
        for method in ["exact", "none"] {
            let named = Named::find(method).ok_or("no such method")?;
            let mut decoder = Decoder::new(&constraint, named.make(&constraint)?);
            let slots = truth.iter().copied().enumerate().skip(n_given);
            let mut model = Simulated::new(vocabulary, slots, &listed, SHARPNESS, 1);
            let options = DecodeOptions { steps: STEPS, block: None, ..DecodeOptions::default() };
            let decoded = decoder.decode(&canvas, &mut model, &options)?;
            let ending = Ending::of(&constraint, &decoded.canvas)?;
            let (_, us) = decoded.trace.sums();
            let is_wrong = |(slot, token): (&Slot, &_)| *slot != Slot::Fixed(*token);
            let n_wrong = decoded.canvas.slots().iter().zip(&truth).filter(|pair| is_wrong(*pair)).count();
            println!("{n_wrong} of {} tokens are not those of the text", truth.len() - n_given);
            println!(
                "{}, {method}, {:.1} ms: {}\n{}\n",
                piece.name,
                us / 1e3,
                ending.is_sentence(),
                ending.text
            );
            replay.add(&Run::new(method, &decoded, &ending));
        }
        std::fs::write(folder.join(format!("{}.html", piece.name)), replay.page())?;
    }
    Ok(())
}
