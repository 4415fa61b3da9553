//! Examples are sentences, explanations name what is in progress.

use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{LarkOptions, parse};
use anygram_left_to_right::example::{Examples, contexts};
use anygram_left_to_right::explain::{Explanation, explain};
use anygram_left_to_right::{Language, LanguageOptions};
use anygram_lexer::words::Words;

fn language(source: &str, mode: LexerMode) -> Language {
    let grammar = parse(source, &LarkOptions::default()).unwrap();
    Language::new(grammar, &LanguageOptions { lexer: Some(mode), ..LanguageOptions::default() }).unwrap()
}

fn short(source: &str, mode: LexerMode) -> Option<String> {
    let language = language(source, mode);
    let words = Words::new(&language.lexing().lexicon);
    let text = Examples::new(&language, &words).unwrap().short()?;
    assert!(language.read(&text).unwrap().is_sentence);
    Some(String::from_utf8(text).unwrap())
}

const SQL: &str = "start: \"select\" NAME (\",\" NAME)* \"from\" NAME [\"where\" cond]\ncond: NAME \"=\" \
                   value | \"(\" cond \")\"\n\
    value: NAME | STRING\nNAME: /[a-z]+/\nSTRING: /'[^']*'/\n%ignore /\\s+/";

#[test]
fn short_sentences_are_separated_only_where_they_must_be() {
    for mode in LexerMode::ALL {
        assert_eq!(short(SQL, mode).unwrap(), "select a from a", "{mode:?}");
    }
    assert_eq!(short("start: \"a\"*", LexerMode::Longest).unwrap(), "");
    assert_eq!(short("start: A B\nA: /a+/\nB: /a|b/", LexerMode::Longest).unwrap(), "ab");
    assert_eq!(short("start: <|x|> \"a\"", LexerMode::Longest), None);
}

#[test]
fn where_the_obvious_spelling_is_none_another_is_found() {
    // The shortest word of each is taken by the other, or runs on.
    for mode in LexerMode::ALL {
        assert!(short("start: A B C\nA: /a+/\nB: /a*b?/\nC: /b|c/", mode).is_some(), "{mode:?}");
    }
}

#[test]
fn random_sentences_are_different_and_reproducible() {
    for mode in LexerMode::ALL {
        let language = language(SQL, mode);
        let words = Words::new(&language.lexing().lexicon);
        let random = |seed| Examples::new(&language, &words).unwrap().random(20, seed);
        let found = random(1);
        assert_eq!((found.len(), &found), (20, &random(1)));
        assert_ne!(found, random(2));
        for text in &found {
            assert!(language.read(text).unwrap().is_sentence, "{}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn contexts_are_what_can_come_next() {
    let language = language(SQL, LexerMode::Contextual);
    let (contexts, is_cut) = contexts(&language).unwrap();
    let name = |at: usize| language.grammar().terminals[at].name.as_str();
    let mut contexts: Vec<Vec<&str>> =
        contexts.iter().map(|context| context.iter().map(name).collect()).collect();
    contexts.iter_mut().for_each(|context| context.sort_unstable());
    assert!(
        !is_cut
            && contexts.contains(&vec!["NAME", "STRING"])
            && contexts.contains(&vec!["\",\"", "\"from\""])
    );
}

fn explained(source: &str, mode: LexerMode, text: &str) -> (Explanation, Vec<String>) {
    let language = language(source, mode);
    let words = Words::new(&language.lexing().lexicon);
    let (reading, explanation) = explain(&language, &words, text.as_bytes()).unwrap();
    assert_eq!(reading, language.read(text.as_bytes()).unwrap());
    let explanation = explanation.unwrap();
    let name = |&(n, at): &(anygram_grammar::ir::NonterminalId, usize)| {
        format!("{} {at}", language.grammar().nonterminals[n.index()].name)
    };
    let phrases = explanation.phrases.iter().map(name).collect();
    (explanation, phrases)
}

#[test]
fn phrases_in_progress_are_named_with_their_places() {
    for mode in LexerMode::ALL {
        let text = "select a from b where  ( x = )";
        let (explanation, phrases) = explained(SQL, mode, text);
        assert_eq!(phrases, ["start 0", "cond 23", "cond 25"], "{mode:?}");
        assert_eq!((explanation.piece, explanation.is_cut), (None, false));
        let (explanation, phrases) = explained(SQL, mode, "select a from b where x = 'ab");
        assert_eq!(
            (explanation.piece, phrases),
            (Some(26), vec!["start 0".to_owned(), "cond 22".to_owned()]),
            "{mode:?}"
        );
        assert_eq!(explanation.completion.as_deref(), Some(&b"'"[..]));
    }
}

#[test]
fn deep_texts_are_explained_without_a_stack() {
    let (explanation, phrases) =
        explained("start: \"(\" start \")\" | \"x\"", LexerMode::Contextual, &"(".repeat(20_000));
    assert_eq!((phrases.len(), explanation.is_cut, explanation.expected.len()), (20_000, false, 2));
    // Too long to search for.
    assert_eq!(explanation.completion, None);
}
