//! Readings that stand for many: what can stand in the slots of a canvas, left to right.
//!
//! A hole makes hundreds of readings of one, and several holes all their combinations. But readings at one
//! place of the lexer's automata differ only in the parser's state, and states can be merged: the merged
//! state reads whatever one of them reads ([`Recognizer::extend`] with several edges). So a [`Level`], all
//! that can stand before a slot, has at most one reading a place. The same inside of tokens: where what is
//! left of a set of tokens is reached from several readings, one reading that stands for them goes on
//! ([`Lattice::spread`]). That bounds the work by slots × (places + remainders of tokens), whatever is in the
//! holes.
//!
//! In `scannerless` and `longest` this is exact. In `contextual` what competes for a piece depends on the
//! parser's state, so that there it is a bound: all that is possible is in it, and perhaps more
//! ([`Pieces::Loose`]).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_left_to_right::read::read_token;
use anygram_lexer::transducer;
use anygram_recognizer::StateId;
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::canvas::End;
use crate::moves::{Ending, Walk};
use crate::open::Open;
use crate::plan::{self, Place, Plan};
use crate::right::Right;
use crate::search::LITTLE_ROOM;
use crate::tables::Tables;

/// All that can stand before a slot: one reading a place of the lexer's automata, sorted.
pub(crate) type Level = Vec<Config>;

/// Tokens that lead somewhere.
#[derive(Clone, Debug)]
pub(crate) enum Tail {
    Group(Ending),
    /// A token that the grammar names.
    One(TokenId),
}

impl Tail {
    pub fn is_among(&self, open: &Open) -> bool {
        match self {
            Self::Group(ending) => open.first(ending).is_some(),
            Self::One(token) => open.contains(*token),
        }
    }

    pub fn remove_from(&self, open: &mut Open) {
        match self {
            Self::Group(ending) => open.remove(ending),
            Self::One(token) => open.remove_one(*token),
        }
    }

    fn n_tokens(&self) -> usize {
        match self {
            Self::Group(ending) => ending.n_tokens,
            Self::One(_) => 1,
        }
    }
}

/// What is before a hole, and whether few tokens are put there.
type Spread = (Box<[Config]>, bool);

/// What is kept of it from canvas to canvas.
#[derive(Default)]
pub(crate) struct Known {
    spreads: FxHashMap<Spread, Arc<[Config]>>,
    reads: FxHashMap<(Config, TokenId), Arc<[Config]>>,
    n_afters: usize,
}

impl Known {
    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.n_afters * size_of::<Config>() + (self.spreads.len() + self.reads.len()) * 96
    }
}

/// What is known of one canvas.
struct Guide {
    right: Right,
    /// Tokens that alone are put into holes, unless all are.
    few: Option<Arc<Rest>>,
    /// Whether the canvas can be completed from a reading before a slot, as far as it is known.
    verdicts: FxHashMap<(u32, Config), bool>,
    /// From this slot on there are only holes.
    tail: usize,
}

/// The readings of one canvas.
pub(crate) struct Lattice<'a> {
    tables: &'a mut Tables,
    plan: &'a Plan,
    work: &'a mut Work,
    /// What the parser had done, and the nodes of tries that were looked at, when it was last asked.
    effort: usize,
    n_seen: u64,
    guide: Guide,
}

/// Places that are entered to find a way to the end before all ways are followed at once.
const MOST_VISITS: usize = 200;

/// Nodes of the trie of tokens in `scannerless`.
const MOST_NODES: usize = 20_000;

/// Items made or merged that take as long as a step.
const ITEMS_PER_STEP: usize = 2;

/// The same of nodes of the trie of tokens that are looked at for the first time.
const NODES_PER_STEP: usize = 8;

/// A place that is left one way after the other.
struct Frame {
    slot: usize,
    config: Config,
    ways: Ways,
    at: usize,
}

