//! Values as a memory holds them: equal ones are equal fields, whatever their spelling.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use rustc_hash::FxHasher;

use crate::value::{Decimal, Value};

/// A number of any size: a sign, digits that neither begin nor end with zero, and the power of ten of the
/// last. Zero has no digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Digits {
    /// Whether it is below zero.
    pub is_negative: bool,
    /// The digits.
    pub digits: Arc<str>,
    /// The power of ten of the last one.
    pub exponent: BigInt,
}

/// What a number was spelled as, whole or in part.
struct Spelled<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: Option<&'a str>,
    exponent: Option<&'a str>,
}

impl<'a> Spelled<'a> {
    fn new(text: &'a str) -> Self {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (text, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        Self { is_negative, whole, fraction, exponent }
    }

    /// The digits of the mantissa, and the power of ten of the last one.
    fn mantissa(&self) -> (String, BigInt) {
        let fraction = self.fraction.unwrap_or_default();
        (format!("{}{fraction}", self.whole), -BigInt::from(fraction.len()))
    }
}

impl Digits {
    /// The number that a text spells; `None` if it spells none.
    pub fn parse(text: &str) -> Option<Self> {
        let spelled = Spelled::new(text);
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(spelled.whole) || !spelled.fraction.is_none_or(are_digits) {
            return None;
        }
        let power = match spelled.exponent {
            None => BigInt::zero(),
            Some(text) => {
                let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
                if !are_digits(digits) {
                    return None;
                }
                let power: BigInt = digits.parse().ok()?;
                if text.starts_with('-') { -power } else { power }
            }
        };
        let (digits, exponent) = spelled.mantissa();
        let digits = digits.trim_start_matches('0');
        let kept = digits.trim_end_matches('0');
        if kept.is_empty() {
            return Some(Self { is_negative: false, digits: "".into(), exponent: BigInt::zero() });
        }
        let exponent = exponent + power + (digits.len() - kept.len());
        Some(Self { is_negative: spelled.is_negative, digits: kept.into(), exponent })
    }

