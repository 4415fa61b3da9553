//! The tables that grow while canvases of one constraint are worked on: what tokens make of readings, and
//! what lacks to be a sentence.
//!
//! A reading ([`Config`]) knows no positions and equal ones are one, so what is known of it serves all slots
//! of all canvases.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::budget::{Budgets, Question};
use anygram_left_to_right::frontier::{Config, Frontier, Stepper};
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_left_to_right::read::read_token;
use anygram_left_to_right::tokens::Tokens;
use anygram_lexer::dfa::{DEAD, START};
use anygram_lexer::outline::{self, Outline};
use anygram_lexer::transducer::{LexemeId, Lexing};
use anygram_lexer::union::Union;
use anygram_recognizer::StateId;
use anygram_recognizer::earley::contexts::{ContextId, Contexts};
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::admissible::Kept;
use crate::beam::{After, permissiveness};
use crate::canvas::End;
use crate::forward;
use crate::lattice::Known;
use crate::moves::{Ending, Pieces, Walk, Walks};
use crate::plan::{self, Plan};
use crate::right::{Right, Rights, UNKNOWN};
use crate::verdicts::Verdicts;

/// The tables that grow while canvases of one constraint are worked on.
pub(crate) struct Tables {
    pub constraint: Constraint,
    pub stepper: Stepper,
    walks: Walks,
    rights: Rights,
    /// What a fixed token does to a reading.
    reads: FxHashMap<(Config, TokenId), Arc<[Config]>>,
    /// The fewest tokens that complete a reading, and which, as far as they were looked for.
    closings: FxHashMap<Config, Closing>,
    /// Some tokens that complete a reading, found quickly if at all.
    finishes: FxHashMap<Config, Option<Arc<[TokenId]>>>,
    /// Readings that stand for many.
    pub lattice: Known,
    /// Minimum costs in tokens, once somebody asks.
    budgets: Option<Box<Budgets>>,
    /// Minimum costs from here on took too long to find.
    costs_too_much: u32,
    /// Whether upper bounds on costs are found in time.
    knows_upper: bool,
    /// Whether what minimum costs count can stand in a canvas: an EOS or PAD that the grammar names, used or
    /// not, cannot.
    pub counts_texts: bool,
    /// What is to come after states of the parser, and the sets of terminals that can come next.
    outlooks: FxHashMap<StateId, Outlook>,
    viable: FxHashMap<BitSet, u32>,
    /// Some of what one token makes of readings.
    pub afters: FxHashMap<Config, Arc<[After]>>,
    /// For each state of the union automaton the number of bytes that can follow.
    pub permissiveness: Box<[u16]>,
    /// Where the union automaton grows, a finite one around it ...
    outline: Option<Arc<Outline>>,
    /// ... and where its states are in that, or [`UNKNOWN`].
    outline_places: RefCell<FxHashMap<u32, u32>>,
    /// Few tokens, of each kind some, once they are needed.
    few: Option<Arc<Rest>>,
    /// What was found out about the last canvas whose admissible tokens were sought.
    pub kept: Option<Box<Kept>>,
    /// What searches found out about places of canvases.
    pub verdicts: Verdicts,
    /// Stacks of all texts of canvases, once they are needed: those of the grammar, and loosely.
    pub contexts: [Option<Box<Contexts>>; 2],
    /// What was found of the last canvas with them, loosely.
    pub kept_forward: Option<Box<forward::LastForward>>,
    /// What can begin in contexts, loosely or not.
    pub begins: FxHashMap<(bool, ContextId), Arc<[LexemeId]>>,
    /// What pieces may become, by what is wanted of them.
    pub pieces: FxHashMap<u32, (Arc<BitSet>, bool)>,
}

/// What is to come after a state of the parser.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Outlook {
    /// The fewest terminals that make a sentence.
    pub lacking: u32,
    /// Which terminals can come next: a number for each set.
    pub viable: u32,
}

/// What minimum costs say, if anything, and whether they said nothing because it took more steps than
/// allowed.
struct Asked<T> {
    answer: Option<T>,
    is_too_much: bool,
}

