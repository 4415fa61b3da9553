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

#[test]
fn knows_which_bytes_are_told_apart() {
    let kinds = |patterns: &[&str]| {
        let languages: Vec<Language> = patterns.iter().map(|source| Language::new(&regex(source))).collect();
        kinds_of_bytes(languages.iter())
    };
    assert_eq!(kinds(&["[a-c]+"]), [b"abc".to_vec()]);
    assert_eq!(kinds(&["[a-c]+", "x|b"]), [b"ac".to_vec(), b"b".to_vec(), b"x".to_vec()]);
    assert!(kinds(&["[a&&b]", ""]).is_empty());
    // What begins a character, by the bytes that may follow; and those, by what they may follow.
    let any = kinds(&["."]);
    let of = |byte| any.iter().find(|kind| kind.contains(&byte));
    assert_eq!(of(b'a').unwrap().len(), 127, "all of ASCII but the end of a line");
    assert_eq!([of(b'\n'), of(0xc0), of(0xff)], [None; 3]);
    assert_eq!(any.len(), 11, "ASCII, three kinds within characters, and seven that begin them");
    // Without `é` the second byte of `é` is of a kind of its own.
    let others = kinds(&["[^é]"]);
    assert!(others.contains(&vec![0xa9]) && others.contains(&vec![0xc3]));
}

/// Another byte of the same kind makes no difference, by the matcher.
#[test]
fn bytes_of_a_kind_are_alike() {
    let patterns = [regex("[^é]{1,2}"), regex("(?-u:[\\x80-\\xFF])+|a"), not(regex("b*|.*(a|é).*"))];
    for pattern in patterns {
        let kinds = kinds_of_bytes([Language::new(&pattern)].iter());
        let firsts: Vec<&[u8]> = kinds.iter().map(|kind| &kind[..1]).collect();
        for text in texts(&firsts, 2) {
            let other = |byte: &u8| *kinds.iter().find(|kind| kind.contains(byte)).unwrap().last().unwrap();
            let others: Vec<u8> = text.iter().map(other).collect();
            assert_eq!(matcher::matches(&pattern, &text), matcher::matches(&pattern, &others), "{text:x?}");
        }
    }
}
