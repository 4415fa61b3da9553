//! Whether a value is valid, keyword by keyword, as the specifications say it.

use std::collections::BTreeSet;
use std::fmt;

use crate::decimal::Decimal;
use crate::dialect::{Dialect, Draft};
use crate::formats;
use crate::json::Value;
use crate::registry::{Place, Schema, address};

/// What `format` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Formats {
    /// It constrains strings, if the format is one of [`formats::NAMES`].
    Assert,
    /// It says nothing, except where a metaschema demands `format-assertion`.
    Annotate,
}

/// How a value is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What `format` means.
    pub formats: Formats,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Undecided {
    /// A reference leads nowhere.
    Unresolvable(String),
    /// A reference leads back to itself, for the same value.
    InfiniteReference,
    /// A keyword's value has a shape that the draft does not allow.
    Malformed(String),
    /// The text of a pattern is no pattern of ECMA-262.
    Pattern(String),
    /// Schemas apply each other more than [`MAX_DEPTH`] deep.
    TooDeep,
    /// More than [`MAX_STEPS`] schemas would have to be applied.
    TooMuchWork,
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolvable(reference) => write!(f, "the reference {reference} leads nowhere"),
            Self::InfiniteReference => write!(f, "a reference leads back to itself for the same value"),
            Self::Malformed(keyword) => {
                write!(f, "the value of `{keyword}` has a shape that its draft does not know")
            }
            Self::Pattern(pattern) => write!(f, "`{pattern}` is no pattern of ECMA-262"),
            Self::TooMuchWork => write!(f, "more than {MAX_STEPS} schemas would have to be applied"),
            Self::TooDeep => write!(f, "schemas apply each other more than {MAX_DEPTH} deep"),
        }
    }
}

impl std::error::Error for Undecided {}

/// How deep schemas may apply each other.
pub const MAX_DEPTH: usize = 600;

/// How often schemas may be applied for one value: a chain of definitions that each refer to the next twice
/// takes exponential time.
pub const MAX_STEPS: usize = 2_000_000;

type Verdict = Result<bool, Undecided>;

impl Schema<'_> {
    /// Whether the value is valid.
    pub fn is_valid(&self, value: &Value, options: Options) -> Verdict {
        let mut evaluation =
            Evaluation { schema: self, options, scope: Vec::new(), active: Vec::new(), depth: 0, steps: 0 };
        Ok(evaluation.apply(self.index.root_of(self.root), value)?.is_some())
    }

    /// Whether the pattern is found in the text, read as ECMA-262 with the flag `u`, or else by Annex B.
    fn finds(&self, pattern: &str, text: &str) -> Verdict {
        let mut patterns = self.patterns.borrow_mut();
        let compiled = patterns.entry(pattern.to_owned()).or_insert_with(|| {
            let compile = |flags| regress::Regex::with_flags(pattern, flags).ok();
            compile("u").or_else(|| compile(""))
        });
        let compiled = compiled.as_ref().ok_or_else(|| Undecided::Pattern(pattern.to_owned()))?;
        Ok(compiled.find(text).is_some())
    }
}

/// The members and items of one value that some schema has looked at: the annotations on which
/// `unevaluatedProperties` and `unevaluatedItems` depend.
#[derive(Clone, Default, Debug)]
struct Seen {
    properties: BTreeSet<usize>,
    items: BTreeSet<usize>,
}

impl Seen {
    fn join(&mut self, other: Seen) {
        self.properties.extend(other.properties);
        self.items.extend(other.items);
    }
}

/// A schema object at work on a value.
struct Frame<'r, 'v> {
    place: Place<'r>,
    dialect: Dialect,
    value: &'v Value,
    seen: Seen,
}

