//! Formats against what the test suite of JSON Schema says, and tables of our own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use anygram_json_schema::format::{self, Format};
use anygram_json_schema::refusal::Kind;
use anygram_json_schema::{Options, lowered};
use anygram_testkit::schema_bench;
use flate2::read::GzDecoder;
use serde_json::Value;

const NAMES: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// The formats, by name.
fn all() -> BTreeMap<&'static str, Format> {
    NAMES
        .iter()
        .map(|&name| (name, format::format(name).cloned().unwrap_or_else(|| panic!("{name}"))))
        .collect()
}

/// Whether a format accepts a text; of those that no pattern says, [`format::is_regex`] does one.
fn accepts(format: &Format, text: &str) -> bool {
    match format {
        Format::Pattern(pattern) => crate::matcher::is_match(pattern, text),
        _ => format::is_regex(text).unwrap(),
    }
}

#[test]
fn what_no_pattern_says_is_refused_by_name() {
    let annotated = Options { asserts_formats: false, ..Options::default() };
    for name in ["idn-hostname", "regex"] {
        let schema = format!(r#"{{"properties":{{"a":{{"format":"{name}"}}}}}}"#);
        let refusal = lowered(&schema, &Options::default()).unwrap_err();
        assert_eq!((refusal.kind, refusal.keyword), (Kind::Unsupported, Some("format")));
        assert_eq!(refusal.at, "/properties/a/format");
        assert!(refusal.message.contains(name) && refusal.message.contains("annotate"), "{refusal}");
        lowered(&schema, &annotated).unwrap();
        // What nothing refers to is not looked at.
        lowered(&format!(r#"{{"$defs":{{"a":{schema}}}}}"#), &Options::default()).unwrap();
    }
}

#[test]
fn other_names_are_annotations() {
    for name in ["", "Date", "int32", "unknown", "uri-", "color", "url"] {
        assert_eq!(format::format(name), None);
    }
    let formats = all();
    for (name, format) in &formats {
        if let Format::Pattern(pattern) = format {
            eprintln!("{name}: {} characters", pattern.to_string().len());
        }
    }
}

/// The labelled strings of the suite's groups whose schema is a format alone.
fn labelled() -> Option<Vec<(String, String, bool, String)>> {
    let folder = anygram_testkit::shared::data()?.join("json_schema_test_suite");
    let mut found = Vec::new();
    for file in ["draft7.jsonl.gz", "draft2020-12.jsonl.gz"] {
        for line in BufReader::new(GzDecoder::new(File::open(folder.join(file)).unwrap())).lines() {
            let group: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let is_asserted = group["file"].as_str().unwrap().contains("/optional/format");
            let Some(format) = group["schema"]["format"].as_str().filter(|_| is_asserted) else { continue };
            for test in group["tests"].as_array().unwrap() {
                if let Some(text) = test["data"].as_str() {
                    let description = test["description"].as_str().unwrap().to_owned();
                    let (format, text) = (format.to_owned(), text.to_owned());
                    found.push((format, text, test["valid"].as_bool().unwrap(), description));
                }
            }
        }
    }
    Some(found)
}

#[test]
fn the_suite_agrees() {
    let Some(labelled) = labelled() else { return };
    let formats = all();
    let (mut n_decoded, mut wrong) = (0, Vec::new());
    for (name, text, valid, description) in labelled.iter().filter(|(name, ..)| name != "idn-hostname") {
        let Some(format) = formats.get(name.as_str()) else { continue };
        if accepts(format, text) == *valid {
            continue;
        }
        // What a host name says in Punycode is not in RFC 1123.
        if name == "hostname" && text.to_ascii_lowercase().contains("xn--") && !valid {
            n_decoded += 1;
        } else {
            wrong.push(format!("{name} {text:?} is {valid}: {description}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), labelled.len());
    assert_eq!((labelled.len(), n_decoded), (856, 23));
}

/// The strings of a value that a schema asks a format of: where keywords lead that hold whatever else holds.
fn asked<'v>(schema: &'v Value, value: &'v Value, found: &mut Vec<(&'v str, &'v str)>) {
    if schema.get("$ref").is_some() {
        return;
    }
    match value {
        Value::String(text) => found.extend(schema["format"].as_str().map(|format| (format, text.as_str()))),
        Value::Array(items) if schema["items"].is_object() && schema.get("prefixItems").is_none() => {
            items.iter().for_each(|item| asked(&schema["items"], item, found));
        }
        Value::Object(members) => {
            for (key, value) in members {
                if let Some(schema) = schema["properties"].get(key) {
                    asked(schema, value, found);
                }
            }
        }
        _ => {}
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        asked(part, value, found);
    }
}

#[test]
fn valid_instances_of_the_benchmark_are_accepted() {
    let Some(lines) = schema_bench::lines() else { return };
    let formats = all();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in lines.filter(|line| line.contains("\"format\"")) {
        let case: Value = serde_json::from_str(&line).unwrap();
        for test in case["tests"].as_array().into_iter().flatten() {
            let mut found = Vec::new();
            asked(&case["schema"], &test["data"], &mut found);
            for (name, text) in found.into_iter().filter(|_| test["valid"] == true) {
                let Some(format) = formats.get(name) else { continue };
                *seen.entry(name.to_owned()).or_default() += 1;
                if !accepts(format, text) {
                    wrong.push(format!("{} {name} {text:?}", case["id"]));
                }
            }
        }
    }
    eprintln!("{seen:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What the suite here does not ask.
const EDGES: [(&str, &str, &str); 15] = [
    // Name, accepted, refused; separated by spaces.
    ("uri", "a: a:b:c a:/ a:/b//c a://b a:// a://:80 a://b:/ a://b@:1 a:?? a:#? a+.-1:%20 a://[v1.a:]", ""),
    (
        "uri",
        "a:// a:b:// a:b@c a://[::1]:80/?#/ a://1.2.3.999/",
        "1a:b a :b a:[ a:%zz a://b:c a://b@c@d a:##",
    ),
    ("uri", "", "a://[::1 a://[v.a] a://[v1.] a://[1.2.3.4] a:é a:^ a:`"),
    ("uri-reference", "b ./a:b //a /?/ #/ a/b:c @", "a:b#c# :b 1:b //[a] ## %2 é"),
    (
        "iri-reference",
        "é ?\u{e000} é/\u{efffd}",
        "é: #\u{e000} \u{e000} \u{fdd0} \u{fffe} \u{ffff} \u{e0fff} \u{9f}",
    ),
    (
        "ipv4",
        "0.0.0.0 255.255.255.255 199.249.250.9",
        "256.0.0.0 00.0.0.0 0.0.0 0.0.0.0. 1.2.3.4.5 1.2.3.4/8",
    ),
    (
        "ipv6",
        "1:2:3:4:5:6:7:: ::2:3:4:5:6:7:8 1::3:4:5:6:7:8 1:2:3:4:5:6:1.2.3.4 ::1.2.3.4 1:2:3:4:5::1.2.3.4",
        "",
    ),
    (
        "ipv6",
        "1::1.2.3.4",
        "1:2:3:4:5:6:7::8 ::1:2:3:4:5:6:7:8 1:2:3:4:5:6::1.2.3.4 1.2.3.4:: ::1.2.3.4:5 ::%1 :",
    ),
    ("duration", "P1Y1M1DT1H1M1S P0W PT1H1M", "P1YT P1Y1D PT1H1S P1W1D P1.5D p1d P1H PT1D P1D1M"),
    (
        "date-time",
        "1998-12-31T23:59:60Z 2024-02-29T23:59:60.5+00:00 2023-02-28t23:59:60-00:00 \
         1998-12-31T15:59:60-08:00",
        "1998-12-30T23:59:60Z 2024-02-28T23:59:60.5+00:00 1999-01-01T23:59:60-00:00 \
         1998-12-01T15:59:60-08:00",
    ),
    (
        "date-time",
        "1999-01-01T00:59:60+01:00 2024-03-01T23:58:60+23:59 1999-01-01T00:59:59+01:00",
        "1998-12-31T00:59:60+01:00 2024-02-29T23:58:60+23:59 1999-13-01T00:59:60+01:00",
    ),
    (
        "email",
        "a@[001.02.3.255] a@[IPv6:1:2:3:4:5:6:7:8] a@[ipv6:1:2::3:4:5:6]",
        "a@[0001.2.3.4] a@[256.1.1.1]",
    ),
    ("email", "a@[IPv6:1:2:3:4::1.2.3.04]", "a@[IPv6:1:2::3:4:5:6:7] a@[IPv6:1:2:3:4:5::1.2.3.4] a@[x:y]"),
    ("hostname", "1.2.3.4 xn--x a--b XN--aa.b", "a. a..b a-.b a_b ü"),
    (
        "uri-template",
        "{a*,b:9999} {=a} {|a} {a.b._} {,a}",
        "% { {a:10000} {a:0} {a*:1} {.} {+} {a..b} {.a.} } \" < > \\ ^ ` |",
    ),
];

#[test]
fn edges() {
    let formats = all();
    let mut wrong = Vec::new();
    for (name, accepted, refused) in EDGES {
        for (texts, valid) in [(accepted, true), (refused, false)] {
            let texts = texts.split(' ').filter(|text| !text.is_empty());
            wrong.extend(
                texts.filter(|text| accepts(&formats[name], text) != valid).map(|text| (name, text, valid)),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn days_are_those_of_the_month() {
    let date = &all()["date"];
    for year in [0, 4, 100, 400, 1896, 1899, 1900, 1904, 1996, 2000, 2023, 2024, 2100, 9999] {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for (month, day) in (0..14).flat_map(|month| (0..33).map(move |day| (month, day))) {
            let last = match month {
                2 => 28 + u32::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                1..=12 => 31,
                _ => 0,
            };
            let text = format!("{year:04}-{month:02}-{day:02}");
            assert_eq!(accepts(date, &text), (1..=last).contains(&day), "{text}");
        }
    }
}

#[test]
fn leap_seconds_are_before_midnight_in_utc() {
    let time = &all()["time"];
    for (sign, offset) in
        [1, -1].into_iter().flat_map(|sign| (0..1440).step_by(7).map(move |offset| (sign, offset)))
    {
        let local = (1439 + 1440 + sign * offset) % 1440;
        for (minute, valid) in [(local, true), ((local + 1) % 1440, false), ((local + 60) % 1440, false)] {
            let sign = if sign == 1 { '+' } else { '-' };
            let of_day = |minute: i32| format!("{:02}:{:02}", minute / 60, minute % 60);
            let text = format!("{}:60.5{sign}{}", of_day(minute), of_day(offset));
            assert_eq!(accepts(time, &text), valid, "{text}");
            assert!(accepts(time, &text.replace(":60", ":59")), "{text}");
        }
    }
}
