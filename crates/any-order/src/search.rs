//! The search for a witness: a walk over pairs of a place in the canvas and one reading of the text before it.
//!
//! A reading ([`Config`]) knows no positions and equal ones are one, so what was found out about steps of the parser serves all slots of all
//! canvases. From a reading, a fixed token leads to a few readings and a hole to all that tokens lead to ([`crate::moves`]); a gap is left, or
//! takes a token and stays. The canvas is completable iff some walk comes to an end that is asked for. That is the meaning itself: each walk
//! reads one text from left to right, in every lexer mode.
//!
//! The walk goes in depth: what merely prolongs the piece in progress first. Places that were seen are not entered again. With gaps the order is by
//! the number of tokens in gaps, and in depth among equals; so the first completion found has the fewest. Without gaps there are finitely many
//! places, and a search that ends without a completion proves that there is none; their number is exponential in the number of holes
//! at worst, hence the limit.

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
use anygram_left_to_right::mask::{Rest, Tokens};
use anygram_lexer::dfa::{DEAD, START};
use anygram_lexer::transducer::LexemeId;
use anygram_recognizer::StateId;
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::admissible::Kept;
use crate::beam::{After, Beam, permissiveness};
use crate::canvas::End;
use crate::lattice::{Guide, Known, Lattice, Merging};
use crate::moves::{Ending, Pieces, Walk, Walks};
use crate::open::Open;
use crate::plan::{self, Place, Plan};
use crate::right::{Right, Rights};

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
    /// What is to come after states of the parser, and the sets of terminals that can come next.
    outlooks: FxHashMap<StateId, Outlook>,
    viable: FxHashMap<BitSet, u32>,
    /// Some of what one token makes of readings.
    pub afters: FxHashMap<Config, Arc<[After]>>,
    /// For each state of the union automaton the number of bytes that can follow.
    pub permissiveness: Box<[u16]>,
    /// Few tokens, of each kind some, once they are needed.
    few: Option<Arc<Rest>>,
    /// What was found out about the last canvas whose admissible tokens were sought.
    pub kept: Option<Box<Kept>>,
}

/// What is to come after a state of the parser.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Outlook {
    /// The fewest terminals that make a sentence.
    pub lacking: u32,
    /// Which terminals can come next: a number for each set.
    pub viable: u32,
}

#[derive(Clone)]
enum Closing {
    Tokens(Arc<[TokenId]>),
    MoreThan(u32),
}

/// How a search came out.
pub(crate) enum Outcome {
    Found(Found),
    /// There is no completion, within the number of tokens in gaps that was allowed.
    None,
    /// The steps allowed were spent.
    OutOfSteps,
}

/// A completion, by the tokens of each slot up to the end of the text.
pub(crate) struct Found {
    /// The slot of the EOS, or the number of slots.
    pub end: usize,
    pub tokens: Vec<(usize, TokenId)>,
    /// Tokens in gaps.
    pub n_in_gaps: usize,
    /// Where the whole row ends as a prefix with a bound: tokens that make a sentence of it.
    pub closing: Vec<TokenId>,
}

/// What bounds a search.
pub(crate) struct Bounds {
    /// Places entered.
    pub visits: usize,
    /// Places entered in vain from one that the search starts with, after which it goes on with the next one.
    pub in_vain: usize,
    /// The number of tokens of the text stays below this.
    pub below: Option<usize>,
    /// A hole, and the tokens that it may hold.
    pub one_of: Option<(usize, Open)>,
    /// Another number, another order of the ways to fill a hole; 0 for what merely prolongs a piece first.
    pub order: u64,
}

/// A hole of which the tokens are sought.
pub(crate) struct Sought<'a> {
    pub hole: usize,
    /// Readings of texts that can stand before some slots up to the hole; from the last ones it is sought first.
    pub before: &'a [(usize, Vec<Config>)],
    /// Whether it is sought from others as well.
    pub depth: Depth,
    /// Places entered, and of these from one reading in vain.
    pub visits: usize,
    pub in_vain: usize,
    /// Tokens that are not sought; those that are found come to them.
    pub words: &'a mut Vec<u32>,
    /// What can stand before the slots, where more is known of that than what is fixed says.
    pub right: Option<Right>,
    /// What is known of places beyond the hole, and of it also those that a search of a hole further right left.
    pub verdicts: &'a mut Verdicts,
}

/// How far tokens of a hole are sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// From the readings that are given, tokens that prolong a piece or end with it.
    Shallow,
    /// From the readings that are given.
    Given,
    /// Then from all others.
    All,
}

/// Places from which the canvas is known to be completable, or not to be.
#[derive(Default)]
pub(crate) struct Verdicts {
    good: FxHashSet<Key>,
    bad: FxHashSet<Key>,
}

