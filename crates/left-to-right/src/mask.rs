//! Masks: which tokens leave a frontier viable.
//!
//! What a token does to a lexeme in progress, as long as the piece goes on, depends on nothing else. So for each lexeme the trie of tokens is walked
//! once and the result kept: the tokens that merely prolong the piece, and, for each way in which the piece can end inside a token, what is
//! left of those tokens, as a trie of its own. Words differ but what is left of them after a word does not (`foo(`, `bar(`), so these tries are
//! small; they are walked in the same way from the boundary that the parser comes to, and those walks are kept too. A mask is then a few steps of
//! the parser and unions of token sets. Cost when all walks are known: the ends of pieces that are followed × words of a mask.
//!
//! In `scannerless` all pieces that end at one byte have to meet in one parser state, so there the trie is walked with the whole frontier, and the kept
//! walks only say what need not be visited. Cost: nodes visited × readings.

use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_grammar::ir::LexerMode;
use anygram_lexer::transducer::{CutId, LexemeId, Prospect};
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};

/// Masks are rows of 32-bit words, bit `id % 32` of word `id / 32`, as serving engines share them.
pub const MASK_BITS: usize = u32::BITS as usize;

/// Sets a token's bit.
pub fn set_bit(words: &mut [u32], id: usize) {
    words[id / MASK_BITS] |= 1 << (id % MASK_BITS);
}

/// Whether a token's bit is set.
pub fn get_bit(words: &[u32], id: usize) -> bool {
    words[id / MASK_BITS] >> (id % MASK_BITS) & 1 == 1
}

/// A set of tokens: a list while that is smaller than a row of a mask.
pub(crate) enum Tokens {
    Few(Box<[TokenId]>),
    Many(Box<[u32]>),
}

impl Tokens {
    pub fn new(mut tokens: Vec<TokenId>, n_words: usize) -> Self {
        tokens.sort_unstable();
        tokens.dedup();
        // A list costs about as much as a row when it has an eighth of its words: its bits are scattered.
        if tokens.len() <= n_words / 8 {
            return Self::Few(tokens.into());
        }
        let mut words = vec![0; n_words];
        tokens.iter().for_each(|token| set_bit(&mut words, token.index()));
        Self::Many(words.into())
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Few(tokens) if tokens.is_empty())
    }

    pub fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => tokens.iter().for_each(|token| set_bit(words, token.index())),
            Self::Many(own) => words.iter_mut().zip(own).for_each(|(word, &own)| *word |= own),
        }
    }

    pub fn is_subset(&self, words: &[u32]) -> bool {
        match self {
            Self::Few(tokens) => tokens.iter().all(|token| get_bit(words, token.index())),
            Self::Many(own) => words.iter().zip(own).all(|(&word, &own)| own & !word == 0),
        }
    }

    fn memory_usage(&self) -> usize {
        match self {
            Self::Few(tokens) => size_of_val(&**tokens),
            Self::Many(words) => size_of_val(&**words),
        }
    }
}

/// What is left of some tokens.
struct Rest {
    /// Tells tries apart; 0 is the vocabulary's own.
    id: u32,
    trie: TokenTrie,
    tokens: Tokens,
}

/// What tokens, or what is left of them, do to one lexeme in progress.
struct Walk {
    /// The tokens after which the piece is in progress and can be completed.
    stay: Tokens,
    /// The tokens after which it is in progress as a lexeme of unknown prospect, by lexeme.
    unknown: Vec<(LexemeId, Tokens)>,
    /// The ways in which the piece can end, as far as not all tokens concerned are among `stay`.
    exits: Vec<Exit>,
}

/// A way in which a piece can end inside tokens or with them.
struct Exit {
    cut: CutId,
    /// The tokens that end here.
    ends: Tokens,
    /// What is left of the others.
    rest: Option<Arc<Rest>>,
}

/// The walks that are kept, bounded in bytes: when full, all are dropped.
#[derive(Default)]
pub struct Walks {
    walks: FxHashMap<(LexemeId, u32), Arc<Walk>>,
    /// By the trie and the nodes of it that they begin with.
    rests: FxHashMap<(u32, Box<[NodeId]>), Arc<Rest>>,
    bytes: usize,
    n_rests: u32,
}

