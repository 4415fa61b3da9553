//! The state of one output, token by token.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anygram_grammar::ir::{SpecialToken, TerminalId, TerminalKind};
use anygram_recognizer::{Mark, RecognizerError};
use anygram_vocab::{TokenId, Vocabulary};

use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{CompileError, Language, StepError};
use crate::mask::{self, MASK_BITS, Scratch, Walks};

/// A language and a vocabulary: what constrains outputs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Constraint(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    language: Arc<Language>,
    vocabulary: Vocabulary,
    /// The tokens that the grammar names.
    specials: Vec<(TokenId, TerminalId)>,
}

impl Constraint {
    /// Puts a language and a vocabulary together. Fails if the grammar names a token that the vocabulary lacks.
    pub fn new(language: Arc<Language>, vocabulary: Vocabulary) -> Result<Self, CompileError> {
        let mut specials = Vec::new();
        for (at, terminal) in language.grammar().terminals.iter().enumerate() {
            let TerminalKind::Special(special) = &terminal.kind else { continue };
            let token = match special {
                SpecialToken::Name(name) => vocabulary.special_by_name(name),
                SpecialToken::Id(id) => Some(TokenId(*id)).filter(|token| token.index() < vocabulary.len()),
            };
            let token = token.ok_or_else(|| CompileError::UnknownToken { name: terminal.name.clone() })?;
            specials.push((token, TerminalId::new(at)));
        }
        Ok(Self(Arc::new(Inner { language, vocabulary, specials })))
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

    /// The state of a new output.
    pub fn matcher(&self) -> Result<Matcher, MatchError> {
        Matcher::new(self.clone(), Arc::new(Mutex::new(Session::new(self)?)))
    }
}

/// The tables that outputs grow together.
struct Session {
    stepper: Stepper,
    walks: Walks,
    scratch: Scratch,
}

impl Session {
    fn new(constraint: &Constraint) -> Result<Self, MatchError> {
        let stepper = Stepper::new(constraint.language()).map_err(StepError::from)?;
        Ok(Self { stepper, walks: Walks::default(), scratch: Scratch::default() })
    }
}

/// An operation that could not be done; the state is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatchError {
    /// The token may not come next.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A limit was hit.
    #[error(transparent)]
    Limit(#[from] StepError),
    /// The id is not in the vocabulary.
    #[error("token {id} is not in the vocabulary of {size} tokens")]
    UnknownToken {
        /// The id.
        id: u32,
        /// The number of tokens.
        size: usize,
    },
    /// More tokens to take back than there are.
    #[error("cannot take back {asked} tokens of {present}")]
    RollbackTooFar {
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        present: usize,
    },
    /// The caller's buffer is too short.
    #[error("a mask of this vocabulary needs {needed} words, given {given}")]
    MaskTooShort {
        /// Words needed.
        needed: usize,
        /// Words given.
        given: usize,
    },
}

/// Why a token may not come next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The token.
    pub token: TokenId,
    /// The token as a person reads it.
    pub display: String,
    /// The number of its bytes that could still be read.
    pub accepted_bytes: usize,
    /// The byte that could not, if it was a byte.
    pub refused_byte: Option<u8>,
    /// The number of bytes of text before the refused one.
    pub text_offset: usize,
    /// The names of the terminals that could have stood, or gone on, there.
    pub expected: Vec<String>,
    /// Whether the text could have ended before the refused byte.
    pub could_end: bool,
    /// Whether the output has already ended.
    pub ended: bool,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, display, accepted_bytes, text_offset, .. } = self;
        if self.ended {
            return write!(f, "token {} ({display}) after the end of the text", token.0);
        }
        match self.refused_byte {
            Some(byte) => {
                let byte = std::ascii::escape_default(byte);
                write!(
                    f,
                    "token {} ({display}) is refused at its byte {accepted_bytes} ('{byte}'), offset {text_offset} of the text",
                    token.0
                )?;
            }
            None => write!(f, "token {} ({display}) is refused at offset {text_offset} of the text", token.0)?,
        }
        const SHOWN: usize = 12;
        let shown = self.expected.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.expected.len().saturating_sub(SHOWN);
        match (self.expected.is_empty(), self.could_end) {
            (true, true) => write!(f, "; only the end of the text could have stood there"),
            (true, false) => Ok(()),
            (false, could_end) => {
                write!(f, "; expected {shown}")?;
                if more > 0 {
                    write!(f, " and {more} more")?;
                }
                if could_end { write!(f, ", or the end of the text") } else { Ok(()) }
            }
        }
    }
}

