//! Budgets of tokens on schemas: held against all continuations in breadth, and measured on real schemas.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn (default 60).

use std::collections::BTreeSet;
use std::sync::Arc;

use anygram_bits::Random;
use anygram_grammar::lark::{LarkOptions, parse_with_schemas};
use anygram_json_schema::lower::Whitespace;
use anygram_json_schema::pieces::Escapes;
use anygram_json_schema::{Options, embedded, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Limits, Matcher};
use anygram_schema_oracle::generate::Generator;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

/// Texts of one search in breadth.
const TEXTS: usize = 1_500;
/// Tokens of the longest continuation that is looked for in breadth.
const DEEPEST: u32 = 4;

/// Few tokens of one byte, or all; and some that end and begin pieces.
fn vocabulary(all_bytes: bool) -> Vocabulary {
    let few = b"{}[]\":,-.01eab\\tru";
    let single = (b' '..=b'~').filter(|byte| all_bytes || few.contains(byte));
    let single = single.map(|byte| char::from(byte).to_string());
    let longer = [
        "\",\"", "\":", "{\"", "[\"", "\"]", "],[", "ab", "\"a\"", ",\"a\":1", "},{", "1,1", ",1", "true",
        "e}", "\":1,\"", "]]", "aa", "null", "false", "\"b\":", "{}", "[]", "\"\"", ":\"", "\"}", "\"a\":\"",
        "0}",
    ];
    let all: Vec<String> = single
        .chain(longer.map(str::to_owned))
        .chain([String::new()])
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let eos = vec![all.iter().position(String::is_empty).unwrap() as u32];
    Vocabulary::from_tokens(all, SpecialIds { eos, ..SpecialIds::default() }).unwrap()
}

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(40)
}

/// A random schema, and an output of it.
fn case(seed: u64, vocabulary: &Vocabulary) -> Option<(String, Matcher)> {
    let mut generator = Generator::new(seed);
    let schema = generator.schema(2);
    let schema = generator.spell(&schema);
    let grammar = grammar(&schema, &Options::default()).ok()?;
    let language = Language::new(grammar, &LanguageOptions::default()).ok()?;
    let matcher = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap().matcher().unwrap();
    Some((schema, matcher))
}

fn allowed(matcher: &Matcher, mask: &anygram_vocab::TokenMask) -> Vec<TokenId> {
    let eos = matcher.eos().to_vec();
    mask.iter().filter(|token| !eos.contains(token)).collect()
}

/// The length of a shortest continuation that makes a sentence, of all in breadth: `Ok(None)` if there is
/// none of at most [`DEEPEST`] tokens, and an error if there are too many.
fn by_breadth(matcher: &Matcher, n_texts: usize) -> Result<Option<u32>, ()> {
    let bytes = |matcher: &Matcher| {
        let vocabulary = matcher.constraint().vocabulary();
        matcher
            .tokens()
            .iter()
            .flat_map(|&token| vocabulary.bytes(token).unwrap().to_vec())
            .collect::<Vec<u8>>()
    };
    let mut level = vec![matcher.fork()];
    let mut n = 0;
    for depth in 0..=DEEPEST {
        if level.iter().any(Matcher::is_sentence) {
            return Ok(Some(depth));
        }
        let mut seen = BTreeSet::new();
        let mut next = Vec::new();
        for mut before in level.into_iter().filter(|_| depth < DEEPEST) {
            let mask = before.mask().unwrap();
            for token in allowed(&before, &mask) {
                let mut after = before.fork();
                after.advance(token).unwrap();
                if seen.insert(bytes(&after)) {
                    n += 1;
                    next.push(after);
                }
            }
            if n > n_texts {
                return Err(());
            }
        }
        level = next;
    }
    Ok(None)
}

