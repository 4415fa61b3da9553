//! The labelled instances of JSONSchemaBench, by the lowered grammar: those of every twelfth schema, or of
//! all where `ANYGRAM_SEEDS` asks for long tests.

use std::collections::BTreeMap;

use anygram_json_schema::refusal::Kind;
use anygram_json_schema::{Options, lowered};
use anygram_testkit::schema_bench;

use crate::case::Case;
use crate::simulate::Simulation;

/// The most of the 7,570 schemas that may be refused, by kind.
const MOST_REFUSED: [(Kind, usize); 4] =
    [(Kind::Unsupported, 21), (Kind::Limit, 17), (Kind::Syntax, 3), (Kind::Unsatisfiable, 10)];

#[test]
fn labels() {
    let Some(lines) = schema_bench::lines() else { return };
    let (mut n, mut given_up, mut wrong) = (0, 0, Vec::new());
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    let every = if std::env::var_os("ANYGRAM_SEEDS").is_some() { 1 } else { 12 };
    for line in lines.step_by(every) {
        let case = Case::of(&line);
        let grammar = match lowered(&case.schema, &Options::default()) {
            Ok(grammar) => grammar,
            Err(refusal) => {
                assert!(
                    refusal.kind != Kind::Unsatisfiable || !case.tests.iter().any(|test| test.valid),
                    "{}: {refusal}",
                    case.id
                );
                *refused.entry(refusal.kind.name()).or_default() += 1;
                continue;
            }
        };
        let simulation = Simulation::new(&grammar);
        // Tests of one schema with long texts say nothing new of reading.
        for test in case.tests.iter().filter(|test| test.data.len() < 20_000) {
            n += 1;
            match simulation.read(test.data.as_bytes()) {
                None => given_up += 1,
                Some(read) if read.is_valid != test.valid => wrong.push((case.id.clone(), test.valid, read)),
                Some(_) => {}
            }
        }
    }
    println!("{n} instances, {given_up} given up; refused schemas: {refused:?}");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(n * every > 20_000 && given_up * every < 150, "{n} {given_up}");
    for (kind, most) in MOST_REFUSED {
        let most = if every == 1 { most } else { most / every + 3 };
        assert!(refused.get(kind.name()).is_none_or(|&n| n <= most), "{refused:?}");
    }
}
