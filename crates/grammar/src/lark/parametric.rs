//! Rules with a parameter of 64 bits, as llguidance has them: `name::_`, `name::incr(_)`, `%if lt(_, 9)`.
//!
//! A rule with a value is a rule of its own, made when it is used, so the grammar is as large as the values
//! that can be reached from the start; [`LarkOptions::max_size`](super::LarkOptions::max_size) bounds it.
//! Notation and meaning are those of llguidance 1.9.1. Conditions nest at most [`MAX_DEPTH`] deep.

use super::lexer::TokenKind;
use super::parser::Parser;
use crate::diagnostic::{ErrorKind, GrammarError};

/// How deep `and`, `or` and `not` nest.
const MAX_DEPTH: usize = 100;

/// Some bits of the parameter: from the first up to the last, which is not one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bits {
    start: u32,
    end: u32,
}

impl Bits {
    const ALL: Self = Self { start: 0, end: 64 };

    fn mask(self) -> u64 {
        (u64::MAX >> (64 - (self.end - self.start))) << self.start
    }

    fn of(self, value: u64) -> u64 {
        (value & self.mask()) >> self.start
    }
}

/// What a rule is used with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expression {
    Value(u64),
    Own,
    Increment(Bits),
    Decrement(Bits),
    Or(u64),
    And(u64),
}

impl Expression {
    /// Whether it needs the parameter of the rule around it.
    pub fn needs_parameter(self) -> bool {
        !matches!(self, Self::Value(_))
    }

    pub fn of(self, value: u64) -> u64 {
        match self {
            Self::Value(value) => value,
            Self::Own => value,
            // Both stay where they are at the end of the bits.
            Self::Increment(bits) if value & bits.mask() != bits.mask() => value + (1 << bits.start),
            Self::Decrement(bits) if value & bits.mask() != 0 => value - (1 << bits.start),
            Self::Increment(_) | Self::Decrement(_) => value,
            Self::Or(other) => value | other,
            Self::And(other) => value & other,
        }
    }
}

/// How two numbers have to compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Equal,
            "ne" => Self::NotEqual,
            "lt" => Self::Less,
            "le" => Self::LessOrEqual,
            "gt" => Self::Greater,
            "ge" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, a: u64, b: u64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::LessOrEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
        }
    }
}

/// A step of a condition; [`Condition`] has them in postfix order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    True,
    Compare(Bits, Comparison, u64),
    CountOnes(Bits, Comparison, u64),
    And,
    Or,
    Not,
}

/// When an alternative may stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Condition(Vec<Step>);

impl Condition {
    pub fn holds(&self, value: u64) -> bool {
        let mut stack = Vec::new();
        for &step in &self.0 {
            let mut pop = || stack.pop().unwrap_or(true);
            let answer = match step {
                Step::True => true,
                Step::Compare(bits, comparison, other) => comparison.holds(bits.of(value), other),
                Step::CountOnes(bits, comparison, other) => {
                    comparison.holds(u64::from(bits.of(value).count_ones()), other)
                }
                Step::And => pop() & pop(),
                Step::Or => pop() | pop(),
                Step::Not => !pop(),
            };
            stack.push(answer);
        }
        stack.pop().unwrap_or(true)
    }
}

type Result<T> = std::result::Result<T, GrammarError>;

