//! The state of one output, token by token.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use anygram_bits::work::{Cancel, Stopped, Work};
use anygram_grammar::ir::TerminalId;
use anygram_lexer::LexerError;
use anygram_recognizer::{Choice, Mark, RecognizerError};
use anygram_vocab::{TokenId, TokenMask};

use crate::bound::Share;
use crate::budget::{Budgets, MaskKey, Question, Text};
use crate::constraint::Constraint;
use crate::error::{MatchError, StepCause, StepError};
use crate::forced::Forced;
use crate::frontier::{Config, Frontier, Stepper};
use crate::mask::{self, MASK_BITS};
use crate::memo::MemoCounts;
use crate::read::read_token;
use crate::recall::{Recall, Value};
use crate::rows::MaskRows;
use crate::session::{Session, lock};

/// What grammars that bound the tokens in a part of a text refuse.
const BUDGETS: &str = "budgets of tokens";

/// A token that may come, see [`Matcher::draft_masks`].
///
/// ```
/// # use anygram_left_to_right::{Draft, MaskRows};
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::Vocabulary;
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let constraint = Constraint::new(language, Vocabulary::builtin())?;
/// // The constraint has the grammar  start: "(" start ")" | "x"
/// let mut matcher = constraint.matcher()?;
/// let [open, close, x] = ["(", ")", "x"].map(|text| constraint.vocabulary().encode(text).unwrap()[0]);
/// // A tree: `(`, after it `x` or `)`.
/// let drafts = [(open, None), (x, Some(0)), (close, Some(0))].map(|(token, after)| Draft { token, after });
/// let mut words = vec![0; drafts.len() * constraint.mask_words()];
/// let rows = MaskRows::new(&mut words, constraint.mask_words());
/// assert_eq!(matcher.draft_masks(&drafts, rows)?, [true, true, false]);
/// assert!(matcher.tokens().is_empty()); // drafts are not appended
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Draft {
    /// The token.
    pub token: TokenId,
    /// The place in the list of the draft that it follows; `None` if it follows the output so far.
    pub after: Option<usize>,
}

/// Why a token may not come next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The token.
    pub token: TokenId,
    /// The token, printable.
    pub display: String,
    /// The number of its bytes that could still be read.
    pub accepted_bytes: usize,
    /// The first byte that is not allowed; `None` for a special token, and where all bytes could be read but
    /// a part of the text has used up its tokens.
    pub refused_byte: Option<u8>,
    /// The number of bytes of text before the refused one.
    pub text_offset: usize,
    /// The names of the terminals that the grammar expected there, whether to begin or to go on.
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
                    "token {} ({display}) is refused at its byte {accepted_bytes} ('{byte}'), offset \
                     {text_offset} of the text",
                    token.0
                )?;
            }
            None if *accepted_bytes > 0 => {
                write!(
                    f,
                    "token {} ({display}) is refused: a part of the text has used up its tokens with it \
                     (`max_tokens`) and is not complete",
                    token.0
                )?;
            }
            None => {
                write!(f, "token {} ({display}) is refused at offset {text_offset} of the text", token.0)?
            }
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
    /// The readings outside of remembered values.
    frontier: Arc<[Config]>,
    recall: Recall,
    text_length: usize,
    ended: bool,
}

impl Position {
    /// All readings.
    fn readings(&self) -> Cow<'_, [Config]> {
        self.recall.readings(&self.frontier)
    }
}

/// The state of one output: its tokens, and what may follow them.
///
/// A clone is a fork: it costs a copy of the list of positions and shares all tables. Rollback drops
/// positions.
///
/// ```
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::Vocabulary;
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let constraint = Constraint::new(language, Vocabulary::builtin())?;
/// // The constraint has the grammar  start: "(" start ")" | "x"
/// let mut matcher = constraint.matcher()?;
/// let [open, close, x] = ["(", ")", "x"].map(|text| constraint.vocabulary().encode(text).unwrap()[0]);
/// let mask = matcher.mask()?; // which tokens may come first
/// assert!(mask.contains(open) && mask.contains(x) && !mask.contains(close));
///
/// matcher.advance_all(&[open, x])?;
/// let error = matcher.advance(x).unwrap_err(); // refused; the state is as it was
/// assert!(error.to_string().contains("expected"), "{error}");
///
/// let mut other = matcher.fork();
/// other.advance(close)?;
/// assert!(other.is_sentence() && !matcher.is_sentence());
/// matcher.rollback(1)?; // takes back `x`
/// assert_eq!(matcher.tokens(), [open]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("GrammarMatcher", "LLMatcher", "Constraint", "logits processor"))]
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
    /// The tables that the output began with, if it has moved to those of another engine.
    home: Option<Arc<Mutex<Session>>>,
    /// What ends this output, if not what the vocabulary says.
    eos: Option<Arc<[TokenId]>>,
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