impl<'r> Frame<'r, '_> {
    /// The value of a keyword, if the dialect has it.
    fn keyword(&self, keyword: &str) -> Option<&'r Value> {
        self.place.schema.get(keyword).filter(|_| self.dialect.has(keyword))
    }

    fn strings(&self, keyword: &str) -> Result<Option<Vec<&'r str>>, Undecided> {
        self.keyword(keyword).map(|value| strings(value, keyword)).transpose()
    }

    fn array(&self, keyword: &str) -> Result<Option<&'r [Value]>, Undecided> {
        self.keyword(keyword).map(|value| value.as_array().ok_or_else(|| malformed(keyword))).transpose()
    }

    fn object(&self, keyword: &str) -> Result<Option<&'r [(String, Value)]>, Undecided> {
        self.keyword(keyword).map(|value| value.as_object().ok_or_else(|| malformed(keyword))).transpose()
    }

    fn number(&self, keyword: &str) -> Result<Option<&'r Decimal>, Undecided> {
        self.keyword(keyword).map(|value| value.as_number().ok_or_else(|| malformed(keyword))).transpose()
    }

    fn string(&self, keyword: &str) -> Result<Option<&'r str>, Undecided> {
        self.keyword(keyword).map(|value| value.as_str().ok_or_else(|| malformed(keyword))).transpose()
    }

    /// Whether a count is within the bounds of two keywords.
    fn counts(&self, count: usize, least: &str, most: &str) -> Verdict {
        let count = Decimal::from(count);
        let enough = self.number(least)?.is_none_or(|least| *least <= count);
        Ok(enough & self.number(most)?.is_none_or(|most| count <= *most))
    }
}

fn malformed(keyword: &str) -> Undecided {
    Undecided::Malformed(keyword.to_owned())
}

fn strings<'v>(value: &'v Value, keyword: &str) -> Result<Vec<&'v str>, Undecided> {
    let items = value.as_array().ok_or_else(|| malformed(keyword))?;
    items.iter().map(|item| item.as_str().ok_or_else(|| malformed(keyword))).collect()
}

struct Evaluation<'e, 'r> {
    schema: &'e Schema<'r>,
    options: Options,
    /// The dynamic scope: the resources entered and not left, outermost first, each once.
    scope: Vec<usize>,
    /// The references being followed: schema, value, and the scope.
    active: Vec<(usize, usize, Vec<usize>)>,
    depth: usize,
    steps: usize,
}

