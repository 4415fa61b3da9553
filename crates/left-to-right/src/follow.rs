//! What the ends of pieces inside tokens lead to.
//!
//! A piece ends inside tokens in some ways, its *exits*. Behind each the parser has come to a state in which
//! what is left of the tokens is read on: pieces go on there, end again, and so on. A mask needs the tokens
//! that come through.
//!
//! What comes through is kept by where the reading has come to, the state and the lexeme, and by what is left
//! of tokens; for all parser states that are alike as far as this looked into them ([`Memo`]). By which way a
//! reading came there does not matter, and of the state behind a piece little is seen: behind `+` the same as
//! behind any other `+`. What the mask has already is not looked for; what is kept says what it had
//! ([`Known::assumed`]). Keeping takes as long as following some exits, so that is done only where it pays
//! ([`Worth`]).
//!
//! Cost: for each exit behind which is not known what follows a step of the parser, and a look-up behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use anygram_recognizer::StateId;
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::FxHashSet;

use crate::frontier::{Config, Stepper, Traced};
use crate::language::{Language, StepError};
use crate::mask::{Exit, Walk, Walks};
use crate::memo::{Known, Memo, Parts};
use crate::rests::Rest;
use crate::tokens::{Tokens, set_bit};

/// Whether it pays to keep what comes through behind a walk.
#[derive(Default)]
pub(crate) struct Worth {
    /// The ends of pieces that were followed behind it the last time; none yet, as long as it came once.
    n_ends: AtomicUsize,
    /// How many more of them look-ups have saved than keeping costs.
    saved: AtomicIsize,
}

/// The ends of pieces that take as long to follow as to keep what comes through, roughly. Of small
/// vocabularies all is kept that comes twice, so that tests take that way too.
fn cost_of(trie: &TokenTrie) -> usize {
    MANY_ENDS.min(1 + trie.n_nodes() / 1_000)
}

const MANY_ENDS: usize = 4;

/// Nothing more is kept behind a walk when that has cost so many ends of pieces more than it has saved.
const MOST_LOST: isize = 64;

impl Worth {
    fn is_kept(&self, cost: usize) -> bool {
        self.n_ends.load(Ordering::Relaxed) >= cost && self.saved.load(Ordering::Relaxed) > -MOST_LOST
    }

    /// Counts a look-up; returns how many ends of pieces it saved.
    fn save(&self) -> usize {
        let n_ends = self.n_ends.load(Ordering::Relaxed);
        let saved = self.saved.load(Ordering::Relaxed).saturating_add_unsigned(n_ends);
        self.saved.store(saved, Ordering::Relaxed);
        n_ends
    }

    fn lose(&self, cost: usize) {
        self.saved.fetch_sub(cost as isize, Ordering::Relaxed);
    }
}

/// A mask that is being computed.
pub(crate) struct Followed<'a> {
    stepper: &'a mut Stepper,
    language: &'a Language,
    walks: &'a mut Walks,
    memo: &'a mut Memo,
    /// The tokens so far.
    words: &'a mut [u32],
    /// Readings of which it is asked last whether they can be completed.
    open: Vec<(StateId, Arc<Walk>)>,
    /// What was followed for the mask: all that comes through there is among the tokens.
    done: FxHashSet<(Config, u64)>,
    cost: usize,
    /// Whether the parser's states can be told apart by what is seen of them.
    has_views: bool,
}

/// A reading before what is left of some tokens, of which the exits are followed.
struct Frame {
    config: Config,
    /// The number of their trie, and where its trace began, if anybody wants to know what comes through.
    behind: Option<(u64, Traced)>,
    walk: Arc<Walk>,
    /// How many exits were followed, and how many ends of pieces behind them too.
    n_done: usize,
    n_ends: usize,
    found: Through,
}

/// What comes through, and what was not looked for.
#[derive(Default)]
struct Through {
    /// Whether anybody wants to know; where the mask begins it is in the mask anyway.
    is_noted: bool,
    parts: Union,
    assumed: Union,
}

