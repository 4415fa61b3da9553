//! The official suites of draft 7 and 2020-12: their required tests, formats as annotations.

use std::io::Read as _;

use anygram_json_schema::document::Draft;
use anygram_json_schema::refusal::Kind;
use anygram_json_schema::{Options, lowered};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::simulate::Simulation;

#[derive(Deserialize)]
struct Group<'a> {
    id: String,
    optional: bool,
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow)]
    tests: Vec<Test<'a>>,
}

#[derive(Deserialize)]
struct Test<'a> {
    description: String,
    #[serde(borrow)]
    data: &'a RawValue,
    valid: bool,
}

#[derive(Deserialize)]
struct Remote<'a> {
    uri: String,
    #[serde(borrow)]
    schema: &'a RawValue,
}

fn unpacked(path: std::path::PathBuf) -> String {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Whether a value has a key twice or half a surrogate pair, which no text here has.
fn is_readable(text: &str) -> bool {
    anygram_json_schema::read::read(text).is_ok()
}

#[test]
fn required_tests() {
    let Some(shared) = anygram_testkit::shared::data() else { return };
    let folder = shared.join("json_schema_test_suite");
    let remotes = unpacked(folder.join("remotes.jsonl.gz"));
    let remotes: Vec<Remote> = remotes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let documents: Vec<(String, String)> =
        remotes.iter().map(|remote| (remote.uri.clone(), remote.schema.get().to_owned())).collect();
    let (mut n, mut answered, mut wrong) = (0, 0, Vec::new());
    for (file, draft) in [("draft7", Draft::Draft7), ("draft2020-12", Draft::Draft2020)] {
        let options =
            Options { asserts_formats: false, draft, documents: documents.clone(), ..Options::default() };
        let text = unpacked(folder.join(format!("{file}.jsonl.gz")));
        for line in text.lines() {
            let group: Group = serde_json::from_str(line).unwrap();
            if group.optional {
                continue;
            }
            n += group.tests.len();
            let grammar = lowered(group.schema.get(), &options);
            if let Err(refusal) = &grammar
                && refusal.kind != Kind::Unsatisfiable
            {
                println!("{}: {refusal}", group.id);
                continue;
            }
            let simulation = grammar.as_ref().ok().map(Simulation::new);
            for test in group.tests {
                if !is_readable(test.data.get()) {
                    println!("{}: no text: {}", group.id, test.data.get());
                    continue;
                }
                let Some(is_valid) = simulation.as_ref().map_or(Some(false), |simulation| {
                    simulation.read(test.data.get().as_bytes()).map(|read| read.is_valid)
                }) else {
                    continue;
                };
                answered += 1;
                if is_valid != test.valid {
                    wrong.push(format!("{} {:?}: {}", group.id, test.description, test.data.get()));
                }
            }
        }
    }
    println!("{answered} of {n} answered");
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A ratchet: what is not answered is refused by name, and stays as little as it is.
    assert!(n > 1_300 && n - answered <= 3, "{answered} of {n}");
}
