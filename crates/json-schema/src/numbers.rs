//! Numbers as JSON spells them: `1`, `1.0`, `10e-1`, held against bounds and multiples exactly.
//!
//! A state is what was spelled so far; where nothing is asserted of the value, only the place in the
//! notation. Whether a state can be completed is a question about values: digits so far fix a value up to
//! more digits and a power of ten, so the values that can come of them are an interval for each power of ten.
//! Only finitely many powers have to be looked at, those between the least and the greatest bound. Arithmetic
//! is exact.

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use anygram_bits::Fingerprint;
use anygram_grammar::automata::{Bytes, PieceAutomaton, TooManyStates};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};
use rustc_hash::FxHashMap;

use crate::atoms::Numbers;
use crate::value::Decimal;

/// An exact decimal of any size.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Exact {
    mantissa: BigInt,
    exponent: i64,
}

impl Exact {
    fn of(number: Decimal) -> Self {
        Self { mantissa: number.mantissa().into(), exponent: number.exponent().into() }
    }

    /// Both as integers of one power of ten.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i64) {
        let exponent = self.exponent.min(other.exponent);
        let scaled = |number: &Self| &number.mantissa * power(number.exponent - exponent);
        (scaled(self), scaled(other), exponent)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.sign().cmp(&other.mantissa.sign());
        if signs != Ordering::Equal || self.mantissa.is_zero() {
            return signs;
        }
        // So that a great exponent is not written out.
        let magnitudes = self.magnitude().cmp(&other.magnitude());
        if magnitudes != Ordering::Equal {
            return if self.mantissa.is_negative() { magnitudes.reverse() } else { magnitudes };
        }
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }

    fn is_multiple_of(&self, divisor: &Self) -> bool {
        if self.mantissa.is_zero() {
            return true;
        }
        let shift = self.exponent - divisor.exponent;
        if shift >= 0 {
            let power = BigInt::from(10).modpow(&shift.into(), &divisor.mantissa);
            return (&self.mantissa * power).is_multiple_of(&divisor.mantissa);
        }
        // A mantissa has no more factors of ten than digits.
        -shift <= self.mantissa.bits() as i64
            && self.mantissa.is_multiple_of(&(&divisor.mantissa * power(-shift)))
    }

    /// Without an exponent, unless that takes many zeros.
    fn spelled(&self) -> String {
        let sign = if self.mantissa.is_negative() { "-" } else { "" };
        let digits = self.mantissa.abs().to_string();
        match self.exponent {
            0..=20 => format!("{sign}{digits}{}", "0".repeat(self.exponent as usize)),
            -20..=-1 => {
                let places = self.exponent.unsigned_abs() as usize;
                let digits = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = digits.split_at(digits.len() - places);
                match fraction.trim_end_matches('0') {
                    "" => format!("{sign}{whole}"),
                    fraction => format!("{sign}{whole}.{fraction}"),
                }
            }
            exponent => format!("{sign}{digits}e{exponent}"),
        }
    }

    /// The power of ten just above its magnitude: `0.1 ≤ |self| / 10^k < 1`.
    fn magnitude(&self) -> i64 {
        if self.mantissa.is_zero() {
            return 0;
        }
        n_digits(&self.mantissa) + self.exponent
    }
}

/// How many digits an integer has, of zero one.
fn n_digits(of: &BigInt) -> i64 {
    match u128::try_from(of.magnitude()) {
        Ok(small) => i64::from(small.checked_ilog10().unwrap_or(0)) + 1,
        Err(_) => of.magnitude().to_string().len() as i64,
    }
}

fn power(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}

/// An end of an interval: the value, and whether it is excluded; `None` if there is none.
type Bound = Option<(Exact, bool)>;

/// A set of numbers.
#[derive(Debug)]
struct Values {
    min: Bound,
    max: Bound,
    /// All are multiples of this.
    unit: Option<Exact>,
    not_multiples: Vec<Exact>,
    is_fraction: bool,
    not_in: Vec<Exact>,
    one_of: Option<Vec<Exact>>,
    /// Whether what all are multiples of is itself a multiple of what none is.
    is_empty: bool,
    /// Powers of ten beyond which nothing new comes, upwards and downwards.
    window: (i64, i64),
    /// If numbers of one sign that are multiples of the same powers of ten are in it or not together (all
    /// integers, those that are positive, and the like): which.
    by_power: Option<ByPower>,
}

