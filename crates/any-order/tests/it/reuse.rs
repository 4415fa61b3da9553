//! What a solver knows of one canvas does not leak into answers about others.

use std::sync::Arc;

use anygram_any_order::{Admissible, By, Canvas, Decision, End, Filling, Slot, Solver};
use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_testkit::random::Random;
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

/// What a solver is told is a completion counts only if it is one.
#[test]
fn what_is_no_completion_is_not_remembered() {
    let grammar = lark::parse("start: \"a\" \"b\" \"a\"*", &LarkOptions::default()).unwrap();
    let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
    let options = LoadOptions { eos: vec![2], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, br#"["a", "b", null]"#, &options).unwrap();
    let constraint = Constraint::new(language, vocabulary).unwrap();
    let [a, b, eos] = [0, 1, 2].map(TokenId);
    let one = |token| Filling::Token(token);
    let holes = Canvas::new(vec![Slot::Hole; 2], End::Sentence);
    let gap = Canvas::new(vec![Slot::Fixed(a), Slot::Gap], End::Sentence);
    let told = [
        (&holes, vec![one(a), one(b)], true),
        (&holes, vec![one(a), one(a)], false),
        // Of another shape.
        (&holes, vec![one(a), one(b), one(a)], false),
        (&holes, vec![one(a), Filling::Tokens(vec![b])], false),
        (&gap, vec![one(a), Filling::Tokens(vec![b, a])], true),
        (&gap, vec![one(b), Filling::Tokens(vec![b])], false),
        // An EOS does not stand in a gap.
        (&gap, vec![one(a), Filling::Tokens(vec![b, eos])], false),
    ];
    for (canvas, slots, is_one) in told {
        let mut solver = Solver::new(&constraint).unwrap();
        solver.remember(canvas.clone(), slots.clone()).unwrap();
        let known = solver.known().filter(|(known, _)| known == canvas).map(|(_, witness)| &witness.slots);
        assert_eq!(known, is_one.then_some(&slots), "{slots:?}");
    }
    let mut solver = Solver::new(&constraint).unwrap();
    let unknown = vec![one(a), one(TokenId(7))];
    assert!(solver.remember(holes, unknown).is_err());
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

/// Small texts with brackets and strings, to which fixed tokens can belong in many ways.
const NESTED: &str = r#"
start: value
value: "[" [value ("," value)*] "]" | "a" | STRING
STRING: /"[a,\[]*"/
"#;

const TOKENS: &[u8] = br#"["[", "]", ",", "\"", "a", "[\"", "\",", "a]", null, null]"#;

/// What is known of the canvases before (the last completion, with what is fixed by now in its place; what
/// was found out behind slots and before them, and of rows, also where an EOS has ended the text since), and
/// beams, against the search alone with new tables; and the search alone with tables that know them.
#[test]
fn canvases_that_follow_one_another_are_answered_as_by_the_search_alone() {
    let options = LoadOptions { eos: vec![8], pad: Some(9), ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, TOKENS, &options).unwrap();
    let (mut n_yes, mut n_no, mut n_cut, mut n_rows) = (0, 0, 0, 0);
    let seeds = anygram_testkit::random::seeds(400);
    for &seed in &seeds {
        let mut random = Random::new(seed);
        let lexer =
            Some(*random.choose(&[LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual]));
        let grammar = lark::parse(NESTED, &LarkOptions::default()).unwrap();
        let language =
            Arc::new(Language::new(grammar, &LanguageOptions { lexer, ..Default::default() }).unwrap());
        let constraint = Constraint::new(language, vocabulary.clone()).unwrap();
        let mut solver = Solver::new(&constraint).unwrap();
        let mut searching = Solver::new(&constraint).unwrap().by(By::Search);
        let mut behind = Solver::new(&constraint).unwrap();
        let mut slots = vec![Slot::Hole; random.between(2, 8)];
        for _ in 0..10 {
            follow(&mut random, &mut slots);
            let ends = [End::Sentence, End::Sentence, End::Prefix { remaining: None }];
            let canvas = Canvas::new(slots.clone(), *random.choose(&ends));
            let fresh = || Solver::new(&constraint).unwrap().by(By::Search);
            let expected = fresh().completable(&canvas).unwrap();
            let found = solver.completable(&canvas).unwrap();
            assert_eq!(found.decided(), expected.decided(), "seed {seed}, {lexer:?}: {canvas:?}");
            // What a search that is cut short leaves open stays open.
            searching = searching.steps(random.between(1, 2_000) as u64);
            let cut = searching.completable(&canvas).unwrap().decided();
            assert!(cut.is_none() || cut == expected.decided(), "seed {seed}, {lexer:?}: {canvas:?}");
            n_cut += usize::from(cut.is_none());
            searching = searching.steps(u64::MAX);
            assert_eq!(searching.completable(&canvas).unwrap().decided(), expected.decided(), "{canvas:?}");
            // Proposals for one hole, as a decoding loop makes them.
            if expected.is_yes()
                && let Some(hole) = canvas.holes().nth(random.below(slots.len()))
            {
                for id in 0..vocabulary.len() as u32 {
                    let mut slots = slots.clone();
                    slots[hole] = Slot::Fixed(TokenId(id));
                    let proposed = Canvas::new(slots, canvas.end());
                    let found = searching.completable(&proposed).unwrap();
                    let expected = fresh().completable(&proposed).unwrap();
                    assert_eq!(found.decided(), expected.decided(), "seed {seed}, {lexer:?}: {proposed:?}");
                    // The last canvas that could be completed stays the same.
                    if found.is_yes() {
                        assert!(searching.completable(&canvas).unwrap().is_yes());
                    }
                }
            }
            if let Decision::Yes(witness) = found {
                n_yes += 1;
                let keeps = |(slot, filling): (&Slot, &Filling)| match slot {
                    Slot::Fixed(token) => *filling == Filling::Token(*token),
                    _ => true,
                };
                assert!(canvas.slots().iter().zip(&witness.slots).all(keeps), "{canvas:?} {witness:?}");
            } else {
                n_no += 1;
                // From there nothing follows.
                let at = random.below(slots.len());
                slots[at] = Slot::Hole;
            }
            if random.chance(50) {
                let expected = fresh().admissible(&canvas).unwrap();
                // One was asked about this canvas just now, the other about the canvas before it.
                for solver in [&mut solver, &mut behind] {
                    let rows = solver.admissible(&canvas).unwrap();
                    n_rows += same_rows(&rows, &expected, &format!("seed {seed}, {lexer:?}: {canvas:?}"));
                }
            }
            assert_eq!(
                behind.completable(&canvas).unwrap().decided(),
                expected.decided(),
                "seed {seed}: {canvas:?}"
            );
        }
    }
    println!("{n_yes} yes, {n_no} no, {n_cut} cut short, {n_rows} rows");
    assert!(seeds.len() < 60 || n_yes.min(n_no) > 50, "{n_yes} yes, {n_no} no");
    assert!(seeds.len() < 60 || 10 * n_cut > seeds.len(), "{n_cut} cut short");
    assert!(seeds.len() < 60 || n_rows > 4 * seeds.len(), "{n_rows} rows");
}

/// Where both know a row it is the same; how many they do.
fn same_rows(one: &Admissible, other: &Admissible, context: &str) -> usize {
    let is_known = |&hole: &usize| one.undecided[hole].is_none() && other.undecided[hole].is_none();
    let known: Vec<usize> = (0..one.masks.len()).filter(is_known).collect();
    for &hole in &known {
        assert_eq!(one.masks[hole], other.masks[hole], "{context}, hole {hole}");
    }
    known.len()
}

/// Fixes a hole, ends the text, or clears a slot.
fn follow(random: &mut Random, slots: &mut [Slot]) {
    let at = random.below(slots.len());
    match random.below(10) {
        0 => slots[at..].fill(Slot::Fixed(TokenId(8))),
        1 => {
            slots[at..].fill(Slot::Fixed(TokenId(9)));
            slots[at] = Slot::Fixed(TokenId(8));
        }
        2 => slots[at] = Slot::Fixed(TokenId(random.below(10) as u32)),
        3 => slots[at..].fill(Slot::Hole),
        _ if slots[at] == Slot::Hole => slots[at] = Slot::Fixed(TokenId(random.below(8) as u32)),
        _ => slots[at] = Slot::Hole,
    }
}
