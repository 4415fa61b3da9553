//! The metaschemas of the drafts, to which schemas refer: see `metaschemas/README.md`.

use crate::value::Value;

/// Addresses and texts; those of one draft begin alike.
const ALL: [(&str, &str); 19] = [
    ("http://json-schema.org/draft-04/schema", include_str!("../metaschemas/draft-04.json")),
    ("http://json-schema.org/draft-06/schema", include_str!("../metaschemas/draft-06.json")),
    ("http://json-schema.org/draft-07/schema", include_str!("../metaschemas/draft-07.json")),
    ("https://json-schema.org/draft/2019-09/schema", include_str!("../metaschemas/2019-09.json")),
    (
        "https://json-schema.org/draft/2019-09/meta/applicator",
        include_str!("../metaschemas/2019-09-applicator.json"),
    ),
    (
        "https://json-schema.org/draft/2019-09/meta/content",
        include_str!("../metaschemas/2019-09-content.json"),
    ),
    ("https://json-schema.org/draft/2019-09/meta/core", include_str!("../metaschemas/2019-09-core.json")),
    ("https://json-schema.org/draft/2019-09/meta/format", include_str!("../metaschemas/2019-09-format.json")),
    (
        "https://json-schema.org/draft/2019-09/meta/meta-data",
        include_str!("../metaschemas/2019-09-meta-data.json"),
    ),
    (
        "https://json-schema.org/draft/2019-09/meta/validation",
        include_str!("../metaschemas/2019-09-validation.json"),
    ),
    ("https://json-schema.org/draft/2020-12/schema", include_str!("../metaschemas/2020-12.json")),
    (
        "https://json-schema.org/draft/2020-12/meta/applicator",
        include_str!("../metaschemas/2020-12-applicator.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/content",
        include_str!("../metaschemas/2020-12-content.json"),
    ),
    ("https://json-schema.org/draft/2020-12/meta/core", include_str!("../metaschemas/2020-12-core.json")),
    (
        "https://json-schema.org/draft/2020-12/meta/format-annotation",
        include_str!("../metaschemas/2020-12-format-annotation.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/format-assertion",
        include_str!("../metaschemas/2020-12-format-assertion.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/meta-data",
        include_str!("../metaschemas/2020-12-meta-data.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/unevaluated",
        include_str!("../metaschemas/2020-12-unevaluated.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/validation",
        include_str!("../metaschemas/2020-12-validation.json"),
    ),
];

/// The metaschemas that a document refers to, with those that these refer to: addresses and texts.
pub fn referred_to(document: &Value) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    let mut agenda = vec![document];
    while let Some(value) = agenda.pop() {
        match value {
            Value::Array(items) => agenda.extend(items),
            Value::Object(members) => {
                for (key, value) in members {
                    agenda.push(value);
                    let Some(reference) = value.text().filter(|_| matches!(&**key, "$ref" | "$dynamicRef"))
                    else {
                        continue;
                    };
                    let of_draft = |(address, _): &(&'static str, &'static str)| {
                        let draft = address.trim_end_matches("schema");
                        reference.starts_with(draft) || draft.contains("/meta/") && is_of(address, reference)
                    };
                    found.extend(ALL.iter().copied().filter(of_draft));
                }
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a vocabulary belongs to the draft that a reference names.
fn is_of(vocabulary: &str, reference: &str) -> bool {
    vocabulary.split_once("meta/").is_some_and(|(draft, _)| reference.starts_with(draft))
}
