//! Token masks: the tokens after which a frontier is still viable.
//!
//! What a token does to a lexeme in progress, as long as the piece goes on, depends on nothing else. So for
//! each lexeme the trie of tokens is walked once and the result kept: the tokens that merely prolong the
//! piece, and, for each way in which the piece can end inside a token, what is left of those tokens, as a
//! trie of its own. The trie itself is walked once for each state of the lexer, whatever is wanted of the
//! piece (a *sweep*); what different parser states want only picks among the groups of tokens that this
//! finds. Words differ but what is left of them after a word does not (`foo(`, `bar(`), so these tries are
//! small; they are walked in the same way from the boundary that the parser comes to, and those walks are
//! kept too. A mask is then a few steps of the parser and unions of token sets. Cost when all walks are
//! known: the ends of pieces that are followed × words of a mask.
//!
//! In `scannerless` all pieces that end at one byte have to meet in one parser state, so there the trie is
//! walked with the whole frontier, and the kept walks only say what need not be visited. Cost: nodes visited
//! × readings. Where a grammar promises that few cuts survive the next byte
//! ([`delimited`](anygram_grammar::ir::Grammar::delimited)), ends are followed one by one there too.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anygram_bits::{BitSet, Random};
use anygram_grammar::automata::Nature;
use anygram_grammar::ir::LexerMode;
use anygram_lexer::LexerError;
use anygram_lexer::transducer::{CutId, LexemeId, Lexing, Place, Prospect, Transducer};
use anygram_vocab::{Alphabet, Inside, NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::common::{self, Bounds, Commons, Difference, Fate, Known, Walked};
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};

/// Masks are rows of 32-bit words, bit `id % 32` of word `id / 32`, as serving engines share them.
pub const MASK_BITS: usize = u32::BITS as usize;

/// Words of a row that are looked at together.
const STRETCH: usize = 64;

/// Sets a token's bit.
pub fn set_bit(words: &mut [u32], id: usize) {
    words[id / MASK_BITS] |= 1 << (id % MASK_BITS);
}

/// Clears a token's bit.
pub fn clear_bit(words: &mut [u32], id: usize) {
    words[id / MASK_BITS] &= !(1 << (id % MASK_BITS));
}

/// Whether a token's bit is set.
#[inline]
pub fn get_bit(words: &[u32], id: usize) -> bool {
    words[id / MASK_BITS] >> (id % MASK_BITS) & 1 == 1
}

/// A set of tokens: a sorted list while that is smaller than a row of a mask.
#[derive(Debug)]
pub enum Tokens {
    /// A list.
    Few(Box<[TokenId]>),
    /// A row of a mask.
    Many(Box<[u32]>),
}

impl Tokens {
    /// The set of some tokens; `n_words` is the length of a row.
    pub fn new(mut tokens: Vec<TokenId>, n_words: usize) -> Self {
        // A list costs about as much as a row when it has an eighth of its words: its bits are scattered.
        if tokens.len() <= n_words / 8 {
            tokens.sort_unstable();
            tokens.dedup();
            return Self::Few(tokens.into());
        }
        let mut words = vec![0; n_words];
        tokens.iter().for_each(|token| set_bit(&mut words, token.index()));
        Self::Many(words.into())
    }

    /// How many there are. Cost of a row: O(words).
    pub fn count(&self) -> usize {
        match self {
            Self::Few(tokens) => tokens.len(),
            Self::Many(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The lowest, if there is one. Cost of a row: the words before it.
    pub fn first(&self) -> Option<TokenId> {
        match self {
            Self::Few(tokens) => tokens.first().copied(),
            Self::Many(words) => {
                let at = words.iter().position(|&word| word != 0)?;
                Some(TokenId::new(at * MASK_BITS + words[at].trailing_zeros() as usize))
            }
        }
    }

    /// One of them, if there is one. Cost of a row: as long as its tokens are rare.
    pub fn some(&self, random: &mut Random) -> Option<TokenId> {
        match self {
            Self::Few(tokens) => (!tokens.is_empty()).then(|| *random.choose(tokens)),
            Self::Many(words) => {
                let from = random.below(words.len());
                let at = (from..words.len()).chain(0..from).find(|&at| words[at] != 0)?;
                Some(TokenId::new(at * MASK_BITS + words[at].trailing_zeros() as usize))
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Few(tokens) if tokens.is_empty())
    }

    /// The lowest that is not in a row. Cost: O(words).
    pub fn first_outside(&self, words: &[u32]) -> Option<TokenId> {
        match self {
            Self::Few(tokens) => tokens.iter().copied().find(|token| !get_bit(words, token.index())),
            Self::Many(own) => {
                // Stretch by stretch, so that several words are looked at at once.
                let stretches = own.chunks(STRETCH).zip(words.chunks(STRETCH));
                let has_some = |(own, words): &(&[u32], &[u32])| {
                    own.iter().zip(*words).fold(0, |left, (&own, &word)| left | own & !word) != 0
                };
                let (stretch, (own, words)) = stretches.enumerate().find(|(_, stretch)| has_some(stretch))?;
                let left = own.iter().zip(words).map(|(&own, &word)| own & !word);
                let (at, left) = left.enumerate().find(|&(_, left)| left != 0)?;
                Some(TokenId::new((stretch * STRETCH + at) * MASK_BITS + left.trailing_zeros() as usize))
            }
        }
    }

    /// Adds them to a row.
    pub fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => tokens.iter().for_each(|token| set_bit(words, token.index())),
            Self::Many(own) => words.iter_mut().zip(own).for_each(|(word, &own)| *word |= own),
        }
    }

    /// Whether all of them are in a row.
    pub fn is_subset(&self, words: &[u32]) -> bool {
        match self {
            Self::Few(tokens) => tokens.iter().all(|token| get_bit(words, token.index())),
            Self::Many(own) => words.iter().zip(own).all(|(&word, &own)| own & !word == 0),
        }
    }

    /// Whether a token is one of them. Cost: O(log n).
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Few(tokens) => tokens.binary_search(&token).is_ok(),
            Self::Many(own) => get_bit(own, token.index()),
        }
    }

