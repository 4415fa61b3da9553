//! Random schemas, values near them, and random spellings of values, each replayed from its seed.
//!
//! Everything is drawn from small pools, so that what a schema asks for and what a value has meet often.

use anygram_bits::Random;

use crate::decimal::Decimal;
use crate::formats;
use crate::json::Value;

/// Every keyword that schemas are drawn with by default: those of the unstated dialect.
pub const KEYWORDS: &[&str] = &[
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

const NUMBERS: &[&str] = &[
    "0", "-0", "1", "1.0", "1e0", "2", "3", "-1", "-2.5", "0.5", "1.5", "0.1", "10", "1e2", "12.50", "37e18",
];
const FACTORS: &[&str] = &["1", "2", "3", "0.5", "0.1", "1.5", "10", "1e1"];
const COUNTS: &[&str] = &["0", "1", "1.0", "2", "3", "4"];
const STRINGS: &[&str] = &[
    "",
    "a",
    "b",
    "aa",
    "ab",
    "aab",
    "é",
    "e\u{301}",
    "😀",
    "😀a",
    "a\nb",
    "\"\\/",
    "\u{0}",
    "\u{7f}",
    "1",
    "12",
    "::1",
    "1.2.3.4",
    "a@b.c",
    "2024-02-29",
    "12:30:00Z",
    "P1D",
    "a:b",
    "/a",
    "0#",
];
const KEYS: &[&str] = &["a", "b", "c", "ab", "é", "😀", ""];
const PATTERNS: &[&str] = &[
    "a",
    "^a",
    "b$",
    "^[ab]*$",
    "^.$",
    "^..$",
    "^(a|bb)+$",
    "[^a]",
    "\\d",
    "^\\p{L}+$",
    "^$",
    "",
    "a|^$",
    "\\.",
    "^\\w+$",
];
const TYPES: &[&str] = &["null", "boolean", "integer", "number", "string", "array", "object"];
const DEFINITIONS: &[&str] = &["a", "b/c", "d~"];

/// A source of random schemas, values and spellings.
#[derive(Clone, Debug)]
pub struct Generator {
    random: Random,
    keywords: Vec<&'static str>,
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn number(text: &str) -> Value {
    Decimal::parse(text).map_or(Value::Null, Value::Number)
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

impl Generator {
    /// The source of a seed, whose schemas have all [`KEYWORDS`].
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), keywords: KEYWORDS.to_vec() }
    }

    /// The same source, whose schemas have only these keywords. Those that are none of [`KEYWORDS`] are left
    /// out.
    pub fn with_keywords(mut self, keywords: &[&str]) -> Self {
        self.keywords = KEYWORDS.iter().copied().filter(|keyword| keywords.contains(keyword)).collect();
        self
    }

    fn pick<'t>(&mut self, pool: &[&'t str]) -> &'t str {
        pool[self.random.below(pool.len())]
    }

    /// A document: a schema nested at most `depth` deep. If references are drawn, they are to its `$defs` and
    /// to the whole; then a value may have no answer, where they lead in a circle.
    pub fn schema(&mut self, depth: usize) -> Value {
        let Value::Object(mut members) = self.object_schema(depth) else { return Value::Bool(true) };
        if self.keywords.contains(&"$ref") {
            let definitions =
                DEFINITIONS.iter().map(|name| (*name, self.subschema(depth.saturating_sub(1)))).collect();
            members.push(("$defs".to_owned(), object(definitions)));
        }
        Value::Object(members)
    }

    fn subschema(&mut self, depth: usize) -> Value {
        if self.random.chance(12) { Value::Bool(self.random.chance(60)) } else { self.object_schema(depth) }
    }

    fn object_schema(&mut self, depth: usize) -> Value {
        let mut members: Vec<(&str, Value)> = Vec::new();
        let mut left = 1 + self.random.below(4);
        for _ in 0..20 {
            if left == 0 || self.keywords.is_empty() {
                break;
            }
            let keyword = *self.random.choose(&self.keywords);
            let taken = members.iter().any(|(key, _)| *key == keyword);
            if let Some(value) = self.keyword(keyword, depth).filter(|_| !taken) {
                members.push((keyword, value));
                left -= 1;
            }
        }
        self.random.shuffle(&mut members);
        object(members)
    }

    /// A value of a keyword; `None` if it holds schemas and no more may nest.
    fn keyword(&mut self, keyword: &str, depth: usize) -> Option<Value> {
        let simple = match keyword {
            "$ref" => text(self.pick(&["#", "#/$defs/a", "#/$defs/b~1c", "#/$defs/d~0", "#/%24defs/a"])),
            "const" => self.value(1),
            "enum" => Value::Array((0..1 + self.random.below(4)).map(|_| self.value(1)).collect()),
            "dependentRequired" => {
                object(self.keys(2).into_iter().map(|key| (key, self.required())).collect())
            }
            "format" => text(self.pick(&formats::NAMES)),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => number(self.pick(NUMBERS)),
            "multipleOf" => number(self.pick(FACTORS)),
            "pattern" => text(self.pick(PATTERNS)),
            "required" => self.required(),
            "type" => self.types(),
            "uniqueItems" => Value::Bool(self.random.chance(80)),
            _ if keyword.starts_with("max") || keyword.starts_with("min") => number(self.pick(COUNTS)),
            _ => return depth.checked_sub(1).map(|depth| self.applicator(keyword, depth)),
        };
        Some(simple)
    }

    /// A value of a keyword that holds schemas.
    fn applicator(&mut self, keyword: &str, depth: usize) -> Value {
        match keyword {
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.schemas(depth),
            "items" if self.random.chance(15) => self.schemas(depth),
            "properties" | "dependentSchemas" => {
                object(self.keys(3).into_iter().map(|key| (key, self.subschema(depth))).collect())
            }
            "dependencies" => {
                let keys = self.keys(2);
                let list = self.random.chance(50);
                let value = |this: &mut Self| if list { this.required() } else { this.subschema(depth) };
                object(keys.into_iter().map(|key| (key, value(self))).collect())
            }
            "patternProperties" => {
                let mut patterns = PATTERNS.to_vec();
                self.random.shuffle(&mut patterns);
                let n_patterns = 1 + self.random.below(2);
                object(
                    patterns[..n_patterns].iter().map(|pattern| (*pattern, self.subschema(depth))).collect(),
                )
            }
            _ => self.subschema(depth),
        }
    }

    fn schemas(&mut self, depth: usize) -> Value {
        Value::Array((0..1 + self.random.below(3)).map(|_| self.subschema(depth)).collect())
    }

    fn types(&mut self) -> Value {
        if self.random.chance(60) {
            return text(self.pick(TYPES));
        }
        let mut types = TYPES.to_vec();
        self.random.shuffle(&mut types);
        Value::Array(types[..1 + self.random.below(4)].iter().map(|name| text(name)).collect())
    }

    fn required(&mut self) -> Value {
        Value::Array(self.keys(2).into_iter().map(text).collect())
    }

    /// At most so many different keys.
    fn keys(&mut self, most: usize) -> Vec<&'static str> {
        let mut keys = KEYS.to_vec();
        self.random.shuffle(&mut keys);
        keys.truncate(self.random.below(most + 1));
        keys
    }

    /// Any value, nested at most `depth` deep.
    pub fn value(&mut self, depth: usize) -> Value {
        let name = self.pick(&TYPES[..if depth == 0 { 5 } else { 7 }]);
        self.value_of_type(name, depth)
    }

    fn value_of_type(&mut self, name: &str, depth: usize) -> Value {
        let inner = depth.saturating_sub(1);
        match name {
            "null" => Value::Null,
            "boolean" => Value::Bool(self.random.chance(50)),
            "integer" | "number" => number(self.pick(NUMBERS)),
            "string" => text(self.pick(STRINGS)),
            "array" => Value::Array((0..self.random.below(4)).map(|_| self.value(inner)).collect()),
            _ => object(self.keys(3).into_iter().map(|key| (key, self.value(inner))).collect()),
        }
    }

    /// A value that a document's schema has a good chance to find valid, nested at most `depth` deep: it goes
    /// by what the schema says of types, constants, items and properties, mostly.
    pub fn value_for(&mut self, document: &Value, depth: usize) -> Value {
        self.value_near(document, document, depth, 12)
    }

    fn value_near(&mut self, document: &Value, schema: &Value, depth: usize, fuel: usize) -> Value {
        if fuel == 0 || self.random.chance(8) {
            return self.value(depth);
        }
        let mut ways = schema.as_object().unwrap_or_default().to_vec();
        self.random.shuffle(&mut ways);
        for (keyword, below) in ways {
            let listed = below.as_array().filter(|items| !items.is_empty());
            match (keyword.as_str(), listed) {
                ("const", _) => return below,
                ("enum", Some(values)) => return self.random.choose(values).clone(),
                ("allOf" | "anyOf" | "oneOf", Some(schemas)) => {
                    let schema = self.random.choose(schemas).clone();
                    return self.value_near(document, &schema, depth, fuel - 1);
                }
                ("if" | "then" | "else", _) => return self.value_near(document, &below, depth, fuel - 1),
                ("$ref", _) => {
                    let target = below.as_str().and_then(|reference| target(document, reference));
                    let target = target.unwrap_or(document).clone();
                    return self.value_near(document, &target, depth, fuel - 1);
                }
                ("type", _) => {
                    let names: Vec<&str> = match &below {
                        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                        name => name.as_str().into_iter().collect(),
                    };
                    let name = if names.is_empty() { "null" } else { self.pick(&names) };
                    return self.value_of_kind(document, schema, name, (depth, fuel));
                }
                ("properties" | "required" | "patternProperties" | "additionalProperties", _) => {
                    return self.value_of_kind(document, schema, "object", (depth, fuel));
                }
                ("items" | "prefixItems" | "contains" | "minItems", _) => {
                    return self.value_of_kind(document, schema, "array", (depth, fuel));
                }
                _ => {}
            }
        }
        self.value(depth)
    }

    fn value_of_kind(&mut self, document: &Value, schema: &Value, name: &str, size: (usize, usize)) -> Value {
        let (depth, fuel) = (size.0.saturating_sub(1), size.1 - 1);
        let any = Value::Bool(true);
        match name {
            "array" => {
                let prefix = schema.get("prefixItems").and_then(Value::as_array).unwrap_or_default();
                let rest = schema.get("items").or_else(|| schema.get("contains")).unwrap_or(&any);
                let n_items = if self.random.chance(50) { prefix.len() } else { self.random.below(4) };
                let item = |at: usize| prefix.get(at).unwrap_or(rest);
                Value::Array(
                    (0..n_items).map(|at| self.value_near(document, item(at), depth, fuel)).collect(),
                )
            }
            "object" => {
                let named = schema.get("properties").and_then(Value::as_object).unwrap_or_default();
                let required = schema.get("required").and_then(Value::as_array).unwrap_or_default();
                let required = required.iter().filter_map(Value::as_str);
                let mut keys: Vec<&str> = named.iter().map(|(key, _)| key.as_str()).chain(required).collect();
                if self.random.chance(30) {
                    keys.extend(self.keys(1));
                }
                self.random.shuffle(&mut keys);
                let mut members: Vec<(&str, Value)> = Vec::new();
                for key in keys {
                    if members.iter().all(|(other, _)| *other != key) && self.random.chance(85) {
                        let below = named.iter().find(|(name, _)| name == key).map(|(_, schema)| schema);
                        let below = below.or_else(|| schema.get("additionalProperties")).unwrap_or(&any);
                        members.push((key, self.value_near(document, below, depth, fuel)));
                    }
                }
                object(members)
            }
            _ => self.value_of_type(name, depth),
        }
    }

    /// A random spelling of a value: blanks, escapes, notations of numbers, and the order of keys.
    ///
    /// To read it gives the value again; only whether a number is spelled as an integer, which draft 4 asks,
    /// is not kept.
    pub fn spell(&mut self, value: &Value) -> String {
        let mut out = self.blanks();
        match value {
            Value::Null => out += "null",
            Value::Bool(value) => out += if *value { "true" } else { "false" },
            Value::Number(number) => out += &self.spell_number(number),
            Value::String(text) => out += &self.spell_string(text),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.spell(item)).collect();
                let inside = if items.is_empty() { self.blanks() } else { items.join(",") };
                out += &format!("[{inside}]");
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                self.random.shuffle(&mut members);
                let members: Vec<String> =
                    members.into_iter().map(|member| self.spell_member(member)).collect();
                let inside = if members.is_empty() { self.blanks() } else { members.join(",") };
                out += &format!("{{{inside}}}");
            }
        }
        out + &self.blanks()
    }

    fn spell_member(&mut self, (key, value): &(String, Value)) -> String {
        let (before, key, after) = (self.blanks(), self.spell_string(key), self.blanks());
        format!("{before}{key}{after}:{}", self.spell(value))
    }

    fn blanks(&mut self) -> String {
        let length = if self.random.chance(70) { 0 } else { self.random.below(3) };
        (0..length).map(|_| *self.random.choose(&[' ', '\n', '\t', '\r'])).collect()
    }

    fn spell_number(&mut self, number: &Decimal) -> String {
        let (mantissa, exponent) = number.parts();
        let mut digits = mantissa.magnitude().to_string();
        if digits == "0" {
            return self.pick(&["0", "-0", "0.0", "0e5", "-0.00E-3"]).to_owned();
        }
        let plain = exponent.abs() <= 20 && self.random.chance(60);
        let n_zeros = if plain { exponent.max(0) as usize } else { self.random.below(3) };
        digits.extend(std::iter::repeat_n('0', n_zeros));
        let n_fraction =
            if plain { (-exponent).max(0) as usize } else { self.random.below(digits.len() + 2) };
        let padding = "0".repeat((n_fraction + 1).saturating_sub(digits.len()));
        let digits = padding + &digits;
        let (whole, fraction) = digits.split_at(digits.len() - n_fraction);
        let written = exponent - n_zeros as i64 + n_fraction as i64;
        let sign = if number.is_positive() { "" } else { "-" };
        let mut out = format!("{sign}{whole}");
        if n_fraction > 0 {
            out += &format!(".{fraction}");
        } else if plain && self.random.chance(25) {
            out += ".0";
        }
        if written != 0 || self.random.chance(10) {
            out.push(*self.random.choose(&['e', 'E']));
            let sign = if written < 0 { "-" } else { self.pick(&["", "+"]) };
            out += &format!("{sign}{}{}", self.random.choose(&["", "", "0"]), written.abs());
        }
        out
    }

    fn spell_string(&mut self, text: &str) -> String {
        let mut out = "\"".to_owned();
        for c in text.chars() {
            let needed = matches!(c, '"' | '\\' | '\0'..='\x1f');
            let short = match c {
                '"' | '\\' | '/' => Some(c),
                '\x08' => Some('b'),
                '\x0c' => Some('f'),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                _ => None,
            };
            match short {
                _ if !needed && self.random.chance(75) => out.push(c),
                Some(letter) if self.random.chance(50) => out.extend(['\\', letter]),
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let upper = self.random.chance(50);
                        out += &if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
                    }
                }
            }
        }
        out + "\""
    }
}

/// What a reference of [`Generator::schema`] refers to.
fn target<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    let name = reference.replace("%24", "$").strip_prefix("#/$defs/")?.replace("~1", "/").replace("~0", "~");
    document.get("$defs")?.get(&name)
}