impl Verdicts {
    /// Forgets what was found out about places before a slot.
    pub fn keep_from(&mut self, slot: usize) {
        for keys in [&mut self.good, &mut self.bad] {
            keys.retain(|key| key.slot as usize >= slot);
        }
    }

    pub fn memory_usage(&self) -> usize {
        (self.good.capacity() + self.bad.capacity()) * size_of::<Key>()
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self { visits: usize::MAX, in_vain: usize::MAX, below: None, one_of: None, order: 0 }
    }
}

/// What it takes to keep what one token makes of a reading, roughly.
const AFTERS_BYTES: usize = 2_048;

/// A place entered costs a few look-ups, and now and then a new state of the parser.
const STEPS_PER_VISIT: usize = 16;
const STEPS_PER_ITEM: usize = 8;

/// A place: before a slot (`rest` is 0), or inside a token that stands there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    slot: u32,
    rest: u32,
    config: Config,
}

struct Node {
    key: Key,
    parent: u32,
    /// The token that ended with the step to this place.
    token: Option<TokenId>,
}

/// A place that is being left, one way after the other.
struct Frame {
    node: u32,
    rest: Option<Arc<Rest>>,
    ways: Ways,
    /// How many ways were tried, and which came first.
    at: usize,
    first: usize,
    /// The way taken last, where it is the end of a token.
    taken: Option<Taken>,
    /// See [`Search::useful`], once it is asked for.
    useful: Option<Arc<BitSet>>,
}

/// How a token ended.
enum Taken {
    /// As one of those that prolong the piece.
    Stay(usize),
    /// As one of those that end with the piece.
    End(usize),
    One(TokenId),
}

impl Frame {
    fn walk_tokens(&self, of: impl for<'w> FnOnce(&'w Walk) -> &'w Ending) -> Option<&Ending> {
        match &self.ways {
            Ways::Walk { walk, .. } => Some(of(walk)),
            Ways::None | Ways::Fixed(..) => None,
        }
    }
}

enum Ways {
    None,
    Fixed(TokenId, Arc<[Config]>),
    /// The first way leaves the slot empty, if it may be.
    Walk {
        leave: bool,
        walk: Arc<Walk>,
        n_specials: usize,
    },
}

impl Ways {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Fixed(_, readings) => readings.len(),
            Self::Walk { leave, walk, n_specials } => {
                usize::from(*leave) + walk.stays.len() + 2 * walk.exits.len() + n_specials
            }
        }
    }
}

/// A number that looks random (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}

/// A step from one place to another.
struct Step {
    slot: u32,
    rest: Option<Arc<Rest>>,
    config: Config,
    token: Option<TokenId>,
    /// Whether it put a token into a gap.
    in_gap: bool,
}

impl Tables {
    pub fn new(constraint: &Constraint) -> Result<Self, StepError> {
        Ok(Self {
            constraint: constraint.clone(),
            stepper: Stepper::interning(constraint.language())?,
            walks: Walks::new(),
            rights: Rights::new(constraint),
            reads: FxHashMap::default(),
            closings: FxHashMap::default(),
            finishes: FxHashMap::default(),
            lattice: Known::default(),
            budgets: None,
            outlooks: FxHashMap::default(),
            viable: FxHashMap::default(),
            afters: FxHashMap::default(),
            permissiveness: permissiveness(constraint),
            few: None,
            kept: None,
        })
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
            + self.kept.as_ref().map_or(0, |kept| kept.memory_usage())
    }

    /// Whether so much is kept that it is better to begin afresh.
    pub fn is_full(&self) -> bool {
        let limits = self.constraint.language().limits();
        let afters = self.afters.len() * AFTERS_BYTES;
        let kept = afters + (self.reads.len() + self.closings.len() + self.finishes.len() + self.outlooks.len()) * 64;
        kept + self.rights.memory_usage() + self.lattice.memory_usage() > limits.cache_bytes
            || self.stepper.recognizer().n_items() > limits.shared_items
            || self.stepper.transducer().n_lexemes() > limits.lexer.lexemes / 2
    }

    /// Forgets what is known of parser states if so much is kept that it is better to begin afresh, and what is known of pieces if that is too much too.
    pub fn renew(&mut self) -> Result<(), StepError> {
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
        // They are millions of small pieces, which takes a few hundred milliseconds; nobody has to wait for that.
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
        let mut readings = Frontier::new();
        for (_, terminal) in plan::specials(constraint).filter(|&(named, _)| named == token) {
            readings.extend(stepper.step_special(language, &[config], terminal)?);
        }
        if let Some(bytes) = constraint.vocabulary().bytes(token) {
            let mut at = vec![config];
            let mut next = Frontier::new();
            for &byte in bytes {
                // One by one: readings that meet stay apart, so that all are what other texts lead to as well.
                let mut all = Frontier::new();
                for &reading in &at {
                    stepper.step(language, &[reading], byte, &mut next)?;
                    all.append(&mut next);
                }
                all.sort_unstable();
                all.dedup();
                at = all;
            }
            readings.append(&mut at);
        }
        readings.sort_unstable();
        readings.dedup();
        let readings: Arc<[Config]> = readings.into();
        self.reads.insert((config, token), readings.clone());
        Ok(readings)
    }

