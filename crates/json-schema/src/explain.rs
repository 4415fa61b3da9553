//! What there is to know of a schema: what each part of it costs, and which parts change nothing.
//!
//! Costs are those of the grammar, by the place of the schema for which it has them: alternatives, and states
//! of automata, which are counted up to a bound. A part changes nothing if the same values are valid without
//! it: the schema and the one without the part are compiled together, each with the negation of the other,
//! and neither has a value. So the cost is a few times that of the schema for each part that is looked at.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use anygram_grammar::automata::{PieceAutomaton, RuleAutomaton};

use crate::document::{LISTS, MAPS, SINGLE, escaped};
use crate::refusal::{Kind, Refusal};
use crate::value::Value;
use crate::{Options, lowered, read};

/// States of one automaton that are counted.
pub const MOST_STATES: usize = 1_000;

/// Parts that are looked at, and bytes of schemas that are read for that, all of them together.
const PARTS: usize = 200;
const BYTES: usize = 1_000_000;

/// Clauses to which such a comparison may come.
const CLAUSES: usize = 500;
const ALL_CLAUSES: usize = 20_000;

/// What the schemas at one place cost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// The JSON pointer of the place.
    pub pointer: String,
    /// Sets of schemas that hold together there: each is a nonterminal.
    pub sets: usize,
    /// Their alternatives: rules.
    pub alternatives: usize,
    /// States of objects and arrays.
    pub structures: usize,
    /// States of strings, keys and numbers.
    pub pieces: usize,
    /// Whether some automaton has more than [`MOST_STATES`], as many as are counted of it.
    pub is_cut: bool,
}

impl Cost {
    fn size(&self) -> usize {
        self.alternatives + self.structures + self.pieces
    }
}

/// What each place of a schema costs, what costs most first.
pub fn costs(schema: &str, options: &Options) -> Result<Vec<Cost>, Refusal> {
    let lowered = lowered(schema, options)?;
    let mut costs: BTreeMap<&str, Cost> = BTreeMap::new();
    let cost = |costs: &mut BTreeMap<_, Cost>, pointer| {
        let fresh = Cost { pointer: String::clone(pointer), ..Cost::default() };
        costs.entry(pointer.as_str()).or_insert(fresh).clone()
    };
    for pointer in &lowered.places {
        let old = cost(&mut costs, pointer);
        costs.insert(pointer, Cost { sets: old.sets + 1, ..old });
    }
    for rule in &lowered.rules {
        let pointer = &lowered.places[rule.lhs.index()];
        let old = cost(&mut costs, pointer);
        costs.insert(pointer, Cost { alternatives: old.alternatives + 1, ..old });
    }
    for (lhs, automaton, _) in &lowered.automata {
        let pointer = &lowered.places[lhs.index()];
        let (n, is_cut) = rule_states(&**automaton);
        let old = cost(&mut costs, pointer);
        let is_cut = is_cut || old.is_cut;
        costs.insert(pointer, Cost { structures: old.structures + n, is_cut, ..old });
    }
    for (pieces, pointer) in lowered.pieces.iter().zip(&lowered.piece_places) {
        let (n, is_cut) = piece_states(&**pieces);
        let old = cost(&mut costs, pointer);
        let is_cut = is_cut || old.is_cut;
        costs.insert(pointer, Cost { pieces: old.pieces + n, is_cut, ..old });
    }
    let mut costs: Vec<Cost> = costs.into_values().collect();
    costs.sort_by(|a, b| b.size().cmp(&a.size()).then_with(|| a.pointer.cmp(&b.pointer)));
    Ok(costs)
}

/// The states that can be come to, as far as they are counted, and whether there are more.
fn count(start: u32, mut next: impl FnMut(u32, &mut Vec<u32>)) -> (usize, bool) {
    let mut known = HashSet::from([start]);
    let (mut agenda, mut reached) = (vec![start], Vec::new());
    while let Some(state) = agenda.pop() {
        next(state, &mut reached);
        for to in reached.drain(..) {
            if known.len() >= MOST_STATES && !known.contains(&to) {
                return (known.len(), true);
            }
            if known.insert(to) {
                agenda.push(to);
            }
        }
    }
    (known.len(), false)
}

fn rule_states(automaton: &dyn RuleAutomaton) -> (usize, bool) {
    count(automaton.start(), |state, reached| {
        let symbols = automaton.symbols(state);
        reached.extend(symbols.iter().filter_map(|&symbol| automaton.step(state, symbol).ok()));
    })
}

fn piece_states(pieces: &dyn PieceAutomaton) -> (usize, bool) {
    let classes = pieces.classes();
    let mut seen = HashSet::new();
    let bytes: Vec<u8> = (0..=u8::MAX).filter(|&byte| seen.insert(classes[usize::from(byte)])).collect();
    count(pieces.start(), |state, reached| {
        reached.extend(bytes.iter().filter_map(|&byte| pieces.step(state, byte).ok().flatten()));
    })
}

/// Parts of a schema that change nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Idle {
    /// The JSON pointers of alternatives, values of `enum` and properties without which the same texts are
    /// valid.
    pub pointers: Vec<String>,
    /// Parts of which that was not found out: comparing took too much, or there are too many.
    pub n_unknown: usize,
}