/// How a place can be left.
enum Ways {
    /// To these readings.
    To(Arc<[Config]>),
    /// By tokens that prolong the piece or end with it; then by all.
    Walk(Arc<Walk>),
    All(Arc<[Config]>),
}

impl<'a> Lattice<'a> {
    pub fn new(tables: &'a mut Tables, plan: &'a Plan, work: &'a mut Work) -> Self {
        let right = tables.right(plan);
        let tail = plan.places.iter().rposition(|place| *place != Place::Free).map_or(0, |last| last + 1);
        let guide = Guide { right, few: None, verdicts: FxHashMap::default(), tail };
        let (effort, n_seen) = (tables.stepper.effort(), tables.n_seen());
        Self { tables, plan, work, effort, n_seen, guide }
    }

    /// The same with few tokens in holes, of each kind some: what is found so is possible, and perhaps more.
    pub fn with_few_tokens(mut self) -> Self {
        self.guide.few = Some(self.tables.few_tokens());
        self
    }

    /// Whether merged readings are of use. In `scannerless` every byte may end a piece, and with many tokens
    /// what is left of them after all ways to cut them is too much.
    pub fn is_of_use(tables: &Tables) -> bool {
        let constraint = &tables.constraint;
        let is_cut_anywhere = constraint.language().mode() == LexerMode::Scannerless;
        !is_cut_anywhere || constraint.vocabulary().trie().n_nodes() <= MOST_NODES
    }

    /// Whether what it says is a bound.
    pub fn is_contextual(&self) -> bool {
        self.tables.constraint.language().mode() == LexerMode::Contextual
    }

    /// The parser state of all these, at a place.
    fn merged(
        &mut self,
        states: &mut Vec<StateId>,
        place: transducer::Place,
    ) -> Result<Option<Config>, StepError> {
        self.work.spend(states.len())?;
        states.sort_unstable();
        states.dedup();
        let Tables { constraint, stepper, .. } = &mut *self.tables;
        stepper.merged(constraint.language(), states, place)
    }

    /// All that can stand before the first slot.
    pub fn first(&mut self) -> Result<Level, StepError> {
        Ok(self.tables.start()?.filter(|_| !self.guide.right.is_hopeless).into_iter().collect())
    }

    /// All that can stand behind a slot, if this can stand before it.
    pub fn next(&mut self, slot: usize, level: &Level) -> Result<Level, StepError> {
        let mut by_place: BTreeMap<transducer::Place, Vec<StateId>> = BTreeMap::new();
        let mut add = |this: &Self, after: Config| {
            let transducer = this.tables.stepper.transducer();
            if this.guide.right.allows(slot + 1, this.tables.union_state(after.lexeme)) {
                by_place.entry(transducer.place(after.lexeme)).or_default().push(after.state);
            }
        };
        match self.plan.places[slot] {
            Place::Token(token) => {
                for &config in level {
                    let afters = self.read(config, token)?;
                    self.work.spend(1 + afters.len())?;
                    afters.iter().for_each(|&after| add(self, after));
                }
            }
            Place::Free => {
                let afters = self.spread(level)?;
                self.work.spend(1 + afters.len())?;
                afters.iter().for_each(|&after| add(self, after));
            }
            Place::Gap | Place::Optional | Place::Closed => {}
        }
        let mut next = Level::with_capacity(by_place.len());
        if self.is_contextual() && self.plan.places[slot] == Place::Free {
            // A piece in progress says in which of these states it can have begun, but for few that the
            // vocabulary rules out.
            let mut all: Vec<StateId> = by_place.values().flatten().copied().collect();
            for &place in by_place.keys() {
                next.extend(self.merged(&mut all, place)?);
            }
        } else {
            for (place, mut states) in by_place {
                next.extend(self.merged(&mut states, place)?);
            }
        }
        next.sort_unstable();
        next.dedup();
        self.spend_effort()?;
        Ok(next)
    }

    /// Whether one of them has read a sentence.
    pub fn is_sentence(&self, level: &Level) -> bool {
        self.tables.stepper.is_sentence(level)
    }