/// A set of numbers of which only signs and powers of ten matter.
#[derive(Clone, Copy, Debug)]
struct ByPower {
    zero: bool,
    /// Whether numbers above zero are in it, and below.
    positive: bool,
    negative: bool,
    /// They are multiples of this power of ten.
    least: i64,
}

/// Multiples that are looked at for one that nothing excludes. (The multiples of a unit that are multiples of
/// others, of which the unit is none, are every second, third and so on: never many in a row.)
const MANY: usize = 1_000;

impl Values {
    fn new(numbers: &Numbers) -> Self {
        let list =
            |values: &mut dyn Iterator<Item = &Decimal>| values.map(|&value| Exact::of(value)).collect();
        let bound =
            |bound: Option<(Decimal, bool)>| bound.map(|(bound, excluded)| (Exact::of(bound), excluded));
        let mut units: Vec<Exact> = list(&mut numbers.multiples.iter());
        if numbers.whole == Some(true) || numbers.plain == Some(true) {
            units.push(Exact { mantissa: 1.into(), exponent: 0 });
        }
        let unit = units.into_iter().reduce(|a, b| {
            let (a, b, exponent) = a.aligned(&b);
            Exact { mantissa: a.lcm(&b), exponent }
        });
        let mut this = Self {
            min: bound(numbers.min),
            max: bound(numbers.max),
            unit,
            not_multiples: list(&mut numbers.not_multiples.iter()),
            is_fraction: numbers.whole == Some(false),
            not_in: list(&mut numbers.not_in.iter()),
            one_of: numbers.one_of.as_ref().map(|values| list(&mut values.iter())),
            is_empty: false,
            window: (0, 0),
            by_power: None,
        };
        let one = Exact { mantissa: 1.into(), exponent: 0 };
        this.is_empty = this.unit.as_ref().is_some_and(|unit| {
            this.not_multiples.iter().any(|of| unit.is_multiple_of(of))
                || this.is_fraction && unit.is_multiple_of(&one)
        });
        let bounds = [&this.min, &this.max].into_iter().flatten().map(|(bound, _)| bound);
        let others = this.unit.iter().chain(&this.not_multiples).chain(&this.not_in);
        let values = bounds.chain(others).chain(this.one_of.iter().flatten());
        let magnitudes: Vec<i64> =
            values.filter(|value| !value.mantissa.is_zero()).map(Exact::magnitude).collect();
        let least = magnitudes.iter().min().copied().unwrap_or(0).min(0);
        let greatest = magnitudes.iter().max().copied().unwrap_or(0).max(0);
        this.window = (least - 3, greatest + 3);
        this.by_power = this.is_by_power().then(|| this.powers());
        this
    }

    fn is_by_power(&self) -> bool {
        // A bound that no number of the set tells from zero: beyond it, on its side, is the least of them.
        let is_sign = |bound: &Bound, sign: i64| {
            bound.as_ref().is_none_or(|(bound, excluded)| {
                let is_least = |unit: &Exact| {
                    let unit = Exact { mantissa: &unit.mantissa * sign, exponent: unit.exponent };
                    let other = Exact { mantissa: -&unit.mantissa, exponent: unit.exponent };
                    !excluded && bound.compare(&unit) == Equal || *excluded && bound.compare(&other) == Equal
                };
                bound.mantissa.is_zero() || self.unit.as_ref().is_some_and(is_least)
            })
        };
        let is_power = |unit: &Exact| unit.mantissa.to_string().trim_end_matches('0') == "1";
        self.unit.as_ref().is_none_or(is_power)
            && is_sign(&self.min, 1)
            && is_sign(&self.max, -1)
            && self.not_multiples.is_empty()
            && !self.is_fraction
            && self.not_in.is_empty()
            && self.one_of.is_none()
    }

