//! Schemas made to break readers: each is answered, or refused with a reason, within bounds of time and
//! memory.

/// What becomes of a grammar or a schema.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// It compiles, and this text is a sentence; no text is none, of a language without short ones.
    Reads(&'static str),
    /// It is refused with a message that says this.
    Refused(&'static str),
    /// As `Reads` in `scannerless`; in the other modes it may also hit a limit, which is named.
    ReadsOrLimit(&'static str),
}

use Fate::{Reads, Refused};

/// So many items, with something between them.
pub fn joined(count: usize, between: &str, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(between)
}

/// Schemas with a name and a fate.
pub fn schemas() -> Vec<(&'static str, String, Fate)> {
    const MANY: usize = 20_000;
    let list = |item: fn(usize) -> String, count: usize| joined(count, ",", item);
    let object = |at: usize| format!(r#"{{"properties":{{"k{at}":{{"const":{at}}}}},"required":["k{at}"]}}"#);
    let chain = |at: usize| format!(r##""d{at}":{{"$ref":"#/$defs/d{}"}}"##, at + 1);
    let nested = |open: &str, leaf: &str, close: &str, depth| {
        format!("{}{leaf}{}", open.repeat(depth), close.repeat(depth))
    };
    vec![
        ("deep brackets", "[".repeat(100_000), Refused("more than")),
        ("deep not", nested(r#"{"not":"#, "{}", "}", 20_000), Refused("more than")),
        ("nested not", nested(r#"{"not":"#, r#"{"type":"null"}"#, "}", 400), Reads("null")),
        ("nested items", nested(r#"{"items":"#, "{}", "}", 400), Reads("[[[]]]")),
        (
            "a chain",
            format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{MANY}":true}}}}"##, list(chain, MANY)),
            Reads("0"),
        ),
        (
            "a circle",
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}"##.into(),
            Refused("back"),
        ),
        (
            "no end of itself",
            r##"{"type":"array","minItems":1,"items":{"$ref":"#"}}"##.into(),
            Refused("no value"),
        ),
        (
            "branches",
            format!(r#"{{"type":"object","anyOf":[{}]}}"#, joined(MANY, ",", object)),
            Refused("limit"),
        ),
        (
            "branches that exclude",
            format!(r#"{{"oneOf":[{}]}}"#, joined(MANY, ",", object)),
            Refused("alternatives"),
        ),
        (
            "doubling",
            {
                let both = |at| {
                    format!(r#"{{"anyOf":[{{"required":["a{at}"]}},{{"properties":{{"b{at}":false}}}}]}}"#)
                };
                format!(r#"{{"type":"object","allOf":[{}]}}"#, list(both, 40))
            },
            Refused("more than"),
        ),
        ("dependent schemas", dependents(2_000), Refused("limit")),
        ("deep Booleans", booleans(80), Reads("[80]")),
        ("values", format!(r#"{{"enum":[{}]}}"#, list(|at| format!("\"v{at}\""), MANY)), Reads("\"v77\"")),
        (
            "properties",
            format!(
                r#"{{"properties":{{{}}}}}"#,
                list(|at| format!("\"p{at}\":{{\"type\":\"null\"}}"), MANY)
            ),
            Reads(r#"{"p77":null}"#),
        ),
        (
            "a million properties",
            format!(r#"{{"properties":{{{}}}}}"#, list(|at| format!("\"p{at}\":{{}}"), 1_000_000)),
            Reads(r#"{"p77":1}"#),
        ),
        (
            "patterns of keys",
            format!(
                r#"{{"patternProperties":{{{}}}}}"#,
                list(|at| format!("\"a.*{at}\":{{\"minimum\":{at}}}"), 200)
            ),
            Refused("classes of keys"),
        ),
        (
            "an exponential pattern",
            r#"{"type":"string","not":{"pattern":"(a|b)*a(a|b){25}$"}}"#.into(),
            Reads("\"abba\""),
        ),
        ("repetitions", r#"{"pattern":"^(((a{1000}){1000}){1000})$"}"#.into(), Refused("pattern")),
        ("counts", r#"{"type":"array","minItems":1000000000000000000}"#.into(), Reads("")),
        ("lengths", r#"{"type":"string","minLength":1000000000000000000}"#.into(), Reads("")),
        ("members", r#"{"type":"object","minProperties":1000000000000000000}"#.into(), Reads("")),
        (
            "what items contain",
            format!(
                r#"{{"type":"array","allOf":[{}]}}"#,
                list(|at| format!("{{\"contains\":{{\"const\":{at}}}}}"), 15)
            ),
            Refused("more than"),
        ),
        (
            "multiples",
            r#"{"allOf":[{"multipleOf":1e-300},{"multipleOf":7},{"multipleOf":1e300}]}"#.into(),
            Reads("0"),
        ),
        ("bounds", r#"{"minimum":1e399,"maximum":12e399}"#.into(), Reads("1e400")),
        (
            "bounds far away",
            r#"{"minimum":1e400,"maximum":1e9999}"#.into(),
            Refused("a power of ten beyond 400"),
        ),
        (
            "many that differ",
            r#"{"uniqueItems":true,"items":{"minimum":-1e30,"maximum":1e30,"type":"integer"}}"#.into(),
            Reads("[1,2]"),
        ),
    ]
}

/// An object whose keys each ask for the next one: as many alternatives as keys, each of as many parts.
pub fn dependents(n: usize) -> String {
    let one = |at: usize| {
        format!(r#""k{at}":{{"required":["k{}"],"properties":{{"k{at}":{{"minimum":{at}}}}}}}"#, at + 1)
    };
    let all: Vec<String> = (0..n).map(one).collect();
    format!(r#"{{"dependentSchemas":{{{}}}}}"#, all.join(","))
}

/// Alternatives within parts within negations, each of which says something of the same array.
fn booleans(depth: usize) -> String {
    let one = |inner: String, at: usize| {
        let other = format!(r#"{{"type":"array","items":{{"const":{at}}},"minItems":1}}"#);
        format!(r#"{{"anyOf":[{other},{{"allOf":[{{"not":{{"not":{inner}}}}},{{"maxItems":1}}]}}]}}"#)
    };
    (1..=depth).fold(r#"{"type":"array","maxItems":0}"#.to_owned(), one)
}