#[derive(Clone)]
enum Closing {
    Tokens(Arc<[TokenId]>),
    MoreThan(u32),
}

/// What it takes to keep what one token makes of a reading, roughly.
const AFTERS_BYTES: usize = 2_048;

/// The part of what may be kept in all that says from which places canvases can be completed.
const PART_OF_VERDICTS: usize = 2;

/// A place entered costs a few look-ups, and now and then a new state of the parser.
pub(crate) const STEPS_PER_VISIT: usize = 16;

/// A lexeme at a new state of an automaton that grows takes as long as so many items of a parser state.
const ITEMS_PER_LEXEME: usize = 32;

/// Readings that a quick look for a completion leaves.
const MOST_EXPANDED: usize = 64;

impl Tables {
    pub fn new(constraint: &Constraint) -> Result<Self, StepError> {
        let language = constraint.language();
        language.needs_texts_alone("canvases")?;
        let mut work = Work::new(language.limits().compile_steps, "compile_steps");
        let outline = Outline::new(language.lexing(), &mut work)?.map(Arc::new);
        Ok(Self {
            constraint: constraint.clone(),
            stepper: Stepper::interning(constraint.language())?,
            walks: Walks::new(constraint.vocabulary()),
            rights: Rights::new(constraint, outline.clone()),
            outline_places: RefCell::default(),
            reads: FxHashMap::default(),
            closings: FxHashMap::default(),
            finishes: FxHashMap::default(),
            lattice: Known::default(),
            budgets: None,
            costs_too_much: u32::MAX,
            knows_upper: true,
            counts_texts: plan::specials(constraint).count() == constraint.specials().len(),
            outlooks: FxHashMap::default(),
            viable: FxHashMap::default(),
            afters: FxHashMap::default(),
            permissiveness: permissiveness(Self::union(constraint, &outline)),
            outline,
            few: None,
            kept: None,
            verdicts: Verdicts::default(),
            contexts: [None, None],
            kept_forward: None,
            begins: FxHashMap::default(),
            pieces: FxHashMap::default(),
        })
    }

    /// The automaton of whose states it is known where they may stand: the union, or its outline.
    fn union<'a>(constraint: &'a Constraint, outline: &'a Option<Arc<Outline>>) -> &'a Union {
        let own = &constraint.language().lexing().lexicon.union;
        outline.as_ref().map_or(own, |outline| outline.union())
    }

    /// The state of that automaton since a piece began.
    #[inline]
    pub fn union_state(&self, lexeme: LexemeId) -> u32 {
        let state = self.stepper.transducer().union_state(lexeme);
        let Some(outline) = &self.outline else { return state };
        let own = &self.constraint.language().lexing().lexicon.union;
        let place = || outline.place(own, state).unwrap_or(UNKNOWN);
        *self.outline_places.borrow_mut().entry(state).or_insert_with(place)
    }

    /// Whether the lexer's automaton grows.
    pub fn is_growing(&self) -> bool {
        self.outline.is_some()
    }

    /// What the parser did so far, in items, and where the lexer's automaton grows that too.
    pub fn effort(&self) -> usize {
        let n_lexemes = if self.outline.is_some() { self.stepper.transducer().n_lexemes() } else { 0 };
        self.stepper.effort() + ITEMS_PER_LEXEME * n_lexemes
    }

    /// Where the automata of terminals grow, the lexing of a plain grammar that has at least the same
    /// sentences, unless there is none within the limits.
    pub fn outline_lexing(&self) -> Option<Lexing> {
        let language = self.constraint.language();
        let limits = language.limits();
        let mut work = Work::new(limits.compile_steps, "compile_steps");
        outline::lexing(language.grammar(), &limits.lexer, &mut work).ok().flatten()
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.stepper.memory_usage()
            + self.walks.memory_usage()
            + self.lattice.memory_usage()
            + self.rights.memory_usage()
            + self.budgets.as_ref().map_or(0, |budgets| budgets.memory_usage())
            + (self.reads.len() + self.closings.len() + self.finishes.len() + self.outlooks.len()) * 64
            + self.afters.len() * AFTERS_BYTES
            + self.outline_places.borrow().len() * 16
            + self.kept.as_ref().map_or(0, |kept| kept.memory_usage())
            + self.verdicts.memory_usage()
            + self.contexts.iter().flatten().map(|contexts| contexts.memory_usage()).sum::<usize>()
    }

