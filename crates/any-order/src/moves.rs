//! What one token, any, does to a reading.
//!
//! From a lexeme the trie of tokens is walked once: the tokens that merely prolong the piece, by the lexeme that they lead to, and the ways in which the
//! piece can end inside a token, each with what is left of the tokens, as a trie of its own (a [`Rest`]) that is walked in the same way from the
//! boundary that the parser comes to. It is the form in which masks are computed (`anygram_left_to_right::mask`), with two differences: what
//! a token leads to matters here, so tokens are grouped by that; and rests are made when they are first needed.

use std::sync::{Arc, OnceLock};

use anygram_left_to_right::Language;
use anygram_left_to_right::frontier::Stepper;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::{MASK_BITS, get_bit, set_bit};
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::FxHashMap;

/// A set of tokens that is not empty: a list while that is smaller than a row of a mask.
#[derive(Debug)]
pub(crate) enum Tokens {
    Few(Box<[TokenId]>),
    Many(Box<[u32]>, TokenId),
}

impl Tokens {
    fn new(mut tokens: Vec<TokenId>, n_words: usize) -> Option<Self> {
        tokens.sort_unstable();
        tokens.dedup();
        let &first = tokens.first()?;
        if tokens.len() <= n_words {
            return Some(Self::Few(tokens.into()));
        }
        let mut words = vec![0; n_words];
        tokens.iter().for_each(|token| set_bit(&mut words, token.index()));
        Some(Self::Many(words.into(), first))
    }

    /// The lowest: with merged pairs of bytes the oldest, which is mostly the plainest.
    pub fn first(&self) -> TokenId {
        match self {
            Self::Few(tokens) => tokens[0],
            Self::Many(_, first) => *first,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Few(tokens) => tokens.len(),
            Self::Many(words, _) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    pub fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::Few(tokens) => tokens.iter().for_each(|token| set_bit(words, token.index())),
            Self::Many(own, _) => words.iter_mut().zip(own).for_each(|(word, &own)| *word |= own),
        }
    }

    /// The lowest that is not in a row.
    pub fn first_outside(&self, words: &[u32]) -> Option<TokenId> {
        match self {
            Self::Few(tokens) => tokens.iter().copied().find(|token| !get_bit(words, token.index())),
            Self::Many(own, _) => {
                let (at, left) =
                    own.iter().zip(words).map(|(&own, &word)| own & !word).enumerate().find(|&(_, left)| left != 0)?;
                Some(TokenId::new(at * MASK_BITS + left.trailing_zeros() as usize))
            }
        }
    }

    pub fn is_subset(&self, words: &[u32]) -> bool {
        match self {
            Self::Few(tokens) => tokens.iter().all(|token| get_bit(words, token.index())),
            Self::Many(own, _) => words.iter().zip(own).all(|(&word, &own)| own & !word == 0),
        }
    }

    fn memory_usage(&self) -> usize {
        match self {
            Self::Few(tokens) => size_of_val(&**tokens),
            Self::Many(words, _) => size_of_val(&**words),
        }
    }
}

/// What is left of some tokens.
#[derive(Debug)]
pub(crate) struct Rest {
    /// Tells tries apart; 0 is the vocabulary's own.
    pub id: u32,
    pub trie: TokenTrie,
    /// All tokens of which something is left.
    pub tokens: Option<Tokens>,
}

/// What tokens, or what is left of them, do to one lexeme in progress.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The tokens after which the piece is in progress, by lexeme; large sets first.
    pub stays: Vec<(LexemeId, Tokens)>,
    /// The ways in which the piece can end.
    pub exits: Vec<Exit>,
}

/// A way in which a piece can end inside tokens or with them.
#[derive(Debug)]
pub(crate) struct Exit {
    pub cut: CutId,
    /// The tokens that end here.
    pub ends: Option<Tokens>,
    /// Where others go on, in the trie that was walked.
    tops: Box<[NodeId]>,
    rest: OnceLock<Arc<Rest>>,
}

/// The walks that are kept, bounded in bytes: when full, all are dropped.
#[derive(Default)]
pub(crate) struct Walks {
    walks: FxHashMap<(LexemeId, u32), Arc<Walk>>,
    rests: FxHashMap<(u32, Box<[NodeId]>), Arc<Rest>>,
    bytes: usize,
    n_rests: u32,
}

impl Walks {
    pub fn memory_usage(&self) -> usize {
        self.bytes
    }

    /// The walk from a lexeme over a trie.
    pub fn get(
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
        let walk = Arc::new(walk(stepper, language, trie, lexeme, n_words)?);
        if self.bytes > language.limits().cache_bytes {
            // Rests keep their numbers: one that is in use may not be taken for another.
            self.walks.clear();
            self.rests.clear();
            self.bytes = 0;
        }
        self.bytes += walk.memory_usage();
        self.walks.insert((lexeme, id), walk.clone());
        Ok(walk)
    }

