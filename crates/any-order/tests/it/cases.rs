//! The canvases of `testdata/cases`, answered in every lexer mode and by every way to decide.

use std::sync::Arc;

use anygram_any_order::{By, Canvas, End, Slot, Solver};
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions, Limits};
use anygram_testkit::canvas::Slot as CaseSlot;
use anygram_testkit::cases::{self, CanvasAnswers, CanvasCase, CaseToken};
use anygram_vocab::{Format, LoadOptions, TokenId, TokenMask, Vocabulary};

fn vocabulary(case: &CanvasCase) -> Vocabulary {
    let hex = |bytes: &[u8]| {
        format!("{{\"hex\":\"{}\"}}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    let tokens = case.vocab.iter().map(|token| token.bytes().map_or("null".to_owned(), hex));
    let source = format!("[{}]", tokens.collect::<Vec<_>>().join(","));
    let options =
        LoadOptions { eos: case.eos.into_iter().collect(), pad: case.pad, ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &options).unwrap();
    let named = case.vocab.iter().zip(0..).filter_map(|(token, id)| match token {
        CaseToken::Special(Some(name)) => Some((id, name.as_str())),
        _ => None,
    });
    vocabulary.with_names(named).unwrap()
}

fn canvas(case: &CanvasCase) -> Canvas {
    let slots = case.slots.iter().map(|slot| match slot {
        CaseSlot::Fixed(token) => Slot::Fixed(TokenId(*token)),
        CaseSlot::Hole => Slot::Hole,
        CaseSlot::Gap => Slot::Gap,
    });
    let end = if case.prefix { End::Prefix { remaining: case.remaining } } else { End::Sentence };
    Canvas::new(slots.collect(), end)
}

fn answers(language: &Arc<Language>, case: &CanvasCase, by: By) -> CanvasAnswers {
    let constraint = Constraint::new(language.clone(), vocabulary(case)).unwrap();
    let canvas = canvas(case);
    let mut solver = Solver::new(&constraint).unwrap().by(by);
    let completable = solver.completable(&canvas).unwrap().decided().expect("decided");
    let admissible = solver.admissible(&canvas).unwrap();
    assert!(admissible.undecided.iter().all(Option::is_none), "{:?}", admissible.undecided);
    let list = |mask: &TokenMask| mask.iter().map(|token| token.0).collect();
    let minimum = solver.minimum(&canvas).unwrap().known().expect("decided");
    (completable, admissible.masks.iter().map(list).collect(), minimum)
}

/// Whatever the limit, the answer is the right one or none.
#[test]
fn a_limit_never_becomes_an_answer() {
    let files = cases::load_all();
    let file = files.iter().find(|file| file.canvases.len() > 6).expect("a file with canvases");
    let mut n_undecided = 0;
    for canvas_steps in [0, 1, 20, 100, 500, 2_000, 10_000] {
        let limits = Limits { canvas_steps, ..Limits::default() };
        let options = LanguageOptions { limits, ..LanguageOptions::default() };
        let language = Arc::new(Language::new(file.read_grammar().unwrap(), &options).unwrap());
        for case in &file.canvases {
            let constraint = Constraint::new(language.clone(), vocabulary(case)).unwrap();
            let mut solver = Solver::new(&constraint).unwrap();
            let canvas = canvas(case);
            match solver.completable(&canvas).unwrap().decided() {
                Some(decided) => assert_eq!(decided, case.completable, "{canvas:?} in {canvas_steps} steps"),
                None => n_undecided += 1,
            }
            let admissible = solver.admissible(&canvas).unwrap();
            for (hole, right) in case.admissible.iter().flatten().enumerate() {
                for token in 0..case.vocab.len() as u32 {
                    let own = admissible.get(hole, TokenId(token));
                    assert!(
                        own.decided().is_none_or(|own| own == right.contains(&token)),
                        "{canvas:?} in {canvas_steps} steps"
                    );
                }
            }
            if let Ok(minimum) = solver.minimum(&canvas).unwrap().known() {
                assert!(
                    case.minimum.is_none() || minimum == case.minimum,
                    "{canvas:?} in {canvas_steps} steps"
                );
            }
        }
    }
    assert!(n_undecided > 0, "the limits were too generous to show anything");
}

#[test]
fn every_case_is_answered() {
    let files: Vec<_> = cases::load_all().into_iter().filter(|file| !file.canvases.is_empty()).collect();
    for by in [By::All, By::Last] {
        for engine in [Engine::Reference, Engine::Earley, Engine::Valiant] {
            let report = cases::run(&files, |file, mode, ties| -> Result<cases::Engine<'_>, String> {
                let grammar = file.read_grammar().map_err(|error| error.to_string())?;
                let options =
                    LanguageOptions { lexer: Some(mode), ties, engine, ..LanguageOptions::default() };
                let language = Arc::new(Language::new(grammar, &options).map_err(|error| error.to_string())?);
                let canvas = move |case: &CanvasCase| answers(&language, case, by);
                Ok(cases::Engine { canvas: Some(Box::new(canvas)), ..cases::Engine::default() })
            });
            println!("{}, {by:?}: {} answers", engine.name(), report.n_answers);
            report.assert_ok();
        }
    }
}