impl<'r> Evaluation<'_, 'r> {
    /// Applies a schema: what it has seen of the value, or `None` if the value is not valid.
    fn apply(&mut self, place: Place<'r>, value: &Value) -> Result<Option<Seen>, Undecided> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Undecided::TooMuchWork);
        }
        match place.schema {
            Value::Bool(valid) => Ok(valid.then(Seen::default)),
            Value::Object(_) => {
                if self.depth == MAX_DEPTH {
                    return Err(Undecided::TooDeep);
                }
                let outer = self.scope.len();
                if !self.scope.contains(&place.resource) {
                    self.scope.push(place.resource);
                }
                self.depth += 1;
                let dialect = self.schema.index.resources[place.resource].dialect;
                let result = self.object(Frame { place, dialect, value, seen: Seen::default() });
                self.depth -= 1;
                self.scope.truncate(outer);
                result
            }
            _ => Err(malformed("schema")),
        }
    }

    /// Applies a schema that stands in the frame's to a part of the value.
    fn valid_below(&mut self, schema: &'r Value, frame: &Frame<'r, '_>, value: &Value) -> Verdict {
        let place = self.schema.index.below(schema, frame.place);
        Ok(self.apply(place, value)?.is_some())
    }

    /// Applies a schema that stands in the frame's to the frame's own value. What it sees is the frame's.
    fn in_place(&mut self, schema: &'r Value, frame: &mut Frame<'r, '_>) -> Verdict {
        let place = self.schema.index.below(schema, frame.place);
        let seen = self.apply(place, frame.value)?;
        let valid = seen.is_some();
        frame.seen.join(seen.unwrap_or_default());
        Ok(valid)
    }

    /// Applies a schema object. Every keyword is asked, so that what one cannot answer is never hidden.
    fn object(&mut self, mut frame: Frame<'r, '_>) -> Result<Option<Seen>, Undecided> {
        let frame = &mut frame;
        let mut valid = self.references(frame)?;
        if frame.dialect.ref_hides_siblings() && frame.keyword("$ref").is_some() {
            return Ok(valid.then(|| std::mem::take(&mut frame.seen)));
        }
        valid &= self.logic(frame)?;
        valid &= self.condition(frame)?;
        valid &= types(frame)?;
        match frame.value {
            Value::Number(number) => valid &= numbers(frame, number)?,
            Value::String(text) => valid &= self.strings(frame, text)?,
            Value::Array(items) => {
                valid &= array_bounds(frame, items)?;
                valid &= self.items(frame, items)?;
                valid &= self.contains(frame, items)?;
                valid &= self.unevaluated_items(frame, items)?;
            }
            Value::Object(members) => {
                valid &= object_bounds(frame, members)?;
                valid &= self.dependencies(frame)?;
                valid &= self.properties(frame, members)?;
                valid &= self.property_names(frame, members)?;
                valid &= self.unevaluated_properties(frame, members)?;
            }
            Value::Null | Value::Bool(_) => {}
        }
        Ok(valid.then(|| std::mem::take(&mut frame.seen)))
    }

    fn references(&mut self, frame: &mut Frame<'r, '_>) -> Verdict {
        let resource = frame.place.resource;
        let mut valid = true;
        if let Some(reference) = frame.string("$ref")? {
            let (target, _) = self.schema.index.follow(reference, resource)?;
            valid &= self.reference(target, frame)?;
        }
        if let Some(reference) = frame.string("$recursiveRef")? {
            let (plain, _) = self.schema.index.follow(reference, resource)?;
            valid &= self.reference(self.schema.index.recursive(plain, &self.scope), frame)?;
        }
        if let Some(reference) = frame.string("$dynamicRef")? {
            let (plain, anchor) = self.schema.index.follow(reference, resource)?;
            let target = anchor.map_or(plain, |name| self.schema.index.dynamic(name, plain, &self.scope));
            valid &= self.reference(target, frame)?;
        }
        Ok(valid)
    }

    /// Applies what a reference refers to, unless it is being applied to this value in this scope already.
    fn reference(&mut self, target: Place<'r>, frame: &mut Frame<'r, '_>) -> Verdict {
        let key = (address(target.schema), address(frame.value), self.scope.clone());
        if self.active.contains(&key) {
            return Err(Undecided::InfiniteReference);
        }
        self.active.push(key);
        let seen = self.apply(target, frame.value);
        self.active.pop();
        let seen = seen?;
        let valid = seen.is_some();
        frame.seen.join(seen.unwrap_or_default());
        Ok(valid)
    }

    fn logic(&mut self, frame: &mut Frame<'r, '_>) -> Verdict {
        let mut valid = true;
        for (keyword, holds) in [
            ("allOf", (|count, all| count == all) as fn(usize, usize) -> bool),
            ("anyOf", |count, _| count >= 1),
            ("oneOf", |count, _| count == 1),
        ] {
            let Some(schemas) = frame.array(keyword)? else { continue };
            let mut count = 0;
            for schema in schemas {
                count += usize::from(self.in_place(schema, frame)?);
            }
            valid &= holds(count, schemas.len());
        }
        if let Some(schema) = frame.keyword("not") {
            valid &= !self.valid_below(schema, frame, frame.value)?;
        }
        Ok(valid)
    }

    fn condition(&mut self, frame: &mut Frame<'r, '_>) -> Verdict {
        let Some(condition) = frame.keyword("if") else { return Ok(true) };
        let branch = if self.in_place(condition, frame)? { "then" } else { "else" };
        frame.keyword(branch).map_or(Ok(true), |schema| self.in_place(schema, frame))
    }

    fn strings(&self, frame: &Frame<'r, '_>, text: &str) -> Verdict {
        let mut valid = frame.counts(text.chars().count(), "minLength", "maxLength")?;
        if let Some(pattern) = frame.string("pattern")? {
            valid &= self.schema.finds(pattern, text)?;
        }
        let asserted = self.options.formats != Formats::Annotate || frame.dialect.asserts_formats;
        if let Some(format) = frame.string("format")?.filter(|_| asserted) {
            valid &= formats::accepts(format, text).unwrap_or(true);
        }
        Ok(valid)
    }

    fn items(&mut self, frame: &mut Frame<'r, '_>, items: &[Value]) -> Verdict {
        let (prefix, rest) = item_schemas(frame)?;
        let mut valid = true;
        for (at, item) in items.iter().enumerate() {
            let Some(schema) = prefix.get(at).or(rest) else { break };
            valid &= self.valid_below(schema, frame, item)?;
            frame.seen.items.insert(at);
        }
        Ok(valid)
    }

    fn contains(&mut self, frame: &mut Frame<'r, '_>, items: &[Value]) -> Verdict {
        let Some(schema) = frame.keyword("contains") else { return Ok(true) };
        let mut count = 0;
        for (at, item) in items.iter().enumerate() {
            if self.valid_below(schema, frame, item)? {
                count += 1;
                if frame.dialect.draft >= Draft::Draft202012 {
                    frame.seen.items.insert(at);
                }
            }
        }
        let least_one = count >= 1 || frame.keyword("minContains").is_some();
        Ok(frame.counts(count, "minContains", "maxContains")? && least_one)
    }

    fn unevaluated_items(&mut self, frame: &mut Frame<'r, '_>, items: &[Value]) -> Verdict {
        let Some(schema) = frame.keyword("unevaluatedItems") else { return Ok(true) };
        let mut valid = true;
        for (at, item) in items.iter().enumerate() {
            if !frame.seen.items.contains(&at) {
                valid &= self.valid_below(schema, frame, item)?;
                frame.seen.items.insert(at);
            }
        }
        Ok(valid)
    }

    fn properties(&mut self, frame: &mut Frame<'r, '_>, members: &[(String, Value)]) -> Verdict {
        let named = frame.object("properties")?.unwrap_or_default();
        let patterns = frame.object("patternProperties")?.unwrap_or_default();
        let additional = frame.keyword("additionalProperties");
        let mut valid = true;
        for (at, (key, value)) in members.iter().enumerate() {
            let mut schemas: Vec<&'r Value> =
                named.iter().filter(|(name, _)| name == key).map(|(_, schema)| schema).collect();
            for (pattern, schema) in patterns {
                if self.schema.finds(pattern, key)? {
                    schemas.push(schema);
                }
            }
            if schemas.is_empty() {
                schemas.extend(additional);
            }
            for schema in schemas {
                valid &= self.valid_below(schema, frame, value)?;
                frame.seen.properties.insert(at);
            }
        }
        Ok(valid)
    }

    fn property_names(&mut self, frame: &Frame<'r, '_>, members: &[(String, Value)]) -> Verdict {
        let Some(schema) = frame.keyword("propertyNames") else { return Ok(true) };
        let mut valid = true;
        for (key, _) in members {
            valid &= self.valid_below(schema, frame, &Value::String(key.clone()))?;
        }
        Ok(valid)
    }

    /// `dependentRequired`, `dependentSchemas` and `dependencies`.
    fn dependencies(&mut self, frame: &mut Frame<'r, '_>) -> Verdict {
        let mut valid = true;
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for (key, dependent) in frame.object(keyword)?.unwrap_or_default() {
                if frame.value.get(key).is_none() {
                    continue;
                }
                let is_list = dependent.as_array().is_some();
                if keyword == "dependentRequired" || (keyword == "dependencies" && is_list) {
                    let names = strings(dependent, keyword)?;
                    valid &= names.iter().all(|name| frame.value.get(name).is_some());
                } else {
                    valid &= self.in_place(dependent, frame)?;
                }
            }
        }
        Ok(valid)
    }

    fn unevaluated_properties(&mut self, frame: &mut Frame<'r, '_>, members: &[(String, Value)]) -> Verdict {
        let Some(schema) = frame.keyword("unevaluatedProperties") else { return Ok(true) };
        let mut valid = true;
        for (at, (_, value)) in members.iter().enumerate() {
            if !frame.seen.properties.contains(&at) {
                valid &= self.valid_below(schema, frame, value)?;
                frame.seen.properties.insert(at);
            }
        }
        Ok(valid)
    }
}

