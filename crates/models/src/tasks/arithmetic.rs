//! An arithmetic question in words to an expression in full parentheses.
//!
//! `times` binds stronger than `plus` and `minus`, which go from left to right; `, all times 2` takes
//! everything before it. Sums and products can be grouped in several ways, and each is right: a model that
//! fills many slots at once has to agree with itself on one.

use super::Wanted as AnyWanted;
use anygram_bits::Random;

/// The numbers of a question, and what comes out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    numbers: Vec<i64>,
    value: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
}

/// Of an expression: how it is written, and its value.
struct Expression {
    text: String,
    value: i64,
}

const OPERATORS: [Operator; 3] = [Operator::Plus, Operator::Minus, Operator::Times];
const LARGEST: usize = 12;
/// The percentage of groups that are taken from the left: models that fill many slots at once have one way to
/// agree on, and others remain.
const LEFTMOST: usize = 75;

pub(super) fn example(random: &mut Random) -> (String, String, AnyWanted) {
    let n_numbers = [3, 3, 4, 4, 5, 6][random.below(6)];
    let mut numbers: Vec<i64> = (0..n_numbers).map(|_| number(random)).collect();
    let operators: Vec<Operator> = (1..n_numbers).map(|_| operator(random)).collect();
    let mut said = numbers[0].to_string();
    for (operator, number) in operators.iter().zip(&numbers[1..]) {
        said.push_str(&format!(" {} {number}", operator.word()));
    }
    let mut expression = chain(&numbers, &operators, random);
    for _ in 0..[0, 0, 1, 1][random.below(4)] {
        let (operator, last) = (operator(random), number(random));
        said.push_str(&format!(", all {} {last}", operator.word()));
        numbers.push(last);
        expression = operator.join(expression, Expression::number(last));
    }
    let Expression { text, value } = expression;
    (said, text, AnyWanted::Arithmetic(Wanted { numbers, value }))
}

fn number(random: &mut Random) -> i64 {
    1 + random.below(LARGEST) as i64
}

fn operator(random: &mut Random) -> Operator {
    OPERATORS[random.below(OPERATORS.len())]
}

/// Products first, then sums and differences.
fn chain(numbers: &[i64], operators: &[Operator], random: &mut Random) -> Expression {
    let (mut terms, mut between, mut first) = (Vec::new(), Vec::new(), 0);
    for (at, &operator) in operators.iter().enumerate() {
        if operator != Operator::Times {
            terms.push(product(&numbers[first..=at], random));
            between.push(operator);
            first = at + 1;
        }
    }
    terms.push(product(&numbers[first..], random));
    grouped(terms, &between, random)
}

fn product(numbers: &[i64], random: &mut Random) -> Expression {
    let factors: Vec<Expression> = numbers.iter().copied().map(Expression::number).collect();
    grouped(factors, &vec![Operator::Times; numbers.len() - 1], random)
}

/// Operands joined in any way that has the value of going from left to right: what is subtracted is one
/// operand. At least one operand.
fn grouped(operands: Vec<Expression>, operators: &[Operator], random: &mut Random) -> Expression {
    let (mut operands, mut operators) = (operands, operators.to_vec());
    while !operators.is_empty() {
        // A pair can be joined first unless it stands behind a minus.
        let is_free = |&at: &usize| at == 0 || operators[at - 1] != Operator::Minus;
        let free: Vec<usize> = (0..operators.len()).filter(is_free).collect();
        let at = if random.chance(LEFTMOST) { free[0] } else { free[random.below(free.len())] };
        let right = operands.remove(at + 1);
        let left = std::mem::replace(&mut operands[at], Expression::number(0));
        operands[at] = operators.remove(at).join(left, right);
    }
    operands.swap_remove(0)
}

