//! The loader's errors, the runner's reports, and the oracle's answers to all cases.

use std::collections::BTreeSet;
use std::rc::Rc;

use anygram_grammar::ir::{LexerMode, Ties};
use anygram_testkit::canvas::Slot;
use anygram_testkit::canvas::{Roles, brute_force};
use anygram_testkit::cases::*;
use anygram_testkit::oracle::{Completion, Limits, Oracle};
use anygram_testkit::text::{Sym, show};
use std::path::Path;

fn read(source: &str) -> Result<CaseFile, CaseError> {
    parse(Path::new("some.toml"), source)
}

#[track_caller]
fn error(source: &str, expected: &str) {
    let message = read(source).unwrap_err().to_string();
    assert!(message.starts_with("some.toml: ") && message.contains(expected), "{message}");
}

const HEAD: &str = "name = 'n'\ngrammar = 'start:'\n";

#[test]
fn mistakes_have_clear_messages() {
    error("grammar = ''", "missing field `name`");
    error(&format!("{HEAD}colour = 1"), "unknown field `colour`");
    error(HEAD, "says nothing");
    error(&format!("{HEAD}refused = true\n[[text]]\ntext = ''\nsentence = true"), "neither texts nor masks");
    error(&format!("{HEAD}lexer = []\n[[text]]\ntext = ''\nsentence = true"), "no mode");
    let text = |rest: &str| format!("{HEAD}lexer = ['longest']\n[[text]]\ntext = ''\n{rest}");
    error(&text("sentence = false"), "[[text]] number 1: what is no sentence says whether it is viable");
    error(&text("sentence = true\nviable = false"), "a sentence is a viable prefix");
    error(&text("sentence = false\nviable = false\ncompletion = 'a'"), "has a completion");
    error(&text("sentence = true\nlexer = ['contextual']"), "Contextual is not among");
    error(&text("sentence = true\n[[text]]\ntext = {hex = 'c'}\nsentence = true"), "number 2: `hex = \"c\"`");
    let mask = |rest: &str| format!("{HEAD}[[mask]]\neos = true\n{rest}");
    error(&mask("allowed = []"), "needs a vocabulary");
    error(&mask("vocab = ['a']\nallowed = ['b']"), "not in the vocabulary");
    error(&mask("vocab = ['a']\nallowed = [1]"), "not in the vocabulary");
}

#[test]
fn texts_and_tokens_are_read() {
    let file = read(&format!(
        "{HEAD}vocab = ['a', {{hex = 'C3a9'}}, {{special = '<|x|>'}}, 'a']
        [[text]]\ntext = ['a', {{hex = 'ff'}}, {{token = 2}}]\nsentence = false\ncompletion = 'b'
        [[mask]]\nallowed = ['a', 1]\neos = false"
    ))
    .unwrap();
    assert_eq!(file.modes.len(), 3);
    assert_eq!(file.texts[0].text, [Sym::Byte(b'a'), Sym::Byte(0xff), Sym::Token(2)]);
    assert!(file.texts[0].viable);
    assert_eq!(file.masks[0].allowed, [0, 1, 3]);
    assert_eq!(vocab_bytes(&file.vocab)[1..3], [Some("é".into()), None]);
}

#[test]
fn wrong_answers_are_reported() {
    let source = format!(
        "{HEAD}[[text]]\ntext = 'a'\nsentence = true\n[[text]]\ntext = 'b'\nsentence = false\nviable = false
        [[mask]]\nvocab = ['a']\nallowed = ['a']\neos = true\nlexer = ['longest']"
    );
    let files = [read(&source).unwrap()];
    let report = run(&files, |_, _, _| {
        Ok::<_, String>(Engine {
            is_sentence: Some(Box::new(|_| true)),
            is_viable: None,
            mask: Some(Box::new(|_, _, _| (vec![], true))),
            canvas: None,
        })
    });
    assert_eq!((report.n_answers, report.failures.len()), (7, 4), "{report}");
    assert!(report.failures[0].contains("\"b\" is a sentence"), "{report}");
    let report = run(&files, |_, _, _| Err("too strange"));
    assert_eq!(report.failures.len(), 3);
    assert!(report.failures[0].contains("refused: too strange"));
}

