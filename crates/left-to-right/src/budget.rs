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
//! Where the grammar has a memory, all of this holds as if what may not be repeated could be. So a completion
//! that is found is written (`witness`). If it cannot be without repeating something, another one is
//! searched for in which these values are told apart (`recalled`): places are readings with what is recalled
//! of those values. That goes on until one can be written, or there is none. Tokens that lead to one reading
//! need not recall the same, so for a mask they are told apart too, as far as it matters.
//!
//! What is learned of a reading is kept: a lower and an upper bound on its cost. Where a budget lies above
//! the one or below the other, nothing is searched for either.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::{LexerMode, TerminalId};
use anygram_grammar::memory::Watched;
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::ample::{Ample, Bound};
use crate::costs::{Costs, Leftover, NEVER, Subtrees};
use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::mask::{self, Tokens};
use crate::recall::Recall;
use crate::recalled::{Outlook, Outlooks, Recalled};
use crate::witness::{self, Cuts, Node, Route, Written};

/// A reading, and what is left of the tokens in which it stands.
type Place = (Config, Leftover);

/// What tokens, or what is left of them, do to a lexeme in progress.
struct Walk {
    /// The lexemes that are in progress at the end of a token.
    stays: Box<[(LexemeId, Outlook)]>,
    /// How the piece can end: whether with a token, and what is left otherwise.
    exits: Box<[(CutId, Outlook, bool, Leftover)]>,
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

/// Bytes that are tried to make a piece in progress another one.
const DETOURS: usize = 24;

/// Lexemes beyond which it is found out again where pieces end in tokens.
const MOST_CUTS: usize = 500;

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
    costs: FxHashMap<Node, (u32, Option<Node>)>,
    /// What comes next: first the least key, then the latest.
    queue: BinaryHeap<(Reverse<u32>, u32, Node)>,
    n_pushed: u32,
    /// Places that were gone on from.
    closed: Vec<(Node, u32)>,
}

/// What a search has found.
struct Found {
    total: u32,
    /// The place from where it is known how to go on.
    last: Node,
    /// What comes behind it; empty at a sentence, and where nothing is told apart.
    ending: Option<Arc<[u8]>>,
}

/// An upper bound on the cost of a reading.
#[derive(Clone)]
struct Upper {
    cost: u32,
    /// How a completion begins of this cost, up to a token boundary where one goes on of which is known how;
    /// `None` if it is that of [`Ample`], or a sentence, and where nobody asks.
    next: Option<Arc<[Node]>>,
    /// Such a completion, if one was written.
    text: Option<Arc<[u8]>>,
}

/// What is known of completions within a limit that repeat nothing.
#[derive(Clone)]
enum Answer {
    /// There are none; what was told apart to know that.
    No(Arc<[Watched]>),
    /// The cost of one, and the values in it that were begun in it and are held against others.
    Yes(u32, Arc<[Watched]>),
}

impl Search {
    fn push(&mut self, node: Node, key: u32) {
        self.n_pushed += 1;
        self.queue.push((Reverse(key), self.n_pushed, node));
    }

    /// The nodes that lead to one.
    fn path(&self, last: Node) -> Vec<Node> {
        let mut path = vec![last];
        let mut at = last;
        while let Some(&(_, Some(before))) = self.costs.get(&at) {
            path.push(before);
            at = before;
        }
        path.reverse();
        path
    }
}