    /// Which powers of ten are in it, if nothing else matters.
    fn powers(&self) -> ByPower {
        let least = self.unit.as_ref().map_or(i64::MIN, |unit| unit.magnitude() - 1);
        let contains = |mantissa: i64| {
            self.contains(&Exact { mantissa: mantissa.into(), exponent: least.max(self.window.1) })
        };
        ByPower { zero: contains(0), positive: contains(1), negative: contains(-1), least }
    }

    fn contains(&self, value: &Exact) -> bool {
        let is_above = |(min, excluded): &(Exact, bool)| match value.compare(min) {
            Greater => true,
            Equal => !excluded,
            Less => false,
        };
        let is_below = |(max, excluded): &(Exact, bool)| match value.compare(max) {
            Less => true,
            Equal => !excluded,
            Greater => false,
        };
        let one = Exact { mantissa: 1.into(), exponent: 0 };
        self.min.as_ref().is_none_or(is_above)
            && self.max.as_ref().is_none_or(is_below)
            && self.unit.as_ref().is_none_or(|unit| value.is_multiple_of(unit))
            && !self.not_multiples.iter().any(|of| value.is_multiple_of(of))
            && !(self.is_fraction && value.is_multiple_of(&one))
            && !self.not_in.iter().any(|other| value.compare(other) == Equal)
            && self
                .one_of
                .as_ref()
                .is_none_or(|values| values.iter().any(|other| value.compare(other) == Equal))
    }

    /// Whether some number of the set lies between two, the first included and the second not.
    fn meets(&self, from: &Exact, to: &Exact) -> bool {
        let inside = |value: &Exact| value.compare(from) != Less && value.compare(to) == Less;
        if self.is_empty {
            return false;
        }
        if let Some(values) = &self.one_of {
            return values.iter().any(|value| inside(value) && self.contains(value));
        }
        let mut low = (from.clone(), false);
        if let Some(min) = &self.min
            && (min.0.compare(&low.0) == Greater || min.0.compare(&low.0) == Equal && min.1)
        {
            low = min.clone();
        }
        let mut high = (to.clone(), true);
        if let Some(max) = &self.max
            && max.0.compare(&high.0) == Less
        {
            high = max.clone();
        }
        let Some(unit) = &self.unit else {
            // What is excluded leaves no interval empty, only points.
            return match low.0.compare(&high.0) {
                Less => true,
                Equal => !low.1 && !high.1 && self.contains(&low.0),
                Greater => false,
            };
        };
        let (low, step, exponent) = low.0.aligned(unit);
        let mut at = Exact { mantissa: low.div_ceil(&step) * &step, exponent };
        for _ in 0..MANY + self.not_in.len() {
            if at.compare(&high.0) == Greater {
                return false;
            }
            if inside(&at) && self.contains(&at) {
                return true;
            }
            at.mantissa += &step;
        }
        false
    }
}

/// What was spelled so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Spelled {
    at: At,
    negative: bool,
    /// The digits without leading zeros, as far as values matter: where only powers of ten do, a one with as
    /// many zeros at the end, up to [`MAX_ZEROS`].
    digits: Arc<str>,
    /// How many of the digits stand behind the point (zeros in front included).
    places: u32,
    exponent_negative: bool,
    exponent: u32,
}

/// A place in the notation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

/// A set of numbers as pieces of a JSON text. Its one label is 0.
pub struct NumberPieces {
    values: Option<Values>,
    plain: Option<bool>,
    /// Of the set.
    fingerprint: Fingerprint,
    limit: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    states: Vec<Spelled>,
    ids: FxHashMap<Spelled, u32>,
}

/// Digits that are kept of a number, and its places behind the point, beyond which it is refused.
///
/// Where only powers of ten matter, nothing but the zeros at the end is kept, and those beyond
/// [`MAX_ZEROS`] are not counted: it has as many digits as it likes.
const MAX_DIGITS: usize = 800;

/// Zeros at the end that are counted where only powers of ten matter. A number with more is taken for one
/// with so many: a multiple of the same powers, unless an exponent takes that many back, with which it is
/// refused.
const MAX_ZEROS: usize = 400;

