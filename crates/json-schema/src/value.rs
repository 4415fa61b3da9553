//! JSON values, exactly: numbers are decimals and not floats, objects keep the order of their keys.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A JSON value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Decimal),
    /// A string of code points.
    String(Arc<str>),
    /// A list.
    Array(Vec<Value>),
    /// Members in the order of the text; keys are unique.
    Object(Vec<(Arc<str>, Value)>),
}

impl Value {
    /// The member with this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Object(members) => members.iter().find(|(name, _)| **name == *key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The members, if it is an object.
    pub fn members(&self) -> Option<&[(Arc<str>, Value)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The items, if it is an array.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<Decimal> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number, if it is a count.
    pub fn count(&self) -> Option<u64> {
        let number = self.number()?;
        u64::try_from(number.to_integer()?).ok()
    }
}

/// Equality of values: numbers by what they are worth, objects whatever the order of their keys.
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

/// As JSON, in one line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::String(text) => write_string(f, text),
            Self::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (at, (key, value)) in members.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { "," })?;
                    write_string(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\0'..='\x1f' => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

/// The greatest power of ten, or its inverse, that the last digit of a number in a schema counts. What is
/// held against a number looks at all powers up to its own.
pub const MAX_POWER: i32 = 400;

/// An exact decimal, `mantissa` times ten to the power of `exponent`.
///
/// Invariant: the mantissa is no multiple of ten, and zero has the exponent zero; so equal numbers are equal
/// fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal {
    mantissa: i128,
    exponent: i32,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// `mantissa` times ten to the power of `exponent`.
    pub fn new(mut mantissa: i128, mut exponent: i32) -> Self {
        if mantissa == 0 {
            return Self::ZERO;
        }
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent = exponent.saturating_add(1);
        }
        Self { mantissa, exponent }
    }

    /// The number that a JSON text spells; `None` if it has more digits than are kept, or is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (digits, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        // What is zero behind the last digit would only take room.
        let fraction = fraction.trim_end_matches('0');
        let (negative, whole) = match whole.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, whole),
        };
        let zeros = if fraction.is_empty() { whole.len() - whole.trim_end_matches('0').len() } else { 0 };
        let mut mantissa: i128 = 0;
        for byte in whole[..whole.len() - zeros].bytes().chain(fraction.bytes()) {
            let digit = i128::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
            mantissa = mantissa.checked_mul(10)?.checked_add(digit)?;
        }
        let shift = i32::try_from(zeros).ok()?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let number = Self::new(mantissa, exponent.checked_add(shift)?);
        if number.exponent.abs() > MAX_POWER {
            return None;
        }
        Some(if negative { number.negated() } else { number })
    }

    /// The digits without sign and point, as an integer with the sign.
    pub fn mantissa(self) -> i128 {
        self.mantissa
    }

    /// The power of ten of the last digit.
    pub fn exponent(self) -> i32 {
        self.exponent
    }

    /// The number with the other sign.
    pub fn negated(self) -> Self {
        Self { mantissa: -self.mantissa, ..self }
    }

    /// Whether it has no fraction.
    pub fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    /// The integer that it is, if it is one that fits.
    pub fn to_integer(self) -> Option<i128> {
        let power = 10i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        self.mantissa.checked_mul(power)
    }

    /// Whether it is a multiple of `divisor`, which is greater than zero.
    pub fn is_multiple_of(self, divisor: Self) -> bool {
        if self.mantissa == 0 {
            return true;
        }
        // self / divisor = (m / d) · 10^(e − f) is an integer iff d divides m · 10^(e − f).
        let shift = i64::from(self.exponent) - i64::from(divisor.exponent);
        if shift >= 0 {
            let mut rest = self.mantissa.unsigned_abs() % divisor.mantissa.unsigned_abs();
            let mut left = shift;
            // Powers of ten run into a cycle; a divisor of d digits has at most 127 factors 2 or 5.
            while left > 0 && rest != 0 && shift - left <= 130 {
                rest = times_ten(rest, divisor.mantissa.unsigned_abs());
                left -= 1;
            }
            return rest == 0;
        }
        // The mantissa is no multiple of ten, so it is none of d · 10^k either.
        false
    }
}

/// Ten times `rest`, modulo `divisor`, without overflow.
fn times_ten(rest: u128, divisor: u128) -> u128 {
    (0..10).fold(0, |sum: u128, _| if sum >= divisor - rest { sum - (divisor - rest) } else { sum + rest })
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs != Ordering::Equal || self.mantissa == 0 {
            return signs;
        }
        let (a, b) = (digits(self.mantissa), digits(other.mantissa));
        let magnitude = (a.len() as i64 + i64::from(self.exponent))
            .cmp(&(b.len() as i64 + i64::from(other.exponent)))
            .then_with(|| a.cmp(&b));
        if self.mantissa < 0 { magnitude.reverse() } else { magnitude }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The decimal digits without the sign.
fn digits(mantissa: i128) -> String {
    mantissa.unsigned_abs().to_string()
}

/// In plain notation where that is short.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, sign) = (digits(self.mantissa), if self.mantissa < 0 { "-" } else { "" });
        match self.exponent {
            0 => write!(f, "{sign}{digits}"),
            exponent @ 1..=20 => write!(f, "{sign}{digits}{}", "0".repeat(exponent as usize)),
            exponent @ -20..=-1 => {
                let places = -exponent as usize;
                let digits = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = digits.split_at(digits.len() - places);
                write!(f, "{sign}{whole}.{fraction}")
            }
            exponent => write!(f, "{sign}{digits}e{exponent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_equal_however_they_are_spelled() {
        let read = |text: &str| Decimal::parse(text).unwrap();
        for same in [["1", "1.0", "1e0", "10e-1", "0.1e1"], ["-0", "0", "0.0", "0e9", "-0.00"]] {
            assert!(same.iter().all(|text| read(text) == read(same[0])), "{same:?}");
        }
        let ascending =
            ["-1e30", "-12", "-2", "-1.5", "-0.01", "0", "0.001", "0.01", "1", "1.5", "9", "10", "1e40"];
        for pair in ascending.windows(2) {
            assert!(read(pair[0]) < read(pair[1]), "{pair:?}");
        }
        for text in ["123456", "-0.00125", "1200", "7e99", "5e-40"] {
            assert_eq!(read(text).to_string(), text);
        }
    }

    #[test]
    fn multiples_are_exact() {
        let read = |text: &str| Decimal::parse(text).unwrap();
        for (number, divisor) in [
            ("4.5", "1.5"),
            ("0.3", "0.1"),
            ("1e300", "8"),
            ("0", "7"),
            ("-19.99", "0.01"),
            ("3e2", "0.0001"),
        ] {
            assert!(read(number).is_multiple_of(read(divisor)), "{number} {divisor}");
        }
        for (number, divisor) in
            [("4", "1.5"), ("0.35", "0.1"), ("1e300", "7"), ("0.0075", "0.01"), ("1", "2")]
        {
            assert!(!read(number).is_multiple_of(read(divisor)), "{number} {divisor}");
        }
    }
}