    /// Whether so much is kept that it is better to begin afresh.
    pub fn is_full(&self) -> bool {
        let limits = self.constraint.language().limits();
        let afters = self.afters.len() * AFTERS_BYTES;
        let kept = afters
            + (self.reads.len() + self.closings.len() + self.finishes.len() + self.outlooks.len()) * 64;
        kept + self.rights.memory_usage() + self.lattice.memory_usage() > limits.cache_bytes
            || self.stepper.recognizer().n_items() > limits.shared_items
            || self.stepper.transducer().n_lexemes() > limits.lexer.lexemes / 2
    }

    /// Forgets what is known of parser states if so much is kept that it is better to begin afresh, and what
    /// is known of pieces if that is too much too.
    pub fn renew(&mut self) -> Result<(), StepError> {
        if self.verdicts.memory_usage() > self.constraint.language().limits().cache_bytes / PART_OF_VERDICTS {
            self.verdicts = Verdicts::default();
        }
        if !self.is_full() {
            return Ok(());
        }
        let mut fresh = Self::new(&self.constraint)?;
        let limits = self.constraint.language().limits();
        if self.stepper.transducer().n_lexemes() <= limits.lexer.lexemes / 2 {
            fresh.stepper.take_lexemes(&mut self.stepper);
            std::mem::swap(&mut fresh.walks, &mut self.walks);
            if self.rights.memory_usage() <= limits.cache_bytes / 2 {
                std::mem::swap(&mut fresh.rights, &mut self.rights);
            }
        }
        let full = std::mem::replace(self, fresh);
        // They are millions of small pieces, which takes a few hundred milliseconds; nobody has to wait for
        // that. (On a thread of rayon's pool, which others have started anyhow.)
        rayon::spawn(move || drop(full));
        Ok(())
    }

    /// The reading of the empty text.
    pub fn start(&mut self) -> Result<Option<Config>, StepError> {
        let start = self.stepper.start(self.constraint.language())?;
        Ok(start.and_then(|start| start.first().copied()))
    }

    /// What a token does to a reading.
    pub fn read(&mut self, config: Config, token: TokenId) -> Result<Arc<[Config]>, StepError> {
        if let Some(known) = self.reads.get(&(config, token)) {
            return Ok(known.clone());
        }
        let Self { constraint, stepper, .. } = self;
        let language = constraint.language();
        let mut found = Frontier::new();
        let named = plan::named(constraint, token);
        let readings =
            read_token(stepper, constraint, &[config], (token, named), |stepper, before, byte, next| {
                // One by one: readings that meet stay apart, so that all are what other texts lead to
                // as well.
                next.clear();
                for &reading in before {
                    stepper.step(language, &[reading], byte, &mut found)?;
                    next.append(&mut found);
                }
                next.sort_unstable();
                next.dedup();
                Ok(!next.is_empty())
            })?;
        let readings: Arc<[Config]> = readings.into();
        self.reads.insert((config, token), readings.clone());
        Ok(readings)
    }

    /// The steps of reading so many tokens from left to right.
    pub fn steps_of_reading(n_tokens: usize) -> usize {
        STEPS_PER_VISIT * (1 + n_tokens)
    }

    /// Few tokens that do most of what all can do: the short ones, and those that are one piece which cannot
    /// go on, perhaps behind a blank. As what is left of them where nothing was read yet.
    pub fn few_tokens(&mut self) -> Arc<Rest> {
        let Self { constraint, outline, few, .. } = self;
        few.get_or_insert_with(|| Arc::new(few_tokens(constraint, outline))).clone()
    }

    /// The nodes of tries of tokens that were looked at so far.
    pub fn n_seen(&self) -> u64 {
        self.walks.n_seen()
    }

