//! A language and a vocabulary together, and the outputs that they constrain.

use std::sync::{Arc, Mutex, OnceLock};

use anygram_grammar::ir::{SpecialToken, TerminalId, TerminalKind};
use anygram_vocab::{TokenId, Vocabulary};

use crate::batch::BatchOptions;
use crate::error::{CompileCause, CompileError, MatchError};
use crate::language::Language;
use crate::mask::MASK_BITS;
use crate::matcher::Matcher;
use crate::session::Session;

/// A language and a vocabulary: what constrains outputs. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use anygram_left_to_right::{Constraint, ErrorKind, Language, LanguageOptions};
/// use anygram_vocab::Vocabulary;
///
/// let language = |source: &str| -> Result<_, Box<dyn std::error::Error>> {
///     let grammar = anygram_grammar::lark::parse(source, &Default::default())?;
///     Ok(Arc::new(Language::new(grammar, &LanguageOptions::default())?))
/// };
/// let constraint = Constraint::new(language(r#"start: "yes" | "no""#)?, Vocabulary::builtin())?;
/// let mut matchers = [constraint.matcher()?, constraint.matcher()?]; // one for each output
/// matchers[0].advance_text("yes")?;
/// assert!(matchers[0].is_sentence() && !matchers[1].is_sentence());
///
/// // A grammar can name special tokens; the vocabulary needs to have them.
/// let error = Constraint::new(language(r#"start: "x" <|call|>"#)?, Vocabulary::builtin()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::UnknownToken);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("CompiledGrammar", "TokenizerInfo", "Guide"))]
#[derive(Clone, Debug)]
pub struct Constraint(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    language: Arc<Language>,
    vocabulary: Vocabulary,
    /// The tokens that the grammar names.
    specials: Vec<(TokenId, TerminalId)>,
    longest: OnceLock<Option<Constraint>>,
    height: usize,
}

impl Constraint {
    /// Combines a language and a vocabulary. Fails if the grammar names a token that the vocabulary lacks.
    pub fn new(language: Arc<Language>, vocabulary: Vocabulary) -> Result<Self, CompileError> {
        let mut specials = Vec::new();
        for (at, terminal) in language.grammar().terminals.iter().enumerate() {
            let TerminalKind::Special(special) = &terminal.kind else { continue };
            let token = match special {
                SpecialToken::Name(name) => vocabulary.special_by_name(name),
                SpecialToken::Id(id) => Some(TokenId(*id)).filter(|token| token.index() < vocabulary.len()),
            };
            let token = token.ok_or_else(|| CompileCause::UnknownToken { name: terminal.name.clone() })?;
            specials.push((token, TerminalId::new(at)));
        }
        Ok(Self::of(language, vocabulary, specials))
    }

    fn of(language: Arc<Language>, vocabulary: Vocabulary, specials: Vec<(TokenId, TerminalId)>) -> Self {
        let height = if language.lexing().is_growing() { vocabulary.trie().height() } else { 0 };
        Self(Arc::new(Inner { language, vocabulary, specials, longest: OnceLock::new(), height }))
    }

    /// For a `contextual` constraint: the same grammar in mode `longest`. Its sentences are sentences here
    /// too, and its lexing does not depend on the parser. `None` in other modes, or if the lexer has too many
    /// states. Built on first use.
    pub fn longest(&self) -> Option<&Self> {
        let make = || {
            let language = self.language().longest()?;
            Some(Self::of(Arc::new(language), self.vocabulary().clone(), self.specials().to_vec()))
        };
        self.0.longest.get_or_init(make).as_ref()
    }

    /// Whether this is another name of the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The most bytes that a token has, where masks depend on it, else 0: see [`Transducer::alike`].
    ///
    /// [`Transducer::alike`]: anygram_lexer::transducer::Transducer::alike
    pub(crate) fn height(&self) -> usize {
        self.0.height
    }

    /// The language.
    pub fn language(&self) -> &Arc<Language> {
        &self.0.language
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.0.vocabulary
    }

    /// The tokens that the grammar names, each with its terminal.
    pub fn specials(&self) -> &[(TokenId, TerminalId)] {
        &self.0.specials
    }

    /// The number of 32-bit words of a mask.
    pub fn mask_words(&self) -> usize {
        self.vocabulary().len().div_ceil(MASK_BITS)
    }

    /// New outputs that share tables. Outputs that share tables share everything that is computed.
    pub fn matchers(&self, options: BatchOptions) -> Result<Vec<Matcher>, MatchError> {
        let BatchOptions { n_outputs, n_tables } = options;
        let n_tables = n_tables.clamp(1, n_outputs.max(1));
        let mut matchers: Vec<Matcher> =
            (0..n_tables.min(n_outputs)).map(|_| self.matcher()).collect::<Result<_, _>>()?;
        for at in matchers.len()..n_outputs {
            matchers.push(matchers[at % n_tables].fork());
        }
        Ok(matchers)
    }

    /// Bytes on the heap of the language and the vocabulary, roughly; outputs add their own
    /// ([`Matcher::memory_usage`]).
    pub fn memory_usage(&self) -> usize {
        self.language().memory_usage() + self.vocabulary().memory_usage()
    }

    /// The state of a new output, with tables of its own, which are empty: the first mask takes milliseconds.
    /// To reuse the tables of earlier outputs, keep a matcher per thread and [`Matcher::reset`] it, or
    /// [`Matcher::fork`] it for each new output.
    pub fn matcher(&self) -> Result<Matcher, MatchError> {
        Matcher::new(self.clone(), Arc::new(Mutex::new(Session::new(self, self.language().choice())?)))
    }
}
