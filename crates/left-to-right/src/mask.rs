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

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anygram_bits::{BitSet, Fingerprint, Random};
use anygram_lexer::dfa::DEAD;
use anygram_lexer::transducer::{CutId, LexemeId, Place, Prospect};
use anygram_lexer::union::{State, Union};
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::beside::{Base, Beside, Pairs};
use crate::common::Commons;
use crate::follow::{Followed, Worth};
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};
use crate::memo::Memo;
use crate::rests::Rests;
use crate::shared::{Begun, End, Key, SharedWalk, SharedWalks};
use crate::sweep::{PlaceTables, Stop, Sweeper};

/// Masks are rows of 32-bit words, bit `id % 32` of word `id / 32`, as serving engines share them.
pub const MASK_BITS: usize = u32::BITS as usize;

pub use crate::rests::Rest;
pub use crate::sweep::{Group, Sweep};

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

/// A set of tokens: a sorted list while that is smaller than a row of a mask. Two are equal if they are
/// written down in the same way.
#[derive(PartialEq, Eq, Debug)]
pub enum Tokens {
    /// A list.
    Few(Box<[TokenId]>),
    /// A row of a mask.
    Many(Arc<[u32]>),
    /// Those of a row but for a few, sorted, that are in it: many sets differ little from one that all share.
    Most(Arc<[u32]>, Box<[TokenId]>),
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

    /// Those at some ranges of sorted positions of a trie. Cost: their number.
    pub(crate) fn of_ranges(trie: &TokenTrie, ranges: &[(u32, u32)], n_words: usize) -> Self {
        let tokens = ranges.iter().flat_map(|&(lo, hi)| &trie.order()[lo as usize..hi as usize]);
        let n_tokens: usize = ranges.iter().map(|(lo, hi)| (hi - lo) as usize).sum();
        if n_tokens <= n_words / 8 {
            let mut list = Vec::with_capacity(n_tokens);
            list.extend(tokens);
            return Self::new(list, n_words);
        }
        let mut words = vec![0; n_words];
        tokens.for_each(|token| set_bit(&mut words, token.index()));
        Self::Many(words.into())
    }

