//! A strategy of the decoding loop by name, and IG-CD with completions.

use anygram::decode::{Configured, STRATEGIES, Strategy};
use anygram::{Constraint, DecodeError};

use crate::EvalError;

/// How generations are constrained.
///
/// The names are those of [`Configured`], and `intersection-with-completion`: IG-CD, where a run that got
/// stuck ends with a completion drawn from the intersection, as its authors have it ("Con." of their tables;
/// without it "Con.−"). Such a completion is a text, whether it fits into the canvas or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    strategy: Configured,
    completes: bool,
}

/// The name of the strategy, and of the method that completes what it leaves.
const INTERSECTION: &str = "intersection";
const WITH_COMPLETION: &str = "intersection-with-completion";

impl Method {
    /// The method of this name.
    pub fn parse(name: &str) -> Result<Self, EvalError> {
        let completes = name == WITH_COMPLETION;
        let unknown = |_| EvalError::Method {
            name: name.to_owned(),
            known: Self::names().collect::<Vec<_>>().join(", "),
        };
        let strategy = Configured::parse(if completes { INTERSECTION } else { name }).map_err(unknown)?;
        Ok(Self { strategy, completes })
    }

    /// All names without parameters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        STRATEGIES.iter().map(|strategy| strategy.name).chain([WITH_COMPLETION])
    }

    /// As it is called on the command line and in files.
    pub fn name(&self) -> &str {
        if self.completes { WITH_COMPLETION } else { self.strategy.name() }
    }

    /// Whether a run that got stuck ends with a completion drawn from the intersection.
    pub fn completes(&self) -> bool {
        self.completes
    }

    /// Whether it refuses a token only where it has shown that nothing completes it, so that a refusal
    /// without a proof means that a limit was hit. LAVE refuses what none of its samples completes.
    pub fn proves_refusals(&self) -> bool {
        !self.name().starts_with("lookahead")
    }

    /// A new strategy for a constraint.
    pub fn make(&self, constraint: &Constraint) -> Result<Box<dyn Strategy>, DecodeError> {
        self.strategy.make(constraint)
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
        assert!(Method::parse(WITH_COMPLETION).unwrap().completes());
        assert_eq!(Method::parse("lookahead:N=3").unwrap().name(), "lookahead:N=3");
        assert!(Method::parse("intersection-with-completion:N=3").is_err());
    }
}
