//! The search for a witness: a walk over pairs of a place in the canvas and one reading of the text before
//! it.
//!
//! From a reading ([`Config`]), a fixed token leads to a few readings and a hole to all that tokens lead to
//! ([`crate::moves`]); a gap is left, or takes a token and stays. The canvas is completable iff some walk
//! comes to an end that is asked for. That is the meaning itself: each walk reads one text from left to
//! right, in every lexer mode.
//!
//! The walk goes in depth: what merely prolongs the piece in progress first. Places that were seen are not
//! entered again. With gaps the order is by the number of tokens in gaps, and in depth among equals; so the
//! first completion found has the fewest. Without gaps there are finitely many places, and a search that ends
//! without a completion proves that there is none; their number is exponential in the number of holes at
//! worst, hence the limit.

use std::borrow::Cow;
use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_lexer::dfa::START;
use anygram_lexer::transducer::LexemeId;
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::canvas::End;
use crate::confirm::Confirm;
use crate::moves::{Ending, Walk};
use crate::open::Open;
use crate::plan::{self, Place, Plan};
use crate::right::Right;
use crate::tables::{STEPS_PER_VISIT, Tables};

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

impl Found {
    /// The same for a canvas to whose slots, and whose end, those of this one belong.
    pub fn in_slots(&self, belongs: &[usize]) -> Self {
        Self {
            end: belongs[self.end],
            tokens: self.tokens.iter().map(|&(slot, token)| (belongs[slot], token)).collect(),
            n_in_gaps: self.n_in_gaps,
            closing: self.closing.clone(),
        }
    }
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
}

/// A hole of which the tokens are sought.
pub(crate) struct Sought<'a> {
    pub hole: usize,
    /// Readings of texts that can stand before some slots up to the hole; from the last ones it is sought
    /// first.
    pub before: &'a [(usize, Cow<'a, [Config]>)],
    /// Whether it is sought from others as well.
    pub depth: Depth,
    /// Places entered, and of these from one reading in vain.
    pub visits: usize,
    pub in_vain: usize,
    /// After how many in vain it is asked what minimum costs say of the end of a sentence.
    pub costs_after: usize,
    /// Tokens that are not sought; those that are found come to them.
    pub words: &'a mut Vec<u32>,
    /// What can stand before the slots, where more is known of that than what is fixed says.
    pub right: Option<Right>,
    /// What all searches so far found out about places; of those beyond the hole it is used, and added to.
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
    /// Those that were entered; which are not good are not completable, once nothing is being looked at.
    entered: FxHashSet<Key>,
}

impl Verdicts {
    /// Forgets what was found out about places before a slot.
    pub fn keep_from(&mut self, slot: usize) {
        for keys in [&mut self.good, &mut self.entered] {
            keys.retain(|key| key.slot as usize >= slot);
            keys.shrink_to(2 * keys.len());
        }
    }

    pub fn memory_usage(&self) -> usize {
        (self.good.capacity() + self.entered.capacity()) * size_of::<Key>()
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self { visits: usize::MAX, in_vain: usize::MAX, below: None, one_of: None }
    }
}

/// What a new item of a parser state costs.
const STEPS_PER_ITEM: usize = 8;

/// Tokens up to which it is asked whether a text can be completed in so many: with more it nearly always can.
const MOST_ROOM: u32 = 16;

/// The same where any completion will do, which is found without asking where there is more room.
pub(crate) const LITTLE_ROOM: u32 = 4;

/// A place: before a slot (`rest` is 0), or inside a token that stands there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    slot: u32,
    rest: u64,
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
    /// How many ways were tried.
    at: usize,
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

/// A step from one place to another.
struct Step {
    slot: u32,
    rest: Option<Arc<Rest>>,
    config: Config,
    token: Option<TokenId>,
    /// Whether it put a token into a gap.
    in_gap: bool,
}

