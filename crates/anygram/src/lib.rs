//! Anygram: any grammar, any order. Makes language models write only sentences of a context-free language.
//!
//! Compile once, constrain many:
//!
//! ```
//! use anygram::{Compiler, Constraint, GrammarFormat, Vocabulary};
//!
//! let grammar = r#"start: "(" start ")" | "x""#;
//! let language = Compiler::default().compile(GrammarFormat::Lark, grammar)?;
//! let constraint = Constraint::new(language, Vocabulary::builtin())?;
//!
//! let mut matcher = constraint.matcher()?;
//! for token in constraint.vocabulary().encode("(x")? {
//!     matcher.advance(token)?;
//! }
//! assert!(!matcher.is_sentence());
//! let mask = matcher.mask()?; // 32-bit words, bit = allowed
//! let close = constraint.vocabulary().encode(")")?[0];
//! assert!(anygram::get_bit(&mask, close.index()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type | role |
//! |---|---|
//! | [`Compiler`] | options; turns the text of a grammar into a [`Language`] |
//! | [`Language`] | a compiled grammar; immutable, shared, knows texts but no tokens |
//! | [`Vocabulary`] | the tokens of a model |
//! | [`Constraint`] | a language and a vocabulary; cheap to clone |
//! | [`Matcher`] | the state of one output: mask, advance, rollback, fork, validate |

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use anygram_grammar::GrammarError;
pub use anygram_grammar::ir::{Grammar, LexerMode, Ties};
pub use anygram_left_to_right::language::{Reader, Reading, StepError};
pub use anygram_left_to_right::mask::{get_bit, set_bit};
pub use anygram_left_to_right::{
    CompileError, Constraint, Engine, Language, LanguageOptions, Limits, MatchError, Matcher, Refusal,
};
pub use anygram_vocab::{LoadOptions, SpecialIds, TokenId, VocabError, Vocabulary};

/// The parts, for those who build on one of them.
pub mod parts {
    pub use anygram_bits as bits;
    pub use anygram_grammar as grammar;
    pub use anygram_left_to_right as left_to_right;
    pub use anygram_lexer as lexer;
    pub use anygram_recognizer as recognizer;
    pub use anygram_vocab as vocab;
}

/// How a grammar is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum GrammarFormat {
    /// Lark's EBNF.
    Lark,
}

impl GrammarFormat {
    /// All formats.
    pub const ALL: [Self; 1] = [Self::Lark];

    /// The name of the format, which is also its file extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lark => "lark",
        }
    }

    /// The format with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format that the extension of a file name tells.
    pub fn of_path(path: &Path) -> Option<Self> {
        Self::by_name(path.extension()?.to_str()?)
    }
}

/// A grammar that cannot be used.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of the grammar is at fault; [`GrammarError::render`] shows where.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// The grammar as a whole is at fault, or a limit was hit.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Options for compiling grammars.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compiler {
    start: Option<String>,
    imports: Option<PathBuf>,
    options: LanguageOptions,
}

impl Compiler {
    /// The start rule; that of the grammar (in Lark `start`, or what `%start` says) unless it is set.
    pub fn start(mut self, name: impl Into<String>) -> Self {
        self.start = Some(name.into());
        self
    }

    /// The folder from which a grammar may import files (`%import .file.name`), mostly its own. Without it no file is
    /// read: set it for grammars that you trust.
    pub fn imports(mut self, folder: impl Into<PathBuf>) -> Self {
        self.imports = Some(folder.into());
        self
    }

    /// The lexer mode; that of the grammar (for Lark `contextual`, or what `%lexer` says) unless it is set.
    pub fn lexer(mut self, mode: LexerMode) -> Self {
        self.options.lexer = Some(mode);
        self
    }

    /// What to do when several terminals match the same longest piece.
    pub fn ties(mut self, ties: Ties) -> Self {
        self.options.ties = ties;
        self
    }

    /// The recognizer.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.options.engine = engine;
        self
    }

    /// Bounds on work and memory.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Reads a grammar without compiling it.
    pub fn read(&self, format: GrammarFormat, source: &str) -> Result<Grammar, GrammarError> {
        match format {
            GrammarFormat::Lark => {
                let mut options = anygram_grammar::lark::LarkOptions::default();
                options.start.clone_from(&self.start);
                options.imports.clone_from(&self.imports);
                anygram_grammar::lark::parse(source, &options)
            }
        }
    }

    /// Compiles the text of a grammar.
    pub fn compile(&self, format: GrammarFormat, source: &str) -> Result<Arc<Language>, Error> {
        self.compile_grammar(self.read(format, source)?)
    }

    /// Compiles a grammar that was read or built.
    pub fn compile_grammar(&self, grammar: Grammar) -> Result<Arc<Language>, Error> {
        Ok(Arc::new(Language::new(grammar, &self.options)?))
    }
}

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