    /// The lowest of some tokens, sorted, that is one of them, where that is quicker to say than to look
    /// through them.
    pub fn first_among(&self, few: &[TokenId]) -> Option<Option<TokenId>> {
        let is_quick = match self {
            Self::Few(tokens) => {
                few.len() * tokens.len().checked_ilog2().map_or(1, |log| log as usize + 1) < tokens.len()
            }
            Self::Many(own) => few.len() < own.len(),
        };
        is_quick.then(|| few.iter().copied().find(|&token| self.contains(token)))
    }

    /// The members, if they are a list.
    fn listed(&self) -> &[TokenId] {
        match self {
            Self::Few(tokens) => tokens,
            Self::Many(_) => &[],
        }
    }

    fn remove_from(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => {
                tokens.iter().for_each(|token| {
                    words[token.index() / MASK_BITS] &= !(1 << (token.index() % MASK_BITS))
                });
            }
            Self::Many(own) => words.iter_mut().zip(own).for_each(|(word, &own)| *word &= !own),
        }
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        match self {
            Self::Few(tokens) => size_of_val(&**tokens),
            Self::Many(words) => size_of_val(&**words),
        }
    }
}

/// The rests of tokens behind the end of a piece, as a trie.
#[derive(Debug)]
pub struct Rest {
    /// Tells tries apart; 0 is the vocabulary's own.
    pub id: u64,
    /// The bytes that are left.
    pub trie: TokenTrie,
    /// Of which tokens.
    pub tokens: Tokens,
    /// The most bytes that are left.
    pub height: usize,
}

/// A sweep: what all tokens (or rests) do to a piece from one lexer place, for every set of wanted terminals.
/// It groups the tokens by the place that they come to.
#[derive(Default, Debug)]
pub struct Sweep {
    /// Each with its own place, in the order in which the sorted tokens come to them.
    pub groups: Box<[Group]>,
}

/// What comes to one place of the automata.
#[derive(Debug)]
pub struct Group {
    /// The place.
    pub place: Place,
    /// The tokens that end here.
    pub tokens: Arc<Tokens>,
    /// Their number, and the lowest: with merged pairs of bytes the oldest, which is mostly the plainest.
    pub n_tokens: usize,
    /// See `n_tokens`; arbitrary if there are none.
    pub first: TokenId,
    /// The nodes below which stands what is left of the others if the piece ends here, as far as it can
    /// follow.
    tops: Box<[NodeId]>,
    /// That as a trie, once somebody wants the piece to end here.
    rest: OnceLock<Arc<Rest>>,
}

/// A walk: a [`Sweep`] restricted to one set of wanted terminals.
struct Walk {
    /// The tokens after which the piece is in progress and can be completed: sets whose rows are the sweep's,
    /// and a list.
    stay: Box<[Arc<Tokens>]>,
    /// The tokens after which it is in progress as a lexeme of unknown prospect, by lexeme.
    unknown: Vec<(LexemeId, Arc<Tokens>)>,
    /// The ways in which the piece can end, as far as not all tokens concerned are among `stay`.
    exits: Vec<Exit>,
}

/// A way in which a piece can end inside tokens or with them.
struct Exit {
    cut: CutId,
    /// The tokens that end here.
    ends: Option<Arc<Tokens>>,
    /// What is left of the others.
    rest: Option<Arc<Rest>>,
}

/// Nodes of a trie that are looked at for the sake of one lexeme; where there are more, all are looked at,
/// for all lexemes at the place. A smaller trie is walked whole at once.
const MANY_NODES: usize = 10_000;

/// The same where many lexemes at a place are asked about.
const FEW_NODES: usize = 1_000;

/// The walks that are kept, bounded in bytes: when full, all are dropped.
#[derive(Default)]
pub struct Walks {
    walks: FxHashMap<(LexemeId, u64), Arc<Walk>>,
    sweeps: FxHashMap<(Place, u64), Arc<Sweep>>,
    /// Those of the vocabulary: what is left of its tokens does not depend on the language.
    rests: Arc<Rests>,
    bytes: usize,
    /// Whether the ends of pieces are followed one by one in `scannerless` too.
    apart: bool,
    /// What the vocabulary knows of automata in common use.
    commons: Option<Arc<Commons>>,
    n_seen: u64,
    /// Scratch: a row, all zero between uses.
    row: Vec<u32>,
}

/// What is left of a vocabulary's tokens, for all that ask.
#[derive(Default)]
struct Rests(Mutex<RestTable>);

/// Bounded in bytes: when full, all are dropped.
#[derive(Default)]
struct RestTable {
    /// By the trie and the nodes of it that they begin with.
    by_tops: FxHashMap<(u64, Box<[NodeId]>), Arc<Rest>>,
    /// The same by a hash of their tries: what is left of tokens is one rest, by whichever way one came to
    /// it.
    by_trie: FxHashMap<u64, Vec<Arc<Rest>>>,
    bytes: usize,
    /// How many were made, those that were dropped too: one that is in use may not be taken for another.
    n_made: u64,
}

/// Bytes that are kept beside a vocabulary of what is left of tokens.
const REST_BYTES: usize = 64 << 20;

