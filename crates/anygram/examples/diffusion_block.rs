//! One block of a masked diffusion model: in each step the model proposes a token for every hole, those that
//! it is surest of are put in, and the rest stay open. Only tokens that leave the canvas completable are
//! taken.
//!
//! `cargo run --release -p anygram --example diffusion_block`

use anygram::{Canvas, Compiler, Constraint, End, GrammarFormat, Slot, Solver, TokenId, Vocabulary};

const BLOCK: usize = 12;
const PER_STEP: usize = 3;

/// Stands for a model: how much it likes a token in a slot.
fn score(slot: usize, token: TokenId, step: usize) -> u64 {
    let mixed =
        (token.0 as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ((slot * 31 + step * 7) as u64) << 20;
    mixed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vocabulary = Vocabulary::builtin();
    let grammar = r#"start: expression
expression: term (("+" | "-") term)*
term: NUMBER | "(" expression ")"
NUMBER: /[0-9]{1,3}/"#;
    let language = Compiler::default().compile(GrammarFormat::Lark, grammar)?;
    let constraint = Constraint::new(language, vocabulary.clone())?;
    let mut solver = Solver::new(&constraint)?;

    // The prompt is fixed, the block is holes; the text ends within it, with EOS.
    let mut slots: Vec<Slot> = vocabulary.encode("(1+")?.into_iter().map(Slot::Fixed).collect();
    slots.extend([Slot::Hole; BLOCK]);
    let mut canvas = Canvas::new(slots, End::Sentence);
    for step in 0.. {
        let admissible = solver.admissible(&canvas)?;
        let mut proposals: Vec<(u64, usize, TokenId)> = Vec::new();
        for (slot, mask) in canvas.holes().zip(&admissible.masks) {
            let scored = mask.iter().map(|token| (score(slot, token, step), slot, token));
            proposals.extend(scored.max());
        }
        proposals.sort_unstable_by(|a, b| b.cmp(a));
        // Each token alone fits its hole; which of them fit together is another question.
        let best: Vec<(usize, TokenId)> =
            proposals.iter().take(PER_STEP).map(|&(_, slot, token)| (slot, token)).collect();
        let kept = solver.compatible(&canvas, &best)?;
        for (&(slot, token), kept) in best.iter().zip(&kept) {
            if kept.is_yes() {
                canvas.set(slot, token)?;
            }
        }
        if canvas.holes().next().is_none() {
            break;
        }
    }
    let witness = solver.completable(&canvas)?.yes().ok_or("every step kept the canvas completable")?;
    let text = String::from_utf8(vocabulary.decode(&witness.text(&constraint))?)?;
    println!("{text}");
    assert!(constraint.language().read(text.as_bytes())?.is_sentence);
    Ok(())
}