/// The schemas of an array's first items, and that of all others.
fn item_schemas<'r>(frame: &Frame<'r, '_>) -> Result<(&'r [Value], Option<&'r Value>), Undecided> {
    let prefix = frame.array("prefixItems")?;
    let items = frame.keyword("items");
    let Some(listed) = items.and_then(Value::as_array) else {
        return Ok((prefix.unwrap_or_default(), items));
    };
    if frame.dialect.draft >= Draft::Draft202012 && !frame.dialect.lenient {
        return Err(malformed("items"));
    }
    match prefix {
        Some(prefix) => Ok((prefix, None)),
        None => Ok((listed, frame.keyword("additionalItems"))),
    }
}

/// `type`, `enum` and `const`.
fn types(frame: &Frame<'_, '_>) -> Verdict {
    let mut valid = true;
    if let Some(listed) = frame.keyword("type") {
        let names = if let Some(name) = listed.as_str() { vec![name] } else { strings(listed, "type")? };
        let mut any = false;
        for name in names {
            any |= has_type(frame, name)?;
        }
        valid &= any;
    }
    if let Some(listed) = frame.array("enum")? {
        valid &= listed.contains(frame.value);
    }
    if let Some(constant) = frame.keyword("const") {
        valid &= constant == frame.value;
    }
    Ok(valid)
}