#[test]
fn minimum_tokens_are_those_of_a_search_in_breadth() {
    let (mut n_asked, mut n_known) = (0, 0);
    for seed in seeds() {
        let vocabulary = vocabulary(seed % 2 == 1);
        let Some((schema, mut matcher)) = case(seed, &vocabulary) else { continue };
        let mut random = Random::new(seed);
        for _ in 0..6 {
            let text = || String::from_utf8_lossy(&vocabulary.decode(matcher.tokens()).unwrap()).into_owned();
            let context = format!("seed {seed}, {schema}, after {:?}", text());
            let found = matcher.minimum_tokens(DEEPEST).unwrap_or_else(|error| panic!("{context}: {error}"));
            n_asked += 1;
            if let Ok(expected) = by_breadth(&matcher, TEXTS) {
                n_known += 1;
                assert_eq!(found, expected, "{context}");
            }
            let mask = matcher.mask().unwrap();
            let tokens = allowed(&matcher, &mask);
            if tokens.is_empty() {
                break;
            }
            matcher.advance(*random.choose(&tokens)).unwrap();
        }
    }
    println!("{n_known} of {n_asked} compared");
    assert!(seeds().len() < 20 || n_known * 3 > n_asked);
}

#[test]
fn masks_within_budgets_close_and_are_those_of_minimum_costs() {
    let builtin = Vocabulary::builtin();
    let (mut n_walks, mut n_bits, mut n_limits) = (0, 0, 0);
    for seed in seeds() {
        let vocabulary = if seed % 3 == 0 { builtin.clone() } else { vocabulary(seed % 3 == 1) };
        let Some((schema, mut matcher)) = case(seed, &vocabulary) else { continue };
        let mut random = Random::new(seed);
        let Some(least) =
            matcher.minimum_tokens(200).unwrap_or_else(|error| panic!("{seed} {schema}: {error}"))
        else {
            continue;
        };
        let mut left = least + random.below(8) as u32;
        'walk: loop {
            let context = |matcher: &Matcher| {
                let text = vocabulary.decode(matcher.tokens()).unwrap();
                format!("seed {seed}, {schema}, {left} left after {:?}", String::from_utf8_lossy(&text))
            };
            let mask = match matcher.mask_with_budget(left) {
                Ok(mask) => mask,
                // Exact or a limit: some random schemas are too hard.
                Err(error) if error.limit().is_some() => {
                    n_limits += 1;
                    break;
                }
                Err(error) => panic!("{}: {error}", context(&matcher)),
            };
            let tokens = allowed(&matcher, &mask);
            assert!(!tokens.is_empty() || matcher.is_sentence(), "{}: stuck", context(&matcher));
            let plain = matcher.mask().unwrap();
            assert!(mask.is_subset(&plain));
            let plain = allowed(&matcher, &plain);
            for _ in 0..10.min(plain.len()) {
                let token = *random.choose(&plain);
                let mut after = matcher.fork();
                after.advance(token).unwrap();
                let fits = match left.checked_sub(1).map_or(Ok(None), |left| after.minimum_tokens(left)) {
                    Ok(least) => least.is_some(),
                    // The least takes more than whether something fits: `2010`, which is below 100 only with
                    // an exponent, has very many ways to get there.
                    Err(error) if error.limit().is_some() => {
                        n_limits += 1;
                        break 'walk;
                    }
                    Err(error) => panic!("{}: token {}: {error}", context(&matcher), token.0),
                };
                n_bits += 1;
                assert_eq!(mask.contains(token), fits, "{}: token {}", context(&matcher), token.0);
            }
            if tokens.is_empty() || matcher.is_sentence() && random.chance(30) {
                break;
            }
            matcher.advance(*random.choose(&tokens)).unwrap();
            left -= 1;
        }
        n_walks += 1;
    }
    println!("{n_walks} walks, {n_bits} bits, {n_limits} limits");
    assert!(n_limits * 20 <= n_walks.max(20));
}

/// All bytes, so that there are bounds that take no search, and longer tokens.
fn all_bytes(longer: &[&str]) -> Vocabulary {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let mut all: Vec<Vec<u8>> = bytes.chain(longer.iter().map(|text| text.as_bytes().to_vec())).collect();
    let eos = vec![all.len() as u32];
    all.push(Vec::new());
    Vocabulary::from_tokens(all, SpecialIds { eos, ..SpecialIds::default() }).unwrap()
}

/// Tokens with which few texts are spelled shorter than by bytes, and tokens with which many are.
const FEW: [&str; 1] = ["\"g\""];
const MANY: [&str; 13] =
    ["\",\"", "\":", "{\"", "\":1", "\":1,\"", "gh", "\"}", "],", "\":{\"", "},{\"", ",\"", "null", "\"g\","];

