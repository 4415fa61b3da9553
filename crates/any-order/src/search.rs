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
use std::ops::RangeFrom;
use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_left_to_right::ErrorKind;
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
use crate::verdicts::{Key, Onward, SuffixId};

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

struct Node {
    slot: u32,
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
    /// See [`Verdicts::suffixes`](crate::verdicts::Verdicts::suffixes); empty until it begins.
    suffixes: Vec<SuffixId>,
    /// The slots from which on what is found out about places is kept for other searches: all, those beyond
    /// the hole of [`Bounds::one_of`], or none.
    kept: RangeFrom<usize>,
    /// Places that need not be entered, for they were; where that is not kept.
    seen: FxHashSet<Key>,
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
        // With a bound on the text it matters what stands before a place.
        let keeps = !plan.has_gaps() && bounds.below.is_none();
        let kept = match &bounds.one_of {
            _ if !keeps => usize::MAX..,
            Some((hole, _)) => hole + 1..,
            None => 0..,
        };
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
            suffixes: Vec::new(),
            kept,
            seen: FxHashSet::default(),
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

    /// Takes only completions that are confirmed. Where some were not, that it finds no other is
    /// [`Outcome::OutOfSteps`].
    pub fn confirming(mut self, confirm: Option<Confirm<'a>>) -> Self {
        if confirm.is_some() {
            self.kept = usize::MAX..;
        }
        Self { confirm, ..self }
    }

    /// Keeps nothing of what it finds out about places before a slot.
    pub fn keeping_from(mut self, slot: usize) -> Self {
        self.kept = self.kept.start.max(slot)..;
        self
    }

    /// The completion with the fewest tokens in gaps, or one of them.
    pub fn run(mut self) -> Result<Outcome, StepError> {
        let outcome = self.begin().and_then(|()| self.resume());
        self.leave(outcome.is_err());
        outcome
    }

    /// As [`Search::run`]. If there is no completion, all readings before a slot are kept, for searches that
    /// differ from there on.
    pub fn run_up_to(mut self, slot: usize) -> Result<Outcome, StepError> {
        // Left of the slot all readings are wanted, also those that are known not to lead to a completion.
        self = self.keeping_from(slot + 1);
        let outcome = self.begin().and_then(|()| self.resume());
        if matches!(outcome, Ok(Outcome::None)) {
            let is_before = |node: &&Node| node.slot as usize == slot && node.key.rest == 0;
            let before = self.nodes.iter().filter(is_before);
            let readings = before.map(|node| node.key.config).collect();
            self.tables.verdicts.keep_front(self.plan, (slot, self.right.id(slot)), readings);
        }
        self.leave(outcome.is_err());
        outcome
    }

    /// As [`Search::run`], from all readings that can stand before a slot, if they are known; what is found
    /// has no tokens of slots before. `None` if they are not.
    pub fn run_from(mut self, slot: usize) -> Option<Result<Outcome, StepError>> {
        let readings = self.tables.verdicts.front(self.plan, (slot, self.right.id(slot)))?;
        self.wait(slot, readings.iter().copied());
        let outcome = self.resume();
        self.leave(outcome.is_err());
        Some(outcome)
    }

    /// The reading that the place began with that was entered last.
    fn first(&self) -> Option<Config> {
        let mut first = self.nodes.last()?;
        while let Some(before) = self.nodes.get(first.parent as usize) {
            first = before;
        }
        Some(first.key.config)
    }

    fn wait(&mut self, slot: usize, readings: impl Iterator<Item = Config>) {
        let first =
            |config| (Step { slot: slot as u32, rest: None, config, token: None, in_gap: false }, u32::MAX);
        self.waiting.extend(readings.map(first));
        if self.suffixes.is_empty() {
            self.suffixes = self.tables.verdicts.suffixes(self.plan, self.kept.start);
        }
    }

