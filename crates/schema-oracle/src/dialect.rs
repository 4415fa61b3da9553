//! Which keywords a schema may use: by draft, and from 2019-09 on by vocabulary.

use crate::json::Value;

/// A draft of JSON Schema.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Draft {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12.
    Draft202012,
}

use Draft::{Draft4, Draft6, Draft7, Draft201909, Draft202012};

impl Draft {
    /// The draft whose metaschema has this address, with or without an empty fragment.
    pub fn of_metaschema(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let address = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        match address {
            "json-schema.org/draft-04/schema" => Some(Draft4),
            "json-schema.org/draft-06/schema" => Some(Draft6),
            "json-schema.org/draft-07/schema" => Some(Draft7),
            "json-schema.org/draft/2019-09/schema" => Some(Draft201909),
            "json-schema.org/draft/2020-12/schema" => Some(Draft202012),
            _ => None,
        }
    }
}

/// The meaning of a schema's keywords.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// The draft.
    pub draft: Draft,
    /// Whether keywords of other drafts count too, where this draft gives them no meaning (see
    /// [`Dialect::unstated`]).
    pub lenient: bool,
    /// Whether the keywords that apply subschemas count.
    pub applicators: bool,
    /// Whether `unevaluatedItems` and `unevaluatedProperties` count.
    pub unevaluated: bool,
    /// Whether the keywords that constrain by themselves (`type`, `minimum`, …) count.
    pub validation: bool,
    /// Whether formats are asserted whatever the caller wishes.
    pub asserts_formats: bool,
}

impl From<Draft> for Dialect {
    fn from(draft: Draft) -> Self {
        let all = true;
        Self {
            draft,
            lenient: false,
            applicators: all,
            unevaluated: all,
            validation: all,
            asserts_formats: false,
        }
    }
}

/// What a keyword is, as far as its place among the vocabularies goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Core,
    Applicator,
    Unevaluated,
    Validation,
    /// `format`: what it means is an option.
    Format,
    /// Holds subschemas, which only references reach.
    Container,
}

/// Every keyword that is more than a remark, the drafts that have it, and its group.
const KEYWORDS: &[(&str, Draft, Draft, Group)] = &[
    ("id", Draft4, Draft4, Group::Core),
    ("$id", Draft6, Draft202012, Group::Core),
    ("$anchor", Draft201909, Draft202012, Group::Core),
    ("$ref", Draft4, Draft202012, Group::Core),
    ("$recursiveRef", Draft201909, Draft201909, Group::Core),
    ("$recursiveAnchor", Draft201909, Draft201909, Group::Core),
    ("$dynamicRef", Draft202012, Draft202012, Group::Core),
    ("$dynamicAnchor", Draft202012, Draft202012, Group::Core),
    ("definitions", Draft4, Draft202012, Group::Container),
    ("$defs", Draft201909, Draft202012, Group::Container),
    ("contentSchema", Draft201909, Draft202012, Group::Container),
    ("allOf", Draft4, Draft202012, Group::Applicator),
    ("anyOf", Draft4, Draft202012, Group::Applicator),
    ("oneOf", Draft4, Draft202012, Group::Applicator),
    ("not", Draft4, Draft202012, Group::Applicator),
    ("if", Draft7, Draft202012, Group::Applicator),
    ("then", Draft7, Draft202012, Group::Applicator),
    ("else", Draft7, Draft202012, Group::Applicator),
    ("dependencies", Draft4, Draft7, Group::Applicator),
    ("dependentSchemas", Draft201909, Draft202012, Group::Applicator),
    ("properties", Draft4, Draft202012, Group::Applicator),
    ("patternProperties", Draft4, Draft202012, Group::Applicator),
    ("additionalProperties", Draft4, Draft202012, Group::Applicator),
    ("propertyNames", Draft6, Draft202012, Group::Applicator),
    ("prefixItems", Draft202012, Draft202012, Group::Applicator),
    ("items", Draft4, Draft202012, Group::Applicator),
    ("additionalItems", Draft4, Draft201909, Group::Applicator),
    ("contains", Draft6, Draft202012, Group::Applicator),
    ("unevaluatedItems", Draft201909, Draft202012, Group::Unevaluated),
    ("unevaluatedProperties", Draft201909, Draft202012, Group::Unevaluated),
    ("type", Draft4, Draft202012, Group::Validation),
    ("enum", Draft4, Draft202012, Group::Validation),
    ("const", Draft6, Draft202012, Group::Validation),
    ("multipleOf", Draft4, Draft202012, Group::Validation),
    ("minimum", Draft4, Draft202012, Group::Validation),
    ("maximum", Draft4, Draft202012, Group::Validation),
    ("exclusiveMinimum", Draft4, Draft202012, Group::Validation),
    ("exclusiveMaximum", Draft4, Draft202012, Group::Validation),
    ("minLength", Draft4, Draft202012, Group::Validation),
    ("maxLength", Draft4, Draft202012, Group::Validation),
    ("pattern", Draft4, Draft202012, Group::Validation),
    ("minItems", Draft4, Draft202012, Group::Validation),
    ("maxItems", Draft4, Draft202012, Group::Validation),
    ("uniqueItems", Draft4, Draft202012, Group::Validation),
    ("minContains", Draft201909, Draft202012, Group::Validation),
    ("maxContains", Draft201909, Draft202012, Group::Validation),
    ("minProperties", Draft4, Draft202012, Group::Validation),
    ("maxProperties", Draft4, Draft202012, Group::Validation),
    ("required", Draft4, Draft202012, Group::Validation),
    ("dependentRequired", Draft201909, Draft202012, Group::Validation),
    ("format", Draft4, Draft202012, Group::Format),
];