/// One search, which can be resumed after a completion for the next one.
pub(crate) struct Search<'a> {
    tables: &'a mut Tables,
    plan: &'a Plan,
    right: Right,
    /// From here on there are holes only.
    tail: usize,
    /// Whether minimum costs are asked for, and after how many places in vain.
    asks_costs: bool,
    costs_after: usize,
    work: &'a mut Work,
    bounds: Bounds,
    /// Reads completions again, where readings do not know all.
    confirm: Option<Confirm<'a>>,
    /// A hole of which no tokens are looked at that go on behind the end of a piece.
    shallow: Option<usize>,
    nodes: Vec<Node>,
    /// Places that need not be entered: they were.
    seen: FxHashSet<Key>,
    /// The same of places beyond the hole of [`Bounds::one_of`], where what is found out holds for other
    /// searches too.
    verdicts: Verdicts,
    stack: Vec<Frame>,
    /// Places to enter, and those to enter when these are done, for they take one more token in a gap.
    waiting: Vec<(Step, u32)>,
    later: Vec<(Step, u32)>,
    n_in_gaps: usize,
    visits: usize,
    /// Places entered since the start or the last completion, and whether something was left out because
    /// these were too many.
    in_vain: usize,
    has_left_out: bool,
    /// What the parser had done when it was last asked.
    effort: usize,
    n_specials: usize,
    /// The ways to leave a slot with a piece at a place, or what is left of tokens there, that can be of use,
    /// as far as lexing and the tokens that are sought know; and after how many completions that was found
    /// out.
    useful: FxHashMap<(u32, LexemeId, u64), (usize, Arc<BitSet>)>,
    n_found: usize,
}

