//! Masks of the device against those of the CPU's engine.

use std::sync::PoisonError;

use anygram_cuda::interop::{LogitType, Logits};
use anygram_cuda::search::{DeviceMasks, Reading, SearchCounts};
use anygram_cuda::tree::Tree;
use anygram_cuda::{ChartError, Charts, DeviceError, DeviceRecognizer, PoolOptions, SharedCharts};
use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::mask::{self, Walks};
use anygram_left_to_right::sequences::Sequences;
use anygram_left_to_right::{Engine, Language, LanguageOptions};
use anygram_recognizer::RecognizerLimits;
use anygram_testkit::competing;
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;
use anygram_testkit::text::bytes_of;
use anygram_vocab::{TokenId, TokenTrie, Vocabulary};

use crate::common::{can_run, charts, pool, small};

pub const MODES: [LexerMode; 3] = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];

fn lock(charts: &SharedCharts) -> std::sync::MutexGuard<'_, Charts> {
    charts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compares the masks after every byte of a text; returns what all searches did together, how many masks
/// there were, and how many of them were left in doubt.
fn compare(
    name: &str,
    language: &Language,
    trie: &TokenTrie,
    n_tokens: usize,
    text: &[u8],
    (seed, levels, options): (u64, usize, PoolOptions),
) -> (SearchCounts, usize, usize) {
    let n_words = n_tokens.div_ceil(32);
    let charts = pool(seed, options);
    let device =
        DeviceRecognizer::new(language.lexing().cfg.clone(), RecognizerLimits::default(), &charts).unwrap();
    let sequence = device.sequence();
    let mut stepper = Stepper::with(language, Box::new(device));
    let mut walks = Walks::default();
    let (mut all, mut n_masks, mut n_doubtful) = (SearchCounts::default(), 0, 0);
    let Ok(Some(mut frontier)) = stepper.start(language) else { return (all, 0, 0) };
    for at in 0..=text.len() {
        let mark = stepper.mark();
        let mut expected = vec![0u32; n_words];
        // In `contextual` whether a text can be completed is not always decided.
        if mask::add_tokens(&mut stepper, language, trie, &frontier, &mut walks, &mut expected).is_err() {
            assert_eq!(language.mode(), LexerMode::Contextual, "{name}");
            break;
        }
        stepper.release(mark);
        let mut row = Vec::new();
        for config in &frontier {
            let sequences = Sequences::new(&mut stepper, language, trie, config.lexeme, n_words).unwrap();
            let tree = Tree::new(language, &sequences, &[], n_words);
            let tree = lock(&charts).add_tree(&tree).unwrap();
            row.push(Reading { sequence, state: config.state, tree });
        }
        let (mut masks, counts) = lock(&charts).masks(&[row], levels);
        n_masks += 1;
        match masks.remove(0) {
            Ok(found) => {
                assert_eq!(found, expected, "{name}, after {:?}", String::from_utf8_lossy(&text[..at]));
            }
            Err(ChartError::InDoubt) => n_doubtful += 1,
            Err(error) => panic!("{name}: {error}"),
        }
        all.reached += counts.reached;
        all.in_breadth += counts.in_breadth;
        all.stack = all.stack.max(counts.stack);
        let Some(&byte) = text.get(at) else { break };
        stepper.begin(language);
        let mut next = Frontier::new();
        stepper.step(language, &frontier, byte, &mut next).unwrap();
        if !stepper.is_viable(language, &next).unwrap_or(false) {
            break;
        }
        frontier = next;
    }
    (all, n_masks, n_doubtful)
}

const SQL: &str = r#"
    start: "select" column ("," column)* "from" NAME ";"
    column: NAME | NUMBER | "-" column | "(" start ")" | column "+" column
    NAME: /[a-z]+/
    NUMBER: /[0-9]+(\.[0-9]+)?/
    %ignore /[ \n]+/
"#;

/// A small SQL in a lexer mode.
pub fn sql(mode: LexerMode) -> Language {
    let grammar = lark::parse(SQL, &LarkOptions::default()).unwrap();
    let options =
        LanguageOptions { engine: Engine::Valiant, lexer: Some(mode), ..LanguageOptions::default() };
    Language::new(grammar, &options).unwrap()
}

#[test]
fn masks_of_a_small_sql() {
    if !can_run() {
        return;
    }
    let vocabulary = Vocabulary::builtin();
    for mode in MODES {
        for (seed, levels) in [(0, 0), (1, 1), (2, 4)] {
            let language = sql(mode);
            let name = format!("{}, {levels} levels", mode.name());
            let text = b"select (1.5 + -a, b";
            let options = PoolOptions { threads: 64, ..small() };
            let how = (seed, levels, options);
            let (counts, _, n_doubtful) =
                compare(&name, &language, vocabulary.trie(), vocabulary.len(), text, how);
            assert_eq!(n_doubtful, 0, "{name}");
            assert_eq!(counts.in_breadth > 0, levels > 0, "{name}: {counts:?}");
            assert!(counts.stack > 0 || levels == 4, "{name}: {counts:?}");
            assert!(counts.reached > 30, "{name}: {counts:?}");
        }
    }
}

