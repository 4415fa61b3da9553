//! What comes through of what is left of tokens behind the end of a piece.
//!
//! There the parser has come to a state from which the rests of the tokens are read on: pieces go on, end in
//! some ways ([`Exit`]), others begin behind them, and so on. Which rests come through is a function of the
//! parser states that are looked into, and few look deep. So it is computed in the order of what is looked
//! into: all that can be told from the states that were looked at so far comes first; what has to know
//! another state waits. When all waits, one more state is looked at. What was found out up to there, and what
//! waits, is kept at the inner node of the memo's tree that says so ([`Memo`]). Behind a state that differs
//! from known ones only in what lies deep it is computed from where they part: what waits there is followed,
//! behind the pieces that lead to it, and nothing else.
//!
//! Cost: for each exit that is followed a step of the parser, and a look-up of what is behind it.

use std::sync::Arc;

use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_recognizer::StateId;
use rustc_hash::FxHashSet;

use crate::collected::{Collected, Since};
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::mask::{Exit, Walk, Walks};
use crate::memo::Memo;
use crate::rests::Rest;
use crate::tokens::Tokens;

/// What is left of some tokens behind a reading, of which it is found out what comes through.
pub(crate) struct Part<'a, 'b> {
    stepper: &'a mut Stepper,
    language: &'a Language,
    walks: &'a mut Walks,
    memo: &'a mut Memo,
    /// Whether what is found out can still be kept.
    keeps: bool,
    /// The tokens that come through, as far as that follows from what was looked at.
    found: &'a mut Collected<'b>,
    /// Which of them were found when something was kept last, and how much waited then.
    kept: Since,
    n_waited: usize,
    readings: Vec<Reading>,
    /// The readings whose exits are being followed, and how many were. Tokens may hold as many pieces as
    /// bytes, so this is no recursion.
    entered: Vec<(u32, Arc<Walk>, usize)>,
    /// Asked when all exits were followed: most of their tokens have come through by then.
    asks: Vec<Task>,
    waiting: Vec<Waiting>,
    /// What follows from more than can be told. Exits are settled last; questions are left to whoever asks.
    of_all: Vec<(Task, Outcome)>,
    doubts: Vec<(Task, bool)>,
    /// What was looked into since nothing can be kept any more, and whether that is all.
    looked_into: Vec<StateId>,
    is_told: bool,
    /// What was entered since a state was looked at last: all that comes through there is among the tokens,
    /// or waits.
    done: FxHashSet<(Config, u64)>,
}

/// What was found out, and what waits until another state is looked at.
#[derive(Debug)]
pub(crate) struct Partial {
    /// The tokens that were found since something was kept on the way to it.
    found: Box<[Arc<Tokens>]>,
    /// The readings that something waits for, and those on the way to them, which stand before them. The
    /// first is where all begins.
    readings: Box<[Source]>,
    tasks: Box<[Task]>,
}

/// A reading inside tokens.
struct Reading {
    config: Config,
    source: Source,
}

/// Where a reading comes from: the end of a piece behind another reading, unless all begins there.
type Source = Option<(u32, CutId)>;

/// Something to be found out about a reading.
#[derive(Clone, Debug)]
struct Task {
    reading: u32,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// What comes through by a way in which the piece can end.
    Exit(Exit),
    /// Whether these tokens come through, which lead to a lexeme of unknown prospect.
    Ask(LexemeId, Arc<Tokens>),
}

/// What became of a task.
#[derive(Clone, Copy)]
enum Outcome {
    To(Option<Config>),
    Viable(bool),
}

/// A task of which the outcome is known, but not from what was looked at.
struct Waiting {
    task: Task,
    outcome: Outcome,
    looked_into: Box<[StateId]>,
    /// One of these, as the memo numbers those that were met.
    at: u32,
}

impl What {
    /// Whether all tokens that are concerned are there.
    fn is_in(&self, words: &[u32]) -> bool {
        match self {
            Self::Exit(exit) => exit.is_in(words),
            Self::Ask(_, tokens) => tokens.is_subset(words),
        }
    }
}