    /// Those of a row. Cost: O(words), or as many as it takes to see that they are many.
    pub fn of_row(words: &[u32]) -> Self {
        let (most, mut tokens) = (words.len() / 8, Vec::new());
        for (stretch, own) in words.chunks(STRETCH).enumerate() {
            // Mostly nothing, which is found out for several words at once.
            if own.iter().fold(0, |all, word| all | word) == 0 {
                continue;
            }
            for (at, &word) in own.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let id = (stretch * STRETCH + at) * MASK_BITS + left.trailing_zeros() as usize;
                    tokens.push(TokenId::new(id));
                    left &= left - 1;
                }
            }
            if tokens.len() > most {
                return Self::Many(words.into());
            }
        }
        Self::Few(tokens.into())
    }

    /// Writes them as a row.
    pub fn write_to(&self, words: &mut [u32]) {
        match self {
            Self::Few(_) => {
                words.fill(0);
                self.add_to(words);
            }
            Self::Many(own) => {
                words[..own.len()].copy_from_slice(own);
                words[own.len()..].fill(0);
            }
            Self::Most(of, gone) => {
                words[..of.len()].copy_from_slice(of);
                words[of.len()..].fill(0);
                gone.iter().for_each(|token| clear_bit(words, token.index()));
            }
        }
    }

    /// The row that it is, or that it is but for a few, and these.
    fn row(&self) -> Option<(&[u32], &[TokenId])> {
        match self {
            Self::Few(_) => None,
            Self::Many(words) => Some((words, &[])),
            Self::Most(of, gone) => Some((of, gone)),
        }
    }

    /// One of the tokens whose bits are in a word of a row, but for a few.
    fn in_word(words: &[u32], gone: &[TokenId], at: usize) -> Option<TokenId> {
        let id = |left: u32| TokenId::new(at * MASK_BITS + left.trailing_zeros() as usize);
        let mut left = words[at];
        while left != 0 && gone.binary_search(&id(left)).is_ok() {
            left &= left - 1;
        }
        (left != 0).then(|| id(left))
    }

    /// How many there are. Cost of a row: O(words).
    pub fn count(&self) -> usize {
        match self {
            Self::Few(tokens) => tokens.len(),
            Self::Many(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
            Self::Most(of, gone) => {
                of.iter().map(|word| word.count_ones() as usize).sum::<usize>() - gone.len()
            }
        }
    }

    /// The lowest, if there is one. Cost of a row: the words before it.
    pub fn first(&self) -> Option<TokenId> {
        match (self, self.row()) {
            (Self::Few(tokens), _) => tokens.first().copied(),
            (_, row) => {
                row.and_then(|(words, gone)| (0..words.len()).find_map(|at| Self::in_word(words, gone, at)))
            }
        }
    }

    /// One of them, if there is one. Cost of a row: as long as its tokens are rare.
    pub fn some(&self, random: &mut Random) -> Option<TokenId> {
        match (self, self.row()) {
            (Self::Few(tokens), _) => (!tokens.is_empty()).then(|| *random.choose(tokens)),
            (_, row) => row.and_then(|(words, gone)| {
                let from = random.below(words.len());
                (from..words.len()).chain(0..from).find_map(|at| Self::in_word(words, gone, at))
            }),
        }
    }

    /// Those that are not in a row, in order. Cost of a row: O(words), and that of those.
    pub fn all_outside(&self, words: &[u32]) -> Vec<TokenId> {
        let Some((own, gone)) = self.row() else {
            let Self::Few(tokens) = self else { return Vec::new() };
            return tokens.iter().copied().filter(|token| !get_bit(words, token.index())).collect();
        };
        let mut found = Vec::new();
        for (at, (&own, &word)) in own.iter().zip(words).enumerate() {
            let mut left = own & !word;
            while left != 0 {
                found.push(TokenId::new(at * MASK_BITS + left.trailing_zeros() as usize));
                left &= left - 1;
            }
        }
        found.retain(|token| gone.binary_search(token).is_err());
        found
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Few(tokens) if tokens.is_empty())
    }

    /// The lowest that is not in a row. Cost: O(words).
    pub fn first_outside(&self, words: &[u32]) -> Option<TokenId> {
        match (self, self.row()) {
            (Self::Few(tokens), _) => tokens.iter().copied().find(|token| !get_bit(words, token.index())),
            (_, row) => row.and_then(|row| Self::outside(row, words)),
        }
    }

    /// The lowest of a row, but for a few, that is not in another.
    fn outside((own, gone): (&[u32], &[TokenId]), words: &[u32]) -> Option<TokenId> {
        // Stretch by stretch, so that several words are looked at at once.
        for (stretch, (own, words)) in own.chunks(STRETCH).zip(words.chunks(STRETCH)).enumerate() {
            if own.iter().zip(words).fold(0, |left, (&own, &word)| left | own & !word) == 0 {
                continue;
            }
            for (at, (&own, &word)) in own.iter().zip(words).enumerate() {
                let mut left = own & !word;
                while left != 0 {
                    let id = (stretch * STRETCH + at) * MASK_BITS + left.trailing_zeros() as usize;
                    if gone.binary_search(&TokenId::new(id)).is_err() {
                        return Some(TokenId::new(id));
                    }
                    left &= left - 1;
                }
            }
        }
        None
    }

    /// Adds them to a row.
    pub fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => tokens.iter().for_each(|token| set_bit(words, token.index())),
            Self::Many(own) => words.iter_mut().zip(&**own).for_each(|(word, &own)| *word |= own),
            Self::Most(of, gone) => {
                let known: Vec<bool> = gone.iter().map(|token| get_bit(words, token.index())).collect();
                words.iter_mut().zip(&**of).for_each(|(word, &own)| *word |= own);
                for (token, _) in gone.iter().zip(known).filter(|&(_, known)| !known) {
                    clear_bit(words, token.index());
                }
            }
        }
    }

    /// Those that are not in another set: the same set if that is all. Of a row, a few are left out in a list
    /// beside it.
    pub(crate) fn without(self: &Arc<Self>, gone: &Self) -> Arc<Self> {
        let (words, known) = match &**self {
            Self::Few(tokens) => {
                let is_left = |token: &&TokenId| !gone.contains(**token);
                if tokens.iter().all(|token| is_left(&token)) {
                    return self.clone();
                }
                return Arc::new(Self::Few(tokens.iter().filter(is_left).copied().collect()));
            }
            Self::Many(words) => (words, &[][..]),
            Self::Most(of, known) => (of, &**known),
        };
        if let Self::Few(gone) = gone {
            let own = gone.iter().copied().filter(|&token| self.contains(token));
            let mut all: Vec<TokenId> = known.iter().copied().chain(own).collect();
            if all.len() == known.len() {
                return self.clone();
            }
            if all.len() <= words.len() / 8 {
                all.sort_unstable();
                return Arc::new(Self::Most(words.clone(), all.into()));
            }
        }
        let mut left = vec![0; words.len()];
        self.write_to(&mut left);
        let before: Vec<u32> = if known.is_empty() { Vec::new() } else { left.clone() };
        gone.remove_from(&mut left);
        let before = if known.is_empty() { &**words } else { &before };
        if *left == *before { self.clone() } else { Arc::new(Self::Many(left.into())) }
    }

    /// With some more.
    pub(crate) fn with(&self, more: Vec<TokenId>, n_words: usize) -> Self {
        if let Self::Few(tokens) = self {
            return Self::new(tokens.iter().copied().chain(more).collect(), n_words);
        }
        let mut words = vec![0; n_words];
        self.write_to(&mut words);
        more.iter().for_each(|token| set_bit(&mut words, token.index()));
        Self::Many(words.into())
    }

    /// Whether all of them are in a row.
    pub fn is_subset(&self, words: &[u32]) -> bool {
        match self {
            Self::Few(tokens) => tokens.iter().all(|token| get_bit(words, token.index())),
            Self::Many(own) => words.iter().zip(&**own).all(|(&word, &own)| own & !word == 0),
            Self::Most(of, gone) => Self::outside((of, gone), words).is_none(),
        }
    }

    /// Whether a token is one of them. Cost: O(log n).
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Few(tokens) => tokens.binary_search(&token).is_ok(),
            Self::Many(own) => get_bit(own, token.index()),
            Self::Most(of, gone) => get_bit(of, token.index()) && gone.binary_search(&token).is_err(),
        }
    }

    /// The lowest of some tokens, sorted, that is one of them, where that is quicker to say than to look
    /// through them.
    pub fn first_among(&self, few: &[TokenId]) -> Option<Option<TokenId>> {
        let is_quick = match self {
            Self::Few(tokens) => {
                few.len() * tokens.len().checked_ilog2().map_or(1, |log| log as usize + 1) < tokens.len()
            }
            Self::Many(own) | Self::Most(own, _) => few.len() < own.len(),
        };
        is_quick.then(|| few.iter().copied().find(|&token| self.contains(token)))
    }

    /// The members, if they are a list.
    pub(crate) fn listed(&self) -> &[TokenId] {
        match self {
            Self::Few(tokens) => tokens,
            Self::Many(_) | Self::Most(..) => &[],
        }
    }

    pub(crate) fn remove_from(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => {
                tokens.iter().for_each(|token| {
                    words[token.index() / MASK_BITS] &= !(1 << (token.index() % MASK_BITS))
                });
            }
            Self::Many(own) => words.iter_mut().zip(&**own).for_each(|(word, &own)| *word &= !own),
            Self::Most(of, gone) => {
                let known: Vec<bool> = gone.iter().map(|token| get_bit(words, token.index())).collect();
                words.iter_mut().zip(&**of).for_each(|(word, &own)| *word &= !own);
                for (token, _) in gone.iter().zip(known).filter(|&(_, known)| known) {
                    set_bit(words, token.index());
                }
            }
        }
    }

    /// Bytes on the heap, without a row that others have too.
    pub fn memory_usage(&self) -> usize {
        match self {
            Self::Few(tokens) | Self::Most(_, tokens) => size_of_val(&**tokens),
            Self::Many(words) => size_of_val(&**words),
        }
    }
}

