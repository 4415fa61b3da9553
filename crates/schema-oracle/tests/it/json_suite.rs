//! JSONTestSuite: what a reader must accept, and what it must not.

use anygram_schema_oracle::Value;
use anygram_schema_oracle::json::{JsonErrorKind, Limits};
use base64::Engine;

use crate::data;

#[test]
fn json_test_suite() {
    let Some(shared) = anygram_testkit::shared::data() else { return };
    let mut n_cases = 0;
    for (_, case) in data::lines(&shared.join("json_test_suite/test_parsing.jsonl.gz")) {
        let (name, expect) = (data::text(&case, "name"), data::text(&case, "expect"));
        let bytes = base64::prelude::BASE64_STANDARD.decode(data::text(&case, "bytes_base64")).unwrap();
        let read = Value::parse(&bytes, Limits::default());
        match expect {
            "accept" if name.contains("duplicated_key") => {
                assert_eq!(read.unwrap_err().kind, JsonErrorKind::DuplicateKey, "{name}");
            }
            "accept" => assert!(read.is_ok(), "{name}: {read:?}"),
            "reject" => assert!(read.is_err(), "{name}"),
            // Either: no panic is all that is asked.
            _ => {}
        }
        n_cases += 1;
    }
    assert_eq!(n_cases, 199);
}