impl fmt::Debug for NumberPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NumberPieces").field("values", &self.values).finish_non_exhaustive()
    }
}

impl NumberPieces {
    /// The spellings of a set of numbers; at most `limit` states are made.
    pub fn new(numbers: &Numbers, limit: usize) -> Self {
        let plain = numbers.plain;
        let is_free = *numbers == Numbers { plain, ..Numbers::default() } && plain != Some(true);
        let values = (!is_free).then(|| Values::new(numbers));
        let fingerprint = Fingerprint::of(numbers);
        let this = Self { values, plain, fingerprint, limit, table: Mutex::default() };
        let start = Spelled {
            at: At::Start,
            negative: false,
            digits: "".into(),
            places: 0,
            exponent_negative: false,
            exponent: 0,
        };
        let mut table = this.lock();
        table.states.push(start.clone());
        table.ids.insert(start, 0);
        drop(table);
        this
    }

    /// Whether there is any.
    pub fn is_possible(&self) -> bool {
        let start = self.lock().states[0].clone();
        let after = |byte| self.next(&start, byte).is_some();
        (b'0'..=b'9').any(after) || after(b'-')
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a byte makes of it, if it can still be completed.
    fn next(&self, state: &Spelled, byte: u8) -> Option<Spelled> {
        let mut next = state.clone();
        let digit = byte.is_ascii_digit();
        next.at = match (state.at, byte) {
            (At::Start, b'-') => At::Minus,
            (At::Start | At::Minus, b'0') => At::Zero,
            (At::Start | At::Minus, b'1'..=b'9') => At::Whole,
            (At::Whole, _) if digit => At::Whole,
            (At::Zero | At::Whole, b'.') => At::Point,
            (At::Point | At::Fraction, _) if digit => At::Fraction,
            (At::Zero | At::Whole | At::Fraction, b'e' | b'E') => At::E,
            (At::E, b'+' | b'-') => At::Sign,
            (At::E | At::Sign | At::Exponent, _) if digit => At::Exponent,
            _ => return None,
        };
        if self.plain == Some(true) && !matches!(next.at, At::Minus | At::Zero | At::Whole) {
            return None;
        }
        let Some(values) = &self.values else { return Some(next) };
        next.negative |= byte == b'-' && next.at == At::Minus;
        match next.at {
            At::Zero | At::Whole | At::Fraction => {
                if values.by_power.is_some() && byte != b'0' {
                    next.digits = "1".into();
                } else if !(next.digits.is_empty() && byte == b'0'
                    || values.by_power.is_some() && next.digits.len() > MAX_ZEROS)
                {
                    next.digits = format!("{}{}", next.digits, char::from(byte)).into();
                }
                next.places += u32::from(next.at == At::Fraction);
            }
            At::Sign => next.exponent_negative = byte == b'-',
            At::Exponent => {
                next.exponent =
                    next.exponent.saturating_mul(10).saturating_add(u32::from(byte - b'0')).min(1_000_000);
            }
            _ => {}
        }
        // Nothing comes of a zero by an exponent.
        if next.digits.is_empty() && matches!(next.at, At::E | At::Sign | At::Exponent) {
            (next.places, next.exponent, next.exponent_negative) = (0, 0, false);
        }
        (next.digits.len() + next.places as usize <= MAX_DIGITS && self.can_finish(&next)).then_some(next)
    }

    fn value(state: &Spelled) -> Exact {
        let mantissa: BigInt = state.digits.parse().unwrap_or_default();
        let exponent = i64::from(state.exponent) * if state.exponent_negative { -1 } else { 1 };
        let mantissa = if state.negative { -mantissa } else { mantissa };
        Exact { mantissa, exponent: exponent - i64::from(state.places) }
    }

    fn is_whole(&self, state: &Spelled) -> bool {
        if !matches!(state.at, At::Zero | At::Whole | At::Fraction | At::Exponent) {
            return false;
        }
        let is_plain = matches!(state.at, At::Zero | At::Whole);
        if self.plain.is_some_and(|plain| plain != is_plain) {
            return false;
        }
        self.values.as_ref().is_none_or(|values| match values.by_power {
            Some(powers) => powers.contains(state),
            None => values.contains(&Self::value(state)),
        })
    }

    fn can_finish(&self, state: &Spelled) -> bool {
        let Some(values) = &self.values else { return true };
        if self.is_whole(state) {
            return true;
        }
        match (state.at, values.by_power) {
            _ if self.plain == Some(true) => self.more_digits(values, state),
            (_, Some(powers)) => powers.can_finish(state),
            (At::E | At::Sign | At::Exponent, None) => self.exponents(values, state),
            (_, None) => Self::any_power(values, state),
        }
    }

    /// Whether more digits make a whole number of it.
    fn more_digits(&self, values: &Values, state: &Spelled) -> bool {
        if state.at == At::Zero {
            return false;
        }
        if state.digits.is_empty() {
            let one = Spelled { digits: "1".into(), at: At::Whole, ..state.clone() };
            let nothing = Spelled { digits: "".into(), at: At::Zero, ..state.clone() };
            let first = (1..=9).map(|digit: u8| Spelled { digits: digit.to_string().into(), ..one.clone() });
            return self.is_whole(&nothing)
                || first.into_iter().any(|state| self.is_whole(&state) || self.more_digits(values, &state));
        }
        let value = Self::value(state);
        let most = values.window.1.max(0) as usize + state.digits.len() + 3;
        (1..=most as i64).any(|power| Self::meets_scaled(values, &value, state.negative, power))
    }

    /// Whether more digits and a power of ten make a number of the set of it.
    fn any_power(values: &Values, state: &Spelled) -> bool {
        let (low, high) = values.window;
        let signs: &[bool] = if state.at == At::Start { &[false, true] } else { &[state.negative] };
        signs.iter().any(|&negative| {
            let firsts: Vec<BigInt> = if state.digits.is_empty() {
                (1..=9).map(|digit| BigInt::from(if negative { -digit } else { digit })).collect()
            } else {
                vec![Self::value(&Spelled { places: 0, exponent: 0, negative, ..state.clone() }).mantissa]
            };
            let zero = Exact { mantissa: 0.into(), exponent: 0 };
            state.digits.is_empty() && values.contains(&zero)
                || firsts.into_iter().any(|mantissa| {
                    let length = n_digits(&mantissa);
                    let value = Exact { mantissa, exponent: 0 };
                    (low - length..=high).any(|power| Self::meets_scaled(values, &value, negative, power))
                })
        })
    }

    /// Whether the set has a number that begins with the digits of a value times a power of ten.
    fn meets_scaled(values: &Values, value: &Exact, negative: bool, power: i64) -> bool {
        let here = Exact { exponent: value.exponent + power, ..value.clone() };
        let step = BigInt::from(if negative { -1 } else { 1 });
        let beyond = Exact { mantissa: &here.mantissa + step, exponent: here.exponent };
        if negative {
            // From the lower end, which is excluded, to the upper, which is not.
            values.contains(&here) || values.meets(&beyond, &here) && !values.only_at(&beyond, &here)
        } else {
            values.meets(&here, &beyond)
        }
    }

    /// Whether an exponent that begins so makes a number of the set of it.
    fn exponents(&self, values: &Values, state: &Spelled) -> bool {
        let value = Self::value(&Spelled { exponent: 0, exponent_negative: false, ..state.clone() });
        if value.mantissa.is_zero() {
            return values.contains(&value);
        }
        let (low, high) = values.window;
        let span = n_digits(&value.mantissa) + value.exponent.abs() + 2;
        let most = (high + span).max(span - low).max(0).unsigned_abs();
        let signs: &[bool] = match state.at {
            At::E => &[false, true],
            _ => &[state.exponent_negative],
        };
        let begins = |exponent: u64| {
            state.at != At::Exponent || state.exponent == 0 || {
                let mut left = exponent;
                while left > u64::from(state.exponent) {
                    left /= 10;
                }
                left == u64::from(state.exponent)
            }
        };
        // Beyond the window all powers are alike: one that begins so is looked at for them.
        let mut far = u64::from(state.exponent.max(1));
        while far <= most + 400 && far < 1_000_000 {
            far *= 10;
        }
        (0..=most).filter(|&exponent| begins(exponent)).chain([far]).any(|exponent| {
            signs.iter().any(|&negative| {
                let exponent = exponent as i64 * if negative { -1 } else { 1 };
                let scaled = Exact { exponent: value.exponent + exponent, ..value.clone() };
                values.contains(&scaled)
            })
        })
    }
}

impl ByPower {
    /// Whether numbers with the sign of what is spelled are in it.
    fn has_sign(self, state: &Spelled) -> bool {
        if state.negative { self.negative } else { self.positive }
    }

