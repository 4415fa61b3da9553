//! Readings, and what the grammar's memory recalls of their text.
//!
//! Most of what a text means is in its readings; that keys differ, and items that have to, is in a
//! [`Memory`] beside them ([`anygram_grammar::memory`]). Where a piece ends that repeats another, readings in
//! which it may not are dropped. As long as something in progress may come to repeat something, a text is
//! viable only if there is another way to go on; that takes a look at the piece, and where arrays or objects
//! are in progress a search along what they may come to repeat. It is finite: there are only so many of them.
//!
//! Masks are those of the readings less the tokens after which nothing can follow. Such a token ends in what
//! may come to repeat something, or beyond a piece that does; these are few, and each is tried.

use std::sync::{Arc, Mutex, PoisonError};

use anygram_grammar::memory::{ByteSet, Memory};
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::StepCause;
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};
use crate::mask;

/// What is recalled of a text; nothing in a language without a memory.
#[derive(Debug, Default)]
pub struct Recall(Option<Box<dyn Memory>>);

impl Clone for Recall {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|memory| memory.fork()))
    }
}

impl Recall {
    /// Of the empty text.
    pub fn new(language: &Language) -> Self {
        Self(language.grammar().memory.as_ref().map(|memory| memory.fork()))
    }

    /// Reads a byte.
    fn step(&mut self, byte: u8) {
        if let Some(memory) = &mut self.0 {
            memory.step(byte);
        }
    }

    fn repeats(&self) -> bool {
        self.0.as_ref().is_some_and(|memory| memory.repeats())
    }

    fn risky(&self) -> Option<ByteSet> {
        self.0.as_ref().map(|memory| memory.risky())
    }

    fn at_risk(&self) -> Option<&dyn Memory> {
        self.0.as_deref().filter(|memory| memory.is_at_risk())
    }
}

impl Stepper {
    /// As [`Stepper::step`], with what is recalled, which reads the byte too.
    pub fn step_recalling(
        &mut self,
        language: &Language,
        frontier: &[Config],
        recall: &mut Recall,
        byte: u8,
        next: &mut Frontier,
    ) -> Result<(), StepError> {
        recall.step(byte);
        if recall.repeats() {
            self.step_afresh(language, frontier, byte, next)
        } else {
            self.step(language, frontier, byte, next)
        }
    }

    /// Whether some continuation makes a sentence of the text.
    pub fn is_viable_recalling(
        &mut self,
        language: &Language,
        frontier: &[Config],
        recall: &Recall,
    ) -> Result<bool, StepError> {
        let Some(memory) = recall.at_risk() else { return self.is_viable(language, frontier) };
        if frontier.is_empty() || !self.is_viable(language, frontier)? {
            return Ok(false);
        }
        Ok(self.can_differ(language, frontier, memory) || self.finds_another(language, frontier, recall)?)
    }

    /// Whether the piece in progress can become one that repeats nothing.
    fn can_differ(&self, language: &Language, frontier: &[Config], memory: &dyn Memory) -> bool {
        if !memory.is_within() {
            return false;
        }
        let terminals = &language.grammar().terminals;
        frontier.iter().filter(|config| !self.transducer().is_boundary(config.lexeme)).any(|config| {
            let candidates = self.transducer().candidates(language.lexing(), config.lexeme);
            candidates
                .iter()
                .any(|terminal| terminals[terminal].memory.is_none_or(|terminal| memory.differs(terminal)))
        })
    }

    /// Looks along everything that may be repeated for a way to go on that repeats nothing.
    fn finds_another(
        &mut self,
        language: &Language,
        frontier: &[Config],
        recall: &Recall,
    ) -> Result<bool, StepError> {
        let limit = language.limits().search_steps;
        let mut seen = FxHashSet::default();
        let mut agenda = vec![(frontier.to_vec(), recall.clone())];
        let (mut at, mut next) = (Frontier::new(), Frontier::new());
        while let Some((frontier, recall)) = agenda.pop() {
            let Some(memory) = recall.at_risk() else { continue };
            for continuation in memory.continuations() {
                let mut recall = recall.clone();
                at.clone_from(&frontier);
                for byte in continuation {
                    self.step_recalling(language, &at, &mut recall, byte, &mut next)?;
                    std::mem::swap(&mut at, &mut next);
                }
                if at.is_empty() {
                    continue;
                }
                match recall.at_risk() {
                    None if self.is_viable(language, &at)? => return Ok(true),
                    Some(memory) if self.can_differ(language, &at, memory) => return Ok(true),
                    Some(memory) if seen.insert((at.clone(), memory.fingerprint())) => {
                        agenda.push((at.clone(), recall));
                    }
                    None | Some(_) => {}
                }
            }
            if seen.len() > limit {
                return Err(StepCause::Undecided { limit }.into());
            }
        }
        Ok(false)
    }