impl Rests {
    fn table(&self) -> MutexGuard<'_, RestTable> {
        // Of what a panic left behind each entry is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left of the tokens at and below some nodes of a trie, from the bytes of the nodes on. Made
    /// once for the same nodes, as long as there is room.
    fn get(&self, (id, trie): (u64, &TokenTrie), tops: &[NodeId], n_words: usize) -> Arc<Rest> {
        let key: (u64, Box<[NodeId]>) = (id, tops.into());
        if let Some(rest) = self.table().by_tops.get(&key) {
            return rest.clone();
        }
        // Nobody waits for it who wants another.
        let trie = trie.below(&key.1);
        let hash = FxBuildHasher.hash_one(&trie);
        self.table().add(key, (hash, trie), n_words)
    }
}

impl RestTable {
    fn add(
        &mut self,
        key: (u64, Box<[NodeId]>),
        (hash, trie): (u64, TokenTrie),
        n_words: usize,
    ) -> Arc<Rest> {
        if self.bytes > REST_BYTES {
            *self = Self { n_made: self.n_made, ..Self::default() };
        }
        self.bytes += size_of_val(&*key.1);
        let same = self.by_trie.get(&hash).and_then(|rests| rests.iter().find(|rest| rest.trie == trie));
        let rest = same.cloned().unwrap_or_else(|| {
            self.n_made += 1;
            let tokens = Tokens::new(trie.order().to_vec(), n_words);
            self.bytes += trie.memory_usage() + tokens.memory_usage();
            let rest = Arc::new(Rest { id: self.n_made, height: trie.height(), trie, tokens });
            self.by_trie.entry(hash).or_default().push(rest.clone());
            rest
        });
        self.by_tops.insert(key, rest.clone());
        rest
    }
}

/// Scratch space of a mask.
#[derive(Default)]
pub struct Scratch {
    /// Readings and the rests that they were followed into.
    done: FxHashSet<(Config, u64)>,
}

/// The characters that lead from a place back to it, if no piece can end before or inside of them: what
/// tokens have of them changes nothing.
fn returning(
    transducer: &mut Transducer,
    lexing: &Lexing,
    place: Place,
    (has_rests, height): (bool, usize),
) -> Result<Alphabet, LexerError> {
    // Where the piece could end here, it could end behind the character just as well, and the longer one
    // wins.
    if has_rests && lexing.mode() == LexerMode::Scannerless && transducer.can_end(lexing, place) {
        return Ok(Alphabet::EMPTY);
    }
    let union = &lexing.lexicon.union;
    // What is wanted at the place is wanted on the way back to it.
    let mut step = |from: Place, class: usize| {
        let ends_inside = from != place && transducer.can_end(lexing, from);
        if ends_inside { Ok(None) } else { transducer.step_place_alike(lexing, from, class, height) }
    };
    let mut known = vec![None; union.n_classes()];
    let mut alphabet = Alphabet::EMPTY;
    for byte in 0..128 {
        let class = union.class(byte);
        let returns = match known[class] {
            Some(known) => known,
            None => *known[class].insert(step(place, class)? == Some(place)),
        };
        if returns {
            alphabet.insert_ascii(byte);
        }
    }
    // Inside of characters: where one is, which bytes come, and what then. Most places that lead back by
    // letters lead nowhere by other characters, which the first of them says.
    let mut seen: FxHashSet<(Place, Option<Inside>)> = FxHashSet::default();
    for (leads, inside) in Inside::starts() {
        let mut open = vec![(place, leads, Some(inside))];
        while let Some((from, bytes, then)) = open.pop() {
            let mut last = None;
            for class in bytes.map(|byte| union.class(byte)) {
                if last.replace(class) == Some(class) {
                    continue;
                }
                let Some(to) = step(from, class)? else { return Ok(alphabet) };
                if !seen.insert((to, then)) {
                    continue;
                }
                match then {
                    Some(inside) => open.push((to, inside.bytes(), inside.next())),
                    None if to == place => {}
                    None => return Ok(alphabet),
                }
            }
        }
    }
    alphabet.insert_others();
    Ok(alphabet)
}

/// Adds the bits of all byte tokens that leave the frontier viable to `words`.
pub fn add_tokens(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    walks: &mut Walks,
    scratch: &mut Scratch,
    words: &mut [u32],
) -> Result<(), StepError> {
    if language.lexing().merges_ends() {
        for &Config { lexeme, .. } in frontier {
            let walk = walks.get(stepper, language, (0, trie), lexeme, words.len())?;
            walk.stay.iter().for_each(|tokens| tokens.add_to(words));
        }
        return follow_together(stepper, language, trie, frontier, words, |stepper, readings| {
            stepper.is_viable(language, readings)
        });
    }
    scratch.done.clear();
    // Few pieces come before many: what they admit need not be admitted again.
    let mut agenda: VecDeque<(Config, Option<Arc<Rest>>)> =
        frontier.iter().map(|&config| (config, None)).collect();
    while let Some((Config { state, lexeme }, rest)) = agenda.pop_front() {
        if rest.as_ref().is_some_and(|rest| rest.tokens.is_subset(words)) {
            continue;
        }
        stepper.spend(1 + words.len() / 16)?;
        let left = rest.as_ref().map_or((0, trie), |rest| (rest.id, &rest.trie));
        let walk = walks.get(stepper, language, left, lexeme, words.len())?;
        walk.stay.iter().for_each(|tokens| tokens.add_to(words));
        for (lexeme, tokens) in &walk.unknown {
            let config = Config { state, lexeme: *lexeme };
            if !tokens.is_subset(words) && stepper.is_viable(language, &[config])? {
                tokens.add_to(words);
            }
        }
        for Exit { cut, ends, rest } in &walk.exits {
            let ends = ends.as_ref().filter(|ends| !ends.is_subset(words));
            let rest_left = rest.as_ref().filter(|rest| !rest.tokens.is_subset(words));
            if ends.is_none() && rest_left.is_none() {
                continue;
            }
            let Some(config) = stepper.end(language, (state, *cut))? else { continue };
            if let Some(ends) = ends
                && stepper.is_viable(language, &[config])?
            {
                ends.add_to(words);
            }
            if let Some(rest) = rest_left
                && scratch.done.insert((config, rest.id))
            {
                agenda.push_back((config, Some(rest.clone())));
            }
        }
    }
    Ok(())
}

