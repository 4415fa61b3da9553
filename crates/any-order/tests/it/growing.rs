//! Canvases over terminals whose states are made as texts need them are refused, everywhere.

use std::sync::Arc;

use anygram_any_order::decode::STRATEGIES;
use anygram_any_order::{CanvasError, Intersection, Methods, Solver, Weigher};
use anygram_bits::ErrorKind;
use anygram_grammar::automata::{PieceAutomaton, Pieces, TooManyStates};
use anygram_grammar::ir::TerminalKind;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_vocab::Vocabulary;

/// One letter.
#[derive(Debug)]
struct Letter;

impl PieceAutomaton for Letter {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        Ok((state == 0 && byte.is_ascii_lowercase()).then_some(1))
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        (0..state).collect()
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        (state..1).collect()
    }
}

#[test]
fn canvases_are_refused() {
    let source = "%lexer scannerless\nstart: L \"+\" L\nL: /x/";
    let mut grammar = lark::parse(source, &LarkOptions::default()).unwrap();
    grammar.terminals[0].kind = TerminalKind::Automaton { automaton: 0, label: 0 };
    let grammar = grammar.with_pieces(vec![Pieces(Arc::new(Letter))], false);
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let constraint = Constraint::new(Arc::new(language), Vocabulary::builtin()).unwrap();
    constraint.matcher().unwrap().advance_text("a+b").unwrap();
    let refused = |error: Option<CanvasError>| error.unwrap().kind() == ErrorKind::Unsupported;
    assert!(refused(Solver::new(&constraint).err()));
    assert!(refused(Weigher::new(&constraint).err()));
    assert!(refused(Methods::new(&constraint).err()));
    assert!(refused(Intersection::new(&constraint).err()));
    let mut n_refused = 0;
    for strategy in STRATEGIES {
        match strategy.make(&constraint) {
            // Left to right there are masks.
            Ok(_) => assert!(strategy.name.starts_with("forced-sequential"), "{}", strategy.name),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", strategy.name);
                n_refused += 1;
            }
        }
    }
    assert!(n_refused > 2);
}
