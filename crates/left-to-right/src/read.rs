//! Reading one token.
//!
//! A token is read as its bytes, and, at the border of a piece, as each terminal by which the grammar names
//! it. How a byte is read differs (all readings at once, each apart, several in one), so that is the
//! caller's; what a token is made of is here, and nowhere else.

use anygram_grammar::ir::TerminalId;
use anygram_vocab::TokenId;

use crate::constraint::Constraint;
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::StepError;

/// The readings that a token leads to, sorted, without repetition.
///
/// `named` are the terminals by which the grammar names the token. `step` reads a byte, from some readings
/// into others, and says whether to go on; where it does not, the bytes lead nowhere. It is given the bytes
/// in order, and of none of a token without text.
pub fn read_token<Q: AsMut<Stepper>>(
    question: &mut Q,
    constraint: &Constraint,
    from: &[Config],
    (token, named): (TokenId, impl Iterator<Item = TerminalId>),
    mut step: impl FnMut(&mut Q, &[Config], u8, &mut Frontier) -> Result<bool, StepError>,
) -> Result<Frontier, StepError> {
    let mut readings = Frontier::new();
    for terminal in named {
        readings.extend(question.as_mut().step_special(constraint.language(), from, terminal)?);
    }
    let bytes = constraint.vocabulary().bytes(token).unwrap_or_default();
    let (mut at, mut next) = (from.to_vec(), Frontier::new());
    let mut goes_on = !bytes.is_empty();
    for &byte in bytes {
        goes_on = step(question, &at, byte, &mut next)?;
        if !goes_on {
            break;
        }
        std::mem::swap(&mut at, &mut next);
    }
    if goes_on {
        readings.append(&mut at);
    }
    readings.sort_unstable();
    readings.dedup();
    Ok(readings)
}