    /// What any token does to a reading, or what is left of some tokens.
    pub fn walk(&mut self, config: Config, rest: Option<&Arc<Rest>>) -> Result<Arc<Walk>, StepError> {
        let Self { constraint, stepper, walks, .. } = self;
        let trie = rest.map_or((0, constraint.vocabulary().trie()), |rest| (rest.id, &rest.trie));
        walks.get(
            stepper,
            constraint.language(),
            trie,
            (config.lexeme, Pieces::Exact),
            constraint.mask_words(),
        )
    }

    /// What any token does to a reading that stands for several.
    pub fn walk_merged(&mut self, config: Config, rest: Option<&Arc<Rest>>) -> Result<Arc<Walk>, StepError> {
        let Self { constraint, stepper, walks, .. } = self;
        let trie = rest.map_or((0, constraint.vocabulary().trie()), |rest| (rest.id, &rest.trie));
        walks.get(
            stepper,
            constraint.language(),
            trie,
            (config.lexeme, Pieces::Loose),
            constraint.mask_words(),
        )
    }

    /// What is left of tokens beyond an exit of a walk.
    pub fn beyond(
        &mut self,
        walk: &Walk,
        exit: usize,
        rest: Option<&Arc<Rest>>,
        work: &mut Work,
    ) -> Result<Option<Arc<Rest>>, StepError> {
        let Self { constraint, walks, .. } = self;
        let trie = rest.map_or((0, constraint.vocabulary().trie()), |rest| (rest.id, &rest.trie));
        let exit = &walk.exits[exit];
        let is_new = !exit.knows_rest();
        let beyond = walks.rest(trie, exit, constraint.mask_words());
        if is_new && let Some(beyond) = &beyond {
            work.spend(beyond.trie.n_nodes() / 64)?;
        }
        Ok(beyond)
    }

    /// Whether lexing gets from a boundary with what is left of some token into one of some states.
    pub fn leads(&mut self, rest: &Rest, states: &BitSet, work: &mut Work) -> Result<bool, StepError> {
        Ok(self.rights.beyond(&self.constraint, rest, work)?.intersects(states))
    }

    pub fn end(&mut self, config: Config, walk: &Walk, exit: usize) -> Result<Option<Config>, StepError> {
        self.stepper.end(self.constraint.language(), (config.state, walk.exits[exit].cut))
    }

    /// Calls `each` with every reading that one token leads to, and the tokens that do.
    pub fn each_token(
        &mut self,
        config: Config,
        work: &mut Work,
        mut each: impl FnMut(Config, Option<&Ending>, Option<TokenId>),
    ) -> Result<(), StepError> {
        let specials: Vec<_> = plan::specials(&self.constraint).collect();
        for (token, terminal) in specials {
            let language = self.constraint.language().clone();
            for next in self.stepper.step_special(&language, &[config], terminal)? {
                each(next, None, Some(token));
            }
        }
        let mut seen = FxHashSet::default();
        let mut agenda: Vec<(Config, Option<Arc<Rest>>)> = vec![(config, None)];
        while let Some((config, rest)) = agenda.pop() {
            let walk = self.walk(config, rest.as_ref())?;
            work.spend(1 + walk.stays.len() + walk.exits.len())?;
            for &(lexeme, ref tokens) in &walk.stays {
                each(Config { state: config.state, lexeme }, Some(tokens), None);
            }
            for (at, exit) in walk.exits.iter().enumerate() {
                let Some(next) = self.end(config, &walk, at)? else { continue };
                if exit.ends.n_tokens > 0 {
                    each(next, Some(&exit.ends), None);
                }
                if let Some(beyond) = self.beyond(&walk, at, rest.as_ref(), work)?
                    && seen.insert((next, beyond.id))
                {
                    agenda.push((next, Some(beyond)));
                }
            }
        }
        Ok(())
    }

    /// What can stand before the slots of a canvas.
    pub fn right(&mut self, plan: &Plan) -> Right {
        self.rights.of(&self.constraint, plan)
    }

    /// As [`Tables::right`], with holes that one token has to fill. Slower, where it is not known yet.
    pub fn sharp_right(&mut self, plan: &Plan, work: &mut Work) -> Result<Right, StepError> {
        Ok(self.rights.sharply(&self.constraint, plan, work)?)
    }