#[derive(Clone)]
struct Position {
    frontier: Arc<[Config]>,
    text_length: usize,
    ended: bool,
}

/// One output: the tokens so far and what may follow.
///
/// A clone is a fork: it costs a copy of the list of positions and shares all tables. Rollback drops positions.
#[derive(Clone)]
pub struct Matcher {
    constraint: Constraint,
    session: Arc<Mutex<Session>>,
    tokens: Vec<TokenId>,
    /// One more than tokens.
    positions: Vec<Position>,
    /// Before any token was read.
    first: Mark,
    /// When the shared tables hold more parse items than this, they are replaced.
    renew_at: usize,
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

impl Matcher {
    fn new(constraint: Constraint, session: Arc<Mutex<Session>>) -> Result<Self, MatchError> {
        let mut locked = lock(&session);
        let start = locked.stepper.start(constraint.language())?.unwrap_or_default();
        let first = locked.stepper.mark();
        drop(locked);
        let position = Position { frontier: start.into(), text_length: 0, ended: false };
        let renew_at = constraint.language().limits().shared_items;
        Ok(Self { constraint, session, tokens: Vec::new(), positions: vec![position], first, renew_at })
    }

    /// The constraint.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The tokens so far.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Takes all tokens back, and forgets their parser states unless forks share them.
    pub fn reset(&mut self) {
        self.tokens.clear();
        self.positions.truncate(1);
        if let Some(session) = Arc::get_mut(&mut self.session) {
            let session = session.get_mut().unwrap_or_else(PoisonError::into_inner);
            session.stepper.release(self.first);
        }
    }

    /// Writes the mask of allowed tokens: bit `id` is set iff the token may come next.
    ///
    /// `words` holds at least [`Constraint::mask_words`] words, which are overwritten; further words are cleared.
    pub fn mask_into(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        let needed = self.constraint.mask_words();
        if words.len() < needed {
            return Err(MatchError::MaskTooShort { needed, given: words.len() });
        }
        self.renewing(|this| this.try_mask(words))
    }

    /// The mask of allowed tokens in a buffer of its own.
    pub fn mask(&mut self) -> Result<Vec<u32>, MatchError> {
        let mut words = vec![0; self.constraint.mask_words()];
        self.mask_into(&mut words)?;
        Ok(words)
    }

    /// Appends a token. A refusal says which byte and what could have stood there, and leaves the state as it was.
    pub fn advance(&mut self, token: TokenId) -> Result<(), MatchError> {
        self.check(token)?;
        let position = self.renewing(|this| {
            let mut session = this.session();
            let mark = session.stepper.mark();
            let next = this.next(&mut session, this.last(), token);
            if next.is_err() {
                session.stepper.release(mark);
            }
            next
        })?;
        self.positions.push(position);
        self.tokens.push(token);
        Ok(())
    }

    /// How many of the tokens, one after the other, could be appended. The state does not change.
    pub fn validate(&mut self, tokens: &[TokenId]) -> Result<usize, MatchError> {
        for &token in tokens {
            self.check(token)?;
        }
        self.renewing(|this| {
            let mut session = this.session();
            let mark = session.stepper.mark();
            let mut position = this.last().clone();
            let mut count = Ok(tokens.len());
            for (at, &token) in tokens.iter().enumerate() {
                match this.next(&mut session, &position, token) {
                    Ok(next) => position = next,
                    Err(MatchError::Refused(_)) => {
                        count = Ok(at);
                        break;
                    }
                    Err(error) => {
                        count = Err(error);
                        break;
                    }
                }
            }
            session.stepper.release(mark);
            count
        })
    }

