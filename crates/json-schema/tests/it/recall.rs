//! Keys and items that have to differ: what the memory beside the parser adds, held against all texts.

use std::collections::BTreeSet;
use std::sync::Arc;

use anygram_bits::Random;
use anygram_json_schema::lower::Whitespace;
use anygram_json_schema::pieces::Escapes;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Matcher};
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

/// Tokens of one byte for printable characters, and some longer ones that end and begin pieces.
pub fn vocabulary() -> Vocabulary {
    let single = (b' '..=b'~').map(|byte| char::from(byte).to_string());
    let longer = [
        "\",\"",
        "\":",
        "{\"",
        "[\"",
        "\"]",
        "],[",
        "ab",
        "a\",\"b",
        "\"a\"",
        ",\"a\":1",
        "},{",
        "1,1",
        ",1",
        "0,",
        "\\u0061",
        "\\u00",
        "true",
        "e}",
        "null,null",
        "\":1,\"",
        "]]",
        "aa",
    ];
    let all = single.chain(longer.map(str::to_owned)).chain([String::new()]);
    let all: Vec<String> = all.collect();
    let eos = vec![all.len() as u32 - 1];
    Vocabulary::from_tokens(all, SpecialIds { eos, ..SpecialIds::default() }).unwrap()
}

fn constraint(schema: &str, options: &Options) -> Constraint {
    let grammar = grammar(schema, options).unwrap_or_else(|refusal| panic!("{schema}: {refusal}"));
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    Constraint::new(Arc::new(language), vocabulary()).unwrap()
}

fn reads(constraint: &Constraint, text: &str) -> (bool, usize) {
    let reading = constraint.language().read(text.as_bytes()).unwrap();
    (reading.is_sentence, reading.length)
}