impl Matcher {
    pub(crate) fn new(constraint: Constraint, session: Arc<Mutex<Session>>) -> Result<Self, MatchError> {
        let mut locked = lock(&session);
        let start = locked.stepper.start(constraint.language())?.unwrap_or_default();
        let first = locked.stepper.mark();
        drop(locked);
        let recall = Recall::new(constraint.language());
        let position = Position { frontier: start.into(), recall, text_length: 0, ended: false };
        let renew_at = constraint.language().limits().shared_items;
        Ok(Self {
            constraint,
            session,
            tokens: Vec::new(),
            positions: vec![position],
            first,
            renew_at,
            home: None,
            eos: None,
        })
    }

    /// The constraint.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The tokens so far.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Removes all tokens, and drops their parser states unless a fork shares them.
    pub fn reset(&mut self) {
        self.tokens.clear();
        self.positions.truncate(1);
        if let Some(home) = self.home.take()
            && let Ok(fresh) = Self::new(self.constraint.clone(), home)
        {
            *self = Self { eos: self.eos.take(), ..fresh };
        }
        if let Some(mut session) = Session::alone(&self.session) {
            session.stepper.release(self.first);
        }
    }

    /// Ends this output by these tokens instead of those of the vocabulary: the stop ids of one request.
    ///
    /// # Errors
    /// [`MatchError::Eos`] if the output has tokens already, or if one of these has bytes: such a token is
    /// text. Nothing changes then.
    pub fn set_eos(&mut self, eos: &[TokenId]) -> Result<(), MatchError> {
        eos.iter().try_for_each(|&token| self.check(token))?;
        let vocabulary = self.constraint.vocabulary();
        if let Some(&text) = eos.iter().find(|&&token| !vocabulary.is_special(token)) {
            return Err(MatchError::Eos { id: Some(text.0) });
        }
        if !self.tokens.is_empty() {
            return Err(MatchError::Eos { id: None });
        }
        self.eos = (eos != vocabulary.eos()).then(|| eos.into());
        Ok(())
    }

    /// The tokens that end this output.
    pub fn eos(&self) -> &[TokenId] {
        self.eos.as_deref().unwrap_or_else(|| self.constraint.vocabulary().eos())
    }

    /// Writes the mask of allowed tokens: bit `id % 32` of word `id / 32` is set iff the token may come next.
    ///
    /// `words` may be wider than [`Constraint::mask_words`], as for a model whose output layer is padded:
    /// what is left over is cleared. In a narrower row the last tokens have no place, so they are left out.
    #[doc(alias("compute_mask", "fill_next_token_bitmask", "fill_bitmask"))]
    pub fn mask_into(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        self.filling(words, |this, words| {
            this.renewing(|this| this.try_mask(&mut this.session(), this.last(), words))
        })
    }

