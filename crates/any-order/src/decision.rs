//! The one shape of an answer that may stay open.

use anygram_bits::ErrorKind;
use anygram_bits::work::Stopped;
use anygram_left_to_right::language::StepError;

/// Yes, no, or not decided. A yes comes with what shows it.
///
/// Exact methods say no only where it is proven, and *unknown* only at a limit, or in mode `contextual`; the
/// table in `docs/canvas.md` says of each method which answer can be wrong.
///
/// ```
/// use anygram_any_order::{Decision, Undecided};
///
/// let fewest: Decision<usize> = Decision::Yes(3);
/// assert_eq!(fewest.decided(), Some(true));
/// assert_eq!(fewest.map(|n| n + 1).yes(), Some(4));
/// assert_eq!(Decision::<usize>::Unknown(Undecided::Between).decided(), None);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Decision<T = ()> {
    /// Yes, with a witness.
    Yes(T),
    /// No.
    No,
    /// It was not decided.
    Unknown(Undecided),
}

/// Why a question was not decided.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Undecided {
    /// A limit was hit.
    #[error(transparent)]
    Limit(#[from] StepError),
    /// In `contextual`: the search found no completion, and the upper bound could not prove that there is
    /// none.
    #[error(
        "undecided: found no completion and no proof that there is none; raise the limit `canvas_steps` or \
         use the lexer mode `longest`"
    )]
    Between,
}

#[doc(hidden)]
impl From<Stopped> for Undecided {
    fn from(stopped: Stopped) -> Self {
        Self::Limit(stopped.into())
    }
}

impl Undecided {
    /// [`ErrorKind::Undecided`], or that of the step that ended early: [`ErrorKind::Limit`],
    /// [`ErrorKind::Cancelled`], [`ErrorKind::Device`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Limit(error) => error.kind(),
            Self::Between => ErrorKind::Undecided,
        }
    }
}

impl<T> Decision<T> {
    /// `Some(true)` for a yes, `Some(false)` for a no, `None` for an answer that is not known.
    pub fn decided(&self) -> Option<bool> {
        match self {
            Self::Yes(_) => Some(true),
            Self::No => Some(false),
            Self::Unknown(_) => None,
        }
    }

    /// Whether it is a yes.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// Whether it is a no.
    pub fn is_no(&self) -> bool {
        matches!(self, Self::No)
    }

    /// What shows a yes.
    pub fn yes(self) -> Option<T> {
        match self {
            Self::Yes(shown) => Some(shown),
            Self::No | Self::Unknown(_) => None,
        }
    }

    /// What shows a yes, nothing for a no, and as an error why it is not known.
    pub fn known(self) -> Result<Option<T>, Undecided> {
        match self {
            Self::Yes(shown) => Ok(Some(shown)),
            Self::No => Ok(None),
            Self::Unknown(why) => Err(why),
        }
    }

    /// Why it is not known.
    pub fn undecided(&self) -> Option<&Undecided> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::Yes(_) | Self::No => None,
        }
    }

    /// The same answer, shown by something else.
    pub fn map<U>(self, show: impl FnOnce(T) -> U) -> Decision<U> {
        match self {
            Self::Yes(shown) => Decision::Yes(show(shown)),
            Self::No => Decision::No,
            Self::Unknown(why) => Decision::Unknown(why),
        }
    }

    /// A yes if there is something, a no if there is nothing, and at a limit unknown.
    pub(crate) fn of<E: Into<Undecided>>(found: Result<Option<T>, E>) -> Self {
        match found {
            Ok(Some(found)) => Self::Yes(found),
            Ok(None) => Self::No,
            Err(error) => Self::Unknown(error.into()),
        }
    }
}
