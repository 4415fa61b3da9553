//! Infilling: text before, text after, and a gap between them that any number of tokens may fill.
//!
//! `cargo run --release -p anygram --example infilling`

use anygram::{Canvas, Compiler, Constraint, Decision, End, GrammarFormat, Slot, Solver, Vocabulary};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vocabulary = Vocabulary::builtin();
    let grammar = r#"start: "f(" list ")"
list: item ("," item)*
item: NUMBER | "[" list "]"
NUMBER: /[0-9]+/"#;
    let language = Compiler::default().compile(GrammarFormat::Lark, grammar)?;
    let constraint = Constraint::new(language, vocabulary.clone())?;
    let mut solver = Solver::new(&constraint)?;

    let canvas = |before: &str, after: &str| -> Result<Canvas, Box<dyn std::error::Error>> {
        let fixed = |text: &str| -> Result<Vec<Slot>, Box<dyn std::error::Error>> {
            Ok(vocabulary.encode(text)?.into_iter().map(Slot::Fixed).collect())
        };
        let slots = [fixed(before)?, vec![Slot::Gap], fixed(after)?].concat();
        Ok(Canvas::new(slots, End::Sentence))
    };
    for (before, after) in [("f(1,[2", "],3)"), ("f([[7", ")"), ("f(1))", ")")] {
        let canvas = canvas(before, after)?;
        match solver.completable(&canvas)? {
            Decision::Yes(witness) => {
                let text = String::from_utf8(vocabulary.decode(&witness.text(&constraint))?)?;
                let fewest = solver.minimum(&canvas)?.yes();
                println!("{before}…{after}: for example {text}, with {fewest:?} tokens at least");
                assert!(constraint.language().read(text.as_bytes())?.is_sentence);
            }
            Decision::No => println!("{before}…{after}: nothing fits"),
            Decision::Unknown(why) => println!("{before}…{after}: {why}"),
        }
    }
    assert!(solver.completable(&canvas("f(1))", ")")?)?.is_no());
    Ok(())
}
