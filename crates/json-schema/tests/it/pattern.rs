//! Patterns against `regress`, which reads ECMA-262 independently.

use anygram_bits::Random;
use std::collections::{BTreeMap, BTreeSet};

use anygram_json_schema::pattern::{self, Limits, PatternErrorKind};
use anygram_testkit::schema_bench;
use serde_json::Value;

/// `regress`, with the flag `u`, else without.
fn regress(expression: &str) -> Option<regress::Regex> {
    let with = |flags| regress::Regex::with_flags(expression, flags).ok();
    with("u").or_else(|| with(""))
}

/// Parses, and checks that what is printed is the same.
fn parse(expression: &str) -> Result<pattern::Pattern, pattern::PatternError> {
    let pattern = pattern::parse(expression)?;
    let printed = pattern.to_string();
    assert_eq!(pattern::parse(&printed).as_ref(), Ok(&pattern), "{expression} printed as {printed}");
    Ok(pattern)
}

/// Whether both say the same of all texts.
fn agrees<'t>(expression: &str, texts: impl IntoIterator<Item = &'t str>) -> Result<(), String> {
    let ours = parse(expression).map_err(|error| format!("{expression:?} is refused: {error}"))?;
    let theirs = regress(expression).ok_or_else(|| format!("{expression:?} is refused by regress"))?;
    let differs = |text: &&str| crate::matcher::is_match(&ours, text) != theirs.find(text).is_some();
    let differs = texts.into_iter().find(differs);
    differs.map_or(Ok(()), |text| Err(format!("{expression:?} as {ours:?} on {text:?}")))
}

const TEXTS: [&str; 43] = [
    "",
    "a",
    "b",
    "ab",
    "ba",
    "aa",
    "aab",
    "abab",
    "aaaa",
    "aaaaa",
    "-",
    "_",
    "1",
    "12",
    "a1",
    "a-b",
    "\\",
    "\\c",
    "c",
    "\n",
    "a\nb",
    "\u{2028}",
    "\u{feff}",
    "\u{3000}",
    "é",
    "É",
    "\u{1f600}",
    "a\u{1f600}",
    "\u{1f600}\u{1f600}",
    "{",
    "}",
    "a{",
    "a{1",
    "a{,5}",
    "]",
    "u{61}",
    "\0",
    "\u{1}",
    "\u{8}",
    "p{Foo}",
    "xxg1x1",
    "xg1x",
    "uu12uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu-",
];

