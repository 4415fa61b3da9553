//! The labels of JSONSchemaBench: 24,660 instances of real schemas.

use anygram_schema_oracle::{Formats, Options, Registry, Value};

use crate::data;

/// The one schema that refers to a metaschema: left out where there are none.
const NEEDS_METASCHEMAS: &str = "JsonSchemaStore---swagger-2.0";

#[test]
fn json_schema_bench() {
    let Some(lines) = anygram_testkit::schema_bench::lines() else { return };
    let metaschemas = data::metaschemas();
    let (mut n_labels, mut wrong) = (0, Vec::new());
    for line in lines {
        let case: Value = line.parse().unwrap();
        let (id, tests) = (data::text(&case, "id"), case.get("tests").and_then(Value::as_array).unwrap());
        n_labels += tests.len();
        if metaschemas.is_empty() && id == NEEDS_METASCHEMAS {
            eprintln!("NOT TESTED: {id}: no metaschemas");
            continue;
        }
        let mut registry = Registry::default();
        registry.add("test:schema", case.get("schema").unwrap().clone());
        for (uri, document) in &metaschemas {
            if line.contains(&format!("\"{uri}/")) {
                registry.add(uri, document.clone());
            }
        }
        let schema = registry.schema("test:schema").unwrap();
        for test in tests {
            let answer = schema.is_valid(test.get("data").unwrap(), Options { formats: Formats::Assert });
            if answer != Ok(data::is_true(test, "valid")) {
                wrong.push((id.to_owned(), data::text(test, "description").to_owned(), answer));
            }
        }
    }
    wrong.iter().for_each(|case| eprintln!("{case:?}"));
    assert_eq!((n_labels, wrong.len()), (24_660, 0));
}
