//! What fits into a budget of tokens, exactly.
//!
//! A search over real readings decides: a *place* is a reading ([`Config`]) at a token boundary, or at the
//! end of a piece inside tokens, with what is left of them ([`Leftover`]). Whole tokens, walked by the
//! lexemes themselves, lead from place to place; leaving a token boundary costs one. For a least cost the
//! search is A* (Hart, Nilsson and Raphael 1968) with the lower bounds of [`Costs`], which in most cases are
//! the truth, so that it goes straight to a sentence. In `scannerless` they are always the truth, and nothing
//! is searched for, unless automata give rules or terminals: of what is left in their states the bounds know
//! too little. Whether a budget is enough takes less: the search goes where the upper bounds of `Ample` are
//! least, and ends as soon as one of them is within the budget.
//!
//! What is learned of a reading is kept: a lower and an upper bound on its cost. Where a budget lies above
//! the one or below the other, nothing is searched for either.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hasher;
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::{LexerMode, TerminalId};
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::ample::Ample;
use crate::costs::{Costs, Leftover, NEVER, Subtrees};
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::mask::{self, Tokens};

/// A reading, and what is left of the tokens in which it stands.
type Place = (Config, Leftover);

/// What tokens, or what is left of them, do to a lexeme in progress.
struct Walk {
    /// The lexemes that are in progress at the end of a token.
    stays: Box<[LexemeId]>,
    /// How the piece can end: whether with a token, and what is left otherwise.
    exits: Box<[(CutId, bool, Leftover)]>,
}

/// The same with the tokens themselves.
struct Groups {
    stays: Vec<(LexemeId, Tokens)>,
    exits: Vec<Exit>,
}

/// A way in which a piece can end inside tokens or with them.
struct Exit {
    cut: CutId,
    /// The tokens that end here.
    ends: Option<Tokens>,
    rest: Option<Arc<Rest>>,
}

/// What is left of some tokens, by the tops of subtrees of the trie.
struct Rest {
    /// Tells rests apart; 0 is the whole trie.
    id: u32,
    tops: Box<[NodeId]>,
    tokens: Tokens,
    leftover: Leftover,
}

/// Bounds on readings beyond this many are forgotten before the next question.
const ENTRIES: usize = 2_000_000;

/// Steps that a new state of the lexer's automaton counts as, where it grows: its states are kept, so a
/// search that needs many has to end before there is no room for others.
const GROWTH: usize = 8_000;

/// From here on keys of places of which no upper bound is known.
const GUESSED: u32 = 1 << 30;

/// A search for a completion.
///
/// For the least cost it is A*: the least total comes first. If any cost within the limit will do, the least
/// upper bound on the total comes first, so that it goes straight to an end even where keys may come in any
/// order and all orders cost about the same; where none is known, what seems to lack least.
#[derive(Default)]
struct Search {
    limit: u32,
    any: bool,
    /// What it cost to come to a place, and from where.
    costs: FxHashMap<Place, (u32, Option<Place>)>,
    /// What comes next: first the least key, then the latest.
    queue: BinaryHeap<(Reverse<u32>, u32, Place)>,
    n_pushed: u32,
    /// Places that were gone on from.
    closed: Vec<(Place, u32)>,
}

impl Search {
    fn push(&mut self, place: Place, key: u32) {
        self.n_pushed += 1;
        self.queue.push((Reverse(key), self.n_pushed, place));
    }
}

/// What is kept of searches within budgets.
pub struct Budgets {
    costs: Costs,
    subtrees: Arc<Subtrees>,
    /// `None` until it is known whether there are such bounds.
    ample: Option<Option<Ample>>,
    walks: FxHashMap<(LexemeId, Leftover), Arc<Walk>>,
    groups: FxHashMap<(LexemeId, u32), Arc<Groups>>,
    rests: FxHashMap<Box<[NodeId]>, Arc<Rest>>,
    n_rests: u32,
    group_bytes: usize,
    /// The parser states as of which the rest holds.
    generation: u64,
    lower: FxHashMap<Place, u32>,
    upper: FxHashMap<Config, u32>,
    /// Of readings what is enough behind any token of a mask, and which mask; see [`Budgets::is_ample`].
    ample_for_all: FxHashMap<Box<[Config]>, (u32, MaskKey)>,
    /// The most that was seen to be enough since the last question began.
    enough: u32,
}