/// What is read, and printed as.
const READ: [(&str, &str); 118] = [
    // The empty expression, alternatives, groups.
    ("", "(?:)"),
    ("|", "|"),
    ("a||b", "a||b"),
    ("(a|b)|c", "a|b|c"),
    ("(?:ab)c", "abc"),
    ("()", "(?:)"),
    ("(?<name>a)b", "ab"),
    ("(?<n>a)|(?<n>b)", "a|b"),
    (r"(?<$é\u0061\u{62}\u{200c}>a)", "a"),
    ("(a)*(b|c)?", "a*(?:b|c)?"),
    ("(?=a)b", "(?=a)b"),
    ("(?!a|b)", "(?!a|b)"),
    ("(?=a)*", "(?:(?=a))*"),
    ("(?!a){2,3}?x", "(?:(?!a)){2,3}x"),
    // Quantifiers.
    ("a*?b+?c??", "a*b+c?"),
    ("a{3}", "a{3}"),
    ("a{3,}", "a{3,}"),
    ("a{3,5}?", "a{3,5}"),
    ("a{0,1}", "a?"),
    ("a{0007}", "a{7}"),
    ("a{0,4294967295}", "a{0,4294967295}"),
    ("(?:a{2}){3}", "(?:a{2}){3}"),
    ("(a*)*", "(?:a*)*"),
    ("(?:)*", "(?:)*"),
    ("(^)*a", "(?:^)*a"),
    // Braces that are characters, by Annex B.
    ("a{", r"a\{"),
    ("a{1", r"a\{1"),
    ("a{,5}", r"a\{,5\}"),
    ("a{b}", r"a\{b\}"),
    ("{", r"\{"),
    ("^{", r"^\{"),
    ("}", r"\}"),
    ("]", r"\]"),
    ("a]}", r"a\]\}"),
    ("{a}", r"\{a\}"),
    ("{{2}", r"\{{2}"),
    ("a{1,2,3}", r"a\{1,2,3\}"),
    ("a{-1}", r"a\{\x2d1\}"),
    // Characters.
    (r"\/\.\\\^", r"/\.\\\^"),
    (r"\f\n\r\t\v\0", r"\u{c}\u{a}\u{d}\u{9}\u{b}\u{0}"),
    (r"\cA\cz\cJ", r"\u{1}\u{1a}\u{a}"),
    (r"\x41\x7f", r"A\u{7f}"),
    (r"\u0041\u{41}\u{000041}\u{1F600}", r"AAA\u{1f600}"),
    (r"\uD83D\uDE00", r"\u{1f600}"),
    (r"\uD83D\uDE00\-", r"\u{1f600}\x2d"),
    (r"\uD83D", "[]"),
    (r"\uD83Da", "[]a"),
    (r"\uD83D\uD83D\uDE00", r"[]\u{1f600}"),
    (r"\u{D83D}\u{DE00}", "[][]"),
    ("/é/", r"/\u{e9}/"),
    ("a/b", "a/b"),
    // Escapes of Annex B.
    (r"\-\_\a\é", r"\x2d_a\u{e9}"),
    (r"\8\9", "89"),
    (r"\1", r"\u{1}"),
    (r"\12\377\400\08", r"\u{a}\u{ff} 0\u{0}8"),
    (r"\00\01\007", r"\u{0}\u{1}\u{7}"),
    (r"(a)\2", r"a\u{2}"),
    (r"\1\k", r"\u{1}k"),
    (r"\k<a>", "k<a>"),
    (r"\c", r"\\c"),
    (r"\c*", r"\\c*"),
    (r"\c1", r"\\c1"),
    (r"\c\-", r"\\c\x2d"),
    (r"\x\xg1\x1", "xxg1x1"),
    (r"\u\u12\u{61}\-", r"uu12u{61}\x2d"),
    (r"\p{L}\-", r"p\{L\}\x2d"),
    (r"\p{IsGreek}", r"p\{IsGreek\}"),
    (r"\p{script=Greek}", r"p\{script=Greek\}"),
    (r"\p{Letter_}\P", r"p\{Letter_\}P"),
    (r"\A\Z\z", "AZz"),
    (r"\@\#", "@#"),
    // Classes.
    ("[]", "[]"),
    ("[^]", "[^]"),
    ("[a]", "a"),
    ("[a-c]", "[a-c]"),
    ("[^a-c]", "[^a-c]"),
    ("[abc-]", r"[\x2da-c]"),
    ("[-a]", r"[\x2da]"),
    ("[a-b-c]", r"[\x2da-c]"),
    ("[--a]", r"[\x2d-a]"),
    ("[a^]", r"[\^a]"),
    ("[[]", r"\["),
    ("[[a]]", r"[\[a]\]"),
    (r"[\]a]", r"[\]a]"),
    ("[.*+?(){}|$]", r"[\$\(-\+\.\?\{-\}]"),
    (r"[\b]", r"\u{8}"),
    (r"[\-a]", r"[\x2da]"),
    (r"[\d_]", "[0-9_]"),
    (r"[\D]", r"\D"),
    (r"[\s\S]", "[^]"),
    (r"[\w-.]", r"[\x2d\.0-9A-Z_a-z]"),
    (r"[a-\d]", r"[\x2d0-9a]"),
    (r"[\w-a-z]", r"[\x2d0-9A-Z_a-z]"),
    (r"[\c]", r"[\\c]"),
    (r"[\c1\c_]", r"[\u{11}\u{1f}]"),
    (r"[\cA]", r"\u{1}"),
    (r"[\1\12\8]", r"[\u{1}\u{a}8]"),
    (r"[\B\k]", "[Bk]"),
    (r"[\uD83D\uDE00-\uD83D\uDE02]", r"[\u{1f600}-\u{1f602}]"),
    (r"[\uD800-\uDFFF]", "[]"),
    (r"[^\uD800-\uDFFF]", "[^]"),
    (r"[\uD7FF-\uE000]", r"[\u{d7ff}-\u{e000}]"),
    (r"[\u{1F600}-\u{1F602}]", r"[\u{1f600}-\u{1f602}]"),
    ("[😀-😂]", r"[\u{1f600}-\u{1f602}]"),
    (r"[\0-\x1f]", r"[\u{0}-\u{1f}]"),
    (r"[\p{Nl}\P{L}\p{L}]", "[^]"),
    (r"\P{Any}", "[]"),
    (r"\p{Cs}", "[]"),
    (r"\p{ASCII}", r"[\u{0}-\u{7f}]"),
    (r"\p{AHex}", "[0-9A-Fa-f]"),
    (r"\p{Zl}", r"\u{2028}"),
    (r"\p{Zs}", r"[ \u{a0}\u{1680}\u{2000}-\u{200a}\u{202f}\u{205f}\u{3000}]"),
    // The rest.
    ("^a$", "^a$"),
    (r"\ba\B", r"\ba\B"),
    (".", "."),
    (r"\d\D\w\W\s\S", r"\d\D\w\W\s\S"),
    ("a.b", "a.b"),
    (r"(?=^)\b$", r"(?=^)\b$"),
];

