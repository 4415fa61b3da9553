//! [`matcher`](anygram_testkit::matcher).

use anygram_grammar::ir::Pattern;
use anygram_testkit::matcher::*;
use std::collections::BTreeSet;

pub(crate) fn regex(source: &str) -> Pattern {
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
    Pattern::Regex(parser.parse(source).unwrap())
}

fn all_ends(source: &str, text: &[u8]) -> Vec<usize> {
    ends(&regex(source), text, 0).into_iter().collect()
}

#[test]
fn alternatives_have_no_order() {
    assert_eq!(all_ends("B|Br", b"Bra"), [1, 2]);
    assert_eq!(all_ends("Br|B", b"Bra"), [1, 2]);
}

#[test]
fn greed_means_nothing() {
    assert_eq!(all_ends("a*?", b"aab"), [0, 1, 2]);
    assert_eq!(all_ends("a*", b"aab"), [0, 1, 2]);
    assert_eq!(all_ends("a+?b", b"aab"), [3]);
}

#[test]
fn repetitions_count() {
    assert_eq!(all_ends("a{2,3}", b"aaaa"), [2, 3]);
    assert_eq!(all_ends("(ab?){2}", b"abab"), [3, 4]);
    assert_eq!(all_ends("(a?){2}", b"aaa"), [0, 1, 2]);
    assert_eq!(all_ends("(a|aa){2}", b"aaaaa"), [2, 3, 4]);
    assert_eq!(all_ends("(a*)*", b"aa"), [0, 1, 2]);
}

#[test]
fn unicode_classes_match_whole_characters() {
    assert_eq!(all_ends("[é本]+", "é本".as_bytes()), [2, 5]);
    assert!(all_ends("[é本]", b"\xc3").is_empty());
    assert_eq!(all_ends(r"\d", "٣".as_bytes()), [2]);
    assert_eq!(all_ends(r"(?-u:\xC3)", "é".as_bytes()), [1]);
    assert!(all_ends(r"[^a]", b"\xff").is_empty());
}

#[test]
fn complement_is_of_unicode_text() {
    let not_a = Pattern::Not(Box::new(regex("a")));
    assert_eq!(ends(&not_a, b"aa", 0), BTreeSet::from([0, 2]));
    assert_eq!(ends(&not_a, "é".as_bytes(), 0), BTreeSet::from([0, 2]));
    assert!(!matches(&not_a, b"\xff"));
}

#[test]
fn intersection_and_the_empty_lists() {
    let both = Pattern::And(vec![regex("a+"), regex("(aa)*")]);
    assert_eq!(ends(&both, b"aaaaa", 0), BTreeSet::from([2, 4]));
    assert!(ends(&Pattern::Alternate(vec![]), b"", 0).is_empty());
    assert!(matches(&Pattern::Concat(vec![]), b""));
}