/// Nodes of a trie that are looked at from a place for the sake of single lexemes; beyond, all are looked at,
/// for all lexemes at the place. A smaller trie is walked whole at once.
const MANY_NODES: usize = 10_000;

/// The same where many lexemes at a place are asked about. A sweep of more is one beside which others are
/// walked.
const FEW_NODES: usize = 1_000;

/// What starts of sweeps are told apart by that are not walked beside each other: whether places are told
/// apart by how much may follow, and the automata that are alive, by number, or [`where_most_bytes_lead`].
type Start = (bool, SmallVec<[u32; 4]>);

/// The state that most bytes lead to, of those that lead anywhere, and whether a piece begins: a name that may
/// still become one keyword differs little from one that may become another.
fn where_most_bytes_lead(union: &Union, state: State) -> SmallVec<[u32; 4]> {
    let next = (0..=u8::MAX).map(|byte| union.step(state, union.class(byte)));
    let mut next: Vec<State> = next.filter(|&next| next != DEAD).collect();
    next.sort_unstable();
    let most = next.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    SmallVec::from_slice(&[u32::from(union.is_start(state)), most.map_or(state, |same| same[0])])
}

/// A walk: a [`Sweep`] restricted to one set of wanted terminals.
pub(crate) struct Walk {
    /// The tokens after which the piece is in progress and can be completed: sets whose rows are the sweep's,
    /// and a list.
    pub stay: Arc<[Arc<Tokens>]>,
    /// The tokens after which it is in progress as a lexeme of unknown prospect, by lexeme.
    pub unknown: Vec<(LexemeId, Arc<Tokens>)>,
    /// The ways in which the piece can end, as far as not all tokens concerned are among `stay`.
    pub exits: Vec<Exit>,
    /// Whether what comes through behind it is kept.
    pub worth: Worth,
    /// Bytes on the heap that are counted with it.
    own_bytes: usize,
}

