//! A random case of the test kit and a walk through its vocabulary, every mask on the way compared with brute
//! force.
//!
//! Eight bytes are the seed, the next the lexer mode and the text, the others choose the tokens of the walk.
//! To replay a case in a debugger: `RandomCase::in_mode(seed, mode)`, both of which a failure prints.

use std::sync::Arc;

use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Constraint, Language, LanguageOptions, MatchError, Matcher};
use anygram_testkit::generate::{EOS, RandomCase};
use anygram_testkit::oracle::{Completion, Limits, Oracle};
use anygram_testkit::text::{Sym, bytes_of, show, token_symbols};
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

const LIMITS: Limits = Limits { max_extra: 3, max_texts: 100, prune: true };

/// The greatest number of tokens of a walk. Brute force takes longer with every symbol.
const MAX_STEPS: usize = 3;
/// The longest text that brute force is asked about.
const MAX_TEXT: usize = 8;
/// The greatest number of texts that brute force completes, for one input.
const MAX_JUDGED: usize = 12;

const MODES: [LexerMode; 3] = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];

/// Compares a case with brute force.
pub fn run(data: &[u8]) -> bool {
    let Some((seed, &[choice, ref walk @ ..])) = data.split_first_chunk::<8>() else { return false };
    let case = RandomCase::in_mode(u64::from_le_bytes(*seed), MODES[usize::from(choice) % MODES.len()]);
    let options = LanguageOptions {
        lexer: Some(case.mode),
        ties: case.ties,
        limits: crate::limits(),
        ..LanguageOptions::default()
    };
    // No sentence, or a limit: nothing to compare.
    let Ok(language) = Language::new(case.grammar.clone(), &options) else { return true };
    let language = Arc::new(language);
    let oracle = case.oracle();

    let text = &case.texts[usize::from(choice) / MODES.len() % case.texts.len()];
    if let Some(bytes) = bytes_of(&text[..text.len().min(MAX_TEXT)])
        && let Ok(reading) = language.read(&bytes)
    {
        let text = &text[..bytes.len()];
        assert_eq!(reading.is_sentence, oracle.is_sentence(text), "{} is a sentence\n{case}", show(text));
        judge(&case, &oracle, text, reading.is_viable);
    }
    let constraint =
        Constraint::new(language, vocabulary(&case)).expect("the vocabulary has the token it names");
    if let Ok(mut matcher) = constraint.matcher() {
        follow(&case, &oracle, &mut matcher, &walk[..walk.len().min(MAX_STEPS)]);
    }
    true
}

/// Takes one allowed token for each byte of the walk, and looks at one more mask at its end.
fn follow(case: &RandomCase, oracle: &Oracle, matcher: &mut Matcher, walk: &[u8]) {
    let mut text: Vec<Sym> = Vec::new();
    let mut n_judged = 0;
    for choice in walk.iter().map(Some).chain([None]) {
        let Ok(mask) = matcher.mask() else { return };
        let ends = mask.contains(TokenId(EOS));
        assert_eq!(ends, oracle.is_sentence(&text), "{} may end\n{case}", show(&text));
        let mut allowed = Vec::new();
        // Brute force looks at some of the tokens, others each time.
        let n_tokens = case.vocab.len() as u32;
        let first = walk.iter().fold(0, |sum, &byte| sum * 31 + u32::from(byte));
        for token in (0..n_tokens).map(|at| (first + at) % n_tokens).filter(|&token| token != EOS) {
            let is_set = mask.contains(TokenId(token));
            let longer = [&text[..], &token_symbols(&case.vocab, token)].concat();
            if n_judged < MAX_JUDGED {
                judge(case, oracle, &longer, is_set);
                n_judged += 1;
            }
            match matcher.validate(&[TokenId(token)]) {
                Ok(n) => {
                    assert_eq!(n == 1, is_set, "{} and token {token} are validated\n{case}", show(&text))
                }
                Err(MatchError::Limit(_)) => return,
                Err(error) => panic!("{error}\n{case}"),
            }
            if is_set && longer.len() <= MAX_TEXT {
                allowed.push(token);
            }
        }
        let Some(&choice) = choice else { return };
        if allowed.is_empty() {
            return;
        }
        let token = allowed[usize::from(choice) % allowed.len()];
        match matcher.advance(TokenId(token)) {
            Ok(()) => text.extend(token_symbols(&case.vocab, token)),
            Err(MatchError::Limit(_)) => return,
            Err(error) => panic!("after {}: {error}\n{case}", show(&text)),
        }
    }
}

/// Compares a word of ours with brute force, as far as that looks.
fn judge(case: &RandomCase, oracle: &Oracle, text: &[Sym], viable: bool) {
    if text.len() > MAX_TEXT {
        return;
    }
    match (viable, oracle.completion(text, &case.alphabet, LIMITS)) {
        (true, Completion::NoneWithin { exhausted: true }) if !needs_other_bytes(case, oracle, text) => {
            panic!("{} is accepted, but nothing completes it\n{case}", show(text))
        }
        (false, Completion::Found(rest)) => {
            panic!("{} is refused, but {} completes it\n{case}", show(text), show(&rest))
        }
        _ => {}
    }
}

/// Whether a text may have a completion after all, if not over the alphabet of the case.
fn needs_other_bytes(case: &RandomCase, oracle: &Oracle, text: &[Sym]) -> bool {
    let alphabet = oracle.whole_alphabet(&case.alphabet);
    oracle.completion(text, &alphabet, LIMITS) != Completion::NoneWithin { exhausted: true }
}

fn vocabulary(case: &RandomCase) -> Vocabulary {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let tokens: Vec<String> = case
        .vocab
        .iter()
        .map(|token| {
            token.as_ref().map_or("null".to_owned(), |bytes| format!("{{\"hex\":\"{}\"}}", hex(bytes)))
        })
        .collect();
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    let source = format!("[{}]", tokens.join(","));
    Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &options).expect("a vocabulary")
}