    /// What can stand before the slots of a canvas if one of these tokens is put into a hole.
    pub fn towards(
        &mut self,
        plan: (&Plan, &Right),
        hole: (usize, &[TokenId]),
        work: &mut Work,
    ) -> Result<Right, StepError> {
        Ok(self.rights.towards(&self.constraint, plan, hole, work)?)
    }

    /// For each hole the tokens that can stand in it as far as lexing knows.
    pub fn lexical_rows(&mut self, plan: &Plan, work: &mut Work) -> Result<Vec<Vec<u32>>, StepError> {
        Ok(self.rights.rows(&self.constraint, plan, work)?)
    }

    /// Whether the text of a whole row may end with a reading.
    pub fn ends_whole(&mut self, plan: &Plan, config: Config, work: &mut Work) -> Result<bool, StepError> {
        Ok(match plan.whole {
            None => false,
            Some(End::Sentence) => self.stepper.is_sentence(&[config]),
            Some(End::Prefix { remaining: None }) => {
                self.stepper.is_viable(self.constraint.language(), &[config])?
            }
            Some(End::Prefix { remaining: Some(most) }) => self.closing(config, most, work)?.is_some(),
        })
    }

    /// Some tokens that make a sentence of a reading, without regard to their number: always towards the
    /// fewest terminals lacking. `None` if that does not lead to one soon.
    pub fn finish(&mut self, config: Config, work: &mut Work) -> Result<Option<Arc<[TokenId]>>, StepError> {
        if let Some(known) = self.finishes.get(&config) {
            return Ok(known.clone());
        }
        let mut seen: FxHashMap<Config, Option<(Config, TokenId)>> = FxHashMap::from_iter([(config, None)]);
        let mut queue = BinaryHeap::from([Reverse((0u32, 0u32, 0u32, config))]);
        let mut goal = None;
        for _ in 0..MOST_EXPANDED {
            let Some(Reverse((_, depth, _, reading))) = queue.pop() else { break };
            if self.stepper.is_sentence(&[reading]) {
                goal = Some(reading);
                break;
            }
            let walk = self.walk(reading, None)?;
            work.spend(walk.stays.len() + STEPS_PER_VISIT * walk.exits.len())?;
            let mut next: Vec<(Config, TokenId)> = Vec::with_capacity(walk.stays.len() + walk.exits.len());
            let staying = |&(lexeme, ref tokens): &(LexemeId, Ending)| {
                Some((Config { state: reading.state, lexeme }, tokens.first?))
            };
            next.extend(walk.stays.iter().filter_map(staying));
            for (at, exit) in walk.exits.iter().enumerate() {
                let Some(first) = exit.ends.first else { continue };
                next.extend(self.end(reading, &walk, at)?.map(|after| (after, first)));
            }
            for (order, (after, token)) in (0..).zip(next) {
                if let Entry::Vacant(place) = seen.entry(after) {
                    place.insert(Some((reading, token)));
                    let lacks = self.lacking(after.state);
                    // Between pieces fewer bytes are open than within one.
                    let open = u32::from(!self.stepper.transducer().is_boundary(after.lexeme));
                    let far = lacks.saturating_mul(4).saturating_add(open + depth);
                    queue.push(Reverse((far, depth + 1, order, after)));
                }
            }
        }
        let found = goal.map(|goal| trace(&seen, goal));
        self.finishes.insert(config, found.clone());
        Ok(found)
    }

    /// What is to come after a state of the parser.
    pub fn outlook(&mut self, state: StateId) -> Outlook {
        let (recognizer, viable) = (self.stepper.recognizer(), &mut self.viable);
        *self.outlooks.entry(state).or_insert_with(|| {
            let fresh = viable.len() as u32;
            let viable = *viable.entry(recognizer.viable(state).clone()).or_insert(fresh);
            Outlook { lacking: recognizer.minimum_remaining(state), viable }
        })
    }

    /// The fewest terminals that make a sentence of what was read.
    pub fn lacking(&mut self, state: StateId) -> u32 {
        self.outlook(state).lacking
    }