/// A way in which a piece can end inside tokens or with them.
pub(crate) struct Exit {
    pub cut: CutId,
    /// The tokens that end here.
    pub ends: Option<Arc<Tokens>>,
    /// What is left of the others.
    pub rest: Option<Arc<Rest>>,
}

/// The walks that are kept, bounded in bytes: when full, all are dropped.
#[derive(Default)]
pub struct Walks {
    walks: FxHashMap<(LexemeId, u64), Arc<Walk>>,
    sweeps: FxHashMap<(Place, u64), Arc<Sweep>>,
    /// The nodes of a trie that were looked at from a place for the sake of single lexemes.
    narrow: FxHashMap<(Place, u64), usize>,
    /// Where bytes lead from the places that sweeps have come to.
    places: PlaceTables,
    /// The last sweep for which much of a trie was walked, by the trie and what its start is like.
    bases: FxHashMap<(u64, Start), Base>,
    /// By state what it is like.
    starts: FxHashMap<State, Start>,
    /// Those of the vocabulary: what is left of its tokens does not depend on the language.
    rests: Arc<Rests>,
    bytes: usize,
    /// Whether the ends of pieces are followed one by one in `scannerless` too.
    apart: bool,
    /// What the vocabulary knows of automata in common use.
    commons: Option<Arc<Commons>>,
    /// The walks that its languages share, those of them that are in use here, and what they depend on.
    shared: Option<Arc<SharedWalks>>,
    taken: Vec<Arc<SharedWalk>>,
    /// By lexeme and the most bytes that follow.
    fingerprints: FxHashMap<(LexemeId, usize), Option<Fingerprint>>,
    begun: Begun,
    n_seen: u64,
    /// Scratch: a row, all zero between uses.
    pub(crate) row: Vec<u32>,
}

