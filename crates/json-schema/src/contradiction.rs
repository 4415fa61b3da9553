//! What of a schema that no value satisfies contradicts what.
//!
//! Keywords are left out one by one, the outermost first, as long as what is left has no value either: what
//! then remains is needed for the contradiction, every part of it (a minimal unsatisfiable subset, found by
//! deletion). Cost: the schema is read once for each part that is tried, so their number is bounded.

use std::collections::BTreeSet;

use crate::document::escaped;
use crate::value::Value;

/// Parts that are left out to see whether they matter.
const TRIALS: usize = 300;

/// Bytes of schemas that are read for that, all of them together.
const BYTES: usize = 1_000_000;

/// Parts that a message names.
const NAMED: usize = 5;

/// Keywords whose values are no schemas, and those that say more the less stands in them.
const WHOLE: [&str; 8] = ["const", "default", "enum", "examples", "if", "not", "$schema", "$id"];

/// Steps into a schema: members or items, by number.
type Path = Vec<usize>;

/// JSON pointers of the keywords that together leave no value; none if that takes too long to find out, or if
/// they are many. `has_none` says whether a schema is known to have no value.
pub fn keywords(schema: &Value, mut has_none: impl FnMut(&Value) -> bool) -> Vec<String> {
    let (mut removed, mut kept) = (BTreeSet::new(), Vec::new());
    let mut agenda: Vec<Path> = steps(schema, &[]);
    let mut n_trials = 0;
    let most = TRIALS.min(BYTES / schema.to_string().len().max(1));
    while let Some(path) = agenda.pop() {
        if is_optional(schema, &path) {
            n_trials += 1;
            if n_trials > most {
                return Vec::new();
            }
            removed.insert(path.clone());
            if has_none(&without(schema, &removed, &mut Vec::new())) {
                continue;
            }
            removed.remove(&path);
        }
        agenda.extend(steps(schema, &path));
        kept.push(path);
    }
    let is_leaf =
        |path: &&Path| !kept.iter().any(|other| other.len() > path.len() && other.starts_with(path));
    let mut leaves: Vec<&Path> = kept.iter().filter(is_leaf).collect();
    leaves.sort_unstable();
    if leaves.len() > NAMED {
        Vec::new()
    } else {
        leaves.into_iter().map(|path| pointer(schema, path)).collect()
    }
}

/// The value at the end of a path, and the keyword or key that leads to it.
fn at<'a>(schema: &'a Value, path: &[usize]) -> (&'a Value, Option<&'a str>) {
    path.iter().fold((schema, None), |(value, _), &step| match value {
        Value::Object(members) => (&members[step].1, Some(&*members[step].0)),
        Value::Array(items) => (&items[step], None),
        value => (value, None),
    })
}

/// The parts of a part, the last first.
fn steps(schema: &Value, path: &[usize]) -> Vec<Path> {
    let (value, name) = at(schema, path);
    let n = match value {
        _ if name.is_some_and(|name| WHOLE.contains(&name)) => 0,
        Value::Object(members) => members.len(),
        Value::Array(items)
            if name == Some("required") || items.iter().any(|item| item.members().is_some()) =>
        {
            items.len()
        }
        _ => 0,
    };
    (0..n).rev().map(|step| path.iter().copied().chain([step]).collect()).collect()
}

/// Whether a schema says less without a part.
fn is_optional(schema: &Value, path: &[usize]) -> bool {
    let Some((_, before)) = path.split_last() else { return false };
    match at(schema, before) {
        (Value::Array(_), name) => matches!(name, Some("allOf" | "required")),
        _ => !matches!(at(schema, path).1, Some("$schema" | "$id")),
    }
}

/// The schema without some parts.
fn without(value: &Value, removed: &BTreeSet<Path>, path: &mut Path) -> Value {
    let mut part = |step: usize, value: &Value| {
        path.push(step);
        let kept = (!removed.contains(path)).then(|| without(value, removed, path));
        path.pop();
        kept
    };
    match value {
        Value::Array(items) => {
            Value::Array(items.iter().enumerate().filter_map(|(step, item)| part(step, item)).collect())
        }
        Value::Object(members) => {
            let members = members.iter().enumerate();
            let kept = members.filter_map(|(step, (key, value))| Some((key.clone(), part(step, value)?)));
            Value::Object(kept.collect())
        }
        value => value.clone(),
    }
}

fn pointer(schema: &Value, path: &[usize]) -> String {
    let step = |end: usize| match at(schema, &path[..end]).1 {
        Some(name) => escaped(name).into_owned(),
        None => path[end - 1].to_string(),
    };
    (1..=path.len()).map(|end| format!("/{}", step(end))).collect()
}