/// A union of sets of tokens.
#[derive(Default)]
struct Union {
    /// Rows, each once.
    many: Vec<Arc<Tokens>>,
    few: Vec<TokenId>,
}

impl Union {
    fn add(&mut self, tokens: &Arc<Tokens>) {
        match &**tokens {
            Tokens::Few(few) => self.few.extend_from_slice(few),
            Tokens::Many(_) | Tokens::Most(..)
                if self.many.iter().any(|known| Arc::ptr_eq(known, tokens)) => {}
            Tokens::Many(_) | Tokens::Most(..) => self.many.push(tokens.clone()),
        }
    }

    fn extend(&mut self, other: &Self) {
        other.many.iter().for_each(|tokens| self.add(tokens));
        self.few.extend_from_slice(&other.few);
    }

    /// As few sets as that takes; `row` is empty, before and after.
    fn finish(self, row: &mut [u32]) -> Parts {
        let Self { mut many, few } = self;
        if many.len() > MANY_ROWS {
            many.drain(..).for_each(|tokens| tokens.add_to(row));
            many.push(Arc::new(Tokens::of_row(row)));
            row.fill(0);
        }
        if !few.is_empty() {
            many.push(Arc::new(Tokens::new(few, row.len())));
        }
        many.into()
    }

    /// Those that are not in some sets, if there are any.
    fn without(self, parts: &Parts, row: &mut [u32]) -> Option<Arc<Tokens>> {
        let Self { many, mut few } = self;
        few.retain(|&token| !parts.iter().any(|tokens| tokens.contains(token)));
        if many.is_empty() {
            return (!few.is_empty()).then(|| Arc::new(Tokens::new(few, row.len())));
        }
        many.iter().for_each(|tokens| tokens.add_to(row));
        few.iter().for_each(|token| set_bit(row, token.index()));
        parts.iter().for_each(|tokens| tokens.remove_from(row));
        let left = Tokens::of_row(row);
        row.fill(0);
        (!left.is_empty()).then(|| Arc::new(left))
    }
}

/// Rows of one union that are kept apart; of more it is cheaper to make one.
const MANY_ROWS: usize = 4;

impl Frame {
    fn new(config: Config, walk: Arc<Walk>, behind: Option<(u64, Traced)>) -> Self {
        let found = Through { is_noted: behind.is_some(), ..Through::default() };
        Self { config, behind, walk, n_done: 0, n_ends: 0, found }
    }
}

impl Through {
    fn add(&mut self, tokens: &Arc<Tokens>) {
        if self.is_noted {
            self.parts.add(tokens);
        }
    }

    fn assume(&mut self, tokens: &Arc<Tokens>) {
        if self.is_noted {
            self.assumed.add(tokens);
        }
    }

    fn add_known(&mut self, known: &Known) {
        known.parts.iter().for_each(|tokens| self.add(tokens));
        known.assumed.iter().for_each(|tokens| self.assume(tokens));
    }

    fn add_all(&mut self, other: &Self) {
        if self.is_noted {
            self.parts.extend(&other.parts);
            self.assumed.extend(&other.assumed);
        }
    }
}

impl<'a> Followed<'a> {
    /// A mask that has some tokens already.
    pub fn new(
        (stepper, language): (&'a mut Stepper, &'a Language),
        trie: &TokenTrie,
        (walks, memo): (&'a mut Walks, &'a mut Memo),
        words: &'a mut [u32],
    ) -> Self {
        let has_views = stepper.recognizer().shared_states().is_some();
        let (done, cost) = (FxHashSet::default(), cost_of(trie));
        Self { stepper, language, walks, memo, words, open: Vec::new(), done, cost, has_views }
    }