/// Every byte that some text or token of the file has: what completions are made of. (A case that makes do
/// with few letters is checked sooner.)
fn alphabet(file: &CaseFile) -> Vec<Sym> {
    let texts = file.texts.iter().flat_map(|case| case.text.iter().chain(case.completion.iter().flatten()));
    let masks = file.masks.iter().flat_map(|case| &case.prefix);
    let tokens = file.masks.iter().flat_map(|case| &case.vocab).filter_map(CaseToken::bytes).flatten();
    let symbols: BTreeSet<Sym> =
        texts.chain(masks).copied().chain(tokens.map(|&byte| Sym::Byte(byte))).collect();
    symbols.into_iter().collect()
}

fn oracle_engine(file: &CaseFile, mode: LexerMode, ties: Ties) -> Result<Engine<'static>, String> {
    let grammar = file.read_grammar().map_err(|error| error.to_string())?;
    let mut oracle = Oracle::new(&grammar, mode, ties);
    if oracle.is_empty_language() {
        return Err("the language is empty".to_owned());
    }
    for (token, special) in (0..).zip(&file.vocab) {
        if let CaseToken::Special(Some(name)) = special {
            oracle = oracle.with_special(name, token);
        }
    }
    let oracle = Rc::new(oracle);
    let alphabet = alphabet(file);
    let limits = Limits { max_extra: 5, ..Limits::default() };
    let place = format!("{} {mode:?}", file.name);
    let viable = {
        let (oracle, completions) = (oracle.clone(), alphabet.clone());
        let file = file.clone();
        move |text: &[Sym]| {
            let given =
                file.texts.iter().filter(|case| case.text == text).find_map(|case| case.completion.as_ref());
            if given.is_some_and(|extra| oracle.is_sentence(&[text, extra].concat())) {
                return true;
            }
            let completion = oracle.completion(text, &completions, limits);
            assert_ne!(completion, Completion::LimitReached, "{place}: {}", show(text));
            completion.is_found()
        }
    };
    let (sentence, filled) = (oracle.clone(), oracle.clone());
    Ok(Engine {
        is_sentence: Some(Box::new(move |text| sentence.is_sentence(text))),
        is_viable: Some(Box::new(viable)),
        mask: Some(Box::new(move |prefix, vocab, budget| match budget {
            None => {
                let mask = oracle.mask(&vocab_bytes(vocab), prefix, &alphabet, limits);
                (mask.tokens(), mask.eos)
            }
            Some(budget) => {
                let tokens = 0..vocab.len() as u32;
                let fits = |&token: &u32| oracle.fits(&vocab_bytes(vocab), prefix, token, budget);
                (tokens.filter(fits).collect(), oracle.is_sentence(prefix))
            }
        })),
        canvas: Some(Box::new(move |case| by_brute_force(&filled, case))),
    })
}

#[test]
fn the_oracle_answers_every_case() {
    run(&load_all(), oracle_engine).assert_ok();
}

/// All assignments, with at most two tokens a gap.
fn by_brute_force(oracle: &Oracle, case: &CanvasCase) -> CanvasAnswers {
    let vocab = vocab_bytes(&case.vocab);
    // A special token has a name so that the grammar can name it.
    let is_named = |token: &u32| matches!(case.vocab[*token as usize], CaseToken::Special(Some(_)));
    let named = (0..case.vocab.len() as u32).filter(is_named).collect();
    let roles = Roles { eos: case.eos.into_iter().collect(), pad: case.pad, named };
    let closes = |text: &[Sym], most: u32| {
        let slots = vec![Slot::Gap; usize::from(most > 0)];
        let sentence = |rest: &[Sym], _| oracle.is_sentence(&[text, rest].concat());
        brute_force(&vocab, &roles, &slots, most as usize, 10_000, sentence)
            .is_some_and(|answers| answers.completable)
    };
    let ends = |text: &[Sym], has_eos: bool| match case.remaining {
        _ if has_eos || !case.prefix => oracle.is_sentence(text),
        Some(most) => closes(text, most),
        None => (0..4).any(|most| closes(text, most)),
    };
    let answers = brute_force(&vocab, &roles, &case.slots, 2, 20_000, ends).expect("a small canvas");
    let sets = answers.admissible.into_iter().map(|set| set.into_iter().collect());
    (answers.completable, sets.collect(), answers.minimum)
}
