//! What each keyword asserts, draft by draft.

use std::sync::Arc;

use crate::algebra::{Algebra, Formula, KeyOrder, Type};
use crate::atoms::{ArrayAtom, Keys, Literal, NumberAtom, ObjectAtom, Places, TextAtom};
use crate::document::{Draft, NodeId, escaped};
use crate::refusal::{Kind, Refusal};
use crate::strings::PatternId;
use crate::value::{Decimal, Value};

/// A schema object that is read for one type.
pub(crate) struct Reading<'a> {
    pub node: NodeId,
    pub scope: u32,
    pub draft: Draft,
    pub value: &'a Value,
    pub of: Type,
}

type Found = Result<Formula, Refusal>;

/// Alternatives of one `oneOf`.
const MANY_BRANCHES: usize = 1_000;

/// Whether a keyword is about values of a type and can be malformed by itself. (Whether schemas below it are
/// is seen when they are read.)
fn has_shape(of: Type, keyword: &str) -> bool {
    match of {
        Type::Null | Type::Bool => false,
        Type::Number => {
            matches!(keyword, "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf")
        }
        Type::String => matches!(keyword, "minLength" | "maxLength" | "pattern"),
        Type::Array => {
            matches!(keyword, "minItems" | "maxItems" | "prefixItems" | "minContains" | "maxContains")
        }
        Type::Object => matches!(
            keyword,
            "required"
                | "minProperties"
                | "maxProperties"
                | "properties"
                | "patternProperties"
                | "dependencies"
                | "dependentRequired"
                | "dependentSchemas"
        ),
    }
}

impl<'a> Algebra<'a> {
    /// What a schema asserts of values of a type.
    pub(crate) fn node_formula(&mut self, node: NodeId, scope: u32, of: Type) -> Found {
        let scope = self.entered(scope, node);
        let here = self.documents.node(node).clone();
        match here.value {
            Value::Bool(true) => return Ok(Formula::True),
            Value::Bool(false) => return Ok(Formula::False),
            Value::Object(_) => {}
            other => {
                let message = format!("a schema is an object, `true` or `false`, and not {other}");
                return Err(Refusal::new(Kind::Syntax, &here.pointer, message));
            }
        }
        let reading = Reading { node, scope, draft: here.draft, value: here.value, of };
        if here.draft <= Draft::Draft7 && here.value.get("$ref").is_some() {
            return self.reference(&reading);
        }
        // Of most types a schema allows no values, whatever else it says of them, if it says that well.
        let typed = self.typed(&reading)?;
        if matches!(typed, Formula::False) {
            let keywords = here.value.members().unwrap_or_default();
            if keywords.iter().any(|(keyword, _)| has_shape(of, keyword))
                && let Err(refusal) = self.of_type(&reading)
                && refusal.kind == Kind::Syntax
            {
                return Err(refusal);
            }
            return Ok(typed);
        }
        let parts = vec![self.reference(&reading)?, self.combined(&reading)?, typed, self.of_type(&reading)?];
        Ok(Formula::all(parts))
    }

    /// What the keywords assert that are about values of the type alone.
    fn of_type(&mut self, reading: &Reading<'a>) -> Found {
        match reading.of {
            Type::Number => self.number(reading),
            Type::String => self.text(reading),
            Type::Array => self.array(reading),
            Type::Object => self.object(reading),
            Type::Null | Type::Bool => Ok(Formula::True),
        }
    }

    fn wrong(&self, reading: &Reading<'a>, keyword: &'static str, what: &str) -> Refusal {
        let pointer = format!("{}/{keyword}", self.documents.node(reading.node).pointer);
        Refusal::new(Kind::Syntax, &pointer, format!("{what} is expected")).keyword(keyword)
    }

    fn unsupported(&self, reading: &Reading<'a>, keyword: &'static str, why: &str) -> Refusal {
        let pointer = format!("{}/{keyword}", self.documents.node(reading.node).pointer);
        Refusal::new(Kind::Unsupported, &pointer, why).keyword(keyword)
    }

    /// The literal of a schema below a keyword.
    fn below(&mut self, reading: &Reading<'a>, value: &'a Value, path: &str) -> Literal {
        let child = self.documents.child(reading.node, value, path);
        let scope = self.entered(reading.scope, child);
        self.of_node(child, scope)
    }

