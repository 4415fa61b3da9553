//! A strict reader of JSON texts, by RFC 8259.
//!
//! Beyond the RFC it refuses what has no one meaning: a key that an object has twice, and an escape of half a
//! surrogate pair, which spells no code point.

use std::fmt;

use crate::decimal::Decimal;

/// A JSON value. Two are equal as JSON Schema compares them: numbers by value, objects whatever the order of
/// their keys.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, exactly.
    Number(Decimal),
    /// A string, decoded.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object: its members in the order of the text, no key twice.
    Object(Vec<(String, Value)>),
}

/// How deep values may nest at most, whatever [`Limits`] say, so that no stack overflows.
pub const MAX_NESTING: usize = 512;

/// What a text may be at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The greatest number of arrays and objects inside each other, at most [`MAX_NESTING`].
    pub nesting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nesting: MAX_NESTING }
    }
}

/// Why a text is no JSON text, and at which byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonError {
    /// The byte at which reading stopped.
    pub at: usize,
    /// What is wrong there.
    pub kind: JsonErrorKind,
}

/// What is wrong with a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The bytes are no UTF-8.
    NotUtf8,
    /// What stands there cannot follow.
    Unexpected,
    /// A number is none of the RFC, or has too large an exponent.
    Number,
    /// A string has an escape that does not exist, half a surrogate pair, or a control character.
    String,
    /// An object has a key twice.
    DuplicateKey,
    /// Values nest deeper than the limit.
    TooDeep,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no JSON text: {:?} at byte {}", self.kind, self.at)
    }
}

impl std::error::Error for JsonError {}

impl Value {
    /// Reads the text of one value.
    pub fn parse(text: &[u8], limits: Limits) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(text)
            .map_err(|error| JsonError { at: error.valid_up_to(), kind: JsonErrorKind::NotUtf8 })?;
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(limits.nesting.min(MAX_NESTING))?;
        reader.blanks();
        if reader.at < text.len() { Err(reader.error(JsonErrorKind::Unexpected)) } else { Ok(value) }
    }

    /// The value of an object's member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&[(String, Value)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The items of an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The number of a number.
    pub fn as_number(&self) -> Option<&Decimal> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(key, value)| other.get(key) == Some(value))
            }
            _ => false,
        }
    }
}

impl Eq for Value {}

impl std::str::FromStr for Value {
    type Err = JsonError;

    fn from_str(text: &str) -> Result<Self, JsonError> {
        Self::parse(text.as_bytes(), Limits::default())
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { at: self.at, kind }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, literal: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(literal.as_bytes());
        self.at += if found { literal.len() } else { 0 };
        found
    }

    fn expect(&mut self, literal: &str) -> Result<(), JsonError> {
        if self.take(literal) { Ok(()) } else { Err(self.error(JsonErrorKind::Unexpected)) }
    }