/// Adds the tokens whose readings are admitted, in `scannerless`, where the pieces of a token that end at one
/// byte meet in one parser state: walks the trie with all readings at once, but for subtrees of which all
/// tokens are there already.
pub(crate) fn follow_together<Q: AsMut<Stepper>>(
    question: &mut Q,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    words: &mut [u32],
    mut admits: impl FnMut(&mut Q, &[Config]) -> Result<bool, StepError>,
) -> Result<(), StepError> {
    let is_admitted = |&place: &usize| get_bit(words, trie.order()[place].index());
    let mut admitted = BitSet::from_members(trie.n_tokens(), (0..trie.n_tokens()).filter(is_admitted));
    // The readings at all open nodes, those of the innermost last.
    let mut configs: Frontier = frontier.to_vec();
    let mut found = Frontier::new();
    trie.descend(trie.below_root(), 0..frontier.len(), |before: &Range<usize>, at| {
        let node = trie.node(at);
        if admitted.first_absent(node.lo, node.hi).is_none() {
            return Ok(None);
        }
        configs.truncate(before.end);
        question.as_mut().step(language, &configs[before.clone()], node.byte, &mut found)?;
        if found.is_empty() {
            return Ok(None);
        }
        if node.lo < node.own_hi && !admitted.contains(node.lo) && admits(question, &found)? {
            admitted.insert_range(node.lo, node.own_hi);
            trie.tokens_at(at).iter().for_each(|token| set_bit(words, token.index()));
        }
        configs.extend_from_slice(&found);
        Ok(Some(before.end..configs.len()))
    })
}

/// Why a sweep ends before the trie does.
enum Stop {
    /// More is wanted than is looked at for the sake of one lexeme.
    TooMany,
    Limit(LexerError),
}

impl From<LexerError> for Stop {
    fn from(error: LexerError) -> Self {
        Self::Limit(error)
    }
}

/// A group while the trie is walked.
struct Growing {
    place: Place,
    /// Ranges of sorted positions.
    tokens: Vec<(u32, u32)>,
    can_end: bool,
    /// Whether a byte class can follow, once it is known.
    follow: Box<[Option<bool>]>,
    tops: Vec<NodeId>,
    /// The characters that lead back here, and here alone, once they are known; by level.
    returning: Box<[Option<Alphabet>]>,
}

/// See [`Sweeper::levels`]: each about twice the one before, so that there are few.
const LEVELS: [usize; 9] = [0, 1, 3, 7, 15, 31, 63, 127, usize::MAX];

/// Where nothing is told apart by how much may follow.
const ALL_LEVELS: [usize; 1] = [usize::MAX];

/// In a table of steps: not asked yet, and nowhere.
const NOT_YET: u32 = u32::MAX;
const NOWHERE: u32 = u32::MAX - 1;

/// What a sweep knows while the trie is walked. The state of a node is the number of the group that its bytes
/// lead to; group 0 stands before the first byte, where a piece cannot end: that would be another reading.
struct Sweeper<'a> {
    lexing: &'a Lexing,
    transducer: &'a mut Transducer,
    trie: &'a TokenTrie,
    /// Only what this lexeme wants is followed, over at most so many nodes.
    wanted: Option<(LexemeId, usize)>,
    has_rests: bool,
    /// Below a node only so many bytes matter as tokens have there, so places that do the same for so many
    /// are one. These are the bounds that are told apart, ascending; where all states are there before,
    /// places
    /// are never one, and there is one bound.
    levels: &'static [usize],
    n_classes: usize,
    groups: Vec<Growing>,
    ids: FxHashMap<Place, u32>,
    /// The groups that byte classes lead to from each group, by level.
    table: Vec<u32>,
    n_steps: usize,
}

impl<'a> Sweeper<'a> {
    fn new(
        lexing: &'a Lexing,
        transducer: &'a mut Transducer,
        trie: &'a TokenTrie,
        (wanted, has_rests, has_levels): (Option<(LexemeId, usize)>, bool, bool),
    ) -> Self {
        let n_classes = lexing.lexicon.union.n_classes();
        let levels = match lexing.is_growing() {
            true if has_levels => &LEVELS[..],
            true => &ALL_LEVELS[..],
            false => &LEVELS[..1],
        };
        Self {
            lexing,
            transducer,
            trie,
            wanted,
            has_rests,
            levels,
            n_classes,
            groups: Vec::new(),
            ids: FxHashMap::default(),
            table: vec![NOT_YET; n_classes * levels.len()],
            n_steps: 0,
        }
    }

    fn grow(&self, place: Place) -> Growing {
        Growing {
            place,
            tokens: Vec::new(),
            can_end: self.has_rests && self.transducer.can_end(self.lexing, place),
            follow: Box::default(),
            tops: Vec::new(),
            returning: vec![None; self.levels.len()].into(),
        }
    }

