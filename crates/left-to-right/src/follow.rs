//! What the ends of pieces inside tokens lead to.
//!
//! A piece ends inside tokens in some ways, its *exits*. Behind each the parser has come to a state in which
//! what is left of the tokens is read on: pieces go on there, end again, and so on. A mask needs the tokens
//! that come through.
//!
//! What an exit leads to is kept for all parser states that are alike as far as this looked into them
//! ([`Memo`]). Behind a new state only those exits are followed that look deeper than to what is known. What
//! the mask has already is not looked for; what is kept says what it had ([`Known::assumed`]). Keeping and
//! looking up take as long as following some exits, so that is done only where it pays ([`Worth`]).
//!
//! Cost: for each exit that is kept a look-up, for each that is followed a step of the parser.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use anygram_recognizer::StateId;
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::FxHashSet;

use crate::frontier::{Config, Outer, Stepper};
use crate::language::{Language, StepError};
use crate::mask::{Exit, Tokens, Walk, Walks, set_bit};
use crate::memo::{Known, Memo, Parts};
use crate::rests::Rest;

/// Whether it pays to keep what an exit leads to.
#[derive(Default)]
pub(crate) struct Worth {
    /// The ends of pieces that were followed behind it the last time.
    n_ends: AtomicUsize,
    /// How many more of them look-ups have saved than keeping costs.
    saved: AtomicIsize,
}

/// The ends of pieces that take as long to follow as to keep what is behind an exit, roughly. Of small
/// vocabularies everything is kept, so that tests take that way.
fn cost_of(trie: &TokenTrie) -> usize {
    8.min(1 + trie.n_nodes() / 1_000)
}

/// An exit is no longer kept when that has cost so many more than it has saved.
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
    cost: usize,
}

/// What is followed together: all that a mask begins with, or what is behind one exit.
struct Frame {
    /// The exit that leads here, and what was traced before; `None` where the mask begins.
    behind: Option<(StateId, Exit, Outer)>,
    /// What was found, and what was not looked for, if this is to be kept.
    parts: Union,
    assumed: Union,
    agenda: VecDeque<Left>,
    done: FxHashSet<(Config, u64)>,
    /// What is being followed, from which state, and how many of its exits were.
    walk: Option<(StateId, Arc<Walk>)>,
    n_done: usize,
    /// The exits with which the frame begins, and the ends of pieces that were followed behind each. All
    /// exits of a walk are behind the last one, or behind the one that leads to the walk.
    n_ends: Vec<(Arc<Worth>, usize)>,
    origin: Option<usize>,
}

