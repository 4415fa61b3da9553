//! The loop of a server: requests with grammars and stop ids of their own come and go; their masks are rows
//! of one buffer, as wide as the model's padded output layer.
//!
//! `cargo run --release -p anygram --example batch_server`

use anygram::{Compiler, Constraint, GrammarFormat, MaskRows, Matcher, TokenId, Vocabulary, batch_masks};

/// A model's output layer has more rows than its tokenizer has tokens.
const N_LOGITS: usize = 1_536;
const MOST_AT_ONCE: usize = 3;

/// Stands for the sampler: some allowed token of a row.
fn sample(row: &[u32], step: usize) -> TokenId {
    let allowed: Vec<usize> = (0..N_LOGITS).filter(|id| row[id / 32] >> (id % 32) & 1 == 1).collect();
    TokenId::new(allowed[step * 7 % allowed.len()])
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vocabulary = Vocabulary::builtin();
    let end = vocabulary.eos()[0];
    let constraint = |source: &str| -> Result<Constraint, Box<dyn std::error::Error>> {
        let language = Compiler::default().compile(GrammarFormat::Lark, source)?;
        Ok(Constraint::new(language, vocabulary.clone())?)
    };
    let choice = constraint("start: \"yes\" | \"no\" | \"perhaps\"")?;
    let date = constraint("start: /20[0-9][0-9]/ \"-\" /0[1-9]|1[0-2]/ \"-\" /0[1-9]|[12][0-9]/")?;
    let mut waiting = vec![&choice, &date, &choice, &date, &choice];

    let mut running: Vec<Matcher> = Vec::new();
    let mut answers = Vec::new();
    let stride = N_LOGITS / 32;
    let mut words = vec![0; MOST_AT_ONCE * stride];
    for step in 0.. {
        while running.len() < MOST_AT_ONCE
            && let Some(constraint) = waiting.pop()
        {
            // A server keeps a matcher of each constraint and forks it: tables that are warm stay warm.
            let mut matcher = constraint.matcher()?;
            matcher.set_eos(&[end])?; // the request's own stop ids
            running.push(matcher);
        }
        if running.is_empty() {
            break;
        }
        // An error belongs to one request; the others go on.
        for mask in batch_masks(&mut running, MaskRows::new(&mut words, stride)) {
            mask?;
        }
        for (matcher, row) in running.iter_mut().zip(words.chunks(stride)) {
            matcher.advance(sample(row, step))?;
        }
        for done in running.extract_if(.., |matcher| matcher.has_ended()) {
            answers.push(String::from_utf8(vocabulary.decode(done.tokens())?)?);
        }
    }
    println!("{answers:?}");
    assert_eq!(answers.len(), 5);
    assert!(answers.iter().all(|answer| ["yes", "no", "perhaps"].contains(&&**answer) || answer.len() == 10));
    Ok(())
}
