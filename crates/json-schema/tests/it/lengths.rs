//! Lengths of strings, with tokens of many characters: masks against every token by itself.

use std::sync::Arc;

use anygram_bits::Random;
use anygram_json_schema::pieces::Escapes;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_vocab::{TokenId, Vocabulary};

use crate::recall::check_mask;

/// Arrays of strings whose lengths are in these ranges.
const RANGES: [(u32, Option<u32>); 8] = [
    (0, Some(0)),
    (0, Some(1)),
    (3, Some(3)),
    (2, Some(5)),
    (0, Some(12)),
    (5, None),
    (4, Some(40)),
    (300, Some(300)),
];

fn schemas() -> Vec<String> {
    let arrays = RANGES.iter().map(|(min, max)| {
        let max = max.map_or(String::new(), |max| format!(r#","maxLength":{max}"#));
        format!(r#"{{"type":"array","items":{{"type":"string","minLength":{min}{max}}}}}"#)
    });
    let others = [
        // Keys of which some are listed.
        r#"{"properties":{"the":{},"there":{},"é":{}},"propertyNames":{"minLength":2,"maxLength":7},
            "additionalProperties":{"type":"string","maxLength":3}}"#,
        r#"{"type":"object","properties":{"name":true},
            "patternProperties":{"^[a-z]{1,4}$":{"maxLength":2}}}"#,
        // Several strings at one place.
        r#"{"type":"array","items":{"anyOf":[{"maxLength":2},{"minLength":6,"maxLength":8},
            {"enum":["the end","then"]}]}}"#,
    ];
    arrays.chain(others.map(str::to_owned)).collect()
}

#[test]
fn masks_have_the_tokens_that_are_neither_too_short_nor_too_long() {
    let seeds = anygram_testkit::random::seeds(1);
    let vocabulary = Vocabulary::builtin();
    let mut n_long = 0;
    for schema in schemas() {
        for escapes in [Escapes::Any, Escapes::Needed] {
            let grammar = grammar(&schema, &Options { escapes, ..Options::default() });
            let grammar = grammar.unwrap_or_else(|refusal| panic!("{schema}: {refusal}"));
            let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
            let constraint = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap();
            for &seed in &seeds {
                let mut random = Random::new(seed);
                let mut matcher = constraint.matcher().unwrap();
                for _ in 0..14 {
                    let allowed = check_mask(&mut matcher, &schema);
                    let display = |id: u32| vocabulary.display_token(TokenId(id));
                    // Tokens that begin, go on with or end strings, rather than blanks.
                    let is_wanted = |&id: &u32| {
                        let text = display(id);
                        text.contains(['"', '[', '{', ':', ',']) || text.chars().any(char::is_alphabetic)
                    };
                    let few: Vec<u32> = allowed.iter().copied().filter(is_wanted).collect();
                    let from = if few.is_empty() || random.chance(10) { &allowed } else { &few };
                    let token = from[random.below(from.len())];
                    n_long += usize::from(display(token).chars().count() > 2);
                    matcher.advance(TokenId(token)).unwrap();
                    if matcher.has_ended() {
                        break;
                    }
                }
            }
        }
    }
    assert!(n_long > 30, "{n_long}");
}
