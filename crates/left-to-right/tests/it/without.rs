//! Grammars without stop strings, compared with the definition: a text is a sentence if it is one of the
//! grammar and no stop string stands in it.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn.

use anygram_grammar::ir::{LexerMode, Ties};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{ErrorKind, Language, LanguageOptions};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::oracle::Oracle;
use anygram_testkit::random::Random;
use anygram_testkit::text::{Sym, bytes_of, show};

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(100)
}

/// The bytes that tokens without bytes stand between, too.
fn bytes(text: &[Sym]) -> Vec<u8> {
    text.iter().filter_map(|&sym| bytes_of(&[sym])).flatten().collect()
}

fn stands_in(stop: &str, text: &[u8]) -> bool {
    text.windows(stop.len()).any(|part| part == stop.as_bytes())
}

/// Parts of texts of the grammar, and texts over its characters.
fn stops(random: &mut Random, case: &RandomCase) -> Vec<String> {
    let n = random.between(1, 3);
    let texts: Vec<Vec<u8>> = case.texts.iter().map(|text| bytes(text)).collect();
    let stop = |random: &mut Random| {
        let text = String::from_utf8_lossy(random.choose::<Vec<u8>>(&texts)).into_owned();
        let chars: Vec<char> = text.chars().filter(|&c| c != '\u{fffd}').collect();
        let from = random.between(0, chars.len());
        let to = random.between(from, chars.len().min(from + 4));
        match chars[from..to].iter().collect::<String>() {
            part if part.is_empty() => random.choose(&["a", "b", "ab", "ba", "aab"]).to_string(),
            part => part,
        }
    };
    (0..n).map(|_| stop(random)).collect()
}

/// All texts of at most so many symbols, but no more than a bound.
fn short_texts(alphabet: &[Sym], most: usize) -> Vec<Vec<Sym>> {
    let mut all: Vec<Vec<Sym>> = vec![Vec::new()];
    let mut at = 0;
    while at < all.len() && all.len() < most {
        for &sym in alphabet {
            all.push([&all[at][..], &[sym]].concat());
        }
        at += 1;
    }
    all
}

#[test]
fn the_sentences_are_those_in_which_no_stop_string_stands() {
    let (mut n_texts, mut n_lost, mut n_empty, mut n_refused) = (0, 0, 0, 0);
    for seed in seeds() {
        let modes = [LexerMode::Scannerless, LexerMode::Longest];
        let blanks = modes.into_iter().map(|mode| RandomCase::with_blanks(seed, mode));
        for case in modes.into_iter().map(|mode| RandomCase::in_mode(seed, mode)).chain(blanks) {
            let mut random = Random::new(seed ^ 0x51);
            let stops = stops(&mut random, &case);
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let options =
                LanguageOptions { lexer: Some(case.mode), ties: case.ties, ..LanguageOptions::default() };
            let oracle: Oracle = case.oracle();
            let Ok(plain) = Language::new(case.grammar.clone(), &options) else { continue };
            let language = match plain.avoiding(&stops) {
                Ok(language) => Some(language),
                Err(error) if error.kind() == ErrorKind::Unsatisfiable => None,
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    n_refused += 1;
                    let is_first = (case.mode, case.ties) == (LexerMode::Longest, Ties::First);
                    let reasons = ["UTF-8", "<[1]>"];
                    let is_known = reasons.iter().any(|reason| error.to_string().contains(reason));
                    assert!(is_first || is_known, "{case}\n{error}");
                    continue;
                }
                Err(error) => panic!("{case}\nwithout {stops:?}: {error}"),
            };
            n_empty += usize::from(language.is_none());
            let mut reader = language.as_ref().map(|language| language.reader().unwrap());
            let texts = short_texts(&case.alphabet, 300).into_iter().chain(case.texts.clone());
            for text in texts.filter(|text| bytes_of(text).is_some()) {
                let own = bytes(&text);
                let was = oracle.is_sentence(&text);
                let expected = was && !stops.iter().any(|stop| stands_in(stop, &own));
                n_lost += usize::from(was && !expected);
                n_texts += usize::from(expected);
                let found = reader.as_mut().is_some_and(|reader| reader.read(&own).unwrap().is_sentence);
                assert_eq!(found, expected, "{case}\nwithout {stops:?}: {}", show(&text));
            }
        }
    }
    println!("{n_texts} sentences, {n_lost} with a stop string; {n_empty} empty, {n_refused} refused");
    assert!(n_texts > 10 * n_refused && n_lost > 10);
}

fn language(source: &str) -> Language {
    let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
    Language::new(grammar, &LanguageOptions::default()).unwrap()
}

#[test]
fn one_list_after_another_is_both() {
    let plain = language("%lexer scannerless\nstart: word (\" \" word)*\nword: /[ab]+/\n");
    let one = plain.avoiding(&["ab", "bb"]).unwrap();
    let other = plain.avoiding(&["ab"]).unwrap().avoiding(&["bb"]).unwrap().avoiding(&["ab"]).unwrap();
    let mut n_left = 0;
    for text in short_texts(&[Sym::Byte(b'a'), Sym::Byte(b'b'), Sym::Byte(b' ')], 400) {
        let read = |language: &Language| language.read(&bytes(&text)).unwrap().is_sentence;
        assert_eq!(read(&one), read(&other), "{}", show(&text));
        n_left += usize::from(read(&one));
    }
    assert!(n_left > 10, "{n_left}");
}

#[test]
fn long_stop_strings_are_left_out_or_hit_a_limit() {
    let plain = language("%lexer scannerless\nstart: /[a-z ]*/ \"!\"\n");
    for n in [50, 4_000] {
        match plain.avoiding(&[&"a".repeat(n)]) {
            Ok(language) => {
                for (length, is_left) in [(n - 1, true), (n, false)] {
                    let text = format!("b{}!", "a".repeat(length));
                    assert_eq!(language.read(text.as_bytes()).unwrap().is_sentence, is_left, "{n}");
                }
            }
            Err(error) => assert!(n > 50 && error.kind() == ErrorKind::Limit, "{n}: {error}"),
        }
    }
}