impl<'a> Search<'a> {
    /// A search that has not begun.
    pub fn new(tables: &'a mut Tables, plan: &'a Plan, work: &'a mut Work, bounds: Bounds) -> Self {
        let n_specials = plan::specials(&tables.constraint).count();
        let effort = tables.effort();
        let right = tables.right(plan);
        Self {
            tables,
            plan,
            right,
            tail: plan.places.iter().rposition(|place| *place != Place::Free).map_or(0, |last| last + 1),
            asks_costs: true,
            costs_after: 0,
            work,
            bounds,
            confirm: None,
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

    /// Takes only completions that are confirmed. Where some were not, that it finds no other is
    /// [`Outcome::OutOfSteps`].
    pub fn confirming(self, confirm: Option<Confirm<'a>>) -> Self {
        Self { confirm, ..self }
    }

    /// The completion with the fewest tokens in gaps, or one of them.
    pub fn run(mut self) -> Result<Outcome, StepError> {
        self.begin()?;
        self.resume()
    }

    /// Completions from readings before a slot, the last of these first: so many, each with its reading. They
    /// have no tokens of slots before, and are not confirmed.
    pub fn completions(
        mut self,
        slot: usize,
        readings: impl Iterator<Item = Config>,
        most: usize,
    ) -> Result<Vec<(Config, Found)>, StepError> {
        let first =
            |config| (Step { slot: slot as u32, rest: None, config, token: None, in_gap: false }, u32::MAX);
        self.waiting.extend(readings.map(first));
        let mut all = Vec::new();
        while all.len() < most
            && let Outcome::Found(found) = self.resume_unconfirmed()?
        {
            // The place where it ended was entered last.
            let mut first = self.nodes.last();
            while let Some(before) = first.and_then(|node| self.nodes.get(node.parent as usize)) {
                first = Some(before);
            }
            all.extend(first.map(|node| (node.key.config, found)));
        }
        Ok(all)
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

    /// The next completion that is confirmed.
    fn resume(&mut self) -> Result<Outcome, StepError> {
        loop {
            let outcome = self.resume_unconfirmed()?;
            let Some(confirm) = &mut self.confirm else { return Ok(outcome) };
            match outcome {
                Outcome::Found(found) if confirm.holds(&found) => return Ok(Outcome::Found(found)),
                Outcome::Found(found) => {
                    self.work.spend(Tables::steps_of_reading(found.tokens.len()))?;
                    if confirm.is_tired() {
                        return Ok(Outcome::OutOfSteps);
                    }
                }
                Outcome::None if confirm.has_refused() => return Ok(Outcome::OutOfSteps),
                Outcome::None | Outcome::OutOfSteps => return Ok(outcome),
            }
        }
    }

    fn resume_unconfirmed(&mut self) -> Result<Outcome, StepError> {
        loop {
            while let Some(mut frame) = self.stack.pop() {
                let node = frame.node;
                let Some(step) = self.next(&mut frame)? else { continue };
                self.stack.push(frame);
                self.visits += 1;
                self.in_vain += 1;
                let effort = self.tables.effort();
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

    /// The tokens of the text that a hole can hold, added to `words`, which are left out before; for canvases
    /// without gaps. Returns whether all that are possible were found. First from readings that are known to
    /// stand before the hole; then, if need be, every place before the hole is entered once, and every way to
    /// leave it tried once.
    pub fn admissible(
        tables: &'a mut Tables,
        plan: &'a Plan,
        work: &'a mut Work,
        Sought { hole, before, depth, visits, in_vain, costs_after, words, right, verdicts }: Sought<'_>,
    ) -> Result<bool, StepError> {
        // To come to the end once is not too much.
        let in_vain = in_vain + plan.places.len().saturating_sub(hole);
        let open = Open::new(std::mem::take(words));
        let bounds = Bounds { visits, in_vain, one_of: Some((hole, open)), ..Bounds::default() };
        let mut search = Self::new(tables, plan, work, bounds);
        search.shallow = (depth == Depth::Shallow).then_some(hole);
        search.costs_after = costs_after;
        search.right = right.unwrap_or(search.right);
        search.verdicts = std::mem::take(verdicts);
        for (slot, readings) in before {
            let first = |&config| {
                (Step { slot: *slot as u32, rest: None, config, token: None, in_gap: false }, u32::MAX)
            };
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
                Ok(Outcome::None) => {
                    break Ok(depth == Depth::All && !search.has_left_out || search.has_all());
                }
                Ok(Outcome::OutOfSteps) => break Ok(search.has_all()),
                Err(error) => break Err(error),
            }
            if search.has_all() {
                break Ok(true);
            }
        };
        // What lies beyond the hole does not depend on it, unless it was being looked at.
        search.leave_out();
        if outcome.is_err() {
            // Of the place where it stopped not all was seen.
            search.verdicts.entered.clear();
        }
        *verdicts = std::mem::take(&mut search.verdicts);
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
        if self.is_beyond(key) { &mut self.verdicts.entered } else { &mut self.seen }
    }

    /// Whether every token is one of those that are not sought.
    fn has_all(&self) -> bool {
        self.bounds.one_of.as_ref().is_some_and(|(_, open)| open.is_empty())
    }

    /// A completion was found: all tokens that lead the same way at the hole are admissible, and the search
    /// goes on from there.
    fn admit(&mut self, hole: usize) {
        self.n_found += 1;
        let beyond =
            self.stack.iter().position(|frame| self.nodes[frame.node as usize].key.slot as usize > hole);
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
            let decides = self.bounds.one_of.is_some();
            match self.tables.takes_more(config, limit, decides, self.work)? {
                Some(true) => return Ok(None),
                // Whichever completion it is: where the text can end behind any token, one is there.
                Some(false)
                    if self.is_beyond(&key) && self.plan.ends[slot as usize] && self.tables.counts_texts =>
                {
                    return Ok(Some(self.found(node, slot as usize, Vec::new())));
                }
                Some(false) => {}
                // It was in vain, and will be in vain again. (Where it decides, less room may still be asked
                // about.)
                None => self.asks_costs = decides,
            }
        }
        let ways = self.ways(slot as usize, config, rest.as_ref())?;
        self.stack.push(Frame { node, rest, ways, at: 0, taken: None, useful: None });
        Ok(None)
    }

    /// Whether lexing can go on with what is fixed from a slot on.
    #[inline]
    fn is_allowed(&self, slot: u32, lexeme: LexemeId) -> bool {
        self.right.allows(slot as usize, self.tables.union_state(lexeme))
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
                Some(End::Prefix { remaining: None }) => {
                    stepper.is_viable(constraint.language(), &[config])?
                }
                Some(End::Prefix { remaining: Some(most) }) => {
                    let closing = self.tables.closing(config, most, self.work)?;
                    return Ok(closing.filter(|_| few_enough()).map(|tokens| tokens.to_vec()));
                }
            }
        };
        Ok((accepted && few_enough()).then(Vec::new))
    }

    /// Tokens that make a sentence of a reading, where holes alone follow and one is left for the EOS. Only
    /// where any completion will do: in the first search for one, and beyond a hole of which the tokens are
    /// sought.
    fn finishes_in(&mut self, slot: usize, config: Config) -> Result<Option<Arc<[TokenId]>>, StepError> {
        let is_tail =
            slot < self.plan.places.len() && self.plan.ends[slot] && self.plan.places[slot] == Place::Free;
        let is_asked = match &self.bounds.one_of {
            Some((hole, _)) => slot > *hole && self.plan.whole == Some(End::Sentence),
            None => self.bounds.below.is_none(),
        };
        if !is_tail || !is_asked || !self.holes_follow(slot) {
            return Ok(None);
        }
        if self.bounds.one_of.is_some() {
            let room = (self.plan.places.len() - slot) as u32;
            if self.tables.fits_surely(config, room, self.work)? {
                // Which they are nobody asks.
                return Ok(Some(Arc::from([])));
            }
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

    /// The most tokens that a sentence may have from a slot on, where nothing but holes follows, and it
    /// matters that they are few: there is a bound on the whole, or all tokens of a hole are sought.
    fn room(&self, slot: usize) -> Option<u32> {
        let n_slots = self.plan.places.len();
        if slot + 1 >= n_slots || slot < self.tail || self.plan.whole != Some(End::Sentence) {
            return None;
        }
        let (left, most) = match (self.bounds.below, &self.bounds.one_of) {
            (Some(below), _) => {
                let left =
                    below.checked_sub(1)?.checked_sub(self.plan.n_tokens_before(slot) + self.n_in_gaps)?;
                (left, MOST_ROOM)
            }
            (None, Some(_)) if self.in_vain >= self.costs_after => (n_slots, LITTLE_ROOM),
            (None, _) => return None,
        };
        u32::try_from(left.min(n_slots - slot)).ok().filter(|&left| left <= most)
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

    /// The ways of a walk that can be of use: of the hole of which tokens are sought all, of other slots
    /// those that go on behind the end of a piece.
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
            let stays = stays.filter(|((lexeme, tokens), _)| {
                self.is_allowed(after, *lexeme) && open.first(tokens).is_some()
            });
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

    /// What is left of tokens beyond an exit, if lexing can get through it, and tokens are among them that
    /// are sought.
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
            let at = frame.at;
            frame.at += 1;
            let to = |config, token| {
                Ok(Some(Step { slot: after, rest: None, config, token: Some(token), in_gap }))
            };
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
            // Where keys have to differ, the first of all would do in one place only.
            let varied = self.confirm.is_some().then_some(self.nodes.len() as u64);
            let pick = |ending: &Ending| match (sought, varied) {
                (Some(open), _) => open.first(ending),
                (None, Some(seed)) => ending.some(seed),
                (None, None) => ending.first,
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
                let Some((token, terminal)) = plan::specials(&self.tables.constraint).nth(way) else {
                    continue;
                };
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