fn has_type(frame: &Frame<'_, '_>, name: &str) -> Verdict {
    Ok(match (name, frame.value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) if frame.dialect.draft == Draft::Draft4 => {
            number.is_spelled_as_integer()
        }
        ("integer", Value::Number(number)) => number.is_integer(),
        ("null" | "boolean" | "number" | "string" | "array" | "object" | "integer", _) => false,
        _ => return Err(malformed("type")),
    })
}

fn numbers(frame: &Frame<'_, '_>, number: &Decimal) -> Verdict {
    let (least, most) = (frame.number("minimum")?, frame.number("maximum")?);
    let above = exclusive(frame, "exclusiveMinimum", least)?;
    let below = exclusive(frame, "exclusiveMaximum", most)?;
    let factor = frame.number("multipleOf")?;
    if factor.is_some_and(|factor| !factor.is_positive()) {
        return Err(malformed("multipleOf"));
    }
    Ok(least.is_none_or(|least| least <= number)
        && most.is_none_or(|most| number <= most)
        && above.is_none_or(|least| least < number)
        && below.is_none_or(|most| number < most)
        && factor.is_none_or(|factor| number.is_multiple_of(factor)))
}

/// The bound that a number must not reach: the keyword's own, or in draft 4 its sibling's if it is `true`.
fn exclusive<'r>(
    frame: &Frame<'r, '_>,
    keyword: &str,
    sibling: Option<&'r Decimal>,
) -> Result<Option<&'r Decimal>, Undecided> {
    let is_draft_4 = frame.dialect.draft == Draft::Draft4;
    match frame.keyword(keyword) {
        None => Ok(None),
        Some(Value::Bool(exclusive)) if is_draft_4 || frame.dialect.lenient => {
            Ok(sibling.filter(|_| *exclusive))
        }
        Some(Value::Number(bound)) if !is_draft_4 => Ok(Some(bound)),
        Some(_) => Err(malformed(keyword)),
    }
}

/// `minItems`, `maxItems` and `uniqueItems`.
fn array_bounds(frame: &Frame<'_, '_>, items: &[Value]) -> Verdict {
    let unique = match frame.keyword("uniqueItems") {
        None | Some(Value::Bool(false)) => true,
        Some(Value::Bool(true)) => items.iter().enumerate().all(|(at, item)| !items[..at].contains(item)),
        Some(_) => return Err(malformed("uniqueItems")),
    };
    Ok(frame.counts(items.len(), "minItems", "maxItems")? && unique)
}

/// `minProperties`, `maxProperties` and `required`.
fn object_bounds(frame: &Frame<'_, '_>, members: &[(String, Value)]) -> Verdict {
    let required = frame.strings("required")?.unwrap_or_default();
    let all = required.iter().all(|name| frame.value.get(name).is_some());
    Ok(frame.counts(members.len(), "minProperties", "maxProperties")? && all)
}