    /// Completions from readings before a slot, the last of these first: so many, each with its reading. They
    /// have no tokens of slots before, and are not confirmed.
    pub fn completions(
        mut self,
        slot: usize,
        readings: impl Iterator<Item = Config>,
        most: usize,
    ) -> Result<Vec<(Config, Found)>, StepError> {
        self.wait(slot, readings);
        let mut all = Vec::new();
        let mut outcome = Ok(());
        while all.len() < most {
            match self.resume_unconfirmed() {
                // The place where it ended was entered last.
                Ok(Outcome::Found(found)) => all.extend(self.first().map(|first| (first, found))),
                Ok(_) => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.leave(outcome.is_err());
        match outcome {
            Err(error) if all.is_empty() || error.kind() != ErrorKind::Limit => Err(error),
            _ => Ok(all),
        }
    }

    fn begin(&mut self) -> Result<(), StepError> {
        if !self.right.is_hopeless
            && let Some(config) = self.tables.start()?
        {
            self.wait(0, std::iter::once(config));
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
                let next = self.next(&mut frame);
                if matches!(next, Ok(None)) {
                    continue;
                }
                self.stack.push(frame);
                let Some(step) = next? else { continue };
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
        Sought { hole, before, depth, visits, in_vain, costs_after, words, right }: Sought<'_>,
    ) -> Result<bool, StepError> {
        // To come to the end once is not too much.
        let in_vain = in_vain + plan.places.len().saturating_sub(hole);
        let open = Open::new(std::mem::take(words));
        let bounds = Bounds { visits, in_vain, one_of: Some((hole, open)), ..Bounds::default() };
        let mut search = Self::new(tables, plan, work, bounds);
        search.shallow = (depth == Depth::Shallow).then_some(hole);
        search.costs_after = costs_after;
        search.right = right.unwrap_or(search.right);
        for (slot, readings) in before {
            search.wait(*slot, readings.iter().copied());
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
        search.leave(outcome.is_err());
        *words = search.bounds.one_of.take().map(|(_, open)| open.into_words()).unwrap_or_default();
        outcome
    }

    /// Goes no further from where the search is. What was not seen to its end there can be entered again.
    fn leave_out(&mut self) {
        self.has_left_out = true;
        for frame in std::mem::take(&mut self.stack) {
            self.leave_open(frame.node);
        }
    }

    fn leave_open(&mut self, node: u32) {
        let Some(Node { slot, key, .. }) = self.nodes.get(node as usize) else { return };
        if self.kept.contains(&(*slot as usize)) {
            self.tables.verdicts.leave_open(key);
        }
        self.seen.remove(key);
    }

    /// Ends the search. Other searches know of what it did not see to its end that they have to.
    fn leave(&mut self, has_failed: bool) {
        self.leave_out();
        if has_failed {
            // The place that was entered last has no frame, perhaps.
            self.leave_open((self.nodes.len() as u32).wrapping_sub(1));
        }
    }

    /// Whether a place lies beyond the hole of which tokens are sought.
    fn is_beyond(&self, slot: u32) -> bool {
        self.bounds.one_of.as_ref().is_some_and(|(hole, _)| slot as usize > *hole)
    }

    /// Whether every token is one of those that are not sought.
    fn has_all(&self) -> bool {
        self.bounds.one_of.as_ref().is_some_and(|(_, open)| open.is_empty())
    }

    /// A completion was found: all tokens that lead the same way at the hole are admissible, and the search
    /// goes on from there.
    fn admit(&mut self, hole: usize) {
        self.n_found += 1;
        // Places beyond the hole are known to be good by now.
        let beyond = self.stack.iter().position(|frame| self.nodes[frame.node as usize].slot as usize > hole);
        self.stack.truncate(beyond.unwrap_or(self.stack.len()));
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
        if rest.is_none() && !self.is_allowed(slot, config.lexeme) {
            return Ok(None);
        }
        let rest_id = rest.as_ref().map_or(0, |rest| rest.id);
        let key = Key { suffix: self.suffixes[slot as usize], rest: rest_id, config };
        let node = self.nodes.len() as u32;
        let mut onward = None;
        if self.kept.contains(&(slot as usize)) {
            let verdicts = &mut self.tables.verdicts;
            let is_good = verdicts.is_good(&key);
            if is_good && (self.bounds.one_of.is_some() || verdicts.is_known(&key)) {
                onward = Some(Onward::Somehow);
            } else if !is_good && !verdicts.enter(key) || is_good && !self.seen.insert(key) {
                return Ok(None);
            }
        } else if !self.seen.insert(key) {
            return Ok(None);
        }
        self.nodes.push(Node { slot, key, parent, token });
        if onward.is_none() && rest.is_none() {
            onward = self.completes(slot, config)?;
        }
        if let Some(onward) = onward {
            return Ok(Some(self.found(node, onward)));
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
                    if self.is_beyond(slot) && self.plan.ends[slot as usize] && self.tables.counts_texts =>
                {
                    return Ok(Some(self.found(node, Onward::Somehow)));
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
    fn accepts(&mut self, slot: usize, config: Config) -> Result<Option<Arc<[TokenId]>>, StepError> {
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
                    return Ok(closing.filter(|_| few_enough()));
                }
            }
        };
        Ok((accepted && few_enough()).then(|| Arc::from([])))
    }

    /// Tokens that make a sentence of a reading, where holes alone follow and one is left for the EOS. Only
    /// where any completion will do: in the first search for one, and beyond a hole of which the tokens are
    /// sought.
    fn finishes_in(&mut self, slot: usize, config: Config) -> Result<Option<Onward>, StepError> {
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
                return Ok(Some(Onward::Somehow));
            }
        }
        let Some(tokens) = self.tables.finish(config, self.work)? else { return Ok(None) };
        let end = slot + tokens.len();
        let is_end = if end == self.plan.places.len() {
            self.plan.whole.is_some()
        } else {
            self.plan.ends.get(end) == Some(&true)
        };
        Ok(is_end.then_some(Onward::End(tokens, Arc::from([]))))
    }

    /// How the text can be completed before a slot, where that is known without going on.
    fn completes(&mut self, slot: u32, config: Config) -> Result<Option<Onward>, StepError> {
        match self.accepts(slot as usize, config)? {
            Some(closing) => Ok(Some(Onward::End(Arc::from([]), closing))),
            None => self.finishes_in(slot as usize, config),
        }
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

    /// The completion through a place, which goes on so.
    fn found(&mut self, node: u32, onward: Onward) -> Found {
        let mut tokens = Vec::new();
        let (mut at, mut onward) = (node, onward);
        let verdicts = &mut self.tables.verdicts;
        let closes = |onward: &Onward| match onward {
            Onward::End(tokens, closing) => Some((tokens.clone(), closing.clone())),
            Onward::Somehow | Onward::To { .. } => None,
        };
        let last = closes(&onward);
        while let Some(Node { slot, key, parent, token }) = self.nodes.get(at as usize) {
            if self.kept.contains(&(*slot as usize)) {
                verdicts.admit(*key, onward);
            }
            let Some(before) = self.nodes.get(*parent as usize) else { break };
            // A token ends where its slot, or one round of a gap, is left.
            tokens.extend(token.map(|token| (before.slot as usize, token)));
            onward = Onward::To { n_slots: slot - before.slot, next: *key, token: *token };
            at = *parent;
        }
        tokens.reverse();
        let Node { slot, key, .. } = &self.nodes[node as usize];
        let slot = *slot as usize;
        let (mut end, mut closing) = (slot, Vec::new());
        if let Some((last, tokens_behind)) = last {
            tokens.extend((slot..).zip(last.iter().copied()));
            (end, closing) = (slot + last.len(), tokens_behind.to_vec());
        } else if let Some(known) = verdicts.completion(key) {
            tokens.extend(known.tokens.iter().map(|&(behind, token)| (slot + behind, token)));
            (end, closing) = (slot + known.end, known.closing.to_vec());
        }
        Found { end, tokens, n_in_gaps: self.n_in_gaps, closing }
    }

    /// The ways of a walk that can be of use: of the hole of which tokens are sought all, of other slots
    /// those that go on behind the end of a piece.
    fn useful(&mut self, after: u32, frame: &Frame) -> Result<Arc<BitSet>, StepError> {
        let Node { slot, key: Key { rest: rest_id, config, .. }, .. } = self.nodes[frame.node as usize];
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
        let Node { slot, key: Key { config, .. }, .. } = self.nodes[frame.node as usize];
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