    /// Whether a number that is spelled as far as its value matters is in it. Its digits are a one with
    /// zeros.
    fn contains(self, state: &Spelled) -> bool {
        let Some(zeros) = state.digits.len().checked_sub(1) else { return self.zero };
        let exponent = i64::from(state.exponent) * if state.exponent_negative { -1 } else { 1 };
        self.has_sign(state) && zeros as i64 - i64::from(state.places) + exponent >= self.least
    }

    /// Whether more digits, a point and an exponent make a number in it, as far as the notation allows these.
    fn can_finish(self, state: &Spelled) -> bool {
        if state.digits.is_empty() {
            let may_have_digits = !matches!(state.at, At::E | At::Sign | At::Exponent);
            return self.zero || may_have_digits && self.has_sign(state);
        }
        // Only by an exponent below zero it gets no greater; the least of those that begin so is this one.
        let only_falls = matches!(state.at, At::Sign | At::Exponent) && state.exponent_negative;
        if only_falls { self.contains(state) } else { self.has_sign(state) }
    }
}

impl Values {
    /// Some numbers of the set, at most so many: listed ones, or the first from its lower end on, from its
    /// upper end downwards if it has no other, or from 0.
    fn some(&self, most: usize) -> Vec<Exact> {
        let within = |value: &Exact| self.contains(value);
        if let Some(values) = &self.one_of {
            return values.iter().filter(|value| within(value)).take(most).cloned().collect();
        }
        let zero = Exact { mantissa: 0.into(), exponent: 0 };
        let end = self.min.as_ref().or(self.max.as_ref()).map_or(&zero, |(end, _)| end);
        let end = if within(&zero) { &zero } else { end };
        // Without a unit of its own, steps that are fine enough to stay between the ends.
        let fine = Exact { mantissa: 1.into(), exponent: (self.window.0 - 1).min(0) };
        let is_downwards = self.min.is_none() && end != &zero;
        let units = match &self.unit {
            Some(unit) => vec![unit.clone()],
            None => vec![Exact { mantissa: 1.into(), exponent: 0 }, fine],
        };
        let mut found = Vec::new();
        for unit in units {
            let (low, step, exponent) = end.aligned(&unit);
            let mut at = Exact { mantissa: low.div_ceil(&step) * &step, exponent };
            for candidate in std::iter::once(end.clone()).chain((0..MANY + self.not_in.len()).map(|_| {
                let candidate = at.clone();
                at.mantissa += if is_downwards { -&step } else { step.clone() };
                candidate
            })) {
                let is_new = !found.iter().any(|known: &Exact| known.compare(&candidate) == Equal);
                if found.len() < most && is_new && within(&candidate) {
                    found.push(candidate);
                }
            }
        }
        found
    }

