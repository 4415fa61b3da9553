//! The state of one output, token by token.

mod ahead;
mod budgets;
mod history;
mod masks;
mod refusal;
mod tables;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use anygram_bits::work::{Cancel, Stopped};
use anygram_grammar::ir::TerminalId;
use anygram_vocab::{TokenId, TokenMask};

use self::history::{History, Position};
use self::tables::Home;
use crate::constraint::Constraint;
use crate::epoch::Held;
use crate::error::{MatchError, StepError};
use crate::forced::Forced;
use crate::frontier::{Config, Frontier, Stepper};
use crate::memo::MemoCounts;
use crate::read::read_token;
use crate::recall::{Recall, Value};
use crate::rows::MaskRows;
use crate::session::{Session, lock};
use crate::tokens::get_bit;

pub use refusal::Refusal;

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

/// The state of one output: its tokens, and what may follow them.
///
/// A clone is a fork: it costs a copy of the tokens and shares all tables. Memory: the tokens, and a few
/// positions, whose number grows with the logarithm of the length.
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
    /// The position behind the tokens, and some before it.
    history: History,
    /// The epoch of the tables whose states these name.
    held: Held,
    /// The tables that the output began with, if it has moved to those of another engine.
    home: Option<Box<Home>>,
    /// What ends this output, if not what the vocabulary says.
    eos: Option<Arc<[TokenId]>>,
}

