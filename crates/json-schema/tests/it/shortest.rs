//! What automata of strings and numbers tell of short pieces: bounds hold, and examples are pieces.
//!
//! `ANYGRAM_SEEDS=1000` sets how many random schemas there are (default 100).

use anygram_bits::Random;
use anygram_grammar::automata::PieceAutomaton;
use anygram_json_schema::pieces::Escapes;
use anygram_json_schema::{Options, grammar};
use anygram_schema_oracle::generate::Generator;
use rustc_hash::FxHashMap;

const SCHEMAS: [&str; 15] = [
    r#"{"type":"string"}"#,
    r#"{"type":"string","minLength":3,"maxLength":5}"#,
    r#"{"enum":["a","abc","é\u0001\"","the end",""]}"#,
    r#"{"anyOf":[{"enum":["to","too"]},{"type":"string","pattern":"^t[aeiou]{2,4}$"}]}"#,
    r#"{"type":"string","pattern":"(ab|abc){2}$"}"#,
    r#"{"type":"string","pattern":"^\\bx(?=y)","minLength":2}"#,
    r#"{"type":"string","not":{"enum":["","a"]}}"#,
    r#"{"type":"string","format":"date-time"}"#,
    r#"{"type":"string","format":"ipv4","maxLength":8}"#,
    r#"{"properties":{"name":true,"names":{}},"patternProperties":{"^n{3}":false},"required":["names"]}"#,
    r#"{"type":"number","minimum":12,"maximum":100}"#,
    r#"{"type":"integer","multipleOf":7,"exclusiveMinimum":-20}"#,
    r#"{"type":"number","minimum":0.5,"exclusiveMaximum":3.25}"#,
    r#"{"type":"number","minimum":-3,"maximum":-0.5}"#,
    r#"{"type":"number","exclusiveMinimum":0,"maximum":0.25}"#,
];

/// States that are looked at.
const MOST: usize = 500;

/// The fewest bytes from each of some states to a piece of a label, by those states.
fn fewest(pieces: &dyn PieceAutomaton, label: u32, seed: u64) -> FxHashMap<u32, u64> {
    let mut random = Random::new(seed);
    let mut agenda = vec![pieces.start()];
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut known = FxHashMap::from_iter([(pieces.start(), ())]);
    while let Some(state) = (!agenda.is_empty()).then(|| agenda.swap_remove(random.below(agenda.len()))) {
        for byte in 0..=u8::MAX {
            let Ok(Some(next)) = pieces.step(state, byte) else { continue };
            edges.push((state, next));
            if known.len() < MOST && known.insert(next, ()).is_none() {
                agenda.push(next);
            }
        }
    }
    let accepts = |state: &u32| pieces.accepts(*state).contains(&label);
    let mut fewest: FxHashMap<u32, u64> = known.into_keys().filter(accepts).map(|state| (state, 0)).collect();
    loop {
        let mut has_changed = false;
        for (from, to) in &edges {
            let Some(next) = fewest.get(to).map(|n| n + 1) else { continue };
            let old = fewest.entry(*from).or_insert(u64::MAX);
            has_changed |= next < *old;
            *old = next.min(*old);
        }
        if !has_changed {
            return fewest;
        }
    }
}

/// Schemas of all kinds of strings and numbers, and random ones.
fn schemas() -> impl Iterator<Item = String> {
    let seeds = anygram_testkit::random::seeds(100);
    let random = seeds.into_iter().map(|seed| {
        let mut generator = Generator::new(seed);
        let schema = generator.schema(3);
        generator.spell(&schema)
    });
    SCHEMAS.map(str::to_owned).into_iter().chain(random)
}

#[test]
fn no_piece_has_fewer_bytes_than_it_has_at_least() {
    let mut n_bounds = 0;
    for (seed, schema) in (0..).zip(schemas()) {
        let Ok(grammar) = grammar(&schema, &Options::default()) else { continue };
        for at in 0..grammar.terminals.len() {
            let Some((pieces, label)) = grammar.piece(at) else { continue };
            for (state, fewest) in fewest(&**pieces, label, seed) {
                let least = pieces.at_least(state, label);
                // One that ends here may go on, too.
                assert!(fewest == 0 || least <= fewest, "{schema}: {least} of {fewest} in state {state}");
                n_bounds += usize::from(least > 1);
            }
        }
    }
    assert!(n_bounds > 5_000, "{n_bounds}");
}

#[test]
fn examples_are_pieces() {
    let mut n_examples = 0;
    for escapes in [Escapes::Any, Escapes::Needed] {
        for schema in schemas() {
            let Ok(grammar) = grammar(&schema, &Options { escapes, ..Options::default() }) else { continue };
            for at in 0..grammar.terminals.len() {
                let Some((pieces, label)) = grammar.piece(at) else { continue };
                for example in pieces.examples(label, 4) {
                    let step = |state, &byte: &u8| pieces.step(state, byte).unwrap();
                    let end = example.iter().try_fold(pieces.start(), step);
                    let accepts = end.is_some_and(|end| pieces.accepts(end).contains(&label));
                    assert!(accepts, "{schema}: {}", String::from_utf8_lossy(&example));
                    n_examples += 1;
                }
            }
        }
    }
    assert!(n_examples >= 100, "{n_examples}");
}