    /// What is left of the tokens that do not end with an exit; `None` if all do.
    pub fn rest(&mut self, (id, trie): (u32, &TokenTrie), exit: &Exit, n_words: usize) -> Option<Arc<Rest>> {
        if exit.tops.is_empty() {
            return None;
        }
        let rest = exit.rest.get_or_init(|| {
            let fresh = || {
                self.n_rests += 1;
                let mut left = Vec::new();
                exit.tops.iter().for_each(|&top| leftovers(trie, top, &mut left));
                left.sort_unstable();
                left.dedup();
                let tokens = Tokens::new(left.iter().map(|&(token, _)| token).collect(), n_words);
                let trie = TokenTrie::new(left.iter().map(|(token, bytes)| (*token, &**bytes)));
                let bytes = trie.memory_usage() + tokens.as_ref().map_or(0, Tokens::memory_usage);
                self.bytes += bytes + size_of_val(&*exit.tops);
                Arc::new(Rest { id: self.n_rests, trie, tokens })
            };
            self.rests.entry((id, exit.tops.clone())).or_insert_with(fresh).clone()
        });
        Some(rest.clone())
    }
}

/// Walks a trie with one lexeme, as long as the piece goes on.
fn walk(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    lexeme: LexemeId,
    n_words: usize,
) -> Result<Walk, StepError> {
    let lexing = language.lexing();
    let mut n_steps = 0;
    let mut stays: FxHashMap<LexemeId, Vec<TokenId>> = FxHashMap::default();
    let mut cuts: Vec<(NodeId, CutId)> = Vec::new();
    let last = NodeId(trie.n_nodes() as u32);
    let mut ancestors = vec![(last, lexeme)];
    let mut at = NodeId(1);
    while at < last {
        while ancestors.last().is_some_and(|&(end, _)| at >= end) {
            ancestors.pop();
        }
        let Some(&(_, lexeme)) = ancestors.last() else { break };
        n_steps += 1;
        let step = stepper.transducer_mut().step(lexing, lexeme, trie.byte(at))?;
        cuts.extend(step.cut.map(|cut| (at, cut)));
        let Some(next) = step.stay else {
            at = trie.end(at);
            continue;
        };
        let own = trie.tokens_at(at);
        if !own.is_empty() {
            stays.entry(next).or_default().extend_from_slice(own);
        }
        ancestors.push((trie.end(at), next));
        at = NodeId(at.0 + 1);
    }
    stepper.spend(n_steps)?;
    cuts.sort_unstable_by_key(|&(node, cut)| (cut, node));
    let mut exits: Vec<Exit> = Vec::new();
    for group in cuts.chunk_by(|a, b| a.1 == b.1) {
        let cut = group[0].1;
        let obligations = stepper.transducer().cut(cut).obligations;
        let (mut ends, mut tops) = (Vec::new(), Vec::new());
        for &(node, _) in group {
            ends.extend_from_slice(trie.tokens_at(node));
            let survives = |&child: &NodeId| stepper.transducer_mut().survives(lexing, obligations, trie.byte(child));
            tops.extend(trie.children(node).filter(survives));
        }
        let ends = Tokens::new(ends, n_words);
        if ends.is_some() || !tops.is_empty() {
            exits.push(Exit { cut, ends, tops: tops.into(), rest: OnceLock::new() });
        }
    }
    let mut stays: Vec<(LexemeId, Tokens)> =
        stays.into_iter().filter_map(|(lexeme, tokens)| Some((lexeme, Tokens::new(tokens, n_words)?))).collect();
    // In an order that does not depend on the numbers of lexemes and cuts, so that searches can be repeated.
    stays.sort_by_cached_key(|(_, tokens)| (std::cmp::Reverse(tokens.len()), tokens.first()));
    exits.sort_by_cached_key(|exit| {
        (exit.ends.as_ref().map(|ends| (std::cmp::Reverse(ends.len()), ends.first())), exit.tops.first().copied())
    });
    Ok(Walk { stays, exits })
}

/// Collects the tokens at and below a node, each with its bytes from the node's own on.
fn leftovers(trie: &TokenTrie, top: NodeId, left: &mut Vec<(TokenId, Box<[u8]>)>) {
    let mut path: Vec<(NodeId, u8)> = Vec::new();
    let (mut at, last) = (top, trie.end(top));
    while at < last {
        while path.last().is_some_and(|&(end, _)| at >= end) {
            path.pop();
        }
        path.push((trie.end(at), trie.byte(at)));
        let own = trie.tokens_at(at);
        if !own.is_empty() {
            let bytes: Box<[u8]> = path.iter().map(|&(_, byte)| byte).collect();
            left.extend(own.iter().map(|&token| (token, bytes.clone())));
        }
        at = NodeId(at.0 + 1);
    }
}

impl Walk {
    fn memory_usage(&self) -> usize {
        let stays = self.stays.iter().map(|(_, tokens)| tokens.memory_usage() + size_of::<(LexemeId, Tokens)>());
        let ends = |exit: &Exit| exit.ends.as_ref().map_or(0, Tokens::memory_usage);
        let exits = self.exits.iter().map(|exit| ends(exit) + size_of_val(&*exit.tops) + size_of::<Exit>());
        stays.sum::<usize>() + exits.sum::<usize>()
    }
}