    /// Few tokens that do most of what all can do: the short ones, and those that are one piece which cannot go on, perhaps behind a blank. As what is left of
    /// them where nothing was read yet.
    pub fn few_tokens(&mut self) -> Arc<Rest> {
        let constraint = &self.constraint;
        self.few.get_or_insert_with(|| Arc::new(few_tokens(constraint))).clone()
    }

    /// What any token does to a reading, or what is left of some tokens.
    pub fn walk(&mut self, config: Config, rest: Option<&Arc<Rest>>) -> Result<Arc<Walk>, StepError> {
        let Self { constraint, stepper, walks, .. } = self;
        let trie = rest.map_or((0, constraint.vocabulary().trie()), |rest| (rest.id, &rest.trie));
        walks.get(stepper, constraint.language(), trie, (config.lexeme, Pieces::Exact), constraint.mask_words())
    }

    /// What any token does to a reading that stands for several.
    pub fn walk_merged(&mut self, config: Config, rest: Option<&Arc<Rest>>) -> Result<Arc<Walk>, StepError> {
        let Self { constraint, stepper, walks, .. } = self;
        let trie = rest.map_or((0, constraint.vocabulary().trie()), |rest| (rest.id, &rest.trie));
        walks.get(stepper, constraint.language(), trie, (config.lexeme, Pieces::Loose), constraint.mask_words())
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
            Some(End::Prefix { remaining: None }) => self.stepper.is_viable(self.constraint.language(), &[config])?,
            Some(End::Prefix { remaining: Some(most) }) => self.closing(config, most, work)?.is_some(),
        })
    }

    /// Some tokens that make a sentence of a reading, without regard to their number: always towards the fewest terminals lacking. `None` if that
    /// does not lead to one soon.
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

    /// Whether it is certain that more than `limit` tokens are needed to make a sentence of a reading. Looks no further than a number of steps, and
    /// beyond that it is `None`.
    pub fn takes_more(&mut self, config: Config, limit: u32, work: &mut Work) -> Result<Option<bool>, StepError> {
        let Self { constraint, stepper, budgets, .. } = self;
        let (language, trie) = (constraint.language(), constraint.vocabulary().trie());
        let budgets = budgets.get_or_insert_with(|| Box::new(Budgets::new(language, trie)));
        let own = Work::new(COST_STEPS.min(language.limits().cost_steps), "cost_steps");
        let mut question = Question { stepper, language, trie, work: own };
        let minimum = budgets.minimum(&mut question, &[config], limit);
        // What is known already takes a step.
        work.spend(1)?;
        match minimum {
            Ok(minimum) => Ok(Some(minimum.is_none())),
            Err(_) => {
                work.spend(COST_STEPS as usize)?;
                Ok(None)
            }
        }
    }

    /// The fewest tokens, at most `most`, that make a sentence of a reading; `None` if there are none.
    pub fn closing(&mut self, config: Config, most: u32, work: &mut Work) -> Result<Option<Arc<[TokenId]>>, StepError> {
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
        if self.takes_more(config, most, work)? == Some(true) {
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
fn few_tokens(constraint: &Constraint) -> Rest {
    let lexicon = &constraint.language().lexing().lexicon;
    let union = &lexicon.union;
    let is_whole = |bytes: &[u8]| {
        let end = bytes.iter().fold(START, |state, &byte| union.step(state, union.class(byte)));
        let live = union.live(end);
        union.accepts(end).iter().any(|terminal| lexicon.used.contains(terminal) && !live.contains(terminal))
    };
    // What is cut off of a short token, and what is in progress then. Of bytes that all terminals take for the same one is enough.
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
    let tokens = vocabulary.trie().order().iter().filter_map(|&token| Some((token, vocabulary.bytes(token)?)));
    let few: Vec<(TokenId, &[u8])> = tokens.filter(|(_, bytes)| is_few(bytes)).collect();
    let tokens = Tokens::new(few.iter().map(|&(token, _)| token).collect(), constraint.mask_words());
    let height = few.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0);
    Rest { id: u32::MAX, trie: TokenTrie::new(few), tokens, height }
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

/// Steps for which a minimum is looked for.
const COST_STEPS: u64 = 200_000;

/// Tokens up to which it is asked whether a text can be completed in so many: with more it nearly always can.
const MOST_ROOM: u32 = 16;

/// Readings that a quick look for a completion leaves.
const MOST_EXPANDED: usize = 64;

/// One search, which can be resumed after a completion for the next one.
pub(crate) struct Search<'a> {
    tables: &'a mut Tables,
    plan: &'a Plan,
    right: Right,
    /// From here on there are holes only.
    tail: usize,
    /// Whether minimum costs are asked for.
    asks_costs: bool,
    work: &'a mut Work,
    bounds: Bounds,
    /// What keeps the search from places that lead nowhere, if it is asked.
    guide: Option<Guide>,
    /// A hole of which no tokens are looked at that go on behind the end of a piece.
    shallow: Option<usize>,
    nodes: Vec<Node>,
    /// Places that need not be entered: they were.
    seen: FxHashSet<Key>,
    /// The same of places beyond the hole of [`Bounds::one_of`], where what is found out holds for other searches too.
    verdicts: Verdicts,
    stack: Vec<Frame>,
    /// Places to enter, and those to enter when these are done, for they take one more token in a gap.
    waiting: Vec<(Step, u32)>,
    later: Vec<(Step, u32)>,
    n_in_gaps: usize,
    visits: usize,
    /// Places entered since the start or the last completion, and whether something was left out because these were too many.
    in_vain: usize,
    has_left_out: bool,
    /// What the parser had done when it was last asked.
    effort: usize,
    n_specials: usize,
    /// The ways to leave a slot with a piece at a place, or what is left of tokens there, that can be of use, as far as lexing and the tokens that are sought know; and
    /// after how many completions that was found out.
    useful: FxHashMap<(u32, LexemeId, u32), (usize, Arc<BitSet>)>,
    n_found: usize,
}

impl<'a> Search<'a> {
    /// A search that has not begun.
    pub fn new(tables: &'a mut Tables, plan: &'a Plan, work: &'a mut Work, bounds: Bounds) -> Self {
        let n_specials = plan::specials(&tables.constraint).count();
        let effort = tables.stepper.recognizer().effort();
        let right = tables.right(plan);
        Self {
            tables,
            plan,
            right,
            tail: plan.places.iter().rposition(|place| *place != Place::Free).map_or(0, |last| last + 1),
            asks_costs: true,
            work,
            bounds,
            guide: None,
            shallow: None,
            nodes: Vec::new(),
            seen: FxHashSet::default(),
            verdicts: Verdicts::default(),
            stack: Vec::new(),
            waiting: Vec::new(),
            later: Vec::new(),
            n_in_gaps: 0,
            visits: 0,
            in_vain: 0,
            has_left_out: false,
            effort,
            n_specials,
            useful: FxHashMap::default(),
            n_found: 0,
        }
    }

    /// Whether lexing alone says that there is no completion.
    pub fn is_hopeless(&self) -> bool {
        self.right.is_hopeless
    }

    /// Lets the search ask of every place before it is entered whether it leads anywhere, as far as merged readings tell ([`crate::lattice`]). For canvases
    /// without gaps. Costs much more a place; in `scannerless` and `longest` then no place is entered in vain.
    pub fn guided(mut self, merging: Merging) -> Self {
        self.guide = Some(Lattice::new(self.tables, self.plan, merging, self.work).into_guide());
        self
    }

    /// Begins with texts that can stand left of slots, with those of the last ones first, and goes on from each until so many places were entered in
    /// vain. That it finds nothing proves nothing.
    pub fn run_from(mut self, beam: &Beam, in_vain: usize) -> Result<Outcome, StepError> {
        self.has_left_out = true;
        let mut before: Vec<u32> = Vec::new();
        for (slot, readings) in beam.slots().iter().enumerate() {
            let mut nodes = Vec::with_capacity(readings.len());
            for reached in readings {
                let key = Key { slot: slot as u32, rest: 0, config: reached.config };
                let parent = before.get(reached.from as usize).copied().unwrap_or(u32::MAX);
                let step = Step { slot: key.slot, rest: None, config: key.config, token: reached.token, in_gap: false };
                nodes.push(self.nodes.len() as u32);
                self.nodes.push(Node { key, parent, token: reached.token });
                self.waiting.push((step, parent));
            }
            before = nodes;
        }
        self.bounds.in_vain = in_vain + self.plan.places.len();
        self.resume()
    }

    /// The completion with the fewest tokens in gaps, or one of them.
    pub fn run(mut self) -> Result<Outcome, StepError> {
        self.begin()?;
        self.resume()
    }

    fn begin(&mut self) -> Result<(), StepError> {
        if !self.right.is_hopeless
            && let Some(config) = self.tables.start()?
        {
            let first = Step { slot: 0, rest: None, config, token: None, in_gap: false };
            self.waiting.push((first, u32::MAX));
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<Outcome, StepError> {
        loop {
            while let Some(mut frame) = self.stack.pop() {
                let node = frame.node;
                let Some(step) = self.next(&mut frame)? else { continue };
                self.stack.push(frame);
                self.visits += 1;
                self.in_vain += 1;
                let effort = self.tables.stepper.recognizer().effort();
                self.work.spend(STEPS_PER_VISIT + STEPS_PER_ITEM * effort.saturating_sub(self.effort))?;
                self.effort = effort;
                if self.visits > self.bounds.visits {
                    return Ok(Outcome::OutOfSteps);
                }
                if self.in_vain > self.bounds.in_vain {
                    self.leave_out();
                    continue;
                }
                if step.in_gap {
                    self.later.push((step, node));
                } else if let Some(found) = self.enter(step, node)? {
                    return Ok(Outcome::Found(found));
                }
            }
            if self.waiting.is_empty() {
                self.n_in_gaps += 1;
                if self.later.is_empty() || self.bounds.below.is_some_and(|below| self.n_in_gaps >= below) {
                    return Ok(Outcome::None);
                }
                std::mem::swap(&mut self.waiting, &mut self.later);
                // Those that came first are entered first.
                self.waiting.reverse();
            }
            self.in_vain = 0;
            if let Some((step, parent)) = self.waiting.pop()
                && let Some(found) = self.enter(step, parent)?
            {
                return Ok(Outcome::Found(found));
            }
        }
    }

    /// The tokens of the text that a hole can hold, added to `words`, which are left out before; for canvases without gaps. Returns whether all that
    /// are possible were found. First from readings that are known to stand before the hole; then, if need be, every place before the hole is entered
    /// once, and every way to leave it tried once.
    pub fn admissible(
        tables: &'a mut Tables,
        plan: &'a Plan,
        work: &'a mut Work,
        Sought { hole, before, depth, visits, in_vain, words, right, verdicts }: Sought<'_>,
    ) -> Result<bool, StepError> {
        // To come to the end once is not too much.
        let in_vain = in_vain + plan.places.len().saturating_sub(hole);
        let open = Open::new(std::mem::take(words));
        let bounds = Bounds { visits, in_vain, one_of: Some((hole, open)), ..Bounds::default() };
        let mut search = Self::new(tables, plan, work, bounds);
        search.shallow = (depth == Depth::Shallow).then_some(hole);
        search.right = right.unwrap_or(search.right);
        search.verdicts = std::mem::take(verdicts);
        for (slot, readings) in before {
            let first =
                |&config| (Step { slot: *slot as u32, rest: None, config, token: None, in_gap: false }, u32::MAX);
            search.waiting.extend(readings.iter().map(first));
        }
        let mut is_begun = depth != Depth::All;
        let outcome = loop {
            match search.resume() {
                Ok(Outcome::Found(_)) => {
                    search.in_vain = 0;
                    search.admit(hole);
                }
                Ok(Outcome::None) if !is_begun && !search.has_all() => {
                    is_begun = true;
                    // To see all from the start is to see all there is.
                    (search.bounds.in_vain, search.has_left_out) = (usize::MAX, false);
                    if let Err(error) = search.begin() {
                        break Err(error);
                    }
                }
                Ok(Outcome::None) => break Ok(depth == Depth::All && !search.has_left_out || search.has_all()),
                Ok(Outcome::OutOfSteps) => break Ok(search.has_all()),
                Err(error) => break Err(error),
            }
            if search.has_all() {
                break Ok(true);
            }
        };
        // What lies beyond the hole does not depend on it, unless it was being looked at.
        search.leave_out();
        if outcome.is_ok() {
            *verdicts = std::mem::take(&mut search.verdicts);
        }
        *words = search.bounds.one_of.take().map(|(_, open)| open.into_words()).unwrap_or_default();
        outcome
    }

    /// Goes no further from where the search is. What was not seen to its end there can be entered again.
    fn leave_out(&mut self) {
        self.has_left_out = true;
        for frame in std::mem::take(&mut self.stack) {
            let key = self.nodes[frame.node as usize].key;
            self.entered(&key).remove(&key);
        }
    }

    /// Whether a place lies beyond the hole of which tokens are sought.
    fn is_beyond(&self, key: &Key) -> bool {
        self.bounds.one_of.as_ref().is_some_and(|(hole, _)| key.slot as usize > *hole)
    }

    /// The places like this one that were entered.
    fn entered(&mut self, key: &Key) -> &mut FxHashSet<Key> {
        if self.is_beyond(key) { &mut self.verdicts.bad } else { &mut self.seen }
    }

    /// Whether every token is one of those that are not sought.
    fn has_all(&self) -> bool {
        self.bounds.one_of.as_ref().is_some_and(|(_, open)| open.is_empty())
    }

    /// A completion was found: all tokens that lead the same way at the hole are admissible, and the search goes on from there.
    fn admit(&mut self, hole: usize) {
        self.n_found += 1;
        let beyond = self.stack.iter().position(|frame| self.nodes[frame.node as usize].key.slot as usize > hole);
        let n_kept = beyond.unwrap_or(self.stack.len());
        for frame in self.stack.drain(n_kept..) {
            self.verdicts.good.insert(self.nodes[frame.node as usize].key);
        }
        // The place where the search ended has no frame.
        let last = self.nodes.last().map(|node| node.key);
        self.verdicts.good.extend(last.filter(|key| key.slot as usize > hole));
        if let (Some(frame), Some((_, open))) = (self.stack.last(), &mut self.bounds.one_of) {
            match &frame.taken {
                Some(Taken::Stay(at)) => {
                    frame.walk_tokens(|walk| &walk.stays[*at].1).into_iter().for_each(|t| open.remove(t));
                }
                Some(Taken::End(at)) => {
                    frame.walk_tokens(|walk| &walk.exits[*at].ends).into_iter().for_each(|t| open.remove(t));
                }
                Some(Taken::One(token)) => open.remove_one(*token),
                None => {}
            }
        }
    }

    /// Comes to a place: a completion if the text can end there, else one more frame.
    fn enter(&mut self, step: Step, parent: u32) -> Result<Option<Found>, StepError> {
        let Step { slot, rest, config, token, .. } = step;
        let key = Key { slot, rest: rest.as_ref().map_or(0, |rest| rest.id), config };
        if rest.is_none() && !self.is_allowed(slot, config.lexeme) {
            return Ok(None);
        }
        let is_good = self.is_beyond(&key) && self.verdicts.good.contains(&key);
        if !is_good && !self.entered(&key).insert(key) {
            return Ok(None);
        }
        if rest.is_none()
            && let Some(guide) = self.guide.take()
        {
            let mut lattice = Lattice::resume(self.tables, self.plan, self.work, guide);
            let leads_on = lattice.is_good(slot as usize, config);
            self.guide = Some(lattice.into_guide());
            if !leads_on? {
                return Ok(None);
            }
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { key, parent, token });
        if is_good {
            return Ok(Some(self.found(node, slot as usize, Vec::new())));
        }
        if rest.is_none()
            && let Some(closing) = self.accepts(slot as usize, config)?
        {
            return Ok(Some(self.found(node, slot as usize, closing)));
        }
        if rest.is_none()
            && let Some(tokens) = self.finishes_in(slot as usize, config)?
        {
            let mut found = self.found(node, slot as usize + tokens.len(), Vec::new());
            found.tokens.extend((slot as usize..).zip(tokens.iter().copied()));
            return Ok(Some(found));
        }
        if rest.is_none()
            && self.asks_costs
            && let Some(limit) = self.room(slot as usize)
        {
            match self.tables.takes_more(config, limit, self.work)? {
                Some(true) => return Ok(None),
                Some(false) => {}
                // It was in vain, and will be in vain again.
                None => self.asks_costs = false,
            }
        }
        let ways = self.ways(slot as usize, config, rest.as_ref())?;
        let first = match self.bounds.order {
            0 => 0,
            order => mixed(order ^ u64::from(slot) << 32 ^ u64::from(node)) as usize % ways.len().max(1),
        };
        self.stack.push(Frame { node, rest, ways, at: 0, first, taken: None, useful: None });
        Ok(None)
    }

    /// Whether lexing can go on with what is fixed from a slot on.
    #[inline]
    fn is_allowed(&self, slot: u32, lexeme: LexemeId) -> bool {
        self.right.allows(slot as usize, self.tables.stepper.transducer().union_state(lexeme))
    }

    /// Whether the text may end before a slot; then perhaps with tokens that make a sentence of it.
    fn accepts(&mut self, slot: usize, config: Config) -> Result<Option<Vec<TokenId>>, StepError> {
        let (plan, n_in_gaps, below) = (self.plan, self.n_in_gaps, self.bounds.below);
        let few_enough = || below.is_none_or(|below| plan.n_tokens_before(slot) + n_in_gaps < below);
        let Tables { stepper, constraint, .. } = &mut *self.tables;
        let accepted = if slot < self.plan.places.len() {
            self.plan.ends[slot] && stepper.is_sentence(&[config])
        } else {
            match self.plan.whole {
                None => false,
                Some(End::Sentence) => stepper.is_sentence(&[config]),
                Some(End::Prefix { remaining: None }) => stepper.is_viable(constraint.language(), &[config])?,
                Some(End::Prefix { remaining: Some(most) }) => {
                    let closing = self.tables.closing(config, most, self.work)?;
                    return Ok(closing.filter(|_| few_enough()).map(|tokens| tokens.to_vec()));
                }
            }
        };
        Ok((accepted && few_enough()).then(Vec::new))
    }

    /// Tokens that make a sentence of a reading, where holes alone follow and one is left for the EOS. Only the first search for a completion
    /// asks for them, for others it matters which one is found.
    fn finishes_in(&mut self, slot: usize, config: Config) -> Result<Option<Arc<[TokenId]>>, StepError> {
        let is_tail = slot < self.plan.places.len() && self.plan.ends[slot] && self.plan.places[slot] == Place::Free;
        if !is_tail || self.bounds.below.is_some() || self.bounds.one_of.is_some() || !self.holes_follow(slot) {
            return Ok(None);
        }
        let Some(tokens) = self.tables.finish(config, self.work)? else { return Ok(None) };
        let end = slot + tokens.len();
        let is_end = if end == self.plan.places.len() {
            self.plan.whole.is_some()
        } else {
            self.plan.ends.get(end) == Some(&true)
        };
        Ok(is_end.then_some(tokens))
    }

    /// The most tokens that a sentence may have from a slot on, where nothing but holes follows and there is a bound on the whole.
    fn room(&self, slot: usize) -> Option<u32> {
        let n_slots = self.plan.places.len();
        if slot + 1 >= n_slots || slot < self.tail || self.plan.whole != Some(End::Sentence) {
            return None;
        }
        let below = self.bounds.below?.checked_sub(1)?;
        let left = below.checked_sub(self.plan.n_tokens_before(slot) + self.n_in_gaps)?;
        u32::try_from(left.min(n_slots - slot)).ok().filter(|&most| most <= MOST_ROOM)
    }

    /// Whether nothing but holes follows from a slot on.
    fn holes_follow(&self, slot: usize) -> bool {
        slot >= self.tail
    }

    fn found(&self, node: u32, end: usize, closing: Vec<TokenId>) -> Found {
        let mut tokens = Vec::new();
        let mut at = node;
        while let Some(Node { parent, token, .. }) = self.nodes.get(at as usize) {
            // A token ends where its slot, or one round of a gap, is left.
            if let (Some(token), Some(before)) = (token, self.nodes.get(*parent as usize)) {
                tokens.push((before.key.slot as usize, *token));
            }
            at = *parent;
        }
        tokens.reverse();
        Found { end, tokens, n_in_gaps: self.n_in_gaps, closing }
    }

    /// The ways of a walk that can be of use: of the hole of which tokens are sought all, of other slots those that go on behind the end of a piece.
    fn useful(&mut self, after: u32, frame: &Frame) -> Result<Arc<BitSet>, StepError> {
        let Key { slot, rest: rest_id, config } = self.nodes[frame.node as usize].key;
        let Ways::Walk { leave, walk, n_specials } = &frame.ways else {
            return Ok(Arc::new(BitSet::new(0)));
        };
        let is_sought = self.bounds.one_of.as_ref().is_some_and(|(hole, _)| *hole == slot as usize);
        let n_found = if is_sought { self.n_found } else { 0 };
        let key = (slot, config.lexeme, rest_id);
        let known = self.useful.get(&key).cloned();
        if let Some((known_after, useful)) = &known
            && *known_after == n_found
        {
            return Ok(useful.clone());
        }
        let (n_stays, n_exits) = (walk.stays.len(), walk.exits.len());
        let first = usize::from(*leave);
        let mut useful = BitSet::new(frame.ways.len());
        let was_useful = |way: usize| known.as_ref().is_none_or(|(_, useful)| useful.contains(way));
        if is_sought && let Some((_, open)) = &self.bounds.one_of {
            let can_end = self.right.allows(after as usize, START);
            let stays = walk.stays.iter().zip(first..).filter(|(_, way)| was_useful(*way));
            let stays =
                stays.filter(|((lexeme, tokens), _)| self.is_allowed(after, *lexeme) && open.first(tokens).is_some());
            useful.extend(stays.map(|(_, way)| way));
            let ends = walk.exits.iter().zip(first + n_stays..).filter(|(_, way)| was_useful(*way));
            let ends = ends.filter(|(exit, _)| can_end && open.first(&exit.ends).is_some());
            useful.extend(ends.map(|(_, way)| way));
        }
        let beyond = first + n_stays + n_exits + n_specials;
        useful.insert_range(if is_sought { beyond - n_specials } else { 0 }, beyond);
        for (at, exit) in walk.exits.iter().enumerate().filter(|(at, _)| was_useful(beyond + at)) {
            if self.shallow == Some(slot as usize) {
                break;
            }
            // What nobody asked for yet is not made for this.
            if !exit.knows_rest() || self.goes_on(after, walk, at, frame.rest.as_ref())?.is_some() {
                useful.insert(beyond + at);
            }
        }
        let useful = Arc::new(useful);
        self.useful.insert(key, (n_found, useful.clone()));
        Ok(useful)
    }

    /// What is left of tokens beyond an exit, if lexing can get through it, and tokens are among them that are sought.
    fn goes_on(
        &mut self,
        after: u32,
        walk: &Walk,
        exit: usize,
        rest: Option<&Arc<Rest>>,
    ) -> Result<Option<Arc<Rest>>, StepError> {
        let Some(beyond) = self.tables.beyond(walk, exit, rest, self.work)? else { return Ok(None) };
        let sought = self.bounds.one_of.as_ref().filter(|(hole, _)| *hole + 1 == after as usize);
        if sought.is_some_and(|(_, open)| !open.has_some(&beyond)) {
            return Ok(None);
        }
        let leads = self.right.is_all(after as usize)
            || self.tables.leads(&beyond, self.right.states(after as usize), self.work)?;
        Ok(Some(beyond).filter(|_| leads))
    }

    fn ways(&mut self, slot: usize, config: Config, rest: Option<&Arc<Rest>>) -> Result<Ways, StepError> {
        let Some(&place) = self.plan.places.get(slot) else { return Ok(Ways::None) };
        Ok(match place {
            Place::Closed => Ways::None,
            Place::Token(token) => Ways::Fixed(token, self.tables.read(config, token)?),
            Place::Free | Place::Gap | Place::Optional => {
                let is_before = rest.is_none();
                let n_specials = if is_before { self.n_specials } else { 0 };
                let leave = is_before && place != Place::Free;
                Ways::Walk { leave, walk: self.tables.walk(config, rest)?, n_specials }
            }
        })
    }

    /// The next step from a place.
    fn next(&mut self, frame: &mut Frame) -> Result<Option<Step>, StepError> {
        let Key { slot, config, .. } = self.nodes[frame.node as usize].key;
        let in_gap = self.plan.places.get(slot as usize) == Some(&Place::Gap);
        let after = if in_gap { slot } else { slot + 1 };
        let is_sought = self.bounds.one_of.as_ref().is_some_and(|(hole, _)| *hole == slot as usize);
        loop {
            let n_ways = frame.ways.len();
            if frame.at == n_ways {
                return Ok(None);
            }
            let at = (frame.first + frame.at) % n_ways;
            frame.at += 1;
            let to = |config, token| Ok(Some(Step { slot: after, rest: None, config, token: Some(token), in_gap }));
            let (leave, walk, n_specials) = match &frame.ways {
                Ways::None => return Ok(None),
                Ways::Fixed(token, readings) => {
                    let Some(&config) = readings.get(at) else { return Ok(None) };
                    return to(config, *token);
                }
                Ways::Walk { leave, walk, n_specials } => (*leave, walk, *n_specials),
            };
            let mut way = at;
            if leave {
                if way == 0 {
                    let step = Step { slot: slot + 1, rest: None, config, token: None, in_gap: false };
                    return Ok(Some(step));
                }
                way -= 1;
            }
            if is_sought || way >= walk.stays.len() + walk.exits.len() + n_specials {
                if frame.useful.is_none() {
                    frame.useful = Some(self.useful(after, frame)?);
                    frame.at -= 1;
                    continue;
                }
                if frame.useful.as_ref().is_some_and(|useful| !useful.contains(at)) {
                    continue;
                }
            }
            let sought = self.bounds.one_of.as_ref().filter(|_| is_sought).map(|(_, open)| open);
            let pick = |ending: &Ending| match sought {
                Some(open) => open.first(ending),
                None => ending.first,
            };
            if let Some(&(lexeme, ref tokens)) = walk.stays.get(way) {
                if !self.is_allowed(after, lexeme) {
                    continue;
                }
                match pick(tokens) {
                    Some(token) => {
                        frame.taken = Some(Taken::Stay(way));
                        return to(Config { state: config.state, lexeme }, token);
                    }
                    None => continue,
                }
            }
            way -= walk.stays.len();
            if way < walk.exits.len() {
                if self.right.allows(after as usize, START)
                    && let Some(token) = pick(&walk.exits[way].ends)
                    && let Some(config) = self.tables.end(config, walk, way)?
                {
                    frame.taken = Some(Taken::End(way));
                    return to(config, token);
                }
                continue;
            }
            way -= walk.exits.len();
            if way < n_specials {
                let Some((token, terminal)) = plan::specials(&self.tables.constraint).nth(way) else { continue };
                if sought.is_some_and(|open| !open.contains(token)) {
                    continue;
                }
                let language = self.tables.constraint.language().clone();
                // At most one reading comes of one reading and one terminal.
                match self.tables.stepper.step_special(&language, &[config], terminal)?.first() {
                    Some(&config) => {
                        frame.taken = Some(Taken::One(token));
                        return to(config, token);
                    }
                    None => continue,
                }
            }
            way -= n_specials;
            if way < walk.exits.len() && self.shallow != Some(slot as usize) {
                let Some(config) = self.tables.end(config, walk, way)? else { continue };
                let Some(rest) = self.goes_on(after, walk, way, frame.rest.as_ref())? else { continue };
                return Ok(Some(Step { slot, rest: Some(rest), config, token: None, in_gap: false }));
            }
            return Ok(None);
        }
    }
}
