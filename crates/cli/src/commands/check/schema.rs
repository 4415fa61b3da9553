//! What there is to say of a JSON schema alone: what its parts cost, which change nothing, and which keys a
//! text lacks.

use std::collections::BTreeSet;
use std::io::Write;

use anygram::json_schema::Options;
use anygram_json_schema::explain::{self, Cost, MOST_STATES};
use anyhow::Result;
use serde_json::Value;

use super::NOT_YET;

/// Places whose cost is shown.
const SHOWN: usize = 12;
/// Parts that change nothing and are shown.
const SHOWN_IDLE: usize = 12;
/// Keys of which it is asked whether a text lacks them.
const ASKED: usize = 32;

/// What each part of a schema costs, and the parts that change nothing.
pub fn report(source: &str, options: &Options, output: &mut dyn Write) -> Result<()> {
    let (Ok(costs), Ok(idle)) = (explain::costs(source, options), explain::idle(source, options)) else {
        return Ok(());
    };
    let states = |n: usize, is_cut: bool| if is_cut { format!("{n}+") } else { n.to_string() };
    writeln!(output, "\nalternatives  states of objects and arrays  of strings and numbers  at")?;
    for cost in costs.iter().take(SHOWN) {
        let Cost { pointer, alternatives, structures, pieces, is_cut, .. } = cost;
        let place = if pointer.is_empty() { "the root" } else { pointer };
        let structures = states(*structures, *is_cut && structures >= pieces);
        let pieces = states(*pieces, *is_cut && *pieces >= MOST_STATES);
        writeln!(output, "{alternatives:>12}  {structures:>28}  {pieces:>22}  {place}")?;
    }
    if costs.len() > SHOWN {
        writeln!(output, "and {} more places", costs.len() - SHOWN)?;
    }
    if !idle.pointers.is_empty() {
        writeln!(output)?;
    }
    for pointer in idle.pointers.iter().take(SHOWN_IDLE) {
        writeln!(
            output,
            "{NOT_YET}warning{NOT_YET:#}: {pointer} changes nothing: the same texts are valid without it"
        )?;
    }
    if idle.pointers.len() > SHOWN_IDLE {
        writeln!(output, "and {} more parts that change nothing", idle.pointers.len() - SHOWN_IDLE)?;
    }
    if idle.n_unknown > 0 {
        writeln!(output, "of {} parts it was not found out whether they change anything", idle.n_unknown)?;
    }
    Ok(())
}

/// An object or array that is not closed, and what is complete in it, as it stands in the text; a number at
/// the end of the text may go on, so it is not known.
enum Open {
    Object { members: Vec<(String, Option<String>)>, key: Option<String> },
    Array(Vec<Option<String>>),
}

/// The keys that a text lacks in the innermost object that is open where its viable beginning ends: no valid
/// text goes on from what is complete without them. `completion` may say which to ask for.
pub fn missing_keys(
    source: &str,
    options: &Options,
    prefix: &[u8],
    completion: Option<&[u8]>,
    expected: &[&str],
) -> Vec<String> {
    let open = open(prefix);
    let Some(Open::Object { members, key: None }) = open.last() else { return Vec::new() };
    let written: BTreeSet<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
    let mut asked: Vec<String> = Vec::new();
    let whole = completion.map(|completion| [prefix, completion].concat());
    let whole = whole.and_then(|whole| serde_json::from_slice::<Value>(&whole).ok());
    if let Some(Value::Object(members)) = whole.as_ref().and_then(|whole| innermost(whole, &open)) {
        asked.extend(members.keys().cloned());
    }
    asked.extend(expected.iter().filter_map(|name| serde_json::from_str::<String>(name).ok()));
    if let Ok(schema) = serde_json::from_str(source) {
        required(&schema, &mut asked);
    }
    let mut seen = BTreeSet::new();
    asked.retain(|key| !written.contains(key.as_str()) && seen.insert(key.clone()));
    asked.truncate(ASKED);
    asked.retain(|key| explain::excludes(source, &lacking(&open, key), options) == Some(true));
    asked
}

/// The keys that some schema requires.
fn required(schema: &Value, found: &mut Vec<String>) {
    let mut agenda = vec![schema];
    while let Some(value) = agenda.pop() {
        match value {
            Value::Object(members) => {
                let keys = members.get("required").and_then(Value::as_array).into_iter().flatten();
                found.extend(keys.filter_map(Value::as_str).map(str::to_owned));
                agenda.extend(members.values());
            }
            Value::Array(items) => agenda.extend(items),
            _ => {}
        }
    }
}

/// The value at the end of what is open.
fn innermost<'v>(whole: &'v Value, open: &[Open]) -> Option<&'v Value> {
    let outer = &open[..open.len().checked_sub(1)?];
    outer.iter().try_fold(whole, |value, open| match open {
        Open::Object { key, .. } => value.get(key.as_ref()?),
        Open::Array(items) => value.get(items.len()),
    })
}