    /// The least level that is not below the height of a node.
    #[inline]
    fn level(&self, at: NodeId) -> usize {
        if self.levels.len() == 1 {
            return 0;
        }
        let height = self.trie.height_below(at);
        self.levels.iter().position(|&level| height <= level).unwrap_or(self.levels.len() - 1)
    }

    /// The group that a node leads to, or [`NOWHERE`], and the node's level.
    #[inline(always)]
    fn follow(&mut self, before: u32, at: NodeId) -> Result<(u32, usize), LexerError> {
        self.n_steps += 1;
        let class = self.lexing.lexicon.union.class(self.trie.byte(at));
        if self.groups[before as usize].can_end {
            self.note_top(before, class, at);
        }
        let level = self.level(at);
        let mut next = self.table[(before as usize * self.n_classes + class) * self.levels.len() + level];
        if next == NOT_YET {
            next = self.step(before, class, level)?;
        }
        Ok((next, level))
    }

    /// The group that a node leads to; `None` if there is none, or if all below the node leads to it too.
    #[inline(always)]
    fn enter(&mut self, before: u32, at: NodeId) -> Result<Option<u32>, Stop> {
        if self.wanted.is_some_and(|(_, most)| self.n_steps >= most) {
            return Err(Stop::TooMany);
        }
        let (next, level) = self.follow(before, at)?;
        if next == NOWHERE {
            return Ok(None);
        }
        let node = self.trie.node(at);
        let below = self.trie.alphabet(at);
        // Nothing is known of the characters in what is left of tokens, so nothing has to be known of the
        // place.
        let returns = node.end.0 > at.0 + 1 && below.is_text() && {
            let known = self.groups[next as usize].returning[level];
            let known = match known {
                None if self.may_return(next, NodeId(at.0 + 1))? => {
                    let how = (self.has_rests, self.levels[level]);
                    let place = self.groups[next as usize].place;
                    let found = returning(self.transducer, self.lexing, place, how)?;
                    self.groups[next as usize].returning[level] = Some(found);
                    Some(found)
                }
                known => known,
            };
            known.is_some_and(|alphabet| below.is_subset(alphabet))
        };
        let group = &mut self.groups[next as usize];
        group.add(node.lo as u32, if returns { node.hi } else { node.own_hi } as u32);
        Ok((!returns).then_some(next))
    }

    /// Whether the byte of a node leads from a group back to it, if it is a character: where it does not, not
    /// all characters need to be looked at.
    fn may_return(&mut self, group: u32, at: NodeId) -> Result<bool, LexerError> {
        let (byte, level) = (self.trie.byte(at), self.level(at));
        let class = self.lexing.lexicon.union.class(byte);
        let mut next = self.table[(group as usize * self.n_classes + class) * self.levels.len() + level];
        if next == NOT_YET {
            next = self.step(group, class, level)?;
        }
        Ok(next == group || !byte.is_ascii())
    }

    /// If the piece may end before a node, tokens go on there.
    #[inline]
    fn note_top(&mut self, before: u32, class: usize, at: NodeId) {
        let Self { lexing, transducer, groups, n_classes, .. } = self;
        let Growing { place, follow, tops, .. } = &mut groups[before as usize];
        if follow.is_empty() {
            *follow = vec![None; *n_classes].into();
        }
        if *follow[class].get_or_insert_with(|| transducer.can_follow(lexing, *place, class)) {
            tops.push(at);
        }
    }

    /// The group that a byte class leads to, or [`NOWHERE`]; asked once.
    #[cold]
    fn step(&mut self, before: u32, class: usize, level: usize) -> Result<u32, LexerError> {
        let (from, bytes) = (self.groups[before as usize].place, self.levels[level]);
        let mut place = self.transducer.step_place_alike(self.lexing, from, class, bytes)?;
        if let (Some((wanted, _)), Some(to)) = (self.wanted, place) {
            let step = self.transducer.step_to_loosely(self.lexing, wanted, to)?;
            place = place.filter(|_| step.stay.is_some() || step.cut.is_some());
        }
        let next = match place {
            None => NOWHERE,
            Some(place) => match self.ids.get(&place) {
                Some(&known) => known,
                None => {
                    let fresh = self.groups.len() as u32;
                    self.groups.push(self.grow(place));
                    let n_entries = self.groups.len() * self.n_classes * self.levels.len();
                    self.table.resize(n_entries, NOT_YET);
                    self.ids.insert(place, fresh);
                    fresh
                }
            },
        };
        self.table[(before as usize * self.n_classes + class) * self.levels.len() + level] = next;
        Ok(next)
    }
}

/// A sweep beside the walk of a common automaton.
struct Beside {
    walked: Arc<Walked>,
    difference: Difference,
    /// By group the state of the common automaton that it stands for, and within which bounds.
    natures: Vec<Option<Option<(Known, Nature)>>>,
    /// Places that stand for states of the common automaton, and the only terminal of all of them.
    same: FxHashMap<Known, Place>,
    terminal: Option<u32>,
    /// The bounds that all of them have, counted from the start, as far as they are known.
    least: Option<u64>,
    most: Option<u64>,
    /// Behind so many characters pieces are long enough, and so many they may have.
    enough: u64,
    longest: u64,
}

/// Where a sweep beside a common walk is: the group, the state there, and the characters that it counts.
type At = (u32, Known, u64);

impl Beside {
    fn new(walked: Arc<Walked>) -> Self {
        Self {
            walked,
            difference: Difference::default(),
            natures: Vec::new(),
            same: FxHashMap::default(),
            terminal: None,
            least: None,
            most: None,
            enough: u64::MAX,
            longest: 0,
        }
    }

