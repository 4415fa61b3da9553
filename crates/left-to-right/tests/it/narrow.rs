//! A vocabulary so large that of its trie only what is wanted is walked, and other places are walked beside
//! what is known: masks are what single tokens do, which are read without any of that.

use std::sync::Arc;

use anygram_bits::Random;
use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

/// Names, and keywords that begin alike; what is wanted differs from place to place.
const GRAMMARS: [&str; 3] = [
    r#"start: ("let" NAME "=" sum ";" | "list" "of" NAME ";" | "if" sum "then" start | "end")+
    sum: NAME | NUMBER | sum "+" sum | "(" sum ")" | "not" sum
    NAME: /[a-z][a-z0-9]*/
    NUMBER: /[0-9]+/
    %ignore " ""#,
    r#"start: (word "," | text | "ab" "abc" | "--" /[a-c]+/)*
    word: /[a-z]{2,5}/
    text: "'" /[^']*/ "'""#,
    r#"start: pair*
    pair: "on" ":" ("one" | "only" | "once" /[0-9]/) | "of" ":" /[a-z ]+/ "." | "off""#,
];

/// All words of up to three letters of some, with and without a blank, and some others.
fn vocabulary() -> Vocabulary {
    let letters: Vec<char> = "abcdefilnostu0".chars().collect();
    let mut words = vec![String::new()];
    for length in 0..3 {
        let longer: Vec<String> = words
            .iter()
            .filter(|word| word.len() == length)
            .flat_map(|word| letters.iter().map(move |letter| format!("{word}{letter}")))
            .collect();
        words.extend(longer);
    }
    words.remove(0);
    let behind =
        ["", " ", ";", "=", "'", ","].map(|end| words.iter().map(move |word| format!("{word}{end}")));
    let before = [" ", "+", "'", ":"].map(|begin| words.iter().map(move |word| format!("{begin}{word}")));
    let others =
        ["then", "once", "only", "not", "let", " list", ", ", "--", " = ", "of ", "h", "'.'", "(", ")"];
    let single = " ;=+',:.-()";
    let tokens = behind.into_iter().flatten().chain(before.into_iter().flatten());
    let tokens = tokens.chain(others.map(String::from)).chain(single.chars().map(String::from));
    let mut tokens: Vec<Vec<u8>> = tokens.map(String::into_bytes).collect();
    tokens.push(Vec::new());
    let special = SpecialIds { eos: vec![tokens.len() as u32 - 1], ..SpecialIds::default() };
    Vocabulary::from_tokens(tokens, special).unwrap()
}

#[test]
fn masks_are_what_single_tokens_do() {
    let vocabulary = vocabulary();
    assert!(vocabulary.trie().n_nodes() > 20_000, "{} nodes", vocabulary.trie().n_nodes());
    let mut n_compared = 0;
    for (grammar, mode) in GRAMMARS.iter().zip([LexerMode::Contextual, LexerMode::Longest].iter().cycle()) {
        let parsed = lark::parse(grammar, &LarkOptions::default()).unwrap();
        let options = LanguageOptions { lexer: Some(*mode), ..LanguageOptions::default() };
        let language = Arc::new(Language::new(parsed, &options).unwrap());
        let constraint = Constraint::new(language, vocabulary.clone()).unwrap();
        for seed in anygram_testkit::random::seeds(4) {
            let mut random = Random::new(seed);
            let mut matcher = constraint.matcher().unwrap();
            for _ in 0..14 {
                let mask = matcher.mask().unwrap();
                for token in (0..vocabulary.len()).map(TokenId::new) {
                    // Of most tokens one in some, of those that are allowed more.
                    if random.chance(if mask.contains(token) { 60 } else { 8 }) {
                        let is_valid = matcher.validate(&[token]).unwrap() == 1;
                        let text = vocabulary.decode(matcher.tokens()).unwrap();
                        assert_eq!(
                            mask.contains(token),
                            is_valid,
                            "seed {seed}, {}, {} behind {:?}\n{grammar}",
                            mode.name(),
                            vocabulary.display_token(token),
                            String::from_utf8_lossy(&text)
                        );
                        n_compared += 1;
                    }
                }
                let allowed: Vec<TokenId> =
                    mask.iter().filter(|token| !vocabulary.is_special(*token)).collect();
                if allowed.is_empty() {
                    break;
                }
                // Rare tokens are those that the grammar asks for.
                let last = allowed.len().saturating_sub(40);
                let from = if random.chance(50) { &allowed[last..] } else { &allowed };
                matcher.advance(*random.choose(from)).unwrap();
            }
        }
    }
    assert!(n_compared > 50_000, "{n_compared} bits were compared");
}
