//! Styles whose objects and lists nest as the style has it, at all depths.
//!
//! Each place of the schema has a nonterminal for each way to write its values. They are made as they are
//! named and defined one after the other, so a schema may refer to itself.

use anygram_grammar::ir::{NonterminalId, Pattern, Symbol, TerminalKind};
use anygram_json_schema::refusal::{Kind, Refusal};
use anygram_json_schema::value::Value;
use rustc_hash::FxHashMap;

use super::members::{ANNOTATIONS, Member, Written, check_object, declared, written};
use super::{Lowering, Result};
use crate::format::{Most, SchemaFormat, escape, unsupported};
use crate::style::Style;

/// How a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Shape {
    /// A string.
    Raw,
    /// JSON.
    Json,
    Object,
    List,
}

/// What is known of the places of a schema.
struct Nested<'f> {
    format: &'f SchemaFormat,
    at: &'f str,
    blanks: Option<Symbol>,
    /// Ways to write values at a place: the list is that of `written`.
    known: FxHashMap<String, Vec<(Shape, NonterminalId)>>,
    /// What is not yet defined.
    agenda: Vec<(NonterminalId, Written, String)>,
    /// Any value, for styles that can write it.
    any: Option<NonterminalId>,
}

/// The marks around a string of Gemma, and what it may not hold besides.
const QUOTE: &str = "<|\"|>";
const CALL: [&str; 2] = ["<|tool_call>", "<tool_call|>"];

/// What stands before each mark of MiniMax M3.
pub(super) const M3: &str = "]<]minimax[>[";