    fn walk(&mut self, sweeper: &mut Sweeper) -> Result<(), LexerError> {
        let trie = sweeper.trie;
        // The whole trie may be common.
        if self.is_same(sweeper, (0, 0, 0)) {
            return Ok(());
        }
        trie.descend(trie.below_root(), (0, 0, 0), |&before, at| self.enter(sweeper, before, at))
    }

    fn enter(
        &mut self,
        sweeper: &mut Sweeper,
        (before, known, count): At,
        at: NodeId,
    ) -> Result<Option<At>, LexerError> {
        self.difference.note_before(at);
        let (next, _) = sweeper.follow(before, at)?;
        let (known, is_counted) = self.walked.step(known, sweeper.trie.byte(at));
        let here = (next, known, count + u64::from(is_counted));
        if next == NOWHERE {
            self.difference.note_below(sweeper.trie, at);
            return Ok(None);
        }
        if known != common::NOWHERE && self.is_same(sweeper, here) {
            return Ok(None);
        }
        self.difference.note(sweeper.trie, at);
        let node = sweeper.trie.node(at);
        sweeper.groups[next as usize].add(node.lo as u32, node.own_hi as u32);
        Ok(Some(here))
    }

    /// Whether what tokens do from a group is what they do from a state of the common automaton, within the
    /// bounds that all have.
    fn is_same(&mut self, sweeper: &Sweeper, (group, known, count): At) -> bool {
        let place = sweeper.groups[group as usize].place;
        if self.natures.len() <= group as usize {
            self.natures.resize(group as usize + 1, None);
        }
        let nature = match self.natures[group as usize] {
            Some(nature) => nature,
            None => {
                let found = self.nature(sweeper.lexing, place);
                *self.natures[group as usize].insert(found)
            }
        };
        let Some((_, nature)) = nature.filter(|nature| nature.0 == known) else { return false };
        let is_same = self.has_bounds(nature, self.walked.is_end(known), count);
        if is_same {
            self.same.entry(known).or_insert(place);
        }
        is_same
    }

    /// The state of the common automaton that a place stands for, and its nature.
    fn nature(&mut self, lexing: &Lexing, place: Place) -> Option<(Known, Nature)> {
        let nature = lexing.lexicon.union.nature(place.state())?;
        let known = self.walked.of_nature(nature.number)?;
        // All that stands for common states has one terminal: that of the first that does.
        (*self.terminal.get_or_insert(nature.label) == nature.label).then_some((known, nature))
    }

    /// Whether a place that so many characters lead to has the bounds of the others, if there are any yet.
    fn has_bounds(&mut self, nature: Nature, is_end: bool, count: u64) -> bool {
        // Where a piece is long enough, or at its end, its bounds are not seen any more.
        let least = (nature.least > 0).then(|| nature.least + count);
        let most = (!is_end).then(|| nature.most.saturating_add(count));
        let (enough, longest) = (self.enough.min(count), self.longest.max(count));
        let is_one = |known: Option<u64>, own: Option<u64>| known.is_none() || own.is_none() || known == own;
        let (least_of_all, most_of_all) = (least.or(self.least), most.or(self.most));
        let enough = if least.is_none() { enough } else { self.enough };
        if !is_one(self.least, least)
            || !is_one(self.most, most)
            || least_of_all.is_some_and(|least| least > enough)
            || most_of_all.is_some_and(|most| most < longest)
        {
            return false;
        }
        (self.least, self.most) = (least_of_all, most_of_all);
        (self.enough, self.longest) = (enough, longest);
        true
    }

    /// The groups; `None` if what is common cannot be told here.
    fn finish(self, sweeper: Sweeper, n_words: usize) -> Result<Option<Box<[Group]>>, LexerError> {
        let Sweeper { lexing, transducer, trie, groups, .. } = sweeper;
        let union = &lexing.lexicon.union;
        let mut all: Vec<Group> = Vec::new();
        let bounds = Bounds { least: self.least.unwrap_or(0), most: self.most.unwrap_or(u64::MAX) };
        for fate in &self.walked.fates {
            let within = fate.within(bounds, trie, n_words);
            let (tokens, mut tops) =
                (self.difference.tokens(fate, &within, trie, n_words), self.difference.tops(&within));
            if tokens.is_empty() && tops.is_empty() {
                continue;
            }
            let Some(place) = self.place(lexing, transducer, fate)? else { return Ok(None) };
            let mut follow = vec![None; union.n_classes()];
            tops.retain(|&top| {
                let class = union.class(trie.byte(top));
                *follow[class].get_or_insert_with(|| transducer.can_follow(lexing, place, class))
            });
            all.push(Group::new(place, tokens, tops));
        }
        all.extend(groups.into_iter().filter_map(|group| group.finish(trie, n_words)));
        Ok(Some(all.into()))
    }

    /// A place of a fate: one that was met, or where its path leads.
    fn place(
        &self,
        lexing: &Lexing,
        transducer: &mut Transducer,
        fate: &Fate,
    ) -> Result<Option<Place>, LexerError> {
        if let Some(&met) = self.same.get(&fate.state) {
            return Ok(Some(met));
        }
        let union = &lexing.lexicon.union;
        let mut place = self.same.get(&0).copied();
        let nature = place.and_then(|place| union.nature(place.state()));
        // Where the piece may not end yet, it is made longer first.
        let n_lacking = nature.map_or(0, |nature| nature.least.saturating_sub(fate.n_in_path));
        let filler = self.walked.filler(0).into_iter().cycle().take(n_lacking as usize);
        for byte in filler.chain(fate.path.iter().copied()) {
            let Some(from) = place else { break };
            place = transducer.step_place(lexing, from, union.class(byte))?;
        }
        let is_right = |place: &Place| {
            union.nature(place.state()).is_some_and(|nature| {
                Some(nature.label) == self.terminal
                    && self.walked.of_nature(nature.number) == Some(fate.state)
            })
        };
        Ok(place.filter(is_right))
    }
}