    /// As a decimal; `None` if it has more digits than one keeps.
    pub fn decimal(&self) -> Option<Decimal> {
        if self.digits.is_empty() {
            return Some(Decimal::ZERO);
        }
        let mantissa: i128 = self.digits.parse().ok()?;
        let mantissa = if self.is_negative { -mantissa } else { mantissa };
        Some(Decimal::new(mantissa, i32::try_from(&self.exponent).ok()?))
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether a text that begins to spell a number may come to spell this one. Where it says no, it cannot.
    pub fn may_begin(&self, text: &str) -> bool {
        let spelled = Spelled::new(text);
        let (digits, _) = spelled.mantissa();
        let digits = digits.trim_start_matches('0');
        let is_zero = self.digits.is_empty();
        if spelled.is_negative != self.is_negative && !is_zero {
            return false;
        }
        match spelled.exponent {
            Some(_) => digits.trim_end_matches('0') == &*self.digits,
            None if digits.len() <= self.digits.len() => self.digits.starts_with(digits),
            None => digits.trim_end_matches('0') == &*self.digits,
        }
    }

    /// Texts with which one that begins to spell a number comes to spell this one, one at least if it can.
    pub fn endings(&self, text: &str) -> Vec<String> {
        if Self::parse(text).as_ref() == Some(self) {
            return vec![String::new()];
        }
        let spelled = Spelled::new(text);
        let mut found = Vec::new();
        if let Some(exponent) = spelled.exponent {
            found.extend(self.exponents(&spelled, exponent));
        } else {
            let mut longer = String::new();
            let (digits, _) = spelled.mantissa();
            let digits = digits.trim_start_matches('0');
            let rest = self.digits.get(digits.len()..).unwrap_or_default();
            if spelled.whole.is_empty() {
                // A first digit, and the others behind a point if it is zero.
                longer += if self.digits.is_empty() { "0" } else { rest };
            } else if spelled.whole == "0" && spelled.fraction.is_none() && !rest.is_empty() {
                longer = format!(".{rest}");
            } else {
                longer += rest;
            }
            if spelled.fraction == Some("") && rest.is_empty() {
                longer += "0";
            }
            let mantissa = format!("{text}{longer}");
            if let Some(so_far) = Self::parse(&mantissa) {
                let zeros = &self.exponent - so_far.exponent;
                if zeros.is_zero() || self.digits.is_empty() {
                    found.push(longer.clone());
                } else {
                    found.push(format!("{longer}e{zeros}"));
                }
                // Without an exponent, where that is short: some schemas do not take one for an integer.
                let few = usize::try_from(&zeros).ok().filter(|zeros| (1..=40).contains(zeros));
                if let Some(zeros) = few.filter(|_| spelled.fraction.is_none() && !longer.starts_with('.')) {
                    found.push(longer + &"0".repeat(zeros));
                }
            }
        }
        found.retain(|ending| Self::parse(&format!("{text}{ending}")).as_ref() == Some(self));
        found
    }

    /// Ways to end an exponent.
    fn exponents(&self, spelled: &Spelled<'_>, text: &str) -> Vec<String> {
        let (digits, last) = spelled.mantissa();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let power = if self.digits.is_empty() { BigInt::zero() } else { &self.exponent - last - zeros };
        let (sign, written) = match text.strip_prefix(['+', '-']) {
            Some(rest) => (&text[..1], rest),
            None => ("", text),
        };
        let needed = power.abs().to_string();
        let rest = match needed.strip_prefix(written.trim_start_matches('0')) {
            Some("") if written.is_empty() || power.is_zero() => "0".to_owned(),
            Some(rest) => rest.to_owned(),
            None => return Vec::new(),
        };
        let minus = if sign.is_empty() && written.is_empty() && power.is_negative() { "-" } else { "" };
        vec![format!("{minus}{rest}")]
    }
}

/// A value. Cost of everything: as much at whatever depth, but for comparisons of equal ones.
#[derive(Clone, Debug)]
pub enum Held {
    /// `null`, `true` or `false`, as it is spelled.
    Literal(Arc<str>),
    /// A number.
    Number(Arc<Digits>),
    /// A string, or a key.
    Text(Arc<str>),
    /// Items.
    Array(Arc<Members>),
    /// Members.
    Object(Arc<Members>),
}

/// The items of an array, or the members of an object, sorted by their keys.
///
/// Values are nested as deep as a text is long: what tells them apart is computed once for each, and nothing
/// that is done with them goes down by recursion.
#[derive(Debug)]
pub struct Members {
    /// Equal values have equal ones.
    print: u64,
    all: Vec<(Option<Arc<str>>, Held)>,
}

impl Members {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The keys of an object.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.all.iter().filter_map(|(key, _)| key.as_ref())
    }
}

impl From<Vec<(Option<Arc<str>>, Held)>> for Members {
    fn from(all: Vec<(Option<Arc<str>>, Held)>) -> Self {
        let mut hasher = FxHasher::default();
        all.hash(&mut hasher);
        Self { print: hasher.finish(), all }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        let mut left = std::mem::take(&mut self.all);
        while let Some((_, held)) = left.pop() {
            if let Held::Array(members) | Held::Object(members) = held
                && let Some(mut members) = Arc::into_inner(members)
            {
                left.append(&mut members.all);
            }
        }
    }
}

impl Hash for Held {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Literal(text) | Self::Text(text) => text.hash(state),
            Self::Number(number) => number.hash(state),
            Self::Array(members) | Self::Object(members) => members.print.hash(state),
        }
    }
}

/// Literals, numbers, strings, arrays, objects; strings as they are, and numbers with the same digits side by
/// side. Arrays and objects stand in some order.
impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |held: &Self| match held {
            Self::Literal(_) => 0,
            Self::Number(_) => 1,
            Self::Text(_) => 2,
            Self::Array(_) => 3,
            Self::Object(_) => 4,
        };
        let mut pairs = vec![];
        let (mut one, mut other) = (self, other);
        loop {
            let order = match (one, other) {
                (Self::Literal(one), Self::Literal(other)) | (Self::Text(one), Self::Text(other)) => {
                    one.cmp(other)
                }
                (Self::Number(one), Self::Number(other)) => one.cmp(other),
                (Self::Array(one), Self::Array(other)) | (Self::Object(one), Self::Object(other)) => {
                    let keys = || one.keys().cmp(other.keys());
                    let order = one.print.cmp(&other.print).then_with(|| one.len().cmp(&other.len()));
                    let order = order.then_with(keys);
                    if order.is_eq() && !Arc::ptr_eq(one, other) {
                        pairs.extend(one.all.iter().zip(&other.all).map(|(one, other)| (&one.1, &other.1)));
                    }
                    order
                }
                _ => rank(one).cmp(&rank(other)),
            };
            match pairs.pop() {
                Some(next) if order.is_eq() => (one, other) = next,
                _ => return order,
            }
        }
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