#[test]
fn what_competes_depends_on_the_parser() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse(competing::GRAMMAR, &LarkOptions::default()).unwrap();
    let lexer = Some(LexerMode::Contextual);
    let language = Language::new(
        grammar,
        &LanguageOptions { engine: Engine::Valiant, lexer, ..LanguageOptions::default() },
    );
    let trie = TokenTrie::new((0..).map(TokenId).zip(competing::TOKENS.map(str::as_bytes)));
    for levels in [0, 1, 3] {
        // Searches take fewer threads than steps may have.
        let options = PoolOptions { threads: if levels == 3 { 1_024 } else { 32 }, ..small() };
        let (n_tokens, how) = (competing::TOKENS.len(), (levels as u64, levels, options));
        let text = competing::TEXT.as_bytes();
        let (_, n_masks, n_doubtful) =
            compare("competing", language.as_ref().unwrap(), &trie, n_tokens, text, how);
        assert_eq!((n_masks, n_doubtful), (text.len() + 1, 0), "{levels} levels");
    }
}

#[test]
fn masks_of_random_grammars() {
    if !can_run() {
        return;
    }
    // In each mode: masks, of them those in doubt.
    let mut compared = [(0, 0); MODES.len()];
    for seed in 0..60 {
        for (mode, (n_masks, n_doubtful)) in MODES.into_iter().zip(&mut compared) {
            let case = RandomCase::in_mode(seed, mode);
            let tokens =
                (0..).zip(&case.vocab).filter_map(|(id, token)| Some((TokenId(id), token.as_deref()?)));
            let trie = TokenTrie::new(tokens.filter(|(_, bytes)| !bytes.is_empty()));
            let options = LanguageOptions {
                engine: Engine::Valiant,
                lexer: Some(mode),
                ties: case.ties,
                ..LanguageOptions::default()
            };
            let Ok(language) = Language::new(case.grammar.clone(), &options) else { continue };
            for text in case.texts.iter().filter_map(|text| bytes_of(text)).take(4) {
                let name = format!("seed {seed}, {}", mode.name());
                let how = (seed, seed as usize % 3, small());
                let found =
                    compare(&name, &language, &trie, case.vocab.len(), &text[..text.len().min(8)], how);
                *n_masks += found.1;
                *n_doubtful += found.2;
            }
        }
    }
    assert_eq!(compared[0].1, 0, "{compared:?}");
    assert!(compared.iter().all(|&(n_masks, n_doubtful)| n_masks - n_doubtful > 300), "{compared:?}");
}

#[test]
fn what_the_search_lacks_is_an_error_of_its_row() {
    if !can_run() {
        return;
    }
    let (language, vocabulary) = (sql(LexerMode::Longest), Vocabulary::builtin());
    let n_words = vocabulary.len().div_ceil(32);
    for (option, levels, options) in [
        ("queue", 1, PoolOptions { queue: 3, ..small() }),
        ("arena_words", 2, PoolOptions { arena_words: 8, ..small() }),
        ("stack_words", 0, PoolOptions { stack_words: 8, ..small() }),
    ] {
        let charts = pool(0, options);
        let cfg = language.lexing().cfg.clone();
        let device = DeviceRecognizer::new(cfg, RecognizerLimits::default(), &charts).unwrap();
        let sequence = device.sequence();
        let mut stepper = Stepper::with(&language, Box::new(device));
        let mut frontier = stepper.start(&language).unwrap().unwrap();
        for &byte in b"select a" {
            let mut next = Frontier::new();
            stepper.step(&language, &frontier, byte, &mut next).unwrap();
            frontier = next;
        }
        let sequences =
            Sequences::new(&mut stepper, &language, vocabulary.trie(), frontier[0].lexeme, n_words).unwrap();
        let tree = lock(&charts).add_tree(&Tree::new(&language, &sequences, &[], n_words)).unwrap();
        let row = vec![Reading { sequence, state: frontier[0].state, tree }];
        let (masks, _) = lock(&charts).masks(&[row, vec![]], levels);
        assert_eq!(masks, [Err(ChartError::SearchTooLarge { option }), Ok(vec![0; n_words])], "{option}");
    }
}