/// Finds the parts of a schema that change nothing: alternatives of `anyOf` and `oneOf`, values of `enum`,
/// properties.
pub fn idle(schema: &str, options: &Options) -> Result<Idle, Refusal> {
    let whole = read::read(schema).map_err(|error| error.refusal("the schema"))?;
    let (mut parts, mut found) = (Vec::new(), Idle::default());
    collect(&whole, &mut Vec::new(), &mut parts);
    let most = PARTS.min(BYTES / schema.len().max(1));
    found.n_unknown = parts.len().saturating_sub(most);
    for path in parts.into_iter().take(most) {
        let other = without(&whole, &path);
        match (implies(&whole, &other, options), implies(&other, &whole, options)) {
            (Some(true), Some(true)) => found.pointers.push(pointer(&path)),
            (Some(false), _) | (_, Some(false)) => {}
            _ => found.n_unknown += 1,
        }
    }
    Ok(found)
}

/// Whether no value is valid by both schemas; `None` if that is not known.
pub fn excludes(schema: &str, other: &str, options: &Options) -> Option<bool> {
    let both = r#"{"allOf":[{"$ref":"anygram:schema"},{"$ref":"anygram:other"}]}"#;
    is_empty(both, [schema.to_owned(), other.to_owned()], options)
}

/// Whether all values of one schema are valid by another.
fn implies(schema: &Value, other: &Value, options: &Options) -> Option<bool> {
    let both = r#"{"allOf":[{"$ref":"anygram:schema"},{"not":{"$ref":"anygram:other"}}]}"#;
    is_empty(both, [unnamed(schema).to_string(), unnamed(other).to_string()], options)
}

fn is_empty(both: &str, [schema, other]: [String; 2], options: &Options) -> Option<bool> {
    let mut options = options.clone();
    options.documents.push(("anygram:schema".to_owned(), schema));
    options.documents.push(("anygram:other".to_owned(), other));
    options.limits.clauses = options.limits.clauses.min(CLAUSES);
    options.limits.all_clauses = options.limits.all_clauses.min(ALL_CLAUSES);
    match crate::emptiness(both, &options) {
        Ok(()) => Some(false),
        Err(refusal) if refusal.kind == Kind::Unsatisfiable => Some(true),
        Err(_) => None,
    }
}

/// A schema without the address that it gives itself, so that two of them can stand side by side.
fn unnamed(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_name = |key: &str| matches!(key, "$id" | "id");
            Value::Object(members.iter().filter(|(key, _)| !is_name(key)).cloned().collect())
        }
        schema => schema.clone(),
    }
}

/// A step into a schema: a member or an item.
#[derive(Clone, PartialEq, Debug)]
enum Step {
    Key(String),
    Item(usize),
}

/// The parts that may change nothing.
fn collect(schema: &Value, path: &mut Vec<Step>, parts: &mut Vec<Vec<Step>>) {
    let Some(members) = schema.members() else { return };
    for (keyword, value) in members {
        path.push(Step::Key(keyword.to_string()));
        let is_part = matches!(&**keyword, "anyOf" | "oneOf" | "enum" | "properties");
        match value {
            Value::Array(items) if LISTS.contains(&&**keyword) || &**keyword == "enum" => {
                for (at, item) in items.iter().enumerate() {
                    path.push(Step::Item(at));
                    if is_part && !matches!(item, Value::Bool(false)) || &**keyword == "enum" {
                        parts.push(path.clone());
                    }
                    if &**keyword != "enum" {
                        collect(item, path, parts);
                    }
                    path.pop();
                }
            }
            Value::Object(below) if MAPS.contains(&&**keyword) => {
                for (key, schema) in below {
                    path.push(Step::Key(key.to_string()));
                    if is_part && !matches!(schema, Value::Bool(false)) {
                        parts.push(path.clone());
                    }
                    collect(schema, path, parts);
                    path.pop();
                }
            }
            value if SINGLE.contains(&&**keyword) => collect(value, path, parts),
            _ => {}
        }
        path.pop();
    }
}

/// The schema with `false` in place of a part, or without a value of an `enum`.
fn without(value: &Value, path: &[Step]) -> Value {
    match (path, value) {
        ([Step::Key(keyword), Step::Item(at)], Value::Object(members)) if keyword == "enum" => {
            let left = |values: &Value| match values {
                Value::Array(values) => {
                    let kept = values.iter().enumerate().filter(|(other, _)| other != at);
                    Value::Array(kept.map(|(_, value)| value.clone()).collect())
                }
                values => values.clone(),
            };
            let member = |(key, value): &(Arc<str>, Value)| {
                let is_it = **key == *keyword;
                (key.clone(), if is_it { left(value) } else { value.clone() })
            };
            Value::Object(members.iter().map(member).collect())
        }
        ([], _) => Value::Bool(false),
        ([Step::Key(step), rest @ ..], Value::Object(members)) => {
            let member = |(key, value): &(Arc<str>, Value)| {
                let is_it = **key == **step;
                (key.clone(), if is_it { without(value, rest) } else { value.clone() })
            };
            Value::Object(members.iter().map(member).collect())
        }
        ([Step::Item(step), rest @ ..], Value::Array(items)) => {
            let item =
                |(at, item): (usize, &Value)| if at == *step { without(item, rest) } else { item.clone() };
            Value::Array(items.iter().enumerate().map(item).collect())
        }
        _ => value.clone(),
    }
}

fn pointer(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Key(key) => format!("/{}", escaped(key)),
        Step::Item(at) => format!("/{at}"),
    };
    path.iter().map(step).collect()
}