    /// Counts what the parser did, and what was seen of tokens for the first time, since it was last asked.
    fn spend_effort(&mut self) -> Result<(), StepError> {
        let (effort, n_seen) = (self.tables.stepper.effort(), self.tables.n_seen());
        let made = effort.saturating_sub(std::mem::replace(&mut self.effort, effort));
        let seen = n_seen.saturating_sub(std::mem::replace(&mut self.n_seen, n_seen));
        Ok(self.work.spend(made / ITEMS_PER_STEP + seen as usize / NODES_PER_STEP)?)
    }

    /// Counts steps.
    pub fn spend(&mut self, steps: usize) -> Result<(), StepError> {
        Ok(self.work.spend(steps)?)
    }

    /// Whether lexing can go on from a reading with what is fixed from a slot on.
    pub fn allows(&self, slot: usize, config: Config) -> bool {
        self.guide.right.allows(slot, self.tables.union_state(config.lexeme))
    }

    /// What a fixed token makes of a reading.
    fn read(&mut self, config: Config, token: TokenId) -> Result<Arc<[Config]>, StepError> {
        if !self.is_contextual() {
            return self.tables.read(config, token);
        }
        if let Some(known) = self.tables.lattice.reads.get(&(config, token)) {
            return Ok(known.clone());
        }
        let Tables { constraint, stepper, .. } = &mut *self.tables;
        let language = constraint.language();
        let lexing = language.lexing();
        let named = plan::named(constraint, token);
        let readings =
            read_token(stepper, constraint, &[config], (token, named), |stepper, before, byte, next| {
                next.clear();
                let class = lexing.lexicon.union.class(byte);
                for &Config { state, lexeme } in before {
                    let transducer = stepper.transducer_mut();
                    let from = transducer.place(lexeme);
                    let Some(place) = transducer.step_place(lexing, from, class)? else { continue };
                    let step = transducer.step_to_loosely(lexing, lexeme, place)?;
                    next.extend(step.stay.map(|lexeme| Config { state, lexeme }));
                    if let Some(cut) = step.cut {
                        next.extend(stepper.end(language, (state, cut))?);
                    }
                }
                next.sort_unstable();
                next.dedup();
                Ok(!next.is_empty())
            })?;
        let readings: Arc<[Config]> = readings.into();
        self.tables.lattice.reads.insert((config, token), readings.clone());
        Ok(readings)
    }

    /// What one token, any, makes of some readings. Where several come to the remainder of the same tokens,
    /// one that stands for them goes on.
    fn spread(&mut self, level: &[Config]) -> Result<Arc<[Config]>, StepError> {
        let key = (Box::from(level), self.guide.few.is_some());
        if let Some(known) = self.tables.lattice.spreads.get(&key) {
            return Ok(known.clone());
        }
        let few = self.guide.few.clone();
        let outcomes = self.outcomes(level, few.as_ref(), None)?;
        let mut seen = FxHashSet::default();
        let afters: Arc<[Config]> =
            outcomes.iter().map(|outcome| outcome.0).filter(|&after| seen.insert(after)).collect();
        let known = &mut self.tables.lattice;
        known.n_afters += afters.len();
        known.spreads.insert(key, afters.clone());
        Ok(afters)
    }

