//! Speculative decoding: a small model drafts a tree of tokens, the large one verifies all of it in one
//! forward pass and needs a mask after each draft.
//!
//! `cargo run --release -p anygram --example speculative_decoding`

use anygram::{Compiler, Constraint, Draft, GrammarFormat, MaskRows, TokenId, TokenMask, Vocabulary};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vocabulary = Vocabulary::builtin();
    let grammar = r#"start: "SELECT " NAME " FROM " NAME [" WHERE " NAME " = " NUMBER]
NAME: /[a-z]+/
NUMBER: /[0-9]+/"#;
    let language = Compiler::default().compile(GrammarFormat::Lark, grammar)?;
    let constraint = Constraint::new(language, vocabulary.clone())?;
    let mut matcher = constraint.matcher()?;
    matcher.advance_text("SELECT name")?;

    // Two drafts of what comes next; the second leaves the grammar at its last token.
    let mut drafts: Vec<Draft> = Vec::new();
    let mut chains = Vec::new();
    for text in [" FROM singer", " FROM 12"] {
        let mut chain = Vec::new();
        for token in vocabulary.encode(text)? {
            let after = chain.last().copied();
            // Drafts that begin alike share their nodes.
            let known = drafts.iter().position(|draft| (draft.token, draft.after) == (token, after));
            chain.push(known.unwrap_or(drafts.len()));
            if known.is_none() {
                drafts.push(Draft { token, after });
            }
        }
        chains.push(chain);
    }
    let n_words = constraint.mask_words();
    let mut words = vec![0; drafts.len() * n_words];
    let allowed = matcher.draft_masks(&drafts, MaskRows::new(&mut words, n_words))?;
    let mask_after =
        |at: usize| TokenMask::from_words(words[at * n_words..][..n_words].to_vec(), vocabulary.len());
    for (at, draft) in drafts.iter().enumerate() {
        let shown = vocabulary.display_token(draft.token);
        println!("{shown:10} allowed: {:5} then {} tokens may follow", allowed[at], mask_after(at).count());
    }

    // The large model takes the first chain; it is appended as a whole. A wrong guess is taken back.
    let chain: Vec<TokenId> = chains[0].iter().map(|&at| drafts[at].token).collect();
    matcher.advance_all(&chain)?;
    assert!(matcher.is_sentence());
    matcher.rollback(chain.len())?;
    let wrong: Vec<TokenId> = chains[1].iter().map(|&at| drafts[at].token).collect();
    assert!(matcher.validate(&wrong)? < wrong.len());
    Ok(())
}