#[test]
#[allow(unsafe_code, reason = "buffers of the caller")]
fn logits_are_masked_in_place() {
    if !can_run() {
        return;
    }
    let mut charts = charts(0, small());
    let (n_tokens, n_columns, n_rows) = (70, 75, 3);
    let mut random = Random::new(1);
    let words: Vec<u32> = (0..3 * n_rows).map(|_| random.bits() as u32).collect();
    let buffer = charts.buffer(&words).unwrap();
    let masks = DeviceMasks { address: buffer.address(), stride: 3, n_words: 3, n_rows };
    let allowed = |row: usize, column: usize| {
        column < n_tokens && words[row * 3 + column / 32] >> (column % 32) & 1 == 1
    };
    for (of, bytes, minus) in
        [(LogitType::F32, 4, 0xff80_0000), (LogitType::F16, 2, 0xfc00), (LogitType::Bf16, 2, 0xff80u32)]
    {
        let stride = 80;
        let buffer = charts.buffer(&vec![0x1111_1111; stride * n_rows * bytes / 4]).unwrap();
        // SAFETY: both buffers live as long as the pool, and have the rows that are described.
        let logits = Logits { address: buffer.address(), stride, n_columns, of };
        unsafe { charts.mask_logits(masks, n_tokens, logits) }.unwrap();
        let logits: Vec<u8> =
            charts.read_buffer(&buffer).unwrap().into_iter().flat_map(u32::to_le_bytes).collect();
        for row in 0..n_rows {
            for column in 0..stride {
                let number = &logits[(row * stride + column) * bytes..][..bytes];
                let masked = number == &u32::to_le_bytes(minus)[..bytes];
                assert_eq!(masked, column < n_columns && !allowed(row, column), "{of:?}, {row}, {column}");
                assert!(masked || number.iter().all(|&byte| byte == 0x11));
            }
        }
    }
}

#[test]
fn a_launch_that_is_too_large_is_refused_and_nothing_else() {
    if !can_run() {
        return;
    }
    let mut charts = charts(0, small());
    let (set, one) = (charts.buffer(&[5]).unwrap(), charts.buffer(&[2]).unwrap());
    let many = charts.buffer(&vec![0; 70_000]).unwrap();
    let refused = charts.or_buffers(&many, &vec![Vec::new(); 70_000]);
    assert!(matches!(refused, Err(ChartError::Device(DeviceError::Refused { .. }))), "{refused:?}");
    charts.or_buffers(&one, &[vec![set]]).unwrap();
    assert_eq!(charts.read_buffer(&one).unwrap(), [7]);
}

#[test]
#[allow(unsafe_code, reason = "buffers of the caller")]
fn token_sets_are_added() {
    if !can_run() {
        return;
    }
    let mut charts = charts(1, PoolOptions { threads: 64, ..small() });
    let (n_words, stride, n_rows) = (150, 160, 5);
    let mut random = Random::new(1);
    let mut word = |set: usize| random.bits() as u32 & 0x1111_1111 << (set % 4);
    let sets: Vec<Vec<u32>> = (0..64).map(|set| (0..n_words).map(|_| word(set)).collect()).collect();
    let addresses: Vec<u64> = sets.iter().map(|set| charts.buffer(set).unwrap().address()).collect();
    let buffer = charts.buffer(&vec![4; stride * n_rows]).unwrap();
    let masks = DeviceMasks { address: buffer.address(), stride, n_words, n_rows };
    let chosen: Vec<Vec<usize>> =
        [0, 1, 4, 7, 64].iter().map(|&n| (0..n).map(|at| at * 5 % 64).collect()).collect();
    let rows: Vec<Vec<u64>> =
        chosen.iter().map(|row| row.iter().map(|&set| addresses[set]).collect()).collect();
    // SAFETY: all buffers live as long as the pool; masks have the rows that are described, and sets are as
    // long as they.
    unsafe { charts.or_sets(masks, &rows) }.unwrap();
    let found = charts.read_buffer(&buffer).unwrap();
    for (row, sets_of_row) in chosen.iter().enumerate() {
        for at in 0..stride {
            let union =
                sets_of_row.iter().fold(4, |bits, &set| bits | sets[set].get(at).copied().unwrap_or(0));
            assert_eq!(
                found[row * stride + at],
                if at < n_words { union } else { 4 },
                "row {row}, word {at}"
            );
        }
    }
    let buffers: Vec<_> = sets.iter().map(|set| charts.buffer(set).unwrap()).collect();
    let together = charts.buffer(&vec![0; 2 * n_words]).unwrap();
    charts.or_buffers(&together, &[vec![buffers[3], buffers[9]], vec![]]).unwrap();
    let both = (0..n_words).map(|at| sets[3][at] | sets[9][at]).chain(vec![0; n_words]);
    assert_eq!(charts.read_buffer(&together).unwrap(), both.collect::<Vec<_>>());
    let short = charts.buffer(&[1]).unwrap();
    assert!(charts.or_buffers(&together, &[vec![short], vec![]]).is_err());
    // SAFETY: nothing is launched.
    let refused = unsafe { charts.or_sets(masks, &[vec![0; 65], vec![], vec![], vec![], vec![]]) };
    assert!(matches!(refused, Err(ChartError::Unknown { .. })));
}