impl Operator {
    fn word(self) -> &'static str {
        match self {
            Self::Plus => "plus",
            Self::Minus => "minus",
            Self::Times => "times",
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Plus => '+',
            Self::Minus => '-',
            Self::Times => '*',
        }
    }

    /// `None` if the value is too large.
    fn apply(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Plus => left.checked_add(right),
            Self::Minus => left.checked_sub(right),
            Self::Times => left.checked_mul(right),
        }
    }

    /// Of numbers as questions have them, whose values are small.
    fn join(self, left: Expression, right: Expression) -> Expression {
        Expression {
            value: self.apply(left.value, right.value).unwrap_or(0),
            text: format!("({}{}{})", left.text, self.sign(), right.text),
        }
    }
}

impl Expression {
    fn number(value: i64) -> Self {
        Self { text: value.to_string(), value }
    }
}

impl Wanted {
    /// Whether an expression has these numbers, in this order, and this value.
    pub fn check(&self, answer: &str) -> bool {
        evaluate(answer).is_some_and(|(numbers, value)| numbers == self.numbers && value == self.value)
    }
}

/// The numbers and the value of an expression in full parentheses; `None` if it is none. With a stack:
/// answers may nest deeply.
fn evaluate(text: &str) -> Option<(Vec<i64>, i64)> {
    let bytes = text.as_bytes();
    let (mut numbers, mut at) = (Vec::new(), 0);
    // For each open parenthesis what stands to the left in it.
    let mut open: Vec<Option<(i64, Operator)>> = Vec::new();
    loop {
        // An operand begins here.
        let mut value = match bytes.get(at)? {
            b'(' => {
                open.push(None);
                at += 1;
                continue;
            }
            b'0'..=b'9' => {
                let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = text[at..end].parse().ok()?;
                numbers.push(number);
                at = end;
                number
            }
            _ => return None,
        };
        // It ends here, and with it perhaps those around it.
        loop {
            let Some(pending) = open.last_mut() else {
                return (at == bytes.len()).then_some((numbers, value));
            };
            let sign = *bytes.get(at)?;
            at += 1;
            match pending.take() {
                None => {
                    let operator =
                        OPERATORS.into_iter().find(|operator| operator.sign() == char::from(sign))?;
                    *pending = Some((value, operator));
                    break;
                }
                Some((left, operator)) if sign == b')' => {
                    value = operator.apply(left, value)?;
                    open.pop();
                }
                Some(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_bind_stronger() {
        use Operator::{Minus, Plus, Times};
        let chain =
            |numbers: &[i64], operators: &[Operator]| chain(numbers, operators, &mut Random::new(1)).text;
        assert_eq!(chain(&[3, 4, 2], &[Plus, Times]), "(3+(4*2))");
        assert_eq!(chain(&[3, 4, 2], &[Times, Minus]), "((3*4)-2)");
        assert_eq!(chain(&[1, 2, 3, 4], &[Minus, Minus, Minus]), "(((1-2)-3)-4)");
    }

    #[test]
    fn all_groups_have_one_value() {
        use Operator::{Minus, Plus, Times};
        let (numbers, operators) = ([9, 1, 2, 3, 4, 5, 6], [Minus, Plus, Plus, Times, Times, Minus]);
        let mut random = Random::new(1);
        let texts: std::collections::HashSet<String> = (0..300)
            .map(|_| {
                let Expression { text, value } = chain(&numbers, &operators, &mut random);
                assert_eq!((evaluate(&text).unwrap(), value), ((numbers.to_vec(), 64), 64), "{text}");
                text
            })
            .collect();
        assert!(texts.len() >= 8, "{texts:?}");
    }

    #[test]
    fn expressions_are_evaluated() {
        assert_eq!(evaluate("(3+(4*2))"), Some((vec![3, 4, 2], 11)));
        assert_eq!(evaluate("((1-2)*12)"), Some((vec![1, 2, 12], -12)));
        assert_eq!(evaluate("7"), Some((vec![7], 7)));
        for wrong in [
            "",
            "(",
            "(1)",
            "(1+2",
            "(1+2)3",
            "1+2",
            "(1+2+3)",
            "(+2)",
            "(1+)",
            "()",
            "(99999999999999999999+1)",
        ] {
            assert_eq!(evaluate(wrong), None, "{wrong}");
        }
    }
}