/// What a question is about.
pub struct Question<'a> {
    /// The readings' tables.
    pub stepper: &'a mut Stepper,
    /// The language.
    pub language: &'a Language,
    /// The tokens.
    pub trie: &'a TokenTrie,
    /// Counts what it takes.
    pub work: Work,
}

impl AsMut<Stepper> for Question<'_> {
    fn as_mut(&mut self) -> &mut Stepper {
        self.stepper
    }
}

/// Tells apart the masks that the same readings can have: a memory leaves other tokens of other texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaskKey(u64);

impl MaskKey {
    /// Of a mask. Cost: its words, where the language has a memory.
    pub fn new(language: &Language, mask: &[u32]) -> Self {
        let grammar = language.grammar();
        if grammar.memory.is_none() && grammar.embedded.is_empty() {
            return Self(0);
        }
        let mut hasher = FxHasher::default();
        mask.chunks(2).for_each(|pair| {
            hasher.write_u64(pair.iter().fold(0, |word, &half| word << 32 | u64::from(half)));
        });
        Self(hasher.finish())
    }
}

impl Budgets {
    /// Empty tables. Cost, once for a vocabulary: nodes of its trie.
    pub fn new(language: &Language, vocabulary: &Vocabulary) -> Self {
        Self::beside(language, vocabulary.trie(), vocabulary.beside())
    }

    fn beside(language: &Language, trie: &TokenTrie, subtrees: Arc<Subtrees>) -> Self {
        Self {
            costs: Costs::new(language.lexing(), trie, &subtrees),
            subtrees,
            ample: None,
            walks: FxHashMap::default(),
            groups: FxHashMap::default(),
            rests: FxHashMap::default(),
            n_rests: 0,
            group_bytes: 0,
            generation: 0,
            lower: FxHashMap::default(),
            upper: FxHashMap::default(),
            ample_for_all: FxHashMap::default(),
            enough: 0,
        }
    }