/// Where `regress` 0.11 reads something else than ECMA-262 does.
const NOT_REGRESS: [&str; 2] = [
    // It takes braces for an escape without `u`, too, where `u` is a letter and `{61}` its quantifier.
    r"\u\u12\u{61}\-",
    // It eats what follows an `x` that is no escape.
    r"\x\xg1\x1",
];

#[test]
fn expressions_are_read_and_printed() {
    let mut wrong = Vec::new();
    for (expression, printed) in READ {
        let pattern = parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        if pattern.to_string() != printed {
            wrong.push(format!("{expression}: {pattern}, not {printed}"));
        }
        let is_same = agrees(expression, TEXTS);
        if is_same.is_err() != NOT_REGRESS.contains(&expression) {
            wrong.push(format!("{expression}: {is_same:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is refused: why, and where.
const REFUSED: [(&str, PatternErrorKind, usize, &str); 61] = {
    use PatternErrorKind::{Limit, Syntax, Unsupported};
    [
        ("(", Syntax, 0, "this group is never closed"),
        ("a(b(c)", Syntax, 1, "this group is never closed"),
        (")", Syntax, 0, "there is no open group to close"),
        ("a)", Syntax, 1, "there is no open group to close"),
        ("[", Syntax, 0, "this class is never closed"),
        ("[a-", Syntax, 0, "this class is never closed"),
        ("a[^", Syntax, 1, "this class is never closed"),
        ("[z-a]", Syntax, 2, "the ends of this range are out of order"),
        (r"[\uDE00-\uD83D]", Syntax, 7, "the ends of this range are out of order"),
        ("*", Syntax, 0, "there is nothing to repeat"),
        ("a**", Syntax, 2, "there is nothing to repeat"),
        ("a***", Syntax, 2, ""),
        ("a{2}{3}", Syntax, 4, "there is nothing to repeat"),
        ("(?:*)", Syntax, 3, ""),
        ("a|*", Syntax, 2, ""),
        ("^*", Syntax, 1, ""),
        ("$?", Syntax, 1, ""),
        ("{1}", Syntax, 0, ""),
        ("^{1,}", Syntax, 1, ""),
        ("(?!a)**", Syntax, 5, ""),
        (r"\b+", Syntax, 2, "there is nothing to repeat"),
        ("(?<=a)*", Syntax, 6, "there is nothing to repeat"),
        ("a{2,1}", Syntax, 1, "the bounds of this repetition are out of order"),
        (r"a{2,1}\-", Syntax, 1, "the bounds of this repetition are out of order"),
        ("\\", Syntax, 0, "nothing follows the backslash"),
        (r"[a\", Syntax, 2, ""),
        ("(?a)", Syntax, 0, "`(?` is followed by"),
        ("(?", Syntax, 0, ""),
        ("(?i)abc", Syntax, 0, ""),
        ("(?ii:a)", Syntax, 0, ""),
        ("(?i-i:a)", Syntax, 0, ""),
        ("(?-:a)", Syntax, 0, ""),
        ("(?P<n>a)", Syntax, 0, ""),
        ("(?<>a)", Syntax, 3, "this is no name of a group"),
        ("(?<1>a)", Syntax, 3, ""),
        ("(?<a-b>a)", Syntax, 3, ""),
        ("(?<n", Syntax, 3, ""),
        ("(?<n>a)(?<n>b)", Syntax, 7, "two groups are named \"n\""),
        ("(?<n>(?<n>b))", Syntax, 0, "two groups are named"),
        ("(?:(?<n>a)|b)(?<n>b)", Syntax, 13, "two groups are named"),
        (r"(?<n>a)\k<m>", Syntax, 7, "no group is named \"m\""),
        (r"(?<n>a)\k", Syntax, 7, "`\\k` is followed by"),
        (r"(?<n>a)[\k]", Syntax, 8, "`\\k` has no meaning here"),
        // The first of two syntax errors is told.
        (r"\-(", Syntax, 0, "`\\-` has no meaning here"),
        (r"\p{Foo}(", Syntax, 0, "there is no property `Foo`"),
        (r"\p(", Syntax, 0, "`\\p` is followed by"),
        (r"\8(", Syntax, 0, "there is no group 8"),
        ("[é\\a](", Syntax, 3, "`\\a` has no meaning here"),
        // What is left out.
        (r"(a)\1", Unsupported, 3, "back-references"),
        (r"\1(a)", Unsupported, 0, "back-references"),
        (r"\-(a)\1", Unsupported, 5, "back-references"),
        (r"(?<n>a)\k<n>", Unsupported, 7, "back-references"),
        (r"\k<n>(?<n>a)\-", Unsupported, 0, "back-references"),
        ("a(?<=a)b", Unsupported, 1, "look-behind"),
        ("a(?<!a|b)b{", Unsupported, 1, "look-behind"),
        ("(?i:a)", Unsupported, 0, "modifiers"),
        ("(?ms-i:a)", Unsupported, 0, "modifiers"),
        (r"\p{CWKCF}", Unsupported, 0, "there is no table of the property `CWKCF`"),
        // Limits.
        ("a{4294967296}", Limit, 1, "counts are at most 4294967295"),
        ("a{1,99999999999999999999999}", Limit, 1, "counts are at most 4294967295"),
        ("x(a{99999999999999999999999,})", Limit, 3, ""),
    ]
};

#[test]
fn what_is_no_pattern_is_refused() {
    let mut wrong = Vec::new();
    for (expression, kind, offset, message) in REFUSED {
        let error = parse(expression).expect_err(expression);
        let is_right =
            (error.kind(), error.offset()) == (kind, offset) && error.to_string().starts_with(message);
        let is_refused = regress(expression).is_none();
        // `regress` repeats `\b`, and looks for no `\k` in classes.
        let is_known = [r"\b+", r"(?<n>a)[\k]"].contains(&expression);
        if !is_right || is_refused != (kind == PatternErrorKind::Syntax && !is_known) {
            wrong.push(format!("{expression}: {error}; refused by regress: {is_refused}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn limits_are_limits() {
    let kind = |expression: &str, depth, size| {
        pattern::parse_within(expression, Limits { depth, size }).map_err(|error| error.kind()).err()
    };
    for (opened, closed) in [("(", ")"), ("(?=", ")"), ("(?:a|", ")*")] {
        let nested = |n| format!("{}{}", opened.repeat(n), closed.repeat(n));
        assert_eq!(kind(&nested(3), 3, 100), None);
        assert_eq!(kind(&nested(4), 3, 100), Some(PatternErrorKind::Limit));
        parse(&nested(250)).unwrap();
        assert_eq!(parse(&nested(251)).unwrap_err().kind(), PatternErrorKind::Limit);
        assert_eq!(parse(&nested(1_000_000)).unwrap_err().kind(), PatternErrorKind::Limit);
    }
    for expression in ["abc", "||||", "a*b*", "[abcd]", r"\s", "()()()()", r"[\d\d\d\d]"] {
        assert_eq!(kind(expression, 0, 0), Some(PatternErrorKind::Limit));
        assert_eq!(kind(expression, 1, 3), Some(PatternErrorKind::Limit), "{expression}");
        assert_eq!(kind(expression, 1, 20), None, "{expression}");
    }
    assert_eq!(parse(&r"\p{L}".repeat(100_000)).unwrap_err().kind(), PatternErrorKind::Limit);
    assert_eq!(
        parse(&format!("[{}]", r"\p{L}".repeat(100_000))).unwrap_err().kind(),
        PatternErrorKind::Limit
    );
}

/// Pieces of expressions, of both modes and of none.
const PIECES: [&str; 84] = [
    "a",
    "b",
    "c",
    "-",
    "_",
    "1",
    "2",
    ",",
    "é",
    "😀",
    " ",
    "\n",
    "ab",
    "a-b",
    "<n>",
    "k",
    "u",
    "x",
    "/",
    "=",
    "!",
    ":",
    "(",
    "(",
    "(?:",
    "(?=",
    "(?!",
    "(?<n>",
    "(?<m>",
    "(?<=",
    "(?<!",
    "(?s:",
    ")",
    ")",
    ")",
    ")",
    "|",
    "|",
    "*",
    "+",
    "?",
    "*?",
    "{2}",
    "{1,2}",
    "{0,1}?",
    "{1,}",
    "{2,1}",
    "{",
    "}",
    "[",
    "[",
    "[^",
    "]",
    "]",
    "]",
    "[a-c]",
    "[^b]",
    "[]",
    "[^]",
    ".",
    "^",
    "$",
    r"\b",
    r"\B",
    r"\d",
    r"\W",
    r"\s",
    r"\S",
    r"\-",
    r"\_",
    r"\1",
    r"\2",
    r"\12",
    r"\0",
    r"\k<n>",
    r"\c",
    r"\cA",
    r"\x61",
    r"\u0061",
    r"\uD83D\uDE00",
    r"\p{L}",
    r"\P{Lu}",
    r"\/",
    "\\",
];

const LETTERS: [&str; 16] =
    ["a", "b", "c", "A", "é", "😀", "\n", "-", "_", "1", "2", "{", "\\", " ", "\u{1}", "\u{2028}"];

fn draw(random: &mut Random, pieces: &[&str], longest: usize) -> String {
    (0..random.below(longest + 1)).map(|_| *random.choose(pieces)).collect()
}

/// Whether `regress` is known to read the expression differently: it repeats `\b`, looks for no `\k` in
/// classes, and eats what follows an `x` that is no escape.
fn is_known(expression: &str) -> bool {
    let repeats =
        |boundary| expression.split(boundary).skip(1).any(|rest| rest.starts_with(['*', '+', '?', '{']));
    let is_hex =
        |rest: &str| rest.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let has_x = expression.split(r"\x").skip(1).any(|rest| !is_hex(rest));
    has_x || repeats(r"\b") || repeats(r"\B") || (expression.contains(r"\k") && expression.contains('['))
}

#[test]
fn random_expressions_mean_what_regress_says() {
    let mut random = Random::new(0xecca);
    let (mut n_read, mut n_refused, mut n_left_out) = (0, 0, 0);
    for _ in 0..150_000 {
        let expression = draw(&mut random, &PIECES, 9);
        if is_known(&expression) {
            continue;
        }
        let strict = pattern::parse_unicode(&expression, Limits::default()).map_err(|error| error.kind());
        let is_refused = regress::Regex::with_flags(&expression, "u").is_err();
        assert_eq!(strict.err() == Some(PatternErrorKind::Syntax), is_refused, "{expression:?} with u");
        match parse(&expression) {
            Ok(_) => {
                n_read += 1;
                let texts: Vec<String> = (0..8).map(|_| draw(&mut random, &LETTERS, 6)).collect();
                agrees(&expression, texts.iter().map(String::as_str)).unwrap();
            }
            Err(error) => {
                let is_syntax = error.kind() == PatternErrorKind::Syntax;
                assert_eq!(regress(&expression).is_none(), is_syntax, "{expression:?}: {error}");
                *if is_syntax { &mut n_refused } else { &mut n_left_out } += 1;
            }
        }
    }
    eprintln!("{n_read} read, {n_refused} refused, {n_left_out} left out");
    assert!(n_read > 10_000 && n_refused > 10_000 && n_left_out > 300);
}

/// The patterns of a schema, and the strings in a value.
fn collect(value: &Value, patterns: &mut BTreeSet<String>, strings: &mut BTreeSet<String>) {
    match value {
        Value::String(string) => drop(strings.insert(string.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, patterns, strings)),
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("pattern", Value::String(pattern)) => drop(patterns.insert(pattern.clone())),
                    ("patternProperties", Value::Object(members)) => patterns.extend(members.keys().cloned()),
                    _ => {}
                }
                strings.insert(key.clone());
                collect(value, patterns, strings);
            }
        }
        _ => {}
    }
}

/// The patterns of all schemas of JSONSchemaBench, each with strings of the instances of its schemas.
fn benchmark() -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut patterns: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in schema_bench::lines()?.filter(|line| line.contains("\"pattern")) {
        let case: Value = serde_json::from_str(&line).unwrap();
        let (mut found, mut strings, mut ignored) = Default::default();
        collect(&case["schema"], &mut found, &mut ignored);
        collect(&case["tests"], &mut ignored, &mut strings);
        for pattern in found {
            patterns.entry(pattern).or_default().extend(strings.iter().cloned());
        }
    }
    Some(patterns)
}

/// A character replaced, removed or put in.
fn mutate(random: &mut Random, text: &str, letters: &[char]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    let at = random.below(text.len() + 1);
    let end = (at + random.below(2)).min(text.len());
    let new = random.chance(70).then(|| *random.choose(letters));
    text.splice(at..end, new);
    text.into_iter().collect()
}

#[test]
fn patterns_of_the_benchmark_mean_what_regress_says() {
    let Some(patterns) = benchmark() else { return };
    let mut random = Random::new(24);
    let (mut n_refused, mut n_matches, mut n_texts) = (0, 0, 0);
    for (expression, strings) in &patterns {
        let Some(theirs) = regress(expression) else { panic!("{expression:?} is refused by regress") };
        let ours = match parse(expression) {
            Ok(ours) => ours,
            Err(error) => {
                assert_eq!(error.kind(), PatternErrorKind::Unsupported, "{expression:?}: {error}");
                n_refused += 1;
                continue;
            }
        };
        let letters: Vec<char> = expression.chars().chain("aZ0 -_./é😀\n".chars()).collect();
        let mut texts: Vec<String> = strings.iter().filter(|text| text.len() <= 40).cloned().collect();
        random.shuffle(&mut texts);
        // Those that match, first.
        texts.sort_by_key(|text| theirs.find(text).is_none());
        texts.truncate(12);
        texts.push(String::new());
        for _ in 0..40 {
            let text = random.choose(&texts).clone();
            texts.push(mutate(&mut random, &text, &letters));
        }
        for text in texts {
            let is_match = theirs.find(&text).is_some();
            assert_eq!(
                crate::matcher::is_match(&ours, &text),
                is_match,
                "{expression:?} as {ours:?} on {text:?}"
            );
            n_matches += usize::from(is_match);
            n_texts += 1;
        }
    }
    eprintln!("{} patterns, {n_refused} refused; {n_matches} of {n_texts} texts match", patterns.len());
    assert!(patterns.len() > 1_900 && n_refused == 1 && n_matches > 10_000);
}
