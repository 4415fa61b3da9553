//! What may follow a piece, and lexemes byte by byte, on grammars small enough to know the answer.

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_grammar::ir::{LexerMode, Ties};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_lexer::LexerLimits;
use anygram_lexer::transducer::{LexemeId, Lexing, LexingError, Prospect, Transducer};

fn lexing(source: &str, mode: LexerMode) -> Lexing {
    let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
    Lexing::new(&grammar, mode, Ties::All, LexerLimits::default(), &mut Work::unbounded()).unwrap()
}

/// All readings of a text by a parser that accepts any terminal at any time: of each, the pieces' labels, and
/// whether a piece is unfinished.
fn readings(lexing: &Lexing, text: &str) -> Vec<(Vec<Vec<u32>>, bool)> {
    let mut transducer = Transducer::default();
    let wanted = transducer.wanted(lexing, &BitSet::full(lexing.cfg.n_terminals), true);
    let first = transducer.first(lexing, wanted).unwrap().unwrap();
    let mut found: Vec<(LexemeId, Vec<Vec<u32>>)> = vec![(first, Vec::new())];
    for byte in text.bytes() {
        let mut next = Vec::new();
        for (lexeme, pieces) in found {
            let step = transducer.step(lexing, lexeme, byte).unwrap();
            next.extend(step.stay.map(|lexeme| (lexeme, pieces.clone())));
            if let Some(cut) = step.cut {
                let cut = transducer.cut(cut).clone();
                let labels = cut.scans.iter().map(|scan| scan.0).collect();
                let boundary = transducer.boundary(lexing, wanted, cut.obligations).unwrap();
                next.extend(boundary.map(|lexeme| (lexeme, [&pieces[..], &[labels]].concat())));
            }
        }
        found = next;
    }
    let mut readings: Vec<_> =
        found.into_iter().map(|(lexeme, pieces)| (pieces, !transducer.is_boundary(lexeme))).collect();
    readings.sort();
    readings
}

// Terminals in order: NUMBER 0, DOT 1, INT 2.
const NUMBERS: &str = "start: (NUMBER | DOT | INT)*\nNUMBER: /[0-9]+\\.[0-9]+/\nDOT: \".\"\nINT: /[0-9]+/\n";

#[test]
fn the_longest_match_is_the_only_finished_reading() {
    let lexing = lexing(NUMBERS, LexerMode::Longest);
    let finished = |text: &str| -> Vec<Vec<Vec<u32>>> {
        readings(&lexing, text).into_iter().filter(|reading| !reading.1).map(|reading| reading.0).collect()
    };
    assert_eq!(finished("1"), [[[2]]]);
    assert_eq!(finished("1.5"), [[[0]]]);
    assert_eq!(finished("1.5.25"), [[vec![0], vec![1], vec![2]]]);
    // The hope for a number fails at the second dot, and at the end of the text.
    assert_eq!(finished("1..5"), [[vec![2], vec![1], vec![1], vec![2]]]);
    assert_eq!(finished("1."), [[vec![2], vec![1]]]);
}

#[test]
fn a_guess_that_is_not_yet_refuted_is_kept() {
    let lexing = lexing(NUMBERS, LexerMode::Longest);
    // "1." may be a number in progress, or a finished 1 and a finished dot that no digit may follow.
    assert_eq!(readings(&lexing, "1."), [(vec![], true), (vec![vec![2], vec![1]], false)]);
}

#[test]
fn scannerless_reads_every_cut() {
    let lexing = lexing("start: A*\nA: /a+/", LexerMode::Scannerless);
    let cuts = |n: usize| readings(&lexing, &"a".repeat(n)).into_iter().filter(|reading| !reading.1).count();
    assert_eq!([cuts(1), cuts(2), cuts(3), cuts(4)], [1, 2, 4, 8]);
}

#[test]
fn ignored_blanks_make_lexing_independent_of_parsing() {
    let with = lexing("start: ID+\nID: /[a-z]+/\n%ignore \" \"", LexerMode::Longest);
    assert!(with.boundaries().unwrap().is_independent());
    assert_eq!(with.explored(&mut Work::unbounded()).unwrap().unwrap().n_classes(), 1);
    let without = lexing("start: ID \"+\" ID | ID\nID: /[a-z]+/", LexerMode::Longest);
    assert!(!without.boundaries().unwrap().is_independent());
    let boundaries = without.explored(&mut Work::unbounded()).unwrap().unwrap();
    // After an identifier, and not. Terminals in order: ID 0, "+" 1.
    assert_eq!(boundaries.n_classes(), 2);
    let mut steps: Vec<_> = boundaries.steps();
    steps.sort_unstable();
    assert_eq!(steps, [(0, 0, 1), (0, 1, 0), (1, 1, 0)]);
}

#[test]
fn without_independence_the_parser_is_asked() {
    let prospect_at_start = |source: &str| {
        let lexing = lexing(source, LexerMode::Contextual);
        assert!(lexing.own_debts(&mut Work::unbounded()).unwrap().is_some());
        let mut transducer = Transducer::default();
        let wanted = transducer.wanted(&lexing, &BitSet::from_members(lexing.cfg.n_terminals, [0]), false);
        let first = transducer.first(&lexing, wanted).unwrap().unwrap();
        transducer.prospect(first)
    };
    // After an identifier no other can stand, which the second grammar may want.
    assert_eq!(prospect_at_start("start: ID \"+\" ID | ID\nID: /[a-z]+/"), Prospect::Completable);
    assert_eq!(prospect_at_start("start: ID \"+\" ID | \"-\" ID ID\nID: /[a-z]+/"), Prospect::Unknown);
}

#[test]
fn a_grammar_without_a_text_is_refused() {
    let grammar = lark::parse("start: /[^\\s\\S]/", &LarkOptions::default()).unwrap();
    let error =
        Lexing::new(&grammar, LexerMode::Longest, Ties::All, LexerLimits::default(), &mut Work::unbounded())
            .unwrap_err();
    assert_eq!(error, LexingError::EmptyLanguage { mode: LexerMode::Longest });
}
