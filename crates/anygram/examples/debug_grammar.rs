//! A grammar that does not do what was meant: errors with places, why a text stops, what could stand there.
//!
//! `cargo run --release -p anygram --example debug_grammar`

use anygram::{Compiler, Constraint, GrammarFormat, MatchError, Vocabulary};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A mistake in the grammar is shown where it stands.
    let broken = "start: greeting NAM\ngreeting: \"hello \"\nNAME: /[A-Z][a-z]*/\n";
    let error = Compiler::default().compile(GrammarFormat::Lark, broken).unwrap_err();
    let error = error.grammar_error().ok_or("its text is the reason")?;
    println!("{}", error.render("greeting.lark", broken));
    assert_eq!((error.line(), error.column()), (1, 17));

    // A text that is refused says at which token, byte and with what instead.
    let fixed = broken.replace("NAM\n", "NAME\n");
    let language = Compiler::default().compile(GrammarFormat::Lark, &fixed)?;
    println!("{}", language.grammar());
    let constraint = Constraint::new(language.clone(), Vocabulary::builtin())?;
    let mut matcher = constraint.matcher()?;
    match matcher.advance_text("hello 7") {
        Err(MatchError::Refused(refusal)) => {
            println!("{refusal}");
            assert_eq!((refusal.text_offset, refusal.refused_byte), (6, Some(b'7')));
        }
        other => return Err(format!("7 is no name: {other:?}").into()),
    }
    // Nothing has changed, so the output can go on. What must come is known without a model.
    assert!(matcher.tokens().is_empty());
    println!("every output begins with {:?}", String::from_utf8(matcher.forced()?.bytes)?);
    matcher.advance_text("hello Ada")?;
    assert!(matcher.is_sentence() && language.read(b"hello Ada")?.is_sentence);
    Ok(())
}