/// For how many more tokens there is room where there is none for so many: an eighth, and a few. (A list that
/// doubles is a quarter empty on average, and thousands of outputs have one.)
fn room(n_tokens: usize) -> usize {
    n_tokens / 8 + 8
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

impl Matcher {
    pub(crate) fn new(constraint: Constraint, session: Arc<Mutex<Session>>) -> Result<Self, MatchError> {
        let mut locked = lock(&session);
        let history = History::new(Position::start(&constraint, &mut locked)?);
        let held = Held { epoch: None, ..locked.epoch };
        drop(locked);
        Ok(Self { constraint, session, tokens: Vec::new(), history, held, home: None, eos: None })
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
        self.history.go_back(0);
        self.held.epoch = None;
        let left = self.go_home();
        if let Some(mut session) = Session::alone(&self.session)
            && self.is_current(&session)
        {
            session.release_all();
        }
        if self.constraint.bound().is_some() {
            left.iter().chain([&self.session]).for_each(|session| Session::count(session));
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
            this.renewing(|this, session| this.try_mask(session, this.last(), words))
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
            let next = tokens.next().filter(|token| get_bit(&words, token.index()));
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
            (frontier, _) => (frontier, &*position.recall),
        };
        if words.len() < self.constraint.mask_words() || recall.takes_work() {
            return Ok(false);
        }
        let mut session = match self.session.try_lock() {
            Ok(session) => session,
            Err(TryLockError::Poisoned(session)) => session.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        if !self.is_current(&session) || session.is_full() || self.better_choice(&session).is_some() {
            return Ok(false);
        }
        if position.has_ended() {
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
        self.renewing(|this, session| {
            let mark = session.stepper.mark();
            let result = this.try_drafts(session, drafts, &mut rows);
            session.stepper.release(mark);
            result
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
        let bytes = self.renewing(|this, session| {
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
        let before = self.clone();
        let advanced = tokens.iter().try_for_each(|&token| self.advance(token));
        if advanced.is_err() {
            *self = before;
        }
        advanced
    }

    /// Appends a token. If it is not allowed, the error says which byte is wrong and what was expected, and
    /// the state does not change.
    #[doc(alias("consume_token", "accept_token", "commit"))]
    pub fn advance(&mut self, token: TokenId) -> Result<(), MatchError> {
        self.check(token)?;
        let (position, epoch) = self.renewing(|this, session| {
            let mark = session.stepper.mark();
            let next =
                this.next(session, this.last(), token).inspect_err(|_| session.stepper.release(mark))?;
            let epoch = this.tokens.is_empty().then(|| session.epoch.epoch.clone());
            Ok((next, epoch))
        })?;
        if let Some(epoch) = epoch {
            self.held.epoch = epoch;
        }
        self.history.push(position);
        if self.tokens.len() == self.tokens.capacity() {
            self.tokens.reserve_exact(room(self.tokens.len()));
        }
        self.tokens.push(token);
        Ok(())
    }

    /// How many of these tokens could be appended, from the first on. The state does not change.
    #[doc(alias("validate_tokens", "try_accept_tokens"))]
    pub fn validate(&mut self, tokens: &[TokenId]) -> Result<usize, MatchError> {
        for &token in tokens {
            self.check(token)?;
        }
        self.renewing(|this, session| {
            let mark = session.stepper.mark();
            let mut position = this.last().clone();
            let mut count = Ok(tokens.len());
            for (at, &token) in tokens.iter().enumerate() {
                match this.next(session, &position, token) {
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

    /// Rolls back the last `n` tokens; EOS counts as one. Cost: of more than a few tokens, that of reading
    /// some of those before them again, at most as many as the text is shorter now than it has been; and
    /// where keys or items have to differ, the bytes of up to 32 tokens more, or as many again. If that
    /// fails, for a limit, nothing has changed.
    pub fn rollback(&mut self, n: usize) -> Result<(), MatchError> {
        let present = self.tokens.len();
        let left = present.checked_sub(n).ok_or(MatchError::RollbackTooFar { asked: n, present })?;
        let mut history = self.history.clone();
        history.go_back(left);
        if let Some(from) = history.lag() {
            let read = &self.tokens[from..history.present().n_tokens()];
            let mut recall = Recall::clone(&history.present().recall);
            for &token in read {
                recall.read(self.constraint.vocabulary().bytes(token).unwrap_or_default());
            }
            history.catch_up(recall);
        }
        let found = history.present().n_tokens();
        if found == left {
            self.history = history;
            self.tokens.truncate(left);
            return Ok(());
        }
        let before = self.clone();
        self.history = history;
        self.tokens.truncate(found);
        let read = before.tokens[found..left].iter().try_for_each(|&token| self.advance(token));
        if read.is_err() {
            *self = before;
        }
        read
    }

    /// Makes the output have exactly these tokens: rolls back to the first difference and appends the rest.
    /// Cost: that of the tokens behind the first difference.
    pub fn go_to(&mut self, tokens: &[TokenId]) -> Result<(), MatchError> {
        let n_equal = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        self.rollback(self.tokens.len() - n_equal)?;
        tokens[n_equal..].iter().try_for_each(|&token| self.advance(token))
    }

    /// Forks the output: an independent copy that shares the tables. Cost: a copy of the tokens.
    #[doc(alias("deep_clone", "branch"))]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Whether the text is a sentence.
    #[doc(alias = "is_accepting")]
    pub fn is_sentence(&self) -> bool {
        self.last().is_sentence()
    }

    /// Whether the output has ended with an EOS.
    #[doc(alias("is_terminated", "is_stopped"))]
    pub fn has_ended(&self) -> bool {
        self.last().has_ended()
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
        let mut session = self.session();
        let position = self.position_in(&mut session);
        let expected =
            |position: Position| session.stepper.expected(self.constraint.language(), &position.readings());
        position.map_or(Vec::new(), expected)
    }

    /// The readings of the text so far, drawn in characters.
    pub fn dump(&self) -> String {
        let (mut session, language) = (self.session(), self.constraint.language());
        let mut text = String::new();
        let position = self.position_in(&mut session);
        for config in position.iter().flat_map(|position| position.readings().into_owned()) {
            let expected = session.stepper.expected(language, &[config]).join(" ");
            let kind =
                if session.stepper.transducer().is_boundary(config.lexeme) { "next" } else { "in progress" };
            text += &format!("state {}, lexeme {}, {kind}: {expected}\n", config.state.0, config.lexeme.0);
        }
        text
    }

    /// Bytes on the heap, the shared tables included, roughly.
    pub fn memory_usage(&self) -> usize {
        let own = size_of::<Self>() + size_of_val(&*self.tokens) + self.history.memory_usage();
        own + self.session().memory_usage()
    }

    /// Hits and misses of the mask cache, for this output and all that share its tables.
    pub fn memo_counts(&self) -> MemoCounts {
        self.session().memo.counts()
    }

    fn last(&self) -> &Position {
        self.history.present()
    }

    /// The last position by the names of the present epoch; `None` if a limit keeps the output from there.
    fn position_in(&self, session: &mut Session) -> Option<Position> {
        if self.is_current(session) {
            return Some(self.last().clone());
        }
        let mut moved = self.clone();
        moved.move_over(session).ok()?;
        Some(moved.last().clone())
    }

    /// The tables that it began with.
    pub(crate) fn shared(&self) -> &Arc<Mutex<Session>> {
        self.home.as_ref().map_or(&self.session, |home| &home.session)
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
                text_offset: position.text_length as usize + accepted_bytes,
                expected,
                could_end,
                ended: position.has_ended(),
            })
        };
        if position.has_ended() {
            return if is_eos || is_pad {
                Ok(position.end())
            } else {
                Err(refuse(0, None, Vec::new(), true))
            };
        }
        if is_eos && position.is_sentence() {
            return Ok(position.end());
        }
        let mut refused = None;
        let mut at = 0;
        let named = self.named(token);
        let mut recall = Recall::clone(&position.recall);
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
        let is_sentence = stepper.is_sentence(&readings);
        let is_nothing = recall.is_nothing() && position.recall.is_nothing();
        let recall = if is_nothing { position.recall.clone() } else { Arc::new(recall) };
        let frontier = session.shared_frontier(readings);
        Ok(position.next((frontier, recall), n_bytes, is_sentence))
    }

    fn named(&self, token: TokenId) -> impl Iterator<Item = TerminalId> {
        self.constraint.named(token)
    }
}
