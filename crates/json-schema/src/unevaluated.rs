//! `unevaluatedProperties` and `unevaluatedItems`: what no other keyword about the same value looked at.
//!
//! What was looked at depends on which subschemas hold. A *scenario* is a choice of subschemas that hold,
//! with what they look at; the keyword asserts that in some scenario all that is left is as it says. It need
//! not be said of the other subschemas that they do not hold: where they do, less is left.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::algebra::{Algebra, Formula, Type};
use crate::atoms::{ArrayAtom, Keys, Literal, ObjectAtom, Places};
use crate::document::{Draft, NodeId, escaped};
use crate::keywords::Reading;
use crate::refusal::{Kind, Refusal};
use crate::strings::PatternId;
use crate::value::Value;

/// Subschemas that hold, and what they look at.
#[derive(Clone, Default)]
struct Scenario {
    conditions: Vec<Formula>,
    keys: BTreeSet<Arc<str>>,
    patterns: BTreeSet<PatternId>,
    /// So many items from the first.
    items: u64,
    /// Items that these hold of.
    contained: BTreeSet<Literal>,
    /// All members or items.
    all: bool,
}

/// Scenarios of one schema.
const MANY: usize = 500;

/// Schemas within schemas about one value.
const DEEP: usize = 60;

impl Scenario {
    fn join(&self, other: &Self) -> Self {
        let mut joined = self.clone();
        joined.conditions.extend(other.conditions.iter().cloned());
        joined.keys.extend(other.keys.iter().cloned());
        joined.patterns.extend(&other.patterns);
        joined.contained.extend(&other.contained);
        joined.items = joined.items.max(other.items);
        joined.all |= other.all;
        joined
    }
}

/// Both of two choices.
fn product(a: &[Scenario], b: &[Scenario]) -> Vec<Scenario> {
    a.iter().flat_map(|a| b.iter().map(|b| a.join(b))).collect()
}

impl<'a> Algebra<'a> {
    /// What `unevaluatedProperties` asserts of an object, or `unevaluatedItems` of an array.
    pub(crate) fn unevaluated(
        &mut self,
        reading: &Reading<'a>,
        literal: Literal,
    ) -> Result<Formula, Refusal> {
        let scenarios = self.scenarios(reading, false, 0)?;
        let mut cases = Vec::with_capacity(scenarios.len());
        for Scenario { mut conditions, keys, patterns, items, contained, all } in scenarios {
            let rest = match (all, reading.of) {
                (true, _) => Formula::True,
                (false, Type::Array) => {
                    let either = self.either(contained.into_iter().chain([literal]).collect());
                    Formula::Array(ArrayAtom::Every(Places { from: items, to: None }, either))
                }
                (false, _) => {
                    let keys = match (keys.is_empty(), patterns.is_empty()) {
                        (true, true) => Keys::All,
                        _ => Keys::Others(keys.into_iter().collect(), patterns.into_iter().collect()),
                    };
                    Formula::Object(ObjectAtom::Every(keys, literal))
                }
            };
            conditions.push(rest);
            cases.push(Formula::all(conditions));
        }
        Ok(Formula::any(cases))
    }