    fn schema(&mut self, reading: &Reading<'a>, keyword: &str) -> Option<Literal> {
        let value = reading.value.get(keyword)?;
        Some(self.below(reading, value, keyword))
    }

    fn schemas(
        &mut self,
        reading: &Reading<'a>,
        keyword: &'static str,
    ) -> Result<Option<Vec<Literal>>, Refusal> {
        let Some(value) = reading.value.get(keyword) else { return Ok(None) };
        let items = value.items().ok_or_else(|| self.wrong(reading, keyword, "a list of schemas"))?;
        let below = |(at, item): (usize, &'a Value)| self.below(reading, item, &format!("{keyword}/{at}"));
        Ok(Some(items.iter().enumerate().map(below).collect()))
    }

    pub(crate) fn fields(
        &mut self,
        reading: &Reading<'a>,
        keyword: &'static str,
    ) -> Result<&'a [(Arc<str>, Value)], Refusal> {
        let Some(value) = reading.value.get(keyword) else { return Ok(&[]) };
        value.members().ok_or_else(|| self.wrong(reading, keyword, "an object"))
    }

    fn count(&mut self, reading: &Reading<'a>, keyword: &'static str) -> Result<Option<u64>, Refusal> {
        let Some(value) = reading.value.get(keyword) else { return Ok(None) };
        let number = value.number().filter(|number| number.is_integer() && *number >= Decimal::ZERO);
        let number = number.ok_or_else(|| self.wrong(reading, keyword, "an integer of at least 0"))?;
        Ok(Some(number.to_integer().and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX)))
    }

    fn texts(
        &self,
        reading: &Reading<'a>,
        keyword: &'static str,
        value: &Value,
    ) -> Result<Vec<Arc<str>>, Refusal> {
        let texts = || value.items()?.iter().map(|item| item.text().cloned()).collect::<Option<Vec<_>>>();
        texts().ok_or_else(|| self.wrong(reading, keyword, "a list of strings"))
    }

    fn reference(&mut self, reading: &Reading<'a>) -> Found {
        let mut parts = Vec::new();
        for target in self.targets(reading)? {
            let scope = self.entered(reading.scope, target);
            parts.push(Formula::Literal(self.of_node(target, scope)));
        }
        Ok(Formula::all(parts))
    }

    /// The schemas that a schema's references point to.
    pub(crate) fn targets(&mut self, reading: &Reading<'a>) -> Result<Vec<NodeId>, Refusal> {
        let mut targets = Vec::new();
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(value) = reading.value.get(keyword) else { continue };
            let is_known = match keyword {
                "$dynamicRef" => reading.draft >= Draft::Draft2020,
                "$recursiveRef" => reading.draft == Draft::Draft2019,
                _ => true,
            };
            if !is_known {
                continue;
            }
            let text = value.text().ok_or_else(|| self.wrong(reading, "$ref", "an address"))?;
            let scope = self.scope(reading.scope);
            targets.push(match keyword {
                "$ref" => self.documents.resolve(reading.node, text)?,
                "$dynamicRef" => self.documents.resolve_dynamic(reading.node, text, &scope)?,
                _ => self.documents.resolve_recursive(reading.node, &scope)?,
            });
        }
        Ok(targets)
    }

    fn combined(&mut self, reading: &Reading<'a>) -> Found {
        let mut parts = Vec::new();
        let literals = |literals: Vec<Literal>| literals.into_iter().map(Formula::Literal).collect();
        if let Some(all) = self.schemas(reading, "allOf")? {
            parts.push(Formula::all(literals(all)));
        }
        if let Some(any) = self.schemas(reading, "anyOf")? {
            parts.push(Formula::any(literals(any)));
        }
        if let Some(one) = self.schemas(reading, "oneOf")? {
            parts.push(self.exactly_one(reading, &one)?);
        }
        if let Some(not) = self.schema(reading, "not") {
            parts.push(Formula::Literal(self.negated(not)));
        }
        if reading.draft >= Draft::Draft7
            && let Some(condition) = self.schema(reading, "if")
        {
            let then = self.schema(reading, "then").unwrap_or(Literal::TRUE);
            let otherwise = self.schema(reading, "else").unwrap_or(Literal::TRUE);
            if (then, otherwise) != (Literal::TRUE, Literal::TRUE) {
                let against = self.negated(condition);
                let case = |a, b| Formula::all(vec![Formula::Literal(a), Formula::Literal(b)]);
                parts.push(Formula::any(vec![case(condition, then), case(against, otherwise)]));
            }
        }
        Ok(Formula::all(parts))
    }

    /// That one of some literals holds and no other: only those that can hold together have to be told apart.
    fn exactly_one(&mut self, reading: &Reading<'a>, literals: &[Literal]) -> Found {
        if literals.len() > MANY_BRANCHES {
            let message = format!("more than {MANY_BRANCHES} alternatives, each pair of which is compared");
            let pointer = self.documents.node(reading.node).pointer.clone();
            return Err(Refusal::new(Kind::Limit, &pointer, message).keyword("oneOf"));
        }
        let mut cases = Vec::with_capacity(literals.len());
        for (at, &literal) in literals.iter().enumerate() {
            let mut parts = vec![Formula::Literal(literal)];
            for (other_at, &other) in literals.iter().enumerate() {
                if other_at != at && (other == literal || self.may_overlap(literal, other)?) {
                    parts.push(Formula::Literal(self.negated(other)));
                }
            }
            cases.push(Formula::all(parts));
        }
        Ok(Formula::any(cases))
    }

    fn typed(&mut self, reading: &Reading<'a>) -> Found {
        let mut parts = Vec::new();
        if let Some(value) = reading.value.get("type") {
            parts.push(match value {
                Value::String(name) => self.has_type(reading, name)?,
                value => {
                    let names = self.texts(reading, "type", value)?;
                    let cases = names.iter().map(|name| self.has_type(reading, name));
                    Formula::any(cases.collect::<Result<_, _>>()?)
                }
            });
        }
        if let Some(value) = reading.value.get("enum") {
            let items = value.items().ok_or_else(|| self.wrong(reading, "enum", "a list of values"))?;
            let kept = items.iter().filter(|item| Type::of(item) == reading.of);
            let kept: Vec<u32> = kept.map(|item| self.value(item)).collect();
            parts.push(if kept.is_empty() { Formula::False } else { Formula::one_of(kept) });
        }
        if let Some(value) = reading.value.get("const")
            && reading.draft >= Draft::Draft6
        {
            let is_possible = Type::of(value) == reading.of;
            parts.push(if is_possible { Formula::OneOf([self.value(value)].into()) } else { Formula::False });
        }
        Ok(Formula::all(parts))
    }

    fn has_type(&self, reading: &Reading<'a>, name: &str) -> Found {
        let is = |of: Type| if reading.of == of { Formula::True } else { Formula::False };
        Ok(match name {
            "null" => is(Type::Null),
            "boolean" => is(Type::Bool),
            "number" => is(Type::Number),
            "string" => is(Type::String),
            "array" => is(Type::Array),
            "object" => is(Type::Object),
            "any" if reading.draft == Draft::Draft4 => Formula::True,
            "integer" if reading.of != Type::Number => Formula::False,
            "integer" if reading.draft == Draft::Draft4 => Formula::Number(NumberAtom::Plain(true)),
            "integer" => Formula::Number(NumberAtom::Whole(true)),
            name => return Err(self.wrong(reading, "type", &format!("a type, and not {name:?},"))),
        })
    }

    fn bound(&mut self, reading: &Reading<'a>, keyword: &'static str) -> Result<Option<Decimal>, Refusal> {
        let Some(value) = reading.value.get(keyword) else { return Ok(None) };
        value.number().map(Some).ok_or_else(|| self.wrong(reading, keyword, "a number"))
    }

    fn number(&mut self, reading: &Reading<'a>) -> Found {
        let mut parts = Vec::new();
        for (keyword, strict, is_min) in
            [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
        {
            let atom = |bound, exclusive| {
                let atom = if is_min { NumberAtom::Min } else { NumberAtom::Max };
                Formula::Number(atom(bound, exclusive))
            };
            // Draft 4 has a truth value beside the bound; it is read wherever it stands.
            let is_strict = reading.value.get(strict) == Some(&Value::Bool(true));
            if let Some(bound) = self.bound(reading, keyword)? {
                parts.push(atom(bound, is_strict));
            }
            if !matches!(reading.value.get(strict), Some(Value::Bool(_)))
                && let Some(bound) = self.bound(reading, strict)?
            {
                parts.push(atom(bound, true));
            }
        }
        if let Some(of) = self.bound(reading, "multipleOf")? {
            if of <= Decimal::ZERO {
                return Err(self.wrong(reading, "multipleOf", "a number greater than 0"));
            }
            parts.push(Formula::Number(NumberAtom::Multiple(of, true)));
        }
        Ok(Formula::all(parts))
    }

    fn text(&mut self, reading: &Reading<'a>) -> Found {
        let mut parts = Vec::new();
        if let Some(n) = self.count(reading, "minLength")?.filter(|&n| n > 0) {
            parts.push(Formula::Text(TextAtom::AtLeast(n)));
        }
        if let Some(n) = self.count(reading, "maxLength")? {
            parts.push(Formula::Text(TextAtom::AtMost(n)));
        }
        if let Some(value) = reading.value.get("pattern") {
            let pattern = value.text().ok_or_else(|| self.wrong(reading, "pattern", "a pattern"))?;
            let id = self.pattern(reading, "pattern", pattern, "pattern")?;
            parts.push(Formula::Text(TextAtom::Pattern(id, true)));
        }
        if let Some(value) = reading.value.get("format")
            && self.asserts_formats
            && let Some(name) = value.text()
            && let Some(format) =
                self.strings.format(name).map_err(|why| self.unsupported(reading, "format", &why))?
        {
            parts.push(Formula::Text(TextAtom::Format(format, true)));
        }
        Ok(Formula::all(parts))
    }

    pub(crate) fn pattern(
        &mut self,
        reading: &Reading<'a>,
        keyword: &'static str,
        pattern: &str,
        path: &str,
    ) -> Result<PatternId, Refusal> {
        let pointer = format!("{}/{path}", self.documents.node(reading.node).pointer);
        self.strings.pattern(pattern).map_err(|(kind, why)| {
            Refusal::new(kind, &pointer, format!("in the pattern {pattern:?}: {why}")).keyword(keyword)
        })
    }

    fn array(&mut self, reading: &Reading<'a>) -> Found {
        let mut parts = Vec::new();
        let mut push = |atom| parts.push(Formula::Array(atom));
        if let Some(n) = self.count(reading, "minItems")?.filter(|&n| n > 0) {
            push(ArrayAtom::AtLeast(n));
        }
        if let Some(n) = self.count(reading, "maxItems")? {
            push(ArrayAtom::AtMost(n));
        }
        if reading.value.get("uniqueItems") == Some(&Value::Bool(true)) {
            push(ArrayAtom::Unique(true));
        }
        let is_new = reading.draft >= Draft::Draft2020;
        let (prefix, rest) =
            match (self.schemas(reading, "prefixItems")?.filter(|_| is_new), reading.value.get("items")) {
                (Some(prefix), Some(_)) => (prefix, self.schema(reading, "items")),
                (Some(prefix), None) => (prefix, None),
                // Drafts up to 2019-09 have a list here; it has no other meaning later.
                (None, Some(Value::Array(_))) => (
                    self.schemas(reading, "items")?.unwrap_or_default(),
                    self.schema(reading, "additionalItems"),
                ),
                (None, _) => (Vec::new(), self.schema(reading, "items")),
            };
        let n = prefix.len() as u64;
        for (at, literal) in (0..).zip(prefix) {
            push(ArrayAtom::Every(Places { from: at, to: Some(at + 1) }, literal));
        }
        if let Some(literal) = rest {
            push(ArrayAtom::Every(Places { from: n, to: None }, literal));
        }
        if reading.draft >= Draft::Draft6
            && let Some(literal) = self.schema(reading, "contains")
        {
            let counts = reading.draft >= Draft::Draft2019;
            let min = self.count(reading, "minContains")?.filter(|_| counts).unwrap_or(1);
            let max = self.count(reading, "maxContains")?.filter(|_| counts);
            push(match max {
                None if min == 1 => ArrayAtom::Some(Places::ALL, literal),
                max => ArrayAtom::Contains(literal, min, max),
            });
        }
        if reading.draft >= Draft::Draft2019
            && let Some(literal) = self.schema(reading, "unevaluatedItems")
        {
            parts.push(self.unevaluated(reading, literal)?);
        }
        Ok(Formula::all(parts))
    }

    fn object(&mut self, reading: &Reading<'a>) -> Found {
        let mut parts = Vec::new();
        // Up to draft 3 `required` was a truth value; as in validators, only lists count.
        if let Some(value @ Value::Array(_)) = reading.value.get("required") {
            let keys = self.texts(reading, "required", value)?;
            parts.extend(keys.into_iter().map(|key| Formula::Object(ObjectAtom::Has(key))));
        }
        if let Some(n) = self.count(reading, "minProperties")?.filter(|&n| n > 0) {
            parts.push(Formula::Object(ObjectAtom::AtLeast(n)));
        }
        if let Some(n) = self.count(reading, "maxProperties")? {
            parts.push(Formula::Object(ObjectAtom::AtMost(n)));
        }
        if reading.draft >= Draft::Draft6
            && let Some(literal) = self.schema(reading, "propertyNames")
            && literal != Literal::TRUE
        {
            parts.push(Formula::Object(ObjectAtom::Names(literal)));
        }
        self.properties(reading, &mut parts)?;
        self.dependencies(reading, &mut parts)?;
        if reading.draft >= Draft::Draft2019
            && let Some(literal) = self.schema(reading, "unevaluatedProperties")
        {
            parts.push(self.unevaluated(reading, literal)?);
        }
        Ok(Formula::all(parts))
    }

    fn properties(&mut self, reading: &Reading<'a>, parts: &mut Vec<Formula>) -> Result<(), Refusal> {
        let mut listed = Vec::new();
        for (key, value) in self.fields(reading, "properties")? {
            let literal = self.below(reading, value, &format!("properties/{}", escaped(key)));
            listed.push(key.clone());
            parts.push(Formula::Object(ObjectAtom::Every(Keys::Key(key.clone()), literal)));
        }
        if !listed.is_empty() && (self.order == KeyOrder::Schema || self.declared_only) {
            let keys = listed.clone().into();
            parts.push(Formula::Object(ObjectAtom::Order(reading.node.0, keys)));
        }
        let mut patterns = Vec::new();
        for (pattern, value) in self.fields(reading, "patternProperties")? {
            let path = format!("patternProperties/{}", escaped(pattern));
            let literal = self.below(reading, value, &path);
            let id = self.pattern(reading, "patternProperties", pattern, &path)?;
            patterns.push(id);
            parts.push(Formula::Object(ObjectAtom::Every(Keys::Pattern(id), literal)));
        }
        if let Some(literal) = self.schema(reading, "additionalProperties") {
            listed.sort_unstable();
            patterns.sort_unstable();
            let keys = match (listed.is_empty(), patterns.is_empty()) {
                (true, true) => Keys::All,
                _ => Keys::Others(listed.into(), patterns.into()),
            };
            parts.push(Formula::Object(ObjectAtom::Every(keys, literal)));
        }
        Ok(())
    }

    fn dependencies(&mut self, reading: &Reading<'a>, parts: &mut Vec<Formula>) -> Result<(), Refusal> {
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            if keyword != "dependencies" && reading.draft < Draft::Draft2019 {
                continue;
            }
            for (key, value) in self.fields(reading, keyword)? {
                let then = match value {
                    Value::Array(_) => {
                        let keys = self.texts(reading, keyword, value)?;
                        Formula::all(
                            keys.into_iter().map(|key| Formula::Object(ObjectAtom::Has(key))).collect(),
                        )
                    }
                    // Draft 3 had a single key.
                    Value::String(key) => Formula::Object(ObjectAtom::Has(key.clone())),
                    value => {
                        Formula::Literal(self.below(reading, value, &format!("{keyword}/{}", escaped(key))))
                    }
                };
                let absent = ObjectAtom::Every(Keys::Key(key.clone()), Literal::FALSE);
                parts.push(Formula::any(vec![Formula::Object(absent), then]));
            }
        }
        Ok(())
    }
}