/// What is kept of searches within budgets.
pub struct Budgets {
    costs: Costs,
    subtrees: Arc<Subtrees>,
    /// `None` until it is known whether there are such bounds.
    ample: Option<Option<Ample>>,
    walks: FxHashMap<(LexemeId, Leftover, Outlook), Arc<Walk>>,
    groups: FxHashMap<(LexemeId, u32), Arc<Groups>>,
    rests: FxHashMap<Box<[NodeId]>, Arc<Rest>>,
    n_rests: u32,
    group_bytes: usize,
    /// The parser states as of which the rest holds.
    generation: u64,
    lower: FxHashMap<Place, u32>,
    upper: FxHashMap<Config, Upper>,
    outlooks: Outlooks,
    /// Answers about one limit, by what is recalled.
    answers: FxHashMap<(Config, (u32, u64)), Answer>,
    /// Where pieces end in tokens.
    cuts: FxHashMap<LexemeId, Cuts>,
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

/// The text whose tokens are asked about.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// Its readings outside of remembered values.
    pub frontier: &'a [Config],
    /// What is recalled of it.
    pub recall: &'a Recall,
    /// The tokens.
    pub vocabulary: &'a Vocabulary,
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
    /// Of a mask of readings, and what these recall. Cost: its words, where the language has a memory.
    pub fn new(language: &Language, mask: &[u32], frontier: &[Config], recall: &Recall) -> Self {
        if !language.grammar().remembers() {
            return Self(0);
        }
        let mut hasher = FxHasher::default();
        for (config, recalled) in recall.along(frontier) {
            (config, recalled.print()).hash(&mut hasher);
        }
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
            outlooks: Outlooks::new(language),
            answers: FxHashMap::default(),
            cuts: FxHashMap::default(),
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
            + self.outlooks.memory_usage()
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

    /// The same of readings that recall what may not be repeated, which [`Budgets::minimum`] takes for
    /// nothing.
    pub(crate) fn minimum_recalling(
        &mut self,
        question: &mut Question<'_>,
        readings: &[(Config, Recalled)],
        limit: u32,
    ) -> Result<Option<u32>, StepError> {
        self.begin(question);
        let (mut least, mut limit) = (None, limit);
        for (config, recalled) in readings {
            let answer = self.answer(question, (*config, recalled), (limit, false));
            if answer.is_err() {
                self.costs.clear();
            }
            if let Answer::Yes(cost, _) = answer? {
                (least, limit) = (Some(cost), cost);
            }
        }
        Ok(least)
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
        text: Text<'_>,
        limit: u32,
        plain: &[u32],
        words: &mut [u32],
    ) -> Result<Option<u32>, StepError> {
        self.begin(question);
        self.enough = 0;
        self.answers.clear();
        // Bits that need no further look: those that are set, and those that never will be.
        let mut decided: Vec<u32> = plain.iter().zip(&*words).map(|(&plain, &word)| word | !plain).collect();
        let result = self.decide(question, text, limit, &mut decided);
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
        if self.outlooks.tidy() {
            self.walks.clear();
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
        text: Text<'_>,
        limit: u32,
        decided: &mut [u32],
    ) -> Result<(), StepError> {
        let language = question.language;
        let (together, remembers) = (language.lexing().merges_ends(), language.grammar().remembers());
        let starts = text.recall.along(text.frontier);
        let mut agenda: Vec<(Config, Option<Arc<Rest>>, usize)> =
            starts.iter().enumerate().map(|(at, &(config, _))| (config, None, at)).collect();
        let mut seen: FxHashSet<(Config, u32, usize)> = FxHashSet::default();
        // Tokens that have to be looked at one by one.
        let mut alone = vec![0; if remembers { decided.len() } else { 0 }];
        while let Some((config, rest, at)) = agenda.pop() {
            let id = rest.as_ref().map_or(0, |rest| rest.id);
            let is_new = seen.insert((config, id, if remembers { at } else { 0 }));
            if !is_new || rest.as_ref().is_some_and(|rest| rest.tokens.is_subset(decided)) {
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
            let start = &starts[at].1;
            for (lexeme, tokens) in &groups.stays {
                let config = Config { lexeme: *lexeme, ..config };
                if !tokens.is_subset(decided) {
                    self.admit(question, (text, start, config), tokens, limit, (decided, &mut alone))?;
                }
            }
            for Exit { cut, ends, rest } in &groups.exits {
                let ends_left = ends.as_ref().filter(|ends| !ends.is_subset(decided));
                let rest_left = rest.as_ref().filter(|rest| !rest.tokens.is_subset(decided));
                if ends_left.is_none() && rest_left.is_none() {
                    continue;
                }
                let Some(config) = question.stepper.end(language, (config.state, *cut))? else {
                    continue;
                };
                if let Some(ends) = ends_left {
                    self.admit(question, (text, start, config), ends, limit, (decided, &mut alone))?;
                }
                agenda.extend(rest_left.map(|rest| (config, Some(rest.clone()), at)));
            }
        }
        if remembers {
            if together {
                alone.iter_mut().zip(&*decided).for_each(|(alone, decided)| *alone = !decided);
            }
            return self.look_at(question, text, limit, (decided, &alone));
        }
        if !together {
            return Ok(());
        }
        mask::follow_together(
            question,
            language,
            question.trie,
            text.frontier,
            decided,
            |question, readings| self.fits(question, readings, limit),
        )
    }

    /// Adds those of some tokens, which lead to one reading, that are within a limit. Those that have to be
    /// looked at alone are noted.
    fn admit(
        &mut self,
        question: &mut Question<'_>,
        (text, start, config): (Text<'_>, &Recalled, Config),
        tokens: &Tokens,
        limit: u32,
        (decided, alone): (&mut [u32], &mut [u32]),
    ) -> Result<(), StepError> {
        if let Recalled::Nothing = start {
            if self.fits(question, &[config], limit)? {
                tokens.add_to(decided);
            }
            return Ok(());
        }
        let grammar = question.language.grammar();
        let own = self.outlooks.of(start, &[], true);
        let all = tokens.all_outside(decided);
        let behind = self.behind_tokens(question, text, (own, &all))?;
        let mut left = Vec::with_capacity(all.len());
        for (token, behind) in all.into_iter().zip(behind) {
            if self.outlooks.is_lost(behind) {
                mask::set_bit(alone, token.index());
            } else {
                left.push(token);
            }
        }
        while let Some(&token) = left.first() {
            let recalled = start.read(grammar, text.vocabulary.bytes(token).unwrap_or_default());
            let answer = self.answer_within(question, (config, &recalled), limit)?;
            // Of those that differ in nothing that matters here, all have the same answer.
            let (values, fits) = match &answer {
                Answer::No(values) if values.is_empty() => break,
                Answer::No(values) => (values, false),
                Answer::Yes(_, values) => (values, true),
            };
            let from = self.outlooks.of(start, values, fits);
            let behind = self.behind_tokens(question, text, (from, &left))?;
            let own = behind[0];
            let is_one = self.outlooks.is_lost(own);
            let mut behind = behind.into_iter();
            left.retain(|&other| {
                let is_same = behind.next() == Some(own) && !is_one;
                let is_alike = other == token || is_same;
                if is_alike && fits {
                    mask::set_bit(decided, other.index());
                }
                !is_alike
            });
        }
        Ok(())
    }

    fn behind_tokens(
        &mut self,
        question: &mut Question<'_>,
        text: Text<'_>,
        from: (Outlook, &[TokenId]),
    ) -> Result<Vec<Outlook>, StepError> {
        let grammar = question.language.grammar();
        let (behind, n_steps) = self.outlooks.behind_tokens(grammar, text.vocabulary, from);
        question.work.spend(n_steps)?;
        Ok(behind)
    }

    /// Adds those of some tokens that are within a limit, one by one.
    fn look_at(
        &mut self,
        question: &mut Question<'_>,
        text: Text<'_>,
        limit: u32,
        (decided, alone): (&mut [u32], &[u32]),
    ) -> Result<(), StepError> {
        let (language, trie) = (question.language, question.trie);
        let root = (text.frontier.to_vec(), text.recall.clone());
        trie.descend(trie.below_root(), root, |(frontier, recall), at| {
            let is_asked = |token: &TokenId| {
                mask::get_bit(alone, token.index()) && !mask::get_bit(decided, token.index())
            };
            if !trie.tokens_below(at).iter().any(is_asked) {
                return Ok(None);
            }
            let (mut next, mut recall) = (Vec::new(), recall.clone());
            question.stepper.step_recalling(language, frontier, &mut recall, trie.byte(at), &mut next)?;
            if next.is_empty() && recall.values().is_empty() {
                return Ok(None);
            }
            if trie.tokens_at(at).iter().any(is_asked) {
                for (config, recalled) in recall.along(&next) {
                    if let Answer::Yes(..) = self.answer_within(question, (config, &recalled), limit)? {
                        trie.tokens_at(at).iter().for_each(|token| mask::set_bit(decided, token.index()));
                        break;
                    }
                }
            }
            Ok(Some((next, recall)))
        })
    }

    /// Whether at most `limit` tokens complete a reading without repeating anything; as long as the question
    /// lasts it is kept.
    fn answer_within(
        &mut self,
        question: &mut Question<'_>,
        (config, recalled): (Config, &Recalled),
        limit: u32,
    ) -> Result<Answer, StepError> {
        let key = (config, recalled.print());
        let answer = match self.answers.get(&key) {
            Some(known) => known.clone(),
            None => {
                let answer = self.answer(question, (config, recalled), (limit, true))?;
                self.answers.insert(key, answer.clone());
                answer
            }
        };
        if let Answer::Yes(cost, _) = answer {
            self.enough = self.enough.max(cost);
        }
        Ok(answer)
    }

    /// The least cost of completing a reading at a token boundary without repeating anything, if it is at
    /// most `limit`; or, if `any` is enough, some cost.
    fn answer(
        &mut self,
        question: &mut Question<'_>,
        (config, recalled): (Config, &Recalled),
        (limit, any): (u32, bool),
    ) -> Result<Answer, StepError> {
        if any
            && !matches!(recalled, Recalled::Nothing)
            && let Some(answer) = self.nearest(question, (config, recalled), limit)?
        {
            return Ok(answer);
        }
        let upper = if any { self.upper(question, config)? } else { NEVER };
        let found = match upper <= limit {
            true => Some(upper),
            false => self.least(question, &[config], (limit, any))?,
        };
        let Some(cost) = found else { return Ok(Answer::No(Arc::from([]))) };
        if let Recalled::Nothing = recalled {
            return Ok(Answer::Yes(cost, Arc::from([])));
        }
        if let Some(text) = self.upper.get(&config).and_then(|upper| upper.text.clone()) {
            let route = Route { from: (config, Outlook::NONE), nodes: Vec::new(), ending: Some(text) };
            if let Ok(written) = self.write(question, &route, recalled)? {
                return Ok(Answer::Yes(cost, written.new));
            }
        }
        let route = self.route(question, config)?;
        let written = self.write(question, &route, recalled)?;
        if let Ok(Written { texts, .. }) = &written {
            self.keep_texts(&route, texts);
        }
        let mut watched: Vec<Watched> = Vec::new();
        let mut written = (cost, written);
        loop {
            let repeated = match written {
                (cost, Ok(Written { new, .. })) => return Ok(Answer::Yes(cost, new)),
                (_, Err(repeated)) => repeated,
            };
            let n_before = watched.len();
            for value in repeated {
                if watched.iter().all(|known| known.print != value.print) {
                    watched.push(value);
                }
            }
            // Where nothing new is learned it would go on forever.
            question.work.spend(if watched.len() > n_before { GROWTH } else { usize::MAX / 2 })?;
            let start = ((config, Leftover::NONE), self.outlooks.of(recalled, &watched, false));
            let mut search = Search { limit, any, ..Search::default() };
            search.costs.insert(start, (0, None));
            search.push(start, 0);
            let Some(found) = self.run(question, &mut search)? else {
                return Ok(Answer::No(watched.into()));
            };
            let mut nodes = search.path(found.last);
            nodes.remove(0);
            let route = Route { from: (config, start.1), nodes, ending: found.ending };
            written = (found.total, self.write(question, &route, recalled)?);
        }
    }

    /// Writes a route, if that repeats nothing; else the values that stand in the way.
    fn write(
        &mut self,
        question: &mut Question<'_>,
        route: &Route,
        recalled: &Recalled,
    ) -> Result<Result<Written, Vec<Watched>>, StepError> {
        let Self { outlooks, cuts, .. } = self;
        witness::write(question, outlooks, (route, recalled), &mut |question, lexeme| {
            if let Some(known) = cuts.get(&lexeme) {
                return Ok(known.clone());
            }
            let found: Cuts = cuts_in_tokens(question, lexeme)?.into();
            if cuts.len() >= MOST_CUTS {
                cuts.clear();
            }
            cuts.insert(lexeme, found.clone());
            Ok(found)
        })
    }

    /// Keeps the text of a completion.
    fn keep_texts(&mut self, route: &Route, texts: &[Option<Arc<[u8]>>]) {
        let boundaries = route.nodes.iter().filter(|((_, leftover), _)| *leftover == Leftover::NONE);
        let configs = [route.from.0].into_iter().chain(boundaries.map(|((config, _), _)| *config));
        for (config, text) in configs.zip(texts) {
            if let Some(upper) = self.upper.get_mut(&config).filter(|upper| upper.next.is_some()) {
                upper.text.clone_from(text);
            }
        }
    }

    /// What nearly always is enough of an ample budget: the ending that takes no search, at once or behind
    /// one more byte.
    fn nearest(
        &mut self,
        question: &mut Question<'_>,
        (config, recalled): (Config, &Recalled),
        limit: u32,
    ) -> Result<Option<Answer>, StepError> {
        let language = question.language;
        let samples = language.lexing().lexicon.union.samples().iter().copied();
        let bytes = samples.filter(u8::is_ascii_graphic).take(DETOURS).map(Some);
        for byte in [None].into_iter().chain(bytes) {
            let (mut at, mut recalled) = (config, Cow::Borrowed(recalled));
            if let Some(byte) = byte {
                let step = question.stepper.transducer_mut().step(language.lexing(), config.lexeme, byte)?;
                let Some(lexeme) = step.stay else { continue };
                at = Config { lexeme, ..config };
                recalled = Cow::Owned(recalled.step(language.grammar(), byte));
            }
            let (cost, ending) = self.ending(question, at)?;
            // Where there is such a bound, every byte is a token.
            let cost = cost.saturating_add(u32::from(byte.is_some()));
            if cost > limit || ending.is_none() {
                continue;
            }
            let route = Route { from: (at, Outlook::NONE), nodes: Vec::new(), ending };
            if let Ok(written) = self.write(question, &route, &recalled)? {
                return Ok(Some(Answer::Yes(cost, written.new)));
            }
        }
        Ok(None)
    }

    /// A completion of which an upper bound is known.
    fn route(&mut self, question: &mut Question<'_>, config: Config) -> Result<Route, StepError> {
        let (mut nodes, mut at) = (Vec::new(), config);
        let ending = loop {
            if question.stepper.is_sentence(&[at]) {
                break None;
            }
            let known = self.upper.get(&at);
            // With that it begins nowhere.
            if let Some(text) = known.and_then(|upper| upper.text.clone()).filter(|_| !nodes.is_empty()) {
                break Some(text);
            }
            match known.and_then(|upper| upper.next.clone()) {
                Some(next) => {
                    nodes.extend(next.iter().copied());
                    at = next.last().map_or(at, |node| node.0.0);
                }
                None => break self.ending(question, at)?.1,
            }
        };
        Ok(Route { from: (config, Outlook::NONE), nodes, ending })
    }

    /// The upper bound that takes no search, and its text, if there is one.
    fn ending(&mut self, question: &mut Question<'_>, config: Config) -> Result<Bound, StepError> {
        let Question { stepper, language, trie, work } = question;
        let ample = match &mut self.ample {
            Some(ample) => ample,
            unknown => unknown.insert(Ample::new(language, trie, work)?),
        };
        match ample {
            Some(ample) => ample.upper(stepper, (language, trie), config),
            None => Ok((NEVER, None)),
        }
    }

    /// Whether a text makes a sentence of a reading, as far as values are told apart.
    fn may_end(
        &mut self,
        question: &mut Question<'_>,
        (config, outlook): (Config, Outlook),
        text: &[u8],
    ) -> Result<bool, StepError> {
        let (language, grammar) = (question.language, question.language.grammar());
        let mut readings = vec![(config, outlook)];
        for &byte in text {
            let mut next = Vec::new();
            for (Config { state, lexeme }, outlook) in readings {
                question.work.spend(1)?;
                let step = question.stepper.transducer_mut().step(language.lexing(), lexeme, byte)?;
                let outlook = self.outlooks.step(grammar, outlook, byte);
                next.extend(step.stay.map(|lexeme| (Config { state, lexeme }, outlook)));
                let Some(cut) = step.cut else { continue };
                let ending = self.outlooks.ending(grammar, outlook);
                for (opened, config) in question.stepper.ends(language, (state, cut), ending)? {
                    next.push((config, self.outlooks.behind(grammar, outlook, opened)));
                }
            }
            next.sort_unstable();
            next.dedup();
            readings = next;
        }
        Ok(readings.iter().any(|&(config, _)| question.stepper.is_sentence(&[config])))
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
                && lexing.cfg.automata.is_empty()
                && !question.language.grammar().remembers();
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
        if let Some(known) = self.upper.get(&config) {
            return Ok(known.cost);
        }
        let (cost, text) = self.ending(question, config)?;
        // Where nobody could write it, it is of no use.
        let is_of_use = text.is_some() || !question.language.grammar().remembers();
        let cost = if is_of_use { cost } else { NEVER };
        self.upper.insert(config, Upper { cost, next: None, text: None });
        Ok(cost)
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
        if let Some(upper) = self.upper.get(&config)
            && self.lower.get(&start) == Some(&upper.cost)
        {
            return Ok((upper.cost <= limit).then_some(upper.cost));
        }
        let Some(least) = self.bound(question, start, limit)? else { return Ok(None) };
        let mut search = Search { limit, any, ..Search::default() };
        let node = (start, Outlook::NONE);
        search.costs.insert(node, (0, None));
        let key = self.key(question, &search, start, (0, least))?;
        search.push(node, key);
        let found = self.run(question, &mut search)?;
        if found.is_none() || !any {
            // What was looked at lacks at least what is left of the total.
            let total = found.as_ref().map_or(limit.saturating_add(1), |found| found.total);
            for &((place, _), cost) in &search.closed {
                let known = self.lower.entry(place).or_insert(0);
                *known = (*known).max(total - cost);
            }
        }
        let Some(Found { total, last, .. }) = found else { return Ok(None) };
        let remembers = question.language.grammar().remembers();
        // The places behind one, up to the next token boundary.
        let mut next: Vec<Node> = Vec::new();
        for node in search.path(last).into_iter().rev() {
            let ((config, leftover), _) = node;
            if leftover == Leftover::NONE {
                let cost = total - search.costs.get(&node).map_or(0, |known| known.0);
                let is_better = self.upper.get(&config).is_none_or(|known| known.cost > cost);
                let route = (remembers && !next.is_empty()).then(|| next.iter().rev().copied().collect());
                if is_better {
                    self.upper.insert(config, Upper { cost, next: route, text: None });
                }
                next.clear();
            }
            next.push(node);
        }
        Ok(Some(total))
    }

    /// Goes on with a search until there is a completion.
    fn run(&mut self, question: &mut Question<'_>, search: &mut Search) -> Result<Option<Found>, StepError> {
        let mut is_closed: FxHashMap<Node, u32> = FxHashMap::default();
        let mut n_states_before = question.language.lexing().lexicon.union.n_states();
        while let Some((Reverse(key), _, node)) = search.queue.pop() {
            let Some(&(cost, _)) = search.costs.get(&node) else { continue };
            if is_closed.get(&node).is_some_and(|&before| before <= cost) {
                continue;
            }
            let (place, _) = node;
            // No more is asked than whether it is its turn.
            let lower =
                if search.any { self.bound(question, place, search.limit - cost)? } else { Some(key - cost) };
            let Some(lower) = lower else { continue };
            if !search.any && !self.is_possible(question, place, lower)? {
                if key < search.limit {
                    search.push(node, key + 1);
                }
                continue;
            }
            if search.any && key >= GUESSED && GUESSED + lower > key {
                search.push(node, GUESSED + lower);
                continue;
            }
            is_closed.insert(node, cost);
            search.closed.push((node, cost));
            let most = if search.any { search.limit } else { cost + lower };
            if let Some(found) = self.goal(question, node, (cost, most))? {
                return Ok(Some(found));
            }
            for (next, more) in self.successors(question, node)? {
                let next_cost = cost + more;
                let is_known = search.costs.get(&next).is_some_and(|&(known, _)| known <= next_cost);
                if next_cost > search.limit || is_known {
                    continue;
                }
                search.costs.insert(next, (next_cost, Some(node)));
                // The bound of the place before holds for now; its own is asked for when it comes up.
                let key = self.key(question, search, next.0, (next_cost, lower.saturating_sub(more)))?;
                search.push(next, key);
            }
            let n_states = question.language.lexing().lexicon.union.n_states();
            question.work.spend(1 + GROWTH * (n_states - n_states_before))?;
            n_states_before = n_states;
        }
        Ok(None)
    }

    /// Whether it is known how to go on from a node to a sentence, at a total of no more than `most`.
    fn goal(
        &mut self,
        question: &mut Question<'_>,
        node: Node,
        (cost, most): (u32, u32),
    ) -> Result<Option<Found>, StepError> {
        let ((config, leftover), outlook) = node;
        if leftover != Leftover::NONE {
            return Ok(None);
        }
        if question.stepper.is_sentence(&[config]) {
            return Ok(Some(Found { total: cost, last: node, ending: None }));
        }
        let total = cost.saturating_add(self.upper(question, config)?);
        if total > most {
            return Ok(None);
        }
        if outlook == Outlook::NONE {
            return Ok(Some(Found { total, last: node, ending: None }));
        }
        let (more, ending) = self.ending(question, config)?;
        let total = cost.saturating_add(more);
        let Some(text) = ending.filter(|_| total <= most) else { return Ok(None) };
        let is_goal = self.may_end(question, (config, outlook), &text)?;
        Ok(is_goal.then_some(Found { total, last: node, ending: Some(text) }))
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
    fn successors(&mut self, question: &mut Question<'_>, node: Node) -> Result<Vec<(Node, u32)>, StepError> {
        let ((config, leftover), outlook) = node;
        let cost = u32::from(leftover == Leftover::NONE);
        let walk = self.walk(question, (config.lexeme, leftover), outlook)?;
        let Question { stepper, language, work, .. } = question;
        let grammar = language.grammar();
        work.spend(walk.stays.len() + walk.exits.len())?;
        let mut found = Vec::with_capacity(walk.stays.len() + walk.exits.len());
        let staying = |&(lexeme, outlook): &(LexemeId, Outlook)| {
            (((Config { lexeme, ..config }, Leftover::NONE), outlook), cost)
        };
        found.extend(walk.stays.iter().map(staying));
        for &(cut, behind, ends, rest) in &walk.exits {
            let ending = self.outlooks.ending(grammar, behind);
            for (opened, config) in stepper.ends(language, (config.state, cut), ending)? {
                let outlook = self.outlooks.behind(grammar, behind, opened);
                found.extend((rest != Leftover::NONE).then_some((((config, rest), outlook), cost)));
                found.extend(ends.then_some((((config, Leftover::NONE), outlook), cost)));
            }
        }
        if leftover == Leftover::NONE {
            for &terminal in language.lexing().specials() {
                let next = stepper.step_special(language, &[config], terminal)?;
                found.extend(next.into_iter().map(|config| (((config, Leftover::NONE), outlook), 1)));
            }
        }
        Ok(found)
    }

    fn walk(
        &mut self,
        question: &mut Question<'_>,
        (lexeme, leftover): (LexemeId, Leftover),
        outlook: Outlook,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(known) = self.walks.get(&(lexeme, leftover, outlook)) {
            return Ok(known.clone());
        }
        let tops: Vec<NodeId> = match leftover {
            Leftover::NONE => question.trie.children(TokenTrie::ROOT).collect(),
            _ => self.costs.tops(leftover).iter().map(|&top| NodeId(top)).collect(),
        };
        let (mut stays, mut ends, mut below) =
            (FxHashSet::default(), FxHashSet::default(), FxHashMap::default());
        walk_lexeme(question, &mut self.outlooks, (lexeme, outlook), &tops, |_, stepped, outlook| {
            match stepped {
                Stepped::Stay(lexeme, true) => drop(stays.insert((lexeme, outlook))),
                Stepped::Stay(_, false) => {}
                Stepped::Cut { cut, is_token, tops } => {
                    let known: &mut Vec<NodeId> = below.entry((cut, outlook)).or_default();
                    known.extend(tops);
                    if is_token {
                        ends.insert((cut, outlook));
                    }
                }
            }
        })?;
        let mut stays: Vec<(LexemeId, Outlook)> = stays.into_iter().collect();
        stays.sort_unstable();
        let exit =
            |(at, tops): ((CutId, Outlook), _)| (at.0, at.1, ends.contains(&at), self.costs.leftover(tops));
        let mut exits: Vec<_> =
            below.into_iter().map(exit).filter(|exit| exit.2 || exit.3 != Leftover::NONE).collect();
        exits.sort_unstable();
        let walk = Arc::new(Walk { stays: stays.into(), exits: exits.into() });
        self.walks.insert((lexeme, leftover, outlook), walk.clone());
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
        let start = (lexeme, Outlook::NONE);
        walk_lexeme(question, &mut self.outlooks, start, &tops, |node, stepped, _| match stepped {
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

/// Where a piece can end in tokens that it goes on with.
fn cuts_in_tokens(question: &mut Question<'_>, lexeme: LexemeId) -> Result<Vec<(NodeId, CutId)>, StepError> {
    let Question { stepper, language, trie, work } = question;
    let mut cuts = Vec::new();
    trie.descend(trie.below_root(), lexeme, |&before, at| {
        work.spend(1)?;
        let step = stepper.transducer_mut().step(language.lexing(), before, trie.byte(at))?;
        cuts.extend(step.cut.map(|cut| (at, cut)));
        Ok::<_, StepError>(step.stay)
    })?;
    Ok(cuts)
}

/// Walks subtrees of the trie with one lexeme, and what is watched for, as long as the piece goes on.
fn walk_lexeme(
    question: &mut Question<'_>,
    outlooks: &mut Outlooks,
    from: (LexemeId, Outlook),
    tops: &[NodeId],
    mut visit: impl FnMut(NodeId, Stepped, Outlook),
) -> Result<(), StepError> {
    let Question { stepper, language, trie, work } = question;
    let (lexing, grammar) = (language.lexing(), language.grammar());
    for &top in tops {
        let mut n_steps = 0;
        trie.descend(trie.subtree(top), from, |&(before, outlook), at| {
            n_steps += 1;
            let step = stepper.transducer_mut().step(lexing, before, trie.byte(at))?;
            if step.cut.is_none() && step.stay.is_none() {
                return Ok(None);
            }
            let outlook = outlooks.step(grammar, outlook, trie.byte(at));
            let is_token = !trie.tokens_at(at).is_empty();
            if let Some(cut) = step.cut {
                let obligations = stepper.transducer().cut(cut).obligations;
                let mut survives = |child: &NodeId| {
                    stepper.transducer_mut().survives(lexing, obligations, trie.byte(*child))
                };
                let tops = trie.children(at).filter(&mut survives).collect();
                visit(at, Stepped::Cut { cut, is_token, tops }, outlook);
            }
            if let Some(next) = step.stay {
                visit(at, Stepped::Stay(next, is_token), outlook);
            }
            Ok::<_, StepError>(step.stay.map(|lexeme| (lexeme, outlook)))
        })?;
        work.spend(n_steps)?;
    }
    Ok(())
}
