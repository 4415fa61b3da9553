//! A strategy of the decoding loop by name, with optional parameters.

use anygram::decode::{Lave, Named, STRATEGIES, Strategy};
use anygram::{Constraint, DecodeError, Lookahead};

use crate::EvalError;

/// How generations are constrained.
///
/// The names are those of [`STRATEGIES`], and `intersection-with-completion`: IG-CD, where a run that got
/// stuck ends with a completion drawn from the intersection, as its authors have it ("Con." of their tables;
/// without it "Con.−"). Such a completion is a text, whether it fits into the canvas or not. `lookahead`
/// takes parameters, as in `lookahead:N=3:tau=1`; `lookahead:published` asks as the paper does, whether the
/// text so far is a viable prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    name: String,
    base: &'static str,
    lookahead: Option<Parameters>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parameters {
    fillings: usize,
    attempts: usize,
    counts_room: bool,
}

/// The name of the strategy, and of the method that completes what it leaves.
const INTERSECTION: &str = "intersection";
const WITH_COMPLETION: &str = "intersection-with-completion";

impl Method {
    /// The method of this name.
    pub fn parse(name: &str) -> Result<Self, EvalError> {
        let mut parts = name.split(':');
        let base = parts.next().unwrap_or_default();
        let known = Self::names().find(|known| *known == base);
        let unknown = || EvalError::Method {
            name: name.to_owned(),
            known: Self::names().collect::<Vec<_>>().join(", "),
        };
        let base = known.ok_or_else(unknown)?;
        let mut parameters =
            Parameters { fillings: Lookahead::FILLINGS, attempts: Lave::ATTEMPTS, counts_room: true };
        let mut lookahead = None;
        for part in parts {
            match part.split_once('=').map(|(key, value)| (key, value.parse::<usize>())) {
                Some(("N", Ok(fillings))) if fillings > 0 => parameters.fillings = fillings,
                Some(("tau", Ok(attempts))) if attempts > 0 => parameters.attempts = attempts,
                None if part == "published" => parameters.counts_room = false,
                _ => return Err(unknown()),
            }
            lookahead = Some(parameters);
        }
        if lookahead.is_some() && base != "lookahead" {
            return Err(unknown());
        }
        Ok(Self { name: name.to_owned(), base, lookahead })
    }

    /// All names without parameters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        STRATEGIES.iter().map(|strategy| strategy.name).chain([WITH_COMPLETION])
    }

    /// As it is called on the command line and in files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a run that got stuck ends with a completion drawn from the intersection.
    pub fn completes(&self) -> bool {
        self.base == WITH_COMPLETION
    }

    /// A new strategy for a constraint.
    pub fn make(&self, constraint: &Constraint) -> Result<Box<dyn Strategy>, DecodeError> {
        if let Some(Parameters { fillings, attempts, counts_room }) = self.lookahead {
            let lookahead = Lookahead { fillings, counts_room, seed: 0 };
            return Ok(Box::new(Lave::new(constraint)?.lookahead(lookahead).attempts(attempts)));
        }
        let name = if self.completes() { INTERSECTION } else { self.base };
        let named = Named::find(name).unwrap_or(&STRATEGIES[0]);
        named.make(constraint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for name in Method::names() {
            assert_eq!(Method::parse(name).unwrap().name(), name);
        }
        let method = Method::parse("lookahead:N=3:tau=20:published").unwrap();
        assert_eq!(method.lookahead, Some(Parameters { fillings: 3, attempts: 20, counts_room: false }));
        assert!(Method::parse(WITH_COMPLETION).unwrap().completes());
        for wrong in
            ["", "nothing", "exact:N=3", "lookahead:N", "lookahead:N=0", "lookahead:tau=x", "lookahead:"]
        {
            assert!(Method::parse(wrong).is_err(), "{wrong}");
        }
    }
}