impl Lowering<'_> {
    /// The members of an object in a style that nests.
    pub(super) fn nested(&mut self, format: &SchemaFormat, at: &str) -> Result<NonterminalId> {
        let place = format!("{at}/json_schema");
        let blanks = if format.style == Style::Gemma { None } else { self.blanks(format) };
        let (known, agenda) = (FxHashMap::default(), Vec::new());
        let mut nested = Nested { format, at, blanks, known, agenda, any: None };
        let all = self.object(&mut nested, &format.schema, &place)?;
        while let Some((lhs, way, place)) = nested.agenda.pop() {
            let side = match way {
                Written::Raw(most) => self.string(&nested, most)?,
                Written::Text(text) => self.text(&nested, &text, &place)?,
                Written::Any => vec![Symbol::Nonterminal(self.any_value(&mut nested, &place)?)],
                Written::Json("object", schema) if schema.get("const").is_none() => {
                    vec![Symbol::Nonterminal(self.object(&mut nested, &schema, &place)?)]
                }
                Written::Json("array", schema) if schema.get("const").is_none() => {
                    vec![Symbol::Nonterminal(self.list(&mut nested, &schema, &place)?)]
                }
                Written::Json(_, schema) => self.scalar(&nested, &schema, &place)?,
            };
            self.rule(lhs, side)?;
        }
        Ok(all)
    }

    /// The ways to write the values of a schema.
    fn ways(
        &mut self,
        nested: &mut Nested<'_>,
        schema: &Value,
        place: &str,
    ) -> Result<Vec<(Shape, NonterminalId)>> {
        if let Some(known) = nested.known.get(place) {
            return Ok(known.clone());
        }
        let root = format!("{}/json_schema", nested.at);
        let mut ways: Vec<(Shape, NonterminalId)> = Vec::new();
        for (way, place) in written(schema, (&nested.format.schema, &root), place)? {
            let shape = match &way {
                Written::Raw(_) | Written::Text(_) => Shape::Raw,
                Written::Any if nested.format.style == Style::MiniMaxM3 => Shape::Raw,
                Written::Json("object", schema) if schema.get("const").is_none() => Shape::Object,
                Written::Json("array", schema) if schema.get("const").is_none() => Shape::List,
                Written::Any | Written::Json(..) => Shape::Json,
            };
            // What a reference leads to is one place, whoever refers to it.
            let key = match &way {
                Written::Text(text) => format!("{place} {text}"),
                Written::Json(_, schema) if schema.get("const").is_some() => format!("{place} {schema}"),
                Written::Json(name, _) => format!("{place} {name}"),
                Written::Raw(_) => format!("{place} string"),
                Written::Any => format!("{place} any"),
            };
            let known = nested.known.get(&key).and_then(|ways| ways.first().copied());
            let way = match known {
                Some(known) => known,
                None => {
                    let lhs = self.add(nested.at, &key)?;
                    nested.known.insert(key, vec![(shape, lhs)]);
                    nested.agenda.push((lhs, way, place));
                    (shape, lhs)
                }
            };
            ways.push(way);
        }
        nested.known.insert(place.to_owned(), ways.clone());
        Ok(ways)
    }

    /// What stands between the marks of an object.
    fn object(&mut self, nested: &mut Nested<'_>, schema: &Value, place: &str) -> Result<NonterminalId> {
        check_object(schema, place)?;
        let Nested { format, at, blanks, .. } = *nested;
        let Some(properties) = schema.get("properties") else {
            return match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => self.in_order(nested, Vec::new(), place),
                _ => self.any_object(nested, place),
            };
        };
        let mut members = Vec::new();
        for (key, value, is_required) in declared(schema, properties, place)? {
            let place = format!("{place}/properties/{}", escape(key));
            check_key(format.style, key, &place)?;
            let mut sides = Vec::new();
            for (shape, body) in self.ways(nested, value, &place)? {
                sides.push(self.element(nested, Some(key), (shape, body))?);
            }
            members.push((sides, key, is_required));
        }
        match format.style {
            Style::Gemma if format.any_order && members.len() > 1 => {
                let message = "members with commas between cannot stand in any order here";
                Err(unsupported(&format!("{at}/any_order"), message))
            }
            Style::Gemma => self.in_order(nested, members, place),
            _ if format.any_order && members.len() > 1 => self.unordered(members, blanks, at),
            _ => self.ordered(members, blanks, (at, place)),
        }
    }

    /// The members of an object of Gemma, which writes them by their names, with commas between.
    fn in_order(
        &mut self,
        nested: &Nested<'_>,
        mut members: Vec<Member<'_>>,
        place: &str,
    ) -> Result<NonterminalId> {
        let at = nested.at;
        if nested.format.style != Style::Gemma {
            return self.ordered(members, nested.blanks, (at, place));
        }
        members.sort_by_key(|member| member.1.to_lowercase());
        // From the last member on: what stands where it would be the first, and where one is before it.
        let none = self.any_of(at, &format!("{place} end"), vec![Vec::new()])?;
        let (mut first, mut later) = (none, none);
        let comma = self.literal(",", at)?;
        for (sides, key, is_required) in members.into_iter().rev() {
            let member = Symbol::Nonterminal(self.any_of(at, &format!("{place} member {key:?}"), sides)?);
            let without = |rest| (!is_required).then(|| vec![Symbol::Nonterminal(rest)]);
            let with = vec![member, Symbol::Nonterminal(later)];
            let as_first = without(first).into_iter().chain([with.clone()]).collect();
            let as_later = comma.into_iter().chain(with).collect();
            let as_later = without(later).into_iter().chain([as_later]).collect();
            first = self.any_of(at, &format!("{place} from {key:?}"), as_first)?;
            later = self.any_of(at, &format!("{place} behind {key:?}"), as_later)?;
        }
        let (open, close) = (self.literal("{", at)?, self.literal("}", at)?);
        let all = open.into_iter().chain([Symbol::Nonterminal(first)]).chain(close).collect();
        self.any_of(at, &format!("{place} object"), vec![all])
    }

    /// A list.
    fn list(&mut self, nested: &mut Nested<'_>, schema: &Value, place: &str) -> Result<NonterminalId> {
        let (mut min, mut max, mut items) = (0, None, &Value::Bool(true));
        for (keyword, value) in schema.members().unwrap_or_default() {
            let count = || {
                let count = value.count().and_then(|count| u32::try_from(count).ok());
                let message = "a number of items stands here";
                count.ok_or_else(|| Refusal::new(Kind::Syntax, &format!("{place}/{keyword}"), message))
            };
            match &**keyword {
                "type" => {}
                "items" => items = value,
                "minItems" => min = count()?,
                "maxItems" => max = Some(count()?),
                other if ANNOTATIONS.contains(&other) => {}
                _ => {
                    let message =
                        format!("the keyword `{keyword}` cannot be had where lists stand between marks");
                    return Err(unsupported(&format!("{place}/{}", escape(keyword)), message));
                }
            }
        }
        let at = nested.at;
        if matches!(items, Value::Bool(false)) {
            max = Some(0);
        }
        if max.is_some_and(|max| max < min) {
            return Err(unsupported(place, "no list has so few items and so many"));
        }
        let none = || vec![Vec::new()];
        let sides = if max == Some(0) {
            none()
        } else {
            let mut sides = Vec::new();
            for way in self.ways(nested, items, &format!("{place}/items"))? {
                sides.push(self.element(nested, None, way)?);
            }
            let item = self.any_of(at, &format!("{place} item"), sides)?;
            let behind = match nested.format.style {
                Style::Gemma => {
                    self.literal(",", at)?.into_iter().chain([Symbol::Nonterminal(item)]).collect()
                }
                _ => vec![Symbol::Nonterminal(item)],
            };
            let behind = self.any_of(at, &format!("{place} next item"), vec![behind])?;
            let rest = (min.saturating_sub(1), max.map(|max| max - 1));
            let rest = self.repeat(behind, rest, &format!("{at} {place}"))?;
            let some = vec![Symbol::Nonterminal(item), Symbol::Nonterminal(rest)];
            (min == 0).then(Vec::new).into_iter().chain([some]).collect()
        };
        let items = Symbol::Nonterminal(self.any_of(at, &format!("{place} items"), sides)?);
        let all = match nested.format.style {
            Style::Gemma => {
                let (open, close) = (self.literal("[", at)?, self.literal("]", at)?);
                open.into_iter().chain([items]).chain(close).collect()
            }
            _ => nested.blanks.into_iter().chain([items]).collect(),
        };
        self.any_of(at, &format!("{place} list"), vec![all])
    }

    /// A member or an item with its marks, and the blanks behind it.
    fn element(
        &mut self,
        nested: &Nested<'_>,
        key: Option<&str>,
        (shape, body): (Shape, NonterminalId),
    ) -> Result<Vec<Symbol>> {
        let (format, at, body) = (nested.format, nested.at, [Symbol::Nonterminal(body)]);
        let (open, close) = match format.style {
            Style::Gemma => (key.map_or(String::new(), |key| format!("{key}:")), String::new()),
            Style::MiniMaxM3 => {
                let name = key.unwrap_or("item");
                (format!("{M3}<{name}>"), format!("{M3}</{name}>"))
            }
            _ => (cohere(key.map(|key| format!(" name=\"{key}\"")), shape), COHERE_END.to_owned()),
        };
        let mut side = self.marks(format, &open, at)?;
        side.extend(body);
        side.extend(self.marks(format, &close, at)?);
        side.extend(nested.blanks);
        Ok(side)
    }

    fn string(&mut self, nested: &Nested<'_>, most: Option<u32>) -> Result<Vec<Symbol>> {
        let (format, at) = (nested.format, nested.at);
        let most = Most { chars: most, tokens: None };
        let excludes: &[&str] = match format.style {
            Style::Gemma => &[QUOTE, CALL[0], CALL[1]],
            Style::MiniMaxM3 => &[M3],
            _ => &[COHERE_END],
        };
        let free = self.free_text(excludes, most, (at, "value"))?;
        self.quoted(format, vec![Symbol::Nonterminal(free)], at)
    }

    fn text(&mut self, nested: &Nested<'_>, text: &str, place: &str) -> Result<Vec<Symbol>> {
        let marks: &[&str] = match nested.format.style {
            Style::Gemma => &[QUOTE, CALL[0], CALL[1]],
            Style::MiniMaxM3 => &[M3],
            _ => &[COHERE_END],
        };
        if let Some(mark) = marks.iter().find(|mark| text.contains(**mark)) {
            return Err(unsupported(place, format!("a value holds {mark:?}, which is a mark of the style")));
        }
        let text = self.literal(text, nested.at)?.into_iter().collect();
        self.quoted(nested.format, text, nested.at)
    }

    fn quoted(&mut self, format: &SchemaFormat, text: Vec<Symbol>, at: &str) -> Result<Vec<Symbol>> {
        if format.style != Style::Gemma {
            return Ok(text);
        }
        let quote = self.marks(format, QUOTE, at)?;
        Ok(quote.iter().copied().chain(text).chain(quote.iter().copied()).collect())
    }

    /// A value that is JSON.
    fn scalar(&mut self, nested: &Nested<'_>, schema: &Value, place: &str) -> Result<Vec<Symbol>> {
        let is_nested =
            schema.get("const").is_some_and(|value| matches!(value, Value::Array(_) | Value::Object(_)));
        if is_nested && nested.format.style != Style::Cohere {
            let message = "a list of values with objects or lists cannot be had in this style";
            return Err(unsupported(place, message));
        }
        let json = self.value(nested.format, schema, (nested.at, place))?;
        // Only Cohere's values are known to have blanks around.
        let blanks = nested.blanks.filter(|_| nested.format.style == Style::Cohere);
        Ok(blanks.into_iter().chain([Symbol::Nonterminal(json)]).chain(blanks).collect())
    }

    /// A value of which nothing is known.
    fn any_value(&mut self, nested: &mut Nested<'_>, place: &str) -> Result<NonterminalId> {
        if let Some(known) = nested.any {
            return Ok(known);
        }
        let any = self.add(nested.at, "any value")?;
        nested.any = Some(any);
        let at = nested.at;
        match nested.format.style {
            // Elements in it would have to close by the names that they were opened by.
            Style::MiniMaxM3 => {
                let side = self.string(nested, None)?;
                self.rule(any, side)?;
            }
            Style::Gemma => {
                let string = self.string(nested, None)?;
                self.rule(any, string)?;
                let plain = ["number", "boolean", "null"].map(|name| Value::String(name.into()));
                let plain = Value::Object(vec![("type".into(), Value::Array(plain.to_vec()))]);
                let plain = self.scalar(nested, &plain, place)?;
                self.rule(any, plain)?;
                let items = self.several(vec![Symbol::Nonterminal(any)], at)?;
                let (open, close) = (self.literal("[", at)?, self.literal("]", at)?);
                self.rule(any, open.into_iter().chain([items]).chain(close).collect())?;
                let object = self.any_object(nested, place)?;
                self.rule(any, vec![Symbol::Nonterminal(object)])?;
            }
            _ => {
                let side = self.scalar(nested, &Value::Bool(true), place)?;
                self.rule(any, side)?;
            }
        }
        Ok(any)
    }

    /// An object with members of any names.
    fn any_object(&mut self, nested: &mut Nested<'_>, place: &str) -> Result<NonterminalId> {
        let at = nested.at;
        let any = Symbol::Nonterminal(self.any_value(nested, place)?);
        let is_m3 = nested.format.style == Style::MiniMaxM3;
        let key = if is_m3 { "[^/>][^>]*" } else { "[A-Za-z_][A-Za-z0-9_]*" };
        let key = Pattern::Regex(regex_syntax::parse(key).expect("it is an expression"));
        let key = self.terminal("a key".to_owned(), TerminalKind::Pattern(key));
        let mut member = Vec::new();
        match nested.format.style {
            Style::Gemma => {
                member.push(key);
                member.extend(self.literal(":", at)?);
                member.push(any);
                let members = self.several(member, at)?;
                let (open, close) = (self.literal("{", at)?, self.literal("}", at)?);
                let all = open.into_iter().chain([members]).chain(close).collect();
                return self.any_of(at, "any object", vec![all]);
            }
            Style::MiniMaxM3 => {
                member.extend(self.literal(&format!("{M3}<"), at)?);
                member.push(key);
                member.extend(self.literal(">", at)?);
                member.push(any);
                member.extend(self.literal(&format!("{M3}</"), at)?);
                member.push(key);
                member.extend(self.literal(">", at)?);
            }
            _ => {
                let open = cohere(Some(" name=\"\0\"".to_owned()), Shape::Json);
                let (before, behind) = open.split_once('\0').expect("it stands there");
                member.extend(self.literal(before, at)?);
                member.push(key);
                member.extend(self.literal(behind, at)?);
                member.push(any);
                member.extend(self.literal(COHERE_END, at)?);
            }
        }
        member.extend(nested.blanks);
        let member = self.any_of(at, "any member", vec![member])?;
        let members = self.repeat(member, (0, None), &format!("{at} any object"))?;
        let all = nested.blanks.into_iter().chain([Symbol::Nonterminal(members)]).collect();
        self.any_of(at, "any object", vec![all])
    }

    /// Any number, with commas between.
    fn several(&mut self, one: Vec<Symbol>, at: &str) -> Result<Symbol> {
        let one = Symbol::Nonterminal(self.any_of(at, "one", vec![one])?);
        let some = self.add(at, "some")?;
        self.rule(some, vec![one])?;
        let comma = self.literal(",", at)?;
        let more = [Symbol::Nonterminal(some)].into_iter().chain(comma).chain([one]).collect();
        self.rule(some, more)?;
        Ok(Symbol::Nonterminal(self.any_of(
            at,
            "several",
            vec![Vec::new(), vec![Symbol::Nonterminal(some)]],
        )?))
    }
}

const COHERE_END: &str = "</cofl:value>";

/// What opens a value of Cohere.
fn cohere(name: Option<String>, shape: Shape) -> String {
    let name = name.unwrap_or_default();
    let shape = match shape {
        Shape::Raw => "raw",
        Shape::Json => "json",
        Shape::Object => "dict",
        Shape::List => "list",
    };
    format!("<cofl:value{name} type=\"{shape}\">")
}

/// Whether a style can write a key.
fn check_key(style: Style, key: &str, place: &str) -> Result<()> {
    let is_written = match style {
        Style::Gemma => {
            let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
            key.starts_with(is_letter) && key.chars().all(|c| is_letter(c) || c.is_ascii_digit())
        }
        Style::MiniMaxM3 => !key.trim().is_empty() && !key.starts_with('/') && !key.contains('>'),
        _ => !key.contains('"'),
    };
    match is_written {
        true => Ok(()),
        false => Err(unsupported(place, format!("the style {} cannot write this key", style.name()))),
    }
}