/// Adds the bits of all byte tokens that leave the frontier viable to `words`.
pub fn add_tokens(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    walks: &mut Walks,
    memo: &mut Memo,
    words: &mut [u32],
) -> Result<(), StepError> {
    if language.lexing().merges_ends() {
        for &Config { lexeme, .. } in frontier {
            let walk = walks.get(stepper, language, (0, trie), lexeme, words.len())?;
            walk.stay.iter().for_each(|tokens| tokens.add_to(words));
        }
        return follow_together(stepper, language, trie, frontier, words, |stepper, readings| {
            stepper.is_viable_behind_token(language, readings)
        });
    }
    memo.begin_mask();
    Followed::new((stepper, language), trie, (walks, memo), words).add(trie, frontier)
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

impl Walks {
    /// None yet, beside what is kept with a vocabulary.
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        let (commons, shared) = (Some(vocabulary.beside()), Some(vocabulary.beside()));
        Self { commons, shared, rests: vocabulary.beside(), ..Self::default() }
    }

    /// None yet, of readings that are followed one by one in every mode, as a canvas follows them.
    pub fn apart() -> Self {
        Self { apart: true, ..Self::default() }
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.bytes + self.places.memory_usage()
    }

    /// The nodes of tries that were looked at so far.
    pub fn n_seen(&self) -> u64 {
        self.n_seen
    }

    pub(crate) fn get(
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
        let key = self.shared_key(stepper, language, (id, trie), lexeme);
        let known = match key {
            Some(key) => self.take_over(stepper, language, key, (lexeme, trie))?,
            None => None,
        };
        let walk = match known {
            Some(walk) => walk,
            None => {
                let sweep = self.sweep(stepper, language, (id, trie), lexeme, n_words)?;
                self.see(stepper, language, (id, trie), &sweep, (lexeme, key), n_words)?
            }
        };
        let walk = Arc::new(walk);
        self.make_room(language, walk.own_bytes);
        self.walks.insert((lexeme, id), walk.clone());
        Ok(walk)
    }

    /// What a walk is shared by, if it can be: it is one of a vocabulary's trie or of what is left of its
    /// tokens, and nothing depends on how the tokens lie.
    fn shared_key(
        &mut self,
        stepper: &Stepper,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
    ) -> Option<Key> {
        let lexing = language.lexing();
        if self.shared.is_none() || lexing.merges_ends() || lexing.counts_tokens() {
            return None;
        }
        // Up to a power of two, so that it is asked for few times; more bytes tell no less apart.
        let bytes = trie.height().checked_next_power_of_two().unwrap_or(usize::MAX);
        let print = *self.fingerprints.entry((lexeme, bytes)).or_insert_with(|| {
            self.bytes += size_of::<(LexemeId, usize, Option<Fingerprint>)>() + 16;
            stepper.transducer().fingerprint(lexing, lexeme, bytes)
        });
        Some((print?, id))
    }

    /// The walk of a lexeme, if another language or another place has the same.
    fn take_over(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        key: Key,
        (lexeme, trie): (LexemeId, &TokenTrie),
    ) -> Result<Option<Walk>, StepError> {
        let (lexing, Some(shared)) = (language.lexing(), &self.shared) else { return Ok(None) };
        let Some(known) = shared.get(key, lexing, &mut self.begun) else { return Ok(None) };
        stepper.spend(1 + known.ends.len())?;
        let transducer = stepper.transducer_mut();
        let mut exits = Vec::with_capacity(known.ends.len());
        for end in &known.ends {
            let place = shared.place(end, (lexing, &mut *transducer), lexeme, (key.1, trie))?;
            let cut = match place {
                Some(place) => transducer.step_to(lexing, lexeme, place)?.cut,
                None => None,
            };
            debug_assert!(cut.is_some(), "a text leads elsewhere");
            let Some(cut) = cut else { return Ok(None) };
            exits.push(Exit { cut, ends: end.tokens(), rest: end.rest.clone() });
        }
        exits.sort_by_key(|exit| exit.cut);
        let own_bytes = size_of::<Walk>() + size_of_val(&*exits);
        let (stay, unknown, worth) = (known.stay.clone(), Vec::new(), Worth::default());
        let walk = Walk { stay, unknown, exits, worth, own_bytes };
        self.taken.push(known);
        Ok(Some(walk))
    }

    /// Lets other languages have a walk, of which these groups are the ends, in order.
    fn share(
        &mut self,
        language: &Language,
        key: Key,
        (sweep, walk): (&Sweep, &mut Walk),
        (staying, ends): (&[&Group], &[&Group]),
    ) {
        let Some(shared) = &self.shared else { return };
        let (asked, begun) = (sweep.asked, self.begun.among(language.lexing(), sweep.asked));
        let ends = ends.iter().zip(&walk.exits);
        let ends = ends.map(|(group, exit)| End::new(&group.found, exit.ends.is_some(), exit.rest.clone()));
        let staying = staying.iter().map(|group| group.found.clone()).collect();
        let (stay, is_wanted) = (walk.stay.clone(), AtomicBool::new(false));
        let known = SharedWalk { stay, staying, ends: ends.collect(), asked, begun, is_wanted };
        if let Some((known, moved)) = shared.insert(key, known) {
            self.taken.push(known);
            // Counted there from now on.
            self.bytes = self.bytes.saturating_sub(moved);
            walk.own_bytes = size_of::<Walk>() + size_of_val(&*walk.exits);
        }
    }

    /// Counts bytes that are about to be kept.
    fn make_room(&mut self, language: &Language, bytes: usize) {
        if self.bytes + self.places.memory_usage() + bytes > language.limits().cache_bytes {
            drop(self.forget());
        }
        self.bytes += bytes;
    }

    /// Drops all that is kept; returns what it was in. What the vocabulary keeps stays.
    pub(crate) fn forget(&mut self) -> Self {
        let (rests, commons, shared) = (self.rests.clone(), self.commons.clone(), self.shared.clone());
        let (apart, n_seen) = (self.apart, self.n_seen);
        let row = std::mem::take(&mut self.row);
        std::mem::replace(self, Self { rests, commons, shared, apart, n_seen, row, ..Self::default() })
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
        let start = (id, self.start_of(language, place));
        if self.bases.contains_key(&start) {
            return self.beside_base(stepper, language, trie, (lexeme, start), n_words);
        }
        let wants_all = stepper.transducer().wants_all(language.lexing(), lexeme);
        // A canvas asks about what many parser states want, an output about few.
        let most = if self.apart { FEW_NODES } else { MANY_NODES };
        let spent = self.narrow.get(&(place, id)).copied().unwrap_or(0);
        // Where little is wanted, little of the trie is reached.
        if trie.n_nodes() >= MANY_NODES && !wants_all && spent < most {
            let (before, wanted) = (self.n_seen, Some((lexeme, most - spent)));
            let narrow = self.walk_trie(stepper, language, (id, trie), lexeme, wanted, n_words)?;
            let n_nodes = (self.n_seen - before) as usize;
            self.narrow.insert((place, id), spent + n_nodes);
            if let (sweep, true) = narrow {
                return Ok(sweep);
            }
        }
        Ok(self.walk_trie(stepper, language, (id, trie), lexeme, None, n_words)?.0)
    }

    /// What is alike in places from which most tokens do the same.
    fn start_of(&mut self, language: &Language, place: Place) -> Start {
        let (union, state) = (&language.lexing().lexicon.union, place.state());
        if let Some(start) = self.starts.get(&state) {
            return start.clone();
        }
        let has_levels = !self.apart && union.has_bounds(state);
        // What preceding pieces owe is soon paid. Otherwise one automaton has many states that differ little.
        let alike = union.alive(state).map(|alive| SmallVec::from_slice(&alive));
        let start = (has_levels, alike.unwrap_or_else(|| where_most_bytes_lead(union, state)));
        self.bytes += size_of::<(State, Start)>() + 16;
        self.starts.insert(state, start.clone());
        start
    }

    /// Keeps a sweep of a trie in which so many nodes were looked at. If these are many, others are walked
    /// beside it.
    fn keep(
        &mut self,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        place: Place,
        sweep: &Arc<Sweep>,
        n_nodes: usize,
    ) {
        self.make_room(language, sweep.groups.iter().map(Group::memory_usage).sum());
        self.sweeps.insert((place, id), sweep.clone());
        if n_nodes >= FEW_NODES.min(1 + trie.n_nodes() / 8) {
            let start = self.start_of(language, place);
            self.bases.insert((id, start), Base { start: place, sweep: sweep.clone() });
        }
    }

    /// The sweep of the vocabulary's trie beside the last one that walked much of it from a start that is
    /// like this one. Kept. Cost: the nodes at which the two differ, and their children.
    fn beside_base(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        (lexeme, like): (LexemeId, (u64, Start)),
        n_words: usize,
    ) -> Result<Arc<Sweep>, StepError> {
        let Some(base) = self.bases.get(&like).cloned() else { return Ok(Arc::default()) };
        let (lexing, start) = (language.lexing(), stepper.transducer().place(lexeme));
        let has_rests = self.apart || !lexing.merges_ends();
        let places = self.places.of(lexing, (like.1.0, has_rests));
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, places, None);
        let mut pairs = Pairs::default();
        pairs.walk(&mut sweeper, base.start, start)?;
        let n_steps = sweeper.n_steps;
        let sweep = Arc::new(pairs.finish(&base.sweep, sweeper, n_words));
        self.n_seen += n_steps as u64;
        stepper.spend(n_steps + n_words)?;
        self.keep(language, (like.0, trie), start, &sweep, n_steps);
        Ok(sweep)
    }

    /// The sweep of the vocabulary's trie where most tokens do what they do in an automaton in common use,
    /// see [`crate::common`]; `None` elsewhere. Kept. Cost: the nodes at which they do not, and their
    /// children.
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
        let has_rests = self.apart || !lexing.merges_ends();
        let places = self.places.of(lexing, (false, has_rests));
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, places, None);
        let mut beside = Beside::new(walked);
        beside.walk(&mut sweeper, start)?;
        let n_steps = sweeper.n_steps;
        self.n_seen += n_steps as u64;
        let sweep = beside.finish(sweeper, n_words)?;
        stepper.spend(n_steps + n_words)?;
        let Some(sweep) = sweep.map(Arc::new) else { return Ok(None) };
        self.make_room(language, sweep.groups.iter().map(Group::memory_usage).sum());
        self.sweeps.insert((start, 0), sweep.clone());
        Ok(Some(sweep))
    }

    /// Walks a trie from the place of a lexeme, as long as the piece goes on. Cost: a table look-up for each
    /// node that is reached.
    ///
    /// With `wanted`, only as far as it can become something that this lexeme wants, and over at most so many
    /// nodes; says whether that was all.
    fn walk_trie(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (trie_id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
        wanted: Option<(LexemeId, usize)>,
        n_words: usize,
    ) -> Result<(Arc<Sweep>, bool), StepError> {
        let start = stepper.transducer().place(lexeme);
        let has_rests = self.apart || !language.lexing().merges_ends();
        let lexing = language.lexing();
        // Where it matters to which place a token leads, however much may follow, places are one that do the
        // same for texts of any length.
        let has_levels = !self.apart && lexing.lexicon.union.has_bounds(start.state());
        let places = self.places.of(lexing, (has_levels, has_rests));
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, places, wanted);
        let start_id = sweeper.begin(start);
        let walk = sweeper.walk(start_id);
        let n_steps = sweeper.n_steps;
        self.n_seen += n_steps as u64;
        let (asked, is_all) = (sweeper.asked, sweeper.is_all());
        let groups = match walk {
            Ok(()) => sweeper.finish(n_words).collect(),
            Err(Stop::TooMany) => {
                stepper.spend(n_steps)?;
                return Ok((Arc::default(), false));
            }
            Err(Stop::Limit(error)) => return Err(error.into()),
        };
        stepper.spend(n_steps)?;
        let sweep = Arc::new(Sweep { groups, asked });
        if is_all {
            self.keep(language, (trie_id, trie), start, &sweep, n_steps);
        }
        Ok((sweep, true))
    }

    /// What is left of the tokens at and below some nodes of a trie, from the bytes of the nodes on. Made
    /// once for the same nodes.
    pub fn rest(&mut self, trie: (u64, &TokenTrie), tops: &[NodeId], n_words: usize) -> Arc<Rest> {
        self.rests.get(trie, tops, n_words)
    }

    /// A sweep as a lexeme sees it that is where the sweep began; shared by a key, if there is one.
    fn see(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: (u64, &TokenTrie),
        sweep: &Sweep,
        (lexeme, key): (LexemeId, Option<Key>),
        n_words: usize,
    ) -> Result<Walk, StepError> {
        let lexing = language.lexing();
        stepper.spend(sweep.groups.len() * 8)?;
        let transducer = stepper.transducer_mut();
        let mut unknown: Vec<(LexemeId, Arc<Tokens>)> = Vec::new();
        let (mut staying, mut ends) = (Vec::new(), Vec::new());
        for group in &sweep.groups {
            if !transducer.may_come_to(lexing, lexeme, group.place)? {
                continue;
            }
            let step = transducer.step_to(lexing, lexeme, group.place)?;
            if let Some(next) = step.stay
                && !group.tokens().is_empty()
                && !transducer.ends_with_token(next)
            {
                match transducer.prospect(next) {
                    Prospect::Completable => staying.push(group),
                    Prospect::Unknown => unknown.push((next, group.tokens().clone())),
                }
            }
            ends.extend(step.cut.map(|cut| (cut, group)));
        }
        self.row.resize(n_words, 0);
        staying.iter().for_each(|group| group.tokens().add_to(&mut self.row));
        let mut exits = Vec::new();
        if !lexing.merges_ends() {
            for (cut, group) in ends {
                let obligations = transducer.cut(cut).obligations;
                let ends = (!group.tokens().is_subset(&self.row)).then(|| group.tokens().clone());
                let follows = |&top: &NodeId| transducer.survives(lexing, obligations, trie.1.byte(top));
                let rest = if group.tops().iter().any(follows) {
                    group.beyond(&self.rests, trie, n_words)
                } else {
                    None
                };
                let rest = rest.filter(|rest| !rest.tokens.is_subset(&self.row));
                if ends.is_some() || rest.is_some() {
                    exits.push((Exit { cut, ends, rest }, group));
                }
            }
        }
        staying.iter().for_each(|group| group.tokens().remove_from(&mut self.row));
        let (few, many): (Vec<_>, Vec<_>) = staying
            .iter()
            .map(|group| group.tokens())
            .partition(|tokens| matches!(&***tokens, Tokens::Few(_)));
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
        exits.sort_by_key(|(exit, _)| exit.cut);
        let (exits, ends): (Vec<Exit>, Vec<&Group>) = exits.into_iter().unzip();
        let (stay, worth) = (stay.into(), Worth::default());
        let mut walk = Walk { stay, unknown, exits, worth, own_bytes: 0 };
        walk.own_bytes = walk.memory_usage();
        if let Some(key) = key.filter(|_| walk.unknown.is_empty()) {
            self.share(language, key, (sweep, &mut walk), (&staying, &ends));
        }
        Ok(walk)
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

#[cfg(test)]
mod tests {
    use super::*;

    const N_WORDS: usize = 200;

    fn listed(tokens: &Tokens) -> Vec<TokenId> {
        let all = (0..N_WORDS * MASK_BITS).map(TokenId::new);
        all.filter(|&token| tokens.contains(token)).collect()
    }

    fn drawn(random: &mut Random, percent: usize) -> Vec<TokenId> {
        let all = (0..N_WORDS * MASK_BITS).map(TokenId::new);
        all.filter(|_| random.chance(percent)).collect()
    }

    #[test]
    fn sets_beside_a_row_are_what_rows_are() {
        let mut n_beside = 0;
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let density = *random.choose(&[1, 50, 99]);
            let mut set = Arc::new(Tokens::new(drawn(&mut random, density), N_WORDS));
            for _ in 0..3 {
                let before = listed(&set);
                let (n_gone, all) = (*random.choose(&[0, 1, 9, 20, 2_000]), N_WORDS * MASK_BITS);
                let gone: Vec<TokenId> = (0..n_gone).map(|_| TokenId::new(random.below(all))).collect();
                set = set.without(&Tokens::new(gone.clone(), N_WORDS));
                let left = before.iter().copied().filter(|token| !gone.contains(token));
                let left: Vec<TokenId> = left.collect();
                n_beside += usize::from(matches!(*set, Tokens::Most(..)));
                let plain = Tokens::new(left.clone(), N_WORDS);
                assert_eq!(listed(&set), left, "seed {seed}");
                assert_eq!((set.count(), set.first()), (left.len(), left.first().copied()), "seed {seed}");
                assert!(set.some(&mut random).is_none_or(|token| left.contains(&token)), "seed {seed}");
                let more = drawn(&mut random, 1);
                assert_eq!(listed(&set.with(more.clone(), N_WORDS)), listed(&plain.with(more, N_WORDS)));
                let mut row = vec![0; N_WORDS];
                let others = *random.choose(&[0, 50, 99, 100]);
                drawn(&mut random, others).iter().for_each(|token| set_bit(&mut row, token.index()));
                if random.chance(50) {
                    plain.add_to(&mut row);
                }
                assert_eq!(set.is_subset(&row), plain.is_subset(&row), "seed {seed}");
                assert_eq!(set.first_outside(&row), plain.first_outside(&row), "seed {seed}");
                let ways: [fn(&Tokens, &mut [u32]); 3] =
                    [Tokens::add_to, Tokens::remove_from, Tokens::write_to];
                for way in ways {
                    let (mut is, mut must) = (row.clone(), row.clone());
                    way(&set, &mut is);
                    way(&plain, &mut must);
                    assert!(is == must, "seed {seed}");
                }
            }
        }
        assert!(n_beside > 200, "{n_beside}");
    }
}
