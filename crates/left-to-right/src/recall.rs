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

use anygram_grammar::memory::{ByteSet, Memory, Risk, TokenTest};
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::StepCause;
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};
use crate::mask::{self, MASK_BITS};

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

    /// Whether what may be repeated next takes more than a look at some tokens.
    pub fn takes_work(&self) -> bool {
        self.0.as_ref().is_some_and(|memory| memory.risk().is_some())
    }

    fn at_risk(&self) -> Option<&dyn Memory> {
        self.0.as_deref().filter(|memory| memory.is_at_risk())
    }
}

/// A walk of the trie asks whether any of so many tokens is in the mask; of more, looking costs more than
/// walking.
const MANY_TOKENS: usize = 100;

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
        Ok(memory.always_differs()
            || self.can_differ(language, frontier, memory)
            || self.finds_another(language, frontier, recall)?)
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
        let Some(memory) = recall.0.as_deref() else { return Ok(()) };
        if let Some(risk) = memory.risk() {
            let selection = risk.test.map(|test| Selection::of(vocabulary, test));
            let trie = selection.as_ref().map_or(vocabulary.trie(), |selection| &selection.trie);
            self.follow(language, trie, (frontier, recall, risk), words)?;
        }
        let mut next = Frontier::new();
        for &(at, bits) in &Selection::of(vocabulary, memory.whole()).words {
            let mut left = bits & words[at];
            while left != 0 {
                let token = at * MASK_BITS + left.trailing_zeros() as usize;
                left &= left - 1;
                let bytes = vocabulary.bytes(TokenId::new(token)).unwrap_or_default();
                if is_harmless(memory, bytes) {
                    continue;
                }
                let (mut at, mut recall) = (frontier.to_vec(), recall.clone());
                for &byte in bytes {
                    self.step_recalling(language, &at, &mut recall, byte, &mut next)?;
                    std::mem::swap(&mut at, &mut next);
                }
                if !self.is_viable_recalling(language, &at, &recall)? {
                    mask::clear_bit(words, token);
                }
            }
        }
        Ok(())
    }

    /// The same for the tokens that begin with bytes by which something may be repeated: a walk of the trie
    /// as long as that may be. Most of it is the memory's alone; the readings take the same way where it
    /// depends on them whether something can follow.
    fn follow(
        &mut self,
        language: &Language,
        trie: &TokenTrie,
        (frontier, recall, risk): (&[Config], &Recall, Risk),
        words: &mut [u32],
    ) -> Result<(), StepError> {
        let mut way = Way { bytes: Vec::new(), frontiers: vec![frontier.to_vec()] };
        let mut enter = |Walk { depth, recall, risk }: &Walk, node: NodeId| {
            let (byte, below) = (trie.byte(node), trie.tokens_below(node));
            if risk.as_ref().is_some_and(|risk| !risk[usize::from(byte)])
                || below.len() < MANY_TOKENS && !below.iter().any(|token| mask::get_bit(words, token.index()))
            {
                return Ok::<_, StepError>(None);
            }
            let mut recall = recall.clone();
            recall.step(byte);
            way.go(*depth, byte);
            // Where readings were dropped, the mask is not that of those that are left.
            let are_dropped = risk.is_none() || recall.repeats();
            if are_dropped || recall.at_risk().is_some_and(|memory| !memory.always_differs()) {
                let frontier = way.readings(self, language, recall.repeats())?;
                if !self.is_viable_recalling(language, frontier, &recall)? {
                    below.iter().for_each(|token| mask::clear_bit(words, token.index()));
                    return Ok(None);
                }
            }
            let risk = recall.0.as_ref().and_then(|memory| memory.risk()).filter(|_| !are_dropped);
            let risk = risk.map(|risk| risk.bytes);
            let goes_on = are_dropped || risk.is_some();
            Ok(goes_on.then_some(Walk { depth: depth + 1, recall, risk }))
        };
        let tops = (0..=u8::MAX).filter(|&byte| risk.bytes[usize::from(byte)]);
        let tops = tops.filter_map(|byte| trie.child(TokenTrie::ROOT, byte));
        for top in tops {
            let root = Walk { depth: 0, recall: recall.clone(), risk: Some(risk.bytes) };
            trie.descend(trie.subtree(top), root, &mut enter)?;
        }
        Ok(())
    }
}

/// Whether a token repeats nothing by itself, and whatever the grammar derives behind it may follow: no
/// readings are needed to say so.
fn is_harmless(memory: &dyn Memory, bytes: &[u8]) -> bool {
    if memory.plainly_differs(bytes) {
        return true;
    }
    let mut memory = memory.fork();
    let differs = bytes.iter().all(|&byte| {
        memory.step(byte);
        !memory.repeats()
    });
    differs && (!memory.is_at_risk() || memory.always_differs())
}

/// Tokens of a vocabulary that pass a test.
struct Selection {
    /// The words of a mask of them that are not 0, with their places.
    words: Vec<(usize, u32)>,
    trie: TokenTrie,
}

/// Those of a vocabulary, by the names of the tests.
#[derive(Default)]
struct Selections(Mutex<FxHashMap<&'static str, Arc<Selection>>>);

impl Selection {
    /// Cost, once for a vocabulary: all tokens.
    fn of(vocabulary: &Vocabulary, (name, test): TokenTest) -> Arc<Self> {
        let known = vocabulary.beside::<Selections>();
        // One is added whole.
        let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(name).or_insert_with(|| Arc::new(Self::new(vocabulary, test))).clone()
    }

    fn new(vocabulary: &Vocabulary, test: fn(&[u8]) -> bool) -> Self {
        let tokens = (0..vocabulary.len()).map(TokenId::new);
        let tokens = tokens.filter_map(|token| Some((token, vocabulary.bytes(token)?)));
        let tokens: Vec<(TokenId, &[u8])> = tokens.filter(|(_, bytes)| test(bytes)).collect();
        let mut words = vec![0; vocabulary.len().div_ceil(MASK_BITS)];
        tokens.iter().for_each(|(token, _)| mask::set_bit(&mut words, token.index()));
        let words = words.into_iter().enumerate().filter(|&(_, word)| word != 0).collect();
        Self { words, trie: TokenTrie::new(tokens) }
    }
}

/// Where a walk of the trie is.
struct Walk {
    /// How many bytes lead there.
    depth: usize,
    recall: Recall,
    /// What is followed; `None` for everything.
    risk: Option<ByteSet>,
}

/// The bytes on the way to a node, and the readings on it, as far as somebody asked for them.
struct Way {
    bytes: Vec<u8>,
    /// Before each byte, and behind the last of some.
    frontiers: Vec<Frontier>,
}

impl Way {
    /// Goes on with a byte behind so many.
    fn go(&mut self, depth: usize, byte: u8) {
        self.bytes.truncate(depth);
        self.bytes.push(byte);
        self.frontiers.truncate(depth + 1);
    }

    /// The readings here; `repeats` says that the last byte ends what repeats something. What ended so before
    /// was asked for when it did.
    fn readings(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        repeats: bool,
    ) -> Result<&[Config], StepError> {
        while let Some(&byte) = self.bytes.get(self.frontiers.len() - 1) {
            let (at, mut next) = (&self.frontiers[self.frontiers.len() - 1], Frontier::new());
            if repeats && self.frontiers.len() == self.bytes.len() {
                stepper.step_afresh(language, at, byte, &mut next)?;
            } else {
                stepper.step(language, at, byte, &mut next)?;
            }
            self.frontiers.push(next);
        }
        Ok(&self.frontiers[self.frontiers.len() - 1])
    }
}