    /// A value, after blanks, in which at most `nesting` arrays and objects are inside each other.
    fn value(&mut self, nesting: usize) -> Result<Value, JsonError> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(nesting),
            Some(b'[') => self.array(nesting),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.expect("null").map(|()| Value::Null),
            Some(b't') => self.expect("true").map(|()| Value::Bool(true)),
            Some(b'f') => self.expect("false").map(|()| Value::Bool(false)),
            _ => Err(self.error(JsonErrorKind::Unexpected)),
        }
    }

    fn array(&mut self, nesting: usize) -> Result<Value, JsonError> {
        let nesting = nesting.checked_sub(1).ok_or(self.error(JsonErrorKind::TooDeep))?;
        self.expect("[")?;
        let mut items = Vec::new();
        self.blanks();
        if self.take("]") {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(nesting)?);
            self.blanks();
            if self.take("]") {
                return Ok(Value::Array(items));
            }
            self.expect(",")?;
        }
    }

    fn object(&mut self, nesting: usize) -> Result<Value, JsonError> {
        let nesting = nesting.checked_sub(1).ok_or(self.error(JsonErrorKind::TooDeep))?;
        self.expect("{")?;
        let mut members: Vec<(String, Value)> = Vec::new();
        let mut keys = std::collections::HashSet::new();
        self.blanks();
        if self.take("}") {
            return Ok(Value::Object(members));
        }
        loop {
            self.blanks();
            let at = self.at;
            let key = self.string()?;
            if !keys.insert(key.clone()) {
                return Err(JsonError { at, kind: JsonErrorKind::DuplicateKey });
            }
            self.blanks();
            self.expect(":")?;
            members.push((key, self.value(nesting)?));
            self.blanks();
            if self.take("}") {
                return Ok(Value::Object(members));
            }
            self.expect(",")?;
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let number = Decimal::parse(&rest[..length]).ok_or(self.error(JsonErrorKind::Number))?;
        self.at += length;
        Ok(Value::Number(number))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.expect("\"")?;
        let mut decoded = String::new();
        loop {
            let next = self.text[self.at..].chars().next().ok_or(self.error(JsonErrorKind::Unexpected))?;
            match next {
                '"' => {
                    self.at += 1;
                    return Ok(decoded);
                }
                '\\' => decoded.push(self.escape()?),
                '\0'..='\x1f' => return Err(self.error(JsonErrorKind::String)),
                _ => {
                    self.at += next.len_utf8();
                    decoded.push(next);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let error = self.error(JsonErrorKind::String);
        let letter = *self.text.as_bytes().get(self.at + 1).ok_or(error.clone())?;
        self.at += 2;
        let simple = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_point().ok_or(error),
            _ => return Err(error),
        };
        Ok(simple)
    }

    /// What follows `\u`: four digits, and where they are the first half of a pair, the other half.
    fn code_point(&mut self) -> Option<char> {
        let unit = self.unit()?;
        if !(0xd800..0xdc00).contains(&unit) {
            return char::from_u32(unit);
        }
        if !self.take("\\u") {
            return None;
        }
        let low = self.unit().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> JsonErrorKind {
        text.parse::<Value>().expect_err(text).kind
    }

    #[test]
    fn values_are_read() {
        let value: Value =
            " {\"b\": [1, -2.50, true, null], \"a\\u00e9\\ud83d\\ude00\": \"\\n\"} ".parse().unwrap();
        let same: Value = "{\"aé😀\":\"\\u000A\",\"b\":[1.0,-25e-1,true,null]}".parse().unwrap();
        assert_eq!(value, same);
        let keys: Vec<_> = value.as_object().unwrap().iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["b", "aé😀"]);
    }

    #[test]
    fn types_do_not_equal_each_other() {
        let values: Vec<Value> =
            ["null", "false", "true", "0", "1", "\"\"", "\"0\"", "[]", "[0]", "{}", "{\"a\":0}", "{\"a\":1}"]
                .map(|text| text.parse().unwrap())
                .into();
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(a == b, i == j);
            }
        }
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        assert_eq!(kind("{\"a\":1,\"\\u0061\":1}"), JsonErrorKind::DuplicateKey);
        assert_eq!(kind("\"\\ud800\""), JsonErrorKind::String);
        assert_eq!(kind("\"\\ud800\\u0041\""), JsonErrorKind::String);
        assert_eq!(kind("\"\\udc00\""), JsonErrorKind::String);
        assert_eq!(kind("\"\\u00g0\""), JsonErrorKind::String);
        assert_eq!(kind("\"\\u00é\""), JsonErrorKind::String);
        assert_eq!(kind("\u{feff}1"), JsonErrorKind::Unexpected);
        assert_eq!(kind("1 2"), JsonErrorKind::Unexpected);
        assert_eq!(kind("1e1000001"), JsonErrorKind::Number);
        assert_eq!(kind(&"[".repeat(1_000_000)), JsonErrorKind::TooDeep);
        assert_eq!(Value::parse(b"\"\xff\"", Limits::default()).unwrap_err().kind, JsonErrorKind::NotUtf8);
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        let parse =
            |depth: usize, nesting| Value::parse(nested(depth).as_bytes(), Limits { nesting }).is_ok();
        assert!(
            parse(3, 3)
                && !parse(4, 3)
                && parse(MAX_NESTING, usize::MAX)
                && !parse(MAX_NESTING + 1, usize::MAX)
        );
    }
}
