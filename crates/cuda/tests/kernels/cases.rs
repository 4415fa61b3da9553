//! The cases of `testdata/cases` and the shared grammars, answered by the kernels.

use std::sync::Arc;

use anygram_cuda::DeviceRecognizer;
use anygram_cuda::output::{Output, OutputError};
use anygram_grammar::ir::{SpecialToken, TerminalKind};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::tokens::get_bit;
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions};
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Recognizer, RecognizerLimits};
use anygram_testkit::cases::{self, CaseToken};
use anygram_testkit::random::Random;
use anygram_testkit::shared;
use anygram_testkit::text::{Sym, bytes_of};
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

use crate::common::{can_run, pool, read, seen, small, word};

/// The readings of a text, in which tokens are those of a case.
fn readings(language: &Language, stepper: &mut Stepper, vocab: &[CaseToken], text: &[Sym]) -> Frontier {
    let is_named = |id: u32, kind: &TerminalKind| match kind {
        TerminalKind::Special(SpecialToken::Id(other)) => *other == id,
        TerminalKind::Special(SpecialToken::Name(name)) => {
            vocab.get(id as usize) == Some(&CaseToken::Special(Some(name.clone())))
        }
        _ => false,
    };
    let mut frontier = stepper.start(language).unwrap().unwrap_or_default();
    for &symbol in text {
        let mut next = Frontier::new();
        match symbol {
            Sym::Byte(byte) => stepper.step(language, &frontier, byte, &mut next).unwrap(),
            Sym::Token(id) => {
                for &terminal in language.lexing().specials() {
                    if is_named(id, &language.grammar().terminals[terminal.index()].kind) {
                        next.extend(stepper.step_special(language, &frontier, terminal).unwrap());
                    }
                }
            }
        }
        frontier = next;
    }
    frontier
}

/// A vocabulary of some tokens, after them all bytes, and an EOS.
fn vocabulary(tokens: &[CaseToken]) -> Vocabulary {
    let hex = |bytes: &[u8]| {
        format!("{{\"hex\":\"{}\"}}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    let own = tokens.iter().map(|token| token.bytes().map_or("null".to_owned(), hex));
    let source: Vec<String> = own.chain((0..=255).map(|byte| hex(&[byte]))).collect();
    let options = LoadOptions { eos: vec![source.len() as u32], ..LoadOptions::default() };
    let source = format!("[{}]", source.join(","));
    Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &options).unwrap()
}

/// The mask of the device, and whether the text may end; that of the CPU where the device has none.
fn mask(language: &Arc<Language>, text: &[Sym], tokens: &[CaseToken], seed: u64) -> (Vec<u32>, bool) {
    let constraint = Constraint::new(language.clone(), vocabulary(tokens)).unwrap();
    let bytes =
        bytes_of(text).unwrap().into_iter().map(|byte| TokenId::new(tokens.len() + usize::from(byte)));
    let words = match Output::new(&constraint, &pool(seed, small()), seed as usize % 3) {
        Ok(mut output) => {
            bytes.for_each(|token| output.advance(token).unwrap());
            let mut words = vec![0; constraint.mask_words()];
            output.mask_into(&mut words).unwrap();
            words
        }
        Err(OutputError::Chart(_)) => {
            let mut matcher = constraint.matcher().unwrap();
            bytes.for_each(|token| matcher.advance(token).unwrap());
            matcher.mask().unwrap().into_words()
        }
        Err(error) => panic!("{error}"),
    };
    let allowed = (0..tokens.len()).filter(|&id| get_bit(&words, id)).map(|id| id as u32).collect();
    (allowed, get_bit(&words, tokens.len() + 256))
}

#[test]
fn every_case_is_answered() {
    if !can_run() {
        return;
    }
    let mut files = cases::load_all();
    // Masks within budgets are answered by the CPU alone.
    files.iter_mut().for_each(|file| file.masks.retain(|case| case.budget.is_none()));
    let mut seed = 0;
    let report = cases::run(&files, |file, mode, ties| -> Result<cases::Engine<'_>, String> {
        seed += 1;
        let grammar = file.read_grammar().map_err(|error| error.to_string())?;
        let options = LanguageOptions {
            lexer: Some(mode),
            ties,
            engine: Engine::Valiant,
            ..LanguageOptions::default()
        };
        let language = Arc::new(Language::new(grammar, &options).map_err(|error| error.to_string())?);
        let charts = pool(seed, small());
        let stepper = || {
            let cfg = language.lexing().cfg.clone();
            Stepper::with(
                &language,
                Box::new(DeviceRecognizer::new(cfg, RecognizerLimits::default(), &charts).unwrap()),
            )
        };
        let (for_sentences, for_viability, for_masks) =
            (language.clone(), language.clone(), language.clone());
        let (mut sentences, mut viability) = (stepper(), stepper());
        let (vocab, vocab_too) = (file.vocab.clone(), file.vocab.clone());
        Ok(cases::Engine {
            is_sentence: Some(Box::new(move |text| {
                let mark = sentences.mark();
                let frontier = readings(&for_sentences, &mut sentences, &vocab, text);
                let answer = sentences.is_sentence(&frontier);
                sentences.release(mark);
                answer
            })),
            is_viable: Some(Box::new(move |text| {
                let mark = viability.mark();
                let frontier = readings(&for_viability, &mut viability, &vocab_too, text);
                let answer = viability.is_viable(&for_viability, &frontier).unwrap();
                viability.release(mark);
                answer
            })),
            // A text with tokens that the grammar names has no spelling in bytes.
            mask: match language.lexing().specials() {
                [] => Some(Box::new(move |text, tokens, _| mask(&for_masks, text, tokens, seed))),
                _ => None,
            },
            canvas: None,
        })
    });
    println!("{} answers", report.n_answers);
    report.assert_ok();
}

#[test]
fn states_of_shared_grammars() {
    if !can_run() {
        return;
    }
    let Some(data) = shared::data() else { return };
    for (name, length) in [("sql_grammar", 30), ("treebank_raw", 10), ("cpp_he", 25)] {
        let source = std::fs::read_to_string(data.join(format!("replay/{name}.lark"))).unwrap();
        let language = Language::new(
            lark::parse(&source, &LarkOptions::default()).unwrap(),
            &LanguageOptions::default(),
        );
        let cfg = language.unwrap().lexing().cfg.clone();
        let mut valiant = Valiant::new(cfg.clone(), RecognizerLimits::default()).unwrap();
        let options = anygram_cuda::PoolOptions { page_words: 4_096, threads: 128, ..small() };
        let mut device = DeviceRecognizer::new(cfg, RecognizerLimits::default(), &pool(4, options)).unwrap();
        let word = word(&mut valiant.clone(), &mut Random::new(1), length);
        let mut state = valiant.start();
        for &terminal in &word {
            state = read(&mut valiant, state, terminal).unwrap();
            let from = anygram_recognizer::StateId::new(state.index() - 1);
            assert_eq!(read(&mut device, from, terminal), Some(state), "{name}");
            assert_eq!(device.chart().predicted(state), valiant.predicted(state), "{name}");
            assert_eq!(seen(&device, state), seen(&valiant, state), "{name}");
            for left in valiant.form().left_children() {
                assert_eq!(device.chart().rows_of(state, left), valiant.rows_of(state, left), "{name}");
            }
        }
        assert!(word.len() >= length.min(5), "{name}: {}", word.len());
    }
}