    /// Takes back the last `n` tokens, the end of the text among them.
    pub fn rollback(&mut self, n: usize) -> Result<(), MatchError> {
        let present = self.tokens.len();
        let kept = present.checked_sub(n).ok_or(MatchError::RollbackTooFar { asked: n, present })?;
        self.tokens.truncate(kept);
        self.positions.truncate(kept + 1);
        Ok(())
    }

    /// An independent copy.
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Whether the text is a sentence.
    pub fn is_sentence(&self) -> bool {
        self.session().stepper.is_sentence(&self.last().frontier)
    }

    /// Whether the output has ended with an EOS.
    pub fn has_ended(&self) -> bool {
        self.last().ended
    }

    /// Whether nothing but the end may follow.
    pub fn must_stop(&mut self) -> Result<bool, MatchError> {
        if self.has_ended() {
            return Ok(true);
        }
        let mut words = self.mask()?;
        for eos in self.constraint.vocabulary().eos() {
            words[eos.index() / MASK_BITS] &= !(1 << (eos.index() % MASK_BITS));
        }
        Ok(words.iter().all(|&word| word == 0))
    }

    /// The names of the terminals that may be in progress or come next.
    pub fn expected(&self) -> Vec<String> {
        self.session().stepper.expected(self.constraint.language(), &self.last().frontier)
    }

    /// The readings of the text so far, drawn in characters.
    pub fn dump(&self) -> String {
        let (session, language) = (self.session(), self.constraint.language());
        let mut text = String::new();
        for config in self.last().frontier.iter() {
            let expected = session.stepper.expected(language, &[*config]).join(" ");
            let kind = if session.stepper.transducer().is_boundary(config.lexeme) { "next" } else { "in progress" };
            text += &format!("state {}, lexeme {}, {kind}: {expected}\n", config.state.0, config.lexeme.0);
        }
        text
    }

    /// Bytes on the heap, the shared tables included, roughly.
    pub fn memory_usage(&self) -> usize {
        let session = self.session();
        let positions = self.positions.iter().map(|position| size_of_val(&*position.frontier) + size_of::<Position>());
        positions.sum::<usize>() + session.stepper.memory_usage() + session.walks.memory_usage()
    }

    fn last(&self) -> &Position {
        &self.positions[self.tokens.len()]
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.session)
    }

    fn check(&self, token: TokenId) -> Result<(), MatchError> {
        let size = self.constraint.vocabulary().len();
        if token.index() < size { Ok(()) } else { Err(MatchError::UnknownToken { id: token.0, size }) }
    }

    /// Does an operation; if the shared tables are full, once more with fresh ones.
    fn renewing<T>(&mut self, mut operation: impl FnMut(&Self) -> Result<T, MatchError>) -> Result<T, MatchError> {
        let (held, renew_at) = (self.session().stepper.recognizer().n_items(), self.renew_at);
        if held > renew_at {
            self.renew()?;
        }
        match operation(self) {
            Err(MatchError::Limit(
                StepError::Recognizer(RecognizerError::TooManyItems { .. }) | StepError::Lexer(_),
            )) => {
                self.renew()?;
                operation(self)
            }
            result => result,
        }
    }

    /// Replaces the shared tables by new ones that hold only what this output needs. Cost: that of reading it again.
    fn renew(&mut self) -> Result<(), MatchError> {
        let session = Arc::new(Mutex::new(Session::new(&self.constraint)?));
        let mut fresh = Self::new(self.constraint.clone(), session)?;
        for &token in &self.tokens {
            let mut session = fresh.session();
            let next = fresh.next(&mut session, fresh.last(), token)?;
            drop(session);
            fresh.positions.push(next);
            fresh.tokens.push(token);
        }
        // Twice what is needed, so that the cost of renewing is spread over as many new items.
        let needed = fresh.session().stepper.recognizer().n_items();
        fresh.renew_at = fresh.renew_at.max(2 * needed);
        *self = fresh;
        Ok(())
    }