    /// What one token that is sought, or is left of `first`, makes of some readings, with the tokens that
    /// lead there; large groups first.
    pub fn outcomes(
        &mut self,
        level: &[Config],
        first: Option<&Arc<Rest>>,
        open: Option<&Open>,
    ) -> Result<Vec<(Config, Tail)>, StepError> {
        let language = self.tables.constraint.language().clone();
        let mut outcomes: Vec<(Config, Tail)> = Vec::new();
        // Remainders with many bytes are reached from those with more alone.
        type Waiting = BTreeMap<(Reverse<usize>, u64, transducer::Place), (Arc<Rest>, Vec<StateId>)>;
        let mut waiting = Waiting::new();
        let mut follow =
            |this: &mut Self, config: Config, rest: Option<&Arc<Rest>>, waiting: &mut Waiting| {
                let walk = this.tables.walk_merged(config, rest)?;
                this.work.spend(1 + walk.stays.len() + walk.exits.len())?;
                for (lexeme, tokens) in &walk.stays {
                    if open.is_none_or(|open| open.first(tokens).is_some()) {
                        let after = Config { state: config.state, lexeme: *lexeme };
                        outcomes.push((after, Tail::Group(tokens.clone())));
                    }
                }
                for (at, exit) in walk.exits.iter().enumerate() {
                    let ends =
                        exit.ends.n_tokens > 0 && open.is_none_or(|open| open.first(&exit.ends).is_some());
                    let beyond = this.tables.beyond(&walk, at, rest, this.work)?;
                    let beyond = beyond.filter(|beyond| open.is_none_or(|open| open.has_some(beyond)));
                    if !ends && beyond.is_none() {
                        continue;
                    }
                    let Some(after) = this.tables.end(config, &walk, at)? else { continue };
                    if ends {
                        outcomes.push((after, Tail::Group(exit.ends.clone())));
                    }
                    if let Some(beyond) = beyond {
                        let place = this.tables.stepper.transducer().place(after.lexeme);
                        let key = (Reverse(beyond.height), beyond.id, place);
                        waiting.entry(key).or_insert_with(|| (beyond, Vec::new())).1.push(after.state);
                    }
                }
                Ok::<(), StepError>(())
            };
        for &config in level {
            follow(self, config, first, &mut waiting)?;
            self.spend_effort()?;
        }
        while let Some(((_, _, place), (rest, mut states))) = waiting.pop_first() {
            if let Some(config) = self.merged(&mut states, place)? {
                self.spend_effort()?;
                follow(self, config, Some(&rest), &mut waiting)?;
            }
        }
        let specials: Vec<_> = plan::specials(&self.tables.constraint).collect();
        for (token, terminal) in specials {
            let afters = self.tables.stepper.step_special(&language, level, terminal)?;
            outcomes.extend(afters.into_iter().map(|after| (after, Tail::One(token))));
        }
        outcomes.sort_by_key(|(_, tokens)| Reverse(tokens.n_tokens()));
        Ok(outcomes)
    }

    /// Whether the text may end before a slot with a reading, or with holes alone behind it; `None` if that
    /// does not decide it.
    fn ends(&mut self, slot: usize, config: Config) -> Result<Option<bool>, StepError> {
        let n_slots = self.plan.places.len();
        if slot == n_slots {
            if self.is_contextual() && self.plan.whole != Some(End::Sentence) {
                return Ok(Some(true));
            }
            return self.tables.ends_whole(self.plan, config, self.work).map(Some);
        }
        if !self.plan.ends[slot] {
            return Ok(None);
        }
        if self.tables.stepper.is_sentence(&[config]) {
            return Ok(Some(true));
        }
        if slot < self.guide.tail {
            return Ok(None);
        }
        if self.is_contextual() {
            let room = (n_slots - slot) as u32;
            let asks = self.plan.whole == Some(End::Sentence) && room <= LITTLE_ROOM;
            return Ok(Some(!asks || self.tables.may_fit(config, room, self.work)?));
        }
        let most = n_slots - slot - usize::from(self.plan.whole.is_none());
        let can_close = self.tables.closing(config, most as u32, self.work)?.is_some();
        Ok(Some(can_close).filter(|&can| can || self.plan.whole == Some(End::Sentence)))
    }

    /// Whether the canvas can be completed from a reading before a slot; in `contextual` only a no is
    /// certain.
    pub fn is_good(&mut self, slot: usize, config: Config) -> Result<bool, StepError> {
        if let Some(&known) = self.guide.verdicts.get(&(slot as u32, config)) {
            return Ok(known);
        }
        if !self.guide.right.allows(slot, self.tables.union_state(config.lexeme)) {
            return Ok(false);
        }
        if let Some(verdict) = self.search(slot, config)? {
            return Ok(verdict);
        }
        let verdict = self.pass(slot, config)?;
        self.guide.verdicts.insert((slot as u32, config), verdict);
        Ok(verdict)
    }

