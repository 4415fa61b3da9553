//! What a solver knows of one canvas does not leak into answers about others.

use std::sync::Arc;

use anygram_any_order::{Canvas, Decision, End, Slot, Solver};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

/// The tokens of each hole, as text.
fn rows(solver: &mut Solver, canvas: &Canvas) -> Vec<String> {
    let admissible = solver.admissible(canvas).unwrap();
    let vocabulary = solver.constraint().vocabulary().clone();
    let row = |hole: usize| -> String {
        assert_eq!(admissible.undecided[hole], None);
        let tokens = (0..vocabulary.len()).map(TokenId::new);
        let tokens = tokens.filter(|&token| admissible.get(hole, token).is_yes());
        tokens.map(|token| String::from_utf8_lossy(vocabulary.bytes(token).unwrap()).into_owned()).collect()
    };
    (0..canvas.holes().count()).map(row).collect()
}

#[test]
fn a_slot_set_cleared_or_changed_is_another_canvas() {
    let grammar =
        lark::parse("start: \"a\" \"b\" | \"a\" \"c\" | \"d\" \"c\"", &LarkOptions::default()).unwrap();
    let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
    let vocabulary =
        Vocabulary::from_bytes(Format::JsonArray, br#"["a", "b", "c", "d"]"#, &LoadOptions::default())
            .unwrap();
    let constraint = Constraint::new(language, vocabulary).unwrap();
    let mut solver = Solver::new(&constraint).unwrap();
    let [b, c, d] = [1, 2, 3].map(|id| Slot::Fixed(TokenId(id)));
    let steps = [
        ([Slot::Hole, Slot::Hole], vec!["ad", "bc"]),
        ([Slot::Hole, b], vec!["a"]),
        ([Slot::Hole, c], vec!["ad"]),
        ([Slot::Hole, Slot::Hole], vec!["ad", "bc"]),
        ([d, Slot::Hole], vec!["c"]),
        ([Slot::Hole, Slot::Hole], vec!["ad", "bc"]),
        ([d, b], vec![]),
        ([d, Slot::Hole], vec!["c"]),
    ];
    for (slots, expected) in steps {
        for end in [End::Sentence, End::Prefix { remaining: None }] {
            let canvas = Canvas::new(slots.to_vec(), end);
            assert_eq!(rows(&mut solver, &canvas), expected, "{canvas:?}");
            // Once more, by what is known of the same canvas.
            assert_eq!(rows(&mut solver, &canvas), expected, "{canvas:?}");
        }
    }
}

#[test]
fn eos_pad_and_what_is_no_text_are_told_apart() {
    let grammar = lark::parse("start: \"a\" | \"a\" \"b\"", &LarkOptions::default()).unwrap();
    let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
    let options = LoadOptions { eos: vec![2], pad: Some(3), ..LoadOptions::default() };
    let source = br#"["a", "b", null, null, null]"#;
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, source, &options).unwrap();
    let constraint = Constraint::new(language, vocabulary).unwrap();
    let [eos, pad, mask] = [2, 3, 4].map(|id| Slot::Fixed(TokenId(id)));
    let canvases: Vec<Vec<Slot>> = [eos, pad, mask, Slot::Hole]
        .into_iter()
        .flat_map(|last| [vec![Slot::Hole, last], vec![Slot::Hole, Slot::Hole, last]])
        .collect();
    for one in &canvases {
        for other in &canvases {
            let mut solver = Solver::new(&constraint).unwrap();
            solver.admissible(&Canvas::new(one.clone(), End::Sentence)).unwrap();
            let other = Canvas::new(other.clone(), End::Sentence);
            let mut fresh = Solver::new(&constraint).unwrap();
            let expected = fresh.admissible(&other).unwrap();
            assert_eq!(solver.admissible(&other).unwrap(), expected, "{one:?}, then {other:?}");
        }
    }
    let mut solver = Solver::new(&constraint).unwrap();
    let first = |solver: &mut Solver, last| {
        let admissible = solver.admissible(&Canvas::new(vec![Slot::Hole, last], End::Sentence)).unwrap();
        admissible.get(0, TokenId(0))
    };
    assert_eq!(first(&mut solver, pad), Decision::No, "nothing ends the text");
    assert_eq!(first(&mut solver, eos), Decision::Yes(()));
}

#[test]
fn an_eos_that_the_grammar_names_is_no_text() {
    let grammar =
        lark::parse("start: \"a\" <[1]> | \"a\" \"a\" \"a\" \"a\"", &LarkOptions::default()).unwrap();
    let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
    let options = LoadOptions { eos: vec![1], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, br#"["a", null]"#, &options).unwrap();
    let constraint = Constraint::new(language, vocabulary).unwrap();
    let mut solver = Solver::new(&constraint).unwrap();
    for (n_slots, expected) in [(3, ["", "", ""].as_slice()), (4, &["a", "a", "a", "a"])] {
        let canvas = Canvas::new(vec![Slot::Hole; n_slots], End::Sentence);
        assert_eq!(rows(&mut solver, &canvas), expected, "{n_slots} holes");
    }
}