/// Keywords of other drafts that a lenient dialect has.
const LENIENT: &[&str] = &["id", "$recursiveRef", "$recursiveAnchor", "dependencies", "additionalItems"];

impl Dialect {
    /// The dialect of a schema without `$schema`: draft 2020-12, and besides
    ///
    /// - `dependencies`, `$recursiveRef` and `$recursiveAnchor` mean what they meant last;
    /// - `items` as an array is what `prefixItems` is, and then `additionalItems` what `items` is; both are
    ///   ignored beside `prefixItems`;
    /// - `exclusiveMinimum` and `exclusiveMaximum` may be Booleans, as in draft 4;
    /// - `id` names a resource, if it is a string and no `$id` stands beside it.
    ///
    /// Siblings of `$ref` count, and `1.0` is an integer, as in 2020-12. No label of JSONSchemaBench depends
    /// on any line of the list: it is there because schemas without `$schema` are mostly old ones.
    pub fn unstated() -> Self {
        Self { lenient: true, ..Self::from(Draft202012) }
    }

    /// The dialect that a metaschema with `$vocabulary` describes; `None` if it has none.
    pub(crate) fn of_vocabularies(metaschema: &Value, draft: Draft) -> Option<Self> {
        let members = metaschema.get("$vocabulary")?.as_object()?;
        let year = if draft == Draft201909 { "2019-09" } else { "2020-12" };
        let listed = |name: &str| {
            let uri = format!("https://json-schema.org/draft/{year}/vocab/{name}");
            members.iter().any(|(key, _)| *key == uri)
        };
        let applicators = listed("applicator");
        Some(Self {
            draft,
            lenient: false,
            applicators,
            unevaluated: if draft == Draft201909 { applicators } else { listed("unevaluated") },
            validation: listed("validation"),
            asserts_formats: listed("format-assertion"),
        })
    }

    /// Whether this is a keyword of the dialect.
    pub fn has(&self, keyword: &str) -> bool {
        let found = KEYWORDS.iter().find(|(name, ..)| *name == keyword);
        let Some(&(_, first, last, group)) = found else { return false };
        let counts = match group {
            Group::Core | Group::Format | Group::Container => true,
            Group::Applicator => self.applicators,
            Group::Unevaluated => self.unevaluated,
            Group::Validation => self.validation,
        };
        counts && ((first..=last).contains(&self.draft) || (self.lenient && LENIENT.contains(&keyword)))
    }

    /// Whether `$ref` hides what stands beside it.
    pub fn ref_hides_siblings(&self) -> bool {
        self.draft <= Draft7
    }

    /// The `$id` or `id` of a schema object, if it has one that counts.
    pub(crate) fn id_of<'v>(&self, schema: &'v Value) -> Option<&'v str> {
        if self.ref_hides_siblings() && schema.get("$ref").is_some() {
            return None;
        }
        let id = |keyword| schema.get(keyword).filter(|_| self.has(keyword)).and_then(Value::as_str);
        id("$id").or_else(|| id("id"))
    }

    /// The schemas that stand directly in a schema object under keywords of the dialect.
    pub(crate) fn subschemas<'v>(&self, schema: &'v Value) -> Vec<&'v Value> {
        let mut found = Vec::new();
        for (keyword, value) in schema.as_object().unwrap_or_default() {
            if !self.has(keyword) {
                continue;
            }
            match keyword.as_str() {
                "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "contentSchema"
                | "additionalItems"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties" => {
                    found.push(value);
                }
                "items" if value.as_array().is_none() => found.push(value),
                "items" | "prefixItems" | "allOf" | "anyOf" | "oneOf" => {
                    found.extend(value.as_array().unwrap_or_default());
                }
                "properties" | "patternProperties" | "definitions" | "$defs" | "dependentSchemas"
                | "dependencies" => {
                    let members = value.as_object().unwrap_or_default();
                    found.extend(
                        members.iter().map(|(_, value)| value).filter(|value| value.as_array().is_none()),
                    );
                }
                _ => {}
            }
        }
        found
    }
}