    /// Clears the bits of tokens after which nothing can follow, because it would repeat something.
    pub fn remove_repeating(
        &mut self,
        language: &Language,
        vocabulary: &Vocabulary,
        (frontier, recall): (&[Config], &Recall),
        words: &mut [u32],
    ) -> Result<(), StepError> {
        let Some(memory) = &recall.0 else { return Ok(()) };
        let trie = vocabulary.trie();
        self.follow(language, trie, (frontier, recall), words)?;
        let (name, test) = memory.whole();
        let mut next = Frontier::new();
        for &token in selection(vocabulary, name, test).iter() {
            if !mask::get_bit(words, token.index()) {
                continue;
            }
            let bytes = vocabulary.bytes(token).unwrap_or_default();
            // What repeats nothing by itself needs no readings.
            let mut memory = memory.fork();
            let is_plain = bytes.iter().all(|&byte| {
                memory.step(byte);
                !memory.repeats()
            });
            if is_plain && !memory.is_at_risk() {
                continue;
            }
            let (mut at, mut recall) = (frontier.to_vec(), recall.clone());
            for &byte in bytes {
                self.step_recalling(language, &at, &mut recall, byte, &mut next)?;
                std::mem::swap(&mut at, &mut next);
            }
            if !self.is_viable_recalling(language, &at, &recall)? {
                mask::clear_bit(words, token.index());
            }
        }
        Ok(())
    }

    /// The same for the tokens that begin with bytes by which something may be repeated: a walk of the trie
    /// as long as that may be.
    fn follow(
        &mut self,
        language: &Language,
        trie: &TokenTrie,
        (frontier, recall): (&[Config], &Recall),
        words: &mut [u32],
    ) -> Result<(), StepError> {
        let root = Walk { frontier: frontier.to_vec(), risky: recall.risky(), recall: recall.clone() };
        trie.descend(trie.below_root(), root, |Walk { frontier, recall, risky }, node: NodeId| {
            let (byte, below) = (trie.byte(node), trie.tokens_below(node));
            let is_risky = risky.is_none_or(|risky| risky[usize::from(byte)]);
            if !is_risky || !below.iter().any(|token| mask::get_bit(words, token.index())) {
                return Ok::<_, StepError>(None);
            }
            let (mut next, mut recall) = (Frontier::new(), recall.clone());
            self.step_recalling(language, frontier, &mut recall, byte, &mut next)?;
            if !self.is_viable_recalling(language, &next, &recall)? {
                below.iter().for_each(|token| mask::clear_bit(words, token.index()));
                return Ok(None);
            }
            // Where readings were dropped, the mask is not that of those that are left.
            let risky = if recall.repeats() { None } else { risky.and(recall.risky()) };
            let goes_on = risky.is_none_or(|risky| risky.contains(&true));
            Ok(goes_on.then_some(Walk { frontier: next, recall, risky }))
        })
    }
}

/// Lists of a vocabulary's tokens, by the names of tests that they pass.
#[derive(Default)]
struct Selections(Mutex<FxHashMap<&'static str, Arc<[TokenId]>>>);

/// The tokens that pass a test. Cost, once for a vocabulary: all tokens.
fn selection(vocabulary: &Vocabulary, name: &'static str, test: fn(&[u8]) -> bool) -> Arc<[TokenId]> {
    let known = vocabulary.beside::<Selections>();
    // A list is added whole.
    let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    let passes = |&token: &TokenId| vocabulary.bytes(token).is_some_and(test);
    let select = || (0..vocabulary.len() as u32).map(TokenId).filter(passes).collect();
    known.entry(name).or_insert_with(select).clone()
}

/// Where a walk of the trie is.
struct Walk {
    frontier: Frontier,
    recall: Recall,
    /// The bytes that are followed; `None` for all.
    risky: Option<ByteSet>,
}