    /// Adds the tokens that some readings admit.
    pub fn add(&mut self, trie: &TokenTrie, frontier: &[Config]) -> Result<(), StepError> {
        // Tokens may hold as many pieces as bytes, so this does not call itself.
        let mut frames = Vec::new();
        let result = frontier.iter().try_for_each(|&config| {
            let (mut found, mut n_ends) = (Through::default(), 0);
            frames.extend(self.enter(trie, config, None, (&mut found, &mut n_ends))?);
            self.follow(trie, &mut frames)
        });
        let result = result.and_then(|()| {
            let open = std::mem::take(&mut self.open);
            open.iter().try_for_each(|(state, walk)| self.ask(*state, walk, &mut Through::default()))
        });
        let begun = frames.into_iter().rev().filter_map(|frame: Frame| frame.behind);
        begun.for_each(|_| self.stepper.close_trace());
        result
    }

    fn follow(&mut self, trie: &TokenTrie, frames: &mut Vec<Frame>) -> Result<(), StepError> {
        while let Some(frame) = frames.last_mut() {
            if let Some(inner) = self.go_on(trie, frame)? {
                frames.push(inner);
                continue;
            }
            self.ask_last(frame.config.state, &frame.walk, &mut frame.found)?;
            if let Some(frame) = frames.pop() {
                self.finish(frame, frames.last_mut());
            }
        }
        Ok(())
    }

    /// Whether the mask has all tokens that an exit concerns.
    fn has(&self, exit: &Exit) -> bool {
        exit.ends.as_ref().is_none_or(|ends| ends.is_subset(self.words))
            && exit.rest.as_ref().is_none_or(|rest| rest.tokens.is_subset(self.words))
    }

    /// Follows exits until there is a reading behind one whose exits are to be followed first.
    fn go_on(&mut self, trie: &TokenTrie, frame: &mut Frame) -> Result<Option<Frame>, StepError> {
        let Frame { config: Config { state, .. }, walk, n_done, n_ends, found, .. } = frame;
        while let Some(exit) = walk.exits.get(*n_done) {
            *n_done += 1;
            if self.has(exit) {
                exit.ends.iter().for_each(|ends| found.assume(ends));
                exit.rest.iter().for_each(|rest| found.assume(&rest.tokens));
                continue;
            }
            *n_ends += 1;
            let Some(config) = self.stepper.end(self.language, (*state, exit.cut))? else { continue };
            if let Some(ends) = &exit.ends {
                self.add_if_viable(config, ends, found)?;
            }
            if let Some(rest) = &exit.rest {
                let inner = self.enter(trie, config, Some(rest), (&mut *found, &mut *n_ends))?;
                if inner.is_some() {
                    return Ok(inner);
                }
            }
        }
        Ok(None)
    }

    /// Goes on to what is left of tokens behind a reading. Adds what comes through without another end of a
    /// piece, or what is known to come through; else its exits are to be followed.
    fn enter(
        &mut self,
        trie: &TokenTrie,
        config: Config,
        rest: Option<&Arc<Rest>>,
        (before, n_ends): (&mut Through, &mut usize),
    ) -> Result<Option<Frame>, StepError> {
        if let Some(rest) = rest.filter(|rest| rest.tokens.is_subset(self.words)) {
            before.assume(&rest.tokens);
            return Ok(None);
        }
        self.stepper.spend(1 + self.words.len() / 16)?;
        let Config { state, lexeme } = config;
        let left = rest.map_or((0, trie), |rest| (rest.id, &rest.trie));
        let walk = self.walks.get(self.stepper, self.language, left, lexeme, self.words.len())?;
        if walk.exits.is_empty() {
            self.stay(&walk, before);
            self.ask_last(state, &walk, before)?;
            return Ok(None);
        }
        let part = rest.map(|rest| (config, rest.id));
        let is_new = part.is_none_or(|part| self.done.insert(part));
        if !is_new && !before.is_noted {
            *n_ends += walk.worth.n_ends.load(Ordering::Relaxed);
            return Ok(None);
        }
        let is_kept = self.is_kept(&walk);
        let Some(part) = part.filter(|_| is_kept || before.is_noted) else {
            self.stay(&walk, before);
            return Ok(Some(Frame::new(config, walk, None)));
        };
        if let Some(known) = self.memo.find_part(self.stepper, part, is_kept, self.words) {
            known.parts.iter().for_each(|tokens| tokens.add_to(self.words));
            before.add_known(&known);
            *n_ends += walk.worth.save();
            return Ok(None);
        }
        let mut frame = Frame::new(config, walk, Some((part.1, self.stepper.begin_trace())));
        // What is wanted behind an ignored piece is what is wanted here.
        self.stepper.look_into(state, None);
        self.stay(&frame.walk, &mut frame.found);
        Ok(Some(frame))
    }