    /// Whether all numbers of the set between two, the first included, are the first.
    fn only_at(&self, from: &Exact, to: &Exact) -> bool {
        if !self.contains(from) {
            return false;
        }
        let Some(unit) = &self.unit else {
            if let Some(values) = &self.one_of {
                let inside = |value: &&Exact| value.compare(from) == Greater && value.compare(to) == Less;
                return !values.iter().filter(inside).any(|value| self.contains(value));
            }
            // An interval that goes on upwards from its lower end.
            return self.max.as_ref().is_some_and(|(max, _)| max.compare(from) != Greater);
        };
        let (low, step, exponent) = from.aligned(unit);
        let next = Exact { mantissa: low + step, exponent };
        !self.meets(&next, to)
    }
}

impl PieceAutomaton for NumberPieces {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        let state = self.lock().states[state as usize].clone();
        let Some(next) = self.next(&state, byte) else { return Ok(None) };
        let mut table = self.lock();
        if let Some(&known) = table.ids.get(&next) {
            return Ok(Some(known));
        }
        if table.states.len() >= self.limit {
            let what = "a number".to_owned();
            return Err(TooManyStates { what, limit: self.limit, option: "schema_states" });
        }
        let fresh = table.states.len() as u32;
        table.states.push(next.clone());
        table.ids.insert(next, fresh);
        Ok(Some(fresh))
    }