#[test]
fn what_repeats_is_refused_where_nothing_else_can_follow() {
    let any = Options::default();
    // (schema, sentences, (text, how much of it is viable))
    type Case = (&'static str, &'static [&'static str], &'static [(&'static str, usize)]);
    let cases: &[Case] = &[
        (
            "{}",
            &[r#"{"a":1,"b":{"a":2}}"#, "[1,1]", r#"{"":1," ":2}"#],
            &[
                (r#"{"a":1,"a":2}"#, 9),
                (r#"{"a":1,"\u0061":2}"#, 14),
                (r#"[{"x":[{"y":1,"y"#, 16),
                (r#"[{"x":[{"y":1,"y""#, 16),
                (r#"{"😀":1,"\ud83d\ude00":2}"#, 23),
            ],
        ),
        (
            r#"{"type":"array","uniqueItems":true}"#,
            &[
                "[]",
                "[1]",
                "[1,2]",
                r#"[1,"1",true,null,[1],{"a":1}]"#,
                "[[1,2],[2,1]]",
                "[1,12,123]",
                "[1,[1,1]]",
            ],
            &[
                ("[1,1]", 4),
                ("[1,1.0]", 6),
                ("[1,10e-1]", 8),
                ("[true,true", 6),
                (r#"["a","a""#, 7),
                ("[[1,2],[1,2]]", 11),
                (r#"[{"a":1,"b":2},{"b":2,"a":1}]"#, 27),
                (r#"[{"a":1,"b":2},{"b":2.0 , "a":1 }]"#, 32),
                ("[null, null", 7),
                ("[{},{}", 5),
                ("[[],[]", 5),
            ],
        ),
        // Few values: the automaton of the array knows them.
        (
            r#"{"type":"array","uniqueItems":true,"items":{"enum":["a","b",1]},"minItems":2}"#,
            &[r#"["a","b"]"#, r#"[1,"a","b"]"#],
            &[(r#"["a"]"#, 4), (r#"["a","a"#, 6), ("[1,1", 3), (r#"["a","b",1,"#, 10)],
        ),
        (
            r#"{"uniqueItems":true,"prefixItems":[{"type":"boolean"},{"enum":[true]}],"items":{"type":"null"},
                "type":"array","minItems":2}"#,
            &["[false,true]", "[false,true,null]"],
            &[("[true", 1), ("[false,true,null,", 16)],
        ),
        // Many, of which the memory knows.
        (
            r#"{"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":3}}"#,
            &[r#"["abc","abd"]"#, r#"["abc","ab"]"#],
            &[(r#"["abc","abc"#, 10), (r#"["abc","ab\u0063"#, 15)],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":999}}"#,
            &["[1,10]", "[999,99]", "[9,90]"],
            &[("[999,999", 7), ("[1,1,", 4), ("[10,1e1", 6), ("[10,100e-", 9)],
        ),
        // What is forced is foreseen.
        (
            r#"{"type":"array","uniqueItems":true,"items":{"type":"object","additionalProperties":false,
                "required":["id","flag"],"properties":{"id":{"type":"integer"},"flag":{"type":"boolean"}}}}"#,
            &[
                r#"[{"id":1,"flag":true},{"id":1,"flag":false}]"#,
                r#"[{"id":1,"flag":true},{"flag":true,"id":2}]"#,
            ],
            &[
                (r#"[{"id":1,"flag":true},{"id":1,"flag":t"#, 37),
                (r#"[{"flag":true,"id":1},{"flag":true,"id":1}"#, 41),
                (r#"[{"id":1,"flag":true},{"id":1,"flag":false},{"id":1,"#, 51),
                (r#"[{"id":1,"flag":true},{"flag":true,"id":1},"#, 41),
            ],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"type":"array","prefixItems":[{"type":"integer"},
                {"type":"boolean"}],"minItems":2,"items":false}}"#,
            &["[[1,true],[1,false],[12,true]]"],
            &[("[[1,true],[1,t", 13), ("[[1,true],[1,false],[1,", 22), ("[[1,true],[1,false],[1.0,", 24)],
        ),
        // Keys of a kind of which there are few.
        (
            r#"{"type":"object","propertyNames":{"pattern":"^[ab]$"},"minProperties":2}"#,
            &[r#"{"a":1,"b":2}"#],
            &[(r#"{"a":1}"#, 6), (r#"{"a":1,"a"#, 8), (r#"{"a":1,"b":2,"#, 12)],
        ),
        (
            r#"{"type":"object","propertyNames":{"pattern":"^[a-h]{3}$"}}"#,
            &[r#"{"abc":1,"abd":2}"#],
            &[(r#"{"abc":1,"abc"#, 12)],
        ),
        // One of two ways has to differ.
        (
            r#"{"type":"array","anyOf":[{"uniqueItems":true},{"maxItems":2}]}"#,
            &["[1,1]", "[1,2,3]"],
            &[("[1,1,", 4), ("[1,2,2]", 6)],
        ),
    ];
    for (schema, sentences, others) in cases {
        let constraint = constraint(schema, &any);
        for text in *sentences {
            assert_eq!(reads(&constraint, text), (true, text.len()), "{schema}: {text}");
        }
        for &(text, length) in *others {
            assert_eq!(reads(&constraint, text), (false, length), "{schema}: {text}");
        }
    }
}

/// Whether a text is viable by its matcher, and its mask the tokens that can be appended.
pub fn check_mask(matcher: &mut Matcher, what: &str) -> Vec<u32> {
    let vocabulary = matcher.constraint().vocabulary().clone();
    let text: String = matcher.tokens().iter().map(|&token| vocabulary.display_token(token)).collect();
    let mask = matcher.mask().unwrap_or_else(|error| panic!("{what}: {text}: {error}"));
    let mut allowed = Vec::new();
    for id in 0..vocabulary.len() as u32 {
        let token = anygram_vocab::TokenId(id);
        let is_allowed = matcher.validate(&[token]).unwrap() == 1;
        assert_eq!(
            mask.contains(token),
            is_allowed,
            "{what}: token {:?} after {:?}",
            vocabulary.display_token(token),
            text
        );
        if is_allowed {
            allowed.push(id);
        }
    }
    allowed
}

/// Random walks by masks: the mask has the tokens that can be appended, and something can always follow.
#[test]
fn walks_by_masks_never_get_stuck() {
    let schemas = [
        "{}",
        r#"{"type":"array","uniqueItems":true}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":2}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":300}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"array",
            "items":{"type":"boolean"},"maxItems":9}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"object","additionalProperties":false,
            "properties":{"a":{"type":"integer"},"b":{"type":"boolean"}}}}"#,
        r#"{"type":"object","propertyNames":{"pattern":"^[ab]{1,9}$"},
            "additionalProperties":{"type":"null"}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"uniqueItems":true,"items":{"maxLength":1}}}"#,
        r#"{"type":"array","anyOf":[{"uniqueItems":true},{"maxItems":2}],
            "items":{"type":["boolean","integer"]}}"#,
        r#"{"type":"array","uniqueItems":true,"contains":{"type":"boolean"},
            "items":{"type":["boolean","string"]}}"#,
    ];
    let seeds = anygram_testkit::random::seeds(6);
    let mut n_steps = 0;
    for schema in schemas {
        for whitespace in [Whitespace::Compact, Whitespace::Any] {
            let escapes = if whitespace == Whitespace::Any { Escapes::Any } else { Escapes::Needed };
            let constraint = constraint(schema, &Options { whitespace, escapes, ..Options::default() });
            for &seed in &seeds {
                let mut random = Random::new(seed);
                let mut matcher = constraint.matcher().unwrap();
                for _ in 0..24 {
                    let allowed = check_mask(&mut matcher, schema);
                    let display = |&token| constraint.vocabulary().display_token(token);
                    let text: String = matcher.tokens().iter().map(display).collect();
                    assert!(!allowed.is_empty(), "{schema}: {text}\n{}", matcher.dump());
                    // What repeats is what is looked for: few characters, and no blanks.
                    let display = |id: u32| constraint.vocabulary().display_token(anygram_vocab::TokenId(id));
                    let wanted = |&id: &u32| display(id).chars().all(|c| "[]{},:\"ab10truefalsn".contains(c));
                    let few: Vec<u32> = allowed.iter().copied().filter(wanted).collect();
                    let from = if few.is_empty() || random.chance(10) { &allowed } else { &few };
                    matcher.advance(anygram_vocab::TokenId(from[random.below(from.len())])).unwrap();
                    n_steps += 1;
                    if matcher.has_ended() {
                        break;
                    }
                }
            }
        }
    }
    assert!(n_steps > 1_000, "{n_steps}");
}

/// Every prefix of every value of small sets, written compactly: what is viable is a prefix of one.
#[test]
fn viable_is_what_some_value_begins_with() {
    let letters = ["a", "b", "c", "d", "e", "f", "g"];
    let mut words: Vec<String> = vec![String::new()];
    for length in 1..=3 {
        let longer = words.iter().filter(|word| word.len() == length - 1);
        let longer: Vec<String> =
            longer.flat_map(|word| letters.iter().map(move |letter| format!("{word}{letter}"))).collect();
        words.extend(longer);
    }
    let items: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let strings = r#"{"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^[a-g]{0,3}$"}}"#;
    let pairs = r#"{"type":"array","uniqueItems":true,"items":{"type":"array","minItems":2,"items":false,
        "prefixItems":[{"type":"string","pattern":"^[a-g]{1,3}$"},{"type":"boolean"}]}}"#;
    let of_pairs: Vec<String> =
        items[1..].iter().flat_map(|word| [true, false].map(|truth| format!("[{word},{truth}]"))).collect();
    let objects = r#"{"type":"array","uniqueItems":true,"items":{"type":"object","additionalProperties":false,
        "required":["w"],"properties":{"w":{"type":"string","pattern":"^[a-g]{3}$"},"n":{"type":"null"}}}}"#;
    let of_objects: Vec<String> = items
        .iter()
        .filter(|word| word.len() == 5)
        .flat_map(|word| {
            let both = [format!("{{\"w\":{word},\"n\":null}}"), format!("{{\"n\":null,\"w\":{word}}}")];
            [format!("{{\"w\":{word}}}")].into_iter().chain(both)
        })
        .collect();
    let same = |a: &str, b: &str| {
        let sorted = |text: &str| {
            let mut bytes = text.replace(',', "").into_bytes();
            bytes.sort_unstable();
            bytes
        };
        a == b || a.starts_with('{') && sorted(a) == sorted(b)
    };
    let options = Options { whitespace: Whitespace::Compact, escapes: Escapes::Needed, ..Options::default() };
    let mut n_dead = 0;
    for (schema, values) in [(strings, &items), (pairs, &of_pairs), (objects, &of_objects)] {
        let constraint = constraint(schema, &options);
        let mut random = Random::new(7);
        for _ in 0..60 {
            // Items that are alike, so that they have to differ.
            let near = random.below(values.len());
            let choose = |random: &mut Random| values[(near + random.below(4)) % values.len()].clone();
            let before: Vec<String> = (0..1 + random.below(4)).map(|_| choose(&mut random)).collect();
            let is_first = |at: usize| !before[..at].iter().any(|other| same(other, &before[at]));
            let before: Vec<String> =
                (0..before.len()).filter(|&at| is_first(at)).map(|at| before[at].clone()).collect();
            let last = choose(&mut random);
            let viable: BTreeSet<&str> = values
                .iter()
                .filter(|value| !before.iter().any(|other| same(other, value)))
                .flat_map(|value| (0..=value.len()).map(|end| &value[..end]))
                .collect();
            let text = format!("[{}", before.join(","));
            assert_eq!(reads(&constraint, &text).1, text.len(), "{schema}: {text}");
            for end in 0..=last.len() {
                let text = format!("{text},{}", &last[..end]);
                let is_viable = reads(&constraint, &text).1 == text.len();
                assert_eq!(is_viable, viable.contains(&last[..end]), "{schema}: {text}");
                n_dead += usize::from(!is_viable);
            }
        }
    }
    assert!(n_dead > 50, "{n_dead}");
}

/// What is forced is what a reader of whole texts says of each byte, one after another; and masks that are
/// looked up are those that are computed.
#[test]
fn forced_text_knows_what_was_written() {
    let schemas = [
        r#"{"type":"object","propertyNames":{"pattern":"^[ab]$"},"minProperties":2,
            "additionalProperties":{"const":1}}"#,
        r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"array","minItems":1,"maxItems":1,
            "items":{"type":"boolean"}}}"#,
        r#"{"type":"object","propertyNames":{"enum":["ab","ac","b"]},"minProperties":3,
            "additionalProperties":{"const":null}}"#,
    ];
    let options = Options { whitespace: Whitespace::Compact, escapes: Escapes::Needed, ..Options::default() };
    let (mut n_forced, mut n_known) = (0, 0);
    for (at, schema) in schemas.into_iter().enumerate() {
        let lark = format!("start: \"<\" %json {} \">\"", schema.replace('\n', " "));
        for constraint in [constraint(schema, &options), crate::embedded::constraint(&lark, &options)] {
            let is_viable = |text: &[u8]| {
                let reading = constraint.language().read(text).unwrap();
                (reading.length == text.len(), reading.is_sentence)
            };
            for seed in 0..2 {
                let (mut random, mut matcher) =
                    (Random::new(seed + at as u64), constraint.matcher().unwrap());
                for _ in 0..8 {
                    let mut text = constraint.vocabulary().decode(matcher.tokens()).unwrap();
                    let n = text.len();
                    while !is_viable(&text).1 {
                        let follows = |&byte: &u8| is_viable(&[&text[..], &[byte]].concat()).0;
                        let all: Vec<u8> = (0..=u8::MAX).filter(follows).collect();
                        let &[only] = &*all else { break };
                        text.push(only);
                    }
                    let forced = matcher.forced().unwrap();
                    let whole = String::from_utf8_lossy(&text);
                    assert_eq!(forced.bytes, text[n..], "{schema}: {whole} after {n} bytes");
                    n_forced += forced.bytes.len();
                    let mask = matcher.mask().unwrap();
                    let mut words = vec![0; mask.words().len()];
                    if matcher.known_mask_into(&mut words).unwrap() {
                        assert_eq!(words, mask.words(), "{schema}: {whole} after {n} bytes");
                        n_known += usize::from(!matcher.tokens().is_empty());
                    }
                    let allowed: Vec<_> = mask.iter().collect();
                    matcher.advance(*random.choose(&allowed)).unwrap();
                    if matcher.has_ended() {
                        break;
                    }
                }
            }
        }
    }
    assert!(n_forced > 100 && n_known > 50, "{n_forced} {n_known}");
}

/// Walks that go back a little or far: the mask is that of an output that reads what is left from the start.
#[test]
fn going_back_recalls_what_reading_does() {
    let schemas = [
        r#"{"type":"object","additionalProperties":{"type":["boolean","null"]}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^[ab]*$"}}"#,
        r#"{"type":"array","items":{"type":"object","additionalProperties":{"type":"null"}}}"#,
    ];
    let mut n_compared = 0;
    for (schema, seed) in schemas.iter().flat_map(|schema| [1, 2].map(|seed| (schema, seed))) {
        let options = Options { whitespace: Whitespace::Compact, ..Options::default() };
        let constraint = constraint(schema, &options);
        let mut random = Random::new(seed);
        let (mut matcher, mut longest) = (constraint.matcher().unwrap(), 0);
        for _ in 0..1_500 {
            let n_tokens = matcher.tokens().len();
            if random.chance(3) || matcher.has_ended() {
                let near = random.below(n_tokens.min(6) + 1);
                let n = if random.chance(70) { near } else { random.below(n_tokens / 3 + 1) };
                matcher.rollback(n).unwrap();
                let mut fresh = constraint.matcher().unwrap();
                fresh.advance_all(matcher.tokens()).unwrap();
                assert_eq!(matcher.mask().unwrap(), fresh.mask().unwrap(), "{schema}: {:?}", fresh.tokens());
                n_compared += 1;
                continue;
            }
            let allowed: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            // Few letters, so that much may repeat; and what is open may last.
            let bytes = |id: &TokenId| constraint.vocabulary().bytes(*id).unwrap_or_default();
            let is_wanted =
                |byte: &u8| b"[{,:\"abnul".contains(byte) || n_tokens % 5 == 0 && b"]}".contains(byte);
            let goes_on = |id: &TokenId| !bytes(id).is_empty() && bytes(id).iter().all(is_wanted);
            let few: Vec<TokenId> = allowed.iter().copied().filter(goes_on).collect();
            let from = if few.is_empty() { &allowed } else { &few };
            matcher.advance(*random.choose(from)).unwrap();
            longest = longest.max(matcher.tokens().len());
        }
        assert!(longest > 100, "{schema}: {longest}");
    }
    assert!(n_compared > 100, "{n_compared}");
}

/// Values as deep as a text is long, on a small stack: read, masked, taken back, and compared where they end.
#[test]
fn nesting_is_as_deep_as_a_text_is_long() {
    fn nested(open: &str, close: &str) {
        let any = constraint("{}", &Options::default());
        let mut matcher = any.matcher().unwrap();
        let n_tokens = matcher.advance_text(open.repeat(8_000)).unwrap();
        assert!(!matcher.mask().unwrap().is_empty());
        matcher.rollback(n_tokens - 5).unwrap();
        assert!(!check_mask(&mut matcher, open).is_empty());
        let constraint = constraint(r#"{"type":"array","uniqueItems":true}"#, &Options::default());
        let value = |depth: usize, inner: &str| open.repeat(depth) + inner + &close.repeat(depth);
        let [one, other] = ["1", "2"].map(|inner| value(2_000, inner));
        assert!(reads(&constraint, &format!("[{one},{other}]")).0);
        // Not so deep that it is a matter of limits whether something else can follow.
        let one = value(400, "1");
        let repeated = format!("[{one},{one}]");
        assert_eq!(reads(&constraint, &repeated), (false, repeated.len() - 2));
    }
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let small = std::thread::Builder::new().stack_size(96 << 10);
        small.spawn(move || nested(open, close)).unwrap().join().unwrap();
    }
}