/// Schemas and texts, behind which what was written leaves few ways to go on.
fn crowded() -> Vec<(String, String)> {
    let members = |keys: &str| keys.chars().map(|key| format!("\"{key}\":1")).collect::<Vec<_>>().join(",");
    let one = r#""additionalProperties":{"const":1}"#;
    let mut all = Vec::new();
    for (pattern, keys) in [
        ("^[g-i]?$", "gh"),
        ("^[g-i]{0,2}$", "ghi"),
        ("^[g-z]{1,2}$", "ghijklmnopqrstuvwxyz"),
        ("^[g-z]{1,3}$", "ghijklmnopqrstuvwxyz"),
        ("^[^ ]*$", "ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ"),
        ("^(a|b|gg)$", "ab"),
    ] {
        let names = format!(r#""type":"object","propertyNames":{{"pattern":"{pattern}"}},{one}"#);
        all.push((format!("{{{names}}}"), format!("{{{}", members(keys))));
        all.push((
            format!(r#"{{{names},"minProperties":{}}}"#, keys.len() + 1),
            format!("{{{}", members(keys)),
        ));
        let deep = format!(r#"{{"type":"object","properties":{{"k":{{{names}}}}},"required":["k","l"]}}"#);
        all.push((deep, format!("{{\"x\":[{{{}}}],\"k\":{{{}", members("ab"), members(keys))));
    }
    // One letter is not enough for another key, nor is the end.
    let begun: Vec<String> = ('g'..='z').map(|letter| format!("\"g{letter}\":1")).collect();
    let names = format!(r#"{{"type":"object","propertyNames":{{"pattern":"^[g-z]{{1,3}}$"}},{one}}}"#);
    all.push((names, format!("{{\"g\":1,{},\"", begun.join(","))));
    // What repeats is read in one way alone.
    let (once, often) = (r#""uniqueItems":true"#, r#""minItems":5"#);
    let items = r#""type":"array","items":{"type":"string"}"#;
    all.push((format!(r#"{{"anyOf":[{{{items},{once}}},{{{items},{often}}}]}}"#), "[\"g\",".to_owned()));
    let items = r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"string","maxLength":2}}"#;
    all.push((items.to_owned(), r#"["g","h","#.to_owned()));
    let items = r#"{"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"g":{}}}}"#;
    all.push((items.to_owned(), r#"[{"g":1},{"h":[1]},{"g":"#.to_owned()));
    all
}

/// Where a budget is ample, that is known without a look at tokens; around its bound, and for all budgets,
/// masks are those of minimum costs.
#[test]
fn ample_budgets_are_those_of_minimum_costs() {
    // The greatest budget for which all tokens are compared.
    const MOST: u32 = 20;
    let vocabularies = [&FEW[..], &MANY].map(all_bytes);
    let (mut n_ample, mut n_bits, mut n_limits) = (0, 0, 0);
    let mut cases: Vec<(u64, String, Matcher)> = Vec::new();
    for seed in seeds() {
        let drawn = case(seed, &vocabularies[seed as usize % 2]);
        cases.extend(drawn.map(|(schema, matcher)| (seed, schema, matcher)));
    }
    for (schema, text) in crowded() {
        let language = grammar(&schema, &Options { whitespace: Whitespace::Compact, ..Options::default() });
        let language = Arc::new(Language::new(language.unwrap(), &LanguageOptions::default()).unwrap());
        for vocabulary in &vocabularies {
            let constraint = Constraint::new(language.clone(), vocabulary.clone()).unwrap();
            for seed in 0..3 {
                let mut matcher = constraint.matcher().unwrap();
                for byte in text.bytes() {
                    matcher.advance(TokenId::new(usize::from(byte))).unwrap();
                }
                cases.push((seed, schema.clone(), matcher));
            }
        }
    }
    for (seed, schema, mut matcher) in cases {
        let vocabulary = matcher.constraint().vocabulary().clone();
        let mut random = Random::new(seed);
        'walk: for _ in 0..6 {
            let plain = matcher.mask().unwrap();
            let tokens = allowed(&matcher, &plain);
            if tokens.is_empty() {
                break;
            }
            let text = vocabulary.decode(matcher.tokens()).unwrap();
            let context = format!("seed {seed}, {schema}, after {:?}", String::from_utf8_lossy(&text));
            let mut costs = Vec::new();
            for &token in &tokens {
                let mut after = matcher.fork();
                after.advance(token).unwrap();
                match after.minimum_tokens(MOST) {
                    Ok(cost) => costs.push((token, cost)),
                    Err(error) if error.limit().is_some() => n_limits += 1,
                    Err(error) => panic!("{context}: {error}"),
                }
            }
            for budget in (1..=MOST).chain([400]) {
                let mask = match matcher.mask_with_budget(budget) {
                    Ok(mask) => mask,
                    Err(error) if error.limit().is_some() => {
                        n_limits += 1;
                        break 'walk;
                    }
                    Err(error) => panic!("{context}: {error}"),
                };
                assert!(mask.is_subset(&plain), "{context}");
                let mut words = vec![0; mask.words().len()];
                if matcher.known_mask_with_budget_into(budget, &mut words).unwrap() {
                    assert_eq!(words, mask.words(), "{context}: looked up");
                    n_ample += 1;
                }
                for &(token, cost) in costs.iter().filter(|_| budget <= MOST) {
                    n_bits += 1;
                    let (display, fits) =
                        (vocabulary.display_token(token), cost.is_some_and(|cost| cost < budget));
                    assert_eq!(mask.contains(token), fits, "{context}: {display:?} within {budget}");
                }
            }
            matcher.advance(*random.choose(&tokens)).unwrap();
        }
    }
    println!("{n_ample} ample, {n_bits} bits, {n_limits} limits");
    assert!(seeds().len() < 20 || n_ample > 500 && n_bits > 50_000 && n_limits * 20 < n_bits);
}

/// Half a pair of escapes can be completed by each of 1,024 halves, which all lead to the same.
#[test]
fn halves_of_pairs_are_no_search() {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
    let mut options = LanguageOptions::default();
    // Told apart, the halves take 2 s, and more steps.
    options.limits.cost_steps = 1_000_000;
    let language = Language::new(grammar(schema, &Options::default()).unwrap(), &options);
    let vocabulary = Vocabulary::builtin();
    let constraint = Constraint::new(Arc::new(language.unwrap()), vocabulary.clone()).unwrap();
    for text in [r#"{"name":"\uD"#, r#"{"name":"\ud83"#, r#"{"name":"\ud83d"#, r#"{"name":"\"#] {
        let mut matcher = constraint.matcher().unwrap();
        for token in vocabulary.encode(text).unwrap() {
            matcher.advance(token).unwrap();
        }
        let least = matcher.minimum_tokens(100).unwrap().unwrap();
        for budget in 0..40 {
            let mask = matcher.mask_with_budget(budget).unwrap();
            assert_eq!(allowed(&matcher, &mask).is_empty(), budget < least, "{text} {budget} {least}");
        }
    }
}

/// Schemas whose keys or items can run out, or have to be chosen well, each with tokens of its own beside
/// single bytes.
const SCARCE: &[(&str, &[&str])] = &[
    (
        r#"{"type":"object","propertyNames":{"pattern":"^[ab]{1,2}$"},"minProperties":3,
            "additionalProperties":{"const":1}}"#,
        &["{", "}", ",", "\"", "a", "b", "\":1", ",\"a\":1", "{\"a\":1", "\"b", "\"b\":1,\"", "a\":1,\"a"],
    ),
    (
        r#"{"type":"object","minProperties":2,"properties":{"k":{"type":"object","minProperties":1,
            "additionalProperties":{"const":1}}},"required":["k"],"additionalProperties":{"const":1}}"#,
        &["{", "}", ",", "\"", "k", "a", "\":1", "\":", "\":{\"a\":1},\"a", "{\"a\":1,\"k\":", "a\":1"],
    ),
    (
        r#"{"type":"array","uniqueItems":true,"minItems":3,"items":{"type":["boolean","null"]}}"#,
        &["[", "]", ",", "true", "false", "null", "[true,", "true,true", ",true]", "false,null]", "null,"],
    ),
    (
        r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"integer"}}"#,
        &["[", "]", ",", "7", "8", "1", "0", "7,7", ",7]", "[7,", "70", "0,7", "7]", "e0", ".0", "e-1"],
    ),
    (
        r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"string","maxLength":1}}"#,
        &[
            "[", "]", ",", "\"", "a", "\"\"", "\"a\"", ",\"\"]", "\",\"", "a\",\"a", "\"a\",\"", "\"]",
            "\\u0061",
        ],
    ),
    (
        r#"{"type":"array","uniqueItems":true,"minItems":2,"maxItems":3,"items":{"type":"array",
            "uniqueItems":true,"maxItems":1,"items":{"type":"boolean"}}}"#,
        &["[", "]", ",", "true", "false", "[]", "[[]", ",[]", "[true]", ",[true]]", "[],[true", "]]"],
    ),
    (
        r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"object","minProperties":1,
            "additionalProperties":{"type":"boolean"},"propertyNames":{"pattern":"^[ab]$"}}}"#,
        &[
            "[",
            "]",
            ",",
            "{",
            "}",
            "\"",
            "a",
            "b",
            "\":",
            "true",
            "false",
            "{\"a\":true}",
            ",{\"a\":true}]",
            "},{\"",
            "a\":true}]",
            "\":true,\"a",
        ],
    ),
    (
        r#"{"type":"array","minItems":1,"items":{"uniqueItems":true,"type":"array","minItems":2,
            "items":{"type":"boolean"}}}"#,
        &["[", "]", ",", "true", "false", "[[", "true,true", ",true]", "]]", "true],[true", "true,false"],
    ),
];

