//! Outputs on tables that begin new parser states all the time, where keys and items are remembered: masks
//! and refusals are those of outputs that each have tables of their own.

use anygram_bits::Random;
use anygram_json_schema::Options;
use anygram_left_to_right::{Limits, Matcher};
use anygram_vocab::TokenId;

use crate::embedded::constraint_with;
use crate::recall::vocabulary;

/// Grammars around schemas, in which what is remembered differs: nothing, keys, items, keys of some values.
const GRAMMARS: [&str; 4] = [
    r#"start: %json {"type": "array", "items": {"type": "string"}}"#,
    r#"start: %json {"type": "object"}"#,
    r#"start: %json {"type": "array", "uniqueItems": true}"#,
    r#"start: "a" (value | "(" start ")" | "{" start "}")*
    value: %json {"type": "object", "additionalProperties": {"type": "array", "uniqueItems": true}}"#,
];

#[test]
fn values_are_remembered_from_one_epoch_to_the_next() {
    for (number, grammar) in GRAMMARS.iter().enumerate() {
        for shared_items in [0, 40, 400] {
            let crowded = Limits { shared_items, ..Limits::default() };
            let [crowded, alone] = [crowded, Limits::default()]
                .map(|limits| constraint_with(grammar, &Options::default(), (vocabulary(), limits)));
            let first = crowded.matcher().unwrap();
            let mut pairs: Vec<(Matcher, Matcher)> =
                (0..4).map(|_| (first.fork(), alone.matcher().unwrap())).collect();
            let mut random = Random::new(number as u64);
            let mut n_compared = 0;
            for _ in 0..400 {
                let (at, other) = (random.below(4), random.below(4));
                let (crowded, alone) = &mut pairs[at];
                match random.below(30) {
                    0 => {
                        crowded.reset();
                        alone.reset();
                    }
                    1 => pairs[at] = (pairs[other].0.fork(), pairs[other].1.fork()),
                    2 => {
                        let n = random.below(alone.tokens().len() + 1);
                        crowded.rollback(n).unwrap();
                        alone.rollback(n).unwrap();
                    }
                    _ => {
                        let mask = alone.mask().unwrap();
                        let context = format!("{grammar}, {shared_items}, {:?}", alone.tokens());
                        assert_eq!(crowded.mask().unwrap(), mask, "{context}");
                        let allowed: Vec<TokenId> = mask.iter().collect();
                        n_compared += 1;
                        if allowed.is_empty() || alone.tokens().len() > 60 {
                            crowded.reset();
                            alone.reset();
                            continue;
                        }
                        let token = *random.choose(&allowed);
                        assert_eq!(crowded.advance(token), alone.advance(token), "{context}");
                    }
                }
            }
            assert!(n_compared > 300, "{n_compared} masks were compared");
        }
    }
}