impl Partial {
    /// One that holds some sets.
    #[cfg(test)]
    pub fn holding(found: Box<[Arc<Tokens>]>) -> Self {
        Self { found, readings: Box::default(), tasks: Box::default() }
    }

    /// Bytes on the heap, without what is held.
    pub fn memory_usage(&self) -> usize {
        let lists = size_of_val(&*self.found) + size_of_val(&*self.readings) + size_of_val(&*self.tasks);
        size_of::<Self>() + lists
    }

    /// Sets and tries that it holds, by address, and their bytes on the heap.
    pub fn each_held(&self, mut each: impl FnMut(usize, usize)) {
        let mut tokens = |tokens: &Arc<Tokens>| {
            each(Arc::as_ptr(tokens).addr(), size_of::<Tokens>() + tokens.memory_usage())
        };
        self.found.iter().for_each(&mut tokens);
        for Task { what, .. } in &self.tasks {
            match what {
                What::Exit(exit) => exit.ends.iter().for_each(&mut tokens),
                What::Ask(_, asked) => tokens(asked),
            }
        }
        for Task { what, .. } in &self.tasks {
            if let What::Exit(Exit { rest: Some(rest), .. }) = what {
                each(Arc::as_ptr(rest).addr(), rest.memory_usage());
            }
        }
    }
}

/// What else is to be known of what came through.
pub(crate) struct Through {
    /// The states that were looked into, beside those that the memo was looked at in, if they can be told.
    pub looked_into: Option<Vec<StateId>>,
    /// Tokens of which it depends on more than can be told whether they come through, and whether they do.
    pub doubts: Vec<(Arc<Tokens>, bool)>,
}

impl<'a, 'b> Part<'a, 'b> {
    /// What the memo was last asked for, and of which it knows a part at most. Nothing was found yet, if that
    /// can be kept.
    pub fn new(
        (stepper, language): (&'a mut Stepper, &'a Language),
        (walks, memo): (&'a mut Walks, &'a mut Memo),
        found: &'a mut Collected<'b>,
    ) -> Self {
        let keeps = memo.goes_on();
        Self {
            stepper,
            language,
            walks,
            memo,
            keeps,
            found,
            kept: Since::default(),
            n_waited: usize::MAX,
            readings: Vec::new(),
            entered: Vec::new(),
            asks: Vec::new(),
            waiting: Vec::new(),
            of_all: Vec::new(),
            doubts: Vec::new(),
            looked_into: Vec::new(),
            is_told: true,
            done: FxHashSet::default(),
        }
    }

    /// Adds the tokens that come through, and keeps what can be kept.
    pub fn add(mut self, config: Config, rest: &Rest) -> Result<Through, StepError> {
        self.begin(config, rest)?;
        loop {
            self.follow()?;
            if let Some(at) = self.waiting.iter().map(|waiting| waiting.at).min() {
                self.look_at(at)?;
            } else if !self.asks.is_empty() {
                std::mem::take(&mut self.asks).into_iter().try_for_each(|task| self.run(task))?;
            } else if !self.of_all.is_empty() {
                self.is_told = false;
                self.stop_keeping();
                let of_all = std::mem::take(&mut self.of_all);
                of_all.into_iter().try_for_each(|(task, outcome)| self.settle(task, outcome))?;
            } else {
                break;
            }
        }
        self.doubts.retain(|(task, _)| !task.what.is_in(self.found.words()));
        if !self.doubts.is_empty() {
            self.stop_keeping();
        } else if self.keeps {
            self.memo.keep(self.found.tokens());
        }
        let of = |(task, is_viable)| match task {
            Task { what: What::Ask(_, tokens), .. } => Some((tokens, is_viable)),
            _ => None,
        };
        let looked_into = self.is_told.then_some(self.looked_into);
        Ok(Through { looked_into, doubts: self.doubts.into_iter().filter_map(of).collect() })
    }

