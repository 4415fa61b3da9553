//! Canvases over terminals whose states are made as texts need them: held against the same terminals as
//! patterns.

use std::sync::Arc;

use anygram_any_order::{Canvas, End, LogProbs, Slot, Solver, Tail, Weigher};
use anygram_bits::Random;
use anygram_grammar::automata::{PieceAutomaton, Pieces, TooManyStates};
use anygram_grammar::ir::TerminalKind;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Limits};
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

/// Small letters, at most some; of label 1 two at most.
#[derive(Debug)]
struct Letters {
    most: u32,
    has_outline: bool,
}

impl PieceAutomaton for Letters {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        Ok((state < self.most && byte.is_ascii_lowercase()).then_some(state + 1))
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        match state {
            0 => Arc::default(),
            1 | 2 => [0, 1].into(),
            _ => [0].into(),
        }
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        match state {
            0 | 1 => [0, 1].into(),
            state if state < self.most => [0].into(),
            _ => Arc::default(),
        }
    }

    fn outline(&self) -> &'static str {
        if self.has_outline { "[a-z]+" } else { "(?s-u:.)+" }
    }

    fn in_outline(&self, state: u32) -> Option<&'static [u8]> {
        self.has_outline.then_some(if state == 0 { b"" } else { b"a" })
    }
}

const TOKENS: [&str; 9] = ["a", "b", "ab", "+", "+a", "(", ")", "a)", ""];

fn vocabulary() -> Vocabulary {
    let special = SpecialIds { eos: vec![TOKENS.len() as u32 - 1], ..SpecialIds::default() };
    Vocabulary::from_tokens(TOKENS, special).unwrap()
}

const SOURCE: &str =
    "%lexer scannerless\nstart: A | start \"+\" B | \"(\" start \")\"\nA: /[a-z]{1,5}/\nB: /[a-z]{1,2}/";

/// The same grammar with patterns, and with automata that grow.
fn constraints(delimited: bool, has_outline: bool) -> [Constraint; 2] {
    let plain = lark::parse(SOURCE, &LarkOptions::default()).unwrap();
    let mut growing = plain.clone();
    for (label, name) in ["A", "B"].iter().enumerate() {
        let terminal = growing.terminals.iter_mut().find(|terminal| terminal.name == *name).unwrap();
        terminal.kind = TerminalKind::Automaton { automaton: 0, label: label as u32 };
    }
    let letters = Pieces(Arc::new(Letters { most: 5, has_outline }));
    let growing = growing.with_pieces(vec![letters], delimited);
    let limits = Limits { canvas_steps: 200_000, ..Limits::default() };
    let options = LanguageOptions { limits, ..LanguageOptions::default() };
    [plain, growing].map(|grammar| {
        let language = Language::new(grammar, &options).unwrap();
        Constraint::new(Arc::new(language), vocabulary()).unwrap()
    })
}

fn some_canvas(random: &mut Random) -> Canvas {
    let slot = |random: &mut Random| match random.below(10) {
        0..6 => Slot::Fixed(TokenId(random.below(TOKENS.len() - 1) as u32)),
        6 => Slot::Gap,
        _ => Slot::Hole,
    };
    let slots = (0..1 + random.below(6)).map(|_| slot(random)).collect();
    let ends = [End::Sentence, End::Prefix { remaining: None }, End::Prefix { remaining: Some(2) }];
    Canvas::new(slots, *random.choose(&ends))
}

#[test]
fn they_have_the_completions_of_patterns() {
    let mut n_known = 0;
    for (delimited, has_outline) in [(true, true), (true, false), (false, true)] {
        let [plain, growing] = constraints(delimited, has_outline);
        let (mut expected, mut found) = (Solver::new(&plain).unwrap(), Solver::new(&growing).unwrap());
        let mut weighers = [&plain, &growing].map(|constraint| Weigher::new(constraint).unwrap());
        let mut random = Random::new(1);
        for _ in 0..120 {
            let canvas = some_canvas(&mut random);
            let answers = [&mut expected, &mut found].map(|solver| {
                let completable = solver.completable(&canvas).unwrap().decided();
                let rows = solver.admissible(&canvas).unwrap();
                let rows = rows.undecided.iter().all(Option::is_none).then_some(rows.masks);
                (completable, solver.minimum(&canvas).unwrap().known().ok(), rows)
            });
            let [(yes, minimum, rows), found] = answers;
            n_known += usize::from(found.0.is_some() && found.2.is_some());
            assert!(yes.is_none() || found.0.is_none() || yes == found.0, "{canvas:?}");
            assert!(minimum.is_none() || found.1.is_none() || minimum == found.1, "{canvas:?}");
            assert!(rows.is_none() || found.2.is_none() || rows == found.2, "{canvas:?}");
            if canvas.slots().contains(&Slot::Gap) {
                continue;
            }
            let n_values = canvas.holes().count() * TOKENS.len();
            let values: Vec<f32> = (0..n_values).map(|_| -(random.below(64) as f32) / 8.0).collect();
            let log_probs = LogProbs::dense(&*values, TOKENS.len()).unwrap();
            let [expected, found] = weighers.each_mut().map(|weigher| {
                let best = weigher.best(&canvas, &log_probs, Tail::Counted).unwrap();
                best.known().unwrap().map(|best| best.log_prob)
            });
            assert_eq!(expected, found, "{canvas:?}");
        }
    }
    assert!(n_known > 240, "{n_known}");
}