    fn bytes(&self, _: u32) -> Bytes {
        let mut bytes = Bytes::NONE;
        bytes.insert(b'0', b'9');
        b"-+.eE".iter().for_each(|&byte| bytes.insert(byte, byte));
        bytes
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        let state = self.lock().states[state as usize].clone();
        if self.is_whole(&state) { [0].into() } else { Arc::default() }
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        let state = self.lock().states[state as usize].clone();
        let goes_on = (b'0'..=b'9').chain(*b"-+.eE").any(|byte| self.next(&state, byte).is_some());
        if goes_on { [0].into() } else { Arc::default() }
    }

    fn at_least(&self, state: u32, _: u32) -> u64 {
        let state = self.lock().states[state as usize].clone();
        if self.is_whole(&state) {
            return 0;
        }
        let Some(values) = &self.values else { return 1 };
        let (near, far) = match state.negative {
            true => (&values.max, &values.min),
            false => (&values.min, &values.max),
        };
        let value = Self::value(&state);
        let size = |of: &Exact| Exact { mantissa: of.mantissa.abs(), exponent: of.exponent };
        let is_beyond = || far.as_ref().is_some_and(|(far, _)| size(&value).compare(&size(far)) == Greater);
        // However many digits come behind the point.
        let is_below = || {
            let next = Exact { mantissa: value.mantissa.abs() + 1, exponent: value.exponent };
            let is_same = |near: &Exact| near.mantissa.is_negative() == state.negative;
            near.as_ref().is_some_and(|(near, _)| is_same(near) && next.compare(&size(near)) != Greater)
        };
        match state.at {
            // By an exponent alone, which has a sign and a digit.
            At::Zero | At::Whole | At::Fraction if is_beyond() => 3,
            At::Fraction if is_below() => 2,
            At::Point if is_beyond() => 4,
            At::Point if is_below() => 3,
            _ => 1,
        }
    }

    fn examples(&self, _: u32, most: usize) -> Vec<Vec<u8>> {
        let Some(values) = &self.values else { return Vec::new() };
        let start = self.lock().states[0].clone();
        let is_piece = |text: &String| {
            let end = text.bytes().try_fold(start.clone(), |state, byte| self.next(&state, byte));
            end.is_some_and(|end| self.is_whole(&end))
        };
        let some = values.some(most);
        some.iter().map(Exact::spelled).filter(is_piece).map(String::into_bytes).collect()
    }

    fn fingerprint(&self, state: u32, _: &[u32], _: usize) -> Option<Fingerprint> {
        Some(Fingerprint::of(&("number", self.fingerprint, &self.lock().states[state as usize])))
    }

