//! States of the automata of objects that are joined to one, as where many texts of a canvas meet.

use std::collections::BTreeMap;

use anygram_bits::Random;
use anygram_grammar::automata::RuleAutomaton;
use anygram_json_schema::{Options, grammar};

/// An object of a few keys in any order, some of them required.
fn schema(random: &mut Random) -> String {
    let types = ["integer", "string", "boolean", "array"];
    let keys: Vec<&str> = ["a", "b", "c", "d", "e"].into_iter().filter(|_| random.chance(70)).collect();
    let properties: Vec<String> =
        keys.iter().map(|key| format!(r#""{key}":{{"type":"{}"}}"#, random.choose(&types))).collect();
    let required: Vec<String> =
        keys.iter().filter(|_| random.chance(50)).map(|key| format!(r#""{key}""#)).collect();
    let more = if random.chance(30) { r#","maxProperties":3"# } else { "" };
    format!(
        r#"{{"type":"object","properties":{{{}}},"required":[{}],"additionalProperties":{}{more}}}"#,
        properties.join(","),
        if more.is_empty() { required.join(",") } else { String::new() },
        random.chance(60),
    )
}

/// The states on some walks, by their kinds.
fn by_kind(automaton: &dyn RuleAutomaton, random: &mut Random) -> BTreeMap<u32, Vec<u32>> {
    let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for _ in 0..30 {
        let mut state = automaton.start();
        for _ in 0..30 {
            found.entry(automaton.kind(state).unwrap()).or_default().push(state);
            let symbols = automaton.symbols(state);
            if symbols.is_empty() {
                break;
            }
            state = automaton.step(state, *random.choose(&symbols)).unwrap();
        }
    }
    found
}

#[test]
fn what_can_follow_in_one_of_some_states_can_follow_where_they_are_joined() {
    let mut n_more = 0;
    for seed in anygram_testkit::random::seeds(60) {
        let mut random = Random::new(seed);
        let schema = schema(&mut random);
        let grammar = grammar(&schema, &Options::default()).unwrap();
        let kinds = |automaton: &&anygram_grammar::ir::AutomatonRule| automaton.automaton.kind(0).is_some();
        for rule in grammar.automata.iter().filter(kinds) {
            let automaton = &*rule.automaton;
            for (kind, mut states) in by_kind(automaton, &mut random) {
                for _ in 0..6 {
                    let drawn: Vec<u32> = (0..1 + random.below(4)).map(|_| *random.choose(&states)).collect();
                    let joined = automaton.joined(&drawn).unwrap();
                    assert_eq!(automaton.kind(joined), Some(kind), "seed {seed}: {schema}");
                    let ends = |state: u32| automaton.symbols(state).iter().any(|&symbol| symbol < 3);
                    n_more += usize::from(automaton.symbols(joined) != automaton.symbols(drawn[0]));
                    // Of the required keys it knows how many are there.
                    if !schema.contains("maxProperties") {
                        let any = drawn.iter().any(|&state| ends(state));
                        assert_eq!(ends(joined), any, "seed {seed}: {schema}: {drawn:?} of kind {kind}");
                    }
                    for &from in &drawn {
                        let (mut at, mut with) = (from, joined);
                        for _ in 0..30 {
                            assert!(
                                !automaton.accepts(at) || automaton.accepts(with),
                                "seed {seed}: {schema}"
                            );
                            let (own, all) = (automaton.symbols(at), automaton.symbols(with));
                            let is_there = |symbol| all.binary_search(symbol).is_ok();
                            assert!(own.iter().all(is_there), "seed {seed}: {schema}: {own:?}, but {all:?}");
                            if own.is_empty() {
                                break;
                            }
                            let symbol = *random.choose(&own);
                            at = automaton.step(at, symbol).unwrap();
                            with = automaton.step(with, symbol).unwrap();
                        }
                    }
                    states.push(joined);
                }
            }
        }
    }
    assert!(n_more > 200, "{n_more}");
}
