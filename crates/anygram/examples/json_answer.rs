//! A model answers in JSON of one shape, whatever it would rather say.
//!
//! `cargo run --release -p anygram --example json_answer`

use anygram::{Compiler, Constraint, GrammarFormat, TokenId, Vocabulary};

/// The answer that we want: a verdict, a score and some reasons.
const GRAMMAR: &str = r#"
start: "{" "\"verdict\"" ":" verdict "," "\"score\"" ":" SCORE "," "\"reasons\"" ":" reasons "}"
verdict: "\"yes\"" | "\"no\"" | "\"unsure\""
reasons: "[" [STRING ("," STRING)*] "]"
STRING: /"[a-z ]{1,20}"/
SCORE: /0|[1-9][0-9]?|100/
"#;

/// Stands for a model: logits that depend on the step only, and know nothing of JSON.
fn logits(step: u64, n_tokens: usize) -> Vec<f32> {
    let mixed = |id: u64| (id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ (step * 0x2545_f491);
    (0..n_tokens as u64).map(|id| (mixed(id) % 1000) as f32 / 100.0).collect()
}

fn best(logits: &[f32]) -> TokenId {
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
    TokenId::new(best.unwrap_or(0))
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Once for a grammar and a vocabulary.
    let vocabulary = Vocabulary::builtin();
    let language = Compiler::default().compile(GrammarFormat::Lark, GRAMMAR)?;
    let constraint = Constraint::new(language, vocabulary.clone())?;

    // Once for an answer.
    let mut matcher = constraint.matcher()?;
    let max_tokens = 40;
    for step in 0.. {
        let mut logits = logits(step, vocabulary.len());
        // Only tokens after which the answer still closes within the budget.
        let left = max_tokens - matcher.tokens().len() as u32;
        matcher.mask_with_budget(left)?.apply_to_logits(&mut logits);
        matcher.advance(best(&logits))?;
        if matcher.has_ended() {
            break;
        }
    }
    let answer = String::from_utf8(vocabulary.decode(matcher.tokens())?)?;
    println!("{answer}");
    assert!(matcher.is_sentence() && answer.starts_with('{') && answer.ends_with('}'));
    Ok(())
}
