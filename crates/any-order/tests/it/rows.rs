//! Rows on demand: samples, errors, and what goes over to a canvas with more holes filled. That they agree
//! with complete rows is tested with the oracles.

use std::sync::Arc;

use anygram_any_order::{Canvas, Decision, End, Slot, Solver};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, ErrorKind, Language, LanguageOptions};
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

/// `a`, then `b`, `c` or `d`, then perhaps an `e`; the last token is EOS.
fn constraint() -> Constraint {
    let grammar = lark::parse(r#"start: "a" ("b" | "c" | "d") "e"?"#, &LarkOptions::default()).unwrap();
    let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
    let special = SpecialIds { eos: vec![5], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(["a", "b", "c", "d", "e", ""], special).unwrap();
    Constraint::new(language, vocabulary).unwrap()
}

const HOLES: [Slot; 3] = [Slot::Fixed(TokenId(0)), Slot::Hole, Slot::Hole];

#[test]
fn samples_are_drawn_from_what_is_admissible() {
    let mut solver = Solver::new(&constraint()).unwrap();
    let canvas = Canvas::new(HOLES.to_vec(), End::Sentence);
    // The weights 2, 1, 3 and 2 of `b`, `c`, `e` and EOS, of which only `b` and `c` are admissible.
    let log_probs = [f32::NEG_INFINITY, 2f32.ln(), 0.0, f32::NEG_INFINITY, 3f32.ln(), 2f32.ln()];
    for refusals in [0, 1, 2, 64] {
        let mut counts = [0; 6];
        for seed in 0..3_000 {
            let mut rows = solver.rows(&canvas).unwrap().refusals(refusals);
            let drawn = rows.row(&mut solver, 0).unwrap().sample(&log_probs, seed).unwrap();
            counts[drawn.yes().unwrap().index()] += 1;
        }
        assert_eq!(counts[1] + counts[2], 3_000, "{counts:?}");
        assert!((1_850..2_150).contains(&counts[1]), "{refusals} refusals: {counts:?}");
    }
}

#[test]
fn what_is_refused_stays_refused_where_more_is_filled() {
    let mut solver = Solver::new(&constraint()).unwrap();
    let canvas = Canvas::new(HOLES.to_vec(), End::Sentence);
    let mut rows = solver.rows(&canvas).unwrap();
    assert!(rows.row(&mut solver, 1).unwrap().allows(TokenId(0)).unwrap().is_no());
    let mut filled = canvas.clone();
    filled.set(1, TokenId(2)).unwrap();
    let mut rows = rows.filled(&filled).unwrap();
    assert_eq!((rows.get(0, TokenId(0)), rows.at_least()[0].count()), (Some(false), 0));
    rows.complete(&mut solver).unwrap();
    assert!(rows.is_decided());
    assert_eq!(rows.at_least()[0].iter().collect::<Vec<_>>(), [TokenId(4), TokenId(5)]);
    assert!(rows.filled(&canvas).is_none(), "a hole was opened");
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let mut solver = Solver::new(&constraint()).unwrap();
    let mut rows = solver.rows(&Canvas::new(HOLES.to_vec(), End::Sentence)).unwrap();
    let error = rows.row(&mut solver, 2).err().unwrap();
    assert_eq!((error.kind(), error.to_string().contains("hole 2")), (ErrorKind::InvalidArgument, true));
    let mut row = rows.row(&mut solver, 0).unwrap();
    assert_eq!(row.best(&[f32::NAN]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(row.sample(&[f32::INFINITY], 1).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(row.best(&[]).unwrap(), Decision::No);
    assert!(row.allows(TokenId(99)).unwrap().is_no(), "it is no token");
}
