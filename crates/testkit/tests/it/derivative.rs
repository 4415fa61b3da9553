//! [`derivative`](anygram_testkit::derivative).

use anygram_grammar::ir::Pattern;
use anygram_testkit::derivative::*;
use anygram_testkit::matcher;

fn regex(source: &str) -> Pattern {
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
    Pattern::Regex(parser.parse(source).unwrap())
}

fn not(inner: Pattern) -> Pattern {
    Pattern::Not(Box::new(inner))
}

/// All texts of at most `max` symbols from `units`, joined.
fn texts(units: &[&[u8]], max: usize) -> Vec<Vec<u8>> {
    let mut all = vec![vec![]];
    let mut last = vec![vec![]];
    for _ in 0..max {
        last =
            last.iter().flat_map(|text: &Vec<u8>| units.iter().map(|unit| [text, *unit].concat())).collect();
        all.extend(last.iter().cloned());
    }
    all
}

#[test]
fn agrees_with_the_matcher() {
    let patterns = [
        regex("a*b|ab?"),
        regex("(a|ab)(b|é)*"),
        regex("[^a]{1,2}"),
        regex(r"(?-u:\xC3)a?|é"),
        regex("(a?){2,3}"),
        regex("(a*)*b{0}"),
        not(regex("a*")),
        Pattern::And(vec![regex("[ab]*"), not(regex(".*aa.*"))]),
        Pattern::Concat(vec![not(regex("b")), regex("b")]),
        Pattern::Repeat { inner: Box::new(not(regex("a|"))), min: 1, max: Some(2) },
        Pattern::Alternate(vec![]),
        Pattern::And(vec![]),
    ];
    for pattern in patterns {
        let language = Language::new(&pattern);
        for text in texts(&[b"a", b"b", "é".as_bytes(), b"\xc3"], 4) {
            let after = language.after(&text);
            assert_eq!(after.is_nullable(), matcher::matches(&pattern, &text), "{pattern:?} on {text:?}");
            assert!(!after.is_nullable() || !after.is_nothing());
        }
    }
}

#[test]
fn knows_what_is_empty() {
    let empty = [
        regex("[a&&b]"),
        regex("a[a&&b]"),
        Pattern::And(vec![regex("a+"), regex("b+")]),
        Pattern::And(vec![regex("a"), not(regex("[a-b]"))]),
        not(regex("(?s).*")),
    ];
    for pattern in empty {
        assert!(Language::new(&pattern).is_nothing(), "{pattern:?}");
    }
    assert!(!Language::new(&Pattern::And(vec![regex("(aa)*a"), regex("(aaa)+")])).is_nothing());
    assert!(!Language::new(&regex("[a&&b]*")).is_nothing());
    assert!(!Language::new(&regex("[a&&b]*")).has_nonempty());
}

#[test]
fn knows_what_can_still_match() {
    let comment = Language::new(&regex(r"/\*(?s:.)*?\*/"));
    assert!(!comment.after(b"/* x").is_nothing());
    assert!(comment.after(b"//").is_nothing());
    let accent = Language::new(&regex("é"));
    assert!(!accent.after(b"\xc3").is_nothing());
    assert!(!accent.after(b"\xc3").is_nullable());
}