fn small(tokens: &[&str]) -> Vocabulary {
    let all: BTreeSet<String> = tokens.iter().map(|&token| token.to_owned()).chain([String::new()]).collect();
    let eos = vec![0];
    Vocabulary::from_tokens(all.into_iter().collect::<Vec<_>>(), SpecialIds { eos, ..SpecialIds::default() })
        .unwrap()
}

/// Compares minimum costs and masks within budgets with all continuations, along a random output. Returns how
/// many figures were compared.
fn compare(what: &str, mut matcher: Matcher, seed: u64, n_texts: usize) -> usize {
    let vocabulary = matcher.constraint().vocabulary().clone();
    let mut random = Random::new(seed);
    let mut n_compared = 0;
    for _ in 0..10 {
        let text = String::from_utf8_lossy(&vocabulary.decode(matcher.tokens()).unwrap()).into_owned();
        let context = format!("{what}, seed {seed}, after {text:?}");
        let least = matcher.minimum_tokens(DEEPEST).unwrap_or_else(|error| panic!("{context}: {error}"));
        if let Ok(expected) = by_breadth(&matcher, n_texts) {
            n_compared += 1;
            assert_eq!(least, expected, "{context}");
        }
        let plain = matcher.mask().unwrap();
        let tokens = allowed(&matcher, &plain);
        let mut costs = Vec::new();
        for &token in &tokens {
            let mut after = matcher.fork();
            after.advance(token).unwrap();
            costs.extend(by_breadth(&after, n_texts).map(|cost| (token, cost)));
        }
        for budget in 0..=DEEPEST + 1 {
            let mask = matcher.mask_with_budget(budget).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(mask.is_subset(&plain), "{context}");
            for &(token, cost) in &costs {
                let fits = cost.is_some_and(|cost| cost < budget);
                let display = vocabulary.display_token(token);
                assert_eq!(
                    mask.contains(token),
                    fits,
                    "{context}: {display:?} within {budget}, takes {cost:?}"
                );
                n_compared += 1;
            }
            let mut words = vec![0; mask.words().len()];
            if matcher.known_mask_with_budget_into(budget, &mut words).unwrap() {
                assert_eq!(words, mask.words(), "{context}: looked up");
            }
        }
        // Within an ample budget everything fits that can go on at all.
        let ample = matcher.mask_with_budget(300).unwrap_or_else(|error| panic!("{context}: {error}"));
        for &(token, cost) in &costs {
            assert!(
                cost.is_none() || ample.contains(token),
                "{context}: {}",
                vocabulary.display_token(token)
            );
        }
        if tokens.is_empty() {
            break;
        }
        matcher.advance(*random.choose(&tokens)).unwrap();
    }
    n_compared
}