    fn outline(&self) -> &'static str {
        "-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?"
    }

    fn in_outline(&self, state: u32) -> Option<&'static [u8]> {
        Some(match self.lock().states[state as usize].at {
            At::Start => b"",
            At::Minus => b"-",
            At::Zero => b"0",
            At::Whole => b"1",
            At::Point => b"0.",
            At::Fraction => b"0.0",
            At::E => b"0e",
            At::Sign => b"0e+",
            At::Exponent => b"0e0",
        })
    }

    fn classes(&self) -> Box<[u8; 256]> {
        let is_free = self.values.is_none();
        Box::new(std::array::from_fn(|byte| match byte as u8 {
            b'0' => 1,
            b'-' => 2,
            b'+' => 3,
            b'.' => 4,
            b'e' | b'E' => 5,
            b'1'..=b'9' if is_free => 6,
            digit @ b'1'..=b'9' => 6 + digit - b'1',
            _ => 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use anygram_bits::Random;

    use super::*;

    /// Integers with bounds near zero, and multiples of powers of ten.
    fn numbers(random: &mut Random) -> Numbers {
        let mut bound = || {
            let value = Decimal::new(random.below(5) as i128 - 2, 0);
            random.chance(60).then(|| (value, random.chance(50)))
        };
        let (min, max) = (bound(), bound());
        let multiples = [Decimal::new(10, 0), Decimal::new(1, -1), Decimal::new(3, 0)];
        Numbers {
            min,
            max,
            multiples: random.chance(30).then(|| *random.choose(&multiples)).into_iter().collect(),
            whole: random.chance(70).then_some(true),
            plain: random.chance(20).then_some(true),
            ..Numbers::default()
        }
    }

    #[test]
    fn long_numbers() {
        let reads = |numbers: &Numbers, text: &str| {
            let pieces = NumberPieces::new(numbers, usize::MAX);
            let end = text.bytes().try_fold(0, |state, byte| pieces.step(state, byte).unwrap());
            end.is_some_and(|state| !pieces.accepts(state).is_empty())
        };
        let (ones, zeros) = ("1".repeat(2_000), "0".repeat(2_000));
        let integers = Numbers { whole: Some(true), ..Numbers::default() };
        for text in [&ones, &format!("1{zeros}"), &format!("1{zeros}e-400"), &format!("{ones}.0")] {
            assert!(reads(&integers, text), "{text}");
        }
        // Zeros that an exponent could take back are counted so far.
        let not =
            [format!("1{}e-4", "000"), format!("{ones}e-1"), format!("1{zeros}e-401"), format!("0.{zeros}")];
        assert!(not.iter().all(|text| !reads(&integers, text)));
        // Others are by their digits.
        let multiples = Numbers { multiples: [Decimal::new(3, 0)].into(), ..Numbers::default() };
        assert!(
            reads(&multiples, &"3".repeat(MAX_DIGITS)) && !reads(&multiples, &"3".repeat(MAX_DIGITS + 1))
        );
    }

    #[test]
    fn where_only_powers_of_ten_matter_digits_do_not() {
        let (mut n_by_power, mut n_compared) = (0, 0);
        for seed in 0..4_000 {
            let mut random = Random::new(seed);
            let numbers = numbers(&mut random);
            let (quick, mut plain) = (NumberPieces::new(&numbers, usize::MAX), None);
            let mut by_digits = NumberPieces::new(&numbers, usize::MAX);
            if let Some(values) = &mut by_digits.values {
                n_by_power += usize::from(values.by_power.take().is_some());
                plain = Some(by_digits);
            }
            let Some(plain) = plain else { continue };
            assert_eq!(quick.is_possible(), plain.is_possible(), "seed {seed}: {numbers:?}");
            if !quick.is_possible() {
                continue;
            }
            let says = |pieces: &NumberPieces, at: u32| (pieces.accepts(at), pieces.live(at));
            assert_eq!(says(&quick, 0), says(&plain, 0), "seed {seed}: {numbers:?}");
            let (mut at, mut other) = (0, 0);
            for _ in 0..12 {
                let goes_on = |&byte: &u8| quick.step(at, byte).unwrap().is_some();
                assert!((0..=u8::MAX).filter(goes_on).all(|byte| quick.bytes(at).contains(byte)));
                let byte = *random.choose(b"00001235679--..ee+");
                let (next, expected) = (quick.step(at, byte).unwrap(), plain.step(other, byte).unwrap());
                let (is, must) = (next.map(|at| says(&quick, at)), expected.map(|at| says(&plain, at)));
                assert_eq!(is, must, "seed {seed}: {numbers:?}, byte {byte}");
                (at, other) = (next.unwrap_or(at), expected.unwrap_or(other));
                n_compared += 1;
            }
        }
        assert!(n_by_power > 800 && n_compared > 10_000, "{n_by_power} {n_compared}");
    }
}