/// A reading before what is left of some tokens, or before all of all tokens; and the number of the exit that
/// leads there from where the frame begins, unless it is that.
struct Left(Config, Option<Arc<Rest>>, Option<usize>);

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
    fn new(behind: Option<(StateId, Exit, Outer)>) -> Self {
        Self {
            behind,
            parts: Union::default(),
            assumed: Union::default(),
            agenda: VecDeque::new(),
            done: FxHashSet::default(),
            walk: None,
            n_done: 0,
            n_ends: Vec::new(),
            origin: None,
        }
    }

    fn add(&mut self, tokens: &Arc<Tokens>) {
        if self.behind.is_some() {
            self.parts.add(tokens);
        }
    }

    fn assume(&mut self, tokens: &Arc<Tokens>) {
        if self.behind.is_some() {
            self.assumed.add(tokens);
        }
    }

    fn add_known(&mut self, known: &Known, n_ends: usize) {
        known.parts.iter().for_each(|tokens| self.add(tokens));
        known.assumed.iter().for_each(|tokens| self.assume(tokens));
        self.count(n_ends);
    }

    /// Counts ends of pieces behind the exit with which the frame began.
    fn count(&mut self, n_ends: usize) {
        let last = self.n_ends.len().checked_sub(1);
        if let Some(origin) = self.origin.or(last) {
            self.n_ends[origin].1 += n_ends;
        }
    }

    /// All ends of pieces that were followed.
    fn n_ends(&self) -> usize {
        1 + self.n_ends.iter().map(|of| of.1).sum::<usize>()
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
        Self { stepper, language, walks, memo, words, cost: cost_of(trie) }
    }

    /// Adds the tokens that some readings admit.
    pub fn add(&mut self, trie: &TokenTrie, frontier: &[Config]) -> Result<(), StepError> {
        let mut first = Frame::new(None);
        first.agenda.extend(frontier.iter().map(|&config| Left(config, None, None)));
        // Tokens may hold as many pieces as bytes, so this does not call itself.
        let mut frames = vec![first];
        let result = self.follow(trie, &mut frames);
        let begun = frames.into_iter().rev().filter_map(|frame| frame.behind);
        begun.for_each(|(.., outer)| drop(self.stepper.end_trace(outer)));
        result
    }

    fn follow(&mut self, trie: &TokenTrie, frames: &mut Vec<Frame>) -> Result<(), StepError> {
        while let Some(frame) = frames.last_mut() {
            if let Some(inner) = self.go_on(trie, frame)? {
                frames.push(inner);
            } else if let Some(frame) = frames.pop() {
                let (n_ends, known) = (frame.n_ends(), self.finish(frame));
                if let Some((known, before)) = known.zip(frames.last_mut()) {
                    before.add_known(&known, n_ends);
                }
            }
        }
        Ok(())
    }

    /// Whether the mask has all tokens that an exit concerns.
    fn has(&self, exit: &Exit) -> bool {
        exit.ends.as_ref().is_none_or(|ends| ends.is_subset(self.words))
            && exit.rest.as_ref().is_none_or(|rest| rest.tokens.is_subset(self.words))
    }

    /// Follows what is in a frame until an exit is to be followed in a frame of its own.
    fn go_on(&mut self, trie: &TokenTrie, frame: &mut Frame) -> Result<Option<Frame>, StepError> {
        loop {
            let Some((state, walk)) = frame.walk.clone() else {
                if !self.enter(trie, frame)? {
                    return Ok(None);
                }
                continue;
            };
            while let Some(exit) = walk.exits.get(frame.n_done) {
                frame.n_done += 1;
                if self.has(exit) {
                    exit.ends.iter().for_each(|ends| frame.assume(ends));
                    exit.rest.iter().for_each(|rest| frame.assume(&rest.tokens));
                    continue;
                }
                if frame.origin.is_none() {
                    frame.n_ends.push((exit.worth.clone(), 0));
                }
                if !exit.worth.is_kept(self.cost) {
                    self.end((state, exit), frame)?;
                } else if let Some(known) = self.memo.find_exit(self.stepper, (exit.id, state), self.words) {
                    known.parts.iter().for_each(|tokens| tokens.add_to(self.words));
                    frame.add_known(&known, exit.worth.save());
                } else {
                    let mut inner = Frame::new(Some((state, exit.clone(), self.stepper.begin_trace())));
                    // What is wanted behind an ignored piece is what is wanted here.
                    self.stepper.look_into(state, None);
                    return self.end((state, exit), &mut inner).map(|()| Some(inner));
                }
            }
            frame.walk = None;
        }
    }

    /// Goes on to what is left of other tokens; says whether there are any. Few pieces come before many: what
    /// they admit need not be admitted again.
    fn enter(&mut self, trie: &TokenTrie, frame: &mut Frame) -> Result<bool, StepError> {
        while let Some(Left(Config { state, lexeme }, rest, origin)) = frame.agenda.pop_front() {
            if let Some(rest) = rest.as_ref().filter(|rest| rest.tokens.is_subset(self.words)) {
                frame.assume(&rest.tokens);
                continue;
            }
            self.stepper.spend(1 + self.words.len() / 16)?;
            let left = rest.as_ref().map_or((0, trie), |rest| (rest.id, &rest.trie));
            let walk = self.walks.get(self.stepper, self.language, left, lexeme, self.words.len())?;
            for tokens in walk.stay.iter() {
                tokens.add_to(self.words);
                frame.add(tokens);
            }
            for (lexeme, tokens) in &walk.unknown {
                self.add_if_viable(Config { state, lexeme: *lexeme }, tokens, frame)?;
            }
            (frame.walk, frame.n_done, frame.origin) = (Some((state, walk)), 0, origin);
            return Ok(true);
        }
        Ok(false)
    }

    /// Follows the end of a piece to where the next begins; adds what ends there.
    fn end(&mut self, (from, exit): (StateId, &Exit), frame: &mut Frame) -> Result<(), StepError> {
        frame.count(1);
        let Some(config) = self.stepper.end(self.language, (from, exit.cut))? else { return Ok(()) };
        if let Some(ends) = &exit.ends {
            self.add_if_viable(config, ends, frame)?;
        }
        if let Some(rest) = &exit.rest
            && frame.done.insert((config, rest.id))
        {
            let origin = frame.origin.or(frame.n_ends.len().checked_sub(1));
            frame.agenda.push_back(Left(config, Some(rest.clone()), origin));
        }
        Ok(())
    }

    /// Adds tokens that lead to a reading, if it can be completed.
    fn add_if_viable(
        &mut self,
        config: Config,
        tokens: &Arc<Tokens>,
        frame: &mut Frame,
    ) -> Result<(), StepError> {
        if tokens.is_subset(self.words) {
            frame.assume(tokens);
        } else if self.stepper.is_viable(self.language, &[config])? {
            tokens.add_to(self.words);
            frame.add(tokens);
        }
        Ok(())
    }

    /// Keeps what was found, and behind which exits is much; `None` where the mask begins.
    fn finish(&mut self, frame: Frame) -> Option<Known> {
        frame.n_ends.iter().for_each(|(exit, n_ends)| exit.n_ends.store(*n_ends, Ordering::Relaxed));
        let (from, exit, outer) = frame.behind?;
        exit.worth.lose(self.cost);
        let looked_into = self.stepper.end_trace(outer);
        let Self { walks, words, .. } = self;
        walks.row.resize(words.len(), 0);
        let parts = frame.parts.finish(&mut walks.row);
        let assumed = frame.assumed.without(&parts, &mut walks.row);
        let (known, limit) = (Known { parts, assumed }, self.language.limits().mask_bytes);
        self.memo.insert_exit(self.stepper, (exit.id, from), looked_into.as_deref(), &known, limit);
        Some(known)
    }
}