#[test]
fn budgets_know_what_was_written() {
    let n_texts = 3_000;
    let mut n_compared = 0;
    for (schema, tokens) in SCARCE {
        for compact in [true, false] {
            let mut options = Options { escapes: Escapes::Any, ..Options::default() };
            if compact {
                options.whitespace = Whitespace::Compact;
            }
            let language = Language::new(grammar(schema, &options).unwrap(), &LanguageOptions::default());
            let constraint = Constraint::new(Arc::new(language.unwrap()), small(tokens)).unwrap();
            for seed in 0..seeds().len().div_ceil(6) as u64 {
                n_compared += compare(schema, constraint.matcher().unwrap(), seed, n_texts);
            }
        }
    }
    assert!(n_compared > 1_000, "{n_compared}");
}

/// Grammars around a schema, and the tokens that they add.
const HOSTS: &[(&str, &[&str])] = &[
    ("start: \"<\" %json S \">\"", &["<", ">", "<[", "]>", "<{\"", "}>"]),
    ("start: %json S | /[^x]{0,3}x/", &["x", "]x"]),
    ("start: \"[\" (%json S \";\")+ \"]\" | /\\[+/ \"x\"", &[";", "[[", "];", "];]", "x", "};]"]),
    ("start: (%json S | \"[\" | \"]\")+ \"x\"", &["x", "[[", "]x", "}x"]),
    ("start: %json S\n%ignore /;/", &[";", "[;", ",;"]),
];

