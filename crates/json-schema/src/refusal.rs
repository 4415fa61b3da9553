//! Why a schema is refused.

use std::fmt;

use anygram_bits::work::Stopped;

/// What sort of refusal it is; the names are those of the command line's answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// It is no JSON, or no schema.
    Syntax,
    /// A keyword, or a combination of keywords, that cannot be had exactly.
    Unsupported,
    /// No value is valid.
    Unsatisfiable,
    /// A limit was hit.
    Limit,
    /// Somebody asked to stop.
    Cancelled,
}

impl Kind {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Unsupported => "unsupported",
            Self::Unsatisfiable => "unsatisfiable",
            Self::Limit => "limit",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A schema that is refused: by which keyword, where, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What sort of refusal.
    pub kind: Kind,
    /// The JSON pointer of the schema that says it.
    pub at: String,
    /// The keyword, if one is to blame.
    pub keyword: Option<&'static str>,
    /// Why, and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal of a schema.
    pub fn new(kind: Kind, at: &str, message: impl Into<String>) -> Self {
        Self { kind, at: at.to_owned(), keyword: None, message: message.into() }
    }

    /// That of work that was stopped.
    pub(crate) fn stopped(stopped: Stopped) -> Self {
        let kind = match stopped {
            Stopped::Cancelled => Kind::Cancelled,
            _ => Kind::Limit,
        };
        Self::new(kind, "", stopped.to_string())
    }

    /// Blames a keyword.
    pub fn keyword(self, keyword: &'static str) -> Self {
        Self { keyword: Some(keyword), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}", if self.at.is_empty() { "the root" } else { &self.at })?;
        if let Some(keyword) = self.keyword {
            write!(f, ", {keyword}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Refusal {}
