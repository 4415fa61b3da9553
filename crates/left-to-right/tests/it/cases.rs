//! The cases of `testdata/cases`, answered by every engine in every lexer mode.

use std::sync::Arc;

use anygram_grammar::ir::{SpecialToken, TerminalKind};
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::tokens::get_bit;
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions};
use anygram_testkit::cases::{self, CaseToken};
use anygram_testkit::text::{Sym, bytes_of};
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

const ENGINES: [Engine; 3] = [Engine::Reference, Engine::Earley, Engine::Valiant];

/// The readings of a text, in which tokens are those of a vocabulary.
fn read(language: &Language, stepper: &mut Stepper, vocab: &[CaseToken], text: &[Sym]) -> Frontier {
    let mut frontier = stepper.start(language).unwrap().unwrap_or_default();
    for &symbol in text {
        let mut next = Frontier::new();
        match symbol {
            Sym::Byte(byte) => stepper.step(language, &frontier, byte, &mut next).unwrap(),
            Sym::Token(id) => {
                for &terminal in language.lexing().specials() {
                    let named = match &language.grammar().terminals[terminal.index()].kind {
                        TerminalKind::Special(SpecialToken::Id(other)) => *other == id,
                        TerminalKind::Special(SpecialToken::Name(name)) => {
                            vocab.get(id as usize) == Some(&CaseToken::Special(Some(name.clone())))
                        }
                        _ => false,
                    };
                    if named {
                        next.extend(stepper.step_special(language, &frontier, terminal).unwrap());
                    }
                }
            }
        }
        frontier = next;
    }
    frontier
}

fn hex(bytes: &[u8]) -> String {
    format!("{{\"hex\":\"{}\"}}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// A token as an element of a JSON array.
fn json(token: &CaseToken) -> String {
    token.bytes().map_or("null".to_owned(), hex)
}

/// A vocabulary with the tokens of a case, after them all single bytes (so that every prefix can be spelled)
/// and an EOS.
fn vocabulary(tokens: &[CaseToken]) -> Vocabulary {
    let own = tokens.iter().map(json);
    let source: Vec<String> = own.chain((0..=255).map(|byte| hex(&[byte]))).collect();
    let options = LoadOptions { eos: vec![source.len() as u32], ..LoadOptions::default() };
    let source = format!("[{}]", source.join(","));
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &options).unwrap();
    let named = tokens.iter().zip(0..).filter_map(|(token, id)| match token {
        CaseToken::Special(Some(name)) if !name.is_empty() => Some((id, name.as_str())),
        _ => None,
    });
    vocabulary.with_names(named).unwrap()
}

/// The mask within a budget, over the tokens of a case and an EOS.
fn within(language: &Arc<Language>, text: &[Sym], tokens: &[CaseToken], budget: u32) -> (Vec<u32>, bool) {
    let source: Vec<String> = tokens.iter().map(json).collect();
    let eos = tokens.len();
    let options = LoadOptions { eos: vec![eos as u32], ..LoadOptions::default() };
    let source = format!("[{}]", source.join(","));
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &options).unwrap();
    let mut matcher = Constraint::new(language.clone(), vocabulary).unwrap().matcher().unwrap();
    for token in matcher.constraint().vocabulary().encode(bytes_of(text).unwrap()).unwrap() {
        matcher.advance(token).unwrap();
    }
    let words = matcher.mask_with_budget(budget).unwrap().into_words();
    ((0..eos as u32).filter(|&id| get_bit(&words, id as usize)).collect(), get_bit(&words, eos))
}

#[test]
fn every_case_is_answered() {
    let files = cases::load_all();
    for engine in ENGINES {
        let report = cases::run(&files, |file, mode, ties| -> Result<cases::Engine<'_>, String> {
            let grammar = file.read_grammar().map_err(|error| error.to_string())?;
            let options = LanguageOptions { lexer: Some(mode), ties, engine, ..LanguageOptions::default() };
            let language = Arc::new(Language::new(grammar, &options).map_err(|error| error.to_string())?);
            let stepper = || Stepper::new(&language).unwrap();
            let (for_sentences, for_viability, for_masks) =
                (language.clone(), language.clone(), language.clone());
            let (mut sentences, mut viability) = (stepper(), stepper());
            let (vocab, vocab_too) = (file.vocab.clone(), file.vocab.clone());
            Ok(cases::Engine {
                is_sentence: Some(Box::new(move |text| {
                    let frontier = read(&for_sentences, &mut sentences, &vocab, text);
                    sentences.is_sentence(&frontier)
                })),
                is_viable: Some(Box::new(move |text| {
                    let frontier = read(&for_viability, &mut viability, &vocab_too, text);
                    viability.is_viable(&for_viability, &frontier).unwrap()
                })),
                mask: Some(Box::new(move |text, tokens, budget| {
                    if let Some(budget) = budget {
                        return within(&for_masks, text, tokens, budget);
                    }
                    let constraint = Constraint::new(for_masks.clone(), vocabulary(tokens)).unwrap();
                    let mut matcher = constraint.matcher().unwrap();
                    for &symbol in text {
                        let token = match symbol {
                            Sym::Byte(byte) => (tokens.len() + usize::from(byte)) as u32,
                            Sym::Token(token) => token,
                        };
                        matcher.advance(TokenId(token)).unwrap();
                    }
                    let words = matcher.mask().unwrap().into_words();
                    let allowed =
                        (0..tokens.len()).filter(|&id| get_bit(&words, id)).map(|id| id as u32).collect();
                    (allowed, get_bit(&words, tokens.len() + 256))
                })),
                canvas: None,
            })
        });
        println!("{}: {} answers", engine.name(), report.n_answers);
        report.assert_ok();
    }
}