    /// The lower bounds.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let walks =
            self.walks.values().map(|walk| 4 * walk.stays.len() + 12 * walk.exits.len() + 64).sum::<usize>();
        let ample = self.ample.iter().flatten().map(Ample::memory_usage).sum::<usize>();
        self.costs.memory_usage()
            + ample
            + walks
            + self.group_bytes
            + 40 * (self.lower.len() + self.upper.len())
            + self.ample_for_all.keys().map(|readings| 32 + size_of_val(&**readings)).sum::<usize>()
    }

    /// The least number of tokens that make a sentence of one of some readings, if it is at most `limit`;
    /// else `None`.
    pub fn minimum(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        limit: u32,
    ) -> Result<Option<u32>, StepError> {
        self.begin(question);
        let result = self.least(question, frontier, (limit, false));
        if result.is_err() {
            self.costs.clear();
        }
        result
    }

    /// Whether a sentence can be made within `limit` tokens behind each token of a mask of some readings, as
    /// far as [`Budgets::keep_ample`] was told. Cost: a look-up.
    pub fn is_ample(&mut self, question: &Question<'_>, of: (&[Config], MaskKey), limit: u32) -> bool {
        self.begin(question);
        self.is_known_to_be_ample(self.generation, of, limit)
    }

    /// The same where parser states are those of a generation.
    pub fn is_known_to_be_ample(
        &self,
        generation: u64,
        (readings, mask): (&[Config], MaskKey),
        limit: u32,
    ) -> bool {
        let known = self.ample_for_all.get(readings).filter(|_| self.generation == generation);
        known.is_some_and(|&(enough, known)| enough <= limit && known == mask)
    }

    /// Keeps what [`Budgets::add_tokens`] found to be enough behind all tokens of a mask of some readings.
    pub fn keep_ample(&mut self, (readings, mask): (&[Config], MaskKey), enough: u32) {
        self.ample_for_all.insert(readings.into(), (enough, mask));
    }

    /// Adds the bits of all byte tokens after which at most `limit` more make a sentence. `plain` is the mask
    /// without a budget. Returns how many tokens are enough behind each token of it, if none is left out.
    pub fn add_tokens(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        limit: u32,
        plain: &[u32],
        words: &mut [u32],
    ) -> Result<Option<u32>, StepError> {
        self.begin(question);
        self.enough = 0;
        // Bits that need no further look: those that are set, and those that never will be.
        let mut decided: Vec<u32> = plain.iter().zip(&*words).map(|(&plain, &word)| word | !plain).collect();
        let result = self.decide(question, frontier, limit, &mut decided);
        if result.is_err() {
            self.costs.clear();
        }
        words
            .iter_mut()
            .zip(plain)
            .zip(&decided)
            .for_each(|((word, &plain), &decided)| *word |= plain & decided);
        result?;
        let has_all = plain.iter().zip(&decided).all(|(plain, decided)| plain & !decided == 0);
        Ok(has_all.then_some(self.enough))
    }

    fn begin(&mut self, question: &Question<'_>) {
        self.costs.tidy();
        if self.costs.is_full() {
            *self = Self::beside(question.language, question.trie, self.subtrees.clone());
        }
        let generation = question.stepper.generation();
        if self.generation != generation || self.n_bounds() > ENTRIES {
            self.generation = generation;
            self.costs.forget_states();
            self.ample.iter_mut().flatten().for_each(Ample::forget_states);
            self.lower.clear();
            self.upper.clear();
            self.ample_for_all.clear();
        }
    }

    fn n_bounds(&self) -> usize {
        self.lower.len() + self.upper.len() + self.ample_for_all.len()
    }

    fn decide(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        limit: u32,
        decided: &mut [u32],
    ) -> Result<(), StepError> {
        let together = question.language.lexing().merges_ends();
        let mut agenda: Vec<(Config, Option<Arc<Rest>>)> =
            frontier.iter().map(|&config| (config, None)).collect();
        let mut seen: FxHashSet<(Config, u32)> = FxHashSet::default();
        while let Some((config, rest)) = agenda.pop() {
            let id = rest.as_ref().map_or(0, |rest| rest.id);
            if !seen.insert((config, id)) || rest.as_ref().is_some_and(|rest| rest.tokens.is_subset(decided))
            {
                continue;
            }
            // Where the budget is ample for the reading, it will be for most of what comes of it.
            if let Some(rest) = &rest
                && self.upper(question, config)? > limit
                && !self.is_possible(question, (config, rest.leftover), limit)?
            {
                continue;
            }
            question.work.spend(1 + decided.len() / 16)?;
            let groups = self.groups(question, config.lexeme, rest.as_deref(), decided.len())?;
            for (lexeme, tokens) in &groups.stays {
                let config = Config { lexeme: *lexeme, ..config };
                if !tokens.is_subset(decided) && self.fits(question, &[config], limit)? {
                    tokens.add_to(decided);
                }
            }
            for Exit { cut, ends, rest } in &groups.exits {
                let ends_left = ends.as_ref().filter(|ends| !ends.is_subset(decided));
                let rest_left = rest.as_ref().filter(|rest| !rest.tokens.is_subset(decided));
                if ends_left.is_none() && rest_left.is_none() {
                    continue;
                }
                let Some(config) = question.stepper.end(question.language, (config.state, *cut))? else {
                    continue;
                };
                if let Some(ends) = ends_left
                    && self.fits(question, &[config], limit)?
                {
                    ends.add_to(decided);
                }
                agenda.extend(rest_left.map(|rest| (config, Some(rest.clone()))));
            }
        }
        if !together {
            return Ok(());
        }
        let (language, trie) = (question.language, question.trie);
        mask::follow_together(question, language, trie, frontier, decided, |question, readings| {
            self.fits(question, readings, limit)
        })
    }

    /// The least cost of completing one of some readings at a token boundary, if it is at most `limit`; or,
    /// if `any` is enough, some cost.
    fn least(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        (limit, any): (u32, bool),
    ) -> Result<Option<u32>, StepError> {
        let mut least = None;
        let mut limit = limit;
        for &config in frontier {
            let lexing = question.language.lexing();
            // Elsewhere the bound is not always the truth.
            let is_truth = lexing.mode() == LexerMode::Scannerless
                && !lexing.is_growing()
                && lexing.cfg.automata.is_empty();
            let found = if is_truth {
                self.bound(question, (config, Leftover::NONE), limit)?
            } else {
                self.search(question, config, (limit, any))?
            };
            if let Some(found) = found {
                (least, limit) = (Some(found), found);
                if any {
                    break;
                }
            }
        }
        Ok(least)
    }

    /// Whether the lower bound on the cost of a reading at a token boundary is at most `limit`. It may stand
    /// for several, of which this is the least then.
    pub fn may_fit(
        &mut self,
        question: &mut Question<'_>,
        config: Config,
        limit: u32,
    ) -> Result<bool, StepError> {
        self.begin(question);
        let result = self.is_possible(question, (config, Leftover::NONE), limit);
        if result.is_err() {
            self.costs.clear();
        }
        result
    }

    /// Whether it is certain, without a search, that at most `limit` tokens make a sentence of a reading at a
    /// token boundary.
    pub fn fits_surely(
        &mut self,
        question: &mut Question<'_>,
        config: Config,
        limit: u32,
    ) -> Result<bool, StepError> {
        self.begin(question);
        Ok(self.upper(question, config)? <= limit)
    }

    /// An upper bound on the cost of a reading at a token boundary that takes no search.
    fn upper(&mut self, question: &mut Question<'_>, config: Config) -> Result<u32, StepError> {
        if let Some(&known) = self.upper.get(&config) {
            return Ok(known);
        }
        let Question { stepper, language, trie, work } = question;
        let ample = match &mut self.ample {
            Some(ample) => ample,
            unknown => unknown.insert(Ample::new(language, trie, work)?),
        };
        let upper = match ample {
            Some(ample) => ample.upper(stepper, (language, trie), config)?,
            None => NEVER,
        };
        self.upper.insert(config, upper);
        Ok(upper)
    }

    /// Whether one of some readings at a token boundary can be completed by at most `limit` tokens.
    fn fits(
        &mut self,
        question: &mut Question<'_>,
        frontier: &[Config],
        limit: u32,
    ) -> Result<bool, StepError> {
        for &config in frontier {
            let upper = self.upper(question, config)?;
            if upper <= limit {
                self.enough = self.enough.max(upper);
                return Ok(true);
            }
        }
        let found = self.least(question, frontier, (limit, true))?;
        self.enough = self.enough.max(found.unwrap_or(0));
        Ok(found.is_some())
    }

    /// Whether the lower bound of a place is at most `limit`.
    fn is_possible(
        &mut self,
        question: &mut Question<'_>,
        place: Place,
        limit: u32,
    ) -> Result<bool, StepError> {
        Ok(self.bound(question, place, limit)?.is_some())
    }

    /// The lower bound of a place, if it is at most `limit`.
    fn bound(
        &mut self,
        question: &mut Question<'_>,
        place: Place,
        limit: u32,
    ) -> Result<Option<u32>, StepError> {
        let known = self.lower.get(&place).copied().unwrap_or(0);
        if known > limit {
            return Ok(None);
        }
        let (Config { state, lexeme }, leftover) = place;
        let lexing = question.language.lexing();
        let least = if question.stepper.transducer().is_boundary(lexeme) {
            let Question { stepper, trie, work, .. } = question;
            self.costs.complete(lexing, trie, stepper.recognizer(), (state, leftover), limit, work)?
        } else {
            // A look into automata that grow takes a walk from each state, so only if that can matter.
            let is_possible =
                !lexing.is_growing() || self.bound_of_piece(question, place.0, (limit, true))?.is_some();
            if is_possible { self.bound_of_piece(question, place.0, (limit, false))? } else { None }
        };
        if least.is_none() && limit != NEVER {
            self.lower.insert(place, limit + 1);
        }
        Ok(least.map(|least| least.max(known)))
    }

    /// The lower bound of a reading with a piece in progress, if it is at most `limit`; a rough one does not
    /// look at where the piece can end.
    fn bound_of_piece(
        &mut self,
        question: &mut Question<'_>,
        Config { state, lexeme }: Config,
        (limit, is_rough): (u32, bool),
    ) -> Result<Option<u32>, StepError> {
        let Question { stepper, language, trie, work } = question;
        let lexing = language.lexing();
        // A piece in progress is completed as one of the terminals that are alive in it.
        let union_state = stepper.transducer().state(lexeme);
        let (viable, ignored) = (stepper.recognizer().viable(state).clone(), &lexing.lexicon.ignored);
        let mut least: Option<u32> = None;
        for terminal in lexing.lexicon.union.live(union_state).iter() {
            let (is_viable, is_ignored) = (viable.contains(terminal), ignored.contains(terminal));
            if !is_viable && !is_ignored {
                continue;
            }
            let terminal = TerminalId::new(terminal);
            let ends = match self.costs.state_in(lexing, terminal, union_state) {
                Some(_) if is_rough => self.costs.finish_anywhere(trie),
                Some(own) => self.costs.finish(lexing, trie, terminal, own, work)?,
                None => continue,
            };
            let after = if is_viable { stepper.after(state, terminal)? } else { None };
            for next in [after, is_ignored.then_some(state)].into_iter().flatten() {
                for &(to, cost) in &*ends {
                    // Only what is less than the least so far is of interest.
                    let room = least
                        .map_or(Some(limit), |least| least.checked_sub(1))
                        .and_then(|room| room.checked_sub(cost));
                    let Some(room) = room else { continue };
                    let found =
                        self.costs.complete(lexing, trie, stepper.recognizer(), (next, to), room, work)?;
                    least = found.map(|found| cost + found).or(least);
                }
            }
        }
        Ok(least)
    }

    /// The least cost of completing a reading at a token boundary, if it is at most `limit`; or, if `any` is
    /// enough, some cost.
    fn search(
        &mut self,
        question: &mut Question<'_>,
        config: Config,
        (limit, any): (u32, bool),
    ) -> Result<Option<u32>, StepError> {
        let start = (config, Leftover::NONE);
        if let Some(&upper) = self.upper.get(&config)
            && self.lower.get(&start) == Some(&upper)
        {
            return Ok((upper <= limit).then_some(upper));
        }
        let Some(least) = self.bound(question, start, limit)? else { return Ok(None) };
        let mut search = Search { limit, any, ..Search::default() };
        search.costs.insert(start, (0, None));
        let key = self.key(question, &search, start, (0, least))?;
        search.push(start, key);
        let found = self.run(question, &mut search)?;
        if found.is_none() || !any {
            // What was looked at lacks at least what is left of the total.
            let total = found.map_or(limit.saturating_add(1), |(total, _)| total);
            for (place, cost) in search.closed {
                let known = self.lower.entry(place).or_insert(0);
                *known = (*known).max(total - cost);
            }
        }
        let Some((total, mut at)) = found else { return Ok(None) };
        while let Some(&(cost, before)) = search.costs.get(&at) {
            if at.1 == Leftover::NONE {
                let known = self.upper.entry(at.0).or_insert(NEVER);
                *known = (*known).min(total - cost);
            }
            match before {
                Some(before) => at = before,
                None => break,
            }
        }
        Ok(Some(total))
    }

    /// Goes on with a search until there is a completion: its cost, and the place from where it is known.
    fn run(
        &mut self,
        question: &mut Question<'_>,
        search: &mut Search,
    ) -> Result<Option<(u32, Place)>, StepError> {
        let mut is_closed: FxHashMap<Place, u32> = FxHashMap::default();
        let mut n_states_before = question.language.lexing().lexicon.union.n_states();
        while let Some((Reverse(key), _, place)) = search.queue.pop() {
            let Some(&(cost, _)) = search.costs.get(&place) else { continue };
            if is_closed.get(&place).is_some_and(|&before| before <= cost) {
                continue;
            }
            let (config, leftover) = place;
            // No more is asked than whether it is its turn.
            let lower =
                if search.any { self.bound(question, place, search.limit - cost)? } else { Some(key - cost) };
            let Some(lower) = lower else { continue };
            if !search.any && !self.is_possible(question, place, lower)? {
                if key < search.limit {
                    search.push(place, key + 1);
                }
                continue;
            }
            if search.any && key >= GUESSED && GUESSED + lower > key {
                search.push(place, GUESSED + lower);
                continue;
            }
            is_closed.insert(place, cost);
            search.closed.push((place, cost));
            if leftover == Leftover::NONE {
                if question.stepper.is_sentence(&[config]) {
                    return Ok(Some((cost, place)));
                }
                let upper = self.upper(question, config)?;
                let most = if search.any { search.limit } else { cost + lower };
                if cost.saturating_add(upper) <= most {
                    return Ok(Some((cost + upper, place)));
                }
            }
            for (next, more) in self.successors(question, place)? {
                let next_cost = cost + more;
                let is_known = search.costs.get(&next).is_some_and(|&(known, _)| known <= next_cost);
                if next_cost > search.limit || is_known {
                    continue;
                }
                search.costs.insert(next, (next_cost, Some(place)));
                // The bound of the place before holds for now; its own is asked for when it comes up.
                let key = self.key(question, search, next, (next_cost, lower.saturating_sub(more)))?;
                search.push(next, key);
            }
            let n_states = question.language.lexing().lexicon.union.n_states();
            question.work.spend(1 + GROWTH * (n_states - n_states_before))?;
            n_states_before = n_states;
        }
        Ok(None)
    }

    /// When a place comes up that it took so much to come to and that lacks at least so much.
    fn key(
        &mut self,
        question: &mut Question<'_>,
        search: &Search,
        (config, _): Place,
        (cost, lower): (u32, u32),
    ) -> Result<u32, StepError> {
        if !search.any {
            return Ok(cost + lower);
        }
        let total = cost.saturating_add(self.upper(question, config)?);
        Ok(if total < GUESSED { total } else { GUESSED + lower })
    }

    /// The places that a token, or what is left of it, leads to, with what it costs.
    fn successors(
        &mut self,
        question: &mut Question<'_>,
        place: Place,
    ) -> Result<Vec<(Place, u32)>, StepError> {
        let (config, leftover) = place;
        let cost = u32::from(leftover == Leftover::NONE);
        let walk = self.walk(question, config.lexeme, leftover)?;
        let Question { stepper, language, work, .. } = question;
        work.spend(walk.stays.len() + walk.exits.len())?;
        let mut found = Vec::with_capacity(walk.stays.len() + walk.exits.len());
        let staying = |&lexeme: &LexemeId| ((Config { lexeme, ..config }, Leftover::NONE), cost);
        found.extend(walk.stays.iter().map(staying));
        for &(cut, ends, rest) in &walk.exits {
            let Some(config) = stepper.end(language, (config.state, cut))? else { continue };
            found.extend((rest != Leftover::NONE).then_some(((config, rest), cost)));
            found.extend(ends.then_some(((config, Leftover::NONE), cost)));
        }
        if leftover == Leftover::NONE {
            for &terminal in language.lexing().specials() {
                let next = stepper.step_special(language, &[config], terminal)?;
                found.extend(next.into_iter().map(|config| ((config, Leftover::NONE), 1)));
            }
        }
        Ok(found)
    }

    fn walk(
        &mut self,
        question: &mut Question<'_>,
        lexeme: LexemeId,
        leftover: Leftover,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(known) = self.walks.get(&(lexeme, leftover)) {
            return Ok(known.clone());
        }
        let tops: Vec<NodeId> = match leftover {
            Leftover::NONE => question.trie.children(TokenTrie::ROOT).collect(),
            _ => self.costs.tops(leftover).iter().map(|&top| NodeId(top)).collect(),
        };
        let (mut stays, mut ends, mut below) =
            (FxHashSet::default(), FxHashSet::default(), FxHashMap::default());
        walk_lexeme(question, lexeme, &tops, |_, stepped| match stepped {
            Stepped::Stay(lexeme, true) => drop(stays.insert(lexeme)),
            Stepped::Stay(_, false) => {}
            Stepped::Cut { cut, is_token, tops } => {
                let known: &mut Vec<NodeId> = below.entry(cut).or_default();
                known.extend(tops);
                if is_token {
                    ends.insert(cut);
                }
            }
        })?;
        let mut stays: Vec<LexemeId> = stays.into_iter().collect();
        stays.sort_unstable();
        let exit = |(cut, tops)| (cut, ends.contains(&cut), self.costs.leftover(tops));
        let mut exits: Vec<_> =
            below.into_iter().map(exit).filter(|exit| exit.1 || exit.2 != Leftover::NONE).collect();
        exits.sort_unstable();
        let walk = Arc::new(Walk { stays: stays.into(), exits: exits.into() });
        self.walks.insert((lexeme, leftover), walk.clone());
        Ok(walk)
    }

    fn groups(
        &mut self,
        question: &mut Question<'_>,
        lexeme: LexemeId,
        rest: Option<&Rest>,
        n_words: usize,
    ) -> Result<Arc<Groups>, StepError> {
        let id = rest.map_or(0, |rest| rest.id);
        if let Some(known) = self.groups.get(&(lexeme, id)) {
            return Ok(known.clone());
        }
        let trie = question.trie;
        let tops = rest.map_or_else(|| trie.children(TokenTrie::ROOT).collect(), |rest| rest.tops.to_vec());
        let mut stays: FxHashMap<LexemeId, Vec<TokenId>> = FxHashMap::default();
        let mut cuts: FxHashMap<CutId, (Vec<TokenId>, Vec<NodeId>)> = FxHashMap::default();
        walk_lexeme(question, lexeme, &tops, |node, stepped| match stepped {
            Stepped::Stay(lexeme, true) => {
                stays.entry(lexeme).or_default().extend_from_slice(trie.tokens_at(node))
            }
            Stepped::Stay(_, false) => {}
            Stepped::Cut { cut, tops, .. } => {
                let (ends, below) = cuts.entry(cut).or_default();
                ends.extend_from_slice(trie.tokens_at(node));
                below.extend(tops);
            }
        })?;
        let bytes_of = |tokens: &Vec<TokenId>| 4 * tokens.len().min(n_words);
        let n_bytes = stays.values().chain(cuts.values().map(|cut| &cut.0)).map(bytes_of).sum::<usize>();
        let mut stays: Vec<_> =
            stays.into_iter().map(|(lexeme, tokens)| (lexeme, Tokens::new(tokens, n_words))).collect();
        // In an order that does not depend on hashing, so that times can be repeated.
        stays.sort_unstable_by_key(|&(lexeme, _)| lexeme);
        let mut cuts: Vec<_> = cuts.into_iter().collect();
        cuts.sort_unstable_by_key(|&(cut, _)| cut);
        if question.language.lexing().merges_ends() {
            // There the ends of pieces are followed together.
            cuts.clear();
        }
        let exits = cuts.into_iter().map(|(cut, (ends, tops))| Exit {
            cut,
            ends: (!ends.is_empty()).then(|| Tokens::new(ends, n_words)),
            rest: (!tops.is_empty()).then(|| self.rest(trie, tops, n_words)),
        });
        let groups = Arc::new(Groups { stays, exits: exits.collect() });
        let bytes = n_bytes + 64 * (groups.stays.len() + groups.exits.len());
        if self.group_bytes + bytes > question.language.limits().cache_bytes {
            self.groups.clear();
            self.rests.clear();
            self.group_bytes = 0;
        }
        self.group_bytes += bytes;
        self.groups.insert((lexeme, id), groups.clone());
        Ok(groups)
    }

    fn rest(&mut self, trie: &TokenTrie, mut tops: Vec<NodeId>, n_words: usize) -> Arc<Rest> {
        tops.sort_unstable();
        tops.dedup();
        if let Some(known) = self.rests.get(&*tops) {
            return known.clone();
        }
        let tokens: Vec<TokenId> =
            tops.iter().flat_map(|&top| trie.tokens_below(top).iter().copied()).collect();
        self.group_bytes += 4 * tokens.len().min(n_words) + 2 * size_of_val(&*tops) + 64;
        let leftover = self.costs.leftover(tops.iter().copied());
        // Numbers are never given twice, so that none in use is taken for another.
        self.n_rests += 1;
        let tops = tops.into_boxed_slice();
        let rest = Arc::new(Rest {
            id: self.n_rests,
            tops: tops.clone(),
            tokens: Tokens::new(tokens, n_words),
            leftover,
        });
        self.rests.insert(tops, rest.clone());
        rest
    }
}