impl Growing {
    fn add(&mut self, lo: u32, hi: u32) {
        match self.tokens.last_mut() {
            _ if lo == hi => {}
            Some(last) if last.1 == lo => last.1 = hi,
            _ => self.tokens.push((lo, hi)),
        }
    }

    /// The group, if anything comes to it.
    fn finish(self, trie: &TokenTrie, n_words: usize) -> Option<Group> {
        let Self { place, tokens, tops, .. } = self;
        let ranges = tokens.into_iter().flat_map(|(lo, hi)| &trie.order()[lo as usize..hi as usize]);
        let tokens = Tokens::new(ranges.copied().collect(), n_words);
        let is_empty = tops.is_empty() && tokens.is_empty();
        (!is_empty).then(|| Group::new(place, Arc::new(tokens), tops))
    }
}

impl Group {
    fn new(place: Place, tokens: Arc<Tokens>, tops: Vec<NodeId>) -> Self {
        let (n_tokens, first) = (tokens.count(), tokens.first().unwrap_or(TokenId(0)));
        Self { place, tokens, n_tokens, first, tops: tops.into(), rest: OnceLock::new() }
    }

    fn memory_usage(&self) -> usize {
        self.tokens.memory_usage() + size_of::<Self>() + size_of_val(&*self.tops)
    }

    /// The nodes of the trie below which stands what is left of other tokens if the piece ends here.
    pub fn tops(&self) -> &[NodeId] {
        &self.tops
    }
}