    /// What a schema that holds may have looked at; with `whole` what its own `unevaluated` keyword looked at
    /// counts.
    fn scenarios(
        &mut self,
        reading: &Reading<'a>,
        whole: bool,
        depth: usize,
    ) -> Result<Vec<Scenario>, Refusal> {
        if depth > DEEP {
            return Err(self.too_much(reading, "nests", DEEP));
        }
        let own = self.looked_at(reading, whole)?;
        if own.all {
            return Ok(vec![own]);
        }
        let mut found = vec![own];
        for target in self.targets(reading)? {
            let scope = self.entered(reading.scope, target);
            let more = self.below_scenarios(target, scope, reading.of, depth)?;
            found = self.limited(reading, product(&found, &more))?;
        }
        for (keyword, needs_all) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
            let branches = self.branches(reading, keyword)?;
            if branches.is_empty() {
                continue;
            }
            let mut chosen: Vec<Scenario> = Vec::new();
            for (node, literal) in branches {
                let mut more = self.below_scenarios(node, reading.scope, reading.of, depth)?;
                if needs_all {
                    found = self.limited(reading, product(&found, &more))?;
                    continue;
                }
                more.iter_mut().for_each(|scenario| scenario.conditions.push(Formula::Literal(literal)));
                if keyword == "anyOf" {
                    let both = product(&chosen, &more);
                    chosen.extend(both);
                }
                chosen.extend(more);
                chosen = self.limited(reading, chosen)?;
            }
            if !needs_all {
                found = self.limited(reading, product(&found, &chosen))?;
            }
        }
        self.conditional(reading, depth, found)
    }

    /// `if`, `then`, `else` and `dependentSchemas`.
    fn conditional(
        &mut self,
        reading: &Reading<'a>,
        depth: usize,
        mut found: Vec<Scenario>,
    ) -> Result<Vec<Scenario>, Refusal> {
        if let Some(value) = reading.value.get("if") {
            let condition = self.documents.child(reading.node, value, "if");
            let literal = self.of_node(condition, reading.scope);
            let mut cases = Vec::new();
            for (keyword, literal) in [("then", literal), ("else", self.negated(literal))] {
                let mut case =
                    vec![Scenario { conditions: vec![Formula::Literal(literal)], ..Scenario::default() }];
                if keyword == "then" {
                    let more = self.below_scenarios(condition, reading.scope, reading.of, depth)?;
                    case = product(&case, &more);
                }
                if let Some(value) = reading.value.get(keyword) {
                    let node = self.documents.child(reading.node, value, keyword);
                    let more = self.below_scenarios(node, reading.scope, reading.of, depth)?;
                    case = product(&case, &more);
                }
                cases.extend(case);
            }
            found = self.limited(reading, product(&found, &cases))?;
        }
        let dependent = reading.value.get("dependentSchemas").and_then(Value::members).unwrap_or_default();
        for (key, value) in dependent.iter().filter(|_| reading.of == Type::Object) {
            let node =
                self.documents.child(reading.node, value, &format!("dependentSchemas/{}", escaped(key)));
            let mut more = self.below_scenarios(node, reading.scope, reading.of, depth)?;
            let has = Formula::Object(ObjectAtom::Has(key.clone()));
            more.iter_mut().for_each(|scenario| scenario.conditions.push(has.clone()));
            more.push(Scenario::default());
            found = self.limited(reading, product(&found, &more))?;
        }
        Ok(found)
    }

    fn limited(&self, reading: &Reading<'a>, found: Vec<Scenario>) -> Result<Vec<Scenario>, Refusal> {
        if found.len() > MANY { Err(self.too_much(reading, "has", MANY)) } else { Ok(found) }
    }

    fn too_much(&self, reading: &Reading<'a>, what: &str, limit: usize) -> Refusal {
        let message =
            format!("what stays unevaluated depends on more than {limit} subschemas that it {what}");
        Refusal::new(Kind::Limit, &self.documents.node(reading.node).pointer, message)
    }

    fn below_scenarios(
        &mut self,
        node: NodeId,
        scope: u32,
        of: Type,
        depth: usize,
    ) -> Result<Vec<Scenario>, Refusal> {
        let scope = self.entered(scope, node);
        let here = self.documents.node(node).clone();
        match here.value {
            Value::Object(_) => {
                let reading = Reading { node, scope, draft: here.draft, value: here.value, of };
                self.scenarios(&reading, true, depth + 1)
            }
            _ => Ok(vec![Scenario::default()]),
        }
    }

    fn branches(
        &mut self,
        reading: &Reading<'a>,
        keyword: &'static str,
    ) -> Result<Vec<(NodeId, Literal)>, Refusal> {
        let items = reading.value.get(keyword).and_then(Value::items).unwrap_or_default();
        let branch = |(at, item): (usize, &'a Value)| {
            let node = self.documents.child(reading.node, item, &format!("{keyword}/{at}"));
            (node, self.of_node(node, reading.scope))
        };
        Ok(items.iter().enumerate().map(branch).collect())
    }

    /// What a schema's own keywords look at.
    fn looked_at(&mut self, reading: &Reading<'a>, whole: bool) -> Result<Scenario, Refusal> {
        let mut own = Scenario::default();
        let has = |keyword| reading.value.get(keyword).is_some();
        if reading.of == Type::Object {
            own.keys.extend(self.fields(reading, "properties")?.iter().map(|(key, _)| key.clone()));
            for (pattern, _) in self.fields(reading, "patternProperties")? {
                own.patterns.insert(self.pattern(
                    reading,
                    "patternProperties",
                    pattern,
                    "patternProperties",
                )?);
            }
            own.all = has("additionalProperties") || whole && has("unevaluatedProperties");
            return Ok(own);
        }
        let is_list = matches!(reading.value.get("items"), Some(Value::Array(_)));
        let prefix = if is_list { "items" } else { "prefixItems" };
        own.items = reading.value.get(prefix).and_then(Value::items).map_or(0, |items| items.len() as u64);
        own.all =
            has("items") && !is_list || is_list && has("additionalItems") || whole && has("unevaluatedItems");
        if reading.draft >= Draft::Draft2020
            && let Some(value) = reading.value.get("contains")
        {
            let node = self.documents.child(reading.node, value, "contains");
            own.contained.insert(self.of_node(node, reading.scope));
        }
        Ok(own)
    }
}
