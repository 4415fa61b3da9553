//! Masks over vocabularies with many characters: whole subtrees of tokens that prolong a piece are not
//! walked, and have to be what walking them finds.
//!
//! Tokens are random strings of characters of one to four bytes, of parts of characters and of bytes that are
//! in no text; names, strings and comments take many of them. Every mask is held against the same tokens
//! advanced byte by byte. `ANYGRAM_SEED` and `ANYGRAM_SEEDS` as in `oracle.rs`.

use std::sync::Arc;

use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::tokens::get_bit;
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_testkit::random::Random;
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

/// The start is a rule so that every kind of piece can follow every other where they do not run into each
/// other.
const GRAMMAR: &str = r##"
    start: item*
    item: NAME | TEXT | NUMBER | KEYWORD | "(" item* ")" | ANY | TAKES_TURNS
    KEYWORD: "if" | "é"
    NAME: /[a-zé-ü一-鿿][a-z0-9é-ü一-鿿]*/
    TEXT: /"[^"\x00-\x1f]*"/
    NUMBER: /[0-9]+(\.[0-9]+)?/
    ANY: /[#😀-😎][^ \n"#()]*/
    TAKES_TURNS: /<([a-z .]*[^\x00-\x7f][.])*>/
    COMMENT: /\/\*([^*]|\*[^\/])*\*\//
    WS: / +/
    %ignore COMMENT
    %ignore WS
"##;

const PARTS: [&[u8]; 28] = [
    b"<",
    b">",
    b"a",
    b"i",
    b"if",
    b"7",
    b".",
    b"\"",
    b" ",
    b"(",
    b")",
    b"#",
    b"/*",
    b"*/",
    b"*",
    b"/",
    b"\n",
    b"\0",
    b"\x7f",
    "é".as_bytes(),
    "ü".as_bytes(),
    "中".as_bytes(),
    "😀".as_bytes(),
    b"\xc3",
    b"\xa9",
    b"\xe4\xb8",
    b"\xed\xa0\x80",
    b"\xff",
];

/// The first part.
const TAKES_TURNS: TokenId = TokenId(1);

fn vocabulary(random: &mut Random) -> Vocabulary {
    // Every part is a token, so that all texts can be come to.
    let mut tokens: Vec<Vec<u8>> = PARTS.iter().map(|part| part.to_vec()).collect();
    // These alone begin with their letter, so that below it there is nothing but what a piece can take.
    tokens.extend(["q", "qé", "qéq", "qé.", "qé.q"].map(|token| token.as_bytes().to_vec()));
    for _ in 0..400 {
        let n_parts = 2 + random.below(4);
        tokens.push((0..n_parts).flat_map(|_| random.choose(&PARTS).to_vec()).collect());
    }
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let tokens: Vec<String> = tokens.iter().map(|token| format!("{{\"hex\":\"{}\"}}", hex(token))).collect();
    let options = LoadOptions { eos: vec![0], ..LoadOptions::default() };
    Vocabulary::from_bytes(Format::JsonArray, format!("[null,{}]", tokens.join(",")).as_bytes(), &options)
        .unwrap()
}

#[test]
fn masks_are_what_bytes_say() {
    let seeds = anygram_testkit::random::seeds(10);
    let grammar = lark::parse(GRAMMAR, &LarkOptions::default()).unwrap();
    let (mut n_masks, mut n_allowed) = (0, 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        let vocabulary = vocabulary(&mut random);
        for mode in [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual] {
            let options = LanguageOptions { lexer: Some(mode), ..LanguageOptions::default() };
            let language = Language::new(grammar.clone(), &options).unwrap();
            let mut matcher =
                Constraint::new(Arc::new(language), vocabulary.clone()).unwrap().matcher().unwrap();
            for step in 0..12 {
                let mask = matcher.mask().unwrap().into_words();
                let mut allowed = Vec::new();
                for token in (1..vocabulary.len()).map(TokenId::new) {
                    let is_allowed = matcher.validate(&[token]).unwrap() == 1;
                    let bytes = vocabulary.bytes(token).map(String::from_utf8_lossy);
                    let text = vocabulary.decode(matcher.tokens());
                    assert_eq!(
                        get_bit(&mask, token.index()),
                        is_allowed,
                        "seed {seed}, {mode:?}: {bytes:?} after {text:?}"
                    );
                    allowed.extend(is_allowed.then_some(token));
                }
                if step == 0 && random.below(2) == 0 {
                    allowed = vec![TAKES_TURNS];
                }
                n_masks += 1;
                n_allowed += allowed.len();
                if allowed.is_empty() {
                    break;
                }
                matcher.advance(*random.choose(&allowed)).unwrap();
            }
        }
    }
    println!("{n_masks} masks, {n_allowed} tokens allowed");
    assert!(n_masks > 0 && n_allowed > n_masks);
}