    /// Goes on from what is known, or from the beginning.
    fn begin(&mut self, config: Config, rest: &Rest) -> Result<(), StepError> {
        let known = self.memo.partials();
        let Some(last) = known.last() else { return self.enter(config, None, rest) };
        for partial in &known {
            partial.found.iter().for_each(|tokens| self.found.add(tokens));
        }
        self.kept = self.found.mark();
        self.n_waited = last.tasks.len();
        // Where readings stand here in place of those that are known.
        let mut places: Vec<Option<u32>> = Vec::with_capacity(last.readings.len());
        for &source in &last.readings {
            let place = match source {
                None => Some(self.place(config, None)),
                Some((from, cut)) => match places[from as usize] {
                    Some(from) => {
                        self.stepper.spend(1)?;
                        let state = self.readings[from as usize].config.state;
                        let next = self.stepper.end(self.language, (state, cut))?;
                        next.map(|config| self.place(config, Some((from, cut))))
                    }
                    None => None,
                },
            };
            debug_assert!(place.is_some(), "what was looked at is the same");
            places.push(place);
        }
        for Task { reading, what } in &last.tasks {
            let Some(reading) = places[*reading as usize] else { continue };
            let task = Task { reading, what: what.clone() };
            match task.what {
                What::Exit(_) => {
                    self.run(task)?;
                    self.follow()?;
                }
                What::Ask(..) => self.asks.push(task),
            }
        }
        Ok(())
    }

    fn place(&mut self, config: Config, source: Source) -> u32 {
        self.readings.push(Reading { config, source });
        self.readings.len() as u32 - 1
    }

    /// Goes on to what is left of tokens behind a reading.
    fn enter(&mut self, config: Config, source: Source, rest: &Rest) -> Result<(), StepError> {
        if rest.tokens.is_subset(self.found.words()) || !self.done.insert((config, rest.id)) {
            return Ok(());
        }
        self.stepper.spend(1 + self.found.words().len() / 16)?;
        let (left, n_words) = ((rest.id, &rest.trie), self.found.words().len());
        let walk = self.walks.get(self.stepper, self.language, left, config.lexeme, n_words)?;
        walk.stay.iter().for_each(|tokens| self.found.add(tokens));
        if walk.exits.is_empty() && walk.unknown.is_empty() {
            return Ok(());
        }
        let reading = self.place(config, source);
        for (lexeme, tokens) in &walk.unknown {
            self.asks.push(Task { reading, what: What::Ask(*lexeme, tokens.clone()) });
        }
        self.entered.push((reading, walk, 0));
        Ok(())
    }

    /// Follows the exits of what was entered, and of what is entered behind them.
    fn follow(&mut self) -> Result<(), StepError> {
        while let Some((reading, walk, n_done)) = self.entered.last_mut() {
            let Some(exit) = walk.exits.get(*n_done) else {
                self.entered.pop();
                continue;
            };
            *n_done += 1;
            if !exit.is_in(self.found.words()) {
                let task = Task { reading: *reading, what: What::Exit(exit.clone()) };
                self.run(task)?;
            }
        }
        Ok(())
    }

    /// Finds out what becomes of a task. That waits if it follows from states that were not looked at.
    fn run(&mut self, task: Task) -> Result<(), StepError> {
        if task.what.is_in(self.found.words()) {
            return Ok(());
        }
        self.stepper.begin_trace();
        let Config { state, .. } = self.readings[task.reading as usize].config;
        let outcome = match task.what {
            What::Exit(Exit { cut, .. }) => Outcome::To(self.stepper.end(self.language, (state, cut))?),
            What::Ask(lexeme, _) => {
                Outcome::Viable(self.stepper.is_viable(self.language, &[Config { state, lexeme }])?)
            }
        };
        match (self.stepper.looked_into(), outcome) {
            (None, Outcome::Viable(is_viable)) => {
                self.doubts.push((task, is_viable));
                return Ok(());
            }
            (None, Outcome::To(_)) if self.keeps => {
                self.of_all.push((task, outcome));
                return Ok(());
            }
            (None, Outcome::To(_)) => self.is_told = false,
            (Some(states), _) if self.keeps => {
                if let Some(at) = self.memo.unseen(states) {
                    let looked_into = states.into();
                    self.waiting.push(Waiting { task, outcome, looked_into, at });
                    return Ok(());
                }
            }
            (Some(states), _) => self.looked_into.extend_from_slice(states),
        }
        self.settle(task, outcome)
    }