/// What a byte of a token does to a lexeme, as [`Transducer::step`] says. The sweeps of masks
/// ([`crate::mask`]) take states for one that differ only beyond the token; what a completion costs depends
/// on that, so here they are told apart.
///
/// [`Transducer::step`]: anygram_lexer::transducer::Transducer::step
enum Stepped {
    /// The piece goes on; whether a token ends here.
    Stay(LexemeId, bool),
    /// The piece ends; whether a token ends here, and the subtrees of the trie that may follow.
    Cut { cut: CutId, is_token: bool, tops: Vec<NodeId> },
}

/// Walks subtrees of the trie with one lexeme, as long as the piece goes on.
fn walk_lexeme(
    question: &mut Question<'_>,
    lexeme: LexemeId,
    tops: &[NodeId],
    mut visit: impl FnMut(NodeId, Stepped),
) -> Result<(), StepError> {
    let Question { stepper, language, trie, work } = question;
    let lexing = language.lexing();
    for &top in tops {
        let mut n_steps = 0;
        trie.descend(trie.subtree(top), lexeme, |&before, at| {
            n_steps += 1;
            let step = stepper.transducer_mut().step(lexing, before, trie.byte(at))?;
            let is_token = !trie.tokens_at(at).is_empty();
            if let Some(cut) = step.cut {
                let obligations = stepper.transducer().cut(cut).obligations;
                let mut survives = |child: &NodeId| {
                    stepper.transducer_mut().survives(lexing, obligations, trie.byte(*child))
                };
                let tops = trie.children(at).filter(&mut survives).collect();
                visit(at, Stepped::Cut { cut, is_token, tops });
            }
            if let Some(next) = step.stay {
                visit(at, Stepped::Stay(next, is_token));
            }
            Ok::<_, StepError>(step.stay)
        })?;
        work.spend(n_steps)?;
    }
    Ok(())
}