#[test]
fn budgets_know_what_was_written_within_other_texts() {
    let n_texts = 1_000;
    let mut n_compared = 0;
    let options = Options { whitespace: Whitespace::Compact, ..Options::default() };
    for (at, (host, more)) in HOSTS.iter().enumerate() {
        for (schema, tokens) in SCARCE {
            let lark = host.replace('S', &schema.replace('\n', " "));
            let schemas = |schema: &str| Ok(embedded(schema, &options).unwrap());
            let grammar = parse_with_schemas(&lark, &LarkOptions::default(), &schemas).unwrap();
            let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
            let tokens: Vec<&str> = tokens.iter().chain(*more).copied().collect();
            let constraint = Constraint::new(Arc::new(language), small(&tokens)).unwrap();
            for seed in 0..seeds().len().div_ceil(30) as u64 {
                n_compared += compare(&lark, constraint.matcher().unwrap(), seed + at as u64, n_texts);
            }
        }
    }
    assert!(n_compared > 1_000, "{n_compared}");
}

/// Many arrays and objects are open, and the budget is about what their ends take: it takes few steps to find
/// out which tokens are within it.
#[test]
fn budgets_of_nested_texts() {
    // More keys than are gone through, so bounds are loose.
    let keys = "abetru".chars().flat_map(|a| "abetru01".chars().map(move |b| format!("{a}{b}")));
    let keys: Vec<String> = keys.map(|key| format!(r##""{key}":{{"$ref":"#"}}"##)).collect();
    let wide =
        format!(r#"{{"type":"object","additionalProperties":false,"properties":{{{}}}}}"#, keys.join(","));
    let limits = Limits { cost_steps: 10_000_000, ..Limits::default() };
    for (schema, open, depth, least) in [
        // Two are ended by a token.
        ("{}", "[", 60, 30),
        (&wide, "{\"aa\":", 5, 6),
        (r#"{"uniqueItems":true}"#, "[", 41, 21),
        // One by a token, the first with a value.
        ("{}", "{\"a\":", 30, 30),
        (
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","required":["a"],
                "additionalProperties":false,
                "properties":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}}}"##,
            "{\"a\":[",
            20,
            40,
        ),
    ] {
        let grammar = grammar(schema, &Options { whitespace: Whitespace::Compact, ..Options::default() });
        let language =
            Language::new(grammar.unwrap(), &LanguageOptions { limits, ..LanguageOptions::default() });
        let constraint = Constraint::new(Arc::new(language.unwrap()), vocabulary(false)).unwrap();
        let mut matcher = constraint.matcher().unwrap();
        matcher.advance_text(open.repeat(depth)).unwrap();
        assert_eq!(matcher.minimum_tokens(1_000).unwrap(), Some(least), "{schema}");
        for budget in [1, least / 2, least - 1, least, least + 1, least + 2] {
            let mask = matcher.mask_with_budget(budget).unwrap();
            let all = matcher.mask().unwrap();
            for token in allowed(&matcher, &all) {
                let mut next = matcher.fork();
                next.advance(token).unwrap();
                let fits = next.minimum_tokens(budget - 1).unwrap().is_some();
                assert_eq!(mask.contains(token), fits, "{schema}: {budget}, {token:?}");
            }
            assert_eq!(mask.is_empty(), budget < least, "{schema}: {budget}");
        }
    }
}
