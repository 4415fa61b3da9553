//! Numbers as JSON writes them, exactly.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_integer::Integer;

/// The greatest exponent, of either sign, that a number other than zero may be written with.
pub const MAX_EXPONENT: i64 = 1_000_000;

/// A decimal number: `mantissa × 10^exponent`.
///
/// The mantissa is no multiple of ten, or both are zero, so each number has one form: `1`, `1.0`, `1e0` and
/// `10e-1` are equal, and so are `0` and `-0`. The form remembers whether the text had neither a fraction nor
/// an exponent, which only draft 4 asks for and no comparison looks at.
#[derive(Clone, Debug)]
pub struct Decimal {
    mantissa: BigInt,
    exponent: i64,
    spelled_as_integer: bool,
}

impl Decimal {
    /// Reads a number of RFC 8259; `None` if the text is none, or its exponent exceeds [`MAX_EXPONENT`].
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (rest, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let (whole, fraction) = match rest.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (rest, None),
        };
        if !is_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) || !fraction.is_none_or(is_digits)
        {
            return None;
        }
        let spelled_as_integer = fraction.is_none() && exponent.is_none();
        let fraction = fraction.unwrap_or_default();
        let digits = [whole, fraction].concat();
        let digits = digits.trim_start_matches('0');
        let written = exponent.map_or(Some(0), read_exponent)?;
        if digits.is_empty() {
            return Some(Self { mantissa: BigInt::ZERO, exponent: 0, spelled_as_integer });
        }
        if written.abs() > MAX_EXPONENT {
            return None;
        }
        let kept = digits.trim_end_matches('0');
        let exponent = written - fraction.len() as i64 + (digits.len() - kept.len()) as i64;
        let mantissa: BigInt = kept.parse().ok()?;
        Some(Self { mantissa: if negative { -mantissa } else { mantissa }, exponent, spelled_as_integer })
    }

    /// Whether the number has no fraction: `1.0` and `1e3` have none.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Whether the text had neither a fraction nor an exponent part.
    pub fn is_spelled_as_integer(&self) -> bool {
        self.spelled_as_integer
    }

    /// Whether the number is above zero.
    pub fn is_positive(&self) -> bool {
        self.mantissa.sign() == Sign::Plus
    }

    /// Whether this number is an integer times `factor`; `false` if the factor is zero.
    pub fn is_multiple_of(&self, factor: &Self) -> bool {
        if factor.mantissa.sign() == Sign::NoSign {
            return false;
        }
        if self.mantissa.sign() == Sign::NoSign {
            return true;
        }
        // mantissa × 10^shift is to be divisible by the factor's mantissa. With a negative shift it is no
        // integer, since no mantissa is a multiple of ten.
        let shift = self.exponent - factor.exponent;
        let Ok(shift) = u64::try_from(shift) else { return false };
        let modulus = BigInt::from(factor.mantissa.magnitude().clone());
        let power = BigInt::from(10).modpow(&BigInt::from(shift), &modulus);
        (&self.mantissa * power).mod_floor(&modulus).sign() == Sign::NoSign
    }

    /// Mantissa and exponent of the one form: the number is `mantissa × 10^exponent`.
    pub fn parts(&self) -> (&BigInt, i64) {
        (&self.mantissa, self.exponent)
    }

    /// The order of the absolute values: of the places of their first digits, then of their digits.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (self.mantissa.magnitude().to_string(), other.mantissa.magnitude().to_string());
        let place = |digits: &str, exponent: i64| digits.len() as i64 + exponent;
        // Digit by digit as fractions `0.ddd`: trailing zeros are not written, so a prefix is less.
        place(&mine, self.exponent).cmp(&place(&theirs, other.exponent)).then_with(|| mine.cmp(&theirs))
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The value of an exponent part behind its letter, or one above [`MAX_EXPONENT`] for any that is longer.
fn read_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if !is_digits(digits) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let value = if digits.len() > 7 { MAX_EXPONENT + 1 } else { digits.parse().unwrap_or(0) };
    Some(sign * value)
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        let mut mantissa = BigInt::from(number);
        let mut exponent = 0;
        let ten = BigInt::from(10);
        while number != 0 && mantissa.is_multiple_of(&ten) {
            mantissa /= &ten;
            exponent += 1;
        }
        Self { mantissa, exponent, spelled_as_integer: true }
    }
}

impl From<usize> for Decimal {
    fn from(number: usize) -> Self {
        Self::from(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.exponent == other.exponent && self.mantissa == other.mantissa
    }
}

impl Eq for Decimal {}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| number.mantissa.sign();
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            Sign::Minus => other.cmp_magnitude(self),
            Sign::NoSign => Ordering::Equal,
            Sign::Plus => self.cmp_magnitude(other),
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn a_number_has_one_form() {
        for text in ["1", "1.0", "1e0", "10e-1", "0.1E+1", "0.001e003", "1.000"] {
            assert_eq!(number(text), Decimal::from(1i64), "{text}");
        }
        for text in ["0", "-0", "0.0", "-0e999999999999999999999", "0e-5"] {
            assert_eq!(number(text), Decimal::from(0i64), "{text}");
        }
        assert_eq!(number("1200"), Decimal::from(1200i64));
        assert_ne!(number("1"), number("-1"));
    }

    #[test]
    fn other_texts_are_none() {
        for text in
            ["", "-", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "1e1000001", "1e-99999999999", "1 ", "१"]
        {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_ordered() {
        let rising =
            ["-1e30", "-12", "-11.99", "-0.5", "-0.05", "0", "1e-900000", "0.05", "0.5", "0.51", "1"];
        let more = ["9", "10", "10.0000000000000000000000001", "99", "1e2", "37e18", "1e900000"];
        let rising: Vec<_> = rising.iter().chain(&more).map(|text| number(text)).collect();
        for (i, low) in rising.iter().enumerate() {
            for (j, high) in rising.iter().enumerate() {
                assert_eq!(low.cmp(high), i.cmp(&j), "{low:?} {high:?}");
            }
        }
    }

    #[test]
    fn multiples_are_exact() {
        for (number_text, factor, expected) in [
            ("0.3", "0.1", true),
            ("4.02", "0.01", true),
            ("1e308", "0.123456789", false),
            ("1e900000", "7", false),
            ("0", "7", true),
            ("7", "0", false),
            ("-21", "7", true),
            ("0.5", "1", false),
            ("1", "0.25", true),
            ("1e900000", "0.5", true),
            ("12391239123", "1e-8", true),
            ("1.5", "1e1", false),
            ("30", "-1e1", true),
        ] {
            assert_eq!(
                number(number_text).is_multiple_of(&number(factor)),
                expected,
                "{number_text} {factor}"
            );
        }
    }

    #[test]
    fn integers_by_value_and_by_spelling() {
        for (text, value, spelling) in [
            ("1", true, true),
            ("1.0", true, false),
            ("1e0", true, false),
            ("1e2", true, false),
            ("0.5", false, false),
        ] {
            assert_eq!((number(text).is_integer(), number(text).is_spelled_as_integer()), (value, spelling));
        }
    }
}
