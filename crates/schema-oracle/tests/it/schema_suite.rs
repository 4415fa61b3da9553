//! The official suites of JSON Schema.

use std::collections::BTreeMap;

use anygram_schema_oracle::{Dialect, Draft, Formats, Options, Registry, Undecided, Value};

use crate::data;

/// Groups that refer to the metaschemas of the drafts: left out where those are not there.
const NEED_METASCHEMAS: &[&str] = &["draft7/definitions.json#0", "draft2020-12/defs.json#0"];

/// Optional groups that are answered otherwise: how many tests of each, and why. Of the required tests there
/// are none.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("draft7/optional/content.json#0", 1, "content keywords are annotations"),
    ("draft7/optional/content.json#2", 2, "content keywords are annotations"),
    ("draft7/optional/format/hostname.json#1", 23, "RFC 1123 does not decode labels that begin with `xn--`"),
    ("draft7/optional/cross-draft.json#0", 2, "the document of 2019-09 is not among the remotes"),
    ("draft2020-12/optional/cross-draft.json#0", 1, "the document of 2019-09 is not among the remotes"),
    ("draft2020-12/optional/dependencies-compatibility.json#2", 3, "no keyword of stated 2020-12"),
    ("draft2020-12/optional/dependencies-compatibility.json#3", 2, "no keyword of stated 2020-12"),
    ("draft2020-12/optional/dependencies-compatibility.json#6", 3, "no keyword of stated 2020-12"),
];

#[test]
fn draft_7() {
    suite("draft7", Dialect::from(Draft::Draft7));
}

#[test]
fn draft_2020_12() {
    suite("draft2020-12", Dialect::from(Draft::Draft202012));
}

fn suite(name: &str, dialect: Dialect) {
    let Some(shared) = anygram_testkit::shared::data() else { return };
    let folder = shared.join("json_schema_test_suite");
    let metaschemas = data::metaschemas();
    let remotes = data::lines(&folder.join("remotes.jsonl.gz"));
    let mut wrong: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts = [(0, 0); 2];
    for (_, group) in data::lines(&folder.join(format!("{name}.jsonl.gz"))) {
        let id = data::text(&group, "id");
        if metaschemas.is_empty() && NEED_METASCHEMAS.contains(&id) {
            eprintln!("NOT TESTED: {id}: no metaschemas");
            continue;
        }
        let mut registry = Registry::new(dialect);
        registry.add("test:schema", group.get("schema").unwrap().clone());
        for (_, remote) in &remotes {
            registry.add(data::text(remote, "uri"), remote.get("schema").unwrap().clone());
        }
        metaschemas.iter().for_each(|(uri, document)| registry.add(uri, document.clone()));
        for test in group.get("tests").and_then(Value::as_array).unwrap() {
            let answer = judge(&registry, id, test);
            let agrees = answer == Ok(data::is_true(test, "valid"));
            let (n_agree, n_all) = &mut counts[usize::from(data::is_true(&group, "optional"))];
            *n_agree += usize::from(agrees);
            *n_all += 1;
            if !agrees {
                eprintln!("{id}: {}: {answer:?}", data::text(test, "description"));
                *wrong.entry(id.to_owned()).or_default() += 1;
            }
        }
    }
    eprintln!("{name}: agree and all, of required and of optional tests: {counts:?}");
    let excepted = EXCEPTIONS.iter().filter(|(id, ..)| id.split('/').next() == Some(name));
    assert_eq!(wrong, excepted.map(|(id, n_tests, _)| (id.to_string(), *n_tests)).collect());
}

fn judge(registry: &Registry, id: &str, test: &Value) -> Result<bool, Undecided> {
    let formats = if id.contains("/optional/format/") { Formats::Assert } else { Formats::Annotate };
    registry.schema("test:schema")?.is_valid(test.get("data").unwrap(), Options { formats })
}
