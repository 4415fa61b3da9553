//! Many canvases at once: each answer is the one that it gets alone, and a question that cannot be asked does
//! not touch the others.

use std::sync::Arc;

use anygram_any_order::{Canvas, End, Slot, Solver, batch_canvases};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_testkit::random::Random;
use anygram_vocab::{TokenId, Vocabulary};

const BRACKETS: &str = r#"start: "(" start ")" start | "[" start "]" | "x" |"#;

#[test]
fn of_many_canvases() {
    let grammar = lark::parse(BRACKETS, &LarkOptions::default()).unwrap();
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let constraint = Constraint::new(Arc::new(language), Vocabulary::builtin()).unwrap();
    let tokens: Vec<TokenId> =
        ["(", ")", "[", "]", "x", "a"].map(|text| constraint.vocabulary().encode(text).unwrap()[0]).into();
    let mut random = Random::new(1);
    let mut canvases: Vec<Canvas> = Vec::new();
    for _ in 0..60 {
        let slots = (0..1 + random.below(7)).map(|_| match random.below(2) {
            0 => Slot::Hole,
            _ => Slot::Fixed(tokens[random.below(tokens.len())]),
        });
        canvases.push(Canvas::new(slots.collect(), End::Sentence));
    }
    let unknown = TokenId::new(constraint.vocabulary().len());
    canvases[17] = Canvas::new(vec![Slot::Fixed(unknown)], End::Sentence);

    let ask = |solver: &mut Solver, canvas: &Canvas| {
        let completable = solver.completable(canvas)?.decided();
        Ok::<_, anygram_any_order::CanvasError>((completable, solver.admissible(canvas)?))
    };
    let mut alone = Solver::new(&constraint).unwrap();
    let expected: Vec<_> = canvases.iter().map(|canvas| ask(&mut alone, canvas)).collect();
    assert!(expected[17].is_err() && expected.iter().filter(|answer| answer.is_err()).count() == 1);
    let said = |wanted: bool| expected.iter().flatten().filter(|(answer, _)| *answer == Some(wanted)).count();
    assert!(said(true) > 5 && said(false) > 5, "{} yes and {} no", said(true), said(false));
    for n_solvers in [1, 2, 5] {
        let mut solvers: Vec<Solver> = (0..n_solvers).map(|_| Solver::new(&constraint).unwrap()).collect();
        assert_eq!(batch_canvases(&mut solvers, &canvases, ask), expected, "{n_solvers} solvers");
        assert!(batch_canvases(&mut solvers, &[], ask).is_empty());
    }
    assert!(batch_canvases(&mut [] as &mut [Solver], &canvases, ask).is_empty());
}
