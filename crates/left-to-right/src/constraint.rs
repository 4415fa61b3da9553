//! A language and a vocabulary together, and the outputs that they constrain.

use std::sync::{Arc, OnceLock};

use anygram_grammar::ir::{SpecialToken, TerminalId, TerminalKind};
use anygram_vocab::{TokenId, Vocabulary};

use crate::batch::BatchOptions;
use crate::bound::TablesBound;
use crate::error::{CompileCause, CompileError, MatchError};
use crate::language::Language;
use crate::matcher::Matcher;
use crate::session::Session;
use crate::tokens::{MASK_BITS, get_bit};

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

#[derive(Clone, Debug)]
struct Inner {
    language: Arc<Language>,
    vocabulary: Vocabulary,
    /// The tokens that the grammar names.
    specials: Vec<(TokenId, TerminalId)>,
    /// Of each terminal that is any token but some the tokens that it is not, sorted.
    sets: Vec<TokenSet>,
    longest: OnceLock<Option<Constraint>>,
    height: usize,
    bound: Option<Arc<TablesBound>>,
}

/// A terminal that is any one token but some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenSet {
    /// The terminal.
    pub terminal: TerminalId,
    /// The tokens that it is not, EOS, PAD and MASK among them; sorted.
    pub excluded: Box<[TokenId]>,
}

impl TokenSet {
    fn new(excluded: impl Iterator<Item = TokenId>, terminal: TerminalId, vocabulary: &Vocabulary) -> Self {
        let ends = vocabulary.eos().iter().copied().chain(vocabulary.pad()).chain(vocabulary.mask());
        let mut excluded: Vec<TokenId> = excluded.chain(ends).collect();
        excluded.sort_unstable();
        excluded.dedup();
        Self { terminal, excluded: excluded.into() }
    }

    /// Whether the terminal is this token of the vocabulary.
    pub fn contains(&self, token: TokenId) -> bool {
        self.excluded.binary_search(&token).is_err()
    }

    /// Adds the tokens of the set to a mask of so many tokens.
    pub(crate) fn add_to(&self, words: &mut [u32], n_tokens: usize) {
        let had: Vec<bool> = self.excluded.iter().map(|token| get_bit(words, token.index())).collect();
        let (whole, rest) = (n_tokens / MASK_BITS, n_tokens % MASK_BITS);
        words[..whole].fill(u32::MAX);
        if rest > 0 {
            words[whole] |= (1 << rest) - 1;
        }
        for (token, _) in self.excluded.iter().zip(had).filter(|(_, had)| !had) {
            words[token.index() / MASK_BITS] &= !(1 << (token.index() % MASK_BITS));
        }
    }
}

impl Constraint {
    /// Combines a language and a vocabulary. Fails if the grammar names a token that the vocabulary lacks.
    pub fn new(language: Arc<Language>, vocabulary: Vocabulary) -> Result<Self, CompileError> {
        let (mut specials, mut sets) = (Vec::new(), Vec::new());
        let find = |token: &SpecialToken| {
            let found = match token {
                SpecialToken::Name(name) => vocabulary.special_by_name(name),
                SpecialToken::Id(id) => Some(TokenId(*id)).filter(|token| token.index() < vocabulary.len()),
                SpecialToken::Except(_) => None,
            };
            found.ok_or_else(|| CompileCause::UnknownToken { name: token.to_string() })
        };
        for (at, terminal) in language.grammar().terminals.iter().enumerate() {
            let TerminalKind::Special(special) = &terminal.kind else { continue };
            let SpecialToken::Except(excluded) = special else {
                specials.push((find(special)?, TerminalId::new(at)));
                continue;
            };
            let excluded: Vec<TokenId> = excluded.iter().map(find).collect::<Result<_, _>>()?;
            let set = TokenSet::new(excluded.into_iter(), TerminalId::new(at), &vocabulary);
            if set.excluded.len() == vocabulary.len() {
                return Err(CompileCause::UnknownToken { name: terminal.name.clone() }.into());
            }
            sets.push(set);
        }
        Ok(Self::of(language, vocabulary, specials, sets))
    }

    fn of(
        language: Arc<Language>,
        vocabulary: Vocabulary,
        specials: Vec<(TokenId, TerminalId)>,
        sets: Vec<TokenSet>,
    ) -> Self {
        let height = if language.lexing().is_growing() { vocabulary.trie().height() } else { 0 };
        let longest = OnceLock::new();
        Self(Arc::new(Inner { language, vocabulary, specials, sets, longest, height, bound: None }))
    }

    /// The same constraint, whose tables from now on are within a bound that many constraints share.
    pub fn bounded(&self, bound: &Arc<TablesBound>) -> Self {
        // The one that is made of it has its bound too.
        Self(Arc::new(Inner { bound: Some(bound.clone()), longest: OnceLock::new(), ..(*self.0).clone() }))
    }

    /// The bound on its tables.
    pub fn bound(&self) -> Option<&Arc<TablesBound>> {
        self.0.bound.as_ref()
    }

    /// For a `contextual` constraint: the same grammar in mode `longest`. Its sentences are sentences here
    /// too, and its lexing does not depend on the parser. `None` in other modes, or if the lexer has too many
    /// states. Built on first use.
    pub fn longest(&self) -> Option<&Self> {
        let make = || {
            let language = Arc::new(self.language().longest()?);
            let (specials, sets) = (self.specials().to_vec(), self.0.sets.clone());
            let made = Self::of(language, self.vocabulary().clone(), specials, sets);
            Some(self.bound().map_or(made.clone(), |bound| made.bounded(bound)))
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

    /// The tokens that the grammar names one by one, each with its terminal.
    pub fn specials(&self) -> &[(TokenId, TerminalId)] {
        &self.0.specials
    }

    /// The terminals that are any token but some.
    pub fn token_sets(&self) -> &[TokenSet] {
        &self.0.sets
    }

    /// The terminals that a token is as a whole, whatever its bytes.
    pub fn named(&self, token: TokenId) -> impl Iterator<Item = TerminalId> {
        let named = self.0.specials.iter().filter(move |named| named.0 == token).map(|named| named.1);
        named.chain(self.0.sets.iter().filter(move |set| set.contains(token)).map(|set| set.terminal))
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
        Matcher::new(self.clone(), Session::new(self, self.language().choice())?.shared(self))
    }
}