impl Held {
    /// The value of a number or a literal that a text spells.
    pub fn bare(text: &str) -> Option<Self> {
        match text {
            "null" | "true" | "false" => Some(Self::Literal(text.into())),
            text => Digits::parse(text).map(|number| Self::Number(number.into())),
        }
    }

    /// The object of some members, in any order.
    pub fn object(mut members: Vec<(Option<Arc<str>>, Self)>) -> Self {
        members.sort_unstable();
        Self::Object(Arc::new(members.into()))
    }

    /// The member of an object with this key.
    pub fn member(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let at = members.all.binary_search_by(|(name, _)| name.as_deref().cmp(&Some(key))).ok()?;
        Some(&members.all[at].1)
    }

    /// The item of an array.
    pub fn item(&self, at: usize) -> Option<&Self> {
        if let Self::Array(items) = self { items.all.get(at).map(|(_, item)| item) } else { None }
    }

    /// Whether a text that begins to spell a number or a literal may come to spell this one.
    pub fn may_begin(&self, text: &str) -> bool {
        match self {
            Self::Literal(word) => word.starts_with(text),
            Self::Number(number) => {
                text.bytes()
                    .all(|byte| byte == b'-' || !byte.is_ascii_alphabetic() || matches!(byte, b'e' | b'E'))
                    && number.may_begin(text)
            }
            _ => false,
        }
    }
}

impl From<&Value> for Held {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) => Self::Literal(value.to_string().into()),
            Value::Number(number) => {
                let text = number.to_string();
                Self::bare(&text).unwrap_or_else(|| Self::Literal(text.into()))
            }
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| (None, Self::from(item))).collect();
                Self::Array(Arc::new(items.into()))
            }
            Value::Object(members) => {
                let members = members.iter().map(|(key, value)| (Some(key.clone()), Self::from(value)));
                Self::object(members.collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ended() {
        let texts = ["0", "1", "-1", "10", "0.5", "-0.05", "1200", "1.25", "123456789", "1e30", "3e-7"];
        let spellings =
            ["-", "0", "0.", "0.0", "1", "1.", "12", "1e", "10e-", "1E+0", "0.05e", "-0", "-1.", "120"];
        for number in texts.map(|text| Digits::parse(text).unwrap()) {
            for begun in spellings {
                let endings = number.endings(begun);
                for ending in &endings {
                    assert_eq!(Digits::parse(&format!("{begun}{ending}")).as_ref(), Some(&number));
                    assert!(number.may_begin(begun), "{number:?} {begun}");
                }
            }
            let begun = if number.is_negative { "-" } else { "" };
            assert!(!number.endings(begun).is_empty(), "{number:?}");
        }
        let ends = |number: &str, begun: &str| !Digits::parse(number).unwrap().endings(begun).is_empty();
        for (number, begun) in [
            ("1", "10"),
            ("1", "10e"),
            ("1", "10e-"),
            ("1", "0."),
            ("1", "0.1e"),
            ("1", "1."),
            ("0", "-"),
            ("0", "0e1"),
            ("-5", "-0.05e"),
            ("12", "1"),
            ("12", "12.0e"),
            ("1e3", "1e"),
        ] {
            assert!(ends(number, begun), "{number} from {begun}");
        }
        for (number, begun) in [("1", "2"), ("1", "-"), ("12", "1e"), ("1", "10e+"), ("12", "13")] {
            assert!(!ends(number, begun), "{number} from {begun}");
        }
    }

    #[test]
    fn values_are_equal_whatever_their_spelling() {
        for same in [["1", "1.0", "10e-1"], ["0", "-0", "0e5"], ["1e40", "10e39", "0.1e41"]] {
            assert!(same.iter().all(|text| Held::bare(text) == Held::bare(same[0])));
        }
        assert_ne!(Held::bare("1"), Held::bare("1e1"));
        let far = "9".repeat(60);
        assert_ne!(Held::bare(&format!("1e{far}")), Held::bare(&format!("10e{far}")));
        assert_eq!(Held::bare(&format!("100e{far}")), Held::bare(&format!("1e1{}1", "0".repeat(59))));
        assert_eq!(Held::bare("tru"), None);
    }
}
