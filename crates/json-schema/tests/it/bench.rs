//! Every labelled instance of JSONSchemaBench, by the lowered grammar.

use std::collections::BTreeMap;
use std::io::Read as _;

use anygram_json_schema::refusal::Kind;
use anygram_json_schema::{Options, lowered};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::simulate::Simulation;

#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow, default)]
    tests: Vec<Instance<'a>>,
}

#[derive(Deserialize)]
struct Instance<'a> {
    valid: bool,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// The most of the 7,570 schemas that may be refused, by kind.
const MOST_REFUSED: [(Kind, usize); 4] =
    [(Kind::Unsupported, 23), (Kind::Limit, 16), (Kind::Syntax, 3), (Kind::Unsatisfiable, 10)];

#[test]
fn every_label() {
    let Some(shared) = anygram_testkit::shared::data() else { return };
    let mut files: Vec<_> = std::fs::read_dir(shared.join("jsonschemabench"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    files.sort();
    let (mut n, mut given_up, mut wrong) = (0, 0, Vec::new());
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for path in files {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        for line in text.lines() {
            let line: Line = serde_json::from_str(line).unwrap();
            let grammar = match lowered(line.schema.get(), &Options::default()) {
                Ok(grammar) => grammar,
                Err(refusal) => {
                    assert!(
                        refusal.kind != Kind::Unsatisfiable || !line.tests.iter().any(|test| test.valid),
                        "{}: {refusal}",
                        line.id
                    );
                    *refused.entry(refusal.kind.name()).or_default() += 1;
                    continue;
                }
            };
            let simulation = Simulation::new(&grammar);
            // Tests of one schema with long texts say nothing new of reading.
            for test in line.tests.iter().filter(|test| test.data.get().len() < 20_000) {
                n += 1;
                match simulation.read(test.data.get().as_bytes()) {
                    None => given_up += 1,
                    Some(read) if read.is_valid != test.valid => {
                        wrong.push((line.id.clone(), test.valid, read))
                    }
                    Some(_) => {}
                }
            }
        }
    }
    println!("{n} instances, {given_up} given up; refused schemas: {refused:?}");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(n > 20_000 && given_up < 150, "{n} {given_up}");
    for (kind, most) in MOST_REFUSED {
        assert!(refused.get(kind.name()).is_none_or(|&n| n <= most), "{refused:?}");
    }
}