    /// Whether it pays to keep what comes through behind a walk.
    fn is_kept(&self, walk: &Walk) -> bool {
        self.has_views && walk.worth.is_kept(self.cost)
    }

    /// Adds the tokens in which the piece goes on to their end, as far as it is known that they can be
    /// completed.
    fn stay(&mut self, walk: &Walk, found: &mut Through) {
        for tokens in walk.stay.iter() {
            tokens.add_to(self.words);
            found.add(tokens);
        }
    }

    /// Adds the others, as far as they can. Asked when all else was followed, unless somebody waits: the
    /// answer may depend on the whole text, and then the mask serves no other, but most of these tokens
    /// have come through by ends of pieces.
    fn ask_last(&mut self, state: StateId, walk: &Arc<Walk>, found: &mut Through) -> Result<(), StepError> {
        if found.is_noted {
            return self.ask(state, walk, found);
        }
        self.open.extend((!walk.unknown.is_empty()).then(|| (state, walk.clone())));
        Ok(())
    }

    fn ask(&mut self, state: StateId, walk: &Walk, found: &mut Through) -> Result<(), StepError> {
        for (lexeme, tokens) in &walk.unknown {
            self.add_if_viable(Config { state, lexeme: *lexeme }, tokens, found)?;
        }
        Ok(())
    }

    /// Adds tokens that lead to a reading, if it can be completed.
    fn add_if_viable(
        &mut self,
        config: Config,
        tokens: &Arc<Tokens>,
        found: &mut Through,
    ) -> Result<(), StepError> {
        if tokens.is_subset(self.words) {
            found.assume(tokens);
        } else if self.stepper.is_viable(self.language, &[config])? {
            tokens.add_to(self.words);
            found.add(tokens);
        }
        Ok(())
    }

    /// Keeps what came through, if somebody wants to know, and tells it to whoever it is behind.
    fn finish(&mut self, frame: Frame, before: Option<&mut Frame>) {
        let Frame { config, behind, walk, n_ends, found, .. } = frame;
        let Some(before) = before else { return };
        let is_kept = self.is_kept(&walk);
        before.n_ends += n_ends;
        walk.worth.n_ends.store(n_ends, Ordering::Relaxed);
        let Some((rest, traced)) = behind else { return };
        if n_ends < FEW_ENDS.min(self.cost) {
            self.stepper.close_trace();
            before.found.add_all(&found);
            return;
        }
        let looked_into = self.stepper.end_trace(traced);
        let Self { walks, words, .. } = self;
        walks.row.resize(words.len(), 0);
        let parts = found.parts.finish(&mut walks.row);
        let assumed = found.assumed.without(&parts, &mut walks.row);
        let known = Known { parts, assumed };
        before.found.add_known(&known);
        let limit = is_kept.then(|| self.language.limits().mask_bytes);
        if limit.is_some() {
            walk.worth.lose(self.cost);
        }
        self.memo.insert_part(self.stepper, (config, rest), looked_into.as_deref(), known, limit);
    }
}

/// Behind so few ends of pieces what comes through is not even kept for the present mask.
const FEW_ENDS: usize = 2;