    /// Whether it is certain, without a search, that at most `limit` tokens make a sentence of a reading.
    pub fn fits_surely(&mut self, config: Config, limit: u32, work: &mut Work) -> Result<bool, StepError> {
        if !self.counts_texts || !self.knows_upper {
            return Ok(false);
        }
        let asked = self
            .ask_costs(UPPER_STEPS, work, |budgets, question| budgets.fits_surely(question, config, limit))?;
        self.knows_upper = !asked.is_too_much;
        Ok(asked.answer.unwrap_or(false))
    }

    /// Whether it is certain that more than `limit` tokens are needed to make a sentence of a reading. Looks
    /// no further than a number of steps, a great one where the answer `decides`, and beyond that it is
    /// `None`.
    pub fn takes_more(
        &mut self,
        config: Config,
        limit: u32,
        decides: bool,
        work: &mut Work,
    ) -> Result<Option<bool>, StepError> {
        if decides && limit >= self.costs_too_much {
            return Ok(None);
        }
        let most = if decides { MOST_COST_STEPS } else { COST_STEPS };
        let asked =
            self.ask_costs(most, work, |budgets, question| budgets.minimum(question, &[config], limit))?;
        if decides && asked.is_too_much {
            self.costs_too_much = limit;
        }
        Ok(asked.answer.map(|minimum| minimum.is_none()))
    }

    /// Whether at most `limit` tokens may make a sentence of one of the readings that one stands for.
    pub fn may_fit(&mut self, config: Config, limit: u32, work: &mut Work) -> Result<bool, StepError> {
        if limit >= self.costs_too_much {
            return Ok(true);
        }
        let asked = self
            .ask_costs(MOST_COST_STEPS, work, |budgets, question| budgets.may_fit(question, config, limit))?;
        if asked.is_too_much {
            self.costs_too_much = limit;
        }
        Ok(asked.answer.unwrap_or(true))
    }

    /// Forgets minimum costs if too much is kept of them.
    pub fn renew_costs(&mut self) {
        let most = self.constraint.language().limits().cache_bytes;
        self.budgets.take_if(|budgets| budgets.memory_usage() > most);
    }