    /// Adds what comes of a task.
    fn settle(&mut self, Task { reading, what }: Task, outcome: Outcome) -> Result<(), StepError> {
        match (what, outcome) {
            (What::Ask(_, tokens), Outcome::Viable(true)) => self.found.add(&tokens),
            (What::Exit(Exit { cut, ends, rest }), Outcome::To(Some(config))) => {
                let source = Some((reading, cut));
                match ends {
                    Some(ends) if self.stepper.is_completable(config) => self.found.add(&ends),
                    Some(ends) => {
                        let reading = self.place(config, source);
                        self.asks.push(Task { reading, what: What::Ask(config.lexeme, ends) });
                    }
                    None => {}
                }
                if let Some(rest) = &rest {
                    self.enter(config, source, rest)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks at a state that was met, and goes on with what waited for it.
    fn look_at(&mut self, at: u32) -> Result<(), StepError> {
        let n_waits = self.waiting.len() + self.asks.len() + self.of_all.len() + self.doubts.len();
        // Half as much each time, or all of them take more to keep than this takes to compute.
        let is_less = self.n_waited == usize::MAX || n_waits <= self.n_waited / 2;
        let partial = is_less.then(|| self.partial());
        self.keeps = self.memo.look_further(self.stepper, at, partial);
        // A state that is met from here on may be one that was made before. What began there is told apart by
        // whoever meets another one in its place.
        self.done.clear();
        for waiting in std::mem::take(&mut self.waiting) {
            let at = match self.keeps {
                true if waiting.at != at => Some(waiting.at),
                true => self.memo.unseen(&waiting.looked_into),
                false => {
                    self.looked_into.extend_from_slice(&waiting.looked_into);
                    None
                }
            };
            match at {
                Some(at) => self.waiting.push(Waiting { at, ..waiting }),
                None if waiting.task.what.is_in(self.found.words()) => {}
                None => self.settle(waiting.task, waiting.outcome)?,
            }
        }
        Ok(())
    }

    /// Keeps nothing from here on but what was found out so far.
    fn stop_keeping(&mut self) {
        if self.keeps {
            let partial = self.partial();
            self.memo.keep_partial(partial);
            self.keeps = false;
        }
    }

    /// What was found out so far, and what waits.
    fn partial(&mut self) -> Partial {
        let found = self.found.since(self.kept);
        self.kept = self.found.mark();
        let waiting = self.waiting.iter().map(|waiting| &waiting.task).chain(&self.asks);
        let of_all = self.of_all.iter().map(|(task, _)| task);
        let doubts = self.doubts.iter().map(|(task, _)| task);
        let all: Vec<&Task> = waiting.chain(of_all).chain(doubts).collect();
        // The readings on the way to them, which stand before those behind them.
        let mut is_needed = vec![false; self.readings.len()];
        all.iter().for_each(|task| is_needed[task.reading as usize] = true);
        for at in (0..self.readings.len()).rev() {
            if let (true, Some((from, _))) = (is_needed[at], self.readings[at].source) {
                is_needed[from as usize] = true;
            }
        }
        let (mut places, mut readings) = (vec![0; self.readings.len()], Vec::new());
        for at in (0..self.readings.len()).filter(|&at| is_needed[at]) {
            places[at] = readings.len() as u32;
            readings.push(self.readings[at].source.map(|(from, cut)| (places[from as usize], cut)));
        }
        let tasks: Box<[Task]> = all
            .into_iter()
            .map(|Task { reading, what }| Task { reading: places[*reading as usize], what: what.clone() })
            .collect();
        self.n_waited = tasks.len();
        Partial { found, readings: readings.into(), tasks }
    }
}
