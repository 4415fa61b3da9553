//! What tokens, and what is left of them, do to a piece in progress.

use std::sync::Arc;

use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Budgets, Question};
use crate::costs::Leftover;
use crate::language::StepError;
use crate::recalled::{Outlook, Outlooks};
use crate::tokens::Tokens;

/// What tokens, or what is left of them, do to a lexeme in progress.
pub(super) struct Walk {
    /// The lexemes that are in progress at the end of a token.
    pub(super) stays: Box<[(LexemeId, Outlook)]>,
    /// How the piece can end: whether with a token, and what is left otherwise.
    pub(super) exits: Box<[(CutId, Outlook, bool, Leftover)]>,
}

/// The same with the tokens themselves.
pub(super) struct Groups {
    pub(super) stays: Vec<(LexemeId, Tokens)>,
    pub(super) exits: Vec<Exit>,
}

/// A way in which a piece can end inside tokens or with them.
pub(super) struct Exit {
    pub(super) cut: CutId,
    /// The tokens that end here.
    pub(super) ends: Option<Tokens>,
    pub(super) rest: Option<Arc<Rest>>,
}

/// What is left of some tokens, by the tops of subtrees of the trie.
pub(super) struct Rest {
    /// Tells rests apart; 0 is the whole trie.
    pub(super) id: u32,
    pub(super) tops: Box<[NodeId]>,
    pub(super) tokens: Tokens,
    pub(super) leftover: Leftover,
}

/// What a byte of a token does to a lexeme, as [`Transducer::step`] says. The sweeps of masks
/// ([`crate::mask`]) take states for one that differ only beyond the token; what a completion costs depends
/// on that, so here they are told apart.
///
/// [`Transducer::step`]: anygram_lexer::transducer::Transducer::step
pub(super) enum Stepped {
    /// The piece goes on; whether a token ends here.
    Stay(LexemeId, bool),
    /// The piece ends; whether a token ends here, and the subtrees of the trie that may follow.
    Cut { cut: CutId, is_token: bool, tops: Vec<NodeId> },
}

/// Where a piece can end in tokens that it goes on with.
pub(super) fn cuts_in_tokens(
    question: &mut Question<'_>,
    lexeme: LexemeId,
) -> Result<Vec<(NodeId, CutId)>, StepError> {
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
pub(super) fn walk_lexeme(
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

impl Budgets {
    /// What tokens do to a lexeme without a number.
    pub(super) fn walk(
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

    /// The same with the tokens themselves.
    pub(super) fn groups(
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

    pub(super) fn rest(&mut self, trie: &TokenTrie, mut tops: Vec<NodeId>, n_words: usize) -> Arc<Rest> {
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