/// Scratch space of a mask.
#[derive(Default)]
pub struct Scratch {
    configs: Frontier,
    found: Frontier,
    /// `(end of the subtree, first config)` of each ancestor.
    ancestors: Vec<(NodeId, usize)>,
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
    if language.mode() == LexerMode::Scannerless {
        for &Config { lexeme, .. } in frontier {
            let walk = walks.get(stepper, language, (0, trie), lexeme, words.len())?;
            walk.stay.add_to(words);
        }
        return follow_together(stepper, language, trie, frontier, scratch, words);
    }
    let mut agenda: Vec<(Config, Option<Arc<Rest>>)> = frontier.iter().map(|&config| (config, None)).collect();
    while let Some((Config { state, lexeme }, rest)) = agenda.pop() {
        stepper.spend(1 + words.len() / 16)?;
        let left = rest.as_ref().map_or((0, trie), |rest| (rest.id, &rest.trie));
        let walk = walks.get(stepper, language, left, lexeme, words.len())?;
        walk.stay.add_to(words);
        for (lexeme, tokens) in &walk.unknown {
            let config = Config { state, lexeme: *lexeme };
            if !tokens.is_subset(words) && stepper.is_viable(language, &[config])? {
                tokens.add_to(words);
            }
        }
        for Exit { cut, ends, rest } in &walk.exits {
            let ends_left = !ends.is_subset(words);
            let rest_left = rest.as_ref().filter(|rest| !rest.tokens.is_subset(words));
            if !ends_left && rest_left.is_none() {
                continue;
            }
            let Some(config) = stepper.end(language, (state, *cut))? else { continue };
            if ends_left && stepper.is_viable(language, &[config])? {
                ends.add_to(words);
            }
            if let Some(rest) = rest_left {
                agenda.push((config, Some(rest.clone())));
            }
        }
    }
    Ok(())
}

/// Walks the trie with all readings at once.
fn follow_together(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    scratch: &mut Scratch,
    words: &mut [u32],
) -> Result<(), StepError> {
    let Scratch { configs, found, ancestors } = scratch;
    let is_admitted = |&place: &usize| get_bit(words, trie.order()[place].index());
    let mut admitted = BitSet::from_members(trie.n_tokens(), (0..trie.n_tokens()).filter(is_admitted));
    let last = NodeId(trie.n_nodes() as u32);
    configs.clear();
    configs.extend_from_slice(frontier);
    ancestors.clear();
    ancestors.push((last, 0));
    let mut at = NodeId(1);
    while at < last {
        while let Some(&(end, first)) = ancestors.last()
            && at >= end
        {
            configs.truncate(first);
            ancestors.pop();
        }
        let node = trie.node(at);
        let Some(&(_, first)) = ancestors.last() else { break };
        if admitted.first_absent(node.lo, node.hi).is_none() {
            at = node.end;
            continue;
        }
        stepper.step(language, &configs[first..], node.byte, found)?;
        if found.is_empty() {
            at = node.end;
            continue;
        }
        if node.lo < node.own_hi && !admitted.contains(node.lo) && stepper.is_viable(language, found)? {
            admitted.insert_range(node.lo, node.own_hi);
            trie.tokens_at(at).iter().for_each(|token| set_bit(words, token.index()));
        }
        let next = NodeId(at.0 + 1);
        if node.end > next {
            ancestors.push((node.end, configs.len()));
            configs.extend_from_slice(found);
        }
        at = next;
    }
    Ok(())
}

