//! Names of terminals in the words of a schema, for messages.

use crate::atoms::Numbers;
use crate::chars::FormulaId;
use crate::strings::Text;
use crate::value::Decimal;

/// Values that a name lists.
const LISTED: usize = 8;

/// What a number may be. What cannot be said in a few words is left to the schema at a pointer.
pub fn number(numbers: &Numbers, pointer: &str) -> String {
    let Numbers { min, max, multiples, not_multiples, whole, plain, not_in, one_of } = numbers;
    let listed = one_of.iter().flatten().map(Decimal::to_string).collect::<Vec<_>>().join(", ");
    match one_of.as_ref().map(|values| values.len()) {
        Some(1) => return listed,
        Some(2..=LISTED) => return format!("one of the numbers {listed}"),
        _ => {}
    }
    let is_integer = *whole == Some(true) || *plain == Some(true);
    let mut name = if is_integer { "an integer" } else { "a number" }.to_owned();
    let bounds = [(min, [" of at least ", " above "]), (max, [" of at most ", " below "])];
    let mut joined = "";
    for (bound, words) in bounds {
        if let Some((bound, is_exclusive)) = bound {
            name = format!("{name}{joined}{}{bound}", words[usize::from(*is_exclusive)]);
            joined = " and";
        }
    }
    for multiple in multiples {
        name = format!("{name}, a multiple of {multiple}");
    }
    let has_more = one_of.is_some() || !not_multiples.is_empty() || !not_in.is_empty();
    if has_more || *whole == Some(false) || *plain == Some(false) {
        name = format!("{name}, as #{pointer} says");
    }
    name
}

/// What a string may be, likewise.
pub fn string(text: Text, pointer: &str) -> String {
    let Text { formula, min, max } = text;
    let length = match (min, max) {
        (0, u64::MAX) => String::new(),
        (min, u64::MAX) => format!(" of at least {min} characters"),
        (0, max) => format!(" of at most {max} characters"),
        (min, max) if min == max => format!(" of {min} characters"),
        (min, max) => format!(" of {min} to {max} characters"),
    };
    match formula == FormulaId::ANY {
        true => format!("a string{length}"),
        false => format!("a string{length}, as #{pointer} says"),
    }
}