/// The schema of texts that go on from what is complete, but that the innermost object lacks a key.
fn lacking(open: &[Open], key: &str) -> String {
    let mut schema = format!("\"not\":{{\"required\":[{}]}}", Value::from(key));
    for open in open.iter().rev() {
        schema = match open {
            Open::Object { members, key } => {
                let mut keys: Vec<String> =
                    members.iter().map(|(key, _)| Value::from(key.as_str()).to_string()).collect();
                let values = members.iter().map(|(_, text)| constant(text));
                let mut properties: Vec<String> =
                    keys.iter().zip(values).map(|(key, value)| format!("{key}:{value}")).collect();
                let mut rest = String::new();
                match key {
                    Some(key) => {
                        let key = Value::from(key.as_str()).to_string();
                        properties.push(format!("{key}:{{{schema}}}"));
                        keys.push(key);
                    }
                    None => rest = format!(",{schema}"),
                }
                let (keys, properties) = (keys.join(","), properties.join(","));
                format!(r#""type":"object","required":[{keys}],"properties":{{{properties}}}{rest}"#)
            }
            Open::Array(items) => {
                let consts: Vec<String> = items.iter().map(constant).collect();
                let n = consts.len() + 1;
                let prefix: Vec<String> = consts.into_iter().chain([format!("{{{schema}}}")]).collect();
                let prefix = prefix.join(",");
                format!(r#""type":"array","minItems":{n},"prefixItems":[{prefix}]"#)
            }
        };
    }
    format!(r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema",{schema}}}"#)
}

/// The schema of a value that is complete.
fn constant(text: &Option<String>) -> String {
    text.as_ref().map_or_else(|| "true".to_owned(), |text| format!("{{\"const\":{text}}}"))
}

/// What is open at the end of the beginning of a JSON text. A value in progress is left out.
fn open(prefix: &[u8]) -> Vec<Open> {
    let text = String::from_utf8_lossy(prefix);
    let text = text.as_ref();
    let mut open: Vec<(usize, Open)> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        match bytes[at] {
            b'{' => {
                open.push((at, Open::Object { members: Vec::new(), key: None }));
                at += 1;
                continue;
            }
            b'[' => {
                open.push((at, Open::Array(Vec::new())));
                at += 1;
                continue;
            }
            b'}' | b']' => {
                let Some((from, _)) = open.pop() else { break };
                at += 1;
                complete(&mut open, Some(&text[from..at]));
                continue;
            }
            b'"' => {
                let rest = &bytes[at + 1..];
                let mut escaped = false;
                let end = rest.iter().position(|&byte| {
                    let ends = byte == b'"' && !escaped;
                    escaped = byte == b'\\' && !escaped;
                    ends
                });
                let Some(end) = end else {
                    // In a key nothing is missing yet.
                    if let Some((_, Open::Object { key: key @ None, .. })) = open.last_mut() {
                        *key = Some(String::new());
                    }
                    break;
                };
                at += end + 2;
            }
            b':' | b',' | b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            _ => {
                let is_end = |byte: &u8| b",]} \t\n\r".contains(byte);
                match bytes[at..].iter().position(is_end) {
                    Some(n) => at += n,
                    None => at = bytes.len(),
                }
            }
        }
        let word = &text[from..at];
        if let Some((_, Open::Object { key: key @ None, .. })) = open.last_mut() {
            *key = serde_json::from_str(word).ok();
        } else if serde_json::from_str::<Value>(word).is_ok() {
            let may_go_on = at == bytes.len() && word.ends_with(|last: char| last.is_ascii_digit());
            complete(&mut open, (!may_go_on).then_some(word));
        }
    }
    open.into_iter().map(|(_, open)| open).collect()
}

/// Adds a complete value to what it stands in.
fn complete(open: &mut [(usize, Open)], text: Option<&str>) {
    match open.last_mut() {
        Some((_, Open::Object { members, key })) => {
            members.extend(key.take().map(|key| (key, text.map(str::to_owned))));
        }
        Some((_, Open::Array(items))) => items.push(text.map(str::to_owned)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::missing_keys;

    #[test]
    fn keys_that_texts_lack() {
        let schema = r#"{"type":"object","required":["name","of"],"properties":{
            "of":{"type":"array","items":{"oneOf":[
                {"properties":{"kind":{"const":"a"}},"required":["kind","x"]},
                {"properties":{"kind":{"const":"b"}},"required":["kind"]}]}}}}"#;
        let missing = |text: &str, completion: Option<&str>, expected: &[&str]| {
            let completion = completion.map(str::as_bytes);
            missing_keys(schema, &Default::default(), text.as_bytes(), completion, expected)
        };
        let all = ["\"name\"", "\"of\"", "\"kind\"", "\"x\"", "another key"];
        assert_eq!(missing("{", None, &all), ["name", "of"]);
        assert_eq!(missing(r#"{"name":1"#, None, &[]), ["of"]);
        assert_eq!(missing(r#"{"name":"x""#, Some(r#","of":[]}"#), &[]), ["of"]);
        assert_eq!(missing(r#"{"name":1,"of":[{"kind":"a""#, None, &all), ["x"]);
        assert_eq!(missing(r#"{"name":1,"of":[{"kind":"b"},{"kind":"b""#, None, &all), Vec::<String>::new());
        assert_eq!(missing(r#"{"of":[]"#, None, &all), ["name"]);
        // A member in progress, an array, a text that is complete.
        for text in [r#"{"name":"#, r#"{"of":["#, r#"{"na"#] {
            assert_eq!(missing(text, None, &all), Vec::<String>::new(), "{text}");
        }
    }
}