impl Walks {
    /// None yet, beside what is kept with a vocabulary.
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        Self { commons: Some(vocabulary.beside()), rests: vocabulary.beside(), ..Self::default() }
    }

    /// None yet, of readings that are followed one by one in every mode, as a canvas follows them.
    pub fn apart() -> Self {
        Self { apart: true, ..Self::default() }
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.bytes
    }

    /// The nodes of tries that were looked at so far.
    pub fn n_seen(&self) -> u64 {
        self.n_seen
    }

    fn get(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(walk) = self.walks.get(&(lexeme, id)) {
            return Ok(walk.clone());
        }
        let sweep = self.sweep(stepper, language, (id, trie), lexeme, n_words)?;
        let walk = Arc::new(self.see(stepper, language, (id, trie), &sweep, lexeme, n_words)?);
        self.make_room(language, walk.memory_usage());
        self.walks.insert((lexeme, id), walk.clone());
        Ok(walk)
    }

    /// Counts bytes that are about to be kept.
    fn make_room(&mut self, language: &Language, bytes: usize) {
        if self.bytes + bytes > language.limits().cache_bytes {
            self.walks.clear();
            self.sweeps.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
    }

    /// What the tokens of a trie do to a piece that is where a lexeme is: all that the lexeme wants is in it,
    /// perhaps more. Kept where it serves other lexemes too. Cost, once: some thousand nodes if the lexeme
    /// wants little, else the nodes of the trie that any piece can reach and that do not merely prolong it.
    pub fn sweep(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Arc<Sweep>, StepError> {
        let place = stepper.transducer().place(lexeme);
        if let Some(known) = self.sweeps.get(&(place, id)) {
            return Ok(known.clone());
        }
        if id == 0
            && let Some(sweep) = self.beside_common(stepper, language, trie, lexeme, n_words)?
        {
            return Ok(sweep);
        }
        let wants_all = stepper.transducer().wants_all(language.lexing(), lexeme);
        let mut sweep = |wanted| self.walk_trie(stepper, language, (id, trie), lexeme, wanted, n_words);
        // Where little is wanted, little of the trie is reached.
        if trie.n_nodes() >= MANY_NODES
            && !wants_all
            && let (narrow, true) = sweep(Some(lexeme))?
        {
            return Ok(narrow);
        }
        Ok(sweep(None)?.0)
    }

    /// The sweep of the vocabulary's trie where most tokens do what they do in an automaton in common use,
    /// see
    /// [`crate::common`]; `None` elsewhere. Kept. Cost: the nodes at which they do not, and their children.
    fn beside_common(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Option<Arc<Sweep>>, StepError> {
        let (lexing, start) = (language.lexing(), stepper.transducer().place(lexeme));
        let common = lexing.lexicon.union.common(start.state());
        let (Some(commons), Some(common)) = (&self.commons, common) else { return Ok(None) };
        let Some(walked) = commons.walked(common, trie) else { return Ok(None) };
        // What is left of lengths says itself whether places do the same.
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, (None, true, false));
        sweeper.groups.push(Growing { can_end: false, ..sweeper.grow(start) });
        let mut beside = Beside::new(walked);
        let walk = beside.walk(&mut sweeper);
        let n_steps = sweeper.n_steps;
        self.n_seen += n_steps as u64;
        let groups = match walk {
            Ok(()) => beside.finish(sweeper, n_words)?,
            Err(error) => return Err(error.into()),
        };
        stepper.spend(n_steps + n_words)?;
        let Some(groups) = groups else { return Ok(None) };
        let sweep = Arc::new(Sweep { groups });
        self.make_room(language, sweep.groups.iter().map(Group::memory_usage).sum());
        self.sweeps.insert((start, 0), sweep.clone());
        Ok(Some(sweep))
    }

    /// Walks a trie from the place of a lexeme, as long as the piece goes on. Cost: a table look-up for each
    /// node that is reached.
    ///
    /// With `wanted`, only as far as it can become something that this lexeme wants, and not beyond
    /// [`MANY_NODES`] or [`FEW_NODES`]; says whether that was all.
    fn walk_trie(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (trie_id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
        wanted: Option<LexemeId>,
        n_words: usize,
    ) -> Result<(Arc<Sweep>, bool), StepError> {
        let start = stepper.transducer().place(lexeme);
        let has_rests = self.apart || !language.lexing().merges_ends();
        // A canvas asks about what many parser states want, an output about few.
        let most = if self.apart { FEW_NODES } else { MANY_NODES };
        let wanted = wanted.map(|lexeme| (lexeme, most));
        let lexing = language.lexing();
        // Where it matters to which place a token leads, however much may follow, places are one that do the
        // same for texts of any length.
        let has_levels = !self.apart && lexing.lexicon.union.has_bounds(start.state());
        let how = (wanted, has_rests, has_levels);
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, how);
        sweeper.groups.push(Growing { can_end: false, ..sweeper.grow(start) });
        let walk = trie.descend(trie.below_root(), 0, |&before, at| sweeper.enter(before, at));
        let (n_steps, n_entries, groups) = (sweeper.n_steps, sweeper.table.len(), sweeper.groups);
        self.n_seen += n_steps as u64;
        match walk {
            Ok(()) => stepper.spend(n_steps + n_entries / 4)?,
            Err(Stop::TooMany) => {
                stepper.spend(n_steps)?;
                return Ok((Arc::default(), false));
            }
            Err(Stop::Limit(error)) => return Err(error.into()),
        }
        let groups = groups.into_iter().filter_map(|group| group.finish(trie, n_words));
        let sweep = Arc::new(Sweep { groups: groups.collect() });
        if wanted.is_none() {
            self.make_room(language, sweep.groups.iter().map(Group::memory_usage).sum());
            self.sweeps.insert((start, trie_id), sweep.clone());
        }
        Ok((sweep, true))
    }

    /// What is left of tokens if a piece ends at the place of a group of a sweep of this trie; `None` if
    /// nothing is. Made once.
    fn beyond(&mut self, trie: (u64, &TokenTrie), group: &Group, n_words: usize) -> Option<Arc<Rest>> {
        (!group.tops.is_empty())
            .then(|| group.rest.get_or_init(|| self.rest(trie, &group.tops, n_words)).clone())
    }

    /// What is left of the tokens at and below some nodes of a trie, from the bytes of the nodes on. Made
    /// once for the same nodes.
    pub fn rest(&mut self, trie: (u64, &TokenTrie), tops: &[NodeId], n_words: usize) -> Arc<Rest> {
        self.rests.get(trie, tops, n_words)
    }

    /// A sweep as a lexeme sees it that is where the sweep began.
    fn see(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: (u64, &TokenTrie),
        sweep: &Sweep,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Walk, StepError> {
        let lexing = language.lexing();
        stepper.spend(sweep.groups.len() * 8)?;
        let transducer = stepper.transducer_mut();
        let mut unknown: Vec<(LexemeId, Arc<Tokens>)> = Vec::new();
        let (mut staying, mut ends) = (Vec::new(), Vec::new());
        for group in &sweep.groups {
            let step = transducer.step_to(lexing, lexeme, group.place)?;
            if let Some(next) = step.stay
                && !group.tokens.is_empty()
            {
                match transducer.prospect(next) {
                    Prospect::Completable => staying.push(&group.tokens),
                    Prospect::Unknown => unknown.push((next, group.tokens.clone())),
                }
            }
            ends.extend(step.cut.map(|cut| (cut, group)));
        }
        self.row.resize(n_words, 0);
        staying.iter().for_each(|tokens| tokens.add_to(&mut self.row));
        let mut exits = Vec::new();
        if !lexing.merges_ends() {
            for (cut, group) in ends {
                let obligations = transducer.cut(cut).obligations;
                let ends = (!group.tokens.is_subset(&self.row)).then(|| group.tokens.clone());
                let follows = |&top: &NodeId| transducer.survives(lexing, obligations, trie.1.byte(top));
                let rest =
                    if group.tops.iter().any(follows) { self.beyond(trie, group, n_words) } else { None };
                let rest = rest.filter(|rest| !rest.tokens.is_subset(&self.row));
                if ends.is_some() || rest.is_some() {
                    exits.push(Exit { cut, ends, rest });
                }
            }
        }
        staying.iter().for_each(|tokens| tokens.remove_from(&mut self.row));
        let (few, many): (Vec<_>, Vec<_>) =
            staying.into_iter().partition(|tokens| matches!(&***tokens, Tokens::Few(_)));
        let mut stay: Vec<Arc<Tokens>> = many.into_iter().cloned().collect();
        match few.as_slice() {
            [] => {}
            [only] => stay.push(Arc::clone(only)),
            few => {
                let list = few.iter().flat_map(|tokens| tokens.listed()).copied().collect();
                stay.push(Arc::new(Tokens::new(list, n_words)));
            }
        }
        // In an order that does not depend on hashing, so that times can be repeated.
        unknown.sort_unstable_by_key(|&(lexeme, _)| lexeme);
        exits.sort_by_key(|exit| exit.cut);
        Ok(Walk { stay: stay.into(), unknown, exits })
    }
}

impl Walk {
    fn memory_usage(&self) -> usize {
        // The rows, and the sets of the others, are the sweep's.
        let lists: usize = self.stay.iter().map(|tokens| size_of_val(tokens.listed())).sum();
        let own = size_of_val(&*self.stay) + size_of_val(&*self.unknown) + size_of_val(&*self.exits);
        lists + own + size_of::<Self>()
    }
}
