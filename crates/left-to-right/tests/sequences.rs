//! The tree of terminal sequences gives the masks that the engine gives, in the modes that have such a tree.

use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::mask::{self, Scratch, Walks};
use anygram_left_to_right::sequences::{Search, Sequences};
use anygram_left_to_right::{Engine, Language, LanguageOptions};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::text::bytes_of;
use anygram_vocab::{TokenId, TokenTrie, Vocabulary};

const MODES: [LexerMode; 2] = [LexerMode::Scannerless, LexerMode::Longest];
const ENGINES: [Engine; 3] = [Engine::Reference, Engine::Earley, Engine::Valiant];

/// Compares the masks after every byte of a text; returns what all searches did together.
fn compare(name: &str, language: &Language, trie: &TokenTrie, n_tokens: usize, text: &[u8], workers: usize) -> Search {
    let n_words = n_tokens.div_ceil(32);
    let mut stepper = Stepper::new(language).unwrap();
    let (mut walks, mut scratch) = (Walks::default(), Scratch::default());
    let mut all = Search::default();
    let Some(mut frontier) = stepper.start(language).unwrap() else { return all };
    for at in 0..=text.len() {
        let mark = stepper.mark();
        let (mut expected, mut found) = (vec![0u32; n_words], vec![0u32; n_words]);
        mask::add_tokens(&mut stepper, language, trie, &frontier, &mut walks, &mut scratch, &mut expected).unwrap();
        for config in &frontier {
            let tree = Sequences::new(&mut stepper, language, trie, config.lexeme, n_words).unwrap().unwrap();
            let search = tree.add_tokens(&mut stepper, language, config.state, workers, &mut found).unwrap();
            assert!(search.reached <= tree.n_nodes() && search.stack <= tree.depth() + 1, "{name}: {search:?}");
            all.reached += search.reached;
            all.in_breadth += search.in_breadth;
            all.stack = all.stack.max(search.stack);
        }
        assert_eq!(found, expected, "{name}, after {:?}", String::from_utf8_lossy(&text[..at]));
        stepper.release(mark);
        let Some(&byte) = text.get(at) else { break };
        stepper.begin(language);
        let mut next = Frontier::new();
        stepper.step(language, &frontier, byte, &mut next).unwrap();
        if !stepper.is_viable(language, &next).unwrap() {
            break;
        }
        frontier = next;
    }
    all
}

#[test]
fn masks_of_a_small_sql() {
    let source = r#"
        start: "select" column ("," column)* "from" NAME ";"
        column: NAME | NUMBER | "-" column | "(" start ")" | column "+" column
        NAME: /[a-z]+/
        NUMBER: /[0-9]+(\.[0-9]+)?/
        %ignore /[ \n]+/
    "#;
    let vocabulary = Vocabulary::builtin();
    for mode in MODES {
        for engine in ENGINES {
            for workers in [1, 5, 1_000] {
                let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
                let options = LanguageOptions { engine, lexer: Some(mode), ..LanguageOptions::default() };
                let language = Language::new(grammar, &options).unwrap();
                let text: &[u8] =
                    if engine == Engine::Reference { b"select (1.5 + a," } else { b"select (1.5 + -a, b from c); " };
                let name = format!("{}, {}, {workers} workers", mode.name(), engine.name());
                let search = compare(&name, &language, vocabulary.trie(), vocabulary.len(), text, workers);
                // One worker goes into depth at once; a thousand never need to.
                assert_eq!(
                    (search.in_breadth > 0, search.stack > 0),
                    (workers > 1, workers < 1_000),
                    "{name}: {search:?}"
                );
                assert!(search.reached > 30, "{name}: {search:?}");
            }
        }
    }
}

#[test]
fn masks_of_random_grammars() {
    let mut compared = 0;
    for seed in 0..150 {
        for mode in MODES {
            let case = RandomCase::in_mode(seed, mode);
            let tokens = (0..).zip(&case.vocab).filter_map(|(id, token)| Some((TokenId(id), token.as_deref()?)));
            let trie = TokenTrie::new(tokens.filter(|(_, bytes)| !bytes.is_empty()));
            for engine in [Engine::Earley, Engine::Valiant] {
                let options =
                    LanguageOptions { engine, lexer: Some(mode), ties: case.ties, ..LanguageOptions::default() };
                let Ok(language) = Language::new(case.grammar.clone(), &options) else { continue };
                for text in case.texts.iter().filter_map(|text| bytes_of(text)) {
                    let name = format!("seed {seed}, {}, {}", mode.name(), engine.name());
                    compare(
                        &name,
                        &language,
                        &trie,
                        case.vocab.len(),
                        &text[..text.len().min(12)],
                        1 + seed as usize % 4,
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}