    /// The same by going on in depth, large groups of tokens first; `None` if that takes long.
    fn search(&mut self, slot: usize, config: Config) -> Result<Option<bool>, StepError> {
        let mut stack: Vec<Frame> = Vec::new();
        let mut entering = Some((slot, config));
        let mut visits = 0;
        loop {
            if let Some((slot, config)) = entering.take() {
                let verdict = match self.guide.verdicts.get(&(slot as u32, config)) {
                    Some(&known) => Some(known),
                    None => self.ends(slot, config)?,
                };
                match verdict {
                    Some(true) => {
                        self.guide.verdicts.insert((slot as u32, config), true);
                        for frame in stack {
                            self.guide.verdicts.insert((frame.slot as u32, frame.config), true);
                        }
                        return Ok(Some(true));
                    }
                    Some(false) => drop(self.guide.verdicts.insert((slot as u32, config), false)),
                    None => {
                        self.spend_effort()?;
                        visits += 1;
                        if visits > MOST_VISITS {
                            return Ok(None);
                        }
                        let ways = self.ways(slot, config)?;
                        stack.push(Frame { slot, config, ways, at: 0 });
                    }
                }
            }
            let Some(mut frame) = stack.pop() else { return Ok(Some(false)) };
            let next = frame.slot + 1;
            match self.leave(&mut frame)? {
                Some(after) => {
                    stack.push(frame);
                    if self.allows(next, after) {
                        entering = Some((next, after));
                    }
                }
                None => drop(self.guide.verdicts.insert((frame.slot as u32, frame.config), false)),
            }
        }
    }

    fn ways(&mut self, slot: usize, config: Config) -> Result<Ways, StepError> {
        Ok(match self.plan.places[slot] {
            Place::Token(token) => Ways::To(self.read(config, token)?),
            Place::Free => Ways::Walk(self.tables.walk_merged(config, None)?),
            Place::Gap | Place::Optional | Place::Closed => Ways::To(Arc::from([])),
        })
    }

    /// The next way to leave a place.
    fn leave(&mut self, frame: &mut Frame) -> Result<Option<Config>, StepError> {
        loop {
            self.work.spend(1)?;
            let at = frame.at;
            frame.at += 1;
            match &frame.ways {
                Ways::To(afters) | Ways::All(afters) => return Ok(afters.get(at).copied()),
                Ways::Walk(walk) => {
                    if let Some(&(lexeme, _)) = walk.stays.get(at) {
                        return Ok(Some(Config { state: frame.config.state, lexeme }));
                    }
                    let exit = at - walk.stays.len();
                    if let Some(ends) = walk.exits.get(exit).map(|exit| exit.ends.n_tokens) {
                        if ends > 0
                            && let Some(after) = self.tables.end(frame.config, walk, exit)?
                        {
                            return Ok(Some(after));
                        }
                        continue;
                    }
                }
            }
            // Not before they are needed: they are many.
            frame.ways = Ways::All(self.spread(&[frame.config])?);
            frame.at = 0;
        }
    }

    /// The same by following all ways at once.
    fn pass(&mut self, slot: usize, config: Config) -> Result<bool, StepError> {
        let mut level = vec![config];
        for slot in slot..=self.plan.places.len() {
            let mut left = Level::new();
            for &config in &level {
                let verdict = match self.guide.verdicts.get(&(slot as u32, config)) {
                    Some(&known) => Some(known),
                    None => self.ends(slot, config)?,
                };
                match verdict {
                    Some(true) => return Ok(true),
                    Some(false) => {}
                    None => left.push(config),
                }
            }
            if left.is_empty() || slot == self.plan.places.len() {
                return Ok(false);
            }
            level = self.next(slot, &left)?;
        }
        Ok(false)
    }
}
