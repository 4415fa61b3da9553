//! Reading JSON texts: RFC 8259, with the numbers as they are written.

use std::sync::Arc;

use crate::refusal::{Kind, Refusal};
use crate::value::{Decimal, MAX_POWER, Value};

/// Levels of nesting beyond which a text is refused.
pub const MAX_DEPTH: usize = 500;

/// A text is no JSON, or more of it than can be kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("byte {at}: {message}")]
pub struct ReadError {
    /// Where, in bytes.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// Whether it is JSON as far as it was read, but more of it than can be kept.
    pub is_limit: bool,
}

impl ReadError {
    /// The refusal of what was read, by its name.
    pub fn refusal(&self, what: &str) -> Refusal {
        match self.is_limit {
            true => Refusal::new(Kind::Limit, "", self.to_string()),
            false => Refusal::new(Kind::Syntax, "", format!("{what} is no JSON: {self}")),
        }
    }
}

/// The value that a text spells. Keys that occur twice are refused.
pub fn read(text: &str) -> Result<Value, ReadError> {
    let mut reader = Reader { text, at: 0 };
    reader.blanks();
    let value = reader.value(0)?;
    reader.blanks();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error("the text goes on after the value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, message: impl Into<String>) -> ReadError {
        ReadError { at: self.at, message: message.into(), is_limit: false }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        if self.peek() != Some(byte) {
            return Err(self.error(format!("expected `{}`", byte as char)));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ReadError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value, ReadError> {
        if depth > MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} levels of nesting");
            return Err(ReadError { is_limit: true, ..self.error(message) });
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.error("expected a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, ReadError> {
        let mut members: Vec<(Arc<str>, Value)> = Vec::new();
        // Of a hash that nobody can foresee: the keys are those of whoever wrote the schema.
        let mut keys = std::collections::HashSet::new();
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.blanks();
            let key = match self.peek() {
                Some(b'"') => self.string()?,
                _ => return Err(self.error("expected a key")),
            };
            if !keys.insert(key.clone()) {
                return Err(self.error(format!("the key {key:?} occurs twice")));
            }
            self.blanks();
            self.expect(b':')?;
            self.blanks();
            let value = self.value(depth + 1)?;
            members.push((key, value));
            self.blanks();
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(Value::Object(members));
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, ReadError> {
        let mut items = Vec::new();
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.blanks();
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(Value::Array(items));
            }
            self.expect(b',')?;
        }
    }

    fn number(&mut self) -> Result<Value, ReadError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        match Decimal::parse(&self.text[start..self.at]) {
            Some(number) => Ok(Value::Number(number)),
            None => {
                let message =
                    format!("a number of more than 38 digits, or of a power of ten beyond {MAX_POWER}");
                Err(ReadError { at: start, message, is_limit: true })
            }
        }
    }

    fn digits(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("expected a digit")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Arc<str>, ReadError> {
        let mut found = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let (plain, behind) = rest.split_at(plain.unwrap_or(rest.len()));
            self.at += plain.len();
            if found.is_empty() && behind.starts_with('"') {
                self.at += 1;
                return Ok(plain.into());
            }
            found.push_str(plain);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(found.into());
                }
                Some(b'\\') => found.push(self.escape()?),
                Some(_) => return Err(self.error("a control character inside a string")),
                None => return Err(self.error("the string does not end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ReadError> {
        self.at += 1;
        let letter = self.peek().ok_or_else(|| self.error("the string does not end"))?;
        self.at += 1;
        let c = match letter {
            b'"' | b'\\' | b'/' => letter as char,
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unit(),
            _ => return Err(self.error("no such escape")),
        };
        Ok(c)
    }

    fn unit(&mut self) -> Result<char, ReadError> {
        let first = self.hex()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.error("no code point"));
        }
        let is_high = first < 0xdc00 && self.text[self.at..].starts_with("\\u");
        if is_high {
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(code).ok_or_else(|| self.error("no code point"));
            }
        }
        Err(self.error("half of a surrogate pair"))
    }

    fn hex(&mut self) -> Result<u32, ReadError> {
        let digits =
            self.text.get(self.at..self.at + 4).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let code = code.ok_or_else(|| self.error("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        let text = r#"{"a":[1,-2.5,null,true,false,"x\"y"],"b":{}}"#;
        assert_eq!(read(text).unwrap().to_string(), text);
        assert_eq!(read(r#" "\u0041\ud83d\ude00" "#).unwrap(), Value::String("A😀".into()));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in
            ["", "01", "1.", "[1,]", "{\"a\":1,}", "\"\\ud800\"", "{\"a\":1,\"a\":2}", "nul", "1 2", "\"\t\""]
        {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&"[".repeat(100_000)).unwrap_err().is_limit);
        for text in ["1e401", "1e-401", "1e99999999999", &"7".repeat(40)] {
            assert!(read(text).unwrap_err().is_limit, "{text}");
        }
        assert!(!read("01").unwrap_err().is_limit);
    }
}