    /// The position after one more token.
    fn next(&self, session: &mut Session, position: &Position, token: TokenId) -> Result<Position, MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let (is_eos, is_pad) = (vocabulary.eos().contains(&token), vocabulary.pad() == Some(token));
        let stepper = &mut session.stepper;
        stepper.begin(language);
        let refuse = |accepted_bytes, refused_byte, expected, could_end| {
            MatchError::Refused(Refusal {
                token,
                display: vocabulary.display_token(token),
                accepted_bytes,
                refused_byte,
                text_offset: position.text_length + accepted_bytes,
                expected,
                could_end,
                ended: position.ended,
            })
        };
        if position.ended {
            return if is_eos || is_pad { Ok(position.clone()) } else { Err(refuse(0, None, Vec::new(), true)) };
        }
        if is_eos && stepper.is_sentence(&position.frontier) {
            return Ok(Position { ended: true, ..position.clone() });
        }
        let mut readings = Frontier::new();
        for (_, terminal) in self.named(token) {
            readings.extend(stepper.step_special(language, &position.frontier, terminal)?);
        }
        let bytes = vocabulary.bytes(token).unwrap_or_default();
        let mut frontier = position.frontier.to_vec();
        let mut next = Frontier::new();
        let mut refused = None;
        for (at, &byte) in bytes.iter().enumerate() {
            stepper.step(language, &frontier, byte, &mut next)?;
            // Between the bytes of a token too: so the refusal names the first byte that no sentence has there.
            if !stepper.is_viable(language, &next)? {
                refused = Some((at, byte));
                break;
            }
            std::mem::swap(&mut frontier, &mut next);
        }
        if !bytes.is_empty() && refused.is_none() {
            readings.append(&mut frontier);
        }
        readings.sort_unstable();
        readings.dedup();
        if readings.is_empty() || bytes.is_empty() && !stepper.is_viable(language, &readings)? {
            let (at, byte) = refused.map_or((0, None), |(at, byte)| (at, Some(byte)));
            return Err(refuse(at, byte, stepper.expected(language, &frontier), stepper.is_sentence(&frontier)));
        }
        Ok(Position { frontier: readings.into(), text_length: position.text_length + bytes.len(), ended: false })
    }

    fn named(&self, token: TokenId) -> impl Iterator<Item = (TokenId, TerminalId)> {
        self.constraint.0.specials.iter().copied().filter(move |&(named, _)| named == token)
    }

    fn try_mask(&self, words: &mut [u32]) -> Result<(), MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let Session { stepper, walks, scratch } = &mut *self.session();
        let Position { frontier, ended, .. } = self.last();
        words.fill(0);
        if *ended {
            vocabulary.eos().iter().chain(&vocabulary.pad()).for_each(|token| mask::set_bit(words, token.index()));
            return Ok(());
        }
        stepper.begin(language);
        let mark = stepper.mark();
        let n_words = self.constraint.mask_words();
        let mut result =
            mask::add_tokens(stepper, language, vocabulary.trie(), frontier, walks, scratch, &mut words[..n_words]);
        for &(token, terminal) in &self.constraint.0.specials {
            let Ok(()) = result else { break };
            result = stepper.step_special(language, frontier, terminal).and_then(|next| {
                if stepper.is_viable(language, &next)? {
                    mask::set_bit(words, token.index());
                }
                Ok(())
            });
        }
        stepper.release(mark);
        result?;
        if stepper.is_sentence(frontier) {
            vocabulary.eos().iter().for_each(|token| mask::set_bit(words, token.index()));
        }
        Ok(())
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    // A panic in another thread leaves tables that are complete up to its last step.
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
