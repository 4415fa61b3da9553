//! Objects whose members stand between marks ([`Style`](crate::style::Style)).

use std::cmp::Reverse;
use std::sync::Arc;

use anygram_grammar::ir::{AutomatonRule, NonterminalId, Pattern, SpecialToken, Symbol, TerminalKind};
use anygram_grammar::memory::{Remembered, Remembers, Role};
use anygram_json_schema::lower::Whitespace;
use anygram_json_schema::refusal::{Kind, Refusal};
use anygram_json_schema::value::Value;
use regex_syntax::hir::{Dot, Hir, Repetition};

use super::unordered::Unordered;
use super::{Ends, Lowering, Result};
use crate::format::{Most, SchemaFormat, escape, unsupported};
use crate::keys::{KeyMemory, Marks};
use crate::style::{Style, Wrapper};

/// What says nothing about values.
pub(super) const ANNOTATIONS: [&str; 11] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$defs",
    "definitions",
];

/// References that are followed one after the other.
const MOST_REFERENCES: usize = 64;

/// The ways to write a member, its key, and whether it is required.
pub(super) type Member<'k> = (Vec<Vec<Symbol>>, &'k Arc<str>, bool);

/// How a value may be written.
pub(super) enum Written {
    /// As it is.
    Raw(Option<u32>),
    /// As this text.
    Text(String),
    /// As JSON of a type, by a schema.
    Json(&'static str, Value),
    /// In any way: nothing is said of it.
    Any,
}

impl Lowering<'_> {
    /// The members of an object, in the order in which the schema declares them or in any.
    pub(super) fn members(
        &mut self,
        format: &SchemaFormat,
        (at, ends): (&str, &Ends<'_>),
    ) -> Result<NonterminalId> {
        let SchemaFormat { schema, style, any_order, .. } = format;
        let place = format!("{at}/json_schema");
        if matches!(style, Style::Cohere | Style::MiniMaxM3 | Style::Gemma) {
            return self.nested(format, at);
        }
        check_object(schema, &place)?;
        let blanks = self.blanks(format);
        let Some(properties) = schema.get("properties") else {
            if let Some(name) = required(schema, &place)?.first() {
                let message = format!("the key {name:?} is required and not declared");
                return Err(unsupported(&format!("{place}/required"), message));
            }
            return self.any_members(format, blanks, (at, ends));
        };
        let (mut members, root) = (Vec::new(), place.clone());
        for (key, value, is_required) in declared(schema, properties, &place)? {
            let place = format!("{place}/properties/{}", escape(key));
            let mut sides = Vec::new();
            for (written, _) in written(value, (schema, &root), &place)? {
                if format.holds_excluded(key) {
                    continue;
                }
                sides.extend(self.member(format, (key, &written), blanks, (at, &place))?);
            }
            match sides.is_empty() {
                true if is_required => {
                    let message = "this member is required, and `excludes` leaves no way to write it";
                    return Err(Refusal::new(Kind::Unsatisfiable, &place, message));
                }
                true => {}
                false => members.push((sides, key, is_required)),
            }
        }
        if *any_order && members.len() > 1 {
            return self.unordered(members, blanks, at);
        }
        self.ordered(members, blanks, (at, ""))
    }

    /// Members in their order.
    pub(super) fn ordered(
        &mut self,
        members: Vec<Member<'_>>,
        blanks: Option<Symbol>,
        (at, part): (&str, &str),
    ) -> Result<NonterminalId> {
        let mut all: Vec<Symbol> = blanks.into_iter().collect();
        for (mut sides, key, is_required) in members {
            if !is_required {
                sides.push(Vec::new());
            }
            all.push(Symbol::Nonterminal(self.any_of(at, &format!("{part} member {key:?}"), sides)?));
        }
        self.any_of(at, part, vec![all])
    }

    /// Members in any order, none twice.
    pub(super) fn unordered(
        &mut self,
        members: Vec<Member<'_>>,
        blanks: Option<Symbol>,
        at: &str,
    ) -> Result<NonterminalId> {
        if members.len() > Unordered::MOST {
            let message = format!("at most {} members can stand in any order here", Unordered::MOST);
            return Err(unsupported(&format!("{at}/any_order"), message));
        }
        let required: Vec<bool> = members.iter().map(|member| member.2).collect();
        let mut symbols = Vec::with_capacity(members.len());
        for (sides, key, _) in members {
            symbols.push(Symbol::Nonterminal(self.any_of(at, &format!("member {key:?}"), sides)?));
        }
        let lhs = self.add(at, "members")?;
        let automaton = Arc::new(Unordered::new(&required, self.options.schema.schema_states));
        self.parts.automata.push(AutomatonRule { lhs, automaton, symbols: symbols.into() });
        let blanks: Vec<Symbol> = blanks.into_iter().collect();
        let some = blanks.iter().copied().chain([Symbol::Nonterminal(lhs)]).collect();
        let none = (!required.contains(&true)).then_some(blanks);
        self.any_of(at, "", none.into_iter().chain([some]).collect())
    }

    /// Members with any names, none twice, and values.
    fn any_members(
        &mut self,
        format: &SchemaFormat,
        blanks: Option<Symbol>,
        (at, ends): (&str, &Ends<'_>),
    ) -> Result<NonterminalId> {
        let none: Vec<Symbol> = blanks.into_iter().collect();
        if format
            .schema
            .get("additionalProperties")
            .is_some_and(|others| matches!(others, Value::Bool(false)))
        {
            return self.any_of(at, "", vec![none]);
        }
        let marks = ends.behind.as_ref().and_then(|ends| Marks::new(format.style, ends));
        // A special token has no bytes, so the memory does not see it.
        let is_text = |marks: &Marks| {
            let all = [&*marks.before, &*marks.behind, marks.inner.unwrap_or_default(), marks.close];
            let is_in = |token: &String| !token.is_empty() && all.iter().any(|mark| mark.contains(&**token));
            !format.special_tokens.iter().any(is_in)
        };
        let marks = marks.filter(is_text);
        let marks = marks.ok_or_else(|| {
            let message = "members whose names are not declared stand only between marks that are texts, and \
                           right before a text that ends them and cannot begin a member, or are the whole \
                           tag; else it is not known which names have to differ";
            unsupported(&format!("{at}/json_schema"), message)
        })?;
        let (open, rest) = marks.before.split_at(1);
        let (end, behind) = marks.behind.split_at(1);
        // Where they are the whole text, so is the memory.
        let value = (!marks.ends.is_empty()).then_some(self.parts.embedded.len() as u32);
        let opens = Pattern::literal(open.as_bytes());
        let opens = self.terminal(format!("{open:?}"), TerminalKind::Literal(opens));
        if value.is_some() {
            self.remember(Remembered { value, role: Role::Opens });
        }
        let name = regex_syntax::parse("[A-Za-z_][A-Za-z0-9_.-]*").expect("it is an expression");
        let name = Pattern::and([Pattern::Regex(name)].into_iter().chain(free(&format.excludes)).collect());
        let key = Pattern::concat(vec![name, Pattern::literal(end.as_bytes())]);
        let key = self.terminal("a key".to_owned(), TerminalKind::Pattern(key));
        self.remember(Remembered { value, role: Role::Piece { kind: 0, is_distinct: true } });
        let (rest, before) = (self.literal(rest, at)?, self.literal(&marks.before, at)?);
        let behind = self.literal(behind, at)?;
        let inner = self.inner(marks.inner, blanks, at)?;
        let texts: Vec<&str> = format.excludes.iter().map(String::as_str).chain([marks.close]).collect();
        let text = self.free_text(&texts, Most::default(), (at, "value"))?;
        let close = self.literal(marks.close, at)?;
        let memory = Remembers(Arc::new(KeyMemory::new(marks)));
        match value {
            Some(_) => self.parts.embedded.push(memory),
            None => self.memory = Some(memory),
        }
        let member = [key].into_iter().chain(behind).chain(inner).chain([Symbol::Nonterminal(text)]);
        let member = self.any_of(at, "member", vec![member.chain(close).chain(blanks).collect()])?;
        let (some, member) = (self.add(at, "members")?, Symbol::Nonterminal(member));
        self.rule(some, [opens].into_iter().chain(rest).chain([member]).collect())?;
        self.rule(some, [Symbol::Nonterminal(some)].into_iter().chain(before).chain([member]).collect())?;
        let all = blanks.into_iter().chain([Symbol::Nonterminal(some)]).collect();
        self.any_of(at, "", vec![none, all])
    }

    /// Says what the pieces of the last terminal are to a memory.
    fn remember(&mut self, remembered: Remembered) {
        if let Some(terminal) = self.parts.terminals.last_mut() {
            terminal.memory = Some(remembered);
        }
    }

    /// What stands between key and value.
    fn inner(&mut self, inner: Option<&str>, blanks: Option<Symbol>, at: &str) -> Result<Vec<Symbol>> {
        match inner {
            None => Ok(Vec::new()),
            Some(inner) => Ok(blanks.into_iter().chain(self.literal(inner, at)?).collect()),
        }
    }

    /// A member with one of its values; `None` if that is excluded.
    fn member(
        &mut self,
        format: &SchemaFormat,
        (key, written): (&str, &Written),
        blanks: Option<Symbol>,
        (at, place): (&str, &str),
    ) -> Result<Option<Vec<Symbol>>> {
        let value_type = match written {
            // Every JSON text without the closing mark is one of these texts, too.
            Written::Raw(_) | Written::Text(_) | Written::Any => "string",
            Written::Json(value_type, _) => value_type,
        };
        let wrapper = format.style.wrapper(key, value_type);
        let Wrapper { open, inner, close } = wrapper.expect("styles without one were refused");
        let mut side = self.marks(format, &open, at)?;
        side.extend(self.inner(inner, blanks, at)?);
        match written {
            Written::Raw(_) | Written::Any => {
                let chars = if let Written::Raw(most) = written { *most } else { None };
                let most = Most { chars, tokens: None };
                let ends: Vec<&str> = format.excludes.iter().map(String::as_str).chain([close]).collect();
                side.push(Symbol::Nonterminal(self.free_text(&ends, most, (at, "value"))?));
            }
            Written::Text(text) if format.holds_excluded(text) => return Ok(None),
            Written::Text(text) if text.contains(close) => {
                return Err(unsupported(place, format!("a value holds {close:?}, which ends it")));
            }
            Written::Text(text) => side.extend(self.literal(text, at)?),
            Written::Json(_, schema) => {
                side.extend(blanks);
                match self.value(format, schema, (at, place)) {
                    Err(none) if none.kind == Kind::Unsatisfiable && !format.excludes.is_empty() => {
                        return Ok(None);
                    }
                    value => side.push(Symbol::Nonterminal(value?)),
                }
                side.extend(blanks);
            }
        }
        side.extend(self.marks(format, close, at)?);
        side.extend(blanks);
        Ok(Some(side))
    }

    /// A value as JSON.
    pub(super) fn value(
        &mut self,
        format: &SchemaFormat,
        schema: &Value,
        (at, place): (&str, &str),
    ) -> Result<NonterminalId> {
        let options = self.schema_options(format);
        let how = (options, &*format.excludes);
        self.json((&*schema.to_string(), place), how, (at, &format!("value of {place:?}")))
    }

    /// A mark of the style: as it is written, but for the special tokens in it.
    pub(super) fn marks(&mut self, format: &SchemaFormat, mark: &str, at: &str) -> Result<Vec<Symbol>> {
        let (mut symbols, mut rest) = (Vec::new(), mark);
        let tokens = format.special_tokens.iter().filter(|token| !token.is_empty());
        while !rest.is_empty() {
            let found = tokens.clone().filter_map(|token| Some((rest.find(&**token)?, token)));
            let Some((from, token)) = found.min_by_key(|&(from, token)| (from, Reverse(token.len()))) else {
                break;
            };
            symbols.extend(self.literal(&rest[..from], at)?);
            symbols.push(self.token(&SpecialToken::Name(token.clone())));
            rest = &rest[from + token.len()..];
        }
        symbols.extend(self.literal(rest, at)?);
        Ok(symbols)
    }

    /// Blanks between members, as far as the options have any.
    pub(super) fn blanks(&mut self, format: &SchemaFormat) -> Option<Symbol> {
        let most = match self.schema_options(format).whitespace {
            Whitespace::Any => None,
            Whitespace::AtMost(most) => Some(most),
            Whitespace::Compact | Whitespace::Spaced | Whitespace::Indent(_) => Some(0),
        };
        if most == Some(0) {
            return None;
        }
        let blank: Hir = regex_syntax::parse("[ \\t\\n\\r]").expect("it is an expression");
        let blanks = Pattern::repeat(Pattern::Regex(blank), 0, most);
        Some(self.terminal("blanks".to_owned(), TerminalKind::Pattern(blanks)))
    }
}

impl SchemaFormat {
    /// Whether a string or name holds what may not stand in it.
    fn holds_excluded(&self, text: &str) -> bool {
        self.excludes.iter().any(|exclude| text.contains(&**exclude))
    }
}

/// The texts in which none of some texts stands, if there are any.
fn free(excludes: &[String]) -> Option<Pattern> {
    let any_char = || Box::new(Hir::dot(Dot::AnyChar));
    let any = || Hir::repetition(Repetition { min: 0, max: None, greedy: true, sub: any_char() });
    let holds = |text: &String| Hir::concat(vec![any(), Hir::literal(text.as_bytes()), any()]);
    let holds = Hir::alternation(excludes.iter().map(holds).collect());
    (!excludes.is_empty()).then(|| Pattern::Not(Box::new(Pattern::Regex(holds))))
}

/// That a schema is an object of which all that matters is read.
pub(super) fn check_object(schema: &Value, place: &str) -> Result<()> {
    let Some(members) = schema.members() else {
        return match schema {
            Value::Bool(true) => Ok(()),
            _ => Err(unsupported(place, "members between marks need a schema of an object")),
        };
    };
    for (keyword, value) in members {
        let is_read = match &**keyword {
            "properties" | "required" => true,
            "type" => value.text().is_some_and(|name| &**name == "object"),
            "additionalProperties" => {
                matches!(value, Value::Bool(false))
                    || matches!(value, Value::Bool(true)) && schema.get("properties").is_none()
            }
            other => ANNOTATIONS.contains(&other),
        };
        if !is_read {
            let message = format!(
                "the keyword `{keyword}` with this value cannot be had where members stand between marks"
            );
            return Err(unsupported(&format!("{place}/{}", escape(keyword)), message));
        }
    }
    Ok(())
}

fn required(schema: &Value, place: &str) -> Result<Vec<Arc<str>>> {
    let Some(value) = schema.get("required") else { return Ok(Vec::new()) };
    let names = value.items().and_then(|items| items.iter().map(|item| item.text().cloned()).collect());
    names
        .ok_or_else(|| Refusal::new(Kind::Syntax, &format!("{place}/required"), "a list of keys stands here"))
}

/// The members that a schema declares, and whether they are required.
pub(super) fn declared<'v>(
    schema: &'v Value,
    properties: &'v Value,
    place: &str,
) -> Result<Vec<(&'v Arc<str>, &'v Value, bool)>> {
    let properties = properties
        .members()
        .ok_or_else(|| Refusal::new(Kind::Syntax, &format!("{place}/properties"), "an object"))?;
    let required = required(schema, place)?;
    if let Some(missing) = required.iter().find(|name| properties.iter().all(|(key, _)| key != *name)) {
        let message = format!("the key {missing:?} is required and not declared");
        return Err(unsupported(&format!("{place}/required"), message));
    }
    Ok(properties.iter().map(|(key, value)| (key, value, required.contains(key))).collect())
}

/// How the values of a schema may be written, each with the place that says so.
pub(super) fn written(
    schema: &Value,
    (root, root_place): (&Value, &str),
    place: &str,
) -> Result<Vec<(Written, String)>> {
    let (mut agenda, mut all) = (vec![(schema, place.to_owned())], Vec::new());
    let mut n_references = 0;
    while let Some((schema, place)) = agenda.pop() {
        if matches!(schema, Value::Bool(true)) {
            all.push((Written::Any, place));
            continue;
        }
        let Some(members) = schema.members() else {
            return Err(unsupported(&place, "no value can stand here"));
        };
        let mut said = members.iter().filter(|(keyword, _)| !ANNOTATIONS.contains(&&**keyword));
        let first = said.next();
        let is_alone = said.next().is_none();
        match first.map(|(keyword, value)| (&**keyword, value)) {
            None => all.push((Written::Any, place)),
            Some(("anyOf", options)) if is_alone => {
                let options = options.items().unwrap_or_default();
                let options = options.iter().enumerate().rev();
                agenda.extend(options.map(|(at, option)| (option, format!("{place}/anyOf/{at}"))));
            }
            Some(("$ref", target)) if is_alone => {
                n_references += 1;
                let target = target.text().and_then(|target| Some((find(root, target)?, target)));
                match target.filter(|_| n_references <= MOST_REFERENCES) {
                    Some((found, target)) => {
                        agenda.push((found, format!("{root_place}{}", target.trim_start_matches('#'))));
                    }
                    None => {
                        return Err(unsupported(&format!("{place}/$ref"), "only `#/$defs/…` is read here"));
                    }
                }
            }
            _ => {
                let mut ways = Vec::new();
                plain(schema, root, &place, &mut ways)?;
                all.extend(ways.into_iter().map(|way| (way, place.clone())));
            }
        }
    }
    match all.is_empty() {
        true => Err(unsupported(place, "no value can stand here")),
        false => Ok(all),
    }
}

/// What a local reference points to.
fn find<'v>(root: &'v Value, target: &str) -> Option<&'v Value> {
    let mut at = root;
    for part in target.strip_prefix("#/")?.split('/') {
        at = at.get(&part.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(at)
}

/// A schema that lists its values, or says their types.
fn plain(schema: &Value, root: &Value, place: &str, all: &mut Vec<Written>) -> Result<()> {
    let listed = match (schema.get("const"), schema.get("enum").and_then(Value::items)) {
        (Some(only), _) => Some(std::slice::from_ref(only)),
        (None, listed) => listed,
    };
    if let Some(listed) = listed {
        let others = |(keyword, _): &(Arc<str>, Value)| {
            let known = ["const", "enum", "type"];
            !known.contains(&&**keyword) && !ANNOTATIONS.contains(&&**keyword)
        };
        if let Some((keyword, _)) = schema.members().unwrap_or_default().iter().find(|member| others(member))
        {
            return Err(beside(keyword, place));
        }
        for value in listed {
            let value_type = type_of(value);
            if !types(schema, place)?
                .is_none_or(|types| types.iter().any(|name| is_of(name, value, value_type)))
            {
                continue;
            }
            all.push(match value.text() {
                Some(text) => Written::Text(text.to_string()),
                None => Written::Json(value_type, Value::Object(vec![("const".into(), value.clone())])),
            });
        }
        return Ok(());
    }
    let Some(types) = types(schema, place)? else {
        let message = "without a `type` it is not known whether a value is written as JSON";
        return Err(unsupported(place, message));
    };
    for name in types {
        all.push(match &*name {
            "string" => string(schema, place)?,
            name => Written::Json(json_type(name, place)?, of_type(schema, root, name)),
        });
    }
    Ok(())
}

/// A string that is written as it is.
fn string(schema: &Value, place: &str) -> Result<Written> {
    let mut most = None;
    for (keyword, value) in schema.members().unwrap_or_default() {
        match &**keyword {
            "type" => {}
            "maxLength" => most = value.count().and_then(|most| u32::try_from(most).ok()),
            "pattern" | "format" | "minLength" | "not" | "allOf" | "oneOf" | "anyOf" | "$ref" => {
                return Err(beside(keyword, place));
            }
            // What is about other types, or annotates.
            _ => {}
        }
    }
    Ok(Written::Raw(most))
}

fn beside(keyword: &str, place: &str) -> Refusal {
    let message = format!("the keyword `{keyword}` cannot be had where a string is written without quotes");
    unsupported(&format!("{place}/{}", escape(keyword)), message)
}

/// The types that a schema names.
fn types(schema: &Value, place: &str) -> Result<Option<Vec<Arc<str>>>> {
    let names = match schema.get("type") {
        None => return Ok(None),
        Some(Value::Array(names)) => names.iter().map(|name| name.text().cloned()).collect(),
        Some(name) => name.text().map(|name| vec![name.clone()]),
    };
    let message = "a type, or a list of types, stands here";
    names.map(Some).ok_or_else(|| Refusal::new(Kind::Syntax, &format!("{place}/type"), message))
}

/// The same schema for one of its types, with what its references point to.
fn of_type(schema: &Value, root: &Value, name: &str) -> Value {
    let own = schema.members().unwrap_or_default().iter().filter(|(keyword, _)| &**keyword != "type");
    let mut members = vec![("type".into(), Value::String(name.into()))];
    members.extend(own.cloned());
    for definitions in ["$defs", "definitions"] {
        if let (Some(value), None) = (root.get(definitions), schema.get(definitions)) {
            members.push((definitions.into(), value.clone()));
        }
    }
    Value::Object(members)
}

fn json_type(name: &str, place: &str) -> Result<&'static str> {
    match name {
        "integer" | "number" => Ok("number"),
        "boolean" => Ok("boolean"),
        "null" => Ok("null"),
        "array" => Ok("array"),
        "object" => Ok("object"),
        _ => Err(Refusal::new(Kind::Syntax, &format!("{place}/type"), format!("no type `{name}`"))),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of(name: &str, value: &Value, value_type: &str) -> bool {
    match name {
        "integer" => value.number().is_some_and(|number| number.to_integer().is_some()),
        name => name == value_type,
    }
}