impl Parser<'_> {
    /// What stands behind `name::` where a rule is used.
    pub(super) fn parameter_expression(&mut self) -> Result<Expression> {
        if let Some(value) = self.parameter_value()? {
            return Ok(Expression::Value(value));
        }
        if self.eat_own_parameter()? {
            return Ok(Expression::Own);
        }
        let what = "`_`, a number, `incr`, `decr`, `set_bit`, `clear_bit`, `bit_and` or `bit_or`";
        let TokenKind::RuleName(function) = &self.token.kind else { return Err(self.expected(what)) };
        let function = function.to_string();
        if !["incr", "decr", "set_bit", "clear_bit", "bit_and", "bit_or"].contains(&&*function) {
            return Err(self.expected(what));
        }
        self.bump()?;
        self.expect(&TokenKind::LeftParen, "`(`")?;
        let expression = match &*function {
            "incr" => Expression::Increment(self.bits()?),
            "decr" => Expression::Decrement(self.bits()?),
            "set_bit" => Expression::Or(1 << self.bit(63)?),
            "clear_bit" => Expression::And(!(1 << self.bit(63)?)),
            "bit_and" => Expression::And(self.needed_value()?),
            _ => Expression::Or(self.needed_value()?),
        };
        self.expect(&TokenKind::RightParen, "`)`")?;
        Ok(expression)
    }

    /// What stands behind `%if`. Functions that are open stand on a stack of our own.
    pub(super) fn condition(&mut self) -> Result<Condition> {
        let mut steps = Vec::new();
        // What comes after the arguments, and how many of these are missing.
        let mut open: Vec<(Step, usize)> = Vec::new();
        loop {
            let what = "a condition, such as `is_ones`, `bit_clear`, `lt`, `bit_count_le`, `and` or `true`";
            let TokenKind::RuleName(name) = &self.token.kind else { return Err(self.expected(what)) };
            let name = name.to_string();
            let inner = match &*name {
                "and" => Some((Step::And, 2)),
                "or" => Some((Step::Or, 2)),
                "not" => Some((Step::Not, 1)),
                _ => None,
            };
            if let Some(inner) = inner {
                if open.len() == MAX_DEPTH {
                    let message = format!("this condition nests deeper than {MAX_DEPTH} levels");
                    return Err(GrammarError::new(ErrorKind::Limit, self.token.span.clone(), message));
                }
                self.bump()?;
                self.expect(&TokenKind::LeftParen, "`(`")?;
                open.push(inner);
                continue;
            }
            let Some(step) = self.simple_condition(&name)? else { return Err(self.expected(what)) };
            steps.push(step);
            // Closes what is complete with it.
            loop {
                let Some((step, missing)) = open.last_mut() else { return Ok(Condition(steps)) };
                *missing -= 1;
                if *missing > 0 {
                    self.expect(&TokenKind::Comma, "`,`")?;
                    break;
                }
                steps.push(*step);
                open.pop();
                self.expect(&TokenKind::RightParen, "`)`")?;
            }
        }
    }

    /// A condition without others in it; none with another name.
    fn simple_condition(&mut self, name: &str) -> Result<Option<Step>> {
        if name == "true" {
            self.bump()?;
            if self.eat(&TokenKind::LeftParen)? {
                self.expect(&TokenKind::RightParen, "`)`")?;
            }
            return Ok(Some(Step::True));
        }
        let count = name.strip_prefix("bit_count_").and_then(Comparison::by_name);
        let comparison = Comparison::by_name(name);
        let is_known = ["bit_clear", "bit_set", "is_zeros", "is_ones"].contains(&name);
        if count.is_none() && comparison.is_none() && !is_known {
            return Ok(None);
        }
        self.bump()?;
        self.expect(&TokenKind::LeftParen, "`(`")?;
        let step = if name == "bit_clear" || name == "bit_set" {
            let start = self.bit(63)?;
            let value = u64::from(name == "bit_set");
            Step::Compare(Bits { start, end: start + 1 }, Comparison::Equal, value)
        } else {
            let bits = self.bits()?;
            if let Some(comparison) = comparison.or(count) {
                self.expect(&TokenKind::Comma, "`,`")?;
                let other = self.needed_value()?;
                match count {
                    Some(_) => Step::CountOnes(bits, comparison, other),
                    None => Step::Compare(bits, comparison, other),
                }
            } else {
                let value = if name == "is_ones" { bits.of(u64::MAX) } else { 0 };
                Step::Compare(bits, Comparison::Equal, value)
            }
        };
        self.expect(&TokenKind::RightParen, "`)`")?;
        Ok(Some(step))
    }

    /// `_`
    pub(super) fn eat_own_parameter(&mut self) -> Result<bool> {
        self.eat(&TokenKind::Underscore)
    }

    /// A number, if there is one.
    fn parameter_value(&mut self) -> Result<Option<u64>> {
        let value = match self.token.kind {
            TokenKind::HexNumber(digits) => u64::from_str_radix(digits, 16).ok(),
            TokenKind::Number(digits) => digits.parse().ok(),
            _ => return Ok(None),
        };
        let Some(value) = value else {
            return Err(self.expected(&format!("a number from 0 to {}", u64::MAX)));
        };
        self.bump()?;
        Ok(Some(value))
    }

    fn needed_value(&mut self) -> Result<u64> {
        match self.parameter_value()? {
            Some(value) => Ok(value),
            None => Err(self.expected("a number")),
        }
    }

    /// The number of a bit.
    fn bit(&mut self, most: u32) -> Result<u32> {
        let what = format!("the number of a bit, at most {most}");
        let TokenKind::Number(digits) = self.token.kind else { return Err(self.expected(&what)) };
        match digits.parse() {
            Ok(bit) if bit <= most => {
                self.bump()?;
                Ok(bit)
            }
            _ => Err(self.expected(&what)),
        }
    }

    /// `_` or `[x:y]`
    fn bits(&mut self) -> Result<Bits> {
        if self.eat_own_parameter()? {
            return Ok(Bits::ALL);
        }
        self.expect(&TokenKind::LeftBracket, "`_` or `[first:end]`")?;
        let start = self.bit(63)?;
        self.expect(&TokenKind::Colon, "`:`")?;
        let end = self.bit(64)?;
        if end <= start {
            return Err(self.expected(&format!("an end beyond {start}")));
        }
        self.expect(&TokenKind::RightBracket, "`]`")?;
        Ok(Bits { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_the_right() {
        let low = Bits { start: 0, end: 3 };
        let high = Bits { start: 60, end: 64 };
        assert_eq!((low.mask(), high.mask(), Bits::ALL.mask()), (7, 15 << 60, u64::MAX));
        assert_eq!((low.of(0b1101), high.of(u64::MAX)), (0b101, 15));
        assert_eq!(Expression::Increment(low).of(7), 7);
        assert_eq!(Expression::Increment(low).of(8 + 6), 8 + 7);
        assert_eq!(Expression::Decrement(low).of(8), 8);
        assert_eq!(Expression::Increment(Bits::ALL).of(u64::MAX), u64::MAX);
        let condition = Condition(vec![
            Step::Compare(low, Comparison::Less, 3),
            Step::CountOnes(Bits::ALL, Comparison::Equal, 2),
            Step::And,
            Step::Not,
        ]);
        assert!(condition.holds(0b11) && !condition.holds(0b1010));
    }
}