impl Walks {
    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.bytes
    }

    fn get(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u32, &TokenTrie),
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(walk) = self.walks.get(&(lexeme, id)) {
            return Ok(walk.clone());
        }
        let walk = Arc::new(self.walk(stepper, language, (id, trie), lexeme, n_words)?);
        let bytes = walk.memory_usage();
        if self.bytes + bytes > language.limits().cache_bytes {
            // Rests keep their numbers: one that is in use may not be taken for another.
            self.walks.clear();
            self.rests.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.walks.insert((lexeme, id), walk.clone());
        Ok(walk)
    }

    /// Walks a trie with one lexeme, as long as the piece goes on.
    fn walk(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (trie_id, trie): (u32, &TokenTrie),
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Walk, StepError> {
        let lexing = language.lexing();
        let mut n_steps = 0;
        let mut stay = BitSet::new(trie.n_tokens());
        let mut unknown: FxHashMap<LexemeId, Vec<TokenId>> = FxHashMap::default();
        let mut cuts: Vec<(NodeId, CutId)> = Vec::new();
        let mut ancestors = vec![(trie.n_nodes() as u32, lexeme)];
        let mut at = 1;
        while at < trie.n_nodes() as u32 {
            while ancestors.last().is_some_and(|&(end, _)| at >= end) {
                ancestors.pop();
            }
            let (id, node) = (NodeId(at), trie.node(NodeId(at)));
            let Some(&(_, lexeme)) = ancestors.last() else { break };
            n_steps += 1;
            let step = stepper.transducer_mut().step(lexing, lexeme, node.byte)?;
            cuts.extend(step.cut.map(|cut| (id, cut)));
            let Some(next) = step.stay else {
                at = node.end.0;
                continue;
            };
            if stepper.transducer().prospect(next) == Prospect::Completable {
                stay.insert_range(node.lo, node.own_hi);
            } else if node.lo < node.own_hi {
                unknown.entry(next).or_default().extend_from_slice(trie.tokens_at(id));
            }
            ancestors.push((node.end.0, next));
            at += 1;
        }
        stepper.spend(n_steps)?;
        let exits = match language.mode() {
            LexerMode::Scannerless => Vec::new(),
            LexerMode::Longest | LexerMode::Contextual => {
                self.exits(stepper, language, (trie_id, trie), &stay, cuts, n_words)
            }
        };
        let mut unknown: Vec<(LexemeId, Tokens)> =
            unknown.into_iter().map(|(lexeme, tokens)| (lexeme, Tokens::new(tokens, n_words))).collect();
        // In an order that does not depend on hashing, so that times can be repeated.
        unknown.sort_unstable_by_key(|&(lexeme, _)| lexeme);
        let stay = Tokens::new(stay.iter().map(|place| trie.order()[place]).collect(), n_words);
        Ok(Walk { stay, unknown, exits })
    }

    /// What is left of the tokens at and below some nodes of a trie, from the bytes of the nodes on. Made once for the same nodes.
    fn rest(&mut self, (id, trie): (u32, &TokenTrie), tops: Vec<NodeId>, n_words: usize) -> Arc<Rest> {
        let key = (id, tops.into_boxed_slice());
        if let Some(rest) = self.rests.get(&key) {
            return rest.clone();
        }
        self.n_rests += 1;
        // All in one buffer.
        let (mut left, mut bytes) = (Vec::new(), Vec::new());
        key.1.iter().for_each(|&top| leftovers(trie, top, &mut left, &mut bytes));
        let tokens = Tokens::new(left.iter().map(|&(token, _, _)| token).collect(), n_words);
        let trie = TokenTrie::new(left.iter().map(|&(token, start, end)| (token, &bytes[start..end])));
        let rest = Arc::new(Rest { id: self.n_rests, trie, tokens });
        self.bytes += rest.trie.memory_usage() + rest.tokens.memory_usage() + size_of_val(&*key.1);
        self.rests.insert(key, rest.clone());
        rest
    }

    /// The ends of pieces at the given nodes, by cut.
    fn exits(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u32, &TokenTrie),
        stay: &BitSet,
        mut cuts: Vec<(NodeId, CutId)>,
        n_words: usize,
    ) -> Vec<Exit> {
        cuts.sort_unstable_by_key(|&(node, cut)| (cut, node));
        let mut exits = Vec::new();
        for group in cuts.chunk_by(|a, b| a.1 == b.1) {
            let cut = group[0].1;
            let obligations = stepper.transducer().cut(cut).obligations;
            let (mut ends, mut tops) = (Vec::new(), Vec::new());
            for &(node, _) in group {
                let place = trie.node(node);
                if place.lo < place.own_hi && !stay.contains(place.lo) {
                    ends.extend_from_slice(trie.tokens_at(node));
                }
                tops.extend(trie.children(node).filter(|&child| {
                    let below = trie.node(child);
                    stay.first_absent(below.lo, below.hi).is_some()
                        && stepper.transducer_mut().survives(language.lexing(), obligations, below.byte)
                }));
            }
            let rest = (!tops.is_empty()).then(|| self.rest((id, trie), tops, n_words));
            let ends = Tokens::new(ends, n_words);
            if rest.is_some() || !ends.is_empty() {
                exits.push(Exit { cut, ends, rest });
            }
        }
        exits
    }
}

/// Collects the tokens at and below a node, each with its bytes from the node's own on, as a range of `bytes`.
fn leftovers(trie: &TokenTrie, top: NodeId, left: &mut Vec<(TokenId, usize, usize)>, bytes: &mut Vec<u8>) {
    let mut path: Vec<(NodeId, u8)> = Vec::new();
    let (mut at, last) = (top, trie.end(top));
    while at < last {
        while path.last().is_some_and(|&(end, _)| at >= end) {
            path.pop();
        }
        let node = trie.node(at);
        path.push((node.end, node.byte));
        if node.lo < node.own_hi {
            let start = bytes.len();
            bytes.extend(path.iter().map(|&(_, byte)| byte));
            left.extend(trie.tokens_at(at).iter().map(|&token| (token, start, bytes.len())));
        }
        at = NodeId(at.0 + 1);
    }
}

impl Walk {
    fn memory_usage(&self) -> usize {
        let exit = |exit: &Exit| exit.ends.memory_usage() + size_of::<Exit>();
        let unknown = self.unknown.iter().map(|(_, tokens)| tokens.memory_usage() + size_of::<(LexemeId, Tokens)>());
        self.stay.memory_usage() + unknown.sum::<usize>() + self.exits.iter().map(exit).sum::<usize>()
    }
}