    fn ask_costs<T>(
        &mut self,
        most: u64,
        work: &mut Work,
        ask: impl FnOnce(&mut Budgets, &mut Question<'_>) -> Result<T, StepError>,
    ) -> Result<Asked<T>, StepError> {
        let Self { constraint, stepper, budgets, .. } = self;
        let (language, trie) = (constraint.language(), constraint.vocabulary().trie());
        let make = || Box::new(Budgets::new(language, constraint.vocabulary()));
        let budgets = budgets.get_or_insert_with(make);
        let most = most.min(language.limits().cost_steps);
        let mut question = Question { stepper, language, trie, work: Work::new(most, "cost_steps") };
        let answer = ask(budgets, &mut question).ok();
        let used = question.work.used();
        // What is known already takes a step.
        work.spend(1 + (used / COST_STEPS_PER_STEP) as usize)?;
        Ok(Asked { is_too_much: answer.is_none() && used > most, answer })
    }

    /// The fewest tokens, at most `most`, that make a sentence of a reading; `None` if there are none.
    pub fn closing(
        &mut self,
        config: Config,
        most: u32,
        work: &mut Work,
    ) -> Result<Option<Arc<[TokenId]>>, StepError> {
        match self.closings.get(&config) {
            Some(Closing::Tokens(tokens)) => {
                return Ok(Some(tokens.clone()).filter(|tokens| tokens.len() <= most as usize));
            }
            Some(&Closing::MoreThan(known)) if known >= most => return Ok(None),
            _ => {}
        }
        if let Some(tokens) = self.finish(config, work)?
            && tokens.len() <= most as usize
        {
            return Ok(Some(tokens));
        }
        if self.takes_more(config, most, false, work)? == Some(true) {
            self.closings.insert(config, Closing::MoreThan(most));
            return Ok(None);
        }
        // In breadth, each reading with the one before and the token between.
        let mut seen: FxHashMap<Config, Option<(Config, TokenId)>> = FxHashMap::from_iter([(config, None)]);
        let mut level = vec![config];
        for n_tokens in 0..=most {
            if let Some(&goal) = level.iter().find(|&&reading| self.stepper.is_sentence(&[reading])) {
                let tokens = trace(&seen, goal);
                self.closings.insert(config, Closing::Tokens(tokens.clone()));
                return Ok(Some(tokens));
            }
            if n_tokens == most || level.is_empty() {
                break;
            }
            let mut next = Vec::new();
            for reading in level {
                self.each_token(reading, work, |after, tokens, special| {
                    let Some(token) = special.or(tokens.and_then(|tokens| tokens.first)) else { return };
                    seen.entry(after).or_insert_with(|| {
                        next.push(after);
                        Some((reading, token))
                    });
                })?;
            }
            level = next;
        }
        self.closings.insert(config, Closing::MoreThan(most));
        Ok(None)
    }
}

/// See [`Tables::few_tokens`].
fn few_tokens(constraint: &Constraint, outline: &Option<Arc<Outline>>) -> Rest {
    let used = &constraint.language().lexing().lexicon.used;
    let used = outline.as_ref().map_or_else(|| used.clone(), |outline| outline.kinds_of(used));
    let union = Tables::union(constraint, outline);
    let is_whole = |bytes: &[u8]| {
        let end = bytes.iter().fold(START, |state, &byte| union.step(state, union.class(byte)));
        let live = union.live(end);
        union.accepts(end).iter().any(|terminal| used.contains(terminal) && !live.contains(terminal))
    };
    // What is cut off of a short token, and what is in progress then. Of bytes that all terminals take for
    // the same one is enough.
    let kind = |bytes: &[u8]| {
        let (mut pieces, mut state) = (Vec::new(), START);
        for &byte in bytes {
            let class = union.class(byte);
            let mut next = union.step(state, class);
            if next == DEAD {
                pieces.push(state);
                next = union.step(START, class);
            }
            state = next;
        }
        let accepts = |state: u32| (union.accepts(state).clone(), union.live(state).clone());
        let pieces: Vec<_> = pieces.into_iter().map(accepts).collect();
        let single = (bytes.len() == 1).then(|| union.class(bytes[0]));
        (single, pieces, accepts(state))
    };
    let mut kinds = FxHashSet::default();
    let mut is_few = |bytes: &[u8]| {
        let is_new_kind = bytes.len() <= SHORT_TOKEN && kinds.insert(kind(bytes));
        is_new_kind || is_whole(bytes) || bytes[0] == b' ' && is_whole(&bytes[1..])
    };
    let vocabulary = constraint.vocabulary();
    let tokens =
        vocabulary.trie().order().iter().filter_map(|&token| Some((token, vocabulary.bytes(token)?)));
    let few: Vec<(TokenId, &[u8])> = tokens.filter(|(_, bytes)| is_few(bytes)).collect();
    let tokens = Tokens::new(few.iter().map(|&(token, _)| token).collect(), constraint.mask_words());
    let height = few.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0);
    Rest { id: u64::MAX, trie: TokenTrie::new(few), tokens: tokens.into(), height }
}

/// Bytes of a token that is put into holes where few are, whatever it is.
const SHORT_TOKEN: usize = 2;

/// The tokens on the way to a reading, each of which is known with the one before.
fn trace(seen: &FxHashMap<Config, Option<(Config, TokenId)>>, goal: Config) -> Arc<[TokenId]> {
    let mut tokens = Vec::new();
    let mut at = goal;
    while let Some(&Some((before, token))) = seen.get(&at) {
        tokens.push(token);
        at = before;
    }
    tokens.reverse();
    tokens.into()
}

/// Steps for which a minimum is looked for, and where it decides.
const COST_STEPS: u64 = 200_000;
const MOST_COST_STEPS: u64 = 4_000_000;

/// Steps in which upper bounds have to be found, once.
const UPPER_STEPS: u64 = 50_000_000;

/// Such steps that take as long as one of a canvas.
const COST_STEPS_PER_STEP: u64 = 16;