    /// Computes the masks along a text that is likely to come, so that they are looked up when it does:
    /// before each of its tokens and behind the last, at most `most` of them, until a token is refused. The
    /// output itself stays as it is. Returns how many masks those were.
    ///
    /// Masks are the same with and without. Fails where a mask does, and if it is cancelled between two.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use anygram_bits::work::Cancel;
    /// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
    /// # use anygram_vocab::Vocabulary;
    /// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
    /// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
    /// # let constraint = Constraint::new(language, Vocabulary::builtin())?;
    /// // The constraint has the grammar  start: "(" start ")" | "x"
    /// let mut matcher = constraint.matcher()?;
    /// assert!(matcher.prepare("(x", 100, &Cancel::new())? > 1);
    /// assert!(matcher.tokens().is_empty());
    /// // It is known now.
    /// let mut words = vec![0; constraint.mask_words()];
    /// assert!(matcher.known_mask_into(&mut words)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(&self, text: impl AsRef<[u8]>, most: usize, cancel: &Cancel) -> Result<usize, MatchError> {
        let vocabulary = self.constraint.vocabulary();
        // What the vocabulary cannot spell is not going to come.
        let mut tokens = vocabulary.encode(text).unwrap_or_default().into_iter();
        let mut words = vec![0; self.constraint.mask_words()];
        let mut output = self.fork();
        for n_masks in 0..most {
            if cancel.is_cancelled() {
                return Err(StepError::from(Stopped::Cancelled).into());
            }
            output.mask_into(&mut words)?;
            let next = tokens.next().filter(|token| mask::get_bit(&words, token.index()));
            let Some(token) = next else { return Ok(n_masks + 1) };
            output.advance(token)?;
        }
        Ok(most)
    }

    /// Writes the mask if that is a look-up, as for [`Matcher::mask_into`], and says whether it did: it does
    /// not where tables have to grow, while another thread uses them, or if `words` are too few.
    ///
    /// For callers that hold a lock which others wait for, such as that of a Python interpreter: they give it
    /// away only for work. What stands in `words` after a no is not specified. Cost: a walk over the lexemes
    /// and a copy of the mask.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
    /// # use anygram_vocab::Vocabulary;
    /// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
    /// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
    /// # let constraint = Constraint::new(language, Vocabulary::builtin())?;
    /// let mut matcher = constraint.matcher()?;
    /// let mut words = vec![0; constraint.mask_words()];
    /// assert!(!matcher.known_mask_into(&mut words)?); // the first mask is computed
    /// let mask = matcher.mask()?;
    /// assert!(matcher.known_mask_into(&mut words)?);
    /// assert_eq!(words, mask.words());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn known_mask_into(&mut self, words: &mut [u32]) -> Result<bool, MatchError> {
        let position = self.last();
        // One reading of one value, as in most texts, is looked up like one of the whole text.
        let (readings, recall) = match (&*position.frontier, position.recall.values()) {
            ([], [Value { readings, recall, .. }]) => (&**readings, recall),
            (frontier, _) => (frontier, &position.recall),
        };
        if words.len() < self.constraint.mask_words() || recall.takes_work() {
            return Ok(false);
        }
        let mut session = match self.session.try_lock() {
            Ok(session) => session,
            Err(TryLockError::Poisoned(session)) => session.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        let is_full = session.stepper.recognizer().n_items() > self.renew_at;
        if is_full || self.better_choice_in(&session).is_some() {
            return Ok(false);
        }
        if position.ended {
            self.mask_after_end(words);
            return Ok(true);
        }
        let alike = self.alike(&mut session.stepper, readings)?;
        if !self.look_up(&mut session, &alike, words)? {
            return Ok(false);
        }
        if !position.recall.values().is_empty() {
            self.remove_within(&mut session, (readings, recall), words)?;
        }
        self.remove_repeating(&mut session, position, words)?;
        Ok(true)
    }

    /// As [`Matcher::known_mask_into`], of the mask within a budget: a look-up where it is known that all
    /// that the mask without a budget allows can be completed within this one.
    pub fn known_mask_with_budget_into(
        &mut self,
        budget: u32,
        words: &mut [u32],
    ) -> Result<bool, MatchError> {
        let left = budget.checked_sub(1);
        if left.is_none() && !self.last().ended || !self.known_mask_into(words)? {
            return Ok(false);
        }
        let position = self.last();
        let Some(left) = left.filter(|_| !position.ended) else { return Ok(true) };
        let Ok(session) = self.session.try_lock() else { return Ok(false) };
        let mask = &words[..self.constraint.mask_words()];
        let mask = MaskKey::new(self.constraint.language(), mask, &position.frontier, &position.recall);
        let (generation, of) = (session.stepper.generation(), (&*position.readings(), mask));
        let budgets = session.budgets.as_ref();
        Ok(budgets.is_some_and(|budgets| budgets.is_known_to_be_ample(generation, of, left)))
    }

    /// Whether another thread uses the tables at this moment: then every question waits for it.
    pub fn is_busy(&self) -> bool {
        matches!(self.session.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// The mask of allowed tokens.
    pub fn mask(&mut self) -> Result<TokenMask, MatchError> {
        let mut words = vec![0; self.constraint.mask_words()];
        self.mask_into(&mut words)?;
        Ok(TokenMask::from_words(words, self.constraint.vocabulary().len()))
    }

    /// Fills words that may be too few for a mask.
    fn filling(
        &mut self,
        words: &mut [u32],
        fill: impl FnOnce(&mut Self, &mut [u32]) -> Result<(), MatchError>,
    ) -> Result<(), MatchError> {
        let needed = self.constraint.mask_words();
        if words.len() >= needed {
            return fill(self, words);
        }
        let mut all = vec![0; needed];
        fill(self, &mut all)?;
        words.copy_from_slice(&all[..words.len()]);
        Ok(())
    }

    /// The masks after draft tokens, without appending them, for speculative decoding: the model verifies all
    /// drafts in one pass.
    ///
    /// The drafts are a tree: each names the one that it follows, which stands before it in the list, or none
    /// if it comes next. Row `i` of `rows` is the mask after draft `i`; the answer says whether that draft
    /// and all before it are allowed, and where they are not the row is empty. Cost: an advance and a mask
    /// for each draft.
    #[doc(alias("traverse_draft_tree", "speculative decoding"))]
    pub fn draft_masks(&mut self, drafts: &[Draft], mut rows: MaskRows<'_>) -> Result<Vec<bool>, MatchError> {
        if rows.len() < drafts.len() {
            return Err(MatchError::TooFewRows { needed: drafts.len(), given: rows.len() });
        }
        for (at, draft) in drafts.iter().enumerate() {
            self.check(draft.token)?;
            if let Some(after) = draft.after.filter(|&after| after >= at) {
                return Err(MatchError::DraftOrder { draft: at, after });
            }
        }
        self.renewing(|this| {
            let mut session = this.session();
            let mark = session.stepper.mark();
            let result = this.try_drafts(&mut session, drafts, &mut rows);
            session.stepper.release(mark);
            result
        })
    }

    /// The mask of tokens after which a sentence is still reachable within `budget` tokens in all, the token
    /// itself included and EOS not counted, over any tokenization. With a budget of 0 only EOS is allowed,
    /// and only at a sentence. [`Matcher::advance`] does not look at budgets. Refused where the grammar
    /// bounds the tokens in a part of a text ([`ErrorKind::Unsupported`](crate::ErrorKind)).
    ///
    /// Exact. Cost: that of [`Matcher::mask`], and for each reading that tokens lead to a look-up, or where
    /// nothing is known of it yet a search ([`crate::budget`]).
    pub fn mask_with_budget(&mut self, budget: u32) -> Result<TokenMask, MatchError> {
        let mut words = vec![0; self.constraint.mask_words()];
        self.mask_with_budget_into(budget, &mut words)?;
        Ok(TokenMask::from_words(words, self.constraint.vocabulary().len()))
    }

    /// As [`Matcher::mask_with_budget`], into a buffer as for [`Matcher::mask_into`].
    pub fn mask_with_budget_into(&mut self, budget: u32, words: &mut [u32]) -> Result<(), MatchError> {
        self.constraint.language().needs_no_counts(BUDGETS)?;
        self.filling(words, |this, words| {
            this.mask_into(words)?;
            if this.has_ended() {
                return Ok(());
            }
            let plain = words.to_vec();
            this.renewing(|this| this.try_budget(budget, &plain, words))
        })
    }

    /// The least number of tokens that make a sentence of the text, over any tokenization: 0 at a sentence,
    /// EOS not counted. `None` if the vocabulary spells no continuation, or if it takes more than `limit`.
    /// Refused as [`Matcher::mask_with_budget`] is.
    pub fn minimum_tokens(&mut self, limit: u32) -> Result<Option<u32>, MatchError> {
        self.constraint.language().needs_no_counts(BUDGETS)?;
        if self.has_ended() {
            return Ok(Some(0));
        }
        self.renewing(|this| {
            let readings = this.last().recall.along(&this.last().frontier);
            this.with_budgets(|budgets, question| budgets.minimum_recalling(question, &readings, limit))
        })
    }

    /// The forced tokens and bytes: every continuation begins with them, see [`Forced`] (others call this
    /// fast-forward or jump-forward). Empty where the text may end, or where several bytes may follow. Cost:
    /// for each byte that is forced a mask of single bytes; at most
    /// [`Limits::forced_bytes`](crate::Limits::forced_bytes) are followed.
    #[doc(alias("compute_ff_tokens", "find_jump_forward_string", "jump-forward"))]
    pub fn forced(&mut self) -> Result<Forced, MatchError> {
        if self.has_ended() {
            return Ok(Forced::default());
        }
        let bytes = self.renewing(|this| {
            let mut session = this.session();
            let mark = session.stepper.mark();
            let language = this.constraint.language();
            let Position { frontier, recall, .. } = this.last();
            let bytes = crate::forced::bytes(&mut session.stepper, language, (frontier, recall));
            session.stepper.release(mark);
            Ok(bytes?)
        })?;
        let mut forced = Forced::new(bytes, self.constraint.vocabulary());
        if self.constraint.language().counts_tokens() {
            // Written in more tokens than a part of the text may have, what is forced leads nowhere.
            let n_allowed = self.validate(&forced.tokens)?;
            forced.tokens.truncate(n_allowed);
        }
        Ok(forced)
    }

    /// Appends a text, as the tokens that the vocabulary's encoder makes of it; returns how many. A refusal
    /// leaves the state as it was.
    ///
    /// # Errors
    /// As [`Matcher::advance`], and [`MatchError::Encode`] if no tokens spell the text.
    #[doc(alias("accept_string", "consume_text"))]
    pub fn advance_text(&mut self, text: impl AsRef<[u8]>) -> Result<usize, MatchError> {
        let tokens = self.constraint.vocabulary().encode(text);
        let tokens =
            tokens.map_err(|error| MatchError::Encode { kind: error.kind(), why: error.to_string() })?;
        self.advance_all(&tokens)?;
        Ok(tokens.len())
    }

    /// Appends several tokens, all of them or, if one is refused, none.
    #[doc(alias("consume_tokens", "accept_tokens"))]
    pub fn advance_all(&mut self, tokens: &[TokenId]) -> Result<(), MatchError> {
        let before = self.tokens.len();
        tokens.iter().try_for_each(|&token| self.advance(token)).inspect_err(|_| {
            self.tokens.truncate(before);
            self.positions.truncate(before + 1);
        })
    }

    /// Appends a token. If it is not allowed, the error says which byte is wrong and what was expected, and
    /// the state does not change.
    #[doc(alias("consume_token", "accept_token", "commit"))]
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

    /// How many of these tokens could be appended, from the first on. The state does not change.
    #[doc(alias("validate_tokens", "try_accept_tokens"))]
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

    /// Rolls back the last `n` tokens; EOS counts as one.
    pub fn rollback(&mut self, n: usize) -> Result<(), MatchError> {
        let present = self.tokens.len();
        let kept = present.checked_sub(n).ok_or(MatchError::RollbackTooFar { asked: n, present })?;
        self.tokens.truncate(kept);
        self.positions.truncate(kept + 1);
        Ok(())
    }

    /// Makes the output have exactly these tokens: rolls back to the first difference and appends the rest.
    /// Cost: that of the tokens behind the first difference.
    pub fn go_to(&mut self, tokens: &[TokenId]) -> Result<(), MatchError> {
        let n_equal = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        self.rollback(self.tokens.len() - n_equal)?;
        tokens[n_equal..].iter().try_for_each(|&token| self.advance(token))
    }

    /// Forks the output: an independent copy that shares the tables. Cost: a copy of the list of positions.
    #[doc(alias("deep_clone", "branch"))]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Whether the text is a sentence.
    #[doc(alias = "is_accepting")]
    pub fn is_sentence(&self) -> bool {
        self.session().stepper.is_sentence(&self.last().frontier)
    }

    /// Whether the output has ended with an EOS.
    #[doc(alias("is_terminated", "is_stopped"))]
    pub fn has_ended(&self) -> bool {
        self.last().ended
    }

    /// Whether only EOS may follow.
    pub fn must_stop(&mut self) -> Result<bool, MatchError> {
        if self.has_ended() {
            return Ok(true);
        }
        let mut mask = self.mask()?;
        self.eos().iter().for_each(|&eos| mask.remove(eos));
        Ok(mask.is_empty())
    }

    /// The names of the terminals that may be in progress or come next.
    pub fn expected(&self) -> Vec<String> {
        self.session().stepper.expected(self.constraint.language(), &self.last().readings())
    }

    /// The readings of the text so far, drawn in characters.
    pub fn dump(&self) -> String {
        let (session, language) = (self.session(), self.constraint.language());
        let mut text = String::new();
        for config in self.last().readings().iter() {
            let expected = session.stepper.expected(language, &[*config]).join(" ");
            let kind =
                if session.stepper.transducer().is_boundary(config.lexeme) { "next" } else { "in progress" };
            text += &format!("state {}, lexeme {}, {kind}: {expected}\n", config.state.0, config.lexeme.0);
        }
        text
    }

    /// Bytes on the heap, the shared tables included, roughly.
    pub fn memory_usage(&self) -> usize {
        let session = self.session();
        let positions =
            self.positions.iter().map(|position| size_of_val(&*position.readings()) + size_of::<Position>());
        positions.sum::<usize>() + session.memory_usage()
    }

    /// Hits and misses of the mask cache, for this output and all that share its tables.
    pub fn memo_counts(&self) -> MemoCounts {
        self.session().memo.counts()
    }

    fn last(&self) -> &Position {
        &self.positions[self.tokens.len()]
    }

    /// The tables that it began with.
    pub(crate) fn shared(&self) -> &Arc<Mutex<Session>> {
        self.home.as_ref().unwrap_or(&self.session)
    }

    /// Tells tables apart.
    pub(crate) fn tables(&self) -> usize {
        Arc::as_ptr(&self.session) as usize
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.session)
    }

    fn check(&self, token: TokenId) -> Result<(), MatchError> {
        let size = self.constraint.vocabulary().len();
        if token.index() < size { Ok(()) } else { Err(MatchError::UnknownToken { id: token.0, size }) }
    }

    /// Runs an operation. If the shared tables are full, replaces them and runs it again.
    pub(crate) fn renewing<T>(
        &mut self,
        operation: impl FnMut(&Self) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        let result = self.renewing_uncounted(operation);
        if self.constraint.bound().is_some() {
            Session::count(&self.session);
        }
        result
    }

    fn renewing_uncounted<T>(
        &mut self,
        mut operation: impl FnMut(&Self) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        if let Some(better) = self.better_choice() {
            self.switch(better)?;
        }
        let (held, renew_at) = (self.session().stepper.recognizer().n_items(), self.renew_at);
        if held > renew_at {
            self.renew(true)?;
        }
        match operation(self) {
            Err(MatchError::Limit(StepError(StepCause::Recognizer(RecognizerError::TooManyItems {
                ..
            })))) => {
                self.renew(true)?;
                operation(self)
            }
            Err(MatchError::Limit(StepError(StepCause::Lexer(LexerError::TooManyLexemes { .. })))) => {
                self.renew(false)?;
                operation(self)
            }
            result => result,
        }
    }

    /// The faster engine, if the text is too ambiguous for the one in use and the engine was chosen by
    /// `auto`.
    fn better_choice(&self) -> Option<Choice> {
        if self.home.is_some() {
            return None;
        }
        self.better_choice_in(&self.session())
    }

    fn better_choice_in(&self, session: &Session) -> Option<Choice> {
        if self.home.is_some() {
            return None;
        }
        let better = self.constraint.language().choice().for_heavy()?;
        let is_heavy = |config: &Config| session.stepper.is_heavy(config.state);
        self.last().readings().iter().any(is_heavy).then_some(better)
    }

    /// Moves the output to the tables of another engine, until it is reset.
    fn switch(&mut self, choice: Choice) -> Result<(), MatchError> {
        let heavy = self.session().heavy.take();
        let (heavy, first) = match heavy {
            Some(heavy) => heavy,
            None => {
                let session = Session::new(&self.constraint, choice)?;
                let fresh = Self::new(self.constraint.clone(), session.shared(&self.constraint))?;
                (fresh.session, fresh.first)
            }
        };
        if let Some(mut unused) = Session::alone(&heavy) {
            unused.stepper.release(first);
        }
        self.session().heavy = Some((heavy.clone(), first));
        let fresh = self.reread(heavy)?;
        let home = std::mem::replace(self, fresh).session;
        self.home = Some(home);
        Ok(())
    }

    /// Replaces the shared tables by new ones that hold only the parser states that this output needs. Cost:
    /// that of reading it again. What is known of tokens and masks stays, if asked for and no fork shares it.
    fn renew(&mut self, keep: bool) -> Result<(), MatchError> {
        let is_alone = keep && Arc::strong_count(&self.session) == 1;
        let session = {
            let mut old = self.session();
            if is_alone {
                Session::renewed(&self.constraint, &mut old)?
            } else {
                Session::new(&self.constraint, old.choice)?
            }
        };
        let session = session.shared(&self.constraint);
        let result = self.reread(session.clone());
        match result {
            Ok(fresh) => {
                let home = self.home.take();
                let old = std::mem::replace(self, Self { home, ..fresh });
                // Millions of small tables: whoever waits for the mask need not wait until they are gone. (On
                // a thread of rayon's pool, which batches of masks have started anyhow.)
                rayon::spawn(move || drop(old));
                Ok(())
            }
            Err(error) => {
                if is_alone {
                    self.session().stepper.take_lexemes(&mut lock(&session).stepper);
                }
                Err(error)
            }
        }
    }

    /// This output on other tables.
    fn reread(&self, session: Arc<Mutex<Session>>) -> Result<Self, MatchError> {
        let mut fresh = Self::new(self.constraint.clone(), session)?;
        fresh.eos = self.eos.clone();
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
        Ok(fresh)
    }

    /// The position after one more token.
    fn next(
        &self,
        session: &mut Session,
        position: &Position,
        token: TokenId,
    ) -> Result<Position, MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let (is_eos, is_pad) = (self.eos().contains(&token), vocabulary.pad() == Some(token));
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
            return if is_eos || is_pad {
                Ok(position.clone())
            } else {
                Err(refuse(0, None, Vec::new(), true))
            };
        }
        if is_eos && stepper.is_sentence(&position.frontier) {
            return Ok(Position { ended: true, ..position.clone() });
        }
        let mut refused = None;
        let mut at = 0;
        let named = self.named(token);
        let mut recall = position.recall.clone();
        let n_bytes = vocabulary.bytes(token).map_or(0, <[u8]>::len);
        let mut are_bytes_read = n_bytes > 0;
        let step = |stepper: &mut Stepper, before: &[Config], byte: u8, next: &mut Frontier| {
            let all = recall.readings(before);
            stepper.step_recalling(language, before, &mut recall, byte, next)?;
            // Between the bytes of a token too: so the refusal names the first byte that no sentence has
            // there.
            let is_viable = stepper.is_viable_recalling(language, next, &recall)?;
            if !is_viable {
                refused = Some((at, byte, all.into_owned()));
                are_bytes_read = false;
            }
            at += 1;
            Ok(is_viable)
        };
        let readings = read_token(stepper, &self.constraint, &position.frontier, (token, named), step)?;
        if !are_bytes_read {
            recall.leave_values();
        }
        let is_read = !readings.is_empty();
        let readings = recall.count_token(stepper, language, readings)?;
        if readings.is_empty() && recall.values().is_empty()
            || n_bytes == 0 && !stepper.is_viable(language, &readings)?
        {
            let (at, byte, before) = match refused {
                Some((at, byte, before)) => (at, Some(byte), before),
                // All of it is read, but with it a part of the text has too many tokens.
                None if is_read => (n_bytes, None, position.readings().into_owned()),
                None => (0, None, position.readings().into_owned()),
            };
            let (expected, could_end) = (stepper.expected(language, &before), stepper.is_sentence(&before));
            return Err(refuse(at, byte, expected, could_end));
        }
        let text_length = position.text_length + n_bytes;
        Ok(Position { frontier: readings.into(), recall, text_length, ended: false })
    }

    /// Asks about costs; the states made on the way are released.
    fn with_budgets<T>(
        &self,
        ask: impl FnOnce(&mut Budgets, &mut Question<'_>) -> Result<T, StepError>,
    ) -> Result<T, MatchError> {
        let (language, trie) = (self.constraint.language(), self.constraint.vocabulary().trie());
        let Session { stepper, budgets, share, .. } = &mut *self.session();
        share.iter_mut().for_each(Share::ask_budgets);
        let budgets =
            budgets.get_or_insert_with(|| Box::new(Budgets::new(language, self.constraint.vocabulary())));
        stepper.begin(language);
        let mark = stepper.mark();
        let work = Work::new(language.limits().cost_steps, "cost_steps");
        let answer = ask(budgets, &mut Question { stepper: &mut *stepper, language, trie, work });
        stepper.release(mark);
        Ok(answer?)
    }

    /// Writes those tokens of the plain mask that are within a budget. If it fails, some are missing.
    fn try_budget(&self, budget: u32, plain: &[u32], words: &mut [u32]) -> Result<(), MatchError> {
        words.fill(0);
        let (frontier, recall, readings) =
            (&self.last().frontier, &self.last().recall, self.last().readings());
        let vocabulary = self.constraint.vocabulary();
        let has_bytes_alone =
            self.constraint.specials().is_empty() && self.constraint.token_sets().is_empty();
        if let Some(left) = budget.checked_sub(1) {
            let n_words = self.constraint.mask_words();
            let is_ample = self.with_budgets(|budgets, question| {
                let (plain, words) = (&plain[..n_words], &mut words[..n_words]);
                let of = (&*readings, MaskKey::new(question.language, plain, frontier, recall));
                if has_bytes_alone && budgets.is_ample(question, of, left) {
                    return Ok(true);
                }
                let enough = budgets.add_tokens(
                    question,
                    Text { frontier, recall, vocabulary },
                    left,
                    plain,
                    words,
                )?;
                if let Some(enough) = enough.filter(|_| has_bytes_alone) {
                    budgets.keep_ample(of, enough);
                }
                let fits = |budgets: &mut Budgets, question: &mut Question<'_>, next: &[Config]| {
                    let next: Vec<_> = next.iter().map(|&config| (config, recall.outside())).collect();
                    Ok::<_, StepError>(budgets.minimum_recalling(question, &next, left)?.is_some())
                };
                for &(token, terminal) in self.constraint.specials() {
                    if mask::get_bit(plain, token.index()) && !mask::get_bit(words, token.index()) {
                        let next = question.stepper.step_special(question.language, frontier, terminal)?;
                        if fits(budgets, question, &next)? {
                            mask::set_bit(words, token.index());
                        }
                    }
                }
                for set in self.constraint.token_sets() {
                    let next = question.stepper.step_special(question.language, frontier, set.terminal)?;
                    if !next.is_empty() && fits(budgets, question, &next)? {
                        set.add_to(words, vocabulary.len());
                    }
                }
                Ok(false)
            })?;
            if is_ample {
                words.copy_from_slice(plain);
                return Ok(());
            }
        }
        for eos in self.eos() {
            // It may be a token that the grammar names, too.
            if mask::get_bit(plain, eos.index()) && self.is_sentence() {
                mask::set_bit(words, eos.index());
            }
        }
        Ok(())
    }

    fn named(&self, token: TokenId) -> impl Iterator<Item = TerminalId> {
        self.constraint.named(token)
    }

    fn try_drafts(
        &self,
        session: &mut Session,
        drafts: &[Draft],
        rows: &mut MaskRows<'_>,
    ) -> Result<Vec<bool>, MatchError> {
        let mut mask = vec![0; self.constraint.mask_words()];
        let mut positions: Vec<Option<Position>> = Vec::with_capacity(drafts.len());
        for (&Draft { token, after }, row) in drafts.iter().zip(rows.iter_mut()) {
            let before = match after {
                Some(after) => positions[after].as_ref(),
                None => Some(self.last()),
            };
            let position = match before.map(|before| self.next(session, before, token)) {
                None | Some(Err(MatchError::Refused(_))) => None,
                Some(next) => Some(next?),
            };
            row.fill(0);
            if let Some(position) = &position {
                self.try_mask(session, position, &mut mask)?;
                let n_words = row.len().min(mask.len());
                row[..n_words].copy_from_slice(&mask[..n_words]);
            }
            positions.push(position);
        }
        Ok(positions.iter().map(Option::is_some).collect())
    }

    fn try_mask(
        &self,
        session: &mut Session,
        position: &Position,
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        if position.ended {
            self.mask_after_end(words);
            return Ok(());
        }
        if position.recall.values().is_empty() {
            self.mask_of_readings(session, &position.frontier, words)?;
            return self.remove_repeating(session, position, words);
        }
        if let ([], [Value { readings, recall, .. }]) = (&*position.frontier, position.recall.values()) {
            self.mask_of_readings(session, readings, words)?;
            self.remove_within(session, (readings, recall), words)?;
            return self.remove_opening(session, position, words);
        }
        words.fill(0);
        if !position.frontier.is_empty() {
            self.mask_of_readings(session, &position.frontier, words)?;
        }
        let mut own = vec![0; words.len()];
        for Value { readings, recall, .. } in position.recall.values() {
            self.mask_of_readings(session, readings, &mut own)?;
            self.remove_within(session, (readings, recall), &mut own)?;
            words.iter_mut().zip(&own).for_each(|(word, own)| *word |= own);
        }
        self.remove_opening(session, position, words)
    }

    fn mask_after_end(&self, words: &mut [u32]) {
        words.fill(0);
        let pad = self.constraint.vocabulary().pad();
        self.eos().iter().chain(&pad).for_each(|token| mask::set_bit(words, token.index()));
    }

    /// Removes the tokens that write a key or an item again which may not be repeated.
    fn remove_repeating(
        &self,
        session: &mut Session,
        position: &Position,
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        match self.constraint.language().grammar().embedded.is_empty() {
            true => self.remove_within(session, (&position.frontier, &position.recall), words),
            false => self.remove_opening(session, position, words),
        }
    }

    /// Removes the tokens behind which no reading can follow, because they open a value and write something
    /// in it twice.
    fn remove_opening(
        &self,
        session: &mut Session,
        position: &Position,
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        for token in session.selections.opening(vocabulary, language, words) {
            let mark = session.stepper.mark();
            let next = self.next(session, position, token);
            session.stepper.release(mark);
            match next {
                Ok(_) => {}
                Err(MatchError::Refused(_)) => mask::clear_bit(words, token.index()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the tokens that write something again, from the mask of readings of which that is recalled.
    fn remove_within(
        &self,
        session: &mut Session,
        text: (&[Config], &Recall),
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let n_words = self.constraint.mask_words();
        let Session { stepper, selections, .. } = session;
        let mark = stepper.mark();
        let tokens = (vocabulary, selections);
        let result = stepper.remove_repeating(language, tokens, text, &mut words[..n_words]);
        stepper.release(mark);
        Ok(result?)
    }

    /// Writes the mask of readings that are [`alike`](Self::alike) to those of a mask that is known.
    fn look_up(
        &self,
        session: &mut Session,
        frontier: &[Config],
        words: &mut [u32],
    ) -> Result<bool, MatchError> {
        let Session { stepper, memo, .. } = session;
        let Some(known) = memo.find(stepper, frontier) else { return Ok(false) };
        known.write_to(words);
        self.put_own_eos(stepper, frontier, words)?;
        Ok(true)
    }

    /// The mask as far as the readings tell.
    fn mask_of_readings(
        &self,
        session: &mut Session,
        frontier: &[Config],
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let n_words = self.constraint.mask_words();
        let frontier = &self.alike(&mut session.stepper, frontier)?;
        if self.look_up(session, frontier, words)? {
            return Ok(());
        }
        let Session { stepper, walks, memo, .. } = session;
        words.fill(0);
        stepper.begin(language);
        let mark = stepper.mark();
        let outer = stepper.begin_trace();
        // Whether the text may end here.
        frontier.iter().for_each(|config| stepper.look_into(config.state, None));
        let mut result = mask::add_tokens(
            stepper,
            language,
            vocabulary.trie(),
            frontier,
            walks,
            memo,
            &mut words[..n_words],
        );
        for &(token, terminal) in self.constraint.specials() {
            let Ok(()) = result else { break };
            result = stepper.step_special(language, frontier, terminal).and_then(|next| {
                if stepper.is_viable(language, &next)? {
                    mask::set_bit(words, token.index());
                }
                Ok(())
            });
        }
        for set in self.constraint.token_sets() {
            let Ok(()) = result else { break };
            result = stepper.step_special(language, frontier, set.terminal).and_then(|next| {
                if stepper.is_viable(language, &next)? {
                    set.add_to(&mut words[..n_words], vocabulary.len());
                }
                Ok(())
            });
        }
        let looked_into = stepper.end_trace(outer);
        stepper.release(mark);
        result?;
        if stepper.is_sentence(frontier) {
            vocabulary.eos().iter().for_each(|token| mask::set_bit(words, token.index()));
        }
        memo.insert(
            stepper,
            frontier,
            looked_into.as_deref(),
            &words[..n_words],
            language.limits().mask_bytes,
        );
        self.put_own_eos(stepper, frontier, words)
    }

    /// Readings whose masks are the same, and are those of other places of long pieces too.
    fn alike<'a>(
        &self,
        stepper: &mut Stepper,
        frontier: &'a [Config],
    ) -> Result<Cow<'a, [Config]>, MatchError> {
        let lexing = self.constraint.language().lexing();
        if !lexing.is_growing() {
            return Ok(Cow::Borrowed(frontier));
        }
        let height = self.constraint.height();
        let alike = |&Config { state, lexeme }: &Config| {
            let lexeme = stepper.transducer_mut().alike(lexing, lexeme, height)?;
            Ok::<_, StepError>(Config { state, lexeme })
        };
        let mut readings: Frontier = frontier.iter().map(alike).collect::<Result<_, _>>()?;
        readings.sort_unstable();
        readings.dedup();
        Ok(Cow::Owned(readings))
    }

    /// From the mask that ends with the tokens of the vocabulary, which outputs share, to that of this
    /// output.
    fn put_own_eos(
        &self,
        stepper: &mut Stepper,
        frontier: &[Config],
        words: &mut [u32],
    ) -> Result<(), MatchError> {
        let Some(own) = &self.eos else { return Ok(()) };
        let language = self.constraint.language();
        for &token in self.constraint.vocabulary().eos() {
            let mut is_allowed = false;
            // The grammar may name it, and then it is also something that is written.
            for terminal in self.named(token) {
                let mark = stepper.mark();
                let next = stepper.step_special(language, frontier, terminal);
                let viable = next.and_then(|next| stepper.is_viable(language, &next));
                stepper.release(mark);
                is_allowed |= viable?;
            }
            words[token.index() / MASK_BITS] &= !(1 << (token.index() % MASK_BITS));
            words[token.index() / MASK_BITS] |= u32::from(is_allowed) << (token.index() % MASK_BITS);
        }
        if stepper.is_sentence(frontier) {
            own.iter().for_each(|token| mask::set_bit(words, token.index()));
        }
        Ok(())
    }
}
