//! The tree of terminal sequences gives the masks that the engine gives, but for tokens that it says are in
//! doubt.

use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::mask::{self, Walks};
use anygram_left_to_right::sequences::{Rows, Search, Sequences};
use anygram_left_to_right::{Engine, Language, LanguageOptions};
use anygram_testkit::competing;
use anygram_testkit::generate::RandomCase;
use anygram_testkit::text::bytes_of;
use anygram_vocab::{TokenId, TokenTrie, Vocabulary};

const MODES: [LexerMode; 3] = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];
const ENGINES: [Engine; 3] = [Engine::Reference, Engine::Earley, Engine::Valiant];

/// What searches of trees did together, and how many masks they left in doubt.
#[derive(Default, Debug)]
struct Compared {
    search: Search,
    n_masks: usize,
    n_doubtful: usize,
}

/// Compares the masks after every byte of a text.
fn compare(
    name: &str,
    language: &Language,
    trie: &TokenTrie,
    n_tokens: usize,
    text: &[u8],
    workers: usize,
) -> Compared {
    let n_words = n_tokens.div_ceil(32);
    let mut stepper = Stepper::new(language).unwrap();
    let mut walks = Walks::default();
    let mut all = Compared::default();
    let Ok(Some(mut frontier)) = stepper.start(language) else { return all };
    for at in 0..=text.len() {
        let mark = stepper.mark();
        let mut expected = vec![0u32; n_words];
        // In `contextual` whether a text can be completed is not always decided.
        if mask::add_tokens(&mut stepper, language, trie, &frontier, &mut walks, &mut expected).is_err() {
            assert_eq!(language.mode(), LexerMode::Contextual, "{name}");
            break;
        }
        let (mut found, mut doubts) = (vec![0u32; n_words], vec![0u32; n_words]);
        for config in &frontier {
            let tree = Sequences::new(&mut stepper, language, trie, config.lexeme, n_words).unwrap();
            let rows = &mut Rows { allowed: &mut found, doubts: &mut doubts };
            let search = tree.add_tokens(&mut stepper, config.state, workers, rows).unwrap();
            assert!(
                search.reached <= tree.n_nodes() && search.stack <= tree.depth() + 1,
                "{name}: {search:?}"
            );
            all.search.reached += search.reached;
            all.search.in_breadth += search.in_breadth;
            all.search.stack = all.search.stack.max(search.stack);
        }
        let after = || format!("{name}, after {:?}", String::from_utf8_lossy(&text[..at]));
        let is_decided = doubts.iter().zip(&found).all(|(doubts, found)| doubts & !found == 0);
        all.n_masks += 1;
        all.n_doubtful += usize::from(!is_decided);
        if is_decided {
            assert_eq!(found, expected, "{}", after());
        } else {
            for ((found, doubts), expected) in found.iter().zip(&doubts).zip(&expected) {
                assert_eq!((found & !expected, expected & !(found | doubts)), (0, 0), "{}", after());
            }
        }
        stepper.release(mark);
        let Some(&byte) = text.get(at) else { break };
        stepper.begin(language);
        let mut next = Frontier::new();
        stepper.step(language, &frontier, byte, &mut next).unwrap();
        if !stepper.is_viable(language, &next).unwrap_or(false) {
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
                let text: &[u8] = if engine == Engine::Reference {
                    b"select (1.5 + a,"
                } else {
                    b"select (1.5 + -a, b from c); "
                };
                let name = format!("{}, {}, {workers} workers", mode.name(), engine.name());
                let Compared { search, n_doubtful, .. } =
                    compare(&name, &language, vocabulary.trie(), vocabulary.len(), text, workers);
                assert_eq!(n_doubtful, 0, "{name}");
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
fn what_competes_depends_on_the_parser() {
    let grammar = lark::parse(competing::GRAMMAR, &LarkOptions::default()).unwrap();
    let language = Language::new(
        grammar,
        &LanguageOptions { lexer: Some(LexerMode::Contextual), ..LanguageOptions::default() },
    );
    let trie = TokenTrie::new((0..).map(TokenId).zip(competing::TOKENS.map(str::as_bytes)));
    for workers in [1, 1_000] {
        let n_tokens = competing::TOKENS.len();
        let found = compare(
            "competing",
            language.as_ref().unwrap(),
            &trie,
            n_tokens,
            competing::TEXT.as_bytes(),
            workers,
        );
        assert_eq!((found.n_masks, found.n_doubtful), (competing::TEXT.len() + 1, 0));
    }
}

/// In each mode: texts, masks, of them those in doubt.
type Counts = [(usize, usize, usize); MODES.len()];

/// Compares the masks of random texts.
fn compare_random(name: &str, n_seeds: u64, draw: impl Fn(u64, LexerMode) -> RandomCase) -> Counts {
    let mut compared = Counts::default();
    for seed in 0..n_seeds {
        for (mode, (n_texts, n_masks, n_doubtful)) in MODES.into_iter().zip(&mut compared) {
            let case = draw(seed, mode);
            let tokens =
                (0..).zip(&case.vocab).filter_map(|(id, token)| Some((TokenId(id), token.as_deref()?)));
            let trie = TokenTrie::new(tokens.filter(|(_, bytes)| !bytes.is_empty()));
            for engine in [Engine::Earley, Engine::Valiant] {
                let options = LanguageOptions {
                    engine,
                    lexer: Some(mode),
                    ties: case.ties,
                    ..LanguageOptions::default()
                };
                let Ok(language) = Language::new(case.grammar.clone(), &options) else { continue };
                for text in case.texts.iter().filter_map(|text| bytes_of(text)) {
                    let name = format!("{name}, seed {seed}, {}, {}", mode.name(), engine.name());
                    let workers = 1 + seed as usize % 4;
                    let text = &text[..text.len().min(12)];
                    let found = compare(&name, &language, &trie, case.vocab.len(), text, workers);
                    *n_texts += 1;
                    *n_masks += found.n_masks;
                    *n_doubtful += found.n_doubtful;
                }
            }
        }
    }
    println!("{name}: {compared:?}");
    assert!(compared.iter().all(|&(n_texts, ..)| n_texts > 500), "{name}: {compared:?}");
    assert_eq!(compared[0].2, 0, "{name}: {compared:?}");
    compared
}

#[test]
fn masks_of_random_grammars() {
    let [_, longest, contextual] = compare_random("random", 150, RandomCase::in_mode);
    // Few are left in doubt.
    assert!(longest.2 * 8 < longest.1 && contextual.2 * 8 < contextual.1, "{longest:?}, {contextual:?}");
}

#[test]
fn masks_of_random_grammars_with_blanks() {
    let [_, longest, contextual] = compare_random("blanks", 150, RandomCase::with_blanks);
    assert!(longest.2 * 8 < longest.1 && contextual.2 * 8 < contextual.1, "{longest:?}, {contextual:?}");
}
